// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var scopes = []scope{unspecified, none, sinceUser, sinceFinal, firstFinal, calls, sinceUserCalls, lastTurn, lastN, all}

// conversation draws any list of turns, including lists that no API accepts.
func conversation() *rapid.Generator[[]Turn] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Turn {
		switch k := rapid.IntRange(0, 7).Draw(t, "kind"); k {
		case 0:
			return Turn{}
		case 1, 2:
			return Turn{Start: true}
		case 3:
			return Turn{}
		default:
			return Turn{Assistant: true, Reasoning: k > 4, Calls: rapid.Bool().Draw(t, "calls")}
		}
	}), 0, 14)
}

// naive is a simple implementation of each scope for one turn.
func naive(scope scope, n int, turns []Turn, i int) bool {
	later := func(from int, is func(Turn) bool) bool {
		for _, t := range turns[from:] {
			if is(t) {
				return true
			}
		}
		return false
	}
	isFinal := func(t Turn) bool { return t.Assistant && !t.Calls }
	isAssistant := func(t Turn) bool { return t.Assistant }
	isStart := func(t Turn) bool { return t.Start }
	if !turns[i].Assistant || !turns[i].Reasoning {
		return false
	}
	switch scope {
	case all:
		return true
	case sinceUser:
		return !later(i+1, isStart)
	case sinceFinal:
		return !later(i, isFinal)
	case firstFinal:
		lastIsFinal := false
		for _, t := range turns {
			if isAssistant(t) {
				lastIsFinal = isFinal(t)
			}
		}
		if !lastIsFinal {
			return true
		}
		for _, t := range turns[:i] {
			if isFinal(t) {
				return true
			}
		}
		return false
	case calls:
		return turns[i].Calls
	case sinceUserCalls:
		return turns[i].Calls || !later(i+1, isStart)
	case lastTurn:
		return !later(i+1, isAssistant)
	case lastN:
		chain := func(i int) (c int) {
			for _, t := range turns[:i] {
				if isStart(t) {
					c++
				}
			}
			return c
		}
		seenAfter := map[int]bool{}
		for k, t := range turns {
			if isAssistant(t) && t.Reasoning && chain(k) > chain(i) {
				seenAfter[chain(k)] = true
			}
		}
		return len(seenAfter) < n
	}
	return false
}

func TestDecideIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := conversation().Draw(t, "turns")
		r := Rule{scope: rapid.SampledFrom(scopes).Draw(t, "scope"), n: rapid.IntRange(0, 4).Draw(t, "n")}
		other := rapid.Bool().Draw(t, "other with tools")
		if other {
			r.tools = rapid.SampledFrom(scopes[1:]).Draw(t, "tools scope")
		}
		for _, tools := range []bool{false, true} {
			scope := r.scope
			if tools && other {
				scope = r.tools
			}
			got := r.AppendKept([]bool{true}, turns, tools)
			require.Len(t, got, len(turns)+1)
			require.True(t, got[0], "it appends")
			for i := range turns {
				require.Equal(t, naive(scope, r.n, turns, i), got[i+1], "%v turn %d of %+v", scope, i, turns)
			}
		}
	})
}

func TestCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := conversation().Draw(t, "turns")
		a := Rule{scope: rapid.SampledFrom(scopes).Draw(t, "a"), n: rapid.IntRange(0, 3).Draw(t, "n")}
		b := Rule{scope: rapid.SampledFrom(scopes).Draw(t, "b"), n: rapid.IntRange(0, 3).Draw(t, "m")}
		if !a.covers(b) {
			return
		}
		wide := a.AppendKept(nil, turns, false)
		for i, keep := range b.AppendKept(nil, turns, false) {
			require.True(t, !keep || wide[i], "%v covers %v, not turn %d of %+v", a, b, i, turns)
		}
	})
}

// TestCoversIsExact tests that scope.covers is also a necessary condition, over all short conversations.
func TestCoversIsExact(t *testing.T) {
	kinds := []Turn{
		{Start: true}, {}, {Assistant: true, Reasoning: true, Calls: true}, {Assistant: true, Reasoning: true}, {Assistant: true},
	}
	var keeps [all + 1][]bool
	var extend func(turns []Turn)
	extend = func(turns []Turn) {
		for s := none; s <= all; s++ {
			keeps[s] = Rule{scope: s, n: 1}.AppendKept(keeps[s], turns, false)
		}
		if len(turns) < 5 {
			for _, k := range kinds {
				extend(append(turns[:len(turns):len(turns)], k))
			}
		}
	}
	extend(nil)
	for a := none; a <= all; a++ {
		for b := none; b <= all; b++ {
			want := true
			for i, keep := range keeps[b] {
				want = want && (!keep || keeps[a][i])
			}
			if a != lastN && b != lastN {
				require.Equal(t, want, a.covers(b), "%v covers %v", a, b)
			}
		}
	}
}

