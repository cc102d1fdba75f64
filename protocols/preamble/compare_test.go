// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

// msgs returns a Messages body with the elements of its lists of tools, system text and messages.
func msgs(tools, system, list string) string {
	return `{"tools":[` + tools + `],"system":[` + system + `],"messages":[` + list + `]}`
}

func txt(s string) string { return `{"type":"text","text":"` + s + `"}` }

func TestCompare(t *testing.T) {
	const (
		toolA = `{"name":"a","description":"A","input_schema":{"type":"object"}}`
		toolB = `{"name":"b","description":"B","input_schema":{"type":"object"}}`
		toolD = `{"name":"a2","description":"D","input_schema":{"type":"object"},"defer_loading":true}`
		ask   = `{"role":"user","content":"hi"}`
		call  = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"a","input":{"x":1,"y":2}}]}`
		bare  = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"a","input":{"x":1,"y":2}}]}`
		res   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok"}]}`
	)
	base := msgs(toolA+","+toolB, txt("You are.\\nB"), ask+","+call+","+res)
	tests := []struct {
		name     string
		a, b     string
		prompt   Prompt
		relation Relation
		cause    string
		class    string
		path     string // in b
		at       int
		cosmetic cosmetic
	}{
		{name: "same", a: base, b: base},
		{
			name: "spelling only", a: base, cosmetic: cacheMoved | contentForm | callIDs | toolSpelling,
			b: msgs(strings.ReplaceAll(toolA, `":`, `": `)+","+toolB, `{"type":"text","text":"You are.\nB","cache_control":{"type":"ephemeral"}}`,
				`{"role":"user","content":[`+txt("hi")+`]},`+strings.ReplaceAll(call+","+res, "c1", "c2")),
		},
		{
			name: "a breakpoint on a tool", a: base, b: strings.Replace(base, `"name":"b",`, `"name":"b","cache_control":{"type":"ephemeral"},`, 1),
			cosmetic: cacheMoved,
		},
		{
			name: "a breakpoint in front of a tool", a: base, b: strings.Replace(base, `"name":"b",`, `"cache_control":{"type":"ephemeral"},"name":"b",`, 1),
			cosmetic: cacheMoved,
		},
		{name: "extends", a: msgs("", txt("s"), ask), b: msgs("", txt("s"), ask+","+call), relation: Extends},
		{name: "shorter", a: base, b: msgs(toolA+","+toolB, txt("You are.\\nB"), ask), relation: Shorter, cause: causeHistoryRewritten, class: classTurn},
		{
			name: "billing header", a: msgs("", txt(head)+","+txt("s"), ask), b: msgs("", txt(strings.Replace(head, "1ad", "1b0", 1))+","+txt("s"), ask),
			relation: Diverges, cause: causeBillingHeader, class: classVolatile, path: "system[0]", at: 48,
		},
		{
			name: "billing header, one of two", a: msgs("", txt(head)+","+txt("s"), ask), b: msgs("", txt("s"), ask),
			relation: Diverges, cause: causeBillingHeader, class: classVolatile, path: "system[0]",
		},
		{
			name: "tool added", a: base, b: strings.Replace(base, toolB, `{"name":"aa","input_schema":{}},`+toolB, 1),
			relation: Diverges, cause: causeToolAdded, class: classSession, path: "tools[1]", at: 9,
		},
		{
			name: "tool removed", a: base, b: strings.Replace(base, toolA+",", "", 1),
			relation: Diverges, cause: causeToolRemoved, class: classSession, path: "tools[0]", at: 9,
		},
		{
			name: "last tool removed", a: base, b: strings.Replace(base, ","+toolB, "", 1),
			relation: Diverges, cause: causeToolRemoved, class: classSession, path: "system[0]",
		},
		{
			name: "tools reordered", a: base, b: msgs(toolB+","+toolA, txt("You are.\\nB"), ask+","+call+","+res),
			relation: Diverges, cause: causeToolReordered, class: classSession, path: "tools[0]", at: 9,
		},
		{
			name: "tool changed", a: base, b: strings.Replace(base, `"description":"B"`, `"description":"C"`, 1),
			relation: Diverges, cause: causeToolChanged, path: "tools[1]", at: 27,
		},
		{name: "deferred tool, at its reference", a: base, b: strings.Replace(base, toolB, toolD+","+toolB, 1)},
		{
			name: "system first", a: base, b: strings.Replace(base, "You are.", "You were.", 1), prompt: Prompt{SystemFirst: true},
			relation: Diverges, cause: causeSystemEdited, path: "system[0]", at: 4,
		},
		{
			name: "memory path", a: msgs("", txt("You have a persistent memory at `/a/memory/`."), ask), b: msgs("", txt("You have a persistent memory at `/b/memory/`."), ask),
			relation: Diverges, cause: causeMemoryPath, class: classSession, path: "system[0]", at: 34,
		},
		{
			name: "after the memory path", a: msgs("", txt("You have a persistent memory at `/a/memory/`."), ask), b: msgs("", txt("You have a persistent memory at `/a/memory/`!"), ask),
			relation: Diverges, cause: causeSystemEdited, path: "system[0]", at: 44,
		},
		{
			name: "git status", a: msgs("", txt("x\\ngitStatus: is\\n\\nStatus:\\nM a\\n\\nRecent commits:\\n1"), ask), b: msgs("", txt("x\\ngitStatus: is\\n\\nStatus:\\nM b\\n\\nRecent commits:\\n1"), ask),
			relation: Diverges, cause: causeGitStatus, class: classSession, path: "system[0]", at: 27,
		},
		{
			name: "a date in an env block", a: msgs("", txt("<env>\\n Today's date: 1\\n</env>"), ask), b: msgs("", txt("<env>\\n Today's date: 2\\n</env>"), ask),
			relation: Diverges, cause: causeDate, class: classSession, path: "system[0]", at: 21,
		},
		{
			name: "a line of an env block that no rule knows", a: msgs("", txt("<env>\\nShell: 1\\n</env>"), ask), b: msgs("", txt("<env>\\nShell: 2\\n</env>"), ask),
			relation: Diverges, cause: causeEnvironment, class: classSession, path: "system[0]", at: 13,
		},
		{
			name: "system message moved", a: msgs("", txt("s"), `{"role":"system","content":"late"},`+ask), b: msgs("", txt("s"), ask+`,{"role":"system","content":"late"}`),
			relation: Diverges, cause: causeSystemMoved, class: classTurn, path: "messages[0].content",
		},
		{
			name: "reasoning dropped", a: base, b: strings.Replace(base, call, bare, 1),
			relation: Diverges, cause: causeReasoningDropped, class: classTurn, path: "messages[1].content[0]",
		},
		{
			name: "reasoning added", a: strings.Replace(base, call, bare, 1), b: base,
			relation: Diverges, cause: causeReasoningAdded, class: classTurn, path: "messages[1].content[0]",
		},
		{
			name: "reasoning changed", a: base, b: strings.Replace(base, `"hm"`, `"ha"`, 1),
			relation: Diverges, cause: causeReasoningChanged, class: classTurn, path: "messages[1].content[0]", at: 1,
		},
		{
			name: "arguments respelled", a: base, b: strings.Replace(base, `{"x":1,"y":2}`, `{"y":2, "x":1}`, 1),
			relation: Diverges, cause: causeArgumentsRespelled, class: classTurn, path: "messages[1].content[1]", at: 4,
		},
		{
			name: "arguments changed", a: base, b: strings.Replace(base, `{"x":1,"y":2}`, `{"x":1,"y":3}`, 1),
			relation: Diverges, cause: causeCallChanged, class: classTurn, path: "messages[1].content[1]", at: 13,
		},
		{
			name: "call ids, where they are rendered", a: base, b: strings.ReplaceAll(base, `"c1"`, `"c2"`), prompt: Prompt{CallIDs: true},
			relation: Diverges, cause: causeCallIDChanged, class: classTurn, path: "messages[1].content[1]", at: 1,
		},
		{
			name: "result changed", a: base, b: strings.Replace(base, `"ok"`, `"no"`, 1),
			relation: Diverges, cause: causeResultChanged, class: classTurn, path: "messages[2].content[0].content",
		},
		{
			name: "a reminder that is sent again at the end", a: msgs("", txt("s"), ask+`,{"role":"user","content":"<system-reminder>x</system-reminder>"}`),
			b:        msgs("", txt("s"), ask+","+call+`,{"role":"user","content":"<system-reminder>x</system-reminder>"}`),
			relation: Diverges, cause: causeReminder, class: classTurn, path: "messages[1].content[0]",
		},
		{
			name: "user text, cut between characters", a: msgs("", txt("s"), `{"role":"user","content":"a\u00e9"}`), b: msgs("", txt("s"), `{"role":"user","content":"a\u00e8"}`),
			relation: Diverges, cause: causeUserText, class: classTurn, path: "messages[0].content", at: 1,
		},
		{
			name: "compacted", a: base, b: msgs(toolA+","+toolB, txt("You are.\\nB"), `{"role":"user","content":"This session is being continued from a previous conversation that"}`),
			relation: Diverges, cause: causeCompacted, class: classTurn, path: "messages[0].content",
		},
		{
			name: "history rewritten", a: base, b: msgs(toolA+","+toolB, txt("You are.\\nB"), ask+`,{"role":"user","content":"other"}`),
			relation: Diverges, cause: causeHistoryRewritten, class: classTurn, path: "messages[1].content",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := messages.Decode([]byte(tt.a), nil)
			require.NoError(t, err)
			b, err := messages.Decode([]byte(tt.b), nil)
			require.NoError(t, err)
			o := &CompareOptions{Prompt: tt.prompt}
			br := Compare(a, b, o)
			t.Log(br)
			type seen struct {
				Relation Relation
				Cause    string
				Class    string
				Path     string
				At       int
				Cosmetic string
			}
			if tt.relation == Diverges && tt.class == "" {
				tt.class = classStatic
			}
			got := seen{br.Relation, br.Cause, br.Class, br.B.Path, br.B.At, br.cosmetic}
			if br.Relation != Diverges {
				got.Path = ""
			}
			if diff := cmp.Diff(seen{tt.relation, tt.cause, tt.class, tt.path, tt.at, tt.cosmetic.String()}, got); diff != "" {
				t.Error(diff)
			}
			checkBreak(t, a, b, o)
		})
	}
}

