// SPDX-License-Identifier: Apache-2.0

package vllm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func tokenizer(testing.TB) *tokenizers.Tokenizer { return mini.Load() }

// serve starts an engine with infinite speed and returns it with its URL.
func serve(t testing.TB, o vllm.Options) (*vllm.Engine, string) {
	t.Helper()
	if o.Speed == 0 {
		o.Speed = math.Inf(1)
	}
	e := vllm.New(tokenizer(t), &o)
	s := httptest.NewServer(e)
	t.Cleanup(func() {
		e.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return e, s.URL
}

func post(t testing.TB, url string, body any) (int, string) {
	t.Helper()
	data, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		require.NoError(t, err)
		data = string(b)
	}
	resp, err := http.Post(url, "application/json", strings.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

func get(t testing.TB, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

type answer struct {
	Choices []struct {
		Index        int
		Text         string
		FinishReason *string  `json:"finish_reason"`
		StopReason   any      `json:"stop_reason"`
		TokenIDs     []uint32 `json:"token_ids"`
		PromptIDs    []uint32 `json:"prompt_token_ids"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Error *struct {
		Message, Type string
		Code          int
	}
}

func say(text string) vllm.Script {
	return func(vllm.Prompt) vllm.Reply { return vllm.Reply{Text: text} }
}

// stream posts a streaming request and returns its chunks, and whether [DONE] arrived.
func stream(t testing.TB, url string, body map[string]any) (chunks []answer, done bool) {
	t.Helper()
	body["stream"] = true
	status, text := post(t, url+"/v1/completions", body)
	require.Equal(t, 200, status, text)
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			require.Empty(t, strings.TrimSpace(line))
			continue
		}
		require.False(t, done, "data after [DONE]")
		if done = data == "[DONE]"; done {
			continue
		}
		var a answer
		require.NoError(t, json.Unmarshal([]byte(data), &a))
		chunks = append(chunks, a)
	}
	return chunks, done
}

func TestStreamAndWholeAgree(t *testing.T) {
	const text = "<think>\nHm.\n</think>\n\nGrüße, 世界! <tool_call>\n{\"name\": \"ls\"}\n</tool_call>"
	_, url := serve(t, vllm.Options{Script: say(text)})
	tok := tokenizer(t)
	want := append(tok.AppendEncode(nil, text), tok.EOS()[0])
	req := map[string]any{"model": "embedded", "prompt": "hello there", "max_tokens": 500, "return_token_ids": true,
		"skip_special_tokens": false, "stream_options": map[string]any{"include_usage": true}}

	chunks, done := stream(t, url, req)
	require.True(t, done)
	var got strings.Builder
	var ids []uint32
	for _, c := range chunks[:len(chunks)-1] {
		require.Len(t, c.Choices, 1)
		require.Nil(t, c.Usage)
		got.WriteString(c.Choices[0].Text)
		ids = append(ids, c.Choices[0].TokenIDs...)
	}
	require.Len(t, chunks, len(want)+1, "a chunk per token, then usage")
	require.Equal(t, text, got.String())
	require.Equal(t, want, ids)
	require.Equal(t, tok.AppendEncode(nil, "hello there"), chunks[0].Choices[0].PromptIDs)
	require.Equal(t, "stop", *chunks[len(chunks)-2].Choices[0].FinishReason)
	last := chunks[len(chunks)-1]
	require.Empty(t, last.Choices)
	require.Equal(t, len(want), last.Usage.Completion)

	req["stream"] = false
	req["prompt"] = tok.AppendEncode(nil, "hello there")
	delete(req, "stream_options")
	_, body := post(t, url+"/v1/completions", req)
	var whole answer
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	require.Equal(t, text, whole.Choices[0].Text)
	require.Equal(t, want, whole.Choices[0].TokenIDs)
	require.Equal(t, *last.Usage, *whole.Usage)
}

func TestContinuousUsage(t *testing.T) {
	_, url := serve(t, vllm.Options{Script: say("one two three")})
	chunks, done := stream(t, url, map[string]any{"prompt": "x", "max_tokens": 2, "stream_options": map[string]any{"continuous_usage_stats": true}})
	require.True(t, done)
	require.Len(t, chunks, 3, "two tokens and the end")
	for i, want := range []int{1, 2, 2} {
		require.Equal(t, want, chunks[i].Usage.Completion)
	}
}

// TestChoices requests several choices for one prompt: they differ, share the prompt, and a failing one ends all.
func TestChoices(t *testing.T) {
	replies := []string{"one two three", "uno", "one two three", "eins zwei drei vier"}
	var reports []vllm.Report
	e, url := serve(t, vllm.Options{BlockSize: 2, Script: func(p vllm.Prompt) vllm.Reply {
		r := vllm.Reply{Text: replies[p.Choice]}
		if p.Text == "fail" && p.Choice == 1 {
			r.Fail = vllm.Failure{Mode: vllm.ErrorLine, AfterTokens: 1}
		}
		return r
	}, OnFinish: func(r vllm.Report) { reports = append(reports, r) }})
	held := map[uint64]int{}
	defer e.Subscribe(func(b kvevent.Batch) {
		for _, ev := range b.Events {
			for _, h := range ev.BlockHashes {
				held[h]++
			}
		}
	})()
	tok := tokenizer(t)
	tokens := 0
	for _, s := range replies {
		tokens += min(len(tok.AppendEncode(nil, s))+1, 6)
	}
	req := map[string]any{"prompt": "the quick brown fox jumps", "max_tokens": 6, "n": 4, "return_token_ids": true, "stream_options": map[string]any{"include_usage": true}}

	chunks, done := stream(t, url, req)
	require.True(t, done)
	got, ids, finish := make([]string, 4), make([][]uint32, 4), make([]string, 4)
	order := ""
	for _, c := range chunks[:len(chunks)-1] {
		require.Len(t, c.Choices, 1)
		ch := c.Choices[0]
		require.Empty(t, finish[ch.Index], "nothing follows the finish reason")
		got[ch.Index] += ch.Text
		ids[ch.Index] = append(ids[ch.Index], ch.TokenIDs...)
		if order += fmt.Sprint(ch.Index); ch.FinishReason != nil {
			finish[ch.Index] = *ch.FinishReason
		}
	}
	require.Equal(t, "0123", order[:4], "a token of each at a time")
	for i, s := range replies {
		want := append(tok.AppendEncode(nil, s), tok.EOS()[0])
		if len(want) > 6 {
			want = want[:6]
			require.Equal(t, "length", finish[i])
		} else {
			require.Equal(t, "stop", finish[i])
			require.Equal(t, s, got[i])
		}
		require.Equal(t, want, ids[i])
	}
	usage := *chunks[len(chunks)-1].Usage
	require.Equal(t, tokens, usage.Completion, "of all choices")
	require.Equal(t, len(tok.AppendEncode(nil, "the quick brown fox jumps")), usage.Prompt, "once")
	for h, n := range held {
		require.Equal(t, 1, n, "block %x was stored twice", h)
	}
	require.Equal(t, "length", reports[0].Finish)

	req["stream"] = false
	_, body := post(t, url+"/v1/completions", req)
	var whole answer
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	require.Len(t, whole.Choices, 4)
	for i, ch := range whole.Choices {
		require.Equal(t, []any{i, got[i], finish[i], ids[i]}, []any{ch.Index, ch.Text, *ch.FinishReason, ch.TokenIDs})
	}
	require.Equal(t, usage.Completion, whole.Usage.Completion)
	require.Contains(t, get(t, url+"/metrics"), "vllm:kv_cache_usage_perc{model_name=\"embedded\"} 0\n", "every pin is gone")

	chunks, done = stream(t, url, map[string]any{"prompt": "fail", "n": 2})
	require.True(t, done)
	require.NotNil(t, chunks[len(chunks)-1].Error)
	require.Contains(t, get(t, url+"/metrics"), "vllm:kv_cache_usage_perc{model_name=\"embedded\"} 0\n", "also of one that failed")
}

func TestSkipSpecialTokens(t *testing.T) {
	_, url := serve(t, vllm.Options{Script: say("a<|im_start|>b<think>c")})
	for skip, want := range map[any]string{true: "ab<think>c", false: "a<|im_start|>b<think>c", nil: "ab<think>c"} {
		req := map[string]any{"prompt": "x", "max_tokens": 100}
		if skip != nil {
			req["skip_special_tokens"] = skip
		}
		_, body := post(t, url+"/v1/completions", req)
		var a answer
		require.NoError(t, json.Unmarshal([]byte(body), &a))
		require.Equal(t, want, a.Choices[0].Text)
	}
}

func TestStopAndLength(t *testing.T) {
	const text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
	_, url := serve(t, vllm.Options{Script: say(text)})
	tests := map[string]struct {
		req    map[string]any
		text   string
		finish string
		reason any
	}{
		"string":        {map[string]any{"stop": " four"}, "one two three", "stop", " four"},
		"first of list": {map[string]any{"stop": []string{"x", "ree f", "two"}}, "one ", "stop", "two"},
		"included":      {map[string]any{"stop": "two", "include_stop_str_in_output": true}, "one two", "stop", "two"},
		"no hit":        {map[string]any{"stop": "seventeenth"}, text, "stop", nil},
		"length":        {map[string]any{"max_tokens": 1}, "", "length", nil},
		"default 16":    {map[string]any{"max_tokens": nil}, "", "length", nil},
	}
	tok := tokenizer(t)
	ids := tok.AppendEncode(nil, text)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := map[string]any{"prompt": "count", "max_tokens": 500}
			maps.Copy(req, tt.req)
			want := tt.text
			if tt.finish == "length" {
				n := 16
				if m, ok := tt.req["max_tokens"].(int); ok {
					n = m
				}
				want = string(tok.AppendDecode(nil, ids[:n], true))
			}
			_, body := post(t, url+"/v1/completions", req)
			var whole answer
			require.NoError(t, json.Unmarshal([]byte(body), &whole))
			c := whole.Choices[0]
			require.Equal(t, []any{want, tt.finish, tt.reason}, []any{c.Text, *c.FinishReason, c.StopReason})

			chunks, done := stream(t, url, req)
			require.True(t, done)
			var got strings.Builder
			for _, c := range chunks {
				got.WriteString(c.Choices[0].Text)
			}
			c = chunks[len(chunks)-1].Choices[0]
			require.Equal(t, []any{want, tt.finish, tt.reason}, []any{got.String(), *c.FinishReason, c.StopReason})
		})
	}
}

func TestPrefixCacheAndEvents(t *testing.T) {
	var mu sync.Mutex
	var batches []kvevent.Batch
	var reports []vllm.Report
	e, url := serve(t, vllm.Options{BlockSize: 4, Blocks: 12, Script: say("zero one two three four five six seven eight nine ten eleven twelve"),
		OnFinish: func(r vllm.Report) { mu.Lock(); reports = append(reports, r); mu.Unlock() }})
	cancel := e.Subscribe(func(b kvevent.Batch) { batches = append(batches, b) })
	prompt := make([]uint32, 18)
	for i := range prompt {
		prompt[i] = uint32(i + 40)
	}
	ask := func(prompt []uint32) int {
		_, body := post(t, url+"/v1/completions", map[string]any{"prompt": prompt, "max_tokens": 11})
		var a answer
		require.NoError(t, json.Unmarshal([]byte(body), &a))
		return a.Usage.Details.Cached
	}
	require.Equal(t, 0, ask(prompt))
	require.Equal(t, 16, ask(prompt))
	require.Equal(t, 8, ask(append(prompt[:10:10], 1, 2, 3, 4)))

	// The first request stored 4 prompt blocks, then 3 of prompt tail and output: 18+11 = 29 tokens, the last of them
	// not yet computed.
	require.Len(t, batches[0].Events, 1)
	first := batches[0].Events[0]
	require.Equal(t, kvevent.Stored, first.Kind)
	require.False(t, first.HasParent)
	require.Equal(t, prompt[:16], first.TokenIDs)
	stored, held := 0, map[uint64]bool{}
	for i, b := range batches {
		require.EqualValues(t, i+1, b.Seq)
		for _, ev := range b.Events {
			for _, h := range ev.BlockHashes {
				held[h] = ev.Kind == kvevent.Stored
			}
			if ev.Kind == kvevent.Stored {
				stored += len(ev.BlockHashes)
				require.Len(t, ev.TokenIDs, 4*len(ev.BlockHashes))
				require.True(t, !ev.HasParent || held[ev.Parent])
			}
		}
	}
	require.Equal(t, 7+4, stored, "the third request shares 2 of its 3+3 blocks")

	cancel()
	n := len(batches)
	ask([]uint32{1, 2, 3, 4, 5, 6, 7, 8})
	require.Len(t, batches, n)
	var late []kvevent.Batch
	defer e.Subscribe(func(b kvevent.Batch) { late = append(late, b) })()
	require.Len(t, late, 1, "a late subscriber first gets what is there")
	require.Greater(t, late[0].Seq, batches[n-1].Seq)
	require.Equal(t, kvevent.Cleared, late[0].Events[0].Kind)

	mu.Lock()
	defer mu.Unlock()
	require.Len(t, reports, 4)
	require.Equal(t, 16, reports[1].CachedTokens)
	require.Contains(t, get(t, url+"/metrics"), `vllm:prefix_cache_hits_total{model_name="embedded"} 24`)
}

func TestErrors(t *testing.T) {
	_, url := serve(t, vllm.Options{MaxModelLen: 100, MaxBody: 2000})
	tests := map[string]struct {
		body   any
		status int
		kind   string
		has    string
	}{
		"malformed":     {`{"prompt": `, 400, "BadRequestError", "JSON"},
		"model":         {map[string]any{"model": "gpt", "prompt": "x"}, 404, "NotFoundError", "The model `gpt` does not exist."},
		"no prompt":     {map[string]any{}, 400, "BadRequestError", "prompt"},
		"empty prompt":  {map[string]any{"prompt": ""}, 400, "BadRequestError", "empty"},
		"two prompts":   {map[string]any{"prompt": []string{"a", "b"}}, 400, "BadRequestError", "one text"},
		"out of vocab":  {map[string]any{"prompt": []uint32{1 << 30}}, 400, "BadRequestError", "out of vocabulary"},
		"negative id":   {map[string]any{"prompt": []int{-1}}, 400, "BadRequestError", "one text"},
		"no tokens":     {map[string]any{"prompt": "x", "max_tokens": 0}, 400, "BadRequestError", "at least 1"},
		"n":             {map[string]any{"prompt": "x", "n": 0}, 400, "BadRequestError", "at least 1"},
		"too many":      {map[string]any{"prompt": "x", "n": 129}, 400, "BadRequestError", "at most 128"},
		"stop":          {map[string]any{"prompt": "x", "stop": 7}, 400, "BadRequestError", "stop"},
		"too long":      {map[string]any{"prompt": "x", "max_tokens": 100}, 400, "BadRequestError", "maximum context length is 100 tokens"},
		"far too long":  {map[string]any{"prompt": "x", "max_tokens": math.MaxInt}, 400, "BadRequestError", "maximum context length is 100 tokens"},
		"body too big":  {map[string]any{"prompt": strings.Repeat("x", 3000)}, 413, "BadRequestError", "2000"},
		"ignored field": {map[string]any{"prompt": "x", "frobnicate": []int{1}}, 200, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, body := post(t, url+"/v1/completions", tt.body)
			require.Equal(t, tt.status, status, body)
			var a answer
			require.NoError(t, json.Unmarshal([]byte(body), &a))
			if tt.status == 200 {
				require.Nil(t, a.Error)
				return
			}
			require.Equal(t, tt.kind, a.Error.Type)
			require.Equal(t, tt.status, a.Error.Code)
			require.Contains(t, a.Error.Message, tt.has)
		})
	}
	status, _ := post(t, url+"/v1/nothing", "{}")
	require.Equal(t, 404, status)
}

func TestFailures(t *testing.T) {
	fail := vllm.Failure{AfterTokens: 3}
	_, url := serve(t, vllm.Options{Script: func(p vllm.Prompt) vllm.Reply {
		f := fail
		switch p.Text {
		case "refuse":
			f.Mode = vllm.Refuse
		case "cut":
			f.Mode = vllm.Cut
		case "line":
			f.Mode = vllm.ErrorLine
		default:
			f = vllm.Failure{}
		}
		return vllm.Reply{Text: "one two three four five six", Fail: f}
	}})
	status, body := post(t, url+"/v1/completions", map[string]any{"prompt": "refuse"})
	require.Equal(t, 500, status)
	require.Contains(t, body, "InternalServerError")

	chunks, done := stream(t, url, map[string]any{"prompt": "line"})
	require.True(t, done)
	require.Len(t, chunks, 4)
	require.Equal(t, 500, chunks[3].Error.Code)
	status, _ = post(t, url+"/v1/completions", map[string]any{"prompt": "line"})
	require.Equal(t, 500, status)

	for _, streaming := range []bool{true, false} {
		b, err := json.Marshal(map[string]any{"prompt": "cut", "stream": streaming})
		require.NoError(t, err)
		resp, err := http.Post(url+"/v1/completions", "application/json", bytes.NewReader(b))
		if err == nil {
			b, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			require.Equal(t, 3, strings.Count(string(b), "data: "))
		}
		require.Error(t, err, "the connection breaks")
	}
	_, done = stream(t, url, map[string]any{"prompt": "ok"})
	require.True(t, done, "and the engine goes on")
}

// TestDisconnect checks that a request that would run for hours ends when its client disconnects, and that its blocks
// are unpinned.
func TestDisconnect(t *testing.T) {
	finished := make(chan vllm.Report, 1)
	_, url := serve(t, vllm.Options{Speed: 1, Timing: vllm.Timing{PrefillPerSecond: 1e9, DecodePerToken: time.Hour},
		OnFinish: func(r vllm.Report) { finished <- r }})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/completions",
		strings.NewReader(`{"prompt":"the quick brown fox jumps over the lazy dog again and again","stream":true}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = resp.Body.Read(make([]byte, 10))
	require.NoError(t, err)
	cancel()
	require.Equal(t, "abort", (<-finished).Finish)
	m := get(t, url+"/metrics")
	require.Contains(t, m, "vllm:num_requests_running{model_name=\"embedded\"} 0\n")
	require.Contains(t, m, "vllm:kv_cache_usage_perc{model_name=\"embedded\"} 0\n")
	require.Contains(t, m, `finished_reason="abort"} 1`)
}

// TestCloseEndsRequests checks that Close breaks a running stream.
func TestCloseEndsRequests(t *testing.T) {
	e, url := serve(t, vllm.Options{Speed: 1, Timing: vllm.Timing{PrefillPerSecond: 1e9, DecodePerToken: time.Hour}})
	resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x x","stream":true}`))
	require.NoError(t, err)
	defer resp.Body.Close()
	e.Close()
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
	status, _ := post(t, url+"/v1/completions", `{"prompt":"x"}`)
	require.Equal(t, 503, status)
}

// TestTiming checks the modeled times on a fake clock.
func TestTiming(t *testing.T) {
	for _, speed := range []float64{1, 10, math.Inf(1)} {
		t.Run(fmt.Sprint(speed), func(t *testing.T) {
			tok := tokenizer(t)
			synctest.Test(t, func(t *testing.T) {
				var reports []vllm.Report
				e := vllm.New(tok, &vllm.Options{Script: say("one two three four five six"), Speed: speed, BlockSize: 10,
					Timing:   vllm.Timing{Base: 100 * time.Millisecond, PrefillPerSecond: 100, DecodePerToken: 50 * time.Millisecond},
					OnFinish: func(r vllm.Report) { reports = append(reports, r) }})
				defer e.Close()
				prompt, err := json.Marshal(map[string]any{"prompt": make([]uint32, 50), "max_tokens": 3})
				require.NoError(t, err)
				start := time.Now()
				for range 2 {
					w := httptest.NewRecorder()
					e.ServeHTTP(w, request(t.Context(), string(prompt)))
					require.Equal(t, 200, w.Code)
				}
				ms := time.Millisecond
				want := []vllm.Report{
					{RequestID: "1", PromptTokens: 50, OutputTokens: 3, FirstToken: 600 * ms, Total: 700 * ms, Finish: "length"},
					{RequestID: "2", PromptTokens: 50, CachedTokens: 40, OutputTokens: 3, FirstToken: 200 * ms, Total: 300 * ms, Finish: "length"},
				}
				require.Empty(t, cmp.Diff(want, reports))
				require.Equal(t, time.Duration(float64(time.Second)/speed), time.Since(start))
			})
		})
	}
}

// TestOverload fills the one running and the one waiting slot.
func TestOverload(t *testing.T) {
	tok := tokenizer(t)
	synctest.Test(t, func(t *testing.T) {
		e := vllm.New(tok, &vllm.Options{MaxRunning: 1, MaxWaiting: 1, Timing: vllm.Timing{Base: time.Second}})
		var wg sync.WaitGroup
		codes := make([]int, 3)
		for i := range codes {
			wg.Go(func() {
				w := httptest.NewRecorder()
				e.ServeHTTP(w, request(t.Context(), `{"prompt":"x"}`))
				codes[i] = w.Code
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, []int{200, 200, 503}, codes)
		e.Close()
	})
}

// TestQueued has one request wait for the only slot, and another one disconnect before its prefill.
func TestQueued(t *testing.T) {
	tok := tokenizer(t)
	for name, running := range map[string]int{"for a slot": 1, "for the prefill": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var reports []vllm.Report
				e := vllm.New(tok, &vllm.Options{MaxRunning: running, OnFinish: func(r vllm.Report) { mu.Lock(); reports = append(reports, r); mu.Unlock() },
					Timing: vllm.Timing{Base: time.Second, PrefillPerSecond: 1e9, DecodePerToken: time.Nanosecond}})
				ask := func(ctx context.Context) {
					r := request(ctx, `{"prompt":[1,2,3,4,5],"max_tokens":1}`)
					defer func() { _ = recover() }() // http.ErrAbortHandler
					e.ServeHTTP(httptest.NewRecorder(), r)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				var wg sync.WaitGroup
				for _, ctx := range []context.Context{t.Context(), t.Context(), ctx} {
					wg.Go(func() { ask(ctx) })
					synctest.Wait()
				}
				wg.Wait()
				var first []time.Duration
				for _, r := range reports {
					if r.Finish == "length" {
						first = append(first, r.FirstToken.Truncate(time.Millisecond))
					}
				}
				require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, first)
				w := httptest.NewRecorder()
				e.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
				for _, line := range []string{"prefix_cache_queries_total", "prompt_tokens_total"} {
					require.Contains(t, w.Body.String(), "vllm:"+line+"{model_name=\"embedded\"} 10\n")
				}
				e.Close()
			})
		})
	}
}

func TestParallel(t *testing.T) {
	e, url := serve(t, vllm.Options{BlockSize: 2, Blocks: 20, MaxRunning: 4})
	held := map[uint64]bool{}
	var seq uint64
	defer e.Subscribe(func(b kvevent.Batch) {
		if seq++; seq != b.Seq {
			t.Errorf("batch %d instead of %d", b.Seq, seq)
		}
		for _, ev := range b.Events {
			for _, h := range ev.BlockHashes {
				if held[h] == (ev.Kind == kvevent.Stored) {
					t.Errorf("block %x stored twice or removed twice", h)
				}
				held[h] = ev.Kind == kvevent.Stored
			}
		}
	})()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 5 {
				text := strings.Repeat(fmt.Sprint("word ", (i+k)%4, " "), 4)
				_, body := post(t, url+"/v1/completions", map[string]any{"prompt": text, "max_tokens": 100, "stream": k%2 == 0})
				if !strings.Contains(body, `"stop"`) {
					t.Errorf("answer %q", body)
				}
			}
		})
	}
	wg.Wait()
}

func TestSmallEndpoints(t *testing.T) {
	_, url := serve(t, vllm.Options{Model: "m"})
	require.Empty(t, get(t, url+"/health"))
	require.Contains(t, get(t, url+"/v1/models"), `"id":"m"`)
	require.Contains(t, get(t, url+"/version"), `"version"`)
	_, body := post(t, url+"/tokenize", map[string]any{"prompt": "hello <think>"})
	var r struct {
		Count  int
		Tokens []uint32
		Max    int `json:"max_model_len"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	require.Equal(t, tokenizer(t).AppendEncode(nil, "hello <think>"), r.Tokens)
	require.Equal(t, len(r.Tokens), r.Count)
	_, body = post(t, url+"/detokenize", map[string]any{"tokens": r.Tokens})
	require.JSONEq(t, `{"prompt":"hello <think>"}`, body)
	status, _ := post(t, url+"/tokenize", map[string]any{"messages": []int{}})
	require.Equal(t, 400, status)
	status, _ = post(t, url+"/detokenize", map[string]any{"tokens": []uint32{1 << 30}})
	require.Equal(t, 400, status)
}

func TestRules(t *testing.T) {
	s := vllm.Rules(vllm.Rule{When: "apple", Say: "A"}, vllm.Rule{When: "apple pie", Say: "P"}, vllm.Rule{When: "pear", Say: "B"})
	require.Equal(t, "A", s(vllm.Prompt{Text: "an apple"}).Text)
	require.Equal(t, "P", s(vllm.Prompt{Text: "an apple pie"}).Text)
	require.Equal(t, "B", s(vllm.Prompt{Text: "an apple, then a pear."}).Text)
	require.Equal(t, []uint32{7}, s(vllm.Prompt{Text: "hi", User: []uint32{7}}).IDs)
}

// TestFollow reads the events of an engine over HTTP, including a reconnect.
func TestFollow(t *testing.T) {
	e := vllm.New(tokenizer(t), &vllm.Options{BlockSize: 2, Speed: math.Inf(1)})
	s := httptest.NewServer(e)
	defer func() { e.Close(); s.Close() }()
	defer http.DefaultClient.CloseIdleConnections()
	ask := func() {
		post(t, s.URL+"/v1/completions", map[string]any{"prompt": []uint32{1, 2, 3, 4, 5, 6}, "max_tokens": 1})
	}
	ask()
	x := index.New(2, nil)
	id := x.AddWorker(index.Key{Instance: "e"})
	batches := make(chan kvevent.Batch, 100)
	stream := x.NewStream(id, &index.StreamOptions{OnBatch: func(b *kvevent.Batch) { batches <- b.Clone() }})
	state := func(want index.State, why string, blocks int) {
		t.Helper()
		deadline := time.Now().Add(5 * time.Second)
		for {
			w, _ := x.Worker(id)
			if w.State == want && w.Why == why && w.Blocks == blocks {
				return
			}
			require.True(t, time.Now().Before(deadline), "%+v", w)
			time.Sleep(time.Millisecond)
		}
	}
	next := func(kind kvevent.Kind, blocks int) {
		t.Helper()
		b := <-batches
		require.Equal(t, kind, b.Events[0].Kind)
		n := 0
		for _, ev := range b.Events {
			n += len(ev.BlockHashes)
		}
		require.Equal(t, blocks, n)
	}
	cancel, err := vllm.Follow(s.URL, nil)(stream)
	require.NoError(t, err)
	next(kvevent.Cleared, 0) // empty before the first batch
	next(kvevent.Cleared, 3) // with the content of the cache
	state(index.Exact, "", 3)
	post(t, s.URL+"/v1/completions", map[string]any{"prompt": []uint32{9, 8, 7, 6}, "max_tokens": 1})
	next(kvevent.Stored, 2)
	s.CloseClientConnections()
	next(kvevent.Cleared, 0) // the connection is lost
	next(kvevent.Cleared, 5) // and comes back
	state(index.Exact, "", 5)
	cancel()
	next(kvevent.Cleared, 0) // empty after the end
	state(index.Unknown, "the connection to the engine's events is lost", 0)
	require.Empty(t, batches)
}

// request returns a completion request.
func request(ctx context.Context, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// TestMediaType checks that a request that is not declared as JSON is refused, as by vLLM.
func TestMediaType(t *testing.T) {
	_, url := serve(t, vllm.Options{})
	for typ, want := range map[string]int{"application/json": 200, "Application/JSON; charset=utf-8": 200, "": 400, "application/x-www-form-urlencoded": 400} {
		resp, err := http.Post(url+"/v1/completions", typ, strings.NewReader(`{"prompt":"x","max_tokens":1}`))
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode, "%q: %s", typ, text)
	}
}
