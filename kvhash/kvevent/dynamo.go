// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// RouterEvents of Dynamo, as serde encodes the types of lib/kv-router/src/protocols.rs (2026-08) with field names:
// {worker_id, storage_tier, residency_domain, event: {event_id, dp_rank, data: {"stored": {...}} | {"removed": {...}} |
// "cleared"}, state_source}. The source is a CacheOwnerId since 1.6.1.

// planeVersion begins the envelope of a message of Dynamo's event plane; its length follows in 4 bytes, big-endian.
const planeVersion = 1

// planeFrames decodes a message of Dynamo's event plane over ZMQ, as of Dynamo 1.6: the topic, the publisher's ID and
// the number of the message, 8 bytes each, and the envelope {publisher_id, sequence, published_at, topic, payload}.
func (d *Decoder) planeFrames(dst []Batch, frames [][]byte) ([]Batch, error) {
	if len(frames) != 4 {
		return dst, &DecodeError{Offset: -1, reason: "message of " + strconv.Itoa(len(frames)) + " frames instead of 4"}
	}
	for _, f := range frames[1:3] {
		if len(f) != 8 {
			return dst, &DecodeError{Offset: -1, reason: "number of " + strconv.Itoa(len(f)) + " bytes instead of 8"}
		}
	}
	d.topic = d.names.get(frames[0])
	b := frames[3]
	if len(b) < 5 || b[0] != planeVersion || uint64(binary.BigEndian.Uint32(b[1:])) != uint64(len(b)-5) {
		return dst, &DecodeError{Offset: -1, reason: "no envelope of version 1 in a message of " + strconv.Itoa(len(b)) + " bytes"}
	}
	r := reader{buf: b[5:]}
	v := r.next()
	if v.kind != mapKind {
		return dst, &DecodeError{Offset: -1, reason: "an envelope that is not a map"}
	}
	at, _ := r.places(v.n, "payload")
	payload := r.read(at[0])
	if !r.ok() || payload.kind != binKind {
		return dst, &DecodeError{Offset: -1, reason: "an envelope without a payload"}
	}
	return d.Append(dst, payload.raw)
}

// dynamoEvent reads one event, a map of n pairs. The value of "event" may also be sent alone, as a KvCacheEvent.
func (d *Decoder) dynamoEvent(dst []Batch, n int) []Batch {
	r := &d.r
	at, unknown := r.places(n, "worker_id", "storage_tier", "residency_domain", "event", "state_source", "event_id", "dp_rank", "data")
	d.counts.Fields += uint64(unknown)
	end := r.pos
	var b Batch
	if w := r.read(at[0]); w.kind == intKind {
		b.Worker = w.num
	}
	inner := [3]int{at[5], at[6], at[7]}
	if v := r.read(at[3]); v.kind == mapKind {
		at, unknown := r.places(v.n, "event_id", "dp_rank", "data")
		d.counts.Fields += uint64(unknown)
		copy(inner[:], at[:])
	}
	id := r.read(inner[0])
	if !r.ok() || id.kind != intKind || id.neg {
		d.unnumbered(end)
		return dst
	}
	b.Seq, b.DPRank = id.num, rank(r.read(inner[1]))
	start := len(d.events)
	m := d.mark()
	tier := r.read(at[1])
	ev := Event{}
	var known bool
	ev.Tier, known = tierOf(tier.raw)
	if domain := r.read(at[2]); string(domain.raw) == "cache_owner" {
		// The store is the owner, not the worker.
		owner, ok := d.cacheOwner(at[4])
		ev.Owner, known = owner, known && ok
	} else if at[2] != 0 && string(domain.raw) != "worker" {
		known = false // the owner of the blocks is unknown
	}
	if !known {
		d.counts.Elsewhere++
	}
	return d.lone(dst, b, start, m, end, !known || d.dynamoData(ev, inner[2]))
}

// cacheOwner reads the state_source of an event and returns it in the form in which Dynamo prints a CacheOwnerId (lib/kv-router/src/identity.rs
// of 1.6.1): cache semantics, routing scope, data center and slot, in hexadecimal. It returns "cache_owner" if the event has no source, and
// false if the source has an unknown form.
func (d *Decoder) cacheOwner(at int) (owner string, ok bool) {
	r := &d.r
	s := r.read(at)
	switch s.kind {
	case nilKind:
		return "cache_owner", true
	case stringKind:
		return d.names.get(s.raw), true
	case mapKind:
	default:
		return "", false
	}
	source, _ := r.places(s.n, "pool", "slot")
	pool, ok1 := r.readMap(source[0], "indexer_domain", "dc_id")
	domain, ok2 := r.readMap(pool[0], "cache_semantics", "routing_scope")
	dc := r.read(pool[1])
	if !ok1 || !ok2 || dc.kind != intKind || dc.neg {
		return "", false
	}
	var buf [128]byte
	b, ok1 := r.appendDigest(buf[:0], domain[0])
	b, ok2 = r.appendDigest(append(b, ':'), domain[1])
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], dc.num)
	b, ok3 := r.appendDigest(append(hex.AppendEncode(append(b, '/'), number[:]), '/'), source[1])
	return d.names.get(b), ok1 && ok2 && ok3
}

