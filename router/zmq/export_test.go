// SPDX-License-Identifier: Apache-2.0

package zmq

import "time"

// Fast shortens the times of a subscription.
func Fast(c *config) {
	c.times = times{
		heartbeat: 50 * time.Millisecond, timeout: 2 * time.Second, check: 30 * time.Millisecond, first: 10 * time.Millisecond,
		minPause: 5 * time.Millisecond, maxPause: 20 * time.Millisecond, patience: 200 * time.Millisecond,
	}
}
