// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"hash/maphash"
	"math"
	"unsafe"
)

// Kind is the JSON type of a value.
type Kind uint8

// The JSON types. Absent is the kind of the zero [Value].
const (
	Absent Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

// String returns the name of the type as used in error messages.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case False, True:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "an array"
	case Object:
		return "an object"
	}
	return "nothing"
}

// longKey is the length of names from which it is not stored.
const longKey = math.MaxUint16

const (
	flagEscaped    = 1 << iota // the string has a backslash
	flagKeyEscaped             // the name has a backslash
	flagMember                 // the node is a field of an object
	flagOpaque                 // the object or array has no nodes for its contents
)

// Doc is a validated document. It is immutable and safe for concurrent use by multiple goroutines.
type Doc struct {
	text
	nodes
	escaped int // bytes inside string values that have a backslash; -1 if they were not counted
	depth   int // the limit for the depth

	of place // of a part of another document; see Parts
}

// Body returns the bytes of the document. The caller must not modify them. The first call for a document with memory of earlier
// ones joins them; see [Doc.Append].
func (d *Doc) Body() []byte { return d.whole() }

// Size returns the number of bytes of the document.
func (d *Doc) Size() int { return d.size }

// Memory returns how many bytes of memory the document refers to, of which others may refer to some as well.
func (d *Doc) Memory() int {
	return d.held + d.memory() + cap(d.pieces)*int(unsafe.Sizeof(piece{}))
}

// Append appends the bytes of the document.
func (d *Doc) Append(dst []byte) []byte { return d.append(dst, 0, d.size) }

// Escaped returns an upper bound for the length of the unescaped text of all string values with escapes.
func (d *Doc) Escaped() int {
	if d.escaped >= 0 {
		return d.escaped
	}
	n := 0
	for i := range int32(d.count) {
		if v := d.node(i); v.flags&flagEscaped != 0 {
			n += int(v.end-v.off) - 2
		}
	}
	return n
}

// Values returns the number of values outside opaque ones.
func (d *Doc) Values() int { return d.count }

// Root returns the document's value.
func (d *Doc) Root() Value { return Value{d, 0} }

// Limits limits the size of a document. All must be positive.
type Limits struct {
	Bytes  int // size of the body; capped at 2 GiB - 1
	Depth  int // nesting; a flat object has depth 1
	Values int // number of values outside opaque values
	// Opaque reports whether the object or array with the name key, depth levels deep, is opaque. If nil, no value is.
	Opaque func(key []byte, depth int) bool
}

// frame is an object or array that is still open.
type frame struct {
	node  int32 // its node; -1 inside an opaque value
	keys  int32 // objects: index of its first name in scanner.keys
	index int32 // arrays: of the element being read
	obj   bool
	set   *keySet // objects with many names
}

// keyRef is a name of an open object.
type keyRef struct {
	off, end int32
	esc      bool // the span is in scanner.unesc
}

// manyKeys is the number of names from which an object uses a hash set.
const manyKeys = 24

type scanner struct {
	body   []byte
	frames []frame
	keys   []keyRef
	unesc  []byte
	guide  *guide // of ScanNext; otherwise nil
}

// Scan validates body and returns its index. The document retains body, which the caller must not modify afterward.
// Errors are of type *[Error].
func Scan(body []byte, lim Limits) (*Doc, error) {
	if maxBytes := min(lim.Bytes, math.MaxInt32); len(body) > maxBytes {
		return nil, bodyTooLarge(maxBytes)
	}
	s := scanner{body: body, frames: make([]frame, 0, 16), keys: make([]keyRef, 0, 64)}
	d := &Doc{depth: lim.Depth}
	d.expect(16 + len(body)/64)
	d.is(body)
	if err := s.run(d, lim); err != nil {
		return nil, err
	}
	return d, nil
}

// Scanner scans documents one after the other and reuses its memory: after the first ones, it allocates only for
// objects with many names. The zero value is ready to use. A Scanner is not safe for concurrent use by multiple
// goroutines.
type Scanner struct {
	s scanner
	d Doc
}

