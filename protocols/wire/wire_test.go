// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/race"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/wire"
)

var apis = []*wire.API{wire.Chat, wire.Responses, wire.Messages}

// request returns a request with the given tools.
func request(t testing.TB, stream bool, tools ...block.Tool) *block.Request {
	r := block.NewRequest(block.NewTurn(block.RoleUser, "Hi"))
	require.NoError(t, r.SetParams(block.Params{Model: "m", Stream: stream, StreamUsage: true}))
	require.NoError(t, r.SetTools(tools...))
	return r
}

func decoded(t testing.TB, api *wire.API, body string) *block.Request {
	r, err := api.Decode([]byte(body), nil)
	require.NoError(t, err)
	return r
}

func fixed() *wire.Options {
	return &wire.Options{ID: "id_1", Now: func() time.Time { return time.Unix(1700000000, 0) }}
}

// Events as a parser emits them, without usage and IDs.
func text(part int32, s string) event.Event {
	return event.Event{Kind: event.Text, Part: part, Call: -1, Data: []byte(s)}
}

func reasoning(part int32, s string) event.Event {
	return event.Event{Kind: event.Reasoning, Part: part, Call: -1, Data: []byte(s)}
}

func call(n, part int32, name string, args ...string) []event.Event {
	out := []event.Event{{Kind: event.ToolStart, Call: n, Part: part, Data: []byte(name)}}
	for _, a := range args {
		out = append(out, event.Event{Kind: event.ToolArgs, Call: n, Part: part, Data: []byte(a)})
	}
	return append(out, event.Event{Kind: event.ToolEnd, Call: n, Part: part, Flags: event.Complete})
}

func finish(why event.Why) event.Event { return event.Event{Kind: event.Finish, Call: -1, Why: why} }

// collect decodes a response in pieces of n bytes.
func collect(t testing.TB, api *wire.API, body []byte, n int) *event.Collector {
	var c event.Collector
	d := api.NewDecoder(nil)
	var events []event.Event
	var err error
	for piece := range slices.Chunk(body, n) {
		events, err = d.Append(events[:0], piece)
		require.NoError(t, err)
		c.Add(events...)
	}
	events, err = d.Finish(events[:0])
	require.NoError(t, err)
	c.Add(events...)
	return &c
}

// TestCompose encodes the events of a parser. It checks that the stream and the JSON document have the same content,
// which is the next turn of the conversation.
func TestCompose(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []event.Event
		finish event.Why
	}{
		{"text", []event.Event{text(0, "Hel"), text(0, "lo"), finish(event.Stop)}, event.Stop},
		{"text without a finish", []event.Event{text(0, "Hel"), text(0, "lo")}, event.Stop},
		{"calls of an engine that stopped", slices.Concat([]event.Event{reasoning(0, "Hm.")}, call(0, 1, "get", `{"a":`, `1}`), call(1, 2, "put", "{}"), []event.Event{finish(event.Stop)}), event.ToolCalls},
		{"calls", slices.Concat([]event.Event{text(0, "Wait.")}, call(0, 1, "get", `{"a":1}`), []event.Event{finish(event.ToolCalls)}), event.ToolCalls},
		{"calls without a finish", call(0, 0, "get", `{"a":1}`), event.ToolCalls},
		{"reasoning between calls", slices.Concat([]event.Event{reasoning(0, "a")}, call(0, 1, "get", "{}"), []event.Event{reasoning(2, "b")}, call(1, 3, "get", "{}"), []event.Event{finish(event.Stop)}), event.ToolCalls},
		{"length", []event.Event{reasoning(0, "Hm."), text(1, "Hel"), finish(event.Length)}, event.Length},
		{"nothing but the end", []event.Event{finish(event.Stop)}, event.Stop},
	} {
		for _, api := range apis {
			t.Run(tt.name+"/"+api.String(), func(t *testing.T) {
				var want event.Collector
				want.Add(tt.events...)
				var turns []block.Turn
				for _, stream := range []bool{true, false} {
					enc := api.NewEncoder(request(t, stream), fixed())
					var out []byte
					for _, e := range tt.events {
						out = enc.Append(out, e)
					}
					require.Equal(t, stream && len(out) > 0, enc.Started())
					out = enc.Finish(out)
					require.NoError(t, enc.Err(), "%s", out)
					require.True(t, enc.Started())
					require.Empty(t, enc.Finish(nil))
					require.Empty(t, enc.Append(nil, text(9, "late")))

					got := collect(t, api, out, 7)
					require.Equal(t, event.None, got.Err, "%s", out)
					a := got.Answers[0]
					require.Equal(t, tt.finish, a.Finish, "%s", out)
					require.Equal(t, want.Answers[0].Text(), a.Text())
					require.Equal(t, len(want.Answers[0].Calls()), len(a.Calls()))
					turn := wire.Turn(got, 0)
					if api == wire.Chat { // a message of the Chat API does not have the order of blocks
						slices.SortStableFunc(turn.Blocks, func(a, b block.Block) int { return int(a.Kind) - int(b.Kind) })
						turn.Blocks = joined(turn.Blocks)
					}
					turns = append(turns, turn)
				}
				require.True(t, turns[0].Equal(turns[1]), cmp.Diff(turns[0].Blocks, turns[1].Blocks, cmpopts.IgnoreUnexported(block.Block{}, block.Ref{})))
			})
		}
	}
}

