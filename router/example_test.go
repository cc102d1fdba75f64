// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/router"
)

// The program of the README: two requests with one prefix go to one worker, and the second knows why.
func Example() {
	r := router.New(index.New(16, nil), nil)
	for _, name := range []string{"engine-a", "engine-b"} {
		r.AddWorker(router.WorkerInfo{Key: index.Key{Instance: name}})
	}
	prompt := kvhash.NewChain(16, kvhash.Scheme{})
	prompt.Append(make([]uint32, 4000)...)
	for range 2 {
		t, _ := r.Place(&router.Request{Hashes: prompt.Blocks(), Tokens: prompt.Len()}, time.Now())
		fmt.Println(t.Decision().Why)
		t.Finish(time.Now(), router.Usage{Cached: -1, Output: 100})
	}
	// Output:
	// engine-a: 57.1 ms = new 57.1; 0 of 4000 tokens cached (estimate, unknown), equal on 2 workers
	// engine-a: 0.0 ms = new 0.0; 3999 of 4000 tokens cached (estimate, unknown, 3999 of them predicted); next engine-b 85.7 ms
}
