// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Need specifies what a [Stream] waits for.
type Need uint8

// The needs.
const (
	None     Need = Need(sequence.None)     // nothing is missing
	Replay   Need = Need(sequence.Replay)   // batches of the engine, from a sequence number on
	Snapshot Need = Need(sequence.Snapshot) // the worker's whole state, because the replay did not have the missing batches
)

// StreamOptions configure a [Stream]. The zero value is for an engine whose first batch has the number 0.
type StreamOptions struct {
	// First is the number of an engine's first batch: 0 for most, 1 for Dynamo's events.
	First uint64
	// Copies specifies that the engine reports every copy of a block. vLLM does, as of November 2026: requests that compute the same prompt
	// at the same time, or one whose last block must be computed again, leave copies, each with a Stored of its own and a Removed when it is
	// evicted. With Copies a block is removed with the last of them, as in Dynamo and llm-d; without it with the first, and what the engine
	// still has is missed. Do not set it for an engine that sends Removed only for the last copy: its blocks would stay.
	//
	// It takes 25 to 40 bytes for each block that the engine holds, and 0.1 to 0.2 µs for each block of an event. After a loss, and after the
	// state was replaced, counting starts again: of a block that had copies then, the first Removed counts. Blocks of shared stores are not
	// counted.
	Copies bool
	// MaxHeldBytes limits the memory of batches kept while earlier ones are missing; 0 means 64 MiB. There are never more than 1,024.
	// Beyond that the oldest is dropped and has to come with the replay.
	MaxHeldBytes int
	// OnBatch, if not nil, is called with each batch after it was applied, in order and without repetition; a restart of the engine is a
	// batch with a Cleared event. A process that passes the events of an engine on needs no other bookkeeping. The batch is valid during the
	// call, which must not call the Stream.
	OnBatch func(*kvevent.Batch)
}

// Stream keeps one worker of an index up to date from the batches that its engine publishes. It drops duplicates, holds batches that arrive
// early, detects gaps and restarts of the engine, and reports what to fetch ([Stream.Need]). It moves no bytes: the caller reads the
// engine's sockets. While batches are missing, lookups report the worker as [Degraded].
//
//	Seq == next:               applied
//	Seq > next:                held, Need is Replay; AddReplay fills the gap, then FinishReplay
//	still a gap after that:    Need is Snapshot; Skip continues without the missing batches
//	Seq fell back:             the engine was restarted, the worker is cleared
//
// A batch that clears the whole rank makes up for all that is missing before it. Sequence numbers that fall back by at most 1,024 are
// duplicates, unless the time of the batch, or its content if it has no time, shows that the engine was restarted.
//
// All batches have to be of one rank, the first one's: one of another [kvevent.Batch.Worker] or [kvevent.Batch.DPRank]
// is dropped, and the worker is Degraded until [Stream.Reset]. An engine that sleeps, or that was replaced while no
// subscriber was connected, may not report it: a caller that learns of it otherwise calls Reset.
//
// A Stream reads no clock and is not safe for concurrent use. After the worker is removed, or another Stream is made for it, calls have no
// effect: its ID may have been reused.
type Stream struct {
	index   *Index
	worker  WorkerID
	onBatch func(*kvevent.Batch)
	mu      sync.Mutex // against snapshots; taken before Index.mu
	in      *sequence.Tracker
	ready   []kvevent.Batch
	first   uint64 // the number of an engine's first batch
	rest    bool   // nothing was applied yet, and the worker has blocks from before whose position in the stream is not known
}

// NewStream returns a stream of the worker. It continues after the batches of the worker's previous Stream, as after a
// lost connection. Without one, it expects an engine's first batch, and what the worker holds by then is removed when
// that comes. nil options mean the defaults.
//
// A worker has one Stream, the last one made. If one socket carries several ranks, make a Stream for each.
func (x *Index) NewStream(id WorkerID, o *StreamOptions) *Stream {
	if o == nil {
		o = new(StreamOptions)
	}
	return x.newStream(id, &sequence.Options{First: o.First, Copies: o.Copies, MaxHeldBytes: o.MaxHeldBytes}, o.OnBatch)
}

func (x *Index) newStream(id WorkerID, o *sequence.Options, onBatch func(*kvevent.Batch)) *Stream {
	f := &Stream{index: x, worker: id, onBatch: onBatch, in: sequence.New(o), first: o.First}
	for {
		x.lock()
		w := x.worker(id)
		if w == nil || w.stream == nil {
			f.follow(w)
			x.mu.Unlock()
			return f
		}
		before := w.stream
		x.mu.Unlock()
		before.mu.Lock() // a call of it may run
		x.lock()
		ok := before.current() != nil
		if ok {
			f.follow(x.worker(id))
		}
		x.mu.Unlock()
		before.mu.Unlock()
		if ok {
			return f
		}
	}
}

// follow makes f the worker's stream, and lets it continue where the previous one was. The index is locked, and that stream.
func (f *Stream) follow(w *worker) {
	if w == nil {
		return
	}
	if p := w.where(); len(p) > 0 {
		f.in.Restore(nil, p) // it was checked, and nothing is held
	}
	s, _ := f.in.State()
	f.rest = w.heard && State(s) == Unknown
	w.stream, w.position = f, nil
	f.index.lead()
}

