// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/weft-go/weft/protocols/replay"
)

// Grammar describes how one family of models writes reasoning, text and tool calls. It must not be modified once it is
// in use: the parser, the list of special tokens and the leak detector read the same value.
//
// Exactly one of Tagged, Channels and Elements is set; it selects the layout of the output.
type Grammar struct {
	// Name is the canonical name, in snake case.
	Name string
	// Aliases are other names of the same grammar. Lookup folds case, '-', '_' and '.'.
	Aliases []string

	// Tagged is the layout of families that mark reasoning and calls with tags inside plain text.
	Tagged *Tagged
	// Channels is the layout of families that write messages with a header that routes the body.
	Channels *Channels
	// Elements is the layout of families that frame everything, text included, in named elements.
	Elements *Elements

	// Special are tokens that are parts of markers, such as ｜DSML｜; an engine must keep them like markers.
	Special []Marker

	// Replay specifies which past reasoning the family is shown again. The zero Rule specifies that it is not known; the chat template
	// then decides.
	Replay replay.Rule

	// MaxHold bounds, in bytes, each thing that is held back until it resolves: white space at the beginning of a run,
	// a name, a tag or section of a header, the text after a tag that may be prose, and white space after a possible
	// end of a string argument. In text they may meet and add up. Arguments that are not strings are held until they
	// close, under Limits.HeldBytes.
	MaxHold int
}

// Marker is one control string of a grammar.
type Marker struct {
	// Text is the exact spelling.
	Text string
	// Token specifies that Text is one added token in the family's vocabularies. If the caller passes token IDs, such a
	// marker is recognized only as that token: the same characters spelled by other tokens are data.
	Token bool
	// Also are other spellings, which may differ in Token. Theirs are not used.
	Also []Marker
}

// Tok returns the marker of an added token, with its other spellings.
func Tok(text string, also ...Marker) Marker { return Marker{Text: text, Token: true, Also: also} }

// Lit returns a marker that is ordinary text in the vocabulary, with its other spellings.
func Lit(text string, also ...Marker) Marker { return Marker{Text: text, Also: also} }

// Reasoning describes reasoning between two tags.
type Reasoning struct {
	Open, Close Marker
	// Label is a word after Open that belongs to the markup, such as Gemma's "thought\n". It may be missing.
	Label string
	// Lead is white space after Open that belongs to the markup; any prefix of it is dropped.
	Lead string
	// Tail is the white space character before Close that belongs to the markup, or empty; at most one is dropped.
	Tail string
	// After is white space after Close that belongs to the markup; any prefix of it is dropped.
	After string
	// Prompted specifies that the chat template ends the prompt with Open, so that generation begins inside reasoning
	// unless the caller specifies otherwise.
	Prompted bool
	// CallEnds specifies that the beginning of a call ends reasoning: the model leaves out Close before it. Otherwise
	// reasoning continues after a call that is inside it.
	CallEnds bool
	// Inline leaves reasoning in the text, tags included. An opening tag that is in the prompt is written first.
	Inline bool
}

// Tagged is text in which tags mark reasoning and calls:
//
//	output = { text | Reasoning.Open reasoning Reasoning.Close | block }
//	block  = Wrapper.Open { call } Wrapper.Close | call
//	call   = Open [ name ] body Close
//
// A grammar without calls has only Reasoning, and one that has nothing makes all text.
type Tagged struct {
	Reasoning *Reasoning
	// Before is the white space between text and a block that belongs to the markup, one character repeated: at most so
	// many of it are dropped.
	Before string
	// Wrapper encloses calls; nil when a call is its own block.
	Wrapper *Wrapper
	// Open and Close delimit one call. Without Open, calls are inside the wrapper one after the other, with commas,
	// white space or brackets around them. Without Close, a call ends with its arguments. Inside a wrapper, Close.Also may
	// follow Close.
	Open, Close Marker
	// Name describes the name before the body; nil if it is inside the body.
	Name *Name
	// Body reads what is between.
	Body Body
	// NeedClose specifies that a call is complete only when Close follows. By default, a call is complete when its
	// arguments are.
	NeedClose bool
	// Quoted specifies that an opening tag which no call follows is text, with everything after it. By default it is a
	// broken call if a closing tag follows soon.
	Quoted bool
	// Bare specifies that models write calls without any tag: a list of Python calls anywhere in the text, which is held
	// until it is whole; or, without a codec, an object with the keys of Body.Call, or a list of them, at the beginning
	// of the text.
	Bare bool
	// Ends are markers that end the turn and carry nothing. A model's stop tokens include those that are special tokens.
	Ends []Marker
	// Skip are markers within a turn that carry nothing, for example around the text of the response.
	Skip []Marker
	// Cite is the pair of tags around a cited span of text or reasoning, or nil. The tags are dropped. The closing one begins
	// with Close and ends with the next >, before which there is no <.
	Cite *Wrapper
}

