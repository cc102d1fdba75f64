// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// recorder is an http.RoundTripper that keeps the last body sent to engines, and the host.
type recorder struct {
	host string
	body map[string]json.RawMessage
}

func (c *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/health" {
		return answerOf(200, ""), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.host, c.body = r.URL.Host, nil
	return answerOf(200, whole), json.Unmarshal(body, &c.body)
}

// fieldsRig returns a gateway with an engine for each value of constraints, named e0, e1, …, and what sends it bodies.
func fieldsRig(t *testing.T, unconstrained bool, constraints ...bool) (*recorder, func(path, body string) *httptest.ResponseRecorder) {
	engine := &recorder{}
	o := serve.Options{Model: "m", Prompts: hermesModel(), Transport: engine, Unconstrained: unconstrained, HealthInterval: -1}
	for i, able := range constraints {
		var kind upstream.Kind = upstream.Embedded{}
		if able {
			kind = upstream.VLLM{}
		}
		o.Engines = append(o.Engines, serve.Engine{URL: fmt.Sprint("http://e", i), Kind: kind})
	}
	g, err := serve.New(&o)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return engine, func(path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/"+path, strings.NewReader(body)))
		return w
	}
}

const (
	fieldsChat      = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],`
	fieldsMessages  = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"type":"object"}}],`
	fieldsResponses = `{"model":"m","input":"x","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],`
)

// Each way to demand a form of the output reaches an engine that takes constraints as a structural tag.
func TestConstraints(t *testing.T) {
	for _, tt := range []struct{ path, body, param string }{
		{"chat/completions", fieldsChat + `"tool_choice":"required"}`, "tool_choice"},
		{"chat/completions", fieldsChat + `"tool_choice":{"type":"function","function":{"name":"f"}}}`, "tool_choice"},
		{"chat/completions", fieldsChat + `"response_format":{"type":"json_object"}}`, "response_format"},
		{"chat/completions", fieldsChat + `"structured_outputs":{"regex":"a+"}}`, "structured_outputs"},
		{"chat/completions", fieldsChat + `"guided_choice":["a","b"]}`, "guided_choice"},
		{"messages", fieldsMessages + `"tool_choice":{"type":"any"}}`, "tool_choice"},
		{"messages", fieldsMessages + `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}`, "output_config.format"},
		{"responses", fieldsResponses + `"tool_choice":"required"}`, "tool_choice"},
		{"responses", fieldsResponses + `"guided_regex":"a+"}`, "guided_regex"},
		{"messages", fieldsMessages + `"guided_choice":["a","b"]}`, "guided_choice"},
		{"responses", fieldsResponses + `"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}}}`, "text.format"},
	} {
		engine, post := fieldsRig(t, false, false, true, false)
		w := post(tt.path, tt.body)
		require.Equal(t, 200, w.Code, "%s: %s", tt.body, w.Body)
		require.Equal(t, "e1", engine.host, "the engine with constraints")
		require.Contains(t, string(engine.body["response_format"]), `{"type":"structural_tag","format":{`, tt.body)
		require.Empty(t, w.Header().Get("X-Weft-Dropped"))

		engine, post = fieldsRig(t, false, false)
		w = post(tt.path, tt.body)
		require.Equal(t, 400, w.Code, tt.body)
		require.Contains(t, w.Body.String(), "cannot constrain the output")
		require.Empty(t, engine.host)
		if tt.path != "messages" {
			require.Contains(t, w.Body.String(), `"param":"`+tt.param+`"`)
		}

		engine, post = fieldsRig(t, true, false)
		w = post(tt.path, tt.body)
		require.Equal(t, 200, w.Code, tt.body)
		require.Empty(t, engine.body["response_format"])
		require.Equal(t, tt.param, w.Header().Get("X-Weft-Dropped"))
	}

	_, post := fieldsRig(t, false, false) // counting tokens needs no engine
	require.Equal(t, 200, post("tokenize", fieldsChat+`"tool_choice":"required"}`).Code)
	require.Equal(t, 200, post("messages/count_tokens", fieldsMessages+`"tool_choice":{"type":"any"}}`).Code)
	require.Equal(t, 200, post("responses/input_tokens", fieldsResponses+`"tool_choice":"required"}`).Code)

	engine, post := fieldsRig(t, false, true)
	require.Equal(t, 200, post("chat/completions", fieldsChat+`"tool_choice":"auto"}`).Code)
	require.NotContains(t, engine.body, "response_format", "nothing is demanded")
	for _, unconstrained := range []bool{false, true} { // faults of the request
		_, post := fieldsRig(t, unconstrained, true)
		w := post("chat/completions", fieldsChat+`"tool_choice":{"type":"function","function":{"name":"other"}}}`)
		require.Equal(t, 400, w.Code)
		require.Contains(t, w.Body.String(), `The tool \"other\" is not among the tools of the request.`)
	}
}

