// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/sse"
)

// A Step is one piece of an engine's stream: output of one choice, the usage of all, or a pause.
type Step struct {
	Choice int
	Text   []byte
	IDs    []uint32 // empty if the engine sends no ids
	Finish event.Why
	Stop   string        // the stop sequence, with Finish
	StopID int64         // the token that ended the choice, with Finish, or -1. It may be among IDs, but is never in Text
	Usage  *event.Tokens // nil except in a step of its own. Output may be 0 before the end
	// Logprobs has the log probabilities of the tokens, if the request asks for them.
	Logprobs *Logprobs
	Pause    bool // all output that has arrived was returned, and the next step may have to wait. A step of its own
}

// Logprobs holds the log probabilities of tokens in parallel lists, as the Completions API has them. Values and Top may be
// shorter than Tokens.
type Logprobs struct {
	Tokens []string                 `json:"tokens"`
	Values []json.Number            `json:"token_logprobs"`
	Top    []map[string]json.Number `json:"top_logprobs"`
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

// readStream returns the steps of an engine's stream of server-sent events. See readEvents.
func readStream(body io.ReadCloser, n int, decode func(dst []Step, data []byte) ([]Step, error)) iter.Seq2[Step, error] {
	return readEvents(body, n, new(sse.Reader).Events, decode)
}

// readEvents returns the steps of an engine's stream with n choices and closes it. events returns the events of a stream, and
// decode appends the steps of the data of an event. A step is valid until the next one. A pause precedes each read, so that a consumer can
// collect the output of all events that arrived together. The sequence ends at [DONE], or after the usage if all choices
// have ended, whether or not the engine closes the stream. It ends with an error if the stream breaks or ends before
// each choice has a finish reason.
func readEvents(body io.ReadCloser, n int, events func(io.Reader) iter.Seq2[sse.Event, error], decode func(dst []Step, data []byte) ([]Step, error)) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		defer body.Close()
		finished := make([]bool, n)
		open, trailing := n, trailingEvents
		var late *time.Timer // closes the stream after its last choice has ended
		var steps []Step
		stopped := false
		src := pausing{body, func() bool {
			stopped = !yield(Step{Pause: true}, nil)
			return !stopped
		}}
		for ev, err := range events(src) {
			if stopped {
				return
			}
			if err != nil {
				yield(Step{}, apierr.EngineFailed(err))
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
			if steps, err = decode(steps[:0], ev.Data); err != nil {
				yield(Step{}, err)
				return
			}
			last := false
			for _, st := range steps {
				if st.Finish != event.None && !finished[st.Choice] {
					finished[st.Choice] = true
					if open--; open == 0 {
						late = time.AfterFunc(trailingWait, func() { body.Close() })
						defer late.Stop()
					}
				}
				last = last || st.Usage != nil
				if !yield(st, nil) {
					return
				}
			}
			if last && open == 0 {
				break
			}
		}
		if open > 0 {
			yield(Step{}, apierr.EngineFailed(errors.New("no finish reason in stream")))
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
