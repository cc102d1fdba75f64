// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bench

import (
	"errors"
	"time"
)

var began = time.Now()

// cpuTime returns wall-clock time, for systems on which CPU time is not available or too coarse.
func cpuTime() time.Duration { return time.Since(began) }

func threadTime() time.Duration { return cpuTime() }

func cpuTimeOf(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
