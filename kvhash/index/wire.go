// SPDX-License-Identifier: Apache-2.0

package index

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/weft-go/weft/kvhash"
)

// This file has what the binary forms share: their frame, and a reader that never goes beyond the data.
//
//	frame = "weftkv" kind(1 byte) version(1 byte) names(8 bytes) body sum(8 bytes)
//
// names tells block size and scheme; sum is XXH3 of all before. Numbers are variable-length as in package encoding/binary, hashes
// 8 bytes little-endian, strings and lists have their length in front.

// SnapshotError reports data that is no snapshot, or no delta, for this index. It unwraps to one of the errors below, or
// to [io.ErrUnexpectedEOF] if the data ends too early.
type SnapshotError struct {
	Offset int64 // bytes into the data
	Err    error
}

// Error returns the cause and the place.
func (e *SnapshotError) Error() string {
	return "index: snapshot: " + e.Err.Error() + " at byte " + strconv.FormatInt(e.Offset, 10)
}

// Unwrap returns the cause.
func (e *SnapshotError) Unwrap() error { return e.Err }

// The causes of a [SnapshotError].
var (
	// ErrForm: the data is something else, or of another kind: a snapshot, a worker of one, or a delta.
	ErrForm = errors.New("another kind of data")
	// ErrVersion: the data is of a version of the form that is not known; another version of this module wrote it.
	ErrVersion = errors.New("an unknown version of the form")
	// ErrScheme: blocks are named otherwise, or have another size.
	ErrScheme = errors.New("another block size or scheme")
	// ErrSum: the data is damaged.
	ErrSum = errors.New("the sum does not agree")
	// ErrMalformed: the data says what cannot be.
	ErrMalformed = errors.New("malformed")
	// ErrFull: there are more blocks than the options allow.
	ErrFull = errors.New("more blocks than allowed")
	// ErrNoPlace: the worker has no feed where the snapshot was made, so nothing says up to which batch it goes.
	ErrNoPlace = errors.New("no place in the stream")
	// ErrStore: what is a store here is a worker there, or a store of another tier.
	ErrStore = errors.New("a store of another tier, or none")
	// ErrOrphans: the leader parks another number of orphans.
	ErrOrphans = errors.New("another limit of orphans")
	// ErrGap: the delta does not go on from where the index is. A snapshot is needed.
	ErrGap = errors.New("not the version the index has")
)

const (
	frameMagic   = "weftkv"
	frameVersion = 1
	frameHeader  = len(frameMagic) + 2 + 8
	frameSum     = 8

	kindIndex  = 'i'
	kindWorker = 'w'
	kindDelta  = 'd'
)

// fingerprint tells indexes apart that name blocks otherwise: by what they make of a prompt.
func fingerprint(block int, s kvhash.Scheme) uint64 {
	n := min(block, 1<<12)
	tokens := make([]uint32, 2*n+s.Window(n)-n)
	for i := range tokens {
		tokens[i] = uint32(i)*2654435761 + 1
	}
	extras := &kvhash.Extras{Objects: []kvhash.Object{{Hash: 7, ID: "7", At: 0, Len: 1}}}
	b := binary.LittleEndian.AppendUint64([]byte(s.Name()), uint64(block))
	for _, h := range s.AppendBlocksWith(s.AppendBlocks(nil, tokens, n), tokens, n, extras) {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	return xxh3.Hash(b)
}

func appendHeader(dst []byte, kind byte, names uint64) []byte {
	dst = append(append(dst, frameMagic...), kind, frameVersion)
	return binary.LittleEndian.AppendUint64(dst, names)
}

// appendSum ends a frame that begins at from.
func appendSum(dst []byte, from int) []byte {
	return binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst[from:]))
}

func appendHash(dst []byte, h uint64) []byte { return binary.LittleEndian.AppendUint64(dst, h) }

func appendUint(dst []byte, n uint64) []byte { return binary.AppendUvarint(dst, n) }

func appendString[S string | []byte](dst []byte, s S) []byte {
	return append(appendUint(dst, uint64(len(s))), s...)
}

func bit(on bool, i uint) byte {
	if on {
		return 1 << i
	}
	return 0
}

// cursor reads. After the first fault it is at the end and everything is zero.
type cursor struct {
	data []byte
	pos  int
	err  *SnapshotError
}

// open checks a frame and returns a cursor at its body.
func open(data []byte, kind byte) (*cursor, uint64, error) {
	c := &cursor{data: data}
	if string(c.bytes(uint64(len(frameMagic)))) != frameMagic {
		c.pos = 0
		c.fail(ErrForm)
	}
	if k := c.byte(); k != kind {
		c.pos--
		c.fail(ErrForm)
	}
	if v := c.byte(); v != frameVersion {
		c.pos--
		c.fail(ErrVersion)
	}
	names := c.hash()
	if c.err == nil && c.left() < frameSum {
		c.fail(io.ErrUnexpectedEOF)
	}
	if c.err == nil {
		end := len(data) - frameSum
		if xxh3.Hash(data[:end]) != binary.LittleEndian.Uint64(data[end:]) {
			c.pos = end
			c.fail(ErrSum)
		}
		c.data = data[:end]
	}
	return c, names, c.fault()
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = &SnapshotError{Offset: int64(c.pos), Err: err}
	}
	c.pos = len(c.data)
}

func (c *cursor) fault() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// check fails if what was read cannot be.
func (c *cursor) check(ok bool) bool {
	if !ok {
		c.fail(ErrMalformed)
	}
	return c.err == nil
}

func (c *cursor) left() int { return len(c.data) - c.pos }

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.fail(io.ErrUnexpectedEOF)
		return nil
	}
	b := c.data[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) hash() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uint reads a number that is at most max.
func (c *cursor) uint(max uint64) uint64 {
	v, n := binary.Uvarint(c.data[c.pos:])
	switch {
	case n == 0:
		c.fail(io.ErrUnexpectedEOF)
		return 0
	case n < 0 || v > max:
		c.fail(ErrMalformed)
		return 0
	}
	c.pos += n
	return v
}

func (c *cursor) int() int64 {
	u := c.uint(math.MaxUint64)
	return int64(u>>1) ^ -int64(u&1)
}

// count reads how many elements of at least size bytes follow.
func (c *cursor) count(size int) int {
	n := c.uint(math.MaxUint64)
	if n > uint64(c.left()/size) {
		c.fail(io.ErrUnexpectedEOF)
		return 0
	}
	return int(n)
}

func (c *cursor) string() string { return string(c.bytes(c.uint(math.MaxUint64))) }
