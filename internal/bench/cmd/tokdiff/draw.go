// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"strings"
	"unicode"

	"github.com/weft-go/weft/tokenizers"
)

// drawer draws texts. The same seed and tokenizer give the same texts.
type drawer struct {
	r     *rand.Rand
	added []string
	size  int // of the vocabulary
	kinds []func(*drawer, *strings.Builder)
}

func newDrawer(seed uint64, tok *tokenizers.Tokenizer) *drawer {
	d := &drawer{r: rand.New(rand.NewPCG(seed, 0x7e57)), size: tok.VocabSize()}
	for _, a := range tok.AddedTokens() {
		d.added = append(d.added, a.Content)
	}
	d.kinds = []func(*drawer, *strings.Builder){
		(*drawer).code, (*drawer).words, (*drawer).block, (*drawer).anywhere, (*drawer).marks, (*drawer).emoji,
		(*drawer).controls, (*drawer).spaces, (*drawer).critical, (*drawer).critical, (*drawer).repeat, (*drawer).token, (*drawer).token,
	}
	return d
}

// text draws a text of one to a dozen pieces, mostly short ones.
func (d *drawer) text() string {
	var b strings.Builder
	n := 1 + d.r.IntN(12)
	only := d.r.IntN(3 * len(d.kinds)) // one kind only, in a third of the texts
	for range n {
		if only < len(d.kinds) {
			d.kinds[only](d, &b)
		} else {
			pick(d, d.kinds)(d, &b)
		}
	}
	s := b.String()
	if d.r.IntN(10) == 0 { // cut anywhere
		runes := []rune(s)
		s = string(runes[d.r.IntN(len(runes)+1):])
	}
	return s
}

// ids draws a list of ids. A few are in no vocabulary.
func (d *drawer) ids() []uint32 {
	out := make([]uint32, 1+d.r.IntN(20))
	for i := range out {
		switch d.r.IntN(12) {
		case 0:
			out[i] = uint32(d.size + d.r.IntN(1000))
		case 1, 2, 3: // bytes and characters come first in most vocabularies
			out[i] = uint32(d.r.IntN(min(d.size, 600)))
		case 4:
			out[i] = uint32(d.size - 1 - d.r.IntN(min(d.size, 300)))
		default:
			out[i] = uint32(d.r.IntN(d.size))
		}
	}
	return out
}

func pick[T any](d *drawer, list []T) T { return list[d.r.IntN(len(list))] }

func (d *drawer) code(b *strings.Builder) {
	parts := []string{"if ", "err", " != nil {\n", "\treturn ", "fmt.Errorf", "(", ")", "\"%w\"", ", ", "}\n\n", "    ", "\t\t", "// ", "/*", "*/", "::",
		"==", "=> ", "0x1F", "3.14", "1000000", "foo_bar", "camelCase", "HTTPServer", "</div>", "<|", "|>", "'s", "don't", "\\n", "\r\n", "  \n", "://", "[i]", "'", "\"", "```go\n", "#!"}
	for range 1 + d.r.IntN(8) {
		b.WriteString(pick(d, parts))
	}
}

func (d *drawer) words(b *strings.Builder) {
	for range 1 + d.r.IntN(6) {
		for range 1 + d.r.IntN(9) {
			c := byte('a' + d.r.IntN(26))
			if d.r.IntN(6) == 0 {
				c -= 'a' - 'A'
			}
			b.WriteByte(c)
		}
		b.WriteString(pick(d, []string{" ", "  ", ". ", ", ", "'s ", "-", "\n", ""}))
	}
}

// block draws a few adjacent characters from one range of Unicode.
func (d *drawer) block(b *strings.Builder) {
	starts := []rune{0x80, 0x100, 0x180, 0x250, 0x2B0, 0x370, 0x400, 0x530, 0x590, 0x600, 0x700, 0x900, 0xA00, 0xB80, 0xE00, 0xF00, 0x1000, 0x10A0, 0x1100,
		0x13A0, 0x1780, 0x1C80, 0x1D00, 0x1E00, 0x1F00, 0x2000, 0x2070, 0x2100, 0x2150, 0x2200, 0x2460, 0x2500, 0x2C00, 0x2D00, 0x3000, 0x3040, 0x30A0, 0x3130,
		0x3200, 0x3400, 0x4E00, 0x9FA0, 0xA000, 0xA640, 0xA720, 0xAC00, 0xD7A0, 0xF900, 0xFB00, 0xFE00, 0xFE30, 0xFF00, 0x10000, 0x10330, 0x10D40, 0x10F00,
		0x11000, 0x16A40, 0x1BC00, 0x1D100, 0x1D400, 0x1E900, 0x1F100, 0x1F300, 0x1F600, 0x1FBF0, 0x20000, 0x2EBF0, 0x30000, 0xE0000, 0xF0000, 0x10FFF0}
	at := pick(d, starts) + rune(d.r.IntN(100))
	for range 1 + d.r.IntN(8) {
		d.rune(b, at+rune(d.r.IntN(24)))
		if d.r.IntN(5) == 0 {
			b.WriteByte(' ')
		}
	}
}

func (d *drawer) anywhere(b *strings.Builder) {
	for range 1 + d.r.IntN(5) {
		d.rune(b, rune(d.r.IntN(unicode.MaxRune+1)))
	}
}

