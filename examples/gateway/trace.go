// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/weft-go/weft/examples/gateway/otel"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/protocols/apierr"
)

// A tracer passes what package serve reports to OpenTelemetry.
type tracer struct{ *otel.Tracer }

var _ serve.Tracer = tracer{}

// Place implements serve.Tracer.
func (t tracer) Place(ctx context.Context, r *serve.Record) {
	t.Tracer.Place(ctx, r.Worker, r.Decision.CachedEstimate, r.Placing)
}

// End implements serve.Tracer.
func (t tracer) End(ctx context.Context, r *serve.Record, err *apierr.Error) {
	end := &otel.Result{
		Model: r.Model, Worker: r.Worker, Finish: r.Finish, Prompt: r.Usage.Prompt, Cached: r.Usage.Cached, Output: r.Usage.Output, FirstToken: r.FirstByte,
	}
	if r.Usage.CachedEstimated {
		end.Cached = -1
	}
	if err != nil {
		end.Finish, end.Error, end.Status = "", err.Why.String(), err.HTTPStatus(apierr.OpenAI)
	}
	t.Tracer.End(ctx, end)
}
