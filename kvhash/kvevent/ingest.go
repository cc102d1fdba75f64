// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// NeedKind says what is missing.
type NeedKind uint8

// The kinds of need.
const (
	// Nothing is missing.
	Nothing NeedKind = iota
	// ReplayFrom asks for the batches from Need.Seq on, from the engine's replay buffer: [Ingest.Replay].
	ReplayFrom
	// Snapshot asks for the whole state of the rank: [Ingest.Snapshot]. Where there is no source for one, call [Ingest.GiveUp].
	Snapshot
)

// Need says what an [Ingest] waits for.
type Need struct {
	Kind NeedKind
	Seq  uint64 // first missing batch
}

// IngestOptions says how an engine publishes, and bounds an [Ingest].
type IngestOptions struct {
	// First is the number of the first batch of a life of the engine: 0 for most, 1 for Dynamo's events.
	First uint64
	// MaxHeld is how many batches are kept while earlier ones are missing; 0 means 1024. Beyond it the oldest is dropped and
	// will have to come with the replay or the snapshot.
	MaxHeld int
	// MaxHeldBytes is how many bytes the events of those batches may take; 0 means 64 MiB. Beyond it, too, the oldest is dropped.
	MaxHeldBytes int
	// MaxSalted is for how many blocks it is remembered in which namespace they are, if the engine says so only with the first block
	// of a prompt; 0 means 262,144. Beyond it, trust is Degraded: what continues a forgotten prompt gets no namespace.
	MaxSalted int
	// Window is how far a sequence number may fall back and still be taken for a duplicate; 0 means 1024. Further back, or back to First, it is
	// a restart of the engine, but not when the first batch comes again with its time. Nearer, it is one if the time is later than that of the
	// highest number; and where batches carry no time, among the last 1024, if another batch had the number.
	Window uint64
	// Copies says that the engine tells of every copy of a block. vLLM does, as of November 2026: requests that compute the same prompt at the
	// same time, or one whose last block must be computed again, leave copies, each with a Stored of its own and a Removed when it is evicted.
	// With Copies a block goes with the last of them, as in Dynamo and llm-d; without it with the first, and what the engine still finds
	// is missed. An engine that says Removed only with the last copy must not be counted: its blocks would stay.
	//
	// It takes 25 to 40 bytes for each block that the engine holds, and 0.1 to 0.2 µs for each block of an event. Batches that were lost, and
	// a state that was restored, begin the count anew: of a block that had copies then, the first Removed counts. Blocks of shared
	// stores are not counted.
	Copies bool
}

// Ingest follows the sequence of batches of one rank.
//
//	            Seq == next: deliver                        replay fills the gap: deliver it and what was held
//	  +------+ ----------------------> live <------------------------------------------------+
//	  | new  |                          |  Seq > next: hold                                  |
//	  +------+ ----------------------> gap, Need ReplayFrom --- ReplayDone, still a gap --> stale, Need Snapshot
//	                                                             Snapshot or GiveUp: live ---+
//	any: Seq fell back  =>  deliver a batch with one Cleared event, then start again from new
//
// A batch that clears the whole rank makes up for all that is missing before it, but for what that said of shared stores ([Event.Owner]),
// which is not noticed. Events whose namespace the engine leaves to the block before ([Event.RootNamespace]) get it here, where they are
// in order.
//
// All batches are of the rank that the first one is of: one of another rank or worker is dropped, with its number, and trust is Degraded
// until [Ingest.Reset]. Who reads several ranks from one place keeps an Ingest for each [Batch.Worker] and [Batch.DPRank].
//
// Not every change comes as a batch: an engine that sleeps, or was replaced while nobody listened and has counted past the last number
// that came, says nothing. Who learns of it otherwise calls [Ingest.Reset].
//
// The zero value is ready for use with default options. An Ingest reads no clock; a caller that tires of waiting calls ReplayDone or
// GiveUp. One goroutine at a time.
type Ingest struct {
	opt      IngestOptions
	seen     bool
	stale    bool      // the replay did not help
	again    bool      // a replay may be running that was asked for before a restart
	ranked   bool      // worker and rank are known
	mixed    bool      // there were batches of others
	lost     bool      // batches were given up, and nothing has made up for them
	next     uint64    // first batch not delivered
	end      uint64    // one beyond the highest sequence number known, from a batch or a snapshot; next <= end
	heard    uint64    // one beyond the highest batch seen that says its time; heard <= end
	time     time.Time // of that batch
	before   time.Time // of the last batch heard in the life before; zero in the first one
	first    time.Time // of the first batch of this life
	held     []Batch   // ascending, next < held[i].Seq < end
	bytes    int       // of held
	salted   namespaces
	copies   copies
	lostFrom uint64 // valid if lost
	lostTo   uint64
	worker   uint64 // valid if ranked
	rank     uint32
	sums     []sum // by number modulo maxSums; nil while batches carry times
}

