// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// compactVersion begins every batch of the compact form.
const compactVersion = 1

// Flags of a batch and of an event: what is there and not zero.
const (
	hasTime = 1 << iota
	hasWorker
	hasRank
	isDamaged
	batchFlags = 1<<iota - 1
)

const (
	hasTier = 1 << iota
	hasAttention
	hasGroup
	hasBlockSize
	hasHashes
	hasParent
	hasTokens
	hasLocals
	hasSequence
	sameSequence // SequenceHashes are BlockHashes
	hasObjects
	newLoRA // a string is written when it differs from the event before
	newNamespace
	newOwner
	isRootNamespace
	hasNoCopies
	hasWindow
	eventFlags = 1<<iota - 1
)

// AppendBatch appends b to dst in the compact form, which a decoder of the format [Compact] reads back with every field (times in UTC,
// to the nanosecond; lists that are empty come back nil). Batches may follow each other. It is for routers and sidecars that pass events
// on: 8 bytes for a block that is named by its sequence hash only, where the engine's own form has all its tokens. It is the same
// on all machines. No allocation if dst has room.
//
//	batch    = version(1 byte) flags seq [seconds nanoseconds] [worker] [rank] events*
//	events   = count event...
//	event    = kind(1 byte) flags [tier] [attention] [group] [block size] [hashes] [parent] [tokens] [locals] [sequence] [objects]
//	           [LoRA] [namespace] [owner] [window]
//	hashes   = count 8 bytes...          also locals, sequence; little-endian
//	parent   = 8 bytes
//	tokens   = count token...
//	objects  = count hashes...
//	string   = length bytes
//
// All else are variable-length numbers as in package encoding/binary; seconds, group, block size and window are signed ones.
// LoRA, namespace and owner are taken from the previous event in the batch unless written.
func AppendBatch(dst []byte, b *Batch) []byte {
	var flags uint64
	if !b.Time.IsZero() {
		flags |= hasTime
	}
	if b.Worker != 0 {
		flags |= hasWorker
	}
	if b.DPRank != 0 {
		flags |= hasRank
	}
	if b.Damaged {
		flags |= isDamaged
	}
	dst = binary.AppendUvarint(append(dst, compactVersion), flags)
	dst = binary.AppendUvarint(dst, b.Seq)
	if flags&hasTime != 0 {
		dst = binary.AppendVarint(dst, b.Time.Unix())
		dst = binary.AppendUvarint(dst, uint64(b.Time.Nanosecond()))
	}
	if flags&hasWorker != 0 {
		dst = binary.AppendUvarint(dst, b.Worker)
	}
	if flags&hasRank != 0 {
		dst = binary.AppendUvarint(dst, uint64(b.DPRank))
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.Events)))
	before := new(Event)
	for i := range b.Events {
		dst = appendEvent(dst, &b.Events[i], before)
		before = &b.Events[i]
	}
	return dst
}

