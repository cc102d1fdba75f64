// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

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
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

func TestStreamExample(t *testing.T) {
	opt := chatanswer.Options{ID: "chatcmpl-1", Model: "demo", Created: 1700000000, IncludeUsage: true}
	s := chatanswer.NewEncoder(opt)
	stream := s.Finish(s.Append(nil, streamtest.Example()...))
	streamtest.Golden(t, "example.sse", stream)
	var c event.Collector
	c.Add(streamtest.Example()...)
	whole := chatanswer.AppendResponse(nil, &c, opt)
	streamtest.Golden(t, "example.json", append(whole, '\n'))
	require.Empty(t, cmp.Diff(rebuild(t, stream).completion, decode(t, whole)))
}

type function struct{ Name, Arguments string }

type custom struct{ Name, Input string }

type toolCall struct {
	Index    *int `json:",omitempty"`
	ID, Type string
	Function *function
	Custom   *custom
}

type usage struct {
	PromptTokens            int64            `json:"prompt_tokens"`
	CompletionTokens        int64            `json:"completion_tokens"`
	TotalTokens             int64            `json:"total_tokens"`
	PromptTokensDetails     map[string]int64 `json:"prompt_tokens_details"`
	CompletionTokensDetails map[string]int64 `json:"completion_tokens_details"`
}

type logprobs struct {
	Content []struct{ Token string }
}

type choice struct {
	Content, Refusal, ReasoningContent, Reasoning string
	Annotations                                   []any
	ToolCalls                                     []toolCall
	Logprobs                                      *logprobs
	FinishReason                                  string
	Finished, Started                             bool
}

type completion struct {
	ID, Model string
	Created   int64
	Choices   []choice
	Usage     *usage
}

func parse[T any](t require.TestingT, raw []byte) (v T) {
	require.True(t, utf8.Valid(raw), "%q", raw)
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}

type delta struct {
	Role             string
	Content          *string
	Refusal          *string
	ReasoningContent *string `json:"reasoning_content"`
	Reasoning        *string
	Annotations      []any
	ToolCalls        []toolCall `json:"tool_calls"`
}

type wireChunk struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index          int
		Delta, Message *delta
		Logprobs       *logprobs
		FinishReason   *string `json:"finish_reason"`
	}
	Usage *usage
	Error *struct {
		Message, Type string
		Param, Code   *string
	}
}

