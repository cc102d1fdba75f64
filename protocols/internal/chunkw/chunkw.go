// SPDX-License-Identifier: Apache-2.0

// Package chunkw holds what the encoders of the Chat and Completions APIs share: what stands around the choices of an
// answer and of the chunks of a stream. Everything appends to a slice of the caller and allocates nothing else.
package chunkw

import (
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/sse"
)

// Head is what an answer and each of its chunks say before their choices.
type Head struct {
	ID, Object, Model string
	Created           int64  // Unix time in seconds
	SystemFingerprint string // left out when empty
	ServiceTier       string // left out when empty
}

// Append appends the opening brace, the members and `,"choices":[`.
func (h *Head) Append(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = jsonw.AppendString(dst, h.ID)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, h.Object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, h.Created, 10)
	dst = append(dst, `,"model":`...)
	dst = jsonw.AppendString(dst, h.Model)
	if h.SystemFingerprint != "" {
		dst = append(dst, `,"system_fingerprint":`...)
		dst = jsonw.AppendString(dst, h.SystemFingerprint)
	}
	if h.ServiceTier != "" {
		dst = append(dst, `,"service_tier":`...)
		dst = jsonw.AppendString(dst, h.ServiceTier)
	}
	return append(dst, `,"choices":[`...)
}

// AppendUsage appends a usage object. Cached tokens are part of the prompt and are never more.
func AppendUsage(dst []byte, u *event.Tokens) []byte {
	dst = append(dst, `{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, u.Prompt, 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, u.Output, 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.Prompt+u.Output, 10)
	dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
	dst = strconv.AppendInt(dst, min(u.Cached, u.Prompt), 10)
	if u.CacheWrite > 0 {
		dst = append(dst, `,"cache_write_tokens":`...)
		dst = strconv.AppendInt(dst, u.CacheWrite, 10)
	}
	dst = append(dst, `},"completion_tokens_details":{"reasoning_tokens":`...)
	dst = strconv.AppendInt(dst, min(u.Reasoning, u.Output), 10)
	return append(dst, `}}`...)
}

// AppendError appends the line that reports e in a stream.
func AppendError(dst []byte, e *apierr.Error) []byte {
	dst = append(dst, "data: "...)
	dst = e.AppendBody(dst, apierr.OpenAI, "")
	return append(dst, "\n\n"...)
}

// Frame is what stands around the choices of the chunks of one stream.
type Frame struct {
	Head  []byte       // `data: {"id":…,"choices":[`
	Usage event.Tokens // so far

	last, each bool   // usage in a chunk of its own, in each one
	tail       []byte // `,"usage":null}` and the blank line, as last and each have it
}

// NewFrame returns the frame for a stream that begins with h. last asks for a chunk with the usage at the end, each for the
// counts so far in each chunk.
func NewFrame(h Head, last, each bool) Frame {
	f := Frame{Head: h.Append([]byte("data: ")), last: last, each: each}
	if last && !each {
		f.tail = append(f.tail, `,"usage":null`...)
	}
	f.tail = append(f.tail, "}\n\n"...)
	return f
}

// AppendTail ends a chunk behind its choices.
func (f *Frame) AppendTail(dst []byte) []byte {
	if f.each {
		dst = append(dst, `,"usage":`...)
		dst = AppendUsage(dst, &f.Usage)
	}
	return append(dst, f.tail...)
}

// AppendEnd ends the stream: with the usage, if it was asked for, and [DONE].
func (f *Frame) AppendEnd(dst []byte) []byte {
	if f.last {
		dst = append(dst, f.Head...)
		dst = append(dst, `],"usage":`...)
		dst = AppendUsage(dst, &f.Usage)
		dst = append(dst, "}\n\n"...)
	}
	return append(dst, "data: "+sse.Done+"\n\n"...)
}
