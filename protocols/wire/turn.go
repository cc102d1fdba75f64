// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
)

// Turn returns a choice of a response as the next assistant turn of the conversation: reasoning with signatures, text,
// refusals and calls, in the order in which the model generated them. choice is the index in c.Answers; if it is out of
// range, Turn returns an empty turn.
//
// Calls keep the IDs of their events and the exact text of their arguments. Aborted calls, open calls, calls inside
// reasoning and annotations are left out.
//
// The turn does not share memory with the Collector.
func Turn(c *event.Collector, choice int) block.Turn {
	t := block.Turn{Role: block.RoleAssistant}
	if choice < 0 || choice >= len(c.Answers) {
		return t
	}
	for i := range c.Answers[choice].Blocks {
		if b, ok := turnBlock(&c.Answers[choice].Blocks[i]); ok {
			t.Blocks = append(t.Blocks, b)
		}
	}
	return t
}

// turnBlock returns b as a block of a conversation. It returns false if b does not belong in one.
func turnBlock(b *event.Block) (block.Block, bool) {
	switch b.Kind {
	case event.Reasoning:
		out := block.Block{Kind: block.Reasoning, Text: string(b.Data)}
		if b.Flags.Has(event.Encrypted) {
			out.Encrypted = string(b.Signature)
		} else {
			out.Signature = string(b.Signature)
		}
		return out, len(b.Data) > 0 || len(b.Signature) > 0
	case event.Text:
		return block.Block{Kind: block.Text, Text: string(b.Data)}, len(b.Data) > 0
	case event.Refusal:
		return block.Block{Kind: block.Refusal, Text: string(b.Data)}, len(b.Data) > 0
	case event.ToolStart:
		out := block.Block{
			Kind: block.ToolCall, CallID: b.ID, Name: b.Name, Args: string(b.Data),
			Custom: b.Flags.Has(event.Custom), Server: b.Flags.Has(event.Server),
		}
		return out, b.Flags.Has(event.Complete) && !b.Flags.Has(event.InReasoning)
	case event.ToolResult, event.Opaque:
		var item struct{ Type, Data string }
		if json.Unmarshal(b.Data, &item) != nil {
			return block.Block{}, false
		}
		if item.Type == "redacted_thinking" {
			return block.Block{Kind: block.Reasoning, Redacted: true, Encrypted: item.Data}, item.Data != ""
		}
		return block.Block{Kind: block.ServerItem, Type: item.Type, JSON: bytes.Clone(b.Data)}, true
	}
	return block.Block{}, false
}
