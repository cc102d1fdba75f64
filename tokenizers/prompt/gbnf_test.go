// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A grammarReader matches texts with a grammar of llama.cpp: the part of the notation that Constraint.GBNF writes. Tokens
// are characters from tokenBase on.
type grammarReader struct {
	rules map[string]*node
	text  []rune
	ends  map[string][]int // by rule and position
}

const tokenBase = 0x100000

type node struct {
	op       byte // | sequence, & alternatives, c class, r rule, * repetition
	list     []*node
	not      bool
	pairs    []rune
	name     string
	min, max int
}

// readGrammar parses a grammar.
func readGrammar(t *testing.T, grammar string) *grammarReader {
	g := &grammarReader{rules: map[string]*node{}}
	for line := range strings.Lines(grammar) {
		name, expr, ok := strings.Cut(strings.TrimSpace(line), " ::= ")
		require.True(t, ok, line)
		require.NotContains(t, g.rules, name)
		p := &grammarParser{t: t, s: expr}
		g.rules[name] = p.alternatives()
		require.Empty(t, p.s, line)
	}
	return g
}

type grammarParser struct {
	t *testing.T
	s string
}

func (p *grammarParser) alternatives() *node {
	n := &node{op: '&', list: []*node{p.sequence()}}
	for strings.HasPrefix(p.s, "|") {
		p.s = p.s[1:]
		n.list = append(n.list, p.sequence())
	}
	return n
}

func (p *grammarParser) sequence() *node {
	n := &node{op: '|'}
	for {
		p.s = strings.TrimLeft(p.s, " ")
		if p.s == "" || p.s[0] == '|' || p.s[0] == ')' {
			return n
		}
		n.list = append(n.list, p.repeated(p.item()))
	}
}

func (p *grammarParser) item() *node {
	switch c := p.s[0]; c {
	case '(':
		p.s = p.s[1:]
		n := p.alternatives()
		require.True(p.t, strings.HasPrefix(p.s, ")"), p.s)
		p.s = p.s[1:]
		return n
	case '"':
		n := &node{op: '|'}
		for p.s = p.s[1:]; p.s[0] != '"'; {
			r := p.char()
			n.list = append(n.list, &node{op: 'c', pairs: []rune{r, r}})
		}
		p.s = p.s[1:]
		return n
	case '[':
		n := &node{op: 'c'}
		p.s = p.s[1:]
		if p.s[0] == '^' {
			n.not = true
			p.s = p.s[1:]
		}
		for p.s[0] != ']' {
			r := p.char()
			to := r
			if p.s[0] == '-' && p.s[1] != ']' {
				p.s = p.s[1:]
				to = p.char()
			}
			n.pairs = append(n.pairs, r, to)
		}
		p.s = p.s[1:]
		return n
	case '.':
		p.s = p.s[1:]
		return &node{op: 'c', not: true}
	case '<':
		text, rest, ok := strings.Cut(p.s[2:], "]>")
		require.True(p.t, ok)
		p.s = rest
		id, err := strconv.Atoi(text)
		require.NoError(p.t, err)
		return &node{op: 'c', pairs: []rune{tokenBase + rune(id), tokenBase + rune(id)}}
	}
	i := 0
	for i < len(p.s) && (p.s[i] >= 'a' && p.s[i] <= 'z' || p.s[i] >= '0' && p.s[i] <= '9' || p.s[i] == '-') {
		i++
	}
	require.Positive(p.t, i, p.s)
	name := p.s[:i]
	p.s = p.s[i:]
	return &node{op: 'r', name: name}
}

func (p *grammarParser) char() rune {
	if p.s[0] != '\\' {
		r, n := utf8.DecodeRuneInString(p.s)
		p.s = p.s[n:]
		return r
	}
	c := p.s[1]
	if n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; n > 0 {
		v, err := strconv.ParseUint(p.s[2:2+n], 16, 32)
		require.NoError(p.t, err)
		p.s = p.s[2+n:]
		return rune(v)
	}
	p.s = p.s[2:]
	return map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', '"': '"', '\\': '\\', '[': '[', ']': ']', '-': '-'}[c]
}

func (p *grammarParser) repeated(n *node) *node {
	if p.s == "" {
		return n
	}
	out := &node{op: '*', list: []*node{n}, max: -1}
	switch p.s[0] {
	case '*':
	case '+':
		out.min = 1
	case '?':
		out.max = 1
	case '{':
		body, rest, _ := strings.Cut(p.s[1:], "}")
		low, high, two := strings.Cut(body, ",")
		out.min, _ = strconv.Atoi(low)
		if !two {
			out.max = out.min
		} else if high != "" {
			out.max, _ = strconv.Atoi(high)
		}
		p.s = rest
		return out
	default:
		return n
	}
	p.s = p.s[1:]
	return out
}

