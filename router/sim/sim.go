// SPDX-License-Identifier: Apache-2.0

// Package sim runs a [router.Router] against simulated engines in virtual time, to compare policies.
//
// The engines compute prompts in chunks, in the same steps in which they decode, keep a limited number of blocks, and send
// events 10 to 50 ms late. Their costs are constants of this package that no policy can see: 0.030 ms for each prompt token
// and 3e-7 ms for each token before it, 8 ms for each step with decoding, 0.12 ms for each sequence and 8e-6 ms for each
// token of its context. With the same seed, all policies get the same requests at the same times, except that a session's
// next request waits for the response to the last one.
package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// Options describe a simulation.
type Options struct {
	// Policy is the policy; nil means the default.
	Policy policy.Policy
	// Workload is "agents" or "chat"; "" means agents. Agents are coding agents in the shape that AgentX published: 43 turns on
	// average, prompts that grow to 142,000 tokens, tools that take 2 to 30 s; all share their first 20,000 tokens. Chats have up
	// to 6 short turns and one of 50 system prompts of 2,000 to 10,000 tokens.
	Workload string
	// Workers is the number of engines; 0 means 8.
	Workers int
	// Load is the part of the engines' time that the requests need if every prompt that was computed once is cached
	// where it is needed; 0 means 0.75.
	Load float64
	// Duration is the simulated time; 0 means an hour. Requests of the second half are measured.
	Duration time.Duration
	// Seed selects the random numbers.
	Seed uint64

	create   func(rnd *rand.Rand) chain // nil means the workload's
	capacity int                        // tokens that an engine can hold; 0 means 3 Mi
	slow     float64                    // how many times longer the steps of a quarter of the engines take; 0 means 1
}

// chain is the work of one client, one request after another. Each prompt begins with the previous one.
type chain struct {
	shared       uint64 // identifies the beginning of the first prompt, which all chains with the same number share
	sharedTokens int    // its length
	turns        []turn
}

// turn is one request of a chain.
type turn struct {
	pause  time.Duration // since the end of the previous response
	tokens int           // appended to the prompt of the previous turn
	output int           // tokens to generate
}

// Result is the outcome of a simulation.
type Result struct {
	first  []time.Duration // times to first token, in ascending order
	hit    float64
	placed []int
}

// Requests returns the number of requests that were measured.
func (r *Result) Requests() int { return len(r.first) }

// Hit returns the part of the prompt tokens that were cached.
func (r *Result) Hit() float64 { return r.hit }

// Mean returns the mean time to first token.
func (r *Result) Mean() time.Duration {
	var sum time.Duration
	for _, d := range r.first {
		sum += d
	}
	return sum / time.Duration(max(len(r.first), 1))
}

// Percentile returns the time to first token that p percent of the requests do not exceed.
func (r *Result) Percentile(p float64) time.Duration {
	if len(r.first) == 0 {
		return 0
	}
	return r.first[min(len(r.first)-1, int(p/100*float64(len(r.first))))]
}

const blockSize = 64

// run is a simulation in progress.
type run struct {
	opt     Options
	rnd     *rand.Rand // of the engines
	now     time.Time
	events  queue
	serial  uint64
	router  *router.Router
	engines []*engine
	from    time.Time // of the measurement
	result  Result
	cached  float64
	prompt  float64
}