// Scan is like the function [Scan], but reuses the memory of the previous document, whose values become invalid. The
// result is valid until the next call, and only while body does not change.
func (c *Scanner) Scan(body []byte, lim Limits) (*Doc, error) {
	if maxBytes := min(lim.Bytes, math.MaxInt32); len(body) > maxBytes {
		return nil, bodyTooLarge(maxBytes)
	}
	c.s.body, c.s.frames, c.s.keys, c.s.unesc = body, c.s.frames[:0], c.s.keys[:0], c.s.unesc[:0]
	c.d.count, c.d.escaped, c.d.depth = 0, 0, lim.Depth
	c.d.expect(16)
	c.d.is(body)
	if err := c.s.run(&c.d, lim); err != nil {
		return nil, err
	}
	return &c.d, nil
}

// Trim releases the memory if it holds more than the given number of values, so that one large document does not waste
// memory while many small ones follow.
func (c *Scanner) Trim(values int) {
	if c.d.room > values {
		*c = Scanner{}
	}
}

// run scans the document. It alternates between three states: before a value, after a value, before a name.
func (s *scanner) run(d *Doc, lim Limits) error {
	var (
		b       = s.body
		i       = 0
		top     *frame // the innermost open container
		opaque  = 0    // depth of the outermost open opaque value; 0: none
		key     name   // of the value that follows
		n       int
		kind    Kind
		esc     bool
		bad     strFault
		isClose bool
	)

value:
	i = skipSpace(b, i)
	if i >= len(b) {
		return s.fail(Syntax, i, "unexpected end of JSON")
	}
	switch c := b[i]; {
	case c == '"':
		if s.guide != nil && opaque == 0 {
			if n = s.guide.copy(s, d, i, key, lim); n > 0 {
				i, isClose = n, false
				goto behind
			}
		}
		n, esc, bad = scanString(b, i+1)
		if bad != strOK {
			return s.failString(n, bad)
		}
		kind = String
		if esc {
			key.flags |= flagEscaped
			if opaque == 0 {
				d.escaped += n - i - 1
			}
		}
		n++
	case c == '{' || c == '[':
		if s.guide != nil && opaque == 0 {
			if n = s.guide.copy(s, d, i, key, lim); n > 0 {
				i, isClose = n, false
				goto behind
			}
		}
		if len(s.frames) >= lim.Depth {
			return s.failLimit(i, "the nesting is too deep", "depth", lim.Depth)
		}
		f := frame{node: -1, keys: int32(len(s.keys)), obj: c == '{'}
		if opaque == 0 {
			if d.count >= lim.Values {
				return s.failLimit(i, "too many values", "values", lim.Values)
			}
			f.node = int32(d.count)
			kind = Array
			if f.obj {
				kind = Object
			}
			if lim.Opaque != nil && key.flags&flagMember != 0 && lim.Opaque(b[key.off:key.end], len(s.frames)) {
				opaque = len(s.frames) + 1
				key.flags |= flagOpaque
			}
			d.add(key, kind, i, i, top)
		}
		if g := s.guide; g != nil && g.useless(b, i) {
			s.guide = nil
		} else if g != nil {
			g.open(kind, opaque > 0)
		}
		s.frames = append(s.frames, f)
		top = &s.frames[len(s.frames)-1]
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == c+2 { // ']' and '}' are the codes of '[' and '{' plus 2
			isClose = true
			goto behind
		}
		if top.obj {
			goto member
		}
		key = name{}
		goto value
	case c == '-' || c >= '0' && c <= '9':
		var ok bool
		if n, ok = scanNumber(b, i); !ok {
			if n >= len(b) {
				return s.fail(Syntax, n, "unexpected end of JSON")
			}
			return s.fail(Syntax, n, "malformed number")
		}
		kind = Number
	default:
		kind, n = scanLiteral(b, i)
		if kind == Absent {
			if n >= len(b) {
				return s.fail(Syntax, n, "unexpected end of JSON")
			}
			return s.fail(Syntax, n, "a value was expected")
		}
	}
	if opaque == 0 {
		if d.count >= lim.Values {
			return s.failLimit(i, "too many values", "values", lim.Values)
		}
		d.add(key, kind, i, n, top)
	}
	i = n
	isClose = false

behind:
	if top == nil {
		if i = skipSpace(b, i); i < len(b) {
			return s.fail(Syntax, i, "more text after the JSON value")
		}
		return nil
	}
	if !isClose {
		i = skipSpace(b, i)
		if i >= len(b) {
			return s.fail(Syntax, i, "unexpected end of JSON")
		}
		switch c := b[i]; {
		case c == ',':
			i++
			if top.obj {
				i = skipSpace(b, i)
				goto member
			}
			top.index++
			key = name{off: top.index}
			goto value
		case c == '}' && top.obj, c == ']' && !top.obj:
		case top.obj:
			return s.fail(Syntax, i, "a comma or the end of the object was expected")
		default:
			return s.fail(Syntax, i, "a comma or the end of the array was expected")
		}
	}
	i++
	isClose = false
	if top.node >= 0 {
		n := d.node(top.node)
		n.end, n.next = int32(i), int32(d.count)
	}
	s.keys = s.keys[:top.keys]
	if len(s.frames) == opaque {
		opaque = 0
	}
	top.set = nil
	if s.guide != nil {
		s.guide.close()
	}
	s.frames = s.frames[:len(s.frames)-1]
	top = nil
	if k := len(s.frames); k > 0 {
		top = &s.frames[k-1]
	}
	goto behind

member:
	if i >= len(b) {
		return s.fail(Syntax, i, "unexpected end of JSON")
	}
	if b[i] != '"' {
		return s.fail(Syntax, i, "a name was expected")
	}
	n, esc, bad = scanString(b, i+1)
	if bad != strOK {
		return s.failString(n, bad)
	}
	key = name{off: int32(i + 1), end: int32(n), flags: flagMember}
	if esc {
		key.flags |= flagKeyEscaped
	}
	if !s.addKey(top, i+1, n, esc) {
		return s.fail(Duplicate, i, "the name occurs twice")
	}
	i = skipSpace(b, n+1)
	if i >= len(b) {
		return s.fail(Syntax, i, "unexpected end of JSON")
	}
	if b[i] != ':' {
		return s.fail(Syntax, i, "a colon was expected")
	}
	i++
	goto value
}

