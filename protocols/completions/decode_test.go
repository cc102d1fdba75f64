// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/completions"
	"github.com/weft-go/weft/protocols/messages"
)

func decode(t require.TestingT, body string) *block.Request {
	r, err := completions.Decode([]byte(body), nil)
	require.NoError(t, err)
	return r
}

func TestDecode(t *testing.T) {
	r := decode(t, `{"model":"m","prompt":"a\n","suffix":"z","max_tokens":5,"temperature":0.5,"top_p":1,"min_p":0.1,"top_k":4,
		"n":2,"best_of":3,"stream":true,"stream_options":{"include_usage":true},"logprobs":2,"echo":true,"stop":["x",7],
		"stop_token_ids":[8],"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.1,"logit_bias":{"5":-100},
		"seed":-3,"user":"u","ignore_eos":true,"nvext":{"token_data":[1,2]},"prompt_embeds":"AAAA",
		"response_format":{"type":"json_object"},"guided_json":{}}`)
	want := block.Params{
		Model: "m", Stream: true, StreamUsage: true, MaxTokens: new(int64(5)), User: "u", Format: block.Format{Type: "json_object"},
		Sampling: block.Sampling{
			Temperature: new(0.5), TopP: new(1.0), MinP: new(0.1), TopK: new(int64(4)), Seed: new(int64(-3)), N: new(int64(2)),
			FrequencyPenalty: new(-1.0), PresencePenalty: new(1.0), RepetitionPenalty: new(1.1), Stop: []string{"x"},
			StopTokens: []int64{7, 8}, IgnoreEOS: true, Logprobs: true, TopLogprobs: new(int64(2)),
		},
	}
	require.Empty(t, cmp.Diff(want, r.Params()))
	texts, tokens := prompts(r)
	require.Equal(t, []string{"a\n"}, texts)
	require.Empty(t, tokens)
	for name, want := range map[string]string{"suffix": `"z"`, "best_of": "3", "echo": "true", "logit_bias": `{"5":-100}`, "prompt_embeds": `"AAAA"`} {
		require.Equal(t, want, string(r.Field(name)), name)
	}
	require.Equal(t, "[1,2]", string(r.Field("nvext", "token_data")))
}

// prompts returns the text prompts and the token prompts of r.
func prompts(r *block.Request) (texts []string, tokens [][]uint32) {
	for _, t := range r.Turns() {
		for i := range t.Blocks {
			b := &t.Blocks[i]
			if ids, ok := completions.TokenIDs(b); ok {
				tokens = append(tokens, ids)
			} else if b.Kind == block.Text {
				texts = append(texts, b.Text)
			}
		}
	}
	return texts, tokens
}

