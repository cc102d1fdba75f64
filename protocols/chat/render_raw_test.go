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
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

// TestRawCalls renders the tools that the Responses API defines.
func TestRawCalls(t *testing.T) {
	for name, c := range map[string]struct {
		items, want string
		opt         *chat.RenderOptions
	}{
		"local shell": {
			items: `{"type":"local_shell_call","id":"ls_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}},
				{"type":"local_shell_call_output","id":"c1","output":"a.go\n"}`,
			want: `assistant:"" think=hm local_shell#c1({"type":"exec","command":["ls"],"env":{}}) | tool#c1 local_shell:"a.go\n"`,
		},
		"local shell by the ID of the item, and a reminder": {
			items: `{"type":"local_shell_call","id":"ls_1","call_id":"c1","action":{"command":["ls"]}},
				{"type":"local_shell_call_output","id":"ls_1","output":"x"},{"role":"user","content":"<system-reminder>r</system-reminder>"}`,
			want: `assistant:"" think=hm local_shell#c1({"command":["ls"]}) | tool#c1 local_shell:"x\n<system-reminder>r</system-reminder>"`,
		},
		"shell": {
			items: `{"type":"shell_call","id":"sh_1","call_id":"c1","action":{"commands":["ls"]}},
				{"type":"shell_call_output","call_id":"c1","output":[{"stdout":"ok","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
			want: `assistant:"" think=hm shell#c1({"commands":["ls"]}) | tool#c1 shell:"ok"`,
		},
		"a shell that fails": {
			items: `{"type":"shell_call","call_id":"c1","action":{"commands":["ls"]}},
				{"type":"shell_call_output","call_id":"c1","output":[{"stdout":"","stderr":"no","outcome":{"type":"exit","exit_code":1}}]}`,
			want: `assistant:"" think=hm shell#c1({"commands":["ls"]}) | tool#c1 shell:"[{\"stdout\":\"\",\"stderr\":\"no\",\"outcome\":{\"type\":\"exit\",\"exit_code\":1}}]"`,
		},
		"two patches, results in another order": {
			items: `{"type":"apply_patch_call","call_id":"c1","operation":{"type":"delete_file","path":"a"}},{"type":"apply_patch_call","call_id":"c2","operation":{"type":"delete_file","path":"b"}},
				{"type":"apply_patch_call_output","call_id":"c2","status":"completed"},{"type":"apply_patch_call_output","call_id":"c1","status":"completed","output":"gone"}`,
			want: `assistant:"" think=hm apply_patch#c1({"type":"delete_file","path":"a"}) apply_patch#c2({"type":"delete_file","path":"b"}) | tool#c1 apply_patch:"gone" | ` +
				`tool#c2 apply_patch:"{\"type\":\"apply_patch_call_output\",\"call_id\":\"c2\",\"status\":\"completed\"}"`,
		},
		"next to a function": {
			items: `{"type":"function_call","call_id":"f1","name":"f","arguments":"{}"},{"type":"local_shell_call","call_id":"c1","action":{"command":[]}},
				{"type":"local_shell_call_output","id":"c1","output":"x"},{"type":"function_call_output","call_id":"f1","output":"y"}`,
			want: `assistant:"" think=hm f#f1({}) local_shell#c1({"command":[]}) | tool#f1 f:"y" | tool#c1 local_shell:"x"`,
		},
		"computer, text only": {
			items: `{"type":"computer_call","call_id":"c1","action":{"type":"screenshot"}},{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}`,
			want:  `assistant:"" think=hm computer#c1({"type":"screenshot"}) | tool#c1 computer:"[image left out: only text can be read here]"`,
			opt:   &chat.RenderOptions{TextOnly: true},
		},
		"computer": {
			items: `{"type":"computer_call","call_id":"c1","actions":[{"type":"screenshot"}]},{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}`,
			want:  `assistant:"" think=hm computer#c1({"actions":[{"type":"screenshot"}]}) | tool#c1 computer:[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]`,
		},
		"items that the server ran": {
			items: `{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}},{"type":"mcp_list_tools","id":"m","server_label":"s","tools":[]},
				{"type":"mcp_call","id":"mc","server_label":"s","name":"n","arguments":"{}","output":"o"},{"type":"code_interpreter_call","id":"ci","code":"1","outputs":[]},
				{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}`,
			want: `assistant:"so" think=hm`,
		},
		"approval": {
			items: `{"type":"mcp_approval_request","id":"ap","server_label":"s","name":"n","arguments":"{}"},{"type":"mcp_approval_response","approval_request_id":"ap","approve":true}`,
			want:  `assistant:"" think=hm | tool# mcp_approval_response:"{\"type\":\"mcp_approval_response\",\"approval_request_id\":\"ap\",\"approve\":true}"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := responses.Decode([]byte(`{"input":[{"role":"user","content":"q"},{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},`+c.items+`]}`), nil)
			require.NoError(t, err)
			check := func() {
				requireWalk(t, r, c.opt)
				raw, _ := chat.AppendMessages(nil, r, c.opt)
				require.Empty(t, cmp.Diff(`user:"q" | `+c.want, short(t, raw)))
				plan := replay.NewPlan(replay.Model{Family: replay.MustRule("since_user")}, replay.Preference{})
				require.Equal(t, replay.Kept, plan.AppendOutcomes(nil, wire.ReplayTurns(r), true)[1])
			}
			check()
			r.Detach()
			check()
		})
	}
}

type shownMessage struct {
	Role, Name string
	ID         string `json:"tool_call_id"`
	Content    json.RawMessage
	Reasoning  string `json:"reasoning_content"`
	Calls      []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func shown(t require.TestingT, raw []byte) (list []shownMessage) {
	require.NoError(t, json.Unmarshal(raw, &list), "%s", raw)
	return list
}

// short formats messages in one line.
func short(t require.TestingT, raw []byte) string {
	var out []string
	for _, m := range shown(t, raw) {
		var s strings.Builder
		s.WriteString(m.Role)
		if m.Role == "tool" {
			s.WriteString("#" + m.ID + " " + m.Name)
		}
		s.WriteString(":" + string(m.Content))
		if m.Reasoning != "" {
			s.WriteString(" think=" + m.Reasoning)
		}
		for _, c := range m.Calls {
			s.WriteString(fmt.Sprintf(" %s#%s(%s)", c.Function.Name, c.ID, c.Function.Arguments))
		}
		out = append(out, s.String())
	}
	return strings.Join(out, " | ")
}

// pieces of conversations, which may occur in any order.
var pieces = map[string][]string{
	"chat": {
		`{"role":"user","content":"q"}`, `{"role":"user","content":"<system-reminder>r</system-reminder>"}`, `{"role":"system","content":"s"}`,
		`{"role":"assistant","content":"a","reasoning_content":"hm"}`, `{"role":"user","content":[{"type":"x"}]}`,
		`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"c1","content":"x"}`, `{"role":"user","content":""}`, `{"role":"x","content":"y"}`,
	},
	"messages": {
		`{"role":"user","content":"q"}`, `{"role":"user","content":"<system-reminder>r</system-reminder>"}`, `{"role":"assistant","content":"a"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"tool_use","id":"c1","name":"f","input":{}}]}`,
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","text":"a"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"text","text":"<system-reminder>r</system-reminder>"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"text","text":"and?"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"mid_conv_system","content":[{"type":"text","text":"s"}]},{"type":"text","text":"<system-reminder>r</system-reminder>"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"x"}]}`,
		`{"role":"user","content":[{"type":"mid_conv_system","content":[{"type":"text","text":"s"}]}]}`, `{"role":"user","content":[]}`,
		`{"role":"user","content":[{"type":"x"}]}`, `{"role":"system","content":"s"}`,
	},
	"responses": {
		`{"role":"user","content":"q"}`, `{"role":"user","content":"<system-reminder>r</system-reminder>"}`, `{"role":"developer","content":"s"}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`, `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`,
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1","output":"x"}`,
		`{"type":"local_shell_call","call_id":"l1","action":{"command":["ls"]}}`, `{"type":"local_shell_call_output","id":"l1","output":"x"}`,
		`{"type":"web_search_call","id":"w"}`, `{"type":"x_thing","id":"x"}`, `{"type":"mcp_approval_response","approval_request_id":"ap","approve":true}`,
		`{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"https://x/y.png"}}`,
	},
}

