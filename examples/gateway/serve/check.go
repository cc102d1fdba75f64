// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/responses"
	"github.com/weft-go/weft/protocols/wire"
)

// check returns an error for a decoded request that the gateway cannot serve.
func (g *Gateway) check(c *call, path string) error {
	a, r := c.api, c.req
	if r.Params().Model == "" {
		return apierr.Invalid("model", "A model is required.")
	}
	if _, _, ok := g.lookup(r.Params().Model); !ok {
		return apierr.ModelNotFound(r.Params().Model)
	}
	if err := mistyped(r, stateTypes); err != nil {
		return err
	}
	if err := stateless(r, c.joined); err != nil {
		return err
	}
	if err := unsupported(r, path); err != nil {
		return err
	}
	if a == wire.Completions {
		if err := plainRequest(r); err != nil {
			return err
		}
	}
	if len(r.Turns()) == 0 && !c.warm {
		return apierr.Invalid(turnsField(a), "The conversation is empty.")
	}
	if err := roles(r); err != nil {
		return err
	}
	if n := r.Params().MaxTokens; n != nil && *n < 1 && !(*n == 0 && (echoes(r) || a == wire.Messages)) {
		param := limitField(a)
		if !given(r, param) {
			param = "max_tokens"
		}
		return apierr.Invalid(param, "The limit of output tokens must be at least 1.")
	}
	if n := r.Params().Sampling.N; n != nil && (*n < 1 || *n > int64(g.opt.MaxChoices)) {
		return apierr.Invalid("n", "The number of answers must be from 1 to %d.", g.opt.MaxChoices)
	}
	if n := len(r.Turns()) * choices(r); a == wire.Completions && n > maxPlainChoices {
		return apierr.Invalid("prompt", "A request may have at most %d answers to all of its prompts together, not %d: send several requests.", maxPlainChoices, n)
	}
	return nil
}

// versioned returns an error for a Messages request with what its API version no longer has. Versions are dates; any other
// text is treated as the first one.
func versioned(r *block.Request, version string) error {
	if _, err := time.Parse(time.DateOnly, version); r.API() != block.Messages || err != nil || version < "2026-10-21" {
		return nil
	}
	for _, name := range []string{"temperature", "top_p", "top_k"} {
		if given(r, name) {
			return apierr.Invalid(name, "The API version %s has no %s: leave it out, or send anthropic-version 2023-06-01.", version, name)
		}
	}
	turns := r.Turns()
	for k := range turns {
		t := &turns[k]
		for i := range t.Blocks {
			if b := &t.Blocks[i]; t.Role == block.RoleAssistant && b.Kind == block.Document {
				return apierr.Invalid(b.At.Path(), "The API version %s has no documents in messages of the assistant.", version)
			}
			if b := &t.Blocks[i]; t.Role == block.RoleUser && b.Kind == block.Text && cites(b) {
				return apierr.Invalid(b.At.Path()+".citations", "The API version %s has no citations in messages of the user: leave them out, or send anthropic-version 2023-06-01.", version)
			}
		}
	}
	return nil
}

// cites reports whether a block of the Messages API has citations, or is a source to be cited.
func cites(b *block.Block) bool {
	switch b.Kind {
	case block.Text:
		raw := b.Field("citations")
		return len(raw) > 0 && string(raw) != "null" && string(raw) != "[]"
	case block.Document, block.Citation:
		var config struct{ Enabled bool }
		return json.Unmarshal(b.Field("citations"), &config) == nil && config.Enabled
	}
	return false
}

// citing returns the paths of the citations in blocks.
func citing(list []block.Block) (paths []string) {
	for i := range list {
		b := &list[i]
		if cites(b) {
			paths = append(paths, b.At.Path()+".citations")
		}
		if len(b.Content) > 0 {
			paths = append(paths, citing(b.Content)...)
		}
	}
	return paths
}

// turnsField returns the name of the field that contains the conversation.
func turnsField(a *wire.API) string {
	switch a {
	case wire.Responses:
		return "input"
	case wire.Completions:
		return "prompt"
	}
	return "messages"
}

// limitField returns the name of the field that limits the output. The Chat Completions API also has max_tokens.
func limitField(a *wire.API) string {
	switch a {
	case wire.Chat:
		return "max_completion_tokens"
	case wire.Responses:
		return "max_output_tokens"
	}
	return "max_tokens"
}

// given reports whether a field of the body is present and not null.
func given(r *block.Request, field string) bool {
	raw := string(r.Field(field))
	return raw != "" && raw != "null"
}

