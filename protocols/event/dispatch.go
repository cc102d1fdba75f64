// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"slices"
)

// Call is a tool call that has ended, as reported by a [Dispatcher]. Its memory belongs to the receiver.
type Call struct {
	Choice  int32 // choice index, from 0
	Ordinal int32 // index among the calls of the choice, from 0; Call of its events
	Flags   Flags // flags of its ToolStart and of its end: Complete, Custom, Recovered, Repaired, InReasoning
	Why     Why   // why it must not run, or None

	ID   string // from the producer; "" if absent
	Name string
	// Arguments is the exact text that the model generated: JSON, or free text with the flag Custom. Blank JSON
	// arguments mean {}.
	Arguments []byte
}

// run is a run of reasoning of one part of a choice. why is LimitExceeded if it exceeded the limit; its text is then discarded.
type run struct {
	choice, part int32
	text         []byte
	why          Why
}

// A Dispatcher reports each tool call as soon as it is complete, while the model is still generating, and each run of
// reasoning. Set the callbacks and add the events of a response:
//
//	                                        d.OnCall = func(c event.Call) { go run(c) }
//	ToolStart call=0 "read"
//	ToolArgs  call=0 `{"path":`
//	ToolArgs  call=0 `"a.go"}`
//	ToolEnd   call=0 complete               run read {"path":"a.go"}
//	Text             "And then I…"
//
// OnCall receives a call once, at its ToolEnd, and only if all of these hold:
//
//   - it is complete: neither aborted nor cut off by the end of the stream or an error;
//   - its arguments are valid JSON or blank, or it has the flag Custom;
//   - the client should run it: it does not have the flag Server, nor the flag InReasoning unless the field InReasoning
//     is set.
//
// The receiver must check the arguments against the tool's schema. OnReject receives, once, each other call that the
// client would have had to run. Calls that the server runs, and calls in reasoning unless InReasoning is set, are not
// reported.
//
// The zero value is ready for use and reports nothing; set the fields before the first event. Calls of one choice may
// overlap and choices may interleave. A Dispatcher copies what it needs of an event and holds open calls and runs only,
// up to Limit. Events that no callback needs do not allocate. [Dispatcher.Add] and [Dispatcher.Finish] run the
// callbacks, in the order of the events; callbacks must not use the Dispatcher. A Dispatcher is not safe for concurrent
// use.
type Dispatcher struct {
	// OnCall receives each call that may run, at its ToolEnd.
	OnCall func(Call)
	// OnReject receives each call that must not run. Why is the cause of its ToolAbort, Truncated if the end of the
	// events or an error cut it off, BadArguments if it is complete but its arguments are not JSON, or LimitExceeded if
	// it exceeded the limit; its arguments are then empty. A harness may report the rejection to the model.
	OnReject func(Call)
	// OnReasoning receives each run of reasoning once, when the next block begins in its choice or the choice finishes.
	// A run that an error cuts off is not reported. Signatures, and the arguments of an open call, do not end a run. The
	// text is the exact text of the model; its memory belongs to the receiver. why is None if other output followed, else the
	// cause of the Finish that ended the run: Length means that the reasoning was cut off. LimitExceeded means that it
	// exceeded the limit and its text was discarded.
	OnReasoning func(choice int32, text []byte, why Why)
	// InReasoning treats calls inside reasoning like all others.
	InReasoning bool
	// Limit is the maximum number of bytes held for all open calls and runs of reasoning together. 0 means 64 MiB; if
	// negative, there is no limit.
	Limit int

	choices []undone
	held    int
	failed  bool // an Error event has ended the response
}

// undone is the state of a choice: its open calls and its open run of reasoning.
type undone struct {
	calls    []openCall // in the order in which they opened
	run      run
	thinking bool // run is open
	finished bool
	seen     int32 // lowest ordinal that has not occurred; lower ones were reported or are open
}

type openCall struct {
	Call
	skip bool // not reported
	held int
}

// maxOpen is the maximum number of calls of one choice that are open at once. Parsers open one, servers a few.
const maxOpen = 1024

