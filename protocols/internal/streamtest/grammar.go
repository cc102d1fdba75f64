// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"fmt"

	"github.com/weft-go/weft/protocols/event"
)

// grammarChoice is CheckGrammar's state of a choice.
type grammarChoice struct {
	kind     event.Kind
	part     int32
	parts    int32
	calls    int32
	open     map[int32]int32 // call → part
	finished bool
}

// CheckGrammar returns an error if a sequence of events of any number of choices breaks the grammar in package event.
// Parts and calls must be numbered densely. If done is set, the sequence is a complete response, in which every choice
// must have ended.
func CheckGrammar(events []event.Event, done bool) error {
	choices := map[int32]*grammarChoice{}
	ended := false
	for i := range events {
		e := &events[i]
		fault := func(format string, args ...any) error {
			return fmt.Errorf("event %d, %v of choice %d part %d: %s", i, e, e.Choice, e.Part, fmt.Sprintf(format, args...))
		}
		if ended {
			return fault("after an error")
		}
		switch e.Kind {
		case event.Start:
			if i > 0 {
				return fault("not the first")
			}
			continue
		case event.Usage:
			if e.Usage == nil {
				return fault("without counts")
			}
			continue
		case event.Error:
			for _, c := range choices {
				if len(c.open) > 0 {
					return fault("with open calls")
				}
			}
			if e.Why < event.Invalid || len(e.Data) == 0 {
				return fault("without class or message")
			}
			ended = true
			continue
		}
		c := choices[e.Choice]
		if c == nil {
			c = &grammarChoice{part: -1, open: map[int32]int32{}}
			choices[e.Choice] = c
		}
		if c.finished {
			return fault("after the finish")
		}
		opens := func() error {
			if e.Part != c.parts {
				return fault("opens part %d, not %d", e.Part, c.parts)
			}
			c.part, c.parts = e.Part, c.parts+1
			return nil
		}
		call := false
		kind := e.Kind
		switch e.Kind {
		case event.Signature:
			kind = event.Reasoning
			fallthrough
		case event.Reasoning, event.Text, event.Refusal:
			if e.Part != c.part || c.kind != kind {
				if err := opens(); err != nil {
					return err
				}
			}
			c.kind = kind
		case event.Annotation:
			if c.kind != event.Text || e.Part != c.part {
				return fault("outside text")
			}
		case event.Opaque, event.ToolResult:
			if err := opens(); err != nil {
				return err
			}
			c.kind = kind
		case event.ToolStart:
			call = true
			if err := opens(); err != nil {
				return err
			}
			if e.Call != c.calls || len(e.Data) == 0 {
				return fault("call %d, not %d, or without a name", e.Call, c.calls)
			}
			c.kind, c.open[e.Call] = kind, e.Part
			c.calls++
		case event.ToolArgs, event.ToolEnd, event.ToolAbort:
			call = true
			part, ok := c.open[e.Call]
			switch {
			case ok && part != e.Part:
				return fault("the part of the call is %d", part)
			case !ok && e.Kind == event.ToolAbort && e.Call == c.calls:
				if err := opens(); err != nil {
					return err
				}
				c.kind = kind
				c.calls++
			case !ok:
				return fault("the call is not open")
			case e.Kind == event.ToolArgs:
				c.kind, c.part = event.ToolStart, e.Part
			default:
				delete(c.open, e.Call)
			}
			if e.Flags.Has(event.Complete) != (e.Kind == event.ToolEnd) {
				return fault("complete or not")
			}
		case event.Logprobs:
		case event.Finish:
			if len(c.open) > 0 {
				return fault("with open calls")
			}
			if e.Why < event.Stop || e.Why >= event.Truncated {
				return fault("no reason to finish")
			}
			c.finished = true
		default:
			return fault("unknown kind")
		}
		if !call && e.Call != -1 {
			return fault("call %d outside a call", e.Call)
		}
	}
	if done && !ended {
		for n, c := range choices {
			if !c.finished {
				return fmt.Errorf("choice %d has no end", n)
			}
		}
		if len(choices) == 0 {
			return fmt.Errorf("no choice and no error")
		}
	}
	return nil
}
