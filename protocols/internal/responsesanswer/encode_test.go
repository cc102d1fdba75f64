// SPDX-License-Identifier: Apache-2.0

package responsesanswer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/internal/responsesanswer"
	"github.com/weft-go/weft/protocols/internal/sigpack"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/replay"
)

// fieldsOf returns a function that returns the fields of a request.
func fieldsOf(request string) func(name string) []byte {
	return func(name string) (field []byte) {
		jsonw.Members([]byte(request), func(key, value []byte) bool {
			if string(key) == `"`+name+`"` {
				field = value
			}
			return field == nil
		})
		return field
	}
}

func TestStreamExample(t *testing.T) {
	opt := responsesanswer.Options{
		ID: "resp_1", Model: "demo", Created: 1700000000, CompletedAt: 1700000005,
		Echo: fieldsOf(`{"model":"x","input":"hi","temperature":0.70,"tools":[{"type":"function",` + "\n" + `"name":"get"}],"top_p":null}`),
	}
	s := responsesanswer.NewEncoder(opt)
	stream := s.Finish(s.Append(nil, streamtest.Example()...))
	streamtest.Golden(t, "example.sse", stream)
	var c event.Collector
	c.Add(streamtest.Example()...)
	whole := responsesanswer.AppendResponse(nil, &c, opt)
	streamtest.Golden(t, "example.json", append(whole, '\n'))
	require.Empty(t, cmp.Diff(rebuild(t, stream).final, parse[map[string]any](t, whole)))
}

func parse[T any](t require.TestingT, raw []byte) (v T) {
	require.True(t, utf8.Valid(raw), "%q", raw)
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}

type obj = map[string]any

// opened is an item between its added and its done event.
type opened struct {
	item     obj
	part     obj // of a message or of reasoning
	partDone bool
	text     string // deltas
	textDone bool
	notes    []any
	logprobs []any
}

type rebuilt struct {
	final  obj
	output []any // items as their done events gave them
}

