// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers"
)

// Decoder decodes the model's output for one prompt into the events of a response, from Start to Finish. It combines
// the detokenizer, the stops, the parser, the ids of calls and the token counts.
//
//	events = dec.AppendTokens(events[:0], id)   // Start with the prompt's tokens, then the decoded output
//	events = dec.Finish(events[:0])             // output held back, Usage, Finish
//
// The Data and Usage of events are valid until the next call. After the response ends, at a stop of the model or of the
// request or at a limit, further output is ignored; see [Decoder.Done]. A Decoder is not safe for concurrent use.
type Decoder struct {
	model   *Model
	prompt  *Prompt
	req     *block.Request
	opt     DecoderOptions
	parser  *parsers.Parser
	detok   *tokenizers.Stream
	ids     callIDs
	calls   recorder // if the prompt belongs to a turn of a Memo
	sampled []uint32 // likewise: ids of the output
	total   *totals

	limit int
	min   int64    // minimum number of output tokens before stops apply
	ends  []uint32 // stop tokens of the request
	stops *tokenizers.StopText

	begun    bool
	finished bool
	err      error
	why      event.Why // reason for the end; None until then
	stop     string    // the stop sequence, with StopSequence
	count    int64     // token ids decoded for this choice

	text   []byte // decoded; text[:parsed] was parsed in the last call, whose events may alias it
	parsed int
	tokens []parsers.Token // of text
	sure   int             // bytes of text before a possible stop string
	piece  []byte
	events []event.Event
	usage  event.Tokens
}

// totals holds the counts of all choices of one response.
type totals struct {
	usage event.Tokens
	spent [2]int64 // output bytes: all, and reasoning; for an estimate if tokens are not counted
}

// DecoderOptions configures [Model.NewDecoder]. The zero value is the default.
type DecoderOptions struct {
	// ID makes the ids of calls unique if the model does not write ids; the first is call_ID_0, or a hash of it if the
	// template requires short ids. If empty, it is a hash of the prompt and of the time given to Render.
	ID string
	// Choice is the index of the choice in the response.
	Choice int32
	// Shared is the decoder of another choice of the same response; the two count tokens together. It is nil for the
	// first choice.
	Shared *Decoder
	// MaxTokens limits the output tokens in addition to the request and the model's window. 0 means no additional
	// limit.
	MaxTokens int
	// EngineStops specifies that the engine applies stop strings, stop tokens and limits, and that the caller passes
	// the finish reason to [Decoder.SetFinish]. The decoder then only hides the tokens that end the turn.
	EngineStops bool
	// Parser contains further options of the parser, such as Limits and Policy. NewDecoder sets Tools, Allow, Prompt,
	// NoCalls, SingleCall, TokenID and Choice. With the zero Policy, it also sets keep_tail if the template prints no
	// newline between reasoning and its closing tag.
	Parser parsers.Options
}

