// SPDX-License-Identifier: Apache-2.0

// Package messagesanswer encodes and decodes responses of the Messages API. Package messages documents their form.
package messagesanswer

import (
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/hotdelta"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/sse"
)

// This file is structured as follows: options, the Encoder and its exported methods, then content blocks. Calls are in
// encode_calls.go.

// Thinking selects the form of reasoning.
type Thinking uint8

const (
	// ThinkingFull sends it as thinking blocks.
	ThinkingFull Thinking = iota
	// ThinkingOmitted sends thinking blocks that have only a signature (display "omitted"). With a Signer, the
	// signature contains the sealed text, up to the limit of the Signer; the text is held until its block ends.
	ThinkingOmitted
	// ThinkingNone omits reasoning.
	ThinkingNone
)

// Options configures an [Encoder] and [AppendResponse]. ID and Model are required.
type Options struct {
	ID    string // message ID, normally "msg_…"; missing call IDs are derived from it
	Model string // model name for the client

	Thinking Thinking
	// Signer makes signatures for thinking without a signature of the producer. If nil, they are unsigned and prove
	// nothing.
	Signer *replay.Signer

	// WholeCalls holds each call back until it is complete and sends its input in one delta. Aborted calls are then
	// never sent.
	WholeCalls bool
	// DispatchInReasoning sends calls inside reasoning like all others. By default they are left out.
	DispatchInReasoning bool
}

// Encoder encodes events as the server-sent events of a streamed message. Create one for each response with
// [NewEncoder]. An Encoder is not safe for concurrent use.
//
// The API has one choice: events of other choices are skipped and counted by [Encoder.Dropped]. It has one open block
// at a time: events for other blocks are copied and buffered until the open call ends.
type Encoder struct {
	opt     Options
	suffix  string
	ids     callid.Set
	usage   event.Tokens
	dropped int

	started   bool
	hasOutput bool // output has arrived
	done      bool
	err       *apierr.Error // of Fail
	why       event.Why     // of Finish; None until then
	stopSeq   []byte
	refused   bool

	index  int32 // of the open block, or of the next one
	block  outRun
	sign   *replay.TokenWriter // of the run of reasoning; nil before the first
	unread []byte              // the last of the run's text, which sign does not have yet
	call   outCall
	calls  int // number of complete calls that were sent

	skipped []int32 // ordinals of the calls that were left out

	waiting []event.Event // copies of events buffered until the open call ends
	head    []byte        // of a delta of the open block
	scratch []byte

	// While only deltas of hot arrive, one of complete characters is written as head, the text and deltaEnd.
	hot hotdelta.Source
}

// deltaEnd ends a delta of text, reasoning or input.
const deltaEnd = "\"}}\n\n"

// outRun is the open run of reasoning, text or refusal.
type outRun struct {
	kind   event.Kind // 0 if none
	part   int32
	wired  bool // its content_block_start was sent
	signed bool // reasoning: the signer has text
	carry  jsonw.Carry
	sig    []byte      // signature so far
	flags  event.Flags // of the signature
}

// NewEncoder returns an Encoder.
func NewEncoder(opt Options) *Encoder {
	return &Encoder{opt: opt, suffix: callid.Suffix(opt.ID)}
}

// Append encodes events and appends the bytes for the client to dst. Events that this API cannot express are skipped
// and counted; see [Encoder.Dropped]. After the end of the stream it appends nothing. It does not retain the events. A
// text delta does not allocate if dst has the capacity.
//
// The usage of an event.Start is sent in message_start. It should have the prompt tokens, because clients use them to
// manage their context.
func (s *Encoder) Append(dst []byte, events ...event.Event) []byte {
	for i := range events {
		e := &events[i]
		if s.hot.Has(e) {
			out, plain := jsonw.AppendPlain(append(dst, s.head...), e.Data)
			ok := plain
			if !plain && (e.Kind != event.ToolArgs || jsonw.IsPaired(e.Data)) {
				out, ok = jsonw.AppendWhole(out, e.Data)
			}
			if ok {
				switch e.Kind {
				case event.Reasoning:
					if s.unread = append(s.unread, e.Data...); len(s.unread) >= maxUnread {
						s.signText()
					}
				case event.ToolArgs:
					s.call.balance.FeedPlain(e.Data, plain)
				}
				dst = append(out, deltaEnd...)
				continue
			}
		}
		dst = s.add(dst, e, false)
	}
	return dst
}

