// SPDX-License-Identifier: Apache-2.0

package kvhash

import "unique"

// AppendVLLM appends the CBOR of a first block with any parent.
func AppendVLLM(dst, parent []byte, tokens []uint32, lora, salt string) []byte {
	v := settings{lora: lora, namespace: salt}
	return v.append(dst, pairs, parent, tokens, nil, 0, nil, nil)
}

// AppendVLLMBlock appends the CBOR of a first block that begins at token start.
func AppendVLLMBlock(s Scheme, tokens []uint32, objects []Object, start int, embed []byte) []byte {
	v := s.more.Value()
	return v.append(nil, s.mode, v.root[:v.rootLen], tokens, nil, start, objects, embed)
}

// WithSaltID returns TensorRT-LLM's scheme with the ID of a salt.
func (s Scheme) WithSaltID(id uint64) Scheme {
	v := s.more.Value()
	v.saltID, s.mode = id, s.mode|withSalt
	s.more = unique.Make(s.scope(v))
	return s
}

// Blake3 returns the BLAKE3 hash of b.
func Blake3(b []byte) []byte { return blake3(b) }

// XXH64 returns the XXH64 of b.
func XXH64(b []byte) uint64 { return xxh64(b) }

// AppendLineageAt appends one lineage hash.
func AppendLineageAt(dst []byte, pos int, seq, parent uint64) []byte {
	return appendLineage(dst, pos, seq, parent)
}

// AppendHead appends the CBOR of a number.
func AppendHead(dst []byte, n uint64) []byte { return appendHead(dst, cborUint, n) }

// DynamoSeed is the seed of Dynamo's hashes.
const DynamoSeed = dynamoSeed

// LocalSeed returns the seed of Dynamo's local hash.
func (s Scheme) LocalSeed() uint64 { return s.seed() }

// Dynamo returns Dynamo's scheme. It panics if the options are invalid.
func Dynamo(o Options) Scheme {
	s, err := Lookup("dynamo", &o)
	if err != nil {
		panic(err)
	}
	return s
}
