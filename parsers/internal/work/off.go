// SPDX-License-Identifier: Apache-2.0

//go:build !weftcount

// Package work counts the bytes that parsers examine, in tests that are built with the tag weftcount. Without the tag
// it is nothing: Add is inlined away.
//
// A byte is examined each time a loop looks at it to decide something or to rewrite it; copies do not count.
package work

// Counting specifies that work is counted.
const Counting = false

// Add notes that n bytes were examined.
func Add(int) {}

// Take returns how many bytes were examined since the last call.
func Take() int { return 0 }
