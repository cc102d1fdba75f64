// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// LlamaCPP is the kind of llama.cpp's server, as of build 11434. Constraints are grammars in its notation, GBNF. The engine
// keeps prompts by slot, without regard to the tenant, so requests with a salt neither use them nor are compared with
// them.
type LlamaCPP struct{}

// String implements Kind.
func (LlamaCPP) String() string { return "llamacpp" }

// Traits implements Kind. The decoder applies stop strings, because the engine cuts its text within a token.
func (LlamaCPP) Traits() Traits {
	return Traits{Path: "/completion", Owner: "llamacpp", KeyEnv: "LLAMA_API_KEY", Probs: true, Drops: []string{"min_tokens"}}
}

// llamaRequest is the body of a request to /completion, without the prompt. The engine reads n_predict -1 as no limit, and
// top_k 0 as no limit.
type llamaRequest struct {
	Stream      bool            `json:"stream"`
	Tokens      bool            `json:"return_tokens"`
	Progress    bool            `json:"return_progress"` // has the cached tokens before the output
	CachePrompt bool            `json:"cache_prompt"`
	Limit       int             `json:"n_predict"`
	Fields      []string        `json:"response_fields"` // of the last event, which otherwise repeats the prompt and the grammar
	Choices     int             `json:"n_cmpl,omitempty"`
	Probs       int             `json:"n_probs,omitempty"` // candidates per token, with log probabilities before sampling
	IgnoreEOS   bool            `json:"ignore_eos,omitempty"`
	LogitBias   json.RawMessage `json:"logit_bias,omitempty"`
	sampling
	Seed              *uint32  `json:"seed,omitempty"`
	RepetitionPenalty *float64 `json:"repeat_penalty,omitempty"`
}

// lastFields are the fields of the last event of a choice.
var lastFields = []string{"index", "stop", "stop_type", "stopping_word", "tokens_predicted", "tokens_evaluated", "timings"}

// AppendRequest implements TokenKind. Sampling parameters that the request does not have are the engine's own: temperature 0.8,
// top_k 40, top_p 0.95 and min_p 0.05, unless it was started with others.
func (LlamaCPP) AppendRequest(dst []byte, r *Request) (body []byte, ids int, err error) {
	s := r.Client.Params().Sampling
	out := llamaRequest{
		Stream: true, Tokens: true, Progress: true, CachePrompt: r.Prompt.Namespace == "",
		Limit: r.Decoder.Limit(), Fields: lastFields, IgnoreEOS: s.IgnoreEOS, LogitBias: r.Client.Field("logit_bias"),
		sampling: samplingOf(&s), RepetitionPenalty: s.RepetitionPenalty,
	}
	out.noLimit()
	if r.Choices > 1 {
		out.Choices = r.Choices
	}
	if r.Logprobs != nil {
		out.Probs = max(1, *r.Logprobs) // with 0, the token itself would have none either
	}
	if s.Seed != nil && *s.Seed >= 0 {
		out.Seed = new(uint32(*s.Seed))
	}
	head, _ := json.Marshal(out) // cannot fail: numbers of JSON are finite, and logit_bias is valid JSON
	dst = append(dst, head[:len(head)-1]...)
	if r.Constraint != nil {
		dst = append(append(dst, ','), r.Constraint...)
	}
	return endIDs(dst, "prompt")
}

// Steps implements TokenKind.
func (LlamaCPP) Steps(body io.ReadCloser, n int) iter.Seq2[Step, error] {
	r := llamaReader{choices: make([]llamaChoice, n), open: n}
	return readStream(body, n, r.appendSteps)
}

