// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// recorder records what a Dispatcher reports, in order.
type recorder struct {
	event.Dispatcher
	log []string
}

func listen(change func(*event.Dispatcher)) *recorder {
	t := &recorder{}
	note := func(what string) func(event.Call) {
		return func(c event.Call) {
			s := fmt.Sprintf("%s %d.%d %s(%s)", what, c.Choice, c.Ordinal, c.Name, c.Arguments)
			if c.ID != "" {
				s += " id=" + c.ID
			}
			if c.Why != event.None {
				s += " why=" + c.Why.String()
			}
			if f := c.Flags &^ event.Complete; f != 0 {
				s += " " + f.String()
			}
			if c.Flags.Has(event.Complete) && c.Why != event.None && c.Why != event.BadArguments && c.Why != event.LimitExceeded {
				s += " complete"
			}
			t.log = append(t.log, s)
		}
	}
	t.OnCall, t.OnReject = note("call"), note("reject")
	t.OnReasoning = func(choice int32, text []byte, why event.Why) {
		s := fmt.Sprintf("run %d %s", choice, text)
		if why != event.None {
			s += " why=" + why.String()
		}
		t.log = append(t.log, s)
	}
	if change != nil {
		change(&t.Dispatcher)
	}
	return t
}

func begin(call int32, name string, f event.Flags) event.Event {
	return event.Event{Kind: event.ToolStart, Part: call + 10, Call: call, Data: []byte(name), Flags: f}
}

func args(call int32, s string) event.Event {
	return event.Event{Kind: event.ToolArgs, Part: call + 10, Call: call, Data: []byte(s)}
}

func end(call int32, f event.Flags) event.Event {
	return event.Event{Kind: event.ToolEnd, Part: call + 10, Call: call, Flags: f | event.Complete}
}

func abort(call int32, why event.Why) event.Event {
	return event.Event{Kind: event.ToolAbort, Part: call + 10, Call: call, Why: why, Data: []byte("f")}
}

func think(part int32, s string) event.Event {
	return event.Event{Kind: event.Reasoning, Call: -1, Part: part, Data: []byte(s)}
}

func of(choice int32, e event.Event) event.Event { e.Choice = choice; return e }

