// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
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
	// Copies specifies that the engine reports every copy of a block. vLLM does so, as of November 2026: it makes
	// copies when requests compute the same prompt at the same time, or when the last block of a prompt must be
	// computed again. It sends a Stored event for each copy, and a Removed event when the copy is evicted. If Copies is
	// set, a block is removed with its last copy, as in Dynamo and llm-d. Otherwise it is removed with the first one,
	// and lookups miss the copies that the engine still has. Do not set it for an engine that sends Removed only for
	// the last copy: its blocks would never be removed.
	//
	// Counting takes 25 to 40 bytes for each block that the engine holds, and 0.1 to 0.2 µs for each block of an event.
	// It restarts after a loss and after the state was replaced: a block that had copies before is then removed with
	// the first Removed event. Blocks of shared stores are not counted.
	Copies bool
	// MaxHeldBytes limits the memory of batches that are held while earlier ones are missing; 0 means 64 MiB. At most
	// 1,024 batches are held. If there are more, the oldest is dropped and must be part of the replay.
	MaxHeldBytes int
	// OnBatch, if not nil, is called with each batch after it was applied, in order and without duplicates. A restart
	// of the engine is a batch with a Cleared event. So a process that forwards the events of an engine needs no other
	// state. The batch is valid until OnBatch returns. OnBatch must not call methods of the Stream.
	OnBatch func(*kvevent.Batch)
}

// Stream updates one worker of an index with the batches that the worker's engine publishes. It drops duplicates, holds
// batches that arrive early, detects gaps and restarts of the engine, and reports what to fetch ([Stream.Need]). It
// does no I/O: the caller reads the engine's sockets, or package zmq of module router/zmq does. While batches are missing, lookups report the worker as
// [Degraded].
//
//	Seq == next:               applied
//	Seq > next:                held, Need is Replay; AddReplay fills the gap, then FinishReplay
//	still a gap after that:    Need is Snapshot; Skip continues without the missing batches
//	Seq fell back:             the engine was restarted, the worker is cleared
//
// After a batch that clears the whole rank, the batches before it are no longer needed. A batch whose sequence number
// is lower by at most 1,024 is a duplicate, unless its time, or its content if it has no time, shows that the engine
// was restarted.
//
// All batches must be of the rank of the first one. A batch with another [kvevent.Batch.Worker] or
// [kvevent.Batch.DPRank] is dropped, and the worker is Degraded until [Stream.Reset]. An engine that empties its cache
// to sleep, or that is replaced while no subscriber is connected, may not report it: if the caller learns of it by
// other means, it must call Reset.
//
// A Stream uses no clock and is not safe for concurrent use. After the worker is removed or another Stream is made for
// it, calls have no effect, because the ID may have been reused.
type Stream struct {
	index   *Index
	worker  WorkerID
	onBatch func(*kvevent.Batch)
	mu      sync.Mutex // against snapshots; taken before Index.mu
	in      *sequence.Tracker
	shot    *workerShot // of a snapshot that does not have the position yet, or nil
	ready   []kvevent.Batch
	cleared bool   // a worker was cleared since enter
	first   uint64 // the number of an engine's first batch
	rest    bool   // nothing has been applied, and the worker has older blocks whose position in the stream is unknown
	suspect string // the reason of the last Suspect, or ""
}

// NewStream returns a Stream for the worker. If the worker had a Stream before, for example on a lost connection, the
// new one continues after its last batch. Otherwise it expects the engine's first batch, and removes all blocks of the
// worker when that batch arrives. nil options mean the defaults.
//
// Only the last Stream made for a worker has an effect. If one socket carries several ranks, make a Stream for each.
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
		before.mu.Lock() // wait for a running call of it
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

// follow makes f the worker's stream, which continues at the position of the previous one. The caller holds the locks
// of the index and of that stream.
func (f *Stream) follow(w *worker) {
	if w == nil {
		return
	}
	if p := w.where(); len(p) > 0 {
		f.in.Restore(nil, p) // the position was checked, and no batches are held
	}
	s, _ := f.in.State()
	f.rest = w.received && State(s) == Unknown
	w.stream, w.position = f, nil
	f.index.lead()
}

// current returns the worker, or nil if f is no longer its stream. The caller holds the index's lock.
func (f *Stream) current() *worker {
	if w := f.index.worker(f.worker); w != nil && w.stream == f {
		return w
	}
	return nil
}

// Add adds batches of the live stream, in the order in which they arrived. A batch is applied, or held while earlier
// ones are missing. Batches are not retained, but Add may set the namespaces of their events.
func (f *Stream) Add(batches ...kvevent.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range batches {
		f.enter()
		f.apply(f.in.Append(f.ready[:0], b))
	}
}

// AddReplay adds a batch of a replay that the caller requested because [Stream.Need] returned Replay. The live stream
// may continue meanwhile. Batches that were already applied, or that precede a restart, are dropped. A batch with the
// number [kvevent.EndOfReplay] is ignored: call FinishReplay instead.
func (f *Stream) AddReplay(b kvevent.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	f.apply(f.in.AppendReplay(f.ready[:0], b))
}

