// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// api is the decoder and encoder of one API.
type api struct {
	api    block.API
	decode func([]byte, *block.Limits) (*block.Request, error)
	encode func([]byte, *block.Request, *block.EncodeOptions) ([]byte, []block.Loss, error)
}

var apis = []api{
	{block.Chat, chat.Decode, chat.AppendRequest},
	{block.Responses, responses.Decode, responses.AppendRequest},
	{block.Messages, messages.Decode, messages.AppendRequest},
}

func byPath(path string) api {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return apis[0]
	case strings.HasSuffix(path, "/responses"):
		return apis[1]
	}
	return apis[2]
}

// capture is a recorded request of a real harness.
type capture struct {
	name    string
	api     api
	body    []byte
	headers map[string]string
}

// captures returns the recorded requests, or nil if the shared test data is absent.
func captures(t testing.TB) []capture {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(dir, "captures", "*", "*.json"))
	require.NoError(t, err)
	var list []capture
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		var c struct {
			Path    string
			Headers [][2]string
			Body    json.RawMessage
		}
		require.NoError(t, json.Unmarshal(raw, &c))
		var wire bytes.Buffer
		require.NoError(t, json.Compact(&wire, c.Body))
		h := map[string]string{}
		for _, kv := range c.Headers {
			h[strings.ToLower(kv[0])] = kv[1]
		}
		name := filepath.Base(filepath.Dir(f)) + "/" + filepath.Base(f)
		list = append(list, capture{name, byPath(c.Path), wire.Bytes(), h})
	}
	return list
}

// TestCaptures decodes every recorded request, encodes it byte for byte, converts it to the other APIs and back, and
// renders it.
func TestCaptures(t *testing.T) {
	list := captures(t)
	if len(list) == 0 {
		t.Skip("no captures: set WEFT_SHARED to the directory of shared test data")
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.api.decode(bytes.Clone(c.body), nil)
			require.NoError(t, err)
			same, losses, err := c.api.encode(nil, r, nil)
			require.NoError(t, err)
			require.Empty(t, losses)
			require.True(t, bytes.Equal(c.body, same), "re-encoded bytes differ")

			msgs, _ := chat.AppendMessages(nil, r, nil)
			require.True(t, json.Valid(msgs))
			tools, _ := chat.AppendTools(nil, r)
			require.True(t, json.Valid(tools))

			for _, other := range apis {
				if other.api == c.api.api {
					continue
				}
				out, losses, err := other.encode(nil, r, nil)
				require.NoError(t, err)
				t.Log(other.api, losses)
				back, err := other.decode(out, nil)
				require.NoError(t, err)
				again, _ := chat.AppendMessages(nil, back, nil)
				// The Messages API has one system text at the start.
				joined := bytes.ReplaceAll(msgs, []byte(`"},{"role":"system","content":"`), []byte(`\n`))
				if diff := cmp.Diff(string(msgs), string(again)); diff != "" && !bytes.Equal(joined, again) {
					t.Errorf("rendered through %v:\n%s", other.api, diff)
				}
			}
		})
	}
}
