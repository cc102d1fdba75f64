// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/router/internal/ledger"
	"github.com/weft-go/weft/router/policy"
)

const msec = time.Millisecond

func TestWait(t *testing.T) {
	var l ledger.Ledger
	t0 := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	wait := func(d time.Duration) time.Duration { s := l.Load(); return s.Wait(at(d)) }
	a, b, c := &ledger.Entry{Prefill: 100 * msec, Tokens: 7}, &ledger.Entry{Prefill: 50 * msec, Tokens: 3}, &ledger.Entry{Prefill: 10 * msec}

	require.Equal(t, policy.Load{}, l.Load())
	l.Reserve(a, at(0))
	l.Reserve(b, at(20*msec))
	require.Equal(t, 150*msec, wait(0))
	require.Equal(t, 110*msec, wait(40*msec), "the first has been running")
	require.Equal(t, 50*msec, wait(time.Second), "the first is late, the second still needs its time")
	require.Equal(t, policy.Load{Free: at(100 * msec), Pending: 50 * msec, Prefills: 2, Tokens: 10}, l.Load())

	l.Reserve(c, at(30*msec))
	require.True(t, l.FirstToken(b, at(60*msec)), "out of turn")
	require.Equal(t, 50*msec, wait(60*msec))
	require.True(t, l.FirstToken(a, at(80*msec)))
	require.Equal(t, 5*msec, wait(85*msec), "the third has been running since the first left")
	require.True(t, l.Release(c, at(85*msec)), "without a first token")
	require.False(t, l.FirstToken(c, at(90*msec)))
	require.Equal(t, policy.Load{Decodes: 2}, l.Load())
	require.True(t, l.Release(a, at(90*msec)))
	require.False(t, l.Release(a, at(90*msec)))
	require.True(t, l.Release(b, at(90*msec)))
	require.Equal(t, policy.Load{}, l.Load())
	require.Panics(t, func() { l.Reserve(a, t0) })
}

func TestPeriods(t *testing.T) {
	var l ledger.Ledger
	t0 := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	var all []*ledger.Entry
	add := func() *ledger.Entry {
		e := new(ledger.Entry)
		l.Reserve(e, at(time.Duration(len(all))))
		all = append(all, e)
		return e
	}
	a := add()
	require.Nil(t, a.Period())
	l.FirstToken(a, at(10))
	require.Equal(t, &ledger.Period{Begin: at(0), End: at(10), Members: 1, Steps: 1}, a.Period())

	b, c := add(), add()
	l.FirstToken(c, at(20))
	require.Equal(t, &ledger.Period{Begin: at(1), Members: 1, Steps: 1}, c.Period())
	l.Release(b, at(30))
	require.True(t, c.Period().Broken, "part of b was computed")
	require.Zero(t, c.Period().End)

	var many []*ledger.Entry
	for range 20 {
		many = append(many, add())
	}
	for i, e := range many {
		l.FirstToken(e, at(time.Duration(100+i)))
	}
	require.Equal(t, &ledger.Period{Begin: at(3), End: at(115), Members: 16, Steps: 1}, many[0].Period())
	require.Equal(t, &ledger.Period{Begin: at(115), End: at(119), Members: 4, Steps: 1}, many[19].Period())
}

// Prefills whose first tokens arrive together are one step of the engine.
func TestPeriodCountsSteps(t *testing.T) {
	var l ledger.Ledger
	t0 := time.Unix(0, 0)
	var all [5]ledger.Entry
	for i := range all {
		l.Reserve(&all[i], t0)
	}
	for i, ms := range []int{10, 10, 20, 20, 35} {
		l.FirstToken(&all[i], t0.Add(time.Duration(ms)*time.Millisecond))
	}
	require.Equal(t, 3, all[0].Period().Steps)
	require.Equal(t, 5, all[0].Period().Members)
}

// TestModel compares the account with summing over the entries, and ends with nothing.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			*ledger.Entry
			decoding, gone bool
		}
		l := ledger.Ledger{Stride: 32}
		var all []*entry
		now, since := time.Unix(0, 0), time.Time{}
		var head *entry
		line := func() (n []*entry) {
			for _, e := range all {
				if !e.decoding && !e.gone {
					n = append(n, e)
				}
			}
			return n
		}
		turn := func() { // which one is at the head now?
			var first *entry
			if n := line(); len(n) > 0 {
				first = n[0]
			}
			if first != head {
				head, since = first, now
			}
		}
		one := func(t *rapid.T) *entry {
			if len(all) == 0 {
				t.Skip("no entries")
			}
			return rapid.SampledFrom(all).Draw(t, "entry")
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				e := &entry{Entry: &ledger.Entry{
					Prefill: time.Duration(rapid.IntRange(-1, 100).Draw(t, "prefill")),
					Tokens:  rapid.IntRange(0, 10).Draw(t, "tokens"),
					Blocks:  rapid.IntRange(0, 10).Draw(t, "blocks"),
				}}
				mark := uint64(0) // of what is before it, as sequence hashes are
				for _, next := range rapid.SliceOfN(rapid.Uint64Range(1, 2), 0, 6).Draw(t, "marks") {
					mark = 3*mark + next
					e.Marks = append(e.Marks, mark)
				}
				l.Reserve(e.Entry, now)
				all = append(all, e)
				turn()
			},
			"first": func(t *rapid.T) {
				e := one(t)
				if want := !e.decoding && !e.gone; l.FirstToken(e.Entry, now) != want {
					t.Fatal("FirstToken is not", want)
				}
				e.decoding = true
				turn()
			},
			"release": func(t *rapid.T) {
				e := one(t)
				if l.Release(e.Entry, now) == e.gone {
					t.Fatal("Release is", !e.gone)
				}
				e.gone = true
				turn()
			},
			"time": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 80).Draw(t, "ns"))) },
			"": func(t *rapid.T) {
				var want policy.Load
				marks := map[uint64]bool{}
				for _, e := range all {
					switch {
					case e.gone:
						continue
					case e.decoding:
						want.Decodes++
					case !e.decoding:
						want.Prefills++
						want.Tokens += e.Tokens
						if e == head {
							want.Free = since.Add(max(0, e.Prefill))
						} else {
							want.Pending += max(0, e.Prefill)
						}
					}
					want.Blocks += e.Blocks
					for _, m := range e.Marks {
						if !marks[m] {
							marks[m] = true
							want.Blocks += l.Stride
						}
					}
				}
				if d := cmp.Diff(want, l.Load()); d != "" {
					t.Fatalf("(-model +ledger):\n%s", d)
				}
			},
		})
		for _, e := range all {
			l.Release(e.Entry, now)
		}
		if d := cmp.Diff(policy.Load{}, l.Load()); d != "" {
			t.Fatalf("not empty:\n%s", d)
		}
	})
}
