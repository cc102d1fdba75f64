// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// AppendString appends s as a JSON string. It escapes only what JSON requires; invalid UTF-8 becomes U+FFFD.
func AppendString[T []byte | string](dst []byte, s T) []byte { return jsonw.AppendString(dst, s) }

// AppendStringBody is AppendString without the quotes.
func AppendStringBody[T []byte | string](dst []byte, s T) []byte { return jsonw.AppendLoose(dst, s) }

// AppendFloat appends f as a JSON number, or null if f is not finite.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// AppendBool appends true or false.
func AppendBool(dst []byte, b bool) []byte { return strconv.AppendBool(dst, b) }

// Spaced reports whether json contains white space outside strings.
func Spaced[T []byte | string](json T) bool {
	for i := 0; i < len(json); i++ {
		switch c := json[i]; {
		case c == '"':
			if i = stringEnd(json, i+1); i < 0 {
				return false
			}
		case c <= ' ':
			return true
		}
	}
	return false
}

// stringEnd returns the index of the quote that ends the string whose inside begins at i, or -1.
func stringEnd[T []byte | string](json T, i int) int {
	for i < len(json) {
		// Eight bytes at a time: m marks the quotes and backslashes in w. Borrows can set wrong marks only after a true one,
		// and only the first is used.
		if i+8 <= len(json) {
			b := json[i : i+8]
			w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
				uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
			q, s := w^ones*'"', w^ones*'\\'
			m := ((q-ones)&^q | (s-ones)&^s) & highs
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch json[i] {
		case '"':
			return i
		case '\\':
			i++
		}
		i++
	}
	return -1
}
