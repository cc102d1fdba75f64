// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// notices returns the dispatch events of a stream, and the stream without them.
func notices(stream []byte) (got []string, rest string) {
	for ev := range strings.SplitAfterSeq(string(stream), "\n\n") {
		if strings.HasPrefix(ev, "event: ") {
			got = append(got, strings.TrimSuffix(ev, "\n\n"))
		} else {
			rest += ev
		}
	}
	return got, rest
}

// encode encodes events one by one, in memory that is overwritten.
func encode(opt chatanswer.Options, events []event.Event) []byte {
	s := chatanswer.NewEncoder(opt)
	var out []byte
	for _, e := range events {
		out = s.Append(out, scrub(e)...)
	}
	return s.Finish(out)
}

// TestDispatchExample checks the positions of the dispatch events in the worked example.
func TestDispatchExample(t *testing.T) {
	opt := chatanswer.Options{ID: "chatcmpl-1", Model: "demo", Created: 1700000000, IncludeUsage: true}
	off := encode(opt, streamtest.Example())
	streamtest.Golden(t, "example.sse", off) // unchanged without dispatch events
	opt.ToolDispatch, opt.ReasoningDispatch = true, true
	stream := encode(opt, streamtest.Example())
	got, rest := notices(stream)
	require.Equal(t, string(off), rest)
	require.Empty(t, cmp.Diff([]string{
		`event: reasoning_dispatch` + "\n" + `data: {"index":0,"reasoning_content":"ab"}`,
		`event: tool_call_dispatch` + "\n" + `data: {"choice_index":0,"tool_call":{"index":0,"id":"call_1_0","type":"function","function":{"name":"get","arguments":"{\"x\":1}"}}}`,
		`event: reasoning_dispatch` + "\n" + `data: {"index":0,"reasoning_content":"c"}`,
		`event: tool_call_dispatch` + "\n" + `data: {"choice_index":0,"tool_call":{"index":1,"id":"call_1_1","type":"function","function":{"name":"put","arguments":"{}"}}}`,
	}, got))
	// Each follows the last chunk of its call or run and precedes the next chunk.
	var order []string
	for ev := range strings.SplitSeq(string(stream), "\n\n") {
		for _, s := range []string{"event: tool_call_dispatch", "event: reasoning_dispatch", `"reasoning_content":"`, `"id":"call_`, `"arguments":"`, `"content":"ok"`, `"finish_reason":"`} {
			if strings.Contains(ev, s) {
				order = append(order, strings.Trim(s, `":_`))
				break
			}
		}
	}
	require.Equal(t, []string{
		"reasoning_content", "reasoning_content", "event: reasoning_dispatch", "id\":\"call", "arguments", "arguments", "event: tool_call_dispatch",
		"reasoning_content", "event: reasoning_dispatch", "id\":\"call", "arguments", "event: tool_call_dispatch", `content":"ok`, "finish_reason",
	}, order)
}

