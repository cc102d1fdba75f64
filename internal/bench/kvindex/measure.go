// SPDX-License-Identifier: Apache-2.0

package kvindex

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/kvbench/kvw"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Cost is the cost of a workload for one peer.
type Cost struct {
	Peer              string  `json:"peer"`
	USPerQuery        float64 `json:"us_per_query"` // mean over the queries of the median of the rounds
	USPerQueryP50     float64 `json:"us_per_query_p50"`
	USPerQueryP99     float64 `json:"us_per_query_p99"`
	NSPerEventBlock   float64 `json:"ns_per_event_block"` // CPU time of the process, garbage collection included; median of the rounds
	BytesPerResidency float64 `json:"bytes_per_residency"`
	AllocsPerQuery    float64 `json:"allocs_per_query"`
	AllocsPerEvent    float64 `json:"allocs_per_event"`
	// BlockOpsPerS is the blocks of all queries and all events over the time of both.
	BlockOpsPerS float64 `json:"block_ops_per_s"`
	Residencies  int     `json:"residencies"`
	// What it takes over what weft takes. Events: the median of the ratios of the rounds.
	QueryRatio float64 `json:"query_ratio,omitempty"`
	EventRatio float64 `json:"event_ratio,omitempty"`
	// Asked is the number of queries that were asked: fewer than there are where a peer is too slow for all of them. Those are spread evenly.
	Asked  int  `json:"asked"`
	Rounds int  `json:"rounds"`
	Noisy  bool `json:"noisy"` // a median more than 15 % above the fastest round
	// Wrong describes the wrong result, if any; there are no times then.
	Wrong string `json:"wrong,omitempty"`
}

// Comparison holds the costs of a workload for all peers.
type Comparison struct {
	Workload string `json:"workload"`
	Checksum int64  `json:"checksum"`
	Known    bool   `json:"known"` // the checksum was compared with the published one
	Queries  int    `json:"queries"`
	// Roots is the number of different first blocks of prompts, and LargestRoot the share of the blocks whose prompts begin with the most
	// common one. An index divided by first blocks would have those blocks in one shard.
	Roots       int     `json:"roots"`
	LargestRoot float64 `json:"largest_root"`
	Costs       []Cost  `json:"costs"`
}

// Cost returns the cost of the named peer; nil if it was not measured or is wrong.
func (c *Comparison) Cost(peer string) *Cost {
	for i := range c.Costs {
		if c.Costs[i].Peer == peer && c.Costs[i].Wrong == "" {
			return &c.Costs[i]
		}
	}
	return nil
}

// Goal is one thing that is to hold.
type Goal struct {
	What string  `json:"what"`
	Is   float64 `json:"is"`
	Want float64 `json:"want"`
	Met  bool    `json:"met"`
}

// Goals returns what is to hold for weft: on agent workloads a lookup takes at most a tenth of the plain tree's, an event half; a
// residency takes no more bytes than Dynamo's compressed tree; nothing is allocated by a lookup. What events
// allocate while the index grows from nothing has no goal; [Beside.Goals] has one for an index that does not grow.
func (c *Comparison) Goals() (goals []Goal) {
	weft, tree := c.Cost("weft"), c.Cost("tree")
	if weft == nil {
		return []Goal{{What: "right"}}
	}
	least := func(what string, is, want float64) { goals = append(goals, Goal{what, is, want, is >= want}) }
	most := func(what string, is, want float64) { goals = append(goals, Goal{what, is, want, is <= want}) }
	if tree != nil && strings.HasPrefix(c.Workload, "agent_") {
		least("tree's lookup over weft's", tree.QueryRatio, 10)
	}
	if tree != nil {
		least("tree's event over weft's", tree.EventRatio, 2)
	}
	if ref, ok := ReferenceOf(c.Workload); ok {
		most("bytes per residency", weft.BytesPerResidency, ref.BytesPerResidency)
	}
	most("allocations per lookup", weft.AllocsPerQuery, 0)
	return goals
}

// player plays one workload through one peer.
type player struct {
	maker  Maker
	w      *kvw.Workload
	truth  []int64 // by query
	stride int     // of the queries asked

	peer       Peer
	seq, local []uint64
	mem        runtime.MemStats

	tick  time.Duration
	times [][]int32 // by query asked: nanoseconds in each round
	ns    []float64 // by round: nanoseconds per event block
	cost  Cost
}

func newPlayer(m Maker, w *kvw.Workload, most int) *player {
	return &player{
		maker: m, w: w, stride: 1, cost: Cost{Peer: m.Name},
		seq: make([]uint64, 0, most), local: make([]uint64, 0, most),
	}
}

// ask looks up the prompt of op and returns the sum of depths and the time on the clock.
func (p *player) ask(op *kvw.Op) (sum int64, took time.Duration) {
	// As if the caller had just computed the hashes.
	p.seq, p.local = p.w.AppendSeq(p.seq[:0], op), p.w.AppendLocal(p.local[:0], op)
	start := now()
	sum = p.peer.Match(p.seq, p.local)
	return sum, now() - start
}

