// SPDX-License-Identifier: Apache-2.0

package unidata

import "testing"

func has(r [][2]rune, c rune) bool {
	for _, x := range r {
		if x[0] <= c && c <= x[1] {
			return true
		}
	}
	return false
}

func TestProperty(t *testing.T) {
	for _, c := range []struct {
		name    string
		in, out rune
	}{
		{"L", 'ʰ', '1'}, {"Lu", 'A', 'ǅ'}, {"lt", 'ǅ', 'A'}, {"Mn", '\u0301', 'a'}, {"Pc", '_', '-'}, {"Sc", '€', '+'},
		{"Nd", '٣', '²'}, {"Nl", 'Ⅷ', '8'}, {"Zs", '\u00a0', '\n'}, {"Cc", '\n', ' '}, {"Cn", 0x378, 'a'}, {"C", 0x378, 'a'},
		{"Han", '〇', 'あ'}, {"hiragana", 'あ', 'ア'}, {"Old Italic", 0x10300, 'a'}, {"Decimal_Number", '3', '½'},
		{"Alphabetic", '\u0345', '1'}, {"Lower", 'ª', 'A'}, {"Upper", 'Ⓐ', 'a'}, {"Space", 0x85, 'x'}, {"Blank", '\t', '\n'},
		{"Word", '\u0301', '\u200d'}, {"Graph", 'a', ' '}, {"Print", ' ', '\n'}, {"XDigit", 'f', 'g'}, {"Punct", '!', '$'},
		{"Emoji", '😀', 'a'}, {"Lu", 0x10D50, 0x10D70}, {"Garay", 0x10D50, 'a'},
	} {
		r, ok := Property(c.name)
		if !ok || !has(r, c.in) || has(r, c.out) {
			t.Errorf("%s: %t, %c %t, %c %t", c.name, ok, c.in, has(r, c.in), c.out, has(r, c.out))
		}
	}
	if _, ok := Property("Klingon"); ok {
		t.Error("Klingon is known")
	}
	if r, ok := Posix("punct"); !ok || !has(r, '$') {
		t.Error("[:punct:] is without symbols")
	}
	if _, ok := Posix("Han"); ok {
		t.Error("[:Han:] is known")
	}
}

// The categories and the class bits come from different questions to the same reference.
func TestPropertyAgreesWithClass(t *testing.T) {
	for name, bit := range map[string]uint8{"Ll": Lower, "N": Num, "M": Mark, "P": Punct, "S": Sym, "L": Letter, "Space": Space} {
		r, _ := Property(name)
		k := 0
		for c := rune(0); c <= 0x10FFFF; c++ {
			for k < len(r) && r[k][1] < c {
				k++
			}
			if in := k < len(r) && r[k][0] <= c; in != (Class(c)&bit != 0) && (c < 0xD800 || c > 0xDFFF) {
				t.Fatalf("%s: %U is %t", name, c, in)
			}
		}
	}
}

func TestFolds(t *testing.T) {
	n := 0
	Folds(func(orbit []rune) {
		for _, r := range orbit {
			if r == 's' {
				n = len(orbit)
			}
		}
	})
	if n != 3 { // S s ſ
		t.Errorf("s has %d forms", n)
	}
	found := false
	MultiFolds(func(r rune, to []rune) { found = found || r == 'ß' && string(to) == "ss" })
	if !found {
		t.Error("ß does not fold to ss")
	}
}

func TestHFScript(t *testing.T) {
	if HFScript('ー') != HFScript('京') || HFScript('ど') != HFScript('京') || HFScript('a') == HFScript('京') || HFScript(' ') != 0 || HFScript('a') == HFScript('.') {
		t.Error("scripts")
	}
}
