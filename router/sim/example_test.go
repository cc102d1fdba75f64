// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/router/sim"
)

// Compare two policies on chats with 50 system prompts.
func ExampleRun() {
	var results []*sim.Result
	for _, name := range []string{"cost_ms", "round_robin"} {
		p, err := policy.Named(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := sim.Run(&sim.Options{Policy: p, Workload: "chat", Workers: 4, Load: 0.5, Duration: 2 * time.Minute, Seed: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		results = append(results, r)
	}
	a, b := results[0], results[1]
	fmt.Println("hundreds of requests:", a.Requests() > 100 && b.Requests() > 100)
	fmt.Println("more cached:", a.Hit() > b.Hit())
	fmt.Println("mean and 90th percentile of the time to first token are lower:", a.Mean() < b.Mean(), a.Percentile(90) < b.Percentile(90))
	// Output:
	// hundreds of requests: true
	// more cached: true
	// mean and 90th percentile of the time to first token are lower: true true
}
