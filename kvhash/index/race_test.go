// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Readers concurrent with writers. Each writer plays a script, for workers that no other writer touches, and the model
// computes in advance the possible results of lookups after each step. A reader notes how many steps were done when its
// call began and how many had begun when it ended:
//
//	writer   begun=7 [ step 7 ] done=7   begun=8 [ step 8 ] done=8   begun=9 [ step 9 ] done=9
//	reader                      lo=7 [ Match ............... ] hi=8
//
// For each worker, the result must be true after one of the steps from lo to hi, or within one of the steps lo+1 to hi
// that remove blocks one by one: Removed, Unpredict, Expire. All others are seen in one step.

// script is a sequence of steps that one writer repeats: it ends in its initial state.
type script struct {
	m       *model
	workers []index.WorkerID
	queries [][]uint64
	paths   [][]int32 // of the queries, for the model

	steps []func(x *index.Index) error
	after []moment   // after[i] is before step i, and after step i-1
	while [][]moment // during step i, without repetitions; changed workers only

	begun, done atomic.Int64
	alone       bool // no other writer: Expire and new workers are possible
	key         uint32
	predicted   map[index.WorkerID]*prediction // the last of each
	stores      map[int64]bool                 // steps that are Stored events
	mu          *sync.Mutex                    // makes leaving and joining one step among the writers
}

// moment is the state of some workers at one moment.
type moment map[index.WorkerID]*truth

type truth struct {
	gone    bool
	answers []answer // by query; no trust
	trust   index.State
	blocks  int
}

func (t *truth) equal(u *truth) bool {
	return t.gone == u.gone && t.trust == u.trust && t.blocks == u.blocks && slices.Equal(t.answers, u.answers)
}

func (s *script) truth(id index.WorkerID) *truth {
	w := s.m.worker(id)
	if w == nil {
		return &truth{gone: true, answers: make([]answer, len(s.paths))}
	}
	t := &truth{blocks: len(w.blocks())}
	t.trust, _ = w.state()
	for _, p := range s.paths {
		m := w.match(id, p)
		if w.store != 0 {
			m = index.Match{} // no result names a store
		}
		a := resultOf(&m)
		a.trust, a.worker = 0, 0
		t.answers = append(t.answers, a)
	}
	return t
}

// step adds a step that changes the given workers: do does it to the index, and each of parts to the model.
func (s *script) step(do func(x *index.Index) error, ids []index.WorkerID, parts ...func()) {
	last := s.after[len(s.after)-1]
	now := make(moment, len(last))
	for id, t := range last {
		now[id] = t
	}
	var while []moment
	for i, part := range parts {
		part()
		for _, id := range ids {
			t := s.truth(id)
			if t.equal(now[id]) {
				continue
			}
			now[id] = t
			if i < len(parts)-1 {
				while = append(while, moment{id: t})
			}
		}
	}
	s.steps = append(s.steps, do)
	s.after = append(s.after, now)
	s.while = append(s.while, while)
}

// apply adds an event. It changes what is true of the worker, and of those also named.
func (s *script) apply(id index.WorkerID, ev *kvevent.Event, also ...index.WorkerID) {
	if ev.Kind == kvevent.Stored {
		if s.stores == nil {
			s.stores = map[int64]bool{}
		}
		s.stores[int64(len(s.steps))] = true
	}
	parts := []func(){func() { s.m.apply(id, ev) }}
	if ev.Kind == kvevent.Removed {
		parts = parts[:0]
		for i := range ev.BlockHashes {
			one := *ev
			one.BlockHashes = ev.BlockHashes[i : i+1]
			parts = append(parts, func() { s.m.apply(id, &one) })
		}
	}
	s.step(func(x *index.Index) error {
		x.Add(id, ev)
		return nil
	}, append(also, id), parts...)
}

// store adds the storing of the blocks of word from skip on.
func (s *script) store(id index.WorkerID, word string, skip int, tier kvevent.Tier) {
	s.apply(id, on(tier, runOf(word, skip)))
}

// remove adds the removal of the blocks [from, to) of word, first one first or, with back, last one first.
func (s *script) remove(id index.WorkerID, word string, from, to int, back bool, tier kvevent.Tier) {
	h := slices.Clone(engineHashes(word, 1)[from:to])
	if back {
		slices.Reverse(h)
	}
	s.apply(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: h, Tier: tier})
}

