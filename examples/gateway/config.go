// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router/policy"
)

// config is the configuration from the file of -config and from flags, which take precedence.
//
//	listen: 127.0.0.1:8080
//	model: m
//	aliases: [claude-sonnet-4-5, gpt-5]
//	model_dir: /models/qwen3
//	tool_call_parser: hermes
//	strip_preamble: true
//	models:
//	  - {id: m, context_window: 65536, parallel_tool_calls: true, truncation_policy: {mode: tokens, limit: 10000}}
//	  - {id: claude-m, display_name: "M, by Claude Code's menu"}
//	engines:
//	  - {kind: vllm, url: "http://gpu1:8000", features: priority scheduling}
//	  - {kind: vllm, url: "http://gpu2:8000", events: "tcp://gpu2:5557", replay: "tcp://gpu2:5657"}
//	  - {kind: embedded, url: local, name: spare}
//	tenants:
//	  - {name: ops, keys: [sk-ops], policy: {max_priority: 10, trust: [tier]}}
type config struct {
	Listen          string         `yaml:"listen"`
	Model           string         `yaml:"model"`
	Aliases         []string       `yaml:"aliases"`          // other names that clients may use for the model
	Models          []modelConfig  `yaml:"models"`           // records for /v1/models; the one with the model's name is the model's own
	ModelDir        string         `yaml:"model_dir"`        // directory of the model, or mini; "" is mini
	ToolCallParser  string         `yaml:"tool_call_parser"` // "": inferred from the model
	ReasoningParser string         `yaml:"reasoning_parser"`
	Engines         []engineConfig `yaml:"engines"`
	MaxModelLen     int            `yaml:"max_model_len"` // tokens; 0 means the window of the model's record, the window in its files, or 131072
	MaxChoices      int            `yaml:"max_choices"`   // choices per chat request; 0 means 16
	BlockSize       int            `yaml:"block_size"`    // tokens per cache block of the engines; 0 means 16
	Placement       string         `yaml:"placement"`     // name of a policy of package router/policy; "" means cost_ms
	MemoMB          int            `yaml:"memo_mb"`       // memory for the last requests of conversations, in MiB; 0 means 256
	StripPreamble   bool           `yaml:"strip_preamble"`
	Relocate        bool           `yaml:"relocate"`   // move text that differs between users, directories and days after the stable text
	SortTools       bool           `yaml:"sort_tools"` // by name
	KeepEmpty       bool           `yaml:"keep_empty"` // keep the empty reasoning block of past turns without reasoning
	// PastReasoning is a rule of package replay for the past reasoning in prompts, or template for the template's own. ""
	// means widest: all that the template can print, so that each prompt of a conversation begins with the previous one.
	PastReasoning string         `yaml:"past_reasoning"`
	Policy        policyConfig   `yaml:"policy"` // for requests without a tenant
	Tenants       []tenantConfig `yaml:"tenants"`
	// PriorityIs is the polarity of the body's priority field: "higher is sooner" (SGLang) or "lower is sooner" (vLLM).
	// "" ignores the field.
	PriorityIs   intent.Polarity `yaml:"priority_is"`
	ToolDispatch bool            `yaml:"tool_dispatch"`
	// ReasoningDispatch permits reasoning_dispatch events, as ToolDispatch permits tool_call_dispatch events.
	ReasoningDispatch bool `yaml:"reasoning_dispatch"`
	// CallsInReasoning also sends calls that the model writes inside its reasoning.
	CallsInReasoning bool    `yaml:"calls_in_reasoning"`
	KeepAlive        float64 `yaml:"keep_alive"` // seconds; 0 means 10
}

// maxKeepAlive is the maximum of keep_alive, in seconds.
const maxKeepAlive = 24 * 60 * 60

type engineConfig struct {
	Kind string `yaml:"kind"`
	URL  string `yaml:"url"`
	Name string `yaml:"name"`
	// Dialect is the form of hints: vllm, dynamo, sglang, llm-d, gaie or weft; "" means vllm. Version and Features
	// describe the engine; an example of a feature is "priority scheduling".
	Dialect  string `yaml:"dialect"`
	Version  string `yaml:"version"`
	Features string `yaml:"features"` // separated by commas
	// Events and Replay are the addresses of the cache events of an engine of the kind vllm, and of their replay socket;
	// see package zmq.
	Events string `yaml:"events"`
	Replay string `yaml:"replay"`
}

// hints returns the target for the hints that the engine accepts.
func (e *engineConfig) hints() (*intent.Target, error) {
	var features []string
	for name := range strings.SplitSeq(e.Features, ",") {
		if strings.TrimSpace(name) != "" {
			features = append(features, name)
		}
	}
	return intent.NewTarget(cmp.Or(e.Dialect, "vllm"), e.Version, features...)
}

const usage = `
usage: gateway -model NAME -engine KIND=URL[,events=ADDRESS[,replay=ADDRESS]] [-engine ...] [-model-dir DIR] [flags]
       gateway -config FILE [flags]

Gateway serves the Chat Completions, Responses and Messages APIs in front of engines, until it is interrupted. It does not
read stdin; it logs to stderr.

Engine kinds:
  vllm      an engine with vLLM's /v1/completions. If it publishes cache events, the gateway follows them; ADDRESS is
            tcp://HOST:PORT or ipc://PATH, after @ to listen for the engine, and -block-size must be the engine's.
            Otherwise its cache is predicted from the prompts that were sent to it.
  embedded  examples/engine, which reports its cache events. The URL local starts one in this process.

The file of -config is YAML, with the names of the flags in snake case. It also configures model records, tenants, policies
and the hints of each engine, as examples/README.md shows.

Environment:
  VLLM_API_KEY        bearer token for engines of the kind vllm
  WEFT_REASONING_KEY  keys that sign reasoning: at least 32 bytes in hex each, separated by commas; the first signs.
                      Without it, the key lasts as long as the process.

Example:
  gateway -model m -engine embedded=local -tool-call-parser hermes &
  curl 127.0.0.1:8080/v1/chat/completions -d '{"model":"m","messages":[{"role":"user","content":"Hello there"}]}'
`

