// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

func TestSearch(t *testing.T) {
	x := fleet(130)
	word := raceLong[:90]
	for i, n := range map[index.WorkerID]int{0: 20, 3: 50, 65: 90, 129: 90} {
		x.Add(i, runOf(word[:n], 0))
	}
	ask := func(q *index.Query) (s string) {
		for _, m := range x.Search(nil, modelHashes(word), q) {
			s += fmt.Sprintf("%d:%d ", m.Worker, m.Depth)
		}
		return s
	}
	all := "0:20 3:50 65:90 129:90 "
	require.Equal(t, all, ask(nil))
	require.Equal(t, all, ask(&index.Query{}))
	require.Equal(t, "", ask(&index.Query{Workers: []index.WorkerID{}}), "none is not all")
	require.Equal(t, "3:50 129:90 ", ask(&index.Query{Workers: []index.WorkerID{1, 3, 129, 4000}}))
	require.Equal(t, "", ask(&index.Query{Workers: []index.WorkerID{1, 2}}))
	require.Equal(t, all, ask(&index.Query{Stop: 1}), "two are left to the end")
	for stop, least := range map[int]int32{2: 50, 3: 20, 4: 1, 5: 1} {
		got := x.Search(nil, modelHashes(word), &index.Query{Stop: stop})
		require.NoError(t, sameBounds(x.AppendMatches(nil, modelHashes(word)), got, stop), "stop %d, at least %d", stop, least)
	}
	// Only requested workers are counted as left.
	got := x.Search(nil, modelHashes(word), &index.Query{Workers: []index.WorkerID{3, 65}, Stop: 1})
	require.Len(t, got, 2)
	require.Equal(t, int32(50), got[0].Depth)
	require.GreaterOrEqual(t, got[1].Depth, int32(50))

	if raceEnabled {
		return
	}
	h, dst := modelHashes(word), make([]index.Match, 0, 200)
	q := &index.Query{Workers: []index.WorkerID{0, 65}, Stop: 1}
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = x.Search(dst[:0], h, q) }))
}

func TestPendingTTL(t *testing.T) {
	now := time.Unix(1000, 0)
	x := index.NewAll(modelBlock, &index.AllOptions{PendingTTL: 10 * time.Second})
	id := x.AddWorker(index.Key{Instance: "e"})
	state := func() string {
		s, _ := x.Info(id)
		return fmt.Sprint(s.Orphans, " ", s.State)
	}
	after := func(d time.Duration) string {
		now = now.Add(d)
		x.Expire(now)
		return state()
	}
	x.Add(id, stored("abab", 2, 0)) // before any time is known: its time begins with the first one
	require.Equal(t, "2 degraded", after(0))
	x.Add(id, stored("bbab", 3, 0))
	require.Equal(t, "3 degraded", after(5*time.Second))
	x.Add(id, stored("bab", 2, 0))
	require.Equal(t, "1 degraded", after(6*time.Second))
	x.Add(id, stored("ab", 0, 0)) // too late
	require.Equal(t, "0:2", depths(x, "abab"))
	x.Add(id, stored("ba", 0, 0))
	require.Equal(t, "0:3", depths(x, "bab"))
	require.Equal(t, "0 degraded", after(0), "blocks were lost")
	require.Equal(t, "0 degraded", after(time.Hour))
	require.NoError(t, x.Check())
	x.Add(id, &kvevent.Event{Kind: kvevent.Cleared})
	require.Equal(t, "0 exact", state())

	// Pending again, an orphan is young again. One that was removed while it waited goes without a loss.
	x.Add(id, stored("abab", 2, 0))
	require.Equal(t, "2 degraded", after(6*time.Second))
	x.Add(id, stored("abab", 2, 0))
	require.Equal(t, "2 degraded", after(6*time.Second))
	x.Add(id, removed("abab", 2, 0))
	require.Equal(t, "0 exact", after(time.Hour))

	// They may stay for ever.
	x = index.NewAll(modelBlock, &index.AllOptions{PendingTTL: -1})
	x.AddWorker(index.Key{Instance: "e"})
	x.Expire(now)
	x.Add(0, stored("abab", 2, 0))
	x.Expire(now.Add(1000 * time.Hour))
	s, _ := x.Info(0)
	require.Equal(t, 2, s.Orphans)

	// The clock of a simulation may begin with the zero time; all before 1678 is one moment.
	x = fleet(1)
	x.Add(0, stored("abab", 2, 0))
	x.Expire(time.Time{})
	x.Expire(time.Time{}.Add(time.Hour))
	s, _ = x.Info(0)
	require.Equal(t, 2, s.Orphans)
	x.Predict(0, modelHashes("aa"), 0, time.Time{}.Add(2*time.Hour))
	x.Expire(time.Time{}.Add(2*time.Hour - 1))
	require.Equal(t, "0:2", depths(x, "aa"))
	x.Expire(time.Time{}.Add(2 * time.Hour))
	require.Equal(t, "", depths(x, "aa"))
	x.Expire(now)
	s, _ = x.Info(0)
	require.Zero(t, s.Orphans)
}