func TestPrompts(t *testing.T) {
	for _, c := range []struct {
		prompt string
		texts  []string
		tokens [][]uint32
	}{
		{`"a"`, []string{"a"}, nil},
		{`""`, []string{""}, nil},
		{`["a","b"]`, []string{"a", "b"}, nil},
		{`["a"]`, []string{"a"}, nil},
		{`[1,2,4294967295]`, nil, [][]uint32{{1, 2, 4294967295}}},
		{`[[1],[2,3],[]]`, nil, [][]uint32{{1}, {2, 3}, {}}},
		{`["a",[1]]`, []string{"a"}, [][]uint32{{1}}},
		{`[]`, nil, nil},
		{`null,"prompt_embeds":"x"`, nil, nil},
		{`null,"nvext":{"token_data":[]}`, nil, nil},
	} {
		r := decode(t, `{"model":"m","prompt":`+c.prompt+`}`)
		texts, tokens := prompts(r)
		require.Equal(t, c.texts, texts, c.prompt)
		require.Equal(t, c.tokens, tokens, c.prompt)
		require.Len(t, r.Turns(), len(c.texts)+len(c.tokens), c.prompt)
		for _, turn := range r.Turns() {
			require.Equal(t, block.RoleUser, turn.Role)
			require.Equal(t, block.TurnStart, turn.Kind)
			require.Len(t, turn.Blocks, 1)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m"}`:                           "prompt: a string, an array of strings, or token IDs is required at byte 0",
		`{"prompt":7}`:                            "prompt: a string, an array of strings, or token IDs was expected, not a number at byte 10",
		`{"prompt":["a",7]}`:                      "prompt[1]: a string or an array of token IDs was expected, not a number at byte 15",
		`{"prompt":[1,"a"]}`:                      "prompt[1]: a token ID was expected, not a string at byte 13",
		`{"prompt":[[1,-1]]}`:                     "prompt[0][1]: a token ID was expected, not a number at byte 14",
		`{"prompt":[4294967296]}`:                 "prompt[0]: a token ID was expected, not a number at byte 11",
		`{"prompt":"a","logprobs":"x"}`:           "logprobs: an integer was expected, not a string at byte 25",
		`{"prompt":"a","prompt":"b"}`:             "prompt: the name occurs twice at byte 14",
		`["a"]`:                                   "an object was expected, not an array at byte 0",
		`{"prompt":"a","stream_options":[]}`:      "stream_options: an object was expected, not an array at byte 31",
		`{"prompt":["a","b","c","d"],"stream":1}`: "stream: a boolean was expected, not a number at byte 37",
	} {
		_, err := completions.Decode([]byte(body), nil)
		require.EqualError(t, err, want, body)
		require.IsType(t, &block.Error{}, err)
	}
	_, err := completions.Decode([]byte(`{"prompt":["a","b","c"]}`), &block.Limits{Blocks: 2})
	require.EqualError(t, err, "prompt[2]: too many blocks (limit: 2 blocks) at byte 19")
	_, err = completions.Decode([]byte(`{"prompt":[`+strings.Repeat("1,", 50)+`1]}`), &block.Limits{Values: 20})
	require.Equal(t, block.LimitPassed, err.(*block.Error).Kind)
}

// TestRoundTrip checks that bodies are preserved byte for byte, and that a detached request has the same contents.
func TestRoundTrip(t *testing.T) {
	for _, body := range bodies {
		r := decode(t, body)
		out, losses, err := completions.AppendRequest(nil, r, nil)
		require.NoError(t, err)
		require.Empty(t, losses)
		require.Equal(t, body, string(out))

		require.NoError(t, r.Detach(), body)
		out, err = r.AppendBody(nil)
		require.NoError(t, err)
		var want, got any
		require.NoError(t, json.Unmarshal([]byte(body), &want))
		require.NoError(t, json.Unmarshal(out, &got), "%s", out)
		require.Empty(t, cmp.Diff(want, got), body)
		require.True(t, decode(t, body).Equal(r))
	}
}

var bodies = []string{
	`{"model":"m","prompt":"a"}`,
	"\n{ \"prompt\" : [ \"\\u0061\\ud83d\\ude00\" , \"b\" ],\t\"x\":{\"y\":[1.0,1e3]} , \"model\":\"m\",\"max_tokens\":16 } ",
	`{"prompt":[ 1 ,2],"stream":false,"logprobs":null,"stop":null,"seed":1}`,
	`{"prompt":[[1, 2],[3]],"stop":"x","nvext":{"token_data":[9],"annotations":["a"]}}`,
	`{"prompt":["a",[1]],"logprobs":true}`,
	`{"prompt":["only"],"logit_bias":{"1":2}}`,
}

func TestEncodeOther(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		losses         []string
	}{
		{
			name: "one user text",
			in:   `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":3,"stop":"x","n":2,"seed":1,"logprobs":true,"top_logprobs":2,"stream":true,"stream_options":{"include_usage":true},"user":"u","response_format":{"type":"json_object"}}`,
			want: `{"model":"m","max_tokens":3,"stream":true,"stream_options":{"include_usage":true},"seed":1,"n":2,"stop":["x"],"logprobs":2,"response_format":{"type":"json_object"},"user":"u","prompt":"Hi"}`,
		},
		{
			name: "logprobs without alternatives; json_schema",
			in:   `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"max_tokens":3,"logprobs":true,"response_format":{"type":"json_schema","json_schema":{"schema":{"a":1},"strict":true}}}`,
			want: `{"model":"m","max_tokens":3,"logprobs":0,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"a":1},"strict":true}},"prompt":"Hi"}`,
		},
		{
			name: "a conversation",
			in: `{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"A"},{"type":"text","text":"B"},{"type":"image_url","image_url":{"url":"http://x/"}}]},
				{"role":"assistant","content":"C","reasoning_content":"R","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"D"}],
				"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","reasoning_effort":"low"}`,
			want: `{"model":"m","max_tokens":8192,"prompt":"S\n\nA\nB\n\nC\n\nD"}`,
			losses: []string{
				"tool_choice: no field in the Completions API: tool_choice",
				"reasoning_effort: no field in the Completions API: reasoning_effort",
				"max_tokens: the Completions API treats a missing max_tokens as 16; the default was set",
				"tools[0]: a completion has no tools: f",
				"messages[0]: a completion has no roles: a turn of system",
				"messages[1]: a completion has no roles: a turn of user",
				"messages[1].content[2]: media: image",
				"messages[1]: the boundaries of the texts in a turn",
				"messages[2]: a completion has no roles: a turn of assistant",
				"messages[2].reasoning_content: a completion has text only: reasoning",
				"messages[2].tool_calls[0]: a completion has text only: tool_call",
				"messages[3]: a completion has no roles: a turn of tool",
				"messages[3]: a tool result became text",
			},
		},
		{
			name:   "no turns",
			in:     `{"model":"m","messages":[],"max_tokens":1}`,
			want:   `{"model":"m","max_tokens":1,"prompt":""}`,
			losses: nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := chat.Decode([]byte(c.in), nil)
			require.NoError(t, err)
			out, losses, err := completions.AppendRequest([]byte("x"), r, nil)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff("x"+c.want, string(out)))
			var got []string
			for _, l := range losses {
				got = append(got, l.String())
			}
			require.Empty(t, cmp.Diff(c.losses, got))
			decode(t, c.want)
			_, _, err = completions.AppendRequest(nil, r, &block.EncodeOptions{Strict: true})
			require.Equal(t, len(c.losses) > 0, err != nil)
		})
	}
}

