// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file copies the index as it is at one moment, for snapshots, while updates continue. Updates and streams stop at that moment for
// O(workers); then everything is copied in small steps. An update that comes first copies what it is about to
// change: a chunk of a slab, a page of names, the rest of a worker, the position of a stream. So a snapshot needs the
// memory of the blocks again, and of the own names of one worker at a time.

// shot is a snapshot that is being taken.
type shot struct {
	x       *Index
	kind    byte
	clock   int64
	version *version // nil if there is no journal
	roster  *roster
	workers []*workerShot // by WorkerID; only one if kind is kindWorker
	streams []*Stream     // whose positions may be missing
	tree    tree          // slots, runs and sets
	copied  bool
	done    bool
	limit   int // of a step
	next    int // worker whose names are copied next
	place   int // in its directory
	room    int // names for which to allocate memory before that; 0 if done
}

// workerShot is the copy of a worker.
type workerShot struct {
	id   WorkerID
	lane lane
	w    *worker

	taken    bool // what follows is there
	key      Key
	store    kvevent.Tier
	flags    flags
	hasState bool
	state    State
	why      string
	more     map[uint64][]location // locations besides those in names
	orphans  []byte
	groups   []byte
	names    *namesShot
	position []byte // position of the stream; with the lock of the stream

	keys []uint64 // own names, then those that are common
	vals []location
	held []heldSpan
}

// heldSpan is a range of slots whose blocks a worker has in the same tiers.
type heldSpan struct {
	from, to uint32
	tiers    uint8
}

// namesShot is the copy of a table of names: its directory, with copies of the pages that have changed since.
type namesShot struct {
	dir   []page // pages that were read have no groups
	shift uint8
	n     int
}

// shotStep limits the work of one hold of the lock, in names and cache lines.
const shotStep = 2048

// shoot stops streams and updates for a moment, and begins a snapshot of that moment: of all workers, or of one. It is nil if
// the worker does not exist. The caller must call step until there is no more; other snapshots wait until then.
func (x *Index) shoot(kind byte, id WorkerID) *shot {
	x.shooting.Lock()
	for {
		x.tidy() // snapshots do not have lanes without a worker
		x.freeze()
		if len(x.trash) == 0 {
			break
		}
		x.thaw()
	}
	defer x.thaw()
	s := &shot{x: x, kind: kind, limit: shotStep, clock: x.clock.Load(), roster: x.roster.Load()}
	of := x.workers
	if kind == kindWorker {
		if x.worker(id) == nil {
			x.shooting.Unlock()
			return nil
		}
		of = of[id : id+1]
	} else {
		id = 0
	}
	if x.journal != nil && kind == kindIndex {
		v := x.journal.last
		s.version = &v
	}
	s.workers = make([]*workerShot, len(of))
	for i, w := range of {
		if w == nil {
			continue
		}
		p := &workerShot{id: id + WorkerID(i), lane: w.lane, w: w}
		s.workers[i], w.shot = p, p
		if w.stream != nil {
			w.stream.shot = p
			s.streams = append(s.streams, w.stream)
		} else {
			p.position = w.position
		}
	}
	t, u := &x.tree, &s.tree
	u.heads.mixer, u.sets.mixer, u.slots.end = t.heads.mixer, t.sets.mixer, t.slots.end
	t.slots.seq.shoot()
	t.slots.owner.shoot()
	t.slots.common.of.shoot()
	t.runs.shoot()
	t.sets.words.shoot()
	return s
}

// freeze stops streams between two batches, and all updates, until thaw is called.
func (x *Index) freeze() {
	x.gate.Lock()
	x.lock()
}

func (x *Index) thaw() {
	x.mu.Unlock()
	x.gate.Unlock()
}

