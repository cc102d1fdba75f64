// SPDX-License-Identifier: Apache-2.0

package index

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// Blocks without a worker exist briefly while orphans are stored. A lookup over many workers, whose scratch memory was
// used before, must not report workers for them.
func TestBlocksWithoutWorkers(t *testing.T) {
	x := New(1, nil)
	for i := range uint32(64*narrow + 1) {
		id := x.AddWorker(Key{DPRank: i})
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, LocalHashes: []uint64{1}})
	}
	x.locate(nil, 0, []uint64{2}, nil, nil, false)
	x.tree.fill(0, x.segs[0].slot, x.segs[0].slot+1, 0)
	for range 100 { // the pool may drop some
		require.Len(t, x.AppendMatches(nil, []uint64{1}), 64*narrow+1)
		require.Empty(t, x.AppendMatches(nil, []uint64{2}))
	}
}

// The list of workers is copied only when a worker is added or removed; otherwise each change of one worker would cost
// O(workers).
func TestRosterIsShared(t *testing.T) {
	x := New(1, nil)
	a, s := x.AddWorker(Key{}), x.AddStore(Key{Instance: "s"}, kvevent.Remote)
	list := &x.roster.Load().workers[0]
	x.Attach(a, s)
	for _, id := range []WorkerID{a, s} {
		x.Add(id, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, LocalHashes: []uint64{1}})
		x.Add(id, &kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Host})
		x.Clear(id)
	}
	require.Same(t, list, &x.roster.Load().workers[0])
	x.RemoveWorker(a)
	require.True(t, list != &x.roster.Load().workers[0])
	_, ok := x.Lookup(Key{})
	require.False(t, ok)
}

// A set must not get the number of another when all numbers are taken.
func TestSetNumbersEnd(t *testing.T) {
	s := sets{end: 1 << setBits}
	defer func() { require.Equal(t, "index: more than 8 GiB of sets", recover()) }()
	s.alloc(1)
}

// An orphan that waits nearly for ever does not keep Expire busy.
func TestLongPendingTTL(t *testing.T) {
	x := New(1, &Options{PendingTTL: math.MaxInt64})
	id := x.AddWorker(Key{})
	now := time.Unix(1e9, 0)
	x.Expire(now)
	ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: []uint64{1}, LocalHashes: []uint64{1}, Parent: 7, HasParent: true}
	require.Equal(t, 1, x.Add(id, ev).Pending)
	require.Greater(t, x.due.Load(), now.UnixNano())
	x.Expire(now.Add(time.Hour))
	st, _ := x.Info(id)
	require.Equal(t, 1, st.Orphans)
}

// TestPartsGiveWay checks that a goroutine that waits for the lock gets it between two parts of longer work.
func TestPartsGiveWay(t *testing.T) {
	x := New(4, nil)
	x.lockPart()
	for range 100 {
		order := make(chan string, 2)
		go func() {
			x.lock()
			order <- "other"
			x.mu.Unlock()
		}()
		for x.next.TryLock() { // until the other waits
			x.next.Unlock()
			runtime.Gosched()
		}
		x.mu.Unlock()
		x.lockPart()
		order <- "part"
		require.Equal(t, "other", <-order)
		<-order
	}
	x.mu.Unlock()
}

// If very many names begin alike once mixed, most of them do not become common, and the directory stays small. The workers have these names
// nevertheless.
func TestCommonNamesThatBeginAlike(t *testing.T) {
	x := New(1, nil)
	c := &x.tree.slots.common
	rnd := rand.New(rand.NewPCG(1, 1))
	const n = 1000
	var hashes, local []uint64
	for len(hashes) < n {
		if h := rnd.Uint64(); c.mix(h)>>50 == 0 {
			hashes, local = append(hashes, h), append(local, uint64(len(hashes)))
		}
	}
	ev := &kvevent.Event{Kind: kvevent.Stored, BlockHashes: hashes, LocalHashes: local}
	for i := range uint32(2) {
		r := x.Add(x.AddWorker(Key{DPRank: i}), ev)
		require.Equal(t, n, r.Stored)
	}
	require.Equal(t, leafFull, c.n)
	require.LessOrEqual(t, len(c.dir), maxSparse*c.many)
	require.NoError(t, x.Check())
	for i := range uint32(2) {
		id, ok := x.Lookup(Key{DPRank: i})
		require.True(t, ok)
		require.Equal(t, n-300, x.Add(id, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: hashes[300:]}).Removed)
		require.NoError(t, x.Check())
	}
	require.Equal(t, 300, c.n)
}
