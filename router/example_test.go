// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
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
		t, _ := r.Place(&router.Request{Hashes: prompt.Blocks(), Tokens: prompt.Len()}, time.Now())
		fmt.Println(t.Decision().Why())
		t.Finish(time.Now(), -1, 100)
	}
	// Output:
	// engine-a: 57.1 ms = new 57.1; 0 of 4000 tokens cached (estimate, unknown), equal on 2 workers
	// engine-a: 0.0 ms = new 0.0; 3999 of 4000 tokens cached (estimate, unknown, 3999 of them predicted); next engine-b 57.2
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
		t, _ := r.Place(&router.Request{Tokens: 20000}, now)
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
	r.SetHealth(a, policy.Draining, "rolling update")

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
	// engine-a draining: rolling update
	// engine-b 20.0 ms = new 20.0
	// engine-b by cost_ms: 20.0 ms to compute
}

func ExampleRouter_Place_error() {
	r := router.New(nil, nil)
	id, _ := r.AddWorker(index.Key{Instance: "engine-a"}, policy.Both, nil)
	_, err := r.Place(&router.Request{Tokens: 10, Exclude: []index.WorkerID{id}}, time.Now())
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
	r := router.New(nil, &router.Options{SessionFor: time.Hour, MaxSessions: 1000})
	id, _ := r.AddWorker(index.Key{Instance: "prefill-a"}, policy.Prefill, &router.Engine{Prefill: 0.1})
	t, _ := r.Place(&router.Request{Tokens: 1000, Role: policy.Prefill}, now)
	for _, w := range r.Workers(now) {
		fmt.Println(w.Key, w.Role, w.Health, "wait", w.Load.Wait, "prefills", w.Load.Prefills)
	}
	t.Cancel(now)
	s, _ := r.Stats(id)
	fmt.Println(s.Placed, "placed,", s.Finished, "finished,", s.Failed, "failed,", s.Canceled, "canceled")
	fmt.Println(r.RemoveWorker(id), len(r.Workers(now)))
	// Output:
	// prefill-a prefill healthy wait 100ms prefills 1
	// 1 placed, 0 finished, 0 failed, 1 canceled
	// true 0
}
