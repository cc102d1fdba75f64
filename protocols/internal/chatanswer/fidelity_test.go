// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// TestFidelity has a row for every deviation of a stream that was tested with clients of this API, in the order and
// mostly in the words of that table. It checks that our streams have none of the deviations.
func TestFidelity(t *testing.T) {
	encoder := func(name string, opt chatanswer.Options) streamtest.Encoder {
		opt.ID, opt.Model, opt.Created = "chatcmpl-1", "demo", 1700000000
		return streamtest.Encoder{Name: name, Choices: 3, Encode: func(events []event.Event) []byte {
			s := chatanswer.NewEncoder(opt)
			return streamtest.Serve(s, events, false)
		}}
	}
	t.Run("all rows", func(t *testing.T) { streamtest.Complete(t, "/v1/chat/completions stream", fidelity) })
	streamtest.Fidelity(t, fidelity,
		encoder("with usage", chatanswer.Options{IncludeUsage: true}),
		encoder("default", chatanswer.Options{}),
		encoder("whole calls", chatanswer.Options{WholeCalls: true, IncludeUsage: true}),
		encoder("calls in reasoning", chatanswer.Options{DispatchInReasoning: true}),
	)
}

type frame = streamtest.Frame

// chunk matches chunks, that is, neither the end nor an error.
func chunk(f *frame) bool { return f.JSON != nil && f.JSON["error"] == nil }

// ofChoice matches chunks with a choice.
func ofChoice(f *frame) bool { return chunk(f) && f.At("choices", 0) != nil }

func finishes(f *frame) bool { return f.Str("choices", 0, "finish_reason") != "" }

func failure(f *frame) bool { return f.JSON["error"] != nil }

// opens matches the first delta of a call, continues the others.
func opens(f *frame) bool     { return f.Str(delta0("id")...) != "" }
func continues(f *frame) bool { return f.At(delta0()...) != nil && !opens(f) }

// delta0 returns a path in the only call of a delta.
func delta0(path ...any) []any {
	return append([]any{"choices", 0, "delta", "tool_calls", 0}, path...)
}

func callOf(o map[string]any) map[string]any {
	return streamtest.At(o, delta0()...).(map[string]any)
}

func deltaOf(o map[string]any) map[string]any {
	return streamtest.At(o, "choices", 0, "delta").(map[string]any)
}

// onChunks returns a check of a stream that calls check for every chunk.
func onChunks(check func(f *frame) string) func(*streamtest.Stream) error {
	return streamtest.Each(func(_ int, f *frame) string {
		if !chunk(f) {
			return ""
		}
		return check(f)
	})
}

// onCalls returns a check of a stream that calls check for every delta of a call.
func onCalls(check func(f *frame, first bool) string) func(*streamtest.Stream) error {
	return func(s *streamtest.Stream) error {
		seen := map[[2]int]bool{}
		return onChunks(func(f *frame) string {
			if f.At(delta0()...) == nil {
				return ""
			}
			key := [2]int{f.Int("choices", 0, "index"), f.Int(delta0("index")...)}
			first := !seen[key]
			seen[key] = true
			return check(f, first)
		})(s)
	}
}

// callSeen is a call as a client collects it.
type callSeen struct {
	id, args string
	custom   bool
}

func (c *callSeen) readable() bool { return c.custom || json.Valid([]byte(c.args)) }

// seenCalls returns the calls of every choice.
func seenCalls(s *streamtest.Stream) map[int][]callSeen {
	out := map[int][]callSeen{}
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.At(delta0()...) == nil {
			continue
		}
		choice, index := f.Int("choices", 0, "index"), f.Int(delta0("index")...)
		if index == len(out[choice]) {
			out[choice] = append(out[choice], callSeen{id: f.Str(delta0("id")...), custom: f.At(delta0("custom")...) != nil})
		}
		if index >= 0 && index < len(out[choice]) {
			out[choice][index].args += f.Str(delta0("function", "arguments")...) + f.Str(delta0("custom", "input")...)
		}
	}
	return out
}