// joined joins adjacent runs of reasoning, which are lines of one string in the Chat API.
func joined(list []block.Block) (out []block.Block) {
	for _, b := range list {
		b.Signature = ""
		if n := len(out); n > 0 && b.Kind == block.Reasoning && out[n-1].Kind == block.Reasoning {
			out[n-1].Text = strings.TrimSuffix(out[n-1].Text, "\n") + "\n" + strings.TrimPrefix(b.Text, "\n")
			continue
		}
		out = append(out, b)
	}
	return out
}

// TestCut checks that responses without an end are reported as cut off.
func TestCut(t *testing.T) {
	start := event.Event{Kind: event.Start, Call: -1}
	open := call(0, 1, "get", `{"a":1}`)[:2]
	for name, events := range map[string][]event.Event{
		"nothing": nil, "start": {start}, "an open call": append([]event.Event{text(0, "x")}, open...),
	} {
		for _, api := range apis {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprint(name, "/", api, "/", stream), func(t *testing.T) {
					enc := api.NewEncoder(request(t, stream), fixed())
					out := enc.Append(nil, events...)
					started := len(out) > 0
					out = enc.Finish(out)
					e, ok := errors.AsType[*apierr.Error](enc.Err())
					require.True(t, ok)
					require.Equal(t, event.EngineFailed, e.Why)
					require.Equal(t, started, enc.Started())
					require.Contains(t, string(out), "The engine ended before the answer was finished.")
					require.Equal(t, event.EngineFailed, collect(t, api, out, 1<<20).Err, "%s", out)
				})
			}
		}
	}
}

