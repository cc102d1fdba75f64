// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/replay"
)

// testSigner has a small limit so that tests exceed it.
var testSigner, _ = replay.NewSigner([]byte("0123456789abcdef0123456789abcdef"), &replay.SignerOptions{MaxSealed: 24})

// expected returns the part of c that the API can express, which is the result of decoding. The differences are:
//
//   - text is valid UTF-8, and JSON is on one line; texts without content are absent;
//   - reasoning is left out with ReasoningNone, its signature is not; Seal gives it one;
//   - a call of a server-side tool, inside reasoning, or without a ToolStart is left out, and the others are numbered anew;
//   - a call has an id, the producer's or a minted one, of its flags Custom alone, and arguments: {} if there were none;
//   - an aborted call is Truncated, whatever it was, and its arguments are broken;
//   - results and opaque items are Opaque, with an id, or left out if they are no items;
//   - the finish is one of Length (ContextFull too), ContentFilter, Paused, ToolCalls, Refused, Stop; it has no sequence;
//   - of the prompt at most all is cached, of the output at most all is reasoning;
//   - there is one choice.
func expected(c *event.Collector, started map[int32]bool, o responsesanswer.Options, whole bool) (w event.Collector) {
	valid := func(b []byte) []byte { return jsonw.AppendValid(nil, b) }
	line := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte(" ")) }
	a := c.Answers[0]
	out := event.Answer{Logprobs: a.Logprobs}
	suffix := callid.Suffix(o.ID)
	var ids callid.Set
	calls, complete, opaque, refused := int32(0), 0, 0, false
	for _, b := range a.Blocks {
		b.Data = valid(b.Data)
		switch b.Kind {
		case event.Reasoning:
			hidden := o.Reasoning == responsesanswer.ReasoningNone
			if o.Seal && len(b.Data) > 0 && len(b.Signature) == 0 {
				if !hidden {
					b.Signature, b.Flags = o.Signer.AppendSigned(nil, b.Data), event.Encrypted
				} else if sealed, ok := o.Signer.AppendSealed(nil, b.Data); ok {
					b.Signature, b.Flags = sealed, event.Encrypted
				}
			}
			if hidden {
				b.Data = nil
			}
			if len(b.Data)+len(b.Signature) == 0 {
				continue
			}
		case event.Text, event.Refusal:
			for i := range b.Annotations {
				b.Annotations[i] = line(b.Annotations[i])
			}
			if len(b.Data)+len(b.Annotations) == 0 {
				continue
			}
			refused = refused || b.Kind == event.Refusal
		case event.ToolStart, event.ToolAbort:
			if !started[b.Call] {
				ids.Assign("call_", suffix, 0, "")
				continue
			}
			b.ID, _ = ids.Assign("call_", suffix, 0, b.ID)
			if b.Flags.Has(event.Server) || b.Flags.Has(event.InReasoning) && !o.DispatchInReasoning {
				continue
			}
			done := b.Kind == event.ToolStart && b.Flags.Has(event.Complete)
			b.Flags &= event.Custom
			if done {
				b.Flags |= event.Complete
				complete++
				if b.Flags == event.Complete && jsonw.IsBlank(b.Data) {
					b.Data = append(b.Data, "{}"...)
				}
			} else if whole && !b.Cut() {
				continue
			} else {
				b.Kind, b.Why = event.ToolAbort, event.Truncated
				if b.Flags == 0 {
					var j jsonw.Balance
					j.Feed(b.Data)
					b.Data = append(b.Data, j.Spoiler()...)
				}
			}
			b.Call = calls
			calls++
		case event.ToolResult, event.Opaque:
			if !jsonw.IsTyped(b.Data) {
				continue
			}
			b.Kind, b.Flags = event.Opaque, 0
			b.Data = []byte(`{"id":"item_` + suffix + "_" + strconv.Itoa(opaque) + `",` + string(line(b.Data[1:])))
			opaque++
		}
		out.Blocks = append(out.Blocks, b)
	}
	switch a.Finish {
	case event.Length, event.ContextFull:
		out.Finish = event.Length
	case event.ContentFilter, event.Paused:
		out.Finish = a.Finish
	default:
		switch {
		case complete > 0:
			out.Finish = event.ToolCalls
		case refused:
			out.Finish = event.Refused
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
		opt := responsesanswer.Options{
			ID: "resp_r", Model: "demo",
			Reasoning:           rapid.SampledFrom([]responsesanswer.Reasoning{responsesanswer.ReasoningSummary, responsesanswer.ReasoningRaw, responsesanswer.ReasoningNone}).Draw(rt, "reasoning"),
			Seal:                rapid.Bool().Draw(rt, "seal"),
			Signer:              rapid.SampledFrom([]*replay.Signer{nil, testSigner}).Draw(rt, "signer"),
			DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"),
		}
		direct := streamtest.Collect(events)
		started := streamtest.Started(events, 0)

		s := responsesanswer.NewEncoder(opt)
		decoded, errs := streamtest.Decode(rt, newDecoder(), s.Finish(s.Append(nil, events...)))
		require.Empty(rt, errs)
		got := streamtest.Collect(decoded)
		require.Empty(rt, cmp.Diff(expected(&direct, started, opt, false), got, streamtest.SameAnswer))

		body := responsesanswer.AppendResponse(nil, &direct, opt)
		decoded, err := responsesanswer.NewDecoder(nil).AppendWhole(nil, body)
		require.NoError(rt, err)
		streamtest.CheckWhole(rt, decoded)
		whole := streamtest.Collect(decoded)
		require.Empty(rt, cmp.Diff(expected(&direct, started, opt, true), whole, streamtest.SameAnswer))
	})
}

