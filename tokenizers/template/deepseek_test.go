// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/template"
)

// deepseekGolden is testdata/deepseek.jsonl: what the published scripts printed (testdata/gen_formats.py).
const deepseekGolden = "testdata/deepseek.jsonl"

func deepseek(version string) template.Template {
	if version == "v3.2" {
		return lookup("deepseek_v3_2", vars{"compact_tools": true})
	}
	return lookup("deepseek_v4", nil)
}

func TestDeepSeek(t *testing.T) {
	for _, g := range readGoldenFile(t, deepseekGolden) {
		t.Run(g.Name, func(t *testing.T) {
			for _, messages := range [][]byte{g.Messages, textArguments(t, g.Messages)} {
				req := g.request()
				req.Messages = messages
				p, err := deepseek(g.Template).Render(req)
				if err != nil {
					t.Fatal(err)
				}
				if p.Text != g.Prompt {
					t.Errorf("got\n%s\nwant\n%s", p.Text, g.Prompt)
				}
				checkPrompt(t, p)
			}
		})
	}
}

// The text about tools of V3.2 has two spellings, which differ by empty lines.
func TestDeepSeekV32Tools(t *testing.T) {
	req := template.Request{Messages: []byte(`[{"role":"user","content":"Hi"}]`), Tools: []byte(`[{"name":"f"}]`)}
	loose, err := lookup("deepseek_v3_2", nil).Render(req)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := deepseek("v3.2").Render(req)
	if err != nil {
		t.Fatal(err)
	}
	const start = "<｜begin▁of▁sentence｜>\n\n"
	got := start + strings.ReplaceAll(strings.TrimPrefix(loose.Text, start), "\n\n", "\n")
	if got != compact.Text || strings.Count(loose.Text, "\n\n") != 8 {
		t.Errorf("got\n%s\nand\n%s", loose.Text, compact.Text)
	}
}

