// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"log/slog"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// newStream returns the stream for the events of an engine. The index ignores blocks of another size than its own,
// which the stream logs once.
func newStream(x *index.Index, id index.WorkerID, e *Engine, log *slog.Logger) *index.Stream {
	done := false
	return x.NewStream(id, &index.StreamOptions{Copies: e.Copies, OnBatch: func(b *kvevent.Batch) {
		for i := 0; i < len(b.Events) && !done; i++ {
			if ev := &b.Events[i]; ev.Kind == kvevent.Stored && ev.Attention == kvevent.FullAttention && ev.BlockSize > 0 {
				if done = true; int(ev.BlockSize) != x.BlockSize() {
					log.Error("the cache events are ignored: the engine's block size differs", "block_size", x.BlockSize(), "engine_block_size", ev.BlockSize)
				}
			}
		}
	}})
}
