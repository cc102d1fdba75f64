// SPDX-License-Identifier: Apache-2.0

package kvhash

// AppendVLLM appends the CBOR of a first block with any parent.
func AppendVLLM(dst, parent []byte, tokens []uint32, lora, salt string) []byte {
	s := Scheme{kind: vllmSHA256, lora: lora}
	return s.appendVLLM(dst, parent, tokens, 0, salt, nil, nil)
}

// AppendVLLMBlock appends the CBOR of a first block that begins at token start.
func AppendVLLMBlock(s Scheme, tokens []uint32, objects []Object, start int, embed []byte) []byte {
	return s.appendVLLM(nil, s.root[:s.DigestLen()], tokens, start, s.namespace, objects, embed)
}

// AppendLineageAt appends one lineage hash.
func AppendLineageAt(dst []byte, pos int, seq, parent uint64) []byte {
	return appendLineage(dst, pos, seq, parent)
}
