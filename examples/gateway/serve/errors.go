// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net/http"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
)

// public returns what the client is told of err.
func public(ctx context.Context, err error) *apierr.Error {
	if errors.Is(context.Cause(ctx), errClosed) {
		return &apierr.Error{Why: event.Overloaded, Message: "The server is shutting down.", Cause: err}
	}
	if e, ok := errors.AsType[*block.Error](err); ok {
		code := apierr.CodeInvalidJSON
		switch {
		case e.Kind == block.LimitPassed && e.Limit == "body bytes":
			return apierr.TooLarge(e.Max)
		case e.Kind == block.LimitPassed, e.Kind == block.WrongType:
			code = ""
		}
		return &apierr.Error{Why: event.Invalid, Code: code, Param: e.Path, Message: e.Error(), Cause: err}
	}
	if _, ok := errors.AsType[*parsers.LimitError](err); ok {
		return &apierr.Error{Why: event.EngineFailed, Message: "The model's output passed a limit of this server.", Cause: err}
	}
	return apierr.From(err)
}

// refuse answers with an HTTP error in the API's form. Nothing may have been sent.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, a *api, err error) {
	e := public(r.Context(), err)
	if e.Why == event.Canceled {
		return // nobody is there to read it
	}
	id := w.Header().Get("X-Request-Id")
	if id == "" {
		id = g.requestID(w, r, a)
	}
	g.opt.Logger.Warn("refused", "request", id, "path", r.URL.Path, "err", e)
	h := w.Header()
	if after := e.RetryAfterHeader(a.style); after != "" {
		h.Set("Retry-After", after)
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(e.HTTPStatus(a.style))
	w.Write(e.AppendBody(nil, a.style, id))
}
