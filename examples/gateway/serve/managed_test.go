// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/router/policy"
)

// eachPair runs a test for each API of a client and each kind of endpoint.
func eachPair(t *testing.T, do func(t *testing.T, a apiCase, k upstream.Managed)) {
	for _, a := range apiCases {
		for _, k := range managedKinds {
			t.Run(a.name+" to "+k.String(), func(t *testing.T) { do(t, a, k) })
		}
	}
}

// finishOf is the finish reason in each API of a client.
var finishOf = map[string]map[event.Why]string{
	"chat":      {event.ToolCalls: "tool_calls", event.Length: "length"},
	"responses": {event.ToolCalls: "completed", event.Length: "incomplete"},
	"messages":  {event.ToolCalls: "tool_use", event.Length: "max_tokens"},
}

// TestManaged sends a request of each API to an endpoint of each API, streamed and whole. The client gets the reasoning, the
// text, the calls with their ids, and the usage of the endpoint; the endpoint its own name of the model and key.
func TestManaged(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		e := newEndpoint(t, playing(k, callScene))
		r := managed(t, k, nil, e)
		want := gathered{
			Reasoning: "I need two looks.", Text: "Looking.", Calls: []string{`read({"path": "a.go"})`, `grep({"pattern": "x+"})`},
			Finish: finishOf[a.name][event.ToolCalls], Prompt: 90, Cached: 64, Output: 30,
		}
		status, head, body := send(t, r.url+a.path, a.body("Where is it?", true), "Authorization", "Bearer sk-client", "X-Api-Key", "sk-client")
		require.Equal(t, 200, status, body)
		require.Empty(t, cmp.Diff(want, a.gather(t, body)))
		require.Empty(t, head.Get("X-Weft-Dropped"))
		require.NotContains(t, body, "up/model")

		sent, h := e.last(t)
		require.Contains(t, sent, `"model":"up/model"`)
		require.Contains(t, sent, "Be brief.")
		require.Contains(t, sent, "Where is it?")
		require.NotContains(t, strings.Join(h["Authorization"], "")+h.Get("X-Api-Key"), "client", "the client's key stays here")
		require.Contains(t, h.Get("Authorization"), "sk-up")
		require.Equal(t, k.Traits().Path, e.paths[0])
		if k.String() == "anthropic" {
			require.Equal(t, "sk-up", h.Get("X-Api-Key"))
			require.Equal(t, "2023-06-01", h.Get("Anthropic-Version"))
		}

		status, _, body = send(t, r.url+a.path, a.body("Where is it?", false))
		require.Equal(t, 200, status, body)
		got := collected(t, a, body)
		require.Equal(t, "I need two looks.", got.Answers[0].Reasoning())
		require.Equal(t, "Looking.", got.Answers[0].Text())
		require.Len(t, got.Answers[0].Calls(), 2)
		require.Equal(t, "call_1", got.Answers[0].Calls()[0].ID)
		require.EqualValues(t, 90, got.Usage.Prompt)
		require.EqualValues(t, 64, got.Usage.Cached)
		require.EqualValues(t, 30, got.Usage.Output)

		for _, rec := range r.done(t, 2) {
			require.EqualValues(t, 90, rec.Usage.Prompt)
			require.EqualValues(t, 30, rec.Usage.Output)
			require.EqualValues(t, 64, rec.Usage.Cached)
			require.Zero(t, rec.CacheExcess, "nothing was estimated")
			require.NotZero(t, rec.FirstByte)
			require.Equal(t, "tool_calls", rec.Finish)
		}
	})
}

// collected decodes a whole response.
func collected(t testing.TB, a apiCase, body string) *event.Collector {
	t.Helper()
	api, err := wire.Lookup(a.name)
	require.NoError(t, err)
	var c event.Collector
	for ev, err := range api.Events(strings.NewReader(body), nil) {
		require.NoError(t, err)
		c.Add(ev)
	}
	require.NotEmpty(t, c.Answers, body)
	return &c
}

