// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-go/weft/examples/internal/cli"
)

// A harness is a client program that uses the gateway without a change of its user's files.
type harness struct {
	name    string   // in the command line of launch
	title   string   // for people
	program string   // in PATH; "" means the first argument
	from    string   // how to install it
	unset   []string // variables that would take precedence
	// file returns the name and the text of a file that the harness needs in the directory of its endpoint, or is nil.
	file func(g *endpoint) (name, text string)
	// configure returns the variables and the arguments that come before the user's.
	configure func(g *endpoint) (env, args []string)
}

// An endpoint is a gateway as its clients see it.
type endpoint struct {
	url    string // without /v1
	key    string
	model  string
	window int    // tokens
	dir    string // directory for files of the harness, which exists while it runs; "" if it is not started
}

// harnesses lists the clients that launch starts, in the order in which they are printed.
var harnesses = []harness{
	{name: "claude", title: "Claude Code", program: "claude", from: "npm install -g @anthropic-ai/claude-code", unset: []string{"ANTHROPIC_API_KEY"},
		configure: func(g *endpoint) (env, args []string) {
			return []string{"ANTHROPIC_BASE_URL=" + g.url, "ANTHROPIC_AUTH_TOKEN=" + g.key, "ANTHROPIC_MODEL=" + g.model, "ANTHROPIC_SMALL_FAST_MODEL=" + g.model}, nil
		}},
	{name: "codex", title: "Codex", program: "codex", from: "npm install -g @openai/codex",
		configure: func(g *endpoint) (env, args []string) {
			set := []string{
				"model=" + quote(g.model), `model_provider="weft"`,
				fmt.Sprintf(`model_providers.weft={name="weft",base_url=%s,env_key="WEFT_KEY",wire_api="responses",supports_websockets=true}`, quote(g.url+"/v1")),
			}
			if g.window > 0 {
				set = append(set, fmt.Sprintf("model_context_window=%d", g.window))
			}
			for _, s := range set {
				args = append(args, "-c", s)
			}
			return []string{"WEFT_KEY=" + g.key}, args
		}},
	{name: "opencode", title: "opencode", program: "opencode", from: "npm install -g opencode-ai",
		configure: func(g *endpoint) (env, args []string) {
			model := map[string]any{}
			if g.window > 0 {
				model["limit"] = map[string]int{"context": g.window, "output": min(g.window/4, 32000)}
			}
			config, err := json.Marshal(map[string]any{"model": "weft/" + g.model, "small_model": "weft/" + g.model, "provider": map[string]any{"weft": map[string]any{
				"npm": "@ai-sdk/openai-compatible", "options": map[string]string{"baseURL": g.url + "/v1", "apiKey": g.key}, "models": map[string]any{g.model: model},
			}}})
			if err != nil {
				panic(err) // strings and numbers
			}
			return []string{"OPENCODE_CONFIG_CONTENT=" + string(config)}, nil
		}},
	{name: "openclaw", title: "OpenClaw", program: "openclaw", from: "npm install -g openclaw", file: openclawConfig,
		configure: func(g *endpoint) (env, args []string) {
			return []string{"OPENCLAW_CONFIG_PATH=" + filepath.Join(g.dir, "openclaw.json"), "OPENCLAW_STATE_DIR=" + filepath.Join(g.dir, "openclaw")}, nil
		}},
	{name: "pi", title: "pi", program: "pi", from: "npm install -g @mariozechner/pi-coding-agent", file: piExtension,
		configure: func(g *endpoint) (env, args []string) {
			return nil, []string{"-e", filepath.Join(g.dir, "weft.ts"), "--provider", "weft", "--model", g.model}
		}},
	{name: "qwen", title: "Qwen Code", program: "qwen", from: "npm install -g @qwen-code/qwen-code",
		configure: func(g *endpoint) (env, args []string) {
			return []string{"OPENAI_BASE_URL=" + g.url + "/v1", "OPENAI_API_KEY=" + g.key, "OPENAI_MODEL=" + g.model}, nil
		}},
	{name: "command", title: "SDKs", configure: func(g *endpoint) (env, args []string) {
		return []string{"OPENAI_BASE_URL=" + g.url + "/v1", "OPENAI_API_KEY=" + g.key, "ANTHROPIC_BASE_URL=" + g.url, "ANTHROPIC_AUTH_TOKEN=" + g.key}, nil
	}, unset: []string{"ANTHROPIC_API_KEY"}},
}

