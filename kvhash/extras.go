// SPDX-License-Identifier: Apache-2.0

package kvhash

import "sort"

// Extras are the inputs other than tokens that a prompt mixes into the hashes of single blocks. SGLang and TensorRT-LLM
// as implemented here mix in none: in prompts for SGLang objects already are tokens ([ObjectToken]).
type Extras struct {
	// Objects are the images and other objects of the prompt, in order of At, none ending before the previous one; for
	// Dynamo's universal form none may begin before the end of the previous one. In another order the hashes are
	// unspecified. Dynamo, vLLM and llm-d use them. If objects overlap, vLLM names the objects in a block up to the
	// first one that extends beyond it; the other engines name all.
	Objects []Object
	// BlockObjects[i] are the hashes of the objects that block i overlaps, in any order, where positions are not known, as in events; blocks
	// beyond have none. Dynamo only, not in the universal form, and only if Objects is empty.
	BlockObjects [][]uint64
	// Embeds[i] is the digest (SHA-256) of the prompt embeddings in block i; nil and blocks beyond have none. vLLM
	// only. A vLLM request with embeddings has a digest in every block: the blocks after its prompt have the digest of
	// no bytes.
	Embeds [][]byte
}

// Object is an image or another non-text input that fills some token positions of a prompt.
type Object struct {
	Hash uint64 // of its content: Dynamo
	ID   string // vLLM's identifier, usually a hash of its content in hex: vLLM and llm-d
	At   int    // position of its first token, from the start of the prompt; negative if it began before what is hashed
	Len  int    // tokens it fills
}

// before reports whether the hashes of the first n tokens hold more than tokens. x may be nil.
func (x *Extras) before(n int) bool {
	return x != nil && (len(x.Embeds)+len(x.BlockObjects) > 0 || len(x.Objects) > 0 && x.Objects[0].At < n)
}

// within returns the objects that reach into the block of size tokens from token from on. first is where to begin to look; the
// same for the next block is returned.
func (x *Extras) within(first, from, size int) ([]Object, int) {
	list := x.Objects
	for first < len(list) && list[first].Len <= from-list[first].At {
		first++
	}
	// A search, as many objects may have begun of which a scheme names few.
	n := sort.Search(len(list)-first, func(i int) bool { return list[first+i].At-from >= size })
	return list[first : first+n], first
}
