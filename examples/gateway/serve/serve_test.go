// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/template"
)

func TestStreams(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	for i, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			status, h, body := send(t, r.url+a.path+"?beta=true", a.body("Look around.", true))
			require.Equal(t, 200, status, body)
			require.Equal(t, "text/event-stream", h.Get("Content-Type"))
			require.NotEmpty(t, h.Get("X-Request-Id"))
			got := a.gather(t, body)
			want := gathered{
				Reasoning: "I need two looks.", Text: "Looking.",
				Calls:  []string{`read({"path": "a.go"})`, `grep({"pattern": "x+"})`},
				Finish: []string{"tool_calls", "completed", "tool_use"}[i],
				Output: len(tok().AppendEncode(nil, answer)) + 1,
				Prompt: len(r.prompts[0].IDs),
				Cached: got.Cached,
			}
			require.Empty(t, cmp.Diff(want, got))
			if i > 0 { // all three render to the same prompt, so the second hits the cache of the first
				require.Equal(t, r.prompts[0].Text, r.prompts[i].Text)
				require.Equal(t, (want.Prompt-1)/16*16, got.Cached)
			}
			rec := r.done(t, i+1)[i]
			require.Equal(t, a.name, rec.API)
			require.Equal(t, "e0", rec.Worker)
			require.NotEmpty(t, rec.Decision.Why())
			require.Equal(t, got.Cached, rec.Decision.CachedEstimate, "the router knew what the engine had")
			require.Positive(t, rec.Usage.Reasoning)
			require.False(t, rec.Usage.ReasoningEstimated)
		})
	}
}

func TestWholeAnswers(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			status, h, body := send(t, r.url+a.path, a.body("Look around.", false))
			require.Equal(t, 200, status, body)
			require.Equal(t, "application/json", h.Get("Content-Type"))
			for _, part := range []string{`I need two looks.`, `Looking.`, `a.go`, `x+`, `"grep"`} {
				require.Contains(t, body, part)
			}
			require.True(t, json.Valid([]byte(body)))
			require.NotContains(t, body, "<tool_call>")
		})
	}
}

// TestEngineRequest checks the request to a foreign engine, whose response has no ids and no cached tokens.
func TestEngineRequest(t *testing.T) {
	var mu sync.Mutex
	var got []map[string]any
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if json.NewDecoder(r.Body).Decode(&body) != nil || r.URL.Path != "/v1/completions" || r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(400)
			return
		}
		mu.Lock()
		got = append(got, body)
		mu.Unlock()
		for _, c := range []string{
			`{"choices":[{"index":0,"text":"<think>\nhm"}]}`, `{"choices":[{"index":0,"text":"\n</thi"}]}`,
			`{"choices":[{"index":0,"text":"nk>\n\nyes"}]}`, `{"choices":[{"index":0,"text":"","finish_reason":"stop","stop_reason":"END"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}`, `[DONE]`,
		} {
			fmt.Fprintf(w, ": a comment\n\ndata: %s\n\n", c)
		}
	}))
	defer engine.Close()
	r := start(t, 0, nil, func(o *serve.Options) {
		o.MaxModelLen = 5000
		o.Engines = []serve.Engine{{URL: engine.URL + "/v1/", APIKey: "key"}}
	})
	for _, a := range apiCases {
		body := a.body("Hm?", true)
		delete(body, "max_tokens")
		if a.name == "messages" {
			body["max_tokens"], body["stop_sequences"], body["top_k"] = 100000, []string{"END"}, 7
		} else if a.name == "chat" {
			body["stop"], body["temperature"], body["seed"] = "END", 0.5, 3
		}
		_, _, text := send(t, r.url+a.path, body)
		w := a.gather(t, text)
		require.Equal(t, "hm", w.Reasoning)
		require.Equal(t, "yes", w.Text)
		require.Equal(t, 7, w.Output)
		require.Empty(t, w.Error)
	}
	for i, req := range got {
		ids := req["prompt"].([]any)
		require.Greater(t, len(ids), 20)
		require.IsType(t, 1.0, ids[0], "prompts go out as token ids")
		require.EqualValues(t, 5000-len(ids), req["max_tokens"], "always given, never beyond the window")
		require.Equal(t, false, req["skip_special_tokens"])
		require.Equal(t, "m", req["model"])
		require.Equal(t, i == 1, req["return_token_ids"], "not with stop strings")
	}
	require.Equal(t, []any{"END"}, got[0]["stop"])
	require.EqualValues(t, 0.5, got[0]["temperature"])
	require.EqualValues(t, 7, got[2]["top_k"])
	rec := r.done(t, 3)
	require.True(t, rec[0].Usage.ReasoningEstimated)
	require.True(t, rec[0].Usage.CachedEstimated)
}

