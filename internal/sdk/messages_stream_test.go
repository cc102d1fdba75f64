// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

func messageParams() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: model, MaxTokens: 1000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("?"))},
	}
}

func streamMessage(t require.TestingT, d *desk) (response, error) {
	h, _, err := accumulateMessage(t, d.claude.Messages.NewStreaming(context.Background(), messageParams()))
	return h, err
}

// accumulateMessage reads a stream with the SDK's accumulator. On the way it checks what stricter clients demand: one
// open block at a time, no text in a start, exactly one signature. The input of calls is also put together by hand,
// because the SDK replaces invalid JSON by {}.
func accumulateMessage(t require.TestingT, s *ssestream.Stream[anthropic.MessageStreamEventUnion]) (response, *anthropic.Message, error) {
	defer s.Close()
	var m anthropic.Message
	var inputs []string
	var types []string
	signatures := 0
	open := int64(-1)
	for s.Next() {
		ev := s.Current()
		types = append(types, ev.Type)
		require.NoError(t, m.Accumulate(ev), "%s", ev.RawJSON())
		switch v := ev.AsAny().(type) {
		case anthropic.MessageStartEvent:
			require.Len(t, types, 1)
			require.True(t, v.Message.Usage.JSON.InputTokens.Valid() && v.Message.Usage.JSON.OutputTokens.Valid())
		case anthropic.ContentBlockStartEvent:
			require.EqualValues(t, -1, open, "two blocks are open")
			open, signatures = v.Index, 0
			inputs = append(inputs, "")
			b := v.ContentBlock
			require.Empty(t, b.Text+b.Thinking+b.Signature, "text in a start is lost on Claude Code")
			if b.Type == "tool_use" {
				require.JSONEq(t, "{}", string(m.Content[v.Index].Input), "input in a start is lost on Claude Code")
			}
		case anthropic.ContentBlockDeltaEvent:
			require.Equal(t, open, v.Index, "a delta outside its block")
			require.Zero(t, signatures, "a signature ends its block")
			switch d := v.Delta.AsAny().(type) {
			case anthropic.InputJSONDelta:
				inputs[v.Index] += d.PartialJSON
			case anthropic.SignatureDelta:
				signatures++
			case nil:
				require.Fail(t, "unknown delta", ev.RawJSON())
			}
		case anthropic.ContentBlockStopEvent:
			require.Equal(t, open, v.Index)
			require.Equal(t, m.Content[v.Index].Type == "thinking", signatures == 1, "thinking has one signature")
			open = -1
		case anthropic.MessageDeltaEvent:
			require.EqualValues(t, -1, open, "a block was left open")
			require.True(t, v.Usage.JSON.OutputTokens.Valid())
		case anthropic.MessageStopEvent:
		default:
			require.Fail(t, "unknown event", ev.RawJSON())
		}
	}
	if s.Err() != nil {
		return response{}, &m, s.Err()
	}
	if len(types) == 0 || types[len(types)-1] != "message_stop" {
		return response{}, &m, errCut // the SDK does not notice
	}
	h := messageResponse(t, &m)
	for i := range m.Content {
		p := &h.Choices[0].Pieces[i]
		if p.Kind != "call" && p.Kind != "server" {
			continue
		}
		switch in := inputs[i]; {
		case in == "", !json.Valid([]byte(in)):
			require.Equal(t, "{}", p.Text)
		default:
			require.Equal(t, in, p.Text)
		}
		if inputs[i] != "" {
			p.Text = inputs[i]
		}
	}
	return h, &m, nil
}

func readMessage(t require.TestingT, d *desk) (response, error) {
	m, err := d.claude.Messages.New(context.Background(), messageParams())
	if err != nil {
		return response{}, err
	}
	return messageResponse(t, m), nil
}

func messageResponse(t require.TestingT, m *anthropic.Message) response {
	require.EqualValues(t, "message", m.Type)
	require.EqualValues(t, "assistant", m.Role)
	u := &m.Usage
	h := response{ID: m.ID, Model: string(m.Model), Usage: event.Tokens{
		Prompt: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, Output: u.OutputTokens,
		Cached: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens, Reasoning: u.OutputTokensDetails.ThinkingTokens,
	}}
	c := choice{Finish: string(m.StopReason), Stop: m.StopSequence}
	for _, b := range m.Content {
		p := piece{Kind: "other", Text: b.RawJSON()}
		switch v := b.AsAny().(type) {
		case anthropic.TextBlock:
			p = piece{Kind: "text", Text: v.Text}
			for _, n := range v.Citations {
				p.Notes = append(p.Notes, n.RawJSON())
			}
		case anthropic.ThinkingBlock:
			p = piece{Kind: "reasoning", Text: v.Thinking, Signature: v.Signature}
		case anthropic.ToolUseBlock:
			p = piece{Kind: "call", Text: string(v.Input), Name: v.Name, ID: callID(t, v.ID)}
		case anthropic.ServerToolUseBlock:
			p = piece{Kind: "server", Text: string(b.Input), Name: string(v.Name), ID: callID(t, v.ID)}
		case nil:
			require.Fail(t, "unknown block", b.RawJSON())
		}
		c.Pieces = append(c.Pieces, p)
	}
	h.Choices = []choice{c}
	return h
}

// callID checks an id against Anthropic's rule and returns the one that the producer gave.
func callID(t require.TestingT, id string) string {
	require.Regexp(t, `^[a-zA-Z0-9_-]+$`, id)
	r, err := wire.Messages.Decode([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"`+id+`","name":"f","input":{}}]}]}`), nil)
	require.NoError(t, err)
	return r.Turns()[0].Blocks[0].CallID
}
