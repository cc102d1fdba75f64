// SPDX-License-Identifier: Apache-2.0

package kvhash

// AppendVLLM appends the CBOR of a first block with any parent.
func AppendVLLM(dst, parent []byte, tokens []uint32, lora, salt string) []byte {
	v := settings{lora: lora, namespace: salt}
	return v.append(dst, parent, tokens, 0, false, nil, nil)
}

// AppendVLLMBlock appends the CBOR of a first block that begins at token start.
func AppendVLLMBlock(s Scheme, tokens []uint32, objects []Object, start int, embed []byte) []byte {
	v := s.more.Value()
	return v.append(nil, v.root[:v.rootLen], tokens, start, s.mode.has(bare), objects, embed)
}

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
