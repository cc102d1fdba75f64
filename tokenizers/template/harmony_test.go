// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-go/weft/tokenizers/template"
)

// harmonyGolden is testdata/harmony.jsonl: what the template of openai/gpt-oss-20b printed (testdata/gen_formats.py).
const harmonyGolden = "testdata/harmony.jsonl"

func TestHarmony(t *testing.T) {
	tpl := lookup("harmony", vars{"date": "2025-06-28"})
	for _, g := range readGoldenFile(t, harmonyGolden) {
		t.Run(g.Name, func(t *testing.T) {
			for _, messages := range [][]byte{g.Messages, textArguments(t, g.Messages)} {
				req := g.request()
				req.Messages = messages
				p, err := tpl.Render(req)
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

// textArguments puts the arguments of calls into strings, as OpenAI's form has them.
func textArguments(t *testing.T, messages []byte) []byte {
	t.Helper()
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(messages, &list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		var calls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		}
		if m["tool_calls"] == nil {
			continue
		}
		if err := json.Unmarshal(m["tool_calls"], &calls); err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			calls[i].Function.Arguments = fmt.Appendf(nil, "%q", calls[i].Function.Arguments)
		}
		m["tool_calls"], _ = json.Marshal(calls)
	}
	out, _ := json.Marshal(list)
	return out
}

const (
	sysHead = "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: 2025-06-28\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message."
	sysEnd  = "<|end|>"
)

// TestHarmonyLibrary has the conversations that the tests of openai/harmony turn on, in our words.
func TestHarmonyLibrary(t *testing.T) {
	for _, c := range []struct{ name, messages, tools, opt, want string }{
		{"instructions and tools", `[{"role":"system","content":"In riddles."},{"role":"user","content":"Hi"}]`,
			`[{"function":{"name":"where","description":"Finds\nthe user."}},
			{"function":{"name":"weather","description":"W.","parameters":{"type":"object","properties":{
				"place":{"type":"string","description":"City"},
				"unit":{"type":"string","enum":["c","f"],"default":"c"},
				"n":{"type":"integer","default":3},"s":{"type":"string","nullable":true,"default":"x\"y"},
				"t":{"type":"string","title":"T","description":"D","examples":["a","b"]},
				"u":{"description":"one","default":20,"oneOf":[{"type":"string","default":"k"},{"type":"number","description":"or so"}]},
				"v":{"type":["integer","string"]},"w":{"type":"array"},"x":{"type":"array","items":{"type":"boolean"}},
				"o":{"type":"object","description":"box","properties":{"a":{"type":"number"}}},"z":{}},
				"required":["place"]}}}]`, "",
			sysHead + "\nCalls to these tools must go to the commentary channel: 'functions'." + sysEnd +
				"<|start|>developer<|message|># Instructions\n\nIn riddles.\n\n# Tools\n\n## functions\n\nnamespace functions {\n\n" +
				"// Finds\n// the user.\ntype where = () => any;\n\n" +
				"// W.\ntype weather = (_: {\n// City\nplace: string,\nunit?: \"c\" | \"f\", // default: c\nn?: number, // default: 3\n" +
				"s?: string | null, // default: \"x\"y\"\n// T\n//\n// D\n// Examples:\n// - \"a\"\n// - \"b\"\nt?: string,\n" +
				"// one\n// default: 20\nu?:\n | string // default: \"k\"\n | number // or so\n,\n" +
				"v?: number | string,\nw?: Array<any>,\nx?: boolean[],\n// box\no?:     // box\n{\n    a?: number,\n    },\nz?: any,\n}) => any;\n\n" +
				"} // namespace functions<|end|><|start|>user<|message|>Hi<|end|><|start|>assistant"},
		{"tools alone", `[{"role":"user","content":"Hi"}]`, `[{"function":{"name":"f"}}]`, "",
			sysHead + "\nCalls to these tools must go to the commentary channel: 'functions'." + sysEnd +
				"<|start|>developer<|message|># Tools\n\n## functions\n\nnamespace functions {\n\ntype f = () => any;\n\n} // namespace functions<|end|>" +
				"<|start|>user<|message|>Hi<|end|><|start|>assistant"},
		{"ongoing analysis stays", `[{"role":"user","content":"Q"},
			{"role":"assistant","content":"","reasoning_content":"R","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}}]},
			{"role":"tool","tool_call_id":"1","content":"{\"t\": 20}"}]`, "", "",
			sysHead + sysEnd + "<|start|>user<|message|>Q<|end|><|start|>assistant<|channel|>analysis<|message|>R<|end|>" +
				"<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{\"a\":1}<|call|>" +
				"<|start|>functions.f to=assistant<|channel|>commentary<|message|>{\"t\": 20}<|end|><|start|>assistant"},
		{"before the first final goes", `[{"role":"user","content":"Q"},{"role":"assistant","content":"A","thinking":"R"},{"role":"user","content":"P"}]`, "", "",
			sysHead + sysEnd + "<|start|>user<|message|>Q<|end|><|start|>assistant<|channel|>final<|message|>A<|end|><|start|>user<|message|>P<|end|><|start|>assistant"},
		{"between finals stays", `[{"role":"user","content":"Q"},{"role":"assistant","content":"A","thinking":"R"},{"role":"user","content":"P"},{"role":"assistant","content":"B","thinking":"S"}]`, "", "",
			sysHead + sysEnd + "<|start|>user<|message|>Q<|end|><|start|>assistant<|channel|>final<|message|>A<|end|><|start|>user<|message|>P<|end|>" +
				"<|start|>assistant<|channel|>analysis<|message|>S<|end|><|start|>assistant<|channel|>final<|message|>B<|end|><|start|>assistant"},
		{"kept", `[{"role":"user","content":"Q"},{"role":"assistant","content":"A","thinking":"R"},{"role":"user","content":"P"}]`, "", "keep",
			sysHead + sysEnd + "<|start|>user<|message|>Q<|end|><|start|>assistant<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>A<|end|><|start|>user<|message|>P<|end|><|start|>assistant"},
		{"preamble and calls", `[{"role":"user","content":"Q"},
			{"role":"assistant","content":"Soon.","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{"}},{"id":"2","function":{"name":"g","arguments":{"b": [1, 2]}}}]},
			{"role":"tool","tool_call_id":"2","content":"two"},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"o"},{"type":"text","text":"ne"}]}]`, "", "sampled",
			sysHead + sysEnd + "<|start|>user<|message|>Q<|end|><|start|>assistant<|channel|>commentary<|message|>Soon.<|end|>" +
				"<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{<|call|>" +
				"<|start|>assistant<|channel|>commentary to=functions.g <|constrain|>json<|message|>{\"b\": [1, 2]}<|call|>" +
				"<|start|>functions.g to=assistant<|channel|>commentary<|message|>two<|end|>" +
				"<|start|>functions.f to=assistant<|channel|>commentary<|message|>o\nne<|end|><|start|>assistant"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := template.Lookup("harmony", &template.Options{
				Variables: vars{"style": "library", "auto_drop_analysis": c.opt != "keep", "sampled_calls": c.opt == "sampled"},
				Now:       func() time.Time { return time.Date(2025, 6, 28, 23, 0, 0, 0, time.UTC) },
			})
			if err != nil {
				t.Fatal(err)
			}
			p, err := tpl.Render(template.Request{Messages: []byte(c.messages), Tools: []byte(c.tools), AddGenerationPrompt: true})
			if err != nil {
				t.Fatal(err)
			}
			if p.Text != c.want {
				t.Errorf("got\n%s\nwant\n%s", p.Text, c.want)
			}
			checkPrompt(t, p)
		})
	}
}

// TestHarmonyLenient has what the template fails at or leaves out.
func TestHarmonyLenient(t *testing.T) {
	const head = "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"
	for _, c := range []struct {
		name, messages string
		cont           bool
		want           string
	}{
		{"text, reasoning and two calls", `[{"role":"assistant","content":"T","thinking":"R","tool_calls":[{"name":"f"},{"name":"g","arguments":"no json"}]},
			{"role":"tool","content":"1"},{"role":"tool","content":{"k":2}}]`, false,
			"<|start|>assistant<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary<|message|>T<|end|>" +
				"<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>" +
				"<|start|>assistant to=functions.g<|channel|>commentary json<|message|>no json<|call|>" +
				"<|start|>functions.f to=assistant<|channel|>commentary<|message|>\"1\"<|end|>" +
				"<|start|>functions.g to=assistant<|channel|>commentary<|message|>{\"k\": 2}<|end|>"},
		{"system in the middle", `[{"role":"user"},{"role":"system","content":"S"}]`, false,
			"<|start|>user<|message|><|end|><|start|>developer<|message|># Instructions\n\nS<|end|>"},
		{"result by its own name", `[{"role":"tool","name":"f","content":"1"}]`, false,
			"<|start|>functions.f to=assistant<|channel|>commentary<|message|>\"1\"<|end|>"},
		{"continue text", `[{"role":"assistant","content":"A","thinking":"R"}]`, true,
			"<|start|>assistant<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>A"},
		{"continue reasoning", `[{"role":"assistant","thinking":"R"}]`, true, "<|start|>assistant<|channel|>analysis<|message|>R"},
		{"continue user", `[{"role":"user","content":"A"}]`, true, "<|start|>user<|message|>A"},
		{"continue instructions", `[{"role":"system","content":"A"}]`, true, "<|start|>developer<|message|># Instructions\n\nA"},
		{"continue result", `[{"role":"tool","name":"f","content":"1\n"}]`, true, "<|start|>functions.f to=assistant<|channel|>commentary<|message|>\"1\\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := lookup("harmony", nil).Render(template.Request{Messages: []byte(c.messages), ContinueFinalMessage: contentIf(c.cont)})
			if err != nil {
				t.Fatal(err)
			}
			if p.Text != head+c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.TrimPrefix(p.Text, head), c.want)
			}
			checkPrompt(t, p)
		})
	}
}

