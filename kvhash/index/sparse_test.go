// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"slices"
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

// A smaller block that is the first event of a worker may be the end of a prompt, so it does not fix the size of the worker's blocks.
func TestTailFirst(t *testing.T) {
	prompt := make([]uint32, 16)
	for i := range prompt {
		prompt[i] = uint32(i + 1)
	}
	event := func(size, from, to int, set ...func(*kvevent.Event)) *kvevent.Event {
		ev := pageEvent(prompt, size, from/size, to/size, kvevent.Device)
		for _, f := range set {
			f(ev)
		}
		return ev
	}
	host := func(ev *kvevent.Event) { ev.Tier = kvevent.Host }
	owned := func(ev *kvevent.Event) { ev.Owner = "lmcache" }
	bare := func(ev *kvevent.Event) { ev.TokenIDs = nil }
	type events = []*kvevent.Event
	for _, tt := range []struct {
		name   string
		events events
		state  index.State
		depth  int // in tokens
	}{
		{"a block after the tail", events{event(2, 0, 2), event(4, 0, 4)}, index.Exact, 4},
		{"several blocks", events{event(2, 0, 2), event(4, 0, 16)}, index.Exact, 16},
		{"several tails", events{event(2, 0, 2), event(2, 0, 2), event(4, 0, 16)}, index.Exact, 16},
		{"tails later too", events{event(2, 0, 2), event(4, 0, 4), event(2, 4, 6), event(4, 4, 12)}, index.Exact, 12},
		{"blocks of four tails", events{event(2, 0, 2), event(2, 2, 4), event(8, 0, 16)}, index.Exact, 16},
		{"a tail whose parent is not announced", events{event(2, 2, 4), event(8, 0, 16)}, index.Exact, 16},
		{"the tail becomes a block", events{event(2, 0, 2), {Kind: kvevent.Removed, BlockHashes: event(2, 0, 2).BlockHashes}, event(4, 0, 8)}, index.Exact, 8},
		{"only tails", events{event(2, 0, 2)}, index.Exact, 0},
		{"two blocks are no tail", events{event(2, 0, 4), event(4, 0, 16)}, index.Degraded, 0},
		{"no multiple", events{event(4, 0, 4), event(6, 0, 6)}, index.Degraded, 0},
		{"larger blocks of a connector", events{event(4, 0, 4), event(8, 0, 16, host)}, index.Degraded, 0},
		{"larger blocks of a store", events{event(4, 0, 4), event(8, 0, 16, owned)}, index.Degraded, 0},
		{"larger blocks without tokens", events{event(4, 0, 4), event(8, 0, 16, bare)}, index.Degraded, 0},
	} {
		for _, block := range []int{1, 2, 4, 8} {
			t.Run(fmt.Sprintf("%s/block=%d", tt.name, block), func(t *testing.T) {
				x := index.NewAll(block, &index.AllOptions{Journal: 1 << 20})
				var y *index.Index // loads a snapshot after the first event, and follows
				id := x.AddWorker(index.Key{Instance: "a"})
				stream := x.NewStream(id, nil)
				for i, ev := range tt.events {
					stream.Add(kvevent.Batch{Seq: uint64(i), Events: []kvevent.Event{*ev}})
					require.NoError(t, x.Check())
					if i == 0 {
						var err error
						y, err = index.LoadAll(x.AppendSnapshot(nil), nil)
						require.NoError(t, err)
					}
				}
				w, _ := x.Worker(id)
				require.Equal(t, tt.state, w.State, w.Why)
				if tt.depth > 0 {
					_, m := x.Best(kvhash.Scheme{}.AppendBlocks(nil, prompt, block, nil))
					require.EqualValues(t, tt.depth/block, m.Depth)
				}
				if x.Pages(id) > 0 || block > 2 {
					return // pages are not part of snapshots
				}
				delta, _, ok := x.AppendDelta(nil, y.Version())
				require.True(t, ok)
				require.NoError(t, y.AddDelta(delta))
				require.Equal(t, x.AppendSnapshot(nil), y.AppendSnapshot(nil))
				for _, ev := range tt.events { // a block is removed under the size that is known now
					x.Add(id, &kvevent.Event{Kind: kvevent.Removed, Tier: ev.Tier, BlockHashes: ev.BlockHashes})
				}
				require.Zero(t, x.Len())
			})
		}
	}
}

// With EAGLE and MTP, the hashes of vLLM since 0.33 cover tokens after each block. A scheme that covers fewer finds a block too many of prompts
// that diverge in these tokens, so the worker is not exact.
func TestTokensAfterBlocks(t *testing.T) {
	type a = packed.Array
	type m = packed.Map
	const why = "stored blocks that depend on tokens after them, which the scheme ignores"
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	other := append(slices.Clone(prompt[:8]), 90, 91, 92, 93)
	for _, tt := range []struct {
		name, variant string
		block, after  int
		depth, beside int32 // of the prompt and of the other one, in tokens
		why           string
	}{
		{"plain", "", 4, 0, 12, 8, ""},
		{"one token, plain", "", 4, 1, 12, 8, why},
		{"one token", "eagle", 4, 1, 12, 4, ""},
		{"one token, larger engine blocks", "eagle", 2, 1, 12, 6, ""},
		{"three tokens", "eagle", 4, 3, 12, 4, why},
		{"one token, pages", "eagle", 8, 1, 8, 0, ""},
		{"one token, pages, plain", "", 8, 1, 8, 8, why},
		{"three tokens, pages", "eagle", 8, 3, 8, 0, why},
	} {
		t.Run(tt.name, func(t *testing.T) {
			scheme, err := kvhash.Lookup("dynamo", &kvhash.Options{Variant: tt.variant})
			require.NoError(t, err)
			x := index.New(tt.block, &index.Options{Scheme: scheme})
			id := x.AddWorker(index.Key{Instance: "a"})
			s := x.NewStream(id, nil)
			d := kvevent.NewDecoder(kvevent.VLLM, nil)
			var events a
			for _, part := range [][2]int{{0, 2}, {2, 3}} { // as they are computed
				ev := m{"type", "BlockStored", "block_size", 4, "parent_block_hash", nil}
				if part[0] > 0 {
					ev[5] = part[0] - 1
				}
				var hashes, tokens, ahead a
				for i := part[0]; i < part[1]; i++ {
					hashes = append(hashes, i)
					var list a
					for _, token := range prompt[4*i : 4*i+4] {
						tokens = append(tokens, int(token))
					}
					for _, token := range prompt[4*i+4 : 4*i+4+tt.after] {
						list = append(list, int(token))
					}
					ahead = append(ahead, list)
				}
				ev = append(ev, "block_hashes", hashes, "token_ids", tokens)
				if tt.after > 0 {
					ev = append(ev, "lookahead_token_ids", ahead)
				}
				events = append(events, ev)
			}
			batches, err := d.AppendFrames(nil, [][]byte{nil, {0, 0, 0, 0, 0, 0, 0, 0}, packed.Append(nil, a{1.0, events})})
			require.NoError(t, err)
			s.Add(batches...)
			_, match := x.Best(scheme.AppendBlocks(nil, prompt, tt.block, nil))
			require.EqualValues(t, tt.depth, match.Depth*int32(tt.block))
			_, match = x.Best(scheme.AppendBlocks(nil, other, tt.block, nil))
			require.EqualValues(t, tt.beside, match.Depth*int32(tt.block))
			w, _ := x.Worker(id)
			require.Equal(t, tt.why, w.Why)
		})
	}
}
