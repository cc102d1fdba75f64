// SPDX-License-Identifier: Apache-2.0

package chatanswer

import (
	"slices"
	"strconv"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// left reports whether a call is left out of the response.
func (o *Options) left(f event.Flags) bool {
	return f.Has(event.Server) || f.Has(event.InReasoning) && !o.DispatchInReasoning
}

// wrapped reports whether the arguments of a call contain the text of a custom tool.
func (o *Options) wrapped(f event.Flags, name string) bool {
	return !f.Has(event.Custom) && o.Custom != nil && o.Custom(name)
}

func (s *Encoder) toolStart(dst []byte, c *choiceState, e *event.Event) []byte {
	dst = s.turn(dst, c, event.ToolStart, e.Part)
	id, _ := c.ids.Assign("call_", s.suffix, e.Choice, string(e.ID))
	c.calls = append(c.calls, callState{
		call: e.Call, index: -1, skip: s.opt.left(e.Flags) || s.opt.Functions && c.sent > 0, custom: e.Flags.Has(event.Custom),
		legacy: s.opt.Functions, id: id, name: string(e.Data),
	})
	t := &c.calls[len(c.calls)-1]
	if t.skip {
		s.dropped++
		return dst
	}
	if s.opt.wrapped(e.Flags, t.name) {
		t.custom, t.unwrap = true, new(jsonw.Unwrap)
	}
	if s.opt.WholeCalls {
		return dst
	}
	dst = s.openCall(dst, c, t)
	return s.close(append(dst, t.tail()...))
}

// openCall begins the first chunk of t, up to the opening quote of the arguments.
func (s *Encoder) openCall(dst []byte, c *choiceState, t *callState) []byte {
	t.index = c.sent
	c.sent++
	if t.legacy {
		return appendFunctionHead(s.open(dst, c), t.name)
	}
	dst = append(s.open(dst, c), `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(t.index), 10)
	dst = append(dst, ',')
	return appendCallHead(dst, t.id, t.name, t.custom)
}

// appendFunctionHead appends a function_call up to the opening quote of its arguments.
func appendFunctionHead(dst []byte, name string) []byte {
	dst = append(dst, `"function_call":{"name":`...)
	dst = jsonw.AppendString(dst, name)
	return append(dst, `,"arguments":"`...)
}

// appendCallHead appends the fields of a call up to the opening quote of its arguments.
func appendCallHead(dst []byte, id, name string, custom bool) []byte {
	dst = append(dst, `"id":`...)
	dst = jsonw.AppendString(dst, id)
	if custom {
		dst = append(dst, `,"type":"custom","custom":{"name":`...)
		dst = jsonw.AppendString(dst, name)
		return append(dst, `,"input":"`...)
	}
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = jsonw.AppendString(dst, name)
	return append(dst, `,"arguments":"`...)
}

func (s *Encoder) toolArgs(dst []byte, c *choiceState, e *event.Event) []byte {
	t := c.call(e.Call)
	if t == nil || t.skip {
		s.dropped++
		return dst
	}
	if s.opt.WholeCalls {
		return dst
	}
	dst = s.args(dst, c, t, t.carry.Next(e.Data))
	if t.unwrap == nil {
		for i := range c.calls {
			if &c.calls[i] == t {
				s.heat(e, &t.carry, i, t.argsHead, t.tail())
			}
		}
	}
	return dst
}

// argsHead appends the bytes before a delta of arguments.
func (t *callState) argsHead(dst []byte) []byte {
	if t.legacy {
		return append(dst, `"function_call":{"arguments":"`...)
	}
	dst = append(dst, `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(t.index), 10)
	if t.custom {
		return append(dst, `,"custom":{"input":"`...)
	}
	return append(dst, `,"function":{"arguments":"`...)
}

// tail returns the bytes after a delta of arguments.
func (t *callState) tail() string {
	if t.legacy {
		return `"}`
	}
	return `"}}]`
}

// call finds the open call with the producer's ordinal.
func (c *choiceState) call(n int32) *callState {
	for i := len(c.calls) - 1; i >= 0; i-- {
		if t := &c.calls[i]; t.call == n && !t.ended {
			return t
		}
	}
	return nil
}

// args encodes arguments; text is valid UTF-8.
func (s *Encoder) args(dst []byte, c *choiceState, t *callState, text []byte) []byte {
	if t.unwrap != nil {
		s.scratch = t.unwrap.Next(s.scratch[:0], text)
		text = s.scratch
	}
	return s.input(dst, c, t, text)
}

// input appends a delta of arguments, without unwrapping them.
func (s *Encoder) input(dst []byte, c *choiceState, t *callState, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	if !t.custom {
		t.balance.Feed(text)
	}
	dst = t.argsHead(s.open(dst, c))
	dst = jsonw.AppendText(dst, text)
	return s.close(append(dst, t.tail()...))
}

// toolEnd ends the call of e. A call that ends before its start is never sent.
func (s *Encoder) toolEnd(dst []byte, c *choiceState, e *event.Event, complete bool) []byte {
	if t := c.call(e.Call); t != nil {
		return s.end(dst, c, t, complete)
	}
	s.dropped++
	if e.Kind == event.ToolAbort {
		c.ids.Assign("call_", s.suffix, e.Choice, "")
		return s.turn(dst, c, e.Kind, e.Part)
	}
	return dst
}

func (s *Encoder) end(dst []byte, c *choiceState, t *callState, complete bool) []byte {
	t.ended = true
	if t.skip {
		return dst
	}
	if s.opt.WholeCalls {
		return s.endWhole(dst, c, t, complete)
	}
	dst = s.args(dst, c, t, t.carry.Flush())
	switch {
	case !complete && !t.custom:
		// The API cannot withdraw a call. Clients that ignore the finish_reason would execute it if its arguments are
		// valid JSON or empty, so they are made invalid.
		return s.input(dst, c, t, []byte(t.balance.Spoiler()))
	case !complete:
		return dst
	case t.unwrap != nil:
		dst = s.input(dst, c, t, t.unwrap.Close(nil))
	case !t.custom && t.balance.Blank():
		dst = s.input(dst, c, t, []byte("{}")) // clients require JSON
	}
	c.complete++
	return s.dispatch(dst, t)
}

// endWhole appends a call that was held back until its end.
func (s *Encoder) endWhole(dst []byte, c *choiceState, t *callState, complete bool) []byte {
	if !complete || !s.whole.Flags.Has(event.Complete) || t.legacy && c.sent > 0 {
		return dst
	}
	c.complete++
	dst = s.openCall(dst, c, t)
	dst = jsonw.AppendLoose(dst, sentArgs(s.whole.Arguments, t.unwrap != nil, t.custom))
	dst = s.close(append(dst, t.tail()...))
	return s.dispatch(dst, t)
}

// sentArgs returns the complete arguments to send, except that invalid UTF-8 is not replaced. custom specifies that the
// client expects free text, wrapped that raw is JSON that contains it.
func sentArgs(raw []byte, wrapped, custom bool) []byte {
	switch {
	case wrapped:
		var u jsonw.Unwrap
		return u.Close(u.Next(nil, jsonw.AppendValid(nil, raw)))
	case !custom && jsonw.IsBlank(raw):
		return append(slices.Clip(raw), "{}"...)
	}
	return raw
}

// cutArgs returns the arguments of an aborted call as a stream has them: not valid as JSON.
func cutArgs(raw []byte, wrapped, custom bool) []byte {
	switch {
	case wrapped:
		var u jsonw.Unwrap
		return u.Next(nil, jsonw.AppendValid(nil, raw))
	case custom:
		return raw
	}
	return jsonw.AppendSpoiled(nil, raw)
}