// A call that the token limit cut off, or that is malformed, is in a response that is not streamed as in a stream, in a form that
// no client mistakes for a complete call of its tool.
func TestCutCallWhole(t *testing.T) {
	start := event.Event{Kind: event.Start, Call: -1}
	finish := event.Event{Kind: event.Finish, Call: -1, Why: event.Length}
	abort := func(call int32, name string, why event.Why) event.Event {
		return event.Event{Kind: event.ToolAbort, Call: call, Part: call + 1, Data: []byte(name), Why: why}
	}
	events := append([]event.Event{start}, call(0, 1, "get", `{"a":1}`)...)
	events = append(events, call(1, 2, "put", `{"city": "Os`)[:2]...)
	events = slices.Clip(events)
	cut := append(events, abort(1, "put", event.Truncated), finish)
	for api, want := range map[*wire.API][]string{
		wire.Chat:      {`"name":"get","arguments":"{\"a\":1}"`, `"name":"put","arguments":"{\"city\": \"Os"`, `"finish_reason":"length"`},
		wire.Responses: {`"arguments":"{\"a\":1}"`, `"status":"incomplete"`, `"arguments":"{\"city\": \"Os"`, `"incomplete_details":{"reason":"max_output_tokens"}`},
		wire.Messages:  {`"name":"get","input":{"a":1}`, `"name":"put","input":{"input":"{\"city\": \"Os"}`, `"stop_reason":"max_tokens"`},
	} {
		enc := api.NewEncoder(request(t, false), fixed())
		out := string(enc.Finish(enc.Append(nil, cut...)))
		require.NoError(t, enc.Err())
		require.True(t, json.Valid([]byte(out)), out)
		for _, part := range want {
			require.Contains(t, out, part, api)
		}
	}
	// The only difference of a malformed call is that the response did not end because of it.
	finish.Why = event.Stop
	broken := append(events, abort(1, "put", event.BadArguments), text(3, "Well."), finish)
	for api, want := range map[*wire.API][]string{
		wire.Chat:      {`"name":"get","arguments":"{\"a\":1}"`, `"name":"put","arguments":"{\"city\": \"Os"`, `"finish_reason":"tool_calls"`, "Well."},
		wire.Responses: {`"arguments":"{\"a\":1}"`, `"status":"incomplete"`, `"arguments":"{\"city\": \"Os"`, `"status":"completed"`, "Well."},
		wire.Messages:  {`"name":"get","input":{"a":1}`, `"name":"put","input":{"input":"{\"city\": \"Os"}`, `"stop_reason":"tool_use"`, "Well."},
	} {
		enc := api.NewEncoder(request(t, false), fixed())
		out := string(enc.Finish(enc.Append(nil, broken...)))
		require.NoError(t, enc.Err())
		for _, part := range want {
			require.Contains(t, out, part, api)
		}
	}
	// A call without a known name is not in it, as in no stream, and none is if calls are held back.
	for _, last := range [][]event.Event{
		{abort(0, "ge", event.Truncated)},
		append(call(0, 1, "get", `{"a":`)[:2], abort(0, "get", event.BadArguments)),
	} {
		for _, api := range apis {
			opt := fixed()
			opt.WholeCalls = len(last) > 1
			enc := api.NewEncoder(request(t, false), opt)
			out := string(enc.Finish(enc.Append(enc.Append(nil, append([]event.Event{start, text(0, "x")}, last...)...), finish)))
			require.NotContains(t, out, `"name":"ge`, api)
		}
	}
}