func TestRefusedRequests(t *testing.T) {
	r := start(t, 1, say("fine"), func(o *serve.Options) { o.MaxBody, o.MaxModelLen = 20000, 600 })
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			with := func(key string, v any) object { b := a.body("x", true); b[key] = v; return b }
			without := func(key string) object { b := a.body("x", true); delete(b, key); return b }
			invalid := "invalid_request_error"
			notFound, tooLarge := invalid, invalid
			if a.anthropic {
				notFound, tooLarge = "not_found_error", "request_too_large"
			}
			tooLong := "maximum context length is 600 tokens"
			if a.anthropic {
				tooLong = "prompt is too long: "
			}
			for _, tt := range []struct {
				name    string
				body    any
				header  []string
				status  int
				typ     string
				message string
			}{
				{"malformed JSON", `{"model":"m",`, nil, 400, invalid, "at byte"},
				{"not an object", `[1]`, nil, 400, invalid, ""},
				{"duplicate key", `{"model":"m","model":"m"}`, nil, 400, invalid, "model"},
				{"unknown model", with("model", "gpt-7"), nil, 404, notFound, "gpt-7"},
				{"no model", without("model"), nil, 400, invalid, "A model is required."},
				{"empty model", with("model", ""), nil, 400, invalid, "A model is required."},
				{"empty", object{"model": "m", "messages": []any{}, "input": []any{}}, nil, 400, invalid, "empty"},
				{"nothing", object{"model": "m"}, nil, 400, invalid, ""},
				{"no output", func() object {
					b := a.body("x", true)
					b["max_tokens"], b["max_output_tokens"] = 0, 0
					if a.anthropic {
						b["max_tokens"] = -1 // 0 fills the cache
					}
					return b
				}(), nil, 400, invalid, "at least 1"},
				{"unknown family", a.body("x", true), []string{"X-Weft-Tool-Call-Parser", "klingon"}, 400, invalid, "klingon"},
				{"body too large", with("model", strings.Repeat("m", 30000)), nil, 413, tooLarge, "20000"},
				{"unknown coding", a.body("x", true), []string{"Content-Encoding", "br"}, 415, invalid, "gzip, zstd or none"},
				{"not zstd", a.body("x", true), []string{"Content-Encoding", "zstd"}, 400, invalid, "Content-Encoding says: zstd"},
				{"not gzip", a.body("x", true), []string{"Content-Encoding", "gzip"}, 400, invalid, "Content-Encoding says: gzip"},
				{"prompt too long", a.body(strings.Repeat("one two three ", 500), true), nil, 400, invalid, tooLong},
			} {
				t.Run(tt.name, func(t *testing.T) {
					status, _, body := send(t, r.url+a.path, tt.body, tt.header...)
					a.wantError(t, status, body, tt.status, tt.typ, tt.message)
				})
			}
			paths := []string{a.path}
			switch a.name {
			case "responses":
				paths = append(paths, a.path+"/input_tokens")
			case "messages":
				paths = append(paths, a.path+"/count_tokens")
			}
			for _, path := range paths {
				resp, err := http.Get(r.url + path)
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				resp.Body.Close()
				a.wantError(t, resp.StatusCode, string(body), 405, invalid, "Use POST "+path+".")
				require.Equal(t, "POST", resp.Header.Get("Allow"))
			}

			_, _, body := send(t, r.url+a.path, a.body("x", true))
			require.Equal(t, "fine", a.gather(t, body).Text, "the gateway goes on")
		})
	}
	status, _, body := send(t, r.url+"/v1/moderations", "{}")
	apiCases[0].wantError(t, status, body, 404, "invalid_request_error", "/v1/moderations")
	status, _, body = send(t, r.url+"/v1/messages/batches", "{}")
	apiCases[2].wantError(t, status, body, 404, "not_found_error", "/v1/messages/batches")
}

// TestParams checks that errors name the field of the API.
func TestParams(t *testing.T) {
	r := start(t, 1, say("fine"), func(o *serve.Options) { o.MaxModelLen = 300 })
	long := strings.Repeat("one two three ", 500)
	const chat, resp = `{"model":"m","messages":[{"role":"user","content":"x"}],`, `{"model":"m","input":"x",`
	for _, tt := range []struct{ path, body, param, code, has string }{
		{"chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, "model", "", "required"},
		{"chat/completions", `{"model":"m","messages":[]}`, "messages", "", "empty"},
		{"chat/completions", chat + `"max_tokens":0}`, "max_tokens", "", "at least 1"},
		{"chat/completions", chat + `"max_tokens":0,"max_completion_tokens":null}`, "max_tokens", "", "at least 1"},
		{"chat/completions", chat + `"max_completion_tokens":-1}`, "max_completion_tokens", "", "at least 1"},
		{"chat/completions", chat + `"continue_final_message":true}`, "continue_final_message", "unsupported_parameter", "add_generation_prompt"},
		{"chat/completions", chat + `"continue_final_message":"reasoning_content","add_generation_prompt":false}`, "continue_final_message", "unsupported_parameter", "only the content"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"narrator","content":"x"}]}`, "messages[1].role", "", "system, developer, user, assistant, tool and function"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`, "messages", "context_length_exceeded", "300"},
		{"responses", `{"model":"m","input":[]}`, "input", "", "empty"},
		{"responses", `{"model":"m"}`, "input", "", "empty"},
		{"responses", resp + `"max_output_tokens":0}`, "max_output_tokens", "", "at least 1"},
		{"responses", resp + `"max_tokens":0}`, "max_tokens", "", "at least 1"},
		{"responses", resp + `"prompt":{"id":"pmpt_1"}}`, "prompt", "unsupported_parameter", "keeps no prompts"},
		{"responses", resp + `"background":true}`, "background", "unsupported_parameter", "waits"},
		{"responses", `{"model":"m","input":[{"role":"user","content":"x"},{"role":"narrator","content":"x"}]}`, "input[1].role", "", "system, developer, user and assistant"},
		{"responses", `{"model":"m","input":[{"type":"message","role":"narrator","content":[{"type":"new","text":"x"}]}]}`, "input[0].role", "", "system, developer, user and assistant"},
		{"responses", `{"model":"m","input":"` + long + `"}`, "input", "context_length_exceeded", "300"},
	} {
		t.Run(tt.path+" "+tt.param, func(t *testing.T) {
			status, _, body := send(t, r.url+"/v1/"+tt.path, tt.body)
			apiCases[0].wantError(t, status, body, 400, "invalid_request_error", tt.has)
			require.Contains(t, body, `"param":"`+tt.param+`"`)
			if tt.code != "" {
				require.Contains(t, body, `"code":"`+tt.code+`"`)
			}
		})
	}
	for _, role := range []string{"developer", "tool", "narrator"} {
		status, _, body := send(t, r.url+"/v1/messages", messagesBody(`{"role":"`+role+`","content":"x"}`))
		apiCases[2].wantError(t, status, body, 400, "invalid_request_error", "system, user and assistant")
	}
	for path, body := range map[string]string{ // fields with default values, and ignored fields
		"chat/completions": chat + `"continue_final_message":false,"response_format":{"type":"text"},"logprobs":false,"never_heard_of":1}`,
		"responses":        resp + `"prompt":null,"background":false,"continue_final_message":true,"n":2,"input":[{"type":"never_heard_of"},{"role":"user","content":"x"}]}`,
		"messages":         strings.Replace(messagesBody(`{"role":"user","content":"x"}`), `{`, `{"prompt":{"id":"x"},"background":true,"n":"2",`, 1),
	} {
		body = strings.Replace(body, `"input":"x",`, "", 1)
		status, _, text := send(t, r.url+"/v1/"+path, body)
		require.Equal(t, 200, status, text)
		require.Contains(t, text, "fine")
	}
}

