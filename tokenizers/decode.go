// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// decodeBlock is the number of tokens that are measured before they are copied.
const decodeBlock = 64

// AppendDecode appends the text of ids to dst. If skipSpecial is set, it omits special added tokens. It always omits
// ids that are not in the vocabulary. Bytes that do not form UTF-8 become U+FFFD: one for each maximal part of a
// sequence, or, in models with byte fallback, one for each byte of a run of byte tokens that is not UTF-8 as a whole,
// as in the reference. It does not allocate if dst has room and the bytes are UTF-8.
func (t *Tokenizer) AppendDecode(dst []byte, ids []uint32, skipSpecial bool) []byte {
	skip := uint8(0)
	if skipSpecial {
		skip = flagHidden
	}
	if !t.dec.steady {
		slow := flagAdded | skip
		if len(t.dec.late) > 0 {
			slow |= flagByte // these steps see the text of a run
		}
		s := t.stream(skipSpecial)
		sc := t.pool.get()
		defer t.pool.put(sc)
		s.run = sc.run[:0]
		for len(ids) > 0 {
			part := ids[:min(len(ids), decodeBlock)]
			if s.steady && s.a.n == 0 {
				// Tokens of whole characters have the same text as in a stream. Byte tokens below 0x80 are text in any
				// context, except at the end of the block, where the run may continue.
				for len(part) > 1 && t.flag(part[len(part)-1])&flagByte != 0 {
					part = part[:len(part)-1]
				}
				all, any, size := t.measure(part)
				if all&flagWhole != 0 && any&slow == 0 && t.flag(part[len(part)-1])&flagByte == 0 {
					dst = t.copyTokens(dst, part, size)
					ids = ids[len(part):]
					continue
				}
			}
			for _, id := range part {
				dst = s.append(dst, id)
			}
			ids = ids[len(part):]
		}
		dst = s.finish(dst)
		sc.run = s.run
		return dst
	}
	start := len(dst)
	whole := uint8(flagWhole)
	for len(ids) > 0 {
		part := ids[:min(len(ids), decodeBlock)]
		ids = ids[len(part):]
		all, any, size := t.measure(part)
		whole &= all
		if any&(flagAdded|skip) == 0 {
			dst = t.copyTokens(dst, part, size)
			continue
		}
		for _, id := range part {
			if f := t.flag(id); f&skip == 0 {
				dst = append(dst, t.decoded(id)...)
			}
		}
	}
	if whole != 0 || utf8.Valid(dst[start:]) {
		return dst
	}
	raw := append([]byte(nil), dst[start:]...)
	var a assembler
	return a.finish(a.feed(dst[:start], raw))
}

// measure returns the flags that all ids have, the flags that any id has, and the number of bytes to which the ids
// decode if none is an added token.
func (t *Tokenizer) measure(ids []uint32) (all, any uint8, size int) {
	all = ^uint8(0)
	for _, id := range ids {
		f := t.flag(id)
		all &= f
		any |= f
		size += t.dec.text.Size(id)
	}
	return all, any, size
}

// copyTokens appends the text of ids, which is size bytes and contains no added token. Copies may extend past a token's
// end, except for the last ones, because the next copy overwrites the excess.
func (t *Tokenizer) copyTokens(dst []byte, ids []uint32, size int) []byte {
	n := len(dst)
	dst = slices.Grow(dst, size)[:n+size]
	room := dst[n:]
	for _, id := range ids {
		room = room[t.dec.text.Put(room, id):]
	}
	return dst
}

// decoding is the state of decoding IDs one at a time.
type decoding struct {
	t    *Tokenizer
	skip uint8 // flags of ids to omit
	a    assembler

	// steady specifies that a token's text can be appended unchanged: nothing is held back or stripped.
	steady  bool
	started bool   // a token was decoded
	run     []byte // current run of byte tokens
	waits   []byte // text that a step for the whole text or the denormalizer holds back
	first   bool   // run is at the start
	strip   int    // number of characters that the decoder may still strip from the start
	tail    int    // number of characters held back, which it strips if they are at the end
	last    uint32 // the token held back, if waiting
	waiting bool
}

