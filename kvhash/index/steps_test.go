// SPDX-License-Identifier: Apache-2.0

//go:build weftcount

package index_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// TestWorkSteps lets a writer do a random history in steps as small as lookups can see, and looks up between any two of
// them; while a lookup is under way, the writer does some more. Each result, for all workers and their trust, must have
// been true at one moment between the begin and end of the lookup, and not before the moment of an earlier lookup.
// Nothing depends on how goroutines are scheduled.
func TestWorkSteps(t *testing.T) {
	for seed := range uint64(1000 * factor()) {
		s := newStepper(seed)
		for range 60 {
			s.op()
		}
		if err := s.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		require.NoError(t, s.x.Check())
	}
}

// A copy to a store, given by engine hashes only, is one step, although the blocks are in several runs.
func TestWorkStepsOfCopy(t *testing.T) {
	x := fleet(2)
	store := x.AddStore(index.Key{Instance: "lmcache"}, kvevent.Remote)
	x.Attach(1, store)
	x.Add(0, stored("abab", 0, 0))
	x.Add(0, stored("bbbb", 0, 0))
	x.Add(0, stored("ababbabb", 4, 0)) // after bbbb
	x.Add(0, stored("aaaa", 0, 0))
	x.Add(0, stored("ababbabbbbaa", 8, 0))
	var seen []string
	x.OnStep(func() {
		if s := depths(x, "ababbabbbbaa"); len(seen) == 0 || seen[len(seen)-1] != s {
			seen = append(seen, s)
		}
	})
	x.Add(0, &kvevent.Event{Kind: kvevent.Stored, Owner: "lmcache", BlockHashes: modelHashes("ababbabbbbaa")})
	require.Equal(t, []string{"0:12", "0:12 1:12"}, seen)
}

// A prompt that changes at each look of a lookup is found all the same: at last the changes have to wait.
func TestWorkStarved(t *testing.T) {
	x := fleet(2)
	x.Add(1, stored("abab", 0, 0))
	flips, held := 0, 0
	x.OnLook(func() {
		ev := stored("abab", 3, 0)
		if flips%2 == 1 {
			ev = &kvevent.Event{Kind: kvevent.Removed, BlockHashes: ev.BlockHashes}
		}
		switch {
		case flips == 1000: // for ever
		case x.TryApply(1, ev):
			flips++
		default:
			held++
		}
	})
	m := x.AppendMatches(nil, modelHashes("abab"))
	x.OnLook(nil)
	require.Equal(t, uint64(4), x.Measure().Retries)
	require.NotZero(t, held)
	require.Less(t, flips, 1000)
	require.Equal(t, int32(3+flips%2), m[0].Depth)

	// Updates do not wait indefinitely either.
	x.Starve(1)
	x.Add(1, stored("bb", 0, 0))
	require.Equal(t, "1:2", depths(x, "bb"))
}

type stepper struct {
	x     *index.Index
	m     *model
	rnd   *rand.Rand
	words []string
	paths [][]int32

	parked  map[int]bool // moments with orphans
	do      []func()
	name    []string
	moments [][][]index.Match // results by moment and query
	until   []int             // by operation: how many moments there are when it is done
	key     uint32
}

func newStepper(seed uint64) *stepper {
	s := &stepper{x: index.NewAll(modelBlock, nil), m: newModel(modelBlock, index.AllOptions{}), rnd: rand.New(rand.NewPCG(seed, 8)), parked: map[int]bool{}}
	first := letters(seed, "ab", 24)
	for range 4 {
		n := s.rnd.IntN(len(first))
		s.words = append(s.words, first[:n]+letters(s.rnd.Uint64(), "ab", 24-n))
	}
	for _, w := range s.words {
		s.paths = append(s.paths, s.m.path(modelHashes(w)))
	}
	for i := range uint32(3) {
		s.m.add(s.x.AddWorker(index.Key{DPRank: i}), index.Key{DPRank: i})
	}
	s.moments = [][][]index.Match{s.truth()}
	return s
}

func (s *stepper) truth() (all [][]index.Match) {
	for _, p := range s.paths {
		all = append(all, s.m.match(p))
	}
	return all
}

// add adds an operation that takes the model from moment to moment. Trust changes at its end.
func (s *stepper) add(name string, do func(), parts ...func()) {
	before := make(map[index.WorkerID]index.State)
	for id, w := range s.m.workers {
		if w != nil {
			before[index.WorkerID(id)], _ = w.state()
		}
	}
	for _, w := range s.m.workers {
		if w != nil && len(w.orphans) > 0 {
			s.parked[len(s.moments)-1] = true
		}
	}
	for _, part := range parts {
		part()
		now := s.truth()
		for _, list := range now {
			for i := range list {
				if t, ok := before[list[i].Worker]; ok {
					list[i].State = t
				}
			}
		}
		s.moments = append(s.moments, now)
	}
	s.moments = append(s.moments, s.truth())
	s.do, s.name, s.until = append(s.do, do), append(s.name, name), append(s.until, len(s.moments))
}

func (s *stepper) event(id index.WorkerID, ev *kvevent.Event) {
	parts := []func(){func() { s.m.apply(id, ev) }}
	if ev.Kind == kvevent.Removed {
		parts = nil
		for i := range ev.BlockHashes {
			one := *ev
			one.BlockHashes = ev.BlockHashes[i : i+1]
			parts = append(parts, func() { s.m.apply(id, &one) })
		}
	}
	s.add(fmt.Sprintf("event %d of %d", ev.Kind, id), func() { s.x.Add(id, ev) }, parts...)
}

