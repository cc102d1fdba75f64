// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a runner that returns the expected results of a sample with one change.
type fake struct {
	change func(*Result)
	drives int
	after  int // runs of Drive after which change applies
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Collect(in *Input) Result {
	s := in.Sample
	r := Result{Reasoning: "\n" + s.Expect.Reasoning, Content: s.Expect.Content + " \n", Calls: slices.Clone(s.Expect.Calls)}
	if f.change != nil && f.drives >= f.after {
		f.change(&r)
	}
	return r
}

func (f *fake) Drive(in *Input) int {
	f.drives++
	n := 0
	for range 200 {
		n += strings.Count(in.Text, "a")
	}
	return n
}

var changes = map[string]func(*Result){
	"reasoning cut":           func(r *Result) { r.Reasoning = r.Reasoning[:len(r.Reasoning)-1] },
	"reasoning in content":    func(r *Result) { r.Content, r.Reasoning = r.Reasoning+r.Content, "" },
	"content lost":            func(r *Result) { r.Content = "" },
	"markup leaked":           func(r *Result) { r.Content += "</tool_call>" },
	"white space inside":      func(r *Result) { r.Content = strings.Replace(r.Content, " ", "  ", 1) },
	"call lost":               func(r *Result) { r.Calls = r.Calls[1:] },
	"calls swapped":           func(r *Result) { r.Calls[0], r.Calls[1] = r.Calls[1], r.Calls[0] },
	"call invented":           func(r *Result) { r.Calls = append(r.Calls, r.Calls[0]) },
	"call aborted":            func(r *Result) { r.Aborted = 1 },
	"wrong name":              func(r *Result) { r.Calls[0].Name += "x" },
	"no arguments":            func(r *Result) { r.Calls[0].Arguments = nil },
	"arguments cut":           func(r *Result) { r.Calls[0].Arguments = r.Calls[0].Arguments[:9] },
	"two values":              func(r *Result) { r.Calls[0].Arguments = append(slices.Clone(r.Calls[0].Arguments), "{}"...) },
	"key lost":                func(r *Result) { r.Calls[0].Arguments = json.RawMessage(`{"query":"a b"}`) },
	"key invented":            args(`{"query":"a b","n":2,"ok":true,"list":[1,null],"more":1}`),
	"other number":            args(`{"query":"a b","n":2.5,"ok":true,"list":[1,null]}`),
	"number as string":        args(`{"query":"a b","n":"2","ok":true,"list":[1,null]}`),
	"bool as string":          args(`{"query":"a b","n":2,"ok":"true","list":[1,null]}`),
	"element lost":            args(`{"query":"a b","n":2,"ok":true,"list":[1]}`),
	"list as string":          args(`{"query":"a b","n":2,"ok":true,"list":"[1,null]"}`),
	"blank at the value":      args(`{"query":"a b\n","n":2,"ok":true,"list":[1,null]}`),
	"failed":                  func(r *Result) { r.Err = errors.New("no") },
	"arguments are no object": args(`[]`),
}

func args(raw string) func(*Result) {
	return func(r *Result) { r.Calls[0].Arguments = json.RawMessage(raw) }
}

// truth is a sample with two calls.
func truth() *Sample {
	s := &Sample{Name: "truth", Text: "a text that the fake does not read", Runes: []int{34}}
	s.Expect.Reasoning, s.Expect.Content = "think first", "then answer"
	s.Expect.Calls = []Call{
		{"search", json.RawMessage(`{"query":"a b","n":2,"ok":true,"list":[1,null]}`)},
		{"bash", json.RawMessage(`{}`)},
	}
	return s
}

func TestCheck(t *testing.T) {
	in := &Input{Sample: truth()}
	require.NoError(t, in.Sample.Check((&fake{}).Collect(in)))
	for name, change := range changes {
		require.Error(t, in.Sample.Check((&fake{change: change}).Collect(in)), name)
	}
	// What may differ: the order of keys, the spelling of numbers, white space around.
	same := args(`{"n":2.0, "list":[1e0,null], "ok":true, "query":"a b"} `)
	require.NoError(t, in.Sample.Check((&fake{change: same}).Collect(in)))
}

func TestElidedValue(t *testing.T) {
	long := strings.Repeat("if a < b { say(\"x\\n\") }\n", 40) + "end"
	for name, s := range map[string]string{
		"JSON":   `<tool_call>{"arguments":{"content":` + quote(long) + `}}</tool_call>`,
		"tagged": "<parameter=content>\n" + long + "\n</parameter>",
		"python": `[f(content="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(long) + `")]`,
	} {
		in := &Input{Sample: &Sample{Text: s}}
		in.Sample.Expect.Calls = []Call{{"f", json.RawMessage(`{"content":"` + elided + `"}`)}}
		got := func(v string) error {
			return in.Sample.Check(Result{Calls: []Call{{"f", json.RawMessage(`{"content":` + quote(v) + `}`)}}})
		}
		require.NoError(t, got(long), name)
		require.Error(t, got(long[:len(long)-1]), name)
		require.Error(t, got(long[1:]+"x"), name)
		require.Error(t, got(strings.Replace(long, "a < b", "a > b", 1)), name)
		require.Error(t, got(elided), name)
	}
}

func TestMeasureVoidsWrongResults(t *testing.T) {
	ins := Inputs([]Sample{*truth()}, "runes")
	right := &fake{}
	wrong := &fake{change: changes["call lost"]}
	later := &fake{change: changes["call lost"], after: 10} // right at first
	job := func(r Runner) *Job { return &Job{Runner: r, Inputs: ins} }
	got := Measure(2, job(right), job(wrong), job(later), &Job{})
	require.Empty(t, got[0].Wrong)
	require.Positive(t, got[0].NS)
	require.LessOrEqual(t, got[0].Min, got[0].NS)
	require.GreaterOrEqual(t, got[0].Rounds, 2)
	for _, g := range got[1:3] {
		require.Contains(t, g.Wrong, "1 calls, want 2")
		require.Zero(t, g.NS)
	}
	require.Zero(t, wrong.drives, "what is wrong is not timed")
	require.Equal(t, "no input", got[3].Wrong)

	_, err := Try(wrong, ins)
	require.ErrorContains(t, err, "1 calls, want 2")
	_, err = Try(right, ins)
	require.NoError(t, err)
}

// TestWeftIsChecked cuts the end off the input of a real parser, in the middle of a call, which has to be seen.
func TestWeftIsChecked(t *testing.T) {
	tools, err := LoadTools("")
	require.NoError(t, err)
	f, _ := FamilyNamed("hermes")
	for _, fresh := range []bool{false, true} {
		w, err := NewWeft(f, false, tools, fresh)
		require.NoError(t, err)
		ins := Inputs(Builtin("hermes", "short"), "atomic")
		got := Measure(1, &Job{Runner: w, Inputs: ins})
		require.Empty(t, got[0].Wrong)
		ins[1].Lens = ins[1].Lens[:len(ins[1].Lens)-20]
		got = Measure(1, &Job{Runner: w, Inputs: ins})
		require.Contains(t, got[0].Wrong, "short1: 1 calls aborted")
		require.Zero(t, got[0].NS)
	}
	_, err = NewWeft(Family{Name: "no such family"}, false, tools, false)
	require.Error(t, err)
}

func TestParseFloor(t *testing.T) {
	const head = "minimal machine Feed(chunk)->events, "
	raw := "copy (memcpy), 4 KB       29.15 ns/op  min     28.82    140.49 GB/s  0.000 allocs/op\n" +
		head + "plain (hermes)        5.06 ns/op  min      4.99      0.71 GB/s  0.000 allocs/op\n" +
		"minimal machine + append arg bytes to a buffer, plain (hermes)   10.13 ns/op  min      9.97 \n" +
		head + "agentic (hermes, 20 KB arg)          10.36 ns/op  min      9.86      0.35 GB/s  0.000 allocs/op\n" +
		head + "growth 1 MB arg (hermes)         16.59 ns/op  min     16.41      0.22 GB/s  0.000 allocs/op\n" +
		head + "growth 100 KB arg (hermes)       15.56 ns/op  min     15.38      0.23 GB/s  0.000 allocs/op\n"
	got, err := parseFloor([]byte(raw))
	require.NoError(t, err)
	require.Equal(t, FloorTimes{Plain: FloorTime{5.06, 4.99}, Agentic: FloorTime{10.36, 9.86}, Growth: FloorTime{16.59, 16.41}}, got)
	for _, bad := range []string{
		"", head + "plain (hermes)  5.06 ns/op\n", head + "plain (hermes)  fast ns/op\n", head + "plain\n",
	} {
		_, err := parseFloor([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.jsonl")
	write := func(s string) { require.NoError(t, os.WriteFile(file, []byte(s), 0o644)) }
	write(`{"family":"a","text":"abc","chunks":[1,2],"prefill_reasoning":true,"expect":{"content":"c"}}` + "\n" +
		`{"family":"b","text":"x"}` + "\n")
	got, err := Load(file, "a")
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.True(t, got[0].Prefill)
	require.Equal(t, "c", got[0].Expect.Content)
	require.Empty(t, Inputs(got, "bytes"))
	require.Empty(t, Inputs(got, "no such way"))
	chunks, bytes := Size(Inputs(got, "runes"))
	require.Equal(t, []int{2, 3}, []int{chunks, bytes})

	write(`{"family":"a","text":"abc","chunks":[1,1]}`)
	_, err = Load(file, "a")
	require.ErrorContains(t, err, "the runes chunks have 2 bytes, the text 3")
	write(`{`)
	_, err = Load(file, "a")
	require.Error(t, err)
	_, err = Load(file+"x", "a")
	require.Error(t, err)
}
