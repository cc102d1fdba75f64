// SPDX-License-Identifier: Apache-2.0

// Package callid makes the ids of tool calls and output items.
//
// An id is a function of the response id and an ordinal, so a repeated request gives the same ids, and ids stay
// unique over a conversation as long as response ids do. All ids consist of ASCII letters, digits, '_' and '-'
// (Anthropic's rule for tool ids) and are at most 64 bytes long (OpenAI's).
package callid

import (
	"encoding/base32"
	"hash/fnv"
	"strconv"
	"strings"
)

// maxSuffix leaves room in 64 bytes for a prefix ("srvtoolu_"), the choice and the ordinal.
const maxSuffix = 40

// prefixes are those of the response ids of the three APIs; an item id repeats only what follows.
var prefixes = [...]string{"chatcmpl-", "cmpl-", "resp_", "msg_"}

// Suffix returns the part of a response id that the ids made from it share. Other bytes than those allowed become
// '_'; an id that this changes, or that is too long, is told apart from others by a 64-bit hash.
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

// AppendEscaped appends id if it is [Legal] and could not be taken for an escaped one, else "tc_x" and the base32hex
// of its bytes.
func AppendEscaped(dst, id []byte) []byte {
	if Legal(id) && !strings.HasPrefix(string(id), escaped) {
		return append(dst, id...)
	}
	return encoding.AppendEncode(append(dst, escaped...), id)
}

// Unescape returns the id that AppendEscaped was given.
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
