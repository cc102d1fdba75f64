// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/weft-go/weft/kvhash/internal/packed"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// a is an array, m a map of keys and values in turn.
type (
	a = packed.Array
	m = packed.Map
)

func pack(v any) []byte { return packed.Append(nil, v) }

// jsonOf writes a value as JSON.
func jsonOf(v any) string {
	switch v := v.(type) {
	case a:
		var all []string
		for _, e := range v {
			all = append(all, jsonOf(e))
		}
		return "[" + strings.Join(all, " ,") + "]"
	case m:
		var all []string
		for i := 0; i < len(v); i += 2 {
			all = append(all, jsonOf(v[i])+": "+jsonOf(v[i+1]))
		}
		return "{" + strings.Join(all, ",\n") + "}"
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// seq returns the numbers from first on.
func seq(first, n int) (s a, tokens []uint32) {
	for i := range n {
		s, tokens = append(s, first+i), append(tokens, uint32(first+i))
	}
	return s, tokens
}

// one is a test of one payload; its batches have the events of want.
type wireCase struct {
	name    string
	format  kvevent.Format
	payload any // packed; as JSON too, unless it holds binary data
	want    []kvevent.Batch
	counts  kvevent.Tally // without Batches and Events
}

var at = time.Unix(1757500000, 250e6).UTC()

// wireCases has every form and every field of every form.
func wireCases() []wireCase {
	t8, tokens8 := seq(100, 8)
	t4, tokens4 := seq(1, 4)
	digest := strings.Repeat("0123456789abcdef", 4)
	batch := func(events ...any) a { return a{1757500000.25, a(events), 3} }
	of := func(events ...kvevent.Event) []kvevent.Batch {
		return []kvevent.Batch{{Time: at, DPRank: 3, Events: events}}
	}
	damaged := func(events ...kvevent.Event) []kvevent.Batch {
		b := of(events...)
		b[0].Damaged = true
		return b
	}
	stored := func(f func(*kvevent.Event)) kvevent.Event {
		e := kvevent.Event{Kind: kvevent.Stored, BlockSize: 4, BlockHashes: []uint64{7, 8}, TokenIDs: tokens8}
		if f != nil {
			f(&e)
		}
		return e
	}
	tuple := func(rest ...any) a { return append(a{"BlockStored", a{7, 8}, nil, t8, 4}, rest...) }
	mapped := func(rest ...any) m {
		return append(m{"block_hashes", a{7, 8}, "parent_block_hash", nil, "token_ids", t8, "block_size", 4}, append(rest, "type", "BlockStored")...)
	}
	var minus int64 = -5
	cases := []wireCase{
		{"tuple of 5", kvevent.VLLM, batch(tuple()), of(stored(nil)), kvevent.Tally{}},
		{"tuple of 6, adapter by number", kvevent.VLLM, batch(tuple(3)), of(stored(func(e *kvevent.Event) { e.LoRA = "#3" })), kvevent.Tally{}},
		{"tuple of 7, medium", kvevent.VLLM, batch(tuple(nil, "cpu")), of(stored(func(e *kvevent.Event) { e.Tier = kvevent.Host })), kvevent.Tally{}},
		{"tuple of 8, adapter", kvevent.VLLM, batch(tuple(1, "GPU", "ad")),
			of(stored(func(e *kvevent.Event) { e.Tier, e.LoRA = kvevent.Device, "ad" })), kvevent.Tally{}},
		{"tuple of 9, salt", kvevent.VLLM, batch(tuple(nil, nil, "ad", a{a{"ad", "salt"}, nil})),
			of(stored(func(e *kvevent.Event) { e.LoRA, e.Namespace, e.RootNamespace = "ad", "salt", true })), kvevent.Tally{}},
		{"tuple of 9, old objects", kvevent.VLLM, batch(tuple(nil, nil, nil, a{a{digest, "my image", "salt"}, a{"other"}})),
			of(stored(func(e *kvevent.Event) {
				e.Namespace, e.RootNamespace = "salt", true
				e.Objects = [][]uint64{{0x0123456789abcdef, xxh3.HashString("my image")}, {xxh3.HashString("other")}}
			})), kvevent.Tally{}},
		{"tuple of 14", kvevent.VLLM, batch(tuple(nil, "DISK", nil, nil, 2, "mla_attention", nil, "LOCAL", "store")),
			of(stored(func(e *kvevent.Event) { e.Tier, e.Group, e.Owner = kvevent.Disk, 2, "store" })), kvevent.Tally{}},
		{"tuple of 16", kvevent.VLLM, batch(tuple(nil, nil, nil, nil, 0, "mamba", nil, nil, nil, "session", "new")),
			of(stored(func(e *kvevent.Event) { e.Attention = kvevent.StateSpace })), kvevent.Tally{Fields: 1}},
		{"tuple with Dynamo's objects", kvevent.VLLM, batch(tuple(nil, "GPU", nil, nil,
			a{nil, m{"mm_objects", a{m{"mm_hash", 42, "offsets", a{a{0, 2}}}, m{"offsets", a{}, "mm_hash", 43}}}}, 1, "full_attention")),
			of(stored(func(e *kvevent.Event) {
				e.Tier, e.Group, e.Objects = kvevent.Device, 1, [][]uint64{nil, {42, 43}}
			})), kvevent.Tally{}},
		{"map", kvevent.VLLM, batch(mapped("lora_id", nil, "medium", "GPU", "lora_name", nil, "group_idx", 0)),
			of(stored(func(e *kvevent.Event) { e.Tier = kvevent.Device })), kvevent.Tally{}},
		{"map, salt and objects", kvevent.VLLM, batch(mapped("lora_name", "ad", "extra_keys", a{
			a{"ad", a{digest, 2}, a{"id", -3}, "salt"}, a{"ad", a{"id", -7}}})),
			of(stored(func(e *kvevent.Event) {
				e.LoRA, e.Namespace, e.RootNamespace = "ad", "salt", true
				e.Objects = [][]uint64{{0x0123456789abcdef, xxh3.HashString("id")}, {xxh3.HashString("id")}}
			})), kvevent.Tally{}},
		{"map, salt that is a digest, marked salt", kvevent.VLLM, batch(
			mapped("extra_keys", a{a{digest}, nil}),
			mapped("extra_keys", a{a{"dynamo-cache-salt:x"}, nil}),
			mapped("extra_keys", nil, "cache_salt", "y")),
			of(
				stored(func(e *kvevent.Event) { e.Namespace, e.RootNamespace = digest, true }),
				stored(func(e *kvevent.Event) { e.Namespace, e.RootNamespace = "x", true }),
				stored(func(e *kvevent.Event) { e.Namespace, e.RootNamespace = "y", true })), kvevent.Tally{}},
		{"map, keys that say what they are", kvevent.VLLM, batch(mapped("lora_name", "ad", "event_version", 1, "extra_keys", a{
			a{m{"type", "mm", "modality", "image", "hash", digest, "block_offset", 2}, m{"type", "lora", "name", "ad"}, m{"type", "cache_salt", "salt", "ad"}},
			a{m{"type", "legacy", "value", "what"}, m{"type", "lora", "name", "ad"}, a{"ad:id", 3}}})),
			of(stored(func(e *kvevent.Event) {
				e.LoRA, e.Namespace, e.RootNamespace = "ad", "ad", true
				e.Objects = [][]uint64{{0x0123456789abcdef}, {xxh3.HashString("what"), xxh3.HashString("id")}}
			})), kvevent.Tally{}},
		{"map, an object in the tokens after a block", kvevent.VLLM, batch(mapped("extra_keys", a{a{a{"id", 4}}, a{a{"id", 0}}})),
			of(stored(func(e *kvevent.Event) { e.Objects = [][]uint64{nil, {xxh3.HashString("id")}} })), kvevent.Tally{}},
		{"map, values of 62 bits at the positions of an image", kvevent.VLLM, batch(mapped("token_ids", a{100, 101, uint64(23533869762612420), uint64(1115227388442326932), 104, 105, 106, 107})),
			of(stored(func(e *kvevent.Event) {
				e.TokenIDs = []uint32{100, 101, 23533869762612420>>32 ^ 23533869762612420&(1<<32-1), 1115227388442326932>>32 ^ 1115227388442326932&(1<<32-1), 104, 105, 106, 107}
			})), kvevent.Tally{}},
		{"map, pairs with such a value", kvevent.VLLM, batch(mapped("token_ids", a{a{100, uint64(1) << 32}, a{uint64(1) << 32, 102}, a{102, 103}, a{103, 104}}, "block_hashes", a{7})),
			of(stored(func(e *kvevent.Event) {
				e.BlockHashes, e.TokenIDs = []uint64{7}, []uint32{100, 1, 102, 103, 104}
			})), kvevent.Tally{}},
		{"map, salt that is the adapter's name", kvevent.VLLM, batch(mapped("lora_name", "ad", "extra_keys", a{a{"ad", "ad"}, a{"ad"}})),
			of(stored(func(e *kvevent.Event) { e.LoRA, e.Namespace, e.RootNamespace = "ad", "ad", true })), kvevent.Tally{}},
		{"map, digests of embeddings", kvevent.VLLM, batch(mapped("extra_keys", a{a{[]byte{1, 2}}, a{m{"type", "prompt_embeds", "hash", []byte{3}}}})),
			of(stored(func(e *kvevent.Event) { e.Objects = [][]uint64{{xxh3.Hash([]byte{1, 2})}, {xxh3.Hash([]byte{3})}} })), kvevent.Tally{}},
		{"map, Dynamo's objects and vLLM's", kvevent.VLLM, batch(mapped("extra_keys", a{a{a{"id", 0}, "salt"}, a{a{"id", 0}}},
			"block_mm_infos", a{m{"mm_objects", a{m{"mm_hash", 42}}}, m{"mm_objects", a{m{"mm_hash", 43}}}})),
			of(stored(func(e *kvevent.Event) {
				e.Namespace, e.RootNamespace, e.Objects = "salt", true, [][]uint64{{42}, {43}}
			})), kvevent.Tally{}},
		{"localities", kvevent.VLLM, batch(mapped("medium", "CPU", "locality", "LOCAL"), mapped("locality", "PEER", "medium", "CPU")),
			damaged(stored(func(e *kvevent.Event) { e.Tier = kvevent.Host })), kvevent.Tally{Malformed: 1}},
		{"tuples with values of the wrong type", kvevent.VLLM, batch(tuple(nil, "GPU", nil, nil, 0, 123), tuple(nil, "GPU", nil, nil, 0, "mamba", "8"),
			tuple(nil, "GPU", nil, nil, 0, nil, nil, "?")), []kvevent.Batch{{Time: at, DPRank: 3, Damaged: true}}, kvevent.Tally{Malformed: 3}},
		{"map, child", kvevent.VLLM, batch(m{"type", "BlockStored", "block_hashes", a{9}, "parent_block_hash", 8, "token_ids", t4, "block_size", 4}),
			of(kvevent.Event{Kind: kvevent.Stored, BlockSize: 4, BlockHashes: []uint64{9}, Parent: 8, HasParent: true, TokenIDs: tokens4,
				RootNamespace: true}), kvevent.Tally{}},
		{"map, windows", kvevent.VLLM, batch(
			mapped("kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 1024, "group_idx", 1),
			mapped("kv_cache_spec_sliding_window", 1024), mapped("kv_cache_spec_kind", "chunked_local_attention"), mapped("kv_cache_spec_kind", "?"),
			mapped("kv_cache_spec_kind", "sink_full_attention", "kv_cache_spec_sliding_window", 8)),
			of(
				stored(func(e *kvevent.Event) { e.Attention, e.Group, e.Window = kvevent.SlidingWindow, 1, 1024 }),
				stored(func(e *kvevent.Event) { e.Attention, e.Window = kvevent.SlidingWindow, 1024 }),
				stored(func(e *kvevent.Event) { e.Attention = kvevent.OtherAttention }),
				stored(func(e *kvevent.Event) { e.Attention = kvevent.OtherAttention }),
				stored(nil)), kvevent.Tally{}},
		{"map, remote store", kvevent.VLLM, batch(mapped("medium", "CPU", "locality", "REMOTE", "ownership", "kvcr", "session_id", "s1"),
			m{"type", "BlockRemoved", "block_hashes", a{7}, "medium", "CPU", "locality", "REMOTE", "ownership", "kvcr"}),
			of(stored(func(e *kvevent.Event) { e.Tier, e.Owner = kvevent.Remote, "kvcr" }),
				kvevent.Event{Kind: kvevent.Removed, Tier: kvevent.Remote, Owner: "kvcr", BlockHashes: []uint64{7}}), kvevent.Tally{}},
		{"unknown keys, types, media", kvevent.VLLM, batch(mapped("new", a{m{"x", a{}}}, "ext", m{}),
			m{"type", "BlockMigrated", "block_hashes", "elsewhere"}, a{"BlockMigrated"}, mapped("medium", "FS"), a{"BlockRemoved", a{1}, "OBJ"}),
			of(stored(nil)), kvevent.Tally{Fields: 2, Unknown: 2, Elsewhere: 2}},
		{"malformed", kvevent.VLLM, batch(nil, 5, "x", a{}, m{}, a{a{}}, a{"BlockStored"}, mapped("block_hashes", "x"), mapped("token_ids", a{1, -1}),
			mapped("block_size", 0), mapped("block_size", -4), mapped("token_ids", a{1, a{2, 3}}), mapped("token_ids", a{a{1, 2}, 3}),
			mapped("extra_keys", a{5}), mapped("lora_name", true), mapped("parent_block_hash", "not hex"), mapped("group_idx", "0"), tuple()),
			damaged(stored(nil)), kvevent.Tally{Malformed: 17}},
		{"more tokens than hashes, more hashes than tokens", kvevent.VLLM, batch(
			m{"type", "BlockStored", "block_hashes", a{1}, "token_ids", t8, "block_size", 3},
			m{"type", "BlockStored", "block_hashes", a{1}, "token_ids", t8, "block_size", 4},
			m{"type", "BlockStored", "block_hashes", a{1}, "token_ids", t8, "block_size", 7},
			m{"type", "BlockStored", "block_hashes", a{1, 2, 3}, "token_ids", t8, "block_size", 4},
			m{"type", "BlockStored", "block_hashes", a{1, 2, 3, 4}, "token_ids", t8, "block_size", 3}),
			[]kvevent.Batch{{Time: at, DPRank: 3, Damaged: true}}, kvevent.Tally{Malformed: 5}},
		{"some blocks of a window", kvevent.VLLM, batch(
			mapped("block_size", 2, "block_hashes", a{6, 8, 9}, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 128, "extra_keys", a{a{"no salt"}, a{a{"id", 0}}, nil}),
			mapped("block_size", 2, "block_hashes", a{6, 7, 8, 9}, "kv_cache_spec_kind", "full_attention", "kv_cache_spec_sliding_window", nil, "group_idx", 1),
			mapped("block_size", 2, "block_hashes", a{6, 7, 8, 9}, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 64, "parent_block_hash", 5),
			mapped("block_size", 2, "block_hashes", a{8}, "parent_block_hash", 4, "kv_cache_spec_kind", "sliding_window", "cache_salt", "s"),
			mapped("block_size", 2, "block_hashes", a{}, "kv_cache_spec_kind", "sliding_window")),
			of(
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{6, 8, 9}, Attention: kvevent.SlidingWindow, Window: 128},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{6, 7, 8, 9}, TokenIDs: tokens8, Group: 1},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{6, 7, 8, 9}, TokenIDs: tokens8, Attention: kvevent.SlidingWindow, Window: 64,
					Parent: 5, HasParent: true, RootNamespace: true},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{8}, Attention: kvevent.SlidingWindow}), kvevent.Tally{}},
		{"offsets of blocks", kvevent.VLLM, batch(
			mapped("block_size", 2, "block_hashes", a{5, 6}, "block_offsets", a{0, 1}, "parent_block_hash", 4, "extra_keys", a{nil, a{a{"id", 0}}}),
			mapped("block_size", 2, "block_hashes", a{5, 6, 7}, "block_offsets", a{0, 1, 3}, "parent_block_hash", 4, "extra_keys", a{nil, nil, a{a{"id", 0}}}),
			mapped("block_offsets", a{1}, "block_hashes", a{8}), mapped("block_offsets", nil),
			mapped("block_offsets", a{1, 0}), mapped("block_offsets", a{0, 2}), mapped("block_offsets", a{0}), mapped("block_offsets", a{0, "1"})),
			damaged(
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{5, 6}, TokenIDs: tokens8[:4], Parent: 4, HasParent: true, RootNamespace: true,
					Objects: [][]uint64{nil, {xxh3.HashString("id")}}},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{5, 6, 7}},
				stored(func(e *kvevent.Event) { e.BlockHashes, e.TokenIDs = []uint64{8}, nil }), stored(nil)), kvevent.Tally{Malformed: 4}},
		{"lengths", kvevent.VLLM, batch(
			m{"type", "BlockStored", "block_hashes", a{7, 8}, "token_ids", a{}, "block_size", 4, "medium", "CPU"},
			m{"type", "BlockStored", "block_hashes", a{7, 8}},
			m{"type", "BlockStored", "block_hashes", a{7}, "parent_block_hash", 6, "medium", "CPU"},
			m{"type", "BlockStored", "block_hashes", a{1, 2, 3}, "token_ids", t8, "block_size", 3},
			m{"type", "BlockStored", "block_hashes", a{1}, "token_ids", t4, "block_size", 5},
			m{"type", "BlockStored", "block_hashes", a{}, "token_ids", t4, "block_size", 4}),
			of(
				kvevent.Event{Kind: kvevent.Stored, Tier: kvevent.Host, BlockSize: 4, BlockHashes: []uint64{7, 8}},
				kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{7, 8}},
				kvevent.Event{Kind: kvevent.Stored, Tier: kvevent.Host, BlockHashes: []uint64{7}, Parent: 6, HasParent: true},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 3, BlockHashes: []uint64{1, 2}, TokenIDs: tokens8[:6]}), kvevent.Tally{Partial: 2}},
		{"EAGLE", kvevent.SGLang, batch(m{"type", "BlockStored", "block_hashes", a{1, 2}, "block_size", 2, "token_ids",
			a{a{1, 2}, a{2, 3}, a{3, 4}, a{4, 9}}},
			m{"type", "BlockStored", "block_hashes", a{1, 2}, "block_size", 2, "token_ids", a{a{1, 2}, a{2, 3}, a{3, 4}}}),
			of(kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{1, 2}, TokenIDs: []uint32{1, 2, 3, 4, 9}},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{1}, TokenIDs: []uint32{1, 2, 3}}), kvevent.Tally{Partial: 1}},
		{"tokens after the blocks, which their hashes cover", kvevent.VLLM, batch(
			m{"lookahead_token_ids", a{a{3, 4}, a{5, 6}}, "type", "BlockStored", "block_hashes", a{1, 2}, "block_size", 2, "token_ids", a{1, 2, 3, 4}},
			m{"type", "BlockStored", "block_hashes", a{1, 2}, "block_size", 2, "token_ids", a{1, 2, 3, 4}, "lookahead_token_ids", a{a{3}, a{}}},
			m{"type", "BlockStored", "block_hashes", a{3}, "block_size", 2, "token_ids", a{1, 2}, "lookahead_token_ids", nil},
			m{"type", "BlockStored", "block_hashes", a{3}, "block_size", 2, "token_ids", a{}, "lookahead_token_ids", a{}},
			m{"type", "BlockStored", "block_hashes", a{4, 5}, "block_size", 2, "token_ids", a{1, 2, 3, 4}, "lookahead_token_ids", a{a{3}}},
			m{"type", "BlockStored", "block_hashes", a{4}, "block_size", 2, "token_ids", a{1, 2}, "lookahead_token_ids", a{5}},
			m{"type", "BlockStored", "block_hashes", a{4}, "block_size", 2, "token_ids", a{1, 2}, "lookahead_token_ids", a{a{-5}}},
			m{"type", "BlockStored", "block_hashes", a{6}, "block_size", 2, "token_ids", a{7, 8}, "lookahead_token_ids", a{a{9}}}),
			damaged(kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{1, 2}, TokenIDs: []uint32{1, 2, 3, 4, 5, 6}},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{1, 2}, TokenIDs: []uint32{1, 2, 3, 4}},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{3}, TokenIDs: []uint32{1, 2}},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{3}},
				kvevent.Event{Kind: kvevent.Stored, BlockSize: 2, BlockHashes: []uint64{6}, TokenIDs: []uint32{7, 8, 9}}), kvevent.Tally{Malformed: 3}},
		{"integers", kvevent.VLLM, batch(a{"BlockRemoved", a{0, 127, 128, 255, 256, 65535, 65536, uint64(math.MaxUint32), uint64(math.MaxUint32 + 1), uint64(math.MaxUint64),
			-1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, int64(math.MinInt32 - 1), int64(math.MinInt64)}}),
			of(kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{0, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64,
				math.MaxUint64, 1<<64 - 32, 1<<64 - 33, 1<<64 - 128, 1<<64 - 129, 1<<64 - 32768, 1<<64 - 32769, 1<<64 + math.MinInt32,
				1<<64 + math.MinInt32 - 1, 1 << 63}}), kvevent.Tally{}},
		{"digests of vLLM", kvevent.VLLM, batch(a{"BlockRemoved", a{[]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte{1, 2}, bytes.Repeat([]byte{7}, 300)}}, a{"BlockRemoved", a{[]byte{}}}),
			damaged(kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{0x0203040506070809, 0x0102, 0x0707070707070707}}), kvevent.Tally{Malformed: 1}},
		{"digests of SGLang", kvevent.SGLang, batch(a{"BlockRemoved", a{[]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte{1, 2}}}),
			of(kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{0x0102030405060708, 0x0102}}), kvevent.Tally{}},
		{"digests in digits", kvevent.SGLang, batch(a{"BlockRemoved", a{"0102030405060708090A", "ff"}}),
			of(kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{0x0102030405060708, 0xff}}), kvevent.Tally{}},
		{"salts of SGLang", kvevent.SGLang, batch(tuple(nil, "CPU_PINNED", m{"cache_salt", "s", "more", a{}}), tuple(nil, nil, "t"),
			mapped("cache_salt", "u", "session_id", nil, "component_type", "swa")),
			of(stored(func(e *kvevent.Event) { e.Tier, e.Namespace = kvevent.Host, "s" }),
				stored(func(e *kvevent.Event) { e.Namespace = "t" }),
				stored(func(e *kvevent.Event) { e.Namespace, e.Attention = "u", kvevent.SlidingWindow })), kvevent.Tally{Fields: 1}},
		{"session of SGLang's tuple", kvevent.SGLang, batch(tuple(nil, "GPU", "t", "session"), tuple(nil, "GPU", nil, nil)),
			of(stored(func(e *kvevent.Event) { e.Tier, e.Namespace = kvevent.Device, "t" }),
				stored(func(e *kvevent.Event) { e.Tier = kvevent.Device })), kvevent.Tally{}},
		{"tuples of old Dynamo", kvevent.VLLM, batch(tuple(nil, "GPU", nil, nil, "sliding_window", 128), tuple(nil, "GPU", nil, nil, a{}, 1, 128),
			a{"BlockRemoved", a{1}, "GPU", "mamba"}),
			of(stored(func(e *kvevent.Event) { e.Tier, e.Attention, e.Window = kvevent.Device, kvevent.SlidingWindow, 128 }),
				stored(func(e *kvevent.Event) {
					e.Tier, e.Attention, e.Group, e.Window = kvevent.Device, kvevent.SlidingWindow, 1, 128
				}),
				kvevent.Event{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{1}, Attention: kvevent.StateSpace}), kvevent.Tally{}},
		{"copies that remain", kvevent.VLLM, batch(
			m{"type", "BlockRemoved", "remaining_copy_counts", a{1, 0, 2, 0}, "block_hashes", a{1, 2, 3, 4}},
			m{"type", "BlockRemoved", "block_hashes", a{5, 6}, "remaining_copy_counts", nil},
			m{"type", "BlockRemoved", "block_hashes", a{7}, "remaining_copy_counts", a{1}},
			m{"type", "BlockRemoved", "block_hashes", a{8, 9}, "remaining_copy_counts", a{0}},
			m{"type", "BlockRemoved", "block_hashes", a{8}, "remaining_copy_counts", a{"0"}}),
			damaged(kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{2, 4}, NoCopies: true}, kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{5, 6}}),
			kvevent.Tally{Malformed: 2}},
		{"removed", kvevent.VLLM, batch(a{"BlockRemoved", a{1}}, a{"BlockRemoved", a{1}, nil}, a{"BlockRemoved", a{1}, "NVMe", 4},
			a{"BlockRemoved", a{1}, "GPU", 4, "LOCAL", "o"}, a{"BlockRemoved", a{1}, "GPU", 4, "mamba", 9, "REMOTE", "o"}, a{"BlockRemoved", a{}},
			a{"BlockRemoved", a{1}, "GPU", 0, "cross_attention"}),
			of(kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}}, kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}},
				kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}, Tier: kvevent.Disk, Group: 4},
				kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}, Tier: kvevent.Device, Group: 4, Owner: "o"},
				kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}, Tier: kvevent.Remote, Group: 4, Owner: "o", Attention: kvevent.StateSpace},
				kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{1}, Tier: kvevent.Device, Attention: kvevent.OtherAttention}),
			kvevent.Tally{}},
		{"cleared", kvevent.VLLM, batch(a{"AllBlocksCleared"}, m{"type", "AllBlocksCleared"}, m{"medium", "CPU", "type", "AllBlocksCleared"}),
			of(kvevent.Event{Kind: kvevent.Cleared}, kvevent.Event{Kind: kvevent.Cleared}, kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Host}), kvevent.Tally{}},
		{"a store cleared", kvevent.VLLM, batch(a{"AllBlocksCleared", "kvcr"}), of(kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Host, Owner: "kvcr"},
			kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Disk, Owner: "kvcr"}, kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Remote, Owner: "kvcr"}), kvevent.Tally{}},
		{"envelope is a map", kvevent.VLLM, m{"events", a{a{"AllBlocksCleared"}}, "new", 1, "ts", 1757500000.25, "data_parallel_rank", 3},
			of(kvevent.Event{Kind: kvevent.Cleared}), kvevent.Tally{Fields: 1}},
		{"envelope of 2, of the wrong types, of 4", kvevent.SGLang, a{nil, a{}}, []kvevent.Batch{{}}, kvevent.Tally{}},
		{"rank that is none", kvevent.SGLang, a{math.MaxFloat64, a{}, -1, 5}, []kvevent.Batch{{}}, kvevent.Tally{Fields: 1}},
		{"events that are none", kvevent.SGLang, a{float64(1), "x", 1}, []kvevent.Batch{{DPRank: 1, Time: time.Unix(1, 0).UTC(), Damaged: true}}, kvevent.Tally{Malformed: 1}},
	}
	token := func(id int) m {
		return m{"type", "unique_token", "token_id", id, "token_extra_id", 0}
	}
	block := func(hash any, level int, tokens ...any) m {
		return m{"type", "stored_block", "block_hash", hash, "tokens", a(tokens), "cache_level", level, "priority", 35}
	}
	trt := func(id int, data m) m {
		return m{"event_id", id, "data", data, "window_size", 32768, "attention_dp_rank", 1}
	}
	t1, t2, t3 := token(1), token(2), token(3)
	cases = append(cases,
		wireCase{"TensorRT-LLM", kvevent.TensorRTLLM, a{
			trt(0, m{"type", "created", "num_blocks_per_cache_level", a{10, 20}}),
			trt(1, m{"type", "stored", "parent_hash", nil, "blocks", a{block(11, 0, t1, t2), block(12, 0, t2, t3), block(13, 1, t3, t3), block(14, 0, t1)},
				"lora_name", "ad", "cache_salt", "s"}),
			trt(2, m{"type", "updated", "block_hash", 11, "cache_level", m{"type", "event_diff", "new_value", 1, "old_value", 0}, "priority", nil}),
			trt(3, m{"type", "updated", "block_hash", 11, "cache_level", nil, "priority", m{"type", "event_diff", "new_value", 1, "old_value", 0}}),
			trt(4, m{"type", "removed", "block_hashes", a{14, 12}}),
			trt(5, m{"type", "removed", "block_hashes", a{14}}),
			trt(6, m{"type", "stored", "parent_hash", 12, "blocks", a{m{"block_hash", 15, "tokens", a{7, 8}, "cache_level", 2,
				"mm_keys", a{m{"type", "mm_key", "hash", digest, "start_offset", 0}, a{"id", 4}}}}}),
			trt(7, m{"type", "newer"}),
			trt(8, m{"type", "stored", "blocks", a{m{"block_hash", 15}, m{"block_hash", "x"}}}),
			m{"event_id", 9, "data", m{"type", "removed", "block_hashes", a{12}}, "window_size", 128, "layer_group_id", 2},
			m{"event_id", 10, "data", m{"type", "stored", "parent_hash", nil, "blocks", a{block(16, 0, m{"token_id", 5, "token_extra_id", 77}, m{"token_id", 5, "token_extra_id", 77})}}},
			trt(11, m{"type", "removed", "block_hashes", a{14}}), // 14 is remembered no longer
		}, []kvevent.Batch{
			{Seq: 0, DPRank: 1},
			{Seq: 1, DPRank: 1, Events: []kvevent.Event{
				{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 2, BlockHashes: []uint64{11, 12}, TokenIDs: []uint32{1, 2, 2, 3}, LoRA: "ad", Namespace: "s"},
				{Kind: kvevent.Stored, Tier: kvevent.Host, BlockSize: 2, BlockHashes: []uint64{13}, Parent: 12, HasParent: true, TokenIDs: []uint32{3, 3}, LoRA: "ad", Namespace: "s"}}},
			{Seq: 2, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Host, BlockHashes: []uint64{11}},
				{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{11}}}},
			{Seq: 3, DPRank: 1},
			{Seq: 4, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{14, 12}},
				{Kind: kvevent.Removed, Tier: kvevent.Host, BlockHashes: []uint64{14, 12}}}},
			{Seq: 5, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{14}},
				{Kind: kvevent.Removed, Tier: kvevent.Host, BlockHashes: []uint64{14}}}},
			{Seq: 6, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Disk, BlockSize: 2, BlockHashes: []uint64{15}, Parent: 12, HasParent: true,
				TokenIDs: []uint32{7, 8}, Objects: [][]uint64{{0x0123456789abcdef, xxh3.HashString("id")}}}}},
			{Seq: 7, DPRank: 1},
			{Seq: 8, DPRank: 1, Damaged: true},
			{Seq: 9, Events: []kvevent.Event{
				{Kind: kvevent.Removed, Tier: kvevent.Device, Attention: kvevent.SlidingWindow, Group: 2, BlockHashes: []uint64{12}},
				{Kind: kvevent.Removed, Tier: kvevent.Host, Attention: kvevent.SlidingWindow, Group: 2, BlockHashes: []uint64{12}},
				{Kind: kvevent.Removed, Tier: kvevent.Disk, Attention: kvevent.SlidingWindow, Group: 2, BlockHashes: []uint64{12}}}},
			{Seq: 10, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 2, BlockHashes: []uint64{16}, TokenIDs: []uint32{5, 5},
				Objects: [][]uint64{{77}}}}},
			{Seq: 11, DPRank: 1, Events: []kvevent.Event{
				{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{14}}, {Kind: kvevent.Removed, Tier: kvevent.Host, BlockHashes: []uint64{14}},
				{Kind: kvevent.Removed, Tier: kvevent.Disk, BlockHashes: []uint64{14}}}},
		}, kvevent.Tally{Partial: 2, Unknown: 1, Malformed: 1}},
		wireCase{"TensorRT-LLM, salts of blocks", kvevent.TensorRTLLM, trt(4, m{"type", "stored", "parent_hash", nil, "blocks", a{
			append(block(21, 0, t1, t2), "cache_salt", "s"), append(block(22, 0, t2, t3), "cache_salt", "s", "lora_id", nil),
			append(block(23, 0, t3, t3), "cache_salt", "t", "lora_id", 7), block(24, 0, t3, t3)}}),
			[]kvevent.Batch{{Seq: 4, DPRank: 1, Events: []kvevent.Event{
				{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 2, BlockHashes: []uint64{21, 22}, TokenIDs: []uint32{1, 2, 2, 3}, Namespace: "s"},
				{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 2, BlockHashes: []uint64{23}, Parent: 22, HasParent: true,
					TokenIDs: []uint32{3, 3}, Namespace: "t", LoRA: "#7"},
				{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 2, BlockHashes: []uint64{24}, Parent: 23, HasParent: true, TokenIDs: []uint32{3, 3}},
			}}}, kvevent.Tally{}},
		wireCase{"TensorRT-LLM, digests", kvevent.TensorRTLLM, trt(4, m{"type", "stored", "parent_hash", digest, "blocks", a{
			append(block("00000000000000ff"+digest[:48], 0, t1, m{"token_id", digest, "token_extra_id", 0}), "mm_keys", a{}), block("fe", 0, t1, t2)}}),
			[]kvevent.Batch{{Seq: 4, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 2,
				BlockHashes: []uint64{0xff, 0xfe}, Parent: 0x0123456789abcdef, HasParent: true,
				TokenIDs: []uint32{1, 0, 1, 2}, Objects: [][]uint64{{0x0123456789abcdef}}}}}}, kvevent.Tally{}},
		wireCase{"TensorRT-LLM, a block that becomes whole", kvevent.TensorRTLLM, a{
			trt(0, m{"type", "stored", "blocks", a{block(31, 0, t1)}}),
			trt(1, m{"type", "stored", "blocks", a{block(31, 0, t1, t2)}}),
			trt(2, m{"type", "removed", "block_hashes", a{31}})},
			[]kvevent.Batch{{DPRank: 1},
				{Seq: 1, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 2, BlockHashes: []uint64{31}, TokenIDs: []uint32{1, 2}}}},
				{Seq: 2, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{31}},
					{Kind: kvevent.Removed, Tier: kvevent.Host, BlockHashes: []uint64{31}}}}}, kvevent.Tally{Partial: 1}},
		wireCase{"TensorRT-LLM, a window that is none", kvevent.TensorRTLLM, a{
			m{"event_id", 0, "window_size", -1, "data", m{"type", "removed", "block_hashes", a{1}}}, trt(1, m{"type", "removed", "block_hashes", a{1}})},
			[]kvevent.Batch{
				{Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{1}}, {Kind: kvevent.Removed, Tier: kvevent.Host, BlockHashes: []uint64{1}}}},
				{Seq: 1, DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Device, BlockHashes: []uint64{1}}, {Kind: kvevent.Removed, Tier: kvevent.Host, BlockHashes: []uint64{1}}}}},
			kvevent.Tally{}},
		wireCase{"TensorRT-LLM, one event", kvevent.TensorRTLLM, m{"data", m{"blocks", a{}, "type", "stored"}, "event_id", 4},
			[]kvevent.Batch{{Seq: 4}}, kvevent.Tally{}},
		wireCase{"TensorRT-LLM, no number", kvevent.TensorRTLLM, a{m{"data", m{}}, 5, trt(-1, m{"type", "created"})}, nil, kvevent.Tally{Malformed: 3}},
	)
	dynamo := func(id int, tier string, data any) m {
		return m{"worker_id", uint64(1) << 63, "storage_tier", tier, "event", m{"event_id", id, "data", data, "dp_rank", 2}}
	}
	// A CacheOwnerId of Dynamo 1.6.1, as rmp_serde encodes it, and what its Display prints before the slot.
	id := func(b int) m {
		return m{"digest", a{b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b}, "source", "explicit"}
	}
	owner := func(slot int) m {
		return m{"pool", m{"indexer_domain", m{"cache_semantics", id(0xab), "routing_scope", id(0xcd)}, "dc_id", 7}, "slot", id(slot)}
	}
	const pool = "abababababababababababababababab:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd/0000000000000007/"
	cases = append(cases,
		wireCase{"Dynamo", kvevent.Dynamo, a{
			dynamo(1, "device", m{"stored", m{"parent_hash", nil, "start_position", 0, "blocks", a{
				m{"block_hash", 1, "tokens_hash", uint64(math.MaxUint64), "mm_extra_info", m{"mm_objects", a{}}}, m{"tokens_hash", 12, "block_hash", 2}}}}),
			dynamo(2, "host_pinned", m{"stored", m{"parent_hash", 2, "blocks", a{m{"block_hash", 3, "tokens_hash", 13}}}}),
			dynamo(3, "external", m{"removed", m{"block_hashes", a{1, 2}}}),
			dynamo(4, "device", "cleared"),
			append(dynamo(5, "device", "cleared"), "residency_domain", "cache_owner", "state_source", owner(0xa1)),
			dynamo(6, "tape", "cleared"),
			dynamo(7, "disk", m{"moved", m{}}),
			dynamo(8, "disk", m{"stored", a{}}),
			m{"event_id", 9, "data", m{"removed", m{"block_hashes", a{5}}}},
			append(dynamo(10, "device", "cleared"), "residency_domain", "planet"),
			append(dynamo(11, "device", "cleared"), "residency_domain", nil),
			append(dynamo(12, "disk", "cleared"), "residency_domain", "worker"),
			append(dynamo(13, "external", m{"removed", m{"block_hashes", a{1}}}), "residency_domain", "cache_owner", "state_source", owner(0xb2)),
			append(dynamo(14, "external", m{"removed", m{"block_hashes", a{1}}}), "residency_domain", "cache_owner", "state_source", "lmcache"),
			append(dynamo(15, "external", m{"removed", m{"block_hashes", a{1}}}), "residency_domain", "cache_owner"),
			append(dynamo(16, "external", m{"removed", m{"block_hashes", a{1}}}), "residency_domain", "cache_owner", "state_source", m{"x", 1}),
			append(dynamo(17, "external", m{"removed", m{"block_hashes", a{1}}}), "residency_domain", "cache_owner", "state_source", owner(0x100)),
		}, []kvevent.Batch{
			{Worker: 1 << 63, Seq: 1, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Device, BlockHashes: []uint64{1, 2}, LocalHashes: []uint64{math.MaxUint64, 12}}}},
			{Worker: 1 << 63, Seq: 2, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Host, BlockHashes: []uint64{3}, Parent: 2, HasParent: true, LocalHashes: []uint64{13}}}},
			{Worker: 1 << 63, Seq: 3, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Remote, BlockHashes: []uint64{1, 2}}}},
			{Worker: 1 << 63, Seq: 4, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Cleared}}},
			{Worker: 1 << 63, Seq: 5, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Cleared, Tier: kvevent.Host, Owner: pool + "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"},
				{Kind: kvevent.Cleared, Tier: kvevent.Disk, Owner: pool + "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"},
				{Kind: kvevent.Cleared, Tier: kvevent.Remote, Owner: pool + "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"}}},
			{Worker: 1 << 63, Seq: 6, DPRank: 2},
			{Worker: 1 << 63, Seq: 7, DPRank: 2},
			{Worker: 1 << 63, Seq: 8, DPRank: 2, Damaged: true},
			{Seq: 9, Events: []kvevent.Event{{Kind: kvevent.Removed, BlockHashes: []uint64{5}}}},
			{Worker: 1 << 63, Seq: 10, DPRank: 2},
			{Worker: 1 << 63, Seq: 11, DPRank: 2},
			{Worker: 1 << 63, Seq: 12, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Cleared}}},
			{Worker: 1 << 63, Seq: 13, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Remote, BlockHashes: []uint64{1},
				Owner: pool + "b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2"}}},
			{Worker: 1 << 63, Seq: 14, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Remote, BlockHashes: []uint64{1}, Owner: "lmcache"}}},
			{Worker: 1 << 63, Seq: 15, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Removed, Tier: kvevent.Remote, BlockHashes: []uint64{1}, Owner: "cache_owner"}}},
			{Worker: 1 << 63, Seq: 16, DPRank: 2},
			{Worker: 1 << 63, Seq: 17, DPRank: 2},
		}, kvevent.Tally{Elsewhere: 5, Unknown: 1, Malformed: 1}},
		wireCase{"Dynamo, no number", kvevent.Dynamo, dynamo(-2, "device", "cleared"), nil, kvevent.Tally{Malformed: 1}},
		wireCase{"Dynamo, one event", kvevent.Dynamo, dynamo(int(minus)+6, "gpu", "Cleared"),
			[]kvevent.Batch{{Worker: 1 << 63, Seq: 1, DPRank: 2, Events: []kvevent.Event{{Kind: kvevent.Cleared}}}}, kvevent.Tally{}},
	)
	return cases
}

