// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// Without events, two requests with one prefix go to one worker too: the router predicts what it holds.
func Example_prediction() {
	r := router.New(index.New(16, nil), nil)
	for _, name := range []string{"engine-a", "engine-b"} {
		r.AddWorker(index.Key{Instance: name}, policy.Both, nil)
	}
	prompt := kvhash.NewChain(16, kvhash.Scheme{})
	prompt.Append(make([]uint32, 4000)...)
	for range 2 {
		t, _ := r.Offer(&router.Request{Hashes: prompt.Blocks(), Tokens: prompt.Len()}, time.Now())
		fmt.Println(t.Decision().Why())
		t.Finish(time.Now(), -1, 100)
	}
	// Output:
	// engine-a: 57.1 ms = new 57.1; 0 of 4000 tokens cached (estimate, unknown), equal on 2 workers
	// engine-a: 0.2 ms = new 0.2; 3984 of 4000 tokens cached (estimate, unknown, 3984 of them predicted); next engine-b 57.2
}

// preferLocal is a user's policy: the default, with a credit of 100 ms for workers in the same rack.
type preferLocal struct {
	rack string
	policy.Policy
}

func (preferLocal) Name() string { return "prefer_local" }

func (p preferLocal) Terms() []policy.Term {
	return append(slices.Clip(p.Policy.Terms()), policy.Term{Name: "local", Unit: "ms"})
}

func (p preferLocal) Costs(v *policy.View, r *router.Request, out []policy.Terms) {
	p.Policy.Costs(v, r, out)
	for i := range v.Workers {
		if strings.HasPrefix(v.Workers[i].Key.Instance, p.rack) {
			out[i][len(p.Policy.Terms())] = -100
		}
	}
}

func ExampleOptions_policy() {
	now := time.Unix(0, 0)
	r := router.New(nil, &router.Options{Policy: preferLocal{"r2", policy.Default()}})
	for _, name := range []string{"r1-a", "r2-a"} {
		r.AddWorker(index.Key{Instance: name}, policy.Both, nil)
	}
	for range 2 {
		t, _ := r.Offer(&router.Request{Tokens: 20000}, now)
		fmt.Println(t.Decision().Why())
	}
	// Output:
	// r2-a: 185.7 ms = new 285.7 - local 100.0; 0 of 20000 tokens cached (estimate, unknown); next r1-a 285.7
	// r1-a: 285.7 ms = new 285.7; 0 of 20000 tokens cached (estimate, unknown); next r2-a 477.7
}

func ExampleRouter_Explain() {
	r := router.New(nil, nil)
	a, _ := r.AddWorker(index.Key{Instance: "engine-a"}, policy.Both, &router.Engine{Prefill: 0.1})
	r.AddWorker(index.Key{Instance: "engine-b"}, policy.Both, &router.Engine{Prefill: 0.02})
	r.Update(a, time.Now(), func(w *policy.Worker) { w.Down = "draining: rolling update" })

	scores, d, err := r.Explain(&router.Request{Tokens: 1000}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range scores {
		fmt.Println(scores[i].Key, scores[i].String())
	}
	fmt.Printf("%s by %s: %.1f ms to compute\n", d.Key, d.Policy(), d.Term("new"))
	// Output:
	// engine-b 20.0 ms = new 20.0
	// engine-a draining: rolling update
	// engine-b by cost_ms: 20.0 ms to compute
}

func ExampleRouter_Offer_error() {
	r := router.New(nil, nil)
	id, _ := r.AddWorker(index.Key{Instance: "engine-a"}, policy.Both, nil)
	_, err := r.Offer(&router.Request{Tokens: 10, Exclude: []index.WorkerID{id}}, time.Now())
	fmt.Println(errors.Is(err, router.ErrAllBarred))
	fmt.Println(err)
	if e, ok := errors.AsType[*router.Error](err); ok {
		fmt.Println(e.Scores[0].Key, e.Scores[0].Barred)
	}
	// Output:
	// true
	// router: all workers are barred: engine-a excluded by the request
	// engine-a excluded by the request
}

// A prefill worker among others, and what is known about it.
func ExampleRouter_Workers() {
	now := time.Unix(0, 0)
	r := router.New(nil, &router.Options{SessionFor: time.Hour})
	id, _ := r.AddWorker(index.Key{Instance: "prefill-a"}, policy.Prefill, &router.Engine{Prefill: 0.1})
	t, _ := r.Offer(&router.Request{Tokens: 1000, Role: policy.Prefill}, now)
	for _, w := range r.Workers() {
		fmt.Println(w.Key, w.Role, "wait", w.Load.Wait(now), "prefills", w.Load.Prefills)
	}
	t.Cancel(now)
	fmt.Println(r.RemoveWorker(id), len(r.Workers()))
	// Output:
	// prefill-a prefill wait 100ms prefills 1
	// true 0
}

// A queue in virtual time: one worker that takes one request at a time, a tenant with twice the weight of others, and a
// request that is placed when the first one has ended.
func ExampleRouter_Tick() {
	now := time.Unix(0, 0)
	r := router.New(nil, &router.Options{
		MaxQueue: 1, Hold: time.Second,
		Weight: func(tenant string) float64 { return map[string]float64{"gold": 2}[tenant] + 1 },
	})
	id, _ := r.AddWorker(index.Key{Instance: "engine-a"}, policy.Both, &router.Engine{Slots: 1})
	first, _ := r.Offer(&router.Request{Tokens: 1000}, now)
	second, _ := r.Offer(&router.Request{Tokens: 1000, Intent: intent.Intent{Tenant: "gold", Deadline: time.Minute}}, now)
	fmt.Println(first.Decision() != nil, second.Decision() != nil, r.Waiting(), "waiting")

	_, err := r.Offer(&router.Request{Tokens: 1000}, now)
	if e, ok := errors.AsType[*router.Error](err); ok && errors.Is(err, router.ErrQueueFull) {
		fmt.Println(err, "- retry after", e.RetryAfter())
	}
	first.Finish(now, 0, 10)
	placed, _ := r.Tick(now)
	for _, t := range placed {
		if errors.Is(t.Err(), router.ErrDeadline) {
			fmt.Println("too late")
			continue
		}
		fmt.Println(t == second, t.Decision().Key)
		// A proxy may have sent it elsewhere; here it has not.
		fmt.Println(t.Move(&router.Request{Tokens: 1000}, id, now))
	}
	// Output:
	// true false 1 waiting
	// router: too many requests wait: engine-a full: 1 requests - retry after 1s
	// true engine-a
	// <nil>
}

// A request of a batch gives way to one of a higher tier before its first token, and runs after it.
func ExampleTicket_Preemptible() {
	r := router.New(nil, nil)
	if _, err := r.AddWorker(index.Key{Instance: "engine"}, policy.Both, &router.Engine{Slots: 1}); err != nil {
		fmt.Println(err)
	}
	batch := &router.Request{Tokens: 50_000}
	t, err := r.Place(context.Background(), batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background()) // of the request to the engine
	t.Preemptible(cancel)

	urgent, err := r.Offer(&router.Request{Tokens: 100, Intent: intent.Intent{Tier: 1}}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	<-ctx.Done() // so that the request to the engine fails
	if err := t.Requeue(batch, time.Now()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("urgent:", urgent.Decision().Key)
	urgent.Finish(time.Now(), 0, 10)
	if err := t.Wait(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("batch:", t.Decision().Key)
	t.Finish(time.Now(), 0, 500)
	// Output:
	// urgent: engine
	// batch: engine
}
