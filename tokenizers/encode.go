// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/bpe"
	"github.com/weft-go/weft/tokenizers/internal/nfc"
)

// AppendEncode appends the ids of text to dst. Added tokens in the text become their ids; no frame is
// added. It is Hugging Face's encode with add_special_tokens=False.
//
// Use [Tokenizer.AppendEncodeSegments] for prompts that hold text of others: here everybody's
// "<|im_end|>" counts.
func (t *Tokenizer) AppendEncode(dst []uint32, text string) []uint32 {
	sc := t.pool.get()
	dst = t.encode(dst, text, trust{all: true}, sc)
	t.pool.put(sc)
	return dst
}

// AppendEncodeFramed is [Tokenizer.AppendEncode] with the file's frame around the ids: Hugging Face's
// encode with add_special_tokens=True.
func (t *Tokenizer) AppendEncodeFramed(dst []uint32, text string) []uint32 {
	dst = append(dst, t.before...)
	dst = t.AppendEncode(dst, text)
	return append(dst, t.after...)
}

// Frame returns the ids that the file puts before and after a text on request. The caller must not change
// them.
func (t *Tokenizer) Frame() (before, after []uint32) { return t.before, t.after }

// Segment is text with provenance.
type Segment struct {
	Text string
	// Trusted text was written by the program or the model's template. Added tokens are looked for in
	// trusted text only, never across its border.
	Trusted bool
}

// AppendEncodeSegments appends the ids of the segments joined to one text. Added tokens, special or not, are
// not looked for in untrusted text, which never takes part in one either: "<|im_end|>" in it is encoded as
// ordinary characters. (A token that merges make from plain letters, such as a word that a file declares
// once more as added, stays possible if it is not special.) Everything else is as if the text were one
// string: ids equal those of [Tokenizer.AppendEncode] on the joined text when no untrusted text spells an
// added token, a trusted token that strips white space strips that of its neighbours, and one that stands
// alone only looks at the letters beside it, whoever wrote them.
//
// A normalized added token (rare) in a stretch of mixed provenance is left as text when the normalizer
// changes that stretch.
func (t *Tokenizer) AppendEncodeSegments(dst []uint32, segs []Segment) []uint32 {
	sc := t.pool.get()
	dst = t.encodeSegments(dst, segs, sc)
	t.pool.put(sc)
	return dst
}

func (t *Tokenizer) encodeSegments(dst []uint32, segs []Segment, sc *scratch) []uint32 {
	sc.rope = sc.rope[:0]
	sc.ranges = sc.ranges[:0]
	for _, s := range segs {
		if s.Trusted && s.Text != "" {
			n := len(sc.rope)
			if k := len(sc.ranges) - 1; k >= 0 && sc.ranges[k].end == n {
				sc.ranges[k].end += len(s.Text)
			} else {
				sc.ranges = append(sc.ranges, byteRange{n, n + len(s.Text)})
			}
		}
		sc.rope = append(sc.rope, s.Text...)
	}
	return t.encode(dst, view(sc.rope), trust{ranges: sc.ranges}, sc)
}

// encode splits at the added tokens that are looked for before the normalizer.
func (t *Tokenizer) encode(dst []uint32, s string, tr trust, sc *scratch) []uint32 {
	if t.raw == nil {
		return t.encodeNormal(dst, s, tr, sc)
	}
	c := cuts{m: t.raw, s: s, trust: tr}
	for c.next() {
		if c.token >= 0 {
			if sc.tracks != nil {
				sc.tracks.source(tr.base, nil)
				sc.tracks.piece(len(dst), c.start, c.end)
			}
			dst = append(dst, t.raw.tokens[c.token].ID)
		} else {
			dst = t.encodeNormal(dst, s[c.start:c.end], tr.at(c.start), sc)
		}
	}
	return dst
}