// event is something that happens at a time.
type event struct {
	at     time.Time
	serial uint64
	do     func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, k int) bool {
	return cmp.Or(q[i].at.Compare(q[k].at), cmp.Compare(q[i].serial, q[k].serial)) < 0
}
func (q queue) Swap(i, k int) { q[i], q[k] = q[k], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (r *run) after(d time.Duration, do func()) {
	r.serial++
	heap.Push(&r.events, event{r.now.Add(max(d, 0)), r.serial, do})
}

// Run simulates. nil options mean the defaults. An unknown workload and values that are negative or not finite are errors.
// An hour of 8 engines takes some seconds.
func Run(opt *Options) (*Result, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	o.Workers, o.Load = cmp.Or(o.Workers, 8), cmp.Or(o.Load, 0.75)
	o.capacity, o.slow = cmp.Or(o.capacity, 3<<20), cmp.Or(o.slow, 1)
	o.Duration = cmp.Or(o.Duration, time.Hour)
	if !(o.Load > 0) || math.IsInf(o.Load, 1) || o.Workers < 0 || o.Duration < 0 { // with NaN, no request would ever be the last
		return nil, fmt.Errorf("sim: Workers, Load and Duration must be positive (got %d, %v, %v)", o.Workers, o.Load, o.Duration)
	}
	if o.create == nil {
		switch o.Workload {
		case "", "agents":
			o.create = agents
		case "chat":
			o.create = chat
		default:
			return nil, fmt.Errorf("sim: unknown workload %q (want agents or chat)", o.Workload)
		}
	}
	start := time.Unix(0, 0)
	r := &run{opt: o, now: start, from: start.Add(o.Duration / 2), rnd: rand.New(rand.NewPCG(o.Seed, 1))}
	r.router = router.New(index.New(blockSize, nil), &router.Options{Policy: o.Policy})
	for i := range o.Workers {
		id, err := r.router.AddWorker(index.Key{Instance: "engine", DPRank: uint32(i)}, policy.Both, &router.Engine{Capacity: o.capacity / blockSize})
		if err != nil {
			return nil, err
		}
		e := &engine{run: r, id: id, slow: 1, cache: newCache(o.capacity / blockSize)}
		if i < o.Workers/4 {
			e.slow = o.slow
		}
		r.engines = append(r.engines, e)
	}
	r.result.placed = make([]int, o.Workers)
	r.arrive()
	for len(r.events) > 0 {
		e := heap.Pop(&r.events).(event)
		if r.now = e.at; r.now.After(start.Add(o.Duration)) {
			break
		}
		e.do()
	}
	slices.Sort(r.result.first)
	r.result.hit = r.cached / max(r.prompt, 1)
	return &r.result, nil
}

// arrive schedules the sessions, as a Poisson process whose work is Load of what the engines can do.
func (r *run) arrive() {
	rnd := rand.New(rand.NewPCG(r.opt.Seed, 2))
	var work float64 // ms of an engine that a session takes on average
	const sample = 400
	for range sample {
		s := r.opt.create(rnd)
		work += s.work() / sample
	}
	for at := 0.; ; {
		at += rnd.ExpFloat64() * work / r.opt.Load / float64(r.opt.Workers) // ms
		if at > float64(r.opt.Duration/time.Millisecond) {
			return
		}
		s := &session{chain: r.opt.create(rnd), id: rnd.Uint64()}
		s.name = strconv.FormatUint(s.id, 36)
		r.after(time.Duration(at*1e6), func() { r.next(s) })
	}
}

// work returns the time of an engine that the session takes, in ms, if a step with decoding serves 64 requests.
func (s *chain) work() (ms float64) {
	length := s.sharedTokens
	for _, t := range s.turns {
		n := float64(t.tokens)
		ms += n * (perToken + perPair*(float64(length)+n/2))
		length += t.tokens
		ms += float64(t.output) * (stepBase/64 + stepSequence + stepContext*float64(length))
	}
	return ms
}

// session is a session in progress.
type session struct {
	chain
	id     uint64
	name   string
	turn   int
	length int // of the prompt
	hashes []uint64
}

// prompt appends the next turn to the prompt.
func (s *session) prompt() {
	if s.turn == 0 {
		s.length = s.sharedTokens
	}
	s.length += s.turns[s.turn].tokens
	for n := len(s.hashes); n < s.length/blockSize; n++ {
		seed := s.id
		if n < s.sharedTokens/blockSize {
			seed = s.shared
		}
		var last uint64
		if n > 0 {
			last = s.hashes[n-1]
		}
		x := (last ^ seed + uint64(n)) * 0x9e3779b97f4a7c15
		s.hashes = append(s.hashes, x^x>>29)
	}
}

// next sends the next request of a session.
func (r *run) next(s *session) {
	s.prompt()
	req := &router.Request{Hashes: s.hashes, Tokens: s.length, Intent: intent.Intent{Session: intent.Session{ID: s.name}}}
	t, err := r.router.Offer(req, r.now)
	if err != nil {
		panic(err)
	}
	w := int(t.Decision().Worker)
	r.result.placed[w]++
	r.engines[w].submit(&job{session: s, placed: r.now, ticket: t, hashes: slices.Clone(s.hashes), length: s.length, output: max(1, s.turns[s.turn].output)})
}

// first counts a first token.
func (r *run) first(j *job) {
	if j.placed.Before(r.from) {
		return
	}
	r.result.first = append(r.result.first, r.now.Sub(j.placed))
	r.cached += float64(j.cached)
	r.prompt += float64(j.length)
}

// finished continues the session after a response.
func (r *run) finished(j *job) {
	s := j.session
	if s.turn++; s.turn < len(s.turns) {
		r.after(s.turns[s.turn].pause, func() { r.next(s) })
	}
}

func agents(rnd *rand.Rand) chain {
	s := chain{shared: 1, sharedTokens: 20_000}
	n := 1 + int(min(200, rnd.ExpFloat64()*42))
	for i := range n {
		t := turn{tokens: int(min(40_000, lognormal(rnd, 1700, 1.1))), output: int(min(4000, lognormal(rnd, 300, 0.9)))}
		if i > 0 {
			t.pause = time.Duration(2000+rnd.IntN(28_000)) * time.Millisecond
		}
		s.turns = append(s.turns, t)
	}
	return s
}

func chat(rnd *rand.Rand) chain {
	s := chain{shared: 2 + rnd.Uint64N(50)}
	s.sharedTokens = 2000 + int(s.shared)*160
	for i := range 1 + rnd.IntN(6) {
		t := turn{tokens: int(min(8000, lognormal(rnd, 400, 1))), output: int(min(2000, lognormal(rnd, 250, 0.8)))}
		if i > 0 {
			t.pause = time.Duration(5000+rnd.IntN(40_000)) * time.Millisecond
		}
		s.turns = append(s.turns, t)
	}
	return s
}

// lognormal returns a random number with a median and a standard deviation of its logarithm.
func lognormal(rnd *rand.Rand, median, sigma float64) float64 {
	return median * math.Exp(sigma*rnd.NormFloat64())
}
