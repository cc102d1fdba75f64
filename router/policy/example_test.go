// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/load"
	"github.com/weft-go/weft/router/policy"
)

// A decision without a router: one worker has most of the prompt and is busy, the other one is idle.
func ExampleKVAware() {
	rates := policy.Rates{Prefill: 0.1} // ms a token
	v := &policy.View{BlockSize: 16, Workers: []policy.Worker{
		{
			ID: 0, Key: index.Key{Instance: "engine-a"}, Rates: rates, Load: load.Load{Wait: 120 * time.Millisecond},
			Cache: policy.Cache{Depth: 100, Tiers: [kvevent.NumTiers]int{100}, Trust: kvevent.Exact},
		},
		{ID: 1, Key: index.Key{Instance: "engine-b"}, Rates: rates},
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