// names of the parts and deltas of the items, by the type of the item and its part
var parts = map[string]struct{ delta, done, field, part, index string }{
	"output_text":      {"response.output_text.delta", "response.output_text.done", "text", "response.content_part", "content_index"},
	"refusal":          {"response.refusal.delta", "response.refusal.done", "refusal", "response.content_part", "content_index"},
	"reasoning_text":   {"response.reasoning_text.delta", "response.reasoning_text.done", "text", "response.content_part", "content_index"},
	"summary_text":     {"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "text", "response.reasoning_summary_part", "summary_index"},
	"function_call":    {"response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments", "", ""},
	"custom_tool_call": {"response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input", "", ""},
}

// rebuild decodes a stream as a strict client does: dense sequence numbers and output indexes, consistent item ids,
// every part opened before its deltas and closed after them, the done payloads equal to the deltas, and the output of
// the last event equal to the done items.
func rebuild(t require.TestingT, stream []byte) (r rebuilt) {
	require.True(t, strings.HasSuffix(string(stream), "\n\n"))
	items := []*opened{}
	status := ""
	seq := 0
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		if strings.HasPrefix(ev, ":") {
			continue
		}
		lines := strings.Split(ev, "\n")
		require.Len(t, lines, 2, "%q", ev)
		typ, ok1 := strings.CutPrefix(lines[0], "event: ")
		data, ok2 := strings.CutPrefix(lines[1], "data: ")
		require.True(t, ok1 && ok2, "%q", ev)
		require.Nil(t, r.final, "nothing may follow the end: %s", ev)
		e := parse[obj](t, []byte(data))
		require.NotContains(t, e, "error")
		require.Equal(t, typ, e["type"])
		require.EqualValues(t, seq, e["sequence_number"])
		seq++
		var it *opened
		if n, ok := e["output_index"].(float64); ok {
			if typ == "response.output_item.added" {
				require.EqualValues(t, len(items), n)
				items = append(items, &opened{item: e["item"].(obj)})
				r.output = append(r.output, nil)
			}
			require.Less(t, int(n), len(items))
			it = items[int(n)]
			require.NotNil(t, it, "event for a closed item: %s", data)
			if id, ok := e["item_id"]; ok {
				require.Equal(t, it.item["id"], id)
				require.NotEmpty(t, id)
			}
		}
		shape := func() string {
			if it.part != nil {
				return it.part["type"].(string)
			}
			return it.item["type"].(string)
		}
		switch typ {
		case "response.created":
			require.Equal(t, "", status)
			status = "created"
			require.Empty(t, e["response"].(obj)["output"])
			require.Nil(t, e["response"].(obj)["usage"])
		case "response.in_progress":
			require.Equal(t, "created", status)
			status = "in_progress"
		case "response.completed", "response.incomplete", "response.failed":
			require.Equal(t, "in_progress", status)
			r.final = e["response"].(obj)
			require.Equal(t, strings.TrimPrefix(typ, "response."), r.final["status"])
			var done []any
			for i, o := range r.output {
				require.True(t, o != nil || typ == "response.failed", "item %d is open", i)
				if o != nil {
					done = append(done, o)
				}
			}
			require.Empty(t, cmp.Diff(append([]any{}, done...), r.final["output"]), "output is the done items")
		case "response.output_item.added":
			require.Equal(t, "in_progress", status)
			if typ := it.item["type"]; typ == "message" || typ == "reasoning" || strings.HasSuffix(typ.(string), "_call") {
				require.Equal(t, "in_progress", it.item["status"])
			}
		case "response.content_part.added", "response.reasoning_summary_part.added":
			require.Nil(t, it.part)
			it.part = e["part"].(obj)
			p := parts[shape()]
			require.Equal(t, p.part+".added", typ)
			require.EqualValues(t, 0, e[p.index])
			require.Empty(t, it.part[p.field])
		case "response.content_part.done", "response.reasoning_summary_part.done":
			p := parts[shape()]
			require.Equal(t, p.part+".done", typ)
			require.True(t, it.textDone && !it.partDone)
			it.partDone = true
			require.Equal(t, it.text, e["part"].(obj)[p.field])
			if shape() == "output_text" {
				require.Empty(t, cmp.Diff(append([]any{}, it.notes...), e["part"].(obj)["annotations"]))
				require.Empty(t, cmp.Diff(append([]any{}, it.logprobs...), e["part"].(obj)["logprobs"]))
			}
			it.part = e["part"].(obj)
		case "response.output_text.annotation.added":
			require.EqualValues(t, len(it.notes), e["annotation_index"])
			it.notes = append(it.notes, e["annotation"])
		case "response.output_item.done":
			item := e["item"].(obj)
			require.Equal(t, it.item["id"], item["id"])
			require.Equal(t, it.item["type"], item["type"])
			switch item["type"] {
			case "message":
				require.True(t, it.partDone)
				require.Empty(t, cmp.Diff([]any{it.part}, item["content"]))
			case "reasoning":
				require.Equal(t, it.part != nil, it.partDone)
				list := []any{}
				if it.part != nil {
					list = []any{it.part}
				}
				if _, ok := item["content"]; ok {
					require.Empty(t, cmp.Diff(list, item["content"]))
					require.Empty(t, item["summary"])
				} else {
					require.Empty(t, cmp.Diff(list, item["summary"]))
				}
			case "function_call", "custom_tool_call":
				require.True(t, it.textDone)
				require.Equal(t, it.text, item[parts[shape()].field])
				require.NotEmpty(t, item["call_id"])
				require.NotEqual(t, item["id"], item["call_id"])
			}
			require.NotEqual(t, "in_progress", item["status"])
			r.output[int(e["output_index"].(float64))] = item
			items[int(e["output_index"].(float64))] = nil
		default:
			p := parts[shape()]
			if p.index != "" {
				require.EqualValues(t, 0, e[p.index])
			}
			require.False(t, it.textDone)
			switch typ {
			case p.delta:
				require.NotEmpty(t, e["delta"], "empty delta")
				it.text += e["delta"].(string)
				if shape() == "output_text" {
					it.logprobs = append(it.logprobs, e["logprobs"].([]any)...)
				}
			case p.done:
				it.textDone = true
				require.Equal(t, it.text, e[p.field])
				if shape() == "output_text" {
					it.logprobs = e["logprobs"].([]any)
				}
				if shape() == "function_call" {
					require.Equal(t, it.item["name"], e["name"])
				}
			default:
				require.Fail(t, "event does not fit the item", data)
			}
		}
	}
	require.NotNil(t, r.final, "no terminal")
	return r
}