// readMap reads the map at a position returned by places and returns where the values of the given keys begin.
func (r *reader) readMap(at int, names ...string) (places [maxNames]int, ok bool) {
	v := r.read(at)
	if v.kind != mapKind {
		return places, false
	}
	places, _ = r.places(v.n, names...)
	return places, true
}

// appendDigest appends the digest of the map {digest, source} at a position, in hexadecimal.
func (r *reader) appendDigest(dst []byte, at int) ([]byte, bool) {
	places, _ := r.readMap(at, "digest")
	v := r.read(places[0])
	if v.kind == binKind {
		return hex.AppendEncode(dst, v.raw), true
	}
	if v.kind != arrayKind || v.n != 16 {
		return dst, false
	}
	for range v.n {
		b := r.next()
		if b.kind != intKind || b.neg || b.num > 0xff {
			return dst, false
		}
		dst = hex.AppendEncode(dst, []byte{byte(b.num)})
	}
	return dst, true
}

// dynamoData reads the data of an event. It returns false if the data is invalid.
func (d *Decoder) dynamoData(ev Event, at int) bool {
	r := &d.r
	v := r.read(at)
	name := v.raw
	if v.kind == mapKind {
		if v.n != 1 {
			return false
		}
		name = r.next().raw
	}
	switch {
	case equalFold(name, "CLEARED"):
		ev.Tier = AnyTier // the value is a placeholder
		d.addCleared(ev)
		return true
	case v.kind != mapKind && v.kind != stringKind:
		return false
	case equalFold(name, "STORED"), equalFold(name, "REMOVED"):
	default:
		d.counts.Unknown++
		return true
	}
	fields := value{}
	if v.kind == mapKind {
		fields = r.next()
	}
	if fields.kind != mapKind {
		return false
	}
	places, unknown := r.places(fields.n, "block_hashes", "parent_hash", "blocks", "start_position")
	d.counts.Fields += uint64(unknown)
	m := d.mark()
	if equalFold(name, "REMOVED") {
		if places[0] == 0 {
			return false
		}
		r.pos = places[0]
		ev.Kind = Removed
		if !d.hashList() {
			return false
		}
		ev.BlockHashes = d.hashes[m.hashes:len(d.hashes):len(d.hashes)]
	} else {
		ev.Kind = Stored
		if p := r.read(places[1]); p.kind != nilKind {
			if ev.Parent, ev.HasParent = d.hash(p); !ev.HasParent {
				return false
			}
		}
		if !d.dynamoBlocks(&ev, r.read(places[2])) {
			return false
		}
	}
	if len(ev.BlockHashes) > 0 {
		d.add(ev)
	}
	return true
}

// dynamoBlocks reads the blocks of a Stored event. The token hashes already include objects.
func (d *Decoder) dynamoBlocks(ev *Event, v value) bool {
	r := &d.r
	if v.kind != arrayKind {
		return false
	}
	if v.n > d.maxBlocks {
		r.fail("too many blocks", ErrLimit)
		return false
	}
	m := len(d.hashes)
	// Hashes of blocks and of tokens alternate. They are separated at the end: first n of one, then n of the other.
	n := v.n
	for range n {
		d.hashes = append(d.hashes, 0, 0) // n <= the payload's length
	}
	for i := range n {
		b := r.next()
		if b.kind != mapKind {
			return false
		}
		at, unknown := r.places(b.n, "block_hash", "tokens_hash", "mm_extra_info")
		d.counts.Fields += uint64(unknown)
		end := r.pos
		block, ok1 := d.hash(r.read(at[0]))
		tokens, ok2 := d.hash(r.read(at[1]))
		if !ok1 || !ok2 {
			return false
		}
		d.hashes[m+i], d.hashes[m+n+i] = block, tokens
		r.pos = end
	}
	ev.BlockHashes = d.hashes[m : m+n : m+n]
	ev.LocalHashes = d.hashes[m+n : m+2*n : m+2*n]
	return r.ok()
}
