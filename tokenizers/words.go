// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"slices"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/bytelevel"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/spm"
	"github.com/weft-go/weft/tokenizers/internal/unigram"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/wordlevel"
	"github.com/weft-go/weft/tokenizers/internal/wordpiece"
)

// model encodes one pre-token, s[i:j].
type model interface {
	append(dst []uint32, s string, i, j int, sc *scratch) []uint32
	// appendEnds also appends where each id ends, in bytes from i.
	appendEnds(dst []uint32, ends []int, s string, i, j int, sc *scratch) ([]uint32, []int)
	// reaches reports whether some word may hold id.
	reaches(id uint32) bool
	// parts returns the characters of a token, each a word.
	parts(id uint32) []string
}

// states holds the mutable state of the models.
type states struct {
	bpe       bpe.State
	wordPiece wordpiece.State
	unigram   unigram.State
	wordLevel wordlevel.State
	pieces    spm.State
}

func (s *states) reset() {
	s.bpe.Reset()
	s.wordPiece.Reset()
	s.unigram.Reset()
	s.pieces.Reset()
}

// core is the interface of the packages of models.
type core[S any] interface {
	Append(dst []uint32, s string, i, j int, st *S) []uint32
	AppendEnds(dst []uint32, ends []int, s string, i, j int, st *S) ([]uint32, []int)
	Reaches(id uint32) bool
}

// words is a model of characters.
type words[S any] struct {
	core[S]
	v     *vocab.Table
	state func(*scratch) *S
}

func (w words[S]) append(dst []uint32, s string, i, j int, sc *scratch) []uint32 {
	return w.Append(dst, s, i, j, w.state(sc))
}

func (w words[S]) appendEnds(dst []uint32, ends []int, s string, i, j int, sc *scratch) ([]uint32, []int) {
	return w.AppendEnds(dst, ends, s, i, j, w.state(sc))
}

func (w words[S]) reaches(id uint32) bool   { return w.Reaches(id) }
func (w words[S]) parts(id uint32) []string { return characters(string(w.v.Bytes(id))) }

func bpeState(sc *scratch) *bpe.State { return &sc.bpe }

func (t *Tokenizer) useChars(m *bpe.Chars) {
	t.model = words[bpe.State]{m, t.vocab, bpeState}
}

func (t *Tokenizer) useWordPiece(m *wordpiece.Model) {
	t.model = words[wordpiece.State]{m, t.vocab, func(sc *scratch) *wordpiece.State { return &sc.wordPiece }}
}

func (t *Tokenizer) useUnigram(m *unigram.Model) {
	t.model = words[unigram.State]{m, t.vocab, func(sc *scratch) *unigram.State { return &sc.unigram }}
}

func (t *Tokenizer) useWordLevel(m *wordlevel.Model) {
	t.model = words[wordlevel.State]{m, t.vocab, func(sc *scratch) *wordlevel.State { return &sc.wordLevel }}
}

// byteWords is BPE over the bytes of the text. A part is a byte.
type byteWords struct{ words[bpe.State] }

func (w byteWords) parts(id uint32) []string {
	var out []string
	for _, b := range w.v.Bytes(id) {
		out = append(out, string([]byte{b}))
	}
	return out
}

// spelledWords is BPE over bytes whose words come in byte-level characters, because steps after ByteLevel
// look at these.
type spelledWords struct{ byteWords }

func (w spelledWords) append(dst []uint32, s string, i, j int, sc *scratch) []uint32 {
	sc.bytes, _ = bytelevel.Decode(sc.bytes[:0], bytesOf(s[i:j]))
	return w.byteWords.append(dst, view(sc.bytes), 0, len(sc.bytes), sc)
}

func (w spelledWords) appendEnds(dst []uint32, ends []int, s string, i, j int, sc *scratch) ([]uint32, []int) {
	n := len(dst)
	dst = w.append(dst, s, i, j, sc)
	at := i
	for _, id := range dst[n:] {
		for range w.v.Bytes(id) {
			_, size := utf8.DecodeRuneInString(s[at:j])
			at += size
		}
		ends = append(ends, at-i)
	}
	return dst, ends
}

func (w spelledWords) parts(id uint32) []string {
	return characters(string(bytelevel.Encode(nil, w.v.Bytes(id))))
}

// characters cuts s into characters.
func characters(s string) []string {
	var out []string
	for s != "" {
		_, n := utf8.DecodeRuneInString(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// useBytes sets m as the model and selects how text is passed to it.
func (t *Tokenizer) useBytes(m *bpe.Model) {
	t.byteBPE = m
	w := byteWords{words[bpe.State]{m, t.vocab, bpeState}}
	if t.mapped+1 < len(t.steps) {
		t.model = spelledWords{w}
	} else {
		// No step depends on the byte-level characters, so the model can use the bytes.
		t.steps = t.steps[:t.mapped]
		t.model = w
	}
	t.cuts = t.onlyCuts()
}

// onlyCuts returns the steps as cuts of the text for a model of bytes, or nil if a step does more than cut.
func (t *Tokenizer) onlyCuts() (cuts []*pretok.Scanner) {
	before, after := t.steps, []step(nil)
	if t.mapped < len(t.steps) {
		before, after = t.steps[:t.mapped], t.steps[t.mapped+1:]
	}
	if n := len(before) - 2; n >= 0 && before[n].cut == pretok.Splitter(pretok.Punctuation{Behavior: pretok.Contiguous}) && before[n+1].expr == gpt2 {
		before = append(slices.Clone(before[:n]), step{fn: pretok.FalconWords})
	}
	for _, st := range before {
		if st.fn == nil || st.rewrite != nil {
			return nil
		}
		cuts = append(cuts, pretok.NewScanner(st.fn))
	}
	switch {
	case len(after) == 0:
	case len(after) == 2 && after[0].cut == pretok.Splitter(pretok.Digits{}) && after[1].expr == "[0-9][0-9][0-9]":
		cuts = append(cuts, pretok.NewScanner(pretok.SpelledDigits))
	default:
		return nil
	}
	return cuts
}

// gaps are the bytes that have no token, marked by 1; nil if all have one.
type gaps [256]uint8

// in reports whether s contains such a byte.
func (g *gaps) in(s string) bool {
	if g == nil {
		return false
	}
	for ; len(s) >= 8; s = s[8:] {
		if g[s[0]]|g[s[1]]|g[s[2]]|g[s[3]]|g[s[4]]|g[s[5]]|g[s[6]]|g[s[7]] != 0 {
			return true
		}
	}
	for i := range len(s) {
		if g[s[i]] != 0 {
			return true
		}
	}
	return false
}
