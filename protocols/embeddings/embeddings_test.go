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
		`{"model":"m","input":"a\n"}`:                              {Model: "m", Texts: []string{"a\n"}, One: true},
		`{"model":"m","input":["a","b"]}`:                          {Model: "m", Texts: []string{"a", "b"}},
		`{"model":"m","input":[1,2]}`:                              {Model: "m", Tokens: [][]uint32{{1, 2}}, One: true},
		` {"input" : [[1],[2,4294967295], []],"model":"m"} `:       {Model: "m", Tokens: [][]uint32{{1}, {2, 4294967295}, {}}},
		`{"model":"m","input":[]}`:                                 {Model: "m"},
		`{"model":"m","messages":[{"role":"user","content":"a"}]}`: {Model: "m", Messages: []byte(`[{"role":"user","content":"a"}]`)},
		`{"model":"m","input":"a","dimensions":3,"encoding_format":"base64","user":"u","truncate_prompt_tokens":-1,"add_special_tokens":false,"normalize":true,"priority":2,"x":{"y":[1]},"z":null}`: {
			Model: "m", Texts: []string{"a"}, One: true, Dimensions: new(int64(3)), EncodingFormat: embeddings.Base64, User: "u",
			TruncatePromptTokens: new(int64(-1)), AddSpecialTokens: new(false), Normalize: new(true), Priority: new(int64(2)),
			Extra: []embeddings.Member{{Key: "x", Value: []byte(`{"y":[1]}`)}, {Key: "z", Value: []byte("null")}},
		},
		`{"model":null,"input":"a","dimensions":null,"user":null,"encoding_format":null}`: {Texts: []string{"a"}, One: true},
	} {
		r, err := embeddings.Decode([]byte(body), nil)
		require.NoError(t, err, body)
		require.Empty(t, cmp.Diff(want, *r, fields), body)
		require.Equal(t, body, string(r.AppendJSON(nil)), "not changed")
		require.Equal(t, body, string(r.Body()))
	}
	r, err := embeddings.Decode([]byte(`{"input":["a","b"],"x":{"y":1},"encoding_format":"base64"}`), nil)
	require.NoError(t, err)
	require.Equal(t, "2 1 base64", fmt.Sprint(r.Len(), " ", string(r.Field("x", "y")), " ", r.Format()))
	r = &embeddings.Request{Messages: []byte("[]"), EncodingFormat: "odd"}
	require.Equal(t, "1 float", fmt.Sprint(r.Len(), " ", r.Format()))
	require.Nil(t, r.Body())
	require.Nil(t, r.Field("x"))
}

func TestDecodeErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m"}`:                   "input: a string, an array of strings, or token ids is required at byte 0",
		`{"input":null}`:                  "input: a string, an array of strings, or token ids is required at byte 0",
		`{"input":7}`:                     "input: a string, an array of strings, or token ids was expected, not a number at byte 9",
		`{"input":["a",1]}`:               "input[1]: a string was expected, not a number at byte 14",
		`{"input":[1,"a"]}`:               "input[1]: a token id was expected, not a string at byte 12",
		`{"input":[1,-1]}`:                "input[1]: a token id was expected, not a number at byte 12",
		`{"input":[[1],"a"]}`:             "input[1]: an array of token ids, as in front of it, was expected, not a string at byte 14",
		`{"input":[null]}`:                "input[0]: a string was expected, not null at byte 10",
		`{"input":"a","dimensions":"x"}`:  "dimensions: an integer was expected, not a string at byte 26",
		`{"input":"a","input":"b"}`:       "input: the member name occurs twice at byte 13",
		`{"input":"a","messages":"b"}`:    "messages: an array was expected, not a string at byte 24",
		`["a"]`:                           "an object was expected, not an array at byte 0",
		`{"input":"a`:                     "input: unexpected end of JSON inside a string at byte 11",
		"{\"input\":\"\xff\"}":            "input: invalid UTF-8 inside a string at byte 10",
		`{"input":["a","b","c"],"a":"b"}`: "input: too many inputs (limit: 2 inputs) at byte 9",
	} {
		_, err := embeddings.Decode([]byte(body), &embeddings.Limits{Inputs: 2})
		require.EqualError(t, err, want, body)
		require.IsType(t, &block.Error{}, err)
	}
	_, err := embeddings.Decode([]byte(`{"input":"a"}`), &embeddings.Limits{Body: 5})
	require.Equal(t, 413, apierr.From(err).HTTPStatus(apierr.OpenAI))
	_, err = embeddings.Decode([]byte(`{"input":[1,2,3,4,5]}`), &embeddings.Limits{Values: 5})
	require.Equal(t, block.LimitPassed, err.(*block.Error).Kind)
	require.Equal(t, 503, embeddings.ErrorStatus(apierr.Overloaded(0)))
	require.Contains(t, string(embeddings.AppendError(nil, apierr.Invalid("input", "no"))), `"param":"input"`)
}

