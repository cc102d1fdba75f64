// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// A journal holds the last changes of an index, each as a record, for its followers. Events are kept with hashes
// instead of tokens, and only those that changed something. Records are chained: a version is the number of changes and
// a checksum over all of them, so that two indexes with the same version have the same history.
//
//	record = op(1 byte) worker ...
//	delta  = version version limit of orphans, count record..., each with its length, count positions: worker position
type journal struct {
	max   int    // bytes to keep; 0 means none, only the version, until the index has a change of its own
	buf   []byte // records
	marks []mark // one for each record in buf
	first version
	last  version
	one   [1]kvevent.Event
	dec   *kvevent.Decoder
}

// mark is the end of a record in the buffer, and the version's sum after it.
type mark struct {
	end int
	sum uint64
}

const markSize = 16

// version identifies the changes that an index contains. It is comparable; the zero version belongs to an empty index.
type version struct {
	Count uint64 // changes
	Sum   uint64 // over all of them
}

const (
	opEvent   = iota + 1 // a batch of one event
	opFlags              // flags
	opAdd                // key rank tier
	opRemove             //
	_                    // was: clear
	opState              // state(1 byte) why
	opAttach             // store on(1 byte)
	opExpired            // how many orphans
	opReplace            // clear; what follows is one step,
	opDone               // up to here
	opRestore            // a snapshot of one worker
)

// version returns which changes the index has seen; the zero version if it keeps no journal and did not come from one that does.
func (x *Index) version() version {
	x.lock()
	defer x.mu.Unlock()
	if x.journal == nil {
		return version{}
	}
	return x.journal.last
}

// appendDelta appends what changed since a version; see AppendDelta of package replica.
func (x *Index) appendDelta(dst []byte, since version) (delta []byte, now version, ok bool) {
	x.freeze()
	defer x.thaw()
	j := x.journal
	if j == nil {
		return dst, version{}, false
	}
	if since.Count < j.first.Count || since.Count > j.last.Count || j.sum(since.Count) != since.Sum {
		return dst, j.last, false
	}
	from := len(dst)
	dst = appendHeader(dst, kindDelta, fingerprint(x.block, x.opt.Scheme))
	dst = appendVersion(appendVersion(dst, since), j.last)
	dst = appendUint(dst, uint64(x.maxOrphans()))
	marks := j.marks[since.Count-j.first.Count:]
	dst = appendUint(dst, uint64(len(marks)))
	at := 0
	if i := len(j.marks) - len(marks); i > 0 {
		at = j.marks[i-1].end
	}
	for _, m := range marks {
		dst = appendString(dst, j.buf[at:m.end])
		at = m.end
	}
	for i, w := range x.workers {
		if w != nil {
			if p := w.where(); len(p) > 0 {
				dst = appendString(appendUint(dst, uint64(i)+1), p)
			}
		}
	}
	return appendChecksum(append(dst, 0), from), j.last, true
}

func appendVersion(dst []byte, v version) []byte { return appendHash(appendUint(dst, v.Count), v.Sum) }

func (c *cursor) version() version { return version{c.uint(math.MaxUint64), c.hash()} }

func (x *Index) maxOrphans() int { return cmp.Or(x.opt.MaxPending, 1<<16) }

