// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

type decoder = func([]byte, *block.Limits) (*block.Request, error)

func TestStabilizeOptions(t *testing.T) {
	canonical := &Options{Canonical: true}
	relocate := &Options{Relocate: true}
	deferred := &Options{DeferredLast: true}
	mark := `# About this session\n`
	tests := []struct {
		name       string
		decode     decoder
		o          *Options
		body, want string
		changes    string // rule@path+offset, in order
	}{
		{
			"breakpoints, strings and lists of Messages", messages.Decode, canonical,
			`{"system":[{"type":"text","text":"a\u0062","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[` +
				`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"}],"cache_control":{"type":"ephemeral"}},` +
				`{"cache_control":{"type":"ephemeral"},"type":"text","text":"u","x":1}]}],"tools":[{"name":"t","input_schema":{"cache_control":1},"cache_control":null}]}`,
			`{"system":"a\u0062","messages":[{"role":"user","content":[` +
				`{"type":"tool_result","tool_use_id":"c","content":"r"},` +
				`{"type":"text","text":"u","x":1}]}],"tools":[{"name":"t","input_schema":{"cache_control":1}}]}`,
			"canonical/cache@tools[0]+319 canonical/content-form@system+10",
		},
		{
			"ids of items but not of calls", responses.Decode, canonical,
			`{"input":[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"u"}]},` +
				`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{ }"},` +
				`{"type":"function_call_output","id":"fco_1","call_id":"c1","output":"o"},{"type":"item_reference","id":"x"}]}`,
			`{"input":[{"type":"message","role":"user","content":"u"},` +
				`{"type":"reasoning","summary":[],"encrypted_content":"e"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{ }"},` +
				`{"type":"function_call_output","call_id":"c1","output":"o"},{"type":"item_reference","id":"x"}]}`,
			"canonical/content-form@input[0].content+65 canonical/item-id@input[0]+10",
		},
		{
			"parts that say more stay lists", chat.Decode, canonical,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a","x":1}]},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a","x":1}]},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
			"",
		},
		{
			"the memory directory, in a list after its breakpoint", messages.Decode, relocate,
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: a=1;"},{"type":"text","text":"A\nYou have a persistent file-based memory at ` +
				"`/home/u/.claude/projects/-p/memory/`" + `. Use it.\nB","cache_control":{"type":"ephemeral"}}],"messages":[]}`,
			`{"system":[{"type":"text","text":"A\nYou have a persistent file-based memory at ` +
				"`(see the end)`" + `. Use it.\nB","cache_control":{"type":"ephemeral"}},{"type":"text","text":"` + mark +
				`Memory directory: /home/u/.claude/projects/-p/memory/"}],"messages":[]}`,
			"claude-code/billing@system[0]+11 claude-code/memory-dir@system[1]+69",
		},
		{
			"env, date and git status of Claude Code", messages.Decode, relocate,
			`{"system":"A\n<env>\nWorking directory: /p\nPlatform: linux\n</env>\nB\ngitStatus: now\nStatus:\n\nRecent commits:\nabc x\n\nC\nToday's date: 1\nD","messages":[]}`,
			`{"system":"A\n(see the end)\nB\n\nC\nD\n\n` + mark +
				`<env>\nWorking directory: /p\nPlatform: linux\n</env>\ngitStatus: now\nStatus:\n\nRecent commits:\nabc x\nToday's date: 1","messages":[]}`,
			"env-block@system+10 claude-code/git-status@system+10 env/date@system+10",
		},
		{
			"the environment section of Claude Code 2.1.112", messages.Decode, relocate,
			`{"system":"# causeEnvironment\n - Primary working directory: /p\n - Is a git repository: true\n - OS Version: 6\nB","messages":[]}`,
			`{"system":"# causeEnvironment\n - Primary working directory: (see the end)\nB\n\n` + mark +
				` - Primary working directory: /p\n - Is a git repository: true\n - OS Version: 6","messages":[]}`,
			"claude-code/cwd@system+10 claude-code/is-git@system+10 env/os@system+10",
		},
		{
			"sentences about the folder stay", chat.Decode, relocate,
			`{"messages":[{"role":"system","content":"## Workspace\nWorking directory: /p\nTreat it well.\nCurrent date: 2\n<!-- x -->"},{"role":"user","content":"Working directory: /q\nCurrent date: 2\nx"}]}`,
			`{"messages":[{"role":"system","content":"## Workspace\nWorking directory: (see the end)\nTreat it well.\n<!-- x -->\n\n` + mark +
				`Working directory: /p\nCurrent date: 2"},{"role":"user","content":"Working directory: /q\nCurrent date: 2\nx"}]}`,
			"cwd@messages[0].content+40 current-date@messages[0].content+40",
		},
		{
			"fragments at the end stay", chat.Decode, relocate,
			`{"messages":[{"role":"developer","content":"A\n\nCurrent date: 2\nCurrent working directory: /p"},{"role":"user","content":"x"}]}`,
			`{"messages":[{"role":"developer","content":"A\n\nCurrent date: 2\nCurrent working directory: /p"},{"role":"user","content":"x"}]}`,
			"",
		},
		{
			"skill roots, as a block of the last leading message", responses.Decode, relocate,
			`{"instructions":"I","input":[{"role":"developer","content":[{"type":"input_text","text":"### Skill roots\n- ` + "`r0` = `/h/skills`" + `\nB"}]},{"role":"user","content":"x"}]}`,
			`{"instructions":"I","input":[{"role":"developer","content":[{"type":"input_text","text":"### Skill roots\n- ` + "`r0` = `(see the end)`" + `\nB"},{"type":"input_text","text":"` +
				mark + "- `r0` = `/h/skills`" + `"}]},{"role":"user","content":"x"}]}`,
			"codex/skill-root@input[0].content[0]+60",
		},
		{
			"a folder in the description of a tool", chat.Decode, relocate,
			`{"messages":[{"role":"system","content":"A"}],"tools":[{"type":"function","function":{"name":"bash","description":"Run.\n\nUse ` +
				"`/tmp/u`" + ` for temporary work outside.","parameters":{"b":1,"a":2}}}]}`,
			`{"messages":[{"role":"system","content":"A\n\n` + mark + `Directory for temporary work: /tmp/u"}],"tools":[{"type":"function","function":{"name":"bash","description":"Run.\n\nUse ` +
				"`(see the end)`" + ` for temporary work outside.","parameters":{"b":1,"a":2}}}]}`,
			"opencode/temp-dir@tools[0]+55",
		},
		{
			"a block of nothing else goes", messages.Decode, relocate,
			`{"system":[{"type":"text","text":"Current date: 2"},{"type":"text","text":"A"}],"messages":[]}`,
			`{"system":[{"type":"text","text":"A"},{"type":"text","text":"` + mark + `Current date: 2"}],"messages":[]}`,
			"current-date@system[0]+11",
		},
		{
			"an end that does not come", messages.Decode, relocate,
			`{"system":"<env>\n<env>\nA","messages":[]}`, `{"system":"<env>\n<env>\nA","messages":[]}`, "",
		},
		{
			"deferred tools last, unknown members and spelling kept", messages.Decode, deferred,
			`{"messages":[],"tools":[{"name":"c","input_schema":{},"defer_loading":true, "z":1}, {"name":"b","input_schema":{ }},{"name":"a","input_schema":{},"defer_loading":true},{"name":"d","input_schema":{}}]}`,
			`{"messages":[],"tools":[{"name":"b","input_schema":{ }},{"name":"d","input_schema":{}},{"name":"c","input_schema":{},"defer_loading":true, "z":1},{"name":"a","input_schema":{},"defer_loading":true}]}`,
			"deferred-last@tools[0]+24 deferred-last@tools[2]+116",
		},
		{
			"tools by name, a namespace as one", responses.Decode, &Options{SortTools: true},
			`{"input":"x","tools":[{"type":"function","name":"q"},{"type":"namespace","name":"m","tools":[{"type":"function","name":"z"},{"type":"function","name":"y"}]},{"type":"web_search"}]}`,
			`{"input":"x","tools":[{"type":"namespace","name":"m","tools":[{"type":"function","name":"z"},{"type":"function","name":"y"}]},{"type":"function","name":"q"},{"type":"web_search"}]}`,
			"sort-tools@tools[1].tools[0]+93 sort-tools@tools[0]+22",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.decode([]byte(tt.body), nil)
			require.NoError(t, err)
			rep, err := Stabilize(r, tt.o)
			require.NoError(t, err)
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			if diff := cmp.Diff(tt.want, string(out)); diff != "" {
				t.Error(diff)
			}
			var changes []string
			for _, c := range rep.Changes {
				require.Contains(t, `{["`, tt.body[c.Offset:c.Offset+1], c.Path)
				changes = append(changes, fmt.Sprintf("%s@%s+%d", c.Rule, c.Path, c.Offset))
			}
			if diff := cmp.Diff(tt.changes, strings.Join(changes, " ")); diff != "" {
				t.Error(diff)
			}
			again, err := Stabilize(r, tt.o)
			require.NoError(t, err)
			require.Empty(t, again.Changes, "not idempotent")
			require.Equal(t, rep.Stable, again.Stable)
		})
	}
}

