// SPDX-License-Identifier: Apache-2.0

package responsesanswer

import (
	"bytes"
	"slices"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seal"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

// maxKept is the maximum number of items and parts of a response. It bounds memory and the time to find one.
const maxKept = 4096

// inKind is the kind of an item.
type inKind uint8

const (
	inMessage inKind = iota + 1
	inReasoning
	inFunction
	inCustom
	inOther // other types
)

// inForm is the form of a part of an item. The zero inForm is not valid.
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

// inItem is the state of an item.
type inItem struct {
	kind    inKind
	done    bool   // its done event or the last response was decoded
	matched bool   // it was found in the last response
	signed  bool   // reasoning: its signature was sent
	form    inForm // reasoning: form of its text
	part    int32  // reasoning: part of the events, -1 before the first
	hasText bool   // reasoning: text has arrived
	call    int32  // index in calls, or -1

	id, callID uint64 // hashes; 0 if absent
	typ        uint64 // inOther: hash of its type
	index      int64  // output_index, -1 if unknown
}

// inPart is the state of a part of an item.
type inPart struct {
	item  int32
	form  inForm
	full  bool  // the event that repeats its text was decoded
	part  int32 // of the events, -1 before the first; not for reasoning
	notes int   // annotations so far
	probs int   // elements of log probabilities so far
	index int64 // content_index or summary_index
	text  seal.Seal
	half  streamdec.Halves
}

// kindOf returns the kind of an item.
func (d *Decoder) kindOf(item jsonscan.Value) inKind {
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

// hash returns the FNV-1a hash of an ID, or 0 if it is empty.
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

// itemKey identifies an item in an event.
type itemKey struct {
	id, callID, typ uint64
	index           int64
	final           bool // it ends the item, or the arguments of a call
}

// match returns the item of the given kind with the ID in p, else the open item with its index, else -1.
func (d *Decoder) match(kind inKind, p itemKey) int32 {
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

// has reports whether the item has an ID of p. Some servers use the call_id as item_id.
func (it *inItem) has(p itemKey) bool {
	return p.id != 0 && (it.id == p.id || it.callID == p.id) || p.callID != 0 && it.callID == p.callID
}

// find returns the result of match or else the most likely open item of the given kind, because some servers omit IDs
// and indexes or send new ones. It returns -1 for a new item.
func (d *Decoder) find(kind inKind, p itemKey) int32 {
	if i := d.match(kind, p); i >= 0 {
		return i
	}
	// A delta belongs to the last opened item. Events that end calls arrive in the order in which the calls opened.
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
			continue // arguments must not be added to another call
		}
		return i
	}
	return -1
}

// add opens an item and returns its index, or -1 if there are too many.
func (d *Decoder) add(kind inKind, p itemKey, at jsonscan.Value) int32 {
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

// crowded reports whether the limit of items and parts is reached, and records the error.
func (d *Decoder) crowded(at jsonscan.Value) bool {
	if len(d.items)+len(d.texts) < maxKept {
		return false
	}
	d.in.TooMany(at, "too many output items and parts", "items and parts", maxKept)
	return true
}

// close marks an item as done.
func (d *Decoder) close(i int32) {
	d.items[i].done = true
	if k := slices.Index(d.open, i); k >= 0 {
		d.open = slices.Delete(d.open, k, k+1)
	}
}

// keyOf returns the kind and the key of an item.
func (d *Decoder) keyOf(item jsonscan.Value, index int64) (inKind, itemKey) {
	kind := d.kindOf(item)
	p := itemKey{id: hash(d.in.Str(item.Get("id"))), index: index}
	switch kind {
	case inFunction, inCustom:
		p.callID = hash(d.in.Str(item.Get("call_id")))
	case inOther:
		p.typ = hash(d.in.Str(item.Get("type")))
	}
	return kind, p
}

// itemAdded decodes response.output_item.added. The contents of the item are ignored, because the done item repeats
// them, except that arguments are kept for servers that send them only here.
func (d *Decoder) itemAdded(root jsonscan.Value) {
	item := d.in.Object(root, "item")
	if !item.Exists() {
		return
	}
	kind, p := d.keyOf(item, d.index(root.Get("output_index")))
	d.begin(jsonscan.Value{})
	i := int32(-1)
	for _, k := range d.open {
		if it := &d.items[k]; p.id != 0 && it.id == p.id && it.kind == kind {
			i = k // its deltas arrived before, or it is added twice
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

// itemDone decodes response.output_item.done.
func (d *Decoder) itemDone(root jsonscan.Value) {
	item := d.in.Object(root, "item")
	if !item.Exists() {
		return
	}
	kind, p := d.keyOf(item, d.index(root.Get("output_index")))
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

// whole decodes a complete item and appends events for the contents that were not in earlier events.
func (d *Decoder) whole(i int32, item jsonscan.Value) {
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

// output decodes the items of the last response. Known items are identified by ID, by index or by their order in their
// kind.
func (d *Decoder) output(list jsonscan.Value) {
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
		kind, p := d.keyOf(v, n)
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

// seen returns the index, among the first n items, of item v of the last response, or -1 if it is new.
func (d *Decoder) seen(n int, kind inKind, p itemKey, v jsonscan.Value) int32 {
	by := func(same func(it *inItem) bool) int32 {
		for i := range d.items[:n] {
			it := &d.items[i]
			if it.kind == kind && it.typ == p.typ && !it.matched && same(it) {
				return int32(i)
			}
		}
		return -1
	}
	// Calls are identified by call_id. Item ids do not suffice, because some servers send new ones in the last
	// response.
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

// opaque appends an item of another type.
func (d *Decoder) opaque(item jsonscan.Value) {
	e := event.Event{Kind: event.Opaque, Part: d.in.NextPart(), Call: -1, ID: d.in.Str(item.Get("type")), Data: item.Raw()}
	if id := item.Get("call_id"); bytes.HasSuffix(e.ID, []byte("_output")) && id.Kind() == jsonscan.String {
		e.Kind, e.Flags, e.ID = event.ToolResult, event.Server, d.in.Text(id)
	}
	d.emit(e)
}
