// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
)

// check refuses what the gateway cannot serve, beyond what decoding refuses.
func (g *Gateway) check(a *api, r *block.Request) error {
	if r.Model() == "" {
		return apierr.Invalid("model", "A model is required.")
	}
	if !g.knows(r.Model()) {
		return apierr.ModelNotFound(r.Model())
	}
	if err := stateless(r); err != nil {
		return err
	}
	if err := unsupported(r); err != nil {
		return err
	}
	if len(r.Turns()) == 0 {
		return apierr.Invalid(a.turns, "The conversation is empty.")
	}
	if err := roles(r); err != nil {
		return err
	}
	if n, ok := r.MaxTokens(); ok && n < 1 {
		param := a.limit
		if !given(r, param) {
			param = "max_tokens"
		}
		return apierr.Invalid(param, "The limit of output tokens must be at least 1.")
	}
	if n := r.Sampling().N; n != nil && (*n < 1 || *n > int64(g.opt.MaxChoices)) {
		return apierr.Invalid("n", "The number of answers must be from 1 to %d.", g.opt.MaxChoices)
	}
	return nil
}

// given reports whether the body says anything in a field.
func given(r *block.Request, field string) bool {
	raw := string(r.Field(field))
	return raw != "" && raw != "null"
}

// unsupported refuses what changes the question or the way of the answer and is not served. Other fields that the gateway does not
// know are ignored: clients send many.
func unsupported(r *block.Request) error {
	refuse := func(param, message string) error {
		return &apierr.Error{Why: event.Invalid, Param: param, Code: apierr.CodeUnsupported, Message: message}
	}
	switch f := responses.Of(r); {
	case r.API() == block.Responses && given(r, "prompt"):
		return refuse("prompt", "This server keeps no prompts: send all of it as instructions and input.")
	case f.Background():
		return refuse("background", "This server answers while the client waits: send background as false.")
	case r.API() == block.Chat && string(r.Field("continue_final_message")) == "true" && string(r.Field("add_generation_prompt")) != "false":
		return refuse("continue_final_message", "A new message cannot be begun as well: send add_generation_prompt as false.")
	}
	return nil
}

// knownRoles are the roles of each API, for those who use another.
var knownRoles = map[block.API]string{
	block.Chat:      "system, developer, user, assistant, tool and function",
	block.Responses: "system, developer, user and assistant",
	block.Messages:  "system, user and assistant",
}

// roles refuses messages of roles that the API has not. Without them the prompt would be another conversation.
func roles(r *block.Request) error {
	for _, t := range r.Turns() {
		if t.Role == block.RoleUnknown && !isItem(r, &t) {
			return apierr.Invalid(t.At.Path()+".role", "The role of this message is not known: there are %s.", knownRoles[r.API()])
		}
	}
	return nil
}

// isItem reports whether a turn of unknown role is an item of the responses API that is no message, and so has no role.
func isItem(r *block.Request, t *block.Turn) bool {
	return r.API() == block.Responses && t.Form == 0 && len(t.Blocks) == 1 && t.Blocks[0].Kind == block.Unknown
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
		if t.Role != block.RoleUnknown || !isItem(r, &t) {
			continue
		}
		if b := &t.Blocks[0]; b.Type == "item_reference" || b.Type == "" {
			return apierr.ItemNotFound(b.ID, b.At.Path())
		}
	}
	return nil
}