// TestFullWindow checks that a prompt that fills the context window is refused with correct numbers, which harnesses parse.
func TestFullWindow(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	n := len(tok().AppendEncode(nil, r.prompt(t, "/v1/messages", messagesBody(`{"role":"user","content":"x"}`))))
	full := start(t, 1, say("fine"), func(o *serve.Options) { o.MaxModelLen = n })
	status, _, body := send(t, full.url+"/v1/messages", messagesBody(`{"role":"user","content":"x"}`))
	apiCases[2].wantError(t, status, body, 400, "invalid_request_error", fmt.Sprintf("%d tokens > %d maximum", n+1, n))

	engine := engineOf(t, func(w http.ResponseWriter) {
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, you requested more."}}`, n)
	})
	less := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine}} })
	status, _, body = send(t, less.url+"/v1/messages", messagesBody(`{"role":"user","content":"x"}`))
	apiCases[2].wantError(t, status, body, 400, "invalid_request_error", fmt.Sprintf("%d tokens > %d maximum", n+1, n))
}

// TestRefusals checks that error messages of an engine are passed on in all their forms, unlike messages of a proxy.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		status     int
		output     string
		want       int
		typ, words string
	}{
		{400, `{"error":{"message":"no such grammar","type":"BadRequestError","code":400}}`, 400, "invalid_request_error", "no such grammar"},
		{400, `{"object":"error","message":"no such grammar","code":400}`, 400, "invalid_request_error", "no such grammar"},
		{400, `{"detail":"no such grammar"}`, 400, "invalid_request_error", "no such grammar"},
		{400, `{"message":"maximum context length is 9000000 tokens, whatever that is","code":400}`, 400, "invalid_request_error", "whatever that is"},
		{400, `<html>secret</html>`, 502, "server_error", "engine failed"},
		{400, ``, 502, "server_error", "engine failed"},
		{422, `{"error":{"message":"no such field"}}`, 400, "invalid_request_error", "no such field"},
		{404, `{"error":{"message":"The model m does not exist."}}`, 502, "server_error", "the engine refused the request: The model m does not exist."},
		{401, `{"error":{"message":"secret"}}`, 502, "server_error", "the engine does not accept the key of this server"},
		{500, `{"error":{"message":"secret"}}`, 502, "server_error", "engine failed"},
	} {
		t.Run(tt.output, func(t *testing.T) {
			engine := engineOf(t, func(w http.ResponseWriter) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.output)
			})
			r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine}} })
			status, _, body := send(t, r.url+apiCases[0].path, apiCases[0].body("go", true))
			apiCases[0].wantError(t, status, body, tt.want, tt.typ, tt.words)
			require.NotContains(t, body, "secret")
		})
	}
}

// TestRetryAfter checks that the Retry-After of an engine is passed on up to a limit.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		status       int
		output, want string
	}{
		{429, "7", "7"}, {503, " 30 ", "30"}, {503, "", "1"}, {429, "soon", "1"}, {429, "-5", "1"}, {503, "0", "1"},
		{503, "7200", "3600"}, {503, "99999999999999999999999", "3600"},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.output), func(t *testing.T) {
			engine := engineOf(t, func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", tt.output)
				w.WriteHeader(tt.status)
			})
			r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: engine}} })
			for _, a := range apiCases {
				status, h, body := send(t, r.url+a.path, a.body("go", true))
				want, typ := 503, "server_error"
				if a.anthropic {
					want, typ = 529, "overloaded_error"
				}
				a.wantError(t, status, body, want, typ, "overloaded")
				require.Equal(t, tt.want, h.Get("Retry-After"))
			}
		})
	}
}

