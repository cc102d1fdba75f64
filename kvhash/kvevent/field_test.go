// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Field returns values of every type, from arrays, maps and JSON.
func TestField(t *testing.T) {
	tuple := a{"BlockStored", a{7}, nil, a{1, 2}, 2, 3, "NvMe", "ad", a{a{"ad", a{"img", -3}, []byte{1, 2}}}, a{nil}, 4, "mamba", 8, "LOCAL", "own", "s"}
	object := m{"type", "BlockStored", "block_hashes", a{7}, "parent_block_hash", uint64(math.MaxUint64), "token_ids", a{1, 2}, "block_size", 2,
		"lora_id", 3, "medium", "GPU", "extra_keys", nil, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 8, "new", m{"x", 1.5, "y", a{true}}}
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	field := func(batch, event int, name string, want any) {
		t.Helper()
		got, ok := d.Field(batch, event, name)
		require.True(t, ok, name)
		require.Empty(t, cmp.Diff(want, got), name)
	}
	absent := func(batch, event int, name string) {
		t.Helper()
		_, ok := d.Field(batch, event, name)
		require.False(t, ok, name)
	}
	_, err := d.Append(nil, pack(a{1.0, a{a{"unknown"}, tuple, object, a{"AllBlocksCleared", "store"}, a{"BlockRemoved", a{1}, "FLASH"}, a{"BlockRemoved", a{1}, "DISK", 2}}}))
	require.NoError(t, err)
	for name, want := range map[string]any{"type": "BlockStored", "parent_block_hash": nil, "lora_id": int64(3), "medium": "NvMe", "lora_name": "ad",
		"extra_keys": []any{[]any{"ad", []any{"img", int64(-3)}, []byte{1, 2}}}, "block_mm_infos": []any{nil}, "group_idx": int64(4),
		"kv_cache_spec_kind": "mamba", "kv_cache_spec_sliding_window": int64(8), "locality": "LOCAL", "ownership": "own", "session_id": "s"} {
		field(0, 0, name, want)
	}
	for name, want := range map[string]any{"parent_block_hash": uint64(math.MaxUint64), "lora_id": int64(3), "extra_keys": nil,
		"kv_cache_spec_sliding_window": int64(8), "new": map[string]any{"x": 1.5, "y": []any{true}}} {
		field(0, 1, name, want)
	}
	for i := 2; i < 5; i++ { // one for each tier
		field(0, i, "ownership", "store")
	}
	field(0, 5, "medium", "DISK")
	field(0, 5, "group_idx", int64(2))
	absent(0, 0, "new")
	absent(0, 1, "session_id")
	absent(0, 6, "type")
	absent(0, -1, "type")
	absent(1, 0, "type")
	absent(-1, 0, "type")
	_, err = d.Append(nil, []byte(jsonOf(a{1.0, a{object}})))
	require.NoError(t, err)
	field(0, 0, "new", map[string]any{"x": 1.5, "y": []any{true}})
	deep := any(a{})
	for range 40 {
		deep = a{deep}
	}
	_, err = d.Append(nil, pack(a{1.0, a{append(m{"deep", deep}, object...)}}))
	require.NoError(t, err)
	absent(0, 0, "deep")

	d = kvevent.NewDecoder(kvevent.TensorRTLLM, options)
	_, err = d.Append(nil, pack(a{m{"event_id", 1, "data", m{"type", "created"}}, m{"event_id", 2, "window_size", 128, "data", m{"type", "removed", "block_hashes", a{1}}}}))
	require.NoError(t, err)
	field(1, 0, "window_size", int64(128))
	field(1, 1, "window_size", int64(128))
	absent(0, 0, "window_size")
	absent(1, 2, "window_size")
	b := allFields()
	d = kvevent.NewDecoder(kvevent.Compact, nil)
	_, err = d.Append(nil, kvevent.AppendBatch(nil, &b))
	require.NoError(t, err)
	absent(0, 0, "kind")
}

// The error of an event that is skipped has its field, and the batch the other events.
func TestDecodeErrorField(t *testing.T) {
	cleared := a{"AllBlocksCleared"}
	for _, tt := range []struct {
		event any
		want  string
	}{
		{a{"BlockStored", a{7}, 6, a{1, 2}, 2, nil, "gpu", nil, nil, 0, 123}, "kvevent: BlockStored: kv_cache_spec_kind has an invalid value at byte 29"},
		{a{"BlockStored", a{7}, 6, a{1, 2}, 2, nil, "gpu", nil, nil, 0, "full_attention", nil, "?"}, "kvevent: BlockStored: locality has an invalid value at byte 29"},
		{a{"BlockRemoved", a{7}, "gpu", -1}, "kvevent: BlockRemoved: group_idx has an invalid value at byte 29"},
		{m{"type", "BlockStored", "block_hashes", a{7}, "token_ids", a{1, 2, 3, 4}, "block_size", 2}, "kvevent: BlockStored: block_hashes has fewer blocks than token_ids at byte 29"},
		{m{"type", "BlockRemoved"}, "kvevent: BlockRemoved without block_hashes at byte 29"},
		{m{"types", "BlockRemoved"}, "kvevent: event without a type at byte 29"},
	} {
		d := kvevent.NewDecoder(kvevent.VLLM, nil)
		got, err := d.Append(nil, pack(a{1.0, a{cleared, tt.event, 5, cleared}}))
		require.EqualError(t, err, tt.want)
		require.Len(t, got, 1)
		require.True(t, got[0].Damaged)
		require.Len(t, got[0].Events, 2)
	}
}

