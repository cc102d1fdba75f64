// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/normal"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// adding assigns ids to added tokens as the reference does. A token that was added before takes the new flags, but
// remains special if it was. A token in the model's vocabulary keeps that id. All others get the next free id. The ids
// declared in files are ignored.
type adding struct {
	list    []AddedToken
	at      map[string]int // content -> index in list
	free    uint32
	modelID func(string) (uint32, bool)
	changed bool
}

// newAdding returns an adding that continues after the tokens in have, for a model whose vocabulary has size entries.
func newAdding(have []AddedToken, size uint32, modelID func(string) (uint32, bool)) *adding {
	l := &adding{list: slices.Clone(have), at: make(map[string]int, len(have)), free: size, modelID: modelID}
	for i, a := range have {
		l.at[a.Content] = i
		l.free = max(l.free, a.ID+1)
	}
	return l
}

func (l *adding) add(a AddedToken) {
	if a.Content == "" {
		return
	}
	if i, known := l.at[a.Content]; known {
		a.ID = l.list[i].ID
		a.Special = a.Special || l.list[i].Special
		a.wasNormalized = !a.normalized && (l.list[i].normalized || l.list[i].wasNormalized)
		l.changed = l.changed || l.list[i] != a
		l.list[i] = a
		return
	}
	id, known := l.modelID(a.Content)
	if !known {
		id = l.free
		l.free++
	}
	a.ID = id
	l.at[a.Content] = len(l.list)
	l.list = append(l.list, a)
	l.changed = true
}

// readAdded reads the added tokens.
func (t *Tokenizer) readAdded(s jsonr.Span) error {
	p := part{path: "added_tokens", span: s}
	t.addedAt = map[string]int32{}
	t.idAt = map[uint32]int32{}
	if p.null() {
		return t.indexAdded(p)
	}
	list := newAdding(nil, uint32(t.vocab.Count()+len(t.spell.ids)), t.modelID)
	r := jsonr.New(s, p.path)
	for r.Array(); r.Next(); {
		at := r.Path()
		q := part{path: at, span: r.Raw()}
		if r.Err() != nil {
			break
		}
		var v struct {
			ID         uint32
			Content    *string
			Special    bool
			Normalized *bool
			LStrip     bool
			RStrip     bool
			SingleWord bool `json:"single_word"`
		}
		if err := q.distinct(); err != nil {
			return err
		}
		if err := q.fields(&v); err != nil {
			return err
		}
		if v.Content == nil || v.Normalized == nil {
			return q.fail(ErrFormat, "has no content or no normalized flag")
		}
		a := AddedToken{Content: *v.Content, Special: v.Special, normalized: *v.Normalized, lStrip: v.LStrip, rStrip: v.RStrip, singleWord: v.SingleWord}
		if !utf8.ValidString(a.Content) {
			return q.fail(ErrFormat, "content is not UTF-8")
		}
		list.add(a)
	}
	if err := r.End(); err != nil {
		return malformed(err)
	}
	t.added = list.list
	return t.indexAdded(p)
}

// indexAdded sets the fields that depend on the list of added tokens.
func (t *Tokenizer) indexAdded(p part) error {
	if err := t.buildMatchers(p); err != nil {
		return err
	}
	sort.SliceStable(t.added, func(i, j int) bool { return t.added[i].ID < t.added[j].ID })
	size := t.vocab.Len()
	if n := len(t.added); n > 0 {
		if last := t.added[n-1].ID; last > vocab.MaxID {
			return p.fail(ErrLimit, "id %d, the limit is %d", last, vocab.MaxID)
		}
		size = max(size, int(t.added[n-1].ID)+1)
	}
	t.flags = make([]uint8, size)
	t.shown = make([]string, len(t.added))
	special := map[string]bool{}
	for _, a := range t.added {
		special[a.Content] = special[a.Content] || a.Special
	}
	for i, a := range t.added {
		if _, twice := t.idAt[a.ID]; twice {
			return p.fail(ErrUnsupported, "two added tokens with id %d", a.ID)
		}
		t.addedAt[a.Content] = int32(i)
		t.idAt[a.ID] = int32(i)
		t.shown[i] = a.Content
		if a.normalized || a.wasNormalized {
			t.shown[i] = t.normalizedText(a.Content)
		}
		t.flags[a.ID] = flagAdded
		// The reference looks up special tokens by their spelling, so it does not hide one whose spelling the
		// normalizer changes, unless that is the spelling of another one.
		if special[t.shown[i]] {
			t.flags[a.ID] |= flagHidden
		}
		// The id of unknown text is not forged: untrusted text that is unknown should yield it.
		if a.Special && int64(a.ID) < int64(t.vocab.Len()) && int64(a.ID) != t.unk && t.model.reaches(a.ID) {
			t.flags[a.ID] |= flagForged
			t.reachable = true
		}
	}
	if t.reachable {
		return t.findStandIn(p)
	}
	return nil
}

// findStandIn sets what untrusted text yields in place of a special token that is one character of ordinary text, which
// cannot be split: the unknown token, or else U+FFFD.
func (t *Tokenizer) findStandIn(p part) error {
	var sc scratch
	forged := func(part string) bool {
		for _, id := range t.model.append(nil, part, 0, len(part), &sc) {
			if t.flags[id]&flagForged != 0 {
				return true
			}
		}
		return false
	}
	for _, a := range t.added {
		if t.flags[a.ID]&flagForged == 0 || !slices.ContainsFunc(t.model.parts(a.ID), forged) {
			continue
		}
		if t.unk >= 0 && t.flags[t.unk]&flagForged == 0 {
			t.standIn = []uint32{uint32(t.unk)}
			return nil
		}
		t.standIn = t.pieces(nil, stretch{s: "\uFFFD"}, 0, &sc)
		for _, id := range t.standIn {
			if t.flags[id]&flagForged != 0 {
				return p.refuse("special token %q, which is a character of ordinary text, in a model without an unknown token", a.Content)
			}
		}
		return nil
	}
	return nil
}

// searched returns the text that is searched for.
func (t *Tokenizer) searched(a AddedToken) string {
	if !a.normalized {
		return a.Content
	}
	return t.normalizedText(a.Content)
}

// normalizedText returns s after the normalizer.
func (t *Tokenizer) normalizedText(s string) string {
	if len(t.norm) == 0 {
		return s
	}
	var b normal.Buffer
	return string(normal.Run(t.norm, normal.Text{B: []byte(s)}, &b).B)
}

// buildMatchers builds the matchers for text before and after the normalizer. Two tokens that normalize to the same
// text are refused, because the reference then chooses one by the order of a hash map, which differs each time it loads
// the file. So is one that normalizes to nothing.
func (t *Tokenizer) buildMatchers(p part) error {
	var set [2][]AddedToken
	var text [2][]string
	from := map[string]string{} // normalized text -> content
	for _, a := range t.added {
		k, s := 0, a.Content
		if a.normalized {
			if k, s = 1, t.searched(a); s == "" && a.Content != "" {
				return p.refuse("token %q, of which the normalizer leaves nothing: the reference cuts the text everywhere", a.Content)
			}
			if other, twice := from[s]; twice && s != "" {
				return p.refuse("tokens %q and %q, which normalize to the same text", other, a.Content)
			}
			from[s] = a.Content
		}
		set[k], text[k] = append(set[k], a), append(text[k], s)
	}
	for k, to := range []**matcher{&t.raw, &t.normal} {
		if len(set[k]) > 0 {
			*to = newMatcher(set[k], text[k])
		}
	}
	return nil
}
