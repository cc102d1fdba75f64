// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// stream returns a stream of server-sent events.
func stream(events ...string) io.ReadCloser {
	return io.NopCloser(strings.NewReader("data: " + strings.Join(events, "\n\ndata: ") + "\n\n"))
}

// steps returns the steps of a stream but pauses.
func steps(k upstream.TokenKind, n int, body io.ReadCloser) (out []upstream.Step, err error) {
	for st, e := range k.Steps(body, n) {
		if e != nil {
			return out, e
		}
		if !st.Pause {
			out = append(out, st)
		}
	}
	return out, nil
}

// Events of llama.cpp, build 11434, without fields that are not read.
const (
	llamaProgress = `{"index":0,"content":"","tokens":[0],"stop":false,"tokens_predicted":0,"tokens_evaluated":8,"prompt_progress":{"total":8,"cache":7,"processed":7,"time_ms":0}}`
	llamaLast     = `{"index":0,"stop":true,"stop_type":"%s","stopping_word":"","tokens_predicted":%d,"tokens_evaluated":8,"timings":{"cache_n":7,"prompt_n":1}}`
)

// llamaToken returns an event with a token, the n-th of its choice.
func llamaToken(choice int, text string, id, n int) string {
	return fmt.Sprintf(`{"index":%d,"content":%q,"tokens":[%d],"stop":false,"tokens_predicted":%d,"tokens_evaluated":8}`, choice, text, id, n)
}