// NewIngest returns an Ingest that expects the first batch of a life. nil options mean the defaults.
func NewIngest(o *IngestOptions) *Ingest {
	in := new(Ingest)
	if o != nil {
		in.opt = *o
	}
	in.next, in.end = in.opt.First, in.opt.First
	return in
}

// Push takes the next batch from the live stream and appends to dst the batches to apply now, in order. They share memory with b, whose
// events' namespaces may be set; what is held for later is copied. After a restart of the engine the first of them clears the rank.
func (in *Ingest) Push(dst []Batch, b Batch) []Batch {
	if !in.ours(&b) {
		return dst
	}
	if in.restarted(&b) {
		dst = in.reset(dst, b)
	} else if b.Damaged && b.Seq < in.next {
		in.spoil(b.Seq) // what it repeats, or that it is of another life, cannot be read
	}
	in.remember(&b)
	return in.take(dst, b)
}

// Reset forgets all and appends to dst a batch that clears the rank: the engine was restarted, or emptied its cache without a word. The
// next batch is expected to be the first one.
func (in *Ingest) Reset(dst []Batch) []Batch {
	dst = in.reset(dst, Batch{Worker: in.worker, DPRank: in.rank})
	in.ranked, in.mixed = false, false
	return dst
}

// reset clears the rank of which b is a batch.
func (in *Ingest) reset(dst []Batch, b Batch) []Batch {
	before := in.time
	if before.IsZero() {
		before = in.before
	}
	if !b.Time.IsZero() && !b.Time.After(before) {
		before = time.Time{} // the clock was set back: it tells lives apart no longer
	}
	*in = Ingest{opt: in.opt, next: in.opt.First, end: in.opt.First, before: before, again: in.again || in.Need().Kind == ReplayFrom,
		ranked: in.ranked, worker: in.worker, rank: in.rank, mixed: in.mixed}
	return append(dst, Batch{Worker: b.Worker, DPRank: b.DPRank, Time: b.Time, Events: []Event{{Kind: Cleared}}})
}

// Replay takes one batch of the answer to a replay request and appends to dst the batches to apply now, in order. Batches that were
// delivered before are dropped, and those that are no later than the last one heard before a restart, or earlier than the first one of this
// life, or than the one of the highest number that was heard although theirs is higher. One that is later in time, by 5 s or more, than the
// live batch of the highest number is of another life of the engine: the rank is cleared. Call [Ingest.ReplayDone] at the end of the
// answer.
func (in *Ingest) Replay(dst []Batch, b Batch) []Batch {
	if !in.ours(&b) {
		return dst
	}
	if !b.Time.IsZero() && (!in.before.IsZero() && !b.Time.After(in.before) || b.Seq > in.opt.First && b.Time.Before(in.first) ||
		b.Seq >= in.heard && b.Time.Before(in.time)) {
		return dst // of a life before; or the clock was set back, and the live stream will bring it
	}
	if in.reborn(&b, restartTime) {
		dst = in.reset(dst, b)
		in.again = true
	}
	return in.take(dst, b)
}

// ours reports whether b is a batch, and of this rank.
func (in *Ingest) ours(b *Batch) bool {
	if b.Seq == EndOfReplay {
		return false
	}
	if b.Damaged {
		return true // it may have lost its rank
	}
	if !in.ranked {
		in.ranked, in.worker, in.rank = true, b.Worker, b.DPRank
	}
	if b.Worker != in.worker || b.DPRank != in.rank {
		in.mixed = true
		return false
	}
	return true
}

// ReplayDone says that the replay is over, refused or too slow. If batches are still missing, a snapshot is needed now.
func (in *Ingest) ReplayDone() {
	in.stale = in.next < in.end && !in.again
	in.again = false
}

