// SPDX-License-Identifier: Apache-2.0

package pretok

import "unicode/utf8"

// DeepSeek V3, R1 and V4 cut in three steps, one Func each.

// DeepSeekDigits isolates \p{N}{1,3}.
func DeepSeekDigits(s string, i int) int {
	if end := runMax(s, i, num, 3); end > i {
		return end
	}
	return runNot(s, i, num)
}

// DeepSeekCJK isolates runs of [一-龥぀-ゟ゠-ヿ].
func DeepSeekCJK(s string, i int) int {
	j := i
	for j < len(s) && deepSeekIdeograph(s, j) {
		j += 3
	}
	if j > i {
		return j
	}
	for j < len(s) && !deepSeekIdeograph(s, j) {
		_, n := classAt(s, j)
		j += n
	}
	return j
}

func deepSeekIdeograph(s string, i int) bool {
	if s[i] < 0xE3 || s[i] > 0xE9 {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return 0x4E00 <= r && r <= 0x9FA5 || 0x3040 <= r && r <= 0x30FF
}

// DeepSeekWords is the last step:
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// What it does not match, digits and control characters, stays together as one piece.
func DeepSeekWords(s string, i int) int {
	if end := deepSeekMatch(s, i); end > i {
		return end
	}
	for i < len(s) {
		_, n := classAt(s, i)
		i += n
		if i < len(s) && deepSeekMatch(s, i) > i {
			break
		}
	}
	return i
}

// deepSeekMatch returns the end of a match that starts at s[i], or i.
func deepSeekMatch(s string, i int) int {
	const word, sign = letter | mark, punct | sym
	c, n := classAt(s, i)
	j := i + n
	if c&letter != 0 {
		return run(s, j, word)
	}
	b := s[i]
	if j < len(s) {
		c2, n2 := classAt(s, j)
		switch {
		case b < utf8.RuneSelf && c&sign != 0: // the 32 ASCII signs
			if s[j] < utf8.RuneSelf && c2&letter != 0 {
				for j < len(s) && s[j] < utf8.RuneSelf && ascii[s[j]]&letter != 0 {
					j++
				}
				return j
			}
		case c&sign == 0 && b != '\n' && b != '\r' && c2&word != 0:
			return run(s, j+n2, word)
		case b == ' ' && c2&sign != 0:
			return newlines(s, run(s, j+n2, sign))
		}
	}
	switch {
	case c&mark != 0:
		return run(s, j, word)
	case c&sign != 0:
		return newlines(s, run(s, j, sign))
	case c&space != 0:
		return blanks(s, i, j)
	}
	return i
}
