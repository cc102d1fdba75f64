// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"time"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// A subscriber receives the cache's events.
type subscriber struct {
	fn func(kvevent.Batch)
}

// Events is Subscribe for those who also want to know how far the events can be believed: inside one process they are exact.
func (e *Engine) Events(fn func(kvevent.Batch), trust func(t kvevent.Trust, why string)) (cancel func()) {
	cancel = e.Subscribe(fn)
	trust(kvevent.Exact, "")
	return cancel
}

// Subscribe calls fn with every change of the cache from now on. If the engine published anything before, the first batch,
// under the number of the last one published, holds all that the cache holds. Calls are in the order of Batch.Seq, one at a
// time, and inside the engine's lock: fn must return soon and must not call the engine. The batch and all it refers to are
// fn's to keep but not to change. The returned function ends the subscription; no call begins after it returns.
func (e *Engine) Subscribe(fn func(kvevent.Batch)) (cancel func()) {
	return e.subscribe(func(held kvevent.Batch) {
		if e.seq > 0 {
			fn(held)
		}
	}, fn)
}

// subscribe is Subscribe for those who hear what the cache holds apart, and always.
func (e *Engine) subscribe(begin, fn func(kvevent.Batch)) (cancel func()) {
	s := &subscriber{fn: fn}
	e.mu.Lock()
	defer e.mu.Unlock()
	begin(e.batch(max(e.seq, 1)-1, e.cache.snapshot()))
	e.subs = append(e.subs, s)
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for i := range e.subs {
			if e.subs[i] == s {
				e.subs = append(e.subs[:i:i], e.subs[i+1:]...)
				return
			}
		}
	}
}

// publish sends the cache's changes since the last call to the subscribers. Engine.mu is held.
func (e *Engine) publish() {
	changes := e.cache.take()
	if len(changes) == 0 {
		return
	}
	if len(e.subs) > 0 {
		b := e.batch(e.seq, changes)
		for _, s := range e.subs {
			s.fn(b)
		}
	}
	e.seq++
}

// batch returns changes in the form of package kvevent.
func (e *Engine) batch(seq uint64, changes []change) kvevent.Batch {
	b := kvevent.Batch{Seq: seq, Time: time.Now(), Events: make([]kvevent.Event, 0, len(changes))}
	for _, c := range changes {
		ev := kvevent.Event{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: c.hashes}
		if !c.removed {
			ev.Kind, ev.BlockSize, ev.TokenIDs = kvevent.Stored, int32(e.opt.BlockSize), c.tokens
			ev.Parent, ev.HasParent, ev.Namespace = c.parent, !c.root, c.salt
		}
		b.Events = append(b.Events, ev)
	}
	return b
}
