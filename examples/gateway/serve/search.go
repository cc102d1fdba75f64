// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// This file lets models use the tool search of clients such as Codex, which the Responses API has as a tool and as items of
// their own. For the model it is a function:
//
//	offerSearch  declares the function, and makes the items of past searches calls and results
//	searched     makes the calls of the model items
//
// A tool that was found is declared in the result, so that the prompt before it stays the same.

// searchTool is the type of the tool and the name of the function; the items have the suffixes _call and _output.
const searchTool = "tool_search"

// A foundTool is a tool in the result of a search.
type foundTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Format      json.RawMessage `json:"format,omitempty"`
	Tools       []foundTool     `json:"tools,omitempty"` // of a namespace
}

// A searchItem is the tool, or the item of a search.
type searchItem struct {
	foundTool
	Execution string          `json:"execution"`
	CallID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"`
}

// clientSearch returns the tool or the item in raw if the client runs the search.
func clientSearch(raw []byte) (s searchItem, ok bool) {
	return s, json.Unmarshal(raw, &s) == nil && s.Execution == "client"
}

// flatten calls do for each tool that is not a namespace.
func flatten(tools []foundTool, namespace string, do func(namespace string, t *foundTool)) {
	for i := range tools {
		if t := &tools[i]; t.Type == "namespace" && namespace == "" {
			flatten(t.Tools, t.Name, do)
		} else if (t.Type == "function" || t.Type == "custom") && t.Name != "" {
			do(namespace, t)
		}
	}
}

// offerSearch makes the search of the client one that the model can use. Endpoints with the Responses API have it already.
func (c *call) offerSearch() error {
	if c.req.API() != block.Responses || slices.ContainsFunc(c.fleet.order, func(e *engine) bool {
		m, ok := e.kind.(upstream.Managed)
		return ok && m.API() == wire.Responses
	}) {
		return nil
	}
	tools := slices.Clone(c.req.Tools())
	index := func(namespace, name string) int {
		return slices.IndexFunc(tools, func(t block.Tool) bool {
			return t.Kind != block.Hosted && t.Namespace == namespace && t.Name == name
		})
	}
	if i := slices.IndexFunc(tools, func(t block.Tool) bool { return t.Kind == block.Hosted && t.Type == searchTool }); i >= 0 && index("", searchTool) < 0 {
		if s, ok := clientSearch(tools[i].JSON); ok {
			tools[i] = block.Tool{Name: searchTool, Description: s.Description, Schema: s.Parameters}
			c.search = true
		}
	}
	declared := len(tools)
	items := false
	for b, s := range c.searches() {
		items = true
		if b.Type != searchTool+"_output" {
			continue
		}
		flatten(s.Tools, "", func(namespace string, t *foundTool) {
			if index(namespace, t.Name) >= 0 {
				return
			}
			found := block.Tool{Name: t.Name, Namespace: namespace, Description: t.Description, Schema: t.Parameters, Deferred: true}
			if t.Type == "custom" {
				found.Kind, found.Schema, found.Format = block.CustomTool, nil, t.Format
			}
			tools = append(tools, found)
		})
	}
	if !c.search && !items {
		return nil
	}
	if err := c.req.SetTools(tools...); err != nil {
		return err
	}
	tools = c.req.Tools()
	shown := make([]bool, len(tools))
	for b, s := range c.searches() {
		next := block.Block{Kind: block.ToolCall, CallID: s.CallID, Name: searchTool, Args: string(s.Arguments)}
		if b.Type == searchTool+"_output" {
			var text []byte
			flatten(s.Tools, "", func(namespace string, t *foundTool) {
				i := index(namespace, t.Name)
				one := *t
				one.Name = tools[i].ModelName
				text = fmt.Appendf(text, "Tool %s is available now", one.Name)
				if i < declared || shown[i] {
					text = append(text, ".\n"...)
					return
				}
				shown[i] = true
				raw, err := json.Marshal(one)
				if err != nil {
					return // it was JSON
				}
				text = fmt.Appendf(text, ":\n%s\n", raw)
			})
			if len(text) == 0 {
				text = append(text, "No tool was found.\n"...)
			}
			next = block.Block{Kind: block.ToolResult, CallID: s.CallID, Content: []block.Block{{Kind: block.Text, Text: string(text[:len(text)-1])}}}
		}
		if err := c.req.Set(b.At, next); err != nil {
			return err
		}
	}
	return nil
}

// searches returns the items of the client's searches. They may be edited meanwhile.
func (c *call) searches() func(yield func(block.Block, searchItem) bool) {
	return func(yield func(block.Block, searchItem) bool) {
		for _, t := range c.req.Turns() {
			for _, b := range t.Blocks {
				if b.Kind != block.ServerItem || b.Type != searchTool+"_call" && b.Type != searchTool+"_output" {
					continue
				}
				if s, ok := clientSearch(b.JSON); ok && !yield(b, s) {
					return
				}
			}
		}
	}
}

// searched returns an output that sends calls of the function as items if the client offers the search.
func (c *call) searched(o output) output {
	if !c.search {
		return o
	}
	return &searchOutput{output: o, c: c, open: make(map[int32][]byte)}
}

// A searchOutput holds the calls of the function until they are complete.
type searchOutput struct {
	output
	c    *call
	open map[int32][]byte // arguments so far, by call
}

func (o *searchOutput) send(events ...event.Event) {
	for _, ev := range events {
		args, open := o.open[ev.Call]
		switch {
		case ev.Kind == event.ToolStart && string(ev.Data) == searchTool:
			o.open[ev.Call] = []byte{}
		case open && ev.Kind == event.ToolArgs:
			o.open[ev.Call] = append(args, ev.Data...)
		case open && ev.Kind == event.ToolAbort:
			delete(o.open, ev.Call)
		case open && ev.Kind == event.ToolEnd:
			delete(o.open, ev.Call)
			if !json.Valid(args) { // blank, for example
				args = []byte("{}")
			}
			o.output.send(event.Event{Kind: event.Opaque, Call: -1, ID: []byte(searchTool + "_call"), Data: fmt.Appendf(nil,
				`{"id":"tsc_%[1]s_%[2]d","type":"tool_search_call","call_id":"call_%[1]s_%[2]d","status":"completed","execution":"client","arguments":%[3]s}`,
				o.c.unique, ev.Call, args)})
		default:
			o.output.send(ev)
		}
	}
}

func (o *searchOutput) restart(start event.Event) {
	clear(o.open)
	o.output.restart(start)
}
