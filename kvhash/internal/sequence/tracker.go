// SPDX-License-Identifier: Apache-2.0

// Package sequence puts the batches of one rank in order: it drops duplicates, holds batches that arrive early, detects
// gaps and restarts, and reports what to fetch. Package index exports it as Stream.
package sequence

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"
	"unsafe"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Need specifies what a [Tracker] waits for.
type Need uint8

// The needs.
const (
	None     Need = iota // nothing is missing
	Replay               // a replay of the batches from a sequence number on
	Snapshot             // the whole state, because the replay did not fill the gap
)

// Options configure a [Tracker].
type Options struct {
	// First is the number of an engine's first batch: 0 for most, 1 for Dynamo's events.
	First uint64
	// MaxHeld is the maximum number of batches that are held while earlier ones are missing; 0 means 1024. If there are
	// more, the oldest is dropped and must be part of the replay or the snapshot.
	MaxHeld int
	// MaxHeldBytes is the maximum size of those batches in bytes; 0 means 64 MiB. If it is exceeded, the oldest is
	// dropped.
	MaxHeldBytes int
	// MaxSalted is the maximum number of blocks whose namespace is stored, if the engine reports it only with the first
	// block of a prompt; 0 means 262,144. If there are more, the state is Degraded, because blocks that follow an
	// omitted block have no namespace.
	MaxSalted int
	// Window limits how far a sequence number may fall back and still be treated as a duplicate; 0 means 1024. Further
	// back, or back to First, it is a restart of the engine, unless the first batch arrives again with its time. Within
	// it, a number means a restart if the time is later than the time of the highest number, or, for batches without
	// times, if another of the last 1024 batches had the number.
	Window uint64
	// Copies specifies that the engine reports every copy of a block; see StreamOptions of package index.
	Copies bool
}

// Tracker tracks the batches of one rank.
//
//	            Seq == next: deliver                        replay fills the gap: deliver it and what was held
//	  +------+ ----------------------> live <------------------------------------------------+
//	  | new  |                          |  Seq > next: hold                                  |
//	  +------+ ----------------------> gap, need Replay --- FinishReplay, still a gap --> stale, need Snapshot
//	                                                          Replace, Restore or Skip: live ---+
//	any: Seq fell back  =>  deliver a batch with one Cleared event, then start again from new
//
// A batch that clears the whole rank makes up for all that is missing before it, except for changes of shared stores
// ([kvevent.Event.Owner]), which are not noticed. Events that inherit the namespace of the previous block
// ([kvevent.Event.RootNamespace]) get it here, where they are in order.
//
// All batches are of the rank that the first one is of: one of another rank or worker is dropped, with its number, and the state is Degraded
// until [Tracker.Reset].
//
// The zero value is ready for use with default options. A Tracker reads no clock; a caller that stops waiting calls FinishReplay or
// Skip. It is not safe for concurrent use.
type Tracker struct {
	opt       Options
	why       string // of the last Reset
	seen      bool
	stale     bool            // the replay did not fill the gap
	again     bool            // a replay that was requested before a restart may be running
	ranked    bool            // worker and rank are known
	mixed     bool            // batches of other ranks were received
	lost      bool            // batches were skipped or damaged, and the state was not replaced since
	next      uint64          // first batch not delivered
	end       uint64          // one beyond the highest sequence number known, from a batch or a snapshot; next <= end
	received  uint64          // one beyond the highest batch received that has a time; received <= end
	time      time.Time       // of that batch
	before    time.Time       // of the last batch before the last restart; zero if absent
	first     time.Time       // of the first batch since
	held      []kvevent.Batch // ascending, next < held[i].Seq < end
	bytes     int             // of held
	salted    namespaces
	copies    copies
	lostFrom  uint64 // valid if lost
	lostTo    uint64
	worker    uint64 // valid if ranked
	rank      uint32
	checksums []sum // by number modulo maxChecksums; nil while batches have times
}

// New returns a Tracker that expects an engine's first batch. nil options mean the defaults.
func New(o *Options) *Tracker {
	in := new(Tracker)
	if o != nil {
		in.opt = *o
	}
	in.next, in.end = in.opt.First, in.opt.First
	return in
}

