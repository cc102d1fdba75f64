// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"strings"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/tokenizers/internal/calltext"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
	"github.com/weft-go/weft/tokenizers/template"
)

// This file writes past calls for templates that do not print any, as in LFM2, Granite 3.3 and the distilled
// models of DeepSeek R1: as the family writes them, so that the model sees what it wrote.

// setCalls makes the template print past calls in the spelling of the family if it does not print any by itself. Without
// a family whose spelling is known, Fit makes them text, which is a loss.
func (m *Model) setCalls() error {
	if m.written {
		m.written = false
		if err := m.probe(m.given); err != nil {
			return err
		}
	}
	if m.caps.Has("tool_calls") || m.caps.Has("flat_calls") || m.grammar == nil {
		return nil
	}
	t, ok := m.given.(interface {
		WithCalls(w calltext.Writer) template.Template
	})
	w := writerOf(m.grammar)
	if !ok || w == nil {
		return nil
	}
	if err := m.probe(t.WithCalls(w)); err != nil {
		return err
	}
	if m.written = m.newSample().read(m.opt.Parsers, m.opt.Family) > 0; !m.written { // the template prints the content of such a message in another way
		return m.probe(m.given)
	}
	return nil
}

// pieces collects the text of calls.
type pieces []calltext.Piece

// mark adds markup.
func (p *pieces) mark(text string) {
	if text != "" {
		*p = append(*p, calltext.Piece{Text: text, Call: -1})
	}
}

// name adds the name of call i, arguments its arguments.
func (p *pieces) name(text string, i int) { *p = append(*p, calltext.Piece{Text: text, Call: i}) }
func (p *pieces) arguments(text string, i int) {
	*p = append(*p, calltext.Piece{Text: text, Call: i, Arguments: true})
}

// writerOf returns how a family writes calls, or nil if that is not known: in its layout, one call after the other.
func writerOf(g *grammar.Grammar) calltext.Writer {
	t := g.Tagged
	if t == nil {
		return nil
	}
	var body func(p *pieces, c calltext.Call, i int)
	_, python := t.Body.Codec.(codec.Python)
	object := t.Body.Call
	switch {
	case python:
		return pythonWriter(g)
	case t.Body.Codec != nil || t.Body.Params != nil:
		return nil // the templates of all families with these print calls
	case t.Name != nil && t.Name.Number == "" && t.Name.ID == "" && len(t.Name.Ends) > 0:
		body = func(p *pieces, c calltext.Call, i int) {
			p.mark(t.Name.Prefix)
			p.name(c.Name, i)
			p.mark(t.Name.Ends[0])
			if t.Body.Fence != "" {
				p.mark(t.Body.Fence + "json\n")
			}
			p.arguments(objectText(c.Arguments), i)
			if t.Body.Fence != "" {
				p.mark("\n" + t.Body.Fence)
			}
		}
	case t.Name == nil && object != nil && len(object.Name) > 0 && t.Body.List != grammar.Dicts:
		body = func(p *pieces, c calltext.Call, i int) {
			p.mark(`{"` + object.Name[0] + `": `)
			p.name(quoted(c.Name), i)
			p.mark(`, "` + object.Arguments[0] + `": `)
			p.arguments(objectText(c.Arguments), i)
			p.mark("}")
		}
	default:
		return nil
	}
	a := around{before: t.Before}
	switch {
	case t.Wrapper != nil:
		between := t.Close.Text + t.Open.Text
		if t.Body.Fence != "" { // DeepSeek's templates have a line for each call
			between = t.Close.Text + "\n" + t.Open.Text
		}
		a.first, a.between, a.last = t.Wrapper.Open.Text+t.Open.Text, between, t.Close.Text+t.Wrapper.Close.Text
	case t.Body.List == grammar.Array:
		a.first, a.between, a.last = t.Open.Text+"[", ", ", "]"+t.Close.Text
	case object != nil && t.Name == nil && object.Sep != "": // Llama 3
		a.between = object.Sep + " "
	case t.Close.Text != "" && t.Name == nil: // on a line of its own between the tags, as in Hermes
		a.first, a.between, a.last = t.Open.Text+"\n", "\n"+t.Close.Text+"\n"+t.Open.Text+"\n", "\n"+t.Close.Text
	default:
		a.first, a.between, a.last = t.Open.Text, t.Close.Text+t.Open.Text, t.Close.Text
	}
	return a.writer(body)
}

// around is the markup around the calls of a message.
type around struct {
	before               string // if the message has text
	first, between, last string
}

// writer returns a Writer whose calls body writes.
func (a around) writer(body func(p *pieces, c calltext.Call, i int)) calltext.Writer {
	return func(calls []calltext.Call, after bool) []calltext.Piece {
		var p pieces
		if after {
			p.mark(a.before)
		}
		p.mark(a.first)
		for i, c := range calls {
			if i > 0 {
				p.mark(a.between)
			}
			body(&p, c, i)
		}
		p.mark(a.last)
		return p
	}
}

// pythonWriter returns how a family writes calls in the syntax of Python.
func pythonWriter(g *grammar.Grammar) calltext.Writer {
	t := g.Tagged
	a := around{before: t.Before, between: "\n"}
	if t.Body.List == grammar.Array {
		a.first, a.between, a.last = "[", ", ", "]"
	}
	if w := t.Wrapper; w != nil && !(w.Optional && t.Bare) { // Llama 4 and 3.2 write the list alone
		a.first, a.last = w.Open.Text+a.first, a.last+w.Close.Text
	}
	return a.writer(func(p *pieces, c calltext.Call, i int) {
		p.name(c.Name, i)
		p.mark("(")
		if text := pythonArguments(c.Arguments); text != "" {
			p.arguments(text, i)
		}
		p.mark(")")
	})
}

// objectText returns arguments as the text of an object: unchanged, or {} if empty.
func objectText(args string) string {
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	return args
}

// quoted returns s as a JSON string.
func quoted(s string) string {
	return string(jsonval.Value{Kind: jsonval.String, Str: s}.AppendJSON(nil))
}

// pythonArguments returns the keyword arguments for an object. Arguments that are not an object are returned as they are.
func pythonArguments(args string) string {
	v, err := jsonval.Parse([]byte(objectText(args)), "arguments")
	if err != nil || v.Kind != jsonval.Object {
		return args
	}
	var b []byte
	for i, key := range v.Keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, key...), '=')
		b = appendPython(b, v.List[i])
	}
	return string(b)
}

// appendPython appends v as a literal of Python, with strings in double quotes, as the models write them.
func appendPython(dst []byte, v jsonval.Value) []byte {
	switch v.Kind {
	case jsonval.Array:
		dst = append(dst, '[')
		for i, e := range v.List {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendPython(dst, e)
		}
		return append(dst, ']')
	case jsonval.Object:
		dst = append(dst, '{')
		for i, e := range v.List {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(append(dst, quoted(v.Keys[i])...), ": "...)
			dst = appendPython(dst, e)
		}
		return append(dst, '}')
	}
	switch text := v.AppendJSON(nil); string(text) {
	case "true":
		return append(dst, "True"...)
	case "false":
		return append(dst, "False"...)
	case "null":
		return append(dst, "None"...)
	default:
		return append(dst, text...)
	}
}
