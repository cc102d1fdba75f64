// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/router/internal/queue"
)

type item = queue.Item[string]

const second = int64(time.Second)

func newQueue(weight func(string) float64) *queue.Queue[string] {
	q := new(queue.Queue[string])
	q.Init(queue.Options{Weight: weight})
	return q
}

// drain takes all items that are first, each of which takes work, and returns their values.
func drain(q *queue.Queue[string], work time.Duration, workers int) (order []string) {
	for it := q.Next(); it != nil; it = q.Next() {
		order = append(order, it.Value)
		q.Charge(it, work, workers, 0)
	}
	return order
}

func TestOrder(t *testing.T) {
	q := newQueue(nil)
	for i, it := range []*item{
		{Value: "late", Session: "a", Arrival: 3, Due: 3},
		{Value: "early", Session: "b", Arrival: 1, Due: 1},
		{Value: "equal", Session: "c", Arrival: 1, Due: 1},
		{Value: "high", Session: "d", Tier: 1, Arrival: 9, Due: 9},
		{Value: "higher", Session: "d", Tier: 2, Arrival: 10, Due: 10},
		{Value: "urgent", Session: "a", Arrival: 3, Due: -5},
	} {
		q.Add(it)
		require.Equal(t, i+1, q.Len())
	}
	require.Equal(t, []string{"higher", "high", "urgent", "early", "equal", "late"}, drain(q, 0, 1))
	require.Zero(t, q.Len())
}

// Sessions take turns, however many requests one of them has sent before.
func TestSessionsShare(t *testing.T) {
	q := newQueue(nil)
	for i := range 4 {
		q.Add(&item{Value: fmt.Sprint("a", i), Session: "a", Arrival: int64(i), Due: int64(i)})
	}
	q.Add(&item{Value: "b0", Session: "b", Arrival: 100, Due: 100})
	q.Add(&item{Value: "b1", Session: "b", Arrival: 101, Due: 101})
	require.Equal(t, []string{"a0", "b0", "a1", "b1", "a2", "a3"}, drain(q, time.Second, 1))
}

// Over a long time, each tenant gets what its sessions or its weight are worth, by work and not by requests.
func TestTenantsShare(t *testing.T) {
	for name, tt := range map[string]struct {
		weight func(string) float64
		want   float64 // work of tenant a divided by that of b
	}{
		"by sessions": {nil, 3},
		"by weight":   {func(s string) float64 { return map[string]float64{"a": 1, "b": 2}[s] }, 0.5},
	} {
		q := newQueue(tt.weight)
		add := func(tenant, session string, now int64) {
			q.Add(&item{Value: tenant, Tenant: tenant, Session: session, Arrival: now, Due: now})
		}
		for i := range 40 { // a has three sessions, b one whose requests are twice as long
			for _, s := range []string{"x", "y", "z"} {
				add("a", s, int64(i))
			}
			add("b", "x", int64(i))
			add("b", "x", int64(i))
		}
		done := map[string]float64{}
		var now int64
		for range 60 {
			it := q.Next()
			work := time.Second
			if it.Value == "b" {
				work *= 2
			}
			done[it.Value] += work.Seconds()
			session := it.Session
			q.Charge(it, work, 1, now)
			now += int64(work)
			add(it.Value, session, now)
		}
		require.InEpsilon(t, tt.want, done["a"]/done["b"], 0.2, name)
	}
}

// Weights that are not numbers do not affect other tenants, also not later ones.
func TestStrangeWeights(t *testing.T) {
	for _, strange := range []float64{math.NaN(), math.Inf(1), -1} {
		q := newQueue(func(tenant string) float64 {
			if tenant == "strange" {
				return strange
			}
			return 1
		})
		q.Add(&item{Tenant: "strange", Session: "s"})
		q.Charge(q.Next(), time.Second, 1, 0)
		for i := range int64(3) {
			q.Add(&item{Value: fmt.Sprint("a", i), Tenant: "a", Session: "s", Arrival: 1 + i, Due: 1 + i})
		}
		for i := range int64(3) {
			q.Add(&item{Value: fmt.Sprint("b", i), Tenant: "b", Session: "s", Arrival: 10 + i, Due: 10 + i})
		}
		require.Equal(t, []string{"a0", "b0", "a1", "b1", "a2", "b2"}, drain(q, time.Second, 1), strange)
	}
}

