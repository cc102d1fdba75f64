// SPDX-License-Identifier: Apache-2.0

package chatanswer

import (
	"bytes"
	"math"
	"slices"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

const (
	noCall     = math.MinInt64     // index of a delta without an index
	legacyCall = math.MinInt64 + 1 // index of function_call
)

// Limits for the calls of a stream. Deltas of further calls are dropped; a call with a longer name is aborted; a longer
// ID is treated as absent.
const (
	maxCalls = 4096
	maxName  = 4096
)

// decodedCall is the state of a call.
type decodedCall struct {
	index   int64
	id      []byte
	name    []byte
	held    []byte // arguments held until ToolStart
	args    streamdec.ArgState
	half    streamdec.Halves
	started bool
	ended   bool
	custom  bool
	part    int32
	ordinal int32
}

// callDelta is a delta of a call.
type callDelta struct {
	index    int64
	id, name []byte
	value    jsonscan.Value // of the arguments
	args     []byte         // its text
	custom   bool
	fresh    bool // it is a new call
	later    bool // not the first in its list, and without index and ID
}

// call decodes an element of tool_calls. If the response is not streamed, the element is a complete call.
func (d *Decoder) call(dst []event.Event, c *decodedChoice, in *streamdec.Choice, v jsonscan.Value, position int) []event.Event {
	x := callDelta{index: noCall}
	f := v // some servers have name and arguments here, without function
	for m := v.First(); m.Exists(); m = v.Next(m) {
		switch m.Key() {
		case "index":
			if n, ok := m.Int(); ok {
				x.index = n
			}
		case "id":
			x.id = d.in.Text(m)
		case "type":
			x.custom = x.custom || m.RawStr() == `"custom"`
		case "function":
			if m.Kind() == jsonscan.Object {
				f = m
			}
		case "custom":
			if m.Kind() == jsonscan.Object {
				f, x.custom = m, true
			}
		}
	}
	if len(x.id) > maxName {
		x.id = nil
	}
	x.fresh = in.Whole
	x.later = position > 0 && x.index == noCall && len(x.id) == 0
	dst = d.function(dst, c, &x, f)
	if in.Whole {
		dst = d.endCalls(dst, c, in.Why)
	}
	return dst
}

// function decodes name and arguments of a call.
func (d *Decoder) function(dst []event.Event, c *decodedChoice, x *callDelta, v jsonscan.Value) []event.Event {
	for m := v.First(); m.Exists(); m = v.Next(m) {
		switch m.Key() {
		case "name":
			x.name = d.in.Text(m)
		case "arguments", "input":
			x.value = m
			if x.args = d.in.Text(m); m.Kind() != jsonscan.String && m.Kind() != jsonscan.Null {
				x.args = m.Raw() // an object instead of its text
			}
		}
	}
	at := c.find(x)
	if at < 0 {
		if d.calls >= maxCalls {
			d.in.Dropped++
			return dst
		}
		d.calls++
		at = c.add(x)
	}
	if c.open > 0 {
		dst = d.endComplete(dst, c, at)
	}
	t := &c.calls[at]
	if t.ended {
		if len(bytes.TrimSpace(x.args)) > 0 {
			d.in.Dropped++
		}
		return dst
	}
	t.custom = t.custom || x.custom
	some := len(x.args) > 0
	if x.value.Kind() == jsonscan.String {
		x.args = t.half.Next(&d.in.Doc, x.value, x.args)
	}
	if !t.started {
		if len(t.id) == 0 {
			t.id = append(t.id, x.id...)
		}
		if len(x.name) > maxName || len(t.name)+len(x.name) == 0 && d.held+len(x.args) > d.opt.MaxHeld {
			return d.abort(dst, c, t, event.LimitExceeded)
		}
		if len(t.name) == 0 {
			t.name = append(t.name, x.name...)
		}
		switch {
		case len(t.name) == 0:
			t.held = append(t.held, x.args...)
			d.held += len(x.args)
			return dst
		case len(t.id) == 0 && len(t.held) == 0 && !some:
			return dst // the ID may be in the next delta
		}
		dst = d.start(dst, c, t)
	}
	return d.args(dst, c, t, x.args)
}

// find returns the index in c.calls of the call to which a delta belongs, or -1 for a new call.
func (c *decodedChoice) find(x *callDelta) int {
	if x.fresh || x.later && len(x.name) > 0 {
		return -1
	}
	at := -1
	switch {
	case x.index != noCall:
		for i := len(c.calls) - 1; i >= 0 && at < 0; i-- {
			if c.calls[i].index == x.index {
				at = i
			}
		}
	case len(x.id) > 0:
		for i := len(c.calls) - 1; i >= 0 && at < 0; i-- {
			if bytes.Equal(c.calls[i].id, x.id) {
				at = i
			}
		}
		if at < 0 && len(x.name) == 0 { // each delta has a new ID, or the ID arrives after the name
			at = len(c.calls) - 1
		}
	default:
		at = len(c.calls) - 1
	}
	if at < 0 {
		return -1
	}
	t := &c.calls[at]
	whole := t.ended || !t.custom && t.args.Complete()
	otherID := len(x.id) > 0 && len(t.id) > 0 && !bytes.Equal(x.id, t.id)
	switch {
	case len(x.name) == 0:
		if whole && otherID {
			return -1
		}
		return at
	case len(t.name) == 0 && !t.ended:
		return at
	case t.ended, otherID:
		return -1
	case !bytes.Equal(x.name, t.name):
		if len(x.id) > 0 && len(t.id) > 0 {
			return at // the same call: its ToolStart is not changed
		}
		return -1
	case whole && len(bytes.TrimSpace(x.args)) > 0:
		return -1
	}
	return at
}

// add opens a call and returns its index. It reuses memory of a call from before a Reset.
func (c *decodedChoice) add(x *callDelta) int {
	n := len(c.calls)
	c.calls = slices.Grow(c.calls, 1)[:n+1]
	t := &c.calls[n]
	*t = decodedCall{index: x.index, id: t.id[:0], name: t.name[:0]}
	c.open++
	return n
}

// start appends the ToolStart and the held arguments.
func (d *Decoder) start(dst []event.Event, c *decodedChoice, t *decodedCall) []event.Event {
	dst = d.flush(dst, c)
	t.started = true
	t.ordinal, c.ordinals = c.ordinals, c.ordinals+1
	t.part, c.parts = c.parts, c.parts+1
	c.kind, c.part = event.ToolStart, t.part
	dst = append(dst, d.of(c, t, event.ToolStart, t.name))
	if len(t.id) > 0 {
		dst[len(dst)-1].ID = t.id
	}
	dst = d.args(dst, c, t, t.held)
	d.release(t)
	return dst
}

// release discards held arguments.
func (d *Decoder) release(t *decodedCall) {
	d.held -= len(t.held)
	t.held = nil // the memory is not reused, because an event may refer to it
}

// of returns an event of call t.
func (d *Decoder) of(c *decodedChoice, t *decodedCall, kind event.Kind, data []byte) event.Event {
	e := event.Event{Kind: kind, Choice: c.n, Part: t.part, Call: t.ordinal, Data: data}
	if t.custom {
		e.Flags = event.Custom
	}
	return e
}

// args appends arguments of a call that has started.
func (d *Decoder) args(dst []event.Event, c *decodedChoice, t *decodedCall, data []byte) []event.Event {
	if len(data) == 0 {
		return dst
	}
	if !t.custom {
		t.args.Feed(data)
	}
	dst = d.flush(dst, c)
	c.kind, c.part = event.ToolStart, t.part
	return append(dst, d.of(c, t, event.ToolArgs, data))
}

// endComplete is called when output arrives that does not belong to open calls other than c.calls[at]. It ends those whose
// arguments are complete and aborts those whose arguments can no longer become valid.
func (d *Decoder) endComplete(dst []event.Event, c *decodedChoice, at int) []event.Event {
	for c.low < len(c.calls) && c.calls[c.low].ended {
		c.low++
	}
	for i := c.low; i < len(c.calls); i++ {
		t := &c.calls[i]
		if i == at || t.ended {
			continue
		}
		if !t.started && len(t.name) > 0 {
			dst = d.start(dst, c, t)
		}
		switch {
		case !t.started || t.custom: // free text does not show whether it is complete
		case t.args.Broken(), !t.args.Empty() && !t.args.Object():
			dst = d.abort(dst, c, t, event.BadArguments)
		case t.args.Complete():
			dst = d.end(dst, c, t)
		}
	}
	return dst
}

// end completes a call.
func (d *Decoder) end(dst []event.Event, c *decodedChoice, t *decodedCall) []event.Event {
	t.ended = true
	c.open--
	c.complete++
	e := d.of(c, t, event.ToolEnd, nil)
	e.Flags |= event.Complete
	return append(dst, e)
}

// abort aborts a call.
func (d *Decoder) abort(dst []event.Event, c *decodedChoice, t *decodedCall, why event.Why) []event.Event {
	t.ended = true
	c.open--
	if !t.started {
		dst = d.flush(dst, c)
		t.ordinal, c.ordinals = c.ordinals, c.ordinals+1
		t.part, c.parts = c.parts, c.parts+1
		c.kind, c.part = event.ToolAbort, t.part
	}
	d.release(t)
	var name []byte
	if len(t.name) > 0 {
		name = t.name
	}
	e := d.of(c, t, event.ToolAbort, name)
	e.Why = why
	return append(dst, e)
}

// endCalls ends the open calls of a choice that finishes.
func (d *Decoder) endCalls(dst []event.Event, c *decodedChoice, why event.Why) []event.Event {
	if c.open == 0 {
		return dst
	}
	cut := why == event.Length || why == event.ContextFull || why == event.ContentFilter
	for i := range c.calls {
		t := &c.calls[i]
		if t.ended {
			continue
		}
		if !t.started && len(t.name) > 0 {
			dst = d.start(dst, c, t)
		}
		if t.started {
			dst = d.args(dst, c, t, t.half.Flush())
		}
		last := c.kind == event.ToolStart && c.part == t.part // only the last output can have been cut off
		switch {
		case t.started && !t.custom && t.args.Complete() && t.args.Object(), t.started && t.custom && !(cut && last), t.started && t.args.Empty() && !cut:
			dst = d.end(dst, c, t)
		case cut:
			dst = d.abort(dst, c, t, event.Truncated)
		case !t.started:
			dst = d.abort(dst, c, t, event.BadName)
		default:
			dst = d.abort(dst, c, t, event.BadArguments)
		}
	}
	return dst
}

// abandon aborts all open calls of a stream that ends early.
func (d *Decoder) abandon(dst []event.Event) []event.Event {
	for i := range d.choices {
		c := &d.choices[i]
		dst = d.flush(dst, c)
		for k := range c.calls {
			if t := &c.calls[k]; !t.ended {
				dst = d.abort(dst, c, t, event.Truncated)
			}
		}
	}
	return dst
}