// play applies the events, and calls f with the number of each query to run. It fails at an event without the expected
// effect, because the figures would then describe another workload.
func (p *player) play(f func(i int, op *kvw.Op) error) error {
	q := 0
	for i := range p.w.Ops {
		op := &p.w.Ops[i]
		if op.Kind == kvw.Query {
			if q%p.stride == 0 {
				if err := f(q, op); err != nil {
					return err
				}
			}
			q++
			continue
		}
		if n := p.peer.Apply(int(op.Worker), &op.Event); n != op.Blocks {
			return fmt.Errorf("operation %d: an event with %d blocks changed %d", i, op.Blocks, n)
		}
	}
	return nil
}

// sums returns the sum of depths of every query.
func (p *player) sums() (sums []int64, err error) {
	p.peer = p.maker.New(p.w.BlockSize, p.w.Workers)
	sums = make([]int64, p.w.Queries)
	err = p.play(func(i int, op *kvw.Op) error {
		sums[i], _ = p.ask(op)
		return nil
	})
	p.peer = nil
	return sums, err
}

// check compares the result of a query with the truth and keeps its time.
func (p *player) check(i int, sum int64, took time.Duration) error {
	if sum != p.truth[i] {
		return fmt.Errorf("query %d: the depths add up to %d, and should to %d", i, sum, p.truth[i])
	}
	j := i / p.stride
	if j == len(p.times) {
		p.times = append(p.times, nil)
	}
	p.times[j] = append(p.times[j], int32(min(took, math.MaxInt32)))
	return nil
}

// round plays the workload once with queries and once without.
func (p *player) round() error {
	if p.maker.Remote != nil {
		return p.remote()
	}
	if err := p.queries(); err != nil {
		return err
	}
	p.events()
	return nil
}

// remote is a round in another process, which tells times only.
func (p *player) remote() error {
	sums, times, err := p.maker.Remote.Queries(p.maker.Name)
	if err != nil {
		return err
	}
	if len(sums) != p.w.Queries || len(times) != p.w.Queries {
		return fmt.Errorf("%d results of %d queries", len(sums), p.w.Queries)
	}
	for i := range sums {
		if err := p.check(i, sums[i], time.Duration(times[i])); err != nil {
			return err
		}
	}
	took, err := p.maker.Remote.Events(p.maker.Name)
	if err != nil {
		return err
	}
	p.ns = append(p.ns, float64(took)/float64(max(1, p.w.EventBlocks())))
	return nil
}

// queries plays the whole file, and checks and times every lookup.
func (p *player) queries() error {
	p.peer = p.maker.New(p.w.BlockSize, p.w.Workers)
	runtime.GC()
	err := p.play(func(i int, op *kvw.Op) error {
		sum, took := p.ask(op)
		return p.check(i, sum, took)
	})
	p.peer = nil
	return err
}

// events plays the events alone and times them together. Then it takes the memory, and counts the allocations of lookups.
func (p *player) events() {
	before := p.memory()
	p.peer = p.maker.New(p.w.BlockSize, p.w.Workers)
	mallocs := p.mallocs()
	start := bench.CPUTime()
	for i := range p.w.Ops {
		if op := &p.w.Ops[i]; op.Kind != kvw.Query {
			p.peer.Apply(int(op.Worker), &op.Event)
		}
	}
	took := bench.CPUTime() - start
	p.ns = append(p.ns, float64(took)/float64(max(1, p.w.EventBlocks())))
	p.cost.AllocsPerEvent = float64(p.mallocs()-mallocs) / float64(max(1, p.w.Events()))
	after := p.memory()
	p.cost.Residencies = p.peer.Residencies()
	p.cost.BytesPerResidency = float64(after-before) / float64(max(1, p.cost.Residencies))

	const most = 200
	step := p.stride * max(1, p.w.Queries/p.stride/most)
	q, asked := 0, 0
	mallocs = p.mallocs()
	for i := range p.w.Ops {
		if op := &p.w.Ops[i]; op.Kind == kvw.Query {
			if q%step == 0 {
				p.ask(op)
				asked++
			}
			q++
		}
	}
	p.cost.AllocsPerQuery = float64(p.mallocs()-mallocs) / float64(max(1, asked))
	p.peer = nil
}

func (p *player) mallocs() uint64 {
	runtime.ReadMemStats(&p.mem)
	return p.mem.Mallocs
}

// memory returns the bytes in use.
func (p *player) memory() int64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers let go
	runtime.ReadMemStats(&p.mem)
	return int64(p.mem.HeapAlloc)
}

