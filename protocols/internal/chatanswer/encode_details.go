// SPDX-License-Identifier: Apache-2.0

package chatanswer

import (
	"strconv"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/details"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/replay"
)

// This file encodes the reasoning_details of responses, in the form that package chat decodes in requests. A stream has
// them in OpenRouter's form: every delta of text is an entry, and later entries with the same index continue it. Two
// properties support clients that merge the deltas:
//
//   - A chunk has one entry. Older versions of openai-python's accumulator treated all entries of one chunk as separate
//     elements of the list.
//   - The second and later runs of text follow an encrypted entry without data, which has no other purpose.
//     OpenRouter's and Effect's providers for the AI SDK join adjacent entries of text regardless of their index; the
//     signature of the first run would then apply to the text of both and fail to verify. The entry has a separate
//     index, because some clients keep the first type of the entries with one index, and some the last.

// DetailsMode selects the responses that have reasoning_details.
type DetailsMode uint8

// The modes.
const (
	// DetailsNever omits them.
	DetailsNever DetailsMode = iota
	// DetailsInterleaved sends them if reasoning follows text or a call, which a single string cannot express. A stream
	// sends the entries of the runs before only when such a run begins, and keeps their text until then. A client that
	// shows the text of details therefore shows those runs twice.
	DetailsInterleaved
	// DetailsAlways sends them for all reasoning.
	DetailsAlways
)

// outRun is a run of reasoning with its signature and position.
type outRun struct {
	text, sig []byte // sig is the producer's signature
	flags     event.Flags
	index     int64 // of its entries
	at        details.Position
}

// outDetails is the state of the reasoning details of an answer.
type outDetails struct {
	run     outRun              // has text only until entries are sent
	sign    *replay.TokenWriter // signer of the run, nil before the first entry
	begun   bool                // the run has text or a signature
	named   bool                // an entry of the run was sent
	on      bool                // entries are sent
	hasText bool                // text was sent; clients read all of it as one piece
	late    []outRun            // earlier runs, until entries are sent
}

// detailed reports whether reasoning details may be sent.
func (o *Options) detailed() bool {
	return o.ReasoningDetails != DetailsNever && o.Reasoning != ReasoningNone
}

// holds reports whether the text of reasoning is kept for entries that may follow.
func (s *Encoder) holds(c *choiceState) bool {
	return s.opt.ReasoningDetails == DetailsInterleaved && !c.details.on && s.opt.detailed()
}

// first reports whether the run precedes all other output, so that its position can be omitted.
func (r *outRun) first() bool { return r.index == 0 && r.at == (details.Position{}) }

// openDetail begins an entry of a run, with its position unless positioned is set and the run is the first. The suffix makes
// the ID unique in a conversation, because OpenRouter's provider for the AI SDK sends only one of several encrypted
// entries with the same ID.
func (r *outRun) openDetail(dst []byte, kind string, positioned bool, suffix string, choice int32) []byte {
	dst = append(append(append(dst, `{"type":"`...), kind...), `","index":`...)
	dst = strconv.AppendInt(dst, r.index, 10)
	if positioned {
		return dst
	}
	dst = append(r.at.AppendID(append(dst, `,"id":"`...)), suffix...)
	dst = strconv.AppendInt(append(dst, '.'), int64(choice), 10)
	return append(strconv.AppendInt(append(dst, '.'), r.index, 10), '"')
}

// appendEnd appends the entry that ends a run, with the producer's signature or else the token.
func (r *outRun) appendEnd(dst []byte, token *replay.TokenWriter, positioned bool, suffix string, choice int32) []byte {
	if r.flags.Has(event.Encrypted) {
		dst = append(r.openDetail(dst, "reasoning.encrypted", positioned, suffix, choice), `,"data":`...)
	} else {
		dst = append(r.openDetail(dst, "reasoning.text", positioned, suffix, choice), `,"signature":`...)
	}
	return append(r.appendProof(dst, token), '}')
}

// appendProof appends the producer's signature, or else the token, as a JSON string.
func (r *outRun) appendProof(dst []byte, token *replay.TokenWriter) []byte {
	if len(r.sig) > 0 {
		return jsonw.AppendString(dst, r.sig)
	}
	return append(token.AppendToken(append(dst, '"')), '"') // a token does not need escapes
}

// entries returns the one or two entries of a complete run.
func (r *outRun) entries(c *replay.Signer, positioned bool, suffix string, choice int32) (out [][]byte) {
	token := c.NewWriter(false)
	token.Write(r.text)
	if len(r.text) == 0 {
		return append(out, r.appendEnd(nil, token, positioned, suffix, choice))
	}
	dst := append(r.openDetail(nil, "reasoning.text", positioned, suffix, choice), `,"text":`...)
	dst = jsonw.AppendString(dst, r.text)
	if r.flags.Has(event.Encrypted) {
		return append(out, append(dst, '}'), r.appendEnd(nil, token, true, suffix, choice))
	}
	return append(out, append(r.appendProof(append(dst, `,"signature":`...), token), '}'))
}

// detail appends a chunk with one entry.
func (s *Encoder) detail(dst []byte, c *choiceState, entry []byte) []byte {
	dst = append(s.open(dst, c), `"reasoning_details":[`...)
	return s.close(append(append(dst, entry...), ']'))
}

