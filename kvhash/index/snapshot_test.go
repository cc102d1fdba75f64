// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// past makes random events for workers 0 to 3: 3 is a store, 2 an engine with blocks of twice the size.
type past struct {
	rnd  *rand.Rand
	seen []uint64
}

func newPast(seed uint64) *past { return &past{rnd: rand.New(rand.NewPCG(seed, 1))} }

func (h *past) path(max int) string {
	p := make([]byte, 1+h.rnd.IntN(max))
	for i := range p {
		p[i] = "ab"[h.rnd.IntN(2)]
	}
	return string(p)
}

func (h *past) name(path string) uint64 {
	switch h.rnd.IntN(12) {
	case 0:
		return uint64(1 + h.rnd.IntN(5)) // one name at several positions
	case 1:
		return xxh3.HashString(path) // a second name for one position
	}
	s := modelHashes(path)
	return s[len(s)-1]
}

func (h *past) event(id index.WorkerID) kvevent.Event {
	tiers := []kvevent.Tier{kvevent.AnyTier, kvevent.Device, kvevent.Host, kvevent.Disk}
	ev := kvevent.Event{Kind: kvevent.Stored, Tier: tiers[h.rnd.IntN(4)]}
	ratio := 1
	if id == 2 {
		ratio = 2
		ev.BlockSize = modelBlock * 2
	}
	switch k := h.rnd.IntN(20); {
	case len(h.seen) > 0 && h.rnd.IntN(6) == 0: // of a group with a sliding window
		ev.Tier, ev.Group = kvevent.Device, int32(1+h.rnd.IntN(40)/39)
		if ev.Kind = kvevent.Removed; h.rnd.IntN(4) > 0 {
			ev.Kind, ev.Attention, ev.Window = kvevent.Stored, kvevent.SlidingWindow, int32(5+h.rnd.IntN(40)/39)
		}
		for range 1 + h.rnd.IntN(8) {
			ev.BlockHashes = append(ev.BlockHashes, h.seen[h.rnd.IntN(len(h.seen))])
		}
		return ev
	case k < 12:
		path := h.path(12)
		skip := h.rnd.IntN(len(path)) / ratio * ratio
		path = path[:skip+(len(path)-skip)/ratio*ratio]
		ev.TokenIDs = modelTokens(path[skip:])
		for i := skip + ratio; i <= len(path); i += ratio {
			ev.BlockHashes = append(ev.BlockHashes, h.name(path[:i]))
		}
		if skip > 0 {
			ev.Parent, ev.HasParent = h.name(path[:skip]), true
		}
		h.seen = append(h.seen, ev.BlockHashes...)
	case k < 18 && len(h.seen) > 0:
		ev.Kind = kvevent.Removed
		for range 1 + h.rnd.IntN(4) {
			ev.BlockHashes = append(ev.BlockHashes, h.seen[h.rnd.IntN(len(h.seen))])
		}
	case k == 18 && len(h.seen) > 0:
		ev.BlockHashes = []uint64{h.seen[h.rnd.IntN(len(h.seen))]} // a copy to another tier
	case h.rnd.IntN(4) == 0:
		ev.Kind = kvevent.Cleared
	}
	if h.rnd.IntN(6) == 0 {
		ev.Owner = "store" // a worker reports it
	}
	return ev
}

var pastOptions = index.AllOptions{MaxPending: 12, PendingTTL: 5 * time.Second}

func (h *past) index(steps int, o *index.AllOptions) *index.Index {
	x := index.NewAll(modelBlock, o)
	h.join(x)
	for range steps {
		id := index.WorkerID(h.rnd.IntN(4))
		ev := h.event(id)
		x.Add(id, &ev)
	}
	return x
}

func (h *past) join(x *index.Index) {
	for i := range uint32(3) {
		x.AddWorker(index.Key{Instance: "e", DPRank: i})
	}
	x.Attach(0, x.AddStore(index.Key{Instance: "store"}, kvevent.Remote))
}

// requireEqual compares the results of two indexes.
func requireEqual(t require.TestingT, h *past, want, got *index.Index) {
	require.NoError(t, want.Check())
	require.NoError(t, got.Check())
	require.Empty(t, cmp.Diff(want.AppendInfos(nil), got.AppendInfos(nil)))
	require.Equal(t, want.Len(), got.Len())
	for _, s := range want.AppendInfos(nil) {
		require.Equal(t, want.Held(s.Worker), got.Held(s.Worker))
	}
	for range 20 {
		p := modelHashes(h.path(12))
		require.Empty(t, cmp.Diff(want.AppendMatches(nil, p), got.AppendMatches(nil, p)))
	}
}

