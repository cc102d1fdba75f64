// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
)

// A tool choice that is not known stays in a request of the same API, and is a loss of conversions to others.
func TestUnknownToolChoiceIsLostByConversions(t *testing.T) {
	const hosted, unknown = "a choice of a tool that another server runs, or of an unknown type", "an unknown tool choice"
	fields := []string{`"max_tokens":9,"messages":[{"role":"user","content":"x"}]`, `"max_output_tokens":9,"input":"x"`, `"max_tokens":9,"messages":[{"role":"user","content":"x"}]`}
	for _, tt := range []struct {
		from   []int // APIs
		field  string
		losses []block.Loss
	}{
		{[]int{0, 1}, `"tool_choice":"zzz"`, []block.Loss{{Path: "tool_choice", Why: unknown}}},
		{[]int{0, 1, 2}, `"tool_choice":{}`, []block.Loss{{Path: "tool_choice", Why: unknown}}},
		{[]int{0, 1, 2}, `"tool_choice":{"type":"zzz"}`, []block.Loss{{Path: "tool_choice", Why: hosted}}},
		{[]int{1}, `"tool_choice":{"type":"mcp","server_label":"x"}`, []block.Loss{{Path: "tool_choice", Why: hosted}}},
		{[]int{0}, `"function_call":"zzz"`, []block.Loss{{Path: "function_call", Why: unknown}}},
		{[]int{0}, `"tool_choice":null,"function_call":"zzz"`, []block.Loss{{Path: "function_call", Why: unknown}}},
		{[]int{0}, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"zzz","tools":[{"type":"function","function":{"name":"f"}}]}}`, []block.Loss{{Path: "tool_choice", Why: hosted}}},
		{[]int{1}, `"tool_choice":{"type":"allowed_tools","mode":"zzz","tools":[{"type":"function","name":"f"}]}`, []block.Loss{{Path: "tool_choice", Why: hosted}}},
		{[]int{1}, `"tool_choice":{"type":"allowed_tools","mode":"required"}`, []block.Loss{{Path: "tool_choice", Why: hosted}}},
		{[]int{0, 1, 2}, `"tool_choice":null`, nil},
		{[]int{0}, `"function_call":null`, nil},
		{[]int{0, 1}, `"tool_choice":"auto"`, nil},
		{[]int{2}, `"tool_choice":{"type":"auto"}`, nil},
	} {
		for _, from := range tt.from {
			body := `{"model":"m", ` + fields[from] + `,` + tt.field + `}`
			r, err := apis[from].decode([]byte(body), nil)
			require.NoError(t, err, body)
			for to := range 3 {
				out, losses, err := apis[to].encode(nil, r, nil)
				require.NoError(t, err)
				if to == from {
					require.Equal(t, body, string(out))
					continue
				}
				require.NotContains(t, string(out), "zzz")
				require.Equal(t, tt.losses, losses, "%s to %s: %s", apis[from].api, apis[to].api, body)
			}
			p := r.Params()
			p.Model = "n"
			require.NoError(t, r.SetParams(p))
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			require.Equal(t, `{"model":"n"`+body[len(`{"model":"m"`):], string(out), "an edit keeps it")

			require.NoError(t, r.Detach())
			out, err = r.AppendBody(nil)
			require.NoError(t, err)
			require.JSONEq(t, `{"model":"n"`+body[len(`{"model":"m"`):], string(out))
			_, losses, err := apis[(from+1)%3].encode(nil, r, nil)
			require.NoError(t, err)
			require.Equal(t, tt.losses, losses)
		}
	}
}

// A request of the same API keeps an unknown type of thinking; conversions to other APIs report it as a loss. A type that the
// other API has in part is converted to that part.
func TestThinkingTypesAreLostByConversions(t *testing.T) {
	const unknown, between = "an unknown type of thinking", "text between calls that is thinking"
	for _, tt := range []struct {
		from, to  int // APIs
		kind      string
		want, why string
	}{
		{0, 2, "zzz", "", unknown},
		{2, 0, "zzz", "", unknown},
		{2, 1, "zzz", "", unknown},
		{2, 0, "between_tools", `"thinking":{"type":"disabled"}`, between},
		{2, 1, "between_tools", "", between},
		{2, 0, "disabled", `"thinking":{"type":"disabled"}`, ""},
	} {
		body := `{"model":"m", "max_tokens":9,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"` + tt.kind + `"}}`
		r, err := apis[tt.from].decode([]byte(body), nil)
		require.NoError(t, err)
		out, losses, err := apis[tt.to].encode(nil, r, nil)
		require.NoError(t, err)
		require.Equal(t, tt.want != "", strings.Contains(string(out), "thinking"), string(out))
		require.Contains(t, string(out), tt.want)
		if tt.why == "" {
			require.Empty(t, losses)
		} else {
			require.Contains(t, losses, block.Loss{Path: "thinking.type", Why: tt.why}, "%s to %s: %s", apis[tt.from].api, apis[tt.to].api, body)
		}
		p := r.Params()
		p.Model = "n"
		require.NoError(t, r.SetParams(p))
		require.NoError(t, r.Detach())
		out, err = r.AppendBody(nil)
		require.NoError(t, err)
		require.JSONEq(t, `{"model":"n"`+body[len(`{"model":"m"`):], string(out), "an edit keeps it")
	}
}
