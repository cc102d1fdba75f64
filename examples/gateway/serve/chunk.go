// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
)

// A step is one piece of an engine's stream: output of one choice, the usage of all, or a pause.
type step struct {
	choice int
	text   []byte
	ids    []uint32 // empty if the engine sends no ids
	finish event.Why
	stop   string        // the stop sequence, with finish
	stopID int64         // the token that ended the choice, with finish, or -1. It may be among ids, but is never in text
	usage  *event.Tokens // nil except in a step of its own
	pause  bool          // all output that has arrived was returned, and the next step may have to wait. A step of its own
}

const (
	// trailingWait is the time in which the usage and the end of a stream must arrive after its last choice has ended.
	trailingWait = 2 * time.Second
	// trailingEvents is the number of events that may follow the end of the last choice.
	trailingEvents = 64
	// drainWait and maxDrain bound what is read after a stream, so that its connection can be used again.
	drainWait = 100 * time.Millisecond
	maxDrain  = 4 << 10 // bytes
)

// readSteps returns the steps of an engine's stream with n choices and closes it. A step is valid until the next one. A
// pause precedes each read, so that a consumer can collect the output of all chunks that arrived together. The sequence
// ends at [DONE], or after the usage if all choices have ended, whether or not the engine closes the stream. It ends with
// an error if the stream breaks or ends before each choice has a finish reason.
func readSteps(body io.ReadCloser, n int) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		defer body.Close()
		finished := make([]bool, n)
		open, trailing := n, trailingEvents
		var late *time.Timer // closes the stream after its last choice has ended
		chunks := chunkReader{n: n}
		var steps []step
		stopped := false
		src := pausing{body, func() bool {
			stopped = !yield(step{pause: true}, nil)
			return !stopped
		}}
		for ev, err := range new(sse.Reader).Events(src) {
			if stopped {
				return
			}
			if err != nil {
				yield(step{}, apierr.EngineFailed(err))
				return
			}
			if ev.Done() || trailing == 0 {
				break
			}
			if open == 0 {
				trailing--
			}
			if ev.Comment {
				continue
			}
			if steps, err = chunks.appendSteps(steps[:0], ev.Data); err != nil {
				yield(step{}, err)
				return
			}
			last := false
			for _, st := range steps {
				if st.finish != event.None && !finished[st.choice] {
					finished[st.choice] = true
					if open--; open == 0 {
						late = time.AfterFunc(trailingWait, func() { body.Close() })
						defer late.Stop()
					}
				}
				last = last || st.usage != nil
				if !yield(st, nil) {
					return
				}
			}
			if last && open == 0 {
				break
			}
		}
		if open > 0 {
			yield(step{}, apierr.EngineFailed(errors.New("no finish reason in stream")))
			return
		}
		late.Reset(drainWait)
		io.CopyN(io.Discard, body, maxDrain) // after an error, the connection is not reused
	}
}

// pausing calls pause before each read. If that returns false, the read fails.
type pausing struct {
	io.Reader
	pause func() bool
}

// Read calls pause and reads.
func (p pausing) Read(b []byte) (int, error) {
	if !p.pause() {
		return 0, io.ErrClosedPipe
	}
	return p.Reader.Read(b)
}

// chunk contains the fields of vLLM's stream chunks that the gateway reads.
type chunk struct {
	Choices []struct {
		Index        int             `json:"index"`
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

// engineError is vLLM's error object.
type engineError struct {
	Message string `json:"message"`
}

// A chunkReader decodes the chunks of a stream with n choices.
type chunkReader struct {
	n    int
	ids  []uint32 // of the last chunk
	text []byte   // of the last chunk, where it has escapes
}

// appendSteps decodes a chunk. The steps are valid until the next call and while data is not modified.
func (r *chunkReader) appendSteps(dst []step, data []byte) ([]step, error) {
	if steps, ok := r.scan(dst, data); ok {
		return steps, nil
	}
	return appendSteps(dst, data, r.n)
}

// appendSteps decodes any chunk of a stream with n choices.
func appendSteps(dst []step, data []byte, n int) ([]step, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return dst, apierr.EngineFailed(fmt.Errorf("chunk of %d bytes: %w", len(data), err))
	}
	if c.Error != nil {
		return dst, apierr.EngineFailed(&engineFault{message: c.Error.Message})
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index < 0 || ch.Index >= n {
			return dst, apierr.EngineFailed(fmt.Errorf("choice %d of %d", ch.Index, n))
		}
		st := step{choice: ch.Index, text: []byte(ch.Text), ids: ch.IDs, stopID: -1}
		switch ch.FinishReason {
		case "":
		case "length":
			st.finish = event.Length
		case "abort":
			return dst, apierr.EngineFailed(errors.New("request aborted by engine"))
		default:
			st.finish = event.Stop
			if json.Unmarshal(ch.StopReason, &st.stop) == nil && st.stop != "" {
				st.finish = event.StopSequence
			}
			json.Unmarshal(ch.StopReason, &st.stopID) // stays -1 if StopReason is not a number
		}
		dst = append(dst, st)
	}
	if u := c.Usage; u != nil {
		t := &event.Tokens{Prompt: u.Prompt, Output: u.Output, CachedEstimated: u.Details == nil}
		if u.Details != nil {
			t.Cached = u.Details.Cached
		}
		dst = append(dst, step{usage: t})
	}
	return dst, nil
}
