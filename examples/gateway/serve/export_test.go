// SPDX-License-Identifier: Apache-2.0

package serve

// Kept returns the memory that the conversations of the gateway take, in bytes, and the blocks that the router expects on engines.
func (g *Gateway) Kept() (bytes, blocks int) {
	_, bytes = g.memo.Len()
	for _, d := range g.deployments {
		for _, w := range d.fleet.router.Index().AppendWorkers(nil) {
			blocks += w.Blocks
		}
	}
	return bytes, blocks
}