// TestStatefulRequestsRefused checks that requests that refer to stored state are refused.
func TestStatefulRequestsRefused(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	ask := []any{object{"role": "user", "content": "And then?"}}
	for _, tt := range []struct {
		path, body string
		status     int
		has        string
	}{
		{"messages", `"thread":{"type":"continue","previous_message_id":"msg_1"}`, 404, `"details":{"error_code":"thread_not_found"}`},
		{"messages", `"thread":{"type":"continue"},"messages":[]`, 404, `"type":"not_found_error"`},
		{"messages", `"thread":{"type":"create"}`, 200, "fine"},
		{"responses", `"previous_response_id":"resp_1"`, 400, `"code":"previous_response_not_found"`},
		{"responses", `"conversation":"conv_1"`, 400, `"param":"conversation"`},
		{"responses", `"conversation":{"id":"conv_1"}`, 400, `"param":"conversation"`},
		{"responses", `"input":[{"type":"item_reference","id":"rs_1"},{"role":"user","content":"x"}]`, 404, "set store to false"},
		{"responses", `"input":[{"id":"rs_1"},{"role":"user","content":"x"}]`, 404, `"param":"input[0]"`},
		{"responses", `"previous_response_id":null,"conversation":null`, 200, "fine"},
	} {
		t.Run(tt.body, func(t *testing.T) {
			body := object{"model": "m", "max_tokens": 50}
			if tt.path == "messages" {
				body["messages"] = ask
			} else {
				body["input"] = ask
			}
			require.NoError(t, json.Unmarshal([]byte("{"+tt.body+"}"), &body))
			status, _, text := send(t, r.url+"/v1/"+tt.path, body)
			require.Equal(t, tt.status, status, text)
			require.Contains(t, text, tt.has)
		})
	}
}

// TestEngineFailures makes engines fail in each mode, before and during the response.
func TestEngineFailures(t *testing.T) {
	r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
		rep := vllm.Reply{Text: answer, Fail: vllm.Failure{AfterTokens: 12}}
		for word, mode := range map[string]vllm.FailureMode{"REFUSE": vllm.Refuse, "CUT": vllm.Cut, "LINE": vllm.ErrorLine} {
			if strings.Contains(p.Text, word) {
				rep.Fail.Mode = mode
			}
		}
		if strings.Contains(p.Text, "ATONCE") {
			rep.Fail.AfterTokens = 0
		}
		return rep
	}, nil)
	requests := 0
	for _, a := range apiCases {
		httpStatus, httpType := 502, "server_error"
		if a.anthropic {
			httpStatus, httpType = 500, "api_error"
		}
		for _, stream := range []bool{true, false} {
			for _, fail := range []string{"REFUSE", "CUT", "LINE", "CUT ATONCE", "LINE ATONCE"} {
				t.Run(fmt.Sprint(a.name, "/", fail, "/", stream), func(t *testing.T) {
					status, _, body := send(t, r.url+a.path, a.body(fail, stream))
					requests++
					require.Equal(t, "engine_failed", r.done(t, requests)[requests-1].Finish)
					if !stream || fail == "REFUSE" || strings.Contains(fail, "ATONCE") {
						a.wantError(t, status, body, httpStatus, httpType, "engine")
						return
					}
					require.Equal(t, 200, status)
					w := a.gather(t, body)
					require.NotEmpty(t, w.Error)
					require.NotEmpty(t, w.Reasoning, "earlier output is kept")
					require.NotContains(t, body, "[DONE]")
					require.NotContains(t, body, "message_stop")
					require.NotContains(t, body, "injected", "no internals for clients")
				})
			}
		}
		_, _, body := send(t, r.url+a.path, a.body("work", true))
		requests++
		require.Len(t, a.gather(t, body).Calls, 2, "the gateway goes on")
	}
}

// TestFailover checks that another engine is used if one refuses or cannot be reached.
func TestFailover(t *testing.T) {
	const dead = "http://127.0.0.1:1" // a port that no test gets
	refuse := true
	r := start(t, 2, func(p vllm.Prompt) vllm.Reply {
		if refuse {
			refuse = false
			return vllm.Reply{Fail: vllm.Failure{Mode: vllm.Refuse}}
		}
		return vllm.Reply{Text: "hello"}
	}, func(o *serve.Options) {
		o.Engines, o.Retries = append([]serve.Engine{{Name: "dead", URL: dead}}, o.Engines...), 2
	})
	_, _, body := send(t, r.url+"/v1/messages", apiCases[2].body("hi", true))
	require.Equal(t, "hello", apiCases[2].gather(t, body).Text)
	require.NotEqual(t, "dead", r.done(t, 1)[0].Worker)

	gone := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: dead}} })
	for range 2 { // also while the engine is marked as down
		for _, a := range apiCases {
			status, _, body := send(t, gone.url+a.path, a.body("hi", true))
			if a.anthropic {
				a.wantError(t, status, body, 500, "api_error", "engine")
			} else {
				a.wantError(t, status, body, 502, "server_error", "engine")
			}
		}
	}
}

