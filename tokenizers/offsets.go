// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"unicode"
	"unicode/utf8"
)

// Offset is the stretch [Start, End) of a text, in bytes.
type Offset struct{ Start, End int }

// AppendEncodeOffsets is [Tokenizer.AppendEncodeSegments] and appends to offs which bytes of the joined text
// each id stands for, so that both grow by the same number.
//
// Offsets equal the reference's, which counts characters: a token that is part of a character has the whole
// of it, and where the normalizer changed the text a token has the characters that the reference holds
// responsible (of several that became one, the first). Tokens that stand for nothing, such as padding, are
// empty. Offsets cost some allocations and several times the time of the ids.
func (t *Tokenizer) AppendEncodeOffsets(ids []uint32, offs []Offset, segs []Segment) ([]uint32, []Offset) {
	var e Encoding
	_ = t.Encode(&e, segs, Options{Offsets: true})
	return append(ids, e.IDs...), append(offs, e.Offsets...)
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
