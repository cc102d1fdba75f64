// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"slices"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seal"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// maxKept is the greatest number of items and parts of one answer. It bounds memory, and the time to find one.
const maxKept = 4096

// inKind is what an item is read as.
type inKind uint8

const (
	inMessage inKind = iota + 1
	inReasoning
	inFunction
	inCustom
	inOther // not modelled
)

// inForm is what a part of an item is read as. The zero inForm is none.
type inForm uint8

const (
	inText inForm = iota + 1
	inRefusal
	inRaw     // reasoning_text
	inSummary // summary_text
)

// kind returns the kind of the items that have parts of the form.
func (f inForm) kind() inKind {
	if f >= inRaw {
		return inReasoning
	}
	return inMessage
}

// inItem is an item of the answer.
type inItem struct {
	kind    inKind
	done    bool   // it was read as a whole: its done event, or the last response
	matched bool   // it was found in the last response
	signed  bool   // reasoning: its signature was sent
	form    inForm // reasoning: what its text is read from
	part    int32  // reasoning: part of the events, -1 before the first
	said    bool   // reasoning: there was text
	call    int32  // place in calls, -1 if it is none

	id, callID uint64 // hashes, 0 for none
	typ        uint64 // inOther: hash of its type
	index      int64  // output_index, -1 if unknown
}

// inPart is a part of an item: text that is sent in deltas.
type inPart struct {
	item  int32
	form  inForm
	full  bool  // the event that repeats its text was read
	part  int32 // of the events, -1 before the first; not for reasoning
	notes int   // annotations so far
	probs int   // elements of log probabilities so far
	index int64 // content_index or summary_index
	text  seal.Seal
	half  streamdec.Halves
}

// kindOf returns what an item is read as.
func (d *StreamDecoder) kindOf(item jsonscan.Value) inKind {
	switch typ := d.in.Str(item.Get("type")); string(typ) {
	case "message":
		return inMessage
	case "reasoning":
		return inReasoning
	case "function_call":
		return inFunction
	case "custom_tool_call":
		return inCustom
	case "":
		if item.Get("role").Exists() {
			return inMessage
		}
	}
	return inOther
}

