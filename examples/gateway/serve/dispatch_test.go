// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// A voice writes an engine's response in pieces.
type voice struct{ http.ResponseWriter }

func (v voice) say(choice int, text, finish string) {
	c := object{"index": choice, "text": text, "finish_reason": nil}
	if finish != "" {
		c["finish_reason"] = finish
	}
	b, _ := json.Marshal(object{"choices": []any{c}}) // always encodes
	fmt.Fprintf(v, "data: %s\n\n", b)
	v.ResponseWriter.(http.Flusher).Flush()
}

// wait blocks until c is closed. After a timeout it breaks the connection, which fails the test.
func (v voice) wait(c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		panic(http.ErrAbortHandler)
	}
}

func (v voice) done() { io.WriteString(v, "data: [DONE]\n\n") }

// speaking returns a change of Options that replaces the engine with a scripted one.
func speaking(t testing.TB, speak func(v voice)) func(*serve.Options) {
	url := engineOf(t, func(w http.ResponseWriter) { speak(voice{w}) })
	return func(o *serve.Options) {
		o.Engines = []serve.Engine{{URL: url}}
		o.ToolDispatch, o.ReasoningDispatch = true, true
	}
}

// A diary records the callbacks of a gateway.
type diary struct {
	calls    []serve.ToolCall
	thoughts []serve.Reasoning
	reported chan string // names and reasoning, if a test waits for them
}

func (d *diary) keep(o *serve.Options) {
	d.reported = make(chan string, 100)
	o.OnToolCall = func(_ context.Context, c serve.ToolCall) { d.calls = append(d.calls, c); d.reported <- c.Name }
	o.OnReasoning = func(_ context.Context, r serve.Reasoning) { d.thoughts = append(d.thoughts, r); d.reported <- r.Text }
}

// asking is the header of a client that requests all dispatch events.
var asking = []string{"X-Weft-Tool-Dispatch", "1"}

func hermes(name, args string) string {
	return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", name, args)
}

// within waits for a value and fails the test after a timeout.
func within[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not come")
	}
	return v
}

// TestDispatchBeforeEnd makes the engine wait after a call until the client has received the dispatch event. In the
// other APIs the stream has its own events; the Go callback is called in all of them.
func TestDispatchBeforeEnd(t *testing.T) {
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			received := make(chan struct{})
			var d diary
			change := speaking(t, func(v voice) {
				v.say(0, "<think>\nI look.\n</think>\n\n"+hermes("read", `{"path":  "a.go"}`), "")
				v.wait(received)
				v.say(0, "\nAnd that is all.", "stop")
				v.done()
			})
			r := start(t, 0, nil, func(o *serve.Options) { change(o); d.keep(o) })
			body, err := json.Marshal(a.body("go", true))
			require.NoError(t, err)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+a.path, strings.NewReader(string(body)))
			require.NoError(t, err)
			for i := 0; i < len(asking); i += 2 {
				req.Header.Set(asking[i], asking[i+1])
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, "I look.", within(t, d.reported))
			require.Equal(t, "read", within(t, d.reported))
			signs := map[string][]string{
				"chat":      {"event: reasoning_dispatch", "event: tool_call_dispatch"},
				"responses": {"event: response.output_item.done", "event: response.function_call_arguments.done"},
				"messages":  {"event: content_block_stop", "event: content_block_stop"},
			}[a.name]
			seen := ""
			for lines := bufio.NewScanner(resp.Body); len(signs) > 0 && lines.Scan(); {
				if seen += lines.Text() + "\n"; lines.Text() == signs[0] {
					signs = signs[1:]
				}
			}
			require.Empty(t, signs, seen)
			require.NotContains(t, seen, "that is all")
			close(received)
			rest, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Contains(t, string(rest), "that is all")
			require.NotContains(t, string(rest), "_dispatch")
			require.Empty(t, cmp.Diff([]serve.ToolCall{{Name: "read", Arguments: `{"path":  "a.go"}`}}, d.calls, cmpopts.IgnoreFields(serve.ToolCall{}, "ID", "RequestID")))
			require.Empty(t, cmp.Diff([]serve.Reasoning{{Text: "I look."}}, d.thoughts, cmpopts.IgnoreFields(serve.Reasoning{}, "RequestID")))
		})
	}
}

