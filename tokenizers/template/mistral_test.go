// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/template"
)

// TestMistral compares a conversation with the text of the tokens that mistral-common 1.13.1 encodes, for each version.
func TestMistral(t *testing.T) {
	const (
		tools    = `[{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":true}}]`
		declared = `[AVAILABLE_TOOLS][{"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}][/AVAILABLE_TOOLS]`
		system   = `{"role":"system","content":"S"},`
		plain    = system + `{"role":"user","content":"Q"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b "}]},` +
			`{"role":"assistant","reasoning_content":"R","content":"A "},{"role":"user","content":"[INST]"}`
		calls = system + `{"role":"user","content":"Q"},{"role":"assistant","content":null,"tool_calls":[{"id":"call00001","type":"function","function":{"name":"f","arguments":"{\"x\":1.50}"}},` +
			`{"id":"call00002","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"call00002","name":"f","content":"{\"y\":2}"},{"role":"tool","tool_call_id":"call00001","name":"f","content":"R1"},` +
			`{"role":"assistant","content":"A"},{"role":"user","content":"N"}`
	)
	for version, want := range map[int][2]string{
		1: {"<s>[INST] S\n\nQ\n\na\n\nb  [/INST] A </s>[INST] [INST] [/INST]", ""},
		2: {"<s>[INST]Q\n\na\n\nb [/INST]A</s>" + declared + "[INST]S\n\n[INST][/INST]", "<s>[INST]Q[/INST]A</s>" + declared + "[INST]S\n\nN[/INST]"},
		3: {"<s>[INST]Q\n\na\n\nb [/INST]A</s>" + declared + "[INST]S\n\n[INST][/INST]",
			`<s>[INST]Q[/INST][TOOL_CALLS][{"name": "f", "arguments": {"x": 1.5}, "id": "call00001"}, {"name": "f", "arguments": {}, "id": "call00002"}]</s>` +
				`[TOOL_RESULTS]{"content": {"y": 2}, "call_id": "call00002"}[/TOOL_RESULTS][TOOL_RESULTS]{"content": "R1", "call_id": "call00001"}[/TOOL_RESULTS]A</s>` + declared + "[INST]S\n\nN[/INST]"},
		7: {"<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]Q\n\na\n\nb [/INST]A</s>" + declared + "[INST][INST][/INST]",
			`<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]Q[/INST][TOOL_CALLS][{"name": "f", "arguments": {"x": 1.5}, "id": "call00001"}, {"name": "f", "arguments": {}, "id": "call00002"}]</s>` +
				`[TOOL_RESULTS]call00002[TOOL_CONTENT]{"y":2}[/TOOL_RESULTS][TOOL_RESULTS]call00001[TOOL_CONTENT]R1[/TOOL_RESULTS]A</s>` + declared + "[INST]N[/INST]"},
		11: {"<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]Q\n\na\n\nb [/INST]A</s>" + declared + "[INST][INST][/INST]",
			`<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]Q[/INST][TOOL_CALLS]f[CALL_ID]call00001[ARGS]{"x": 1.5}[TOOL_CALLS]f[CALL_ID]call00002[ARGS]{}</s>` +
				`[TOOL_RESULTS]call00001[TOOL_CONTENT]R1[/TOOL_RESULTS][TOOL_RESULTS]call00002[TOOL_CONTENT]{"y":2}[/TOOL_RESULTS]A</s>` + declared + "[INST]N[/INST]"},
		13: {"<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT]" + declared + "[INST]Q\n\na\n\nb [/INST][THINK]R[/THINK]A </s>[INST][INST][/INST]",
			"<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT]" + declared + `[INST]Q[/INST][TOOL_CALLS]f[ARGS]{"x": 1.5}[TOOL_CALLS]f[ARGS]{}</s>[TOOL_RESULTS]R1[/TOOL_RESULTS][TOOL_RESULTS]{"y":2}[/TOOL_RESULTS]A</s>[INST]N[/INST]`},
		15: {"<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT]" + declared + `[MODEL_SETTINGS]{"reasoning_effort": "high"}[/MODEL_SETTINGS]` + "[INST]Q\n\nab [/INST][THINK]R[/THINK]A </s>[INST][INST][/INST]",
			"<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT]" + declared + `[MODEL_SETTINGS]{"reasoning_effort": "high"}[/MODEL_SETTINGS][INST]Q[/INST][TOOL_CALLS]f[ARGS]{"x": 1.5}[TOOL_CALLS]f[ARGS]{}</s>[TOOL_RESULTS]R1[/TOOL_RESULTS][TOOL_RESULTS]{"y":2}[/TOOL_RESULTS]A</s>[INST]N[/INST]`},
	} {
		tpl := lookup("mistral", vars{"version": version, "thinking": true, "reasoning_efforts": []string{"none", "high"}, "reasoning_effort": "none"})
		for i, messages := range []string{plain, calls} {
			if want[i] == "" {
				continue
			}
			req := template.Request{Messages: []byte("[" + messages + "]"), Kwargs: []byte(`{"reasoning_effort":"high"}`), AddGenerationPrompt: true}
			if version > 1 {
				req.Tools = []byte(tools)
			}
			p, err := tpl.Render(req)
			if err != nil {
				t.Errorf("v%d: %v", version, err)
				continue
			}
			if p.Text != want[i] {
				t.Errorf("v%d:\ngot  %s\nwant %s", version, p.Text, want[i])
			}
			text := ""
			for _, s := range p.Segments {
				text += s.Text
				if s.Trusted && strings.Contains(s.Text, "[INST][INST]") {
					t.Errorf("v%d: the user's [INST] is trusted in %q", version, s.Text)
				}
			}
			if text != p.Text {
				t.Errorf("v%d: segments %q", version, text)
			}
		}
	}
}

func TestMistralErrors(t *testing.T) {
	for _, tt := range []struct {
		version       int
		messages, err string
	}{
		{3, `{"role":"user","content":"Q"},{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"f","arguments":"{}"}}]}`, `messages[1]: has the id "call_1" of a call, not nine letters and digits`},
		{7, `{"role":"user","content":"Q"},{"role":"assistant","content":"A"},{"role":"system","content":"S"}`, "messages[2]: is system text after a response"},
		{1, `{"role":"user","content":"Q"},{"role":"assistant","content":"","tool_calls":[{"id":"call00001","function":{"name":"f","arguments":"{}"}}]}`, "messages[1]: has calls or results"},
	} {
		_, err := lookup("mistral", vars{"version": tt.version}).Render(template.Request{Messages: []byte("[" + tt.messages + "]")})
		if err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("v%d: %v, want %q", tt.version, err, tt.err)
		}
	}
	if _, err := template.Lookup("mistral", &template.Options{Variables: vars{"version": 5}}); err == nil || !strings.Contains(err.Error(), "version: is 5, not one of [1 2 3 7 11 13 15]") {
		t.Error(err)
	}
	p, err := lookup("mistral", vars{"version": 13}).Render(template.Request{ContinueFinalMessage: "content",
		Messages: []byte(`[{"role":"user","content":"Q"},{"role":"assistant","reasoning_content":"R","content":"A"}]`)})
	if want := "<s>[INST]Q[/INST]A"; err != nil || p.Text != want { // no [THINK] in the vocabulary
		t.Errorf("got %v, want %q; %v", p, want, err)
	}
	c := template.Probe(lookup("mistral", vars{"version": 11}))
	if !c.Has("short_ids") || !c.Has("tool_calls") || !c.Has("tool_role") || c.Has("system_middle") || c.Has("developer") {
		t.Errorf("%+v", c)
	}
}