// A request that fails on the only engine with constraints is not retried on one without.
func TestConstraintsRetry(t *testing.T) {
	s := &stub{answer: func(host string, _ *http.Request) (*http.Response, error) {
		if host == "e1" {
			return nil, io.ErrUnexpectedEOF
		}
		return answerOf(200, whole), nil
	}}
	g := stubbed(t, 2, s, func(o *serve.Options) { o.HealthInterval, o.Engines[1].Kind = -1, upstream.VLLM{} })
	defer g.Close()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(fieldsChat+`"tool_choice":"required"}`)))
	require.Equal(t, 502, w.Code)
	require.Zero(t, s.count("e0"))
}

// refusing is an http.RoundTripper of an engine that knows no structural tags.
type refusing struct{ asked int }

func (e *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if e.asked++; strings.Contains(string(body), `"response_format"`) {
		return answerOf(400, `{"error":{"message":"unknown format any_tokens"}}`), err
	}
	return answerOf(200, whole), err
}

// An engine that refuses the constraint of strict tools gets the request without it, unless calls are required.
func TestStrictIsRefused(t *testing.T) {
	var log bytes.Buffer
	e := &refusing{}
	g := stubbed(t, 1, nil, func(o *serve.Options) {
		o.HealthInterval, o.Engines[0].Kind, o.Transport = -1, upstream.VLLM{}, e
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	defer g.Close()
	strict := strings.Replace(fieldsChat, `"name":"f",`, `"name":"f","strict":true,`, 1)
	for fields, want := range map[string][2]int{`"seed":1}`: {200, 2}, `"tool_choice":"required"}`: {400, 1}} {
		e.asked = 0
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(strict+fields)))
		require.Equal(t, want, [2]int{w.Code, e.asked}, "%s", w.Body)
	}
	require.Equal(t, 1, strings.Count(log.String(), "strict tools without effect"))
}