func TestSnapshot(t *testing.T) {
	for seed := range uint64(sample(20, 60, 150)) {
		h := newPast(seed)
		x := h.index(int(seed), &pastOptions)
		data := x.AppendSnapshot([]byte("before"))[6:]
		y, err := index.LoadAll(data, &pastOptions)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, y.AppendSnapshot(nil)), "seed %d", seed)
		requireEqual(t, h, x, y)
		for range 30 { // and both continue alike
			id := index.WorkerID(h.rnd.IntN(4))
			ev := h.event(id)
			require.Equal(t, x.Add(id, &ev), y.Add(id, &ev))
		}
		requireEqual(t, h, x, y)
		for id := range index.WorkerID(4) {
			y.RemoveWorker(id)
		}
		require.NoError(t, y.Check())
		require.Zero(t, y.Len())
	}
}

func TestSnapshotSize(t *testing.T) {
	x := index.NewAll(16, nil)
	const workers, blocks = 16, 20000
	for i := range uint32(workers) {
		x.AddWorker(index.Key{Instance: "e", DPRank: i})
	}
	for p := range blocks / 1000 {
		tokens := randomTokens(uint64(p), 16*1000)
		hashes := kvhash.Scheme{}.AppendBlocks(nil, tokens, 16, nil)
		for id := range index.WorkerID(workers) {
			x.Add(id, &kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens, BlockHashes: hashes})
		}
	}
	require.Equal(t, blocks, x.Len())
	require.Less(t, len(x.AppendSnapshot(nil)), 8*blocks+20*workers+100*blocks/1000)
}

// TestSnapshotInvalidHashes has blocks with invalid hashes: blocks that follow each other in a cycle, and one block at two
// positions. The loaded index has each block once.
func TestSnapshotInvalidHashes(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		x := index.NewAll(modelBlock, nil)
		for range 30 {
			ev := kvevent.Event{Kind: kvevent.Stored, HasParent: rnd.IntN(2) == 0, Parent: rnd.Uint64N(9)}
			for range 1 + rnd.IntN(4) {
				h := rnd.Uint64N(9)
				ev.BlockHashes, ev.SequenceHashes = append(ev.BlockHashes, h), append(ev.SequenceHashes, h)
			}
			x.Add(x.AddWorker(index.Key{DPRank: rnd.Uint32N(3)}), &ev)
		}
		y, err := index.LoadAll(x.AppendSnapshot(nil), nil)
		require.NoError(t, err)
		require.NoError(t, y.Check(), "seed %d", seed)
		require.LessOrEqual(t, y.Len(), 9)
		x.AppendDump(nil, 0)
		for _, s := range y.AppendInfos(nil) {
			y.RemoveWorker(s.Worker)
		}
		require.NoError(t, y.Check())
		require.Zero(t, y.Len())
	}
}

func TestSnapshotLeavesPredictionsOut(t *testing.T) {
	x := index.NewAll(modelBlock, nil)
	x.AddWorker(index.Key{Instance: "e"})
	empty := x.AppendSnapshot(nil)
	x.Predict(0, modelHashes("abc"), 0, time.Unix(9, 0))
	require.Equal(t, empty, x.AppendSnapshot(nil))
}

func TestSnapshotDamaged(t *testing.T) {
	h := newPast(7)
	data := h.index(60, &pastOptions).AppendSnapshot(nil)
	fault := func(data []byte) error {
		x, err := index.LoadAll(data, &pastOptions)
		_, ok := errors.AsType[*index.SnapshotError](err)
		require.True(t, ok, "%v", err)
		require.Nil(t, x)
		return err
	}
	step := sample(61, 13, 1) // prime to 8
	for n := 0; n < len(data); n += step {
		fault(data[:n])
		require.Error(t, fault(resum(slices.Clone(data[:max(n, 8)])))) // with a sum that agrees
	}
	for i := 0; i < 8*len(data); i += step {
		bad := slices.Clone(data)
		bad[i/8] ^= 1 << (i % 8)
		fault(bad)
		if x, err := index.LoadAll(resum(bad), &pastOptions); err == nil {
			require.NoError(t, x.Check(), "bit %d", i)
		}
	}
	require.ErrorIs(t, fault([]byte("no snapshot")), index.ErrForm)
	later := slices.Clone(data)
	later[7]++
	require.EqualError(t, fault(resum(later)), "replica: snapshot: unknown format version at byte 7")
	require.ErrorIs(t, fault(later), index.ErrVersion)
	require.ErrorIs(t, new(index.Index).AddDelta(later), index.ErrForm, "no delta, whatever the version")
	_, err := index.LoadAll(data, &index.AllOptions{Scheme: kvhash.Scheme{}.With("x", "")})
	require.ErrorIs(t, err, index.ErrScheme)
	_, err = index.LoadAll(data, &index.AllOptions{MaxBlocks: 3})
	require.ErrorIs(t, err, index.ErrFull)
}