// Add adds events, in order, and runs the callbacks. Events of unknown kinds, and those after the end of their choice,
// are skipped.
func (d *Dispatcher) Add(events ...Event) {
	for i := range events {
		d.add(&events[i])
	}
}

// Finish ends the events. It reports open runs of reasoning and rejects open calls; after a Finish event for every
// choice there are none. The Dispatcher is then ready for the next response.
func (d *Dispatcher) Finish() {
	for i := range d.choices {
		d.end(&d.choices[i], None)
	}
	clear(d.choices)
	d.choices, d.held, d.failed = d.choices[:0], 0, false
}

func (d *Dispatcher) add(e *Event) {
	switch e.Kind {
	case Reasoning, Text, Refusal:
		if d.OnReasoning == nil {
			return
		}
	case ToolStart, ToolArgs, ToolEnd, ToolAbort, ToolResult, Opaque, Finish:
	case Error:
		d.fail()
		return
	default:
		return
	}
	if d.failed || e.Choice < 0 || e.Choice >= maxChoices {
		return
	}
	for int(e.Choice) >= len(d.choices) {
		d.choices = append(d.choices, undone{})
	}
	c := &d.choices[e.Choice]
	if c.finished {
		return
	}
	switch e.Kind {
	case Reasoning:
		d.reasoning(c, e)
	case ToolStart:
		d.endRun(c, None)
		d.open(c, e)
	case ToolArgs:
		if o := c.call(e.Call); o != nil && !o.skip && o.Why == None {
			if !d.hold(o, len(e.Data)) {
				return
			}
			o.Arguments = append(o.Arguments, e.Data...)
		}
	case ToolEnd:
		why := None
		if !e.Flags.Has(Complete) {
			why = Truncated
		}
		d.close(c, e, why)
	case ToolAbort:
		d.close(c, e, cmp.Or(e.Why, Truncated))
	case Finish:
		d.end(c, e.Why)
		c.finished = true
	default:
		d.endRun(c, None)
	}
}

// reasoning extends the run of a choice, or begins one.
func (d *Dispatcher) reasoning(c *undone, e *Event) {
	if c.thinking && c.run.part != e.Part {
		d.endRun(c, None)
	}
	if !c.thinking {
		c.thinking, c.run = true, run{choice: e.Choice, part: e.Part}
	}
	switch {
	case c.run.why != None:
	case d.fits(len(e.Data)):
		d.held += len(e.Data)
		c.run.text = append(c.run.text, e.Data...)
	default:
		d.held -= len(c.run.text)
		c.run.text, c.run.why = nil, LimitExceeded
	}
}

// endRun ends the open run of a choice, if any.
func (d *Dispatcher) endRun(c *undone, why Why) {
	if !c.thinking {
		return
	}
	r := c.run
	c.thinking, c.run = false, run{}
	d.held -= len(r.text)
	if r.why == None {
		r.why = why
	}
	if len(r.text) > 0 || r.why == LimitExceeded {
		d.OnReasoning(r.choice, r.text, r.why)
	}
}

// open opens a call. Its name and ID count toward the limit.
func (d *Dispatcher) open(c *undone, e *Event) {
	c.seen = max(c.seen, e.Call+1)
	o := openCall{Call: Call{Choice: e.Choice, Ordinal: e.Call, Flags: e.Flags}}
	full := len(c.calls) == maxOpen
	if o.skip = d.left(e.Flags); !o.skip {
		if d.hold(&o, len(e.ID)+len(e.Data)) {
			o.ID, o.Name = string(e.ID), string(e.Data)
		}
		if full {
			d.held -= o.held
			o.Why = LimitExceeded
			d.report(&o)
		}
	}
	if !full {
		c.calls = append(c.calls, o)
	}
}

// call finds an open call by its ordinal.
func (c *undone) call(n int32) *openCall {
	for i := len(c.calls) - 1; i >= 0; i-- {
		if o := &c.calls[i]; o.Ordinal == n {
			return o
		}
	}
	return nil
}