// parse parses the arguments and the file that they name. Help goes to stdout.
func parse(args []string, stdout io.Writer) (*config, error) {
	c := &config{Listen: "127.0.0.1:8080"}
	var engines []engineConfig
	var aliases []string
	fs := cli.NewFlags("gateway", usage, stdout)
	file := fs.String("config", "", "YAML `file` with the same settings; flags take precedence")
	fs.StringVar(&c.Listen, "listen", c.Listen, "`address` to listen on")
	fs.StringVar(&c.Model, "model", "", "`name` of the model at clients and engines")
	fs.StringVar(&c.ModelDir, "model-dir", "", "`directory` of the model, or mini for the small tokenizer of this repository (default mini)")
	fs.StringVar(&c.ToolCallParser, "tool-call-parser", "", "parser `family` of the model's tool calls, one that parse -families lists (default: inferred from the model)")
	fs.StringVar(&c.ReasoningParser, "reasoning-parser", "", "parser `family` of the model's reasoning, if it differs")
	fs.StringVar(&c.PastReasoning, "past-reasoning", "", "`rule` for the past reasoning in prompts, such as since_user, or template for the template's own (default widest: all that the template can print)")
	fs.IntVar(&c.MaxModelLen, "max-model-len", 0, "limit of prompt and output `tokens` per request (default: the context window of the model, or 131072)")
	fs.IntVar(&c.MaxChoices, "max-choices", 0, "maximum `number` of choices in one chat request (default 16)")
	fs.IntVar(&c.BlockSize, "block-size", 0, "`tokens` per cache block of the engines (default 16)")
	fs.StringVar(&c.Placement, "placement", "", "`policy` that chooses engines: "+strings.Join(policy.Names(), ", ")+" (default cost_ms)")
	fs.IntVar(&c.MemoMB, "memo-mb", 0, "memory for the last requests of conversations, in `MiB`; 100,000 tokens take about 5 (default 256)")
	fs.Float64Var(&c.KeepAlive, "keep-alive", 0, "`seconds` of silence before a stream sends a keep-alive (default 10)")
	fs.Func("alias", "another `name` for the model; repeatable", func(s string) error {
		aliases = append(aliases, s)
		return nil
	})
	fs.Func("engine", "`kind=URL` of an engine, without /v1; the kinds are vllm and embedded; repeatable", func(s string) error {
		e, err := parseEngine(s)
		engines = append(engines, e)
		return err
	})
	for _, name := range []string{"strip-preamble", "strip-anthropic-preamble"} {
		fs.BoolVar(&c.StripPreamble, name, false, "remove the billing header that harnesses put before the system text")
	}
	fs.BoolVar(&c.Relocate, "relocate", false, "move text that differs between users, directories and days after the stable part of the system text")
	fs.BoolVar(&c.SortTools, "sort-tools", false, "sort the tools by name")
	for _, name := range []string{"tool-dispatch", "enable-streaming-tool-dispatch"} {
		fs.BoolVar(&c.ToolDispatch, name, false, "offer tool_call_dispatch events to chat clients that ask for them")
	}
	for _, name := range []string{"reasoning-dispatch", "enable-streaming-reasoning-dispatch"} {
		fs.BoolVar(&c.ReasoningDispatch, name, false, "offer reasoning_dispatch events to chat clients that ask for them")
	}
	fs.BoolVar(&c.CallsInReasoning, "calls-in-reasoning", false, "also send calls that the model writes inside its reasoning")
	fs.Bool("enable-anthropic-api", true, "no effect; accepted for compatibility with Dynamo: the Messages API is always enabled")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, cli.Usagef("unexpected argument %q", fs.Arg(0))
	}
	if *file != "" {
		data, err := os.ReadFile(*file)
		if err != nil {
			return nil, err
		}
		name := *file
		if err := yaml.UnmarshalWithOptions(data, c, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("config: %s: %w", name, err)
		}
		if _, err := c.Policy.policy(); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		if _, _, err := tenants(c); err != nil {
			return nil, err
		}
		for _, e := range c.Engines {
			if _, err := e.hints(); err != nil {
				return nil, fmt.Errorf("config: engine %q: %w", e.URL, err)
			}
		}
		engines, aliases = nil, nil
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
	}
	if engines != nil {
		c.Engines = engines
	}
	if aliases != nil {
		c.Aliases = aliases
	}
	switch {
	case c.Model == "":
		return nil, cli.Usagef("no model: set -model NAME")
	case len(c.Engines) == 0:
		return nil, cli.Usagef("no engine: set -engine KIND=URL")
	case !(c.KeepAlive >= 0 && c.KeepAlive <= maxKeepAlive): // also NaN
		return nil, cli.Usagef("keep_alive must be from 0 to %d seconds (got %v)", maxKeepAlive, c.KeepAlive)
	}
	if c.Placement != "" {
		if _, err := policy.Named(c.Placement); err != nil {
			return nil, cli.Usagef("placement: %v", err)
		}
	}
	if _, err := pastReasoning(c.PastReasoning); err != nil {
		return nil, err
	}
	for name, n := range map[string]int{"max_model_len": c.MaxModelLen, "max_choices": c.MaxChoices, "block_size": c.BlockSize, "memo_mb": c.MemoMB} {
		if n < 0 {
			return nil, cli.Usagef("%s must not be negative (got %d)", name, n)
		}
	}
	return c, nil
}
