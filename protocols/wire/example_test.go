// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// The handler of a server is the same for each API. The engine in this example generates two words.
func Example() {
	serve := func(api *wire.API) http.HandlerFunc {
		refuse := func(w http.ResponseWriter, err error) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(api.Status(err))
			w.Write(api.AppendError(nil, err))
		}
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
			if err != nil {
				refuse(w, err)
				return
			}
			req, err := api.Decode(body, nil)
			if err != nil {
				refuse(w, err)
				return
			}
			enc := api.NewEncoder(req, &wire.Options{ID: api.IDPrefix() + "1"}) // by default, a new one
			w.Header().Set("Content-Type", enc.ContentType())
			var out []byte
			for _, word := range []string{"Good", " morning"} {
				out = enc.Append(out[:0], event.Event{Kind: event.Text, Call: -1, Data: []byte(word)})
				w.Write(out)
			}
			w.Write(enc.Finish(out[:0], event.Event{Kind: event.Finish, Call: -1, Why: event.Stop}))
		}
	}
	mux := http.NewServeMux()
	for _, api := range []*wire.API{wire.Chat, wire.Responses, wire.Messages} {
		mux.Handle("POST "+api.Path(), serve(api))
	}

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/v1/messages", strings.NewReader(
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`)))
	fmt.Println(w.Body)
	// Output:
	// {"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Good morning"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}
}

// Before the response has started, an error can have its own status.
func ExampleEncoder_Started() {
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[],"stream":true}`), nil)
	if err != nil {
		panic(err)
	}
	enc := wire.Chat.NewEncoder(req, &wire.Options{ID: "chatcmpl-1"})
	out := enc.Finish(nil, event.Event{Kind: event.Error, Call: -1, Why: event.Overloaded, Data: []byte("busy")})
	if err := enc.Err(); err != nil && !enc.Started() {
		fmt.Println(wire.Chat.Status(err))
		out = wire.Chat.AppendError(nil, err)
	}
	fmt.Printf("%s\n", out)
	// Output:
	// 503
	// {"error":{"message":"busy","type":"server_error","param":null,"code":null}}
}

// Translate a response of the Chat API for a client of the Messages API.
func ExampleAPI_NewDecoder() {
	req, err := wire.Messages.Decode([]byte(`{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`), nil)
	if err != nil {
		panic(err)
	}
	enc := wire.Messages.NewEncoder(req, &wire.Options{ID: "msg_1"})
	dec := wire.Chat.NewDecoder(nil)
	var events []event.Event
	for _, piece := range []string{
		`data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Good`,
		` morning"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
	} {
		if events, err = dec.Append(events[:0], []byte(piece)); err != nil {
			panic(err)
		}
		fmt.Printf("%s", enc.Append(nil, events...))
	}
	if events, err = dec.Finish(events[:0]); err != nil {
		panic(err)
	}
	fmt.Printf("%s", enc.Finish(nil, events...))
	// Output:
	// event: message_start
	// data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}
	//
	// event: content_block_start
	// data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
	//
	// event: content_block_delta
	// data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good morning"}}
	//
	// event: content_block_stop
	// data: {"type":"content_block_stop","index":0}
	//
	// event: message_delta
	// data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}
	//
	// event: message_stop
	// data: {"type":"message_stop"}
}

// Run the tool calls of an engine's response, each as soon as it is complete.
func ExampleAPI_Events() {
	body := strings.NewReader(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

`)
	for call, err := range event.Calls(wire.Chat.Events(body, nil)) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %s %s\n", call.ID, call.Name, call.Arguments)
	}
	// Output: c1 read {}
}

// A complete response becomes the next turn of a conversation.
func ExampleTurn() {
	var answer event.Collector
	answer.Add(
		event.Event{Kind: event.Reasoning, Call: -1, Data: []byte("Look it up.")},
		event.Event{Kind: event.ToolStart, Part: 1, Data: []byte("weather"), ID: []byte("c1")},
		event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte(`{"city":"Oslo"}`)},
		event.Event{Kind: event.ToolEnd, Part: 1, Flags: event.Complete},
		event.Event{Kind: event.Finish, Call: -1, Why: event.ToolCalls},
	)
	conv := block.NewRequest(block.NewTurn(block.RoleUser, "Weather in Oslo?"))
	if err := conv.Append(wire.Turn(&answer, 0)); err != nil {
		panic(err)
	}
	for _, b := range conv.Turns()[1].Blocks {
		if b.Kind == block.ToolCall {
			fmt.Println(b.CallID, b.Name, b.Args)
		} else {
			fmt.Println(b.Text)
		}
	}
	// Output:
	// Look it up.
	// c1 weather {"city":"Oslo"}
}

