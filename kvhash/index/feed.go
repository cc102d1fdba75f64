// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Feed keeps one worker of an index up to date from the batches its engine publishes. It is a [kvevent.Ingest] whose batches go into
// the index, and its trust with them: while batches are missing, lookups say Degraded and why.
//
// After each call, [Feed.Need] says what to fetch. One goroutine at a time.
type Feed struct {
	index  *Index
	worker WorkerID
	mu     sync.Mutex // against snapshots; taken before Index.mu
	in     *kvevent.Ingest
	ready  []kvevent.Batch
}

// Feed returns a feed of the worker, which expects the first batch of a life, or in an index made by [Load], or kept by
// [Index.ApplyDelta], the batch after those the index has. nil options mean the defaults. There must be one feed for each worker, that gets
// the batches of this rank only (see [kvevent.Batch.DPRank] where one socket carries several); snapshots have the place of the last one made.
func (x *Index) Feed(id WorkerID, o *kvevent.IngestOptions) *Feed {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := &Feed{index: x, worker: id, in: kvevent.NewIngest(o)}
	if w := x.worker(id); w != nil {
		if len(w.position) > 0 {
			f.in.Restore(nil, w.position) // it was checked, and nothing is held
		}
		w.feed, w.position = f, nil
	}
	return f
}

// Push applies a batch of the live stream, or holds it while earlier ones are missing. b is not retained.
func (f *Feed) Push(b kvevent.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.Push(f.ready[:0], b))
}

// Replay applies a batch of the answer to a replay request. b is not retained.
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
	f.index.replace(f.worker, events)
	f.apply(f.in.Snapshot(f.ready[:0], seq, events...))
}

// GiveUp goes on without what is missing.
func (f *Feed) GiveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(f.in.GiveUp(f.ready[:0]))
}

// Restore replaces what the worker holds by what data says, which a sidecar made by [Index.AppendWorker], and goes on in the stream from there; meanwhile lookups do not
// report the worker. Trust is the sidecar's. An error is a [*SnapshotError], and changes nothing. O(blocks of
// the worker), and O(all blocks) when it holds some that do not begin a prompt and follow none of its own.
func (f *Feed) Restore(data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	position, err := f.index.restore(f.worker, data)
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
		f.index.SetTrust(f.worker, t, why)
	}
	for i := range ready {
		f.index.ApplyBatch(f.worker, &ready[i])
	}
	if t == kvevent.Exact {
		f.index.SetTrust(f.worker, t, why)
	}
	clear(ready) // they hold the memory of others
	f.ready = ready[:0]
}

// replace clears the worker and applies events, while lookups do not report it.
func (x *Index) replace(id WorkerID, events []kvevent.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(id)
	if w == nil {
		return
	}
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