// Append adds the next batch of the live stream and appends the batches to apply now to dst, in order. They share
// memory with b, and Append may set the namespaces of b's events; batches that are held are copied. After a restart of
// the engine, the first of them clears the rank.
func (in *Tracker) Append(dst []kvevent.Batch, b kvevent.Batch) []kvevent.Batch {
	if !in.ours(&b) {
		return dst
	}
	if in.restarted(&b) {
		dst = in.reset(dst, b)
	} else if b.Damaged && b.Seq < in.next {
		in.spoil(b.Seq) // it cannot be determined whether it is a duplicate or from another run
	}
	in.record(&b)
	return in.take(dst, b)
}

// Reset resets the Tracker to its initial state and appends a batch that clears the rank to dst. The next batch should
// be the first one. why is the reason that [Tracker.State] returns until then.
func (in *Tracker) Reset(dst []kvevent.Batch, why string) []kvevent.Batch {
	dst = in.reset(dst, kvevent.Batch{Worker: in.worker, DPRank: in.rank})
	in.ranked, in.mixed, in.why = false, false, why
	return dst
}

// Forget is like Reset for an engine that was not restarted: batches that were delivered before are delivered again.
func (in *Tracker) Forget(dst []kvevent.Batch, why string) []kvevent.Batch {
	dst = in.Reset(dst, why)
	in.before, in.again = time.Time{}, false
	return dst
}

// reset clears the rank that sent b.
func (in *Tracker) reset(dst []kvevent.Batch, b kvevent.Batch) []kvevent.Batch {
	before := in.time
	if before.IsZero() {
		before = in.before
	}
	if !b.Time.IsZero() && !b.Time.After(before) {
		before = time.Time{} // the clock was set back: it no longer identifies restarts
	}
	*in = Tracker{opt: in.opt, next: in.opt.First, end: in.opt.First, before: before, again: in.again || in.replaying(),
		ranked: in.ranked, worker: in.worker, rank: in.rank, mixed: in.mixed}
	return append(dst, kvevent.Batch{Worker: b.Worker, DPRank: b.DPRank, Time: b.Time, Events: []kvevent.Event{{Kind: kvevent.Cleared}}})
}

// AppendReplay takes a batch of a replay and appends to dst the batches to apply now, in order. Batches that were delivered before are
// dropped, and those that are not later than the last one before a restart, or earlier than the first one since, or than the one with
// the highest number although theirs is higher. One that is later, by 5 s or more, than the live batch with the highest number shows that
// the engine was restarted: the rank is cleared. Call [Tracker.FinishReplay] at the end of the replay.
func (in *Tracker) AppendReplay(dst []kvevent.Batch, b kvevent.Batch) []kvevent.Batch {
	if !in.ours(&b) {
		return dst
	}
	if !b.Time.IsZero() && (!in.before.IsZero() && !b.Time.After(in.before) || b.Seq > in.opt.First && b.Time.Before(in.first) ||
		b.Seq >= in.received && b.Time.Before(in.time)) {
		return dst // from an earlier run; or the clock was set back, and the live stream will bring it
	}
	if in.reborn(&b, restartTime) {
		dst = in.reset(dst, b)
		in.again = true
	}
	return in.take(dst, b)
}

