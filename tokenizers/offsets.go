// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"
)

// Offset is the stretch [Start, End) of the joined text of all segments, in bytes, that an id stands for.
//
// Offsets equal the reference's, which counts characters: a token that is part of a character has the whole
// of it, and where the normalizer changed the text a token has the characters that the reference holds
// responsible (of several that became one, the first). Tokens that stand for nothing, such as padding, are
// empty.
type Offset struct{ Start, End int }

// maxTracked is how long a text may be, in bytes, if it is asked where its tokens stand: normal.Span counts so far.
const maxTracked = math.MaxInt32

// trackable fails if the segments are longer together than limit.
func trackable(segs []Segment, limit int64) error {
	n := int64(0)
	for _, s := range segs {
		n += int64(len(s.Text))
	}
	if n > limit {
		return fmt.Errorf("tokenizers: places of tokens in a text of %d bytes: %w: at most %d", n, ErrLimit, limit)
	}
	return nil
}

// trimOffsets takes the spaces at the ends of tokens out of their offsets, if the file wants that, as the
// reference does (pre_tokenizers/byte_level.rs, process_offsets).
func (t *Tokenizer) trimOffsets(ids []uint32, offs []Offset, s string) {
	for _, trim := range t.trims {
		for i, id := range ids {
			o := &offs[i]
			token := s[o.Start:o.End] // the reference takes an added token as it stands in the text
			if t.flag(id)&flagAdded == 0 {
				token, _ = t.Token(id)
			}
			left, right := spaces(token)
			if left == 1 && trim.prefix && (i == 0 || o.Start == 0) { // it was added
				left = 0
			}
			for ; left > 0 && o.Start < o.End; left-- {
				_, n := utf8.DecodeRuneInString(s[o.Start:o.End])
				o.Start += n
			}
			for ; right > 0 && o.Start < o.End; right-- {
				_, n := utf8.DecodeLastRuneInString(s[o.Start:o.End])
				o.End -= n
			}
		}
	}
}

// spaces counts the spaces at both ends of a token as the file spells it.
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