// quote returns a string of JSON, which is also one of TOML and TypeScript.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // not for a string
	}
	return string(b)
}

// piExtension registers the gateway as a provider of pi, which has no flags for one.
func piExtension(g *endpoint) (name, text string) {
	return "weft.ts", fmt.Sprintf(`export default function (pi) {
  pi.registerProvider("weft", {
    baseUrl: %s, apiKey: %s, api: "openai-completions",
    models: [{ id: %[3]s, name: %[3]s, reasoning: true, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: %[4]d, maxTokens: %[5]d }],
  });
}
`, quote(g.url+"/v1"), quote(g.key), quote(g.model), g.window, min(g.window/4, 32000))
}

// openclawConfig has the gateway as the only provider of OpenClaw.
func openclawConfig(g *endpoint) (name, text string) {
	return "openclaw.json", fmt.Sprintf(`{
  "models": { "providers": { "weft": {
    "baseUrl": %s, "apiKey": %s, "api": "openai-completions",
    "models": [{ "id": %[3]s, "name": %[3]s, "reasoning": true, "input": ["text"], "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 }, "contextWindow": %[4]d, "maxTokens": %[5]d }]
  } } },
  "agents": { "defaults": { "model": { "primary": %[6]s } } }
}
`, quote(g.url+"/v1"), quote(g.key), quote(g.model), g.window, min(g.window/4, 32000), quote("weft/"+g.model))
}

// launchArgs reads the words after launch: a harness, and the arguments for it.
func launchArgs(args []string) ([]string, error) {
	var names []string
	for _, h := range harnesses {
		names = append(names, h.name)
	}
	if len(args) == 0 {
		return nil, cli.Usagef("launch what? Name one of %s", strings.Join(names, ", "))
	}
	if err := cli.OneOf("harness", args[0], names...); err != nil {
		return nil, err
	}
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if args[0] == "command" && len(rest) == 0 {
		return nil, cli.Usagef("launch command needs a program: launch command -- PROGRAM [ARGUMENTS]")
	}
	return append([]string{args[0]}, rest...), nil
}

// launch starts a harness with its arguments. The channel gets its result; its output goes to stdout and stderr. A
// harness whose program is missing is an error.
func launch(words []string, g *endpoint, stdout, stderr io.Writer) (ended <-chan error, kill func(), err error) {
	h := harnesses[slices.IndexFunc(harnesses, func(h harness) bool { return h.name == words[0] })]
	program, rest := h.program, words[1:]
	if program == "" {
		program, rest = rest[0], rest[1:]
	}
	path, err := exec.LookPath(program)
	switch {
	case err != nil && h.from != "":
		return nil, nil, fmt.Errorf("%w\nInstall %s first: %s", err, h.title, h.from)
	case err != nil:
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "weft-gateway-")
	if err != nil {
		return nil, nil, err
	}
	end := func() { os.RemoveAll(dir) } // what cannot be removed is a temporary file
	own := *g
	own.dir = dir
	if h.file != nil {
		name, text := h.file(&own)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			end()
			return nil, nil, err
		}
	}
	env, args := h.configure(&own)
	cmd := exec.Command(path, append(args, rest...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(h.unset, name)
	}), env...)

	// The terminal sends an interrupt to the harness too, which decides what it means. SIGTERM is passed on.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		signal.Stop(signals)
		end()
		return nil, nil, err
	}
	done := make(chan error, 1)
	exited := make(chan struct{})
	go func() {
		defer end()
		defer close(exited)
		done <- cmd.Wait()
	}()
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGTERM {
					cmd.Process.Signal(s) // an error means that it has ended
				}
			case <-exited:
				return
			}
		}
	}()
	return done, func() { cmd.Process.Kill(); <-exited }, nil
}

// harnessStatus returns the exit status of a harness that failed.
func harnessStatus(err error) (status int, ok bool) {
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0, false
	}
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), true // as a shell has it
	}
	return e.ExitCode(), true
}

// newKey returns an API key.
func newKey() string { return "weft-" + rand.Text() }

// endNow ends a server's requests and shuts it down.
func endNow(shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// A valve passes on what is written to it until it is closed.
type valve struct {
	to     io.Writer
	closed atomic.Bool
}

// Write implements io.Writer.
func (v *valve) Write(p []byte) (int, error) {
	if v.closed.Load() {
		return len(p), nil
	}
	return v.to.Write(p)
}