// Wrapper is the pair of tags around the calls of one block.
type Wrapper struct {
	Open, Close Marker
	// Optional specifies that models write calls without it.
	Optional bool
}

// Name is a name that is between Open and the body.
type Name struct {
	// Prefix comes before the name and is not part of it. It may be missing, or what of it is before a < or colon. White space may
	// come before each <.
	Prefix string
	// Ends are the strings that end the name. One that ends with "/>" ends the call too, which then has no arguments.
	Ends []string
	// Stops are characters that end the name too, but belong to what follows.
	Stops string
	// Number is between the name and a number, as in functions.NAME:0; the whole is the id of the call.
	Number string
	// ID is between the name and an id.
	ID string
}

// Body selects how a call is parsed. At most one of Params and Codec is set. With neither, the arguments after a name
// are one JSON object. Without a name before the body, Call is set; it may be set with a name too, for families that
// write both.
type Body struct {
	// Call is one JSON object that holds name and arguments, or a list of such objects.
	Call *JSONCall
	// Fence is the code fence around the JSON object of arguments, such as "```", with an optional "json" after the first;
	// or empty.
	Fence string
	// Params is a list of tagged parameters, typed by the tool's schema.
	Params *Params
	// Codec reads any other syntax.
	Codec Codec
	// List specifies how the model writes the calls of a block. Other forms that are valid for the family are read too.
	List List
}

// List specifies how the calls of one block are separated.
type List uint8

// The forms of several calls.
const (
	Separate List = iota // each in tags or on lines of its own
	Array                // in brackets, with commas between
	Dicts                // objects in brackets in the syntax of Python, such as [{'name': 'f', 'arguments': {…}}]; held until it is whole
)

// JSONCall is a call written as one JSON object, such as {"name": "f", "arguments": {…}}. Several may be in an array.
type JSONCall struct {
	// Name and Arguments list the accepted keys, the canonical one first. Without any, an object has one member: its key is
	// the name and its value the arguments, as in {"f": {…}}.
	Name, Arguments []string
	// Sep separates calls that are not in an array.
	Sep string
	// Strict specifies that an object is a call only if its name comes first and is followed by arguments that are an
	// object.
	Strict bool
}

// Params is a list of parameters in tags, such as <parameter=key>value</parameter>. Values are raw text.
//
// A value ends at the first Close that is followed, after optional white space, by the next parameter or the end of
// the call; any other Close is data. A call whose last Close is missing ends at its own closing tag.
type Params struct {
	Open   string // before the key
	KeyEnd string // between key and value
	// Value comes before the value, after KeyEnd and optional white space; or empty. The value <![CDATA[ may be missing, and
	// white space is then part of the value; with it, the value ends at ]]>, optional white space and Close.
	Value string
	// Attr is the attribute between KeyEnd and Value that reports whether the value is a raw string ("true") or JSON
	// ("false"); or empty. Without the attribute the schema decides.
	Attr    string
	Close   string // after the value
	Newline bool   // one newline at each end of a value belongs to the markup
	// Object specifies that one JSON object may replace the parameters.
	Object bool
}

// Channels is a sequence of messages, each with a header of sections that routes its body:
//
//	output  = { message | text }
//	message = section { section } ( Body | section of a body ) body End
//	section = marker text
//
// The first header arrives without its beginning, because the prompt ends inside it.
type Channels struct {
	// Sections are the markers that may open a part of a header, in their usual order. Those whose field is a body end the
	// header instead of Body, in families where the marker alone routes. The author before them is dropped.
	Sections []Section
	// Body ends the header.
	Body Marker
	// Object describes the form of a CallBody.
	Object *JSONCall
	// Ends are the markers that end a body. An engine may swallow the last one of a turn.
	Ends []Marker
	// Recipient is the text before a recipient inside any section, such as "to=".
	Recipient string
	// ToolPrefix is the prefix of a recipient that is a declared tool; it is not part of the name.
	ToolPrefix string
	// Reasoning and Text name the channels whose bodies are reasoning and visible text, and, with the prefix Recipient,
	// the recipients whose messages are. A message with any other recipient is a call, regardless of its channel. A
	// message of another channel, or without one, is text too, unless its content type is JSON: it is then a call
	// without a recipient.
	Reasoning, Text []string
	// Calls describes the body of a call; nil means the bare arguments as JSON.
	Calls *Tagged
}

