// SPDX-License-Identifier: Apache-2.0

// Package sim runs a [router.Router] against simulated engines in virtual time, to compare policies.
//
// The engines compute prompts in chunks, in the same steps in which they decode, share blocks, start a request when there is
// room for its prompt and response, evict the least recently used blocks, and send events 10 to 50 ms late. Policies cannot see
// their costs, which are, unless conditions change them: 0.030 ms for each prompt token and 3e-7 ms for each token before
// it, 8 ms for each step with decoding, 0.12 ms for each sequence and 8e-6 ms for each token of its context. With the same seed,
// all policies get the same requests at the same times, except that a session's next request waits for the response to
// the last one. At the start, sessions are in progress as after a long time, with empty caches.
package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// Options describe a simulation.
type Options struct {
	// Policy is the policy; nil means the default. A [policy.Observer] can be used for one simulation only.
	Policy policy.Policy
	// Workload is "agents" or "chat"; "" means agents. Agents are coding agents in the shape that AgentX published: 43 turns on
	// average, prompts of 142,000 tokens and responses of 444, tools that take 2 to 30 s, sub-agents in 44 % of the sessions; all
	// share their first 20,000 tokens. Chats have up to 6 short turns and one of 50 system prompts of 2,000 to 10,000
	// tokens. Conditions can follow, as in "agents:kv=0.67,lost=0.05":
	//
	//	kv    size of the engines' caches, as a part of 5.5 Mi tokens, which is what agents need at a load of 0.9
	//	slow  speed of a quarter of the engines, as a part of the others'
	//	lost  part of the events that are lost
	//	late  seconds by which events are later than usual
	//	drop  1 if engines remove what router.Options.Drop reports
	//	pin   seconds: engines evict the blocks of sessions that continue sooner only if there are no others; they know it exactly
	//	final 0 if the last requests of sessions are not marked
	//	hold  milliseconds for router.Options.Hold
	//	high  part of the sessions that only are measured, because their requests come first in the router's queue
	//	tier  0 if their requests do not
	//	others 1 if the other sessions are measured
	//	preempt 1 if requests of lower tiers can be preempted: see router.Ticket.Preemptible
	//	forget part of the agents' responses that is reasoning; prompts omit it when the user asks something new, with every eighth request
	//	ahead 1 if idle engines compute what is known of such a prompt after the last response before it
	//	named 0 if requests have no session
	//	base, token, pair, front, transfer, step, sequence, context
	//	      costs of the engines in milliseconds: of a prompt, each of its tokens to compute, each token before that, each
	//	      token of a prompt before it reaches the engine, each token that is sent to another engine, a step with
	//	      decoding, each request in it, and each token of its context; [Calibrate] returns the costs of a recorded run
	//	split part of the engines that only compute prompts and send their KV data to the others, which only decode
	Workload string
	// Trace has recorded requests for one model, one JSON object a line, in the format of Mooncake (timestamp, input_length,
	// output_length, hash_ids of 512 tokens) or of Dynamo's request traces (dynamo.request.trace.v1), in which
	// examples/gateway also writes its own. They are sent at the recorded times, faster or slower so that Load is reached, with
	// the recorded sessions and priorities (priority, strict_priority). A response is cached as the part of its session's next prompt
	// that follows, if that begins with the same prompt. The requests replace the workload, but not its conditions. nil means none.
	Trace []byte
	// Workers is the number of engines; 0 means 8.
	Workers int
	// Load is the part of the engines' time that the requests need if every prompt that was computed once is cached
	// where it is needed; 0 means 0.75.
	Load float64
	// Duration is the simulated time; 0 means half an hour. With a trace, it lasts until the last response. Requests are measured
	// after the first third of the time in which they arrive.
	Duration time.Duration
	// Seed selects the random numbers.
	Seed uint64

	create func(rnd *rand.Rand) *chain // nil means the workload's
}

