// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file implements lookups. A lookup goes from run to run and records the state of each. At the end it checks all
// of them again: if no state has changed, the result is a consistent snapshot at the instant of its last step.
// Otherwise it is retried. Lookups write no shared data, so they do not slow each other down, and a retry implies that
// an update made progress. After too many retries, a lookup asks updates to yield.
//
// The proof uses that Go's atomic operations have one order for all goroutines:
//
//   - The data of a live run (head, start, the hashes in its slots, the words of its set) is written before its state
//     is stored and reused only after its state has changed. So data read between two loads of the same state belongs
//     to the run. Equal states are the same state: versions do not wrap around, because there are fewer than 2^23 +
//     2^20 changes in between and 2^24 versions, and where runs lost their memory and so their versions, the epoch
//     differs.
//   - All states are loaded before the first of them is loaded again. So there is an instant at which all runs were as
//     the lookup read them.
//   - A lookup may end at a hash with which no run begins. Entries in a table of heads do not move, probe sequences
//     have no gaps, and a table that was replaced gets no entries and loses only removed ones, while it keeps those
//     copied to the new table, which lookups probe first. So there was an instant during the probe, after all
//     states were loaded, at which no run began with the hash. At that instant the block was absent: a block that stays
//     while its run is removed is joined to the run before it, whose state then changes, and that run is the last one
//     of the lookup. The hint in next is only a shortcut to the run.
//   - The roster, live and states are read after the epoch, and the writer increments the epoch after it has changed
//     one of them and before it changes anything else. If the epoch is the same at the end of a lookup, either none of
//     them has changed, or one change is not counted yet. In the latter case nothing else has changed since, and the
//     result is that just before or just after the change.
//   - Data read from a removed run may be arbitrary. Every index into a slab or chunk is first compared with its
//     length; tables always have an empty entry, where probes end; each run adds at least one block to the depth. So
//     such a lookup ends soon, and its result is discarded.

// Match describes how much of a prompt one worker holds.
//
// Depth == Predicted + sum of Tiers.
type Match struct {
	Worker WorkerID
	// Depth is the number of leading blocks that are resident or predicted, at least 1.
	Depth int32
	// Tiers splits these blocks by the fastest tier that holds each; tier t has the index t-1.
	Tiers [kvevent.NumTiers]int32
	// Predicted is the number of these blocks that no tier holds yet.
	Predicted int32
	// State specifies how exactly the worker's blocks are known; [Index.Worker] returns the reason if it is not Exact.
	State State
}

// query restricts a lookup. The zero query covers all workers and all their blocks.
type query struct {
	workers []WorkerID // in any order; nil means all
	stop    int        // the lookup ends when at most this many workers hold all blocks so far; the reported depths of those are lower bounds
	best    int        // the number of workers to report, the deepest first; 0 means all, in ascending order of IDs
}

// AppendMatches appends to dst one Match for each worker that holds or is predicted to hold the first block of a prompt, in ascending order of IDs,
// and returns it. hashes are the prompt's sequence hashes, first block first, as [kvhash.Chain.Blocks] returns them. Engines compute the last
// token of a prompt in any case: pass only the blocks before it to get what a hybrid model serves.
//
// AppendMatches takes no locks and may run concurrently with all other methods. The result is a consistent snapshot of
// all workers at one instant during the call. O(runs of blocks with the same residents along the prompt + log of the
// last run + workers reported); no allocation if dst has room. With more than 256 workers or more than 48 runs, it uses
// scratch memory from a pool.
func (x *Index) AppendMatches(dst []Match, hashes []uint64) []Match {
	return x.search(dst, hashes, &all)
}

// AppendBest appends to dst the matches of the n workers that hold most of a prompt, the deepest first and equal ones in ascending
// order of IDs, and returns it. It is [Index.AppendMatches] without the workers that the caller would drop: those cost one bit
// operation for 64 of them in each run, and no Match is written for them. If n is not positive, it appends nothing.
func (x *Index) AppendBest(dst []Match, hashes []uint64, n int) []Match {
	if n <= 0 {
		return dst
	}
	return x.search(dst, hashes, &query{best: n})
}

