// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"
)

// Offset is the range [Start, End) of the concatenated segments, in bytes, that an id represents.
//
// Offsets equal the reference's, which counts characters. The range of a token that is part of a character is the whole
// character. If the normalizer changed the text, it is the characters that the reference assigns; of several characters
// joined to one, it is the first. The range of tokens without text, such as padding, is empty.
type Offset struct{ Start, End int }

// maxTracked is the maximum length in bytes of a text for offsets, which is the range of normal.Span.
const maxTracked = math.MaxInt32

// trackable returns an error if the total length of segs exceeds limit.
func trackable(segs []Segment, limit int64) error {
	n := int64(0)
	for _, s := range segs {
		n += int64(len(s.Text))
	}
	if n > limit {
		return fmt.Errorf("tokenizers: offsets in a text of %d bytes: %w: at most %d", n, ErrLimit, limit)
	}
	return nil
}

// trimOffsets removes the spaces at the ends of tokens from their offsets in s if the file specifies that, as the reference does
// (pre_tokenizers/byte_level.rs, process_offsets). special specifies whether the text has added special tokens.
func (t *Tokenizer) trimOffsets(offs []covered, s string, special bool) {
	for _, trim := range t.trims {
		for i := range offs {
			o := &offs[i]
			left := o.left
			if left == 1 && trim.prefix && (i == 0 && !(special && trim.joined) || o.Start == 0) { // the space was added
				left = 0
			}
			for ; left > 0 && o.Start < o.End; left-- {
				_, n := utf8.DecodeRuneInString(s[o.Start:o.End])
				o.Start += n
			}
			// The reference removes none if there are more than characters before the end.
			end, right := o.End, o.right
			for ; right > 0 && end > 0; right-- {
				_, n := utf8.DecodeLastRuneInString(s[:end])
				end -= n
			}
			if right == 0 {
				o.End = max(o.Start, end)
			}
		}
	}
}

// spaces returns the number of spaces at both ends of a token, in the spelling of the file.
func spaces(token string) (left, right int) {
	is := func(r rune) bool { return r == 'Ġ' || unicode.IsSpace(r) }
	for _, r := range token {
		if !is(r) {
			break
		}
		left++
	}
	for token != "" {
		r, n := utf8.DecodeLastRuneInString(token)
		if !is(r) {
			break
		}
		token = token[:len(token)-n]
		right++
	}
	return left, right
}