// appendSplit appends the entry that separates runs of text.
func appendSplit(dst []byte, index int64) []byte {
	dst = append(dst, `{"type":"reasoning.encrypted","index":`...)
	return append(strconv.AppendInt(dst, index, 10), `,"data":""}`...)
}

// split appends a chunk with the entry that separates runs of text.
func (s *Encoder) split(dst []byte, c *choiceState, index int64) []byte {
	return s.detail(dst, c, appendSplit(nil, index))
}

// beginRun records that the run has text or a signature. It determines the position of the run and whether entries are
// sent, and appends the entries of earlier runs if they were not sent.
func (s *Encoder) beginRun(dst []byte, c *choiceState) []byte {
	d := &c.details
	if d.begun {
		return dst
	}
	d.begun, d.run.at = true, details.Position{Calls: int64(c.sent)}
	for _, there := range [...]bool{d.hasText, c.refused} {
		if there {
			d.run.at.Texts++
		}
	}
	if d.on || s.opt.ReasoningDetails == DetailsInterleaved && d.run.at == (details.Position{}) {
		return dst
	}
	d.on = true
	var index int64
	for i := range d.late {
		r := &d.late[i]
		if i > 0 && len(r.text) > 0 {
			dst = s.split(dst, c, index)
			index++
		}
		r.index = index
		index++
		for _, entry := range r.entries(s.opt.Signer, false, s.suffix, c.n) { // its position shows the Decoder that it is a repetition
			dst = s.detail(dst, c, entry)
		}
	}
	d.run.index = max(d.run.index, index)
	d.late = nil
	return dst
}

// keep records text of a run before it is sent, and appends the chunks that must precede it.
func (s *Encoder) keep(dst []byte, c *choiceState, text []byte) []byte {
	dst = s.beginRun(dst, c)
	d := &c.details
	if !d.on {
		d.run.text = append(d.run.text, text...)
		return dst
	}
	if d.sign == nil {
		d.sign = s.opt.Signer.NewWriter(false)
	}
	d.sign.Write(text)
	if !d.named && d.run.index > 0 {
		dst = s.split(dst, c, d.run.index)
		d.run.index++
	}
	return dst
}

// appendDelta appends the field reasoning_details with the entry of a delta.
func (s *Encoder) appendDelta(dst []byte, c *choiceState, text []byte) []byte {
	d := &c.details
	dst = append(dst, `,"reasoning_details":[`...)
	dst = append(d.run.openDetail(dst, "reasoning.text", d.named || d.run.first(), s.suffix, c.n), `,"text":"`...)
	d.named = true
	return append(jsonw.AppendText(dst, text), `"}]`...)
}

// endRun ends the run, if it has text or a signature.
func (s *Encoder) endRun(dst []byte, c *choiceState) []byte {
	d := &c.details
	if !d.begun {
		return dst
	}
	if d.on {
		if d.sign == nil {
			d.sign = s.opt.Signer.NewWriter(false)
		}
		dst = append(s.open(dst, c), `"reasoning_details":[`...)
		dst = d.run.appendEnd(dst, d.sign, d.named || d.run.first(), s.suffix, c.n)
		dst = s.close(append(dst, ']'))
		d.sign.Reset()
		d.run.sig = d.run.sig[:0]
	} else {
		d.late = append(d.late, d.run)
		d.run.sig = nil
	}
	d.run.text, d.run.flags, d.run.index = nil, 0, d.run.index+1
	d.begun, d.named = false, false
	return dst
}

// appendAnswerDetails appends the field reasoning_details of a response that is not streamed, if needed. calls are the
// calls that are sent.
func appendAnswerDetails(dst []byte, a *event.Answer, calls []wireCall, o *Options, suffix string, choice int32) []byte {
	var runs []outRun
	var at details.Position
	var hasText, refused bool
	for i := range a.Blocks {
		b := &a.Blocks[i]
		switch {
		case b.Kind == event.Text && len(b.Data) > 0 && !hasText:
			hasText = true
			at.Texts++
		case b.Kind == event.Refusal && len(b.Data) > 0 && !refused:
			refused = true
			at.Texts++
		case b.Kind == event.ToolStart && int(at.Calls) < len(calls) && calls[at.Calls].Block == b:
			at.Calls++
		case b.Kind == event.Reasoning && len(b.Data)+len(b.Signature) > 0:
			runs = append(runs, outRun{
				text: jsonw.AppendValid(nil, b.Data), sig: b.Signature, flags: b.Flags, at: at,
			})
		}
	}
	if n := len(runs); n == 0 || o.ReasoningDetails == DetailsInterleaved && runs[n-1].at == (details.Position{}) {
		return dst
	}
	dst = append(dst, `,"reasoning_details":[`...)
	var index int64
	for i := range runs {
		r := &runs[i]
		if i > 0 && len(r.text) > 0 { // as in a stream
			dst = append(appendSplit(dst, index), ',')
			index++
		}
		r.index = index
		index++
		for _, entry := range r.entries(o.Signer, r.first(), suffix, choice) {
			dst = append(append(dst, entry...), ',')
		}
	}
	dst[len(dst)-1] = ']'
	return dst
}
