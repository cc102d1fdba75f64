// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// byteTokenizer returns a tokenizer.json whose tokens are single bytes and the given ones, from id 256 on.
func byteTokenizer(special ...string) *fstest.MapFile {
	vocab := map[string]int{}
	next := rune(256)
	for b := range 256 { // the printable form of a byte in byte-level BPE
		r := rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			r, next = next, next+1
		}
		vocab[string(r)] = b
	}
	var added []map[string]any
	for i, s := range special {
		added = append(added, map[string]any{"id": 256 + i, "content": s, "special": true, "normalized": false})
	}
	data, _ := json.Marshal(map[string]any{
		"added_tokens": added, "model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}, "decoder": map[string]any{"type": "ByteLevel"},
	})
	return &fstest.MapFile{Data: data}
}

// constrained is a model with ChatML, in the forms that prompt writes without a template.
func constrained(t testing.TB, family string) *prompt.Model {
	m, err := prompt.Load(fstest.MapFS{"tokenizer.json": byteTokenizer("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")},
		&prompt.Options{Family: family})
	require.NoError(t, err)
	return m
}

// constraint returns the constraint of a request as JSON, in the short form of summary.
func constraint(t testing.TB, m *prompt.Model, api *wire.API, fields string) (string, error) {
	turns := `"messages":[{"role":"user","content":"q"}]`
	if api == wire.Responses {
		turns = `"input":"q"`
	}
	req, err := api.Decode([]byte(`{"model":"m","max_tokens":9,`+turns+`,`+fields+`}`), nil)
	require.NoError(t, err)
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	c, err := m.Constraint(req, p)
	if c == nil {
		return "", err
	}
	return short(t, c), err
}

// short returns a constraint in the short form of summary.
func short(t testing.TB, c *prompt.Constraint) string {
	var tag any
	require.NoError(t, json.Unmarshal(c.StructuralTag(), &tag))
	var out strings.Builder
	summary(&out, tag.(map[string]any))
	return out.String()
}

// summary writes a structural tag in a notation that people can read: tokens as <id>, constants quoted, schemas in braces.
func summary(out *strings.Builder, f map[string]any) {
	list := func(open, sep, end string) {
		out.WriteString(open)
		for i, e := range f["elements"].([]any) {
			if i > 0 {
				out.WriteString(sep)
			}
			summary(out, e.(map[string]any))
		}
		out.WriteString(end)
	}
	content := func(suffix string) {
		out.WriteString("(")
		summary(out, f["content"].(map[string]any))
		out.WriteString(")" + suffix)
	}
	switch f["type"] {
	case "structural_tag":
		summary(out, f["format"].(map[string]any))
	case "sequence":
		list("", " ", "")
	case "or":
		list("(", " | ", ")")
	case "optional":
		content("?")
	case "star":
		content("*")
	case "token":
		fmt.Fprintf(out, "<%v>", f["token"])
	case "any_tokens":
		fmt.Fprintf(out, "not%v*", f["exclude_tokens"])
	case "const_string":
		fmt.Fprintf(out, "%q", f["value"])
	case "regex":
		fmt.Fprintf(out, "/%v/", f["pattern"])
	case "json_schema":
		s, _ := json.Marshal(f["json_schema"])
		out.Write(s)
	case "grammar":
		fmt.Fprintf(out, "grammar %q", f["grammar"])
	case "tag":
		fmt.Fprintf(out, "until %q", f["end"])
	default:
		fmt.Fprintf(out, "%v", f)
	}
}

const (
	constraintTools = `"tools":[{"type":"function","function":{"name":"put","parameters":{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"}},"required":["s"]}}},` +
		`{"type":"function","function":{"name":"now"}}]`
	hermesThinks = `(<260> not[256 257 258 259 260 261]* <261> /\n{0,2}/)? `
	hermesPut    = `<258> "\n{\"name\": \"put\", \"arguments\": " {"properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["s"],"type":"object"}`
	hermesNow    = `<258> "\n{\"name\": \"now\", \"arguments\": " {"type":"object"}`
)

