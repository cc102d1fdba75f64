// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strconv"
	"strings"
)

// Turn describes one turn of a conversation, as far as rules depend on it. The zero Turn has no effect on rules: it is
// system text, or results of tools and reminders next to them, which continue the current task.
type Turn struct {
	// Start reports that the turn asks something new, which ends the previous task.
	Start bool
	// Assistant reports that the model wrote the turn. Reasoning and Calls report whether it contains them. An
	// assistant turn without calls is final.
	Assistant, Reasoning, Calls bool
}

// scope specifies the past turns whose reasoning is kept. Its names are part of the syntax of [Rule].
type scope uint8

const (
	unspecified scope = iota
	none
	sinceUser
	sinceFinal
	firstFinal
	calls
	sinceUserCalls
	lastTurn
	lastN
	all
	widest // of Model.Configured only
)

var scopeNames = [...]string{"unspecified", "none", "since_user", "since_final", "first_final", "calls", "since_user_calls", "last_turn", "last_n", "all", "widest"}

func (s scope) String() string { return scopeNames[s] }

// covers reports whether s keeps at least the reasoning that o keeps, in every conversation.
func (s scope) covers(o scope) bool {
	switch {
	case s == all || o == none:
		return true
	case o == sinceFinal && (s == calls || s == sinceUserCalls || s == firstFinal):
		return true // all assistant turns after the last final turn have calls
	case s == sinceUserCalls:
		return o == sinceUserCalls || o == sinceUser || o == calls
	}
	return s == o && s != lastN
}

// Rule specifies the past reasoning that a family of models, or a chat template, keeps. The zero Rule specifies
// nothing. Rules are comparable. [ParseRule] parses the text of a rule, a list of clauses separated by semicolons:
//
//	since_user                       what is kept: a scope
//	tools: all                       what is kept in a request that declares tools
//	off: none                        what is kept in a request that turns reasoning off
//	clear_thinking=false: all        what is kept if the request sets this variable of the template to this value
//	clear_thinking=true: since_user  the same for the opposite value, if it differs from the first clause
//	left: close_tag                  what the template prints instead of reasoning that it drops: empty_tags, which is both
//	                                 tags with at most white space between them, or close_tag, only the closing tag
//
// The first clause is required; the others are optional. Of the two values of a variable, the value that keeps more
// comes first. The scopes are:
//
//	none               nothing
//	all                everything
//	since_user         what comes after the last start
//	since_final        what comes after the last final turn: the open chain, and one that a question cut off
//	first_final        everything, but once the last turn of the assistant is final, only what comes after the first final turn,
//	                   as in the library of harmony (openai/harmony 0.0.8, src/encoding.rs, auto_drop_analysis)
//	calls              the turns with calls
//	since_user_calls   the turns with calls and what comes after the last start
//	last_turn          the last turn of the assistant
//	widest             what the template prints if its variable has the value that keeps more, or by its own rule if it has no
//	                   such variable. Only Model.Configured may have this scope
//	last_n(N)          the last N chains that have reasoning. A chain counts once, as in Anthropic's API, where the whole loop of
//	                   tools is one turn of the assistant
type Rule struct {
	scope   scope
	n       int   // for lastN
	tools   scope // unspecified means the same as without tools
	off     scope // unspecified means the same as with reasoning on
	remnant string
	toggle  toggle
}

// toggle is a variable of a template that changes the scope. The zero toggle means that there is no such variable.
type toggle struct {
	name         string
	keep         bool // the value that selects wide; the other selects narrow
	wide, narrow scope
}