func (s *script) clear(id index.WorkerID, tier kvevent.Tier) {
	s.apply(id, &kvevent.Event{Kind: kvevent.Cleared, Tier: tier})
}

// rejoin adds that a worker leaves and another gets its number.
func (s *script) rejoin(id index.WorkerID) {
	do := func(x *index.Index) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.key++
		x.RemoveWorker(id)
		if got := x.AddWorker(index.Key{Instance: "again", DPRank: s.key<<8 | uint32(id)}); got != id {
			return fmt.Errorf("number %d became %d", id, got)
		}
		return nil
	}
	s.step(do, []index.WorkerID{id}, func() { s.m.workers[id] = nil }, func() { s.m.add(id, index.Key{}) })
	s.clear(id, kvevent.AnyTier) // it was announced
}

func (s *script) predict(id index.WorkerID, word string, until int64) {
	h, at := modelHashes(word), time.Unix(until, 0)
	p := new(prediction)
	s.step(func(x *index.Index) error {
		p.p = x.Predict(id, h, 0, at)
		return nil
	}, []index.WorkerID{id}, func() { p.m = s.m.worker(id).predict(s.m.path(h), at) })
	if s.predicted == nil {
		s.predicted = map[index.WorkerID]*prediction{}
	}
	s.predicted[id] = p
}

// unpredict takes the worker's last prediction back.
func (s *script) unpredict(id index.WorkerID) {
	p := s.predicted[id]
	var parts []func()
	for _, b := range p.m.fresh {
		parts = append(parts, func() { p.m.takeBack(b) })
	}
	s.step(func(x *index.Index) error {
		x.Unpredict(p.p)
		return nil
	}, []index.WorkerID{id}, parts...)
}

// expire adds that time passes, when the blocks of word are the only ones predicted.
func (s *script) expire(word string, now int64) {
	at := time.Unix(now, 0)
	var parts []func()
	for _, b := range s.m.path(modelHashes(word)) {
		for _, id := range s.workers {
			parts = append(parts, func() { s.m.worker(id).expire(b, at) })
		}
	}
	parts = append(parts, func() { s.m.expire(at) })
	s.step(func(x *index.Index) error {
		x.Expire(at)
		return nil
	}, s.workers, parts...)
}

// snapshot adds that a worker's state is replaced by one that holds only word.
func (s *script) snapshot(id index.WorkerID, word string) {
	ev := []kvevent.Event{*runOf(word, 0)}
	s.step(func(x *index.Index) error {
		x.NewStream(id, nil).Replace(0, ev)
		return nil
	}, []index.WorkerID{id}, func() {
		w := s.m.worker(id)
		w.clear(kvevent.AnyTier)
		w.hasState, w.trust, w.received = true, index.Exact, true
		s.m.apply(id, &ev[0])
	})
}

// runOf is stored with the engine hashes of the random histories.
func runOf(word string, skip int) *kvevent.Event {
	h := engineHashes(word, 1)
	ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: h[skip:], LocalHashes: modelLocal(word[skip:])}
	if skip > 0 {
		ev.Parent, ev.HasParent = h[skip-1], true
	}
	return ev
}

type race struct {
	name    string
	writers int
	workers int // of each writer
	queries []string
	script  func(s *script)
}