func TestDispatcher(t *testing.T) {
	finish := event.Event{Kind: event.Finish, Call: -1, Why: event.Stop}
	text := event.Event{Kind: event.Text, Call: -1, Part: 9, Data: []byte("x")}
	signature := event.Event{Kind: event.Signature, Call: -1, Data: []byte("s")}
	failed := event.Event{Kind: event.Error, Call: -1, Why: event.EngineFailed}
	named := begin(0, "f", 0)
	named.ID = []byte("call_1")
	for _, tt := range []struct {
		name   string
		change func(*event.Dispatcher)
		events []event.Event
		want   []string
		close  []string // reported at Finish
	}{
		{"at its end", nil, []event.Event{named, args(0, `{"a" : 1 ,`), args(0, ` "a":2}`), end(0, 0), text}, []string{`call 0.0 f({"a" : 1 , "a":2}) id=call_1`}, nil},
		{"once", nil, []event.Event{begin(0, "f", 0), end(0, 0), end(0, 0), args(0, "x"), abort(0, event.Truncated), finish}, []string{"call 0.0 f()"}, nil},
		{"blank arguments", nil, []event.Event{begin(0, "f", 0), args(0, " \n"), end(0, 0)}, []string{"call 0.0 f( \n)"}, nil},
		{"aborted", nil, []event.Event{begin(0, "f", 0), args(0, "{}"), abort(0, event.BadStructure)}, []string{"reject 0.0 f({}) why=bad_structure"}, nil},
		{"aborted without a cause", nil, []event.Event{begin(0, "f", 0), abort(0, event.None)}, []string{"reject 0.0 f() why=truncated"}, nil},
		{"failed before its start", nil, []event.Event{abort(0, event.BadName), abort(0, event.BadName), begin(1, "g", 0), end(1, 0)},
			[]string{"reject 0.0 f() why=bad_name", "call 0.1 g()"}, nil},
		{"aborted and yet marked complete", nil, []event.Event{
			begin(0, "f", event.Complete), {Kind: event.ToolAbort, Flags: event.Complete, Why: event.BadStructure}, {Kind: event.ToolAbort, Call: 1, Flags: event.Complete, Why: event.BadName},
		}, []string{"reject 0.0 f() why=bad_structure", "reject 0.1 () why=bad_name"}, nil},
		{"cut by the end", nil, []event.Event{begin(0, "f", 0), args(0, "{}"), finish, end(0, 0)}, []string{"reject 0.0 f({}) why=truncated"}, nil},
		{"cut by an error", nil, []event.Event{think(0, "h"), begin(0, "f", 0), args(0, "{}"), of(1, think(0, "m")), failed, failed, end(0, 0), of(2, begin(0, "g", 0)), of(2, end(0, 0))},
			[]string{"run 0 h", "reject 0.0 f({}) why=truncated"}, nil},
		{"no more events", nil, []event.Event{begin(0, "f", 0), args(0, "{}"), of(1, think(4, "m"))}, nil, []string{"reject 0.0 f({}) why=truncated", "run 1 m"}},
		{"not marked complete", nil, []event.Event{begin(0, "f", 0), args(0, "{}"), {Kind: event.ToolEnd}, end(0, 0)}, []string{"reject 0.0 f({}) why=truncated"}, nil},
		{"no JSON", nil, []event.Event{begin(0, "f", 0), args(0, `{"a":`), end(0, 0)}, []string{`reject 0.0 f({"a":) why=bad_arguments`}, nil},
		{"free text", nil, []event.Event{begin(0, "f", event.Custom), args(0, `{"a":`), end(0, event.Custom)}, []string{`call 0.0 f({"a":) custom`}, nil},
		{"repaired", nil, []event.Event{begin(0, "f", 0), args(0, `{}`), end(0, event.Repaired)}, []string{`call 0.0 f({}) repaired`}, nil},
		{"the server's", nil, []event.Event{begin(0, "f", event.Server), args(0, "{"), end(0, event.Server), begin(1, "f", event.Server), abort(1, event.Truncated), begin(2, "f", event.Server), finish}, nil, nil},
		{"in reasoning", nil, []event.Event{begin(0, "f", event.InReasoning), args(0, "{}"), end(0, event.InReasoning), begin(1, "f", 0), end(1, event.InReasoning), finish}, nil, nil},
		{"in reasoning, asked", func(d *event.Dispatcher) { d.InReasoning = true }, []event.Event{begin(0, "f", event.InReasoning), args(0, "{}"), end(0, event.InReasoning)},
			[]string{"call 0.0 f({}) in_reasoning"}, nil},
		{"overlap", nil, []event.Event{begin(0, "f", 0), begin(1, "g", 0), args(0, `[`), args(1, `{}`), of(1, begin(0, "h", 0)), end(1, 0), args(0, `1]`), of(1, end(0, 0)), end(0, 0)},
			[]string{"call 0.1 g({})", "call 1.0 h()", "call 0.0 f([1])"}, nil},
		{"limit", func(d *event.Dispatcher) { d.Limit = 6 }, []event.Event{begin(0, "f", 0), args(0, "[1,"), args(0, "23"), args(0, "]"), args(0, "]"), begin(1, "g", 0), args(1, "[12]"), end(1, 0), end(0, 0), begin(2, "h", 0), args(2, "[12]"), end(2, 0)},
			[]string{"call 0.1 g([12])", "reject 0.0 f() why=limit", "call 0.2 h([12])"}, nil},
		{"limit of reasoning", func(d *event.Dispatcher) { d.Limit = 4 }, []event.Event{think(0, "abc"), think(0, "de"), think(0, "f"), think(1, "four"), text, of(1, think(0, "four")), finish},
			[]string{"run 0  why=limit", "run 0 four"}, []string{"run 1 four"}},
		{"no limit", func(d *event.Dispatcher) { d.Limit = -1 }, []event.Event{begin(0, "f", 0), args(0, "{}"), end(0, 0)}, []string{"call 0.0 f({})"}, nil},
		{"runs", nil, []event.Event{think(0, "a"), think(0, "b"), signature, args(7, "x"), think(0, "c"), think(1, "d"), of(1, text), think(1, ""), begin(0, "f", 0), think(2, "e"), text, think(3, ""), text, think(4, "f"), finish, think(4, "g")},
			[]string{"run 0 abc", "run 0 d", "run 0 e", "run 0 f why=stop", "reject 0.0 f() why=truncated"}, nil},
		{"stray", nil, []event.Event{of(-1, begin(0, "f", 0)), of(1<<30, begin(0, "f", 0)), args(3, "x"), end(3, 0), {Kind: 99}, {}}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := listen(tt.change)
			for range 2 { // Finish makes it ready for another response
				d.log = nil
				for _, e := range tt.events {
					scratch := e.Clone()
					d.Add(scratch)
					for _, b := range [][]byte{scratch.Data, scratch.ID} { // the producer reuses its memory
						for i := range b {
							b[i] = '#'
						}
					}
				}
				require.Empty(t, cmp.Diff(tt.want, d.log, cmpopts.EquateEmpty()))
				d.log = nil
				d.Finish()
				require.Empty(t, cmp.Diff(tt.close, d.log, cmpopts.EquateEmpty()))
			}
		})
	}
}