// Result is the outcome of a simulation.
type Result struct {
	first  []time.Duration // times to first token, in ascending order
	whole  []time.Duration // times to the end of the response
	hit    float64
	placed []int
}

// Requests returns the number of requests that were measured.
func (r *Result) Requests() int { return len(r.first) }

// Hit returns the part of the prompt tokens that were cached.
func (r *Result) Hit() float64 { return r.hit }

// Mean returns the mean time to first token.
func (r *Result) Mean() time.Duration { return mean(r.first) }

// End returns the mean time to the end of the response.
func (r *Result) End() time.Duration { return mean(r.whole) }

func mean(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range times {
		sum += d
	}
	return sum / time.Duration(max(len(times), 1))
}

// Percentile returns the time to first token that p percent of the requests do not exceed.
func (r *Result) Percentile(p float64) time.Duration {
	if len(r.first) == 0 {
		return 0
	}
	return r.first[min(len(r.first)-1, int(p/100*float64(len(r.first))))]
}

const capacity = 11 << 19 // tokens that an engine can hold

// run is a simulation in progress.
type run struct {
	opt     Options
	block   int        // tokens in a block of the engines and the index
	rnd     *rand.Rand // of the engines
	now     time.Time
	events  queue
	serial  uint64
	router  *router.Router
	engines []*engine
	from    time.Time // of the measurement
	held    map[*router.Ticket]*job
	result  Result
	cached  float64
	prompt  float64

	lost  float64
	late  time.Duration
	named bool
	costs costs
	high  float64
	tier  uint32
	pin   time.Duration
	final bool

	others    bool
	preempt   bool
	ahead     bool
	preempted []*job
	role      policy.Role // of requests
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

// workloads make the chains of the workloads.
var workloads = map[string]func(*rand.Rand) *chain{"agents": agents, "chat": chat}

// conditions returns the workload's name and its conditions.
func (o *Options) conditions() (name string, c map[string]float64, err error) {
	name, rest, _ := strings.Cut(cmp.Or(o.Workload, "agents"), ":")
	if workloads[name] == nil {
		return "", nil, fmt.Errorf("sim: unknown workload %q (want agents or chat)", name)
	}
	c = map[string]float64{"kv": 1, "slow": 1, "lost": 0, "late": 0, "drop": 0, "hold": 0, "named": 1, "final": 1, "split": 0, "high": 0, "tier": 1, "others": 0, "preempt": 0, "pin": 0, "forget": 0, "ahead": 0,
		"base": 0, "token": 0.030, "pair": 3e-7, "front": 0, "transfer": 0.005, "step": 8, "sequence": 0.12, "context": 8e-6}
	for part := range strings.SplitSeq(rest, ",") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		if _, ok := c[key]; !ok {
			return "", nil, fmt.Errorf("sim: unknown condition %q (want %s)", key, strings.Join(slices.Sorted(maps.Keys(c)), ", "))
		}
		if c[key], err = strconv.ParseFloat(value, 64); err != nil || !(c[key] >= 0) || c[key] > 1e6 {
			return "", nil, fmt.Errorf("sim: invalid value %q of condition %s", value, key)
		}
	}
	if c["kv"]*capacity < 2*window || c["slow"] <= 0 || c["token"] <= 0 {
		return "", nil, fmt.Errorf("sim: kv must be at least %.2f, slow and token above 0 (got %v, %v, %v)", 2.0*window/capacity, c["kv"], c["slow"], c["token"])
	}
	return name, c, nil
}

