// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
	"github.com/weft-go/weft/parsers/internal/keys"
)

// Nested is the argument syntax of MiniMax M3: each parameter, property and element is enclosed in a tag of its own
// name, and each tag begins with a prefix that text does not have. With ~ for the prefix ]<]minimax[>[ :
//
//	~<city>Oslo~</city>                                      {"city":"Oslo",
//	~<o>~<k>v~</k>~</o>                                       "o":{"k":"v"},
//	~<a>~<item>1~</item>~<item>2~</item>~</a>                 "a":[1,2]}
//	~</invoke>
//
// The arguments begin after the call's opening tag and are Done before its closing tag. They also end before any other
// closing tag at this level, and before an opening tag with an attribute, such as the tag of the next call: the closing
// tag of the call was left out, which the parser must judge.
//
// # Which value
//
// The tool's schema types what is inside a tag, at every level:
//
//   - What is declared to be a string is text up to its closing tag; tags inside it are data.
//   - Where the schema permits an object or array, or does not know the value, an opening tag at the beginning makes
//     one: an array if the schema permits only that, or if the tag is item and nothing specifies that this is a property;
//     else an object. Elements of an array may have any name. If its elements are objects that have a property of the
//     first tag's name, the tags are the properties of the only element.
//   - Anything else is text, which becomes a value by [args.Node.AppendValue]; so JSON is an object or array where one
//     is permitted. Without any text an array, object or null is empty, if no string is permitted: the template writes
//     them so.
//   - A property of an object may be repeated immediately if the schema permits an array or does not know the property:
//     its values are the elements, ~<o>~<t>a~</t>~<t>b~</t>~</o> is {"o":{"t":["a","b"]}}. An array or object in tags
//     of the first cannot be taken back, so it must not be given again unless the schema wants an array of objects. A
//     parameter may be repeated if the schema wants an array. All other repetition is Bad.
//
// # Where it ends
//
// A text ends at the first closing tag of its name that is followed, after at most 64 bytes of white space, by another
// tag, or by the end of the stream; any other is data. If the call's closing tag occurs inside a text and another tag
// follows, the text was never closed: that is Bad. White space between tags is dropped; other text there is Bad, so
// that no argument is lost without a word. Names have at most 128 bytes, without control characters and any of <>"= in
// them.
//
// A decoder leaves at most 2·len(Prefix)+200 bytes untaken. Tags may be nested 64 deep. Besides strings, a value is
// kept until its end, at most 4 MiB or what Hold allows, and one that may be the first of several until the next tag. Exceeding
// these limits, or 1024 properties in one object, is Limit.
//
// Nested is immutable and safe for concurrent use.
//
// # Sources
//
// The template is chat_template.jinja of MiniMaxAI/MiniMax-M3 (macro to_xml): properties by name, elements as item,
// true and false, nothing at all for null, and nothing between the tags of an empty container. See also: SGLang
// python/sglang/srt/function_call/minimax_m3.py (00ca197b), vLLM rust/src/tool-parser/src/minimax_m3.rs (0b205215),
// Dynamo lib/parsers/src/tool_calling/xml/minimax_m3_parser.rs (9c7bf0ce), smg crates/tool_parser/src/parsers/
// minimax_m3.rs (30c04073; smg-project/smg#2370 for empty containers). They agree on names, on item, and on tags that
// are repeated inside a value. Different on purpose: they gather a value before they look at its tags, and so can merge
// what is repeated anywhere; text next to tags is kept as $text by vLLM, Dynamo and smg, and here it is data if it
// comes first, else Bad; the first closing tag ends a text there, whatever follows; Dynamo and smg decode entities,
// which the template does not write.
type Nested struct {
	// Prefix begins every tag. It must not begin with white space.
	Prefix string
	// End is the closing tag of the call, without Prefix; "" means </invoke>.
	End string
}