// TestDispatcherOpenCalls opens more than maxOpen calls. Each is still reported once.
func TestDispatcherOpenCalls(t *testing.T) {
	const n = 1100
	calls, rejects := 0, 0
	d := event.Dispatcher{OnCall: func(event.Call) { calls++ }, OnReject: func(c event.Call) {
		require.Equal(t, event.LimitExceeded, c.Why)
		rejects++
	}}
	for i := range int32(n) {
		d.Add(begin(i, "f", 0))
	}
	require.Equal(t, n-1024, rejects, "at once")
	for i := range int32(n) {
		if i%2 > 0 && i >= 1024 {
			d.Add(abort(i, event.Truncated))
		} else {
			d.Add(end(i, 0))
		}
	}
	d.Finish()
	require.Equal(t, []int{1024, n - 1024}, []int{calls, rejects})
}

// TestDispatcherOwnership checks that reported calls and runs do not change when more events arrive.
func TestDispatcherOwnership(t *testing.T) {
	var calls []event.Call
	var runs []string
	d := event.Dispatcher{OnCall: func(c event.Call) { calls = append(calls, c) }, OnReasoning: func(_ int32, text []byte, _ event.Why) { runs = append(runs, string(text)) }}
	huge := `{"s":"` + strings.Repeat("é\\n", 1<<18) + `"}`
	for i, a := range []string{`{"n":1}`, huge, `{"n":3}`} {
		d.Add(think(int32(i), a), begin(int32(i), "f", 0))
		for len(a) > 0 {
			k := min(len(a), 1001)
			d.Add(args(int32(i), a[:k]))
			a = a[k:]
		}
		d.Add(end(int32(i), 0))
	}
	require.Len(t, calls, 3)
	for i, a := range []string{`{"n":1}`, huge, `{"n":3}`} {
		require.True(t, a == string(calls[i].Arguments) && a == runs[i], "%d", i)
	}
}

