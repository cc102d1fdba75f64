// SPDX-License-Identifier: Apache-2.0

package kvw

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Limits that [Read] enforces for every file: a few bytes can represent very many blocks. A file within them needs at
// most 36 bytes of memory for each of MaxBlocks, and 300 bytes for each of its operations.
const (
	MaxBlocks      = 1 << 24 // different blocks; also blocks that all events store and remove
	MaxQueryBlocks = 1 << 27 // blocks of all queries; limits the time
	MaxWorkers     = 1 << 16
)

// Error describes a fault in a file.
type Error struct {
	Offset int64 // of the byte, from the start of the file
	Err    error
}

// Error returns the position and the fault.
func (e *Error) Error() string { return fmt.Sprintf("kvw: at byte %d: %v", e.Offset, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

const magic = "KVW1 "

// Read decodes a file. data is not retained. Errors are of type *[Error]: a file that is truncated or contradicts its
// header, a block with different parents, a store after an unknown block, sizes beyond the limits. The time is
// O(blocks).
func Read(data []byte) (*Workload, error) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return nil, &Error{0, fmt.Errorf("does not begin with %q", magic)}
	}
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		return nil, &Error{int64(len(data)), fmt.Errorf("header line has no end")}
	}
	w := new(Workload)
	if err := json.Unmarshal(data[len(magic):end], &w.Header); err != nil {
		return nil, &Error{int64(len(magic)), err}
	}
	r := reader{data: data, at: end + 1, h: &w.Header}
	if w.BlockSize <= 0 || w.Workers <= 0 || w.Workers > MaxWorkers || w.MaxU < 0 || w.MaxU >= MaxBlocks {
		return nil, &Error{int64(len(magic)), fmt.Errorf("header out of range: %d workers, blocks of %d tokens, max_u %d", w.Workers, w.BlockSize, w.MaxU)}
	}
	runs, err := r.count()
	if err != nil {
		return nil, err
	}
	// This pass can fail only on the parents of blocks: r has read the file before.
	w.Ops = make([]Op, 0, w.Header.Ops)
	w.parent = make([]int32, w.MaxU+1)
	w.seq, w.local = make([]uint64, w.MaxU+1), make([]uint64, w.MaxU+1)
	for i := range w.parent {
		w.parent[i] = notListed
	}
	all := make([]run, 0, runs)
	room := make([]uint64, 0, 2*w.StoreBlocks+w.RemoveBlocks)
	var ids []uint32
	for r.at = end + 1; r.at < len(data); {
		at := r.at
		op := Op{Kind: Kind(r.byte())}
		parent := int32(noParent)
		switch op.Kind {
		case Store:
			op.Worker, parent = uint32(r.uvarint()), int32(r.uvarint())-1
		case Remove:
			op.Worker = uint32(r.uvarint())
		}
		n := len(all)
		op.Blocks = r.list(func(x run) { all = append(all, x) })
		op.runs = all[n:len(all):len(all)]
		ids = w.AppendIDs(ids[:0], &op)
		if op.Kind == Store && parent >= 0 && w.parent[parent] == notListed {
			return nil, &Error{int64(at), fmt.Errorf("store after unknown block %d", parent)}
		}
		p := parent
		for _, id := range ids {
			if op.Kind == Remove {
				if w.parent[id] == notListed {
					return nil, &Error{int64(at), fmt.Errorf("removal of unknown block %d", id)}
				}
				continue
			}
			if !w.setParent(int32(id), p) {
				return nil, &Error{int64(at), fmt.Errorf("block %d has parent %d here and %d before (-1: none)", id, p, w.parent[id])}
			}
			p = int32(id)
		}
		if op.Kind != Query {
			room = w.fill(&op, parent, room)
		}
		w.Ops = append(w.Ops, op)
	}
	return w, nil
}

// reader decodes the operations. After an error it returns zeros.
type reader struct {
	data []byte
	at   int
	h    *Header
	err  *Error
}

func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{int64(at), fmt.Errorf(format, args...)}
	}
}

