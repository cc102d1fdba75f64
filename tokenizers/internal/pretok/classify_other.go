// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package pretok

func classify(*[8]uint64, *byte) { panic("no vector instructions") }

func hasVectors() bool { return false }
