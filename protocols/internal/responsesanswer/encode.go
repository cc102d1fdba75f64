// SPDX-License-Identifier: Apache-2.0

// Package responsesanswer encodes and decodes responses of the Responses API. Package responses documents their form.
package responsesanswer

import (
	"slices"
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

// This file is structured as follows: options, the Encoder and its entry points, then text runs. Calls are in
// encode_calls.go, the JSON of items in item.go, the response object in response.go.

// Reasoning selects the form of reasoning.
type Reasoning uint8

const (
	// ReasoningSummary sends it as the summary of reasoning items. All clients show summaries.
	ReasoningSummary Reasoning = iota
	// ReasoningRaw sends it as the reasoning_text content of reasoning items.
	ReasoningRaw
	// ReasoningNone hides the text of reasoning. A reasoning item is sent only if it has a signature, or Seal makes
	// one; it is the encrypted_content.
	ReasoningNone
)

// Options configures an [Encoder] and [AppendResponse]. ID and Model are required.
type Options struct {
	ID      string // response ID, normally "resp_…"; item and call IDs are derived from it
	Model   string // model name for the client
	Created int64  // Unix time in seconds

	// CompletedAt is the Unix time in seconds at which the response was completed; 0 means unknown and is sent as null.
	// For a stream use [Encoder.SetCompletedAt].
	CompletedAt int64

	// Echo returns a field of the request as JSON, or nil. The response object repeats some of them (instructions, tools,
	// tool_choice, temperature, …). Fields that are absent, null or longer than 64 KiB have the API's defaults. If Echo is
	// nil, all have. It is called only at the start.
	Echo func(name string) []byte

	Reasoning Reasoning
	// Seal adds an encrypted_content, a token of Signer, to reasoning items without a signature. If the text is shown,
	// the token is signed and nothing is encrypted. With ReasoningNone the token contains the text, which is collected
	// until its run ends, up to the limit of the Signer; if it exceeds the limit, or without a Signer, no item is sent.
	// Set Seal for requests of the Responses API: OpenAI's items have it by default, and with store false, the AI SDK, and
	// thus opencode, returns reasoning only if it has encrypted_content.
	Seal bool
	// Signer makes the tokens of Seal. If nil, they are unsigned and prove nothing.
	Signer *replay.Signer

	// WholeCalls holds each call back until it is complete and sends its arguments in one delta. Aborted calls are then
	// never sent. Calls that overlap are sent in the order in which they end.
	WholeCalls bool
	// DispatchInReasoning sends calls inside reasoning like all others. By default they are left out.
	DispatchInReasoning bool
	// Namespace splits the name that the model used for a tool into the namespace and the name that the client
	// declared. Nil means that there are no namespaces.
	Namespace func(tool string) (namespace, name string)
	// Custom reports whether the client declared a custom tool of this name, which takes free text. If the producer
	// reports a function call with the arguments {"input":"…"} to such a tool, the client gets a custom call with that
	// text. Calls with the flag event.Custom do not depend on it. If nil, there are no such tools.
	Custom func(tool string) bool
}

// Encoder encodes events as the server-sent events of a streamed response. Create one for each response with
// [NewEncoder]. An Encoder is not safe for concurrent use.
//
// The API has one choice: events of other choices are skipped and counted by [Encoder.Dropped].
type Encoder struct {
	opt     Options
	echo    outEcho
	suffix  string
	ids     callid.Set
	usage   event.Tokens
	seq     int64
	dropped int

	started   bool
	hasOutput bool // output has arrived
	done      bool
	early     bool          // Fail was called before any output
	err       *apierr.Error // of Fail
	why       event.Why     // of Finish; None until then

	output   [][]byte // JSON of the items by output_index; nil while one is open
	count    idCounter
	run      outRun
	logprobs []byte // elements for the next text delta
	calls    []outCall

	head    []byte // of a delta of the open run, from after the sequence number
	scratch []byte
	hot     hotRun
}

// hotRun holds the bytes before and after a delta of the open run of text or reasoning, or of the open call. Until
// another event occurs, a delta of complete characters is written between them, with its sequence number. This fast
// path gives the same bytes as the slow path.
type hotRun struct {
	hotdelta.Source
	call               int // index in calls
	index              int // of the item
	before, head, tail []byte
}

// outRun is the open run of reasoning, text or refusal. Each run is a separate item.
type outRun struct {
	kind  event.Kind // 0 if none
	part  int32
	wired bool // its output_item.added was sent
	item  outItem
	carry jsonw.Carry
}

// NewEncoder returns an Encoder. It reads opt.Echo once and copies what it needs.
func NewEncoder(opt Options) *Encoder {
	s := &Encoder{opt: opt, suffix: callid.Suffix(opt.ID)}
	s.echo.read(opt.Echo)
	s.opt.Echo = nil
	return s
}

// SetCompletedAt sets the Unix time in seconds at which the response was completed. Call it before Finish.
func (s *Encoder) SetCompletedAt(unix int64) { s.opt.CompletedAt = unix }

// Append encodes events and appends the bytes for the client to dst. Events that this API cannot express are skipped
// and counted; see [Encoder.Dropped]. After the end of the stream it appends nothing. It does not retain the events. A
// text delta does not allocate if dst has the capacity, except that the text of the open item is collected for the
// events that repeat it.
func (s *Encoder) Append(dst []byte, events ...event.Event) []byte {
	for i := range events {
		e := &events[i]
		if h := &s.hot; h.Has(e) {
			out := append(strconv.AppendInt(append(dst, h.before...), s.seq, 10), h.head...)
			out, plain := jsonw.AppendPlain(out, e.Data)
			ok := plain
			if !plain {
				out, ok = jsonw.AppendWhole(out, e.Data)
			}
			if ok {
				it := &s.run.item
				if e.Kind == event.ToolArgs {
					c := &s.calls[h.call]
					c.balance.FeedPlain(e.Data, plain)
					it = &c.item
				}
				it.text = append(it.text, e.Data...)
				s.seq++
				dst = append(out, h.tail...)
				continue
			}
		}
		dst = s.add(dst, e)
	}
	return dst
}

// heat prepares the fast path for the item whose delta was just sent; head is the part of the delta after the sequence
// number.
func (s *Encoder) heat(e *event.Event, it *outItem, call int, head []byte, end string) {
	h, source := &s.hot, hotdelta.Of(e)
	if h.On = true; h.Source != source || h.index != it.index {
		h.Source, h.index, h.call = source, it.index, call
		h.before = appendBegin(h.before[:0], partNames[it.form].delta)
		h.head = append(append(h.head[:0], head...), `,"delta":"`...)
		h.tail = append(h.tail[:0], end...)
	}
}

// Finish ends the stream with response.completed or response.incomplete, which contain all items. Without an
// event.Finish, the stream ends as if the model had stopped. If the response was cut off, see [Encoder.Cut], Finish
// calls [Encoder.Fail] instead.
func (s *Encoder) Finish(dst []byte) []byte {
	if s.done {
		return dst
	}
	if s.Cut() {
		return s.Fail(dst, streamdec.CutError())
	}
	if s.why == event.None {
		dst = s.add(dst, &event.Event{Kind: event.Finish, Call: -1, Why: event.Stop})
	}
	s.done, s.hot.On = true, false
	status := finishStatus(s.why)
	dst = s.begin(dst, "response."+status)
	dst = append(dst, `,"response":`...)
	dst = s.appendResponse(dst, status, nil)
	return append(dst, "}\n\n"...)
}

// Cut reports whether the response is cut off if it ends now: there was no event.Finish, and a call is open or there is
// no output.
func (s *Encoder) Cut() bool {
	return s.why == event.None && (!s.hasOutput || slices.ContainsFunc(s.calls, func(c outCall) bool { return !c.ended && !c.skip }))
}

// Fail ends the stream with response.failed, preceded by response.created if that was not sent. The response contains
// the completed items. No other event follows, nor does [DONE].
func (s *Encoder) Fail(dst []byte, e *apierr.Error) []byte {
	if s.done {
		return dst
	}
	s.early = !s.started
	dst = s.start(dst)
	s.done, s.err, s.hot.On = true, e, false
	dst = s.begin(dst, "response.failed")
	dst = append(dst, `,"response":`...)
	dst = s.appendResponse(dst, "failed", e)
	return append(dst, "}\n\n"...)
}

// Err returns the error that ended the stream, or nil.
func (s *Encoder) Err() *apierr.Error { return s.err }

// Started reports whether part of the response was sent before it failed.
func (s *Encoder) Started() bool { return s.started && !s.early }

// AppendKeepAlive appends a comment. Write it if nothing was sent for some seconds. It is not an event, because
// official clients throw on unknown event types.
func (s *Encoder) AppendKeepAlive(dst []byte) []byte { return sse.AppendComment(dst, "keep-alive") }

// Dropped returns the number of events so far that were left out: events of other choices, calls of server-side tools,
// results and opaque items whose Data is not an output item, and, unless enabled, calls inside reasoning and reasoning.
func (s *Encoder) Dropped() int { return s.dropped }

func (s *Encoder) add(dst []byte, e *event.Event) []byte {
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
	dst = s.start(dst)
	s.hasOutput = s.hasOutput || e.Kind != event.Start
	switch e.Kind {
	case event.Start:
		if e.Usage != nil {
			s.usage = *e.Usage
		}
		return dst
	case event.Reasoning, event.Text, event.Refusal:
		return s.delta(dst, e)
	case event.Signature:
		dst = s.turn(dst, event.Reasoning, e.Part)
		s.run.item.sig = append(s.run.item.sig, e.Data...)
		s.run.item.flags |= e.Flags
		return dst
	case event.Annotation:
		if s.run.kind == event.Text && jsonw.IsObject(e.Data) {
			return s.annotation(dst, e.Data)
		}
	case event.Logprobs:
		if jsonw.IsArray(e.Data) {
			s.logprobs = jsonw.AppendElements(s.logprobs, e.Data)
			return dst
		}
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
		if data, ok := withheld(e.ID, e.Data); ok { // clients return it as a reasoning item
			s.run.kind, s.run.item.sig, s.run.item.flags = event.Reasoning, data, event.Encrypted
			return s.turn(dst, 0, 0)
		}
		if jsonw.IsTyped(e.Data) {
			return s.opaque(dst, e.Data)
		}
	case event.Finish:
		return s.finish(dst, e)
	}
	s.dropped++
	return dst
}

// begin appends an event up to and with its sequence number.
func (s *Encoder) begin(dst []byte, typ string) []byte {
	dst = strconv.AppendInt(appendBegin(dst, typ), s.seq, 10)
	s.seq++
	return dst
}

// appendBegin appends an event up to its sequence number.
func appendBegin(dst []byte, typ string) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, typ...)
	dst = append(dst, "\ndata: {\"type\":\""...)
	dst = append(dst, typ...)
	return append(dst, `","sequence_number":`...)
}