// TestDispatcherProperties compares a Dispatcher with the responses that a Collector builds.
func TestDispatcherProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "n")
		events := streamtest.Events(rt, n, true)
		all := rapid.Bool().Draw(rt, "in reasoning")
		var c event.Collector
		d := event.Dispatcher{InReasoning: all}
		calls, rejects, runs := map[int32][]event.Call{}, map[int32]map[int32]event.Why{}, map[int32][]string{}
		var at event.Event // the event being added
		d.OnCall = func(call event.Call) {
			require.Equal(rt, event.ToolEnd, at.Kind)
			require.Equal(rt, []int32{at.Choice, at.Call}, []int32{call.Choice, call.Ordinal})
			calls[call.Choice] = append(calls[call.Choice], call)
		}
		d.OnReject = func(call event.Call) {
			if rejects[call.Choice] == nil {
				rejects[call.Choice] = map[int32]event.Why{}
			}
			require.NotContains(rt, rejects[call.Choice], call.Ordinal)
			rejects[call.Choice][call.Ordinal] = call.Why
		}
		d.OnReasoning = func(choice int32, text []byte, _ event.Why) {
			require.NotEqual(rt, event.ToolEnd, at.Kind)
			runs[choice] = append(runs[choice], string(text))
		}
		for i := range events {
			at = events[i]
			d.Add(at)
			c.Add(at)
		}
		at = event.Event{}
		d.Finish() // reports nothing: every choice has finished
		for i := range c.Answers {
			var want []event.Call
			var thoughts []string
			for _, b := range c.Answers[i].Blocks {
				ordinal := b.Call
				switch b.Kind {
				case event.Reasoning:
					if len(b.Data) > 0 {
						thoughts = append(thoughts, string(b.Data))
					}
					continue
				case event.ToolStart, event.ToolAbort:
				default:
					continue
				}
				if b.Flags.Has(event.Server) || b.Flags.Has(event.InReasoning) && !all {
					require.NotContains(rt, rejects[int32(i)], ordinal)
					continue
				}
				valid := b.Flags.Has(event.Custom) || len(bytes.TrimSpace(b.Data)) == 0 || json.Valid(b.Data)
				if b.Kind == event.ToolStart && b.Flags.Has(event.Complete) && valid {
					want = append(want, event.Call{Choice: int32(i), Ordinal: ordinal, Flags: b.Flags, ID: b.ID, Name: b.Name, Arguments: b.Data})
					continue
				}
				require.Contains(rt, rejects[int32(i)], ordinal)
				delete(rejects[int32(i)], ordinal)
			}
			byOrdinal := cmpopts.SortSlices(func(a, b event.Call) bool { return a.Ordinal < b.Ordinal }) // calls may end in any order
			require.Empty(rt, cmp.Diff(want, calls[int32(i)], byOrdinal, cmpopts.EquateEmpty()))
			require.Empty(rt, rejects[int32(i)])
			require.Empty(rt, cmp.Diff(thoughts, runs[int32(i)], cmpopts.EquateEmpty()))
		}
	})
}

// TestDispatcherAnySequence adds arbitrary sequences of events. No call is reported twice or before its end.
func TestDispatcherAnySequence(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		started, done := 0, 0
		ended := func(event.Call) { done++ }
		d := event.Dispatcher{InReasoning: true, OnReject: ended, OnReasoning: func(_ int32, text []byte, _ event.Why) { require.NotEmpty(rt, text) }}
		var last event.Event
		d.OnCall = func(c event.Call) {
			require.True(rt, last.Kind == event.ToolEnd && last.Flags.Has(event.Complete))
			done++
		}
		for _, e := range streamtest.Any(rt) {
			if last = e; e.Kind == event.ToolStart || e.Kind == event.ToolAbort {
				started++
			}
			d.Add(e)
			require.LessOrEqual(rt, done, started)
		}
		d.Finish()
	})
}

func TestDispatcherAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	d := event.Dispatcher{OnCall: func(event.Call) {}}
	events := []event.Event{think(0, "some words"), {Kind: event.Text, Call: -1, Data: []byte("more")}, {Kind: event.Usage, Usage: &event.Tokens{}}}
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Add(events...) }))
	d.Add(begin(0, "f", 0), args(0, strings.Repeat(" ", 1000)))
	grow := []event.Event{args(0, "x")}
	require.Zero(t, testing.AllocsPerRun(5, func() { d.Add(grow...) }), "room for arguments is made now and then")
}

