// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"time"
)

// A clock measures modeled time, which is faster than real time. The demo prints only modeled times.
type clock struct {
	speed float64 // modeled time per real time; +Inf does not wait
}

// since returns the modeled time since t.
func (c clock) since(t time.Time) time.Duration {
	if math.IsInf(c.speed, 1) {
		return 0
	}
	return time.Duration(float64(time.Since(t)) * c.speed)
}

// sleep waits for a modeled time d, or until ctx ends.
func (c clock) sleep(ctx context.Context, d time.Duration) {
	if math.IsInf(c.speed, 1) {
		return
	}
	t := time.NewTimer(time.Duration(float64(d) / c.speed))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
