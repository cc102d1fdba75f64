// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/replay"
)

// This file compacts conversations of the Responses API: at an item compaction_trigger at the end of the input, and at
// /v1/responses/compact. The model writes a summary, and the client gets exactly one item, which has it sealed. Later
// requests begin with that item instead of what was summarized:
//
//	expand     replaces such items by their summaries
//	summarize  asks for a summary
//	compacted  makes the response of the model an item

// compactPath is the endpoint that returns a summary.
const compactPath = "/v1/responses/compact"

// compactionPrompt asks the model for a summary.
const compactionPrompt = "This conversation is about to be replaced by a summary. Write the summary now, as plain text and without calling tools. " +
	"Whoever continues will see nothing else, so include: what the user wants, in their words where they matter; decisions and constraints; " +
	"what was done, with names of files and commands and their results; what failed and why; what remains, and the next step."

// compactionHead precedes a summary in the prompt.
const compactionHead = "Summary of the conversation so far, which it replaces:\n\n"

// expand replaces the compaction items of the request by their summaries. An item that this gateway, or another one with
// its keys, has not made for the tenant is an error: without it, the model would have no past.
func (c *call) expand() error {
	turns := c.req.Turns()
	for i := len(turns) - 1; i >= 0; i-- {
		t := &turns[i]
		if len(t.Blocks) != 1 || t.Blocks[0].Kind != block.Compaction || c.req.API() != block.Responses {
			continue
		}
		b := &t.Blocks[0]
		text, verdict := c.signer.Open(b.Encrypted, "")
		if verdict != replay.Intact {
			return &apierr.Error{Why: event.Invalid, Param: b.At.Path(), Code: "invalid_encrypted_content",
				Message: "This summary was not made by this server, or for another client, or with a key that it no longer has. Start a new conversation."}
		}
		if err := c.req.InsertTurn(i, block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: compactionHead + text}}}); err != nil {
			return err
		}
		if err := c.req.Delete(b.At); err != nil {
			return err
		}
	}
	return nil
}

// summarize makes the request one for a summary if it ends with a trigger, or always if it was sent to the endpoint.
func (c *call) summarize() error {
	turns := c.req.Turns()
	if c.req.API() != block.Responses || len(turns) == 0 {
		return nil
	}
	if last := &turns[len(turns)-1]; isItem(c.req, last) && last.Blocks[0].Type == "compaction_trigger" {
		if err := c.req.Delete(last.Blocks[0].At); err != nil {
			return err
		}
		c.compact = true
	}
	if !c.compact {
		return nil
	}
	p := c.req.Params()
	p.Format, p.ToolChoice = block.Format{}, block.ToolChoice{Mode: block.NoTools}
	if err := c.req.SetParams(p); err != nil {
		return err
	}
	return c.req.Append(block.Turn{Role: block.RoleUser, Blocks: []block.Block{{Kind: block.Text, Text: compactionPrompt}}})
}

// compacted returns an output that sends one item instead of the response if that is a summary.
func (c *call) compacted(o output) output {
	if !c.compact {
		return o
	}
	return &summaryOutput{output: o, c: c}
}

// A summaryOutput collects the text of the model, and sends it as an item at the end.
type summaryOutput struct {
	output
	c    *call
	text []byte
}

func (o *summaryOutput) send(events ...event.Event) {
	for _, ev := range events {
		switch ev.Kind {
		case event.Text:
			o.text = append(o.text, ev.Data...)
		case event.Finish:
			if ev.Why == event.Length || ev.Why == event.ContextFull {
				code, message := o.c.cutSummary(ev.Why)
				o.output.send(event.Event{Kind: event.Error, Why: event.Invalid, Call: -1, ID: []byte(code), Data: []byte(message)})
				continue
			}
			sealed, ok := o.c.signer.AppendSealed(nil, o.text)
			if !ok || len(bytes.TrimSpace(o.text)) == 0 || ev.Why == event.ContentFilter || ev.Why == event.Refused {
				o.output.send(event.Event{Kind: event.Error, Why: event.EngineFailed, Call: -1, Data: []byte("The model wrote no summary that can be used.")})
				continue
			}
			ev.Why = event.Stop // also if the model wrote calls
			o.output.send(event.Event{Kind: event.Opaque, Call: -1, ID: []byte("compaction"),
				Data: fmt.Appendf(nil, `{"id":"cmp_%s","type":"compaction","encrypted_content":%q}`, o.c.unique, sealed)}, ev)
		case event.Usage, event.Error:
			o.output.send(ev)
		}
	}
}

// cutSummary returns the code and the message of the error for a summary that a limit has cut. It is not sent, because the client
// would replace its conversation by a part of one. If the window is the limit, the code makes Codex shorten the conversation.
func (c *call) cutSummary(why event.Why) (code, message string) {
	limit, room := c.req.Params().MaxTokens, int64(math.MaxInt64)
	if dec := c.choices[0].dec; dec != nil { // not at a managed endpoint
		room = int64(dec.Limit())
	}
	switch m := c.record(); {
	case why == event.Length && limit != nil && *limit <= room:
		return "", fmt.Sprintf("The summary was cut at max_output_tokens (%d), so it cannot replace the conversation: send a higher limit or none.", *limit)
	case why == event.Length && (c.managed() || m.MaxOutputTokens > 0 && m.MaxOutputTokens <= room):
		return "", "The summary was cut at the model's limit of output tokens, so it cannot replace the conversation."
	}
	return apierr.CodeContextLength, "The input leaves too little of the model's context window for a summary, which was cut and cannot replace the conversation. Please reduce the length of the input."
}

func (o *summaryOutput) restart(start event.Event) {
	o.text = o.text[:0]
	o.output.restart(start)
}

// compactionBody returns the body of the endpoint's response for the body of a response.
func compactionBody(body []byte) ([]byte, error) {
	var r struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Created json.Number     `json:"created_at"`
		Output  json.RawMessage `json:"output"`
		Usage   json.RawMessage `json:"usage"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	r.Object = "response.compaction"
	return json.Marshal(r)
}
