// SPDX-License-Identifier: Apache-2.0

// Package streamtest holds test helpers for the stream encoders and decoders: the worked example, random event
// sequences, and checks. Only tests import it.
package streamtest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/event"
)

// Example returns the events of the worked example: reasoning, a call, reasoning, another call, and text.
func Example() []event.Event {
	return []event.Event{
		{Kind: event.Start, Call: -1, Usage: &event.Tokens{Prompt: 120, Cached: 100}},
		{Kind: event.Reasoning, Call: -1, Data: []byte("a")},
		{Kind: event.Reasoning, Call: -1, Data: []byte("b")},
		{Kind: event.ToolStart, Part: 1, Data: []byte("get")},
		{Kind: event.ToolArgs, Part: 1, Data: []byte(`{"x":`)},
		{Kind: event.ToolArgs, Part: 1, Data: []byte(`1}`)},
		{Kind: event.ToolEnd, Part: 1, Flags: event.Complete},
		{Kind: event.Reasoning, Part: 2, Call: -1, Data: []byte("c")},
		{Kind: event.ToolStart, Part: 3, Call: 1, Data: []byte("put")},
		{Kind: event.ToolArgs, Part: 3, Call: 1, Data: []byte(`{}`)},
		{Kind: event.ToolEnd, Part: 3, Call: 1, Flags: event.Complete},
		{Kind: event.Text, Part: 4, Call: -1, Data: []byte("ok")},
		{Kind: event.Usage, Call: -1, Usage: &event.Tokens{Prompt: 120, Cached: 100, Output: 9, Reasoning: 3}},
		{Kind: event.Finish, Call: -1, Why: event.ToolCalls},
	}
}

// finishes are the causes with which a choice may end.
var finishes = []event.Why{
	event.Stop, event.StopSequence, event.Length, event.ContextFull, event.ToolCalls, event.ContentFilter, event.Refused,
	event.Paused,
}

// Events draws a well-formed response of n choices, interleaved at random, from Start to Finish. If overlap is set,
// calls may be open at the same time.
func Events(t *rapid.T, n int, overlap bool) []event.Event {
	choices := make([][]event.Event, n)
	for i := range choices {
		choices[i] = choice(t, int32(i), overlap)
	}
	prompt := rapid.Int64Range(0, 1000).Draw(t, "prompt")
	start := &event.Tokens{Prompt: prompt, Cached: rapid.Int64Range(0, 1200).Draw(t, "cached")}
	out := []event.Event{{Kind: event.Start, Call: -1, Usage: start}}
	for left := n; left > 0; {
		i := rapid.IntRange(0, n-1).Draw(t, "next")
		if len(choices[i]) == 0 {
			i = 0
			for len(choices[i]) == 0 {
				i++
			}
		}
		k := rapid.IntRange(1, len(choices[i])).Draw(t, "run")
		out = append(out, choices[i][:k]...)
		if choices[i] = choices[i][k:]; len(choices[i]) == 0 {
			left--
		}
	}
	u := *start
	u.Output, u.Reasoning = rapid.Int64Range(0, 99).Draw(t, "output"), rapid.Int64Range(0, 99).Draw(t, "reasoning")
	usage := event.Event{Kind: event.Usage, Call: -1, Usage: &u}
	at := rapid.IntRange(1, len(out)).Draw(t, "usage at")
	return append(out[:at:at], append([]event.Event{usage}, out[at:]...)...)
}

