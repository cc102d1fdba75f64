// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/chunkw"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/internal/streamdec"
	"github.com/weft-go/weft/protocols/sse"
)

// This file is structured as follows: options, the Stream and its entry points, then one method per group of event
// kinds, then the bytes of a chunk. Only the methods that Append, Close and Fail call change a Stream.

// StreamOptions configures a [Stream] and [AppendResponse]. ID and Model are required.
type StreamOptions struct {
	ID      string // response id, by custom "cmpl-…"
	Model   string // model name as the client shall see it
	Created int64  // Unix time in seconds

	IncludeUsage    bool // stream_options.include_usage: a last chunk with usage, and usage:null in all others
	ContinuousUsage bool // vLLM's stream_options.continuous_usage_stats: the counts so far in every chunk

	SystemFingerprint string // left out when empty
}

// Stream encodes events as the server-sent events of a streamed completion. Create one with [NewStream] for each
// response. One goroutine at a time.
type Stream struct {
	frame   chunkw.Frame
	choices []choiceState
	dropped int
	done    bool
}

// choiceState is the state of one of the answers.
type choiceState struct {
	index    []byte // `","index":0`
	finished bool
	kind     event.Kind // of the last text
	part     int32
	carry    jsonw.Carry
	probs    probs
}

// NewStream returns a Stream. It prebuilds the bytes that all chunks share.
func NewStream(opt StreamOptions) *Stream {
	return &Stream{frame: chunkw.NewFrame(opt.head(), opt.IncludeUsage, opt.ContinuousUsage)}
}

// head returns what an answer or a chunk begins with.
func (o *StreamOptions) head() chunkw.Head {
	return chunkw.Head{
		ID: o.ID, Object: "text_completion", Model: o.Model, Created: o.Created, SystemFingerprint: o.SystemFingerprint,
	}
}

// Append appends what the client gets for the events, ready to be written, to dst. Events that this API cannot
// express are skipped and counted, see [Stream.Dropped]. After the end of the stream it appends nothing. It keeps no
// reference to the events. A text delta costs no allocation once dst has room.
func (s *Stream) Append(dst []byte, events ...event.Event) []byte {
	for i := range events {
		dst = s.add(dst, &events[i])
	}
	return dst
}

// Close ends the stream: it appends the usage chunk, if the client asked for it, and [DONE]. If a choice has not
// finished, the stream was cut, and Close appends the error that [Stream.Fail] would: a client that saw no finish
// reason must not take the answer for a whole one.
func (s *Stream) Close(dst []byte) []byte {
	if s.done {
		return dst
	}
	if !s.finished() {
		return s.Fail(dst, streamdec.CutError())
	}
	s.done = true
	return s.frame.AppendEnd(dst)
}

func (s *Stream) finished() bool {
	for i := range s.choices {
		if !s.choices[i].finished {
			return false
		}
	}
	return len(s.choices) > 0
}

// Fail ends the stream with an error line. No [DONE] follows it: OpenAI sends none, and official clients stop at
// the error.
func (s *Stream) Fail(dst []byte, e *apierr.Error) []byte {
	if s.done {
		return dst
	}
	s.done = true
	return AppendStreamError(dst, e)
}

// KeepAlive appends a comment, which every client skips. Write it when nothing was sent for some seconds.
func (s *Stream) KeepAlive(dst []byte) []byte { return sse.AppendComment(dst, "keep-alive") }

// Dropped returns the number of events so far that had no form in this API: reasoning, calls, annotations, opaque items.
func (s *Stream) Dropped() int { return s.dropped }

func (s *Stream) add(dst []byte, e *event.Event) []byte {
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
		return s.Fail(dst, apierr.FromEvent(e))
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

// maxChoices bounds what a stray Choice can make a Stream allocate. OpenAI's own limit is 128.
const maxChoices = 1024

func (s *Stream) choice(n int32) *choiceState {
	if n < 0 || n >= maxChoices {
		return nil
	}
	for int(n) >= len(s.choices) {
		index := strconv.AppendInt([]byte(`","index":`), int64(len(s.choices)), 10)
		s.choices = append(s.choices, choiceState{index: index})
	}
	return &s.choices[n]
}

// flush ends a run of text: it writes what it held back.
func (s *Stream) flush(dst []byte, c *choiceState) []byte {
	if rest := c.carry.Flush(); len(rest) > 0 {
		return s.text(dst, c, rest)
	}
	return dst
}

// text sends a delta; text is valid UTF-8.
func (s *Stream) text(dst []byte, c *choiceState, text []byte) []byte {
	dst = append(dst, s.frame.Head...)
	dst = append(dst, `{"text":"`...)
	dst = jsonw.AppendText(dst, text)
	dst = append(dst, c.index...)
	return s.frame.AppendTail(append(dst, `,"logprobs":null,"finish_reason":null}]`...))
}

// open begins a chunk without text.
func (s *Stream) open(dst []byte, c *choiceState) []byte {
	dst = append(dst, s.frame.Head...)
	dst = append(dst, `{"text":"`...)
	return append(dst, c.index...)
}

// finishReason maps the cause of a finish.
func finishReason(why event.Why) string {
	switch why {
	case event.Length, event.ContextFull:
		return "length"
	case event.ContentFilter:
		return "content_filter"
	}
	return "stop"
}