func str(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func decode(t require.TestingT, raw []byte) (c completion) {
	w := parse[wireChunk](t, raw)
	require.Equal(t, "chat.completion", w.Object)
	c = completion{ID: w.ID, Model: w.Model, Created: w.Created, Usage: w.Usage}
	for i, ch := range w.Choices {
		m := ch.Message
		require.Equal(t, i, ch.Index)
		require.Equal(t, "assistant", m.Role)
		c.Choices = append(c.Choices, choice{
			Content: str(m.Content), Refusal: str(m.Refusal), ReasoningContent: str(m.ReasoningContent), Reasoning: str(m.Reasoning),
			Annotations: m.Annotations, ToolCalls: m.ToolCalls, Logprobs: ch.Logprobs, FinishReason: *ch.FinishReason,
		})
	}
	return c
}

type rebuilt struct {
	completion
	err        string
	dispatched []string
}

// rebuild decodes a stream as a strict client does: the role first, dense call indexes, id, type and name only in the
// first delta of a call, one finish_reason per choice, one end.
func rebuild(t require.TestingT, stream []byte) (r rebuilt) {
	require.True(t, strings.HasSuffix(string(stream), "\n\n"))
	done := false
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		if strings.HasPrefix(ev, ":") {
			continue
		}
		require.False(t, done || r.err != "", "nothing may follow the end: %s", ev)
		if dispatch, ok := strings.CutPrefix(ev, "event: tool_call_dispatch\ndata: "); ok {
			d := parse[struct {
				ChoiceIndex int      `json:"choice_index"`
				ToolCall    toolCall `json:"tool_call"`
			}](t, []byte(dispatch))
			seen := r.Choices[d.ChoiceIndex].ToolCalls[*d.ToolCall.Index]
			d.ToolCall.Index = nil
			require.Empty(t, cmp.Diff(seen, d.ToolCall), "the dispatched call is the whole call")
			r.dispatched = append(r.dispatched, fmt.Sprint(d.ChoiceIndex, d.ToolCall.ID))
			continue
		}
		if strings.HasPrefix(ev, "event: reasoning_dispatch\n") {
			continue
		}
		data, ok := strings.CutPrefix(ev, "data: ")
		require.True(t, ok && !strings.Contains(data, "\n"), "%q", ev)
		if data == "[DONE]" {
			done = true
			continue
		}
		w := parse[wireChunk](t, []byte(data))
		if w.Error != nil {
			r.err = w.Error.Type
			require.NotEmpty(t, w.Error.Message)
			continue
		}
		require.NotContains(t, data, `"error"`)
		require.Equal(t, "chat.completion.chunk", w.Object)
		if r.ID == "" {
			r.ID, r.Model, r.Created = w.ID, w.Model, w.Created
		}
		require.Equal(t, []any{r.ID, r.Model, r.Created}, []any{w.ID, w.Model, w.Created})
		if len(w.Choices) == 0 {
			require.NotNil(t, w.Usage)
			require.Nil(t, r.Usage, "one usage chunk")
			r.Usage = w.Usage
			continue
		}
		require.Len(t, w.Choices, 1)
		ch := w.Choices[0]
		for len(r.Choices) <= ch.Index {
			r.Choices = append(r.Choices, choice{})
		}
		c := &r.Choices[ch.Index]
		d := ch.Delta
		require.Equal(t, c.Started, d.Role == "", "the role comes first and once")
		require.False(t, c.Finished, "nothing follows the finish reason")
		c.Started = true
		c.Content += str(d.Content)
		c.Refusal += str(d.Refusal)
		c.ReasoningContent += str(d.ReasoningContent)
		c.Reasoning += str(d.Reasoning)
		c.Annotations = append(c.Annotations, d.Annotations...)
		if ch.Logprobs != nil {
			if c.Logprobs == nil {
				c.Logprobs = &logprobs{}
			}
			c.Logprobs.Content = append(c.Logprobs.Content, ch.Logprobs.Content...)
		}
		for _, tc := range d.ToolCalls {
			i := *tc.Index
			tc.Index = nil
			if i == len(c.ToolCalls) {
				require.NotEmpty(t, tc.ID)
				require.True(t, tc.Type == "function" && tc.Function.Name != "" || tc.Type == "custom" && tc.Custom.Name != "", data)
				c.ToolCalls = append(c.ToolCalls, tc)
				continue
			}
			require.Less(t, i, len(c.ToolCalls), "sparse index")
			require.Empty(t, tc.ID+tc.Type)
			if old := &c.ToolCalls[i]; old.Custom != nil {
				require.Empty(t, tc.Custom.Name)
				old.Custom.Input += tc.Custom.Input
			} else {
				require.Empty(t, tc.Function.Name)
				old.Function.Arguments += tc.Function.Arguments
			}
		}
		if ch.FinishReason != nil {
			c.FinishReason, c.Finished = *ch.FinishReason, true
		}
	}
	require.True(t, done || r.err != "", "no terminal")
	for i := range r.Choices {
		require.True(t, r.err != "" || r.Choices[i].Finished)
		r.Choices[i].Finished, r.Choices[i].Started = false, false
	}
	return r
}

// joined appends a run of reasoning to those before it.
func joined(before, run string) string {
	if before == "" || run == "" {
		return before + run
	}
	return before + "\n" + run
}

