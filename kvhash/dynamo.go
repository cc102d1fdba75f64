// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"
)

// dynamoSeed is the seed of Dynamo's hashes before LoRA and namespace are added. The chain always uses it unchanged.
const dynamoSeed uint64 = 1337

// AppendSequence appends the sequence hashes of the blocks with the given local hashes to dst and returns it; local[0]
// is the first block of the prompt. dst may be local[:0], so that the result replaces the local hashes. O(blocks), no
// allocation if dst has room.
func AppendSequence(dst, local []uint64) []uint64 {
	n := len(dst)
	dst = append(dst, local...)
	chain(dst[n:])
	return dst
}

// Next returns the sequence hash of the block with the given local hash that follows the block with sequence hash parent.
// The first block of a prompt has no parent: its sequence hash is its local hash.
func Next(parent, local uint64) uint64 {
	// XXH3-64 of 16 bytes with dynamoSeed, as specified by xxHash (inputs of 9 to 16 bytes), with the seed folded into
	// the two words of the secret. Written out, it is inlined and its arguments stay in registers.
	lo := parent ^ nextLow
	hi := local ^ nextHigh
	h, l := bits.Mul64(lo, hi)
	x := 16 + bits.ReverseBytes64(lo) + hi + (h ^ l)
	x = (x ^ x>>37) * 0x165667919e3779f9
	return x ^ x>>32
}

// The constants of Next: two words each of XXH3's default secret, at bytes 24, 32, 40 and 48, combined with the seed.
const (
	nextLow  = (0x1f67b3b7a4a44072 ^ 0x78e5c0cc4ee679cb) + dynamoSeed
	nextHigh = (0x2172ffcc7dd05a82 ^ 0x8e2443f7744608b8) - dynamoSeed
)

// ObjectToken returns the token ID that Dynamo's router uses for every position of an object in a prompt for vLLM:
// 1,000,000 plus the low 30 bits of the object's hash. The prompt is then hashed like text. Prompts of SGLang before 0.5.23
// contain such IDs already.
func ObjectToken(object uint64) uint32 { return 1_000_000 + uint32(object&(1<<30-1)) }

// seed returns the seed of Dynamo's local hash, which depends on LoRA and namespace.
func (s Scheme) seed() uint64 { return dynamoSeed + s.salt }

// AppendLocal appends the local hash of every complete block of tokens to dst and returns it; x may be nil. It panics if block is not
// positive, and if the scheme has no local hashes ([Scheme.HasLocal]). O(tokens), no allocation if dst has room and no block holds objects.
func (s Scheme) AppendLocal(dst []uint64, tokens []uint32, block int, x *Extras) []uint64 {
	checkBlock(block)
	if s.mode.kind() != dynamo {
		panic("kvhash: scheme " + s.String() + " has no local hashes")
	}
	window, seed := s.Window(block), s.seed()
	if x == nil || len(x.Objects)+len(x.BlockObjects) == 0 {
		for ; len(tokens) >= window; tokens = tokens[block:] {
			dst = append(dst, hashTokens(tokens[:window], seed))
		}
		return dst
	}
	for start, obj := 0, 0; len(tokens) >= window; start += block {
		var l uint64
		l, obj = s.local(tokens[:window], start, block, x, obj)
		dst = append(dst, l)
		tokens = tokens[block:]
	}
	return dst
}

// local hashes the window of the block that begins at token start; for x and obj see [Scheme.next].
func (s *Scheme) local(window []uint32, start, block int, x *Extras, obj int) (uint64, int) {
	if x == nil || obj >= len(x.Objects) {
		if x != nil && len(x.Objects) == 0 && start/block < len(x.BlockObjects) {
			return s.localWith(window, x.BlockObjects[start/block]), obj
		}
		return hashTokens(window, s.seed()), obj
	}
	objects, obj := x.within(obj, start, block)
	switch {
	case len(objects) == 0:
		return hashTokens(window, s.seed()), obj
	case s.mode.has(universal):
		return hashFrames(window, start, objects, s.seed()), obj
	}
	var stack [16]uint64
	hashes := stack[:0]
	for _, o := range objects {
		hashes = append(hashes, o.Hash)
	}
	slices.Sort(hashes)
	return s.localWith(window, hashes), obj
}

// hashFrames hashes tokens and objects in the universal form. The frame of a token is 0, the token as 32 bits and 64
// zero bits. The frame of a position in an object is 1, the offset in the object as 32 bits and the object's hash.
func hashFrames(tokens []uint32, start int, objects []Object, seed uint64) uint64 {
	var stack [2048]byte
	buf := stack[:0]
	for i, t := range tokens {
		pos := start + i
		for len(objects) > 0 && objects[0].Len <= pos-objects[0].At {
			objects = objects[1:]
		}
		if len(objects) > 0 && objects[0].At <= pos {
			buf = append(buf, 1)
			buf = binary.LittleEndian.AppendUint32(buf, uint32(pos-objects[0].At))
			buf = binary.LittleEndian.AppendUint64(buf, objects[0].Hash)
			continue
		}
		buf = append(buf, 0)
		buf = binary.LittleEndian.AppendUint32(buf, t)
		buf = binary.LittleEndian.AppendUint64(buf, 0)
	}
	return xxh3.HashSeed(buf, seed)
}

// chain turns local hashes into sequence hashes in place.
func chain(h []uint64) {
	for i := 1; i < len(h); i++ {
		h[i] = Next(h[i-1], h[i])
	}
}

// appendChained combines AppendLocal and chain in one pass: the local hash of a block does not depend on the chain, so
// the processor computes both in parallel. follows reports that the blocks follow the block with the sequence hash seq.
func appendChained(dst []uint64, tokens []uint32, block, window int, seed, seq uint64, follows bool) []uint64 {
	for ; len(tokens) >= window; tokens = tokens[block:] {
		l := hashTokens(tokens[:window], seed)
		if follows {
			l = Next(seq, l)
		}
		seq, follows = l, true
		dst = append(dst, seq)
	}
	return dst
}

// localWith hashes one window of tokens and the objects that it overlaps, in the form of Dynamo's router.
func (s *Scheme) localWith(window []uint32, objects []uint64) uint64 {
	if len(objects) == 0 {
		return hashTokens(window, s.seed())
	}
	if s.mode.has(universal) {
		panic("kvhash: the universal form needs the positions of objects")
	}
	var stack [1024]byte
	buf := appendTokens(stack[:0], window)
	sorted := objects // a separate variable, so that objects stays on the stack
	if !slices.IsSorted(sorted) {
		sorted = slices.Sorted(slices.Values(objects))
	}
	for _, o := range sorted {
		buf = binary.LittleEndian.AppendUint64(buf, o)
	}
	return xxh3.HashSeed(buf, s.seed())
}

func checkBlock(block int) {
	if block <= 0 {
		panic("kvhash: block size must be positive")
	}
}
