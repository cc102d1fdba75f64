// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/kvhash/kvevent"
)

const positionVersion = 1

// The flags of a saved position.
const (
	wasSeen = 1 << iota
	wasLost
	hadTime
	wasFull
	wasMixed
	hadBefore
	hadChecksums
	hadFirst
)

// errPosition is the cause if a saved position is invalid.
var errPosition = errors.New("invalid stream position")

// errVersion is the cause if another version of this package saved the position.
var errVersion = errors.New("stream position of an unknown version")

// AppendPosition appends to dst the position in the stream, with the namespaces that are remembered, for
// [Tracker.Restore]. Batches that are held are not in it: they are missing after Restore, and can be replayed. O(blocks
// in a namespace), and up to 4 KB where batches have no time, to distinguish a restart from a repetition
// ([Options].Window). The form is the same on all machines and for the same state.
func (in *Tracker) AppendPosition(dst []byte) []byte {
	flags := byte(0)
	for f, on := range map[byte]bool{wasSeen: in.seen, wasLost: in.lost, hadTime: !in.time.IsZero(), wasFull: in.salted.full,
		wasMixed: in.mixed, hadBefore: !in.before.IsZero(), hadChecksums: in.checksums != nil,
		hadFirst: !in.first.IsZero()} {
		if on {
			flags |= f
		}
	}
	dst = append(dst, positionVersion, flags)
	dst = binary.AppendUvarint(dst, in.next)
	dst = binary.AppendUvarint(dst, in.end)
	dst = binary.AppendUvarint(dst, in.received)
	for _, t := range []time.Time{in.time, in.before, in.first} {
		if !t.IsZero() {
			dst = binary.AppendVarint(dst, t.Unix())
			dst = binary.AppendUvarint(dst, uint64(t.Nanosecond()))
		}
	}
	if in.lost {
		dst = binary.AppendUvarint(dst, in.lostFrom)
		dst = binary.AppendUvarint(dst, in.lostTo)
	}
	if in.checksums != nil {
		n := min(in.end, maxChecksums)
		dst = binary.AppendUvarint(dst, n)
		for seq := in.end - n; seq < in.end; seq++ {
			s := in.checksums[seq%maxChecksums]
			if s.seq != seq {
				s.of = 0
			}
			dst = binary.LittleEndian.AppendUint32(dst, s.of)
		}
	}
	byName := make(map[string][]uint64)
	for h, n := range in.salted.of {
		byName[n.name] = append(byName[n.name], h)
	}
	dst = binary.AppendUvarint(dst, uint64(len(byName)))
	for _, name := range slices.SortedFunc(maps.Keys(byName), strings.Compare) {
		hashes := byName[name]
		slices.Sort(hashes)
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		dst = binary.AppendUvarint(dst, uint64(len(hashes)))
		for _, h := range hashes {
			n := in.salted.of[h]
			dst = binary.LittleEndian.AppendUint64(dst, h)
			dst = binary.AppendVarint(dst, int64(n.group))
			dst = append(dst, n.tiers<<1|byte(b2i(n.full)))
		}
	}
	return dst
}

// Restore notes that the rank's state was replaced as a whole by one that was saved together with the given position, see
// [Tracker.AppendPosition]. It appends to dst the held batches to apply on top of it. The Tracker may be new, or wait for a
// snapshot, or not know yet that the engine was restarted: a position that is later by 5 s or more, at no higher number, is of
// a time after a restart. The position of a Tracker that had received nothing changes nothing, and neither does an error.
func (in *Tracker) Restore(dst []kvevent.Batch, position []byte) ([]kvevent.Batch, error) {
	r := reader{buf: position}
	if v := r.byte(); !r.bad && v != positionVersion {
		return dst, errVersion
	}
	flags := r.byte()
	next, end, received := r.uvarint(math.MaxUint64), r.uvarint(math.MaxUint64), r.uvarint(math.MaxUint64)
	readTime := func(had byte) (t time.Time) {
		if flags&had != 0 {
			sec := r.varint(math.MinInt64, math.MaxInt64)
			t = time.Unix(sec, int64(r.uvarint(1e9-1))).UTC()
		}
		return t
	}
	at, before, first := readTime(hadTime), readTime(hadBefore), readTime(hadFirst)
	var lostFrom, lostTo uint64
	if flags&wasLost != 0 {
		lostFrom, lostTo = r.uvarint(math.MaxUint64), r.uvarint(math.MaxUint64)
	}
	var checksums []byte // of the last batches
	if flags&hadChecksums != 0 {
		checksums = r.bytes(4 * r.uvarint(min(end, maxChecksums)))
	}
	salted := namespaces{full: flags&wasFull != 0}
	for range r.count(2) {
		name := string(r.bytes(uint64(r.count(1))))
		for range r.count(10) {
			b := r.bytes(8)
			n := inNamespace{name: name, group: int32(r.varint(math.MinInt32, math.MaxInt32))}
			t := r.byte()
			if n.tiers, n.full = t>>1, t&1 != 0; r.bad {
				return dst, errPosition
			}
			if salted.of == nil {
				salted.of = make(map[uint64]inNamespace)
			}
			salted.of[binary.LittleEndian.Uint64(b)] = n
		}
	}
	if r.bad || len(r.buf) > 0 || next > end || received > end || end > kvevent.EndOfReplay {
		return dst, errPosition
	}
	if flags&wasSeen == 0 {
		return dst, nil
	}
	in.seen, in.stale, in.again = true, false, false
	in.lost, in.lostFrom, in.lostTo = flags&wasLost != 0, lostFrom, lostTo
	in.mixed, in.before, in.first = flags&wasMixed != 0, before, first
	in.salted, in.copies = salted, copies{}
	later := received <= in.received && at.Sub(in.time) >= restartTime // after a restart that this Tracker has not detected
	if later {
		in.end, in.held, in.bytes = 0, nil, 0
	}
	if later || received > in.received && !at.IsZero() {
		in.received, in.time = received, at
	}
	in.next, in.end = next, max(in.end, end)
	for i := 0; i < len(checksums); i += 4 {
		if of := binary.LittleEndian.Uint32(checksums[i:]); of != 0 {
			in.note(end-uint64((len(checksums)-i)/4), of)
		}
	}
	in.dropHeld()
	return in.drain(dst), nil
}

// reader reads numbers and bytes. After the first error, bad is set and all values are zero.
type reader struct {
	buf []byte
	bad bool
}

func (r *reader) fail() { r.buf, r.bad = nil, true }

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.buf)) {
		r.fail()
		return nil
	}
	b := r.buf[:n]
	r.buf = r.buf[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// uvarint reads a number that is at most max.
func (r *reader) uvarint(max uint64) uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 || v > max {
		r.fail()
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) varint(min, max int64) int64 {
	u := r.uvarint(math.MaxUint64)
	v := int64(u>>1) ^ -int64(u&1)
	if v < min || v > max {
		r.fail()
		return 0
	}
	return v
}

// count reads the number of elements, of at least size bytes each, that follow.
func (r *reader) count(size int) int {
	n := r.uvarint(math.MaxUint64)
	if n > uint64(len(r.buf)/size) {
		r.fail()
		return 0
	}
	return int(n)
}
