// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/words"
	"github.com/weft-go/weft/tokenizers/vocab"
)

// noID marks an empty slot in tables of ids and ranks.
const noID = ^uint32(0)

// MaxMerges is the largest number of merges a [Model] accepts.
const MaxMerges = 1<<22 - 1

// Merge joins tokens A and B into To. Its rank is its index in the list given to [New].
type Merge struct{ A, B, To uint32 }

// Options selects how a [Model] works. The zero value is plain byte-pair encoding.
type Options struct {
	// IgnoreMerges makes a word that is a token of the vocabulary that token, whatever the merges say.
	IgnoreMerges bool
}

// Model encodes words by merging bytes. It is immutable and safe for concurrent use.
type Model struct {
	merges
	own      words.Owner
	vocab    *vocab.Table
	byteID   [256]uint32
	bytePair []uint32 // rank of the merge of two bytes, noID if none; len 65536
	ignore   bool
	self     []uint64 // bit id: the word with the token's bytes encodes as that token alone
}

// merges is the list of merges as a table.
type merges struct {
	pairs []uint64 // a<<43 | b<<22 | rank, ^0 is free; len is a power of two at most 2/3 full
	shift uint8
	to    []uint32 // rank -> id
}

const (
	rankBits = 22
	idBits   = 21
	rankMask = 1<<rankBits - 1
	freePair = ^uint64(0)
)

// New returns the model of a vocabulary and its merges. It fails if a byte has no token, since then some
// text could not be encoded, or if a limit is passed. Only the 13 bytes that valid UTF-8 never holds may
// lack a token; they are encoded as a question mark is. When two merges join the same pair the later one
// counts, as in the reference. It takes some tens of milliseconds for 150,000 merges.
func New(v *vocab.Table, merges []Merge, opt Options) (*Model, error) {
	m := &Model{vocab: v, ignore: opt.IgnoreMerges}
	var one [1]byte
	var byID = make(map[uint32]byte, 256)
	for b := range m.byteID {
		one[0] = byte(b)
		id, ok := v.Lookup(string(one[:]))
		if !ok && (b == 0xC0 || b == 0xC1 || b >= 0xF5) {
			id, ok = m.byteID['?'], true // valid UTF-8 never holds this byte
		}
		if !ok {
			return nil, fmt.Errorf("bpe: no token for the byte %#02x", b)
		}
		m.byteID[b] = id
		if _, seen := byID[id]; !seen {
			byID[id] = byte(b)
		}
	}
	if err := m.merges.init(v, merges); err != nil {
		return nil, err
	}
	m.bytePair = make([]uint32, 1<<16)
	for i := range m.bytePair {
		m.bytePair[i] = noID
	}
	for rank, g := range merges {
		if len(v.Bytes(g.A)) == 1 && len(v.Bytes(g.B)) == 1 {
			a, okA := byID[g.A]
			b, okB := byID[g.B]
			if okA && okB {
				m.bytePair[int(a)<<8|int(b)] = uint32(rank)
			}
		}
	}
	m.findSelf()
	return m, nil
}

// init fills an empty table.
func (m *merges) init(v *vocab.Table, list []Merge) error {
	if len(list) > MaxMerges {
		return fmt.Errorf("bpe: %d merges are over the limit %d", len(list), MaxMerges)
	}
	m.to = make([]uint32, len(list))
	log := max(4, bits.Len(uint(len(list)+len(list)/2)))
	m.pairs = make([]uint64, 1<<log)
	for i := range m.pairs {
		m.pairs[i] = freePair
	}
	m.shift = uint8(64 - log)
	n := uint32(v.Len())
	for rank, g := range list {
		if g.A >= n || g.B >= n || g.To >= n {
			return fmt.Errorf("bpe: merge %d names an id outside the vocabulary", rank)
		}
		m.to[rank] = g.To
		m.set(g.A, g.B, uint32(rank))
	}
	return nil
}

func (m *merges) set(a, b, rank uint32) {
	key := uint64(a)<<idBits | uint64(b)
	mask := uint64(len(m.pairs) - 1)
	for i := pairHash(key) >> m.shift; ; i++ {
		e := &m.pairs[i&mask]
		if *e == freePair || *e>>rankBits == key {
			*e = key<<rankBits | uint64(rank)
			return
		}
	}
}

func pairHash(key uint64) uint64 {
	key ^= key >> 23
	return key * 0x9E3779B97F4A7C15
}

// rank returns the rank of the merge of a and b, or noID.
func (m *merges) rank(a, b uint32) uint32 {
	key := uint64(a)<<idBits | uint64(b)
	mask := uint64(len(m.pairs) - 1)
	for i := pairHash(key) >> m.shift; ; i++ {
		e := m.pairs[i&mask]
		if e>>rankBits == key {
			return uint32(e & rankMask)
		}
		if e == freePair {
			return noID
		}
	}
}

// findSelf computes self. With IgnoreMerges every token found by its bytes is its own encoding; else each
// token is encoded once.
func (m *Model) findSelf() {
	v := m.vocab
	self := make([]uint64, (v.Len()+63)/64)
	var st State
	var buf []uint32
	for id := range uint32(v.Len()) {
		tok := v.Bytes(id)
		if len(tok) == 0 {
			continue
		}
		if m.ignore {
			if got, ok := v.Lookup(view(tok)); !ok || got != id {
				continue
			}
		} else {
			buf = m.merge(buf[:0], view(tok), &st)
			if len(buf) != 1 || buf[0] != id {
				continue
			}
		}
		self[id>>6] |= 1 << (id & 63)
	}
	m.self = self
}

// ByteID returns the id of the token that is the one byte b.
func (m *Model) ByteID(b byte) uint32 { return m.byteID[b] }

// Reaches reports whether some word encodes to a result that holds id. It errs on the side of true.
func (m *Model) Reaches(id uint32) bool {
	if int64(id) >= int64(m.vocab.Len()) {
		return false
	}
	b := m.vocab.Bytes(id)
	if len(b) == 1 && m.byteID[b[0]] == id {
		return true
	}
	if m.ignore && m.self[id>>6]>>(id&63)&1 != 0 {
		return true
	}
	return slices.Contains(m.to, id)
}

// view returns b as a string without copying. b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
