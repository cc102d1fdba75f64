// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/replay"
)

var testSigner, _ = replay.NewSigner([]byte("0123456789abcdef0123456789abcdef"), nil)

type detail struct{ Type, Text, Signature, Data string }

// TestReasoningDetails merges the details of streams as a client does and compares them with the details of responses
// that are not streamed and with the events.
func TestReasoningDetails(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "choices")
		events := streamtest.Events(rt, n, rapid.Bool().Draw(rt, "overlap"))
		opt := chatanswer.Options{
			ID: "chatcmpl-1", Model: "m", ReasoningDetails: chatanswer.DetailsAlways, ContinuousUsage: rapid.Bool().Draw(rt, "usage"),
			Reasoning: rapid.SampledFrom([]chatanswer.ReasoningField{chatanswer.ReasoningContent, chatanswer.ReasoningPlain, chatanswer.ReasoningBoth, chatanswer.ReasoningNone}).Draw(rt, "reasoning"),
			Signer:    rapid.SampledFrom([]*replay.Signer{nil, testSigner}).Draw(rt, "signer"),
		}
		type choice struct {
			Index   int
			Delta   map[string]json.RawMessage
			Message map[string]json.RawMessage
		}
		type entry struct {
			detail
			Index int
		}
		streamed := make([][]entry, n)
		s := chatanswer.NewEncoder(opt)
		stream := s.Finish(s.Append(nil, events...))
		for _, data := range payloads(stream) {
			var chunk struct{ Choices []choice }
			require.NoError(rt, json.Unmarshal(data, &chunk), "%s", data)
			for _, c := range chunk.Choices {
				var list []entry
				if raw := c.Delta["reasoning_details"]; raw != nil {
					require.NoError(rt, json.Unmarshal(raw, &list))
				}
				require.LessOrEqual(rt, len(list), 1, "an entry a chunk")
				for _, e := range list {
					have := &streamed[c.Index]
					if k := len(*have); k > 0 && (*have)[k-1].Index == e.Index && (*have)[k-1].Type == e.Type {
						(*have)[k-1].Text += e.Text
						(*have)[k-1].Signature += e.Signature
						continue
					}
					*have = append(*have, e)
				}
			}
		}
		var direct event.Collector
		direct.Add(events...)
		var answer struct{ Choices []choice }
		require.NoError(rt, json.Unmarshal(chatanswer.AppendResponse(nil, &direct, opt), &answer))
		for i, c := range answer.Choices {
			var whole []entry
			if raw := c.Message["reasoning_details"]; raw != nil {
				require.NoError(rt, json.Unmarshal(raw, &whole))
			}
			var want []detail
			for _, b := range direct.Answers[i].Blocks {
				if b.Kind != event.Reasoning || opt.Reasoning == chatanswer.ReasoningNone || len(b.Data)+len(b.Signature) == 0 {
					continue
				}
				text := jsonw.AppendValid(nil, b.Data)
				d := detail{Type: "reasoning.text", Text: string(text), Signature: string(jsonw.AppendValid(nil, b.Signature))}
				if len(b.Signature) == 0 {
					d.Signature = string(opt.Signer.AppendSigned(nil, text))
				}
				want = append(want, d)
			}
			for _, list := range [][]entry{whole, streamed[i]} {
				var got []detail
				last := -1
				for _, e := range list {
					require.Equal(rt, last+1, e.Index)
					last = e.Index
					if e.detail != (detail{Type: "reasoning.encrypted"}) { // separates runs
						got = append(got, e.detail)
					}
				}
				require.Empty(rt, cmp.Diff(want, got), "%s", stream)
			}
		}
	})
}

// payloads returns the JSON of the chunks of a stream.
func payloads(stream []byte) (out [][]byte) {
	for line := range bytes.Lines(stream) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && !bytes.HasPrefix(data, []byte("[DONE]")) {
			out = append(out, data)
		}
	}
	return out
}

// TestReasoningDetailsOrder checks that an encrypted form is a separate entry and that interleaved reasoning and calls
// are decoded in order.
func TestReasoningDetailsOrder(t *testing.T) {
	var c event.Collector
	c.Add(
		event.Event{Kind: event.Reasoning, Data: []byte("a")},
		event.Event{Kind: event.ToolStart, Part: 1, ID: []byte("c0"), Data: []byte("f")},
		event.Event{Kind: event.ToolEnd, Part: 1, Flags: event.Complete},
		event.Event{Kind: event.Reasoning, Part: 2, Data: []byte("b")},
		event.Event{Kind: event.Signature, Part: 2, Flags: event.Encrypted, Data: []byte("gAAA")},
		event.Event{Kind: event.ToolStart, Part: 3, Call: 1, ID: []byte("c1"), Data: []byte("f")},
		event.Event{Kind: event.ToolEnd, Part: 3, Call: 1, Flags: event.Complete},
		event.Event{Kind: event.Finish, Why: event.ToolCalls},
	)
	var answer struct {
		Choices []struct{ Message json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(chatanswer.AppendResponse(nil, &c, chatanswer.Options{ID: "chatcmpl-1", Model: "m", ReasoningDetails: chatanswer.DetailsAlways}), &answer))
	r, err := chat.Decode([]byte(`{"messages":[{"role":"user","content":"q"},`+string(answer.Choices[0].Message)+`]}`), nil)
	require.NoError(t, err)
	var got []string
	for _, b := range r.Turns()[1].Blocks {
		got = append(got, fmt.Sprint(b.Kind, " ", b.Text, b.CallID, b.Encrypted))
	}
	require.Equal(t, []string{"reasoning a", "tool_call c0", "reasoning bgAAA", "tool_call c1"}, got)
}
