// SPDX-License-Identifier: Apache-2.0

package chatanswer

import (
	"math"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/details"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// delta appends the events of the delta of x.
func (d *Decoder) delta(dst []event.Event, c *decodedChoice, x *streamdec.Choice) []event.Event {
	v := x.Delta
	if v.Kind() != jsonscan.Object {
		return dst
	}
	var reasoning, content, refusal, calls, call, list, annotations jsonscan.Value
	for m := v.First(); m.Exists(); m = v.Next(m) {
		if m.Kind() == jsonscan.Null {
			continue
		}
		switch m.Key() {
		case "content":
			content = m
		case "reasoning_content":
			reasoning = m
		case "reasoning":
			// Recent vLLM and OpenRouter use reasoning. Servers that send both fields send the same text in both.
			if reasoning.Kind() != jsonscan.String || reasoning.RawStr() == `""` {
				reasoning = m
			}
		case "reasoning_details", "thinking_blocks":
			list = m
		case "refusal":
			refusal = m
		case "tool_calls":
			calls = m
		case "function_call":
			call = m
		case "annotations":
			annotations = m
		}
	}
	if reasoning.Kind() == jsonscan.Array {
		return d.segments(dst, c, x, reasoning, content, calls)
	}
	flushContent := func() {
		dst = d.content(dst, c, content)
		if annotations.Kind() == jsonscan.Array {
			dst = d.annotations(dst, c, annotations)
		}
		if refusal.Kind() == jsonscan.String && refusal.RawStr() != `""` {
			c.refused = true
			dst = d.text(dst, c, event.Refusal, refusal)
		}
		content, annotations, refusal = jsonscan.Value{}, jsonscan.Value{}, jsonscan.Value{}
	}
	var next jsonscan.Value // the first call not yet decoded
	if calls.Kind() == jsonscan.Array {
		next = calls.First()
	}
	position := 0
	until := func(n int64) {
		for ; next.Exists() && int64(position) < n; next = calls.Next(next) {
			if next.Kind() == jsonscan.Object {
				dst = d.call(dst, c, x, next, position)
			}
			position++
		}
	}
	switch {
	case list.Kind() == jsonscan.Array && details.HasPosition(list):
		// Runs with positions: one per chunk of a stream, or all of them. The plain text has line ends between runs.
		if !details.HasText(list) {
			dst = d.text(dst, c, event.Reasoning, reasoning)
		}
		var last int64 = -1 // index of the run
		for e := list.First(); e.Exists(); e = list.Next(e) {
			p, ok := details.PositionOf(e)
			if ok && p == (details.Position{}) && (c.hasText || len(c.calls) > 0) {
				d.in.Dropped++ // an earlier run, repeated to complete the list: its text was in the stream
				continue
			}
			if p.Texts > 0 {
				flushContent()
			}
			until(p.Calls)
			index, _ := e.Get("index").Int()
			if c.kind == event.Reasoning && (ok || last >= 0 && index != last) {
				dst = d.flush(dst, c)
				c.kind = 0 // begin a new part, even without other output in between
			}
			last = index
			dst = d.detail(dst, c, e, false)
		}
	default:
		if reasoning.Kind() == jsonscan.Object {
			dst = d.detail(dst, c, reasoning, false)
		} else {
			dst = d.text(dst, c, event.Reasoning, reasoning)
		}
		if list.Kind() == jsonscan.Array {
			plain := reasoning.Kind() == jsonscan.String && reasoning.RawStr() != `""`
			for e := list.First(); e.Exists(); e = list.Next(e) {
				dst = d.detail(dst, c, e, plain)
			}
		}
	}
	flushContent()
	until(math.MaxInt64)
	if call.Kind() == jsonscan.Object { // the form that preceded tool_calls
		dst = d.function(dst, c, &callDelta{index: legacyCall}, call)
	}
	return dst
}

// segments decodes a message whose reasoning is a list, with one entry before each call and one after the last.
func (d *Decoder) segments(dst []event.Event, c *decodedChoice, x *streamdec.Choice, reasoning, content, calls jsonscan.Value) []event.Event {
	segment := reasoning.First()
	next := func() {
		if segment.Exists() {
			dst = d.text(dst, c, event.Reasoning, segment)
			segment = reasoning.Next(segment)
		}
	}
	next()
	dst = d.content(dst, c, content)
	position := 0
	for e := calls.First(); e.Exists() && calls.Kind() == jsonscan.Array; e = calls.Next(e) {
		if e.Kind() == jsonscan.Object {
			dst = d.call(dst, c, x, e, position)
		}
		position++
		next()
	}
	for segment.Exists() {
		next()
	}
	return dst
}

// text appends a delta of the given kind, unless v is empty or not a string.
func (d *Decoder) text(dst []event.Event, c *decodedChoice, kind event.Kind, v jsonscan.Value) []event.Event {
	data := d.in.Text(v)
	if len(data) == 0 {
		return dst
	}
	parts := c.parts
	dst = d.turn(dst, c, kind)
	c.hasText = c.hasText || kind != event.Reasoning
	if data = c.half.Next(&d.in.Doc, v, data); len(data) == 0 && parts == c.parts {
		return dst
	}
	return append(dst, event.Event{Kind: kind, Choice: c.n, Part: c.part, Call: -1, Data: data})
}

// turn begins a part of the given kind, unless the open part is of this kind.
func (d *Decoder) turn(dst []event.Event, c *decodedChoice, kind event.Kind) []event.Event {
	if c.open > 0 {
		dst = d.endComplete(dst, c, -1)
	}
	if c.kind != kind {
		dst = d.flush(dst, c)
		c.kind, c.part = kind, c.parts
		c.parts++
	}
	return dst
}

// flush ends a run of text. A high surrogate that was held becomes U+FFFD.
func (d *Decoder) flush(dst []event.Event, c *decodedChoice) []event.Event {
	if rest := c.half.Flush(); len(rest) > 0 {
		dst = append(dst, event.Event{Kind: c.kind, Choice: c.n, Part: c.part, Call: -1, Data: rest})
	}
	return dst
}

// content decodes a string or Mistral's list of parts.
func (d *Decoder) content(dst []event.Event, c *decodedChoice, v jsonscan.Value) []event.Event {
	if v.Kind() == jsonscan.String {
		return d.text(dst, c, event.Text, v)
	}
	if v.Kind() != jsonscan.Array {
		return dst
	}
	for p := v.First(); p.Exists(); p = v.Next(p) {
		kind := d.in.Text(p.Get("type"))
		switch string(kind) {
		case "text", "output_text":
			dst = d.text(dst, c, event.Text, p.Get("text"))
		case "refusal":
			c.refused = true
			dst = d.text(dst, c, event.Refusal, p.Get("refusal"))
		case "thinking":
			t := p.Get("thinking")
			dst = d.text(dst, c, event.Reasoning, t)
			for e := t.First(); e.Exists() && t.Kind() == jsonscan.Array; e = t.Next(e) {
				dst = d.text(dst, c, event.Reasoning, e.Get("text"))
			}
		default:
			if p.Kind() == jsonscan.String {
				dst = d.text(dst, c, event.Text, p)
				continue
			}
			dst = d.turn(dst, c, event.Opaque)
			dst = append(dst, event.Event{Kind: event.Opaque, Choice: c.n, Part: c.part, Call: -1, ID: kind, Data: p.Raw()})
			c.kind = 0 // the next text begins a new part
		}
	}
	return dst
}

// detail decodes an entry of reasoning_details (OpenRouter, MiniMax) or thinking_blocks (LiteLLM). Its text is used
// unless plain is set, that is, the delta also has it as plain text.
func (d *Decoder) detail(dst []event.Event, c *decodedChoice, e jsonscan.Value, plain bool) []event.Event {
	if e.Kind() != jsonscan.Object {
		return dst
	}
	if !plain {
		member := details.Member(e)
		if member == "" {
			member = "text" // an entry without a type
		}
		if member != "data" {
			dst = d.text(dst, c, event.Reasoning, e.Get(member))
		}
	}
	if s := d.in.Text(e.Get("signature")); len(s) > 0 {
		dst = d.turn(dst, c, event.Reasoning)
		dst = append(dst, event.Event{Kind: event.Signature, Choice: c.n, Part: c.part, Call: -1, Data: s})
	}
	if s := e.Get("data"); s.Kind() == jsonscan.String && s.RawStr() != `""` {
		d.in.Dropped++
	}
	return dst
}

// annotations attaches annotations to the open text. Servers send them before or after the text; annotations before the
// text open its part.
func (d *Decoder) annotations(dst []event.Event, c *decodedChoice, list jsonscan.Value) []event.Event {
	for a := list.First(); a.Exists(); a = list.Next(a) {
		if a.Kind() != jsonscan.Object {
			continue
		}
		if c.kind != event.Text {
			dst = d.turn(dst, c, event.Text)
			dst = append(dst, event.Event{Kind: event.Text, Choice: c.n, Part: c.part, Call: -1})
		}
		dst = append(dst, event.Event{Kind: event.Annotation, Choice: c.n, Part: c.part, Call: -1, Data: a.Raw()})
	}
	return dst
}
