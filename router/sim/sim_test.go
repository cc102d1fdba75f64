// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router/policy"
)

func simulate(t testing.TB, o Options, name string) *Result {
	p, err := policy.Named(name)
	require.NoError(t, err)
	o.Policy = p
	r, err := Run(&o)
	require.NoError(t, err)
	return r
}

// The same seed gives the same run.
func TestRepeats(t *testing.T) {
	o := Options{Workload: "chat", Workers: 3, Duration: time.Minute}
	a := simulate(t, o, "cost_ms")
	require.Equal(t, a, simulate(t, o, "cost_ms"))
	o.Seed = 1
	require.NotEqual(t, a, simulate(t, o, "cost_ms"))
	require.NotZero(t, a.Requests())
	require.True(t, slices.IsSorted(a.first))
	require.LessOrEqual(t, a.Percentile(50), a.Percentile(90))
	_, err := Run(&Options{Workload: "x"})
	require.EqualError(t, err, `sim: unknown workload "x" (want agents or chat)`)
}

// A result keeps nothing of its simulation, so that the results of many fit into memory.
func TestResultMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	o := Options{Workers: 4, Duration: 3 * time.Minute}
	simulate(t, o, "cost_ms") // fills pools
	before := heap()
	r := simulate(t, o, "cost_ms")
	after := heap()
	require.NotZero(t, r.Requests())
	require.Less(t, after, before+1<<20)
}