// expect returns the choice that a client must receive for a. Aborted calls have Type "aborted".
func expect(a *event.Answer, started map[int32]bool, o chatanswer.Options) (w choice, complete int) {
	valid := func(b []byte) string { return string(jsonw.AppendValid(nil, b)) }
	for i := range a.Blocks {
		b := &a.Blocks[i]
		switch b.Kind {
		case event.Reasoning:
			if o.Reasoning == chatanswer.ReasoningContent || o.Reasoning == chatanswer.ReasoningBoth {
				w.ReasoningContent = joined(w.ReasoningContent, valid(b.Data))
			}
			if o.Reasoning == chatanswer.ReasoningPlain || o.Reasoning == chatanswer.ReasoningBoth {
				w.Reasoning = joined(w.Reasoning, valid(b.Data))
			}
		case event.Text:
			w.Content += valid(b.Data)
			for _, n := range b.Annotations {
				var v any
				_ = json.Unmarshal(n, &v)
				w.Annotations = append(w.Annotations, v)
			}
		case event.Refusal:
			w.Refusal += valid(b.Data)
		case event.ToolStart, event.ToolAbort:
			ok := b.Kind == event.ToolStart && b.Flags.Has(event.Complete)
			if !started[b.Call] || b.Flags.Has(event.Server) || b.Flags.Has(event.InReasoning) && !o.DispatchInReasoning || !ok && o.WholeCalls {
				continue
			}
			tc := toolCall{Type: "function", Function: &function{Name: b.Name, Arguments: valid(b.Data)}}
			if b.Flags.Has(event.Custom) {
				tc = toolCall{Type: "custom", Custom: &custom{Name: b.Name, Input: valid(b.Data)}}
			}
			switch {
			case b.Cut():
				tc.Type = "cut"
			case !ok:
				tc.Type = "aborted"
			case tc.Function != nil && tc.Function.Arguments == "":
				tc.Function.Arguments = "{}" // as sent to clients
			}
			if ok {
				complete++
			}
			w.ToolCalls = append(w.ToolCalls, tc)
		}
	}
	return w, complete
}

func TestStreamProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "n")
		opt := chatanswer.Options{
			ID: "chatcmpl-r", Model: `de"mo`, Created: 5,
			Reasoning:    rapid.SampledFrom([]chatanswer.ReasoningField{chatanswer.ReasoningContent, chatanswer.ReasoningPlain, chatanswer.ReasoningBoth, chatanswer.ReasoningNone}).Draw(rt, "reasoning"),
			IncludeUsage: rapid.Bool().Draw(rt, "usage"), WholeCalls: rapid.Bool().Draw(rt, "whole"),
			DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"), ToolDispatch: rapid.Bool().Draw(rt, "early"),
		}
		events := streamtest.Events(rt, n, !opt.WholeCalls)
		s := chatanswer.NewEncoder(opt)
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
		require.Empty(rt, r.err)
		if opt.IncludeUsage {
			require.Equal(rt, strings.Count(string(stream), "data: {\"id\"")-1, strings.Count(string(stream), `"usage":null`))
		}

		var c event.Collector
		c.Add(events...)
		whole := decode(rt, chatanswer.AppendResponse(nil, &c, opt))
		require.Len(rt, r.Choices, n)
		dispatched := map[string]bool{}
		for _, id := range r.dispatched {
			dispatched[id] = true
		}
		for i := range r.Choices {
			got := &r.Choices[i]
			want, complete := expect(&c.Answers[i], streamtest.Started(events, int32(i)), opt)
			require.Len(rt, got.ToolCalls, len(want.ToolCalls))
			ids := map[string]bool{}
			var kept []toolCall
			for k, tc := range got.ToolCalls {
				require.False(rt, ids[tc.ID], "id %s twice", tc.ID)
				ids[tc.ID] = true
				w := want.ToolCalls[k]
				if w.Type == "aborted" || w.Type == "cut" {
					require.True(rt, tc.Type == "custom" || !json.Valid([]byte(tc.Function.Arguments)), "an aborted call reads as JSON")
					if w.Type == "cut" { // the whole response has it as well
						kept = append(kept, tc)
					}
					continue
				}
				w.ID = tc.ID
				require.Empty(rt, cmp.Diff(w, tc))
				require.Equal(rt, opt.ToolDispatch && (tc.Custom != nil || json.Valid([]byte(tc.Function.Arguments))), dispatched[fmt.Sprint(i, tc.ID)])
				kept = append(kept, tc)
			}
			got.ToolCalls, want.ToolCalls = kept, kept
			want.FinishReason = got.FinishReason
			require.Empty(rt, cmp.Diff(want, *got))
			if complete == 0 {
				require.NotEqual(rt, "tool_calls", got.FinishReason)
			}
		}
		if !opt.IncludeUsage {
			r.Usage = whole.Usage
		}
		require.Empty(rt, cmp.Diff(r.completion, whole))
		require.Equal(rt, c.Usage.Prompt, whole.Usage.PromptTokens)
		require.LessOrEqual(rt, whole.Usage.PromptTokensDetails["cached_tokens"], whole.Usage.PromptTokens)
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
	opt := chatanswer.Options{
		ID: "chatcmpl-r", Model: "m", WholeCalls: rapid.Bool().Draw(rt, "whole"), DispatchInReasoning: rapid.Bool().Draw(rt, "dispatch"),
		Reasoning: chatanswer.ReasoningField(rapid.IntRange(0, 3).Draw(rt, "reasoning")), ToolDispatch: rapid.Bool().Draw(rt, "early"), IncludeUsage: true,
	}
	s := chatanswer.NewEncoder(opt)
	var stream []byte
	for _, e := range events {
		stream = s.Append(stream, scrub(e)...)
	}
	r := rebuild(rt, s.Finish(stream))
	for _, c := range r.Choices {
		ids := map[string]bool{}
		for _, tc := range c.ToolCalls {
			require.False(rt, ids[tc.ID], "id %s twice", tc.ID)
			ids[tc.ID] = true
		}
	}
	var c event.Collector
	c.Add(events...)
	require.True(rt, json.Valid(chatanswer.AppendResponse(nil, &c, opt)))
}