// Snapshot says that the rank's state was replaced as a whole by one that holds the batches up to and including seq. It appends to
// dst the batches to apply on top of it. Events are those the state was made of, if there are any: their namespaces are remembered, and
// copies counted.
func (in *Ingest) Snapshot(dst []Batch, seq uint64, events ...Event) []Batch {
	in.seen, in.stale, in.lost = true, false, false
	in.salted, in.copies = namespaces{}, copies{}
	if in.opt.Copies {
		in.copies.see(&Batch{Events: events})
	}
	for i := range events {
		if events[i].Kind == Stored {
			in.salted.note(&events[i], in.maxSalted())
		}
	}
	in.next = min(seq, EndOfReplay-1) + 1
	in.end = max(in.end, in.next)
	in.dropHeld()
	return in.drain(dst)
}

// GiveUp stops waiting: it appends the held batches to dst and goes on from there with trust Degraded, until a snapshot, or
// an event that clears the whole rank.
func (in *Ingest) GiveUp(dst []Batch) []Batch {
	for _, b := range in.held {
		in.lose(b.Seq)
		in.next = b.Seq + 1
		dst = in.deliver(dst, b)
	}
	in.lose(in.end)
	in.stale = false
	in.next = in.end
	in.held, in.bytes = slices.Delete(in.held, 0, len(in.held)), 0
	return dst
}

// lose gives up the batches from next up to but not including seq, if there are any.
func (in *Ingest) lose(seq uint64) {
	if in.next == seq {
		return
	}
	in.spoil(in.next)
	in.spoil(seq - 1)
}

// Need returns what is missing now. It stays the same until a call brings it: who has asked for a replay remembers that. What was given
// up, or came damaged, is not asked for again; a [Ingest.Snapshot] makes up for it at any time.
func (in *Ingest) Need() Need {
	switch {
	case in.next == in.end:
		return Need{}
	case in.stale:
		return Need{Kind: Snapshot, Seq: in.next}
	}
	return Need{Kind: ReplayFrom, Seq: in.next}
}

// Trust returns how far the batches delivered so far can be believed, and why not fully.
func (in *Ingest) Trust() (t Trust, why string) {
	switch {
	case !in.seen:
		return Unknown, "no events yet"
	case in.next < in.end:
		return Degraded, fmt.Sprintf("batch %d is missing", in.next)
	case in.mixed:
		return Degraded, "batches of another rank came in"
	case in.lost:
		return Degraded, fmt.Sprintf("batches were lost between %d and %d", in.lostFrom, in.lostTo)
	case in.salted.full:
		return Degraded, "the namespaces of some prompts were not kept"
	}
	return Exact, ""
}

// restarted reports whether b, from the live stream, begins another life of the engine. A publisher keeps order, so a number that
// falls back is either a repetition of an old batch or a restart; a later time tells them apart.
func (in *Ingest) restarted(b *Batch) bool {
	if b.Seq >= in.end || b.Damaged && b.Time.IsZero() { // of what rank it is may not be known; the next one will show it
		return false
	}
	last := in.end - 1
	again := !b.Time.IsZero() && b.Time.Equal(in.first)
	return in.reborn(b, 1) || b.Seq == in.opt.First && last > b.Seq && !again || last-b.Seq > cmp.Or(in.opt.Window, 1024) || in.differs(b)
}

// sum is what is remembered of a batch of the live stream that carries no time: enough to tell it from another one.
type sum struct {
	seq uint64
	of  uint32 // 0 for unknown
}

const maxSums = 1024

// remember notes a batch, unless its time tells lives apart or it is not known as a whole.
func (in *Ingest) remember(b *Batch) {
	if !b.Time.IsZero() || b.Damaged {
		return
	}
	in.note(b.Seq, b.sum())
}

func (in *Ingest) note(seq uint64, of uint32) {
	if in.sums == nil {
		in.sums = make([]sum, maxSums)
	}
	in.sums[seq%maxSums] = sum{seq, of}
}

// differs reports whether b is not the batch that had its number before.
func (in *Ingest) differs(b *Batch) bool {
	if !b.Time.IsZero() || b.Damaged || in.sums == nil {
		return false
	}
	s := in.sums[b.Seq%maxSums]
	return s.of != 0 && s.seq == b.Seq && s.of != b.sum()
}