// Fields without effect are named, others are not: those that reach the engine, hints, and values that ask for nothing.
func TestDroppedFields(t *testing.T) {
	engine, post := fieldsRig(t, false, true)
	for _, tt := range []struct{ path, body, want string }{
		{"chat/completions", fieldsChat + `"temperature":1,"logit_bias":{"7":-100},"min_tokens":1,"user":"u","prompt_cache_key":"k","metadata":null}`, ""},
		{"chat/completions", fieldsChat + `"logprobs":false,"top_logprobs":0,"modalities":["text"],"store":false,"prediction":null,"stop":[],"guided_decoding_backend":""}`, ""},
		{"chat/completions", fieldsChat + `"skip_special_tokens":true,"include_reasoning":true,"cache_prompt":true,"detokenize":null,"add_special_tokens":false,"service_tier":""}`, ""},
		{"chat/completions", fieldsChat + `"skip_special_tokens":false,"spaces_between_special_tokens":false,"detokenize":false,"cache_prompt":false,"web_search_options":{}}`,
			"skip_special_tokens, spaces_between_special_tokens, detokenize, cache_prompt, web_search_options"},
		{"chat/completions", fieldsChat + `"include_reasoning":false,"separate_reasoning":false,"stream_reasoning":false}`,
			"include_reasoning, separate_reasoning, stream_reasoning"},
		{"responses", fieldsResponses + `"max_tool_calls":0}`, "max_tool_calls"},
		{"chat/completions", fieldsChat + `"modalities":["text","audio"],"never_heard_of":1}`, "modalities, never_heard_of"},
		{"chat/completions", strings.Replace(fieldsChat, `"name":"f",`, `"name":"f","strict":true,`, 1) + `"tool_choice":"auto"}`, ""},
		{"chat/completions", strings.Replace(fieldsChat, `"name":"f",`, `"name":"f","strict":true,`, 1) + `"tool_choice":"required"}`, ""},
		{"chat/completions", fieldsChat + `"a\r\nb, c":1}`, "a??b??c"},
		{"responses", fieldsResponses + `"store":true,"truncation":"auto","max_tool_calls":3,"text":{"verbosity":"low"}}`, "truncation, max_tool_calls, store, text.verbosity"},
		{"responses", fieldsResponses + `"store":false,"truncation":"disabled","include":["reasoning.encrypted_content"],"metadata":{"a":"b"}}`, ""},
		{"responses", fieldsResponses + `"prompt_cache_options":{"mode":"explicit","ttl":"30m","prewarm":false,"comparison_response_id":null}}`, ""},
		{"responses", fieldsResponses + `"prompt_cache_options":{"prewarm":true,"comparison_response_id":"r"}}`, "prompt_cache_options.prewarm, prompt_cache_options.comparison_response_id"},
		{"messages", fieldsMessages + `"container":"c","mcp_servers":[{}],"speed":"standard","service_tier":"auto"}`, "container, mcp_servers"},
	} {
		w := post(tt.path, tt.body)
		require.Equal(t, 200, w.Code, "%s", w.Body)
		require.Equal(t, tt.want, w.Header().Get("X-Weft-Dropped"), tt.body)
	}
	strict := strings.Replace(fieldsChat, `"name":"f",`, `"name":"f","strict":true,`, 1) + `"seed":1}`
	require.Equal(t, 200, post("chat/completions", strict).Code)
	require.Contains(t, string(engine.body["response_format"]), `"exclude_tokens"`, "calls of strict tools are held to their schemas")
	_, free := fieldsRig(t, false, false)
	w := free("chat/completions", strict)
	require.Equal(t, 200, w.Code, "%s", w.Body)
	require.Equal(t, "tools[0].strict", w.Header().Get("X-Weft-Dropped"))

	post("chat/completions", fieldsChat+`"logit_bias":{"7":-100}}`)
	require.JSONEq(t, `{"7":-100}`, string(engine.body["logit_bias"]))

	var many strings.Builder
	for i := range 50 {
		fmt.Fprintf(&many, `"%s%d":1,`, strings.Repeat("x", 100), i)
	}
	w = post("chat/completions", fieldsChat+many.String()+`"stream":false}`)
	require.Equal(t, 200, w.Code)
	require.Less(t, len(w.Header().Get("X-Weft-Dropped")), 32*66+16)
	require.True(t, strings.HasSuffix(w.Header().Get("X-Weft-Dropped"), ", 18 more"))
}

// Another attempt is not made on an engine that would ignore a field which the header does not name.
func TestDroppedFieldsRetry(t *testing.T) {
	for _, tt := range []struct {
		first, other upstream.Kind
		fields       string
		asked        []string
		dropped      string
	}{
		{upstream.VLLM{}, upstream.LlamaCPP{}, "", []string{"e0", "e1"}, ""},
		{upstream.VLLM{}, upstream.LlamaCPP{}, `"min_tokens":1,`, []string{"e0"}, ""}, // llama.cpp has no min_tokens
		{upstream.LlamaCPP{}, upstream.VLLM{}, `"min_tokens":1,`, []string{"e0", "e1"}, "min_tokens"},
	} {
		var asked []string
		s := &stub{answer: func(engine string, _ *http.Request) (*http.Response, error) {
			asked = append(asked, engine)
			return answerOf(500, "{}"), nil
		}}
		g := stubbed(t, 2, s, func(o *serve.Options) {
			o.Engines[0].Kind, o.Engines[1].Kind, o.HealthInterval = tt.first, tt.other, -1
		})
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(fieldsChat+tt.fields+`"seed":1}`)))
		g.Close()
		require.Equal(t, 502, w.Code)
		require.Equal(t, tt.asked, asked)
		require.Equal(t, tt.dropped, w.Header().Get("X-Weft-Dropped"))
	}
}

