// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/kvhash/kvevent"
	"github.com/weft-go/weft/router/policy"
)

// This file reads the cache events of engines that hand them out on request, each only once.

const (
	// pollPause is the time between two reads. It doubles with each failure, up to maxPollPause.
	pollPause    = 500 * time.Millisecond
	maxPollPause = time.Minute
	pollTimeout  = time.Minute
	// maxEmpty is the number of empty reads, of an engine that has requests, after which it is no longer asked.
	maxEmpty = 10
	// maxPolled limits the response to a read, in bytes.
	maxPolled = 256 << 20
)

// A poller reads the events of an engine into a stream. Only an engine that is in service and has requests of this gateway, or
// had some since the last read, is asked: TensorRT-LLM waits up to 2 seconds for an event, in some versions without serving
// other requests meanwhile. Events that are lost are not sent again, so the worker is then Degraded.
type poller struct {
	fleet  *fleet
	engine *engine
	url    string
	stream *index.Stream
	dec    *kvevent.Decoder
	log    *slog.Logger

	batches []kvevent.Batch
	size    int // of the engine's blocks, in tokens; 0 means unknown
}

// poll starts a poller, which cancel ends.
func (f *fleet) poll(e *engine, path string, s *index.Stream) (cancel func()) {
	p := &poller{
		fleet: f, engine: e, url: e.url + path, stream: s, log: f.log.With("engine", e.name),
		dec: kvevent.NewDecoder(kvevent.TensorRTLLM, &kvevent.DecoderOptions{BlockSize: f.router.Index().BlockSize()}),
	}
	e.silent.Store(true)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run(ctx)
	}()
	return func() { stop(); <-done }
}

// run reads until ctx ends, or until the engine's blocks turn out to have another size than the index's.
func (p *poller) run(ctx context.Context) {
	pause, due, last := pollPause, true, uint64(0) // the engine may have events from before
	empty := 0                                     // reads without events before there were any
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		w, out := p.state()
		if out {
			empty = 0
			continue
		}
		busy := w.Load.Prefills+w.Load.Decodes > 0 || w.Last != last
		if empty == maxEmpty || !busy && !due {
			continue
		}
		due, last = busy, w.Last // a request stores its last blocks when it ends
		n, err := p.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case p.size != 0 && p.size != p.fleet.router.Index().BlockSize():
			p.log.Error("the cache events are ignored: the engine's block size differs", "block_size", p.fleet.router.Index().BlockSize(), "engine_block_size", p.size)
			p.stream.Reset("the engine's block size differs")
			return
		case errors.As(err, new(*kvevent.DecodeError)): // the worker is Degraded
			p.log.Warn("invalid cache events", "err", err)
		case err != nil:
			if pause == pollPause {
				p.log.Warn("no cache events from the engine", "err", err)
			}
			p.stream.Suspect("its cache events could not be read")
			pause, due = min(2*pause, maxPollPause), true
			continue
		case n > 0: // their numbers tell whether some are missing
			p.stream.Suspect("")
			p.engine.silent.Store(false)
		case p.engine.silent.Load() && w.Last > 0:
			if empty++; empty == maxEmpty {
				p.log.Warn("no cache events from the engine", "err", "it returned none")
			}
		}
		pause, due = pollPause, due || n > 0
	}
}

// state returns the engine as the router knows it, and whether it is out of service.
func (p *poller) state() (w policy.Worker, out bool) {
	list := p.fleet.router.Workers()
	w = list[slices.IndexFunc(list, func(w policy.Worker) bool { return w.ID == p.engine.id })] // engines are never removed
	p.fleet.mu.Lock()
	defer p.fleet.mu.Unlock()
	return w, p.engine.ejected || p.engine.contradiction != nil
}

// read reads the events since the last read and returns their number.
func (p *poller) read(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, nil)
	if err != nil {
		return 0, err
	}
	p.engine.authorize(r)
	resp, err := p.engine.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		io.CopyN(io.Discard, resp.Body, maxDrain) // after an error, the connection is not reused
		return 0, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPolled+1))
	switch {
	case err != nil:
		return 0, err
	case len(body) > maxPolled:
		return 0, errors.New("response too long")
	}
	if p.size == 0 {
		p.size = blockSize(body)
	}
	p.batches, err = p.dec.Append(p.batches[:0], body)
	for _, b := range p.batches {
		p.stream.Add(b)
		p.stream.Skip() // nothing brings back those that are missing
	}
	return len(p.batches), err
}

// blockSize returns the tokens of a block that another one follows, or 0: the last one may be incomplete.
func blockSize(body []byte) int {
	var events []struct {
		Data struct {
			Blocks []struct{ Tokens []json.RawMessage }
		}
	}
	json.Unmarshal(body, &events) // the decoder reports errors
	for _, ev := range events {
		if len(ev.Data.Blocks) > 1 {
			return len(ev.Data.Blocks[0].Tokens)
		}
	}
	return 0
}