// expect returns the items that a client must receive for a, without ids. Aborted calls have type "aborted".
func expect(a *event.Answer, started map[int32]bool, o responsesanswer.Options) (out []obj) {
	valid := func(b []byte) string { return string(jsonw.AppendValid(nil, b)) }
	for i := range a.Blocks {
		b := &a.Blocks[i]
		status := "completed"
		switch a.Finish {
		case event.Length, event.ContextFull, event.ContentFilter, event.Paused:
			if i == len(a.Blocks)-1 {
				status = "incomplete"
			}
		}
		switch b.Kind {
		case event.Reasoning:
			it := obj{"type": "reasoning", "status": status, "summary": []any{}}
			shown := len(b.Data) > 0 && o.Reasoning != responsesanswer.ReasoningNone
			switch {
			case shown && o.Reasoning == responsesanswer.ReasoningSummary:
				it["summary"] = []any{obj{"type": "summary_text", "text": valid(b.Data)}}
			case shown:
				it["content"] = []any{obj{"type": "reasoning_text", "text": valid(b.Data)}}
			case len(b.Signature) == 0:
				continue
			}
			switch {
			case len(b.Signature) > 0:
				it["encrypted_content"] = string(sigpack.Append(nil, sigpack.Text, "", string(b.Signature)))
			case o.Seal:
				it["encrypted_content"] = string((*replay.Signer)(nil).AppendSigned(nil, []byte(valid(b.Data))))
			}
			out = append(out, it)
		case event.Text, event.Refusal:
			part := obj{"type": "refusal", "refusal": valid(b.Data)}
			if b.Kind == event.Text {
				notes := []any{}
				for _, n := range b.Annotations {
					var v any
					_ = json.Unmarshal(n, &v)
					notes = append(notes, v)
				}
				part = obj{"type": "output_text", "text": valid(b.Data), "annotations": notes, "logprobs": []any{}}
			}
			if len(b.Data)+len(b.Annotations) > 0 {
				out = append(out, obj{"type": "message", "role": "assistant", "status": status, "content": []any{part}})
			}
		case event.ToolStart, event.ToolAbort:
			ok := b.Kind == event.ToolStart && b.Flags.Has(event.Complete)
			if !started[b.Call] || b.Flags.Has(event.Server) || b.Flags.Has(event.InReasoning) && !o.DispatchInReasoning || !ok && o.WholeCalls {
				continue
			}
			it := obj{"type": "function_call", "status": "completed", "name": b.Name, "arguments": valid(b.Data)}
			if b.Flags.Has(event.Custom) {
				it = obj{"type": "custom_tool_call", "status": "completed", "name": b.Name, "input": valid(b.Data)}
			}
			switch {
			case b.Cut():
				it["type"] = "cut"
			case !ok:
				it["type"] = "aborted"
			case it["arguments"] == "":
				it["arguments"] = "{}" // what clients can read
			}
			out = append(out, it)
		case event.ToolResult, event.Opaque:
			if jsonw.IsObject(b.Data) {
				var v obj
				_ = json.Unmarshal(b.Data, &v)
				out = append(out, v)
			}
		}
	}
	return out
}

func TestStreamProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opt := responsesanswer.Options{
			ID: "resp_r", Model: `de"mo`, Created: 5,
			Reasoning:           rapid.SampledFrom([]responsesanswer.Reasoning{responsesanswer.ReasoningSummary, responsesanswer.ReasoningRaw, responsesanswer.ReasoningNone}).Draw(rt, "reasoning"),
			WholeCalls:          rapid.Bool().Draw(rt, "whole"),
			DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"),
			Seal:                rapid.Bool().Draw(rt, "seal"),
		}
		events := streamtest.Events(rt, 1, !opt.WholeCalls)
		s := responsesanswer.NewEncoder(opt)
		var stream []byte
		for i := range events {
			stream = s.Append(stream, scrub(events[i])...)
			if rapid.IntRange(0, 9).Draw(rt, "idle") == 0 {
				stream = s.AppendKeepAlive(stream)
			}
		}
		stream = s.Finish(stream)
		require.Equal(rt, len(stream), len(s.Finish(s.Fail(s.Append(stream, events...), apierr.New(event.Internal, "x")))), "nothing follows the end")
		r := rebuild(rt, stream)

		var c event.Collector
		c.Add(events...)
		want := expect(&c.Answers[0], streamtest.Started(events, 0), opt)
		require.Len(rt, r.output, len(want))
		ids := map[any]bool{nil: true}
		kept := []any{}
		for i := range want {
			got := r.output[i].(obj)
			for _, key := range []string{"id", "call_id"} {
				if got[key] != nil {
					require.False(rt, ids[got[key]], "%s twice", got[key])
					ids[got[key]] = true
					want[i][key] = got[key]
				}
			}
			if want[i]["type"] == "aborted" || want[i]["type"] == "cut" {
				require.Equal(rt, "incomplete", got["status"])
				if got["type"] == "function_call" {
					require.False(rt, json.Valid([]byte(got["arguments"].(string))), "an aborted call reads as JSON")
				}
				if want[i]["type"] == "cut" { // the whole response has it as well
					kept = append(kept, got)
				}
				continue
			}
			require.Empty(rt, cmp.Diff(want[i], got))
			kept = append(kept, got)
		}
		r.final["output"] = kept
		require.Empty(rt, cmp.Diff(r.final, parse[obj](rt, responsesanswer.AppendResponse(nil, &c, opt))))
		u := r.final["usage"].(obj)
		require.EqualValues(rt, c.Usage.Prompt, u["input_tokens"])
		require.EqualValues(rt, c.Usage.Prompt+c.Usage.Output, u["total_tokens"])
	})
}

