// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	oairesp "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
)

// The model's output, in the format of hermes: two calls at once, one more, and the final response.
var lines = []string{
	"<think>\nTwo looks.\n</think>\n\nLooking.\n" +
		"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>\n" +
		"<tool_call>\n{\"name\": \"grep\", \"arguments\": {\"path\": \"x+ <b> \\\"é\\\"\"}}\n</tool_call>",
	"<think>\nOne more.\n</think>\n\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b.go\"}}\n</tool_call>",
	"<think>\nEnough.\n</think>\n\nIt is fine: é 😀.",
}

// talk is the content that the client must have received.
const talk = `reasoning "Two looks."
text "Looking."
call read {"path": "a.go"}
call grep {"path": "x+ <b> \"é\""}
reasoning "One more."
call read {"path": "b.go"}
reasoning "Enough."
text "It is fine: é 😀."
`

var thinking = regexp.MustCompile(`<think>\n.*\n</think>\n\n`)

// A talker keeps a conversation in one API, as an agent would with the SDK.
type talker interface {
	ask(t *testing.T, r *rig, stream bool) response // sends the conversation and adds the response to it
	result(id, text string)                         // adds the result of a call
	flush()                                         // after the last result of a turn
}

// TestConversations plays an agent's work with tools through each API, streamed and whole, also through another gateway that
// uses the gateway as a managed endpoint with each API. The client brings results in
// the other order. Each prompt that reaches the engine must begin with the previous prompt and its whole response.
func TestConversations(t *testing.T) {
	for _, stream := range []bool{true, false} {
		for _, via := range []string{"", "openai", "responses", "anthropic"} {
			for name, talker := range map[string]talker{
				"chat": newChatTalker(), "responses": newResponseTalker(), "messages": newMessageTalker(),
			} {
				t.Run(fmt.Sprintf("%s/stream=%v/via=%s", name, stream, via), func(t *testing.T) {
					r := start(t, func(p vllm.Prompt) vllm.Reply {
						return vllm.Reply{Text: lines[[]int{0, 0, 1, 2}[strings.Count(p.Text, "<tool_response>")]]}
					}, nil)
					if kind, ok := upstream.Lookup(via); ok {
						r.through(t, kind.(upstream.Managed))
					}
					var received strings.Builder
					finishes := []string{}
					for range lines {
						h := talker.ask(t, r, stream)
						require.Equal(t, slashed, h.Model)
						require.Len(t, h.Choices, 1)
						require.Positive(t, h.Usage.Prompt)
						require.Positive(t, h.Usage.Output)
						require.Positive(t, h.Usage.Reasoning)
						require.Equal(t, len(finishes) > 0, h.Usage.Cached > 0, "the engine's cache shows")
						c := h.Choices[0]
						finishes = append(finishes, c.Finish)
						for _, p := range slices.Backward(c.Pieces) {
							if p.Kind == "call" {
								require.True(t, strings.HasPrefix(p.ID, "call_"), "%q", p.ID)
								talker.result(p.ID, "result of "+p.Name+" "+p.Text)
							}
						}
						talker.flush()
						for _, p := range c.Pieces {
							if p.Kind == "call" {
								fmt.Fprintf(&received, "call %s %s\n", p.Name, p.Text)
							} else {
								fmt.Fprintf(&received, "%s %q\n", p.Kind, strings.TrimSpace(p.Text))
							}
						}
					}
					require.Empty(t, cmp.Diff(talk, received.String()))
					require.Equal(t, map[string][]string{
						"chat": {"tool_calls", "tool_calls", "stop"}, "responses": {"completed", "completed", "completed"}, "messages": {"tool_use", "tool_use", "end_turn"},
					}[name], finishes)

					require.Len(t, r.prompts, len(lines))
					for i, p := range r.prompts[1:] {
						before := r.prompts[i] + lines[i] + "<|im_end|>\n"
						if name == "chat" && via == "anthropic" { // without signatures, which this client drops, the Messages API has no reasoning
							before = thinking.ReplaceAllString(before, "")
						}
						require.True(t, strings.HasPrefix(p, before), "%s\n---\n%s", before, p)
					}
					last := r.prompts[len(lines)-1]
					require.Less(t, strings.Index(last, "result of read"), strings.Index(last, "result of grep"), "results stand in the order of the calls")
				})
			}
		}
	}
}

const firstLine = "What is in <a.go>?"

// chatTalker is the OpenAI SDK with the chat API.
type chatTalker struct {
	p openai.ChatCompletionNewParams
}

func newChatTalker() *chatTalker {
	tool := func(name string) openai.ChatCompletionToolUnionParam {
		return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Description: openai.String("looks"), Parameters: schema})
	}
	return &chatTalker{openai.ChatCompletionNewParams{
		Model: slashed, Messages: chatMessages{openai.DeveloperMessage("Be brief."), openai.UserMessage(firstLine)},
		Tools: []openai.ChatCompletionToolUnionParam{tool("read"), tool("grep")},
	}}
}