// resum puts the right sum at the end.
func resum(data []byte) []byte {
	end := len(data) - 8
	binary.LittleEndian.PutUint64(data[end:], xxh3.Hash(data[:end]))
	return data
}

// TestRestore puts one worker of an index into another that has the same blocks from others.
func TestRestore(t *testing.T) {
	for seed := range uint64(sample(20, 60, 150)) {
		h := newPast(seed)
		sidecar := h.index(0, &pastOptions)
		id := index.WorkerID(seed % 4)
		feed := sidecar.NewStream(id, nil)
		n := uint64(h.rnd.IntN(40))
		for seq := range n {
			feed.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{h.event(id)}})
		}
		x := h.index(int(seed), &pastOptions)
		y, err := index.LoadAll(x.AppendSnapshot(nil), &pastOptions)
		require.NoError(t, err)
		f := x.NewStream(id, nil)
		require.NoError(t, f.Restore(sidecar.AppendWorker(nil, id)))
		require.NoError(t, x.Check(), "seed %d", seed)
		require.Equal(t, sidecar.Held(id), x.Held(id), "seed %d", seed)
		for other := range index.WorkerID(4) {
			if other != id {
				require.Equal(t, y.Held(other), x.Held(other), "seed %d", seed)
			}
		}
		for seq := n; seq < n+20; seq++ {
			ev := h.event(id)
			feed.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{ev}})
			f.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{ev}})
		}
		want, _ := sidecar.Info(id)
		got, _ := x.Info(id)
		require.Equal(t, want, got)
		require.NoError(t, x.Check())
		for range 10 {
			p := modelHashes(h.path(12))
			of := &index.Query{Workers: []index.WorkerID{id}}
			if id != 0 { // 0 reads from the store
				require.Equal(t, sidecar.Search(nil, p, of), x.Search(nil, p, of))
			}
		}
	}
}

func TestRestoreRefused(t *testing.T) {
	h := newPast(1)
	x := h.index(30, &pastOptions)
	before := x.AppendSnapshot(nil)
	f := x.NewStream(0, nil)
	require.ErrorIs(t, f.Restore(before), index.ErrForm)
	require.ErrorIs(t, f.Restore(x.AppendWorker(nil, 1)), index.ErrNoPosition)
	require.Empty(t, x.AppendWorker(nil, 99))
	sidecar := index.NewAll(modelBlock, nil)
	sidecar.NewStream(sidecar.AddStore(index.Key{}, kvevent.Host), nil).Add(kvevent.Batch{Events: []kvevent.Event{*stored("ab", 0, 0)}})
	require.ErrorIs(t, f.Restore(sidecar.AppendWorker(nil, 0)), index.ErrStore)
	y, err := index.LoadAll(before, &pastOptions)
	require.NoError(t, err)
	requireEqual(t, h, y, x)
}

// TestSnapshotFeeds has a stream that continues after a restart, with a gap, and with a namespace declared before.
func TestSnapshotFeeds(t *testing.T) {
	x := index.NewAll(modelBlock, nil)
	x.AddWorker(index.Key{Instance: "e"})
	f := x.NewStream(0, nil)
	batch := func(seq uint64, path string, root bool) kvevent.Batch {
		n := len(path)
		ev := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{uint64(n)}, TokenIDs: modelTokens(path[n-1:]), RootNamespace: root}
		if ev.Parent, ev.HasParent = uint64(n-1), n > 1; n == 1 {
			ev.Namespace, ev.RootNamespace = "tenant", false
		}
		return kvevent.Batch{Seq: seq, Events: []kvevent.Event{ev}}
	}
	first := batch(0, "a", true)
	first.Events[0].RootNamespace = true
	f.Add(first)
	f.Add(batch(1, "ab", true))
	f.Add(batch(3, "abcd", true)) // 2 is missing

	y, err := index.LoadAll(x.AppendSnapshot(nil), nil)
	require.NoError(t, err)
	g := y.NewStream(0, nil)
	requireNeed(t, index.Replay, 2, g)
	for _, f := range []*index.Stream{f, g} {
		f.AddReplay(batch(2, "abc", true))
		f.AddReplay(batch(3, "abcd", true))
		f.FinishReplay()
		requireNeed(t, index.None, 0, f)
	}
	s, _ := y.Info(0)
	require.Equal(t, 4, s.Blocks)
	require.Equal(t, index.Exact, s.State)
	require.Equal(t, x.AppendSnapshot(nil), y.AppendSnapshot(nil))
}