// scrub returns e in memory that the next call overwrites, like a producer's.
var scratch []byte

func scrub(e event.Event) []event.Event {
	for i := range scratch {
		scratch[i] = 'X'
	}
	scratch = append(append(scratch[:0], e.Data...), e.ID...)
	n := len(e.Data)
	e.Data, e.ID = scratch[:n:n], scratch[n:]
	return []event.Event{e}
}

// anySequence checks that a sequence that violates the grammar does not cause a malformed stream or a repeated ID.
func anySequence(rt *rapid.T) {
	events := streamtest.Any(rt)
	opt := responsesanswer.Options{
		ID: "resp_r", Model: "m", WholeCalls: rapid.Bool().Draw(rt, "whole"), DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"),
		Reasoning: responsesanswer.Reasoning(rapid.IntRange(0, 2).Draw(rt, "reasoning")), Seal: rapid.Bool().Draw(rt, "seal"),
	}
	s := responsesanswer.NewEncoder(opt)
	var stream []byte
	for _, e := range events {
		stream = s.Append(stream, scrub(e)...)
	}
	r := rebuild(rt, s.Finish(stream))
	ids := map[any]bool{nil: true}
	for _, it := range r.output {
		if it, ok := it.(obj); ok {
			for _, key := range []string{"id", "call_id"} {
				require.False(rt, it[key] != nil && ids[it[key]], "%s twice", it[key])
				ids[it[key]] = true
			}
		}
	}
	var c event.Collector
	c.Add(events...)
	require.True(rt, json.Valid(responsesanswer.AppendResponse(nil, &c, opt)))
}

func TestAnySequence(t *testing.T) { rapid.Check(t, anySequence) }

func FuzzStream(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anySequence)) }