// TestClientDisconnects checks that a disconnect of the client cancels the engine's request and the reservation.
func TestClientDisconnects(t *testing.T) {
	ended := make(chan vllm.Report, 10)
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			e := vllm.New(tok(), &vllm.Options{Model: "m", Timing: vllm.Timing{PrefillPerSecond: 1e9, DecodePerToken: time.Millisecond},
				Script: func(vllm.Prompt) vllm.Reply {
					return vllm.Reply{Text: "one two three four five", Fail: vllm.Failure{Mode: vllm.Stall, AfterTokens: 2}}
				}, OnFinish: func(r vllm.Report) { ended <- r }})
			s := httptest.NewServer(e)
			defer func() { e.Close(); s.Close() }()
			r := start(t, 0, nil, func(o *serve.Options) { o.Engines = []serve.Engine{{URL: s.URL, Events: e.Events}} })
			for _, stream := range []bool{true, false} {
				ctx, cancel := context.WithCancel(t.Context())
				b, err := json.Marshal(a.body("go", stream))
				require.NoError(t, err)
				req, err := http.NewRequestWithContext(ctx, "POST", r.url+a.path, strings.NewReader(string(b)))
				require.NoError(t, err)
				if stream {
					resp, err := http.DefaultClient.Do(req)
					require.NoError(t, err)
					_, err = io.ReadFull(resp.Body, make([]byte, 50))
					require.NoError(t, err)
					cancel()
					resp.Body.Close()
				} else {
					go func() { // disconnects once the engine has started
						for !strings.Contains(metrics(s.URL), `num_requests_running{model_name="m"} 1`) {
							time.Sleep(time.Millisecond)
						}
						cancel()
					}()
					_, err := http.DefaultClient.Do(req)
					require.ErrorIs(t, err, context.Canceled)
				}
				require.Equal(t, "abort", (<-ended).Finish)
			}
			for _, rec := range r.done(t, 2) {
				require.Equal(t, "canceled", rec.Finish)
			}
		})
	}
}

func metrics(url string) string {
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// TestKeepAlive waits for keep-alives while the engine is silent, before and after its first token, then closes the
// gateway.
func TestKeepAlive(t *testing.T) {
	for _, a := range apiCases {
		for _, after := range []int{0, 2} {
			t.Run(fmt.Sprint(a.name, after), func(t *testing.T) {
				r := start(t, 1, func(vllm.Prompt) vllm.Reply {
					return vllm.Reply{Text: "one two three", Fail: vllm.Failure{Mode: vllm.Stall, AfterTokens: after}}
				}, func(o *serve.Options) { o.KeepAlive = 5 * time.Millisecond })
				b, err := json.Marshal(a.body("go", true))
				require.NoError(t, err)
				resp, err := http.Post(r.url+a.path, "application/json", strings.NewReader(string(b)))
				require.NoError(t, err)
				defer resp.Body.Close()
				var seen []byte
				mark := ": keep-alive"
				if a.anthropic {
					mark = "event: ping"
				}
				for {
					_, silent, begun := strings.Cut(string(seen), `"one`)
					if !begun {
						silent = string(seen)
					}
					if begun == (after > 0) && strings.Count(silent, mark) >= 3 {
						break
					}
					p := make([]byte, 500)
					n, err := resp.Body.Read(p)
					require.NoError(t, err)
					seen = append(seen, p[:n]...)
				}
				r.gateway.Close()
				rest, err := io.ReadAll(resp.Body)
				require.NoError(t, err, "the stream ends in order")
				w := a.gather(t, string(seen)+string(rest))
				require.NotEmpty(t, w.Error)
				require.Equal(t, after > 0, w.Text != "")
			})
		}
	}
}

// TestSilentEngine checks the timeout for an engine that hangs before or during its output.
func TestSilentEngine(t *testing.T) {
	for _, a := range apiCases {
		for _, after := range []int{0, 2} {
			r := start(t, 1, func(vllm.Prompt) vllm.Reply {
				return vllm.Reply{Text: "one two three", Fail: vllm.Failure{Mode: vllm.Stall, AfterTokens: after}}
			}, func(o *serve.Options) { o.EngineSilence = 100 * time.Millisecond })
			status, _, body := send(t, r.url+a.path, a.body("go", after > 0))
			if status == 200 { // on a slow machine, the first token may also be too late
				require.NotEmpty(t, a.gather(t, body).Error)
			} else {
				typ := "server_error"
				if a.anthropic {
					typ = "timeout_error"
				}
				a.wantError(t, status, body, 504, typ, "too long")
			}
			require.Equal(t, "engine_failed", r.done(t, 1)[0].Finish)
		}
	}
}

// opener is a template whose prompts end with the start of reasoning.
type opener struct{ template.Template }

func (o opener) Render(r template.Request) (*template.Prompt, error) {
	p, err := o.Template.Render(r)
	if err == nil {
		p.Text += "<think>\n"
		p.Segments = append(p.Segments, tokenizers.Segment{Text: p.Text[len(p.Text)-8:], Trusted: true})
	}
	return p, err
}

func TestStartState(t *testing.T) {
	r := start(t, 1, say("hm\n</think>\n\nyes"), func(o *serve.Options) { o.Prompts = prompts(t, opener{lookup("chatml", nil)}, "hermes") })
	for _, a := range apiCases {
		_, _, body := send(t, r.url+a.path, a.body("go", true))
		w := a.gather(t, body)
		require.Equal(t, []string{"hm", "yes"}, []string{w.Reasoning, w.Text})
	}
	r = start(t, 1, say("a <think> is a tag"), nil)
	body := apiCases[0].body("go", true)
	body["chat_template_kwargs"] = object{"enable_thinking": false}
	_, _, text := send(t, r.url+apiCases[0].path, body)
	require.Equal(t, "a <think> is a tag", apiCases[0].gather(t, text).Text)
}

func TestToolDispatch(t *testing.T) {
	var mu sync.Mutex
	var reported []serve.ToolCall
	r := start(t, 1, say(answer), func(o *serve.Options) {
		o.ToolDispatch = true
		o.OnToolCall = func(_ context.Context, c serve.ToolCall) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, c)
		}
	})
	chat := apiCases[0]
	_, _, body := send(t, r.url+chat.path, chat.body("go", true), "X-Weft-Tool-Dispatch", "1", "X-Request-Id", "named-by-the-client")
	var got, deltas []string
	id := strings.TrimPrefix(frames(t, body)[0].data["id"].(string), "chatcmpl-")
	require.NotContains(t, id, "named-by-the-client", "a sender may use one name twice, so no call id is made from it")
	for _, f := range frames(t, body) {
		if f.typ == "tool_call_dispatch" {
			got = append(got, f.text)
			require.Len(t, deltas, len(got), "right when its own call is complete, before the next one begins")
			continue
		}
		if strings.Contains(f.text, `"tool_calls"`) && strings.Contains(f.text, `"id":"call_`) {
			deltas = append(deltas, f.text)
		}
	}
	require.Equal(t, []string{
		`{"choice_index":0,"tool_call":{"index":0,"id":"call_` + id + `_0","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.go\"}"}}}`,
		`{"choice_index":0,"tool_call":{"index":1,"id":"call_` + id + `_1","type":"function","function":{"name":"grep","arguments":"{\"pattern\": \"x+\"}"}}}`,
	}, got)

	_, _, body = send(t, r.url+chat.path, chat.body("go", true))
	require.NotContains(t, body, "tool_call_dispatch", "only for those who ask")
	seen := map[string]bool{}
	for _, a := range apiCases {
		for _, stream := range []bool{true, false} {
			mu.Lock()
			reported = nil
			mu.Unlock()
			_, _, body := send(t, r.url+a.path, a.body("go", stream), "X-Request-Id", "r2")
			require.Len(t, reported, 2)
			for _, c := range reported {
				require.Contains(t, body, `"`+c.ID+`"`, "the client receives the same id")
				require.False(t, seen[c.ID], "duplicate id")
				seen[c.ID] = true
			}
			reported[0].ID, reported[1].ID = "", ""
			require.Empty(t, cmp.Diff([]serve.ToolCall{
				{RequestID: "r2", Name: "read", Arguments: `{"path": "a.go"}`},
				{RequestID: "r2", Name: "grep", Arguments: `{"pattern": "x+"}`},
			}, reported))
		}
	}
}

