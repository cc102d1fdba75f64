// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"slices"

	"github.com/weft-go/weft/protocols/event"
)

// A Case is a named sequence of events.
type Case struct {
	Name   string
	Events []event.Event
}

// Provoking returns the worked example and sequences that are likely to make an encoder deviate from its API.
func Provoking() []Case {
	start := event.Event{Kind: event.Start, Call: -1, Usage: &event.Tokens{Prompt: 20, Cached: 16}}
	usage := event.Event{Kind: event.Usage, Call: -1, Usage: &event.Tokens{Prompt: 20, Cached: 16, Output: 5, Reasoning: 2}}
	finish := func(why event.Why) event.Event { return event.Event{Kind: event.Finish, Call: -1, Why: why} }
	failed := event.Event{Kind: event.Error, Why: event.EngineFailed, Data: []byte("gone")}
	part := int32(0)
	run := func(k event.Kind, pieces ...string) (out []event.Event) {
		part++
		for _, p := range pieces {
			out = append(out, event.Event{Kind: k, Call: -1, Part: part, Data: []byte(p)})
		}
		return out
	}
	text := func(pieces ...string) []event.Event { return run(event.Text, pieces...) }
	// call returns the events of a call that ends with the event end: ToolEnd, ToolAbort or, if 0, none.
	call := func(n int32, id string, flags event.Flags, end event.Kind, args ...string) []event.Event {
		part++
		e := event.Event{Call: n, Part: part, Flags: flags}
		s := e
		s.Kind, s.Data, s.ID = event.ToolStart, []byte("get"), []byte(id)
		out := []event.Event{s}
		for _, a := range args {
			s := e
			s.Kind, s.Data = event.ToolArgs, []byte(a)
			out = append(out, s)
		}
		switch e.Kind = end; end {
		case event.ToolEnd:
			e.Flags |= event.Complete
			out = append(out, e)
		case event.ToolAbort:
			e.Why = event.Truncated
			out = append(out, e)
		}
		return out
	}
	done := func(n int32, id string) []event.Event { return call(n, id, 0, event.ToolEnd, `{"a":`, `1}`) }
	aborted := func(args ...string) []event.Event { return call(0, "", 0, event.ToolAbort, args...) }
	unknown := event.Event{Kind: event.ToolAbort, Call: 0, Why: event.BadName}
	signature := event.Event{Kind: event.Signature, Call: -1, Data: []byte("c2ln")}
	opaque := event.Event{Kind: event.Opaque, Call: -1, ID: []byte("x_thing"), Data: []byte(`{"type":"x_thing","v":1}`)}
	late := usage
	overlap := slices.Concat(call(0, "", 0, 0, `{"a":`), call(1, "", 0, 0, `{"b":`), text("meanwhile"))
	overlap = append(overlap,
		event.Event{Kind: event.ToolArgs, Call: 1, Data: []byte("2}")}, event.Event{Kind: event.ToolArgs, Call: 0, Data: []byte("1}")},
		event.Event{Kind: event.ToolEnd, Call: 1, Flags: event.Complete}, event.Event{Kind: event.ToolEnd, Call: 0, Flags: event.Complete})

	second := func(events ...[]event.Event) []event.Event {
		out := slices.Concat(events...)
		for i := range out {
			out[i].Choice = 1
		}
		return out
	}

	whole := func(name string, why event.Why, parts ...[]event.Event) Case {
		out := []event.Event{start}
		for _, p := range parts {
			out = append(out, p...)
		}
		return Case{name, append(out, usage, finish(why))}
	}
	bare := func(name string, events ...event.Event) Case { return Case{name, events} }

	return []Case{
		{"worked example", Example()},
		whole("plain answer", event.Stop, text("Hello", " there")),
		whole("empty answer", event.Stop),
		whole("empty pieces", event.Stop, text("", "a", ""), run(event.Reasoning, ""), done(0, "")),
		whole("reasoning only", event.Stop, run(event.Reasoning, "hm")),
		whole("signed reasoning", event.Stop, run(event.Reasoning, "hm"), []event.Event{signature}, text("ok")),
		whole("signature without reasoning", event.Stop, []event.Event{signature}, text("ok")),
		whole("two calls with one id", event.ToolCalls, done(0, "same"), done(1, "same")),
		whole("calls without ids", event.ToolCalls, done(0, ""), done(1, ""), done(2, "")),
		whole("ids of a model", event.ToolCalls, done(0, "functions.get:0"), done(1, "functions.get:1"), done(2, "functions.get:0")),
		whole("ids in our own form", event.ToolCalls, done(0, "call_1_1"), done(1, ""), done(2, "toolu_1_2"), done(3, "tc_x00")),
		whole("no arguments at all", event.ToolCalls, call(0, "", 0, event.ToolEnd)),
		whole("empty arguments", event.ToolCalls, call(0, "", 0, event.ToolEnd, "", ""), call(1, "", 0, event.ToolEnd, " "), call(2, "", 0, event.ToolEnd, "{}")),
		whole("arguments in one piece", event.ToolCalls, call(0, "", 0, event.ToolEnd, `{"a":"é\"","b":[1]}`)),
		whole("text after a call", event.ToolCalls, text("before"), done(0, ""), text("after"), done(1, ""), text("end")),
		whole("the engine reports stop after a call", event.Stop, done(0, "")),
		whole("the engine reports stop sequence after a call", event.StopSequence, done(0, "")),
		whole("the engine reports tool calls without one", event.ToolCalls, text("no call")),
		whole("cut by length in text", event.Length, text("Hel")),
		whole("cut by length in reasoning", event.Length, run(event.Reasoning, "h")),
		whole("cut by length in arguments", event.Length, text("x"), aborted(`{"a":"`)),
		whole("cut by length where arguments look whole", event.Length, aborted(`{"a":1}`)),
		whole("cut by length before arguments", event.Length, aborted()),
		whole("cut by length after a call", event.Length, done(0, "")),
		whole("window full", event.ContextFull, text("x")),
		whole("a call that never ends", event.Stop, call(0, "", 0, 0, `{"a":1}`)),
		whole("a call without a name", event.Stop, []event.Event{unknown}, text("x")),
		whole("an aborted call beside a good one", event.ToolCalls, aborted(`{"a"`), done(1, ""), text("x")),
		whole("aborted calls only", event.ToolCalls, aborted("{}"), call(1, "x", 0, event.ToolAbort, "")),
		whole("overlapping calls", event.ToolCalls, overlap),
		whole("a call inside reasoning", event.Stop, run(event.Reasoning, "a"), call(0, "", event.InReasoning, event.ToolEnd, "{}"), run(event.Reasoning, "b")),
		whole("a call of the server's", event.Stop, call(0, "", event.Server, event.ToolEnd, "{}"), text("x")),
		whole("free text", event.ToolCalls, call(0, "", event.Custom, event.ToolEnd, "*** Begin\n", "\"é"), call(1, "", event.Custom, event.ToolEnd)),
		whole("an item of another kind", event.Stop, []event.Event{opaque}, text("x")),
		whole("refusal", event.Refused, run(event.Refusal, "I can", "not.")),
		whole("filter", event.ContentFilter, text("x")),
		whole("paused", event.Paused, text("x")),
		whole("no cause", event.None, text("x")),
		whole("characters cut in pieces", event.Stop, text("\xe2", "\x82\xac\xf0\x9f", "x"), run(event.Reasoning, "\xc3")),
		whole("text that looks like a stream", event.Stop, text("\n\ndata: [DONE]\n\nevent: error\r\n", "data: {}\n\n")),
		whole("another choice", event.ToolCalls, text("x"), second(text("y"), done(0, "same")), done(0, "same"), second(aborted(`{"a"`), []event.Event{finish(event.Length)})),
		bare("another choice never ends", slices.Concat([]event.Event{start}, text("x"), second(text("y")), []event.Event{finish(event.Stop)})...),
		bare("no usage at all", slices.Concat([]event.Event{{Kind: event.Start, Call: -1}}, text("x"), []event.Event{finish(event.Stop)})...),
		bare("no start", slices.Concat(text("x"), done(0, ""), []event.Event{finish(event.Stop)})...),
		bare("nothing but the end", finish(event.Stop)),
		bare("usage after the end", slices.Concat([]event.Event{start}, text("x"), []event.Event{finish(event.Stop), late})...),
		bare("output after the end", slices.Concat([]event.Event{start}, text("x"), []event.Event{finish(event.Stop)}, text("y"), done(0, ""))...),
		bare("two starts, two ends", start, start, finish(event.Length), finish(event.Stop)),
		bare("failed in text", slices.Concat([]event.Event{start}, text("x"), []event.Event{failed}, text("y"), []event.Event{finish(event.Stop)})...),
		bare("failed in arguments", slices.Concat([]event.Event{start}, call(0, "", 0, 0, `{"a":1}`), []event.Event{failed})...),
		bare("failed after a call", slices.Concat([]event.Event{start}, done(0, ""), []event.Event{failed})...),
		bare("failed at once", failed),
		bare("failed after the end", start, finish(event.Stop), failed),
		bare("ended without an end", slices.Concat([]event.Event{start}, run(event.Reasoning, "h"), text("x"))...),
		bare("ended in arguments", slices.Concat([]event.Event{start}, call(0, "", 0, 0, `{"a":`))...),
		bare("ended after a call", slices.Concat([]event.Event{start}, done(0, ""), []event.Event{usage})...),
		bare("ended at once", start),
		bare("nothing"),
	}
}
