// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
)

// upstreamTables are the tables of differences.
var upstreamTables = []string{"testdata/upstream.txt"}

// TestUpstream runs the cases of the test suites of vLLM, SGLang and llama.cpp. Each is equal, or in testdata/upstream.txt
// with a reason. With WEFT_TEST=long it runs all of them, and in chunks, otherwise a sample and the cases in the table.
func TestUpstream(t *testing.T) {
	files := map[string]string{}
	for source, name := range upstreamSources {
		files[source] = shared(t, "corpus", "parsers", "upstream", name+".jsonl")
	}
	table := differences(t, upstreamTables[0])
	var mu sync.Mutex
	totals := map[string]*tally{}
	t.Run("cases", func(t *testing.T) {
		for source, file := range files {
			for family, list := range load(t, file, func(c *upstreamCase) string { return c.Family }) {
				t.Run(source+"/"+family, func(t *testing.T) {
					t.Parallel()
					n := runUpstream(t, source, list, table)
					mu.Lock()
					defer mu.Unlock()
					g, err := parsers.Default().Lookup(family)
					require.NoError(t, err)
					if totals[g.Name] == nil {
						totals[g.Name] = &tally{}
					}
					totals[g.Name].add(n)
				})
			}
		}
	})
	stale(t, table, slices.Collect(maps.Keys(upstreamSources))...)
	var rows string
	for _, family := range slices.Sorted(maps.Keys(totals)) {
		n := totals[family]
		t.Logf("%s: %v", family, n)
		rows += fmt.Sprintf("| `%s` | %d | %d | %d | %d | %d |\n", family, n.cases, n.equal, n.by[byPolicy], n.artefacts(), n.others())
	}
	if long() && only() == "" {
		readme, err := os.ReadFile("../../parsers/README.md")
		require.NoError(t, err)
		require.True(t, strings.Contains(string(readme), rows), "parsers/README.md should have the rows\n%s", rows)
	}
}

// artefacts returns how many cases differ because of the test that they are from.
func (n *tally) artefacts() (k int) {
	for why, by := range n.by {
		if strings.HasPrefix(reasons[why], "Artefact: ") {
			k += by
		}
	}
	return k
}

// others returns how many cases differ for reasons other than a policy or their test.
func (n *tally) others() int {
	return n.cases - n.equal - n.by[byPolicy] - n.artefacts()
}

// upstreamSources are the files of cases, by the names that the table uses. Cases of families that weft did not have when they
// were collected do not specify where generation begins.
var upstreamSources = map[string]string{
	"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp",
	"vllm_more": "vllm_missing_families", "sglang_more": "sglang_missing_families",
}

// tally counts the cases of a family.
type tally struct {
	cases, equal int
	by           map[reason]int
}

func (n *tally) add(m tally) {
	n.cases += m.cases
	n.equal += m.equal
	for why, k := range m.by {
		n.count(why, k)
	}
}

func (n *tally) count(why reason, k int) {
	if n.by == nil {
		n.by = map[reason]int{}
	}
	n.by[why] += k
}

func (n *tally) String() string { return fmt.Sprintf("%d cases, %d equal, %v", n.cases, n.equal, n.by) }

// runUpstream runs cases of one file and family.
func runUpstream(t *testing.T, source string, list []*upstreamCase, table map[string]*difference) (n tally) {
	require.True(t, built(list[0].Family), "%s is not built", list[0].Family)
	for i, c := range list {
		c.Open = strings.HasSuffix(source, "_more")
		d := table[source+" "+c.ID[strings.LastIndexByte(c.ID, '-')+1:]]
		if !sampled(i, 4) && (d == nil || testing.Short()) {
			if d != nil {
				d.used = true
			}
			continue
		}
		n.cases++
		diff := c.run(t, &setup{}, long() || sampled(i, 16))
		switch {
		case d == nil && diff == "":
			n.equal++
			continue
		case d == nil:
			t.Errorf("%s, %s, %q:\n%s", c.ID, c.Family, clip(c.text()), diff)
			continue
		}
		d.used = true
		n.count(d.why, 1)
		if diff == "" {
			t.Errorf("%s is equal: take it from line %d of the table", c.ID, d.line)
			continue
		}
		if d.setup == "" {
			continue
		}
		s, err := setupOf(d.setup)
		require.NoError(t, err)
		if diff := c.run(t, &s, false); diff != "" {
			t.Errorf("%s, %s, %q, %s:\n%s", c.ID, c.Family, clip(c.text()), d.setup, diff)
		}
	}
	return n
}

// stale reports the rows of a table that no case of the sources used.
func stale(t *testing.T, table map[string]*difference, sources ...string) {
	t.Helper()
	if t.Failed() || only() != "" {
		return
	}
	for id, d := range table {
		if source, _, _ := strings.Cut(id, " "); !d.used && slices.Contains(sources, source) {
			t.Errorf("line %d names %s, which is no case", d.line, id)
		}
	}
}
