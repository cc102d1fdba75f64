// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"math"
	"strconv"
)

// Value is a cursor: it refers to one value of one document. The zero Value is absent; all its methods return zero
// results.
type Value struct {
	d *Doc
	i int32
}

// Exists reports whether the value exists. A JSON null exists.
func (v Value) Exists() bool { return v.d != nil }

// Doc returns the value's document, or nil for an absent value.
func (v Value) Doc() *Doc { return v.d }

// End returns the index of what follows the value and everything inside.
func (v Value) End() int { return int(v.d.node(v.i).next) }

// Index returns the value's index in its document.
func (v Value) Index() int { return int(v.i) }

// At returns the value at index i of the document's index.
func (d *Doc) At(i int) Value { return Value{d, int32(i)} }

// Kind returns the JSON type.
func (v Value) Kind() Kind {
	if v.d == nil {
		return Absent
	}
	return v.d.node(v.i).kind
}

// IsNull reports whether the value is absent or null.
func (v Value) IsNull() bool { return v.Kind() <= Null }

// Opaque reports whether the value is an object or array whose contents are not indexed.
func (v Value) Opaque() bool { return v.d != nil && v.d.node(v.i).flags&flagOpaque != 0 }

// Span returns the bytes [off, end) of the value.
func (v Value) Span() (off, end int) {
	if v.d == nil {
		return 0, 0
	}
	n := v.d.node(v.i)
	return int(n.off), int(n.end)
}

// outer is Span including the name.
func (v Value) outer() (off, end int) {
	n := v.d.node(v.i)
	if n.flags&flagMember != 0 {
		return int(n.key) - 1, int(n.end)
	}
	return int(n.off), int(n.end)
}

// Raw returns the bytes of the value, unmodified.
func (v Value) Raw() []byte {
	if v.d == nil {
		return nil
	}
	n := v.d.node(v.i)
	return v.d.slice(n.off, n.end)
}

// First returns the first element or field of an array or object that is not opaque.
func (v Value) First() Value {
	if v.d == nil || v.d.node(v.i).next == v.i+1 || v.d.node(v.i).kind < Array {
		return Value{}
	}
	return Value{v.d, v.i + 1}
}

// Next returns the sibling after child in v.
func (v Value) Next(child Value) Value {
	n := v.d.node(child.i).next
	if n >= v.d.node(v.i).next {
		return Value{}
	}
	return Value{v.d, n}
}

// Len returns the number of elements or fields.
func (v Value) Len() int {
	n := 0
	for c := v.First(); c.Exists(); c = v.Next(c) {
		n++
	}
	return n
}

// KeyIs reports whether the value is the field name of an object.
func (v Value) KeyIs(name string) bool {
	n := v.d.node(v.i)
	if n.flags&flagMember == 0 {
		return false
	}
	raw := v.d.name(n)
	if n.flags&flagKeyEscaped == 0 {
		return string(raw) == name
	}
	return string(AppendUnescaped(nil, raw)) == name
}

// Key returns the value's field name, or "" for elements.
func (v Value) Key() string {
	if v.d == nil {
		return ""
	}
	n := v.d.node(v.i)
	if n.flags&flagMember == 0 {
		return ""
	}
	raw := v.d.name(n)
	if n.flags&flagKeyEscaped == 0 {
		return view(raw)
	}
	return string(AppendUnescaped(nil, raw))
}

// Get returns the field called name of an object. The value does not exist if the object lacks it. It compares the
// fields in order.
func (v Value) Get(name string) Value {
	d := v.d
	if d == nil {
		return Value{}
	}
	n := d.node(v.i)
	if n.kind != Object {
		return Value{}
	}
	size := uint16(min(len(name), longKey))
	for i, end := v.i+1, n.next; i < end; i = n.next {
		n = d.node(i)
		found := n.keyLen == size && string(d.name(n)) == name
		if n.flags&flagKeyEscaped != 0 {
			found = Value{d, i}.KeyIs(name)
		}
		if found {
			return Value{d, i}
		}
	}
	return Value{}
}

// Str returns the text of a string. Without escapes, the result is a view of the document. Otherwise it uses memory of
// a or, if a is nil, a new allocation.
func (v Value) Str(a *Arena) (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	n := v.d.node(v.i)
	raw := v.d.slice(n.off+1, n.end-1)
	switch {
	case n.flags&flagEscaped == 0:
		return view(raw), true
	case a == nil:
		return view(AppendUnescaped(make([]byte, 0, len(raw)), raw)), true
	}
	return a.unescape(raw), true
}

// Text returns the text of a string, or nil and false for other values. Without escapes, the result is a view of the
// document. Otherwise the text is appended to *buf, and the result is a view of that.
func (v Value) Text(buf *[]byte) ([]byte, bool) {
	if v.Kind() != String {
		return nil, false
	}
	n := v.d.node(v.i)
	raw := v.d.slice(n.off+1, n.end-1)
	if n.flags&flagEscaped == 0 {
		return raw, true
	}
	from := len(*buf)
	*buf = AppendUnescaped(*buf, raw)
	return (*buf)[from:len(*buf):len(*buf)], true
}

// RawStr returns the bytes of the value as a string, without a copy.
func (v Value) RawStr() string { return view(v.Raw()) }

// Bool returns the value of a boolean.
func (v Value) Bool() (b, ok bool) {
	k := v.Kind()
	return k == True, k == True || k == False
}

// Uint32 is Int for unsigned integers of 32 bits, such as token IDs.
func (v Value) Uint32() (uint32, bool) {
	n, ok := v.Int()
	if !ok || n < 0 || n > math.MaxUint32 {
		return 0, false
	}
	return uint32(n), true
}

// Int returns the value of a number that is a 64-bit integer; 1e3 and 2.0 are integers.
func (v Value) Int() (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	s := v.RawStr()
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || f < -1<<53 || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Float returns the value of a number that a float64 can represent.
func (v Value) Float() (float64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.RawStr(), 64)
	return f, err == nil
}

// Path returns the position of the value, for example messages[3].content[1].
func (v Value) Path() string {
	if v.d == nil {
		return ""
	}
	var deep [16]int32
	up := deep[:0]
	for i := v.i; i > 0 || i == 0 && v.d.of.part; i = v.d.node(i).parent {
		up = append(up, i)
	}
	var buf [64]byte
	path := append(buf[:0], v.d.of.path...)
	for k := len(up) - 1; k >= 0; k-- {
		if n := v.d.node(up[k]); n.flags&flagMember != 0 {
			path = AppendPathKey(path, []byte(Value{v.d, up[k]}.Key()))
		} else if n.key != named {
			path = AppendPathIndex(path, int(n.key))
		}
	}
	return string(path)
}

// Parent returns the array or object that contains the value. It does not exist for the root, and for the values of a part.
func (v Value) Parent() Value {
	if v.d == nil || v.i == 0 || v.d.node(v.i).parent < 0 {
		return Value{}
	}
	return Value{v.d, v.d.node(v.i).parent}
}
