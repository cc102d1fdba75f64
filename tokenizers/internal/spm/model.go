// SPDX-License-Identifier: Apache-2.0

package spm

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/trie"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// Model is a SentencePiece model. It is immutable and safe for concurrent use.
type Model struct {
	own    words.Owner
	kind   Kind
	types  []Type
	scores []float32
	all    *vocab.Table // every piece
	pieces *vocab.Table // those that text is made of: Normal, User and Unused
	user   *prefixes
	unk    uint32
	fall   bool
	bytes  [256]uint32 // IDs of the byte pieces, if fall

	worst float32 // lowest score of a Normal piece

	trie    *trie.Trie   // Unigram
	borders *bpe.Borders // BPE
	unused  bool         // BPE: some piece is Unused

	norm   Normalizer
	denorm *Denormalizer
	surf   string
	named  [3]string
}

// Parse reads a model file. The error is an [*Error]. It refuses what SentencePiece does: no unknown piece or several, a
// text that two pieces have, byte pieces without byte_fallback or fewer than 256 with it. It also refuses a piece or rule
// of excessive length, scores that are not finite, and a denormalizer that adds or removes spaces.
func Parse(data []byte) (*Model, error) {
	f, err := read(data)
	if err != nil {
		return nil, err
	}
	m := &Model{kind: f.kind, types: f.types, scores: f.scores, fall: f.byteFallback, surf: f.unkSurface}
	unk := -1
	var found [256]bool
	var users []string
	var all, pieces vocab.Builder
	size := 0
	for _, s := range f.texts {
		size += len(s)
	}
	all.Grow(len(f.texts), size)
	pieces.Grow(len(f.texts), size)
	m.worst = math.MaxFloat32
	for id, s := range f.texts {
		fail := func(format string, args ...any) (*Model, error) {
			return nil, &Error{Field: fmt.Sprintf("pieces[%d]", id), Offset: f.at[id], Reason: fmt.Sprintf(format, args...)}
		}
		made := false
		switch f.types[id] {
		case Unknown:
			if unk >= 0 {
				return fail("a second unknown piece")
			}
			unk = id
		case Byte:
			b, ok := byteOf(s)
			switch {
			case !m.fall:
				return fail("the byte piece %q in a model without byte_fallback", s)
			case !ok:
				return fail("the byte piece %q", s)
			}
			found[b] = true
			m.bytes[b] = uint32(id)
		case Normal:
			m.worst = min(m.worst, f.scores[id])
			made = true
		case User:
			users = append(users, s)
			made = true
		case Unused:
			m.unused = true
			made = true
		}
		if err := all.Add(uint32(id), []byte(s), true); err != nil {
			return fail("%s", strings.TrimPrefix(err.Error(), "vocab: "))
		}
		if made {
			if err := pieces.Add(uint32(id), []byte(s), true); err != nil {
				return fail("%s", strings.TrimPrefix(err.Error(), "vocab: "))
			}
		}
	}
	whole := func(err error) (*Model, error) {
		return nil, &Error{Field: "pieces", Offset: -1, Reason: strings.TrimPrefix(err.Error(), "vocab: ")}
	}
	if unk < 0 {
		return whole(errors.New("no unknown piece"))
	}
	m.unk = uint32(unk)
	for b := range found {
		if m.fall && !found[b] {
			return whole(fmt.Errorf("no piece for the byte %#02x, although byte_fallback is set", b))
		}
	}
	if m.all, err = all.Build(); err != nil {
		return whole(err)
	}
	if m.pieces, err = pieces.Build(); err != nil {
		return whole(err)
	}
	if m.user, err = newPrefixes(users); err != nil {
		return whole(err)
	}
	switch m.kind {
	case kindUnigram:
		if m.trie, err = trie.New(m.pieces); err != nil {
			return whole(err)
		}
	case kindBPE:
		m.findBorders()
	}
	m.norm = Normalizer{user: m.user, prefix: f.normal.prefix, strip: f.normal.strip, escape: f.normal.escape, suffix: f.suffix}
	if m.norm.rules, err = f.normal.rules("normalizer_spec"); err != nil {
		return nil, err
	}
	m.norm.setPlain()
	rules, err := f.denormal.rules("denormalizer_spec")
	if err != nil {
		return nil, err
	}
	if rules != nil {
		if f.denormal.prefix || f.denormal.strip || f.denormal.escape {
			return nil, &Error{Field: "denormalizer_spec", Offset: f.denormal.at, Reason: "a denormalizer that changes spaces", Err: ErrUnsupported}
		}
		m.denorm = &Denormalizer{rules}
	}
	for i, id := range f.ids {
		if id >= 0 && id < int64(len(f.texts)) {
			m.named[i] = f.texts[id]
		} else if got, ok := m.all.Lookup(f.named[i]); ok && m.types[got] == Control && id >= 0 {
			m.named[i] = f.named[i]
		}
	}
	return m, nil
}

