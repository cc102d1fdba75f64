// SPDX-License-Identifier: Apache-2.0

package completionsanswer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/completionsanswer"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/internal/streamtest"
)

// example returns a response of two choices with log probabilities.
func example() []event.Event {
	return []event.Event{
		{Kind: event.Start, Call: -1, Usage: &event.Tokens{Prompt: 12, Cached: 8}},
		{Kind: event.Text, Call: -1, Data: []byte("Once ")},
		{Kind: event.Logprobs, Call: -1, Data: []byte(`[{"token":"Once","logprob":-0.10,"bytes":[79],"top_logprobs":[{"token":"Once","logprob":-0.10},{"token":"In","logprob":-2e0},{"token":"Once","logprob":-9}]},{"token":" é","logprob":-1}]`)},
		{Kind: event.Text, Choice: 1, Call: -1, Data: []byte("In \xe2\x82")},
		{Kind: event.Text, Choice: 1, Call: -1, Data: []byte("\xac\"")},
		{Kind: event.Text, Call: -1, Data: []byte("é\n")},
		{Kind: event.Logprobs, Call: -1, Data: []byte(`[{"token":"\n","logprob":null,"top_logprobs":[]}]`)},
		{Kind: event.Finish, Call: -1, Why: event.Length},
		{Kind: event.Usage, Call: -1, Usage: &event.Tokens{Prompt: 12, Cached: 8, Output: 9}},
		{Kind: event.Finish, Choice: 1, Call: -1, Why: event.Stop},
	}
}

func TestStreamExample(t *testing.T) {
	opt := completionsanswer.Options{ID: "cmpl-1", Model: "demo", Created: 1700000000, IncludeUsage: true, SystemFingerprint: "fp"}
	s := completionsanswer.NewEncoder(opt)
	streamtest.Golden(t, "example.sse", s.Finish(s.Append(nil, example()...)))
	require.Zero(t, s.Dropped())
	var c event.Collector
	c.Add(example()...)
	streamtest.Golden(t, "example.json", append(completionsanswer.AppendResponse(nil, &c, opt), '\n'))
}

// chunk is a chunk as decoded by a client.
type chunk struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Text         *string
		Index        int
		FinishReason *string `json:"finish_reason"`
		Logprobs     *struct {
			Tokens        []string
			TokenLogprobs []*float64            `json:"token_logprobs"`
			TopLogprobs   []*map[string]float64 `json:"top_logprobs"`
			TextOffset    []int                 `json:"text_offset"`
		}
	}
	Usage *struct {
		PromptTokens        int64            `json:"prompt_tokens"`
		CompletionTokens    int64            `json:"completion_tokens"`
		TotalTokens         int64            `json:"total_tokens"`
		PromptTokensDetails map[string]int64 `json:"prompt_tokens_details"`
	}
	Error *struct{ Message, Type string }
}

type rebuilt struct {
	texts, finishes []string
	err             string
	usage           bool
}

// rebuild decodes a stream as a strict client does: one finish_reason per choice, nothing after it, one end.
func rebuild(t require.TestingT, stream []byte, includeUsage bool) (r rebuilt) {
	require.True(t, utf8.Valid(stream))
	done := false
	for ev := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		if strings.HasPrefix(ev, ":") {
			continue
		}
		require.False(t, done || r.err != "", "nothing may follow the end: %s", ev)
		data, ok := strings.CutPrefix(ev, "data: ")
		require.True(t, ok && !strings.Contains(data, "\n"), "%q", ev)
		if data == "[DONE]" {
			done = true
			continue
		}
		var c chunk
		require.NoError(t, json.Unmarshal([]byte(data), &c), data)
		if c.Error != nil {
			require.NotEmpty(t, c.Error.Message)
			r.err = c.Error.Type
			continue
		}
		require.Equal(t, "cmpl-1 text_completion demo", c.ID+" "+c.Object+" "+c.Model)
		if len(c.Choices) == 0 {
			require.NotNil(t, c.Usage)
			require.False(t, r.usage)
			r.usage = true
			continue
		}
		require.Len(t, c.Choices, 1)
		ch := c.Choices[0]
		for len(r.texts) <= ch.Index {
			r.texts, r.finishes = append(r.texts, ""), append(r.finishes, "")
		}
		require.Empty(t, r.finishes[ch.Index])
		r.texts[ch.Index] += *ch.Text
		if ch.FinishReason != nil {
			r.finishes[ch.Index] = *ch.FinishReason
		}
		if l := ch.Logprobs; l != nil {
			require.Len(t, l.TokenLogprobs, len(l.Tokens))
			require.Len(t, l.TopLogprobs, len(l.Tokens))
			require.Len(t, l.TextOffset, len(l.Tokens))
		}
	}
	require.True(t, done || r.err != "")
	require.True(t, r.err != "" || r.usage == includeUsage)
	return r
}

