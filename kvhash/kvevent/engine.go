// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
)

// Batches of vLLM and SGLang. Sources: vllm/distributed/kv_events.py from 0.8 (arrays) to 0.26 and later (maps), SGLang's
// disaggregation/kv_events.py (2025 to 2026-08), Dynamo's lib/kv-router/src/zmq_wire (2026-08) for the tuples that it accepts;
// remaining_copy_counts is vLLM's PR 48933 (2026-09, open).

// field identifies the meaning of a value in an event.
type field uint8

const (
	noField field = iota
	fType
	fHashes
	fParent
	fTokens
	fBlockSize
	fLoRAID
	fMedium
	fLoRA
	fExtraKeys
	fGroup
	fAttention
	fWindow
	fLocality
	fOwner
	fSession // has no information about blocks
	fSalt
	fObjects
	fCopies  // of a removal: how many copies of each block remain
	fOffsets // the blocks of the tokens that the hashes name, if some have none
	fAfter   // for each hash, the tokens after its block that it covers
	fTail    // in a tuple: identified by the value's type
)

// storedFields and removedFields are the fields of an event that is an array, by index.
var (
	storedFields = [...]field{fType, fHashes, fParent, fTokens, fBlockSize, fLoRAID, fMedium, fLoRA, fExtraKeys,
		fGroup, fAttention, fWindow, fLocality, fOwner, fSession}
	removedFields = [...]field{fType, fHashes, fMedium, fGroup, fTail, fTail, fTail, fTail}
	clearedFields = [...]field{fType, fOwner}
)

// fieldOf returns the field of a key of an event that is a map.
func fieldOf(key []byte) field {
	switch string(key) {
	case "type":
		return fType
	case "block_hashes":
		return fHashes
	case "parent_block_hash":
		return fParent
	case "token_ids":
		return fTokens
	case "block_size":
		return fBlockSize
	case "lora_id":
		return fLoRAID
	case "medium":
		return fMedium
	case "lora_name":
		return fLoRA
	case "extra_keys":
		return fExtraKeys
	case "group_idx":
		return fGroup
	case "kv_cache_spec_kind", "component_type":
		return fAttention
	case "kv_cache_spec_sliding_window":
		return fWindow
	case "locality":
		return fLocality
	case "ownership", "source_kind":
		return fOwner
	case "session_id", "event_version":
		return fSession
	case "cache_salt":
		return fSalt
	case "block_mm_infos":
		return fObjects
	case "remaining_copy_counts":
		return fCopies
	case "block_offsets":
		return fOffsets
	case "lookahead_token_ids":
		return fAfter
	}
	return noField
}

// fieldNames are the names of fields in errors. Elements of tuples that have several meanings have none.
var fieldNames = map[field]string{fType: "type", fHashes: "block_hashes", fParent: "parent_block_hash", fTokens: "token_ids", fBlockSize: "block_size",
	fLoRAID: "lora_id", fMedium: "medium", fLoRA: "lora_name", fExtraKeys: "extra_keys", fGroup: "group_idx", fAttention: "kv_cache_spec_kind",
	fWindow: "kv_cache_spec_sliding_window", fLocality: "locality", fOwner: "ownership", fSession: "session_id", fSalt: "cache_salt",
	fObjects: "block_mm_infos", fCopies: "remaining_copy_counts", fOffsets: "block_offsets", fAfter: "lookahead_token_ids"}

// raw is an event that is being decoded. Its lists are in the decoder's memory, from its mark on.
type raw struct {
	mark
	kind    Kind // 0 if unknown
	typed   bool // the event has a type, known or unknown
	tuple   bool
	bad     field // the first whose value is invalid
	hashed  bool  // the event has hashes
	hashEnd int
	pairs   bool // the tokens were pairs

	parent    uint64
	hasParent bool
	blockSize uint64
	loraID    string
	lora      string
	salt      string
	tier      Tier
	elsewhere bool // in an unknown medium
	remote    bool
	owner     string
	group     int32
	spec      []byte
	window    int32
	extraKeys int  // their position, or 0 if absent
	copies    int  // position of the counts, or 0 if absent
	after     int  // position of the tokens after the blocks, or 0 if absent
	sparse    bool // d.offsets has the blocks that the hashes name
	shift     int  // a tuple has so many values that vLLM's do not have
}

