// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"cmp"
	"fmt"
	"math"
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

// endMarker is the sequence number, -1, with which engines end a replay. It is no batch.
const endMarker = math.MaxUint64

// IngestOptions bounds an [Ingest].
type IngestOptions struct {
	// MaxHeld is how many batches are kept while earlier ones are missing; 0 means 1024. Beyond it the oldest is dropped and
	// will have to come with the replay or the snapshot.
	MaxHeld int
	// Window is how far a sequence number may fall back and still be taken for a duplicate, when batches carry no time; 0 means
	// 1024. Further back, or back to 0, it is a restart of the engine.
	Window uint64
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
// The zero value is ready for use with default options. An Ingest reads no clock; a caller that tires of waiting calls ReplayDone or
// GiveUp. One goroutine at a time.
type Ingest struct {
	opt      IngestOptions
	seen     bool
	stale    bool      // the replay did not help
	lost     bool      // batches were given up, and nothing has made up for them
	next     uint64    // first batch not delivered
	end      uint64    // one beyond the highest sequence number known, from a batch or a snapshot; next <= end
	heard    uint64    // one beyond the highest batch seen; heard <= end
	time     time.Time // of that batch
	held     []Batch   // ascending, next < held[i].Seq < end
	lostFrom uint64    // valid if lost
	lostTo   uint64
}

// NewIngest returns an Ingest that expects batch 0. nil options mean the defaults.
func NewIngest(o *IngestOptions) *Ingest {
	in := new(Ingest)
	if o != nil {
		in.opt = *o
	}
	return in
}

// Push takes the next batch from the live stream and appends to dst the batches to apply now, in order. They share memory with b;
// what is held for later is copied. After a restart of the engine the first of them clears the rank.
func (in *Ingest) Push(dst []Batch, b Batch) []Batch {
	if b.Seq == endMarker {
		return dst
	}
	if in.seen && in.restarted(&b) {
		*in = Ingest{opt: in.opt}
		dst = append(dst, Batch{DPRank: b.DPRank, Time: b.Time, Events: []Event{{Kind: Cleared}}})
	}
	return in.take(dst, b)
}

// Replay takes one batch of the answer to a replay request and appends to dst the batches to apply now, in order. Batches that were
// delivered before are dropped. Call [Ingest.ReplayDone] at the end of the answer.
func (in *Ingest) Replay(dst []Batch, b Batch) []Batch {
	if b.Seq == endMarker {
		return dst
	}
	return in.take(dst, b)
}

// ReplayDone says that the replay is over, refused or too slow. If batches are still missing, a snapshot is needed now.
func (in *Ingest) ReplayDone() { in.stale = in.next < in.end }

// Snapshot says that the rank's state was replaced as a whole by one that holds the batches up to and including seq. It appends to
// dst the batches to apply on top of it.
func (in *Ingest) Snapshot(dst []Batch, seq uint64) []Batch {
	in.seen, in.stale, in.lost = true, false, false
	in.next = min(seq, endMarker-1) + 1
	in.end = max(in.end, in.next)
	in.held = slices.DeleteFunc(in.held, func(b Batch) bool { return b.Seq < in.next })
	return in.drain(dst)
}

// GiveUp stops waiting: it appends the held batches to dst and goes on from there with trust Degraded, until a snapshot, or
// an event that clears the whole rank.
func (in *Ingest) GiveUp(dst []Batch) []Batch {
	for _, b := range in.held {
		in.lose(b.Seq)
		dst = in.deliver(dst, b)
		in.next = b.Seq + 1
	}
	in.lose(in.end)
	in.stale = false
	in.held = slices.Delete(in.held, 0, len(in.held))
	in.next = in.end
	return dst
}

// lose gives up the batches from next up to but not including seq, if there are any.
func (in *Ingest) lose(seq uint64) {
	if in.next == seq {
		return
	}
	if !in.lost {
		in.lost, in.lostFrom = true, in.next
	}
	in.lostTo = seq - 1
}

// Need returns what is missing now. It stays the same until a call brings it.
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
	case in.lost:
		return Degraded, fmt.Sprintf("batches were lost between %d and %d", in.lostFrom, in.lostTo)
	}
	return Exact, ""
}

// restarted reports whether b, from the live stream, begins another life of the engine. A publisher keeps order, so a number that
// falls back is either a repetition of an old batch or a restart; a later time tells them apart.
func (in *Ingest) restarted(b *Batch) bool {
	if b.Seq >= in.end {
		return false
	}
	last := in.end - 1
	// The live stream may be behind a snapshot: what comes for the first time is no repetition, whatever its time.
	if b.Seq < in.heard && !b.Time.IsZero() && !in.time.IsZero() && b.Time.After(in.time) {
		return true
	}
	return b.Seq == 0 && last > 0 || last-b.Seq > cmp.Or(in.opt.Window, 1024)
}

// take delivers b if it is the next one, holds it if it is early, drops it if it is late.
func (in *Ingest) take(dst []Batch, b Batch) []Batch {
	in.seen = true
	if b.Seq >= in.heard {
		in.heard, in.time = b.Seq+1, b.Time
		in.end = max(in.end, in.heard)
	}
	switch {
	case b.Seq < in.next:
		return dst
	case b.Seq == in.next:
		in.next++
		return in.drain(in.deliver(dst, b))
	}
	i, found := slices.BinarySearchFunc(in.held, b.Seq, func(h Batch, seq uint64) int { return cmp.Compare(h.Seq, seq) })
	if found {
		return dst
	}
	in.held = slices.Insert(in.held, i, b.Clone())
	if len(in.held) > cmp.Or(in.opt.MaxHeld, 1024) {
		in.held = slices.Delete(in.held, 0, 1)
	}
	return dst
}

// drain delivers held batches while they follow each other.
func (in *Ingest) drain(dst []Batch) []Batch {
	n := 0
	for n < len(in.held) && in.held[n].Seq == in.next {
		dst = in.deliver(dst, in.held[n])
		in.next++
		n++
	}
	in.held = slices.Delete(in.held, 0, n)
	if in.next == in.end {
		in.stale = false
	}
	return dst
}

func (in *Ingest) deliver(dst []Batch, b Batch) []Batch {
	for i := range b.Events {
		if b.Events[i].Kind == Cleared && b.Events[i].Tier == AnyTier {
			in.lost = false // an empty cache is known exactly
		}
	}
	return append(dst, b)
}
