// SPDX-License-Identifier: Apache-2.0

// Package otel traces the requests of a gateway with OpenTelemetry, by the conventions for generative AI. It is a module
// of its own, so that package serve does not depend on OpenTelemetry, and it does not depend on package serve.
//
// The trace of a request continues the trace of its client, if it has the header traceparent, and engines get that
// header with the spans of their requests:
//
//	chat NAME                    the request: API, model, usage, finish reason, error
//	├── prepare                  admission, decoding, rendering, encoding
//	├── place                    waiting for an engine, and choosing it: worker, tokens estimated as cached
//	└── POST /v1/completions     the request to the engine, until the end of its response: status, first byte
//
// A retry has another place and POST. Spans contain nothing that clients send, except trace identifiers: no prompts,
// output, keys, or names of models that are not configured.
package otel

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// A Tracer makes the spans of requests. It is safe for concurrent use by multiple goroutines.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func(context.Context) error
}

// New returns a Tracer whose spans go to p.
func New(p trace.TracerProvider) *Tracer {
	return &Tracer{tracer: p.Tracer("github.com/weft-go/weft/examples/gateway/otel"), shutdown: func(context.Context) error { return nil }}
}

// Shutdown exports the spans that have ended, until ctx ends.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.shutdown(ctx) }

// request is the state of a request, in its context.
type request struct {
	span   trace.Span
	begun  time.Time
	api    string
	placed bool
}

type requestKey struct{}

// of returns the request that Start began, or nil.
func of(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// operation returns the name of an API's operation in the conventions.
func operation(api string) string {
	switch api {
	case "completions":
		return "text_completion"
	case "embeddings":
		return "embeddings"
	}
	return "chat"
}

// Start begins the span of a request. The caller must pass the returned context on, and call End.
func (t *Tracer) Start(r *http.Request, api string) context.Context {
	ctx := r.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() { // otherwise, a handler around the gateway has begun a span
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	q := &request{begun: time.Now(), api: api}
	ctx, q.span = t.tracer.Start(ctx, operation(api), trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(q.begun), trace.WithAttributes(
		semconv.HTTPRequestMethodKey.String(http.MethodPost),
		semconv.HTTPRoute(r.Pattern),
		semconv.GenAIOperationNameKey.String(operation(api)),
		semconv.GenAIProviderNameKey.String("weft"),
		attribute.String("weft.api", api),
	))
	return context.WithValue(ctx, requestKey{}, q)
}

// Place records that a request was placed on an engine, which took a time that has just ended. cached is the number of
// prompt tokens that the engine is estimated to have cached.
func (t *Tracer) Place(ctx context.Context, worker string, cached int, took time.Duration) {
	q, now := of(ctx), time.Now()
	begun := now.Add(-took)
	if !q.placed {
		_, s := t.tracer.Start(ctx, "prepare", trace.WithTimestamp(q.begun))
		s.End(trace.WithTimestamp(begun))
	}
	q.placed = true
	_, s := t.tracer.Start(ctx, "place", trace.WithTimestamp(begun), trace.WithAttributes(
		attribute.String("weft.worker", worker),
		attribute.Int("weft.cached_estimate", cached),
	))
	s.End(trace.WithTimestamp(now))
}

// Result describes how a request ended.
type Result struct {
	Model      string        // that served it; "" means none
	Worker     string        // the last engine; "" means none
	Finish     string        // finish reason; "" means none
	Prompt     int64         // tokens
	Cached     int64         // of Prompt, as the engine reported; -1 means that it did not
	Output     int64         // tokens
	FirstToken time.Duration // from the start of the request; 0 means that there was none
	Error      string        // class of the error; "" means none
	Status     int           // HTTP status of the error. From 500 on, the error is not the client's
}

// End ends the span of a request.
func (t *Tracer) End(ctx context.Context, r *Result) {
	q := of(ctx)
	name := operation(q.api)
	if r.Model != "" {
		name += " " + r.Model
		q.span.SetAttributes(semconv.GenAIRequestModel(r.Model))
	}
	q.span.SetName(name)
	if q.placed {
		q.span.SetAttributes(
			attribute.String("weft.worker", r.Worker),
			semconv.GenAIUsageInputTokens(int(r.Prompt)),
			semconv.GenAIUsageOutputTokens(int(r.Output)),
		)
		if r.Cached >= 0 {
			q.span.SetAttributes(semconv.GenAIUsageCacheReadInputTokens(int(r.Cached)))
		}
	}
	if r.Finish != "" {
		q.span.SetAttributes(semconv.GenAIResponseFinishReasons(r.Finish))
	}
	if r.FirstToken > 0 {
		q.span.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(r.FirstToken.Seconds()))
		q.span.AddEvent("first token", trace.WithTimestamp(q.begun.Add(r.FirstToken)))
	}
	if r.Error != "" {
		q.span.SetAttributes(semconv.ErrorTypeKey.String(r.Error))
		if r.Status >= 500 {
			q.span.SetStatus(codes.Error, "")
		}
	}
	q.span.End()
}

// Transport returns a transport that passes requests on to rt and makes the spans of those whose context comes from Start.
func (t *Tracer) Transport(rt http.RoundTripper) http.RoundTripper { return &transport{t, rt} }

type transport struct {
	*Tracer
	to http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if of(r.Context()) == nil {
		return t.to.RoundTrip(r)
	}
	attributes := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(r.Method), semconv.ServerAddress(r.URL.Hostname())}
	if port, err := strconv.Atoi(r.URL.Port()); err == nil {
		attributes = append(attributes, semconv.ServerPort(port))
	}
	ctx, s := t.tracer.Start(r.Context(), r.Method+" "+r.URL.Path, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	r = r.Clone(ctx) // a RoundTripper must not modify the request
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := t.to.RoundTrip(r)
	if err != nil {
		fail(s, err)
		s.End()
		return nil, err
	}
	s.SetAttributes(semconv.HTTPResponseStatusCode(resp.StatusCode))
	if resp.StatusCode >= 400 {
		s.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(resp.StatusCode)))
		s.SetStatus(codes.Error, "")
	}
	resp.Body = &body{ReadCloser: resp.Body, span: s}
	return resp, nil
}

// fail marks a span as failed. The text of the error may have what a server sent, so that only its type is recorded.
func fail(s trace.Span, err error) {
	s.SetAttributes(semconv.ErrorType(err))
	s.SetStatus(codes.Error, "")
}

// A body ends the span of its response when it has been read or is closed.
type body struct {
	io.ReadCloser
	span  trace.Span
	begun bool
	once  sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.begun {
		b.begun = true
		b.span.AddEvent("first byte")
	}
	if err != nil {
		b.end(err)
	}
	return n, err
}

// Close implements io.Closer. It may run while Read does.
func (b *body) Close() error {
	b.end(nil)
	return b.ReadCloser.Close()
}

func (b *body) end(err error) {
	b.once.Do(func() {
		if err != nil && err != io.EOF {
			fail(b.span, err)
		}
		b.span.End()
	})
}
