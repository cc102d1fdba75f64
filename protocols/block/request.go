// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Request is a request that was decoded from one of the APIs or built with [NewRequest].
//
// A decoded request owns its body and never writes to it. Methods read its contents. Edits are recorded as changes of
// the body. [Request.AppendBody] copies the body with these changes, so everything that was not edited is preserved byte
// for byte.
//
// A Request is not safe for concurrent use by multiple goroutines, with one exception. Any number of goroutines may
// read a request that was never edited, or not since the last call to [Request.Commit].
type Request struct {
	dialect dialect
	limits  Limits
	doc     *jsonscan.Doc
	edits   *jsonscan.Edits // nil: none
	dirty   bool            // view is older than edits
	hold    hold
	view    view
	ids     int32 // last position assigned in a request without a body
	err     error // why the edited body could not be parsed

	// What the request was decoded from and into. It is never modified.
	first decoded

	// Set for detached requests, which have a dialect and no doc.
	rest    *residue       // of the fields other than turns and tools
	lost    []Loss         // losses of any conversion
	marked  map[Ref]string // paths of blocks and tools with cache marks
	also    []string       // fields that the body has under their alternative names
	toolsAs string         // the field with the tools
	extra   *jsonscan.Doc  // the parts that only rest holds, as one object
}

// load replaces the body and everything read from it. It takes over what the body has in common with the one that was
// decoded first. Without that, the request takes ownership of body.
func (r *Request) load(body []byte) error {
	l := r.limits
	lim := jsonscan.Limits{Bytes: l.Body, Depth: l.Depth, Values: l.Values, Opaque: opaque}
	var doc *jsonscan.Doc
	var copies *jsonscan.Copies
	var err error
	if r.first.doc == nil {
		doc, err = jsonscan.Scan(body, lim)
	} else {
		doc, copies, err = jsonscan.ScanNext(r.first.doc, body, lim)
	}
	if err != nil {
		return scanError(err)
	}
	var p *past
	if copies != nil {
		p = &past{Copies: copies, Turns: r.first.turns, Tools: r.first.tools, Decoding: r.first.Decoding, Edited: r.doc != nil}
	}
	view, err := r.dialect.Read(doc.Root(), l, p)
	if err != nil {
		return err
	}
	r.doc, r.edits, r.dirty, r.err, r.view = doc, nil, false, nil, view
	r.hold = hold{turns: true, marked: true}
	parts := doc.Parts()
	for _, i := range view.Moved {
		view.Turns[i].settle(doc, &parts)
	}
	for i := range view.Turns {
		if t := &view.Turns[i]; t.At.doc == pending {
			t.settle(doc, &parts)
		}
	}
	for i := range view.Tools {
		view.Tools[i].At = view.Tools[i].At.in(doc)
	}
	markTurns(r.view.Turns, r.view.Shared)
	nameTools(r.view.Tools)
	r.hold.turns = false
	return nil
}

// derive removes the deleted turns from the view. Then it recomputes the kinds of turns and the names of tools, which depend on
// the whole view. The tools of a request with a body change only with the body.
func (r *Request) derive() {
	if len(r.hold.gone) > 0 {
		kept := make([]Turn, 0, len(r.view.Turns)-len(r.hold.gone))
		for i := range r.view.Turns {
			if !r.hold.gone[i] {
				kept = append(kept, r.view.Turns[i])
			}
		}
		r.setTurns(kept)
	}
	r.hold.marked = true
	markTurns(r.mine(), 0)
	if r.doc == nil {
		nameTools(r.view.Tools)
	}
}

// ready updates the view after edits, including derived values.
func (r *Request) ready() {
	r.fresh()
	if !r.hold.marked {
		r.derive()
	}
}

// hold records which slices of the view the request may write in place and which a caller may hold. Thus an edit copies
// a list only once; later edits of it cost a lookup.
type hold struct {
	turns  bool            // the turns were copied after they were last returned
	blocks map[int]bool    // turns whose blocks were copied since then
	where  map[int32]int32 // turn number by position; nil if not yet computed
	marked bool            // derived values are up to date
	grown  map[int]bool    // turns of a body into which blocks were inserted
	gone   map[int]bool    // deleted turns that the view still has, so that deleting many of them moves the others once

	origins bool // the origins of turns were copied

	searches int // lookups of positions without where
}

// note adds turn number i to a set.
func note(set *map[int]bool, i int) {
	if *set == nil {
		*set = make(map[int]bool)
	}
	(*set)[i] = true
}

// mine returns turns that may be written.
func (r *Request) mine() []Turn {
	if !r.hold.turns {
		r.view.Turns = slices.Clone(r.view.Turns)
		r.hold.turns, r.hold.blocks = true, nil
	}
	return r.view.Turns
}

// mineAt returns turn number i, which the caller changes.
func (r *Request) mineAt(i int) *Turn {
	if list := r.view.Origins; list != nil && list[i] != nil {
		if !r.hold.origins {
			r.view.Origins, r.hold.origins = slices.Clone(list), true
		}
		r.view.Origins[i] = nil
	}
	return &r.mine()[i]
}

// mineBlocks returns turn number i, of which the caller changes the list of blocks.
func (r *Request) mineBlocks(i int) *Turn {
	t := r.mineAt(i)
	if !r.hold.blocks[i] {
		t.Blocks = slices.Clone(t.Blocks)
		note(&r.hold.blocks, i)
	}
	return t
}

