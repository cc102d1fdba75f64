// SPDX-License-Identifier: Apache-2.0

package tokenizers

import "unicode/utf8"

// assembler joins bytes to whole characters.
//
// Invariant: 0 <= n <= 3, and held[:n] is a proper prefix of a valid sequence.
type assembler struct {
	held [utf8.UTFMax]byte
	n    int
}

func (a *assembler) feed(dst, p []byte) []byte {
	for a.n > 0 && len(p) > 0 {
		if a.n++; !beginning(a.held[:a.n-1], p[0]) {
			// p[0] does not continue held, which was a maximal subpart.
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

// partLen returns the length of the maximal subpart at the start of p, which is not valid UTF-8 (Unicode standard, 3.9,
// U+FFFD substitution of maximal subparts). It is at least 1.
func partLen(p []byte) int {
	n := 1
	for n < len(p) && n < utf8.UTFMax-1 && beginning(p[:n], p[n]) {
		n++
	}
	return n
}

// beginning reports whether b may follow have, which is 1 to 3 bytes. It returns false if have cannot begin a valid
// sequence.
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
