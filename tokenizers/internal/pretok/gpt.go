// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"strings"
	"unicode/utf8"
)

// This file is structured as follows: GPT-2's expression, then the family of GPT-4's, then the parts they
// share. Each alternative of an expression is tried in its order; the comments number them.

// GPT2 cuts as GPT-2, RoBERTa, Whisper and ModernBERT do (ByteLevel with use_regex):
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func GPT2(s string, i int) int {
	c, n := uint8(0), 1
	if b := s[i]; b < utf8.RuneSelf {
		c = ascii[b]
	} else {
		c, n = classMulti(s[i:])
	}
	j := i + n
	switch {
	case c&letter != 0:
		return letters(s, j, letter)
	case c&num != 0:
		return run(s, j, num)
	case s[i] == '\'':
		if end := smallContraction(s, i); end > i {
			return end
		}
	case s[i] == ' ' && j < len(s):
		c2, n2 := uint8(0), 1
		if b := s[j]; b < utf8.RuneSelf {
			c2 = ascii[b]
		} else {
			c2, n2 = classMulti(s[j:])
		}
		switch {
		case c2&letter != 0:
			return letters(s, j+n2, letter)
		case c2&num != 0:
			return run(s, j+n2, num)
		case c2&space == 0:
			return runNot(s, j+n2, letter|num|space)
		}
	}
	if c&space == 0 {
		return runNot(s, j, letter|num|space)
	}
	end := run(s, j, space)
	return beforeLast(s, i, end)
}

// CL100K cuts as Llama 3, GLM-4, Phi-4 and the published conversions of GPT-4's vocabulary do:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func CL100K(s string, i int) int { return gpt4(s, i, letter, 3) }

// CL100KBase cuts by tiktoken's present spelling of cl100k_base as Hugging Face reads it: CL100K, but white
// space that ends the text stays whole, and so does a run of numbers, since in Oniguruma {1,3}+ is not
// possessive but a repeat of a repeat.
//
//	'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s
func CL100KBase(s string, i int) int { return wholeTail(s, i, gpt4(s, i, letter, len(s))) }

// CL100KRust cuts by the same spelling as tiktoken reads it, where {1,3}+ is possessive: CL100K, but white space that
// ends the text stays whole.
func CL100KRust(s string, i int) int { return wholeTail(s, i, gpt4(s, i, letter, 3)) }

// wholeTail returns end, or the end of the text if only white space follows i.
func wholeTail(s string, i, end int) int {
	if end < len(s) {
		if c, n := classAt(s, i); c&space != 0 && run(s, i+n, space) == len(s) {
			return len(s)
		}
	}
	return end
}

// Qwen2 cuts as Qwen 2, 2.5, 3 and Qwen3-Coder do: CL100K with single digits.
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func Qwen2(s string, i int) int { return gpt4(s, i, letter, 1) }

// Qwen35 cuts as Qwen 3.5 does: Qwen2 with marks counted as letters.
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func Qwen35(s string, i int) int { return gpt4(s, i, letter|mark, 1) }

// gpt4 is the scanner used by CL100K and its variants. word is the set of classes in a run of letters, digits the
// maximum length of a run of numbers.
func gpt4(s string, i int, word uint8, digits int) int {
	c, n := uint8(0), 1
	if b := s[i]; b < utf8.RuneSelf {
		c = ascii[b]
	} else {
		c, n = classMulti(s[i:])
	}
	j := i + n
	if c&word != 0 { // 2, without the leading character; a mark may be that one, which gives the same end
		return letters(s, j, word)
	}
	if c&num != 0 { // 3
		return runMax(s, j, num, digits-1)
	}
	b := s[i]
	if j < len(s) && b != '\n' && b != '\r' {
		if b == '\'' { // 1
			if end := contraction(s, i); end > i {
				return end
			}
		}
		c2, n2 := uint8(0), 1
		if b := s[j]; b < utf8.RuneSelf {
			c2 = ascii[b]
		} else {
			c2, n2 = classMulti(s[j:])
		}
		if c2&word != 0 { // 2
			return letters(s, j+n2, word)
		}
		if b == ' ' && c2&(word|num|space) == 0 { // 4, with the leading space
			return newlines(s, runNot(s, j+n2, word|num|space))
		}
	}
	if c&space == 0 { // 4
		return newlines(s, runNot(s, j, word|num|space))
	}
	return blanks(s, i, j)
}

// CLIP cuts as CLIP does, where white space does not match:
//
//	<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+
func CLIP(s string, i int) int {
	c, n := classAt(s, i)
	j := i + n
	switch {
	case c&letter != 0:
		return run(s, j, letter)
	case c&num != 0:
		return j
	case c&space != 0:
		return run(s, j, space)
	case s[i] == '\'':
		if end := smallContraction(s, i); end > i {
			return end
		}
	case s[i] == '<':
		for _, t := range [...]string{"<|startoftext|>", "<|endoftext|>"} {
			if strings.HasPrefix(s[i:], t) {
				return i + len(t)
			}
		}
	}
	return runNot(s, j, letter|num|space)
}

// smallContraction returns the end of 's|'t|'re|'ve|'m|'ll|'d at the apostrophe s[i], or i.
func smallContraction(s string, i int) int {
	if i+1 < len(s) {
		switch s[i+1] {
		case 's', 't', 'm', 'd':
			return i + 2
		case 'r', 'v', 'l':
			if i+2 < len(s) {
				switch s[i+1 : i+3] {
				case "re", "ve", "ll":
					return i + 3
				}
			}
		}
	}
	return i
}

// contraction returns the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at the apostrophe s[i], or i.
// The long s (U+017F) folds to s.
func contraction(s string, i int) int {
	rest := s[i+1:]
	if rest == "" {
		return i
	}
	switch rest[0] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if len(rest) > 1 && rest[1]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if len(rest) > 1 && rest[1]|0x20 == 'l' {
			return i + 3
		}
	}
	if len(rest) > 1 && rest[0] == 0xC5 && rest[1] == 0xBF {
		return i + 3
	}
	return i
}

// newlines returns the end of [\r\n]* at s[i].
func newlines(s string, i int) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// blanks cuts \s*[\r\n]+|\s+(?!\S)|\s+ at s[i], whose first character ends at j and is a space.
func blanks(s string, i, j int) int {
	return blankRun(s, i, run(s, j, space))
}

// blankRun is blanks when the run of spaces is s[i:end].
func blankRun(s string, i, end int) int {
	for k := end - 1; k >= i; k-- {
		if s[k] == '\n' || s[k] == '\r' {
			return k + 1
		}
	}
	return beforeLast(s, i, end)
}

// beforeLast cuts \s+(?!\S)|\s+ when the run of spaces is s[i:end]: all of it at the end of the text, else
// all but the last character, if that leaves any.
func beforeLast(s string, i, end int) int {
	if end == len(s) {
		return end
	}
	k := end - 1
	for s[k]&0xC0 == 0x80 {
		k--
	}
	if k > i {
		return k
	}
	return end
}
