// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

const short = "x-anthropic-billing-header:a=1;"

// TestManyHeaders removes thousands of headers in one call: in one line, in lines, and in blocks. Quadratic time would
// take minutes.
func TestManyHeaders(t *testing.T) {
	n, blocks := 20_000, 500
	if testing.Short() {
		n, blocks = 4_000, 300
	}
	if os.Getenv("WEFT_TEST") == "long" {
		n, blocks = 200_000, 2000
	}
	for _, sep := range []string{"", "\n", strings.Repeat(" ", 20) + "\n"} {
		text := strings.Repeat(short+sep, n)
		require.Equal(t, len(text), billingLen(text))
		require.Equal(t, len(text), billingLen(text+"You"))
	}
	list := strings.Repeat(`{"type":"text","text":"`+short+`"},`, blocks)
	r, err := messages.Decode([]byte(`{"system":[`+list+`{"type":"text","text":"`+short+`\nYou"}],"messages":[]}`), nil)
	require.NoError(t, err)
	rep, err := Stabilize(r, nil)
	require.NoError(t, err)
	require.Len(t, rep.Changes, blocks+1)
	out, err := r.AppendBody(nil)
	require.NoError(t, err)
	require.Equal(t, `{"system":[{"type":"text","text":"You"}],"messages":[]}`, string(out))
	again, err := Stabilize(r, nil)
	require.NoError(t, err)
	require.Empty(t, again.Changes)
}

// TestStabilizeOffsets tests that offsets refer to the body as decoded, regardless of where the header was.
func TestStabilizeOffsets(t *testing.T) {
	const rest = `\nCurrent date: 2\nB","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Platform: x\nC"}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`
	for _, front := range []string{
		``, short, `"},{"type":"text","text":"` + short, short + `"}, {"type":"text","text":"` + short + `"},{"type":"text","text":"`,
		short + `"} , {"type":"text","text":"` + short,
	} {
		body := `{"model":"m", "system":[ {"type":"text","text":"` + front + rest
		r, err := messages.Decode([]byte(body), nil)
		require.NoError(t, err)
		rep, err := Stabilize(r, &Options{Canonical: true, Relocate: true})
		require.NoError(t, err)
		for _, c := range rep.Changes {
			at := body[c.Offset:]
			dec := json.NewDecoder(strings.NewReader(at))
			var x any
			require.NoError(t, dec.Decode(&x), "%v at %q", c, at)
			for _, in := range map[string]string{
				"current-date": "Current date", "env/platform": "Platform", "canonical/cache": "cache_control", "canonical/content-form": `[{"type":"text","text":"a"`,
				"claude-code/billing": short,
			} {
				if strings.Contains(c.Text, in) {
					require.Contains(t, at[:dec.InputOffset()], in, "%v", c)
				}
			}
			if c.Rule == "canonical/cache" {
				require.Contains(t, at[:dec.InputOffset()], "cache_control", "%v\n%s", c, body)
			}
		}
	}
}

func TestStabilizeOdd(t *testing.T) {
	tests := []struct {
		name, body, want string
		decode           decoder
		o                *Options
	}{
		{
			"system text without a byte is nothing", `{"system":"","messages":[{"role":"system","content":"` + short + `\nYou"},{"role":"user","content":"u"}]}`,
			`{"system":"","messages":[{"role":"system","content":"You"},{"role":"user","content":"u"}]}`, messages.Decode, nil,
		},
		{
			"no pairs and blank lines", `{"messages":[{"role":"system","content":"x-anthropic-billing-header: on\n\n"},{"role":"user","content":"u"}]}`,
			`{"messages":[{"role":"user","content":"u"}]}`, chat.Decode, nil,
		},
		{
			"a search result keeps its list", `{"messages":[{"role":"user","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}]}]}]}`,
			`{"messages":[{"role":"user","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}]}]}]}`, messages.Decode,
			&Options{Canonical: true},
		},
		{
			"the header of a second message stays", `{"messages":[{"role":"system","content":"You"},{"role":"developer","content":"` + short + `"}]}`,
			`{"messages":[{"role":"system","content":"You"},{"role":"developer","content":"` + short + `"}]}`, chat.Decode, nil,
		},
		{
			"the header of system text after an image stays", `{"messages":[{"role":"system","content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"` + short + `"}]}]}`,
			`{"messages":[{"role":"system","content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"` + short + `"}]}]}`, chat.Decode, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			_, err = Stabilize(r, tt.o)
			require.NoError(t, err)
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			if diff := cmp.Diff(tt.want, string(out)); diff != "" {
				t.Error(diff)
			}
			again, err := Stabilize(r, tt.o)
			require.NoError(t, err)
			require.Empty(t, again.Changes)
		})
	}
}

// TestToolBreakpoints tests that breakpoints of tools are not in the canonical prompt, even with escapes in their
// names.
func TestToolBreakpoints(t *testing.T) {
	const tool = `{"messages":[],"tools":[{"type":"function","function":{"name":"f"%s}%s}]}`
	plain, err := chat.Decode(fmt.Appendf(nil, tool, "", ""), nil)
	require.NoError(t, err)
	for _, mark := range []string{
		`,"cache_control":{"type":"ephemeral"}`, `, "prompt_cache_breakpoint" : {"mode":"explicit"}`, `,"cache_contro\u006c":{"x":"\""}`,
		`,"prompt_cache_breakpoint":{},"cache_control":{}`,
	} {
		r, err := chat.Decode(fmt.Appendf(nil, tool, mark, mark), nil)
		require.NoError(t, err)
		b := Compare(plain, r, nil)
		require.Equal(t, Same, b.Relation, "%s: %v", mark, b)
	}
}
