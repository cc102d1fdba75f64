// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// VLLM is the kind of vLLM 0.11 and later, and of engines that have the same /v1/completions. Constraints are structural
// tags with token ids, as of vLLM 0.32.
type VLLM struct{}

// String implements Kind.
func (VLLM) String() string { return "vllm" }

// Traits implements Kind.
func (VLLM) Traits() Traits {
	return Traits{Path: "/v1/completions", Owner: "vllm", KeyEnv: "VLLM_API_KEY", Hints: "vllm", Probs: true, PromptProbs: VLLM{}, Stops: true}
}

// AppendRequest implements TokenKind.
func (VLLM) AppendRequest(dst []byte, r *Request) (body []byte, ids int, err error) {
	dst = r.Decoder.AppendFields(dst, r.Model)
	if r.Choices > 1 {
		dst = fmt.Appendf(dst, `,"n":%d`, r.Choices)
	}
	if r.Logprobs != nil {
		dst = fmt.Appendf(dst, `,"logprobs":%d`, *r.Logprobs)
	}
	if r.PromptLogprobs { // the text of the prompt is missing, because ids are requested
		dst = append(dst, `,"echo":true`...)
	}
	if r.Constraint != nil {
		dst = append(append(dst, ','), r.Constraint...)
	}
	return endIDs(dst, "prompt")
}

// Constrain implements TokenKind.
func (VLLM) Constrain(c *prompt.Constraint) ([]byte, error) {
	return append([]byte(`"response_format":`), c.StructuralTag()...), nil
}

// Steps implements TokenKind.
func (VLLM) Steps(body io.ReadCloser, n int) iter.Seq2[Step, error] {
	return readStream(body, n, (&chunkReader{n: n}).appendSteps)
}

// Probe implements Kind. It reads the version, the size and the number of blocks, and where the engine publishes its cache events. An engine
// that can be asked for token ids only is a [VLLMTokens].
func (VLLM) Probe(ctx context.Context, e *Engine) error {
	return cmp.Or(optional(e.readVersion(ctx, "/version")), optional(e.readMetrics(ctx)), optional(e.readSources(ctx)), optional(e.findTokens(ctx)))
}

// Embedded is the kind of examples/engine, the embedded engine.
type Embedded struct{ VLLM }

// String implements Kind.
func (Embedded) String() string { return "embedded" }

// Traits implements Kind.
func (Embedded) Traits() Traits {
	t := VLLM{}.Traits()
	t.Owner, t.KeyEnv, t.Probs, t.PromptProbs = "weft", "", false, nil
	return t
}

// Constrain implements TokenKind. The embedded engine constrains nothing.
func (k Embedded) Constrain(*prompt.Constraint) ([]byte, error) {
	return nil, cannotConstrain(k, "it writes scripted output")
}

// cannotConstrain returns the error for a kind whose engines enforce no demand.
func cannotConstrain(k Kind, why string) error {
	return &apierr.Error{Why: event.Invalid, Code: apierr.CodeUnsupported,
		Message: fmt.Sprintf("The engines of this server cannot constrain the output (%s): %s.", k, why)}
}
