// SPDX-License-Identifier: Apache-2.0

package messagesanswer_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/replay"
)

// testSigner has a small limit so that tests exceed it.
var testSigner, _ = replay.NewSigner([]byte("0123456789abcdef0123456789abcdef"), &replay.SignerOptions{MaxSealed: 24})

// expected returns the part of c that the API can express, which is the result of decoding. The differences are:
//
//   - text is valid UTF-8, and JSON is on one line; empty text is omitted; a refusal is text;
//   - reasoning always has a signature; it is left out with ThinkingNone, its text with ThinkingOmitted;
//   - a call inside reasoning or without a ToolStart is left out, and the others are renumbered; an aborted call is
//     complete unless streamed;
//   - a call has an id, the producer's or a new one, only the flag Server, and arguments: {} if there were none, free
//     text as {"input":"…"};
//   - the cause of an aborted call is Truncated or BadArguments, and its arguments are invalid;
//   - the kind of results and opaque items depends on their type; they are left out if they are not blocks;
//   - the finish has its sequence only if there was no call; Stop, ToolCalls and ContentFilter follow from the blocks;
//   - in a response that is not streamed and that the token limit ended, a last call without arguments is treated as
//     cut off;
//   - counts of cached and reasoning tokens do not exceed those of the prompt and the output;
//   - there is one choice, without log probabilities.
func expected(c *event.Collector, opened map[int32]bool, o messagesanswer.Options, whole bool) (w event.Collector) {
	line := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte(" ")) }
	a := c.Answers[0]
	var out event.Answer
	suffix := callid.Suffix(o.ID)
	var ids callid.Set
	calls, complete, refused, wasCut := int32(0), 0, false, false
	for _, b := range a.Blocks {
		b.Data = jsonw.AppendValid(nil, b.Data)
		switch b.Kind {
		case event.Reasoning:
			if o.Thinking == messagesanswer.ThinkingNone || len(b.Data)+len(b.Signature) == 0 {
				continue
			}
			if len(b.Signature) == 0 {
				b.Signature = o.Signer.AppendSigned(nil, b.Data)
				if sealed, ok := o.Signer.AppendSealed(nil, b.Data); ok && o.Thinking == messagesanswer.ThinkingOmitted {
					b.Signature = sealed
				}
			}
			if o.Thinking == messagesanswer.ThinkingOmitted {
				b.Data = nil
			}
		case event.Text, event.Refusal:
			for i := range b.Annotations {
				b.Annotations[i] = line(b.Annotations[i])
			}
			if len(b.Data)+len(b.Annotations) == 0 {
				continue
			}
			refused = refused || b.Kind == event.Refusal && len(b.Data) > 0
			b.Kind = event.Text
		case event.ToolStart, event.ToolAbort:
			prefix := "toolu_"
			if b.Flags.Has(event.Server) {
				prefix = "srvtoolu_"
			}
			b.ID, _ = ids.Assign(prefix, suffix, 0, b.ID)
			if !opened[b.Call] || b.Flags.Has(event.InReasoning) && !o.DispatchInReasoning {
				continue
			}
			cut := whole && b.Cut()
			done := cut || b.Kind == event.ToolStart && b.Flags.Has(event.Complete)
			custom := cut || b.Flags.Has(event.Custom)
			b.Flags &= event.Server
			switch {
			case done:
				b.Kind, b.Why = event.ToolStart, event.None
				b.Flags |= event.Complete
				if custom {
					b.Data = []byte(`{"input":` + string(jsonw.AppendString(nil, b.Data)) + `}`)
				} else if jsonw.IsBlank(b.Data) {
					b.Data = append(b.Data, "{}"...)
				}
				if b.Flags == event.Complete && !cut {
					complete++
				}
				wasCut = wasCut || cut && b.Flags == event.Complete
			case whole:
				continue
			default:
				b.Kind, b.Why = event.ToolAbort, event.Truncated
				if custom {
					b.Data = jsonw.AppendText([]byte(`{"input":"`), b.Data)
				}
				var j jsonw.Balance
				j.Feed(b.Data)
				spoiler := j.Spoiler()
				if spoiler == `"` {
					b.Why = event.BadArguments
				}
				b.Data = append(b.Data, spoiler...)
			}
			b.Call = calls
			calls++
		case event.ToolResult, event.Opaque:
			if !jsonw.IsTyped(b.Data) {
				continue
			}
			b.Kind, b.Flags, b.Data = event.Opaque, 0, line(b.Data)
		}
		out.Blocks = append(out.Blocks, b)
	}
	out.Finish = a.Finish
	switch a.Finish {
	case event.Length, event.ContextFull:
		if n := len(out.Blocks) - 1; whole && n >= 0 && out.Blocks[n].Kind == event.ToolStart && string(bytes.TrimSpace(out.Blocks[n].Data)) == "{}" {
			b := &out.Blocks[n]
			b.Kind, b.Why, b.Data, b.Flags = event.ToolAbort, event.Truncated, nil, b.Flags&^event.Complete
		}
	case event.Paused:
	case event.ContentFilter, event.Refused:
		out.Finish = event.Refused
	default:
		switch {
		case complete > 0:
			out.Finish = event.ToolCalls
		case refused:
			out.Finish = event.Refused
		case a.Finish == event.StopSequence:
			out.Stop = a.Stop
		case wasCut: // nothing in the response tells that, except for max_tokens
			out.Finish = event.ToolCalls
		default:
			out.Finish = event.Stop
		}
	}
	w.Answers = []event.Answer{out}
	w.Usage = c.Usage
	w.Usage.Cached, w.Usage.Reasoning = min(w.Usage.Cached, w.Usage.Prompt), min(w.Usage.Reasoning, w.Usage.Output)
	return w
}

func TestStreamRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := streamtest.Events(rt, 1, true)
		opt := messagesanswer.Options{
			ID: "msg_r", Model: "demo",
			Thinking:            rapid.SampledFrom([]messagesanswer.Thinking{messagesanswer.ThinkingFull, messagesanswer.ThinkingOmitted, messagesanswer.ThinkingNone}).Draw(rt, "thinking"),
			Signer:              rapid.SampledFrom([]*replay.Signer{nil, testSigner}).Draw(rt, "signer"),
			DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"),
		}
		direct := streamtest.Collect(events)
		opened := streamtest.Started(events, 0)

		s := messagesanswer.NewEncoder(opt)
		decoded, errs := streamtest.Decode(rt, newDecoder(), s.Finish(s.Append(nil, events...)))
		require.Empty(rt, errs)
		got := streamtest.Collect(decoded)
		require.Empty(rt, cmp.Diff(expected(&direct, opened, opt, false), got, streamtest.SameAnswer))

		decoded, err := messagesanswer.NewDecoder(nil).AppendWhole(nil, messagesanswer.AppendResponse(nil, &direct, opt))
		require.NoError(rt, err)
		streamtest.CheckWhole(rt, decoded)
		whole := streamtest.Collect(decoded)
		require.Empty(rt, cmp.Diff(expected(&direct, opened, opt, true), whole, streamtest.SameAnswer))
	})
}

func encode(events []event.Event) []byte {
	s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_r", Model: "demo"})
	return s.Finish(s.Append(nil, events...))
}

func TestStreamTwice(t *testing.T) { streamtest.CheckTwice(t, encode, newDecoder) }

// TestStreamTwiceOpaque checks that blocks of other types are not changed.
func TestStreamTwiceOpaque(t *testing.T) {
	for _, b := range []string{
		`{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"}`,
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"http://x/"}]}`,
		`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":true,"content":[]}`,
		`{"type":"container_upload","file_id":"f"}`,
	} {
		decoded, errs := streamtest.Decode(t, newDecoder(), streamtest.Bare(started, blockStart("0", b), blockStop("0"), stopFor("end_turn"), stopped))
		require.Empty(t, errs)
		s := messagesanswer.NewEncoder(messagesanswer.Options{ID: "msg_r"})
		require.Contains(t, string(s.Finish(s.Append(nil, decoded...))), "data: "+blockStart("0", b)+"\n")
	}
}

func TestStreamDecoderCut(t *testing.T) { streamtest.CheckCuts(t, encode, newDecoder()) }

