// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/keys"
	"github.com/weft-go/weft/parsers/internal/text"
)

const (
	maxDepth = 128  // objects and arrays inside each other, the arguments object included
	maxHeld  = 4096 // bytes kept of what cannot be written before its end
	maxKeys  = 1024 // keys of the arguments object
)

// whole returns the number of bytes of src that may be read: all, unless src ends inside a UTF-8 sequence that may
// continue.
func whole(src []byte, final bool) int {
	if final {
		return len(src)
	}
	return text.Whole(src)
}

func blank(c byte) bool { return text.Blank(c) }

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

// addKey notes a key of an arguments object. It returns More if that is new, Bad if it is known, Limit if there are too many.
func addKey(s *keys.Set, key []byte) grammar.Status {
	switch s.Add(key, maxKeys) {
	case keys.Known:
		return grammar.Bad
	case keys.Full:
		return grammar.Limit
	}
	return grammar.More
}
