// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// pairs returns a router over two prefill and two decode workers, and workers for both.
func pairs(t testing.TB, both, slots int, o *router.Options) *router.Router {
	r := fleet(t, 0, o)
	add := func(name string, role policy.Role) {
		e := router.Engine{Prefill: 1, Slots: slots}
		e.Load[3] = 0.1
		_, err := r.AddWorker(index.Key{Instance: name}, role, &e)
		require.NoError(t, err)
	}
	add("prefill-a", policy.Prefill)
	add("prefill-b", policy.Prefill)
	add("decode-a", policy.Decode)
	add("decode-b", policy.Decode)
	for range both {
		add("both", policy.Both)
	}
	return r
}

func split(n int) *router.Request {
	r := request(prompt('x', n))
	r.Role = policy.Split
	return r
}

// A pair is one decision: the response goes where most of the KV data is, the transfer is a part of its cost, and both workers have
// the request in their loads until their part ends.
// A worker cannot get the role of a request.
func TestUpdateRole(t *testing.T) {
	r := router.New(index.New(block, nil), nil)
	id, err := r.AddWorker(index.Key{}, policy.Prefill, nil)
	require.NoError(t, err)
	adapters := []string{"a"}
	require.True(t, r.Update(id, start, func(w *policy.Worker) { w.Role, w.Adapters = policy.Split, adapters }))
	adapters[0] = "b" // the router keeps its own list
	require.Equal(t, policy.Prefill, r.Workers()[0].Role)
	require.Equal(t, []string{"a"}, r.Workers()[0].Adapters)
	require.True(t, r.Update(id, start, func(w *policy.Worker) { w.Role = policy.Both }))
	require.Equal(t, policy.Both, r.Workers()[0].Role)
}

func TestSplit(t *testing.T) {
	r := pairs(t, 0, 0, nil)
	_, err := r.AddWorker(index.Key{Instance: "z"}, policy.Split, nil)
	require.EqualError(t, err, "router: add worker z: a worker cannot have the role split")
	_, err = r.AddWorker(index.Key{Instance: "z"}, policy.Role(9), nil)
	require.EqualError(t, err, "router: add worker z: unknown role 9")
	req := split(1000)
	req.Intent.ExpectedOutput = 500
	tk := place(t, r, req, start)
	p, d := tk.Prefill(), tk.Decision()
	require.Equal(t, "prefill-a", p.Key.Instance)
	require.Equal(t, "decode-a", d.Key.Instance)
	require.InDelta(t, 100, d.Term("load"), 1e-9, d.Why())
	l := loads(r, start)
	require.Equal(t, policy.Load{Prefills: 1, Tokens: 1000, Blocks: 100, Pending: time.Second}, l[0])
	require.Equal(t, policy.Load{Prefills: 1, Blocks: 150, Pending: 100 * time.Millisecond}, l[2])
	require.Zero(t, l[1])
	require.Zero(t, l[3])
	require.ErrorContains(t, tk.Move(req, 1, start), "has a pair of workers")

	now := start.Add(time.Second)
	tk.Prefilled(now, 0)
	tk.Prefilled(now, 0)
	l = loads(r, now)
	require.Zero(t, l[0])
	require.Equal(t, 1, l[2].Prefills)
	tk.FirstToken(now)
	require.Equal(t, 1, loads(r, now)[2].Decodes)
	tk.Finish(now, -1, 500)
	require.Equal(t, make([]policy.Load, 4), loads(r, now))

	// The next request of the conversation finds the prompt on both, and only the rest is transferred.
	next := place(t, r, split(1200), now)
	require.Equal(t, "prefill-a", next.Prefill().Key.Instance)
	require.Equal(t, "decode-a", next.Decision().Key.Instance)
	require.InDelta(t, 20, next.Decision().Term("load"), 1e-9, next.Decision().Why())
	require.Equal(t, 1000, next.Prefill().CachedEstimate)
	next.FirstToken(now) // without Prefilled
	require.Zero(t, loads(r, now)[0])
	next.Cancel(now)
	require.Equal(t, make([]policy.Load, 4), loads(r, now))
}

