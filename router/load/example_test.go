// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/router/load"
)

func ExampleLedger() {
	var worker load.Ledger
	now := time.Unix(0, 0)
	a := &load.Entry{Prefill: 300 * time.Millisecond, Tokens: 3000, Blocks: 200}
	b := &load.Entry{Prefill: 100 * time.Millisecond, Tokens: 1000, Blocks: 70}
	worker.Reserve(a, now)
	worker.Reserve(b, now)
	fmt.Println("wait", worker.At(now).Wait)

	now = now.Add(250 * time.Millisecond)
	fmt.Println("wait", worker.At(now).Wait)
	worker.FirstToken(a, now) // sooner than estimated
	l := worker.At(now)
	fmt.Println("wait", l.Wait, "decoding", l.Decoding, "blocks", l.Blocks)

	worker.Release(a, now)
	worker.Release(b, now)
	fmt.Println(worker.At(now) == load.Load{})
	// Output:
	// wait 400ms
	// wait 150ms
	// wait 100ms decoding 1 blocks 270
	// true
}
