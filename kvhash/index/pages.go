// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file gathers the pages of engines whose blocks are smaller than the index's, such as SGLang with a page size of
// 1, into blocks. A block is stored in a tier when all its pages are there, and removed with the first of them. Its name
// is the hash of its last page.

// pages are the pages that a worker holds, and absent ones that others follow.
//
// Invariants: byHash has exactly the pages in use; a page in use is in a tier or has children; announced is a subset of
// tiers, and only that of the last pages of blocks is not 0; pos of a page with a known position is one more than that
// of the page before, modulo per.
type pages struct {
	size, per int // tokens in a page, pages in a block
	after     int // tokens after a block that its hash covers
	byHash    map[uint64]uint32
	list      []enginePage // by ID; 0 is not used
	free      []uint32
	tokens    []uint32 // size+after for each ID
	lost      int      // pages whose position is unknown
	mayGrow   bool     // size may turn out to be larger: each event so far stored one page

	fresh  []uint32  // scratch
	todo   []uint32  // scratch
	ready  []inPlane // scratch
	blocks []inPlane // last pages of blocks that are about to be stored or removed
	out    kvevent.Event
}

// enginePage is a page. Its position in the prompt is known if the pages before it are.
type enginePage struct {
	hash            uint64
	before          uint32 // the page before, 0 if it begins a prompt or if that is not known yet
	child           uint32 // the first of the pages after it
	older, younger  uint32 // with the same page before
	pos             int16  // in the block, -1 if unknown
	known           bool   // it was stored, so its tokens are known
	tiers           uint8  // in which it is, a bit for each plane
	announced       uint8  // tiers in which its block is stored
	lora, namespace string
	objects         []uint64
}

// inPlane is a page in one plane.
type inPlane struct {
	page  uint32
	plane int
}

// isPage reports whether an event of a worker that has no blocks yet, or only pages, has blocks that are a fraction of
// the index's.
func (x *Index) isPage(w *worker, ev *kvevent.Event) bool {
	size := int(ev.BlockSize)
	return ev.Kind == kvevent.Stored && size > 0 && size < x.block && x.block%size == 0 && x.block/size <= maxRatio && x.opt.Scheme.HasLocal() &&
		isPages(ev, size, x.after) && len(ev.LocalHashes)+len(ev.SequenceHashes) == 0 && (w.ratio == 0 || w.paged) && w.store == 0
}

// outgrown reports whether an event has whole blocks of a worker whose pages so far may all have been ends of prompts; see worker.grows.
func (w *worker) outgrown(ev *kvevent.Event) bool {
	size := int(ev.BlockSize)
	return w.pages.mayGrow && ev.Kind == kvevent.Stored && ev.Attention == kvevent.FullAttention && w.group == ev.Group && size > w.pages.size &&
		size%w.pages.size == 0 && ev.Tier == kvevent.Device && ev.Owner == "" && len(ev.TokenIDs) >= size
}

// ungather forgets a worker's pages and their size. Blocks that they form remain until their last page is removed.
func (x *Index) ungather(id WorkerID, w *worker) {
	w.pages, w.paged, w.ratio, w.mayGrow = nil, false, 0, false
	x.noteFlags(id, w.flags())
}

// isPages reports whether an event has the tokens of its pages and those after them, of which hashes cover a number. There may be more.
func isPages(ev *kvevent.Event, size, after int) bool {
	more := len(ev.TokenIDs) - len(ev.BlockHashes)*size
	return more == after || more > after && more < size
}

