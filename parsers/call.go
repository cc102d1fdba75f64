// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"bytes"
	"slices"

	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/protocols/event"
)

// callState is the state of one call: opened by beginCall, announced by startCall, ended by endCall or abort. A failed
// call is still parsed to its end, so that no part of it is treated as text or as another call.
type callState struct {
	open    bool // begun and not ended
	started bool // the name is known
	failed  bool // ToolAbort was emitted; the rest is dropped
	muted   event.Why
	flags   event.Flags
	no      int32
	name    []byte
	id      []byte // as the model wrote it
	late    []byte // the same, after the arguments
	from    int64  // stream offset of the end of the last event of the call
	size    int64  // argument bytes emitted
	schema  *args.Schema
}

// source holds the source of the open call, or of an aborted one, while it may become text.
type source struct {
	rawOn, restore bool
	raw            []byte
	rawAt          int64 // stream offset after raw
}

// beginCall opens a call whose markup begins at window position from. It reports false when a limit is reached.
func (p *machine) beginCall(from int) bool {
	if p.calls >= p.lim.Calls {
		p.err = &LimitError{limit: "calls", max: int64(p.lim.Calls), Offset: p.off(from)}
		return false
	}
	if p.prefix != "" { // it is in the prompt, before everything
		p.block(event.Text)
		p.emit(event.Text, p.made([]byte(p.prefix)), from, from)
		p.prefix = ""
		p.endBlock()
	}
	p.call = callState{open: true, no: p.calls, name: p.call.name[:0], id: p.call.id[:0], late: p.call.late[:0], from: p.off(from)}
	if p.reasoning {
		p.call.flags = event.InReasoning
	}
	p.calls++
	if p.restore {
		p.restoreText(from)
	}
	if p.rules.failed != failedDrop {
		p.rawOn, p.raw, p.rawAt = true, p.raw[:0], p.off(from)
	}
	return true
}

// cancelCall discards a call without events.
func (p *machine) cancelCall() {
	p.call.open = false
	p.calls--
	p.rawOn = false
	p.lastCall = true
}

// startCall announces the open call: its name, in call.name, is final. The event ends at window position to.
func (p *machine) startCall(to int) {
	c := &p.call
	if c.started = true; c.failed {
		return
	}
	known := p.toolNamed(c.name) != nil
	if n := len(c.name) / 2; !known && len(c.name)%2 == 1 && c.name[n] == '.' && bytes.Equal(c.name[:n], c.name[n+1:]) {
		if known = p.toolNamed(c.name[:n]) != nil; known { // the tool's name twice: a namespace of its own
			c.name = c.name[:n]
		}
	}
	c.schema = p.schemaOf(c.name)
	switch {
	case p.opt.NoCalls, p.opt.Allow != nil && !slices.Contains(p.opt.Allow, string(c.name)),
		p.opt.SingleCall && p.complete > 0 && !c.flags.Has(event.InReasoning):
		c.muted = event.NotAllowed
	case !known && p.rules.rejectUnknownTools:
		c.muted = event.UnknownTool
	}
	p.endBlock()
	p.block(event.ToolStart)
	if c.muted == event.None {
		p.tool(event.ToolStart, event.None, p.made(c.name), to)
		if len(c.id) > 0 {
			p.evs[len(p.evs)-1].ID = p.made(c.id)
		}
	}
}

// schemaOf returns the compiled schema of the tool called name, or an empty one.
func (p *machine) schemaOf(name []byte) *args.Schema {
	t := p.toolNamed(name)
	if t == nil {
		return noSchema
	}
	if t.compiled == nil {
		t.compiled = args.Compile(t.Schema)
	}
	return t.compiled
}

var noSchema = args.Compile(nil)

// arguments emits data as the next piece of the arguments, made from the source up to window position to. At the limit
// the call fails.
func (p *machine) arguments(data []byte, to int) {
	c := &p.call
	if c.failed {
		return
	}
	room := p.lim.ArgumentBytes - c.size
	over := int64(len(data)) > room
	if over {
		data = data[:room]
	}
	c.size += int64(len(data))
	if c.muted == event.None && len(data) > 0 {
		p.tool(event.ToolArgs, event.None, data, to)
	}
	if over {
		p.fail(event.LimitExceeded, to)
	}
}

