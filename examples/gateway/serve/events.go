// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"log/slog"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// newStream returns the stream for the events of an engine. The index ignores blocks of another size than its own,
// which the stream logs once. An engine that cleared its cache is checked before it gets requests.
func newStream(x *index.Index, en *engine, e *Engine, log *slog.Logger) *index.Stream {
	done := false
	return x.NewStream(en.id, &index.StreamOptions{Copies: e.Copies, OnBatch: func(b *kvevent.Batch) {
		for i := range b.Events {
			ev := &b.Events[i]
			if ev.Kind == kvevent.Cleared {
				en.doubts.Add(1)
			}
			if !done && ev.Kind == kvevent.Stored && ev.Attention == kvevent.FullAttention && ev.BlockSize > 0 {
				if done = true; int(ev.BlockSize) != x.BlockSize() {
					log.Error("the cache events are ignored: the engine's block size differs", "block_size", x.BlockSize(), "engine_block_size", ev.BlockSize)
				}
			}
		}
	}})
}