// TestManagedEnds checks the ends of responses other than a call: the limit of the output and a refusal.
func TestManagedEnds(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		e := newEndpoint(t, playing(k, lengthScene))
		r := managed(t, k, nil, e)
		_, _, body := send(t, r.url+a.path, a.body("Go on.", true))
		got := a.gather(t, body)
		require.Equal(t, "Half an ans", got.Text)
		require.Equal(t, finishOf[a.name][event.Length], got.Finish)
		require.Equal(t, 30, got.Output)
		_, _, body = send(t, r.url+a.path, a.body("Go on.", false))
		require.Equal(t, "Half an ans", collected(t, a, body).Answers[0].Text())
		require.Equal(t, event.Length, collected(t, a, body).Answers[0].Finish)

		e.play = playing(k, refusalScene)
		for _, stream := range []bool{true, false} {
			status, _, body := send(t, r.url+a.path, a.body("Do harm.", stream))
			require.Equal(t, 200, status)
			answer := collected(t, a, body).Answers[0]
			var refused string
			for _, b := range answer.Blocks {
				refused += string(b.Data)
			}
			require.Equal(t, "I cannot help with that.", refused)
		}
	})
}

// TestManagedBreaks checks errors in the middle of a stream: an error of the endpoint keeps its reason, a stream that ends is
// an error, and the output so far is sent and counted.
func TestManagedBreaks(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		e := newEndpoint(t, playing(k, errorScene))
		r := managed(t, k, nil, e)
		_, _, body := send(t, r.url+a.path, a.body("Go on.", true))
		got := a.gather(t, body)
		require.Equal(t, "Half an ans", got.Text)
		require.NotEmpty(t, got.Error, body)
		require.Contains(t, body, "The upstream is overloaded, so sorry.")

		e.play = playing(k, brokenScene)
		_, _, body = send(t, r.url+a.path, a.body("Go on.", true))
		got = a.gather(t, body)
		require.Equal(t, "Half an ans", got.Text)
		require.NotEmpty(t, got.Error, body)
		for _, rec := range r.done(t, 2) {
			require.NotZero(t, rec.Usage.Output, "what was sent is counted")
		}
	})
}

// conversation returns the request of the next turn: body with the output of a response as the client returns it, and the
// results of its calls.
func (a apiCase) conversation(t testing.TB, body object, response string) object {
	t.Helper()
	var r object
	require.NoError(t, json.Unmarshal([]byte(response), &r))
	next := maps.Clone(body)
	switch a.name {
	case "chat":
		m := r["choices"].([]any)[0].(object)["message"].(object)
		next["messages"] = append(slices.Clone(body["messages"].([]any)), m, object{"role": "tool", "tool_call_id": "call_1", "content": "package a"}, object{"role": "tool", "tool_call_id": "call_2", "content": "none"})
	case "responses":
		items := []any{object{"role": "user", "content": body["input"]}}
		items = append(items, r["output"].([]any)...)
		next["input"] = append(items, object{"type": "function_call_output", "call_id": "call_1", "output": "package a"}, object{"type": "function_call_output", "call_id": "call_2", "output": "none"})
	case "messages":
		next["messages"] = append(slices.Clone(body["messages"].([]any)), object{"role": "assistant", "content": r["content"]}, object{"role": "user", "content": []any{
			object{"type": "tool_result", "tool_use_id": "call_1", "content": "package a"}, object{"type": "tool_result", "tool_use_id": "call_2", "content": "none"},
		}})
	}
	return next
}