func TestChanges(t *testing.T) {
	const body = `{ "input":["a", "b"] ,"model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`
	for name, c := range map[string]struct {
		change func(r *embeddings.Request)
		want   string
	}{
		"model":  {func(r *embeddings.Request) { r.Model = "n\"" }, `{ "input":["a", "b"] ,"model":"n\"","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`},
		"input":  {func(r *embeddings.Request) { r.Texts = []string{"c"} }, `{ "input":["c"] ,"model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`},
		"tokens": {func(r *embeddings.Request) { r.Texts, r.Tokens, r.One = nil, [][]uint32{{7, 8}}, true }, `{ "input":[7,8] ,"model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8 }`},
		"away":   {func(r *embeddings.Request) { r.User, r.Dimensions, r.Extra = "", nil, r.Extra[1:] }, `{ "input":["a", "b"] ,"model":"m","y":[ 2 ] }`},
		"new": {func(r *embeddings.Request) {
			r.Normalize, r.Priority, r.EncodingFormat = new(true), new(int64(-1)), embeddings.Float
			r.Extra[0].Value = []byte(`"z"`)
		}, `{ "input":["a", "b"] ,"model":"m","user":"u", "x":"z","y":[ 2 ],"dimensions":8,"encoding_format":"float","normalize":true,"priority":-1 }`},
		"messages": {func(r *embeddings.Request) { r.Texts, r.Messages = nil, []byte("[]") }, `{ "model":"m","user":"u", "x":1,"y":[ 2 ],"dimensions":8,"messages":[] }`},
	} {
		r, err := embeddings.Decode([]byte(body), nil)
		require.NoError(t, err)
		c.change(r)
		require.Equal(t, c.want, string(r.AppendJSON(nil)), name)
		require.Equal(t, body, string(r.Body()))
	}
}

func TestBuilt(t *testing.T) {
	r := &embeddings.Request{
		Model: "m", Texts: []string{"a", "b"}, Dimensions: new(int64(2)), EncodingFormat: embeddings.Base64, AddSpecialTokens: new(true),
		Extra: []embeddings.Member{{Key: `q"`, Value: []byte("1")}},
	}
	body := r.AppendJSON([]byte("x"))
	require.Equal(t, `x{"model":"m","input":["a","b"],"dimensions":2,"encoding_format":"base64","add_special_tokens":true,"q\"":1}`, string(body))
	back, err := embeddings.Decode(body[1:], nil)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(*r, *back, fields))

	r = &embeddings.Request{Texts: []string{"a"}, One: true}
	require.Equal(t, `{"model":"","input":"a"}`, string(r.AppendJSON(nil)))
}

// TestRequestDrawn builds requests, decodes them, changes them into others and decodes those.
func TestRequestDrawn(t *testing.T) {
	request := rapid.Custom(func(t *rapid.T) *embeddings.Request {
		r := &embeddings.Request{Model: rapid.String().Draw(t, "model"), User: rapid.StringN(0, 3, -1).Draw(t, "user")}
		if rapid.Bool().Draw(t, "tokens") {
			r.Tokens = rapid.SliceOfN(rapid.SliceOfN(rapid.Uint32(), 1, 3), 1, 3).Draw(t, "ids")
		} else {
			r.Texts = rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "texts")
		}
		r.One = r.Len() == 1 && rapid.Bool().Draw(t, "one")
		if rapid.Bool().Draw(t, "set") {
			r.Dimensions, r.Normalize, r.EncodingFormat = new(rapid.Int64().Draw(t, "dimensions")), new(rapid.Bool().Draw(t, "normalize")), embeddings.Base64
			r.Extra = []embeddings.Member{{Key: "x", Value: []byte(rapid.SampledFrom([]string{"1", "[]", "null"}).Draw(t, "x"))}}
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := request.Draw(t, "a"), request.Draw(t, "b")
		r, err := embeddings.Decode(a.AppendJSON(nil), nil)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(*a, *r, fields))
		r.Model, r.User, r.Texts, r.Tokens, r.One = b.Model, b.User, b.Texts, b.Tokens, b.One
		r.Dimensions, r.Normalize, r.EncodingFormat, r.Extra = b.Dimensions, b.Normalize, b.EncodingFormat, b.Extra
		r, err = embeddings.Decode(r.AppendJSON(nil), nil)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(*b, *r, fields))
	})
}

