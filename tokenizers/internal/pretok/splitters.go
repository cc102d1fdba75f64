// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// This file holds the pre-tokenizers that are no regular expression in the file, each as Hugging Face's
// tokenizers 0.23 has it in src/pre_tokenizers.

// runeAt returns the character at s[i] and its length. A bad byte is U+FFFD.
func runeAt(s string, i int) (rune, int) {
	if b := s[i]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRuneInString(s[i:])
}

// splitAt cuts at every single character that match reports.
func splitAt(dst []Piece, s string, b Behavior, match func(rune) bool) []Piece {
	j := joiner{dst: dst, behavior: b}
	prev := 0
	for i := 0; i < len(s); {
		r, n := runeAt(s, i)
		if match(r) {
			if prev < i {
				j.add(prev, i, false)
			}
			prev = i + n
			j.add(i, prev, true)
		}
		i += n
	}
	if prev < len(s) {
		j.add(prev, len(s), false)
	}
	return j.pieces()
}

// Whitespace keeps the matches of \w+|[^\w\s]+ as Rust's regex crate reads it: words and runs of other
// characters, without white space.
type Whitespace struct{}

// AppendPieces implements [Splitter].
func (Whitespace) AppendPieces(dst []Piece, s string) []Piece {
	start, kind := 0, 0 // of the current piece; 0 is white space
	for i := 0; i < len(s); {
		r, n := runeAt(s, i)
		k := 2
		if unidata.IsWord(r) {
			k = 1
		} else if unidata.IsSpace(r) {
			k = 0
		}
		if k != kind {
			if kind != 0 {
				dst = append(dst, Piece{start, i})
			}
			start, kind = i, k
		}
		i += n
	}
	if kind != 0 {
		dst = append(dst, Piece{start, len(s)})
	}
	return dst
}

// WhitespaceSplit cuts at white space, which it removes.
type WhitespaceSplit struct{}

// AppendPieces implements [Splitter].
func (WhitespaceSplit) AppendPieces(dst []Piece, s string) []Piece {
	return splitAt(dst, s, Removed, unidata.IsSpace)
}

// Bert cuts at white space, which it removes, and puts every punctuation character by itself: the
// pre-tokenizer BertPreTokenizer.
type Bert struct{}

// AppendPieces implements [Splitter].
func (Bert) AppendPieces(dst []Piece, s string) []Piece {
	prev := 0
	for i := 0; i < len(s); {
		r, n := runeAt(s, i)
		space := unidata.IsSpace(r)
		if space || unidata.IsPunct(r) {
			if prev < i {
				dst = append(dst, Piece{prev, i})
			}
			prev = i + n
			if !space {
				dst = append(dst, Piece{i, prev})
			}
		}
		i += n
	}
	if prev < len(s) {
		dst = append(dst, Piece{prev, len(s)})
	}
	return dst
}

// Punctuation cuts at every punctuation character.
type Punctuation struct{ Behavior Behavior }

// AppendPieces implements [Splitter].
func (x Punctuation) AppendPieces(dst []Piece, s string) []Piece {
	return splitAt(dst, s, x.Behavior, unidata.IsPunct)
}

// Digits cuts between numeric characters and others.
type Digits struct {
	// Individual puts each numeric character by itself; otherwise a run of them is one piece.
	Individual bool
}

// AppendPieces implements [Splitter].
func (x Digits) AppendPieces(dst []Piece, s string) []Piece {
	if x.Individual {
		return splitAt(dst, s, Isolated, unidata.IsNumeric)
	}
	return splitAt(dst, s, Contiguous, unidata.IsNumeric)
}

// CharDelimiter cuts at a character, which it removes: the pre-tokenizer CharDelimiterSplit.
type CharDelimiter struct{ Delimiter rune }

// AppendPieces implements [Splitter].
func (x CharDelimiter) AppendPieces(dst []Piece, s string) []Piece {
	return splitAt(dst, s, Removed, func(r rune) bool { return r == x.Delimiter })
}

// UnicodeScripts cuts where the script changes, by an old table. Hiragana, Katakana and U+30FC are treated as Han;
// spaces and characters the table does not know join the preceding character, and are lost at the start of
// the text.
type UnicodeScripts struct{}

// AppendPieces implements [Splitter].
func (UnicodeScripts) AppendPieces(dst []Piece, s string) []Piece {
	// Text before the first character with a script belongs to no piece: the reference drops it.
	start, last := -1, -1
	for i := 0; i < len(s); {
		r, n := runeAt(s, i)
		if k := unidata.HFScript(r); k != 0 && k != last {
			if start >= 0 {
				dst = append(dst, Piece{start, i})
			}
			start, last = i, k
		}
		i += n
	}
	if start >= 0 {
		dst = append(dst, Piece{start, len(s)})
	}
	return dst
}

// FixedLength cuts into pieces of Length characters; the last one may be shorter. Length must be above 0,
// else the text stays whole.
type FixedLength struct{ Length int }

// AppendPieces implements [Splitter].
func (x FixedLength) AppendPieces(dst []Piece, s string) []Piece {
	start, k := 0, x.Length
	for i := 0; i < len(s); {
		_, n := runeAt(s, i)
		i += n
		if k--; k == 0 {
			dst = append(dst, Piece{start, i})
			start, k = i, x.Length
		}
	}
	if start < len(s) {
		dst = append(dst, Piece{start, len(s)})
	}
	return dst
}

// Metaspace is the cutting half of the pre-tokenizer Metaspace: with Split, every Replacement character
// (usually U+2581) begins a piece. Writing that character for spaces, and before the text, is a rewriting
// step that comes first.
type Metaspace struct {
	Replacement rune
	Split       bool
}

// AppendPieces implements [Splitter].
func (x Metaspace) AppendPieces(dst []Piece, s string) []Piece {
	start := 0
	for i := 0; i < len(s); {
		r, n := runeAt(s, i)
		if r == x.Replacement && x.Split && i > start {
			dst = append(dst, Piece{start, i})
			start = i
		}
		i += n
	}
	if start < len(s) {
		dst = append(dst, Piece{start, len(s)})
	}
	return dst
}
