// SPDX-License-Identifier: Apache-2.0

package spm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsmap is a set of rules that replace the longest text that one of them matches. Its layout is described at
// normal.Precompiled, which interprets the same table as Hugging Face tokenizers do.
type charsmap struct {
	trie  []uint32
	texts string
	// begins contains the bytes with which rules begin.
	begins [256]bool
}

// newCharsmap checks what is reachable in one step; find checks the rest. Replacements are limited so that no text grows
// by more than a constant factor.
func newCharsmap(b []byte) (*charsmap, error) {
	if len(b) <= 4 {
		return nil, fmt.Errorf("a charsmap of %d bytes", len(b))
	}
	size := uint64(binary.LittleEndian.Uint32(b))
	if size >= uint64(len(b)) || size > uint64(len(b)-4) {
		return nil, fmt.Errorf("a trie of %d bytes in a charsmap of %d", size, len(b))
	}
	m := &charsmap{trie: make([]uint32, size/4), texts: string(b[4+size:])}
	if len(m.trie) == 0 {
		return nil, fmt.Errorf("a charsmap without a trie")
	}
	for i := range m.trie {
		m.trie[i] = binary.LittleEndian.Uint32(b[4+4*i:])
	}
	if !utf8.ValidString(m.texts) {
		return nil, fmt.Errorf("a charsmap with replacements that are not UTF-8")
	}
	for at := 0; at < len(m.texts); {
		n := strings.IndexByte(m.texts[at:], 0)
		if n < 0 {
			n = len(m.texts) - at
		}
		if n > maxTo {
			return nil, fmt.Errorf("a replacement of %d bytes, the limit is %d: %w", n, maxTo, ErrLimit)
		}
		at += n + 1
	}
	for c := range m.begins {
		m.begins[c] = m.child(unitOffset(m.trie[0]), byte(c)) >= 0
	}
	return m, nil
}

func unitOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// child returns the index of the unit along c from base, or -1.
func (m *charsmap) child(base uint32, c byte) int {
	at := base ^ uint32(c)
	if at >= uint32(len(m.trie)) || m.trie[at]&(1<<31|0xFF) != uint32(c) {
		return -1
	}
	return int(at)
}

// find returns the replacement of the longest text at the start of s that has one, and the length of that text; 0 if
// there is none. open reports that a longer s may have a longer one. A rule that points outside the table is ignored.
func (m *charsmap) find(s string) (to string, size int, open bool) {
	base := unitOffset(m.trie[0])
	for i := 0; i < len(s) && i < maxRule; i++ {
		at := m.child(base, s[i])
		if at < 0 {
			return to, size, false
		}
		unit := m.trie[at]
		base = uint32(at) ^ unitOffset(unit)
		if unit>>8&1 != 0 && base < uint32(len(m.trie)) {
			if v := m.trie[base] &^ (1 << 31); v <= uint32(len(m.texts)) {
				text := m.texts[v:]
				if n := strings.IndexByte(text, 0); n >= 0 {
					text = text[:n]
				}
				if text == "" || utf8.RuneStart(text[0]) {
					to, size = text, i+1
				}
			}
		}
	}
	return to, size, len(s) < maxRule
}