// races are histories that hurt optimistic readers. Each is written for the workers of one writer.
var races = []race{
	{"churn", 2, 2, []string{raceLong, raceLong[:100], raceLong[:99] + "c", raceLong[:1], "c"}, func(s *script) {
		a, b := s.workers[0], s.workers[1]
		for i := range 8 {
			s.store(a, raceLong, 0, 0)
			s.remove(a, raceLong, 20*i, 200, i%2 == 0, 0)
			s.store(b, raceLong[:150], 0, 0)
			s.store(a, raceLong, 20*i, 0)
			s.remove(a, raceLong, 0, 200, i%3 == 0, 0)
			s.remove(b, raceLong, 0, 150, i%2 == 1, 0)
		}
	}},
	{"split and merge", 2, 2, []string{raceLong, raceLong[:60] + "cc", raceLong[:61] + "cc", raceLong[:199] + "c"}, func(s *script) {
		a, b := s.workers[0], s.workers[1]
		s.store(a, raceLong, 0, 0)
		for i := 1; i < 200; i += 7 {
			fork := raceLong[:i] + "cc"
			s.store(b, fork, 0, 0) // the run of a splits
			s.store(a, fork, i, 0)
			s.remove(b, fork, 0, i+2, i%2 == 0, 0)
			s.remove(a, fork, i, i+2, false, 0) // and is one again
		}
	}},
	{"holes", 1, 3, []string{raceLong, raceLong[:120]}, func(s *script) {
		for i, id := range s.workers {
			s.store(id, raceLong[:200-40*i], 0, 0)
		}
		for i := range 40 {
			id := s.workers[i%3]
			s.remove(id, raceLong, i, i+1, false, 0)
			s.remove(id, raceLong, 2*i+10, 3*i+11, i%2 == 0, 0)
			s.store(id, raceLong[:i+1], i, 0)
			s.store(id, raceLong[:3*i+11], 2*i+10, 0)
		}
	}},
	// Everything is removed, other content takes the slots, and the first content returns in other slots.
	{"same content elsewhere", 1, 2, []string{raceLong, raceOther, raceLong[:50] + raceOther[50:]}, func(s *script) {
		a, b := s.workers[0], s.workers[1]
		mixed := raceLong[:50] + raceOther[50:]
		for i := range 6 {
			s.store(a, raceLong, 0, 0)
			s.store(b, raceOther, 0, 0)
			s.remove(a, raceLong, 0, 200, false, 0)
			s.remove(b, raceOther, 0, 200, true, 0)
			s.store(b, raceLong[:100+i], 0, 0)
			s.store(a, mixed, 0, 0)
			s.clear(b, kvevent.AnyTier)
			s.store(b, mixed[:80], 0, 0)
			s.store(b, raceLong, 50, 0)
			s.clear(a, kvevent.AnyTier)
			s.clear(b, kvevent.AnyTier)
		}
	}},
	{"numbers used again", 2, 2, []string{raceLong, raceOther}, func(s *script) {
		for i := range 10 {
			for j, id := range s.workers {
				s.store(id, []string{raceLong, raceOther}[(i+j)%2][:100+i], 0, 0)
				s.rejoin(id)
				s.store(id, []string{raceLong, raceOther}[(i+j+1)%2][:50+i], 0, 0)
				s.clear(id, kvevent.AnyTier)
			}
		}
		for _, id := range s.workers {
			s.rejoin(id)
		}
	}},
	{"many runs", 2, 4, []string{raceLong, raceLong[:101]}, func(s *script) {
		for step := range 25 { // each store ends where no other does
			for i, id := range s.workers {
				s.store(id, raceLong[:8*step+i+1+(step+i)%4], min(8*step, 8*step+i), 0)
			}
		}
		for step := range 25 {
			for i, id := range s.workers {
				s.remove(id, raceLong, 200-8*step-8, 200-8*step, i%2 == 0, 0)
			}
		}
	}},
	// An engine generates: each event continues a sequence by one block.
	{"generation", 2, 2, []string{raceLong, raceLong[:60] + raceOther, raceLong[:130]}, func(s *script) {
		a, b := s.workers[0], s.workers[1]
		fork := raceLong[:60] + raceOther
		s.store(a, raceLong[:60], 0, 0)
		for i := range 3 {
			for at := 60; at < 140; at++ {
				s.store(a, raceLong[:at+1], at, 0)
				if at == 90+i {
					s.store(b, raceLong[:at], 0, 0) // no longer alone, and alone again after the next block
				}
				if at > 100 {
					s.store(b, fork[:at-40+1], at-40, 0) // the first block begins a branch
				}
			}
			s.remove(b, fork, 0, 100, true, 0)
			s.remove(b, raceLong, 60, 90+i, i%2 == 0, 0)
			s.remove(a, raceLong, 60, 140, i%2 == 1, 0)
		}
	}},
	{"tiers", 1, 2, []string{raceLong[:80], raceLong[:33] + "c"}, func(s *script) {
		a, b := s.workers[0], s.workers[1]
		copies := func(id index.WorkerID, from, to int, tier kvevent.Tier) {
			s.apply(id, &kvevent.Event{Kind: kvevent.Stored, Tier: tier, BlockHashes: engineHashes(raceLong, 1)[from:to]})
		}
		for i := range 10 {
			s.store(a, raceLong[:80], 0, kvevent.Device)
			s.store(b, raceLong[:50+i], 0, kvevent.Disk)
			copies(a, 3*i, 40+i, kvevent.Host)
			s.remove(a, raceLong, 2*i, 60, i%2 == 0, kvevent.Device)
			copies(b, 5, 30, kvevent.Device)
			copies(a, 20, 35, kvevent.Remote)
			s.clear(a, kvevent.Host)
			s.clear(b, kvevent.Disk)
			copies(a, 20, 30, kvevent.Device)
			s.clear(a, kvevent.Device)
		}
	}},
	{"predictions", 1, 2, []string{raceLong[:90], raceLong[:45] + "c"}, func(s *script) {
		a, b := s.workers[0], s.workers[1]
		for i := range 10 {
			s.store(a, raceLong[:20+i], 0, 0)
			s.predict(a, raceLong[:60+i], 100)
			s.predict(b, raceLong[:60+i], 100)
			s.store(a, raceLong[:40+i], 20+i, 0)
			s.unpredict(b)
			s.predict(b, raceLong[:60+i], 100)
			s.store(b, raceLong[:30], 0, 0)
			s.expire(raceLong[:60+i], 100)
			s.remove(a, raceLong, 0, 40+i, i%2 == 0, 0)
			s.remove(b, raceLong, 0, 30, i%2 == 1, 0)
		}
	}},
	{"orphans and snapshots", 2, 2, []string{raceLong, raceOther[:70]}, func(s *script) {
		for i := range 8 {
			for _, id := range s.workers {
				s.store(id, raceLong, 100+i, 0)
				s.store(id, raceLong[:100+i], 50, 0)
				s.remove(id, raceLong, 150, 151+i, false, 0)
				s.store(id, raceLong[:50], 0, 0) // all of them at once
				s.snapshot(id, raceOther[:70-i])
				s.clear(id, kvevent.AnyTier)
			}
		}
	}},
	{"more workers", 1, 3, []string{raceLong[:20], raceLong[:7]}, func(s *script) {
		s.store(s.workers[0], raceLong[:10], 0, 0)
		var more []index.WorkerID
		for i := range index.WorkerID(140) {
			more = append(more, s.workers[2]+1+i)
		}
		s.step(func(x *index.Index) error {
			for range more {
				s.key++
				if id := x.AddWorker(index.Key{Instance: "more", DPRank: s.key}); !slices.Contains(more, id) {
					return fmt.Errorf("number %d is not the next one", id)
				}
			}
			return nil
		}, more, func() {
			for _, id := range more {
				s.m.add(id, index.Key{})
			}
		})
		for i, id := range more {
			s.store(id, raceLong[:1+i%20], 0, 0)
		}
		s.store(s.workers[1], raceLong[:20], 0, 0)
		for _, id := range more {
			s.step(func(x *index.Index) error {
				x.RemoveWorker(id)
				return nil
			}, []index.WorkerID{id}, func() { s.m.workers[id] = nil })
		}
	}},
	{"random", 2, 3, []string{raceLong, raceLong[:70] + raceOther[:60], raceOther, raceLong[:150] + "cc"}, func(s *script) {
		rnd := rand.New(rand.NewPCG(uint64(s.workers[0]), 3))
		words := []string{raceLong, raceLong[:70] + raceOther[:60], raceOther, raceLong[:150] + "cc"}
		for range 150 {
			id, word := s.workers[rnd.IntN(3)], words[rnd.IntN(4)]
			from := rnd.IntN(len(word))
			to := from + 1 + rnd.IntN(len(word)-from)
			tier := kvevent.Tier(1 + rnd.IntN(2)*rnd.IntN(4))
			switch k := rnd.IntN(20); {
			case k < 5:
				s.store(id, word[:to], 0, tier)
			case k < 10:
				s.store(id, word[:to], from, tier)
			case k < 17:
				s.remove(id, word, from, to, k < 13, tier)
			case k == 17:
				s.clear(id, kvevent.Tier(rnd.IntN(3)))
			case k == 18:
				s.rejoin(id)
			default:
				s.predict(id, word[:to], 100)
				s.unpredict(id)
			}
		}
	}},
}

