// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/tokenizers/mini"
)

// TestSlots checks that requests wait for a slot, and that a client that leaves ends the wait.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := make(slots, 1)
		require.NoError(t, s.take(t.Context()))
		left := errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone, next := make(chan error, 1), make(chan error, 1)
		go func() { gone <- s.take(ctx) }()
		go func() { next <- s.take(t.Context()) }()
		synctest.Wait()
		cancel(left)
		require.ErrorIs(t, <-gone, left)
		require.Empty(t, next)
		s.give()
		require.NoError(t, <-next)
		require.ErrorIs(t, s.take(ctx), left, "a place is not given to a client that has left")
		s.give()
	})
}

// TestMeasure compares measure with the tokenizer: no prompt that fits is refused, wherever it is cut, and a prompt of
// more than six bytes per token of the window is only measured until the client leaves.
func TestMeasure(t *testing.T) {
	tok, size := mini.Load(), 300_000
	if testing.Short() {
		size = 60_000
	}
	for _, piece := range []string{"a", "word ", "é", "                ", "return err\n", "{\"k\": [1, 2]}", "日本語", "\U0001F680 go ", "aé "} {
		text := strings.Repeat(piece, size/len(piece))
		n := int64(len(tok.AppendEncode(nil, text)))
		require.NoError(t, measure(t.Context(), tok, text, n), piece)
		if int64(len(text)) > n/2*usualToken {
			err, _ := errors.AsType[*apierr.Error](measure(t.Context(), tok, text, n/2))
			require.NotNil(t, err, piece)
			require.Equal(t, apierr.CodeContextLength, err.Code)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, measure(ctx, tok, strings.Repeat("a", 1000), 100), context.Canceled)
	require.NoError(t, measure(ctx, tok, strings.Repeat("a", 600), 100), "encoded at once")
}

// TestLongestToken checks the bound on which quotas rely.
func TestLongestToken(t *testing.T) {
	tok := mini.Load()
	longest := longestToken(tok)
	for id := range tok.VocabSize() {
		require.LessOrEqual(t, len(tok.AppendDecode(nil, []uint32{uint32(id)}, false)), longest)
	}
	q := newQuota(2, longest)
	require.True(t, q.take(&upstream.Step{IDs: []uint32{1, 2}}))
	require.True(t, q.take(&upstream.Step{IDs: []uint32{3}}), "a stop token")
	last := upstream.Step{IDs: []uint32{4}, Text: []byte("x")}
	require.False(t, q.take(&last))
	require.Empty(t, last.IDs)
	require.Empty(t, last.Text)
}