// verbatim emits win[start:to] as arguments and moves start.
func (p *machine) verbatim(to int) {
	if p.start < to {
		p.arguments(p.win[p.start:to:to], to)
		p.start = to
	}
}

// endCall completes the open call, whose markup ends at window position to.
func (p *machine) endCall(to int, flags event.Flags) {
	c := &p.call
	if c.failed || c.muted != event.None {
		p.abort(c.muted, to)
		return
	}
	c.flags |= flags
	if c.flags.Has(event.Recovered) && p.rules.rejectRecovered {
		p.abort(event.BadStructure, to)
		return
	}
	p.rawOn = false
	c.flags |= event.Complete
	p.tool(event.ToolEnd, event.None, nil, to)
	if len(c.late) > 0 {
		p.evs[len(p.evs)-1].ID = p.made(c.late)
	}
	if !c.flags.Has(event.InReasoning) {
		p.complete++
	}
	c.open = false
	p.endBlock()
	p.lastCall = true
}

// abort ends the open call without completing it.
func (p *machine) abort(why event.Why, to int) {
	if !p.call.open {
		return
	}
	p.fail(why, to)
	p.call.open = false
	p.endBlock()
	p.lastCall = true
}

// fail aborts the open call; the states parse the rest of its markup.
func (p *machine) fail(why event.Why, to int) {
	c := &p.call
	if c.failed {
		return
	}
	c.failed = true
	if !c.started {
		p.endBlock()
		p.block(event.ToolStart)
	}
	if c.muted != event.None {
		why = c.muted
	}
	p.cutOff = p.cutOff || why == event.Truncated
	c.flags &^= event.Complete
	var name []byte
	if len(c.name) > 0 {
		name = p.made(c.name)
	}
	p.tool(event.ToolAbort, why, name, to)
	p.restore = p.rawOn && p.rules.shows(why)
	p.rawOn = p.restore
}

// broken aborts the open call and skips to the next position at which reading can continue.
func (p *machine) broken(why event.Why) bool {
	p.abort(why, max(p.start, p.pos))
	p.start = max(p.start, p.pos)
	p.node = 0
	p.state = stSkip
	return true
}

// restoreText emits the source of a call that was aborted, up to window position to, as text, unless it is longer than
// what may be held.
func (p *machine) restoreText(to int) {
	p.restore = false
	if !p.rawOn {
		return
	}
	p.rawOn = false
	if p.complete > 0 && p.rules.dropAfterCall {
		return
	}
	rest := p.win[max(0, int(p.rawAt-p.base)):to]
	if size := len(p.raw) + len(rest); size == 0 || size > p.lim.HeldBytes {
		return
	}
	n := len(p.out)
	p.out = append(append(p.out, p.raw...), rest...)
	source := p.out[n:len(p.out):len(p.out)]
	p.block(event.Text)
	if p.prefix != "" {
		p.emit(event.Text, p.made([]byte(p.prefix)), to, to)
		p.prefix = ""
	}
	p.emit(event.Text, source, to, to)
	p.runOpen, p.echoable, p.last = true, false, '}'
}

// keepRaw keeps the first n bytes of the window, which is about to move, if they belong to a call whose source may
// become text.
func (p *machine) keepRaw(n int) {
	from := max(0, int(p.rawAt-p.base))
	if from >= n {
		return
	}
	if p.raw = append(p.raw, p.win[from:n]...); len(p.raw) > p.lim.HeldBytes {
		p.rawOn = false
	}
	p.rawAt = p.base + int64(n)
}

// tool emits one event of the open call, whose source ends at window position to.
func (p *machine) tool(k event.Kind, why event.Why, data []byte, to int) {
	c := &p.call
	off, end := c.from, max(p.off(to), c.from)
	c.from = end
	p.evs = append(p.evs, event.Event{
		Kind: k, Why: why, Flags: c.flags, Choice: p.opt.Choice, Part: p.part, Call: c.no,
		Tokens: p.countTokens(end), Off: off, End: end, Data: data,
	})
}

// toolNamed returns the declared tool called name, or nil.
func (p *machine) toolNamed(name []byte) *Tool {
	for i := range p.opt.Tools {
		if t := &p.opt.Tools[i]; t.Name == string(name) {
			return t
		}
	}
	return nil
}