// checkBreak checks properties of every divergence.
func checkBreak(t *testing.T, a, b *block.Request, o *CompareOptions) {
	t.Helper()
	br, back := Compare(a, b, o), Compare(b, a, o)
	require.Equal(t, br.Offset, back.Offset, "not symmetric")
	require.Equal(t, br.A, back.B)
	require.LessOrEqual(t, br.Offset, min(br.A.Bytes, br.B.Bytes))
	require.GreaterOrEqual(t, br.Offset, int64(0))
	require.True(t, utf8.ValidString(br.A.Excerpt) && utf8.ValidString(br.B.Excerpt))
	require.LessOrEqual(t, len(br.B.Excerpt), 64)
	require.NotContains(t, br.String(), "\n")
	for _, r := range []*block.Request{a, b} {
		self := Compare(r, r, o)
		require.Equal(t, Same, self.Relation)
		require.Zero(t, self.cosmetic)
	}
	var history History
	require.Zero(t, history.Next(a, o).Offset)
	tb := history.Next(b, o)
	require.Equal(t, br.Relation, tb.Relation)
	if tb.Relation != Shorter {
		require.LessOrEqual(t, tb.Offset, br.Offset)
		require.GreaterOrEqual(t, tb.Offset+max(tb.within, 1), br.Offset)
	}
	require.Equal(t, br.B.Bytes, tb.B.Bytes)
	require.Equal(t, br.A.Bytes, tb.A.Bytes)
}

