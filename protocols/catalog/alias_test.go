// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"reflect"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNew(t *testing.T) {
	for name, c := range map[string]struct {
		models []Model
		want   string
	}{
		"empty id":         {[]Model{{}}, `catalog: model "": id: empty`},
		"control":          {[]Model{{ID: "a\nb"}}, `catalog: model "a\nb": id: contains control characters`},
		"high control":     {[]Model{{ID: "a\u0085"}}, `catalog: model "a\u0085": id: contains control characters`},
		"not UTF-8":        {[]Model{{ID: "a\xff"}}, `catalog: model "a\xff": id: not valid UTF-8`},
		"slash at the end": {[]Model{{ID: "org/"}}, `catalog: model "org/": id: must not start or end with a slash`},
		"twice":            {[]Model{{ID: "a"}, {ID: "a", AliasOf: "a"}}, `catalog: model "a": id: duplicate`},
		"of nothing":       {[]Model{{ID: "a", AliasOf: "A"}, {ID: "b"}}, `catalog: model "a": alias_of: unknown model "A"`},
		"of itself":        {[]Model{{ID: "a", AliasOf: "a"}}, `catalog: model "a": alias_of: the alias refers to itself`},
		"a ring":           {[]Model{{ID: "x"}, {ID: "d", AliasOf: "a"}, {ID: "a", AliasOf: "b"}, {ID: "b", AliasOf: "c"}, {ID: "c", AliasOf: "a"}}, `catalog: model "a": alias_of: the alias refers to itself`},
		"word":             {[]Model{{ID: "a", Shell: "bash"}}, `catalog: model "a": shell_type: "bash" is not one of default, local, unified_exec, shell_command, disabled`},
		"old patch tool":   {[]Model{{ID: "a", ApplyPatch: "function"}}, `catalog: model "a": apply_patch_tool_type: "function" is not one of freeform`},
		"mode":             {[]Model{{ID: "a", Truncation: Truncation{Mode: "lines", Limit: 1}}}, `catalog: model "a": truncation_policy.mode: "lines" is not one of bytes, tokens`},
		"limit":            {[]Model{{ID: "a", Truncation: Truncation{Mode: "tokens"}}}, `catalog: model "a": truncation_policy.limit: missing`},
		"negative":         {[]Model{{ID: "a", ContextWindow: -1}}, `catalog: model "a": context_window: negative`},
		"percent":          {[]Model{{ID: "a", EffectivePercent: 101}}, `catalog: model "a": effective_context_window_percent: greater than 100`},
		"input":            {[]Model{{ID: "a", ContextWindow: 9, MaxInputTokens: 10}}, `catalog: model "a": max_input_tokens: greater than the context window`},
		"modality":         {[]Model{{ID: "a", Modalities: []string{"smell"}}}, `catalog: model "a": input_modalities: "smell" is not one of text, image, audio`},
		"effort":           {[]Model{{ID: "a", Efforts: []Effort{{}}}}, `catalog: model "a": supported_reasoning_levels: a level has no effort`},
		"default effort":   {[]Model{{ID: "a", Efforts: []Effort{{Effort: "high"}}, DefaultEffort: "low"}}, `catalog: model "a": default_reasoning_level: "low" is not one of the reasoning levels`},
	} {
		_, err := New(c.models...)
		require.EqualError(t, err, c.want, name)
		require.IsType(t, &Error{}, err)
	}
	c, err := New()
	require.NoError(t, err)
	require.Empty(t, c.Models())
	_, ok := c.Lookup("")
	require.False(t, ok)
	_, ok = new(Catalog).Lookup("a")
	require.False(t, ok)
}

func TestLookup(t *testing.T) {
	given := []Model{
		{ID: "claude-fast", AliasOf: "org/fast", DisplayName: "Fast"},
		{ID: "org/model", ContextWindow: 9, ParallelCalls: yes, Modalities: []string{"text"}},
		{ID: "org/fast", AliasOf: "org/model", ParallelCalls: no, Modalities: []string{}},
	}
	c, err := New(given...)
	require.NoError(t, err)
	m, ok := c.Lookup("claude-fast")
	require.True(t, ok)
	require.Empty(t, gocmp.Diff(&Model{ID: "claude-fast", AliasOf: "org/model", DisplayName: "Fast", ContextWindow: 9, ParallelCalls: no, Modalities: []string{}}, m))
	require.Equal(t, "org/model", m.ServedBy())
	m, ok = c.Lookup("org/model")
	require.True(t, ok)
	require.Equal(t, "org/model", m.ServedBy())
	for _, id := range []string{"Org/Model", "model", "org/model/", ""} {
		_, ok = c.Lookup(id)
		require.False(t, ok, id)
	}
	require.Equal(t, "org/fast", given[0].AliasOf, "the caller's own records stay as they are")
}

