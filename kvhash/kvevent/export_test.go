// SPDX-License-Identifier: Apache-2.0

package kvevent

// Tally holds the counters of a decoder.
type Tally = tally

// Tally returns what was counted so far.
func (d *Decoder) Tally() Tally { return d.counts }

// Limit sets limits that are not 0.
func (d *Decoder) Limit(events, blocks, tokens int) *Decoder {
	for _, l := range []struct {
		to *int
		n  int
	}{{&d.maxEvents, events}, {&d.maxBlocks, blocks}, {&d.maxTokens, tokens}} {
		if l.n > 0 {
			*l.to = l.n
		}
	}
	return d
}
