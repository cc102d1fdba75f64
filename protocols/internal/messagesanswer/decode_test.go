// SPDX-License-Identifier: Apache-2.0

package messagesanswer_test

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	weftblock "github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/callid"
	"github.com/weft-go/weft/protocols/internal/messagesanswer"
	"github.com/weft-go/weft/protocols/internal/streamtest"
	"github.com/weft-go/weft/protocols/replay"
)

func newDecoder() streamtest.Reusable { return messagesanswer.NewDecoder(nil) }

// These functions return events that most cases use.

func blockStart(index, b string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":` + b + `}`
}

func blockDelta(index, d string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":` + d + `}`
}

func blockStop(index string) string { return `{"type":"content_block_stop","index":` + index + `}` }

func textDelta(index, text string) string {
	return blockDelta(index, `{"type":"text_delta","text":`+text+`}`)
}

func inputDelta(index, text string) string {
	return blockDelta(index, `{"type":"input_json_delta","partial_json":`+text+`}`)
}

func stopFor(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null}}`
}

const (
	started   = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null}}`
	stopped   = `{"type":"message_stop"}`
	emptyText = `{"type":"text","text":""}`
	getCall   = `{"type":"tool_use","id":"toolu_1","name":"get","input":{}}`
	putCall   = `{"type":"tool_use","id":"toolu_2","name":"put","input":{}}`
)

func TestStreamDecoderExample(t *testing.T) {
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(t, err)
	got, errs := streamtest.Decode(t, messagesanswer.NewDecoder(nil), raw)
	require.Empty(t, errs)
	want := streamtest.Example()
	want[3].ID, want[8].ID = []byte("toolu_1_0"), []byte("toolu_1_1")
	sign := func(part int32, text string) event.Event { // the encoder adds a signature to all thinking
		return event.Event{Kind: event.Signature, Part: part, Call: -1, Data: (*replay.Signer)(nil).AppendSigned(nil, []byte(text))}
	}
	want = slices.Insert(want, 8, sign(2, "c"))
	want = slices.Insert(want, 3, sign(0, "ab"))
	require.Empty(t, cmp.Diff(want, got))
}

