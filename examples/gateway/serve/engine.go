// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/intent"
)

// errUnreachable reports that a request to an engine failed before its response arrived.
var errUnreachable = errors.New("serve: engine unreachable")

// complete sends a request, which was prepared for the kind of the engine, with hints and returns its steps. If the engine
// cannot be reached or refuses the request, the error is an *apierr.Error. See upstream.Kind for the sequence. The caller
// must iterate over it or cancel ctx.
func (e *engine) complete(ctx context.Context, id string, req *engineRequest, hints intent.Out) (iter.Seq2[upstream.Step, error], error) {
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+e.kind.Traits().Path, nil)
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
	return e.kind.Steps(resp.Body, req.Choices), nil
}

// do sends a request, whose body has the hints that are fields. An error is an *apierr.Error.
func (e *engine) do(hr *http.Request, id string, hints *intent.Out) (*http.Response, error) {
	hr.Header.Set("Content-Type", "application/json")
	hints.SetHeaders(hr.Header)
	hr.Header.Set("X-Request-Id", id) // never the client's: engines identify requests by it
	if e.apiKey != "" {
		hr.Header.Set("Authorization", "Bearer "+e.apiKey)
	}
	resp, err := e.client.Do(hr)
	if err != nil {
		return nil, apierr.EngineFailed(fmt.Errorf("%w: %w", errUnreachable, err))
	}
	return resp, nil
}
