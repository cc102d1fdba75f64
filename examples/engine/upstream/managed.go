// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// Managed is the kind of endpoints that have the Chat Completions, the Messages or the Responses API themselves: they render
// prompts, parse output and count tokens, so that nothing of the model has to be known. A request in another API is converted.
type Managed struct {
	engine       string // behind a Chat Completions API, as in block.EncodeOptions; "" means none in particular
	name, keyEnv string
	host         string // of the vendor, which is strict about reasoning and fields
	api          *wire.API
}

// The kinds of managed endpoints.
var (
	OpenAI    = Managed{name: "openai", keyEnv: "OPENAI_API_KEY", host: "api.openai.com", api: wire.Chat}
	Anthropic = Managed{name: "anthropic", keyEnv: "ANTHROPIC_API_KEY", host: "api.anthropic.com", api: wire.Messages}
	Responses = Managed{name: "responses", keyEnv: "OPENAI_API_KEY", host: "api.openai.com", api: wire.Responses}
)

// anthropicVersion is sent for clients that send no version.
const anthropicVersion = "2023-06-01"

// String implements Kind.
func (m Managed) String() string { return m.name }

// API returns the API of the endpoint.
func (m Managed) API() *wire.API { return m.api }

// Traits implements Kind.
func (m Managed) Traits() Traits {
	return Traits{Path: m.api.Path(), KeyEnv: m.keyEnv, Host: m.host, Probs: m.api != wire.Messages}
}

// For returns the kind for the server behind the endpoint, whose fields converted requests have: the name of a dialect of package
// intent. It makes a difference for vllm, sglang and dynamo with the Chat Completions API.
func (m Managed) For(dialect string) Managed {
	if slices.Contains([]string{"vllm", "sglang", "dynamo"}, dialect) && m.api == wire.Chat {
		m.engine = dialect
	}
	return m
}

// Ask asks the endpoint at a base address, with or without /v1, for its models.
func (m Managed) Ask(ctx context.Context, address, key string) (*Engine, error) {
	e := newEngine(address, key)
	e.Kind = m
	defer e.client.CloseIdleConnections()
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Window int    `json:"max_model_len"`    // vLLM
			Length int    `json:"context_length"`   // OpenRouter
			Input  int    `json:"max_input_tokens"` // Anthropic
		} `json:"data"`
	}
	if err := e.get(ctx, "/v1/models?limit=1000", &list); err != nil { // Anthropic lists 20 by default
		return nil, err
	}
	for _, model := range list.Data {
		e.Models = append(e.Models, Model{ID: model.ID, Window: cmp.Or(model.Window, model.Length, model.Input)})
	}
	return e, nil
}

// Probe implements Kind. Endpoints do not describe themselves.
func (Managed) Probe(context.Context, *Engine) error { return nil }

// CountPath returns the path of the endpoint that counts the tokens of a request, or "" if the API has none.
func (m Managed) CountPath() string {
	return map[*wire.API]string{wire.Messages: "/v1/messages/count_tokens", wire.Responses: "/v1/responses/input_tokens"}[m.api]
}

// SetHeaders sets the headers of a request to an endpoint at a host: its key, and a version of its API unless the client sends one.
func (m Managed) SetHeaders(h http.Header, host, key string) {
	if m.api == wire.Messages {
		h.Set("Anthropic-Version", cmp.Or(h.Get("Anthropic-Version"), anthropicVersion))
		if key != "" {
			h.Set("X-Api-Key", key)
		}
	}
	if key != "" && (m.api != wire.Messages || host != m.host) { // vLLM's Messages API knows only this form
		h.Set("Authorization", "Bearer "+key)
	}
}

// A ManagedRequest is a request as an endpoint gets it.
type ManagedRequest struct {
	Body   []byte
	Losses []block.Loss // what the API of the endpoint cannot express, by its place in the client's request
}

func (r *ManagedRequest) lose(path, why string) {
	r.Losses = append(r.Losses, block.Loss{Path: path, Why: why})
}

// ManagedOptions specifies what changes in a request besides its API.
type ManagedOptions struct {
	Host      string   // of the endpoint
	Model     string   // its name at the endpoint
	MaxTokens int64    // limit of the output; 0 means none but the client's
	Omit      []string // fields at the root of the client's body
	Logprobs  bool     // the client gets log probabilities
	Count     bool     // the endpoint only counts the tokens of the prompt
}

// counted lists the fields of a request that affect the number of its tokens.
var counted = []string{
	"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format", "cache_control", "context_management",
	"mcp_servers", "input", "instructions", "parallel_tool_calls", "reasoning", "text", "truncation",
}

