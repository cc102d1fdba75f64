// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/bpe"
	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/nfc"
	"github.com/weft-go/weft/tokenizers/vocab"
)

// readModel reads a byte-level BPE model. Files of 2020 leave out the type.
func (t *Tokenizer) readModel(s jsonr.Span) error {
	parts := make(map[string]jsonr.Span)
	r := jsonr.New(s, "model")
	var key []byte
	for r.Object(); r.Key(&key); {
		parts[string(key)] = r.Raw()
	}
	if err := r.End(); err != nil {
		return malformed(err)
	}
	at := func(name string) part {
		p, ok := parts[name]
		if !ok {
			p = jsonr.Span{Data: []byte("null"), Offset: s.Offset}
		}
		return part{"model." + name, p}
	}
	switch kind := at("type"); {
	case !kind.null() && string(kind.span.Data) != `"BPE"`:
		return kind.refuse("model %.40s", kind.span.Data)
	case kind.null() && at("merges").null():
		return part{"model", s}.refuse("a model without type and merges")
	}
	var opt bpe.Options
	for name := range parts {
		p := at(name)
		switch v := string(p.span.Data); name {
		case "type", "vocab", "merges":
		case "unk_token", "fuse_unk":
			// Every byte has a token, so nothing is ever unknown.
		case "dropout":
			if v != "null" && v != "0.0" {
				return p.refuse("dropout %.20s", v)
			}
		case "continuing_subword_prefix", "end_of_word_suffix":
			if v != "null" && v != `""` {
				return p.refuse("%s %.40s", name, v)
			}
		case "byte_fallback", "ignore_merges":
			if v != "true" && v != "false" {
				return p.fail(ErrFormat, "is neither true nor false")
			}
			if name == "ignore_merges" {
				opt.IgnoreMerges = v == "true"
			} else if v == "true" {
				return p.refuse("byte_fallback")
			}
		default:
			return p.refuse("field %q", name)
		}
	}
	if err := t.readVocab(at("vocab")); err != nil {
		return err
	}
	merges, err := t.readMerges(at("merges"))
	if err != nil {
		return err
	}
	if t.model, err = bpe.New(t.vocab, merges, opt); err != nil {
		return part{"model", s}.refuse("%s", bytes.TrimPrefix([]byte(err.Error()), []byte("bpe: ")))
	}
	return nil
}

func (t *Tokenizer) readVocab(p part) error {
	var b vocab.Builder
	b.Grow(len(p.span.Data)/16, len(p.span.Data)/2)
	t.spell = spelling{ids: map[string]uint32{}, text: map[uint32]string{}}
	r := jsonr.New(p.span, p.place)
	var key []byte
	for r.Object(); r.Key(&key); {
		id := r.Uint32()
		if r.Err() != nil {
			break
		}
		tok, ok := bytelevel.Decode(b.Scratch(), key)
		if !ok || len(key) == 0 {
			tok, ok = key, false
			if _, twice := t.spell.ids[string(key)]; twice {
				r.Fail("appears twice")
			}
			t.spell.ids[string(key)] = id
			t.spell.text[id] = string(key)
		}
		if err := b.Add(id, tok, ok); err != nil {
			r.Fail("%s", err)
		}
	}
	if err := r.End(); err != nil {
		return malformed(err)
	}
	var err error
	if t.vocab, err = b.Build(); err != nil {
		return p.fail(ErrFormat, "%s", err)
	}
	return nil
}

// readMerges reads ["a b", …] or [["a","b"], …].
func (t *Tokenizer) readMerges(p part) ([]bpe.Merge, error) {
	merges := make([]bpe.Merge, 0, len(p.span.Data)/12)
	r := jsonr.New(p.span, p.place)
	var text, joined, scratch []byte
	for r.Array(); r.Next(); {
		if len(merges) == bpe.MaxMerges {
			return nil, p.fail(ErrLimit, "more than %d merges", bpe.MaxMerges)
		}
		text = text[:0]
		cut := -1
		if r.Peek() == '[' {
			n := 0
			for r.Array(); r.Next(); n++ {
				if n == 1 {
					cut = len(text)
				}
				text = r.String(text)
			}
			if r.Err() == nil && n != 2 {
				r.Fail("has %d parts, not 2", n)
			}
			if r.Err() != nil {
				break
			}
			joined = text
		} else {
			text = r.String(text)
			if bytes.HasPrefix(text, []byte("#version")) {
				continue
			}
			cut = bytes.IndexByte(text, ' ')
			if r.Err() == nil && (cut < 0 || bytes.IndexByte(text[cut+1:], ' ') >= 0) {
				r.Fail("is not two tokens with a space between")
			}
			if r.Err() != nil {
				break
			}
			joined = append(append(joined[:0], text[:cut]...), text[cut+1:]...)
			text = joined
		}
		var ids [3]uint32
		for k, part := range [3][]byte{text[:cut], text[cut:], joined} {
			id, ok := t.spelled(part, &scratch)
			if !ok {
				r.Fail("names %q, which is not in the vocabulary", part)
				break
			}
			ids[k] = id
		}
		merges = append(merges, bpe.Merge{A: ids[0], B: ids[1], To: ids[2]})
	}
	if err := r.End(); err != nil {
		return nil, malformed(err)
	}
	return merges, nil
}