func TestLlamaCPPSteps(t *testing.T) {
	ids := func(choice int, ids ...uint32) upstream.Step {
		return upstream.Step{Choice: choice, IDs: ids, StopID: -1}
	}
	usage := func(output int64) upstream.Step {
		return upstream.Step{Usage: &event.Tokens{Prompt: 8, Cached: 7, Output: output}}
	}
	finish := func(st upstream.Step, why event.Why, id int64) upstream.Step {
		st.Finish, st.StopID = why, id
		return st
	}
	for _, tt := range []struct {
		name   string
		n      int
		events []string
		want   []upstream.Step
	}{
		{"limit", 1, []string{llamaProgress, llamaProgress, llamaToken(0, " a", 5, 1), llamaToken(0, "b", 6, 2), fmt.Sprintf(llamaLast, "limit", 2)},
			[]upstream.Step{usage(0), ids(0, 5), ids(0, 6), finish(upstream.Step{}, event.Length, -1), usage(2)}},
		{"stop token", 1, []string{llamaToken(0, "a", 5, 1), llamaToken(0, "", 2, 2), fmt.Sprintf(llamaLast, "eos", 2)},
			[]upstream.Step{ids(0, 5), finish(ids(0, 2), event.Stop, 2), usage(2)}},
		{"marker without text", 1, []string{llamaToken(0, "", 9, 1), llamaToken(0, "a", 5, 2), fmt.Sprintf(llamaLast, "limit", 2)},
			[]upstream.Step{ids(0, 9), ids(0, 5), finish(upstream.Step{}, event.Length, -1), usage(2)}},
		{"character of three tokens", 1, []string{llamaToken(0, "a", 5, 1), llamaToken(0, "漢", 8, 4), llamaToken(0, "b", 6, 5), fmt.Sprintf(llamaLast, "limit", 5)},
			[]upstream.Step{ids(0, 5), {Text: []byte("漢"), StopID: -1}, ids(0, 6), finish(upstream.Step{}, event.Length, -1), usage(5)}},
		{"two choices", 2, []string{llamaProgress, llamaToken(1, "a", 5, 1), llamaToken(0, "b", 6, 1), strings.Replace(fmt.Sprintf(llamaLast, "limit", 1), `"index":0`, `"index":1`, 1),
			strings.Replace(fmt.Sprintf(llamaLast, "eos", 1), `"cache_n":7`, `"cache_n":8`, 1)},
			[]upstream.Step{usage(0), ids(1, 5), ids(0, 6), finish(upstream.Step{Choice: 1}, event.Length, -1), finish(upstream.Step{}, event.Stop, -1), usage(2)}},
	} {
		got, err := steps(upstream.LlamaCPP{}, tt.n, stream(tt.events...))
		require.NoError(t, err, tt.name)
		require.Empty(t, cmp.Diff(tt.want, got, cmpopts.EquateEmpty()), tt.name)
	}
	// Log probabilities, as the build sends them: a character of two tokens has one entry, for its last token.
	prob := func(event string, bytes, value, top string) string {
		return strings.TrimSuffix(event, "}") + fmt.Sprintf(`,"completion_probabilities":[{"id":5,"token":"x","bytes":%s,"logprob":%s,"top_logprobs":[%s]}]}`, bytes, value, top)
	}
	got, err := steps(upstream.LlamaCPP{}, 1, stream(
		prob(llamaToken(0, "", 9, 1), "[]", "-0.1", `{"id":9,"token":"","bytes":[],"logprob":-0.1}`),
		prob(llamaToken(0, " a", 5, 2), "[32,97]", "-0.5", `{"id":5,"token":" a","bytes":[32,97],"logprob":-0.5},{"id":7,"token":"?","bytes":[159],"logprob":-2}`),
		prob(llamaToken(0, "é", 8, 4), "[195,169]", "-1.5", `{"id":8,"token":"?","bytes":[169],"logprob":-1.5}`),
		prob(llamaToken(0, "", 2, 5), "[]", "-0.2", ``), fmt.Sprintf(llamaLast, "eos", 5)))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]upstream.Step{
		{IDs: []uint32{9}, StopID: -1, Logprobs: &upstream.Logprobs{Tokens: []string{""}, Values: []json.Number{"-0.1"}, Top: []map[string]json.Number{{"": "-0.1"}}}},
		{IDs: []uint32{5}, StopID: -1, Logprobs: &upstream.Logprobs{Tokens: []string{" a"}, Values: []json.Number{"-0.5"}, Top: []map[string]json.Number{{" a": "-0.5", "\x9f": "-2"}}}},
		{Text: []byte("é"), StopID: -1, Logprobs: &upstream.Logprobs{Tokens: []string{"é"}, Values: []json.Number{"-1.5"}, Top: []map[string]json.Number{{"\xa9": "-1.5"}}}},
		{IDs: []uint32{2}, Finish: event.Stop, StopID: 2, Logprobs: &upstream.Logprobs{Tokens: []string{""}, Values: []json.Number{"-0.2"}, Top: []map[string]json.Number{{}}}},
		usage(5),
	}, got, cmpopts.EquateEmpty()))
	for body, want := range map[string]string{
		`{"error":{"code":500,"message":"Compute error.","type":"server_error"}}`: "engine: HTTP 500: Compute error.",
		`{"index":1}`:                 "choice 1 of 1",
		`{"index":0,"stop":true}`:     "without a reason",
		llamaToken(0, "a", 5, 1):      "no finish reason in stream",
		`{"index":`:                   "event of 9 bytes",
		`{"index":0,"tokens":[-1.5]}`: "event of",
	} {
		_, err := steps(upstream.LlamaCPP{}, 1, stream(body))
		require.ErrorContains(t, err, want)
		require.Equal(t, event.EngineFailed, apierr.Wrap(err).Why)
	}
}