func TestStreamDecoderServers(t *testing.T) {
	const cut = `error "The engine ended before the answer was finished." why=engine_failed`
	escaped := callid.Escape("functions.get:0")
	for _, c := range []struct {
		name string
		in   []string
		want []string
	}{
		{"nothing", nil, []string{cut}},
		{
			"only deltas", // no message_start, no blocks, no stop reason
			[]string{blockDelta("0", `{"type":"thinking_delta","thinking":"hm"}`), textDelta("0", `"a"`), textDelta("0", `"b"`), stopped},
			[]string{"start", `reasoning "hm"`, `text "a"`, `text "b"`, "finish why=stop"},
		},
		{
			"no content_block_stop",
			[]string{started, blockStart("0", emptyText), textDelta("0", `"a"`), blockStart("1", getCall), inputDelta("1", `"{}"`), blockStart("2", putCall), inputDelta("2", `"{}"`), stopFor("tool_use"), stopped},
			[]string{"start", `text "a"`, `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, `tool_start call=1 "put" id="toolu_2"`, `tool_args call=1 "{}"`, "tool_end call=0", "tool_end call=1", "finish why=tool_calls"},
		},
		{
			"all indices 0, no content_block_stop",
			[]string{started, blockStart("0", emptyText), textDelta("0", `"a"`), blockStart("0", getCall), inputDelta("0", `"{}"`), blockStart("0", putCall), inputDelta("0", `"{}"`), stopFor("tool_use"), stopped},
			[]string{"start", `text "a"`, `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, "tool_end call=0", `tool_start call=1 "put" id="toolu_2"`, `tool_args call=1 "{}"`, "tool_end call=1", "finish why=tool_calls"},
		},
		{
			"index gaps and wrong indices of deltas",
			[]string{started, blockStart("1", emptyText), textDelta("7", `"a"`), blockStop("9"), blockStart("5", getCall), inputDelta("0", `"{}"`), blockStop("0"), stopFor("tool_use"), stopped},
			[]string{"start", `text "a"`, `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, "tool_end call=0", "finish why=tool_calls"},
		},
		{
			"no indices",
			[]string{started, `{"type":"content_block_start","content_block":` + getCall + `}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}`, `{"type":"content_block_stop"}`, stopFor("tool_use"), stopped},
			[]string{"start", `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, "tool_end call=0", "finish why=tool_calls"},
		},
		{
			"llama.cpp", // tools/server/server-task.cpp at 00efb3e: no input, empty signature, blocks stop at the end
			[]string{
				started, blockStart("0", `{"type":"thinking","thinking":""}`), blockDelta("0", `{"type":"thinking_delta","thinking":"hm"}`), blockStart("1", emptyText), textDelta("1", `"a"`),
				blockStart("2", `{"type":"tool_use","id":"x","name":"get"}`), inputDelta("2", `"{\"x\":"`), inputDelta("2", `"1}"`),
				blockDelta("0", `{"type":"signature_delta","signature":""}`), blockStop("0"), blockStop("1"), blockStop("2"), stopFor("tool_use"), stopped,
			},
			[]string{"start", `reasoning "hm"`, `text "a"`, `tool_start call=0 "get" id="x"`, `tool_args call=0 "{\"x\":"`, `tool_args call=0 "1}"`, "tool_end call=0", "finish why=tool_calls"},
		},
		{
			"text, thinking and input at the start of their blocks",
			[]string{
				started, blockStart("0", `{"type":"thinking","thinking":"h","signature":"SIG"}`), blockDelta("0", `{"type":"thinking_delta","thinking":"m"}`), blockStop("0"),
				blockStart("1", `{"type":"text","text":"a","citations":[{"type":"char_location"}]}`), blockStop("1"),
				blockStart("2", `{"type":"tool_use","id":"x","name":"get","input":{"x": 1}}`), blockStop("2"), stopFor("tool_use"), stopped,
			},
			[]string{
				"start", `reasoning "h"`, `reasoning "m"`, `signature "SIG"`, `text "a"`, `annotation "{\"type\":\"char_location\"}"`,
				`tool_start call=0 "get" id="x"`, `tool_args call=0 "{\"x\": 1}"`, "tool_end call=0", "finish why=tool_calls",
			},
		},
		{
			"input at the start and in deltas",
			[]string{started, blockStart("0", `{"type":"tool_use","id":"x","name":"get","input":{"x": 1}}`), inputDelta("0", `"{\"x\":1}"`), blockStop("0"), stopFor("tool_use"), stopped},
			[]string{"start", `tool_start call=0 "get" id="x"`, `tool_args call=0 "{\"x\":1}"`, "tool_end call=0", "finish why=tool_calls"},
		},
		{
			"a signature at the start and in a delta",
			[]string{started, blockStart("0", `{"type":"thinking","thinking":"","signature":"SIG"}`), blockDelta("0", `{"type":"signature_delta","signature":"SIG"}`), blockStop("0"), stopFor("end_turn"), stopped},
			[]string{"start", `signature "SIG"`, "finish why=stop"},
		},
		{
			"no input", // an empty first delta is usual
			[]string{started, blockStart("0", getCall), inputDelta("0", `""`), blockStop("0"), blockStart("1", strings.Replace(putCall, "{}", "null", 1)), blockStop("1"), stopFor("tool_use"), stopped},
			[]string{
				"start", `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, "tool_end call=0", `tool_start call=1 "put" id="toolu_2"`, `tool_args call=1 "{}"`, "tool_end call=1",
				"finish why=tool_calls",
			},
		},
		{
			"cut before the input",
			[]string{started, blockStart("0", getCall), blockStop("0"), blockStart("1", putCall), blockStop("1"), stopFor("max_tokens"), stopped},
			[]string{
				"start", `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, "tool_end call=0", `tool_start call=1 "put" id="toolu_2"`, `tool_abort call=1 "put" why=truncated`,
				"finish why=length",
			},
		},
		{
			"cut inside the input",
			[]string{started, blockStart("0", getCall), inputDelta("0", `"{\"x\":"`), blockStop("0"), stopFor("model_context_window_exceeded"), stopped},
			[]string{"start", `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{\"x\":"`, `tool_abort call=0 "get" why=truncated`, "finish why=context_full"},
		},
		{
			"broken input",
			[]string{started, blockStart("0", getCall), inputDelta("0", `"{}\""`), blockStop("0"), blockStart("1", putCall), inputDelta("1", `"[]"`), blockStop("1"), stopFor("tool_use"), stopped},
			[]string{
				"start", `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}\""`, `tool_abort call=0 "get" why=bad_arguments`,
				`tool_start call=1 "put" id="toolu_2"`, `tool_args call=1 "[]"`, `tool_abort call=1 "put" why=bad_arguments`, "finish why=stop",
			},
		},
		{
			"no name",
			[]string{started, blockStart("0", `{"type":"tool_use","id":"x"}`), inputDelta("0", `"{}"`), blockStop("0"), stopFor("tool_use"), stopped},
			[]string{"start", "tool_abort call=0 why=bad_name", "finish why=stop"},
		},
		{
			"no id, and an escaped one",
			[]string{started, blockStart("0", `{"type":"tool_use","name":"get","input":{}}`), inputDelta("0", `"{}"`), blockStop("0"), blockStart("1", `{"type":"tool_use","id":"`+escaped+`","name":"put"}`), inputDelta("1", `"{}"`), blockStop("1"), stopFor("end_turn"), stopped},
			[]string{"start", `tool_start call=0 "get"`, `tool_args call=0 "{}"`, "tool_end call=0", `tool_start call=1 "put" id="functions.get:0"`, `tool_args call=1 "{}"`, "tool_end call=1", "finish why=tool_calls"},
		},
		{
			"tools of the server",
			[]string{
				started, blockStart("0", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), inputDelta("0", `"{\"q\":1}"`), blockStop("0"),
				blockStart("1", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`), blockStop("1"), stopFor("pause_turn"), stopped,
			},
			[]string{
				"start", `tool_start call=0 "web_search" id="srvtoolu_1" server`, `tool_args call=0 "{\"q\":1}" server`, "tool_end call=0 server",
				`tool_result "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"srvtoolu_1\",\"content\":[]}" id="srvtoolu_1" server`, "finish why=paused",
			},
		},
		{
			"blocks that are not modelled",
			[]string{
				started, blockStart("0", `{"type":"redacted_thinking","data":"XX"}`), blockStop("0"),
				blockStart("1", `{"type":"mcp_tool_use","id":"m1","name":"echo","server_name":"s","input":{}}`), inputDelta("1", `"{\"a\""`), inputDelta("1", `":1}"`), blockStop("1"),
				blockStart("2", `{"type":"mcp_tool_result","tool_use_id":"m1","is_error":false,"content":[]}`), blockStop("2"),
				blockStart("3", `{"type":"compaction","content":null}`), blockDelta("3", `{"type":"compaction_delta","content":"all \"of\" it","encrypted_content":"EE"}`), blockStop("3"),
				blockStart("4", `{"type":"fallback","model":"x"}`), blockDelta("4", `{"type":"new_delta","x":1}`), blockStop("4"),
				blockStart("5", `{"type":"mcp_tool_use","id":"m2","input":{}}`), inputDelta("5", `"{"`), blockStop("5"),
				stopFor("compaction"), stopped,
			},
			[]string{
				"start", `opaque "{\"type\":\"redacted_thinking\",\"data\":\"XX\"}" id="redacted_thinking"`,
				`opaque "{\"type\":\"mcp_tool_use\",\"id\":\"m1\",\"name\":\"echo\",\"server_name\":\"s\",\"input\":{\"a\":1}}" id="mcp_tool_use"`,
				`tool_result "{\"type\":\"mcp_tool_result\",\"tool_use_id\":\"m1\",\"is_error\":false,\"content\":[]}" id="m1" server`,
				`opaque "{\"type\":\"compaction\",\"content\":\"all \\\"of\\\" it\",\"encrypted_content\":\"EE\"}" id="compaction"`,
				`opaque "{\"type\":\"fallback\",\"model\":\"x\"}" id="fallback"`, "finish why=paused",
			},
		},
		{
			"citations",
			[]string{
				started, blockStart("0", `{"type":"text","text":"","citations":[]}`), blockDelta("0", `{"type":"citations_delta","citation":{"type":"page_location"}}`), textDelta("0", `"a"`), blockStop("0"),
				stopFor("end_turn"), stopped,
			},
			[]string{"start", "text", `annotation "{\"type\":\"page_location\"}"`, `text "a"`, "finish why=stop"},
		},
		{
			"surrogates in two deltas",
			[]string{started, blockStart("0", emptyText), textDelta("0", `"a\ud83d"`), textDelta("0", `"\ude00"`), textDelta("0", `"\ud83d"`), blockStop("0"), stopFor("end_turn"), stopped},
			[]string{"start", `text "a"`, `text "😀"`, "text \"\ufffd\"", "finish why=stop"},
		},
		{
			"a stop sequence",
			[]string{started, `{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"\n\n"}}`, stopped},
			[]string{"start", `finish "\n\n" why=stop_sequence`},
		},
		{"a refusal", []string{started, stopFor("refusal"), stopped}, []string{"start", "finish why=refusal"}},
		{"an unknown reason", []string{started, stopFor("tired"), stopped}, []string{"start", "finish why=stop"}},
		{
			"no stop reason",
			[]string{started, blockStart("0", getCall), inputDelta("0", `"{}"`), blockStop("0"), stopped},
			[]string{"start", `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, "tool_end call=0", "finish why=tool_calls"},
		},
		{
			"message_delta in two", // LiteLLM: usage comes by itself
			[]string{started, stopFor("end_turn"), `{"type":"message_delta","delta":{},"usage":{"output_tokens":5}}`, stopped},
			[]string{"start", "usage", "finish why=stop"},
		},
		{
			"pings, unknown events and deltas, [DONE]",
			[]string{started, `{"type":"ping"}`, `{"type":"news","x":1}`, blockStart("0", emptyText), blockDelta("0", `{"type":"mood_delta","mood":"good"}`), textDelta("0", `"a"`), blockStop("0"), stopFor("end_turn"), stopped, `[DONE]`},
			[]string{"start", `text "a"`, "finish why=stop"},
		},
		{
			"an error event",
			[]string{started, blockStart("0", getCall), inputDelta("0", `"{}"`), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, stopped},
			[]string{"start", `tool_start call=0 "get" id="toolu_1"`, `tool_args call=0 "{}"`, `tool_abort call=0 "get" why=truncated`, `error "Overloaded" why=overloaded`},
		},
		{"an API error", []string{`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`}, []string{`error "Internal server error" why=engine_failed`}},
		{"the error of another API", []string{started, `{"error":{"message":"No such model","code":404}}`}, []string{"start", `error "No such model" why=not_found`}},
		{
			"message_start comes late, with content and its end", // a whole message in one event
			[]string{`{"type":"ping"}`, textDelta("0", `"a"`), `{"type":"message_start","message":{"content":[{"type":"text","text":"b"}],"stop_reason":"end_turn","usage":{"input_tokens":1}}}`, stopped},
			[]string{"start", `text "a"`, "usage", `text "b"`, "finish why=stop"},
		},
		{
			"two calls open, input with a wrong index goes to neither",
			[]string{started, blockStart("0", getCall), blockStart("1", putCall), inputDelta("0", `"{}"`), inputDelta("1", `"{"`), blockStop("0"), blockStop("9"), inputDelta("1", `"}"`), blockStop("1"), stopFor("tool_use"), stopped},
			[]string{
				"start", `tool_start call=0 "get" id="toolu_1"`, `tool_start call=1 "put" id="toolu_2"`, `tool_args call=0 "{}"`, `tool_args call=1 "{"`, "tool_end call=0", `tool_args call=1 "}"`, "tool_end call=1",
				"finish why=tool_calls",
			},
		},
		{"cut", []string{started, blockStart("0", getCall), blockStop("0")}, []string{"start", `tool_start call=0 "get" id="toolu_1"`, `tool_abort call=0 "get" why=truncated`, cut}},
		{"no message_stop", []string{started, stopFor("end_turn")}, []string{"start", cut}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, errs := streamtest.Decode(t, messagesanswer.NewDecoder(nil), streamtest.Bare(c.in...))
			require.Empty(t, errs)
			require.Empty(t, cmp.Diff(c.want, streamtest.Strings(got)))
		})
	}
	got, _ := streamtest.Decode(t, messagesanswer.NewDecoder(&messagesanswer.DecoderOptions{StopOptional: true}), streamtest.Bare(started, stopFor("end_turn")))
	require.Equal(t, []string{"start", "finish why=stop"}, streamtest.Strings(got))
}