// TestFunctions checks that a client that declares functions, the form before tools, gets its calls in the form before tool_calls:
// one for each choice, without an id. A conversion of its request permits only one call.
func TestFunctions(t *testing.T) {
	const declared = `,"functions":[{"name":"get"}],"messages":[{"role":"user","content":"Hi"}]}`
	twice := slices.Concat([]event.Event{text(0, "Wait.")}, call(0, 1, "get", `{"a":`, ` "x\\y" }`), call(1, 2, "get", "{}"), []event.Event{finish(event.Stop)})
	aborted := []event.Event{twice[1], twice[2], {Kind: event.ToolAbort, Call: 0, Part: 1, Why: event.Truncated}, finish(event.Length)}
	for _, whole := range []bool{false, true} {
		for _, tt := range []struct {
			events       []event.Event
			args, finish string
		}{
			{twice, `{"a": "x\\y" }`, "function_call"},
			{slices.Concat(call(0, 0, "get"), []event.Event{finish(event.ToolCalls)}), "{}", "function_call"},
			{aborted, `{"a":`, "length"},
		} {
			for _, stream := range []bool{true, false} {
				r, err := wire.Chat.Decode(fmt.Appendf(nil, `{"model":"m","stream":%t`+declared, stream), nil)
				require.NoError(t, err)
				opt := fixed()
				opt.WholeCalls = whole
				enc := wire.Chat.NewEncoder(r, opt)
				out := string(enc.Finish(enc.Append(nil, tt.events...)))
				require.NoError(t, enc.Err())
				require.NotContains(t, out, "tool_calls")
				require.NotContains(t, out, "call_id_1")
				var name, args string
				for line := range strings.Lines(out) {
					var body struct {
						Choices []struct {
							Delta, Message struct {
								Call struct{ Name, Arguments string } `json:"function_call"`
							}
						}
					}
					if data := strings.TrimPrefix(line, "data: "); strings.HasPrefix(data, "{") {
						require.NoError(t, json.Unmarshal([]byte(data), &body), data)
						for _, c := range body.Choices {
							name += c.Delta.Call.Name + c.Message.Call.Name
							args += c.Delta.Call.Arguments + c.Message.Call.Arguments
						}
					}
				}
				require.Contains(t, out, `"finish_reason":"`+tt.finish+`"`)
				if whole && tt.finish == "length" {
					require.Empty(t, name+args)
					continue
				}
				require.Equal(t, "get", name)
				require.Equal(t, tt.args, args)
				got := collect(t, wire.Chat, []byte(out), 7).Answers[0]
				require.Equal(t, tt.finish == "function_call", len(got.Calls()) == 1)
			}
		}
	}
	r, err := wire.Chat.Decode([]byte(`{"model":"m"`+declared), nil)
	require.NoError(t, err)
	body, _, err := wire.Messages.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.Contains(t, string(body), `"disable_parallel_tool_use":true`)
	p := r.Params()
	p.Model = "x"
	require.NoError(t, r.SetParams(p))
	body, _, err = wire.Chat.AppendRequest(nil, r, nil)
	require.NoError(t, err)
	require.Equal(t, `{"model":"x"`+declared, string(body))
}

// TestFail ends responses with errors of any type, by Fail or by an event.
// The error of a body that breaks off contains the API and the position.
func TestEventsBroken(t *testing.T) {
	for body, want := range map[string]string{
		"": "wire: completions response: read: unexpected EOF before the first byte",
		"data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\ndata: {\"cho": "wire: completions response: sse: read: unexpected EOF after 1 event (55 bytes)",
		`{"choices":[`: "wire: completions response: read: unexpected EOF after 12 bytes",
	} {
		var text string
		var last error
		for ev, err := range wire.Completions.Events(io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)), nil) {
			require.NoError(t, last, "the error is the last element")
			text += string(ev.Data)
			last = err
		}
		require.EqualError(t, last, want)
		require.ErrorIs(t, last, io.ErrUnexpectedEOF)
		require.Equal(t, strings.Contains(body, "data:"), text == "a")
	}
	for _, err := range wire.Chat.Events(strings.NewReader("data: {\n\n"), nil) {
		require.ErrorContains(t, err, "wire: chat response: ")
		_, ok := errors.AsType[*block.Error](err)
		require.True(t, ok)
	}
}