func TestConstraint(t *testing.T) {
	hermes := constrained(t, "qwen3")
	for fields, want := range map[string]string{
		`"temperature":1`: "",
		constraintTools:   "",
		constraintTools + `,"tool_choice":"none"`:                                 "",
		constraintTools + `,"response_format":{"type":"text"}`:                    "",
		constraintTools + `,"tool_choice":"required","parallel_tool_calls":false`: hermesThinks + `(` + hermesPut + ` | ` + hermesNow + `) "}\n" <259>`,
		constraintTools + `,"tool_choice":{"type":"function","function":{"name":"now"}}`: hermesThinks + hermesNow +
			` ("}\n" <259> "\n" ` + hermesNow + `)* "}\n" <259>`,
		constraintTools + `,"parallel_tool_calls":false,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"now"}}]}}`: hermesThinks + hermesNow + ` "}\n" <259>`,
		constraintTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"now"}}]}}`:                                 "",
		`"response_format":{"type":"json_object"}`:                                                                            hermesThinks + `{"type":"object"}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"array"}}}`:                       hermesThinks + `{"type":"array"}`,
		`"structured_outputs":{"regex":"a+","disable_any_whitespace":true}`:                                                   hermesThinks + `/a+/`,
		`"structured_outputs":{"choice":["yes","no"]}`:                                                                        hermesThinks + `("yes" | "no")`,
		`"structured_outputs":{"json":"{\"type\":\"null\"}"}`:                                                                 hermesThinks + `{"type":"null"}`,
		`"structured_outputs":{"json":null,"grammar":"root ::= \"a\""}`:                                                       hermesThinks + `grammar "root ::= \"a\""`,
		`"guided_json":{"type":"null"}`:                                                                                       hermesThinks + `{"type":"null"}`,
		`"structured_outputs":{"structural_tag":"{\"type\":\"structural_tag\",\"format\":{\"type\":\"token\",\"token\":7}}"}`: "<7>",
		`"response_format":{"type":"structural_tag","format":{"type":"token","token":7}}`:                                     "<7>",
	} {
		got, err := constraint(t, hermes, wire.Chat, fields)
		require.NoError(t, err, fields)
		require.Equal(t, want, got, fields)
	}

	for _, c := range []struct {
		api    *wire.API
		fields string
	}{
		{wire.Messages, `"tools":[{"name":"now","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"now","disable_parallel_tool_use":true}`},
		{wire.Responses, `"tools":[{"type":"function","name":"now","parameters":{"type":"object"}}],"tool_choice":{"type":"function","name":"now"},"parallel_tool_calls":false`},
	} {
		got, err := constraint(t, hermes, c.api, c.fields)
		require.NoError(t, err)
		require.Equal(t, hermesThinks+hermesNow+` "}\n" <259>`, got)
	}
	for _, c := range []struct {
		api    *wire.API
		fields string
	}{
		{wire.Messages, `"output_config":{"format":{"type":"json_schema","schema":{"type":"array"}}}`},
		{wire.Responses, `"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"array"}}}`},
	} {
		got, err := constraint(t, hermes, c.api, c.fields)
		require.NoError(t, err)
		require.Equal(t, hermesThinks+`{"type":"array"}`, got)
	}
	for _, c := range []struct {
		api    *wire.API
		fields string
	}{
		{wire.Messages, `"output_config":{"format":{"type":"structural_tag","format":{"type":"token","token":7}}}`},
		{wire.Responses, `"text":{"format":{"type":"structural_tag","format":{"type":"token","token":7}}}`},
	} {
		got, err := constraint(t, hermes, c.api, c.fields)
		require.NoError(t, err)
		require.Equal(t, "<7>", got)
	}
	got, err := constraint(t, hermes, wire.Chat, constraintTools+`,"response_format":{"type":"json_object"},"parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"now"}}`)
	require.NoError(t, err)
	require.Equal(t, hermesThinks+hermesNow+` "}\n" <259>`, got, "the format is that of text, of which there is none")
}

// A deferred tool can be called once the conversation has a reference to it, which declares it.
func TestConstraintOfDeferredTools(t *testing.T) {
	hermes := constrained(t, "qwen3")
	const deferred = `"tools":[{"name":"now","defer_loading":true,"input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"now","disable_parallel_tool_use":true}`
	_, err := constraint(t, hermes, wire.Messages, deferred)
	require.ErrorContains(t, err, "there is no tool that the model can call")

	req, err := wire.Messages.Decode([]byte(`{"model":"m","max_tokens":9,`+deferred+`,"messages":[{"role":"user","content":"q"},
		{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"search","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"now"}]}]}]}`), nil)
	require.NoError(t, err)
	p, err := hermes.Render(req, noon)
	require.NoError(t, err)
	require.Contains(t, p.Text, "Tool now is available now")
	c, err := hermes.Constraint(req, p)
	require.NoError(t, err)
	require.Equal(t, hermesThinks+hermesNow+` "}\n" <259>`, short(t, c))
}

