// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// maxWindow bounds the memory that a zstd frame may ask for. Codex sends windows of at most 8 MiB.
const maxWindow = 8 << 20

const (
	// minInflated is the size up to which any body may be decompressed, in bytes.
	minInflated = 4 << 20
	// maxRatio limits the size of larger bodies, as a multiple of their compressed size.
	maxRatio = 32
	// firstBuffer limits the memory that is allocated because of a Content-Length, before the body arrives.
	firstBuffer = 1 << 20
	// unknownSize is the memory that is allocated for a body of unknown length, in bytes.
	unknownSize = 32 << 10
)

// readBody reads the body of a request, which may be compressed with gzip or zstd. The limit max applies to the
// compressed and the decompressed body, so decompression holds at most max+1 bytes. Memory for the body is taken from
// mem as it arrives. If the body is complete, readBody lifts the read deadline of the connection. On an error it keeps
// the deadline, because net/http may read the rest of the body before it sends the response. The body is in room if that is
// large enough.
func readBody(w http.ResponseWriter, r *http.Request, max int64, mem *share, room []byte) ([]byte, error) {
	if r.ContentLength > max {
		return nil, apierr.TooLarge(max)
	}
	coding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding")))
	size := int64(unknownSize)
	if r.ContentLength >= 0 && coding == "" {
		size = min(r.ContentLength+1, firstBuffer) // the last byte finds the end
	}
	src := &source{r: http.MaxBytesReader(w, r.Body, max)}
	if int64(cap(room)) < size {
		room = uncleared(int(size + size/4)) // the next request of a conversation is longer
	}
	body, err := unpack(src, coding, max, mem, room)
	if src.err != nil {
		err, coding = src.err, ""
	}
	if err != nil {
		return nil, unreadable(err, coding, max)
	}
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // errors as in ServeHTTP
	return body, nil
}

// readAll reads r to the end into the memory of body, which doubles when it is full.
func readAll(r io.Reader, body []byte) ([]byte, error) {
	body = body[:0]
	for {
		if len(body) == cap(body) {
			body = append(uncleared(2*cap(body)), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return body, err
		}
	}
}

// uncleared returns an empty slice with room for n bytes. Unlike make, it does not clear the memory.
func uncleared(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), b.Cap())[:0]
}

// An accounted reads a body without its compression, takes memory for it, and limits the ratio of the compression.
type accounted struct {
	r    io.Reader
	src  *source // the compressed body, or nil
	mem  *share
	n    int64 // bytes read
	paid int64 // bytes for which memory was taken
}

// Read reads from the body.
func (a *accounted) Read(p []byte) (int, error) {
	n, err := a.r.Read(p)
	if a.n += int64(n); a.n > a.paid {
		if err := a.mem.add((a.n - a.paid + outputPiece) * perByte); err != nil {
			return n, err
		}
		a.paid = a.n + outputPiece
	}
	if a.src != nil && a.n > max(minInflated, maxRatio*a.src.n) {
		return n, &apierr.Error{
			Why: event.Invalid, Code: "request_too_large",
			Message: fmt.Sprintf("The body of your request is compressed to less than 1/%d of its size. Send it without compression.", maxRatio),
		}
	}
	return n, err
}

// A source reads a request body from the connection. It keeps the first error, since decompressors may replace it by
// their own or, at the end of a frame, treat it as the end of the body.
type source struct {
	r   io.Reader
	n   int64 // bytes read
	err error
}

// Read reads from the connection.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// unpack decompresses src, up to max bytes, into room.
func unpack(src *source, coding string, max int64, mem *share, room []byte) ([]byte, error) {
	plain := &accounted{r: src, mem: mem}
	switch coding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, err
		}
		plain.r, plain.src = z, src
	case "zstd":
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		plain.r, plain.src = z, src
	default:
		return nil, &apierr.Error{
			Why: event.Invalid, Status: http.StatusUnsupportedMediaType,
			Message: "The body of your request is compressed in a way that is not offered: use gzip, zstd or none.",
		}
	}
	body, err := readAll(io.LimitReader(plain, max+1), room)
	if err == nil && int64(len(body)) > max {
		err = apierr.TooLarge(max)
	}
	return body, err
}

// unreadable returns the error that the client gets for err.
func unreadable(err error, coding string, max int64) error {
	if _, ok := errors.AsType[*apierr.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return apierr.TooLarge(max)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &apierr.Error{
			Why: event.Invalid, Code: apierr.CodeTimeout, Status: http.StatusRequestTimeout, Message: "The body of your request took too long to arrive.", Cause: err,
		}
	}
	message := "The body of your request cannot be read."
	if errors.Is(err, io.ErrUnexpectedEOF) {
		message = "The body of your request ends too early."
	}
	if coding != "" && coding != "identity" {
		message = fmt.Sprintf("The body of your request is not what its Content-Encoding says: %s.", coding)
	}
	return &apierr.Error{Why: event.Invalid, Message: message, Cause: err}
}
