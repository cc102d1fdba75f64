// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/policy"
)

// A decision without a router: one worker has most of the prompt and is busy, the other one is idle.
func ExampleKVAware() {
	rates := policy.Rates{Prefill: 0.1} // ms a token
	v := &policy.View{BlockSize: 16, Workers: []policy.Worker{
		{
			Worker: index.Worker{ID: 0, Key: index.Key{Instance: "engine-a"}, State: index.Exact},
			Match:  index.Match{Depth: 100, Tiers: [kvevent.NumTiers]int32{100}},
			Rates:  rates, Load: policy.Load{Wait: 120 * time.Millisecond},
		},
		{Worker: index.Worker{ID: 1, Key: index.Key{Instance: "engine-b"}}, Rates: rates},
	}}
	d, err := policy.KVAware{}.Decide(v, &policy.Request{Tokens: 2000}, nil, time.Unix(0, 0))
	if err != nil {
		panic(err)
	}
	for _, s := range d.Scores {
		fmt.Printf("%s %.0f ms = %v\n", s.Key, s.Cost, s.Terms)
	}
	fmt.Println(d.Why)
	// Output:
	// engine-a 160 ms = wait 120.0 + new 40.0
	// engine-b 280 ms = new 200.0 + move 80.0
	// engine-a: 160.0 ms = wait 120.0 + new 40.0; 1600 of 2000 tokens cached (estimate, exact); next engine-b 280.0 ms
}

// The same request by every policy: engine-a has the prompt and 1,000 blocks of running requests, engine-b is idle.
func ExamplePolicy() {
	v := &policy.View{BlockSize: 16, Workers: []policy.Worker{
		{
			Worker: index.Worker{ID: 0, Key: index.Key{Instance: "engine-a"}, State: index.Exact}, Load: policy.Load{Blocks: 1000},
			Match: index.Match{Depth: 100, Tiers: [kvevent.NumTiers]int32{100}}, Rates: policy.Rates{}.Defaults(),
		},
		{Worker: index.Worker{ID: 1, Key: index.Key{Instance: "engine-b"}}, Rates: policy.Rates{}.Defaults()},
	}, Turn: 1}
	for _, p := range []policy.Policy{policy.KVAware{Beta: 0.01}, policy.LeastLoaded{}, policy.RoundRobin{}} {
		d, err := p.Decide(v, &policy.Request{Tokens: 2000}, nil, time.Unix(0, 0))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(d.Policy, d.Key, d.CachedEstimate, d.State)
	}
	// Output:
	// cost_ms engine-a 1600 exact
	// least_loaded engine-b 0 unknown
	// round_robin engine-b 0 unknown
}
