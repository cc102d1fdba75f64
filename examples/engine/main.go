// SPDX-License-Identifier: Apache-2.0

// Command engine serves the embedded engine of package vllm: vLLM's HTTP API with a real prefix cache and no model.
//
//	go run ./examples/engine -listen 127.0.0.1:8000 -script replies.json
//	curl 127.0.0.1:8000/v1/completions -d '{"prompt":"hello","max_tokens":50,"stream":true}'
//
// The script is a JSON list of {"when": "text in the prompt", "say": "raw model output"}; without one it echoes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/mini"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	var o vllm.Options
	fs := flag.NewFlagSet("engine", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:8000", "`address` to listen on")
	dir := fs.String("model-dir", "", "`folder` with tokenizer.json; empty: the small tokenizer of this repository")
	script := fs.String("script", "", "`file` with replies; empty: echo")
	verbose := fs.Bool("v", false, "log every request")
	fs.StringVar(&o.Model, "model", "embedded", "`name` of the model")
	fs.IntVar(&o.BlockSize, "block-size", 16, "tokens per cache block")
	fs.IntVar(&o.Blocks, "blocks", 8192, "capacity of the cache in blocks")
	fs.IntVar(&o.MaxModelLen, "max-model-len", 131072, "prompt and output tokens per request")
	fs.Float64Var(&o.Timing.PrefillPerSecond, "prefill", 8000, "uncached prompt tokens per second")
	fs.DurationVar(&o.Timing.DecodePerToken, "decode", 20*time.Millisecond, "time per output token")
	fs.DurationVar(&o.Timing.Base, "base", 20*time.Millisecond, "time per request before the prefill")
	fs.Float64Var(&o.Speed, "speed", 1, "modelled time per real time, +Inf: do not wait")
	if err := fs.Parse(args); err != nil {
		return err
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if *script != "" {
		data, err := os.ReadFile(*script)
		if err != nil {
			return err
		}
		var rules []vllm.Rule
		if err := json.Unmarshal(data, &rules); err != nil {
			return fmt.Errorf("%s: %w", *script, err)
		}
		o.Script = vllm.Rules(rules...)
	}
	tok := mini.Load()
	if *dir != "" {
		var err error
		if tok, err = tokenizers.Load(*dir); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	e := vllm.New(tok, &o)
	s := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() {
		e.Close()
		s.Close()
	})()
	o.Logger.Info("embedded engine", "address", l.Addr().String(), "model", o.Model, "blocks", o.Blocks, "block_size", o.BlockSize)
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