// TestDroppedParts checks that what is nested in a field, and tools, items and settings that the prompt does not contain, is named
// with its path, and what has an effect is not.
func TestDroppedParts(t *testing.T) {
	_, post := fieldsRig(t, false, true)
	const call = `{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}`
	for _, tt := range []struct{ path, body, want string }{
		{"chat/completions", fieldsChat + `"stream_options":{"include_usage":true,"include_obfuscation":false},"thinking":{"type":"enabled"}}`, ""},
		{"chat/completions", fieldsChat + `"stream_options":{"include_obfuscation":true},"thinking":{"type":"zzz","budget_tokens":9}}`,
			"thinking.type, stream_options.include_obfuscation, thinking.budget_tokens"},
		{"chat/completions", fieldsChat + `"metadata":{"a":"b"},"reasoning_effort":"none"}`, "metadata"},
		{"chat/completions", fieldsChat + `"reasoning_effort":"high","thinking":true}`, "thinking, reasoning_effort"},
		{"chat/completions", fieldsChat + `"reasoning_effort":"zzz"}`, "reasoning_effort"},
		{"responses", fieldsResponses + `"reasoning":{"effort":"low","summary":"auto","context":"all_turns","foo":1},"text":{"format":{"type":"text"},"foo":{"a":1}}}`,
			"reasoning.foo, text.foo, reasoning.effort"},
		{"responses", fieldsResponses + `"stream_options":{"include_obfuscation":true},"include":["reasoning.encrypted_content","zzz","message.input_image.image_url"]}`,
			"include[1], include[2], stream_options.include_obfuscation"},
		{"responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"zzz_item","a":1}],"tools":[{"type":"web_search"},{"type":"zzz"}]}`,
			"input[1], tools[0], tools[1]"},
		{"messages", fieldsMessages + `"thinking":{"type":"enabled","budget_tokens":2000,"display":"summarized","foo":1},"output_config":{"effort":"high","foo":1,"task_budget":null},"metadata":{"user_id":"u","foo":1}}`,
			"thinking.foo, output_config.foo, metadata.foo, output_config.effort, thinking.budget_tokens"},
		{"messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, "tools[0]"},
		{"messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"no"},{"type":"zzz"}]}],"system":"Be brief."}`,
			"messages[2].content[1], messages[2].content[0].is_error"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` + call + `]},{"role":"tool","tool_call_id":"c1","content":"y"},{"role":"system","content":"z"}]}`, ""},
		// A result without its call is in the prompt; only the name of the call has no effect.
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c1","content":"y"}]}`, "messages[1].tool_call_id"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"function","name":"f","content":"y"}]}`, "messages[1].name"},
		{"responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call_output","call_id":"c1","output":"y"}]}`, "input[1].call_id"},
		{"messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"y"}]}]}`, "messages[0].content[0].tool_use_id"},
	} {
		w := post(tt.path, tt.body)
		require.Equal(t, 200, w.Code, "%s", w.Body)
		require.Equal(t, tt.want, w.Header().Get("X-Weft-Dropped"), tt.body)
	}
	w := post("messages", fieldsMessages+`"thinking":{"type":"zzz"}}`)
	require.Equal(t, 400, w.Code)
	require.Contains(t, w.Body.String(), "thinking.type must be enabled, disabled, adaptive or between_tools")
	for _, kind := range []string{"adaptive", "between_tools"} {
		require.Equal(t, 200, post("messages", fieldsMessages+`"thinking":{"type":"`+kind+`"}}`).Code)
	}
}

// TestGenerateOverHTTP checks that generate, which only messages over WebSocket have, is named if it asks for something else than
// what happens.
func TestGenerateOverHTTP(t *testing.T) {
	_, post := fieldsRig(t, false, true)
	for value, want := range map[string]string{"false": "generate", `"no"`: "generate", "true": "", "null": ""} {
		w := post("responses", strings.TrimSuffix(fieldsResponses, ",")+`,"generate":`+value+`}`)
		require.Equal(t, 200, w.Code, "%s", w.Body)
		require.Equal(t, want, w.Header().Get("X-Weft-Dropped"), value)
	}
}
