// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
)

// completionRequest is what the gateway asks of vLLM's /v1/completions.
type completionRequest struct {
	Model         string         `json:"model"`
	Prompt        []uint32       `json:"prompt"`
	MaxTokens     int64          `json:"max_tokens"` // always: absent, vLLM takes 16
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options"`
	// The markers of calls may be special tokens; the parser needs them.
	SkipSpecialTokens bool `json:"skip_special_tokens"`
	// With the ids a marker is known from text that only looks like one.
	ReturnTokenIDs bool `json:"return_token_ids"`

	CacheSalt         string   `json:"cache_salt,omitempty"`
	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	TopK              *int64   `json:"top_k,omitempty"`
	Seed              *int64   `json:"seed,omitempty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64 `json:"presence_penalty,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
	Stop              []string `json:"stop,omitempty"`
	StopTokens        []int64  `json:"stop_token_ids,omitempty"`
	IgnoreEOS         bool     `json:"ignore_eos,omitempty"`
}

func newCompletionRequest(model string, prompt []uint32, maxTokens int64, s block.Sampling) *completionRequest {
	return &completionRequest{
		Model: model, Prompt: prompt, MaxTokens: maxTokens, Stream: true,
		StreamOptions:  map[string]any{"include_usage": true},
		ReturnTokenIDs: len(s.Stop) == 0, // a stop string cuts the text but not the ids
		Temperature:    s.Temperature, TopP: s.TopP, MinP: s.MinP, TopK: s.TopK, Seed: s.Seed,
		FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty, RepetitionPenalty: s.RepetitionPenalty,
		Stop: s.Stop, StopTokens: s.StopTokens, IgnoreEOS: s.IgnoreEOS,
	}
}

// A step is one piece of an engine's stream.
type step struct {
	text   string
	ids    []uint32 // empty when the engine sends none
	finish event.Why
	stop   string        // the stop sequence, with finish
	usage  *event.Tokens // only the last step has one
}

// chunk is the part of a chunk of vLLM's stream that the gateway reads.
type chunk struct {
	Choices []struct {
		Text         string          `json:"text"`
		IDs          []uint32        `json:"token_ids"`
		FinishReason string          `json:"finish_reason"`
		StopReason   json.RawMessage `json:"stop_reason"`
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

// maxErrorBody bounds what is read of an engine's error answer.
const maxErrorBody = 64 << 10

// engineError is vLLM's error object, of old versions the whole body.
type engineError struct {
	Message string          `json:"message"`
	Code    json.RawMessage `json:"code"`
}

// errUnreachable says that no connection to the engine could be made or used.
var errUnreachable = errors.New("serve: engine unreachable")

// complete posts a completion and returns its stream. An engine that cannot be reached or refuses is an *apierr.Error.
// The range ends with an error when the stream breaks, or ends without a finish reason. The call is over when ctx ends;
// the range must be run, or ctx ended.
func (e *engine) complete(ctx context.Context, id string, req *completionRequest) (iter.Seq2[step, error], error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set("X-Request-Id", id)
	if e.apiKey != "" {
		hr.Header.Set("Authorization", "Bearer "+e.apiKey)
	}
	resp, err := e.client.Do(hr)
	if err != nil {
		return nil, apierr.EngineFailed(fmt.Errorf("%w: %w", errUnreachable, err))
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return func(yield func(step, error) bool) {
		defer resp.Body.Close()
		finished := false
		for ev, err := range new(sse.Reader).Events(resp.Body) {
			if err != nil {
				yield(step{}, apierr.EngineFailed(err))
				return
			}
			if ev.Comment || ev.Done() {
				continue
			}
			st, err := readStep(ev.Data)
			finished = finished || st.finish != event.None
			if !yield(st, err) || err != nil {
				return
			}
		}
		if !finished {
			yield(step{}, apierr.EngineFailed(errors.New("the stream ended without a finish reason")))
		}
	}, nil
}

func readStep(data []byte) (st step, err error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return st, apierr.EngineFailed(fmt.Errorf("chunk %.100q: %w", data, err))
	}
	if c.Error != nil {
		return st, apierr.EngineFailed(errors.New(c.Error.Message))
	}
	if len(c.Choices) > 0 {
		ch := &c.Choices[0]
		st.text, st.ids = ch.Text, ch.IDs
		switch ch.FinishReason {
		case "":
		case "length":
			st.finish = event.Length
		case "abort":
			return st, apierr.EngineFailed(errors.New("the engine aborted the request"))
		default:
			st.finish = event.Stop
			if json.Unmarshal(ch.StopReason, &st.stop) == nil && st.stop != "" {
				st.finish = event.StopSequence
			}
		}
	}
	if u := c.Usage; u != nil {
		st.usage = &event.Tokens{Prompt: u.Prompt, Output: u.Output, CachedEstimated: u.Details == nil}
		if u.Details != nil {
			st.usage.Cached = u.Details.Cached
		}
	}
	return st, nil
}

// refusal turns an engine's HTTP error into what the client is told. What the client did wrong is passed on; everything
// else is the engine's failure, with details only in the log.
func refusal(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what arrived is all there is to say
	var body struct {
		Error *engineError `json:"error"`
		engineError
	}
	json.Unmarshal(data, &body) // not JSON: no message
	if body.Error == nil {
		body.Error = &body.engineError
	}
	cause := fmt.Errorf("engine: HTTP %s: %.500s", strconv.Itoa(resp.StatusCode), data)
	switch {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		e := apierr.Overloaded(0)
		e.Cause = cause
		return e
	case resp.StatusCode == http.StatusBadRequest && strings.Contains(body.Error.Message, "maximum context length"):
		return &apierr.Error{Why: event.Invalid, Code: apierr.CodeContextLength, Message: body.Error.Message, Cause: cause}
	case resp.StatusCode == http.StatusBadRequest && body.Error.Message != "":
		return &apierr.Error{Why: event.Invalid, Message: body.Error.Message, Cause: cause}
	}
	return apierr.EngineFailed(cause)
}
