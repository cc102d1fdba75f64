// SPDX-License-Identifier: Apache-2.0

// Package sigpack packs the encrypted form and the signature of past reasoning into one opaque string that clients
// return: the signature of the Messages API or the encrypted content of the Responses API, each of which has a field
// for only one of them.
//
//	weft1c.   s for a summary, t for text, r for withheld   length of the encrypted form   .   encrypted form   signature
package sigpack

import (
	"strconv"
	"strings"
)

// Prefix is the prefix of every packed string.
const Prefix = "weft1c."

// RedactedFormat is OpenRouter's name for the format of encrypted reasoning that Anthropic redacted, as opposed to
// reasoning whose text is merely omitted.
const RedactedFormat = "anthropic-claude-v1"

// A Kind specifies the kind of packed reasoning.
type Kind byte

// Kinds of reasoning.
const (
	Text     Kind = 't'
	Summary  Kind = 's'
	Withheld Kind = 'r'
)

// Append appends the packed form of an encrypted form and a signature, each of which may be empty.
func Append(dst []byte, k Kind, encrypted, signature string) []byte {
	dst = append(append(dst, Prefix...), byte(k))
	dst = strconv.AppendInt(dst, int64(len(encrypted)), 10)
	dst = append(dst, '.')
	return append(append(dst, encrypted...), signature...)
}

// Open returns the parts of s. ok is false if s does not have this form.
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