// TestCompareAPIs compares one conversation in three APIs.
func TestCompareAPIs(t *testing.T) {
	bodies := []string{
		`{"tools":[{"name":"a","description":"A","input_schema":{ "type":"object"}}],"system":"You","messages":[{"role":"user","content":"hi"}]}`,
		`{"tools":[{"type":"function","function":{"name":"a","description":"A","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"You"},{"role":"user","content":"hi"}]}`,
		`{"tools":[{"type":"function","name":"a","description":"A","parameters":{"type":"object"}}],"instructions":"You","input":"hi"}`,
	}
	for i := range bodies {
		for k := range bodies {
			a, err := decoders[i]([]byte(bodies[i]), nil)
			require.NoError(t, err)
			b, err := decoders[k]([]byte(bodies[k]), nil)
			require.NoError(t, err)
			br := Compare(a, b, nil)
			require.Equal(t, Same, br.Relation, br.String())
		}
	}
}

// TestHistoryInstruction finds the divergence of requests with a message that consists of one instruction: a system turn takes its place.
func TestHistoryInstruction(t *testing.T) {
	request := func(instruction, answer string) *block.Request {
		r, err := messages.Decode([]byte(`{"messages":[{"role":"user","content":"hello"},{"role":"user","content":[{"type":"mid_conv_system","content":[`+
			`{"type":"text","text":"one"},{"type":"text","text":"`+instruction+`"}]}]},{"role":"assistant","content":"`+answer+`"}]}`), nil)
		require.NoError(t, err)
		return r
	}
	first := request("two", "a1")
	for _, second := range []*block.Request{request("two", "a2"), request("2", "a1")} {
		var h History
		h.Next(first, nil)
		got, want := h.Next(second, nil), Compare(first, second, nil)
		require.Equal(t, want.Relation, got.Relation)
		require.Equal(t, want.Cause, got.Cause)
		require.Equal(t, want.B.Path, got.B.Path)
	}
}