func TestStores(t *testing.T) {
	x := fleet(2)
	remote := x.AddStore(index.Key{Instance: "lmcache"}, kvevent.Remote)
	disk := x.AddStore(index.Key{Instance: "nvme"}, kvevent.Disk)
	require.Equal(t, remote, x.AddStore(index.Key{Instance: "lmcache"}, kvevent.Remote))
	look := func(word string) (s string) {
		for _, m := range x.AppendMatches(nil, modelHashes(word)) {
			s += fmt.Sprintf("%d:%d%v ", m.Worker, m.Depth, m.Tiers)
		}
		return s
	}
	x.Add(remote, stored("ababab", 0, 0))
	require.Equal(t, "", look("abab"), "attached to no worker")
	x.Attach(0, remote)
	x.Attach(0, remote) // once is enough
	require.Equal(t, "0:4[0 0 0 4] ", look("abab"))
	x.Add(0, stored("ab", 0, 0))
	x.Add(1, stored("aba", 0, 0))
	require.Equal(t, "0:4[2 0 0 2] 1:3[3 0 0 0] ", look("abab"))
	x.Attach(1, remote)
	x.Attach(1, disk)
	x.Add(disk, stored("abab", 0, 9))
	require.Equal(t, "0:6[2 0 0 4] 1:6[3 0 1 2] ", look("ababab"))
	x.Add(0, removed("a", 1, 0)) // a hole that the store fills
	require.Equal(t, "0:6[1 0 0 5] 1:6[3 0 1 2] ", look("ababab"))
	x.Add(remote, removed("abab", 1, 0))
	require.Equal(t, "0:3[1 0 0 2] 1:6[3 0 1 2] ", look("ababab"))
	x.Detach(0, remote)
	x.Detach(0, remote)
	require.Equal(t, "1:6[3 0 1 2] ", look("ababab"))
	x.RemoveWorker(disk)
	require.Equal(t, "1:3[3 0 0 0] ", look("ababab"))
	require.NoError(t, x.Check())
	x.Attach(0, remote)
	x.RemoveWorker(0)
	id := x.AddWorker(index.Key{Instance: "new"}) // may have the number of the disk or of worker 0
	require.Equal(t, "1:3[3 0 0 0] ", look("ababab"), "nothing is attached to a new worker")
	x.Clear(remote)
	x.Clear(1)
	x.Clear(id)
	require.Zero(t, x.Len())
	require.NoError(t, x.Check())

	// Unknown IDs, and IDs of the wrong kind, have no effect.
	x.Attach(99, remote)
	x.Attach(1, 99)
	x.Detach(99, 99)
	x.Attach(remote, 1)
	x.Attach(1, 1)
	require.NoError(t, x.Check())
}

