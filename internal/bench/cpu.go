// SPDX-License-Identifier: Apache-2.0

package bench

import "time"

// CPUTime returns the CPU time that this process has used so far, all its threads together. Where the system does not tell
// it finely enough (anything but Linux) it is the time on the clock.
func CPUTime() time.Duration { return cpuTime() }