// engineBatch reads a batch of vLLM or SGLang and appends it to dst.
func (d *Decoder) engineBatch(dst []Batch) []Batch {
	r := &d.r
	var b Batch
	start := len(d.events)
	switch v := r.next(); v.kind {
	case arrayKind:
		if v.n < 2 {
			r.fail("a batch without events", nil)
		}
		for i := 0; i < v.n && r.ok(); i++ {
			switch i {
			case 0:
				b.Time = seconds(d.scalar())
			case 1:
				d.engineEvents()
			case 2:
				b.DPRank = rank(d.scalar())
			default:
				r.skip()
				d.counts.Fields++
			}
		}
	case mapKind:
		events := false
		for i := 0; i < v.n && r.ok(); i++ {
			key := r.next()
			r.rest(key)
			switch string(key.raw) {
			case "ts":
				b.Time = seconds(d.scalar())
			case "events":
				d.engineEvents()
				events = true
			case "data_parallel_rank", "attn_dp_rank", "dp_rank":
				b.DPRank = rank(d.scalar())
			default:
				r.skip()
				d.counts.Fields++
			}
		}
		if !events {
			r.fail("a batch without events", nil)
		}
	default:
		r.fail("no batch", nil)
	}
	if !r.ok() {
		b.Time = time.Time{} // its rank may be unknown, and its time must not indicate a restart of the rank that it is assigned to
	}
	return d.deliver(dst, b, start)
}

// scalar reads a value and skips its elements.
func (d *Decoder) scalar() value {
	v := d.r.next()
	d.r.rest(v)
	return v
}

func (d *Decoder) engineEvents() {
	v := d.r.next()
	if v.kind != arrayKind {
		d.r.rest(v)
		d.malformed("events are not an array")
		return
	}
	for i := 0; i < v.n && d.r.ok(); i++ {
		d.engineEvent()
	}
}

// malformed counts the event that is being read as invalid.
func (d *Decoder) malformed(reason ...string) {
	if d.r.ok() {
		d.counts.Malformed++
		d.damaged = true
		if d.fault == nil {
			d.fault = &DecodeError{Offset: int64(d.at), reason: strings.Join(reason, "")}
		}
	}
}

// engineEvent reads one event, an array or a map.
func (d *Decoder) engineEvent() {
	r := &d.r
	e := raw{mark: d.mark()}
	d.at = r.pos
	switch v := r.next(); v.kind {
	case arrayKind:
		e.tuple = true
		for i := 0; i < v.n && r.ok(); i++ {
			f := position(e.kind, i-e.shift)
			if e.kind == Stored && f >= fGroup && r.peek() == arrayKind {
				f = fObjects // between the others in tuples that Dynamo adds to
				e.shift++
			}
			d.field(&e, f)
		}
	case mapKind:
		for i := 0; i < v.n && r.ok(); i++ {
			key := r.next()
			r.rest(key)
			d.field(&e, fieldOf(key.raw))
		}
	}
	if !r.ok() {
		return
	}
	end := r.pos
	if !d.finish(&e) {
		d.back(e.mark)
	}
	if r.ok() {
		r.pos = end
	}
}

// kindOf returns the kind of a type of event, or 0 if it is unknown.
func kindOf(name []byte) Kind {
	switch string(name) {
	case "BlockStored":
		return Stored
	case "BlockRemoved":
		return Removed
	case "AllBlocksCleared":
		return Cleared
	}
	return 0
}

// position returns the field at an index of an event that is an array.
func position(k Kind, i int) field {
	all := clearedFields[:]
	switch k {
	case Stored:
		all = storedFields[:]
	case Removed:
		all = removedFields[:]
	}
	if i == 0 {
		return fType
	}
	if k == 0 || i >= len(all) {
		return noField
	}
	return all[i]
}

// field reads the value of a field. A value of the wrong type is skipped; it makes the event invalid.
func (d *Decoder) field(e *raw, f field) {
	r := &d.r
	at := r.pos
	if !d.readField(e, f) && r.ok() {
		e.bad = cmp.Or(e.bad, f)
		r.pos = at
		r.skip()
	}
}

