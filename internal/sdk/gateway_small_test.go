// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	oairesp "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
)

// TestModels lists the models and gets one whose name has a slash, in the form of each API.
func TestModels(t *testing.T) {
	r := start(t, always("x"), nil)
	ctx := context.Background()

	list, err := r.openai.Models.List(ctx)
	require.NoError(t, err)
	var ids []string
	for _, m := range list.Data {
		require.EqualValues(t, "model", m.Object)
		ids = append(ids, m.ID)
	}
	require.Equal(t, []string{"m", slashed}, ids)
	m, err := r.openai.Models.Get(ctx, slashed)
	require.NoError(t, err)
	require.Equal(t, slashed, m.ID)

	ids = nil
	pager := r.claude.Models.ListAutoPaging(ctx, anthropic.ModelListParams{Limit: anthropic.Int(1)})
	for pager.Next() {
		require.EqualValues(t, "model", pager.Current().Type)
		require.NotEmpty(t, pager.Current().DisplayName)
		ids = append(ids, pager.Current().ID)
	}
	require.NoError(t, pager.Err())
	require.Equal(t, []string{"m", slashed}, ids)
	info, err := r.claude.Models.Get(ctx, slashed, anthropic.ModelGetParams{})
	require.NoError(t, err)
	require.Equal(t, slashed, info.ID)
	require.False(t, info.CreatedAt.IsZero())
}

// TestCountTokens sees the count of a request be what the request then costs.
func TestCountTokens(t *testing.T) {
	r := start(t, always("x"), nil)
	p := newMessageTalker().p
	var tools []anthropic.MessageCountTokensToolUnionParam
	for _, tool := range p.Tools {
		tools = append(tools, anthropic.MessageCountTokensToolUnionParam{OfTool: tool.OfTool})
	}
	count, err := r.claude.Messages.CountTokens(context.Background(), anthropic.MessageCountTokensParams{
		Model: p.Model, Messages: p.Messages, Tools: tools, Thinking: p.Thinking,
		System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System},
	})
	require.NoError(t, err)
	m, err := r.claude.Messages.New(context.Background(), p)
	require.NoError(t, err)
	require.Equal(t, m.Usage.InputTokens+m.Usage.CacheReadInputTokens+m.Usage.CacheCreationInputTokens, count.InputTokens)
	require.Positive(t, count.InputTokens)
}

// TestCustomTool sees a tool that takes free text, which the model knows as a function, called in the form in which it was
// declared.
func TestCustomTool(t *testing.T) {
	const output = "<tool_call>\n{\"name\": \"apply_patch\", \"arguments\": {\"input\": \"*** Begin\\n+\\u00e9 \\\"x\\\"\"}}\n</tool_call>"
	want := piece{Kind: "custom", Name: "apply_patch", Text: "*** Begin\n+é \"x\""}
	ctx := context.Background()
	for _, stream := range []bool{true, false} {
		r := start(t, always(output), nil)
		cp := openai.ChatCompletionNewParams{
			Model: slashed, Messages: chatMessages{openai.UserMessage("go")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionCustomTool(openai.ChatCompletionCustomToolCustomParam{Name: "apply_patch"})},
		}
		rp := oairesp.ResponseNewParams{
			Model: slashed, Input: oairesp.ResponseNewParamsInputUnion{OfString: openai.String("go")},
			Tools: []oairesp.ToolUnionParam{oairesp.ToolParamOfCustom("apply_patch")},
		}
		var hc, hr response
		if stream {
			var err error
			hc, _, err = accumulateChat(t, r.openai.Chat.Completions.NewStreaming(ctx, cp))
			require.NoError(t, err)
			hr, _, err = accumulateResponse(t, r.openai.Responses.NewStreaming(ctx, rp))
			require.NoError(t, err)
		} else {
			c, err := r.openai.Chat.Completions.New(ctx, cp)
			require.NoError(t, err)
			hc = chatResponse(t, c)
			a, err := r.openai.Responses.New(ctx, rp)
			require.NoError(t, err)
			hr = responsesResponse(t, a)
		}
		for _, h := range []response{hc, hr} {
			require.Len(t, h.Choices[0].Pieces, 1)
			got := h.Choices[0].Pieces[0]
			require.NotEmpty(t, got.ID)
			got.ID, got.Status = "", ""
			require.Equal(t, want, got)
		}
	}
}

