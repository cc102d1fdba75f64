// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// TestEngines converts requests to the fields that engines read; see engine.go for the sources.
func TestEngines(t *testing.T) {
	const (
		head = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"Yo"}]}]`
		on   = head + `,"thinking":{"type":"enabled","budget_tokens":1024}}`
		off  = head + `,"thinking":{"type":"disabled"}}`
		hard = head + `,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`
		past = `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yo",`
	)
	lost := "thinking.budget_tokens: no field in the Chat API: thinking.budget_tokens"
	for _, test := range []struct {
		name, engine, body, want string
		losses                   []string
	}{
		{"on", "", on, `"max_completion_tokens":9,"thinking":{"type":"enabled"},` + past + `"reasoning_content":"hm"}]`, []string{lost}},
		{"on", "dynamo", on, `"max_completion_tokens":9,"thinking":{"type":"enabled"},` + past + `"reasoning_content":"hm"}]`, []string{lost}},
		{"on", "vllm", on, `"max_completion_tokens":9,"chat_template_kwargs":{"enable_thinking":true,"thinking":true},` + past + `"reasoning":"hm"}]`, []string{lost}},
		{"on", "sglang", on, `"max_completion_tokens":9,"chat_template_kwargs":{"enable_thinking":true,"thinking":true},` + past + `"reasoning_content":"hm"}]`, []string{lost}},
		{"on", "llama.cpp", on, `"max_completion_tokens":9,"thinking_budget_tokens":1024,"chat_template_kwargs":{"enable_thinking":true,"thinking":true},` + past + `"reasoning_content":"hm"}]`, nil},
		{"on", "ollama", on, `"max_tokens":9,` + past + `"reasoning":"hm"}]`, []string{lost}},

		{"off", "vllm", off, `"max_completion_tokens":9,"reasoning_effort":"none",` + past + `"reasoning":"hm"}]`, nil},
		{"off", "sglang", off, `"max_completion_tokens":9,"chat_template_kwargs":{"enable_thinking":false,"thinking":false},` + past + `"reasoning_content":"hm"}]`, nil},
		{"off", "llama.cpp", off, `"max_completion_tokens":9,"chat_template_kwargs":{"enable_thinking":false,"thinking":false},` + past + `"reasoning_content":"hm"}]`, nil},
		{"off", "ollama", off, `"max_tokens":9,"reasoning_effort":"none",` + past + `"reasoning":"hm"}]`, nil},

		{"effort", "vllm", hard, `"max_completion_tokens":9,"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":true,"thinking":true},` + past + `"reasoning":"hm"}]`, nil},
		{"effort", "ollama", hard, `"max_tokens":9,"reasoning_effort":"high",` + past + `"reasoning":"hm"}]`, nil},
	} {
		t.Run(test.engine+" "+test.name, func(t *testing.T) {
			r, err := messages.Decode([]byte(test.body), nil)
			require.NoError(t, err)
			got, losses, err := chat.AppendRequest(nil, r, &block.EncodeOptions{Engine: test.engine})
			require.NoError(t, err)
			require.Equal(t, `{"model":"m",`+test.want+`}`, string(got))
			require.Equal(t, test.losses, lossStrings(losses))
		})
	}
}

// TestEngineTools converts tools, choices and efforts that an engine would refuse or ignore.
func TestEngineTools(t *testing.T) {
	const (
		tools    = `"tools":[{"type":"function","name":"f","parameters":{}},{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"lark","definition":"x"}}]`
		function = `"tools":[{"type":"function","function":{"name":"f","parameters":{}}},{"type":"function","function":{"name":"patch","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}]`
		call     = `"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"patch","arguments":"{\"input\":\"a\\nb\"}"}}]},{"role":"tool","tool_call_id":"c","content":"ok"}]`
		input    = `"input":[{"type":"custom_tool_call","call_id":"c","name":"patch","input":"a\nb"},{"type":"custom_tool_call_output","call_id":"c","output":"ok"}]`
		format   = "tools[1]: the format of the tool's input"
	)
	for _, test := range []struct {
		name, engine, field, want string
		losses                    []string
	}{
		{"a tool with free text", "vllm", "", "", nil},
		{"a named tool", "vllm", `"tool_choice":{"type":"custom","name":"patch"}`, `"tool_choice":{"type":"function","function":{"name":"patch"}}`, nil},
		{"a named tool", "llama.cpp", `"tool_choice":{"type":"function","name":"f"}`, `"tool_choice":"required"`, []string{"tool_choice: the engine cannot require one tool of several; it was told to require a call"}},
		{"one allowed tool", "sglang", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}`, `"tool_choice":{"type":"function","function":{"name":"f"}}`, nil},
		{"some tools", "sglang", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"custom","name":"patch"}]}`, `"tool_choice":"required"`, []string{"tool_choice: the engine cannot restrict calls to some of the tools"}},
		{"a choice", "ollama", `"tool_choice":"required"`, "", []string{"tool_choice: the engine ignores it"}},
		{"an effort", "vllm", `"reasoning":{"effort":"ultra"}`, `"reasoning_effort":"max"`, []string{"reasoning.effort: the engine has no effort ultra; max was set"}},
		{"an effort", "ollama", `"reasoning":{"effort":"ultra"}`, `"reasoning_effort":"ultra"`, nil},
		{"an unknown effort", "sglang", `"reasoning":{"effort":"deep"}`, "", []string{"reasoning.effort: the engine has no effort deep"}},
		{"an unknown effort", "llama.cpp", `"reasoning":{"effort":"deep"}`, `"reasoning_effort":"deep"`, nil},
	} {
		t.Run(test.engine+" "+test.name, func(t *testing.T) {
			comma := func(s string) string {
				if s == "" {
					return ""
				}
				return s + ","
			}
			r, err := responses.Decode([]byte(`{"model":"m",`+comma(test.field)+tools+`,`+input+`}`), nil)
			require.NoError(t, err)
			got, losses, err := chat.AppendRequest(nil, r, &block.EncodeOptions{Engine: test.engine})
			require.NoError(t, err)
			require.Equal(t, `{"model":"m",`+comma(test.want)+function+`,`+call+`}`, string(got))
			require.Equal(t, append(test.losses, format), lossStrings(losses))
		})
	}

	r, err := messages.Decode([]byte(`{"model":"m","max_tokens":1,"top_k":3,"messages":[]}`), nil)
	require.NoError(t, err)
	_, losses, err := chat.AppendRequest(nil, r, &block.EncodeOptions{Engine: "ollama"})
	require.NoError(t, err)
	require.Equal(t, []string{"top_k: the engine ignores: top_k"}, lossStrings(losses))
	_, _, err = chat.AppendRequest(nil, r, &block.EncodeOptions{Engine: "vLLM"})
	require.EqualError(t, err, `unknown engine "vLLM": want vllm, sglang, llama.cpp, ollama or dynamo`)
}

func lossStrings(list []block.Loss) (out []string) {
	for _, l := range list {
		out = append(out, l.Path+": "+l.Why)
	}
	return out
}