// readField reads the value of a field; false if it has the wrong type.
func (d *Decoder) readField(e *raw, f field) (ok bool) {
	r := &d.r
	switch f {
	case fHashes:
		d.hashes = d.hashes[:e.mark.hashes]
		e.hashed = true
		ok = d.hashList()
		e.hashEnd = len(d.hashes)
		return ok
	case fTokens:
		d.tokens = d.tokens[:e.mark.tokens]
		e.pairs, ok = d.tokenList()
		return ok
	case fExtraKeys:
		if d.format == SGLang && e.tuple && r.peek() != arrayKind {
			r.skip() // SGLang has none: its tuple has the session here
			return true
		}
		e.extraKeys = r.pos // decoded at the end, because the adapter's name is needed
		r.skip()
		return true
	case fCopies:
		e.copies = r.pos // decoded at the end, because the hashes may come later
		r.skip()
		return true
	case fOffsets:
		return d.offsetList(e)
	case fAfter:
		e.after = r.pos // decoded at the end, because the tokens may come later
		r.skip()
		return true
	case fObjects:
		d.objects, d.keys = d.objects[:e.mark.objects], d.keys[:e.mark.keys]
		return d.objectInfos(e)
	}
	v := r.next()
	switch f {
	case fType:
		if v.kind != stringKind {
			return false
		}
		e.kind, e.typed = kindOf(v.raw), true
		return true
	case fSession:
		r.rest(v)
		return true
	case fLoRA:
		if v.kind == mapKind { // SGLang's tuple has a map of metadata here
			for i := 0; i < v.n && r.ok(); i++ {
				key := r.next()
				r.rest(key)
				f := fieldOf(key.raw)
				if f != fSalt && f != fAttention {
					f = noField
				}
				d.field(e, f)
			}
			return true
		}
		if d.format == SGLang && e.tuple {
			e.salt, ok = d.namespace(v)
			return ok
		}
		e.lora, ok = d.label(v)
		return ok
	case noField:
		r.rest(v)
		d.counts.Fields++
		return true
	}
	if v.kind == nilKind {
		return true
	}
	switch f {
	case fParent:
		e.parent, e.hasParent = d.hash(v)
		return e.hasParent
	case fBlockSize:
		e.blockSize = v.num
		return v.kind == intKind && !v.neg && v.num <= math.MaxInt32
	case fLoRAID:
		e.loraID, ok = d.label(v)
		return ok
	case fMedium:
		e.tier, ok = tierOf(v.raw)
		e.elsewhere = e.elsewhere || !ok
		return v.kind == stringKind
	case fSalt:
		e.salt, ok = d.namespace(v)
		return ok
	case fGroup:
		if e.tuple && v.kind == stringKind { // the kind, as Dynamo's tuples omit absent fields
			e.spec = v.raw
			return true
		}
		e.group = int32(v.num)
		return v.kind == intKind && !v.neg && v.num <= math.MaxInt32
	case fAttention, fWindow:
		if v.kind == intKind && (f == fWindow || e.shift > 0 || e.tuple && len(e.spec) > 0) { // Dynamo's tuples omit absent fields
			e.window = int32(min(v.num, math.MaxInt32))
			if v.neg {
				e.window = 0
			}
			return true
		}
		e.spec = v.raw
		return f == fAttention && v.kind == stringKind
	case fLocality:
		e.remote = equalFold(v.raw, "REMOTE")
		return v.kind == stringKind && (e.remote || equalFold(v.raw, "LOCAL"))
	case fOwner:
		e.owner, ok = d.label(v)
		return ok
	case fTail: // the fields after a removal's group: kind, window (Dynamo), locality, owner; strings are distinguished by their values
		switch {
		case v.kind != stringKind:
			r.rest(v)
		case equalFold(v.raw, "REMOTE"):
			e.remote = true
		case equalFold(v.raw, "LOCAL"):
		case attentionOf(v.raw) != OtherAttention || bytes.HasSuffix(v.raw, []byte("_attention")):
			e.spec = v.raw
		default:
			e.owner = d.names.get(v.raw)
		}
		return true
	}
	return false
}

