// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// This file looks at options of chat streams that the SDK knows nothing of.

func encodeChat(r *block.Request, opt *wire.Options, events []event.Event) []byte {
	return wire.Chat.NewEncoder(r, opt).Finish(nil, events...)
}

// TestToolDispatch sees the SDK read on past the events that tell of complete calls. It treats them as chunks without
// choices, which its accumulator refuses, so a client must request them.
func TestToolDispatch(t *testing.T) {
	d := newDesk(t)
	opt := chatAPI.options(setup{})
	opt.ToolDispatch = true
	d.stream(encodeChat(setup{}.request(chatAPI, true), opt, example()))
	s := d.openai.Chat.Completions.NewStreaming(context.Background(), chatParams())
	defer s.Close()
	var acc openai.ChatCompletionAccumulator
	var reported []string
	for s.Next() {
		if chunk := s.Current(); chunk.ID != "" {
			require.True(t, acc.AddChunk(chunk))
		} else {
			require.Empty(t, chunk.Choices)
			require.False(t, acc.AddChunk(chunk))
			reported = append(reported, chunk.JSON.ExtraFields["tool_call"].Raw())
		}
	}
	require.NoError(t, s.Err())
	require.Equal(t, []string{
		`{"index":0,"id":"call_1_0","type":"function","function":{"name":"get","arguments":"{\"x\":1}"}}`,
		`{"index":1,"id":"call_1_1","type":"function","function":{"name":"put","arguments":"{}"}}`,
	}, reported)
	require.Len(t, acc.Choices[0].Message.ToolCalls, 2)
	require.Equal(t, "tool_calls", acc.Choices[0].FinishReason)
}

// TestContinuousUsage sees the counts so far in every chunk. The SDK's accumulator would add them up, so they are for clients
// that ask for them.
func TestContinuousUsage(t *testing.T) {
	d := newDesk(t)
	r, err := wire.Chat.Decode([]byte(`{"model":"demo","messages":[],"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`), nil)
	require.NoError(t, err)
	d.stream(encodeChat(r, chatAPI.options(setup{}), begin(some).text("a").usage(event.Tokens{Prompt: 10, Output: 1}).text("b").usage(event.Tokens{Prompt: 10, Output: 2}).text("c").
		usage(done).finish(event.Stop).events))
	s := d.openai.Chat.Completions.NewStreaming(context.Background(), chatParams())
	defer s.Close()
	var output []int64
	text := ""
	for s.Next() {
		chunk := s.Current()
		require.EqualValues(t, 10, chunk.Usage.PromptTokens)
		output = append(output, chunk.Usage.CompletionTokens)
		for _, c := range chunk.Choices {
			text += c.Delta.Content
		}
	}
	require.NoError(t, s.Err())
	require.Equal(t, "abc", text)
	require.Equal(t, []int64{0, 0, 1, 2, 5, 5}, output)
}

// TestNoUsage sees a stream whose client did not ask for usage.
func TestNoUsage(t *testing.T) {
	d := newDesk(t)
	r := setup{}.request(chatAPI, true)
	p := r.Params()
	p.StreamUsage = false
	require.NoError(t, r.SetParams(p))
	d.stream(encodeChat(r, chatAPI.options(setup{}), example()))
	h, err := streamChat(t, d)
	require.NoError(t, err)
	want := (&meaning{api: chatAPI}).of(collect(example()))
	want.Usage = event.Tokens{}
	compare(t, want, h)
}
