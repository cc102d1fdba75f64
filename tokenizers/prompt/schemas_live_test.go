// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A schemaCase is a schema, with arguments that it permits.
type schemaCase struct {
	Tag    json.RawMessage `json:"tag"`
	Schema json.RawMessage `json:"schema"`
	Ends   [][]uint32      `json:"ends"`
	Valid  [][]uint32      `json:"valid"` // the same as a model writes them, as tokens
	Runs   int             `json:"runs"`
	Seed   int             `json:"seed"`

	Out      [][]uint32 `json:"out,omitempty"`
	Refused  []int      `json:"refused,omitempty"` // the position at which each of Valid is refused, or -1
	Error    string     `json:"error,omitempty"`
	Args     []string   `json:"args,omitempty"`     // that the parser read in Out
	Problems []string   `json:"problems,omitempty"` // what is wrong with each of Args, or ""

	args  *prompt.ArgumentsOf
	valid []string
}

type schemaModel struct {
	Name  string        `json:"name"`
	Vocab [][]byte      `json:"vocab"`
	Stops []uint32      `json:"stops"`
	Cases []*schemaCase `json:"cases"`

	model *prompt.Model
}

// TestLiveConstraintSchemas lets xgrammar write random arguments for random schemas. The parser must read each of them, and
// what it reads must have the schema's form. Arguments that a schema permits, as models write them, must be accepted.
// .ci/live runs it.
func TestLiveConstraintSchemas(t *testing.T) {
	python := os.Getenv("WEFT_XGRAMMAR")
	if python == "" {
		t.Skip("set WEFT_XGRAMMAR to a Python that has xgrammar and jsonschema")
	}
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	seed, schemas, runs := number("WEFT_SCHEMA_SEED", 1), number("WEFT_SCHEMAS", 40), number("WEFT_SCHEMA_RUNS", 3)
	templates := templatesAtHand(t)
	var work struct {
		Models []*schemaModel `json:"models"`
	}
	families := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		m := newLiveModel(t, name, templates[name])
		if m == nil || families[m.model.Family()] {
			continue
		}
		families[m.model.Family()] = true
		object, err := prompt.ConstrainArguments(m.model, []byte(`{}`))
		if err != nil {
			continue
		}
		separate := object.Separate
		s := &schemaModel{Name: m.model.Family(), Vocab: m.Vocab, Stops: m.Stops, model: m.model}
		for i := range schemas {
			g := &schemaMaker{rnd: rand.New(rand.NewPCG(uint64(seed), uint64(i))), quoted: !separate}
			schema := g.tool()
			args, err := prompt.ConstrainArguments(m.model, schema)
			if err != nil {
				t.Logf("%s: %v: %s", s.Name, err, schema)
				continue
			}
			if strings.Contains(args.First+args.Last+args.After, "\x00") {
				continue
			}
			c := &schemaCase{Tag: args.Tag, Schema: schema, Runs: runs, Seed: seed<<16 + i, args: args}
			c.Ends = [][]uint32{m.model.Tokenizer().AppendEncode(nil, args.After), {'"'}}
			if !args.Separate {
				c.Ends = c.Ends[1:]
			}
			for range 4 {
				names, values := g.sample()
				text := args.Write(names, values)
				c.valid = append(c.valid, text)
				c.Valid = append(c.Valid, m.model.Tokenizer().AppendEncode([]uint32{}, text))
			}
			s.Cases = append(s.Cases, c)
		}
		work.Models = append(work.Models, s)
	}
	run := func(mode string) {
		file := filepath.Join(t.TempDir(), "work.json")
		data, err := json.Marshal(work)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		cmd := exec.Command(python, "testdata/live/schemas.py", mode, file)
		cmd.Stderr = os.Stderr
		data, err = cmd.Output()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &work))
	}
	run("sample")
	for _, m := range work.Models {
		for _, c := range m.Cases {
			for _, ids := range c.Out {
				got, err := m.read(c, string(m.model.Tokenizer().AppendDecode(nil, ids, false)))
				if err != nil {
					got = fmt.Sprintf("%q: %v", m.model.Tokenizer().AppendDecode(nil, ids, false), err)
				}
				c.Args = append(c.Args, got)
			}
		}
	}
	run("validate")
	for _, m := range work.Models {
		t.Run(m.Name, func(t *testing.T) {
			sampled, wrong, accepted, refused := 0, 0, 0, 0
			for _, c := range m.Cases {
				if c.Error != "" {
					t.Errorf("%s\n%s\n%s", c.Error, c.Schema, c.Tag)
				}
				for i, p := range c.Problems {
					if strings.HasSuffix(c.Args[i], "duplicate_argument") { // a grammar cannot know the names that were written
						continue
					}
					if sampled++; p != "" {
						wrong++
						t.Errorf("sampled %s\n%s\nschema %s\nout %q", c.Args[i], p, c.Schema, m.model.Tokenizer().AppendDecode(nil, c.Out[i], false))
					}
				}
				for i, at := range c.Refused {
					accepted++
					if at < 0 {
						continue
					}
					accepted--
					refused++
					t.Errorf("refused %q at %d\nschema %s", c.valid[i], at, c.Schema)
				}
			}
			t.Logf("%s: %d of %d sampled calls violate their schema, %d of %d valid ones are refused", m.Name, wrong, sampled, refused, refused+accepted)
		})
	}
}