var options = &kvevent.DecoderOptions{BlockSize: 2}

func TestDecode(t *testing.T) {
	lives := map[kvevent.Format]*kvevent.Decoder{} // each has decoded the input above
	for _, tt := range wireCases() {
		t.Run(tt.name, func(t *testing.T) {
			check := func(d *kvevent.Decoder, payload []byte) {
				t.Helper()
				before := d.Tally()
				got, err := d.Append(nil, payload)
				if tt.counts.Malformed == 0 {
					require.NoError(t, err)
				} else {
					_, ok := errors.AsType[*kvevent.DecodeError](err)
					require.True(t, ok, err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				after := d.Tally()
				events, damaged := 0, 0
				for _, b := range got {
					events += len(b.Events)
					if b.Damaged {
						damaged++
					}
				}
				require.EqualValues(t, len(got), after.Batches-before.Batches)
				require.EqualValues(t, events, after.Events-before.Events)
				require.EqualValues(t, damaged, after.Damaged-before.Damaged)
				skipped := after.Malformed + after.Unknown + after.Elsewhere
				require.Equal(t, skipped, d.Skipped())
				counts := kvevent.Tally{Malformed: after.Malformed - before.Malformed, Unknown: after.Unknown - before.Unknown,
					Elsewhere: after.Elsewhere - before.Elsewhere, Partial: after.Partial - before.Partial, Fields: after.Fields - before.Fields}
				if diff := cmp.Diff(tt.counts, counts); diff != "" {
					t.Errorf("counts (-want +got):\n%s", diff)
				}
			}
			check(kvevent.NewDecoder(tt.format, options), pack(tt.payload))
			if !strings.Contains(tt.name, "digests of") {
				check(kvevent.NewDecoder(tt.format, options), []byte(jsonOf(tt.payload)))
			}
			if lives[tt.format] == nil {
				lives[tt.format] = kvevent.NewDecoder(tt.format, options)
			}
			if tt.format != kvevent.TensorRTLLM { // it knows of windows and levels
				check(lives[tt.format], pack(tt.payload))
			}
		})
	}
}

// Every truncation gives an error and no panic, and the events before the cut are decoded as in the whole input.
func TestDecodeTruncated(t *testing.T) {
	for _, tt := range wireCases() {
		d := kvevent.NewDecoder(tt.format, options)
		for _, payload := range [][]byte{pack(tt.payload), []byte(jsonOf(tt.payload))} {
			step := 1
			if testing.Short() {
				step = 13
			}
			for n := 0; n < len(payload); n += step {
				got, err := d.Append(nil, payload[:n])
				var fault *kvevent.DecodeError
				require.ErrorAs(t, err, &fault, "%s, %d of %d", tt.name, n, len(payload))
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s, %d of %d", tt.name, n, len(payload))
				if tt.format <= kvevent.SGLang {
					require.Len(t, got, 1)
					require.True(t, got[0].Damaged)
					if tt.want[0].Events != nil && got[0].Events != nil && tt.name != "some blocks of a window" { // the next event locates them
						k := len(got[0].Events)
						require.Equal(t, tt.want[0].Events[:k], got[0].Events)
					}
				}
			}
			got, err := d.Append(nil, append(payload[:len(payload):len(payload)], 1))
			require.ErrorContains(t, err, "something after the end")
			require.True(t, len(got) == 0 || got[len(got)-1].Damaged)
		}
	}
}

// A payload that is not a batch is treated as a damaged batch: its number was used.
func TestDecodeNoBatch(t *testing.T) {
	for _, payload := range []any{m{}, m{"error", "busy"}, m{"ts", 1.0}, a{}, a{1.0}, "x", 5} {
		d := kvevent.NewDecoder(kvevent.VLLM, nil)
		got, err := d.Append(nil, pack(payload))
		_, ok := errors.AsType[*kvevent.DecodeError](err)
		require.True(t, ok, "%v: %v", payload, err)
		require.Len(t, got, 1)
		require.True(t, got[0].Damaged)
	}
}

func TestDecodeFrames(t *testing.T) {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	payload := pack(a{1.0, a{a{"AllBlocksCleared"}}})
	got, err := d.AppendFrames(nil, [][]byte{nil, {0, 0, 0, 0, 0, 0, 1, 2}, payload})
	require.NoError(t, err)
	want := []kvevent.Batch{{Seq: 258, Time: time.Unix(1, 0).UTC(), Events: []kvevent.Event{{Kind: kvevent.Cleared}}}}
	require.Empty(t, cmp.Diff(want, got))
	end := bytes.Repeat([]byte{0xff}, 8)
	got, err = d.AppendFrames(got, [][]byte{[]byte("topic"), end, nil})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(append(want, kvevent.Batch{Seq: kvevent.EndOfReplay}), got))
	// A replay comes without a topic.
	got, err = d.AppendFrames(nil, [][]byte{{0, 0, 0, 0, 0, 0, 1, 2}, payload})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
	for _, topic := range [][]byte{nil, []byte("kv-events")} { // to a DEALER, with the topic: TensorRT-LLM's publisher
		got, err = d.AppendFrames(nil, [][]byte{nil, topic, {0, 0, 0, 0, 0, 0, 1, 2}, payload})
		require.NoError(t, err)
		require.Equal(t, uint64(258), got[0].Seq)
		got, err = d.AppendFrames(nil, [][]byte{nil, topic, end, nil})
		require.NoError(t, err)
		require.Equal(t, []kvevent.Batch{{Seq: kvevent.EndOfReplay}}, got)
	}
	got, err = d.AppendFrames(nil, [][]byte{end, {}})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]kvevent.Batch{{Seq: kvevent.EndOfReplay}}, got))
	// A damaged batch keeps its number.
	got, err = d.AppendFrames(nil, [][]byte{nil, {0, 0, 0, 0, 0, 0, 0, 7}, payload[:len(payload)-1]})
	require.EqualError(t, err, "kvevent: the payload ends too early at byte 12")
	require.Empty(t, cmp.Diff([]kvevent.Batch{{Seq: 7, Damaged: true}}, got))
	for _, frames := range [][][]byte{nil, {end, payload}, {nil, payload}, {payload}, {nil, {1}, payload}, {nil, append(end, 1), payload}, {nil, end, payload}, {nil, nil, nil, nil}, {{1}, nil, {0, 0, 0, 0, 0, 0, 1, 2}, payload}} {
		got, err = d.AppendFrames(nil, frames)
		var fault *kvevent.DecodeError
		require.ErrorAs(t, err, &fault)
		require.EqualValues(t, -1, fault.Offset)
		require.Empty(t, got)
	}
}