// accepts reports whether a text is in the language.
func (g *grammarReader) accepts(text string) bool {
	g.text, g.ends = []rune(text), map[string][]int{}
	return slices.Contains(g.match(&node{op: 'r', name: "root"}, 0), len(g.text))
}

// match returns the ends of what a node matches from a position.
func (g *grammarReader) match(n *node, at int) (ends []int) {
	switch n.op {
	case 'r':
		key := fmt.Sprint(n.name, " ", at)
		if e, ok := g.ends[key]; ok {
			return e
		}
		g.ends[key] = nil // a left recursion matches nothing
		e := g.match(g.rules[n.name], at)
		g.ends[key] = e
		return e
	case 'c':
		if at == len(g.text) {
			return nil
		}
		in := false
		for i := 0; i < len(n.pairs); i += 2 {
			in = in || n.pairs[i] <= g.text[at] && g.text[at] <= n.pairs[i+1]
		}
		if in == n.not || n.not && g.text[at] >= tokenBase {
			return nil
		}
		return []int{at + 1}
	case '&':
		for _, a := range n.list {
			ends = append(ends, g.match(a, at)...)
		}
	case '|':
		ends = []int{at}
		for _, a := range n.list {
			var next []int
			for _, e := range ends {
				next = append(next, g.match(a, e)...)
			}
			slices.Sort(next)
			ends = slices.Compact(next)
		}
	case '*':
		now := []int{at}
		for i := 0; len(now) > 0 && (n.max < 0 || i <= n.max); i++ {
			if i >= n.min {
				ends = append(ends, now...)
			}
			var next []int
			for _, e := range now {
				for _, e := range g.match(n.list[0], e) {
					if e > at+i || i < n.min {
						next = append(next, e)
					}
				}
			}
			slices.Sort(next)
			now = slices.Compact(next)
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// grammarOf returns the grammar of a chat request for a model with ChatML and hermes calls.
func grammarOf(t *testing.T, fields string) (string, error) {
	m, err := prompt.Load(fstest.MapFS{"tokenizer.json": byteTokenizer("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<x>")}, &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"q"}],`+fields+`}`), nil)
	require.NoError(t, err)
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	c, err := m.Constraint(req, p)
	require.NoError(t, err)
	require.NotNil(t, c)
	grammar, err := c.GBNF()
	if err == nil {
		again, err := c.GBNF()
		require.NoError(t, err)
		require.Equal(t, grammar, again)
	}
	return grammar, err
}

func TestGBNFSchemas(t *testing.T) {
	for _, tt := range []struct {
		schema   string
		yes, not string // JSON texts, separated by " ; "
	}{
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`,
			`{"a":1} ; {"a": -12, "b":"x\"y\\\n\u00e9漢"} ; { "a":0 }`, `{} ; {"b":"x"} ; {"a":01} ; {"a":1.5} ; {"b":"","a":1} ; {"a":1,} ; {"a":1,"c":2} ; {"a":1 ; {"a":1,"b":"\x"}`},
		{`{"type":"object","properties":{"a":{"const":1},"b":{"enum":["x","y z",null]},"c":{"type":"boolean"}}}`,
			`{} ; {"a":1} ; {"b":"y z"} ; {"c":true} ; {"a":1,"c":false} ; {"a":1,"b":null,"c":false} ; {"b":"x","c":true}`, `{,"a":1} ; {"a":2} ; {"c":true,"a":1} ; {"b":"z"}`},
		{`{"type":"object"}`, `{} ; {"x":{"y":[1,"a",null,true,{}]},"z":-1.5e3}`, `[] ; {"x"} ; {"x":}`},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, `{"x":1,"y":2} ; {}`, `{"x":"y"}`},
		{`{"type":"object","properties":{},"additionalProperties":false}`, `{} ; { }`, `{"a":1}`},
		{`{"type":"object","required":["q"]}`, `{"q":[]}`, `{}`},
		{`{}`, `1 ; "a" ; [] ; {} ; null ; false`, `nul ; 01`},
		{`{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":3}`, `[1] ; [1,2.5,-3] ; [ 1, 2 ]`, `[] ; [1,2,3,4] ; [1,] ; ["a"]`},
		{`{"type":"array","items":{"enum":["a","b"]},"maxItems":1,"uniqueItems":true}`, `[] ; ["a"]`, `["a","b"]`},
		{`{"type":"array"}`, `[] ; [1,"a",[]]`, `{}`},
		{`{"type":"array","maxItems":0}`, `[] ; [ ]`, `[1]`},
		{`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`, `["a",1]`, `["a"] ; [1,"a"] ; ["a",1,2]`},
		{`{"type":"string","minLength":2,"maxLength":3}`, `"ab" ; "abc" ; "\n\u1234"`, `"a" ; "abcd" ; ab`},
		{`{"type":"string","minLength":2}`, `"ab" ; "abcdefg"`, `"a"`},
		{`{"type":"string","pattern":"^[a-c]+\"\\\\?$"}`, `"ab\"" ; "a\"\\"`, `"ab" ; "d\""`},
		{`{"type":"string","pattern":"b."}`, `"b1" ; "aaabcaa"`, `"b" ; "a"`},
		{`{"type":"string","format":"date"}`, `"2026-11-23"`, `"2026-13-01" ; "x"`},
		{`{"type":"string","format":"uuid"}`, `"123e4567-e89b-12d3-a456-426614174000"`, `"123"`},
		{`{"type":"string","format":"color"}`, `"x"`, `1`},
		{`{"type":"string","format":"email"}`, `"a.b@c-d.org"`, `"x" ; "a@" ; 1`},
		{`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}}},{"required":["a"]}]}`, `{"a":1}`, `{} ; 1`},
		{`{"anyOf":[{"type":"integer"}],"minimum":3}`, `3`, `2 ; "a"`},
		{`{"type":["string","null"]}`, `"a" ; null`, `1`},
		{`{"type":"string","nullable":true}`, `"a" ; null`, `1`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}],"description":"x"}`, `1 ; "a"`, `null`},
		{`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"n":{"type":"integer"}},"required":["k"]}]}`,
			`{"k":"a"} ; {"k":"b","n":1}`, `{"k":"c"} ; {"k":"a","n":1}`},
		{`{"allOf":[{"type":"integer"}]}`, `1`, `"a"`},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/t"}}},"additionalProperties":false}}}`,
			`{} ; {"kids":[{},{"kids":[{}]}]}`, `{"kids":[1]}`},
		{`{"type":"integer","minimum":5,"maximum":123}`, `5 ; 9 ; 10 ; 99 ; 100 ; 123`, `4 ; 124 ; -5 ; 1000 ; 007 ; 5.0`},
		{`{"type":"integer","exclusiveMinimum":-3,"maximum":0}`, `-2 ; -1 ; 0`, `-3 ; 1 ; -0`},
		{`{"type":"integer","minimum":17}`, `17 ; 18 ; 99 ; 100 ; 123456`, `16 ; 1 ; -17 ; 0`},
		{`{"type":"integer","maximum":-17}`, `-17 ; -100`, `-16 ; 17`},
		{`{"type":"number","minimum":0,"maximum":1}`, `0 ; 0.25 ; 1`, `1.5 ; -0.1 ; 2`},
		{`{"type":"number","minimum":-2}`, `-2 ; -1.5 ; -0.5 ; 0 ; 100.25`, `-2.5 ; -3`},
		{`{"minimum":0}`, `1.5`, `-1 ; "a"`},
	} {
		grammar, err := grammarOf(t, `"structured_outputs":{"json":`+tt.schema+`}`)
		require.NoError(t, err, tt.schema)
		g := readGrammar(t, grammar)
		for text := range strings.SplitSeq(tt.yes, " ; ") {
			require.True(t, json.Valid([]byte(text)), text)
			require.True(t, g.accepts(text), "%s: %s\n%s", tt.schema, text, grammar)
		}
		for text := range strings.SplitSeq(tt.not, " ; ") {
			require.False(t, g.accepts(text), "%s: %s\n%s", tt.schema, text, grammar)
		}
	}
}

