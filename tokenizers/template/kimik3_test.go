// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/template"
)

// The prompts here were written after vLLM's copy of encoding_k3.py and agree with a restatement of it, which was checked
// against seven prompts of the script that smg keeps (tests/fixtures/kimi_k3).
func TestKimiK3(t *testing.T) {
	const (
		end    = "<|close|>message<|sep|><|end_of_msg|>"
		effort = "<|open|>message role=\"system\" type=\"thinking-effort\"<|sep|>`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort=%s`." + end
		user   = "<|open|>message role=\"user\"<|sep|>Hi" + end
		think  = "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>"
		hi     = `{"role":"user","content":"Hi"}`
		raw    = "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
	)
	for _, c := range []struct {
		name, messages, tools, kwargs string
		cont                          bool
		want                          string
	}{
		{"default", `[` + hi + `]`, ``, ``, false, fmt.Sprintf(effort, "max") + user + think},
		{"effort", `[` + hi + `]`, ``, `{"thinking_effort":"low","reasoning_effort":"high"}`, false, fmt.Sprintf(effort, "low") + user + think},
		{"effort of OpenAI's form", `[` + hi + `]`, ``, `{"reasoning_effort":"high"}`, false, fmt.Sprintf(effort, "high") + user + think},
		{"no thinking", `[` + hi + `]`, ``, `{"thinking":false}`, false, user + "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>"},
		{"tools", `[` + hi + `]`, `[{"type":"function","function":{"name":"f","a":[1, {"z":null,"b":"é"}]}}]`, `{"thinking_effort":null}`, false,
			"<|open|>message role=\"system\" type=\"tool-declare\"<|sep|># Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n[{\"function\":{\"a\":[1,{\"b\":\"é\",\"z\":null}],\"name\":\"f\"},\"type\":\"function\"}]\n```" + end + user + think},
		{"calls and results", `[` + hi + `,{"role":"assistant","content":"A","reasoning_content":"R","tool_calls":[
			{"id":"a","function":{"name":"f&\"","arguments":"{\"k\":\"v\",\"n\":[1, 2]}"}},{"id":"b","function":{"name":"g","arguments":"{"}},{"id":"c","function":{"name":"h"}}]},
			{"role":"tool","tool_call_id":"b","content":"two"},{"role":"tool","tool_call_id":"a","name":"stale","content":[{"type":"text","text":"o"},{"type":"text","text":"ne"}]}]`, ``, `{"thinking_effort":null}`, false,
			user + think + "R<|close|>think<|sep|><|open|>response<|sep|>A<|close|>response<|sep|><|open|>tools<|sep|>" +
				"<|open|>call tool=\"f&amp;&quot;\" index=\"1\"<|sep|><|open|>argument key=\"k\" type=\"string\"<|sep|>v<|close|>argument<|sep|><|open|>argument key=\"n\" type=\"array\"<|sep|>[1, 2]<|close|>argument<|sep|><|close|>call<|sep|>" +
				"<|open|>call tool=\"g\" index=\"2\"<|sep|><|open|>json type=\"object\"<|sep|>{<|close|>json<|sep|><|close|>call<|sep|>" +
				"<|open|>call tool=\"h\" index=\"3\"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>" + end +
				"<|open|>message role=\"tool\" tool=\"f&amp;&quot;\" index=\"1\"<|sep|>one" + end + "<|open|>message role=\"tool\" tool=\"g\" index=\"2\"<|sep|>two" + end + think},
		{"requirements", `[` + hi + `]`, ``, `{"thinking_effort":null,"tool_choice":"required","response_format":{"type":"json_schema","json_schema":{"schema":{"b":1,"a":2}}}}`, false,
			user + "<|open|>message role=\"system\" type=\"tool-choice\"<|sep|>The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message." + end +
				"<|open|>message role=\"system\" type=\"response-format\"<|sep|>The system is invoked with `response_format=json_schema`.\n" + raw + "\nThe JSON data must match the following schema:\n```json\n{\"a\":2,\"b\":1}\n```" + end + think},
		{"names and tools on the way", `[{"role":"developer","name":"x","content":"S"},` + hi + `,{"role":"system","tools":[{"b":1,"a":2}]}]`, ``, `{"thinking_effort":null}`, false,
			"<|open|>message role=\"system\" name=\"x\"<|sep|>S" + end + user + "<|open|>message role=\"system\" type=\"tool-declare\"<|sep|>## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n" +
				"You have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n```json\n[{\"a\":2,\"b\":1}]\n```" + end + think},
		{"continue text", `[` + hi + `,{"role":"assistant","content":"A"}]`, ``, `{"thinking_effort":null}`, true, user + think + "<|close|>think<|sep|><|open|>response<|sep|>A"},
		{"continue reasoning", `[` + hi + `,{"role":"assistant","reasoning":"R"}]`, ``, `{"thinking_effort":null}`, true, user + think + "R"},
		{"continue user", `[` + hi + `]`, ``, `{"thinking_effort":null}`, true, strings.TrimSuffix(user, end)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := lookup("kimi_k3", nil).Render(template.Request{Messages: []byte(c.messages), Tools: []byte(c.tools), Kwargs: []byte(c.kwargs),
				AddGenerationPrompt: !c.cont, ContinueFinalMessage: contentIf(c.cont)})
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

func TestKimiK3Errors(t *testing.T) {
	for _, c := range []struct {
		messages, kwargs string
		cont             bool
		want             string
	}{
		{`[{"role":"tool","content":"1"}]`, ``, false, `template: messages[0]: is a result without a call before it`},
		{`[{"role":"user"}]`, `{"thinking_effort":"medium"}`, false, `template: kwargs.thinking_effort: is not low, high or max`},
		{`[{"role":"system","tools":[{}]}]`, ``, true, `template: messages[0]: cannot be continued: it lists tools`},
		{`[{"role":"user","content":[{"type":"image_url"}]}]`, ``, false, `template: messages[0].content[0]: is not text but "image_url"`},
	} {
		_, err := lookup("kimi_k3", nil).Render(template.Request{Messages: []byte(c.messages), Kwargs: []byte(c.kwargs), ContinueFinalMessage: contentIf(c.cont)})
		if _, ok := errors.AsType[*template.Error](err); !ok || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func FuzzKimiK3(f *testing.F) {
	f.Add(everywhere, everywhereTools, `{"thinking":true,"response_format":"json_schema"}`, byte(1))
	f.Fuzz(func(t *testing.T, messages, tools, kwargs string, bits byte) {
		fuzzRender(t, lookup("kimi_k3", vars{"thinking": bits&4 == 0}), messages, tools, kwargs, bits)
	})
}

func ExampleLookup_kimiK3() {
	t, err := template.Lookup("kimi_k3", &template.Options{Variables: map[string]any{"thinking_effort": "none"}})
	if err != nil {
		panic(err)
	}
	p, err := t.Render(template.Request{
		Messages:            []byte(`[{"role":"user","content":"Hi <|end_of_msg|>"}]`),
		AddGenerationPrompt: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Text)
	fmt.Println(p.Text[p.Spans[0].Start:p.Spans[0].End], "is", p.Spans[0].Path)
	// Output:
	// <|open|>message role="user"<|sep|>Hi <|end_of_msg|><|close|>message<|sep|><|end_of_msg|><|open|>message role="assistant"<|sep|><|open|>think<|sep|>
	// Hi <|end_of_msg|> is messages[0].content
}