// current returns the worker, or nil if the stream is no longer its own. The index is locked.
func (f *Stream) current() *worker {
	if w := f.index.worker(f.worker); w != nil && w.stream == f {
		return w
	}
	return nil
}

// Add adds batches of the live stream, in the order in which they arrived. A batch is applied, or held while earlier ones are
// missing. Batches are not retained; the namespaces of their events may be set.
func (f *Stream) Add(batches ...kvevent.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range batches {
		f.apply(f.in.Append(f.ready[:0], b))
	}
}

// AddReplay adds a batch of a replay, which the caller requested because [Stream.Need] reported one. The live stream continues meanwhile.
// Batches that were applied before, and those from before a restart, are dropped. The end of a replay, [kvevent.EndOfReplay], is not a batch
// and is ignored: call FinishReplay.
func (f *Stream) AddReplay(b kvevent.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.AppendReplay(f.ready[:0], b))
}

// FinishReplay ends a replay that completed, was refused or timed out. If batches are still missing, [Stream.Need] is Snapshot.
func (f *Stream) FinishReplay() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in.FinishReplay()
	f.apply(f.ready[:0])
}

// Replace replaces the worker's blocks by those that the events store, which are its state after batch seq. Lookups do not report the
// worker meanwhile.
func (f *Stream) Replace(seq uint64, events []kvevent.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(events)
	f.apply(f.in.Replace(f.ready[:0], seq, events...))
}

// Skip continues without what is missing. The worker is Degraded until a snapshot, or an event that clears the whole rank.
func (f *Stream) Skip() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.Skip(f.ready[:0]))
}

// restore replaces the worker's blocks by those in data, which appendWorker of another index made, and continues in the stream from
// there; lookups do not report the worker meanwhile. The state is the other index's. An error is a [*snapshotError], and changes
// nothing. O(blocks of the worker), and O(all blocks) when it holds some that do not begin a prompt and follow none of its own.
func (f *Stream) restore(data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	position, err := f.load(data)
	if err != nil {
		return err
	}
	ready, _ := f.in.Restore(f.ready[:0], position) // load checked it
	f.apply(ready)
	return nil
}

// Reset removes the worker's blocks, because the engine was restarted or emptied its cache and its events do not report it, or because the
// connection to it is lost. The worker is [Unknown] until the next batch, which is expected to be the first one or one that clears the
// rank. why is the reason that [Index.Worker] gives until then; "" means "no events yet".
func (f *Stream) Reset(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.Reset(f.ready[:0], why))
}

// Need returns what is missing now, and the number of the first missing batch. It stays the same until a call brings it: the caller has
// to remember that it requested a replay. What was skipped, or arrived damaged, is not requested again.
//
// vLLM and SGLang reply on their replay socket, a ROUTER, to the number from in 8 bytes, big-endian, with an empty
// frame before it (a REQ socket adds it, a DEALER does not): a message for each batch that they still have, and
// [kvevent.EndOfReplay]. They keep 10,000 batches by default and have no snapshot.
func (f *Stream) Need() (n Need, from uint64) {
	need, from := f.in.Need()
	return Need(need), from
}

// apply applies batches that are ready. When one was lost, lookups report it before they report what came after; when the gap is closed,
// they report what closed it first.
func (f *Stream) apply(ready []kvevent.Batch) {
	s, why := f.in.State()
	state := State(s)
	if state != Exact {
		f.setState(state, why)
	}
	for i := range ready {
		if f.applyBatch(&ready[i]) && f.onBatch != nil {
			f.onBatch(&ready[i])
		}
	}
	if state == Exact {
		f.setState(state, why)
	}
	clear(ready) // they hold the memory of others
	f.ready = ready[:0]
}

func (f *Stream) setState(s State, why string) {
	x := f.index
	x.lock()
	defer x.mu.Unlock()
	if w := f.current(); w != nil {
		x.setState(f.worker, w, s, why)
	}
}

// applyBatch applies a batch. It reports whether the worker is still there.
func (f *Stream) applyBatch(b *kvevent.Batch) bool {
	x := f.index
	x.lock()
	defer x.mu.Unlock()
	if f.current() == nil {
		return false
	}
	if f.rest && b.Seq == f.first {
		x.add(f.worker, &kvevent.Event{Kind: kvevent.Cleared})
	}
	f.rest = false
	for i := range b.Events {
		x.add(f.worker, &b.Events[i])
	}
	return true
}

// replace clears the worker and applies events, while lookups do not report it.
func (f *Stream) replace(events []kvevent.Event) {
	x, id := f.index, f.worker
	x.lock()
	defer x.mu.Unlock()
	w := f.current()
	if w == nil {
		return
	}
	f.rest = false
	if x.journal != nil {
		x.noteReplace(id, true)
	}
	x.hide(id, w, func() {
		x.clearHidden(id, w)
		for i := range events {
			x.applyEvent(id, w, &events[i])
		}
	})
	if x.journal != nil {
		x.noteReplace(id, false)
	}
	x.publish(id, w)
}
