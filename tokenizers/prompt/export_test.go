// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
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