// Hostile payloads end in an error or in skipped events, at once and without memory for what they claim.
func TestDecodeHostile(t *testing.T) {
	deep := bytes.Repeat([]byte{0x91}, 1<<20)
	stored := pack(a{"BlockStored", a{1}, nil})
	hex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		require.NoError(t, err)
		return b
	}
	tests := []struct {
		name    string
		payload []byte
		err     string
	}{
		{"empty", nil, "ends too early"},
		{"no batch", pack(5), "no batch"},
		{"no batch in JSON", []byte(" [1] "), "a batch without events"},
		{"batch of 4 G", hex("ddffffffff"), "ends too early"},
		{"1 G events", append(hex("92c0dd3fffffff"), stored...), "ends too early"},
		{"1 G hashes", hex("92c09192ac426c6f636b52656d6f766564dd3fffffff0101"), "ends too early"},
		{"1 G in a string", hex("92c09192db3fffffff0101"), "ends too early"},
		{"1 G in binary data", hex("92c09192c63fffffff0101"), "ends too early"},
		{"1 G pairs", hex("92c091df3fffffff0101"), "ends too early"},
		{"1 G in an extension", hex("92c0919ac93fffffff0101"), "ends too early"},
		{"a byte that is nothing", hex("92c091c1"), "a byte that begins no value at byte 3"},
		{"deep", append(hex("92c0"), deep...), "ends too early"},
		{"deep value of an unknown key", append(append(hex("92c09181a178"), deep...), 0xc0), "event without a type"},
		{"arrays that claim each other", append(hex("92c09181a178"), bytes.Repeat(hex("dc0400"), 1<<16)...), "ends too early"},
		{"deep JSON", bytes.Repeat([]byte("["), 1<<20), "nested too deep at byte 64"},
		{"events beyond the limit", pack(append(a{nil}, a{a{"AllBlocksCleared"}, a{"AllBlocksCleared"}, a{"AllBlocksCleared"}, a{"AllBlocksCleared"}})), "more than 3 events"},
		{"blocks beyond the limit", pack(a{nil, a{a{"BlockRemoved", a{1, 2, 3, 4}}, a{"BlockRemoved", a{1, 2, 3, 4, 5}}}}), "more than 4 blocks"},
		{"objects beyond the limit", pack(a{nil, a{m{"type", "BlockStored", "block_mm_infos", a{nil, nil, nil, nil, m{"mm_objects", a{m{"mm_hash", 1}}}}}}}), "more than 4 blocks"},
		{"offsets beyond the limit", pack(a{nil, a{m{"type", "BlockStored", "block_offsets", a{0, 1, 2, 3, 4}}}}), "more than 4 blocks"},
		{"tokens beyond the limit", pack(a{nil, a{a{"BlockStored", a{1}, nil, a{1, 2, 3, 4, 5, 6, 7, 8, 9}, 2}}}), "more than 8 tokens"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := kvevent.NewDecoder(kvevent.VLLM, nil).Limit(3, 4, 8)
			got, err := d.Append(nil, tt.payload)
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
				if strings.HasPrefix(tt.err, "more than") {
					require.ErrorIs(t, err, kvevent.ErrLimit)
				}
			}
			require.Len(t, got, 1)
			require.True(t, got[0].Damaged)
		})
	}
	for _, f := range []kvevent.Format{kvevent.TensorRTLLM, kvevent.Dynamo} {
		d := kvevent.NewDecoder(f, nil).Limit(2, 0, 0)
		_, err := d.Append(nil, pack(a{m{"event_id", 1}, m{"event_id", 2}, m{"event_id", 3}}))
		require.ErrorIs(t, err, kvevent.ErrLimit)
		_, err = d.Append(nil, pack(5))
		require.ErrorContains(t, err, "no event")
	}
}