func appendEvent(dst []byte, e, before *Event) []byte {
	var flags uint64
	set := func(is bool, f uint64) {
		if is {
			flags |= f
		}
	}
	same := len(e.SequenceHashes) > 0 && slices.Equal(e.SequenceHashes, e.BlockHashes)
	set(e.Tier != 0, hasTier)
	set(e.Attention != 0, hasAttention)
	set(e.Group != 0, hasGroup)
	set(e.BlockSize != 0, hasBlockSize)
	set(len(e.BlockHashes) > 0, hasHashes)
	set(e.HasParent || e.Parent != 0, hasParent)
	set(len(e.TokenIDs) > 0, hasTokens)
	set(len(e.LocalHashes) > 0, hasLocals)
	set(len(e.SequenceHashes) > 0 && !same, hasSequence)
	set(same, sameSequence)
	set(len(e.Objects) > 0, hasObjects)
	set(e.LoRA != before.LoRA, newLoRA)
	set(e.Namespace != before.Namespace, newNamespace)
	set(e.Owner != before.Owner, newOwner)
	set(e.RootNamespace, isRootNamespace)
	set(e.NoCopies, hasNoCopies)
	set(e.Window != 0, hasWindow)
	dst = binary.AppendUvarint(append(dst, byte(e.Kind)), flags)
	if flags&hasTier != 0 {
		dst = append(dst, byte(e.Tier))
	}
	if flags&hasAttention != 0 {
		dst = append(dst, byte(e.Attention))
	}
	if flags&hasGroup != 0 {
		dst = binary.AppendVarint(dst, int64(e.Group))
	}
	if flags&hasBlockSize != 0 {
		dst = binary.AppendVarint(dst, int64(e.BlockSize))
	}
	if flags&hasHashes != 0 {
		dst = appendHashes(dst, e.BlockHashes)
	}
	if flags&hasParent != 0 {
		// A number without a parent has no meaning, but is kept.
		dst = append(dst, byte(b2i(e.HasParent)))
		dst = binary.LittleEndian.AppendUint64(dst, e.Parent)
	}
	if flags&hasTokens != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(e.TokenIDs)))
		for _, t := range e.TokenIDs {
			dst = binary.AppendUvarint(dst, uint64(t))
		}
	}
	if flags&hasLocals != 0 {
		dst = appendHashes(dst, e.LocalHashes)
	}
	if flags&hasSequence != 0 {
		dst = appendHashes(dst, e.SequenceHashes)
	}
	if flags&hasObjects != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(e.Objects)))
		for _, o := range e.Objects {
			dst = appendHashes(dst, o)
		}
	}
	if flags&newLoRA != 0 {
		dst = append(binary.AppendUvarint(dst, uint64(len(e.LoRA))), e.LoRA...)
	}
	if flags&newNamespace != 0 {
		dst = append(binary.AppendUvarint(dst, uint64(len(e.Namespace))), e.Namespace...)
	}
	if flags&newOwner != 0 {
		dst = append(binary.AppendUvarint(dst, uint64(len(e.Owner))), e.Owner...)
	}
	if flags&hasWindow != 0 {
		dst = binary.AppendVarint(dst, int64(e.Window))
	}
	return dst
}

func appendHashes(dst []byte, hashes []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(hashes)))
	for _, h := range hashes {
		dst = binary.LittleEndian.AppendUint64(dst, h)
	}
	return dst
}

// compact reads batches until the payload ends.
func (d *Decoder) compact(dst []Batch) []Batch {
	r := &d.r
	for r.left() > 0 && d.begin() {
		if v := r.byte(); v != compactVersion {
			r.pos--
			r.fail("an unknown version of the compact form", nil)
			return dst
		}
		flags := r.uvarint(batchFlags)
		b := Batch{Seq: r.uvarint(math.MaxUint64)}
		if !r.ok() {
			return dst
		}
		if flags&hasTime != 0 {
			sec := r.varint(math.MinInt64, math.MaxInt64)
			if ns := r.uvarint(1e9 - 1); r.ok() {
				b.Time = time.Unix(sec, int64(ns)).UTC()
			}
		}
		if flags&hasWorker != 0 {
			b.Worker = r.uvarint(math.MaxUint64)
		}
		if flags&hasRank != 0 {
			b.DPRank = uint32(r.uvarint(math.MaxUint32))
		}
		b.Damaged = flags&isDamaged != 0
		start := len(d.events)
		n := r.count(2)
		for i := 0; i < n && r.ok(); i++ {
			var before Event
			if i > 0 {
				before = d.events[len(d.events)-1]
			}
			if e, ok := d.compactEvent(&before); ok {
				d.add(e)
			}
		}
		dst = d.deliver(dst, b, start)
	}
	return dst
}