// TestSnapshotInSteps takes snapshots a step at a time, between which everything can happen. They equal a snapshot taken at once
// at the moment of the first step.
func TestSnapshotInSteps(t *testing.T) {
	steps, most := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h := newPast(rapid.Uint64().Draw(t, "seed"))
		o := pastOptions
		o.Journal = 1 << 20
		x := index.NewAll(modelBlock, &o)
		h.join(x)
		now := time.Unix(1000, 0)
		streams := make(map[index.WorkerID]*index.Stream)
		seq := uint64(0)
		change := func() {
			id := index.WorkerID(h.rnd.IntN(4))
			switch h.rnd.IntN(40) {
			case 0:
				s, _ := x.Info(id)
				if x.RemoveWorker(id); s.Store != 0 {
					x.Attach(1, x.AddStore(s.Key, s.Store))
				} else {
					x.AddWorker(s.Key)
				}
				delete(streams, id)
			case 1:
				x.Clear(id)
			case 2:
				x.Add(id, &kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Tier(1 + h.rnd.IntN(2))})
			case 3:
				x.SetState(id, index.State(h.rnd.IntN(3)), "told")
			case 4:
				x.Predict(id, modelHashes(h.path(12)), h.rnd.IntN(3), now.Add(time.Second))
			case 5:
				now = now.Add(2 * time.Second)
				x.Expire(now)
			case 6:
				x.Detach(0, 3)
			case 7:
				x.Attach(0, 3)
			case 8:
				streams[id] = x.NewStream(id, nil)
				streams[id].Replace(5, []kvevent.Event{h.event(id), h.event(id), h.event(id)})
			case 9:
				streams[id] = x.NewStream(id, nil)
				if err := streams[id].Restore(sidecar(h, id)); !errors.Is(err, index.ErrStore) {
					require.NoError(t, err)
				}
			case 10: // one engine hash for many blocks, and blocks whose parent is unknown
				for range 30 {
					x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{77}, LocalHashes: []uint64{h.rnd.Uint64()}})
					x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{h.rnd.Uint64()}, LocalHashes: []uint64{1}, Parent: 5, HasParent: true})
				}
			case 11, 12: // enough to change the pages of names
				ev := &kvevent.Event{Kind: kvevent.Stored, LocalHashes: make([]uint64, 800)}
				for i := range ev.LocalHashes {
					ev.LocalHashes[i] = uint64(h.rnd.IntN(2))*uint64(i) + h.rnd.Uint64N(3)<<32
				}
				ev.BlockHashes = kvhash.AppendSequence(nil, ev.LocalHashes)
				x.Add(id, ev)
				if h.rnd.IntN(2) == 0 {
					ev.Kind, ev.BlockHashes = kvevent.Removed, ev.BlockHashes[h.rnd.IntN(800):]
					x.Add(id, ev)
				}
			default:
				ev := h.event(id)
				if s := streams[id]; s != nil {
					seq++
					s.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{ev}})
					s.Skip()
				} else {
					x.Add(id, &ev)
				}
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "snapshots") {
			for range rapid.IntRange(1, 60).Draw(t, "changes") {
				change()
			}
			var want []byte
			id := h.rnd.IntN(5) - 1
			if id < 0 {
				want = x.AppendSnapshot(nil)
			} else {
				want = x.AppendWorker(nil, index.WorkerID(id))
			}
			p := x.Shoot(id)
			n := 0
			for change(); p.Step(); n++ {
				for range h.rnd.IntN(3) {
					change()
				}
			}
			steps, most = steps+n, max(most, n)
			change()
			require.Equal(t, want, p.Append(nil))
			require.NoError(t, x.CheckInvalidChains())
		}
	})
	require.Greater(t, most, 8, "steps of a snapshot")
	t.Logf("%d steps, at most %d of a snapshot", steps, most)
}

// TestSnapshotBesideUpdates loads snapshots that are taken while workers are filled, cleared and removed.
func TestSnapshotBesideUpdates(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // on fewer cores, updates between two steps are rare
	x := index.New(1, nil)
	var stop atomic.Bool
	var done sync.WaitGroup
	for i := range uint32(3) {
		done.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			id := x.AddWorker(index.Key{Instance: "e", DPRank: i})
			s := x.NewStream(id, nil)
			for seq := uint64(0); !stop.Load(); seq++ {
				local := blocks(rnd.Uint64N(50)*100, 40)
				ev := kvevent.Event{Kind: kvevent.Stored, BlockHashes: kvhash.AppendSequence(nil, local), LocalHashes: local}
				switch rnd.IntN(20) {
				case 0:
					ev = kvevent.Event{Kind: kvevent.Cleared}
				case 1, 2, 3:
					ev.Kind = kvevent.Removed
				}
				s.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{ev}})
				x.AppendMatches(nil, ev.BlockHashes)
			}
		})
	}
	rounds := sample(5, 100, 1000)
	if raceEnabled {
		rounds = 20
	}
	for range rounds {
		y, err := index.LoadAll(x.AppendSnapshot(nil), nil)
		require.NoError(t, err)
		require.NoError(t, y.Check())
		for id := range index.WorkerID(3) {
			x.AppendWorker(nil, id)
		}
	}
	stop.Store(true)
	done.Wait()
	require.NoError(t, x.Check())
}

