// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/internal/calltext"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// TestWrittenCalls reads what is written for past calls with the parser of the family.
func TestWrittenCalls(t *testing.T) {
	list := []calltext.Call{
		{Name: "get", Arguments: `{"city": "Oslo", "n": -1.5, "on": true, "off": false, "none": null, "list": ["a", {"b": [1, {}]}], "text": "a \"b\"\n\\ <x> é 北"}`},
		{Name: "run", Arguments: `{}`},
		{Name: "get", Arguments: `{"text": "two"}`},
	}
	count := 0
	for _, g := range family.All() {
		text := prompt.WrittenCalls(g, list)
		if text == "" {
			continue
		}
		count++
		t.Run(g.Name, func(t *testing.T) {
			p, err := parsers.Default().New(g.Name, &parsers.Options{Tools: []parsers.Tool{{Name: "get"}, {Name: "run"}}, Start: parsers.StartResponse})
			require.NoError(t, err)
			var c event.Collector
			events, err := p.Append(nil, []byte(text))
			require.NoError(t, err)
			c.Add(events...)
			events, _ = p.Finish(events[:0], event.Stop)
			c.Add(events...)
			got := c.Answers[0].Calls()
			require.Len(t, got, len(list), "%s", text)
			for i, call := range got {
				require.Equal(t, list[i].Name, call.Name)
				require.JSONEq(t, list[i].Arguments, string(call.Data))
			}
			require.Empty(t, strings.TrimSpace(c.Answers[0].Text()), "%s", text)
		})
	}
	require.Greater(t, count, 20)

	for name, want := range map[string]string{
		"lfm2":        `<|tool_call_start|>[get(city="Oslo", n=-1.5, on=True, off=False, none=None, list=["a", {"b": [1, {}]}], text="a \"b\"\n\\ <x> é 北"), run(), get(text="two")]<|tool_call_end|>`,
		"granite":     "\n" + `<|tool_call|>[{"name": "get", "arguments": ` + list[0].Arguments + `}, {"name": "run", "arguments": {}}, {"name": "get", "arguments": {"text": "two"}}]`,
		"hermes":      "\n<tool_call>\n" + `{"name": "get", "arguments": ` + list[0].Arguments + "}\n</tool_call>\n<tool_call>\n" + `{"name": "run", "arguments": {}}` + "\n</tool_call>\n<tool_call>\n" + `{"name": "get", "arguments": {"text": "two"}}` + "\n</tool_call>",
		"deepseek_r1": "\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n" + list[0].Arguments + "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>run\n```json\n{}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n" + `{"text": "two"}` + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"qwen3_coder": "",
	} {
		require.Equal(t, want, prompt.WrittenCalls(family.New(name), list), name)
	}
}

// TestTemplateWithoutCalls renders past calls with a template that prints none: as the family writes them, with its markers
// as control tokens and the rest as text. Without a family, they are text, which is a loss.
func TestTemplateWithoutCalls(t *testing.T) {
	const (
		source = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ tools or '' }}{% if add_generation_prompt %}<assistant>{% endif %}`
		body   = `{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"text","text":"ok"},` +
			`{"type":"tool_use","id":"c","name":"f","input":{"x":"<|tool_call_end|>","y":true}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}]}`
	)
	render := func(m *prompt.Model) *prompt.Prompt {
		r, err := wire.Messages.Decode([]byte(body), nil)
		require.NoError(t, err)
		p, err := m.Render(r, noon)
		require.NoError(t, err)
		return p
	}
	m, err := prompt.New(compiled(source)(t), &prompt.Options{Family: "lfm2"})
	require.NoError(t, err)
	p := render(m)
	require.True(t, strings.HasPrefix(p.Text, `<user>go<assistant>ok<|tool_call_start|>[f(x="<|tool_call_end|>", y=True)]<|tool_call_end|><tool>r`), p.Text)
	require.Empty(t, p.Losses)
	var trusted []string
	for _, s := range p.Segments {
		if s.Trusted {
			trusted = append(trusted, s.Text)
		}
	}
	require.Equal(t, []string{"<user>", "<assistant>", "<|tool_call_start|>[", "(", ")]<|tool_call_end|><tool>"}, trusted[:5])
	require.True(t, slices.ContainsFunc(p.Spans, func(s template.Span) bool {
		return s.Kind == "tool_call" && strings.Contains(p.Text[s.Start:s.End], "y=True")
	}))

	other, err := m.WithFamily("granite") // the same template with another family
	require.NoError(t, err)
	require.Contains(t, render(other).Text, "<assistant>ok\n<|tool_call|>"+`[{"name": "f", "arguments": {"x": "<|tool_call_end|>", "y": true}}]<tool>r`)
	none, err := m.WithFamily("")
	require.NoError(t, err)
	p = render(none)
	require.Contains(t, p.Text, "<assistant>ok\n<tool_call>\n{\"name\": \"f\"")
	require.Equal(t, "messages[1]: tool calls became text", p.Losses[0].Why)
}