// TestTurnStartsAreUserMessages checks that the rules of package replay and the rendered messages agree on where work begins: in
// any request, user messages come from turns that start work, and every such turn has one. The same holds for calls.
func TestTurnStartsAreUserMessages(t *testing.T) {
	decoders := map[string]func([]byte, *block.Limits) (*block.Request, error){"chat": chat.Decode, "messages": messages.Decode, "responses": responses.Decode}
	members := map[string]string{"chat": "messages", "messages": "messages", "responses": "input"}
	rapid.Check(t, func(rt *rapid.T) {
		api := rapid.SampledFrom([]string{"chat", "messages", "responses"}).Draw(rt, "api")
		list := rapid.SliceOfN(rapid.SampledFrom(pieces[api]), 1, 9).Draw(rt, "pieces")
		body := `{"` + members[api] + `":[` + strings.Join(list, ",") + `]}`
		r, err := decoders[api]([]byte(body), nil)
		require.NoError(rt, err)
		var want, got string
		add := func(s *string, letter string) {
			if !strings.HasSuffix(*s, letter) {
				*s += letter
			}
		}
		for _, turn := range wire.ReplayTurns(r) {
			switch {
			case turn.Start:
				add(&want, "u")
			case turn.Assistant:
				add(&want, map[bool]string{true: "c", false: "a"}[turn.Calls])
			}
		}
		raw, _ := chat.AppendMessages(nil, r, &chat.RenderOptions{
			TextOnly: rapid.Bool().Draw(rt, "text"), System: rapid.SampledFrom([]chat.SystemMode{chat.SystemKeep, chat.SystemMerge}).Draw(rt, "system"),
		})
		for _, m := range shown(rt, raw) {
			switch m.Role {
			case "user":
				add(&got, "u")
			case "assistant":
				add(&got, map[bool]string{true: "c", false: "a"}[len(m.Calls) > 0])
			}
		}
		require.Equal(rt, want, got, "%s\n%s", body, raw)
	})
}

// TestToolsOfDetachedRequest checks that a request without a body has tools that templates can read.
func TestToolsOfDetachedRequest(t *testing.T) {
	r, err := chat.Decode([]byte(`{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"x","y":1}]}`), nil)
	require.NoError(t, err)
	want, losses := chat.AppendTools(nil, r)
	require.Len(t, losses, 1)
	require.NoError(t, r.Detach())
	require.JSONEq(t, `{"type":"x","y":1}`, string(r.Tools()[1].JSON))
	got, _ := chat.AppendTools(nil, r)
	require.JSONEq(t, string(want), string(got))
}

// TestUnknownBlockInBuiltRequest checks that a block of an API that this package does not model survives in a request that was
// built from its turn.
func TestUnknownBlockInBuiltRequest(t *testing.T) {
	r, err := chat.Decode([]byte(`{"messages":[{"role":"user","content":[{"type":"hologram","x":1}]}]}`), nil)
	require.NoError(t, err)
	b := block.NewRequest(r.Turns()...).Turns()[0].Blocks[0]
	require.Equal(t, "hologram "+`{"type":"hologram","x":1}`, b.Type+" "+string(b.JSON))
}