// Finish ends the stream with message_delta (stop_reason and usage) and message_stop. Without an event.Finish it ends
// as if the model had stopped. If the response was cut off, see [Encoder.Cut], Finish instead calls [Encoder.Fail].
func (s *Encoder) Finish(dst []byte) []byte {
	if s.done {
		return dst
	}
	if s.Cut() {
		return s.Fail(dst, streamdec.CutError())
	}
	if s.why == event.None {
		dst = s.add(dst, &event.Event{Kind: event.Finish, Call: -1, Why: event.Stop}, true)
	}
	s.done, s.hot.On = true, false
	dst = append(dst, "event: message_delta\ndata: "+`{"type":"message_delta","delta":{"stop_reason":"`...)
	reason := stopReason(s.why, s.calls > 0, s.refused)
	dst = append(dst, reason...)
	dst = append(dst, `","stop_sequence":`...)
	dst = appendStopSequence(dst, reason, s.stopSeq)
	dst = append(dst, `},"usage":`...)
	dst = appendUsage(dst, &s.usage)
	return append(dst, "}\n\nevent: message_stop\ndata: "+`{"type":"message_stop"}`+"\n\n"...)
}

// Cut reports whether the response is cut off if it ends now: there was no event.Finish, and a call is open or there is
// no output.
func (s *Encoder) Cut() bool {
	return s.why == event.None && (!s.hasOutput || s.call.open)
}

// Fail ends the stream with an error event, without message_stop.
func (s *Encoder) Fail(dst []byte, e *apierr.Error) []byte {
	if s.done {
		return dst
	}
	s.done, s.err, s.hot.On = true, e, false
	dst = append(dst, "event: error\ndata: "...)
	dst = e.AppendBody(dst, apierr.Anthropic, "")
	return append(dst, "\n\n"...)
}

// Err returns the error that ended the stream, or nil.
func (s *Encoder) Err() *apierr.Error { return s.err }

// Started reports whether message_start was sent.
func (s *Encoder) Started() bool { return s.started }

// AppendKeepAlive appends a ping event, or a comment before message_start. Write it if nothing was sent for some
// seconds.
func (s *Encoder) AppendKeepAlive(dst []byte) []byte {
	if !s.started || s.done {
		return sse.AppendComment(dst, "keep-alive")
	}
	return append(dst, "event: ping\ndata: "+`{"type":"ping"}`+"\n\n"...)
}

// Dropped returns the number of events so far that were left out: events of other choices, log probabilities,
// server-side results and opaque items whose Data is not a content block, and, unless enabled, calls inside reasoning
// and reasoning.
func (s *Encoder) Dropped() int { return s.dropped }

