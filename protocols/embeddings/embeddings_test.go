// SPDX-License-Identifier: Apache-2.0

package embeddings_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/embeddings"
	"github.com/weft-go/weft/protocols/internal/race"
)

var fields = cmp.Options{cmpopts.IgnoreUnexported(embeddings.Request{}), cmpopts.EquateEmpty()}

func TestDecode(t *testing.T) {
	for body, want := range map[string]embeddings.Request{
		`{"model":"m","input":"a\n"}`:                                                     {Model: "m", Texts: []string{"a\n"}},
		`{"model":"m","input":["a","b"]}`:                                                 {Model: "m", Texts: []string{"a", "b"}},
		`{"model":"m","input":[1,2]}`:                                                     {Model: "m", Tokens: [][]uint32{{1, 2}}},
		` {"input" : [[1],[2,4294967295], []],"model":"m"} `:                              {Model: "m", Tokens: [][]uint32{{1}, {2, 4294967295}, {}}},
		`{"model":"m","input":[]}`:                                                        {Model: "m"},
		`{"model":"m","messages":[{"role":"user","content":"a"}]}`:                        {Model: "m"},
		`{"model":null,"input":"a","dimensions":null,"user":null,"encoding_format":null}`: {Texts: []string{"a"}},
	} {
		r, err := embeddings.Decode([]byte(body), nil)
		require.NoError(t, err, body)
		require.Empty(t, cmp.Diff(want, *r, fields), body)
		require.Equal(t, body, string(r.AppendJSON(nil)), "not changed")
	}
	const body = `{"model":"m","input":["a","b"],"dimensions":3,"encoding_format":"b\u0061se64","user":"u","add_special_tokens":false,"priority":2,"x":{"y":[1]},"\u007a":null}`
	r, err := embeddings.Decode([]byte(body), nil)
	require.NoError(t, err)
	require.Equal(t, "2 true", fmt.Sprint(r.Len(), r.Base64()))
	for name, want := range map[string]string{"dimensions": "3", "user": `"u"`, "add_special_tokens": "false", "x": `{"y":[1]}`, "z": "null"} {
		require.Equal(t, want, string(r.Field(name)), name)
	}
	for _, name := range []string{"normalize", "model", "input"} {
		require.Nil(t, r.Field(name), name)
	}
	require.Equal(t, body, string(r.AppendJSON(nil)))

	r = &embeddings.Request{}
	require.Nil(t, r.Field("x"))
	require.Equal(t, "0 false", fmt.Sprint(r.Len(), r.Base64()))
	r.Set("messages", []byte("[]"))
	r.Set("encoding_format", []byte(`"odd"`))
	require.Equal(t, "1 false", fmt.Sprint(r.Len(), r.Base64()))
	require.Panics(t, func() { r.Set("model", []byte(`"m"`)) })
}

func TestDecodeErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m"}`:                   "input: a string, an array of strings, or token IDs is required at byte 0",
		`{"input":null}`:                  "input: a string, an array of strings, or token IDs is required at byte 0",
		`{"input":7}`:                     "input: a string, an array of strings, or token IDs was expected, not a number at byte 9",
		`{"input":["a",1]}`:               "input[1]: a string was expected, not a number at byte 14",
		`{"input":[1,"a"]}`:               "input[1]: a token ID was expected, not a string at byte 12",
		`{"input":[1,-1]}`:                "input[1]: a token ID was expected, not a number at byte 12",
		`{"input":[[1],"a"]}`:             "input[1]: an array of token IDs, like the elements before it, was expected, not a string at byte 14",
		`{"input":[null]}`:                "input[0]: a string was expected, not null at byte 10",
		`{"input":"a","dimensions":"x"}`:  "dimensions: an integer was expected, not a string at byte 26",
		`{"input":"a","input":"b"}`:       "input: the name occurs twice at byte 13",
		`{"input":"a","messages":"b"}`:    "messages: an array was expected, not a string at byte 24",
		`["a"]`:                           "an object was expected, not an array at byte 0",
		`{"input":"a`:                     "input: unexpected end of JSON inside a string at byte 11",
		"{\"input\":\"\xff\"}":            "input: invalid UTF-8 inside a string at byte 10",
		`{"input":["a","b","c"],"a":"b"}`: "input: too many inputs (limit: 2 inputs) at byte 9",
	} {
		_, err := embeddings.Decode([]byte(body), &block.Limits{Blocks: 2})
		require.EqualError(t, err, want, body)
		require.IsType(t, &block.Error{}, err)
	}
	_, err := embeddings.Decode([]byte(`{"input":"a"}`), &block.Limits{Body: 5})
	require.Equal(t, 413, apierr.Wrap(err).HTTPStatus(apierr.OpenAI))
	_, err = embeddings.Decode([]byte(`{"input":[1,2,3,4,5]}`), &block.Limits{Values: 5})
	require.Equal(t, block.LimitPassed, err.(*block.Error).Kind)
}

