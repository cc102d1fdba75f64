// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// Blocks of another size are logged once, because the index ignores them.
func TestBlockSizeDiffers(t *testing.T) {
	for size, want := range map[int32]int{4: 0, 8: 1} {
		var log bytes.Buffer
		x := index.New(4, nil)
		s := newStream(x, &engine{id: x.AddWorker(index.Key{Instance: "e"})}, &Engine{Copies: true}, slog.New(slog.NewTextHandler(&log, nil)))
		for seq := range uint64(3) {
			s.Add(kvevent.Batch{Seq: seq, Events: []kvevent.Event{
				{Kind: kvevent.Removed, BlockHashes: []uint64{7}},
				{Kind: kvevent.Stored, BlockHashes: []uint64{seq}, TokenIDs: make([]uint32, size), BlockSize: size},
			}})
		}
		require.Equal(t, want, strings.Count(log.String(), "engine_block_size=8"), log.String())
	}
}