// TestEncodeDocuments converts the kinds of blocks of the Messages API.
func TestEncodeDocuments(t *testing.T) {
	r, err := messages.Decode([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[
		{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"D"},"cache_control":{"type":"ephemeral"}},
		{"type":"document","source":{"type":"url","url":"http://x/"}},
		{"type":"search_result","title":"Q","source":"http://y/","content":[{"type":"text","text":"C"}]},
		{"type":"tokens","x":1}]}]}`), nil)
	require.NoError(t, err)
	out, losses, err := completions.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.Equal(t, `{"model":"m","max_tokens":1,"prompt":"D\nQ\nC"}`, string(out))
	require.Len(t, losses, 5)
}

func TestEncodeBuilt(t *testing.T) {
	r := block.NewRequest()
	require.NoError(t, r.SetParams(block.Params{Model: "m", MaxTokens: new(int64(2))}))
	require.NoError(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{completions.Tokens([]uint32{1, 22})}}))
	out, losses, err := completions.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.Empty(t, losses)
	require.Equal(t, `{"model":"m","max_tokens":2,"prompt":[1,22]}`, string(out))

	require.NoError(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{completions.Tokens(nil)}}))
	out, _, err = completions.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.Equal(t, `{"model":"m","max_tokens":2,"prompt":[[1,22],[]]}`, string(out))

	require.NoError(t, r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: "t"}}}))
	out, losses, err = completions.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.Equal(t, `{"model":"m","max_tokens":2,"prompt":"t"}`, string(out))
	require.Len(t, losses, 5)

	_, ok := completions.TokenIDs(&block.Block{Kind: block.Unknown, Type: "tokens", JSON: []byte(`{}`)})
	require.False(t, ok)
	_, ok = completions.TokenIDs(&block.Block{Kind: block.Unknown, Type: "tokens", JSON: []byte(`[`)})
	require.False(t, ok)
}

// TestEncodeToOtherAPIs converts completions to the other APIs.
func TestEncodeToOtherAPIs(t *testing.T) {
	for _, c := range []struct {
		body, chat string
		losses     []string
	}{
		{`{"model":"m","prompt":"Hi","max_tokens":3,"echo":false}`, `{"model":"m","max_completion_tokens":3,"messages":[{"role":"user","content":"Hi"}]}`, nil},
		{
			`{"model":"m","prompt":["a","b"],"suffix":"z"}`, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`,
			[]string{"suffix: no counterpart in the other API", "prompt: separate prompts become one conversation in the other API"},
		},
		{`{"model":"m","prompt":[1,2]}`, `{"model":"m","messages":[{"role":"user","content":[]}]}`, []string{"prompt: a block of another API: tokens"}},
	} {
		out, losses, err := chat.AppendRequest(nil, decode(t, c.body), nil)
		require.NoError(t, err)
		require.Equal(t, c.chat, string(out))
		var got []string
		for _, l := range losses {
			got = append(got, l.String())
		}
		require.Empty(t, cmp.Diff(c.losses, got))
	}
}

