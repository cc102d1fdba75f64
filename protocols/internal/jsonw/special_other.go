// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package jsonw

import "unsafe"

// HasSpecial reports whether [Special] is fast enough to be useful.
const HasSpecial = false

func special(masks *Masks, p *byte, blocks int) (wide uint64) {
	clear(masks.Special[:blocks])
	clear(masks.Wide[:blocks])
	for i, c := range unsafe.Slice(p, blocks*BlockSize) {
		if c < 0x20 || c == '"' || c == '\\' {
			masks.Special[i/BlockSize] |= 1 << (i % BlockSize)
		}
		masks.Wide[i/BlockSize] |= uint64(c>>7) << (i % BlockSize)
		wide |= uint64(c & 0x80)
	}
	return wide
}