// start sends response.created and response.in_progress, once.
func (s *Encoder) start(dst []byte) []byte {
	if s.started {
		return dst
	}
	s.started = true
	for _, typ := range [...]string{"response.created", "response.in_progress"} {
		dst = s.begin(dst, typ)
		dst = append(dst, `,"response":`...)
		dst = s.appendResponse(dst, "in_progress", nil)
		dst = append(dst, "}\n\n"...)
	}
	return dst
}

// turn completes the item of the current run and begins another run, unless kind is 0.
func (s *Encoder) turn(dst []byte, kind event.Kind, part int32) []byte {
	if s.run.kind == kind && s.run.part == part && kind != 0 {
		return dst
	}
	return s.next(dst, kind, part, "completed")
}

// next ends the current run, whose item gets the given status, and begins another.
func (s *Encoder) next(dst []byte, kind event.Kind, part int32, status string) []byte {
	r := &s.run
	if rest := r.carry.Flush(); len(rest) > 0 {
		dst = s.text(dst, rest)
	}
	if r.kind == event.Reasoning && s.opt.Seal {
		r.item.seal(s.opt.Signer, s.opt.Reasoning != ReasoningNone)
	}
	if r.kind == event.Reasoning && len(r.item.sig) > 0 {
		dst = s.openRun(dst, formSealed) // if there was no text
	}
	if r.wired {
		dst = s.closeRun(dst, status)
	}
	r.kind, r.part, r.wired = kind, part, false
	r.item.reset()
	return dst
}

