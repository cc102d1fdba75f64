// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// engineRequest is a request to an engine. Its body has six bytes per token of the prompt, which stay in the memory of the prompt.
type engineRequest struct {
	upstream.Request
	kind upstream.TokenKind // for which the body is; nil if there is none yet

	head, ids, tail []byte // the body without hints and the closing brace
}

// prepare writes the body for a kind of engine, with its constraint, unless it is the last one's. dec is the decoder of the
// first choice. The error is upstream.TokenKind's.
func (r *engineRequest) prepare(kind upstream.TokenKind, constraint []byte, dec *prompt.Decoder) error {
	r.Decoder = dec
	if r.kind == kind {
		return nil
	}
	r.Constraint = constraint
	body, ids, err := kind.AppendRequest(nil, &r.Request)
	if err != nil {
		return err
	}
	r.kind, r.head, r.ids, r.tail = kind, body[:len(body)-1], nil, nil
	if ids >= 0 {
		r.head, r.ids, r.tail = body[:ids], r.Prompt.IDList(), body[ids:len(body)-1]
	}
	return nil
}

// attach makes the body with hints, which are fields that it does not have, the body of hr.
func (r *engineRequest) attach(hr *http.Request, hints *intent.Out) error {
	fields, err := hints.AppendBody(nil, []byte("{}"))
	if err != nil {
		return err
	}
	tail := slices.Clip(r.tail)
	if string(fields) != "{}" {
		tail = append(tail, ',')
	}
	tail = append(tail, fields[1:]...)
	hr.ContentLength = int64(len(r.head) + len(r.ids) + len(tail))
	head, ids := r.head, r.ids
	hr.GetBody = func() (io.ReadCloser, error) { return &engineBody{net.Buffers{head, ids, tail}}, nil }
	hr.Body, err = hr.GetBody()
	return err
}

// An engineBody reads a body from its parts. An HTTP client may read it after it has returned from a failed request, in another
// goroutine.
type engineBody struct{ net.Buffers }

// Close implements io.Closer.
func (*engineBody) Close() error { return nil }

// An engineConn is a connection to an engine. Its ReadFrom writes the parts of a body without a copy. For other bodies, an HTTP
// client would allocate 32 KB to copy each.
type engineConn struct{ net.Conn }

// ReadFrom implements io.ReaderFrom.
func (c engineConn) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok { // what net/http has for a body of known length
		if b, ok := l.R.(*engineBody); ok {
			n, err := b.WriteTo(c.Conn)
			l.N -= n
			return n, err
		}
	}
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

// clientBodies has the memory of the bodies of clients' requests, of all gateways of the process.
var clientBodies bodies

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
