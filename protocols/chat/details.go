// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/details"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/sigpack"
)

// The Chat API has one string for past reasoning. What it cannot express (a signature, an encrypted form, several runs,
// their positions among text and calls) is in the additional field reasoning_details, a list that OpenRouter introduced
// and that harnesses return unmodified:
//
//	{"type":"reasoning.text","index":0,"text":"…","signature":"…"}
//	{"type":"reasoning.text","index":1,"id":"weft1p.0.1.","text":"…"}
//	{"type":"reasoning.summary","index":2,"summary":"…"}
//	{"type":"reasoning.encrypted","index":2,"data":"…"}
//
// Entries with the same index are one run, and runs count from 0: accumulators such as the one in openai-python use the
// index as a position in the list. The position of a run among the other blocks of its turn is in its id, on the first
// entry of the run: weft1p.TEXTS.CALLS. and a suffix that makes it unique, for a run after that many pieces of text and
// that many calls. A run without such an id comes first. Clients preserve the fields of an entry that OpenRouter
// defines: type, index, text, summary, data, signature, id, format. Roo Code, which copies fields by name
// (src/api/providers/openrouter.ts), loses other fields, and OpenRouter's provider for the AI SDK drops entries with
// other formats (src/schemas/reasoning-details.ts), so the position must be in the id. openai-python
// (src/openai/lib/streaming/_deltas.py at 1004d2b) concatenates the ids of a run's deltas, so only the first delta has
// an id, and the parser ignores everything after the position.
//
// In older lists, the index is the position of the run among the blocks of its turn; they are still read. Lists from
// other servers count from 0, so the same rule moves their runs to the start. LiteLLM's thinking_blocks, in the form of
// the Messages API, are read as well. Clients that know neither field find the text in reasoning_content.

// detailsOf returns the field of an assistant message that contains reasoning details. The value does not exist if this
// version cannot read any.
func detailsOf(m jsonscan.Value) jsonscan.Value {
	for _, name := range [...]string{"reasoning_details", "thinking_blocks"} {
		v := m.Get(name)
		if v.Kind() != jsonscan.Array {
			continue
		}
		for e := v.First(); e.Exists(); e = v.Next(e) {
			if details.Member(e) != "" {
				return v
			}
		}
	}
	return jsonscan.Value{}
}

// details inserts the runs of reasoning of a list of details among the other blocks of their turn. If the list contains
// no text, the text of plain is used.
func (r reqReader) details(list, plain jsonscan.Value, others []block.Block) []block.Block {
	runs := make([]block.Block, 0, list.Len()+1) // counted by the caller
	places := make([]details.Position, 0, list.Len()+1)
	sparse := make([]int64, 0, list.Len()+1) // by index
	if s, _ := plain.Str(nil); s != "" && !details.HasText(list) {
		runs = append(runs, block.Block{Kind: block.Reasoning, Text: r.Str(plain), At: codec.Pending(plain)})
		places, sparse = append(places, details.Position{}), append(sparse, -1)
	}
	var last *int64        // the index of the previous entry
	var pieces []string    // of the text of the last run
	var hadText, ours bool // the previous entry had text of the same kind; some run has a position
	flush := func() {
		if len(pieces) > 1 {
			runs[len(runs)-1].Text = strings.Join(pieces, "")
		}
		pieces = pieces[:0]
	}
	for e := list.First(); e.Exists(); e = list.Next(e) {
		member := details.Member(e)
		if member == "" {
			continue
		}
		index, text := r.Int(e.Get("index")), r.Str(details.Text(e, member))
		b := block.Block{
			Kind: block.Reasoning, Type: r.Str(e.Get("type")), Text: text, Summary: member == "summary", Signature: r.Str(e.Get("signature")),
			At: codec.Pending(e),
		}
		switch member {
		case "text", "summary":
			b.Encrypted = r.Str(details.String(e, "data"))
		case "data":
			b.Encrypted = r.Str(e.Get("data"))
			b.Redacted = b.Encrypted != "" && (b.Type == "redacted_thinking" || r.Str(e.Get("format")) == sigpack.RedactedFormat)
		}
		if b.Text == "" && b.Encrypted == "" && b.Signature == "" {
			continue
		}
		n := len(runs)
		p, at := details.PositionOf(e)
		if n > 0 && index != nil && last != nil && *index == *last && (!at || p == places[n-1]) {
			switch run := &runs[n-1]; {
			case b.Encrypted != "" && b.Text == "" && run.Encrypted == "":
				run.Encrypted, run.Redacted, hadText = b.Encrypted, run.Redacted || b.Redacted, false
				run.At = codec.Extend(run.At, e)
				continue
			case b.Encrypted == "" && hadText && run.Signature == "" && b.Summary == run.Summary: // an unmodified delta
				if b.Text != "" {
					pieces = append(pieces, b.Text)
				}
				run.Signature, run.At = b.Signature, codec.Extend(run.At, e)
				continue
			}
		}
		flush()
		last, hadText, ours = index, b.Encrypted == "", ours || at
		if b.Text != "" {
			pieces = append(pieces, b.Text)
		}
		if !at && n > 0 {
			p = places[n-1]
		}
		i := int64(n)
		if index != nil {
			i = *index
		}
		runs, places, sparse = append(runs, b), append(places, p), append(sparse, i)
	}
	flush()
	if ours {
		return spread(runs, places, others)
	}
	for i := 1; i < len(sparse); i++ {
		if sparse[i] <= sparse[i-1] { // no positions: all reasoning comes first
			return append(runs, others...)
		}
	}
	out := make([]block.Block, 0, len(runs)+len(others))
	for len(runs)+len(others) > 0 {
		if len(runs) > 0 && (int64(len(out)) >= sparse[0] || len(others) == 0) {
			out, runs, sparse = append(out, runs[0]), runs[1:], sparse[1:]
			continue
		}
		out, others = append(out, others[0]), others[1:]
	}
	return out
}

