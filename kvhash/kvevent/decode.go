// SPDX-License-Identifier: Apache-2.0

package kvevent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
)

// This file is structured as follows: the types of the API (formats, options, counts, errors), the parts of the Decoder
// that all formats share, and tables of names. engine.go, trtllm.go, dynamo.go and compact.go each decode one format;
// msgpack.go and json.go read values.

// Format specifies an encoding of events.
type Format uint8

// The formats. All but Compact may be msgpack or JSON, as the engine sends it: the decoder detects which.
const (
	// VLLM is the batch of vLLM: an array or a map of time, events and rank; each event an array or a map.
	VLLM Format = iota + 1
	// SGLang is the batch of SGLang. It has vLLM's layout; hashes and cache salts are different.
	SGLang
	// TensorRTLLM is the result of TensorRT-LLM's get_kv_cache_events: one event, or an array of events, each a map.
	// Each becomes a batch, numbered by its event_id.
	TensorRTLLM
	// Dynamo is Dynamo's RouterEvent, or an array of them, each a map: the payload in the envelope of its event plane. Each becomes a
	// batch, numbered by its event_id, from 1.
	Dynamo
	// Compact is the form of this package, written by [AppendBatch]: any number of batches.
	Compact
)

// String returns the format as command lines spell it: "vllm", "sglang", "trtllm", "dynamo" or "compact".
func (f Format) String() string {
	if f >= VLLM && f <= Compact {
		return [...]string{"vllm", "sglang", "trtllm", "dynamo", "compact"}[f-VLLM]
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// EndOfReplay is the sequence number, -1, of the message with which vLLM and SGLang end a replay. The message has no events.
const EndOfReplay uint64 = math.MaxUint64

// DecoderOptions configure a [Decoder].
type DecoderOptions struct {
	// BlockSize is the number of tokens in a complete block, for TensorRT-LLM, which does not send it and also reports
	// partial blocks. 0 means the number of tokens in the first block of each event, so that a single block is treated
	// as complete.
	BlockSize int
	// MaxTokens limits the tokens of an event; 0 means 16,777,216. The limit for the blocks of an event is a sixteenth
	// of it, and the limit for the events and for the batches of a payload is a sixteenth of that.
	MaxTokens int
	// TextOnly specifies that the model takes no images or other objects. Arrays of vLLM before 0.26 contain the cache
	// salt and identifiers of objects in one form: a string of 64 hexadecimal digits is then an identifier, unless
	// TextOnly is set.
	TextOnly bool
}

// tally holds the counters of a decoder.
type tally struct {
	Batches   uint64 // appended, damaged ones included
	Events    uint64 // in these
	Damaged   uint64 // batches
	Malformed uint64 // events with a missing field, a value of the wrong type or tokens without a block: skipped, and the batch is damaged
	Unknown   uint64 // events of an unknown type: skipped
	Elsewhere uint64 // events of an unknown medium or residency domain: skipped
	Partial   uint64 // blocks with fewer tokens than the block size: omitted
	Fields    uint64 // unknown keys and elements: skipped
}

// ErrLimit is the cause of a [DecodeError] when a payload has more than [DecoderOptions].MaxTokens allows.
var ErrLimit = errors.New("limit exceeded")

// DecodeError reports a payload that cannot be decoded. It unwraps to [ErrLimit], to [io.ErrUnexpectedEOF] if the
// payload ends too early, or to nil.
type DecodeError struct {
	Offset int64  // bytes into the payload; -1 if the fault is not at one position of it
	reason string // what was expected or found
	cause  error
}

// Error returns the reason and the position.
func (e *DecodeError) Error() string {
	if e.Offset < 0 {
		return "kvevent: " + e.reason
	}
	return "kvevent: " + e.reason + " at byte " + strconv.FormatInt(e.Offset, 10)
}

// Unwrap returns the cause, or nil.
func (e *DecodeError) Unwrap() error { return e.cause }

// A Decoder decodes events of one format, from any number of streams. For TensorRT-LLM, all streams must be of one
// model, because the Decoder learns the model's windows and levels from events.
//
// Results are in the decoder's memory and are valid until the next call of a method that decodes. Package index copies
// what it keeps; other callers can use [Batch.Clone]. The memory is proportional to the largest payload so far, and the
// limits bound the memory of one event. Once it is large enough, decoding does not allocate; equal strings are stored
// once.
//
// Unknown keys, additional elements, and unknown event types and media are skipped and counted. A Decoder is not safe
// for concurrent use.
type Decoder struct {
	format Format
	opt    DecoderOptions
	counts tally

	maxEvents, maxBlocks, maxTokens int

	names names

	r        reader
	scratch  []byte // the payload as msgpack, if it was JSON
	fromJSON bool
	damaged  bool         // an event of this batch could not be decoded
	fault    *DecodeError // of the first invalid event of this payload
	batches  int          // of this payload
	topic    string       // of the last message

	events  []Event
	from    []int      // for each event, its position in the payload
	starts  []int      // for each batch, the number of its first event
	at      int        // position of the event that is being read
	offsets []int      // of the event that is being read
	hashes  []uint64   // of blocks
	tokens  []uint32   // of blocks
	objects [][]uint64 // for each block, parts of keys
	keys    []uint64   // of objects

	partial   map[uint64]struct{} // hashes of incomplete blocks: TensorRT-LLM
	maxWindow uint64
	maxLevel  Tier
}

// NewDecoder returns a decoder for the format. nil options mean the defaults. It panics if the format is invalid.
func NewDecoder(f Format, o *DecoderOptions) *Decoder {
	if f < VLLM || f > Compact {
		panic("kvevent: unknown format")
	}
	d := &Decoder{format: f, maxLevel: Host}
	if o != nil {
		d.opt = *o
	}
	d.maxTokens = d.opt.MaxTokens
	if d.maxTokens <= 0 {
		d.maxTokens = 1 << 24
	}
	d.maxBlocks, d.maxEvents = max(1, d.maxTokens/16), max(1, d.maxTokens/256)
	return d
}

// Skipped returns the number of events that were skipped: events of an unknown type, medium or residency domain, and
// malformed events, whose batch is then damaged.
func (d *Decoder) Skipped() uint64 {
	c := &d.counts
	return c.Malformed + c.Unknown + c.Elsewhere
}

// AppendFrames decodes a message over ZMQ and appends its batches to dst. [Decoder.Topic] returns its topic. The error,
// if any, is a [*DecodeError]. If the frames are valid but the payload is not, batches are appended with the events
// before the fault, as by [Decoder.Append].
//
// A message of vLLM or SGLang is the topic, the sequence number in 8 bytes, and the payload of one batch. In the reply
// to a replay request the topic may be empty or missing, as publishers differ, and a DEALER socket receives an empty
// frame before it. The end of a replay is a batch with the sequence number [EndOfReplay] and no events.
//
// A message of Dynamo's event plane is the topic, the publisher's ID and the number of the message in 8 bytes each, and
// an envelope that contains RouterEvents. Each becomes a batch with its own number.
func (d *Decoder) AppendFrames(dst []Batch, frames [][]byte) ([]Batch, error) {
	d.topic, d.starts = "", d.starts[:0]
	if d.format == Dynamo {
		return d.planeFrames(dst, frames)
	}
	if len(frames) == 4 && len(frames[0]) == 0 {
		frames = frames[1:]
	}
	if len(frames) != 2 && len(frames) != 3 {
		return dst, &DecodeError{Offset: -1, reason: "message of " + strconv.Itoa(len(frames)) + " frames instead of 3"}
	}
	number, payload := frames[len(frames)-2], frames[len(frames)-1]
	if len(number) != 8 {
		return dst, &DecodeError{Offset: -1, reason: "sequence number of " + strconv.Itoa(len(number)) + " bytes instead of 8"}
	}
	if len(frames) == 3 {
		d.topic = d.names.get(frames[0])
	}
	seq := binary.BigEndian.Uint64(number)
	if seq == EndOfReplay {
		if len(payload) > 0 {
			return dst, &DecodeError{Offset: -1, reason: "end of a replay with a payload"}
		}
		return append(dst, Batch{Seq: seq}), nil
	}
	n := len(dst)
	dst, err := d.Append(dst, payload)
	for i := range dst[n:] {
		dst[n+i].Seq = seq
	}
	return dst, err
}

// Append decodes a payload and appends its batches to dst. Payloads of vLLM and SGLang contain no sequence number: it
// is 0 unless the caller sets it, as [Decoder.AppendFrames] does. A Stream of package index needs sequence numbers.
//
// The error, if any, is a [*DecodeError]. Data before the fault is not lost: a partial batch is appended with its
// events up to the fault and marked as damaged. A Stream treats its sequence number as received, because a replay would
// have the same bytes, and the worker is Degraded. The rank of a damaged batch of vLLM or SGLang is unknown, because it
// comes last, so its time is not set. An event that is a well-formed value but not a valid event is skipped: the batch
// is marked as damaged and contains the other events, and the error identifies the first invalid event and its field.
func (d *Decoder) Append(dst []Batch, payload []byte) ([]Batch, error) {
	d.events, d.hashes, d.tokens = d.events[:0], d.hashes[:0], d.tokens[:0]
	d.objects, d.keys = d.objects[:0], d.keys[:0]
	d.from, d.starts, d.at = d.from[:0], d.starts[:0], 0
	d.damaged, d.fault, d.batches = false, nil, 0
	d.r = reader{buf: payload}
	before := len(dst)
	d.fromJSON = d.format != Compact && isJSON(payload)
	if d.fromJSON {
		var fault *DecodeError
		if d.scratch, fault = appendMsgpack(d.scratch[:0], payload); fault != nil {
			if d.format <= SGLang {
				dst = d.deliver(dst, Batch{Damaged: true}, len(d.events))
			}
			return dst, fault
		}
		d.r = reader{buf: d.scratch}
	}
	switch d.format {
	case VLLM, SGLang:
		dst = d.engineBatch(dst)
	case TensorRTLLM:
		dst = d.each(dst, d.trtEvent)
	case Dynamo:
		dst = d.each(dst, d.dynamoEvent)
	case Compact:
		dst = d.compact(dst)
	}
	if d.r.ok() && d.r.left() > 0 {
		d.r.fail("something after the end", nil)
	}
	err := d.r.err()
	if n := len(dst); err != nil && n > before && !dst[n-1].Damaged {
		dst[n-1].Damaged = true // the rest of the payload, of which it is the last batch, is lost
		d.counts.Damaged++
	}
	if err == nil && d.fault != nil {
		err = d.fault
	}
	if e, ok := err.(*DecodeError); ok && d.fromJSON {
		e.Offset = -1 // it is a position in the scratch memory
	}
	return dst, err
}

// Topic returns the topic of the last message that [Decoder.AppendFrames] decoded, or "" if it had none. llm-d's
// engines put "kv@", the pod and the model into it; some publishers, a mark of the engine's run. With Dynamo's event
// plane, it is "kv-events".
func (d *Decoder) Topic() string { return d.topic }

// deliver appends a batch with the events from index start on.
func (d *Decoder) deliver(dst []Batch, b Batch, start int) []Batch {
	d.starts = append(d.starts, start)
	b.Events = d.events[start:len(d.events):len(d.events)]
	if len(b.Events) == 0 {
		b.Events = nil
	}
	b.Damaged = b.Damaged || d.damaged || !d.r.ok()
	if b.Damaged {
		d.counts.Damaged++
	}
	d.damaged = false
	d.batches++
	d.counts.Batches++
	d.counts.Events += uint64(len(b.Events))
	return append(dst, b)
}

// each reads one map, or an array of maps.
func (d *Decoder) each(dst []Batch, one func(dst []Batch, pairs int) []Batch) []Batch {
	v := d.r.next()
	switch v.kind {
	case mapKind:
		return one(dst, v.n)
	case arrayKind:
		for range v.n {
			if !d.r.ok() {
				break
			}
			d.at = d.r.pos
			if e := d.r.next(); e.kind != mapKind {
				d.r.rest(e)
				d.malformed("no event")
				d.damaged = false // not part of a batch: its number is missing
			} else if d.begin() {
				dst = one(dst, e.n)
			}
		}
		return dst
	}
	d.r.fail("no event", nil)
	return dst
}

// mark is a state of the decoder's memory, which is restored if an event is invalid.
type mark struct{ hashes, tokens, objects, keys int }

func (d *Decoder) mark() mark {
	return mark{len(d.hashes), len(d.tokens), len(d.objects), len(d.keys)}
}

// lone ends a batch of one event that ends at position end; good reports whether the event was valid.
func (d *Decoder) lone(dst []Batch, b Batch, start int, m mark, end int, good bool) []Batch {
	if !good {
		d.malformed("the data of an event is invalid")
		d.events, d.from = d.events[:start], d.from[:start]
		d.back(m)
	}
	if d.r.ok() {
		d.r.pos = end
	}
	return d.deliver(dst, b, start)
}

// unnumbered skips an event without a number: it is not a batch, and the missing number will be noticed.
func (d *Decoder) unnumbered(end int) {
	if d.r.ok() {
		d.r.pos = end
		d.malformed("event without an event_id")
		d.damaged = false // not part of a batch
	}
}

func (d *Decoder) back(m mark) {
	d.hashes, d.tokens, d.objects, d.keys = d.hashes[:m.hashes], d.tokens[:m.tokens], d.objects[:m.objects], d.keys[:m.keys]
}

// add appends an event to the batch that is being read.
func (d *Decoder) add(e Event) {
	if len(d.events) >= d.maxEvents {
		d.r.fail("more than "+strconv.Itoa(d.maxEvents)+" events", ErrLimit)
		return
	}
	d.events = append(d.events, e)
	d.from = append(d.from, d.at)
}

// begin reports whether the limits allow another batch.
func (d *Decoder) begin() bool {
	if d.batches >= d.maxEvents {
		d.r.fail("more than "+strconv.Itoa(d.maxEvents)+" batches", ErrLimit)
	}
	return d.r.ok()
}

// rank returns a data-parallel rank; 0 if the value is not one.
func rank(v value) uint32 {
	if v.kind == intKind && !v.neg && v.num <= math.MaxUint32 {
		return uint32(v.num)
	}
	return 0
}

// hashList reads the hashes of blocks.
func (d *Decoder) hashList() bool {
	v := d.r.next()
	if v.kind != arrayKind {
		return false
	}
	if !d.allowBlocks(v.n) {
		return false
	}
	for range v.n {
		h, ok := d.hash(d.r.next())
		if !ok {
			return false
		}
		d.hashes = append(d.hashes, h)
	}
	return true
}

// allowBlocks reports whether the limits allow an event n blocks.
func (d *Decoder) allowBlocks(n int) bool {
	if n > d.maxBlocks {
		d.r.fail("more than "+strconv.Itoa(d.maxBlocks)+" blocks", ErrLimit)
		return false
	}
	return true
}

// hash returns v as an engine hash: a number, negative ones as their two's complement; a digest, whose last 8 bytes are
// vLLM's number and whose first 8 are SGLang's and TensorRT-LLM's; or a digest in hexadecimal digits.
func (d *Decoder) hash(v value) (uint64, bool) {
	b := v.raw
	switch v.kind {
	case intKind:
		return v.num, true
	case binKind:
		if len(b) > 8 && d.format != VLLM {
			b = b[:8]
		} else if len(b) > 8 {
			b = b[len(b)-8:]
		}
		var h uint64
		for _, c := range b {
			h = h<<8 | uint64(c)
		}
		return h, len(b) > 0
	case stringKind:
		if len(b) > 16 && d.format != VLLM {
			b = b[:16]
		} else if len(b) > 16 {
			b = b[len(b)-16:]
		}
		return parseHex(b)
	}
	return 0, false
}

// tokenList reads token ids: numbers, or for EAGLE pairs of a token and the one after it, of which the last second is kept.
func (d *Decoder) tokenList() (pairs, ok bool) {
	r := &d.r
	v := r.next()
	if v.kind != arrayKind {
		return false, v.kind == nilKind
	}
	if v.n > d.maxTokens {
		r.fail("more than "+strconv.Itoa(d.maxTokens)+" tokens", ErrLimit)
		return false, false
	}
	if v.n > 0 && r.peek() == arrayKind {
		var last uint32
		for range v.n {
			if p := r.next(); p.kind != arrayKind || p.n != 2 {
				return true, false
			}
			first, ok := r.next().token()
			second, also := r.next().token()
			if !ok || !also {
				return true, false
			}
			d.tokens, last = append(d.tokens, first), second
		}
		d.tokens = append(d.tokens, last)
		return true, true
	}
	var good bool
	d.tokens, good = r.tokens(d.tokens, v.n)
	return false, good
}

// objectAt notes an object in block i, counted from the block that has the number 'first' in d.objects.
func (d *Decoder) objectAt(first, i int, hash uint64) {
	for len(d.objects)-first <= i {
		d.objects = append(d.objects, nil)
	}
	d.keys = append(d.keys, hash)
	n := len(d.keys)
	o := &d.objects[first+i]
	*o = d.keys[n-1-len(*o) : n : n] // keys of a block are adjacent
}

// label returns a name. A number, from engines that number adapters, becomes "#" and its digits, which is not a valid
// name.
func (d *Decoder) label(v value) (string, bool) {
	switch v.kind {
	case nilKind:
		return "", true
	case stringKind, binKind:
		return d.names.get(v.raw), true
	case intKind:
		var b [24]byte
		if v.neg {
			return d.names.get(strconv.AppendInt(append(b[:0], '#'), int64(v.num), 10)), true
		}
		return d.names.get(strconv.AppendUint(append(b[:0], '#'), v.num, 10)), true
	}
	return "", false
}

// namespace is label for cache salts. Dynamo prefixes the salts that it passes to vLLM with a mark, which is removed.
func (d *Decoder) namespace(v value) (string, bool) {
	s, ok := d.label(v)
	return strings.TrimPrefix(s, "dynamo-cache-salt:"), ok
}

// names interns strings. It is bounded: when full, it is emptied; strings returned before stay valid.
type names struct {
	known map[string]string
	bytes int
}

const maxNameBytes = 1 << 20

func (n *names) get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(b) > maxNameBytes/16 {
		return s
	}
	if n.known == nil || n.bytes+len(b)+64 > maxNameBytes {
		n.known, n.bytes = make(map[string]string), 0
	}
	n.known[s] = s
	n.bytes += len(b) + 64
	return s
}

// ObjectHash returns the 64-bit hash for an engine's identifier of an image or other object, for [Event.Objects] and
// for the objects of a prompt in package kvhash. For 64 hexadecimal digits, such as vLLM's digests, the hash is the
// value of the first 16 digits; for "" it is 0; other identifiers are hashed with XXH3-64. Source: hash_mm_identifier
// of Dynamo's kv-router (2026-08).
func ObjectHash(identifier string) uint64 {
	if identifier == "" {
		return 0
	}
	if h, ok := digest64(identifier); ok {
		return h
	}
	return xxh3.HashString(identifier)
}

func objectHash(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	if h, ok := digest64(b); ok {
		return h
	}
	return xxh3.Hash(b)
}

// digest64 returns the first 8 bytes of a digest of 64 hexadecimal digits, or false if s is not one.
func digest64[T []byte | string](s T) (uint64, bool) {
	if len(s) != 64 {
		return 0, false
	}
	for i := 16; i < len(s); i++ {
		if _, ok := hexDigit(s[i]); !ok {
			return 0, false
		}
	}
	return parseHex(s[:16])
}

func parseHex[T []byte | string](s T) (h uint64, ok bool) {
	for i := range len(s) {
		c, ok := hexDigit(s[i])
		if !ok {
			return 0, false
		}
		h = h<<4 | uint64(c)
	}
	return h, len(s) > 0
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c-'0' <= 9:
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// tierOf returns the tier of a medium, by the names of vLLM, SGLang and Dynamo, or false if the medium is unknown.
func tierOf(medium []byte) (Tier, bool) {
	for _, m := range [...]struct {
		name string
		tier Tier
	}{
		{"GPU", Device}, {"DEVICE", Device},
		{"CPU", Host}, {"CPU_PINNED", Host}, {"CPU_TIER1", Host}, {"HOST_PINNED", Host},
		{"CPU_TIER2", Disk}, {"DISK", Disk}, {"NVME", Disk}, {"STORAGE", Disk},
		{"EXTERNAL", Remote}, {"NETWORK", Remote}, {"REMOTE", Remote}, {"SHARED", Remote},
	} {
		if equalFold(medium, m.name) {
			return m.tier, true
		}
	}
	return AnyTier, len(medium) == 0
}

// attentionOf returns the kind of attention that vLLM calls a kind of cache, or SGLang a component.
func attentionOf(kind []byte) Attention {
	switch string(kind) {
	case "", "full_attention", "mla_attention", "sink_full_attention", "full":
		return FullAttention
	case "sliding_window", "sliding_window_mla", "swa":
		return SlidingWindow
	case "mamba":
		return StateSpace
	}
	return OtherAttention
}

// equalFold compares ASCII without case. upper is in upper case.
func equalFold(b []byte, upper string) bool {
	if len(b) != len(upper) {
		return false
	}
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}

// seconds returns the time of a number of seconds since 1970, or the zero Time if it is not plausible.
func seconds(v value) time.Time {
	f := v.float()
	if !(math.Abs(f) < 1<<36) { // NaN too
		return time.Time{}
	}
	whole := math.Floor(f)
	return time.Unix(int64(whole), int64((f-whole)*1e9)).UTC()
}

// err returns the reader's error, if any.
func (r *reader) err() error {
	if r.ok() {
		return nil
	}
	return &DecodeError{Offset: int64(r.at), reason: r.reason, cause: r.cause}
}

var errEnd = io.ErrUnexpectedEOF