// Run simulates. nil options mean the defaults. An unknown workload and values that are negative or not finite are errors.
// Half an hour of 8 engines takes some seconds.
func Run(opt *Options) (*Result, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	o.Workers, o.Load = cmp.Or(o.Workers, 8), cmp.Or(o.Load, 0.75)
	o.Duration = cmp.Or(o.Duration, 30*time.Minute)
	if !(o.Load > 0) || math.IsInf(o.Load, 1) || o.Workers < 0 || o.Duration < 0 { // with NaN, no request would ever be the last
		return nil, fmt.Errorf("sim: Workers, Load and Duration must be positive (got %d, %v, %v)", o.Workers, o.Load, o.Duration)
	}
	name, c, err := o.conditions()
	if err != nil {
		return nil, err
	}
	if o.create == nil {
		o.create = workloads[name]
	}
	if create := o.create; c["forget"] > 0 {
		o.create = func(rnd *rand.Rand) *chain {
			s := create(rnd)
			s.forget(c["forget"])
			return s
		}
	}
	var tr *trace
	block := 256
	if o.Trace != nil {
		if tr, err = parse(o.Trace); err != nil {
			return nil, err
		}
		block = tr.block
		if tr.longest > int(c["kv"]*capacity) {
			return nil, fmt.Errorf("sim: a request of %d tokens is longer than an engine's cache of %.0f", tr.longest, c["kv"]*capacity)
		}
	}
	start := time.Unix(0, 0)
	r := &run{
		opt: o, block: block, now: start, from: start.Add(o.Duration / 3), rnd: rand.New(rand.NewPCG(o.Seed, 1)), held: make(map[*router.Ticket]*job),
		lost: c["lost"], late: time.Duration(c["late"] * 1e9), named: c["named"] > 0, costs: conditionCosts(c), high: c["high"], tier: uint32(c["tier"]), pin: time.Duration(c["pin"] * 1e9), final: c["final"] > 0, others: c["others"] > 0, preempt: c["preempt"] > 0,
		ahead: c["ahead"] > 0,
	}
	ropt := &router.Options{Policy: o.Policy, Hold: time.Duration(c["hold"] * 1e6)}
	if c["drop"] > 0 {
		ropt.Drop = r.drop
	}
	r.router = router.New(index.New(r.block, nil), ropt)
	size := int(c["kv"]*capacity) / r.block
	prefills := int(math.Round(c["split"] * float64(o.Workers)))
	if c["split"] > 0 {
		r.role = policy.Split
		if prefills < 1 || prefills >= o.Workers {
			return nil, fmt.Errorf("sim: split must leave engines of both kinds (got %d of %d)", prefills, o.Workers)
		}
	}
	for i := range o.Workers {
		role := policy.Both
		if r.role == policy.Split {
			if role = policy.Decode; i < prefills {
				role = policy.Prefill
			}
		}
		id, err := r.router.AddWorker(index.Key{Instance: "engine", DPRank: uint32(i)}, role, &router.Engine{Capacity: size})
		if err != nil {
			return nil, err
		}
		e := &engine{run: r, id: id, slow: 1, cache: newCache(size)}
		if i < o.Workers/4 {
			e.slow = 1 / c["slow"]
		}
		r.engines = append(r.engines, e)
	}
	r.result.placed = make([]int, o.Workers)
	if tr != nil {
		r.from = start.Add(r.replay(tr) / 3)
		r.opt.Duration = math.MaxInt64 // until the last response
	} else {
		r.arrive()
	}
	for len(r.events) > 0 {
		e := heap.Pop(&r.events).(event)
		if r.now = e.at; r.now.After(start.Add(r.opt.Duration)) {
			break
		}
		e.do()
	}
	slices.Sort(r.result.first)
	r.result.hit = r.cached / max(r.prompt, 1)
	res := r.result // its address would keep the whole run in memory
	return &res, nil
}

