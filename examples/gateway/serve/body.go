// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// maxWindow bounds the memory that a zstd frame may ask for. Codex sends windows of at most 8 MiB.
const maxWindow = 8 << 20

// readBody reads the body of a request, which may be compressed with gzip or zstd. It may not be longer than max, neither as
// it comes nor as it is: what a small body blows up to beyond that is never held.
func readBody(w http.ResponseWriter, r *http.Request, max int64) ([]byte, error) {
	if r.ContentLength > max {
		return nil, apierr.TooLarge(max)
	}
	src := http.MaxBytesReader(w, r.Body, max)
	var plain io.Reader = src
	coding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding")))
	switch coding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, unreadable(err, coding, max)
		}
		plain = z
	case "zstd":
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, unreadable(err, coding, max)
		}
		defer z.Close()
		plain = z
	default:
		return nil, &apierr.Error{
			Why: event.Invalid, Status: http.StatusUnsupportedMediaType,
			Message: "The body of your request is compressed in a way that is not offered: use gzip, zstd or none.",
		}
	}
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 && coding == "" {
		body.Grow(int(n) + bytes.MinRead)
	}
	n, err := body.ReadFrom(io.LimitReader(plain, max+1))
	switch {
	case err != nil:
		return nil, unreadable(err, coding, max)
	case n > max:
		return nil, apierr.TooLarge(max)
	}
	return body.Bytes(), nil
}

// unreadable says why a body could not be read.
func unreadable(err error, coding string, max int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return apierr.TooLarge(max)
	}
	message := "The body of your request cannot be read."
	if coding != "" && coding != "identity" {
		message = fmt.Sprintf("The body of your request is not what its Content-Encoding says: %s.", coding)
	}
	return &apierr.Error{Why: event.Invalid, Message: message, Cause: err}
}
