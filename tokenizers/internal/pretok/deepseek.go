// SPDX-License-Identifier: Apache-2.0

package pretok

import "unicode/utf8"

// DeepSeek V3, R1 and V4 cut in three steps, one Func each. DeepSeek does all three in one pass; the steps define its
// result.

// DeepSeek cuts like [DeepSeekDigits], then [DeepSeekCJK], then [DeepSeekWords], each in the pieces of the previous
// one. So digits are separate pieces, and the last expression is applied separately to each run of ideographs and each
// run without any.
func DeepSeek(s string, i int) int {
	c, n := uint8(0), 1
	b := s[i]
	if b < utf8.RuneSelf {
		c = ascii[b]
	} else if deepSeekIdeograph(s, i) {
		return deepSeekRun(s, i)
	} else {
		c, n = classMulti(s[i:])
	}
	j := i + n
	if c&letter != 0 {
		return deepSeekWord(s, j)
	}
	if c&num != 0 {
		return runMax(s, j, num, 2)
	}
	c2, n2 := uint8(0), 1
	if j < len(s) && s[j] < utf8.RuneSelf {
		c2 = ascii[s[j]]
	} else {
		c2, n2 = stretchClass(s, j)
	}
	switch {
	case b < utf8.RuneSelf && c&sign != 0: // the 32 ASCII signs
		if c2&letter != 0 && s[j] < utf8.RuneSelf {
			return asciiLetters(s, j+1)
		}
	case c&sign == 0 && b != '\n' && b != '\r' && c2&word != 0:
		return deepSeekWord(s, j+n2)
	case b == ' ' && c2&sign != 0:
		return newlines(s, deepSeekSigns(s, j+n2))
	}
	switch {
	case c&mark != 0:
		return deepSeekWord(s, j)
	case c&sign != 0:
		return newlines(s, deepSeekSigns(s, j))
	case c&space != 0:
		end := run(s, j, space)
		if c, _ := stretchClass(s, end); c == num {
			s = s[:end]
		}
		return blankRun(s, i, end)
	}
	// A match begins at every character except a control character that is not followed by a word.
	for c2 == 0 {
		c3, n3 := stretchClass(s, j+n2)
		if c3&word != 0 {
			break
		}
		j += n2
		c2, n2 = c3, n3
	}
	return j
}

const (
	word = letter | mark
	sign = punct | sym
)

// stretchClass is classAt for characters that may continue a run without digits and ideographs. Characters that end the
// run, and the end of the text, have the class num, which the expression does not use.
func stretchClass(s string, i int) (class uint8, size int) {
	switch {
	case i == len(s):
		return num, 0
	case s[i] < utf8.RuneSelf:
		return ascii[s[i]], 1
	case deepSeekIdeograph(s, i):
		return num, 3
	}
	return classMulti(s[i:])
}

// deepSeekWord is run(s, i, word) in such a run.
func deepSeekWord(s string, i int) int {
	for {
		i = asciiLetters(s, i)
		if i == len(s) || s[i] < utf8.RuneSelf {
			return i
		}
		c, n := stretchClass(s, i)
		if c&word == 0 {
			return i
		}
		i += n
	}
}

// deepSeekSigns is run(s, i, sign) in such a run.
func deepSeekSigns(s string, i int) int {
	for {
		for i < len(s) && s[i] < utf8.RuneSelf && ascii[s[i]]&sign != 0 {
			i++
		}
		if i == len(s) || s[i] < utf8.RuneSelf {
			return i
		}
		c, n := stretchClass(s, i)
		if c&sign == 0 {
			return i
		}
		i += n
	}
}

// deepSeekRun cuts a run of ideographs, which contains letters, marks and signs of kana, and three unassigned
// characters.
func deepSeekRun(s string, i int) int {
	at := func(i int) uint8 {
		if i < len(s) && deepSeekIdeograph(s, i) {
			c, _ := classMulti(s[i:])
			return c
		}
		return num
	}
	mask := uint8(word)
	switch c := at(i); {
	case c&sign != 0:
		mask = sign
	case c == 0 && at(i+3)&word == 0: // as a control character in DeepSeek
		for i += 3; at(i) == 0 && at(i+3)&word == 0; i += 3 {
		}
		return i
	}
	for i += 3; at(i)&mask != 0; i += 3 {
	}
	return i
}

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
// Bytes that it does not match, digits and control characters, form one piece.
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