// arrive schedules the sessions, as a Poisson process whose work is Load of what the engines can do. It begins so long before
// the start that all sessions have ended that began earlier; those that have not ended at the start continue with the
// turn that they have reached, some time in the first minutes.
func (r *run) arrive() {
	rnd := rand.New(rand.NewPCG(r.opt.Seed, 2))
	var work float64 // ms of an engine that a session takes on average
	var longest time.Duration
	const sample = 400
	for range sample {
		ms, lasts := r.opt.create(rnd).cost(&r.costs)
		work += ms / sample
		longest = max(longest, lasts)
	}
	speed := float64(0)
	for _, e := range r.engines {
		speed += 1 / e.slow
	}
	end := r.opt.Duration
	for at := -longest; ; {
		at += time.Duration(min(rnd.ExpFloat64()*work/r.opt.Load/speed, 1e12) * 1e6)
		if at > end {
			return
		}
		s := &session{chain: r.opt.create(rnd), id: rnd.Uint64()}
		s.name = strconv.FormatUint(s.id, 36)
		delay := at
		if at < 0 && !s.advance(-at, r.block, &r.costs) {
			continue
		}
		if at < 0 {
			delay = time.Duration(rnd.Int64N(int64(r.opt.Duration/10) + 1))
		}
		r.after(delay, func() { r.next(s) })
	}
}

// advance moves the session to the turn that it reaches after some time, and reports whether there is one.
func (s *session) advance(d time.Duration, block int, c *costs) bool {
	for i := range s.turns {
		one := chain{turns: s.turns[i : i+1]}
		_, lasts := one.cost(c)
		if d -= lasts; d < 0 {
			return true
		}
		s.prompt(block)
		s.turn++
	}
	return false
}

// next sends the next request of a session.
func (r *run) next(s *session) {
	if c := s.turns[s.turn].child; c != nil {
		s.turns[s.turn].child = nil
		child := &session{chain: c, id: s.id ^ uint64(s.turn)<<32, name: s.name + "." + strconv.Itoa(s.turn), parent: s}
		r.next(child)
		return
	}
	r.giveWay(s.ahead)
	s.prompt(r.block)
	r.offer(s)
}

// prefetch computes the known part of a session's next prompt where its last one was computed, if that engine has no prompt to compute.
func (r *run) prefetch(s *session, e *engine) {
	if e.ahead != nil || len(e.waiting)+len(e.started) > 0 {
		return
	}
	hashes, n := s.known(r.block)
	req := &router.Request{Hashes: hashes, Tokens: n, Only: []index.WorkerID{e.id}, Intent: intent.Intent{Priority: -1}}
	tk, err := r.router.Offer(req, r.now)
	if err != nil {
		panic(err)
	}
	if tk.Decision() == nil {
		tk.Cancel(r.now)
		return
	}
	e.ahead = &job{placed: r.now, request: req, ticket: tk, hashes: hashes, length: n, output: 1}
	s.ahead = e.ahead
	e.submit(e.ahead)
}

// giveWay cancels a job of prefetch, unless it is nil or has ended.
func (r *run) giveWay(j *job) {
	if j == nil {
		return
	}
	if e := r.engines[j.ticket.Decision().Worker]; e.ahead == j {
		e.ahead = nil
		e.cancel(j)
		j.ticket.Cancel(r.now)
	}
}

// offer offers the session's next request to the router.
func (r *run) offer(s *session) {
	t := &s.turns[s.turn]
	req := &router.Request{Hashes: s.hashes[:s.length/r.block], Tokens: s.length, Role: r.role}
	in := &req.Intent
	switch {
	case s.recorded != nil:
		*in = *s.recorded
		if in.Session.Final = in.Session.Final && r.final; !r.named {
			in.Session = intent.Session{}
		}
	case r.named:
		in.Session = intent.Session{ID: s.name, Final: r.final && s.turn == len(s.turns)-1}
		if s.parent != nil {
			in.Session.Parent = s.parent.name
		}
		if s.turn > 0 {
			in.Trigger = intent.ToolResult
		}
		if s.turn+1 < len(s.turns) && s.turns[s.turn+1].fresh {
			in.Compaction = map[string]string{}
		}
	}
	if r.high > 0 && s.isHigh(r) {
		in.Tier = r.tier
	}
	tk, err := r.router.Offer(req, r.now)
	if err != nil {
		panic(err)
	}
	j := &job{session: s, placed: r.now, request: req, ticket: tk, hashes: s.hashes[:len(s.hashes):len(s.hashes)], length: s.length, output: t.output}
	if r.preempt {
		r.preemptible(j)
	}
	r.submit(j)
	r.placed()
}

