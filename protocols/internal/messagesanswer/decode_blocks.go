// SPDX-License-Identifier: Apache-2.0

package messagesanswer

import (
	"bytes"
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/sigpack"
	"github.com/weft-go/weft/protocols/internal/streamdec"
)

const (
	maxOpen  = 64       // blocks that are open at the same time
	maxHeld  = 1 << 20  // bytes that all open blocks hold
	keepHeld = 64 << 10 // bytes of memory of a block that are kept for the next one
)

// inKind is the kind of a block.
type inKind uint8

const (
	inText inKind = iota + 1
	inThinking
	inCall
	inOther // other types
)

// inBlock is an open block.
type inBlock struct {
	kind    inKind
	made    bool // opened by a delta
	server  bool // inCall
	empty   bool // inCall: stopped without input
	fed     bool // a delta brought input or content
	json    bool // inOther: the deltas are input
	over    bool // inOther: exceeded maxHeld
	part    int32
	ordinal int32
	index   int64

	name  []byte // inCall: name of the tool; inOther: type
	held  []byte // from content_block_start: the signature, the input or, if inOther, the block
	input []byte // inOther: input or content so far
	extra []byte // inOther: encrypted content
	args  streamdec.ArgState
	half  streamdec.Halves
}

// index returns the index of a block, or 0 if absent.
func (d *Decoder) index(root jsonscan.Value) int64 {
	v := root.Get("index")
	n, ok := v.Int()
	if !ok && !v.IsNull() {
		d.in.Wrong(v, "an index")
	}
	return n
}

// blockStart opens a block.
func (d *Decoder) blockStart(index int64, v jsonscan.Value) {
	d.begin()
	d.endStopped()
	for i := 0; i < len(d.open); {
		if b := &d.open[i]; b.made || b.index == index {
			d.end(i, false)
			continue
		}
		i++
	}
	if len(d.open) == maxOpen {
		d.in.TooMany(v, "too many open blocks", "blocks", maxOpen)
		return
	}
	typ := d.in.Str(v.Get("type"))
	switch {
	case string(typ) == "redacted_thinking":
		d.emit(event.Event{Kind: event.Opaque, Part: d.in.NextPart(), Call: -1, ID: typ, Data: v.Raw()})
		return
	case bytes.HasSuffix(typ, []byte("tool_result")): // web_search_tool_result, mcp_tool_result and so on
		e := event.Event{Kind: event.ToolResult, Flags: event.Server, Part: d.in.NextPart(), Call: -1, Data: v.Raw()}
		if id := d.in.Str(v.Get("tool_use_id")); len(id) > 0 {
			e.ID = []byte(callid.Unescape(string(id)))
		}
		d.emit(e)
		return
	}
	b := d.push(inOther, index)
	switch string(typ) {
	case "text":
		b.kind = inText
		d.appendText(b, b.half.Text(&d.in.Doc, v.Get("text")))
		list := v.Get("citations")
		for c := list.First(); c.Exists(); c = list.Next(c) {
			d.cite(b, c)
		}
	case "thinking":
		b.kind = inThinking
		d.appendText(b, b.half.Text(&d.in.Doc, v.Get("thinking")))
		if sig := d.in.Str(v.Get("signature")); d.entire || !d.room(len(sig)) {
			d.sign(b, sig)
		} else {
			b.held = append(b.held, sig...)
		}
	case "tool_use", "server_tool_use":
		b.kind, b.server = inCall, len(typ) > len("tool_use")
		d.callStart(b, v)
	default:
		if b.name = append(b.name, typ...); d.entire || !d.room(len(v.Raw())) {
			d.pop(len(d.open) - 1)
			d.emit(event.Event{Kind: event.Opaque, Part: d.in.NextPart(), Call: -1, ID: typ, Data: v.Raw()})
			return
		}
		b.held = append(b.held, v.Raw()...)
	}
}

// room reports whether the open blocks can hold n more bytes.
func (d *Decoder) room(n int) bool {
	for i := range d.open {
		b := &d.open[i]
		n += len(b.held) + len(b.input) + len(b.extra)
	}
	return n <= maxHeld
}