func TestAppendJSONWritesChanges(t *testing.T) {
	const body = `{ "input":["a", "b"] ,"model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`
	for name, c := range map[string]struct {
		change func(r *embeddings.Request)
		want   string
	}{
		"model":  {func(r *embeddings.Request) { r.Model = "n\"" }, `{ "input":["a", "b"] ,"model":"n\"","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`},
		"input":  {func(r *embeddings.Request) { r.Texts = []string{"c"} }, `{ "input":["c"] ,"model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`},
		"tokens": {func(r *embeddings.Request) { r.Texts, r.Tokens = nil, [][]uint32{{7, 8}} }, `{ "input":[[7,8]] ,"model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`},
		"away": {func(r *embeddings.Request) {
			for _, name := range []string{"user", "dimensions", "x", "absent"} {
				r.Set(name, nil)
			}
		}, `{ "input":["a", "b"] ,"model":"m","y":[ 2 ] }`},
		"new": {func(r *embeddings.Request) {
			r.Set("encoding_format", []byte(`"float"`))
			r.Set("x", []byte("3"))
			r.Set("x", []byte(`"z"`))
			r.Set("normalize", []byte("true"))
		}, `{ "input":["a", "b"] ,"model":"m","user":"u", "x":"z","y":[ 2 ],"dimensions":8,"encoding_format":"float","normalize":true }`},
		"the same": {func(r *embeddings.Request) { r.Set("y", []byte("[ 2 ]")) }, body},
		"messages": {func(r *embeddings.Request) { r.Texts = nil; r.Set("messages", []byte("[]")) }, `{ "model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8,"messages":[] }`},
	} {
		r, err := embeddings.Decode([]byte(body), nil)
		require.NoError(t, err)
		c.change(r)
		require.Equal(t, c.want, string(r.AppendJSON(nil)), name)
	}
}

func TestAppendJSONBuiltRequest(t *testing.T) {
	r := &embeddings.Request{Model: "m", Texts: []string{"a", "b"}}
	r.Set("dimensions", []byte("2"))
	r.Set("user", []byte(`"u"`))
	r.Set(`q"`, []byte("1"))
	r.Set("user", nil)
	body := r.AppendJSON([]byte("x"))
	require.Equal(t, `x{"model":"m","input":["a","b"],"dimensions":2,"q\"":1}`, string(body))
	back, err := embeddings.Decode(body[1:], nil)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(*r, *back, fields))
	require.Equal(t, "1", string(back.Field(`q"`)))

	r = &embeddings.Request{Texts: []string{"a"}}
	require.Equal(t, `{"model":"","input":["a"]}`, string(r.AppendJSON(nil)))
}

// A single input that was not in a list stays so.
func TestAppendJSONSingleInput(t *testing.T) {
	r, err := embeddings.Decode([]byte(`{"input":"a"}`), nil)
	require.NoError(t, err)
	r.Texts = []string{"b"}
	require.Equal(t, `{"input":"b"}`, string(r.AppendJSON(nil)))
	r.Texts, r.Tokens = nil, [][]uint32{{7, 8}}
	require.Equal(t, `{"input":[7,8]}`, string(r.AppendJSON(nil)))
	r.Tokens = append(r.Tokens, []uint32{9})
	require.Equal(t, `{"input":[[7,8],[9]]}`, string(r.AppendJSON(nil)))
}

