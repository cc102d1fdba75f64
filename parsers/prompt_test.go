// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
)

// TestPrompt asserts where generation begins after a prompt.
func TestPrompt(t *testing.T) {
	for _, c := range []struct {
		family, prompt string
		want           Start
	}{
		{"qwen3", "<|im_start|>assistant\n", StartTurn},
		{"qwen3", "<|im_start|>assistant\n<think>\n", StartReasoning},
		{"qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", StartResponse},
		{"deepseek_r1", "<｜Assistant｜>", StartTurn},
		{"deepseek_r1", "<｜Assistant｜><think>\n", StartReasoning},
		{"gemma4", "<start_of_turn>model\n<|channel>thought\n", StartReasoning},
		{"gemma4", "<start_of_turn>model\n<|channel>", StartReasoning},
		{"kimi_k3", "<|open|>think<|sep|>", StartReasoning},
		{"kimi_k3", "<|open|> response <|sep|>\n", StartResponse},
		{"kimi_k3", "<|open|>message role=\"assistant\"<|sep|>", StartTurn},
		{"harmony", "<|start|>assistant", StartTurn},
		{"harmony", "<|start|>assistant<|channel|>analysis<|message|>", StartReasoning},
		{"harmony", "<|start|>assistant<|channel|>final<|message|>", StartResponse},
		{"harmony", "<|start|>assistant<|channel|>commentary to=functions.f<|message|>", StartTurn},
		{"muse_glimmer", "<|start|>assistant to=self<|message|>", StartReasoning},
		{"muse_glimmer", "<|start|>assistant to=user<|message|>", StartResponse},
		{"phi4", "<|assistant|>", StartTurn},
		{"granite", "x", StartTurn},
	} {
		p, err := New(c.family, &Options{Prompt: c.prompt + " "})
		require.NoError(t, err)
		require.Equal(t, c.want, p.opt.Start, "%s %q", c.family, c.prompt)
	}
}

// TestPromptDecides asserts that Options.Prompt is read unless Options.Start is set.
func TestPromptDecides(t *testing.T) {
	for _, c := range []struct {
		opt  Options
		want event.Kind
	}{
		{Options{}, event.Text},
		{Options{Prompt: "<|im_start|>assistant\n<think>\n"}, event.Reasoning},
		{Options{Prompt: "<|im_start|>assistant\n<think>\n", Start: StartTurn}, event.Text},
		{Options{Prompt: "<|im_start|>assistant\n", Start: StartReasoning}, event.Reasoning},
	} {
		p, err := New("qwen3", &c.opt)
		require.NoError(t, err)
		for range 2 {
			evs, err := p.Append(nil, []byte("Well, "))
			require.NoError(t, err)
			require.Len(t, evs, 1)
			require.Equal(t, c.want, evs[0].Kind, "%+v", c.opt)
			p.Reset()
		}
	}
}
