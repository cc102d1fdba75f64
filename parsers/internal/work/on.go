// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package work

// Counting specifies that work is counted.
const Counting = true

var examined int

// Add notes that n bytes were examined. One goroutine at a time.
func Add(n int) { examined += n }

// Take returns how many bytes were examined since the last call.
func Take() int {
	n := examined
	examined = 0
	return n
}