// encodeNormal normalizes and splits at the normalized added tokens.
func (t *Tokenizer) encodeNormal(dst []uint32, s string, tr trust, sc *scratch) []uint32 {
	var runs []nfc.Run
	if t.nfc {
		if n := nfc.Span(s); n < len(s) {
			if sc.tracks != nil {
				runs = make([]nfc.Run, 0, 8)
			}
			sc.norm, runs = nfc.AppendRuns(sc.norm[:0], runs, s, &sc.nfc)
			tr = trust{all: tr.whole(len(s)), base: tr.base}
			s = view(sc.norm)
		}
	}
	if sc.tracks != nil {
		sc.tracks.source(tr.base, runs)
	}
	if t.normal == nil || !tr.all && len(tr.ranges) == 0 {
		if sc.tracks != nil {
			sc.tracks.piece(len(dst), 0, -1)
		}
		return t.encodeText(dst, s, tr, sc)
	}
	c := cuts{m: t.normal, s: s, trust: tr}
	for c.next() {
		if c.token < 0 {
			if sc.tracks != nil {
				sc.tracks.piece(len(dst), c.start, -1)
			}
			dst = t.encodeText(dst, s[c.start:c.end], tr, sc)
			continue
		}
		if sc.tracks != nil {
			sc.tracks.piece(len(dst), c.start, c.end)
		}
		dst = append(dst, t.normal.tokens[c.token].ID)
	}
	return dst
}

// encodeText encodes text without added tokens.
func (t *Tokenizer) encodeText(dst []uint32, s string, tr trust, sc *scratch) []uint32 {
	start := len(dst)
	dst = t.cut(dst, s, 0, sc)
	if t.reachable && !tr.all {
		dst = t.defuse(dst, start)
	}
	return dst
}

// cut applies one cutting step to s and what follows it to the pieces.
func (t *Tokenizer) cut(dst []uint32, s string, step int, sc *scratch) []uint32 {
	f := t.steps[step]
	if step == len(t.steps)-1 {
		for i := 0; i < len(s); {
			j := f(s, i)
			dst = t.model.Append(dst, s, i, j, &sc.bpe)
			i = j
		}
		return dst
	}
	for i := 0; i < len(s); {
		j := f(s, i)
		dst = t.cut(dst, s[i:j], step+1, sc)
		i = j
	}
	return dst
}

// defuse replaces special ids that merges made from ordinary text by the ids of their bytes.
func (t *Tokenizer) defuse(dst []uint32, start int) []uint32 {
	clean := true
	for _, id := range dst[start:] {
		clean = clean && !t.IsSpecial(id)
	}
	if clean {
		return dst
	}
	ids := append([]uint32(nil), dst[start:]...)
	dst = dst[:start]
	for _, id := range ids {
		if !t.IsSpecial(id) {
			dst = append(dst, id)
			continue
		}
		for _, b := range t.vocab.Bytes(id) {
			dst = append(dst, t.model.ByteID(b))
		}
	}
	return dst
}

// scratch is what one encoding needs besides the tables.
type scratch struct {
	bpe    bpe.State
	nfc    nfc.Buffer
	norm   []byte
	rope   []byte
	ranges []byteRange
	tracks *tracks // set while offsets are wanted
}

// maxScratch is how many bytes of text buffers a scratch keeps.
const maxScratch = 4 << 20

// pool keeps a scratch per processor. Unlike sync.Pool it survives garbage collections: the caches in it
// are what makes a tokenizer warm.
type pool struct {
	slots []atomic.Pointer[scratch]
}

func (p *pool) get() *scratch {
	for i := range p.slots {
		if sc := p.slots[i].Swap(nil); sc != nil {
			return sc
		}
	}
	return new(scratch)
}

func (p *pool) put(sc *scratch) {
	if cap(sc.norm) > maxScratch {
		sc.norm = nil
	}
	if cap(sc.rope) > maxScratch {
		sc.rope = nil
	}
	for i := range p.slots {
		if p.slots[i].CompareAndSwap(nil, sc) {
			return
		}
	}
}

// ResetCache forgets the words that were encoded before, as if the tokenizer had just been loaded. It is
// meant for measurements. Encodings that run at the same time keep theirs.
func (t *Tokenizer) ResetCache() {
	for i := range t.pool.slots {
		if sc := t.pool.slots[i].Load(); sc != nil && t.pool.slots[i].CompareAndSwap(sc, nil) {
			sc.bpe.Reset()
			t.pool.put(sc)
		}
	}
}

// view returns b as a string without copying. b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
