// SPDX-License-Identifier: Apache-2.0

package serve

import "time"

// trimInterval is the time after which memory that was not used is released, at the latest after twice that time. The next
// request of such a conversation takes a few milliseconds more: it is rendered and encoded as a whole, from text.
const trimInterval = 2 * time.Minute

// trim releases the memory of conversations that are not used, until the gateway drains: then another one may use the
// models. The Go runtime returns it to the system with its next collections.
func (g *Gateway) trim() {
	tick := time.NewTicker(trimInterval)
	defer tick.Stop()
	for {
		select {
		case <-g.leaving:
			return
		case now := <-tick.C:
			g.memo.Trim()
			g.histories.trim(now)
			for _, d := range g.deployments {
				if !d.managed() {
					d.families.model.Cache().Trim()
				}
				d.fleet.closeIdle(g.ctx, now.Add(-historyFor))
				for d.fleet.router.Index().Expire(now) { // otherwise only done for requests
				}
			}
		}
	}
}
