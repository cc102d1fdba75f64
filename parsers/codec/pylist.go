// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/weft-go/weft/parsers/grammar"

// ListScanner finds the end of a list in brackets, in which pythonic models write calls: [f(a="]"), g()]. It recognizes
// only strings and brackets, and is used to hold a list without a marker until it is complete.
//
// The zero value is ready for a list. It examines each byte once, regardless of how the text is split, and does not
// allocate.
type ListScanner struct {
	end    grammar.Status
	depth  int
	closer [maxList]byte // by level
	in     listState
	quote  byte
	quotes uint8 // in a row
	word   uint8 // bytes of the word before, at most 3
	prefix bool  // the word may be the prefix of a string
}

const maxList = maxDepth + 1 // the arguments object of a decoder has the depth of a list and a parenthesis here

type listState uint8

const (
	listCode listState = iota
	listQuote
	listString
	listEscape
	listTriple
	listTripleEscape
)

// Reset makes s ready for the next list.
func (s *ListScanner) Reset() { s.end, s.depth, s.in, s.word = grammar.More, 0, listCode, 0 }

// Scan scans b, which follows the bytes of earlier calls, and returns the number of its bytes that belong to the list.
// The list begins at the first byte. Done means that it ends after these bytes. Bad means that the next byte is
// invalid: a bracket of another kind, or a quote right after a word that is not a string prefix, as in "[don't". Limit
// means that it is the 130th open bracket; a list of calls that [Python] reads is less deep. A list that does not end
// is More for ever: the caller bounds what it keeps.
func (s *ListScanner) Scan(b []byte) (n int, st grammar.Status) {
	for i := 0; i < len(b) && s.end == grammar.More; n = i {
		c := b[i]
		switch s.in {
		case listString, listTriple:
			for plainText[c] {
				s.quotes = 0
				if i++; i == len(b) {
					return i, grammar.More
				}
				c = b[i]
			}
			switch {
			case c == '\\':
				s.in++
			case c != s.quote:
				s.quotes = 0
			case s.in == listString:
				s.code()
			default:
				if s.quotes++; s.quotes == 3 {
					s.code()
				}
			}
			i++
		case listEscape, listTripleEscape:
			s.in--
			s.quotes = 0
			i++
		case listQuote:
			switch {
			case c == s.quote && s.quotes == 1:
				s.quotes = 2
				i++
			case c == s.quote:
				s.in, s.quotes = listTriple, 0
				i++
			case s.quotes == 2:
				s.code() // an empty string
			default:
				s.in = listString
			}
		default:
			if s.step(c) {
				i++
			}
		}
	}
	return n, s.end
}

func (s *ListScanner) code() { s.in, s.word = listCode, 0 }

// step reads a byte outside strings. It reports whether the byte belongs to the list.
func (s *ListScanner) step(c byte) bool {
	word := s.word
	s.word = 0
	switch {
	case nameByte(c):
		_, _, p := stringPrefix([]byte{c})
		s.prefix = p && (word == 0 || s.prefix)
		s.word = min(word+1, 3)
	case c == '"' || c == '\'':
		if word > 2 || word > 0 && !s.prefix || s.depth == 0 {
			s.end = grammar.Bad
			return false
		}
		s.in, s.quote, s.quotes = listQuote, c, 1
	case c == '[' || c == '(' || c == '{':
		if s.depth == maxList {
			s.end = grammar.Limit
			return false
		}
		if s.depth == 0 && c != '[' {
			s.end = grammar.Bad
			return false
		}
		if s.closer[s.depth] = c + 2; c == '(' {
			s.closer[s.depth] = ')'
		}
		s.depth++
	case c == ']' || c == ')' || c == '}':
		if s.depth == 0 || s.closer[s.depth-1] != c {
			s.end = grammar.Bad
			return false
		}
		if s.depth--; s.depth == 0 {
			s.end = grammar.Done
		}
	}
	if s.depth == 0 && s.end == grammar.More {
		s.end = grammar.Bad // it does not begin with a bracket
		return false
	}
	return true
}