// One worker for both is chosen if it costs less: it needs no transfer.
func TestSplitOrBoth(t *testing.T) {
	r := pairs(t, 1, 0, nil)
	a := place(t, r, split(1000), start)
	require.Equal(t, "both", a.Decision().Key.Instance)
	require.Nil(t, a.Prefill())
	b := place(t, r, &router.Request{Tokens: 1000, Role: policy.Split}, start)
	require.NotNil(t, b.Prefill(), "the other one waits")
	require.Equal(t, "decode-a", b.Decision().Key.Instance)
}

// Explain has the costs of the workers for the response, and the decision of Offer, also where it is one worker.
func TestExplainSplit(t *testing.T) {
	for both := range 2 {
		r := pairs(t, both, 0, nil)
		req := split(1000)
		scores, d, err := r.Explain(req, start)
		require.NoError(t, err)
		tk := place(t, r, req, start)
		require.Equal(t, both == 0, tk.Prefill() != nil)
		require.Equal(t, tk.Decision().Why(), d.Why())
		require.Empty(t, d.Barred)
		require.Equal(t, d.Score, scores[0])
		for _, s := range scores {
			require.Equal(t, s.Key.Instance[:4] == "pref" || both == 1 && s.Key.Instance != "both", s.Barred != "", s.Key)
		}
	}
}

// A request waits until there is room for both parts; whatever happens, nothing remains when all tickets have ended.
func TestSplitAccount(t *testing.T) {
	r := pairs(t, 0, 1, nil)
	var tickets []*router.Ticket
	for range 3 {
		tickets = append(tickets, place(t, r, split(100), start))
	}
	require.Nil(t, tickets[2].Decision())
	tickets[0].Prefilled(start, 0)
	require.Nil(t, tickets[2].Decision(), "the decode workers are full")
	tickets[1].Finish(start, 0, 1)
	require.Equal(t, "decode-b", tickets[2].Decision().Key.Instance)

	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				r := pairs(t, rapid.IntRange(0, 1).Draw(rt, "both"), rapid.IntRange(0, 2).Draw(rt, "slots"), &router.Options{Policy: named(t, name)})
				var tickets []*router.Ticket
				now := start
				for range rapid.IntRange(1, 20).Draw(rt, "steps") {
					now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(rt, "ms")) * time.Millisecond)
					if len(tickets) == 0 || rapid.Bool().Draw(rt, "place") {
						tickets = append(tickets, place(t, r, split(rapid.IntRange(0, 300).Draw(rt, "tokens")), now))
						continue
					}
					tk := rapid.SampledFrom(tickets).Draw(rt, "ticket")
					switch rapid.IntRange(0, 3).Draw(rt, "what") {
					case 0:
						tk.Prefilled(now, 0)
					case 1:
						tk.FirstToken(now)
					case 2:
						tk.Finish(now, -1, 3)
					case 3:
						tk.Cancel(now)
					}
				}
				for _, tk := range tickets {
					tk.Cancel(now)
				}
				require.Equal(t, make([]policy.Load, len(r.Workers())), loads(r, now))
				require.Zero(t, r.Waiting())
			})
		})
	}
}

// A request that was placed on one worker for both remains with one when it is moved, also if a pair now costs less.
func TestSplitMove(t *testing.T) {
	r := pairs(t, 1, 0, nil)
	other, err := r.AddWorker(index.Key{Instance: "other"}, policy.Both, &router.Engine{Prefill: 1})
	require.NoError(t, err)
	tk := place(t, r, split(1000), start)
	require.Equal(t, "both", tk.Decision().Key.Instance)
	for _, name := range []byte("yz") {
		place(t, r, request(prompt(name, 5000)), start)
	}
	require.NotNil(t, place(t, r, split(1000), start).Prefill())
	before := loads(r, start)
	require.NoError(t, tk.Move(split(1000), other, start))
	require.Nil(t, tk.Prefill())
	after := loads(r, start)
	require.Equal(t, before[other].Tokens+1000, after[other].Tokens)
	require.Equal(t, before[0], after[0])
	require.Equal(t, before[1], after[1])
}
