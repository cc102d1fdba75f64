// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
)

// received is a request that an engine received.
type received struct {
	header http.Header
	body   map[string]json.RawMessage
}

func target(t *testing.T, dialect string, features ...string) *intent.Target {
	to, err := intent.NewTarget(dialect, "", features...)
	require.NoError(t, err)
	return to
}

// recordRequests serves a gateway whose engine accepts the given hints and records each request.
func recordRequests(t *testing.T, to *intent.Target, change func(*serve.Options)) (*rig, func() received) {
	e := vllm.New(tok(), &vllm.Options{Model: "m", Speed: math.Inf(1), Script: say("x")})
	var mu sync.Mutex
	var last received
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		last = received{header: r.Header.Clone()}
		json.Unmarshal(raw, &last.body)
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(raw))
		e.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { e.Close(); s.Close() })
	r := start(t, 0, nil, func(o *serve.Options) {
		o.Engines = []serve.Engine{{Name: "e", URL: s.URL, Hints: to}}
		if change != nil {
			change(o)
		}
	})
	return r, func() received { mu.Lock(); defer mu.Unlock(); return last }
}

// TestHintsReachEngine sends hints in several dialects and checks the requests that engines of several kinds
// receive.
func TestHintsReachEngine(t *testing.T) {
	ops := func(o *serve.Options) {
		o.Tenant = func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }
		o.Shared = map[string]bool{"ops": true}
		o.Policies = map[string]intent.Policy{
			"ops": {MaxPriority: 10, Trust: intent.MustHints("salt", "tier"), Prefetch: true},
		}
	}
	for _, tt := range []struct {
		name     string
		to       *intent.Target
		header   []string
		members  object
		priority int32
		body     map[string]string // fields of the engine's request; "" means absent
	}{
		{
			"vLLM without priorities", nil, []string{"Authorization", "Bearer ops", "X-Dynamo-Request-Priority", "7", "X-Tenant-Id", "acme"}, nil,
			7, map[string]string{"priority": "", "cache_salt": `"acme"`},
		},
		{
			"vLLM with priorities", target(t, "vllm", "priority scheduling"), []string{"Authorization", "Bearer ops"},
			object{"nvext": object{"agent_hints": object{"priority": 7, "osl": 200, "strict_priority": 1}}},
			7, map[string]string{"priority": "-7", "nvext": "", "cache_salt": ""},
		},
		{
			"a stranger asks for more", target(t, "vllm", "priority scheduling"), nil,
			object{"nvext": object{"agent_hints": object{"priority": 7}}}, 0, map[string]string{"priority": ""},
		},
		{
			"Dynamo", target(t, "dynamo"), []string{"Authorization", "Bearer ops", "X-Weft-Expected-Output", "300"},
			object{"agent": object{"priority": 3, "prefetch": true}},
			3, map[string]string{"nvext": `{"agent_hints":{"priority":3,"osl":300}}`, "priority": ""},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, last := recordRequests(t, tt.to, ops)
			for i, a := range apiCases {
				body := a.body("go", true)
				for k, v := range tt.members {
					body[k] = v
				}
				status, _, text := send(t, r.url+a.path, body, tt.header...)
				require.Equal(t, 200, status, text)
				for name, want := range tt.body {
					require.Equal(t, want, string(last().body[name]), "%s: %s", a.name, name)
				}
				rec := r.done(t, i+1)[i]
				require.Equal(t, tt.priority, rec.Intent.Priority)
				require.Equal(t, tt.priority < 7 && tt.header == nil, len(rec.Limited) > 0)
				require.Empty(t, rec.Faults)
				require.Equal(t, intent.UserMessage, rec.Intent.Trigger)
				require.NotEqual(t, rec.RequestID, last().header.Get("X-Request-Id"))
				require.Equal(t, rec.EngineRequestID, last().header.Get("X-Request-Id"))
			}
		})
	}
}

// TestMalformedHints checks that a request with invalid hints succeeds and that the hints are reported.
func TestMalformedHints(t *testing.T) {
	r := start(t, 1, say("x"), nil)
	for i, a := range apiCases {
		body := a.body("go", false)
		body["nvext"] = object{"agent_hints": object{"priority": "soon", "osl": -1}, "cache_salt": 7}
		status, _, text := send(t, r.url+a.path, body, "X-Dynamo-Request-Priority", "9e99", "X-Codex-Turn-Metadata", "{", "Originator", "codex_exec")
		require.Equal(t, 200, status, text)
		rec := r.done(t, i+1)[i]
		var where []string
		for _, f := range rec.Faults {
			where = append(where, f.Where)
		}
		for _, want := range []string{"header x-dynamo-request-priority", "nvext.agent_hints.priority", "nvext.agent_hints.osl", "nvext.cache_salt"} {
			require.Contains(t, where, want)
		}
		require.Zero(t, rec.Intent.Priority)
	}
}

