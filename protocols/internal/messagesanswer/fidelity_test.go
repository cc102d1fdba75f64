// SPDX-License-Identifier: Apache-2.0

package messagesanswer_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// TestFidelity has a row for every deviation of a stream that was tested with clients of this API, in the order and
// mostly in the words of that table. It checks that our streams have none of the deviations.
func TestFidelity(t *testing.T) {
	encoder := func(name string, opt messagesanswer.Options) streamtest.Encoder {
		opt.ID, opt.Model = "msg_1", "demo"
		return streamtest.Encoder{Name: name, Encode: func(events []event.Event) []byte {
			s := messagesanswer.NewEncoder(opt)
			return streamtest.Serve(s, events, true)
		}}
	}
	t.Run("all rows", func(t *testing.T) { streamtest.Complete(t, "/v1/messages stream", fidelity) })
	streamtest.Fidelity(t, fidelity,
		encoder("default", messagesanswer.Options{}),
		encoder("whole calls", messagesanswer.Options{WholeCalls: true}),
		encoder("calls in reasoning", messagesanswer.Options{DispatchInReasoning: true}),
	)
}

var (
	is     = streamtest.OfType
	starts = is("content_block_start")
	deltas = is("content_block_delta")
	stops  = is("content_block_stop")
	ends   = is("message_delta")
)

const gateway = "examples/gateway/serve: TestFidelity"

