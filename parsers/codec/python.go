// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/keys"
	"github.com/weft-go/weft/parsers/internal/work"
)

// Python is the argument syntax of pythonic families (Llama 3.2 and 4, LFM2, OLMo 3): keyword arguments whose values
// are Python literals.
//
//	get(city="Oslo", days=3, opts={'metric': True}, on=(1, None))
//	    {"city":"Oslo","days":3,"opts":{"metric":true},"on":[1,null]}
//
// It begins after the opening parenthesis and is Done after the closing one. Values mean what they mean to Python:
//
//   - True, False and None; JSON's true, false and null are treated alike.
//   - Numbers keep their spelling, without underscores and leading zeros: 007, which Python refuses, is 7 to vLLM and
//     SGLang. Several signs are one. 0x10, 0o20 and 0b10000 become decimal, or a string if they do not fit 64 bits; 1.
//     and .5 become 1.0 and 0.5.
//   - Strings in single, double or triple quotes, with Python's escapes; adjacent literals are one string. r keeps
//     backslashes, u is ignored, and in an f-string two braces are one. An escape that Python does not know keeps its
//     backslash, and so does \N{…}. Surrogates in pairs are one character, as a model that thinks in JSON means them.
//   - Lists, tuples and sets become arrays; a parenthesis around one value without a comma is nothing.
//   - Keys of a dict become strings the way json.dumps makes them: {1: 2, None: 3} is {"1":2,"null":3}. A key that is
//     repeated inside a dict is written twice.
//
// A trailing comma is allowed, and names may hold dots, dashes and dollar signs, which some tools use. Line breaks
// inside one-line strings are data. All else is Bad: positional arguments, * and **, names, also in an f-string, calls,
// operators, comments, bytes, a keyword that comes twice, a key in parentheses unless it is the first of its dict.
//
// Strings leave as they come, except inside a parenthesis without a comma yet and in the first element of a dict or
// set, which are kept, at most 4096 bytes, because what encloses them is not known.
//
// Python is immutable and safe for concurrent use.
type Python struct{}

// NewDecoder implements [grammar.Codec].
func (Python) NewDecoder() grammar.Decoder { return &pythonDecoder{} }

type pythonState uint8

const (
	pythonName     pythonState = iota // before a keyword or the end
	pythonInName                      // in a keyword
	pythonEquals                      // after a keyword
	pythonValue                       // before a value or, if shut, the end of a container
	pythonWord                        // in a literal or a string's prefix
	pythonNumber                      // in a number
	pythonQuote                       // after a quote that opens a string, perhaps with two more
	pythonString                      // in a string
	pythonEscape                      // after a backslash
	pythonRaw                         // after a backslash of a raw string
	pythonReturn                      // after a backslash and a carriage return
	pythonDigits                      // in the digits of an escape
	pythonField                       // after a brace in an f-string
	pythonEndQuote                    // after a quote that ends a string in triple quotes if two more follow
	pythonJoin                        // after a string: another may follow
	pythonJoinWord                    // in the prefix of another
	pythonAfter                       // after a value
)

// pythonKind is the kind of a nesting level. Whether ( opens a tuple and { a dict is known only after the first
// element.
type pythonKind uint8

const (
	pythonCall pythonKind = iota
	pythonList
	pythonTuple
	pythonDict
	pythonSet
	pythonParen // a tuple or nothing
	pythonBrace // a dict or a set
)

// pythonLast is the kind of the last complete value.
type pythonLast uint8

const (
	pythonWasString pythonLast = iota
	pythonWasPlain             // a number, True, False or None
	pythonWasContainer
)

// pythonDecoder reads one byte after the other. While a parenthesis or brace is undecided, its output is collected in
// pend with zero bytes where brackets or quotes may be needed.
type pythonDecoder struct {
	state pythonState
	end   grammar.Status
	comma bool // a comma precedes the next value
	shut  bool // the container may end here
	key   bool // in a dict, a key is due
	last  pythonLast

	str pythonText

	depth int // of the innermost container; level 0 is the call
	open  int // undecided levels
	kind  [maxDepth]pythonKind
	mark  [maxDepth]uint16 // by undecided level: its position in pend
	pend  []byte
	out   []byte // dst, during Decode

	held []byte // a keyword, word or number
	seen keys.Set
}

