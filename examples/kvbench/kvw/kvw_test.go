// SPDX-License-Identifier: Apache-2.0

package kvw_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/kvbench/kvw"
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func small() *kvw.Writer {
	w := &kvw.Writer{Header: kvw.Header{Name: "small", BlockSize: 16, Workers: 2}}
	w.Store(0, -1, 0, 1, 2)
	w.Query(0, 1, 2, 3, 4)
	w.Store(0, 2, 3, 4)
	w.Store(1, -1, 0, 1)
	w.Remove(0, 4, 3, 2)
	w.Query()
	w.Query(0, 1, 5, 6)
	return w
}

func TestRead(t *testing.T) {
	w, err := kvw.Read(small().Bytes())
	require.NoError(t, err)
	require.Len(t, w.Ops, 7)
	ids := func(i int) []uint32 { return w.AppendIDs(nil, &w.Ops[i]) }
	require.Equal(t, []uint32{0, 1, 2, 3, 4}, ids(1))
	require.Equal(t, []uint32{4, 3, 2}, ids(4))
	require.Empty(t, ids(5))
	require.Equal(t, []uint32{0, 1, 5, 6}, ids(6))

	// The first output of splitmix64 with seed 0 is published.
	local := w.AppendLocal(nil, &w.Ops[1])
	require.Equal(t, uint64(0xE220A8397B1DCDAF), local[0])
	seq := w.AppendSeq(nil, &w.Ops[1])
	want := []uint64{local[0]}
	for _, l := range local[1:] {
		want = append(want, kvhash.Next(want[len(want)-1], l))
	}
	require.Equal(t, want, seq)
	require.Empty(t, cmp.Diff(kvevent.Event{Kind: kvevent.Stored, BlockHashes: seq[3:], LocalHashes: local[3:], HasParent: true, Parent: seq[2]},
		w.Ops[2].Event))
	require.Empty(t, cmp.Diff(kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{seq[4], seq[3], seq[2]}}, w.Ops[4].Event))
	p, ok := w.Parent(5)
	require.True(t, ok)
	require.Equal(t, uint32(1), p)
	_, ok = w.Parent(0)
	require.False(t, ok)
}

