// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"fmt"

	"github.com/weft-go/weft/protocols/event"
)

func ExampleCollector() {
	var c event.Collector
	c.Add(
		event.Event{Kind: event.Reasoning, Part: 0, Data: []byte("Look it ")},
		event.Event{Kind: event.Reasoning, Part: 0, Data: []byte("up.")},
		event.Event{Kind: event.ToolStart, Part: 1, Data: []byte("search")},
		event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte(`{"q":`)},
		event.Event{Kind: event.ToolArgs, Part: 1, Data: []byte(`"weft"}`)},
		event.Event{Kind: event.ToolEnd, Part: 1, Flags: event.Complete},
		event.Event{Kind: event.Finish, Why: event.ToolCalls},
	)
	a := c.Answers[0]
	fmt.Println(a.Reasoning())
	for _, call := range a.Calls() {
		fmt.Printf("%s(%s)\n", call.Name, call.Data)
	}
	fmt.Println(a.Finish)
	// Output:
	// Look it up.
	// search({"q":"weft"})
	// tool_calls
}

func ExampleEvent_Clone() {
	buffer := []byte("first")
	e := event.Event{Kind: event.Text, Data: buffer}
	kept := e.Clone()
	copy(buffer, "other") // the producer reuses its memory
	fmt.Println(e)
	fmt.Println(kept)
	// Output:
	// text "other"
	// text "first"
}
