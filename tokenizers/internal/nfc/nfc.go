// SPDX-License-Identifier: Apache-2.0

// Package nfc puts text into Unicode normalization form C exactly as Hugging Face's NFC normalizer does.
//
// The tables are those of package unidata, so characters newer than the reference's tables stay as they
// are. Bytes that are not UTF-8 are copied and act as borders. Functions are pure; cost is linear, with
// one table look-up per non-ASCII character for text that is already in form C.
package nfc

import (
	"slices"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// Buffer is scratch space for [Append]. The zero value is ready; one goroutine at a time.
type Buffer struct {
	runes []rune
	class []uint8
	order []mark
}

type mark struct {
	r     rune
	class uint8
}

// Span returns the length of the longest prefix of s that is known to be in form C whatever follows.
// If it is len(s), s is in form C.
func Span(s string) int {
	safe := 0 // start of the last character with value 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			safe = i
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError && unidata.NFC(r) != 0 {
			return safe
		}
		safe = i
		i += n
	}
	return len(s)
}

// Append appends s in form C to dst.
func Append(dst []byte, s string, b *Buffer) []byte {
	dst, _ = AppendRuns(dst, nil, s, b)
	return dst
}

// Run says that the bytes [Dst, DstEnd) appended stand for the bytes [Src, SrcEnd) of the source, in both
// of which the same characters lie outside all runs.
type Run struct{ Dst, DstEnd, Src, SrcEnd int }

// AppendRuns is [Append] and appends to runs, if that is not nil, the stretches that changed. Their
// offsets count from what is appended and from the start of s.
func AppendRuns(dst []byte, runs []Run, s string, b *Buffer) ([]byte, []Run) {
	start, at := len(dst), 0
	for at < len(s) {
		n := Span(s[at:])
		dst = append(dst, s[at:at+n]...)
		if at += n; at == len(s) {
			break
		}
		from := len(dst)
		dst, n = b.appendRun(dst, s[at:])
		if runs != nil && string(dst[from:]) != s[at:at+n] {
			runs = append(runs, Run{from - start, len(dst) - start, at, at + n})
		}
		at += n
	}
	return dst, runs
}

// appendRun normalizes from a starter to before the next character that cannot be changed by what
// precedes it, and returns the number of bytes of s used (at least one).
func (b *Buffer) appendRun(dst []byte, s string) ([]byte, int) {
	b.runes = b.runes[:0]
	i := 0
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && n == 1
		if i > 0 && (bad || unidata.NFC(r) == 0) {
			break
		}
		if bad {
			return append(dst, s[0]), 1
		}
		b.decompose(r)
		i += n
	}
	b.reorder()
	for _, r := range b.compose() {
		dst = utf8.AppendRune(dst, r)
	}
	return dst, i
}

// Hangul syllables are composed and decomposed by arithmetic (Unicode standard, 3.12).
const (
	sBase, lBase, vBase, tBase = 0xAC00, 0x1100, 0x1161, 0x11A7
	lCount, vCount, tCount     = 19, 21, 28
	sCount                     = lCount * vCount * tCount
)

func (b *Buffer) decompose(r rune) {
	if si := r - sBase; si >= 0 && si < sCount {
		b.runes = append(b.runes, lBase+si/(vCount*tCount), vBase+si%(vCount*tCount)/tCount)
		if t := si % tCount; t != 0 {
			b.runes = append(b.runes, tBase+t)
		}
		return
	}
	d := unidata.Decompose(r)
	if d == "" {
		b.runes = append(b.runes, r)
		return
	}
	for _, x := range d {
		b.runes = append(b.runes, x)
	}
}

func class(r rune) uint8 {
	if c := unidata.NFC(r); c != unidata.NFCMaybe {
		return c
	}
	return 0
}

// reorder sorts each run of non-starters by class, keeping the order of equals.
func (b *Buffer) reorder() {
	b.class = b.class[:0]
	for _, r := range b.runes {
		b.class = append(b.class, class(r))
	}
	for i := 0; i < len(b.runes); {
		if b.class[i] == 0 {
			i++
			continue
		}
		j := i + 1
		sorted := true
		for j < len(b.runes) && b.class[j] != 0 {
			sorted = sorted && b.class[j-1] <= b.class[j]
			j++
		}
		if !sorted {
			b.order = b.order[:0]
			for k := i; k < j; k++ {
				b.order = append(b.order, mark{b.runes[k], b.class[k]})
			}
			slices.SortStableFunc(b.order, func(x, y mark) int { return int(x.class) - int(y.class) })
			for k, m := range b.order {
				b.runes[i+k], b.class[i+k] = m.r, m.class
			}
		}
		i = j
	}
}

// compose joins characters in place and returns the result.
func (b *Buffer) compose() []rune {
	out := b.runes[:0]
	starter := -1    // index in out
	last := uint8(0) // class of the last character kept after the starter
	for i, r := range b.runes {
		c := b.class[i]
		if starter >= 0 && (len(out)-1 == starter || last < c) {
			if x := pair(out[starter], r); x >= 0 {
				out[starter] = x
				continue
			}
		}
		if c == 0 {
			starter = len(out)
		}
		last = c
		out = append(out, r)
	}
	return out
}

func pair(a, b rune) rune {
	if l, v := a-lBase, b-vBase; l >= 0 && l < lCount && v >= 0 && v < vCount {
		return sBase + (l*vCount+v)*tCount
	}
	if si, t := a-sBase, b-tBase; si >= 0 && si < sCount && si%tCount == 0 && t > 0 && t < tCount {
		return a + t
	}
	return unidata.Compose(a, b)
}