// TestTenants checks that two tenants with the same prompt share no cache entries, and that each finds its own.
func TestTenants(t *testing.T) {
	r := start(t, 1, say("x"), nil)
	for i, tenant := range []string{"a", "b", "a", "b", ""} {
		send(t, r.url+apiCases[0].path, apiCases[0].body("same", true), "X-Tenant-Id", tenant)
		rec := r.done(t, i+1)[i]
		require.Equal(t, i == 2 || i == 3, rec.Usage.Cached > 0)
		require.EqualValues(t, rec.Usage.Cached, rec.Decision.CachedEstimate)
	}
}

func TestFamilyPerRequest(t *testing.T) {
	r := start(t, 1, say("<tool_call>\n<function=read>\n<parameter=path>\na.go\n</parameter>\n</function>\n</tool_call>"), nil)
	for _, a := range apiCases {
		_, _, body := send(t, r.url+a.path, a.body("go", true), "X-Weft-Tool-Call-Parser", "qwen3_coder")
		require.Equal(t, []string{`read({"path":"a.go"})`}, a.gather(t, body).Calls)
	}
}

// TestCallsInReasoning checks that a call inside reasoning is sent only with Options.CallsInReasoning.
func TestCallsInReasoning(t *testing.T) {
	for _, sent := range []bool{false, true} {
		reported := 0
		r := start(t, 1, say("<think>\nI look.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>"), func(o *serve.Options) {
			o.CallsInReasoning = sent
			o.OnToolCall = func(context.Context, serve.ToolCall) { reported++ }
		})
		for i, a := range apiCases {
			_, _, body := send(t, r.url+a.path, a.body("go", true))
			came := a.gather(t, body)
			if sent {
				require.Equal(t, []string{`read({"path": "a.go"})`}, came.Calls, a.name)
				require.Equal(t, i+1, reported)
			} else {
				require.Empty(t, came.Calls, a.name)
				require.Zero(t, reported)
			}
		}
	}
}

// TestCustomTool checks that a call of a free-text tool, which the model sees as a function with one string, has the
// form that the client declared.
func TestCustomTool(t *testing.T) {
	r := start(t, 1, say("<tool_call>\n{\"name\": \"apply_patch\", \"arguments\": {\"input\": \"*** Begin\\n+é\"}}\n</tool_call>"), nil)
	body := object{"model": "m", "input": "go", "stream": true, "tools": []any{object{"type": "custom", "name": "apply_patch"}}}
	_, _, text := send(t, r.url+"/v1/responses", body)
	require.Contains(t, text, `event: response.custom_tool_call_input.done`)
	require.Contains(t, text, `"input":"*** Begin\n+é"`)
	body["stream"] = false
	_, _, text = send(t, r.url+"/v1/responses", body)
	require.Contains(t, text, `"type":"custom_tool_call"`)
	require.Contains(t, text, `"input":"*** Begin\n+é"`)
}