func TestAnySequence(t *testing.T) { rapid.Check(t, anySequence) }

func FuzzStream(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anySequence)) }

func TestStreamPaths(t *testing.T) {
	opt := chatanswer.Options{ID: "chatcmpl-1", Model: "m"}
	text := event.Event{Kind: event.Text, Data: []byte("hi")}
	stop := event.Event{Kind: event.Finish, Why: event.Stop}
	run := func(o chatanswer.Options, events ...event.Event) rebuilt {
		s := chatanswer.NewEncoder(o)
		return rebuild(t, s.Finish(s.Append(nil, events...)))
	}
	t.Run("no finish", func(t *testing.T) {
		open := event.Event{Kind: event.ToolStart, Data: []byte("f")}
		second := event.Event{Kind: event.Text, Choice: 1, Data: text.Data}
		require.Equal(t, "server_error", run(opt).err)
		require.Equal(t, "server_error", run(opt, event.Event{Kind: event.Start}).err)
		require.Equal(t, "server_error", run(opt, text, open).err)
		require.Equal(t, "server_error", run(opt, text, stop, event.Event{Kind: event.Start, Choice: 1}).err, "one of two choices")
		r := run(opt, text, second)
		require.Empty(t, r.err)
		require.Equal(t, "stop", r.Choices[1].FinishReason)
		require.Equal(t, "tool_calls", run(opt, open, event.Event{Kind: event.ToolEnd, Flags: event.Complete}).Choices[0].FinishReason)
	})
	t.Run("error event", func(t *testing.T) {
		r := run(opt, text, event.Event{Kind: event.Error, Why: event.EngineFailed, Data: []byte("gone")}, text, stop)
		require.Equal(t, "server_error", r.err)
		require.Equal(t, "hi", r.Choices[0].Content)
	})
	t.Run("finish without content", func(t *testing.T) {
		require.Equal(t, "stop", run(opt, stop).Choices[0].FinishReason)
	})
	t.Run("finish reasons", func(t *testing.T) {
		start := event.Event{Kind: event.ToolStart, Data: []byte("f")}
		end := event.Event{Kind: event.ToolEnd, Flags: event.Complete}
		abort := event.Event{Kind: event.ToolAbort, Why: event.Truncated}
		refusal := event.Event{Kind: event.Refusal, Data: []byte("no")}
		for _, c := range []struct {
			want   string
			why    event.Why
			events []event.Event
		}{
			{"stop", event.Stop, nil},
			{"stop", event.StopSequence, nil},
			{"stop", event.ToolCalls, nil},
			{"stop", event.ToolCalls, []event.Event{start, abort}},
			{"tool_calls", event.ToolCalls, []event.Event{start, end}},
			{"tool_calls", event.Stop, []event.Event{start, end}},
			{"length", event.Length, []event.Event{start, end}},
			{"length", event.ContextFull, nil},
			{"content_filter", event.ContentFilter, nil},
			{"content_filter", event.Refused, nil},
			{"stop", event.Refused, []event.Event{refusal}},
			{"stop", event.Paused, nil},
		} {
			r := run(opt, append(c.events, event.Event{Kind: event.Finish, Why: c.why})...)
			require.Equal(t, c.want, r.Choices[0].FinishReason, "%v after %v", c.why, c.events)
		}
	})
	t.Run("ids", func(t *testing.T) {
		o := opt
		o.ID = "chatcmpl-abc"
		call := func(choice, n int32, id string) []event.Event {
			return []event.Event{
				{Kind: event.ToolStart, Choice: choice, Call: n, ID: []byte(id), Data: []byte("f")},
				{Kind: event.ToolEnd, Choice: choice, Call: n, Flags: event.Complete},
			}
		}
		events := append(call(0, 0, "functions.f:0"), call(0, 1, "functions.f:0")...)
		events = append(append(events, call(0, 2, "")...), call(1, 0, "")...)
		r := run(o, append(events, stop, event.Event{Kind: event.Finish, Choice: 1, Why: event.Stop})...)
		var ids []string
		for _, c := range r.Choices {
			for _, tc := range c.ToolCalls {
				ids = append(ids, tc.ID)
			}
		}
		require.Equal(t, []string{"functions.f:0", "call_abc_1", "call_abc_2", "call_abc_1x0"}, ids)
	})
	t.Run("split character", func(t *testing.T) {
		r := run(opt, event.Event{Kind: event.Text, Data: []byte("\xf0\x9f")}, event.Event{Kind: event.Text, Data: []byte("\x98\x80 \xe2\x82")},
			event.Event{Kind: event.Refusal, Part: 1, Data: []byte("\xac")}, stop)
		require.Equal(t, "😀 \uFFFD", r.Choices[0].Content)
		require.Equal(t, "\uFFFD", r.Choices[0].Refusal)
	})
	t.Run("logprobs", func(t *testing.T) {
		lp := event.Event{Kind: event.Logprobs, Data: []byte(`[{"token":"h"},` + "\n" + `{"token":"i"}]`)}
		events := []event.Event{text, lp, {Kind: event.Logprobs, Data: []byte("[")}, stop}
		r := run(opt, events...)
		require.Len(t, r.Choices[0].Logprobs.Content, 2)
		var c event.Collector
		c.Add(events...)
		r.Usage = &usage{}
		whole := decode(t, chatanswer.AppendResponse(nil, &c, opt))
		whole.Usage = r.Usage
		require.Empty(t, cmp.Diff(r.completion, whole))
	})
	t.Run("custom tool", func(t *testing.T) {
		for _, whole := range []bool{false, true} {
			o := opt
			o.WholeCalls, o.ToolDispatch = whole, true
			o.Custom = func(tool string) bool { return tool == "apply_patch" }
			events := []event.Event{
				{Kind: event.ToolStart, Data: []byte("apply_patch")}, {Kind: event.ToolArgs, Data: []byte(`{"input":"*** Begin\`)},
				{Kind: event.ToolArgs, Data: []byte(`n+é"}`)}, {Kind: event.ToolEnd, Flags: event.Complete}, stop,
			}
			r := run(o, events...)
			require.Empty(t, cmp.Diff([]toolCall{{ID: "call_1_0", Type: "custom", Custom: &custom{Name: "apply_patch", Input: "*** Begin\n+é"}}}, r.Choices[0].ToolCalls))
			require.Len(t, r.dispatched, 1)
			var c event.Collector
			c.Add(events...)
			require.Empty(t, cmp.Diff(r.Choices, decode(t, chatanswer.AppendResponse(nil, &c, o)).Choices))
		}
	})
	t.Run("stray choices", func(t *testing.T) {
		s := chatanswer.NewEncoder(opt)
		bad, worse := text, text
		bad.Choice, worse.Choice = -1, 1<<30
		r := rebuild(t, s.Finish(s.Append(nil, bad, worse, stop)))
		require.Len(t, r.Choices, 1)
		require.Equal(t, 2, s.Dropped())
	})
	t.Run("continuous usage", func(t *testing.T) {
		o := opt
		o.ContinuousUsage, o.IncludeUsage, o.SystemFingerprint, o.ServiceTier = true, true, "fp", "default"
		s := chatanswer.NewEncoder(o)
		out := string(s.Append(nil, event.Event{Kind: event.Start, Usage: &event.Tokens{Prompt: 3}}, text))
		require.Equal(t, 2, strings.Count(out, `"usage":{"prompt_tokens":3,`))
		require.Contains(t, out, `"model":"m","system_fingerprint":"fp","service_tier":"default","choices"`)
	})
	t.Run("cache writes, two annotations, no cause", func(t *testing.T) {
		note := event.Event{Kind: event.Annotation, Data: []byte(`{"type":"url_citation"}`)}
		events := []event.Event{
			{Kind: event.Start, Usage: &event.Tokens{Prompt: 9, CacheWrite: 4}}, text, note, note, {Kind: event.Finish},
		}
		o := opt
		o.IncludeUsage = true
		r := run(o, events...)
		require.EqualValues(t, 4, r.Usage.PromptTokensDetails["cache_write_tokens"])
		require.Len(t, r.Choices[0].Annotations, 2)
		require.Equal(t, "stop", r.Choices[0].FinishReason)
		var c event.Collector
		c.Add(events...)
		require.Empty(t, cmp.Diff(r.completion, decode(t, chatanswer.AppendResponse(nil, &c, o))))
	})
	t.Run("fail before anything", func(t *testing.T) {
		s := chatanswer.NewEncoder(opt)
		require.Equal(t, `data: {"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`+"\n\n",
			string(s.Fail(nil, apierr.New(event.Invalid, "no"))))
	})
}

func TestStreamAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "m", IncludeUsage: true, Reasoning: chatanswer.ReasoningBoth})
	for _, e := range []event.Event{
		{Kind: event.Text, Data: []byte(" some \"word\" é")},
		{Kind: event.Reasoning, Data: []byte(" some \"word\" é")},
		{Kind: event.ToolStart, Data: []byte("f")},
		{Kind: event.ToolArgs, Data: []byte(`{"a":"b"`)},
	} {
		one := []event.Event{e}
		dst := s.Append(nil, one...)
		if e.Kind != event.ToolStart {
			require.Zero(t, testing.AllocsPerRun(100, func() { dst = s.Append(dst[:0], one...) }), e.Kind)
		}
	}
}