// finish adds the event that was read. It returns false if the event is invalid.
func (d *Decoder) finish(e *raw) bool {
	switch {
	case e.kind == 0 && e.typed:
		d.counts.Unknown++
		return false
	case !e.typed:
		d.malformed("event without a type")
		return false
	case e.bad != noField:
		d.malformed(e.kind.wire(), ": ", fieldNames[e.bad], " has an invalid value")
		return false
	case e.kind != Cleared && !e.hashed:
		d.malformed(e.kind.wire(), " without block_hashes")
		return false
	case e.elsewhere:
		d.counts.Elsewhere++
		return false
	}
	if e.remote {
		e.tier = Remote
	}
	ev := Event{Kind: e.kind, Tier: e.tier, Group: e.group, Attention: attentionOf(e.spec), Owner: e.owner}
	if len(e.spec) == 0 && e.window > 0 {
		ev.Attention = SlidingWindow
	}
	if e.kind == Cleared {
		d.addCleared(ev)
		return true
	}
	hashes := d.hashes[e.mark.hashes:e.hashEnd:e.hashEnd]
	if e.kind == Stored {
		ev.BlockSize = int32(e.blockSize)
		if ev.Attention == SlidingWindow {
			ev.Window = e.window
		}
		ev.Parent, ev.HasParent = e.parent, e.hasParent
		ev.LoRA, ev.Namespace = e.lora, e.salt
		if ev.LoRA == "" {
			ev.LoRA = e.loraID
		}
		var why string
		if hashes, why = d.fit(e, &ev, hashes); why != "" {
			d.malformed("BlockStored: ", why)
			return false
		}
		if e.after > 0 && len(ev.TokenIDs) > 0 && !e.pairs {
			d.r.pos = e.after
			if !d.tokensAfter(e, &ev, len(hashes)) {
				d.malformed("BlockStored: lookahead_token_ids has an invalid value")
				return false
			}
		}
		if e.extraKeys > 0 {
			d.r.pos = e.extraKeys
			if !d.extraKeys(e, &ev, len(hashes)) {
				d.malformed("BlockStored: extra_keys has an invalid value")
				return false
			}
		}
		if o := d.objects[e.mark.objects:]; len(o) > 0 && len(ev.TokenIDs) > 0 {
			ev.Objects = o[:min(len(o), len(hashes)):min(len(o), len(hashes))]
		}
		ev.RootNamespace = d.format == VLLM && len(ev.TokenIDs) > 0 && (ev.HasParent || ev.Namespace != "")
	}
	if e.kind == Removed && e.copies > 0 {
		var ok bool
		d.r.pos = e.copies
		if hashes, ev.NoCopies, ok = d.lastCopies(hashes); !ok {
			d.malformed("BlockRemoved: remaining_copy_counts has an invalid value")
			return false
		}
	}
	if len(hashes) == 0 {
		return false
	}
	ev.BlockHashes = hashes
	d.add(ev)
	return true
}

// fit sets the event's tokens and returns the hashes of complete blocks, or the reason why tokens and hashes do not
// belong together. An event without tokens reports only the tier of its blocks.
//
// A group that holds only some blocks of a prompt, such as one with a sliding window, may report fewer hashes than
// blocks of tokens, in order. block_offsets names the blocks (PR 44488, 2026-06, not merged); vLLM 0.32 sends no offsets: the blocks are
// often the last ones, with or without gaps. The event then keeps only the hashes, which are those of the same blocks in the group with
// full attention, whose event vLLM sends next to it. With full attention and without block_offsets such an event is invalid.
func (d *Decoder) fit(e *raw, ev *Event, hashes []uint64) ([]uint64, string) {
	tokens := d.tokens[e.mark.tokens:]
	if len(tokens) == 0 {
		return hashes, ""
	}
	if e.blockSize == 0 {
		return nil, "block_size is missing or 0"
	}
	size, after := int(e.blockSize), 0
	if e.pairs {
		after = 1
	}
	blocks := (len(tokens) - after) / size
	n := blocks*size + after
	more := min(1, len(tokens)-n) // the tokens after the last complete block may have a hash
	switch {
	case len(hashes) == 0:
		return nil, ""
	case e.sparse:
		if !d.checkOffsets(len(hashes), blocks) {
			return nil, "block_offsets does not fit block_hashes and token_ids"
		}
		if blocks = len(hashes); d.offsets[blocks-1] >= blocks {
			e.keepHashes(ev)
			return hashes, ""
		}
		n = blocks*size + after
	case len(hashes) > blocks+more:
		return nil, "block_hashes has more blocks than token_ids"
	case len(hashes) > blocks:
		d.counts.Partial++
		hashes = hashes[:blocks:blocks]
	case ev.Attention != FullAttention:
		if len(hashes) < blocks {
			e.keepHashes(ev)
			return hashes, ""
		}
	case len(hashes) < blocks+more:
		return nil, "block_hashes has fewer blocks than token_ids"
	}
	ev.TokenIDs = tokens[:n:n]
	return hashes, ""
}

