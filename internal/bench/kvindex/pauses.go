// SPDX-License-Identifier: Apache-2.0

package kvindex

import (
	"slices"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/index/replica"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Pause holds the times of events and lookups during one kind of work on the index.
type Pause struct {
	What        string  `json:"what"`
	Residencies int     `json:"residencies"`
	Workers     int     `json:"workers"`
	MS          float64 `json:"ms"` // of the whole operation
	// Times on the clock, of events with 20 blocks and of lookups, from just before the operation to just after it.
	Events      int     `json:"events"`
	EventP999   float64 `json:"event_us_p999"`
	EventMax    float64 `json:"event_us_max"`
	LookupP999  float64 `json:"lookup_us_p999"`
	LookupMax   float64 `json:"lookup_us_max"`
	Predictions int     `json:"predictions,omitempty"`
}

// pausePredictions is the number of prompts whose predictions expire at once.
const pausePredictions = 100_000

// Pauses fills an index and measures how long events and lookups wait during a snapshot, the clearing and the removal of a
// worker, and the expiry of predictions. The first two results are for comparison: nothing happens to the index.
func Pauses(residencies, workers int) []Pause {
	f := &fleet{x: NewWeft(1, workers), workers: workers, seq: make([]uint64, 0, sessionBlocks), local: make([]uint64, 0, sessionBlocks)}
	n := uint64(0)
	for held := 0; held < residencies; n++ {
		first := n < uint64(preambles*workers)
		f.store(n, first)
		held += sessionBlocks
		if !first {
			held -= preambleBlocks
		}
	}
	x := f.x.Index
	until := time.Unix(1, 0)
	for i := range uint64(pausePredictions) {
		f.session(n + i)
		x.Predict(index.WorkerID(i%uint64(workers)), f.seq[:preambleBlocks+promptBlocks], preambleBlocks, until)
	}
	ops := []struct {
		what string
		f    func()
	}{
		{"nothing", func() { time.Sleep(300 * time.Millisecond) }},
		{"a loop", func() {
			for begin := now(); now()-begin < 3*time.Second; {
			}
		}},
		{"snapshot", func() { replica.AppendSnapshot(nil, x) }},
		{"expiry", func() {
			for x.Expire(until) {
			}
		}},
		{"clear", func() { x.Add(1, &kvevent.Event{Kind: kvevent.Cleared}) }},
		{"removal", func() { x.RemoveWorker(2) }},
	}
	var out []Pause
	g := &fleet{x: f.x, workers: 1, seq: make([]uint64, 0, sessionBlocks), local: make([]uint64, 0, sessionBlocks)}
	var matches []index.Match
	for _, op := range ops {
		p := Pause{What: op.what, Residencies: f.x.Residencies(), Workers: workers}
		if op.what == "expiry" {
			p.Predictions = pausePredictions
		}
		done := make(chan time.Duration)
		go func() {
			time.Sleep(10 * time.Millisecond)
			start := now()
			op.f()
			done <- now() - start
		}()
		var events, lookups []float64
		for i, running := uint64(0), true; running; i++ {
			select {
			case took := <-done:
				p.MS, running = float64(took)/1e6, false
			default:
			}
			// Worker 0 stores the first blocks of sessions and drops them again.
			g.session(1<<30 + i/2%1000)
			ev := kvevent.Event{Kind: kvevent.Stored, BlockHashes: g.seq[preambleBlocks : preambleBlocks+20], LocalHashes: g.local[preambleBlocks : preambleBlocks+20],
				HasParent: true, Parent: g.seq[preambleBlocks-1]}
			if i%2 == 1 {
				ev.Kind = kvevent.Removed
			}
			start := now()
			x.Add(0, &ev)
			mid := now()
			matches = x.AppendMatches(matches[:0], g.seq)
			end := now()
			events, lookups = append(events, float64(mid-start)/1e3), append(lookups, float64(end-mid)/1e3)
		}
		slices.Sort(events)
		slices.Sort(lookups)
		k := len(events)
		p.Events, p.EventMax, p.LookupMax = k, events[k-1], lookups[k-1]
		p.EventP999, p.LookupP999 = events[k*999/1000], lookups[k*999/1000]
		out = append(out, p)
	}
	return out
}
