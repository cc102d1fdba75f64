// SPDX-License-Identifier: Apache-2.0

// Command agent is a small harness: it lets a model answer a question about the files of a directory. It sends raw
// prompts to /v1/completions and decodes the model's markup with package parsers, so that each tool starts as soon as
// its call is complete, while the rest of the turn is still streaming.
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
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/internal/cli"
)

const usage = `
usage: agent [-workdir DIR] [flags] [TASK]
       agent -url URL [-model NAME] [-model-dir DIR] [-family NAME] [-workdir DIR] [flags] TASK

Agent lets a model answer a question about the files of a directory with three tools that only read: list_files, read_file
and search. Each tool starts as soon as its call is complete, while the rest of the response is still streaming. Agent does
not read stdin. It prints the model's output and the tool calls, then a table of the time that early starts saved; with
-json, one JSON object per line.

-url is a server with /v1/completions; without it, an embedded engine plays a script.

Example:
  agent -url http://127.0.0.1:8000 -model Qwen/Qwen3-8B -workdir ~/src "Where is the retry limit set?"
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	cli.Exit("agent", run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := cli.NewFlags("agent", usage, stdout)
	url := flags.String("url", "", "`URL` of a server with /v1/completions; by default an embedded engine that plays a script")
	model := flags.String("model", "", "`name` of the model at the server; by default the server chooses")
	dir := flags.String("model-dir", "", "`directory` of the model, or mini, for its template and family; by default prompts are ChatML")
	family := flags.String("family", "", "parser family `name` of the model, such as qwen3_coder; parse -families lists all; by default inferred from the template, or hermes")
	workdir := flags.String("workdir", ".", "`directory` that the tools may read")
	maxTurns := flags.Int("max-turns", 10, "maximum `number` of turns")
	maxTokens := flags.Int("max-tokens", 4096, "limit of output `tokens` per turn")
	slow := flags.Duration("slow", 0, "`delay` before each tool runs, to simulate slow tools; 400ms with the script")
	asJSON := flags.Bool("json", false, "print JSON lines")
	verbose := flags.Bool("v", false, "print prompts to stderr")
	if err := flags.Parse(args); err != nil {
		return err
	}
	task := strings.Join(flags.Args(), " ")
	if *url == "" {
		if *dir != "" || *family != "" && *family != "hermes" {
			return cli.Usagef("the built-in script supports only -family hermes, without -model-dir; set -url")
		}
		u, stop, err := play()
		if err != nil {
			return err
		}
		defer stop()
		*url, task = u, cmp.Or(task, "What is in this directory?")
		*slow = cmp.Or(*slow, 400*time.Millisecond)
	}
	if task == "" {
		return cli.Usagef("no task: write it after the flags")
	}

	root, err := os.OpenRoot(*workdir)
	if err != nil {
		return err
	}
	defer root.Close()
	m, err := load(*dir, *family)
	if err != nil {
		return err
	}
	a, err := newAgent(m, toolbox{tools: fileTools(), dir: root.FS(), slow: *slow})
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
