// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"sync"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
)

// This file ejects engines that fail and readmits them.
//
//	passive    an engine is ejected if it cannot be reached, if failedInRow requests in a row fail, or failedOf of the last
//	           recent requests
//	active     an engine is ejected if missedProbes probes of its /health fail in a row
//	readmitted if, after a pause, a probe succeeds and the engine is the one of the configuration (see identity.go). The pause
//	           doubles with each ejection, until recent requests succeed in a row
//
// Only failures of the engine count. Invalid requests, overload and clients that disconnect do not.

const (
	failedInRow  = 3
	recent       = 20 // at most 32
	failedOf     = 10
	missedProbes = 2

	minPause     = 2 * time.Second
	maxPause     = time.Minute
	probeTimeout = 5 * time.Second
	maxDrain     = 4 << 10 // bytes that are read of the response to a probe, so that its connection can be used again
)

// health is the state of an engine. fleet.mu guards it.
type health struct {
	results uint32 // of the last requests, the last one lowest; 1 is a failure
	missed  int    // probes in a row
	ejected bool
	why     string    // reason of the ejection
	until   time.Time // no probe before
	pause   time.Duration
}

// succeeded records that an engine completed a request.
func (f *fleet) succeeded(e *engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.results <<= 1
	if e.results&(1<<recent-1) == 0 && !e.ejected {
		e.pause = 0
	}
}

// failed records that an engine failed a request. If it could not be reached, it is ejected at once.
func (f *fleet) failed(e *engine, err error, unreachable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.doubts.Add(1)
	e.results = e.results<<1 | 1
	inRow := bits.TrailingZeros32(^e.results)
	if unreachable || inRow >= failedInRow || bits.OnesCount32(e.results&(1<<recent-1)) >= failedOf {
		f.eject(e, err.Error())
	}
}

// eject takes an engine out of rotation. f.mu must be held.
func (f *fleet) eject(e *engine, why string) {
	if e.ejected {
		return
	}
	e.pause = min(max(2*e.pause, minPause), maxPause)
	e.ejected, e.why, e.until = true, why, time.Now().Add(e.pause)
	f.enlist()
	if e.follow == nil || e.silent.Load() { // nothing else tells that its cache is empty, if it was restarted
		e.stream.Reset("the engine was ejected")
	}
	f.log.Warn("engine ejected", "engine", e.name, "why", why, "pause", e.pause)
}

// probed records the result of a probe.
func (f *fleet) probed(e *engine, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil && e.ejected:
		e.until = time.Now().Add(e.pause)
	case err != nil:
		e.doubts.Add(1)
		if e.missed++; e.missed >= missedProbes {
			f.eject(e, err.Error())
		}
	case e.ejected && !time.Now().Before(e.until):
		// One failure ejects the engine again.
		e.ejected, e.why, e.missed, e.results = false, "", 0, 1<<(failedInRow-1)-1
		f.enlist()
		f.log.Info("engine readmitted", "engine", e.name)
	case !e.ejected:
		e.missed = 0
	}
}

// due reports whether a probe of an engine can change its state. Managed endpoints, which belong to others, are not probed
// while they work.
func (f *fleet) due(e *engine) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !e.ejected {
		_, managed := e.kind.(upstream.Managed)
		return !managed
	}
	return !time.Now().Before(e.until)
}

// ready reports whether an engine is not ejected.
func (f *fleet) ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.order {
		if !e.ejected {
			return true
		}
	}
	return false
}

// watch probes all engines at intervals until ctx ends.
func (f *fleet) watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var wg sync.WaitGroup
		for _, e := range f.order {
			if f.due(e) {
				wg.Go(func() {
					f.renew(e)
					err := e.probe(ctx)
					if err == nil {
						err = f.verify(ctx, e, checkInterval)
					}
					if ctx.Err() == nil {
						f.probed(e, err)
					}
				})
			}
		}
		wg.Wait()
	}
}

// probe asks an engine whether it is up. An engine without /health is up if it responds.
func (e *engine) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/health", nil)
	if err != nil {
		return err
	}
	e.authorize(r)
	resp, err := e.client.Do(r)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, maxDrain) // after an error, the connection is not reused
	if resp.StatusCode >= http.StatusInternalServerError && resp.StatusCode != http.StatusNotImplemented {
		return fmt.Errorf("probe: HTTP %d", resp.StatusCode)
	}
	return nil
}