// Convert returns a request for the endpoint. A request of the same API keeps its fields, known or not, except that
//
//   - streams always have usage;
//   - responses are not stored, and their reasoning has its encrypted form, since the client gets other identifiers of items
//     than the endpoint's and the endpoint must not look them up;
//   - reasoning without the proof that an endpoint demands is left out.
//
// A limit of 0 output tokens, which only the Messages API has, becomes the smallest limit of another API.
func (m Managed) Convert(r *block.Request, o *ManagedOptions) (*ManagedRequest, error) {
	out := &ManagedRequest{}
	body, losses, err := m.api.AppendRequest(nil, r, &block.EncodeOptions{Engine: m.engine})
	if err != nil {
		return nil, err
	}
	probs := o.Logprobs && m.api == wire.Chat // the endpoint returns them
	for _, l := range losses {
		switch {
		case l.Path == "max_tokens" && r.Params().MaxTokens == nil: // the default of an API that requires it is no loss
		case l.Path == "top_logprobs" && probs: // set below
		default:
			out.Losses = append(out.Losses, l)
		}
	}
	req, err := m.api.Decode(body, &block.Limits{Body: math.MaxInt}) // the client's body had a limit
	if err != nil {
		return nil, fmt.Errorf("converted request: %w", err)
	}
	same := r.API() == req.API()
	p := req.Params()
	if m.api == wire.Chat && !same && o.Host == m.host && p.Thinking.Mode != block.ThinkingUnspecified {
		p.Thinking.Mode = block.ThinkingUnspecified
		out.lose("thinking", "the endpoint has only reasoning_effort")
	}
	p.Model = o.Model
	if slices.Contains(o.Omit, "service_tier") {
		p.ServiceTier = ""
	}
	p.StreamUsage = p.Stream && m.api == wire.Chat
	if probs {
		p.Sampling.Logprobs, p.Sampling.TopLogprobs = true, r.Params().Sampling.TopLogprobs
	}
	if o.MaxTokens > 0 && (p.MaxTokens == nil || !same && r.Params().MaxTokens == nil || *p.MaxTokens > o.MaxTokens) {
		p.MaxTokens = &o.MaxTokens
	}
	if p.MaxTokens != nil && *p.MaxTokens == 0 && !same {
		p.MaxTokens = new(int64(1))
		if m.api == wire.Responses {
			p.MaxTokens = new(int64(16)) // OpenAI refuses less
		}
	}
	if err := req.SetParams(p); err != nil {
		return nil, err
	}
	if err := m.keepReasoning(req, o.Host, out); err != nil {
		return nil, err
	}
	if err := req.Commit(); err != nil {
		return nil, err
	}
	out.Body = m.appendFields(make([]byte, 0, len(body)+128), req, o, same)
	return out, nil
}

// appendFields appends the body of req with the fields of the root that package block does not edit.
func (m Managed) appendFields(dst []byte, req *block.Request, o *ManagedOptions, same bool) []byte {
	set := map[string]json.RawMessage{}
	var order []string
	if m.api == wire.Responses {
		var include []string
		json.Unmarshal(req.Field("include"), &include) // the decoder has checked it
		if !slices.Contains(include, encryptedReasoning) {
			include = append(include, encryptedReasoning)
		}
		if o.Logprobs && !slices.Contains(include, outputLogprobs) {
			include = append(include, outputLogprobs)
		}
		set["include"], _ = json.Marshal(include) // strings
		set["store"] = json.RawMessage("false")
		order = []string{"include", "store"}
	}
	add := func(name string, raw []byte) {
		if dst = append(dst, ','); len(dst) == 1 {
			dst[0] = '{'
		}
		key, _ := json.Marshal(name) // a string
		dst = append(append(append(dst, key...), ':'), raw...)
	}
	for name, raw := range req.Fields() {
		if set[name] == nil && !(same && slices.Contains(o.Omit, name)) && !(o.Count && !slices.Contains(counted, name)) {
			add(name, raw())
		}
	}
	for _, name := range order {
		if !o.Count {
			add(name, set[name])
		}
	}
	return append(dst, '}')
}

// What a Responses request can ask for with include.
const (
	encryptedReasoning = "reasoning.encrypted_content"
	outputLogprobs     = "message.output_text.logprobs"
)

