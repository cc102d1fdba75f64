// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"cmp"
	"math"
)

// Events of TensorRT-LLM, as KVCacheEventSerializer (tensorrt_llm/_utils.py, 2025 to 2026) makes dicts of them. Cache
// levels are 0 for the device and 1 for the host; 2 and 3 are treated as disk and remote. The second cache manager
// (runtime/kv_cache_manager_v2, _event_manager.py, 2026) may write hashes, and tokens that represent a part of an
// object, as strings of hexadecimal digits.

// trtEvent reads one event, a map of n pairs.
func (d *Decoder) trtEvent(dst []Batch, n int) []Batch {
	r := &d.r
	at, unknown := r.places(n, "event_id", "data", "window_size", "attention_dp_rank", "layer_group_id", "hash_algo")
	d.counts.Fields += uint64(unknown)
	end := r.pos
	id := r.read(at[0])
	if !r.ok() || id.kind != intKind || id.neg {
		d.unnumbered(end)
		return dst
	}
	start := len(d.events)
	ev := Event{}
	if w := r.read(at[2]); w.kind == intKind && !w.neg {
		// Each length of window is a cache of its own, the longest the one of full attention.
		if w.num >= d.maxWindow {
			d.maxWindow = w.num
		} else {
			ev.Attention = SlidingWindow
		}
	}
	b := Batch{Seq: id.num, DPRank: rank(r.read(at[3]))}
	if g := r.read(at[4]); g.kind == intKind && g.num <= math.MaxInt32 {
		ev.Group = int32(g.num)
	}
	m := d.mark()
	data := r.read(at[1])
	return d.lone(dst, b, start, m, end, data.kind == mapKind && d.trtData(data.n, ev))
}

// trtData reads what an event is about; false if it makes no sense.
func (d *Decoder) trtData(n int, ev Event) bool {
	r := &d.r
	at, unknown := r.places(n, "type", "block_hashes", "block_hash", "cache_level", "parent_hash", "blocks", "lora_name", "cache_salt",
		"priority", "num_blocks_per_cache_level")
	d.counts.Fields += uint64(unknown)
	typ := r.read(at[0])
	if typ.kind != stringKind {
		return false
	}
	switch string(typ.raw) {
	case "created":
	case "removed":
		if at[1] == 0 {
			return false
		}
		r.pos = at[1]
		return d.trtRemoved(ev)
	case "updated":
		h, ok := d.hash(r.read(at[2]))
		return ok && d.trtUpdated(ev, h, at[3])
	case "stored":
		var ok, good bool
		if p := r.read(at[4]); p.kind != nilKind {
			if ev.Parent, ev.HasParent = d.hash(p); !ev.HasParent {
				return false
			}
		}
		ev.LoRA, ok = d.label(r.read(at[6]))
		ev.Namespace, good = d.namespace(r.read(at[7]))
		blocks := r.read(at[5])
		return ok && good && blocks.kind == arrayKind && d.trtStored(ev, blocks.n)
	default:
		d.counts.Unknown++
	}
	return true
}

// trtRemoved reads the hashes of blocks that are gone. The event does not specify the level: the block is removed from
// every level.
func (d *Decoder) trtRemoved(ev Event) bool {
	m := len(d.hashes)
	if !d.hashList() {
		return false
	}
	ev.Kind = Removed
	ev.BlockHashes = d.hashes[m:]
	for _, h := range ev.BlockHashes {
		delete(d.partial, h) // a removal of what was left out does no harm
	}
	ev.BlockHashes = ev.BlockHashes[:len(ev.BlockHashes):len(ev.BlockHashes)]
	if len(ev.BlockHashes) == 0 {
		return true
	}
	for ev.Tier = Device; ev.Tier <= d.maxLevel; ev.Tier++ {
		d.add(ev)
	}
	return true
}

// trtUpdated reads a change of a block; only a change of its level matters.
func (d *Decoder) trtUpdated(ev Event, h uint64, at int) bool {
	r := &d.r
	v := r.read(at)
	if v.kind != mapKind {
		return v.kind == nilKind
	}
	if _, ok := d.partial[h]; ok {
		return true
	}
	diff, _ := r.places(v.n, "old_value", "new_value")
	from, ok1 := d.level(r.read(diff[0]))
	to, ok2 := d.level(r.read(diff[1]))
	if !ok1 || !ok2 {
		return false
	}
	d.hashes = append(d.hashes, h)
	n := len(d.hashes)
	ev.BlockHashes = d.hashes[n-1 : n : n]
	// First there, then gone here: a block is never nowhere.
	ev.Kind, ev.Tier = Stored, to
	d.add(ev)
	ev.Kind, ev.Tier = Removed, from
	if from != to {
		d.add(ev)
	}
	return true
}

// level returns the tier of a cache level.
func (d *Decoder) level(v value) (Tier, bool) {
	if v.kind == nilKind {
		return Device, true
	}
	if v.kind != intKind || v.num >= NumTiers {
		return 0, false
	}
	t := Device + Tier(v.num)
	d.maxLevel = max(d.maxLevel, t)
	return t, true
}