// name is the name of a field, or the index of an element, and the flags of its value.
type name struct {
	off, end int32 // in objects: the name without its quotes; in arrays: the index, and 0
	flags    uint8
}

// len returns the length of the name as a node has it.
func (k name) len() uint16 { return uint16(max(0, min(k.end-k.off, longKey))) }

// name returns the name of a field, without its quotes.
func (d *Doc) name(n *node) []byte {
	end := n.key + int32(n.keyLen)
	if n.keyLen == longKey {
		end = n.key + int32(bytes.LastIndexByte(d.slice(n.key, n.off), '"')) // only a colon and white space follow it
	}
	return d.slice(n.key, end)
}

// add appends a node. It sets the fields in place, as a copy would wait for the stores before it.
func (d *Doc) add(key name, kind Kind, off, end int, in *frame) {
	k := d.count
	if k == d.room {
		d.grow()
	}
	n := d.node(int32(k))
	d.count++
	n.off, n.end = int32(off), int32(end)
	n.key, n.keyLen = key.off, key.len()
	n.next, n.parent = int32(k+1), 0
	if in != nil {
		n.parent = in.node
	}
	n.kind, n.flags = kind, key.flags
}

// addKey adds a name to the open object and reports whether it is new.
func (s *scanner) addKey(f *frame, off, end int, esc bool) bool {
	k := keyRef{off: int32(off), end: int32(end)}
	if esc {
		k.off, k.esc = int32(len(s.unesc)), true
		s.unesc = AppendUnescaped(s.unesc, s.body[off:end])
		k.end = int32(len(s.unesc))
	}
	name := s.key(k)
	own := s.keys[f.keys:]
	fresh := true
	switch {
	case f.set != nil || len(own) >= manyKeys:
		if f.set == nil {
			f.set = &keySet{seed: maphash.MakeSeed()}
			for i := range own {
				f.set.add(s, f.keys+int32(i), s.key(own[i]))
			}
		}
		fresh = f.set.add(s, int32(len(s.keys)), name)
	default:
		for _, o := range own {
			if o.end-o.off == k.end-k.off && string(s.key(o)) == string(name) {
				fresh = false
				break
			}
		}
	}
	s.keys = append(s.keys, k)
	return fresh
}