// The output for the Completions API is not parsed: it has neither reasoning nor what the template prints around text.
func TestConstraintOfCompletions(t *testing.T) {
	files := fstest.MapFS{
		"tokenizer.json": byteTokenizer("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
		"chat_template.jinja": {Data: []byte(`{% for m in messages %}<|im_start|>{{ m.role }}` + "\n" + `{% if m.role == 'assistant' %}<think>` + "\n\n</think>\n\n" +
			`{% endif %}{{ m.content }}<|im_end|>` + "\n" + `{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant` + "\n" + `{% endif %}`)},
	}
	for _, family := range []string{"passthrough", "qwen3"} {
		m, err := prompt.Load(files, &prompt.Options{Family: family})
		require.NoError(t, err)
		for fields, want := range map[string][3]string{ // a tag, a grammar and a schema
			`"guided_choice":["a","b"]`:                {`("a" | "b")`, `root ::= ("a" | "b")` + "\n", ""},
			`"guided_regex":"a+"`:                      {`/a+/`, "root ::= r1+\nr1 ::= \"a\"\n", ""},
			`"structured_outputs":{"regex":"a+"}`:      {`/a+/`, "root ::= r1+\nr1 ::= \"a\"\n", ""},
			`"guided_json":{"type":"null"}`:            {`{"type":"null"}`, `root ::= "null"` + "\n", `{"type":"null"}`},
			`"response_format":{"type":"json_object"}`: {`{"type":"object"}`, "", `{"type":"object"}`},
		} {
			req, err := wire.Completions.Decode([]byte(`{"model":"m","prompt":"x",`+fields+`}`), nil)
			require.NoError(t, err)
			c, err := m.Constraint(req, m.Raw([]uint32{'x'}))
			require.NoError(t, err)
			require.Equal(t, want[0], short(t, c), "%s: %s", family, fields)
			grammar, err := c.GBNF()
			require.NoError(t, err)
			if want[1] != "" {
				require.Equal(t, want[1], grammar, "%s: %s", family, fields)
			}
			require.NotContains(t, grammar, "think")
			schema, err := c.JSONSchema()
			require.Equal(t, want[2], string(schema), "%s: %s: %v", family, fields, err)
		}
	}
}

// Strict tools leave the output free until a call begins, through all APIs. Reasoning is part of the free text.
func TestConstraintOfStrictTools(t *testing.T) {
	hermes := constrained(t, "qwen3")
	const (
		free   = `not[257 258 259]*`
		strict = `<258> "\n{\"name\": \"put\", \"arguments\": " {"properties":{"n":{"type":"integer"}},"type":"object"}`
		schema = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	)
	chat := func(first, second string) string {
		return `"tools":[{"type":"function","function":{"name":"put",` + first + `"parameters":` + schema + `}},{"type":"function","function":{"name":"now",` + second + `"parameters":` + schema + `}}]`
	}
	calls := `(` + strict + ` | ` + hermesNow + `) (("}\n" <259> "\n" ` + strict + ` | "}\n" <259> "\n" ` + hermesNow + `))* "}\n" <259>`
	for fields, want := range map[string]string{
		chat(`"strict":true,`, ``):                                  free + ` (` + calls + ` ` + free + `)*`,
		chat(`"strict":true,`, ``) + `,"tool_choice":"auto"`:        free + ` (` + calls + ` ` + free + `)*`,
		chat(`"strict":true,`, ``) + `,"tool_choice":"none"`:        "",
		chat(`"strict":false,`, ``):                                 "",
		chat(`"strict":true,`, ``) + `,"parallel_tool_calls":false`: free + ` ((` + strict + ` | ` + hermesNow + `) "}\n" <259> ` + free + `)?`,
		chat(``, `"strict":true,`) + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"put"}}]}}`: "",
		chat(`"strict":true,`, ``) + `,"response_format":{"type":"json_object"}`:                                                                                       hermesThinks + `{"type":"object"}`,
	} {
		got, err := constraint(t, hermes, wire.Chat, fields)
		require.NoError(t, err, fields)
		require.Equal(t, want, got, fields)
	}
	one := free + ` (` + strict + ` ("}\n" <259> "\n" ` + strict + `)* "}\n" <259> ` + free + `)*`
	for api, fields := range map[*wire.API]string{
		wire.Messages:  `"tools":[{"name":"put","strict":true,"input_schema":` + schema + `}]`,
		wire.Responses: `"tools":[{"type":"function","name":"put","strict":true,"parameters":` + schema + `}]`,
	} {
		got, err := constraint(t, hermes, api, fields)
		require.NoError(t, err)
		require.Equal(t, one, got)
	}
	bare, err := prompt.Load(fstest.MapFS{"tokenizer.json": byteTokenizer("<|im_start|>", "<|im_end|>")}, &prompt.Options{Family: "qwen3"})
	require.NoError(t, err)
	_, err = constraint(t, bare, wire.Chat, chat(`"strict":true,`, ``))
	fault, ok := errors.AsType[*apierr.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, apierr.CodeUnsupported, fault.Code, "the marker is not a token")

	harmony, err := prompt.Load(fstest.MapFS{
		"tokenizer.json": byteTokenizer("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>", "<|return|>"),
		"chat_template.jinja": file(`{{ tools }}{% for m in messages %}{% if m.role != "assistant" %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% else %}` +
			`{% if m.reasoning_content %}<|start|>assistant<|channel|>analysis<|message|>{{ m.reasoning_content }}<|end|>{% endif %}` +
			`{% if m.content %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>{% endif %}` +
			`{% for c in m.tool_calls or [] %}<|start|>assistant<|channel|>commentary to=functions.{{ c.function.name }} <|constrain|>json<|message|>{{ c.function.arguments | tojson }}<|call|>{% endfor %}` +
			`{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}`),
	}, &prompt.Options{Family: "harmony"})
	require.NoError(t, err)
	got, err := constraint(t, harmony, wire.Chat, chat(`"strict":true,`, ``))
	require.NoError(t, err)
	const rest = `not[256 257 258 259 260 261 262]*`
	require.Equal(t, `(<257> /[a-z]{1,20}/ <258> `+rest+` <260> <256> "assistant")* (<257> /[a-z]{1,20}/ <258> `+rest+
		` | (<257> "commentary to=functions.put " <259> "json" <258> {"properties":{"n":{"type":"integer"}},"type":"object"} | <257> "commentary to=functions.now " <259> "json" <258> {"type":"object"}))`, got,
		"its call and its text begin with the same token")
}

// Arguments of XML families are written one by one: texts up to their closing tag, everything else as JSON.
func TestConstraintOfParameters(t *testing.T) {
	got, err := constraint(t, constrained(t, "qwen3_coder"), wire.Chat, `"tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"put","parameters":`+
		`{"type":"object","properties":{"s":{"type":"string"},"kind":{"enum":["a","b"]},"list":{"type":"array","items":{"$ref":"#/$defs/e"}},"any":{"anyOf":[{"type":"integer"},{"type":"string"}]}},`+
		`"required":["s","list"],"$defs":{"e":{"type":"integer"}}}}}]`)
	require.NoError(t, err)
	require.Equal(t, `<258> "\n<function=put>\n" "<parameter=s>\n" until "\n</parameter>\n" `+
		`("<parameter=kind>\n" ("a" | "b") "\n</parameter>\n")? `+
		`"<parameter=list>\n" {"$defs":{"e":{"type":"integer"}},"items":{"$ref":"#/$defs/e"},"type":"array"} "\n</parameter>\n" `+
		`("<parameter=any>\n" until "\n</parameter>\n")? "</function>\n" <259>`, strings.TrimPrefix(got, hermesThinks))
}

