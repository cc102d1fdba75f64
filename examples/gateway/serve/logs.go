// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
)

// This file keeps prompts, output and keys out of the log. What may contain them is logged by its position, class or
// length; clients get the rest in their errors, which have the request id of the log.

// loggable returns err as the log has it, or nil.
func loggable(err error) any {
	if err == nil {
		return nil
	}
	return logged{err}
}

// logged is an error as the log has it.
type logged struct{ error }

// LogValue implements slog.LogValuer. The message of an error in a request is not logged, because it may quote the request.
func (l logged) LogValue() slog.Value {
	e, ok := errors.AsType[*apierr.Error](l.error)
	if !ok {
		return slog.StringValue(l.Error())
	}
	attrs := []slog.Attr{slog.String("class", e.Why.String())}
	for _, a := range []slog.Attr{slog.String("code", e.Code), slog.String("param", e.Param)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	fault, fromEngine := errors.AsType[*upstream.Fault](l.error)
	switch {
	case fromEngine:
		attrs = append(attrs, slog.String("cause", fault.Error()))
	case e.Why == event.Invalid || e.Why == event.NotFound:
	case e.Cause != nil:
		attrs = append(attrs, slog.String("cause", e.Cause.Error()))
	default:
		attrs = append(attrs, slog.String("message", e.Message))
	}
	return slog.GroupValue(attrs...)
}

// reason returns the reason for a loss, without the part of the request that it names.
func reason(l block.Loss) string {
	why, _, _ := strings.Cut(l.Why, ": ")
	return why
}