// TestNamespaces sees two tools of one name told apart by their namespaces.
func TestNamespaces(t *testing.T) {
	const output = "<tool_call>\n{\"name\": \"b__get\", \"arguments\": {\"path\": \"x\"}}\n</tool_call>"
	r := start(t, always(output), nil)
	get := []oairesp.NamespaceToolToolUnionParam{{OfFunction: &oairesp.NamespaceToolToolFunctionParam{Name: "get", Parameters: schema}}}
	a, err := r.openai.Responses.New(context.Background(), oairesp.ResponseNewParams{
		Model: slashed, Input: oairesp.ResponseNewParamsInputUnion{OfString: openai.String("go")},
		Tools: []oairesp.ToolUnionParam{oairesp.ToolParamOfNamespace("first", "a", get), oairesp.ToolParamOfNamespace("second", "b", get)},
	})
	require.NoError(t, err)
	call := a.Output[0].AsFunctionCall()
	require.Equal(t, []string{"b", "get", `{"path": "x"}`}, []string{call.Namespace, call.Name, call.Arguments})
}

// TestAnswers requests two choices at once.
func TestAnswers(t *testing.T) {
	r := start(t, always("<think>\na\n</think>\n\nb"), nil)
	p := openai.ChatCompletionNewParams{Model: slashed, Messages: chatMessages{openai.UserMessage("go")}, N: openai.Int(2)}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	h, _, err := accumulateChat(t, r.openai.Chat.Completions.NewStreaming(context.Background(), p))
	require.NoError(t, err)
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	whole, err := r.openai.Chat.Completions.New(context.Background(), p)
	require.NoError(t, err)
	for _, h := range []response{h, chatResponse(t, whole)} {
		require.Len(t, h.Choices, 2)
		for _, c := range h.Choices {
			require.Equal(t, "stop", c.Finish)
			require.Len(t, c.Pieces, 2)
			require.Equal(t, "b", c.joined("text"))
		}
	}
}

// TestLimits checks that each API reports why a response ended early.
func TestLimits(t *testing.T) {
	r := start(t, always("one two three STOP four five six seven eight nine ten"), nil)
	ctx := context.Background()

	cp := openai.ChatCompletionNewParams{Model: slashed, Messages: chatMessages{openai.UserMessage("go")}, MaxCompletionTokens: openai.Int(2)}
	h, _, err := accumulateChat(t, r.openai.Chat.Completions.NewStreaming(ctx, cp))
	require.NoError(t, err)
	require.Equal(t, "length", h.Choices[0].Finish)
	require.NotEmpty(t, h.Choices[0].joined("text"))

	rp := oairesp.ResponseNewParams{
		Model: slashed, Input: oairesp.ResponseNewParamsInputUnion{OfString: openai.String("go")}, MaxOutputTokens: openai.Int(2),
		Metadata: shared.Metadata{"k": "v"}, Temperature: openai.Float(0.25),
	}
	h, whole, err := accumulateResponse(t, r.openai.Responses.NewStreaming(ctx, rp))
	require.NoError(t, err)
	require.Equal(t, "incomplete", h.Choices[0].Finish)
	require.EqualValues(t, "max_output_tokens", whole.IncompleteDetails.Reason)
	require.Equal(t, "incomplete", h.Choices[0].Pieces[0].Status)
	require.EqualValues(t, 2, whole.MaxOutputTokens)
	require.EqualValues(t, 0.25, whole.Temperature)
	require.Equal(t, shared.Metadata{"k": "v"}, whole.Metadata)

	mp := anthropic.MessageNewParams{
		Model: slashed, MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("go"))},
		StopSequences: []string{"STOP"},
	}
	h, _, err = accumulateMessage(t, r.claude.Messages.NewStreaming(ctx, mp))
	require.NoError(t, err)
	require.Equal(t, "stop_sequence", h.Choices[0].Finish)
	require.Equal(t, "STOP", h.Choices[0].Stop)
	require.Equal(t, "one two three ", h.Choices[0].joined("text"))
	mp.MaxTokens = 2
	m, err := r.claude.Messages.New(ctx, mp)
	require.NoError(t, err)
	require.EqualValues(t, "max_tokens", m.StopReason)
}