func TestStabilizeStable(t *testing.T) {
	tests := []struct {
		name, body string
		want       Stable
	}{
		{"a date", `{"system":"You.\nToday's date is 1\nB","messages":[]}`, Stable{Offset: 5, Class: classSession, Cause: causeDate, Path: "system"}},
		{"user text", `{"system":"You.","messages":[{"role":"user","content":"x"}]}`, Stable{Offset: 4, Class: classTurn, Cause: causeUserText, Path: "messages[0].content"}},
		{
			"a reminder with a path", `{"system":"You.","messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nContents of /p/CLAUDE.md\n</system-reminder>"}]}]}`,
			Stable{Offset: 22, Class: classSession, Cause: causeProjectFile, Path: "messages[0].content[0]"},
		},
		{"nothing", `{"system":"You.","messages":[]}`, Stable{Offset: 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := messages.Decode([]byte(tt.body), nil)
			require.NoError(t, err)
			rep, err := Stabilize(r, &Options{})
			require.NoError(t, err)
			if diff := cmp.Diff(tt.want, rep.Stable); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStabilizeRules adds a user's rule.
func TestStabilizeRules(t *testing.T) {
	r, err := chat.Decode([]byte(`{"messages":[{"role":"system","content":"A\nTenant: acme (gold)\nB"}]}`), nil)
	require.NoError(t, err)
	rules, err := ParseRules([]byte(`[{"id": "mine/tenant", "in": ["system"], "line": "Tenant: ", "from": "Tenant: ", "to": " (",
		"cause": "environment", "class": "session", "action": "point", "label": "Tenant is "}]`))
	require.NoError(t, err)
	rules = append(DefaultRules(), rules...)
	rep, err := Stabilize(r, &Options{Relocate: true, Rules: rules})
	require.NoError(t, err)
	require.Equal(t, "acme", rep.Changes[0].Text)
	require.Equal(t, "A\nTenant: (see the end) (gold)\nB\n\n# About this session\nTenant is acme", r.Turns()[0].Text(""))
}

// TestStabilizeWithoutBody applies all options to requests that were built or detached from their bodies.
func TestStabilizeWithoutBody(t *testing.T) {
	body := `{"system":[{"type":"text","text":"` + head + `"},{"type":"text","text":"A"},{"type":"text","text":"Current date: 2\nB","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":"x"}],"tools":[{"name":"d","input_schema":{},"defer_loading":true},{"name":"a","input_schema":{}}]}`
	with, err := messages.Decode([]byte(body), nil)
	require.NoError(t, err)
	off, err := messages.Decode([]byte(body), nil)
	require.NoError(t, err)
	off.Detach()
	built := block.NewRequest(with.Turns()...)
	require.NoError(t, built.SetTools(with.Tools()...))
	all := &Options{Canonical: true, Relocate: true, DeferredLast: true}
	for _, r := range []*block.Request{with, off, built} {
		rep, err := Stabilize(r, all)
		require.NoError(t, err)
		require.Equal(t, len(head), rep.Bytes())
		require.Equal(t, "A|B|# About this session\nCurrent date: 2", r.Turns()[0].Text("|"))
		require.Equal(t, "a", r.Tools()[0].Name)
		require.Nil(t, r.Turns()[0].Blocks[1].Cache)
		require.Equal(t, Same, Compare(with, r, nil).Relation)
		again, err := Stabilize(r, all)
		require.NoError(t, err)
		require.Empty(t, again.Changes)
	}
}

// TestStabilizeHostile applies all options to a body of many fragments. The time must be linear.
func TestStabilizeHostile(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 4_000
	}
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"role":"system","content":[{"type":"text","text":"<env>\nCurrent date: %d\nx"}]}`, i))
	}
	r, err := chat.Decode([]byte(`{"messages":[`+strings.Join(list, ",")+`]}`), nil)
	require.NoError(t, err)
	rep, err := Stabilize(r, &Options{Canonical: true, Relocate: true})
	require.NoError(t, err)
	require.Len(t, rep.Changes, 1, "more than 256 fragments stay")
	require.Equal(t, Same, Compare(r, r, nil).Relation)
}

func TestStabilizeAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("allocations differ under the race detector")
	}
	r, err := messages.Decode([]byte(`{"system":[{"type":"text","text":"You are an agent."}],"messages":[{"role":"user","content":"`+head+`"}]}`), nil)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if rep, err := Stabilize(r, nil); err != nil || rep.Changes != nil {
			t.Fatal(rep, err)
		}
	}))
}

// others returns the turns that must not change.
func others(r *block.Request) (out []block.Turn) {
	for _, t := range r.Turns() {
		if t.Role != block.RoleSystem && t.Role != block.RoleDeveloper {
			out = append(out, t)
		}
	}
	return out
}

func systemText(r *block.Request) string {
	var b strings.Builder
	for _, t := range r.Turns() {
		if t.Role == block.RoleSystem || t.Role == block.RoleDeveloper {
			b.WriteString(t.Text(""))
		}
	}
	return b.String()
}

var decoders = []decoder{messages.Decode, chat.Decode, responses.Decode}

func FuzzApply(f *testing.F) {
	f.Add(0, `{"system":[{"type":"text","text":"`+head+`"},{"type":"text","text":"You"}],"messages":[{"role":"user","content":"`+head+`"}]}`)
	f.Add(1, `{"messages":[{"role":"system","content":"`+head+`\nWorking directory: /p\nx"},{"role":"user","content":[{"type":"text","text":"Current date: 1"}]}]}`)
	f.Add(2, `{"instructions":"`+head+`You","input":[{"id":"m","role":"user","content":[{"type":"input_text","text":"u"}]}],"tools":[{"type":"function","name":"f","description":"Use `+"`/t`"+` for temporary work","defer_loading":true},{"type":"custom","name":"a"}]}`)
	f.Fuzz(func(t *testing.T, api int, body string) {
		decode := decoders[uint(api)%3]
		r, err := decode([]byte(body), nil)
		if err != nil {
			return
		}
		was, err := decode([]byte(body), nil)
		require.NoError(t, err)
		_, err = Stabilize(r, nil)
		require.NoError(t, err)
		out, err := r.AppendBody(nil)
		require.NoError(t, err)
		now, err := decode(out, nil)
		require.NoError(t, err)
		require.True(t, equalTurns(others(was), others(now)), "turns changed: %s", out)
		require.True(t, strings.HasSuffix(systemText(was), systemText(now)), "system text changed: %s", out)
		require.Equal(t, was.Params(), now.Params())
		require.Equal(t, len(was.Tools()), len(now.Tools()))
		again, err := Stabilize(now, nil)
		require.NoError(t, err)
		if len(again.Changes) > 0 {
			t.Fatalf("not idempotent: %v", again)
		}
		all := &Options{Canonical: true, Relocate: true, DeferredLast: true, SortTools: true}
		if _, err = Stabilize(r, all); err != nil {
			return // a message that its API would refuse
		}
		for i, turn := range others(r) {
			require.Equal(t, others(was)[i].Text("|"), turn.Text("|"))
		}
		rep, err := Stabilize(r, all)
		require.NoError(t, err)
		require.Empty(t, rep.Changes, "not idempotent")
	})
}

func equalTurns(a, b []block.Turn) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}
