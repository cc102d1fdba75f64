// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// managedKinds are the kinds of managed endpoints, in the order of apiCases.
var managedKinds = []upstream.Managed{upstream.OpenAI, upstream.Responses, upstream.Anthropic}

// An endpoint is a stub of a managed endpoint. It records requests and plays a response.
type endpoint struct {
	*httptest.Server
	play func(w http.ResponseWriter, r *http.Request, body object)

	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	paths  []string
}

// newEndpoint starts an endpoint that plays what play returns for the path and the body of a request.
func newEndpoint(t testing.TB, play func(w http.ResponseWriter, r *http.Request, body object)) *endpoint {
	e := &endpoint{play: play}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var body object
		json.Unmarshal(raw, &body)
		e.mu.Lock()
		e.bodies, e.heads, e.paths = append(e.bodies, string(raw)), append(e.heads, r.Header), append(e.paths, r.URL.Path)
		play := e.play
		e.mu.Unlock()
		play(w, r, body)
	}))
	t.Cleanup(e.Close)
	return e
}

// last returns the body and the header of the last request.
func (e *endpoint) last(t testing.TB) (string, http.Header) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.NotEmpty(t, e.bodies)
	return e.bodies[len(e.bodies)-1], e.heads[len(e.heads)-1]
}

// managed starts a gateway in front of endpoints of a kind.
func managed(t testing.TB, kind upstream.Managed, change func(*serve.Options), endpoints ...*endpoint) *rig {
	return start(t, 0, nil, func(o *serve.Options) {
		o.Prompts = nil
		for _, e := range endpoints {
			o.Engines = append(o.Engines, serve.Engine{URL: e.URL, Kind: kind, APIKey: "sk-up", Model: "up/model"})
		}
		if change != nil {
			change(o)
		}
	})
}

// writeEvents writes a stream: events with a type if they have one.
func writeEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range events {
		var typed struct{ Type string }
		if json.Unmarshal([]byte(data), &typed); typed.Type != "" {
			io.WriteString(w, "event: "+typed.Type+"\n")
		}
		io.WriteString(w, "data: "+data+"\n\n")
		w.(http.Flusher).Flush()
	}
}

// playing returns a player of a scene, streamed or whole as the request asks, in the API of a kind.
func playing(kind upstream.Managed, s scene) func(w http.ResponseWriter, r *http.Request, body object) {
	return func(w http.ResponseWriter, _ *http.Request, body object) {
		form := s[kind.String()]
		if body["stream"] == true {
			writeEvents(w, form.stream...)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, form.whole)
	}
}

// A scene is a response in the APIs of the kinds.
type scene map[string]form

type form struct {
	stream []string
	whole  string // "" if there is no such whole response
}

// chunk returns a chunk of the Chat Completions API.
func chunk(delta string) string {
	return `{"id":"chatcmpl-up","object":"chat.completion.chunk","created":1,"model":"up/model-2","system_fingerprint":"fp","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}]}`
}

func chunkEnd(why string) string {
	return strings.Replace(chunk("{}"), `"finish_reason":null`, `"finish_reason":"`+why+`"`, 1)
}

const chunkUsage = `{"id":"chatcmpl-up","object":"chat.completion.chunk","created":1,"model":"up/model-2","choices":[],"usage":{"prompt_tokens":90,"completion_tokens":30,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5}}}`

// Parts of streams of the Messages API.
const (
	messageStart = `{"type":"message_start","message":{"id":"msg_up","type":"message","role":"assistant","model":"up/model-2","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":26,"cache_creation_input_tokens":0,"cache_read_input_tokens":64,"output_tokens":1}}}`
	messagePing  = `{"type":"ping"}`
	messageStop  = `{"type":"message_stop"}`
)

func messageEnd(why string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + why + `","stop_sequence":null},"usage":{"output_tokens":30}}`
}

func blockStart(i, block string) string {
	return `{"type":"content_block_start","index":` + i + `,"content_block":` + block + `}`
}