// NewDecoder returns a decoder of the output for p, which must have been rendered from req. If the prompt fills the
// model's window, the error is an *[apierr.Error] with the code context_length_exceeded; if the stop strings or
// min_tokens of req cannot be used, it is an *apierr.Error of class Invalid. Nil options are the defaults.
//
// If req declares no tools, or only tools that the server runs, the markup of calls is text, as with the tool_choice none,
// unless p is from [Model.Raw]. If its tool_choice allows only some tools, calls of others are aborted with
// event.NotAllowed.
//
// A Decoder decodes one choice. For a request of n choices, create n decoders, with DecoderOptions.Choice and Shared, or
// refuse the request.
func (m *Model) NewDecoder(req *block.Request, p *Prompt, opt *DecoderOptions) (*Decoder, error) {
	if m.opt.Family == "" {
		return nil, errors.New("prompt: the model's family is not known: set Options.Family")
	}
	d := &Decoder{model: m, prompt: p, req: req}
	if opt != nil {
		d.opt = *opt
	}
	if err := d.setLimit(); err != nil {
		return nil, err
	}
	s := req.Params().Sampling
	if !s.IgnoreEOS {
		d.ends = slices.Clone(m.stops)
	}
	for _, id := range s.StopTokens {
		if id >= 0 && id <= math.MaxUint32 {
			d.ends = append(d.ends, uint32(id))
		}
	}
	if v := string(req.Field("min_tokens")); v != "" && v != "null" {
		n, err := strconv.ParseFloat(v, 64) // 1e3 and 2.0 are integers, as in max_tokens
		if err != nil || n != math.Trunc(n) || n < 0 || n > 1<<53 {
			return nil, apierr.Invalid("min_tokens", "The minimum number of tokens must be an integer of at least 0.")
		}
		d.min = int64(n)
	}
	if len(s.Stop) > 0 && !d.opt.EngineStops {
		so := &tokenizers.StopOptions{Hidden: s.Stop}
		if d.showsStop() {
			so = &tokenizers.StopOptions{Visible: s.Stop}
		}
		stops, err := tokenizers.NewStops(so)
		if err != nil {
			param := "stop"
			if req.API() == block.Messages {
				param = "stop_sequences"
			}
			return nil, &apierr.Error{Why: event.Invalid, Param: param, Message: "The stop sequences cannot be used: " + err.Error(), Cause: err}
		}
		d.stops = stops.NewText()
	}
	po := d.opt.Parser
	po.Tools, po.Choice, po.Prompt = nil, d.opt.Choice, p.Text
	if po.Policy == (parsers.Policy{}) {
		po.Policy = m.policy
	}
	choice, declared := req.Params().ToolChoice, p.raw
	tools := req.Tools()
	po.Tools = slices.Grow(po.Tools, len(tools))
	for i := range tools {
		t := &tools[i]
		declared = declared || t.Kind != block.Hosted
		po.Tools = append(po.Tools, parsers.Tool{Name: t.ModelName, Schema: t.Schema})
	}
	po.Allow = allowed(req)
	po.NoCalls, po.SingleCall = choice.Mode == block.NoTools || !declared, choice.Serial
	if m.tok != nil {
		po.TokenID = m.tok.TokenID
		d.detok = m.tok.NewStream(false, nil)
	}
	var err error
	if d.parser, err = m.opt.Parsers.New(m.opt.Family, &po); err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	d.ids = callIDs{req: req, number: numberIn(m.grammar), short: m.caps.Has("short_ids")}
	if d.total = new(totals); d.opt.Shared != nil {
		d.total = d.opt.Shared.total
	} else {
		d.total.usage.Prompt = int64(len(p.IDs()))
	}
	return d, nil
}