// tokensAfter reads the tokens after each block that the event has a hash of, and appends those after the last of its blocks to the event's.
// The tokens after the others begin the next block. vLLM since 0.33 sends them with EAGLE and MTP.
func (d *Decoder) tokensAfter(e *raw, ev *Event, blocks int) bool {
	v := d.r.next()
	if v.kind != arrayKind || v.n != e.hashEnd-e.mark.hashes {
		return v.kind == nilKind
	}
	for i := range v.n {
		list := d.r.next()
		if list.kind != arrayKind {
			return false
		}
		if i != blocks-1 {
			d.r.skipN(list.n)
			continue
		}
		first, ok := e.mark.tokens, false
		if d.tokens, ok = d.r.tokens(d.tokens[:first+len(ev.TokenIDs)], list.n); !ok {
			return false
		}
		ev.TokenIDs = d.tokens[first:len(d.tokens):len(d.tokens)]
	}
	return d.r.ok()
}

// keepHashes drops what describes the tokens of an event from which the hashes of blocks are missing.
func (e *raw) keepHashes(ev *Event) {
	ev.Parent, ev.HasParent, ev.Namespace = 0, false, ""
	e.extraKeys = 0
}

// offsetList reads block_offsets.
func (d *Decoder) offsetList(e *raw) bool {
	d.offsets, e.sparse = d.offsets[:0], false
	v := d.r.next()
	if v.kind != arrayKind {
		return v.kind == nilKind
	}
	if !d.allowBlocks(v.n) {
		return false
	}
	for range v.n {
		o := d.r.next()
		if o.kind != intKind || o.neg || o.num > math.MaxInt32 {
			return false
		}
		d.offsets = append(d.offsets, int(o.num))
	}
	e.sparse = true
	return true
}

// checkOffsets reports whether d.offsets names n of the given number of blocks, in order.
func (d *Decoder) checkOffsets(n, blocks int) bool {
	if len(d.offsets) != n {
		return false
	}
	last := -1
	for _, o := range d.offsets {
		if o <= last || o >= blocks {
			return false
		}
		last = o
	}
	return true
}

// lastCopies reads the number of remaining copies of each block and returns the hashes of blocks without copies, or all
// hashes if the number is absent.
func (d *Decoder) lastCopies(hashes []uint64) (gone []uint64, specified, ok bool) {
	v := d.r.next()
	if v.kind != arrayKind {
		return hashes, false, v.kind == nilKind
	}
	gone = hashes[:0]
	for _, h := range hashes[:min(v.n, len(hashes))] {
		n := d.r.next()
		if n.kind != intKind {
			return nil, false, false
		}
		if n.num == 0 {
			gone = append(gone, h)
		}
	}
	return gone, true, v.n == len(hashes)
}

// addCleared adds the event that clears all blocks. Blocks of a shared store are never on the device.
func (d *Decoder) addCleared(ev Event) {
	if ev.Owner == "" {
		d.add(Event{Kind: Cleared, Tier: ev.Tier})
		return
	}
	for t := Host; t <= NumTiers; t++ {
		d.add(Event{Kind: Cleared, Tier: t, Owner: ev.Owner})
	}
}