// step copies a part, and reports whether there is more.
func (s *shot) step() (more bool) {
	x := s.x
	if s.done {
		return false
	}
	if n := len(s.streams); n > 0 {
		f := s.streams[n-1]
		f.mu.Lock()
		f.expose()
		f.mu.Unlock()
		s.streams = s.streams[:n-1]
		return true
	}
	if s.room > 0 { // without the lock, because this takes long
		p := s.workers[s.next]
		p.keys, p.vals, s.room = make([]uint64, 0, s.room), make([]location, 0, s.room), 0
	}
	x.lockPart()
	defer x.mu.Unlock()
	limit := s.limit
	if t, u := &x.tree, &s.tree; !s.copied {
		for limit > 0 && (t.slots.seq.develop(&limit) || t.slots.owner.develop(&limit) || t.slots.common.of.develop(&limit) || t.runs.develop(&limit) || t.sets.words.develop(&limit)) {
		}
		x.tree.work.acts(s.limit - limit)
		if limit > 0 {
			t.slots.seq.finish(&u.slots.seq)
			t.slots.owner.finish(&u.slots.owner)
			t.slots.common.of.finish(&u.slots.common.of)
			t.runs.finish(&u.runs)
			t.sets.words.finish(&u.sets.words)
			s.copied = true
		}
		return true
	}
	for ; s.next < len(s.workers); s.next, s.place = s.next+1, 0 {
		p := s.workers[s.next]
		if p == nil {
			continue
		}
		if p.take(); p.keys == nil && p.names.n > 0 {
			s.room = p.names.n
			return true
		}
		for s.place < len(p.names.dir) && limit > 0 {
			limit -= p.read(s.place)
			s.place += 1 << (64 - p.names.shift - p.names.dir[s.place].depth)
		}
		x.tree.work.acts(s.limit - limit)
		if s.place < len(p.names.dir) || limit <= 0 {
			return true
		}
		if p.w.names.shot == p.names { // it may have been cleared
			p.w.names.shot = nil
		}
	}
	s.done = true
	x.shooting.Unlock()
	return false
}

// expose notes the position of a stream for a snapshot, before the stream advances. The caller holds the stream's lock.
func (f *Stream) expose() {
	if f.shot != nil {
		f.shot.position = f.in.AppendPosition(nil)
		f.shot = nil
	}
}

// touch must be called before a worker changes in another way than by predictions: it copies what is not in its pages of names
// into the snapshot that is being taken, if any.
func (w *worker) touch() {
	if w.shot != nil {
		w.shot.take()
	}
}

// take copies a worker, except the pages of its names.
func (p *workerShot) take() {
	if p.taken {
		return
	}
	w := p.w
	w.shot = nil
	p.taken = true
	p.key, p.store, p.flags, p.hasState, p.state, p.why = w.key, w.store, w.flags(), w.hasState, w.state, w.why
	if len(w.more) > 0 {
		p.more = make(map[uint64][]location, len(w.more))
		for h, m := range w.more {
			p.more[h] = slices.Clone(m.list)
		}
	}
	p.orphans = w.orphans.append(nil)
	p.groups = w.groups.append(nil)
	p.names = &namesShot{slices.Clone(w.names.dir), w.names.shift, w.names.n}
	w.names.shot = p.names
}

// read reads the page at index i of the directory, and returns its number of names.
func (p *workerShot) read(i int) int {
	page := &p.names.dir[i]
	span := 1 << (64 - p.names.shift - page.depth)
	eachName(page.groups, func(h uint64, at location) bool {
		p.keys, p.vals = append(p.keys, h), append(p.vals, at)
		return true
	})
	for k := range span {
		p.names.dir[i+k].groups = nil
	}
	return int(page.n) + 1
}

// save must be called before the page of a mixed hash changes.
func (t *names) save(m uint64) {
	if t.shot == nil || len(t.dir) == 0 || len(t.shot.dir) == 0 {
		return
	}
	i := int(m >> t.shot.shift)
	page := t.shot.dir[i]
	if len(page.groups) == 0 || unsafe.SliceData(page.groups) != unsafe.SliceData(t.dir[m>>t.shift].groups) {
		return // read, copied, or replaced
	}
	span := 1 << (64 - t.shot.shift - page.depth)
	page.groups = slices.Clone(page.groups)
	for k := i &^ (span - 1); k < i|(span-1)+1; k++ {
		t.shot.dir[k].groups = page.groups
	}
}