func (t *Tokenizer) stream(skipSpecial bool) decoding {
	s := decoding{t: t}
	if skipSpecial {
		s.skip = flagHidden
	}
	s.reset()
	return s
}

// append appends to dst the text that id completes.
func (s *decoding) append(dst []byte, id uint32) []byte {
	f := s.t.flag(id)
	if f&s.skip != 0 {
		if s.t.dec.pieces != nil {
			return s.endRun(dst) // in SentencePiece, bytes on both sides of a control piece are not one character
		}
		return dst
	}
	if s.a.n == 0 && s.steady && f&(flagWhole|flagAdded|flagByte) == flagWhole {
		return append(dst, s.t.dec.text.Bytes(id)...)
	}
	if s.t.dec.steady {
		return s.a.feed(dst, s.t.decoded(id))
	}
	return s.token(dst, id, f)
}

// token is append for decoders that depend on more than one token.
func (s *decoding) token(dst []byte, id uint32, f uint8) []byte {
	if f&flagKnown == 0 {
		return dst // the reference drops unknown ids before it decodes
	}
	d := &s.t.dec
	if d.distinct {
		if s.started && s.t.spelledAlike(s.last, id) {
			return dst
		}
		s.last, s.started = id, true
		return s.emit(dst, s.t.decoded(id))
	}
	if d.suffix != "" {
		if s.waiting {
			dst = s.emit(dst, s.t.decoded(s.last))
		}
		s.last, s.waiting = id, true
		return dst
	}
	if d.pieces != nil {
		return s.piece(dst, id, f)
	}
	if f&flagByte != 0 {
		s.first = s.first || !s.started
		s.started, s.steady = true, false
		s.run = append(s.run, s.t.decoded(id)[0])
		return dst
	}
	dst = s.endRun(dst)
	if !s.started && d.start != nil {
		dst = s.emit(dst, d.start.Bytes(id))
	} else {
		dst = s.emit(dst, s.t.decoded(id))
	}
	s.started = true
	s.steady = s.strip == 0 && s.tail == 0 && d.stripEnd == 0 && len(d.whole) == 0
	return dst
}

// spelledAlike reports whether two tokens have the same spelling, as an added token may have with another token after the normalizer.
func (t *Tokenizer) spelledAlike(a, b uint32) bool {
	if a == b || (t.flag(a)|t.flag(b))&flagAdded == 0 {
		return a == b
	}
	x, _ := t.Token(a)
	y, _ := t.Token(b)
	return x == y
}

// piece is token for SentencePiece models. Each byte of a run that does not begin a character becomes U+FFFD, so complete
// characters need not wait for the end of the run.
func (s *decoding) piece(dst []byte, id uint32, f uint8) []byte {
	if f&flagByte != 0 {
		s.started, s.steady = true, false
		s.run = append(s.run, s.t.decoded(id)[0])
		for utf8.FullRune(s.run) {
			dst = s.character(dst)
		}
		return dst
	}
	dst = s.endRun(dst)
	if f&flagAdded != 0 || s.started {
		s.started = s.started || f&flagAside == 0
		dst = s.emit(dst, s.t.decoded(id))
	} else {
		text := s.t.dec.start.Bytes(id)
		s.started = f&flagAside == 0 && (len(text) > 0 || s.t.dec.closes)
		dst = s.emit(dst, text)
	}
	s.steady = s.started && s.t.dec.denormal == nil
	return dst
}

// character appends the text of the first character of the current run of byte pieces, or of its first byte.
func (s *decoding) character(dst []byte) []byte {
	r, n := utf8.DecodeRune(s.run)
	dst = s.emit(dst, utf8.AppendRune(nil, r))
	s.run = s.run[:copy(s.run, s.run[n:])]
	return dst
}