// TestJournal lets a second index follow the first through everything that can happen.
func TestJournal(t *testing.T) {
	for _, size := range []int{300, 1 << 20} {
		rapid.Check(t, func(t *rapid.T) {
			h := newPast(rapid.Uint64().Draw(t, "seed"))
			o := pastOptions
			o.Journal = size
			x := index.NewAll(modelBlock, &o)
			h.join(x)
			y := index.NewAll(modelBlock, &o)
			now := time.Unix(1000, 0)
			deltas := 0
			for range rapid.IntRange(1, 200).Draw(t, "steps") {
				id := index.WorkerID(h.rnd.IntN(4))
				switch k := h.rnd.IntN(60); k {
				case 0:
					s, _ := x.Info(id)
					x.RemoveWorker(id)
					if h.rnd.IntN(2) == 0 {
						x.RemoveWorker(index.WorkerID(h.rnd.IntN(3)))
					}
					if s.Store != 0 {
						x.Attach(1, x.AddStore(s.Key, s.Store))
					} else {
						x.AddWorker(s.Key)
					}
					h.join(x)
				case 1:
					x.Clear(id)
				case 2:
					x.SetState(id, index.State(h.rnd.IntN(3)), "told")
				case 3:
					x.NewStream(id, nil).Replace(5, []kvevent.Event{h.event(id), h.event(id), h.event(id)})
				case 4:
					x.Predict(id, modelHashes(h.path(12)), h.rnd.IntN(3), now.Add(time.Second))
					y.Predict(id, modelHashes(h.path(12)), h.rnd.IntN(3), now.Add(time.Second))
				case 5:
					now = now.Add(2 * time.Second)
					x.Expire(now)
					y.Expire(now.Add(time.Hour))
				case 6:
					x.Detach(0, 3)
				case 7:
					x.Attach(0, 3)
				case 8:
					if err := x.NewStream(id, nil).Restore(sidecar(h, id)); !errors.Is(err, index.ErrStore) {
						require.NoError(t, err)
					}
				default:
					ev := h.event(id)
					x.Add(id, &ev)
				}
				if h.rnd.IntN(20) > 0 {
					continue
				}
				delta, v, ok := x.AppendDelta(nil, y.Version())
				if !ok {
					var err error
					y, err = index.LoadAll(x.AppendSnapshot(nil), &o)
					require.NoError(t, err)
				} else {
					deltas++
					before := y.Version()
					require.NoError(t, y.AddDelta(delta))
					if v != before {
						require.ErrorIs(t, y.AddDelta(delta), index.ErrGap)
					}
				}
				require.Equal(t, x.Version(), y.Version())
				now = now.Add(2 * time.Second)
				x.Expire(now) // predictions end; orphans may
				y.Expire(now)
				if delta, _, ok = x.AppendDelta(nil, y.Version()); ok {
					require.NoError(t, y.AddDelta(delta))
					requireEqual(t, h, x, y)
				}
			}
			if size > 1000 && deltas > 0 {
				require.NotZero(t, y.Version())
			}
		})
	}
}

func sidecar(h *past, id index.WorkerID) []byte {
	s := h.index(0, &pastOptions)
	f := s.NewStream(id, nil)
	for seq := range uint64(8) {
		f.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{h.event(id)}})
	}
	return s.AppendWorker(nil, id)
}

