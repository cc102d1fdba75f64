// SPDX-License-Identifier: Apache-2.0

// Package longtext keeps the texts of prompts of which each begins with the one before in the same memory.
package longtext

import (
	"sync"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/uncleared"
)

// Text is a text that never changes. It is safe for concurrent use by multiple goroutines.
type Text struct {
	buf  *buffer
	text string // in buf
}

// buffer holds several texts, of which each begins with the one before. No reader goes beyond the length of its own text.
type buffer struct {
	mu   sync.Mutex
	text []byte
}

// Extend returns the first n bytes of before, which may be nil if n is 0, and then rest. If the result begins with all of
// before, and there is room after it, only what follows is copied.
func Extend(before *Text, n int, rest []byte) *Text {
	if before != nil && string(rest[:min(len(rest), len(before.text)-n)]) == before.text[n:] {
		n, rest = len(before.text), rest[len(before.text)-n:]
	}
	size := n + len(rest)
	if before != nil && n == len(before.text) {
		if t := before.grow(rest); t != nil {
			return t
		}
	}
	text := Room(size)
	if n > 0 {
		text = append(text, before.text[:n]...)
	}
	return in(&buffer{text: append(text, rest...)}, size)
}

// Room returns an empty slice with room for a text of size bytes and for what later texts add to it.
func Room(size int) []byte { return uncleared.Bytes(size + size/8 + 4096) }

// Keep returns the text b in the memory of b, which the caller must not use afterward, unless more than a third of a long one is
// unused: it then copies the text.
func Keep(b []byte) *Text {
	if cap(b) > len(b)+len(b)/2+8192 {
		return Extend(nil, 0, b)
	}
	return in(&buffer{text: b}, len(b))
}

// grow appends rest to t in its buffer. It returns nil if the buffer is too short, or if the buffer already has a longer text.
func (t *Text) grow(rest []byte) *Text {
	t.buf.mu.Lock()
	defer t.buf.mu.Unlock()
	n := len(t.text)
	if len(t.buf.text) != n || cap(t.buf.text)-n < len(rest) {
		return nil
	}
	t.buf.text = append(t.buf.text, rest...)
	return in(t.buf, n+len(rest))
}

// in returns the text of the first n bytes of a buffer that no other goroutine changes meanwhile.
func in(buf *buffer, n int) *Text { return &Text{buf, unsafe.String(unsafe.SliceData(buf.text), n)} }

// String returns the text, which shares memory with t.
func (t *Text) String() string { return t.text }

// Bytes returns how much memory the text takes, including the room after it.
func (t *Text) Bytes() int {
	t.buf.mu.Lock()
	defer t.buf.mu.Unlock()
	return cap(t.buf.text)
}
