// SPDX-License-Identifier: Apache-2.0

// Package upstream implements the kinds of engines that a gateway can use: how a response is requested, how its stream is
// read, and how an engine describes itself. A kind has one type, which implements [Kind].
//
//	VLLM        /v1/completions of vLLM, and of engines that have the same
//	VLLMTokens  /inference/v1/generate of a vLLM that has it
//	LlamaCPP    /completion of llama.cpp's server
//	SGLang      /generate of SGLang
//	Ollama      /api/generate of Ollama, with text instead of token ids
//	TensorRTLLM /v1/completions of trtllm-serve
//	Embedded    examples/engine, which has vLLM's endpoint and does not constrain its output
//	Managed     endpoints that have one of the three APIs themselves: OpenAI, Anthropic, and servers with their APIs
//
// All kinds but Managed implement [TokenKind]: their engines get prompts as token ids and return the ids of the output,
// because only ids distinguish a marker from text that looks like one. Ollama has no ids, and restrictions for that.
package upstream

import (
	"context"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// A Kind is a kind of engine, either a [TokenKind] or [Managed]. Kinds are comparable. Their methods are safe for concurrent
// use by multiple goroutines.
type Kind interface {
	// String returns the name of the kind, as in configurations.
	String() string
	// Traits describes what engines of the kind can do.
	Traits() Traits
	// Probe completes the description of an engine, of which /v1/models is known.
	Probe(ctx context.Context, e *Engine) error
}

// A TokenKind is a kind of engine that continues a prompt, normally token ids.
type TokenKind interface {
	Kind
	// AppendRequest appends the body of a request, a JSON object, without the ids of the prompt. It returns the body and the
	// position in it where Prompt.IDList belongs, or -1 if the body has the prompt as text. The error is an *apierr.Error of
	// class Invalid if engines of the kind cannot be asked for it.
	AppendRequest(dst []byte, r *Request) (body []byte, ids int, err error)
	// Constrain returns the field of the body that holds the output to c, without a comma. The error is an *apierr.Error
	// of class Invalid if engines of the kind cannot enforce c.
	Constrain(c *prompt.Constraint) ([]byte, error)
	// Steps returns the steps of a successful response with n choices and closes it. A step is valid until the next one.
	// A pause precedes each read. The sequence ends with an error if the stream breaks or ends too early.
	Steps(body io.ReadCloser, n int) iter.Seq2[Step, error]
}

// Traits describes what engines of a kind can do.
type Traits struct {
	Path   string // of the endpoint for requests
	Owner  string // owned_by in /v1/models, by which the kind is recognized; "" if it is not
	KeyEnv string // environment variable with the engine's key
	Host   string // the only host that gets that key; "" means any
	Hints  string // dialect of its hints, one of package intent; "" if it takes none
	Events string // path of the endpoint that returns the cache events since the last request; or ""
	Close  string // path of the endpoint that ends the claim of a session on the cache; "" if sessions have none
	Text   bool   // it gets prompts and returns output as text, in which special tokens are missing
	Probs  bool   // it reports log probabilities
	// PromptProbs is the kind as which it gets requests for the log probabilities of the prompt; nil if it reports none.
	PromptProbs TokenKind
	Stops       bool     // it applies stop strings and stop tokens, and reports which one ended the output
	Drops       []string // fields of clients' requests that have no effect
}

// A Request is a request for a response.
type Request struct {
	Model      string          // name of the model at the engine
	Decoder    *prompt.Decoder // of the first choice
	Client     *block.Request
	Prompt     *prompt.Prompt
	Choices    int
	Constraint []byte // of Kind.Constrain; nil if the output is free
	Logprobs   *int   // log probabilities of each token and of so many candidates; nil means none
	// PromptLogprobs specifies that the first step of each choice begins with the log probabilities of the prompt's tokens.
	PromptLogprobs bool
}

// endIDs ends a body with the field that has the ids.
func endIDs(dst []byte, field string) (body []byte, ids int, err error) {
	dst = append(append(append(dst, `,"`...), field...), `":[`...)
	return append(dst, "]}"...), len(dst), nil
}

// sampling are the sampling parameters that have the same names in all kinds.
type sampling struct {
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	MinP             *float64 `json:"min_p,omitempty"`
	TopK             *int64   `json:"top_k,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
}

// samplingOf returns the parameters that a client gives; the engine has defaults for the others.
func samplingOf(s *block.Sampling) sampling {
	return sampling{s.Temperature, s.TopP, s.MinP, s.TopK, s.FrequencyPenalty, s.PresencePenalty}
}

// noLimit replaces a negative top_k, for engines to which 0 means no limit.
func (s *sampling) noLimit() {
	if s.TopK != nil && *s.TopK < 0 {
		s.TopK = new(int64)
	}
}

// Kinds returns all kinds that can be configured.
func Kinds() []Kind {
	return []Kind{VLLM{}, LlamaCPP{}, SGLang{}, Ollama{}, TensorRTLLM{}, Embedded{}, OpenAI, Anthropic, Responses}
}

// Lookup returns the kind with a name.
func Lookup(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.String() == name {
			return k, true
		}
	}
	return nil, false
}
