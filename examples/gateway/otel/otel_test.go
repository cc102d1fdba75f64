// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weft-go/weft/examples/gateway/otel"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	parent  = "00-" + traceID + "-b7ad6b7169203331-01"
)

// attributes returns the attributes of a span as text.
func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// transport is an http.RoundTripper that is a function.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestSpans checks the spans of a request that is retried: names, parents, times and attributes, and what engines get.
func TestSpans(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	tracer := otel.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(rec)))
	var sent []string
	rt := tracer.Transport(transport(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Traceparent"))
		if r.URL.Host == "e0:8000" {
			return nil, errors.New("secret")
		}
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("secret"))}, nil
	}))

	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader("secret"))
	r.Pattern = "/v1/chat/completions"
	r.Header.Set("Traceparent", parent)
	ctx := tracer.Start(r, "chat")
	ask := func(host string) (*http.Response, error) {
		out := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+"/v1/completions", nil)
		defer func() { require.Empty(t, out.Header, "the request is not modified") }()
		return rt.RoundTrip(out)
	}
	tracer.Place(ctx, "e0", 0, 0)
	_, err := ask("e0:8000")
	require.Error(t, err)
	tracer.Place(ctx, "e1", 64, 3*time.Millisecond)
	resp, err := ask("e1:8000")
	require.NoError(t, err)
	require.Len(t, rec.Ended(), 4, "the response has not ended")
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	resp.Body.Close()
	tracer.End(ctx, &otel.Result{Model: "m", Worker: "e1", Finish: "stop", Prompt: 100, Cached: 80, Output: 7, FirstToken: time.Millisecond})

	var names []string
	spans := rec.Ended()
	root := spans[len(spans)-1]
	for i, s := range spans {
		names = append(names, s.Name())
		require.Equal(t, traceID, s.SpanContext().TraceID().String())
		if i < len(spans)-1 {
			require.Equal(t, root.SpanContext().SpanID(), s.Parent().SpanID())
		}
		for name, value := range attributes(s) {
			require.NotContains(t, value, "secret", name)
		}
	}
	require.Equal(t, []string{"prepare", "place", "POST /v1/completions", "place", "POST /v1/completions", "chat m"}, names)
	require.Equal(t, "b7ad6b7169203331", root.Parent().SpanID().String())
	require.Equal(t, map[string]string{
		"http.request.method": "POST", "http.route": "/v1/chat/completions", "weft.api": "chat", "weft.worker": "e1",
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "weft", "gen_ai.request.model": "m",
		"gen_ai.usage.input_tokens": "100", "gen_ai.usage.cache_read.input_tokens": "80", "gen_ai.usage.output_tokens": "7",
		"gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.response.time_to_first_chunk": "0.001",
	}, attributes(root))
	require.Equal(t, "first token", root.Events()[0].Name)
	require.Equal(t, root.StartTime().Add(time.Millisecond), root.Events()[0].Time)
	require.Equal(t, "Unset", root.Status().Code.String())

	require.Equal(t, map[string]string{"weft.worker": "e1", "weft.cached_estimate": "64"}, attributes(spans[3]))
	require.Equal(t, 3*time.Millisecond, spans[3].EndTime().Sub(spans[3].StartTime()))
	require.Equal(t, "Error", spans[2].Status().Code.String())
	require.Equal(t, map[string]string{"http.request.method": "POST", "server.address": "e1", "server.port": "8000", "http.response.status_code": "200"}, attributes(spans[4]))
	require.Equal(t, "first byte", spans[4].Events()[0].Name)
	for i, at := range []int{2, 4} {
		require.Equal(t, "00-"+traceID+"-"+spans[at].SpanContext().SpanID().String()+"-01", sent[i])
	}
}