// push adds an open block, reusing the memory of an earlier one.
func (d *Decoder) push(kind inKind, index int64) *inBlock {
	n := len(d.open)
	d.open = slices.Grow(d.open, 1)[:n+1]
	b := &d.open[n]
	*b = inBlock{
		kind: kind, index: index, part: -1,
		name: b.name[:0], held: b.held[:0], input: b.input[:0], extra: b.extra[:0],
	}
	return b
}

// pop removes a block from the list and keeps its memory.
func (d *Decoder) pop(i int) {
	b := d.open[i]
	if cap(b.held)+cap(b.input)+cap(b.extra) > keepHeld {
		b.held, b.input, b.extra = nil, nil, nil
	}
	copy(d.open[i:], d.open[i+1:])
	d.open[len(d.open)-1] = b
	d.open = d.open[:len(d.open)-1]
}

// appendText appends text of a block.
func (d *Decoder) appendText(b *inBlock, text []byte) {
	if len(text) == 0 {
		return
	}
	kind := event.Text
	if b.kind == inThinking {
		kind = event.Reasoning
	}
	d.emit(event.Event{Kind: kind, Part: d.in.Begun(&b.part), Call: -1, Data: text})
}

// cite appends a citation of a text.
func (d *Decoder) cite(b *inBlock, v jsonscan.Value) {
	if v.Kind() != jsonscan.Object {
		d.in.Wrong(v, "an object")
		return
	}
	if b.part < 0 {
		d.emit(event.Event{Kind: event.Text, Part: d.in.Begun(&b.part), Call: -1})
	}
	d.emit(event.Event{Kind: event.Annotation, Part: b.part, Call: -1, Data: v.Raw()})
}

// sign appends a signature.
func (d *Decoder) sign(b *inBlock, sig []byte) {
	if len(sig) > 0 {
		e := event.Event{Kind: event.Signature, Part: d.in.Begun(&b.part), Call: -1, Data: sig}
		if _, encrypted, signature, ok := sigpack.Open(string(sig)); ok {
			if e.Data = []byte(signature); encrypted != "" {
				e.Data, e.Flags = []byte(encrypted), event.Encrypted
			}
		}
		d.emit(e)
	}
}

// blockDelta decodes a content_block_delta.
func (d *Decoder) blockDelta(root jsonscan.Value) {
	v := d.in.Object(root, "delta")
	if !v.Exists() {
		return
	}
	index := d.index(root)
	switch typ := d.in.Str(v.Get("type")); string(typ) {
	case "text_delta":
		if b := d.find(index, inText); b != nil {
			d.appendText(b, d.in.Delta(&b.half, v.Get("text")))
		}
	case "thinking_delta":
		if b := d.find(index, inThinking); b != nil {
			d.appendText(b, d.in.Delta(&b.half, v.Get("thinking")))
		}
	case "signature_delta":
		if b := d.find(index, inThinking); b != nil {
			if sig := d.in.Str(v.Get("signature")); len(sig) > 0 {
				b.held = b.held[:0] // as in the official clients, it replaces the signature of the start
				d.sign(b, sig)
			}
		}
	case "citations_delta":
		if b := d.find(index, inText); b != nil {
			d.cite(b, v.Get("citation"))
		}
	case "input_json_delta":
		if b := d.find(index, inCall); b != nil {
			d.input(b, d.in.Delta(&b.half, v.Get("partial_json")))
		} else if d.in.Err == nil {
			off, _ := root.Span()
			d.in.Err = &block.Error{
				Kind: block.WrongType, Path: "index", Offset: int64(off), Msg: "no block that takes input is open with this index", Answer: true,
			}
		}
	case "compaction_delta":
		if b := d.find(index, inOther); b != nil {
			d.hold(b, &b.input, d.in.Str(v.Get("content")))
			d.hold(b, &b.extra, d.in.Str(v.Get("encrypted_content")))
			b.fed = len(b.input)+len(b.extra) > 0
		}
	}
}

