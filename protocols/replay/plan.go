// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
)

// Model describes how a model treats past reasoning. The zero Model is unknown.
type Model struct {
	Configured Rule     // the operator's rule, or the zero Rule if absent; widest keeps what the template can print
	Template   Template // the model's chat template
	Family     Rule     // the rule of the model's family, or the zero Rule if unknown
	// Untagged reports that the tags around the family's reasoning are unknown. Reasoning then cannot be written into
	// the text of a turn for a template that prints only the text.
	Untagged bool
}

// Plan specifies how the past reasoning of one request is treated.
type Plan struct {
	// Rule specifies the reasoning to keep.
	Rule Rule
	// Printed specifies the reasoning that the template prints if it receives all of it, with the variables of the
	// request and Vars.
	Printed Rule
	// Thinking reports whether the model should reason in its response. It is true unless the request, or the template
	// by default, turns reasoning off.
	Thinking bool
	// Vars are variables to pass to the template in addition to those of the request.
	Vars map[string]bool
	// Inline reports that reasoning must be written into the text of its turn, between the family's tags, because the
	// template does not read it from a field.
	Inline bool
	// Notes describe requested behavior that the template does not support.
	Notes []string
}

// NewPlan returns the plan for a request to a model. A variable that the request sets affects Plan.Printed and is not
// in Plan.Vars.
func NewPlan(m Model, pref Preference) Plan {
	most := m.Configured.scope == widest
	if most {
		m.Configured = Rule{}
	}
	if m.Untagged && m.Template.reads == verbatim {
		m.Configured, m.Family = Rule{}, Rule{} // they cannot be applied
	}
	var p Plan
	base := m.Family
	switch m.Template.reads {
	case fromKey, fromText:
		if m.Template.rule.scope != unspecified {
			base = m.Template.rule
		}
	case verbatim, nowhere:
		if base.scope == unspecified {
			base = Rule{scope: none}
		}
	}
	if base.scope == unspecified {
		base.scope = sinceUser
	}
	own := false // whether the request sets the template's variable
	if v, ok := pref.Vars[base.toggle.name]; ok {
		base, own = base.at(v), true
	}
	p.Thinking = pref.reasoning(&m.Template)
	if !p.Thinking && base.off != unspecified {
		base.scope, base.n, base.tools, base.toggle = base.off, 0, unspecified, toggle{}
	}
	if wide := base.at(base.toggle.keep); most && !own && base.toggle.name != "" && wide != base {
		if r, _ := pref.requested(); r.scope == unspecified {
			p.Vars, base = map[string]bool{base.toggle.name: base.toggle.keep}, wide
		}
	}
	want, by := base, ""
	if r, from := pref.requested(); !own && r.scope != unspecified {
		want, by = r, from
		want.remnant = base.remnant
	} else if !own && m.Configured.scope != unspecified {
		want, by = m.Configured, "the configured rule"
	}
	able := base
	switch m.Template.reads {
	case unknown:
		if m.Family.scope == unspecified {
			able = Rule{scope: all}
		}
	case verbatim:
		able, p.Inline = Rule{scope: all}, want.scope != none
		if (m.Family.scope == unspecified || m.Family.scope == none) && m.Configured.scope == unspecified {
			able.scope, p.Inline = none, false // the model does not expect reasoning there, or may not
		}
	case fromText:
		p.Inline = true
	case nowhere:
		able = Rule{scope: none}
	}
	if by != "" && able == base && base.toggle.name != "" {
		wide, narrow := base.at(base.toggle.keep), base.at(!base.toggle.keep)
		switch {
		case !able.covers(want) && wide != able: // even if it is not enough, because it is closer
			able = wide
			p.Vars = map[string]bool{base.toggle.name: base.toggle.keep}
		case narrow != able && narrow.covers(want) && want.covers(narrow):
			able = narrow
			p.Vars = map[string]bool{base.toggle.name: !base.toggle.keep}
		}
	}
	if by != "" && !able.covers(want) {
		p.Notes = append(p.Notes, fmt.Sprintf("%s requests reasoning of scope %s, but the template prints scope %s", by, want.name(), able.name()))
	}
	if (m.Template.reads == verbatim || m.Template.reads == nowhere) && able.scope == none && m.Family.scope != none {
		p.Notes = append(p.Notes, "the template does not print past reasoning, and no other way to include it is known")
	}
	p.Rule, p.Printed = want, able
	return p
}

// reasoning reports whether the model should reason, given the variables that the template reads.
func (p *Preference) reasoning(t *Template) bool {
	vars := t.thinking
	if vars == nil {
		vars = thinking[:]
	}
	for _, name := range vars {
		if v, ok := p.Vars[name]; ok {
			return v
		}
	}
	if p.Thinking != nil {
		return *p.Thinking
	}
	return !t.offByDefault
}

// requested returns the rule that the request prefers and the field that specifies it: a variable of another template,
// or a field of the API.
func (p *Preference) requested() (r Rule, from string) {
	for _, h := range history {
		switch v, ok := p.Vars[h.name]; {
		case ok && v == h.keep:
			return Rule{scope: all}, h.name
		case ok:
			return Rule{scope: sinceUser}, h.name
		}
	}
	return p.rule, cmp.Or(p.from, "the request")
}

// name describes the reasoning that r keeps, for a note.
func (r Rule) name() string {
	s := r.base()
	if r.tools != unspecified && r.tools != r.scope {
		s += ", with tools " + r.tools.String()
	}
	return s
}

// Outcome is the decision on the reasoning of one turn.
type Outcome uint8

// The outcomes.
const (
	None     Outcome = iota // the turn has no reasoning
	Kept                    // the reasoning is kept
	Dropped                 // the rule does not keep it, and the template leaves it out
	Stripped                // the rule does not keep it, but the template would print it, so the caller must remove it
	Refused                 // the rule keeps it, but the template does not print it
)

var outcomeNames = [...]string{"none", "kept", "dropped", "stripped", "refused"}

// String returns the outcome in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// AppendOutcomes appends the outcome for each turn to dst. tools reports whether the request declares tools.
func (p *Plan) AppendOutcomes(dst []Outcome, turns []Turn, tools bool) []Outcome {
	keeps := p.Rule.AppendKept(make([]bool, 0, 2*len(turns)), turns, tools)
	prints := p.Printed.AppendKept(keeps[len(keeps):], turns, tools)
	for i, t := range turns {
		o := None
		switch {
		case !t.Assistant || !t.Reasoning:
		case keeps[i] && prints[i]:
			o = Kept
		case keeps[i]:
			o = Refused
		case prints[i]:
			o = Stripped
		default:
			o = Dropped
		}
		dst = append(dst, o)
	}
	return dst
}