// TestErrors checks how requests that fail end, and that requests outside of a trace have no spans.
func TestErrors(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	tracer := otel.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(rec)))
	for class, status := range map[string]int{"invalid": 400, "engine_failed": 502} {
		ctx := tracer.Start(httptest.NewRequest(http.MethodPost, "/v1/embeddings", nil), "embeddings")
		tracer.End(ctx, &otel.Result{Error: class, Status: status, Cached: -1})
		ended := rec.Ended()
		s := ended[len(ended)-1]
		require.Equal(t, "embeddings", s.Name())
		require.Equal(t, class, attributes(s)["error.type"])
		require.NotContains(t, attributes(s), "gen_ai.usage.input_tokens")
		require.Equal(t, map[bool]string{true: "Error", false: "Unset"}[status >= 500], s.Status().Code.String())
		require.False(t, s.Parent().IsValid())
	}
	rec.Reset()
	rt := tracer.Transport(transport(func(r *http.Request) (*http.Response, error) {
		require.Equal(t, r.Method == http.MethodGet, r.Header.Get("Traceparent") == "")
		return &http.Response{StatusCode: 500, Body: http.NoBody}, nil
	}))
	_, err := rt.RoundTrip(httptest.NewRequest(http.MethodGet, "/health", nil))
	require.NoError(t, err)
	require.Empty(t, rec.Ended())

	ctx := tracer.Start(httptest.NewRequest(http.MethodPost, "/v1/messages", nil), "messages")
	resp, err := rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "http://e0/v1/completions", nil))
	require.NoError(t, err)
	resp.Body.Close() // without reading it
	require.Len(t, rec.Ended(), 1)
	require.Equal(t, "500", attributes(rec.Ended()[0])["error.type"])
}

// TestFromEnv checks which variables turn tracing on, that invalid ones are errors, and the export.
func TestFromEnv(t *testing.T) {
	for name, tt := range map[string]struct {
		env []string
		on  bool
		err string
	}{
		"nothing":           {},
		"endpoint":          {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, on: true},
		"endpoint of spans": {env: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces"}, on: true},
		"exporter":          {env: []string{"OTEL_TRACES_EXPORTER", "otlp"}, on: true},
		"none":              {env: []string{"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}},
		"disabled":          {env: []string{"OTEL_SDK_DISABLED", "true", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}},
		"another exporter":  {env: []string{"OTEL_TRACES_EXPORTER", "zipkin"}, err: `unknown exporter "zipkin"`},
		"gRPC":              {env: []string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, err: `unknown OTLP protocol "grpc"`},
		"no scheme":         {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"}, err: "OTEL_EXPORTER_OTLP_ENDPOINT: invalid URL"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; i < len(tt.env); i += 2 {
				t.Setenv(tt.env[i], tt.env[i+1])
			}
			tracer, err := otel.FromEnv(t.Context(), "s", "v", slog.New(slog.DiscardHandler))
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.on, tracer != nil)
			if tracer != nil {
				require.NoError(t, tracer.Shutdown(t.Context()))
			}
		})
	}
}

// TestExport checks what a collector gets, that its errors are logged, and that nothing waits for one that does not answer.
func TestExport(t *testing.T) {
	var mu sync.Mutex
	var got bytes.Buffer
	answer := func(http.ResponseWriter, *http.Request) {}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		io.WriteString(&got, r.URL.Path+r.Header.Get("X-Key"))
		io.Copy(&got, r.Body)
		mu.Unlock()
		answer(w, r)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=header-of-collector")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	run := func(ctx context.Context) (log string, err error) {
		var text bytes.Buffer
		tracer, err := otel.FromEnv(t.Context(), "my-service", "v1", slog.New(slog.NewTextHandler(&text, nil)))
		require.NoError(t, err)
		for range 10_000 { // more than the queue holds
			tracer.End(tracer.Start(httptest.NewRequest(http.MethodPost, "/v1/responses", nil), "responses"), &otel.Result{Model: "m"})
		}
		if err := tracer.Shutdown(ctx); err != nil {
			return "", err // the log may still be written
		}
		return text.String(), nil
	}
	log, err := run(t.Context())
	require.NoError(t, err)
	require.Empty(t, log)
	for _, want := range []string{"/v1/traces", "header-of-collector", "chat m", "my-service", "staging"} {
		require.Contains(t, got.String(), want)
	}

	answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }
	log, err = run(t.Context())
	require.NoError(t, err)
	require.Contains(t, log, "traces not exported")

	stop := make(chan struct{})
	defer close(stop)
	answer = func(http.ResponseWriter, *http.Request) { <-stop }
	ctx, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer done()
	_, err = run(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