// Arguments that are written one by one have the types, choices and names that the schema declares through references and
// combinations of schemas.
func TestConstraintOfComposedParameters(t *testing.T) {
	const (
		end  = ` "\n</parameter>\n"`
		v    = `"<parameter=v>\n" `
		text = `until "\n</parameter>\n"`
	)
	m := constrained(t, "qwen3_coder")
	for _, tt := range []struct{ schema, want string }{
		{`"properties":{"v":{"$ref":"#/$defs/n"}},"required":["v"],"$defs":{"n":{"type":"integer"}}`, v + `{"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n"}` + end},
		{`"properties":{"v":{"$ref":"#/$defs/k"}},"required":["v"],"$defs":{"k":{"enum":["x","y"]}}`, v + `("x" | "y")` + end},
		{`"properties":{"v":{"$ref":"#/$defs/s"}},"required":["v"],"$defs":{"s":{"type":"string"}}`, v + text},
		{`"properties":{"v":{"allOf":[{"type":"integer"}]}},"required":["v"]`, v + `{"allOf":[{"type":"integer"}]}` + end},
		{`"properties":{"v":{"const":5}},"required":["v"]`, v + `{"const":5}` + end},
		{`"properties":{"v":{"enum":[1,2]}},"required":["v"]`, v + `{"enum":[1,2]}` + end},
		{`"properties":{"v":{"enum":["a",1,null]}},"required":["v"]`, `(` + v + `"a"` + end + ` | ` + v + `{"enum":[1,null]}` + end + `)`},
		{`"properties":{"v":{"enum":["a","","b"]}},"required":["v"]`, v + `(("a" | "b"))?` + end},
		{`"properties":{"v":{"enum":[""]}},"required":["v"]`, v + strings.TrimSpace(end)},
		{`"properties":{"v":{"anyOf":[{"enum":["a","b"]},{"type":"null"}]}},"required":["v"]`, `(` + v + `("a" | "b")` + end + ` | ` + v + `{"type":"null"}` + end + `)`},
		{`"properties":{"v":{"anyOf":[{"enum":["a","b"]},{"type":"string"}]}},"required":["v"]`, v + text},
		{`"properties":{"v":{"$ref":"#/properties/v"}},"required":["v"]`, v + text}, // which refers to itself
		{`"properties":{"v":{"type":"array","items":{"$ref":"#/properties/n"}},"n":{"type":"integer"}},"required":["v"]`,
			v + `{"$defs":{"root":{"properties":{"n":{"type":"integer"},"v":{"items":{"$ref":"#/$defs/root/properties/n"},"type":"array"}},"required":["v"],"type":"object"}},"items":{"$ref":"#/$defs/root/properties/n"},"type":"array"}` + end +
				` ("<parameter=n>\n" {"type":"integer"}` + end + `)?`},

		{`"$ref":"#/$defs/o","$defs":{"o":{"properties":{"v":{"type":"string"}},"required":["v"]}}`, v + text},
		{`"allOf":[{"properties":{"v":{"type":"string"}}},{"required":["v"]}]`, v + text},
		{`"properties":{"v":{"type":"string"}},"allOf":[{"properties":{"v":{"const":"a"}},"required":["v"]}]`, v + `"a"` + end},
		{`"properties":{"v":{"type":"string"},"w":{"const":1}},"anyOf":[{"required":["v"]},{"required":["w"]}]`,
			`(` + v + text + ` ("<parameter=w>\n" {"const":1}` + end + `)? | (` + v + text + `)? "<parameter=w>\n" {"const":1}` + end + `)`},
		{`"oneOf":[{"properties":{"v":{"const":"a"}},"required":["v"]},{"type":"object","properties":{}},{"type":"null"}]`, `(` + v + `"a"` + end + `)?`},
	} {
		got, err := constraint(t, m, wire.Chat, `"tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"put","parameters":{"type":"object",`+tt.schema+`}}}]`)
		require.NoError(t, err, tt.schema)
		got = strings.TrimSuffix(strings.TrimPrefix(got, hermesThinks+`<258> "\n<function=put>\n" `), ` "</function>\n" <259>`)
		require.Equal(t, tt.want, got, tt.schema)
	}
	for schema, want := range map[string]string{
		`"$ref":"#"`:            "nested too deep, or refers to itself",
		`"$ref":"#/$defs/gone"`: `the reference "#/$defs/gone" leads nowhere`,
		`"anyOf":[{}` + strings.Repeat(`,{}`, 64) + `]`: "more than 64 alternatives",
		`"anyOf":[{"$ref":"#"},{"$ref":"#"}]`:           "the schema of put cannot be read",
	} {
		_, err := constraint(t, m, wire.Chat, `"tool_choice":"required","tools":[{"type":"function","function":{"name":"put","parameters":{`+schema+`}}}]`)
		require.ErrorContains(t, err, want)
	}
}

