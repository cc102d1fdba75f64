// SPDX-License-Identifier: Apache-2.0

package completionsanswer_test

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/completionsanswer"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/sse"
)

func show(e event.Event) string {
	s := fmt.Sprintf("%d %v", e.Choice, e)
	if e.Usage != nil {
		s += fmt.Sprintf(" %d/%d>%d", e.Usage.Prompt, e.Usage.Cached, e.Usage.Output)
	}
	if e.Tokens > 0 {
		s += fmt.Sprintf(" tokens=%d", e.Tokens)
	}
	return s
}

func TestStreamDecoderServers(t *testing.T) {
	const cut = `0 error "The engine ended before the answer was finished." why=engine_failed`
	for _, c := range []struct {
		name string
		opt  *completionsanswer.DecoderOptions
		in   []string
		want []string
	}{
		{
			name: "vLLM",
			in: []string{
				`{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":[1,2],"token_ids":[5,6]}],"usage":null}`,
				`{"id":"cmpl-1","choices":[{"index":0,"text":"","finish_reason":null,"token_ids":[7]}]}`,
				`{"id":"cmpl-1","choices":[{"index":0,"text":"!","finish_reason":"stop","stop_reason":"\n","token_ids":[]}]}`,
				`{"id":"cmpl-1","choices":[],"usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}`,
				"[DONE]", `{"choices":[{"index":0,"text":"late"}]}`,
			},
			want: []string{"0 start", `0 text "Hi" tokens=2`, `0 text "" tokens=1`, `0 text "!"`, `0 finish "\n" why=stop_sequence`, "0 usage 2/1>3"},
		},
		{
			name: "stop tokens",
			in: []string{
				`{"choices":[{"index":0,"text":"","finish_reason":"stop","stop_reason":151645,"token_ids":[151645]},{"index":1,"text":"","finish_reason":"stop","matched_stop":7}]}`,
				`{"choices":[{"index":2,"text":"","finish_reason":"stop","stop_reason":-1},{"index":3,"text":"","finish_reason":"length","stop_reason":7}]}`,
			},
			want: []string{"0 start", `0 text "" tokens=1`, `0 finish id="151645" why=stop`, `1 finish id="7" why=stop`, "2 finish why=stop", "3 finish why=length"},
		},
		{
			name: "several answers, usage in every chunk, a length stop",
			in: []string{
				`{"choices":[{"index":1,"text":"b","finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
				`{"choices":[{"text":"a"},{"index":1,"text":"c","finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":3}}`,
				`{"choices":[{"index":0,"text":"d","finish_reason":"content_filter"},{"index":1,"text":"late"},{"index":-7,"text":"stray"}]}`,
			},
			want: []string{"0 start 3/0>1", `1 text "b"`, "0 usage 3/0>3", `0 text "a"`, `1 text "c"`, "1 finish why=length", `0 text "d"`, "0 finish why=content_filter"},
		},
		{
			name: "log probabilities",
			in: []string{
				`{"choices":[{"index":0,"text":"a\u00e9","logprobs":{"tokens":["a","\u00e9",7],"token_logprobs":[null,-1.50],"top_logprobs":[null,{"\u00e9":-1.50,"x":-2}],"text_offset":[0,1]}}]}`,
				`{"choices":[{"index":0,"text":"b","logprobs":{"content":[{"token":"b","logprob":-1}]}},{"index":1,"logprobs":{"tokens":[]}}]}`,
				`{"choices":[{"index":0,"text":"","finish_reason":"stop"},{"index":1,"finish_reason":"stop"}]}`,
			},
			want: []string{
				"0 start", `0 text "aé"`,
				`0 logprobs "[{\"token\":\"a\",\"logprob\":null,\"bytes\":null,\"top_logprobs\":[]},{\"token\":\"\\u00e9\",\"logprob\":-1.50,\"bytes\":null,\"top_logprobs\":[{\"token\":\"é\",\"logprob\":-1.50,\"bytes\":null},{\"token\":\"x\",\"logprob\":-2,\"bytes\":null}]}]"`,
				`0 text "b"`, `0 logprobs "[{\"token\":\"b\",\"logprob\":-1}]"`, "0 finish why=stop", "1 finish why=stop",
			},
		},
		{
			name: "usage where some servers of the Chat API have it",
			in: []string{
				`{"choices":[{"text":"a","usage":{"prompt_tokens":3,"completion_tokens":1}}]}`,
				`{"choices":[{"text":"","finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":2}}}`,
			},
			want: []string{"0 start 3/0>1", `0 text "a"`, "0 usage 3/0>2", "0 finish why=stop"},
		},
		{name: "errors", in: []string{`{"choices":[{"text":"a"}]}`, `{"error":{"message":"m","type":"server_error","code":null}}`},
			want: []string{"0 start", `0 text "a"`, `0 error "m" why=engine_failed`}},
		{name: "an error instead of an answer", in: []string{`{"object":"error","message":"m","code":404}`}, want: []string{`0 error "m" why=not_found`}},
		{name: "an error with a choice", in: []string{`{"error":{"message":"m","code":503},"choices":[{"text":"a","finish_reason":"error"}]}`},
			want: []string{"0 start", `0 text "a"`, `0 error "m" why=overloaded`}},
		{name: "an answer that was given up", in: []string{`{"choices":[{"text":"a","finish_reason":"abort"}]}`},
			want: []string{"0 start", `0 text "a"`, `0 error "The engine gave up the answer." why=engine_failed`}},
		{name: "characters that are cut in UTF-16", in: []string{`{"choices":[{"text":"a\ud83d"}]}`, `{"choices":[{"text":"\ude00\ud83d","finish_reason":"stop"}]}`},
			want: []string{"0 start", `0 text "a"`, `0 text "😀"`, `0 text "�"`, "0 finish why=stop"}},
		{name: "cut", in: []string{`{"choices":[{"text":"a"}]}`, "[DONE]"}, want: []string{"0 start", `0 text "a"`, cut}},
		{name: "nothing", want: []string{cut}},
		{name: "an end without a reason", opt: &completionsanswer.DecoderOptions{DoneFinishes: true}, in: []string{`{"choices":[{"text":"a"}]}`, "[DONE]"},
			want: []string{"0 start", `0 text "a"`, "0 finish why=stop"}},
		{
			name: "malformed, and not chunks", in: []string{
				`{"choices":[{"text":"a"`, `7`, `{"choices":[1]}`, `{"choices":1}`, `{}`, `{"a":1}`, "", `{"choices":[{"text":null,"finish_reason":""}]}`,
				`{"choices":[{"text":"b","finish_reason":"stop"}]}`,
			},
			want: []string{
				"choices[0].text: unexpected end of JSON at byte 23", "an object was expected, not a number at byte 0",
				"choices[0]: an object was expected, not a number at byte 12", "choices: an array of choices was expected, not a number at byte 11",
				"0 start", `0 text "b"`, "0 finish why=stop",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := completionsanswer.NewDecoder(c.opt)
			for range 2 { // the second time after Reset
				var got []string
				var all []event.Event
				for _, l := range c.in {
					events, err := d.Append(nil, nil, []byte(l))
					if err != nil {
						got = append(got, err.Error())
					}
					for _, e := range events {
						got = append(got, show(e))
						all = append(all, e.Clone())
					}
				}
				for _, e := range d.Finish(nil) {
					got = append(got, show(e))
					all = append(all, e)
				}
				require.Empty(t, cmp.Diff(c.want, got))
				require.NoError(t, grammar(all))
				require.True(t, d.Ended())
				d.Reset()
			}
		})
	}
}

// grammar checks events whose only part is text, with index 0.
func grammar(events []event.Event) error { return streamtest.CheckGrammar(events, true) }

func TestTokenIDs(t *testing.T) {
	d := completionsanswer.NewDecoder(nil)
	_, err := d.Append(nil, nil, []byte(`{"id":"cmpl-9","model":"m","choices":[{"text":"a","token_ids":[5,6,-1,4294967296]},{"index":1,"text":"b","token_ids":[7]}]}`))
	require.NoError(t, err)
	require.Equal(t, []uint32{5, 6}, d.TokenIDs(0))
	require.Equal(t, []uint32{7}, d.TokenIDs(1))
	require.Empty(t, d.TokenIDs(2))
	require.Empty(t, d.TokenIDs(-1))
	require.Equal(t, "cmpl-9 m", d.ID()+" "+d.Model())
	_, err = d.Append(nil, nil, []byte(`{"choices":[{"text":"c"}]}`))
	require.NoError(t, err)
	require.Empty(t, d.TokenIDs(0))
	require.Zero(t, d.Dropped())

	// Events of other types.
	for _, typ := range []string{"ping", "error"} {
		got, err := d.Append(nil, []byte(typ), []byte("text"))
		require.NoError(t, err)
		require.Len(t, got, map[string]int{"ping": 0, "error": 1}[typ])
	}
}

// say returns the part of a choice that the API can express: one text of valid UTF-8, including refusals; one of the
// causes Stop, Length and ContentFilter; no stop sequence.
func say(a *event.Answer) (out event.Answer) {
	var text []byte
	for _, b := range a.Blocks {
		if b.Kind == event.Text || b.Kind == event.Refusal {
			text = jsonw.AppendValid(text, b.Data)
		}
	}
	if len(text) > 0 {
		out.Blocks = []event.Block{{Kind: event.Text, Call: -1, Data: text}}
	}
	switch a.Finish {
	case event.Length, event.ContextFull:
		out.Finish = event.Length
	case event.ContentFilter:
		out.Finish = a.Finish
	default:
		out.Finish = event.Stop
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "choices")
		events := streamtest.Events(rt, n, true)
		var direct event.Collector
		direct.Add(events...)
		opt := completionsanswer.Options{ID: "cmpl-1", Model: "m", IncludeUsage: true}
		s := completionsanswer.NewEncoder(opt)
		stream := s.Finish(s.Append(nil, events...))

		var decoded, whole event.Collector
		var all []event.Event
		r, d := sse.Reader{}, completionsanswer.NewDecoder(nil)
		for _, piece := range streamtest.Split(rt, stream) {
			r.Add(piece)
			for {
				ev, ok, err := r.Next()
				require.NoError(rt, err)
				if !ok {
					break
				}
				got, err := d.Append(nil, ev.Type, ev.Data)
				require.NoError(rt, err)
				decoded.Add(got...)
				for _, e := range got {
					all = append(all, e.Clone())
				}
			}
		}
		require.Empty(rt, d.Finish(nil))
		require.NoError(rt, grammar(all))

		got, err := completionsanswer.NewDecoder(nil).AppendWhole(nil, completionsanswer.AppendResponse(nil, &direct, opt))
		require.NoError(rt, err)
		require.NoError(rt, grammar(got))
		whole.Add(got...)

		want := event.Collector{Usage: direct.Usage}
		want.Usage.Cached, want.Usage.Reasoning = min(want.Usage.Cached, want.Usage.Prompt), min(want.Usage.Reasoning, want.Usage.Output)
		for i := range direct.Answers {
			want.Answers = append(want.Answers, say(&direct.Answers[i]))
		}
		require.Empty(rt, cmp.Diff(want, decoded, streamtest.SameAnswer))
		require.Empty(rt, cmp.Diff(want, whole, streamtest.SameAnswer))
	})
}

// TestRoundTripLogprobs encodes and decodes log probabilities.
func TestRoundTripLogprobs(t *testing.T) {
	s := completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "m"})
	var got []string
	for e, err := range pull(bytes.NewReader(s.Finish(s.Append(nil, example()...))), nil) {
		require.NoError(t, err)
		if e.Kind == event.Logprobs {
			got = append(got, string(e.Data))
		}
	}
	require.Empty(t, cmp.Diff([]string{
		`[{"token":"Once","logprob":-0.10,"bytes":null,"top_logprobs":[{"token":"Once","logprob":-0.10,"bytes":null},{"token":"In","logprob":-2e0,"bytes":null}]},{"token":" é","logprob":-1,"bytes":null,"top_logprobs":[]}]`,
		`[{"token":"\n","logprob":null,"bytes":null,"top_logprobs":[]}]`,
	}, got))
}

func TestEvents(t *testing.T) {
	s := completionsanswer.NewEncoder(completionsanswer.Options{ID: "cmpl-1", Model: "m"})
	stream := s.Finish(s.Append(nil, example()...))
	for _, c := range []struct {
		src  string
		last string
		err  any
	}{
		{string(stream), "1 finish why=stop", nil},
		{string(stream[:len(stream)/2]), `0 error "The engine ended before the answer was finished." why=engine_failed`, nil},
		{`{"choices":[{"text":"whole","finish_reason":"stop"}]}`, "0 finish why=stop", nil},
		{`{"error":"x"}`, `0 error "x" why=engine_failed`, nil},
		{"data: {]\n\ndata: {}\n\n", "", &block.Error{}},
		{"", `0 error "The engine ended before the answer was finished." why=engine_failed`, nil},
	} {
		last := ""
		var failed error
		for e, err := range pull(strings.NewReader(c.src), nil) {
			if failed = err; err == nil {
				last = show(e)
			}
		}
		require.Equal(t, c.last, last, c.src)
		require.IsType(t, c.err, failed)
	}
}

func TestDecodeResponseErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"choices":[`:         "choices[0]: unexpected end of JSON at byte 12",
		`{"id":"x"}`:           "an array of choices was expected, not nothing at byte 0",
		`[]`:                   "an object was expected, not an array at byte 0",
		`{"choices":["text"]}`: "choices[0]: an object was expected, not a string at byte 12",
	} {
		_, err := completionsanswer.NewDecoder(nil).AppendWhole(nil, []byte(body))
		require.EqualError(t, err, want, body)
	}
	got, err := completionsanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"choices":[]}`))
	require.NoError(t, err)
	require.Equal(t, event.Error, got[len(got)-1].Kind)
}

func TestStreamDecoderAllocs(t *testing.T) {
	d := completionsanswer.NewDecoder(nil)
	streamtest.CheckAllocs(t, d, d.Reset,
		`{"id":"cmpl-1","choices":[{"index":0,"text":"a\n","token_ids":[1,2],"finish_reason":null}]}`,
		`{"id":"cmpl-1","choices":[{"index":0,"text":"b","logprobs":{"tokens":["b"],"token_logprobs":[-1],"top_logprobs":[{"b":-1}],"text_offset":[0]}}]}`,
		`{"id":"cmpl-1","choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		"[DONE]",
	)
}

func FuzzStreamDecoder(f *testing.F) {
	f.Add([]byte(`{"choices":[{"text":"a","logprobs":{"tokens":["b"],"top_logprobs":[{"b":-1}]}}]}`), []byte(`{"choices":[{"finish_reason":"stop"}]}`))
	f.Add([]byte(`{"error":{"code":1}}`), []byte("[DONE]"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		d := completionsanswer.NewDecoder(nil)
		var all []event.Event
		for _, data := range [][]byte{a, b, a} {
			got, err := d.Append(nil, nil, data)
			if err != nil {
				require.IsType(t, &block.Error{}, err)
			}
			for _, e := range got {
				all = append(all, e.Clone())
			}
		}
		require.NoError(t, grammar(append(all, d.Finish(nil)...)))
		got, err := completionsanswer.NewDecoder(nil).AppendWhole(nil, a)
		if err != nil {
			require.IsType(t, &block.Error{}, err)
		} else if len(got) > 0 {
			require.NoError(t, grammar(got))
		}
	})
}

func BenchmarkStreamDecoder(b *testing.B) {
	line := []byte(`{"id":"cmpl-9f8e7d6c5b4a39281706","object":"text_completion","created":1763721000,"model":"qwen3-coder-480b","choices":[{"index":0,"text":" token","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":[1234]}],"usage":null}`)
	d := completionsanswer.NewDecoder(nil)
	var events []event.Event
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if events, err = d.Append(events[:0], nil, line); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleEvents() {
	body := strings.NewReader("data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\n" +
		"data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	for e, err := range pull(body, nil) {
		fmt.Println(e, err)
	}
	// Output:
	// start <nil>
	// text "Hi" <nil>
	// finish why=stop <nil>
}

func TestEventsWholeLimits(t *testing.T) {
	streamtest.CheckWholeLimits(t, `{"id":"a","choices":[{"index":0,"text":"Hello","finish_reason":"stop","logprobs":{"tokens":["Hello"]}}]}`,
		func(src io.Reader, lim *block.Limits) iter.Seq2[event.Event, error] {
			return pull(src, &completionsanswer.DecoderOptions{Limits: lim})
		})
}