func (r *rules) rules(path string) (*charsmap, error) {
	if len(r.charsmap) == 0 {
		return nil, nil
	}
	m, err := newCharsmap(r.charsmap)
	if err != nil {
		e := &Error{Field: path + ".precompiled_charsmap", Offset: r.at, Reason: err.Error()}
		if errors.Is(err, ErrLimit) {
			e.Err = ErrLimit
			e.Reason = strings.TrimSuffix(e.Reason, ": "+ErrLimit.Error())
		}
		return nil, e
	}
	return m, nil
}

// byteOf returns the byte that a text such as <0x0A> represents.
func byteOf(s string) (byte, bool) {
	if len(s) != 6 || !strings.HasPrefix(s, "<0x") || s[5] != '>' || strings.ToUpper(s[3:5]) != s[3:5] {
		return 0, false
	}
	b, err := strconv.ParseUint(s[3:5], 16, 8)
	return byte(b), err == nil
}

// Table returns the pieces by ID. The caller must not modify it.
func (m *Model) Table() *vocab.Table { return m.all }

// Type returns the type of a piece; id must be less than Table().Len().
func (m *Model) Type(id uint32) Type { return m.types[id] }

// Unk returns the ID of the unknown piece.
func (m *Model) Unk() uint32 { return m.unk }

// Normalizer returns the first stage.
func (m *Model) Normalizer() *Normalizer { return &m.norm }

// Denormalizer returns the last stage of decoding, or nil.
func (m *Model) Denormalizer() *Denormalizer { return m.denorm }

// ByteFallback reports whether unknown characters are encoded as their bytes.
func (m *Model) ByteFallback() bool { return m.fall }

// Named returns the texts of the pieces that begin a text, end it and fill a batch; each may be empty.
func (m *Model) Named() (bos, eos, pad string) { return m.named[0], m.named[1], m.named[2] }

// Decoded returns the text of a piece other than a byte. If first is set, only control pieces and dropped spaces precede
// it.
func (m *Model) Decoded(id uint32, first bool) string {
	switch m.types[id] {
	case Control:
		return ""
	case Unknown:
		return m.surf
	}
	text := string(m.all.Bytes(id))
	if first && (m.norm.prefix || m.norm.strip) {
		text = strings.TrimPrefix(text, space)
	}
	return strings.ReplaceAll(text, space, " ")
}

// Reaches reports whether the encoding of some text may contain id. It may return true if no such text exists.
func (m *Model) Reaches(id uint32) bool {
	if int64(id) >= int64(len(m.types)) {
		return false
	}
	switch m.types[id] {
	case Control, Unused:
		return false
	case Byte:
		return m.fall
	}
	return true
}

// State is the scratch space and word cache of one goroutine. The zero value is ready to use. It may be used with several
// models in turn.
type State struct {
	words   words.Cache
	path    []node
	ends    []int32
	symbols []symbol
	agenda  []candidate
	split   map[string]int32
	ids     []uint32
	tails   []int
}