// Best returns the worker that holds most of a prompt, and its match; of equal ones that with the lowest ID. Both are zero if
// no worker holds the first block. It costs as much as [Index.AppendBest] of one.
func (x *Index) Best(hashes []uint64) (Worker, Match) {
	var room [1]Match
	found := x.AppendBest(room[:0], hashes, 1)
	if len(found) == 0 {
		return Worker{}, Match{}
	}
	w, ok := x.Worker(found[0].Worker)
	if !ok { // removed meanwhile
		return Worker{}, Match{}
	}
	return w, found[0]
}

func (x *Index) search(dst []Match, hashes []uint64, q *query) []Match {
	if len(hashes) == 0 {
		return dst
	}
	base := len(dst)
	long, tries := false, 0
	for {
		epoch := x.tree.epoch.Load() // before the roster: whatever is changed later counts
		r := x.roster.Load()
		var v verdict
		if long || r.width > narrow {
			dst, v = x.wide(dst[:base], hashes, q, r, epoch)
		} else {
			var b struct {
				first, active [narrow]uint64
				rank          [narrow]int32
				steps         [48]step
			}
			s := search{roster: r, epoch: epoch, first: b.first[:r.width], active: b.active[:r.width], rank: b.rank[:r.width], steps: b.steps[:]}
			dst, v = s.run(x, dst[:base], hashes, q)
		}
		switch v {
		case done:
			return dst
		case again:
			x.retries.Add(1)
			if tries++; tries == patience {
				return x.insist(dst, base, hashes, q)
			}
		case tooLong:
			long = true
		}
	}
}

var all query

// patience is the number of attempts after which a lookup asks updates to wait for it.
const patience = 4

// insist completes a lookup that has failed too often.
func (x *Index) insist(dst []Match, base int, hashes []uint64, q *query) []Match {
	x.starved.Add(1)
	defer x.starved.Add(-1)
	for {
		epoch := x.tree.epoch.Load()
		var v verdict
		switch dst, v = x.wide(dst[:base], hashes, q, x.roster.Load(), epoch); v {
		case done:
			return dst
		case again:
			x.retries.Add(1)
		}
	}
}

// lock locks the index for a change, or against changes.
func (x *Index) lock() {
	if x.yield(); !x.mu.TryLock() {
		x.lockNext()
	}
	x.tree.work.hold()
}

// lockPart is lock for a part of longer work. A goroutine that waits for the lock goes first, although one that unlocks a mutex and
// locks it again wins for a millisecond against one that waits.
func (x *Index) lockPart() {
	x.yield()
	x.lockNext()
	x.tree.work.hold()
}

// lockNext locks mu after the one that waits for it.
func (x *Index) lockNext() {
	x.next.Lock()
	x.mu.Lock()
	x.next.Unlock()
}

// yield waits for lookups that have failed too often, but only for a bounded time: lookups never wait, so they cannot block
// updates.
func (x *Index) yield() {
	for i := 0; i < 10_000 && x.starved.Load() > 0; i++ {
		runtime.Gosched()
	}
}

// narrow is the number of words of 64 workers up to which a lookup needs no scratch memory.
const narrow = 4

// scratch is the memory of lookups over more workers or runs.
type scratch struct {
	first, active []uint64
	rank          []int32
	steps         []step
}

var scratches = sync.Pool{New: func() any { return &scratch{steps: make([]step, 1024)} }}

func (x *Index) wide(dst []Match, hashes []uint64, q *query, r *roster, epoch uint64) ([]Match, verdict) {
	b := scratches.Get().(*scratch)
	defer scratches.Put(b)
	if len(b.first) < r.width {
		b.first, b.active, b.rank = make([]uint64, r.width), make([]uint64, r.width), make([]int32, r.width)
	}
	s := search{roster: r, epoch: epoch, first: b.first[:r.width], active: b.active[:r.width], rank: b.rank[:r.width], steps: b.steps}
	dst, v := s.run(x, dst, hashes, q)
	if v == tooLong {
		b.steps = make([]step, 4*len(b.steps))
	}
	return dst, v
}

