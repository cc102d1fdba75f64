// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Feed keeps one worker of an index up to date from the batches its engine publishes. It is a [kvevent.Ingest] whose batches go into
// the index, and its trust with them: while batches are missing, lookups say Degraded and why.
//
// After each call, [Feed.Need] says what to fetch; the example of package kvevent is a program that does. One goroutine at a time. When
// the worker is removed, or another feed is made for it, calls change nothing any more: the worker's number may be another's.
type Feed struct {
	index  *Index
	worker WorkerID
	mu     sync.Mutex // against snapshots; taken before Index.mu
	in     *kvevent.Ingest
	ready  []kvevent.Batch
	first  uint64 // the number of the first batch of a life
	rest   bool   // nothing was applied yet, and the worker has blocks from before that have no place in the stream
}

// Feed returns a feed of the worker, which goes on after the batches that the index has: those of the feed that the worker had, as
// after a connection was lost, or that is in a snapshot ([Load]) or in deltas ([Index.ApplyDelta]). Without, it expects the first batch of a
// life, and what the worker holds by then is forgotten when that comes. nil options mean the defaults.
//
// A worker has one feed, the last one made. It gets the batches of this rank only; see [kvevent.Batch.DPRank] where one socket carries
// several.
func (x *Index) Feed(id WorkerID, o *kvevent.IngestOptions) *Feed {
	f := &Feed{index: x, worker: id, in: kvevent.NewIngest(o)}
	if o != nil {
		f.first = o.First
	}
	for {
		x.lock()
		w := x.worker(id)
		if w == nil || w.feed == nil {
			f.follow(w)
			x.mu.Unlock()
			return f
		}
		before := w.feed
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

// follow makes f the worker's feed, and lets it go on where the one before was. The index is locked, and that feed.
func (f *Feed) follow(w *worker) {
	if w == nil {
		return
	}
	if p := w.where(); len(p) > 0 {
		f.in.Restore(nil, p) // it was checked, and nothing is held
	}
	trust, _ := f.in.Trust()
	f.rest = w.heard && trust == kvevent.Unknown
	w.feed, w.position = f, nil
	f.index.lead()
}

// current returns the worker, nil if it is another one's by now. The index is locked.
func (f *Feed) current() *worker {
	if w := f.index.worker(f.worker); w != nil && w.feed == f {
		return w
	}
	return nil
}

// Push applies a batch of the live stream, or holds it while earlier ones are missing. b is not retained; the namespaces of its events may
// be set, as by [kvevent.Ingest.Push].
func (f *Feed) Push(b kvevent.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.Push(f.ready[:0], b))
}

// Replay applies a batch of the answer to a replay request, like [Feed.Push].
func (f *Feed) Replay(b kvevent.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.Replay(f.ready[:0], b))
}

// ReplayDone says that the replay is over, refused or too slow.
func (f *Feed) ReplayDone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in.ReplayDone()
	f.apply(f.ready[:0])
}

// Snapshot replaces what the worker holds by what the events store; meanwhile lookups do not report the worker. They are the state after
// batch seq.
func (f *Feed) Snapshot(seq uint64, events []kvevent.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(events)
	f.apply(f.in.Snapshot(f.ready[:0], seq, events...))
}

// GiveUp goes on without what is missing.
func (f *Feed) GiveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.GiveUp(f.ready[:0]))
}

// Restore replaces what the worker holds by what data says, which a sidecar made by [Index.AppendWorker], and goes on in the stream from
// there; meanwhile lookups do not report the worker. Trust is the sidecar's. An error is a [*SnapshotError], and changes nothing. O(blocks of
// the worker), and O(all blocks) when it holds some that do not begin a prompt and follow none of its own.
func (f *Feed) Restore(data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	position, err := f.restore(data)
	if err != nil {
		return err
	}
	ready, _ := f.in.Restore(f.ready[:0], position) // load checked it
	f.apply(ready)
	return nil
}

// Reset forgets the worker's blocks: the engine was restarted, or emptied its cache, and its events do not say so; see
// [kvevent.Ingest.Reset].
func (f *Feed) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.Reset(f.ready[:0]))
}

// Need returns what is missing now.
func (f *Feed) Need() kvevent.Need { return f.in.Need() }

// apply applies batches that are ready. When one was lost, lookups learn it before they see what came after; when the gap is closed,
// they see what closed it first.
func (f *Feed) apply(ready []kvevent.Batch) {
	t, why := f.in.Trust()
	if t != kvevent.Exact {
		f.setTrust(t, why)
	}
	for i := range ready {
		f.applyBatch(&ready[i])
	}
	if t == kvevent.Exact {
		f.setTrust(t, why)
	}
	clear(ready) // they hold the memory of others
	f.ready = ready[:0]
}

func (f *Feed) setTrust(t kvevent.Trust, why string) {
	x := f.index
	x.lock()
	defer x.mu.Unlock()
	if w := f.current(); w != nil {
		x.setTrust(f.worker, w, t, why)
	}
}

func (f *Feed) applyBatch(b *kvevent.Batch) {
	x := f.index
	x.lock()
	defer x.mu.Unlock()
	if f.current() == nil {
		return
	}
	if f.rest && b.Seq == f.first {
		x.applyOne(f.worker, &kvevent.Event{Kind: kvevent.Cleared})
	}
	f.rest = false
	for i := range b.Events {
		x.applyOne(f.worker, &b.Events[i])
	}
}

// replace clears the worker and applies events, while lookups do not report it.
func (f *Feed) replace(events []kvevent.Event) {
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
