// SPDX-License-Identifier: Apache-2.0

// Package jsonr reads large JSON documents from memory without building a tree.
//
// A [Reader] walks one value. Its methods consume values in document order; the first error sticks and is returned by
// all later calls, with its offset and the path of keys and indexes that lead to it. Strings must be valid UTF-8 with
// paired surrogates. Depth is limited to [MaxDepth]. A Reader does not allocate for skipped values. It is not safe for
// concurrent use. The contents of the result of [Reader.Raw] are not checked.
//
//	r := jsonr.New(data, "model")
//	for r.Object(); r.Key(&key); {
//		switch string(key) { case "vocab": span = r.Raw(); default: r.Skip() }
//	}
//	err := r.End()
package jsonr

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// MaxDepth is the deepest nesting a [Reader] accepts.
const MaxDepth = 256

// Error reports where and why a document could not be read.
type Error struct {
	Path   string // keys and indexes from the root, such as model.merges[3]
	Offset int64  // bytes from the start of the document
	Reason string
}

// Error returns path, reason and offset.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s at offset %d", e.Path, e.Reason, e.Offset)
}

// Span is a value inside a document.
type Span struct {
	Data   []byte
	Offset int64 // of Data in the document
}

// Reader walks a JSON value.
type Reader struct {
	b     []byte
	i     int
	base  int64
	root  string
	err   error
	stack []frame
}

type frame struct {
	array bool
	n     int    // elements begun
	key   []byte // as spelled in the document
}

// New returns a Reader for the value in s. root is its path in messages.
func New(s Span, root string) *Reader {
	return &Reader{b: s.Data, base: s.Offset, root: root}
}

// Reset makes the Reader walk the value in s, and keeps the memory that it has for nested values.
func (r *Reader) Reset(s Span, root string) {
	*r = Reader{b: s.Data, base: s.Offset, root: root, stack: r.stack[:0]}
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Fail records an error of the caller at the value that was begun last, unless there already is an error.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Path: r.Path(), Offset: r.base + int64(r.i), Reason: fmt.Sprintf(format, args...)}
	}
}

// Path returns the path of the current value.
func (r *Reader) Path() string {
	var s strings.Builder
	s.WriteString(r.root)
	for _, f := range r.stack {
		switch {
		case f.array:
			fmt.Fprintf(&s, "[%d]", max(f.n-1, 0))
		case f.key != nil:
			k := string(f.key)
			if s.Len() > 0 {
				s.WriteByte('.')
			}
			if len(k) > 64 {
				k = k[:64] + "..."
			}
			s.WriteString(strings.ToValidUTF8(k, "\uFFFD"))
		}
	}
	if s.Len() == 0 {
		return "document"
	}
	return s.String()
}

