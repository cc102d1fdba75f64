// SPDX-License-Identifier: Apache-2.0

package kvhash

// AppendVLLM appends the CBOR of a first block with any parent.
func AppendVLLM(dst, parent []byte, tokens []uint32, lora, salt string) []byte {
	s := Scheme{kind: vllmSHA256, lora: lora}
	return s.appendVLLM(dst, parent, tokens, 0, salt, nil, nil)
}