// Any draws an arbitrary sequence: kinds, ordinals and parts at random, with ends in the middle.
func Any(t *rapid.T) []event.Event {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.Event {
		e := event.Event{
			Kind:   event.Kind(rapid.IntRange(0, int(event.Opaque)+1).Draw(t, "kind")),
			Flags:  event.Flags(rapid.IntRange(0, 31).Draw(t, "flags")),
			Choice: rapid.SampledFrom([]int32{0, 0, 0, 0, 1, -1, 1 << 30}).Draw(t, "choice"),
			Part:   rapid.Int32Range(-1, 2).Draw(t, "part"),
			Call:   rapid.Int32Range(-1, 2).Draw(t, "call"),
			Data:   []byte(rapid.SampledFrom([]string{"", "a", "\xe2\x82", "\xac\"", "{}", "{\"type\":\"x_thing\"}", "[{\"token\":\"a\"}]", "[]", "{"}).Draw(t, "data")),
			ID:     []byte(rapid.SampledFrom([]string{"", "x", "f:0", "call_r_1", "toolu_r_1"}).Draw(t, "id")),
		}
		switch e.Kind {
		case event.ToolStart:
			e.Data = []byte("get")
		case event.Finish, event.Error:
			e.Why = rapid.SampledFrom(append(finishes, event.None, event.EngineFailed)).Draw(t, "why")
			if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
				e.Kind = event.ToolArgs
			}
		case event.Usage, event.Start:
			if rapid.Bool().Draw(t, "counted") {
				e.Usage = &event.Tokens{Prompt: 3, Cached: 4, Output: 1, Reasoning: 2}
			}
		}
		return e
	}), 0, 30).Draw(t, "events")
}

// drawn is the state of a choice being drawn.
type drawn struct {
	t     *rapid.T
	c     int32
	part  int32
	calls int32
	out   []event.Event
}

func choice(t *rapid.T, c int32, overlap bool) []event.Event {
	d := &drawn{t: t, c: c, part: -1}
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		d.part++
		switch rapid.IntRange(0, 11).Draw(t, "part") {
		case 0, 1, 2:
			d.text(event.Reasoning)
		case 3, 4:
			d.text(event.Text)
		case 5:
			d.text(event.Refusal)
		case 6, 7:
			d.out = append(d.out, d.call()...)
		case 8:
			if overlap {
				d.parallel()
			}
		case 9:
			d.add(event.Event{Kind: event.ToolAbort, Call: d.calls, Why: event.BadName})
			d.calls++
		case 10:
			kind := rapid.SampledFrom([]event.Kind{event.ToolResult, event.Opaque}).Draw(t, "kind")
			raw := rapid.SampledFrom([]string{`{"type":"x_thing",` + "\n" + `"v":[1, "é"]}`, `"text"`, `{`, ""}).Draw(t, "raw")
			d.add(event.Event{Kind: kind, Call: -1, ID: []byte("x_thing"), Data: []byte(raw)})
		case 11:
			d.add(event.Event{Kind: event.Text, Call: -1}) // a run without text
		}
	}
	e := event.Event{Kind: event.Finish, Call: -1, Why: rapid.SampledFrom(finishes).Draw(t, "finish")}
	if e.Why == event.StopSequence {
		e.Data = []byte(rapid.SampledFrom([]string{"\n\n", "</s>", "stöp"}).Draw(t, "stop"))
	}
	d.add(e)
	return d.out
}

func (d *drawn) add(e event.Event) {
	e.Choice, e.Part = d.c, d.part
	d.out = append(d.out, e)
}

func (d *drawn) text(k event.Kind) {
	for _, p := range Split(d.t, Text(d.t)) {
		d.add(event.Event{Kind: k, Call: -1, Data: p})
	}
	switch {
	case k == event.Reasoning && rapid.Bool().Draw(d.t, "signed"):
		for _, p := range Split(d.t, []byte(rapid.StringMatching(`[a-zA-Z0-9+/]{1,12}`).Draw(d.t, "signature"))) {
			d.add(event.Event{Kind: event.Signature, Call: -1, Data: p})
		}
	case k == event.Text && rapid.IntRange(0, 3).Draw(d.t, "noted") == 0:
		d.add(event.Event{Kind: event.Annotation, Call: -1, Data: []byte(`{"type":"url_citation",` + "\n" + `"url":"http://x/"}`)})
	}
}