// The events are written as the sources of SGLang 0.5.23 do.
func TestSGLangSteps(t *testing.T) {
	meta := func(n int, finish string) string {
		return fmt.Sprintf(`"meta_info":{"id":"x","finish_reason":%s,"prompt_tokens":8,"completion_tokens":%d,"cached_tokens":4}`, finish, n)
	}
	want := []upstream.Step{
		{IDs: []uint32{5}, StopID: -1}, {IDs: []uint32{6, 7}, StopID: -1}, {IDs: []uint32{2}, Finish: event.Stop, StopID: 2},
		{Usage: &event.Tokens{Prompt: 8, Cached: 4, Output: 4}},
	}
	last := meta(4, `{"type":"stop","matched":2}`)
	for name, events := range map[string][]string{
		"all ids":   {`{"text":"a","output_ids":[5],` + meta(1, "null") + `}`, `{"text":"abc","output_ids":[5,6,7],` + meta(3, "null") + `}`, `{"text":"abc","output_ids":[5,6,7,2],` + last + `}`, "[DONE]"},
		"new ids":   {`{"text":"a","output_ids":[5],` + meta(1, "null") + `}`, `{"text":"bc","output_ids":[6,7],` + meta(3, "null") + `}`, `{"text":"","output_ids":[2],` + last + `}`, "[DONE]"},
		"ends late": {`{"output_ids":[5],` + meta(1, "null") + `}`, `{"output_ids":[5,6,7],` + meta(3, "null") + `}`, `{"output_ids":[5,6,7,2],` + last + `}`, `{"output_ids":[1],` + last + `}`},
	} {
		got, err := steps(upstream.SGLang{}, 1, stream(events...))
		require.NoError(t, err, name)
		require.Empty(t, cmp.Diff(want, got), name)
	}
	probs := func(n int, list, top string) string {
		return strings.Replace(meta(n, "null"), `"cached_tokens"`, `"output_token_logprobs":`+list+`,"output_top_logprobs":`+top+`,"cached_tokens"`, 1)
	}
	got, err := steps(upstream.SGLang{}, 1, stream(
		`{"output_ids":[5],`+probs(1, `[[-0.5,5,"a"]]`, `[[[-0.5,5,"a"],[-2,6,"b"]]]`)+`}`,
		`{"output_ids":[5,6,7],`+probs(3, `[[-0.5,5,"a"],[-1,6,"b"],[null,7,null]]`, `[[[-0.5,5,"a"]],[[-1,6,"b"]],null]`)+`}`,
		`{"output_ids":[5,6,7,2],`+last+`}`))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]upstream.Step{
		{IDs: []uint32{5}, StopID: -1, Logprobs: &upstream.Logprobs{Tokens: []string{"a"}, Values: []json.Number{"-0.5"}, Top: []map[string]json.Number{{"a": "-0.5", "b": "-2"}}}},
		{IDs: []uint32{6, 7}, StopID: -1, Logprobs: &upstream.Logprobs{Tokens: []string{"b", ""}, Values: []json.Number{"-1", ""}, Top: []map[string]json.Number{{"b": "-1"}, {}}}},
		want[2], want[3],
	}, got))
	for body, want := range map[string]string{
		`{"error":{"message":"out of memory"}}`:                                                    "out of memory",
		`{"output_ids":[],` + meta(2, "null") + `}`:                                                "0 ids for 2 tokens after 0",
		`{"output_ids":[],` + meta(0, `{"type":"abort","message":"gone","status_code":503}`) + `}`: "HTTP 503: gone",
	} {
		_, err := steps(upstream.SGLang{}, 1, stream(body))
		require.ErrorContains(t, err, want)
	}
}

