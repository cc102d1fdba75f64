// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"os"
	"slices"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/parsers/family"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// The program of the README: chunks in, events out, and from the events a response of the Messages API. The call is
// complete while the rest still streams. The tools of the request specify that depth is a number.
func Example() {
	tools := []parsers.Tool{{Name: "ls", Schema: []byte(`{"properties":{"dir":{"type":"string"},"depth":{"type":"integer"}}}`)}}
	p, err := parsers.New("qwen3_coder", &parsers.Options{Tools: tools})
	if err != nil {
		panic(err)
	}
	req, err := wire.Messages.Decode([]byte(`{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"What is in /tmp?"}]}`), nil)
	if err != nil {
		panic(err)
	}
	enc := wire.Messages.NewEncoder(req, &wire.Options{ID: "msg_1"}) // wire.Chat and wire.Responses alike; a stream, if the request asks for one
	chunks := [][]byte{[]byte("<think>Look.</th"), []byte("ink>\n\n<tool_call>\n<function=ls>\n<para"), []byte("meter=dir>\n/tmp\n</parameter>\n"),
		[]byte("<parameter=depth>\n2\n</parameter>\n</function>"), []byte("\n</tool_call>")}
	for e, err := range parsers.Events(p, slices.Values(chunks)) {
		if err != nil {
			panic(err)
		}
		fmt.Println(e)
		os.Stdout.Write(enc.Append(nil, e))
	}
	os.Stdout.Write(enc.Finish(nil))
	// Output:
	// reasoning "Look."
	// tool_start call=0 "ls"
	// tool_args call=0 "{\"dir\":\"/tmp"
	// tool_args call=0 "\""
	// tool_args call=0 ",\"depth\":2"
	// tool_args call=0 "}"
	// tool_end call=0
	// finish why=tool_calls
	// {"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Look.","signature":"weft3.u.5.D8Mslg"},{"type":"tool_use","id":"toolu_1_0","name":"ls","input":{"dir":"/tmp","depth":2}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}
}

// The same without an iterator: Append parses a chunk, Finish ends the stream with the engine's finish reason.
func ExampleParser_Append() {
	p, err := parsers.New("hermes", nil)
	if err != nil {
		panic(err)
	}
	var events []event.Event
	for _, chunk := range []string{"Hello <tool", `_call>{"name":"now","arguments":{}}</tool_call>`} {
		if events, err = p.Append(events[:0], []byte(chunk)); err != nil {
			panic(err)
		}
		fmt.Println(events)
	}
	events, err = p.Finish(events[:0], event.Stop)
	fmt.Println(events, err)
	// Output:
	// [text "Hello "]
	// [tool_start call=0 "now" tool_args call=0 "{}" tool_end call=0]
	// [finish why=tool_calls] <nil>
}

func ExampleEvents() {
	p, _ := parsers.New("hermes", nil)
	deltas := slices.Values([][]byte{[]byte("Hello "), []byte(`<tool_call>{"name":"now","arguments":{}}</tool_call>`)})
	for e, err := range parsers.Events(p, deltas) {
		fmt.Println(e, err)
	}
	// Output:
	// text "Hello " <nil>
	// tool_start call=0 "now" <nil>
	// tool_args call=0 "{}" <nil>
	// tool_end call=0 <nil>
	// finish why=tool_calls <nil>
}

// The loop of a harness: each call runs while the model still writes the next one.
func ExampleEvents_calls() {
	p, _ := parsers.New("hermes", nil)
	deltas := slices.Values([][]byte{[]byte(`<tool_call>{"name":"ls","arguments":{"dir": "/tmp"}}`), []byte(`</tool_call><tool_call>{"name":"rm","arg`)})
	for call, err := range event.Calls(parsers.Events(p, deltas)) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("go run %s(%s)\n", call.Name, call.Arguments)
	}
	// Output:
	// go run ls({"dir": "/tmp"})
}

// A new family is a grammar value: here one that writes calls as <call>{"tool": …, "args": …}</call>.
func ExampleNewParser() {
	mine := family.New("hermes")
	mine.Name, mine.Aliases = "mine", nil
	mine.Tagged.Open, mine.Tagged.Close = grammar.Lit("<call>"), grammar.Lit("</call>")
	mine.Tagged.Body.Call = &grammar.JSONCall{Name: []string{"tool"}, Arguments: []string{"args"}}
	p, err := parsers.NewParser(mine, nil)
	if err != nil {
		panic(err)
	}
	var answer event.Collector
	events, _ := p.Append(nil, []byte(`Done.<call>{"tool":"save","args":{"n":1}}</call>`))
	answer.Add(events...)
	for _, c := range answer.Answers[0].Calls() {
		fmt.Printf("%s(%s)\n", c.Name, c.Data)
	}
	// Output:
	// save({"n":1})
}

// Dynamo's rules for the family, except that the source of malformed calls is text and that calls to tools that the
// request does not declare abort.
func ExampleParsePolicy() {
	policy, err := parsers.ParsePolicy("dynamo failed=malformed reject_unknown_tools")
	if err != nil {
		panic(err)
	}
	p, err := parsers.New("hermes", &parsers.Options{Policy: policy, Tools: []parsers.Tool{{Name: "ls"}}})
	if err != nil {
		panic(err)
	}
	chunks := [][]byte{[]byte(`<tool_call>{"name":"rm","arguments":{}}</tool_call>`), []byte(`<tool_call>{"name":"ls","arguments":[]}</tool_call>`)}
	for e, err := range parsers.Events(p, slices.Values(chunks)) {
		fmt.Println(e, err)
	}
	// Output:
	// tool_abort call=0 "rm" why=unknown_tool <nil>
	// text "<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>" <nil>
	// tool_abort call=1 "ls" why=bad_arguments <nil>
	// text "<tool_call>{\"name\":\"ls\",\"arguments\":[]}</tool_call>" <nil>
	// finish why=stop <nil>
}