// ours reports whether b is a batch of this rank.
func (in *Tracker) ours(b *kvevent.Batch) bool {
	if b.Seq == kvevent.EndOfReplay {
		return false
	}
	if b.Damaged {
		return true // its rank may be missing
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

// FinishReplay ends a replay that completed, was refused or timed out. If batches are still missing, a snapshot is needed.
func (in *Tracker) FinishReplay() {
	in.stale = in.next < in.end && !in.again
	in.again = false
}

// Replace notes that the rank's state was replaced as a whole by one that has the batches up to and including seq. It appends to dst the
// batches to apply on top of it. Events are those the state was made of, if there are any: their namespaces are remembered, and
// copies counted.
func (in *Tracker) Replace(dst []kvevent.Batch, seq uint64, events ...kvevent.Event) []kvevent.Batch {
	in.seen, in.stale, in.lost = true, false, false
	in.salted, in.copies = namespaces{}, copies{}
	if in.opt.Copies {
		in.copies.see(&kvevent.Batch{Events: events})
	}
	for i := range events {
		if events[i].Kind == kvevent.Stored {
			in.salted.note(&events[i], in.maxSalted())
		}
	}
	in.next = min(seq, kvevent.EndOfReplay-1) + 1
	in.end = max(in.end, in.next)
	in.dropHeld()
	return in.drain(dst)
}

// Skip stops waiting: it appends the held batches to dst and continues from there in state Degraded, until a snapshot, or an event that
// clears the whole rank.
func (in *Tracker) Skip(dst []kvevent.Batch) []kvevent.Batch {
	for _, b := range in.held {
		in.abandon(b.Seq)
		in.next = b.Seq + 1
		dst = in.deliver(dst, b)
	}
	in.abandon(in.end)
	in.stale = false
	in.next = in.end
	in.held, in.bytes = slices.Delete(in.held, 0, len(in.held)), 0
	return dst
}

// abandon skips the batches from next up to but not including seq, if any.
func (in *Tracker) abandon(seq uint64) {
	if in.next == seq {
		return
	}
	in.spoil(in.next)
	in.spoil(seq - 1)
}

// Need returns what is missing now, and the number of the first missing batch. It stays the same until a call brings it, so a caller
// that requested a replay has to remember that. What was skipped, or arrived damaged, is not requested again; [Tracker.Replace] makes up
// for it at any time.
func (in *Tracker) Need() (n Need, from uint64) {
	switch {
	case in.next == in.end:
		return None, 0
	case in.stale:
		return Snapshot, in.next
	}
	return Replay, in.next
}

// replaying reports whether a replay was requested, and may be running.
func (in *Tracker) replaying() bool {
	n, _ := in.Need()
	return n == Replay
}

// State returns the state of the rank, and the reason if it is not Exact.
func (in *Tracker) State() (s State, why string) {
	switch {
	case !in.seen:
		return Unknown, cmp.Or(in.why, "no events yet")
	case in.next < in.end:
		return Degraded, fmt.Sprintf("batch %d is missing", in.next)
	case in.mixed:
		return Degraded, "batches of another rank came in"
	case in.lost:
		if in.lostFrom == in.lostTo {
			return Degraded, fmt.Sprintf("batch %d was lost or unreadable", in.lostFrom)
		}
		return Degraded, fmt.Sprintf("some of the batches %d to %d were lost or unreadable", in.lostFrom, in.lostTo)
	case in.salted.full:
		return Degraded, "the namespaces of some prompts were not kept"
	}
	return Exact, ""
}

// restarted reports whether b, from the live stream, begins another run of the engine. A publisher keeps order, so a
// number that falls back is either a repetition of an old batch or a restart; a later time distinguishes them.
func (in *Tracker) restarted(b *kvevent.Batch) bool {
	if b.Seq >= in.end || b.Damaged && b.Time.IsZero() { // its rank may be unknown; the next batch shows whether there was a restart
		return false
	}
	last := in.end - 1
	again := !b.Time.IsZero() && b.Time.Equal(in.first)
	return in.reborn(b, 1) || b.Seq == in.opt.First && last > b.Seq && !again || last-b.Seq > cmp.Or(in.opt.Window, 1024) || in.differs(b)
}

// sum is the checksum of a batch of the live stream without a time, enough to distinguish it from another one.
type sum struct {
	seq uint64
	of  uint32 // 0 for unknown
}

const maxChecksums = 1024

// record stores the checksum of a batch, unless the batch has a time or is incomplete.
func (in *Tracker) record(b *kvevent.Batch) {
	if !b.Time.IsZero() || b.Damaged {
		return
	}
	in.note(b.Seq, checksum(b))
}

func (in *Tracker) note(seq uint64, of uint32) {
	if in.checksums == nil {
		in.checksums = make([]sum, maxChecksums)
	}
	in.checksums[seq%maxChecksums] = sum{seq, of}
}

// differs reports whether b differs from the previous batch with its number.
func (in *Tracker) differs(b *kvevent.Batch) bool {
	if !b.Time.IsZero() || b.Damaged || in.checksums == nil {
		return false
	}
	s := in.checksums[b.Seq%maxChecksums]
	return s.of != 0 && s.seq == b.Seq && s.of != checksum(b)
}

// restartTime is less than the time that an engine takes to start, and more than a typical clock adjustment.
const restartTime = 5 * time.Second

// reborn reports whether b is later in time, by at least the given time, than the batch with the highest number that
// was received with a time; a damaged batch has none. The live stream may lag a snapshot: a number that is received for
// the first time is not a repetition, regardless of its time.
func (in *Tracker) reborn(b *kvevent.Batch, by time.Duration) bool {
	return b.Seq < in.received && !b.Time.IsZero() && b.Time.Sub(in.time) >= by
}

// take delivers b if it is the next batch, holds it if it is early, and drops it if it is late.
func (in *Tracker) take(dst []kvevent.Batch, b kvevent.Batch) []kvevent.Batch {
	in.seen = true
	in.end = max(in.end, b.Seq+1)
	if b.Seq == in.opt.First {
		in.first = b.Time
	}
	if b.Seq >= in.received && !b.Time.IsZero() {
		in.received, in.time = b.Seq+1, b.Time
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
	i, found := slices.BinarySearchFunc(in.held, b.Seq, func(h kvevent.Batch, seq uint64) int { return cmp.Compare(h.Seq, seq) })
	if found {
		return dst
	}
	in.held = slices.Insert(in.held, i, b.Clone())
	in.bytes += size(&in.held[i])
	n := 0
	for len(in.held)-n > cmp.Or(in.opt.MaxHeld, 1024) || in.bytes > cmp.Or(in.opt.MaxHeldBytes, 64<<20) {
		in.bytes -= size(&in.held[n])
		n++
	}
	in.held = slices.Delete(in.held, 0, n)
	return dst
}

// dropHeld drops the held batches before the next one.
func (in *Tracker) dropHeld() {
	n := 0
	for n < len(in.held) && in.held[n].Seq < in.next {
		in.bytes -= size(&in.held[n])
		n++
	}
	in.held = slices.Delete(in.held, 0, n)
}

// drain delivers held batches as long as none is missing.
func (in *Tracker) drain(dst []kvevent.Batch) []kvevent.Batch {
	n := 0
	for n < len(in.held) && in.held[n].Seq == in.next {
		in.bytes -= size(&in.held[n]) // before its namespaces are set
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
func (in *Tracker) deliver(dst []kvevent.Batch, b kvevent.Batch) []kvevent.Batch {
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
		in.spoil(b.Seq) // events are missing, at an unknown position in the batch
	}
	return append(dst, b)
}

// spoil records that a batch, or part of it, was lost. The numbers of copies are then unknown.
func (in *Tracker) spoil(seq uint64) {
	in.copies = copies{}
	if !in.lost {
		in.lost, in.lostFrom, in.lostTo = true, seq, seq
	}
	in.lostFrom, in.lostTo = min(in.lostFrom, seq), max(in.lostTo, seq)
}

func (in *Tracker) maxSalted() int { return cmp.Or(in.opt.MaxSalted, 1<<18) }

// clears reports whether the batch empties the whole rank.
func clears(b *kvevent.Batch) bool {
	for i := range b.Events {
		if clearsAll(&b.Events[i]) {
			return true
		}
	}
	return false
}

// clearsAll reports whether the event clears the whole rank: not one tier, a store, or the caches of another kind of attention.
func clearsAll(e *kvevent.Event) bool {
	return e.Kind == kvevent.Cleared && e.Tier == kvevent.AnyTier && e.Owner == "" && e.Attention == kvevent.FullAttention
}

// clearsTier reports whether the event clears one tier of the rank.
func clearsTier(e *kvevent.Event) bool {
	return e.Kind == kvevent.Cleared && e.Tier != kvevent.AnyTier && e.Owner == "" && e.Attention == kvevent.FullAttention
}

// checksum returns a checksum, not 0, of the blocks of a batch. It does not depend on earlier input of the decoder,
// unlike a change of level or a removal of TensorRT-LLM.
func checksum(b *kvevent.Batch) uint32 {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(odd)
	add := func(v uint64) { h = bits.RotateLeft64((h^v)*odd, 29) }
	var before []uint64
	for i := range b.Events {
		e := &b.Events[i]
		known := e.Kind == kvevent.Stored && len(e.TokenIDs)+len(e.LocalHashes)+len(e.SequenceHashes) == 0 // a copy to another tier
		if again := i > 0 && slices.Equal(e.BlockHashes, before); !known && !(again && e.Kind == kvevent.Removed) {
			add(uint64(e.Kind)<<1 | uint64(b2i(e.HasParent)))
			add(e.Parent)
			for _, v := range e.BlockHashes {
				add(v)
			}
		}
		before = e.BlockHashes
	}
	return uint32(h>>32) | 1
}

// size returns the approximate memory of a batch, in bytes.
func size(b *kvevent.Batch) int {
	n := int(unsafe.Sizeof(*b))
	for i := range b.Events {
		e := &b.Events[i]
		n += int(unsafe.Sizeof(*e)) + 8*(len(e.BlockHashes)+len(e.LocalHashes)+len(e.SequenceHashes)) + 4*len(e.TokenIDs) + len(e.LoRA) +
			len(e.Namespace) + len(e.Owner)
		for _, o := range e.Objects {
			n += 24 + 8*len(o)
		}
	}
	return n
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