// find returns the open block to which a delta belongs, or nil. It opens a block for text or thinking if necessary.
func (d *Decoder) find(index int64, kind inKind) *inBlock {
	accepts := func(b *inBlock) bool {
		return !b.empty && (b.kind == kind || kind == inCall && b.kind == inOther)
	}
	for i := range d.open {
		if b := &d.open[i]; b.index == index && accepts(b) {
			return b
		}
	}
	var last *inBlock
	n := 0
	for i := range d.open {
		if b := &d.open[i]; accepts(b) {
			last = b
			n++
		}
	}
	if n == 1 || n > 1 && kind != inCall { // input must not be added to another call
		return last
	}
	if kind != inText && kind != inThinking || len(d.open) == maxOpen {
		return nil
	}
	d.endStopped()
	b := d.push(kind, index)
	b.made = true
	return b
}

// callStart opens a call.
func (d *Decoder) callStart(b *inBlock, v jsonscan.Value) {
	b.name = append(b.name, d.in.Str(v.Get("name"))...)
	if len(b.name) > 0 {
		d.number(b)
		e := event.Event{Kind: event.ToolStart, Flags: b.flags(), Part: d.in.Begun(&b.part), Call: b.ordinal, Data: d.in.Keep(b.name)}
		if id := d.in.Str(v.Get("id")); len(id) > 0 {
			e.ID = []byte(callid.Unescape(string(id)))
		}
		d.emit(e)
	}
	in := v.Get("input")
	var args []byte
	switch in.Kind() {
	case jsonscan.String: // some servers send the input as JSON text
		args = d.in.Text(in)
	case jsonscan.Object:
		if in.First().Exists() {
			args = in.Raw()
		}
	case jsonscan.Absent, jsonscan.Null:
	default:
		args = in.Raw()
	}
	if d.entire || !d.room(len(args)) {
		d.args(b, args)
	} else {
		b.held = append(b.held, args...)
	}
}

// number assigns an ordinal to a call.
func (d *Decoder) number(b *inBlock) {
	b.ordinal = d.ordinals
	d.ordinals++
}

func (b *inBlock) flags() event.Flags {
	if b.server {
		return event.Server
	}
	return 0
}

// input decodes a delta of input.
func (d *Decoder) input(b *inBlock, text []byte) {
	if len(text) == 0 {
		return
	}
	b.fed = true
	if b.kind == inCall {
		b.held = b.held[:0]
		d.args(b, text)
		return
	}
	b.json = true
	b.args.Feed(text)
	d.hold(b, &b.input, text)
}

// args appends input of a call.
func (d *Decoder) args(b *inBlock, text []byte) {
	if len(text) == 0 {
		return
	}
	b.args.Feed(text)
	if len(b.name) > 0 {
		d.emit(event.Event{Kind: event.ToolArgs, Flags: b.flags(), Part: b.part, Call: b.ordinal, Data: text})
	}
}

// hold keeps what a delta brought to a block of another type.
func (d *Decoder) hold(b *inBlock, to *[]byte, text []byte) {
	if !b.over && !d.room(len(text)) {
		b.over = true
		if d.in.Err == nil {
			d.in.Err = &block.Error{
				Kind: block.LimitPassed, Path: "delta", Msg: "a block is too large", Limit: "bytes of a block", Max: maxHeld, Answer: true,
			}
		}
	}
	if !b.over {
		*to = append(*to, text...)
	}
}

// blockStop decodes a content_block_stop.
func (d *Decoder) blockStop(index int64) {
	for i := range d.open {
		if b := &d.open[i]; b.index == index && !b.empty {
			d.stop(i)
			return
		}
	}
	// An unknown index means the last opened block, unless that is a call whose input is incomplete.
	if n := len(d.open) - 1; n >= 0 && !d.entire {
		if b := &d.open[n]; b.kind != inCall || b.args.Complete() {
			d.stop(n)
		}
	}
}

// stop ends the block d.open[i], or marks it as empty if it is a call without input.
func (d *Decoder) stop(i int) {
	if b := &d.open[i]; b.bare() && len(b.name) > 0 {
		b.empty = true
		return
	}
	d.end(i, false)
}