// Values of every kind are skipped, and times are numbers of any kind.
func TestDecodeSkips(t *testing.T) {
	for _, v := range []string{"c0", "c2", "c3", "7f", "e0", "cc01", "cd0001", "ce00000001", "cf0000000000000001", "d0ff", "d1ffff", "d2ffffffff", "d3ffffffffffffffff",
		"ca3f800000", "cb3ff0000000000000", "a0", "a161", "d90161", "da000161", "db0000000161", "c40161", "c5000161", "c60000000161",
		"90", "9101", "dc000101", "dd0000000101", "80", "810102", "de00010102", "df000000010102", "819090", "8181c09190c0",
		"d40001", "d5000102", "d60001020304", "d7000102030405060708", "d80001020304050607080910111213141516", "c7010001", "c800010001", "c9000000010001"} {
		b, err := hex.DecodeString("93ca3f8000009182a178" + v + "a474797065b0416c6c426c6f636b73436c656172656401")
		require.NoError(t, err)
		got, err := kvevent.NewDecoder(kvevent.SGLang, nil).Append(nil, b)
		require.NoError(t, err, v)
		require.Empty(t, cmp.Diff([]kvevent.Batch{{Time: time.Unix(1, 0).UTC(), DPRank: 1, Events: []kvevent.Event{{Kind: kvevent.Cleared}}}}, got), v)
	}
	for ts, want := range map[any]time.Time{5: time.Unix(5, 0).UTC(), -5: time.Unix(-5, 0).UTC(), -0.5: time.Unix(-1, 5e8).UTC(), math.Inf(1): {}, math.NaN(): {}, "x": {}} {
		got, err := kvevent.NewDecoder(kvevent.SGLang, nil).Append(nil, pack(a{ts, a{}}))
		require.NoError(t, err)
		require.Equal(t, want, got[0].Time)
	}
}

