// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/weft-go/weft/tokenizers/prompt"
)

// VLLMTokens is the kind of a vLLM that was started with --enable-scale-out, as of vLLM 0.32. [VLLM]'s Probe finds it. It uses
// /inference/v1/generate, which takes and returns only token ids, because
//
//   - the ids also arrive if the request has stop strings or log probabilities,
//   - constraints hold from the first token, even if vLLM has a --reasoning-parser, which otherwise suspends them until
//     the end of reasoning,
//   - the response does not repeat the ids of the prompt: with 20,000 tokens in the cache, the first event has 256 bytes
//     instead of 80,232, and arrives after 15 ms instead of 21 ms (vLLM 0.32.0 on 2 cores, medians of 8 interleaved
//     requests, a model without weights).
//
// The endpoint does not apply the sampling parameters of the model's generation_config.json, so the kind contains them.
// It ignores the fields thinking_token_budget and session_id, so an engine that gets such hints is a VLLM.
type VLLMTokens struct {
	Defaults string // sampling parameters of the engine, a JSON object
}

// String implements Kind.
func (VLLMTokens) String() string { return VLLM{}.String() }

// Traits implements Kind. The decoder applies stop strings: the engine does, too, but returns whole tokens.
func (VLLMTokens) Traits() Traits {
	t := VLLM{}.Traits()
	t.Path, t.Stops = "/inference/v1/generate", false
	return t
}

// vllmParams are the sampling parameters of a request.
type vllmParams struct {
	Limit       int             `json:"max_tokens"`
	Detokenize  bool            `json:"detokenize"`          // for stop strings and log probabilities
	SkipSpecial bool            `json:"skip_special_tokens"` // false
	Choices     int             `json:"n,omitempty"`
	Logprobs    *int            `json:"logprobs,omitempty"`
	IgnoreEOS   bool            `json:"ignore_eos,omitempty"`
	MinTokens   json.RawMessage `json:"min_tokens,omitempty"`
	LogitBias   json.RawMessage `json:"logit_bias,omitempty"`
	Stop        []string        `json:"stop,omitempty"`
	Seed        *int64          `json:"seed,omitempty"`
	vllmDefaults
}

// vllmDefaults are the sampling parameters that an engine has defaults for.
type vllmDefaults struct {
	StopTokens []int64 `json:"stop_token_ids,omitempty"`
	sampling
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
}

// AppendRequest implements TokenKind.
func (k VLLMTokens) AppendRequest(dst []byte, r *Request) (body []byte, ids int, err error) {
	s := r.Client.Params().Sampling
	p := vllmParams{
		Limit: r.Decoder.Limit(), Detokenize: len(s.Stop) > 0 || r.Logprobs != nil, Logprobs: r.Logprobs, IgnoreEOS: s.IgnoreEOS,
		MinTokens: r.Client.Field("min_tokens"), LogitBias: r.Client.Field("logit_bias"), Stop: s.Stop, Seed: s.Seed,
	}
	json.Unmarshal([]byte(k.Defaults), &p.vllmDefaults) // Probe has read them before
	p.StopTokens = append(p.StopTokens, s.StopTokens...)
	given, _ := json.Marshal(samplingOf(&s)) // cannot fail: numbers of JSON are finite
	json.Unmarshal(given, &p.sampling)       // those that are given replace the defaults
	p.RepetitionPenalty = cmp.Or(s.RepetitionPenalty, p.RepetitionPenalty)
	if r.Choices > 1 {
		p.Choices = r.Choices
	}
	head, _ := json.Marshal(p) // cannot fail: numbers of JSON are finite, and the raw fields are valid JSON
	dst = append(append(dst, `{"stream":true,"stream_options":{"include_usage":true},"sampling_params":`...), head...)
	if r.Constraint != nil {
		dst = append(append(append(dst[:len(dst)-1], ','), r.Constraint...), `},"reasoning_ended":true`...)
	}
	if r.Logprobs != nil {
		dst = append(dst, `,"output_mode":"text"`...) // otherwise candidates have no text
	}
	model, _ := json.Marshal(r.Model)
	dst = append(append(dst, `,"model":`...), model...)
	return endIDs(dst, "token_ids")
}

// Constrain implements TokenKind. The field is a sampling parameter.
func (VLLMTokens) Constrain(c *prompt.Constraint) ([]byte, error) {
	text, err := json.Marshal(string(c.StructuralTag()))
	return append(append([]byte(`"structured_outputs":{"structural_tag":`), text...), '}'), err
}

// Steps implements TokenKind. The chunks have the form of VLLM's.
func (VLLMTokens) Steps(body io.ReadCloser, n int) iter.Seq2[Step, error] {
	return VLLM{}.Steps(body, n)
}

// Probe implements Kind.
func (VLLMTokens) Probe(ctx context.Context, e *Engine) error { return VLLM{}.Probe(ctx, e) }

// findTokens makes the engine a VLLMTokens if it has /inference/v1/generate. The endpoints that write requests for it are there
// at the same time, and show the default sampling parameters.
func (e *Engine) findTokens(ctx context.Context) error {
	var reply json.RawMessage
	if err := e.post(ctx, "/v1/completions/render", map[string]any{"model": e.Models[0].ID, "prompt": []int{0}}, &reply); err != nil {
		return err
	}
	var list []struct {
		Params *vllmDefaults `json:"sampling_params"`
		Mode   string        `json:"output_mode"` // absent before streams had token ids only
	}
	if json.Unmarshal(reply, &list) == nil && len(list) == 1 && list[0].Params != nil && list[0].Mode == "tokens" {
		defaults, _ := json.Marshal(list[0].Params)
		e.Kind = VLLMTokens{string(defaults)}
	}
	return nil
}