func (s *Encoder) delta(dst []byte, e *event.Event) []byte {
	dst = s.turn(dst, e.Kind, e.Part)
	hidden := e.Kind == event.Reasoning && s.opt.Reasoning == ReasoningNone
	if hidden && !s.hides() {
		s.dropped++
		return dst
	}
	text := s.run.carry.Next(e.Data)
	if len(text) == 0 {
		return dst
	}
	dst = s.text(dst, text)
	if r := &s.run; !r.carry.Holds() && !hidden {
		end := "\"}\n\n"
		if r.item.form == formText {
			end = "\",\"logprobs\":[]}\n\n"
		}
		s.heat(e, &r.item, 0, s.head, end)
	}
	return dst
}

// hides reports whether reasoning of the current run that is not shown is kept for its token.
func (s *Encoder) hides() bool {
	return s.opt.seals() && len(s.run.item.text) <= s.opt.Signer.MaxSealed()
}

// text appends a delta of the current run; text is valid UTF-8.
func (s *Encoder) text(dst, text []byte) []byte {
	r := &s.run
	if r.kind == event.Reasoning && s.opt.Reasoning == ReasoningNone {
		r.item.text = append(r.item.text, text...)
		return dst
	}
	dst = s.openRun(dst, runForm(r.kind, s.opt.Reasoning))
	r.item.text = append(r.item.text, text...)
	dst = s.begin(dst, partNames[r.item.form].delta)
	dst = append(dst, s.head...)
	dst = append(dst, `,"delta":"`...)
	dst = jsonw.AppendText(dst, text)
	if r.item.form != formText {
		return append(dst, "\"}\n\n"...)
	}
	dst = append(dst, `","logprobs":[`...)
	if len(s.logprobs) > 0 {
		dst = append(dst, s.logprobs...)
		r.item.addLogprobs(s.logprobs)
		s.logprobs = s.logprobs[:0]
	}
	return append(dst, "]}\n\n"...)
}