// allowed returns the names by which the model knows the tools that tool_choice allows, or nil if it allows all. A name
// that is not a tool of the request is taken as it is.
func allowed(req *block.Request) []string {
	allow := req.Params().ToolChoice.Allow
	if allow == nil {
		return nil
	}
	names := make([]string, 0, len(allow))
	for _, name := range allow {
		list := toolsNamed(req.Tools(), name)
		for _, t := range list {
			if t.Kind != block.Hosted {
				names = append(names, t.ModelName)
			}
		}
		if len(list) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// setLimit sets the maximum number of output tokens.
func (d *Decoder) setLimit() error {
	limit := int64(math.MaxInt32)
	if p := d.req.Params().MaxTokens; p != nil {
		n := *p
		limit = min(limit, n)
	}
	if d.opt.MaxTokens > 0 {
		limit = min(limit, int64(d.opt.MaxTokens))
	}
	if w := int64(d.model.window); w > 0 {
		used := int64(len(d.prompt.IDs()))
		if used >= w {
			return apierr.ContextLength(used, 0, w)
		}
		limit = min(limit, w-used)
	}
	d.limit = int(limit)
	return nil
}

// Limit returns the maximum number of tokens that the engine may generate: the smallest of the limits of the request,
// DecoderOptions and the rest of the model's window, or math.MaxInt32 if there are no limits.
func (d *Decoder) Limit() int { return d.limit }

// Done reports whether the response has ended. Further output is then ignored, and the engine can stop.
func (d *Decoder) Done() bool { return d.why != event.None || d.err != nil || d.finished }

// Err returns the error that ended the response, if any: the first error passed to Fail, or the limit of the parser
// that the output exceeded.
func (d *Decoder) Err() error { return d.err }

// Usage returns the tokens counted so far for all choices that share counts.
func (d *Decoder) Usage() event.Tokens {
	u := d.total.usage
	if s := d.total.spent; u.Reasoning == 0 && s[1] > 0 { // tokens not counted: use the share of bytes
		u.Reasoning, u.ReasoningEstimated = u.Output*s[1]/s[0], true
	}
	return u
}

// SetUsage replaces the counts by those that the engine reports. The decoder's own count of Prompt is kept if u.Prompt
// is 0, and of Reasoning if u.Reasoning is 0 or an estimate.
func (d *Decoder) SetUsage(u event.Tokens) {
	t := &d.total.usage
	u.Prompt = cmp.Or(u.Prompt, t.Prompt)
	if u.Reasoning == 0 || u.ReasoningEstimated {
		u.Reasoning, u.ReasoningEstimated = t.Reasoning, false
	}
	*t = u
}

// SetFinish sets the reason for which the engine ended the output and, for a stop sequence, its text. It overrides the
// reason that the decoder found.
func (d *Decoder) SetFinish(why event.Why, stop string) { d.why, d.stop = why, stop }

// Fail records an error, of the engine or of the caller. It ends [Decoder.Events], and [Decoder.Finish] then ends the response
// with an Error event. [Decoder.Err] returns it, also if Fail is called after Finish. Only the first error is kept; a nil
// error is ignored.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// AppendTokens decodes the next token ids of the output and appends the resulting events to dst. Prefer it to Append,
// because ids distinguish markers from text that only looks like them. The model must have a tokenizer.
func (d *Decoder) AppendTokens(dst []event.Event, ids ...uint32) []event.Event {
	dst = d.start(dst)
	if d.detok == nil && len(ids) > 0 {
		d.Fail(errors.New("prompt: token ids without a tokenizer"))
	}
	d.drop()
	for _, id := range ids {
		if d.Done() {
			break
		}
		d.count++
		d.total.usage.Output++
		if slices.Contains(d.ends, id) {
			if !d.opt.EngineStops && d.count > d.min {
				d.why = event.Stop
				d.sure = len(d.text)
			}
			continue // never shown
		}
		if slices.Contains(d.model.stops, id) {
			continue // with ignore_eos, output continues after it
		}
		if d.prompt.turn != nil {
			if d.sampled == nil {
				d.sampled = make([]uint32, 0, 64)
			}
			d.sampled = append(d.sampled, id)
		}
		from := len(d.text)
		d.text = d.detok.Append(d.text, id)
		d.tokens = append(d.tokens, parsers.Token{ID: id, End: len(d.text)})
		d.watch(from)
		if d.why == event.None && !d.opt.EngineStops && d.count >= int64(d.limit) {
			d.why, d.sure = event.Length, len(d.text)
		}
	}
	return d.parse(dst, true)
}

// Append decodes the next chunk of the output as text, which may be split anywhere, and appends the resulting events to
// dst. The token count grows by one per chunk until SetUsage replaces it.
func (d *Decoder) Append(dst []event.Event, chunk string) []event.Event {
	dst = d.start(dst)
	if d.Done() || chunk == "" {
		return dst
	}
	d.drop()
	d.total.usage.Output++ // an estimate until SetUsage
	from := len(d.text)
	d.text = append(d.text, chunk...)
	d.watch(from)
	return d.parse(dst, false)
}

// AppendChunk decodes a chunk of an engine's stream, as decoded by wire.Completions, and appends the resulting events
// to dst. ids are the token ids of the chunk, if the engine sends them, and take precedence over its text. Only events
// of the kinds Text, Usage, Error and Finish are used. Finish specifies the reason for which the engine ended the
// output, unless the decoder has found one. If it names a stop token that is the last of ids, that token is counted, but
// is not output: the engine may know more stop tokens than the model's files.
func (d *Decoder) AppendChunk(dst []event.Event, ids []uint32, chunk ...event.Event) []event.Event {
	shown := ids
	if last := len(ids) - 1; last >= 0 && stopsAt(chunk, ids[last]) {
		shown = ids[:last]
	}
	dst = d.AppendTokens(dst, shown...)
	if len(shown) < len(ids) && !d.Done() {
		d.count++
		d.total.usage.Output++
	}
	text := ""
	for i := range chunk {
		if chunk[i].Kind == event.Text && len(ids) == 0 {
			text += string(chunk[i].Data)
		}
	}
	dst = d.Append(dst, text)
	for i := range chunk {
		switch ev := &chunk[i]; {
		case ev.Kind == event.Usage:
			d.SetUsage(*ev.Usage)
		case ev.Kind == event.Error:
			d.Fail(apierr.EventError(ev))
		case ev.Kind == event.Finish && d.why == event.None:
			d.SetFinish(ev.Why, string(ev.Data))
		}
	}
	return dst
}

// stopsAt reports whether a Finish event of a chunk names the token as the one that ended the output.
func stopsAt(chunk []event.Event, token uint32) bool {
	for i := range chunk {
		if ev := &chunk[i]; ev.Kind == event.Finish && string(ev.ID) == strconv.FormatUint(uint64(token), 10) {
			return true
		}
	}
	return false
}

// start appends the Start event if it was not appended before.
func (d *Decoder) start(dst []event.Event) []event.Event {
	if d.begun {
		return dst
	}
	d.begun = true
	if d.opt.Shared != nil {
		return dst // its decoder appends Start
	}
	d.usage = d.Usage()
	return append(dst, event.Event{Kind: event.Start, Call: -1, Usage: &d.usage})
}

// watch searches d.text[from:] for stop strings and sets d.sure, the number of bytes before a possible beginning of
// one.
func (d *Decoder) watch(from int) {
	if d.stops == nil || d.count > 0 && d.count <= d.min {
		d.sure = len(d.text)
		return
	}
	d.piece = d.stops.AppendBytes(d.piece[:0], d.text[from:])
	d.sure += len(d.piece)
	if r, ok := d.stops.Stopped(); ok {
		d.why, d.stop = event.StopSequence, r.Text
	}
}

// parse passes d.text[:d.sure] to the parser. It does not split tokens, because markers are recognized by their tokens,
// unless the response ended inside one.
func (d *Decoder) parse(dst []event.Event, ids bool) []event.Event {
	n, k := d.sure, 0
	for k < len(d.tokens) && d.tokens[k].End <= n {
		k++
	}
	if ids && d.why == event.None {
		if k == 0 {
			return dst
		}
		n = d.tokens[k-1].End
	}
	if n == 0 {
		return dst
	}
	from := len(dst)
	var err error
	if ids {
		dst, err = d.parser.AppendTokens(dst, d.text[:n], d.tokens[:k])
	} else {
		dst, err = d.parser.Append(dst, d.text[:n])
	}
	if err != nil {
		d.Fail(err)
	}
	d.tokens = append(d.tokens[:0], d.tokens[k:]...)
	d.parsed = n
	return d.complete(dst, from)
}

// drop removes the text that was parsed in the last call.
func (d *Decoder) drop() {
	n := d.parsed
	if n == 0 {
		return
	}
	d.text = append(d.text[:0], d.text[n:]...)
	for i := range d.tokens {
		d.tokens[i].End -= n
	}
	d.sure -= n
	d.parsed = 0
}

// complete counts the reasoning in dst[from:] and sets the ids of its calls.
func (d *Decoder) complete(dst []event.Event, from int) []event.Event {
	for i := from; i < len(dst); i++ {
		ev := &dst[i]
		switch ev.Kind {
		case event.Reasoning:
			d.total.spent[1] += int64(len(ev.Data))
			d.total.usage.Reasoning += int64(ev.Tokens)
		case event.ToolStart:
			ev.ID = []byte(d.ids.next(string(ev.ID), d.callID(ev.Call)))
		}
		if d.prompt.turn != nil {
			d.calls.add(ev)
		}
		d.total.spent[0] += int64(len(ev.Data))
	}
	return dst
}

// callID returns an id for call n that is unique within the response.
func (d *Decoder) callID(n int32) string {
	if d.opt.ID == "" {
		h := fnv.New64a()
		h.Write([]byte(d.prompt.Text))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(d.prompt.now.UnixNano())))
		d.opt.ID = fmt.Sprintf("%016x", h.Sum64())
	}
	if d.opt.Choice > 0 {
		return fmt.Sprintf("call_%s_%dx%d", d.opt.ID, d.opt.Choice, n)
	}
	return fmt.Sprintf("call_%s_%d", d.opt.ID, n)
}