// Section is one part of a message header.
type Section struct {
	Marker Marker
	Field  Field
}

// Field specifies what the text of a header section means.
type Field uint8

// The fields of a header.
const (
	Role          Field = iota + 1 // the author
	Channel                        // the channel that routes the body
	Type                           // the content type of the body
	TextBody                       // none: the body follows and is visible text
	ReasoningBody                  // none: the body follows and is reasoning
	CallBody                       // none: the body follows and is one call, see Channels.Object
	TextCallBody                   // none: the body follows and is the free text of one call to the author before it; without one, visible text
)

// Elements frames everything in named elements with attributes, as XTML does:
//
//	element = Open name { attribute } Sep body Close name Sep
//
// The elements are think and response, for reasoning and visible text; tools, which holds calls; call, with the name of
// the tool in its attribute tool; in a call, argument, with the attributes key and type, or json, one object instead of
// all arguments; and message, the turn. A string is an argument of type string; other types hold JSON.
//
// Bodies are not escaped: an argument ends at the first closing tag that is followed by the next argument or the end
// of the call.
type Elements struct {
	Open, Sep, Close Marker
	// EndOfTurn are markers that end the turn and carry nothing.
	EndOfTurn []Marker
}

// Marked is a Codec with control strings of its own.
type Marked interface {
	Codec
	Markers() []Marker
}

// Markers returns all control strings of g, including those inside calls, each once, in order of declaration. A leak
// detector searches visible text for them. An engine must be configured not to skip the markers that are tokens of its
// vocabulary when it decodes IDs.
func (g *Grammar) Markers() []Marker {
	var out []Marker
	one := func(m Marker) {
		if m.Text != "" && !slices.ContainsFunc(out, func(o Marker) bool { return o.Text == m.Text }) {
			out = append(out, Marker{Text: m.Text, Token: m.Token})
		}
	}
	add := func(ms ...Marker) {
		for _, m := range ms {
			one(m)
			for _, a := range m.Also {
				one(a)
			}
		}
	}
	tagged := func(t *Tagged) {
		if r := t.Reasoning; r != nil {
			add(r.Open, r.Close)
		}
		if w := t.Wrapper; w != nil {
			add(w.Open, w.Close)
		}
		add(t.Open, t.Close)
		add(t.Ends...)
		add(t.Skip...)
		if c := t.Cite; c != nil {
			add(c.Open, c.Close)
		}
		inner := func(texts ...string) {
			for _, s := range texts {
				if strings.ContainsFunc(s, unicode.IsLetter) { // what has no letter is punctuation, not a control string
					add(Lit(s))
				}
			}
		}
		if n := t.Name; n != nil {
			inner(n.Ends...)
			inner(n.ID)
		}
		if p := t.Body.Params; p != nil {
			inner(p.Open, p.KeyEnd, p.Value, p.Close)
		}
		if m, ok := t.Body.Codec.(Marked); ok {
			add(m.Markers()...)
		}
	}
	if g.Tagged != nil {
		tagged(g.Tagged)
	}
	if c := g.Channels; c != nil {
		for _, s := range c.Sections {
			add(s.Marker)
		}
		add(c.Body)
		add(c.Ends...)
		if c.Calls != nil {
			tagged(c.Calls)
		}
	}
	if e := g.Elements; e != nil {
		add(e.Open, e.Sep, e.Close)
		add(e.EndOfTurn...)
	}
	add(g.Special...)
	return out
}

