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
	size int
}

// buffer holds several texts, of which each begins with the one before. No reader goes beyond the length of its own text.
type buffer struct {
	mu   sync.Mutex
	text []byte
}

// New returns a copy of b. If b begins with before, which may be nil, and there is room after it, only the rest is copied.
func New(b []byte, before *Text) *Text {
	if before != nil && before.size > 0 {
		buf := before.buf
		buf.mu.Lock()
		defer buf.mu.Unlock()
		if len(buf.text) == before.size && cap(buf.text) >= len(b) && bytes.HasPrefix(b, buf.text) {
			buf.text = append(buf.text, b[before.size:]...)
			return &Text{buf, len(b)}
		}
	}
	return &Text{&buffer{text: append(make([]byte, 0, len(b)+len(b)/8+4096), b...)}, len(b)}
}

// String returns the text, which shares memory with t.
func (t *Text) String() string { return unsafe.String(unsafe.SliceData(t.buf.text[:t.size]), t.size) }

// Bytes returns about how much memory the text takes.
func (t *Text) Bytes() int { return t.size + t.size/8 + 4096 }
