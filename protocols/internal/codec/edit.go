// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Field identifies a field of a block that an API may store in its own JSON field.
type Field uint8

// The fields that are patched individually. FOther represents all others.
const (
	FText Field = iota
	FSignature
	FEncrypted
	FCallID
	FName
	FNamespace
	FArgs
	FIsError
	FContent
	FCache
	FOther
)

// Diff returns the fields in which two blocks of the same kind differ.
func Diff(a, b *block.Block) []Field {
	var out []Field
	add := func(differs bool, f Field) {
		if differs {
			out = append(out, f)
		}
	}
	add(a.Text != b.Text, FText)
	add(a.Signature != b.Signature, FSignature)
	add(a.Encrypted != b.Encrypted, FEncrypted)
	add(a.CallID != b.CallID, FCallID)
	add(a.Name != b.Name, FName)
	add(a.Namespace != b.Namespace, FNamespace)
	add(a.Args != b.Args, FArgs)
	add(a.IsError != b.IsError, FIsError)
	add(!slices.EqualFunc(a.Content, b.Content, block.Block.Equal), FContent)
	add((a.Cache == nil) != (b.Cache == nil) || a.Cache != nil && *a.Cache != *b.Cache, FCache)
	x, y := *a, *b
	for _, p := range []*block.Block{&x, &y} {
		p.Text, p.Signature, p.Encrypted, p.CallID, p.Name, p.Namespace, p.Args, p.IsError, p.Content, p.Cache =
			"", "", "", "", "", "", "", false, nil, nil
	}
	add(!x.Equal(y), FOther)
	return out
}

// OnlyText reports whether two blocks differ in their text at most.
func OnlyText(a, b *block.Block) bool {
	d := Diff(a, b)
	return a.Kind == b.Kind && (len(d) == 0 || len(d) == 1 && d[0] == FText)
}

// Patch sets one field: its name, or two names separated by a dot, and its JSON, nil to remove it.
type Patch struct {
	Key string
	Raw []byte
}

// Apply sets fields of the object v. It returns false, and does nothing, if a path leads through a value that is not an
// object.
func Apply(e *jsonscan.Edits, v jsonscan.Value, list []Patch) bool {
	for _, p := range list {
		if head, _, ok := strings.Cut(p.Key, "."); ok && v.Get(head).Kind() != jsonscan.Object {
			return false
		}
	}
	for _, p := range list {
		at, key := v, p.Key
		if head, tail, ok := strings.Cut(p.Key, "."); ok {
			at, key = v.Get(head), tail
		}
		if p.Raw == nil {
			e.DeleteMember(at, key)
		} else {
			e.SetMember(at, key, p.Raw)
		}
	}
	return true
}

// Guard returns an error if an earlier edit replaced or deleted v.
func Guard(e *jsonscan.Edits, v jsonscan.Value) error {
	if e.Lost(v) {
		return Stale(v)
	}
	return nil
}

// Stale returns the error for a position that an earlier edit changed.
func Stale(v jsonscan.Value) error {
	return &block.Error{
		Kind: block.Stale, Path: v.Path(), Offset: -1, Msg: "an earlier edit changed this position; read the turns again",
	}
}

// Unsupported returns the error for an edit that the API cannot express.
func Unsupported(msg string) error {
	return &block.Error{Kind: block.Unsupported, Offset: -1, Msg: msg}
}

// InsertContent inserts the JSON of blocks into content that is an array, before the element before, or at the end if
// it is absent. Content that is a string becomes an array with text(raw string) as one element; content that is absent
// or null becomes the field name of obj.
func InsertContent(e *jsonscan.Edits, obj jsonscan.Value, name string, before jsonscan.Value, list [][]byte,
	text func(raw []byte) []byte) error {
	c := obj.Get(name)
	switch {
	case c.Kind() == jsonscan.Array:
		if e.Replaced(c) {
			return Stale(c)
		}
		if before.Exists() && before.Parent() != c {
			before = jsonscan.Value{}
		}
		for _, raw := range list {
			e.Insert(c, before, raw)
		}
	case c.Kind() == jsonscan.String:
		if e.Replaced(c) {
			return Stale(c)
		}
		old := text(c.Raw())
		if before.Exists() {
			list = append(slices.Clone(list), old)
		} else {
			list = slices.Insert(slices.Clone(list), 0, old)
		}
		e.Replace(c, Array(list))
	default:
		if c.Exists() && e.Replaced(c) {
			return Stale(c)
		}
		e.SetMember(obj, name, Array(list))
	}
	return nil
}

// Array returns a JSON array of values.
func Array(list [][]byte) []byte {
	out := []byte{'['}
	for i, raw := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// TokenIDs returns a JSON array of token IDs.
func TokenIDs(ids []uint32) []byte {
	raw := make([]byte, 0, 2+6*len(ids))
	raw = append(raw, '[')
	for i, id := range ids {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = strconv.AppendUint(raw, uint64(id), 10)
	}
	return append(raw, ']')
}

// Str returns s as JSON.
func Str(s string) []byte { return jsonscan.AppendString(nil, s) }

// Int returns n as JSON.
func Int(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// Bool returns b as JSON.
func Bool(b bool) []byte { return jsonscan.AppendBool(nil, b) }
