// SPDX-License-Identifier: Apache-2.0

// Package chunkw writes the JSON before and after the choices of a response, and of the chunks of a stream, for the
// encoders of the Chat and Completions APIs. All functions append to a slice of the caller and allocate only if it
// lacks capacity.
package chunkw

import (
	"strconv"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonw"
	"github.com/weft-go/weft/protocols/sse"
)

// Head holds the fields of a response, or of a chunk, that precede its choices.
type Head struct {
	ID, Object, Model string
	Created           int64  // Unix time in seconds
	SystemFingerprint string // omitted if empty
	ServiceTier       string // omitted if empty
}

// Append appends the opening brace, the fields and `,"choices":[`.
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

// AppendUsage appends a usage object. Cached tokens are limited to the number of prompt tokens.
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

// AppendError appends the server-sent event that reports e.
func AppendError(dst []byte, e *apierr.Error) []byte {
	dst = append(dst, "data: "...)
	dst = e.AppendBody(dst, apierr.OpenAI, "")
	return append(dst, "\n\n"...)
}

// Frame holds the bytes before and after the choices of the chunks of one stream.
type Frame struct {
	Head  []byte       // `data: {"id":…,"choices":[`
	Usage event.Tokens // so far

	last, each bool   // send usage in a last chunk, in each chunk
	tail       []byte // `,"usage":null}` and the blank line, depending on last and each
}

// NewFrame returns the frame of a stream whose chunks begin with h. last adds a chunk with the usage at the end of the
// stream, each the counts so far to each chunk.
func NewFrame(h Head, last, each bool) Frame {
	f := Frame{Head: h.Append([]byte("data: ")), last: last, each: each}
	if last && !each {
		f.tail = append(f.tail, `,"usage":null`...)
	}
	f.tail = append(f.tail, "}\n\n"...)
	return f
}

// AppendTail appends the end of a chunk, after its choices.
func (f *Frame) AppendTail(dst []byte) []byte {
	if f.each {
		dst = append(dst, `,"usage":`...)
		dst = AppendUsage(dst, &f.Usage)
	}
	return append(dst, f.tail...)
}

// AppendEnd appends the end of the stream: the usage, if requested, and [DONE].
func (f *Frame) AppendEnd(dst []byte) []byte {
	if f.last {
		dst = append(dst, f.Head...)
		dst = append(dst, `],"usage":`...)
		dst = AppendUsage(dst, &f.Usage)
		dst = append(dst, "}\n\n"...)
	}
	return append(dst, "data: "+sse.Done+"\n\n"...)
}