// TestPrefixDivergence sends a session whose system text changes.
func TestPrefixDivergence(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) { o.StripPreamble = true })
	turn := func(system string, more ...any) object {
		return object{"model": "m", "max_tokens": 9, "system": system, "messages": append([]any{object{"role": "user", "content": "one"}}, more...)}
	}
	again := []any{object{"role": "assistant", "content": "x"}, object{"role": "user", "content": "two"}}
	bill := func(cch string) string {
		return "x-anthropic-billing-header: cc_version=2.1.330.1ad; cch=" + cch + ";\n"
	}
	bodies := []object{
		turn(bill("00000") + "You help.\nToday's date is 2026-11-21.\nBe kind."), turn(bill("11111")+"You help.\nToday's date is 2026-11-21.\nBe kind.", again...),
		turn("You help.\nToday's date is 2026-11-22.\nBe kind.", again...), turn("You help.\nToday's date is 2026-11-22.\nBe kind.", again...),
	}
	for _, b := range bodies {
		send(t, r.url+"/v1/messages", b, "X-Claude-Code-Session-Id", "s", "Anthropic-Version", "2023-06-01")
	}
	send(t, r.url+"/v1/messages", bodies[0], "X-Claude-Code-Session-Id", "another")
	send(t, r.url+"/v1/messages", bodies[0])
	type seen struct {
		Known    bool
		Relation preamble.Relation
		Cause    string
		Stripped bool
	}
	var got []seen
	for _, rec := range r.done(t, 6) {
		got = append(got, seen{rec.Prefix.Known, rec.Prefix.Relation, rec.Prefix.Cause, rec.Stripped > 0})
	}
	require.Empty(t, cmp.Diff([]seen{
		{false, preamble.Extends, "", true},
		{true, preamble.Extends, "", true}, // the billing line is not part of the canonical prompt
		{true, preamble.Diverges, "date", false},
		{true, preamble.Same, "", false},
		{false, preamble.Extends, "", true},
		{false, preamble.Same, "", true}, // no session
	}, got))
}

// TestReasoningVerified returns reasoning unmodified, modified, and to a gateway with another key.
func TestReasoningVerified(t *testing.T) {
	key := bytes.Repeat([]byte{7}, replay.KeySize)
	begin := func(key []byte) *rig {
		return start(t, 1, func(p vllm.Prompt) vllm.Reply {
			if strings.Contains(p.Text, "<tool_response>") {
				return vllm.Reply{Text: "Done."}
			}
			return vllm.Reply{Text: "<think>\nTrue thought.\n</think>\n\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>"}
		}, func(o *serve.Options) {
			if key != nil {
				c, err := replay.NewSigner(key, nil)
				require.NoError(t, err)
				o.Signer = c
			}
		})
	}
	for _, a := range apiCases[1:] {
		for _, tt := range []struct {
			name     string
			edit     func(body object, text string) string // applied to the response before it is returned
			other    bool                                  // the next request goes to another gateway
			header   []string
			display  string
			verdict  replay.Verdict // Foreign: nothing is reported
			restored bool
			kept     string
		}{
			{name: "as it was", kept: "True thought."},
			{name: "changed", edit: func(_ object, s string) string { return strings.Replace(s, "True thought.", "Evil thought.", 1) }, verdict: replay.Forged},
			{name: "another key", other: true, verdict: replay.Unverified, kept: "True thought."},
			{name: "another tenant", header: []string{"X-Tenant-Id", "b"}, verdict: replay.Forged},
			{name: "never shown", display: "omitted", verdict: replay.Intact, restored: true, kept: "True thought."},
		} {
			if tt.display != "" && !a.anthropic {
				continue // this API has no such option
			}
			t.Run(a.name+"/"+tt.name, func(t *testing.T) {
				r := begin(key)
				body := a.body("go", false)
				if tt.display != "" {
					body["thinking"] = object{"type": "adaptive", "display": tt.display}
				}
				body["store"] = false
				if a.anthropic {
					delete(body, "store")
				}
				_, _, text := send(t, r.url+a.path, body)
				require.Equal(t, tt.display == "", strings.Contains(text, "True thought."), text)
				if tt.edit != nil {
					text = tt.edit(body, text)
				}
				var ans struct {
					Output  []object
					Content []object
				}
				require.NoError(t, json.Unmarshal([]byte(text), &ans))
				if a.anthropic {
					body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "content": ans.Content}, object{"role": "user", "content": []any{
						object{"type": "tool_result", "tool_use_id": ans.Content[1]["id"], "content": "file"}}})
				} else {
					input := []any{object{"role": "user", "content": body["input"]}}
					for _, item := range ans.Output {
						input = append(input, item)
					}
					body["input"] = append(input, object{"type": "function_call_output", "call_id": ans.Output[1]["call_id"], "output": "file"})
				}
				next, n := r, 2
				if tt.other {
					next, n = begin(nil), 1
				}
				status, _, text := send(t, next.url+a.path, body, tt.header...)
				require.Equal(t, 200, status, text)
				prompt := next.prompts[n-1].Text
				require.NotContains(t, prompt, "Evil")
				if tt.kept != "" {
					require.Contains(t, prompt, tt.kept)
				} else {
					require.NotContains(t, prompt, "thought.")
				}
				found := next.done(t, n)[n-1].Reasoning
				if tt.verdict == replay.Foreign {
					require.Empty(t, found)
				} else {
					require.Len(t, found, 1)
					require.Equal(t, tt.verdict, found[0].Verdict, found[0])
				}
			})
		}
	}
}

