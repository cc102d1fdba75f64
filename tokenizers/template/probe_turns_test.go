// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"slices"
	"testing"

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
