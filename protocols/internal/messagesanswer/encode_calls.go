// SPDX-License-Identifier: Apache-2.0

package messagesanswer

import (
	"slices"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/hotdelta"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// outCall is the open call. With WholeCalls its block opens at its end.
type outCall struct {
	open    bool
	ordinal int32
	custom  bool
	server  bool
	id      string
	name    string
	args    []byte // JSON text held back for WholeCalls
	carry   jsonw.Carry
	pairs   jsonw.Pairs
	balance jsonw.Balance
}

// owns reports whether e continues or ends the call.
func (c *outCall) owns(e *event.Event) bool {
	switch e.Kind {
	case event.ToolArgs, event.ToolEnd, event.ToolAbort:
		return e.Call == c.ordinal
	}
	return false
}

// left reports whether a call is left out of the response.
func (o *Options) left(f event.Flags) bool {
	return f.Has(event.InReasoning) && !o.DispatchInReasoning
}

func (s *Encoder) toolStart(dst []byte, e *event.Event) []byte {
	dst = s.turn(dst, 0, 0)
	id := assignCallID(&s.ids, s.suffix, e.Flags, string(e.ID))
	if s.opt.left(e.Flags) {
		s.skipped = append(s.skipped, e.Call)
		s.dropped++
		return dst
	}
	s.call = outCall{
		open: true, ordinal: e.Call, custom: e.Flags.Has(event.Custom), server: e.Flags.Has(event.Server),
		id: id, name: string(e.Data), args: s.call.args[:0],
	}
	if !s.opt.WholeCalls {
		dst = s.openCall(dst)
	}
	if s.call.custom {
		return s.input(dst, []byte(`{"input":"`))
	}
	return dst
}

// assignCallID returns the ID of a call. Anthropic allows only letters, digits, '_' and '-'; other IDs are escaped, and
// [callid.Unescape] restores them.
func assignCallID(ids *callid.Set, suffix string, f event.Flags, given string) string {
	prefix := "toolu_"
	if f.Has(event.Server) {
		prefix = "srvtoolu_"
	}
	id, _ := ids.Assign(prefix, suffix, 0, given)
	return callid.Escape(id)
}

// openCall appends the start of the call's block.
func (s *Encoder) openCall(dst []byte) []byte {
	dst = appendBlockStart(dst, s.index)
	dst = appendToolUseHead(dst, &s.call)
	s.head = appendDeltaHead(s.head[:0], s.index, `"input_json_delta","partial_json":"`)
	return append(dst, "{}}}\n\n"...)
}

// appendToolUseHead appends a tool_use block up to the value of its input.
func appendToolUseHead(dst []byte, c *outCall) []byte {
	if c.server {
		dst = append(dst, `{"type":"server_tool_use","id":`...)
	} else {
		dst = append(dst, `{"type":"tool_use","id":`...)
	}
	dst = jsonw.AppendString(dst, c.id)
	dst = append(dst, `,"name":`...)
	dst = jsonw.AppendString(dst, c.name)
	return append(dst, `,"input":`...)
}

func (s *Encoder) toolArgs(dst []byte, e *event.Event) []byte {
	if !s.call.open {
		s.dropped++
		return dst
	}
	text := s.call.carry.Next(e.Data)
	dst = s.args(dst, text)
	if len(text) > 0 && !s.call.carry.Holds() && !s.call.pairs.Holds() && !s.call.custom && !s.opt.WholeCalls {
		s.hot = hotdelta.Of(e)
	}
	return dst
}

// args encodes arguments; text is valid UTF-8.
func (s *Encoder) args(dst, text []byte) []byte {
	if s.call.custom {
		s.scratch = jsonw.AppendText(s.scratch[:0], text)
		return s.input(dst, s.scratch)
	}
	return s.input(dst, s.call.pairs.Next(text))
}

// input appends a delta of JSON text.
func (s *Encoder) input(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	s.call.balance.Feed(text)
	if s.opt.WholeCalls {
		s.call.args = append(s.call.args, text...)
		return dst
	}
	dst = append(dst, s.head...)
	dst = jsonw.AppendText(dst, text)
	return append(dst, deltaEnd...)
}

// toolEnd ends the call of e. A call that ends before its start is never sent.
func (s *Encoder) toolEnd(dst []byte, e *event.Event, complete bool) []byte {
	if s.call.open {
		return s.endCall(dst, complete)
	}
	s.dropped++
	if e.Kind == event.ToolAbort && !slices.Contains(s.skipped, e.Call) {
		assignCallID(&s.ids, s.suffix, e.Flags, "")
		return s.turn(dst, 0, 0)
	}
	return dst
}

// endCall ends the open call and encodes the buffered events.
func (s *Encoder) endCall(dst []byte, complete bool) []byte {
	c := &s.call
	dst = s.args(dst, c.carry.Flush())
	dst = s.input(dst, c.pairs.Flush())
	switch {
	case complete:
		switch {
		case c.custom:
			dst = s.input(dst, []byte(`"}`))
		case c.balance.Blank():
			dst = s.input(dst, []byte("{}")) // clients require JSON
		}
		if s.opt.WholeCalls {
			dst = s.openCall(dst)
			if len(c.args) > 0 {
				dst = append(dst, s.head...)
				dst = jsonw.AppendText(dst, c.args)
				dst = append(dst, "\"}}\n\n"...)
			}
		}
		dst = s.stopBlock(dst)
		if !c.server {
			s.calls++
		}
	case !s.opt.WholeCalls:
		// The API cannot withdraw a call, so its block is closed. Clients that ignore the stop_reason would execute it
		// if its input is valid JSON or empty, so it is made invalid.
		dst = s.input(dst, []byte(c.balance.Spoiler()))
		dst = s.stopBlock(dst)
	}
	c.open = false
	waiting := s.waiting
	s.waiting = nil
	for i := range waiting {
		dst = s.add(dst, &waiting[i], true)
	}
	return dst
}
