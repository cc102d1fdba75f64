// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// An error for stop sequences names the field of the API.
func TestStopErrorNamesTheField(t *testing.T) {
	m := constrained(t, "qwen3")
	for field, api := range map[string]*wire.API{"stop": wire.Chat, "stop_sequences": wire.Messages} {
		req, err := api.Decode([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}],"`+field+`":[""]}`), nil)
		require.NoError(t, err)
		p, err := m.Render(req, noon)
		require.NoError(t, err)
		_, err = m.NewDecoder(req, p, nil)
		e, ok := errors.AsType[*apierr.Error](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, field, e.Param)
	}
}

// TestEngineStopsInOutput checks that an engine that stops at the client's strings learns whether they belong to the output.
func TestEngineStopsInOutput(t *testing.T) {
	m, err := prompt.Load(mini.FS(), &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	for field, want := range map[string]string{`,"include_stop_str_in_output":true`: "true", `,"include_stop_str_in_output":false`: "", "": ""} {
		req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"stop":["end"]`+field+`}`), nil)
		require.NoError(t, err)
		p, err := m.Render(req, noon)
		require.NoError(t, err)
		dec, err := m.NewDecoder(req, p, &prompt.DecoderOptions{EngineStops: true})
		require.NoError(t, err)
		var body map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(dec.AppendRequest(nil, "m"), &body))
		require.Equal(t, `["end"]`, string(body["stop"]))
		require.Equal(t, want, string(body["include_stop_str_in_output"]))
	}
}

// TestStopsOfFamilies checks that generation ends at the tokens that end a family's turn, not at those around its text.
func TestStopsOfFamilies(t *testing.T) {
	for _, tt := range []struct{ family, inside, end string }{
		{"cohere", "<|START_RESPONSE|>", "<|END_OF_TURN_TOKEN|>"},
		{"ernie45", "<response>", "</s>"},
		{"hunyuan_a13b", "<answer>", ""},
		{"gemma4", "<|channel>", "<turn|>"},
	} {
		t.Run(tt.family, func(t *testing.T) {
			data, err := fs.ReadFile(mini.FS(), "tokenizer.json")
			require.NoError(t, err)
			var file map[string]any
			require.NoError(t, json.Unmarshal(data, &file))
			added, _ := file["added_tokens"].([]any)
			const first = 100_000
			for i, token := range []string{tt.inside, tt.end} {
				if token != "" {
					added = append(added, object{"id": first + i, "content": token, "special": true, "normalized": false, "lstrip": false, "rstrip": false, "single_word": false})
				}
			}
			file["added_tokens"] = added
			data, err = json.Marshal(file)
			require.NoError(t, err)
			m, err := prompt.Load(fstest.MapFS{"tokenizer.json": {Data: data}}, &prompt.Options{Family: tt.family})
			require.NoError(t, err)
			inside, ok := m.Tokenizer().TokenID(tt.inside)
			require.True(t, ok && m.Tokenizer().IsSpecial(inside))
			require.NotContains(t, m.StopTokens(), inside)
			if tt.end != "" {
				end, ok := m.Tokenizer().TokenID(tt.end)
				require.True(t, ok)
				require.Contains(t, m.StopTokens(), end)
			}
		})
	}
}