func encode(events []event.Event) []byte {
	s := responsesanswer.NewEncoder(responsesanswer.Options{ID: "resp_r", Model: "demo"})
	return s.Finish(s.Append(nil, events...))
}

func TestStreamTwice(t *testing.T) { streamtest.CheckTwice(t, encode, newDecoder) }

// The log probabilities of a stream come back in front of the text that they were sent with.
func TestStreamRoundTripLogprobs(t *testing.T) {
	in := []event.Event{
		{Kind: event.Start, Call: -1},
		{Kind: event.Logprobs, Call: -1, Data: []byte(`[{"token":"a"}]`)},
		{Kind: event.Text, Call: -1, Data: []byte("a")},
		{Kind: event.Text, Call: -1, Data: []byte("b")},
		{Kind: event.Logprobs, Call: -1, Data: []byte(`[{"token":"b"}]`)},
		{Kind: event.Usage, Call: -1, Usage: &event.Tokens{}},
		{Kind: event.Finish, Call: -1, Why: event.Stop},
	}
	s := responsesanswer.NewEncoder(responsesanswer.Options{ID: "resp_r"})
	got, _ := streamtest.Decode(t, newDecoder(), s.Finish(s.Append(nil, in...)))
	require.Empty(t, cmp.Diff(in, got))
}

func TestStreamDecoderCut(t *testing.T) { streamtest.CheckCuts(t, encode, newDecoder()) }

// Deltas may be lost, doubled or late: what the later events repeat makes up for it, and nothing comes twice.
func TestStreamDecoderLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		whole := encode(streamtest.Events(rt, 1, true))
		want, _ := streamtest.Decode(rt, newDecoder(), whole)
		var kept strings.Builder
		drop := rapid.SampledFrom([]string{".delta\n", "output_item.added\n", "output_item.done\n", ".done\n", "part.", "response.created\n"}).Draw(rt, "drop")
		for ev := range strings.SplitAfterSeq(string(whole), "\n\n") {
			name, _, _ := strings.Cut(ev, "data:")
			if !strings.Contains(name, drop) {
				kept.WriteString(ev)
			}
		}
		got, errs := streamtest.Decode(rt, newDecoder(), []byte(kept.String()))
		require.Empty(rt, errs)
		a, b := streamtest.Collect(want), streamtest.Collect(got)
		require.Equal(rt, a.Usage, b.Usage)
		require.Equal(rt, a.Answers[0].Text(), b.Answers[0].Text())
		require.Equal(rt, a.Answers[0].Reasoning(), b.Answers[0].Reasoning())
	})
}

// TestStreamDecoderAnything checks that events of every type in any order, with valid or invalid ids and indexes, give
// a well-formed response.
func TestStreamDecoderAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(what string, from ...string) string { return streamtest.Pick(rt, what, from...) }
		member := func(name string, values ...string) string { return streamtest.Member(rt, name, values...) }
		part := func() string {
			return `{"type":` + pick("part", `"output_text"`, `"refusal"`, `"reasoning_text"`, `"summary_text"`, `"odd"`) +
				member("text", `"a"`, `"ab"`, `"abc"`, `"\ud83d"`, `""`, `7`) + member("refusal", `"no"`) + member("annotations", `[{}]`, `[{},{}]`, `{}`, `[1]`) +
				member("logprobs", `[{}]`, `[{},{}]`) + `}`
		}
		item := func() string {
			return `{"type":` + pick("item", `"message"`, `"reasoning"`, `"function_call"`, `"function_call"`, `"custom_tool_call"`, `"web_search_call"`, `"shell_call_output"`, `null`) +
				member("id", `"a"`, `"b"`, `null`) + member("call_id", `"a"`, `"c"`) + member("name", `"get"`, `"put"`) + member("arguments", `"{}"`, `"{\"a\":1}"`, `"{"`, `{}`) + member("input", `"a"`, `"ab"`) +
				member("status", `"completed"`, `"incomplete"`) + member("content", `[`+part()+`]`, `[`+part()+`,`+part()+`]`, `"abc"`, `{}`) + member("summary", `[`+part()+`]`) + member("encrypted_content", `"S"`) + `}`
		}
		var stream []string
		for range rapid.IntRange(0, 20).Draw(rt, "events") {
			stream = append(stream, `{"type":"response.`+pick("type",
				"output_item.added", "output_item.added", "output_item.done", "output_item.done", "output_text.delta", "output_text.done", "reasoning_text.delta", "reasoning_text.done",
				"reasoning_summary_text.delta", "reasoning_summary_text.done", "refusal.delta", "refusal.done", "function_call_arguments.delta", "function_call_arguments.done",
				"custom_tool_call_input.delta", "custom_tool_call_input.done", "content_part.done", "reasoning_summary_part.done", "output_text.annotation.added", "created",
			)+`"`+member("item_id", `"a"`, `"b"`, `"c"`)+member("output_index", `0`, `1`, `-1`, `"x"`)+member("content_index", `0`, `1`)+member("summary_index", `0`, `1`)+
				member("delta", `"a"`, `"{}"`, `"\ud83d"`, `"\ude00"`, `1`)+member("text", `"a"`, `"ab"`, `"😀"`)+member("refusal", `"a"`)+member("arguments", `"{}"`, `"{\"a\":1}"`)+member("input", `"ab"`)+
				member("name", `"get"`)+member("logprobs", `[{}]`)+member("annotation", `{}`, `1`)+member("part", part())+member("item", item())+`}`)
		}
		if rapid.Bool().Draw(rt, "whole") {
			stream = append(stream, last(pick("end", "completed", "incomplete", "failed"), member("output", `[`+item()+`]`, `[`+item()+`,`+item()+`]`)))
		}
		streamtest.CheckReuse(rt, newDecoder(), streamtest.Bare(stream...))
	})
}
