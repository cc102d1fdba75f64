// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// Stats holds counters of a [Cache] since it was made.
type Stats struct {
	Tokens    uint64 // of all texts
	HitTokens uint64 // of the cached prefixes of these texts
}

type counters struct {
	tokens, hitTokens atomic.Uint64
}

// Stats returns the counters. They are not read at one instant, so concurrent calls may be counted in only some of
// them.
func (c *Cache) Stats() Stats {
	return Stats{Tokens: c.stats.tokens.Load(), HitTokens: c.stats.hitTokens.Load()}
}