// Options that a server can set for a response.
func ExampleOptions() {
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[]}`), nil)
	if err != nil {
		panic(err)
	}
	enc := wire.Chat.NewEncoder(req, &wire.Options{
		ID:        wire.Chat.IDPrefix() + "7",
		Now:       func() time.Time { return time.Unix(1700000000, 0) },
		Reasoning: wire.ReasoningPlain,
		Details:   wire.DetailsNever,
	})
	fmt.Printf("%s\n", enc.Finish(nil,
		event.Event{Kind: event.Reasoning, Call: -1, Data: []byte("Hm.")},
		event.Event{Kind: event.Text, Part: 1, Call: -1, Data: []byte("No.")},
		event.Event{Kind: event.Finish, Call: -1, Why: event.Stop},
	))
	// Output:
	// {"id":"chatcmpl-7","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"No.","refusal":null,"reasoning":"Hm."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}
}

// With Dynamo's dispatch events, the client receives a call as soon as it is complete, while the model is still
// generating.
func ExampleOptions_dispatch() {
	req, err := wire.Chat.Decode([]byte(`{"model":"m","messages":[],"stream":true}`), nil)
	if err != nil {
		panic(err)
	}
	enc := wire.Chat.NewEncoder(req, &wire.Options{ID: "chatcmpl-1", ToolDispatch: true, ReasoningDispatch: true})
	out := enc.Append(nil,
		event.Event{Kind: event.Reasoning, Part: 0, Data: []byte("Look.")},
		event.Event{Kind: event.ToolStart, Part: 1, Data: []byte("read")},
		event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte(`{"path": "a.go"}`)},
		event.Event{Kind: event.ToolEnd, Part: 1, Flags: event.Complete},
	)
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, `data: {"choice_index"`) || strings.HasPrefix(line, `data: {"index"`) {
			fmt.Print(line)
		}
	}
	// Output:
	// data: {"index":0,"reasoning_content":"Look."}
	// data: {"choice_index":0,"tool_call":{"index":0,"id":"call_1_0","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.go\"}"}}}
}

// Convert a request of the Chat API. What the other API cannot express is a loss.
func ExampleAPI_AppendConverted() {
	body, losses, err := wire.Messages.AppendConverted(nil, wire.Chat, []byte(`{"model":"m","seed":7,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(body))
	for _, l := range losses {
		fmt.Println(l)
	}
	// Output:
	// {"model":"m","max_tokens":8192,"messages":[{"role":"user","content":"Hi"}]}
	// seed: no field in the Messages API: seed
	// max_tokens: the Messages API requires max_tokens; the default was set
}

// The APIs of a program are normally named by flags.
func ExampleLookup() {
	from, to := wire.Chat, wire.Messages // the defaults
	flags := flag.NewFlagSet("convert", flag.ContinueOnError)
	flags.Func("from", "`API` of the requests", func(name string) (err error) { from, err = wire.Lookup(name); return err })
	flags.Func("to", "`API` to convert to", func(name string) (err error) { to, err = wire.Lookup(name); return err })
	if err := flags.Parse([]string{"-to", "responses"}); err != nil {
		panic(err)
	}
	fmt.Println(from, to)
	// Output:
	// chat responses
}

// Reply with an error in the form of the API.
func ExampleAPI_WriteError() {
	_, err := wire.Messages.Decode([]byte(`{"messages":7}`), nil)
	w := httptest.NewRecorder()
	wire.Messages.WriteError(w, err)
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	fmt.Println(w.Body)
	// Output:
	// 400 application/json
	// {"type":"error","error":{"type":"invalid_request_error","message":"messages: an array was expected, not a number at byte 12"}}
}

// Each API has its own form of an error.
func ExampleAPI_AppendError() {
	err := apierr.Overloaded(0)
	for _, api := range []*wire.API{wire.Chat, wire.Responses, wire.Messages} {
		fmt.Printf("%d %s\n", api.Status(err), api.AppendError(nil, err))
	}
	// Output:
	// 503 {"error":{"message":"The server is overloaded. Please try again later.","type":"server_error","param":null,"code":"server_overloaded"}}
	// 503 {"error":{"message":"The server is overloaded. Please try again later.","type":"server_error","param":null,"code":"server_overloaded"}}
	// 529 {"type":"error","error":{"type":"overloaded_error","message":"The server is overloaded. Please try again later."}}
}