// TestStreamProperty compares random responses with the result of a client.
func TestStreamProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "choices")
		events := streamtest.Events(rt, n, true)
		opt := completionsanswer.Options{ID: "cmpl-1", Model: "demo", IncludeUsage: rapid.Bool().Draw(rt, "usage"), ContinuousUsage: rapid.Bool().Draw(rt, "continuous")}
		s := completionsanswer.NewEncoder(opt)
		stream := s.AppendKeepAlive(nil)
		for _, e := range events {
			stream = s.Append(stream, e)
		}
		r := rebuild(rt, s.Finish(stream), opt.IncludeUsage)
		require.Empty(rt, r.err)

		var c event.Collector
		c.Add(events...)
		var whole chunk
		require.NoError(rt, json.Unmarshal(completionsanswer.AppendResponse(nil, &c, opt), &whole))
		require.Len(rt, whole.Choices, n)
		require.Equal(rt, whole.Usage.PromptTokens+whole.Usage.CompletionTokens, whole.Usage.TotalTokens)
		for i := range n {
			var want strings.Builder
			for _, b := range c.Answers[i].Blocks {
				if b.Kind == event.Text || b.Kind == event.Refusal {
					want.Write(jsonw.AppendValid(nil, b.Data))
				}
			}
			require.Equal(rt, want.String(), r.texts[i])
			require.Equal(rt, want.String(), *whole.Choices[i].Text)
			require.Equal(rt, r.finishes[i], *whole.Choices[i].FinishReason)
			require.Contains(rt, []string{"stop", "length", "content_filter"}, r.finishes[i])
		}
		dropped := 0
		for _, e := range events {
			switch e.Kind {
			case event.Start, event.Usage, event.Text, event.Refusal, event.Finish:
			default:
				dropped++
			}
		}
		require.Equal(rt, dropped, s.Dropped())
	})
}

// TestStreamAny encodes events in arbitrary order.
func TestStreamAny(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "demo"})
		rebuild(rt, s.Finish(s.Append(nil, streamtest.Any(rt)...)), false)
	})
}

func TestStreamEnds(t *testing.T) {
	open := func() *completionsanswer.Encoder {
		return completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "demo"})
	}
	s := open()
	out := s.Finish(nil)
	require.Equal(t, "server_error", rebuild(t, out, false).err, "nothing was answered")

	s = open()
	out = s.Append(nil, event.Event{Kind: event.Text, Call: -1, Data: []byte("a")})
	out = s.Finish(out)
	require.Contains(t, string(out), `"finish_reason":"stop"`)
	require.Empty(t, rebuild(t, out, false).err)
	require.Empty(t, s.Finish(nil))
	require.Empty(t, s.Append(nil, event.Event{Kind: event.Text, Call: -1, Data: []byte("b")}))
	require.Empty(t, s.Fail(nil, apierr.Overloaded(0)))

	s = open()
	out = s.Append(nil, event.Event{Kind: event.Error, Call: -1, Why: event.Invalid, Data: []byte("bad")})
	require.Equal(t, "invalid_request_error", rebuild(t, out, false).err)

	// Finish reasons, events with invalid choices, malformed log probabilities.
	for why, want := range map[event.Why]string{
		event.Stop: "stop", event.StopSequence: "stop", event.ToolCalls: "stop", event.Length: "length", event.ContextFull: "length",
		event.ContentFilter: "content_filter", event.Refused: "stop",
	} {
		s = open()
		out = s.Append(nil,
			event.Event{Kind: event.Text, Choice: -1, Call: -1}, event.Event{Kind: event.Logprobs, Call: -1, Data: []byte(`{}`)},
			event.Event{Kind: event.Logprobs, Call: -1, Data: []byte(`[{}]`)}, event.Event{Kind: event.Logprobs, Call: -1, Data: []byte(`[]`)},
			event.Event{Kind: event.Finish, Call: -1, Why: why}, event.Event{Kind: event.Text, Call: -1, Data: []byte("late")})
		require.Equal(t, want, rebuild(t, s.Finish(out), false).finishes[0])
		require.Equal(t, 5, s.Dropped())
	}
}

// TestLogprobsOfAllTokens encodes a list of candidates that exceeds the limits of the APIs.
func TestLogprobsOfAllTokens(t *testing.T) {
	list := []byte(`[{"token":"a","logprob":-1,"top_logprobs":[`)
	for i := range 200 {
		list = fmt.Appendf(list, `{"token":"t%d","logprob":-%d},`, i%100, i)
	}
	list = append(list, `{"logprob":0}]}]`...)
	s := completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "demo"})
	out := s.Append(nil, event.Event{Kind: event.Logprobs, Call: -1, Data: list})
	var c chunk
	require.NoError(t, json.Unmarshal(out[len("data: "):], &c))
	require.Len(t, *c.Choices[0].Logprobs.TopLogprobs[0], 100)
}

func TestStreamAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "demo"})
	dst := make([]byte, 0, 4096)
	events := []event.Event{
		{Kind: event.Text, Call: -1, Data: []byte("some text")}, {Kind: event.Text, Call: -1, Data: []byte("more \xe2\x82")},
		{Kind: event.Text, Call: -1, Data: []byte("\xac")},
		{Kind: event.Logprobs, Call: -1, Data: []byte(`[{"token":"\u00e9","logprob":-0.5,"top_logprobs":[{"token":"b","logprob":-1}]}]`)},
	}
	dst = s.Append(dst[:0], events...)
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = s.Append(dst[:0], events...) }))
}

func BenchmarkStream(b *testing.B) {
	s := completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-0123456789", Model: "some-model", Created: 1700000000})
	e := event.Event{Kind: event.Text, Call: -1, Data: []byte(" token")}
	var dst []byte
	dst = s.Append(dst[:0], e)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = s.Append(dst[:0], e)
	}
}

func ExampleStream() {
	s := completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "demo", Created: 1700000000})
	var out []byte
	out = s.Append(out, event.Event{Kind: event.Text, Call: -1, Data: []byte("Hi")})
	out = s.Append(out, event.Event{Kind: event.Finish, Call: -1, Why: event.Stop})
	out = s.Finish(out)
	fmt.Print(string(out))
	// Output:
	// data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"demo","choices":[{"text":"Hi","index":0,"logprobs":null,"finish_reason":null}]}
	//
	// data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"demo","choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}]}
	//
	// data: [DONE]
}
