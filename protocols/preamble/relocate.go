// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// maxMoves limits the number of fragments, and so the size of the report. Harnesses write only a few; if there are more
// than maxMoves, none is moved.
const maxMoves = 256

// found is a text with its fragments.
type found struct {
	turn, block int // turn is -1 for the description of tool number block
	text        string
	end         int // the end of the part to examine: the mark, or the end of text
	at          block.Ref
	list        []fragment
}

// plan finds the fragments to move, records the new texts, and adds the moves to the report.
func (w *work) plan(o *Options, rules Rules) {
	var all []found
	if !o.Prompt.SystemFirst { // else the tools come after the system text
		all = w.inTools(rules)
	}
	move := len(all) > 0
	s := scanner{rules: rules, where: inSystem}
	turns := w.r.Turns()
	solid := false // whether a block is not text
	for ti := range leading(turns) {
		for bi := range turns[ti].Blocks {
			b := &turns[ti].Blocks[bi]
			if b.Kind != block.Text {
				solid = true
				continue
			}
			list, mark := s.find(nil, b.Text)
			f := found{ti, bi, b.Text, len(b.Text), b.At, list}
			if mark >= 0 {
				f.end = mark
			}
			all = append(all, f)
			if mark >= 0 {
				w.mark = true
				goto read // text after the mark was moved before
			}
		}
	}
read:
	if !move && !solid && !inFront(all) {
		return
	}
	n := 0
	for i := range all {
		n += len(all[i].list)
	}
	if n > maxMoves {
		return
	}
	for i := range all {
		w.cut(&all[i])
	}
}

// inTools returns the fragments in descriptions of tools.
func (w *work) inTools(rules Rules) (all []found) {
	if codec.DocOf(w.r) == nil {
		return nil
	}
	s := scanner{rules: rules, where: inTools}
	for i, t := range w.r.Tools() {
		if list, _ := s.find(nil, t.Description); len(list) > 0 && t.Kind == block.Function && moves(list) {
			all = append(all, found{-1, i, t.Description, len(t.Description), t.At, list})
		}
	}
	return all
}

func moves(list []fragment) bool {
	for i := range list {
		if a := list[i].rule.Action; a == actMove || a == actPoint {
			return true
		}
	}
	return false
}

// inFront reports whether a fragment to move is followed by other text. If all are at the end already, they need not
// move.
func inFront(all []found) bool {
	rest := false
	for i := len(all) - 1; i >= 0; i-- {
		f := &all[i]
		end := f.end
		for k := len(f.list) - 1; k >= 0; k-- {
			x := &f.list[k]
			rest = rest || strings.TrimSpace(f.text[x.end:end]) != ""
			switch x.rule.Action {
			case actMove, actPoint:
				if rest {
					return true
				}
			default:
				rest = true
			}
			end = x.off
		}
		rest = rest || strings.TrimSpace(f.text[:end]) != ""
	}
	return false
}

// cut records the text without its fragments.
func (w *work) cut(f *found) {
	var out strings.Builder
	end := 0
	for _, x := range f.list {
		r := x.rule
		value := f.text[x.valOff:x.valEnd]
		switch {
		case r.Action == actPoint && r.From != "":
			out.WriteString(f.text[end:x.valOff])
			out.WriteString(pointerText)
			end = x.valEnd
		case r.Action == actMove:
			out.WriteString(f.text[end:x.off])
			if end = x.end; r.Pointer != "" {
				out.WriteString(r.Pointer)
				end = x.valEnd // keep the newline
			}
		default:
			continue
		}
		if r.Label != "" {
			w.tail = append(w.tail, r.Label+value)
		} else {
			w.tail = append(w.tail, strings.Trim(f.text[x.off:x.end], "\r\n"))
		}
		w.rep.Changes = append(w.rep.Changes, Change{
			Action: r.Action, Rule: r.ID, Path: f.at.Path(), Offset: w.offset(f.at), Text: value, Bytes: len(value), Count: 1,
		})
	}
	if end > 0 {
		out.WriteString(f.text[end:])
		w.moves = append(w.moves, move{f.turn, f.block, out.String()})
	}
}

// relocate writes the texts that plan recorded, and then the moved text.
func (w *work) relocate() error {
	if len(w.moves) == 0 {
		return nil
	}
	if err := w.setDescriptions(); err != nil {
		return err
	}
	turns := w.r.Turns() // positions are valid until the last edit, because the body is not parsed again before
	for _, m := range w.moves {
		if m.turn < 0 {
			continue
		}
		at := turns[m.turn].Blocks[m.block].At
		err := error(nil)
		if strings.TrimSpace(m.text) == "" {
			err = w.r.Delete(at)
		} else {
			err = w.r.SetText(at, m.text)
		}
		if err != nil {
			return err
		}
	}
	return w.setTail()
}

// setDescriptions writes the descriptions of tools from which a value was moved.
func (w *work) setDescriptions() error {
	if w.moves[0].turn >= 0 { // the moves in tools come first
		return nil
	}
	tools := w.r.Tools()
	var at []block.Ref
	for _, m := range w.moves {
		if m.turn < 0 {
			at = append(at, tools[m.block].At)
		}
	}
	return codec.Rewrite(w.r, func(e *jsonscan.Edits, _ jsonscan.Value) bool {
		for i, ref := range at {
			v := codec.ValueOf(ref)
			d := v.Get("description")
			if !d.Exists() {
				d = v.Get("function").Get("description")
			}
			if d.Kind() == jsonscan.String {
				e.Replace(d, jsonscan.AppendString(nil, w.moves[i].text))
			}
		}
		return true
	})
}

// setTail writes the moved text to the end of the leading system text.
func (w *work) setTail() error {
	text := strings.Join(w.tail, "\n")
	turns := w.r.Turns()
	last := leading(turns) - 1
	if last < 0 {
		return w.r.InsertTurn(0, block.Turn{Role: block.RoleSystem, Blocks: []block.Block{{Kind: block.Text, Text: tailMark + "\n" + text}}})
	}
	t := &turns[last]
	n := len(t.Blocks)
	switch {
	case n > 0 && t.Blocks[n-1].Kind == block.Text && w.mark: // the mark exists already
		b := &t.Blocks[n-1]
		return w.r.SetText(b.At, b.Text+"\n"+text)
	case n == 1 && t.Form&codec.FormString != 0 && t.Blocks[0].Kind == block.Text:
		b := &t.Blocks[0]
		return w.r.SetText(b.At, strings.TrimRight(b.Text, "\n")+"\n\n"+tailMark+"\n"+text)
	}
	return w.r.Insert(turns[last].At, block.Block{Kind: block.Text, Text: tailMark + "\n" + text})
}
