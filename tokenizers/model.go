// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/jsonfloat"
	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/unigram"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/wordlevel"
	"github.com/weft-go/weft/tokenizers/internal/wordpiece"
)

// fieldsOf contains the fields of an object that is too large for encoding/json.
type fieldsOf struct {
	part
	at map[string]jsonr.Span
}

func (p part) object() (fieldsOf, error) {
	f := fieldsOf{p, make(map[string]jsonr.Span)}
	r := jsonr.New(p.span, p.path)
	var key []byte
	for r.Object(); r.Key(&key); {
		if _, twice := f.at[string(key)]; twice {
			r.Fail("appears twice")
		}
		f.at[string(key)] = r.Raw()
	}
	return f, malformed(r.End())
}

// field returns the value of a field, or null if it is absent.
func (f fieldsOf) field(name string) part {
	s, ok := f.at[name]
	if !ok {
		s = jsonr.Span{Data: []byte("null"), Offset: f.span.Offset}
	}
	return part{path: f.path + "." + name, span: s}
}

// only returns an error if there are fields other than names.
func (f fieldsOf) only(names ...string) error {
	for name := range f.at {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return f.field(name).refuse("field %q", name)
		}
	}
	return nil
}

// value decodes a small field into v, which is unchanged if the field is null.
func (p part) value(v any) error {
	if err := json.Unmarshal(p.span.Data, v); err != nil {
		return p.fail(ErrFormat, "is not as expected: %.60s", p.span.Data)
	}
	return nil
}

// readModel reads the model. Old files omit its type.
func (t *Tokenizer) readModel(s jsonr.Span) error {
	f, err := part{path: "model", span: s}.object()
	if err != nil {
		return err
	}
	var kind string
	if err := f.field("type").value(&kind); err != nil {
		return err
	}
	if kind == "" {
		switch vocab := f.field("vocab"); {
		case !f.field("merges").null():
			kind = "BPE"
		case len(vocab.span.Data) > 0 && vocab.span.Data[0] == '[':
			kind = "Unigram"
		case !f.field("max_input_chars_per_word").null():
			kind = "WordPiece"
		case !f.field("unk_token").null():
			kind = "WordLevel"
		default:
			return f.refuse("a model without type and merges")
		}
	}
	switch kind {
	case "BPE":
		return t.readBPE(f)
	case "WordPiece":
		return t.readWordPiece(f)
	case "WordLevel":
		return t.readWordLevel(f)
	case "Unigram":
		return t.readUnigram(f)
	}
	return f.field("type").refuse("model %.40q", kind)
}

// bpeFields contains the fields of a BPE model other than vocabulary and merges.
type bpeFields struct {
	unk, prefix, suffix                 string
	fuseUnk, byteFallback, ignoreMerges bool
}

func (f fieldsOf) bpe() (v bpeFields, err error) {
	if err := f.only("type", "vocab", "merges", "unk_token", "fuse_unk", "dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"); err != nil {
		return v, err
	}
	dropout := 0.0
	for _, x := range []struct {
		name string
		to   any
	}{
		{"unk_token", &v.unk}, {"fuse_unk", &v.fuseUnk}, {"dropout", &dropout}, {"continuing_subword_prefix", &v.prefix},
		{"end_of_word_suffix", &v.suffix}, {"byte_fallback", &v.byteFallback}, {"ignore_merges", &v.ignoreMerges},
	} {
		if err := f.field(x.name).value(x.to); err != nil {
			return v, err
		}
	}
	if dropout != 0 {
		return v, f.field("dropout").refuse("dropout %v", dropout)
	}
	return v, nil
}

