// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func data(s string) []byte { return []byte(s) }

var plain = cmp.Options{cmpopts.IgnoreUnexported(event.Block{}), cmpopts.EquateEmpty()}

func TestCollector(t *testing.T) {
	const whole = event.Complete
	for _, c := range []struct {
		name   string
		events []event.Event
		want   []event.Block
	}{
		{
			name:   "nothing",
			events: []event.Event{{Kind: event.Finish, Why: event.Stop}},
		},
		{
			name: "a change of part or kind opens a block",
			events: []event.Event{
				{Kind: event.Text, Data: data("a")}, {Kind: event.Text, Data: data("b")},
				{Kind: event.Text, Part: 1, Data: data("c")}, {Kind: event.Reasoning, Part: 1, Data: data("d")},
				{Kind: event.Refusal, Part: 2, Data: data("e")},
			},
			want: []event.Block{
				{Kind: event.Text, Call: -1, Data: data("ab")}, {Kind: event.Text, Call: -1, Data: data("c")},
				{Kind: event.Reasoning, Call: -1, Data: data("d")}, {Kind: event.Refusal, Call: -1, Data: data("e")},
			},
		},
		{
			name: "signatures belong to reasoning",
			events: []event.Event{
				{Kind: event.Reasoning, Data: data("r")}, {Kind: event.Signature, Data: data("s1")}, {Kind: event.Signature, Data: data("s2")},
				{Kind: event.Signature, Part: 1, Data: data("alone")},
			},
			want: []event.Block{
				{Kind: event.Reasoning, Call: -1, Data: data("r"), Signature: data("s1s2")},
				{Kind: event.Reasoning, Call: -1, Signature: data("alone")},
			},
		},
		{
			name: "annotations belong to text",
			events: []event.Event{
				{Kind: event.Annotation, Data: data("{}")}, // no text precedes it
				{Kind: event.Text, Data: data("t")}, {Kind: event.Annotation, Data: data(`{"a":1}`)},
			},
			want: []event.Block{{Kind: event.Text, Call: -1, Data: data("t"), Annotations: [][]byte{data(`{"a":1}`)}}},
		},
		{
			name: "calls, one after the other and at once",
			events: []event.Event{
				{Kind: event.ToolStart, Call: 0, Data: data("f"), ID: data("x"), Flags: event.Recovered}, {Kind: event.ToolArgs, Call: 0, Data: data("{}")},
				{Kind: event.ToolEnd, Call: 0, Flags: whole},
				{Kind: event.ToolStart, Call: 1, Part: 1, Data: data("g")}, {Kind: event.ToolStart, Call: 2, Part: 2, Data: data("h"), Flags: event.Custom},
				{Kind: event.ToolArgs, Call: 1, Part: 1, Data: data("[")}, {Kind: event.ToolArgs, Call: 2, Part: 2, Data: data("free")},
				{Kind: event.ToolArgs, Call: 1, Part: 1, Data: data("]")}, {Kind: event.ToolEnd, Call: 2, Part: 2, Flags: whole},
				{Kind: event.ToolEnd, Call: 1, Part: 1, Flags: whole},
			},
			want: []event.Block{
				{Kind: event.ToolStart, Flags: whole | event.Recovered, Name: "f", ID: "x", Data: data("{}")},
				{Kind: event.ToolStart, Flags: whole, Call: 1, Name: "g", Data: data("[]")},
				{Kind: event.ToolStart, Flags: whole | event.Custom, Call: 2, Name: "h", Data: data("free")},
			},
		},
		{
			name: "aborted calls",
			events: []event.Event{
				{Kind: event.ToolStart, Data: data("f")}, {Kind: event.ToolArgs, Data: data(`{"a`)}, {Kind: event.ToolAbort, Why: event.Truncated, Data: data("f")},
				{Kind: event.ToolAbort, Call: 1, Why: event.BadName},
				{Kind: event.ToolStart, Call: 2, Data: data("open")},
			},
			want: []event.Block{
				{Kind: event.ToolAbort, Why: event.Truncated, Name: "f", Data: data(`{"a`)},
				{Kind: event.ToolAbort, Why: event.BadName, Call: 1},
				{Kind: event.ToolStart, Call: 2, Name: "open"},
			},
		},
		{
			name: "a complete call does not change any more",
			events: []event.Event{
				{Kind: event.ToolStart, Data: data("f")}, {Kind: event.ToolArgs, Data: data("{}")}, {Kind: event.ToolEnd, Flags: whole},
				{Kind: event.ToolArgs, Data: data("late")}, {Kind: event.ToolAbort, Why: event.Duplicate},
			},
			want: []event.Block{
				{Kind: event.ToolStart, Flags: whole, Name: "f", Data: data("{}")},
				{Kind: event.ToolAbort, Why: event.Duplicate},
			},
		},
		{
			name: "items of the server",
			events: []event.Event{
				{Kind: event.ToolResult, ID: data("x"), Data: data("{}"), Flags: event.Server}, {Kind: event.Opaque, ID: data("t"), Data: data("1")},
				{Kind: event.Kind(99), Data: data("later version")},
			},
			want: []event.Block{
				{Kind: event.ToolResult, Flags: event.Server, Call: -1, ID: "x", Data: data("{}")},
				{Kind: event.Opaque, Call: -1, ID: "t", Data: data("1")},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got event.Collector
			got.Add(c.events...)
			require.Len(t, got.Answers, 1)
			require.Empty(t, cmp.Diff(c.want, got.Answers[0].Blocks, plain))
		})
	}
}

