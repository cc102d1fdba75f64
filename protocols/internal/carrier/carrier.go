// SPDX-License-Identifier: Apache-2.0

// Package carrier packs the parts of past reasoning that another API has fields for into the one opaque string that an API
// asks its clients to send back: the signature of the Messages API, the encrypted content of the Responses API.
//
//	weft1c.   s for a summary, t for text, r for withheld   length of the encrypted form   .   encrypted form   signature
package carrier

import (
	"strconv"
	"strings"
)

// Prefix begins every carrier.
const Prefix = "weft1c."

// RedactedFormat is OpenRouter's name for the format of encrypted reasoning that was withheld and not only hidden.
const RedactedFormat = "anthropic-claude-v1"

// A Kind says what kind of reasoning a carrier is of.
type Kind byte

// The kinds.
const (
	Text     Kind = 't'
	Summary  Kind = 's'
	Withheld Kind = 'r'
)

// Append appends the carrier of an encrypted form and a signature, each of which may be empty.
func Append(dst []byte, k Kind, encrypted, signature string) []byte {
	dst = append(append(dst, Prefix...), byte(k))
	dst = strconv.AppendInt(dst, int64(len(encrypted)), 10)
	dst = append(dst, '.')
	return append(append(dst, encrypted...), signature...)
}

// Open returns what s carries; ok is false for a string that is no carrier.
func Open(s string) (k Kind, encrypted, signature string, ok bool) {
	rest, ok := strings.CutPrefix(s, Prefix)
	if !ok {
		return 0, "", "", false
	}
	size, rest, ok := strings.Cut(rest, ".")
	if !ok || size == "" {
		return 0, "", "", false
	}
	switch k = Kind(size[0]); k {
	case Text, Summary, Withheld:
	default:
		return 0, "", "", false
	}
	n, err := strconv.ParseUint(size[1:], 10, 31)
	if err != nil || int(n) > len(rest) {
		return 0, "", "", false
	}
	return k, rest[:n], rest[n:], true
}