// TestManagedConversation returns a response to the gateway, as a client does in its next request. The endpoint gets its
// reasoning back with its own proof and nothing of the gateway's, and the calls and results under their ids.
func TestManagedConversation(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		e := newEndpoint(t, playing(k, callScene))
		r := managed(t, k, nil, e)
		first := a.body("Where is it?", false)
		if a.name == "responses" {
			first["include"] = []any{"reasoning.encrypted_content"}
		}
		_, _, body := send(t, r.url+a.path, first)
		status, head, text := send(t, r.url+a.path, a.conversation(t, first, body))
		require.Equal(t, 200, status, text)
		require.Empty(t, head.Get("X-Weft-Dropped"))
		sent, _ := e.last(t)
		switch k.String() {
		case "openai":
			require.Contains(t, sent, `"reasoning_content":"I need two looks."`)
		case "anthropic":
			thinking := sent[strings.LastIndex(sent[:strings.Index(sent, "I need two looks.")], "{"):]
			require.JSONEq(t, `{"type":"thinking","thinking":"I need two looks.","signature":"sig+up"}`, thinking[:strings.Index(thinking, "}")+1])
		case "responses":
			require.Contains(t, sent, `{"type":"reasoning","summary":[{"type":"summary_text","text":"I need two looks."}],"encrypted_content":"gAAA+up"}`)
			require.Contains(t, sent, `"store":false`)
		}
		require.NotContains(t, sent, "weft")
		for _, has := range []string{`"call_1"`, `"call_2"`, "package a", "a.go"} {
			require.Contains(t, sent, has)
		}
	})
}

// TestManagedGateway puts a gateway in front of another one with an embedded engine, over each API of the latter: clients of
// the former get the same as clients of the latter, and the prompt of the next turn extends what the model wrote.
func TestManagedGateway(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		back := start(t, 1, say(answer), nil)
		front := managed(t, k, func(o *serve.Options) {
			o.Engines = []serve.Engine{{URL: back.url, Kind: k, Model: "m"}}
		})
		_, _, direct := send(t, back.url+a.path, a.body("Where is it?", true))
		want := a.gather(t, direct)
		_, head, text := send(t, front.url+a.path, a.body("Where is it?", true))
		got := a.gather(t, text)
		require.Equal(t, "text/event-stream", head.Get("Content-Type"))
		require.GreaterOrEqual(t, got.Cached, 64, "the prompt begins as the one before")
		want.Cached = got.Cached
		if k == upstream.Responses && a.name != "responses" {
			want.Prompt = got.Prompt // tools have strict: false, since the default of the Responses API is true
		}
		require.Empty(t, cmp.Diff(want, got))
		require.NotEmpty(t, got.Reasoning)
		require.Len(t, got.Calls, 2)

		first := a.body("Where is it?", false)
		if a.name == "responses" {
			first["include"] = []any{"reasoning.encrypted_content"}
		}
		_, _, text = send(t, front.url+a.path, first)
		ids := collected(t, a, text).Answers[0].Calls()
		next := a.conversation(t, first, strings.NewReplacer(ids[0].ID, "call_1", ids[1].ID, "call_2").Replace(text))
		status, head, text := send(t, front.url+a.path, next)
		require.Equal(t, 200, status, text)
		require.Empty(t, head.Get("X-Weft-Dropped"))
		prompts := back.prompts
		last, this := prompts[len(prompts)-2], prompts[len(prompts)-1]
		require.True(t, strings.HasPrefix(this.Text, last.Text+answer), "%s\n----\n%s", last.Text+answer, this.Text)
	})
}

