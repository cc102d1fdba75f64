// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/stretchr/testify/require"
)

func chatParams() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("?")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{
			IncludeUsage: openai.Bool(true),
		},
	}
}

func streamChat(t require.TestingT, d *desk) (response, error) {
	h, _, err := accumulateChat(t, d.openai.Chat.Completions.NewStreaming(context.Background(), chatParams()))
	return h, err
}

// accumulateChat reads a stream in two ways, with the SDK's accumulator and delta by delta, which keeps the order and what
// the SDK has no fields for, and checks one against the other.
func accumulateChat(t require.TestingT, s *ssestream.Stream[openai.ChatCompletionChunk]) (response, *openai.ChatCompletion, error) {
	defer s.Close()
	var h response
	var acc openai.ChatCompletionAccumulator
	pieces := map[[2]int64]int{} // choice and index of a call: its piece
	roles := map[int64]int{}
	for s.Next() {
		chunk := s.Current()
		require.True(t, acc.AddChunk(chunk), "%s", chunk.RawJSON())
		require.EqualValues(t, "chat.completion.chunk", chunk.Object)
		h.ID, h.Model = chunk.ID, chunk.Model
		h.Usage.CacheWrite += chunk.Usage.PromptTokensDetails.CacheWriteTokens // the accumulator forgets it
		for _, cc := range chunk.Choices {
			for int(cc.Index) >= len(h.Choices) {
				h.Choices = append(h.Choices, choice{})
			}
			c := &h.Choices[cc.Index]
			require.Empty(t, c.Finish, "a delta after the finish")
			if cc.Delta.Role != "" {
				require.Empty(t, c.Pieces)
				roles[cc.Index]++
			}
			c.add("reasoning", reasoningOf(t, cc.Delta.JSON.ExtraFields))
			c.add("text", cc.Delta.Content)
			c.add("refusal", cc.Delta.Refusal)
			c.Notes = append(c.Notes, rawList(t, cc.Delta.JSON.ExtraFields["annotations"].Raw())...)
			for _, tc := range cc.Delta.ToolCalls {
				at := [2]int64{cc.Index, tc.Index}
				if _, ok := pieces[at]; !ok {
					require.NotEmpty(t, tc.ID, "the first delta of a call has everything but arguments")
					pieces[at] = len(c.Pieces)
					c.Pieces = append(c.Pieces, piece{ID: tc.ID})
				} else {
					require.Empty(t, tc.ID)
				}
				p := &c.Pieces[pieces[at]]
				var custom struct{ Name, Input string }
				if raw := tc.JSON.ExtraFields["custom"].Raw(); raw != "" {
					require.NoError(t, json.Unmarshal([]byte(raw), &custom))
				}
				if tc.Type != "" {
					p.Kind = map[string]string{"function": "call", "custom": "custom"}[tc.Type]
				}
				p.Name += tc.Function.Name + custom.Name
				p.Text += tc.Function.Arguments + custom.Input
			}
			for _, l := range cc.Logprobs.Content {
				c.Tokens = append(c.Tokens, l.Token)
			}
			c.Finish = cc.FinishReason
		}
	}
	if s.Err() != nil {
		return h, &acc.ChatCompletion, s.Err()
	}

	require.Equal(t, h.ID, acc.ID)
	require.Equal(t, h.Model, acc.Model)
	require.GreaterOrEqual(t, acc.Created, int64(created))
	require.Len(t, acc.Choices, len(h.Choices))
	u := &acc.Usage
	require.Equal(t, u.TotalTokens, u.PromptTokens+u.CompletionTokens)
	h.Usage.Prompt, h.Usage.Output = u.PromptTokens, u.CompletionTokens
	h.Usage.Cached, h.Usage.Reasoning = u.PromptTokensDetails.CachedTokens, u.CompletionTokensDetails.ReasoningTokens
	for i, a := range acc.Choices {
		c := &h.Choices[i]
		require.Equal(t, 1, roles[int64(i)], "one role")
		require.EqualValues(t, "assistant", a.Message.Role)
		require.Equal(t, c.joined("text"), a.Message.Content)
		require.Equal(t, c.joined("refusal"), a.Message.Refusal)
		require.Equal(t, c.Finish, a.FinishReason)
		require.NotEmpty(t, a.FinishReason)
		n := 0
		for _, p := range c.Pieces {
			switch p.Kind {
			case "call":
				tc := a.Message.ToolCalls[n]
				require.Equal(t, p, piece{Kind: "call", ID: tc.ID, Name: tc.Function.Name, Text: tc.Function.Arguments})
				n++
			case "custom": // the accumulator keeps no more of it
				require.Equal(t, p.ID, a.Message.ToolCalls[n].ID)
				n++
			}
		}
		require.Len(t, a.Message.ToolCalls, n)
	}
	return h, &acc.ChatCompletion, nil
}

// reasoningOf returns the reasoning of a delta or message, for which the SDK has no field.
func reasoningOf(t require.TestingT, extra map[string]respjson.Field) (s string) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if raw := extra[name].Raw(); raw != "" {
			var one string
			require.NoError(t, json.Unmarshal([]byte(raw), &one))
			require.True(t, s == "" || s == one, "two fields differ")
			s = one
		}
	}
	return s
}

// rawList returns the elements of a JSON array unchanged.
func rawList(t require.TestingT, raw string) (out []string) {
	if raw == "" || raw == "null" {
		return nil
	}
	var list []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(raw), &list))
	for _, l := range list {
		out = append(out, string(l))
	}
	return out
}

func readChat(t require.TestingT, d *desk) (response, error) {
	r, err := d.openai.Chat.Completions.New(context.Background(), chatParams())
	if err != nil {
		return response{}, err
	}
	return chatResponse(t, r), nil
}

func chatResponse(t require.TestingT, r *openai.ChatCompletion) (h response) {
	require.EqualValues(t, "chat.completion", r.Object)
	h.ID, h.Model = r.ID, r.Model
	u := &r.Usage
	require.Equal(t, u.TotalTokens, u.PromptTokens+u.CompletionTokens)
	h.Usage.Prompt, h.Usage.Output = u.PromptTokens, u.CompletionTokens
	h.Usage.Cached, h.Usage.CacheWrite = u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.CacheWriteTokens
	h.Usage.Reasoning = u.CompletionTokensDetails.ReasoningTokens
	for i, a := range r.Choices {
		require.EqualValues(t, i, a.Index)
		c := choice{Finish: a.FinishReason}
		m := &a.Message
		require.EqualValues(t, "assistant", m.Role)
		c.add("reasoning", reasoningOf(t, m.JSON.ExtraFields))
		c.add("text", m.Content)
		c.add("refusal", m.Refusal)
		for _, n := range m.Annotations {
			c.Notes = append(c.Notes, n.RawJSON())
		}
		for _, tc := range m.ToolCalls {
			switch v := tc.AsAny().(type) {
			case openai.ChatCompletionMessageFunctionToolCall:
				c.Pieces = append(c.Pieces, piece{Kind: "call", ID: v.ID, Name: v.Function.Name, Text: v.Function.Arguments})
			case openai.ChatCompletionMessageCustomToolCall:
				c.Pieces = append(c.Pieces, piece{Kind: "custom", ID: v.ID, Name: v.Custom.Name, Text: v.Custom.Input})
			default:
				require.Fail(t, "unknown call", tc.RawJSON())
			}
		}
		for _, l := range a.Logprobs.Content {
			c.Tokens = append(c.Tokens, l.Token)
		}
		h.Choices = append(h.Choices, c)
	}
	return h
}
