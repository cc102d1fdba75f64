// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// vLLM sends the cache salt only with the first block of a prompt. What continues the prompt gets it, also when the
// batches come in another order: here the first is lost and replayed.
func TestNamespaces(t *testing.T) {
	stored := func(hash int, parent any, rest ...any) m {
		return append(m{"type", "BlockStored", "block_hashes", a{hash}, "parent_block_hash", parent, "token_ids", a{1}, "block_size", 1}, rest...)
	}
	removed := func(hash int, medium string) m {
		return m{"type", "BlockRemoved", "block_hashes", a{hash}, "medium", medium}
	}
	moved := func(hash int, medium string) m {
		return m{"type", "BlockStored", "block_hashes", a{hash}, "medium", medium}
	}
	salt := func(s string) []any { return []any{"extra_keys", a{a{s}}} }
	batches := []a{
		{stored(1, nil, salt("s")...), stored(100, nil)},
		{stored(2, 1), stored(101, 100), stored(3, 2)},
		{stored(4, 3), moved(2, "CPU"), removed(2, "GPU"), stored(5, 2), removed(3, "GPU"), stored(6, 3), stored(11, nil, salt("t")...), stored(12, 11)},
		{a{"AllBlocksCleared"}, stored(7, 2)},
	}
	names := func(got []kvevent.Batch) (s string) {
		for _, b := range got {
			for _, e := range b.Events {
				require.False(t, e.RootNamespace)
				if e.Kind == kvevent.Stored && len(e.TokenIDs) > 0 {
					s += fmt.Sprint(e.BlockHashes[0], e.Namespace, " ")
				}
			}
		}
		return s
	}
	decode := func(d *kvevent.Decoder, seq int) kvevent.Batch {
		got, err := d.AppendFrames(nil, [][]byte{nil, {0, 0, 0, 0, 0, 0, 0, byte(seq)}, pack(a{nil, batches[seq]})})
		require.NoError(t, err)
		return got[0]
	}
	for _, order := range [][]int{{0, 1, 2}, {1, 2, 0}, {0, 2, 1}} {
		d, in := kvevent.NewDecoder(kvevent.VLLM, nil), sequence.New(nil)
		var s strings.Builder
		for i, seq := range order {
			b := decode(d, seq)
			if i > 0 && seq < order[i-1] {
				s.WriteString(names(in.AppendReplay(nil, b)))
				continue
			}
			s.WriteString(names(in.Append(nil, b)))
		}
		require.Equal(t, "1s 100 2s 101 3s 4s 5s 6 11t 12t ", s.String(), order)
		require.Equal(t, "7 ", names(in.Append(nil, decode(d, 3))))
	}

	// A cache that forgets the beginning drops blocks that the one of full attention still has, under the same hash.
	group := func(i int, kind string) []any { return []any{"group_idx", i, "kv_cache_spec_kind", kind} }
	batches = append(batches, a{
		stored(21, nil, append(salt("u"), group(1, "sliding_window")...)...),
		stored(21, nil, append(salt("u"), group(0, "full_attention")...)...),
		a{"BlockRemoved", a{21}, nil, 1},
		stored(22, 21, group(0, "full_attention")...),
		stored(22, 21, group(1, "sliding_window")...),
		a{"BlockRemoved", a{22}, nil, 1},
		stored(23, 22, group(0, "full_attention")...),
		a{"BlockRemoved", a{23}, nil, 0},
		stored(24, 23, group(0, "full_attention")...),
	})
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	groups := decode(d, 4)
	groups.Seq = 0
	require.Equal(t, "21u 21u 22u 22u 23u 24 ", names(new(sequence.Tracker).Append(nil, groups)))

	// A snapshot brings its own namespaces, and those beyond the bound are reported.
	in := sequence.New(&sequence.Options{MaxSalted: 2})
	in.Replace(nil, 0, kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, SequenceHashes: []uint64{9}, Namespace: "s"})
	require.Equal(t, "2s 101 3s ", names(in.Append(nil, decode(d, 1))))
	trust, why := in.State()
	require.Equal(t, "degraded the namespaces of some prompts were not kept", trust.String()+" "+why)
	in.Append(nil, decode(d, 3))
	trust, _ = in.State()
	require.Equal(t, sequence.Exact, trust, "batch 2 is missing, but the rank was cleared")
}

