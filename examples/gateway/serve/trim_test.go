// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/wire"
)

// TestTrim checks that the memory of a conversation that is not used is released within four minutes, the router's
// expectations of the engines' caches when they end, although no further request arrives, and later what remains of the session.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(string, *http.Request) (*http.Response, error) { return answerOf(200, whole), nil }}
		model := hermesModel()
		var last serve.Record
		g := stubbed(t, 1, s, func(o *serve.Options) {
			o.Prompts, o.Engines[0].Kind, o.OnDone = model, upstream.VLLM{}, func(r serve.Record) { last = r }
		})
		defer g.Close()
		body, err := json.Marshal(apiCases[0].body("go", true))
		require.NoError(t, err)
		req, err := wire.Chat.Decode(body, nil)
		require.NoError(t, err)
		p, err := model.Render(req, time.Now())
		require.NoError(t, err)

		for i := range 4 {
			require.Equal(t, 200, ask(t, g, apiCases[0], true, "X-Session-Id", "s").Code)
			require.Equal(t, i > 0, last.Prefix.Known)
			time.Sleep(100 * time.Second)
			bytes, blocks := g.Kept()
			require.Positive(t, bytes)
			require.Positive(t, blocks)
		}
		time.Sleep(160 * time.Second)
		bytes, blocks := g.Kept()
		require.Zero(t, bytes)
		require.Positive(t, blocks)
		require.Empty(t, model.Cache().AppendPrefixes(nil, "", p.Segments))
		time.Sleep(5 * time.Minute)
		_, blocks = g.Kept()
		require.Zero(t, blocks)
		require.Equal(t, 200, ask(t, g, apiCases[0], true, "X-Session-Id", "s").Code)
		require.True(t, last.Prefix.Known)
		time.Sleep(12 * time.Minute)
		require.Equal(t, 200, ask(t, g, apiCases[0], true, "X-Session-Id", "s").Code)
		require.False(t, last.Prefix.Known)
	})
}