// keySet is a hash set of names with open addressing. It contains ordinals of scanner.keys, which do not change while
// the object is open. It takes 8 to 16 bytes per name, a tenth of a map of strings.
type keySet struct {
	seed  maphash.Seed
	slots []int32 // ordinal + 1; len is a power of two, at most half of the slots are used
	n     int
}

// add adds the name with the given ordinal and reports whether it is new.
func (k *keySet) add(s *scanner, ordinal int32, name []byte) bool {
	if 2*(k.n+1) > len(k.slots) {
		old := k.slots
		k.slots = make([]int32, max(128, 2*len(old)))
		for _, o := range old {
			if o > 0 {
				k.slots[k.find(s, s.key(s.keys[o-1]))] = o
			}
		}
	}
	at := k.find(s, name)
	if k.slots[at] != 0 {
		return false
	}
	k.slots[at] = ordinal + 1
	k.n++
	return true
}

// find returns the slot that contains the name, or the free slot for it.
func (k *keySet) find(s *scanner, name []byte) int {
	mask := len(k.slots) - 1
	for at := int(maphash.Bytes(k.seed, name)) & mask; ; at = (at + 1) & mask {
		if o := k.slots[at]; o == 0 || string(s.key(s.keys[o-1])) == string(name) {
			return at
		}
	}
}

func (s *scanner) key(k keyRef) []byte {
	if k.esc {
		return s.unesc[k.off:k.end]
	}
	return s.body[k.off:k.end]
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// scanNumber returns the end of the number at b[i], or the index of the error.
func scanNumber(b []byte, i int) (int, bool) {
	if b[i] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '0' {
		i++
		if i < len(b) && b[i]-'0' <= 9 {
			return i, false
		}
	} else if !digits() {
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return i, false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return i, false
		}
	}
	return i, true
}

// scanLiteral returns the kind and the end of the literal at b[i], or Absent and the index of the error.
func scanLiteral(b []byte, i int) (Kind, int) {
	word, kind := "", Absent
	switch b[i] {
	case 't':
		word, kind = "true", True
	case 'f':
		word, kind = "false", False
	case 'n':
		word, kind = "null", Null
	}
	for k := 0; k < len(word); k++ {
		if i+k >= len(b) || b[i+k] != word[k] {
			return Absent, i + k
		}
	}
	return kind, i + len(word)
}

// fail returns an error at offset off, with the path of the innermost open value.
func (s *scanner) fail(kind ErrorKind, off int, msg string) error {
	var path []byte
	for i, f := range s.frames {
		if !f.obj {
			path = AppendPathIndex(path, int(f.index))
			continue
		}
		// The open field is the last name of the object, immediately before the names of the next object inside it. For
		// an array, the frame's keys is the index at which names of an object inside would start.
		end := len(s.keys)
		if i+1 < len(s.frames) {
			end = int(s.frames[i+1].keys)
		}
		if end > int(f.keys) {
			path = AppendPathKey(path, s.key(s.keys[end-1]))
		}
	}
	return &Error{Kind: kind, Path: string(path), Offset: off, Msg: msg}
}

func bodyTooLarge(limit int) error {
	return &Error{Kind: Limit, Offset: limit, Msg: "the body is too large", Limit: "body bytes", Max: int64(limit)}
}

func (s *scanner) failString(off int, f strFault) error {
	switch f {
	case strCut:
		return s.fail(Syntax, off, "unexpected end of JSON inside a string")
	case strControl:
		return s.fail(Syntax, off, "control character inside a string")
	case strEscape:
		return s.fail(Syntax, off, "malformed escape inside a string")
	default:
		return s.fail(Encoding, off, "invalid UTF-8 inside a string")
	}
}

func (s *scanner) failLimit(off int, msg, limit string, maximum int) error {
	err := s.fail(Limit, off, msg).(*Error)
	err.Limit, err.Max = limit, int64(maximum)
	return err
}
