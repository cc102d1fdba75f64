// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"
)

// AppendLocal appends the local hash of every complete block of tokens to dst and returns it. block is the block size in tokens,
// seed is [Seed] for a plain prompt or [Scheme.Seed] for one with LoRA or namespace. It panics if block is not positive.
// O(tokens), no allocation if dst has room for len(tokens)/block hashes.
func AppendLocal(dst []uint64, tokens []uint32, block int, seed uint64) []uint64 {
	return appendLocal(dst, tokens, block, block, seed, nil)
}

// AppendLocalObjects is [AppendLocal] for a prompt with images or other objects: objects[i] holds the hashes of the objects that
// block i overlaps, in any order; blocks beyond len(objects) have none. This is the form Dynamo's router uses. It may allocate
// for blocks that hold objects.
func AppendLocalObjects(dst []uint64, tokens []uint32, block int, seed uint64, objects [][]uint64) []uint64 {
	return appendLocal(dst, tokens, block, block, seed, objects)
}

// AppendSequence appends the sequence hashes of the blocks with the given local hashes to dst and returns it; local[0] is the
// first block of the prompt. dst may be local[:0]: the hashes then replace each other in place. O(blocks), no allocation if dst
// has room.
func AppendSequence(dst, local []uint64) []uint64 {
	n := len(dst)
	dst = append(dst, local...)
	chain(dst[n:])
	return dst
}

// AppendSequenceAfter is [AppendSequence] for blocks that follow the block with sequence hash parent.
func AppendSequenceAfter(dst []uint64, parent uint64, local []uint64) []uint64 {
	for _, l := range local {
		parent = Next(parent, l)
		dst = append(dst, parent)
	}
	return dst
}

// Next returns the sequence hash of the block with the given local hash that follows the block with sequence hash parent.
// The first block of a prompt has no parent: its sequence hash is its local hash.
func Next(parent, local uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], parent)
	binary.LittleEndian.PutUint64(b[8:], local)
	return xxh3.HashSeed(b[:], Seed)
}

// ObjectToken returns the token id that stands for every position of an object in a prompt for vLLM: 1,000,000 plus the low 30
// bits of the object's hash, as Dynamo's router fills it in. Such a prompt is then hashed as plain text. SGLang sends prompts that
// already hold such ids.
func ObjectToken(object uint64) uint32 { return 1_000_000 + uint32(object&(1<<30-1)) }

// chain turns local hashes into sequence hashes in place.
func chain(h []uint64) {
	for i := 1; i < len(h); i++ {
		h[i] = Next(h[i-1], h[i])
	}
}

// appendLocal hashes windows of tokens that begin every block tokens.
func appendLocal(dst []uint64, tokens []uint32, block, window int, seed uint64, objects [][]uint64) []uint64 {
	checkBlock(block)
	for i := 0; len(tokens) >= window; i++ {
		var objs []uint64
		if i < len(objects) {
			objs = objects[i]
		}
		dst = append(dst, local(tokens[:window], seed, objs))
		tokens = tokens[block:]
	}
	return dst
}

// local hashes one window of tokens.
func local(window []uint32, seed uint64, objects []uint64) uint64 {
	if len(objects) == 0 {
		return hashTokens(window, seed)
	}
	var stack [1024]byte
	buf := appendTokens(stack[:0], window)
	sorted := objects
	if !slices.IsSorted(sorted) {
		sorted = slices.Sorted(slices.Values(objects))
	}
	for _, o := range sorted {
		buf = binary.LittleEndian.AppendUint64(buf, o)
	}
	return xxh3.HashSeed(buf, seed)
}

func checkBlock(block int) {
	if block <= 0 {
		panic("kvhash: block size must be positive")
	}
}
