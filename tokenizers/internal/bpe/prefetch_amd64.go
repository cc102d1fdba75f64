// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/words"
)

// The assembly knows the size of the lines. This does not compile if it differs.
const (
	_ = uint(unsafe.Sizeof(shortLine{})-64) + uint(64-unsafe.Sizeof(shortLine{}))
	_ = uint(2*unsafe.Sizeof(words.Entry{})-64) + uint(64-2*unsafe.Sizeof(words.Entry{}))
)

// prefetch loads lines of 64 bytes of a table into the processor's cache. It does not wait for them, so that
// cache misses overlap with each other and with other work. lines are indexes in the table.
func prefetch(table unsafe.Pointer, lines []uint64) {
	if len(lines) > 0 {
		prefetchLines(table, &lines[0], len(lines))
	}
}

//go:noescape
func prefetchLines(table unsafe.Pointer, lines *uint64, n int)
