// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// FromEnv returns a Tracer that exports spans with OTLP over HTTP, as OpenTelemetry's environment variables specify, or
// nil if they do not: it is on if OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
// OTEL_TRACES_EXPORTER=otlp is set. Settings that it does not implement are errors. service and version describe the
// program; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
//
// Spans are exported in the background. If the collector is slow or away, they are dropped, and the failure is logged.
// The caller must call Shutdown.
func FromEnv(ctx context.Context, service, version string, log *slog.Logger) (*Tracer, error) {
	const endpoint, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	const tracesEndpoint, tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	kind := os.Getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || kind == "none":
		return nil, nil
	case kind == "" && os.Getenv(endpoint) == "" && os.Getenv(tracesEndpoint) == "":
		return nil, nil
	case kind != "" && kind != "otlp":
		return nil, fmt.Errorf("otel: OTEL_TRACES_EXPORTER: unknown exporter %q: want otlp or none", kind)
	}
	if p := cmp.Or(os.Getenv(tracesProtocol), os.Getenv(protocol), "http/protobuf"); p != "http/protobuf" {
		return nil, fmt.Errorf("otel: unknown OTLP protocol %q: set %s to http/protobuf, and the endpoint to that of the collector for HTTP", p, protocol)
	}
	for _, name := range []string{endpoint, tracesEndpoint} {
		if u, err := url.Parse(os.Getenv(name)); err != nil || u.String() != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("otel: %s: invalid URL: want http://HOST:PORT or https://HOST:PORT", name)
		}
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(&logged{exporter, log}), sdktrace.WithResource(about))
	t := New(p)
	t.shutdown = p.Shutdown
	return t, nil
}

// A logged exporter logs its errors, which OpenTelemetry would otherwise print to stderr.
type logged struct {
	sdktrace.SpanExporter
	log *slog.Logger
}

// ExportSpans implements sdktrace.SpanExporter.
func (l *logged) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := l.SpanExporter.ExportSpans(ctx, spans); err != nil {
		l.log.Warn("traces not exported", "spans", len(spans), "err", err)
	}
	return nil
}