func TestStreamPaths(t *testing.T) {
	opt := responsesanswer.Options{ID: "resp_1", Model: "m"}
	text := event.Event{Kind: event.Text, Data: []byte("hi")}
	stop := event.Event{Kind: event.Finish, Why: event.Stop}
	start := event.Event{Kind: event.ToolStart, Data: []byte("rm")}
	run := func(o responsesanswer.Options, events ...event.Event) rebuilt {
		s := responsesanswer.NewEncoder(o)
		return rebuild(t, s.Finish(s.Append(nil, events...)))
	}
	failure := func(r rebuilt) any {
		if e, ok := r.final["error"].(obj); ok {
			return e["code"]
		}
		return nil
	}
	t.Run("no finish", func(t *testing.T) {
		require.Equal(t, "server_error", failure(run(opt)))
		require.Equal(t, "server_error", failure(run(opt, event.Event{Kind: event.Start})))
		require.Equal(t, "server_error", failure(run(opt, text, start)))
		require.Equal(t, "completed", run(opt, text).final["status"])
	})
	t.Run("error event", func(t *testing.T) {
		call := []event.Event{text, start, {Kind: event.ToolEnd, Flags: event.Complete}, {Kind: event.Text, Part: 2, Data: []byte("cut")}}
		r := run(opt, append(call, event.Event{Kind: event.Error, Why: event.Overloaded, Data: []byte("busy")}, text, stop)...)
		require.Equal(t, "rate_limit_exceeded", failure(r))
		require.Len(t, r.final["output"], 2, "the done items")
	})
	t.Run("context length", func(t *testing.T) {
		s := responsesanswer.NewEncoder(opt)
		r := rebuild(t, s.Fail(nil, apierr.ContextLength(9, 0, 8)))
		require.Equal(t, "context_length_exceeded", failure(r))
	})
	t.Run("sealed", func(t *testing.T) {
		for _, form := range []responsesanswer.Reasoning{responsesanswer.ReasoningSummary, responsesanswer.ReasoningRaw, responsesanswer.ReasoningNone} {
			o := opt
			o.Seal, o.Reasoning = true, form
			think := event.Event{Kind: event.Reasoning, Data: []byte("hm \xff")}
			sig := event.Event{Kind: event.Signature, Part: 1, Data: []byte("theirs")}
			more := event.Event{Kind: event.Reasoning, Part: 1, Data: []byte("so")}
			want := []any{"weft3.u.6.KtqPpw", "weft1c.t0.theirs"}
			if form == responsesanswer.ReasoningNone {
				want = want[1:] // what is not sent needs nothing to come back with
			}
			var c event.Collector
			c.Add(think, more, sig, text, stop)
			var whole obj
			require.NoError(t, json.Unmarshal(responsesanswer.AppendResponse(nil, &c, o), &whole))
			for _, final := range []obj{run(o, think, more, sig, text, stop).final, whole} {
				var got []any
				for _, item := range final["output"].([]any) {
					if e, ok := item.(obj)["encrypted_content"]; ok {
						got = append(got, e)
					}
				}
				require.Equal(t, want, got)
			}
		}
	})
	t.Run("incomplete", func(t *testing.T) {
		for why, reason := range map[event.Why]string{event.Length: "max_output_tokens", event.ContextFull: "max_output_tokens", event.ContentFilter: "content_filter"} {
			r := run(opt, event.Event{Kind: event.Reasoning, Data: []byte("x")}, text, event.Event{Kind: event.Finish, Why: why})
			require.Equal(t, "incomplete", r.final["status"])
			require.Equal(t, reason, r.final["incomplete_details"].(obj)["reason"])
			require.Equal(t, "completed", r.output[0].(obj)["status"])
			require.Equal(t, "incomplete", r.output[1].(obj)["status"])
		}
	})
	t.Run("aborted call is never runnable", func(t *testing.T) {
		for _, args := range []string{"", "{}", `{"a":1`, `{"a":"`, `{"a":"b"}`} {
			r := run(opt, start, event.Event{Kind: event.ToolArgs, Data: []byte(args)}, event.Event{Kind: event.ToolAbort}, stop)
			require.Equal(t, "incomplete", r.output[0].(obj)["status"])
			require.False(t, json.Valid([]byte(r.output[0].(obj)["arguments"].(string))), args)
		}
	})
	t.Run("namespace", func(t *testing.T) {
		o := opt
		o.Namespace = func(tool string) (string, string) { a, b, _ := strings.Cut(tool, "."); return a, b }
		ns := start
		ns.Data = []byte("agents.spawn")
		r := run(o, ns, event.Event{Kind: event.ToolEnd, Flags: event.Complete}, stop)
		it := r.output[0].(obj)
		require.Equal(t, []any{"agents", "spawn"}, []any{it["namespace"], it["name"]})
	})
	t.Run("custom tool", func(t *testing.T) {
		for _, whole := range []bool{false, true} {
			o := opt
			o.WholeCalls = whole
			o.Custom = func(tool string) bool { return tool == "apply_patch" }
			events := []event.Event{
				{Kind: event.ToolStart, Data: []byte("apply_patch")}, {Kind: event.ToolArgs, Data: []byte(`{"input":"*** Begin\`)},
				{Kind: event.ToolArgs, Data: []byte(`n+é"}`)}, {Kind: event.ToolEnd, Flags: event.Complete},
				{Kind: event.ToolStart, Call: 1, Data: []byte("apply_patch")}, {Kind: event.ToolArgs, Call: 1, Data: []byte(`{"inp`)}, stop,
			}
			r := run(o, events...)
			require.Equal(t, obj{"type": "custom_tool_call", "id": "ctc_1_0", "call_id": "call_1_0", "name": "apply_patch", "input": "*** Begin\n+é", "status": "completed"}, r.output[0])
			if !whole {
				require.Equal(t, "incomplete", r.output[1].(obj)["status"])
				require.Equal(t, "", r.output[1].(obj)["input"])
			}
			var c event.Collector
			c.Add(events...)
			require.Equal(t, r.output[:1], parse[obj](t, responsesanswer.AppendResponse(nil, &c, o))["output"])
		}
	})
	t.Run("items of other kinds get an id", func(t *testing.T) {
		var events []event.Event
		for _, raw := range []string{`{"type":"x_thing"}`, `{"type":"x_thing","id":"mine"}`, ` {"a":1,"id" : null,"type":"x_thing"}`, `{"id":"","type":"x_thing"}`, `{"id":"no type"}`, `[]`} {
			events = append(events, event.Event{Kind: event.Opaque, Data: []byte(raw)})
		}
		events = append(events, stop)
		r := run(opt, events...)
		var ids []any
		for _, it := range r.output {
			ids = append(ids, it.(obj)["id"])
		}
		require.Equal(t, []any{"item_1_0", "mine", "item_1_2", "item_1_3"}, ids)
		var c event.Collector
		c.Add(events...)
		whole := responsesanswer.AppendResponse(nil, &c, opt)
		require.Equal(t, r.output, parse[obj](t, whole)["output"])
		require.Equal(t, 4, strings.Count(string(whole), `"type":"x_thing"`))
		require.Contains(t, string(whole), `{"a":1,"id" : "item_1_2","type":"x_thing"}`)
	})
	t.Run("logprobs", func(t *testing.T) {
		lp := func(s string) event.Event {
			return event.Event{Kind: event.Logprobs, Data: []byte(`[{"token":"` + s + `"}]`)}
		}
		events := []event.Event{lp("a"), text, lp("b"), text, lp("c"), stop}
		r := run(opt, events...)
		var c event.Collector
		c.Add(events...)
		require.Empty(t, cmp.Diff(r.final, parse[obj](t, responsesanswer.AppendResponse(nil, &c, opt))))
		require.Len(t, r.output[0].(obj)["content"].([]any)[0].(obj)["logprobs"], 3)
	})
	t.Run("cache writes, two annotations, no cause", func(t *testing.T) {
		note := event.Event{Kind: event.Annotation, Data: []byte(`{"type":"url_citation"}`)}
		events := []event.Event{
			{Kind: event.Start, Usage: &event.Tokens{Prompt: 9, CacheWrite: 4}}, text, note, note, {Kind: event.Finish},
		}
		r := run(opt, events...)
		require.EqualValues(t, 4, r.final["usage"].(obj)["input_tokens_details"].(obj)["cache_write_tokens"])
		require.Len(t, r.output[0].(obj)["content"].([]any)[0].(obj)["annotations"], 2)
		require.Equal(t, "completed", r.final["status"])
		var c event.Collector
		c.Add(events...)
		require.Empty(t, cmp.Diff(r.final, parse[obj](t, responsesanswer.AppendResponse(nil, &c, opt))))
	})
	t.Run("completed at", func(t *testing.T) {
		s := responsesanswer.NewEncoder(opt)
		out := s.Append(nil, text, stop)
		s.SetCompletedAt(77)
		r := rebuild(t, s.Finish(out))
		require.EqualValues(t, 77, r.final["completed_at"])
	})
	t.Run("echo", func(t *testing.T) {
		o := opt
		o.Echo = fieldsOf(`{"temperature":0.10,"tools":[ {"type":"x"} ],"store":true,"top_p":null,"metadata":{"a":bad},"input":[1]}`)
		r := run(o, stop)
		require.EqualValues(t, 0.1, r.final["temperature"])
		require.Equal(t, true, r.final["store"])
		require.EqualValues(t, 1, r.final["top_p"])
		require.Equal(t, obj{}, r.final["metadata"], "what is not JSON is not repeated")
		require.NotContains(t, r.final, "input")
	})
	t.Run("echo of text", func(t *testing.T) {
		for given, want := range map[string]string{
			`{"verbosity":"low"}`:              `{"format":{"type":"text"},"verbosity":"low"}`,
			`{}`:                               `{"format":{"type":"text"}}`,
			`{"format":null,"verbosity":null}`: `{"format":{"type":"text"}}`,
			`{"verbosity":"high","format":{"type":"json_object"}}`:    `{"verbosity":"high","format":{"type":"json_object"}}`,
			`{ "format" : { "type" : "text" , "x" : 1 } , "y" : {} }`: `{ "format" : { "type" : "text" , "x" : 1 } , "y" : {} }`,
		} {
			o := opt
			o.Echo = fieldsOf(`{"text":` + given + `}`)
			out := string(responsesanswer.NewEncoder(o).Append(nil, event.Event{Kind: event.Start}))
			require.Contains(t, out, `,"text":`+want+`,"tool_choice"`)
		}
	})
	t.Run("failed whole answer", func(t *testing.T) {
		var c event.Collector
		c.Add(text, event.Event{Kind: event.Error, Why: event.EngineFailed, Data: []byte("gone")})
		whole := parse[obj](t, responsesanswer.AppendResponse(nil, &c, opt))
		require.Equal(t, "failed", whole["status"])
		require.Equal(t, obj{"code": "server_error", "message": "gone"}, whole["error"])
	})
	t.Run("other choices are refused", func(t *testing.T) {
		s := responsesanswer.NewEncoder(opt)
		other := text
		other.Choice = 1
		r := rebuild(t, s.Finish(s.Append(nil, text, other, stop)))
		require.Len(t, r.output, 1)
		require.Equal(t, 1, s.Dropped())
	})
}

func TestStreamAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := responsesanswer.NewEncoder(responsesanswer.Options{ID: "resp_1", Model: "m"})
	text := []event.Event{{Kind: event.Text, Data: []byte(" some \"word\" é")}}
	var dst []byte
	for range 3000 { // past the growth of the collected text
		dst = s.Append(dst[:0], text...)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = s.Append(dst[:0], text...) }))
	args := []event.Event{{Kind: event.ToolArgs, Data: []byte(`{"a":"b"`)}}
	s.Append(nil, event.Event{Kind: event.ToolStart, Data: []byte("f")})
	for range 3000 {
		dst = s.Append(dst[:0], args...)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = s.Append(dst[:0], args...) }))
}

