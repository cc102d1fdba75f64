// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/intent"
)

// errUnreachable reports that a request to an engine failed before its response arrived.
var errUnreachable = errors.New("serve: engine unreachable")

// complete sends a request, which was prepared for a kind that the engine is, with hints and returns its steps. If the engine
// cannot be reached or refuses the request, the error is an *apierr.Error. See upstream.TokenKind for the sequence. The caller
// must iterate over it or cancel ctx.
func (e *engine) complete(ctx context.Context, id string, req *engineRequest, hints intent.Out) (iter.Seq2[upstream.Step, error], error) {
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+req.kind.Traits().Path, nil)
	if err != nil {
		return nil, err
	}
	if err := req.attach(hr, &hints); err != nil {
		return nil, err
	}
	resp, err := e.do(hr, id, &hints)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, upstream.Refusal(resp, &req.Request)
	}
	return req.kind.Steps(resp.Body, req.Choices), nil
}

// authorize sets the headers with the engine's key.
func (e *engine) authorize(r *http.Request) {
	if m, ok := e.kind.(upstream.Managed); ok {
		m.SetHeaders(r.Header, e.host, e.apiKey)
	} else if e.apiKey != "" {
		r.Header.Set("Authorization", "Bearer "+e.apiKey)
	}
}

// maxStale is the maximum number of connections that are tried for a request.
const maxStale = 3

// do sends a request, whose body has the hints that are fields. An error is an *apierr.Error. Engines close idle
// connections, llama.cpp and vLLM after 5 seconds, also while a request arrives. A request that fails on a connection that
// was used before is therefore sent again.
func (e *engine) do(hr *http.Request, id string, hints *intent.Out) (*http.Response, error) {
	hr.Header.Set("Content-Type", "application/json")
	hints.SetHeaders(hr.Header)
	hr.Header.Set("X-Request-Id", id) // never the client's: engines identify requests by it
	e.authorize(hr)
	var reused atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused.Store(c.Reused) }}
	hr = hr.WithContext(httptrace.WithClientTrace(hr.Context(), trace))
	for attempt := 1; ; attempt++ {
		resp, err := e.client.Do(hr)
		if err == nil {
			return resp, nil
		}
		if !reused.Load() || hr.GetBody == nil || attempt == maxStale || hr.Context().Err() != nil {
			return nil, apierr.EngineFailed(fmt.Errorf("%w: %w", errUnreachable, err))
		}
		if hr.Body, err = hr.GetBody(); err != nil {
			return nil, err
		}
	}
}
