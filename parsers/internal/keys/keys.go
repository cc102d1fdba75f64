// SPDX-License-Identifier: Apache-2.0

// Package keys remembers the keys of one object while it streams in.
package keys

import (
	"bytes"

	"github.com/weft-go/weft/parsers/internal/work"
)

// Set is the keys of one object, in the order in which they came. The zero value is empty. A look-up costs one comparison of a
// number per key.
type Set struct {
	text []byte // the keys, one after the other
	ends []end
}

type end struct {
	at   int // where the key ends in text
	hash uint32
}

// Outcome is the result of Add.
type Outcome uint8

// The outcomes of Add.
const (
	Added Outcome = iota
	Known         // the key was there already
	Full          // there are too many
)

// Reset empties s. It keeps its memory.
func (s *Set) Reset() { s.text, s.ends = s.text[:0], s.ends[:0] }

// Len returns the number of keys.
func (s *Set) Len() int { return len(s.ends) }

// Cap returns how much memory s keeps, in bytes.
func (s *Set) Cap() int { return cap(s.text) + 16*cap(s.ends) }

// Has reports whether key is in s.
func (s *Set) Has(key []byte) bool { return s.has(key, sum(key)) }

// Add adds key unless it is there or s has max keys.
func (s *Set) Add(key []byte, max int) Outcome {
	h := sum(key)
	switch {
	case s.has(key, h):
		return Known
	case len(s.ends) >= max:
		return Full
	}
	s.text = append(s.text, key...)
	s.ends = append(s.ends, end{len(s.text), h})
	return Added
}

// Last returns the key that was added last, or nil. It is valid until the next change.
func (s *Set) Last() []byte {
	switch n := len(s.ends); n {
	case 0:
		return nil
	case 1:
		return s.text
	default:
		return s.text[s.ends[n-2].at:]
	}
}

func (s *Set) has(key []byte, hash uint32) bool {
	from := 0
	for _, e := range s.ends {
		if e.hash == hash && bytes.Equal(s.text[from:e.at], key) {
			return true
		}
		from = e.at
	}
	return false
}

func sum(key []byte) uint32 {
	work.Add(len(key))
	h := uint32(2166136261) // FNV-1a
	for _, c := range key {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
