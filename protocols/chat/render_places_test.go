// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// spelled formats each position as its path in the request, its path in the messages, and the text before it.
func spelled(places []chat.Position) (list []string) {
	for _, p := range places {
		list = append(list, fmt.Sprintf("%s %s %q", p.At.Path(), p.Path(), p.Text[:p.Offset]))
	}
	return list
}

func TestPlaces(t *testing.T) {
	const agent = `{"tools":[{"name":"f","input_schema":{}},{"name":"late","input_schema":{},"defer_loading":true},{"type":"web_search_20250305","name":"w"},{"name":"g","input_schema":{}}],` +
		`"system":[{"type":"text","text":"S1"},{"type":"text","text":"S2"}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"u1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aWs="}},{"type":"text","text":"u2"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ok"},{"type":"tool_use","id":"c1","name":"f","input":{"a":1}},{"type":"tool_use","id":"c2","name":"g","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"tool_reference","tool_name":"late"},{"type":"text","text":"two"}]},{"type":"tool_result","tool_use_id":"c1","content":"one"},` +
		`{"type":"text","text":"<system-reminder>todo</system-reminder>"},{"type":"text","text":"next"}]},{"role":"system","content":[{"type":"text","text":"e1"},{"type":"text","text":"e2"}]}]}`
	const late = `Tool late is available now:\n{\"type\":\"function\",\"function\":{\"name\":\"late\",\"parameters\":{}}}`
	for _, tt := range []struct {
		name   string
		decode decodeFunc
		body   string
		opt    chat.RenderOptions
		want   []string
	}{
		{"an agent's turn", messages.Decode, agent, chat.RenderOptions{TextOnly: true, System: chat.SystemAsUser}, []string{
			`tools[0] tools[0] ""`, `tools[3] tools[1] ""`,
			`system[0] messages[0].content "S1"`, `system[1] messages[0].content "S1\nS2"`, `system messages[0].content "S1\nS2"`,
			`messages[0].content[0] messages[1].content "u1"`, `messages[0].content[1] messages[1].content "u1\n[image left out: only text can be read here]"`,
			`messages[0].content[2] messages[1].content "u1\n[image left out: only text can be read here]\nu2"`,
			`messages[1].content[1] messages[2].content "ok"`, `messages[1].content[0] messages[2].reasoning_content "hm"`,
			`messages[1].content[2] messages[2].tool_calls[0] "{\"a\":1}"`, `messages[1].content[3] messages[2].tool_calls[1] "{}"`,
			`messages[2].content[1].content messages[3].content "one"`, `messages[2].content[1] messages[3].content "one"`,
			`tools[1] messages[4].content "` + late + `"`, `messages[2].content[0].content[0] messages[4].content "` + late + `"`,
			`messages[2].content[0].content[1] messages[4].content "` + late + `\ntwo"`,
			`messages[2].content[2] messages[4].content "` + late + `\ntwo\n<system-reminder>todo</system-reminder>"`,
			`messages[3].content[0] messages[4].content "` + late + `\ntwo\n<system-reminder>todo</system-reminder>\n<system-reminder>\ne1"`,
			`messages[3].content[1] messages[4].content "` + late + `\ntwo\n<system-reminder>todo</system-reminder>\n<system-reminder>\ne1\ne2"`,
			`messages[3] messages[4].content "` + late + `\ntwo\n<system-reminder>todo</system-reminder>\n<system-reminder>\ne1\ne2\n</system-reminder>"`,
			`messages[2].content[0] messages[4].content "` + late + `\ntwo"`,
			`messages[2].content[3] messages[5].content "next"`,
		}},
		{"media, reasoning in the text, system text at the start", messages.Decode,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"u1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aWs="}},{"type":"text","text":"u2"}]},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ok"}]},{"role":"system","content":"late"},{"role":"user","content":"u3"}]}`,
			chat.RenderOptions{System: chat.SystemMerge, Inline: &chat.Tags{Open: "<t>", Close: "</t>"}}, []string{
				`messages[2].content messages[0].content "late"`,
				`messages[0].content[0] messages[1].content[0] "u1"`, `messages[0].content[1] messages[1].content[1] ""`, `messages[0].content[2] messages[1].content[2] "u2"`,
				`messages[1].content[0] messages[2].content "<t>hm"`, `messages[1].content[1] messages[2].content "<t>hm</t>ok"`,
				`messages[3].content messages[3].content "u3"`,
			}},
		{"reasoning between calls", responses.Decode,
			`{"instructions":"I","input":[{"type":"message","role":"user","content":"u"},{"type":"reasoning","id":"r1","summary":[],"content":[{"type":"reasoning_text","text":"a"}]},` +
				`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"reasoning","id":"r2","summary":[],"content":[{"type":"reasoning_text","text":"b"}]},` +
				`{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x"},{"type":"function_call_output","call_id":"c2","output":""}]}`,
			chat.RenderOptions{ReasoningSegments: true}, []string{
				`instructions messages[0].content "I"`, `instructions messages[0].content "I"`, `input[0].content messages[1].content "u"`,
				`input[1] messages[2].reasoning_content[0] "a"`, `input[3] messages[2].reasoning_content[1] "b"`,
				`input[2] messages[2].tool_calls[0] "{}"`, `input[4] messages[2].tool_calls[1] "{}"`,
				`input[5].output messages[3].content "x"`, `input[5] messages[3].content "x"`, `input[6].output messages[4].content ""`, `input[6] messages[4].content ""`,
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tt.want, spelled(placesOf(t, r, tt.opt))))
		})
	}
}