// TestDispatchWhen checks single calls and runs.
func TestDispatchWhen(t *testing.T) {
	start := func(f event.Flags) event.Event {
		return event.Event{Kind: event.ToolStart, Part: 1, Data: []byte("f"), Flags: f}
	}
	data := func(s string) event.Event { return event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte(s)} }
	end := func(f event.Flags) event.Event {
		return event.Event{Kind: event.ToolEnd, Part: 1, Flags: f | event.Complete}
	}
	think := func(s string) event.Event { return event.Event{Kind: event.Reasoning, Call: -1, Data: []byte(s)} }
	text := event.Event{Kind: event.Text, Part: 2, Call: -1, Data: []byte("x")}
	finish := func(why event.Why) event.Event { return event.Event{Kind: event.Finish, Call: -1, Why: why} }
	huge := `{"s":"` + strings.Repeat(`é\n`, 1<<18) + `"}`
	call := func(args string) string {
		b, _ := json.Marshal(args) // a string always encodes
		return `event: tool_call_dispatch` + "\n" + `data: {"choice_index":0,"tool_call":{"index":0,"id":"call_1_0","type":"function","function":{"name":"f","arguments":` + string(b) + `}}}`
	}
	run := func(text string) string {
		return `event: reasoning_dispatch` + "\n" + `data: {"index":0,"reasoning_content":"` + text + `"}`
	}
	for _, tt := range []struct {
		name   string
		opt    chatanswer.Options
		events []event.Event
		want   []string
	}{
		{"odd spacing, a key twice", chatanswer.Options{}, []event.Event{start(0), data(" {\t\"a\" :1.50,"), data("\n \"a\": 2 } "), end(0)}, []string{call(" {\t\"a\" :1.50,\n \"a\": 2 } ")}},
		{"a character in two pieces", chatanswer.Options{}, []event.Event{start(0), data("{\"s\":\"\xe2\x82"), data("\xac\"}"), end(0)}, []string{call(`{"s":"€"}`)}},
		{"not UTF-8", chatanswer.Options{}, []event.Event{start(0), data("{\"s\":\"\xff\"}"), end(0)}, []string{call("{\"s\":\"\uFFFD\"}")}},
		{"1 MB", chatanswer.Options{}, []event.Event{start(0), data(huge[:len(huge)/3]), data(huge[len(huge)/3:]), end(0)}, []string{call(huge)}},
		{"no arguments", chatanswer.Options{}, []event.Event{start(0), end(0)}, []string{call("{}")}},
		{"held back", chatanswer.Options{WholeCalls: true}, []event.Event{start(0), data("{"), data("}"), end(0)}, []string{call("{}")}},
		{"no JSON", chatanswer.Options{}, []event.Event{start(0), data("{"), end(0)}, nil},
		{"no JSON, held back", chatanswer.Options{WholeCalls: true}, []event.Event{start(0), data("{"), end(0)}, nil},
		{"custom", chatanswer.Options{}, []event.Event{start(event.Custom), data("{"), end(event.Custom)},
			[]string{`event: tool_call_dispatch` + "\n" + `data: {"choice_index":0,"tool_call":{"index":0,"id":"call_1_0","type":"custom","custom":{"name":"f","input":"{"}}}`}},
		{"custom in JSON", chatanswer.Options{Custom: func(string) bool { return true }}, []event.Event{start(0), data(`{"input":"*`), data(`\n"}`), end(0)},
			[]string{`event: tool_call_dispatch` + "\n" + `data: {"choice_index":0,"tool_call":{"index":0,"id":"call_1_0","type":"custom","custom":{"name":"f","input":"*\n"}}}`}},
		{"custom in broken JSON", chatanswer.Options{Custom: func(string) bool { return true }}, []event.Event{start(0), data(`{"input":"*`), end(0)}, nil},
		{"aborted", chatanswer.Options{}, []event.Event{start(0), data("{}"), {Kind: event.ToolAbort, Part: 1, Why: event.Truncated}}, nil},
		{"cut by the limit of tokens", chatanswer.Options{}, []event.Event{start(0), data("{}"), finish(event.Length)}, nil},
		{"in reasoning", chatanswer.Options{}, []event.Event{think("a"), start(event.InReasoning), end(event.InReasoning), think("b")}, []string{run("a"), run("b")}},
		{"in reasoning, asked", chatanswer.Options{DispatchInReasoning: true}, []event.Event{start(event.InReasoning), end(event.InReasoning)}, []string{call("{}")}},
		{"the server's", chatanswer.Options{}, []event.Event{start(event.Server), end(event.Server)}, nil},
		{"a thought with half a character at its end", chatanswer.Options{}, []event.Event{think("a\""), think("\xe2\x82"), text}, []string{run(`a\"` + "\uFFFD")}},
		{"a thought cut by the limit of tokens", chatanswer.Options{}, []event.Event{think("a"), finish(event.Length)}, []string{run("a")}},
		{"thoughts that are not sent", chatanswer.Options{Reasoning: chatanswer.ReasoningNone}, []event.Event{think("a"), text}, nil},
		{"thoughts under another name", chatanswer.Options{Reasoning: chatanswer.ReasoningPlain}, []event.Event{think("a"), text}, []string{run("a")}},
		{"no thoughts", chatanswer.Options{}, []event.Event{think(""), text}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.opt
			o.ID = "chatcmpl-1"
			events := tt.events
			if events[len(events)-1].Kind != event.Finish {
				events = append(events, finish(event.Stop))
			}
			off := encode(o, events)
			o.ToolDispatch, o.ReasoningDispatch = true, true
			got, rest := notices(encode(o, events))
			require.True(t, string(off) == rest, "chunks stay as they are")
			require.Empty(t, cmp.Diff(strings.Join(tt.want, "|"), strings.Join(got, "|")))
		})
	}
}