// ParseRule parses the text of a rule in the syntax of [Rule]. The empty text yields the zero Rule.
func ParseRule(text string) (Rule, error) {
	var r Rule
	if strings.TrimSpace(text) == "" {
		return r, nil
	}
	for i, clause := range strings.Split(text, ";") {
		key, value, ok := strings.Cut(clause, ":")
		if !ok {
			key, value = "", clause
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if err := r.set(i, key, value); err != nil {
			return Rule{}, fmt.Errorf("replay: rule %.200q: %w", text, err)
		}
	}
	return r, nil
}

// set sets the part of r that a clause specifies.
func (r *Rule) set(i int, key, value string) error {
	if (key == "") != (i == 0) {
		return fmt.Errorf("clause %d: the first clause, and only it, is a scope without a key", i+1)
	}
	if key == "left" {
		if r.remnant = value; value != emptyTags && value != closeTag {
			return fmt.Errorf("left: %q is neither %s nor %s", value, emptyTags, closeTag)
		}
		return nil
	}
	s, n, err := parseScope(value)
	if err != nil {
		return fmt.Errorf("clause %d: %w", i+1, err)
	}
	if (s == lastN || s == widest) && i > 0 {
		return fmt.Errorf("clause %d: %s is for the first clause only", i+1, s)
	}
	name, at, isVar := strings.Cut(key, "=")
	switch {
	case i == 0:
		r.scope, r.n = s, n
	case key == "tools":
		r.tools = s
	case key == "off":
		r.off = s
	case !isVar || name == "" || at != "true" && at != "false":
		return fmt.Errorf("clause %d: key %q is not tools, off, left, NAME=true or NAME=false", i+1, key)
	case r.toggle.name == "":
		r.toggle = toggle{name, at == "true", s, r.scope}
	case r.toggle.name == name && r.toggle.keep != (at == "true"):
		r.toggle.narrow = s
	default:
		return fmt.Errorf("clause %d: key %q: only one variable is possible, with each value once", i+1, key)
	}
	return nil
}

func parseScope(text string) (s scope, n int, err error) {
	if count, ok := strings.CutPrefix(text, "last_n("); ok {
		if count, ok = strings.CutSuffix(count, ")"); ok {
			if n, err = strconv.Atoi(count); err == nil && n > 0 {
				return lastN, n, nil
			}
		}
		return 0, 0, fmt.Errorf("%q: last_n needs a positive number in parentheses", text)
	}
	for s := none; s <= widest; s++ {
		if s != lastN && text == scopeNames[s] {
			return s, 0, nil
		}
	}
	return 0, 0, fmt.Errorf("%q is not a scope", text)
}

// MustRule is like [ParseRule] but panics if the text is invalid. It is for rules that are constants of a program.
func MustRule(text string) Rule {
	r, err := ParseRule(text)
	if err != nil {
		panic(err)
	}
	return r
}

// The values of the clause left.
const (
	emptyTags = "empty_tags"
	closeTag  = "close_tag"
)

// String returns the text of the rule, or "" for the zero Rule.
func (r Rule) String() string {
	if r.scope == unspecified {
		return ""
	}
	s := r.base()
	if r.tools != unspecified {
		s += "; tools: " + r.tools.String()
	}
	if r.off != unspecified {
		s += "; off: " + r.off.String()
	}
	if t := r.toggle; t.name != "" {
		s += fmt.Sprintf("; %s=%t: %s", t.name, t.keep, t.wide)
		if t.narrow != r.scope {
			s += fmt.Sprintf("; %s=%t: %s", t.name, !t.keep, t.narrow)
		}
	}
	if r.remnant != "" {
		s += "; left: " + r.remnant
	}
	return s
}

// base returns the first clause.
func (r Rule) base() string {
	if r.scope == lastN {
		return fmt.Sprintf("last_n(%d)", r.n)
	}
	return r.scope.String()
}

// at returns r with its variable set to a value.
func (r Rule) at(value bool) Rule {
	r.scope = r.toggle.narrow
	if value == r.toggle.keep {
		r.scope = r.toggle.wide
	}
	return r
}

// effective returns the scope of a request with or without tools.
func (r Rule) effective(tools bool) scope {
	if tools && r.tools != unspecified {
		return r.tools
	}
	return r.scope
}

// covers reports whether r keeps at least the reasoning that o keeps.
func (r Rule) covers(o Rule) bool {
	for _, tools := range []bool{false, true} {
		a, b := r.effective(tools), o.effective(tools)
		if !a.covers(b) && !(a == lastN && b == lastN && r.n >= o.n) {
			return false
		}
	}
	return true
}

// AppendKept appends to dst, for each turn, whether it has reasoning that the rule keeps. tools reports whether the
// request declares tools. The zero Rule keeps nothing. Cost: linear in the number of turns; no allocation if dst has
// enough capacity.
func (r Rule) AppendKept(dst []bool, turns []Turn, tools bool) []bool {
	s := r.effective(tools)
	from := 0 // turns before it are dropped
	withCalls := false
	switch s {
	case all:
	case sinceUser, sinceUserCalls:
		from, withCalls = after(turns, func(t Turn) bool { return t.Start }), s == sinceUserCalls
	case sinceFinal:
		from = after(turns, final)
	case firstFinal:
		last := after(turns, func(t Turn) bool { return t.Assistant })
		if last > 0 && final(turns[last-1]) {
			for from < len(turns) && !final(turns[from]) {
				from++
			}
			from++
		}
	case calls:
		from, withCalls = len(turns), true
	case lastTurn:
		from = after(turns, func(t Turn) bool { return t.Assistant }) - 1
	case lastN:
		from = lastChains(turns, r.n)
	default:
		from = len(turns)
	}
	for i, t := range turns {
		dst = append(dst, t.Assistant && t.Reasoning && (i >= from || withCalls && t.Calls))
	}
	return dst
}

func final(t Turn) bool { return t.Assistant && !t.Calls }

// after returns the index after the last turn for which is returns true, or 0.
func after(turns []Turn, is func(Turn) bool) int {
	for i := len(turns); i > 0; i-- {
		if is(turns[i-1]) {
			return i
		}
	}
	return 0
}

// lastChains returns the index of the first turn of the last n chains with reasoning.
func lastChains(turns []Turn, n int) int {
	counted := false
	from := len(turns)
	for i := len(turns) - 1; i >= 0; i-- {
		switch t := turns[i]; {
		case t.Start:
			counted = false
		case t.Assistant && t.Reasoning:
			if !counted {
				if n--; n < 0 {
					return from
				}
				counted = true
			}
			from = i
		}
	}
	return from
}