// vLLM 0.32.0 wrote the events, which are shortened.
func TestVLLMTokensSteps(t *testing.T) {
	const (
		token = `{"request_id":"generate-tokens-1","usage":null,"output_mode":"tokens","choices":[{"index":0,"finish_reason":null,"stop_reason":null,"token_ids":[16],"routed_experts":null,"sampling_mask":null,"weight_versions":null,"logprobs":null}]}`
		last  = `{"request_id":"generate-tokens-1","usage":null,"output_mode":"tokens","choices":[{"index":0,"finish_reason":"stop","stop_reason":"a","token_ids":[1525],"weight_versions":[{"version":"default","start":0,"end":5}],"logprobs":null}]}`
		usage = `{"request_id":"generate-tokens-1","usage":{"prompt_tokens":50,"total_tokens":52,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":32}},"output_mode":"tokens","choices":[]}`
		text  = `{"output_mode":"text","choices":[{"index":0,"finish_reason":"length","stop_reason":null,"token_ids":[291],"text":"un","logprobs":{"content":[{"token":"un","logprob":-8.05,"bytes":[117,110],"top_logprobs":[{"token":"un","logprob":-8.05,"bytes":[117,110]},{"token":"\u0438","logprob":-8.04,"bytes":[208,184]}]}]}}]}`
	)
	got, err := steps(upstream.VLLMTokens{}, 1, stream(token, last, usage, "[DONE]"))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]upstream.Step{
		{IDs: []uint32{16}, StopID: -1}, {IDs: []uint32{1525}, Finish: event.StopSequence, Stop: "a", StopID: -1},
		{Usage: &event.Tokens{Prompt: 50, Cached: 32, Output: 2}},
	}, got, cmpopts.EquateEmpty()))
	got, err = steps(upstream.VLLMTokens{}, 1, stream(text, "[DONE]"))
	require.NoError(t, err)
	require.Equal(t, &upstream.Logprobs{Tokens: []string{"un"}, Values: []json.Number{"-8.05"}, Top: []map[string]json.Number{{"un": "-8.05", "и": "-8.04"}}}, got[0].Logprobs)

	// What is wrong with the request may be in the stream.
	for k, body := range map[upstream.TokenKind]string{
		upstream.VLLMTokens{}: `{"error": {"message": "The decoder prompt (length 40000) is longer than the maximum model length of 32768.", "type": "BadRequestError", "param": null, "code": 400}}`,
		upstream.VLLM{}:       `{"error": {"message": "Grammar error: at 1(8): invalid regex", "type": "BadRequestError", "param": null, "code": 400}}`,
	} {
		_, err = steps(k, 1, stream(body, "[DONE]"))
		require.Equal(t, event.Invalid, apierr.Wrap(err).Why)
		require.Contains(t, body, apierr.Wrap(err).Message)
	}
	_, err = steps(upstream.VLLM{}, 1, stream(`{"error":{"message":"died","code":500}}`))
	require.Equal(t, event.EngineFailed, apierr.Wrap(err).Why)
}