// TestManagedRefusals checks what clients get for the errors of endpoints: their reason where it is about the request, and
// nothing of it where it is about the gateway's account.
func TestManagedRefusals(t *testing.T) {
	openAI := func(typ, code, message string) string {
		return `{"error":{"message":"` + message + `","type":"` + typ + `","param":"messages[0]","code":` + code + `}}`
	}
	claude := func(typ, message string) string {
		return `{"type":"error","error":{"type":"` + typ + `","message":"` + message + `"},"request_id":"req_up"}`
	}
	for _, c := range []struct {
		name          string
		status        int
		body          map[bool]string // by whether the kind is anthropic
		want, wantFor int             // status for OpenAI's APIs and for Messages
		has, hides    string
		again         string // Retry-After
	}{
		{"invalid", 400, map[bool]string{false: openAI("invalid_request_error", "null", "Top is too high."), true: claude("invalid_request_error", "Top is too high.")}, 400, 400, "Top is too high.", "", ""},
		{"too long", 400, map[bool]string{
			false: openAI("invalid_request_error", `"context_length_exceeded"`, "This model's maximum context length is 100 tokens. However, your messages resulted in 105 tokens."),
			true:  claude("invalid_request_error", "prompt is too long: 105 tokens > 100 maximum"),
		}, 400, 400, "100", "", ""},
		{"limited", 429, map[bool]string{false: openAI("requests", `"rate_limit_exceeded"`, "Slow down."), true: claude("rate_limit_error", "Slow down.")}, 429, 429, "Slow down.", "", "17"},
		{"large", 413, map[bool]string{false: openAI("invalid_request_error", `"request_too_large"`, "Too big."), true: claude("request_too_large", "Too big.")}, 413, 413, "Too big.", "", ""},
		{"overloaded", 529, map[bool]string{false: openAI("server_error", "null", "All busy."), true: claude("overloaded_error", "All busy.")}, 503, 529, "All busy.", "", "17"},
		{"key", 401, map[bool]string{false: openAI("invalid_request_error", `"invalid_api_key"`, "Incorrect API key: sk-up"), true: claude("authentication_error", "invalid x-api-key sk-up")}, 502, 500, "does not accept the key", "sk-up", ""},
		{"model", 404, map[bool]string{false: openAI("invalid_request_error", `"model_not_found"`, "No such model."), true: claude("not_found_error", "model: up/model")}, 502, 500, "refused the request", "", ""},
		{"failed", 500, map[bool]string{false: openAI("server_error", "null", "at 10.0.0.7"), true: claude("api_error", "at 10.0.0.7")}, 502, 500, "failed", "10.0.0.7", ""},
		{"page", 502, map[bool]string{false: "<html>10.0.0.7</html>", true: "<html>10.0.0.7</html>"}, 502, 500, "failed", "10.0.0.7", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
				e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ object) {
					w.Header().Set("Retry-After", "17")
					w.WriteHeader(c.status)
					io.WriteString(w, c.body[k == upstream.Anthropic])
				})
				r := managed(t, k, nil, e)
				for _, stream := range []bool{true, false} {
					status, head, body := send(t, r.url+a.path, a.body("Hi", stream))
					require.Equal(t, map[bool]int{false: c.want, true: c.wantFor}[a.anthropic], status, body)
					require.Contains(t, body, c.has)
					if k.API().String() != a.name {
						require.NotContains(t, body, `[0]`, "the path of the endpoint's request")
					}
					if c.hides != "" {
						require.NotContains(t, body, c.hides)
					}
					if c.again != "" {
						require.Equal(t, c.again, head.Get("Retry-After"))
					}
				}
			})
		})
	}
}