func TestFail(t *testing.T) {
	for _, api := range append(apis, wire.Completions) {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprint(api, "/", stream), func(t *testing.T) {
				for _, events := range [][]event.Event{nil, {text(0, "x")}} {
					fail := event.Event{Kind: event.Error, Call: -1, Why: event.Overloaded, Data: []byte("busy")}
					byEvent, byCall := api.NewEncoder(request(t, stream), fixed()), api.NewEncoder(request(t, stream), fixed())
					a, b := byEvent.Append(nil, events...), byCall.Append(nil, events...)
					a = byEvent.Finish(a, fail, text(0, "late"))
					b = byCall.Fail(b, fmt.Errorf("wrapped: %w", apierr.New(event.Overloaded, "busy")))
					require.Equal(t, string(a), string(b))
					require.NotEmpty(t, a)
					for _, enc := range []*wire.Encoder{byEvent, byCall} {
						require.Equal(t, stream && len(events) > 0, enc.Started())
						require.ErrorContains(t, enc.Err(), "busy")
						require.Empty(t, enc.Fail(nil, errors.New("again")))
						require.Empty(t, enc.Finish(nil))
						require.Empty(t, enc.Append(nil, text(0, "late")))
					}
				}
				enc := api.NewEncoder(request(t, stream), fixed())
				require.NotContains(t, string(enc.Fail(nil, errors.New("secret"))), "secret")
				require.Equal(t, event.Internal, apierr.Wrap(enc.Err()).Why)
			})
		}
	}
	enc := wire.Responses.NewEncoder(request(t, false), fixed())
	enc.Append(nil, text(0, "so far"))
	out := string(enc.Fail(nil, apierr.ContextLength(9, 0, 8)))
	require.Contains(t, out, `"status":"failed","error":{"code":"context_length_exceeded","message":"This model's maximum context length is 8 tokens.`)
	require.Contains(t, out, "so far")
}

