// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"

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
		Logprobs     *Logprobs       `json:"logprobs"`
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

// engineError is vLLM's error object.
type engineError struct {
	Message string `json:"message"`
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
		return dst, apierr.EngineFailed(&Fault{Message: c.Error.Message})
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index < 0 || ch.Index >= n {
			return dst, apierr.EngineFailed(fmt.Errorf("choice %d of %d", ch.Index, n))
		}
		st := Step{Choice: ch.Index, Text: []byte(ch.Text), IDs: ch.IDs, StopID: -1, Logprobs: ch.Logprobs}
		switch ch.FinishReason {
		case "":
		case "length":
			st.Finish = event.Length
		case "abort":
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
