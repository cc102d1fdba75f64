// SPDX-License-Identifier: Apache-2.0

// Package chatanswer encodes and decodes responses of the Chat Completions API. Package chat documents their form.
package chatanswer

import (
	"slices"
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/chunkw"
	"github.com/weft-go/weft/protocols/internal/hotdelta"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/sse"
)

// This file is structured as follows: options, the Encoder and its exported methods, then one method per group of event
// kinds, then the bytes of a chunk.

// ReasoningField selects the field of reasoning. OpenAI's API does not define one.
type ReasoningField uint8

const (
	// ReasoningContent is the field reasoning_content (DeepSeek, SGLang, Dynamo), which most clients support.
	ReasoningContent ReasoningField = iota
	// ReasoningPlain is the field reasoning (vLLM, OpenRouter).
	ReasoningPlain
	// ReasoningBoth writes both fields with the same text.
	ReasoningBoth
	// ReasoningNone omits reasoning.
	ReasoningNone
)

// Options configures an [Encoder] and [AppendResponse]. ID and Model are required.
type Options struct {
	ID      string // response ID, normally "chatcmpl-…"; missing call IDs are derived from it
	Model   string // model name for the client
	Created int64  // Unix time in seconds

	IncludeUsage    bool // stream_options.include_usage: a last chunk with usage, and usage:null in the others
	ContinuousUsage bool // vLLM's stream_options.continuous_usage_stats: the counts so far in every chunk

	Reasoning ReasoningField
	// ReasoningDetails selects the responses that have OpenRouter's reasoning_details. The list repeats the text of
	// reasoning and adds its position among text and calls and, at the end of each run, its signature or else a token
	// of Signer. A client that returns the list thus returns the proof of the text. The list is omitted with
	// ReasoningNone.
	ReasoningDetails DetailsMode
	// Signer makes the tokens of ReasoningDetails. If nil, they are unsigned and prove nothing.
	Signer *replay.Signer

	SystemFingerprint string // omitted if empty
	ServiceTier       string // omitted if empty

	// WholeCalls holds each call back until it is complete and sends it in one piece. Aborted calls are then never
	// sent. Calls that overlap are sent in the order in which they end.
	WholeCalls bool
	// Functions sends calls in the form before tools, for clients that declare functions: function_call in a message or
	// delta, and as finish_reason. It has no id, and there is one per choice; later calls are left out.
	Functions bool
	// DispatchInReasoning sends calls inside reasoning like all others. By default they are left out.
	DispatchInReasoning bool
	// ToolDispatch adds Dynamo's event "tool_call_dispatch" with the whole call as soon as it is complete, if it may
	// run by the rules of [event.Dispatcher]. Clients that do not know the event may mistake it for a chunk.
	ToolDispatch bool
	// ReasoningDispatch adds Dynamo's event "reasoning_dispatch" with each whole run of reasoning, before the output
	// that ends the run. Clients that do not know the event may mistake it for a chunk. Reasoning that is not sent is
	// not dispatched.
	ReasoningDispatch bool
	// Custom reports whether the client declared a custom tool of this name, which takes free text. If the producer
	// reports a function call with the arguments {"input":"…"} to such a tool, the client gets a custom call with that
	// text. Calls with the flag event.Custom do not depend on it. If nil, there are no such tools.
	Custom func(tool string) bool
}

// Encoder encodes events as the server-sent events of a streamed chat completion. Create one for each response with
// [NewEncoder]. An Encoder is not safe for concurrent use.
type Encoder struct {
	opt     Options
	suffix  string
	frame   chunkw.Frame
	choices []choiceState
	scratch []byte
	dropped int
	done    bool
	err     *apierr.Error // of Fail
	hot     hotRun

	early *event.Dispatcher // nil if whole calls and runs are not needed
	runs  []byte            // encoded events for the runs of reasoning that the current event ended
	whole event.Call        // the call that the current event ended, if any; without one Complete is not set
}

// hotRun holds the bytes before and after a delta of the open run of text or reasoning, or of the open call. Until
// another event occurs, a delta of complete characters is written between them. This fast path gives the same bytes as
// the slow path.
type hotRun struct {
	hotdelta.Source
	call       int // index in calls
	head, tail []byte
}

// choiceState is the state of a choice.
type choiceState struct {
	head     []byte // head of the frame, index and `,"delta":{`
	started  bool   // the role was sent
	finished bool
	refused  bool // refusal text was sent
	kind     event.Kind
	part     int32
	fresh    bool // no text of the part was sent
	thought  bool // reasoning was sent
	n        int32
	carry    jsonw.Carry
	details  outDetails
	ids      callid.Set
	calls    []callState
	sent     int32 // number of calls that were sent
	complete int32 // of them: complete
}