// Texts that are written without quotes follow the schema as strings in JSON do.
func TestConstraintOfTexts(t *testing.T) {
	m := constrained(t, "qwen3_coder")
	for _, tt := range []struct{ schema, yes, not string }{
		{`{"type":"string","minLength":2}`, "ab/a\nb/<b>", "/a"},
		{`{"type":"string","maxLength":3}`, "/abc/<b>", "abcd"},
		{`{"type":"string","pattern":"^[a-z]+$"}`, "a/abc", "/a1"},
		{`{"type":"string","pattern":"b"}`, "b/abc\n", "/ac"},
		{`{"type":"string","format":"ipv4"}`, "1.2.3.4", "1.2.3"},
		{`{"allOf":[{"type":"string","minLength":1},{"maxLength":2}]}`, "a/ab", "/abc"},
		{`{"$ref":"#/$defs/s","maxLength":1}`, "/a", "ab"},
		{`{"type":["string","null"],"maxLength":2}`, "a/null", "abc"},
		{`{"anyOf":[{"type":"integer","minimum":3},{"type":"string"}]}`, "3/x/", "2/-5"}, // which the parser reads as numbers
		{`{"type":["integer","string"]}`, "2/x", ""},
		{`{"enum":["a","b</parameter>","c"],"maxLength":1}`, "a/c", "b"},
	} {
		g, grammar := callGrammar(t, m, `{"type":"object","properties":{"v":`+tt.schema+`},"required":["v"],"$defs":{"s":{"type":"string"}}}`)
		call := func(text string) string {
			return "<tool_call>\n<function=put>\n<parameter=v>\n" + text + "\n</parameter>\n</function>\n</tool_call>"
		}
		for text := range strings.SplitSeq(tt.yes, "/") {
			require.True(t, g.accepts(call(text)), "%s: %q\n%s", tt.schema, text, grammar)
		}
		for text := range strings.SplitSeq(tt.not, "/") {
			if tt.not != "" {
				require.False(t, g.accepts(call(text)), "%s: %q", tt.schema, text)
			}
		}
	}
}