var fidelity = []streamtest.Row{
	{
		Name: "no [DONE]",
		Check: func(s *streamtest.Stream) error {
			n := streamtest.Count(s, func(f *frame) bool { return f.Data == "[DONE]" })
			if failure(s.Last()) {
				return streamtest.Want(n == 0, "[DONE] in a stream that failed")
			}
			return streamtest.Want(n == 1 && s.Last().Data == "[DONE]", "[DONE] must be there once, at the end")
		},
		Mutate: streamtest.Drop(func(f *frame) bool { return f.Data == "[DONE]" }),
	},
	{
		Name: "no finish_reason",
		Check: func(s *streamtest.Stream) error {
			open := map[int]bool{}
			err := onChunks(func(f *frame) string {
				if !ofChoice(f) {
					return ""
				}
				i := f.Int("choices", 0, "index")
				was, seen := open[i]
				open[i] = !finishes(f)
				return streamtest.Unless(was || !seen, "output after the finish reason")
			})(s)
			for _, o := range open {
				if o && !failure(s.Last()) && err == nil {
					err = errors.New("a choice without finish reason")
				}
			}
			if len(open) == 0 && !failure(s.Last()) {
				err = errors.New("no choice")
			}
			return err
		},
		Mutate: func(fs []frame) []frame {
			if failure(&fs[len(fs)-1]) {
				return fs
			}
			return streamtest.Drop(finishes)(fs)
		},
	},
	{
		// All clients accept it. The exception is a response with a refusal and a call.
		Name: `finish "stop" with tool_calls`,
		Check: func(s *streamtest.Stream) error {
			calls := seenCalls(s)
			return onChunks(func(f *frame) string {
				readable := false
				for _, c := range calls[f.Int("choices", 0, "index")] {
					readable = readable || c.readable() && !c.custom
				}
				switch f.Str("choices", 0, "finish_reason") {
				case "stop":
					refused := slices.ContainsFunc(s.Events, func(e event.Event) bool { return e.Kind == event.Finish && e.Why == event.Refused })
					return streamtest.Unless(!readable || refused, "there are calls to run")
				case "tool_calls":
					return streamtest.Unless(len(calls[f.Int("choices", 0, "index")]) > 0, "there are no calls to run")
				}
				return ""
			})(s)
		},
		Mutate: func(fs []frame) []frame {
			function := slices.ContainsFunc(fs, func(f frame) bool { return f.Str(delta0("type")...) == "function" })
			return streamtest.Change(func(f *frame) bool { return function && f.Str("choices", 0, "finish_reason") == "tool_calls" },
				func(o map[string]any) { streamtest.At(o, "choices", 0).(map[string]any)["finish_reason"] = "stop" })(fs)
		},
	},
	{
		Name: "tool_call delta without index",
		Check: func(s *streamtest.Stream) error {
			next := map[int]int{}
			return onCalls(func(f *frame, first bool) string {
				c, i := f.Int("choices", 0, "index"), f.Int(delta0("index")...)
				if first && i == next[c] {
					next[c]++
				}
				return streamtest.Unless(i >= 0 && i < next[c], "no index, or one with a gap before it")
			})(s)
		},
		Mutate: streamtest.Change(func(f *frame) bool { return f.At(delta0()...) != nil }, func(o map[string]any) { delete(callOf(o), "index") }),
	},
	{
		// An id must also be unique in a response.
		Name: "no id",
		Check: func(s *streamtest.Stream) error {
			for _, calls := range seenCalls(s) {
				seen := map[string]bool{"": true}
				for _, c := range calls {
					if seen[c.id] {
						return errors.New("no id, or one that another call has: " + c.id)
					}
					seen[c.id] = true
				}
			}
			return nil
		},
		Mutate: streamtest.Change(opens, func(o map[string]any) { delete(callOf(o), "id") }),
	},
	{
		Name: "id and name in different chunks",
		Check: onCalls(func(f *frame, first bool) string {
			named := f.Str(delta0("function", "name")...)+f.Str(delta0("custom", "name")...) != ""
			return streamtest.Unless(!first || f.Str(delta0("id")...) != "" && f.Str(delta0("type")...) != "" && named, "id, type and name must come first, together")
		}),
		Mutate: func(fs []frame) []frame {
			for i := 0; i < len(fs); i++ {
				if !opens(&fs[i]) {
					continue
				}
				id := fs[i].Clone()
				id.Edit(func(o map[string]any) { delete(callOf(o), "function"); delete(callOf(o), "custom") })
				fs[i].Edit(func(o map[string]any) { delete(callOf(o), "id") })
				fs = slices.Insert(fs, i, id)
				i++
			}
			return fs
		},
	},
	{
		// All clients accept it.
		Name: "name repeated / empty name in later deltas",
		Check: onCalls(func(f *frame, first bool) string {
			c, _ := f.At(delta0()...).(map[string]any)
			in, _ := c["function"].(map[string]any)
			if in == nil {
				in, _ = c["custom"].(map[string]any)
			}
			return streamtest.Unless(first || c["id"] == nil && c["type"] == nil && in["name"] == nil, "only the first delta names the call")
		}),
		Mutate: streamtest.Change(continues, func(o map[string]any) {
			if in, ok := callOf(o)["function"].(map[string]any); ok {
				in["name"] = ""
			} else {
				callOf(o)["custom"].(map[string]any)["name"] = ""
			}
		}),
	},
	{
		// All clients accept it. The check is that the pieces are the text that the model generated.
		Name: "whole arguments in one delta",
		Check: func(s *streamtest.Stream) error {
			for choice, calls := range seenCalls(s) {
				wrote := map[string]int{}
				for _, b := range s.Answer.Answers[choice].Blocks {
					wrote[string(jsonw.AppendValid(nil, b.Data))]++
				}
				for _, c := range calls {
					if strings.TrimSpace(c.args) == "{}" || !c.readable() {
						continue
					}
					if wrote[c.args]--; wrote[c.args] < 0 {
						return errors.New("arguments that the model did not write: " + c.args)
					}
				}
			}
			return nil
		},
		Mutate: streamtest.Change(func(f *frame) bool { return f.Str(delta0("function", "arguments")...) == "1}" },
			func(o map[string]any) { callOf(o)["function"].(map[string]any)["arguments"] = "2}" }),
	},
	{
		Name: "arguments as object",
		Check: onCalls(func(f *frame, _ bool) string {
			_, args := f.At(delta0("function", "arguments")...).(string)
			_, input := f.At(delta0("custom", "input")...).(string)
			return streamtest.Unless(args || input, "arguments that are no string")
		}),
		Mutate: streamtest.Change(func(f *frame) bool { return f.At(delta0("function")...) != nil },
			func(o map[string]any) { callOf(o)["function"].(map[string]any)["arguments"] = map[string]any{} }),
	},
	{
		// A client that asks for usage gets it in a separate chunk, and null in the others; otherwise the field is
		// absent.
		Name: "no usage chunk / usage on last choice chunk / usage:null everywhere",
		Check: func(s *streamtest.Stream) error {
			with, counted := 0, 0
			err := onChunks(func(f *frame) string {
				if _, ok := f.JSON["usage"]; ok {
					with++
				}
				if f.JSON["usage"] == nil {
					return streamtest.Unless(ofChoice(f), "an empty chunk")
				}
				counted++
				whole := f.Int("usage", "prompt_tokens") >= 0 && f.Int("usage", "completion_tokens") >= 0 && f.Int("usage", "total_tokens") >= 0
				return streamtest.Unless(whole && !ofChoice(f), "usage must be whole, and stand alone")
			})(s)
			switch n := streamtest.Count(s, chunk); {
			case err != nil:
				return err
			case with != 0 && with != n:
				return errors.New("usage in some chunks only")
			case failure(s.Last()):
				return streamtest.Want(counted == 0, "usage in a stream that failed")
			}
			return streamtest.Want(with == 0 || counted == 1 && s.Frames[len(s.Frames)-2].JSON["usage"] != nil, "usage must be there once, last")
		},
		Mutate: streamtest.Drop(func(f *frame) bool { return chunk(f) && !ofChoice(f) }),
	},
	{
		Name: "no role delta",
		Check: func(s *streamtest.Stream) error {
			seen := map[int]bool{}
			return onChunks(func(f *frame) string {
				i := f.Int("choices", 0, "index")
				first := ofChoice(f) && !seen[i]
				seen[i] = true
				return streamtest.Unless(first == (f.Str("choices", 0, "delta", "role") == "assistant"), "the role comes first, once")
			})(s)
		},
		Mutate: streamtest.Change(func(f *frame) bool { return f.Str("choices", 0, "delta", "role") != "" },
			func(o map[string]any) { delete(deltaOf(o), "role") }),
	},
	{
		// All clients accept it.
		Name: "no chunk id/object/created/model; content null; reasoning instead of reasoning_content",
		Check: onChunks(func(f *frame) string {
			if f.Str("id") != "chatcmpl-1" || f.Str("object") != "chat.completion.chunk" || f.Int("created") != 1700000000 || f.Str("model") != "demo" {
				return "not the members that all chunks share"
			}
			d, _ := f.At("choices", 0, "delta").(map[string]any)
			content, ok := d["content"]
			return streamtest.Unless((!ok || content != nil) && d["reasoning"] == nil, "content that is null, or reasoning under another name")
		}),
		Mutate: streamtest.Change(chunk, func(o map[string]any) { delete(o, "id") }),
	},
	{Name: "JSON body to stream:true", Elsewhere: "examples/gateway/serve: TestFidelity"},
	{
		// All clients fail, as intended: it is sent if and only if the engine failed. The Go client treats a field
		// error with any value, including null, as an error.
		Name: `{"error":…} data line mid-stream`,
		Check: func(s *streamtest.Stream) error {
			failed := s.Failed(false)
			n := streamtest.Count(s, func(f *frame) bool { _, ok := f.JSON["error"]; return ok })
			if n > 1 || n == 1 != failed || failed != failure(s.Last()) {
				return errors.New("an error line must tell of a failure, and end the stream")
			}
			f := s.Last()
			return streamtest.Want(!failed || f.Str("error", "type") != "" && f.Str("error", "message") != "", "an error without type or message")
		},
		Mutate: streamtest.Change(chunk, func(o map[string]any) { o["error"] = nil }),
	},
	{
		// A call that was cut off must not seem complete.
		Name: "cut in arguments",
		Check: func(s *streamtest.Stream) error {
			if failure(s.Last()) {
				return nil // clients drop the turn
			}
			for choice, calls := range seenCalls(s) {
				cut := 0
				for _, c := range calls {
					if !c.readable() {
						cut++
					}
				}
				if cut > s.Unreadable(choice) {
					return errors.New("a whole call that cannot be read")
				}
			}
			return streamtest.Want(s.Last().Data == "[DONE]", "the stream just ends")
		},
		Mutate: func(fs []frame) []frame {
			if failure(&fs[len(fs)-1]) {
				return fs
			}
			return streamtest.Drop(func(f *frame) bool { return f.Str(delta0("function", "arguments")...) == "1}" })(fs)
		},
	},
}
