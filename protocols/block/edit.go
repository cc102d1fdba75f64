// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// This file is structured as follows. Every exported method finds the given position in the view and has the dialect
// record the change of the body. Then it either makes the same change in the view (the change is exact) or marks the
// view as outdated. Slices of the view that were returned to a caller are replaced, never written, so a caller may edit
// while ranging over them.

// Set replaces the block at the given position with b. It writes only what differs: a changed text replaces that string
// and preserves the block's other fields, known or not. If the API has no such field, or the kind differs, it rewrites
// the whole block, which loses unknown fields.
func (r *Request) Set(at Ref, b Block) error {
	p, err := r.findBlock(at)
	if err != nil {
		return err
	}
	old := p.list[p.i]
	b.At = old.At
	if b.Kind == old.Kind && b.rest == nil {
		b.rest = old.rest
	}
	exact := true
	if r.doc == nil {
		err = r.fits(p.turn, []Block{b})
	} else {
		exact, err = r.dialect.Set(r.editor(), p.turn, &old, &b)
	}
	if err != nil {
		return err
	}
	if r.doc != nil && !slices.EqualFunc(old.Content, b.Content, Block.Equal) {
		exact = false // the nested blocks have other positions
	}
	if exact {
		r.replace(p, b)
	}
	r.changed(exact)
	return nil
}

// SetText replaces only the text of the block at the given position. For a tool result, it replaces the text of its
// only block or, if the content is empty, inserts one. It returns an error of kind Unsupported for blocks without text.
func (r *Request) SetText(at Ref, text string) error {
	p, err := r.findBlock(at)
	if err != nil {
		return err
	}
	b := p.list[p.i]
	switch b.Kind {
	case Text, Refusal, Reasoning, Compaction:
		b.Text = text
		return r.Set(at, b)
	case ToolResult:
		switch {
		case len(b.Content) == 0:
			b.Content = []Block{{Kind: Text, Text: text}}
			return r.Set(at, b)
		case len(b.Content) == 1 && b.Content[0].Kind == Text:
			return r.SetText(b.Content[0].At, text)
		}
		return &Error{Kind: Unsupported, Path: at.Path(), Offset: -1, Msg: "the tool result has several blocks: set them individually"}
	}
	return &Error{Kind: Unsupported, Path: at.Path(), Offset: -1, Msg: "a " + b.Kind.String() + " has no text"}
}

// Insert inserts blocks before the block at the given position or, if it is the position of a turn, after the turn's last
// block.
func (r *Request) Insert(at Ref, list ...Block) error {
	p, err := r.find(at)
	if err != nil {
		return err
	}
	return r.insert(p, list)
}

func (r *Request) insert(p spot, list []Block) error {
	if len(list) == 0 {
		return nil
	}
	if r.doc != nil {
		err := r.dialect.Insert(r.editor(), p.turn, p.holder, p.i, list)
		if err == nil {
			r.changed(false)
			note(&r.hold.grown, p.ti)
		}
		return err
	}
	if err := r.fits(p.turn, list); err != nil {
		return err
	}
	r.put(p, slices.Insert(slices.Clone(p.list), p.i, r.own(list)...))
	r.changed(true)
	return nil
}

// Delete removes the block or turn at the given position. With the last block of a message or item, it also removes the
// message or item. It returns an error of kind Stale for a turn that has pending insertions.
func (r *Request) Delete(at Ref) error {
	p, err := r.find(at)
	if err != nil {
		return err
	}
	if p.i == len(p.list) || r.doc == nil && p.holder == nil && len(p.list) == 1 { // in a request with a body, the dialect decides
		return r.deleteTurn(p.ti)
	}
	exact := true
	if r.doc != nil {
		if exact, err = r.dialect.Delete(r.editor(), p.turn, p.holder, p.i); err != nil {
			return err
		}
	}
	switch {
	case exact && p.holder == nil && len(p.list) == 1:
		note(&r.hold.gone, p.ti)
	case exact && p.holder == nil:
		t := r.mineBlocks(p.ti)
		t.Blocks = slices.Delete(t.Blocks, p.i, p.i+1)
	case exact:
		r.put(p, slices.Delete(slices.Clone(p.list), p.i, p.i+1))
	}
	r.changed(exact)
	return nil
}

