// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/policy"
)

// The costs of a request without a router: engine-a has most of the prompt and is busy, engine-b is idle.
func ExamplePolicy() {
	engine := policy.Engine{Prefill: 0.1} // ms a token
	now := time.Now()
	v := &policy.View{Now: now, BlockSize: 16, Busy: 0.5, Session: -1, Workers: []policy.Worker{
		{ID: 0, Key: index.Key{Instance: "engine-a"}, Engine: engine, Load: policy.Load{Prefills: 1, Free: now.Add(120 * time.Millisecond), Blocks: 1000}},
		{ID: 1, Key: index.Key{Instance: "engine-b"}, Engine: engine},
	}, Matches: []index.Match{{Depth: 100, Tiers: [kvevent.NumTiers]int32{100}, State: index.Exact}, {}}}
	for _, name := range []string{"cost_ms", "least_loaded", "llm_d"} {
		p, err := policy.Named(name)
		if err != nil {
			panic(err)
		}
		out := make([]policy.Terms, len(v.Workers))
		p.Costs(v, &policy.Request{Tokens: 2000}, out)
		for i := range v.Workers {
			fmt.Printf("%s %s %.1f:", name, v.Workers[i].Key, out[i].Sum())
			for k, t := range p.Terms() {
				fmt.Printf(" %s %.1f %s", t.Name, out[i][k], t.Unit)
			}
			fmt.Println()
		}
	}
	// Output:
	// cost_ms engine-a 165.0: wait 120.0 ms new 40.0 ms load 0.0 ms move 0.0 ms decode 5.0 ms room 0.0 ms
	// cost_ms engine-b 360.0: wait 0.0 ms new 200.0 ms load 0.0 ms move 160.0 ms decode 0.0 ms room 0.0 ms
	// least_loaded engine-a 125.0: wait 120.0 ms decode 5.0 ms
	// least_loaded engine-b 0.0: wait 0.0 ms decode 0.0 ms
	// llm_d engine-a 0.4: prefix -1.6 score queue 1.0 score kv 1.0 score
	// llm_d engine-b 0.0: prefix 0.0 score queue 0.0 score kv 0.0 score
}