func (d *Decoder) compactEvent(before *Event) (Event, bool) {
	r := &d.r
	e := Event{Kind: Kind(r.byte())}
	flags := r.uvarint(eventFlags)
	if flags&hasTier != 0 {
		e.Tier = Tier(r.byte())
	}
	if flags&hasAttention != 0 {
		e.Attention = Attention(r.byte())
	}
	if flags&hasGroup != 0 {
		e.Group = int32(r.varint(math.MinInt32, math.MaxInt32))
	}
	if flags&hasBlockSize != 0 {
		e.BlockSize = int32(r.varint(math.MinInt32, math.MaxInt32))
	}
	if flags&hasHashes != 0 {
		e.BlockHashes = d.compactHashes(&d.hashes)
	}
	if flags&hasParent != 0 {
		e.HasParent = r.byte() != 0
		if b := r.bytes(8); b != nil {
			e.Parent = binary.LittleEndian.Uint64(b)
		}
	}
	if flags&hasTokens != 0 {
		n := r.count(1)
		if n > d.maxTokens {
			r.fail("too many tokens", ErrLimit)
			n = 0
		}
		m := len(d.tokens)
		d.tokens = slices.Grow(d.tokens, n)
		for i := 0; i < n && r.ok(); i++ {
			if b := r.buf[r.pos:]; len(b) > 2 && b[0] > 0x7f && b[1] > 0x7f && b[2] < 0x80 { // as most tokens
				d.tokens = append(d.tokens, uint32(b[0]&0x7f)|uint32(b[1]&0x7f)<<7|uint32(b[2])<<14)
				r.pos += 3
				continue
			}
			d.tokens = append(d.tokens, uint32(r.uvarint(math.MaxUint32)))
		}
		if n > 0 {
			e.TokenIDs = d.tokens[m:len(d.tokens):len(d.tokens)]
		}
	}
	if flags&hasLocals != 0 {
		e.LocalHashes = d.compactHashes(&d.hashes)
	}
	if flags&hasSequence != 0 {
		e.SequenceHashes = d.compactHashes(&d.hashes)
	} else if flags&sameSequence != 0 {
		e.SequenceHashes = e.BlockHashes
	}
	if flags&hasObjects != 0 {
		n := r.count(1)
		if n > d.maxBlocks {
			r.fail("too many blocks", ErrLimit)
			n = 0
		}
		m := len(d.objects)
		for i := 0; i < n && r.ok(); i++ {
			d.objects = append(d.objects, d.compactHashes(&d.keys))
		}
		if n > 0 {
			e.Objects = d.objects[m:len(d.objects):len(d.objects)]
		}
	}
	e.LoRA, e.Namespace, e.Owner = before.LoRA, before.Namespace, before.Owner
	for _, s := range [...]struct {
		flag uint64
		to   *string
	}{{newLoRA, &e.LoRA}, {newNamespace, &e.Namespace}, {newOwner, &e.Owner}} {
		if flags&s.flag != 0 {
			*s.to = d.names.get(r.bytes(r.uvarint(math.MaxUint64)))
		}
	}
	if flags&hasWindow != 0 {
		e.Window = int32(r.varint(math.MinInt32, math.MaxInt32))
	}
	e.RootNamespace, e.NoCopies = flags&isRootNamespace != 0, flags&hasNoCopies != 0
	return e, r.ok()
}

func (d *Decoder) compactHashes(mem *[]uint64) []uint64 {
	r := &d.r
	n := r.count(8)
	if n > d.maxBlocks {
		r.fail("too many blocks", ErrLimit)
	}
	b := r.bytes(uint64(8 * n))
	if len(b) == 0 {
		return nil
	}
	m := len(*mem)
	*mem = slices.Grow(*mem, n)[:m+n]
	list := (*mem)[m : m+n : m+n]
	for i := range list {
		list[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return list
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// uvarint reads a number that is at most max.
func (r *reader) uvarint(max uint64) uint64 {
	v, n := binary.Uvarint(r.buf[r.pos:])
	switch {
	case n == 0:
		r.fail("the payload ends too early", errEnd)
		return 0
	case n < 0 || v > max:
		r.fail("a number that is too large", nil)
		return 0
	}
	r.pos += n
	return v
}

func (r *reader) varint(min, max int64) int64 {
	u := r.uvarint(math.MaxUint64)
	v := int64(u>>1) ^ -int64(u&1)
	if v < min || v > max {
		r.fail("a number that is too large", nil)
		return 0
	}
	return v
}

// count reads how many elements follow, each of at least size bytes.
func (r *reader) count(size int) int {
	n := r.uvarint(math.MaxUint64)
	if n > uint64(r.left()/size) {
		r.fail("the payload ends too early", errEnd)
		return 0
	}
	return int(n)
}
