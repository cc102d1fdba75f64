// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// decodeBlock is how many tokens are measured before they are copied.
const decodeBlock = 64

// AppendDecode appends the text of ids to dst. With skipSpecial special added tokens are left out. Ids that
// are not in the vocabulary are left out too. Bytes that do not form UTF-8 become U+FFFD: one for each
// maximal part of a sequence, or, in models with byte fallback, one for each byte of a run of byte tokens
// that is not UTF-8 as a whole, as in the reference. It does not allocate if dst has room and the bytes
// are UTF-8.
func (t *Tokenizer) AppendDecode(dst []byte, ids []uint32, skipSpecial bool) []byte {
	skip := uint8(0)
	if skipSpecial {
		skip = flagHidden
	}
	if !t.dec.steady {
		s := t.stream(skipSpecial)
		sc := t.pool.get()
		defer t.pool.put(sc)
		s.run = sc.run[:0]
		for len(ids) > 0 {
			part := ids[:min(len(ids), decodeBlock)]
			if s.steady && s.a.n == 0 {
				// What a Stream would do with tokens of whole characters. Byte tokens below 0x80 are text whatever
				// stands beside them, but at the end of the block, where the run may go on.
				for len(part) > 1 && t.flag(part[len(part)-1])&flagByte != 0 {
					part = part[:len(part)-1]
				}
				all, any, size := t.measure(part)
				if all&flagWhole != 0 && any&(flagAdded|skip) == 0 && t.flag(part[len(part)-1])&flagByte == 0 {
					dst = t.copyTokens(dst, part, size)
					ids = ids[len(part):]
					continue
				}
			}
			for _, id := range part {
				dst = s.Append(dst, id)
			}
			ids = ids[len(part):]
		}
		dst = s.Finish(dst)
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

// measure returns the flags that all ids have and that any of them has, and how many bytes they decode to if none
// is an added token.
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

// copyTokens appends the size bytes of ids, none of them an added token. As they are known to follow each other,
// copying need not be exact but for the last ones.
func (t *Tokenizer) copyTokens(dst []byte, ids []uint32, size int) []byte {
	n := len(dst)
	dst = slices.Grow(dst, size)[:n+size]
	room := dst[n:]
	for _, id := range ids {
		room = room[t.dec.text.Put(room, id):]
	}
	return dst
}

// Stream decodes ids one at a time. Its output, in order, is what [Tokenizer.AppendDecode] gives for all
// ids at once, and no part of it ends inside a character. One goroutine at a time. A step costs O(bytes of
// the token), without allocation if dst has room.
//
// What is held back: up to 3 bytes of a character; in models with byte fallback a whole run of byte tokens,
// one byte each, because the token that ends the run decides whether all of it was text; and what a decoder
// may still take from the end (one token, or the spaces it strips).
//
//	s := tok.NewStream(true)
//	out = s.Append(out[:0], id)   // for each id: the text that is complete now, often one token's
//	out = s.Finish(out[:0])       // at the end: U+FFFD if the last character never became complete
type Stream struct {
	t    *Tokenizer
	skip uint8 // flags of ids to leave out
	a    assembler

	// steady says that a token's text can go out as it is: nothing is held back and nothing may be taken.
	steady  bool
	started bool   // a token was seen
	run     []byte // the run of byte tokens
	strip   int    // how many characters the decoder may still take from the start
	tail    int    // how many characters are held back that it takes if they are the end
	last    uint32 // the token held back, if waiting
	waiting bool
}

// NewStream returns a Stream. With skipSpecial special added tokens are left out.
func (t *Tokenizer) NewStream(skipSpecial bool) *Stream {
	s := t.stream(skipSpecial)
	return &s
}

func (t *Tokenizer) stream(skipSpecial bool) Stream {
	s := Stream{t: t}
	if skipSpecial {
		s.skip = flagHidden
	}
	s.Reset()
	return s
}

// Append appends the text that id completes to dst.
func (s *Stream) Append(dst []byte, id uint32) []byte {
	f := s.t.flag(id)
	if f&s.skip != 0 {
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

// token is Append for decoders that look further than one token.
func (s *Stream) token(dst []byte, id uint32, f uint8) []byte {
	if f&flagKnown == 0 {
		return dst // the reference drops what is no token before it decodes
	}
	d := &s.t.dec
	if d.suffix != "" {
		if s.waiting {
			dst = s.emit(dst, s.t.decoded(s.last))
		}
		s.last, s.waiting = id, true
		return dst
	}
	if f&flagByte != 0 {
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
	s.steady = s.strip == 0 && s.tail == 0 && d.stripEnd == 0
	return dst
}

// endRun decides about the byte tokens so far.
func (s *Stream) endRun(dst []byte) []byte {
	if len(s.run) == 0 {
		return dst
	}
	if utf8.Valid(s.run) {
		dst = s.emit(dst, s.run)
	} else {
		for range s.run {
			dst = s.emit(dst, []byte("\uFFFD"))
		}
	}
	s.run = s.run[:0]
	return dst
}

// emit appends decoded text, without what the decoder strips.
func (s *Stream) emit(dst, p []byte) []byte {
	d := &s.t.dec
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
		// Only such characters: those held back longest go out.
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

// Held returns the number of bytes held back.
func (s *Stream) Held() int {
	n := s.a.n + len(s.run) + s.tail*len(s.t.dec.stripChar)
	if s.waiting {
		n += len(s.t.decoded(s.last))
	}
	return n
}

// Finish appends what is held back to dst, with U+FFFD for what is not a character, and makes the Stream
// ready for the next text.
func (s *Stream) Finish(dst []byte) []byte {
	if !s.t.dec.steady {
		dst = s.endRun(dst)
		if s.waiting {
			word, _ := s.t.Token(s.last)
			dst = s.emit(dst, []byte(strings.ReplaceAll(word, s.t.dec.suffix, "")))
		}
	}
	dst = s.a.finish(dst)
	s.Reset()
	return dst
}

// Reset makes the Stream ready for the next text and drops what it holds back.
func (s *Stream) Reset() {
	d := &s.t.dec
	s.a = assembler{}
	s.run = s.run[:0]
	s.strip, s.tail = d.stripStart, 0
	s.started, s.waiting, s.steady = false, false, d.steady
}
