// SPDX-License-Identifier: Apache-2.0

package preamble

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

// TestRelocateAgain relocates in requests that were relocated before, also in canonical form.
func TestRelocateAgain(t *testing.T) {
	tests := []struct {
		name, body, want string
		o                Options
	}{
		{
			"a list that lost all but one text", `{"messages":[{"role":"system","content":[{"type":"text","text":"Current date: 2"},{"type":"text","text":"A"}]},{"role":"system","content":"B"}]}`,
			`{"messages":[{"role":"system","content":"A"},{"role":"system","content":"B\n\n# About this session\nCurrent date: 2"}]}`,
			Options{Canonical: true, Relocate: true},
		},
		{
			"after text that moved before", `{"messages":[{"role":"system","content":"A\nCurrent date: 3\nB\n\n# About this session\nPlatform: x"}]}`,
			`{"messages":[{"role":"system","content":"A\nB\n\n# About this session\nPlatform: x\nCurrent date: 3"}]}`,
			Options{Relocate: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := chat.Decode([]byte(tt.body), nil)
			require.NoError(t, err)
			_, err = Stabilize(r, &tt.o)
			require.NoError(t, err)
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			if diff := cmp.Diff(tt.want, string(out)); diff != "" {
				t.Error(diff)
			}
			again, err := Stabilize(r, &tt.o)
			require.NoError(t, err)
			require.Empty(t, again.Changes)
		})
	}
}

// TestLinesWithoutEnd scans 300,000 lines that match a rule whose End never occurs. Quadratic time would take minutes.
func TestLinesWithoutEnd(t *testing.T) {
	n := 150_000
	if testing.Short() {
		n = 20_000
	}
	body := `{"system":"` + strings.Repeat(`<env>\ngitStatus:\n`, n) + `","messages":[]}`
	r, err := messages.Decode([]byte(body), nil)
	require.NoError(t, err)
	rep, err := Stabilize(r, &Options{Relocate: true})
	require.NoError(t, err)
	require.Empty(t, rep.Changes)
	var history History
	history.Next(r, nil)
	require.Equal(t, Same, history.Next(r, nil).Relation)
}

// TestCompareEdges tests cases in addition to TestCompare.
func TestCompareEdges(t *testing.T) {
	const (
		tail = `A\n\n# About this session\n<env>\nWorking directory: /p\nShell: %\n</env>`
		ask  = `{"role":"user","content":"hi"}`
		use  = `{"role":"assistant","content":[%{"type":"tool_use","id":"c","name":"t","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"d"},{"type":"tool_reference","tool_name":"d"}]}]}`
		tool = `{"name":"t","input_schema":{}},{"name":"d","description":"%","input_schema":{},"defer_loading":true}`
	)
	page := strings.Repeat("x", 4096)
	with := func(s, v string) string { return strings.Replace(s, "%", v, 1) }
	tests := []struct {
		name, a, b string
		relation   Relation
		cause      string
		bytes      int64 // of b, 0 for any
	}{
		{
			"a line of a block that moved", msgs("", txt(with(tail, "1")), ask), msgs("", txt(with(tail, "2")), ask),
			Diverges, causeEnvironment, 0,
		},
		{
			"reasoning that only its origin can read", msgs(tool, txt("s"), ask+","+with(use, "")),
			msgs(tool, txt("s"), ask+","+with(use, `{"type":"redacted_thinking","data":"x"},`)), Same, "", 0,
		},
		{
			"a deferred tool is there once", msgs(with(tool, "a"), txt("s"), ask+","+with(use, "")), msgs(with(tool, "b"), txt("s"), ask+","+with(use, "")),
			Diverges, causeResultChanged, 155,
		},
		{
			"one text, or two of the same bytes", msgs("", txt("s"), `{"role":"user","content":[`+txt(page+page)+`]}`),
			msgs("", txt("s"), `{"role":"user","content":[`+txt(page)+","+txt(page)+`]}`), Diverges, causeUserText, 0,
		},
		{
			"compacted", msgs("", txt("s"), ask), msgs("", txt("s"), `{"role":"user","content":"Another language model started to solve this problem"}`),
			Diverges, causeCompacted, 0,
		},
		{
			"a tool is gone", msgs(`{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}`, txt("s"), ask), msgs(`{"name":"a","input_schema":{}}`, txt("s"), ask),
			Diverges, causeToolRemoved, 0,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := messages.Decode([]byte(tt.a), nil)
			require.NoError(t, err)
			b, err := messages.Decode([]byte(tt.b), nil)
			require.NoError(t, err)
			br := Compare(a, b, nil)
			t.Log(br)
			require.Equal(t, tt.relation, br.Relation)
			require.Equal(t, tt.cause, br.Cause)
			if tt.bytes > 0 {
				require.Equal(t, tt.bytes, br.B.Bytes)
			}
			checkBreak(t, a, b, nil)
			var history History
			history.Next(a, nil)
			tb := history.Next(b, nil)
			require.Equal(t, tt.relation, tb.Relation)
			require.Equal(t, tt.cause, tb.Cause)
		})
	}
}

func TestParseRules(t *testing.T) {
	raw, err := json.Marshal(DefaultRules())
	require.NoError(t, err)
	again, err := ParseRules(raw)
	require.NoError(t, err)
	require.Equal(t, DefaultRules(), again)
	const valid = `"id":"a","in":["user"],"line":"x","cause":"date","class":"turn"`
	_, err = ParseRules([]byte(`[{` + valid + `}]`))
	require.NoError(t, err)
	for text, want := range map[string]string{
		`{}`:                                     "preamble: rules: json: ",
		`[] []`:                                  "preamble: rules: data after the list",
		`[{"lines":"x"}]`:                        `preamble: rules: json: unknown field "lines"`,
		`[{"in":["everywhere"]}]`:                `"everywhere" is not system, tools, user`,
		`[{}]`:                                   `preamble: rule 0 "": no id`,
		`[{` + valid + `},{"id":"b"}]`:           `preamble: rule 1 "b": in is empty`,
		`[{"id":"b","in":["tools"]}]`:            "no line",
		`[{"id":"b","in":["tools"],"line":"x"}]`: "no cause",
		`[{` + valid + `,"class":"year"}]`:       `class "year" is not static, session, turn or volatile`,
		`[{` + valid + `,"action":"remove"}]`:    `action "remove" is neither move nor point`,
		`[{` + valid + `,"action":"point"}]`:     "action point needs from",
	} {
		_, err := ParseRules([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}