// callGrammar returns the grammar of a request that requires a call of put.
func callGrammar(t *testing.T, m *prompt.Model, schema string) (*grammarReader, string) {
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"q"}],"tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"put","parameters":`+schema+`}}]}`), nil)
	require.NoError(t, err)
	p, err := m.Render(req, noon)
	require.NoError(t, err)
	c, err := m.Constraint(req, p)
	require.NoError(t, err, schema)
	grammar, err := c.GBNF()
	require.NoError(t, err, schema)
	grammar = strings.NewReplacer("<[258]>", `"<tool_call>"`, "<[259]>", `"</tool_call>"`, "<[260]>", `"<think>"`, "<[261]>", `"</think>"`).Replace(grammar)
	return readGrammar(t, grammar), grammar
}

// Arguments that are written one by one may have the names that the schema permits without declaring them, if it says so.
func TestConstraintOfUndeclaredParameters(t *testing.T) {
	m := constrained(t, "qwen3_coder")
	const declared = `"properties":{"a":{"type":"integer"}}`
	for _, tt := range []struct{ schema, yes, not string }{
		{declared, "a=1;/;", "b=1;/a=1;b=x;"},
		{declared + `,"additionalProperties":true`, "a=1;b=x y;/c-d=1;e=[];", "a=x;/a=1;a=2;/ =1;"},
		{declared + `,"additionalProperties":{"type":"integer"}`, "b=1;c=2;", "b=x;"},
		{declared + `,"additionalProperties":false,"patternProperties":{"^x_":{"type":"integer"}}`, "x_b=1;/x_=2;", "y=1;/x_b=z;"},
		{declared + `,"additionalProperties":{"type":"null"},"patternProperties":{"^x":{"type":"integer"}}`, "x=1;y=null;", "x=null;/y=1;"},
		{`"additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2`, "b=1;/b=1;c=1;", "/b=1;c=1;d=1;"},
		{``, "/b=1;c=x;", "a b=1;"},
		{declared + `,"required":["b"]`, "a=1;b=x;/b={};", "a=1;"},
		{declared + `,"required":["b"],"additionalProperties":{"type":"null"}`, "b=null;c=null;", "a=1;/b=1;"},
		{`"properties":{"gt>x":{"type":"integer"},"a":{"type":"integer"}}`, "a=1;/", "gt>x=1;"},
		{`"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"minProperties":1`, "a=1;/b=1;/a=1;b=2;", "/b=1;a=1;"},
	} {
		g, grammar := callGrammar(t, m, strings.Replace(`{"type":"object",`+tt.schema+`}`, ",}", "}", 1))
		call := func(text string) string {
			params := ""
			for p := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
				if name, value, ok := strings.Cut(p, "="); ok {
					params += "<parameter=" + name + ">\n" + value + "\n</parameter>\n"
				}
			}
			return "<tool_call>\n<function=put>\n" + params + "</function>\n</tool_call>"
		}
		for text := range strings.SplitSeq(tt.yes, "/") {
			require.True(t, g.accepts(call(text)), "%s: %q\n%s", tt.schema, text, grammar)
		}
		for text := range strings.SplitSeq(tt.not, "/") {
			require.False(t, g.accepts(call(text)), "%s: %q", tt.schema, text)
		}
	}
	for schema, want := range map[string]string{
		`"properties":{"gt>x":{}},"required":["gt>x"]`:                        `the tool put requires "gt>x", which`,
		`"properties":{"a":{}},"required":["b"],"additionalProperties":false`: `the tool put requires "b", which`,
		`"allOf":[{"type":"string"},{"type":"integer"}]`:                      "the schema of put permits no arguments",
	} {
		_, err := constraint(t, m, wire.Chat, `"tool_choice":"required","tools":[{"type":"function","function":{"name":"put","parameters":{`+schema+`}}}]`)
		require.ErrorContains(t, err, want)
	}
}

// Arguments are an object, also if the schema of the tool does not say so.
func TestConstraintOfUntypedSchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"description":"none"}`:                      `{"description":"none","type":"object"}`,
		`{"properties":{"n":{"type":"integer"}}}`:     `{"properties":{"n":{"type":"integer"}},"type":"object"}`,
		`{"type":"object"}`:                           `{"type":"object"}`,
		`{"$defs":{"n":{}},"$ref":"#/$defs/n"}`:       `{"$defs":{"n":{}},"$ref":"#/$defs/n"}`,
		`{"anyOf":[{"type":"object","required":[]}]}`: `{"anyOf":[{"required":[],"type":"object"}]}`,
	} {
		got, err := constraint(t, constrained(t, "qwen3"), wire.Chat, `"tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"put","parameters":`+schema+`}}]`)
		require.NoError(t, err)
		require.Equal(t, hermesThinks+`<258> "\n{\"name\": \"put\", \"arguments\": " `+want+` "}\n" <259>`, got)
	}
}