func (r *Reader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

// Peek returns the first byte of the next value, 0 at the end of the document or after an error.
func (r *Reader) Peek() byte {
	if r.err != nil {
		return 0
	}
	r.space()
	if r.i == len(r.b) {
		return 0
	}
	return r.b[r.i]
}

func (r *Reader) expect(c byte, what string) bool {
	switch r.Peek() {
	case c:
		r.i++
		return true
	case 0:
		if r.err == nil && r.i == len(r.b) {
			r.Fail("ends where %s should be", what)
			return false
		}
	}
	if r.err == nil {
		r.Fail("has %q where %s should be", r.b[r.i], what)
	}
	return false
}

func (r *Reader) push(f frame) {
	if len(r.stack) == MaxDepth {
		r.Fail("is nested deeper than %d", MaxDepth)
		return
	}
	r.stack = append(r.stack, f)
}

// Object begins an object; [Reader.Key] then steps through it.
func (r *Reader) Object() {
	if r.expect('{', "an object") {
		r.push(frame{})
	}
}

// Array begins an array; [Reader.Next] then steps through it.
func (r *Reader) Array() {
	if r.expect('[', "an array") {
		r.push(frame{array: true})
	}
}

// Key reads the next key of the innermost object into *key, reusing its memory, and reports whether there is one. After
// the last key it leaves the object.
func (r *Reader) Key(key *[]byte) bool {
	if r.err != nil {
		return false
	}
	f := &r.stack[len(r.stack)-1]
	if r.Peek() == '}' {
		r.i++
		r.stack = r.stack[:len(r.stack)-1]
		return false
	}
	if f.n > 0 && !r.expect(',', "a comma or the end of the object") {
		return false
	}
	r.space()
	start := r.i
	*key = r.String((*key)[:0])
	if r.err != nil {
		return false
	}
	f.key = r.b[start+1 : r.i-1]
	f.n++
	return r.expect(':', "a colon")
}

// Next reports whether the innermost array has another element. After the last element it leaves the array.
func (r *Reader) Next() bool {
	if r.err != nil {
		return false
	}
	f := &r.stack[len(r.stack)-1]
	if r.Peek() == ']' {
		r.i++
		r.stack = r.stack[:len(r.stack)-1]
		return false
	}
	if f.n > 0 && !r.expect(',', "a comma or the end of the array") {
		return false
	}
	f.n++
	return true
}

// String appends the next value, a string, to dst without its escapes.
func (r *Reader) String(dst []byte) []byte {
	if !r.expect('"', "a string") {
		return dst
	}
	for {
		start := r.i
		r.i = skipPlain(r.b, r.i)
		if r.i == len(r.b) {
			r.Fail("ends inside a string")
			return dst
		}
		c := r.b[r.i]
		if c < 0x20 {
			r.Fail("has a control character in a string")
			return dst
		}
		if !utf8.Valid(r.b[start:r.i]) {
			r.Fail("has a string that is not UTF-8")
			if c == '\\' {
				return dst
			}
		}
		dst = append(dst, r.b[start:r.i]...)
		if c == '"' {
			r.i++
			return dst
		}
		if dst = r.escape(dst); r.err != nil {
			return dst
		}
	}
}

// Plain reads the next value if it is a string without escapes. It returns the position of its text in the data of the
// Span that the Reader was made from. Otherwise it reads nothing and reports false.
func (r *Reader) Plain() (from, to int, ok bool) {
	if r.Peek() != '"' {
		return 0, 0, false
	}
	from = r.i + 1
	to = skipPlain(r.b, from)
	if to == len(r.b) || r.b[to] != '"' || !utf8.Valid(r.b[from:to]) {
		return 0, 0, false
	}
	r.i = to + 1
	return from, to, true
}

// SkipPlain returns the number of bytes before the first quote, backslash or control character in s, or len(s).
func SkipPlain(s string) int { return skipPlain(unsafe.Slice(unsafe.StringData(s), len(s)), 0) }

// skipPlain returns the index, from i on, of the first quote, backslash or control character, or len(b).
func skipPlain(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		// Borrows can mark a wrong byte only after a right one, and only the first mark is used.
		w := binary.LittleEndian.Uint64(b[i:])
		m := ((w - ones*0x20) | (w ^ ones*'"' - ones) | (w ^ ones*'\\' - ones)) &^ w & highs
		if m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// escape reads the escape at r.i.
func (r *Reader) escape(dst []byte) []byte {
	if r.i+1 >= len(r.b) {
		r.Fail("ends inside a string")
		return dst
	}
	c := r.b[r.i+1]
	r.i += 2
	switch c {
	case '"', '\\', '/':
		return append(dst, c)
	case 'b':
		return append(dst, '\b')
	case 'f':
		return append(dst, '\f')
	case 'n':
		return append(dst, '\n')
	case 'r':
		return append(dst, '\r')
	case 't':
		return append(dst, '\t')
	case 'u':
		u := r.hex4()
		if u >= 0xD800 && u < 0xDC00 && r.i+1 < len(r.b) && r.b[r.i] == '\\' && r.b[r.i+1] == 'u' {
			r.i += 2
			if low := r.hex4(); low >= 0xDC00 && low < 0xE000 {
				return utf8.AppendRune(dst, 0x10000+(u-0xD800)<<10+(low-0xDC00))
			}
			u = 0xD800
		}
		if u >= 0xD800 && u < 0xE000 {
			r.Fail("has half a surrogate pair in a string")
		}
		return utf8.AppendRune(dst, u)
	}
	r.Fail("has the unknown escape \\%c in a string", c)
	return dst
}

func (r *Reader) hex4() rune {
	if r.i+4 > len(r.b) {
		r.Fail("ends inside a string")
		return 0
	}
	n, err := strconv.ParseUint(string(r.b[r.i:r.i+4]), 16, 16)
	if err != nil {
		r.Fail("has a malformed \\u escape in a string")
	}
	r.i += 4
	return rune(n)
}

// Uint32 reads the next value, an integer from 0 to 4294967295.
func (r *Reader) Uint32() uint32 {
	c := r.Peek()
	if r.err != nil {
		return 0
	}
	if c < '0' || c > '9' {
		r.Fail("is not an unsigned integer")
		return 0
	}
	start := r.i
	var n uint64
	for r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		if n = n*10 + uint64(r.b[r.i]-'0'); n > 1<<32-1 {
			r.Fail("is over 4294967295")
			return 0
		}
		r.i++
	}
	if r.b[start] == '0' && r.i > start+1 || r.i < len(r.b) && (r.b[r.i] == '.' || r.b[r.i]|0x20 == 'e') {
		r.Fail("is not an unsigned integer")
	}
	return uint32(n)
}

// Skip reads the next value of any type.
func (r *Reader) Skip() { r.Raw() }

// Raw reads the next value and returns its span. In an object or array it checks only brackets and
// quotes; the caller that reads the content checks the rest.
func (r *Reader) Raw() Span {
	c := r.Peek()
	start := r.i
	switch {
	case r.err != nil:
	case c == '{' || c == '[':
		if !r.skipNested() {
			r.i = start
			r.explain()
		}
	case c == '"':
		r.skipString()
	default:
		r.scalar()
	}
	if r.err != nil {
		return Span{}
	}
	return Span{r.b[start:r.i:r.i], r.base + int64(start)}
}

// skipNested moves past the object or array at r.i. It reports false if the document ends inside.
func (r *Reader) skipNested() bool {
	b := r.b
	depth := 0
	for i := r.i; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				r.i = i + 1
				return true
			}
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}

