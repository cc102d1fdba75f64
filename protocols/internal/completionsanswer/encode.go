// SPDX-License-Identifier: Apache-2.0

// Package completionsanswer encodes and decodes responses of the Completions API. Package completions documents their
// form.
package completionsanswer

import (
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chunkw"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/sse"
)

// This file is structured as follows: options, the Encoder and its exported methods, then one method per group of event
// kinds, then the bytes of a chunk.

// Options configures an [Encoder] and [AppendResponse]. ID and Model are required.
type Options struct {
	ID      string // response ID, normally "cmpl-…"
	Model   string // model name for the client
	Created int64  // Unix time in seconds

	IncludeUsage    bool // stream_options.include_usage: a last chunk with usage, and usage:null in the others
	ContinuousUsage bool // vLLM's stream_options.continuous_usage_stats: the counts so far in every chunk

	SystemFingerprint string // omitted if empty
}

// Encoder encodes events as the server-sent events of a streamed completion. Create one for each response with
// [NewEncoder]. An Encoder is not safe for concurrent use.
type Encoder struct {
	frame   chunkw.Frame
	choices []choiceState
	dropped int
	started bool // a chunk was sent
	done    bool
	err     *apierr.Error // of Fail
}

// choiceState is the state of a choice.
type choiceState struct {
	index    []byte // `","index":0`
	finished bool
	kind     event.Kind // of the last text
	part     int32
	carry    jsonw.Carry
	probs    probs
}

// NewEncoder returns an Encoder. It precomputes the bytes that all chunks have in common.
func NewEncoder(opt Options) *Encoder {
	return &Encoder{frame: chunkw.NewFrame(opt.head(), opt.IncludeUsage, opt.ContinuousUsage)}
}

// head returns the first fields of a response or chunk.
func (o *Options) head() chunkw.Head {
	return chunkw.Head{
		ID: o.ID, Object: "text_completion", Model: o.Model, Created: o.Created, SystemFingerprint: o.SystemFingerprint,
	}
}

// Append encodes events and appends the bytes for the client to dst. Events that this API cannot express are skipped
// and counted; see [Encoder.Dropped]. After the end of the stream it appends nothing. It does not retain the events. A
// text delta does not allocate if dst has the capacity.
func (s *Encoder) Append(dst []byte, events ...event.Event) []byte {
	for i := range events {
		dst = s.add(dst, &events[i])
	}
	return dst
}

// Finish ends the stream. It appends the usage chunk, if the client asked for it, and [DONE]. A choice without an
// event.Finish ends as if the model had stopped. If the response was cut off, see [Encoder.Cut], Finish instead calls
// [Encoder.Fail].
func (s *Encoder) Finish(dst []byte) []byte {
	if s.done {
		return dst
	}
	if s.Cut() {
		return s.Fail(dst, streamdec.CutError())
	}
	for i := range s.choices {
		if !s.choices[i].finished {
			dst = s.add(dst, &event.Event{Kind: event.Finish, Choice: int32(i), Call: -1, Why: event.Stop})
		}
	}
	s.done = true
	return s.frame.AppendEnd(dst)
}

// Cut reports whether the response is cut off if it ends now: there is no choice, or a choice without an event.Finish
// has no output.
func (s *Encoder) Cut() bool {
	for i := range s.choices {
		if c := &s.choices[i]; !c.finished && c.kind == 0 {
			return true
		}
	}
	return len(s.choices) == 0
}

// Fail ends the stream with an error. It does not append [DONE]: OpenAI does not send it, and official clients stop at
// the error.
func (s *Encoder) Fail(dst []byte, e *apierr.Error) []byte {
	if s.done {
		return dst
	}
	s.done, s.err = true, e
	return chunkw.AppendError(dst, e)
}

// Err returns the error that ended the stream, or nil.
func (s *Encoder) Err() *apierr.Error { return s.err }

// Started reports whether a chunk was sent.
func (s *Encoder) Started() bool { return s.started }

// AppendKeepAlive appends a comment, which all clients skip. Write it if nothing was sent for some seconds.
func (s *Encoder) AppendKeepAlive(dst []byte) []byte { return sse.AppendComment(dst, "keep-alive") }

// Dropped returns the number of events so far that this API cannot express: reasoning, calls, annotations, opaque
// items.
func (s *Encoder) Dropped() int { return s.dropped }

func (s *Encoder) add(dst []byte, e *event.Event) []byte {
	if s.done {
		return dst
	}
	switch e.Kind {
	case event.Usage:
		if e.Usage != nil {
			s.frame.Usage = *e.Usage
		}
		return dst
	case event.Error:
		return s.Fail(dst, apierr.EventError(e))
	}
	c := s.choice(e.Choice)
	if c == nil || c.finished {
		s.dropped++
		return dst
	}
	switch e.Kind {
	case event.Start:
		if e.Usage != nil {
			s.frame.Usage = *e.Usage
		}
		return dst
	case event.Text, event.Refusal:
		if c.kind != e.Kind || c.part != e.Part {
			dst = s.flush(dst, c)
			c.kind, c.part = e.Kind, e.Part
		}
		if text := c.carry.Next(e.Data); len(text) > 0 {
			return s.text(dst, c, text)
		}
		return dst
	case event.Logprobs:
		if !jsonw.IsArray(e.Data) || !c.probs.read(e.Data) {
			s.dropped++
			return dst
		}
		dst = s.open(dst, c)
		dst = append(dst, `,"logprobs":`...)
		dst = c.probs.append(dst)
		return s.frame.AppendTail(append(dst, `,"finish_reason":null}]`...))
	case event.Finish:
		dst = s.open(s.flush(dst, c), c)
		c.finished = true
		dst = append(dst, `,"logprobs":null,"finish_reason":"`...)
		dst = append(dst, finishReason(e.Why)...)
		return s.frame.AppendTail(append(dst, `"}]`...))
	}
	s.dropped++
	return dst
}

// maxChoices bounds the allocation that a single large Choice can cause. OpenAI allows 128 choices.
const maxChoices = 1024

func (s *Encoder) choice(n int32) *choiceState {
	if n < 0 || n >= maxChoices {
		return nil
	}
	for int(n) >= len(s.choices) {
		index := strconv.AppendInt([]byte(`","index":`), int64(len(s.choices)), 10)
		s.choices = append(s.choices, choiceState{index: index})
	}
	return &s.choices[n]
}

// flush ends a run of text and writes the bytes that it held back.
func (s *Encoder) flush(dst []byte, c *choiceState) []byte {
	if rest := c.carry.Flush(); len(rest) > 0 {
		return s.text(dst, c, rest)
	}
	return dst
}

// text appends a delta; text is valid UTF-8.
func (s *Encoder) text(dst []byte, c *choiceState, text []byte) []byte {
	s.started = true
	dst = append(dst, s.frame.Head...)
	dst = append(dst, `{"text":"`...)
	dst = jsonw.AppendText(dst, text)
	dst = append(dst, c.index...)
	return s.frame.AppendTail(append(dst, `,"logprobs":null,"finish_reason":null}]`...))
}

// open begins a chunk without text.
func (s *Encoder) open(dst []byte, c *choiceState) []byte {
	s.started = true
	dst = append(dst, s.frame.Head...)
	dst = append(dst, `{"text":"`...)
	return append(dst, c.index...)
}

// finishReason returns the finish_reason for a cause.
func finishReason(why event.Why) string {
	switch why {
	case event.Length, event.ContextFull:
		return "length"
	case event.ContentFilter:
		return "content_filter"
	}
	return "stop"
}
