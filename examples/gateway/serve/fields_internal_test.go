// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/wire"
)

// TestIgnoreAllocates checks that the search for fields without effect does not allocate in requests that have none.
func TestIgnoreAllocates(t *testing.T) {
	for api, body := range map[*wire.API]string{
		wire.Chat:      `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true},"store":false,"thinking":{"type":"enabled"},"modalities":["text"]}`,
		wire.Responses: `{"model":"m","input":"x","store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"text":{"format":{"type":"text"}}}`,
		wire.Messages:  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},"metadata":{"user_id":"u"}}`,
	} {
		r, err := api.Decode([]byte(body), nil)
		require.NoError(t, err)
		c := tokenBackend{&call{g: &Gateway{}, api: api, req: r}}
		require.Zero(t, testing.AllocsPerRun(100, func() { c.ignore() }), api.String())
		require.Empty(t, c.ignored)
	}
}
