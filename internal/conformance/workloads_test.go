// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// workload is a record of the seeded workloads, whose truth is known.
type workload struct {
	Family, Name, Text string
	Prefill            bool  `json:"prefill_reasoning"`
	Ambiguous          bool  // values hold the family's own markers unescaped: only invariance can be judged
	Chunks             []int `json:"chunks"`
	Atomic             []int `json:"chunks_atomic"`
	Bytes              []int `json:"chunks_bytes"`
	Expect             struct {
		Reasoning, Content string
		Calls              []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
}

func (r *workload) options(tools []parsers.Tool) *parsers.Options {
	opt := &parsers.Options{Tools: tools, Start: startOf("none")}
	if r.Prefill && r.Expect.Reasoning != "" { // replies of olmo3 are marked so and have none
		opt.Start = startOf("reasoning")
	}
	return opt
}

// workloadTools reads the tools that the workloads call.
func workloadTools(t testing.TB) []parsers.Tool {
	t.Helper()
	var list []tool
	raw, err := os.ReadFile(shared(t, "bench", "parsers", "tools.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &list))
	return toolsOf(list)
}

// TestWorkloads runs the seeded workloads with known truth, in each of their chunkings; with -short, every third.
func TestWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	runWorkloads(t, workloadTools(t), shared(t, "bench", "parsers"), "short", "agentic", "plain", "hostile")
}

// TestSeeds does the same with workloads of other seeds, made by the generator. WEFT_SEEDS lists others.
func TestSeeds(t *testing.T) {
	if !long() {
		t.Skip("set WEFT_TEST=long to generate workloads")
	}
	tools := workloadTools(t)
	src := shared(t, "tools", "parsegen")
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go tool: %v", err)
	}
	bin := filepath.Join(t.TempDir(), "parsegen")
	build := exec.Command(goTool, "build", "-o", bin, ".")
	build.Dir, build.Env = src, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the generator does not build here: %v\n%s", err, out)
	}
	seeds := strings.Fields(os.Getenv("WEFT_SEEDS"))
	if len(seeds) == 0 {
		seeds = []string{"7", "20261"}
	}
	for _, seed := range seeds {
		t.Run("seed "+seed, func(t *testing.T) {
			dir := t.TempDir()
			out, err := exec.Command(bin, "-out", dir, "-seed", seed).CombinedOutput()
			require.NoError(t, err, "%s", out)
			runWorkloads(t, tools, dir, "short", "agentic", "hostile")
		})
	}
}

func runWorkloads(t *testing.T, tools []parsers.Tool, dir string, files ...string) {
	for _, file := range files {
		byFamily := load(t, filepath.Join(dir, file+".jsonl"), func(r *workload) string { return r.Family })
		t.Run(file, func(t *testing.T) {
			for family, list := range byFamily {
				t.Run(family, func(t *testing.T) {
					t.Parallel()
					if !built(family) {
						t.Skipf("%s is not built: %d records", family, len(list))
					}
					for i, r := range list {
						if !testing.Short() || i%3 == 0 {
							r.run(t, tools)
						}
					}
				})
			}
		})
	}
}

// run compares every chunking of r with the truth, or with the result of the whole text if the truth is unknown.
func (r *workload) run(t *testing.T, tools []parsers.Tool) {
	p, err := parsers.New(r.Family, r.options(tools))
	require.NoError(t, err)
	var c event.Collector
	normal := func(o outcome) outcome {
		o.Content, o.Reasoning, o.Aborts = strings.TrimSpace(o.Content), strings.TrimSpace(o.Reasoning), nil
		return o
	}
	whole := outcomeOf(t, p, &c, r.Text)
	want := outcome{Calls: []step{}, Content: r.Expect.Content, Reasoning: r.Expect.Reasoning}
	for _, call := range r.Expect.Calls {
		want.Calls = append(want.Calls, step{"call", call.Name, decoded(t, call.Arguments)})
	}
	if r.Ambiguous {
		names := map[string]bool{}
		for _, c := range want.Calls {
			names[c[1].(string)] = true
		}
		for _, c := range whole.Calls {
			require.Contains(t, names, c[1], "%s: an invented call", r.Name)
		}
	} else if d := cmp.Diff(normal(want), normal(whole), byValue); d != "" {
		t.Errorf("%s %s, whole (-want +got):\n%s", r.Family, r.Name, clip(d))
		return
	}
	for how, lens := range map[string][]int{"chunks": r.Chunks, "atomic": r.Atomic, "bytes": r.Bytes} {
		if got := outcomeOf(t, p, &c, pieces(t, r.Text, lens)...); !reflect.DeepEqual(whole, got) {
			t.Errorf("%s %s, %s (-whole +cut):\n%s", r.Family, r.Name, how, clip(cmp.Diff(whole, got)))
			return
		}
	}
}
