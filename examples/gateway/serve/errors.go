// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// errSilent reports that an engine sent nothing for Options.EngineSilence.
var errSilent = errors.New("serve: engine silent")

// public returns the error that the client gets for err: the client's own mistake if err is one, otherwise the reason
// why ctx or the engine ended the request.
func public(ctx context.Context, err error) *apierr.Error {
	if e := apierr.Wrap(err); e.Why == event.Invalid || e.Why == event.NotFound {
		return e
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed):
		return &apierr.Error{Why: event.Overloaded, Message: "Service unavailable: the server is shutting down.", Cause: err}
	case errors.Is(cause, errSilent):
		return &apierr.Error{Why: event.EngineFailed, Code: apierr.CodeTimeout, Message: "Timeout: the engine took too long to answer.", Cause: err}
	case cause != nil:
		return apierr.Wrap(cause)
	}
	if _, ok := errors.AsType[*parsers.LimitError](err); ok {
		return &apierr.Error{Why: event.EngineFailed, Message: "The model's output passed a limit of this server.", Cause: err}
	}
	return apierr.Wrap(err)
}

// refuse sends an HTTP error in the form of the API. The response must not have started. It also sends one if the
// client has disconnected, since the client may have closed only its sending side, and would get an empty response with
// status 200.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, a *wire.API, err error) {
	e := public(r.Context(), err)
	id := w.Header().Get("X-Request-Id")
	if id == "" {
		id = g.requestID(w, r, a)
	}
	if e.Why != event.Canceled { // the client disconnected
		g.opt.Logger.Warn("request refused", "request", id, "path", fmt.Sprintf("%.200s", r.URL.Path), "err", loggable(e))
	}
	h := w.Header()
	if after := e.RetryAfterHeader(a.ErrorStyle()); after != "" {
		h.Set("Retry-After", after)
	}
	status := e.HTTPStatus(a.ErrorStyle())
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(e.AppendBody(nil, a.ErrorStyle(), id))
}