// FinishReplay ends a replay that completed, was refused or timed out. If batches are still missing, [Stream.Need] is Snapshot.
func (f *Stream) FinishReplay() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	f.in.FinishReplay()
	f.apply(f.ready[:0])
}

// Replace replaces the worker's blocks with those that the events store, which are its state after batch seq. Lookups
// do not report the worker meanwhile.
func (f *Stream) Replace(seq uint64, events []kvevent.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	f.replace(events)
	f.apply(f.in.Replace(f.ready[:0], seq, events...))
}

// Skip continues without the missing batches, whatever Need returns, and does nothing if none is missing. The worker is
// Degraded until a snapshot arrives or an event clears the whole rank. A program without a replay socket calls Skip after
// each Add; so it also joins an engine that published batches before.
func (f *Stream) Skip() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	f.apply(f.in.Skip(f.ready[:0]))
}

// restore replaces the worker's blocks with those in data, which appendOne of another index made, and continues in the
// stream from there. Lookups do not report the worker meanwhile. The state is that of the other index. An error is a
// [*snapshotError], and nothing is changed. O(blocks of the worker), and O(all blocks) if it holds blocks that neither
// begin a prompt nor follow one of its own.
func (f *Stream) restore(data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.index
	y, err := loadKind(data, kindWorker, &x.opt, 0)
	if err != nil {
		return err
	}
	if y.block != x.block {
		return &snapshotError{Offset: int64(frameHeader), Err: errScheme}
	}
	position := y.workers[0].position
	if len(position) == 0 {
		return &snapshotError{Offset: int64(frameHeader), Err: errNoPosition}
	}
	f.enter()
	if err := f.load(y, data); err != nil {
		x.gate.RUnlock()
		return err
	}
	ready, _ := f.in.Restore(f.ready[:0], position) // loadKind checked it
	f.apply(ready)
	return nil
}

// Reset removes the worker's blocks. Call it if the connection to the engine is lost, or if the engine was restarted or
// emptied its cache without an event that reports it. The worker is [Unknown] until the next batch, which should be the
// engine's first one or one that clears the rank. why is the reason that [Index.Worker] returns until then; "" means
// "no events yet". See [Stream.Suspect] for a worker whose blocks are to remain.
func (f *Stream) Reset(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	f.apply(f.in.Reset(f.ready[:0], why))
}

// Forget removes the worker's blocks, because they turned out to be wrong although the engine was not restarted. It is like
// [Stream.Reset], except that batches that were applied before are applied again: subscribe to the engine's events again, so
// that a replay brings those that it keeps.
func (f *Stream) Forget(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	f.apply(f.in.Forget(f.ready[:0], why))
}

// Suspect marks the worker as Degraded for a reason that the stream of batches does not show, such as a lost connection,
// until it is called with "". The worker's blocks remain, and batches are applied as before. why is the reason that
// [Index.Worker] returns meanwhile. A worker that is Unknown remains so, for that reason.
func (f *Stream) Suspect(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enter()
	f.suspect = why
	f.apply(f.ready[:0])
}

// Need returns what is missing, and the number of the first missing batch. The result stays the same until the missing
// batches arrive, so the caller must remember that it has requested a replay. Batches that were skipped, or arrived
// damaged, are not requested again.
//
// The replay socket of vLLM and SGLang is a ROUTER. Its requests are an empty frame, which a REQ socket adds and a
// DEALER does not, and the number from in 8 bytes, big-endian. The response has a message for each batch that the
// engine still has, and then [kvevent.EndOfReplay]. The engines keep 10,000 batches by default and have no snapshots.
func (f *Stream) Need() (n Need, from uint64) {
	need, from := f.in.Need()
	return Need(need), from
}

// enter must be called before the stream advances; apply ends what it begins. In between, no snapshot can begin.
func (f *Stream) enter() {
	f.index.gate.RLock()
	f.expose()
}

// apply applies batches that are ready. A state that is not Exact is set before the batches are applied, and Exact
// after them, so that lookups never report an incomplete worker as Exact.
func (f *Stream) apply(ready []kvevent.Batch) {
	s, why := f.in.State()
	state := State(s)
	if f.suspect != "" {
		state, why = min(state, Degraded), f.suspect
	}
	if state != Exact {
		f.setState(state, why)
	}
	applied := 0
	for i := range ready {
		if f.applyBatch(&ready[i]) {
			applied++
		}
	}
	if state == Exact {
		f.setState(state, why)
	}
	f.index.gate.RUnlock()
	if f.cleared {
		f.cleared = false
		f.index.tidy()
	}
	if f.onBatch != nil {
		for i := range applied {
			f.onBatch(&ready[i])
		}
	}
	clear(ready) // they refer to memory of others
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

// applyBatch applies a batch. It reports whether f is still the worker's stream.
func (f *Stream) applyBatch(b *kvevent.Batch) bool {
	x := f.index
	f.cleared = f.cleared || f.rest || slices.ContainsFunc(b.Events, func(e kvevent.Event) bool { return e.Kind == kvevent.Cleared })
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
	f.cleared = true
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
	x.hide(w, func() {
		x.clear(id, w)
		for i := range events {
			x.applyEvent(id, w, &events[i])
		}
	})
	if x.journal != nil {
		x.noteReplace(id, false)
	}
	x.publish(id, w)
}
