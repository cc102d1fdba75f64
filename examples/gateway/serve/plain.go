// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/completions"
	"github.com/weft-go/weft/protocols/embeddings"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/router"
)

// This file serves text without a conversation: prompts of the Completions API, which take the path of all requests except
// that nothing is rendered and parsed, and embeddings.

// plainTokens is the limit of output tokens of a Completions request that has none, OpenAI's and vLLM's.
const plainTokens = 16

// plainRequest returns an error for a Completions request that the gateway cannot serve.
func plainRequest(r *block.Request) error {
	refuse := func(param, message string) error {
		return &apierr.Error{Why: event.Invalid, Param: param, Code: apierr.CodeUnsupported, Message: message}
	}
	for param, idle := range map[string]string{"echo": "false", "suffix": `""`, "best_of": "1", "prompt_logprobs": "0"} {
		if given(r, param) && string(r.Field(param)) != idle {
			return refuse(param, "This server continues a prompt, and returns nothing else about it.")
		}
	}
	if len(r.Turns()) > 1 {
		return refuse("prompt", "This server takes one prompt per request.")
	}
	return nil
}

// plain encodes the prompt of a Completions request. Names of added tokens in it become those, as in engines.
func (c *call) plain(ctx context.Context) error {
	m, tok := c.record(), c.model.Tokenizer()
	b := &c.req.Turns()[0].Blocks[0]
	if ids, ok := completions.TokenIDs(b); ok {
		for i, id := range ids {
			if int64(id) >= int64(tok.VocabSize()) {
				return apierr.Invalid(fmt.Sprintf("prompt[%d]", i), "The vocabulary has no token %d.", id)
			}
		}
		c.prompt = ids
	} else {
		if err := c.measure(ctx, b.Text); err != nil {
			return err
		}
		if string(c.req.Field("add_special_tokens")) == "false" {
			c.prompt = tok.AppendEncode(nil, b.Text)
		} else {
			c.prompt = tok.AppendEncodeSpecial(nil, b.Text)
		}
	}
	if len(c.prompt) == 0 {
		return apierr.Invalid("prompt", "The prompt is empty.")
	}
	if int64(len(c.prompt)) > m.ContextWindow {
		return c.overflow()
	}
	c.text = c.model.Raw(c.prompt)
	return nil
}

// embeddingFields lists the fields of an embeddings request that an engine gets, besides the model and the input.
var embeddingFields = []string{"dimensions", "truncate_prompt_tokens", "add_special_tokens", "normalize"}

// embed serves /v1/embeddings.
func (g *Gateway) embed(w http.ResponseWriter, r *http.Request) {
	c := g.newCall(w, r, wire.Completions)
	c.rec.API = "embeddings"
	r = c.traced(r)
	if err := c.admit(r); err != nil {
		c.decline(w, r, err)
		return
	}
	defer c.release()
	req, named, err := c.readEmbeddings(w, r)
	if err == nil {
		begun := time.Now()
		var p *placement
		if p, err = c.fleet.place(r.Context(), &c.route); err == nil {
			c.rec.Queued = time.Since(begun)
			c.on(r.Context(), p)
		}
	}
	if err != nil {
		c.decline(w, r, err)
		return
	}
	defer func() { c.leave((*router.Ticket).Cancel) }() // no effect after finish
	c.nameIgnored(w.Header())
	resp, err := c.embeddings(r.Context(), req)
	if err != nil {
		g.refuse(w, r, c.api, err)
	} else {
		c.rec.Usage, c.rec.Finish = event.Tokens{Prompt: resp.PromptTokens}, event.Stop.String()
		c.client.spend(c.begun, int(resp.PromptTokens))
		resp.Model = named.model
		writeBody(w, resp.AppendJSON(nil, named.encoded))
	}
	c.finish(r.Context(), err)
}

// asked is what the client of an embeddings request gets back.
type asked struct {
	model   string
	encoded bool // vectors in base64
}

