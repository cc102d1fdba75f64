// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/template"
)

// TestFitSystemAfterUser renders system text at positions where DeepSeek's formats have begun the assistant's turn.
func TestFitSystemAfterUser(t *testing.T) {
	const (
		q, s, again = `{"role":"user","content":"Q"}`, `,{"role":"system","content":"S"}`, `,{"role":"user","content":"R"}`
		answer      = `,{"role":"assistant","content":"A"}`
		call        = `,{"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"T"}`

		b, u, a, e, sys = "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜></think>", "<｜end▁of▁sentence｜>", "<｜System｜>"
		reminder        = "<system-reminder>\nS\n</system-reminder>"
	)
	v3call := "\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
	v4call := "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
	for _, tt := range []struct {
		format, messages, want string
		notes                  []string
	}{
		{"deepseek_v3_2", q + s, b + u + "Q\n\n" + reminder + a,
			[]string{"messages[1]: system text after the first turn became a user message", "messages[1]: joined to the user message before it"}},
		{"deepseek_v3_2", q + s + answer + again, b + u + "Q\n\n" + reminder + a + "A" + e + u + "R" + a,
			[]string{"messages[1]: system text after the first turn became a user message", "messages[1]: joined to the user message before it"}},
		{"deepseek_v3_2", q + answer + s + again, b + u + "Q" + a + "A" + e + "S" + u + "R" + a, nil},
		{"deepseek_v3_2", q + call + s, b + u + "Q" + a + v3call + e + "\n\n<function_results>\n<result>T\n\n" + reminder + "</result>\n</function_results>\n\n</think>",
			[]string{"messages[3]: system text after a tool result was added to the result"}},
		{"deepseek_v3_2", q + again, b + u + "Q\n\nR" + a, []string{"messages[1]: joined to the user message before it"}},
		{"deepseek_v4", q + s, b + u + "Q\n\n" + reminder + a, []string{"messages[1]: system text after the first turn became a user message"}},
		{"deepseek_v4", q + s + answer + again, b + u + "Q\n\n" + reminder + a + "A" + e + u + "R" + a, []string{"messages[1]: system text after the first turn became a user message"}},
		{"deepseek_v4", q + call + s, b + u + "Q" + a + v4call + e + u + "<tool_result>T\n\n" + reminder + "</tool_result>" + a,
			[]string{"messages[3]: system text after a tool result was added to the result"}},
		{"deepseek_v41", q + s + answer + again, b + u + "Q" + sys + "S" + a + "A" + e + u + "R" + a, nil},
	} {
		tpl, err := template.Lookup(tt.format, nil)
		if err != nil {
			t.Fatal(err)
		}
		caps := template.Probe(tpl)
		fitted, notes, err := template.Fit([]byte("["+tt.messages+"]"), &caps)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(notes, tt.notes) {
			t.Errorf("%s %s: notes %q, want %q", tt.format, tt.messages, notes, tt.notes)
		}
		p, err := tpl.Render(template.Request{Messages: fitted, AddGenerationPrompt: true})
		if err != nil || p.Text != tt.want {
			t.Errorf("%s %s:\ngot  %q\nwant %q\n%v", tt.format, tt.messages, p.Text, tt.want, err)
		}
	}
}

