// SPDX-License-Identifier: Apache-2.0

package unidata

import "testing"

// Each row was asked from the reference, Hugging Face tokenizers 0.23.2.
func TestPredicates(t *testing.T) {
	for _, c := range []struct {
		r                     rune
		punct, numeric, space bool
	}{
		{'a', false, false, false}, {'$', true, false, false}, {'~', true, false, false}, {'_', true, false, false},
		{0x7F, false, false, false}, {' ', false, false, true}, {0x0B, false, false, true}, {0x1C, false, false, false},
		{'7', false, true, false}, {'²', false, true, false}, {'½', false, true, false}, {'٣', false, true, false},
		{'一', false, false, false}, {'Ⅷ', false, true, false}, {'—', true, false, false}, {'。', true, false, false},
		{'€', false, false, false}, {0x85, false, false, true}, {0xA0, false, false, true}, {0x200B, false, false, false},
		{0x2028, false, false, true}, {0x3000, false, false, true}, {0xFEFF, false, false, false},
		{0x61D, false, false, false},  // punctuation since Unicode 14
		{0x166D, true, false, false},  // a symbol since Unicode 12
		{0x11DE0, false, true, false}, // a digit since Unicode 17
		{-1, false, false, false}, {0xD800, false, false, false}, {0x110000, false, false, false},
	} {
		if IsPunct(c.r) != c.punct || IsNumeric(c.r) != c.numeric || IsSpace(c.r) != c.space {
			t.Errorf("%U: punct %t, numeric %t, space %t", c.r, IsPunct(c.r), IsNumeric(c.r), IsSpace(c.r))
		}
	}
}

func TestToLower(t *testing.T) {
	for r, want := range map[rune]rune{
		'a': 'a', 'Z': 'z', '[': '[', 'É': 'é', '×': '×', 'ß': 'ß', 'ẞ': 'ß', 'Σ': 'σ', 'ς': 'ς', 'ſ': 'ſ', 'Ā': 'ā',
		'ā': 'ā', 'Ĳ': 'ĳ', 'Ź': 'ź', 'ǅ': 'ǆ', 'Ǆ': 'ǆ', 'K': 'k', 'Å': 'å', 'Ⅷ': 'ⅷ', 'Ⓐ': 'ⓐ', 'Ꭰ': 'ꭰ', 'Ა': 'ა',
		'𐐀': '𐐨', 'Ｚ': 'ｚ', 0x130: 0x130, 0x131: 0x131, -1: -1, 0x110000: 0x110000,
	} {
		if got := ToLower(r); got != want {
			t.Errorf("ToLower(%U) = %U, want %U", r, got, want)
		}
	}
}

func TestDecompose(t *testing.T) {
	for _, c := range []struct {
		r                 rune
		canonical, compat string
	}{
		{'a', "", ""}, {'é', "e\u0301", ""}, {'ﬁ', "", "fi"}, {'ſ', "", "s"}, {'ẛ', "ſ\u0307", "s\u0307"}, {0xFDFA, "", "صلى الله عليه وسلم"},
		{'Ａ', "", "A"}, {'①', "", "1"}, {0x2F800, "丽", ""}, {-1, "", ""},
	} {
		if a, b := Decompose(c.r), DecomposeCompat(c.r); a != c.canonical || b != c.compat {
			t.Errorf("%U: %+q and %+q", c.r, a, b)
		}
	}
}

func TestGrapheme(t *testing.T) {
	for r, want := range map[rune]uint8{
		'a': GraphemeAny, '\t': GraphemeControl, 0x301: GraphemeExtend, 0x200D: GraphemeZWJ, 0x200C: GraphemeUnlinked, 0x94D: GraphemeLinker,
		0x903: GraphemeSpacing, 0x600: GraphemePrepend, '©': GraphemePictographic, '😀': GraphemePictographic, 0x915: GraphemeConsonant,
		0x1100: GraphemeL, 0x1161: GraphemeV, 0x11A8: GraphemeT, '가': GraphemeLV, '각': GraphemeLVT, -1: GraphemeAny,
	} {
		if got := Grapheme(r); got != want {
			t.Errorf("Grapheme(%U) = %d, want %d", r, got, want)
		}
	}
}