// keepReasoning removes past reasoning that an endpoint would refuse:
//
//	Messages   thinking needs a signature of the endpoint
//	Responses  encrypted reasoning must not have an identifier that the endpoint has not given it; the vendor also refuses
//	           reasoning that is not encrypted
//	Chat       the vendor has no field for it
func (m Managed) keepReasoning(req *block.Request, host string, out *ManagedRequest) error {
	for _, t := range req.Turns() {
		changes := 0
		for _, b := range t.Blocks {
			var change func() error
			switch {
			case b.Kind != block.Reasoning:
			case m.refuses(&b, host):
				out.lose("reasoning", "past reasoning that the endpoint would refuse")
				change = func() error { return req.Delete(b.At) }
			case m.api == wire.Messages && b.Summary: // by way of a Responses client
				b.Summary = false
				change = func() error { return req.Set(b.At, b) }
			case m.api == wire.Responses && b.Encrypted != "" && (b.ID != "" || !b.Summary):
				change = func() error {
					plain := block.Block{Kind: block.Reasoning, Text: b.Text, Summary: true, Encrypted: b.Encrypted}
					if err := req.Insert(b.At, plain); err != nil {
						return err
					}
					return req.Delete(b.At)
				}
			}
			if change == nil {
				continue
			}
			if changes++; changes > maxTurnReasoning {
				return &block.Error{
					Kind: block.LimitPassed, Path: t.At.Path(), Offset: -1, Msg: "too much past reasoning that the endpoint would refuse",
					Limit: "blocks in a turn", Max: maxTurnReasoning,
				}
			}
			if err := change(); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxTurnReasoning is the largest number of blocks of reasoning that keepReasoning changes in a turn. The time for a change grows
// with the number of blocks in the turn.
const maxTurnReasoning = 256

// refuses reports whether an endpoint on a host would refuse past reasoning.
func (m Managed) refuses(b *block.Block, host string) bool {
	switch m.api {
	case wire.Messages:
		return !b.Redacted && (b.Signature == "" || b.Encrypted != "")
	case wire.Responses:
		return b.Encrypted == "" && host == m.host
	}
	return host == m.host
}

// maxManagedEvent limits the JSON of a server-sent event, and of a response that is one document, in bytes.
const maxManagedEvent = 64 << 20

// Events returns the events of a successful response with n choices and closes it. pause is called before each read, when all
// events that have arrived were returned; if it returns false, the sequence ends. An event is valid until the next one.
// The sequence ends with an error if the response is one, breaks or ends too early.
func (m Managed) Events(body io.ReadCloser, n int, pause func() bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		defer body.Close()
		open := n
		src := pausing{body, pause}
		for ev, err := range m.api.Events(src, &wire.DecoderOptions{Limits: &block.Limits{Body: maxManagedEvent}}) {
			switch {
			case err != nil:
				yield(ev, apierr.EngineFailed(err))
				return
			case ev.Kind == event.Error && ev.Why == event.EngineFailed:
				yield(ev, apierr.EngineFailed(&Fault{Code: string(ev.ID), Message: string(ev.Data)}))
				return
			case ev.Kind == event.Error:
				e := apierr.EventError(&ev)
				e.Cause = &Fault{Code: e.Code, Size: len(ev.Data)}
				yield(ev, e)
				return
			case ev.Kind == event.Finish:
				if open--; open == 0 { // of an endpoint that does not end its stream
					late := time.AfterFunc(trailingWait, func() { body.Close() })
					defer late.Stop()
				}
			}
			if !yield(ev, nil) {
				return
			}
		}
		defer time.AfterFunc(drainWait, func() { body.Close() }).Stop()
		io.CopyN(io.Discard, body, maxDrain) // after an error, the connection is not reused
	}
}

// Refusal converts an endpoint's HTTP error to the error that the client gets. What it says about the request, about limits
// and quotas is passed on; what concerns the operator of the gateway has details in the log only.
func (m Managed) Refusal(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is still useful
	e := apierr.Parse(resp.StatusCode, data)
	known := e.Cause == nil // it is an error object
	e.Cause = &Fault{Status: resp.StatusCode, Code: e.Code, Size: len(data)}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return &apierr.Error{Why: event.EngineFailed, Message: "Server error: the endpoint does not accept the key of this server.", Cause: e.Cause}
	case e.Why == event.Overloaded:
		if !known {
			cause := e.Cause
			e = apierr.Overloaded(0)
			e.Cause = cause
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			e.Status = resp.StatusCode
		}
		e.RetryAfter = retryAfter(resp.Header)
		return e
	case known && e.Why == event.Invalid:
		return e
	case known && resp.StatusCode < http.StatusInternalServerError:
		return &apierr.Error{Why: event.EngineFailed, Message: "Server error: the endpoint refused the request: " + e.Message, Cause: e.Cause}
	}
	return apierr.EngineFailed(e.Cause)
}
