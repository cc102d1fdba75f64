// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A codexField is a field of codex-rs's ModelInfo (protocol/src/openai_models.rs): its type, and the versions of that
// file in which it is required. Versions of 2026, oldest first: 1 is commit 8db0700, with supports_reasoning_summaries;
// 2 has supports_reasoning_summary_parameter in its place; 3, the newest found, has no supports_parallel_tool_calls,
// treats all shells the same, and requires base_instructions in the list instead of the record.
type codexField struct {
	name string
	typ  string
	must string // versions in which it is neither optional nor has a default
}

var codexFields = []codexField{
	{"slug", "string", "123"},
	{"display_name", "string", "123"},
	{"description", "string?", ""},
	{"default_reasoning_level", "string?", ""},
	{"supported_reasoning_levels", "levels", "123"},
	{"shell_type", "default|local|unified_exec|disabled|shell_command", "123"},
	{"visibility", "list|hide|none", "123"},
	{"supported_in_api", "bool", "123"},
	{"priority", "i32", "123"},
	{"availability_nux", "null", ""},
	{"upgrade", "null", ""},
	{"base_instructions", "string", "123"},
	{"supports_reasoning_summaries", "bool", "1"},
	{"supports_reasoning_summary_parameter", "bool", ""},
	{"support_verbosity", "bool", "123"},
	{"default_verbosity", "low|medium|high?", ""},
	{"apply_patch_tool_type", "freeform?", ""},
	{"truncation_policy", "policy", "123"},
	{"supports_parallel_tool_calls", "bool", "12"},
	{"context_window", "i64?", ""},
	{"max_context_window", "i64?", ""},
	{"auto_compact_token_limit", "i64?", ""},
	{"effective_context_window_percent", "i64", ""},
	{"experimental_supported_tools", "strings", "123"},
	{"input_modalities", "modalities", ""},
}

// codexReads returns the error with which Codex would reject a record, or nil.
func codexReads(record map[string]any) error {
	for _, f := range codexFields {
		v, ok := record[f.name]
		if !ok {
			if f.must != "" {
				return fmt.Errorf("%s is missing (states %s)", f.name, f.must)
			}
			continue
		}
		typ, optional := strings.CutSuffix(f.typ, "?")
		if v == nil && optional {
			continue
		}
		if !codexTyped(typ, v) {
			return fmt.Errorf("%s: %v is no %s", f.name, v, f.typ)
		}
	}
	for name := range record {
		if !slices.ContainsFunc(codexFields, func(f codexField) bool { return f.name == name }) {
			return fmt.Errorf("%s is no field", name)
		}
	}
	return nil
}

func codexTyped(typ string, v any) bool {
	each := func(ok func(any) bool) bool {
		list, is := v.([]any)
		return is && !slices.ContainsFunc(list, func(v any) bool { return !ok(v) })
	}
	number := func(low, high float64) bool {
		n, ok := v.(float64)
		return ok && n == math.Trunc(n) && n >= low && n <= high
	}
	switch typ {
	case "string":
		_, ok := v.(string)
		return ok
	case "bool":
		_, ok := v.(bool)
		return ok
	case "null":
		return v == nil
	case "i32":
		return number(math.MinInt32, math.MaxInt32)
	case "i64":
		return number(math.MinInt64, math.MaxInt64)
	case "strings":
		return each(func(v any) bool { return codexTyped("string", v) })
	case "modalities":
		return each(func(v any) bool { return codexTyped("text|image|audio", v) })
	case "levels":
		return each(func(v any) bool {
			level, ok := v.(map[string]any)
			return ok && codexTyped("string", level["effort"]) && level["effort"] != "" && codexTyped("string", level["description"])
		})
	case "policy":
		policy, ok := v.(map[string]any)
		return ok && codexTyped("bytes|tokens", policy["mode"]) && codexTyped("i64", policy["limit"])
	}
	s, ok := v.(string)
	return ok && slices.Contains(strings.Split(typ, "|"), s)
}

// TestCodexReads checks records against Codex's list of fields: with all values known, with none known, and drawn.
func TestCodexReads(t *testing.T) {
	read := func(t require.TestingT, m *Model) map[string]any {
		var record map[string]any
		require.NoError(t, json.Unmarshal(AppendModel(nil, m, Codex), &record))
		require.NoError(t, codexReads(record))
		return record
	}
	for _, f := range codexFields {
		require.Contains(t, read(t, &full), f.name)
	}
	bare := read(t, &Model{ID: "m"})
	require.Greater(t, len(bare["base_instructions"].(string)), 100, "a model without instructions of its own gets some")
	for name := range bare { // every field is required, or null
		f := codexFields[slices.IndexFunc(codexFields, func(f codexField) bool { return f.name == name })]
		require.True(t, f.must != "" || bare[name] == nil, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := drawn(t, "m")
		_, err := New(m)
		require.NoError(t, err)
		read(t, &m)
	})

	for name, change := range map[string]func(map[string]any){ // codexReads must detect these
		"slug is missing":    func(r map[string]any) { delete(r, "slug") },
		"shell_type: zsh":    func(r map[string]any) { r["shell_type"] = "zsh" },
		"priority: 1.5":      func(r map[string]any) { r["priority"] = 1.5 },
		"truncation_policy:": func(r map[string]any) { r["truncation_policy"] = map[string]any{"mode": "bytes"} },
		"color is no field":  func(r map[string]any) { r["color"] = "red" },
	} {
		record := read(t, &full)
		change(record)
		require.ErrorContains(t, codexReads(record), name)
	}
}

// TestCodexReasoning tests that Codex sends a reasoning object to a model with reasoning levels, unless the record
// forbids it.
func TestCodexReasoning(t *testing.T) {
	levels := []Effort{{Effort: "high"}}
	for _, c := range []struct {
		m    Model
		want string
	}{
		{Model{}, `"supports_reasoning_summaries":false,"support_verbosity"`},
		{Model{Efforts: levels}, `"supports_reasoning_summaries":true,"support_verbosity"`},
		{Model{Efforts: levels, ReasoningSummaries: no}, `"supports_reasoning_summaries":false,"supports_reasoning_summary_parameter":false,`},
		{Model{ReasoningSummaries: yes}, `"supports_reasoning_summaries":true,"supports_reasoning_summary_parameter":true,`},
	} {
		require.Contains(t, string(AppendModel(nil, &c.m, Codex)), c.want)
	}
}
