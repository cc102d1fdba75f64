// SPDX-License-Identifier: Apache-2.0

package responsesanswer

import (
	"slices"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seal"
	"github.com/weft-go/weft/protocols/internal/sigpack"
)

// at returns the part of the given form to which an event belongs, or nil if its item is done. It opens the part if
// necessary.
func (d *Decoder) at(root jsonscan.Value, form inForm, final bool) *inPart {
	p := d.eventKey(root)
	p.final = final
	i := d.find(form.kind(), p)
	if i < 0 {
		i = d.add(form.kind(), p, root)
	}
	if i < 0 || d.items[i].done {
		return nil
	}
	index := root.Get("content_index")
	if form == inSummary {
		index = root.Get("summary_index")
	}
	return d.part(i, form, d.index(index), final)
}

// eventKey returns the key of the item to whose part an event belongs.
func (d *Decoder) eventKey(root jsonscan.Value) itemKey {
	return itemKey{id: hash(d.in.Str(root.Get("item_id"))), index: d.index(root.Get("output_index"))}
}

// part returns a part of an item, or nil if there are too many. An index of -1 means the last part or, for a delta if
// that part is full, a new one.
func (d *Decoder) part(item int32, form inForm, index int64, final bool) *inPart {
	next := int64(0)
	for k := len(d.texts) - 1; k >= 0; k-- {
		p := &d.texts[k]
		if p.item != item || p.form != form {
			continue
		}
		if p.index == index || index < 0 && (final || !p.full) {
			return p
		}
		next = max(next, p.index+1)
	}
	if d.crowded(jsonscan.Value{}) {
		return nil
	}
	if index < 0 {
		index = next
	}
	d.texts = append(d.texts, inPart{item: item, form: form, part: -1, index: index})
	return &d.texts[len(d.texts)-1]
}

func (d *Decoder) textDelta(root jsonscan.Value, form inForm) {
	p := d.at(root, form, false)
	if p == nil || p.full {
		return
	}
	if form == inText {
		if l := root.Get("logprobs"); l.Kind() == jsonscan.Array && l.First().Exists() {
			d.probs(p, l.Raw(), l.Len())
		}
	}
	v := root.Get("delta")
	if v.Kind() == jsonscan.Object { // in previews of the API
		v = v.Get("text")
	}
	d.appendText(p, d.in.Delta(&p.half, v))
}

// appendText appends text of a part.
func (d *Decoder) appendText(p *inPart, text []byte) {
	it := &d.items[p.item]
	if len(text) == 0 || it.kind == inReasoning && it.form != 0 && it.form != p.form {
		return
	}
	e := event.Event{Call: -1, Data: text}
	switch p.form {
	case inText:
		e.Kind = event.Text
	case inRefusal:
		e.Kind, d.refused = event.Refusal, true
	default:
		e.Kind = event.Reasoning
		it.form = p.form
		e.Part = d.in.Begun(&it.part)
		if p.text.Len() == 0 && it.hasText {
			d.emit(event.Event{Kind: event.Reasoning, Part: e.Part, Call: -1, Data: []byte("\n\n")})
		}
		it.hasText = true
		p.text.Add(text)
		d.emit(e)
		return
	}
	e.Part = d.in.Begun(&p.part)
	p.text.Add(text)
	d.emit(e)
}

// rest returns the part of text after the bytes that were sent, or nil if they differ from the start of text.
func rest(sent seal.Seal, text []byte) []byte {
	n := int(sent.Len())
	if len(text) <= n {
		return nil
	}
	var s seal.Seal
	if s.Add(text[:n]); n > 0 && !s.Equal(&sent) {
		return nil
	}
	return text[n:]
}

// fill appends the rest of the complete text of a part.
func (d *Decoder) fill(p *inPart, v jsonscan.Value) {
	text := d.in.Str(v)
	if len(text) == 0 {
		return
	}
	p.full = true
	if more := rest(p.text, text); len(more) > 0 {
		p.half.Drop()
		d.appendText(p, more)
	}
}

func (d *Decoder) textDone(root jsonscan.Value, form inForm, text jsonscan.Value) {
	p := d.at(root, form, true)
	if p == nil {
		return
	}
	if form == inText {
		d.moreProbs(p, root.Get("logprobs"))
	}
	d.fill(p, text)
}

// partDone reads the event that ends a part of any form.
func (d *Decoder) partDone(root jsonscan.Value) {
	part := d.in.Object(root, "part")
	form := formOf(d.in.Str(part.Get("type")))
	if p := d.eventKey(root); form == inText && d.match(inMessage, p) < 0 && d.match(inReasoning, p) >= 0 {
		form = inRaw // seen from vLLM
	}
	if form == 0 {
		return // the whole item has it
	}
	if p := d.at(root, form, true); p != nil {
		d.fillPart(p, part)
	}
}

// formOf returns the form of a part of the given type, or 0 if it is not modeled.
func formOf(typ []byte) inForm {
	switch string(typ) {
	case "output_text", "text":
		return inText
	case "refusal":
		return inRefusal
	case "reasoning_text":
		return inRaw
	case "summary_text":
		return inSummary
	}
	return 0
}

// fillPart appends the rest of a complete part.
func (d *Decoder) fillPart(p *inPart, part jsonscan.Value) {
	if p.form == inRefusal {
		d.fill(p, part.Get("refusal"))
		return
	}
	if p.form == inText {
		d.moreProbs(p, part.Get("logprobs"))
	}
	d.fill(p, part.Get("text"))
	if p.form != inText {
		return
	}
	list := part.Get("annotations")
	n := 0
	for v := list.First(); v.Exists(); v = list.Next(v) {
		if n++; n > p.notes {
			d.note(p, v)
		}
	}
}

