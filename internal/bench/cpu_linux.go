// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of this process, of all its threads.
func cpuTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic("bench: " + err.Error())
	}
	return time.Duration(t.Nano())
}
