// SPDX-License-Identifier: Apache-2.0

package chatanswer_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/chatanswer"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/sse"
)

// contentBlock is a block in the form that the Chat API can express.
type contentBlock struct {
	Kind  string // reasoning, text, refusal, call, aborted
	Name  string
	ID    string
	Data  string
	Notes []string
}

// answerParts is a choice in the form that the Chat API can express.
type answerParts struct {
	Blocks []contentBlock
	Finish event.Why
}

// expected returns the part of a choice that the Chat API can express. A stream of this API has these losses:
//
//   - invalid UTF-8 becomes U+FFFD, annotations are on one line, and blocks without text are omitted;
//   - a run of reasoning after another one begins with a line end;
//   - adjacent blocks of one kind are merged, even if signatures, opaque items or calls that are left out were between
//     them;
//   - calls of the server, calls inside reasoning and calls that never started are left out;
//   - IDs that are empty or repeated are replaced;
//   - empty arguments become {}; the arguments of an aborted call end with a spoiler, and its cause is lost;
//   - the cause of a finish is Stop, Length, ToolCalls, ContentFilter or Refused; stop sequences are lost.
func expected(a *event.Answer, choice int32) (s answerParts) {
	var ids callid.Set
	calls, refused, thought := 0, false, false
	for _, b := range a.Blocks {
		text := string(jsonw.AppendValid(nil, b.Data))
		switch b.Kind {
		case event.Reasoning, event.Text, event.Refusal:
			if text == "" && len(b.Annotations) == 0 {
				continue
			}
			refused = refused || b.Kind == event.Refusal
			var notes []string
			for _, n := range b.Annotations {
				notes = append(notes, string(jsonw.AppendRaw(nil, n)))
			}
			kind := b.Kind.String()
			if b.Kind == event.Reasoning {
				if thought {
					text = "\n" + text
				}
				thought = true
			}
			if n := len(s.Blocks); n > 0 && s.Blocks[n-1].Kind == kind {
				s.Blocks[n-1].Data += text
				s.Blocks[n-1].Notes = append(s.Blocks[n-1].Notes, notes...)
				continue
			}
			s.Blocks = append(s.Blocks, contentBlock{Kind: kind, Data: text, Notes: notes})
		case event.ToolStart, event.ToolAbort:
			id, _ := ids.Assign("call_", "1", choice, b.ID)
			if b.Flags&(event.Server|event.InReasoning) != 0 || b.Name == "" {
				continue
			}
			out := contentBlock{Kind: "call", Name: b.Name, ID: id, Data: text}
			custom := b.Flags.Has(event.Custom)
			switch {
			case b.Kind == event.ToolAbort || !b.Flags.Has(event.Complete):
				out.Kind = "aborted"
			case !custom && jsonw.IsBlank(b.Data):
				out.Data += "{}"
			}
			if out.Kind == "call" {
				calls++
			}
			s.Blocks = append(s.Blocks, out)
		}
	}
	switch a.Finish {
	case event.Length, event.ContextFull:
		s.Finish = event.Length
	case event.ContentFilter:
		s.Finish = event.ContentFilter
	case event.Refused:
		if s.Finish = event.ContentFilter; refused {
			s.Finish = event.Refused
		}
	default:
		switch {
		case calls > 0:
			s.Finish = event.ToolCalls
		case refused:
			s.Finish = event.Refused
		default:
			s.Finish = event.Stop
		}
	}
	return s
}

