// SPDX-License-Identifier: Apache-2.0

package cache

// Bytes returns the memory of what is cached, with overhead.
func (c *Cache) Bytes() int64 { return int64(c.policy.WeightedSize()) }

// Evicted returns the number of nodes that were made and are not cached.
func (c *Cache) Evicted() int { return int(c.keys.Load()) - c.policy.EstimatedSize() }
