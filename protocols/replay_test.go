// SPDX-License-Identifier: Apache-2.0

package protocols_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/protocols/wire"
)

// TestReasoningComesBack sends reasoning that the engine of one API needs again to a client of another API, streamed
// and not. The client returns it, and the engine's next request must contain it unmodified.
func TestReasoningComesBack(t *testing.T) {
	collect := func(events []event.Event, err error) *event.Collector {
		require.NoError(t, err)
		c := new(event.Collector)
		c.Add(events...)
		return c
	}
	t.Run("encrypted reasoning through the messages API", func(t *testing.T) {
		c := collect(responsesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"status":"completed","output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"S"}],"encrypted_content":"E.N=C"},{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`)))
		answer := messagesanswer.AppendResponse(nil, c, messagesanswer.Options{ID: "msg_1", Model: "m"})
		back := collect(messagesanswer.NewDecoder(nil).AppendWhole(nil, answer))
		require.Equal(t, "E.N=C", string(back.Answers[0].Blocks[0].Signature))
		require.True(t, back.Answers[0].Blocks[0].Flags.Has(event.Encrypted))

		next, err := messages.Decode([]byte(`{"max_tokens":1,"messages":[{"role":"assistant","content":`+string(raw(t, answer, "content"))+`}]}`), nil)
		require.NoError(t, err)
		body, losses, err := responses.AppendRequest(nil, next, nil)
		require.NoError(t, err)
		require.Empty(t, losses)
		require.Contains(t, string(body), `"encrypted_content":"E.N=C"`)
	})
	t.Run("withheld reasoning through the responses API", func(t *testing.T) {
		c := collect(messagesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"type":"message","role":"assistant","content":[{"type":"redacted_thinking","data":"R="},{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{}}`)))
		opt := responsesanswer.Options{ID: "resp_1", Model: "m"}
		answer := responsesanswer.AppendResponse(nil, c, opt)
		out := responsesanswer.NewEncoder(opt)
		var wire []byte
		for _, b := range c.Answers[0].Blocks {
			wire = out.Append(wire, event.Event{Kind: b.Kind, ID: []byte(b.ID), Data: b.Data})
		}
		wire = out.Finish(out.Append(wire, event.Event{Kind: event.Finish, Why: event.Stop}))
		require.Contains(t, string(wire), string(raw(t, answer, "output")), "streamed and whole are the same")

		next, err := responses.Decode([]byte(`{"max_output_tokens":1,"input":`+string(raw(t, answer, "output"))+`}`), nil)
		require.NoError(t, err)
		body, _, err := messages.AppendRequest(nil, next, nil)
		require.NoError(t, err)
		require.Contains(t, string(body), `{"type":"redacted_thinking","data":"R="}`)
	})
	t.Run("a signature through the responses API", func(t *testing.T) {
		c := collect(messagesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"T","signature":"SIG"},{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{}}`)))
		answer := responsesanswer.AppendResponse(nil, c, responsesanswer.Options{ID: "resp_1", Model: "m", Reasoning: responsesanswer.ReasoningRaw})
		back := collect(responsesanswer.NewDecoder(nil).AppendWhole(nil, answer))
		require.Equal(t, "SIG", string(back.Answers[0].Blocks[0].Signature))
		require.False(t, back.Answers[0].Blocks[0].Flags.Has(event.Encrypted))

		next, err := responses.Decode([]byte(`{"max_output_tokens":1,"input":`+string(raw(t, answer, "output"))+`}`), nil)
		require.NoError(t, err)
		require.Equal(t, "SIG", next.Turns()[0].Blocks[0].Signature)
		body, _, err := messages.AppendRequest(nil, next, nil)
		require.NoError(t, err)
		require.Contains(t, string(body), `{"type":"thinking","thinking":"T","signature":"SIG"}`)
	})
}

