// SPDX-License-Identifier: Apache-2.0

package conformance

import "testing"

// TestNames asserts that every name of a family in the test data resolves.
func TestNames(t *testing.T) {
	type record struct{ Family string }
	seen := map[string]int{}
	for _, path := range [][]string{
		{"corpus", "parsers", "unified_visible.jsonl"},
		{"corpus", "parsers", "parity_visible.jsonl"},
		{"corpus", "parsers", "ollama.jsonl"},
		{"corpus", "parsers", "smg.jsonl"},
		{"corpus", "parsers", "harmony.jsonl"},
		{"bench", "parsers", "short.jsonl"},
	} {
		for family, list := range load(t, shared(t, path...), func(r *record) string { return r.Family }) {
			seen[family] += len(list)
		}
	}
	for family, n := range seen {
		if !built(family) {
			t.Errorf("family %s with %d records is not built", family, n)
		}
	}
}