// addDelta applies a delta; see AddDelta of package replica. An error is a [*snapshotError].
func (x *Index) addDelta(data []byte) error {
	c, names, err := open(data, kindDelta)
	if err != nil {
		return err
	}
	if names != fingerprint(x.block, x.opt.Scheme) {
		return &snapshotError{Offset: int64(len(frameMagic) + 2), Err: errScheme}
	}
	from, to := c.version(), c.version()
	if c.uint(math.MaxUint64) != uint64(x.maxOrphans()) {
		c.fail(errOrphans)
	}
	records := make([][]byte, 0, c.left()/64)
	sum := from.Sum
	for range c.count(2) {
		r := c.bytes(c.uint(math.MaxUint64))
		sum = xxh3.HashSeed(r, sum)
		records = append(records, r)
	}
	c.check(to == version{from.Count + uint64(len(records)), sum})
	type at struct {
		id       WorkerID
		position []byte
	}
	var locations []at
	for {
		id := c.uint(maxWorkers)
		if id == 0 {
			break
		}
		p := c.bytes(c.uint(math.MaxUint64))
		if _, err := new(sequence.Tracker).Restore(nil, p); err != nil {
			c.fail(err)
		}
		locations = append(locations, at{WorkerID(id - 1), p})
	}
	if c.check(c.left() == 0); c.err != nil {
		return c.err
	}

	defer x.tidy()
	x.lock()
	defer x.mu.Unlock()
	j := x.journal
	if j == nil && len(x.workers) == 0 {
		j = new(journal)
	}
	if j == nil || j.last != from {
		return &snapshotError{Offset: int64(frameHeader), Err: errGap}
	}
	if err := x.checkRecords(j, records, data); err != nil {
		return err
	}
	cuts := x.cuts
	x.journal = nil // the records are noted as they are
	for len(records) > 0 {
		n := x.follow(j, records)
		for _, r := range records[:n] {
			j.buf = append(j.buf, r...)
			j.note(len(j.buf) - len(r))
		}
		records = records[n:]
	}
	x.follows = true
	if x.cuts == cuts {
		x.journal = j
	} else { // blocks of the leader are missing: no delta can be applied after this
		x.lead()
	}
	for _, p := range locations {
		if w := x.worker(p.id); w != nil && w.stream == nil {
			w.position = slices.Clone(p.position)
		}
	}
	return nil
}

// checkRecords checks all records before any is applied.
func (x *Index) checkRecords(j *journal, records [][]byte, data []byte) error {
	workers := make([]bool, len(x.workers), len(x.workers)+16)
	for i, w := range x.workers {
		workers[i] = w != nil
	}
	keys := make(map[Key]bool, len(x.byKey))
	for k := range x.byKey {
		keys[k] = true
	}
	byID := make(map[uint64]Key)
	var replaced uint64 // the worker that is being replaced, plus one
	at := int64(frameHeader)
	for _, r := range records {
		c := &cursor{data: r}
		op, id := c.byte(), c.uint(maxWorkers-1)
		if op == opAdd {
			i := slices.Index(workers, false)
			if i < 0 {
				i = len(workers)
				workers = append(workers, false)
			}
			k, tier := Key{c.string(), uint32(c.uint(math.MaxUint32))}, c.byte()
			c.check(replaced == 0 && uint64(i) == id && !keys[k] && tier <= kvevent.NumTiers && c.left() == 0)
			workers[i], keys[k], byID[id] = true, true, k
		} else if c.check(id < uint64(len(workers)) && workers[id]) {
			switch op {
			case opEvent:
				_, ok := j.event(c)
				c.check(ok)
			case opFlags:
				c.flags()
			case opRemove:
				workers[id] = false
				if k, ok := byID[id]; ok {
					delete(keys, k)
				} else {
					delete(keys, x.workers[id].key)
				}
				delete(byID, id)
			case opState:
				c.check(c.byte() <= byte(Exact))
				c.string()
			case opAttach:
				c.uint(maxWorkers - 1)
				c.check(c.byte() <= 1)
			case opExpired:
				c.uint(math.MaxInt32)
			case opReplace:
				c.check(replaced == 0)
				replaced = id + 1
			case opDone:
				c.check(replaced == id+1)
				replaced = 0
			case opRestore:
				y, err := loadKind(c.bytes(uint64(c.left())), kindWorker, &x.opt, 0)
				c.check(err == nil && y.block == x.block)
			default:
				c.fail(errMalformed)
			}
			c.check(c.left() == 0 && (replaced == 0 || op == opReplace || op == opFlags || replaced == id+1 && op == opEvent))
		}
		if c.err != nil {
			return &snapshotError{Offset: at, Err: c.err.Err}
		}
		at += int64(len(r))
	}
	if replaced != 0 {
		return &snapshotError{Offset: int64(len(data) - frameChecksum), Err: errMalformed}
	}
	return nil
}

// event reads the event of a record. The result is valid until the next call.
func (j *journal) event(c *cursor) (*kvevent.Event, bool) {
	if j.dec == nil {
		j.dec = kvevent.NewDecoder(kvevent.Compact, &kvevent.DecoderOptions{MaxTokens: math.MaxInt})
	}
	b, err := j.dec.Append(nil, c.bytes(uint64(c.left())))
	if err != nil || len(b) != 1 || len(b[0].Events) != 1 || b[0].Damaged {
		return nil, false
	}
	return &b[0].Events[0], true
}