// same compares the encoded choice with the decoded one. It accepts ambiguities of the API: a call may have been
// aborted although its arguments are complete, and free text does not show whether it was cut off.
func same(t require.TestingT, want, got answerParts) {
	open := false
	for i := range want.Blocks {
		b := &want.Blocks[i]
		if i >= len(got.Blocks) || (b.Kind != "call" && b.Kind != "aborted") || (got.Blocks[i].Kind != "call" && got.Blocks[i].Kind != "aborted") {
			continue
		}
		g := &got.Blocks[i]
		custom := strings.HasPrefix(g.Data, "custom ")
		g.Data = strings.TrimPrefix(g.Data, "custom ")
		if b.Kind == "aborted" {
			require.True(t, strings.HasPrefix(g.Data, b.Data), "%q %q", g.Data, b.Data)
			if !custom && !json.Valid([]byte(b.Data)) {
				require.Equal(t, "aborted", g.Kind, "%q", g.Data)
			}
			g.Data = b.Data
		}
		if b.Kind != g.Kind && (custom || b.Kind == "aborted") {
			g.Kind, open = b.Kind, true
		}
	}
	if open && (want.Finish == event.Stop || want.Finish == event.ToolCalls) && (got.Finish == event.Stop || got.Finish == event.ToolCalls) {
		got.Finish = want.Finish
	}
	require.Empty(t, cmp.Diff(want, got))
}

// understood returns a choice as decoded.
func understood(a *event.Answer) (s answerParts) {
	s.Finish = a.Finish
	for _, b := range a.Blocks {
		out := contentBlock{Kind: b.Kind.String(), Name: b.Name, ID: b.ID, Data: string(b.Data)}
		switch {
		case b.Kind == event.ToolStart && b.Flags.Has(event.Complete):
			out.Kind = "call"
		case b.Kind == event.ToolAbort:
			out.Kind = "aborted"
		}
		if b.Flags.Has(event.Custom) {
			out.Data = "custom " + out.Data
		}
		for _, n := range b.Annotations {
			out.Notes = append(out.Notes, string(n))
		}
		if n := len(s.Blocks); n > 0 && s.Blocks[n-1].Kind == out.Kind && out.Name == "" && out.Kind != "aborted" {
			s.Blocks[n-1].Data += out.Data
			s.Blocks[n-1].Notes = append(s.Blocks[n-1].Notes, out.Notes...)
			continue
		}
		s.Blocks = append(s.Blocks, out)
	}
	return s
}

// read decodes a stream in pieces.
func read(t require.TestingT, pieces [][]byte) (events []event.Event, dropped int) {
	r := sse.Reader{FlushAtEOF: true}
	d := chatanswer.NewDecoder(nil)
	var got []event.Event
	keep := func() {
		for _, e := range got {
			events = append(events, e.Clone())
		}
	}
	next := func() {
		for {
			ev, ok, err := r.Next()
			require.NoError(t, err)
			if !ok {
				return
			}
			if ev.Comment {
				continue
			}
			got, err = d.Append(got[:0], ev.Type, ev.Data)
			require.NoError(t, err)
			keep()
		}
	}
	for _, p := range pieces {
		r.Add(p)
		next()
	}
	r.Finish()
	next()
	got = d.Finish(got[:0])
	keep()
	require.NoError(t, streamtest.CheckGrammar(events, true))
	return events, d.Dropped()
}

func TestStreamRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "choices")
		events := streamtest.Events(rt, n, rapid.Bool().Draw(rt, "overlap"))
		var direct event.Collector
		direct.Add(events...)
		opt := chatanswer.Options{
			ID: "chatcmpl-1", Model: "m", IncludeUsage: true, ContinuousUsage: rapid.Bool().Draw(rt, "usage"),
			Reasoning:    rapid.SampledFrom([]chatanswer.ReasoningField{chatanswer.ReasoningContent, chatanswer.ReasoningPlain, chatanswer.ReasoningBoth}).Draw(rt, "reasoning"),
			ToolDispatch: rapid.Bool().Draw(rt, "dispatch"),
		}
		s := chatanswer.NewEncoder(opt)
		stream := s.AppendKeepAlive(nil)
		stream = s.Finish(s.Append(stream, events...))
		got, dropped := read(rt, streamtest.Split(rt, stream))
		require.Equal(rt, event.Start, got[0].Kind)

		var decoded event.Collector
		decoded.Add(got...)
		require.Len(rt, decoded.Answers, n)
		for i := range decoded.Answers {
			same(rt, expected(&direct.Answers[i], int32(i)), understood(&decoded.Answers[i]))
		}
		for _, a := range direct.Answers {
			for _, b := range a.Blocks {
				if !b.Flags.Has(event.Complete) && json.Valid(b.Data) {
					dropped-- // its spoiler may be sent too late, after other output
				}
			}
		}
		require.LessOrEqual(rt, dropped, 0)
		u := direct.Usage
		u.Cached, u.Reasoning = min(u.Cached, u.Prompt), min(u.Reasoning, u.Output)
		require.Empty(rt, cmp.Diff(u, decoded.Usage))
	})
}