// TestPlanIsConsistent tests for any preference that a plan keeps only reasoning that is printed, strips only reasoning
// that would be printed, and follows the preference if possible.
func TestPlanIsConsistent(t *testing.T) {
	rule := rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{scope: rapid.SampledFrom(scopes).Draw(t, "scope"), n: 1}
		if rapid.Bool().Draw(t, "switch") {
			r.toggle = toggle{"v", rapid.Bool().Draw(t, "keep"), all, r.scope}
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		m := Model{Configured: rule.Draw(t, "configured"), Family: rule.Draw(t, "family")}
		m.Template.reads, m.Template.rule = reads(rapid.IntRange(0, int(nowhere)).Draw(t, "reads")), rule.Draw(t, "template")
		w := Preference{rule: Rule{scope: rapid.SampledFrom([]scope{unspecified, sinceUser, lastN, all}).Draw(t, "preferred"), n: 2}, from: "here"}
		if rapid.Bool().Draw(t, "var") {
			v := rapid.SampledFrom(history[:]).Draw(t, "which")
			w.Vars = map[string]bool{v.name: v.keep}
		}
		p := NewPlan(m, w)
		turns := conversation().Draw(t, "turns")
		keeps, prints := p.Rule.AppendKept(nil, turns, false), p.Printed.AppendKept(nil, turns, false)
		for i, f := range p.AppendOutcomes(nil, turns, false) {
			want := None
			if turns[i].Assistant && turns[i].Reasoning {
				want = [2][2]Outcome{{Dropped, Stripped}, {Refused, Kept}}[b2i(keeps[i])][b2i(prints[i])]
			}
			require.Equal(t, want, f)
			require.True(t, f != Refused || len(p.Notes) > 0 || p.Printed.scope == unspecified, "refused without a note: %+v", p)
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestDecideAllocatesNothing(t *testing.T) {
	turns := make([]Turn, 1000)
	for i := range turns {
		turns[i] = Turn{Start: i%4 == 1, Assistant: i%4 == 3, Reasoning: true, Calls: i%8 == 3}
	}
	dst := make([]bool, 0, len(turns))
	for _, s := range scopes {
		require.Zero(t, testing.AllocsPerRun(10, func() { Rule{scope: s, n: 3}.AppendKept(dst, turns, true) }), s)
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "stripped", Stripped.String())
	require.Equal(t, "outcome(99)", Outcome(99).String())
	require.Equal(t, len(scopeNames), int(widest)+1)
}

func TestParseRule(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Rule
	}{
		{"", Rule{}},
		{"all", Rule{scope: all}},
		{"last_n(3)", Rule{scope: lastN, n: 3}},
		{"since_user; tools: all; off: none; drop_thinking=false: all; left: close_tag",
			Rule{scope: sinceUser, tools: all, off: none, toggle: toggle{"drop_thinking", false, all, sinceUser}, remnant: closeTag}},
		{"all; preserve_thinking=true: all; preserve_thinking=false: since_user",
			Rule{scope: all, toggle: toggle{"preserve_thinking", true, all, sinceUser}}},
	} {
		got, err := ParseRule(tt.text)
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, got)
		require.Equal(t, tt.text, got.String())
	}
	spaced, err := ParseRule(" since_user ;off:none; left : empty_tags")
	require.NoError(t, err)
	require.Equal(t, "since_user; off: none; left: empty_tags", spaced.String())
	for text, want := range map[string]string{
		"some":                           `replay: rule "some": clause 1: "some" is not a scope`,
		"tools: all":                     `replay: rule "tools: all": clause 1: the first clause, and only it, is a scope without a key`,
		"all; none":                      `replay: rule "all; none": clause 2: the first clause, and only it, is a scope without a key`,
		"all;":                           `replay: rule "all;": clause 2: the first clause, and only it, is a scope without a key`,
		"last_n":                         `replay: rule "last_n": clause 1: "last_n" is not a scope`,
		"last_n(0)":                      `replay: rule "last_n(0)": clause 1: "last_n(0)": last_n needs a positive number in parentheses`,
		"all; off: widest":               `replay: rule "all; off: widest": clause 2: widest is for the first clause only`,
		"all; off: last_n(1)":            `replay: rule "all; off: last_n(1)": clause 2: last_n is for the first clause only`,
		"all; left: x":                   `replay: rule "all; left: x": left: "x" is neither empty_tags nor close_tag`,
		"all; v: none":                   `replay: rule "all; v: none": clause 2: key "v" is not tools, off, left, NAME=true or NAME=false`,
		"all; v=1: none":                 `replay: rule "all; v=1: none": clause 2: key "v=1" is not tools, off, left, NAME=true or NAME=false`,
		"all; v=true: all; v=true: none": `replay: rule "all; v=true: all; v=true: none": clause 3: key "v=true": only one variable is possible, with each value once`,
		"all; v=true: all; w=true: none": `replay: rule "all; v=true: all; w=true: none": clause 3: key "w=true": only one variable is possible, with each value once`,
	} {
		got, err := ParseRule(text)
		require.EqualError(t, err, want)
		require.Zero(t, got)
		require.Panics(t, func() { MustRule(text) })
	}
}

// TestRuleRoundTrip tests that ParseRule and Rule.String are inverse.
func TestRuleRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, from []scope) scope { return rapid.SampledFrom(from).Draw(t, name) }
		plain := []scope{none, sinceUser, sinceFinal, firstFinal, calls, sinceUserCalls, lastTurn, all}
		r := Rule{scope: pick("scope", scopes[1:]), tools: pick("tools", append(plain, unspecified)), off: pick("off", append(plain, unspecified)),
			remnant: rapid.SampledFrom([]string{"", emptyTags, closeTag}).Draw(t, "left")}
		if r.scope == lastN {
			r.n = rapid.IntRange(1, 9).Draw(t, "n")
		}
		if rapid.Bool().Draw(t, "variable") {
			r.toggle = toggle{"v", rapid.Bool().Draw(t, "keep"), pick("wide", plain), pick("narrow", append(plain, r.scope))}
			if r.toggle.narrow == lastN {
				r.toggle.narrow = r.scope
			}
		}
		got, err := ParseRule(r.String())
		require.NoError(t, err, r.String())
		require.Equal(t, r, got, r.String())
	})
}