var nan = float32(math.NaN())

func TestResponse(t *testing.T) {
	r := embeddings.Response{
		Model: "m", Data: []embeddings.Embedding{{Index: 0, Vector: []float32{0.1, -2, 1e-7, 3e22}}, {Index: 1, Vector: []float32{}}},
		Usage: embeddings.Usage{Prompt: 5},
	}
	require.Equal(t, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2,1e-07,3e+22]},{"object":"embedding","index":1,"embedding":[]}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		string(r.AppendJSON(nil, embeddings.Float)))
	r.ID, r.Created, r.Data = "embd-1", 7, []embeddings.Embedding{{Vector: []float32{1, nan, float32(math.Inf(1))}}}
	require.Equal(t, `{"object":"list","id":"embd-1","created":7,"data":[{"object":"embedding","index":0,"embedding":"AACAPwAAwH8AAIB/"}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`,
		string(r.AppendJSON(nil, embeddings.Base64)))
	require.Contains(t, string(r.AppendJSON(nil, embeddings.Float)), `[1,null,null]`)
}

func TestDecodeResponse(t *testing.T) {
	got, err := embeddings.DecodeResponse([]byte(`{"id":"e","object":"list","created":3,"model":"m","data":[
		{"object":"embedding","index":1,"embedding":[ 1 , -0.50,1e-3,null]},{"embedding":"AACAPw=="},{"embedding":[]}],
		"usage":{"prompt_tokens":4,"total_tokens":6,"prompt_tokens_details":null}}`), nil)
	require.NoError(t, err)
	want := &embeddings.Response{ID: "e", Model: "m", Created: 3, Usage: embeddings.Usage{Prompt: 4, Total: 6}, Data: []embeddings.Embedding{
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
	_, err = embeddings.DecodeResponse([]byte(`{"data":[]}`), &embeddings.Limits{Body: 3})
	require.Equal(t, block.LimitPassed, err.(*block.Error).Kind)
}

func TestResponseDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &embeddings.Response{Model: rapid.String().Draw(t, "model"), Usage: embeddings.Usage{Prompt: 1, Total: 2}, Data: []embeddings.Embedding{}}
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			v := rapid.SliceOfN(rapid.Float32(), 0, 400).Draw(t, "vector")
			r.Data = append(r.Data, embeddings.Embedding{Index: i, Vector: v})
		}
		for _, f := range []embeddings.Format{embeddings.Float, embeddings.Base64} {
			body := r.AppendJSON(nil, f)
			require.True(t, json.Valid(body))
			got, err := embeddings.DecodeResponse(body, nil)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(r, got, cmpopts.EquateEmpty()))
		}
		var std struct{ Data []struct{ Embedding []byte } }
		require.NoError(t, json.Unmarshal(r.AppendJSON(nil, embeddings.Base64), &std))
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
		dst = r.AppendJSON(dst[:0], embeddings.Float)
		dst = r.AppendJSON(dst[:0], embeddings.Base64)
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
		again, err := embeddings.DecodeResponse(r.AppendJSON(nil, embeddings.Base64), nil)
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
	for _, f := range []embeddings.Format{embeddings.Float, embeddings.Base64} {
		body := r.AppendJSON(nil, f)
		b.Run("Append/format="+string(f), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			dst := make([]byte, 0, len(body))
			for b.Loop() {
				dst = r.AppendJSON(dst[:0], f)
			}
		})
		b.Run("Decode/format="+string(f), func(b *testing.B) {
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
	fmt.Println(r.Model, r.Texts, r.Format())
	// Output: m [a b] base64
}

func ExampleResponse_AppendJSON() {
	r := embeddings.Response{Model: "m", Data: []embeddings.Embedding{{Vector: []float32{0.25, -1}}}, Usage: embeddings.Usage{Prompt: 2}}
	fmt.Println(string(r.AppendJSON(nil, embeddings.Float)))
	fmt.Println(base64.StdEncoding.EncodeToString([]byte{0, 0, 128, 62, 0, 0, 128, 191}))
	// Output:
	// {"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-1]}],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}
	// AACAPgAAgL8=
}
