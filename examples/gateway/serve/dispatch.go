// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net/http"

	"github.com/weft-go/weft/protocols/event"
)

// notices specifies the dispatch events that a client gets in a chat stream. The streams of the other APIs have events
// for the end of a call or a run of reasoning.
type notices struct{ calls, reasoning bool }

// notices returns the dispatch events that the client requests and the options permit. One header requests both kinds,
// as in Dynamo, where only the flags of the server select them.
func (g *Gateway) notices(h http.Header) notices {
	if h.Get("X-Weft-Tool-Dispatch") != "1" {
		return notices{}
	}
	return notices{calls: g.opt.ToolDispatch, reasoning: g.opt.ReasoningDispatch}
}

// listen sets the callbacks for calls and reasoning, at the start of each attempt. They flush first, so that the client has
// the call or the reasoning before Options.OnToolCall or OnReasoning is called, and those are not called if the write
// fails. The next flush returns the error again.
func (c *call) listen(ctx context.Context) {
	opt := &c.g.opt
	c.early = event.Dispatcher{InReasoning: opt.CallsInReasoning}
	if opt.OnToolCall != nil {
		c.early.OnCall = func(t event.Call) {
			if c.out.flush() != nil {
				return
			}
			c.sent = true
			opt.OnToolCall(ctx, ToolCall{
				RequestID: c.id, Choice: int(t.Choice), ID: t.ID, Name: t.Name, Arguments: string(t.Arguments), Custom: t.Flags.Has(event.Custom),
			})
		}
	}
	if opt.OnReasoning != nil {
		c.early.OnReasoning = func(choice int32, text []byte, why event.Why) {
			if why != event.LimitExceeded && c.out.flush() == nil {
				c.sent = true
				opt.OnReasoning(ctx, Reasoning{RequestID: c.id, Choice: int(choice), Text: string(text)})
			}
		}
	}
}