// All integers between two bounds, and no others.
func TestGBNFIntegers(t *testing.T) {
	for _, b := range [][2]int{{0, 0}, {0, 9}, {0, 10}, {3, 7}, {8, 12}, {95, 1005}, {-12, 15}, {-120, -95}, {10, 99}, {101, 199}} {
		grammar, err := grammarOf(t, fmt.Sprintf(`"structured_outputs":{"json":{"type":"integer","minimum":%d,"maximum":%d}}`, b[0], b[1]))
		require.NoError(t, err)
		g := readGrammar(t, grammar)
		for n := b[0] - 30; n <= b[1]+30; n++ {
			require.Equal(t, n >= b[0] && n <= b[1], g.accepts(fmt.Sprint(n)), "%d in %v\n%s", n, b, grammar)
		}
	}
}

func TestGBNFRefuses(t *testing.T) {
	for schema, want := range map[string]string{
		`{"not":{"type":"string"}}`:                                      "no equivalent of not in a schema",
		`{"type":"array","uniqueItems":true}`:                            "uniqueItems",
		`{"type":"integer","multipleOf":3}`:                              "multipleOf",
		`{"type":"number","minimum":0.5}`:                                "minimum: 0.5",
		`{"type":"number","exclusiveMinimum":0}`:                         "exclusiveMinimum",
		`{"type":"string","maxLength":2001}`:                             "maxLength of more than 2000",
		`{"type":"string","minLength":3,"maxLength":2}`:                  "minLength 3 and maxLength 2",
		`{"type":"string","pattern":"a","maxLength":2}`:                  "pattern or format with minLength or maxLength",
		`{"type":"string","pattern":"a\\bb"}`:                            "in a regular expression",
		`{"type":"string","pattern":"("}`:                                "cannot be read",
		`{"oneOf":[{"type":"integer"},{"type":"number"}]}`:               "oneOf with schemas that may have values in common",
		`{"$ref":"#/$defs/x"}`:                                           "leads nowhere",
		`{"$ref":"#"}`:                                                   "refers to itself",
		`{"type":"integer","minimum":3,"maximum":2}`:                     "numbers from 3 to 2",
		`{"type":"color"}`:                                               `the type \"color\" in a schema is not known`,
		`{"type":"object","patternProperties":{"a":{}}}`:                 "patternProperties",
		`{"type":"array","prefixItems":[{}],"minItems":2}`:               "prefixItems with other numbers",
		strings.Repeat(`{"items":`, 80) + `{}` + strings.Repeat(`}`, 80): "nested this deep",

		`{"type":"string","pattern":"` + strings.Repeat("a", 33<<10) + `"}`:   "room for a regular expression this long",
		`{"type":"string","pattern":"` + strings.Repeat(`\\pL`, 8<<10) + `"}`: "room for a demand this large",
		`{"enum":[1` + strings.Repeat(`,1`, 1<<19) + `]}`:                     "room for a demand this large",
		`{"oneOf":[{"const":1}` + strings.Repeat(`,{"const":2}`, 256) + `]}`:  "oneOf with schemas that may have values in common",
		`{"$ref":"#d"}`: "leads nowhere",
	} {
		_, err := grammarOf(t, `"structured_outputs":{"json":`+schema+`}`)
		require.ErrorContains(t, err, strings.ReplaceAll(want, `\"`, `"`), schema)
	}
	_, err := grammarOf(t, `"structured_outputs":{"grammar":"start: \"a\""}`)
	require.ErrorContains(t, err, "has no rule root ::=")
	_, err = grammarOf(t, `"response_format":{"type":"structural_tag","format":{"type":"any_text"}}`)
	require.ErrorContains(t, err, "no structural tags")
}

