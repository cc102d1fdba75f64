// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/internal/packed"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// An event of vLLM whose hashes do not name all blocks of its tokens never makes an exact worker hold blocks that the
// engine may not have.
func TestSparseEvents(t *testing.T) {
	type a = packed.Array
	type m = packed.Map
	stored := func(rest ...any) m {
		return append(m{"type", "BlockStored", "parent_block_hash", nil, "token_ids", a{1, 2, 3, 4, 5, 6}, "block_size", 2}, rest...)
	}
	for _, tt := range []struct {
		name  string
		event m
		depth int32
		state index.State
	}{
		{"all blocks", stored("block_hashes", a{7, 8, 9}), 3, index.Exact},
		{"some blocks", stored("block_hashes", a{8}), 0, index.Degraded},
		{"blocks by offset", stored("block_hashes", a{7, 9}, "block_offsets", a{0, 2}), 0, index.Degraded},
		{"the first blocks", stored("block_hashes", a{7, 8}, "block_offsets", a{0, 1}), 2, index.Exact},
		{"some blocks of a window", stored("block_hashes", a{8, 9}, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 4, "group_idx", 1), 0, index.Exact},
		{"of an unknown window", stored("block_hashes", a{8, 9}, "kv_cache_spec_kind", "sliding_window", "group_idx", 1), 0, index.Degraded},
		{"of another kind", stored("block_hashes", a{8, 9}, "kv_cache_spec_kind", "mamba", "group_idx", 1), 0, index.Degraded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := index.New(2, nil)
			id := x.AddWorker(index.Key{Instance: "a"})
			s := x.NewStream(id, nil)
			d := kvevent.NewDecoder(kvevent.VLLM, nil)
			payload := packed.Append(nil, a{1.0, a{tt.event}})
			batches, err := d.AppendFrames(nil, [][]byte{nil, {0, 0, 0, 0, 0, 0, 0, 0}, payload})
			require.Equal(t, tt.name == "some blocks", err != nil)
			s.Add(batches...)
			_, match := x.Best(kvhash.Scheme{}.AppendBlocks(nil, []uint32{1, 2, 3, 4, 5, 6}, 2, nil))
			require.Equal(t, tt.depth, match.Depth)
			w, _ := x.Worker(id)
			require.Equal(t, tt.state, w.State)
		})
	}
}

// With blocks of full attention that are larger than those it hashes, vLLM since 0.33 announces the end of a prompt as one smaller block. It is
// ignored, and the worker remains exact.
func TestTailEvents(t *testing.T) {
	for _, tt := range []struct {
		block int // of the index
		tail  *kvevent.Event
		state index.State
	}{
		{2, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{9}, Parent: 8, HasParent: true, BlockSize: 2, TokenIDs: []uint32{9, 10}}, index.Exact},
		{4, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{9}, Parent: 8, HasParent: true, BlockSize: 2, TokenIDs: []uint32{9, 10}}, index.Exact},
		{2, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{9, 10}, Parent: 8, HasParent: true, BlockSize: 2, TokenIDs: []uint32{9, 10, 11, 12}}, index.Degraded},
		{2, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{9}, Parent: 8, HasParent: true, BlockSize: 2, TokenIDs: []uint32{9}}, index.Degraded},
		{2, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{9}, Parent: 8, HasParent: true, BlockSize: 8, TokenIDs: []uint32{9, 10, 11, 12, 13, 14, 15, 16}}, index.Degraded},
	} {
		x := index.New(tt.block, nil)
		id := x.AddWorker(index.Key{Instance: "a"})
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{7, 8}, BlockSize: 4, TokenIDs: []uint32{1, 2, 3, 4, 5, 6, 7, 8}})
		require.Equal(t, index.Result{Ignored: len(tt.tail.BlockHashes)}, x.Add(id, tt.tail), "%+v", tt)
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{11}, Parent: 8, HasParent: true, BlockSize: 4, TokenIDs: []uint32{9, 10, 11, 12}})
		_, match := x.Best(kvhash.Scheme{}.AppendBlocks(nil, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, tt.block, nil))
		require.EqualValues(t, 12/tt.block, match.Depth, "%+v", tt)
		w, _ := x.Worker(id)
		require.Equal(t, tt.state, w.State, "%+v", tt)
	}
}
