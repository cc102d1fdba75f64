// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

func TestSetTools(t *testing.T) {
	const a, b, c = `{ "name":"a", "input_schema":{}, "x":1 }`, `{"name":"b","input_schema":{"type":"object"}}`, `{"type":"bash_20250124", "name":"bash"}`
	body := func(tools ...string) string {
		return `{"max_tokens":1, "tools":[` + strings.Join(tools, ",") + `], "messages":[]}`
	}
	fresh := block.Tool{Name: "n", Schema: []byte(`{}`)}
	const n = `{"name":"n","input_schema":{}}`
	for _, tt := range []struct {
		name string
		to   func(tools []block.Tool) []block.Tool
		want string
	}{
		{"the same", func(l []block.Tool) []block.Tool { return l }, body(a, b, c)},
		{"none", func([]block.Tool) []block.Tool { return nil }, body()},
		{"append", func(l []block.Tool) []block.Tool { return append(l, fresh) }, body(a, b, c, n)},
		{"insert", func(l []block.Tool) []block.Tool { return []block.Tool{fresh, l[0], fresh, l[1], l[2]} }, body(n, a, n, b, c)},
		{"delete", func(l []block.Tool) []block.Tool { return []block.Tool{l[0], l[2]} }, body(a, c)},
		{"move", func(l []block.Tool) []block.Tool { return []block.Tool{l[1], l[2], l[0]} }, body(b, c, a)},
		{"reverse", func(l []block.Tool) []block.Tool { return []block.Tool{l[2], l[1], l[0]} }, body(c, b, a)},
		{"repeat", func(l []block.Tool) []block.Tool { return []block.Tool{l[1], l[1]} }, body(b, b)},
		{"replace", func(l []block.Tool) []block.Tool { return []block.Tool{fresh} }, body(n)},
		{"change", func(l []block.Tool) []block.Tool {
			l = slices.Clone(l)
			l[0].Description = "A."
			return l
		}, body(`{"name":"a","description":"A.","input_schema":{}}`, b, c)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := messages.Decode([]byte(body(a, b, c)), nil)
			require.NoError(t, err)
			require.NoError(t, r.SetTools(tt.to(r.Tools())...))
			require.Equal(t, tt.want, encoded(t, r))
			off, err := messages.Decode([]byte(body(a, b, c)), nil)
			require.NoError(t, err)
			require.NoError(t, off.Detach())
			require.NoError(t, off.SetTools(tt.to(off.Tools())...))
			require.True(t, off.Equal(r), "%s", encoded(t, off))
		})
	}
}

func TestSetToolsIsAllOrNothing(t *testing.T) {
	r, err := chat.Decode([]byte(`{"messages":[],"tools":[{"type":"function","function":{"name":"a"}}]}`), nil)
	require.NoError(t, err)
	require.Error(t, r.SetTools(block.Tool{Name: "b"}, block.Tool{Name: "c", Namespace: "n"}))
	require.Len(t, r.Tools(), 1)
	require.Equal(t, string(r.Body()), encoded(t, r))
}

// The error for invalid JSON of a tool has its position, also in a request without a body.
func TestSetToolsPath(t *testing.T) {
	r := block.NewRequest(block.NewTurn(block.RoleUser, "x"))
	for want, tool := range map[string]block.Tool{
		"tools[1].schema: a name was expected at byte 1":                {Name: "w", Schema: []byte("{bad")},
		"tools[1].schema.properties: unexpected end of JSON at byte 14": {Name: "w", Schema: []byte(`{"properties":`)},
		"tools[1].json: a value was expected at byte 0":                 {Name: "w", Kind: block.Hosted, JSON: []byte("bad")},
	} {
		err := r.SetTools(block.Tool{Name: "v", Schema: []byte("{}")}, tool)
		require.EqualError(t, err, want)
		require.Empty(t, r.Tools())
	}
}

// TestSetToolsInNamespace checks that a namespace keeps its other fields when its first tool is removed.
func TestSetToolsInNamespace(t *testing.T) {
	const a, b = `{"type":"function","name":"a"}`, `{"type":"function","name":"b"}`
	body := func(tools string) string {
		return `{"input":[],"tools":[{"type":"namespace","name":"n","description":"D.","tools":[` + tools + `]}]}`
	}
	for _, detach := range []bool{false, true} {
		r, err := responses.Decode([]byte(body(a+","+b)), nil)
		require.NoError(t, err)
		if detach {
			require.NoError(t, r.Detach())
		}
		require.NoError(t, r.SetTools(r.Tools()[1]))
		require.JSONEq(t, body(b), encoded(t, r))
	}
}

// TestTurnPosition checks that the position of a turn is not that of its only block, which is the same item in the Responses
// API.
func TestTurnPosition(t *testing.T) {
	const body = `{"input":[{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}]}`
	r, err := responses.Decode([]byte(body), nil)
	require.NoError(t, err)
	turn := r.Turns()[0]
	require.NotEqual(t, turn.At, turn.Blocks[0].At)
	off, end := turn.At.Span()
	require.Equal(t, `{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}`, body[off:end])
	require.Error(t, r.Set(turn.At, turn.Blocks[0]))
	require.NoError(t, r.Insert(turn.At, block.Block{Kind: block.ToolCall, CallID: "2", Name: "f", Args: "{}"}))
	require.NoError(t, r.Insert(turn.Blocks[0].At, block.Block{Kind: block.ToolCall, CallID: "0", Name: "f", Args: "{}"}))
	err = r.Delete(turn.At)
	require.ErrorContains(t, err, "read the turns again")
	turn = r.Turns()[0]
	var ids []string
	for _, b := range turn.Blocks {
		ids = append(ids, b.CallID)
	}
	require.Equal(t, []string{"0", "1", "2"}, ids)
	require.NoError(t, r.Delete(turn.At))
	require.Empty(t, r.Turns())
}
