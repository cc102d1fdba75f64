// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"math"
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
	for in, i := false, 0; i < len(json); i++ {
		switch c := json[i]; {
		case c == '"':
			in = !in
		case c == '\\' && in:
			i++
		case c <= ' ' && !in:
			return true
		}
	}
	return false
}
