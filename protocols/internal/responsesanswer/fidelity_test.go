// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// TestFidelity has a row for every deviation of a stream that was tested with clients of this API, in the order and
// mostly in the words of that table. It checks that our streams have none of the deviations.
func TestFidelity(t *testing.T) {
	encoder := func(name string, opt responsesanswer.Options) streamtest.Encoder {
		opt.ID, opt.Model, opt.Created, opt.CompletedAt = "resp_1", "demo", 1700000000, 1700000005
		return streamtest.Encoder{Name: name, Encode: func(events []event.Event) []byte {
			s := responsesanswer.NewEncoder(opt)
			return streamtest.Serve(s, events, true)
		}}
	}
	t.Run("all rows", func(t *testing.T) { streamtest.Complete(t, "/v1/responses stream", fidelity) })
	streamtest.Fidelity(t, fidelity,
		encoder("sealed", responsesanswer.Options{Seal: true}),
		encoder("whole calls", responsesanswer.Options{Seal: true, WholeCalls: true}),
		encoder("calls in reasoning", responsesanswer.Options{Seal: true, DispatchInReasoning: true}),
	)
}

type frame = streamtest.Frame

var (
	is       = streamtest.OfType
	terminal = is("response.completed", "response.incomplete", "response.failed")
	whole    = is("response.completed", "response.incomplete")
	added    = is("response.output_item.added")
	done     = is("response.output_item.done")
)

// delta matches the events that have a piece of text or arguments.
func delta(f *frame) bool { return strings.HasSuffix(f.Type, ".delta") }

// known are the event types of the API that we send. Clients throw at others.
var known = []string{
	"response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed",
	"response.output_item.added", "response.output_item.done",
	"response.content_part.added", "response.content_part.done", "response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
	"response.output_text.delta", "response.output_text.done", "response.output_text.annotation.added",
	"response.refusal.delta", "response.refusal.done", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
	"response.function_call_arguments.delta", "response.function_call_arguments.done",
	"response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
}

// itemSeen is an output item as a client collects it.
type itemSeen struct {
	added, done   *frame // nil if they did not come
	deltas, final string // text of the deltas, text of the done event
	parts         int    // begun
	early         bool   // a delta came before its part
}

func (it *itemSeen) typ() string { return it.added.Str("item", "type") }

// doneText returns the text of the done item.
func (it *itemSeen) doneText() string {
	item := it.done.At("item")
	for _, path := range [][]any{{"arguments"}, {"input"}, {"content", 0, "text"}, {"content", 0, "refusal"}, {"summary", 0, "text"}} {
		if s, ok := streamtest.At(item, path...).(string); ok {
			return s
		}
	}
	return ""
}

// items returns what was sent of the items, by output index. An event for an index that is not open is an error.
func items(s *streamtest.Stream) (out []*itemSeen, err error) {
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.At("output_index") == nil {
			continue
		}
		n := f.Int("output_index")
		if added(f) {
			if n != len(out) {
				return out, streamtest.Fail(i, f, "index %d is due", len(out))
			}
			out = append(out, &itemSeen{added: f})
			continue
		}
		if n < 0 || n >= len(out) || out[n].done != nil {
			return out, streamtest.Fail(i, f, "no such item is open")
		}
		switch it := out[n]; {
		case done(f):
			it.done = f
		case delta(f):
			it.deltas += f.Str("delta")
			it.early = it.early || it.parts == 0
		case strings.HasSuffix(f.Type, "_part.added"):
			it.parts++
		case strings.HasSuffix(f.Type, ".done") && !strings.Contains(f.Type, "_part"):
			it.final = f.Str("text") + f.Str("refusal") + f.Str("arguments") + f.Str("input")
		}
	}
	return out, nil
}

// onItems makes a check of one that looks at every item.
func onItems(check func(it *itemSeen) string) func(*streamtest.Stream) error {
	return func(s *streamtest.Stream) error {
		list, err := items(s)
		for i, it := range list {
			if err == nil {
				if bad := check(it); bad != "" {
					err = fmt.Errorf("item %d: %s", i, bad)
				}
			}
		}
		return err
	}
}

func isCall(typ string) bool { return typ == "function_call" || typ == "custom_tool_call" }

// ended returns a mutation that leaves streams alone that failed: there the items may be incomplete.
func ended(mutate func([]frame) []frame) func([]frame) []frame {
	return func(fs []frame) []frame {
		if fs[len(fs)-1].Type == "response.failed" {
			return fs
		}
		return mutate(fs)
	}
}

func response(o obj) obj { return o["response"].(obj) }

