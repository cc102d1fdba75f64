// SPDX-License-Identifier: Apache-2.0

package args

import (
	"bytes"
	"strings"

	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/text"
)

// AppendValue appends raw as a JSON value of one of the types t. The first rule that fits decides:
//
//	t is String alone      a string, byte for byte
//	Null, or not String    null, None: where null is not permitted, nor is text; a validator may judge it
//	Boolean                true, false, True, False; unless t has String, in any case
//	Number                 a JSON number, as it is spelled, however large; unless t has String, 007 is 7
//	Integer alone          the same if it has no exponent and no fraction but zeros, which are dropped: 42.0 is 42
//	Object, Array          JSON text, byte for byte
//	Object, Array          the Python literal of a dict, list, tuple or set, converted to JSON, unless t has String
//	not String             a JSON string in quotes, byte for byte
//	anything else          a string, byte for byte: a validator may judge it
//
// White space around raw does not matter, except in strings. JSON nested more than 512 deep, or Python more than 64
// deep, is a string. A conversion from Python is not marked in any way. dst and raw must not overlap.
//
// Most of the rules are from Dynamo's parsers/v2 (arguments/schema); its v1 has the Python literals
// (tool_calling/xml/parser.rs). Accepting null for a value of another type follows vLLM (rust/src/tool-parser/src/
// parameters.rs); Qwen3.5's chat template prints an argument that is null as None.
func AppendValue(dst, raw []byte, t Types) []byte {
	s := trim(raw)
	if t == String || len(s) == 0 {
		return jsontext.AppendQuoted(dst, raw)
	}
	switch c := s[0]; {
	case c == 'n' || c == 'N':
		if (t&Null != 0 || t&String == 0) && (string(s) == "null" || string(s) == "None") {
			return append(dst, "null"...)
		}
	case c == 't' || c == 'T':
		if t&Boolean != 0 && spells(s, "true", "True", t) {
			return append(dst, "true"...)
		}
	case c == 'f' || c == 'F':
		if t&Boolean != 0 && spells(s, "false", "False", t) {
			return append(dst, "false"...)
		}
	case c == '-' || c >= '0' && c <= '9':
		if t&(Number|Integer) != 0 && t&String == 0 {
			s = unpadded(s)
		}
		if t&(Number|Integer) != 0 && jsontext.Valid(s) {
			if t&Number == 0 {
				if i := bytes.IndexByte(s, '.'); i > 0 && len(bytes.Trim(s[i+1:], "0")) == 0 {
					s = s[:i]
				}
				if bytes.ContainsAny(s, ".eE") {
					break
				}
			}
			return append(dst, s...)
		}
	case c == '{' || c == '[' || c == '(':
		if t&(Object|Array) == 0 {
			break
		}
		if (c == '{' && t&Object != 0 || c == '[' && t&Array != 0) && jsontext.Valid(s) {
			return append(dst, s...)
		}
		if t&String == 0 {
			if out, ok := appendPython(dst, s, t); ok {
				return out
			}
		}
	case c == '"':
		if t&String == 0 && jsontext.Valid(s) {
			return append(dst, s...)
		}
	}
	return jsontext.AppendQuoted(dst, raw)
}

// spells reports whether s is the word of a boolean, in JSON or Python. In any case, where no string is permitted.
func spells(s []byte, json, python string, t Types) bool {
	return string(s) == json || string(s) == python || t&String == 0 && strings.EqualFold(string(s), json)
}

// unpadded returns a number that is nothing but digits without the zeros before it, which JSON does not permit.
func unpadded(s []byte) []byte {
	digits := bytes.TrimLeft(s, "0")
	if len(digits) == len(s) || len(s) == 1 {
		return s
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return s
		}
	}
	if len(digits) == 0 {
		digits = s[len(s)-1:]
	}
	return digits
}

// trim removes what JSON is treated as white space.
func trim(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func blank(c byte) bool { return text.Blank(c) }
