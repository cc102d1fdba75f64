// SPDX-License-Identifier: Apache-2.0

package jsonval

import (
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
)

// Builder builds a value from a sequence of its parts. The zero Builder is ready to use. It allocates the parts of
// values in blocks, so one part keeps others in memory.
type Builder struct {
	stack  []Value     // finished values of the open containers
	names  []string    // fields of the open objects
	open   []container // innermost last
	failed bool

	written bool // numbers keep their spelling

	values []Value // free memory
	chunk  int     // length of the next block of it
	keys   []string
	words  map[string]string // names that were read from JSON
	shapes [16][]string      // names of recent objects, which others share
	shape  int
	text   []byte // unescaped
	reader jsonr.Reader
}

// container is an object or an array that has not ended.
type container struct {
	object       bool
	value, names int            // lengths of the stack and of the names at its beginning
	again        int            // index in the stack of the value that the next one replaces; -1 if it is a new one
	at           map[string]int // index in the stack of each name, once there are many
}

const (
	manyNames = 16  // in an object, from which a map is used
	maxDepth  = 128 // of JSON text
	maxDigits = 300 // of an integer
)

// Add adds a part: '{' '[' '}' ']' begin and end a container, ':' is the name of a field, '"' a string, '!' a
// string of JSON that the model wrote, and '=' a value as JSON text. The value may share memory with text.
func (b *Builder) Add(kind byte, text string) {
	switch kind {
	case '{', '[':
		b.begin(kind == '{')
	case '}', ']':
		b.end()
	case ':':
		b.failed = b.failed || !utf8.ValidString(text)
		b.name(text)
	case '"', '!':
		b.failed = b.failed || !utf8.ValidString(text)
		b.push(Value{Kind: String, Str: text, Bool: kind == '!'})
	case '=':
		b.reader.Reset(jsonr.Span{Data: view(text)}, "")
		b.read(&b.reader, text, maxDepth)
		b.failed = b.reader.End() != nil || b.failed
	}
}

// ParseString is [Parse] for the JSON in a string, with which the value may share memory. If a model wrote it, numbers keep
// their spelling, such as 1e3. The Builder must not have parts; it has none afterward.
func (b *Builder) ParseString(v Value, name string) (Value, error) {
	b.written = v.Bool
	return b.parse(view(v.Str), v.Str, name)
}

// parse reads the value in data. If text is not empty, it is data as a string, with which the value may share memory.
func (b *Builder) parse(data []byte, text, name string) (Value, error) {
	b.reader.Reset(jsonr.Span{Data: data}, name)
	b.read(&b.reader, text, 0)
	v := b.stack[0]
	b.stack, b.failed = b.stack[:0], false
	if err := b.reader.End(); err != nil {
		return Value{}, err
	}
	return v, nil
}

// view returns the bytes of s without a copy. They must not be modified.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Value returns the value. It reports false if a part is not what [Parse] reads the same way from JSON of any depth and
// position: text that is not UTF-8, invalid or very deep JSON, or a very long integer.
func (b *Builder) Value() (Value, bool) {
	if b.failed || len(b.stack) != 1 {
		return Value{}, false
	}
	return b.stack[0], true
}

func (b *Builder) begin(object bool) {
	b.open = append(b.open, container{object: object, value: len(b.stack), names: len(b.names), again: -1})
}

func (b *Builder) name(s string) {
	c := &b.open[len(b.open)-1]
	n := len(b.names) - c.names
	if n == manyNames {
		c.at = make(map[string]int, 2*n)
		for i, k := range b.names[c.names:] {
			c.at[k] = c.value + i
		}
	}
	if c.at != nil {
		if i, ok := c.at[s]; ok {
			c.again = i
			return
		}
		c.at[s] = c.value + n
	} else if i := slices.Index(b.names[c.names:], s); i >= 0 {
		c.again = c.value + i
		return
	}
	b.names = append(b.names, s)
}

func (b *Builder) push(v Value) {
	if n := len(b.open); n > 0 && b.open[n-1].again >= 0 { // as in Python's dict, a second value replaces the first
		b.stack[b.open[n-1].again] = v
		b.open[n-1].again = -1
		return
	}
	b.stack = append(b.stack, v)
}

func (b *Builder) end() {
	c := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	v := Value{Kind: Array}
	if n := len(b.stack) - c.value; n > 0 {
		if len(b.values) < n {
			b.chunk = min(max(2*b.chunk, 16), 2048)
			b.values = make([]Value, max(n, b.chunk))
		}
		v.List = b.values[:n:n]
		b.values = b.values[n:]
		copy(v.List, b.stack[c.value:])
	}
	if c.object {
		v.Kind = Object
		if len(b.names) > c.names {
			v.Keys = b.share(b.names[c.names:])
		}
	}
	b.stack, b.names = b.stack[:c.value], b.names[:c.names]
	b.push(v)
}

// share returns a slice with the names that does not change.
func (b *Builder) share(names []string) []string {
	for _, s := range b.shapes {
		if slices.Equal(s, names) {
			return s
		}
	}
	n := len(names)
	if len(b.keys) < n {
		b.keys = make([]string, max(n, 32))
	}
	s := b.keys[:n:n]
	b.keys = b.keys[n:]
	copy(s, names)
	b.shapes[b.shape%len(b.shapes)] = s
	b.shape++
	return s
}

// read reads a value, which may share memory with text, the data of r. If text is empty, strings are copied.
func (b *Builder) read(r *jsonr.Reader, text string, depth int) {
	switch r.Peek() {
	case '"':
		b.push(Value{Kind: String, Str: b.string(r, text)})
	case '[':
		b.begin(false)
		for r.Array(); r.Next(); {
			b.read(r, text, depth-1)
		}
		b.end()
	case '{':
		b.begin(true)
		for r.Object(); r.Key(&b.text); {
			b.name(b.word(b.text))
			b.read(r, text, depth-1)
		}
		b.end()
	default:
		data := r.Raw().Data
		switch s := unsafe.String(unsafe.SliceData(data), len(data)); s {
		case "null":
			b.push(Value{Kind: Null})
		case "true", "false":
			b.push(Value{Kind: Bool, Bool: s == "true"})
		default:
			b.failed = b.failed || len(s) > maxDigits
			if text == "" {
				s = strings.Clone(s)
			}
			b.push(number(s, b.written))
		}
	}
	b.failed = b.failed || depth < 0
}

// word returns a name, and the same string for the same name again.
func (b *Builder) word(name []byte) string {
	if w, ok := b.words[string(name)]; ok {
		return w
	}
	w := string(name)
	if b.words == nil {
		b.words = make(map[string]string)
	}
	b.words[w] = w
	return w
}

func (b *Builder) string(r *jsonr.Reader, text string) string {
	if text != "" {
		if from, to, ok := r.Plain(); ok {
			return text[from:to]
		}
	}
	b.text = r.String(b.text[:0])
	return string(b.text)
}