// Begin implements [grammar.Decoder]. Values determine their own types: schema is not used.
func (d *pythonDecoder) Begin(grammar.Schema) {
	d.state, d.end = pythonName, grammar.More
	d.comma, d.shut, d.key, d.last = false, true, false, pythonWasString
	d.str = pythonText{}
	d.depth, d.open = 0, 0
	d.pend, d.held = d.pend[:0], d.held[:0]
	d.seen.Reset()
}

// Append implements [grammar.Decoder]. It consumes all of src except an incomplete character.
func (d *pythonDecoder) Append(dst, src []byte, final bool) (out []byte, n int, st grammar.Status) {
	src = src[:whole(src, final)]
	d.out = dst
	i := 0
	for i < len(src) && d.end == grammar.More {
		c := src[i]
		switch d.state {
		case pythonString:
			i = d.text(src, i)
		case pythonQuote, pythonEscape, pythonRaw, pythonReturn, pythonDigits, pythonField, pythonEndQuote:
			i = d.special(c, i)
		case pythonInName, pythonWord, pythonJoinWord, pythonNumber:
			i = d.word(c, i)
		default:
			if blank(c) {
				i++
				break
			}
			if d.structure(c) {
				i++
			}
		}
		if d.end == grammar.More && (len(d.pend) > maxHeld || len(d.held) > maxHeld) {
			d.end = grammar.Limit
		}
	}
	out, d.out = d.out, nil
	work.Add(i)
	return out, i, d.end
}

// structure reads c, which is not white space, between words and strings. It reports whether it took c.
func (d *pythonDecoder) structure(c byte) bool {
	switch d.state {
	case pythonName:
		switch {
		case c == ')':
			return d.shutCall()
		case nameStart(c):
			d.state, d.held = pythonInName, d.held[:0]
			return false
		}
	case pythonEquals:
		if c == '=' {
			return d.keyword()
		}
	case pythonValue:
		return d.value(c)
	case pythonJoin:
		if c == '"' || c == '\'' {
			d.quote(c, false, false)
			return true
		}
		if nameStart(c) {
			d.state, d.held = pythonJoinWord, d.held[:0]
			return false
		}
		d.put(`"`)
		d.state, d.last = pythonAfter, pythonWasString
		return false
	case pythonAfter:
		return d.after(c)
	}
	d.end = grammar.Bad
	return false
}

// keyword writes the name in held.
func (d *pythonDecoder) keyword() bool {
	if d.end = addKey(&d.seen, d.held); d.end != grammar.More {
		return false
	}
	c := ","
	if d.seen.Len() == 1 {
		c = "{"
	}
	d.put(c)
	d.out = append(jsontext.AppendQuoted(d.out, d.held), ':')
	d.state, d.shut = pythonValue, false
	return true
}

func (d *pythonDecoder) shutCall() bool {
	if d.seen.Len() == 0 {
		d.put("{")
	}
	d.put("}")
	d.end = grammar.Done
	return true
}

// value reads the first byte of a value, or of what ends a container.
func (d *pythonDecoder) value(c byte) bool {
	dictKey := d.kind[d.depth] == pythonDict && d.key
	switch {
	case c == '"' || c == '\'':
		d.before()
		d.put(`"`)
		d.quote(c, false, false)
		return true
	case nameStart(c):
		d.state, d.held = pythonWord, d.held[:0]
		return false
	case isDigit(c) || c == '-' || c == '+' || c == '.':
		d.state, d.held = pythonNumber, d.held[:0]
		return false
	case c == '[' && !dictKey:
		return d.push(pythonList)
	case c == '(' && !dictKey:
		return d.push(pythonParen)
	case c == '{' && !dictKey:
		return d.push(pythonBrace)
	case d.shut:
		return d.close(c)
	}
	d.end = grammar.Bad
	return false
}

// atom writes a value of one word.
func (d *pythonDecoder) atom(text []byte) {
	d.before()
	to := d.to()
	if d.kind[d.depth] == pythonDict && d.key {
		*to = jsontext.AppendQuoted(*to, text)
	} else {
		*to = append(*to, text...)
	}
	d.state, d.last = pythonAfter, pythonWasPlain
}