// gather applies an event of a worker that has pages.
func (x *Index) gather(id WorkerID, w *worker, ev *kvevent.Event) (res Result) {
	n := len(ev.BlockHashes)
	w.received = true
	switch {
	case ev.Kind == kvevent.Cleared:
		if p := w.pages; p != nil && ev.Attention == kvevent.FullAttention && ev.Tier != kvevent.AnyTier && ev.Tier <= kvevent.NumTiers {
			p.clearTier(w.plane(ev.Tier))
		}
		return x.applyBlocks(id, w, ev) // clears all pages, if it clears all tiers
	case ev.Kind == kvevent.Stored && ev.Attention != kvevent.FullAttention:
		w.strange = true
		return Result{Ignored: n}
	case ev.Kind != kvevent.Stored && ev.Kind != kvevent.Removed || !w.counts(ev):
		return Result{Ignored: n}
	case ev.Tier > kvevent.NumTiers || ev.HasParent && slices.Contains(ev.BlockHashes, ev.Parent):
		w.unknown = true
		return Result{Ignored: n}
	}
	x.setGroup(w, ev)
	if w.pages == nil {
		w.unknown = w.unknown || w.resident() > 0 // blocks whose pages are unknown
		w.paged = true
		w.pages = &pages{size: int(ev.BlockSize), per: x.block / int(ev.BlockSize), after: x.after,
			byHash: make(map[uint64]uint32), list: make([]enginePage, 1), mayGrow: true}
		w.pages.tokens = make([]uint32, w.pages.size+w.pages.after)
		x.noteFlags(id, w.flags())
	}
	p, plane := w.pages, w.plane(ev.Tier)
	p.blocks = p.blocks[:0]
	if ev.Kind == kvevent.Removed {
		for _, h := range ev.BlockHashes {
			if i := p.byHash[h]; i == 0 || p.list[i].tiers&(1<<plane) == 0 {
				res.Ignored++
			} else {
				p.remove(i, plane)
			}
		}
		if len(p.blocks) > 0 {
			out := p.event(ev, kvevent.Removed)
			for _, b := range p.blocks {
				out.BlockHashes = append(out.BlockHashes, p.list[b.page].hash)
			}
			res = res.plus(x.applyBlocks(id, w, out))
		}
		for _, h := range ev.BlockHashes {
			p.release(p.byHash[h])
		}
		return res
	}
	tokens := len(ev.TokenIDs)
	if ev.BlockSize != 0 && int(ev.BlockSize) != p.size || len(ev.LocalHashes)+len(ev.SequenceHashes) > 0 || tokens > 0 && !isPages(ev, p.size, p.after) {
		w.refused = w.refused || !isTail(ev, p.size)
		return Result{Ignored: n}
	}
	p.mayGrow = p.mayGrow && n == 1
	w.ahead = w.ahead || tokens > n*p.size+p.after
	if !p.store(ev, plane, maxPending(x)) {
		w.unknown = true
	}
	for at := 0; at < len(p.blocks); { // blocks that follow each other are one event
		out := p.event(ev, kvevent.Stored)
		first := &p.list[p.firstPage(p.blocks[at].page)]
		out.Tier, out.LoRA, out.Namespace = kvevent.Tier(p.blocks[at].plane+1), first.lora, first.namespace
		if out.HasParent = first.before != 0; out.HasParent {
			out.Parent = p.list[first.before].hash
		}
		for last, plane := uint32(0), p.blocks[at].plane; at < len(p.blocks); at++ {
			b := p.blocks[at]
			f := &p.list[p.firstPage(b.page)]
			if last != 0 && (b.plane != plane || f.before != last || f.lora != out.LoRA || f.namespace != out.Namespace) {
				break
			}
			p.appendBlock(out, b.page)
			last = b.page
		}
		res = res.plus(x.applyBlocks(id, w, out))
	}
	return res
}

func maxPending(x *Index) int {
	if x.opt.MaxPending > 0 {
		return x.opt.MaxPending
	}
	return 1 << 16
}

// plus returns the sum of two results.
func (r Result) plus(s Result) Result {
	return Result{r.Stored + s.Stored, r.Known + s.Known, r.Removed + s.Removed, r.Pending + s.Pending, r.Ignored + s.Ignored}
}

// event returns an event about blocks that ev changed; it is valid until the next call.
func (p *pages) event(ev *kvevent.Event, k kvevent.Kind) *kvevent.Event {
	o := &p.out
	*o = kvevent.Event{Kind: k, Tier: ev.Tier, Attention: ev.Attention, Group: ev.Group, Owner: ev.Owner,
		BlockHashes: o.BlockHashes[:0], TokenIDs: o.TokenIDs[:0], Objects: o.Objects[:0]}
	if k == kvevent.Stored {
		o.BlockSize = int32(p.size * p.per)
	}
	return o
}

