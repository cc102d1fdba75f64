// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net/http"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// errSilent says that an engine gave no sign of life for too long.
var errSilent = errors.New("serve: the engine is silent")

// public returns what the client is told of err: what the client did wrong, if that is it, else why the request ended.
func public(ctx context.Context, err error) *apierr.Error {
	if e := apierr.From(err); e.Why == event.Invalid || e.Why == event.NotFound {
		return e
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed):
		return &apierr.Error{Why: event.Overloaded, Message: "Service unavailable: the server is shutting down.", Cause: err}
	case errors.Is(cause, errSilent):
		return &apierr.Error{Why: event.EngineFailed, Code: apierr.CodeTimeout, Message: "Timeout: the engine took too long to answer.", Cause: err}
	case cause != nil:
		return apierr.From(cause)
	}
	if _, ok := errors.AsType[*parsers.LimitError](err); ok {
		return &apierr.Error{Why: event.EngineFailed, Message: "The model's output passed a limit of this server.", Cause: err}
	}
	return apierr.From(err)
}

// refuse answers with an HTTP error in the API's form. Nothing may have been sent. A client that is gone gets one too: it may have
// closed only its own side of the connection, and an answer that is not written would be an empty 200.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, a *api, err error) {
	e := public(r.Context(), err)
	id := w.Header().Get("X-Request-Id")
	if id == "" {
		id = g.requestID(w, r, a)
	}
	if e.Why != event.Canceled { // those are the client's own affair
		g.opt.Logger.Warn("refused", "request", id, "path", r.URL.Path, "err", e)
	}
	h := w.Header()
	if after := e.RetryAfterHeader(a.style); after != "" {
		h.Set("Retry-After", after)
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(e.HTTPStatus(a.style))
	w.Write(e.AppendBody(nil, a.style, id))
}
