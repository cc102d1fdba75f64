// SPDX-License-Identifier: Apache-2.0

// Command demo plays a coding agent's work through all modules, on loopback and without a model: two embedded engines, the
// gateway, and a small client for each of the three APIs.
//
//	go run ./examples/demo
//
// The bytes on the wire, prompts, tokens, prefix caches, routing, parsing and the tools, which read and change a repository in
// memory, are real. The output of the model is scripted, as raw text of a model family. Times are modeled, on a clock that runs
// faster than the real one.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/tokenizers/mini"
	"github.com/weft-go/weft/tokenizers/prompt"
)

//go:embed prompt.txt
var systemPrompt string

const usage = `
usage: demo [-v] [-speed N]

Demo plays a coding agent's work through two embedded engines, the gateway and a small client for each of three APIs. It
does not read stdin. It prints to stdout what a stripped header and early dispatch save, then each conversation.

Example:
  go run ./examples/demo -v
`

// timing models a mid-size model on one GPU.
var timing = vllm.Timing{Base: 30 * time.Millisecond, PrefillPerSecond: 4000, DecodePerToken: 15 * time.Millisecond}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cli.Exit("demo", command(ctx, os.Args[1:], os.Stdout, isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == ""))
}

// command runs the program.
func command(ctx context.Context, args []string, stdout io.Writer, color bool) error {
	flags := cli.NewFlags("demo", usage, stdout)
	speed := flags.Float64("speed", 10, "modeled seconds per real second")
	verbose := flags.Bool("v", false, "print everything that arrived, with its time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return cli.Usagef("unexpected argument %q", flags.Arg(0))
	}
	if !(*speed > 0) {
		return cli.Usagef("-speed %v: want more than 0", *speed)
	}
	return run(ctx, newPrinter(stdout, color, *verbose), *speed)
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// run plays the three conversations, then the third again with and without the billing header, and prints the results before
// the conversations.
func run(ctx context.Context, p *printer, speed float64) error {
	clock := clock{speed: speed}
	p.title()
	s, err := start(speed, true)
	if err != nil {
		return err
	}
	defer s.stop()
	var sum ledger
	turns := make([][]*turn, len(stories))
	for i, st := range stories {
		p.begin("/v1/" + path(st.api))
		err := s.play(ctx, clock, st, &sum, func(t *turn) {
			turns[i] = append(turns[i], t)
			p.progress()
		})
		if err != nil {
			return fmt.Errorf("%s: %w", st.api, err)
		}
		p.end()
	}

	// The same conversation, alone on fresh engines: as Claude Code sends it, and without the volatile block. Modeled times do not
	// depend on the clock here, so it does not wait.
	var kept, stripped ledger
	p.begin("the last again, twice")
	for _, l := range []*ledger{&kept, &stripped} {
		s, err := start(math.Inf(1), l == &stripped)
		if err != nil {
			return err
		}
		err = s.play(ctx, clockOff, stories[len(stories)-1], l, func(*turn) { p.progress() })
		s.stop()
		if err != nil {
			return err
		}
	}
	p.end()

	p.results(&kept, &stripped, &sum)
	for i, st := range stories {
		p.story(st)
		for _, t := range turns[i] {
			p.turn(t)
		}
	}
	p.terms(speed)
	p.next()
	return p.err
}

// clockOff is a clock that does not wait.
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
	prompts, err := prompt.Load(mini.FS(), nil)
	if err != nil {
		return nil, err
	}
	opt := serve.Options{
		Model: "demo", Prompts: prompts, StripPreamble: strip, ToolDispatch: true,
		OnDone: func(r serve.Record) { s.mu.Lock(); s.records[r.RequestID] = r; s.mu.Unlock() },
	}
	for _, name := range []string{"ada", "bob"} {
		e := vllm.New(prompts.Tokenizer(), &vllm.Options{
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
		server.Serve(l) // returns ErrServerClosed after stop
	}()
	s.close = append(s.close, func() { server.Close(); <-done })
	return "http://" + l.Addr().String(), nil
}

// stop stops the gateway, then the engines.
func (s *stack) stop() {
	for i := len(s.close) - 1; i >= 0; i-- {
		s.close[i]()
	}
	s.close = nil
}

// cost returns the reports of engine and gateway about a request, which may arrive a moment after the client has its end.
func (s *stack) cost(ctx context.Context, id string) (vllm.Report, serve.Record, error) {
	for {
		s.mu.Lock()
		rec, ok := s.records[id]
		rep, ok2 := s.reports[rec.EngineRequestID]
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