// callState is the state of a call after its ToolStart.
type callState struct {
	call    int32 // the producer's ordinal
	index   int32 // index that was sent, or -1
	skip    bool  // left out
	ended   bool
	custom  bool
	legacy  bool // sent as function_call
	name    string
	id      string
	carry   jsonw.Carry
	balance jsonw.Balance
	unwrap  *jsonw.Unwrap // not nil if a function call becomes a custom call
}

// NewEncoder returns an Encoder. It precomputes the bytes that all chunks have in common.
func NewEncoder(opt Options) *Encoder {
	s := &Encoder{
		opt: opt, suffix: callid.Suffix(opt.ID),
		frame: chunkw.NewFrame(opt.head("chat.completion.chunk"), opt.IncludeUsage, opt.ContinuousUsage),
	}
	s.listen()
	return s
}

// head returns the first fields of a response or chunk.
func (o *Options) head(object string) chunkw.Head {
	return chunkw.Head{
		ID: o.ID, Object: object, Model: o.Model, Created: o.Created, SystemFingerprint: o.SystemFingerprint, ServiceTier: o.ServiceTier,
	}
}

// Append encodes events and appends the bytes for the client to dst. Events that this API cannot express are skipped
// and counted; see [Encoder.Dropped]. After the end of the stream it appends nothing. It does not retain the events. A
// text delta does not allocate if dst has the capacity.
func (s *Encoder) Append(dst []byte, events ...event.Event) []byte {
	for i := range events {
		e := &events[i]
		if h := &s.hot; h.Has(e) {
			out, plain := jsonw.AppendPlain(append(dst, h.head...), e.Data)
			ok := plain
			if !plain {
				out, ok = jsonw.AppendWhole(out, e.Data)
			}
			if ok {
				switch c := &s.choices[e.Choice]; e.Kind {
				case event.ToolArgs:
					if t := &c.calls[h.call]; !t.custom {
						t.balance.FeedPlain(e.Data, plain)
					}
				case event.Reasoning:
					if s.holds(c) {
						c.details.run.text = append(c.details.run.text, e.Data...)
					}
				}
				s.observe(e)
				dst = append(out, h.tail...)
				continue
			}
		}
		dst = s.add(dst, e)
	}
	return dst
}

// heat prepares the fast path for the run or call of e, the delta that was just sent.
func (s *Encoder) heat(e *event.Event, carry *jsonw.Carry, call int, head func(dst []byte) []byte, end string) {
	if carry.Holds() || s.done || s.opt.ContinuousUsage {
		return
	}
	h, source := &s.hot, hotdelta.Of(e)
	if h.On = true; h.Source != source || h.call != call {
		h.Source, h.call = source, call
		h.head = head(append(h.head[:0], s.choices[e.Choice].head...))
		h.tail = s.close(append(h.tail[:0], end...))
	}
}

// Finish ends the stream. It appends the usage chunk, if the client asked for it, and [DONE]. A choice without an
// event.Finish ends as if the model had stopped. If the response was cut off, see [Encoder.Cut], Finish instead calls
// [Encoder.Fail].
func (s *Encoder) Finish(dst []byte) []byte {
	if s.done {
		return dst
	}
	if s.Cut() {
		return s.Fail(dst, streamdec.CutError())
	}
	for i := range s.choices {
		if !s.choices[i].finished {
			dst = s.add(dst, &event.Event{Kind: event.Finish, Choice: int32(i), Call: -1, Why: event.Stop})
		}
	}
	s.done, s.hot.On = true, false
	return s.frame.AppendEnd(dst)
}

// Cut reports whether the response is cut off if it ends now: there is no choice, or a choice without an event.Finish
// has an open call or no output.
func (s *Encoder) Cut() bool {
	for i := range s.choices {
		c := &s.choices[i]
		if !c.finished && (c.kind == 0 || slices.ContainsFunc(c.calls, func(t callState) bool { return !t.ended && !t.skip })) {
			return true
		}
	}
	return len(s.choices) == 0
}

// Fail ends the stream with an error. It does not append [DONE]: OpenAI does not send it, and official clients stop at
// the error.
func (s *Encoder) Fail(dst []byte, e *apierr.Error) []byte {
	if s.done {
		return dst
	}
	s.done, s.err, s.hot.On = true, e, false
	return chunkw.AppendError(dst, e)
}