var fidelity = []streamtest.Row{
	{
		Name: "no event: lines",
		Check: streamtest.Each(func(_ int, f *streamtest.Frame) string {
			return streamtest.Unless(f.Type != "" && f.Type == f.Str("type"), "no event line")
		}),
		Mutate: func(fs []streamtest.Frame) []streamtest.Frame {
			for i := range fs {
				fs[i].Type = ""
			}
			return fs
		},
	},
	{
		Name: "no message_start",
		Check: streamtest.Each(func(i int, f *streamtest.Frame) string {
			return streamtest.Unless((f.Type == "message_start") == (i == 0) || i == 0 && f.Type == "error", "the message does not start here")
		}),
		Mutate: func(fs []streamtest.Frame) []streamtest.Frame {
			if len(fs) == 2 && fs[1].Type == "error" {
				return fs // the rest is valid: only an error
			}
			return streamtest.Drop(is("message_start"))(fs)
		},
	},
	{
		Name:   "message_start without usage",
		Check:  streamtest.On("message_start", func(f *streamtest.Frame) string { return usageAt(f, "message", "usage") }),
		Mutate: streamtest.Change(is("message_start"), func(o obj) { delete(o["message"].(obj), "usage") }),
	},
	{
		Name:   "message_delta without usage",
		Check:  streamtest.On("message_delta", func(f *streamtest.Frame) string { return usageAt(f, "usage") }),
		Mutate: streamtest.Change(ends, func(o obj) { delete(o["usage"].(obj), "output_tokens") }),
	},
	{
		Name: "no message_delta",
		Check: func(s *streamtest.Stream) error {
			n := streamtest.Count(s, ends)
			if s.Last().Type == "error" {
				return streamtest.Want(n == 0, "an end before an error")
			}
			i := slices.IndexFunc(s.Frames, func(f streamtest.Frame) bool { return f.Type == "message_delta" })
			return streamtest.Want(n == 1 && i == len(s.Frames)-2 && s.Frames[i].Str("delta", "stop_reason") != "", "no stop reason before the end")
		},
		Mutate: streamtest.Drop(ends),
	},
	{
		Name: "no message_stop",
		Check: func(s *streamtest.Stream) error {
			want := 1
			if s.Last().Type == "error" {
				want = 0
			}
			return streamtest.Want(streamtest.Count(s, is("message_stop")) == want && (want == 0 || s.Last().Type == "message_stop"), "it must be there once, at the end")
		},
		Mutate: streamtest.Drop(is("message_stop")),
	},
	{
		Name: "stop_reason end_turn with tool_use",
		Check: func(s *streamtest.Stream) error {
			readable := 0
			for _, b := range seenBlocks(s) {
				if b.typ == "tool_use" && json.Valid([]byte(b.argsOr("{}"))) {
					readable++
				}
			}
			for i := range s.Frames {
				switch f := &s.Frames[i]; f.Str("delta", "stop_reason") {
				case "end_turn", "stop_sequence":
					if readable > 0 {
						return streamtest.Fail(i, f, "there are calls to run")
					}
				case "tool_use":
					if readable == 0 {
						return streamtest.Fail(i, f, "there are no calls to run")
					}
				}
			}
			return nil
		},
		Mutate: streamtest.Change(func(f *streamtest.Frame) bool { return f.Str("delta", "stop_reason") == "tool_use" },
			func(o obj) { o["delta"].(obj)["stop_reason"] = "end_turn" }),
	},
	{
		Name: "delta index wrong",
		Check: inBlocks(func(b *blockSeen, f *streamtest.Frame) string {
			return streamtest.Unless(f.Type != "content_block_delta" || b != nil && f.Int("index") == b.index, "a delta for a block that is not open")
		}),
		Mutate: streamtest.Change(deltas, func(o obj) { o["index"] = o["index"].(float64) + 1 }),
	},
	{
		Name:   "index gap",
		Check:  func(s *streamtest.Stream) error { return dense(s) },
		Mutate: streamtest.Change(is("content_block_start", "content_block_delta", "content_block_stop"), func(o obj) { o["index"] = 2*o["index"].(float64) + 1 }),
	},
	{
		Name:   "all index 0",
		Check:  func(s *streamtest.Stream) error { return dense(s) },
		Mutate: streamtest.Change(func(f *streamtest.Frame) bool { return f.Int("index") > 0 }, func(o obj) { o["index"] = 0.0 }),
	},
	{
		Name: "no content_block_start",
		Check: inBlocks(func(b *blockSeen, f *streamtest.Frame) string {
			return streamtest.Unless(!deltas(f) && !stops(f) || b != nil, "no block is open")
		}),
		Mutate: streamtest.Drop(starts),
	},
	{
		Name: "no content_block_stop",
		Check: inBlocks(func(b *blockSeen, f *streamtest.Frame) string {
			return streamtest.Unless(!starts(f) && !ends(f) || b == nil, "the block before is still open")
		}),
		Mutate: func(fs []streamtest.Frame) []streamtest.Frame {
			if fs[len(fs)-1].Type == "error" {
				return fs // an error may occur in the middle of a block
			}
			return streamtest.Drop(stops)(fs)
		},
	},
	{
		Name: "tool input only in content_block_start",
		Check: func(s *streamtest.Stream) error {
			for i, b := range seenBlocks(s) {
				if strings.HasSuffix(b.typ, "tool_use") && len(b.start["input"].(obj)) > 0 {
					return errors.New("the start of block " + string(rune('0'+i)) + " has input")
				}
			}
			return nil
		},
		Mutate: moved("input_json_delta", "partial_json", "input", func(s string) any {
			var v any
			_ = json.Unmarshal([]byte(s), &v)
			return v
		}),
	},
	{
		Name: "text only in content_block_start",
		Check: streamtest.On("content_block_start", func(f *streamtest.Frame) string {
			return streamtest.Unless(f.Str("content_block", "text")+f.Str("content_block", "thinking") == "", "text in the start of a block")
		}),
		Mutate: moved("text_delta", "text", "text", func(s string) any { return s }),
	},
	{
		// All clients accept these. Our streams have only keep-alives and arguments in one piece.
		Name: "args in one delta / empty first delta / CRLF / : comments / extra [DONE] / no ping / unknown event or delta type",
		Check: func(s *streamtest.Stream) error {
			if strings.ContainsRune(string(s.Raw), '\r') {
				return errors.New("a carriage return")
			}
			known := []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error"}
			kinds := []string{"text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta"}
			return streamtest.Each(func(_ int, f *streamtest.Frame) string {
				return streamtest.Unless(slices.Contains(known, f.Type) && (!deltas(f) || slices.Contains(kinds, f.Str("delta", "type"))), "an event of another API")
			})(s)
		},
		Mutate: func(fs []streamtest.Frame) []streamtest.Frame { return append(fs, streamtest.Frame{Data: "[DONE]"}) },
	},
	{
		Name: "thinking without signature",
		Check: func(s *streamtest.Stream) error {
			for _, b := range seenBlocks(s) {
				if b.typ == "thinking" && b.closed && (b.signatures != 1 || b.last != "signature_delta") {
					return errors.New("reasoning that is not signed once, at its end")
				}
			}
			return nil
		},
		Mutate: streamtest.Drop(func(f *streamtest.Frame) bool { return f.Str("delta", "type") == "signature_delta" }),
	},
	{
		// No client requires the prefix. Anthropic's servers require these characters in the ids that clients return.
		Name: "tool ids not toolu_…",
		Check: func(s *streamtest.Stream) error {
			for _, b := range seenBlocks(s) {
				if id, _ := b.start["id"].(string); strings.HasSuffix(b.typ, "tool_use") && !legalID.MatchString(id) {
					return errors.New("an id that Anthropic forbids: " + id)
				}
			}
			return nil
		},
		Mutate: streamtest.Change(func(f *streamtest.Frame) bool { return f.Str("content_block", "id") != "" },
			func(o obj) { o["content_block"].(obj)["id"] = "functions.get:0" }),
	},
	{Name: "same tool id reused in later turns", Elsewhere: "examples/gateway/serve: TestCallIDs"},
	{
		// Here: within one message.
		Name: "no tool id",
		Check: func(s *streamtest.Stream) error {
			seen := map[string]bool{"": true}
			for _, b := range seenBlocks(s) {
				if id, _ := b.start["id"].(string); strings.HasSuffix(b.typ, "tool_use") {
					if seen[id] {
						return errors.New("no id, or one that another call has: " + id)
					}
					seen[id] = true
				}
			}
			return nil
		},
		Mutate: streamtest.Change(func(f *streamtest.Frame) bool { return f.Str("content_block", "id") != "" },
			func(o obj) { delete(o["content_block"].(obj), "id") }),
	},
	{Name: "JSON body to stream:true", Elsewhere: gateway},
	{
		// All clients fail, as intended: it is sent if and only if the engine failed.
		Name: "error event mid-stream",
		Check: func(s *streamtest.Stream) error {
			failed := s.Failed(true)
			if n := streamtest.Count(s, is("error")); n > 1 || n == 1 != failed || failed != (s.Last().Type == "error") {
				return errors.New("an error event must tell of a failure, and end the stream")
			}
			f := s.Last()
			return streamtest.Want(!failed || f.Str("error", "type") != "" && f.Str("error", "message") != "", "an error without type or message")
		},
		Mutate: func(fs []streamtest.Frame) []streamtest.Frame {
			e := streamtest.Frame{Type: "error", Data: `{"type":"error","error":{"type":"api_error","message":"x"}}`}
			return slices.Insert(fs, len(fs)-1, e)
		},
	},
	{
		Name: "cut without end",
		Check: func(s *streamtest.Stream) error {
			return streamtest.Want(s.Last().Type == "message_stop" || s.Last().Type == "error", "the stream just ends")
		},
		Mutate: func(fs []streamtest.Frame) []streamtest.Frame { return fs[:len(fs)-1] },
	},
	{
		// All clients accept these. The input is never null; for count_tokens see the gateway.
		Name: "other model name in answer; count_tokens 404; input null",
		Check: func(s *streamtest.Stream) error {
			return streamtest.Each(func(_ int, f *streamtest.Frame) string {
				_, object := f.At("content_block", "input").(obj)
				tool := strings.HasSuffix(f.Str("content_block", "type"), "tool_use")
				return streamtest.Unless((f.Type != "message_start" || f.Str("message", "model") == "demo") && object == tool, "another model, or input that is no object")
			})(s)
		},
		Mutate: streamtest.Change(is("message_start"), func(o obj) { o["message"].(obj)["model"] = "other" }),
	},
}

