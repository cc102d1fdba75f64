// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
)

// TestDeleteReasoning checks that nothing of reasoning with details is left with its last run: some servers refuse the fields.
func TestDeleteReasoning(t *testing.T) {
	r, err := chat.Decode([]byte(`{"model":"m","messages":[{"role":"assistant","reasoning_content":"a\nb","content":"x",`+
		`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":"s"},{"type":"reasoning.text","index":1,"text":"b","signature":"t"}]}]}`), nil)
	require.NoError(t, err)
	want := []string{
		`{"model":"m","messages":[{"role":"assistant","reasoning_content":"b","content":"x","reasoning_details":[{"type":"reasoning.text","index":1,"text":"b","signature":"t"}]}]}`,
		`{"model":"m","messages":[{"role":"assistant","content":"x"}]}`,
	}
	for _, b := range r.Turns()[0].Blocks {
		if b.Kind != block.Reasoning {
			continue
		}
		require.NoError(t, r.Delete(b.At))
		body, err := r.AppendBody(nil)
		require.NoError(t, err)
		require.Equal(t, want[0], string(body))
		want = want[1:]
	}
	require.Empty(t, want)
}