// InsertTurn inserts a turn before turn number i, or at the end if i is the number of turns.
func (r *Request) InsertTurn(i int, t Turn) error {
	r.ready()
	if i < 0 || i > len(r.view.Turns) {
		return noTurn(i)
	}
	if r.doc != nil {
		err := r.dialect.InsertTurn(r.editor(), r.view.Turns, i, &t)
		if err == nil {
			r.changed(false)
		}
		return err
	}
	if err := r.fits(&t, t.Blocks); err != nil {
		return err
	}
	t.Blocks = r.own(t.Blocks)
	t.At = r.newRef()
	r.setTurns(slices.Insert(slices.Clone(r.view.Turns), i, t))
	r.changed(true)
	return nil
}

// Append appends turns, up to the first one that causes an error.
func (r *Request) Append(turns ...Turn) error {
	for _, t := range turns {
		if err := r.InsertTurn(len(r.Turns()), t); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) deleteTurn(i int) error {
	if r.hold.grown[i] {
		return &Error{Kind: Stale, Offset: -1, Msg: "blocks were inserted into the turn; read the turns again"}
	}
	exact := true
	if r.doc != nil {
		var err error
		if exact, err = r.dialect.DeleteTurn(r.editor(), &r.view.Turns[i]); err != nil {
			return err
		}
	}
	if exact {
		note(&r.hold.gone, i)
	}
	r.changed(exact)
	return nil
}

// checkRaw checks raw JSON from the caller, nil if absent. In a request with a body, parsing the edited body checks it.
func (r *Request) checkRaw(raw []byte) error {
	if raw == nil {
		return nil
	}
	l := r.limits
	_, err := jsonscan.Scan(raw, jsonscan.Limits{Bytes: l.Body, Depth: l.Depth, Values: l.Values})
	if err != nil {
		return scanError(err)
	}
	return nil
}

// supports returns an error for blocks that the API of a detached request cannot express, as edits of a body do.
func (r *Request) supports(t *Turn, list []Block) error {
	if r.dialect == nil {
		return nil
	}
	for i := range list {
		b := &list[i]
		if b.Kind == Reasoning && r.API() == Chat { // written with its turn
			continue
		}
		if len(r.dialect.AppendBlock(nil, t, b)) == 0 {
			return &Error{Kind: Unsupported, Offset: -1, Msg: "the API cannot express a block of kind " + b.Kind.String()}
		}
		if err := r.supports(t, b.Content); err != nil {
			return err
		}
	}
	return nil
}

// fits reports, as an error, why blocks cannot be added to a turn of a request without a body.
func (r *Request) fits(t *Turn, list []Block) error {
	if err := r.checkBlocks(list); err != nil {
		return err
	}
	return r.supports(t, list)
}

// checkBlocks calls checkRaw for the JSON of blocks, including nested ones.
func (r *Request) checkBlocks(list []Block) error {
	for i := range list {
		if err := r.checkRaw(list[i].JSON); err != nil {
			return err
		}
		if err := r.checkBlocks(list[i].Content); err != nil {
			return err
		}
	}
	return nil
}

// SetParams replaces the parameters. It writes only the fields whose value changes. It returns an error of kind
// Unsupported for a parameter that the API cannot express.
func (r *Request) SetParams(p Params) error {
	r.ready()
	if r.doc == nil {
		if err := r.checkRaw(p.Format.Schema); err != nil {
			return err
		}
	} else {
		before, after := map[string]bool{}, (*Error)(nil)
		old := r.dialect.Members(&r.view.Params, r.view.Tools, func(_, why string) { before[why] = true })
		members := r.dialect.Members(&p, r.view.Tools, func(path, why string) {
			if !before[why] && after == nil {
				after = &Error{Kind: Unsupported, Path: path, Offset: -1, Msg: why}
			}
		})
		if after != nil {
			return after
		}
		r.writeParams(old, members)
		if string(p.Format.Schema) != string(r.view.Params.Format.Schema) {
			r.dirty = true // raw JSON from the caller must be checked
		}
	}
	r.view.Params = p
	return nil
}

// spot is a position in the view: list[i], where list is the turn's blocks or the holder's content.
type spot struct {
	turn   *Turn
	ti     int
	holder *Block
	list   []Block
	i      int
}

// findBlock is find for a block.
func (r *Request) findBlock(at Ref) (spot, error) {
	p, err := r.find(at)
	if err == nil && p.i == len(p.list) {
		return spot{}, noBlock()
	}
	return p, err
}

// find looks up a position. The position of a turn is that after its last block.
func (r *Request) find(at Ref) (spot, error) {
	if at == (Ref{}) || (at.doc != nil) != (r.doc != nil) {
		return spot{}, noBlock()
	}
	if r.hold.where == nil && r.hold.searches < fewSearches {
		r.hold.searches++
		for ti := range r.view.Turns {
			if p, ok := r.findTurn(ti, at); ok {
				return p, nil
			}
		}
		return spot{}, noBlock()
	}
	if r.hold.where == nil {
		r.hold.where = make(map[int32]int32, 2*len(r.view.Turns))
		for ti := range r.view.Turns {
			t := &r.view.Turns[ti]
			r.hold.where[t.At.node] = int32(ti)
			r.index(t.Blocks, int32(ti))
		}
	}
	if ti, ok := r.hold.where[at.in(r.doc).node]; ok {
		if p, ok := r.findTurn(int(ti), at); ok {
			return p, nil
		}
	}
	return spot{}, noBlock()
}

// localTurn returns a turn whose blocks have positions in the document and not in parts of it.
func (r *Request) localTurn(t *Turn) *Turn {
	if !slices.ContainsFunc(t.Blocks, func(b Block) bool { return b.At.apart() }) {
		return t
	}
	own := *t
	own.Blocks = inDocument(t.Blocks, r.doc)
	return &own
}

// findTurn is find within turn number ti.
func (r *Request) findTurn(ti int, at Ref) (spot, bool) {
	if r.hold.gone[ti] {
		return spot{}, false
	}
	t := &r.view.Turns[ti]
	p := spot{turn: t, ti: ti, list: t.Blocks}
	if t.At == at {
		p.i = len(t.Blocks)
		return p, true
	}
	return findIn(p, at)
}

// fewSearches is the number of searches for positions before an index of them is built.
const fewSearches = 4

// index records the turn number of each block's position.
func (r *Request) index(list []Block, turn int32) {
	for i := range list {
		r.hold.where[list[i].At.in(r.doc).node] = turn
		r.index(list[i].Content, turn)
	}
}

func findIn(p spot, at Ref) (spot, bool) {
	for i := range p.list {
		if p.list[i].At == at {
			p.i = i
			return p, true
		}
	}
	for i := range p.list {
		if len(p.list[i].Content) > 0 {
			in := p
			in.holder, in.list = &p.list[i], p.list[i].Content
			if q, ok := findIn(in, at); ok {
				return q, true
			}
		}
	}
	return p, false
}

// put stores the new list of a spot in the view and copies the lists that contain it.
func (r *Request) put(p spot, list []Block) {
	t := r.mineAt(p.ti)
	if p.holder == nil {
		t.Blocks = list
	} else {
		t.Blocks = replaceContent(t.Blocks, p.holder.At, list)
	}
	delete(r.hold.blocks, p.ti)
	if r.hold.where != nil {
		r.index(list, int32(p.ti)) // deleted positions remain and lead to a turn that does not have them
	}
}

// replace stores b at its position in the view.
func (r *Request) replace(p spot, b Block) {
	if p.holder != nil {
		t := r.mineAt(p.ti)
		list := slices.Clone(p.list)
		list[p.i] = b
		t.Blocks = replaceContent(t.Blocks, p.holder.At, list)
	} else {
		r.mineBlocks(p.ti).Blocks[p.i] = b
	}
	if len(b.Content) > 0 {
		r.hold.where = nil // the nested blocks may differ
	}
}

// replaceContent returns a copy of list in which the block at the given position has other content.
func replaceContent(list []Block, at Ref, content []Block) []Block {
	out := slices.Clone(list)
	for i := range out {
		if out[i].At == at {
			out[i].Content = content
		} else if len(out[i].Content) > 0 {
			out[i].Content = replaceContent(out[i].Content, at, content)
		}
	}
	return out
}

// changed is called after every edit of turns or tools.
func (r *Request) changed(exact bool) {
	if !exact {
		r.dirty = true
	}
	r.hold.marked = false
}

func (r *Request) editor() *jsonscan.Edits {
	if r.edits == nil {
		r.edits = jsonscan.NewEdits(r.doc)
	}
	return r.edits
}

// own returns a copy of blocks with new positions in this request.
func (r *Request) own(list []Block) []Block {
	out := slices.Clone(list)
	for i := range out {
		out[i].At = r.newRef()
		out[i].Content = r.own(out[i].Content)
	}
	return out
}

func (r *Request) newRef() Ref {
	r.ids++
	return Ref{node: r.ids}
}

func noBlock() error {
	return &Error{Kind: Stale, Offset: -1, Msg: "the request has no block at this position"}
}

func noTurn(i int) error {
	return &Error{Kind: Stale, Offset: -1, Msg: fmt.Sprintf("turn %d does not exist", i)}
}
