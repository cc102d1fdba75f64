// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"slices"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// This file connects the packages of the APIs to this one; see package seam.

type (
	dialect  = seam.Dialect[API, Limits, Params, Tool, Turn, Block]
	view     = seam.View[Params, Tool, Turn]
	member   = seam.Member
	lossFunc = seam.LossFunc
	past     = seam.Past[Tool, Turn]
)

func init() {
	seam.Lend(seam.Access[API, Limits, Params, Tool, Turn, Block, Request, Ref, EncodeOptions, Loss]{
		Decode:       decode,
		DecodeNext:   decodeNext,
		MoveTurn:     moveTurn,
		MoveTool:     moveTool,
		Convert:      convert,
		Doc:          func(r *Request) *jsonscan.Doc { return r.doc },
		Pending:      func(v jsonscan.Value) Ref { return Ref{doc: pending, node: int32(v.Index()), last: int32(v.Index())} },
		Extend:       func(at Ref, last jsonscan.Value) Ref { at.last = int32(last.Index()); return at },
		Ref:          refOf,
		In:           Ref.in,
		Value:        valueOf,
		Last:         lastOf,
		Origins:      (*Request).origins,
		Field:        (*Request).value,
		Rewrite:      (*Request).rewrite,
		Amend:        (*Request).amend,
		Opens:        func(b *Block) bool { return b.opens },
		Patch:        func(b *Block, dst []byte, from int) []byte { return b.rest.patch(dst, from) },
		PatchMessage: func(b *Block, dst []byte, from int) []byte { return b.env.patch(dst, from) },
		BlockMarks:   (*Request).blockMarks,
		ToolMarks:    (*Request).toolMarks,
		MarkPath:     (*Request).markPath,
	})
}

// refOf returns the position of v.
func refOf(v jsonscan.Value) Ref {
	return Ref{doc: v.Doc(), node: int32(v.Index()), last: int32(v.Index())}
}

// valueOf returns the value at a position. The value does not exist for a block that was not read from a body.
func valueOf(at Ref) jsonscan.Value {
	if at.doc == nil {
		return jsonscan.Value{}
	}
	return at.doc.At(int(at.node))
}

// origins returns the origins of the turns, nil for those that were edited. It returns nil if there are none, or if an edit failed:
// then it is not known which turns it would have changed.
func (r *Request) origins() []*seam.Origin {
	r.ready()
	if r.err != nil {
		return nil
	}
	return r.view.Origins
}

// lastOf returns the last value of a position that spans several, or the value at the position.
func lastOf(at Ref) jsonscan.Value {
	if at.doc == nil {
		return jsonscan.Value{}
	}
	return at.doc.At(int(max(at.node, at.end())))
}

// decode checks and parses body. The request takes ownership of it.
func decode(body []byte, d dialect, lim *Limits) (*Request, error) {
	r := &Request{dialect: d, limits: lim.filled()}
	if err := r.load(body); err != nil {
		return nil, err
	}
	r.first = decoded{r.doc, r.view.Turns, r.view.Tools, r.view.Decoding}
	return r, nil
}

// rewrite calls record to record edits of the body.
func (r *Request) rewrite(record func(e *jsonscan.Edits, root jsonscan.Value) (changed bool)) error {
	if r.doc == nil {
		return &Error{Kind: Unsupported, Offset: -1, Msg: "the request has no body"}
	}
	if err := r.Commit(); err != nil {
		return err
	}
	if e := jsonscan.NewEdits(r.doc); record(e, r.doc.Root()) {
		r.edits = e
		r.changed(false)
		r.fresh()
	}
	return r.err
}

// The fields that make a block or tool a cache breakpoint.
var markNames = [...]string{"cache_control", "prompt_cache_breakpoint"}

// maxMarkPaths limits the number of cache mark paths that a detached request keeps.
const maxMarkPaths = 4096

// blockMarks returns an object that contains the cache marks of a block as the request spells them. The value does not
// exist if the fields of the block hold all of them.
func (r *Request) blockMarks(t *Turn, b *Block) jsonscan.Value {
	switch {
	case b.At.doc != nil && (b.At.doc == r.doc || t.At.doc == r.doc && b.At.apart()):
		v := valueOf(b.At.in(r.doc))
		if r.edits != nil && r.edits.Changes(v) {
			return rootOf(r.edits.AppendValue(nil, v))
		}
		return v
	case b.At.doc == nil && (r.dialect == nil || len(b.JSON) == 0 && !b.rest.marks()):
		return jsonscan.Value{}
	}
	return rootOf(r.dialect.AppendBlock(nil, t, b))
}

