// SPDX-License-Identifier: Apache-2.0

package cache

import "sync/atomic"

// Stats counts what a [Cache] did since it was made, and says what it holds.
type Stats struct {
	Lookups    uint64 // texts encoded
	Hits       uint64 // of these, texts with a known prefix
	Bytes      uint64 // of all texts
	HitBytes   uint64 // of the known prefixes
	Tokens     uint64 // of all texts
	HitTokens  uint64 // of the known prefixes
	Waits      uint64 // times a call waited for another one that was encoding the same
	Stored     uint64 // cut points stored
	Evicted    uint64 // cut points and namespaces dropped, also those below one that was evicted
	Cuts       int    // cut points and namespaces held
	SizeBytes  int64  // what they take, with overhead
	LimitBytes int64
}

type counters struct {
	lookups, hits, bytes, hitBytes, tokens, hitTokens, waits, stored, evicted atomic.Uint64
}

func (s *counters) lookup(n *node, left int) {
	s.lookups.Add(1)
	s.bytes.Add(uint64(n.bytes + left))
	if n.parent != nil {
		s.hits.Add(1)
		s.hitBytes.Add(uint64(n.bytes))
		s.hitTokens.Add(uint64(n.tokens))
	}
}

// Stats returns the counters. They are read one after the other, so they may not agree to the last call.
func (c *Cache) Stats() Stats {
	s := &c.stats
	return Stats{
		Lookups: s.lookups.Load(), Hits: s.hits.Load(),
		Bytes: s.bytes.Load(), HitBytes: s.hitBytes.Load(),
		Tokens: s.tokens.Load(), HitTokens: s.hitTokens.Load(),
		Waits: s.waits.Load(), Stored: s.stored.Load(), Evicted: s.evicted.Load(),
		Cuts: c.policy.EstimatedSize(), SizeBytes: int64(c.policy.WeightedSize()), LimitBytes: c.max,
	}
}
