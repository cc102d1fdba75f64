// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

// The Messages API has the efforts low to max, and thinking of type disabled instead of none.
func TestEfforts(t *testing.T) {
	for fields, want := range map[string]struct{ out, loss string }{
		`"reasoning_effort":"none"`:                                 {`"thinking":{"type":"disabled"}`, ""},
		`"reasoning_effort":"none","thinking":{"type":"enabled"}`:   {`"thinking":{"type":"enabled"}`, ""},
		`"reasoning_effort":"minimal"`:                              {`"output_config":{"effort":"low"}`, "the Messages API has no effort minimal; low was set"},
		`"reasoning_effort":"low"`:                                  {`"output_config":{"effort":"low"}`, ""},
		`"reasoning_effort":"max"`:                                  {`"output_config":{"effort":"max"}`, ""},
		`"reasoning_effort":"ultra","thinking":{"type":"adaptive"}`: {`"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`, "the Messages API has no effort ultra; max was set"},
		`"reasoning_effort":"turbo"`:                                {``, "the Messages API has no effort turbo"},
	} {
		req, err := chat.Decode([]byte(`{"model":"m","max_tokens":1,`+fields+`,"messages":[]}`), nil)
		require.NoError(t, err)
		out, losses, err := messages.AppendRequest(nil, req, nil)
		require.NoError(t, err)
		if want.out != "" {
			want.out = "," + want.out
		}
		require.Equal(t, `{"model":"m","max_tokens":1`+want.out+`,"messages":[]}`, string(out), fields)
		var why []string
		for _, l := range losses {
			why = append(why, l.Why)
		}
		require.Equal(t, want.loss, strings.Join(why, "; "), fields)
	}
}
