// SPDX-License-Identifier: Apache-2.0

// Package carrier packs the parts of past reasoning that another API has fields for into the one opaque string that an API
// asks its clients to send back: the signature of the Messages API, the encrypted content of the Responses API.
//
//	weft1c.   s for a summary, t for text   length of the encrypted form   .   encrypted form   signature
package carrier

import (
	"strconv"
	"strings"
)

// Prefix begins every carrier.
const Prefix = "weft1c."

// Append appends the carrier of an encrypted form and a signature, each of which may be empty.
func Append(dst []byte, summary bool, encrypted, signature string) []byte {
	dst = append(dst, Prefix...)
	kind := byte('t')
	if summary {
		kind = 's'
	}
	dst = strconv.AppendInt(append(dst, kind), int64(len(encrypted)), 10)
	dst = append(dst, '.')
	return append(append(dst, encrypted...), signature...)
}

// Open returns what s carries; ok is false for a string that is no carrier.
func Open(s string) (summary bool, encrypted, signature string, ok bool) {
	rest, ok := strings.CutPrefix(s, Prefix)
	if !ok {
		return false, "", "", false
	}
	size, rest, ok := strings.Cut(rest, ".")
	if !ok || size == "" || size[0] != 's' && size[0] != 't' {
		return false, "", "", false
	}
	n, err := strconv.ParseUint(size[1:], 10, 31)
	if err != nil || int(n) > len(rest) {
		return false, "", "", false
	}
	return size[0] == 's', rest[:n], rest[n:], true
}
