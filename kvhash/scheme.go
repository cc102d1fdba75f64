// SPDX-License-Identifier: Apache-2.0

package kvhash

import "github.com/zeebo/xxh3"

// Seed is the seed of Dynamo's hashes before LoRA and namespace are added. The chain always uses it unchanged.
const Seed uint64 = 1337

// Scheme says how the blocks of a prompt are named: a hashing rule and its settings. It is a small comparable value. The zero
// Scheme is Dynamo's, without LoRA or namespace; [Dynamo] makes the others.
type Scheme struct {
	salt  uint64 // added to Seed
	eagle bool
}

// DynamoOptions are the settings of [Dynamo]. The zero value is a plain prompt.
type DynamoOptions struct {
	// LoRA is the name of the adapter the prompt runs on; "" means the base model.
	LoRA string
	// Namespace keeps the caches of tenants apart. It is Dynamo's cache_namespace; other systems call it the cache salt.
	// "" means the common namespace.
	Namespace string
	// Seed replaces the seed 1337 of the local hash; 0 means 1337. The chain keeps 1337.
	Seed uint64
	// Eagle hashes each block with the one token after it, as Dynamo does for EAGLE speculative decoding. A block is then
	// complete one token later.
	Eagle bool
}

// Dynamo returns Dynamo's scheme; nil options mean a plain prompt on the base model.
func Dynamo(o *DynamoOptions) Scheme {
	var s Scheme
	if o == nil {
		return s
	}
	if o.Seed != 0 {
		s.salt = o.Seed - Seed
	}
	s = s.With(o.LoRA, o.Namespace)
	s.eagle = o.Eagle
	return s
}

// With returns the scheme for the same prompts on the given LoRA adapter and in the given namespace; "" means none. The scheme must not
// have either yet.
func (s Scheme) With(lora, namespace string) Scheme {
	// The two strings use different inner seeds, so that an adapter and a namespace of one name do not collide.
	if lora != "" {
		s.salt += xxh3.HashStringSeed(lora, 0)
	}
	if namespace != "" {
		s.salt += xxh3.HashStringSeed(namespace, 1)
	}
	return s
}

// Name returns the scheme's name as command lines spell it: "dynamo".
func (s Scheme) Name() string { return "dynamo" }

// Seed returns the seed of the local hash, with LoRA and namespace in it. It is what [AppendLocal] takes.
func (s Scheme) Seed() uint64 { return Seed + s.salt }

// Window returns how many tokens the hash of one block of the given size covers: block, or one more with Eagle.
func (s Scheme) Window(block int) int {
	if s.eagle {
		return block + 1
	}
	return block
}

// AppendLocal appends the local hash of every complete block of tokens to dst and returns it. objects, if not nil, holds the
// hashes of the objects in each block; blocks beyond its length have none. It panics if block is not positive.
// O(tokens), no allocation if dst has room and no block holds objects.
func (s Scheme) AppendLocal(dst []uint64, tokens []uint32, block int, objects [][]uint64) []uint64 {
	return appendLocal(dst, tokens, block, s.Window(block), s.Seed(), objects)
}

// AppendBlocks appends the sequence hash of every complete block of tokens to dst and returns it; tokens begin at the start of
// the prompt. It panics if block is not positive. O(tokens), no allocation if dst has room.
func (s Scheme) AppendBlocks(dst []uint64, tokens []uint32, block int) []uint64 {
	n := len(dst)
	dst = s.AppendLocal(dst, tokens, block, nil)
	chain(dst[n:])
	return dst
}
