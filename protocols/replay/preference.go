// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Preference holds the settings of a request for past reasoning. The zero Preference specifies nothing.
type Preference struct {
	// Vars are the template variables that the request sets: those about past reasoning, which [ParsePreference] lists, and
	// enable_thinking and thinking.
	Vars map[string]bool
	// Thinking specifies whether the model should reason in its response, according to fields of the API, or is nil if
	// unspecified. [ParsePreference] leaves it nil. A variable that the template reads takes precedence.
	Thinking *bool

	rule Rule   // the rule that fields of the API specify: since_user, last_n(N) or all
	from string // the field that specified rule
}

// history are the template variables about past reasoning, with the value that keeps it.
var history = [...]struct {
	name string
	keep bool
}{
	{"preserve_thinking", true},          // Qwen3.6 and later, Gemma 4, Kimi K2.6
	{"clear_thinking", false},            // GLM-4.7 and later
	{"truncate_history_thinking", false}, // Nemotron 3
	{"drop_thinking", false},             // DeepSeek V3.2 and later
	{"keep_past_thinking", true},         // LFM2
	{"auto_drop_analysis", false},        // gpt-oss
}

// thinking are the template variables that turn reasoning on and off.
var thinking = [...]string{"enable_thinking", "thinking"}

// ParsePreference reads the preference of a request in any API. field returns the raw JSON at a path of field names, or
// nil if absent, as the method Field of *block.Request does. The fields read are:
//
//	reasoning.context                            auto, current_turn, all_turns (Responses)
//	context_management.edits[]                   clear_thinking_20251015 with keep (Messages)
//	chat_template_kwargs, chat_template_args     booleans (engines, Dynamo): enable_thinking, thinking, and those about past
//	                                             reasoning: preserve_thinking, clear_thinking, truncate_history_thinking,
//	                                             drop_thinking, keep_past_thinking, auto_drop_analysis
//
// A variable that the model's template does not read is treated as the preference that it expresses in other templates.
// If both fields for template variables are present, only chat_template_kwargs is read.
//
// ParsePreference ignores an invalid field and calls invalid, unless nil, with its path, such as reasoning.context, and
// the problem. It also calls invalid for a variable that is not a boolean, but does not ignore it, because the template
// receives it anyway: as in templates, its value is true unless it is zero, empty or null.
func ParsePreference(field func(path ...string) []byte, invalid func(path, problem string)) Preference {
	if invalid == nil {
		invalid = func(string, string) {}
	}
	var p Preference
	if raw := field("reasoning", "context"); present(raw) {
		const path = "reasoning.context"
		switch s, ok := text(raw); {
		case !ok:
			invalid(path, "is not a string")
		case s == "all_turns":
			p.rule.scope, p.from = all, path
		case s == "current_turn":
			p.rule.scope, p.from = sinceUser, path
		case s != "auto":
			invalid(path, fmt.Sprintf("%.40q is not auto, current_turn or all_turns", s))
		}
	}
	p.edits(field("context_management", "edits"), invalid)
	if name, raw := kwargs(field); raw != nil {
		p.kwargs(name, raw, invalid)
	}
	return p
}

// kwargs returns the variables that a request passes to its template, as raw JSON, and the name of the field that
// contains them: chat_template_kwargs, as in vLLM and SGLang, or chat_template_args, as in Dynamo. raw is nil if both
// are absent.
func kwargs(field func(path ...string) []byte) (name string, raw []byte) {
	for _, name := range []string{"chat_template_kwargs", "chat_template_args"} {
		if raw := field(name); present(raw) {
			return name, raw
		}
	}
	return "", nil
}

func present(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

func text(raw []byte) (s string, ok bool) {
	return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}

// edits reads the edits of Anthropic's context management.
func (p *Preference) edits(raw []byte, invalid func(path, problem string)) {
	if !present(raw) {
		return
	}
	const at = "context_management.edits"
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		invalid(at, "is not a list")
		return
	}
	found := false
	for i, raw := range list {
		path := at + "[" + strconv.Itoa(i) + "]"
		var edit map[string]json.RawMessage
		if json.Unmarshal(raw, &edit) != nil || edit == nil {
			invalid(path, "is not an object")
			continue
		}
		if t, _ := text(edit["type"]); t != "clear_thinking_20251015" {
			continue // another kind of edit
		}
		if found {
			invalid(path, "is a second clear_thinking edit")
			continue
		}
		found = true
		s, n, why := keep(edit["keep"])
		if why != "" {
			invalid(path+".keep", why)
			continue
		}
		p.rule.scope, p.rule.n, p.from = s, n, path
	}
}

// keep parses the field keep of a clear_thinking edit. If it is absent, the edit keeps one turn.
func keep(raw json.RawMessage) (s scope, n int, why string) {
	if !present(raw) {
		return lastN, 1, ""
	}
	if s, ok := text(raw); ok {
		if s != "all" {
			return 0, 0, fmt.Sprintf("%.40q is not all", s)
		}
		return all, 0, ""
	}
	var k map[string]json.RawMessage
	if json.Unmarshal(raw, &k) != nil || k == nil {
		return 0, 0, "is neither all nor an object"
	}
	switch t, _ := text(k["type"]); t {
	case "all":
		return all, 0, ""
	case "thinking_turns":
		n, err := strconv.Atoi(string(k["value"]))
		if err != nil || n <= 0 {
			return 0, 0, "value is not a positive number of turns"
		}
		return lastN, n, ""
	default:
		return 0, 0, "type is not thinking_turns"
	}
}

// kwargs reads template variables.
func (p *Preference) kwargs(name string, raw []byte, invalid func(path, problem string)) {
	var vars map[string]json.RawMessage
	if json.Unmarshal(raw, &vars) != nil {
		invalid(name, "is not an object")
		return
	}
	set := func(key string) {
		raw, ok := vars[key]
		if !ok {
			return
		}
		value := truth(raw)
		if s := string(raw); s != "true" && s != "false" && s != "null" {
			invalid(name+"."+key, fmt.Sprintf("is not a boolean: treated as %t", value))
		}
		if p.Vars == nil {
			p.Vars = make(map[string]bool)
		}
		p.Vars[key] = value
	}
	for _, h := range history {
		set(h.name)
	}
	for _, key := range thinking {
		set(key)
	}
}

// truth returns the boolean that a template converts a value to.
func truth(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return true // a number out of range
	}
	switch v := v.(type) {
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return false
}
