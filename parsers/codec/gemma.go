// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/jsontext"
	"github.com/weft-go/weft/parsers/internal/keys"
	"github.com/weft-go/weft/parsers/internal/work"
)

// Gemma is the argument syntax of Gemma 4 and FunctionGemma: an object with bare keys, whose strings are raw and
// enclosed in two equal quotes.
//
//	{city:<|"|>Oslo<|"|>,days:3,opts:{metric:true},on:[1,<|"|>b<|"|>]}
//	{"city":"Oslo","days":3,"opts":{"metric":true},"on":[1,"b"]}
//
// It begins at the opening brace, optionally after white space, and is Done after the closing one.
//
// Nothing is escaped inside a string, so a quote ends it only if a comma, a closing brace or bracket, the end of the call or
// of the stream follows, at most 64 bytes of white space away; any other is data. So are closing markers and braces. At the end of
// the call the arguments are Bad, since a brace is missing.
//
// Besides what the chat templates write (macro format_argument), what models write instead is read:
//
//   - keys in quotes, or in double quotes with JSON's escapes; strings in double quotes likewise. After a backslash that
//     begins no escape of JSON's, all of them are data, except before a quote, a slash or a backslash, as in "C:\users\bob";
//     such a backslash after an escape is Bad;
//   - true, false and null in any case, and none and nil for null;
//   - white space between any two parts, and a trailing comma;
//   - other text without quotes and without '<'. It ends at a comma or closing brace or bracket. An argument is typed by
//     the tool's schema, other values are strings. Nothing at all after a key is such text.
//
// A '<' in text without quotes is Bad, since it looks like a marker: a call whose brace is missing would take the next
// call for its text. A decoder leaves at most what may be an opening quote untaken.
//
// Numbers are kept as they are spelled. Gemma is immutable and safe for concurrent use.
type Gemma struct {
	// Quote encloses a string: <|"|> for Gemma 4, which is also what "" means, <escape> for FunctionGemma. It must not
	// contain white space.
	Quote string
}

// NewDecoder implements [grammar.Codec].
func (g Gemma) NewDecoder() grammar.Decoder {
	quote := g.Quote
	if quote == "" {
		quote = `<|"|>`
	}
	d := &gemmaDecoder{quote: []byte(quote), special: specials(quote[0]), border: make([]int, len(quote)+1)}
	for m, b := 2, 0; m <= len(quote); m++ {
		for b > 0 && quote[m-1] != quote[b] {
			b = d.border[b]
		}
		if quote[m-1] == quote[b] {
			b++
		}
		d.border[m] = b
	}
	return d
}

type gemmaState uint8

const (
	gemmaStart   gemmaState = iota // before the first brace
	gemmaMember                    // before a key, or after the last entry
	gemmaBareKey                   // in a key without quotes
	gemmaColon                     // after a key in quotes
	gemmaValue                     // before a value, or after the last element
	gemmaOpen                      // at what may be an opening quote
	gemmaString                    // between quotes
	gemmaClose                     // after a possible closing quote
	gemmaJSON                      // between double quotes
	gemmaRaw                       // in a value without quotes
	gemmaAfter                     // after a value
)

// maxGap limits the white space between a closing quote and the byte that proves it to be one.
const maxGap = 64

// gemmaDecoder reads one byte after the other. len(held) <= maxHeld between calls, depth <= maxDepth.
type gemmaDecoder struct {
	quote   []byte
	mark    []byte     // ends a call; empty if it is not known
	special *[256]bool // bytes of a string that are not copied
	border  []int      // by bytes matched: the longest shorter match that ends there, as in Knuth, Morris and Pratt
	schema  *args.Schema
	seen    keys.Set

	state   gemmaState
	end     grammar.Status
	more    bool // the container already has an element
	key     bool // a key is being read
	match   int  // bytes of a quote seen; the bytes of an opening one are not taken
	gap     int  // bytes of white space after it
	gapText [maxGap]byte
	json    jsonString
	escaped bool // the key is written as a JSON string
	depth   int
	objects [maxDepth / 64]uint64 // by level: an object, not an array
	held    []byte                // a key, or a value without quotes
	name    []byte                // the argument that a value without quotes belongs to
}

// EndAt sets the marker that ends a call. The parser calls it for decoders that have it, once.
func (d *gemmaDecoder) EndAt(marker string) { d.mark = []byte(marker) }

// Begin implements [grammar.Decoder].
func (d *gemmaDecoder) Begin(schema grammar.Schema) {
	d.schema, _ = schema.(*args.Schema) // nil knows nothing
	d.seen.Reset()
	d.state, d.end = gemmaStart, grammar.More
	d.more, d.key, d.match, d.gap, d.depth = false, false, 0, 0, 0
	d.json, d.escaped = jsonString{}, false
	d.held, d.name = d.held[:0], d.name[:0]
}