func TestJournalRefuses(t *testing.T) {
	h := newPast(3)
	o := pastOptions
	o.Journal = 1 << 20
	x := h.index(40, &o)
	delta, _, ok := x.AppendDelta(nil, index.Version{})
	require.True(t, ok)

	y := index.NewAll(modelBlock, &pastOptions)
	for i := range 8 * len(delta) {
		bad := slices.Clone(delta)
		bad[i/8] ^= 1 << (i % 8)
		_, is := errors.AsType[*index.SnapshotError](y.AddDelta(bad))
		require.True(t, is)
		if _, is = errors.AsType[*index.SnapshotError](y.AddDelta(resum(bad))); !is {
			y = index.NewAll(modelBlock, &pastOptions) // about the position of a stream
		}
	}
	require.Empty(t, y.AppendInfos(nil))
	require.NoError(t, y.AddDelta(delta))
	requireEqual(t, h, x, y)
	require.Equal(t, x.Version(), y.Version())

	// What is changed here is no longer the leader's state.
	y.Clear(0)
	x.Clear(1)
	delta, _, ok = x.AppendDelta(nil, x.Version())
	require.True(t, ok)
	require.ErrorIs(t, y.AddDelta(delta), index.ErrGap)
	_, _, ok = x.AppendDelta(nil, y.Version())
	require.True(t, ok, "the zero version is that of an empty index")
	_, _, ok = x.AppendDelta(nil, index.Version{Count: 5, Sum: 5})
	require.False(t, ok)
	_, _, ok = y.AppendDelta(nil, index.Version{})
	require.False(t, ok, "no journal")
	require.ErrorIs(t, index.NewAll(modelBlock, nil).AddDelta(delta), index.ErrOrphans)
}

// TestJournalFull: when an index is full, what it leaves out cannot be followed.
func TestJournalFull(t *testing.T) {
	ev := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2, 3}, TokenIDs: modelTokens("abc")}
	x := index.NewAll(modelBlock, &index.AllOptions{Journal: 1 << 20, MaxBlocks: 2})
	x.Add(x.AddWorker(index.Key{}), &ev)
	_, _, ok := x.AppendDelta(nil, index.Version{})
	require.False(t, ok)
	_, _, ok = x.AppendDelta(nil, x.Version())
	require.True(t, ok)

	x = index.NewAll(modelBlock, &index.AllOptions{Journal: 1 << 20})
	x.Add(x.AddWorker(index.Key{}), &ev)
	delta, _, ok := x.AppendDelta(nil, index.Version{})
	require.True(t, ok)
	y := index.NewAll(modelBlock, &index.AllOptions{MaxBlocks: 2})
	require.NoError(t, y.AddDelta(delta))
	s, _ := y.Info(0)
	require.Equal(t, index.Degraded, s.State)
	delta, _, _ = x.AppendDelta(nil, x.Version())
	require.ErrorIs(t, y.AddDelta(delta), index.ErrGap)
}

// So are the blocks of a worker's snapshot for which there was no room.
func TestJournalFullRestore(t *testing.T) {
	sidecar := index.NewAll(modelBlock, nil)
	sidecar.NewStream(sidecar.AddWorker(index.Key{}), nil).Add(kvevent.Batch{Events: []kvevent.Event{*stored("abab", 0, 0)}})
	x := index.NewAll(modelBlock, &index.AllOptions{Journal: 1 << 20, MaxBlocks: 5})
	x.Add(x.AddWorker(index.Key{Instance: "a"}), stored("bbb", 0, 0))
	id := x.AddWorker(index.Key{Instance: "b"})
	before := x.Version()
	require.NoError(t, x.NewStream(id, nil).Restore(sidecar.AppendWorker(nil, 0)))
	require.Equal(t, 5, x.Len())
	_, _, ok := x.AppendDelta(nil, before)
	require.False(t, ok)
}

// TestJournalOfNames: where the engines' names are the chain, a delta has them.
func TestJournalOfNames(t *testing.T) {
	base, err := kvhash.Lookup("sglang", nil)
	require.NoError(t, err)
	x := index.NewAll(modelBlock, &index.AllOptions{Scheme: base, Journal: 1 << 20})
	y := index.NewAll(modelBlock, &index.AllOptions{Scheme: base})
	id := x.AddWorker(index.Key{})
	names := base.AppendBlocks(nil, modelTokens("ababb"), modelBlock, nil)
	for _, ev := range []kvevent.Event{
		{BlockHashes: names[3:], Parent: names[2], HasParent: true, TokenIDs: modelTokens("bb")}, // waits
		{BlockHashes: names[:4], TokenIDs: modelTokens("abab")[:7]},                              // the last one is partial
		{BlockHashes: names[:2], Tier: kvevent.Host},
		{BlockHashes: names[2:3], Tier: kvevent.Disk, LocalHashes: []uint64{1}}, // which this scheme has not: a copy
	} {
		ev.Kind = kvevent.Stored
		x.Add(id, &ev)
		delta, _, ok := x.AppendDelta(nil, y.Version())
		require.True(t, ok)
		require.NoError(t, y.AddDelta(delta))
		require.Equal(t, x.AppendSnapshot(nil), y.AppendSnapshot(nil))
	}
	require.Equal(t, int32(5), y.AppendMatches(nil, names)[0].Depth)
}