// TestProbeDeveloper probes templates that differ in the roles they know.
func TestProbeDeveloper(t *testing.T) {
	for name, tt := range map[string]struct {
		source string
		want   bool
	}{
		"prints any role, as Nemotron":        {`{% for m in messages %}<|im_start|>{{ m.role }}|{{ m.content }}{% endfor %}`, false},
		"no header for others, as Kimi K2":    {`{% for m in messages %}{% if m.role in ['system', 'user', 'assistant'] %}<{{ m.role }}>{% endif %}{{ m.content }}<end>{% endfor %}`, false},
		"treats it as system, as Llama 4":     {`{% for m in messages %}<{{ 'system' if m.role == 'developer' else m.role }}>{{ m.content }}{% endfor %}`, false},
		"drops it":                            {`{% for m in messages %}{% if m.role != 'developer' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`, false},
		"knows it":                            {`{% for m in messages %}{% if m.role == 'developer' %}<dev>{% elif m.role in ['system', 'user', 'assistant'] %}<{{ m.role }}>{% else %}{{ raise_exception('role') }}{% endif %}{{ m.content }}{% endfor %}`, true},
		"knows it, and prints it by its name": {`{% for m in messages %}{% if m.role in ['developer', 'system', 'user', 'assistant'] %}<{{ m.role }}>{{ '!' if m.role == 'developer' }}{{ m.content }}{% endif %}{% endfor %}`, true},
	} {
		tpl, err := template.Parse("t", tt.source, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c := template.Probe(tpl); c.Has("developer") != tt.want {
			t.Errorf("%s: developer %t, want %t", name, !tt.want, tt.want)
		}
	}
}

// TestMappingArguments renders arguments as each client spells them where a template has one branch for a mapping and
// one for a string, as Gemma 4's and Kimi K3's do.
func TestMappingArguments(t *testing.T) {
	const branches = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}{% set a = c.function.arguments %}[{{ c.function.name }} ` +
		`{% if a is mapping %}{% for k, v in a | dictsort %}{{ k }}:{{ v }},{% endfor %}{% else %}{{ a }}{% endif %}]{% endfor %}{% endfor %}`
	json := strings.Replace(branches, `{% for k, v in a | dictsort %}{{ k }}:{{ v }},{% endfor %}`, `{{ a | tojson }}`, 1)
	for _, tt := range []struct{ source, arguments, want string }{
		{branches, `{"city":"Oslo"}`, "city:Oslo,"},
		{branches, `"{\"city\":\"Oslo\"}"`, "city:Oslo,"},
		{branches, `"{\"city\": \"Oslo\"}"`, "city:Oslo,"},
		{branches, `""`, ""},
		{branches, `"Oslo"`, "Oslo"},
		{branches, `"[1]"`, "[1]"},
		{json, `{"city":"Oslo"}`, `{"city": "Oslo"}`},
		{json, `"{\"city\":  \"Oslo\"}"`, `{"city":  "Oslo"}`},
	} {
		tpl, err := template.Parse("t", tt.source, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tpl.Render(template.Request{Messages: []byte(`[{"role":"user","content":"Q"},{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":` + tt.arguments + `}}]}]`)})
		if want := "<user>Q<assistant>[f " + tt.want + "]"; err != nil || p.Text != want {
			t.Errorf("%s: got %v, want %q; %v", tt.arguments, p, want, err)
		}
	}
}

// TestEmptyTools renders a template that iterates over the tools of every request, as Hermes' tool_use does.
func TestEmptyTools(t *testing.T) {
	tpl, err := template.Parse("t", `<system>tools:{% for t in tools %} {{ t.function.name }}{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	caps := template.Probe(tpl)
	for messages, want := range map[string]string{
		`[{"role":"system","content":"S"},{"role":"user","content":"Q"}]`: "<system>tools:<system>S<user>Q",
		`[{"role":"user","content":"Q"},{"role":"system","content":"S"}]`: "<system>tools:<user>Q<system>S",
	} {
		fitted, notes, err := template.Fit([]byte(messages), &caps)
		if err != nil || len(notes) > 0 {
			t.Error(notes, err)
		}
		for _, tools := range []string{"", "null", "[]"} {
			p, err := tpl.Render(template.Request{Messages: fitted, Tools: []byte(tools)})
			if err != nil || p.Text != want {
				t.Errorf("%s, tools %q: got %v, want %q; %v", messages, tools, p, want, err)
			}
		}
	}
}

// TestProbeDoubledReasoning probes a template that prints an empty block of reasoning before the content of every
// response with calls, as llama.cpp's for DeepSeek V3.1 does. Reasoning in the content would be a second block.
func TestProbeDoubledReasoning(t *testing.T) {
	const source = `{% for m in messages %}<{{ m.role }}>{% if m.tool_calls %}HEAD{{ m.content }}{% for c in m.tool_calls %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}` +
		`{% else %}{{ m.content.split('</think>')[-1] }}{% endif %}{% endfor %}`
	for head, want := range map[string]bool{"": true, "<think>": true, "<think></think>": false, "<think>\n\n</think>\n\n": false} {
		tpl, err := template.Parse("t", strings.Replace(source, "HEAD", head, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c := template.Probe(tpl); c.Has("reasoning_inline") != want {
			t.Errorf("%q: reasoning_inline %t, want %t", head, !want, want)
		}
	}
}

// TestReasoningOrText renders a message with reasoning, text and calls for a template that refuses both texts, as
// gpt-oss' does.
func TestReasoningOrText(t *testing.T) {
	tpl, err := template.Parse("t", `{% for m in messages %}<{{ m.role }}>{% if m.tool_calls %}{% if m.content and m.thinking %}{{ raise_exception('both') }}{% endif %}`+
		`({{ m.content or m.thinking }}){% for c in m.tool_calls %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := template.Probe(tpl); !c.Has("reasoning_or_text") || c.Text("reasoning_key") != "thinking" {
		t.Fatalf("%+v", c)
	}
	for fields, want := range map[string]string{
		`"reasoning_content":"R","content":"T",`: "(R\n\nT)",
		`"reasoning_content":"R","content":"",`:  "(R)",
		`"reasoning_content":"","content":"T",`:  "(T)",
		`"content":"T",`:                         "(T)",
	} {
		p, err := tpl.Render(template.Request{Messages: []byte(`[{"role":"user","content":"Q"},{"role":"assistant",` + fields + `"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}]`)})
		if want := "<user>Q<assistant>" + want + "[f {}]"; err != nil || p.Text != want {
			t.Errorf("%s: got %v, want %q; %v", fields, p, want, err)
		}
	}
}

// TestProbeFault probes a template with a method that the sandbox of transformers refuses, as llama.cpp's for Kimi K2 has.
func TestProbeFault(t *testing.T) {
	for source, want := range map[string]string{
		`{% set ids = [] %}{% for m in messages %}{{ m.role }}{{ m.content }}{% for c in m.tool_calls or [] %}{% set _ = ids.append(c.id) %}{{ c.function.name }}{{ c.function.arguments }}{% endfor %}{% endfor %}`: `t:1:123: access to attribute "append" of list is unsafe`,
		`{% for m in messages %}{{ m.role }}{{ m.content }}{{ m.nothing.at_all }}{% endfor %}`:                                                                                                                       "",
		`{% for m in messages %}{{ raise_exception('append of list is unsafe') }}{% endfor %}`:                                                                                                                       "",
		`{% for m in messages %}{{ m.role }}{{ m.content }}{% if false %}{{ [].append(1) }}{% endif %}{% endfor %}`:                                                                                                  "",
		`{% for m in messages %}{{ m.role }}{{ m.content }}{{ 'x' if [].append is defined else 'y' }}{% endfor %}`:                                                                                                   "",
	} {
		tpl, err := template.Parse("t", source, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := template.Probe(tpl)
		if got := c.Text("fault"); got != want {
			t.Errorf("%s: fault %q, want %q", source, got, want)
		}
	}
}

// TestNullFields renders messages with fields that are null, which transformers 5 drops, and requests with an empty list
// of tools, which are requests without.
func TestNullFields(t *testing.T) {
	tpl, err := template.Parse("t", `{% if tools is not none %}Environment: ipython{% endif %}{% for m in messages %}<{{ m.role }}{{ ' ' ~ m.name if m.name is defined }}>{{ m.content }}`+
		`{% if m.tool_calls is defined %}{% for c in m.tool_calls %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}{% endif %}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tools := range []string{"", "null", "[]"} {
		p, err := tpl.Render(template.Request{Tools: []byte(tools), Messages: []byte(`[{"role":"user","content":"Q","name":null},{"role":"assistant","content":"A","tool_calls":null,"function_call":null},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":null}"}}]}]`)})
		if want := `<user>Q<assistant>A<assistant>[f {"x": null}]`; err != nil || p.Text != want {
			t.Errorf("tools %q: got %v, want %q; %v", tools, p, want, err)
		}
	}
}

// TestManyNullFields renders a message with many fields that are null, which takes linear time.
func TestManyNullFields(t *testing.T) {
	var m strings.Builder
	m.WriteString(`[{"role":"user","content":"Q"`)
	for i := range testsize.Pick(20_000, 200_000, 200_000) {
		fmt.Fprintf(&m, `,"k%d":null`, i)
	}
	m.WriteString(`,"name":"N","last":"L"}]`)
	tpl, err := template.Parse("t", `{% for m in messages %}{{ m.name }}{{ m.last }}{{ m.k7 is defined }}{{ m.content }}{{ m | length }}{% endfor %}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tpl.Render(template.Request{Messages: []byte(m.String())})
	if err != nil || p.Text != "NLFalseQ4" {
		t.Errorf("got %v; %v", p, err)
	}
}
