// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/router/policy"
)

// This file reports the state of the gateway to its operator.

// Status describes a Gateway at one moment.
type Status struct {
	Running int            // requests that were placed on an engine
	Waiting int            // requests that wait for an engine
	Workers []WorkerStatus // in the order of the options
}

// WorkerStatus describes an engine at one moment, as the gateway knows it.
type WorkerStatus struct {
	Name          string
	Running       int  // requests
	ActiveBlocks  int  // KV blocks of its requests, expected output included
	PrefillTokens int  // prompt tokens that it must compute before the first tokens of its requests
	Ejected       bool // it gets no requests, because it failed
	// Contradiction is how the engine differs from the configuration, or "". It is then ejected.
	Contradiction string
	// Trust is the part of the prompt tokens estimated as cached that the engine, by its reports, has cached: 1 if it reports
	// none. The default policy takes it into account.
	Trust float64
}

// Status returns the state of the engines of a model, or of all models if model is "". O(engines).
func (g *Gateway) Status(model string) Status {
	var all Status
	for _, name := range g.names {
		if model == "" || name == model {
			s := g.deployments[name].fleet.status()
			all.Running += s.Running
			all.Waiting += s.Waiting
			all.Workers = append(all.Workers, s.Workers...)
		}
	}
	return all
}

func (f *fleet) status() Status {
	s := Status{Waiting: f.router.Waiting()}
	loads := make(map[string]policy.Load)
	for _, w := range f.router.Workers() {
		loads[w.Key.Instance] = w.Load
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.order {
		l := loads[e.name]
		n := l.Prefills + l.Decodes
		s.Running += n
		w := WorkerStatus{Name: e.name, Running: n, ActiveBlocks: l.Blocks, PrefillTokens: l.Tokens, Ejected: e.ejected, Trust: e.trust.value()}
		if e.contradiction != nil {
			w.Contradiction = e.contradiction.Error()
		}
		s.Workers = append(s.Workers, w)
	}
	return s
}

// A Tracer follows requests to the APIs, except requests that only count or convert tokens. Start, Place and End are called
// from the request's goroutine and must not block. A Tracer must be safe for concurrent use by multiple goroutines.
type Tracer interface {
	// Start begins a request. The returned context is derived from the context of r; the other methods, and the requests of the
	// transport, get contexts derived from it.
	Start(r *http.Request, api string) context.Context
	// Place is called when a request has been placed on an engine, again for each retry, but only for the first of several prompts.
	// Record has what is known so far.
	Place(ctx context.Context, r *Record)
	// End ends a request. err is the error that the client got, or nil. If the request panics, it is an internal one.
	End(ctx context.Context, r *Record, err *apierr.Error)
	// Transport returns a transport that passes requests to engines on to rt. Probes of engines have no started context.
	Transport(rt http.RoundTripper) http.RoundTripper
}

// traced returns r in the context of the tracer.
func (c *call) traced(r *http.Request) *http.Request {
	if c.g.opt.Tracer == nil {
		return r
	}
	return r.WithContext(c.g.opt.Tracer.Start(r, c.rec.API))
}

// refused reports to Options.OnRefuse and the tracer that a request failed before it was placed on an engine.
func (c *call) refused(ctx context.Context, err error) {
	if c.place != nil {
		return
	}
	if c.g.opt.OnRefuse != nil {
		c.g.opt.OnRefuse(cmp.Or(c.rec.Model, c.g.opt.Model), c.rec.API, public(ctx, err))
	}
	c.ended(ctx, err)
}

// ended reports the end of a request to the tracer.
func (c *call) ended(ctx context.Context, err error) {
	if c.over = true; c.g.opt.Tracer == nil {
		return
	}
	var e *apierr.Error
	switch {
	case errors.Is(err, errClientGone):
		e = &apierr.Error{Why: event.Canceled, Cause: err}
	case err != nil:
		e = public(ctx, err)
	}
	c.g.opt.Tracer.End(ctx, &c.rec, e)
}

var errPanicked = errors.New("serve: the request panicked")

// unwound reports the end of a request that panicked to the tracer.
func (c *call) unwound(ctx context.Context) {
	if !c.over {
		c.ended(ctx, errPanicked)
	}
}

// A pace measures the time between the tokens of the first choice.
type pace struct {
	last   time.Time // when tokens arrived before; zero if none did
	tokens int       // since then
}

// add counts the tokens of a step. Text without ids is treated as one token.
func (p *pace) add(st *upstream.Step) {
	if n := len(st.IDs); st.Choice == 0 && (n > 0 || len(st.Text) > 0) {
		p.tokens += max(n, 1)
	}
}

// report reports the tokens that arrived together to Options.OnOutput, except the first ones.
func (c *call) report(now time.Time) {
	p := &c.pace
	if p.tokens == 0 || c.g.opt.OnOutput == nil {
		return
	}
	if !p.last.IsZero() {
		c.g.opt.OnOutput(c.rec.Model, p.tokens, now.Sub(p.last))
	}
	p.last, p.tokens = now, 0
}

// metrics serves Options.Metrics.
func (g *Gateway) metrics(w http.ResponseWriter, r *http.Request) {
	if err := g.mayScrape(r); err != nil {
		g.refuse(w, r, apiOf(r), err)
		return
	}
	g.opt.Metrics.ServeHTTP(w, r)
}

// forwarded lists the headers by which a reverse proxy marks the requests of others.
var forwarded = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// mayScrape returns an error if the client must not see the metrics: they show the load of all tenants, so that a
// tenant's key does not suffice.
func (g *Gateway) mayScrape(r *http.Request) error {
	if g.opt.MetricsOpen {
		return nil
	}
	if secret(r) != "" && len(g.clients) > 0 {
		switch c, err := g.identify(r); {
		case err != nil:
			return err
		case c != nil && c.Tenant != "":
			return forbidden("The metrics are not available to tenants.")
		}
		return nil
	}
	for _, name := range forwarded {
		if len(r.Header.Values(name)) > 0 {
			return errMetrics
		}
	}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
		return errMetrics
	}
	return nil
}

var errMetrics = &apierr.Error{
	Why: event.Invalid, Code: "invalid_api_key", Status: http.StatusUnauthorized,
	Message: "The metrics are available to clients on the same machine, and with an API key that belongs to no tenant.",
}
