// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// shared returns a file of the test data, or skips.
func shared(t testing.TB, path ...string) string {
	t.Helper()
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	f := filepath.Join(append([]string{root}, path...)...)
	if _, err := os.Stat(f); err != nil {
		t.Skipf("test data not there: %v (set WEFT_SHARED)", err)
	}
	return f
}

// lines calls f with each line of a file of JSON lines, decoded.
func lines[T any](t testing.TB, file string, f func(T)) {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	s := bufio.NewScanner(in)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var v T
		require.NoError(t, json.Unmarshal(s.Bytes(), &v))
		f(v)
	}
	require.NoError(t, s.Err())
}

type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func toolsOf(in []tool) (out []parsers.Tool) {
	for _, t := range in {
		out = append(out, parsers.Tool{Name: t.Function.Name, Schema: t.Function.Parameters})
	}
	return out
}

// step is one assembled event: kind and text, or "call", name and decoded arguments.
type step []any

// assemble runs chunks through p and lists what came out, as the corpora spell it. Aborted calls are left out, and so
// is text that is only white space unless keepBlanks.
func assemble(t testing.TB, p *parsers.Parser, keepBlanks bool, chunks ...string) []step {
	t.Helper()
	var all event.Collector
	var evs []event.Event
	var err error
	p.Reset()
	for _, c := range chunks {
		evs, err = p.Feed(evs[:0], []byte(c))
		require.NoError(t, err)
		all.Add(evs...)
	}
	evs, err = p.Close(evs[:0])
	require.NoError(t, err)
	all.Add(evs...)
	out := []step{}
	for _, a := range all.Answers {
		for _, b := range a.Blocks {
			s := string(b.Data)
			switch b.Kind {
			case event.ToolStart:
				require.True(t, b.Flags.Has(event.Complete))
				out = append(out, step{"call", b.Name, decoded(t, b.Data)})
				continue
			case event.ToolAbort:
				continue
			case event.Text:
				if !keepBlanks && strings.TrimSpace(s) == "" {
					continue
				}
			}
			kind := b.Kind.String()
			if n := len(out); n > 0 && out[n-1][0] == kind {
				out[n-1][1] = out[n-1][1].(string) + s
				continue
			}
			out = append(out, step{kind, s})
		}
	}
	return out
}

// decoded returns arguments as values with numbers as they are spelled.
func decoded(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", raw)
	return v
}

// TestUnified runs every record of the unified corpus whose family is built: whole, byte by byte, at every two-way
// split and at 50 random splits.
func TestUnified(t *testing.T) {
	type record struct {
		ID, Family, Text string
		Tools            []tool
		Init             struct{ Start, Output, Tool string }
		Expected         struct {
			Spec struct{ Events []json.RawMessage }
		}
	}
	ran, left := 0, map[string]int{}
	lines(t, shared(t, "corpus", "parsers", "unified_visible.jsonl"), func(r record) {
		opt := parsers.Options{
			Tools:  toolsOf(r.Tools),
			Start:  map[string]parsers.Start{"reasoning": parsers.StartReasoning, "response": parsers.StartResponse}[r.Init.Start],
			Output: map[string]parsers.Output{"guided_required": parsers.GuidedRequired, "guided_named": parsers.GuidedNamed}[r.Init.Output],
			Tool:   r.Init.Tool,
		}
		p, err := parsers.New(r.Family, &opt)
		if err != nil {
			left[r.Family]++
			return
		}
		ran++
		want := []step{}
		for _, raw := range r.Expected.Spec.Events {
			want = append(want, step(decoded(t, raw).([]any)))
		}
		blanks := strings.HasSuffix(r.ID, "/whitespace_only")
		same := func(how string, chunks ...string) {
			if d := cmp.Diff(want, assemble(t, p, blanks, chunks...)); d != "" {
				t.Fatalf("%s, %s (-want +got):\n%s", r.ID, how, d)
			}
		}
		same("whole", r.Text)
		single := make([]string, len(r.Text))
		for i := range single {
			single[i] = r.Text[i : i+1]
		}
		same("byte by byte", single...)
		for i := 1; i < len(r.Text) && len(r.Text) < 4096; i++ {
			same("a two-way split", r.Text[:i], r.Text[i:])
		}
		rnd := rand.New(rand.NewPCG(uint64(len(r.Text)), 3))
		for range 50 {
			var chunks []string
			for s := r.Text; s != ""; {
				n := 1 + rnd.IntN(min(len(s), 16))
				chunks = append(chunks, s[:n])
				s = s[n:]
			}
			same("a random split", chunks...)
		}
	})
	t.Logf("%d records right; families not built yet: %v", ran, left)
	require.Positive(t, ran)
}

// TestWorkloads runs the seeded workloads with known truth, in each of their chunkings.
func TestWorkloads(t *testing.T) {
	var list []tool
	raw, err := os.ReadFile(shared(t, "bench", "parsers", "tools.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &list))
	type record struct {
		Family, Name, Text string
		Prefill            bool  `json:"prefill_reasoning"`
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
	for _, file := range []string{"short", "agentic", "plain", "hostile"} {
		t.Run(file, func(t *testing.T) {
			ran := 0
			lines(t, shared(t, "bench", "parsers", file+".jsonl"), func(r record) {
				opt := parsers.Options{Tools: toolsOf(list)}
				if r.Prefill {
					opt.Start = parsers.StartReasoning
				}
				p, err := parsers.New(r.Family, &opt)
				if err != nil {
					return
				}
				ran++
				want := []step{}
				for _, c := range r.Expect.Calls {
					want = append(want, step{"call", c.Name, decoded(t, c.Arguments)})
				}
				for how, lens := range map[string][]int{"whole": {len(r.Text)}, "chunks": r.Chunks, "atomic": r.Atomic, "bytes": r.Bytes} {
					var chunks []string
					at := 0
					for _, n := range lens {
						chunks = append(chunks, r.Text[at:at+n])
						at += n
					}
					calls, text := []step{}, map[string]string{}
					for _, s := range assemble(t, p, true, chunks...) {
						if s[0] == "call" {
							calls = append(calls, s)
						} else {
							text[s[0].(string)] += s[1].(string)
						}
					}
					if d := cmp.Diff(want, calls); d != "" {
						t.Fatalf("%s, %s (-want +got):\n%s", r.Name, how, d)
					}
					require.Equal(t, strings.TrimSpace(r.Expect.Reasoning), strings.TrimSpace(text["reasoning"]), "%s, %s", r.Name, how)
					require.Equal(t, strings.TrimSpace(r.Expect.Content), strings.TrimSpace(text["text"]), "%s, %s", r.Name, how)
				}
			})
			require.Positive(t, ran)
		})
	}
}
