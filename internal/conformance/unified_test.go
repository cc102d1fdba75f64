// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-go/weft/parsers"
)

// unified is a record of the unified corpus, which is the written policy.
type unified struct {
	ID, Family, Text string
	Tools            []tool
	Init             struct{ Start, Output, Tool string }
	Expected         struct {
		Spec struct{ Events []json.RawMessage }
	}
}

func loadUnified(t *testing.T) map[string][]*unified {
	return load(t, shared(t, "corpus", "parsers", "unified_visible.jsonl"), func(r *unified) string { return r.Family })
}

func (r *unified) options() *parsers.Options {
	opt := &parsers.Options{Tools: toolsOf(r.Tools), Start: startOf(r.Init.Start)}
	if r.Init.Tool != "" {
		opt.Allow = []string{r.Init.Tool}
	}
	switch r.Init.Output {
	case "guided_required":
		opt.Output = parsers.GuidedRequired
	case "guided_named":
		opt.Output = parsers.GuidedNamed
	}
	return opt
}

// TestUnified runs every record of the unified corpus: whole, byte by byte, at two-way byte splits and at random splits. With
// WEFT_TEST=long these are every split and 50 random ones.
func TestUnified(t *testing.T) {
	for family, list := range loadUnified(t) {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			if !built(family) {
				t.Skipf("%s is not built: %d records", family, len(list))
			}
			bad := 0
			for _, r := range list {
				if how, d := r.run(t); d != "" {
					bad++
					t.Errorf("%s, %s of %q (-want +got):\n%s", r.ID, how, clip(r.Text), d)
				}
			}
			t.Logf("%s: %d of %d records right", family, len(list)-bad, len(list))
		})
	}
}

// run returns the first way of cutting the text that gives a wrong result, and the difference.
func (r *unified) run(t *testing.T) (how, diff string) {
	p, err := parsers.New(r.Family, r.options())
	if err != nil {
		t.Fatal(err)
	}
	want := []step{}
	for _, raw := range r.Expected.Spec.Events {
		want = append(want, step(decoded(t, raw).([]any)))
	}
	blanks := strings.HasSuffix(r.ID, "/whitespace_only")
	ok := func(way string, chunks ...string) bool {
		got := assemble(t, p, blanks, chunks...)
		if reflect.DeepEqual(want, got) {
			return true
		}
		how, diff = way, cmp.Diff(want, got)
		return diff == ""
	}
	if !ok("whole", r.Text) || !ok("byte by byte", bytewise(r.Text)...) {
		return how, diff
	}
	step, random := 11, 5
	switch {
	case long():
		step, random = 1, 50
	case testing.Short():
		step, random = 67, 1
	}
	for i := 1 + len(r.ID)%step; i < len(r.Text); i += step { // not the same positions in each record
		if !ok("a two-way split", r.Text[:i], r.Text[i:]) {
			return how, diff
		}
	}
	rnd := rand.New(rand.NewPCG(uint64(len(r.Text)), 3))
	for range random {
		if !ok("a random split", cuts(rnd, r.Text, 16)...) {
			return how, diff
		}
	}
	return "", ""
}

// clip shortens text for messages.
func clip(s string) string {
	if len(s) > 2000 {
		return s[:1500] + " … " + s[len(s)-400:]
	}
	return s
}
