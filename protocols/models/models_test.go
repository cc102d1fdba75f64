// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/models"
)

var full = models.Model{
	ID: "org/name", Created: 1700000000, OwnedBy: "org", DisplayName: "Name", ContextWindow: 200, MaxInputTokens: 150, MaxOutputTokens: 50,
	Root: "/models/x", Parent: "base", Capabilities: []byte("{\"thinking\":\n{}}"),
}

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		m    models.Model
		s    models.Style
		want string
	}{
		{models.Model{ID: "m"}, models.OpenAI, `{"id":"m","object":"model","created":0,"owned_by":"weft"}`},
		{models.Model{ID: "m"}, models.Anthropic, `{"type":"model","id":"m","display_name":"m","created_at":"1970-01-01T00:00:00Z"}`},
		{full, models.OpenAI, `{"id":"org/name","object":"model","created":1700000000,"owned_by":"org","display_name":"Name","root":"/models/x","parent":"base","max_model_len":200,"context_window":200,"max_input_tokens":150,"max_output_tokens":50}`},
		{full, models.Anthropic, `{"type":"model","id":"org/name","display_name":"Name","created_at":"2023-11-14T22:13:20Z","max_input_tokens":150,"max_tokens":50,"capabilities":{"thinking": {}}}`},
		{models.Model{ID: "a\"\xff", Created: -5, ContextWindow: 9, Capabilities: []byte("[")}, models.Anthropic, "{\"type\":\"model\",\"id\":\"a\\\"\uFFFD\",\"display_name\":\"a\\\"\uFFFD\",\"created_at\":\"1970-01-01T00:00:00Z\",\"max_input_tokens\":9}"},
		{models.Model{ID: "m", Created: 1 << 60}, models.Anthropic, `{"type":"model","id":"m","display_name":"m","created_at":"9999-12-31T23:59:59Z"}`},
	} {
		require.Equal(t, "x"+c.want, string(models.AppendModel([]byte("x"), &c.m, c.s)))
	}
	list := []models.Model{{ID: "b"}, {ID: "a"}}
	require.Equal(t, `{"object":"list","data":[{"id":"b","object":"model","created":0,"owned_by":"weft"},{"id":"a","object":"model","created":0,"owned_by":"weft"}]}`,
		string(models.AppendList(nil, list, models.OpenAI)))
	require.Equal(t, `{"data":[{"type":"model","id":"b","display_name":"b","created_at":"1970-01-01T00:00:00Z"},{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"b","last_id":"a"}`,
		string(models.AppendList(nil, list, models.Anthropic)))
	require.Equal(t, `{"object":"list","data":[]}`, string(models.AppendList(nil, nil, models.OpenAI)))
	require.Equal(t, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`, string(models.AppendList(nil, nil, models.Anthropic)))
}

func TestPathID(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/models/m": "m", "/v1/models/org/name": "org/name", "/v1/models/org/name/": "org/name", "/proxy/v1/models/a/v1/models/b": "a/v1/models/b",
		"/v1/models/a b:c@1": "a b:c@1", "/v1/models": "", "/v1/models/": "", "/models/m": "", "": "", "/v1/modelsx/m": "",
	} {
		id, ok := models.PathID(path)
		require.Equal(t, want, id, path)
		require.Equal(t, want != "", ok, path)
	}
}

func TestFind(t *testing.T) {
	list := []models.Model{{ID: "b"}, {ID: "a"}, {ID: "a", Created: 1}}
	require.Same(t, &list[1], models.Find(list, "a"))
	require.Nil(t, models.Find(list, "c"))
	slices.SortStableFunc(list, models.Compare)
	require.Equal(t, "a0 a1 b0", fmt.Sprint(list[0].ID, list[0].Created, " ", list[1].ID, list[1].Created, " ", list[2].ID, list[2].Created))
	require.Equal(t, models.Anthropic, models.StyleOf("2023-06-01"))
	require.Equal(t, models.OpenAI, models.StyleOf(""))
}

var plain = cmp.Options{cmpopts.IgnoreFields(models.Model{}, "Raw"), cmpopts.EquateEmpty()}

func TestDecodeList(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []models.Model
	}{
		"vLLM": {
			`{"object":"list","data":[{"id":"org/name","object":"model","created":1700000000,"owned_by":"vllm","root":"org/name","parent":null,"max_model_len":32768,"permission":[{"id":"modelperm-1"}]}]}`,
			[]models.Model{{ID: "org/name", Created: 1700000000, OwnedBy: "vllm", Root: "org/name", ContextWindow: 32768}},
		},
		"Anthropic": {
			`{"data":[{"type":"model","id":"c","display_name":"C","created_at":"2025-02-19T00:00:00Z","max_input_tokens":5,"max_tokens":3,"capabilities":{"batch":{"supported":true}}}],"has_more":false,"first_id":"c","last_id":"c"}`,
			[]models.Model{{ID: "c", DisplayName: "C", Created: 1739923200, MaxInputTokens: 5, MaxOutputTokens: 3, Capabilities: []byte(`{"batch":{"supported":true}}`)}},
		},
		"Dynamo, OpenRouter, odd types": {
			`{"data":[{"id":"a","created":1.5e9,"context_window":9,"max_output_tokens":4},{"id":"b","context_length":7,"created":"x","owned_by":7,"created_at":"yesterday","max_tokens":-1,"capabilities":[]}]}`,
			[]models.Model{{ID: "a", Created: 1500000000, ContextWindow: 9, MaxOutputTokens: 4}, {ID: "b", ContextWindow: 7}},
		},
		"a bare list": {`[{"id":"a"}]`, []models.Model{{ID: "a"}}},
		"none":        {`{"object":"list","data":null}`, nil},
		"empty":       {`{"data":[]}`, nil},
	} {
		got, err := models.DecodeList([]byte(c.body))
		require.NoError(t, err, name)
		require.Empty(t, cmp.Diff(c.want, got, plain), name)
	}
	for body, want := range map[string]string{
		`{"data":[{"id":"a"},{"x":1}]}`: "data[1].id: a string is required at byte 20",
		`{"data":[7]}`:                  "data[0].id: a string is required at byte 9",
		`{"data":{}}`:                   "data: a list of models was expected, not an object at byte 8",
		`{"error":"x"}`:                 "a list of models was expected, not an object at byte 0",
		`[`:                             "[0]: unexpected end of JSON at byte 1",
	} {
		_, err := models.DecodeList([]byte(body))
		require.EqualError(t, err, want, body)
		require.IsType(t, &block.Error{}, err)
	}
	m, err := models.DecodeModel([]byte(` {"id":"a","x":1}`))
	require.NoError(t, err)
	require.Equal(t, `{"id":"a","x":1}`, string(m.Raw))
	_, err = models.DecodeModel([]byte(`{`))
	require.Error(t, err)
}

// TestDrawn reads back what was written. Of OpenAI's form capabilities are no part, of Anthropic's the owner, the origin
// and the size of the context are not.
func TestDrawn(t *testing.T) {
	count := rapid.SampledFrom([]int64{0, 1, 1 << 40})
	model := rapid.Custom(func(t *rapid.T) models.Model {
		m := models.Model{
			ID: rapid.StringN(1, 20, -1).Draw(t, "id"), Created: rapid.Int64Range(0, 253402300799).Draw(t, "created"), OwnedBy: rapid.SampledFrom([]string{"x", "weft"}).Draw(t, "owner"),
			DisplayName: rapid.StringN(1, 5, -1).Draw(t, "name"), ContextWindow: count.Draw(t, "window"), MaxInputTokens: count.Draw(t, "in"), MaxOutputTokens: count.Draw(t, "out"),
			Root: rapid.StringN(0, 3, -1).Draw(t, "root"), Parent: rapid.StringN(0, 3, -1).Draw(t, "parent"),
		}
		if rapid.Bool().Draw(t, "capable") {
			m.Capabilities = []byte(`{"a":1}`)
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(model, 0, 4).Draw(t, "list")
		body := models.AppendList(nil, list, models.OpenAI)
		require.True(t, json.Valid(body))
		got, err := models.DecodeList(body)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(list, got, plain, cmpopts.IgnoreFields(models.Model{}, "Capabilities")))
		require.Equal(t, string(body), string(models.AppendList(nil, got, models.OpenAI)))

		body = models.AppendList(nil, list, models.Anthropic)
		require.True(t, json.Valid(body))
		got, err = models.DecodeList(body)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(list, got, plain, cmpopts.IgnoreFields(models.Model{}, "OwnedBy", "Root", "Parent", "ContextWindow", "MaxInputTokens")))
		require.Equal(t, string(body), string(models.AppendList(nil, got, models.Anthropic)))
	})
}

func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a","created":1,"capabilities":{},"created_at":"2025-02-19T00:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := models.DecodeList(body)
		if err != nil {
			require.IsType(t, &block.Error{}, err)
			return
		}
		for _, s := range []models.Style{models.OpenAI, models.Anthropic} {
			out := models.AppendList(nil, list, s)
			require.True(t, json.Valid(out), "%s", out)
			again, err := models.DecodeList(out)
			require.NoError(t, err)
			require.Len(t, again, len(list))
		}
	})
}

func ExampleAppendList() {
	list := []models.Model{{ID: "qwen/qwen3", Created: 1700000000, OwnedBy: "qwen"}}
	fmt.Println(string(models.AppendList(nil, list, models.OpenAI)))
	fmt.Println(string(models.AppendList(nil, list, models.Anthropic)))
	// Output:
	// {"object":"list","data":[{"id":"qwen/qwen3","object":"model","created":1700000000,"owned_by":"qwen"}]}
	// {"data":[{"type":"model","id":"qwen/qwen3","display_name":"qwen/qwen3","created_at":"2023-11-14T22:13:20Z"}],"has_more":false,"first_id":"qwen/qwen3","last_id":"qwen/qwen3"}
}

func ExamplePathID() {
	id, ok := models.PathID("/v1/models/org/name")
	fmt.Println(id, ok)
	// Output: org/name true
}
