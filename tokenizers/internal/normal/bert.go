// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"slices"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// Bert returns the normalizer BertNormalizer. clean is its clean_text, chinese its handle_chinese_chars; if the file has
// null for strip_accents, pass lower.
//
// The reference makes four passes: it removes control characters and converts white space to spaces; adds spaces around
// Chinese characters; applies NFD and removes non-spacing marks; converts to lower case. Here they are one pass.
func Bert(clean, chinese, stripAccents, lower bool) Step {
	x := &bert{chinese: chinese, strip: stripAccents}
	if clean {
		x.mask |= unidata.PropDropped | unidata.PropBlank
	}
	if stripAccents {
		x.mask |= unidata.PropCanonical | unidata.PropNonspace
	}
	if lower {
		x.mask |= unidata.PropLower
	}
	for c := range x.tab {
		p := unidata.Props(rune(c)) & x.mask
		switch {
		case c >= utf8.RuneSelf || p&unidata.PropDropped != 0:
			x.tab[c] = stop
		case p&unidata.PropBlank != 0:
			x.tab[c] = ' '
		case p&unidata.PropLower != 0:
			x.tab[c] = byte(unidata.ToLower(rune(c)))
		default:
			x.tab[c] = byte(c)
		}
	}
	var b Buffer
	for i := range x.latin {
		var out Text
		x.Append(&out, Text{B: utf8.AppendRune(nil, rune(i+utf8.RuneSelf))}, &b)
		if r, n := utf8.DecodeRune(out.B); n > 0 && n == len(out.B) {
			x.latin[i] = r
		}
	}
	return x
}

// latinEnd is the end of the Latin letters before IPA.
const latinEnd = 0x250

type bert struct {
	tab            [256]byte                      // the result for an ASCII character; stop if it is removed and for other bytes
	latin          [latinEnd - utf8.RuneSelf]rune // the result for U+0080 and up if it is one character, otherwise 0
	mask           uint8                          // the properties that require a change
	chinese, strip bool
}

// isChinese has the ranges of is_chinese_char in normalizers/bert.rs.
func isChinese(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, 0xF900 <= r && r <= 0xFAFF:
		return true
	case r < 0x20000:
		return false
	}
	return r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B73F || 0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF ||
		0x2F800 <= r && r <= 0x2FA1F
}

func (x *bert) Prefix(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if x.tab[c] != c {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if (unidata.Props(r)&x.mask != 0 || x.chinese && isChinese(r)) && (r != utf8.RuneError || n > 1) {
			return i
		}
		i += n
	}
	return len(s)
}

// mark is a non-starter of the decomposed text.
type mark struct {
	r     rune
	class uint8
	first bool // it replaces a character, rather than being inserted after one
}

// marks sorts the marks that follow a starter. It is used only if origins are requested; otherwise marks are removed
// immediately and need no order.
type marks struct {
	x    *bert
	b    *Buffer
	prev Span // of the last character used before the marks
}

func (x *bert) Append(dst *Text, src Text, b *Buffer) {
	s := view(src.B)
	m := marks{x: x, b: b}
	b.marks, b.spans = b.marks[:0], b.spans[:0]
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if x.tab[c] == stop {
				i++
				continue
			}
			m.flush(dst, src)
			n := len(dst.B)
			dst.B = mapASCII(dst.B, s[i:], &x.tab)
			n = len(dst.B) - n
			if src.From != nil {
				dst.From = append(dst.From, src.From[i:i+n]...)
				m.prev = src.From[i+n-1]
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r < latinEnd && x.latin[r-utf8.RuneSelf] != 0 && (src.From == nil || i+n < len(s) && s[i+n] < utf8.RuneSelf) {
			// No mark follows that could be sorted before one that was here.
			m.flush(dst, src)
			dst.rune(x.latin[r-utf8.RuneSelf], src, i)
			if src.From != nil {
				m.prev = src.From[i]
			}
			i += n
			continue
		}
		p := unidata.Props(r) & x.mask
		chinese := x.chinese && isChinese(r)
		if p == 0 && chinese && src.From == nil {
			m.flush(dst, src)
			dst.B = append(dst.B, ' ')
			dst.B = append(dst.B, s[i:i+n]...)
			dst.B = append(dst.B, ' ')
			i += n
			continue
		}
		switch {
		case p == 0 && !chinese || r == utf8.RuneError && n == 1:
			m.flush(dst, src)
			dst.copy(src, i, i+n)
		case p&unidata.PropDropped != 0: // removed before NFD, so it does not separate marks
			i += n
			continue
		case p&unidata.PropBlank != 0:
			m.flush(dst, src)
			dst.rune(' ', src, i)
		case chinese:
			m.flush(dst, src)
			dst.rune(' ', src, i)
			x.char(dst, src, i, r, p, &m)
			dst.rune(' ', src, i)
		case x.strip && p&(unidata.PropCanonical|unidata.PropNonspace) == unidata.PropNonspace:
			m.flush(dst, src) // it is removed, but it is a starter
		default:
			x.char(dst, src, i, r, p, &m)
		}
		if src.From != nil && len(b.marks) == 0 {
			m.prev = src.From[i]
		}
		i += n
	}
	m.flush(dst, src)
}

