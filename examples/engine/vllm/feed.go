// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file carries the cache's events to another process: GET /kv_events answers with one JSON line per batch, Follow reads
// them. A connection begins with a batch that clears and says what the cache holds, so a reader that lost it just connects
// again. vLLM itself sends its events over ZMQ.

// feedBuffer is how many batches may wait for a reader before its connection is cut.
const feedBuffer = 4096

func (e *Engine) kvEvents(w http.ResponseWriter, r *http.Request) {
	batches := make(chan kvevent.Batch, feedBuffer)
	slow := make(chan struct{})
	overflow := false
	begin := func(held kvevent.Batch) {
		held.Events = append([]kvevent.Event{{Kind: kvevent.Cleared}}, held.Events...)
		batches <- held
	}
	defer e.subscribe(begin, func(b kvevent.Batch) {
		select {
		case batches <- b:
		default:
			if !overflow {
				overflow = true
				close(slow)
			}
		}
	})()
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, rc := json.NewEncoder(w), http.NewResponseController(w)
	for {
		select {
		case b := <-batches:
			if enc.Encode(&b) != nil || len(batches) == 0 && rc.Flush() != nil {
				return
			}
		case <-slow:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// Follow returns a function that subscribes to the events of the engine at url, as [Engine.Events] does in the same process.
// It connects again whenever the connection breaks; until then the cache counts as empty and trust hears that nothing is known.
// fn and trust are called from one goroutine; the returned cancel function waits for it to end. nil log means silent.
func Follow(url string, log *slog.Logger) func(fn func(kvevent.Batch), trust func(t kvevent.Trust, why string)) (cancel func()) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return func(fn func(kvevent.Batch), trust func(kvevent.Trust, string)) (cancel func()) {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
			defer client.CloseIdleConnections()
			pause := minPause
			trust(kvevent.Unknown, "not connected to the engine's events yet")
			for ctx.Err() == nil {
				heard, err := follow(ctx, client, url, fn, trust)
				trust(kvevent.Unknown, "the connection to the engine's events is lost")
				if heard {
					fn(kvevent.Batch{Events: []kvevent.Event{{Kind: kvevent.Cleared}}})
					pause = minPause
				}
				if ctx.Err() == nil {
					log.Warn("no events from the engine", "url", url, "err", err, "again_in", pause)
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
				pause = min(2*pause, maxPause)
			}
		}()
		return func() { stop(); <-done }
	}
}

// The pause between two tries to connect.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// follow reads one connection to its end and reports whether any batch came.
func follow(ctx context.Context, client *http.Client, url string, fn func(kvevent.Batch), trust func(kvevent.Trust, string)) (heard bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/kv_events", nil)
	if err != nil {
		return false, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("HTTP %s", resp.Status)
	}
	dec := json.NewDecoder(resp.Body)
	for {
		var b kvevent.Batch
		if err := dec.Decode(&b); err != nil {
			return heard, err
		}
		fn(b)
		if !heard { // the first batch says what the cache holds
			heard = true
			trust(kvevent.Exact, "")
		}
	}
}
