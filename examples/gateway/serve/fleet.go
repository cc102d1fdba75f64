// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// A fleet holds the engines and their router. It is safe for concurrent use by multiple goroutines.
//
// A request waits in the router's queue if all engines that could serve it have as many requests as they may. An engine
// that fails is ejected: it gets no requests until a probe succeeds; see health.go. If all engines are ejected, requests are
// placed on them nevertheless, unless they contradict the configuration; see identity.go.
type fleet struct {
	router   *router.Router
	engines  map[index.WorkerID]*engine
	order    []*engine // as in Options
	idle     func()    // closes idle connections
	log      *slog.Logger
	patience time.Duration // time for which a request waits

	mu      sync.Mutex // guards what follows and the health of engines
	retries float64    // budget; see retry
}

// An engine is the connection to a worker.
type engine struct {
	id          index.WorkerID
	name        string
	url, apiKey string
	host        string         // of url, without a port
	model       string         // its name at the engine; "" means the deployment's
	hints       *intent.Target // nil if it takes none
	client      *http.Client
	kind        upstream.Kind
	trust       trust // judged under fleet.mu
	adapters    []string
	stream      *index.Stream
	newStream   func() *index.Stream  // returns a stream, which replaces the last one
	follow      func() error          // subscribes to its events, which stream gets; nil if it sends none
	cancel      func()                // of the subscription; may be nil
	silent      atomic.Bool           // a poller reads its events, and there were none
	ahead       atomic.Pointer[ahead] // the next prompt that it computes in advance; nil if there is none
	claims      claims
	identity

	health // under fleet.mu
}

// defaultMost is the default of Engine.MaxRequests: vLLM's default for max_num_seqs.
const defaultMost = 256

func newFleet(o *Options, m *Model) (*fleet, error) {
	rt, idle := o.Transport, func() {}
	if rt == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 64
		transport.DisableCompression = true // compression delays streams
		transport.ReadBufferSize = 16 << 10 // the output of a read leaves in one write
		if dial := transport.DialContext; dial != nil {
			transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return engineConn{c}, nil
			}
		}
		rt, idle = transport, transport.CloseIdleConnections
	}
	if o.Tracer != nil {
		rt = o.Tracer.Transport(rt)
	}
	trusts := make(map[index.WorkerID]*trust) // not changed after newFleet
	ropt := &router.Options{FixedRates: true, Policy: withTrust(m.Placement, trusts), MaxQueue: o.MaxQueue}
	for _, e := range m.Engines {
		if e.PrefillPerSecond <= 0 {
			ropt.FixedRates = false // rates that are not configured are learned
		}
	}
	f := &fleet{
		router: router.New(index.New(m.BlockSize, nil), ropt), engines: make(map[index.WorkerID]*engine), idle: idle, log: o.Logger,
		patience: o.QueueTimeout, retries: maxRetryBudget,
	}
	for _, e := range m.Engines {
		if err := f.add(&e, rt); err != nil {
			f.close()
			return nil, err
		}
	}
	for id, e := range f.engines {
		trusts[id] = &e.trust
	}
	return f, nil
}

// add adds an engine.
func (f *fleet) add(e *Engine, rt http.RoundTripper) error {
	base := strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v1")
	switch {
	case !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://"):
		return fmt.Errorf("engine %q: invalid URL %q: want http:// or https://", e.Name, e.URL)
	case e.MaxRequests < 0:
		return fmt.Errorf("engine %q: MaxRequests must not be negative (got %d)", e.Name, e.MaxRequests)
	case e.Blocks < 0:
		return fmt.Errorf("engine %q: Blocks must not be negative (got %d)", e.Name, e.Blocks)
	}
	kind, hints := e.Kind, e.Hints
	if kind == nil {
		kind = upstream.Embedded{}
	}
	if dialect := kind.Traits().Hints; hints == nil && dialect != "" {
		var err error
		if hints, err = intent.NewTarget(dialect, ""); err != nil {
			return err
		}
	}
	name := cmp.Or(e.Name, base)
	id, err := f.router.AddWorker(index.Key{Instance: name}, policy.Both, newEngine(e))
	if err != nil {
		return err
	}
	f.router.Update(id, time.Now(), func(w *policy.Worker) { w.Adapters = e.Adapters })
	en := &engine{id: id, name: name, url: base, apiKey: e.APIKey, model: e.Model, hints: hints, kind: kind, adapters: e.Adapters, client: newClient(rt), claims: newClaims(kind.Traits().Close, hints)}
	if u, err := url.Parse(base); err == nil {
		en.host = u.Hostname()
	}
	en.check, en.asking, en.checked = e.Check, make(slots, 1), time.Now()
	if e.Unchecked {
		en.doubts.Add(1)
	}
	f.engines[id], f.order = en, append(f.order, en)
	en.newStream = func() *index.Stream { return newStream(f.router.Index(), en, e, f.log.With("engine", name)) }
	events, path := e.Events, kind.Traits().Events
	if en.stream = en.newStream(); events == nil && path == "" {
		return nil
	}
	if events == nil {
		events = func(s *index.Stream) (func(), error) { return f.poll(en, path, s), nil }
	}
	en.follow = func() (err error) {
		if en.cancel, err = events(en.stream); err != nil {
			return fmt.Errorf("engine %q: events: %w", name, err)
		}
		return nil
	}
	return en.follow()
}