func TestStreamDecoderUsage(t *testing.T) {
	for _, c := range []struct {
		name, start, end string
		want             []event.Tokens // of Start and Usage
	}{
		{
			"cached tokens are separate from the others", `{"input_tokens":20,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}`,
			`{"output_tokens":9,"output_tokens_details":{"thinking_tokens":3}}`,
			[]event.Tokens{{Prompt: 125, Cached: 100, CacheWrite: 5}, {Prompt: 125, Cached: 100, CacheWrite: 5, Output: 9, Reasoning: 3}},
		},
		{
			"an estimate at the start", `{"input_tokens":20,"cache_read_input_tokens":100}`, `{"input_tokens":110,"cache_read_input_tokens":0,"output_tokens":9}`,
			[]event.Tokens{{Prompt: 120, Cached: 100}, {Prompt: 110, Output: 9}},
		},
		{
			"counts at the end only", `{"input_tokens":0,"output_tokens":0}`, `{"input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":1},"output_tokens":9}`,
			[]event.Tokens{{}, {Prompt: 10, CacheWrite: 3, Output: 9}},
		},
		{
			"zeros at the end", `{"input_tokens":20,"cache_read_input_tokens":1,"output_tokens":4}`, `{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`,
			[]event.Tokens{{Prompt: 21, Cached: 1}, {Prompt: 21, Cached: 1, Output: 4}},
		},
		{"no counts", `null`, `null`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, errs := streamtest.Decode(t, messagesanswer.NewDecoder(nil), streamtest.Bare(
				`{"type":"message_start","message":{"usage":`+c.start+`}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+c.end+`}`, stopped,
			))
			require.Empty(t, errs)
			var u []event.Tokens
			for _, e := range got {
				if e.Usage != nil {
					u = append(u, *e.Usage)
				}
			}
			require.Empty(t, cmp.Diff(c.want, u))
		})
	}
}

func TestStreamDecoderFaults(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       weftblock.Error
		events     []string
	}{
		{name: "cut", data: `{"type":"message_st`, want: weftblock.Error{Kind: weftblock.Malformed, Path: "type", Offset: 19}},
		{name: "not JSON", data: `oops`, want: weftblock.Error{Kind: weftblock.Malformed}},
		{name: "an array", data: `[]`, want: weftblock.Error{Kind: weftblock.WrongType}},
		{name: "twice", data: `{"type":"x","type":"y"}`, want: weftblock.Error{Kind: weftblock.Malformed, Path: "type", Offset: 12}},
		{name: "no message", data: `{"type":"message_start"}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "message"}},
		{name: "no block", data: `{"type":"content_block_start","index":0,"content_block":"x"}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "content_block", Offset: 56}},
		{name: "no delta", data: `{"type":"content_block_delta","index":0}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "delta"}},
		{name: "text", data: textDelta("0", "7"), want: weftblock.Error{Kind: weftblock.WrongType, Path: "delta.text", Offset: 76}},
		{name: "index", data: textDelta(`"0"`, `"a"`), want: weftblock.Error{Kind: weftblock.WrongType, Path: "index", Offset: 38}, events: []string{"start", `text "a"`}},
		{name: "input without a call", data: inputDelta("3", `"{}"`), want: weftblock.Error{Kind: weftblock.WrongType, Path: "index"}},
		{name: "content", data: `{"type":"message_start","message":{"content":[7]}}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "message.content[0]", Offset: 46}, events: []string{"start"}},
		{name: "contents", data: `{"type":"message_start","message":{"content":7}}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "message.content", Offset: 45}, events: []string{"start"}},
		{name: "citation", data: blockDelta("0", `{"type":"citations_delta","citation":"x"}`), want: weftblock.Error{Kind: weftblock.WrongType, Path: "delta.citation", Offset: 85}},
		{name: "delta", data: `{"type":"message_delta","delta":7}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "delta", Offset: 32}, events: []string{"start"}},
		{name: "stop reason", data: `{"type":"message_delta","delta":{"stop_reason":7}}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "delta.stop_reason", Offset: 47}, events: []string{"start"}},
		{name: "usage", data: `{"type":"message_delta","usage":7}`, want: weftblock.Error{Kind: weftblock.WrongType, Path: "usage", Offset: 32}, events: []string{"start"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := messagesanswer.NewDecoder(nil)
			got, err := d.Append(nil, nil, []byte(c.data))
			streamtest.CheckError(t, err, len(c.data))
			e := *err.(*weftblock.Error)
			require.True(t, e.Answer)
			e.Msg, e.Answer = "", false
			require.Empty(t, cmp.Diff(c.want, e))
			require.ElementsMatch(t, c.events, streamtest.Strings(got))
			got, err = d.Append(nil, nil, []byte(textDelta("0", `"on"`)))
			require.NoError(t, err)
			require.Equal(t, `text "on"`, got[len(got)-1].String())
		})
	}
}

func TestStreamDecoderLimits(t *testing.T) {
	d := messagesanswer.NewDecoder(&messagesanswer.DecoderOptions{Limits: &weftblock.Limits{Body: 100}})
	_, err := d.Append(nil, nil, []byte(textDelta("0", `"`+strings.Repeat("a", 100)+`"`)))
	require.ErrorContains(t, err, "100 body bytes")

	d = messagesanswer.NewDecoder(nil)
	var got []event.Event
	limited := 0
	for i := range 200 {
		if got, err = d.Append(got[:0], nil, []byte(blockStart(fmt.Sprint(i), getCall))); err != nil {
			limited++
			require.ErrorContains(t, err, "64 blocks")
		}
	}
	require.Equal(t, 200-64, limited)

	d.Reset()
	_, err = d.Append(nil, nil, []byte(blockStart("0", `{"type":"mcp_tool_use","input":{}}`)))
	require.NoError(t, err)
	limited = 0
	for range 20 {
		if got, err = d.Append(got[:0], nil, []byte(inputDelta("0", `"`+strings.Repeat("a", 100<<10)+`"`))); err != nil {
			limited++
			require.ErrorContains(t, err, "a block is too large")
		}
	}
	require.Equal(t, 1, limited)
	got, err = d.Append(got[:0], nil, []byte(blockStop("0")))
	require.NoError(t, err)
	require.Empty(t, got)

	// Data that is too large to be held is returned immediately.
	big := strings.Repeat("x", 1<<20)
	d.Reset()
	got, err = d.Append(nil, nil, []byte(blockStart("0", `{"type":"tool_use","name":"get","input":{"x":"`+big+`"}}`)))
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, event.ToolArgs, got[2].Kind)
	got, err = d.Append(nil, nil, []byte(blockStop("0")))
	require.NoError(t, err)
	require.Equal(t, []string{"tool_end call=0"}, streamtest.Strings(got))
	for _, b := range []string{`{"type":"thinking","thinking":"","signature":"` + big + `x"}`, `{"type":"mcp_tool_use","input":"` + big + `"}`} {
		got, err = d.Append(nil, nil, []byte(blockStart("1", b)))
		require.NoError(t, err)
		require.Len(t, got, 1)
	}
}

func TestStreamDecoderPlainError(t *testing.T) {
	got, errs := streamtest.Decode(t, messagesanswer.NewDecoder(nil), []byte("event: error\ndata: upstream died\n\n"))
	require.Empty(t, errs)
	require.Equal(t, []string{`error "upstream died" why=engine_failed`}, streamtest.Strings(got))
}

func TestDecodeResponse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{
			"several blocks",
			`{"type":"message","role":"assistant","content":[
				{"type":"thinking","thinking":"hm","signature":"SIG"},{"type":"redacted_thinking","data":"X"},
				{"type":"text","text":"hi","citations":[{"type":"char_location"}]},{"type":"text","text":"hi"},
				{"type":"tool_use","id":"a","name":"get","input":{"x": [1]}},{"type":"tool_use","id":"b","name":"put","input":{}},
				{"type":"mcp_tool_use","id":"c","input":{"y":2}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`,
			[]string{
				"start", `reasoning "hm"`, `signature "SIG"`, `opaque "{\"type\":\"redacted_thinking\",\"data\":\"X\"}" id="redacted_thinking"`,
				`text "hi"`, `annotation "{\"type\":\"char_location\"}"`, `text "hi"`, `tool_start call=0 "get" id="a"`, `tool_args call=0 "{\"x\": [1]}"`, "tool_end call=0",
				`tool_start call=1 "put" id="b"`, `tool_args call=1 "{}"`, "tool_end call=1", `opaque "{\"type\":\"mcp_tool_use\",\"id\":\"c\",\"input\":{\"y\":2}}" id="mcp_tool_use"`,
				"usage", "finish why=tool_calls",
			},
		},
		{
			"cut before the input", `{"content":[{"type":"tool_use","id":"b","name":"put","input":{}}],"stop_reason":"max_tokens"}`,
			[]string{"start", `tool_start call=0 "put" id="b"`, `tool_abort call=0 "put" why=truncated`, "finish why=length"},
		},
		{"no content", `{"type":"message","content":[],"stop_reason":"end_turn"}`, []string{"start", "finish why=stop"}},
		{"an error", `{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."}}`, []string{`error "Slow down." id="rate_limit_exceeded" why=overloaded`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := messagesanswer.NewDecoder(nil).AppendWhole(nil, []byte(c.in))
			require.NoError(t, err)
			streamtest.CheckWhole(t, got)
			require.Empty(t, cmp.Diff(c.want, streamtest.Strings(got)))
		})
	}
	_, err := messagesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"content":`))
	streamtest.CheckError(t, err, 11)
	_, err = messagesanswer.NewDecoder(nil).AppendWhole(nil, []byte(`{"hello":1}`))
	require.EqualError(t, err, "a message was expected, not an object at byte 0")
}

func TestEvents(t *testing.T) {
	raw, err := os.ReadFile("testdata/example.sse")
	require.NoError(t, err)
	body, err := os.ReadFile("testdata/example.json") // a server that does not stream
	require.NoError(t, err)
	var c, whole event.Collector
	for e, err := range pull(iotest.OneByteReader(bytes.NewReader(raw)), nil) {
		require.NoError(t, err)
		c.Add(e)
	}
	for e, err := range pull(bytes.NewReader(body), nil) {
		require.NoError(t, err)
		whole.Add(e)
	}
	d := messagesanswer.NewDecoder(nil)
	_, err = d.AppendWhole(nil, body)
	require.NoError(t, err)
	require.Equal(t, "msg_1 demo", d.ID()+" "+d.Model())
	require.Equal(t, "ok", c.Answers[0].Text())
	require.Equal(t, "abc", c.Answers[0].Reasoning())
	require.Equal(t, event.Tokens{Prompt: 120, Cached: 100, Output: 9, Reasoning: 3}, c.Usage)
	require.Empty(t, cmp.Diff(c, whole, cmpopts.IgnoreUnexported(event.Block{}), cmpopts.EquateEmpty()))
}

func TestStreamDecoderAllocs(t *testing.T) {
	d := messagesanswer.NewDecoder(nil)
	for _, data := range []string{started, blockStart("0", emptyText), blockStart("1", `{"type":"thinking","thinking":""}`), blockStart("2", getCall)} {
		_, err := d.Append(nil, nil, []byte(data))
		require.NoError(t, err)
	}
	streamtest.CheckAllocs(t, d, nil,
		textDelta("0", `"plain"`), textDelta("0", `"a \"quote\"\n"`), inputDelta("2", `"{\"x\": 1, "`),
		blockDelta("1", `{"type":"thinking_delta","thinking":"hm \u00e9"}`),
	)
}

func TestEventsWholeLimits(t *testing.T) {
	streamtest.CheckWholeLimits(t, `{"id":"a","type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}`,
		func(src io.Reader, lim *weftblock.Limits) iter.Seq2[event.Event, error] {
			return pull(src, &messagesanswer.DecoderOptions{Limits: lim})
		})
}
