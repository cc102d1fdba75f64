// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of this process, of all its threads.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic("bench: " + err.Error())
	}
	return time.Duration(t.Nano())
}
