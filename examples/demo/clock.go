// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"time"
)

// A clock runs faster than the real one: all times that the demo prints are the model's, not the wall's.
type clock struct {
	speed float64 // modelled time per real time; +Inf does not wait
}

// since returns the modelled time that has passed since t.
func (c clock) since(t time.Time) time.Duration {
	if math.IsInf(c.speed, 1) {
		return 0
	}
	return time.Duration(float64(time.Since(t)) * c.speed)
}

// sleep lets d of modelled time pass, or less if ctx ends.
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
