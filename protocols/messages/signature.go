// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// sealPrefix marks the signatures that this package makes.
const sealPrefix = "weft1."

// seal computes the signature of a thinking block: its length and its 64-bit FNV-1a hash. Many clients drop thinking
// without a signature, so every block gets one, and on the way back it tells whether the text is still the model's.
// It is no secret and proves nothing about who wrote it.
type seal struct {
	h uint64
	n uint64
}

func (s *seal) add(text []byte) {
	if s.n == 0 {
		s.h = 14695981039346656037
	}
	h := s.h
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	s.h, s.n = h, s.n+uint64(len(text))
}

func (s *seal) append(dst []byte) []byte {
	dst = append(dst, sealPrefix...)
	dst = strconv.AppendUint(dst, s.n, 36)
	dst = append(dst, '.')
	return strconv.AppendUint(dst, s.h, 36)
}

// appendSignature appends the producer's signature, or our own if there is none.
func appendSignature(dst, given []byte, s *seal) []byte {
	if len(given) > 0 {
		return append(dst, given...)
	}
	return s.append(dst)
}

// CheckSignature reports whether signature was made by this package, and if so whether thinking is the text that it
// was made for. Clients of the messages API must send thinking blocks back unchanged; a prompt built from a changed one
// does not match the cached prefix.
func CheckSignature(signature, thinking string) (ours, intact bool) {
	if !strings.HasPrefix(signature, sealPrefix) {
		return false, false
	}
	var s seal
	s.add([]byte(thinking))
	return true, string(s.append(nil)) == signature
}

// blockSeal returns the seal of a collected block of reasoning.
func blockSeal(b *event.Block) (s seal) {
	s.add(jsonw.AppendValid(nil, b.Data))
	return s
}
