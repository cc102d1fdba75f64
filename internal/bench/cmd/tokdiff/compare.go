// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/internal/bench/remote"
	"github.com/weft-go/weft/tokenizers"
)

// comparer holds one tokenizer on both sides.
type comparer struct {
	tok *tokenizers.Tokenizer
	hf  *remote.Proc

	texts, lists, refused int
	found                 map[string][]difference
	counts                map[string]int
}

// difference is a text that both treat differently, cut down.
type difference struct{ text, ours, theirs string }

// keep is the number of differences of a kind that are reduced and kept.
const keep = 10

func newComparer(tok *tokenizers.Tokenizer, hf *remote.Proc, file string) (*comparer, error) {
	c := &comparer{tok: tok, hf: hf, found: make(map[string][]difference), counts: make(map[string]int)}
	_, err := hf.Call(limit, remote.Request{Op: "load", File: file})
	return c, err
}

// run compares n texts of d, and n/4 lists of ids.
func (c *comparer) run(d *drawer, n int) error {
	for c.texts < n {
		docs := make([]string, 0, batch)
		for len(docs) < min(batch, n-c.texts) {
			docs = append(docs, d.text())
		}
		r, err := c.hf.Call(limit, remote.Request{Op: "full", Docs: docs})
		if err != nil {
			return err
		}
		for i, doc := range docs {
			kind, _, _ := c.compare(doc, &r.Full[i])
			if kind == "" {
				continue
			}
			if c.counts[kind]++; c.counts[kind] <= keep {
				if err := c.cutDown(kind, doc); err != nil {
					return err
				}
			}
		}
		c.texts += len(docs)
	}
	for c.lists < n/4 {
		lists := make([][]uint32, 0, batch)
		for len(lists) < min(batch, n/4-c.lists) {
			lists = append(lists, d.ids())
		}
		for _, skip := range []bool{false, true} {
			r, err := c.hf.Call(limit, remote.Request{Op: "text of", Lists: lists, Skip: skip})
			if err != nil {
				return err
			}
			for i, ids := range lists {
				if ours := c.decode(ids, skip); ours != r.Texts[i] {
					c.note("text of ids", difference{fmt.Sprint(ids), ours, r.Texts[i]})
				}
			}
		}
		c.lists += len(lists)
	}
	return nil
}

func (c *comparer) note(kind string, d difference) {
	if c.counts[kind]++; c.counts[kind] <= keep {
		c.found[kind] = append(c.found[kind], d)
	}
}

// decode returns the text of ids, and what is wrong when whole and streamed text differ.
func (c *comparer) decode(ids []uint32, skip bool) string {
	whole := string(c.tok.AppendDecode(nil, ids, skip))
	s := c.tok.NewStream(skip, nil)
	var out []byte
	for _, id := range ids {
		out = s.Append(out, id)
	}
	if out = s.Finish(out); string(out) != whole {
		return "streamed: " + string(out)
	}
	return whole
}

// compare returns the kind of the first difference, or "" if they are equal, and both sides of it.
func (c *comparer) compare(text string, want *remote.Full) (kind, ours, theirs string) {
	if want.Error != "" {
		c.refused++ // the reference panics on some texts
		return "", "", ""
	}
	ids := c.tok.AppendEncode(nil, text)
	if !slices.Equal(ids, want.IDs) {
		return "ids", fmt.Sprint(ids), fmt.Sprint(want.IDs)
	}
	if framed := c.tok.AppendEncodeSpecial(nil, text); !slices.Equal(framed, want.Framed) {
		return "ids with frame", fmt.Sprint(framed), fmt.Sprint(want.Framed)
	}
	segments := []tokenizers.Segment{{Text: text[:len(text)/2], Trusted: true}, {Text: text[len(text)/2:], Trusted: true}}
	if got := c.tok.AppendEncodeSegments(nil, segments); !slices.Equal(got, ids) {
		return "ids of two segments", fmt.Sprint(got), fmt.Sprint(ids)
	}
	if got := c.decode(ids, false); got != want.Dec {
		return "decoded text", got, want.Dec
	}
	if got := c.decode(ids, true); got != want.Skip {
		return "decoded text without special tokens", got, want.Skip
	}
	var e tokenizers.Encoding
	err := c.tok.Encode(&e, []tokenizers.Segment{{Text: text, Trusted: true}}, &tokenizers.EncodeOptions{Offsets: true})
	if err != nil || !slices.Equal(e.IDs, ids) || len(e.Offsets) != len(ids) {
		return "ids with offsets", fmt.Sprint(e.IDs, err), fmt.Sprint(ids)
	}
	if chars := characters(text, e.Offsets); !slices.Equal(chars, want.Offsets) {
		return "offsets", fmt.Sprint(chars), fmt.Sprint(want.Offsets)
	}
	return "", "", ""
}

// characters turns offsets in bytes into pairs of offsets in characters, -1 for one inside a character.
func characters(text string, offs []tokenizers.Offset) []int {
	char := make([]int, len(text)+1)
	n := 0
	for i := range char {
		char[i] = -1
		if i == len(text) || utf8.RuneStart(text[i]) {
			char[i] = n
			n++
		}
	}
	out := make([]int, 0, 2*len(offs))
	for _, o := range offs {
		out = append(out, char[o.Start], char[o.End])
	}
	return out
}

// cutDown removes what it can from a text while the difference stays of its kind, and notes what is left.
func (c *comparer) cutDown(kind, text string) error {
	again := func(s string) (bool, difference, error) {
		r, err := c.hf.Call(limit, remote.Request{Op: "full", Docs: []string{s}})
		if err != nil {
			return false, difference{}, err
		}
		k, ours, theirs := c.compare(s, &r.Full[0])
		return k == kind, difference{s, ours, theirs}, nil
	}
	ok, best, err := again(text)
	if err != nil {
		return err
	}
	if !ok {
		best = difference{text, "differs only beside other texts", ""}
	}
	runes := []rune(text)
	for size := len(runes) / 2; ok && size > 0; size /= 2 {
		for i := 0; i+size <= len(runes); {
			shorter := slices.Delete(slices.Clone(runes), i, i+size)
			differs, d, err := again(string(shorter))
			if err != nil {
				return err
			}
			if differs {
				runes, best = shorter, d
			} else {
				i += size
			}
		}
	}
	c.found[kind] = append(c.found[kind], best)
	return nil
}

// print writes what was found and reports whether that is nothing.
func (c *comparer) print(name string, show int) bool {
	var sum []string
	for _, kind := range slices.Sorted(maps.Keys(c.counts)) {
		sum = append(sum, fmt.Sprintf("%d %s", c.counts[kind], kind))
	}
	verdict := "no difference"
	if len(sum) > 0 {
		verdict = "DIFFERENT: " + strings.Join(sum, ", ")
	}
	fmt.Printf("%s: %d texts (%d that the reference fails on), %d lists of ids: %s\n", name, c.texts, c.refused, c.lists, verdict)
	for _, kind := range slices.Sorted(maps.Keys(c.found)) {
		for _, d := range c.found[kind][:min(show, len(c.found[kind]))] {
			fmt.Printf("  %s: %.300s\n    ours   %.300q\n    theirs %.300q\n", kind, quoted(d.text), d.ours, d.theirs)
		}
	}
	return len(sum) == 0
}

// quoted spells a text in ASCII.
func quoted(s string) string { return fmt.Sprintf("%+q", s) }