// What a session used while nobody waited does not count, and what it used otherwise is forgotten.
func TestDebtIsBounded(t *testing.T) {
	q := newQueue(nil)
	first := &item{Value: "a", Session: "a"}
	q.Add(first)
	q.Charge(first, 24*time.Hour, 1, 0)
	a, b := &item{Value: "a", Session: "a", Arrival: 5 * second, Due: 5 * second}, &item{Value: "b", Session: "b", Arrival: 130 * second, Due: 130 * second}
	q.Add(a)
	q.Add(b)
	require.Equal(t, "a", q.Next().Value, "b came after all that a may owe")
	require.True(t, q.Remove(a))
	q.Add(&item{Value: "late", Session: "a", Arrival: 125 * second, Due: 125 * second})
	require.Equal(t, "late", q.Next().Value, "its debt is over")
}

// What is taken back was never charged, also where others of the tenant and session wait in another class.
func TestRefund(t *testing.T) {
	for _, refund := range []bool{false, true} {
		q := newQueue(nil)
		it := &queue.Item[string]{Value: "charged", Tenant: "a", Session: "s"}
		q.Add(it)
		q.Charge(it, time.Minute, 1, 0)
		q.Add(&queue.Item[string]{Value: "a", Class: "1", Tenant: "a", Session: "s", Due: 1})
		q.Add(&queue.Item[string]{Value: "b", Tenant: "b", Due: 2})
		q.Next() // has corrected its order
		if refund {
			q.Refund(it)
			q.Refund(it)
		}
		want := map[bool]string{false: "b", true: "a"}[refund]
		if got := q.Next().Value; got != want {
			t.Errorf("refund %v: %s comes first, want %s", refund, got, want)
		}
	}
}

// The order does not depend on where the clock begins, which may be before 1970.
func TestAnyClock(t *testing.T) {
	orders := make(map[string]bool)
	for _, begin := range []int64{0, 1e18, -1e18, time.Time{}.UnixNano()} {
		q := newQueue(nil)
		var order []string
		var last *item
		for i := range int64(40) {
			now := begin + i*second
			it := &item{Value: fmt.Sprint(i), Tenant: fmt.Sprint(i % 3), Session: fmt.Sprint(i % 7), Arrival: now, Due: now + i*13%9*second}
			q.Add(it)
			if i%2 == 1 {
				it = q.Next()
				q.Charge(it, 3*time.Second, 2, now)
				order = append(order, it.Value)
			}
			if i%8 == 7 {
				q.Refund(it)
			}
			last = it
		}
		q.Refund(last)
		for it := q.Next(); it != nil; it = q.Next() {
			q.Charge(it, 3*time.Second, 2, begin+50*second)
			order = append(order, it.Value)
		}
		orders[fmt.Sprint(order)] = true
	}
	require.Len(t, orders, 1)
}

func TestClasses(t *testing.T) {
	q := newQueue(nil)
	a, b := &item{Value: "a", Class: "1", Due: 1}, &item{Value: "b", Class: "2", Due: 2}
	q.Add(a)
	q.Add(b)
	q.Block(q.Next())
	require.Equal(t, "b", q.Next().Value)
	q.Block(q.Next())
	require.Nil(t, q.Next())
	q.Unblock()
	require.Equal(t, "a", q.Next().Value)
	require.True(t, q.Remove(a))
	require.False(t, q.Remove(a))
	require.Equal(t, "b", q.Next().Value)
	require.Panics(t, func() { q.Add(b) })
}