// search is one attempt of a lookup. The entry of a worker is at the rank of its bit in first. The entries and the
// index are separate arguments, because as fields they would make the search escape to the heap.
type search struct {
	roster *roster
	epoch  uint64
	first  []uint64 // workers that hold the first block
	active []uint64 // those that hold all blocks so far
	rank   []int32  // number of workers in the words before
	steps  []step   // the first n are the runs visited so far
	n      int
}

// step is a run and the state in which the lookup read it.
type step struct {
	run   uint32
	n     uint32 // leading blocks of the run that are blocks of the prompt
	state state
}

type verdict uint8

const (
	done    verdict = iota
	again           // the writer changed what the lookup saw
	tooLong         // more steps than there is room for
)

// run finds the runs of the prompt in order.
func (s *search) run(x *Index, found []Match, hashes []uint64, q *query) ([]Match, verdict) {
	t := &x.tree
	base := len(found)
	mark := t.changes.Load()
	n, r, conflict := t.heads.find(&t.runs, hashes[0])
	if conflict {
		return found, again
	}
	if n == 0 {
		return found, done
	}
	var v view
	set := uint32(1 << setBits) // none has this number
	var slow, opened bool       // opened: the workers to report have entries
	depth, left := uint32(0), 0
	best, stop := q.best, q.stop
	if s.roster.moved || s.roster.hybrid {
		best = 0 // of equal workers those with the lowest lanes would be kept, and of hybrid ones the wrong ones
	}
	if s.roster.hybrid {
		stop = 0 // what ends early may be nothing that a hybrid one serves
	}
	for {
		st := state(r.state.Load())
		// This is checked after the state was loaded, because the number may have been reused since it was found.
		if st.length() == 0 || r.head.Load() != hashes[depth] {
			return found, again
		}
		m, ok := t.agree(r.start.Load(), hashes[depth:min(len(hashes), int(depth+st.length()))])
		if !ok {
			return found, again
		}
		if s.n == len(s.steps) {
			return found, tooLong
		}
		s.steps[s.n] = step{n, m, st}
		s.n++
		t.work.edge(st.length())
		if st.set() != set {
			set = st.set()
			if v, ok = t.sets.view(set); !ok && set != 0 { // blocks being stored may have no worker yet
				return found, again
			}
			switch {
			case opened:
				left = s.drop(found[base:], &v, int32(depth))
			case depth == 0:
				if left = s.begin(&v, q); best == 0 || left <= best {
					found, opened = s.open(x, found), true
				}
			default:
				var all bool
				if left, all = s.narrow(&v, best); all {
					break
				}
				// Fewer workers continue than are to be reported. The others that are reported end here.
				if found, ok = s.openLate(x, found, s.n-1); !ok {
					return found, again
				}
				left, opened = s.drop(found[base:], &v, int32(depth)), true
			}
			slow = v.mask != 1<<planeDevice || len(s.roster.stores) > 0 || s.roster.clearing != nil
		}
		if left == 0 {
			break
		}
		if slow && opened {
			s.slower(found[base:], &v, int32(m))
		}
		depth += m
		if left <= stop || int(depth) == len(hashes) {
			break
		}
		// Prompts may also diverge inside a run, but only where a block was absent for a time.
		if n = r.next.Load(); n != 0 {
			if f := t.runs.peek(n); f != nil && f.head.Load() == hashes[depth] && state(f.state.Load()).length() > 0 {
				r = f
				continue
			}
		}
		if n, r, conflict = t.heads.find(&t.runs, hashes[depth]); conflict {
			return found, again
		}
		if n == 0 {
			break
		}
	}
	if !opened {
		s.keep(s.active, best)
		var ok bool
		if found, ok = s.openLate(x, found, s.n); !ok {
			return found, again
		}
	}
	s.close(found[base:], int32(depth))
	if s.roster.hybrid {
		rest, ok := s.hybrid(x, found[base:])
		if !ok {
			return found[:base], again
		}
		found = found[:base+len(rest)]
	}
	if !s.valid(t, mark) {
		return found, again
	}
	if s.roster.moved {
		slices.SortFunc(found[base:], func(a, b Match) int { return cmp.Compare(a.Worker, b.Worker) })
	}
	if q.best > 0 {
		slices.SortStableFunc(found[base:], func(a, b Match) int { return cmp.Compare(b.Depth, a.Depth) })
		found = found[:min(len(found), base+q.best)]
	}
	return found, done
}