// original is the model's response in the tests below.
var original = []event.Event{
	{Kind: event.Reasoning, Data: []byte("First \xe2\x82")}, {Kind: event.Reasoning, Data: []byte("\xac look \"there\".\n")},
	{Kind: event.ToolStart, Part: 1, Call: 0, ID: []byte("call_1"), Data: []byte("ls")},
	{Kind: event.ToolArgs, Part: 1, Call: 0, Data: []byte(`{"p":1}`)},
	{Kind: event.ToolEnd, Part: 1, Call: 0, Flags: event.Complete},
	{Kind: event.Reasoning, Part: 2, Data: []byte("Then <b>so</b>.")},
	{Kind: event.Text, Part: 3, Data: []byte("Done.")},
	{Kind: event.Finish, Why: event.ToolCalls},
}

var thoughts = []string{"First \u20ac look \"there\".\n", "Then <b>so</b>."}

// echo sends a response to a client of one API; body returns the client's next request.
type echo struct {
	name   string
	hidden bool // the client does not receive the reasoning
	decode func([]byte, *block.Limits) (*block.Request, error)
	body   func(t *testing.T, c *replay.Signer, whole bool) []byte
}

var echoes = []echo{
	{"messages", false, messages.Decode, func(t *testing.T, c *replay.Signer, whole bool) []byte {
		return echoMessages(t, messagesanswer.Options{Signer: c}, whole)
	}},
	{"messages, omitted", true, messages.Decode, func(t *testing.T, c *replay.Signer, whole bool) []byte {
		return echoMessages(t, messagesanswer.Options{Signer: c, Thinking: messagesanswer.ThinkingOmitted}, whole)
	}},
	{"responses, summary", false, responses.Decode, func(t *testing.T, c *replay.Signer, whole bool) []byte {
		return echoResponses(t, responsesanswer.Options{Signer: c, Seal: true}, whole)
	}},
	{"responses, raw", false, responses.Decode, func(t *testing.T, c *replay.Signer, whole bool) []byte {
		return echoResponses(t, responsesanswer.Options{Signer: c, Seal: true, Reasoning: responsesanswer.ReasoningRaw}, whole)
	}},
	{"chat, details", false, chat.Decode, echoChat},
	{"responses, none", true, responses.Decode, func(t *testing.T, c *replay.Signer, whole bool) []byte {
		return echoResponses(t, responsesanswer.Options{Signer: c, Seal: true, Reasoning: responsesanswer.ReasoningNone}, whole)
	}},
}

// echoMessages returns signatures unmodified, as Claude Code does.
func echoMessages(t *testing.T, opt messagesanswer.Options, whole bool) []byte {
	opt.ID, opt.Model = "msg_1", "m"
	var content []map[string]any
	if whole {
		var c event.Collector
		c.Add(original...)
		require.NoError(t, json.Unmarshal(raw(t, messagesanswer.AppendResponse(nil, &c, opt), "content"), &content))
	} else {
		s := messagesanswer.NewEncoder(opt)
		var input string
		for ev, err := range new(sse.Reader).Events(bytes.NewReader(s.Finish(s.Append(nil, original...)))) {
			require.NoError(t, err)
			var e struct {
				Type  string
				Block map[string]any `json:"content_block"`
				Delta struct {
					Type, Thinking, Signature, Text string
					Input                           string `json:"partial_json"`
				}
			}
			require.NoError(t, json.Unmarshal(ev.Data, &e))
			switch e.Type {
			case "content_block_start":
				content, input = append(content, e.Block), ""
			case "content_block_delta":
				b := content[len(content)-1]
				switch e.Delta.Type {
				case "thinking_delta":
					b["thinking"] = b["thinking"].(string) + e.Delta.Thinking
				case "signature_delta":
					b["signature"] = e.Delta.Signature
				case "text_delta":
					b["text"] = b["text"].(string) + e.Delta.Text
				case "input_json_delta":
					input += e.Delta.Input
					b["input"] = json.RawMessage(input)
				}
			}
		}
	}
	return body(t, "messages", map[string]any{"role": "assistant", "content": content}, map[string]any{"max_tokens": 1})
}

