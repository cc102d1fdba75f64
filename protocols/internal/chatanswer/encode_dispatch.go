// SPDX-License-Identifier: Apache-2.0

package chatanswer

import (
	"strconv"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// This file holds Dynamo's dispatch events. Names, payloads and positions follow ai-dynamo/dynamo#7114,
// lib/llm/src/http/service/openai.rs, which supports them only on the chat endpoint. Intentional differences and
// requirements:
//
//   - Dynamo treats the first chunk with id, name and arguments as a whole call and sends the event before that chunk.
//     If the arguments are in pieces, the event has only the first piece (ai-dynamo/dynamo#13986, open in August 2026).
//     Here the event follows the last chunk of the call, at its ToolEnd, so the client already has the id and index.
//   - Dynamo sends the event regardless of the arguments; here event.Dispatcher validates them.
//   - As in Dynamo, an event for reasoning is between the last chunk of the run and the chunk that ends it. Two
//     adjacent blocks of reasoning have two events; in Dynamo they have one.
//   - The caller must know that the client supports the events. A client that ignores the types of events mistakes them
//     for chunks.

// listen creates the Dispatcher if the options require one. It also holds the arguments for WholeCalls, which needs all
// complete calls and sets no limit.
func (s *Encoder) listen() {
	runs := s.opt.ReasoningDispatch && s.opt.Reasoning != ReasoningNone
	if !runs && !s.opt.ToolDispatch && !s.opt.WholeCalls {
		return
	}
	s.early = &event.Dispatcher{InReasoning: s.opt.DispatchInReasoning}
	if runs {
		s.early.OnReasoning = s.onReasoning
	}
	if s.opt.ToolDispatch || s.opt.WholeCalls {
		s.early.OnCall = func(c event.Call) { s.whole = c }
	}
	if s.opt.WholeCalls {
		s.early.OnReject, s.early.Limit = s.early.OnCall, -1
	}
}

// observe adds an event to the Dispatcher before it is encoded.
func (s *Encoder) observe(e *event.Event) {
	if s.early != nil {
		s.whole = event.Call{}
		s.early.Add(*e)
	}
}

func (s *Encoder) onReasoning(choice int32, text []byte, why event.Why) {
	if why == event.LimitExceeded {
		return
	}
	s.runs = append(s.runs, "event: reasoning_dispatch\ndata: "+`{"index":`...)
	s.runs = strconv.AppendInt(s.runs, int64(choice), 10)
	s.runs = append(s.runs, `,"reasoning_content":"`...)
	s.runs = append(jsonw.AppendLoose(s.runs, text), `"}`+"\n\n"...)
}

// dispatch appends the event tool_call_dispatch of the call that has just ended, if it may run.
func (s *Encoder) dispatch(dst []byte, t *callState) []byte {
	if !s.opt.ToolDispatch || !s.whole.Flags.Has(event.Complete) || s.whole.Why != event.None {
		return dst
	}
	dst = append(dst, "event: tool_call_dispatch\ndata: "+`{"choice_index":`...)
	dst = strconv.AppendInt(dst, int64(s.whole.Choice), 10)
	dst = append(dst, `,"tool_call":{"index":`...)
	dst = strconv.AppendInt(dst, int64(t.index), 10)
	dst = append(dst, ',')
	dst = appendCallHead(dst, t.id, t.name, t.custom)
	dst = jsonw.AppendLoose(dst, sentArgs(s.whole.Arguments, t.unwrap != nil, t.custom))
	return append(dst, `"}}}`+"\n\n"...)
}