func TestCollectorChoices(t *testing.T) {
	var c event.Collector
	c.Add(
		event.Event{Kind: event.Start, Usage: &event.Tokens{Prompt: 5}},
		event.Event{Kind: event.Text, Choice: 2, Data: data("two")},
		event.Event{Kind: event.Text, Data: data("zero")},
		event.Event{Kind: event.Text, Choice: -1, Data: data("stray")},
		event.Event{Kind: event.Text, Choice: 1 << 30, Data: data("stray")},
		event.Event{Kind: event.Start, Choice: 1 << 30},
		event.Event{Kind: event.Logprobs, Data: data("[1]")},
		event.Event{Kind: event.Usage, Usage: &event.Tokens{Prompt: 5, Output: 7}},
		event.Event{Kind: event.Usage},
		event.Event{Kind: event.Finish, Choice: 2, Why: event.StopSequence, Data: data("END")},
	)
	require.Len(t, c.Answers, 3)
	require.Equal(t, "zero", c.Answers[0].Text())
	require.Equal(t, event.None, c.Answers[0].Finish)
	require.Equal(t, [][]byte{data("[1]")}, c.Answers[0].Logprobs)
	require.Empty(t, c.Answers[1].Blocks)
	require.Equal(t, "two", c.Answers[2].Text())
	require.Equal(t, event.StopSequence, c.Answers[2].Finish)
	require.Equal(t, "END", string(c.Answers[2].Stop))
	require.Equal(t, event.Tokens{Prompt: 5, Output: 7}, c.Usage)
}

func TestCollectorError(t *testing.T) {
	var c event.Collector
	c.Add(event.Event{Kind: event.Text, Data: data("a")}, event.Event{Kind: event.Error, Why: event.Overloaded, Data: data("busy")})
	require.Equal(t, event.Overloaded, c.Err)
	require.Equal(t, "busy", c.Message)
}

func TestCalls(t *testing.T) {
	var c event.Collector
	for i, f := range []event.Flags{0, event.InReasoning, event.Custom, event.Server} {
		n := int32(i)
		c.Add(event.Event{Kind: event.ToolStart, Call: n, Flags: f, Data: data("f")}, event.Event{Kind: event.ToolEnd, Call: n, Flags: f | event.Complete})
	}
	c.Add(event.Event{Kind: event.ToolStart, Call: 4, Data: data("cut")})
	calls := c.Answers[0].Calls()
	require.Len(t, calls, 2)
	require.Equal(t, []int32{0, 2}, []int32{calls[0].Call, calls[1].Call})
}