// sum sums up the rounds.
func (p *player) sum() Cost {
	c := p.cost
	c.Rounds, c.Asked = len(p.ns), len(p.times)
	per := make([]float64, len(p.times))
	var total, least float64
	for i, t := range p.times {
		slices.Sort(t)
		per[i] = max(0, float64(t[len(t)/2])-float64(p.tick))
		total += per[i]
		least += max(0, float64(t[0])-float64(p.tick))
	}
	slices.Sort(per)
	if n := len(per); n > 0 {
		c.USPerQuery, c.USPerQueryP50, c.USPerQueryP99 = total/float64(n)/1e3, per[n/2]/1e3, per[n*99/100]/1e3
	}
	ns := sorted(p.ns)
	c.NSPerEventBlock = ns[len(ns)/2]
	blocks := float64(p.w.EventBlocks())
	if t := c.USPerQuery*1e3*float64(p.w.Queries) + c.NSPerEventBlock*blocks; t > 0 {
		c.BlockOpsPerS = (float64(p.w.QueryBlocks) + blocks) / t * 1e9
	}
	c.Noisy = total > 1.15*least || c.NSPerEventBlock > 1.15*ns[0]
	return c
}

// budget limits the time of a peer's lookups in a round. It assumes perBlock for each block of depth of each worker,
// because the naive model examines all of them.
const (
	budget   = time.Second / 2
	perBlock = 60 * time.Nanosecond
)

// Compare plays w through the peers, round after round, and returns what it cost them. Every result is compared with
// the result of the first peer, whose checksum is compared with the published one; if the checksum differs, that is an
// error. If full, the naive peer runs all queries too, however long that takes. A process that plays whole workloads must have
// loaded w; it does not report memory.
func Compare(w *kvw.Workload, makers []Maker, rounds int, full bool) (*Comparison, error) {
	most := 0
	for i := range w.Ops {
		most = max(most, w.Ops[i].Blocks)
	}
	c := &Comparison{Workload: w.Name, Queries: w.Queries}
	c.Roots, c.LargestRoot = roots(w)
	truth, err := newPlayer(makers[0], w, most).sums()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", w.Name, makers[0].Name, err)
	}
	for _, s := range truth {
		c.Checksum += s
	}
	if ref, ok := ReferenceOf(w.Name); ok {
		if c.Known = true; c.Checksum != ref.Checksum {
			return nil, fmt.Errorf("%s: %s: checksum %d, should be %d", w.Name, makers[0].Name, c.Checksum, ref.Checksum)
		}
	}
	tick := tick()
	players := make([]*player, len(makers))
	for i, m := range makers {
		players[i] = newPlayer(m, w, most)
		players[i].truth, players[i].tick = truth, tick
		if m.Name == "naive" && !full {
			players[i].stride = int(c.Checksum*int64(perBlock)/int64(budget)) + 1
		}
	}
	for range rounds {
		for _, p := range players {
			if p.cost.Wrong != "" {
				continue
			}
			if err := p.round(); err != nil {
				p.cost.Wrong = err.Error()
			}
		}
	}
	for _, p := range players {
		if p.cost.Wrong != "" {
			c.Costs = append(c.Costs, Cost{Peer: p.cost.Peer, Wrong: p.cost.Wrong})
			continue
		}
		c.Costs = append(c.Costs, p.sum())
	}
	weft := slices.IndexFunc(c.Costs, func(k Cost) bool { return k.Peer == "weft" && k.Wrong == "" })
	if weft < 0 {
		return c, nil
	}
	for i := range c.Costs {
		if k := &c.Costs[i]; k.Wrong == "" {
			k.QueryRatio = k.USPerQuery / max(c.Costs[weft].USPerQuery, 1e-9)
			var ratios []float64
			for r, ns := range players[i].ns {
				ratios = append(ratios, ns/max(players[weft].ns[r], 1e-9))
			}
			k.EventRatio = median(ratios)
		}
	}
	return c, nil
}

// roots returns the number of different first blocks of prompts, and the share of the stored blocks with the most common one.
func roots(w *kvw.Workload) (n int, largest float64) {
	root, blocks, all := make(map[uint64]uint64), make(map[uint64]int), 0
	for i := range w.Ops {
		op := &w.Ops[i]
		if op.Kind == kvw.Query || op.Event.Kind != kvevent.Stored {
			continue
		}
		r := op.Event.BlockHashes[0]
		if op.Event.HasParent {
			r = root[op.Event.Parent]
		}
		for _, h := range op.Event.BlockHashes {
			if _, ok := root[h]; !ok {
				root[h] = r
				blocks[r]++
				all++
			}
		}
	}
	most := 0
	for _, b := range blocks {
		most = max(most, b)
	}
	return len(blocks), float64(most) / float64(max(1, all))
}

var began = time.Now()

// now reads the monotonic clock.
func now() time.Duration { return time.Since(began) }

// tick returns what two readings of the clock in a row differ by.
func tick() time.Duration {
	d := make([]time.Duration, 10001)
	for i := range d {
		start := now()
		d[i] = now() - start
	}
	slices.Sort(d)
	return d[len(d)/2]
}