// NewDecoder implements [grammar.Codec].
func (c Nested) NewDecoder() grammar.Decoder {
	if c.End == "" {
		c.End = "</invoke>"
	}
	open := []byte(c.Prefix + "<")
	return &nestedDecoder{
		open: open, last: []byte(strings.TrimPrefix(c.End, "<")), limit: nestedHeld, end: grammar.Bad,
		special: specials(open[0]),
	}
}

const (
	nestedDepth = 64  // tags inside each other
	nestedName  = 128 // bytes of a name

	nestedHeld = 4 << 20 // bytes of a value that is not a string, unless Hold sets less
)

// Hold implements [grammar.Holding].
func (d *nestedDecoder) Hold(max int) { d.limit = min(d.limit, max) }

type nestedState uint8

const (
	nestedTag   nestedState = iota // between tags
	nestedFirst                    // at the beginning of what may be a container
	nestedText                     // in a text
)

type nestedKind uint8

const (
	nestedObject nestedKind = iota
	nestedArray
	nestedUnknown // the first tag decides
)

// nestedList is the state of the last property of an object that may be an array of repeated tags.
type nestedList uint8

const (
	nestedNone nestedList = iota
	nestedMay             // its text is in held: it is an array if it comes again
	nestedIs              // its elements were written, but not the end of the array
)

// nestedFrame is an open object or array. frames[0] is the arguments object.
type nestedFrame struct {
	kind nestedKind
	list nestedList
	only bool // it is the element of an array that has no tag; the array was opened with it
	node args.Node
	name int      // where the name of its tag begins in names
	n    int      // elements of the array, or of the last property if that is a list
	keys keys.Set // of an object
}

// nestedDecoder is a pushdown automaton over tags. Between calls, look bytes of what was not taken were examined.
type nestedDecoder struct {
	open    []byte // what each tag begins with
	last    []byte // what follows in the closing tag of the call
	limit   int
	special *[256]bool // bytes of a string that are not copied

	state  nestedState
	end    grammar.Status
	frames []nestedFrame // 1 ≤ len ≤ 1+nestedDepth
	names  []byte        // of the open tags, concatenated
	out    []byte        // dst, during Decode

	node   args.Node // of the text
	name   int       // where the name of its tag begins in names
	stream bool      // it is a string and leaves as it comes
	held   []byte    // it, if not

	look   int
	step   uint8 // of nestedText; see there
	alive  uint8
	gap    int // bytes of white space among the look
	closed int // bytes of the closing tag among the look
}

// Begin implements [grammar.Decoder].
func (d *nestedDecoder) Begin(schema grammar.Schema) {
	if cap(d.held) > 64<<10 {
		d.held = nil
	}
	d.frames, d.names, d.held = d.frames[:0], d.names[:0], d.held[:0]
	f := d.push()
	s, _ := schema.(*args.Schema) // nil knows nothing
	f.kind, f.node = nestedObject, s.Root()
	d.state, d.end = nestedTag, grammar.More
	d.look, d.step, d.gap = 0, 0, 0
}

// Append implements [grammar.Decoder].
func (d *nestedDecoder) Append(dst, src []byte, final bool) (out []byte, n int, st grammar.Status) {
	src = src[:whole(src, final)]
	d.out = dst
	for again := true; again && d.end == grammar.More; {
		var took int
		switch d.state {
		case nestedTag:
			took, again = d.tag(src[n:])
		case nestedFirst:
			again = d.first(src[n:], final)
		case nestedText:
			took, again = d.text(src[n:], final)
		}
		n += took
	}
	if final && d.end == grammar.More {
		n = len(src)
	}
	out, d.out = d.out, nil
	return out, n, d.end
}

// push opens a frame.
func (d *nestedDecoder) push() *nestedFrame {
	n := len(d.frames)
	if n < cap(d.frames) {
		d.frames = d.frames[:n+1]
	} else {
		d.frames = append(d.frames, nestedFrame{})
	}
	f := &d.frames[n]
	f.keys.Reset()
	*f = nestedFrame{keys: f.keys}
	return f
}

func (d *nestedDecoder) top() *nestedFrame { return &d.frames[len(d.frames)-1] }