// firstPage returns the first page of the block with the given last page, whose pages are all known.
func (p *pages) firstPage(i uint32) uint32 {
	for range p.per - 1 {
		i = p.list[i].before
	}
	return i
}

// appendBlock appends the block with the given last page to an event.
func (p *pages) appendBlock(o *kvevent.Event, last uint32) {
	o.TokenIDs = o.TokenIDs[:len(o.TokenIDs)-min(len(o.TokenIDs), p.after)] // the next block begins with them
	n := len(o.TokenIDs)
	o.TokenIDs = append(o.TokenIDs, make([]uint32, p.per*p.size+p.after)...)
	var objects []uint64
	i, stride := last, p.size+p.after
	copy(o.TokenIDs[n+p.per*p.size:], p.tokens[int(i)*stride+p.size:][:p.after])
	for k := p.per - 1; k >= 0; k-- {
		copy(o.TokenIDs[n+k*p.size:], p.tokens[int(i)*stride:][:p.size])
		for _, h := range p.list[i].objects {
			if !slices.Contains(objects, h) {
				objects = append(objects, h)
			}
		}
		i = p.list[i].before
	}
	o.BlockHashes = append(o.BlockHashes, p.list[last].hash)
	o.Objects = append(o.Objects, objects)
}

// page returns the page with a hash, a new absent one if there is none.
func (p *pages) page(h uint64) uint32 {
	if i := p.byHash[h]; i != 0 {
		return i
	}
	i := uint32(len(p.list))
	if n := len(p.free); n > 0 {
		i, p.free = p.free[n-1], p.free[:n-1]
	} else {
		p.list = append(p.list, enginePage{})
		p.tokens = append(p.tokens, p.tokens[:p.size+p.after]...)
	}
	p.list[i] = enginePage{hash: h, pos: -1}
	p.lost++
	p.byHash[h] = i
	return i
}

// store adds the pages of an event to a plane and sets p.blocks to the blocks that are now complete in it. It returns
// false if some were dropped: those with tokens that are unknown, with another page before than at first, or beyond the
// limit for pages whose position is unknown.
func (p *pages) store(ev *kvevent.Event, plane, limit int) bool {
	bit := uint8(1) << plane
	var before uint32
	ok := true
	p.fresh = p.fresh[:0] // pages from which blocks may be complete
	inEvent := false      // the page before belongs to the event and is new in the plane
	for n, h := range ev.BlockHashes {
		i := p.byHash[h]
		if len(ev.TokenIDs) == 0 {
			if i == 0 || !p.list[i].known {
				ok, inEvent = false, false
				continue
			}
		} else {
			if p.lost >= limit && (i == 0 || p.list[i].pos < 0) && (n > 0 && p.list[before].pos < 0 || n == 0 && ev.HasParent && p.byHash[ev.Parent] == 0) {
				ok = false
				break
			}
			if n == 0 && ev.HasParent {
				before = p.page(ev.Parent)
			}
			i = p.page(h)
			if e := &p.list[i]; !e.known {
				p.know(i, before, ev, n)
			} else if e.before != before {
				ok = false // another position for the hash
				break
			}
			before = i
		}
		e := &p.list[i]
		if e.tiers&bit != 0 {
			inEvent = false
			continue
		}
		e.tiers |= bit
		if !inEvent || e.pos == 0 || len(ev.TokenIDs) == 0 {
			p.fresh = append(p.fresh, i)
		}
		inEvent = true
	}
	for _, i := range p.fresh {
		p.complete(i, plane)
	}
	if ev.HasParent {
		p.release(p.byHash[ev.Parent]) // if no page was stored after it
	}
	return ok
}