// follow applies the first record and those that belong to it, which must have been checked, and returns their number.
func (x *Index) follow(j *journal, records [][]byte) int {
	c := &cursor{data: records[0]}
	op, id := c.byte(), WorkerID(c.uint(maxWorkers))
	if op == opAdd {
		k := Key{c.string(), uint32(c.uint(math.MaxUint32))}
		x.enter(k, kvevent.Tier(c.byte()))
		return 1
	}
	w := x.worker(id)
	w.touch()
	n := 1
	switch op {
	case opEvent:
		ev, _ := j.event(c)
		x.apply(id, w, ev)
	case opFlags:
		f := c.flags()
		f.full = f.full || w.full // of this index
		w.setFlags(f)
	case opRemove:
		x.leave(id, w)
		return 1
	case opState:
		w.hasState, w.state, w.why = true, State(c.byte()), c.string()
	case opAttach:
		x.join(id, WorkerID(c.uint(maxWorkers)), c.byte() != 0)
	case opExpired:
		for n := c.uint(math.MaxInt32); n > 0 && w.orphans.oldest != nil; n-- {
			w.orphans.unlink(w.orphans.oldest)
		}
		w.unknown = true
	case opReplace:
		x.clear(id, w)
		x.hide(w, func() {
			for records[n][0] != opDone {
				x.follow(j, records[n:])
				n++
			}
		})
		n++
	case opRestore:
		y, err := loadKind(c.bytes(uint64(c.left())), kindWorker, &x.opt, 0)
		if err == nil {
			x.clear(id, w)
			x.hide(w, func() { x.graft(w, y) })
		}
	}
	x.publish(id, w)
	return n
}

// renew begins a new history; from distinguishes it from the previous one.
func (j *journal) renew(from uint64) {
	j.buf, j.marks = nil, nil
	j.first = version{0, from}
	j.last = j.first
}

// sum returns the sum of the version after count changes, which is in the journal.
func (j *journal) sum(count uint64) uint64 {
	if count == j.first.Count {
		return j.first.Sum
	}
	return j.marks[count-j.first.Count-1].sum
}

// lead ends following, so that the index drops expired orphans again.
func (x *Index) lead() {
	if x.follows {
		x.follows = false
		x.due.Store(math.MinInt64)
	}
}

// begin begins a record if the index has a journal.
func (x *Index) begin(op byte, id WorkerID) (at int, j *journal) {
	j = x.journal
	x.lead()
	if j.max == 0 {
		x.journal = nil // from now on the history is the index's own, without followers
		return 0, nil
	}
	at = len(j.buf)
	j.buf = appendUint(append(j.buf, op), uint64(id))
	return at, j
}

// note ends the record that begins at offset at, and drops old records if the journal is too large.
func (j *journal) note(at int) {
	j.last = version{j.last.Count + 1, xxh3.HashSeed(j.buf[at:], j.last.Sum)}
	j.marks = append(j.marks, mark{len(j.buf), j.last.Sum})
	if len(j.buf)+markSize*len(j.marks) <= j.max {
		return
	}
	// Drop half of the journal at a time, so that the amortized cost of moving the rest is small.
	n := 0
	for n < len(j.marks) && len(j.buf)-j.marks[n].end+markSize*(len(j.marks)-n-1) > j.max/2 {
		n++
	}
	n = min(n+1, len(j.marks))
	cut := j.marks[n-1].end
	j.first = version{j.first.Count + uint64(n), j.marks[n-1].sum}
	j.buf = append(j.buf[:0], j.buf[cut:]...)
	if cap(j.buf) > 2*j.max {
		j.buf = slices.Clone(j.buf)
	}
	j.marks = append(j.marks[:0], j.marks[n:]...)
	for i := range j.marks {
		j.marks[i].end -= cut
	}
}

// discard discards the journal, so followers need a snapshot.
func (j *journal) discard() {
	j.buf, j.marks, j.first = j.buf[:0], j.marks[:0], j.last
}

