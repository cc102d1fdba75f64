// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// fewMerges returns a model with the vocabulary of the small tokenizer, but other ids for most texts.
func fewMerges(t *testing.T) *prompt.Model {
	t.Helper()
	data, err := fs.ReadFile(mini.FS(), "tokenizer.json")
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, json.Unmarshal(data, &file))
	model := file["model"].(object)
	model["merges"] = model["merges"].([]any)[:300]
	data, err = json.Marshal(file)
	require.NoError(t, err)
	m, err := prompt.Load(fstest.MapFS{"tokenizer.json": {Data: data}}, nil)
	require.NoError(t, err)
	return m
}

// TestMemoModels renders each request of a conversation for two models with one turn, and encodes the prompts afterward,
// the last one first. No prompt may have ids of the other model.
func TestMemoModels(t *testing.T) {
	first, err := loadMini()
	require.NoError(t, err)
	second := fewMerges(t)
	memo := prompt.NewMemo(0)
	var list []any
	for i := range 6 {
		list = append(list, object{"role": "user", "content": fmt.Sprint("question ", i, strings.Repeat(" of the next collection", 300))})
		body := (&thread{"chat", object{"model": "m", "messages": list}}).String()
		turn := memo.Turn("", "", "s")
		req, err := turn.Decode(wire.Chat, []byte(body), nil)
		require.NoError(t, err)
		var prompts []*prompt.Prompt
		for _, m := range []*prompt.Model{first, second} {
			p, err := turn.Render(m, req, noon)
			require.NoError(t, err)
			prompts = append(prompts, p)
		}
		ids := [2][]uint32{1: prompts[1].IDs()}
		ids[0] = prompts[0].IDs()
		require.NotEqual(t, ids[0], ids[1])
		for k, m := range []*prompt.Model{first, second} {
			require.Equal(t, m.Tokenizer().AppendEncodeSegments(nil, prompts[k].Segments), ids[k], "request %d, model %d", i, k)
		}
	}
}