// TestStreamEverySplit splits the worked example at every byte, with -short at every fourth, and also decodes it byte by
// byte.
func TestStreamEverySplit(t *testing.T) {
	s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "demo", IncludeUsage: true})
	stream := s.Finish(s.Append(nil, streamtest.Example()...))
	want, dropped := read(t, [][]byte{stream})
	require.Zero(t, dropped)
	step := 1
	if testing.Short() {
		step = 4
	}
	for i := 0; i < len(stream); i += step {
		got, _ := read(t, [][]byte{stream[:i], stream[i:]})
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("split at %d (-whole +split):\n%s", i, cmp.Diff(want, got))
		}
	}
	var single [][]byte
	for i := range stream {
		single = append(single, stream[i:i+1])
	}
	got, _ := read(t, single)
	require.Empty(t, cmp.Diff(want, got))

	// The events are equal to the encoded ones except for IDs, the position of the usage, and a line end between runs
	// of reasoning.
	var a, b event.Collector
	a.Add(streamtest.Example()...)
	b.Add(want...)
	for i := range a.Answers[0].Blocks {
		x, y := a.Answers[0].Blocks[i], b.Answers[0].Blocks[i]
		require.Equal(t, x.Kind.String()+x.Name+string(x.Data), y.Kind.String()+y.Name+strings.TrimPrefix(string(y.Data), "\n"))
	}
	require.Equal(t, a.Usage, b.Usage)
}

// TestResponseRoundTrip does the same for responses that are not streamed, which preserve only the order within each
// kind.
func TestResponseRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "choices")
		var direct, decoded event.Collector
		direct.Add(streamtest.Events(rt, n, true)...)
		body := chatanswer.AppendResponse(nil, &direct, chatanswer.Options{ID: "chatcmpl-1", Model: "m"})
		events, err := chatanswer.NewDecoder(nil).AppendWhole(nil, body)
		require.NoError(rt, err)
		require.NoError(rt, streamtest.CheckGrammar(events, true), "%s", body)
		decoded.Add(events...)
		require.Len(rt, decoded.Answers, n)
		for i := range decoded.Answers {
			sent := expected(&direct.Answers[i], int32(i))
			var want, got [5]string
			add := func(s *[5]string, b contentBlock) {
				b.Data = strings.TrimPrefix(b.Data, "custom ")
				switch b.Kind {
				case "reasoning":
					s[0] += b.Data
				case "text":
					s[1] += b.Data
					s[2] += strings.Join(b.Notes, "")
				case "refusal":
					s[3] += b.Data
				case "call":
					s[4] += b.ID + " " + b.Name + " " + b.Data + "\n"
				}
			}
			var ids callid.Set
			cut := map[string]*event.Block{}
			for k := range direct.Answers[i].Blocks {
				if b := &direct.Answers[i].Blocks[k]; b.Kind == event.ToolStart || b.Kind == event.ToolAbort {
					if id, _ := ids.Assign("call_", "1", int32(i), b.ID); b.Cut() {
						cut[id] = b
					}
				}
			}
			for _, b := range sent.Blocks {
				if c := cut[b.ID]; b.Kind == "aborted" && c != nil {
					b.Kind = "call"
					if !c.Flags.Has(event.Custom) {
						b.Data = string(jsonw.AppendSpoiled(nil, []byte(b.Data)))
					}
				}
				add(&want, b)
			}
			for _, b := range understood(&decoded.Answers[i]).Blocks {
				if b.Kind == "aborted" { // a call that was cut off, or free text that may have been: the last call of such a response
					b.Kind = "call"
				}
				add(&got, b)
			}
			require.Empty(rt, cmp.Diff(want, got), "%s", body)
			finish := sent.Finish
			if len(cut) > 0 && finish != event.Length && decoded.Answers[i].Finish == event.ToolCalls { // free text that may be complete
				finish = event.ToolCalls
			}
			require.Equal(rt, finish, decoded.Answers[i].Finish)
		}
	})
}

