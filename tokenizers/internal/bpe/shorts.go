// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"math/bits"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// This file holds the table of short words that are one token.

// maxShort is the length in bytes of the longest word in it.
const maxShort = 11

// shorts maps words of 2 to maxShort bytes that encode as one token to it. Most new words are of this kind, and
// encoding new text is dominated by cache misses: this table causes one, and vocab.Table three (index, position,
// bytes).
//
// It is a hash table of lines of 64 bytes. A word is in the line of its hash or, if that is full, in one of those that follow; free
// entries are the last ones of a line.
type shorts []shortLine

type shortLine [4]short

// short is an entry: bytes as words.Key packs them, the number of bytes in the top byte of tail, which is 0 if the entry is free.
type short struct {
	head     uint64
	tail, id uint32
}

// newShorts returns the table of the words of ids, which differ and have 2 to maxShort bytes.
func newShorts(v *vocab.Table, ids []uint32) shorts {
	t := make(shorts, len(ids)*2/5+1)
	used := make([]uint8, len(t)) // entries by line; counting in the lines would miss the cache each time
	for _, id := range ids {
		var b [16]byte
		n := copy(b[:], v.Bytes(id))
		lo, hi := words.Key(view(b[:]), 0, n)
		at := t.line(lo, hi)
		for used[at] == uint8(len(t[at])) {
			if at++; at == uint(len(t)) {
				at = 0
			}
		}
		t[at][used[at]] = short{lo, tail(hi), id}
		used[at]++
	}
	return t
}

// line returns the index of the line where the search for a key begins.
func (t shorts) line(lo, hi uint64) uint {
	at, _ := bits.Mul64(words.Hash(lo, hi)<<words.Log, uint64(len(t)))
	return uint(at)
}

// get returns the token of a word, or noID.
func (t shorts) get(lo, hi uint64) uint32 {
	x := tail(hi)
	for at := t.line(lo, hi); ; at++ {
		if at == uint(len(t)) {
			at = 0
		}
		line := &t[at]
		for k := range line {
			if e := &line[k]; e.head == lo && e.tail == x {
				return e.id
			}
		}
		if line[3].tail == 0 {
			return noID
		}
	}
}

// tail packs the second half of the key of a word of up to maxShort bytes.
func tail(hi uint64) uint32 { return uint32(hi>>32) | uint32(hi) }