// TestFromRequest checks the settings that encoders take from the request.
func TestFromRequest(t *testing.T) {
	encode := func(api *wire.API, r *block.Request, opt *wire.Options, events ...event.Event) string {
		return string(api.NewEncoder(r, opt).Finish(nil, events...))
	}
	t.Run("usage", func(t *testing.T) {
		usage := event.Event{Kind: event.Usage, Call: -1, Usage: &event.Tokens{Prompt: 7, Output: 3}}
		for options, want := range map[string]int{`{}`: 0, `{"include_usage":true}`: 1, `{"include_usage":true,"continuous_usage_stats":true}`: 3} {
			r := decoded(t, wire.Chat, `{"model":"m","messages":[],"stream":true,"stream_options":`+options+`}`)
			require.Equal(t, want, strings.Count(encode(wire.Chat, r, fixed(), usage, text(0, "x"), finish(event.Stop)), `"prompt_tokens":7`)-boolInt(want == 3))
		}
	})
	t.Run("tools", func(t *testing.T) {
		r := request(t, false, block.Tool{Kind: block.CustomTool, Name: "patch"}, block.Tool{Namespace: "a", Name: "get"}, block.Tool{Namespace: "b", Name: "get"})
		events := slices.Concat(call(0, 0, "patch", `{"input":"*** x"}`), call(1, 1, "a__get", "{}"))
		got := encode(wire.Responses, r, fixed(), events...)
		require.Contains(t, got, `"type":"custom_tool_call"`)
		require.Contains(t, got, `"input":"*** x"`)
		require.Contains(t, got, `"namespace":"a"`)
		require.Contains(t, encode(wire.Chat, r, fixed(), events...), `"custom":{"name":"patch","input":"*** x"}`)
	})
	t.Run("sealed", func(t *testing.T) {
		events := []event.Event{reasoning(0, "Hm."), text(1, "x")}
		for _, body := range []string{
			`{"input":"x"}`, `{"input":"x","store":true}`, `{"input":"x","store":false}`, `{"input":"x","include":["reasoning.encrypted_content"]}`,
		} {
			require.Contains(t, encode(wire.Responses, decoded(t, wire.Responses, body), fixed(), events...), `"encrypted_content":"weft`, body)
		}
		require.NotContains(t, encode(wire.Responses, decoded(t, wire.Chat, `{"messages":[]}`), fixed(), events...), "encrypted_content")
		none := fixed()
		none.Reasoning = wire.ReasoningNone
		require.NotContains(t, encode(wire.Responses, decoded(t, wire.Responses, `{"input":"x","store":false}`), none, events...), `"type":"reasoning"`)
	})
	t.Run("thinking display", func(t *testing.T) {
		events := []event.Event{reasoning(0, "Hm."), text(1, "x")}
		r := decoded(t, wire.Messages, `{"max_tokens":2000,"messages":[],"thinking":{"type":"adaptive","display":"omitted"}}`)
		require.NotContains(t, encode(wire.Messages, r, fixed(), events...), "Hm.")
		plain := fixed()
		plain.Reasoning = wire.ReasoningPlain
		require.Contains(t, encode(wire.Messages, r, plain, events...), "Hm.", "the server decides")
	})
	t.Run("echo", func(t *testing.T) {
		r := decoded(t, wire.Responses, `{"input":"x","instructions":"Be brief."}`)
		require.Contains(t, encode(wire.Responses, r, fixed(), text(0, "x")), `"instructions":"Be brief."`)
		r = decoded(t, wire.Responses, `{"input":"x","store":true}`)
		require.NotContains(t, encode(wire.Responses, r, fixed(), text(0, "x")), `"store":false`)
		unstored := fixed()
		unstored.NotStored = true
		require.NotContains(t, encode(wire.Responses, r, unstored, text(0, "x")), `"store":true`)
		require.Contains(t, encode(wire.Responses, r, unstored, text(0, "x")), `"store":false`)
	})
	t.Run("id", func(t *testing.T) {
		seen := map[string]bool{}
		for _, api := range append(apis, wire.Completions) {
			id := func(r *block.Request) string {
				_, rest, _ := strings.Cut(encode(api, r, nil, text(0, "x")), `"id":"`)
				id, _, _ := strings.Cut(rest, `"`)
				return id
			}
			a := id(request(t, false))
			require.True(t, strings.HasPrefix(a, api.IDPrefix()), a)
			require.NotEqual(t, a, id(request(t, false)), "another response to the same request")
			require.False(t, seen[a])
			longer := request(t, false)
			require.NoError(t, longer.Append(block.NewTurn(block.RoleAssistant, "Hello.")))
			require.NotEqual(t, a, id(longer))
			seen[a] = true
		}
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestLookup(t *testing.T) {
	for _, api := range append(apis, wire.Completions) {
		for _, name := range []string{api.String(), api.Path()} {
			got, err := wire.Lookup(name)
			require.NoError(t, err)
			require.Same(t, api, got)
		}
		require.True(t, strings.HasPrefix(api.Path(), "/v1/"))
	}
	for path, api := range map[string]*wire.API{"/v1/messages/count_tokens": wire.Messages, "/v1/responses/input_tokens": wire.Responses} {
		got, err := wire.Lookup(path)
		require.NoError(t, err)
		require.Same(t, api, got)
	}
	for _, name := range []string{"", "none", "/v1/models"} {
		_, err := wire.Lookup(name)
		require.EqualError(t, err, fmt.Sprintf("wire: unknown API %q: want chat, responses, messages or completions", name))
	}
}

// TestDecoderSplits splits streams and documents anywhere and compares the events with those of API.Events.
func TestDecoderSplits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		api := rapid.SampledFrom(append(apis, wire.Completions)).Draw(rt, "api")
		r := request(t, rapid.Bool().Draw(rt, "stream"))
		enc := api.NewEncoder(r, fixed())
		var body []byte
		for _, e := range streamtest.Events(rt, 1, false) {
			if rapid.IntRange(0, 5).Draw(rt, "alive") == 0 {
				body = enc.AppendKeepAlive(body)
			}
			body = enc.Append(body, e)
		}
		body = enc.Finish(body)
		body = slices.Concat([]byte(rapid.SampledFrom([]string{"", "\xEF\xBB\xBF", "\r\n ", "\n"}).Draw(rt, "before")), body)
		if len(body) > 0 && body[0] == ' ' { // a field must not begin with a space
			body = body[1:]
		}
		var want []string
		for e, err := range api.Events(bytes.NewReader(body), nil) {
			require.NoError(rt, err)
			want = append(want, e.String())
		}
		d := api.NewDecoder(nil)
		for range 2 { // the second time after Reset
			var got []string
			var events []event.Event
			take := func(err error) {
				require.NoError(rt, err)
				for _, e := range events {
					got = append(got, e.String())
				}
			}
			memory := []byte(nil)
			for _, piece := range streamtest.Split(rt, body) {
				for i := range memory {
					memory[i] = 'X'
				}
				memory = append(memory[:0], piece...)
				var err error
				events, err = d.Append(events[:0], memory)
				take(err)
			}
			var err error
			events, err = d.Finish(events[:0])
			take(err)
			require.Empty(rt, cmp.Diff(want, got))
			d.Reset()
		}
	})
}

