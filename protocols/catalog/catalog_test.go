// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
)

var full = Model{
	ID: "org/name", Created: 1700000000, OwnedBy: "org", DisplayName: "Name", ContextWindow: 200, MaxInputTokens: 150, MaxOutputTokens: 50,
	Description: "A model.", AutoCompactTokens: 120, EffectivePercent: 90, Truncation: Truncation{Mode: "tokens", Limit: 9000},
	Efforts: []Effort{{Effort: "low", Description: "Quick"}, {Effort: "high"}}, DefaultEffort: "low",
	ReasoningSummaries: yes, Verbosity: yes, DefaultVerbosity: "low", ParallelCalls: yes,
	ApplyPatch: "freeform", Shell: "unified_exec", Tools: []string{"grep"}, Modalities: []string{"text"}, Visibility: "hide", Priority: 3,
	BaseInstructions: "Be short.", Root: "/models/x", Parent: "base", Capabilities: []byte("{\"thinking\":\n{}}"),
}

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		m    Model
		s    Style
		want string
	}{
		{Model{ID: "m"}, OpenAI, `{"id":"m","object":"model","created":0,"owned_by":"weft"}`},
		{Model{ID: "m"}, Anthropic, `{"type":"model","id":"m","display_name":"m","created_at":"1970-01-01T00:00:00Z","lifecycle":"active"}`},
		{full, OpenAI, `{"id":"org/name","object":"model","created":1700000000,"owned_by":"org","display_name":"Name","root":"/models/x","parent":"base","max_model_len":200,"context_window":200,"max_input_tokens":150,"max_output_tokens":50}`},
		{full, Anthropic, `{"type":"model","id":"org/name","display_name":"Name","created_at":"2023-11-14T22:13:20Z","lifecycle":"active","max_input_tokens":150,"max_tokens":50,"capabilities":{"thinking": {}}}`},
		{full, Codex, `{"slug":"org/name","display_name":"Name","description":"A model.","default_reasoning_level":"low","supported_reasoning_levels":[{"effort":"low","description":"Quick"},{"effort":"high","description":""}],` +
			`"shell_type":"unified_exec","visibility":"hide","supported_in_api":true,"priority":3,"availability_nux":null,"upgrade":null,"base_instructions":"Be short.","supports_reasoning_summaries":true,"supports_reasoning_summary_parameter":true,` +
			`"support_verbosity":true,"default_verbosity":"low","apply_patch_tool_type":"freeform","truncation_policy":{"mode":"tokens","limit":9000},"supports_parallel_tool_calls":true,"context_window":150,"max_context_window":200,` +
			`"auto_compact_token_limit":120,"effective_context_window_percent":90,"experimental_supported_tools":["grep"],"input_modalities":["text"]}`},
		{Model{ID: "m", BaseInstructions: "x"}, Codex, `{"slug":"m","display_name":"m","description":null,"supported_reasoning_levels":[],"shell_type":"default","visibility":"list","supported_in_api":true,"priority":0,` +
			`"availability_nux":null,"upgrade":null,"base_instructions":"x","supports_reasoning_summaries":false,"support_verbosity":false,"default_verbosity":null,"apply_patch_tool_type":null,` +
			`"truncation_policy":{"mode":"bytes","limit":10000},"supports_parallel_tool_calls":false,"experimental_supported_tools":[]}`},
		{Model{ID: "a\"\xff", Created: -5, ContextWindow: 9, Capabilities: []byte("[")}, Anthropic, "{\"type\":\"model\",\"id\":\"a\\\"\uFFFD\",\"display_name\":\"a\\\"\uFFFD\",\"created_at\":\"1970-01-01T00:00:00Z\",\"lifecycle\":\"active\",\"max_input_tokens\":9}"},
		{Model{ID: "m", Created: 1 << 60}, Anthropic, `{"type":"model","id":"m","display_name":"m","created_at":"9999-12-31T23:59:59Z","lifecycle":"active"}`},
	} {
		require.Equal(t, "x"+c.want, string(AppendModel([]byte("x"), &c.m, c.s)))
	}
	list := []Model{{ID: "b"}, {ID: "a"}}
	require.Equal(t, `{"models":[`+string(AppendModel(nil, &list[0], Codex))+`,`+string(AppendModel(nil, &list[1], Codex))+`]}`,
		string(AppendList(nil, list, Codex)))
	require.Equal(t, `{"models":[]}`, string(AppendList(nil, nil, Codex)))
	require.Equal(t, `{"object":"list","data":[{"id":"b","object":"model","created":0,"owned_by":"weft"},{"id":"a","object":"model","created":0,"owned_by":"weft"}]}`,
		string(AppendList(nil, list, OpenAI)))
	require.Equal(t, `{"data":[{"type":"model","id":"b","display_name":"b","created_at":"1970-01-01T00:00:00Z","lifecycle":"active"},{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:00Z","lifecycle":"active"}],"has_more":false,"first_id":"b","last_id":"a"}`,
		string(AppendList(nil, list, Anthropic)))
	require.Equal(t, `{"object":"list","data":[]}`, string(AppendList(nil, nil, OpenAI)))
	require.Equal(t, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`, string(AppendList(nil, nil, Anthropic)))
}

func TestPathID(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/models/m": "m", "/v1/models/org/name": "org/name", "/v1/models/org/name/": "org/name", "/proxy/v1/models/a/v1/models/b": "a/v1/models/b",
		"/v1/models/a b:c@1": "a b:c@1", "/v1/models": "", "/v1/models/": "", "/models/m": "", "": "", "/v1/modelsx/m": "",
	} {
		id, ok := PathID(path)
		require.Equal(t, want, id, path)
		require.Equal(t, want != "", ok, path)
	}
}

var yes, no = new(true), new(false)

func TestDetectStyle(t *testing.T) {
	for request, want := range map[string]Style{
		"":                             OpenAI,
		"?limit=1000":                  OpenAI,
		"Anthropic-Version=2023-06-01": Anthropic,
		"User-Agent=claude-cli/2.1.330 (external, sdk-cli)":                       Anthropic,
		"User-Agent=claude-code/2.1.330":                                          Anthropic,
		"User-Agent=OpenAI/JS 7.57.0":                                             OpenAI,
		"?client_version=0.169.0":                                                 Codex,
		"User-Agent=codex_exec/0.169.0 (Linux)":                                   Codex,
		"User-Agent=codex-tui/0.169.0":                                            Codex,
		"Anthropic-Version=2023-06-01&User-Agent=x?client_version=0.169.0&limit=": Codex,
	} {
		headers, parameters, _ := strings.Cut(request, "?")
		h, err := url.ParseQuery(headers)
		require.NoError(t, err)
		q, err := url.ParseQuery(parameters)
		require.NoError(t, err)
		require.Equal(t, want, DetectStyle(h.Get, q.Get), request)
	}
}

var styles = []Style{OpenAI, Anthropic, Codex}

var plain = gocmp.Options{cmpopts.EquateEmpty()}

func TestParseList(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []Model
	}{
		"vLLM": {
			`{"object":"list","data":[{"id":"org/name","object":"model","created":1700000000,"owned_by":"vllm","root":"org/name","parent":null,"max_model_len":32768,"permission":[{"id":"modelperm-1"}]}]}`,
			[]Model{{ID: "org/name", Created: 1700000000, OwnedBy: "vllm", Root: "org/name", ContextWindow: 32768}},
		},
		"Anthropic": {
			`{"data":[{"type":"model","id":"c","display_name":"C","created_at":"2025-02-19T00:00:00Z","lifecycle":"active","max_input_tokens":5,"max_tokens":3,"capabilities":{"batch":{"supported":true}}}],"has_more":false,"first_id":"c","last_id":"c"}`,
			[]Model{{ID: "c", DisplayName: "C", Created: 1739923200, MaxInputTokens: 5, MaxOutputTokens: 3, Capabilities: []byte(`{"batch":{"supported":true}}`)}},
		},
		"Dynamo, OpenRouter, odd types": {
			`{"data":[{"id":"a","created":1.5e9,"context_window":9,"max_output_tokens":4},{"id":"b","context_length":7,"created":"x","owned_by":7,"created_at":"yesterday","max_tokens":-1,"capabilities":[]}]}`,
			[]Model{{ID: "a", Created: 1500000000, ContextWindow: 9, MaxOutputTokens: 4}, {ID: "b", ContextWindow: 7}},
		},
		"Codex, old": {
			`{"models":[{"slug":"a/b","display_name":"A","description":"d","default_reasoning_level":"low","supported_reasoning_levels":[{"effort":"low","description":"l"},{"effort":""},7],"shell_type":"shell_command","visibility":"hide","supported_in_api":true,"priority":-3,"upgrade":null,"base_instructions":"Be short.","supports_reasoning_summaries":false,"support_verbosity":true,"default_verbosity":"low","apply_patch_tool_type":"function","truncation_policy":{"mode":"tokens","limit":7},"supports_parallel_tool_calls":true,"context_window":9,"auto_compact_token_limit":8,"effective_context_window_percent":90,"experimental_supported_tools":["x",1],"input_modalities":["text"]}],"etag":"e"}`,
			[]Model{{ID: "a/b", DisplayName: "A", Description: "d", DefaultEffort: "low", Efforts: []Effort{{Effort: "low", Description: "l"}}, Shell: "shell_command", Visibility: "hide", Priority: -3,
				BaseInstructions: "Be short.", ReasoningSummaries: no, Verbosity: yes, DefaultVerbosity: "low", ApplyPatch: "function", Truncation: Truncation{Mode: "tokens", Limit: 7},
				ParallelCalls: yes, ContextWindow: 9, AutoCompactTokens: 8, EffectivePercent: 90, Tools: []string{"x"}, Modalities: []string{"text"}}},
		},
		"Codex, new, odd types": {
			`{"models":[{"slug":"a","supports_reasoning_summary_parameter":false,"supports_reasoning_summaries":true,"context_window":5,"max_context_window":9,"priority":1e99,"truncation_policy":7,"supported_reasoning_levels":null,"experimental_supported_tools":{}}]}`,
			[]Model{{ID: "a", ReasoningSummaries: no, ContextWindow: 9, MaxInputTokens: 5}},
		},
		"a bare list": {`[{"id":"a"}]`, []Model{{ID: "a"}}},
		"none":        {`{"object":"list","data":null}`, nil},
		"empty":       {`{"data":[]}`, nil},
	} {
		got, err := ParseList([]byte(c.body))
		require.NoError(t, err, name)
		require.Empty(t, gocmp.Diff(c.want, got, plain), name)
	}
	for body, want := range map[string]string{
		`{"data":[{"id":"a"},{"x":1}]}`: "data[1].id: a string is required at byte 20",
		`{"data":[7]}`:                  "data[0].id: a string is required at byte 9",
		`{"data":{}}`:                   "data: a list of models was expected, not an object at byte 8",
		`{"error":"x"}`:                 "a list of models was expected, not an object at byte 0",
		`[`:                             "[0]: unexpected end of JSON at byte 1",
	} {
		_, err := ParseList([]byte(body))
		require.EqualError(t, err, want, body)
		require.IsType(t, &block.Error{}, err)
	}
	m, err := ParseModel([]byte(` {"id":"a","x":1}`))
	require.NoError(t, err)
	require.Equal(t, "a", m.ID)
	_, err = ParseModel([]byte(`{`))
	require.Error(t, err)
}

// carried returns the fields of a record that a form contains, as the form writes them.
func carried(m Model, s Style) Model {
	out := Model{ID: m.ID, DisplayName: m.DisplayName}
	if s != OpenAI {
		out.DisplayName = cmp.Or(m.DisplayName, m.ID)
	}
	switch s {
	case OpenAI:
		out.Created, out.OwnedBy, out.Root, out.Parent = m.Created, cmp.Or(m.OwnedBy, "weft"), m.Root, m.Parent
		out.ContextWindow, out.MaxInputTokens, out.MaxOutputTokens = m.ContextWindow, m.MaxInputTokens, m.MaxOutputTokens
	case Anthropic:
		out.Created, out.Capabilities = m.Created, m.Capabilities
		out.MaxInputTokens, out.MaxOutputTokens = cmp.Or(m.MaxInputTokens, m.ContextWindow), m.MaxOutputTokens
	case Codex:
		m.OwnedBy, m.Created, m.Root, m.Parent, m.Capabilities, m.MaxOutputTokens = "", 0, "", "", nil, 0
		m.AliasOf, m.DisplayName, m.ContextWindow = "", out.DisplayName, max(m.ContextWindow, m.MaxInputTokens)
		if m.MaxInputTokens == m.ContextWindow {
			m.MaxInputTokens = 0
		}
		m.Truncation = Truncation{Mode: cmp.Or(m.Truncation.Mode, "bytes"), Limit: cmp.Or(m.Truncation.Limit, 10000)}
		m.Shell, m.Visibility = cmp.Or(m.Shell, "default"), cmp.Or(m.Visibility, "list")
		m.Verbosity, m.ParallelCalls = cmp.Or(m.Verbosity, no), cmp.Or(m.ParallelCalls, no)
		return m
	}
	return out
}

// drawn draws valid records.
func drawn(t *rapid.T, id string) Model {
	word := func(name string, words ...string) string {
		return rapid.SampledFrom(append(words, "")).Draw(t, name)
	}
	count := func(name string) int64 { return rapid.SampledFrom([]int64{0, 1, 1 << 20}).Draw(t, name) }
	support := rapid.SampledFrom([]*bool{nil, yes, no})
	m := Model{
		ID: id, Created: rapid.Int64Range(0, 253402300799).Draw(t, "created"), OwnedBy: word("owner", "x", "weft"),
		DisplayName: rapid.StringN(0, 5, -1).Draw(t, "name"), Description: rapid.StringN(0, 5, -1).Draw(t, "description"),
		MaxInputTokens: count("in"), MaxOutputTokens: count("out"), AutoCompactTokens: count("compact"),
		EffectivePercent: rapid.Int64Range(0, 100).Draw(t, "percent"), Truncation: Truncation{Mode: word("mode", "bytes", "tokens"), Limit: count("limit") + 1},
		ReasoningSummaries: support.Draw(t, "summaries"), Verbosity: support.Draw(t, "verbosity"), DefaultVerbosity: word("default verbosity", "low", "high"),
		ParallelCalls: support.Draw(t, "parallel"), ApplyPatch: word("patch", "freeform"), Shell: word("shell", "default", "unified_exec", "disabled"),
		Visibility: word("visibility", "list", "hide"), Priority: rapid.Int32().Draw(t, "priority"), BaseInstructions: word("instructions", "Be\nshort."),
		Root: rapid.StringN(0, 3, -1).Draw(t, "root"), Parent: rapid.StringN(0, 3, -1).Draw(t, "parent"),
	}
	m.ContextWindow = rapid.SampledFrom([]int64{0, m.MaxInputTokens, 1 << 21}).Draw(t, "window")
	for range rapid.IntRange(0, 2).Draw(t, "efforts") {
		m.Efforts = append(m.Efforts, Effort{Effort: rapid.StringN(1, 5, -1).Draw(t, "effort"), Description: rapid.StringN(0, 5, -1).Draw(t, "d")})
	}
	if len(m.Efforts) > 0 {
		m.DefaultEffort = word("default effort", m.Efforts[0].Effort)
	}
	if rapid.Bool().Draw(t, "more") {
		m.Tools, m.Modalities, m.Capabilities = []string{"grep"}, []string{"text", "image"}, []byte(`{"a":1}`)
	}
	return m
}

// TestDrawn tests that parsing is the inverse of rendering for the fields that a form contains.
func TestDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Model
		for i := range rapid.IntRange(0, 4).Draw(t, "n") {
			list = append(list, drawn(t, fmt.Sprintf("org/%d%s", i, rapid.StringN(0, 20, -1).Draw(t, "id"))))
		}
		for _, s := range styles {
			body := AppendList(nil, list, s)
			require.True(t, json.Valid(body))
			got, err := ParseList(body)
			require.NoError(t, err)
			var want []Model
			for _, m := range list {
				want = append(want, carried(m, s))
			}
			require.Empty(t, gocmp.Diff(want, got, plain), s)
			require.Equal(t, string(body), string(AppendList(nil, got, s)))
			for i := range got {
				one, err := ParseModel(AppendModel(nil, &list[i], s))
				require.NoError(t, err)
				require.Empty(t, gocmp.Diff(want[i], one, plain))
			}
		}
	})
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a","created":1,"capabilities":{},"created_at":"2025-02-19T00:00:00Z"}]}`))
	f.Add([]byte(`{"models":[{"slug":"a","supported_reasoning_levels":[{"effort":"low"}],"truncation_policy":{"mode":"tokens","limit":9},"input_modalities":["text"]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := ParseList(body)
		if err != nil {
			require.IsType(t, &block.Error{}, err)
			return
		}
		for _, s := range styles {
			out := AppendList(nil, list, s)
			require.True(t, json.Valid(out), "%s", out)
			again, err := ParseList(out)
			require.NoError(t, err)
			require.Len(t, again, len(list))
			require.Equal(t, string(out), string(AppendList(nil, again, s)))
		}
		if c, err := New(list...); err == nil {
			require.Len(t, c.Models(), len(list))
		}
	})
}