// spread inserts runs of reasoning at their positions among text and calls. Between two runs, text comes before calls.
func spread(runs []block.Block, places []details.Position, others []block.Block) []block.Block {
	n := slices.IndexFunc(others, func(b block.Block) bool { return b.Kind == block.ToolCall })
	if n < 0 {
		n = len(others)
	}
	texts, calls := others[:n], others[n:]
	out := make([]block.Block, 0, len(runs)+len(others))
	take := func(list []block.Block, left, until int64) []block.Block {
		k := max(0, min(len(list), int(until-left)))
		out = append(out, list[:k]...)
		return list[k:]
	}
	for i := range runs {
		texts = take(texts, int64(n-len(texts)), places[i].Texts)
		calls = take(calls, int64(len(others)-n-len(calls)), places[i].Calls)
		out = append(out, runs[i])
	}
	return append(append(out, texts...), calls...)
}

// needDetails reports whether a turn has reasoning that a single string before the text cannot express.
func needDetails(list []block.Block) bool {
	for i := range list {
		if b := &list[i]; b.Kind == block.Reasoning && (i > 0 || b.Signature != "" || b.Encrypted != "" || b.Summary) {
			return true
		}
	}
	return false
}

// appendDetails appends the list of details of a turn. shown and called contain the indexes, in the turn, of the pieces
// of text and of the calls that are written.
func appendDetails(dst []byte, list []block.Block, shown, called []int) []byte {
	dst = append(dst, '[')
	first := len(dst)
	var at details.Position // of the next run
	index, written := int64(0), false
	entry := func(kind string) codec.Obj {
		if len(dst) > first {
			dst = append(dst, ',')
		}
		o := codec.Open(dst)
		o.Str("type", kind)
		o.Raw("index", codec.Int(index))
		if !written && at != (details.Position{}) {
			o.Str("id", string(at.AppendID(nil)))
		}
		written = true
		return o
	}
	for i := range list {
		b := &list[i]
		if b.Kind != block.Reasoning {
			for len(shown) > 0 && shown[0] <= i {
				shown = shown[1:]
				at.Texts++
			}
			for len(called) > 0 && called[0] <= i {
				called = called[1:]
				at.Calls++
			}
			continue
		}
		if b.Text == "" && b.Signature == "" && b.Encrypted == "" {
			continue
		}
		switch {
		case b.Summary && b.Text != "":
			o := entry("reasoning.summary")
			o.Str("summary", b.Text)
			o.OptStr("signature", b.Signature)
			dst = o.Close()
		case b.Text != "" || b.Signature != "":
			o := entry("reasoning.text")
			o.Str("text", b.Text)
			o.OptStr("signature", b.Signature)
			dst = o.Close()
		}
		if b.Encrypted != "" {
			o := entry("reasoning.encrypted")
			o.Str("data", b.Encrypted)
			if b.Redacted {
				o.Str("format", sigpack.RedactedFormat)
			}
			dst = o.Close()
		}
		index, written = index+1, false
	}
	return append(dst, ']')
}