func (s *stepper) op() {
	id, word := index.WorkerID(s.rnd.IntN(3)), s.words[s.rnd.IntN(len(s.words))]
	from := s.rnd.IntN(len(word))
	to := from + 1 + s.rnd.IntN(len(word)-from)
	tier := kvevent.Tier(1 + s.rnd.IntN(2)*s.rnd.IntN(4))
	switch k := s.rnd.IntN(20); {
	case k < 4:
		s.event(id, on(tier, runOf(word[:to], 0)))
	case k < 9:
		s.event(id, on(tier, runOf(word[:to], from)))
	case k < 14:
		h := slices.Clone(engineHashes(word, 1)[from:to])
		if k < 12 {
			slices.Reverse(h)
		}
		s.event(id, &kvevent.Event{Kind: kvevent.Removed, Tier: tier, BlockHashes: h})
	case k == 14:
		s.event(id, &kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Tier(s.rnd.IntN(3))})
	case k == 15:
		s.add("remove worker", func() { s.x.RemoveWorker(id) }, func() { s.m.workers[id] = nil })
		s.key++
		key := index.Key{Instance: "again", DPRank: s.key}
		s.add("add worker", func() { s.x.AddWorker(key) }, func() { s.m.add(id, key) })
	case k == 16:
		trust := index.State(s.rnd.IntN(3))
		s.add("trust", func() { s.x.SetState(id, trust, "told") }, func() {
			w := s.m.worker(id)
			w.hasState, w.trust, w.why = true, trust, "told"
		})
	case k == 17:
		p := new(prediction)
		h, at := modelHashes(word[:to]), time.Unix(int64(s.rnd.IntN(100)), 0)
		s.add("predict", func() { p.p = s.x.Predict(id, h, 0, at) }, func() { p.m = s.m.worker(id).predict(s.m.path(h), at) })
		var parts []func()
		for _, b := range p.m.fresh {
			parts = append(parts, func() { p.m.takeBack(b) })
		}
		if s.rnd.IntN(3) > 0 {
			s.add("unpredict", func() { s.x.Unpredict(p.p) }, parts...)
		}
	default:
		ev := []kvevent.Event{{Kind: kvevent.Cleared}, *runOf(word[:to], 0), *runOf(s.words[0], 0)}
		s.add("snapshot", func() { s.x.NewStream(id, nil).Replace(0, ev) }, func() { s.m.worker(id).clear(kvevent.AnyTier) }, func() {
			w := s.m.worker(id)
			w.hasState, w.trust, w.received = true, index.Exact, true
			for i := range ev {
				s.m.apply(id, &ev[i])
			}
		})
	}
}

// play does the operations and looks up meanwhile.
func (s *stepper) play() error {
	begun, done := 0, 0
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		s.x.OnStep(func() { yield(struct{}{}) })
		for _, do := range s.do {
			begun++
			do()
			done++
		}
	})
	defer stop()
	over := false
	more := func() {
		if !over {
			_, ok := next()
			over = !ok
		}
	}
	seen := 0 // no result may be older than this moment
	var dst []index.Match
	for !over {
		more()
		for q, word := range s.words {
			if done > 0 {
				seen = max(seen, s.until[done-1]-1)
			}
			lo := seen
			left := s.rnd.IntN(4) * s.rnd.IntN(20)
			s.x.OnLook(func() {
				for range s.rnd.IntN(4) {
					if left > 0 {
						left--
						more()
					}
				}
			})
			dst = s.x.AppendMatches(dst[:0], modelHashes(word))
			s.x.OnLook(nil)
			hi := 1
			if begun > 0 {
				hi = s.until[begun-1]
			}
			at := slices.IndexFunc(s.moments[lo:hi], func(m [][]index.Match) bool { return slices.Equal(m[q], dst) })
			if at < 0 { // the tier of what a worker has already changes run by run
				at = slices.IndexFunc(s.moments[lo:hi], func(m [][]index.Match) bool { return slices.EqualFunc(m[q], dst, sameDepth) })
			}
			for i := lo; at < 0 && i+1 < hi; i++ { // orphans come one after another where the worker has already what leads to them
				if s.parked[i] && between(s.moments[i][q], s.moments[i+1][q], dst) {
					at = i - lo
				}
			}
			if at < 0 {
				var want [][]index.Match
				for _, m := range s.moments[lo:hi] {
					want = append(want, m[q])
				}
				return fmt.Errorf("query %d in operations %d to %d %v: %+v, want one of %+v", q, done, begun-1, s.name[max(0, done-1):begun], dst, want)
			}
			if i := lo + at; !s.parked[i-1] && !s.parked[i-2] {
				seen = i
			}
		}
	}
	return nil
}

func sameDepth(a, b index.Match) bool {
	return a.Worker == b.Worker && a.Depth == b.Depth && a.State == b.State
}

// between reports whether got is a possible result between two moments that differ in one worker's depth.
func between(from, to, got []index.Match) bool {
	if len(from) != len(to) || len(from) != len(got) {
		return false
	}
	for i, m := range got {
		if m.Worker != from[i].Worker || m.Worker != to[i].Worker || m.State != from[i].State || m.Depth < from[i].Depth || m.Depth > to[i].Depth {
			return false
		}
	}
	return true
}
