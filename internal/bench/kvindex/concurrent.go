// SPDX-License-Identifier: Apache-2.0

package kvindex

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/examples/kvbench/kvw"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/kvhash/index"
)

// Beside measures the cost of a writer to a reader of the same index. Lookups are per second of CPU time of the
// reader's thread.
type Beside struct {
	Workload string  `json:"workload"`
	Alone    float64 `json:"alone_per_cpu_s"`   // nothing else runs
	Beside   float64 `json:"beside_per_cpu_s"`  // a writer applies events to the same index without pause
	Control  float64 `json:"control_per_cpu_s"` // a writer applies the same events to another index
	// Medians of the ratios of the rounds.
	Ratio        float64 `json:"ratio"`         // Beside / Alone
	ControlRatio float64 `json:"control_ratio"` // Control / Alone: what the machine takes, whatever the index does
	OwnRatio     float64 `json:"own_ratio"`     // Beside / Control

	// The writer, concurrent with the reader on the same index.
	EventsPerS      float64 `json:"events_per_s"` // on the clock
	NSPerEventBlock float64 `json:"ns_per_event_block"`
	AllocsPerEvent  float64 `json:"allocs_per_event"` // of the whole process, the reader's included
	// BlockOpsPerS is blocks of the reader's queries and of the writer's events per second on the clock.
	BlockOpsPerS float64 `json:"block_ops_per_s"`
	CPUs         float64 `json:"cpus"` // that reader and writer had together; less than 2 where the machine has other work
	Rounds       int     `json:"rounds"`
}

// Goals returns what is to hold: a writer takes at most a fifth of a reader's lookups, and events that store and remove the same blocks over
// and over allocate nothing. The second allows one allocation in a thousand events, because the runtime's own are counted.
func (b *Beside) Goals() []Goal {
	return []Goal{
		{"lookups beside a writer over lookups alone", b.Ratio, 0.8, b.Ratio >= 0.8},
		{"allocations per event of the writer", b.AllocsPerEvent, 0.001, b.AllocsPerEvent <= 0.001},
	}
}

// Readers measures how lookups scale with the number of reading threads. There is no writer.
type Readers struct {
	Workload string  `json:"workload"`
	Readers  int     `json:"readers"`
	PerS     float64 `json:"lookups_per_s"`     // all together, on the clock
	PerCPUS  float64 `json:"lookups_per_cpu_s"` // per second of CPU time of the readers' threads
	CPUs     float64 `json:"cpus"`              // that they had together
}

// half is a workload whose first half of the events is in an index, and the events after it.
type half struct {
	w          *kvw.Workload
	rest, undo []kvw.Op   // the events of the second half, and what takes them back
	queries    [][]uint64 // of the whole file
	asked      int64      // blocks in queries
}

// maxQueries is the number of queries, spread over the file, that the readers run in turn.
const maxQueries = 256

func newHalf(w *kvw.Workload) (*half, error) {
	h := &half{w: w}
	type residency struct{ worker, id uint32 }
	held := make(map[residency]struct{})
	var ids []uint32
	events, q := 0, 0
	step := max(1, w.Queries/maxQueries)
	for i := range w.Ops {
		op := &w.Ops[i]
		if op.Kind == kvw.Query {
			if q%step == 0 && op.Blocks > 0 {
				h.queries = append(h.queries, w.AppendSeq(nil, op))
				h.asked += int64(op.Blocks)
			}
			q++
			continue
		}
		if events++; events > w.Events()/2 {
			h.rest = append(h.rest, *op)
			continue
		}
		ids = w.AppendIDs(ids[:0], op)
		for _, id := range ids {
			if op.Kind == kvw.Store {
				held[residency{op.Worker, id}] = struct{}{}
			} else {
				delete(held, residency{op.Worker, id})
			}
		}
	}
	if len(h.queries) == 0 || len(h.rest) == 0 {
		return nil, fmt.Errorf("%s: no queries or no events", w.Name)
	}
	var err error
	h.undo, err = w.Undo(h.rest, func(worker, id uint32) bool {
		_, ok := held[residency{worker, id}]
		return ok
	})
	return h, err
}

// index returns an index that holds the first half.
func (h *half) index() (*index.Index, error) {
	x := NewWeft(h.w.BlockSize, h.w.Workers)
	events := 0
	for i := range h.w.Ops {
		op := &h.w.Ops[i]
		if op.Kind == kvw.Query {
			continue
		}
		if events++; events > h.w.Events()/2 {
			break
		}
		if n := x.Apply(int(op.Worker), &op.Event); n != op.Blocks {
			return nil, fmt.Errorf("%s: an event with %d blocks changed %d", h.w.Name, op.Blocks, n)
		}
	}
	return x.Index, nil
}

// writer applies the second half and takes it back, over and over.
type writer struct {
	x       *index.Index
	h       *half
	at      int // in rest, and after it in undo
	events  int
	blocks  int64
	cpu     time.Duration
	mallocs uint64
	wrong   int // events whose effect differs from their content
}

func (w *writer) next() {
	var op *kvw.Op
	if n := len(w.h.rest); w.at < n {
		op = &w.h.rest[w.at]
	} else {
		op = &w.h.undo[w.at-n]
	}
	if r := w.x.Add(index.WorkerID(op.Worker), &op.Event); r.Stored+r.Removed != op.Blocks {
		w.wrong++
	}
	w.events++
	w.blocks += int64(op.Blocks)
	if w.at++; w.at == len(w.h.rest)+len(w.h.undo) {
		w.at = 0
	}
}

// to continues to the position at.
func (w *writer) to(at int) {
	for w.at != at {
		w.next()
	}
}