// endRun appends the text of the current run of byte tokens.
func (s *decoding) endRun(dst []byte) []byte {
	if len(s.run) == 0 {
		return dst
	}
	if s.t.dec.pieces != nil {
		for len(s.run) > 0 {
			dst = s.character(dst)
		}
		return dst
	}
	late := len(s.t.dec.late) > 0
	switch {
	case utf8.Valid(s.run) && !late:
		dst = s.emit(dst, s.run)
	case utf8.Valid(s.run):
		dst = s.emit(dst, []byte(s.t.dec.joined(string(s.run), s.first)))
	default:
		for i := range s.run {
			dst = s.emit(dst, []byte(s.t.dec.joined("\uFFFD", s.first && i == 0)))
		}
	}
	s.run, s.first = s.run[:0], false
	return dst
}

// emit appends decoded text, except for the characters that the decoder strips.
func (s *decoding) emit(dst, p []byte) []byte {
	d := &s.t.dec
	if len(d.whole) > 0 {
		s.waits = append(s.waits, p...)
		return dst
	}
	if d.denormal != nil {
		s.waits = append(s.waits, p...)
		n := 0
		dst, n = d.denormal.Append(dst, view(s.waits), true)
		s.waits = s.waits[:copy(s.waits, s.waits[n:])]
		return dst
	}
	if d.stripChar == "" {
		return s.a.feed(dst, p)
	}
	for s.strip > 0 && len(p) > 0 {
		if !hasPrefix(p, d.stripChar) {
			s.strip = 0
			break
		}
		p = p[len(d.stripChar):]
		s.strip--
	}
	if len(p) == 0 {
		return dst
	}
	end, n := len(p), 0
	for n < d.stripEnd && end >= len(d.stripChar) && string(p[end-len(d.stripChar):end]) == d.stripChar {
		end -= len(d.stripChar)
		n++
	}
	if end == 0 {
		// p has only such characters: append the ones held back longest.
		n += s.tail
		for ; n > d.stripEnd; n-- {
			dst = append(dst, d.stripChar...)
		}
		s.tail = n
		return dst
	}
	for ; s.tail > 0; s.tail-- {
		dst = append(dst, d.stripChar...)
	}
	s.tail = n
	return s.a.feed(dst, p[:end])
}

func hasPrefix(p []byte, s string) bool { return len(p) >= len(s) && string(p[:len(s)]) == s }

// held returns the number of bytes held back.
func (s *decoding) held() int {
	n := s.a.n + len(s.run) + len(s.waits) + s.tail*len(s.t.dec.stripChar)
	if s.waiting {
		n += len(s.t.decoded(s.last))
	}
	return n
}

// finish appends the text held back to dst, with U+FFFD for bytes that are not a character, and resets s.
func (s *decoding) finish(dst []byte) []byte {
	if !s.t.dec.steady {
		dst = s.endRun(dst)
		if s.waiting {
			word, _ := s.t.Token(s.last)
			dst = s.emit(dst, []byte(strings.ReplaceAll(word, s.t.dec.suffix, "")))
		}
	}
	if d := &s.t.dec; len(d.whole) > 0 {
		text := string(s.a.finish(s.a.feed(nil, s.waits)))
		for _, f := range d.whole {
			text = f(text)
		}
		dst = append(dst, text...)
	} else if len(s.waits) > 0 {
		dst, _ = d.denormal.Append(dst, view(s.waits), false)
	}
	dst = s.a.finish(dst)
	s.reset()
	return dst
}

// reset discards the text held back and prepares s for the next text.
func (s *decoding) reset() {
	d := &s.t.dec
	s.a = assembler{}
	s.run, s.waits = s.run[:0], s.waits[:0]
	s.strip, s.tail = d.stripStart, 0
	s.started, s.waiting, s.first, s.steady = false, false, false, d.steady
}