// TestStreamDecoderAny decodes chunks in arbitrary order.
func TestStreamDecoderAny(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		`"content":"a"`, `"content":null`, `"reasoning":"r"`, `"refusal":"n"`, `"role":"assistant"`, `"annotations":[{}]`,
		`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`, `"tool_calls":[{"index":0,"function":{"arguments":"{"}}]`,
		`"tool_calls":[{"index":0,"function":{"arguments":"}"}}]`, `"tool_calls":[{"index":1,"function":{"name":"g"}}]`,
		`"tool_calls":[{"id":"b","function":{"arguments":"{}"}}]`, `"tool_calls":[{"function":{"name":"h","arguments":{"x":1}}},{"function":{"name":"h"}}]`,
		`"tool_calls":[{"index":2,"type":"custom","custom":{"name":"c","input":"t"}}]`, `"function_call":{"name":"l","arguments":"1"}`,
		`"tool_calls":[{"index":0,"id":"z"}]`, `"tool_calls":[{"index":0,"id":"y","function":{"name":"f","arguments":"{}"}}]`,
		`"content":[{"type":"text","text":"p"},{"type":"x"}]`, `"reasoning_details":[{"text":"d","signature":"s"}]`, ``,
		`"content":"\ud83d"`, `"content":"\ude00\ud83d"`, `"reasoning":"\ud83d"`, `"tool_calls":[{"index":0,"function":{"arguments":"\ud83d"}}]`,
	})
	rapid.Check(t, func(rt *rapid.T) {
		d := chatanswer.NewDecoder(&chatanswer.DecoderOptions{DoneFinishes: rapid.Bool().Draw(rt, "done")})
		for range 2 { // the second time after Reset
			var events []event.Event
			for range rapid.IntRange(0, 12).Draw(rt, "chunks") {
				data := `{"choices":[{"index":` + rapid.SampledFrom([]string{"0", "0", "1", "-1"}).Draw(rt, "index") + `,"delta":{` + piece.Draw(rt, "delta") + `}` +
					rapid.SampledFrom([]string{"", "", "", `,"finish_reason":"stop"`, `,"finish_reason":"length"`, `,"finish_reason":"error"`, `,"token_ids":[1]`}).Draw(rt, "end") + `}]}`
				switch rapid.IntRange(0, 20).Draw(rt, "other") {
				case 0:
					data = `{"choices":[],"usage":{"prompt_tokens":1}}`
				case 1:
					data = "[DONE]"
				case 2:
					data = `{"error":{"message":"x"}}`
				}
				got, err := d.Append(nil, nil, []byte(data))
				require.NoError(rt, err)
				for _, e := range got {
					events = append(events, e.Clone())
				}
			}
			events = append(events, d.Finish(nil)...)
			require.NoError(rt, streamtest.CheckGrammar(events, true))
			d.Reset()
		}
	})
}

