// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
)

// engine describes what a serving engine reads of a Chat request.
//
// Sources: vLLM main of November 2026, vllm/entrypoints/openai/chat_completion/protocol.py; SGLang main of November 2026,
// python/sglang/srt/entrypoints/openai/protocol.py; llama.cpp build 11434, tools/server/server-common.cpp and
// server-schema.cpp; Ollama of August 2026, openai/openai.go and server/routes.go.
type engine struct {
	maxTokens bool     // reads max_tokens only
	reasoning bool     // reads past reasoning as reasoning; otherwise as reasoning_content
	efforts   []string // the efforts that it accepts; nil means any
	noneIsOff bool     // reasoning_effort none turns reasoning off, and does so for every model
	onDefault bool     // models that can reason do so unless it is turned off
	budget    string   // the field for the budget of reasoning, if the engine always accepts one
	named     bool     // accepts a named tool as tool_choice
	ignores   bool     // ignores tool_choice and the sampling parameters that fewer lists
}

var scale = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

var engines = map[string]*engine{
	// vLLM also reads reasoning_content, but calls it deprecated. Models with Mistral's own tokenizer refuse
	// chat_template_kwargs, so that reasoning is turned off by effort. A budget needs a reasoning parser.
	"vllm":      {reasoning: true, efforts: scale, noneIsOff: true, named: true},
	"sglang":    {efforts: scale, named: true},
	"llama.cpp": {budget: "thinking_budget_tokens"},
	"ollama":    {maxTokens: true, reasoning: true, efforts: append([]string{"ultra"}, scale...), noneIsOff: true, onDefault: true, ignores: true},
}

// thinking writes the effort, the switch and the budget of reasoning.
func (e *engine) thinking(m *codec.Members, th block.Thinking, lose codec.LossFunc) {
	if th.Effort != "" && e.efforts != nil && !slices.Contains(e.efforts, th.Effort) {
		why, nearest := "the engine has no effort "+th.Effort, ""
		if th.Effort == "ultra" {
			nearest = "max"
			why += "; max was set"
		}
		lose("reasoning_effort", why)
		th.Effort = nearest
	}
	if th.Mode == block.ThinkingOff && e.noneIsOff {
		th.Effort = "none"
	}
	m.Str("reasoning_effort", th.Effort)
	if e.budget != "" && th.Mode != block.ThinkingOff {
		m.Int(e.budget, "", th.Budget)
	}
	switch {
	case th.Mode == block.ThinkingUnspecified:
	case th.Mode == block.ThinkingOff && !e.noneIsOff:
		m.Add("chat_template_kwargs", "", []byte(`{"enable_thinking":false,"thinking":false}`))
	case th.Mode != block.ThinkingOff && !e.onDefault:
		m.Add("chat_template_kwargs", "", []byte(`{"enable_thinking":true,"thinking":true}`))
	}
}

// choice returns the tool choice in a form that the engine accepts.
func (e *engine) choice(c block.ToolChoice, tools []block.Tool, lose codec.LossFunc) block.ToolChoice {
	if e.ignores {
		if c.Mode == block.Required || c.Mode == block.NoTools || len(c.Allow) > 0 {
			lose("tool_choice", "the engine ignores it")
		}
		return block.ToolChoice{}
	}
	switch {
	case c.Mode == block.Required && len(c.Allow) == 1:
		if e.named {
			break
		}
		if len(tools) > 1 {
			lose("tool_choice", "the engine cannot require one tool of several; it was told to require a call")
		}
		c.Allow = nil
	case len(c.Allow) > 0:
		lose("tool_choice", "the engine cannot restrict calls to some of the tools")
		c.Allow = nil
	}
	return c
}

// fewer reports the parameters that the engine ignores.
func (e *engine) fewer(p *block.Params, lose codec.LossFunc) {
	if !e.ignores {
		return
	}
	s := &p.Sampling
	codec.LoseAll(lose, "the engine ignores",
		codec.Opt{Set: s.MinP != nil, Name: "min_p"},
		codec.Opt{Set: s.TopK != nil, Name: "top_k"},
		codec.Opt{Set: s.N != nil && *s.N != 1, Name: "n"},
		codec.Opt{Set: s.RepetitionPenalty != nil, Name: "repetition_penalty"},
		codec.Opt{Set: len(s.StopTokens) > 0, Name: "stop_token_ids"},
		codec.Opt{Set: s.IgnoreEOS, Name: "ignore_eos"},
		codec.Opt{Set: p.ToolChoice.Serial, Name: "parallel_tool_calls"},
	)
}
