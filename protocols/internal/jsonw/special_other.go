// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package jsonw

import "unsafe"

// HasSpecial reports whether [Special] is fast enough to be useful.
const HasSpecial = false

func special(masks *uint64, p *byte, blocks int) (wide int) {
	m := unsafe.Slice(masks, blocks)
	clear(m)
	for i, c := range unsafe.Slice(p, blocks*BlockSize) {
		if c < 0x20 || c == '"' || c == '\\' {
			m[i/BlockSize] |= 1 << (i % BlockSize)
		}
		wide |= int(c & 0x80)
	}
	return wide
}