// TestStreamDecoderMemory checks that decoding 100 MB of arguments and of text does not retain them.
func TestStreamDecoderMemory(t *testing.T) {
	piece := strings.Repeat("0123456789abcdef", 4096)
	args := []byte(chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":"` + piece + `"}}]`))
	text := []byte(chunkOf(`"content":"` + piece + `"`))
	d := chatanswer.NewDecoder(nil)
	events, err := d.Append(nil, nil, []byte(chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":\""}}]`)))
	require.NoError(t, err)
	feed := func() {
		for _, data := range [][]byte{args, text, args} {
			if events, err = d.Append(events[:0], nil, data); err != nil || len(events) != 1 {
				t.Fatal(err, len(events))
			}
		}
	}
	feed()
	size, calls := 100<<20, 10_000
	if testing.Short() {
		size, calls = 4<<20, 5_000
	}
	require.Less(t, testing.AllocsPerRun(size/len(args)/3, feed), 0.1)
	events, err = d.Append(nil, nil, []byte(chunkOf(`"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]`)))
	require.NoError(t, err)
	require.Len(t, events, 1)
	events, err = d.Append(nil, nil, []byte(chunkEnd("tool_calls")))
	require.NoError(t, err)
	require.Equal(t, event.ToolEnd, events[0].Kind)

	// Many calls, each with a long name and ID.
	d = chatanswer.NewDecoder(nil)
	name := strings.Repeat("n", 5000)
	for range calls {
		_, err = d.Append(nil, nil, []byte(chunkOf(`"tool_calls":[{"id":"`+name+`","function":{"name":"`+name+`","arguments":"{"}}]`)))
		require.NoError(t, err)
	}
	require.Positive(t, d.Dropped())
}

func TestEvents(t *testing.T) {
	s := chatanswer.NewEncoder(chatanswer.Options{ID: "chatcmpl-1", Model: "demo", IncludeUsage: true})
	stream := s.Finish(s.Append(nil, streamtest.Example()...))
	want, _ := read(t, [][]byte{stream})
	collect := func(src []byte, opt *chatanswer.DecoderOptions) (out []event.Event, err error) {
		for e, err := range pull(bytes.NewReader(src), opt) {
			if err != nil {
				return out, err
			}
			out = append(out, e.Clone())
		}
		return out, nil
	}
	got, err := collect(append(stream, "data: after the end\n\n"...), nil)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))

	got, err = collect(stream[:len(stream)/2], nil)
	require.NoError(t, err)
	require.Equal(t, event.EngineFailed, got[len(got)-1].Why)

	got, err = collect([]byte(" \n{\"choices\":[{\"message\":{\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}"), nil)
	require.NoError(t, err)
	require.Equal(t, `text "whole"`, got[1].String())

	_, err = collect([]byte("data: {\"choices\":[\n\n"), nil)
	require.IsType(t, &block.Error{}, err)
	_, err = collect(stream, &chatanswer.DecoderOptions{Limits: &block.Limits{Body: 20}})
	require.ErrorIs(t, err, sse.ErrTooBig)
	_, err = collect([]byte(`{"choices":[]`), &chatanswer.DecoderOptions{Limits: &block.Limits{Body: 20}})
	require.IsType(t, &block.Error{}, err)

	for e := range pull(bytes.NewReader(stream), nil) {
		require.Equal(t, event.Start, e.Kind)
		break // ends the range
	}
}

