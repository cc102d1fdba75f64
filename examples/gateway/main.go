// SPDX-License-Identifier: Apache-2.0

// Command gateway serves the Chat Completions, Responses and Messages APIs in front of engines with vLLM's
// /v1/completions.
//
//	go run ./examples/gateway -model m -engine embedded=local -engine embedded=local -tool-call-parser hermes
//	go run ./examples/gateway -model Qwen/Qwen3-8B -model-dir ~/qwen3 -engine vllm=http://gpu1:8000 -engine vllm=http://gpu2:8000
//	go run ./examples/gateway -config gateway.yaml
//
// Package serve implements the handler. Run the command with -h for the kinds of engines, the flags and the environment
// variables.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/protocols/replay"
	placement "github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/tokenizers/prompt"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cli.Exit("gateway", run(ctx, os.Args[1:], os.Stdout, log, nil))
}

// run serves until ctx ends. If ready is not nil, run calls it with its address once it listens.
func run(ctx context.Context, args []string, stdout io.Writer, log *slog.Logger, ready func(addr string)) error {
	c, err := parse(args, stdout)
	if err != nil {
		return err
	}
	models, err := records(c.Models)
	if err != nil {
		return err
	}
	for _, m := range models {
		if m.ID == c.Model { // embedded engines get the same limit
			c.MaxModelLen = cmp.Or(c.MaxModelLen, int(min(m.ContextWindow, math.MaxInt)))
		}
	}
	prompts, err := model(c, log)
	if err != nil {
		return err
	}
	policy, err := c.Policy.policy()
	if err != nil {
		return err
	}
	policies, tenant, err := tenants(c)
	if err != nil {
		return err
	}
	proof, err := signer(os.Getenv("WEFT_REASONING_KEY"))
	if err != nil {
		return err
	}
	opt := serve.Options{
		Model: c.Model, Aliases: c.Aliases, Models: models, Prompts: prompts,
		MaxModelLen: c.MaxModelLen, MaxChoices: c.MaxChoices, BlockSize: c.BlockSize, MemoBytes: c.MemoMB << 20,
		StripPreamble: c.StripPreamble, ToolDispatch: c.ToolDispatch, ReasoningDispatch: c.ReasoningDispatch, CallsInReasoning: c.CallsInReasoning,
		Relocate: c.Relocate, SortTools: c.SortTools,
		Policy: policy, Policies: policies, Tenant: tenant, PriorityIs: c.PriorityIs, Signer: proof,
		KeepAlive: time.Duration(c.KeepAlive * float64(time.Second)), Logger: log,
	}
	if c.Placement != "" {
		if opt.Placement, err = placement.Named(c.Placement); err != nil {
			return err
		}
	}
	for i, e := range c.Engines {
		name := e.Name
		if name == "" {
			name = fmt.Sprintf("%s-%d", e.Kind, i)
		}
		hints, err := e.hints()
		if err != nil {
			return fmt.Errorf("config: engine %q: %w", name, err)
		}
		switch {
		case e.Kind == "vllm":
			to := serve.Engine{Name: name, URL: e.URL, APIKey: os.Getenv("VLLM_API_KEY"), Hints: hints}
			if err := e.follow(&to, log); err != nil {
				return fmt.Errorf("config: engine %q: %w", name, err)
			}
			opt.Engines = append(opt.Engines, to)
		case e.Kind == "embedded" && e.URL == "local":
			local := vllm.New(prompts.Tokenizer(), &vllm.Options{Model: c.Model, BlockSize: c.BlockSize, MaxModelLen: prompts.Window()})
			url, stop, err := listen("127.0.0.1:0", local)
			if err != nil {
				return err
			}
			defer stop()
			defer local.Close()
			opt.Engines = append(opt.Engines, serve.Engine{Name: name, URL: url, Events: local.Events, Hints: hints})
		case e.Kind == "embedded":
			opt.Engines = append(opt.Engines, serve.Engine{Name: name, URL: e.URL, Events: vllm.Follow(e.URL, log), Hints: hints})
		default:
			return cli.OneOf("engine kind", e.Kind, "vllm", "embedded")
		}
	}
	g, err := serve.New(&opt)
	if err != nil {
		return err
	}
	defer g.Close()
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() {
		g.Close() // ends running requests, so that Shutdown does not wait
		s.Shutdown(context.WithoutCancel(ctx))
	})()
	log.Info("gateway listening", "address", l.Addr().String(), "model", c.Model, "engines", len(opt.Engines))
	if ready != nil {
		ready(l.Addr().String())
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// model loads the model from the directory of -model-dir, or the small tokenizer of this repository.
func model(c *config, log *slog.Logger) (*prompt.Model, error) {
	dir := cmp.Or(c.ModelDir, "mini")
	files, err := cli.Model("model-dir", dir)
	if err != nil {
		return nil, err
	}
	rule, err := pastReasoning(c.PastReasoning)
	if err != nil {
		return nil, err
	}
	family, opt := c.ToolCallParser, &prompt.Options{Name: c.Model, Window: c.MaxModelLen, KeepEmpty: c.KeepEmpty, Replay: rule}
	if family != "" && c.ReasoningParser != "" {
		family += "+" + c.ReasoningParser
	}
	opt.Family = family
	m, err := prompt.Load(files, opt)
	if err == nil && family == "" && c.ReasoningParser != "" {
		m, err = m.WithFamily(m.Family() + "+" + c.ReasoningParser)
	}
	switch {
	case err != nil:
		return nil, cli.InModel(dir, err)
	case m.Family() == "":
		return nil, cli.Usagef("cannot infer the parser family of the model: set -tool-call-parser to one that parse -families lists")
	}
	log.Info("model loaded", "template", m.Source(), "family", m.Family(), "inferred", c.ToolCallParser == "", "window", m.Window())
	return m, nil
}

// pastReasoning returns the rule of -past-reasoning.
func pastReasoning(text string) (replay.Rule, error) {
	if text == "template" {
		return replay.Rule{}, nil
	}
	rule, err := replay.ParseRule(cmp.Or(text, "widest"))
	if err != nil {
		return replay.Rule{}, cli.Usagef("-past-reasoning: %v", err)
	}
	return rule, nil
}

// listen serves h on addr. The caller must call stop.
func listen(addr string, h http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l) // returns ErrServerClosed after stop
	}()
	return "http://" + l.Addr().String(), func() { s.Close(); <-done }, nil
}