func (d *Decoder) annotation(root jsonscan.Value) {
	p := d.at(root, inText, false)
	v := d.in.Object(root, "annotation")
	if p == nil || !v.Exists() {
		return
	}
	d.note(p, v)
}

// note appends an annotation, if the part is text.
func (d *Decoder) note(p *inPart, v jsonscan.Value) {
	if v.Kind() != jsonscan.Object {
		d.in.Wrong(v, "an object")
		return
	}
	if p.part < 0 {
		d.emit(event.Event{Kind: event.Text, Part: d.in.Begun(&p.part), Call: -1})
	}
	p.notes++
	d.emit(event.Event{Kind: event.Annotation, Part: p.part, Call: -1, Data: v.Raw()})
}

// moreProbs appends the log probabilities of a complete text that its deltas did not contain.
func (d *Decoder) moreProbs(p *inPart, list jsonscan.Value) {
	if list.Kind() != jsonscan.Array {
		return
	}
	n := 0
	for v := list.First(); v.Exists(); v = list.Next(v) {
		if n++; n <= p.probs {
			continue
		}
		raw := list.Raw()
		if p.probs > 0 {
			from, _ := v.Span()
			_, end := list.Span()
			raw = d.in.Keep(slices.Concat([]byte{'['}, list.Doc().Body()[from:end]))
		}
		d.probs(p, raw, list.Len()-p.probs)
		return
	}
}

// probs appends n log probabilities.
func (d *Decoder) probs(p *inPart, raw []byte, n int) {
	p.probs += n
	d.emit(event.Event{Kind: event.Logprobs, Part: d.in.Begun(&p.part), Call: -1, Data: raw})
}

// message decodes the parts of a complete message.
func (d *Decoder) message(i int32, item jsonscan.Value) {
	list := item.Get("content")
	if list.Kind() == jsonscan.String { // sent by some servers for messages with one text
		if p := d.part(i, inText, 0, true); p != nil {
			d.fill(p, list)
		}
		return
	}
	if list.Kind() != jsonscan.Array && !list.IsNull() {
		d.in.Wrong(list, "an array")
	}
	n, all := int64(-1), int64(list.Len())
	for v := list.First(); v.Exists(); v = list.Next(v) {
		n++
		if v.Kind() != jsonscan.Object {
			d.in.Wrong(v, "an object")
			continue
		}
		form := formOf(d.in.Str(v.Get("type")))
		if form != inText && form != inRefusal { // not modeled: a separate message
			raw := append([]byte(`{"type":"message","role":"assistant","content":[`), v.Raw()...)
			raw = append(raw, "]}"...)
			d.emit(event.Event{Kind: event.Opaque, Part: d.in.NextPart(), Call: -1, ID: []byte("message"), Data: raw})
			continue
		}
		p := d.alike(i, form, n, all)
		if p == nil {
			return
		}
		d.fillPart(p, v)
	}
}

// alike returns the part that corresponds to the part at index in the complete item, which has n parts: the part with
// that index, or else a part whose index the complete item does not have, because some servers number parts
// differently.
func (d *Decoder) alike(item int32, form inForm, index, n int64) *inPart {
	var stray *inPart
	for k := range d.texts {
		p := &d.texts[k]
		switch {
		case p.item != item || p.form != form:
		case p.index == index:
			return p
		case stray == nil && p.index >= n:
			stray = p
		}
	}
	if stray != nil {
		stray.index = index
		return stray
	}
	return d.part(item, form, index, true)
}

// reasoning decodes a complete reasoning item.
func (d *Decoder) reasoning(i int32, item jsonscan.Value) {
	it := &d.items[i]
	content, summary := item.Get("content"), item.Get("summary")
	if it.form == 0 {
		if it.form = inSummary; d.hasText(content) {
			it.form = inRaw
		}
	}
	list := summary
	if it.form == inRaw {
		list = content
	}
	switch list.Kind() {
	case jsonscan.String:
		if p := d.part(i, it.form, 0, true); p != nil {
			d.fill(p, list)
		}
	case jsonscan.Array:
		n, all := int64(-1), int64(list.Len())
		for v := list.First(); v.Exists(); v = list.Next(v) {
			n++
			if v.Kind() != jsonscan.Object {
				d.in.Wrong(v, "an object")
				continue
			}
			p := d.alike(i, it.form, n, all)
			if p == nil {
				break
			}
			d.fill(p, v.Get("text"))
		}
	case jsonscan.Absent, jsonscan.Null:
	default:
		d.in.Wrong(list, "an array")
	}
	if sig := d.in.Str(item.Get("encrypted_content")); len(sig) > 0 && !it.signed {
		it.signed = true
		e := event.Event{Kind: event.Signature, Flags: event.Encrypted, Part: d.in.Begun(&it.part), Call: -1, Data: sig}
		if _, encrypted, signature, ok := sigpack.Open(string(sig)); ok {
			if e.Data = []byte(encrypted); signature != "" {
				e.Data, e.Flags = []byte(signature), 0
			}
		}
		d.emit(e)
	}
}

// hasText reports whether content of reasoning is not empty.
func (d *Decoder) hasText(list jsonscan.Value) bool {
	if list.Kind() == jsonscan.String {
		return len(d.in.Text(list)) > 0
	}
	for v := list.First(); v.Exists(); v = list.Next(v) {
		if t := v.Get("text"); t.Kind() == jsonscan.String && len(d.in.Text(t)) > 0 {
			return true
		}
	}
	return false
}

// flush appends U+FFFD for each high surrogate that is held for an item, or for all items if item is -1.
func (d *Decoder) flush(item int32) {
	for k := range d.texts {
		if p := &d.texts[k]; item < 0 || p.item == item {
			d.appendText(p, p.half.Flush())
		}
	}
}
