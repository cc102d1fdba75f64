// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// TestMemoryIsLinear renders and encodes bodies in which one element occurs many times: twice the elements may take about twice
// the memory, and the length of the output is bounded by the length of the input.
func TestMemoryIsLinear(t *testing.T) {
	result := func(content string) string {
		return `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},` +
			`{"role":"user","content":[` + content + `]}]}`
	}
	render := func(opt *chat.RenderOptions) func(*block.Request) int {
		return func(r *block.Request) int {
			out, _ := chat.AppendMessages(nil, r, opt)
			return len(out)
		}
	}
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	tests := []struct {
		name   string
		decode decodeFunc
		body   func(n int) string
		do     func(*block.Request) int
	}{
		{"reminders after a result", messages.Decode, func(n int) string {
			return result(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}` +
				many(`,{"type":"text","text":"<system-reminder></system-reminder>"}`, n))
		}, render(nil)},
		{"references to one tool", messages.Decode, func(n int) string {
			return `{"tools":[{"name":"d","defer_loading":true,"input_schema":{"x":"` + strings.Repeat("x", 10_000) + `"}}],` +
				result(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}` +
					many(`,{"type":"tool_reference","tool_name":"d"}`, n) + `]}`)[1:]
		}, render(nil)},
		{"reasoning", messages.Decode, func(n int) string {
			return `{"messages":[{"role":"assistant","content":[{"type":"text","text":"x"}` + many(`,{"type":"thinking","thinking":"some reasoning"}`, n) + `]}]}`
		}, render(&chat.RenderOptions{ReasoningSegments: true})},
		{"allowed tools", responses.Decode, func(n int) string {
			return `{"input":"x","tools":[{"type":"custom","name":"c"}],"tool_choice":{"type":"allowed_tools","tools":[{"name":"c"}` + many(`,{"name":"a"}`, n) + `]}}`
		}, func(r *block.Request) int {
			out, _, err := chat.AppendRequest(nil, r, nil)
			require.NoError(t, err)
			require.Contains(t, string(out), `[{"type":"custom","custom":{"name":"c"}},{"type":"function","function":{"name":"a"}}`)
			return len(out)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spent := func(n int) uint64 {
				body := tt.body(n)
				r, err := tt.decode([]byte(body), nil)
				require.NoError(t, err)
				r.Turns() // derives the values that are computed on demand
				size := 0
				b := allocated(func() { size = tt.do(r) })
				require.Less(t, size, 5*len(body))
				return b
			}
			spent(10)
			require.Less(t, spent(4000), 3*spent(2000))
		})
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