func blockDelta(i, delta string) string {
	return `{"type":"content_block_delta","index":` + i + `,"delta":` + delta + `}`
}

func blockStop(i string) string { return `{"type":"content_block_stop","index":` + i + `}` }

// Parts of streams of the Responses API.
const (
	responseCreated = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_up","object":"response","created_at":1,"status":"in_progress","model":"up/model-2","output":[]}}`
	responseUsage   = `"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":64},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}`
)

func responseEnd(status, more, output string) string {
	return `{"type":"response.` + status + `","sequence_number":99,"response":` + response(status, more, output) + `}`
}

func response(status, more, output string) string {
	return `{"id":"resp_up","object":"response","created_at":1,"status":"` + status + `","model":"up/model-2",` + more + `"output":[` + output + `],` + responseUsage + `}`
}

func itemAdded(i, item string) string {
	return `{"type":"response.output_item.added","sequence_number":1,"output_index":` + i + `,"item":` + item + `}`
}

func itemDone(i, item string) string {
	return `{"type":"response.output_item.done","sequence_number":1,"output_index":` + i + `,"item":` + item + `}`
}

func itemDelta(typ, i, rest string) string {
	return `{"type":"response.` + typ + `","sequence_number":1,"output_index":` + i + `,` + rest + `}`
}

const (
	reasonItem = `{"id":"rs_up","type":"reasoning","summary":[{"type":"summary_text","text":"I need two looks."}],"encrypted_content":"gAAA+up"}`
	textItem   = `{"id":"msg_up1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Looking.","annotations":[]}]}`
	readItem   = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"read","arguments":"{\"path\": \"a.go\"}"}`
	grepItem   = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"grep","arguments":"{\"pattern\": \"x+\"}"}`
)

