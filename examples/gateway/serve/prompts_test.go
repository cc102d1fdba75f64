// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// A plainChoice is a choice of a Completions response, put together if it was streamed.
type plainChoice struct {
	Text, Finish string
	Tokens       []string
	Values       []*float64
	Top          []map[string]float64
	Offsets      []int
}

// plainly sends a Completions request and returns the choices by index, and the usage.
func plainly(t *testing.T, url, fields string, stream bool) (out map[int]plainChoice, prompt, output int) {
	t.Helper()
	body := `{"model":"m",` + fields + `}`
	if stream {
		body = `{"model":"m","stream":true,"stream_options":{"include_usage":true},` + fields + `}`
	}
	status, _, text := send(t, url+"/v1/completions", body)
	require.Equal(t, 200, status, text)
	out = map[int]plainChoice{}
	usages := 0
	add := func(data []byte) {
		var chunk struct {
			Choices []struct {
				Index    int
				Text     string
				Finish   string `json:"finish_reason"`
				Logprobs *struct {
					Tokens  []string
					Values  []*float64           `json:"token_logprobs"`
					Top     []map[string]float64 `json:"top_logprobs"`
					Offsets []int                `json:"text_offset"`
				}
			}
			Usage *struct {
				Prompt int `json:"prompt_tokens"`
				Output int `json:"completion_tokens"`
			}
		}
		require.NoError(t, json.Unmarshal(data, &chunk), string(data))
		for i, ch := range chunk.Choices {
			if !stream {
				require.Equal(t, i, ch.Index)
			}
			c := out[ch.Index]
			c.Text += ch.Text
			c.Finish += ch.Finish
			if l := ch.Logprobs; l != nil {
				c.Tokens, c.Values, c.Top, c.Offsets = append(c.Tokens, l.Tokens...), append(c.Values, l.Values...), append(c.Top, l.Top...), append(c.Offsets, l.Offsets...)
			}
			out[ch.Index] = c
		}
		if chunk.Usage != nil {
			usages++
			prompt, output = chunk.Usage.Prompt, chunk.Usage.Output
		}
	}
	if !stream {
		add([]byte(text))
	} else {
		require.True(t, strings.HasSuffix(text, "data: [DONE]\n\n"))
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data: {"); ok {
				add([]byte("{" + data))
			}
		}
	}
	require.Equal(t, 1, usages)
	return out, prompt, output
}

// TestPrompts sends several prompts in one request, texts and token ids: each is a request of its own to an engine and to the
// operator, and the choices of all are numbered by prompt, then by n.
func TestPrompts(t *testing.T) {
	r := start(t, 2, func(p vllm.Prompt) vllm.Reply {
		return vllm.Reply{Text: strings.Repeat(fmt.Sprint(p.Text, " ", p.Choice, ";"), 1+p.Choice)}
	}, nil)
	texts := []string{"alpha", "beta", "gamma", "delta", "alpha"}
	var lists [][]uint32
	promptTokens, outputTokens := 0, 0
	want := map[int]plainChoice{}
	for i, text := range texts {
		ids := tok().AppendEncode(nil, text)
		lists = append(lists, ids)
		promptTokens += len(ids)
		for k := range 2 {
			out := strings.Repeat(fmt.Sprint(text, " ", k, ";"), 1+k)
			want[2*i+k] = plainChoice{Text: out, Finish: "stop"}
			outputTokens += len(tok().AppendEncode(nil, out)) + 1
		}
	}
	requests := 0
	for _, prompt := range []any{texts, lists} {
		raw, err := json.Marshal(prompt)
		require.NoError(t, err)
		for _, stream := range []bool{false, true} {
			got, in, out := plainly(t, r.url, fmt.Sprintf(`"prompt":%s,"n":2,"best_of":2,"max_tokens":200`, raw), stream)
			require.Empty(t, cmp.Diff(want, got))
			require.Equal(t, promptTokens, in)
			require.Equal(t, outputTokens, out)
			requests += len(texts)
			recs := r.done(t, requests)
			require.Len(t, recs, requests, "one record for each prompt")
			var ids []string
			for _, rec := range recs {
				ids = append(ids, rec.EngineRequestID)
			}
			slices.Sort(ids)
			require.Len(t, slices.Compact(ids), requests)
		}
	}
	engines := map[string]bool{}
	for _, rec := range r.done(t, requests) {
		engines[rec.Worker] = true
		require.Equal(t, "stop", rec.Finish)
	}
	require.Len(t, engines, 2)
	require.Zero(t, r.gateway.Status("").Running)

	got, _, _ := plainly(t, r.url, `"prompt":["alpha","beta"],"max_tokens":200,"echo":true`, true)
	require.Empty(t, cmp.Diff(map[int]plainChoice{0: {Text: "alphaalpha 0;", Finish: "stop"}, 1: {Text: "betabeta 0;", Finish: "stop"}}, got))
	got, in, _ := plainly(t, r.url, fmt.Sprintf(`"prompt":%v,"max_tokens":0,"echo":true`, strings.ReplaceAll(fmt.Sprint(lists[1]), " ", ",")), false)
	require.Empty(t, cmp.Diff(map[int]plainChoice{0: {Text: "beta", Finish: "length"}}, got))
	require.Equal(t, len(lists[1]), in)
}