func TestDecodeResponse(t *testing.T) {
	for body, want := range map[string][]string{
		`{"id":"r","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"t","reasoning_content":["a","b","c"],"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"1","function":{"name":"g","arguments":{}}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`: {
			"0.0 start 1/0/0>2/0", `0.0 reasoning "a"`, `0.1 text "t"`, `0.2 tool_start call=0 "f" id="1"`, `0.2 tool_args call=0 "{}"`, "0.2 tool_end call=0",
			`0.3 reasoning "b"`, `0.4 tool_start call=1 "g" id="1"`, `0.4 tool_args call=1 "{}"`, "0.4 tool_end call=1", `0.5 reasoning "c"`, "0.5 finish why=tool_calls",
		},
		`{"choices":[{"message":{"content":"a"},"finish_reason":null},{"message":{"function_call":{"name":"f","arguments":"{"}},"finish_reason":"function_call"}]}`: {
			"0.0 start", `0.0 text "a"`, "0.0 finish why=stop", `1.0 tool_start call=0 "f"`, `1.0 tool_args call=0 "{"`, `1.0 tool_abort call=0 "f" why=bad_arguments`, "1.0 finish why=stop",
		},
		`{"choices":[{"message":{"tool_calls":[{"id":"1"},{"function":{"name":"f"}},{"function":{"name":"f","arguments":" "}}]},"finish_reason":"stop"}]}`: {
			"0.0 start", "0.0 tool_abort call=0 why=bad_name", `0.1 tool_start call=1 "f"`, "0.1 tool_end call=1", `0.2 tool_start call=2 "f"`,
			`0.2 tool_args call=2 " "`, "0.2 tool_end call=2", "0.2 finish why=tool_calls",
		},
		`{"choices":[]}`: {"0.0 start", `0.0 error "The engine sent no answer." why=engine_failed`},
		`{"error":{"message":"no such model","code":"model_not_found"}}`: {`0.0 error "no such model" id="model_not_found" why=not_found`},
		`{"detail":"Unauthorized"}`:                                      {`0.0 error "Unauthorized" why=engine_failed`},
	} {
		events, err := chatanswer.NewDecoder(nil).AppendWhole(nil, []byte(body))
		require.NoError(t, err, body)
		require.NoError(t, streamtest.CheckGrammar(events, true), body)
		var got []string
		for _, e := range events {
			got = append(got, showEvent(e))
		}
		require.Empty(t, cmp.Diff(want, got), body)
	}
	for body, want := range map[string]string{
		`{"choices":[`:     "choices[0]: unexpected end of JSON at byte 12",
		`{"id":"x"}`:       "an array of choices was expected, not nothing at byte 0",
		`"text"`:           "an object was expected, not a string at byte 0",
		`{"choices":"x"}`:  "choices: an array of choices was expected, not a string at byte 11",
		"{\"a\":\"\xff\"}": "a: invalid UTF-8 inside a string at byte 6",
	} {
		_, err := chatanswer.NewDecoder(nil).AppendWhole(nil, []byte(body))
		require.EqualError(t, err, want, body)
	}
}

func FuzzStreamDecoder(f *testing.F) {
	f.Add([]byte(chunkOf(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]`)), []byte(chunkEnd("stop")), "")
	f.Add([]byte(`{"error":{"message":"x","code":429}}`), []byte("[DONE]"), "error")
	f.Add([]byte(chunkOf(`"content":"a"`)), []byte(`{"choices":[],"usage":{"prompt_tokens":1}}`), "ping")
	f.Fuzz(func(t *testing.T, a, b []byte, typ string) {
		d := chatanswer.NewDecoder(nil)
		var events []event.Event
		for _, data := range [][]byte{a, b, a} {
			got, err := d.Append(nil, []byte(typ), data)
			if err != nil {
				require.IsType(t, &block.Error{}, err)
				require.Empty(t, got)
			}
			for _, e := range got {
				events = append(events, e.Clone())
			}
		}
		events = append(events, d.Finish(nil)...)
		require.NoError(t, streamtest.CheckGrammar(events, true))
	})
}

func FuzzDecodeResponse(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":"t","reasoning_content":["a"],"tool_calls":[{"function":{"name":"f","arguments":{}}}]}}]}`))
	f.Add([]byte(`{"message":"x","type":"Bad Request","code":400}`))
	f.Add([]byte(`{"choices":[{"index":-1,"message":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}],"usage":{"input_tokens":-1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		events, err := chatanswer.NewDecoder(nil).AppendWhole(nil, body)
		if err != nil {
			require.IsType(t, &block.Error{}, err)
			require.Empty(t, events)
			return
		}
		if len(events) > 0 {
			require.NoError(t, streamtest.CheckGrammar(events, true))
		}
	})
}