// TestManagedDemands checks what becomes of fields that an API lacks: a demand is refused with its field, unless that is
// permitted; the others are named.
func TestManagedDemands(t *testing.T) {
	for _, c := range []struct {
		api   int
		kind  upstream.Managed
		set   string // field of the request
		to    any
		param string // of the error
		drop  string // in the header
	}{
		{0, upstream.Anthropic, "n", 2, "n", ""},
		{0, upstream.Anthropic, "seed", 7, "", "seed"},
		{0, upstream.Anthropic, "response_format", object{"type": "json_object"}, "response_format", ""},
		{0, upstream.Anthropic, "guided_regex", "a+", "guided_regex", ""},
		{0, upstream.Anthropic, "logprobs", true, "logprobs", ""},
		{0, upstream.Responses, "stop", "x", "stop", ""},
		{1, upstream.Anthropic, "tool_choice", object{"type": "allowed_tools", "mode": "auto", "tools": []any{object{"type": "function", "name": "read"}}}, "tool_choice", ""},
		{1, upstream.OpenAI, "truncation", "auto", "", "truncation"},
		{1, upstream.OpenAI, "top_logprobs", 3, "", "top_logprobs"},
		{1, upstream.Anthropic, "top_logprobs", 3, "", "top_logprobs"},
		{1, upstream.Anthropic, "text", object{"verbosity": "low"}, "", "text.verbosity"},
		{1, upstream.Anthropic, "text", object{"format": object{"type": "json_object"}}, "text.format", ""},
		{1, upstream.Anthropic, "reasoning", object{"effort": "minimal"}, "", "reasoning.effort"},
		{0, upstream.Anthropic, "reasoning_effort", "minimal", "", "reasoning_effort"},
		{2, upstream.Responses, "stop_sequences", []any{"x"}, "stop_sequences", ""},
		{2, upstream.OpenAI, "container", "c1", "", "container"},
		{0, upstream.OpenAI, "guided_regex", "a+", "", ""},
		{0, upstream.Anthropic, "response_format", object{"type": "json_schema", "json_schema": object{"name": "n", "schema": object{"type": "object"}}}, "", ""},
	} {
		a := apiCases[c.api]
		t.Run(a.name+" to "+c.kind.String()+" "+c.set, func(t *testing.T) {
			e := newEndpoint(t, playing(c.kind, lengthScene))
			body := a.body("Hi", false)
			body[c.set] = c.to
			status, head, text := send(t, managed(t, c.kind, nil, e).url+a.path, body)
			if c.param == "" {
				require.Equal(t, 200, status, text)
				require.Equal(t, c.drop, head.Get("X-Weft-Dropped"))
				return
			}
			require.Equal(t, 400, status, text)
			require.Contains(t, text, c.param)
			require.Empty(t, e.paths, "it is not sent")
			if c.set == "logprobs" {
				return
			}
			r := managed(t, c.kind, func(o *serve.Options) { o.Unconstrained = true }, e)
			status, head, text = send(t, r.url+a.path, body)
			require.Equal(t, 200, status, text)
			require.NotEmpty(t, head.Get("X-Weft-Dropped"))
		})
	}
}

// TestManagedPassthrough checks that a request reaches an endpoint of its own API as it is, apart from the fields that are the
// gateway's.
func TestManagedPassthrough(t *testing.T) {
	for i, c := range []struct{ body, want string }{
		{
			`{"model":"m", "messages":[{"role":"user","content":"Hi","x":1}],"temperature":0.50,"future":{"a":[1e2]},"priority":9,"service_tier":"priority","prompt_cache_key":"k","cache_salt":"s"}`,
			`{"model":"up/model","messages":[{"role":"user","content":"Hi","x":1}],"temperature":0.50,"future":{"a":[1e2]},"prompt_cache_key":"k"}`,
		},
		{
			`{"model":"m","input":[{"role":"user","content":"Hi"},{"type":"future_item","x":1}],"include":["x"],"store":true,"future":1,"nvext":{"agent_hints":{"priority":3}}}`,
			`{"model":"up/model","input":[{"role":"user","content":"Hi"},{"type":"future_item","x":1}],"future":1,"include":["x","reasoning.encrypted_content"],"store":false}`,
		},
		{
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}],"tools":[{"type":"web_search_20250305","name":"web_search"}],"context_management":{"edits":[]}}`,
			`{"model":"up/model","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}],"tools":[{"type":"web_search_20250305","name":"web_search"}],"context_management":{"edits":[]}}`,
		},
	} {
		k := managedKinds[i]
		e := newEndpoint(t, playing(k, lengthScene))
		r := managed(t, k, nil, e)
		status, head, text := send(t, r.url+apiCases[i].path, c.body, "Anthropic-Beta", "context-management-2025-06-27", "Anthropic-Version", "2099-01-01")
		require.Equal(t, 200, status, text)
		sent, h := e.last(t)
		require.Equal(t, c.want, sent)
		if k == upstream.Anthropic {
			require.Equal(t, "context-management-2025-06-27", h.Get("Anthropic-Beta"))
			require.Equal(t, "2099-01-01", h.Get("Anthropic-Version"))
		} else {
			require.Empty(t, h.Get("Anthropic-Beta"))
		}
		require.Equal(t, []string{"service_tier", "store", ""}[i], head.Get("X-Weft-Dropped"))
	}
}

