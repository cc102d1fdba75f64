// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/internal/calltext"
	"github.com/weft-go/weft/tokenizers/template"
)

// ReadsJSON returns a copy of m that passes conversations to the template as JSON.
func ReadsJSON(m *Model) *Model {
	out := *m
	out.template = struct{ template.Template }{m.template}
	return &out
}

// ReadsValues reports whether m passes conversations to the template as values.
func ReadsValues(m *Model) bool {
	_, ok := m.template.(valueTemplate)
	return ok
}

// AppendIDs is appendIDs.
func AppendIDs(dst []byte, ids []uint32) []byte { return appendIDs(dst, ids) }

// Kwargs returns the variables with which the template rendered p, as JSON.
func Kwargs(m *Model, req *block.Request, p *Prompt) []byte { return m.kwargs(req, &p.Replay) }

// Template returns the template of m.
func Template(m *Model) template.Template { return m.template }

// Tags returns the tags of reasoning of m's family, or nil.
func Tags(m *Model) *chat.Tags { return m.tags }

// IDForms is idForms.
type IDForms = idForms

// Of is idForms.of.
func (s *idForms) Of(id, own string) string { return s.of(id, own) }

// WrittenCalls returns how g's family writes calls for a template without calls, or "" if that is not known.
func WrittenCalls(g *grammar.Grammar, calls []calltext.Call) string {
	w := writerOf(g)
	if w == nil {
		return ""
	}
	text := ""
	for _, p := range w(calls, true) {
		text += p.Text
	}
	return text
}

// Boundaries returns the number of positions whose ids are known from earlier prompts or calls of Tokens.
func (p *Prompt) Boundaries() int { return len(p.tokens.marks) }

// Continues reports whether t uses the entry of an earlier request.
func Continues(t *Turn) bool { return t.before != nil }

// ArgumentsOf is the arguments of a tool's calls, written by themselves.
type ArgumentsOf struct {
	Tag         []byte // structural tag
	GBNF        string
	First, Last string // what is around them in a call of the tool f
	Separate    bool
	After       string // what ends one of them
	before      string
	sep         [2]string
}

// ConstrainArguments returns the constraint of the arguments of a tool named f with a schema.
func ConstrainArguments(m *Model, schema []byte) (*ArgumentsOf, error) {
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"f","parameters":`+string(schema)+`}}]}`), nil)
	if err != nil {
		return nil, err
	}
	d := &demand{model: m, req: req, shape: m.callShape()}
	if d.shape.why != "" {
		return nil, errors.New(d.shape.why)
	}
	list, err := d.arguments(&req.Tools()[0])
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		list = []format{optional(format{Type: "const_string", Value: " "})}
	}
	root := sequence(list...)
	root.plain()
	out := &ArgumentsOf{Tag: marshal(format{Type: "structural_tag", Format: &root})}
	out.GBNF, _ = (&Constraint{m, &root, nil}).GBNF()
	fill := strings.NewReplacer(sampleName, "f", anyID, "Zqid00002", anyNumber, "0")
	out.First, out.Last = fill.Replace(d.shape.first), fill.Replace(d.shape.last)
	if p := d.shape.params; p != nil {
		out.Separate, out.After, out.before, out.sep = true, p.after, p.before, p.sep
	}
	return out, nil
}

// Write returns arguments as a model writes them, strings as text.
func (a *ArgumentsOf) Write(names []string, values []any) string {
	var raw []json.RawMessage
	out := ""
	for i, name := range names {
		raw = append(raw, marshal(values[i]))
		if s, ok := values[i].(string); ok {
			out += a.before + name + a.sep[valueText] + s + a.After
		} else {
			out += a.before + name + a.sep[valueJSON] + string(raw[i]) + a.After
		}
	}
	if a.Separate {
		return out
	}
	return string(object(names, raw))
}
