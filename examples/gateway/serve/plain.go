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
	"strconv"
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
	switch {
	case given(r, "suffix") && string(r.Field("suffix")) != `""`:
		return refuse("suffix", "This server continues a prompt, and does not fill in text before a suffix: write the model's own tokens for that in the prompt.")
	case given(r, "best_of") && string(r.Field("best_of")) != strconv.Itoa(choices(r)):
		return refuse("best_of", "This server returns all answers: best_of must be equal to n.")
	case given(r, "prompt_logprobs") && string(r.Field("prompt_logprobs")) != "0":
		return refuse("prompt_logprobs", "Log probabilities of the prompt are in the fields of the Completions API: send echo and logprobs.")
	}
	return nil
}

// echoes reports whether the response to a Completions request begins with the prompt.
func echoes(r *block.Request) bool {
	return r.API() == block.Completions && string(r.Field("echo")) == "true"
}

// plain encodes the prompts of a Completions request.
func (c *call) plain(ctx context.Context) error {
	for _, t := range c.req.Turns() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p, err := c.encodePrompt(ctx, &t.Blocks[0])
		if err != nil {
			return err
		}
		c.prompts = append(c.prompts, p)
	}
	if err := c.hush(); err != nil {
		return err
	}
	c.take(c.prompts[0])
	return nil
}

// hush turns a limit of 0 tokens, with which a client wants only the prompt computed, into 1, since engines compute at least one
// token. The output is dropped.
func (c *call) hush() error {
	p := c.req.Params()
	if p.MaxTokens == nil || *p.MaxTokens != 0 {
		return nil
	}
	c.mute, p.MaxTokens = true, new(int64(1))
	return c.req.SetParams(p)
}

// encodePrompt encodes a prompt. Names of added tokens in it become those, as in engines.
func (c *call) encodePrompt(ctx context.Context, b *block.Block) (p plainPrompt, err error) {
	tok, path := c.model.Tokenizer(), b.At.Path()
	if ids, ok := completions.TokenIDs(b); ok {
		for i, id := range ids {
			if int64(id) >= int64(tok.VocabSize()) {
				return p, apierr.Invalid(fmt.Sprintf("%s[%d]", path, i), "The vocabulary has no token %d.", id)
			}
		}
		if p.ids = ids; echoes(c.req) {
			p.echo = string(tok.AppendDecode(nil, ids, false))
		}
	} else {
		if err := c.measure(ctx, b.Text); err != nil {
			return p, err
		}
		encode := tok.AppendEncodeSpecial
		if string(c.req.Field("add_special_tokens")) == "false" {
			encode = tok.AppendEncode
		}
		p = plainPrompt{encode(nil, b.Text), b.Text}
	}
	if len(p.ids) == 0 {
		return p, apierr.Invalid(path, "The prompt is empty.")
	}
	c.prompt = p.ids
	return p, c.overflow()
}

// take makes a prompt the one of the call.
func (c *call) take(p plainPrompt) {
	c.prompt, c.text = p.ids, c.model.Raw(p.ids)
	c.text.Namespace = c.route.Intent.Salt
	if echoes(c.req) {
		c.echo = &p.echo
	}
}

// repeat sends the prompt, as the first text of a choice. The log probabilities of the prompt are in the first
// step, before the ones of the output.
func (c tokenBackend) repeat(ch *choice, st *upstream.Step) error {
	out := event.Event{Kind: event.Logprobs, Choice: int32(st.Choice), Call: -1}
	if ch.logprobs != nil {
		if out.Data = ch.logprobs.takePrompt(st, c.prompt); out.Data == nil {
			return apierr.EngineFailed(errors.New("no log probabilities of the prompt"))
		}
		c.out.send(out)
	}
	if err := c.produced(len(out.Data) + len(*c.echo)); err != nil {
		return err
	}
	out.Kind, out.Data = event.Text, []byte(*c.echo)
	c.out.send(out)
	return nil
}

// embeddingFields lists the fields of an embeddings request that an engine gets, besides the model and the input.
var embeddingFields = []string{"dimensions", "truncate_prompt_tokens", "add_special_tokens", "normalize"}

// embed serves /v1/embeddings.
func (g *Gateway) embed(w http.ResponseWriter, r *http.Request) {
	c := g.newCall(w, r, wire.Completions)
	c.rec.API = "embeddings"
	r = c.traced(r)
	defer c.unwound(r.Context())
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
	body, err := readBody(w, r, g.opt.MaxBody, &c.memory, nil)
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
	if f := req.Field("encoding_format"); !slices.Contains([]string{"", "null", `""`, `"float"`, `"base64"`}, string(f)) {
		return nil, asked{}, apierr.Invalid("encoding_format", "encoding_format must be float or base64, not %.40s.", f)
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
