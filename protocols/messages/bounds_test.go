// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

// TestEncodeMergesToolMessages encodes consecutive tool messages as one user message. Twice the messages may take about twice the
// memory.
func TestEncodeMergesToolMessages(t *testing.T) {
	spent := func(n int) uint64 {
		r, err := chat.Decode([]byte(`{"messages":[{"role":"user","content":"q"}`+
			strings.Repeat(`,{"role":"tool","tool_call_id":"c","content":"r"}`, n)+`]}`), nil)
		require.NoError(t, err)
		blocks := len(r.Turns())
		var out []byte
		b := allocated(func() { out, _, err = messages.AppendRequest(nil, r, nil) })
		require.NoError(t, err)
		require.Equal(t, n, strings.Count(string(out), `"tool_result"`))
		require.Equal(t, 2, strings.Count(string(out), `"role"`))
		require.Len(t, r.Turns(), blocks)
		for _, turn := range r.Turns() {
			require.Len(t, turn.Blocks, 1)
		}
		return b
	}
	require.Less(t, spent(2000), 3*spent(1000))
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestEmptyNames checks that the strings that Anthropic requires not to be empty are refused with their path if they are.
func TestEmptyNames(t *testing.T) {
	const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]}`
	for _, tt := range []struct{ old, empty, path string }{
		{`"id":"a"`, `"id":""`, "messages[1].content[0].id"},
		{`"name":"f"`, `"name":""`, "messages[1].content[0].name"},
		{`"tool_use_id":"a"`, `"tool_use_id":""`, "messages[2].content[0].tool_use_id"},
	} {
		for _, edited := range []string{strings.Replace(body, tt.old, tt.empty, 1), strings.Replace(body, tt.old, `"other":1`, 1)} {
			_, err := messages.Decode([]byte(edited), nil)
			var e *block.Error
			require.ErrorAs(t, err, &e, edited)
			require.Equal(t, block.WrongType, e.Kind)
			require.Equal(t, tt.path, e.Path)
		}
	}
}