// applyNoted applies an event and records what it changed for the worker and for the store that holds the blocks.
func (x *Index) applyNoted(id WorkerID, w *worker, ev *kvevent.Event) Result {
	in, holder := x.holder(id, w, ev)
	before, held, cuts, waiting := w.flags(), holder.flags(), x.cuts, holder.orphans.blocks
	res := x.apply(id, w, ev)
	grown := before.ratio != 0 && w.ratio != before.ratio && ev.Kind == kvevent.Stored
	if grown || res.Stored+res.Removed+res.Pending > 0 || res.Known > 0 && ev.Attention != kvevent.FullAttention || ev.Kind == kvevent.Cleared && ev.Tier <= kvevent.NumTiers {
		at, j := x.begin(opEvent, id)
		if j == nil {
			return res
		}
		j.one[0] = x.plain(w, ev, waiting+res.Pending == 0 && x.cuts == cuts)
		j.buf = kvevent.AppendBatch(j.buf, &kvevent.Batch{Events: j.one[:]})
		j.one[0] = kvevent.Event{}
		j.note(at)
	}
	if f := w.flags(); f != before {
		x.noteFlags(id, f)
	}
	if f := holder.flags(); holder != w && f != held {
		x.noteFlags(in, f)
	}
	if x.cuts != cuts && x.journal != nil {
		x.journal.discard()
	}
	return res
}

// plain returns the event just applied, with hashes instead of tokens and objects. placed reports that exactly these
// blocks were stored: x.seqs has their sequence hashes, which often equal the engine hashes.
func (x *Index) plain(w *worker, ev *kvevent.Event, placed bool) kvevent.Event {
	e := kvevent.Event{
		Kind: ev.Kind, Tier: ev.Tier, Attention: ev.Attention, Group: ev.Group,
		BlockHashes: ev.BlockHashes, Parent: ev.Parent, HasParent: ev.HasParent, Owner: ev.Owner,
	}
	if ev.Kind != kvevent.Stored {
		return e
	}
	e.BlockSize, e.Window = ev.BlockSize, ev.Window
	if ev.Attention != kvevent.FullAttention {
		return e // only its hashes count
	}
	ratio := int(max(w.ratio, 1))
	whole := func(chain []uint64) []uint64 {
		n := min(len(ev.BlockHashes), len(chain)/ratio)
		e.BlockHashes = ev.BlockHashes[:n]
		return chain[:n*ratio]
	}
	switch {
	case len(ev.SequenceHashes) > 0:
		e.SequenceHashes = whole(ev.SequenceHashes)
	case !x.opt.Scheme.HasLocal(): // the engine's names are the chain, if there are tokens for them
		if n := min(len(ev.BlockHashes), len(ev.TokenIDs)/x.block); n > 0 {
			e.SequenceHashes = whole(ev.BlockHashes[:n])
		}
	case len(ev.LocalHashes) > 0:
		e.LocalHashes = whole(ev.LocalHashes)
	case len(ev.TokenIDs) > 0:
		e.LocalHashes = whole(x.locals)
	}
	if placed && len(e.LocalHashes) > 0 {
		e.LocalHashes, e.SequenceHashes = nil, x.seqs
	}
	return e
}

func (x *Index) noteFlags(id WorkerID, f flags) {
	if x.journal == nil {
		return // dropped by a change that was just recorded
	}
	if at, j := x.begin(opFlags, id); j != nil {
		j.buf = appendFlags(j.buf, f)
		j.note(at)
	}
}

func (x *Index) noteWorker(op byte, id WorkerID) {
	if at, j := x.begin(op, id); j != nil {
		j.note(at)
	}
}

func (x *Index) noteAdd(id WorkerID, w *worker) {
	if at, j := x.begin(opAdd, id); j != nil {
		j.buf = append(appendUint(appendString(j.buf, w.key.Instance), uint64(w.key.DPRank)), byte(w.store))
		j.note(at)
	}
}

func (x *Index) noteState(id WorkerID, t State, why string) {
	if at, j := x.begin(opState, id); j != nil {
		j.buf = appendString(append(j.buf, byte(t)), why)
		j.note(at)
	}
}

func (x *Index) noteAttach(id, store WorkerID, on bool) {
	if at, j := x.begin(opAttach, id); j != nil {
		j.buf = append(appendUint(j.buf, uint64(store)), bit(on, 0))
		j.note(at)
	}
}

func (x *Index) noteExpired(id WorkerID, n int) {
	if at, j := x.begin(opExpired, id); j != nil {
		j.buf = appendUint(j.buf, uint64(n))
		j.note(at)
	}
}

func (x *Index) noteReplace(id WorkerID, begin bool) {
	op := byte(opDone)
	if begin {
		op = opReplace
	}
	x.noteWorker(op, id)
}

func (x *Index) noteRestore(id WorkerID, data []byte) {
	if at, j := x.begin(opRestore, id); j != nil {
		j.buf = append(j.buf, data...)
		j.note(at)
	}
}
