// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// allFields returns a batch in which every field of the batch and, in its first event, of an event is set.
func allFields() kvevent.Batch {
	return kvevent.Batch{Worker: 1 << 63, Seq: 300, Time: time.Unix(-5, 7).UTC(), DPRank: 4, Damaged: true, Events: []kvevent.Event{
		{Kind: kvevent.Stored, Tier: kvevent.Disk, Attention: kvevent.StateSpace, Group: -1, BlockSize: 16, BlockHashes: []uint64{1, 1 << 63}, Parent: 9,
			HasParent: true, TokenIDs: []uint32{1, 1 << 31, 5}, LocalHashes: []uint64{3, 4}, SequenceHashes: []uint64{5, 6}, Objects: [][]uint64{nil, {7, 8}},
			LoRA: "ad", Namespace: "tenant", RootNamespace: true, NoCopies: true, Owner: "store", Window: 1 << 20},
		{Kind: kvevent.Stored, BlockHashes: []uint64{5, 6}, SequenceHashes: []uint64{5, 6}, LoRA: "ad", Owner: "other"},
		{Kind: kvevent.Cleared},
		{Kind: 200, Parent: 5},
	}}
}

func TestCompact(t *testing.T) {
	b := allFields()
	e := b.Events[0]
	for _, f := range []struct {
		name string
		zero bool
	}{ // a field that is new must be set above
		{"Worker", b.Worker == 0}, {"Objects", e.Objects == nil}, {"SequenceHashes", e.SequenceHashes == nil}, {"RootNamespace", !e.RootNamespace}, {"NoCopies", !e.NoCopies}, {"Window", e.Window == 0},
	} {
		require.False(t, f.zero, f.name)
	}
	require.NotContains(t, fmt.Sprintf("%#v", e), ":0x0,")
	packed := kvevent.AppendBatch(nil, &b)
	next := kvevent.Batch{Seq: 301}
	both := kvevent.AppendBatch(packed, &next)
	d := kvevent.NewDecoder(kvevent.Compact, nil)
	got, err := d.Append(nil, both)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]kvevent.Batch{b, next}, got))
	for n := range both {
		got, err := d.Append(nil, both[:n])
		if n == 0 || n == len(packed) {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, n)
		if n > len(packed) {
			require.Empty(t, cmp.Diff(b, got[0]))
		} else if len(got) > 0 {
			require.True(t, got[0].Damaged)
			require.Contains(t, []time.Time{{}, b.Time}, got[0].Time, "half a time would tell another life")
			require.Empty(t, cmp.Diff(b.Events[:len(got[0].Events)], got[0].Events, cmpEmpty))
		}
	}
	for _, bad := range []string{"\x02", "\x01\x20\x00\x00", "\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x01\x00\x00\x01\x01\x80\x80\x08",
		"\x01\x04\x00\xff\xff\xff\xff\x7f\x00", "\x01\x01\x00\x00\xff\xff\xff\xff\x7f\x00"} {
		_, err := d.Append(nil, []byte(bad))
		var fault *kvevent.DecodeError
		require.ErrorAs(t, err, &fault, "%x", bad)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF, "%x", bad)
	}
	// Empty lists are nil, regardless of earlier input.
	got, err = d.Append(nil, []byte("\x01\x00\x07\x01\x01\xd0\x0b\x00\x00\x00\x00\x00"))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]kvevent.Batch{{Seq: 7, Events: []kvevent.Event{{Kind: kvevent.Stored}}}}, got))
	small := kvevent.NewDecoder(kvevent.Compact, nil).Limit(2, 0, 0)
	_, err = small.Append(nil, packed)
	require.ErrorIs(t, err, kvevent.ErrLimit)
	small = kvevent.NewDecoder(kvevent.Compact, nil).Limit(0, 1, 0)
	_, err = small.Append(nil, packed)
	require.ErrorIs(t, err, kvevent.ErrLimit)
	small = kvevent.NewDecoder(kvevent.Compact, nil).Limit(0, 0, 2)
	_, err = small.Append(nil, packed)
	require.ErrorIs(t, err, kvevent.ErrLimit)
}

// cmpEmpty takes nil and empty lists of events for the same.
var cmpEmpty = cmp.Comparer(func(a, b []kvevent.Event) bool { return len(a) == len(b) && (len(a) == 0 || cmp.Equal(a, b)) })

// A stream of hashes takes 8 bytes per block.
func TestCompactSize(t *testing.T) {
	h := make([]uint64, 1000)
	for i := range h {
		h[i] = uint64(i) << 32
	}
	b := kvevent.Batch{Seq: 1, Events: []kvevent.Event{{Kind: kvevent.Stored, Tier: kvevent.Device, BlockSize: 16, BlockHashes: h, SequenceHashes: h}}}
	require.Equal(t, 8*1000+11, len(kvevent.AppendBatch(nil, &b)))
}

func TestCompactRoundTrip(t *testing.T) {
	hashes := rapid.SliceOfN(rapid.Uint64(), 1, 5)
	word := rapid.SampledFrom([]string{"", "", "a", "tenant"})
	d := kvevent.NewDecoder(kvevent.Compact, nil)
	maybe := func(t *rapid.T, name string) []uint64 {
		if rapid.Bool().Draw(t, name) {
			return hashes.Draw(t, name)
		}
		return nil
	}
	event := rapid.Custom(func(t *rapid.T) kvevent.Event {
		e := kvevent.Event{
			Kind: kvevent.Kind(rapid.Byte().Draw(t, "kind")), Tier: kvevent.Tier(rapid.Byte().Draw(t, "tier")),
			Attention: kvevent.Attention(rapid.Byte().Draw(t, "attention")), Group: rapid.Int32().Draw(t, "group"), BlockSize: rapid.Int32().Draw(t, "size"),
			BlockHashes: maybe(t, "hashes"), Parent: rapid.Uint64().Draw(t, "parent"), HasParent: rapid.Bool().Draw(t, "hasParent"),
			LocalHashes: maybe(t, "locals"), SequenceHashes: maybe(t, "sequence"),
			LoRA: word.Draw(t, "lora"), Namespace: word.Draw(t, "namespace"), Owner: word.Draw(t, "owner"), RootNamespace: rapid.Bool().Draw(t, "root"), NoCopies: rapid.Bool().Draw(t, "no copies"),
		}
		if rapid.Bool().Draw(t, "same") {
			e.SequenceHashes = e.BlockHashes
		}
		if rapid.Bool().Draw(t, "tokens") {
			e.TokenIDs = rapid.SliceOfN(rapid.Uint32(), 1, 9).Draw(t, "tokens")
		}
		for range rapid.IntRange(0, 3).Draw(t, "objects") {
			e.Objects = append(e.Objects, maybe(t, "object"))
		}
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		var packed []byte
		var want []kvevent.Batch
		for range rapid.IntRange(0, 3).Draw(t, "batches") {
			b := kvevent.Batch{Worker: rapid.Uint64().Draw(t, "worker"), Seq: rapid.Uint64().Draw(t, "seq"), DPRank: rapid.Uint32().Draw(t, "rank"),
				Damaged: rapid.Bool().Draw(t, "damaged")}
			if rapid.Bool().Draw(t, "timed") {
				b.Time = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanos")).UTC()
			}
			if n := rapid.IntRange(0, 4).Draw(t, "events"); n > 0 {
				b.Events = rapid.SliceOfN(event, n, n).Draw(t, "events")
			}
			want = append(want, b)
			packed = kvevent.AppendBatch(packed, &b)
		}
		got, err := d.Append(nil, packed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
