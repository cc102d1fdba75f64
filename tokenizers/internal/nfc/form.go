// SPDX-License-Identifier: Apache-2.0

package nfc

import (
	"slices"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// Form is a Unicode normalization form, as implemented by the crate unicode-normalization-alignments 0.1.12.
type Form uint8

// The forms: composed or decomposed, and the same after compatibility decomposition.
const (
	C Form = iota
	D
	KC
	KD
)

func (f Form) composed() bool { return f&1 == 0 }
func (f Form) compat() bool   { return f&2 != 0 }

// Char is a character of a normalized run.
type Char struct {
	R rune
	// Change specifies the change of the text, as in Hugging Face's NormalizedString: 1 if the character was inserted,
	// 0 if it replaced a character, -n if it replaced a character and the n after it were removed.
	Change int32
	class  uint8
}

// Span returns the length of the longest prefix of s that is known to be in form f whatever follows. If it
// is len(s), s is in form f.
func (f Form) Span(s string) int {
	if f == C {
		return Span(s)
	}
	mask := unidata.PropCanonical
	if f.compat() {
		mask |= unidata.PropCompat
	}
	if f.composed() {
		mask &^= unidata.PropCanonical
	}
	safe := 0 // start of the last character
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			safe = i
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError {
			if f.composed() && unidata.NFC(r) != 0 || unidata.Props(r)&mask != 0 {
				if f.composed() {
					return safe
				}
				return i // no mark changes the text before it
			}
		}
		safe = i
		i += n
	}
	return len(s)
}

// window is the number of characters after which [Buffer.Next] searches for a position to stop, at the cost of
// examining a character twice.
const window = 64

// Next normalizes the start of s, up to before a character that neither changes nor is changed by what precedes it, and
// returns the characters and how many bytes of s they replace. Both are 0 if s starts with a byte that is not UTF-8,
// which is kept unchanged. The characters are overwritten by the next call.
//
// The sum of 1-Change over the characters is the number of characters used.
func (b *Buffer) Next(f Form, s string) ([]Char, int) {
	b.chars = b.chars[:0]
	i, marks := 0, false
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || i > 0 && f.clean(r) {
			break
		}
		k := len(b.chars)
		b.decompose(f, r)
		if k >= window && f.border(b.chars[k]) {
			b.chars = b.chars[:k]
			break
		}
		for _, c := range b.chars[k:] {
			marks = marks || c.class != 0
		}
		i += n
	}
	if marks {
		b.reorder()
	}
	if f.composed() {
		b.compose()
	}
	return b.chars, i
}

// clean reports whether r is unchanged by normalization and by the preceding text.
func (f Form) clean(r rune) bool {
	switch f {
	case C:
		return unidata.NFC(r) == 0
	case D:
		return unidata.Props(r)&unidata.PropCanonical == 0
	case KC:
		return unidata.NFC(r) == 0 && unidata.Props(r)&unidata.PropCompat == 0
	}
	return unidata.Props(r)&(unidata.PropCanonical|unidata.PropCompat) == 0
}

// border reports whether c, which is fully decomposed, is unchanged by the preceding text.
func (f Form) border(c Char) bool {
	return c.class == 0 && (!f.composed() || unidata.NFC(c.R) == 0)
}

// Hangul syllables are composed and decomposed by arithmetic (Unicode standard, 3.12).
const (
	sBase, lBase, vBase, tBase = 0xAC00, 0x1100, 0x1161, 0x11A7
	lCount, vCount, tCount     = 19, 21, 28
	sCount                     = lCount * vCount * tCount
)

func (b *Buffer) decompose(f Form, r rune) {
	if si := r - sBase; si >= 0 && si < sCount {
		b.chars = append(b.chars, Char{R: lBase + si/(vCount*tCount)}, Char{R: vBase + si%(vCount*tCount)/tCount, Change: 1})
		if t := si % tCount; t != 0 {
			b.chars = append(b.chars, Char{R: tBase + t, Change: 1})
		}
		return
	}
	d := ""
	if f.compat() && unidata.Props(r)&unidata.PropCompat != 0 {
		d = unidata.DecomposeCompat(r)
	} else if unidata.Props(r)&unidata.PropCanonical != 0 {
		d = unidata.Decompose(r)
	}
	if d == "" {
		b.chars = append(b.chars, Char{r, 0, class(r)})
		return
	}
	change := int32(0)
	for _, x := range d {
		b.chars = append(b.chars, Char{x, change, class(x)})
		change = 1
	}
}

// class returns the combining class of a character that does not decompose.
func class(r rune) uint8 {
	if c := unidata.NFC(r); c != unidata.NFCMaybe {
		return c
	}
	return 0
}

// reorder sorts each run of non-starters by class, keeping the order of equals.
func (b *Buffer) reorder() {
	for i := 0; i < len(b.chars); {
		if b.chars[i].class == 0 {
			i++
			continue
		}
		j := i + 1
		sorted := true
		for j < len(b.chars) && b.chars[j].class != 0 {
			sorted = sorted && b.chars[j-1].class <= b.chars[j].class
			j++
		}
		if !sorted {
			slices.SortStableFunc(b.chars[i:j], func(x, y Char) int { return int(x.class) - int(y.class) })
		}
		i = j
	}
}

// compose joins characters in the buffer. A character that joins another adds its change to it.
func (b *Buffer) compose() {
	out := b.chars[:0]
	starter := -1    // index in out
	last := uint8(0) // class of the last character kept after the starter
	for _, c := range b.chars {
		if starter >= 0 && (len(out)-1 == starter || last < c.class) {
			if x := pair(out[starter].R, c.R); x >= 0 {
				out[starter].R = x
				out[starter].Change += c.Change - 1
				continue
			}
		}
		if c.class == 0 {
			starter = len(out)
		}
		last = c.class
		out = append(out, c)
	}
	b.chars = out
}

// pair returns the character that two make together, or -1.
func pair(a, b rune) rune {
	if l, v := a-lBase, b-vBase; l >= 0 && l < lCount && v >= 0 && v < vCount {
		return sBase + (l*vCount+v)*tCount
	}
	if si, t := a-sBase, b-tBase; si >= 0 && si < sCount && si%tCount == 0 && t > 0 && t < tCount {
		return a + t
	}
	return unidata.Compose(a, b)
}
