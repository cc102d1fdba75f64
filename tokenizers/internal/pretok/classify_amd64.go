// SPDX-License-Identifier: Apache-2.0

package pretok

// classify sets the sets of the 64 bytes at p. inStop has the bytes above 0x7F only.
//
//go:noescape
func classify(m *[8]uint64, p *byte)

// hasVectors reports whether the processor and the operating system support AVX2.
func hasVectors() bool