func BenchmarkDispatcher(b *testing.B) {
	d := event.Dispatcher{OnCall: func(event.Call) {}}
	events := []event.Event{{Kind: event.Text, Call: -1, Data: []byte("some words")}}
	b.ReportAllocs()
	for b.Loop() {
		d.Add(events...)
	}
}

func produce(err error, events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(event.Event{}, err)
		}
	}
}

func TestCallsRange(t *testing.T) {
	broken := errors.New("broken")
	events := produce(broken, begin(0, "f", 0), args(0, "{}"), end(0, 0), begin(1, "g", 0), end(1, event.InReasoning), begin(2, "h", 0), end(2, 0))
	var got []string
	for c, err := range event.Calls(events) {
		got = append(got, fmt.Sprint(c.Name, string(c.Arguments), err))
	}
	require.Equal(t, []string{"f{}<nil>", "h<nil>", "broken"}, got)
	for c := range event.Calls(events) {
		require.Equal(t, "f", c.Name)
		break
	}
	for range event.Calls(produce(broken)) {
		break
	}
}

// The tool runs while the model is still generating.
func ExampleDispatcher() {
	d := event.Dispatcher{
		OnCall:      func(c event.Call) { fmt.Printf("run %s(%s)\n", c.Name, c.Arguments) },
		OnReject:    func(c event.Call) { fmt.Println("do not run", c.Name+":", c.Why) },
		OnReasoning: func(_ int32, text []byte, _ event.Why) { fmt.Printf("thought %q\n", text) },
	}
	for _, e := range []event.Event{
		{Kind: event.Reasoning, Part: 0, Data: []byte("Look it ")},
		{Kind: event.Reasoning, Part: 0, Data: []byte("up.")},
		{Kind: event.ToolStart, Part: 1, Data: []byte("search")},
		{Kind: event.ToolArgs, Part: 1, Data: []byte(`{"q": `)},
		{Kind: event.ToolArgs, Part: 1, Data: []byte(`"weft"}`)},
		{Kind: event.ToolEnd, Part: 1, Flags: event.Complete},
		{Kind: event.Text, Part: 2, Data: []byte("And then")},
		{Kind: event.ToolStart, Part: 3, Call: 1, Data: []byte("remove")},
		{Kind: event.ToolArgs, Part: 3, Call: 1, Data: []byte(`{"path": "/`)},
		{Kind: event.Finish, Why: event.Length},
	} {
		fmt.Println("   ", e)
		d.Add(e)
	}
	// Output:
	//     reasoning "Look it "
	//     reasoning "up."
	//     tool_start call=0 "search"
	// thought "Look it up."
	//     tool_args call=0 "{\"q\": "
	//     tool_args call=0 "\"weft\"}"
	//     tool_end call=0
	// run search({"q": "weft"})
	//     text "And then"
	//     tool_start call=1 "remove"
	//     tool_args call=1 "{\"path\": \"/"
	//     finish why=length
	// do not run remove: truncated
}

func ExampleCalls() {
	answer := func(yield func(event.Event, error) bool) { // for example of parsers.Events or wire.API.Events
		_ = yield(event.Event{Kind: event.Text, Data: []byte("Wait.")}, nil) &&
			yield(event.Event{Kind: event.ToolStart, Data: []byte("read")}, nil) &&
			yield(event.Event{Kind: event.ToolArgs, Data: []byte(`{"path":"a.go"}`)}, nil) &&
			yield(event.Event{Kind: event.ToolEnd, Flags: event.Complete}, nil)
	}
	for call, err := range event.Calls(answer) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s(%s)\n", call.Name, call.Arguments)
	}
	// Output:
	// read({"path":"a.go"})
}