var (
	raceLong  = letters(1, "ab", 200)
	raceOther = "b" + letters(2, "ab", 199)
)

func TestReaders(t *testing.T) {
	for i, r := range append(races, moreRaces...) {
		if testing.Short() && !raceEnabled && i%12 != 0 {
			continue // the race detector gets all
		}
		t.Run(r.name, func(t *testing.T) {
			x := index.NewAll(modelBlock, nil)
			scripts := make([]*script, r.writers)
			mu := new(sync.Mutex)
			for i := range scripts {
				s := &script{m: newModel(modelBlock, index.AllOptions{}), after: []moment{{}}, alone: r.writers == 1, mu: mu}
				for range r.workers {
					k := index.Key{Instance: "e", DPRank: s.key}
					s.key++
					k.DPRank |= uint32(i) << 16
					id := x.AddWorker(k)
					s.workers = append(s.workers, id)
					s.m.add(id, k)
				}
				for _, q := range r.queries {
					s.queries = append(s.queries, modelHashes(q))
					s.paths = append(s.paths, s.m.path(modelHashes(q)))
				}
				// A script begins with known workers that hold nothing.
				for _, id := range s.workers {
					x.NewStream(id, nil).Replace(0, nil)
					w := s.m.worker(id)
					w.hasState, w.trust = true, index.Exact
				}
				s.begin()
				r.script(s)
				s.end(t)
				scripts[i] = s
			}
			runScripts(t, x, scripts)
		})
	}
}