// Append implements [grammar.Decoder]. It consumes all of src except an incomplete character or opening quote.
func (d *gemmaDecoder) Append(dst, src []byte, final bool) (out []byte, n int, st grammar.Status) {
	src = src[:whole(src, final)]
	i := 0
	for i < len(src) && d.end == grammar.More {
		c := src[i]
		switch d.state {
		case gemmaString:
			dst, i = d.text(dst, src, i)
		case gemmaClose:
			if rest := src[i:]; !d.key && len(d.mark) > 0 && c == d.mark[0] {
				if bytes.HasPrefix(rest, d.mark) {
					dst = append(dst, '"')
					d.end = grammar.Bad
					break
				}
				if !final && bytes.HasPrefix(d.mark, rest) {
					work.Add(i)
					return dst, i, d.end
				}
			}
			dst, i = d.confirm(dst, c, i)
		case gemmaOpen:
			n, again := d.open(src[i:])
			i += n
			if !again {
				if final {
					i = len(src)
				}
				work.Add(i)
				return dst, i, d.end
			}
			if d.state == gemmaString && !d.key {
				dst = append(dst, '"')
			}
		case gemmaJSON:
			dst, i = d.quoted(dst, src, i)
		case gemmaBareKey:
			switch c {
			case ':':
				if dst = d.member(dst, bytes.TrimRight(d.held, " \n\t\r")); d.end == grammar.More {
					i++
				}
			case ',', '{', '}', '[', ']':
				d.end = grammar.Bad
			default:
				d.held = append(d.held, c)
				i++
			}
		case gemmaRaw:
			if c == ',' || c == '}' || c == ']' {
				dst = d.raw(dst)
				break
			}
			if c == '<' {
				d.end = grammar.Bad
				break
			}
			d.held = append(d.held, c)
			i++
		default:
			if blank(c) {
				i++
				break
			}
			dst, i = d.structure(dst, c, i)
		}
		if len(d.held) > maxHeld && d.end == grammar.More {
			d.end = grammar.Limit
		}
	}
	if final && d.state == gemmaClose && !d.key && d.end == grammar.More {
		d.state = gemmaAfter
		dst = append(dst, '"')
	}
	work.Add(i)
	return dst, i, d.end
}

// structure reads c, which is not white space, between values.
func (d *gemmaDecoder) structure(dst []byte, c byte, i int) ([]byte, int) {
	switch d.state {
	case gemmaStart:
		if c == '{' {
			return d.push(dst, true), i + 1
		}
	case gemmaMember:
		if c == '}' {
			return d.pop(dst, c), i + 1
		}
		d.held, d.key, d.escaped = d.held[:0], true, false
		return dst, d.begin(c, i, gemmaBareKey)
	case gemmaColon:
		if c == ':' {
			key := d.held
			if d.escaped {
				d.name = jsontext.AppendUnquoted(d.name[:0], d.held)
				key = d.name
			}
			if dst = d.member(dst, key); d.end == grammar.More {
				i++
			}
			return dst, i
		}
	case gemmaValue:
		object := d.inObject()
		if !object && (c == ']' || c == ',') {
			if c == ']' {
				return d.pop(dst, c), i + 1
			}
			break
		}
		if d.more && !object {
			dst = append(dst, ',')
		}
		d.more = true
		if c == '{' || c == '[' {
			return d.push(dst, c == '{'), i + 1
		}
		if c == '"' && d.quote[0] != '"' {
			dst = append(dst, '"')
		}
		d.held, d.key = d.held[:0], false
		return dst, d.begin(c, i, gemmaRaw)
	case gemmaAfter:
		switch {
		case c == ',' && d.inObject():
			d.state = gemmaMember
			return dst, i + 1
		case c == ',':
			d.state = gemmaValue
			return dst, i + 1
		case c == '}' && d.inObject(), c == ']' && !d.inObject():
			return d.pop(dst, c), i + 1
		}
	}
	d.end = grammar.Bad
	return dst, i
}

// begin selects the state for the key or value that begins with c; bare is the state if it has no quotes.
func (d *gemmaDecoder) begin(c byte, i int, bare gemmaState) int {
	switch c {
	case d.quote[0]:
		d.state, d.match = gemmaOpen, 0
	case '"':
		d.state, d.json = gemmaJSON, jsonString{}
		if d.key {
			d.escaped = true
			d.held = append(d.held, '"')
		}
		return i + 1
	default:
		d.state = bare
	}
	return i
}

// member writes a key; its value comes next.
func (d *gemmaDecoder) member(dst, key []byte) []byte {
	if d.depth == 1 {
		if d.end = addKey(&d.seen, key); d.end != grammar.More {
			return dst
		}
		if !d.escaped {
			d.name = append(d.name[:0], key...)
		}
	}
	if d.more {
		dst = append(dst, ',')
	}
	d.more, d.key, d.state = true, false, gemmaValue
	return append(jsontext.AppendQuoted(dst, key), ':')
}

// raw writes the value without quotes that held is.
func (d *gemmaDecoder) raw(dst []byte) []byte {
	d.state = gemmaAfter
	text := bytes.TrimRight(d.held, " \n\t\r")
	d.held = d.held[:0]
	var low [5]byte
	if len(text) <= len(low) {
		for i, c := range text {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			low[i] = c
		}
		switch string(low[:len(text)]) {
		case "true":
			return append(dst, "true"...)
		case "false":
			return append(dst, "false"...)
		case "null", "none", "nil":
			return append(dst, "null"...)
		}
	}
	switch {
	case isNumber(text):
		return append(dst, text...)
	case d.depth == 1:
		return d.schema.Param(d.name).AppendValue(dst, text)
	}
	return jsontext.AppendQuoted(dst, text)
}

func (d *gemmaDecoder) push(dst []byte, object bool) []byte {
	if d.depth == maxDepth {
		d.end = grammar.Limit
		return dst
	}
	w, bit := d.depth/64, uint64(1)<<(d.depth%64)
	d.depth++
	d.more = false
	if object {
		d.objects[w] |= bit
		d.state = gemmaMember
		return append(dst, '{')
	}
	d.objects[w] &^= bit
	d.state = gemmaValue
	return append(dst, '[')
}

func (d *gemmaDecoder) pop(dst []byte, c byte) []byte {
	d.depth--
	d.more, d.state = true, gemmaAfter
	if d.depth == 0 {
		d.end = grammar.Done
	}
	return append(dst, c)
}

func (d *gemmaDecoder) inObject() bool { return d.objects[(d.depth-1)/64]>>((d.depth-1)%64)&1 == 1 }