var fidelity = []streamtest.Row{
	{
		Name: "no response.completed / cut",
		Check: func(s *streamtest.Stream) error {
			return streamtest.Want(streamtest.Count(s, terminal) == 1 && terminal(s.Last()), "the end must be there once, last")
		},
		Mutate: streamtest.Drop(terminal),
	},
	{
		Name: "completed without id",
		Check: streamtest.Each(func(_ int, f *frame) string {
			return streamtest.Unless(f.At("response") == nil || f.Str("response", "id") == "resp_1", "a response without its id")
		}),
		Mutate: streamtest.Change(terminal, func(o obj) { delete(response(o), "id") }),
	},
	{
		Name: "completed with empty output",
		Check: func(s *streamtest.Stream) error {
			list, err := items(s)
			if err != nil || !whole(s.Last()) {
				return err
			}
			output, ok := s.Last().At("response", "output").([]any)
			if !ok || len(output) != len(list) {
				return fmt.Errorf("%d items of %d", len(output), len(list))
			}
			for i, it := range list {
				want, _ := json.Marshal(it.done.At("item"))
				if got, _ := json.Marshal(output[i]); string(got) != string(want) {
					return fmt.Errorf("item %d is %s, was %s", i, got, want)
				}
			}
			return nil
		},
		Mutate: streamtest.Change(func(f *frame) bool { return whole(f) && f.At("response", "output", 0) != nil }, func(o obj) { response(o)["output"] = []any{} }),
	},
	{
		Name: "completed without usage / partial usage",
		Check: streamtest.Each(func(_ int, f *frame) string {
			for _, path := range [][]any{{"input_tokens"}, {"output_tokens"}, {"total_tokens"}, {"input_tokens_details", "cached_tokens"}, {"output_tokens_details", "reasoning_tokens"}} {
				if whole(f) && f.Int(append([]any{"response", "usage"}, path...)...) < 0 {
					return fmt.Sprint("no ", path)
				}
			}
			return ""
		}),
		Mutate: streamtest.Change(whole, func(o obj) { delete(response(o)["usage"].(obj), "total_tokens") }),
	},
	{
		Name: "no response.created",
		Check: streamtest.Each(func(i int, f *frame) string {
			return streamtest.Unless((f.Type == "response.created") == (i == 0) && (f.Type == "response.in_progress") == (i == 1), "created and in_progress come first, once")
		}),
		Mutate: streamtest.Drop(is("response.created")),
	},
	{
		Name:   "no output_item.added",
		Check:  onItems(func(*itemSeen) string { return "" }),
		Mutate: streamtest.Drop(added),
	},
	{
		Name: "no output_item.done",
		Check: func(s *streamtest.Stream) error {
			return onItems(func(it *itemSeen) string {
				return streamtest.Unless(it.done != nil || !whole(s.Last()), "it is never done")
			})(s)
		},
		Mutate: ended(streamtest.Drop(done)),
	},
	{
		Name: "arguments only in deltas (item.done empty)",
		Check: func(s *streamtest.Stream) error {
			unreadable := 0
			err := onItems(func(it *itemSeen) string {
				if it.done == nil || !isCall(it.typ()) {
					return ""
				}
				if it.typ() == "function_call" && !json.Valid([]byte(it.doneText())) {
					unreadable++
				}
				return streamtest.Unless(it.doneText() == it.deltas, "the text of the done item differs from its deltas")
			})(s)
			if err == nil && unreadable > s.Unreadable(0) {
				err = errors.New("a whole call that cannot be read")
			}
			return err
		},
		Mutate: streamtest.Change(func(f *frame) bool { return done(f) && f.Str("item", "arguments") != "" }, func(o obj) { o["item"].(obj)["arguments"] = "" }),
	},
	{
		Name: "no arguments deltas, no text deltas",
		Check: onItems(func(it *itemSeen) string {
			return streamtest.Unless(it.done == nil || it.deltas == it.doneText() && it.deltas == it.final || it.typ() == "x_thing", "the deltas do not make up the item")
		}),
		Mutate: ended(streamtest.Drop(delta)),
	},
	{
		Name: "no content_part.added",
		Check: onItems(func(it *itemSeen) string {
			return streamtest.Unless(isCall(it.typ()) || !it.early && it.parts <= 1, "text before its part")
		}),
		Mutate: streamtest.Drop(is("response.content_part.added", "response.reasoning_summary_part.added")),
	},
	{
		Name:   "wrong output_index",
		Check:  onItems(func(*itemSeen) string { return "" }),
		Mutate: streamtest.Change(func(f *frame) bool { return f.At("output_index") != nil }, func(o obj) { o["output_index"] = o["output_index"].(float64) + 1 }),
	},
	{
		Name: "item ids missing / not matching",
		Check: func(s *streamtest.Stream) error {
			list, err := items(s)
			if err != nil {
				return err
			}
			ids := map[string]bool{"": true}
			for _, it := range list {
				id := it.added.Str("item", "id")
				if ids[id] || it.done != nil && it.done.Str("item", "id") != id {
					return errors.New("no id, another item's, or another in the end: " + id)
				}
				ids[id] = true
			}
			return streamtest.Each(func(_ int, f *frame) string {
				named := !added(f) && !done(f) && f.At("output_index") != nil
				return streamtest.Unless(!named || f.Str("item_id") == list[f.Int("output_index")].added.Str("item", "id"), "not the id of its item")
			})(s)
		},
		Mutate: streamtest.Change(delta, func(o obj) { o["item_id"] = "other" }),
	},
	{
		// A call_id must also be unique in a response.
		Name: "no call_id",
		Check: func(s *streamtest.Stream) error {
			ids := map[string]bool{"": true}
			return onItems(func(it *itemSeen) string {
				if !isCall(it.typ()) {
					return ""
				}
				id := it.added.Str("item", "call_id")
				if ids[id] || id == it.added.Str("item", "id") || it.done != nil && it.done.Str("item", "call_id") != id {
					return "no call_id, another call's, the item's own, or another in the end: " + id
				}
				ids[id] = true
				return ""
			})(s)
		},
		Mutate: streamtest.Change(func(f *frame) bool { return f.Str("item", "call_id") != "" }, func(o obj) { delete(o["item"].(obj), "call_id") }),
	},
	{
		Name: "unknown event type",
		Check: streamtest.Each(func(_ int, f *frame) string {
			return streamtest.Unless(slices.Contains(known, f.Type), "an event that clients do not know")
		}),
		Mutate: func(fs []frame) []frame {
			return slices.Insert(fs, len(fs)-1, frame{Type: "response.tool_call_dispatch", Data: `{"type":"response.tool_call_dispatch"}`})
		},
	},
	{
		// All clients accept these.
		Name: "no sequence_number, no event: lines, extra [DONE], reasoning_text instead of summary, reasoning without summary/encrypted_content",
		Check: func(s *streamtest.Stream) error {
			for i := range s.Frames {
				if f := &s.Frames[i]; f.Type == "" || f.Type != f.Str("type") || f.Int("sequence_number") != i {
					return streamtest.Fail(i, f, "no event line, or not its number")
				}
			}
			return onItems(func(it *itemSeen) string {
				if it.typ() != "reasoning" || it.done == nil {
					return ""
				}
				_, ok := it.done.At("item", "summary").([]any)
				return streamtest.Unless(ok && it.done.At("item", "content") == nil && it.done.Str("item", "encrypted_content") != "", "reasoning that is not summary and sealed")
			})(s)
		},
		Mutate: func(fs []frame) []frame { return append(fs, frame{Data: "[DONE]"}) },
	},
	{
		// Codex abandons the turn. It is sent only if the response was cut off or filtered.
		Name: "response.incomplete",
		Check: func(s *streamtest.Stream) error {
			why := event.None
			for _, e := range s.Events {
				if e.Kind == event.Finish && e.Choice == 0 {
					why = e.Why
					break
				}
			}
			cut := slices.Contains([]event.Why{event.Length, event.ContextFull, event.ContentFilter, event.Paused}, why)
			f := s.Last()
			return streamtest.Want(f.Type == "response.failed" ||
				(f.Type == "response.incomplete") == cut && (f.Str("response", "incomplete_details", "reason") != "") == cut && f.Str("type") == "response."+f.Str("response", "status"),
				"incomplete must say that the answer was cut, and why")
		},
		Mutate: func(fs []frame) []frame {
			if f := &fs[len(fs)-1]; f.Type == "response.completed" {
				f.Type = "response.incomplete"
			}
			return fs
		},
	},
	{
		// It is sent if and only if the engine failed.
		Name: "response.failed server_error / context_length_exceeded",
		Check: func(s *streamtest.Stream) error {
			failed, f := s.Failed(true), s.Last()
			if failed != (f.Type == "response.failed") || streamtest.Count(s, func(f *frame) bool { return f.JSON["error"] != nil }) > 0 {
				return errors.New("a failure must be told of, in a response")
			}
			return streamtest.Want(failed == (f.Str("response", "error", "code") != "" && f.Str("response", "error", "message") != ""), "code and message must tell of a failure")
		},
		Mutate: func(fs []frame) []frame {
			if f := &fs[len(fs)-1]; whole(f) {
				f.Type = "response.failed"
			}
			return fs
		},
	},
	{Name: "JSON body to stream:true", Elsewhere: "examples/gateway/serve: TestFidelity"},
}
