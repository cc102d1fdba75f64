// SPDX-License-Identifier: Apache-2.0

package responsesanswer

import (
	"strconv"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// outCall is the state of a call after its ToolStart. Several may be open at once.
type outCall struct {
	call    int32 // ordinal of the producer
	skip    bool  // left out
	ended   bool
	wired   bool // its output_item.added was sent
	item    outItem
	head    []byte // of a delta, from after the sequence number
	carry   jsonw.Carry
	balance jsonw.Balance
	unwrap  *jsonw.Unwrap // nil unless a function call becomes a custom one
}

// left reports whether a call is omitted from the response. If the call of a server-side tool were sent as a function
// call, the client would execute it.
func (o *Options) left(f event.Flags) bool {
	return f.Has(event.Server) || f.Has(event.InReasoning) && !o.DispatchInReasoning
}

// callItem returns the item of a call, without index and id.
func (o *Options) callItem(f event.Flags, ordinal int32, name, callID string) outItem {
	it := outItem{form: formFunction, ordinal: ordinal, name: name, callID: callID}
	if f.Has(event.Custom) || o.wrapped(f, name) {
		it.form = formCustom
	}
	if o.Namespace != nil {
		it.namespace, it.name = o.Namespace(name)
	}
	return it
}

// wrapped reports whether the arguments of a call contain the text of a custom tool.
func (o *Options) wrapped(f event.Flags, name string) bool {
	return !f.Has(event.Custom) && o.Custom != nil && o.Custom(name)
}

func (s *Encoder) toolStart(dst []byte, e *event.Event) []byte {
	dst = s.turn(dst, 0, 0)
	id, n := s.ids.Assign("call_", s.suffix, 0, string(e.ID))
	s.calls = append(s.calls, outCall{
		call: e.Call, skip: s.opt.left(e.Flags), item: s.opt.callItem(e.Flags, n, string(e.Data), id),
	})
	c := &s.calls[len(s.calls)-1]
	if c.skip {
		s.dropped++
		return dst
	}
	if s.opt.wrapped(e.Flags, string(e.Data)) {
		c.unwrap = new(jsonw.Unwrap)
	}
	if s.opt.WholeCalls {
		return dst
	}
	return s.openCall(dst, c)
}

func (s *Encoder) openCall(dst []byte, c *outCall) []byte {
	c.wired = true
	c.item.index = s.nextIndex()
	c.item.id = s.count.appendID(nil, &c.item, s.suffix)
	c.head = appendItemKey(nil, &c.item)
	return s.itemEvent(dst, "response.output_item.added", &c.item, "in_progress")
}

// call finds the open call with the producer's ordinal.
func (s *Encoder) call(n int32) *outCall {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if c := &s.calls[i]; c.call == n && !c.ended {
			return c
		}
	}
	return nil
}

func (s *Encoder) toolArgs(dst []byte, e *event.Event) []byte {
	c := s.call(e.Call)
	if c == nil || c.skip {
		s.dropped++
		return dst
	}
	text := c.carry.Next(e.Data)
	dst = s.args(dst, c, text)
	if len(text) > 0 && !c.carry.Holds() && c.unwrap == nil && !s.opt.WholeCalls {
		for i := range s.calls {
			if &s.calls[i] == c {
				s.heat(e, &c.item, i, c.head, "\"}\n\n")
			}
		}
	}
	return dst
}

// args adds arguments; text is valid UTF-8.
func (s *Encoder) args(dst []byte, c *outCall, text []byte) []byte {
	if c.unwrap != nil {
		s.scratch = c.unwrap.Next(s.scratch[:0], text)
		text = s.scratch
	}
	return s.input(dst, c, text)
}

// input adds arguments in the form in which they are sent.
func (s *Encoder) input(dst []byte, c *outCall, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	c.item.text = append(c.item.text, text...)
	c.balance.Feed(text)
	if s.opt.WholeCalls {
		return dst
	}
	return s.argsDelta(dst, c, text)
}

func (s *Encoder) argsDelta(dst []byte, c *outCall, text []byte) []byte {
	dst = s.begin(dst, partNames[c.item.form].delta)
	dst = append(dst, c.head...)
	dst = append(dst, `,"delta":"`...)
	dst = jsonw.AppendText(dst, text)
	return append(dst, "\"}\n\n"...)
}

// toolEnd ends the call of e. A call that ends before its start was sent is never sent.
func (s *Encoder) toolEnd(dst []byte, e *event.Event, complete bool) []byte {
	if c := s.call(e.Call); c != nil {
		return s.endCall(dst, c, complete)
	}
	s.dropped++
	if e.Kind == event.ToolAbort {
		s.ids.Assign("call_", s.suffix, 0, "")
		return s.turn(dst, 0, 0)
	}
	return dst
}

func (s *Encoder) endCall(dst []byte, c *outCall, complete bool) []byte {
	c.ended = true
	if c.skip {
		return dst
	}
	dst = s.args(dst, c, c.carry.Flush())
	switch {
	case c.unwrap != nil && complete:
		dst = s.input(dst, c, c.unwrap.Close(nil))
	case complete && c.item.form == formFunction && c.balance.Blank():
		dst = s.input(dst, c, []byte("{}")) // a call without arguments: clients parse JSON
	}
	status := "completed"
	if !complete {
		if s.opt.WholeCalls {
			return dst
		}
		// In this API, a call that was cut off has status incomplete. Codex executes the call in output_item.done
		// regardless of its status, so arguments that happen to be valid JSON are made invalid.
		if status = "incomplete"; c.item.form == formFunction {
			dst = s.input(dst, c, []byte(c.balance.Spoiler()))
		}
	}
	if !c.wired {
		dst = s.openCall(dst, c)
		if len(c.item.text) > 0 {
			dst = s.argsDelta(dst, c, c.item.text)
		}
	}
	p := &partNames[c.item.form]
	dst = s.begin(dst, p.done)
	dst = append(dst, c.head...)
	if c.item.form == formFunction {
		dst = append(dst, `,"name":`...)
		dst = jsonw.AppendString(dst, c.item.name)
	}
	dst = append(dst, p.text...)
	dst = jsonw.AppendText(dst, c.item.text)
	dst = append(dst, "\"}\n\n"...)
	dst = s.itemDone(dst, &c.item, status)
	c.item.text, c.head = nil, nil
	return dst
}

// appendUsage appends a usage object. Cached tokens are part of the input and limited to it.
func appendUsage(dst []byte, u *event.Tokens) []byte {
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, u.Prompt, 10)
	dst = append(dst, `,"input_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, min(u.Cached, u.Prompt), 10)
	dst = append(dst, `,"cache_write_tokens":`...)
	dst = strconv.AppendInt(dst, u.CacheWrite, 10)
	dst = append(dst, `},"output_tokens":`...)
	dst = strconv.AppendInt(dst, u.Output, 10)
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, min(u.Reasoning, u.Output), 10)
	dst = append(dst, `},"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.Prompt+u.Output, 10)
	return append(dst, '}')
}