// preemptible permits that a request is preempted.
func (r *run) preemptible(j *job) {
	j.ticket.Preemptible(func() { r.preempted = append(r.preempted, j) })
}

// yield offers the requests again that were preempted.
func (r *run) yield() {
	for len(r.preempted) > 0 {
		old := r.preempted[0]
		if r.preempted = r.preempted[1:]; old.made > 0 {
			continue // its first token came in the same step
		}
		r.engines[old.ticket.Decision().Worker].cancel(old)
		delete(r.held, old.ticket) // if Tick has not returned it
		j := &job{session: old.session, placed: old.placed, request: old.request, ticket: old.ticket, hashes: old.hashes, length: old.length, output: old.output}
		r.preemptible(j)
		if err := j.ticket.Requeue(j.request, r.now); err != nil {
			panic(err)
		}
		r.submit(j)
	}
}

// submit sends a request to its engine, or holds it until it has one.
func (r *run) submit(j *job) {
	if j.ticket.Decision() == nil {
		r.held[j.ticket] = j
		return
	}
	if d := j.ticket.Prefill(); d != nil {
		prompt := *j
		prompt.part, prompt.output, prompt.hashes = j, 0, j.hashes[:j.length/r.block]
		j.ready = true
		r.send(r.engines[d.Worker], &prompt)
		return
	}
	w := int(j.ticket.Decision().Worker)
	r.result.placed[w]++
	r.send(r.engines[w], j)
}

// send sends a request to an engine.
func (r *run) send(e *engine, j *job) {
	if r.costs.front == 0 {
		e.submit(j)
		return
	}
	r.after(time.Duration(r.costs.front*float64(j.length)*1e6), func() { e.submit(j) })
}

// drop removes blocks from an engine's cache.
func (r *run) drop(id index.WorkerID, hashes []uint64) {
	hashes = slices.Clone(hashes)
	r.after(time.Millisecond, func() {
		e := r.engines[id]
		e.removed = e.cache.drop(hashes, e.removed)
		e.report()
	})
}

// placed sends the requests that waited and were placed.
func (r *run) placed() {
	r.yield()
	if len(r.held) == 0 {
		return
	}
	placed, next := r.router.Tick(r.now)
	for _, tk := range placed {
		j := r.held[tk]
		delete(r.held, tk)
		r.submit(j)
	}
	r.yield()
	if !next.IsZero() {
		r.after(next.Sub(r.now), r.placed)
	}
}

// isHigh reports whether the session is one of those that only are measured.
func (s *session) isHigh(r *run) bool {
	for s.parent != nil {
		s = s.parent
	}
	return float64(s.id>>11)/(1<<53) < r.high
}

// counts reports whether a request is measured.
func (r *run) counts(j *job) bool {
	return !j.placed.Before(r.from) && (r.high == 0 || j.session.isHigh(r) != r.others)
}

// first counts a first token.
func (r *run) first(j *job) {
	if !r.counts(j) {
		return
	}
	r.result.first = append(r.result.first, r.now.Sub(j.placed))
	r.cached += float64(j.cached)
	r.prompt += float64(j.length)
}

// finished continues the session after a response.
func (r *run) finished(j *job) {
	if r.counts(j) {
		r.result.whole = append(r.result.whole, r.now.Sub(j.placed))
	}
	s := j.session
	switch s.turn++; {
	case s.turn < len(s.turns):
		if r.ahead && s.turns[s.turn].again > 0 && s.recorded == nil {
			r.prefetch(s, r.engines[j.ticket.Decision().Worker])
		}
		r.after(s.turns[s.turn].pause, func() { r.next(s) })
	case s.parent != nil:
		r.after(0, func() { r.next(s.parent) })
	}
}