// TestCollectorSplits checks that the result depends neither on how deltas are split nor on the producer's memory.
func TestCollectorSplits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := streamtest.Events(rt, rapid.IntRange(1, 2).Draw(rt, "choices"), true)
		var want, got event.Collector
		want.Add(events...)
		var memory []byte
		for _, e := range events {
			pieces := [][]byte{e.Data}
			switch e.Kind {
			case event.Reasoning, event.Text, event.Refusal, event.Signature, event.ToolArgs:
				pieces = append(streamtest.Split(rt, e.Data), nil)
			}
			for _, p := range pieces {
				for i := range memory {
					memory[i] = 'X'
				}
				memory = append(append(memory[:0], p...), e.ID...)
				piece := e
				piece.Data, piece.ID = memory[:len(p):len(p)], memory[len(p):]
				got.Add(piece)
			}
		}
		require.Empty(rt, cmp.Diff(want, got, plain))
	})
}

func TestClone(t *testing.T) {
	memory, usage := data("abc"), event.Tokens{Prompt: 1}
	e := event.Event{Kind: event.ToolStart, Data: memory[:2], ID: memory[2:], Usage: &usage}
	k := e.Clone()
	copy(memory, "xyz")
	usage.Prompt = 2
	require.Equal(t, "ab c 1", string(k.Data)+" "+string(k.ID)+" "+string(rune('0'+k.Usage.Prompt)))
	require.Empty(t, cmp.Diff(event.Event{Kind: event.Finish}, event.Event{Kind: event.Finish}.Clone()))
}

func TestStrings(t *testing.T) {
	for want, e := range map[string]event.Event{
		`tool_args call=0 "{\"x\":"`:      {Kind: event.ToolArgs, Data: data(`{"x":`)},
		`tool_start call=2 "get" id="c1"`: {Kind: event.ToolStart, Call: 2, Data: data("get"), ID: data("c1")},
		`finish why=tool_calls`:           {Kind: event.Finish, Why: event.ToolCalls},
		`kind(0)`:                         {},
		`kind(200) why=why(99)`:           {Kind: 200, Why: 99},
	} {
		require.Equal(t, want, e.String())
	}
	// Every kind and every cause has a unique name.
	seen := map[string]bool{}
	for k := event.Start; k <= event.Opaque; k++ {
		require.NotContains(t, k.String(), "(")
		require.False(t, seen[k.String()])
		seen[k.String()] = true
	}
	for w := event.Stop; w <= event.Internal; w++ {
		require.NotContains(t, w.String(), "(")
		require.NotEmpty(t, w.String())
	}
	require.True(t, (event.Complete | event.Custom).Has(event.Custom))
	require.False(t, event.Complete.Has(event.Complete|event.Custom))
}

func TestFlagsString(t *testing.T) {
	for f, want := range map[event.Flags]string{
		0:              "",
		event.Complete: "complete",
		event.InReasoning | event.Recovered | event.Complete: "complete|recovered|in_reasoning",
		event.Custom | event.Server:                          "custom|server",
		event.Repaired:                                       "repaired",
		event.Repaired<<2 | event.Repaired<<3:                "flags(0x180)",
		event.Repaired<<1 | event.Complete:                   "complete|encrypted",
		1<<16 - 1:                                            "complete|recovered|in_reasoning|custom|server|repaired|encrypted|flags(0xff80)",
	} {
		require.Equal(t, want, f.String())
	}
	for e, want := range map[*event.Event]string{
		{Kind: event.ToolEnd, Flags: event.Complete}:                                   "tool_end call=0",
		{Kind: event.ToolEnd, Flags: event.Complete | event.Recovered}:                 "tool_end call=0 recovered",
		{Kind: event.ToolAbort, Call: 2, Flags: event.InReasoning, Why: event.BadName}: "tool_abort call=2 why=bad_name in_reasoning",
		{Kind: event.ToolStart, Data: []byte("f"), Flags: event.Custom | event.Server}: `tool_start call=0 "f" custom|server`,
	} {
		require.Equal(t, want, e.String())
	}
}

// An answer exists from the first event of its choice on.
func TestCollectorAnswers(t *testing.T) {
	var c event.Collector
	c.Add(event.Event{Kind: event.Usage, Usage: &event.Tokens{Prompt: 1}}, event.Event{Kind: event.Error, Why: event.Overloaded})
	require.Empty(t, c.Answers)
	c.Add(event.Event{Kind: event.Start})
	require.Len(t, c.Answers, 1)
	c.Add(event.Event{Kind: event.Text, Choice: 2, Data: []byte("a")})
	require.Len(t, c.Answers, 3)
}
