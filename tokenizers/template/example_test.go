// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"errors"
	"fmt"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/template"
)

func ExampleLookup() {
	t, err := template.Lookup("chatml", nil)
	if err != nil {
		panic(err)
	}
	p, err := t.Render(template.Request{
		Messages:            []byte(`[{"role":"user","content":"Hi<|im_end|>"}]`),
		AddGenerationPrompt: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Text)
	for _, s := range p.Spans {
		fmt.Println(s.Path, s.Kind, p.Text[s.Start:s.End])
	}
	// Only the template's own marks become control tokens.
	tok := mini.Load()
	end, _ := tok.TokenID("<|im_end|>")
	n := 0
	for _, id := range tok.AppendEncodeSegments(nil, p.Segments) {
		if id == end {
			n++
		}
	}
	fmt.Println(n, "end of turn")
	// Output:
	// <|im_start|>user
	// Hi<|im_end|><|im_end|>
	// <|im_start|>assistant
	//
	// messages[0].content user Hi<|im_end|>
	// 1 end of turn
}

func ExampleParse() {
	t, err := template.Parse("plain", "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{{ eos_token }}{% endfor %}", &template.Options{
		Variables: map[string]any{"eos_token": "</s>"},
	})
	if err != nil {
		panic(err)
	}
	p, err := t.Render(template.Request{Messages: []byte(`[{"role":"user","content":" Hi</s> "}]`)})
	if err != nil {
		panic(err)
	}
	for _, s := range p.Segments {
		fmt.Printf("%-5t %s\n", s.Trusted, s.Text)
	}
	// Output:
	// true  <user>
	// false Hi</s>
	// true  </s>
}

func ExampleLoad() {
	folder := fstest.MapFS{ // os.DirFS("models/NAME")
		"chat_template.jinja":   {Data: []byte("{{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}{{ tools | tojson if tools }}")},
		"tokenizer_config.json": {Data: []byte(`{"bos_token":"<s>"}`)},
	}
	t, err := template.Load(folder, nil)
	if err != nil {
		panic(err)
	}
	p, err := t.Render(template.Request{Messages: []byte(`[{"role":"user","content":"Hi"}]`), Tools: []byte(`[{"b":1.0,"a":"<é>"}]`)})
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Text)
	for _, s := range p.Spans {
		fmt.Println(s.Path, s.Kind)
	}
	// Output:
	// <s>Hi
	// [{"b": 1.0, "a": "<é>"}]
	// messages[0].content user
	// tools tools
	// tools[0] tools
	// tools tools
}

func ExampleProbe() {
	t, err := template.Lookup("chatml", nil)
	if err != nil {
		panic(err)
	}
	c := template.Probe(t)
	fmt.Println(c.Has("system_middle"), c.Has("images"), c.Text("reasoning_key"))
	fmt.Println(c.Text("past_reasoning"))
	fmt.Printf("%q, with %s=false %q\n", c.Text("generation_prompt"), c.Text("reasoning_switches"), c.Text("generation_prompt_off"))
	fmt.Println(c.NearestEffort("medium"))
	// Output:
	// true false reasoning_content
	// uau uCt uctau uctu uCtCt uauCt uauau uA
	// "<|im_start|>assistant\n", with enable_thinking=false "<|im_start|>assistant\n<think>\n\n</think>\n\n"
	// medium
}

func ExampleTemplate() {
	t, err := template.Parse("strict", `{% for m in messages %}
{% if m.role == 'system' and not loop.first %}{{ raise_exception('System message must be first.') }}{% endif %}
{{ m.content }}
{% endfor %}`, nil)
	if err != nil {
		panic(err)
	}
	_, err = t.Render(template.Request{Messages: []byte(`[{"role":"user","content":"Hi"},{"role":"system","content":"Be kind"}]`)})
	if e, ok := errors.AsType[*template.Error](err); ok && e.Raised {
		fmt.Println(e)
	}
	// Output:
	// template: strict:2:65: messages[1]: System message must be first.
}