// callScene has reasoning, text and two parallel calls, the output of a turn of an agent.
var callScene = scene{
	"openai": {
		stream: []string{
			chunk(`{"role":"assistant","content":null,"reasoning_content":"I need "}`), chunk(`{"reasoning_content":"two looks."}`),
			chunk(`{"content":"Look"}`), chunk(`{"content":"ing."}`),
			chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]}`),
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}`), chunk(`{"tool_calls":[{"index":0,"function":{"arguments":" \"a.go\"}"}}]}`),
			chunk(`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"grep","arguments":"{\"pattern\": \"x+\"}"}}]}`),
			chunkEnd("tool_calls"), chunkUsage, "[DONE]",
		},
		whole: `{"id":"chatcmpl-up","object":"chat.completion","created":1,"model":"up/model-2","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"I need two looks.","content":"Looking.","refusal":null,` +
			`"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.go\"}"}},{"id":"call_2","type":"function","function":{"name":"grep","arguments":"{\"pattern\": \"x+\"}"}}]},"finish_reason":"tool_calls"}],` +
			`"usage":{"prompt_tokens":90,"completion_tokens":30,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5}}}`,
	},
	"anthropic": {
		stream: []string{
			messageStart, messagePing, blockStart("0", `{"type":"thinking","thinking":"","signature":""}`),
			blockDelta("0", `{"type":"thinking_delta","thinking":"I need "}`), blockDelta("0", `{"type":"thinking_delta","thinking":"two looks."}`),
			blockDelta("0", `{"type":"signature_delta","signature":"sig+up"}`), blockStop("0"),
			blockStart("1", `{"type":"text","text":""}`), blockDelta("1", `{"type":"text_delta","text":"Look"}`), blockDelta("1", `{"type":"text_delta","text":"ing."}`), blockStop("1"),
			blockStart("2", `{"type":"tool_use","id":"call_1","name":"read","input":{}}`), blockDelta("2", `{"type":"input_json_delta","partial_json":""}`),
			blockDelta("2", `{"type":"input_json_delta","partial_json":"{\"path\":"}`), blockDelta("2", `{"type":"input_json_delta","partial_json":" \"a.go\"}"}`), blockStop("2"),
			blockStart("3", `{"type":"tool_use","id":"call_2","name":"grep","input":{}}`), blockDelta("3", `{"type":"input_json_delta","partial_json":"{\"pattern\": \"x+\"}"}`), blockStop("3"),
			messageEnd("tool_use"), messageStop,
		},
		whole: `{"id":"msg_up","type":"message","role":"assistant","model":"up/model-2","content":[{"type":"thinking","thinking":"I need two looks.","signature":"sig+up"},{"type":"text","text":"Looking."},` +
			`{"type":"tool_use","id":"call_1","name":"read","input":{"path": "a.go"}},{"type":"tool_use","id":"call_2","name":"grep","input":{"pattern": "x+"}}],"stop_reason":"tool_use","stop_sequence":null,` +
			`"usage":{"input_tokens":26,"cache_creation_input_tokens":0,"cache_read_input_tokens":64,"output_tokens":30}}`,
	},
	"responses": {
		stream: []string{
			responseCreated, itemAdded("0", `{"id":"rs_up","type":"reasoning","summary":[]}`),
			itemDelta("reasoning_summary_part.added", "0", `"item_id":"rs_up","summary_index":0,"part":{"type":"summary_text","text":""}`),
			itemDelta("reasoning_summary_text.delta", "0", `"item_id":"rs_up","summary_index":0,"delta":"I need "`),
			itemDelta("reasoning_summary_text.delta", "0", `"item_id":"rs_up","summary_index":0,"delta":"two looks."`),
			itemDelta("reasoning_summary_text.done", "0", `"item_id":"rs_up","summary_index":0,"text":"I need two looks."`),
			itemDone("0", reasonItem),
			itemAdded("1", `{"id":"msg_up1","type":"message","role":"assistant","status":"in_progress","content":[]}`),
			itemDelta("content_part.added", "1", `"item_id":"msg_up1","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`),
			itemDelta("output_text.delta", "1", `"item_id":"msg_up1","content_index":0,"delta":"Look"`), itemDelta("output_text.delta", "1", `"item_id":"msg_up1","content_index":0,"delta":"ing."`),
			itemDelta("output_text.done", "1", `"item_id":"msg_up1","content_index":0,"text":"Looking."`), itemDone("1", textItem),
			itemAdded("2", `{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"read","arguments":""}`),
			itemDelta("function_call_arguments.delta", "2", `"item_id":"fc_1","delta":"{\"path\":"`), itemDelta("function_call_arguments.delta", "2", `"item_id":"fc_1","delta":" \"a.go\"}"`),
			itemDelta("function_call_arguments.done", "2", `"item_id":"fc_1","arguments":"{\"path\": \"a.go\"}"`), itemDone("2", readItem),
			itemAdded("3", `{"id":"fc_2","type":"function_call","status":"in_progress","call_id":"call_2","name":"grep","arguments":""}`),
			itemDelta("function_call_arguments.delta", "3", `"item_id":"fc_2","delta":"{\"pattern\": \"x+\"}"`), itemDone("3", grepItem),
			responseEnd("completed", "", reasonItem+","+textItem+","+readItem+","+grepItem),
		},
		whole: response("completed", "", reasonItem+","+textItem+","+readItem+","+grepItem),
	},
}

// cutItem is a message that the limit of output tokens has cut.
var cutItem = strings.NewReplacer("completed", "incomplete", "Looking.", "Half an ans").Replace(textItem)