func TestErrors(t *testing.T) {
	head := func(f func(*kvw.Header)) string {
		w := small()
		f(&w.Header)
		return string(w.Bytes())
	}
	ok := string(small().Bytes())
	bare := func(w kvw.Writer, ops string) string {
		w.Header.BlockSize, w.Header.Workers = 16, 2
		return string(w.Bytes()) + ops
	}
	one := kvw.Writer{Header: kvw.Header{MaxU: 9}}
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "at byte 0"},
		{"magic", "KVW2 {}\n", "at byte 0"},
		{"one line", "KVW1 {}", "at byte 7: header line has no end"},
		{"json", "KVW1 {]\n", "at byte 5"},
		{"no workers", head(func(h *kvw.Header) { h.Workers = 0 }), "0 workers"},
		{"many workers", head(func(h *kvw.Header) { h.Workers = 1 << 30 }), "workers"},
		{"many blocks", head(func(h *kvw.Header) { h.MaxU = 1 << 30 }), "header out of range"},
		{"sparse", head(func(h *kvw.Header) { h.MaxU = 1 << 20 }), "there are only 16"},
		{"count", head(func(h *kvw.Header) { h.Queries = 2 }), "3 queries, header has 2"},
		{"cut", ok[:len(ok)-1], fmt.Sprintf("at byte %d: the file ends", len(ok)-1)},
		{"kind", bare(one, "\x03"), "kind 3"},
		{"worker", bare(one, "\x02\x02\x00"), "worker 2, of 2"},
		{"parent", bare(one, "\x01\x00\x0b\x00"), "parent 11, of 11"},
		{"id", bare(one, "\x00\x01\x14\x02"), "blocks 10 to 10, of 10"},
		{"below", bare(one, "\x00\x01\x02\x07"), "blocks 1 to -1, of 10"},
		{"counted", bare(one, "\x00\x01\x02\x05"), "1 operations, header has 0"},
		{"long", bare(one, "\x00\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "beyond block 0"},
		{"twice", bare(one, "\x00\x02\x00\x14\x11\x04"), "more blocks in a list than the 10"},
		{"nothing", bare(one, "\x00\x01\x00\x00"), "0 blocks from"},
		{"number", bare(one, "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "more than 64 bits"},
		{"many runs", bare(one, "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "the file ends"},
		{"two parents", two(func(w *kvw.Writer) { w.Query(0, 1); w.Query(1) }), "block 1 has parent -1 here and 0 before"},
		{"own parent", two(func(w *kvw.Writer) { w.Store(0, 1, 1, 0) }), "store after unknown block 1"},
		{"removed", two(func(w *kvw.Writer) { w.Query(1, 2); w.Query(1, 2); w.Remove(0, 0) }), "removal of unknown block 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := kvw.Read([]byte(c.data))
			require.ErrorContains(t, err, c.want)
			_, typed := errors.AsType[*kvw.Error](err)
			require.True(t, typed)
		})
	}
}

func two(f func(*kvw.Writer)) string {
	w := &kvw.Writer{Header: kvw.Header{BlockSize: 16, Workers: 2}}
	f(w)
	return string(w.Bytes())
}

// Read returns the written operations, for any order of ids.
func TestWriteRead(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		w := &kvw.Writer{Header: kvw.Header{BlockSize: 1, Workers: 1}}
		prompt := make([]uint32, 1+rnd.IntN(30))
		for i := range prompt {
			prompt[i] = uint32(i)
		}
		if rnd.IntN(2) == 0 {
			rnd.Shuffle(len(prompt), func(i, j int) { prompt[i], prompt[j] = prompt[j], prompt[i] })
		}
		w.Store(0, -1, prompt...)
		gone := append([]uint32(nil), prompt...)
		if rnd.IntN(2) == 0 {
			rnd.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
		}
		w.Remove(0, gone...)
		got, err := kvw.Read(w.Bytes())
		require.NoError(t, err)
		require.Equal(t, prompt, got.AppendIDs(nil, &got.Ops[0]))
		require.Equal(t, gone, got.AppendIDs(nil, &got.Ops[1]))
	}
}

func TestUndo(t *testing.T) {
	w, err := kvw.Read(small().Bytes())
	require.NoError(t, err)
	held := map[[2]uint32]bool{}
	play := func(ops []kvw.Op) {
		for i := range ops {
			for _, id := range w.AppendIDs(nil, &ops[i]) {
				k := [2]uint32{ops[i].Worker, id}
				switch ops[i].Kind {
				case kvw.Store:
					require.False(t, held[k])
					if p, ok := w.Parent(id); ok {
						require.True(t, held[[2]uint32{k[0], p}])
					}
					held[k] = true
				case kvw.Remove:
					require.True(t, held[k])
					delete(held, k)
				}
			}
		}
	}
	for n := range w.Ops {
		clear(held)
		play(w.Ops[:n])
		before := fmt.Sprint(held)
		undo, err := w.Undo(w.Ops[n:], func(worker, id uint32) bool { return held[[2]uint32{worker, id}] })
		require.NoError(t, err)
		play(w.Ops[n:])
		play(undo)
		require.Equal(t, before, fmt.Sprint(held))
	}
	_, err = w.Undo(w.Ops, func(_, _ uint32) bool { return true })
	require.ErrorContains(t, err, "has no effect")
}

func FuzzRead(f *testing.F) {
	f.Add(small().Bytes())
	f.Add([]byte("KVW1 {\"block_size\":1,\"workers\":1}\n"))
	f.Add([]byte(two(func(w *kvw.Writer) { w.Query(3, 2, 1, 0, 7) })))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := kvw.Read(data)
		if err != nil {
			e, ok := errors.AsType[*kvw.Error](err)
			require.True(t, ok)
			require.LessOrEqual(t, e.Offset, int64(len(data)))
			return
		}
		for i := range w.Ops {
			op := &w.Ops[i]
			require.Len(t, w.AppendSeq(nil, op), op.Blocks)
			require.Len(t, w.AppendLocal(nil, op), op.Blocks)
		}
	})
}

// The shared workloads are valid and consistent.
func TestShared(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(dir, "kv", "workloads", "*.kvw"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no workloads: set WEFT_SHARED")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		w, err := kvw.Read(data)
		require.NoError(t, err, file)
		require.Equal(t, strings.TrimSuffix(filepath.Base(file), ".kvw"), w.Name)
	}
}
