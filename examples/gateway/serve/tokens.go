// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/catalog"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// This file converts between text and token ids for clients, in the form of vLLM's endpoints.

// A tokenizeRequest is the body of /v1/tokenize: a text, or the conversation of a chat request.
type tokenizeRequest struct {
	Model         string          `json:"model"` // "" means the gateway's
	Prompt        *string         `json:"prompt"`
	Messages      json.RawMessage `json:"messages"`
	AddSpecial    *bool           `json:"add_special_tokens"`    // of a text: nil means true
	AddGeneration *bool           `json:"add_generation_prompt"` // of a conversation: nil means true
	Strings       bool            `json:"return_token_strs"`
}

type tokenizeResponse struct {
	Count   int      `json:"count"`
	Window  int64    `json:"max_model_len"`
	Tokens  []uint32 `json:"tokens"`
	Strings []string `json:"token_strs"`
}

// A detokenizeRequest is the body of /v1/detokenize.
type detokenizeRequest struct {
	Model  string   `json:"model"`
	Tokens []uint32 `json:"tokens"`
}

// convert returns a handler for a request that no engine gets.
func (g *Gateway) convert(do func(c *call, w http.ResponseWriter, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := g.newCall(w, r, wire.Chat)
		if err := c.admit(r); err != nil {
			g.refuse(w, r, c.api, err)
			return
		}
		defer c.release()
		out, err := do(c, w, r)
		var body []byte
		if err == nil {
			body, err = json.Marshal(out)
		}
		if err != nil {
			g.refuse(w, r, c.api, err)
			return
		}
		writeBody(w, body)
	}
}

// tokenize serves /v1/tokenize.
func (c *call) tokenize(w http.ResponseWriter, r *http.Request) (any, error) {
	g := c.g
	var req tokenizeRequest
	body, err := c.readJSON(w, r, g.opt.MaxBody, &req)
	if err != nil {
		return nil, err
	}
	m, err := c.modelOf(req.Model)
	if err != nil {
		return nil, err
	}
	ids, window := []uint32(nil), m.ContextWindow
	switch {
	case (req.Prompt != nil) == (req.Messages != nil):
		return nil, apierr.Invalid("prompt", "Exactly one of prompt and messages is required.")
	case req.Messages != nil && req.AddGeneration != nil && !*req.AddGeneration:
		return nil, &apierr.Error{Why: event.Invalid, Code: apierr.CodeUnsupported, Param: "add_generation_prompt", Message: "Conversations are encoded as they would be for a response: add_generation_prompt must be true."}
	case req.Messages != nil:
		again := r.Clone(r.Context())
		again.Header.Del("Content-Encoding")
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		c.memory.release() // read accounts for the body again
		if err := c.read(w, again); err != nil {
			return nil, err
		}
		ids = c.prompt
	default:
		if ids, err = c.encode(r.Context(), *req.Prompt, req.AddSpecial == nil || *req.AddSpecial, m.ContextWindow); err != nil {
			return nil, err
		}
	}
	out := tokenizeResponse{Count: len(ids), Window: window, Tokens: ids}
	if out.Tokens == nil {
		out.Tokens = []uint32{}
	}
	if req.Strings {
		out.Strings = make([]string, len(ids))
		for i, id := range ids {
			out.Strings[i], _ = c.families.model.Tokenizer().Token(id) // it is one of the tokenizer's
		}
	}
	return out, nil
}

// encode returns the ids of a text, in which names of added tokens become those. A text that is longer than the window is
// an error.
func (c *call) encode(ctx context.Context, text string, special bool, window int64) ([]uint32, error) {
	g, tok := c.g, c.families.model.Tokenizer()
	if err := g.work.take(ctx); err != nil {
		return nil, err
	}
	defer g.work.give()
	if err := measure(ctx, tok, text, window); err != nil {
		return nil, err
	}
	if special {
		return tok.AppendEncodeSpecial(nil, text), nil
	}
	return tok.AppendEncode(nil, text), nil
}

// maxIDText is the number of bytes that an id takes in a body, at most.
const maxIDText = 16

// detokenize serves /v1/detokenize.
func (c *call) detokenize(w http.ResponseWriter, r *http.Request) (any, error) {
	g := c.g
	var req detokenizeRequest
	longest := int64(0)
	for _, m := range g.models.Models() {
		longest = max(longest, m.ContextWindow)
	}
	if _, err := c.readJSON(w, r, min(g.opt.MaxBody, longest*maxIDText+4<<10), &req); err != nil {
		return nil, err
	}
	m, err := c.modelOf(req.Model)
	switch {
	case err != nil:
		return nil, err
	case req.Tokens == nil:
		return nil, apierr.Invalid("tokens", "A list of tokens is required.")
	case int64(len(req.Tokens)) > m.ContextWindow:
		return nil, apierr.Invalid("tokens", "At most %d tokens are decoded at once.", m.ContextWindow)
	}
	tok := c.families.model.Tokenizer()
	for i, id := range req.Tokens {
		if int64(id) >= int64(tok.VocabSize()) {
			return nil, apierr.Invalid(fmt.Sprintf("tokens[%d]", i), "The vocabulary has no token %d.", id)
		}
	}
	if err := c.memory.add(int64(len(req.Tokens)) * int64(c.longest)); err != nil {
		return nil, err
	}
	if err := g.work.take(r.Context()); err != nil {
		return nil, err
	}
	defer g.work.give()
	return map[string]string{"prompt": string(tok.AppendDecode(nil, req.Tokens, false))}, nil
}

// readJSON reads a body of at most limit bytes into v.
func (c *call) readJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) ([]byte, error) {
	body, err := readBody(w, r, limit, &c.memory, nil)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, apierr.Invalid(e.Field, "A value of this type is not valid here.")
		}
		return nil, &apierr.Error{Why: event.Invalid, Code: "invalid_json", Message: "The body of your request cannot be read: " + err.Error(), Cause: err}
	}
	return body, nil
}

// modelOf returns the record of a model with a tokenizer, which becomes the model of the call; "" is the gateway's first.
func (c *call) modelOf(name string) (*catalog.Model, error) {
	m, d, ok := c.g.lookup(cmp.Or(name, c.g.opt.Model))
	if !ok {
		return nil, apierr.ModelNotFound(name)
	}
	if d.managed() {
		return nil, &apierr.Error{Why: event.Invalid, Param: "model", Code: apierr.CodeUnsupported, Message: "The tokens of this model are not known here: its endpoints take conversations only."}
	}
	c.use(m, d)
	return m, nil
}

// use makes the model or the adapter of a record the one of the call.
func (c *call) use(m *catalog.Model, d *deployment) {
	c.backend = tokenBackend{c}
	if d.managed() {
		c.backend = &managedBackend{call: c}
	}
	if c.deployment, c.rec.Model = d, d.name; d.fleet.hasAdapter(m.ID) {
		c.adapter, c.rec.Adapter = m.ID, m.ID
		c.route.Adapter, c.route.Exclude = m.ID, d.fleet.without(m.ID)
	}
}