// TestInherit sets one field at a time, so that a new field cannot be forgotten.
func TestInherit(t *testing.T) {
	whole := reflect.ValueOf(full)
	for i := range whole.NumField() {
		name := whole.Type().Field(i).Name
		if name == "ID" || name == "AliasOf" {
			continue
		}
		require.False(t, whole.Field(i).IsZero(), "the full record of the tests lacks %s", name)
		base := Model{ID: "base"}
		reflect.ValueOf(&base).Elem().Field(i).Set(whole.Field(i))
		if name == "DefaultEffort" || name == "MaxInputTokens" {
			base.Efforts, base.ContextWindow = full.Efforts, full.ContextWindow
		}
		c, err := New(Model{ID: "alias", AliasOf: "base"}, base)
		require.NoError(t, err, name)
		got, _ := c.Lookup("alias")
		want := base
		want.ID, want.AliasOf = "alias", "base"
		require.Empty(t, gocmp.Diff(&want, got), name)
	}
}

// TestContradictions tests that an alias does not inherit values that contradict its own.
func TestContradictions(t *testing.T) {
	base := Model{ID: "m", ContextWindow: 200, MaxInputTokens: 150, MaxOutputTokens: 90, AutoCompactTokens: 140, Efforts: []Effort{{Effort: "low"}, {Effort: "high"}},
		DefaultEffort: "high", Verbosity: yes, DefaultVerbosity: "low"}
	for name, c := range map[string]struct {
		alias Model
		want  func(m *Model)
	}{
		"smaller window": {Model{ContextWindow: 145}, func(m *Model) { m.ContextWindow, m.MaxInputTokens = 145, 0 }},
		"small window":   {Model{ContextWindow: 100}, func(m *Model) { m.ContextWindow, m.MaxInputTokens, m.AutoCompactTokens = 100, 0, 0 }},
		"larger window":  {Model{ContextWindow: 300}, func(m *Model) { m.ContextWindow = 300 }},
		"a window smaller than the answer": {Model{ContextWindow: 60}, func(m *Model) {
			m.ContextWindow, m.MaxInputTokens, m.MaxOutputTokens, m.AutoCompactTokens = 60, 0, 0, 0
		}},
		"no efforts":      {Model{Efforts: []Effort{}}, func(m *Model) { m.Efforts, m.DefaultEffort = []Effort{}, "" }},
		"another effort":  {Model{Efforts: base.Efforts[:1]}, func(m *Model) { m.Efforts, m.DefaultEffort = m.Efforts[:1], "" }},
		"the same effort": {Model{Efforts: base.Efforts[1:]}, func(m *Model) { m.Efforts = m.Efforts[1:] }},
		"not verbose":     {Model{Verbosity: no}, func(m *Model) { m.Verbosity, m.DefaultVerbosity = no, "" }},
	} {
		c.alias.ID, c.alias.AliasOf = "a", "m"
		got, err := New(base, c.alias)
		require.NoError(t, err, name)
		want := base
		want.ID, want.AliasOf = "a", "m"
		c.want(&want)
		require.Empty(t, gocmp.Diff(want, got.Models()[1]), name)
	}
}

// TestInheritDrawn builds chains of aliases in any order and compares each field with the nearest record in its chain
// that sets it.
func TestInheritDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		list := make([]Model, n)
		up := make([]int, n)
		for i := range list {
			list[i] = drawn(t, fmt.Sprint("m", i))
			list[i].MaxInputTokens, list[i].MaxOutputTokens, list[i].AutoCompactTokens, list[i].DefaultEffort, list[i].DefaultVerbosity = 0, 0, 0, "", "" // these may contradict
			if up[i] = -1; i > 0 && rapid.Bool().Draw(t, "alias") {
				up[i] = rapid.IntRange(0, i-1).Draw(t, "of")
				list[i].AliasOf = list[up[i]].ID
			}
		}
		order := rapid.Permutation(list).Draw(t, "order")
		c, err := New(order...)
		require.NoError(t, err)
		for i, m := range c.Models() {
			require.Equal(t, order[i].ID, m.ID)
		}
		for i := range list {
			got, ok := c.Lookup(list[i].ID)
			require.True(t, ok)
			v := reflect.ValueOf(*got)
			for f := range v.NumField() {
				name := v.Type().Field(f).Name
				k := i
				for up[k] >= 0 && (name == "AliasOf" || reflect.ValueOf(list[k]).Field(f).IsZero()) {
					k = up[k]
				}
				want := reflect.ValueOf(list[k]).Field(f).Interface()
				if name == "AliasOf" && k != i {
					want = list[k].ID
				}
				require.Equal(t, want, v.Field(f).Interface(), "%s of %s", name, got.ID)
			}
		}
		again, err := New(c.Models()...)
		require.NoError(t, err)
		require.Empty(t, gocmp.Diff(c.Models(), again.Models()))
	})
}

// TestLongChain tests that the cost of a long chain of aliases is linear.
func TestLongChain(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	list := make([]Model, n)
	for i := range list {
		list[i].ID = fmt.Sprint(i)
		if i+1 < len(list) {
			list[i].AliasOf = fmt.Sprint(i + 1)
		}
	}
	list[len(list)-1].ContextWindow = 7
	c, err := New(list...)
	require.NoError(t, err)
	m, _ := c.Lookup("0")
	require.Equal(t, int64(7), m.ContextWindow)
	require.Equal(t, fmt.Sprint(n-1), m.ServedBy())
}