// A text whose closing tag has a marker inside, as DeepSeek-V3.2 has, may contain what precedes the marker.
func TestConstraintOfMarkersInTags(t *testing.T) {
	m, err := prompt.Load(fstest.MapFS{
		"tokenizer.json": byteTokenizer("<|im_start|>", "<|im_end|>", "｜DSML｜"),
		"chat_template.jinja": file(`{{ tools }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% if m.tool_calls %}<｜DSML｜function_calls>
{% for c in m.tool_calls %}<｜DSML｜invoke name="{{ c.function.name }}">
{% for k, v in c.function.arguments.items() %}<｜DSML｜parameter name="{{ k }}" string="{{ 'true' if v is string else 'false' }}">{{ v if v is string else v | tojson }}</｜DSML｜parameter>
{% endfor %}</｜DSML｜invoke>
{% endfor %}</｜DSML｜function_calls>{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`),
	}, &prompt.Options{Family: "deepseek_v3_2"})
	require.NoError(t, err)
	got, err := constraint(t, m, wire.Chat, `"tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"put","parameters":{"type":"object","properties":{"s":{"type":"string"}},"required":["s"]}}}]`)
	require.NoError(t, err)
	require.Contains(t, got, `parameter name=\"s\" string=\"true\">" until "</" (until "</")* <258> "parameter>`)

	// What is not a text has an attribute of its own.
	for schema, want := range map[string]string{
		`{"type":["string","null"]}`:                                   `string=\"false\">" {"type":"null"} "</" <258>`,
		`{"anyOf":[{"type":"string"},{"type":"integer","minimum":3}]}`: `string=\"false\">" {"minimum":3,"type":"integer"} "</" <258>`,
		`{}`: `string=\"false\">" {"type":["object","array","number","boolean","null"]} "</" <258>`,
	} {
		got, err := constraint(t, m, wire.Chat, `"tool_choice":"required","parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"put","parameters":{"type":"object","properties":{"s":`+schema+`},"required":["s"]}}}]`)
		require.NoError(t, err)
		require.Contains(t, got, `string=\"true\">" until`)
		require.Contains(t, got, want)
	}
}