// A cache salt of 64 digits in vLLM's arrays is a salt if there are no objects.
func TestTextOnly(t *testing.T) {
	digest := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	payload := pack(a{1.0, a{a{"BlockStored", a{7, 8}, nil, a{1, 2, 3, 4}, 2, nil, nil, nil, a{a{digest}, nil}}}})
	got, err := kvevent.NewDecoder(kvevent.VLLM, nil).Append(nil, payload)
	require.NoError(t, err)
	require.Equal(t, "", got[0].Events[0].Namespace)
	require.Equal(t, [][]uint64{{0x0123456789abcdef}}, got[0].Events[0].Objects)
	got, err = kvevent.NewDecoder(kvevent.VLLM, &kvevent.DecoderOptions{TextOnly: true}).Append(nil, payload)
	require.NoError(t, err)
	require.Equal(t, digest, got[0].Events[0].Namespace)
	require.Empty(t, got[0].Events[0].Objects)
}

// Topic returns the topic of the last message.
func TestTopic(t *testing.T) {
	payload := pack(a{1.0, a{a{"AllBlocksCleared"}}})
	number := []byte{0, 0, 0, 0, 0, 0, 0, 1}
	d := kvevent.NewDecoder(kvevent.VLLM, nil)
	for _, tt := range []struct {
		frames [][]byte
		want   string
	}{
		{[][]byte{[]byte("kv@pod-1@model"), number, payload}, "kv@pod-1@model"},
		{[][]byte{number, payload}, ""},
		{[][]byte{nil, []byte("epoch-2"), number, payload}, "epoch-2"},
		{[][]byte{nil, number, payload}, ""},
		{[][]byte{[]byte("kv@pod-1@model"), number, payload[:5]}, "kv@pod-1@model"},
	} {
		got, _ := d.AppendFrames(nil, tt.frames)
		require.Len(t, got, 1)
		require.Equal(t, tt.want, d.Topic())
	}
	_, err := d.AppendFrames(nil, nil)
	require.Error(t, err)
	require.Equal(t, "", d.Topic())
}

// A message of Dynamo's event plane has RouterEvents of several workers in an envelope.
func TestPlane(t *testing.T) {
	event := func(worker, id int) m {
		return m{"worker_id", worker, "storage_tier", "device", "event", m{"event_id", id, "data", "cleared", "dp_rank", 0}}
	}
	envelope := func(v any) []byte {
		b := pack(v)
		return append([]byte{1, 0, byte(len(b) >> 16), byte(len(b) >> 8), byte(len(b))}, b...)
	}
	publisher, number := []byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte{0, 0, 0, 0, 0, 0, 0, 9}
	payload := pack(a{event(5, 3), event(6, 1)})
	whole := envelope(m{"publisher_id", 1, "sequence", 9, "published_at", 7, "topic", "kv-events", "payload", payload})
	d := kvevent.NewDecoder(kvevent.Dynamo, nil)
	got, err := d.AppendFrames(nil, [][]byte{[]byte("kv-events"), publisher, number, whole})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]kvevent.Batch{{Worker: 5, Seq: 3, Events: []kvevent.Event{{Kind: kvevent.Cleared}}},
		{Worker: 6, Seq: 1, Events: []kvevent.Event{{Kind: kvevent.Cleared}}}}, got))
	require.Equal(t, "kv-events", d.Topic())
	tier, ok := d.Field(1, 0, "storage_tier")
	require.True(t, ok)
	require.Equal(t, "device", tier)
	for _, frames := range [][][]byte{
		{[]byte("kv-events"), publisher, number},
		{[]byte("kv-events"), publisher, number[1:], whole},
		{[]byte("kv-events"), publisher, number, append([]byte{2}, whole[1:]...)},
		{[]byte("kv-events"), publisher, number, whole[:len(whole)-1]},
		{[]byte("kv-events"), publisher, number, whole[:4]},
		{[]byte("kv-events"), publisher, number, envelope(m{"topic", "x"})},
		{[]byte("kv-events"), publisher, number, envelope(a{payload})},
		{[]byte("kv-events"), publisher, number, envelope(m{"payload", "text"})},
	} {
		got, err := d.AppendFrames(nil, frames)
		_, ok := err.(*kvevent.DecodeError)
		require.True(t, ok, err)
		require.Empty(t, got)
	}
	got, err = d.AppendFrames(nil, [][]byte{nil, publisher, number, envelope(m{"payload", payload[:len(payload)-1]})})
	require.Error(t, err)
	require.True(t, got[len(got)-1].Damaged)
}

// The rest of an array that is cut is lost: the last batch before it is damaged.
func TestDecodeCutArray(t *testing.T) {
	for _, tt := range []struct {
		format  kvevent.Format
		payload []byte
	}{
		{kvevent.TensorRTLLM, pack(a{m{"event_id", 0, "data", m{"type", "created"}}, m{"event_id", 1, "data", m{"type", "created"}}})},
		{kvevent.Dynamo, pack(a{m{"event_id", 1, "data", "cleared"}, m{"event_id", 2, "data", "cleared"}})},
	} {
		d := kvevent.NewDecoder(tt.format, options)
		whole, err := d.Append(nil, tt.payload)
		require.NoError(t, err)
		require.Len(t, whole, 2)
		for n := range tt.payload {
			before := d.Tally().Damaged
			got, err := d.Append(nil, tt.payload[:n])
			require.Error(t, err)
			if len(got) > 0 {
				require.True(t, got[len(got)-1].Damaged, n)
				require.Equal(t, before+1, d.Tally().Damaged)
			}
		}
	}
}
