// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// Ollama is the kind of Ollama, as of version 0.30: its /api/generate in raw mode. It takes text and returns text, so:
//
//   - A prompt is refused if its text does not have its ids. For example, a message that spells a special token is text in the
//     ids, but Ollama would read a special token.
//   - The tokenizers are compared with the ids of one text only; see [Engine.Tokenize].
//   - Special tokens in the output have no text. Families whose markers are special tokens, such as harmony and mistral,
//     cannot be read; others spell them, or have tokens that are not special.
//   - A text that looks like a marker is one.
//
// Constraints are JSON schemas of the whole output, without reasoning before it. Each request has one choice and no log
// probabilities. Ollama does not report cached tokens, does not let a prompt with a salt use its cache, and reloads a model
// with a window of less than 8,192 tokens for that. It ends a stream without a reason after 30 equal tokens, which is an error.
type Ollama struct {
	BOS string // the token that the engine adds before each prompt; found by Load
}

// String implements Kind.
func (Ollama) String() string { return "ollama" }

// Traits implements Kind.
func (Ollama) Traits() Traits {
	return Traits{Path: "/api/generate", Owner: "library", KeyEnv: "OLLAMA_API_KEY", Text: true,
		Drops: []string{"min_tokens", "logit_bias", "ignore_eos", "stop_token_ids"}}
}

// ollamaRequest is the body of a request to /api/generate. Without truncate, Ollama would remove the middle of a prompt that is
// too long; with think, it would parse the output.
type ollamaRequest struct {
	Model    string        `json:"model"`
	Raw      bool          `json:"raw"`
	Think    bool          `json:"think"`
	Truncate bool          `json:"truncate"`
	Shift    *bool         `json:"shift,omitempty"` // false: without the cache
	Options  ollamaOptions `json:"options"`
	Prompt   string        `json:"prompt"`
}

// ollamaOptions are the sampling parameters of a request.
type ollamaOptions struct {
	Limit int `json:"num_predict"`
	sampling
	Seed              *int64   `json:"seed,omitempty"`
	RepetitionPenalty *float64 `json:"repeat_penalty,omitempty"`
}

// AppendRequest implements TokenKind. Sampling parameters and stop strings that the request does not have are the model's.
func (k Ollama) AppendRequest(dst []byte, r *Request) (body []byte, ids int, err error) {
	if r.Choices > 1 {
		return dst, -1, apierr.Invalid("n", "The engines of this server (ollama) generate one answer.")
	}
	text, ok := r.Prompt.PlainText()
	if !ok || !utf8.ValidString(text) {
		return dst, -1, &apierr.Error{Why: event.Invalid, Code: apierr.CodeUnsupported,
			Message: "The engines of this server (ollama) get prompts as text, and the text of this prompt does not have its tokens: it spells special tokens or is not UTF-8."}
	}
	s := r.Client.Params().Sampling
	out := ollamaRequest{
		Model: r.Model, Raw: true, Prompt: strings.TrimPrefix(text, k.BOS),
		Options: ollamaOptions{Limit: r.Decoder.Limit(), sampling: samplingOf(&s), Seed: s.Seed, RepetitionPenalty: s.RepetitionPenalty},
	}
	if r.Prompt.Namespace != "" {
		out.Shift = new(bool)
	}
	head, _ := json.Marshal(out) // cannot fail: numbers of JSON are finite
	dst = append(dst, head[:len(head)-1]...)
	if r.Constraint != nil {
		dst = append(append(dst, ','), r.Constraint...)
	}
	return append(dst, '}'), -1, nil
}

// Constrain implements TokenKind.
func (Ollama) Constrain(c *prompt.Constraint) ([]byte, error) {
	schema, err := c.JSONSchema()
	return append([]byte(`"format":`), schema...), err
}

// Steps implements TokenKind.
func (Ollama) Steps(body io.ReadCloser, n int) iter.Seq2[Step, error] {
	return readEvents(body, n, lines, appendOllamaSteps)
}

// lines returns the lines of a stream as events.
func lines(src io.Reader) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		s := bufio.NewScanner(src)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			if !yield(sse.Event{Data: s.Bytes()}, nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(sse.Event{}, err)
		}
	}
}

// maxLine limits a line of a stream, in bytes. A line contains the text of a token.
const maxLine = 1 << 20

// appendOllamaSteps decodes a line.
func appendOllamaSteps(dst []Step, data []byte) ([]Step, error) {
	var c struct {
		Response string `json:"response"`
		Done     bool   `json:"done"`
		Reason   string `json:"done_reason"`
		Output   int64  `json:"eval_count"`
		Error    string `json:"error"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return dst, apierr.EngineFailed(fmt.Errorf("line of %d bytes: %w", len(data), err))
	}
	st := Step{Text: []byte(c.Response), StopID: -1}
	switch {
	case c.Error != "":
		return dst, apierr.EngineFailed(&Fault{Message: c.Error})
	case !c.Done:
		return append(dst, st), nil
	case c.Reason == "stop":
		st.Finish = event.Stop
	case c.Reason == "length":
		st.Finish = event.Length
	default:
		return dst, apierr.EngineFailed(fmt.Errorf("the output has ended with the reason %q", c.Reason))
	}
	return append(dst, st, Step{Usage: &event.Tokens{Output: c.Output, CachedEstimated: true}}), nil
}

// Probe implements Kind.
func (Ollama) Probe(ctx context.Context, e *Engine) error {
	return optional(e.readVersion(ctx, "/api/version"))
}

// loadTimeout limits the time in which an engine loads a model.
const loadTimeout = 10 * time.Minute

// Load completes the description of an engine that loads models on demand, which is an Ollama, by loading a model: the window
// of the model, and the token that is added before prompts. Other engines, and models that it does not have, are left as they are.
func (e *Engine) Load(ctx context.Context, model string) error {
	if _, ok := e.Kind.(Ollama); !ok {
		return nil
	}
	e.client = &http.Client{Timeout: loadTimeout}
	defer e.client.CloseIdleConnections()
	err := e.post(ctx, "/api/generate", map[string]any{"model": model}, nil)
	if refused, ok := errors.AsType[*apierr.Error](err); ok && refused.Why == event.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	var loaded struct {
		Models []struct {
			Name   string `json:"name"`
			Window int    `json:"context_length"`
		} `json:"models"`
	}
	if err := e.get(ctx, "/api/ps", &loaded); err != nil {
		return optional(err)
	}
	for _, l := range loaded.Models {
		for i := range e.Models {
			if e.Models[i].ID == l.Name {
				e.Models[i].Window = l.Window
			}
		}
	}
	var shown struct {
		Info struct {
			Model  string   `json:"tokenizer.ggml.model"`
			Add    *bool    `json:"tokenizer.ggml.add_bos_token"`
			BOS    int      `json:"tokenizer.ggml.bos_token_id"`
			Tokens []string `json:"tokenizer.ggml.tokens"`
		} `json:"model_info"`
	}
	if err := e.post(ctx, "/api/show", map[string]any{"model": model, "verbose": true}, &shown); err != nil {
		return optional(err)
	}
	adds := shown.Info.Model == "llama" // llama.cpp's default: SentencePiece models have one
	if shown.Info.Add != nil {
		adds = *shown.Info.Add
	}
	if id := shown.Info.BOS; adds && id >= 0 && id < len(shown.Info.Tokens) {
		e.Kind = Ollama{BOS: shown.Info.Tokens[id]}
	}
	return nil
}