// unsupported returns an error for fields that change the conversation or the form of the response and are not
// implemented. Other unknown fields are ignored, since clients send many.
func unsupported(r *block.Request, path string) error {
	refuse := func(param, message string) error {
		return &apierr.Error{Why: event.Invalid, Param: param, Code: apierr.CodeUnsupported, Message: message}
	}
	switch {
	case r.API() == block.Responses && path == compactPath && r.Params().Stream:
		return refuse("stream", "A summary is one JSON document: send stream as false.")
	case r.API() == block.Responses && given(r, "prompt"):
		return refuse("prompt", "This server keeps no prompts: send all of it as instructions and input.")
	case r.API() == block.Responses && string(r.Field("background")) == "true":
		return refuse("background", "This server answers while the client waits: send background as false.")
	case r.API() == block.Chat && !slices.Contains([]string{"", "null", "true", "false"}, string(r.Field("continue_final_message"))):
		return refuse("continue_final_message", "It must be true or false: only the content of the last message can be continued.")
	case r.API() == block.Chat && string(r.Field("continue_final_message")) == "true" && string(r.Field("add_generation_prompt")) != "false":
		return refuse("continue_final_message", "A new message cannot be begun as well: send add_generation_prompt as false.")
	}
	return nil
}

// knownRoles lists the roles of each API for error messages.
var knownRoles = map[block.API]string{
	block.Chat:      "system, developer, user, assistant, tool and function",
	block.Responses: "system, developer, user and assistant",
	block.Messages:  "system, user and assistant",
}

// roles returns an error for a message with a role that the API does not define. Omitting the message would change the
// conversation.
func roles(r *block.Request) error {
	turns := r.Turns()
	for i := range turns {
		if t := &turns[i]; t.Role == block.RoleUnknown && !isItem(r, t) {
			return apierr.Invalid(t.At.Path()+".role", "The role of this message is not known: there are %s.", knownRoles[r.API()])
		}
	}
	return nil
}

// isItem reports whether a turn with an unknown role is an item of the Responses API that is not a message and thus has
// no role.
func isItem(r *block.Request, t *block.Turn) bool {
	return r.API() == block.Responses && t.Form == 0 && len(t.Blocks) == 1 && t.Blocks[0].Kind == block.Unknown
}

// readable returns an error if none of the input items of a request is known: a prompt without them has nothing to respond to.
func readable(r *block.Request) error {
	var unknown *block.Block
	turns := r.Turns()
	for i := range turns {
		switch t := &turns[i]; {
		case t.Role == block.RoleUnknown && isItem(r, t):
			if unknown == nil {
				unknown = &t.Blocks[0]
			}
		case t.At.Path() != "instructions":
			return nil
		}
	}
	if unknown == nil {
		return nil
	}
	return apierr.Invalid("input", "The input has no message: items of the type %.100q are not known.", unknown.Type)
}

// emptyStop returns an error for an empty stop sequence. Engines refuse it or stop at once.
func emptyStop(r *block.Request) error {
	if !slices.Contains(r.Params().Sampling.Stop, "") {
		return nil
	}
	param := "stop"
	if r.API() == block.Messages {
		param = "stop_sequences"
	}
	return apierr.Invalid(param, "A stop sequence must not be empty.")
}

// choices returns the number of choices in a checked request.
func choices(r *block.Request) int {
	if n := r.Params().Sampling.N; n != nil {
		return int(*n)
	}
	return 1
}

// stateless returns an error for requests that refer to stored state, since responding to only part of a conversation
// would be worse. Anthropic's SDK then sends the whole conversation, as does the AI SDK with store: false.
func stateless(r *block.Request, joined bool) error {
	if mode, id := messages.Thread(r); mode == "continue" {
		return &apierr.Error{Why: event.NotFound, Code: "thread_not_found", Param: "thread",
			Message: fmt.Sprintf("No thread was found for previous_message_id %q: this server keeps none. Send the whole conversation.", id)}
	}
	if id, _ := responses.Thread(r); id != "" && !joined {
		return &apierr.Error{Why: event.Invalid, Code: "previous_response_not_found", Param: "previous_response_id",
			Message: "Previous response with id '" + id + "' not found: this server keeps none. Send the whole conversation."}
	}
	if given(r, "conversation") {
		return &apierr.Error{Why: event.Invalid, Param: "conversation", Code: apierr.CodeUnsupported,
			Message: "This server keeps no conversations: send all of it as input."}
	}
	turns := r.Turns()
	for i := range turns {
		t := &turns[i]
		if t.Role != block.RoleUnknown || !isItem(r, t) {
			continue
		}
		if b := &t.Blocks[0]; b.Type == "item_reference" || b.Type == "" {
			return &apierr.Error{Why: event.NotFound, Code: "item_not_found", Param: b.At.Path(),
				Message: "Item with id '" + b.ID + "' not found: no response that this server stores has it; set store to false, so that the client sends items whole."}
		}
	}
	return nil
}