// TestManagedStore checks that an endpoint gets the whole conversation of a request that continues a stored response.
func TestManagedStore(t *testing.T) {
	for _, k := range managedKinds {
		e := newEndpoint(t, playing(k, lengthScene))
		r := managed(t, k, func(o *serve.Options) { o.Store = storeOf(1 << 20) }, e)
		_, _, text := send(t, r.url+"/v1/responses", `{"model":"m","input":"Begin."}`)
		var first struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(text), &first))
		status, head, text := send(t, r.url+"/v1/responses", `{"model":"m","input":"Go on.","previous_response_id":"`+first.ID+`"}`)
		require.Equal(t, 200, status, text)
		require.NotContains(t, head.Get("X-Weft-Dropped"), "previous_response_id")
		sent, _ := e.last(t)
		require.NotContains(t, sent, "previous_response_id")
		for _, has := range []string{"Begin.", "Half an ans", "Go on."} {
			require.Contains(t, sent, has)
		}
	}
}

// TestManagedDeltas checks that each delta reaches the client before the endpoint writes the next one.
func TestManagedDeltas(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		next := make(chan bool)
		events := lengthScene[k.String()].stream
		e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ object) {
			for _, ev := range events {
				if strings.Contains(ev, "an ans") && strings.Contains(ev, "delta") {
					<-next // the client has what came before
				}
				writeEvents(w, ev)
			}
		})
		r := managed(t, k, nil, e)
		raw, err := json.Marshal(a.body("Hi", true))
		require.NoError(t, err)
		resp, err := http.Post(r.url+a.path, "application/json", strings.NewReader(string(raw)))
		require.NoError(t, err)
		defer resp.Body.Close()
		var got []byte
		buf := make([]byte, 4096)
		for !strings.Contains(string(got), "Half ") {
			n, err := resp.Body.Read(buf)
			require.NoError(t, err)
			got = append(got, buf[:n]...)
		}
		require.NotContains(t, string(got), "an ans")
		close(next)
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "Half an ans", a.gather(t, string(got)+string(rest)).Text)
	})
}

// TestManagedCount checks that tokens are counted by endpoints that can, and that nothing else needs them.
func TestManagedCount(t *testing.T) {
	counter := func(w http.ResponseWriter, r *http.Request, body object) {
		if !strings.HasSuffix(r.URL.Path, "tokens") || body["max_tokens"] != nil || body["stream"] != nil || body["store"] != nil {
			w.WriteHeader(404)
			return
		}
		io.WriteString(w, `{"object":"response.input_tokens","input_tokens":42}`)
	}
	for _, k := range managedKinds {
		e := newEndpoint(t, counter)
		r := managed(t, k, nil, e)
		for path, body := range map[string]string{
			"/v1/messages/count_tokens":  `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`,
			"/v1/responses/input_tokens": `{"model":"m","input":"Hi"}`,
		} {
			status, _, text := send(t, r.url+path, body)
			if k == upstream.OpenAI {
				require.Equal(t, 400, status)
				require.Contains(t, text, "do not count tokens")
				continue
			}
			require.Equal(t, 200, status, text)
			require.Contains(t, text, `"input_tokens":42`)
		}
		for path, body := range map[string]string{
			"/v1/tokenize":    `{"model":"m","prompt":"Hi"}`,
			"/v1/detokenize":  `{"model":"m","tokens":[1]}`,
			"/v1/embeddings":  `{"model":"m","input":"Hi"}`,
			"/v1/completions": `{"model":"m","prompt":"Hi"}`,
		} {
			status, _, text := send(t, r.url+path, body)
			require.Equal(t, 400, status, text)
			require.Contains(t, text, "take conversations")
		}
	}
}