// TestReasoningDetailsVerified returns the reasoning_details of the Chat Completions API, which hold reasoning between
// calls, from streamed and other responses.
func TestReasoningDetailsVerified(t *testing.T) {
	key := bytes.Repeat([]byte{7}, replay.KeySize)
	call := "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>"
	for _, stream := range []bool{false, true} {
		for _, tt := range []struct {
			name    string
			tenant  string
			second  string // as returned
			verdict []replay.Verdict
			kept    bool
		}{
			{name: "as it was", second: "True thought.", kept: true},
			{name: "changed", second: "Evil thought.", verdict: []replay.Verdict{replay.Forged}},
			{name: "another tenant", second: "True thought.", tenant: "b", verdict: []replay.Verdict{replay.Forged, replay.Forged}},
		} {
			t.Run(fmt.Sprint(tt.name, stream), func(t *testing.T) {
				r := start(t, 1, func(p vllm.Prompt) vllm.Reply {
					if strings.Contains(p.Text, "<tool_response>") {
						return vllm.Reply{Text: "Done."}
					}
					return vllm.Reply{Text: "<think>First thought.</think>" + call + "<think>True thought.</think>" + call}
				}, func(o *serve.Options) {
					c, err := replay.NewSigner(key, nil)
					require.NoError(t, err)
					o.Signer = c
				})
				body := apiCases[0].body("go", stream)
				_, _, text := send(t, r.url+apiCases[0].path, body)
				tokens := regexp.MustCompile(`weft3\.[a-z]\w*\.\w+\.[-\w]+`).FindAllString(text, -1)
				require.Len(t, tokens, 2, text)
				for _, token := range tokens {
					require.True(t, strings.HasPrefix(token, "weft3.s"), "signed: %s", token)
				}
				body["stream"] = false
				delete(body, "stream_options")
				tool := func(id string) object {
					return object{"id": id, "type": "function", "function": object{"name": "read", "arguments": `{"path": "a"}`}}
				}
				body["messages"] = append(body["messages"].([]any), object{
					"role": "assistant", "content": nil, "reasoning_content": "First thought.\n" + tt.second, "tool_calls": []any{tool("c1"), tool("c2")},
					"reasoning_details": []any{
						object{"type": "reasoning.text", "index": 0, "text": "First thought.", "signature": tokens[0]},
						object{"type": "reasoning.encrypted", "index": 1, "data": ""},
						object{"type": "reasoning.text", "index": 2, "id": "weft1p.0.1.x", "text": tt.second, "signature": tokens[1]},
					},
				}, object{"role": "tool", "tool_call_id": "c1", "content": "file"}, object{"role": "tool", "tool_call_id": "c2", "content": "file"})
				status, _, text := send(t, r.url+apiCases[0].path, body, "X-Tenant-Id", tt.tenant)
				require.Equal(t, 200, status, text)
				require.NotContains(t, r.prompts[1].Text, "Evil")
				require.Equal(t, tt.kept, strings.Contains(r.prompts[1].Text, "True thought."))
				var got []replay.Verdict
				for _, f := range r.done(t, 2)[1].Reasoning {
					got = append(got, f.Verdict)
				}
				require.Equal(t, tt.verdict, got)
			})
		}
	}
}