// TestDeepSeekV41 was written after SGLang's port, whose prompts were not at hand.
func TestDeepSeekV41(t *testing.T) {
	const messages = `[{"role":"system","content":"S"},{"role":"user","content":"Q"},
		{"role":"assistant","content":"A","reasoning_content":"R","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":\"x\",\"b\":[1]}"}}]},
		{"role":"tool","tool_call_id":"1","content":"T"},{"role":"system","content":"M"}]`
	p, err := lookup("deepseek_v41", nil).Render(template.Request{Messages: []byte(messages), Kwargs: []byte(`{"thinking":true,"reasoning_effort":77,"drop_thinking":false}`), AddGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	want := "<｜begin▁of▁sentence｜><｜System｜>Reasoning Effort: 77 (range 1-100, the higher the value, the more thorough the reasoning)\n\nS<｜User｜>Q<｜Assistant｜><think>R</think>A\n\n" +
		"<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" string=\"true\">x</｜DSML｜ parameter>\n<｜DSML｜ parameter name=\"b\" string=\"false\">[1]</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls><｜end▁of▁sentence｜>" +
		"<｜User｜><tool_result>T</tool_result><｜System｜>M<｜Assistant｜><think>"
	if p.Text != want {
		t.Errorf("got\n%s\nwant\n%s", p.Text, want)
	}
	checkPrompt(t, p)
}

// TestDeepSeekLenient has what the scripts fail at or do not have.
func TestDeepSeekLenient(t *testing.T) {
	const bos = "<｜begin▁of▁sentence｜>"
	v32, v4 := lookup("deepseek_v3_2", vars{"thinking": true}), lookup("deepseek_v4", vars{"thinking": true})
	for _, c := range []struct {
		name      string
		tpl       template.Template
		messages  string
		gen, cont bool
		want      string
	}{
		{"no generation prompt", v32, `[{"role":"user","content":"Q"}]`, false, false, "<｜User｜>Q"},
		{"after an answer", v32, `[{"role":"user","content":"Q"},{"role":"assistant","content":"A"}]`, true, false,
			"<｜User｜>Q<｜Assistant｜><think></think>A<｜end▁of▁sentence｜><｜Assistant｜><think>"},
		{"developer stays", v32, `[{"role":"developer","content":"D"},{"role":"user"}]`, true, false,
			"<｜User｜>\n\n# The user's message is: D<｜Assistant｜></think><｜User｜><｜Assistant｜><think>"},
		{"developer is system", lookup("deepseek_v4", vars{"developer_is_system": true, "add_bos": false}), `[{"role":"developer","content":"D"},{"role":"user","content":"Q"}]`, true, false,
			"D<｜User｜>Q<｜Assistant｜></think>"},
		{"arguments", v32, `[{"role":"user","content":"Q"},{"role":"assistant","tool_calls":[{"name":"f","arguments":"no"},{"name":"g","arguments":"[1]"},{"name":"h","arguments":{"k":null}},{"name":"i"}]}]`, false, false,
			"<｜User｜>Q<｜Assistant｜><think></think>\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"arguments\" string=\"true\">no</｜DSML｜parameter>\n</｜DSML｜invoke>\n" +
				"<｜DSML｜invoke name=\"g\">\n<｜DSML｜parameter name=\"arguments\" string=\"false\">[1]</｜DSML｜parameter>\n</｜DSML｜invoke>\n" +
				"<｜DSML｜invoke name=\"h\">\n<｜DSML｜parameter name=\"k\" string=\"false\">null</｜DSML｜parameter>\n</｜DSML｜invoke>\n" +
				"<｜DSML｜invoke name=\"i\">\n\n</｜DSML｜invoke>\n</｜DSML｜function_calls><｜end▁of▁sentence｜>"},
		{"continue text", v32, `[{"role":"user","content":"Q"},{"role":"assistant","content":"A","reasoning_content":"R"}]`, false, true, "<｜User｜>Q<｜Assistant｜><think>R</think>A"},
		{"continue reasoning", v4, `[{"role":"user","content":"Q"},{"role":"assistant","reasoning_content":"R"}]`, false, true, "<｜User｜>Q<｜Assistant｜><think>R"},
		{"continue user", v4, `[{"role":"user","content":"Q"}]`, false, true, "<｜User｜>Q"},
		{"continue system", v4, `[{"role":"system","content":"Q"}]`, false, true, "Q"},
		{"continue result", v4, `[{"role":"tool","content":"Q"}]`, false, true, "<｜User｜><tool_result>Q"},
		{"system alone", v4, `[{"role":"system","content":"Q"}]`, true, false, "Q<｜Assistant｜><think>"},
		{"parts", v4, `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"tool","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`, false, false,
			"<｜User｜>a\nb\n\n<tool_result>a\n\nb</tool_result>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := c.tpl.Render(template.Request{Messages: []byte(c.messages), AddGenerationPrompt: c.gen, ContinueFinalMessage: contentIf(c.cont)})
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimPrefix(p.Text, bos) != c.want {
				t.Errorf("got\n%s\nwant\n%s", p.Text, c.want)
			}
			checkPrompt(t, p)
		})
	}
}

func TestDeepSeekErrors(t *testing.T) {
	const two = `[{"role":"assistant","tool_calls":[{"id":"a","name":"f"},{"id":"b","name":"f"}]},{"role":"tool","tool_call_id":"b","content":"1"},{"role":"tool","tool_call_id":"a","content":"2"}]`
	for _, c := range []struct {
		version                       int
		messages, tools, kwargs, want string
		cont                          bool
	}{
		{32, `[{"role":"latest_reminder"}]`, ``, ``, `template: messages[0].role: is "latest_reminder", not system, developer, user, assistant or tool`, false},
		{32, `[{"role":"tool","content":"1"}]`, ``, ``, `template: messages[0]: is a result without a call before it`, false},
		{32, `[{"role":"developer"}]`, ``, ``, `template: messages[0].content: is empty`, false},
		{4, `[{"role":"user","task":"dance"}]`, ``, ``, `template: messages[0].task: is "dance", not a task of the format`, false},
		{4, `[{"role":"system","tools":3}]`, ``, ``, `template: messages[0].tools: is not an array`, false},
		{4, `[{"role":"user","content":[{"type":"image_url"}]}]`, ``, ``, `template: messages[0].content[0]: is not text but "image_url"`, false},
		{4, `[{"role":"user"}]`, ``, `{"thinking_mode":"often"}`, `template: kwargs.thinking_mode: is neither thinking nor chat`, false},
		{41, `[{"role":"user"}]`, ``, `{"thinking":true,"reasoning_effort":101}`, `template: kwargs.reasoning_effort: is not within 1 to 100`, false},
		{41, `[{"role":"user"}]`, ``, `{"reasoning_effort":[]}`, `template: kwargs.reasoning_effort: is neither a string nor an integer`, false},
		{4, `[{"role":"system"}]`, `[{"name":"f"}]`, ``, `template: messages[0]: cannot be continued: the tools follow it`, true},
		{4, two, ``, ``, `template: messages[2]: cannot be continued: another result follows it in the order of the calls`, true},
	} {
		tpl := map[int]template.Template{32: lookup("deepseek_v3_2", nil), 4: lookup("deepseek_v4", nil), 41: lookup("deepseek_v41", nil)}[c.version]
		_, err := tpl.Render(template.Request{Messages: []byte(c.messages), Tools: []byte(c.tools), Kwargs: []byte(c.kwargs), ContinueFinalMessage: contentIf(c.cont)})
		if _, ok := errors.AsType[*template.Error](err); !ok || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func FuzzDeepSeek(f *testing.F) {
	for i, g := range readGoldenFile(f, deepseekGolden) {
		if i%8 == 0 {
			f.Add(string(g.Messages), string(g.Tools), string(g.Kwargs), byte(1))
		}
	}
	f.Add(everywhere, everywhereTools, `{"thinking":true}`, byte(4))
	f.Fuzz(func(t *testing.T, messages, tools, kwargs string, bits byte) {
		v := vars{"thinking": bits&4 != 0, "drop_thinking": bits&8 == 0, "developer_is_system": bits&16 != 0}
		for _, name := range []string{"deepseek_v3_2", "deepseek_v4", "deepseek_v41"} {
			fuzzRender(t, lookup(name, v), messages, tools, kwargs, bits)
		}
	})
}
