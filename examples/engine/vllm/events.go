// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// A subscriber receives the cache's events.
type subscriber struct {
	fn func(kvevent.Batch)
}

// Events adds each change of the cache to the stream, after a first batch that clears the cache and stores its content.
// The returned function ends the subscription. The error is nil.
func (e *Engine) Events(s *index.Stream) (cancel func(), err error) {
	return e.subscribe(func(b kvevent.Batch) { s.Add(b) }), nil
}

// Subscribe calls fn with each further change of the cache. If the engine has published batches before, the first batch
// has the number of the last one published; it clears the cache and stores its content. Batches are numbered from 1. fn
// is called in order, by one goroutine at a time, with the engine's lock held: it must return quickly and must not call
// the engine. fn may keep the batch but must not modify it. The returned function ends the subscription; no call begins
// after it returns.
func (e *Engine) Subscribe(fn func(kvevent.Batch)) (cancel func()) {
	return e.subscribe(func(b kvevent.Batch) {
		if b.Seq > 0 {
			fn(b)
		}
	})
}

// subscribe is like Subscribe, but always sends the first batch.
func (e *Engine) subscribe(fn func(kvevent.Batch)) (cancel func()) {
	s := &subscriber{fn: fn}
	e.mu.Lock()
	defer e.mu.Unlock()
	held := e.batch(e.seq, e.cache.snapshot())
	held.Events = append([]kvevent.Event{{Kind: kvevent.Cleared}}, held.Events...)
	fn(held)
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

// publish sends the cache's changes since the last call to the subscribers. Engine.mu must be held.
func (e *Engine) publish() {
	changes := e.cache.take()
	if len(changes) == 0 {
		return
	}
	e.seq++
	if len(e.subs) > 0 {
		b := e.batch(e.seq, changes)
		for _, s := range e.subs {
			s.fn(b)
		}
	}
}

// batch returns changes in the form of package kvevent.
func (e *Engine) batch(seq uint64, changes []change) kvevent.Batch {
	b := kvevent.Batch{Seq: seq, Time: time.Now(), Events: make([]kvevent.Event, 0, len(changes))}
	for _, c := range changes {
		ev := kvevent.Event{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: c.hashes}
		if !c.removed {
			ev.Kind, ev.BlockSize, ev.TokenIDs = kvevent.Stored, int32(e.opt.BlockSize), c.tokens
			ev.Parent, ev.HasParent, ev.Namespace, ev.LoRA = c.parent, !c.root, c.scope.salt, c.scope.adapter
		}
		b.Events = append(b.Events, ev)
	}
	return b
}