// toolMarks is blockMarks for a tool.
func (r *Request) toolMarks(t *Tool) jsonscan.Value {
	switch {
	case t.At.doc != nil:
		return valueOf(t.At)
	case r.dialect == nil || len(t.JSON) == 0 && !t.rest.marks():
		return jsonscan.Value{}
	}
	return rootOf(appendTool(nil, r.dialect, t))
}

func rootOf(text []byte) jsonscan.Value {
	doc, err := scanOwn(text)
	if err != nil { // the API cannot express it
		return jsonscan.Value{}
	}
	return doc.Root()
}

// marks reports whether the residue of a block or tool contains cache marks.
func (r *residue) marks() bool {
	is := func(key string) bool { return slices.Contains(markNames[:], key) }
	return r != nil && (r.value != nil || slices.ContainsFunc(r.add, func(x extra) bool { return is(x.key) }) ||
		slices.ContainsFunc(r.inner, func(x inner) bool { return is(x.key) }))
}

// markPath returns the path of a block or tool in the decoded body, or "" if the request had no body. A detached
// request knows the paths of marked ones only.
func (r *Request) markPath(at Ref) string {
	if at.doc == nil {
		return r.marked[at]
	}
	return at.Path()
}

// noteMark records the path of a marked block or tool under its new position.
func (r *Request) noteMark(at, was Ref) {
	v := valueOf(was)
	if len(r.marked) >= maxMarkPaths || v.Get(markNames[0]).IsNull() && v.Get(markNames[1]).IsNull() {
		return
	}
	if r.marked == nil {
		r.marked = map[Ref]string{}
	}
	r.marked[at] = v.Path()
}

// amend applies changes, sorted by position, to a request without pending edits.
func (r *Request) amend(changes []seam.Change[Block]) error {
	turns := r.Turns()
	if r.doc == nil {
		r.amendView(turns, changes)
		return r.err
	}
	if err := r.amendBody(turns, changes); err != nil {
		return err
	}
	return r.Commit()
}

// amendBody records the changes in the body.
func (r *Request) amendBody(turns []Turn, changes []seam.Change[Block]) error {
	e := r.editor()
	r.changed(false)
	for len(changes) > 0 {
		t := turns[changes[0].Turn]
		list := changes[:sameTurn(changes)]
		changes = changes[len(list):]
		if dropsAll(&t, list) {
			if _, err := r.dialect.DeleteTurn(e, &t); err != nil {
				return err
			}
			continue
		}
		t.Blocks = slices.Clone(t.Blocks)
		for i := range list {
			ch := &list[i]
			b := &t.Blocks[ch.Block]
			if ch.Drop {
				if _, err := r.dialect.Delete(e, &t, nil, ch.Block); err != nil {
					return err
				}
				b.Text = "" // later changes may write the text of the whole turn
				continue
			}
			_, err := r.dialect.Set(e, &t, b, &ch.To)
			if no, ok := errors.AsType[*Error](err); ok && no.Kind == Unsupported {
				ch.Kept = true
				continue
			}
			if err != nil {
				return err
			}
			*b = ch.To
		}
	}
	return nil
}

// amendView applies the changes to a request without a body.
func (r *Request) amendView(turns []Turn, changes []seam.Change[Block]) {
	out := make([]Turn, 0, len(turns))
	for ti := range turns {
		t := turns[ti]
		list := changes[:0]
		if len(changes) > 0 && changes[0].Turn == ti {
			list = changes[:sameTurn(changes)]
			changes = changes[len(list):]
		}
		switch {
		case len(list) == 0:
		case dropsAll(&t, list):
			continue
		default:
			blocks := make([]Block, 0, len(t.Blocks))
			for bi := range t.Blocks {
				switch {
				case len(list) == 0 || list[0].Block != bi:
					blocks = append(blocks, t.Blocks[bi])
					continue
				case !list[0].Drop:
					blocks = append(blocks, list[0].To)
				}
				list = list[1:]
			}
			t.Blocks = blocks
		}
		out = append(out, t)
	}
	r.setTurns(out)
	r.changed(true)
}

// sameTurn returns the number of leading changes that apply to the same turn.
func sameTurn(changes []seam.Change[Block]) int {
	n := 1
	for n < len(changes) && changes[n].Turn == changes[0].Turn {
		n++
	}
	return n
}

// dropsAll reports whether the changes remove all blocks of a turn.
func dropsAll(t *Turn, list []seam.Change[Block]) bool {
	return len(list) == len(t.Blocks) && !slices.ContainsFunc(list, func(ch seam.Change[Block]) bool { return !ch.Drop })
}
