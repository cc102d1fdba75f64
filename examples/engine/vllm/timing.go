// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"context"
	"math"
	"time"
)

// Timing specifies how long the work of a model takes. All durations are modeled time.
type Timing struct {
	Base             time.Duration // per request, before the prefill; 0 means none
	PrefillPerSecond float64       // uncached prompt tokens per second; 0 means 8000
	DecodePerToken   time.Duration // 0 means 20 ms
}

func (t Timing) withDefaults() Timing {
	if t.PrefillPerSecond <= 0 {
		t.PrefillPerSecond = 8000
	}
	if t.DecodePerToken <= 0 {
		t.DecodePerToken = 20 * time.Millisecond
	}
	return t
}

// Prefill returns the modeled time from the start of the prefill to the first token for a prompt of which uncached
// tokens must be computed.
func (t Timing) Prefill(uncached int) time.Duration {
	t = t.withDefaults()
	return t.Base + time.Duration(float64(uncached)/t.PrefillPerSecond*float64(time.Second))
}

// Decode returns the modeled time of n output tokens.
func (t Timing) Decode(n int) time.Duration {
	return time.Duration(n) * t.withDefaults().DecodePerToken
}

// A pace waits for modeled time. It keeps the schedule rather than single steps: it compensates for late wake-ups.
type pace struct {
	speed   float64
	start   time.Time
	elapsed time.Duration // modeled
}

func newPace(speed float64) *pace { return &pace{speed: speed, start: time.Now()} }

// onWall returns the real time for a modeled time d.
func onWall(d time.Duration, speed float64) time.Duration {
	if math.IsInf(speed, 1) {
		return 0
	}
	return time.Duration(float64(d) / speed)
}

// modeled returns the modeled time for a real time d.
func modeled(d time.Duration, speed float64) time.Duration {
	if math.IsInf(speed, 1) {
		return 0
	}
	return time.Duration(float64(d) * speed)
}

// wait waits for a modeled time d, or returns the cause if ctx ends first.
func (p *pace) wait(ctx context.Context, d time.Duration) error {
	p.elapsed += d
	left := time.Until(p.start.Add(onWall(p.elapsed, p.speed)))
	if left <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