func (r *reader) byte() byte {
	b := r.data[r.at]
	r.at++
	return b
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.data[r.at:])
	switch {
	case n == 0:
		r.fail(len(r.data), "the file ends inside an operation")
		return 0
	case n < 0:
		r.fail(r.at, "a number of more than 64 bits")
		return 0
	}
	r.at += n
	return v
}

// number reads a number that must be less than limit.
func (r *reader) number(what string, limit int) int {
	at := r.at
	v := r.uvarint()
	if v >= uint64(limit) {
		r.fail(at, "%s %d, of %d", what, v, limit)
		return 0
	}
	return int(v)
}

// list reads a list, calls f with each of its runs, and returns the number of blocks.
func (r *reader) list(f func(run)) (blocks int) {
	ids := int64(r.h.MaxU) + 1
	last := int64(0)
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		at := r.at
		z := r.uvarint()
		delta := int64(z>>1) ^ -int64(z&1)
		l := r.uvarint()
		if r.err != nil {
			return blocks
		}
		first, length := last+delta, int64(l>>1)
		if delta < -ids || delta > ids || length > ids || length == 0 {
			r.fail(at, "%d blocks from %d beyond block %d, of %d blocks", length, delta, last, ids)
			return blocks
		}
		last = first + length - 1
		x := run{int32(first), int32(length)}
		if l&1 != 0 {
			last, x.n = first-length+1, -x.n
		}
		if min(first, last) < 0 || max(first, last) >= ids {
			r.fail(at, "blocks %d to %d, of %d", first, last, ids)
			return blocks
		}
		if blocks += int(length); int64(blocks) > ids {
			r.fail(at, "more blocks in a list than the %d that there are", ids)
			return blocks
		}
		f(x)
	}
	return blocks
}

// count checks all operations and the counts of the header, and returns the number of runs.
func (r *reader) count() (runs int, err error) {
	start := r.at
	var h Header
	for r.at < len(r.data) {
		at := r.at
		k := Kind(r.byte())
		switch k {
		case Query:
		case Store:
			r.number("worker", r.h.Workers)
			r.number("parent", r.h.MaxU+2)
		case Remove:
			r.number("worker", r.h.Workers)
		default:
			r.fail(at, "no operation of kind %d", k)
		}
		n := r.list(func(run) { runs++ })
		if r.err != nil {
			return 0, r.err
		}
		h.Ops++
		switch k {
		case Query:
			h.Queries++
			h.QueryBlocks += n
		case Store:
			h.StoreEvents++
			h.StoreBlocks += n
		case Remove:
			h.RemoveEvents++
			h.RemoveBlocks += n
		}
		if h.QueryBlocks > MaxQueryBlocks || h.StoreBlocks+h.RemoveBlocks > MaxBlocks {
			return 0, &Error{int64(at), fmt.Errorf("more than %d blocks in queries or %d in events", MaxQueryBlocks, MaxBlocks)}
		}
	}
	for _, c := range []struct {
		what           string
		header, actual int
	}{
		{"operations", r.h.Ops, h.Ops},
		{"queries", r.h.Queries, h.Queries}, {"blocks in queries", r.h.QueryBlocks, h.QueryBlocks},
		{"stores", r.h.StoreEvents, h.StoreEvents}, {"blocks stored", r.h.StoreBlocks, h.StoreBlocks},
		{"removals", r.h.RemoveEvents, h.RemoveEvents}, {"blocks removed", r.h.RemoveBlocks, h.RemoveBlocks},
	} {
		if c.header != c.actual {
			return 0, &Error{int64(r.at), fmt.Errorf("%d %s, header has %d", c.actual, c.what, c.header)}
		}
	}
	if blocks := h.QueryBlocks + h.StoreBlocks; r.h.MaxU > 0 && r.h.MaxU >= blocks {
		return 0, &Error{int64(start), fmt.Errorf("max_u is %d, but there are only %d blocks", r.h.MaxU, blocks)}
	}
	return runs, nil
}
