// SPDX-License-Identifier: Apache-2.0

package unidata

import "testing"

func TestClass(t *testing.T) {
	for _, c := range []struct {
		r    rune
		want uint8
	}{
		{'a', Lower}, {'A', Upper}, {'0', Num}, {' ', Space}, {'\n', Space}, {'!', Punct}, {'+', Sym}, {'_', Punct},
		{0, 0}, {0x7F, 0}, {'é', Lower}, {'ǅ', Upper}, {'ʰ', Other}, {'中', Other}, {'²', Num}, {'\u0301', Mark},
		{'\u00a0', Space}, {'\u3000', Space}, {'\u200b', 0}, {'😀', Sym}, {0xFFFD, Sym},
		{0x10D40, Num}, // Garay, Unicode 16
		{0xD800, 0}, {-1, 0}, {0x110000, 0},
	} {
		if got := Class(c.r); got != c.want {
			t.Errorf("Class(%U) = %b, want %b", c.r, got, c.want)
		}
		if c.r >= 0 && c.r < 128 && ASCII[c.r] != c.want {
			t.Errorf("ASCII[%U] = %b, want %b", c.r, ASCII[c.r], c.want)
		}
	}
	for r, want := range map[rune]bool{'中': true, '〇': true, 'あ': false, 'a': false, 0x2E80: true} {
		if IsHan(r) != want {
			t.Errorf("IsHan(%U) = %t", r, !want)
		}
	}
	for r, want := range map[rune]bool{'_': true, 'Z': true, 'z': true, '5': true, '-': false, '[': false, '{': false, '@': false, '`': false, 'é': true, '²': false, '٣': true, '\u0301': true, '\u200d': true, ' ': false} {
		if IsWord(r) != want {
			t.Errorf("IsWord(%U) = %t", r, !want)
		}
	}
}