// Err returns the error that ended the stream, or nil.
func (s *Encoder) Err() *apierr.Error { return s.err }

// Started reports whether a chunk was sent.
func (s *Encoder) Started() bool {
	return slices.ContainsFunc(s.choices, func(c choiceState) bool { return c.started })
}

// AppendKeepAlive appends a comment, which all clients skip. Write it if nothing was sent for some seconds.
func (s *Encoder) AppendKeepAlive(dst []byte) []byte { return sse.AppendComment(dst, "keep-alive") }

// Dropped returns the number of events so far that were left out: results and calls of server-side tools, opaque items,
// and, unless enabled, calls inside reasoning and reasoning.
func (s *Encoder) Dropped() int { return s.dropped }

func (s *Encoder) add(dst []byte, e *event.Event) []byte {
	s.hot.On = false
	if s.done {
		return dst
	}
	switch e.Kind {
	case event.Usage:
		if e.Usage != nil {
			s.frame.Usage = *e.Usage
		}
		return dst
	case event.Error:
		return s.Fail(dst, apierr.EventError(e))
	}
	c := s.choice(e.Choice)
	if c == nil || c.finished {
		s.dropped++
		return dst
	}
	s.observe(e)
	switch e.Kind {
	case event.Start:
		if e.Usage != nil {
			s.frame.Usage = *e.Usage
		}
		return s.start(dst, c)
	case event.Reasoning, event.Text, event.Refusal:
		return s.delta(dst, c, e)
	case event.Annotation:
		if c.kind != event.Text || !jsonw.IsObject(e.Data) {
			s.dropped++
			return dst
		}
		dst = append(s.open(dst, c), `"annotations":[`...)
		return s.close(append(jsonw.AppendRaw(dst, e.Data), ']'))
	case event.Signature:
		if s.opt.detailed() {
			if dst = s.turn(dst, c, event.Reasoning, e.Part); len(e.Data) > 0 {
				dst = s.beginRun(dst, c)
			}
			c.details.run.sig = append(c.details.run.sig, e.Data...)
			c.details.run.flags |= e.Flags
			return dst
		}
		s.dropped++ // the run continues: a character may be split by the signature
		return dst
	case event.Logprobs:
		if !jsonw.IsArray(e.Data) {
			s.dropped++
			return dst
		}
		dst = append(s.open(dst, c), `},"logprobs":{"content":`...)
		dst = jsonw.AppendRaw(dst, e.Data)
		return s.frame.AppendTail(append(dst, `,"refusal":null},"finish_reason":null}]`...))
	case event.ToolStart:
		return s.toolStart(dst, c, e)
	case event.ToolArgs:
		return s.toolArgs(dst, c, e)
	case event.ToolEnd:
		return s.toolEnd(dst, c, e, e.Flags.Has(event.Complete))
	case event.ToolAbort:
		return s.toolEnd(dst, c, e, false)
	case event.Finish:
		return s.finish(dst, c, e.Why)
	}
	s.dropped++
	return s.turn(dst, c, e.Kind, e.Part)
}

// maxChoices bounds the allocation that a single large Choice can cause. OpenAI allows 128 choices.
const maxChoices = 1024

func (s *Encoder) choice(n int32) *choiceState {
	if n < 0 || n >= maxChoices {
		return nil
	}
	for int(n) >= len(s.choices) {
		c := choiceState{head: slices.Clone(s.frame.Head), n: int32(len(s.choices))}
		c.head = append(c.head, `{"index":`...)
		c.head = strconv.AppendInt(c.head, int64(len(s.choices)), 10)
		c.head = append(c.head, `,"delta":{`...)
		s.choices = append(s.choices, c)
	}
	return &s.choices[n]
}

// start sends the role, once per choice.
func (s *Encoder) start(dst []byte, c *choiceState) []byte {
	if c.started {
		return dst
	}
	c.started = true
	dst = append(dst, c.head...)
	return s.close(append(dst, `"role":"assistant","content":""`...))
}

// open begins a chunk, after the role chunk if that was not sent. The fields of delta must follow, then close.
func (s *Encoder) open(dst []byte, c *choiceState) []byte {
	return append(s.start(dst, c), c.head...)
}

// close ends a chunk that has only a delta.
func (s *Encoder) close(dst []byte) []byte {
	return s.frame.AppendTail(append(dst, `},"logprobs":null,"finish_reason":null}]`...))
}