// TestDispatchFails ends a stream with an error inside reasoning and inside a call.
func TestDispatchFails(t *testing.T) {
	for name, breaks := range map[string]func(s *chatanswer.Encoder, dst []byte) []byte{
		"fail": func(s *chatanswer.Encoder, dst []byte) []byte {
			return s.Fail(dst, apierr.New(event.EngineFailed, "gone"))
		},
		"cut": func(s *chatanswer.Encoder, dst []byte) []byte { return s.Finish(dst) },
		"error event": func(s *chatanswer.Encoder, dst []byte) []byte {
			return s.Append(dst, event.Event{Kind: event.Error, Why: event.EngineFailed})
		},
	} {
		for _, last := range []event.Kind{event.Reasoning, event.ToolArgs} {
			s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "m", ToolDispatch: true, ReasoningDispatch: true})
			out := s.Append(nil, event.Event{Kind: event.ToolStart, Data: []byte("f")}, event.Event{Kind: last, Data: []byte("{}")})
			got, _ := notices(s.Finish(breaks(s, out)))
			require.Empty(t, got, name)
		}
	}
}

// TestDispatchProperties checks that dispatch events do not change other chunks and that they match the reports of a
// Dispatcher.
func TestDispatchProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		grammar := rapid.Bool().Draw(rt, "grammar")
		opt := chatanswer.Options{
			ID: "chatcmpl-r", Model: "m", WholeCalls: rapid.Bool().Draw(rt, "whole"), DispatchInReasoning: rapid.Bool().Draw(rt, "in reasoning"),
			Reasoning: chatanswer.ReasoningField(rapid.IntRange(0, 3).Draw(rt, "reasoning")), IncludeUsage: rapid.Bool().Draw(rt, "usage"),
		}
		var events []event.Event
		if grammar {
			events = streamtest.Events(rt, rapid.IntRange(1, 3).Draw(rt, "n"), !opt.WholeCalls)
		} else {
			events = streamtest.Any(rt)
		}
		off := encode(opt, events)
		opt.ToolDispatch, opt.ReasoningDispatch = rapid.Bool().Draw(rt, "calls"), rapid.Bool().Draw(rt, "runs")
		stream := encode(opt, events)
		got, rest := notices(stream)
		require.Equal(rt, string(off), rest)
		for _, n := range got {
			_, data, _ := strings.Cut(n, "\ndata: ")
			require.True(rt, json.Valid([]byte(data)), data)
		}
		if !grammar {
			return
		}
		rebuild(rt, stream) // each call was sent completely before its dispatch event
		var want []string
		d := event.Dispatcher{InReasoning: opt.DispatchInReasoning}
		if opt.ToolDispatch {
			d.OnCall = func(c event.Call) {
				args := string(jsonw.AppendValid(nil, c.Arguments))
				if args == "" && !c.Flags.Has(event.Custom) {
					args = "{}"
				}
				want = append(want, fmt.Sprint(c.Choice, " ", c.Name, "(", args, ")"))
			}
		}
		if opt.ReasoningDispatch && opt.Reasoning != chatanswer.ReasoningNone {
			d.OnReasoning = func(choice int32, text []byte, _ event.Why) {
				want = append(want, fmt.Sprint(choice, " ", string(jsonw.AppendValid(nil, text))))
			}
		}
		d.Add(events...)
		var received []string
		for _, n := range got {
			typ, data, _ := strings.Cut(n, "\ndata: ")
			p := parse[struct {
				ChoiceIndex      int      `json:"choice_index"`
				ToolCall         toolCall `json:"tool_call"`
				Index            int
				ReasoningContent string `json:"reasoning_content"`
			}](rt, []byte(data))
			switch tc := p.ToolCall; {
			case typ == "event: reasoning_dispatch":
				received = append(received, fmt.Sprint(p.Index, " ", p.ReasoningContent))
			case tc.Custom != nil:
				received = append(received, fmt.Sprint(p.ChoiceIndex, " ", tc.Custom.Name, "(", tc.Custom.Input, ")"))
			default:
				received = append(received, fmt.Sprint(p.ChoiceIndex, " ", tc.Function.Name, "(", tc.Function.Arguments, ")"))
			}
		}
		require.Empty(rt, cmp.Diff(want, received, cmpopts.EquateEmpty()))
	})
}