// read returns the arguments in a text.
func (m *schemaModel) read(c *schemaCase, text string) (string, error) {
	p, err := parsers.New(m.model.Family(), &parsers.Options{Tools: []parsers.Tool{{Name: "f", Schema: c.Schema}}, Start: parsers.StartTurn})
	if err != nil {
		return "", err
	}
	var got event.Collector
	events, err := p.Append(nil, []byte(c.args.First+text+c.args.Last))
	if err != nil {
		return "", err
	}
	got.Add(events...)
	events, err = p.Finish(nil, event.Stop)
	got.Add(events...)
	if err != nil {
		return "", err
	}
	if len(got.Answers) == 1 && len(got.Answers[0].Blocks) == 1 && got.Answers[0].Blocks[0].Kind == event.ToolAbort {
		return "", fmt.Errorf("aborted: %v", got.Answers[0].Blocks[0].Why)
	}
	if len(got.Answers) != 1 || len(got.Answers[0].Calls()) != 1 || strings.TrimSpace(got.Answers[0].Text()) != "" {
		return "", fmt.Errorf("not one call: %v", got.Answers)
	}
	return string(got.Answers[0].Calls()[0].Data), nil
}

// A schemaMaker makes random schemas and values that they permit.
type schemaMaker struct {
	rnd      *rand.Rand
	quoted   bool // texts are strings in JSON, for which xgrammar does not enforce everything
	defs     []string
	names    []string
	values   []func() any
	required []bool
	further  func() any // for undeclared names
	pattern  func() any // for names x_
}

func (g *schemaMaker) one(list ...string) string { return list[g.rnd.IntN(len(list))] }

func (g *schemaMaker) json(v any) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
	return strings.TrimSuffix(out.String(), "\n")
}

