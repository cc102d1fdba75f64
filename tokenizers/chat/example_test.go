// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"fmt"
	"testing/fstest"

	"github.com/weft-go/weft/tokenizers/chat"
	"github.com/weft-go/weft/tokenizers/mini"
)

func ExampleChatML() {
	p, err := chat.ChatML(nil).Render(chat.Request{
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
	for _, id := range tok.AppendEncodeSegments(nil, p.AppendSegments(nil)) {
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

func ExampleCompile() {
	t, err := chat.Compile("plain", "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{{ eos_token }}{% endfor %}", &chat.Options{
		SpecialTokens: map[string]string{"eos_token": "</s>"},
	})
	if err != nil {
		panic(err)
	}
	p, err := t.Render(chat.Request{Messages: []byte(`[{"role":"user","content":" Hi</s> "}]`)})
	if err != nil {
		panic(err)
	}
	for _, s := range p.Segments {
		fmt.Printf("%-5t %s\n", s.Trusted, p.Text[s.Start:s.End])
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
	t, err := chat.Load(folder, nil)
	if err != nil {
		panic(err)
	}
	p, err := t.Render(chat.Request{Messages: []byte(`[{"role":"user","content":"Hi"}]`), Tools: []byte(`[{"b":1.0,"a":"<é>"}]`)})
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
	c := chat.Probe(chat.ChatML(nil))
	fmt.Println(c.ReasoningKey, c.Reasoning == chat.ReasoningSinceUser, c.SystemMiddle, c.StringArguments)
	fmt.Printf("%q, with %s=false %q\n", c.GenerationPrompt, c.ReasoningSwitch, c.SwitchedOff)
	// Output:
	// reasoning_content true true true
	// "<|im_start|>assistant\n", with enable_thinking=false "<|im_start|>assistant\n<think>\n\n</think>\n\n"
}

func ExampleJinja_Render() {
	t, err := chat.Compile("strict", `{% for m in messages %}
{% if m.role == 'system' and not loop.first %}{{ raise_exception('System message must be first.') }}{% endif %}
{{ m.content }}
{% endfor %}`, nil)
	if err != nil {
		panic(err)
	}
	_, err = t.Render(chat.Request{Messages: []byte(`[{"role":"user","content":"Hi"},{"role":"system","content":"Be kind"}]`)})
	fmt.Println(err)
	// Output:
	// chat: strict:2:65: messages[1]: System message must be first.
}
