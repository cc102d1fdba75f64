// SPDX-License-Identifier: Apache-2.0

package jsonw

import "unicode/utf8"

// Carry converts pieces of text, which may split a character, into pieces that are valid UTF-8. It holds back at most 3
// bytes. The zero value is ready to use.
//
//	c.Next("a\xe2\x82")  "a"     two bytes of a character are held
//	c.Next("\xac!")      "€!"
//	c.Next("\xe2")       ""
//	c.Flush()            "\uFFFD"
type Carry struct {
	hold [3]byte
	n    uint8
	in   []byte
	out  []byte
}

// Next returns the valid text that data adds to the bytes held back. The result is data itself if possible, otherwise
// memory of c. It is valid until the next call, and only while data does not change. Next does not allocate for text
// that is split between characters.
func (c *Carry) Next(data []byte) []byte {
	if c.n == 0 {
		if utf8.Valid(data) {
			return data
		}
		if k := cutTail(data); k > 0 && utf8.Valid(data[:len(data)-k]) {
			c.n = uint8(copy(c.hold[:], data[len(data)-k:]))
			return data[:len(data)-k]
		}
	}
	c.in = append(append(c.in[:0], c.hold[:c.n]...), data...)
	k := cutTail(c.in)
	c.n = uint8(copy(c.hold[:], c.in[len(c.in)-k:]))
	c.out = AppendValid(c.out[:0], c.in[:len(c.in)-k])
	return c.out
}

// Holds reports whether an incomplete character is held back.
func (c *Carry) Holds() bool { return c.n > 0 }

// Flush ends the text: it returns U+FFFD if an incomplete character was held back, otherwise an empty slice.
func (c *Carry) Flush() []byte {
	if c.n == 0 {
		return nil
	}
	c.n = 0
	c.out = append(c.out[:0], Replacement...)
	return c.out
}

// cutTail returns the length, 0 to 3, of the incomplete but so far well-formed sequence at the end of s.
func cutTail(s []byte) int {
	for k := 1; k <= 3 && k <= len(s); k++ {
		b := s[len(s)-k]
		if b < utf8.RuneSelf {
			return 0
		}
		if b >= 0xC0 {
			if n, _, cut := sequence(s, len(s)-k); cut && n == k {
				return k
			}
			return 0
		}
	}
	return 0
}