func TestDecoder(t *testing.T) {
	const hello = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\n"
	t.Run("events in one piece keep their data", func(t *testing.T) {
		d := wire.Chat.NewDecoder(nil)
		events, err := d.Append(nil, []byte(hello+strings.ReplaceAll(hello, "Hi", `\u00e9\n`)+strings.ReplaceAll(hello, "Hi", `\u00e8\n`)+`data: {"choices":[],"usage":{"prompt_tokens":1}}`+"\n\n"+`data: {"choices":[],"usage":{"prompt_tokens":2}}`+"\n\n"))
		require.NoError(t, err)
		require.Equal(t, []string{"start", `text "Hi"`, `text "é\n"`, `text "è\n"`, "usage", "usage"}, names(events))
		require.Equal(t, []int64{1, 2}, []int64{events[4].Usage.Prompt, events[5].Usage.Prompt})
		require.Equal(t, "c1 m 0", fmt.Sprint(d.ID(), " ", d.Model(), " ", d.Dropped()))
		require.Nil(t, d.TokenIDs(0))
	})
	t.Run("malformed events", func(t *testing.T) {
		d := wire.Chat.NewDecoder(nil)
		events, err := d.Append(nil, []byte("data: {\n\n"+hello))
		_, ok := errors.AsType[*block.Error](err)
		require.True(t, ok)
		require.Empty(t, events)
		events, err = d.Append(nil, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"start", `text "Hi"`}, names(events))
		events, err = d.Append(nil, []byte(`data: {"choi`))
		require.NoError(t, err)
		events, err = d.Finish(events)
		require.NoError(t, err, "the end of the body cut it")
		require.Equal(t, []string{`error "The engine ended before the answer was finished." why=engine_failed`}, names(events))
	})
	t.Run("token ids", func(t *testing.T) {
		d := wire.Completions.NewDecoder(nil)
		_, err := d.Append(nil, []byte(`data: {"choices":[{"index":0,"text":"a","token_ids":[7,8]}]}`+"\n\n"))
		require.NoError(t, err)
		require.Equal(t, []uint32{7, 8}, d.TokenIDs(0))
	})
	t.Run("missing ends", func(t *testing.T) {
		for api, body := range map[*wire.API]string{
			wire.Chat:        hello + "data: [DONE]\n\n",
			wire.Completions: `data: {"choices":[{"text":"Hi"}]}` + "\n\ndata: [DONE]\n\n",
			wire.Messages:    `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n",
		} {
			require.Equal(t, event.EngineFailed, collect(t, api, []byte(body), 9).Err)
		}
	})
	t.Run("limits", func(t *testing.T) {
		opt := &wire.DecoderOptions{Limits: &block.Limits{Body: 64}}
		d := wire.Chat.NewDecoder(opt)
		_, err := d.Append(nil, []byte(hello))
		require.Error(t, err)
		d = wire.Chat.NewDecoder(opt)
		for range 10 {
			_, err = d.Append(nil, []byte(`{"choices":[{"message":{"content":"`))
			require.NoError(t, err)
		}
		_, err = d.Finish(nil)
		e, ok := errors.AsType[*block.Error](err)
		require.True(t, ok)
		require.Equal(t, block.LimitPassed, e.Kind)
	})
	t.Run("broken body", func(t *testing.T) {
		broken := errors.New("broken")
		for _, err := range wire.Chat.Events(iotest.ErrReader(broken), nil) {
			require.ErrorIs(t, err, broken)
		}
	})
}

func names(events []event.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.String())
	}
	return out
}

func TestTurn(t *testing.T) {
	var c event.Collector
	c.Add(slices.Concat(
		[]event.Event{
			reasoning(0, "a"), {Kind: event.Signature, Part: 0, Call: -1, Data: []byte("s")},
			reasoning(1, "b"), {Kind: event.Signature, Part: 1, Call: -1, Data: []byte("e"), Flags: event.Encrypted},
			{Kind: event.Opaque, Part: 2, Call: -1, ID: []byte("redacted_thinking"), Data: []byte(`{"type":"redacted_thinking","data":"R"}`)},
			text(3, ""), {Kind: event.Refusal, Part: 4, Call: -1, Data: []byte("No.")},
			{Kind: event.ToolResult, Part: 5, Call: -1, ID: []byte("x"), Data: []byte(`{"type":"web_search_tool_result"}`)},
			{Kind: event.Opaque, Part: 6, Call: -1, Data: []byte(`{`)},
			{Kind: event.ToolStart, Part: 7, Call: 7, Data: []byte("f"), Flags: event.InReasoning},
			{Kind: event.ToolEnd, Part: 7, Call: 7, Flags: event.Complete},
			{Kind: event.ToolStart, Part: 8, Call: 8, Data: []byte("f")}, {Kind: event.ToolAbort, Part: 8, Call: 8, Why: event.Truncated},
		},
		call(9, 9, "get", ` {"a": 1}`),
		[]event.Event{{Kind: event.ToolStart, Part: 10, Call: 10, Data: []byte("open")}},
	)...)
	got := wire.Turn(&c, 0)
	for _, b := range c.Answers[0].Blocks {
		clear(b.Data)
	}
	want := block.Turn{Role: block.RoleAssistant, Blocks: []block.Block{
		{Kind: block.Reasoning, Text: "a", Signature: "s"},
		{Kind: block.Reasoning, Text: "b", Encrypted: "e"},
		{Kind: block.Reasoning, Redacted: true, Encrypted: "R"},
		{Kind: block.Refusal, Text: "No."},
		{Kind: block.ServerItem, JSON: []byte(`{"type":"web_search_tool_result"}`)},
		{Kind: block.ToolCall, Name: "get", Args: ` {"a": 1}`},
	}}
	require.True(t, want.Equal(got), "%+v", got)
	for _, choice := range []int{-1, 1} {
		require.Empty(t, wire.Turn(&c, choice).Blocks)
	}
}

// TestAppendAllocs checks that events on the stack stay there and that deltas do not allocate.
func TestAppendAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, api := range append(apis, wire.Completions) {
		enc := api.NewEncoder(request(t, true), fixed())
		data := []byte(" word")
		out := enc.Append(make([]byte, 0, 1<<20), text(0, "x"), text(0, "y"))
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
			out = enc.Append(out[:0], event.Event{Kind: event.Text, Call: -1, Data: data})
		}), 0.5, api) // the Responses API collects the text
	}
}

// TestEncoderIDs checks that responses to equal requests have different IDs at different times.
func TestEncoderIDs(t *testing.T) {
	at := time.Unix(1700000000, 0)
	id := func() string {
		req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`), nil)
		require.NoError(t, err)
		var body struct{ ID string }
		enc := wire.Chat.NewEncoder(req, &wire.Options{Now: func() time.Time { return at }})
		require.NoError(t, json.Unmarshal(enc.Finish(nil, event.Event{Kind: event.Start}, event.Event{Kind: event.Text, Data: []byte("a")}), &body))
		return body.ID
	}
	first := id()
	require.Equal(t, first, id())
	at = at.Add(time.Nanosecond)
	require.NotEqual(t, first, id())
}
