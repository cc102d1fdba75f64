// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"fmt"

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
