// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"testing"

	"github.com/weft-go/weft/tokenizers/chat"
)

// deepseekGolden is testdata/deepseek.jsonl: what the published scripts printed (testdata/gen_formats.py).
const deepseekGolden = "testdata/deepseek.jsonl"

func deepseek(version string) chat.Template {
	if version == "v3.2" {
		return chat.DeepSeekV32(&chat.DeepSeekOptions{CompactTools: true})
	}
	return chat.DeepSeekV4(nil)
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