// hasAdapter reports whether an engine has an adapter.
func (f *fleet) hasAdapter(name string) bool {
	return slices.ContainsFunc(f.order, func(e *engine) bool { return slices.Contains(e.adapters, name) })
}

// without returns the engines that do not have an adapter.
func (f *fleet) without(adapter string) (ids []index.WorkerID) {
	for _, e := range f.order {
		if !slices.Contains(e.adapters, adapter) {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// newClient returns an HTTP client that follows no redirects, because it would send the prompt and the key along.
func newClient(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (f *fleet) close() {
	for _, e := range f.order {
		if e.cancel != nil {
			e.cancel()
		}
	}
	f.idle()
}

// A placement is a request that was placed on an engine.
type placement struct {
	engine *engine
	ticket *router.Ticket
	took   time.Duration // for the router to look for an engine
}

var (
	errQueueFull = errors.New("serve: too many requests wait for an engine")
	errQueueWait = errors.New("serve: no engine had room in time")
)

// place chooses an engine, except those in req.Exclude. If they all have as many requests as they may, it waits for
// Options.QueueTimeout.
func (f *fleet) place(ctx context.Context, req *router.Request) (*placement, error) {
	begun := time.Now()
	t, err := f.router.Offer(req, begun)
	return f.await(ctx, t, err, time.Since(begun))
}

// replace is like place, for a request that was placed and is preempted.
func (f *fleet) replace(ctx context.Context, t *router.Ticket, req *router.Request) (*placement, error) {
	begun := time.Now()
	err := t.Requeue(req, begun)
	return f.await(ctx, t, err, time.Since(begun))
}

// await waits until a request is placed, unless the router has returned an error. took is the time that it has taken.
func (f *fleet) await(ctx context.Context, t *router.Ticket, err error, took time.Duration) (*placement, error) {
	if err == nil && t.Decision() == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, f.patience, busy(errQueueWait))
		defer cancel()
		err = t.Wait(ctx)
	}
	switch {
	case errors.Is(err, router.ErrQueueFull):
		return nil, busy(errQueueFull)
	case errors.As(err, new(*router.Error)):
		return nil, busy(err)
	case err != nil:
		return nil, err
	}
	return f.placed(t, took), nil
}

// placeNow is like place, but does not wait, and returns nil if all engines are ejected.
func (f *fleet) placeNow(req *router.Request) *placement {
	if !f.ready() {
		return nil
	}
	begun := time.Now()
	t, err := f.router.Offer(req, begun)
	switch {
	case err != nil:
		return nil
	case t.Decision() == nil:
		t.Cancel(begun)
		return nil
	}
	return f.placed(t, time.Since(begun))
}

func (f *fleet) placed(t *router.Ticket, took time.Duration) *placement {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retries = min(maxRetryBudget, f.retries+retriesPerRequest)
	return &placement{engine: f.engines[t.Decision().Worker], ticket: t, took: took}
}

// slots returns the number of requests that all engines together may have at the same time.
func (f *fleet) slots() (n int) {
	for _, w := range f.router.Workers() {
		n += w.Engine.Slots
	}
	return n
}

// enlist tells the router which engines take requests: those that are not ejected, or, if all are, those that do not
// contradict the configuration. f.mu must be held.
func (f *fleet) enlist() {
	all := !slices.ContainsFunc(f.order, func(e *engine) bool { return !e.ejected })
	now := time.Now()
	for _, e := range f.order {
		down := ""
		if e.ejected && !all || e.contradiction != nil {
			down = "down: " + e.why
		}
		f.router.Update(e.id, now, func(w *policy.Worker) { w.Down = down })
	}
}

const (
	// retriesPerRequest and maxRetryBudget limit the retries of all requests together: one for ten requests, and ten more
	// after a time without. A fleet that fails as a whole is not loaded with retries.
	retriesPerRequest = 0.1
	maxRetryBudget    = 10
)

// retry reports whether the budget permits a retry, and takes it from the budget.
func (f *fleet) retry() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.retries < 1 {
		return false
	}
	f.retries--
	return true
}

// newEngine returns what the router needs to know of an engine.
func newEngine(e *Engine) *router.Engine {
	r := &router.Engine{Slots: cmp.Or(e.MaxRequests, defaultMost), Capacity: e.Blocks}
	if e.PrefillPerSecond > 0 {
		r.Prefill = 1000 / e.PrefillPerSecond
	}
	return r
}
