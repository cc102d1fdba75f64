// SPDX-License-Identifier: Apache-2.0

package responsesanswer

import (
	"slices"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seal"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

const (
	maxHeld  = 1 << 20 // bytes of arguments held until the names of their calls arrive
	keepHeld = 4 << 10 // bytes of memory that a call keeps for them
)

// inCall is the state of a call. It starts when its name is known.
type inCall struct {
	custom  bool
	started bool
	ended   bool
	final   bool // the event that repeats its arguments was read
	early   bool // held is from response.output_item.added
	over    bool // held exceeded maxHeld and was discarded
	part    int32
	ordinal int32

	name []byte // the server's name; after the start, the name in ToolStart
	held []byte // arguments held until the start
	text seal.Seal
	args streamdec.ArgState
	half streamdec.Halves
}

// addCall opens a call, reusing the memory of an earlier one.
func (d *Decoder) addCall(custom bool) int32 {
	n := len(d.calls)
	d.calls = slices.Grow(d.calls, 1)[:n+1]
	c := &d.calls[n]
	*c = inCall{custom: custom, name: c.name[:0], held: c.held[:0]}
	return int32(n)
}

func (c *inCall) flags() event.Flags {
	if c.custom {
		return event.Custom
	}
	return 0
}

// argsOf returns the arguments in v: a string or, from some servers, the JSON value itself.
func (d *Decoder) argsOf(v jsonscan.Value) []byte {
	if v.Kind() == jsonscan.Object {
		return v.Raw()
	}
	return d.in.Str(v)
}

// argsMember returns the field of an item or done event that holds the arguments.
func (c *inCall) argsMember(v jsonscan.Value) jsonscan.Value {
	if c.custom {
		return v.Get("input")
	}
	return v.Get("arguments")
}

// sameArgs reports whether the arguments of an item equal the arguments of c. Some servers give a call a new call_id in
// the last response.
func (d *Decoder) sameArgs(c *inCall, item jsonscan.Value) bool {
	var s seal.Seal
	s.Add(d.argsOf(c.argsMember(item)))
	return s.Equal(&c.text)
}

// callAt returns the call to which an event about arguments belongs, or nil if there are too many.
func (d *Decoder) callAt(root jsonscan.Value, kind inKind, final bool) *inCall {
	p := d.eventKey(root)
	p.final = final
	i := d.find(kind, p)
	if i < 0 {
		if i = d.add(kind, p, root); i < 0 {
			return nil
		}
		d.begin(jsonscan.Value{})
	}
	return &d.calls[d.items[i].call]
}

// callAdded decodes the call of a response.output_item.added.
func (d *Decoder) callAdded(c *inCall, item jsonscan.Value) {
	if c.ended {
		return
	}
	d.startCall(c, item)
	if args := d.argsOf(c.argsMember(item)); len(args) > 0 && c.text.Len() == 0 && len(c.held) == 0 {
		c.early = d.hold(c, args)
	}
}

// startCall appends the ToolStart if the item v has the name.
func (d *Decoder) startCall(c *inCall, v jsonscan.Value) {
	if c.started {
		return
	}
	if name := d.in.Str(v.Get("name")); len(name) > 0 {
		c.name = append(c.name[:0], name...)
	}
	if len(c.name) == 0 {
		return
	}
	if d.opt.ToolName != nil {
		c.name = append(c.name[:0], d.opt.ToolName(string(d.in.Str(v.Get("namespace"))), string(c.name))...)
	}
	d.openCall(c)
	d.emit(event.Event{
		Kind: event.ToolStart, Flags: c.flags(), Part: c.part, Call: c.ordinal, Data: c.name, ID: d.in.Str(v.Get("call_id")),
	})
	if len(c.held) > 0 && !c.early {
		d.args(c, c.held)
		d.unhold(c)
	}
}

// hold appends text to the held arguments, if maxHeld permits.
func (d *Decoder) hold(c *inCall, text []byte) bool {
	if d.waiting+len(text) > maxHeld {
		return false
	}
	d.waiting += len(text)
	c.held = append(c.held, text...)
	return true
}

// unhold discards the held arguments.
func (d *Decoder) unhold(c *inCall) {
	d.waiting -= len(c.held)
	if c.held, c.early = c.held[:0], false; cap(c.held) > keepHeld {
		c.held = nil
	}
}

// openCall assigns an ordinal to a call.
func (d *Decoder) openCall(c *inCall) {
	c.started, c.part, c.ordinal = true, d.in.NextPart(), d.ordinals
	d.ordinals++
}

func (d *Decoder) argsDelta(root jsonscan.Value, kind inKind) {
	c := d.callAt(root, kind, false)
	if c == nil || c.ended || c.final {
		return
	}
	text := d.in.Delta(&c.half, root.Get("delta"))
	if len(text) == 0 {
		return
	}
	if c.early { // held is a prefix of the arguments that follow
		d.unhold(c)
	}
	switch {
	case c.over: // the done item repeats them
	case c.started:
		d.args(c, text)
	case !d.hold(c, text):
		d.unhold(c)
		c.over = true
	}
}

// args appends arguments.
func (d *Decoder) args(c *inCall, text []byte) {
	if len(text) == 0 {
		return
	}
	if !c.custom {
		c.args.Feed(text)
	}
	c.text.Add(text)
	d.emit(event.Event{Kind: event.ToolArgs, Flags: c.flags(), Part: c.part, Call: c.ordinal, Data: text})
}

// allArgs handles the complete arguments.
func (d *Decoder) allArgs(c *inCall, text []byte) {
	switch {
	case len(text) == 0:
	case !c.started:
		d.unhold(c)
		c.over = !d.hold(c, text)
	default:
		if more := rest(c.text, text); len(more) > 0 {
			c.half.Drop()
			d.args(c, more)
		}
		d.unhold(c)
		c.over = false
	}
}

// argsDone decodes the event that repeats the arguments of a call. The call is complete only when its item is done,
// because only the item specifies whether it was cut off.
func (d *Decoder) argsDone(root jsonscan.Value, kind inKind) {
	c := d.callAt(root, kind, true)
	if c == nil || c.ended {
		return
	}
	c.final = true
	d.allArgs(c, d.argsOf(c.argsMember(root)))
	if name := d.in.Str(root.Get("name")); !c.started && len(name) > 0 {
		c.name = append(c.name[:0], name...) // in case the item, which has the call_id, never arrives
	}
}

// callDone decodes a done call.
func (d *Decoder) callDone(c *inCall, item jsonscan.Value) {
	if c.ended {
		return
	}
	d.startCall(c, item)
	d.allArgs(c, d.argsOf(c.argsMember(item)))
	status := d.in.Str(item.Get("status"))
	d.endCall(c, string(status) == "incomplete" || string(status) == "failed" || string(status) == "cancelled")
}

// endCall appends the end of a call. cut specifies that the server did not complete it.
func (d *Decoder) endCall(c *inCall, cut bool) {
	if c.ended {
		return
	}
	c.ended = true
	if !c.started && len(c.name) > 0 {
		d.startCall(c, jsonscan.Value{})
	}
	e := event.Event{Kind: event.ToolAbort, Flags: c.flags(), Call: c.ordinal, Part: c.part, Data: c.name}
	if !c.started {
		d.openCall(c)
		e.Call, e.Part, e.Data = c.ordinal, c.part, nil
		if e.Why = event.BadName; cut {
			e.Why = event.Truncated
		}
		d.unhold(c)
		d.emit(e)
		return
	}
	if c.early && c.text.Len() == 0 {
		d.args(c, c.held)
		d.unhold(c)
	}
	d.args(c, c.half.Flush())
	switch {
	case cut:
		e.Why = event.Truncated
	case c.over:
		e.Why = event.LimitExceeded
	case c.custom || c.args.Empty():
	case c.args.Broken() || !c.args.Object():
		e.Why = event.BadArguments
	case !c.args.Complete():
		e.Why = event.Truncated
	}
	if e.Why == event.None {
		d.complete++
		e.Kind, e.Flags, e.Data = event.ToolEnd, e.Flags|event.Complete, nil
	}
	d.emit(e)
}

// closeCalls ends the calls whose items were not done.
func (d *Decoder) closeCalls(cut bool) {
	for i := range d.calls {
		d.endCall(&d.calls[i], cut)
	}
}
