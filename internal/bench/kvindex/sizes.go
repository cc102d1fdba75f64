// SPDX-License-Identifier: Apache-2.0

package kvindex

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Sized is the cost of the index at one size.
type Sized struct {
	Residencies       int     `json:"residencies"`
	Workers           int     `json:"workers"`
	USPerQuery        float64 `json:"us_per_query"`
	USPerBest         float64 `json:"us_per_best"`         // of the three best workers
	NSPerEventBlock   float64 `json:"ns_per_event_block"`  // at that size: sessions go and others come
	NSPerBlockFilled  float64 `json:"ns_per_block_filled"` // from nothing to that size
	BytesPerResidency float64 `json:"bytes_per_residency"`
	MB                float64 `json:"mb"` // 1,000,000 bytes, of the whole index
}

// A session of the synthetic fleet stays on one worker. It begins with one of a few preambles, which sessions on all
// workers share, and has turns of a prompt in one event and a response in events of one block each.
const (
	preambles      = 2
	preambleBlocks = 32
	turns          = 7
	promptBlocks   = 20
	answerBlocks   = 8
	turnBlocks     = promptBlocks + answerBlocks
	sessionBlocks  = preambleBlocks + turns*turnBlocks // 228
)

// fleet makes sessions and keeps none of them: a session is a number.
type fleet struct {
	x       *Weft
	workers int

	seq, local []uint64 // of one session
	ev         kvevent.Event
	spent      time.Duration
	blocks     int
}

// session fills in the hashes of a session.
func (f *fleet) session(id uint64) {
	f.seq, f.local = f.seq[:0], f.local[:0]
	for i := range sessionBlocks {
		c := id*sessionBlocks + uint64(i) + 1<<40
		if i < preambleBlocks {
			c = id%preambles*preambleBlocks + uint64(i)
		}
		l := mix(c)
		s := l
		if i > 0 {
			s = kvhash.Next(f.seq[i-1], l)
		}
		f.seq, f.local = append(f.seq, s), append(f.local, l)
	}
}

// store stores the blocks of a session on its worker; the preamble only if it is not there.
func (f *fleet) store(id uint64, preamble bool) {
	f.session(id)
	put := func(a, b int) {
		f.ev = kvevent.Event{Kind: kvevent.Stored, BlockHashes: f.seq[a:b], LocalHashes: f.local[a:b]}
		if a > 0 {
			f.ev.HasParent, f.ev.Parent = true, f.seq[a-1]
		}
		f.blocks += f.x.Apply(f.worker(id), &f.ev)
	}
	start := bench.CPUTime()
	if preamble {
		put(0, preambleBlocks)
	}
	for a := preambleBlocks; a < sessionBlocks; a += turnBlocks {
		put(a, a+promptBlocks)
		for i := a + promptBlocks; i < a+turnBlocks; i++ {
			put(i, i+1)
		}
	}
	f.spent += bench.CPUTime() - start
}

// remove removes the blocks of a session but its preamble, the last one first.
func (f *fleet) remove(id uint64) {
	f.session(id)
	own := f.seq[preambleBlocks:]
	for a, b := 0, len(own)-1; a < b; a, b = a+1, b-1 {
		own[a], own[b] = own[b], own[a]
	}
	f.ev = kvevent.Event{Kind: kvevent.Removed, BlockHashes: own}
	start := bench.CPUTime()
	f.blocks += f.x.Apply(f.worker(id), &f.ev)
	f.spent += bench.CPUTime() - start
}

// worker returns the worker of a session. Sessions with one preamble are on all workers.
func (f *fleet) worker(id uint64) int { return int(id / preambles % uint64(f.workers)) }

// rate returns the CPU time per block since the last call.
func (f *fleet) rate() float64 {
	r := float64(f.spent) / float64(max(1, f.blocks))
	f.spent, f.blocks = 0, 0
	return r
}

// Size fills an index with about that many residencies on that many workers and measures what it costs. It returns false where there would not
// be one session for each worker and preamble.
func Size(residencies, workers int) (Sized, bool) {
	per := preambles * sessionBlocks
	if residencies < per*workers {
		return Sized{}, false
	}
	var mem runtime.MemStats
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&mem)
		return int64(mem.HeapAlloc)
	}
	f := &fleet{workers: workers, seq: make([]uint64, 0, sessionBlocks), local: make([]uint64, 0, sessionBlocks)}
	before := heap()
	f.x = NewWeft(1, workers)
	n := uint64(0) // sessions 0 to n-1 are there
	for held := 0; held < residencies; n++ {
		first := n < uint64(preambles*workers)
		f.store(n, first)
		held += sessionBlocks
		if !first {
			held -= preambleBlocks
		}
	}
	s := Sized{Workers: workers, NSPerBlockFilled: f.rate()}
	s.Residencies = f.x.Residencies()
	bytes := heap() - before
	s.MB, s.BytesPerResidency = float64(bytes)/1e6, float64(bytes)/float64(s.Residencies)

	// The oldest sessions go and new ones come.
	churn := min(n/2, 4000)
	for i := range churn {
		f.remove(i)
		f.store(n+i, false)
	}
	s.NSPerEventBlock = f.rate()

	rnd := rand.New(rand.NewPCG(1, uint64(residencies)))
	tick, asked := tick(), 4000
	spent, best := make([]float64, 0, asked), make([]float64, 0, asked)
	for range asked {
		f.session(churn + rnd.Uint64N(n))
		start := now()
		f.x.Match(f.seq, f.local)
		spent = append(spent, max(0, float64(now()-start-tick)))
		start = now()
		f.x.matches = f.x.Index.AppendBest(f.x.matches[:0], f.seq, 3)
		best = append(best, max(0, float64(now()-start-tick)))
	}
	// Sessions are drawn, so that there are no rounds: what something else took is in few of the times.
	s.USPerQuery, s.USPerBest = trimmed(spent)/1e3, trimmed(best)/1e3
	return s, true
}

// trimmed returns the mean without the highest hundredth.
func trimmed(x []float64) float64 {
	low := sorted(x)[:len(x)*99/100]
	sum := 0.0
	for _, v := range low {
		sum += v
	}
	return sum / float64(max(1, len(low)))
}

// mix is splitmix64.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