// close ends the call of e. why is None if it is complete.
func (d *Dispatcher) close(c *undone, e *Event, why Why) {
	open := c.call(e.Call)
	if open == nil {
		if e.Kind == ToolAbort && e.Call >= c.seen { // the call failed before its name was known
			d.endRun(c, None)
			c.seen = e.Call + 1
			d.report(&openCall{skip: d.left(e.Flags), Call: Call{
				Choice: e.Choice, Ordinal: e.Call, Flags: e.Flags &^ Complete, Why: why, Name: string(e.Data),
			}})
		}
		return
	}
	o := *open
	for i := range c.calls {
		if &c.calls[i] == open {
			c.calls = slices.Delete(c.calls, i, i+1)
			break
		}
	}
	d.held -= o.held
	if o.Flags |= e.Flags; e.Kind == ToolAbort {
		o.Flags &^= Complete // even if the producer set it
	}
	if o.Why == None {
		o.Why = why
	}
	o.skip = o.skip || d.left(e.Flags)
	if !o.skip && o.Why == None && !o.Flags.Has(Custom) && !isArguments(o.Arguments) {
		o.Why = BadArguments
	}
	d.report(&o)
}

// end ends a choice.
func (d *Dispatcher) end(c *undone, why Why) {
	d.endRun(c, why)
	calls := c.calls
	c.calls = nil
	for i := range calls {
		o := &calls[i]
		d.held -= o.held
		if o.Why == None {
			o.Why = Truncated
		}
		d.report(o)
	}
}

// fail ends the response after an Error event. Open runs are discarded; open calls are rejected.
func (d *Dispatcher) fail() {
	if d.failed {
		return
	}
	d.failed = true
	for i := range d.choices {
		c := &d.choices[i]
		c.thinking, c.run = false, run{}
		d.end(c, None)
	}
	d.held = 0
}

func (d *Dispatcher) report(o *openCall) {
	switch {
	case o.skip:
	case o.Why == None:
		if d.OnCall != nil {
			d.OnCall(o.Call)
		}
	case d.OnReject != nil:
		d.OnReject(o.Call)
	}
}

// left reports whether not reported of a call.
func (d *Dispatcher) left(f Flags) bool {
	return f.Has(Server) || f.Has(InReasoning) && !d.InReasoning || d.OnCall == nil && d.OnReject == nil
}

// fits reports whether n more bytes may be held.
func (d *Dispatcher) fits(n int) bool {
	limit := d.Limit
	if limit == 0 {
		limit = 64 << 20
	}
	return limit < 0 || n <= limit-d.held
}

// hold counts n more bytes of a call toward the limit. If they exceed it, hold discards the arguments so far and
// returns false.
func (d *Dispatcher) hold(o *openCall, n int) bool {
	if d.fits(n) {
		d.held += n
		o.held += n
		return true
	}
	d.held -= len(o.Arguments)
	o.held -= len(o.Arguments)
	o.Arguments, o.Why = nil, LimitExceeded
	return false
}

// isArguments reports whether text is valid as the arguments of a function: JSON or blank.
func isArguments(text []byte) bool {
	return len(bytes.Trim(text, " \t\r\n")) == 0 || json.Valid(text)
}

// Calls returns the calls that [Dispatcher.OnCall] would receive, each as soon as it is complete. The next event is
// read only after the loop body returns, so start long work in a goroutine. Errors of the producer are passed on. The
// argument is, for example, the result of parsers.Events or of wire.API.Events.
func Calls(events iter.Seq2[Event, error]) iter.Seq2[Call, error] {
	return func(yield func(Call, error) bool) {
		var call Call
		ready := false
		d := Dispatcher{OnCall: func(c Call) { call, ready = c, true }}
		for e, err := range events {
			if err != nil && !yield(Call{}, err) {
				return
			}
			if d.Add(e); ready { // an event completes at most one call
				if ready = false; !yield(call, nil) {
					return
				}
			}
		}
	}
}