// Items that are removed without having been placed leave no account.
func TestRemovedLeaveNothing(t *testing.T) {
	q := newQueue(func(string) float64 { return 1 })
	q.Add(&item{Tenant: "t", Session: "s"})
	for i := range 100 {
		a := &item{Class: fmt.Sprint(i % 2), Tenant: fmt.Sprint("t", i), Session: "s"}
		b := &item{Class: "b", Tenant: fmt.Sprint("t", i), Session: fmt.Sprint("s", i%2), Expires: 1}
		q.Add(a)
		q.Add(b)
		require.Positive(t, q.Accounts())
		require.True(t, q.Remove(a))
		require.Equal(t, b, q.Expire(1))
	}
	require.Equal(t, 2, q.Accounts())
	require.Len(t, drain(q, time.Second, 1), 1)
	require.Equal(t, 2, q.Accounts(), "they have debt")
}

func TestExpire(t *testing.T) {
	q := newQueue(nil)
	for i := range 3 {
		q.Add(&item{Value: fmt.Sprint(i), Expires: int64(3-i) * second})
	}
	q.Add(&item{Value: "never"})
	at, ok := q.Expires()
	require.True(t, ok)
	require.Equal(t, second, at)
	require.Nil(t, q.Expire(second-1))
	require.Equal(t, "2", q.Expire(2*second).Value)
	require.Equal(t, "1", q.Expire(2*second).Value)
	require.Nil(t, q.Expire(2*second))
	require.Equal(t, []string{"0", "never"}, drain(q, 0, 1))
	_, ok = q.Expires()
	require.False(t, ok)
}

// A queue from which items were canceled is in every respect like one to which they were never added.
func TestCancelIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		with, without := newQueue(nil), newQueue(nil)
		var extra []*item
		names := rapid.SampledFrom([]string{"", "x", "y"})
		now := int64(0)
		both := func(f func(q *queue.Queue[string]) string) {
			a, b := f(with), f(without)
			if a != b {
				t.Fatalf("with canceled items %q, without %q", a, b)
			}
		}
		next := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, 3*second).Draw(t, "time")
			make := func(value string) func() *item {
				it := item{
					Value: value, Class: names.Draw(t, "class"), Tenant: names.Draw(t, "tenant"), Session: names.Draw(t, "session"),
					Tier: rapid.Uint32Range(0, 1).Draw(t, "tier"), Arrival: now, Due: now - rapid.Int64Range(-5, 5).Draw(t, "urgency")*second,
				}
				return func() *item { c := it; return &c }
			}
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				it := make(fmt.Sprint(next))
				next++
				with.Add(it())
				without.Add(it())
			case 1: // added and canceled before anything else is taken
				it := make("canceled")()
				with.Add(it)
				extra = append(extra, it)
			case 2:
				for _, it := range extra {
					if !with.Remove(it) {
						t.Fatal("not in the queue")
					}
				}
				extra = nil
				work := time.Duration(rapid.Int64Range(0, 4*second).Draw(t, "work"))
				both(func(q *queue.Queue[string]) string {
					it := q.Next()
					if it == nil {
						return ""
					}
					q.Charge(it, work, 2, now)
					return it.Value
				})
			}
		}
		for _, it := range extra {
			with.Remove(it)
		}
		both(func(q *queue.Queue[string]) string { return fmt.Sprint(drain(q, time.Second, 1)) })
	})
}

// BenchmarkQueue adds and takes an item while many wait.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			q := newQueue(nil)
			rnd := rand.New(rand.NewPCG(1, 2))
			now := int64(0)
			add := func() {
				now += int64(time.Millisecond)
				q.Add(&item{Tenant: fmt.Sprint(rnd.IntN(20)), Session: fmt.Sprint(rnd.IntN(n / 4)), Arrival: now, Due: now - int64(rnd.IntN(3))*10*second, Expires: now + int64(rnd.IntN(100))*second})
			}
			for range n {
				add()
			}
			b.ReportAllocs()
			for b.Loop() {
				add()
				q.Charge(q.Next(), time.Second, 16, now)
			}
		})
	}
}