// Validate reports the first reason why g cannot drive a parser.
func (g *Grammar) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("grammar %s: %s", g.Name, fmt.Sprintf(format, args...))
	}
	if g.Name == "" {
		return fail("no name")
	}
	n := 0
	if t := g.Tagged; t != nil {
		n++
		if why := t.invalid(); why != "" {
			return fail("%s", why)
		}
	}
	if c := g.Channels; c != nil {
		n++
		if why := c.invalid(); why != "" {
			return fail("%s", why)
		}
		if c.Calls != nil {
			if why := c.Calls.invalid(); why != "" {
				return fail("calls: %s", why)
			}
		}
	}
	if e := g.Elements; e != nil {
		n++
		if e.Open.Text == "" || e.Sep.Text == "" || e.Close.Text == "" {
			return fail("elements need three markers")
		}
	}
	if n != 1 {
		return fail("exactly one layout is needed, not %d", n)
	}
	ms := g.Markers()
	special := func(m Marker) bool {
		return slices.ContainsFunc(g.Special, func(s Marker) bool { return s.Text == m.Text })
	}
	for i, a := range ms {
		for j, b := range ms {
			if i != j && len(a.Text) > len(b.Text) && strings.Contains(a.Text[1:], b.Text) && !special(b) {
				return fail("marker %q hides %q", a.Text, b.Text)
			}
		}
	}
	for _, m := range ms {
		if len(m.Text) > g.MaxHold {
			return fail("MaxHold %d is less than marker %q", g.MaxHold, m.Text)
		}
	}
	return nil
}

// invalid returns why c cannot drive a parser, or "".
func (c *Channels) invalid() string {
	if len(c.Sections) == 0 || len(c.Ends) == 0 {
		return "channels need sections and end markers"
	}
	if !slices.ContainsFunc(c.Sections, func(s Section) bool { return s.Field >= TextBody }) {
		if c.Body.Text == "" || c.Recipient == "" {
			return "channels need a body marker and a recipient prefix, or sections of bodies"
		}
	} else if c.Body.Text != "" || c.Recipient != "" || c.Calls != nil {
		return "sections of bodies leave nothing to a body marker, recipients and tagged calls"
	}
	for _, s := range c.Sections {
		switch {
		case s.Marker.Text == "" || s.Field == 0:
			return "a section needs a marker and a field"
		case s.Field == CallBody && (c.Object == nil || len(c.Object.Name) == 0 || len(c.Object.Arguments) == 0):
			return "calls need an object with keys for name and arguments"
		}
	}
	return ""
}

// invalid returns why t cannot drive a parser, or "".
func (t *Tagged) invalid() string {
	if r := t.Reasoning; r != nil {
		switch {
		case r.Open.Text == "" || r.Close.Text == "":
			return "reasoning needs an opening and a closing marker"
		case r.Open.Text == r.Close.Text && !r.Inline:
			return "reasoning needs two different markers"
		case len(r.Tail) > 1:
			return "white space before the end of reasoning is one byte at most"
		}
	}
	if t.Before != "" && strings.Trim(t.Before, t.Before[:1]) != "" {
		return "white space before a block must be one character repeated"
	}
	b := t.Body
	n := 0
	for _, set := range []bool{t.Name != nil && b.Params == nil && b.Codec == nil, b.Params != nil, b.Codec != nil} {
		if set {
			n++
		}
	}
	if n == 0 && b.Call == nil {
		if t.Open.Text != "" || t.Wrapper != nil {
			return "a call needs a body"
		}
		return "" // reasoning only, or nothing at all
	}
	switch {
	case n > 1:
		return "one codec besides Call is the most"
	case (n == 1) != (t.Name != nil):
		return "the name stands before the body or inside it"
	case t.Open.Text == "" && t.Wrapper == nil && !t.Bare:
		return "a call needs an opening marker"
	case t.Open.Text == "" && t.Name == nil && !t.Bare:
		return "calls without an opening marker need a name"
	case t.Name != nil && (len(t.Name.Ends) == 0 && t.Name.Stops == "" || slices.Contains(t.Name.Ends, "")):
		return "nothing ends the name"
	case t.Wrapper != nil && t.Name == nil:
		return "calls in a wrapper need a name before the body"
	case t.Bare && b.Call == nil && b.Codec == nil:
		return "only call objects and codecs can come without a tag"
	case b.List == Dicts && b.Call == nil:
		return "dicts need the keys of a call object"
	case t.NeedClose && t.Close.Text == "":
		return "NeedClose without a closing marker"
	}
	if p := b.Params; p != nil && (p.Open == "" || p.KeyEnd == "" || p.Close == "" || t.Close.Text == "") {
		return "parameters need markers for key and value, and a closing marker"
	}
	if p := b.Params; p != nil && p.Attr != "" && p.Value == "" {
		return "an attribute without the text after it"
	}
	if c := b.Call; c != nil && ((len(c.Name) == 0) != (len(c.Arguments) == 0) || len(c.Sep) > 1) {
		return "a JSON call needs keys for name and arguments, and a separator of one character if any"
	}
	return ""
}