// rune writes r if UTF-8 can represent it.
func (d *drawer) rune(b *strings.Builder, r rune) {
	if r <= unicode.MaxRune && (r < 0xD800 || r > 0xDFFF) {
		b.WriteRune(r)
	}
}

// marks draws characters that normalization changes.
func (d *drawer) marks(b *strings.Builder) {
	bases := []rune("aeiouAEOnscKgLdßıſÅΩμ한ㅎᄀᄒ가각क়ডযবेো゛かハיאש")
	marks := []rune{0x300, 0x301, 0x302, 0x303, 0x304, 0x307, 0x308, 0x30A, 0x30C, 0x323, 0x327, 0x328, 0x338, 0x345, 0x3B9, 0x5B0, 0x5BC, 0x5C1, 0x64B, 0x653,
		0x93C, 0x9BC, 0x9BE, 0x9D7, 0x1161, 0x1175, 0x11A8, 0x11C2, 0x3099, 0x309A, 0x20D0, 0x1D165, 0x1D16E, 0x110BA, 0x11127, 0xFE0F}
	for range 1 + d.r.IntN(4) {
		b.WriteRune(pick(d, bases))
		for range d.r.IntN(4) {
			b.WriteRune(pick(d, marks))
		}
	}
}

func (d *drawer) emoji(b *strings.Builder) {
	parts := []string{"👩", "👨", "👧", "🏽", "🏿", "\u200D", "\u200D", "❤", "\uFE0F", "\uFE0E", "🔥", "🏳", "🌈", "🇩", "🇪", "🇯", "🇵", "1", "#", "\u20E3", "🚀", "✅", "🫨", "☺"}
	for range 1 + d.r.IntN(7) {
		b.WriteString(pick(d, parts))
	}
}

func (d *drawer) controls(b *strings.Builder) {
	for range 1 + d.r.IntN(4) {
		switch d.r.IntN(4) {
		case 0:
			b.WriteByte(byte(d.r.IntN(32)))
		case 1:
			b.WriteRune(rune(0x7F + d.r.IntN(34)))
		default:
			b.WriteRune(pick(d, []rune{0, 0x7F, 0x85, 0xAD, 0x61C, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x202A, 0x2060, 0x2066, 0xFEFF, 0xFFF9, 0xFFFD, 0xFFFE, 0xFFFF, 0xE0001}))
		}
	}
}

func (d *drawer) spaces(b *strings.Builder) {
	all := []rune{' ', ' ', ' ', ' ', '\t', '\n', '\n', '\r', '\v', '\f', 0x1C, 0x1F, 0x85, 0xA0, 0x1680, 0x180E, 0x2000, 0x2003, 0x2009, 0x200A, 0x200B, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0x2581, 0xFEFF}
	for range 1 + d.r.IntN(6) {
		b.WriteRune(pick(d, all))
	}
	if d.r.IntN(2) == 0 {
		b.WriteString(pick(d, []string{"a", "x1", "1", ".", "é", "中", "'s"}))
	}
}

// critical draws characters at which the cutting rules branch.
func (d *drawer) critical(b *strings.Builder) {
	all := []string{"'", "'", "'ſ", "'ſt", "'sa", "'Re", "'lL", "'vea", "s", "S", "ſ", "t", "re", "RE", "ve", "ll", "LL", "d", "m", " ", " ", "  ", "\n", "\r", "\t", "a", "A", "ǅ", "ʰ", "ª", "é", "e\u0301", "İ", "ı", "ß", "ẞ", "Σ", "σ", "ς",
		"1", "12", "123", "1234", "٣", "²", "Ⅷ", "½", "中", "々", "〇", "あ", "ア", "ー", "한", ".", ",", "/", "//", "_", "-", "$", "€", "+", "^", "`", "~", "‘", "’", "“", "…", "—", "・", "\u00A0", "\u3000", "\u0300", "\u0903", "\u20DD", "▁", "Ġ", "<0x0A>"}
	for range 1 + d.r.IntN(10) {
		b.WriteString(pick(d, all))
	}
}

func (d *drawer) repeat(b *strings.Builder) {
	s := pick(d, []string{"a", "A", "0", "7", " ", "\n", "\t", "=", "-", "/", "*", ".", "\"", "é", "中", "ab", "aA", " a", "0x", "\r\n", "\u0301", "🚀", "\u00A0", "!?", "▁"})
	n := 1 + d.r.IntN(40)
	if d.r.IntN(20) == 0 {
		n = 1 + d.r.IntN(1500)
	}
	b.WriteString(strings.Repeat(s, n))
}

// token draws an added token: whole, part of it, in other letters, and with white space around.
func (d *drawer) token(b *strings.Builder) {
	if len(d.added) == 0 {
		return
	}
	s := pick(d, d.added)
	space := []string{"", "", "", " ", "  ", "\n", "\u00A0", "x", "_", "中", "\u0301"}
	b.WriteString(pick(d, space))
	switch d.r.IntN(8) {
	case 0:
		s = strings.ToUpper(s)
	case 1:
		runes := []rune(s)
		s = string(runes[:d.r.IntN(len(runes)+1)])
	case 2:
		runes := []rune(s)
		s = string(runes[d.r.IntN(len(runes)+1):])
	case 3:
		at := len([]rune(s)) / 2
		s = string([]rune(s)[:at]) + " " + string([]rune(s)[at:])
	}
	b.WriteString(s)
	b.WriteString(pick(d, space))
}