func TestGBNFTexts(t *testing.T) {
	for fields, texts := range map[string][2]string{
		`"structured_outputs":{"choice":["a","b c"]}`:                                                     {`a ; b c`, `b ; ab`},
		`"structured_outputs":{"regex":"(?i)ab{2,3}[^x]*|é.\n"}`:                                          {"aBB ; abbb12 ; é1\n", "ab ; abbx ; é"},
		`"structured_outputs":{"grammar":"root ::= x+ # one\nx ::= \"root\" [ab\"]{2} y\ny ::= \"#\"\n"}`: {`rootab# ; rootb"#roota"# ; <think>x</think>rootab#`, `root ; rootab`},
	} {
		grammar, err := grammarOf(t, fields)
		require.NoError(t, err)
		grammar = strings.ReplaceAll(grammar, " # one", "") // a comment of the client's
		g := readGrammar(t, grammar)
		for text := range strings.SplitSeq(texts[0], " ; ") {
			require.True(t, g.accepts(text), "%s: %q\n%s", fields, text, grammar)
		}
		for text := range strings.SplitSeq(texts[1], " ; ") {
			require.False(t, g.accepts(text), "%s: %q\n%s", fields, text, grammar)
		}
	}
}

// Counts of a regular expression remain counts, so that the size of a grammar does not depend on them. A real llama.cpp,
// build 11434, accepts these grammars.
func TestGBNFRepetitions(t *testing.T) {
	a := strings.Repeat("a", 1000)
	for pattern, texts := range map[string][2]string{
		`a{2,3}`:         {"aa ; aaa", "a ; aaaa"},
		`a{2}`:           {"aa", "a ; aaa"},
		`a{2,}`:          {"aa ; aaaaa", "a"},
		`a{0}b`:          {"b", "ab"},
		`(a|b){0}`:       {"", "a"},
		`a{0,1000}`:      {" ; " + a, a + "a"},
		`(a{2}b?){2}c`:   {"aaaac ; aabaabc", "aac ; aababc"},
		`((a{20}){25})*`: {" ; " + a + " ; " + a[500:], a[1:]},
		`(|a){2}b`:       {"b ; ab ; aab", "aaab"},
		`(?:){2,3}a`:     {"a", ""},
		`(()){2,3}a`:     {"a", "aa"},
		`((x*)*){1,}`:    {" ; xx", "a"},
		`ab{2}|cd{2}`:    {"abb ; cdd", "abab ; ab"},
	} {
		grammar, err := grammarOf(t, fmt.Sprintf(`"structured_outputs":{"regex":%q}`, pattern))
		require.NoError(t, err)
		require.Less(t, len(grammar), 2000, pattern)
		g := readGrammar(t, grammar)
		for text := range strings.SplitSeq(texts[0], " ; ") {
			require.True(t, g.accepts(text), "%s: %q\n%s", pattern, text, grammar)
		}
		for text := range strings.SplitSeq(texts[1], " ; ") {
			require.False(t, g.accepts(text), "%s: %q\n%s", pattern, text, grammar)
		}
	}
	_, err := grammarOf(t, `"structured_outputs":{"regex":"(a{20}){51}"}`)
	require.ErrorContains(t, err, "cannot be read")
}

