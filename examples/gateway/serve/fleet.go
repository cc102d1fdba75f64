// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
)

// A fleet holds the engines and their router. It is safe for concurrent use by multiple goroutines.
type fleet struct {
	router  *router.Router
	engines map[index.WorkerID]*engine
	cancels []func()      // cancel event subscriptions
	idle    func()        // closes idle connections
	pause   time.Duration // time for which an unreachable engine gets no requests
}

// An engine is the connection to a worker.
type engine struct {
	id          index.WorkerID
	name        string
	url, apiKey string
	hints       *intent.Target
	client      *http.Client

	mu   sync.Mutex
	down time.Time // time of the last failed connection; zero while the engine is up
}

func newFleet(o *Options) (*fleet, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.DisableCompression = true // compression delays streams
	transport.ReadBufferSize = 16 << 10 // the output of a read leaves in one write
	ropt := &router.Options{FixedRates: true, Policy: o.Placement}
	for _, e := range o.Engines {
		if e.PrefillPerSecond <= 0 {
			ropt.FixedRates = false // rates that nobody specified are learned
		}
		if e.Events == nil {
			ropt.PredictFor = 2 * time.Minute // without events, predictions are not confirmed
		}
	}
	f := &fleet{
		router:  router.New(index.New(o.BlockSize, nil), ropt),
		engines: make(map[index.WorkerID]*engine), idle: transport.CloseIdleConnections, pause: 2 * time.Second,
	}
	for _, e := range o.Engines {
		url := strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v1")
		if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
			f.close()
			return nil, fmt.Errorf("engine %q: invalid URL %q: want http:// or https://", e.Name, e.URL)
		}
		hints := e.Hints
		if hints == nil {
			var err error
			if hints, err = intent.NewTarget("vllm", ""); err != nil {
				f.close()
				return nil, err
			}
		}
		name := cmp.Or(e.Name, url)
		id, err := f.router.AddWorker(index.Key{Instance: name}, policy.Both, rates(e.PrefillPerSecond))
		if err != nil {
			f.close()
			return nil, err
		}
		f.engines[id] = &engine{id: id, name: name, url: url, apiKey: e.APIKey, hints: hints, client: &http.Client{Transport: transport}}
		if e.Events != nil {
			cancel, err := e.Events(newStream(f.router.Index(), id, &e, o.Logger.With("engine", name)))
			if err != nil {
				f.close()
				return nil, fmt.Errorf("engine %q: events: %w", name, err)
			}
			f.cancels = append(f.cancels, cancel)
		}
	}
	return f, nil
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
}

// place chooses an engine, except those in req.Exclude.
func (f *fleet) place(req *router.Request) (*placement, error) {
	now := time.Now()
	for _, e := range f.engines {
		e.mu.Lock()
		if !e.down.IsZero() && now.Sub(e.down) >= f.pause {
			f.revive(e)
		}
		e.mu.Unlock()
	}
	t, err := f.router.Place(req, now)
	if errors.Is(err, router.ErrAllBarred) && len(req.Exclude) == 0 { // retry engines that are down rather than fail
		for _, e := range f.engines {
			e.mu.Lock()
			f.revive(e)
			e.mu.Unlock()
		}
		t, err = f.router.Place(req, now)
	}
	if err != nil {
		e := apierr.Overloaded(0)
		e.Cause = err
		return nil, e
	}
	return &placement{engine: f.engines[t.Decision().Worker], ticket: t}, nil
}

// revive lets the router use the engine again. e.mu must be held.
func (f *fleet) revive(e *engine) {
	e.down = time.Time{}
	f.router.SetHealth(e.id, policy.Healthy, "")
}

func rates(perSecond float64) *router.Engine {
	if perSecond > 0 {
		return &router.Engine{Prefill: 1000 / perSecond}
	}
	return nil
}

// unreachable marks an engine as down for f.pause.
func (f *fleet) unreachable(e *engine, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = time.Now()
	f.router.SetHealth(e.id, policy.Down, err.Error())
}
