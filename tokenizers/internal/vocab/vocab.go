// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// MaxID is the largest token id a [Table] accepts. It bounds the memory a hostile file can ask for.
const MaxID = 1<<21 - 1

// An entry of Table.index has the id plus one in its low bits and a tag in the others: low bits of the hash, which do not determine its
// position in the index. The tag rules out most other entries without reading their bytes.
const (
	slotBits = 22
	slotMask = 1<<slotBits - 1
	tagMask  = ^uint32(slotMask)
)

// Table is an immutable table between token ids and their bytes. It is safe for concurrent use. Use a
// [Builder] to make one.
type Table struct {
	arena []byte
	off   []uint32 // 0 == off[0] <= off[1] <= ... <= off[n] == len(arena)
	index []uint32 // tag | id+1, 0 is free; len is a power of two above 4/3 of the tokens
	shift uint8    // 64 - log2(len(index))
	count int
}

// Len returns one more than the largest id.
func (v *Table) Len() int { return len(v.off) - 1 }

// Count returns the number of tokens that can be looked up by their bytes.
func (v *Table) Count() int { return v.count }

// Bytes returns the bytes of token id, nil for an id that is not used. The caller must not change them.
func (v *Table) Bytes(id uint32) []byte {
	if int64(id) >= int64(len(v.off)-1) {
		return nil
	}
	return v.arena[v.off[id]:v.off[id+1]:v.off[id+1]]
}

// pad is the number of bytes that may be read after the last token.
const pad = 16

// Size returns how many bytes token id has, 0 for an id that is not used.
func (v *Table) Size(id uint32) int {
	if uint64(id)+1 >= uint64(len(v.off)) {
		return 0
	}
	return int(v.off[id+1] - v.off[id])
}

// Put writes the bytes of token id to the beginning of dst, which must have room for them, and returns how many. It may
// write up to 16 bytes, however short the token is, if dst is that long.
func (v *Table) Put(dst []byte, id uint32) int {
	if uint64(id)+1 >= uint64(len(v.off)) {
		return 0
	}
	from, to := v.off[id], v.off[id+1]
	if n := int(to - from); n > pad || len(dst) < pad {
		return copy(dst, v.arena[from:to])
	}
	*(*[pad]byte)(dst) = *(*[pad]byte)(v.arena[from : from+pad])
	return int(to - from)
}

// Lookup returns the id whose bytes are s. It does not allocate.
func (v *Table) Lookup(s string) (id uint32, ok bool) {
	if len(v.index) == 0 {
		return 0, false
	}
	mask := uint32(len(v.index) - 1)
	h := hash(s)
	for i := uint32(h >> v.shift); ; i++ {
		e := v.index[i&mask]
		if e == 0 {
			return 0, false
		}
		if (e^uint32(h))&tagMask != 0 {
			continue
		}
		if e &= slotMask; string(v.arena[v.off[e-1]:v.off[e]]) == s {
			return e - 1, true
		}
	}
}

// hash mixes the bytes of s. Only tables inside one process use it, so it may change.
func hash(s string) uint64 {
	h := uint64(len(s)) * 0x9E3779B97F4A7C15
	for len(s) >= 8 {
		h = mix(h^load64(s), 0xA0761D6478BD642F)
		s = s[8:]
	}
	var x uint64
	for i := 0; i < len(s); i++ {
		x |= uint64(s[i]) << (8 * i)
	}
	return mix(h^x, 0xE7037ED1A0B428DB)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// view returns b as a string without copying. b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Builder collects tokens in any order of ids. The zero value is ready to use.
type Builder struct {
	arena []byte
	span  []span // by id
	hide  []uint32
}

type span struct{ start, end uint32 } // end == 0: not used

// Grow makes room for tokens of size bytes in all.
func (b *Builder) Grow(tokens, size int) {
	if cap(b.span) == 0 {
		b.arena = make([]byte, 0, size)
		b.span = make([]span, 0, tokens)
	}
}

// Scratch returns an empty slice at the end of the builder's storage. The bytes of the next token are
// appended to it and handed to [Builder.Add], which then need not copy them.
func (b *Builder) Scratch() []byte { return b.arena[len(b.arena):] }

// Add gives token id the bytes tok. A token that is not lookup can be decoded but not found by its bytes.
// Errors: an id above [MaxID], an id used before, more than 4 GiB of bytes.
func (b *Builder) Add(id uint32, tok []byte, lookup bool) error {
	if id > MaxID {
		return fmt.Errorf("vocab: token id %d is above the limit %d", id, MaxID)
	}
	if n := int(id) + 1 - len(b.span); n > 0 {
		b.span = append(b.span, make([]span, n)...)
	}
	if b.span[id] != (span{}) {
		return fmt.Errorf("vocab: token id %d appears twice", id)
	}
	start := len(b.arena)
	b.arena = append(b.arena, tok...)
	if uint64(len(b.arena)) >= 1<<32-1 {
		return fmt.Errorf("vocab: total length of tokens exceeds 4 GiB")
	}
	// One is added to both ends so that an empty token differs from an unused id.
	b.span[id] = span{uint32(start) + 1, uint32(len(b.arena)) + 1}
	if !lookup {
		b.hide = append(b.hide, id)
	}
	return nil
}

// Build returns the table. Two tokens with the same bytes are an error. The builder is empty afterwards.
func (b *Builder) Build() (*Table, error) {
	v := &Table{arena: b.arena, off: make([]uint32, len(b.span)+1)}
	ordered := true
	at := uint32(1)
	for _, s := range b.span {
		if s != (span{}) {
			ordered = ordered && s.start == at
			at = s.end
		}
	}
	if !ordered {
		v.arena = make([]byte, 0, len(b.arena))
		for _, s := range b.span {
			if s != (span{}) {
				v.arena = append(v.arena, b.arena[s.start-1:s.end-1]...)
			}
		}
	}
	n := uint32(0)
	used := 0
	for id, s := range b.span {
		if s != (span{}) {
			n += s.end - s.start
			used++
		}
		v.off[id+1] = n
	}
	v.arena = slices.Grow(v.arena, pad) // for Put
	log := bits.Len(uint(used + used/3 + 1))
	v.index = make([]uint32, 1<<log)
	v.shift = uint8(64 - log)
	hidden := make(map[uint32]bool, len(b.hide))
	for _, id := range b.hide {
		hidden[id] = true
	}
	mask := uint32(len(v.index) - 1)
	for id, s := range b.span {
		if s == (span{}) || s.start == s.end || len(hidden) > 0 && hidden[uint32(id)] {
			continue
		}
		tok := v.arena[v.off[id]:v.off[id+1]]
		h := hash(view(tok))
		i := uint32(h >> v.shift)
		for ; v.index[i&mask] != 0; i++ {
			e := v.index[i&mask]
			if (e^uint32(h))&tagMask != 0 {
				continue
			}
			if e &= slotMask; string(v.arena[v.off[e-1]:v.off[e]]) == string(tok) {
				return nil, fmt.Errorf("vocab: tokens %d and %d have the same bytes %q", e-1, id, tok)
			}
		}
		v.index[i&mask] = uint32(h)&tagMask | uint32(id) + 1
		v.count++
	}
	*b = Builder{}
	return v, nil
}
