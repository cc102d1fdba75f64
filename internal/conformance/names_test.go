// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"testing"
)

// foreign lists the families of the test data that weft does not know.
var foreign = []string{}

// TestNames asserts that every name of a family in the test data resolves, less those of foreign families.
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
		if known := slices.Contains(foreign, family); built(family) == known {
			t.Errorf("family %s with %d records: built %v, listed as foreign %v", family, n, built(family), known)
		}
	}
}