// know sets the tokens of a page, which is number n of the event, and its position.
func (p *pages) know(i, before uint32, ev *kvevent.Event, n int) {
	e := &p.list[i]
	e.known, e.before, e.lora, e.namespace = true, before, ev.LoRA, ev.Namespace
	if n < len(ev.Objects) {
		e.objects = slices.Clone(ev.Objects[n])
	}
	copy(p.tokens[int(i)*(p.size+p.after):][:p.size+p.after], ev.TokenIDs[n*p.size:])
	pos := int16(0)
	if before != 0 {
		b := &p.list[before]
		e.younger = b.child
		if b.child != 0 {
			p.list[b.child].older = i
		}
		b.child = i
		if b.pos < 0 {
			return
		}
		pos = p.follow(b.pos)
	}
	// Pages that waited for it have a position now.
	e.pos = pos
	p.lost--
	todo := append(p.todo[:0], i)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for c := p.list[at].child; c != 0; c = p.list[c].younger {
			if p.list[c].pos < 0 {
				p.list[c].pos = p.follow(p.list[at].pos)
				p.lost--
				todo = append(todo, c)
			}
		}
	}
	p.todo = todo
}

// follow returns the position after pos.
func (p *pages) follow(pos int16) int16 {
	if int(pos) == p.per-1 {
		return 0
	}
	return pos + 1
}

// complete appends the blocks with page i that are complete in a plane to p.blocks, and blocks after them that waited for
// them. A block waits while the one before it is in no tier, because the index does not know its position then.
func (p *pages) complete(i uint32, plane int) {
	if p.list[i].pos < 0 {
		return
	}
	for at := i; p.list[at].pos > 0; { // the pages before it in the block
		if at = p.list[at].before; p.list[at].tiers&(1<<plane) == 0 {
			return
		}
	}
	todo := append(p.ready[:0], inPlane{i, plane})
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		e, bit := &p.list[at.page], uint8(1)<<at.plane
		if e.tiers&bit == 0 {
			continue
		}
		if int(e.pos) < p.per-1 {
			for c := e.child; c != 0; c = p.list[c].younger {
				todo = append(todo, inPlane{c, at.plane})
			}
			continue
		}
		before := p.list[p.firstPage(at.page)].before
		if e.announced&bit != 0 || before != 0 && p.list[before].announced == 0 {
			continue
		}
		if e.announced == 0 {
			for c := e.child; c != 0; c = p.list[c].younger {
				for plane := range kvevent.NumTiers {
					todo = append(todo, inPlane{c, plane})
				}
			}
		}
		e.announced |= bit
		p.blocks = append(p.blocks, at)
	}
	p.ready = todo
}

// remove removes page i from a plane and appends the blocks that it ends to p.blocks.
func (p *pages) remove(i uint32, plane int) {
	bit := uint8(1) << plane
	p.list[i].tiers &^= bit
	if p.list[i].pos < 0 {
		return
	}
	todo := append(p.todo[:0], i)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		e := &p.list[at]
		if int(e.pos) == p.per-1 {
			if e.announced&bit != 0 {
				e.announced &^= bit
				p.blocks = append(p.blocks, inPlane{at, plane})
			}
			continue
		}
		for c := e.child; c != 0; c = p.list[c].younger {
			todo = append(todo, c)
		}
	}
	p.todo = todo
}

// release forgets page i, and those before it, if they are in no tier and no page follows. i may be 0.
func (p *pages) release(i uint32) {
	for i != 0 {
		e := &p.list[i]
		if e.tiers != 0 || e.child != 0 {
			return
		}
		before := e.before
		switch {
		case e.older != 0:
			p.list[e.older].younger = e.younger
		case before != 0:
			p.list[before].child = e.younger
		}
		if e.younger != 0 {
			p.list[e.younger].older = e.older
		}
		if e.pos < 0 {
			p.lost--
		}
		delete(p.byHash, e.hash)
		*e = enginePage{}
		p.free = append(p.free, i)
		i = before
	}
}

// clearTier removes all pages from a plane.
func (p *pages) clearTier(plane int) {
	bit := uint8(1) << plane
	for i := range p.list {
		p.list[i].tiers &^= bit
		p.list[i].announced &^= bit
	}
	for i := 1; i < len(p.list); i++ {
		if e := &p.list[i]; e.known || e.hash != 0 {
			if p.byHash[e.hash] == uint32(i) {
				p.release(uint32(i))
			}
		}
	}
}
