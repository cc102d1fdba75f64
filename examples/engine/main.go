// SPDX-License-Identifier: Apache-2.0

// Command engine serves the embedded engine of package vllm: vLLM's HTTP API with a real prefix cache and no model.
//
//	go run ./examples/engine -h
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/tokenizers"
)

const usage = `
usage: engine [-listen ADDRESS] [-script FILE] [flags]

Engine serves vLLM's HTTP API with a real prefix cache and no model until it is interrupted. It does not read stdin; it
logs to stderr.

The script is a JSON list of {"when": "text in the prompt", "say": "raw model output"}; the entry whose text occurs last in
the prompt is used. Without a script, or such an entry, the engine repeats the last message of the user.

Example:
  engine -listen 127.0.0.1:8000 &
  curl 127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' -d '{"prompt":"hello","max_tokens":50,"stream":true}'
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cli.Exit("engine", run(ctx, os.Args[1:], os.Stdout))
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	var o vllm.Options
	fs := cli.NewFlags("engine", usage, stdout)
	listen := fs.String("listen", "127.0.0.1:8000", "`address` to listen on")
	dir := fs.String("model-dir", "mini", "`directory` with tokenizer.json, or mini for the small tokenizer of this repository")
	script := fs.String("script", "", "`file` with replies; without it the engine repeats the last message")
	verbose := fs.Bool("v", false, "log every request")
	fs.StringVar(&o.Model, "model", "embedded", "`name` of the model")
	fs.IntVar(&o.BlockSize, "block-size", 16, "tokens per cache block")
	fs.IntVar(&o.Blocks, "blocks", 8192, "capacity of the cache in blocks")
	fs.IntVar(&o.MaxModelLen, "max-model-len", 131072, "prompt and output tokens per request")
	fs.Float64Var(&o.Timing.PrefillPerSecond, "prefill", 8000, "uncached prompt tokens per second")
	fs.DurationVar(&o.Timing.DecodePerToken, "decode", 20*time.Millisecond, "time per output token")
	fs.DurationVar(&o.Timing.Base, "base", 20*time.Millisecond, "time per request before the prefill")
	fs.Float64Var(&o.Speed, "speed", 1, "modeled time per real time; +Inf does not wait")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return cli.Usagef("unexpected argument %q", fs.Arg(0))
	}
	for _, f := range []struct {
		name  string
		valid bool // false for NaN
		want  string
	}{
		{"block-size", o.BlockSize > 0, "at least 1"},
		{"blocks", o.Blocks > 0, "at least 1"},
		{"max-model-len", o.MaxModelLen > 0, "at least 1"},
		{"prefill", o.Timing.PrefillPerSecond > 0, "more than 0"},
		{"decode", o.Timing.DecodePerToken > 0, "more than 0"},
		{"base", o.Timing.Base >= 0, "at least 0"},
		{"speed", o.Speed > 0, "more than 0; +Inf does not wait"},
	} {
		if !f.valid {
			return cli.Usagef("-%s must be %s (got %v)", f.name, f.want, fs.Lookup(f.name).Value)
		}
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if *script != "" {
		rules, err := readScript(*script)
		if err != nil {
			return err
		}
		o.Script = vllm.Rules(rules...)
	}
	files, err := cli.Model("model-dir", *dir)
	if err != nil {
		return err
	}
	tok, err := tokenizers.Load(files, nil)
	if err != nil {
		return cli.InModel(*dir, err)
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
	o.Logger.Info("engine listening", "address", l.Addr().String(), "model", o.Model, "blocks", o.Blocks, "block_size", o.BlockSize)
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// readScript reads the file of -script.
func readScript(name string) ([]vllm.Rule, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var rules []vllm.Rule
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err = d.Decode(&rules); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more after the list")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rules, nil
}
