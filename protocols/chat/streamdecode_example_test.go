// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"fmt"
	"strings"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/event"
)

func ExampleStreamDecoder() {
	d := chat.NewStreamDecoder(nil)
	var events []event.Event
	for _, data := range []string{
		`{"choices":[{"delta":{"role":"assistant","reasoning_content":"Look it up."}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"search","arguments":""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":\"weft\"}"}}]}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`,
		`[DONE]`,
	} {
		var err error
		if events, err = d.Decode(events[:0], nil, []byte(data)); err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range events {
			fmt.Println(e)
		}
	}
	fmt.Println(len(d.Close(nil)))
	// Output:
	// start
	// reasoning "Look it up."
	// tool_start call=0 "search" id="call_1"
	// tool_args call=0 "{\"q\":\"weft\"}"
	// tool_end call=0
	// finish why=tool_calls
	// 0
}

func ExampleEvents() {
	// The body of an HTTP answer that breaks off.
	body := strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choi")
	for e, err := range chat.Events(body, nil) {
		fmt.Println(e, err)
	}
	// Output:
	// start <nil>
	// text "Hel" <nil>
	// error "The engine ended before the answer was finished." why=engine_failed <nil>
}

func ExampleDecodeResponse() {
	events, err := chat.DecodeResponse(nil, []byte(`{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var c event.Collector
	c.Add(events...)
	fmt.Println(c.Answers[0].Text(), c.Answers[0].Finish)
	// Output: Hi stop
}
