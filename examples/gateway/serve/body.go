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
	"sync"
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
)

// chunks has buffers of chunkSize bytes, through which bodies are read.
var chunks sync.Pool

const chunkSize = 32 << 10

// readBody reads the body of a request, which may be compressed with gzip or zstd. The limit max applies to the
// compressed and the decompressed body, so decompression holds at most max+1 bytes. Memory for the body is taken from
// mem as it arrives. If the body is complete, readBody lifts the read deadline of the connection. On an error it keeps
// the deadline, because net/http may read the rest of the body before it sends the response.
func readBody(w http.ResponseWriter, r *http.Request, max int64, mem *share) ([]byte, error) {
	if r.ContentLength > max {
		return nil, apierr.TooLarge(max)
	}
	coding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding")))
	var body strings.Builder // unlike a bytes.Buffer, it does not clear its memory first
	if n := r.ContentLength; n > 0 && coding == "" {
		body.Grow(int(min(n, firstBuffer)))
	}
	src := &source{r: http.MaxBytesReader(w, r.Body, max)}
	err := unpack(&body, src, coding, max, mem)
	if src.err != nil {
		err, coding = src.err, ""
	}
	if err != nil {
		return nil, unreadable(err, coding, max)
	}
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // errors as in ServeHTTP
	return built(&body), nil
}

// built returns the bytes of a body, which nothing writes to, without a copy.
func built(body *strings.Builder) []byte {
	text := body.String()
	return unsafe.Slice(unsafe.StringData(text), len(text))
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

// A doubling is a strings.Builder that doubles its memory when it is full. By itself, a large one grows by a quarter, so that
// a body of unknown length is copied and allocated several times.
type doubling struct{ *strings.Builder }

// Write implements io.Writer.
func (d doubling) Write(p []byte) (int, error) {
	if d.Cap()-d.Len() < len(p) {
		d.Grow(len(p))
	}
	return d.Builder.Write(p)
}

// unpack decompresses src into body, up to max bytes.
func unpack(body *strings.Builder, src *source, coding string, max int64, mem *share) error {
	plain := &accounted{r: src, mem: mem}
	switch coding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return err
		}
		plain.r, plain.src = z, src
	case "zstd":
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return err
		}
		defer z.Close()
		plain.r, plain.src = z, src
	default:
		return &apierr.Error{
			Why: event.Invalid, Status: http.StatusUnsupportedMediaType,
			Message: "The body of your request is compressed in a way that is not offered: use gzip, zstd or none.",
		}
	}
	chunk, _ := chunks.Get().(*[chunkSize]byte)
	if chunk == nil {
		chunk = new([chunkSize]byte)
	}
	defer chunks.Put(chunk)
	n, err := io.CopyBuffer(doubling{body}, io.LimitReader(plain, max+1), chunk[:])
	if err == nil && n > max {
		err = apierr.TooLarge(max)
	}
	return err
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