func TestHarmonyErrors(t *testing.T) {
	for _, c := range []struct{ messages, tools, kwargs, want string }{
		{`[]`, ``, ``, `template: messages: is empty`},
		{`[{"role":"robot"}]`, ``, ``, `template: messages[0].role: is "robot", not system, developer, user, assistant or tool`},
		{`[{"role":"tool","content":"1"}]`, ``, ``, `template: messages[0]: is a result without a call before it`},
		{`[{"role":"assistant","thinking":1}]`, ``, ``, `template: messages[0].thinking: is not a string`},
		{`[{"role":"assistant","tool_calls":{"a":1}}]`, ``, ``, `template: messages[0].tool_calls: is not an array`},
		{`[{"role":"assistant","tool_calls":[{}]}]`, ``, ``, `template: messages[0].tool_calls[0].name: is not a string`},
		{`[{"role":"user"}]`, `[{"function":{"name":1}}]`, ``, `template: tools[0].function.name: is not a string`},
		{`[{"role":"user"}]`, `[{"name":"f","description":[]}]`, ``, `template: tools[0].description: is not a string`},
		{`[{"role":"user"}]`, ``, `{"reasoning_effort":"xhigh"}`, `template: kwargs.reasoning_effort: is none of low, medium, high`},
		{`[{"role":"user"}]`, ``, `{"reasoning_effort":1}`, `template: kwargs.reasoning_effort: is not a string`},
		{`[{"role":"user"}]`, ``, `{"builtin_tools":"x"}`, `template: kwargs.builtin_tools: is not an array`},
		{`[{"role":"user"}]`, ``, `{"builtin_tools":[1]}`, `template: kwargs.builtin_tools[0]: is not a string`},
	} {
		_, err := lookup("harmony", nil).Render(template.Request{Messages: []byte(c.messages), Tools: []byte(c.tools), Kwargs: []byte(c.kwargs)})
		if _, ok := errors.AsType[*template.Error](err); !ok || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func FuzzHarmony(f *testing.F) {
	for _, g := range readGoldenFile(f, harmonyGolden) {
		f.Add(string(g.Messages), string(g.Tools), string(g.Kwargs), byte(1))
	}
	f.Add(everywhere, everywhereTools, `{}`, byte(4))
	f.Fuzz(func(t *testing.T, messages, tools, kwargs string, bits byte) {
		for _, style := range []string{"template", "library"} {
			tpl := lookup("harmony", vars{"style": style, "auto_drop_analysis": bits&4 == 0, "sampled_calls": bits&8 != 0})
			fuzzRender(t, tpl, messages, tools, kwargs, bits)
		}
	})
}

// fuzzRender renders and checks what must hold of anything.
func fuzzRender(t *testing.T, tpl template.Template, messages, tools, kwargs string, bits byte) {
	p, err := tpl.Render(template.Request{Messages: []byte(messages), Tools: []byte(tools), Kwargs: []byte(kwargs),
		AddGenerationPrompt: bits&1 != 0, ContinueFinalMessage: contentIf(bits&2 != 0)})
	if err != nil {
		if _, ok := errors.AsType[*template.Error](err); !ok {
			t.Fatal("not an Error:", err)
		}
		return
	}
	checkPrompt(t, p)
}

// TestHarmonyLibraryTypes compares types with the output of oss-harmony 0.0.11, the library that vLLM 0.32 uses, for the
// same schemas.
func TestHarmonyLibraryTypes(t *testing.T) {
	tpl := lookup("harmony", vars{"style": "library"})
	print := func(function string) string {
		p, err := tpl.Render(template.Request{Messages: []byte(`[{"role":"user","content":"Q"}]`), Tools: []byte(`[{"type":"function","function":` + function + `}]`)})
		if err != nil {
			t.Fatal(err)
		}
		return p.Text
	}
	for _, tt := range []struct{ function, want string }{
		{`{"name":"f"}`, "type f = () => any;"},
		{`{"name":"f","parameters":null}`, "type f = () => any;"},
		{`{"name":"f","parameters":{}}`, "type f = (_: any) => any;"},
		{`{"name":"f","parameters":{"type":"object","properties":{}}}`, "type f = (_: {\n}) => any;"},
		{`{"name":"f","description":"a\n\nb","parameters":null}`, "// a\n// \n// b\ntype f = () => any;"},
		{`{"name":"f","parameters":{"type":"object","properties":{"o":{"type":"array","items":{"type":"object","description":"d","properties":{"oldText":{"type":"string"}},"required":["oldText"]}}}}}`,
			"type f = (_: {\no?:     // d\n{\n    oldText: string,\n    }[],\n}) => any;"},
	} {
		_, text, _ := strings.Cut(print(tt.function), "namespace functions {\n\n")
		if text, _, _ = strings.Cut(text, "\n\n} // namespace functions"); text != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.function, text, tt.want)
		}
	}
	for def, want := range map[string]string{
		"1.0": "1.0", "-0.0": "-0.0", "100000.0": "100000.0", "1e15": "1000000000000000.0", "1e16": "1e+16", "1.5e300": "1.5e+300", "1e-5": "0.00001", "1e-6": "1e-6", "0.0001": "0.0001", "0.000012": "0.000012",
		"1e21": "1e+21", "1000000000000000000000": "1e+21", "18446744073709551615": "18446744073709551615", "-9223372036854775808": "-9223372036854775808", "18446744073709551616": "1.8446744073709552e+19",
		"0.40042819767627524": "0.4004281976762752", "9.672764036677623e+23": "9.672764036677624e+23", "5e-324": "5e-324", `{"a":[1e-6,2]}`: `{"a":[1e-6,2]}`,
	} {
		text := print(`{"name":"f","parameters":{"type":"object","properties":{"n":{"type":"number","default":` + def + `}}}}`)
		if want := "(_: {\nn?: number, // default: " + want + "\n}) => any;"; !strings.Contains(text, want) {
			t.Errorf("%s: want %q in %q", def, want, text)
		}
	}
}