// Workers report the content of a store: any of them may remove blocks that another stored, even if it never stored any
// or was cleared since.
func TestStoresOfOwners(t *testing.T) {
	for _, ratio := range []int{1, 2} {
		x := fleet(3)
		store := x.AddStore(index.Key{Instance: "lmcache"}, kvevent.Remote)
		x.Attach(2, store)
		of := func(id index.WorkerID, ev *kvevent.Event) index.Result {
			ev.Owner = "lmcache"
			return x.Add(id, ev)
		}
		put := func(id index.WorkerID, word string, skip int) index.Result {
			ev := stored(word, skip, 0)
			if ratio > 1 {
				ev.BlockSize, ev.BlockHashes = int32(2*modelBlock), []uint64{ev.BlockHashes[1], ev.BlockHashes[3]}
			}
			ev.Group = 3
			return of(id, ev)
		}
		drop := func(id index.WorkerID, word string) index.Result {
			ev := removed(word, 4, 0)
			if ratio > 1 {
				ev.BlockHashes = []uint64{ev.BlockHashes[1], ev.BlockHashes[3]}
			}
			ev.Group = 3
			return of(id, ev)
		}
		require.Equal(t, index.Result{Stored: 4}, put(0, "abab", 0))
		require.Equal(t, "2:4", depths(x, "ababbbbb"))
		require.Equal(t, index.Result{Stored: 4}, put(0, "ababbbbb", 4), "after a block of the store")
		require.Equal(t, "2:8", depths(x, "ababbbbb"))
		require.Equal(t, index.Result{Removed: 4}, drop(1, "ababbbbb"), "by one that stored nothing")
		require.Equal(t, "2:4", depths(x, "ababbbbb"))
		x.Clear(0)
		require.Equal(t, "2:4", depths(x, "ababbbbb"), "they are not its own")
		require.Equal(t, index.Result{Removed: 4}, drop(0, "abab"), "by one that was cleared")
		require.Equal(t, "", depths(x, "ababbbbb"))
		require.Zero(t, x.Len())

		require.Equal(t, index.Result{Pending: 4}, put(0, "ababbbbb", 4))
		require.Equal(t, index.Result{Removed: 4}, drop(1, "ababbbbb"), "parked")
		require.Equal(t, index.Result{Stored: 4}, put(1, "abab", 0))
		require.Equal(t, "2:4", depths(x, "ababbbbb"))
		of(2, &kvevent.Event{Kind: kvevent.Cleared, Tier: kvevent.Host})
		require.Zero(t, x.Len())
		require.NoError(t, x.Check())

		ev := removed("abab", 4, 0)
		ev.Attention = kvevent.StateSpace
		require.Equal(t, index.Result{Stored: 4}, put(1, "abab", 0))
		require.Equal(t, index.Result{Ignored: 4}, of(2, ev), "of another kind")
		require.Equal(t, "2:4", depths(x, "abab"))

		// A worker's own blocks, copied.
		ev = stored("abab", 0, 0)
		ev.BlockHashes = blocks(5, 4)
		if ratio > 1 {
			ev.BlockSize, ev.BlockHashes = int32(2*modelBlock), ev.BlockHashes[:2]
		}
		x.Clear(store)
		require.Equal(t, 4, x.Add(2, ev).Stored)
		require.Equal(t, index.Result{Stored: 4}, of(2, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: ev.BlockHashes}))
		require.NoError(t, x.Check())
		s, _ := x.Info(store)
		require.Equal(t, 4, s.Blocks)
		x.Clear(2)
		require.Equal(t, "2:4", depths(x, "abab"))

		// Such a copy leads to what the store has parked.
		x.Clear(store)
		require.Equal(t, index.Result{Pending: 4}, put(0, "ababbbbb", 4))
		ev = stored("abab", 0, 0)
		if ratio > 1 {
			ev.BlockSize, ev.BlockHashes = int32(2*modelBlock), []uint64{ev.BlockHashes[1], ev.BlockHashes[3]}
		}
		ev.Group = 3
		require.Equal(t, 4, x.Add(1, ev).Stored)
		require.Equal(t, index.Result{Stored: 8}, of(1, &kvevent.Event{Kind: kvevent.Stored, BlockHashes: ev.BlockHashes, Group: 3}))
		require.Equal(t, "1:4 2:8", depths(x, "ababbbbb"))
		require.NoError(t, x.Check())
	}
}