// add encodes one event. owned specifies that the Encoder owns its memory.
func (s *Encoder) add(dst []byte, e *event.Event, owned bool) []byte {
	s.hot.On = false
	if s.done {
		return dst
	}
	switch e.Kind {
	case event.Usage:
		if e.Usage != nil {
			s.usage = *e.Usage
		}
		return dst
	case event.Error:
		return s.Fail(dst, apierr.EventError(e))
	}
	if e.Choice != 0 || s.why != event.None {
		s.dropped++
		return dst
	}
	if e.Kind == event.Start && e.Usage != nil {
		s.usage = *e.Usage
	}
	dst = s.start(dst)
	s.hasOutput = s.hasOutput || e.Kind != event.Start
	if s.call.open && e.Kind != event.Finish && e.Kind != event.Start && !s.call.owns(e) {
		w := *e
		if !owned {
			w = e.Clone()
		}
		s.waiting = append(s.waiting, w)
		return dst
	}
	switch e.Kind {
	case event.Start:
		return dst
	case event.Reasoning, event.Text, event.Refusal:
		return s.delta(dst, e)
	case event.Signature:
		dst = s.turn(dst, event.Reasoning, e.Part)
		s.block.sig = append(s.block.sig, e.Data...)
		s.block.flags |= e.Flags
		return dst
	case event.Annotation:
		if s.block.kind != event.Text || !jsonw.IsObject(e.Data) {
			break
		}
		dst = s.openBlock(dst)
		dst = appendDeltaHead(dst, s.index, `"citations_delta","citation":`)
		return append(jsonw.AppendRaw(dst, e.Data), "}}\n\n"...)
	case event.ToolStart:
		return s.toolStart(dst, e)
	case event.ToolArgs:
		return s.toolArgs(dst, e)
	case event.ToolEnd:
		return s.toolEnd(dst, e, e.Flags.Has(event.Complete))
	case event.ToolAbort:
		return s.toolEnd(dst, e, false)
	case event.ToolResult, event.Opaque:
		dst = s.turn(dst, 0, 0)
		if !jsonw.IsTyped(e.Data) {
			break
		}
		dst = appendBlockStart(dst, s.index)
		dst = jsonw.AppendRaw(dst, e.Data)
		dst = append(dst, "}\n\n"...)
		return s.stopBlock(dst)
	case event.Finish:
		return s.finish(dst, e)
	}
	s.dropped++
	return dst
}

// start sends message_start, once.
func (s *Encoder) start(dst []byte) []byte {
	if s.started {
		return dst
	}
	s.started = true
	dst = append(dst, "event: message_start\ndata: "+`{"type":"message_start","message":{"id":`...)
	dst = jsonw.AppendString(dst, s.opt.ID)
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	dst = jsonw.AppendString(dst, s.opt.Model)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`...)
	dst = appendUsage(dst, &s.usage)
	return append(dst, "}}\n\n"...)
}

// turn begins another run of output, or none if kind is 0, and ends the block of the one before.
func (s *Encoder) turn(dst []byte, kind event.Kind, part int32) []byte {
	b := &s.block
	if b.kind == kind && b.part == part && kind != 0 {
		return dst
	}
	if rest := b.carry.Flush(); len(rest) > 0 {
		dst = s.text(dst, rest)
	}
	if b.kind == event.Reasoning && s.opt.Thinking != ThinkingNone && (b.wired || len(b.sig) > 0 || b.signed) {
		dst = s.openBlock(dst)
		dst = appendDeltaHead(dst, s.index, `"signature_delta","signature":`)
		s.signText()
		s.scratch = appendSignature(s.scratch[:0], b.sig, b.flags, s.sign)
		dst = jsonw.AppendString(dst, s.scratch)
		dst = append(dst, "}}\n\n"...)
	}
	if b.wired {
		dst = s.stopBlock(dst)
	}
	if b.signed {
		s.sign.Reset()
	}
	b.kind, b.part, b.wired, b.signed, b.sig, b.flags = kind, part, false, false, b.sig[:0], 0
	return dst
}

func (s *Encoder) delta(dst []byte, e *event.Event) []byte {
	dst = s.turn(dst, e.Kind, e.Part)
	if e.Kind == event.Reasoning && s.opt.Thinking == ThinkingNone {
		s.dropped++
		return dst
	}
	text := s.block.carry.Next(e.Data)
	if len(text) == 0 {
		return dst
	}
	if !s.block.carry.Holds() && (e.Kind != event.Reasoning || s.opt.Thinking == ThinkingFull) {
		s.hot = hotdelta.Of(e)
	}
	return s.text(dst, text)
}

// text appends a delta of the current run; text is valid UTF-8.
func (s *Encoder) text(dst, text []byte) []byte {
	switch s.block.kind {
	case event.Reasoning:
		if s.sign == nil {
			s.sign = s.opt.signer()
		}
		if s.unread = append(s.unread, text...); len(s.unread) >= maxUnread {
			s.signText()
		}
		s.block.signed = true
		if s.opt.Thinking == ThinkingOmitted {
			return dst
		}
	case event.Refusal:
		s.refused = true
	}
	dst = s.openBlock(dst)
	dst = append(dst, s.head...)
	dst = jsonw.AppendText(dst, text)
	return append(dst, deltaEnd...)
}

// maxUnread is the number of bytes of unsigned reasoning from which it is signed. One call for many deltas takes less time.
const maxUnread = 1 << 12

// signText signs the text that is not signed yet.
func (s *Encoder) signText() {
	if len(s.unread) > 0 {
		s.sign.Write(s.unread)
		s.unread = s.unread[:0]
	}
}

// openBlock appends the start of the current run's block, once.
func (s *Encoder) openBlock(dst []byte) []byte {
	if s.block.wired {
		return dst
	}
	s.block.wired = true
	dst = appendBlockStart(dst, s.index)
	if s.block.kind == event.Reasoning {
		s.head = appendDeltaHead(s.head[:0], s.index, `"thinking_delta","thinking":"`)
		return append(dst, `{"type":"thinking","thinking":"","signature":""}}`+"\n\n"...)
	}
	s.head = appendDeltaHead(s.head[:0], s.index, `"text_delta","text":"`)
	return append(dst, `{"type":"text","text":""}}`+"\n\n"...)
}