// readEmbeddings reads a request and returns the one for engines.
func (c *call) readEmbeddings(w http.ResponseWriter, r *http.Request) (_ *embeddings.Request, _ asked, err error) {
	g, ctx := c.g, r.Context()
	body, err := readBody(w, r, g.opt.MaxBody, &c.memory)
	if err != nil {
		return nil, asked{}, err
	}
	if err = g.work.take(ctx); err != nil {
		return nil, asked{}, err
	}
	defer g.work.give()
	req, err := embeddings.Decode(body, &block.Limits{Body: int(g.opt.MaxBody)})
	if err != nil {
		return nil, asked{}, err
	}
	if m := req.Field("messages"); m != nil && string(m) != "null" {
		return nil, asked{}, &apierr.Error{Why: event.Invalid, Param: "messages", Code: apierr.CodeUnsupported, Message: "This server takes input, not messages, for embeddings."}
	}
	if req.Model == "" {
		return nil, asked{}, apierr.Invalid("model", "A model is required.")
	}
	m, err := c.modelOf(req.Model)
	if err != nil {
		return nil, asked{}, err
	}
	c.model = c.families.model
	for i, text := range req.Texts {
		if err := measure(ctx, c.model.Tokenizer(), text, m.ContextWindow); err != nil {
			if e, ok := errors.AsType[*apierr.Error](err); ok {
				e.Param = fmt.Sprintf("input[%d]", i)
			}
			return nil, asked{}, err
		}
		c.route.Tokens += len(text)/usualToken + 1
	}
	for i, ids := range req.Tokens {
		if int64(len(ids)) > m.ContextWindow {
			e := apierr.ContextLength(int64(len(ids)), 0, m.ContextWindow)
			e.Param = fmt.Sprintf("input[%d]", i)
			return nil, asked{}, e
		}
		c.route.Tokens += len(ids)
	}
	out := &embeddings.Request{Model: cmp.Or(c.adapter, c.deployment.name), Texts: req.Texts, Tokens: req.Tokens}
	for name, value := range req.Fields() {
		if !slices.Contains(embeddingFields, name) && !slices.Contains([]string{"model", "input", "encoding_format", "messages", "user"}, name) {
			c.ignoreField(name, value)
		}
	}
	for _, name := range embeddingFields {
		if raw := req.Field(name); raw != nil {
			out.Set(name, raw)
		}
	}
	return out, asked{req.Model, req.Base64()}, nil
}

// embeddings gets the vectors from the chosen engine, or from another one if that fails.
func (c *call) embeddings(ctx context.Context, req *embeddings.Request) (*embeddings.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.g.opt.EngineSilence, func() { cancel(errSilent) })
	defer late.Stop()
	body := req.AppendJSON(nil)
	for {
		var resp *embeddings.Response
		err := c.fleet.verify(ctx, c.place.engine, 0)
		if err == nil {
			resp, err = c.place.engine.embed(ctx, c.unique, body, c.engineHints(ctx, c.place.engine), &c.memory)
		}
		c.judge(ctx, err)
		if err == nil {
			return resp, nil
		}
		if !c.again(ctx, err) {
			return nil, err
		}
	}
}

// embed sends a request for embeddings. Errors are as in complete.
func (e *engine) embed(ctx context.Context, id string, body []byte, hints intent.Out, mem *share) (*embeddings.Response, error) {
	body, err := hints.AppendBody(nil, body)
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v1/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := e.do(hr, id, &hints)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented: // not a failure, which would eject the engine
		return nil, &apierr.Error{Why: event.Invalid, Param: "model", Code: apierr.CodeUnsupported, Message: "The engines of this model compute no embeddings."}
	default:
		return nil, upstream.Refusal(resp, nil)
	}
	data, err := io.ReadAll(&accounted{r: io.LimitReader(resp.Body, maxVectors+1), mem: mem})
	switch {
	case err == nil && len(data) > maxVectors:
		err = errors.New("embeddings: response too large")
	case err == nil:
		var out *embeddings.Response
		if out, err = embeddings.DecodeResponse(data, nil); err == nil {
			return out, nil
		}
	}
	if _, ok := errors.AsType[*apierr.Error](err); ok {
		return nil, err
	}
	return nil, apierr.EngineFailed(err)
}

// maxVectors limits the response to a request for embeddings, in bytes.
const maxVectors = 256 << 20
