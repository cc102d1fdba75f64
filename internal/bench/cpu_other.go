// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bench

import "time"

var began = time.Now()

// cpuTime stands in for the CPU time of this process where it cannot be had finely enough: it is the time on the clock.
func cpuTime() time.Duration { return time.Since(began) }

func threadTime() time.Duration { return cpuTime() }
