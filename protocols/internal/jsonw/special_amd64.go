// SPDX-License-Identifier: Apache-2.0

package jsonw

// HasSpecial reports whether [Special] is fast enough to be useful.
const HasSpecial = true

// special sets the masks of at least one block of 64 bytes at p. wide is not 0 if a byte is not ASCII. It uses SSE2,
// which every processor has.
//
//go:noescape
func special(masks *Masks, p *byte, blocks int) (wide uint64)