// Text draws text, mostly UTF-8.
func Text(t *rapid.T) []byte {
	if rapid.IntRange(0, 3).Draw(t, "bytes") == 0 {
		return rapid.SliceOfN(rapid.SampledFrom([]byte("a\"\\\n\x00\x7f\x80\xbf\xc3\xa9\xe2\x82\xac\xed\xa0\xf0\x9f\x98\x80\xf4\xff")), 1, 12).Draw(t, "raw")
	}
	return []byte(rapid.StringN(1, 10, 30).Draw(t, "text"))
}

// Split splits data at random bytes, also inside characters. Pieces may be empty.
func Split(t *rapid.T, data []byte) [][]byte {
	var out [][]byte
	for len(data) > 0 {
		k := rapid.IntRange(0, len(data)).Draw(t, "cut")
		out = append(out, data[:k:k])
		data = data[k:]
	}
	return out
}

// call draws a call in a new part, from ToolStart to ToolEnd, ToolAbort or neither.
func (d *drawn) call() []event.Event {
	t := d.t
	e := event.Event{Choice: d.c, Part: d.part, Call: d.calls}
	d.calls++
	flags := rapid.SampledFrom([]event.Flags{0, 0, 0, 0, event.Custom, event.InReasoning, event.Recovered, event.Server}).Draw(t, "flags")
	args := []byte(rapid.SampledFrom([]string{
		`{}`, ``, `{"a":1.50,"b":[true,null]}`, `{"s":"é\"\\ {["}`, "{ \"k\" : \"" + strings.Repeat("x", 20) + "\"}",
	}).Draw(t, "args"))
	if flags == event.Custom {
		args = Text(t)
	}
	end := rapid.IntRange(0, 5).Draw(t, "end") // 0: aborted, 1: never ended
	if end < 2 {
		args = args[:rapid.IntRange(0, len(args)).Draw(t, "cut short")]
	}

	start := e
	start.Kind, start.Flags = event.ToolStart, flags
	start.Data = []byte(rapid.SampledFrom([]string{"get", "put_all", "näme"}).Draw(t, "name"))
	switch rapid.IntRange(0, 4).Draw(t, "id") {
	case 0:
		start.ID = fmt.Appendf(nil, "functions.get:%d", e.Call)
	case 1:
		start.ID = []byte("call_same")
	}
	out := []event.Event{start}
	for _, p := range Split(t, args) {
		a := e
		a.Kind, a.Flags, a.Data = event.ToolArgs, flags, p
		out = append(out, a)
	}
	switch {
	case end == 0:
		e.Kind, e.Flags, e.Why, e.Data = event.ToolAbort, flags, event.Truncated, start.Data
		out = append(out, e)
	case end > 1:
		e.Kind, e.Flags = event.ToolEnd, flags|event.Complete
		out = append(out, e)
	}
	return out
}

// parallel draws two calls whose arguments interleave, sometimes with text between them.
func (d *drawn) parallel() {
	a := d.call()
	d.part++
	b := d.call()
	d.out = append(d.out, a[0], b[0])
	a, b = a[1:], b[1:]
	d.part++
	for len(a)+len(b) > 0 {
		switch k := rapid.IntRange(0, 4).Draw(d.t, "which"); {
		case k == 0:
			d.add(event.Event{Kind: event.Text, Call: -1, Data: []byte("meanwhile")})
		case k < 3 && len(a) > 0 || len(b) == 0:
			d.out, a = append(d.out, a[0]), a[1:]
		default:
			d.out, b = append(d.out, b[0]), b[1:]
		}
	}
}

// Started returns the ordinals of the calls of a choice that have a ToolStart; clients never receive the others.
func Started(events []event.Event, choice int32) map[int32]bool {
	out := map[int32]bool{}
	for i := range events {
		if e := &events[i]; e.Kind == event.ToolStart && e.Choice == choice {
			out[e.Call] = true
		}
	}
	return out
}