// llamaChunk contains the fields of the events of /completion that are read. Events with progress have a token 0 that is
// none.
type llamaChunk struct {
	Index     int      `json:"index"`
	Content   string   `json:"content"`
	Tokens    []uint32 `json:"tokens"`
	Stop      bool     `json:"stop"` // the last one of the choice
	StopType  string   `json:"stop_type"`
	Word      string   `json:"stopping_word"`
	Predicted int64    `json:"tokens_predicted"` // so far
	Evaluated int64    `json:"tokens_evaluated"` // of the prompt, cached ones included
	Timings   *struct {
		Cached int64 `json:"cache_n"`
	} `json:"timings"`
	Probs []struct {
		llamaProb
		Top []llamaProb `json:"top_logprobs"`
	} `json:"completion_probabilities"`
	Progress *struct {
		Total int64 `json:"total"`
		Cache int64 `json:"cache"`
	} `json:"prompt_progress"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// A llamaProb is the log probability of a token. Of a character of several tokens, the engine sends that of the last one, with
// the text of all.
type llamaProb struct {
	Bytes []int       `json:"bytes"`
	Value json.Number `json:"logprob"`
}

// text returns the bytes of the token.
func (p *llamaProb) text() string {
	text := make([]byte, len(p.Bytes))
	for i, b := range p.Bytes {
		text[i] = byte(b)
	}
	return string(text)
}

// logprobs returns the log probabilities of the event's tokens, or nil.
func (c *llamaChunk) logprobs() *Logprobs {
	if c.Probs == nil {
		return nil
	}
	out := &Logprobs{}
	for i := range c.Probs {
		p := &c.Probs[i]
		top := make(map[string]json.Number, len(p.Top))
		for _, t := range p.Top {
			top[t.text()] = t.Value
		}
		out.Tokens, out.Values, out.Top = append(out.Tokens, p.text()), append(out.Values, p.Value), append(out.Top, top)
	}
	return out
}

// A llamaReader decodes the events of a stream.
type llamaReader struct {
	choices []llamaChoice
	open    int
	usage   event.Tokens
}

// llamaChoice is the state of a choice.
type llamaChoice struct {
	ended bool
	seen  int64    // tokens
	held  []uint32 // the last token, if it has no text: it may be the one that ends the choice
	probs *Logprobs
}

// appendSteps decodes an event.
func (r *llamaReader) appendSteps(dst []Step, data []byte) ([]Step, error) {
	var c llamaChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return dst, apierr.EngineFailed(fmt.Errorf("event of %d bytes: %w", len(data), err))
	}
	switch {
	case c.Error != nil:
		return dst, apierr.EngineFailed(&Fault{Status: c.Error.Code, Message: c.Error.Message})
	case c.Index < 0 || c.Index >= len(r.choices):
		return dst, apierr.EngineFailed(fmt.Errorf("choice %d of %d", c.Index, len(r.choices)))
	case c.Progress != nil:
		if r.usage.Prompt == 0 {
			r.usage.Prompt, r.usage.Cached = c.Progress.Total, c.Progress.Cache
			u := r.usage
			dst = append(dst, Step{Usage: &u})
		}
		return dst, nil
	}
	ch := &r.choices[c.Index]
	if ch.ended {
		return dst, nil
	}
	if c.Stop {
		return r.finish(dst, &c)
	}
	if len(ch.held) > 0 {
		dst = append(dst, Step{Choice: c.Index, IDs: ch.held, StopID: -1, Logprobs: ch.probs})
		ch.held = nil
	}
	// The tokens before the one that completes a character are not sent, but counted.
	whole := c.Predicted-ch.seen <= int64(len(c.Tokens))
	ch.seen = max(ch.seen+int64(len(c.Tokens)), c.Predicted)
	switch {
	case !whole:
		dst = append(dst, Step{Choice: c.Index, Text: []byte(c.Content), StopID: -1, Logprobs: c.logprobs()})
	case c.Content == "":
		ch.held, ch.probs = c.Tokens, c.logprobs()
	default:
		dst = append(dst, Step{Choice: c.Index, IDs: c.Tokens, StopID: -1, Logprobs: c.logprobs()})
	}
	return dst, nil
}

// finish decodes the last event of a choice.
func (r *llamaReader) finish(dst []Step, c *llamaChunk) ([]Step, error) {
	ch := &r.choices[c.Index]
	st := Step{Choice: c.Index, IDs: ch.held, Finish: event.Stop, StopID: -1}
	if len(ch.held) > 0 {
		st.Logprobs = ch.probs
	}
	switch c.StopType {
	case "limit":
		st.Finish = event.Length
	case "word": // the engine was started with stop strings
		st.Finish, st.Stop = event.StopSequence, c.Word
	case "eos":
		if n := len(ch.held); n > 0 {
			st.StopID = int64(ch.held[n-1])
		}
	default:
		return dst, apierr.EngineFailed(errors.New("the output has ended without a reason"))
	}
	dst = append(dst, st)
	*ch = llamaChoice{ended: true}
	r.usage.Prompt = max(r.usage.Prompt, c.Evaluated)
	r.usage.Output += c.Predicted
	if c.Timings != nil && r.open == len(r.choices) { // of several choices, the first one computes the prompt
		r.usage.Cached = c.Timings.Cached
	}
	if r.open--; r.open == 0 {
		u := r.usage
		dst = append(dst, Step{Usage: &u})
	}
	return dst, nil
}

// Constrain implements TokenKind.
func (LlamaCPP) Constrain(c *prompt.Constraint) ([]byte, error) {
	grammar, err := c.GBNF()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(grammar)
	return append([]byte(`"grammar":`), text...), err
}

// Probe implements Kind. It reads the version, the window and the slots.
func (LlamaCPP) Probe(ctx context.Context, e *Engine) error {
	var props struct {
		Build string `json:"build_info"`
		Path  string `json:"model_path"`
		Slots int    `json:"total_slots"`
		Each  struct {
			Window int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := e.get(ctx, "/props", &props); err != nil {
		return optional(err)
	}
	e.Version, e.Slots = props.Build, props.Slots
	for i := range e.Models {
		if props.Each.Window > 0 { // of a slot; /v1/models reports the window of the model
			e.Models[i].Window = props.Each.Window
		}
		if e.Models[i].Root == "" {
			e.Models[i].Root = props.Path
		}
	}
	return nil
}