// turn begins another run of output, if necessary, and writes the held bytes of the one before.
func (s *Encoder) turn(dst []byte, c *choiceState, kind event.Kind, part int32) []byte {
	if c.kind == kind && c.part == part {
		return dst
	}
	if rest := c.carry.Flush(); len(rest) > 0 {
		dst = s.text(dst, c, rest)
	}
	dst = s.endRun(dst, c)
	c.kind, c.part, c.fresh = kind, part, true
	dst = append(dst, s.runs...)
	s.runs = s.runs[:0]
	return dst
}

func (s *Encoder) delta(dst []byte, c *choiceState, e *event.Event) []byte {
	dst = s.turn(dst, c, e.Kind, e.Part)
	if e.Kind == event.Reasoning && s.opt.Reasoning == ReasoningNone {
		s.dropped++
		return dst
	}
	text := c.carry.Next(e.Data)
	if len(text) == 0 {
		return dst
	}
	dst = s.text(dst, c, text)
	if e.Kind != event.Reasoning || s.opt.Reasoning != ReasoningBoth && (!s.opt.detailed() || s.holds(c)) {
		s.heat(e, &c.carry, 0, func(dst []byte) []byte { return append(append(dst, s.field(e.Kind)...), `":"`...) }, `"`)
	}
	return dst
}

// field returns the name of the field of delta for a kind of text, with its opening quote.
func (s *Encoder) field(k event.Kind) string {
	switch {
	case k == event.Refusal:
		return `"refusal`
	case k != event.Reasoning:
		return `"content`
	case s.opt.Reasoning == ReasoningPlain:
		return `"reasoning`
	}
	return `"reasoning_content`
}

// text appends a delta of the current kind; text is valid UTF-8.
func (s *Encoder) text(dst []byte, c *choiceState, text []byte) []byte {
	if c.kind == event.Reasoning && s.opt.detailed() {
		dst = s.keep(dst, c, text)
	}
	dst = s.open(dst, c)
	switch c.kind {
	case event.Reasoning:
		between := ""
		if c.fresh && c.thought {
			between = `\n`
		}
		c.fresh, c.thought = false, true
		dst = appendReasoning(dst, s.opt.Reasoning, between, text)
		if c.details.on {
			dst = s.appendDelta(dst, c, text)
		}
	case event.Refusal:
		c.refused = true
		dst = append(dst, `"refusal":"`...)
		dst = append(jsonw.AppendText(dst, text), '"')
	default:
		c.details.hasText = true
		dst = append(dst, `"content":"`...)
		dst = append(jsonw.AppendText(dst, text), '"')
	}
	return s.close(dst)
}

// appendReasoning appends the fields of a delta of reasoning. between is the JSON text that separates it from the run
// before.
func appendReasoning(dst []byte, f ReasoningField, between string, text []byte) []byte {
	if f == ReasoningContent || f == ReasoningBoth {
		dst = append(append(dst, `"reasoning_content":"`...), between...)
		dst = append(jsonw.AppendText(dst, text), '"')
	}
	if f == ReasoningBoth {
		dst = append(dst, ',')
	}
	if f == ReasoningPlain || f == ReasoningBoth {
		dst = append(append(dst, `"reasoning":"`...), between...)
		dst = append(jsonw.AppendText(dst, text), '"')
	}
	return dst
}

func (s *Encoder) finish(dst []byte, c *choiceState, why event.Why) []byte {
	dst = s.turn(dst, c, event.Finish, -1)
	for i := range c.calls {
		if t := &c.calls[i]; !t.ended {
			dst = s.end(dst, c, t, false)
		}
	}
	c.finished = true
	dst = s.open(dst, c)
	dst = append(dst, `},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, s.opt.finishReason(why, c.complete > 0, c.refused)...)
	return s.frame.AppendTail(append(dst, `"}]`...))
}

// finishReason returns the finish_reason for a cause. If the model stopped by itself, it is tool_calls if and only if
// calls is set, that is, a complete call was sent, regardless of the engine's reason.
func (o *Options) finishReason(why event.Why, calls, refused bool) string {
	switch why {
	case event.Length, event.ContextFull:
		return "length"
	case event.ContentFilter:
		return "content_filter"
	case event.Refused:
		if !refused {
			return "content_filter" // without refusal text, only the reason informs the client
		}
		return "stop"
	}
	switch {
	case calls && o.Functions:
		return "function_call"
	case calls:
		return "tool_calls"
	}
	return "stop"
}