// placesOf renders r with Places, checks that each position refers to its text, and checks that Places does not change
// the output.
func placesOf(t require.TestingT, r *block.Request, opt chat.RenderOptions) []chat.Position {
	requireWalk(t, r, &opt)
	plain, lost := chat.AppendMessages(nil, r, &opt)
	var places []chat.Position
	opt.Places = &places
	got, again := chat.AppendMessages(nil, r, &opt)
	require.Equal(t, string(plain), string(got))
	require.Equal(t, lost, again)
	var list []map[string]any
	require.NoError(t, json.Unmarshal(got, &list))
	var tools []any
	raw, _ := chat.AppendTools(nil, r)
	require.NoError(t, json.Unmarshal(raw, &tools))
	for _, p := range places {
		require.NotZero(t, p.At)
		if p.Tool >= 0 {
			require.Less(t, p.Tool, len(tools))
			require.Equal(t, -1, p.Message)
			continue
		}
		v := list[p.Message][p.Member]
		if p.Index >= 0 {
			v = v.([]any)[p.Index]
		}
		switch v := v.(type) {
		case string:
			require.Equal(t, v, p.Text, p.Path())
		case map[string]any:
			if p.Text != "" && p.Member == "content" {
				require.Equal(t, v["text"], p.Text, p.Path())
			}
		default:
			require.Fail(t, "neither text nor part", "%s: %v", p.Path(), v)
		}
		require.LessOrEqual(t, p.Offset, len(p.Text))
	}
	return places
}

// Random conversations are rendered with all options: each block with text ends at its offset, and the next block of
// the same text begins there.
func TestPlacesRandomRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		text := func() string {
			n++
			return rapid.SampledFrom([]string{"", " ", "\\n", "é"}).Draw(t, "before") + fmt.Sprintf("Zq%d.", n) + rapid.SampledFrom([]string{"", "\\n", " "}).Draw(t, "after")
		}
		blocks := func(kinds ...string) string {
			var out []string
			for range rapid.IntRange(1, 4).Draw(t, "blocks") {
				out = append(out, strings.ReplaceAll(rapid.SampledFrom(kinds).Draw(t, "kind"), "TEXT", text()))
			}
			return strings.Join(out, ",")
		}
		const (
			plain    = `{"type":"text","text":"TEXT"}`
			image    = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aWs="}}`
			reminder = `{"type":"text","text":"<system-reminder>TEXT</system-reminder>"}`
			thinking = `{"type":"thinking","thinking":"TEXT","signature":"s"}`
			named    = `{"type":"tool_reference","tool_name":"late"}`
			document = `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"TEXT"}}`
		)
		var list []string
		for i := range rapid.IntRange(1, 4).Draw(t, "turns") {
			list = append(list, `{"role":"user","content":[`+blocks(plain, plain, image, reminder, document)+`]}`)
			if rapid.Bool().Draw(t, "system") {
				list = append(list, `{"role":"system","content":[`+blocks(plain)+`]}`)
			}
			list = append(list, fmt.Sprintf(`{"role":"assistant","content":[%s,{"type":"tool_use","id":"a%d","name":"f","input":{}},{"type":"tool_use","id":"b%d","name":"f","input":{}}]}`, blocks(plain, thinking), i, i),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b%d","content":[%s]},{"type":"tool_result","tool_use_id":"a%d","content":"%s"},%s]}`, i, blocks(plain, named, image), i, text(), blocks(plain, reminder)))
			if rapid.Bool().Draw(t, "more system") {
				list = append(list, `{"role":"system","content":[`+blocks(plain)+`]}`)
			}
		}
		r, err := messages.Decode([]byte(`{"tools":[{"name":"late","input_schema":{},"defer_loading":true},{"name":"f","input_schema":{}}],"system":[`+blocks(plain)+`],"messages":[`+strings.Join(list, ",")+`]}`), nil)
		require.NoError(t, err)
		opt := chat.RenderOptions{
			TextOnly: rapid.Bool().Draw(t, "text only"), ReasoningSegments: rapid.Bool().Draw(t, "segments"),
			System: chat.SystemMode(rapid.IntRange(0, 2).Draw(t, "mode")),
		}
		if rapid.Bool().Draw(t, "separators") {
			opt.Separators = map[string]string{"system": "", "user": "", "tool": " ", "assistant": "\n\n"}
		}
		if rapid.Bool().Draw(t, "inline") {
			opt.Inline = &chat.Tags{Open: "<think>\n", Close: "\n</think>\n\n"}
		}
		first := map[block.Ref]chat.Position{}
		for _, p := range placesOf(t, r, opt) {
			if _, ok := first[p.At]; !ok {
				first[p.At] = p
			}
		}
		var check func(list []block.Block)
		check = func(list []block.Block) {
			for i := range list {
				b := &list[i]
				check(b.Content)
				p, ok := first[b.At]
				require.True(t, ok, "no place for %s", b.At.Path())
				if b.Kind == block.Text || b.Kind == block.Reasoning {
					require.True(t, strings.HasSuffix(p.Text[:p.Offset], b.Text), "%s: %q does not end with %q", b.At.Path(), p.Text[:p.Offset], b.Text)
				}
			}
		}
		for _, turn := range r.Turns() {
			check(turn.Blocks)
		}
	})
}