// spelled is modelID without a string. It uses *scratch.
func (t *Tokenizer) spelled(s []byte, scratch *[]byte) (uint32, bool) {
	b, ok := bytelevel.Decode((*scratch)[:0], s)
	*scratch = b
	if ok && len(b) > 0 {
		return t.vocab.Lookup(view(b))
	}
	id, ok := t.spell.ids[string(s)]
	return id, ok
}

// readAdded reads the added tokens and gives them ids as Hugging Face does: one whose text is in the
// vocabulary has that id; each other gets the next free id, whatever the file declares.
func (t *Tokenizer) readAdded(s jsonr.Span) error {
	p := part{"added_tokens", s}
	t.addedAt = map[string]int32{}
	t.idAt = map[uint32]int32{}
	if p.null() {
		return t.indexAdded(p)
	}
	size := uint32(t.vocab.Count() + len(t.spell.ids))
	free := size
	r := jsonr.New(s, p.place)
	for r.Array(); r.Next(); {
		at := r.Path()
		q := part{at, r.Raw()}
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
		a := AddedToken{Content: *v.Content, Special: v.Special, Normalized: *v.Normalized, LStrip: v.LStrip, RStrip: v.RStrip, SingleWord: v.SingleWord}
		if a.Content == "" {
			continue
		}
		if !utf8.ValidString(a.Content) {
			return q.fail(ErrFormat, "content is not UTF-8")
		}
		if _, twice := t.addedAt[a.Content]; twice {
			return q.refuse("added token %q appears twice", a.Content)
		}
		id, known := t.modelID(a.Content)
		if !known {
			id = free
			free++
		} else if id >= size {
			// The reference counts on from the largest added id. It can only be above size if the
			// vocabulary has gaps.
			free = max(free, id+1)
		}
		a.ID = id
		t.addedAt[a.Content] = int32(len(t.added))
		t.added = append(t.added, a)
	}
	if err := r.End(); err != nil {
		return malformed(err)
	}
	return t.indexAdded(p)
}

// indexAdded builds what depends on the list of added tokens.
func (t *Tokenizer) indexAdded(p part) error {
	t.buildMatchers()
	sort.SliceStable(t.added, func(i, j int) bool { return t.added[i].ID < t.added[j].ID })
	size := t.vocab.Len()
	if n := len(t.added); n > 0 {
		if last := t.added[n-1].ID; last > vocab.MaxID {
			return p.fail(ErrLimit, "id %d, the limit is %d", last, vocab.MaxID)
		}
		size = max(size, int(t.added[n-1].ID)+1)
	}
	t.flags = make([]uint8, size)
	t.plain = make([][]byte, len(t.added))
	t.shown = make([]string, len(t.added))
	for i, a := range t.added {
		if _, twice := t.idAt[a.ID]; twice {
			return p.fail(ErrUnsupported, "two added tokens with id %d", a.ID)
		}
		t.addedAt[a.Content] = int32(i)
		t.idAt[a.ID] = int32(i)
		t.shown[i] = t.normalized(a)
		b, ok := bytelevel.Decode(nil, []byte(t.shown[i]))
		if !ok {
			b = []byte(t.shown[i])
		}
		t.plain[i] = b
		t.flags[a.ID] = flagAdded
		// The reference looks special tokens up by their spelling, so it shows one whose spelling the
		// normalizer changes.
		if a.Special && t.shown[i] == a.Content {
			t.flags[a.ID] |= flagHidden
		}
		if a.Special && len(b) == 1 && t.model.ByteID(b[0]) == a.ID {
			return p.refuse("special token %q, which is a byte of ordinary text", a.Content)
		}
		if a.Special && int64(a.ID) < int64(t.vocab.Len()) && t.model.Reaches(a.ID) {
			t.reachable = true
		}
	}
	for id := range t.flags {
		if utf8.Valid(t.bytes(uint32(id))) {
			t.flags[id] |= flagWhole
		}
	}
	return nil
}

// normalized returns the text that is looked for and that the id stands for when ids become text again.
func (t *Tokenizer) normalized(a AddedToken) string {
	if !a.Normalized || !t.nfc {
		return a.Content
	}
	var buf nfc.Buffer
	return string(nfc.Append(nil, a.Content, &buf))
}

// buildMatchers sorts the added tokens by when they are looked for. The reference lists special ones
// first, which matters when two normalize to the same text.
func (t *Tokenizer) buildMatchers() {
	var set [2][]AddedToken
	for _, special := range []bool{true, false} {
		for _, a := range t.added {
			if a.Special == special {
				k := 0
				if a.Normalized {
					k = 1
				}
				set[k] = append(set[k], a)
			}
		}
	}
	for k, tokens := range set {
		if len(tokens) == 0 {
			continue
		}
		text := make([]string, len(tokens))
		for i, a := range tokens {
			text[i] = t.normalized(a)
		}
		m := newMatcher(tokens, text)
		if k == 0 {
			t.raw = m
		} else {
			t.normal = m
		}
	}
}
