// SPDX-License-Identifier: Apache-2.0

// Package longtext keeps the texts of prompts of which each begins with the one before in the same memory.
package longtext

import (
	"bytes"
	"sync"
	"unsafe"
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

// New returns a copy of b. If b begins with before, which may be nil, and there is room after it, only the rest is copied.
func New(b []byte, before *Text) *Text {
	if before == nil || !bytes.HasPrefix(b, before.bytes()) {
		return Extend(nil, 0, b)
	}
	return Extend(before, len(before.text), b[len(before.text):])
}

// Extend returns the first n bytes of before, which may be nil if n is 0, and then rest. If that is all of before, and there
// is room after it, only rest is copied.
func Extend(before *Text, n int, rest []byte) *Text {
	size := n + len(rest)
	if before != nil && n > 0 && n == len(before.text) {
		if t := before.grow(rest); t != nil {
			return t
		}
	}
	text := make([]byte, 0, size+size/8+4096)
	if n > 0 {
		text = append(text, before.text[:n]...)
	}
	return in(&buffer{text: append(text, rest...)}, size)
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

// bytes returns the text, which the caller must not modify.
func (t *Text) bytes() []byte { return unsafe.Slice(unsafe.StringData(t.text), len(t.text)) }

// String returns the text, which shares memory with t.
func (t *Text) String() string { return t.text }

// Bytes returns about how much memory the text takes.
func (t *Text) Bytes() int { return len(t.text) + len(t.text)/8 + 4096 }
