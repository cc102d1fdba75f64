// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// accepts reports whether the automaton accepts a text.
func (a *automaton) accepts(text string) bool {
	at := 0
next:
	for _, r := range text {
		for to, pairs := range a.edges[at] {
			if within(pairs, r) {
				at = to
				continue next
			}
		}
		return false
	}
	return a.accept[at]
}

// The automata of texts accept those that the schema permits, as regular expressions of JavaScript.
func TestTextAutomata(t *testing.T) {
	for _, tt := range []struct {
		schema, yes, not string // texts between slashes
	}{
		{`{"minLength":2}`, "ab/a\n/日本/abc", "/a/日"},
		{`{"maxLength":2}`, "/a/日本", "abc"},
		{`{"minLength":1,"maxLength":3}`, "a/abc/<b>", "/abcd"},
		{`{"pattern":"b+"}`, "b/abba/a\nb", "/a"},
		{`{"pattern":"^[a-c]{2,3}$"}`, "ab/abc", "a/abcd/xab/ab\n"},
		{`{"pattern":"^ab|cd$"}`, "abx/xcd", "xab/cdx"},
		{`{"pattern":"^$"}`, "", "a"},
		{`{"pattern":"(?i)é.$"}`, "É1/xéx", "é/é\n/é\u2028"},
		{`{"pattern":"^\\S+$"}`, "a/日", " /a b/\u00a0/\u001c"},
		{`{"pattern":"^[^\\s]$"}`, "a", " /\u00a0"},
		{`{"pattern":"^\\u00e9$"}`, "é", "e"},
		{`{"pattern":"^[a-z]{0,900}$","maxLength":3}`, "/abc", "abcd/A"},
		{`{"pattern":"^a*$","minLength":2}`, "aa", "a/ab"},
		{`{"pattern":["a","b"]}`, "ab/b a", "a/b"},
		{`{"pattern":"(?=a)"}`, "a/b", ""}, // has no equivalent
		{`{"pattern":"\\bb"}`, "a/b", ""},
		{`{"format":"date"}`, "2026-01-31/2024-02-29/2026-02-28", "2026-02-29/2026-04-31/2026-13-01/x"},
		{`{"format":"email"}`, "a.b+c@d-e.org", "a/a@/@b/a@-"},
		{`{"format":"ipv4"}`, "10.0.0.255", "10.0.0.256/1.2.3/01.2.3.4"},
		{`{"format":"hostname"}`, "a-b.c", "-a/a-/a..b"},
		{`{"format":"uri"}`, "https:%2f%2Fx?y#z", "x/a b:c/%"},
		{`{"format":"time","maxLength":9}`, "12:00:00Z", "12:00:00.5Z/25:00:00Z"},
		{`{"format":"color"}`, "x/", ""},
	} {
		var k keywords
		require.NoError(t, json.Unmarshal([]byte(tt.schema), &k))
		rule := k.textRule()
		patterns, not, least, most := rule.machines()
		a, ok := product(new(int), func(states, wide int) bool { return states > 4096 }, append(append(patterns, not...), counter{least, most})...)
		require.True(t, ok && a != nil, tt.schema)
		for text := range strings.SplitSeq(tt.yes, "/") {
			require.True(t, a.accepts(text), "%s: %q", tt.schema, text)
			require.True(t, rule.reader()(text), "%s: %q", tt.schema, text)
		}
		for text := range strings.SplitSeq(tt.not, "/") {
			if tt.not != "" {
				require.False(t, a.accepts(text), "%s: %q", tt.schema, text)
				require.False(t, rule.reader()(text), "%s: %q", tt.schema, text)
			}
		}
	}
}