// trtStored reads n blocks. Those that follow each other in one tier, for one adapter and salt, become an event; one
// that is not whole ends the prompt. The event's adapter and salt apply to blocks without their own.
func (d *Decoder) trtStored(ev Event, n int) bool {
	if n > d.maxBlocks {
		d.r.fail("too many blocks", ErrLimit)
		return false
	}
	r := &d.r
	ev.Kind, ev.BlockSize = Stored, int32(d.opt.BlockSize)
	all := ev
	m := d.mark()
	first := m
	flush := func() {
		if len(d.hashes) == m.hashes {
			return
		}
		hashes := d.hashes[m.hashes:]
		ev.BlockHashes = hashes[:len(hashes):len(hashes)]
		ev.TokenIDs = d.tokens[m.tokens:len(d.tokens):len(d.tokens)]
		ev.Objects = d.objects[m.objects:len(d.objects):len(d.objects)]
		if len(ev.Objects) == 0 {
			ev.Objects = nil
		}
		d.add(ev)
		ev.Parent, ev.HasParent = hashes[len(hashes)-1], true
		m = d.mark()
	}
	ended := false
	for i := 0; i < n && r.ok(); i++ {
		v := r.next()
		if v.kind != mapKind {
			return false
		}
		at, unknown := r.places(v.n, "block_hash", "tokens", "cache_level", "mm_keys", "cache_salt", "lora_name", "lora_id", "type", "priority")
		d.counts.Fields += uint64(unknown)
		end := r.pos
		h, ok := d.hash(r.read(at[0]))
		tier, known := d.level(r.read(at[2]))
		salt, ok1 := d.namespace(r.read(at[4]))
		lora, ok2 := d.label(r.read(at[5]))
		number, ok3 := d.label(r.read(at[6]))
		if !ok || !known || !ok1 || !ok2 || !ok3 {
			return false
		}
		salt, lora = cmp.Or(salt, all.Namespace), cmp.Or(lora, all.LoRA, number)
		if tier != ev.Tier && ev.Tier != 0 || salt != ev.Namespace || lora != ev.LoRA {
			flush()
		}
		ev.Tier, ev.Namespace, ev.LoRA = tier, salt, lora
		t := d.mark()
		if !d.trtTokens(m.objects, len(d.hashes)-m.hashes, r.read(at[1]), at[3] == 0) {
			return false
		}
		if len(d.tokens)-first.tokens > d.maxTokens {
			r.fail("too many tokens", ErrLimit)
			return false
		}
		count := len(d.tokens) - t.tokens
		if ev.BlockSize == 0 {
			ev.BlockSize = int32(count)
		}
		switch {
		case ended || count < int(ev.BlockSize) || count == 0:
			ended = true
			d.back(t)
			d.counts.Partial++
			d.remember(h)
		case count > int(ev.BlockSize):
			return false
		default:
			delete(d.partial, h)
			d.trtObjects(m.objects, len(d.hashes)-m.hashes, r.read(at[3]))
			d.hashes = append(d.hashes, h)
		}
		if r.ok() {
			r.pos = end
		}
	}
	flush()
	return r.ok()
}

// trtTokens reads the tokens of a block: maps, or plain numbers. A token's extra id names the content at its position;
// it is treated as an object unless the block specifies otherwise. A token that is a digest is an object, too, and
// token 0: a prompt made of the engine's tokens for it is not found, rather than found by mistake.
func (d *Decoder) trtTokens(first, block int, v value, extra bool) bool {
	r := &d.r
	if v.kind != arrayKind {
		return v.kind == nilKind
	}
	last := uint64(0)
	for range v.n {
		t := r.next()
		if t.kind == mapKind {
			at, _ := r.places(t.n, "token_id", "token_extra_id")
			end := r.pos
			t = r.read(at[0])
			if x := r.read(at[1]); extra && x.kind == intKind && x.num != last {
				if last = x.num; last != 0 {
					d.objectAt(first, block, last)
				}
			}
			if r.ok() {
				r.pos = end
			}
		}
		if t.kind == stringKind {
			d.objectAt(first, block, objectHash(t.raw))
			t = value{kind: intKind}
		}
		id, ok := t.token()
		if !ok {
			return false
		}
		d.tokens = append(d.tokens, id)
	}
	return true
}

// trtObjects reads the objects of a block: maps with a hash, or pairs of hash and offset.
func (d *Decoder) trtObjects(first, block int, v value) {
	r := &d.r
	if v.kind != arrayKind {
		return
	}
	for i := 0; i < v.n && r.ok(); i++ {
		k := r.next()
		switch k.kind {
		case mapKind:
			at, _ := r.places(k.n, "hash")
			end := r.pos
			if id := r.read(at[0]); id.kind == stringKind {
				d.objectAt(first, block, objectHash(id.raw))
			}
			if r.ok() {
				r.pos = end
			}
		case arrayKind:
			if k.n == 0 {
				continue
			}
			if id := r.next(); id.kind == stringKind {
				d.objectAt(first, block, objectHash(id.raw))
			} else {
				r.rest(id)
			}
			r.skipN(k.n - 1)
		}
	}
}

// remember records the hash of a block that was left out, so that later events about it are left out too.
func (d *Decoder) remember(h uint64) {
	if d.partial == nil {
		d.partial = make(map[uint64]struct{})
	}
	if len(d.partial) >= 1<<16 {
		clear(d.partial) // a removal of what is not known does no harm
	}
	d.partial[h] = struct{}{}
}