// run writes until stop.
func (w *writer) run(stop *atomic.Bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	mallocs := m.Mallocs
	start := bench.ThreadTime()
	for !stop.Load() {
		for range 16 {
			w.next()
		}
	}
	w.cpu += bench.ThreadTime() - start
	runtime.ReadMemStats(&m)
	w.mallocs += m.Mallocs - mallocs
}

// reading holds the results of a reader.
type reading struct {
	lookups   int
	cpu, wall time.Duration
}

func (r *reading) add(o reading) {
	r.lookups += o.lookups
	r.cpu += o.cpu
	r.wall += o.wall
}

func (r reading) rate() float64 { return float64(r.lookups) / max(r.cpu.Seconds(), 1e-9) }

// sink keeps what lookups return in use.
var sink atomic.Int64

// read asks the queries in turn, from one of them on, until stop.
func (h *half) read(x *index.Index, from int, stop *atomic.Bool) (r reading) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	matches := make([]index.Match, 0, h.w.Workers)
	found := 0
	wall, cpu := now(), bench.ThreadTime()
	for i := from % len(h.queries); !stop.Load(); {
		for range 16 {
			matches = x.AppendMatches(matches[:0], h.queries[i])
			found += len(matches)
			if i++; i == len(h.queries) {
				i = 0
			}
		}
		r.lookups += 16
	}
	r.cpu, r.wall = bench.ThreadTime()-cpu, now()-wall
	sink.Add(int64(found))
	return r
}

// with lets n readers run for d, and a writer if there is one. What the readers did is added up; wall is of the longest.
func (h *half) with(x *index.Index, n int, w *writer, d time.Duration) (sum reading) {
	runtime.GC()
	var stop atomic.Bool
	var readers, all sync.WaitGroup
	got := make([]reading, n)
	if w != nil {
		all.Go(func() { w.run(&stop) })
	}
	for i := range got {
		readers.Go(func() { got[i] = h.read(x, i*len(h.queries)/n, &stop) })
	}
	time.Sleep(d)
	stop.Store(true)
	readers.Wait()
	all.Wait()
	for _, r := range got {
		sum.lookups += r.lookups
		sum.cpu += r.cpu
		sum.wall = max(sum.wall, r.wall)
	}
	return sum
}

// Concurrent measures what a writer costs a reader, in rounds of about 3*d, and then how 1, 2, 4 and 8 readers share the machine, for d each.
// It needs two processors.
//
// The index holds the first half of the events; the writer applies the second half, takes it back, and so on. The
// reader asks prompts of the whole file. Prompts of the second half are found deeper while it is there, so that what a
// lookup costs depends on where the writer is: alone and control are measured half before the second half and half
// after it.
func Concurrent(w *kvw.Workload, rounds int, d time.Duration) (*Beside, []Readers, error) {
	h, err := newHalf(w)
	if err != nil {
		return nil, nil, err
	}
	x, err := h.index()
	if err != nil {
		return nil, nil, err
	}
	other, err := h.index()
	if err != nil {
		return nil, nil, err
	}
	own, far := &writer{x: x, h: h}, &writer{x: other, h: h}
	own.to(len(h.rest)) // once round: warm
	own.to(0)

	b := &Beside{Workload: w.Name, Rounds: rounds}
	var alone, beside, control, ratio, controlRatio, ownRatio []float64
	var all reading

	var measured writer
	for range rounds {
		var a, c reading
		a.add(h.with(x, 1, nil, d/2))
		c.add(h.with(x, 1, far, d/2))
		own.to(len(h.rest))
		a.add(h.with(x, 1, nil, d/2))
		c.add(h.with(x, 1, far, d/2))
		before := *own
		r := h.with(x, 1, own, d)
		measured.events += own.events - before.events
		measured.blocks += own.blocks - before.blocks
		measured.cpu += own.cpu - before.cpu
		measured.mallocs += own.mallocs - before.mallocs
		all.add(r)
		own.to(0)
		alone, beside, control = append(alone, a.rate()), append(beside, r.rate()), append(control, c.rate())
		ratio, controlRatio = append(ratio, r.rate()/a.rate()), append(controlRatio, c.rate()/a.rate())
		ownRatio = append(ownRatio, r.rate()/c.rate())
	}
	if own.wrong+far.wrong > 0 {
		return nil, nil, fmt.Errorf("%s: %d events changed something else than they say", w.Name, own.wrong+far.wrong)
	}
	if measured.events == 0 || all.lookups == 0 {
		return nil, nil, errors.New("kvindex: nothing was done in the time")
	}
	b.Alone, b.Beside, b.Control = median(alone), median(beside), median(control)
	b.Ratio, b.ControlRatio, b.OwnRatio = median(ratio), median(controlRatio), median(ownRatio)
	b.EventsPerS = float64(measured.events) / all.wall.Seconds()
	b.NSPerEventBlock = float64(measured.cpu) / float64(measured.blocks)
	b.AllocsPerEvent = float64(measured.mallocs) / float64(measured.events)
	perQuery := float64(h.asked) / float64(len(h.queries))
	b.BlockOpsPerS = (float64(all.lookups)*perQuery + float64(measured.blocks)) / all.wall.Seconds()

	b.CPUs = float64(all.cpu+measured.cpu) / float64(all.wall)

	var rs []Readers
	own.to(len(h.rest))
	for _, n := range []int{1, 2, 4, 8} {
		r := h.with(x, n, nil, d)
		wall := max(r.wall.Seconds(), 1e-9)
		rs = append(rs, Readers{w.Name, n, float64(r.lookups) / wall, r.rate(), r.cpu.Seconds() / wall})
	}
	return b, rs, nil
}

func median(x []float64) float64 { return sorted(x)[len(x)/2] }

func sorted(x []float64) []float64 { return slices.Sorted(slices.Values(x)) }
