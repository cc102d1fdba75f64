// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
)

// This file sends the cache's events to other processes: GET /kv_events returns one JSON line per batch, and Follow
// reads them. A connection begins with a batch that clears the cache and stores its content again, so a reader can
// reconnect at any time. vLLM sends its events over ZMQ.

// feedBuffer is the number of batches that may wait for a reader before its connection is closed.
const feedBuffer = 4096

func (e *Engine) kvEvents(w http.ResponseWriter, r *http.Request) {
	batches := make(chan kvevent.Batch, feedBuffer)
	slow := make(chan struct{})
	overflow := false
	defer e.subscribe(func(b kvevent.Batch) {
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

// Follow returns a function that adds the events of the engine at url to a stream, as [Engine.Events] does in the same
// process. It reconnects after a lost connection; until then the worker is Unknown and empty. One goroutine uses the
// stream; the returned cancel function waits for it to end. The error is nil. If log is nil, nothing is logged.
func Follow(url string, log *slog.Logger) func(*index.Stream) (cancel func(), err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return func(s *index.Stream) (cancel func(), err error) {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
			defer client.CloseIdleConnections()
			pause := minPause
			s.Reset("not connected to the engine's events yet")
			for ctx.Err() == nil {
				received, err := follow(ctx, client, url, s)
				if received {
					s.Reset("the connection to the engine's events is lost")
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
		return func() { stop(); <-done }, nil
	}
}

// Pause between attempts to connect.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// follow reads one connection to its end and reports whether it received a batch.
func follow(ctx context.Context, client *http.Client, url string, s *index.Stream) (received bool, err error) {
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
			return received, err
		}
		s.Add(b)
		received = true
	}
}