// begin notes what is true before the first step, of all the numbers that the script may use.
func (s *script) begin() {
	for id := range index.WorkerID(200) {
		if !s.alone && !slices.Contains(s.workers, id) {
			continue
		}
		s.after[0][id] = s.truth(id)
	}
}

// end goes back to the beginning.
func (s *script) end(t *testing.T) {
	for _, id := range s.workers {
		s.step(func(x *index.Index) error {
			x.NewStream(id, nil).Replace(0, nil)
			return nil
		}, []index.WorkerID{id}, func() {
			w := s.m.worker(id)
			w.clear(kvevent.AnyTier)
			w.hasState, w.trust = true, index.Exact
		})
	}
	for id, first := range s.after[0] {
		require.True(t, first.equal(s.after[len(s.after)-1][id]), "worker %d does not end as it began", id)
	}
}

// write plays the script until stop, but at least once.
func (s *script) write(x *index.Index, stop *atomic.Bool) error {
	n := int64(len(s.steps))
	for i := int64(0); i == 0 || !stop.Load(); i += n {
		for j, step := range s.steps {
			s.begun.Store(i + int64(j) + 1)
			if err := step(x); err != nil {
				return err
			}
			s.done.Store(i + int64(j) + 1)
		}
	}
	return nil
}

// find reports whether ok holds of a worker at some moment from the end of step lo to the end of step hi.
func (s *script) find(id index.WorkerID, lo, hi int64, ok func(*truth) bool) bool {
	n := int64(len(s.steps))
	if hi-lo > n {
		lo = hi - n
	}
	for i := lo; i <= hi; i++ {
		if ok(s.after[i%n][id]) {
			return true
		}
		if i == hi {
			break
		}
		for _, m := range s.while[i%n] {
			if t := m[id]; t != nil && ok(t) {
				return true
			}
		}
	}
	return false
}

// copying reports whether the result is possible while an event stores blocks that the worker has in another tier:
// those change tier one by one, so the depth is final at once while the split between the tiers changes.
func (s *script) copying(id index.WorkerID, q int, lo, hi int64, got answer) bool {
	n := int64(len(s.steps))
	for i := max(lo, hi-n); i < hi; i++ {
		if !s.stores[i%n] {
			continue
		}
		for _, a := range []answer{s.after[i%n][id].answers[q], s.after[(i+1)%n][id].answers[q]} {
			sum := got.predicted
			for _, d := range got.tiers {
				sum += d
			}
			if a.depth == got.depth && sum == got.depth {
				return true
			}
		}
	}
	return false
}

func (s *script) describe(id index.WorkerID, q int, lo, hi int64) string {
	var b strings.Builder
	n := int64(len(s.steps))
	for i := max(lo, hi-20); i <= hi; i++ {
		fmt.Fprintf(&b, "after %d: %+v\n", i, s.after[i%n][id].answers[q])
	}
	return b.String()
}

// reader is one goroutine that asks and checks.
type reader struct {
	x       *index.Index
	scripts []*script
	lo, hi  []int64
	dst     []index.Match
	states  []index.Info
}

func (r *reader) begin() {
	for i, s := range r.scripts {
		r.lo[i] = s.done.Load()
	}
}

func (r *reader) end() {
	for i, s := range r.scripts {
		r.hi[i] = s.begun.Load()
	}
}

func (r *reader) match(q int) error {
	hashes := r.scripts[0].queries[q]
	r.begin()
	r.dst = r.x.AppendMatches(r.dst[:0], hashes)
	r.end()
	return r.check(q)
}