// maxKept is the number of scratch bytes that a State keeps for the next text.
const maxKept = 1 << 22

// Reset removes the cached words.
func (st *State) Reset() { st.words.Reset() }

func (st *State) trim() {
	if cap(st.path)*12+cap(st.ends)*4 > maxKept {
		st.path, st.ends = nil, nil
	}
	if cap(st.symbols)*24+cap(st.agenda)*20 > maxKept {
		st.symbols, st.agenda = nil, nil
	}
	if cap(st.ids)*4+cap(st.tails)*8 > maxKept {
		st.ids, st.tails = nil, nil
	}
	st.split = nil
}

// Append appends the IDs of the normalized text s[i:j] to dst. The text around it does not affect the result.
func (m *Model) Append(dst []uint32, s string, i, j int, st *State) []uint32 {
	e := encoder{m: m, st: st, dst: dst, start: len(dst)}
	e.encode(s[:j], i)
	st.trim()
	return e.dst
}

// AppendEnds is [Model.Append] that also appends, for each ID, where its part of the text ends: bytes from i. Each part
// begins where the previous one ends. Of several IDs for the bytes of an unknown piece, the last one has all of it.
func (m *Model) AppendEnds(dst []uint32, ends []int, s string, i, j int, st *State) ([]uint32, []int) {
	e := encoder{m: m, st: st, dst: dst, start: len(dst), ends: ends, track: true}
	e.encode(s[:j], i)
	st.trim()
	return e.dst, e.ends
}

// encoder is the state of one call.
type encoder struct {
	m     *Model
	st    *State
	dst   []uint32
	start int // of the IDs of this call in dst
	ends  []int
	track bool
	at    int // end of the text encoded so far, if track is set
}

func (e *encoder) encode(s string, i int) {
	switch m := e.m; m.kind {
	case kindUnigram:
		e.unigram(s[i:])
	case kindBPE:
		e.bpe(s, i)
	case kindWord:
		for i < len(s) {
			n := word(s[i:])
			e.add(s[i:i+n], m.id(s[i:i+n]))
			i += n
		}
	case kindChar:
		for i < len(s) {
			n, _ := m.symbol(s[i:])
			e.add(s[i:i+n], m.id(s[i:i+n]))
			i += n
		}
	}
}

// symbol returns the length of the user piece or character at the start of s, and whether it is a user piece.
func (m *Model) symbol(s string) (int, bool) {
	if m.user.begins[s[0]] {
		if n := m.user.longest(s); n > 0 {
			return n, true
		}
	}
	return charLen(s), false
}

// word returns the length of the word at the start of s: up to the next space.
func word(s string) int {
	if k := strings.Index(s[1:], space); k >= 0 {
		return k + 1
	}
	return len(s)
}

// id returns the ID of a text, which is m.unk if no piece that may be used has it. Control and byte pieces never are the
// encoding of their own text.
func (m *Model) id(s string) uint32 {
	if id, ok := m.pieces.Lookup(s); ok && m.types[id] != Unused {
		return id
	}
	return m.unk
}

// add appends the IDs of one piece. Consecutive unknown pieces are one, unless they are encoded as bytes.
func (e *encoder) add(w string, id uint32) {
	m := e.m
	if id != m.unk {
		e.dst = append(e.dst, id)
		if e.track {
			e.at += len(w)
			e.ends = append(e.ends, e.at)
		}
		return
	}
	if m.fall {
		for k := range len(w) {
			e.dst = append(e.dst, m.bytes[w[k]])
			if e.track {
				if k == len(w)-1 {
					e.at += len(w)
				}
				e.ends = append(e.ends, e.at)
			}
		}
		return
	}
	e.at += len(w)
	if n := len(e.dst) - 1; n >= e.start && e.dst[n] == m.unk {
		if e.track {
			e.ends[len(e.ends)-1] = e.at
		}
		return
	}
	e.dst = append(e.dst, id)
	if e.track {
		e.ends = append(e.ends, e.at)
	}
}