func ExampleStream() {
	s := responsesanswer.NewEncoder(responsesanswer.Options{ID: "resp_1", Model: "demo"})
	out := s.Append(nil, event.Event{Kind: event.Start})
	out = s.Append(out[:0], event.Event{Kind: event.Text, Data: []byte("Hi")}) // created and in_progress were written before
	fmt.Printf("%s", out)
	// Output:
	// event: response.output_item.added
	// data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1_0","type":"message","status":"in_progress","role":"assistant","content":[]}}
	//
	// event: response.content_part.added
	// data: {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1_0","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}
	//
	// event: response.output_text.delta
	// data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1_0","output_index":0,"content_index":0,"delta":"Hi","logprobs":[]}
}

func ExampleAppendResponse() {
	var c event.Collector
	c.Add(
		event.Event{Kind: event.Text, Data: []byte("Hi")},
		event.Event{Kind: event.Finish, Why: event.Stop},
	)
	whole := responsesanswer.AppendResponse(nil, &c, responsesanswer.Options{ID: "resp_1", Model: "demo"})
	var short struct {
		ID     string
		Status string
		Output json.RawMessage
	}
	if err := json.Unmarshal(whole, &short); err != nil {
		fmt.Println(err)
	}
	fmt.Println(short.ID, short.Status)
	fmt.Printf("%s\n", short.Output)
	// Output:
	// resp_1 completed
	// [{"id":"msg_1_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}]}]
}

func BenchmarkStream(b *testing.B) {
	s := responsesanswer.NewEncoder(responsesanswer.Options{ID: "resp_1", Model: "m"})
	text := []event.Event{{Kind: event.Text, Data: []byte(" word")}}
	dst := s.Append(nil, text...)
	b.ReportAllocs()
	for b.Loop() {
		dst = s.Append(dst[:0], text...)
	}
	b.SetBytes(int64(len(dst)))
}

// TestLongEcho checks that a long field of the request is not repeated, since each event with a response would have it.
func TestLongEcho(t *testing.T) {
	const most = 64 << 10
	for n, want := range map[int]bool{most - 2: true, most - 1: false} {
		text := strings.Repeat("x", n) // in quotes
		s := responsesanswer.NewEncoder(responsesanswer.Options{Echo: fieldsOf(`{"instructions":"` + text + `","temperature":0.5}`)})
		out := string(s.Append(nil, event.Event{Kind: event.Start}))
		require.Equal(t, want, strings.Contains(out, text), n)
		require.Equal(t, !want, strings.Contains(out, `"instructions":null`), n)
		require.Contains(t, out, `"temperature":0.5`)
	}
}
