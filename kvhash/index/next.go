// SPDX-License-Identifier: Apache-2.0

package index

import (
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// addNext is a short way for the most frequent event: one block that continues a sequence which the worker alone holds. An engine
// sends it whenever the tokens that it generates fill a block. addNext reports whether the event is of this kind and was applied; if not, nothing
// has changed, and apply has to do it. TestNext compares the two.
func (x *Index) addNext(w *worker, ev *kvevent.Event) bool {
	if ev.Kind != kvevent.Stored || len(ev.BlockHashes) != 1 || !ev.HasParent || ev.Parent == ev.BlockHashes[0] || ev.Owner != "" ||
		ev.Attention != kvevent.FullAttention || ev.Tier > kvevent.NumTiers || ev.BlockSize != 0 && int(ev.BlockSize) != x.block {
		return false
	}
	if x.journal != nil || !w.received || w.ratio != 1 || !w.grouped || w.group != ev.Group || w.groups != nil || w.pages != nil || w.store != 0 ||
		w.orphans.blocks > 0 || len(w.more) > 0 {
		return false
	}
	x.touch(w, ev.BlockHashes)
	last := x.parent(w, ev.Parent)
	if last == 0 {
		return false
	}
	t := &x.tree
	s, slot := &t.slots, last+1
	n := s.run(last)
	st, plane := t.state(n), w.plane(ev.Tier)
	r := t.runs.at(n)
	if slot != r.start.Load()+st.length() || st.length() == maxRun || r.forks > 0 || !t.sets.isAlone(st.set(), w.lane, plane) ||
		!s.canGrow(slot) || s.live >= x.opt.MaxBlocks {
		return false
	}
	seq, ok := x.seqAfter(w, ev, s.seq.at(last).Load())
	if !ok {
		return false
	}
	if t.heads.fresh(&t.runs, []uint64{seq}) == 0 {
		return false
	}
	h := ev.BlockHashes[0]
	w.touch()
	if w.alike < 0 {
		if w.plain > 0 && s.common.find(h) != 0 || w.names.place(h, locationAt(slot, 1<<plane)).g != nil {
			return false
		}
	} else if w.names.n > 0 && w.names.find(h).g != nil || !s.common.enter(h, slot) {
		return false
	}
	s.grow(last, 1, maxRoom)
	s.add(slot, seq, n)
	if w.alike < 0 {
		w.owned.add(slot)
	} else {
		s.common.call(slot, ev.BlockHashes)
		w.plain++
	}
	t.set(n, st.length()+1, st.set())
	w.recent, w.recentSlot = h, slot
	w.held++
	x.show(w)
	return true
}

// seqAfter returns the sequence hash of the only block of an event, which follows the one with sequence hash seq, and whether the event
// has it, as for store.
func (x *Index) seqAfter(w *worker, ev *kvevent.Event, seq uint64) (uint64, bool) {
	scheme, tokens := &x.opt.Scheme, ev.TokenIDs
	if n := len(ev.SequenceHashes); n > 0 {
		return ev.SequenceHashes[0], n == 1
	}
	if n := len(ev.LocalHashes); n > 0 {
		return kvhash.Next(seq, ev.LocalHashes[0]), n == 1 && scheme.HasLocal()
	}
	if _, ok := x.fits(w, ev); !ok || len(ev.TokenIDs) < x.block || len(ev.Objects) > 0 {
		return 0, false
	}
	if n := x.covered(x.block); len(ev.TokenIDs) > n {
		if !w.ahead {
			return 0, false
		}
		tokens = tokens[:n]
	}
	if !scheme.HasLocal() {
		return ev.BlockHashes[0], true
	}
	if x.locals = scheme.With(ev.LoRA, ev.Namespace).AppendLocal(x.locals[:0], tokens, x.block, nil); len(x.locals) != 1 {
		return 0, false
	}
	return kvhash.Next(seq, x.locals[0]), true
}
