// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// parity is a record of the cross-engine fixtures: one output and what each implementation makes of it.
type parity struct {
	ID, Family, Kind, Text string
	Chunks                 []string
	Tools                  []tool
	Options                struct {
		ForceReasoning bool `json:"force_reasoning"`
		Template       struct {
			Thinking       bool
			EnableThinking *bool `json:"enable_thinking"`
		} `json:"chat_template_kwargs"`
	}
	Expected map[string]peerResult
	Agreed   bool
	Results  int `json:"nresults"`
}

// peerResult is the result of one implementation for an output.
type peerResult struct {
	Calls []struct {
		Name      string
		Arguments json.RawMessage
	}
	Content, Reasoning string // null is empty
	Error, Unavailable string
}

// outcome returns r in the form of outcomes. Arguments that are not JSON are a string in the fixtures.
func (r *peerResult) outcome(t testing.TB) outcome {
	out := outcome{Calls: []step{}, Content: r.Content, Reasoning: r.Reasoning}
	for _, c := range r.Calls {
		out.Calls = append(out.Calls, step{"call", c.Name, decoded(t, c.Arguments)})
	}
	return out
}

// options returns the parser options for the record. Fixtures about calls know nothing of reasoning, and fixtures about
// reasoning expect tool markup as content.
func (r *parity) options(policy parsers.Policy) *parsers.Options {
	opt := &parsers.Options{Tools: toolsOf(r.Tools), Channels: parsers.OnlyTools, Policy: policy}
	if r.Kind == "reasoning" {
		opt.Channels = parsers.OnlyReasoning
	}
	switch {
	case r.Options.ForceReasoning || r.Options.Template.Thinking:
		opt.Start = startOf("reasoning")
	case r.Options.Template.EnableThinking != nil:
		opt.Start = startOf("none") // false in every record; the template then writes no opener
	}
	return opt
}

// parityDiff compares with a peer: white space alone, nothing and null are equal, and so are numbers of equal value.
func parityDiff(want, got outcome) string {
	return differ(want, got, func(s string) string {
		if blank(s) {
			return ""
		}
		return s
	})
}

// run parses r whole, in its own chunks, byte by byte and at 20 random splits, which must all give the same, and returns it.
func (r *parity) run(t testing.TB, policy parsers.Policy) outcome {
	p, err := parsers.New(r.Family, r.options(policy))
	require.NoError(t, err)
	text := r.Text + strings.Join(r.Chunks, "") // a record has one of them
	var c event.Collector
	whole := outcomeOf(t, p, &c, text)
	same := func(how string, chunks ...string) {
		if got := outcomeOf(t, p, &c, chunks...); !reflect.DeepEqual(whole, got) {
			t.Errorf("%s, %s (-whole +cut):\n%s", r.ID, how, cmp.Diff(whole, got))
		}
	}
	if len(r.Chunks) > 0 {
		same("as recorded", r.Chunks...)
	}
	same("byte by byte", bytewise(text)...)
	rnd := rand.New(rand.NewPCG(uint64(len(text)), 5))
	random := 20
	if testing.Short() {
		random = 4
	}
	for range random {
		same("a random split", cuts(rnd, text, 24)...)
	}
	return whole
}

// short is the id that the tables use.
func (r *parity) short() string {
	id := strings.TrimPrefix(r.ID, "parity/")
	return strings.NewReplacer("TOOLCALLING.", "", "REASONING.", "").Replace(id)
}

func loadParity(t *testing.T) map[string][]*parity {
	return load(t, shared(t, "corpus", "parsers", "parity_visible.jsonl"), func(r *parity) string { return r.Family })
}

// TestParity asserts that weft gives, by default, what all implementations agree on, less what contradicts the written
// policy.
func TestParity(t *testing.T) {
	runParity(t, parsers.Policy{}, agreedExceptions, func(r *parity) (want []peerResult) {
		if r.Agreed && r.Results >= 2 {
			for _, name := range []string{"dynamo", "vllm", "sglang"} {
				if e := r.Expected[name]; e.Unavailable == "" && e.Error == "" {
					want = append(want, e)
				}
			}
		}
		return want
	})
}

// TestParityDynamo asserts that weft under the Dynamo profile gives what Dynamo gives.
func TestParityDynamo(t *testing.T) {
	dynamo, err := parsers.ParsePolicy("dynamo")
	require.NoError(t, err)
	require.LessOrEqual(t, len(dynamoExceptions), 25)
	runParity(t, dynamo, dynamoExceptions, func(r *parity) []peerResult {
		if e := r.Expected["dynamo"]; e.Unavailable == "" && e.Error == "" {
			return []peerResult{e}
		}
		return nil
	})
}

// runParity runs all records and compares those for which wanted names results. Every difference must be in the table,
// and every entry of the table must be one.
func runParity(
	t *testing.T, policy parsers.Policy, except map[string]reason, wanted func(*parity) []peerResult,
) {
	byFamily := loadParity(t)
	unknown := map[string]bool{}
	for id := range except {
		unknown[id] = true
	}
	for _, list := range byFamily {
		for _, r := range list {
			delete(unknown, r.short())
		}
	}
	for id := range unknown {
		if len(byFamily) > 1 {
			t.Errorf("the table names %s, which is no record", id)
		}
	}
	for family, list := range byFamily {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			if !built(family) {
				t.Skipf("%s is not built: %d records", family, len(list))
			}
			right, compared, excepted := 0, 0, 0
			for _, r := range list {
				got := r.run(t, policy)
				results := wanted(r)
				if len(results) == 0 {
					continue
				}
				compared++
				diff := ""
				for i := range results {
					if diff = parityDiff(results[i].outcome(t), got); diff != "" {
						break
					}
				}
				why, listed := except[r.short()]
				switch {
				case diff == "" && listed:
					t.Errorf("%s is right: take it from the table", r.ID)
				case diff == "":
					right++
				case listed:
					checkReason(t, r.ID, why)
					excepted++
				default:
					t.Errorf("%s, %q:\n%s", r.ID, r.Text+strings.Join(r.Chunks, "¦"), diff)
				}
			}
			t.Logf("%s: %d records, %d compared, %d right, %d excepted", family, len(list), compared, right, excepted)
		})
	}
}
