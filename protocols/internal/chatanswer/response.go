// SPDX-License-Identifier: Apache-2.0

package chatanswer

import (
	"slices"
	"strconv"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/chunkw"
	"github.com/weft-go/weft/protocols/internal/jsonw"
)

// AppendResponse appends a response that is not streamed. Every choice of c must have finished and c.Err must be None.
// The response has the same content and IDs as the stream of an [Encoder] for the same events. Options that concern
// chunks have no effect.
func AppendResponse(dst []byte, c *event.Collector, opt Options) []byte {
	suffix := callid.Suffix(opt.ID)
	head := opt.head("chat.completion")
	dst = head.Append(dst)
	for i := range c.Answers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, `,"message":`...)
		dst = appendMessage(dst, &c.Answers[i], int32(i), &opt, suffix)
	}
	dst = append(dst, `],"usage":`...)
	dst = chunkw.AppendUsage(dst, &c.Usage)
	return append(dst, '}')
}

// appendMessage appends the message of a choice and the fields of the choice that follow it.
func appendMessage(dst []byte, a *event.Answer, choice int32, opt *Options, suffix string) []byte {
	calls := wireCalls(a, choice, opt, suffix)
	complete := slices.ContainsFunc(calls, func(c wireCall) bool { return !c.Cut() })
	refused := slices.ContainsFunc(a.Blocks, func(b event.Block) bool { return b.Kind == event.Refusal && len(b.Data) > 0 })
	has := func(k event.Kind) bool {
		return slices.ContainsFunc(a.Blocks, func(b event.Block) bool { return b.Kind == k && len(b.Data) > 0 })
	}

	dst = append(dst, `{"role":"assistant","content":`...)
	if !has(event.Text) && (len(calls) > 0 || refused) {
		dst = append(dst, "null"...)
	} else {
		dst = appendJoined(dst, a, event.Text)
	}
	dst = append(dst, `,"refusal":`...)
	if refused {
		dst = appendJoined(dst, a, event.Refusal)
	} else {
		dst = append(dst, "null"...)
	}
	if has(event.Reasoning) {
		if opt.Reasoning == ReasoningContent || opt.Reasoning == ReasoningBoth {
			dst = append(dst, `,"reasoning_content":`...)
			dst = appendJoined(dst, a, event.Reasoning)
		}
		if opt.Reasoning == ReasoningPlain || opt.Reasoning == ReasoningBoth {
			dst = append(dst, `,"reasoning":`...)
			dst = appendJoined(dst, a, event.Reasoning)
		}
	}
	if opt.detailed() {
		dst = appendAnswerDetails(dst, a, calls, opt, suffix, choice)
	}
	dst = appendAnnotations(dst, a)
	switch {
	case len(calls) > 0 && opt.Functions:
		dst = appendFunctionHead(append(dst, ','), calls[0].Name)
		dst = appendArgs(dst, &calls[0], false, false)
		dst = append(dst, `"}`...)
	case len(calls) > 0:
		dst = append(dst, `,"tool_calls":[`...)
		for i := range calls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '{')
			b := &calls[i]
			wrapped := opt.wrapped(b.Flags, b.Name)
			custom := wrapped || b.Flags.Has(event.Custom)
			dst = appendCallHead(dst, b.id, b.Name, custom)
			dst = appendArgs(dst, b, wrapped, custom)
			dst = append(dst, `"}}`...)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `},"logprobs":`...)
	dst = appendLogprobs(dst, a)
	dst = append(dst, `,"finish_reason":"`...)
	dst = append(dst, opt.finishReason(a.Finish, complete, refused)...)
	return append(dst, `"}`...)
}

// appendArgs appends the contents of the string of a call's arguments.
func appendArgs(dst []byte, c *wireCall, wrapped, custom bool) []byte {
	if c.Cut() {
		return jsonw.AppendLoose(dst, cutArgs(c.Data, wrapped, custom))
	}
	return jsonw.AppendLoose(dst, sentArgs(c.Data, wrapped, custom))
}

// wireCall is a call in the form in which it is sent.
type wireCall struct {
	*event.Block
	id string
}

// wireCalls returns the calls of a that are sent, complete or not, with the same IDs as in a stream.
func wireCalls(a *event.Answer, choice int32, opt *Options, suffix string) (calls []wireCall) {
	var ids callid.Set
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if b.Kind != event.ToolStart && b.Kind != event.ToolAbort {
			continue
		}
		id, _ := ids.Assign("call_", suffix, choice, b.ID)
		if (b.Cut() && !opt.WholeCalls || b.Flags.Has(event.Complete)) && !opt.left(b.Flags) {
			calls = append(calls, wireCall{b, id})
			if opt.Functions {
				break
			}
		}
	}
	return calls
}

// appendJoined appends the blocks of one kind as one string. Runs of reasoning are joined by line ends, as in
// requests.
func appendJoined(dst []byte, a *event.Answer, k event.Kind) []byte {
	dst = append(dst, '"')
	first := len(dst)
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == k && len(b.Data) > 0 {
			if k == event.Reasoning && len(dst) > first {
				dst = append(dst, `\n`...)
			}
			dst = jsonw.AppendLoose(dst, b.Data)
		}
	}
	return append(dst, '"')
}

func appendAnnotations(dst []byte, a *event.Answer) []byte {
	open := false
	for i := range a.Blocks {
		for _, n := range a.Blocks[i].Annotations {
			if !jsonw.IsObject(n) {
				continue
			}
			if !open {
				dst = append(dst, `,"annotations":[`...)
				open = true
			} else {
				dst = append(dst, ',')
			}
			dst = jsonw.AppendRaw(dst, n)
		}
	}
	if open {
		dst = append(dst, ']')
	}
	return dst
}

func appendLogprobs(dst []byte, a *event.Answer) []byte {
	if !slices.ContainsFunc(a.Logprobs, jsonw.IsArray) {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"content":[`...)
	for _, l := range a.Logprobs {
		if jsonw.IsArray(l) {
			dst = jsonw.AppendElements(dst, l)
		}
	}
	return append(dst, `],"refusal":null}`...)
}