// readBPE reads a BPE model. It works on bytes after a ByteLevel pre-tokenizer, and otherwise on characters.
func (t *Tokenizer) readBPE(f fieldsOf) error {
	v, err := f.bpe()
	if err != nil {
		return err
	}
	if v.byteFallback && v.prefix+v.suffix != "" {
		return f.field("byte_fallback").refuse("byte_fallback with a prefix or suffix of words, whose bytes have offsets outside the text in the reference")
	}
	t.inBytes = t.mapped >= 0 && v.prefix == "" && v.suffix == "" && !v.byteFallback
	if err := t.readVocab(f.field("vocab")); err != nil {
		return err
	}
	if t.inBytes && !t.allBytes() {
		// Characters without a token are dropped or replaced by the unknown token, which only the slower model
		// supports.
		t.inBytes = false
		if err := t.readVocab(f.field("vocab")); err != nil {
			return err
		}
	}
	merges, err := t.readMerges(f.field("merges"), len(v.prefix))
	if err != nil {
		return err
	}
	if t.inBytes {
		m, err := bpe.New(t.vocab, merges, bpe.Options{IgnoreMerges: v.ignoreMerges})
		if err != nil {
			return f.refuseModel(err)
		}
		t.useBytes(m)
		return nil
	}
	opt := bpe.CharsOptions{FuseUnk: v.fuseUnk, ByteFallback: v.byteFallback, ContinuingSubwordPrefix: v.prefix, EndOfWordSuffix: v.suffix, IgnoreMerges: v.ignoreMerges}
	if v.unk != "" {
		id, ok := t.vocab.Lookup(v.unk)
		if !ok {
			return f.field("unk_token").fail(ErrFormat, "%q is not in the vocabulary", v.unk)
		}
		opt.Unk, t.unk = &id, int64(id)
	}
	m, err := bpe.NewChars(t.vocab, merges, opt)
	if err != nil {
		return f.refuseModel(err)
	}
	t.useChars(m)
	if t.mapped >= 0 && v.prefix == "" && v.suffix == "" && !v.byteFallback {
		t.addBytes(merges, v.ignoreMerges)
	}
	return nil
}

// addBytes adds the faster model of bytes, for texts in which every byte has a token.
func (t *Tokenizer) addBytes(merges []bpe.Merge, ignore bool) {
	cuts := t.onlyCuts()
	if cuts == nil || t.vocab.Count() < 256 {
		return
	}
	var b vocab.Builder
	b.Grow(t.vocab.Count(), t.vocab.Count()*6)
	for id := range uint32(t.vocab.Len()) {
		tok, ok := bytelevel.Decode(b.Scratch(), t.vocab.Bytes(id))
		if ok && len(tok) > 0 && b.Add(id, tok, true) != nil {
			return
		}
	}
	table, err := b.Build()
	if err != nil {
		return
	}
	m, err := bpe.New(table, merges, bpe.Options{IgnoreMerges: ignore, Gaps: true})
	if err != nil {
		return // merges of tokens that are not spelled in byte-level characters
	}
	t.byteBPE, t.cuts, t.gaps = m, cuts, new(gaps)
	for c := range 256 {
		if m.Lacks(byte(c)) {
			t.gaps[c] = 1
		}
	}
}

// allBytes reports whether every byte that can occur in UTF-8 has a token.
func (t *Tokenizer) allBytes() bool {
	for b := range 256 {
		if _, ok := t.vocab.Lookup(string([]byte{byte(b)})); !ok && b != 0xC0 && b != 0xC1 && b < 0xF5 {
			return false
		}
	}
	return true
}

// refuseModel converts the error of a model's constructor to an *Error.
func (f fieldsOf) refuseModel(err error) error {
	_, reason, _ := strings.Cut(err.Error(), ": ")
	return f.refuse("%s", reason)
}

func (t *Tokenizer) readWordPiece(f fieldsOf) error {
	if err := f.only("type", "vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"); err != nil {
		return err
	}
	unk, opt := "[UNK]", wordpiece.Options{Prefix: "##", MaxChars: 100}
	for name, to := range map[string]any{"unk_token": &unk, "continuing_subword_prefix": &opt.Prefix, "max_input_chars_per_word": &opt.MaxChars} {
		if err := f.field(name).value(to); err != nil {
			return err
		}
	}
	id, err := t.readWords(f, unk)
	if err != nil {
		return err
	}
	opt.Unk = id
	m, err := wordpiece.New(t.vocab, opt)
	if err != nil {
		return f.refuseModel(err)
	}
	t.useWordPiece(m)
	return nil
}

func (t *Tokenizer) readWordLevel(f fieldsOf) error {
	if err := f.only("type", "vocab", "unk_token"); err != nil {
		return err
	}
	unk := "<unk>"
	if err := f.field("unk_token").value(&unk); err != nil {
		return err
	}
	id, err := t.readWords(f, unk)
	if err != nil {
		return err
	}
	m, err := wordlevel.New(t.vocab, wordlevel.Options{Unk: &id})
	if err != nil {
		return f.refuseModel(err)
	}
	t.useWordLevel(m)
	return nil
}

