// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// A turn is one response of the model, built from the parser's events. It reads no clock; times are arguments.
type turn struct {
	n      int // from 1
	whole  event.Collector
	calls  []*call       // all calls, including aborted ones, in the model's order
	finish string        // the engine's finish reason; "" if the stream broke
	ended  time.Duration // since the request, like all times here
}

// A call is a complete or aborted tool call. The goroutine that runs it sets result, failed, took and ready.
type call struct {
	id, name, args string
	why            event.Why // reason for an abort; an aborted call is never run
	complete       time.Duration

	result      string
	failed      bool
	took, ready time.Duration
}

// add appends a call that has ended. An aborted call gets an error as its result.
func (t *turn) add(ended event.Call, at time.Duration) *call {
	c := &call{id: ended.ID, name: ended.Name, args: string(ended.Arguments), why: ended.Why, complete: at}
	if c.why != event.None {
		c.result = fmt.Sprintf("error: the call of %q was not run: %s. Nothing happened; write the whole call again.", c.name, c.why)
		c.failed, c.ready = true, at
	}
	t.calls = append(t.calls, c)
	return c
}

// verdict returns an error if a turn without calls is not a complete response.
func (t *turn) verdict() error {
	switch {
	case t.finish == "length":
		return errors.New("response truncated at the token limit")
	case len(t.whole.Answers) == 0 || t.whole.Answers[0].Text() == "":
		return errors.New("the model ended without an answer")
	}
	return nil
}

// reply returns the turn for the next prompt: the model's output and the results of its calls in order. The output
// omits aborted calls, which are incomplete, but the results include them.
func (t *turn) reply() (reply, results block.Turn) {
	reply, results.Role = wire.Turn(&t.whole, 0), block.RoleTool
	for _, c := range t.calls {
		results.Blocks = append(results.Blocks, block.Block{Kind: block.ToolResult, CallID: c.id, Name: c.name, IsError: c.failed,
			Content: []block.Block{{Kind: block.Text, Text: c.result}}})
	}
	return reply, results
}

// won returns the time by which the results of calls were ready earlier than if the calls had started at the end of the
// turn. A result that was ready before that end counts as ready at that end, since it could not be used before.
func (t *turn) won(calls ...*call) time.Duration {
	early, late := t.ended, t.ended
	for _, c := range calls {
		early, late = max(early, c.ready), max(late, t.ended+c.took)
	}
	return max(0, late-early)
}
