// SPDX-License-Identifier: Apache-2.0

// Package text classifies bytes of model output.
package text

import "unicode/utf8"

// Blank reports whether c is white space as JSON has it.
func Blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// NameStart reports whether c can begin the name of a function.
func NameStart(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

// Whole returns the length of src without a UTF-8 sequence that its end cuts, at most 3 bytes. Bytes that are not UTF-8
// are kept as they are.
func Whole(src []byte) int {
	n := len(src)
	if n == 0 || src[n-1] < utf8.RuneSelf {
		return n
	}
	for i := n - 1; i >= max(0, n-3); i-- {
		if utf8.RuneStart(src[i]) {
			if !utf8.FullRune(src[i:]) {
				return i
			}
			break
		}
	}
	return n
}