// TestHistoryBounded records a session of a million lines.
func TestHistoryBounded(t *testing.T) {
	var history History
	list := []string{`{"role":"system","content":"` + strings.Repeat(strings.Repeat("x", 100)+`\n`, 10_000) + `"}`}
	for i := range 3000 {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"q%d"},{"role":"assistant","content":"a%d"}`, i, i))
	}
	for _, n := range []int{2500, 3001} {
		r, err := chat.Decode([]byte(`{"messages":[`+strings.Join(list[:n], ",")+`]}`), nil)
		require.NoError(t, err)
		br := history.Next(r, nil)
		require.Equal(t, Extends, br.Relation)
		require.LessOrEqual(t, len(history.marks), 2048)
	}
	list[2000] = `{"role":"user","content":"other"},{"role":"assistant","content":"a"}`
	r, err := chat.Decode([]byte(`{"messages":[`+strings.Join(list, ",")+`]}`), nil)
	require.NoError(t, err)
	br := history.Next(r, nil)
	require.Equal(t, Diverges, br.Relation)
	require.Less(t, br.within, int64(4096))
	require.Equal(t, Same, history.Next(r, nil).Relation)
}

func FuzzCompare(f *testing.F) {
	f.Add(0, `{"system":"a\nCurrent date: 1","messages":[{"role":"user","content":"x"}]}`, `{"system":"a\nCurrent date: 2","messages":[{"role":"user","content":"x"}]}`, byte(0))
	f.Add(1, `{"messages":[{"role":"user","content":"é"}],"tools":[{"type":"function","function":{"name":"a","cache_control":{}}}]}`, `{"messages":[{"role":"user","content":"è"}]}`, byte(7))
	f.Add(2, `{"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"r"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`, `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{ }"}]}`, byte(1))
	f.Fuzz(func(t *testing.T, api int, first, second string, mode byte) {
		a, err := decoders[uint(api)%3]([]byte(first), nil)
		if err != nil {
			return
		}
		b, err := decoders[uint(api)%3]([]byte(second), nil)
		if err != nil {
			return
		}
		checkBreak(t, a, b, &CompareOptions{Prompt: Prompt{
			SystemFirst: mode&1 != 0, CallIDs: mode&4 != 0,
		}})
	})
}
