// SPDX-License-Identifier: Apache-2.0

// Package jsonval implements JSON values as in Python's json module: objects keep the order of their keys, numbers are
// integers of any size or doubles, and output equals that of json.dumps with ensure_ascii=False. Chat templates depend
// on all of these.
package jsonval

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
)

// Kind is the type of a [Value].
type Kind uint8

// The kinds. Undefined is the kind of the zero Value: a missing key.
const (
	Undefined Kind = iota
	Null
	Bool
	Int
	Float
	String
	Array
	Object
)

// Value is a JSON value. Copies share memory, which must not be modified.
type Value struct {
	Kind Kind
	Bool bool     // Bool: the value; String: the text is JSON that a model wrote
	Str  string   // String: the text; Int, Float: the number as Python prints it, or as it was written
	List []Value  // Array: elements; Object: values
	Keys []string // Object: keys, len(Keys) == len(List)
}

// Parse reads data, which must be one value. name is the root of paths in errors, which are *jsonr.Error.
func Parse(data []byte, name string) (Value, error) {
	var b Builder
	return b.parse(data, "", name)
}

func number(s string, written bool) Value {
	if written {
		if strings.ContainsAny(s, ".eE") {
			return Value{Kind: Float, Str: s}
		}
		return Value{Kind: Int, Str: s}
	}
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // out of range gives an infinity, as in Python
		return Value{Kind: Float, Str: float(f)}
	}
	if s == "-0" {
		s = "0"
	}
	return Value{Kind: Int, Str: s}
}

// float is Repr, with infinities as Python's json module spells them.
func float(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return Repr(f)
}

// Repr spells a finite f as Python's repr does.
func Repr(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Get returns the value of a key, or Undefined if v is not an object or lacks the key.
func (v Value) Get(key string) Value {
	if v.Kind == Object {
		if i := slices.Index(v.Keys, key); i >= 0 {
			return v.List[i]
		}
	}
	return Value{}
}

// True reports whether v is true in Python.
func (v Value) True() bool {
	switch v.Kind {
	case Bool:
		return v.Bool
	case Int, Float:
		digits, _, _ := strings.Cut(strings.ToLower(v.Str), "e")
		return strings.Trim(digits, "-.0") != ""
	case String:
		return v.Str != ""
	case Array, Object:
		return len(v.List) > 0
	}
	return false
}

// AppendJSON appends v as json.dumps(v, ensure_ascii=False) prints it.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(dst, v.Bool)
	case Int, Float:
		return append(dst, v.Str...)
	case String:
		return appendQuoted(dst, v.Str)
	case Array:
		dst = append(dst, '[')
		for i, x := range v.List {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = x.AppendJSON(dst)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i, x := range v.List {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendQuoted(dst, v.Keys[i])
			dst = append(dst, ": "...)
			dst = x.AppendJSON(dst)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

func appendQuoted(dst []byte, s string) []byte {
	return append(AppendEscaped(append(dst, '"'), s), '"')
}

// AppendEscaped appends s as json.dumps(s, ensure_ascii=False) prints it, without the quotes around it.
func AppendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for {
		n := jsonr.SkipPlain(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return dst
		}
		c := s[n]
		s = s[n+1:]
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
}

// Text returns v as Python's str prints it, for scalars; containers are printed as JSON.
func (v Value) Text() string {
	switch v.Kind {
	case Undefined:
		return ""
	case Null:
		return "None"
	case Bool:
		if v.Bool {
			return "True"
		}
		return "False"
	case Int, String:
		return v.Str
	case Float:
		return strings.Replace(v.Str, "Infinity", "inf", 1)
	}
	return string(v.AppendJSON(nil))
}
