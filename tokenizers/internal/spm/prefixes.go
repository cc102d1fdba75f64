// SPDX-License-Identifier: Apache-2.0

package spm

import (
	"unicode/utf8"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/trie"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// prefixes finds the longest of a set of texts at the start of another.
type prefixes struct {
	trie   *trie.Trie
	begins [256]bool
}

func newPrefixes(texts []string) (*prefixes, error) {
	p := &prefixes{}
	if len(texts) == 0 {
		return p, nil
	}
	var b vocab.Builder
	for i, s := range texts {
		p.begins[s[0]] = true
		if err := b.Add(uint32(i), []byte(s), true); err != nil {
			return nil, err
		}
	}
	v, err := b.Build()
	if err != nil {
		return nil, err
	}
	p.trie, err = trie.New(v)
	return p, err
}

// longest returns the length of the longest text, or 0.
func (p *prefixes) longest(s string) int {
	if p.trie == nil {
		return 0
	}
	_, n := p.trie.Longest(p.trie.Root(), s)
	return n
}

// charLen returns the length of the character at the start of s, which is not empty.
func charLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// view returns b as a string without copying. b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
