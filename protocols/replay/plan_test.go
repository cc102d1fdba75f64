// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fieldOf returns a function that does what (*block.Request).Field does.
func fieldOf(body string) func(path ...string) []byte {
	return func(path ...string) []byte {
		raw := json.RawMessage(body)
		for _, p := range path {
			var m map[string]json.RawMessage
			if json.Unmarshal(raw, &m) != nil {
				return nil
			}
			raw = m[p]
		}
		return raw
	}
}

func TestParsePreference(t *testing.T) {
	const edits = `{"context_management":{"edits":[{"type":"clear_tool_uses_20250919"},%s]}}`
	all := Preference{rule: MustRule("all"), from: "context_management.edits[1]"}
	last := func(n int) Preference {
		return Preference{rule: MustRule(fmt.Sprintf("last_n(%d)", n)), from: "context_management.edits[1]"}
	}
	edit := func(keep string) string { return fmt.Sprintf(edits, `{"type":"clear_thinking_20251015"`+keep+`}`) }
	for _, tt := range []struct {
		name, body string
		want       Preference
		faults     []string
	}{
		{"nothing", `{}`, Preference{}, nil},
		{"nulls", `{"reasoning":{"context":null},"context_management":null,"chat_template_kwargs":null}`, Preference{}, nil},
		{"all turns", `{"reasoning":{"context":"all_turns"}}`, Preference{rule: MustRule("all"), from: "reasoning.context"}, nil},
		{"current turn", `{"reasoning":{"context":"current_turn"}}`, Preference{rule: MustRule("since_user"), from: "reasoning.context"}, nil},
		{"auto", `{"reasoning":{"context":"auto"}}`, Preference{}, nil},
		{"a word", `{"reasoning":{"context":"some"}}`, Preference{}, []string{`reasoning.context: "some" is not auto, current_turn or all_turns`}},
		{"a number", `{"reasoning":{"context":7}}`, Preference{}, []string{"reasoning.context: is not a string"}},
		{"keep all", edit(`,"keep":"all"`), all, nil},
		{"keep all as an object", edit(`,"keep":{"type":"all"}`), all, nil},
		{"keep two", edit(`,"keep":{"type":"thinking_turns","value":2}`), last(2), nil},
		{"keep by default", edit(``), last(1), nil},
		{"keep none", edit(`,"keep":{"type":"thinking_turns","value":0}`), Preference{}, []string{"context_management.edits[1].keep: value is not a positive number of turns"}},
		{"keep text", edit(`,"keep":{"type":"thinking_turns","value":"2"}`), Preference{}, []string{"context_management.edits[1].keep: value is not a positive number of turns"}},
		{"keep a word", edit(`,"keep":"some"`), Preference{}, []string{`context_management.edits[1].keep: "some" is not all`}},
		{"keep a list", edit(`,"keep":[]`), Preference{}, []string{"context_management.edits[1].keep: is neither all nor an object"}},
		{"keep tokens", edit(`,"keep":{"type":"tokens","value":2}`), Preference{}, []string{"context_management.edits[1].keep: type is not thinking_turns"}},
		{"two edits", fmt.Sprintf(edits, `{"type":"clear_thinking_20251015","keep":"all"},{"type":"clear_thinking_20251015"},3`), all,
			[]string{"context_management.edits[2]: is a second clear_thinking edit", "context_management.edits[3]: is not an object"}},
		{"no list", `{"context_management":{"edits":{}}}`, Preference{}, []string{"context_management.edits: is not a list"}},
		{"variables", `{"chat_template_kwargs":{"clear_thinking":false,"preserve_thinking":true,"x":1,"enable_thinking":false}}`,
			Preference{Vars: map[string]bool{"preserve_thinking": true, "clear_thinking": false, "enable_thinking": false}}, nil},
		{"Dynamo's member", `{"chat_template_args":{"drop_thinking":false,"thinking":true,"truncate_history_thinking":false}}`,
			Preference{Vars: map[string]bool{"truncate_history_thinking": false, "drop_thinking": false, "thinking": true}}, nil},
		{"both members: templates get the first", `{"chat_template_kwargs":{"x":1},"chat_template_args":{"drop_thinking":false}}`, Preference{}, nil},
		{"wrong types count as templates take them", `{"chat_template_kwargs":{"preserve_thinking":{ },"clear_thinking":"false","truncate_history_thinking":[ 0 ],"drop_thinking":-0.0,"keep_past_thinking":null,"thinking":1}}`,
			Preference{Vars: map[string]bool{"preserve_thinking": false, "clear_thinking": true, "truncate_history_thinking": true, "drop_thinking": false, "keep_past_thinking": false, "thinking": true}},
			[]string{
				"chat_template_kwargs.preserve_thinking: is not a boolean: treated as false", "chat_template_kwargs.clear_thinking: is not a boolean: treated as true",
				"chat_template_kwargs.truncate_history_thinking: is not a boolean: treated as true",
				"chat_template_kwargs.drop_thinking: is not a boolean: treated as false", "chat_template_kwargs.thinking: is not a boolean: treated as true",
			}},
		{"no object", `{"chat_template_args":[]}`, Preference{}, []string{"chat_template_args: is not an object"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var list []string
			got := ParsePreference(fieldOf(tt.body), func(path, problem string) { list = append(list, path+": "+problem) })
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.faults, list)
			require.Equal(t, got, ParsePreference(fieldOf(tt.body), nil))
		})
	}
}