// TestRandomRequests builds random requests, decodes them, changes them to other requests and decodes those.
func TestRandomRequests(t *testing.T) {
	names := []string{"user", "dimensions", "x", "\u00e9\""}
	request := rapid.Custom(func(t *rapid.T) *embeddings.Request {
		r := &embeddings.Request{Model: rapid.String().Draw(t, "model")}
		if rapid.Bool().Draw(t, "tokens") {
			r.Tokens = rapid.SliceOfN(rapid.SliceOfN(rapid.Uint32(), 1, 3), 1, 3).Draw(t, "ids")
		} else {
			r.Texts = rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "texts")
		}
		for _, name := range names {
			if rapid.Bool().Draw(t, "set") {
				r.Set(name, []byte(map[string]string{"user": `"u"`, "dimensions": "-7", "x": rapid.SampledFrom([]string{"1", "[]", "null"}).Draw(t, "x"), names[3]: "{}"}[name]))
			}
		}
		return r
	})
	same := func(t *rapid.T, want, got *embeddings.Request) {
		require.Empty(t, cmp.Diff(*want, *got, fields))
		for _, name := range names {
			require.Equal(t, string(want.Field(name)), string(got.Field(name)))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := request.Draw(t, "a"), request.Draw(t, "b")
		r, err := embeddings.Decode(a.AppendJSON(nil), nil)
		require.NoError(t, err)
		same(t, a, r)
		r.Model, r.Texts, r.Tokens = b.Model, b.Texts, b.Tokens
		for _, name := range names {
			r.Set(name, b.Field(name))
		}
		same(t, b, r)
		r, err = embeddings.Decode(r.AppendJSON(nil), nil)
		require.NoError(t, err)
		same(t, b, r)
	})
}

var nan = float32(math.NaN())

func TestResponse(t *testing.T) {
	r := embeddings.Response{
		Model: "m", Data: []embeddings.Embedding{{Index: 0, Vector: []float32{0.1, -2, 1e-7, 3e22}}, {Index: 1, Vector: []float32{}}},
		PromptTokens: 5,
	}
	require.Equal(t, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2,1e-07,3e+22]},{"object":"embedding","index":1,"embedding":[]}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		string(r.AppendJSON(nil, false)))
	r.Data = []embeddings.Embedding{{Vector: []float32{1, nan, float32(math.Inf(1))}}}
	require.Equal(t, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPwAAwH8AAIB/"}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		string(r.AppendJSON(nil, true)))
	require.Contains(t, string(r.AppendJSON(nil, false)), `[1,null,null]`)
}

func TestDecodeResponse(t *testing.T) {
	got, err := embeddings.DecodeResponse([]byte(`{"id":"e","object":"list","created":3,"model":"m","data":[
		{"object":"embedding","index":1,"embedding":[ 1 , -0.50,1e-3,null]},{"embedding":"AACAPw=="},{"embedding":[]}],
		"usage":{"prompt_tokens":4,"total_tokens":6,"prompt_tokens_details":null}}`), nil)
	require.NoError(t, err)
	want := &embeddings.Response{Model: "m", PromptTokens: 4, TotalTokens: 6, Data: []embeddings.Embedding{
		{Index: 1, Vector: []float32{1, -0.5, 0.001, nan}}, {Index: 1, Vector: []float32{1}}, {Index: 2},
	}}
	require.Empty(t, cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()))

	for body, want := range map[string]string{
		`[]`:                               "an object was expected, not an array at byte 0",
		`{"error":{"message":"x"}}`:        "a list of embeddings as data was expected, not an object at byte 0",
		`{"data":{}}`:                      "data: a list of embeddings as data was expected, not an object at byte 8",
		`{"data":[{}]}`:                    "data[0]: an embedding, as numbers or in base64, was expected, not an object at byte 9",
		`{"data":[{"embedding":[1,"a"]}]}`: "data[0].embedding: an embedding, as numbers or in base64, was expected, not an array at byte 22",
		`{"data":[{"embedding":[[1]]}]}`:   "data[0].embedding: an embedding, as numbers or in base64, was expected, not an array at byte 22",
		`{"data":[{"embedding":"AAA"}]}`:   "data[0].embedding: an embedding, as numbers or in base64, was expected, not a string at byte 22",
		`{"data":[{"embedding":"AAAA"}]}`:  "data[0].embedding: an embedding, as numbers or in base64, was expected, not a string at byte 22",
		`{"data":[7]}`:                     "data[0]: an embedding, as numbers or in base64, was expected, not a number at byte 9",
		`{"data":[{"embedding":[1,]}]}`:    "data[0].embedding[1]: a value was expected at byte 25",
		`{"data":[{"embedding":[1]},{"emb`: "data[1]: unexpected end of JSON inside a string at byte 32",
	} {
		_, err := embeddings.DecodeResponse([]byte(body), nil)
		require.EqualError(t, err, want, body)
	}
	_, err = embeddings.DecodeResponse([]byte(`{"data":[]}`), &block.Limits{Body: 3})
	require.Equal(t, block.LimitPassed, err.(*block.Error).Kind)
}