// TestManagedRetry puts endpoints of several APIs behind one model: if one fails, another gets the request in its own API,
// with its own name of the model.
func TestManagedRetry(t *testing.T) {
	for _, a := range apiCases {
		broken := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ object) { w.WriteHeader(500) })
		works := newEndpoint(t, playing(upstream.Anthropic, callScene))
		r := managed(t, upstream.OpenAI, func(o *serve.Options) {
			o.Engines = []serve.Engine{
				{Name: "a", URL: broken.URL, Kind: upstream.OpenAI, Model: "one"},
				{Name: "b", URL: works.URL, Kind: upstream.Anthropic, Model: "two"},
			}
			o.Placement, _ = policy.Named("round_robin")
		})
		for range 2 {
			status, _, text := send(t, r.url+a.path, a.body("Hi", true))
			require.Equal(t, 200, status, text)
			require.Equal(t, "Looking.", a.gather(t, text).Text)
		}
		sent, _ := broken.last(t)
		require.Contains(t, sent, `"model":"one"`)
		sent, _ = works.last(t)
		require.Contains(t, sent, `"model":"two"`)
	}
}

// TestManagedRetryDrops checks that the log has the fields that only the API of the next endpoint does not have.
func TestManagedRetryDrops(t *testing.T) {
	broken := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ object) { w.WriteHeader(500) })
	works := newEndpoint(t, playing(upstream.Anthropic, callScene))
	var log syncBuffer
	r := managed(t, upstream.OpenAI, func(o *serve.Options) {
		o.Engines = []serve.Engine{{URL: broken.URL, Kind: upstream.OpenAI, Model: "one"}, {URL: works.URL, Kind: upstream.Anthropic, Model: "two"}}
		o.Placement, _ = policy.Named("round_robin")
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	body := apiCases[0].body("Hi", false)
	body["seed"] = 7
	status, h, text := send(t, r.url+apiCases[0].path, body)
	require.Equal(t, 200, status, text)
	require.Empty(t, h.Get("X-Weft-Dropped"), "the first endpoint has it")
	require.Contains(t, log.String(), `msg="not converted"`)
	require.Equal(t, 1, strings.Count(log.String(), "fields=seed"), log.String())
}

// TestManagedGone checks that the endpoint's request ends when the client disconnects, and that the output until then is
// counted.
func TestManagedGone(t *testing.T) {
	for i, k := range managedKinds {
		gone := make(chan bool)
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, _ object) {
			writeEvents(w, brokenScene[k.String()].stream...)
			<-r.Context().Done()
			close(gone)
		})
		r := managed(t, k, nil, e)
		a := apiCases[i]
		raw, err := json.Marshal(a.body("Hi", true))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+a.path, strings.NewReader(string(raw)))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_, err = resp.Body.Read(make([]byte, 1))
		require.NoError(t, err)
		cancel()
		resp.Body.Close()
		<-gone
		rec := r.done(t, 1)[0]
		require.Equal(t, "canceled", rec.Finish)
		require.NotZero(t, rec.Usage.Output)
	}
}

// TestManagedSilence checks that an endpoint that stops sending fails after Options.EngineSilence.
func TestManagedSilence(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, _ object) {
			writeEvents(w, brokenScene[k.String()].stream...)
			<-r.Context().Done()
		})
		r := managed(t, k, func(o *serve.Options) { o.EngineSilence = 50 * time.Millisecond }, e)
		_, _, text := send(t, r.url+a.path, a.body("Hi", true))
		got := a.gather(t, text)
		require.Equal(t, "Half an ans", got.Text)
		require.Contains(t, text, "took too long")
	})
}