// check compares r.dst, a result of query q, with the truth.
func (r *reader) check(q int) error {
	for i := range r.dst {
		if i > 0 && r.dst[i].Worker <= r.dst[i-1].Worker {
			return fmt.Errorf("workers are not in ascending order: %+v", r.dst)
		}
	}
	known := 0
	for i, s := range r.scripts {
		for id := range s.after[0] {
			got := answer{}
			at, _ := slices.BinarySearchFunc(r.dst, id, func(m index.Match, id index.WorkerID) int { return int(m.Worker) - int(id) })
			if at < len(r.dst) && r.dst[at].Worker == id {
				known++
				got = resultOf(&r.dst[at])
				trust := got.trust
				if !s.find(id, r.lo[i], r.hi[i], func(t *truth) bool { return t.trust == trust && !t.gone }) {
					return fmt.Errorf("query %d, worker %d: trust %v in steps %d to %d", q, id, trust, r.lo[i], r.hi[i])
				}
				if got.depth == 0 {
					return fmt.Errorf("query %d, worker %d: depth 0", q, id)
				}
				got.trust, got.worker = 0, 0
			}
			if !s.find(id, r.lo[i], r.hi[i], func(t *truth) bool { return t.answers[q] == got }) && !s.copying(id, q, r.lo[i], r.hi[i], got) {
				return fmt.Errorf("query %d, worker %d: %+v was never true in steps %d to %d:\n%s", q, id, got, r.lo[i], r.hi[i],
					s.describe(id, q, r.lo[i], r.hi[i]))
			}
		}
	}
	if known != len(r.dst) {
		return fmt.Errorf("workers of removed IDs: %+v", r.dst)
	}
	return nil
}

func (r *reader) state(id index.WorkerID) error {
	for i, s := range r.scripts {
		if _, ok := s.after[0][id]; !ok {
			continue
		}
		r.begin()
		st, ok := r.x.Info(id)
		r.end()
		if !s.find(id, r.lo[i], r.hi[i], func(t *truth) bool { return t.gone == !ok && t.blocks == st.Blocks }) {
			return fmt.Errorf("worker %d: state %+v %v was never true in steps %d to %d", id, st, ok, r.lo[i], r.hi[i])
		}
	}
	return nil
}

// run looks up until it has done so reads times and stop is set.
func (r *reader) run(kind, reads int, stop func() bool) error {
	start := time.Now()
	for i := 0; i < reads || !stop(); i++ {
		var err error
		switch q := i % len(r.scripts[0].queries); {
		case kind == 1 && i%3 == 0:
			s := r.scripts[i/3%len(r.scripts)]
			err = r.state(s.workers[i%len(s.workers)])
		case kind == 2: // descheduled
			runtime.Gosched()
			err = r.match(q)
			runtime.Gosched()
		case kind == 3 && i%16 == 0:
			r.states = r.x.AppendInfos(r.states[:0])
			if n := r.x.Len(); n < 0 {
				err = fmt.Errorf("%d blocks", n)
			}
			r.dst = slices.Delete(r.dst, 0, len(r.dst)/2)
		case kind == 3:
			err = readToo(r, q, i)
		default:
			err = r.match(q)
		}
		if err != nil {
			return err
		}
		if i&63 == 0 && time.Since(start) > time.Duration(factor())*time.Minute {
			return fmt.Errorf("gave up after %d reads", i)
		}
	}
	return nil
}

// runScripts plays the scripts with four concurrent readers until each reader has done its work, although the writers
// never pause.
func runScripts(t *testing.T, x *index.Index, scripts []*script) {
	reads, rounds := sample(25, 60, 800), int64(factor())
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for _, s := range scripts {
		writers.Go(func() {
			if err := s.write(x, &stop); err != nil {
				t.Error(err)
			}
		})
	}
	for kind := range 4 {
		readers.Go(func() {
			n := len(scripts)
			r := &reader{x: x, scripts: scripts, lo: make([]int64, n), hi: make([]int64, n)}
			err := r.run(kind, reads, func() bool {
				for _, s := range scripts {
					if s.done.Load() < rounds*int64(len(s.steps)) {
						return false
					}
				}
				return true
			})
			if err != nil {
				t.Errorf("reader %d: %v", kind, err)
			}
		})
	}
	readers.Wait()
	stop.Store(true)
	writers.Wait()
	require.NoError(t, x.Check())
	require.Zero(t, x.Len())
}
