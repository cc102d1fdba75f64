// SPDX-License-Identifier: Apache-2.0

package tokenizers

import "sync/atomic"

// maxScratch is the maximum size in bytes of the text buffers that a scratch keeps.
const maxScratch = 4 << 20

// pool keeps one scratch per processor. Unlike a sync.Pool, it survives garbage collections, because the word caches in
// it take time to fill.
type pool struct {
	slots []atomic.Pointer[scratch]
}

func (p *pool) get() *scratch {
	for i := range p.slots {
		if sc := p.slots[i].Swap(nil); sc != nil {
			return sc
		}
	}
	return new(scratch)
}

func (p *pool) put(sc *scratch) {
	sc.trim()
	for i := range p.slots {
		if p.slots[i].CompareAndSwap(nil, sc) {
			return
		}
	}
}

// trim drops buffers that a large text has grown.
func (sc *scratch) trim() {
	if cap(sc.rope) > maxScratch {
		sc.rope = nil
	}
	if cap(sc.bytes) > maxScratch {
		sc.bytes = nil
	}
	if cap(sc.ends)*8 > maxScratch {
		sc.ends = nil
	}
	if cap(sc.from)*8 > maxScratch || cap(sc.offs)*32 > maxScratch {
		sc.from, sc.offs = nil, nil
	}
	sc.normal.Trim(maxScratch)
	for i := range sc.levels {
		l := &sc.levels[i]
		if cap(l.text.B)+8*cap(l.text.From)+16*cap(l.pieces) > maxScratch {
			*l = level{}
		}
	}
}

// ResetCache clears the word caches, as if the tokenizer had just been loaded. It is meant for measurements. Concurrent
// encodings keep their caches.
func (t *Tokenizer) ResetCache() {
	for i := range t.pool.slots {
		if sc := t.pool.slots[i].Load(); sc != nil && t.pool.slots[i].CompareAndSwap(sc, nil) {
			sc.states.reset()
			t.pool.put(sc)
		}
	}
}