// The chunks are written as the sources of TensorRT-LLM do.
func TestTensorRTLLMSteps(t *testing.T) {
	chunk := func(ids, finish, stop string) string {
		return `{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","token_ids":` + ids + `,"logprobs":null,"finish_reason":` + finish +
			`,"stop_reason":` + stop + `,"avg_decoded_tokens_per_iter":1.0}],"usage":null}`
	}
	const usage = `{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":8,"total_tokens":11,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}`
	got, err := steps(upstream.TensorRTLLM{}, 1, stream(chunk("[5]", "null", "null"), chunk("[6,7]", "null", "null"), chunk("[]", `"stop"`, "9"), usage, "[DONE]"))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]upstream.Step{
		{IDs: []uint32{5}, StopID: -1}, {IDs: []uint32{6, 7}, StopID: -1}, {Finish: event.Stop, StopID: 9},
		{Usage: &event.Tokens{Prompt: 8, Cached: 4, Output: 3}},
	}, got, cmpopts.EquateEmpty()))
	for _, finish := range []string{`"cancelled"`, `"timeout"`} {
		_, err = steps(upstream.TensorRTLLM{}, 1, stream(chunk("[]", finish, "null")))
		require.Equal(t, event.EngineFailed, apierr.Wrap(err).Why)
	}

	r := request(t, `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	r.Prompt.Namespace = "salt"
	_, err = body(upstream.TensorRTLLM{}, r)
	require.ErrorContains(t, err, "cannot keep cached prompts apart")
	require.Equal(t, event.Invalid, apierr.Wrap(err).Why)
}

// Ollama 0.30.0 wrote the lines, which are shortened.
func TestOllamaSteps(t *testing.T) {
	read := func(text string) ([]upstream.Step, error) {
		return steps(upstream.Ollama{}, 1, io.NopCloser(strings.NewReader(text)))
	}
	got, err := read(`{"model":"smol","created_at":"2026-11-23T19:48:56Z","response":"-","done":false}
{"model":"smol","created_at":"2026-11-23T19:48:56Z","response":"by","done":false}
{"model":"smol","created_at":"2026-11-23T19:48:59Z","response":"","done":true,"done_reason":"length","prompt_eval_count":1,"eval_count":2}
`)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]upstream.Step{
		{Text: []byte("-"), StopID: -1}, {Text: []byte("by"), StopID: -1}, {Finish: event.Length, StopID: -1},
		{Usage: &event.Tokens{Output: 2, CachedEstimated: true}},
	}, got, cmpopts.EquateEmpty()))
	for text, want := range map[string]string{
		`{"response":"a","done":false}`:                     "no finish reason in stream",
		`{"error":"model runner has unexpectedly stopped"}`: "unexpectedly stopped",
		`{"response":`: "line of 12 bytes",
		`{"response":"","done":true,"done_reason":"load"}`:               `the reason "load"`,
		`{"response":"` + strings.Repeat("a", 1<<20) + `","done":false}`: "too long",
	} {
		_, err := read(text)
		require.ErrorContains(t, err, want)
		require.Equal(t, event.EngineFailed, apierr.Wrap(err).Why)
	}
}

// Ollama gets text: of a prompt whose text has other ids, and of what it cannot be asked for, the client is told.
func TestOllamaRequest(t *testing.T) {
	const fields = `"model":"m","max_tokens":7,"temperature":0.5,"top_k":-1,"seed":3,"repetition_penalty":1.1,"stop":["a"]`
	r := request(t, `{`+fields+`,"messages":[{"role":"user","content":"é <b>"}]}`)
	r.Choices, r.Constraint = 1, []byte(`"format":{"type":"object"}`)
	const want = `{"model":"m","raw":true,"think":false,"truncate":false%s,"options":{"num_predict":7,"temperature":0.5,"top_k":-1,"seed":3,"repeat_penalty":1.1},"prompt":%s,"format":{"type":"object"}}`
	text := string(must(json.Marshal(r.Prompt.Text)))
	require.Equal(t, fmt.Sprintf(want, "", text), string(must(body(upstream.Ollama{}, r))))
	require.Equal(t, fmt.Sprintf(want, "", strings.Replace(text, `\u003c|im_start|\u003e`, "", 1)), string(must(body(upstream.Ollama{BOS: "<|im_start|>"}, r))))
	r.Prompt.Namespace = "salt"
	require.Equal(t, fmt.Sprintf(want, `,"shift":false`, text), string(must(body(upstream.Ollama{}, r))))

	refused := func(r *upstream.Request, want string) {
		_, err := body(upstream.Ollama{}, r)
		require.Equal(t, event.Invalid, apierr.Wrap(err).Why)
		require.ErrorContains(t, err, want)
	}
	r.Choices = 2
	refused(r, "generate one answer")
	r = request(t, `{`+fields+`,"messages":[{"role":"user","content":"<|im_end|>"}]}`)
	r.Choices = 1
	refused(r, "spells special tokens")

	m, err := prompt.Load(mini.FS(), &prompt.Options{Family: "passthrough"})
	require.NoError(t, err)
	r.Prompt = m.Raw(mini.Load().AppendEncode(nil, "some text"))
	require.Contains(t, string(must(body(upstream.Ollama{}, r))), `"prompt":"some text"`)
	r.Prompt = m.Raw(mini.Load().AppendEncode(mini.Load().AppendEncode(nil, "t"), "he")) // not the tokens of "the"
	refused(r, "does not have its tokens")
}

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// body returns the body of a request with the ids of the prompt.
func body(k upstream.TokenKind, r *upstream.Request) ([]byte, error) {
	text, at, err := k.AppendRequest([]byte(" "), r)
	if at < 0 {
		return bytes.TrimPrefix(text, []byte(" ")), err
	}
	return slices.Insert(text, at, r.Prompt.IDList()...)[1:], err
}

// request returns a request of a client.
func request(t *testing.T, body string) *upstream.Request {
	m, err := prompt.Load(mini.FS(), &prompt.Options{Family: "hermes", Window: 4096})
	require.NoError(t, err)
	req, err := wire.Chat.Decode([]byte(body), nil)
	require.NoError(t, err)
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	d, err := m.NewDecoder(req, p, nil)
	require.NoError(t, err)
	return &upstream.Request{Model: "m", Decoder: d, Client: req, Prompt: p, Choices: 2}
}

func TestAppendRequest(t *testing.T) {
	const fields = `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":7,"temperature":0.5,"top_k":-1,"seed":4294967297,"repetition_penalty":1.1,"min_tokens":2,"logit_bias":{"5":1},"stop":["a"],"stop_token_ids":[9]}`
	r := request(t, fields)
	ids := string(must(json.Marshal(r.Prompt.IDs())))
	for k, want := range map[upstream.TokenKind]string{
		upstream.LlamaCPP{}: `{"stream":true,"return_tokens":true,"return_progress":true,"cache_prompt":true,"n_predict":7,` +
			`"response_fields":["index","stop","stop_type","stopping_word","tokens_predicted","tokens_evaluated","timings"],` +
			`"n_cmpl":2,"logit_bias":{"5":1},"temperature":0.5,"top_k":0,"seed":1,"repeat_penalty":1.1,"grammar":"root ::= \"a\"","prompt":` + ids + `}`,
		upstream.TensorRTLLM{}: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"detokenize":false,"max_tokens":7,"n":2,"min_tokens":2,"logit_bias":{"5":1},"stop_token_ids":[9],` +
			`"temperature":0.5,"top_k":0,"seed":4294967297,"repetition_penalty":1.1,"grammar":"root ::= \"a\"","prompt":` + ids + `}`,
		upstream.SGLang{}: `{"stream":true,"sampling_params":{"max_new_tokens":7,"skip_special_tokens":false,"n":2,"min_new_tokens":2,"logit_bias":{"5":1},"stop_token_ids":[9],` +
			`"temperature":0.5,"top_k":-1,"sampling_seed":4294967297,"repetition_penalty":1.1,"grammar":"root ::= \"a\""},"input_ids":` + ids + `}`,
	} {
		r.Constraint = []byte(`"grammar":"root ::= \"a\""`)
		require.Equal(t, want, string(must(body(k, r))), k.String())
	}
	k, name := upstream.VLLMTokens{Defaults: `{"stop_token_ids":[8],"temperature":0.7,"top_p":0.8}`}, `"structured_outputs":{"structural_tag":"{}"}`
	r.Constraint, r.Logprobs = []byte(name), new(2)
	require.Equal(t, `{"stream":true,"stream_options":{"include_usage":true},"sampling_params":{"max_tokens":7,"detokenize":true,"skip_special_tokens":false,"n":2,"logprobs":2,"min_tokens":2,"logit_bias":{"5":1},"stop":["a"],`+
		`"seed":4294967297,"stop_token_ids":[8,9],"temperature":0.5,"top_p":0.8,"top_k":-1,"repetition_penalty":1.1,`+name+`},"reasoning_ended":true,"output_mode":"text","model":"m","token_ids":`+ids+`}`, string(must(body(k, r))))
	r.Constraint, r.Logprobs = []byte(`"grammar":"root ::= \"a\""`), nil

	var got map[string]any
	require.NoError(t, json.Unmarshal(must(body(upstream.VLLM{}, r)), &got))
	require.EqualValues(t, 2, got["n"])
	require.Equal(t, `root ::= "a"`, got["grammar"])

	r.Logprobs = new(0)
	require.Contains(t, string(must(body(upstream.LlamaCPP{}, r))), `"n_probs":1,`, "0 would be none")
	require.Contains(t, string(must(body(upstream.SGLang{}, r))), `,"return_logprob":true,"return_text_in_logprobs":true,"top_logprobs_num":0,"input_ids":`)
	r.Logprobs = nil

	r.Prompt.Namespace = "salt"
	require.Contains(t, string(must(body(upstream.LlamaCPP{}, r))), `"cache_prompt":false`, "a slot's prompt may be another tenant's")
}

// The forms of a constraint: vLLM takes a tag, SGLang the same as a string, llama.cpp a grammar, and the embedded engine
// none.
func TestConstrain(t *testing.T) {
	r := request(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"structured_outputs":{"regex":"ab?"}}`)
	m, err := prompt.Load(mini.FS(), &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	c, err := m.Constraint(r.Client, r.Prompt)
	require.NoError(t, err)
	for k, want := range map[upstream.TokenKind]string{
		upstream.VLLM{}:        `"response_format":` + string(c.StructuralTag()),
		upstream.VLLMTokens{}:  `"structured_outputs":{"structural_tag":` + string(must(json.Marshal(string(c.StructuralTag())))) + `}`,
		upstream.TensorRTLLM{}: `"response_format":` + string(c.StructuralTag()),
		upstream.SGLang{}:      `"structural_tag":` + string(must(json.Marshal(string(c.StructuralTag())))),
		upstream.LlamaCPP{}:    `"grammar":` + string(must(json.Marshal(must(c.GBNF())))),
	} {
		got, err := k.Constrain(c)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err = upstream.Ollama{}.Constrain(c)
	require.ErrorContains(t, err, "enforces only a JSON schema")
	r = request(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"array"}}}}`)
	c2, err := m.Constraint(r.Client, r.Prompt)
	require.NoError(t, err)
	require.Equal(t, `"format":{"type":"array"}`, string(must(upstream.Ollama{}.Constrain(c2))))
	_, err = upstream.Embedded{}.Constrain(c)
	require.ErrorContains(t, err, "cannot constrain the output (embedded)")
}

func TestKinds(t *testing.T) {
	for _, k := range upstream.Kinds() {
		_, tokens := k.(upstream.TokenKind)
		_, managed := k.(upstream.Managed)
		require.True(t, tokens != managed, k.String())
		got, ok := upstream.Lookup(k.String())
		require.True(t, ok)
		require.Equal(t, k, got)
	}
	_, ok := upstream.Lookup("tgi")
	require.False(t, ok)
}

// What an engine says about the request reaches the client; the rest is in the log.
func TestRefusal(t *testing.T) {
	r := request(t, `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":4000}`)
	n := len(r.Prompt.IDs())
	for _, tt := range []struct {
		status int
		body   string
		why    event.Why
		want   string
	}{
		{400, `{"error":{"code":400,"message":"Failed to parse grammar","type":"invalid_request_error"}}`, event.Invalid, "Failed to parse grammar"},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4}}`, event.Invalid, "maximum context length is 4 tokens"},
		{400, fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens."}}`, n+5), event.Invalid, fmt.Sprintf("maximum context length is %d tokens", n+5)},
		{404, `{"error":{"message":"The model m does not exist. Valid aliases: tiny"}}`, event.EngineFailed, "Valid aliases: tiny"},
		{400, `{"error":"{\"error\":{\"code\":400,\"message\":\"request (6001 tokens) exceeds the available context size (4 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":6001,\"n_ctx\":4}}"}`, event.Invalid, "maximum context length is 4 tokens"},
		{400, `{"object":"error","message":"top_p must be at most 1","type":"BadRequestError","param":null,"code":400}`, event.Invalid, "top_p must be at most 1"},
		{400, `{"error":"[{'type': 'extra_forbidden'}]"}`, event.Invalid, "extra_forbidden"},
		{401, `{"error":{"message":"Invalid API Key"}}`, event.EngineFailed, "does not accept the key"},
		{503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, event.Overloaded, "try again"},
		{500, `{"error":{"message":"secret"}}`, event.EngineFailed, "the engine failed"},
		{400, `<html>`, event.EngineFailed, "the engine failed"},
	} {
		err := upstream.Refusal(&http.Response{StatusCode: tt.status, Body: io.NopCloser(strings.NewReader(tt.body))}, r)
		e, ok := errors.AsType[*apierr.Error](err)
		require.True(t, ok)
		require.Equal(t, tt.why, e.Why, tt.body)
		require.Contains(t, string(e.AppendBody(nil, apierr.OpenAI, "")), tt.want)
		require.Error(t, e.Cause, "for the log")
	}
}