func ExampleStream() {
	s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "demo", IncludeUsage: true})
	out := s.Append(nil,
		event.Event{Kind: event.Text, Data: []byte("Hi")},
		event.Event{Kind: event.Usage, Usage: &event.Tokens{Prompt: 12, Output: 1}},
		event.Event{Kind: event.Finish, Why: event.Stop},
	)
	fmt.Printf("%s", s.Finish(out))
	// Output:
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"demo","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}
	//
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"demo","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null}
	//
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"demo","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}
	//
	// data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"demo","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}
	//
	// data: [DONE]
}

func ExampleAppendResponse() {
	var c event.Collector
	c.Add(
		event.Event{Kind: event.Text, Data: []byte("Hi")},
		event.Event{Kind: event.Finish, Why: event.Stop},
	)
	fmt.Printf("%s\n", chatanswer.AppendResponse(nil, &c, chatanswer.Options{ID: "chatcmpl-1", Model: "demo"}))
	// Output:
	// {"id":"chatcmpl-1","object":"chat.completion","created":0,"model":"demo","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}
}

func BenchmarkStream(b *testing.B) {
	s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "m"})
	text := []event.Event{{Kind: event.Text, Data: []byte(" word")}}
	dst := s.Append(nil, text...)
	b.ReportAllocs()
	for b.Loop() {
		dst = s.Append(dst[:0], text...)
	}
	b.SetBytes(int64(len(dst)))
}