type obj = map[string]any

var legalID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// usageAt returns a complaint if a client cannot add up the usage.
func usageAt(f *streamtest.Frame, path ...any) string {
	for _, key := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"} {
		if f.Int(append(path, key)...) < 0 {
			return "no " + key
		}
	}
	return ""
}

// dense checks that blocks are numbered from 0 without gaps, and that the events of a block have its index.
func dense(s *streamtest.Stream) error {
	next := 0
	return streamtest.Each(func(_ int, f *streamtest.Frame) string {
		if starts(f) {
			next++
		}
		return streamtest.Unless(f.At("index") == nil || f.Int("index") == next-1, "not the number that is due")
	})(s)
}

// blockSeen is a content block as a client collects it.
type blockSeen struct {
	index      int
	typ        string
	start      obj
	args, last string // JSON text of the input, type of the last delta
	signatures int
	closed     bool
}

func (b *blockSeen) argsOr(none string) string {
	if b.args == "" {
		return none
	}
	return b.args
}

// inBlocks returns a check of a stream that calls check for every frame, with the block that is open before it, or nil.
func inBlocks(check func(b *blockSeen, f *streamtest.Frame) string) func(*streamtest.Stream) error {
	return func(s *streamtest.Stream) error {
		var open *blockSeen
		return streamtest.Each(func(_ int, f *streamtest.Frame) string {
			bad := check(open, f)
			switch f.Type {
			case "content_block_start":
				open = &blockSeen{index: f.Int("index")}
			case "content_block_stop":
				open = nil
			}
			return bad
		})(s)
	}
}

func seenBlocks(s *streamtest.Stream) (out []*blockSeen) {
	for i := range s.Frames {
		f := &s.Frames[i]
		if starts(f) {
			start, _ := f.At("content_block").(obj)
			out = append(out, &blockSeen{index: f.Int("index"), typ: f.Str("content_block", "type"), start: start})
		}
		if len(out) == 0 {
			continue
		}
		b := out[len(out)-1]
		switch f.Type {
		case "content_block_delta":
			b.args += f.Str("delta", "partial_json")
			if b.last = f.Str("delta", "type"); b.last == "signature_delta" && f.Str("delta", "signature") != "" {
				b.signatures++
			}
		case "content_block_stop":
			b.closed = true
		}
	}
	return out
}

// moved returns a mutation that moves the contents of the deltas of a type to the starts of their blocks, if a block
// was ended and is not empty.
func moved(typ, field, to string, as func(string) any) func([]streamtest.Frame) []streamtest.Frame {
	return func(fs []streamtest.Frame) []streamtest.Frame {
		start, input := -1, ""
		for i := 0; i < len(fs); i++ {
			switch f := &fs[i]; {
			case f.Str("delta", "type") == typ:
				input += f.Str("delta", field)
			case starts(f):
				start, input = i, ""
			case stops(f) && strings.Trim(input, "{} ") != "" && as(input) != nil:
				fs[start].Edit(func(o obj) { o["content_block"].(obj)[to] = as(input) })
				fs, i = slices.Delete(fs, start+1, i), start+1
			}
		}
		return fs
	}
}
