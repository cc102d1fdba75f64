// SPDX-License-Identifier: Apache-2.0

package kvhash

import "sort"

// Extras are the inputs other than tokens that a prompt mixes into the hashes of single blocks. The schemes for SGLang
// and TensorRT-LLM ignore them: in prompts of SGLang, objects are tokens already. A key that belongs to
// block i alone, as in llm-d's index and in events, is an object at i*N of length N, N being the block size.
type Extras struct {
	// Objects are the images and other objects of the prompt. They must be in order of At, and none may end before the
	// previous one; for Dynamo's universal form they must not overlap. Otherwise the hashes are unspecified. Dynamo,
	// vLLM and llm-d use them. If objects overlap, vLLM hashes the objects in a block up to the first one that extends
	// beyond it; the other engines hash all.
	Objects []Object
	// BlockObjects[i] are the hashes of the objects that block i overlaps, in any order. Use it where positions are
	// unknown, as in events. Blocks beyond its length have no objects. It applies only to Dynamo, not in the universal
	// form, and only if Objects is empty.
	BlockObjects [][]uint64
	// Embeds[i] is the digest (SHA-256) of the prompt embeddings in block i, or nil if it has none. Blocks beyond its
	// length have none. It applies only to vLLM. A vLLM request with embeddings has a digest in every block: blocks
	// after its prompt have the digest of an empty input.
	Embeds [][]byte
}

// Object is an image or another non-text input that fills some token positions of a prompt.
type Object struct {
	Hash uint64 // of its content: Dynamo
	ID   string // vLLM's identifier, usually a hash of its content in hex: vLLM and llm-d
	At   int    // position of its first token, from the start of the prompt; negative if it begins before the tokens that are hashed
	Len  int    // tokens it fills
}

// before reports whether the hashes of the first n tokens depend on x. x may be nil.
func (x *Extras) before(n int) bool {
	return x != nil && (len(x.Embeds)+len(x.BlockObjects) > 0 || len(x.Objects) > 0 && x.Objects[0].At < n)
}

// within returns the objects that overlap the size tokens from token from on. The search begins at object first; the
// start for the next block is returned.
func (x *Extras) within(first, from, size int) ([]Object, int) {
	list := x.Objects
	for first < len(list) && list[first].Len <= from-list[first].At {
		first++
	}
	// Use a binary search, because many objects may begin in one block.
	n := sort.Search(len(list)-first, func(i int) bool { return list[first+i].At-from >= size })
	return list[first : first+n], first
}
