// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// recording is an output that living engines parsed, or whose calls are known.
type recording struct {
	ID, Family, Text, Raw, Template string
	Prompt                          string `json:"generation_prompt"`
	Finish                          string
	Tools                           []tool
	ToolsRef                        int `json:"tools_ref"`
	Init                            struct{ Start, Output, Tool string }
	Printed                         bool
	Calls                           []json.RawMessage
	Expected                        []json.RawMessage
	VLLM, SGLang                    *engineResult
	Llama                           struct {
		Content   string
		Reasoning string `json:"reasoning_content"`
		Calls     []struct {
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
}

// engineResult is an engine's reading of an output.
type engineResult struct {
	Reasoning, Content string
	Calls              []json.RawMessage
}

// readRecordings returns the records of a file, less those that have an infinite number, which Python writes and JSON does
// not have.
func readRecordings(t testing.TB, name string, infinite int) (list []*recording) {
	raw, err := os.ReadFile(shared(t, "corpus", "parsers", name))
	require.NoError(t, err)
	for line := range bytes.Lines(raw) {
		r := new(recording)
		if err := json.Unmarshal(line, r); err != nil {
			infinite--
			continue
		}
		if only() == "" || only() == r.Family {
			list = append(list, r)
		}
	}
	require.Equal(t, 0, infinite)
	return list
}

// toolsIn reads the tools of a corpus of recordings: one list for all, or several.
func toolsIn[T any](t testing.TB, name string) (tools T) {
	raw, err := os.ReadFile(shared(t, "corpus", "parsers", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &tools))
	return tools
}

// callsOf reads calls as pairs of name and arguments. Arguments that are a string are JSON.
func callsOf(t testing.TB, calls []json.RawMessage) []step {
	out := []step{}
	for _, raw := range calls {
		pair := decoded(t, raw).([]any)
		args := pair[1]
		if s, ok := args.(string); ok {
			args = argumentsOf(t, s)
		}
		out = append(out, step{"call", pair[0], args})
	}
	return out
}

// run parses r, whole and if cut is set byte by byte, which must give the same result.
func (r *recording) run(t testing.TB, tools []tool, why event.Why, cut bool) outcome {
	opt := &parsers.Options{Tools: toolsOf(tools), Start: startOf(r.Init.Start), Prompt: r.Prompt}
	if r.Init.Tool != "" {
		opt.Allow = []string{r.Init.Tool}
	}
	switch r.Init.Output {
	case "guided_required":
		opt.Output = parsers.GuidedRequired
	case "guided_named":
		opt.Output = parsers.GuidedNamed
	}
	p, err := parsers.New(r.Family, opt)
	require.NoError(t, err)
	var c event.Collector
	text := r.Text + r.Raw
	got := flat(t, collectUntil(t, p, &c, why, text))
	if cut {
		if bytes := flat(t, collectUntil(t, p, &c, why, bytewise(text)...)); bytes.String() != got.String() {
			t.Errorf("%s byte by byte: %v, not %v as whole", r.ID, bytes, got)
		}
	}
	return got
}

// objects returns the calls whose arguments are an object. Engines pass others on; weft aborts them.
func objects(calls []step) []step {
	return slices.DeleteFunc(calls, func(c step) bool { _, ok := c[2].(map[string]any); return !ok })
}

func (e *engineResult) outcome(t testing.TB) outcome {
	return outcome{Reasoning: e.Reasoning, Content: e.Content, Calls: objects(callsOf(t, e.Calls))}
}

// TestUpstreamRoundtrip asserts that the calls of random messages that llama.cpp rendered with 40 templates are read.
func TestUpstreamRoundtrip(t *testing.T) {
	tools := toolsIn[[]tool](t, "llamacpp_roundtrip_tools.json")
	for i, r := range readRecordings(t, "llamacpp_roundtrip.jsonl", 0) {
		if !r.Printed || !sampled(i, 4) {
			continue
		}
		r.Prompt = "" // Init specifies where generation begins
		got := r.run(t, tools, event.Stop, sampled(i, 16))
		want := got
		want.Calls = callsOf(t, r.Calls)
		if d := differ(want, got, unblanked); d != "" {
			t.Errorf("%s, %s, %q:\n%s", r.ID, r.Template, clip(r.Text), d)
		}
	}
}

// TestUpstreamThreeWay asserts that weft gives what vLLM and SGLang give where they agree with each other and with how the
// output was made.
func TestUpstreamThreeWay(t *testing.T) {
	tools := toolsIn[[][]tool](t, "three_way_tools.json")
	table := differences(t, upstreamTables[0])
	compared := 0
	for i, r := range readRecordings(t, "three_way.jsonl", 8) {
		if len(r.Expected) == 0 || r.VLLM == nil || r.SGLang == nil || !sampled(i, 4) {
			continue
		}
		var made engineResult
		require.NoError(t, json.Unmarshal(r.Expected[0], &made.Reasoning))
		require.NoError(t, json.Unmarshal(r.Expected[1], &made.Content))
		require.NoError(t, json.Unmarshal(r.Expected[2], &made.Calls))
		want := made.outcome(t)
		if differ(want, r.VLLM.outcome(t), unblanked) != "" || differ(want, r.SGLang.outcome(t), unblanked) != "" {
			continue
		}
		compared++
		got := r.run(t, tools[r.ToolsRef], event.Stop, sampled(i, 16))
		check(t, table["three_way "+hashed(r.ID)], r, differ(want, got, unblanked))
	}
	t.Logf("%d compared", compared)
	if long() {
		stale(t, table, "three_way")
	}
}

// TestUpstreamFaults asserts that weft gives what both engines give for the inputs that showed its faults.
func TestUpstreamFaults(t *testing.T) {
	table := differences(t, upstreamTables[0])
	for _, r := range readRecordings(t, "faults.jsonl", 0) {
		got := r.run(t, r.Tools, event.None, true)
		if want := r.VLLM.outcome(t); differ(want, r.SGLang.outcome(t), unblanked) == "" {
			check(t, table["faults "+hashed(r.ID)], r, differ(want, got, unblanked))
		}
	}
	stale(t, table, "faults")
}

// check reports a difference that the table does not list, and a row of it that is equal.
func check(t *testing.T, d *difference, r *recording, diff string) {
	t.Helper()
	if d != nil {
		d.used = true
	}
	switch {
	case d == nil && diff != "":
		t.Errorf("%s (%s), %q:\n%s", r.ID, hashed(r.ID), clip(r.Text), diff)
	case d != nil && diff == "":
		t.Errorf("%s is equal: take it from line %d of the table", r.ID, d.line)
	}
}

// liveClasses counts, by class, how weft's results differ from llama.cpp's for outputs that its grammar forced from a model
// without training: noise with markers in it.
var liveClasses = map[string]int{
	"equal":            679,
	"cut by the limit": 498,
	"the same calls, other markers left in the noise": 451,
	"calls in the noise abort":                        322,
	"other calls in the noise":                        118,
	"the same text, other arguments":                  8,
}

// TestUpstreamLive compares with what a living llama-server made of 2,076 outputs.
func TestUpstreamLive(t *testing.T) {
	tools := toolsIn[[][]tool](t, "llamacpp_live_tools.json")
	classes := map[string]int{}
	for i, r := range readRecordings(t, "llamacpp_live.jsonl", 0) {
		if !sampled(i, 8) {
			continue
		}
		why := event.Stop
		if r.Finish == "length" {
			why = event.Length
		}
		got := r.run(t, tools[r.ToolsRef], why, sampled(i, 64))
		want := outcome{Content: r.Llama.Content, Reasoning: r.Llama.Reasoning, Calls: []step{}}
		for _, c := range r.Llama.Calls {
			want.Calls = append(want.Calls, step{"call", c.Function.Name, argumentsOf(t, c.Function.Arguments)})
		}
		same := want
		same.Calls = got.Calls
		switch {
		case differ(want, got, unblanked) == "":
			classes["equal"]++
		case r.Finish == "length": // llama.cpp returns what the limit cut
			classes["cut by the limit"]++
		case cmp.Equal(want.Calls, got.Calls, byValue):
			classes["the same calls, other markers left in the noise"]++
		case len(got.Aborts) > 0: // what begins like a call in the noise is one to weft, until it turns out to be broken
			classes["calls in the noise abort"]++
		case differ(same, got, unblanked) == "":
			classes["the same text, other arguments"]++
		default:
			classes["other calls in the noise"]++
		}
	}
	t.Log(classes)
	if long() && only() == "" {
		require.Equal(t, "", cmp.Diff(liveClasses, classes))
	}
}

// TestUpstreamHard runs outputs that were made by hand or quoted in public issues, and compares calls where vLLM and SGLang
// agree.
func TestUpstreamHard(t *testing.T) {
	type hard struct {
		recording
		VLLM, SGLang []json.RawMessage
	}
	table := differences(t, upstreamTables[0])
	compared := 0
	for _, list := range load(t, shared(t, "corpus", "parsers", "upstream", "hard.jsonl"), func(r *hard) string { return r.Family }) {
		for _, r := range list {
			got := r.run(t, r.Tools, event.None, true)
			if len(r.VLLM) != 3 || len(r.SGLang) != 3 {
				continue
			}
			var a, b []json.RawMessage
			require.NoError(t, json.Unmarshal(r.VLLM[2], &a))
			require.NoError(t, json.Unmarshal(r.SGLang[2], &b))
			want := got
			if want.Calls = callsOf(t, a); !cmp.Equal(want.Calls, callsOf(t, b), byValue) {
				continue
			}
			compared++
			check(t, table["hard "+hashed(r.ID)], &r.recording, differ(want, got, unblanked))
		}
	}
	t.Logf("%d compared", compared)
	stale(t, table, "hard")
}