var indexes = regexp.MustCompile(`"index":[0-9]+`)

// TestStreamDecoderLoss checks that text and reasoning are decoded if a server omits starts, stops and pings, or sends
// wrong indexes.
func TestStreamDecoderLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		whole := encode(streamtest.Events(rt, 1, true))
		want, _ := streamtest.Decode(rt, newDecoder(), whole)
		var kept strings.Builder
		drop := rapid.SampledFrom([]string{"message_start\n", "content_block_start\n", "content_block_stop\n", "message_delta\n", ""}).Draw(rt, "drop")
		for ev := range strings.SplitAfterSeq(string(whole), "\n\n") {
			if name, _, _ := strings.Cut(ev, "data:"); drop == "" || !strings.Contains(name, drop) {
				kept.WriteString(ev)
			}
		}
		stream := kept.String()
		if drop == "" {
			stream = indexes.ReplaceAllString(stream, `"index":0`)
		}
		got, _ := streamtest.Decode(rt, newDecoder(), []byte(stream))
		a, b := streamtest.Collect(want), streamtest.Collect(got)
		require.Equal(rt, a.Answers[0].Text(), b.Answers[0].Text())
		require.Equal(rt, a.Answers[0].Reasoning(), b.Answers[0].Reasoning())
		if drop != "content_block_start\n" {
			require.Len(rt, b.Answers[0].Calls(), len(a.Answers[0].Calls()))
		}
	})
}

// TestStreamDecoderAnything checks that events of every type in any order, with valid or invalid indexes, give a
// well-formed response.
func TestStreamDecoderAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(what string, from ...string) string { return streamtest.Pick(rt, what, from...) }
		member := func(name string, values ...string) string { return streamtest.Member(rt, name, values...) }
		var stream []string
		for range rapid.IntRange(0, 20).Draw(rt, "events") {
			b := `{"type":` + pick("block", `"text"`, `"thinking"`, `"tool_use"`, `"tool_use"`, `"server_tool_use"`, `"mcp_tool_use"`, `"compaction"`, `"x_tool_result"`, `"redacted_thinking"`, `null`) +
				member("id", `"a"`, `"b"`) + member("name", `"get"`) + member("input", `{}`, `{"a":1}`, `null`, `"{}"`, `[]`) + member("text", `"a"`, `1`) + member("thinking", `"a\ud83d"`) +
				member("signature", `"S"`) + member("citations", `[{}]`, `[1]`, `null`) + `}`
			d := `{"type":` + pick("delta", `"text_delta"`, `"thinking_delta"`, `"signature_delta"`, `"input_json_delta"`, `"input_json_delta"`, `"citations_delta"`, `"compaction_delta"`, `"odd"`) +
				member("text", `"a"`, `"\ud83d"`, `"\ude00"`, `1`) + member("thinking", `"a"`) + member("signature", `"S"`) + member("partial_json", `"{"`, `"}"`, `"{}"`, `" "`, `""`, `"\ud83d"`) +
				member("citation", `{}`, `1`) + member("content", `"a"`, `null`) + member("encrypted_content", `"E"`) + `}`
			stream = append(stream, `{"type":`+pick("type",
				`"content_block_start"`, `"content_block_start"`, `"content_block_delta"`, `"content_block_delta"`, `"content_block_delta"`, `"content_block_stop"`, `"content_block_stop"`,
				`"message_delta"`, `"message_start"`, `"ping"`,
			)+member("index", `0`, `1`, `2`, `"x"`)+`,"content_block":`+b+`,"message":{"content":[`+pick("content", b, "")+`]}`+pick("which", `,"delta":`+d, `,"delta":`+d, `,"delta":{"stop_reason":"max_tokens"}`)+
				member("usage", `{"output_tokens":1}`, `1`)+`}`)
		}
		if rapid.Bool().Draw(rt, "whole") {
			stream = append(stream, stopFor(pick("end", "end_turn", "max_tokens", "tool_use")), stopped)
		}
		streamtest.CheckReuse(rt, newDecoder(), streamtest.Bare(stream...))
	})
}
