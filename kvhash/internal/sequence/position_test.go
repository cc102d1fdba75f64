// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/internal/sequence"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// positions are streams in every state.
func positions() map[string]*sequence.Tracker {
	at := func(s int64) time.Time { return time.Unix(s, 5).UTC() }
	stored := func(h uint64, ns string) []kvevent.Event {
		return []kvevent.Event{{
			Kind: kvevent.Stored, BlockHashes: []uint64{h}, Namespace: ns, RootNamespace: ns == "", Parent: h - 1, HasParent: true, Group: -1,
		}}
	}
	list := map[string]*sequence.Tracker{}
	for _, name := range []string{"new", "live", "first lost", "gap", "lost", "salted", "full"} {
		in := sequence.New(&sequence.Options{MaxSalted: 3})
		list[name] = in
		switch name {
		case "live":
			in.Append(nil, kvevent.Batch{Seq: 0, Time: at(1)})
		case "first lost":
			in.Append(nil, kvevent.Batch{Seq: 2, Time: at(1)})
		case "gap":
			in.Append(nil, kvevent.Batch{Seq: 0})
			in.Append(nil, kvevent.Batch{Seq: 7})
		case "lost":
			in.Append(nil, kvevent.Batch{Seq: 7, Time: at(3)})
			in.Skip(nil)
		case "salted", "full":
			in.Append(nil, kvevent.Batch{Seq: 0, Events: stored(1, "b")})
			in.Append(nil, kvevent.Batch{Seq: 1, Events: stored(5, "a")})
			in.Append(nil, kvevent.Batch{Seq: 2, Events: stored(2, "")})
			if name == "full" {
				in.Append(nil, kvevent.Batch{Seq: 3, Events: stored(9, "c")})
			}
		}
	}
	return list
}

func TestPosition(t *testing.T) {
	for name, in := range positions() {
		t.Run(name, func(t *testing.T) {
			p := in.AppendPosition(nil)
			again := sequence.New(&sequence.Options{MaxSalted: 3})
			ready, err := again.Restore(nil, p)
			require.NoError(t, err)
			require.Empty(t, ready)
			require.Equal(t, p, again.AppendPosition(nil))
			require.Equal(t, needOf(in), needOf(again))
			trust, why := in.State()
			trust2, why2 := again.State()
			require.Equal(t, fmt.Sprint(trust, why), fmt.Sprint(trust2, why2))
			// What comes next is taken alike: a block after one in a namespace, a repetition, a restart.
			for _, b := range []kvevent.Batch{
				{Seq: 3, Time: time.Unix(1, 0), Events: []kvevent.Event{{
					Kind: kvevent.Stored, BlockHashes: []uint64{3}, Parent: 2, HasParent: true, RootNamespace: true,
				}}},
				{Seq: 1, Time: time.Unix(1, 0)}, {Seq: 8}, {Seq: 0, Time: time.Unix(9, 0)},
			} {
				require.Equal(t, in.Append(nil, b.Clone()), again.Append(nil, b.Clone()))
			}
			for n := range p {
				in := sequence.New(nil)
				_, err := in.Restore(nil, p[:n])
				require.Error(t, err)
				require.Equal(t, sequence.New(nil), in)
			}
			_, err = in.Restore(nil, append(slices.Clone(p), 0))
			require.Error(t, err)
		})
	}
}

// TestPositionHeld restores a stream that waits for a snapshot: what it holds is applied on top.
func TestPositionHeld(t *testing.T) {
	sidecar := sequence.New(nil)
	for seq := range uint64(5) {
		sidecar.Append(nil, kvevent.Batch{Seq: seq})
	}
	in := sequence.New(nil)
	for seq := uint64(3); seq < 8; seq++ {
		require.Empty(t, in.Append(nil, kvevent.Batch{Seq: seq}))
	}
	in.FinishReplay()
	ready, err := in.Restore(nil, sidecar.AppendPosition(nil))
	require.NoError(t, err)
	require.Len(t, ready, 3)
	require.Equal(t, uint64(5), ready[0].Seq)
	require.Zero(t, needOf(in))
}

// A sidecar may know of a restart that was not noticed here: its state is not cleared by the next batch.
func TestPositionAfterRestart(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, received := range []uint64{2, 3, 9} {
		in := sequence.New(nil)
		for seq := range received {
			in.Append(nil, kvevent.Batch{Seq: seq, Time: at(1)})
		}
		in.Append(nil, kvevent.Batch{Seq: received + 3, Time: at(1)})
		sidecar := sequence.New(nil)
		for seq := range uint64(3) {
			sidecar.Append(nil, kvevent.Batch{Seq: seq, Time: at(10)})
		}
		ready, err := in.Restore(nil, sidecar.AppendPosition(nil))
		require.NoError(t, err)
		require.Empty(t, ready)
		require.Zero(t, needOf(in))
		ready = in.Append(nil, kvevent.Batch{Seq: 3, Time: at(11)})
		require.Len(t, ready, 1)
		require.Empty(t, ready[0].Events)
		trust, _ := in.State()
		require.Equal(t, sequence.Exact, trust)
	}
}