// TestStoresAgainstModel attaches and detaches at random. Stores are of the two slow tiers, workers hold blocks in the two fast ones.
func TestStoresAgainstModel(t *testing.T) {
	for range factor() {
		rapid.Check(t, func(t *rapid.T) {
			o := index.AllOptions{}
			x, m := index.NewAll(modelBlock, &o), newModel(modelBlock, o)
			var ids []index.WorkerID
			for i := range uint32(6) {
				k := index.Key{Instance: "e", DPRank: i}
				if i < 3 {
					id := x.AddWorker(k)
					m.add(id, k)
					ids = append(ids, id)
					continue
				}
				k = index.Key{Instance: fmt.Sprint("store", i)}
				tier := []kvevent.Tier{kvevent.Disk, kvevent.Remote}[i%2]
				id := x.AddStore(k, tier)
				m.add(id, k).store = tier
				ids = append(ids, id)
			}
			words := []string{raceLong[:20], raceLong[:12] + "bbbb", raceLong[:3], "b" + raceLong[:9], raceLong[:19] + "aaa"}
			pick := func(t *rapid.T, from, to int) index.WorkerID {
				return ids[rapid.IntRange(from, to-1).Draw(t, "worker")]
			}
			// A worker also reports the content of a store.
			add := func(t *rapid.T, id index.WorkerID, ev *kvevent.Event) {
				m.apply(id, ev)
				if id >= ids[3] && rapid.Bool().Draw(t, "from a worker") {
					ev.Owner = m.worker(id).key.Instance
					id = pick(t, 0, 3)
				}
				x.Add(id, ev)
			}
			t.Repeat(map[string]func(*rapid.T){
				"store": func(t *rapid.T) {
					id, word := pick(t, 0, 6), rapid.SampledFrom(words).Draw(t, "word")
					ev := on(kvevent.Tier(rapid.IntRange(0, 2).Draw(t, "tier")), runOf(word[:rapid.IntRange(1, len(word)).Draw(t, "to")], 0))
					add(t, id, ev)
				},
				"remove": func(t *rapid.T) {
					id, word := pick(t, 0, 6), rapid.SampledFrom(words).Draw(t, "word")
					at := rapid.IntRange(0, len(word)-1).Draw(t, "at")
					ev := &kvevent.Event{Kind: kvevent.Removed, BlockHashes: engineHashes(word, 1)[at:min(at+3, len(word))]}
					add(t, id, ev)
				},
				"predict": func(t *rapid.T) {
					id, h := pick(t, 0, 3), modelHashes(rapid.SampledFrom(words).Draw(t, "word"))
					x.Predict(id, h, 0, time.Unix(10, 0))
					m.worker(id).predict(m.path(h), time.Unix(10, 0))
				},
				"clear": func(t *rapid.T) {
					id := pick(t, 0, 6)
					x.Clear(id)
					m.worker(id).clear(kvevent.AnyTier)
				},
				"attach": func(t *rapid.T) {
					id, store := pick(t, 0, 3), pick(t, 3, 6)
					x.Attach(id, store)
					w, s := m.worker(id), m.worker(store)
					for _, q := range w.stores {
						if q == s {
							return
						}
					}
					w.stores = append(w.stores, s)
				},
				"detach": func(t *rapid.T) {
					id, store := pick(t, 0, 3), pick(t, 3, 6)
					x.Detach(id, store)
					w := m.worker(id)
					for i, q := range w.stores {
						if q == m.worker(store) {
							w.stores = append(w.stores[:i:i], w.stores[i+1:]...)
							break
						}
					}
				},
				"": func(t *rapid.T) {
					require.NoError(t, x.Check())
					for _, word := range words {
						want, got := m.match(m.path(modelHashes(word))), x.AppendMatches(nil, modelHashes(word))
						for i := range want {
							want[i].State = 0 // the effect of a store's trust on the worker's is not specified
						}
						for i := range got {
							got[i].State = 0
						}
						if err := sameMatches(want, got); err != nil {
							t.Fatal(err)
						}
					}
				},
			})
		})
	}
}

// A shared store changes what is true of the workers that are attached to it, in one step with each of its events.
var moreRaces = []race{
	{"stores", 1, 2, []string{raceLong[:120], raceLong[:50] + "c"}, func(s *script) {
		a, b := s.workers[0], s.workers[1]
		store := b + 1
		s.step(func(x *index.Index) error {
			if id := x.AddStore(index.Key{Instance: "store"}, kvevent.Remote); id != store {
				return fmt.Errorf("number %d is not the next one", id)
			}
			return nil
		}, []index.WorkerID{store}, func() { s.m.add(store, index.Key{}).store = kvevent.Remote })
		attach := func(id index.WorkerID) {
			s.step(func(x *index.Index) error {
				x.Attach(id, store)
				return nil
			}, []index.WorkerID{id}, func() { s.m.worker(id).stores = []*modelWorker{s.m.worker(store)} })
		}
		detach := func(id index.WorkerID) {
			s.step(func(x *index.Index) error {
				x.Detach(id, store)
				return nil
			}, []index.WorkerID{id}, func() { s.m.worker(id).stores = nil })
		}
		for i := range 10 {
			s.apply(store, runOf(raceLong[:100+i], 0), a, b)
			s.store(a, raceLong[:30+i], 0, 0)
			attach(a)
			attach(b)
			s.remove(a, raceLong, 10, 20+i, i%2 == 0, 0) // the store fills the hole
			s.apply(store, &kvevent.Event{Kind: kvevent.Removed, BlockHashes: engineHashes(raceLong, 1)[15 : 40+i]}, a, b)
			s.store(b, raceLong[:60], 0, kvevent.Host)
			detach(b)
			s.apply(store, &kvevent.Event{Kind: kvevent.Cleared}, a, b)
			detach(a)
			s.clear(a, kvevent.AnyTier)
			s.clear(b, kvevent.AnyTier)
		}
		attach(a)
		s.apply(store, runOf(raceLong[:100], 0), a, b)
		s.step(func(x *index.Index) error {
			x.RemoveWorker(store)
			return nil
		}, []index.WorkerID{a, store}, func() {
			s.m.workers[store] = nil
			s.m.worker(a).stores = nil
		})
	}},
}