// setDetail changes a run of reasoning in a list of details, and the plain text that repeats it.
func setDetail(e *jsonscan.Edits, t *block.Turn, old, b *block.Block) (bool, error) {
	if b.Kind != block.Reasoning {
		return false, codec.Unsupported("a " + b.Kind.String() + " cannot replace reasoning in reasoning_details")
	}
	list := codec.ValueIn(e, old.At).Parent()
	var text, data jsonscan.Value // the entries of this run
	var more []jsonscan.Value     // of its text: deltas that the client returned unmodified
	for v := codec.ValueIn(e, old.At); v.Exists(); v = list.Next(v) {
		switch name := details.Member(v); {
		case name == "":
		case name == "data":
			if s, _ := v.Get("data").Str(nil); s != "" {
				data = v
			}
		case text.Exists():
			more = append(more, v)
		default:
			text = v
		}
		if v == codec.LastIn(e, old.At) {
			break
		}
	}
	if b.Summary != old.Summary || b.Redacted != old.Redacted || b.Text != "" && !text.Exists() {
		if b.Encrypted != "" || b.Redacted {
			return false, codec.Unsupported("only the text, signature and encrypted form of this reasoning can change")
		}
		for v := codec.ValueIn(e, old.At); v != codec.LastIn(e, old.At); {
			v = list.Next(v)
			e.Delete(list, v)
		}
		e.Replace(codec.ValueIn(e, old.At), oneDetail(list, codec.ValueIn(e, old.At), b))
		setPlain(e, t, old, b)
		return false, nil
	}
	if b.Text != old.Text || b.Signature != old.Signature {
		if !text.Exists() {
			return false, codec.Unsupported("this reasoning has no text")
		}
		for _, v := range more {
			e.Delete(list, v)
		}
		if b.Text != old.Text || len(more) > 0 {
			e.SetMember(text, details.Member(text), codec.Str(b.Text))
		}
		if b.Signature != old.Signature || len(more) > 0 && b.Signature != "" {
			e.SetMember(text, "signature", codec.Str(b.Signature))
		}
	}
	if b.Encrypted != old.Encrypted {
		if !data.Exists() {
			return false, codec.Unsupported("this reasoning has no encrypted form")
		}
		e.SetMember(data, "data", codec.Str(b.Encrypted))
	}
	setPlain(e, t, old, b)
	return true, nil
}

// oneDetail returns the entry of a run that consists of text only, in the style of its list.
func oneDetail(list, was jsonscan.Value, b *block.Block) []byte {
	kind, member := "reasoning.text", "text"
	switch {
	case list.KeyIs("thinking_blocks"):
		kind, member = "thinking", "thinking"
	case b.Summary:
		kind, member = "reasoning.summary", "summary"
	}
	o := codec.Open(nil)
	o.Str("type", kind)
	for _, name := range [...]string{"index", "id"} {
		if v := was.Get(name); v.Exists() {
			o.Raw(name, v.Raw())
		}
	}
	o.Str(member, b.Text)
	o.OptStr("signature", b.Signature)
	return o.Close()
}

// deleteDetail removes a run of reasoning from a list of details, and its text from the plain text. With the last run, both
// fields are removed.
func deleteDetail(e *jsonscan.Edits, t *block.Turn, old *block.Block) {
	list := codec.ValueIn(e, old.At).Parent()
	if !slices.ContainsFunc(t.Blocks, func(b block.Block) bool { return b.Kind == block.Reasoning && b.At != old.At }) {
		msg := codec.ValueIn(e, t.At)
		e.Delete(msg, list)
		if plain := reasoningOf(msg); plain.Exists() {
			e.Delete(msg, plain)
		}
		return
	}
	for v := codec.ValueIn(e, old.At); v.Exists(); v = list.Next(v) {
		e.Delete(list, v)
		if v == codec.LastIn(e, old.At) {
			break
		}
	}
	setPlain(e, t, old, nil)
}

// setPlain rewrites the plain reasoning text of a turn after old was replaced by b, or deleted if b is nil.
func setPlain(e *jsonscan.Edits, t *block.Turn, old, b *block.Block) {
	msg := codec.ValueIn(e, t.At)
	plain := reasoningOf(msg)
	if !plain.Exists() || b != nil && b.Text == old.Text {
		return
	}
	var texts []string
	for i := range t.Blocks {
		x := &t.Blocks[i]
		switch {
		case x.Kind != block.Reasoning:
		case x.At != old.At:
			texts = append(texts, x.Text)
		case b != nil:
			texts = append(texts, b.Text)
		}
	}
	e.Replace(plain, codec.Str(joinNonEmpty("\n", texts...)))
}

// inDetails reports whether a block is in a list of details.
func inDetails(e *jsonscan.Edits, b *block.Block) bool {
	v := codec.ValueIn(e, b.At).Parent()
	return b.Kind == block.Reasoning && v.Kind() == jsonscan.Array && (v.KeyIs("reasoning_details") || v.KeyIs("thinking_blocks"))
}