// openRun appends the events that open the current run's item, once.
func (s *Encoder) openRun(dst []byte, f outForm) []byte {
	r := &s.run
	if r.wired {
		return dst
	}
	r.wired = true
	r.item.form = f
	r.item.index = s.nextIndex()
	r.item.id = s.count.appendID(r.item.id[:0], &r.item, s.suffix)
	s.head = appendItemKey(s.head[:0], &r.item)
	if p := &partNames[r.item.form]; p.index != "" {
		s.head = append(s.head, p.index...)
	}
	dst = s.itemEvent(dst, "response.output_item.added", &r.item, "in_progress")
	if p := &partNames[r.item.form]; p.added != "" {
		dst = s.begin(dst, p.added)
		dst = append(dst, s.head...)
		dst = append(dst, `,"part":`...)
		dst = r.item.appendPart(dst, false)
		dst = append(dst, "}\n\n"...)
	}
	return dst
}

// closeRun appends the events that complete the current run's item.
func (s *Encoder) closeRun(dst []byte, status string) []byte {
	it := &s.run.item
	if it.form == formText && len(s.logprobs) > 0 { // they arrived after the last delta
		it.addLogprobs(s.logprobs)
		s.logprobs = s.logprobs[:0]
	}
	if p := &partNames[it.form]; p.added != "" {
		dst = s.begin(dst, p.done)
		dst = append(dst, s.head...)
		dst = append(dst, p.text...)
		dst = append(jsonw.AppendText(dst, it.text), '"')
		if it.form == formText {
			dst = append(dst, `,"logprobs":[`...)
			dst = append(append(dst, it.logprobs...), ']')
		}
		dst = append(dst, "}\n\n"...)
		dst = s.begin(dst, p.closed)
		dst = append(dst, s.head...)
		dst = append(dst, `,"part":`...)
		dst = it.appendPart(dst, true)
		dst = append(dst, "}\n\n"...)
	}
	return s.itemDone(dst, it, status)
}

// nextIndex returns the index of a new output item.
func (s *Encoder) nextIndex() int {
	s.output = append(s.output, nil)
	return len(s.output) - 1
}

// itemEvent sends an event that contains the whole item.
func (s *Encoder) itemEvent(dst []byte, typ string, it *outItem, status string) []byte {
	dst = s.begin(dst, typ)
	dst = append(dst, `,"output_index":`...)
	dst = strconv.AppendInt(dst, int64(it.index), 10)
	dst = append(dst, `,"item":`...)
	dst = it.append(dst, status)
	return append(dst, "}\n\n"...)
}

// itemDone sends output_item.done and keeps the item for the final response.
func (s *Encoder) itemDone(dst []byte, it *outItem, status string) []byte {
	s.output[it.index] = it.append(nil, status)
	return s.itemEvent(dst, "response.output_item.done", it, status)
}

func (s *Encoder) annotation(dst, data []byte) []byte {
	dst = s.openRun(dst, formText)
	it := &s.run.item
	dst = s.begin(dst, "response.output_text.annotation.added")
	dst = append(dst, s.head...)
	dst = append(dst, `,"annotation_index":`...)
	dst = strconv.AppendInt(dst, int64(it.noted), 10)
	dst = append(dst, `,"annotation":`...)
	dst = jsonw.AppendRaw(dst, data)
	it.annotate(data)
	return append(dst, "}\n\n"...)
}

// opaque sends an item that the producer wrote.
func (s *Encoder) opaque(dst, data []byte) []byte {
	n := s.nextIndex()
	s.output[n] = s.count.appendOpaque(nil, data, s.suffix)
	for _, typ := range [...]string{"response.output_item.added", "response.output_item.done"} {
		dst = s.begin(dst, typ)
		dst = append(dst, `,"output_index":`...)
		dst = strconv.AppendInt(dst, int64(n), 10)
		dst = append(dst, `,"item":`...)
		dst = append(dst, s.output[n]...)
		dst = append(dst, "}\n\n"...)
	}
	return dst
}

func (s *Encoder) finish(dst []byte, e *event.Event) []byte {
	s.why = e.Why
	if s.why == event.None {
		s.why = event.Stop
	}
	dst = s.next(dst, 0, 0, finishStatus(s.why))
	for i := range s.calls {
		if c := &s.calls[i]; !c.ended {
			dst = s.endCall(dst, c, false)
		}
	}
	return dst
}

// finishStatus returns the status of the response, and of the item that was open, for the cause of a finish.
func finishStatus(why event.Why) string {
	switch why {
	case event.Length, event.ContextFull, event.ContentFilter, event.Paused:
		return "incomplete"
	}
	return "completed"
}