// dispatched returns the calls and reasoning in the dispatch events of a chat stream.
func dispatched(t testing.TB, stream string) (calls []serve.ToolCall, thoughts []serve.Reasoning) {
	t.Helper()
	for _, f := range frames(t, stream) {
		switch f.typ {
		case "tool_call_dispatch":
			c := f.data["tool_call"].(object)
			if c["type"] == "custom" {
				x := c["custom"].(object)
				calls = append(calls, serve.ToolCall{Choice: int(f.data["choice_index"].(float64)), ID: c["id"].(string), Name: x["name"].(string), Arguments: x["input"].(string)})
				continue
			}
			x := c["function"].(object)
			calls = append(calls, serve.ToolCall{Choice: int(f.data["choice_index"].(float64)), ID: c["id"].(string), Name: x["name"].(string), Arguments: x["arguments"].(string)})
		case "reasoning_dispatch":
			thoughts = append(thoughts, serve.Reasoning{Choice: int(f.data["index"].(float64)), Text: f.data["reasoning_content"].(string)})
		}
	}
	return calls, thoughts
}

// TestDispatchContent compares dispatch events and callbacks, with and without a stream, with the model's output.
func TestDispatchContent(t *testing.T) {
	huge := `{"path": "` + strings.Repeat("é", 1<<19) + `"}`
	if testing.Short() {
		huge = huge[len(huge)-(1<<16):]
		huge = `{"path": "` + strings.ToValidUTF8(huge, "")
	}
	think := func(s string) string { return "<think>\n" + s + "\n</think>\n\n" }
	inside := "<think>\nFirst.\n" + hermes("read", `{"path": "a"}`) + "\nSecond.\n</think>\n\nDone."
	for _, tt := range []struct {
		name     string
		output   string
		finish   string // "" breaks the connection
		change   func(*serve.Options)
		calls    []string
		thoughts []string
	}{
		{"odd spacing, unicode, a key twice", hermes("read", "{ \"päth\" :\t\"ü\\u0041 😀\" , \"n\": 1.50e0,\n \"n\":2}"), "stop", nil, []string{"read({ \"päth\" :\t\"ü\\u0041 😀\" , \"n\": 1.50e0,\n \"n\":2})"}, nil},
		{"huge", hermes("read", huge), "stop", nil, []string{"read(" + huge + ")"}, nil},
		{"no arguments", hermes("read", "{}"), "stop", nil, []string{"read({})"}, nil},
		{"two calls and a thought", think("Hm.") + hermes("read", `{"path": "a"}`) + "\n" + hermes("grep", `{"pattern": "b"}`), "stop", nil, []string{`read({"path": "a"})`, `grep({"pattern": "b"})`}, []string{"Hm."}},
		{"cut by the limit of tokens", hermes("read", `{"path": "a"}`) + "\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"", "length", nil, []string{`read({"path": "a"})`}, nil},
		{"a thought cut by the limit of tokens", "<think>\nHm. And", "length", nil, nil, []string{"Hm. And"}},
		{"cut connection", hermes("read", `{"path": "a"}`) + "\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"", "", nil, []string{`read({"path": "a"})`}, nil},
		{"cut connection in a thought", "<think>\nHm. And", "", nil, nil, nil},
		{"malformed", hermes("read", `{"path": a`), "stop", nil, nil, nil},
		{"in reasoning", inside, "stop", nil, nil, []string{"First.\n", "Second."}},
		{"in reasoning, enabled", inside, "stop", func(o *serve.Options) { o.CallsInReasoning = true }, []string{`read({"path": "a"})`}, []string{"First.\n", "Second."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d diary
			change := speaking(t, func(v voice) {
				for s := tt.output; s != ""; {
					k := min(len(s), 1000)
					for k < len(s) && s[k]&0xc0 == 0x80 { // JSON cannot represent part of a character
						k++
					}
					v.say(0, s[:k], "")
					s = s[k:]
				}
				if tt.finish == "" {
					panic(http.ErrAbortHandler)
				}
				v.say(0, "", tt.finish)
				v.done()
			})
			r := start(t, 0, nil, func(o *serve.Options) {
				change(o)
				d.keep(o)
				if tt.change != nil {
					tt.change(o)
				}
			})
			check := func(where string, calls []serve.ToolCall, thoughts []serve.Reasoning) {
				t.Helper()
				var c, th []string
				for _, x := range calls {
					c = append(c, x.Name+"("+x.Arguments+")")
				}
				for _, x := range thoughts {
					th = append(th, x.Text)
				}
				require.True(t, strings.Join(tt.calls, "|") == strings.Join(c, "|"), "%s: %.300q", where, c)
				require.Equal(t, trimmed(tt.thoughts), trimmed(th), where)
			}
			for _, a := range apiCases {
				for _, stream := range []bool{true, false} {
					d.calls, d.thoughts = nil, nil
					request := a.body("go", stream)
					if tt.name == "huge" {
						request["max_tokens"] = 100_000
					}
					_, _, body := send(t, r.url+a.path, request, asking...)
					check(fmt.Sprint("reported, ", a.name, stream), d.calls, d.thoughts)
					if a.name != "chat" || !stream {
						require.NotContains(t, body, "_dispatch")
						continue
					}
					calls, thoughts := dispatched(t, body)
					check("received", calls, thoughts)
					for i, c := range d.calls {
						require.Equal(t, c.ID, calls[i].ID)
						require.Equal(t, 2, strings.Count(body, `"id":"`+c.ID+`"`), "once in the chunks, once in the notice")
					}
				}
			}
		})
	}
}

func trimmed(list []string) (out []string) {
	for _, s := range list {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// TestDispatchChoices requests several choices, which arrive interleaved.
func TestDispatchChoices(t *testing.T) {
	var d diary
	change := speaking(t, func(v voice) {
		a, b := hermes("read", `{"path": "a"}`), hermes("grep", `{"pattern": "b"}`)
		v.say(0, "<think>\nA", "")
		v.say(1, "<think>\nB", "")
		v.say(0, ".\n</think>\n\n"+a[:30], "")
		v.say(1, ".\n</think>\n\n"+b[:40], "")
		v.say(0, a[30:]+"\n", "")
		v.say(2, "Nothing.", "stop")
		v.say(1, b[40:], "stop")
		v.say(0, b, "stop")
		v.done()
	})
	r := start(t, 0, nil, func(o *serve.Options) { change(o); d.keep(o) })
	body := apiCases[0].body("go", true)
	body["n"] = 3
	_, _, stream := send(t, r.url+apiCases[0].path, body, append(slices.Clip(asking), "X-Request-Id", "r")...)
	calls, thoughts := dispatched(t, stream)
	ids := map[string]bool{}
	var got []string
	for i, c := range calls {
		require.Equal(t, c.ID, d.calls[i].ID)
		require.False(t, ids[c.ID])
		ids[c.ID] = true
		got = append(got, fmt.Sprint(c.Choice, c.Name, c.Arguments))
		calls[i].RequestID = "r"
	}
	require.Equal(t, []string{`0read{"path": "a"}`, `1grep{"pattern": "b"}`, `0grep{"pattern": "b"}`}, got)
	require.Empty(t, cmp.Diff(calls, d.calls))
	require.Empty(t, cmp.Diff([]serve.Reasoning{{Choice: 0, Text: "A."}, {Choice: 1, Text: "B."}}, thoughts))
}

// TestDispatchOff checks that the header has no effect on streams if dispatch is not permitted or the API is not Chat
// Completions.
func TestDispatchOff(t *testing.T) {
	plain := start(t, 1, say(answer), nil)
	var d diary
	offers := start(t, 1, say(answer), func(o *serve.Options) { o.ToolDispatch, o.ReasoningDispatch = true, true; d.keep(o) })
	onlyCalls := start(t, 1, say(answer), func(o *serve.Options) { o.ToolDispatch = true })
	onlyReasoning := start(t, 1, say(answer), func(o *serve.Options) { o.ReasoningDispatch = true })
	names := regexp.MustCompile(`"(?:chatcmpl-|resp_|msg_)([0-9a-z]+-[0-9a-z]+)"`)
	times := regexp.MustCompile(`("(?:created|created_at|completed_at)"):[0-9]+`)
	proofs := regexp.MustCompile(`weft3\.s[^"]*`) // tokens differ by tenant
	requests := 0
	stream := func(r *rig, a apiCase, header ...string) string {
		requests++ // a new tenant, so that nothing is cached
		_, _, body := send(t, r.url+a.path, a.body("go", true), append(slices.Clip(header), "X-Tenant-Id", fmt.Sprint(requests))...)
		name := names.FindStringSubmatch(body)
		require.NotNil(t, name, body)
		return proofs.ReplaceAllString(times.ReplaceAllString(strings.ReplaceAll(body, name[1], "NAME"), "$1:0"), "PROOF")
	}
	for _, a := range apiCases {
		t.Run(a.name, func(t *testing.T) {
			want := stream(plain, a)
			require.Equal(t, want, stream(plain, a), "but for ids and times")
			require.Equal(t, want, stream(plain, a, asking...), "not offered")
			require.Equal(t, want, stream(offers, a), "not requested")
			require.Equal(t, want, stream(offers, a, "X-Weft-Tool-Dispatch", "0"))
			require.Equal(t, want, stream(offers, a, "X-Weft-Tool-Dispatch", "yes"))
			got := stream(offers, a, asking...)
			if a.name != "chat" {
				require.Equal(t, want, got, "never in this API")
				return
			}
			require.Equal(t, []int{2, 1}, []int{strings.Count(got, "event: tool_call_dispatch\n"), strings.Count(got, "event: reasoning_dispatch\n")})
			rest := ""
			for ev := range strings.SplitAfterSeq(got, "\n\n") {
				if !strings.HasPrefix(ev, "event: ") {
					rest += ev
				}
			}
			require.Equal(t, want, rest)
			for _, r := range []*rig{onlyCalls, onlyReasoning} {
				got = stream(r, a, asking...)
				counts := []int{strings.Count(got, "event: tool_call_dispatch\n"), strings.Count(got, "event: reasoning_dispatch\n")}
				require.Equal(t, map[*rig][]int{onlyCalls: {2, 0}, onlyReasoning: {0, 1}}[r], counts, "each is allowed for itself")
			}
		})
	}
}

// TestDispatchCustomTool calls a tool whose argument is free text.
func TestDispatchCustomTool(t *testing.T) {
	var d diary
	r := start(t, 1, say(hermes("patch", `{"input": "*** Begin\n+é"}`)), func(o *serve.Options) { o.ToolDispatch = true; d.keep(o) })
	body := apiCases[0].body("go", true)
	body["tools"] = []any{object{"type": "custom", "custom": object{"name": "patch"}}}
	_, _, stream := send(t, r.url+apiCases[0].path, body, asking...)
	calls, _ := dispatched(t, stream)
	require.Len(t, calls, 1)
	require.Equal(t, "*** Begin\n+é", calls[0].Arguments)
	require.Contains(t, stream, `"type":"custom"`)
	require.Equal(t, `{"input": "*** Begin\n+é"}`, d.calls[0].Arguments, "as the model wrote it")
}

// TestDispatchEngineError makes the embedded engine fail in each mode after a first call.
func TestDispatchEngineError(t *testing.T) {
	first, second := hermes("read", `{"path": "a"}`), hermes("grep", `{"pattern": "b"}`)
	after := len(tok().AppendEncode(nil, first+"\n"+second[:40]))
	for _, mode := range []vllm.FailureMode{vllm.Cut, vllm.ErrorLine} {
		var d diary
		r := start(t, 1, func(vllm.Prompt) vllm.Reply {
			return vllm.Reply{Text: first + "\n" + second, Fail: vllm.Failure{Mode: mode, AfterTokens: after}}
		}, func(o *serve.Options) { o.ToolDispatch = true; d.keep(o) })
		_, _, stream := send(t, r.url+apiCases[0].path, apiCases[0].body("go", true), asking...)
		calls, _ := dispatched(t, stream)
		require.Len(t, calls, 1, stream)
		require.Equal(t, "read", calls[0].Name)
		require.Len(t, d.calls, 1)
		require.Contains(t, stream, `"error":`)
	}
}