// slabShot is the copy of a slab.
type slabShot[T any] struct {
	chunks []*[chunkLen]T // nil if not copied yet
	next   int
}

// shoot begins a copy of the slab.
func (s *slab[T]) shoot() { s.shot = &slabShot[T]{chunks: make([]*[chunkLen]T, s.chunks())} }

// save must be called before element i changes.
func (s *slab[T]) save(i uint32) {
	if s.shot != nil {
		s.copy(int(i >> chunkBits))
	}
}

// copy copies a chunk if the snapshot needs it and does not have it.
func (s *slab[T]) copy(c int) (bytes int) {
	if c >= len(s.shot.chunks) || s.shot.chunks[c] != nil {
		return 0
	}
	from, to := (*s.dir.Load())[c], new([chunkLen]T)
	size := int(unsafe.Sizeof(*to))
	// Elements are atomic for the sake of readers; only the writer changes them, and this is the writer.
	copy(unsafe.Slice((*byte)(unsafe.Pointer(to)), size), unsafe.Slice((*byte)(unsafe.Pointer(from)), size))
	s.shot.chunks[c] = to
	return size
}

// drop keeps the chunks from n on for the snapshot. The slab is about to release them.
func (s *slab[T]) drop(n int) {
	if s.shot == nil {
		return
	}
	for c := n; c < len(s.shot.chunks); c++ {
		if s.shot.chunks[c] == nil {
			s.shot.chunks[c] = (*s.dir.Load())[c]
		}
	}
}

// develop copies chunks, reduces the limit, and reports whether there are more.
func (s *slab[T]) develop(limit *int) bool {
	for ; s.shot.next < len(s.shot.chunks); s.shot.next++ {
		if *limit <= 0 {
			return true
		}
		*limit -= 1 + s.copy(s.shot.next)/64
	}
	return false
}

// finish moves the copy to another slab.
func (s *slab[T]) finish(to *slab[T]) {
	to.dir.Store(&s.shot.chunks)
	s.shot = nil
}

// spans notes for each worker what it has in tiers.
func (s *shot) spans() {
	of := make(map[lane]*workerShot)
	for _, w := range s.workers {
		if w != nil {
			of[w.lane] = w
		}
	}
	t := &s.tree
	t.eachRun(func(start, end uint32, st state) {
		v, _ := t.sets.view(st.set())
		for i := range v.n {
			for word := v.words[i].Load(); word != 0; word &= word - 1 {
				l := lane((v.lo+i)*64 + bits.TrailingZeros64(word))
				if w := of[l]; w != nil {
					if tiers := t.sets.tiers(st.set(), l); tiers != 0 {
						w.held = append(w.held, heldSpan{start, end, tiers})
					}
				}
			}
		}
	})
}

// addCommon appends the names of blocks that a worker has under their common names to its keys.
func (w *workerShot) addCommon(t *tree) {
	var owned []uint64
	own := func(p location) { owned[p.slot()>>6] |= 1 << (p.slot() & 63) }
	if len(w.vals) > 0 {
		owned = make([]uint64, t.slots.end>>6+1)
		for _, p := range w.vals {
			own(p)
		}
		for _, list := range w.more {
			for _, p := range list {
				own(p)
			}
		}
	}
	for _, h := range w.held {
		for i := h.from; i < h.to; i++ {
			if owned == nil || owned[i>>6]>>(i&63)&1 == 0 {
				w.keys, w.vals = append(w.keys, t.slots.common.at(i)), append(w.vals, locationAt(i, h.tiers))
			}
		}
	}
	w.held = nil
}

// idsOf returns the workers of lanes, one bit each, in ascending order.
func (r *roster) idsOf(lanes []uint64) (ids []WorkerID) {
	of := make(map[lane]WorkerID)
	for id, w := range r.workers {
		if w != nil {
			of[r.lanes[id]] = WorkerID(id)
		}
	}
	for i, word := range lanes {
		for ; word != 0; word &= word - 1 {
			if id, ok := of[lane(i*64+bits.TrailingZeros64(word))]; ok {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}