func TestDecodeJSON(t *testing.T) {
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	good := func(events string) []kvevent.Event {
		t.Helper()
		got, err := d.Append(nil, []byte(`[1, [`+events+`]]`))
		require.NoError(t, err)
		return got[0].Events
	}
	ev := good(`{"type":"BlockStored","block_hashes":[18446744073709551615,-1,-9223372036854775808],"token_ids":[1,2,3],"block_size":1,"lora_name":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud83dx"}`)
	require.Equal(t, []uint64{math.MaxUint64, math.MaxUint64, 1 << 63}, ev[0].BlockHashes)
	require.Equal(t, "a\"\\/\b\f\n\r\té😀\uFFFDx", ev[0].LoRA)
	require.Len(t, good("{ \"type\" :\t\"AllBlocksCleared\" , \"x\":{},\"y\":[ ],\"z\":[{},[],{\"a\":[1.5e3,true,false,null]}]}"), 1)
	for _, bad := range []string{`[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `[tru]`, `[+1]`, `["a` + "\n" + `"]`, `["\x"]`, `["\u12g4"]`, `[1}`, `{"a":1]`, `[--1]`,
		`[1]]`, `[1][`, `[]{}`, `["a": 1]`} {
		_, err := d.Append(nil, []byte(bad))
		var fault *kvevent.DecodeError
		require.ErrorAs(t, err, &fault, bad)
		require.GreaterOrEqual(t, fault.Offset, int64(0), "%s: %v", bad, err)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF, bad)
	}
}

func TestDecodeAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, tt := range wireCases() {
		if tt.counts.Malformed > 0 {
			continue // the error allocates
		}
		payloads := [][]byte{pack(tt.payload), []byte(jsonOf(tt.payload))}
		for i, payload := range payloads {
			if i == 1 && strings.Contains(tt.name, "digests of") {
				continue
			}
			d := kvevent.NewDecoder(tt.format, options)
			var dst []kvevent.Batch
			dst, _ = d.Append(dst, payload)
			require.Zero(t, testing.AllocsPerRun(10, func() { dst, _ = d.Append(dst[:0], payload) }), "%s: %s", tt.name, payload)
		}
	}
	b := allFields()
	payload := kvevent.AppendBatch(nil, &b)
	d := kvevent.NewDecoder(kvevent.Compact, nil)
	dst, err := d.Append(nil, payload)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(10, func() { dst, _ = d.Append(dst[:0], payload) }))
	require.Zero(t, testing.AllocsPerRun(10, func() { payload = kvevent.AppendBatch(payload[:0], &b) }))
}

// Strings stay right when the table of those that are known is full.
func TestDecodeNames(t *testing.T) {
	d := kvevent.NewDecoder(kvevent.SGLang, nil)
	const salt = "salt 000000"
	payload := pack(a{nil, a{a{"BlockStored", a{1}, nil, a{1}, 1, nil, nil, salt}}})
	digits := payload[bytes.Index(payload, []byte(salt))+len("salt "):][:6]
	n := 100_000
	if testing.Short() {
		n = 20_000
	}
	for i := range n {
		copy(digits, fmt.Sprintf("%06d", i))
		got, err := d.Append(nil, payload)
		if want := "salt " + string(digits); err != nil || got[0].Events[0].Namespace != want {
			t.Fatal(got, err, want)
		}
	}
}

func TestObjectHash(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	require.EqualValues(t, 0, kvevent.ObjectHash(""))
	require.Equal(t, uint64(0x0123456789abcdef), kvevent.ObjectHash(digest))
	require.Equal(t, xxh3.HashString("x"+digest[1:]), kvevent.ObjectHash("x"+digest[1:]))
	require.Equal(t, xxh3.HashString(digest[:63]+"-"), kvevent.ObjectHash(digest[:63]+"-"))
	require.Equal(t, xxh3.HashString(digest[1:]), kvevent.ObjectHash(digest[1:]))
}

func TestNames(t *testing.T) {
	require.Equal(t, "stored removed cleared kind(9)", fmt.Sprint(kvevent.Stored, " ", kvevent.Removed, " ", kvevent.Cleared, " ", kvevent.Kind(9)))
	require.Equal(t, "[ device host disk remote tier(9)]", fmt.Sprint([]kvevent.Tier{0, 1, 2, 3, 4, 9}))
	require.EqualValues(t, kvevent.NumTiers, kvevent.Remote)
}

func TestFormats(t *testing.T) {
	require.Equal(t, "[format(0) vllm sglang trtllm dynamo compact format(6)]", fmt.Sprint([]kvevent.Format{0, 1, 2, 3, 4, 5, 6}))
	require.Panics(t, func() { kvevent.NewDecoder(0, nil) })
}

func FuzzDecode(f *testing.F) {
	for _, tt := range wireCases() {
		f.Add(byte(tt.format), pack(tt.payload))
		f.Add(byte(tt.format), []byte(jsonOf(tt.payload)))
	}
	b := allFields()
	f.Add(byte(kvevent.Compact), kvevent.AppendBatch(nil, &b))
	f.Fuzz(func(t *testing.T, format byte, payload []byte) {
		d := kvevent.NewDecoder(kvevent.VLLM+kvevent.Format(format)%5, options).Limit(1<<12, 0, 0)
		got, err := d.Append(nil, payload)
		if err != nil && d.Tally().Malformed == 0 {
			require.True(t, len(got) == 0 || got[len(got)-1].Damaged)
		}
		var kept []kvevent.Batch
		var packed []byte
		for i := range got {
			kept = append(kept, got[i].Clone())
			packed = kvevent.AppendBatch(packed, &got[i])
			for _, e := range got[i].Events {
				if e.Kind == kvevent.Stored && e.BlockSize > 0 && len(e.TokenIDs) > 0 && kvevent.Format(format)%5 != 4 {
					require.LessOrEqual(t, len(e.BlockHashes)*int(e.BlockSize), len(e.TokenIDs))
				}
			}
		}
		// Decoding again, after it, gives the same.
		again, _ := d.Append(nil, payload)
		if d2 := kvevent.Format(format) % 5; d2 != 2 { // TensorRT-LLM's partial blocks are remembered
			require.Empty(t, cmp.Diff(kept, again))
		}
		c := kvevent.NewDecoder(kvevent.Compact, options).Limit(1<<12, 0, 0)
		back, err := c.Append(nil, packed)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(kept, back))
	})
}

func BenchmarkDecode(b *testing.B) {
	rng := uint32(1)
	for _, size := range []int{16, 64} {
		const blocks = 64
		hashes, tokens := a{}, a{}
		for range blocks {
			rng = rng*1664525 + 1013904223
			hashes = append(hashes, uint64(rng)<<32|uint64(rng))
			for range size {
				rng = rng*1664525 + 1013904223
				tokens = append(tokens, int(rng%152_064))
			}
		}
		tuple := pack(a{1.5, a{a{"BlockStored", hashes, 5, tokens, size, nil, "GPU", nil}, a{"BlockRemoved", hashes, "GPU"}}, 0})
		named := pack(a{1.5, a{m{"type", "BlockStored", "block_hashes", hashes, "parent_block_hash", 5, "token_ids", tokens, "block_size", size,
			"lora_id", nil, "medium", "GPU", "lora_name", nil, "group_idx", 0}, m{"type", "BlockRemoved", "block_hashes", hashes, "medium", "GPU"}}, 0})
		d := kvevent.NewDecoder(kvevent.VLLM, nil)
		decoded, err := d.Append(nil, tuple)
		require.NoError(b, err)
		events := decoded[0].Clone()
		full := kvevent.AppendBatch(nil, &events)
		events.Events[0].SequenceHashes, events.Events[0].TokenIDs = events.Events[0].BlockHashes, nil
		short := kvevent.AppendBatch(nil, &events)
		for _, form := range []struct {
			name    string
			format  kvevent.Format
			payload []byte
		}{{"tuple", kvevent.VLLM, tuple}, {"map", kvevent.VLLM, named}, {"compact", kvevent.Compact, full}, {"hashes", kvevent.Compact, short}} {
			b.Run(fmt.Sprintf("form=%s/block=%d", form.name, size), func(b *testing.B) {
				d := kvevent.NewDecoder(form.format, nil)
				var dst []kvevent.Batch
				b.ReportAllocs()
				b.SetBytes(int64(len(form.payload)))
				for b.Loop() {
					dst, _ = d.Append(dst[:0], form.payload)
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(ns/blocks/2, "ns/eventblock")
				b.ReportMetric(ns/float64(blocks*size), "ns/token")
			})
		}
	}
}
