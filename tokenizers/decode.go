// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"unicode/utf8"
)

// AppendDecode appends the text of ids to dst. With skipSpecial special added tokens are left out. Ids that
// are not in the vocabulary are left out too. Bytes that do not form UTF-8 become U+FFFD, one for each
// maximal part of a sequence, as in the reference. It does not allocate if dst has room and the bytes
// are UTF-8.
func (t *Tokenizer) AppendDecode(dst []byte, ids []uint32, skipSpecial bool) []byte {
	start := len(dst)
	skip := uint8(0)
	if skipSpecial {
		skip = flagHidden
	}
	whole := uint8(flagWhole)
	for _, id := range ids {
		f := t.flag(id)
		if f&skip != 0 {
			continue
		}
		whole &= f
		if f&flagAdded == 0 {
			dst = append(dst, t.vocab.Bytes(id)...)
		} else {
			dst = append(dst, t.bytes(id)...)
		}
	}
	if whole != 0 || utf8.Valid(dst[start:]) {
		return dst
	}
	raw := append([]byte(nil), dst[start:]...)
	var a assembler
	return a.finish(a.feed(dst[:start], raw))
}

// Stream decodes ids one at a time. Its output, in order, is what [Tokenizer.AppendDecode] gives for all
// ids at once, and no part of it ends inside a character. One goroutine at a time. A Stream holds at most
// 3 bytes back and a step costs O(bytes of the token), without allocation if dst has room.
//
//	s := tok.NewStream(true)
//	out = s.Append(out[:0], id)   // for each id: the text that is complete now, often one token's
//	out = s.Finish(out[:0])       // at the end: U+FFFD if the last character never became complete
type Stream struct {
	t    *Tokenizer
	skip uint8 // flags of ids to leave out
	a    assembler
}

// NewStream returns a Stream. With skipSpecial special added tokens are left out.
func (t *Tokenizer) NewStream(skipSpecial bool) *Stream {
	s := &Stream{t: t}
	if skipSpecial {
		s.skip = flagHidden
	}
	return s
}

// Append appends the text that id completes to dst.
func (s *Stream) Append(dst []byte, id uint32) []byte {
	f := s.t.flag(id)
	if f&s.skip != 0 {
		return dst
	}
	if s.a.n == 0 && f&(flagWhole|flagAdded) == flagWhole {
		return append(dst, s.t.vocab.Bytes(id)...)
	}
	return s.a.feed(dst, s.t.bytes(id))
}

// Held returns the number of bytes held back, 0 to 3.
func (s *Stream) Held() int { return s.a.n }

// Finish appends what is held back to dst, as U+FFFD, and makes the Stream ready for the next text.
func (s *Stream) Finish(dst []byte) []byte { return s.a.finish(dst) }

// Reset makes the Stream ready for the next text and drops what it holds back.
func (s *Stream) Reset() { s.a = assembler{} }

// assembler turns bytes into whole characters.
//
// Invariant: 0 <= n <= 3, and held[:n] is the proper beginning of some valid sequence.
type assembler struct {
	held [utf8.UTFMax]byte
	n    int
}

func (a *assembler) feed(dst, p []byte) []byte {
	for a.n > 0 && len(p) > 0 {
		if a.n++; !beginning(a.held[:a.n-1], p[0]) {
			// p[0] does not continue what is held: that was a maximal part.
			a.n = 0
			dst = append(dst, "\uFFFD"...)
			break
		}
		a.held[a.n-1] = p[0]
		p = p[1:]
		if utf8.FullRune(a.held[:a.n]) {
			dst = append(dst, a.held[:a.n]...)
			a.n = 0
		}
	}
	for len(p) > 0 {
		i := validPrefix(p)
		dst = append(dst, p[:i]...)
		p = p[i:]
		if len(p) == 0 {
			break
		}
		n := partLen(p)
		if n == len(p) && !utf8.FullRune(p) {
			a.n = copy(a.held[:], p)
			break
		}
		dst = append(dst, "\uFFFD"...)
		p = p[n:]
	}
	return dst
}

func (a *assembler) finish(dst []byte) []byte {
	if a.n > 0 {
		dst = append(dst, "\uFFFD"...)
		a.n = 0
	}
	return dst
}

// validPrefix returns the length of the longest prefix of p made of whole characters.
func validPrefix(p []byte) int {
	if utf8.Valid(p) {
		return len(p)
	}
	i := 0
	for i < len(p) {
		r, n := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// partLen returns the length of the maximal part of a sequence that the invalid p starts with (Unicode
// standard, 3.9, U+FFFD substitution of maximal subparts): at least 1.
func partLen(p []byte) int {
	n := 1
	for n < len(p) && n < utf8.UTFMax-1 && beginning(p[:n], p[n]) {
		n++
	}
	return n
}

// beginning reports whether b may follow the 1 to 3 bytes of have, the beginning of a sequence, or of
// nothing valid.
func beginning(have []byte, b byte) bool {
	if len(have) == 1 {
		switch c := have[0]; {
		case c < 0xC2 || c > 0xF4:
			return false
		case c == 0xE0:
			return b >= 0xA0 && b <= 0xBF
		case c == 0xED:
			return b >= 0x80 && b <= 0x9F
		case c == 0xF0:
			return b >= 0x90 && b <= 0xBF
		case c == 0xF4:
			return b >= 0x80 && b <= 0x8F
		}
		return b&0xC0 == 0x80
	}
	need := 2
	switch c := have[0]; {
	case c >= 0xF0:
		need = 4
	case c >= 0xE0:
		need = 3
	}
	return len(have) < need && b&0xC0 == 0x80
}
