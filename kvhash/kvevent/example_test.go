// SPDX-License-Identifier: Apache-2.0

package kvevent_test

import (
	"fmt"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// A batch is lost: what follows is held until a replay brings it.
func ExampleIngest() {
	var in kvevent.Ingest
	var ready []kvevent.Batch
	for _, seq := range []uint64{0, 1, 3} {
		ready = in.Push(ready, kvevent.Batch{Seq: seq})
	}
	fmt.Println(len(ready), "ready,", in.Need().Kind == kvevent.ReplayFrom, in.Need().Seq)
	ready = in.Replay(ready, kvevent.Batch{Seq: 2})
	in.ReplayDone()
	fmt.Println(len(ready), "ready, last", ready[3].Seq)
	// Output:
	// 2 ready, true 2
	// 4 ready, last 3
}