// A text does not contain what ends it, and what no text can follow is reported.
func TestRuledText(t *testing.T) {
	words := []string{"</p>"}
	a, ok := product(new(int), func(int, int) bool { return false }, counter{1, 6}, without{newSearcher(words)})
	require.True(t, ok)
	require.True(t, a.accepts("<</p"))
	require.False(t, a.accepts("x</p>y"))

	for _, r := range []textRule{{most: 1, least: 2}, {most: 2, patterns: []string{"^abc$"}}, {most: -1, patterns: []string{"^<.p>$", "/"}}} {
		_, ok := ruledText{r, words}.ebnf(new(int))
		require.False(t, ok, r)
	}
	grammar, ok := ruledText{textRule{most: 900}, words}.ebnf(new(int))
	require.True(t, ok)
	require.Equal(t, "root[max_chars=900] ::= clear\nclear ::= TagDispatch(loop_after_dispatch=false, excludes=(\"</p>\"))\n", grammar)
	grammar, ok = ruledText{textRule{least: 1, most: -1}, words}.ebnf(new(int))
	require.True(t, ok)
	require.Equal(t, `root ::= clear0
clear0 ::= [^\u003c] clear | [\u003c] begun
begun ::= "" | [^\u002f\u003c] clear | [\u003c] begun
clear ::= TagDispatch(loop_after_dispatch=false, excludes=("</p>"))
`, grammar)

	// What is too large is enforced in part.
	grammar, ok = ruledText{textRule{least: 1 << 20, most: 1 << 21}, words}.ebnf(new(int))
	require.True(t, ok)
	require.Contains(t, grammar, "root[max_chars=2097152] ::= clear0")
	require.Less(t, len(grammar), 4<<10)
	grammar, ok = ruledText{textRule{most: -1, patterns: []string{"^(.{900}a|.{800}b)$"}}, words}.ebnf(new(int))
	require.True(t, ok)
	require.Less(t, len(grammar), 4<<10)
}

// Schemas are rewritten where xgrammar enforces only a part of them, and only there.
func TestPlainSchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type": "string"}`: "",
		`{"$ref":"#/$defs/a","description":"d","$defs":{"a":{"type":"string","pattern":"^a$"}}}`: "",
		`{"allOf":[{"type":"integer"}]}`:                                                                                              "",
		`{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`:                                                                "",
		`{"allOf":[{"type":"integer","minimum":1},{"minimum":2,"maximum":3},{"type":"number"}]}`:                                      `{"maximum":3,"minimum":2,"type":["integer"]}`,
		`{"type":"integer","anyOf":[{"maximum":1},{"minimum":5}]}`:                                                                    `{"anyOf":[{"maximum":1,"type":"integer"},{"minimum":5,"type":"integer"}]}`,
		`{"$ref":"#/$defs/a","maxLength":3,"$defs":{"a":{"type":"string"}}}`:                                                          `{"maxLength":3,"type":"string","$defs":{"a":{"type":"string"}}}`,
		`{"allOf":[{"enum":[1,2]},{"const":2}]}`:                                                                                      `{"enum":[2]}`,
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`:                                                                            "", // permits nothing
		`{"type":"object","properties":{"a":{}},"required":["a","b"]}`:                                                                `{"type":"object","properties":{"a":{},"b":true},"required":["a","b"]}`,
		`{"required":["b"],"additionalProperties":{"type":"null"}}`:                                                                   `{"required":["b"],"additionalProperties":{"type":"null"},"properties":{"b":{"type":"null"}}}`,
		`{"required":["b"],"additionalProperties":{"type":"integer","anyOf":[{"minimum":1}]}}`:                                        `{"required":["b"],"additionalProperties":{"minimum":1,"type":"integer"},"properties":{"b":{"minimum":1,"type":"integer"}}}`,
		`{"required":["x_b"],"patternProperties":{"^x_":{"type":"null"}},"additionalProperties":false}`:                               `{"required":["x_b"],"patternProperties":{"^x_[\\s\\S]*$":{"type":"null"}},"additionalProperties":false,"properties":{"x_b":{"type":"null"}}}`,
		`{"required":["b"],"additionalProperties":false}`:                                                                             "",
		`{"items":{"pattern":"a|b"}}`:                                                                                                 `{"items":{"pattern":"^[\\s\\S]*(?:a|b)[\\s\\S]*$"}}`,
		`{"pattern":"b$"}`:                                                                                                            `{"pattern":"^[\\s\\S]*b$"}`,
		`{"allOf":[{"properties":{"a":{"type":"string"}},"additionalProperties":false},{"properties":{"a":{"maxLength":3},"b":{}}}]}`: `{"additionalProperties":false,"properties":{"a":{"maxLength":3,"type":"string"}}}`,
		`{"$ref":"#","minLength":1}`:                                                                                                  "",
	} {
		if want == "" {
			want = schema
		}
		require.Equal(t, want, string(plainSchema([]byte(schema))), schema)
	}
	// Schemas that refer to themselves grow only so far.
	deep := `{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"t":{"$ref":"#/$defs/t","required":["t"]}}}}}`
	require.Less(t, len(plainSchema([]byte(deep))), 4<<10)
}
