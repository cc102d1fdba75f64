// SPDX-License-Identifier: Apache-2.0

package protocols_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// TestReasoningComesBack sends what an engine of one API wants back to a client of the other, streamed and whole; the client
// returns it, and the engine's next request has it as the engine gave it.
func TestReasoningComesBack(t *testing.T) {
	collect := func(events []event.Event, err error) *event.Collector {
		require.NoError(t, err)
		c := new(event.Collector)
		c.Add(events...)
		return c
	}
	t.Run("encrypted reasoning through the messages API", func(t *testing.T) {
		c := collect(responses.DecodeResponse(nil, []byte(`{"status":"completed","output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"S"}],"encrypted_content":"E.N=C"},{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`)))
		answer := messages.AppendResponse(nil, c, messages.StreamOptions{ID: "msg_1", Model: "m"})
		back := collect(messages.DecodeResponse(nil, answer))
		require.Equal(t, "E.N=C", string(back.Answers[0].Blocks[0].Signature))
		require.True(t, back.Answers[0].Blocks[0].Flags.Has(event.Encrypted))

		next, err := messages.Decode([]byte(`{"max_tokens":1,"messages":[{"role":"assistant","content":`+string(raw(t, answer, "content"))+`}]}`), nil)
		require.NoError(t, err)
		body, losses, err := responses.Encode(nil, next, nil)
		require.NoError(t, err)
		require.Empty(t, losses)
		require.Contains(t, string(body), `"encrypted_content":"E.N=C"`)
	})
	t.Run("withheld reasoning through the responses API", func(t *testing.T) {
		c := collect(messages.DecodeResponse(nil, []byte(`{"type":"message","role":"assistant","content":[{"type":"redacted_thinking","data":"R="},{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{}}`)))
		opt := responses.StreamOptions{ID: "resp_1", Model: "m"}
		answer := responses.AppendResponse(nil, c, opt)
		out := responses.NewStream(opt)
		var wire []byte
		for _, b := range c.Answers[0].Blocks {
			wire = out.Append(wire, event.Event{Kind: b.Kind, ID: []byte(b.ID), Data: b.Data})
		}
		wire = out.Close(out.Append(wire, event.Event{Kind: event.Finish, Why: event.Stop}))
		require.Contains(t, string(wire), string(raw(t, answer, "output")), "streamed and whole are the same")

		next, err := responses.Decode([]byte(`{"max_output_tokens":1,"input":`+string(raw(t, answer, "output"))+`}`), nil)
		require.NoError(t, err)
		body, _, err := messages.Encode(nil, next, nil)
		require.NoError(t, err)
		require.Contains(t, string(body), `{"type":"redacted_thinking","data":"R="}`)
	})
	t.Run("a signature through the responses API", func(t *testing.T) {
		c := collect(messages.DecodeResponse(nil, []byte(`{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"T","signature":"SIG"},{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{}}`)))
		answer := responses.AppendResponse(nil, c, responses.StreamOptions{ID: "resp_1", Model: "m", Reasoning: responses.ReasoningRaw})
		back := collect(responses.DecodeResponse(nil, answer))
		require.Equal(t, "SIG", string(back.Answers[0].Blocks[0].Signature))
		require.False(t, back.Answers[0].Blocks[0].Flags.Has(event.Encrypted))

		next, err := responses.Decode([]byte(`{"max_output_tokens":1,"input":`+string(raw(t, answer, "output"))+`}`), nil)
		require.NoError(t, err)
		require.Equal(t, "SIG", next.Turns()[0].Blocks[0].Signature)
		body, _, err := messages.Encode(nil, next, nil)
		require.NoError(t, err)
		require.Contains(t, string(body), `{"type":"thinking","thinking":"T","signature":"SIG"}`)
	})
}

// raw returns a member of an answer.
func raw(t *testing.T, answer []byte, name string) []byte {
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(answer, &members))
	return members[name]
}