// restartTime is less than an engine takes to start, and more than a clock is set back.
const restartTime = 5 * time.Second

// reborn reports whether b is later in time, by at least the given time, than the batch of the highest number that was heard with its
// time: one that could not be read has none. The live stream may be behind a snapshot: what comes for the first time is no repetition,
// whatever its time.
func (in *Ingest) reborn(b *Batch, by time.Duration) bool {
	return b.Seq < in.heard && !b.Time.IsZero() && b.Time.Sub(in.time) >= by
}

// take delivers b if it is the next one, holds it if it is early, drops it if it is late.
func (in *Ingest) take(dst []Batch, b Batch) []Batch {
	in.seen = true
	in.end = max(in.end, b.Seq+1)
	if b.Seq == in.opt.First {
		in.first = b.Time
	}
	if b.Seq >= in.heard && !b.Time.IsZero() {
		in.heard, in.time = b.Seq+1, b.Time
	}
	switch {
	case b.Seq < in.next:
		return dst
	case b.Seq == in.next || clears(&b):
		in.stale = in.stale && b.Seq == in.next
		in.next = b.Seq + 1
		in.dropHeld()
		return in.drain(in.deliver(dst, b))
	}
	i, found := slices.BinarySearchFunc(in.held, b.Seq, func(h Batch, seq uint64) int { return cmp.Compare(h.Seq, seq) })
	if found {
		return dst
	}
	in.held = slices.Insert(in.held, i, b.Clone())
	in.bytes += in.held[i].size()
	n := 0
	for len(in.held)-n > cmp.Or(in.opt.MaxHeld, 1024) || in.bytes > cmp.Or(in.opt.MaxHeldBytes, 64<<20) {
		in.bytes -= in.held[n].size()
		n++
	}
	in.held = slices.Delete(in.held, 0, n)
	return dst
}

// dropHeld drops the held batches before the next one.
func (in *Ingest) dropHeld() {
	n := 0
	for n < len(in.held) && in.held[n].Seq < in.next {
		in.bytes -= in.held[n].size()
		n++
	}
	in.held = slices.Delete(in.held, 0, n)
}

// drain delivers held batches while they follow each other.
func (in *Ingest) drain(dst []Batch) []Batch {
	n := 0
	for n < len(in.held) && in.held[n].Seq == in.next {
		in.bytes -= in.held[n].size() // before its namespaces are set
		in.next++
		dst = in.deliver(dst, in.held[n])
		n++
	}
	in.held = slices.Delete(in.held, 0, n)
	if in.next == in.end {
		in.stale = false
	}
	return dst
}

// deliver appends b, the batch before in.next, to dst.
func (in *Ingest) deliver(dst []Batch, b Batch) []Batch {
	if in.opt.Copies {
		in.copies.see(&b)
	}
	for i := range b.Events {
		in.salted.see(&b.Events[i], in.maxSalted())
	}
	if clears(&b) {
		in.lost = false // an empty cache is known exactly
	}
	if b.Damaged {
		in.spoil(b.Seq) // what it lacks, wherever in the batch it was
	}
	return append(dst, b)
}

// spoil notes that a batch was lost, or some of it. How many copies there are is not known then.
func (in *Ingest) spoil(seq uint64) {
	in.copies = copies{}
	if !in.lost {
		in.lost, in.lostFrom, in.lostTo = true, seq, seq
	}
	in.lostFrom, in.lostTo = min(in.lostFrom, seq), max(in.lostTo, seq)
}

func (in *Ingest) maxSalted() int { return cmp.Or(in.opt.MaxSalted, 1<<18) }

// clears reports whether the batch says that the whole rank is empty.
func clears(b *Batch) bool {
	for i := range b.Events {
		if b.Events[i].clearsAll() {
			return true
		}
	}
	return false
}

// clearsAll reports whether the event says that the whole rank is empty: not a tier of it, a store, or the caches of another attention.
func (e *Event) clearsAll() bool {
	return e.Kind == Cleared && e.Tier == AnyTier && e.Owner == "" && e.Attention == FullAttention
}

// clearsTier reports whether the event says that one tier of the rank is empty.
func (e *Event) clearsTier() bool {
	return e.Kind == Cleared && e.Tier != AnyTier && e.Owner == "" && e.Attention == FullAttention
}