// echoResponses returns items with "content":null if they had no content, as Codex does.
func echoResponses(t *testing.T, opt responsesanswer.Options, whole bool) []byte {
	opt.ID, opt.Model = "resp_1", "m"
	var items []any
	add := func(item map[string]any) {
		if item["type"] == "reasoning" && item["content"] == nil {
			item["content"] = nil
		}
		delete(item, "status")
		items = append(items, item)
	}
	if whole {
		var c event.Collector
		c.Add(original...)
		var list []map[string]any
		require.NoError(t, json.Unmarshal(raw(t, responsesanswer.AppendResponse(nil, &c, opt), "output"), &list))
		for _, item := range list {
			add(item)
		}
	} else {
		s := responsesanswer.NewEncoder(opt)
		for ev, err := range new(sse.Reader).Events(bytes.NewReader(s.Finish(s.Append(nil, original...)))) {
			require.NoError(t, err)
			if string(ev.Type) == "response.output_item.done" {
				var e struct{ Item map[string]any }
				require.NoError(t, json.Unmarshal(ev.Data, &e))
				add(e.Item)
			}
		}
	}
	return body(t, "input", items, nil)
}

// echoChat returns reasoning_details, merged by index.
func echoChat(t *testing.T, c *replay.Signer, whole bool) []byte {
	opt := chatanswer.Options{ID: "chatcmpl-1", Model: "m", ReasoningDetails: chatanswer.DetailsAlways, Signer: c}
	type detail struct {
		Type      string `json:"type"`
		Index     int    `json:"index"`
		Text      string `json:"text"`
		Signature string `json:"signature"`
	}
	type message struct {
		Role      string           `json:"role"`
		Content   string           `json:"content"`
		Reasoning string           `json:"reasoning_content"`
		Details   []detail         `json:"reasoning_details"`
		Calls     []map[string]any `json:"tool_calls"`
	}
	var m message
	if whole {
		var c event.Collector
		c.Add(original...)
		var answer struct{ Choices []struct{ Message message } }
		require.NoError(t, json.Unmarshal(chatanswer.AppendResponse(nil, &c, opt), &answer))
		m = answer.Choices[0].Message
	} else {
		s := chatanswer.NewEncoder(opt)
		for ev, err := range new(sse.Reader).Events(bytes.NewReader(s.Finish(s.Append(nil, original...)))) {
			require.NoError(t, err)
			var chunk struct{ Choices []struct{ Delta message } }
			if json.Unmarshal(ev.Data, &chunk) != nil || len(chunk.Choices) == 0 {
				continue
			}
			d := chunk.Choices[0].Delta
			m.Content, m.Reasoning = m.Content+d.Content, m.Reasoning+d.Reasoning
			for _, x := range d.Details {
				if n := len(m.Details); n == 0 || m.Details[n-1].Index != x.Index {
					m.Details = append(m.Details, detail{Type: x.Type, Index: x.Index})
				}
				last := &m.Details[len(m.Details)-1]
				last.Text, last.Signature = last.Text+x.Text, last.Signature+x.Signature
			}
			for _, call := range d.Calls {
				if call["id"] != nil {
					delete(call, "index")
					m.Calls = append(m.Calls, call)
				} else {
					f := m.Calls[len(m.Calls)-1]["function"].(map[string]any)
					f["arguments"] = f["arguments"].(string) + call["function"].(map[string]any)["arguments"].(string)
				}
			}
		}
		m.Role = "assistant"
	}
	return body(t, "messages", m, nil)
}

// body returns a request with a response, or its items, in its list of turns.
func body(t *testing.T, list string, answer any, members map[string]any) []byte {
	turns := []any{map[string]any{"role": "user", "content": "q"}}
	if items, ok := answer.([]any); ok {
		turns = append(turns, items...)
	} else {
		turns = append(turns, answer)
	}
	m := map[string]any{"model": "m", list: append(turns, map[string]any{"role": "user", "content": "next"})}
	for k, v := range members {
		m[k] = v
	}
	out, err := json.Marshal(m)
	require.NoError(t, err)
	return out
}

// thoughtsOf returns the texts of the reasoning of a request.
func thoughtsOf(r *block.Request) (out []string) {
	for _, turn := range r.Turns() {
		for _, b := range turn.Blocks {
			if b.Kind == block.Reasoning {
				out = append(out, b.Text)
			}
		}
	}
	return out
}

