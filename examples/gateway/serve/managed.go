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
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/messages"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A managedBackend converts requests to the APIs of managed endpoints, and their events to the client's API. It knows neither
// the tokenizer nor the template of the model.
type managedBackend struct {
	*call
	size      int                                  // of the client's body, in bytes
	counting  bool                                 // the client only wants the number of tokens
	converted map[*engine]*upstream.ManagedRequest // by engine; equal engines have the same
	header    http.Header                          // the client's
	reported  event.Tokens                         // by the endpoint
}

// perToken is the number of bytes of a body or of output that is taken for a token where an endpoint reports none.
const perToken = 4

// maxManagedOutput limits the output of an endpoint, in bytes: the gateway does not count its tokens.
const maxManagedOutput = 64 << 20

// accept implements backend.
func (c *managedBackend) accept(r *http.Request, size int) error {
	c.size, c.header, c.counting = size, r.Header, r.URL.Path != c.api.Path() && r.URL.Path != compactPath
	if c.joined { // join has replaced it
		c.hinted = append(c.hinted, "previous_response_id")
	}
	switch {
	case c.api == wire.Completions:
		return &apierr.Error{Why: event.Invalid, Param: "prompt", Code: apierr.CodeUnsupported, Message: "The endpoints of this model take conversations, not text to continue."}
	case r.Header.Get("X-Weft-Tool-Call-Parser") != "":
		return apierr.Invalid("", "The output of this model is not parsed here: leave out the header X-Weft-Tool-Call-Parser.")
	}
	return c.wantLogprobs()
}

// prepare implements backend: it converts the request for each endpoint.
func (c *managedBackend) prepare(context.Context, *prompt.Turn) error {
	if err := c.unseal(); err != nil {
		return err
	}
	if n := c.req.Params().MaxTokens; n != nil && *n == 0 {
		c.mute = true // for endpoints of other APIs, which Convert asks for output
	}
	c.converted = make(map[*engine]*upstream.ManagedRequest)
	for i, e := range c.fleet.order {
		if k := slices.IndexFunc(c.fleet.order[:i], e.same); k >= 0 {
			c.converted[e] = c.converted[c.fleet.order[k]]
			continue
		}
		out, err := e.kind.(upstream.Managed).Convert(c.req, &upstream.ManagedOptions{
			Host: e.host, Model: cmp.Or(e.model, c.deployment.name), MaxTokens: c.record().MaxOutputTokens,
			Omit: c.private(), Logprobs: c.logprobs != nil, Count: c.counting,
		})
		if err != nil {
			return err
		}
		if err := c.memory.add(int64(len(out.Body))); err != nil {
			return err
		}
		c.converted[e] = out
	}
	return nil
}

// same reports whether another engine gets the same requests.
func (e *engine) same(o *engine) bool {
	return e.kind == o.kind && e.model == o.model && e.host == o.host
}

