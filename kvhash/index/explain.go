// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// ending specifies why an explanation ends.
type ending uint8

// The reasons.
const (
	endOfPrompt ending = iota // every block is known
	notKnown                  // no worker holds the next block
	parted                    // no worker holds the next block, and the workers that hold the last one continue differently
)

// String returns the reason in words.
func (e ending) String() string {
	switch e {
	case endOfPrompt:
		return "the end of the prompt"
	case notKnown:
		return "no worker holds the next block"
	case parted:
		return "no worker holds the next block, other prompts diverge here"
	}
	return fmt.Sprintf("end(%d)", uint8(e))
}

// explanation describes how a lookup arrives at its result.
type explanation struct {
	Blocks int   // of the prompt
	Known  int   // leading blocks that are known, even if no worker holds all blocks before them
	Way    []leg // the known ones
	End    ending
	// Again is the first known block after the end; the blocks between form a gap. It is 0 if there is none, or if the
	// block is inside a run that begins earlier and so cannot be looked up.
	Again int

	keys map[WorkerID]Key
}

// leg is a range of blocks of a prompt that the same workers hold.
type leg struct {
	From, To  int // blocks [From,To)
	Tiers     [kvevent.NumTiers][]WorkerID
	Predicted []WorkerID
	Grouped   []WorkerID // holders whose model has further cache groups, all of which hold the blocks
	// Left are the workers that hold all blocks before these but not these; it is empty for the first leg.
	Left []WorkerID
}

// AppendExplanation appends to dst a human-readable description of how [Index.AppendMatches] arrives at its result for
// a prompt, and returns it. The first line contains the number of known blocks and the reason why no more are known.
// Each run of blocks has a line with the workers that hold it, by tier, and the workers that hold all blocks before it
// but not this run. Of workers whose model has several cache groups it has the blocks that all groups hold; such a worker serves only
// prefixes that end with enough of them. The description continues as far as blocks are known, even if no worker holds all of them. Updates
// wait meanwhile. O(runs * workers).
func (x *Index) AppendExplanation(dst []byte, hashes []uint64) []byte {
	return x.explain(hashes).append(dst)
}

func (x *Index) explain(hashes []uint64) explanation {
	x.lock()
	defer x.mu.Unlock()
	t := &x.tree
	e := explanation{Blocks: len(hashes), keys: make(map[WorkerID]Key)}
	var all []WorkerID // workers that hold all blocks so far
	for e.Known < len(hashes) {
		n, r, _ := t.heads.find(&t.runs, hashes[e.Known])
		if n == 0 {
			e.End = notKnown
			break
		}
		st := t.state(n)
		start, m := r.start.Load(), uint32(1)
		for m < st.length() && e.Known+int(m) < len(hashes) && t.slots.seq.at(start+m).Load() == hashes[e.Known+int(m)] {
			m++
		}
		l := leg{From: e.Known, To: e.Known + int(m)}
		v, _ := t.sets.view(st.set())
		var still []WorkerID
		for id, w := range x.workers {
			if w == nil || w.store != 0 {
				continue
			}
			held := len(all) > 0 && all[0] == WorkerID(id)
			if held {
				all = all[1:]
			}
			if x.explainHolder(&l, &v, WorkerID(id), w.lane) {
				e.keys[WorkerID(id)] = w.key
				if held || l.From == 0 {
					still = append(still, WorkerID(id))
				}
			} else if held {
				l.Left = append(l.Left, WorkerID(id))
			}
		}
		all = still
		if k := len(e.Way); k > 0 && len(l.Left) == 0 && l.same(&e.Way[k-1]) {
			e.Way[k-1].To = l.To // runs have a maximum length
		} else {
			e.Way = append(e.Way, l)
		}
		e.Known = l.To
		if m < st.length() && e.Known < len(hashes) {
			if n, _, _ := t.heads.find(&t.runs, hashes[e.Known]); n == 0 {
				e.End = parted
				break
			}
		}
	}
	for i := e.Known + 1; i < len(hashes); i++ {
		if n, _, _ := t.heads.find(&t.runs, hashes[i]); n != 0 {
			e.Again = i
			break
		}
	}
	return e
}

// explainHolder adds the worker to a leg if it holds a set's blocks, and reports whether it does.
func (x *Index) explainHolder(l *leg, v *view, id WorkerID, at lane) (holds bool) {
	word, bit := int(at>>6), at&63
	if v.word(v.plane(planePredicted), word)>>bit&1 != 0 {
		l.Predicted = append(l.Predicted, id)
		holds = true
	}
	if v.word(v.plane(planeWindow), word)>>bit&1 != 0 {
		l.Grouped = append(l.Grouped, id)
	}
	for tier := range l.Tiers {
		in := v.word(v.plane(tier), word)>>bit&1 != 0
		for _, s := range x.roster.Load().stores {
			in = in || int(s.tier) == tier+1 && word < len(s.members) && s.members[word]>>bit&1 != 0 && v.has(s.lane)
		}
		if in {
			l.Tiers[tier] = append(l.Tiers[tier], id)
			holds = true
		}
	}
	return holds
}

// same reports whether two legs have the same holders.
func (l *leg) same(m *leg) bool {
	for i := range l.Tiers {
		if !slices.Equal(l.Tiers[i], m.Tiers[i]) {
			return false
		}
	}
	return slices.Equal(l.Predicted, m.Predicted) && slices.Equal(l.Grouped, m.Grouped)
}