// A damaged batch lowers the state until the rank is cleared or replaced, and is not requested again.
func TestTrackerDamaged(t *testing.T) {
	in := sequence.New(nil)
	require.Len(t, in.Append(nil, kvevent.Batch{Seq: 0}), 1)
	require.Len(t, in.Append(nil, kvevent.Batch{Seq: 1, Damaged: true}), 1)
	require.Len(t, in.Append(nil, kvevent.Batch{Seq: 2}), 1)
	require.Equal(t, need{}, needOf(in))
	trust, why := in.State()
	require.Equal(t, "degraded batch 1 was lost or unreadable", trust.String()+" "+why)
	in.Append(nil, kvevent.Batch{Seq: 3, Events: []kvevent.Event{{Kind: kvevent.Cleared, Owner: "store"}}})
	trust, _ = in.State()
	require.Equal(t, sequence.Degraded, trust)
	in.Append(nil, kvevent.Batch{Seq: 4, Events: []kvevent.Event{{Kind: kvevent.Cleared}}})
	trust, _ = in.State()
	require.Equal(t, sequence.Exact, trust)
}

// What is held is bounded in bytes.
func TestTrackerHeldBytes(t *testing.T) {
	in := sequence.New(&sequence.Options{MaxHeldBytes: 10_000})
	batch := func(seq, hashes int) kvevent.Batch {
		return kvevent.Batch{Seq: uint64(seq), Events: []kvevent.Event{{Kind: kvevent.Removed, BlockHashes: make([]uint64, hashes)}}}
	}
	for seq := 1; seq <= 5; seq++ {
		require.Empty(t, in.Append(nil, batch(seq, 500)))
	}
	got := in.Skip(nil)
	require.Len(t, got, 2)
	require.EqualValues(t, 4, got[0].Seq)
	require.Empty(t, in.Append(nil, batch(7, 5000)), "too large to be held")
	require.Empty(t, in.Append(nil, batch(8, 5)))
	require.Len(t, in.Skip(nil), 1)
	// What was dropped is counted no longer.
	for seq := 10; seq < 100; seq += 2 {
		require.Empty(t, in.Append(nil, batch(seq, 1000)))
		require.Len(t, in.Skip(nil), 1)
	}
}

// A snapshot is complete: earlier entries are discarded.
func TestNamespacesSnapshot(t *testing.T) {
	in := sequence.New(nil)
	root := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{1}, Namespace: "old", RootNamespace: true}
	in.Append(nil, kvevent.Batch{Seq: 0, Events: []kvevent.Event{root}})
	in.Replace(nil, 4, kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Namespace: "new"})
	for i, want := range []string{"", "new"} {
		parent := uint64(i + 1)
		child := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{parent + 10}, Parent: parent, HasParent: true, TokenIDs: []uint32{2}, RootNamespace: true}
		out := in.Append(nil, kvevent.Batch{Seq: 5 + uint64(i), Events: []kvevent.Event{child}})
		require.Equal(t, want, out[0].Events[0].Namespace, parent)
	}
}

// The size of a held batch is that at its arrival, even if a namespace was set before it is delivered.
func TestTrackerHeldBytesNamespaces(t *testing.T) {
	in := sequence.New(&sequence.Options{MaxHeldBytes: 2000})
	long := strings.Repeat("x", 1000)
	in.Append(nil, kvevent.Batch{Seq: 0, Events: []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{1}, TokenIDs: []uint32{1}, Namespace: long, RootNamespace: true}}})
	child := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, TokenIDs: []uint32{2}, RootNamespace: true}
	seq := uint64(1)
	for range 50 {
		require.Empty(t, in.Append(nil, kvevent.Batch{Seq: seq + 1, Events: []kvevent.Event{child}}))
		out := in.Append(nil, kvevent.Batch{Seq: seq})
		require.Len(t, out, 2)
		require.Equal(t, long, out[1].Events[0].Namespace)
		seq += 2
	}
	for i := range uint64(100) {
		require.Empty(t, in.Append(nil, kvevent.Batch{Seq: seq + 1 + i, Events: []kvevent.Event{child}}))
	}
	require.Less(t, len(in.Skip(nil)), 20)
}

// What another group does to a block's name changes nothing for the group that counts.
func TestNamespacesOtherGroup(t *testing.T) {
	root := kvevent.Event{Kind: kvevent.Stored, Tier: kvevent.Device, BlockHashes: []uint64{1}, TokenIDs: []uint32{1}, Namespace: "s", RootNamespace: true}
	child := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{2}, Parent: 1, HasParent: true, TokenIDs: []uint32{2}, RootNamespace: true}
	again := root
	again.Tier, again.Group, again.Attention = kvevent.Host, 1, kvevent.SlidingWindow
	for _, other := range []kvevent.Event{again, {Kind: kvevent.Stored, Tier: kvevent.Host, Group: 1, BlockHashes: []uint64{1}}} {
		in := sequence.New(nil)
		out := in.Append(nil, kvevent.Batch{Seq: 0, Events: []kvevent.Event{root, other,
			{Kind: kvevent.Removed, Tier: kvevent.Device, Group: 1, BlockHashes: []uint64{1}}, child,
			{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{1}}, child}})
		require.Equal(t, "s", out[0].Events[3].Namespace)
		require.Equal(t, "", out[0].Events[5].Namespace, "nothing of it is left")
	}
}