// With tool_choice none, the prompt is the one that the engine's cache has, and the markup of calls is text.
func TestToolChoiceNone(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	for _, a := range apiCases {
		body := a.body("go", true)
		_, _, text := send(t, r.url+a.path, body)
		require.NotEmpty(t, a.gather(t, text).Calls)
		if body["tool_choice"] = "none"; a.name == "messages" {
			body["tool_choice"] = object{"type": "none"}
		}
		_, _, text = send(t, r.url+a.path, body)
		got := a.gather(t, text)
		require.Empty(t, got.Calls, a.name)
		require.Contains(t, got.Text, "<tool_call>", a.name)
		n := len(r.prompts)
		require.Contains(t, r.prompts[n-1].Text, "grep", a.name)
		require.Equal(t, r.prompts[n-2].IDs, r.prompts[n-1].IDs, a.name)
	}
}

// Calls of tools that allowed_tools does not list do not reach the client, and the prompt remains the same.
func TestAllowedTools(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	for _, a := range apiCases[:2] { // Messages has no such choice
		body := a.body("go", true)
		_, _, text := send(t, r.url+a.path, body)
		require.Contains(t, text, `"read"`)
		require.Contains(t, text, `"grep"`)
		list := []any{object{"type": "function", "name": "grep", "function": object{"name": "grep"}}}
		body["tool_choice"] = object{"type": "allowed_tools", "mode": "auto", "tools": list, "allowed_tools": object{"mode": "auto", "tools": list}}
		_, _, text = send(t, r.url+a.path, body)
		got := a.gather(t, text)
		require.Len(t, got.Calls, 1, a.name)
		require.Contains(t, got.Calls[0], "grep", a.name)
		n := len(r.prompts)
		require.Equal(t, r.prompts[n-2].IDs, r.prompts[n-1].IDs, a.name)
	}
}

// A request without tools gets no calls: their markup is text, in streams and whole responses.
func TestNoToolsNoCalls(t *testing.T) {
	r := start(t, 1, say(answer), nil)
	for _, a := range apiCases {
		for _, stream := range []bool{true, false} {
			body := a.body("go", stream)
			for _, change := range []func(){func() { body["tools"] = []any{} }, func() { delete(body, "tools") }} {
				change()
				status, _, text := send(t, r.url+a.path, body)
				require.Equal(t, 200, status, text)
				if stream {
					got := a.gather(t, text)
					require.Empty(t, got.Calls, a.name)
					require.Contains(t, got.Text, "<tool_call>", a.name)
				}
				for _, word := range []string{"function_call", "tool_use", `"tool_calls"`} {
					require.NotContains(t, text, word, a.name)
				}
			}
		}
	}
}