// lengthScene ends at the limit of output tokens.
var lengthScene = scene{
	"openai": {
		stream: []string{chunk(`{"role":"assistant","content":"Half "}`), chunk(`{"content":"an ans"}`), chunkEnd("length"), chunkUsage, "[DONE]"},
		whole: `{"id":"c","object":"chat.completion","created":1,"model":"up/model-2","choices":[{"index":0,"message":{"role":"assistant","content":"Half an ans"},"finish_reason":"length"}],` +
			`"usage":{"prompt_tokens":90,"completion_tokens":30,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64}}}`,
	},
	"anthropic": {
		stream: []string{
			messageStart, blockStart("0", `{"type":"text","text":""}`), blockDelta("0", `{"type":"text_delta","text":"Half "}`), blockDelta("0", `{"type":"text_delta","text":"an ans"}`),
			blockStop("0"), messageEnd("max_tokens"), messageStop,
		},
		whole: `{"id":"msg_up","type":"message","role":"assistant","model":"up/model-2","content":[{"type":"text","text":"Half an ans"}],"stop_reason":"max_tokens","stop_sequence":null,` +
			`"usage":{"input_tokens":26,"cache_read_input_tokens":64,"output_tokens":30}}`,
	},
	"responses": {
		stream: []string{
			responseCreated, itemAdded("0", `{"id":"msg_up1","type":"message","role":"assistant","status":"in_progress","content":[]}`),
			itemDelta("output_text.delta", "0", `"item_id":"msg_up1","content_index":0,"delta":"Half "`), itemDelta("output_text.delta", "0", `"item_id":"msg_up1","content_index":0,"delta":"an ans"`),
			itemDone("0", cutItem), responseEnd("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`, cutItem),
		},
		whole: response("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`, cutItem),
	},
}

const refusalItem = `{"id":"msg_up1","type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"I cannot help with that."}]}`

// refusalScene is a refusal of the model, which the Messages API has as a stop reason.
var refusalScene = scene{
	"openai": {
		stream: []string{chunk(`{"role":"assistant","content":null,"refusal":"I cannot "}`), chunk(`{"refusal":"help with that."}`), chunkEnd("stop"), chunkUsage, "[DONE]"},
		whole: `{"id":"c","object":"chat.completion","created":1,"model":"up/model-2","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I cannot help with that."},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":90,"completion_tokens":30,"total_tokens":120}}`,
	},
	"anthropic": {
		stream: []string{
			messageStart, blockStart("0", `{"type":"text","text":""}`), blockDelta("0", `{"type":"text_delta","text":"I cannot help with that."}`),
			blockStop("0"), messageEnd("refusal"), messageStop,
		},
		whole: `{"id":"msg_up","type":"message","role":"assistant","model":"up/model-2","content":[{"type":"text","text":"I cannot help with that."}],"stop_reason":"refusal","stop_sequence":null,` +
			`"usage":{"input_tokens":26,"cache_read_input_tokens":64,"output_tokens":30}}`,
	},
	"responses": {
		stream: []string{
			responseCreated, itemAdded("0", `{"id":"msg_up1","type":"message","role":"assistant","status":"in_progress","content":[]}`),
			itemDelta("refusal.delta", "0", `"item_id":"msg_up1","content_index":0,"delta":"I cannot help with that."`),
			itemDone("0", refusalItem), responseEnd("completed", "", refusalItem),
		},
		whole: response("completed", "", refusalItem),
	},
}

// errorScene is an error of the endpoint after some text, as each API has it.
var errorScene = scene{
	"openai":    {stream: append(lengthScene["openai"].stream[:2:2], `{"error":{"message":"The upstream is overloaded, so sorry.","type":"overloaded_error","code":503}}`)},
	"anthropic": {stream: append(lengthScene["anthropic"].stream[:4:4], `{"type":"error","error":{"type":"overloaded_error","message":"The upstream is overloaded, so sorry."}}`)},
	"responses": {stream: append(lengthScene["responses"].stream[:4:4],
		`{"type":"response.failed","sequence_number":9,"response":{"id":"resp_up","object":"response","status":"failed","error":{"code":"server_overloaded","message":"The upstream is overloaded, so sorry."},"output":[]}}`)},
}

// brokenScene ends after some text.
var brokenScene = scene{
	"openai":    {stream: lengthScene["openai"].stream[:2]},
	"anthropic": {stream: lengthScene["anthropic"].stream[:4]},
	"responses": {stream: lengthScene["responses"].stream[:4]},
}
