// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/words"
)

// This file encodes many words at once, in passes: keys, lookups in the cache, lookups of the absent words among the short
// ones, which Append completes. Each pass is a short loop with few branches that the processor cannot predict. What a
// pass reads is prefetched for all words before it, so that their cache misses overlap.

// Batch is the largest number of words that are looked up together.
const Batch = 128

// batch holds the state of a batch.
type batch struct {
	key    [Batch][2]uint64             // of each word, as words.Key returns it
	line   [Batch]uint64                // of each word in the cache, then of the absent words in the table of short words
	ids    [Batch * words.MaxIDs]uint32 // of all words that were found
	absent [Batch]absent                // the other words
	tail   [32]byte                     // the last 16 bytes of the text, and zeros
}

// absent is a word that was not found.
type absent struct {
	word int // index in the batch
	ids  int // number of ids before it in batch.ids
}

// noKey is the key of no word, since it has no length.
var noKey = [2]uint64{0, 1}

// keyMasks has by the length of a word which bits of the 16 bytes from its start are in its key, and those that are added.
var keyMasks = func() (t [words.MaxLen + 1]struct{ lo, hi, length uint64 }) {
	for n := 1; n < len(t); n++ {
		var b [16]byte
		for k := range n {
			b[k] = 0xFF
		}
		m := &t[n]
		m.lo, m.hi = words.Key(view(b[:]), 0, n)
		m.length = uint64(n) << 56
		m.hi ^= m.length
	}
	return t
}()

// few is the number of words from which a batch takes less time than single words.
const few = 8

// AppendWords appends the ids of words of s that follow each other. The first begins at i, each ends where ends specifies,
// and the next begins there. The result equals calls to [Model.Append] for each.
func (m *Model) AppendWords(dst []uint32, s string, i int, ends []int, st *State) []uint32 {
	for len(ends) >= few {
		n := min(len(ends), Batch)
		dst = m.appendBatch(dst, s, i, ends[:n], st)
		i, ends = ends[n-1], ends[n:]
	}
	for _, end := range ends {
		dst = m.Append(dst, s, i, end, st)
		i = end
	}
	return dst
}

// appendBatch is AppendWords for a batch.
func (m *Model) appendBatch(dst []uint32, s string, i int, ends []int, st *State) []uint32 {
	if !st.words.Serves(&m.own) {
		st.words.Bind(&m.own)
	}
	b := &st.batch
	b.keys(s, i, ends)
	prefetch(unsafe.Pointer(unsafe.SliceData(st.words.Entries)), b.line[:len(ends)])
	ids, missing := b.find((*[words.Size]words.Entry)(st.words.Entries), len(ends))
	for k, a := range b.absent[:missing] {
		b.line[k] = uint64(m.shorts.line(b.key[a.word][0], b.key[a.word][1]))
	}
	prefetch(unsafe.Pointer(unsafe.SliceData(m.shorts)), b.line[:missing])
	done := 0
	for _, a := range b.absent[:missing] {
		dst = append(dst, b.ids[done:a.ids]...)
		done = a.ids
		if a.word > 0 {
			i = ends[a.word-1]
		}
		end := ends[a.word]
		dst = m.Append(dst, s, i, end, st)
		if end-i == 1 { // Append does without the cache for these, but find does not
			st.words.Put(b.key[a.word][0], b.key[a.word][1], dst[len(dst)-1:])
		}
	}
	return append(dst, b.ids[done:ids]...)
}

// keys sets the keys and lines of words of s.
func (b *batch) keys(s string, at int, ends []int) {
	last := len(s) - 16
	clear(b.tail[copy(b.tail[:], s[max(last, 0):]):])
	tail := view(b.tail[:])
	key, line := b.key[:len(ends)], b.line[:len(ends)]
	for k, end := range ends {
		n := end - at
		if n > words.MaxLen {
			key[k], line[k], at = noKey, 0, end
			continue
		}
		var w string
		if at <= last {
			w = s[at : at+16]
		} else {
			w = tail[at-max(last, 0):][:16]
		}
		at = end
		mask := &keyMasks[n]
		lo, hi := load64(w)&mask.lo, load64(w[8:])&mask.hi|mask.length
		key[k] = [2]uint64{lo, hi}
		line[k] = words.Hash(lo, hi) >> (64 - words.Log)
	}
}

// find stores the ids of those of the first n words that are in the cache in b.ids, and the others in b.absent. It returns the
// numbers of both.
func (b *batch) find(cache *[words.Size]words.Entry, n int) (ids, missing int) {
	for k := range b.key[:n] {
		lo, hi := b.key[k][0], b.key[k][1]
		at := 2 * (b.line[k] % (words.Size / 2))
		e := &cache[at]
		if e.Lo != lo || e.Hi != hi {
			e = &cache[at+1]
			if e.Lo != lo || e.Hi != hi {
				b.absent[missing%Batch] = absent{k, ids}
				missing++
				continue
			}
		}
		// Four ids are stored, however many there are. The next word's ids overwrite the rest.
		to := (*[words.MaxIDs]uint32)(b.ids[ids:])
		*to = e.ID
		to[0] &= words.FirstMask
		ids += int(e.ID[0] >> words.CountShift)
	}
	return ids, missing
}