// lend is called when the turns are returned to a caller. It writes nothing if the request was not edited, so that
// goroutines may read concurrently.
func (r *Request) lend() {
	if r.hold.turns {
		r.hold.turns = false
	}
}

// setTurns replaces the turns with a slice that the request owns.
func (r *Request) setTurns(turns []Turn) {
	r.view.Turns, r.view.Origins = turns, nil
	r.hold = hold{turns: true}
}

// opaque reports whether the inside of an object is not indexed: schemas, call arguments, metadata of inline documents.
func opaque(key []byte, depth int) bool {
	switch string(key) {
	case "parameters", "input_schema", "output_schema", "schema":
		return true
	case "input":
		return depth >= 4
	case "nvext", "metadata", "client_metadata", "chat_template_kwargs", "logit_bias":
		return false
	}
	return depth >= 12
}

// fresh updates the view after edits.
func (r *Request) fresh() {
	if !r.dirty {
		return
	}
	r.dirty = false
	edits := r.edits
	if err := r.load(edits.Append(make([]byte, 0, r.doc.Size()+256))); err != nil {
		r.err = err // AppendBody returns it; the view remains unchanged
	}
}

// Commit makes the edited body the body of the request, as if it had been decoded again: positions change,
// [Request.Body] and [Request.Field] include the edits, and goroutines may read concurrently. If raw JSON of an edit is
// invalid, it returns the error that AppendBody would return. Without edits it does nothing.
func (r *Request) Commit() error {
	if r.edits != nil && r.err == nil {
		r.dirty = true
		r.fresh()
	}
	return r.err
}

// API returns the API of the body, or None for a built request.
func (r *Request) API() API {
	if r.dialect == nil {
		return None
	}
	return r.dialect.API()
}

// Body returns the body as last parsed, without pending edits, or nil for a built or detached request. The caller must
// not modify it. A request that was decoded with the help of an earlier one has its body in pieces, some of them in the earlier one's
// memory: the first call joins them, and the copy takes memory as long as the request. [Request.AppendBody] copies the pieces.
func (r *Request) Body() []byte {
	if r.doc == nil {
		return nil
	}
	return r.doc.Body()
}

// Common returns the number of bytes at the beginning of body with which the body that the request was decoded from begins as
// well and, of the rest, the number of bytes at the end with which both end. Both are 0 for a built request.
func (r *Request) Common(body []byte) (front, end int) {
	if r.first.doc == nil {
		return 0, 0
	}
	return r.first.doc.Common(body)
}

// Memory returns about how many bytes of memory a decoded request takes; 0 for other requests. It counts what it has in common with
// the requests before and after it, as if it were alone, and no edits that were not committed. A body of many small values takes more than
// ten times its size. The cost does not depend on the size of the request.
func (r *Request) Memory() int {
	if r.doc == nil {
		return 0
	}
	now := decoded{r.doc, r.view.Turns, r.view.Tools, r.view.Decoding}
	n := now.memory()
	if r.first.doc != nil && r.first.doc != r.doc {
		n += r.first.memory()
	}
	return n
}

// Turns returns the conversation in order, including system text. The slice belongs to the request: modify a copy of a
// block and pass it to [Request.Set]. After an edit, the slice remains valid but contains the previous state.
func (r *Request) Turns() []Turn {
	r.ready()
	r.lend()
	return r.view.Turns
}

// Tools returns the declared tools in order, with the tools of namespaces as separate elements. The caller must not
// modify the slice, but may append to it.
func (r *Request) Tools() []Tool {
	r.ready()
	return slices.Clip(r.view.Tools)
}

// Tool returns the tool that a call names: the tool with that name in the namespace or, if namespace is empty, the tool with
// that ModelName. A Hosted tool has no ModelName.
func (r *Request) Tool(namespace, name string) (Tool, bool) {
	for _, t := range r.Tools() {
		if namespace == "" && t.ModelName == name && t.Kind != Hosted || namespace != "" && t.Namespace == namespace && t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Params returns the parameters of the request.
func (r *Request) Params() Params {
	r.fresh()
	return r.view.Params
}

// whole returns the updated view. It shares memory with the request.
func (r *Request) whole() view {
	r.ready()
	r.lend()
	return r.view
}

// AppendBody appends the request in its own API to dst: the body with the edits. Without edits, this is one copy. A
// detached request is encoded from its turns, tools and parameters. A built request has no API; encode it with the
// package of an API.
func (r *Request) AppendBody(dst []byte) ([]byte, error) {
	switch {
	case r.doc == nil && r.dialect != nil:
		r.ready()
		return r.appendDetached(dst), r.err
	case r.doc == nil:
		return dst, &Error{Kind: Unsupported, Offset: -1, Msg: "a built request has no API"}
	case r.edits == nil:
		return r.doc.Append(dst), r.err
	}
	r.fresh() // parsing checks edits that the view does not include yet
	switch {
	case r.err != nil:
		return dst, r.err
	case r.edits == nil:
		return r.doc.Append(dst), nil
	}
	return r.edits.Append(dst), nil
}

// Equal reports whether two requests have the same contents, regardless of their APIs and the order of fields. It
// compares what this package models: parameters, turns and tools.
func (r *Request) Equal(o *Request) bool {
	a, b := r.whole(), o.whole()
	return a.Params.equal(&b.Params) && slices.EqualFunc(a.Turns, b.Turns, Turn.Equal) &&
		slices.EqualFunc(a.Tools, b.Tools, func(x, y Tool) bool { return x.equal(&y) })
}