func FuzzParsePreference(f *testing.F) {
	f.Add(`{"reasoning":{"context":"all_turns"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}}]}}`)
	f.Add(`{"chat_template_kwargs":{"thinking":true},"chat_template_args":{"drop_thinking":"x"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		p := ParsePreference(fieldOf(body), func(path, problem string) {
			require.NotEmpty(t, path)
			require.Less(t, len(problem), 300)
		})
		require.False(t, p.rule.scope == lastN && p.rule.n < 1)
	})
}

func TestNewPlan(t *testing.T) {
	qwen3 := MustRule("since_user")
	glm := MustRule("since_user; clear_thinking=false: all")
	qwen38 := MustRule("all; preserve_thinking=true: all; preserve_thinking=false: since_user")
	gemma := MustRule("since_user; preserve_thinking=true: since_user_calls")
	k3 := MustRule("all; off: none")
	v4 := MustRule("since_user; tools: all; off: none; drop_thinking=false: all")
	reads := func(r Rule) Model {
		return Model{Template: Template{reads: fromKey, rule: r}, Family: qwen3}
	}
	for _, tt := range []struct {
		name  string
		model Model
		body  string
		off   bool
		want  string // rule, what the template prints, variables, notes
	}{
		{"the template before the family", reads(k3), `{}`, false, "all, template all"},
		{"nothing known", Model{}, `{}`, false, "since_user, template all"},
		{"only the family", Model{Family: glm}, `{}`, false, "since_user, template since_user"},
		{"the family's variable", Model{Family: glm}, `{"reasoning":{"context":"all_turns"}}`, false, "all, template all, clear_thinking=false"},
		{"widened", reads(glm), `{"reasoning":{"context":"all_turns"}}`, false, "all, template all, clear_thinking=false"},
		{"the preference is what the template does", reads(glm), `{"reasoning":{"context":"current_turn"}}`, false, "since_user, template since_user"},
		{"narrowed", reads(qwen38), `{"reasoning":{"context":"current_turn"}}`, false, "since_user, template since_user, preserve_thinking=false"},
		{"the request's variable wins", reads(glm), `{"chat_template_kwargs":{"clear_thinking":true},"reasoning":{"context":"all_turns"}}`, false, "since_user, template since_user"},
		{"and needs no help", reads(glm), `{"chat_template_kwargs":{"clear_thinking":false}}`, false, "all, template all"},
		{"another template's variable is a preference", reads(glm), `{"chat_template_kwargs":{"preserve_thinking":true}}`, false, "all, template all, clear_thinking=false"},
		{"another one to narrow", reads(qwen38), `{"chat_template_kwargs":{"clear_thinking":true}}`, false, "since_user, template since_user, preserve_thinking=false"},
		{"Dynamo sends this to all", reads(qwen3), `{"chat_template_args":{"truncate_history_thinking":false}}`, false,
			"all, template since_user, note truncate_history_thinking requests reasoning of scope all, but the template prints scope since_user"},
		{"nearer is better", reads(gemma), `{"reasoning":{"context":"all_turns"}}`, false,
			"all, template since_user_calls, preserve_thinking=true, note reasoning.context requests reasoning of scope all, but the template prints scope since_user_calls"},
		{"two chains of all", reads(qwen38), `{"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":2}}]}}`, false, "last_n, template all"},
		{"two chains, widened", reads(glm), `{"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":2}}]}}`, false, "last_n, template all, clear_thinking=false"},
		{"reasoning off", reads(k3), `{}`, true, "none, template none"},
		{"off, and yet asked for", reads(k3), `{"reasoning":{"context":"all_turns"}}`, true, "all, template none, note reasoning.context requests reasoning of scope all, but the template prints scope none"},
		{"off where it does not matter", reads(glm), `{}`, true, "since_user, template since_user"},
		{"configured", Model{Configured: MustRule("all"), Template: Template{reads: fromKey, rule: glm}}, `{}`, false, "all, template all, clear_thinking=false"},
		{"the preference before the configured rule", Model{Configured: MustRule("none"), Template: Template{reads: fromKey, rule: glm}},
			`{"reasoning":{"context":"all_turns"}}`, false, "all, template all, clear_thinking=false"},
		{"widest", Model{Configured: MustRule("widest"), Template: Template{reads: fromKey, rule: glm}}, `{}`, false, "all, template all, clear_thinking=false"},
		{"widest by default", Model{Configured: MustRule("widest"), Template: Template{reads: fromKey, rule: qwen38}}, `{}`, false, "all, template all"},
		{"widest of one rule", Model{Configured: MustRule("widest"), Template: Template{reads: fromKey, rule: qwen3}}, `{}`, false, "since_user, template since_user"},
		{"widest is not all", Model{Configured: MustRule("widest"), Template: Template{reads: fromKey, rule: gemma}}, `{}`, false, "since_user_calls, template since_user_calls, preserve_thinking=true"},
		{"widest in the text", Model{Configured: MustRule("widest"), Template: Template{reads: verbatim}, Family: qwen3}, `{}`, false, "since_user, template all, inline"},
		{"widest without a template", Model{Configured: MustRule("widest")}, `{}`, false, "since_user, template all"},
		{"the preference before the widest", Model{Configured: MustRule("widest"), Template: Template{reads: fromKey, rule: glm}},
			`{"reasoning":{"context":"current_turn"}}`, false, "since_user, template since_user"},
		{"the variable before the widest", Model{Configured: MustRule("widest"), Template: Template{reads: fromKey, rule: glm}},
			`{"chat_template_kwargs":{"clear_thinking":true}}`, false, "since_user, template since_user"},
		{"with tools", reads(v4), `{}`, false, "since_user, template since_user"},
		{"with tools, asked", reads(v4), `{"reasoning":{"context":"all_turns"}}`, false, "all, template all, drop_thinking=false"},
		{"off by default", Model{Template: Template{reads: fromKey, rule: v4, offByDefault: true}}, `{}`, false, "none, template none"},
		{"on by request", Model{Template: Template{reads: fromKey, rule: v4, offByDefault: true}}, `{"chat_template_kwargs":{"thinking":true}}`, false, "since_user, template since_user"},
		{"the variable that the template looks at", Model{Template: Template{reads: fromKey, rule: k3, thinking: []string{"thinking"}}},
			`{"chat_template_kwargs":{"enable_thinking":true,"thinking":false}}`, false, "none, template none"},
		{"one that it does not", Model{Template: Template{reads: fromKey, rule: k3, thinking: []string{"thinking"}}},
			`{"chat_template_kwargs":{"enable_thinking":false}}`, false, "all, template all"},
		{"the one that wins", Model{Template: Template{reads: fromKey, rule: k3, thinking: []string{"thinking", "enable_thinking"}}},
			`{"chat_template_kwargs":{"enable_thinking":false,"thinking":true}}`, true, "all, template all"},
		{"nothing was to be printed", Model{Template: Template{reads: nowhere}, Family: MustRule("none")}, `{}`, false, "none, template none"},
		{"calls cover the open chain", Model{Configured: MustRule("since_final"), Template: Template{reads: fromKey, rule: MustRule("calls")}},
			`{}`, false, "since_final, template calls"},
		{"a variable that does not help is not set", reads(MustRule("since_user; preserve_thinking=true: since_user; preserve_thinking=false: none")),
			`{"reasoning":{"context":"all_turns"}}`, false, "all, template since_user, note reasoning.context requests reasoning of scope all, but the template prints scope since_user"},
		{"inline by the family", Model{Template: Template{reads: verbatim}, Family: qwen3}, `{}`, false, "since_user, template all, inline"},
		{"inline, all", Model{Template: Template{reads: verbatim}, Family: qwen3}, `{"reasoning":{"context":"all_turns"}}`, false, "all, template all, inline"},
		{"inline, but the family is shown none", Model{Template: Template{reads: verbatim}, Family: MustRule("none"), Configured: MustRule("widest")}, `{}`, false, "none, template none"},
		{"inline on request, but the family is shown none", Model{Template: Template{reads: verbatim}, Family: MustRule("none")}, `{"reasoning":{"context":"all_turns"}}`, false,
			"all, template none, note reasoning.context requests reasoning of scope all, but the template prints scope none"},
		{"a template that cuts the text", Model{Template: Template{reads: fromText, rule: qwen3}, Family: glm}, `{}`, false, "since_user, template since_user, inline"},
		{"no way to write it", Model{Template: Template{reads: verbatim}}, `{}`, false,
			"none, template none, note the template does not print past reasoning, and no other way to include it is known"},
		{"its tags are not known", Model{Template: Template{reads: verbatim}, Family: qwen3, Configured: qwen3, Untagged: true}, `{}`, false,
			"none, template none, note the template does not print past reasoning, and no other way to include it is known"},
		{"nowhere", Model{Template: Template{reads: nowhere}, Family: qwen3}, `{}`, false,
			"since_user, template none, note the template does not print past reasoning, and no other way to include it is known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pref := ParsePreference(fieldOf(tt.body), func(path, problem string) { t.Error(path, problem) })
			if tt.off {
				pref.Thinking = new(bool)
			}
			p := NewPlan(tt.model, pref)
			require.Equal(t, strings.HasPrefix(tt.name, "off") || strings.HasPrefix(tt.name, "reasoning off") || tt.name == "the variable that the template looks at", !p.Thinking)
			got := []string{p.Rule.scope.String(), "template " + p.Printed.scope.String()}
			for name, value := range p.Vars {
				got = append(got, fmt.Sprintf("%s=%t", name, value))
			}
			if p.Inline {
				got = append(got, "inline")
			}
			for _, n := range p.Notes {
				got = append(got, "note "+n)
			}
			require.Equal(t, tt.want, strings.Join(got, ", "))
		})
	}
}