// valid reports whether nothing that the lookup read has changed.
func (s *search) valid(t *tree, mark uint64) bool {
	for _, step := range s.steps[:s.n] {
		r := t.runs.peek(step.run)
		if r == nil || state(r.state.Load()) != step.state {
			return false
		}
	}
	return t.epoch.Load() == s.epoch && t.changes.Load()-mark < 1<<23
}

// agree returns the number of leading blocks of the run at slot start that match hashes, at most len(hashes). The first
// one is known to match. Hashes are chained: if one matches, all before it do.
func (t *tree) agree(start uint32, hashes []uint64) (m uint32, ok bool) {
	lo, hi := uint32(1), uint32(len(hashes)) // the first lo agree, and not more than hi
	for probe := hi; lo < hi; probe = (lo + hi + 1) / 2 {
		s := t.slots.seq.peek(start + probe - 1)
		if s == nil {
			return 0, false
		}
		t.work.probe()
		if s.Load() == hashes[probe-1] {
			lo = probe
		} else {
			hi = probe - 1
		}
	}
	return lo, true
}

// begin makes the workers of a query that hold the first block active, and returns their number.
func (s *search) begin(v *view, q *query) (left int) {
	clear(s.active)
	for _, id := range q.workers {
		if int64(id) < int64(len(s.roster.workers)) && s.roster.workers[id] != nil {
			l := s.roster.lanes[id]
			s.active[l>>6] |= 1 << (l & 63)
		}
	}
	for i := range s.active {
		word := s.held(v, i) & s.roster.live[i]
		if q.workers != nil {
			word &= s.active[i]
		}
		s.active[i] = word
		left += bits.OnesCount64(word)
	}
	return left
}

// open adds an entry for each active worker.
func (s *search) open(x *Index, found []Match) []Match {
	base := len(found)
	for i, word := range s.active {
		s.first[i], s.rank[i] = word, int32(len(found)-base)
		for ; word != 0; word &= word - 1 {
			x.tree.work.entry()
			l := x.states.at(uint32(i*64 + bits.TrailingZeros64(word))).Load()
			found = append(found, Match{Worker: WorkerID(l >> 8), State: State(l)})
		}
	}
	return found
}

// narrow ends the search for the active workers that do not hold a set's blocks, if at least n do, and returns the number
// that do. Otherwise, of the workers that do not, it keeps those with the lowest IDs active, so that n are, and all is false.
func (s *search) narrow(v *view, n int) (left int, all bool) {
	for i, a := range s.active {
		s.first[i] = a & s.held(v, i)
		left += bits.OnesCount64(s.first[i])
	}
	if left >= n {
		copy(s.active, s.first)
		return left, true
	}
	for i, a := range s.active {
		s.active[i] = a &^ s.first[i]
	}
	s.keep(s.active, n-left)
	for i, f := range s.first {
		s.active[i] |= f
	}
	return left, false
}

// keep keeps the n lowest bits of words.
func (s *search) keep(words []uint64, n int) {
	for i, w := range words {
		for c := bits.OnesCount64(w); c > n; c-- {
			w &^= 1 << (63 - bits.LeadingZeros64(w))
		}
		words[i] = w
		n -= bits.OnesCount64(w)
	}
}

// openLate is open after the given number of steps, all of whose blocks the active workers hold.
func (s *search) openLate(x *Index, found []Match, steps int) ([]Match, bool) {
	base := len(found)
	found = s.open(x, found)
	for _, step := range s.steps[:steps] {
		v, ok := x.tree.sets.view(step.state.set())
		if !ok {
			return found, false
		}
		if v.mask != 1<<planeDevice || len(s.roster.stores) > 0 || s.roster.clearing != nil {
			s.slower(found[base:], &v, int32(step.n))
		}
	}
	return found, true
}