func TestSmallEndpoints(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) { o.Aliases = []string{"claude-x", "org/name"} })
	resp, _ := do(t, http.MethodHead, r.url+"/", "")
	require.Equal(t, 200, resp.StatusCode)
	resp, _ = get(t, r.url+"/health")
	require.Equal(t, 200, resp.StatusCode)
	_, body := get(t, r.url+"/v1/models")
	const rest = `,"object":"model","created":0,"owned_by":"weft","max_model_len":131072,"context_window":131072}`
	require.JSONEq(t, `{"object":"list","data":[{"id":"m"`+rest+`,{"id":"claude-x"`+rest+`,{"id":"org/name"`+rest+`]}`, body)
	_, body = get(t, r.url+"/v1/models?limit=10", "Anthropic-Version", "2023-06-01")
	require.Contains(t, body, `"display_name":"claude-x"`)
	resp, body = get(t, r.url+"/v1/models/org/name")
	require.Equal(t, 200, resp.StatusCode, body)
	resp, body = get(t, r.url+"/v1/models/nobody")
	apiCases[0].wantError(t, resp.StatusCode, body, 404, "invalid_request_error", "nobody")

	ask := apiCases[2].body("How long?", true)
	ask["model"] = "claude-x"
	_, _, body = send(t, r.url+"/v1/messages/count_tokens", ask)
	var count struct {
		Input int `json:"input_tokens"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &count))
	_, _, body = send(t, r.url+"/v1/messages", ask)
	require.Equal(t, apiCases[2].gather(t, body).Prompt, count.Input)
	require.Contains(t, body, `"model":"claude-x"`, "the client's own name for the model")
	ask = apiCases[1].body("How long?", true)
	_, _, body = send(t, r.url+"/v1/responses/input_tokens", ask)
	require.NoError(t, json.Unmarshal([]byte(body), &count))
	_, _, body = send(t, r.url+"/v1/responses", ask)
	require.Equal(t, apiCases[1].gather(t, body).Prompt, count.Input)

	status, _, body := send(t, r.url+"/v1/messages/count_tokens", "{")
	apiCases[2].wantError(t, status, body, 400, "invalid_request_error", "")
}

func TestBadOptions(t *testing.T) {
	good := serve.Options{Model: "m", Prompts: hermesModel(), Engines: []serve.Engine{{URL: "http://127.0.0.1:1"}}}
	for has, change := range map[string]func(*serve.Options){
		"no model":        func(o *serve.Options) { o.Model = "" },
		"Prompts must":    func(o *serve.Options) { o.Prompts = nil },
		"and a family":    func(o *serve.Options) { o.Prompts = prompts(t, nil, "") },
		"no engine":       func(o *serve.Options) { o.Engines = nil },
		"want http:// or": func(o *serve.Options) { o.Engines = []serve.Engine{{URL: "gpu1:8000"}} },
		"registered":      func(o *serve.Options) { o.Engines = append(o.Engines, o.Engines[0]) },
	} {
		o := good
		change(&o)
		_, err := serve.New(&o)
		require.ErrorContains(t, err, has)
	}
	o := good
	o.Prompts = prompts(t, nil, "hermes+qwen3_coder")
	g, err := serve.New(&o)
	require.NoError(t, err)
	g.Close()
	g.Close()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("GET", "/v1/models", nil))
	require.Equal(t, 503, w.Code)
}

// TestConcurrentConversations runs the first turns of conversations concurrently. Each second turn, which does not have to wait for
// others, must hit the cache of the first.
func TestConcurrentConversations(t *testing.T) {
	r := start(t, 3, say("Certainly, here is what I think about that question of yours."), func(o *serve.Options) { o.StripPreamble = true })
	turn := func(i int) {
		a := apiCases[i%3]
		question := fmt.Sprint("Conversation number ", i, ": ", strings.Repeat("tell me more ", 20))
		_, _, text := send(t, r.url+a.path, a.body(question, i%2 == 0), "X-Session-Id", fmt.Sprint("s", i))
		if !strings.Contains(text, "question of yours.") && i%2 != 0 {
			t.Errorf("answer %q", text)
		}
	}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() { turn(i) })
	}
	wg.Wait()
	for i := range 24 {
		turn(i)
	}
	cached := 0
	for _, rec := range r.done(t, 48) {
		require.Equal(t, "stop", rec.Finish)
		if rec.Usage.Cached > rec.Usage.Prompt-32 {
			cached++
		}
	}
	require.GreaterOrEqual(t, cached, 24)
}

// TestCaptures sends recorded requests of real harnesses, two turns of a session if available.
func TestCaptures(t *testing.T) {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = "../../../../shared"
	}
	files, err := filepath.Glob(filepath.Join(dir, "captures", "*", "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no captures in " + dir + ": set WEFT_SHARED")
	}
	r := start(t, 2, say(answer), func(o *serve.Options) { o.Aliases, o.StripPreamble = []string{"mock-model"}, true })
	for i, file := range files {
		name := filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var c struct {
				Path, Query string
				Headers     [][2]string
				Body        json.RawMessage
			}
			require.NoError(t, json.Unmarshal(data, &c))
			var header []string
			for _, h := range c.Headers {
				switch strings.ToLower(h[0]) {
				case "content-length", "connection", "host", "accept-encoding":
				default:
					header = append(header, h[0], h[1])
				}
			}
			status, _, body := send(t, r.url+c.Path+"?"+c.Query, string(c.Body), header...)
			require.Equal(t, 200, status, body)
			for _, a := range apiCases {
				if a.path == c.Path {
					w := a.gather(t, body)
					require.Len(t, w.Calls, 2)
					require.Equal(t, "Looking.", w.Text)
				}
			}
			rec := r.done(t, i+1)[i]
			t.Logf("%s: %d prompt tokens, %d cached, %s", rec.Worker, rec.Usage.Prompt, rec.Usage.Cached, rec.Decision.Why())
			require.Equal(t, "stop", rec.Finish)
		})
	}
}

// TestNotRenderedLoggedOnce checks that each kind of part that a prompt omits is logged once per request.
func TestNotRenderedLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	r := start(t, 1, say("fine"), func(o *serve.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	msgs := []any{object{"role": "user", "content": "go"}}
	for _, id := range []string{"a", "b", "c"} {
		msgs = append(msgs, object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": id, "name": "f", "input": object{}}}},
			object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": "no", "is_error": true}}})
	}
	status, _, text := send(t, r.url+"/v1/messages", object{"model": "m", "max_tokens": 9, "messages": msgs})
	require.Equal(t, 200, status, text)
	r.done(t, 1)
	require.Equal(t, 1, strings.Count(log.String(), "not rendered"), log.String())
	require.Contains(t, log.String(), "times=3")
}

// TestUsageAtStart checks that a Messages stream begins with all tokens of the prompt, which the end can split into cached
// and others, and not with an estimate that the end contradicts.
func TestUsageAtStart(t *testing.T) {
	r := start(t, 1, say("fine"), nil)
	a := apiCases[2]
	body := a.body(strings.Repeat("one two three ", 100), true)
	var prompt int
	for i := range 2 {
		status, _, text := send(t, r.url+a.path, body)
		require.Equal(t, 200, status, text)
		var first struct {
			Message struct {
				Usage struct {
					Input int `json:"input_tokens"`
					Read  int `json:"cache_read_input_tokens"`
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(frames(t, text)[0].text), &first))
		end := a.gather(t, text)
		require.Equal(t, end.Prompt, first.Message.Usage.Input)
		require.Zero(t, first.Message.Usage.Read)
		if prompt = end.Prompt; i == 1 {
			require.Greater(t, end.Cached, prompt/2, "the engine has the prompt cached")
		}
	}
}