func (c *chatTalker) ask(t *testing.T, r *rig, stream bool) (h response) {
	var whole *openai.ChatCompletion
	var err error
	if stream {
		c.p.StreamOptions.IncludeUsage = openai.Bool(true)
		h, whole, err = accumulateChat(t, r.openai.Chat.Completions.NewStreaming(context.Background(), c.p))
		require.NoError(t, err)
	} else {
		whole, err = r.openai.Chat.Completions.New(context.Background(), c.p)
		require.NoError(t, err)
		h = chatResponse(t, whole)
	}
	m := whole.Choices[0].Message.ToParam()
	m.OfAssistant.SetExtraFields(object{"reasoning_content": h.Choices[0].joined("reasoning")}) // the SDK itself would lose it
	c.p.Messages = append(c.p.Messages, m)
	return h
}

func (c *chatTalker) result(id, text string) {
	c.p.Messages = append(c.p.Messages, openai.ToolMessage(text, id))
}
func (c *chatTalker) flush() {}

// responseTalker is the OpenAI SDK with the responses API, which keeps nothing on the server.
type responseTalker struct{ p oairesp.ResponseNewParams }

func newResponseTalker() *responseTalker {
	tool := func(name string) oairesp.ToolUnionParam {
		u := oairesp.ToolParamOfFunction(name, schema, false)
		u.OfFunction.Description = openai.String("looks")
		return u
	}
	return &responseTalker{oairesp.ResponseNewParams{
		Model: slashed, Instructions: openai.String("Be brief."), Store: openai.Bool(false),
		Include: []oairesp.ResponseIncludable{oairesp.ResponseIncludableReasoningEncryptedContent},
		Input:   oairesp.ResponseNewParamsInputUnion{OfInputItemList: oairesp.ResponseInputParam{oairesp.ResponseInputItemParamOfMessage(firstLine, "user")}},
		Tools:   []oairesp.ToolUnionParam{tool("read"), tool("grep")},
	}}
}

func (c *responseTalker) ask(t *testing.T, r *rig, stream bool) (h response) {
	var whole *oairesp.Response
	var err error
	if stream {
		h, whole, err = accumulateResponse(t, r.openai.Responses.NewStreaming(context.Background(), c.p))
		require.NoError(t, err)
	} else {
		whole, err = r.openai.Responses.New(context.Background(), c.p)
		require.NoError(t, err)
		h = responsesResponse(t, whole)
	}
	require.Equal(t, "Be brief.", whole.Instructions.OfString)
	require.Len(t, whole.Tools, 2)
	for _, it := range whole.Output {
		var u oairesp.ResponseInputItemUnionParam
		switch v := it.AsAny().(type) {
		case oairesp.ResponseReasoningItem:
			require.NotEmpty(t, v.EncryptedContent)
			p := v.ToParam()
			u.OfReasoning = &p
		case oairesp.ResponseOutputMessage:
			p := v.ToParam()
			u.OfOutputMessage = &p
		case oairesp.ResponseFunctionToolCall:
			p := v.ToParam()
			u.OfFunctionCall = &p
		}
		c.p.Input.OfInputItemList = append(c.p.Input.OfInputItemList, u)
	}
	return h
}

func (c *responseTalker) result(id, text string) {
	c.p.Input.OfInputItemList = append(c.p.Input.OfInputItemList, oairesp.ResponseInputItemUnionParam{
		OfFunctionCallOutput: &oairesp.ResponseInputItemFunctionCallOutputParam{
			CallID: openai.String(id), Output: oairesp.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String(text)},
		},
	})
}
func (c *responseTalker) flush() {}

// messageTalker is the Anthropic SDK.
type messageTalker struct {
	p       anthropic.MessageNewParams
	results []anthropic.ContentBlockParamUnion
}

func newMessageTalker() *messageTalker {
	tool := func(name string) anthropic.ToolUnionParam {
		u := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: schema["properties"], Required: []string{"path"}}, name)
		u.OfTool.Description = anthropic.String("looks")
		return u
	}
	return &messageTalker{p: anthropic.MessageNewParams{
		Model: slashed, MaxTokens: 1000, System: []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(firstLine))},
		Tools:    []anthropic.ToolUnionParam{tool("read"), tool("grep")}, Thinking: anthropic.ThinkingConfigParamOfEnabled(1024),
	}}
}

func (c *messageTalker) ask(t *testing.T, r *rig, stream bool) (h response) {
	var whole *anthropic.Message
	var err error
	if stream {
		h, whole, err = accumulateMessage(t, r.claude.Messages.NewStreaming(context.Background(), c.p))
		require.NoError(t, err)
	} else {
		whole, err = r.claude.Messages.New(context.Background(), c.p)
		require.NoError(t, err)
		h = messageResponse(t, whole)
	}
	c.p.Messages = append(c.p.Messages, whole.ToParam())
	return h
}

func (c *messageTalker) result(id, text string) {
	c.results = append(c.results, anthropic.NewToolResultBlock(id, text, false))
}

func (c *messageTalker) flush() {
	if len(c.results) > 0 {
		c.p.Messages = append(c.p.Messages, anthropic.NewUserMessage(c.results...))
		c.results = nil
	}
}