// append appends a line with the reason for the end, and one for each leg.
func (e explanation) append(dst []byte) []byte {
	b := fmt.Appendf(dst, "%d of %d blocks known, then %v", e.Known, e.Blocks, e.End)
	if e.Again > 0 {
		b = fmt.Appendf(b, "; known again from block %d on", e.Again)
	}
	b = append(b, '\n')
	list := func(what string, ids []WorkerID) {
		if len(ids) == 0 {
			return
		}
		b = append(append(b, ' '), what...)
		for _, id := range ids {
			b = append(b, ' ')
			k, known := e.keys[id]
			if !known {
				b = strconv.AppendUint(b, uint64(id), 10)
				continue
			}
			b, _ = k.AppendText(b)
		}
		b = append(b, ';')
	}
	for i := range e.Way {
		l := &e.Way[i]
		b = fmt.Appendf(b, "[%d,%d)", l.From, l.To)
		for t, ids := range l.Tiers {
			list(kvevent.Tier(t+1).String(), ids)
		}
		list("predicted", l.Predicted)
		list("all cache groups of", l.Grouped)
		list("left", l.Left)
		b[len(b)-1] = '\n'
	}
	return b
}

// AppendDump appends to dst the contents of the index as human-readable text, and returns it. The order is stable:
// workers, then chains of blocks with the workers that hold them, then pending blocks. Within one dump, a block has the
// same number in all lines. If max is not 0, the dump ends with a note after the line that exceeds max bytes. Updates
// wait meanwhile. O(blocks * log of the chains + lines * workers).
func (x *Index) AppendDump(dst []byte, max int) []byte {
	x.lock()
	defer x.mu.Unlock()
	t := &x.tree
	from := len(dst)
	full := func() bool {
		if max == 0 || len(dst)-from <= max {
			return false
		}
		dst = append(dst, "and more\n"...)
		return true
	}
	dst = fmt.Appendf(dst, "%d workers, %d blocks of %d tokens, scheme %v\n", len(x.byKey), t.slots.live, x.block, x.opt.Scheme)
	for id, w := range x.workers {
		if w == nil {
			continue
		}
		s := w.report(WorkerID(id))
		dst = fmt.Appendf(dst, "worker %d: %v", id, w.key)
		if w.store != 0 {
			dst = fmt.Appendf(dst, ", a store, %v", w.store)
			for _, s := range x.roster.Load().stores {
				if s.id == WorkerID(id) {
					dst = appendIDs(append(dst, ", read by"...), x.idsOf(s.members))
				}
			}
		}
		dst = fmt.Appendf(dst, ", %d blocks, %v", s.Blocks, s.State)
		if s.Why != "" {
			dst = fmt.Appendf(dst, " (%s)", s.Why)
		}
		if dst = append(dst, '\n'); full() {
			return dst
		}
	}
	n := x.tree.number(func(*view) bool { return true })
	for i, l := range n.lists {
		end := n.end(i)
		if l.parent != 0 {
			dst = fmt.Appendf(dst, "after block %d\n", l.parent-1)
		} else {
			dst = append(dst, "beginning, or after what is not known\n"...)
		}
		for at := l.from; at < end; {
			set := t.state(t.slots.run(n.slots[at])).set()
			to := at + 1
			for to < end && t.state(t.slots.run(n.slots[to])).set() == set {
				to++
			}
			dst = fmt.Appendf(dst, "  [%d,%d) %016x", at, to, t.slots.seq.at(n.slots[at]).Load())
			v, _ := t.sets.view(set)
			for p := range numPlanes {
				if v.mask>>p&1 == 0 {
					continue
				}
				what := kvevent.Tier(p + 1).String()
				switch p {
				case planePredicted:
					what = "predicted"
				case planeWindow:
					what = "all groups"
				}
				row := v.plane(p)
				words := make([]uint64, v.lo+len(row))
				for i := range row {
					words[v.lo+i] = row[i].Load()
				}
				dst = append(append(append(dst, ' '), what...), ':')
				dst = appendIDs(dst, x.idsOf(words))
			}
			if dst = append(dst, '\n'); full() {
				return dst
			}
			at = to
		}
	}
	for id, w := range x.workers {
		if w == nil {
			continue
		}
		for o := w.orphans.oldest; o != nil; o = o.newer {
			dst = fmt.Appendf(dst, "orphans of worker %d: %d blocks, %d of them removed, %v, from engine hash %016x, after %016x\n",
				id, len(o.hashes), len(o.hashes)-o.left, kvevent.Tier(o.plane+1), o.hashes[0], o.parent)
			if full() {
				return dst
			}
		}
	}
	return dst
}

// idsOf returns the workers of lanes, one bit each, in ascending order. Lanes whose blocks are being removed have none.
func (x *Index) idsOf(lanes []uint64) (ids []WorkerID) {
	for id, w := range x.workers {
		if w != nil && int(w.lane>>6) < len(lanes) && lanes[w.lane>>6]>>(w.lane&63)&1 != 0 {
			ids = append(ids, WorkerID(id))
		}
	}
	return ids
}

// appendIDs appends workers, as ranges.
func appendIDs(dst []byte, ids []WorkerID) []byte {
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		dst = strconv.AppendUint(append(dst, ' '), uint64(ids[i]), 10)
		if j > i {
			dst = strconv.AppendUint(append(dst, '-'), uint64(ids[j]), 10)
		}
		i = j + 1
	}
	return dst
}