// held returns word i of the workers that hold a set's blocks, or read from a store that does.
func (s *search) held(v *view, i int) uint64 {
	h := v.word(v.words[:v.n], i)
	if c := s.roster.clearing; c != nil && int(c.lane>>6) == i {
		var rest uint64
		for p := range planeWindow {
			if !c.hides(p) {
				rest |= v.word(v.plane(p), i)
			}
		}
		h = h&^(1<<(c.lane&63)) | rest&(1<<(c.lane&63))
	}
	for k := range s.roster.stores {
		if st := &s.roster.stores[k]; i < len(st.members) && v.has(st.lane) {
			h |= st.members[i]
		}
	}
	return h
}

// hides reports whether lookups ignore the plane. Predictions belong to the device.
func (c *clearing) hides(plane int) bool {
	return plane == c.plane || c.plane == planeDevice && plane == planePredicted
}

// has reports whether the worker, or store, has a bit in any plane.
func (v *view) has(w lane) bool { return v.word(v.words[:v.n], int(w>>6))>>(w&63)&1 != 0 }

// entry returns the entry of the worker of one bit.
func (s *search) entry(found []Match, i int, bit int) *Match {
	return &found[s.rank[i]+int32(bits.OnesCount64(s.first[i]&(1<<bit-1)))]
}

// drop ends the search for the workers that do not hold a set's blocks, which begin at depth, and returns the number of
// remaining workers.
func (s *search) drop(found []Match, v *view, depth int32) (left int) {
	for i, a := range s.active {
		if a == 0 {
			continue
		}
		h := s.held(v, i)
		for dead := a &^ h; dead != 0; dead &= dead - 1 {
			s.entry(found, i, bits.TrailingZeros64(dead)).end(depth)
		}
		a &= h
		s.active[i] = a
		left += bits.OnesCount64(a)
	}
	return left
}

// slower counts m blocks of a set for the workers that do not have them on the device.
func (s *search) slower(found []Match, v *view, m int32) {
	for i, a := range s.active {
		for rest := a &^ s.device(v, i); rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros64(rest)
			s.below(s.entry(found, i, b), v, i, b, m)
		}
	}
}

// below counts m blocks of a set for the worker of a bit, which does not have them on the device.
func (s *search) below(e *Match, v *view, i, b int, m int32) {
	switch tier := s.tier(v, i, b); tier {
	case 0:
		e.Predicted += m
	case kvevent.Device: // of a store; end counts it
	default:
		e.Tiers[tier-1] += m
	}
}

// device returns word i of the workers that hold a set's blocks on the device.
func (s *search) device(v *view, i int) uint64 {
	d := v.word(v.plane(planeDevice), i)
	if c := s.roster.clearing; c != nil && c.plane == planeDevice && int(c.lane>>6) == i {
		d &^= 1 << (c.lane & 63)
	}
	return d
}

// tier returns the fastest tier below the device in which the worker of a bit has a set's blocks, or 0 if they are only
// predicted.
func (s *search) tier(v *view, i, b int) (best kvevent.Tier) {
	for t := kvevent.Host; t <= kvevent.NumTiers; t++ {
		if c := s.roster.clearing; c != nil && int(c.lane) == i<<6|b && c.hides(int(t)-1) {
			continue
		}
		if v.word(v.plane(int(t)-1), i)>>b&1 != 0 {
			best = t
			break
		}
	}
	for k := range s.roster.stores {
		st := &s.roster.stores[k]
		if (best == 0 || st.tier < best) && i < len(st.members) && st.members[i]>>b&1 != 0 && v.has(st.lane) {
			best = st.tier
		}
	}
	return best
}

// close ends the search for the remaining workers after depth blocks.
func (s *search) close(found []Match, depth int32) {
	for i, a := range s.active {
		for ; a != 0; a &= a - 1 {
			s.entry(found, i, bits.TrailingZeros64(a)).end(depth)
		}
	}
}

// end sets the depth. Blocks that are in no slower tier and not predicted are on the device.
func (m *Match) end(depth int32) {
	m.Depth = depth
	m.Tiers[kvevent.Device-1] = depth - m.Predicted
	for t := kvevent.Host; t <= kvevent.NumTiers; t++ {
		m.Tiers[kvevent.Device-1] -= m.Tiers[t-1]
	}
}
