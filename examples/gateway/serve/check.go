// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// check refuses what the gateway cannot serve, beyond what decoding refuses.
func (g *Gateway) check(r *block.Request) error {
	invalid := func(param, code, message string) error {
		return &apierr.Error{Why: event.Invalid, Param: param, Code: code, Message: message}
	}
	if !g.knows(r.Model()) {
		return apierr.ModelNotFound(r.Model())
	}
	if err := stateless(r); err != nil {
		return err
	}
	if len(r.Turns()) == 0 {
		return invalid("messages", "", "The conversation is empty.")
	}
	if n, ok := r.MaxTokens(); ok && n < 1 {
		return invalid("max_tokens", "", "The limit of output tokens must be at least 1.")
	}
	if r.API() != block.Chat { // a field that the API has not, but whoever sends it means it
		if n := string(r.Field("n")); n != "" && n != "1" && n != "null" {
			return invalid("n", apierr.CodeUnsupported, "This API gives one answer to a request.")
		}
	}
	if n := r.Sampling().N; n != nil && (*n < 1 || *n > int64(g.opt.MaxChoices)) {
		return invalid("n", "", fmt.Sprintf("The number of answers must be from 1 to %d.", g.opt.MaxChoices))
	}
	return nil
}

// answers returns how many answers a checked request asks for.
func answers(r *block.Request) int {
	if n := r.Sampling().N; n != nil {
		return int(*n)
	}
	return 1
}

// stateless refuses requests that go on from something the server should have kept: answering the rest of a conversation
// as if it were all of it would be worse. What clients make of it: Anthropic's SDK sends everything, as does the AI SDK when it
// is told store: false.
func stateless(r *block.Request) error {
	if mode, id := messages.Of(r).Thread(); mode == "continue" {
		return apierr.ThreadNotFound(id)
	}
	f := responses.Of(r)
	if id := f.PreviousResponseID(); id != "" {
		return apierr.ResponseNotFound(id)
	}
	if f.Conversation() != "" {
		return &apierr.Error{Why: event.Invalid, Param: "conversation", Code: apierr.CodeUnsupported,
			Message: "This server keeps no conversations: send all of it as input."}
	}
	for _, t := range r.Turns() {
		for i := range t.Blocks {
			if b := &t.Blocks[i]; r.API() == block.Responses && t.Role == block.RoleUnknown && (b.Type == "item_reference" || b.Type == "") {
				return apierr.ItemNotFound(b.ID, b.At.Path())
			}
		}
	}
	return nil
}