// TestBreakpoints sends cache_control in two requests of a conversation: the blocks that the first request retains are
// at the start of the second prompt.
func TestBreakpoints(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) {
		o.StripPreamble = true
		o.Policy.MaxTTL = 30 * time.Minute
	})
	mark := func(ttl any) object { return object{"type": "ephemeral", "ttl": ttl} }
	text := func(s string, more ...any) object {
		o := object{"type": "text", "text": s}
		if len(more) > 0 {
			o["cache_control"] = mark(more[0])
		}
		return o
	}
	long := strings.Repeat("Some words of advice for those who work here. ", 40)
	body := object{"model": "m", "max_tokens": 9,
		"system":   []any{text("x-anthropic-billing-header: cc_version=2.1.330.1ad;"), text(long, "1h")},
		"messages": []any{object{"role": "user", "content": []any{text("One question.", "5m")}}}}
	status, _, out := send(t, r.url+"/v1/messages", body)
	require.Equal(t, 200, status, out)
	body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "content": "x"},
		object{"role": "user", "content": []any{text("Another one, a little longer than the first.", "sometime")}})
	status, _, out = send(t, r.url+"/v1/messages", body)
	require.Equal(t, 200, status, out)
	recs := r.done(t, 2)

	first, second := recs[0].Intent.Breakpoints, recs[1].Intent.Breakpoints
	require.Len(t, first, 2)
	require.Len(t, second, 3)
	require.Equal(t, []int{0, 0}, []int{first[0].Turn, first[0].Block}, "the block in front of it is gone")
	require.Equal(t, 30*time.Minute, first[0].TTL, "clamped")
	require.Equal(t, first, second[:2], "the prompt in front of them is the same")
	for i, b := range second {
		require.Positive(t, b.Tokens)
		front := tok().AppendDecode(nil, r.prompts[1].IDs[:b.Tokens], false)
		require.True(t, strings.HasSuffix(string(front), []string{strings.TrimSpace(long), "One question.", "longer than the first."}[i]) ||
			i == 0 && strings.HasSuffix(string(front), long), "%q", front)
	}
	require.Len(t, recs[1].Faults, 1)
	require.Equal(t, "messages[2].content[0].cache_control.ttl", recs[1].Faults[0].Where)
	require.Equal(t, first[0].Tokens/16*16, recs[0].Holds[0].Tokens)
	require.Equal(t, 30*time.Minute, recs[0].Holds[0].TTL)
	require.Equal(t, recs[0].Holds[0], recs[1].Holds[0])
}

// TestForgedReasoningLoggedOnce sends a conversation with a thousand forged reasoning blocks, which the log reports in one line.
func TestForgedReasoningLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	r := start(t, 1, say("<think>\nTrue thought.\n</think>\n\nDone."), func(o *serve.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	body := apiCases[2].body("go", false)
	_, _, text := send(t, r.url+apiCases[2].path, body)
	var ans struct{ Content []object }
	require.NoError(t, json.Unmarshal([]byte(text), &ans))
	ans.Content[0]["thinking"] = "Evil thought."
	evil := slices.Repeat([]any{ans.Content[0]}, 1000)
	body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "content": append(evil, ans.Content[1])}, object{"role": "user", "content": "And?"})
	status, _, text := send(t, r.url+apiCases[2].path, body)
	require.Equal(t, 200, status, text)
	require.Len(t, r.done(t, 2)[1].Reasoning, 1000)
	require.NotContains(t, r.prompts[1].Text, "Evil")
	require.Equal(t, 1, strings.Count(log.String(), "forged reasoning dropped"))
	require.Contains(t, log.String(), "times=1000")
}

// TestSessionsOfTenants checks that equal session ids of different tenants or salts are different sessions.
func TestSessionsOfTenants(t *testing.T) {
	r := start(t, 1, say("x"), func(o *serve.Options) {
		o.Tenant = func(r *http.Request) string { return r.Header.Get("X-Who") }
	})
	body := apiCases[0].body("go", false)
	for i, tt := range []struct {
		tenant, salt string
		known        bool
	}{{"a", "s", false}, {"b", "s", false}, {"a", "s", true}, {"a", "other", false}, {"b", "s", true}} {
		body["cache_salt"] = tt.salt
		status, _, text := send(t, r.url+apiCases[0].path, body, "X-Session-Id", "one", "X-Who", tt.tenant)
		require.Equal(t, 200, status, text)
		require.Equal(t, tt.known, r.done(t, i+1)[i].Prefix.Known, tt)
	}
}

// TestManySessions checks that the gateway evicts sessions and does not mix up their prompts under concurrent use.
func TestManySessions(t *testing.T) {
	r := start(t, 1, say("x"), nil)
	var busy sync.WaitGroup
	for i := range 8 {
		busy.Go(func() {
			for range 4 {
				send(t, r.url+"/v1/messages", apiCases[2].body("go", false), "X-Claude-Code-Session-Id", string(rune('a'+i/2)))
			}
		})
	}
	busy.Wait()
	known := 0
	for _, rec := range r.done(t, 32) {
		require.True(t, !rec.Prefix.Known || rec.Prefix.Relation == preamble.Same, rec.Prefix)
		if rec.Prefix.Known {
			known++
		}
	}
	require.Equal(t, 32-4, known)
}