const hangul, hangulEnd = 0xAC00, 0xD7A4

// char appends the character r at i of src; if requested, decomposed and without marks, and in lower case.
func (x *bert) char(dst *Text, src Text, i int, r rune, p uint8, m *marks) {
	if p&unidata.PropCanonical == 0 {
		m.flush(dst, src)
		x.put(dst, src, i, r)
		return
	}
	if hangul <= r && r < hangulEnd {
		m.flush(dst, src)
		k := r - hangul
		dst.B = utf8.AppendRune(dst.B, 0x1100+k/588)
		dst.B = utf8.AppendRune(dst.B, 0x1161+k%588/28)
		if k %= 28; k != 0 {
			dst.B = utf8.AppendRune(dst.B, 0x11A7+k)
		}
		if src.From != nil {
			dst.fill(src.From[i])
		}
		return
	}
	d := unidata.Decompose(r)
	if d == "" {
		x.piece(dst, src, i, r, true, m)
		return
	}
	first := true
	for _, r := range d {
		x.piece(dst, src, i, r, first, m)
		first = false
	}
}

// piece takes one character of a decomposition.
func (x *bert) piece(dst *Text, src Text, i int, r rune, first bool, m *marks) {
	nonspace := unidata.Props(r)&unidata.PropNonspace != 0
	class := unidata.NFC(r)
	if class == unidata.NFCMaybe {
		class = 0
	}
	switch {
	case class == 0:
		m.flush(dst, src)
		if src.From != nil {
			m.prev = src.From[i]
		}
		if !nonspace {
			x.put(dst, src, i, r)
		}
	case src.From != nil:
		if first {
			m.b.spans = append(m.b.spans, src.From[i])
		}
		fallthrough
	case !nonspace:
		m.b.marks = append(m.b.marks, mark{r, class, first})
	}
}

// put appends r, in lower case if requested.
func (x *bert) put(dst *Text, src Text, i int, r rune) {
	x.append(dst, r)
	if src.From != nil {
		dst.fill(src.From[i])
	}
}

func (x *bert) append(dst *Text, r rune) {
	if unidata.Props(r)&x.mask&unidata.PropLower != 0 {
		dst.lower(r)
	} else {
		dst.B = utf8.AppendRune(dst.B, r)
	}
}

// flush appends the remaining marks in canonical order, with the origins of all marks in that order.
func (m *marks) flush(dst *Text, src Text) {
	if len(m.b.marks) == 0 {
		return
	}
	slices.SortStableFunc(m.b.marks, func(a, b mark) int { return int(a.class) - int(b.class) })
	used := 0
	for _, c := range m.b.marks {
		if src.From != nil && c.first {
			m.prev = m.b.spans[used]
			used++
		}
		if unidata.Props(c.r)&unidata.PropNonspace != 0 {
			continue
		}
		m.x.append(dst, c.r)
		if src.From != nil {
			dst.fill(m.prev)
		}
	}
	m.b.marks, m.b.spans = m.b.marks[:0], m.b.spans[:0]
}
