// SPDX-License-Identifier: Apache-2.0

// Package details decodes the entries of reasoning_details in requests and responses of the Chat API. Package chat
// documents them.
package details

import (
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Position is the position of a run of reasoning in its turn: the number of pieces of text, including refusals, and of
// calls before it.
type Position struct{ Texts, Calls int64 }

// prefix is the prefix of an ID that contains a Position.
const prefix = "weft1p."

// AppendID appends the first part of the ID of a run at p.
func (p Position) AppendID(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, prefix...), p.Texts, 10)
	return append(strconv.AppendInt(append(dst, '.'), p.Calls, 10), '.')
}

// PositionOf returns the Position in the ID of an entry. ok is false if the ID does not contain one.
func PositionOf(e jsonscan.Value) (p Position, ok bool) {
	v := e.Get("id")
	if v.Kind() != jsonscan.String {
		return p, false
	}
	id, _ := v.Str(nil)
	id, ok = strings.CutPrefix(id, prefix)
	if !ok {
		return p, false
	}
	texts, id, _ := strings.Cut(id, ".")
	calls, _, ok := strings.Cut(id, ".")
	t, err := strconv.ParseUint(texts, 10, 31)
	k, err2 := strconv.ParseUint(calls, 10, 31)
	return Position{int64(t), int64(k)}, ok && err == nil && err2 == nil
}

// HasPosition reports whether an entry of a list has a Position.
func HasPosition(list jsonscan.Value) bool {
	for e := list.First(); e.Exists(); e = list.Next(e) {
		if _, ok := PositionOf(e); ok {
			return true
		}
	}
	return false
}

// Member returns the name of the field that holds the content of an entry, or "" if its type is unknown.
func Member(e jsonscan.Value) string {
	kind, _ := e.Get("type").Str(nil)
	switch kind {
	case "reasoning.text":
		return "text"
	case "reasoning.summary":
		return "summary"
	case "reasoning.encrypted", "redacted_thinking":
		return "data"
	case "thinking":
		return "thinking"
	}
	return ""
}

// Text returns the text of an entry, given the result of Member. An entry with an encrypted form has text if a client
// merged two entries of one run.
func Text(e jsonscan.Value, member string) jsonscan.Value {
	if member != "data" {
		return e.Get(member)
	}
	return String(e, "text")
}

// String returns the field name of e if it is a string, else an absent value.
func String(e jsonscan.Value, name string) jsonscan.Value {
	if v := e.Get(name); v.Kind() == jsonscan.String {
		return v
	}
	return jsonscan.Value{}
}

// HasText reports whether an entry of a list has text.
func HasText(list jsonscan.Value) bool {
	for e := list.First(); e.Exists(); e = list.Next(e) {
		if name := Member(e); name != "" {
			if s, _ := Text(e, name).Str(nil); s != "" {
				return true
			}
		}
	}
	return false
}