// cost_ms is the best policy for agents, and not much slower than another one for chats. examples/kvsim compares them at greater length.
func TestPolicies(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates minutes of four engines")
	}
	duration := 6 * time.Minute
	if os.Getenv("WEFT_TEST") == "long" {
		duration = 30 * time.Minute
	}
	for workload, most := range map[string]float64{"chat": 1.15, "agents": 1.05, "agents:slow=0.6": 1.05, "agents:lost=0.05": 1.05} {
		o := Options{Workload: workload, Workers: 4, Load: 0.75, Duration: duration}
		own := simulate(t, o, "cost_ms")
		for _, other := range []string{"lmetric", "llm_d", "least_loaded"} {
			got := simulate(t, o, other)
			t.Logf("%s: %s takes %.2f times as long as cost_ms (%v)", workload, other, float64(got.Mean())/float64(own.Mean()), own.Mean())
			if float64(own.Mean()) > most*float64(got.Mean()) {
				t.Errorf("%s: cost_ms takes %v, %s %v", workload, own.Mean(), other, got.Mean())
			}
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	for _, o := range []Options{{Workers: -1}, {Load: -0.5}, {Load: math.NaN()}, {Load: math.Inf(1)}, {Duration: -time.Second}} {
		_, err := Run(&o)
		require.ErrorContains(t, err, "must be positive", o)
	}
	for workload, want := range map[string]string{
		"chat:x=1":     `sim: unknown condition "x" (want ahead, base, context, drop, final, forget, front, high, hold, kv, late, lost, named, others, pair, pin, preempt, sequence, slow, split, step, tier, token, transfer)`,
		"chat:lost=x":  `sim: invalid value "x" of condition lost`,
		"chat:split=1": "sim: split must leave engines of both kinds (got 8 of 8)",
		"chat:kv=0.05": "sim: kv must be at least 0.10, slow and token above 0 (got 0.05, 1, 0.03)",
	} {
		_, err := Run(&Options{Workload: workload})
		require.EqualError(t, err, want)
	}
	for data, want := range map[string]string{
		"":   "sim: trace: no requests",
		"{":  "sim: trace: line 1: unexpected end of JSON input",
		"{}": "sim: trace: line 1: invalid request: 0 tokens, 0 blocks of 512, 1 tokens of output",
		`{"timestamp":0,"input_length":99999999,"output_length":1,"hash_ids":[]}`: "sim: trace: line 1: invalid request: 99999999 tokens, 0 blocks of 512, 1 tokens of output",
	} {
		_, err := Run(&Options{Trace: []byte(data)})
		require.EqualError(t, err, want)
	}
}

// An engine with a single request takes the time that follows from its costs.
func TestEngine(t *testing.T) {
	r := simulate(t, Options{Workers: 1, Load: 1e-4, Duration: 12 * time.Hour, create: func(*rand.Rand) *chain {
		return &chain{turns: []turn{{tokens: 6400, output: 256}, {pause: time.Hour, tokens: 64, output: 2}}}
	}}, "cost_ms")
	require.NotZero(t, r.Requests())
	require.InDelta(t, 64*0.03+64*3e-7*(6656+32), float64(r.first[0])/1e6, 0.001, "the second turn: only what is new")
	require.InDelta(t, 6400*0.03+6400*3e-7*3200, float64(r.first[len(r.first)-1])/1e6, 0.001)
	require.InDelta(t, (64*0.03+64*3e-7*(6656+32))+8+0.12+8e-6*6721, float64(slices.Min(r.whole))/1e6, 0.001)

	r = simulate(t, Options{Workload: "agents:split=0.5", Workers: 2, Load: 1e-4, Duration: 12 * time.Hour, create: func(*rand.Rand) *chain {
		return &chain{turns: []turn{{tokens: 6400, output: 2}}}
	}}, "cost_ms")
	require.NotZero(t, r.Requests())
	require.InDelta(t, 6400*0.03+6400*3e-7*3200+6400*0.005, float64(r.first[0])/1e6, 0.001, "with the transfer")
}

// The published times for a prompt of 52,000 tokens, 912 ms if it is computed and 169 ms if it is cached, are those of an engine with
// these costs: 5.4 times as long.
func TestColdAndWarm(t *testing.T) {
	o := Options{Workload: "agents:base=168,token=0.0143,pair=0", Workers: 1, Load: 1e-4, Duration: 12 * time.Hour, create: func(*rand.Rand) *chain {
		return &chain{turns: []turn{{tokens: 52_000, output: 2}, {pause: time.Hour, tokens: 64, output: 2}}}
	}}
	r := simulate(t, o, "cost_ms")
	warm, cold := r.first[0], r.first[len(r.first)-1]
	require.InDelta(t, 912, float64(cold)/1e6, 1)
	require.InDelta(t, 169, float64(warm)/1e6, 1)
	o.Workload += ",front=0.01"
	require.InDelta(t, 520, float64(slices.Max(simulate(t, o, "cost_ms").first)-cold)/1e6, 1)
}

// Costs are fitted to recorded times: to those that were computed from known costs, and to a recorded run of Dynamo.
func TestCalibrate(t *testing.T) {
	var b strings.Builder
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		cached, n := float64(rnd.IntN(8000)), float64(100+rnd.IntN(8000))
		front, prefill := 10+0.05*(cached+n), 40+n*(0.1+4e-6*(cached+n/2))
		if i%10 == 0 {
			prefill += 1500 // an engine that has just started
		}
		fmt.Fprintf(&b, `{"event":{"event_type":"request_end","request":{"input_tokens":%g,"cached_tokens":%g,"output_tokens":100,"request_received_ms":%d,"prefill_wait_time_ms":%g,"prefill_time_ms":%g,"total_time_ms":1e6,"avg_itl_ms":%g,"replay":{"trace_block_size":16,"input_length":%g}}}}`+"\n",
			cached+n, cached, i*10_000_000, front, prefill, 20+2e-4*(cached+n+50), cached+n)
	}
	conditions, first, between, err := Calibrate([]byte(b.String()))
	require.NoError(t, err)
	var base, token, pair, front, step, sequence, context float64
	_, err = fmt.Sscanf(conditions, "base=%g,token=%g,pair=%g,front=%g,step=%g,sequence=%g,context=%g", &base, &token, &pair, &front, &step, &sequence, &context)
	require.NoError(t, err)
	for _, x := range [][2]float64{{50, base}, {0.1, token}, {4e-6, pair}, {0.05, front}, {20, step + sequence}, {2e-4, context}} {
		require.InEpsilon(t, x[0], x[1], 0.02, conditions)
	}
	require.Less(t, max(first, between), 0.01)
	_, err = Run(&Options{Workload: "chat:" + conditions, Workers: 1, Duration: time.Minute})
	require.NoError(t, err)
	_, _, _, err = Calibrate([]byte(`{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}`))
	require.EqualError(t, err, "sim: calibrate: 0 requests with measured times (want at least 8)")

	f, err := os.Open(filepath.Join(cmp.Or(os.Getenv("WEFT_SHARED"), filepath.Join("..", "..", "..", "shared")), "traces", "pi_request_trace.jsonl.gz"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	conditions, first, between, err = Calibrate(data)
	require.NoError(t, err)
	t.Logf("%s: %.3f, %.3f", conditions, first, between)
	require.Less(t, first, 0.02)
	require.Less(t, between, 0.05)
}

// A small cache evicts, engines that drop what is not needed evict less, and late events cost nothing.
func TestConditions(t *testing.T) {
	o := Options{Workers: 4, Load: 0.7, Duration: 10 * time.Minute}
	run := func(workload string) *Result {
		o.Workload = workload
		return simulate(t, o, "cost_ms")
	}
	several := func(workload string, figure func(*Result) float64) (sum float64) { // single runs differ by chance
		for o.Seed = range 4 {
			sum += figure(run(workload))
		}
		o.Seed = 0
		return sum
	}
	hits := func(workload string) float64 { return several(workload, (*Result).Hit) }
	means := func(workload string) float64 {
		return several(workload, func(r *Result) float64 { return float64(r.Mean()) })
	}
	whole, small, drop := run("agents"), run("agents:kv=0.3"), run("agents:kv=0.3,drop=1")
	require.Less(t, small.Hit(), whole.Hit())
	require.Greater(t, small.Mean(), whole.Mean())
	require.Greater(t, drop.Hit(), small.Hit())
	unmarked := hits("agents:kv=0.3,drop=1,final=0")
	require.Greater(t, unmarked, hits("agents:kv=0.3"), "compactions and sub-agents")
	require.Less(t, unmarked, hits("agents:kv=0.3,drop=1"))
	require.NotEqual(t, whole.Mean(), run("agents:slow=0.5").Mean())
	require.InEpsilon(t, whole.Mean(), run("agents:late=1").Mean(), 0.05, "what was placed is known before the events")
	require.NotEqual(t, whole.Mean(), run("agents:hold=1").Mean())
	require.Greater(t, whole.End(), whole.Mean())
	require.NotEqual(t, small.Hit(), run("agents:kv=0.3,pin=10").Hit())
	high := run("agents:high=0.25,hold=1")
	require.InDelta(t, 0.25, float64(high.Requests())/float64(whole.Requests()), 0.1)
	o.Load = 1.5 // otherwise hardly any wait in the router
	require.Less(t, means("agents:high=0.25,hold=1"), 0.9*means("agents:high=0.25,hold=1,tier=0"))
	o.Load = 0.7
	others := run("agents:high=0.25,others=1")
	require.InDelta(t, whole.Requests(), high.Requests()+others.Requests(), 0.02*float64(whole.Requests()))
	require.Less(t, means("agents:high=0.25,preempt=1"), 0.9*means("agents:high=0.25,hold=1"))
	split := run("agents:kv=2,split=0.5")
	require.InDelta(t, split.Requests(), whole.Requests(), 0.02*float64(whole.Requests()))
	require.Greater(t, split.Mean(), whole.Mean(), "half of the engines compute all prompts")
	require.Less(t, split.End()-split.Mean(), whole.End()-whole.Mean(), "no prefill interrupts a response")
}

// Where prompts omit past reasoning, more is computed, and computing it in advance saves most of that. Elsewhere, nothing changes.
func TestAhead(t *testing.T) {
	o := Options{Workers: 4, Load: 0.5, Duration: 10 * time.Minute}
	run := func(workload string) *Result {
		o.Workload = workload
		return simulate(t, o, "cost_ms")
	}
	plain := run("agents")
	require.Equal(t, plain, run("agents:ahead=1"))
	require.Less(t, run("agents:forget=0.6").Hit(), plain.Hit())
	var without, with float64
	for o.Seed = range 4 { // single runs differ by chance
		forget, ahead := run("agents:forget=0.6"), run("agents:forget=0.6,ahead=1")
		require.Greater(t, ahead.Hit(), forget.Hit())
		without, with = without+float64(forget.Mean()), with+float64(ahead.Mean())
	}
	require.Less(t, with, 0.85*without)
}

// The end of a prompt that is printed again has other hashes, and what is known of it is the beginning of the next prompt.
func TestForget(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		c := agents(rnd)
		c.forget(0.5)
		s := &session{chain: c, id: rnd.Uint64()}
		var last []uint64
		var lastLength int
		for s.turn < len(c.turns) {
			again := c.turns[s.turn].again
			var known []uint64
			if again > 0 {
				known, _ = s.known(256)
				require.Equal(t, last, s.hashes, "known changes nothing")
			}
			s.prompt(256)
			require.Len(t, s.hashes, (s.length+c.turns[s.turn].output)/256)
			if again > 0 {
				require.Equal(t, known, s.hashes[:len(known)])
				require.Less(t, s.length, lastLength+c.turns[s.turn].tokens+c.turns[s.turn-1].output)
				if again > 512 {
					require.NotEqual(t, last[len(known)-1], known[len(known)-1])
				}
			}
			last, lastLength = slices.Clone(s.hashes), s.length
			s.turn++
		}
	}
}

// The generated agents have the published shape.
func TestAgents(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var turns, requests, prompt, output, delegating float64
	var count func(c *chain)
	count = func(c *chain) {
		s := &session{chain: c}
		for s.turn < len(c.turns) {
			if child := c.turns[s.turn].child; child != nil {
				count(child)
			}
			s.prompt(256)
			requests++
			prompt += float64(s.length)
			output += float64(c.turns[s.turn].output)
			s.turn++
		}
	}
	const n = 500
	for range n {
		c := agents(rnd)
		turns += float64(len(c.turns)) / n
		for _, t := range c.turns {
			if t.child != nil {
				delegating += 1. / n
				break
			}
		}
		count(c)
	}
	require.InEpsilon(t, 43, turns, 0.1)
	require.InEpsilon(t, 444, output/requests, 0.1)
	require.InEpsilon(t, 142_000, prompt/requests, 0.1)
	require.InEpsilon(t, 0.44, delegating, 0.15)
	t.Logf("%.0f turns, %.0f prompt tokens, %.0f output tokens, %.2f of the sessions delegate", turns, prompt/requests, output/requests, delegating)
}

// The reuse that Mooncake's authors report is that of whole traces, by blocks and with a cache without limits.
func TestReuse(t *testing.T) {
	requests, blocks, cached, err := Reuse([]byte(`{"timestamp":0,"input_length":1025,"output_length":1,"hash_ids":[1,2,3]}
{"timestamp":9,"input_length":1500,"output_length":1,"hash_ids":[1,2,4]}

{"timestamp":5,"input_length":600,"output_length":1,"hash_ids":[5,6]}`))
	require.NoError(t, err)
	require.Equal(t, []int{3, 8, 2}, []int{requests, blocks, cached})
	dir := cmp.Or(os.Getenv("WEFT_SHARED"), filepath.Join("..", "..", "..", "shared"))
	for name, want := range map[string]float64{"conversation": 0.366, "synthetic": 0.640} {
		data, err := os.ReadFile(filepath.Join(dir, "traces", "mooncake_"+name+".jsonl"))
		if err != nil {
			t.Skip(err)
		}
		_, blocks, cached, err := Reuse(data)
		require.NoError(t, err)
		require.InDelta(t, want, float64(cached)/float64(blocks), 0.0005, name)
	}
}

// Recorded requests are placed with the expected reuse.
func TestTrace(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":2048,"output_length":9,"hash_ids":[1,2,%d,%d]}`+"\n", 1000*i, 100+i, 200+i)
	}
	r, err := Run(&Options{Trace: []byte(b.String()), Workers: 1, Load: 0.01})
	require.NoError(t, err)
	require.InDelta(t, 26, r.Requests(), 1)
	require.InDelta(t, 0.5, r.Hit(), 1e-9)

	b.Reset()
	for i := range 40 {
		fmt.Fprintf(&b, `{"timestamp":1,"event":{"event_type":"request_end","agent_context":{"session_id":"s"},"request":{"output_tokens":9,"request_received_ms":%d,"replay":{"trace_block_size":16,"input_length":40,"input_sequence_hashes":[1,%d]}}}}`+"\n", 1000*i, 10+i)
	}
	r, err = Run(&Options{Trace: []byte(b.String()), Workers: 1, Load: 0.01})
	require.NoError(t, err)
	require.InDelta(t, 0.4, r.Hit(), 1e-9)
}