// Finish ends the response. It appends the events for output held back, Usage and Finish, or an Error event if the
// response failed. Further calls return dst unchanged.
//
// The finish reason is the one found in the output or passed to [Decoder.SetFinish]. If there is neither, it is
// event.Stop: the model stopped at a token that the engine did not send.
func (d *Decoder) Finish(dst []event.Event) []event.Event {
	if d.finished {
		return dst
	}
	d.finished = true
	if d.err == nil {
		dst = d.flush(d.start(dst))
	}
	if len(d.calls.calls) > 0 || len(d.sampled) > 0 {
		d.prompt.turn.remember(d.calls.calls, d.sampled)
	}
	if d.err != nil { // without Start if there was no output: a server can still send a status
		e := apierr.Wrap(d.err)
		if _, ok := errors.AsType[*parsers.LimitError](d.err); ok {
			e = &apierr.Error{Why: event.EngineFailed, Message: "The model's output passed a limit of this server.", Cause: d.err}
		}
		return append(dst, event.Event{Kind: event.Error, Why: e.Why, Call: -1, ID: []byte(e.Code), Data: []byte(cmp.Or(e.Message, e.Error()))})
	}
	end := dst[len(dst)-1] // the parser's Finish
	end.Data = []byte(d.stop)
	d.why, d.usage = end.Why, d.Usage()
	return append(dst[:len(dst)-1], event.Event{Kind: event.Usage, Call: -1, Choice: d.opt.Choice, Usage: &d.usage}, end)
}

// flush appends the events for output that the detokenizer, the stops and the parser held back.
func (d *Decoder) flush(dst []event.Event) []event.Event {
	d.drop()
	from := len(dst)
	if d.stop == "" || d.why != event.StopSequence || d.stops == nil {
		if d.detok != nil {
			d.text = d.detok.Finish(d.text) // an incomplete character
		}
		d.sure = len(d.text) // no stop string can follow
	}
	if d.sure > 0 {
		var err error
		if len(d.tokens) > 0 {
			dst, err = d.parser.AppendTokens(dst, d.text[:d.sure], slices.DeleteFunc(d.tokens, func(t parsers.Token) bool { return t.End > d.sure }))
		} else {
			dst, err = d.parser.Append(dst, d.text[:d.sure])
		}
		d.Fail(err)
		if err != nil {
			return d.complete(dst, from)
		}
		for i := from; i < len(dst); i++ {
			dst[i] = dst[i].Clone() // the parser reuses their memory below
		}
	}
	dst, err := d.parser.Finish(dst, cmp.Or(d.why, event.Stop))
	d.Fail(err)
	return d.complete(dst, from)
}
