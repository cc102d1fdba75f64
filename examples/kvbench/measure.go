// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/weft-go/weft/examples/kvbench/kvw"
	"github.com/weft-go/weft/kvhash/index"
)

// figures is one line of output.
type figures struct {
	Workload          string  `json:"workload"`
	Checksum          int64   `json:"checksum"`
	Queries           int     `json:"queries"`
	USPerQuery        float64 `json:"us_per_query"`
	NSPerEventBlock   float64 `json:"ns_per_event_block"`
	BytesPerResidency float64 `json:"bytes_per_residency"`
	AllocsPerQuery    float64 `json:"allocs_per_query"`
	AllocsPerEvent    float64 `json:"allocs_per_event"`
	USPerQueryP50     float64 `json:"us_per_query_p50"`
	USPerQueryP99     float64 `json:"us_per_query_p99"`
	BlocksPerQuery    float64 `json:"blocks_per_query"`
	HitRate           float64 `json:"hit_rate"`
	Residencies       int     `json:"residencies"`
	BlockOpsPerS      float64 `json:"block_ops_per_s"`
	Rounds            int     `json:"rounds"`
	Noisy             bool    `json:"noisy"`
}

// player plays one workload.
type player struct {
	w       *kvw.Workload
	hashes  []uint64
	matches []index.Match

	tick    time.Duration // time of reading the clock
	times   [][]int32     // by query: nanoseconds in each round
	events  []float64     // by round: nanoseconds of all events
	sum     int64         // of depths
	deepest int64         // of the deepest worker of each query

	mem runtime.MemStats
}

// measure plays w the given number of times and returns the figures.
func measure(w *kvw.Workload, rounds int) (figures, error) {
	p := player{w: w, tick: tick(), times: make([][]int32, w.Queries)}
	f := figures{Workload: w.Name, Queries: w.Queries, Rounds: rounds}
	for i := range p.times {
		p.times[i] = make([]int32, 0, rounds)
	}
	most := 0
	for i := range w.Ops {
		most = max(most, w.Ops[i].Blocks)
	}
	p.hashes = make([]uint64, 0, most)
	p.matches = make([]index.Match, 0, w.Workers)
	for i := range rounds {
		sum := p.sum
		if err := p.queries(); err != nil {
			return f, err
		}
		if i > 0 && p.sum != sum {
			return f, fmt.Errorf("checksum mismatch: %d in round %d, %d before", p.sum, i, sum)
		}
		p.apply(&f)
	}
	f.Checksum = p.sum

	per := make([]float64, len(p.times))
	var total, least float64
	for i, t := range p.times {
		slices.Sort(t)
		per[i] = max(0, float64(t[len(t)/2])-float64(p.tick))
		total += per[i]
		least += max(0, float64(t[0])-float64(p.tick))
	}
	slices.Sort(per)
	slices.Sort(p.events)
	events := p.events[len(p.events)/2]
	if n := len(per); n > 0 {
		f.USPerQuery, f.USPerQueryP50, f.USPerQueryP99 = round3(total/float64(n)/1e3), round3(per[n/2]/1e3), round3(per[n*99/100]/1e3)
		f.BlocksPerQuery, f.HitRate = round3(float64(w.QueryBlocks)/float64(n)), round6(float64(p.deepest)/float64(max(1, w.QueryBlocks)))
	}
	if n := w.EventBlocks(); n > 0 {
		f.NSPerEventBlock = round3(events / float64(n))
	}
	if t := total + events; t > 0 {
		f.BlockOpsPerS = math.Round(float64(w.QueryBlocks+w.EventBlocks()) / t * 1e9)
	}
	f.Noisy = total > 1.15*least || events > 1.15*p.events[0]
	return f, nil
}

// new returns an empty index with the workers of the workload.
func (p *player) new() *index.Index {
	x := index.New(p.w.BlockSize, nil)
	for i := range p.w.Workers {
		x.AddWorker(index.Key{Instance: "engine", DPRank: uint32(i)})
	}
	return x
}

// queries plays the whole file and times the lookups.
func (p *player) queries() error {
	x := p.new()
	runtime.GC()
	p.sum, p.deepest = 0, 0
	n := 0
	began := time.Now()
	for i := range p.w.Ops {
		op := &p.w.Ops[i]
		if op.Kind != kvw.Query {
			if err := applied(x, op); err != nil {
				return err
			}
			continue
		}
		p.hashes = p.w.AppendSeq(p.hashes[:0], op)
		start := time.Since(began)
		p.matches = x.AppendMatches(p.matches[:0], p.hashes)
		p.times[n] = append(p.times[n], int32(min(time.Since(began)-start, math.MaxInt32)))
		n++
		deepest := int32(0)
		for i := range p.matches {
			p.sum += int64(p.matches[i].Depth)
			deepest = max(deepest, p.matches[i].Depth)
		}
		p.deepest += int64(deepest)
	}
	return nil
}

// apply plays and times the events. At the end it measures the memory and counts the allocations of lookups.
func (p *player) apply(f *figures) {
	before := memory()
	x := p.new()
	mallocs := p.mallocs()
	start := time.Now()
	for i := range p.w.Ops {
		if op := &p.w.Ops[i]; op.Kind != kvw.Query {
			x.Add(index.WorkerID(op.Worker), &op.Event)
		}
	}
	p.events = append(p.events, float64(time.Since(start)))
	if n := p.w.Events(); n > 0 {
		f.AllocsPerEvent = round6(float64(p.mallocs()-mallocs) / float64(n))
	}
	after := memory()
	f.Residencies = 0
	for _, s := range x.AppendWorkers(nil) {
		f.Residencies += s.Blocks
	}
	if f.Residencies > 0 {
		f.BytesPerResidency = round3(float64(after-before) / float64(f.Residencies))
	}
	const most = 1000
	n := 0
	step := max(1, (p.w.Queries+most-1)/most)
	mallocs = p.mallocs()
	for i := range p.w.Ops {
		if op := &p.w.Ops[i]; op.Kind == kvw.Query {
			if n++; n%step == 0 {
				p.hashes = p.w.AppendSeq(p.hashes[:0], op)
				p.matches = x.AppendMatches(p.matches[:0], p.hashes)
			}
		}
	}
	if n >= step {
		f.AllocsPerQuery = round6(float64(p.mallocs()-mallocs) / float64(n/step))
	}
}

// applied applies an event. It fails if the index did not apply all of it, because the figures would then describe
// another workload.
func applied(x *index.Index, op *kvw.Op) error {
	r := x.Add(index.WorkerID(op.Worker), &op.Event)
	if r.Stored+r.Known+r.Removed != op.Blocks {
		return fmt.Errorf("event of worker %d with %d blocks applied only in part: %+v", op.Worker, op.Blocks, r)
	}
	return nil
}

// memory returns the bytes of heap in use.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees memory released by finalizers
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mallocs returns the number of allocations so far.
func (p *player) mallocs() uint64 {
	runtime.ReadMemStats(&p.mem) // a local variable would be an allocation
	return p.mem.Mallocs
}

// tick returns the difference of two consecutive readings of the clock.
func tick() time.Duration {
	d := make([]time.Duration, 10001)
	began := time.Now()
	for i := range d {
		start := time.Since(began)
		d[i] = time.Since(began) - start
	}
	slices.Sort(d)
	return d[len(d)/2]
}

func round3(x float64) float64 { return math.Round(x*1e3) / 1e3 }
func round6(x float64) float64 { return math.Round(x*1e6) / 1e6 }