// extraKeys reads what vLLM hashed with the tokens of each block: the adapter's name; for each object the block
// overlaps a pair of identifier and offset, or in older versions only the identifier; in the first block of a prompt
// the cache salt; digests of embeddings as binary data. So the salt is the last plain string in the first block after
// the adapter's name. An older version's identifier of 64 hexadecimal digits is distinguished from a salt by the
// event's form: it was an array; [DecoderOptions].TextOnly rules identifiers out. A key that is a map contains its own type, as proposed for vLLM with an event_version
// of 1 (PR 55488, 2026-09, not merged).
func (d *Decoder) extraKeys(e *raw, ev *Event, blocks int) bool {
	r := &d.r
	v := r.next()
	if v.kind != arrayKind {
		return v.kind == nilKind
	}
	first := e.mark.objects
	object := func(int, uint64) {}
	if len(d.objects) == first { // Dynamo's list is the same objects
		object = func(block int, hash uint64) { d.objectAt(first, block, hash) }
	}
	for i := 0; i < v.n && r.ok(); i++ {
		keys := r.next()
		if keys.kind == nilKind {
			continue
		}
		if keys.kind != arrayKind {
			return false
		}
		lora := ev.LoRA
		var salt []byte
		for range keys.n {
			key := r.next()
			switch {
			case i >= blocks:
				r.rest(key)
			case key.kind == arrayKind && key.n > 0:
				id, beyond := r.next(), false
				if id.kind != stringKind {
					r.rest(id)
				}
				if key.n > 1 { // with lookahead, vLLM since 0.33 also has the objects in the tokens after the block
					offset := r.next()
					beyond = ev.BlockSize > 0 && offset.kind == intKind && !offset.neg && offset.num >= uint64(ev.BlockSize)
					r.rest(offset)
					r.skipN(key.n - 2)
				}
				if id.kind == stringKind && !beyond {
					object(i, objectHash(ofAdapter(id.raw, ev.LoRA)))
				}
			case key.kind == mapKind:
				if name, hash := d.typedKey(key.n, ev.LoRA); name != "" {
					ev.Namespace = cmp.Or(ev.Namespace, name)
				} else if hash != 0 {
					object(i, hash)
				}
			case key.kind == binKind:
				object(i, objectHash(key.raw))
			case key.kind != stringKind:
				r.rest(key)
			case lora != "" && string(key.raw) == lora:
				lora = ""
			case i > 0 || ev.HasParent || e.tuple && !d.opt.TextOnly && isDigest(key.raw):
				object(i, objectHash(key.raw))
			default:
				if salt != nil {
					object(i, objectHash(salt))
				}
				salt = key.raw
			}
		}
		if salt != nil && ev.Namespace == "" {
			ev.Namespace, _ = d.namespace(value{kind: stringKind, raw: salt})
		}
	}
	return r.ok()
}

// typedKey reads a key that contains its type, a map of n pairs, and returns the cache salt or the hash of the object.
// A key of an unknown type also makes its block differ from others: a false miss costs less than a false hit.
func (d *Decoder) typedKey(n int, lora string) (salt string, object uint64) {
	r := &d.r
	start := r.pos
	at, _ := r.places(n, "type", "salt", "hash", "value")
	end := r.pos
	typ, hash := r.read(at[0]).raw, r.read(at[2])
	switch {
	case string(typ) == "lora":
	case string(typ) == "cache_salt":
		salt, _ = d.namespace(r.read(at[1]))
	case hash.kind == stringKind || hash.kind == binKind: // "mm", "prompt_embeds"
		object = objectHash(ofAdapter(hash.raw, lora))
	default: // "legacy" and future types
		if v := r.read(at[3]); v.kind == stringKind {
			object = objectHash(v.raw)
		} else if r.ok() {
			object = xxh3.Hash(r.buf[start:end])
		}
	}
	if r.ok() {
		r.pos = end
	}
	return salt, object
}

// ofAdapter returns an object's identifier without the adapter's name, which vLLM prepends if an adapter changes how
// objects are encoded. The block's hash contains the name in any case.
func ofAdapter(id []byte, lora string) []byte {
	if n := len(lora); n > 0 && len(id) > n && id[n] == ':' && string(id[:n]) == lora {
		return id[n+1:]
	}
	return id
}

func isDigest(b []byte) bool {
	_, ok := digest64(b)
	return ok
}

// objectInfos reads block_mm_infos, which Dynamo adds: for each block nil or {"mm_objects": [{"mm_hash": n, ...}, ...]}.
func (d *Decoder) objectInfos(e *raw) bool {
	r := &d.r
	v := r.next()
	if v.kind != arrayKind {
		return v.kind == nilKind
	}
	if !d.allowBlocks(v.n) {
		return false
	}
	for i := 0; i < v.n && r.ok(); i++ {
		info := r.next()
		if info.kind != mapKind {
			r.rest(info)
			continue
		}
		at, _ := r.places(info.n, "mm_objects")
		end := r.pos
		if list := r.read(at[0]); list.kind == arrayKind {
			for range list.n {
				o := r.next()
				if o.kind != mapKind {
					r.rest(o)
					continue
				}
				at, _ := r.places(o.n, "mm_hash")
				end := r.pos
				if h, ok := d.hash(r.read(at[0])); ok {
					d.objectAt(e.mark.objects, i, h)
				}
				if r.ok() {
					r.pos = end
				}
			}
		}
		if r.ok() {
			r.pos = end
		}
	}
	return r.ok()
}
