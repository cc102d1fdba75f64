// SPDX-License-Identifier: Apache-2.0

package kvw

import (
	"encoding/binary"
	"encoding/json"
)

// Writer builds a file. It sets the counts in the header; the caller sets the other fields. It does not validate its
// input; [Read] does.
//
//	w := kvw.Writer{Header: kvw.Header{Name: "two", BlockSize: 16, Workers: 2}}
//	w.Store(0, -1, 0, 1, 2)
//	w.Query(0, 1, 5)
//	data := w.Bytes()
type Writer struct {
	Header Header
	ops    []byte
}

// Query adds a query for a prompt of these blocks.
func (w *Writer) Query(ids ...uint32) {
	w.ops = append(w.ops, byte(Query))
	w.Header.Queries++
	w.Header.QueryBlocks += w.list(ids)
}

// Store adds a store of consecutive blocks by a worker, after the block parent; parent is -1 if the first block begins
// a prompt.
func (w *Writer) Store(worker, parent int, ids ...uint32) {
	w.ops = binary.AppendUvarint(append(w.ops, byte(Store)), uint64(worker))
	w.ops = binary.AppendUvarint(w.ops, uint64(parent+1))
	w.Header.StoreEvents++
	w.Header.StoreBlocks += w.list(ids)
}

// Remove adds a removal of blocks by a worker.
func (w *Writer) Remove(worker int, ids ...uint32) {
	w.ops = binary.AppendUvarint(append(w.ops, byte(Remove)), uint64(worker))
	w.Header.RemoveEvents++
	w.Header.RemoveBlocks += w.list(ids)
}

// Bytes returns the file so far.
func (w *Writer) Bytes() []byte {
	head, err := json.Marshal(&w.Header)
	if err != nil {
		panic("kvw: " + err.Error()) // a Header always encodes
	}
	out := append([]byte(magic), head...)
	return append(append(out, '\n'), w.ops...)
}

// list adds the runs of ids and returns the number of blocks.
func (w *Writer) list(ids []uint32) int {
	w.Header.Ops++
	var runs []run
	for _, id := range ids {
		w.Header.MaxU = max(w.Header.MaxU, int(id))
		if n := len(runs); n > 0 {
			switch r := &runs[n-1]; {
			case r.n > 0 && int32(id) == r.first+r.n:
				r.n++
				continue
			case (r.n == 1 || r.n < 0) && int32(id) == r.first-max(r.n, -r.n):
				r.n = -max(r.n, -r.n) - 1
				continue
			}
		}
		runs = append(runs, run{int32(id), 1})
	}
	w.ops = binary.AppendUvarint(w.ops, uint64(len(runs)))
	last := int32(0)
	for _, r := range runs {
		d := int64(r.first) - int64(last)
		length := uint64(r.n) << 1
		last = r.first + r.n - 1
		if r.n < 0 {
			length = uint64(-r.n)<<1 | 1
			last = r.first + r.n + 1
		}
		w.ops = binary.AppendUvarint(w.ops, uint64(d<<1)^uint64(d>>63))
		w.ops = binary.AppendUvarint(w.ops, length)
	}
	return len(ids)
}