// stopBlock ends the block at the current index and advances the index.
func (s *Encoder) stopBlock(dst []byte) []byte {
	dst = append(dst, "event: content_block_stop\ndata: "+`{"type":"content_block_stop","index":`...)
	dst = strconv.AppendInt(dst, int64(s.index), 10)
	s.index++
	return append(dst, "}\n\n"...)
}

func appendBlockStart(dst []byte, index int32) []byte {
	dst = append(dst, "event: content_block_start\ndata: "+`{"type":"content_block_start","index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	return append(dst, `,"content_block":`...)
}

// appendDeltaHead appends the start of a content_block_delta and rest, which begins with the value of the delta's type.
func appendDeltaHead(dst []byte, index int32, rest string) []byte {
	dst = append(dst, "event: content_block_delta\ndata: "+`{"type":"content_block_delta","index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(dst, `,"delta":{"type":`...)
	return append(dst, rest...)
}

func (s *Encoder) finish(dst []byte, e *event.Event) []byte {
	for s.call.open { // a call that did not end was cut off; buffered events may open another
		dst = s.endCall(dst, false)
	}
	dst = s.turn(dst, 0, 0)
	s.why = e.Why
	if s.why == event.None {
		s.why = event.Stop
	}
	s.stopSeq = append(s.stopSeq[:0], e.Data...)
	return dst
}

// stopReason returns the stop_reason for a cause. If the model stopped by itself, it is tool_use if and only if calls
// is set, that is, a complete call was sent, regardless of the engine's reason.
func stopReason(why event.Why, calls, refused bool) string {
	switch why {
	case event.Length:
		return "max_tokens"
	case event.ContextFull:
		return "model_context_window_exceeded"
	case event.ContentFilter, event.Refused:
		return "refusal"
	case event.Paused:
		return "pause_turn"
	}
	switch {
	case calls:
		return "tool_use"
	case refused:
		return "refusal"
	case why == event.StopSequence:
		return "stop_sequence"
	}
	return "end_turn"
}

func appendStopSequence(dst []byte, reason string, seq []byte) []byte {
	if reason != "stop_sequence" {
		return append(dst, "null"...)
	}
	return jsonw.AppendString(dst, seq)
}

// appendUsage appends a usage object. In Anthropic's API, input tokens do not include those read from or written to the
// cache.
func appendUsage(dst []byte, u *event.Tokens) []byte {
	read := min(u.Cached, u.Prompt)
	written := min(u.CacheWrite, u.Prompt-read)
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, u.Prompt-read-written, 10)
	dst = append(dst, `,"cache_creation_input_tokens":`...)
	dst = strconv.AppendInt(dst, written, 10)
	dst = append(dst, `,"cache_read_input_tokens":`...)
	dst = strconv.AppendInt(dst, read, 10)
	dst = append(dst, `,"output_tokens":`...)
	dst = strconv.AppendInt(dst, u.Output, 10)
	if u.Reasoning > 0 {
		dst = append(dst, `,"output_tokens_details":{"thinking_tokens":`...)
		dst = strconv.AppendInt(dst, min(u.Reasoning, u.Output), 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}
