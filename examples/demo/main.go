// SPDX-License-Identifier: Apache-2.0

// Command demo plays a coding agent's work through the whole of weft, on loopback and without a model: two embedded engines,
// the gateway in front of them, and a small client for each of the three APIs.
//
//	go run ./examples/demo
//
// Real are: every byte on the wire, rendering, tokens, prefix caches, routing, parsing, and the tools, which read and change a
// repository in memory. Scripted is what the model says, as raw text of a model family. Modelled is the time it takes, on a clock
// that runs faster than the wall's.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/tokenizers/mini"
)

//go:embed prompt.txt
var systemPrompt string

// timing is what the engines pretend to be: a mid-size model on one GPU.
var timing = vllm.Timing{Base: 30 * time.Millisecond, PrefillPerSecond: 4000, DecodePerToken: 15 * time.Millisecond}

func main() {
	speed := flag.Float64("speed", 10, "modelled seconds per real second")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := newPrinter(os.Stdout, isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "")
	if err := run(ctx, p, *speed); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// run plays the three stories, then the third again with the billing header kept, and prints the tables.
func run(ctx context.Context, p *printer, speed float64) error {
	clock := clock{speed: speed}
	p.title(speed)
	s, err := start(speed, true)
	if err != nil {
		return err
	}
	defer s.stop()
	var sum ledger
	for _, st := range stories {
		p.story(st)
		if err := s.play(ctx, clock, st, p, &sum); err != nil {
			return fmt.Errorf("%s: %w", st.api, err)
		}
	}

	// The same conversation, alone on fresh engines: once as Claude Code sends it, once with the volatile block dropped. Nobody
	// watches, so nobody waits: the modelled times do not depend on the clock.
	var kept, stripped ledger
	for _, l := range []*ledger{&kept, &stripped} {
		s, err := start(math.Inf(1), l == &stripped)
		if err != nil {
			return err
		}
		err = s.play(ctx, clockOff, stories[len(stories)-1], nil, l)
		s.stop()
		if err != nil {
			return err
		}
	}
	p.tables(&kept, &stripped, &sum)
	return p.err
}

// clockOff does not wait.
var clockOff = clock{speed: math.Inf(1)}

// A stack is two engines and the gateway, serving on loopback.
type stack struct {
	url   string
	close []func()

	mu      sync.Mutex
	reports map[string]vllm.Report  // by request id
	records map[string]serve.Record // by request id
}

// start starts a stack.
func start(speed float64, strip bool) (_ *stack, err error) {
	s := &stack{reports: make(map[string]vllm.Report), records: make(map[string]serve.Record)}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	tok := mini.Load()
	opt := serve.Options{
		Model: "demo", Tokenizer: tok, StripPreamble: strip, ToolDispatch: true,
		OnDone: func(r serve.Record) { s.mu.Lock(); s.records[r.RequestID] = r; s.mu.Unlock() },
	}
	for _, name := range []string{"ada", "bob"} {
		e := vllm.New(tok, &vllm.Options{
			Model: "demo", Script: script, Timing: timing, Speed: speed,
			OnFinish: func(r vllm.Report) { s.mu.Lock(); s.reports[r.RequestID] = r; s.mu.Unlock() },
		})
		url, err := s.listen(e)
		s.close = append(s.close, e.Close)
		if err != nil {
			return nil, err
		}
		opt.Engines = append(opt.Engines, serve.Engine{Name: name, URL: url, Events: e.Events, PrefillPerSecond: timing.PrefillPerSecond})
	}
	g, err := serve.New(&opt)
	if err != nil {
		return nil, err
	}
	s.url, err = s.listen(g)
	s.close = append(s.close, g.Close)
	return s, err
}

// listen serves h on a free port of loopback.
func (s *stack) listen(h http.Handler) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l) // ends with ErrServerClosed
	}()
	s.close = append(s.close, func() { server.Close(); <-done })
	return "http://" + l.Addr().String(), nil
}

// stop stops everything, the gateway first.
func (s *stack) stop() {
	for i := len(s.close) - 1; i >= 0; i-- {
		s.close[i]()
	}
	s.close = nil
}

// cost returns what engine and gateway say about a request. Both tell at its end, perhaps a moment after the client has seen it.
func (s *stack) cost(ctx context.Context, id string) (vllm.Report, serve.Record, error) {
	for {
		s.mu.Lock()
		rep, ok := s.reports[id]
		rec, ok2 := s.records[id]
		s.mu.Unlock()
		if ok && ok2 {
			return rep, rec, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return rep, rec, context.Cause(ctx)
		}
	}
}
