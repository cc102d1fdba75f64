// SPDX-License-Identifier: Apache-2.0

// Package nfc puts text into Unicode normalization form C exactly as Hugging Face's NFC normalizer does. Type
// [Form] has the other three forms, for package normal.
//
// The tables are those of package unidata, so characters newer than the reference's tables are unchanged. Bytes that
// are not UTF-8 are copied and act as borders. Functions are pure; cost is linear, with one table look-up per non-ASCII
// character for text that is already in form C.
package nfc

import (
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// Buffer is scratch memory for [Buffer.Next]. The zero value is ready for use. A Buffer is not safe for concurrent use.
type Buffer struct{ chars []Char }

// Span returns the length of the longest prefix of s that is known to be in form C whatever follows.
// If it is len(s), s is in form C.
func Span(s string) int {
	safe := 0 // start of the last character with value 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			for i+8 <= len(s) && ascii8(s[i:i+8]) {
				i += 8
			}
			for i < len(s) && s[i] < utf8.RuneSelf {
				i++
			}
			safe = i - 1
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError && unidata.NFC(r) != 0 {
			return safe
		}
		safe = i
		i += n
	}
	return len(s)
}

// ascii8 reports whether the first eight bytes of s are ASCII.
func ascii8(s string) bool {
	_ = s[7]
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return x&0x8080808080808080 == 0
}