// tool returns the schema of a tool.
func (g *schemaMaker) tool() []byte {
	var props, required []string
	for _, i := range g.rnd.Perm(7)[:1+g.rnd.IntN(3)] {
		name := []string{"a", "path", "x-y", "имя", "b c", "Ab", "a1"}[i]
		schema, value := g.value(2)
		g.names, g.values = append(g.names, name), append(g.values, value)
		props = append(props, g.json(name)+":"+schema)
		need := g.rnd.IntN(2) == 0
		if g.required = append(g.required, need); need {
			required = append(required, g.json(name))
		}
	}
	more := ""
	switch g.rnd.IntN(8) {
	case 0:
		more += `,"additionalProperties":true`
		g.further = func() any { return "any" }
	case 1:
		schema, value := g.value(1)
		more += `,"additionalProperties":` + schema
		g.further = value
	case 2:
		schema, value := g.value(1)
		more += `,"patternProperties":{"^x_[a-z]+$":` + schema + `},"additionalProperties":false`
		g.pattern = value
	case 3, 4:
		more += `,"additionalProperties":false`
	}
	if g.rnd.IntN(8) == 0 && !strings.Contains(more, "false") {
		required = append(required, `"ghost"`)
		g.names, g.required = append(g.names, "ghost"), append(g.required, true)
		value := g.further
		if value == nil {
			value = func() any { return 1 }
		}
		g.values = append(g.values, value)
	}
	out := `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `]` + more
	if len(g.defs) > 0 {
		out += `,"$defs":{` + strings.Join(g.defs, ",") + `}`
	}
	return []byte(out + "}")
}

// sample returns arguments.
func (g *schemaMaker) sample() (names []string, values []any) {
	for i, name := range g.names {
		if g.required[i] || g.rnd.IntN(2) == 0 {
			names, values = append(names, name), append(values, g.values[i]())
		}
	}
	if g.further != nil && g.rnd.IntN(2) == 0 {
		names, values = append(names, "more"), append(values, g.further())
	}
	if g.pattern != nil && g.rnd.IntN(2) == 0 {
		names, values = append(names, "x_more"), append(values, g.pattern())
	}
	return names, values
}

var hostileTexts = []string{"a", "b\"c", "it's", "l1\nl2", "<b>", "</b>", "</", "x </y", "日本", "é", " lead", "trail ", "", "1", "true", "null", "{}", "[1]", "\\n", "&amp;", "a\tb", "-5"}

// value returns a schema and a function that makes values for it.
func (g *schemaMaker) value(depth int) (string, func() any) {
	text := func(list ...string) func() any { return func() any { return g.one(list...) } }
	n := 22
	if depth == 0 {
		n = 15
	}
	kind := g.rnd.IntN(n)
	if kind >= 1 && kind <= 5 && g.quoted { // control characters are not excluded with a length, nor escapes permitted
		kind = 0
	}
	if outer := g.quoted; kind == 15 || kind == 16 || kind == 17 {
		g.quoted = true
		defer func() { g.quoted = outer }()
	}
	switch kind {
	case 0:
		return `{"type":"string","description":"d","default":"x"}`, text(hostileTexts...)
	case 1:
		least := g.rnd.IntN(5)
		return fmt.Sprintf(`{"type":"string","minLength":%d}`, least), func() any { return "ab<c>\n"[:1] + strings.Repeat("é", least) }
	case 2:
		most := 1 + g.rnd.IntN(30)
		return fmt.Sprintf(`{"type":"string","maxLength":%d}`, most), func() any { return strings.Repeat("<", g.rnd.IntN(most+1)) }
	case 3:
		least := g.rnd.IntN(4)
		most := least + g.rnd.IntN(10)
		return fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, least, most), func() any { return strings.Repeat("z", least+g.rnd.IntN(most-least+1)) }
	case 4:
		p := g.rnd.IntN(6)
		return []string{`{"type":"string","pattern":"^[a-c]{2,3}$"}`, `{"type":"string","pattern":"b+"}`, `{"type":"string","pattern":"^(foo|bar).*$"}`, `{"type":"string","pattern":"^\\d{3}-\\d{2}$"}`,
				`{"type":"string","pattern":"^[^/]+/[^/]+$","maxLength":12}`, `{"type":"string","pattern":"^\\S+$","minLength":3}`}[p],
			text([][]string{{"ab", "ccc"}, {"b", "a\nb</"}, {"foo", "bar <x>"}, {"123-45"}, {"a/b", "a/ b"}, {"abc", "<a></a>"}}[p]...)
	case 5:
		p := g.rnd.IntN(6)
		return []string{`{"type":"string","format":"date"}`, `{"type":"string","format":"date-time"}`, `{"type":"string","format":"email"}`, `{"type":"string","format":"uuid"}`,
				`{"type":"string","format":"ipv4"}`, `{"type":"string","format":"time"}`}[p],
			text([][]string{{"2026-01-31", "2024-02-29"}, {"2026-12-30T23:59:59Z"}, {"a.b+c@example.org"}, {"123e4567-e89b-12d3-a456-426614174000"}, {"10.0.0.255"}, {"12:00:00Z"}}[p]...)
	case 6:
		var list []string
		for range 1 + g.rnd.IntN(4) {
			list = append(list, hostileTexts[g.rnd.IntN(len(hostileTexts))])
		}
		slices.Sort(list)
		list = slices.Compact(list)
		typ := g.one(`"type":"string",`, "")
		return `{` + typ + `"enum":` + g.json(list) + `}`, text(list...)
	case 7:
		s := hostileTexts[g.rnd.IntN(len(hostileTexts))]
		return `{"const":` + g.json(s) + `}`, text(s)
	case 8:
		return `{"type":"integer","minimum":-3,"maximum":120}`, func() any { return g.rnd.IntN(124) - 3 }
	case 9:
		return g.one(`{"type":"number"}`, `{"type":"number","minimum":0}`), func() any { return float64(g.rnd.IntN(100)) / 4 }
	case 10:
		return `{"type":"boolean"}`, func() any { return g.rnd.IntN(2) == 0 }
	case 11:
		return g.one(`{"type":["string","null"]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`), func() any {
			if g.rnd.IntN(2) == 0 {
				return nil
			}
			return g.one("x", "a b", "<i>")
		}
	case 12:
		return g.one(`{"anyOf":[{"type":"integer","minimum":3},{"type":"string"}]}`, `{"type":["integer","string"],"minimum":3}`, `{"anyOf":[{"enum":[3,4]},{"type":"string"}]}`), func() any {
			if g.rnd.IntN(2) == 0 {
				return 3
			}
			return g.one("x", "a b", "<i>")
		}
	case 13:
		return `{"enum":["a",1,null,true]}`, func() any { return []any{"a", 1, nil, true}[g.rnd.IntN(4)] }
	case 14:
		return g.one(`{}`, `true`), func() any { return []any{"a b", 1, nil, true, []int{1}}[g.rnd.IntN(5)] }
	case 15, 16:
		schema, value := g.value(depth - 1)
		most := 1 + g.rnd.IntN(3)
		return fmt.Sprintf(`{"type":"array","items":%s,"maxItems":%d}`, schema, most), func() any {
			list := []any{}
			for range g.rnd.IntN(most + 1) {
				list = append(list, value())
			}
			return list
		}
	case 17:
		a, av := g.value(depth - 1)
		b, bv := g.value(depth - 1)
		return `{"type":"object","properties":{"p":` + a + `,"q r":` + b + `},"required":["p"],"additionalProperties":false}`, func() any {
			if g.rnd.IntN(2) == 0 {
				return map[string]any{"p": av()}
			}
			return map[string]any{"p": av(), "q r": bv()}
		}
	case 18:
		schema, value := g.value(depth - 1)
		name := fmt.Sprintf("D%d", len(g.defs))
		g.defs = append(g.defs, `"`+name+`":`+schema)
		return `{"$ref":"#/$defs/` + name + `","description":"d"}`, value
	case 19:
		a, av := g.value(depth - 1)
		b, bv := g.value(depth - 1)
		return `{"anyOf":[` + a + `,` + b + `]}`, func() any {
			if g.rnd.IntN(2) == 0 {
				return av()
			}
			return bv()
		}
	case 20:
		if g.quoted {
			return `{"type":"string","allOf":[{"enum":["ab","b"]},{"enum":["ab","c"]}]}`, text("ab")
		}
		return g.one(`{"allOf":[{"type":"string","minLength":2},{"maxLength":3}]}`, `{"type":"string","allOf":[{"minLength":2}],"maxLength":3}`), text("ab", "abc", "<a>")
	default:
		return g.one(`{"allOf":[{"type":"integer"},{"minimum":2}]}`, `{"type":"integer","anyOf":[{"maximum":1},{"minimum":5}]}`, `{"type":["integer","null"],"nullable":true}`), func() any { return 7 }
	}
}