// Records of Dynamo's format have the hints of requests, and the responses of a session are part of its next prompts.
func TestTraceSessions(t *testing.T) {
	record := func(at, length int, hashes, context, hints string) string {
		return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","agent_context":{%s},"request":{"model":"m",%s"output_tokens":32,"request_received_ms":%d,`+
			`"replay":{"trace_block_size":16,"input_length":%d,"input_sequence_hashes":[%s]}}}`+"\n", context, hints, at, length, hashes)
	}
	first := record(0, 40, "1,2,9", `"session_id":"s"`, `"priority":-2,"strict_priority":1,`)
	next := record(60_000, 80, "1,2,3,4,5", `"session_id":"s","parent_session_id":"p","session_final":true,"compaction":{},"input_trigger":"tool_result"`, "")
	tr, err := parse([]byte(first + next + record(1, 1, "", "", "")))
	require.NoError(t, err)
	require.Equal(t, []intent.Intent{
		{Session: intent.Session{ID: "s"}, Priority: -2, Tier: 1},
		{},
		{Session: intent.Session{ID: "s", Parent: "p", Final: true}, Trigger: intent.ToolResult, Compaction: map[string]string{}},
	}, []intent.Intent{tr.requests[0].intent, tr.requests[1].intent, tr.requests[2].intent})
	tr, err = parse([]byte(`{"timestamp":1,"input_length":1,"priority":3,"strict_priority":4}`))
	require.NoError(t, err)
	require.Equal(t, intent.Intent{Priority: 3, Tier: 4}, tr.requests[0].intent)

	for name, tt := range map[string]struct {
		next string
		want float64
	}{
		"the response":    {next, 64. / 80},
		"another prompt":  {record(60_000, 80, "1,3,3,4,5", `"session_id":"s"`, ""), 16. / 80},
		"another session": {record(60_000, 80, "1,2,3,4,5", `"session_id":"z"`, ""), 32. / 80},
		"no session":      {record(60_000, 80, "1,2,3,4,5", "", ""), 32. / 80},
		"a short one":     {record(60_000, 36, "1,2,3", `"session_id":"s"`, ""), 32. / 36},
	} {
		r, err := Run(&Options{Trace: []byte(first + tt.next), Workers: 1, Load: 0.001})
		require.NoError(t, err)
		require.Equal(t, 1, r.Requests(), name)
		require.InDelta(t, tt.want, r.Hit(), 1e-9, name)
	}
	_, err = parse([]byte(first + strings.ReplaceAll(next, `"m"`, `"n"`)))
	require.EqualError(t, err, `sim: trace: line 2: a request for the model "n" (want "m", as before)`)
}