// TestFollowerKeepsOrphans: an index that follows leaves orphans to its leader, from its snapshot on; one that leads does not.
func TestFollowerKeepsOrphans(t *testing.T) {
	o := &index.AllOptions{Journal: 1 << 20}
	now := time.Unix(1000, 0)
	x := index.NewAll(modelBlock, o)
	id := x.AddWorker(index.Key{})
	x.Expire(now)
	x.Add(id, stored("abab", 2, 0))
	load := func() *index.Index {
		y, err := index.LoadAll(x.AppendSnapshot(nil), o)
		require.NoError(t, err)
		y.Expire(now.Add(time.Hour))
		require.Equal(t, 2, y.Measure().Orphans)
		return y
	}
	y := load()
	x.Expire(now.Add(time.Hour))
	delta, _, ok := x.AppendDelta(nil, y.Version())
	require.True(t, ok)
	require.NoError(t, y.AddDelta(delta))
	require.Zero(t, y.Measure().Orphans)

	x.Add(id, stored("abab", 2, 0))
	for _, lead := range []func(){
		func() { y.NewStream(id, nil) },
		func() { y.AddWorker(index.Key{DPRank: 1}) },
	} {
		y = load()
		lead()
		y.Expire(now.Add(2 * time.Hour))
		require.Zero(t, y.Measure().Orphans)
	}

	// One that has no room for what the leader has follows no more.
	y, err := index.LoadAll(x.AppendSnapshot(nil), &index.AllOptions{MaxBlocks: 2})
	require.NoError(t, err)
	x.Add(id, stored("bbb", 0, 0))
	delta, _, ok = x.AppendDelta(nil, y.Version())
	require.True(t, ok)
	require.NoError(t, y.AddDelta(delta))
	y.Expire(now.Add(2 * time.Hour))
	require.Zero(t, y.Measure().Orphans)
}

// TestJournalAllocs: noting an event needs no memory but the journal's.
func TestJournalAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	x := index.NewAll(modelBlock, &index.AllOptions{Journal: 1 << 16})
	id := x.AddWorker(index.Key{})
	stored := kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1, 2, 3}, TokenIDs: modelTokens("abc")}
	removed := kvevent.Event{Kind: kvevent.Removed, BlockHashes: []uint64{3, 2, 1}}
	run := func() {
		x.Add(id, &stored)
		x.Add(id, &removed)
	}
	for range 2000 {
		run()
	}
	require.Zero(t, testing.AllocsPerRun(1000, run))
}

// TestSnapshotWhileFeeding takes snapshots while streams continue: each is a state between two batches.
func TestSnapshotWhileFeeding(t *testing.T) {
	o := pastOptions
	o.Journal = 1 << 20
	x := index.NewAll(modelBlock, &o)
	newPast(0).join(x)
	y := index.NewAll(modelBlock, &o)
	var feeders sync.WaitGroup
	for id := range index.WorkerID(3) {
		feed := x.NewStream(id, nil)
		feeders.Go(func() {
			h := newPast(uint64(id))
			for seq := range uint64(300) {
				// Two blocks in each batch, and nothing but this.
				tokens := randomTokens(h.rnd.Uint64(), 2*modelBlock)
				hashes := kvhash.Scheme{}.AppendBlocks(nil, tokens, modelBlock, nil)
				feed.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{
					{Kind: kvevent.Stored, TokenIDs: tokens[:modelBlock], BlockHashes: hashes[:1]},
					{Kind: kvevent.Stored, TokenIDs: tokens[modelBlock:], BlockHashes: hashes[1:], Parent: hashes[0], HasParent: true},
				}})
			}
		})
	}
	for range 30 {
		z, err := index.LoadAll(x.AppendSnapshot(nil), &o)
		require.NoError(t, err)
		delta, _, ok := x.AppendDelta(nil, y.Version())
		require.True(t, ok)
		require.NoError(t, y.AddDelta(delta))
		for id := range index.WorkerID(3) {
			s, _ := z.Info(id)
			z.NewStream(id, nil).Add(kvevent.Batch{Seq: uint64(s.Blocks / 2)})
			require.Zero(t, s.Blocks%2)
			if s, _ = z.Info(id); s.Blocks > 0 {
				require.Equal(t, index.Exact, s.State, "%+v", s)
			}
		}
	}
	feeders.Wait()
	delta, _, ok := x.AppendDelta(nil, y.Version())
	require.True(t, ok)
	require.NoError(t, y.AddDelta(delta))
	requireEqual(t, newPast(1), x, y)
	requireNeed(t, index.None, 0, y.NewStream(2, nil))
}