// unseal removes the gateway's own signatures from past reasoning. They mean nothing to an endpoint, while another's signature
// may be the endpoint's.
func (c *managedBackend) unseal() error {
	for _, t := range c.req.Turns() {
		for i := range t.Blocks {
			b := t.Blocks[i]
			if b.Kind != block.Reasoning {
				continue
			}
			_, signed := c.signer.Open(b.Signature, b.Text)
			_, sealed := c.signer.Open(b.Encrypted, b.Text)
			if signed != replay.Intact && sealed != replay.Intact {
				continue
			}
			if signed == replay.Intact {
				b.Signature = ""
			}
			if sealed == replay.Intact {
				b.Encrypted = ""
			}
			if err := c.req.Set(b.At, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// apiHints lists the hints of package intent that are fields of an API: an endpoint gets them. The others are for the gateway,
// which sends those that are granted in the dialect of the endpoint.
var apiHints = []string{
	"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "user", "safety_identifier", "metadata", "client_metadata",
	"cache_control", "service_tier", "speed",
}

// private returns the fields of the request that endpoints do not get: hints for the gateway, and those that the policy of the
// tenant does not grant.
func (c *managedBackend) private() (names []string) {
	for _, name := range c.hinted {
		if !slices.Contains(apiHints, name) {
			names = append(names, name)
		}
	}
	for _, x := range c.rec.Limited {
		if x.Hint == "service_tier" || x.Hint == "speed" {
			names = append(names, x.Hint)
		}
	}
	return names
}

// demanded lists the fields of all APIs that demand something of the output, besides the constraints. A request is refused
// if they are lost.
var demanded = []string{
	"n", "stop", "stop_sequences", "tool_choice", "function_call", "response_format", "text.format", "output_config.format", "output_format",
}

// constrain implements backend: it excludes the endpoints whose API does not have what the request demands. Endpoints of the
// client's API check its values themselves.
func (c *managedBackend) constrain() error {
	var unable []index.WorkerID
	var fault error
	wrong := cmp.Or(mistyped(c.req, otherTypes), untyped(c.req), readable(c.req), emptyStop(c.req), wrongChoice(c.req))
	for _, e := range c.fleet.order {
		if wrong != nil && e.kind.(upstream.Managed).API() != c.api {
			unable, fault = append(unable, e.id), wrong
			continue
		}
		for _, l := range c.converted[e].Losses {
			field, ok := c.lost(&l)
			if !ok || !slices.Contains(demanded, field) && !slices.Contains(constraints, field) {
				continue
			}
			unable = append(unable, e.id)
			if fault == nil {
				fault = &apierr.Error{Why: event.Invalid, Param: field, Code: apierr.CodeUnsupported, Message: fmt.Sprintf("The endpoints of this model do not support %s: %s.", field, l.Why)}
			}
			break
		}
	}
	if len(unable) == len(c.fleet.order) {
		if c.g.opt.Unconstrained && wrong == nil {
			return nil // dropped lists the fields
		}
		return fault
	}
	c.route.Exclude = append(c.route.Exclude, unable...)
	return nil
}

// wrongChoice returns an error for a tool choice that cannot be converted, because it is not known or names a tool that would not
// be among the converted tools. One of a tool that another server runs is a loss of the conversion.
func wrongChoice(r *block.Request) error {
	choice, param := r.Params().ToolChoice, choiceField(r)
	var typed struct{ Type string }
	switch {
	case choice.Mode == block.NoTools:
		return nil
	case choice.Mode != block.ChoiceUnspecified || !given(r, param):
	case json.Unmarshal(r.Field(param), &typed) != nil || typed.Type == "" || typed.Type == "allowed_tools":
		return apierr.Invalid(param, "The tool choice is not known.")
	}
	names := make(map[string]bool)
	for _, t := range r.Tools() {
		if t.Kind != block.Hosted {
			names[t.Name], names[t.ModelName] = true, true
		}
	}
	delete(names, "")
	for _, name := range choice.Allow {
		if !names[name] {
			return apierr.Invalid(param, "The tool %q is not among the tools that the model can call.", name)
		}
	}
	if choice.Mode == block.Required && len(names) == 0 {
		return apierr.Invalid(param, "A call is required, but there is no tool that the model can call.")
	}
	return nil
}

// lost returns the field that a conversion has lost. It returns false if the field has its effect in the gateway, or if the
// loss is a detail that no client sees.
func (c *managedBackend) lost(l *block.Loss) (field string, ok bool) {
	field, detail, _ := strings.Cut(l.Path, " ")
	root, _, _ := strings.Cut(field, ".")
	switch {
	case slices.Contains(c.hinted, root), root == "include", field == "thinking.display", (root == "logprobs" || root == "top_logprobs") && c.logprobs != nil:
		return "", false
	case detail != "" && !slices.Contains(demanded, field): // the loss is described in words
		return "", false
	}
	return field, true
}

// hash implements backend. What endpoints have cached is not known.
func (c *managedBackend) hash() error {
	c.route.Tokens = c.size / perToken
	return nil
}

// dropped implements backend.
func (c *managedBackend) dropped(e *engine) (names []string) {
	seen := make(map[string]bool) // a request may have 100,000 such fields
	for _, l := range c.converted[e].Losses {
		if field, ok := c.lost(&l); ok && !seen[field] {
			seen[field] = true
			names = append(names, field)
		}
	}
	if hints := e.hints; c.route.Intent.Prefetch && (hints == nil || len(hints.Emit(&intent.Intent{Prefetch: true}).Changes) > 0) {
		names = append(names, c.prefetchField())
	}
	for _, x := range c.private() {
		if slices.Contains(apiHints, x) && given(c.req, x) {
			names = append(names, x)
		}
	}
	if c.req.API() == block.Responses && string(c.req.Field("store")) == "true" && c.g.opt.Store == nil {
		names = append(names, "store")
	}
	return names
}

// open implements backend.
func (c *managedBackend) open() (event.Event, error) {
	n, losses := choices(c.req), c.converted[c.place.engine].Losses
	c.note("not converted", losses)
	if slices.ContainsFunc(losses, func(l block.Loss) bool { return l.Path == "n" }) {
		n = 1
	}
	c.choices = make([]choice, n)
	c.reported, c.output = event.Tokens{}, 0
	return event.Event{Kind: event.Start, Call: -1}, nil
}

// used implements backend. Output that was cut, or that the endpoint does not count, is estimated.
func (c *managedBackend) used() event.Tokens {
	u := c.reported
	u.Prompt = cmp.Or(u.Prompt, int64(c.route.Tokens))
	if c.mute {
		u.Output, u.Reasoning = 0, 0
		return u
	}
	if u.Output == 0 || c.unfinished() {
		u.Output = max(u.Output, (c.output+perToken-1)/perToken)
	}
	return u
}

// request returns a request to an endpoint, with the headers that the body depends on.
func (c *managedBackend) request(ctx context.Context, path string, body []byte) (*http.Request, error) {
	e := c.place.engine
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err == nil && c.api == wire.Messages && e.kind.(upstream.Managed).API() == wire.Messages {
		for _, name := range []string{"Anthropic-Version", "Anthropic-Beta"} {
			hr.Header[name] = c.header.Values(name)
		}
	}
	return hr, err
}

// receive implements backend.
func (c *managedBackend) receive(ctx context.Context) (fault, err error) {
	e := c.place.engine
	kind := e.kind.(upstream.Managed)
	hints := c.engineHints(ctx, e)
	body, err := hints.AppendBody(nil, c.converted[e].Body)
	if err != nil {
		return nil, err
	}
	hr, err := c.request(ctx, kind.Traits().Path, body)
	if err != nil {
		return nil, err
	}
	resp, fault := e.do(hr, c.unique, &hints)
	if fault != nil {
		return fault, nil
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return c.located(kind, kind.Refusal(resp)), nil
	}
	c.pace = pace{}
	received := false // events arrived since the last pause
	pause := func() bool {
		if received {
			received = false
			err = c.out.flush()
			now := time.Now()
			c.report(now)
			c.watch.interrupt(now)
		}
		return err == nil
	}
	for ev, fault := range kind.Events(resp.Body, len(c.choices), pause) {
		received = true
		switch {
		case err != nil: // the client has left
			return nil, err
		case fault != nil && c.unfinished():
			return c.located(kind, fault), nil
		case fault != nil:
			c.g.opt.Logger.Warn("engine failed after output", "request", c.id, "err", loggable(fault))
		default:
			if err := c.add(&ev); err != nil {
				return nil, err
			}
		}
	}
	c.report(time.Now())
	switch {
	case err != nil:
		return nil, err
	case c.unfinished():
		return apierr.EngineFailed(errors.New("no finish reason in response")), nil
	}
	return nil, nil
}

// located returns an error of an endpoint, without a path if that is one in its API and not the client's.
func (c *managedBackend) located(kind upstream.Managed, err error) error {
	if e, ok := errors.AsType[*apierr.Error](err); ok && kind.API() != c.api {
		e.Param = ""
	}
	return err
}

// add adds an event of the endpoint to the response.
func (c *managedBackend) add(ev *event.Event) error {
	if ev.Choice < 0 || int(ev.Choice) >= len(c.choices) {
		return apierr.EngineFailed(fmt.Errorf("choice %d of %d", ev.Choice, len(c.choices)))
	}
	switch ev.Kind {
	case event.Start:
		if ev.Usage != nil && credible(ev.Usage) {
			c.reported = *ev.Usage
			if !c.sent {
				c.out.restart(event.Event{Kind: event.Start, Call: -1, Usage: ev.Usage})
			}
		}
		return nil
	case event.Usage:
		if credible(ev.Usage) {
			c.reported = *ev.Usage
		}
		return nil
	case event.Finish:
		if c.mute {
			ev.Why, ev.Data = event.Length, nil
		}
		c.choices[ev.Choice].why = ev.Why
	default:
		if c.mute {
			return nil
		}
		if c.rec.FirstByte == 0 {
			c.rec.FirstByte = time.Since(c.begun)
			c.place.ticket.FirstToken(time.Now())
		}
		if ev.Choice == 0 && len(ev.Data) > 0 {
			c.pace.tokens++
		}
	}
	if err := c.produced(len(ev.Data)); err != nil {
		return err
	}
	if c.output > maxManagedOutput {
		return apierr.EngineFailed(errors.New("output too long"))
	}
	c.out.send(*ev)
	c.early.Add(*ev)
	return nil
}

// credible reports whether the counts of an endpoint are those of a response. Their sum may have overflowed.
func credible(u *event.Tokens) bool {
	counts := []int64{u.Prompt, u.Cached, u.CacheWrite, u.Output, u.Reasoning}
	return slices.Min(counts) >= 0 && slices.Max(counts) <= math.MaxInt32
}

// count implements backend: it asks an endpoint that counts tokens.
func (c *managedBackend) count(ctx context.Context) (n int64, err error) {
	for _, e := range c.fleet.order {
		if e.kind.(upstream.Managed).CountPath() == "" {
			c.route.Exclude = append(c.route.Exclude, e.id)
		}
	}
	unsupported := &apierr.Error{Why: event.Invalid, Param: "model", Code: apierr.CodeUnsupported, Message: "The endpoints of this model do not count tokens."}
	if len(c.route.Exclude) == len(c.fleet.order) {
		return 0, unsupported
	}
	if c.place, err = c.fleet.place(ctx, &c.route); err != nil {
		return 0, err
	}
	e := c.place.engine
	defer func() { c.place.ticket.Cancel(time.Now()) }()
	kind := e.kind.(upstream.Managed)
	hr, err := c.request(ctx, kind.CountPath(), c.converted[e].Body)
	if err != nil {
		return 0, err
	}
	hints := c.engineHints(ctx, e)
	resp, err := e.do(hr, c.unique, &hints)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return 0, unsupported
	default:
		return 0, c.located(kind, kind.Refusal(resp))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil {
		n, err = messages.DecodeTokenCount(body) // of both APIs
	}
	if err != nil {
		return 0, apierr.EngineFailed(err)
	}
	return n, nil
}
