// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"strings"

	"github.com/weft-go/weft/protocols/block"
)

// unknown represents what the client adds to a conversation. Where a conversation contains it, less is known of the next prompt.
const unknown = "q7Vx0unknown"

// Next returns the token ids with which the conversation's next prompt begins if the client returns the response unmodified: up to
// the results of its calls, or to a message of the user if it has none. Templates that omit past reasoning after such a message
// print other text than the model has read and written, which an engine can compute while the client is busy.
//
// req is the request that p was rendered from, or an equal one, and response is as [wire.Turn] returns it. Next appends to req: the request
// of a [Memo] must be decoded again. With a Memo, Next costs what is new in the next prompt, and adds no entry.
func (p *Prompt) Next(req *block.Request, response block.Turn) ([]uint32, error) {
	if p.Prompt == nil || p.model.tok == nil {
		return nil, errors.New("prompt: next: the prompt is not rendered, or the model has no tokenizer")
	}
	more := block.Turn{Role: block.RoleTool}
	for i := range response.Blocks {
		if b := &response.Blocks[i]; b.Kind == block.ToolCall {
			more.Blocks = append(more.Blocks, block.NewResult(b.CallID, unknown))
		}
	}
	if len(more.Blocks) == 0 {
		more = block.NewTurn(block.RoleUser, unknown)
	}
	if err := req.Append(response, more); err != nil {
		return nil, err
	}
	var turn *Turn
	if p.turn != nil {
		turn = &Turn{memo: p.turn.memo, owner: p.turn.owner, before: p.turn.next, next: &entry{}}
	}
	next, err := p.model.render(req, p.now, turn)
	if err != nil {
		return nil, err
	}
	if turn != nil && turn.next.printer != nil {
		next.turn = turn
	}
	next.Namespace = p.Namespace
	at := strings.Index(next.Text, unknown)
	if at < 0 {
		return nil, errors.New("prompt: next: the template does not print what follows the response")
	}
	ids := next.IDs()
	return ids[:next.Tokens(p.model.tok, []Mark{{Byte: at}}, ids, next.Cuts()...)[0].Tokens], nil
}
