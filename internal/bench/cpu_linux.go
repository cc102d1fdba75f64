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

// cpuTimeOf returns the CPU time of a process. Its clock is the complement of its id, shifted over the kind of the clock: 2, which
// counts the time that the scheduler gave to all threads.
func cpuTimeOf(pid int) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|2), &t)
	return time.Duration(t.Nano()), err
}

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic("bench: " + err.Error())
	}
	return time.Duration(t.Nano())
}