// A prompt that has ended the reasoning leaves no room for more, and one inside it requires its end.
func TestConstraintAfterReasoning(t *testing.T) {
	source := `{{ tools }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% if enable_thinking is defined and not enable_thinking %}

</think>

{% endif %}{% endif %}`
	m, err := prompt.Load(fstest.MapFS{
		"tokenizer.json":      byteTokenizer("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
		"chat_template.jinja": file(source),
	}, &prompt.Options{Family: "qwen3"})
	require.NoError(t, err)
	call := hermesNow + ` "}\n" <259>`
	for more, want := range map[string]string{
		``: `not[256 257 258 259 260 261]* <261> /\n{0,2}/ ` + call,
		`,"chat_template_kwargs":{"enable_thinking":false}`: call,
	} {
		got, err := constraint(t, m, wire.Chat, constraintTools+`,"tool_choice":{"type":"function","function":{"name":"now"}},"parallel_tool_calls":false`+more)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestConstraintErrors(t *testing.T) {
	hermes := constrained(t, "qwen3")
	for fields, want := range map[string]string{
		constraintTools + `,"tool_choice":{"type":"function","function":{"name":"gone"}}`:                                                                    `tool_choice: The tool "gone" is not among the tools of the request.`,
		constraintTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"gone"}}]}}`: `tool_choice: The tool "gone" is not among the tools of the request.`,
		`"tool_choice":"required"`:                                       `tool_choice: A call is required, but there is no tool that the model can call.`,
		`"response_format":{"type":"yaml"}`:                              `response_format: The format "yaml" is not known.`,
		`"response_format":{"type":"json_schema"}`:                       `response_format: The format has no schema.`,
		`"response_format":{"type":"json_object"},"guided_regex":"a"`:    `guided_regex: The output cannot have two formats: response_format and guided_regex.`,
		`"structured_outputs":{"json":{},"regex":"a"}`:                   `structured_outputs.regex: The output cannot have two formats: structured_outputs.json and structured_outputs.regex.`,
		constraintTools + `,"tool_choice":"required","guided_regex":"a"`: `guided_regex: The output cannot be a required call and have the format of guided_regex.`,
		constraintTools + `,"tool_choice":"required","response_format":{"type":"structural_tag","format":{"type":"token","token":7}}`: `response_format: The output cannot be a required call and have the format of response_format.`,
		`"structured_outputs":[1]`:           `structured_outputs: The constraint is not an object.`,
		`"structured_outputs":{"lark":"x"}`:  `structured_outputs.lark: The constraint "lark" is not known.`,
		`"structured_outputs":{"choice":[]}`: `structured_outputs.choice: The choices are not a list of texts.`,
		`"structured_outputs":{"regex":7}`:   `structured_outputs.regex: The constraint is not a string.`,
	} {
		_, err := constraint(t, hermes, wire.Chat, fields)
		var e *apierr.Error
		require.True(t, errors.As(err, &e), fields)
		require.Equal(t, want, e.Param+": "+e.Message)
	}

	m, err := prompt.Load(fstest.MapFS{
		"tokenizer.json": byteTokenizer("<|im_end|>"), "chat_template.jinja": file(`{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}`),
	}, nil)
	require.NoError(t, err)
	_, err = constraint(t, m, wire.Chat, constraintTools+`,"tool_choice":"required"`)
	require.ErrorContains(t, err, "The output cannot be constrained: ")
}

// A tool choice that is not known, or names a tool which another server runs, must not become auto.
func TestConstraintRefusesUnknownToolChoice(t *testing.T) {
	m := constrained(t, "qwen3")
	const function = `[{"type":"function","function":{"name":"now"}}]`
	for _, tt := range []struct {
		api          *wire.API
		fields, want string
		code         string
	}{
		{wire.Chat, `"tool_choice":"zzz"`, "tool_choice: The tool choice is not known: there are auto, none, required and objects that name tools.", ""},
		{wire.Chat, `"tool_choice":{}`, "tool_choice: The tool choice is not known: there are auto, none, required and objects that name tools.", ""},
		{wire.Chat, `"tool_choice":{"type":"zzz"}`, `tool_choice: The output cannot be constrained: the type "zzz" of the tool choice is not known, or belongs to a tool which another server runs.`, apierr.CodeUnsupported},
		{wire.Chat, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"zzz","tools":` + function + `}}`, "tool_choice: The tool choice has no tools, or another mode than auto and required.", ""},
		{wire.Chat, `"tool_choice":{"type":"allowed_tools","mode":"required","tools":` + function + `}`, "tool_choice: The tool choice has no tools, or another mode than auto and required.", ""},
		{wire.Chat, `"function_call":"zzz"`, "function_call: The tool choice is not known: there are auto, none, required and objects that name tools.", ""},
		{wire.Chat, `"function_call":{"name":"gone"}`, `function_call: The tool "gone" is not among the tools of the request.`, ""},
		{wire.Chat, `"tool_choice":null,"function_call":{"name":"gone"}`, `function_call: The tool "gone" is not among the tools of the request.`, ""},
		{wire.Chat, `"tool_choice":"zzz","function_call":"auto"`, "tool_choice: The tool choice is not known: there are auto, none, required and objects that name tools.", ""},
		{wire.Responses, `"tool_choice":{"type":"web_search_preview"}`, `tool_choice: The output cannot be constrained: the type "web_search_preview" of the tool choice is not known, or belongs to a tool which another server runs.`, apierr.CodeUnsupported},
		{wire.Messages, `"tool_choice":{}`, "tool_choice: The tool choice is not known: there are the types auto, any, none and tool.", ""},
		{wire.Chat, `"tool_choice":null`, "", ""},
		{wire.Chat, `"function_call":null`, "", ""},
		{wire.Chat, `"function_call":"auto"`, "", ""},
		{wire.Responses, `"tool_choice":null`, "", ""},
		{wire.Messages, `"tool_choice":null`, "", ""},
	} {
		got, err := constraint(t, m, tt.api, tt.fields)
		require.Empty(t, got)
		if tt.want == "" {
			require.NoError(t, err, tt.fields)
			continue
		}
		e, ok := errors.AsType[*apierr.Error](err)
		require.True(t, ok, tt.fields)
		require.Equal(t, tt.want, e.Param+": "+e.Message)
		require.Equal(t, tt.code, e.Code)
	}
}

// BenchmarkConstraint demands a call of one of 40 tools, with 800 special tokens in the vocabulary.
func BenchmarkConstraint(b *testing.B) {
	special := []string{"<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"}
	for i := range 800 {
		special = append(special, fmt.Sprintf("<|reserved_%d|>", i))
	}
	m, err := prompt.Load(fstest.MapFS{"tokenizer.json": byteTokenizer(special...)}, &prompt.Options{Family: "qwen3"})
	require.NoError(b, err)
	var tools []string
	for i := range 40 {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":"f%d","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}`, i))
	}
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"q"}],"tool_choice":"required","tools":[`+strings.Join(tools, ",")+`]}`), nil)
	require.NoError(b, err)
	p, err := m.Render(req, noon)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Constraint(req, p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(tools)), "µs/tool")
}