func TestInfer(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Observations
		want Template
	}{
		{"nothing printed", Observations{}, Template{reads: nowhere, rule: Rule{scope: none}}},
		{"everything", Observations{Key: true, Printed: "uAu uCt uCtAu"}, Template{reads: fromKey, rule: Rule{scope: all}}},
		{"since the user", Observations{Key: true, Printed: "uau uCt uctau uctu uCtCt uauCt uauau uA"}, Template{reads: fromKey, rule: Rule{scope: sinceUser}}},
		{"since the answer", Observations{Key: true, Printed: "uau uCt uctau uCtu"}, Template{reads: fromKey, rule: Rule{scope: sinceFinal}}},
		{"harmony's library", Observations{Key: true, Printed: "uau uCt uctau uCtu uAuCt uauAu"}, Template{reads: fromKey, rule: Rule{scope: firstFinal}}},
		{"an answer at the end is like nothing else", Observations{Key: true, Printed: "uAu uCt ua"}, Template{reads: fromKey, rule: Rule{scope: all}}},
		{"unclear", Observations{Key: true, Printed: "uAu uct"}, Template{reads: fromKey}},
		{"with tools and off", Observations{Key: true, Printed: "uau uCt; tools: uAu uCt; off: uau uct", Left: "</think>"},
			Template{reads: fromKey, rule: Rule{scope: sinceUser, tools: all, off: none, remnant: closeTag}}},
		{"off with tools only", Observations{Key: true, Printed: "uau uct; tools: uAu uCt; off tools: uau uct", Left: "<think></think>"},
			Template{reads: fromKey, rule: Rule{scope: none, tools: all, off: none, remnant: emptyTags}}},
		{"a variable", Observations{Key: true, Printed: "uAu uCt; preserve_thinking=true: uAu uCt; preserve_thinking=false: uau uCt", Thinking: []string{"thinking"}, OffByDefault: true},
			Template{reads: fromKey, rule: MustRule("all; preserve_thinking=true: all; preserve_thinking=false: since_user"), thinking: []string{"thinking"}, offByDefault: true}},
		{"a variable without effect", Observations{Key: true, Printed: "uAu uCt; v=true: uAu uCt"}, Template{reads: fromKey, rule: Rule{scope: all}}},
		{"text as it is", Observations{Inline: true, Printed: "uAu uCt"}, Template{reads: verbatim, rule: Rule{scope: all}}},
		{"text, cut", Observations{Inline: true, Printed: "uau uCt"}, Template{reads: fromText, rule: Rule{scope: sinceUser}}},
		{"text, cut without tools", Observations{Inline: true, Printed: "uAu uCt; tools: uau uCt"}, Template{reads: fromText, rule: Rule{scope: all, tools: sinceUser}}},
	} {
		got, err := Infer(tt.o)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
	for text, want := range map[string]string{
		"uxu":                       `replay: observed "uxu": clause 1: conversation "uxu": unknown letter 'x'`,
		"uAu; what: uAu":            `replay: observed "uAu; what: uAu": clause 2: unknown or repeated key "what"`,
		"uAu; tools: u; tools: u":   `replay: observed "uAu; tools: u; tools: u": clause 3: unknown or repeated key "tools"`,
		"uAu; v=true: u; w=true: u": `replay: observed "uAu; v=true: u; w=true: u": clause 3: unknown or repeated key "w=true"`,
	} {
		_, err := Infer(Observations{Printed: text})
		require.EqualError(t, err, want)
	}
}