// TestManagedUncounted checks that output without usage is estimated, and that estimates and reports count against the limits of
// a key.
func TestManagedUncounted(t *testing.T) {
	for _, counted := range []bool{true, false} {
		e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ object) {
			stream := lengthScene["openai"].stream
			if !counted {
				stream = slices.DeleteFunc(slices.Clone(stream), func(s string) bool { return s == chunkUsage })
			}
			writeEvents(w, stream...)
		})
		r := managed(t, upstream.OpenAI, func(o *serve.Options) {
			o.Keys = []serve.Key{{Secret: "sk-1", TokensPerMinute: 100}}
		}, e)
		a := apiCases[0]
		status, _, text := send(t, r.url+a.path, a.body("Hi", true), "Authorization", "Bearer sk-1")
		require.Equal(t, 200, status, text)
		u := r.done(t, 1)[0].Usage
		if counted {
			require.EqualValues(t, 120, u.Prompt+u.Output)
			status, head, _ := send(t, r.url+a.path, a.body("Hi", true), "Authorization", "Bearer sk-1")
			require.Equal(t, 429, status, "the prompt counts too")
			require.NotEmpty(t, head.Get("Retry-After"))
			continue
		}
		require.EqualValues(t, 3, u.Output, "11 bytes")
		require.Greater(t, u.Prompt, int64(50), "the body has some hundred bytes")
		require.Less(t, u.Prompt, int64(150))
	}
}

// TestManagedAbsurdUsage has endpoints with counts whose sum overflows: the output is counted by its length, and a limit of
// tokens per minute does not count for days.
func TestManagedAbsurdUsage(t *testing.T) {
	counts := regexp.MustCompile(`_tokens":[0-9]+`)
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, body object) {
			rec := httptest.NewRecorder()
			playing(k, callScene)(rec, r, body)
			w.Header().Set("Content-Type", "text/event-stream")
			w.Write(counts.ReplaceAll(rec.Body.Bytes(), []byte(`_tokens":9223372036854775807`)))
		})
		done := make(chan serve.Record, 1)
		r := managed(t, k, func(o *serve.Options) {
			o.Keys = []serve.Key{{Secret: "k", TokensPerMinute: 1}}
			o.OnDone = func(r serve.Record) { done <- r }
		}, e)
		status, _, body := send(t, r.url+a.path, a.body("Where is it?", true), "X-Api-Key", "k")
		require.Equal(t, 200, status, body)
		got := a.gather(t, body)
		require.Equal(t, "Looking.", got.Text)
		require.Less(t, got.Output, 100)
		require.Zero(t, got.Cached)
		require.Less(t, (<-done).Usage.Output, int64(100))
	})
}

// TestManagedLogs checks that the log has no text of requests, responses and errors of endpoints, and no keys.
func TestManagedLogs(t *testing.T) {
	eachPair(t, func(t *testing.T, a apiCase, k upstream.Managed) {
		var log bytes.Buffer
		status := 200
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, body object) {
			if status == 200 {
				playing(k, callScene)(w, r, body)
				return
			}
			w.WriteHeader(status)
			io.WriteString(w, `{"type":"error","error":{"type":"x","message":"you sent SECRET with the key sk-up"}}`)
		})
		r := managed(t, k, func(o *serve.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			o.Retries = -1
		}, e)
		body := a.body("SECRET", true)
		body[strings.Repeat("long name ", 50)] = "SECRET"
		for _, status = range []int{200, 400, 401, 429, 500} {
			send(t, r.url+a.path, body, "Authorization", "Bearer sk-client")
		}
		r.done(t, 5)
		require.Contains(t, log.String(), "request done")
		for _, secret := range []string{"SECRET", "sk-client", "sk-up", "two looks", "a.go", strings.Repeat("long name ", 20)} {
			require.NotContains(t, log.String(), secret)
		}
	})
}
