// SPDX-License-Identifier: Apache-2.0

// Package callid generates IDs of tool calls and output items.
//
// An ID is a function of the response ID and an ordinal, so a repeated request results in the same IDs, and IDs are
// unique in a conversation if response IDs are. All IDs consist of ASCII letters, digits, '_' and '-' (Anthropic's rule
// for tool IDs) and are at most 64 bytes long (OpenAI's limit).
package callid

import (
	"encoding/base32"
	"hash/fnv"
	"strconv"
	"strings"
)

// maxSuffix leaves room in 64 bytes for a prefix ("srvtoolu_"), the choice and the ordinal.
const maxSuffix = 40

// prefixes are the prefixes of response IDs in all APIs. Item IDs contain only what follows them.
var prefixes = [...]string{"chatcmpl-", "cmpl-", "resp_", "msg_"}

// Suffix returns the part of a response ID that the IDs derived from it share. Bytes that are not allowed become '_'.
// If that changes the ID, or if it is too long, a 64-bit hash is added to keep IDs distinct.
func Suffix(response string) string {
	s := response
	for _, p := range prefixes {
		if t, ok := strings.CutPrefix(s, p); ok {
			s = t
			break
		}
	}
	changed := false
	s = strings.Map(func(r rune) rune {
		if r < 128 && legal(byte(r)) {
			return r
		}
		changed = true
		return '_'
	}, s)
	if !changed && len(s) <= maxSuffix && s != "" {
		return s
	}
	h := fnv.New64a()
	h.Write([]byte(response))
	return s[:min(len(s), maxSuffix-17)] + "_" + strconv.FormatUint(h.Sum64(), 16)
}

// Append appends prefix, suffix and the ordinal n of choice, for example "call_abc_0".
func Append(dst []byte, prefix, suffix string, choice, n int32) []byte {
	dst = append(dst, prefix...)
	dst = append(dst, suffix...)
	dst = append(dst, '_')
	if choice > 0 {
		dst = strconv.AppendInt(dst, int64(choice), 10)
		dst = append(dst, 'x')
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// Legal reports whether id is a non-empty string of ASCII letters, digits, '_' and '-'.
func Legal[T ~string | ~[]byte](id T) bool {
	for i := 0; i < len(id); i++ {
		if !legal(id[i]) {
			return false
		}
	}
	return len(id) > 0
}

func legal(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

const escaped = "tc_x"

var encoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// Escape returns id if it is [Legal] and cannot be mistaken for an escaped one, otherwise "tc_x" and the base32hex
// encoding of its bytes.
func Escape(id string) string {
	if Legal(id) && !strings.HasPrefix(id, escaped) {
		return id
	}
	return escaped + encoding.EncodeToString([]byte(id))
}

// Unescape returns the ID that was passed to Escape.
func Unescape(id string) string {
	s, ok := strings.CutPrefix(id, escaped)
	if !ok {
		return id
	}
	raw, err := encoding.DecodeString(s)
	if err != nil {
		return id
	}
	return string(raw)
}
