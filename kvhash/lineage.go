// SPDX-License-Identifier: Apache-2.0

package kvhash

import "encoding/binary"

// AppendLineage appends Dynamo's positional lineage hash of every block to dst, 16 bytes each, big-endian; seq are the
// sequence hashes of the prompt, first block first. Such a hash holds, from the highest bit down: 2 bits of mode, the
// block's position (8, 16 or 24 bits in modes 0, 1 and 2, the smallest that fits), its sequence hash (64 bits), and the
// low 54, 46 or 38 bits of its parent's (0 for the first block). Blocks at positions from 2^24 on have no such hash and
// are omitted. The layout is that of Dynamo's PositionalLineageHash of August 2026; older layouts differ and cannot be
// distinguished.
func AppendLineage(dst []byte, seq []uint64) []byte {
	var parent uint64
	for pos, s := range seq[:min(len(seq), 1<<24)] {
		dst = appendLineage(dst, pos, s, parent)
		parent = s
	}
	return dst
}

func appendLineage(dst []byte, pos int, seq, parent uint64) []byte {
	mode, bits := uint64(0), 8
	switch {
	case pos >= 1<<16:
		mode, bits = 2, 24
	case pos >= 1<<8:
		mode, bits = 1, 16
	}
	below := 62 - bits // of the parent, and of the high word for the sequence hash
	dst = binary.BigEndian.AppendUint64(dst, mode<<62|uint64(pos)<<below|seq>>(64-below))
	return binary.BigEndian.AppendUint64(dst, seq<<below|parent&(1<<below-1))
}
