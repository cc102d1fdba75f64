// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strings"
)

// Observations holds observations of a chat template, made by rendering conversations.
type Observations struct {
	// Key reports that the template prints reasoning from a field of the message, such as reasoning_content. Inline
	// reports that it reads no such field, and prints reasoning between tags in the text of some message.
	Key, Inline bool
	// Printed lists conversations, separated by spaces, with the turns whose reasoning was printed: a letter per turn,
	// u for a user, t for the results of tools, a for a final turn and c for a turn with calls, or A and C if the
	// reasoning was printed. Further clauses hold the lists for other situations, with keys as in the text of a [Rule].
	// If tools or off is absent, it equals the first clause; off tools equals tools; and a value of a variable equals
	// the first clause:
	//
	//	uau uCt uauA; tools: uAu uCt uAuA; off: uau uct uaua; off tools: …; clear_thinking=false: …; clear_thinking=true: …
	Printed string
	// Left is the text that the template prints in place of dropped reasoning, such as <think></think>.
	Left string
	// Thinking lists the variables that turn reasoning on and off, in order of precedence; nil means enable_thinking
	// and thinking. OffByDefault reports that reasoning is off unless the request turns it on.
	Thinking     []string
	OffByDefault bool
}

// Template describes how a chat template treats past reasoning. The zero Template is unknown. [Infer] creates others.
type Template struct {
	reads        reads
	rule         Rule // the reasoning that it prints, of the reasoning that it reads
	thinking     []string
	offByDefault bool
}

// reads specifies where a template reads past reasoning.
type reads uint8

const (
	unknown  reads = iota
	fromKey        // from a field of the message
	fromText       // between tags in the text, some of which it drops
	verbatim       // nowhere, but it prints the text unchanged
	nowhere        // nowhere, and it drops tags in the text
)

// Infer returns the Template that matches the observations. If no scope of a [Rule] matches the printed reasoning of a
// clause, that part of the template's rule is unspecified and the family's rule is used. Infer returns an error if the
// syntax of o.Printed is invalid.
func Infer(o Observations) (Template, error) {
	t := Template{thinking: o.Thinking, offByDefault: o.OffByDefault}
	rule, err := inferRule(o.Printed)
	if err != nil {
		return Template{}, fmt.Errorf("replay: observed %.200q: %w", o.Printed, err)
	}
	switch t.rule = rule; {
	case o.Left == "":
	case strings.HasPrefix(o.Left, "</"):
		t.rule.remnant = closeTag
	default:
		t.rule.remnant = emptyTags
	}
	switch {
	case o.Key:
		t.reads = fromKey
	case o.Inline && rule.scope == all && rule.tools == unspecified:
		t.reads = verbatim
	case o.Inline:
		t.reads = fromText
	default:
		t.reads = nowhere
	}
	return t, nil
}

// inferRule returns the rule that matches the printed reasoning.
func inferRule(printed string) (r Rule, err error) {
	const plain, tools, off, offTools, wide, narrow = 0, 1, 2, 3, 4, 5
	like := [...]int{tools: plain, off: plain, offTools: tools, wide: plain, narrow: plain}
	var found [6]scope
	var known [6]bool
	for i, clause := range strings.Split(printed, ";") {
		key, list, ok := strings.Cut(clause, ":")
		if !ok {
			key, list = "", clause
		}
		key = strings.TrimSpace(key)
		at := -1
		switch name, value, isVar := strings.Cut(key, "="); {
		case key == "" && i == 0:
			at = plain
		case key == "tools":
			at = tools
		case key == "off":
			at = off
		case key == "off tools":
			at = offTools
		case isVar && name != "" && (value == "true" || value == "false") && r.toggle.name == "":
			at, r.toggle.name, r.toggle.keep = wide, name, value == "true"
		case isVar && r.toggle.name == name && value == fmt.Sprint(!r.toggle.keep):
			at = narrow
		}
		if at < 0 || known[at] {
			return Rule{}, fmt.Errorf("clause %d: unknown or repeated key %q", i+1, key)
		}
		known[at] = true
		if found[at], err = inferScope(list); err != nil {
			return Rule{}, fmt.Errorf("clause %d: %w", i+1, err)
		}
	}
	for i := tools; i < len(found); i++ {
		if !known[i] {
			found[i] = found[like[i]]
		}
	}
	r.scope = found[plain]
	if found[tools] != found[plain] {
		r.tools = found[tools]
	}
	if found[off] != found[plain] || found[offTools] != found[tools] {
		r.off = found[off]
	}
	if r.toggle.wide, r.toggle.narrow = found[wide], found[narrow]; r.toggle.name == "" || found[wide] == found[narrow] {
		r.toggle = toggle{}
	}
	return r, nil
}

// inferScope returns the first scope that keeps exactly the printed reasoning of all conversations in the list, or
// unspecified. Conversations that end with a final turn are not requests, and some templates treat their last message
// differently: if they exclude every scope, they are ignored.
func inferScope(list string) (scope, error) {
	var talks [][]Turn
	var shown [][]bool
	for _, talk := range strings.Fields(list) {
		var turns []Turn
		var printed []bool
		for _, letter := range talk {
			switch letter {
			case 'u':
				turns = append(turns, Turn{Start: true})
			case 't':
				turns = append(turns, Turn{})
			case 'a', 'A', 'c', 'C':
				turns = append(turns, Turn{Assistant: true, Reasoning: true, Calls: letter|0x20 == 'c'})
			default:
				return 0, fmt.Errorf("conversation %q: unknown letter %q", talk, letter)
			}
			printed = append(printed, letter == 'A' || letter == 'C')
		}
		talks, shown = append(talks, turns), append(shown, printed)
	}
	for _, answered := range []bool{true, false} {
		for _, s := range []scope{none, all, sinceUser, sinceFinal, firstFinal, calls, sinceUserCalls, lastTurn} {
			if explains(s, talks, shown, answered) {
				return s, nil
			}
		}
	}
	return unspecified, nil
}

// explains reports whether a scope keeps exactly the reasoning that was shown. If answered is false, it ignores
// conversations that end with a final turn.
func explains(s scope, talks [][]Turn, shown [][]bool, answered bool) bool {
	var kept []bool
	for i, turns := range talks {
		if !answered && final(turns[len(turns)-1]) {
			continue
		}
		kept = Rule{scope: s}.AppendKept(kept[:0], turns, false)
		for k := range kept {
			if kept[k] != shown[i][k] {
				return false
			}
		}
	}
	return true
}
