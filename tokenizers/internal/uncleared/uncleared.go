// SPDX-License-Identifier: Apache-2.0

// Package uncleared allocates memory without clearing it, for long texts whose bytes are all written before they are read.
package uncleared

import (
	"strings"
	"unsafe"
)

// Bytes returns an empty slice with room for at least n bytes, where n is positive. Unlike make, it does not clear the memory.
func Bytes(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), b.Cap())[:0]
}
