// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// engineRequest is a request to an engine. Its body has six bytes per token of the prompt, in memory that later requests
// use again. The memory is returned when release was called and the HTTP client has closed all readers of the body.
type engineRequest struct {
	upstream.Request
	kind upstream.TokenKind // for which the body is; nil if there is none yet

	mu       sync.Mutex
	body     []byte // of the last attempt, with hints; nil when it was returned
	base     int    // length of the part without hints, which has no closing brace
	attempt  int    // readers of earlier attempts fail
	open     int    // readers of the last attempt that are not closed
	released bool
}

// prepare writes the body for a kind of engine, with its constraint, unless it is the last one's. dec is the decoder of the
// first choice. Bodies that were attached before can no longer be read. The error is upstream.TokenKind's.
func (r *engineRequest) prepare(kind upstream.TokenKind, constraint []byte, dec *prompt.Decoder) (err error) {
	r.Decoder = dec
	if r.kind == kind {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body == nil {
		r.body = engineBodies.get()
	}
	r.kind, r.Constraint = kind, constraint
	r.attempt++
	r.body, err = kind.AppendRequest(r.body[:0], &r.Request)
	r.base = len(r.body) - 1
	return err
}

// attach makes the body with hints, which are fields that it does not have, the body of hr. Bodies that were attached
// before can no longer be read.
func (r *engineRequest) attach(hr *http.Request, hints *intent.Out) error {
	// The hints are encoded alone, because an edit of the body would scan the ids of the prompt.
	fields, err := hints.AppendBody(nil, []byte("{}"))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.attempt++
	r.open = 0
	r.body = r.body[:r.base]
	if string(fields) != "{}" {
		r.body = append(r.body, ',')
	}
	r.body = append(r.body, fields[1:]...)
	attempt := r.attempt
	hr.ContentLength = int64(len(r.body))
	r.mu.Unlock()
	hr.GetBody = func() (io.ReadCloser, error) { return r.reader(attempt) }
	hr.Body, err = r.reader(attempt)
	return err
}

var errNoBody = errors.New("serve: the body of an earlier attempt is gone")

// reader returns a reader of the body from its start.
func (r *engineRequest) reader(attempt int) (io.ReadCloser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempt != attempt || r.body == nil {
		return nil, errNoBody
	}
	r.open++
	return &bodyReader{of: r, attempt: attempt}, nil
}

// release ends the attempts.
func (r *engineRequest) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
	r.free()
}

// free returns the memory of the body if it is no longer used. r.mu must be held.
func (r *engineRequest) free() {
	if r.released && r.open == 0 && r.body != nil {
		engineBodies.put(r.body)
		r.body = nil
	}
}

// A bodyReader reads the body of one attempt. An HTTP client may read and close it after it has returned from a failed
// request, in another goroutine.
type bodyReader struct {
	of      *engineRequest
	attempt int
	at      int
	closed  bool
}

// Read copies from the body.
func (b *bodyReader) Read(p []byte) (int, error) {
	r := b.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.closed || b.attempt != r.attempt {
		return 0, errNoBody
	}
	n := copy(p, r.body[b.at:])
	if b.at += n; n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close ends the use of the body.
func (b *bodyReader) Close() error {
	r := b.of
	r.mu.Lock()
	defer r.mu.Unlock()
	if !b.closed && b.attempt == r.attempt {
		r.open--
		r.free()
	}
	b.closed = true
	return nil
}

// An engineConn is a connection to an engine. Without its ReadFrom, an HTTP client allocates 32 KB to copy the body of each
// request.
type engineConn struct{ net.Conn }

// ReadFrom implements io.ReaderFrom.
func (c engineConn) ReadFrom(r io.Reader) (int64, error) {
	chunk, _ := chunks.Get().(*[chunkSize]byte)
	if chunk == nil {
		chunk = new([chunkSize]byte)
	}
	defer chunks.Put(chunk)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, chunk[:])
}

// chunks has buffers of chunkSize bytes, through which bodies are written.
var chunks sync.Pool

const chunkSize = 64 << 10

// bodies holds the memory of bodies for later requests.
type bodies struct{ pool sync.Pool }

// clientBodies and engineBodies have the memory of the bodies of requests, of all gateways of the process.
var clientBodies, engineBodies bodies

// maxBodyKept limits the memory that is kept, in bytes.
const maxBodyKept = 16 << 20

func (b *bodies) get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return nil
}

func (b *bodies) put(body []byte) {
	if cap(body) <= maxBodyKept {
		b.pool.Put(&body)
	}
}
