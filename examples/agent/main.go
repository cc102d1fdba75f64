// SPDX-License-Identifier: Apache-2.0

// Command agent is a small harness: it lets a model answer a question about the files of a folder. It sends raw prompts to
// /v1/completions and reads the model's own markup with package parsers, so that each tool starts the moment its call is
// complete, while the rest of the turn still streams.
//
//	go run ./examples/agent
//	go run ./examples/agent -url http://gpu:8000 -model Qwen/Qwen3-8B "Where is the retry limit set?"
//
// The files, in the order to read them:
//
//	agent.go    the loop: ask, run tools beside the stream, ask again
//	turn.go     from events to calls and blocks; what early starts won
//	prompt.go   from the conversation to the text of a prompt
//	engine.go   the stream of completions
//	tools.go    list_files, read_file, search
//	show.go     what people see, or programs with -json
//	script.go   the embedded engine, for when there is no other
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("url", "", "server with /v1/completions; without one an embedded engine plays a script")
	model := flags.String("model", "", "name of the model")
	family := flags.String("family", "hermes", "how the model writes: hermes (Qwen2.5, Qwen3) or qwen3_coder")
	workdir := flags.String("workdir", ".", "folder that the tools may read")
	maxTurns := flags.Int("max-turns", 10, "turns before giving up")
	maxTokens := flags.Int("max-tokens", 4096, "output tokens of one turn")
	slow := flags.Duration("slow", 0, "a pause in front of each tool's work, to stand for slow tools; 400ms with the script")
	asJSON := flags.Bool("json", false, "print what happens as JSON lines")
	verbose := flags.Bool("v", false, "show prompts, on stderr")
	if err := flags.Parse(args); err != nil {
		return err
	}
	task := strings.Join(flags.Args(), " ")
	if *url == "" {
		if *family != "hermes" {
			return errors.New("the script is written for the family hermes; give -url for another")
		}
		u, stop, err := play()
		if err != nil {
			return err
		}
		defer stop()
		*url, task = u, cmp.Or(task, "What is in this folder?")
		*slow = cmp.Or(*slow, 400*time.Millisecond)
	}
	if task == "" {
		return errors.New("no task: write one behind the flags")
	}

	root, err := os.OpenRoot(*workdir)
	if err != nil {
		return err
	}
	defer root.Close()
	a, err := newAgent(*family, toolbox{tools: folderTools(), dir: root.FS(), slow: *slow})
	if err != nil {
		return err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	base := strings.TrimSuffix(strings.TrimSuffix(*url, "/"), "/v1")
	a.engine = engine{url: base, model: *model, maxTokens: *maxTokens, client: &http.Client{Transport: transport}}
	a.maxTurns = *maxTurns
	s := &screen{w: stdout, json: *asJSON, dim: isTerminal(stdout)}
	a.see = s.see
	if *verbose {
		a.peek = func(prompt string) { fmt.Fprintf(stderr, "--- prompt\n%s\n", prompt) }
	}
	err = a.run(ctx, task)
	s.table(a.turns)
	return errors.Join(err, s.err)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
