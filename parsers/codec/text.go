// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"unicode/utf8"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
)

const (
	maxDepth = 128  // objects and arrays inside each other, the arguments object included
	maxHeld  = 4096 // bytes kept of what cannot be written before its end
	maxKeys  = 1024 // keys of the arguments object
)

// whole returns how many bytes of src may be read: all, unless src ends inside a UTF-8 sequence that may go on.
func whole(src []byte, final bool) int {
	n := len(src)
	if final || n == 0 || src[n-1] < utf8.RuneSelf {
		return n
	}
	for i := n - 1; i >= max(0, n-3); i-- {
		if utf8.RuneStart(src[i]) {
			if !utf8.FullRune(src[i:]) {
				return i
			}
			break
		}
	}
	return n
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// hexValue returns the value of a hexadecimal digit, or -1.
func hexValue(c byte) rune {
	switch {
	case isDigit(c):
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// isNumber reports whether text is a JSON number and nothing else.
func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || isDigit(text[0])) && !blank(text[len(text)-1]) && jsontext.Valid(text)
}

// keySet is the keys of one arguments object. A look-up costs one comparison of a number per key.
type keySet struct {
	text []byte // the keys, one behind the other
	keys []keyEnd
}

type keyEnd struct {
	end  int
	hash uint32
}

func (s *keySet) reset() { s.text, s.keys = s.text[:0], s.keys[:0] }

// add notes key. It returns More if that is new, Bad if it is known, Limit if there are too many.
func (s *keySet) add(key []byte) grammar.Status {
	h := uint32(2166136261) // FNV-1a
	for _, c := range key {
		h = (h ^ uint32(c)) * 16777619
	}
	from := 0
	for _, k := range s.keys {
		if k.hash == h && bytes.Equal(s.text[from:k.end], key) {
			return grammar.Bad
		}
		from = k.end
	}
	if len(s.keys) == maxKeys {
		return grammar.Limit
	}
	s.text = append(s.text, key...)
	s.keys = append(s.keys, keyEnd{len(s.text), h})
	return grammar.More
}