func TestRandomResponses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &embeddings.Response{Model: rapid.String().Draw(t, "model"), PromptTokens: 1, TotalTokens: 2, Data: []embeddings.Embedding{}}
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			v := rapid.SliceOfN(rapid.Float32(), 0, 400).Draw(t, "vector")
			r.Data = append(r.Data, embeddings.Embedding{Index: i, Vector: v})
		}
		for _, f := range []bool{false, true} {
			body := r.AppendJSON(nil, f)
			require.True(t, json.Valid(body))
			got, err := embeddings.DecodeResponse(body, nil)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(r, got, cmpopts.EquateEmpty()))
		}
		var std struct{ Data []struct{ Embedding []byte } }
		require.NoError(t, json.Unmarshal(r.AppendJSON(nil, true), &std))
		for i, e := range std.Data {
			require.Len(t, e.Embedding, 4*len(r.Data[i].Vector))
		}
	})
}

func TestAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	r := embeddings.Response{Model: "m", Data: []embeddings.Embedding{{Vector: make([]float32, 1000)}}}
	dst := make([]byte, 0, 1<<16)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		dst = r.AppendJSON(dst[:0], false)
		dst = r.AppendJSON(dst[:0], true)
	}))
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":["a"],"dimensions":3,"x":1}`))
	f.Add([]byte(`{"input":[[1,2],[3]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := embeddings.Decode(body, nil)
		if err != nil {
			require.IsType(t, &block.Error{}, err)
			return
		}
		require.Equal(t, string(body), string(r.AppendJSON(nil)))
		r.Model += "x"
		r, err = embeddings.Decode(r.AppendJSON(nil), nil)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(r.Model, "x"))
	})
}

func FuzzDecodeResponse(f *testing.F) {
	f.Add([]byte(`{"data":[{"embedding":[1,-0.5e3,null]},{"embedding":"AACAPw=="}],"usage":{"prompt_tokens":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := embeddings.DecodeResponse(body, nil)
		if err != nil {
			require.IsType(t, &block.Error{}, err)
			return
		}
		again, err := embeddings.DecodeResponse(r.AppendJSON(nil, true), nil)
		require.NoError(t, err)
		require.Len(t, again.Data, len(r.Data))
	})
}

func BenchmarkResponse(b *testing.B) {
	v := make([]float32, 1536)
	for i := range v {
		v[i] = float32(math.Sin(float64(i))) / 40
	}
	r := embeddings.Response{Model: "m", Data: []embeddings.Embedding{{Vector: v}}}
	for _, f := range []bool{false, true} {
		body := r.AppendJSON(nil, f)
		b.Run("Append/base64="+fmt.Sprint(f), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			dst := make([]byte, 0, len(body))
			for b.Loop() {
				dst = r.AppendJSON(dst[:0], f)
			}
		})
		b.Run("Decode/base64="+fmt.Sprint(f), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := embeddings.DecodeResponse(body, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleDecode() {
	r, err := embeddings.Decode([]byte(`{"model":"m","input":["a","b"],"encoding_format":"base64"}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Model, r.Texts, r.Base64())
	// Output: m [a b] true
}

func ExampleResponse_AppendJSON() {
	r := embeddings.Response{Model: "m", Data: []embeddings.Embedding{{Vector: []float32{0.25, -1}}}, PromptTokens: 2}
	fmt.Println(string(r.AppendJSON(nil, false)))
	fmt.Println(base64.StdEncoding.EncodeToString([]byte{0, 0, 128, 62, 0, 0, 128, 191}))
	// Output:
	// {"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-1]}],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}
	// AACAPgAAgL8=
}