// Calls are between the tokens of their markers, and free text in them has no marker in any spelling.
func TestGBNFCalls(t *testing.T) {
	m, err := prompt.Load(fstest.MapFS{"tokenizer.json": byteTokenizer("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")}, &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	id := func(text string) string {
		id, ok := m.Tokenizer().TokenID(text)
		require.True(t, ok)
		return string(rune(tokenBase + id))
	}
	grammar, err := grammarOf(t, `"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}]`)
	require.NoError(t, err)
	g := readGrammar(t, grammar)
	call := func(value string) string {
		return id("<tool_call>") + "\n" + `{"name": "f", "arguments": {"a": "` + value + `"}}` + "\n" + id("</tool_call>")
	}
	for _, value := range []string{"", "x y", `\n`, "<", "<tool", "<<tool_cal", "a < b > c", "tool_call>", "<\U0001f642", "</tool_cal l>"} {
		require.True(t, g.accepts(call(value)), "%q\n%s", value, grammar)
	}
	require.True(t, g.accepts(call("1")+"\n"+call("2")))
	for _, value := range []string{"<tool_call>", "a</tool_call>b", "<|im_end|>", "<<|im_start|>", "</tool</tool_call>", "\n", `"`} {
		require.False(t, g.accepts(call(value)), "%q\n%s", value, grammar)
	}
	require.False(t, g.accepts(strings.ReplaceAll(call("1"), id("<tool_call>"), "<tool_call>")), "spelled")
	require.False(t, g.accepts(call("1")+"x"))
	require.False(t, g.accepts(""))
}

// Under a grammar for strict tools, free text has no marker of a call, in any spelling, and a call is valid.
func TestGBNFStrict(t *testing.T) {
	m, err := prompt.Load(fstest.MapFS{"tokenizer.json": byteTokenizer("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>")}, &prompt.Options{Family: "hermes"})
	require.NoError(t, err)
	id := func(text string) string {
		id, ok := m.Tokenizer().TokenID(text)
		require.True(t, ok)
		return string(rune(tokenBase + id))
	}
	grammar, err := grammarOf(t, `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}]`)
	require.NoError(t, err)
	g := readGrammar(t, grammar)
	call := func(args string) string {
		return id("<tool_call>") + "\n" + `{"name": "f", "arguments": ` + args + `}` + "\n" + id("</tool_call>")
	}
	good := call(`{"a": 1}`)
	for _, text := range []string{"", "x", "a < b\n", "<think>x", "<tool", good, "x" + good, good + "\n" + good, good + " y " + good + "z"} {
		require.True(t, g.accepts(text), "%q\n%s", text, grammar)
	}
	for _, text := range []string{"<tool_call>", "</tool_call>", "<|im_end|>", call(`{"a": "x"}`), "x" + call(`{}`), good[:len(good)-3], strings.Replace(good, `"f"`, `"g"`, 1)} {
		require.False(t, g.accepts(text), "%q\n%s", text, grammar)
	}
}