// FuzzLoad loads arbitrary data with a valid checksum: the result is an error or an index with that content.
func FuzzLoad(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(newPast(seed).index(int(10*seed), &pastOptions).AppendSnapshot(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 8 {
			return
		}
		x, err := index.LoadAll(resum(slices.Clone(data)), &pastOptions)
		if err != nil {
			if _, ok := errors.AsType[*index.SnapshotError](err); !ok {
				t.Fatal(err)
			}
			return
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		again, err := index.LoadAll(x.AppendSnapshot(nil), &pastOptions)
		if err != nil || again.Len() != x.Len() || again.Check() != nil {
			t.Fatal(err, again.Check())
		}
		for _, s := range x.AppendInfos(nil) {
			x.RemoveWorker(s.Worker)
		}
		if err := x.Check(); err != nil || x.Len() != 0 {
			t.Fatal(x.Len(), err)
		}
	})
}

// BenchmarkSnapshot writes and reads an index of 16 workers that share half of what they hold; and compares that with
// storing the same blocks by events.
func BenchmarkSnapshot(b *testing.B) {
	for _, own := range []bool{true, false} { // the engines' hashes are our own
		var evs []kvevent.Event
		for i := range uint64(16) {
			for k := range uint64(20) {
				tokens := append(randomTokens(k, 16*250), randomTokens(k<<8+i+1, 16*250)...)
				names := kvhash.Scheme{}.AppendBlocks(nil, tokens, 16, nil)
				for i := range names {
					if !own {
						names[i] = ^names[i]
					}
				}
				evs = append(evs, kvevent.Event{Kind: kvevent.Stored, TokenIDs: tokens, BlockHashes: names, Group: int32(i)})
			}
		}
		fill := func() (x *index.Index, residencies int) {
			x = index.NewAll(16, nil)
			for i := range evs {
				residencies += x.Add(x.AddWorker(index.Key{Instance: "e", DPRank: uint32(evs[i].Group)}), &evs[i]).Stored
			}
			return x, residencies
		}
		x, n := fill()
		data := x.AppendSnapshot(nil)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("own=%v/%s", own, name), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/residency")
				b.ReportMetric(float64(len(data))/float64(x.Len()), "B/block")
				b.ReportMetric(float64(len(data))/float64(n), "B/residency")
			})
		}
		run("events", func() { fill() })
		run("write", func() { data = x.AppendSnapshot(data[:0]) })
		run("load", func() {
			if _, err := index.LoadAll(data, nil); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// FuzzDelta applies a journal whose records are changed, with sums that agree: it is refused as a whole, or breaks nothing.
func FuzzDelta(f *testing.F) {
	o := pastOptions
	o.Journal = 1 << 20
	x := newPast(5).index(30, &o)
	x.NewStream(1, nil).Replace(3, []kvevent.Event{{Kind: kvevent.Stored, BlockHashes: []uint64{9}, TokenIDs: modelTokens("a")}})
	x.Detach(0, 3)
	x.SetState(2, index.Degraded, "told")
	x.RemoveWorker(0)
	x.Clear(1)
	x.Expire(time.Unix(1, 0))
	x.Expire(time.Unix(100, 0))
	if err := x.NewStream(2, nil).Restore(sidecar(newPast(6), 2)); err != nil {
		f.Fatal(err)
	}
	records := x.Records()
	f.Add(uint16(0), uint16(0), []byte{})
	f.Add(uint16(4), uint16(2), []byte{3, 9, 1, 'z', 0, 0})
	f.Fuzz(func(t *testing.T, which, at uint16, change []byte) {
		list := slices.Clone(records)
		r := slices.Clone(list[int(which)%len(list)])
		if len(change) > 0 {
			i := int(at) % (len(r) + 1)
			list[int(which)%len(list)] = append(append(r[:i:i], change...), r[min(len(r), i+len(change)):]...)
			if which>>12&1 != 0 {
				list = slices.Delete(list, int(at)%len(list), int(at)%len(list)+1)
			}
		}
		y := index.NewAll(modelBlock, &o)
		if err := y.AddDelta(y.Delta(list)); err != nil {
			if _, ok := errors.AsType[*index.SnapshotError](err); !ok || y.Version() != (index.Version{}) || len(y.AppendInfos(nil)) > 0 {
				t.Fatal(err)
			}
			return
		}
		if len(change) == 0 && y.Version() != x.Version() {
			t.Fatal("another version")
		}
		if err := y.Check(); err != nil {
			t.Fatal(err)
		}
		for _, s := range y.AppendInfos(nil) {
			y.RemoveWorker(s.Worker)
		}
		if y.Len() != 0 {
			t.Fatal(y.Len())
		}
	})
}