// explain walks the broken value at r.i with all checks, to report where it breaks.
func (r *Reader) explain() {
	depth := len(r.stack)
	for r.err == nil {
		switch c := r.Peek(); {
		case c == '{':
			r.i++
			r.push(frame{})
		case c == '[':
			r.i++
			r.push(frame{array: true})
		case c == '"':
			r.skipString()
		default:
			r.scalar()
		}
		r.closeAll(depth)
		if len(r.stack) == depth {
			r.Fail("has brackets that do not match")
		}
	}
}

// closeAll leaves finished containers above depth and steps to the next value of the innermost one.
func (r *Reader) closeAll(depth int) {
	for r.err == nil && len(r.stack) > depth {
		f := &r.stack[len(r.stack)-1]
		end := byte('}')
		if f.array {
			end = ']'
		}
		if r.Peek() == end {
			r.i++
			r.stack = r.stack[:len(r.stack)-1]
			continue
		}
		if f.n > 0 && !r.expect(',', "a comma or the end of the value") {
			return
		}
		f.n++
		if !f.array {
			r.space()
			start := r.i
			if !r.expect('"', "a key") {
				return
			}
			r.i--
			r.skipString()
			if r.err == nil {
				f.key = r.b[start+1 : r.i-1]
			}
			r.expect(':', "a colon")
		}
		return
	}
}

func (r *Reader) skipString() {
	for r.i++; r.i < len(r.b); r.i++ {
		switch c := r.b[r.i]; {
		case c == '"':
			r.i++
			return
		case c == '\\':
			r.i++
		case c < 0x20:
			r.Fail("has a control character in a string")
			return
		}
	}
	r.i = len(r.b)
	r.Fail("ends inside a string")
}

func (r *Reader) scalar() {
	start := r.i
loop:
	for ; r.i < len(r.b); r.i++ {
		switch c := r.b[r.i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
		default:
			break loop
		}
	}
	switch w := string(r.b[start:r.i]); w {
	case "null", "true", "false":
	case "":
		if r.i == len(r.b) {
			r.Fail("ends where a value should be")
		} else {
			r.Fail("has %q where a value should be", r.b[r.i])
		}
	default:
		if !validNumber(w) {
			r.Fail("has %.40q where a value should be", w)
		}
	}
}

// validNumber reports whether s follows JSON's grammar of numbers.
func validNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	s = strings.TrimPrefix(s, "-")
	if strings.HasPrefix(s, "0") {
		s = s[1:]
	} else if !digits() {
		return false
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		if !digits() {
			return false
		}
	}
	if s != "" && s[0]|0x20 == 'e' {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

// End checks that nothing follows the value and returns the first error.
func (r *Reader) End() error {
	if r.Peek(); r.err == nil && r.i < len(r.b) {
		r.Fail("has %q after its end", r.b[r.i])
	}
	return r.err
}
