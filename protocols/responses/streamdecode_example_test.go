// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"fmt"
	"strings"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/responses"
)

// A server that sends only what it must is understood.
func ExampleStreamDecoder() {
	d := responses.NewStreamDecoder(nil)
	var events []event.Event
	for _, data := range []string{
		`{"type":"response.created","response":{"status":"in_progress"}}`,
		`{"type":"response.output_text.delta","delta":"Let me see."}`,
		`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c1","name":"get"}}`,
		`{"type":"response.function_call_arguments.delta","delta":"{\"x\":"}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"get","arguments":"{\"x\":1}"}}`,
		`{"type":"response.completed","response":{"status":"completed"}}`,
	} {
		var err error
		events, err = d.Decode(events[:0], nil, []byte(data))
		if err != nil {
			fmt.Println(err)
		}
		for _, e := range events {
			fmt.Println(e)
		}
	}
	for _, e := range d.Close(events[:0]) {
		fmt.Println(e) // nothing: the answer has ended
	}
	// Output:
	// start
	// text "Let me see."
	// tool_start call=0 "get" id="c1"
	// tool_args call=0 "{\"x\":"
	// tool_args call=0 "1}"
	// tool_end call=0
	// finish why=tool_calls
}

// The body of a streamed response, here one that was cut, as events.
func ExampleEvents() {
	body := strings.NewReader(`event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hel"}

`)
	for e, err := range responses.Events(body, nil) {
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
	body := `{"status":"completed","output":[
		{"type":"reasoning","summary":[{"type":"summary_text","text":"Easy."}],"encrypted_content":"gAAA"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"4"}]}]}`
	events, err := responses.DecodeResponse(nil, []byte(body))
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range events {
		fmt.Println(e)
	}
	// Output:
	// start
	// reasoning "Easy."
	// signature "gAAA" encrypted
	// text "4"
	// finish why=stop
}