// TestPromptsFail checks that the failure of one prompt ends the others and the response, that an engine's failure before
// output is retried for its prompt alone, and that a client that leaves ends all.
func TestPromptsFail(t *testing.T) {
	var failing atomic.Bool
	failing.Store(true)
	var mu sync.Mutex
	running, most := 0, 0
	var slow, first atomic.Int32 // prompts that reached an engine, and that must have before one fails
	script := func(p vllm.Prompt) vllm.Reply {
		switch {
		case p.Text == "bad":
			for slow.Load() < first.Load() {
				time.Sleep(time.Millisecond)
			}
			return vllm.Reply{Text: "some output before it", Fail: vllm.Failure{Mode: vllm.ErrorLine, AfterTokens: 3}}
		case p.Text == "slow":
			slow.Add(1)
			return vllm.Reply{Text: "some output before it", Fail: vllm.Failure{Mode: vllm.Stall, AfterTokens: 2}}
		case p.Text == "once" && failing.CompareAndSwap(true, false):
			return vllm.Reply{Fail: vllm.Failure{Mode: vllm.Refuse}}
		}
		return vllm.Reply{Text: "fine"}
	}
	r := start(t, 2, script, func(o *serve.Options) { o.Retries = 1 })
	got, _, _ := plainly(t, r.url, `"prompt":["a","once","b"]`, true)
	require.Equal(t, map[int]plainChoice{0: {Text: "fine", Finish: "stop"}, 1: {Text: "fine", Finish: "stop"}, 2: {Text: "fine", Finish: "stop"}}, got)
	r.done(t, 3)

	first.Store(2)
	status, _, body := send(t, r.url+"/v1/completions", `{"model":"m","prompt":["slow","slow","bad"]}`)
	require.Equal(t, 502, status, body)
	require.Len(t, r.done(t, 6), 6)
	first.Store(4)
	status, _, body = send(t, r.url+"/v1/completions", `{"model":"m","stream":true,"prompt":["slow","bad","slow"]}`)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"error"`)
	require.NotContains(t, body, "[DONE]")
	recs := r.done(t, 9)
	finishes := map[string]int{}
	for _, rec := range recs[3:] {
		finishes[rec.Finish]++
	}
	require.Equal(t, map[string]int{"engine_failed": 2, "canceled": 4}, finishes)

	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/completions", strings.NewReader(`{"model":"m","stream":true,"prompt":["slow","slow","slow"]}`))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	_, err = resp.Body.Read(make([]byte, 1))
	require.NoError(t, err)
	for slow.Load() < 7 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	resp.Body.Close()
	for _, rec := range r.done(t, 12)[9:] {
		require.Equal(t, "canceled", rec.Finish)
	}
	require.Zero(t, r.gateway.Status("").Running)

	// Prompts take the places of requests that the key and the engine have left, and are never refused for that.
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return answerOf(200, whole), nil
		}}
		g := stubbed(t, 1, s, func(o *serve.Options) { o.Keys = []serve.Key{{Secret: "sk", Concurrent: 3}} })
		defer g.Close()
		w := httptest.NewRecorder()
		hr := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/completions", strings.NewReader(`{"model":"m","prompt":["a","b","c","d","e","f","g","h"]}`))
		hr.Header.Set("Authorization", "Bearer sk")
		g.ServeHTTP(w, hr)
		require.Equal(t, 200, w.Code, w.Body)
		require.Equal(t, 8, s.count(""))
		require.Equal(t, 3, most)

		most = 0
		slots := stubbed(t, 1, s, func(o *serve.Options) { o.Engines[0].MaxRequests, o.QueueTimeout = 2, 1500*time.Millisecond })
		defer slots.Close()
		w = serveOne(t, slots, "/v1/completions", `{"model":"m","prompt":["a","b","c","d","e","f","g","h"]}`)
		require.Equal(t, 200, w.Code, w.Body)
		require.Equal(t, 2, most)
	})
}

// TestEcho checks the log probabilities of a prompt, as harnesses that evaluate models ask for them, with an engine that sends
// them as vLLM does: in the first chunk of a choice, before the output.
func TestEcho(t *testing.T) {
	var mu sync.Mutex
	var asked []object
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req object
		if err := json.Unmarshal(body, &req); err != nil || r.URL.Path != "/v1/completions" {
			t.Error(r.URL.Path, err)
		}
		mu.Lock()
		asked = append(asked, req)
		mu.Unlock()
		var tokens []string
		var values, top []any
		add := func(id uint32) {
			token := string(tok().AppendToken(nil, id))
			tokens = append(tokens, token)
			if len(values) == 0 {
				values, top = append(values, nil), append(top, nil)
				return
			}
			values, top = append(values, -float64(id)), append(top, object{token: -float64(id), "other": -0.5, "rare": -9})
		}
		if req["echo"] == true {
			for _, id := range req["prompt"].([]any) {
				add(uint32(id.(float64)))
			}
		}
		out := tok().AppendEncode(nil, "!")
		if req["seed"] != nil { // the model ends its output at once
			out = tok().EOS()
		}
		add(out[0])
		for i := range int(req["n"].(float64)) {
			b, err := json.Marshal(object{"choices": []object{{"index": i, "text": "!", "token_ids": out[:1], "finish_reason": map[bool]string{true: "stop", false: "length"}[req["seed"] != nil],
				"logprobs": object{"tokens": tokens, "token_logprobs": values, "top_logprobs": top}}}})
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", b)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer s.Close()
	for _, kind := range []upstream.Kind{upstream.VLLM{}, upstream.VLLMTokens{Defaults: "{}"}} {
		asked = nil
		r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: s.URL, Kind: kind}} })
		texts := []string{"The sky is blue.", "Grass"}
		raw, err := json.Marshal([][]uint32{tok().AppendEncode(nil, texts[0]), tok().AppendEncode(nil, texts[1])})
		require.NoError(t, err)
		for _, stream := range []bool{false, true} {
			for _, most := range []int{0, 1} {
				got, _, _ := plainly(t, r.url, fmt.Sprintf(`"prompt":%s,"n":2,"echo":true,"logprobs":1,"max_tokens":%d,"stop":["zzz"]`, raw, most), stream)
				require.Len(t, got, 4)
				for i, c := range got {
					text := texts[i/2]
					ids := tok().AppendEncode(nil, text)
					if most > 0 {
						text += "!"
						ids = append(ids, tok().AppendEncode(nil, "!")[0])
					}
					require.Equal(t, text, c.Text)
					require.Equal(t, "length", c.Finish)
					require.Equal(t, text, strings.Join(c.Tokens, ""))
					require.Len(t, c.Values, len(ids), "one for each token")
					require.Len(t, c.Top, len(ids))
					require.Nil(t, c.Values[0])
					require.Nil(t, c.Top[0])
					for k, id := range ids[1:] {
						require.EqualValues(t, -float64(id), *c.Values[k+1])
						require.Equal(t, map[string]float64{"other": -0.5}, c.Top[k+1], "the best")
						require.Equal(t, len([]rune(strings.Join(c.Tokens[:k+1], ""))), c.Offsets[k+1])
					}
				}
			}
		}
		got, _, _ := plainly(t, r.url, `"prompt":"Grass","n":2,"echo":true,"logprobs":1,"max_tokens":1,"seed":1`, true)
		require.Equal(t, "Grass", got[0].Text)
		require.Equal(t, "stop", got[0].Finish)
		require.Len(t, got[0].Values, len(tok().AppendEncode(nil, "Grass"))+1, "the token that ends the output has one, too")
		for _, a := range asked {
			require.EqualValues(t, 1, a["max_tokens"])
			require.Equal(t, true, a["return_token_ids"])
		}
		status, _, text := send(t, r.url+"/v1/completions", `{"model":"m","echo":true,"logprobs":20,"prompt":"`+strings.Repeat("word ", 20_000)+`"}`)
		require.Equal(t, 400, status)
		require.Contains(t, text, "at most 5957 tokens")
	}
}

// TestPromptSalt checks that the prompts of isolated tenants reach engines with their salt.
func TestPromptSalt(t *testing.T) {
	s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }}
	g := stubbed(t, 1, s, func(o *serve.Options) {
		o.Keys, o.Engines[0].Kind = []serve.Key{{Secret: "sk-1", Tenant: "ops"}, {Secret: "sk-2"}}, upstream.TensorRTLLM{}
	})
	defer g.Close()
	for key, status := range map[string]int{"sk-1": 400, "sk-2": 200} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/completions", strings.NewReader(`{"model":"m","prompt":["a","b"]}`))
		r.Header.Set("Authorization", "Bearer "+key)
		g.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, w.Body)
		require.Equal(t, status == 400, strings.Contains(w.Body.String(), "cannot keep cached prompts apart"), w.Body)
	}
}
