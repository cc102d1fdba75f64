// SPDX-License-Identifier: Apache-2.0

// Package seal computes the signatures that encoders give to reasoning when the producer gave none: many clients drop
// reasoning that carries nothing to be sent back.
//
// A seal holds the text's length and its 64-bit FNV-1a hash. It is no secret and proves nothing about who wrote the text;
// it tells whether the text is still the same. Cost: one multiplication a byte.
package seal

import "strconv"

// Prefix begins every seal.
const Prefix = "weft1."

// A Seal is the seal of the text added so far. The zero Seal is that of no text.
type Seal struct {
	h uint64
	n uint64
}

// Add extends the text.
func (s *Seal) Add(text []byte) {
	if s.n == 0 {
		s.h = 14695981039346656037
	}
	h := s.h
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	s.h, s.n = h, s.n+uint64(len(text))
}

// Len returns the bytes of the text.
func (s *Seal) Len() uint64 { return s.n }

// Append appends the seal in ASCII.
func (s *Seal) Append(dst []byte) []byte {
	dst = append(dst, Prefix...)
	dst = strconv.AppendUint(dst, s.n, 36)
	dst = append(dst, '.')
	return strconv.AppendUint(dst, s.h, 36)
}

// Append appends the seal of text.
func Append(dst, text []byte) []byte {
	var s Seal
	s.Add(text)
	return s.Append(dst)
}
