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

// This file has the parts that the binary formats share: their frame, and a reader with bounds checks.
//
//	frame = "weftkv" kind(1 byte) version(1 byte) names(8 bytes) body sum(8 bytes)
//
// names identifies block size and scheme; sum is XXH3 of all bytes before it. Numbers are variable-length as in package
// encoding/binary, hashes 8 bytes little-endian, strings and lists have their length in front.

// snapshotError reports data that is not a valid snapshot or delta for this index. It unwraps to one of the errors
// below, or to [io.ErrUnexpectedEOF] if the data is truncated.
type snapshotError struct {
	Offset int64 // bytes into the data
	Err    error
}

// Error returns the cause and the position.
func (e *snapshotError) Error() string {
	return "replica: snapshot: " + e.Err.Error() + " at byte " + strconv.FormatInt(e.Offset, 10)
}

// Unwrap returns the cause.
func (e *snapshotError) Unwrap() error { return e.Err }

// The causes of a [snapshotError].
var (
	errForm       = errors.New("wrong kind of data")            // not the expected one of snapshot, worker and delta
	errVersion    = errors.New("unknown format version")        // written by another version of this module
	errScheme     = errors.New("block size or scheme mismatch") //
	errChecksum   = errors.New("checksum mismatch")             //
	errMalformed  = errors.New("malformed")                     // an impossible value
	errFull       = errors.New("too many blocks")               // by Options.MaxBlocks
	errNoPosition = errors.New("no position in the stream")     // the worker had no stream in the index of the snapshot
	errStore      = errors.New("store tier mismatch")           // a store here is a worker there, or a store of another tier
	errOrphans    = errors.New("MaxPending mismatch")           // the leader's MaxPending
	errGap        = errors.New("version mismatch")              // the delta begins at another version
)

const (
	frameMagic    = "weftkv"
	frameVersion  = 2
	frameHeader   = len(frameMagic) + 2 + 8
	frameChecksum = 8

	kindIndex  = 'i'
	kindWorker = 'w'
	kindDelta  = 'd'
)

// fingerprint distinguishes indexes with different block names by their hashes of a sample prompt.
func fingerprint(block int, s kvhash.Scheme) uint64 {
	n := min(block, 1<<12)
	tokens := make([]uint32, 2*n+s.Window(n)-n)
	for i := range tokens {
		tokens[i] = uint32(i)*2654435761 + 1
	}
	extras := &kvhash.Extras{Objects: []kvhash.Object{{Hash: 7, ID: "7", At: 0, Len: 1}}}
	b := binary.LittleEndian.AppendUint64([]byte(s.String()), uint64(block))
	for _, h := range s.AppendBlocks(s.AppendBlocks(nil, tokens, n, nil), tokens, n, extras) {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	return xxh3.Hash(b)
}

func appendHeader(dst []byte, kind byte, names uint64) []byte {
	dst = append(append(dst, frameMagic...), kind, frameVersion)
	return binary.LittleEndian.AppendUint64(dst, names)
}

// appendChecksum ends a frame that begins at from.
func appendChecksum(dst []byte, from int) []byte {
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

// cursor reads binary data. After the first error it is at the end, and all values are zero.
type cursor struct {
	data []byte
	pos  int
	err  *snapshotError
}

// open checks a frame and returns a cursor at its body.
func open(data []byte, kind byte) (*cursor, uint64, error) {
	c := &cursor{data: data}
	if string(c.bytes(uint64(len(frameMagic)))) != frameMagic {
		c.pos = 0
		c.fail(errForm)
	}
	if k := c.byte(); k != kind {
		c.pos--
		c.fail(errForm)
	}
	if v := c.byte(); v != frameVersion {
		c.pos--
		c.fail(errVersion)
	}
	names := c.hash()
	if c.err == nil && c.left() < frameChecksum {
		c.fail(io.ErrUnexpectedEOF)
	}
	if c.err == nil {
		end := len(data) - frameChecksum
		if xxh3.Hash(data[:end]) != binary.LittleEndian.Uint64(data[end:]) {
			c.pos = end
			c.fail(errChecksum)
		}
		c.data = data[:end]
	}
	return c, names, c.fault()
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = &snapshotError{Offset: int64(c.pos), Err: err}
	}
	c.pos = len(c.data)
}

func (c *cursor) fault() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// check fails unless ok is set.
func (c *cursor) check(ok bool) bool {
	if !ok {
		c.fail(errMalformed)
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
		c.fail(errMalformed)
		return 0
	}
	c.pos += n
	return v
}

func (c *cursor) int() int64 {
	u := c.uint(math.MaxUint64)
	return int64(u>>1) ^ -int64(u&1)
}

// count reads the number of elements, of at least size bytes each, that follow.
func (c *cursor) count(size int) int {
	n := c.uint(math.MaxUint64)
	if n > uint64(c.left()/size) {
		c.fail(io.ErrUnexpectedEOF)
		return 0
	}
	return int(n)
}

func (c *cursor) string() string { return string(c.bytes(c.uint(math.MaxUint64))) }
