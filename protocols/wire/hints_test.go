// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

func TestBreakpoints(t *testing.T) {
	tool := func(i int, ttl time.Duration, scope string) intent.Breakpoint {
		return intent.Breakpoint{Tool: i, Turn: -1, Block: -1, Inner: -1, TTL: ttl, Scope: scope}
	}
	at := func(turn, blk, inner int, ttl time.Duration, scope string) intent.Breakpoint {
		return intent.Breakpoint{Tool: -1, Turn: turn, Block: blk, Inner: inner, TTL: ttl, Scope: scope}
	}
	auto := at(1, 1, -1, time.Hour, "")
	auto.Auto = true
	const mark = `"cache_control":{"type":"ephemeral"}`
	tests := []struct {
		name, body string
		decode     func([]byte, *block.Limits) (*block.Request, error)
		want       []intent.Breakpoint
		faults     []string
	}{
		{name: "none", decode: messages.Decode, body: `{"messages":[{"role":"user","content":"a"}],"max_tokens":1,"model":"m"}`},
		{
			name: "as Claude Code marks", decode: messages.Decode,
			body: `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b",` + mark + `}]}],
				"system":[{"type":"text","text":"s"},{"type":"text","text":"t","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}}],
				"tools":[{"name":"x","input_schema":{}},{"name":"y","input_schema":{},` + mark + `}]}`,
			want: []intent.Breakpoint{tool(1, 5*time.Minute, ""), at(0, 1, -1, time.Hour, "global"), at(1, 1, -1, 5*time.Minute, "")},
		},
		{
			name: "of the whole request", decode: messages.Decode,
			body: `{"model":"m","max_tokens":1,"cache_control":{"type":"ephemeral","ttl":"1h"},"messages":[{"role":"user","content":"a"},
				{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"text","text":"b"}]}]}`,
			want: []intent.Breakpoint{auto},
		},
		{
			name: "of another type, and on reasoning", decode: messages.Decode,
			body: `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"forever"}}]},
				{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s",` + mark + `},{"type":"text","text":"b"}]}]}`,
			want: []intent.Breakpoint{at(0, 0, -1, 5*time.Minute, ""), at(1, 0, -1, 5*time.Minute, "")},
			faults: []string{
				`intent: messages[0].content[0].cache_control.type "forever": not ephemeral; treated as ephemeral`,
				`intent: messages[1].content[0].cache_control "": not allowed on reasoning`,
			},
		},
		{
			name: "in a tool result, and odd ones", decode: messages.Decode,
			body: `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},
				{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"x","input":{},"cache_control":{"type":"ephemeral","ttl":"9"}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"},
				{"type":"text","text":"q","cache_control":{"type":"ephemeral","ttl":"never","scope":7}}]}]}]}`,
			want: []intent.Breakpoint{at(1, 0, -1, 5*time.Minute, ""), at(2, 0, 1, 5*time.Minute, "")},
			faults: []string{
				`intent: messages[1].content[0].cache_control.ttl "9": not from 300 to 3600 seconds; the nearest is used`,
				`intent: messages[2].content[0].content[1].cache_control.scope "7": not a string`,
				`intent: messages[2].content[0].content[1].cache_control.ttl "never": unknown ttl; 5m is used`,
			},
		},
		{
			name: "too many", decode: messages.Decode,
			body: `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a",`+mark+`},`, 4) +
				`{"type":"text","text":"a",` + mark + `}]}]}`,
			want: []intent.Breakpoint{
				at(0, 0, -1, 5*time.Minute, ""), at(0, 1, -1, 5*time.Minute, ""), at(0, 2, -1, 5*time.Minute, ""),
				at(0, 3, -1, 5*time.Minute, ""), at(0, 4, -1, 5*time.Minute, ""),
			},
			faults: []string{`intent: cache_control "5": more than 4 breakpoints`},
		},
		{
			name: "chat", decode: chat.Decode,
			body: `{"model":"m","messages":[{"role":"system","content":[{"type":"text","text":"s","prompt_cache_breakpoint":{"mode":"explicit"}}]},
				{"role":"user","content":[{"type":"text","text":"a",` + mark + `}]}]}`,
			want: []intent.Breakpoint{at(0, 0, -1, 5*time.Minute, ""), at(1, 0, -1, 5*time.Minute, "")},
		},
		{
			name: "responses", decode: responses.Decode,
			body: `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}}]}]}`,
			want: []intent.Breakpoint{at(0, 0, -1, 5*time.Minute, "")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			got, faults := wire.Breakpoints(r)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			var lines []string
			for _, f := range faults {
				lines = append(lines, f.Error())
			}
			if diff := cmp.Diff(tt.faults, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestIntent reads the hints of a request and writes them to the body that is sent on.
func TestIntent(t *testing.T) {
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}],"metadata":{"user_id":"u"},"service_tier":"auto",
		"nvext":{"agent_hints":{"priority":-4,"osl":9},"annotations":["a"]},"cache_salt":"s","agent":{"retain":{"ttl":"1h"}}}`
	r, err := messages.Decode([]byte(body), nil)
	require.NoError(t, err)
	in, faults := intent.Read(intent.Source{API: r.API().String(), Field: r.Field})
	require.Empty(t, faults)
	if diff := cmp.Diff(intent.Intent{
		Priority: -4, ExpectedOutput: 9, Salt: "s", User: "u", ServiceTier: "auto", Retain: intent.Retain{TTL: time.Hour},
	}, in); diff != "" {
		t.Error(diff)
	}
	to, err := intent.NewTarget("anthropic", "")
	require.NoError(t, err)
	out := to.Emit(&in)
	raw, err := r.AppendBody(nil)
	require.NoError(t, err)
	raw, err = out.AppendBody(nil, raw)
	require.NoError(t, err)
	again, err := messages.Decode(raw, nil)
	require.NoError(t, err)
	require.Nil(t, again.Field("nvext"))
	require.Nil(t, again.Field("agent"))
	require.JSONEq(t, `{"type":"ephemeral","ttl":"1h"}`, string(again.Field("cache_control")))
	got, _ := intent.Read(intent.Source{API: "messages", Field: again.Field})
	require.Equal(t, intent.Intent{User: "u", ServiceTier: "auto", Retain: intent.Retain{TTL: time.Hour}}, got)
}

func TestTrigger(t *testing.T) {
	const (
		user   = `{"role":"user","content":"a"}`
		remind = `{"role":"user","content":"<system-reminder>x</system-reminder>"}`
		system = `{"role":"system","content":"s"}`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"x","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}`
		text   = `{"role":"assistant","content":"so"}`
	)
	for _, tt := range []struct {
		turns string
		want  intent.Trigger
	}{
		{user, intent.UserMessage},
		{user + "," + call + "," + result, intent.ToolResult},
		{user + "," + call + "," + result + "," + remind, intent.ToolResult},
		{user + "," + call + "," + result + "," + system, intent.ToolResult},
		{user + "," + text, intent.OtherTrigger},
		{user + "," + text + "," + remind, intent.OtherTrigger},
		{user + "," + text + "," + user, intent.UserMessage},
	} {
		r, err := messages.Decode([]byte(`{"model":"m","max_tokens":1,"messages":[`+tt.turns+`]}`), nil)
		require.NoError(t, err)
		require.Equal(t, tt.want, wire.Trigger(r), tt.turns)
	}
	require.Equal(t, intent.Trigger(""), wire.Trigger(block.NewRequest()))
}

func ExampleBreakpoints() {
	r, _ := messages.Decode([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}],
		"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`), nil)
	list, _ := wire.Breakpoints(r)
	fmt.Println(len(list), list[0].Turn, list[0].Block, list[0].TTL, wire.Trigger(r))
	// Output: 1 0 0 1h0m0s user_message
}
