// SPDX-License-Identifier: Apache-2.0

package bench

import "time"

// CPUTime returns the CPU time that this process has used so far, all its threads together. Where the system does not tell
// it finely enough (anything but Linux) it is the time on the clock.
func CPUTime() time.Duration { return cpuTime() }

// CPUTimeOf returns the CPU time that a process has used so far, all its threads together. Where the system cannot tell it, it
// returns an error; [errors.ErrUnsupported] anywhere but on Linux.
func CPUTimeOf(pid int) (time.Duration, error) { return cpuTimeOf(pid) }

// ThreadTime returns the CPU time that the calling thread has used so far: a goroutine that asks twice locks itself to its thread.
// Where [CPUTime] is the time on the clock, so is this.
func ThreadTime() time.Duration { return threadTime() }