// readWords reads a vocabulary, which must contain unk, and returns the id of unk.
func (t *Tokenizer) readWords(f fieldsOf, unk string) (uint32, error) {
	if err := t.readVocab(f.field("vocab")); err != nil {
		return 0, err
	}
	id, ok := t.vocab.Lookup(unk)
	if !ok {
		// The reference loads such a file and fails at the first unknown word.
		return 0, f.field("unk_token").refuse("%q is not in the vocabulary", unk)
	}
	t.unk = int64(id)
	return id, nil
}

func (t *Tokenizer) readUnigram(f fieldsOf) error {
	if err := f.only("type", "vocab", "unk_id", "byte_fallback"); err != nil {
		return err
	}
	var opt unigram.Options
	unk := int64(-1)
	for name, to := range map[string]any{"unk_id": &unk, "byte_fallback": &opt.ByteFallback} {
		if err := f.field(name).value(to); err != nil {
			return err
		}
	}
	scores, err := t.readScores(f.field("vocab"))
	if err != nil {
		return err
	}
	switch {
	case unk == -1:
		return f.refuse("a Unigram model without unk_id")
	case unk < 0 || unk >= int64(len(scores)):
		return f.field("unk_id").fail(ErrFormat, "%d is not in the vocabulary", unk)
	}
	opt.Unk, t.unk, t.unkText = uint32(unk), unk, true
	m, err := unigram.New(t.vocab, scores, opt)
	if err != nil {
		return f.refuseModel(err)
	}
	t.useUnigram(m)
	return nil
}

// readScores reads [["token", -1.5], …]; indexes are ids.
func (t *Tokenizer) readScores(p part) ([]float64, error) {
	var b vocab.Builder
	b.Grow(len(p.span.Data)/20, len(p.span.Data)/2)
	scores := make([]float64, 0, len(p.span.Data)/20)
	var token []byte
	r := jsonr.New(p.span, p.path)
	for r.Array(); r.Next(); {
		n := 0
		for r.Array(); r.Next(); n++ {
			switch n {
			case 0:
				token = r.String(token[:0])
			case 1:
				x, ok := jsonfloat.Parse(r.Raw().Data)
				if !ok {
					r.Fail("is no score")
				}
				scores = append(scores, x)
			default:
				r.Fail("has more than a token and its score")
			}
		}
		if r.Err() == nil && n != 2 {
			r.Fail("is not a token and its score")
		}
		if r.Err() != nil {
			break
		}
		if err := b.Add(uint32(len(scores)-1), token, len(token) > 0); err != nil {
			r.Fail("%s", err)
		}
	}
	if err := r.End(); err != nil {
		return nil, malformed(err)
	}
	var err error
	if t.vocab, err = b.Build(); err != nil {
		return nil, p.fail(ErrFormat, "%s", err)
	}
	return scores, nil
}

// readVocab reads {"token": id, …}.
func (t *Tokenizer) readVocab(p part) error {
	var b vocab.Builder
	b.Grow(len(p.span.Data)/16, len(p.span.Data)/2)
	t.spell = spelling{ids: map[string]uint32{}, text: map[uint32]string{}}
	r := jsonr.New(p.span, p.path)
	var key []byte
	for r.Object(); r.Key(&key); {
		id := r.Uint32()
		if r.Err() != nil {
			break
		}
		tok, ok := key, len(key) > 0
		if t.inBytes {
			tok, ok = bytelevel.Decode(b.Scratch(), key)
		}
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

// readMerges reads ["a b", …] or [["a","b"], …]. The second of two tokens loses skip bytes, the prefix of
// tokens inside words, when they are joined.
func (t *Tokenizer) readMerges(p part, skip int) ([]bpe.Merge, error) {
	merges := make([]bpe.Merge, 0, len(p.span.Data)/12)
	r := jsonr.New(p.span, p.path)
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
			text = append(text[:cut], text[cut+1:]...)
		}
		if len(text) < cut+skip {
			r.Fail("has a second token without the prefix")
			break
		}
		joined = append(append(joined[:0], text[:cut]...), text[cut+skip:]...)
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

// spelled is like modelID but takes bytes. It overwrites *scratch.
func (t *Tokenizer) spelled(s []byte, scratch *[]byte) (uint32, bool) {
	if !t.inBytes {
		if id, ok := t.vocab.Lookup(view(s)); ok {
			return id, true
		}
	} else if b, ok := bytelevel.Decode((*scratch)[:0], s); ok && len(b) > 0 {
		*scratch = b
		return t.vocab.Lookup(view(b))
	}
	id, ok := t.spell.ids[string(s)]
	return id, ok
}
