// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// noID marks an empty slot in tables of ids.
const noID = ^uint32(0)

// MaxMerges is the largest number of merges a [Model] accepts.
const MaxMerges = 1<<22 - 1

// Merge joins tokens A and B into To. Its rank is its index in the list given to [New].
type Merge struct{ A, B, To uint32 }

// Options configures a [Model]. The zero value is plain byte-pair encoding.
type Options struct {
	// IgnoreMerges encodes a word that is a token of the vocabulary as that token, regardless of merges.
	IgnoreMerges bool
	// Gaps permits bytes without a token. Words that contain one must not be encoded.
	Gaps bool
}

// Model encodes words by merging bytes. It is immutable and safe for concurrent use.
type Model struct {
	merges
	own      words.Owner
	vocab    *vocab.Table
	byteID   [256]uint32
	bytePair []joint // of two bytes; len 65536
	ignore   bool
	self     []uint64 // bit id: the word with the token's bytes encodes as that token alone
	shorts   shorts   // the short words among them
}

// merges is the list of merges as a table, grouped by the left token: the merges of a are the block
// pairs[off[a]:off[a+1]]. A block of up to maxList entries is a list; a larger one is a hash table by open addressing,
// whose length is a power of two and at least 4/3 of its entries. For new text, most of the time is spent on cache
// misses here. Because blocks are in the order of ids, frequent tokens, which were merged first, are close together,
// and an empty block or a short list excludes most pairs that do not merge.
type merges struct {
	off   []uint32 // by id, one more at the end
	pairs []uint64 // b<<43 | rank<<21 | to
}

const (
	rankBits = 22
	idBits   = 21
	idMask   = 1<<idBits - 1
	freePair = ^uint64(0) // no entry, since MaxMerges keeps its rank from use
	maxList  = 8
)

// A joint is the merge of two tokens: rank<<21 | to. Joints are ordered as ranks are.
type joint uint64

// noMerge is the joint of tokens that do not merge: the low bits of a free entry.
const noMerge = joint(1<<(rankBits+idBits) - 1)

func (j joint) rank() uint32 { return uint32(j >> idBits) }
func (j joint) to() uint32   { return uint32(j & idMask) }

// New returns the model of a vocabulary and its merges. It returns an error if a byte has no token, because some text
// could then not be encoded, or if a limit is exceeded. Only the 13 bytes that never occur in valid UTF-8 may lack a
// token; they are encoded as a question mark. If two merges join the same pair, the later one is used, as in the
// reference. New takes some tens of milliseconds for 150,000 merges.
func New(v *vocab.Table, merges []Merge, opt Options) (*Model, error) {
	m := &Model{vocab: v, ignore: opt.IgnoreMerges}
	var one [1]byte
	var byID = make(map[uint32]byte, 256)
	for b := range m.byteID {
		one[0] = byte(b)
		id, ok := v.Lookup(string(one[:]))
		if !ok && opt.Gaps {
			m.byteID[b] = noID
			continue
		}
		if !ok && (b == 0xC0 || b == 0xC1 || b >= 0xF5) {
			id, ok = m.byteID['?'], true // this byte never occurs in valid UTF-8
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
	m.bytePair = make([]joint, 1<<16)
	for i := range m.bytePair {
		m.bytePair[i] = noMerge
	}
	for rank, g := range merges {
		if len(v.Bytes(g.A)) == 1 && len(v.Bytes(g.B)) == 1 {
			a, okA := byID[g.A]
			b, okB := byID[g.B]
			if okA && okB {
				m.bytePair[int(a)<<8|int(b)] = joint(rank)<<idBits | joint(g.To)
			}
		}
	}
	m.findSelf()
	return m, nil
}

// init fills an empty table.
func (m *merges) init(v *vocab.Table, list []Merge) error {
	if len(list) > MaxMerges {
		return fmt.Errorf("bpe: %d merges exceed the limit of %d", len(list), MaxMerges)
	}
	n := uint32(v.Len())
	m.off = make([]uint32, n+1)
	for rank, g := range list {
		if g.A >= n || g.B >= n || g.To >= n {
			return fmt.Errorf("bpe: merge %d names an id outside the vocabulary", rank)
		}
		m.off[g.A+1]++
	}
	for a := range n {
		size := m.off[a+1]
		if size > maxList {
			size = 1 << bits.Len32(size+size/3)
		}
		m.off[a+1] = m.off[a] + size
	}
	m.pairs = make([]uint64, m.off[n])
	for i := range m.pairs {
		m.pairs[i] = freePair
	}
	for rank, g := range list {
		block := m.block(g.A)
		i := start(block, g.B)
		for block[i] != freePair && uint32(block[i]>>(rankBits+idBits)) != g.B {
			if i++; i == len(block) {
				i = 0
			}
		}
		block[i] = uint64(g.B)<<(rankBits+idBits) | uint64(rank)<<idBits | uint64(g.To)
	}
	return nil
}

// block returns the merges whose left token is a.
func (m *merges) block(a uint32) []uint64 { return m.pairs[m.off[a]:m.off[a+1]] }

// start returns the index in block, which is not empty, where the search for b begins.
func start(block []uint64, b uint32) int {
	if len(block) <= maxList {
		return 0
	}
	return int(b * 0x9E3779B1 >> bits.LeadingZeros32(uint32(len(block)-1)))
}

// join returns the merge of a and b, or noMerge.
func (m *merges) join(a, b uint32) joint {
	block := m.block(a)
	if len(block) <= maxList {
		for _, e := range block {
			if uint32(e>>(rankBits+idBits)) == b {
				return joint(e) & noMerge
			}
		}
		return noMerge
	}
	for i := start(block, b); ; i++ {
		e := block[i&(len(block)-1)]
		if uint32(e>>(rankBits+idBits)) == b || e == freePair {
			return joint(e) & noMerge
		}
	}
}

// findSelf computes self and shorts. With IgnoreMerges, every token is its own encoding; otherwise each token is
// encoded once.
func (m *Model) findSelf() {
	v := m.vocab
	self := make([]uint64, (v.Len()+63)/64)
	var st State
	var buf []uint32
	short := make([]uint32, 0, v.Len())
	for id := range uint32(v.Len()) {
		tok := v.Bytes(id)
		if len(tok) == 0 || m.lacks(tok) {
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
		if len(tok) >= 2 && len(tok) <= maxShort {
			short = append(short, id)
		}
	}
	m.self = self
	m.shorts = newShorts(v, short)
}

// Lacks reports whether the byte b has no token. It is false without [Options.Gaps].
func (m *Model) Lacks(b byte) bool { return m.byteID[b] == noID }

// lacks reports whether a byte of w has no token.
func (m *Model) lacks(w []byte) bool {
	for _, b := range w {
		if m.byteID[b] == noID {
			return true
		}
	}
	return false
}

// ByteID returns the id of the token that is the one byte b.
func (m *Model) ByteID(b byte) uint32 { return m.byteID[b] }

// Reaches reports whether the encoding of some word may contain id. It may return true if no such word exists.
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
	for _, e := range m.pairs {
		if e != freePair && joint(e).to() == id {
			return true
		}
	}
	return false
}

// view returns b as a string without copying. b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
