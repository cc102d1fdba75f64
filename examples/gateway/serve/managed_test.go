// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// eachPair runs a test for each API of a client and each kind of endpoint.
func eachPair(t *testing.T, do func(t *testing.T, a apiCase, i int)) {
	for _, a := range apiCases {
		for i, k := range managedKinds {
			t.Run(a.name+" to "+k.String(), func(t *testing.T) { do(t, a, i) })
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
	eachPair(t, func(t *testing.T, a apiCase, i int) {
		k := managedKinds[i]
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
	eachPair(t, func(t *testing.T, a apiCase, i int) {
		k := managedKinds[i]
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
	eachPair(t, func(t *testing.T, a apiCase, i int) {
		k := managedKinds[i]
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
	eachPair(t, func(t *testing.T, a apiCase, i int) {
		k := managedKinds[i]
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
	eachPair(t, func(t *testing.T, a apiCase, i int) {
		back := start(t, 1, say(answer), nil)
		front := managed(t, managedKinds[i], func(o *serve.Options) {
			o.Engines = []serve.Engine{{URL: back.url, Kind: managedKinds[i], Model: "m"}}
		})
		_, _, direct := send(t, back.url+a.path, a.body("Where is it?", true))
		want := a.gather(t, direct)
		_, head, text := send(t, front.url+a.path, a.body("Where is it?", true))
		got := a.gather(t, text)
		require.Equal(t, "text/event-stream", head.Get("Content-Type"))
		require.GreaterOrEqual(t, got.Cached, 64, "the prompt begins as the one before")
		want.Cached = got.Cached
		if managedKinds[i] == upstream.Responses && a.name != "responses" {
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
