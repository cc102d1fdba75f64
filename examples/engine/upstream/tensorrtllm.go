// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// TensorRTLLM is the kind of TensorRT-LLM's server, trtllm-serve, as of its sources at commit 0076e939 of 2026
// (tensorrt_llm/serve/openai_protocol.py, postprocess_handlers.py, openai_server.py). No living engine was used: the tests have a stub. Its
// /v1/completions returns token ids if it does not decode them.
//
// Constraints are structural tags, for which it must be started with guided_decoding_backend: xgrammar. The endpoint refuses
// fields that it does not know, so engines of the kind get no hints, and it has no salt: requests that have one, as isolated
// tenants do, are refused. It hands out its cache events at /kv_cache_events, each only once, if it was started with
// event_buffer_max_size. It does not apply the model's generation_config.json to sampling parameters, or tell its window.
type TensorRTLLM struct{}

// String implements Kind.
func (TensorRTLLM) String() string { return "tensorrt-llm" }

// Traits implements Kind. The decoder applies stop strings, which the engine would look for as token ids.
func (TensorRTLLM) Traits() Traits {
	return Traits{Path: "/v1/completions", Owner: "tensorrt_llm", Events: "/kv_cache_events", Probs: true}
}

// tensorrtRequest is the body of a request to /v1/completions, without the prompt. The engine lowers max_tokens to what its
// window leaves.
type tensorrtRequest struct {
	Model             string          `json:"model"`
	Stream            bool            `json:"stream"`
	StreamOptions     map[string]bool `json:"stream_options"`
	Detokenize        bool            `json:"detokenize"` // false
	Limit             int             `json:"max_tokens"`
	Choices           int             `json:"n,omitempty"`
	Logprobs          int             `json:"logprobs,omitempty"`
	IgnoreEOS         bool            `json:"ignore_eos,omitempty"`
	MinTokens         json.RawMessage `json:"min_tokens,omitempty"`
	LogitBias         json.RawMessage `json:"logit_bias,omitempty"`
	StopTokens        []int64         `json:"stop_token_ids,omitempty"`
	sampling                          // a top_k of 0 means no limit
	Seed              *int64          `json:"seed,omitempty"`
	RepetitionPenalty *float64        `json:"repetition_penalty,omitempty"`
}

// AppendRequest implements TokenKind.
func (TensorRTLLM) AppendRequest(dst []byte, r *Request) (body []byte, ids int, err error) {
	if r.Prompt.Namespace != "" {
		return dst, -1, &apierr.Error{Why: event.Invalid, Code: apierr.CodeUnsupported,
			Message: "The engines of this server (tensorrt-llm) cannot keep cached prompts apart by a salt, which isolated tenants have."}
	}
	s := r.Client.Params().Sampling
	out := tensorrtRequest{
		Model: r.Model, Stream: true, StreamOptions: map[string]bool{"include_usage": true}, Limit: r.Decoder.Limit(), IgnoreEOS: s.IgnoreEOS,
		MinTokens: r.Client.Field("min_tokens"), LogitBias: r.Client.Field("logit_bias"), StopTokens: s.StopTokens, Seed: s.Seed,
		sampling: samplingOf(&s), RepetitionPenalty: s.RepetitionPenalty,
	}
	out.noLimit()
	if r.Choices > 1 {
		out.Choices = r.Choices
	}
	if r.Logprobs != nil {
		out.Logprobs = max(*r.Logprobs, 1) // 0 means none
	}
	head, _ := json.Marshal(out) // cannot fail: numbers of JSON are finite, and the raw fields are valid JSON
	dst = append(dst, head[:len(head)-1]...)
	if r.Constraint != nil {
		dst = append(append(dst, ','), r.Constraint...)
	}
	return endIDs(dst, "prompt")
}

// Constrain implements TokenKind.
func (TensorRTLLM) Constrain(c *prompt.Constraint) ([]byte, error) { return VLLM{}.Constrain(c) }

// Steps implements TokenKind. The chunks have the form of VLLM's.
func (TensorRTLLM) Steps(body io.ReadCloser, n int) iter.Seq2[Step, error] {
	return VLLM{}.Steps(body, n)
}

// Probe implements Kind. It reads the version.
func (TensorRTLLM) Probe(ctx context.Context, e *Engine) error {
	return optional(e.readVersion(ctx, "/version"))
}
