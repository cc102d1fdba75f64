// SPDX-License-Identifier: Apache-2.0

// Package bytelevel maps bytes to the printable characters that represent them in GPT-2's vocabulary, and back: a space
// is Ġ, a newline Ċ. Functions are pure.
package bytelevel

import "unicode/utf8"

// Printable bytes map to themselves; the other 68, in order, are U+0100 and up.
func plain(c rune) bool {
	return '!' <= c && c <= '~' || 0xA1 <= c && c <= 0xAC || 0xAE <= c && c <= 0xFF
}

// odd holds the bytes that are not plain.
const odd = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f" +
	"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x20\x7f" +
	"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f" +
	"\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xad"

// Decode appends the bytes that the characters of s represent. If a character does not represent a byte, it returns dst
// unchanged and false.
func Decode(dst []byte, s []byte) ([]byte, bool) {
	n := len(dst)
	for i := 0; i < len(s); {
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(s[i:])
		}
		i += size
		switch {
		case plain(c):
			dst = append(dst, byte(c))
		case c >= 0x100 && c < 0x100+rune(len(odd)):
			dst = append(dst, odd[c-0x100])
		default:
			return dst[:n], false
		}
	}
	return dst, true
}

// Encode appends the spelling of the bytes in s.
func Encode(dst []byte, s []byte) []byte {
	for _, b := range s {
		c := rune(b)
		if !plain(c) {
			switch {
			case b <= ' ':
				c = 0x100 + c
			case b == 0xAD:
				c = 0x100 + rune(len(odd)) - 1
			default: // 7F to A0
				c = 0x100 + 33 + c - 0x7F
			}
		}
		dst = utf8.AppendRune(dst, c)
	}
	return dst
}
