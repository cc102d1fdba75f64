// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// A fleet holds the engines and their router. It is safe for concurrent use by multiple goroutines.
//
// A request waits if all engines that could serve it have as many requests as they may. Requests are placed in the order
// of their arrival. An engine that fails is ejected: it gets no requests until a probe succeeds; see health.go. If all
// engines are ejected, requests are placed on them nevertheless.
type fleet struct {
	router   *router.Router
	engines  map[index.WorkerID]*engine
	order    []*engine // as in Options
	cancels  []func()  // cancel event subscriptions
	idle     func()    // closes idle connections
	log      *slog.Logger
	queue    int           // maximum number of waiting requests
	patience time.Duration // time for which a request waits

	mu      sync.Mutex // also serializes changes of health with decisions
	waiting []chan struct{}
	retries float64 // budget; see retry
}

// An engine is the connection to a worker.
type engine struct {
	id          index.WorkerID
	name        string
	url, apiKey string
	hints       *intent.Target
	client      *http.Client
	most        int // requests at the same time
	constraints bool

	running int // under fleet.mu
	health      // under fleet.mu
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
		rt, idle = transport, transport.CloseIdleConnections
	}
	ropt := &router.Options{FixedRates: true, Policy: m.Placement}
	for _, e := range m.Engines {
		if e.PrefillPerSecond <= 0 {
			ropt.FixedRates = false // rates that are not configured are learned
		}
		if e.Events == nil {
			ropt.PredictFor = 2 * time.Minute // without events, predictions are not confirmed
		}
	}
	f := &fleet{
		router: router.New(index.New(m.BlockSize, nil), ropt), engines: make(map[index.WorkerID]*engine), idle: idle, log: o.Logger,
		queue: o.MaxQueue, patience: o.QueueTimeout, retries: maxRetryBudget,
	}
	for _, e := range m.Engines {
		if err := f.add(&e, rt); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// add adds an engine.
func (f *fleet) add(e *Engine, rt http.RoundTripper) error {
	url := strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v1")
	switch {
	case !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://"):
		return fmt.Errorf("engine %q: invalid URL %q: want http:// or https://", e.Name, e.URL)
	case e.MaxRequests < 0:
		return fmt.Errorf("engine %q: MaxRequests must not be negative (got %d)", e.Name, e.MaxRequests)
	}
	hints := e.Hints
	if hints == nil {
		var err error
		if hints, err = intent.NewTarget("vllm", ""); err != nil {
			return err
		}
	}
	name := cmp.Or(e.Name, url)
	id, err := f.router.AddWorker(index.Key{Instance: name}, policy.Both, rates(e.PrefillPerSecond))
	if err != nil {
		return err
	}
	en := &engine{id: id, name: name, url: url, apiKey: e.APIKey, hints: hints, most: cmp.Or(e.MaxRequests, defaultMost), constraints: e.Constraints, client: newClient(rt)}
	f.engines[id], f.order = en, append(f.order, en)
	if e.Events != nil {
		cancel, err := e.Events(newStream(f.router.Index(), id, e, f.log.With("engine", name)))
		if err != nil {
			return fmt.Errorf("engine %q: events: %w", name, err)
		}
		f.cancels = append(f.cancels, cancel)
	}
	return nil
}

// newClient returns an HTTP client that follows no redirects, because it would send the prompt and the key along.
func newClient(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (f *fleet) close() {
	for _, cancel := range f.cancels {
		cancel()
	}
	f.idle()
}

// A placement is a request that was placed on an engine.
type placement struct {
	engine *engine
	ticket *router.Ticket
	took   time.Duration // for the router
	fleet  *fleet
	once   sync.Once
}

// leave makes room for another request on the engine.
func (p *placement) leave() {
	p.once.Do(func() {
		p.fleet.mu.Lock()
		defer p.fleet.mu.Unlock()
		p.engine.running--
		p.fleet.wake()
	})
}

var (
	errQueueFull = errors.New("serve: too many requests wait for an engine")
	errQueueWait = errors.New("serve: no engine had room in time")
)

// place chooses an engine, except those in req.Exclude. If they all have as many requests as they may, it waits for
// Options.QueueTimeout.
func (f *fleet) place(ctx context.Context, req *router.Request) (*placement, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		if p, err := f.try(req); p != nil || err != nil {
			return p, err
		}
	}
	if len(f.waiting) >= f.queue {
		return nil, busy(errQueueFull)
	}
	turn := make(chan struct{}, 1)
	f.waiting = append(f.waiting, turn)
	defer func() { // mu is held
		f.waiting = slices.DeleteFunc(f.waiting, func(c chan struct{}) bool { return c == turn })
		f.wake() // the next one may have room too, or this one was woken and has left
	}()
	late := time.NewTimer(f.patience)
	defer late.Stop()
	for {
		f.mu.Unlock()
		var err error
		select {
		case <-turn:
		case <-late.C:
			err = busy(errQueueWait)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		f.mu.Lock()
		if err != nil {
			return nil, err
		}
		if f.waiting[0] != turn { // it was woken as the first
			continue
		}
		if p, err := f.try(req); p != nil || err != nil {
			return p, err
		}
	}
}

// wake wakes the first waiting request. f.mu must be held.
func (f *fleet) wake() {
	if len(f.waiting) > 0 {
		select {
		case f.waiting[0] <- struct{}{}:
		default:
		}
	}
}

// tryNow is like place, but does not wait.
func (f *fleet) tryNow(req *router.Request) *placement {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, _ := f.try(req)
	return p
}

// try places a request. It returns nil if there is no room for it now. f.mu must be held.
func (f *fleet) try(req *router.Request) (*placement, error) {
	now := time.Now()
	all, full := req.Exclude, 0
	for _, e := range f.order {
		if e.running >= e.most && !slices.Contains(all, e.id) {
			req.Exclude = append(slices.Clip(req.Exclude), e.id)
			full++
		}
	}
	defer func() { req.Exclude = all }()
	t, err := f.router.Place(req, now)
	if errors.Is(err, router.ErrAllBarred) && len(all) == 0 && full == 0 { // use engines that are ejected rather than none
		for _, e := range f.order {
			f.router.SetHealth(e.id, policy.Healthy, "")
		}
		t, err = f.router.Place(req, now)
		for _, e := range f.order {
			if e.ejected {
				f.router.SetHealth(e.id, policy.Down, e.why)
			}
		}
	}
	switch {
	case err != nil && full > 0:
		return nil, nil
	case err != nil:
		return nil, busy(err)
	}
	e := f.engines[t.Decision().Worker]
	e.running++
	f.retries = min(maxRetryBudget, f.retries+retriesPerRequest)
	return &placement{engine: e, ticket: t, took: time.Since(now), fleet: f}, nil
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

func rates(perSecond float64) *router.Engine {
	if perSecond > 0 {
		return &router.Engine{Prefill: 1000 / perSecond}
	}
	return nil
}