// bare reports whether b is a call without input.
func (b *inBlock) bare() bool { return b.kind == inCall && len(b.held) == 0 && b.args.Empty() }

// endStopped ends the calls without input that have stopped, because other output follows.
func (d *Decoder) endStopped() {
	for i := 0; i < len(d.open); {
		if d.open[i].empty {
			d.end(i, false)
			continue
		}
		i++
	}
}

// closeAll ends all blocks at the end of the response. If the token limit ended the response, a call without input at
// its end was cut off.
func (d *Decoder) closeAll() {
	cut := d.why == event.Length || d.why == event.ContextFull
	for len(d.open) > 0 {
		d.end(0, cut && len(d.open) == 1 && d.open[0].bare())
	}
}

// abort ends all blocks of a response that was cut off.
func (d *Decoder) abort() {
	for len(d.open) > 0 {
		d.end(0, true)
	}
}

// end ends the block d.open[i]. cut specifies that it is incomplete even if its input is valid.
func (d *Decoder) end(i int, cut bool) {
	b := &d.open[i]
	defer d.pop(i)
	switch b.kind {
	case inText:
		d.appendText(b, b.half.Flush())
	case inThinking:
		d.appendText(b, b.half.Flush())
		d.sign(b, d.in.Keep(b.held))
	case inCall:
		d.endCall(b, cut)
	default:
		d.endOther(b, cut)
	}
}

func (d *Decoder) endCall(b *inBlock, cut bool) {
	if len(b.held) > 0 {
		d.args(b, d.in.Keep(b.held))
	}
	if rest := b.half.Flush(); len(rest) > 0 {
		d.args(b, rest)
	}
	if len(b.name) == 0 {
		d.number(b)
	}
	e := event.Event{Kind: event.ToolAbort, Flags: b.flags(), Part: d.in.Begun(&b.part), Call: b.ordinal}
	switch {
	case cut:
		e.Why = event.Truncated
	case len(b.name) == 0:
		e.Why = event.BadName
	case b.args.Empty():
		d.args(b, []byte("{}"))
	case b.args.Broken() || !b.args.Object():
		e.Why = event.BadArguments
	case !b.args.Complete():
		e.Why = event.Truncated
	}
	if e.Why == event.None {
		e.Kind, e.Flags = event.ToolEnd, e.Flags|event.Complete
		if !b.server {
			d.complete++
		}
	} else if len(b.name) > 0 {
		e.Data = d.in.Keep(b.name)
	}
	d.emit(e)
}

// endOther sends a block of another type, with what its deltas brought.
func (d *Decoder) endOther(b *inBlock, cut bool) {
	raw := b.held
	switch {
	case b.over, cut && b.fed:
		return
	case !b.fed:
		raw = d.in.Keep(raw)
	case b.json:
		if !b.args.Object() || !b.args.Complete() {
			return
		}
		raw = replaced(raw, "input", b.input)
	default: // compaction
		if len(b.input) > 0 {
			raw = replaced(raw, "content", jsonw.AppendString(nil, b.input))
		}
		if len(b.extra) > 0 {
			raw = replaced(raw, "encrypted_content", jsonw.AppendString(nil, b.extra))
		}
	}
	d.emit(event.Event{Kind: event.Opaque, Part: d.in.Begun(&b.part), Call: -1, ID: d.in.Keep(b.name), Data: raw})
}

// replaced returns the object raw with the given value of a field, which is added if absent.
func replaced(raw []byte, name string, value []byte) []byte {
	from, to := -1, 0
	jsonw.Members(raw, func(key, v []byte) bool {
		if string(key[1:len(key)-1]) == name {
			from = cap(raw) - cap(v) // v is a subslice of raw
			to = from + len(v)
		}
		return from < 0
	})
	if from >= 0 {
		return slices.Concat(raw[:from], value, raw[to:])
	}
	end := bytes.LastIndexByte(raw, '}')
	member := slices.Concat([]byte(`"`+name+`":`), value)
	if len(bytes.TrimSpace(raw[1:end])) > 0 {
		member = append([]byte{','}, member...)
	}
	return slices.Concat(raw[:end], member, raw[end:])
}