func TestEdits(t *testing.T) {
	text := func(s string) block.Turn {
		return block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: s}}}
	}
	at := func(r *block.Request, i int) block.Ref { return r.Turns()[i].Blocks[0].At }
	for _, c := range []struct {
		name, body string
		edit       func(r *block.Request) error
		want       string
	}{
		{"text", `{ "prompt" : "a" , "x":1 }`, func(r *block.Request) error { return r.SetText(at(r, 0), "é\n") }, `{ "prompt" : "é\n" , "x":1 }`},
		{"one of a list", `{"prompt":[ "a", "b" ]}`, func(r *block.Request) error { return r.SetText(at(r, 1), "c") }, `{"prompt":[ "a", "c" ]}`},
		{"tokens", `{"prompt":[ 1, 2 ]}`, func(r *block.Request) error { return r.Set(at(r, 0), completions.Tokens([]uint32{7})) }, `{"prompt":[7]}`},
		{"text for tokens", `{"prompt":[[1],[2]]}`, func(r *block.Request) error {
			return r.Set(at(r, 1), block.Block{Kind: block.Text, Text: "t"})
		}, `{"prompt":[[1],"t"]}`},
		{"tokens for text", `{"prompt":"a"}`, func(r *block.Request) error { return r.Set(at(r, 0), completions.Tokens([]uint32{7, 8})) }, `{"prompt":[7,8]}`},
		{"second prompt", `{"prompt":"a"}`, func(r *block.Request) error { return r.Append(text("b")) }, `{"prompt":["a","b"]}`},
		{"first prompt, of tokens", `{"prompt":[1]}`, func(r *block.Request) error {
			return r.InsertTurn(0, block.Turn{Role: block.RoleUser, Blocks: []block.Block{completions.Tokens([]uint32{2})}})
		}, `{"prompt":[[2],[1]]}`},
		{"into a list", `{"prompt":["a", "c"]}`, func(r *block.Request) error { return r.InsertTurn(1, text("b")) }, `{"prompt":["a","b", "c"]}`},
		{"into an empty list", `{"prompt":[]}`, func(r *block.Request) error { return r.Append(text("b")) }, `{"prompt":["b"]}`},
		{"into nothing", `{"prompt_embeds":"x"}`, func(r *block.Request) error { return r.Append(text("b")) }, `{"prompt_embeds":"x","prompt":"b"}`},
		{"edit, then a second prompt", `{"prompt":"a"}`, func(r *block.Request) error {
			if err := r.SetText(at(r, 0), "A"); err != nil {
				return err
			}
			return r.Append(text("b"))
		}, `{"prompt":["A","b"]}`},
		{"delete one of a list", `{"prompt":["a", "b"]}`, func(r *block.Request) error { return r.Delete(at(r, 0)) }, `{"prompt":["b"]}`},
		{"delete the only one", `{"prompt":"a","n":1}`, func(r *block.Request) error { return r.Delete(r.Turns()[0].At) }, `{"prompt":[],"n":1}`},
		{"parameters", `{"model":"m","prompt":"a","max_tokens":1.0}`, func(r *block.Request) error {
			p := r.Params()
			p.Model, p.Stream, p.Sampling.Logprobs, p.Sampling.TopLogprobs = "n", true, true, new(int64(3))
			return r.SetParams(p)
		}, `{"model":"n","prompt":"a","max_tokens":1.0,"stream":true,"logprobs":3}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := decode(t, c.body)
			require.NoError(t, c.edit(r))
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			require.Equal(t, c.want, string(out))
			require.True(t, decode(t, c.want).Equal(r), "the view equals the decoded body")
		})
	}
}

func TestEditErrors(t *testing.T) {
	r := decode(t, `{"model":"m","prompt":"a"}`)
	at := r.Turns()[0].Blocks[0].At
	for name, err := range map[string]error{
		"a call":        r.Set(at, block.Block{Kind: block.ToolCall}),
		"a breakpoint":  r.Set(at, block.Block{Kind: block.Text, Cache: &block.Cache{}}),
		"a second text": r.Insert(r.Turns()[0].At, block.Block{Kind: block.Text, Text: "b"}),
		"a system turn": r.Append(block.Turn{Role: block.RoleSystem, Blocks: []block.Block{{Kind: block.Text}}}),
		"a picture":     r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Image}}}),
		"a tool":        r.SetTools(block.Tool{Name: "f"}),
		"effort":        r.SetParams(block.Params{Model: "m", Thinking: block.Thinking{Effort: "low"}}),
	} {
		require.IsType(t, &block.Error{}, err, name)
		require.Equal(t, block.Unsupported, err.(*block.Error).Kind, name)
	}
	out, err := r.AppendBody(nil)
	require.NoError(t, err)
	require.Equal(t, `{"model":"m","prompt":"a"}`, string(out))
}

// TestRandomEdits makes random edits and compares the result with the same edits of a slice.
func TestRandomEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.StringN(0, 5, 20), 1, 3).Draw(t, "prompts")
		raw, err := json.Marshal(list)
		require.NoError(t, err)
		if len(list) == 1 && rapid.Bool().Draw(t, "bare") {
			raw, err = json.Marshal(list[0])
			require.NoError(t, err)
		}
		r := decode(t, `{"model":"m","prompt":`+string(raw)+`,"x":[1]}`)
		for range rapid.IntRange(0, 5).Draw(t, "edits") {
			s := rapid.StringN(0, 5, 20).Draw(t, "text")
			switch k := rapid.IntRange(0, 2).Draw(t, "edit"); {
			case k == 0:
				i := rapid.IntRange(0, len(list)).Draw(t, "at")
				require.NoError(t, r.InsertTurn(i, block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: s}}}))
				list = append(list[:i:i], append([]string{s}, list[i:]...)...)
			case len(list) == 0:
			case k == 1:
				i := rapid.IntRange(0, len(list)-1).Draw(t, "at")
				require.NoError(t, r.Delete(r.Turns()[i].At))
				list = append(list[:i:i], list[i+1:]...)
			default:
				i := rapid.IntRange(0, len(list)-1).Draw(t, "at")
				require.NoError(t, r.SetText(r.Turns()[i].Blocks[0].At, s))
				list[i] = s
			}
			texts, _ := prompts(r)
			require.Len(t, texts, len(list))
		}
		out, err := r.AppendBody(nil)
		require.NoError(t, err)
		again := decode(t, string(out))
		require.True(t, again.Equal(r))
		texts, _ := prompts(again)
		require.Empty(t, cmp.Diff(append([]string{}, list...), append([]string{}, texts...)))
		require.Contains(t, string(out), `"x":[1]`)
	})
}

func FuzzDecode(f *testing.F) {
	for _, b := range bodies {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := completions.Decode(body, nil)
		if err != nil {
			require.IsType(t, &block.Error{}, err)
			return
		}
		out, err := r.AppendBody(nil)
		require.NoError(t, err)
		require.Equal(t, string(body), string(out))
		for _, turn := range r.Turns() {
			_ = turn.Text("")
		}
		prompts(r)
		chatBody, _, err := chat.AppendRequest(nil, r, nil)
		require.NoError(t, err)
		back, err := chat.Decode(chatBody, nil)
		require.NoError(t, err, "%s", chatBody)
		_, _, err = completions.AppendRequest(nil, back, nil)
		require.NoError(t, err)
	})
}

func ExampleDecode() {
	r, err := completions.Decode([]byte(`{"model":"m","prompt":["Once upon","In the beginning"],"max_tokens":16}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range r.Turns() {
		fmt.Println(t.Blocks[0].Text)
	}
	// Output:
	// Once upon
	// In the beginning
}

func ExampleTokens() {
	r := block.NewRequest()
	n := int64(64)
	r.SetParams(block.Params{Model: "m", MaxTokens: &n})
	r.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{completions.Tokens([]uint32{9906, 1917})}})
	body, _, err := completions.AppendRequest(nil, r, nil)
	fmt.Println(string(body), err)
	// Output: {"model":"m","max_tokens":64,"prompt":[9906,1917]} <nil>
}