// TestSignerRoundTrip sends signed or sealed reasoning to a client of each API, streamed and not, and verifies the reasoning that it returns.
func TestSignerRoundTrip(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, replay.KeySize) }
	signer := func(key []byte, old ...[]byte) *replay.Signer {
		c, err := replay.NewSigner(key, &replay.SignerOptions{Old: old})
		require.NoError(t, err)
		return c
	}
	c := signer(key(1))
	check := func(t *testing.T, e echo, body []byte, c *replay.Signer) (r *block.Request, verdicts []string) {
		r, err := e.decode(body, nil)
		require.NoError(t, err)
		found, err := wire.CheckReasoning(r, c)
		require.NoError(t, err)
		for _, f := range found {
			_, result, _ := strings.Cut(f.String(), ": ")
			verdicts = append(verdicts, strings.Replace(result, " reasoning", "", 1))
		}
		return r, verdicts
	}
	for _, e := range echoes {
		t.Run(e.name, func(t *testing.T) {
			sent := e.body(t, c, false)
			require.JSONEq(t, string(sent), string(e.body(t, c, true)), "streamed and whole are the same")

			r, found := check(t, e, sent, c)
			require.Equal(t, thoughts, thoughtsOf(r))
			out, err := r.AppendBody(nil)
			require.NoError(t, err)
			if e.hidden {
				require.Equal(t, []string{"intact restored", "intact restored"}, found)
				require.NotContains(t, string(sent), "look")
			} else {
				require.Empty(t, found)
				require.Equal(t, string(sent), string(out))
			}
			for _, encode := range []func([]byte, *block.Request, *block.EncodeOptions) ([]byte, []block.Loss, error){chat.AppendRequest, messages.AppendRequest, responses.AppendRequest} {
				out, _, err := encode(nil, r, nil)
				require.NoError(t, err)
				require.Contains(t, string(out), `look \"there\"`, "the engine's prompt has it, whatever its API is")
			}

			r, found = check(t, e, sent, signer(key(2), key(1)))
			require.Equal(t, thoughts, thoughtsOf(r), "a key of before: %v", found)

			for name, other := range map[string]*replay.Signer{"restarted": signer(key(3)), "no key": nil} {
				r, found = check(t, e, sent, other)
				require.Equal(t, []string{"unverified kept", "unverified kept"}, found, name)
				if !e.hidden {
					require.Equal(t, thoughts, thoughtsOf(r))
				}
			}
			r, found = check(t, e, sent, c.With("another tenant"))
			require.Equal(t, []string{"forged dropped", "forged dropped"}, found)
			require.Empty(t, thoughtsOf(r))

			// The client swaps the tokens of two blocks.
			tokens := regexp.MustCompile(`weft3\.[A-Za-z0-9._-]+`).FindAllString(string(sent), -1)
			require.Len(t, tokens, 2)
			swapped := strings.NewReplacer(tokens[0], tokens[1], tokens[1], tokens[0]).Replace(string(sent))
			r, found = check(t, e, []byte(swapped), c)
			if e.hidden { // it may move encrypted reasoning
				require.Equal(t, []string{thoughts[1], thoughts[0]}, thoughtsOf(r))
			} else {
				require.Equal(t, []string{"forged dropped", "forged dropped"}, found)
			}
			// The client changes the text, or truncates a token.
			edited := strings.ReplaceAll(string(sent), "look", "rm -r")
			if e.hidden {
				edited = strings.Replace(string(sent), tokens[0], tokens[0][:len(tokens[0])-1], 1)
			}
			r, found = check(t, e, []byte(edited), c)
			require.Contains(t, found, "forged dropped")
			require.Equal(t, thoughts[1:], thoughtsOf(r))
			require.True(t, slices.ContainsFunc(r.Turns()[1].Blocks, func(b block.Block) bool { return b.Kind == block.ToolCall }), "the call stays")

			// Without a key, the tokens still detect changes.
			if !e.hidden {
				plain := e.body(t, nil, false)
				_, found = check(t, e, plain, nil)
				require.Empty(t, found)
				_, found = check(t, e, []byte(strings.ReplaceAll(string(plain), "look", "rm -r")), nil)
				require.Equal(t, []string{"forged dropped"}, found)
			}
		})
	}
}

// raw returns a field of a response.
func raw(t *testing.T, answer []byte, name string) []byte {
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(answer, &members))
	return members[name]
}
