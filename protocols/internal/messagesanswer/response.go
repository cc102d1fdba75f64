// SPDX-License-Identifier: Apache-2.0

package messagesanswer

import (
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/replay"
)

// AppendResponse appends a message that is not streamed. The response must have finished and c.Err must be None. The
// message has the same content and IDs as the stream of an [Encoder] for the same events. Only the first choice is used.
// Arguments that are not a JSON object, mainly free text of custom tools, and arguments of an aborted call become
// {"input":"…"}.
func AppendResponse(dst []byte, c *event.Collector, opt Options) []byte {
	var none event.Answer
	a := &none
	if len(c.Answers) > 0 {
		a = &c.Answers[0]
	}
	dst = append(dst, `{"id":`...)
	dst = jsonw.AppendString(dst, opt.ID)
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	dst = jsonw.AppendString(dst, opt.Model)
	dst = append(dst, `,"content":[`...)

	w := outWhole{opt: &opt, suffix: callid.Suffix(opt.ID)}
	for i := range a.Blocks {
		n := len(dst)
		if n > 0 && dst[n-1] != '[' {
			dst = append(dst, ',')
		}
		m := len(dst)
		if dst = w.appendBlock(dst, &a.Blocks[i]); len(dst) == m {
			dst = dst[:n]
		}
	}

	dst = append(dst, `],"stop_reason":"`...)
	reason := stopReason(a.Finish, w.calls > 0, w.refused)
	dst = append(dst, reason...)
	dst = append(dst, `","stop_sequence":`...)
	dst = appendStopSequence(dst, reason, a.Stop)
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, &c.Usage)
	return append(dst, '}')
}

// outWhole is the state of AppendResponse.
type outWhole struct {
	opt     *Options
	suffix  string
	ids     callid.Set
	sign    *replay.TokenWriter // nil before the first reasoning
	calls   int
	refused bool
}

// appendBlock appends b as a content block, or nothing if it is not sent.
func (w *outWhole) appendBlock(dst []byte, b *event.Block) []byte {
	switch b.Kind {
	case event.Reasoning:
		if w.opt.Thinking == ThinkingNone || len(b.Data) == 0 && len(b.Signature) == 0 {
			return dst
		}
		dst = append(dst, `{"type":"thinking","thinking":`...)
		if w.opt.Thinking == ThinkingOmitted {
			dst = append(dst, `""`...)
		} else {
			dst = jsonw.AppendString(dst, b.Data)
		}
		if len(b.Signature) == 0 {
			w.sign = w.opt.sign(w.sign, b)
		}
		dst = append(dst, `,"signature":`...)
		dst = jsonw.AppendString(dst, appendSignature(nil, b.Signature, b.Flags, w.sign))
		return append(dst, '}')
	case event.Text, event.Refusal:
		w.refused = w.refused || b.Kind == event.Refusal && len(b.Data) > 0
		cited := false
		for _, c := range b.Annotations {
			cited = cited || jsonw.IsObject(c)
		}
		if len(b.Data) == 0 && !cited {
			return dst
		}
		dst = append(dst, `{"type":"text","text":`...)
		dst = jsonw.AppendString(dst, b.Data)
		if cited {
			dst = append(dst, `,"citations":[`...)
			for _, c := range b.Annotations {
				if jsonw.IsObject(c) {
					if dst[len(dst)-1] != '[' {
						dst = append(dst, ',')
					}
					dst = jsonw.AppendRaw(dst, c)
				}
			}
			dst = append(dst, ']')
		}
		return append(dst, '}')
	case event.ToolStart, event.ToolAbort:
		return w.appendCall(dst, b)
	case event.ToolResult, event.Opaque:
		if jsonw.IsTyped(b.Data) {
			return jsonw.AppendRaw(dst, b.Data)
		}
	}
	return dst
}

func (w *outWhole) appendCall(dst []byte, b *event.Block) []byte {
	c := outCall{server: b.Flags.Has(event.Server), name: b.Name}
	c.id = assignCallID(&w.ids, w.suffix, b.Flags, b.ID)
	cut := b.Cut()
	if cut && w.opt.WholeCalls || !cut && !b.Flags.Has(event.Complete) || w.opt.left(b.Flags) {
		return dst
	}
	if !c.server && !cut {
		w.calls++
	}
	dst = appendToolUseHead(dst, &c)
	switch {
	case cut: // the API requires an object, and clients may execute the call regardless of the stop_reason
	case b.Flags.Has(event.Custom):
	case jsonw.IsBlank(b.Data):
		return append(dst, "{}}"...)
	case jsonw.IsObject(b.Data):
		return append(jsonw.AppendRaw(dst, jsonw.Paired(b.Data)), '}')
	}
	dst = append(dst, `{"input":`...)
	dst = jsonw.AppendString(dst, b.Data)
	return append(dst, "}}"...)
}
