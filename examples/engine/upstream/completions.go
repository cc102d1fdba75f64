// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// chunk contains the fields of vLLM's stream chunks that the gateway reads.
type chunk struct {
	Choices []struct {
		Index        int             `json:"index"`
		Text         string          `json:"text"`
		IDs          []uint32        `json:"token_ids"`
		FinishReason string          `json:"finish_reason"`
		StopReason   json.RawMessage `json:"stop_reason"`
		Logprobs     *chunkLogprobs  `json:"logprobs"`
	} `json:"choices"`
	Usage *struct {
		Prompt  int64 `json:"prompt_tokens"`
		Output  int64 `json:"completion_tokens"`
		Details *struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *engineError `json:"error"`
}

// chunkLogprobs are log probabilities in the form of the Completions API, or of the Chat API.
type chunkLogprobs struct {
	Logprobs
	Content []struct {
		chatLogprob
		Top []chatLogprob `json:"top_logprobs"`
	} `json:"content"`
}

// chatLogprob is a log probability in the form of the Chat API.
type chatLogprob struct {
	Token string      `json:"token"`
	Value json.Number `json:"logprob"`
}

// list returns the log probabilities, or nil.
func (l *chunkLogprobs) list() *Logprobs {
	if l == nil {
		return nil
	}
	for _, c := range l.Content {
		top := make(map[string]json.Number, len(c.Top))
		for _, t := range c.Top {
			top[t.Token] = t.Value
		}
		l.Tokens, l.Values, l.Logprobs.Top = append(l.Tokens, c.Token), append(l.Values, c.Value), append(l.Logprobs.Top, top)
	}
	return &l.Logprobs
}

// engineError is vLLM's error object.
type engineError struct {
	Message string `json:"message"`
	Code    any    `json:"code"` // HTTP status, also of an error in a stream; others send a text
}

// fault returns the error for a stream that ends with e. vLLM checks grammars and the length of prompts after the response
// has begun.
func (e *engineError) fault() error {
	if e.Code == float64(http.StatusBadRequest) {
		return &apierr.Error{Why: event.Invalid, Message: e.Message, Cause: &Fault{Size: len(e.Message)}}
	}
	return apierr.EngineFailed(&Fault{Message: e.Message})
}

// A chunkReader decodes the chunks of a stream with n choices.
type chunkReader struct {
	n    int
	ids  []uint32 // of the last chunk
	text []byte   // of the last chunk, where it has escapes
	like pattern  // of chunks before
}

// appendSteps decodes a chunk. The steps are valid until the next call and while data is not modified.
func (r *chunkReader) appendSteps(dst []Step, data []byte) ([]Step, error) {
	if steps, ok := r.scan(dst, data); ok {
		return steps, nil
	}
	return appendSteps(dst, data, r.n)
}

// appendSteps decodes any chunk of a stream with n choices.
func appendSteps(dst []Step, data []byte, n int) ([]Step, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return dst, apierr.EngineFailed(fmt.Errorf("chunk of %d bytes: %w", len(data), err))
	}
	if c.Error != nil {
		return dst, c.Error.fault()
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index < 0 || ch.Index >= n {
			return dst, apierr.EngineFailed(fmt.Errorf("choice %d of %d", ch.Index, n))
		}
		st := Step{Choice: ch.Index, Text: []byte(ch.Text), IDs: ch.IDs, StopID: -1, Logprobs: ch.Logprobs.list()}
		switch ch.FinishReason {
		case "":
		case "length":
			st.Finish = event.Length
		case "abort", "cancelled", "timeout": // the last two of TensorRT-LLM
			return dst, apierr.EngineFailed(errors.New("request aborted by engine"))
		default:
			st.Finish = event.Stop
			if json.Unmarshal(ch.StopReason, &st.Stop) == nil && st.Stop != "" {
				st.Finish = event.StopSequence
			}
			json.Unmarshal(ch.StopReason, &st.StopID) // stays -1 if StopReason is not a number
		}
		dst = append(dst, st)
	}
	if u := c.Usage; u != nil {
		t := &event.Tokens{Prompt: u.Prompt, Output: u.Output, CachedEstimated: u.Details == nil}
		if u.Details != nil {
			t.Cached = u.Details.Cached
		}
		dst = append(dst, Step{Usage: t})
	}
	return dst, nil
}
