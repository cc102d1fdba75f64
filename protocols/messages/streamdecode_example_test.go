// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"fmt"
	"strings"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
)

// The events of a stream one by one. A call whose input is cut is aborted.
func ExampleStreamDecoder() {
	d := messages.NewStreamDecoder(nil)
	var events []event.Event
	for _, data := range []string{
		`{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":20,"cache_read_input_tokens":100}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me see."}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	} {
		var err error
		events, err = d.Decode(events[:0], nil, []byte(data))
		if err != nil {
			fmt.Println(err)
		}
		for _, e := range events {
			fmt.Println(e)
			if e.Usage != nil {
				fmt.Println(e.Usage.Prompt, e.Usage.Cached, e.Usage.Output)
			}
		}
	}
	for _, e := range d.Close(events[:0]) {
		fmt.Println(e) // nothing: the answer has ended
	}
	// Output:
	// start
	// 120 100 0
	// text "Let me see."
	// tool_start call=0 "get" id="toolu_1"
	// tool_args call=0 "{\"x\":"
	// tool_abort call=0 "get" why=truncated
	// usage
	// 120 100 9
	// finish why=length
}

// The body of a streamed message, here one that was cut, as events.
func ExampleEvents() {
	body := strings.NewReader(`event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}

`)
	for e, err := range messages.Events(body, nil) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(e)
	}
	// Output:
	// start
	// text "Hel"
	// error "The engine ended before the answer was finished." why=engine_failed
}

func ExampleDecodeResponse() {
	body := `{"type":"message","role":"assistant","content":[
		{"type":"thinking","thinking":"Easy.","signature":"EqQB"},
		{"type":"text","text":"4"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":5}}`
	events, err := messages.DecodeResponse(nil, []byte(body))
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range events {
		fmt.Println(e)
	}
	// Output:
	// start
	// reasoning "Easy."
	// signature "EqQB"
	// text "4"
	// usage
	// finish why=stop
}