// hash returns the FNV-1a hash of an id, 0 for an empty one.
func hash(id []byte) uint64 {
	if len(id) == 0 {
		return 0
	}
	h := uint64(14695981039346656037)
	for _, c := range id {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return max(h, 1)
}

// place is what an event or an item says about which item it is.
type place struct {
	id, callID, typ uint64
	index           int64
	final           bool // it ends the item, or the arguments of a call
}

// match returns the item of kind that p names: any with its id, else the open one with its index; -1 if there is none.
func (d *StreamDecoder) match(kind inKind, p place) int32 {
	if p.id != 0 || p.callID != 0 {
		for i := len(d.items) - 1; i >= 0; i-- {
			if it := &d.items[i]; it.kind == kind && it.has(p) {
				return int32(i)
			}
		}
	}
	if p.index >= 0 {
		for _, i := range slices.Backward(d.open) {
			if it := &d.items[i]; it.kind == kind && it.typ == p.typ && it.index == p.index {
				return i
			}
		}
	}
	return -1
}

// has reports whether an id of p is the item's. Some servers use the call_id as item_id.
func (it *inItem) has(p place) bool {
	return p.id != 0 && (it.id == p.id || it.callID == p.id) || p.callID != 0 && it.callID == p.callID
}

// find is match, else it returns the open item of kind that p most likely means: there are servers that leave out ids and
// indices, or make up new ones. -1 is an item that was not there before.
func (d *StreamDecoder) find(kind inKind, p place) int32 {
	if i := d.match(kind, p); i >= 0 {
		return i
	}
	// A delta is for the item that opened last. What ends calls comes in the order in which they opened.
	for k := range d.open {
		i := d.open[k]
		if !p.final {
			i = d.open[len(d.open)-1-k]
		}
		it := &d.items[i]
		if it.kind != kind || it.typ != p.typ {
			continue
		}
		ids, indices := p.id != 0 && it.id != 0, p.index >= 0 && it.index >= 0 // they differ where both are known
		if it.call < 0 {
			if ids && indices {
				continue
			}
		} else if ids || indices || p.callID != 0 && it.callID != 0 || d.calls[it.call].final {
			continue // arguments must not end up in another call
		}
		return i
	}
	return -1
}

// add opens an item, -1 if there are too many.
func (d *StreamDecoder) add(kind inKind, p place, at jsonscan.Value) int32 {
	if d.crowded(at) {
		return -1
	}
	it := inItem{kind: kind, part: -1, call: -1, id: p.id, callID: p.callID, typ: p.typ, index: p.index}
	if kind == inFunction || kind == inCustom {
		it.call = d.addCall(kind == inCustom)
	}
	n := int32(len(d.items))
	d.items = append(d.items, it)
	d.open = append(d.open, n)
	return n
}

// crowded notes when no more items and parts are taken in.
func (d *StreamDecoder) crowded(at jsonscan.Value) bool {
	if len(d.items)+len(d.texts) < maxKept {
		return false
	}
	d.in.TooMany(at, "too many output items and parts", "items and parts", maxKept)
	return true
}

// close marks an item as done.
func (d *StreamDecoder) close(i int32) {
	d.items[i].done = true
	if k := slices.Index(d.open, i); k >= 0 {
		d.open = slices.Delete(d.open, k, k+1)
	}
}

// placeOf returns the kind of an item and what it says about which one it is.
func (d *StreamDecoder) placeOf(item jsonscan.Value, index int64) (inKind, place) {
	kind := d.kindOf(item)
	p := place{id: hash(d.in.Str(item.Get("id"))), index: index}
	switch kind {
	case inFunction, inCustom:
		p.callID = hash(d.in.Str(item.Get("call_id")))
	case inOther:
		p.typ = hash(d.in.Str(item.Get("type")))
	}
	return kind, p
}

// itemAdded reads response.output_item.added. What the item holds already comes again when it is done, except that
// arguments are kept for servers that send them here alone.
func (d *StreamDecoder) itemAdded(root jsonscan.Value) {
	item := d.in.Object(root, "item")
	if !item.Exists() {
		return
	}
	kind, p := d.placeOf(item, d.index(root.Get("output_index")))
	d.begin(jsonscan.Value{})
	i := int32(-1)
	for _, k := range d.open {
		if it := &d.items[k]; p.id != 0 && it.id == p.id && it.kind == kind {
			i = k // its deltas came before it, or it is added twice
		}
	}
	if i < 0 {
		if i = d.add(kind, p, item); i < 0 {
			return
		}
	}
	if d.items[i].call >= 0 {
		d.items[i].callID = p.callID
		d.callAdded(&d.calls[d.items[i].call], item)
	}
}

// itemDone reads response.output_item.done.
func (d *StreamDecoder) itemDone(root jsonscan.Value) {
	item := d.in.Object(root, "item")
	if !item.Exists() {
		return
	}
	kind, p := d.placeOf(item, d.index(root.Get("output_index")))
	p.final = true
	d.begin(jsonscan.Value{})
	i := d.find(kind, p)
	if i < 0 {
		if i = d.add(kind, p, item); i < 0 {
			return
		}
	}
	d.whole(i, item)
}

// whole reads an item that is complete: it sends what was not sent before.
func (d *StreamDecoder) whole(i int32, item jsonscan.Value) {
	it := &d.items[i]
	if it.done {
		return
	}
	if it.id == 0 {
		it.id = hash(d.in.Str(item.Get("id")))
	}
	switch it.kind {
	case inMessage:
		d.message(i, item)
	case inReasoning:
		d.reasoning(i, item)
	case inFunction, inCustom:
		d.callDone(&d.calls[it.call], item)
	default:
		d.opaque(item)
	}
	d.flush(i)
	d.close(i)
}

// output reads the items of the last response. Those that came before are told from new ones by id, by place, or by their
// order among those of their kind.
func (d *StreamDecoder) output(list jsonscan.Value) {
	if list.Kind() != jsonscan.Array {
		if !list.IsNull() {
			d.in.Wrong(list, "an array")
		}
		return
	}
	before := len(d.items)
	n := int64(-1)
	for v := list.First(); v.Exists(); v = list.Next(v) {
		n++
		if v.Kind() != jsonscan.Object {
			d.in.Wrong(v, "an object")
			continue
		}
		kind, p := d.placeOf(v, n)
		i := d.seen(before, kind, p, v)
		if i < 0 {
			if i = d.add(kind, p, v); i < 0 {
				return
			}
		}
		d.items[i].matched = true
		d.whole(i, v)
	}
}

// seen returns which of the first n items the item v at p of the last response is, -1 if it is new.
func (d *StreamDecoder) seen(n int, kind inKind, p place, v jsonscan.Value) int32 {
	by := func(same func(it *inItem) bool) int32 {
		for i := range d.items[:n] {
			it := &d.items[i]
			if it.kind == kind && it.typ == p.typ && !it.matched && same(it) {
				return int32(i)
			}
		}
		return -1
	}
	// The call_id tells calls apart. Item ids do not: there are servers that make new ones for the last response.
	may := func(it *inItem) bool { return it.callID == 0 || p.callID == 0 || it.callID == p.callID }
	i := by(func(it *inItem) bool { return it.has(p) })
	if i < 0 {
		i = by(func(it *inItem) bool { return it.index == p.index && (may(it) || d.sameArgs(&d.calls[it.call], v)) })
	}
	if i < 0 {
		i = by(may)
	}
	return i
}

// opaque sends an item that is not modelled.
func (d *StreamDecoder) opaque(item jsonscan.Value) {
	e := event.Event{Kind: event.Opaque, Part: d.in.NextPart(), Call: -1, ID: d.in.Str(item.Get("type")), Data: item.Raw()}
	if id := item.Get("call_id"); bytes.HasSuffix(e.ID, []byte("_output")) && id.Kind() == jsonscan.String {
		e.Kind, e.Flags, e.ID = event.ToolResult, event.Server, d.in.Text(id)
	}
	d.emit(e)
}
