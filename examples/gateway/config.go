// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/parsers"
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
//	deployments:
//	  - {model: openai/gpt-oss-20b, model_dir: /models/gpt-oss, engines: [{url: "http://gpu3:8000"}]}
//	  - {model: sonnet, engines: [{kind: anthropic, url: "https://api.anthropic.com", model: claude-sonnet-4-5}]}
//	tenants:
//	  - {name: ops, keys: [sk-ops], policy: {max_priority: 10, trust: [tier]}, limits: {requests_per_minute: 600}}
type config struct {
	// The first model, unless there are no engines here.
	Deployment `yaml:",inline"`

	Listen       string `yaml:"listen"`
	TLSCert      string `yaml:"tls_cert"`        // PEM file of the certificate and those that issued it; "": no TLS
	TLSKey       string `yaml:"tls_key"`         // PEM file of its key
	H2C          bool   `yaml:"h2c"`             // HTTP/2 without TLS
	PerAddress   int    `yaml:"max_per_address"` // connections of a client's address; -1 means no limit
	StrictModels bool   `yaml:"strict_models"`   // refuse other names; by default the model serves requests for any name
	// Deployments holds further models, each with its own engines.
	Deployments    []Deployment   `yaml:"deployments"`
	MaxChoices     int            `yaml:"max_choices"` // choices per chat request; 0 means 16
	MemoMB         int            `yaml:"memo_mb"`     // memory for the last requests of conversations, in MiB; 0 means 256
	StoreMB        int            `yaml:"store_mb"`    // memory for responses that requests may continue, in MiB; 0 means that none is stored
	StripPreamble  bool           `yaml:"strip_preamble"`
	Relocate       bool           `yaml:"relocate"`   // move text that differs between users, directories and days after the stable text
	SortTools      bool           `yaml:"sort_tools"` // by name
	Policy         policyConfig   `yaml:"policy"`     // for requests without a tenant
	Tenants        []tenantConfig `yaml:"tenants"`
	KeysFile       string         `yaml:"keys_file"` // API keys without a tenant
	Limits         limitsConfig   `yaml:"limits"`    // of each key in KeysFile
	Anonymous      bool           `yaml:"anonymous"` // serve requests without a key
	Hosts          []string       `yaml:"hosts"`     // names of the gateway besides localhost, if it listens on a loopback address
	Origins        []string       `yaml:"origins"`   // of web pages that may use the gateway
	MaxRequests    int            `yaml:"max_requests"`
	MaxQueue       int            `yaml:"max_queue"`
	QueueTimeout   float64        `yaml:"queue_timeout"` // seconds
	EngineRequests int            `yaml:"engine_requests"`
	MaxMemoryMB    int            `yaml:"max_memory_mb"` // MiB
	MaxBodyMB      int            `yaml:"max_body_mb"`   // MiB
	Retries        int            `yaml:"retries"`
	Preempt        bool           `yaml:"preempt"`         // requests without output give way to requests of a higher tier
	Unconstrained  bool           `yaml:"unconstrained"`   // ignore demands on the form of the output that no engine enforces
	HealthInterval float64        `yaml:"health_interval"` // seconds; 0 means no probes
	EngineSilence  float64        `yaml:"engine_silence"`  // seconds after which a request fails whose engine sends nothing
	Grace          float64        `yaml:"grace"`           // seconds for running requests after a signal to end
	LogFormat      logFormat      `yaml:"log_format"`      // text or json
	LogLevel       slog.Level     `yaml:"log_level"`       // debug, info, warn or error
	LogFile        string         `yaml:"log_file"`        // file to append the log to; "" means stderr
	Trace          string         `yaml:"trace"`           // file to append a line for each request to; "" means none
	Metrics        string         `yaml:"metrics"`         // clients that may read /metrics: local, open or off
	// PriorityIs is the polarity of the body's priority field: "higher is sooner" (SGLang) or "lower is sooner" (vLLM).
	// "" ignores the field.
	PriorityIs   intent.Polarity `yaml:"priority_is"`
	ToolDispatch bool            `yaml:"tool_dispatch"`
	// ReasoningDispatch permits reasoning_dispatch events, as ToolDispatch permits tool_call_dispatch events.
	ReasoningDispatch bool `yaml:"reasoning_dispatch"`
	// CallsInReasoning also sends calls that the model writes inside its reasoning.
	CallsInReasoning bool    `yaml:"calls_in_reasoning"`
	KeepAlive        float64 `yaml:"keep_alive"` // seconds; 0 means 10

	Check  bool     `yaml:"-"` // check the configuration and exit
	Launch []string `yaml:"-"` // a harness to start, and its arguments; nil means none
}

// maxKeepAlive is the maximum of keep_alive and other times, in seconds.
const maxKeepAlive = 24 * 60 * 60

// maxMiB is the maximum of sizes in MiB: a pebibyte, or what an int holds in bytes.
const maxMiB = min(1<<30, math.MaxInt>>20)

// Deployment holds the settings of a model with its engines. It is exported because the YAML library sets no embedded field
// that is not.
type Deployment struct {
	Model           string         `yaml:"model"`
	Aliases         []string       `yaml:"aliases"`          // other names that clients may use for the model
	Models          []modelConfig  `yaml:"models"`           // records for /v1/models; the one with the model's name is the model's own
	ModelDir        string         `yaml:"model_dir"`        // directory of the model, or mini; "" is mini
	ToolCallParser  string         `yaml:"tool_call_parser"` // "": inferred from the model
	ReasoningParser string         `yaml:"reasoning_parser"`
	Engines         []engineConfig `yaml:"engines"`
	MaxModelLen     int            `yaml:"max_model_len"` // tokens; 0 means the window of the model's record, the window in its files, or 131072
	BlockSize       int            `yaml:"block_size"`    // tokens per cache block of the engines; 0 means 16
	Placement       string         `yaml:"placement"`     // name of a policy of package router/policy; "" means cost_ms
	KeepEmpty       bool           `yaml:"keep_empty"`    // keep the empty reasoning block of past turns without reasoning
	// PastReasoning is a rule of package replay for the past reasoning in prompts, or template for the template's own. ""
	// means widest: all that the template can print, so that each prompt of a conversation begins with the previous one.
	PastReasoning string `yaml:"past_reasoning"`
}

// checkFile returns an error for what the YAML library accepts in a file without a notice: a second document, and a number that is
// not whole where one must be, whose fraction it cuts off.
func checkFile(data []byte) error {
	var first, second any
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&first); err != nil {
		return nil // the file is empty
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) && second != nil {
		return errors.New("there is a second document, after ---, which would be ignored")
	}
	if path := fraction(first, reflect.TypeFor[config](), ""); path != "" {
		return fmt.Errorf("%s must be a whole number", path)
	}
	return nil
}

// fraction returns the path of a number in value, of a file, that is not whole but becomes an integer in a value of type t. It
// returns "" if there is none.
func fraction(value any, t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32:
		f, ok := value.(float64)
		if s, text := value.(string); text { // the library accepts quotes
			var err error
			f, err = strconv.ParseFloat(s, 64)
			ok = err == nil
		}
		if ok && f != math.Trunc(f) {
			return path
		}
	case reflect.Slice:
		list, _ := value.([]any)
		for i, v := range list {
			if p := fraction(v, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
	case reflect.Struct:
		fields, _ := value.(map[string]any)
		for i := range t.NumField() {
			name, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			var p string
			if option == "inline" {
				p = fraction(value, t.Field(i).Type, path)
			} else {
				p = fraction(fields[name], t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))
			}
			if p != "" {
				return p
			}
		}
	}
	return ""
}

// each returns a configuration per model, the default model first.
func (c *config) each() []*config {
	var list []*config
	if len(c.Engines) > 0 {
		list = append(list, c)
	}
	for _, d := range c.Deployments {
		one := *c
		one.Deployment, one.Deployments = d, nil
		list = append(list, &one)
	}
	return list
}

// checkAccess returns an error for an invalid address, origin or limit of keys.
func (c *config) checkAccess() error {
	_, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port) // a number, or the name of a service
	}
	if err != nil {
		return cli.Usagef("-listen %q: %v", c.Listen, err)
	}
	for _, origin := range c.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			return cli.Usagef("-allow-origin: %v", err)
		}
	}
	if c.KeysFile == "" && c.Limits != (limitsConfig{}) {
		return cli.Usagef("-key-requests, -key-tokens and -key-concurrent are limits of the keys in a file: set -keys-file")
	}
	for name, n := range map[string]int{"key-requests": c.Limits.RequestsPerMinute, "key-tokens": c.Limits.TokensPerMinute} {
		if n < 0 {
			return cli.Usagef("-%s must not be negative (got %d)", name, n)
		}
	}
	if c.Limits.Concurrent < -1 {
		return cli.Usagef("-key-concurrent must be at least 0, or -1 for no limit (got %d)", c.Limits.Concurrent)
	}
	return nil
}

// checkModel returns an error for invalid settings of the model of c.
func (c *config) checkModel() error {
	if len(c.Engines) == 0 {
		return cli.Usagef("no engine: set engines")
	}
	if c.Placement != "" {
		if _, err := policy.Named(c.Placement); err != nil {
			return cli.Usagef("placement: %v", err)
		}
	}
	if _, err := pastReasoning(c.PastReasoning); err != nil {
		return err
	}
	for name, family := range map[string]string{"tool-call-parser": c.ToolCallParser, "reasoning-parser": c.ReasoningParser} {
		if _, err := parsers.Default().Lookup(family); family != "" && err != nil {
			return cli.Usagef("-%s: %v", name, err)
		}
	}
	for i, name := range c.Aliases {
		if name == "" || name == c.Model || slices.Contains(c.Aliases[:i], name) {
			return cli.Usagef("-alias %q: want another name for the model, and each once", name)
		}
	}
	for name, n := range map[string]int{"max_model_len": c.MaxModelLen, "block_size": c.BlockSize} {
		if n < 0 {
			return cli.Usagef("%s must not be negative (got %d)", name, n)
		}
	}
	for _, e := range c.Engines {
		if _, err := e.hints(); err != nil {
			return fmt.Errorf("config: engine %q: %w", e.URL, err)
		}
		switch {
		case e.managed() != c.managed():
			return cli.Usagef("engine %q: managed endpoints (%s) and other engines are different models: list them in deployments", e.URL, strings.Join(managedKinds(), ", "))
		case e.Model != "" && !e.managed():
			return cli.Usagef("engine %q: only managed endpoints have a model of their own", e.URL)
		}
	}
	if c.managed() && (c.ModelDir != "" || c.ToolCallParser != "" || c.ReasoningParser != "") {
		return cli.Usagef("a managed endpoint needs no files and parsers of its model: leave out model_dir, tool_call_parser and reasoning_parser")
	}
	return nil
}

type engineConfig struct {
	Kind string `yaml:"kind"`
	URL  string `yaml:"url"`
	Name string `yaml:"name"`
	// Model is the name of the model at a managed endpoint; "" means the model's name.
	Model string `yaml:"model"`
	// KeyEnv is the environment variable with the key; "" means the one of the kind.
	KeyEnv string `yaml:"key_env"`
	// Dialect is the form of hints: vllm, dynamo, sglang, llm-d, gaie or weft; "" means the dialect of the kind. At an endpoint
	// of the kind openai, vllm, dynamo and sglang are also the server, whose fields conversions have. Version and Features describe the engine; an example of a feature is "priority scheduling".
	Dialect  string `yaml:"dialect"`
	Version  string `yaml:"version"`
	Features string `yaml:"features"` // separated by commas
	// Events and Replay are the addresses of the cache events of an engine of the kind vllm, and of their replay socket;
	// see package zmq.
	Events string `yaml:"events"`
	Replay string `yaml:"replay"`
	// MaxRequests is the number of requests at the same time; 0 means EngineRequests of the configuration.
	MaxRequests int `yaml:"max_requests"`
	// CacheBlocks is the number of blocks of the engine's cache; 0 means what vLLM and SGLang report, otherwise unknown.
	CacheBlocks int `yaml:"cache_blocks"`
	// Adapters are the LoRA adapters that an engine of the kind vllm has loaded, in addition to those that it reports.
	Adapters []string `yaml:"adapters"`
	// Found is the variant of the kind that the engine was found to be, or nil.
	Found upstream.Kind `yaml:"-"`

	Asked, Silent bool `yaml:"-"` // discover has asked it; it did not respond
}

// defaults returns the configuration without a file and flags.
func defaults() *config {
	return &config{
		Listen: "127.0.0.1:8080", MaxRequests: 2048, MaxQueue: 512, QueueTimeout: 30, EngineRequests: 256, MaxMemoryMB: 1024, MaxBodyMB: 64,
		PerAddress: 512, LogFormat: "text", Metrics: "local", Retries: 1, HealthInterval: 5, EngineSilence: 600, Grace: 30,
	}
}

// logFormat is the format of the log: text or json.
type logFormat string

// MarshalText implements encoding.TextMarshaler.
func (f logFormat) MarshalText() ([]byte, error) { return []byte(f), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *logFormat) UnmarshalText(text []byte) error {
	*f = logFormat(text)
	return cli.OneOf("log format", string(text), "text", "json")
}

// handler returns a handler that writes to w.
func (f logFormat) handler(w io.Writer, level slog.Leveler) slog.Handler {
	opt := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration { // JSON would have nanoseconds
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}}
	if f == "json" {
		return slog.NewJSONHandler(w, opt)
	}
	return slog.NewTextHandler(w, opt)
}

// managed reports whether an engine is a managed endpoint.
func (e *engineConfig) managed() bool {
	_, ok := e.kind().(upstream.Managed)
	return ok
}

// managed reports whether the first engine of a model is a managed endpoint, as all are in a valid configuration.
func (c *config) managed() bool { return len(c.Engines) > 0 && c.Engines[0].managed() }

// managedKinds returns the names of the kinds of managed endpoints.
func managedKinds() (names []string) {
	for _, k := range upstream.Kinds() {
		if _, ok := k.(upstream.Managed); ok {
			names = append(names, k.String())
		}
	}
	return names
}

// kinds returns the names of the kinds of engines.
func kinds() (names []string) {
	for _, k := range upstream.Kinds() {
		names = append(names, k.String())
	}
	return names
}

// hints returns the target for the hints that the engine accepts, or nil if there are none.
func (e *engineConfig) hints() (*intent.Target, error) {
	dialect := cmp.Or(e.Dialect, "vllm")
	if k := e.kind(); k != nil {
		dialect = cmp.Or(e.Dialect, k.Traits().Hints)
	}
	if dialect == "" {
		if e.Features != "" {
			return nil, fmt.Errorf("an engine of the kind %s takes no hints, but has the features %q", e.Kind, e.Features)
		}
		return nil, nil
	}
	var features []string
	for name := range strings.SplitSeq(e.Features, ",") {
		if strings.TrimSpace(name) != "" {
			features = append(features, name)
		}
	}
	return intent.NewTarget(dialect, e.Version, features...)
}

const usage = `
usage: gateway -engine [KIND=]URL[,events=ADDRESS[,replay=ADDRESS]] [-engine ...] [-model NAME] [-model-dir DIR] [flags]
       gateway -engine openai|anthropic|responses=URL[,key_env=VARIABLE][,model=NAME] [-engine ...] -model NAME [flags]
       gateway -config FILE [flags]
       gateway -config FILE -check
       gateway [flags] launch HARNESS [--] [ARGUMENTS]

Gateway serves the Chat Completions, Responses and Messages APIs in front of engines, until it is interrupted. It then
refuses new requests, gives the running ones the time of -grace, and exits; another interrupt ends it at once. SIGHUP
reads the file of -config, the keys and the certificate again, and keeps running requests. It does not read stdin; it logs to stderr.

If it listens on an address that is not loopback, clients need an API key, unless -anonymous is set.

An engine without a kind must run; it tells its kind and model, the context window, the block size, and where it publishes cache
events. The directory of the model is the one it was loaded from, or the one in the cache of Hugging Face. What an engine tells
must agree with the flags; the ids of a text too, if it tokenizes one.

Launch starts claude, codex, opencode, pi or qwen, or "command" any PROGRAM with the variables of the SDKs, configured by
its environment and flags for a gateway on a free port of 127.0.0.1. No file of the user changes. The gateway ends with the
program and exits with its status; its log goes to the file of -log-file, or nowhere once the program has started.

Engine kinds:
  vllm      an engine with vLLM's /v1/completions, or its /inference/v1/generate if it has that. If it publishes cache events, the gateway follows them; ADDRESS is
            tcp://HOST:PORT or ipc://PATH, after @ to listen for the engine, and -block-size must be the engine's.
            Otherwise its cache is predicted from the prompts that were sent to it.
  llamacpp  llama.cpp's server. It gets a request for each of its slots at the same time; more wait in the gateway.
            -model-dir is the directory with the tokenizer and the template that its GGUF file was made from.
  ollama    Ollama, which gets text instead of token ids, with the restrictions in examples/README.md. The model is loaded at the
            start. -model-dir as for llamacpp.
  sglang    SGLang, whose cache events are those of the kind vllm.
  tensorrt-llm
            trtllm-serve, with guided_decoding_backend: xgrammar for constraints, and event_buffer_max_size for cache events. Set
            -max-model-len to its window, and -block-size to its tokens_per_block.
  embedded  examples/engine, which reports its cache events. The URL local starts one in this process.
  openai    an endpoint with the Chat Completions API: OpenAI's, OpenRouter's, the one of an engine or of another gateway.
  anthropic, responses
            the same with the Messages or the Responses API. Clients may use any of the three; requests and responses are
            converted. No files of the model are needed. NAME is the model's name there, VARIABLE has the key.

The file of -config is YAML, with the names of the flags in snake case, except engines, aliases, hosts (-allow-host), origins
(-allow-origin), and limits, with requests_per_minute, tokens_per_minute and concurrent (-key-requests, -key-tokens, -key-concurrent).
It also configures further models with their own engines, model records, tenants, policies and the hints of each engine, as
examples/README.md shows. -check reads it, asks all engines, compares, reports what is wrong, and exits.

Environment:
  VLLM_API_KEY, LLAMA_API_KEY, OLLAMA_API_KEY, SGLANG_API_KEY
                      bearer token for engines of the kinds vllm, llamacpp, ollama and sglang
  OPENAI_API_KEY, ANTHROPIC_API_KEY
                      keys for api.openai.com and api.anthropic.com. No other endpoint gets them; see key_env
  WEFT_REASONING_KEY  keys that sign reasoning: at least 32 bytes in hex each, separated by commas; the first signs.
                      Without it, the key lasts as long as the process.
  OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_*
                      collector of traces, by OTLP over HTTP, and further settings of OpenTelemetry (default: no traces)

Example:
  gateway -model m -engine embedded=local -tool-call-parser hermes &
  curl 127.0.0.1:8080/v1/chat/completions -d '{"model":"m","messages":[{"role":"user","content":"Hello there"}]}'
  gateway -engine http://127.0.0.1:8000 launch claude -- -p "What does this repository do?"
`

// parse parses the arguments and the file that they name. Help goes to stdout.
func parse(args []string, stdout io.Writer) (*config, error) {
	c := defaults()
	var engines []engineConfig
	var aliases, hosts, origins []string
	fs := cli.NewFlags("gateway", usage, stdout)
	file := fs.String("config", "", "YAML `file` with the same settings; flags take precedence")
	fs.BoolVar(&c.Check, "check", false, "check the configuration, ask all engines, report what is wrong, and exit")
	fs.StringVar(&c.Listen, "listen", c.Listen, "`address` to listen on")
	fs.StringVar(&c.TLSCert, "tls-cert", "", "PEM `file` of the certificate for TLS, with those that issued it (default: no TLS)")
	fs.StringVar(&c.TLSKey, "tls-key", "", "PEM `file` of the key of the certificate")
	fs.BoolVar(&c.H2C, "h2c", false, "permit HTTP/2 without TLS")
	fs.IntVar(&c.PerAddress, "max-per-address", c.PerAddress, "`connections` and requests at the same time of a client's address, this machine's excepted; -1 means no limit")
	fs.StringVar(&c.Model, "model", "", "`name` of the model at clients and engines (default: the first model of the engine)")
	fs.BoolVar(&c.StrictModels, "strict-models", false, "refuse requests for models other than -model and its aliases with status 404, instead of serving them with -model")
	fs.StringVar(&c.ModelDir, "model-dir", "", "`directory` of the model, or mini for the small tokenizer of this repository (default: found by asking the engine)")
	fs.StringVar(&c.ToolCallParser, "tool-call-parser", "", "parser `family` of the model's tool calls, one that parse -families lists (default: inferred from the model)")
	fs.StringVar(&c.ReasoningParser, "reasoning-parser", "", "parser `family` of the model's reasoning, if it differs")
	fs.StringVar(&c.PastReasoning, "past-reasoning", "", "`rule` for the past reasoning in prompts, such as since_user, or template for the template's own (default widest: all that the template can print)")
	fs.IntVar(&c.MaxModelLen, "max-model-len", 0, "limit of prompt and output `tokens` per request (default: the context window of the model, or 131072)")
	fs.IntVar(&c.MaxChoices, "max-choices", 0, "maximum `number` of choices in one chat request (default 16)")
	fs.IntVar(&c.BlockSize, "block-size", 0, "`tokens` per cache block of the engines (default 16)")
	fs.StringVar(&c.Placement, "placement", "", "`policy` that chooses engines, one that package router/policy lists (default cost_ms)")
	fs.IntVar(&c.MemoMB, "memo-mb", 0, "memory for the last requests of conversations, in `MiB`; 100,000 tokens take about 5 (default 256)")
	fs.IntVar(&c.StoreMB, "store-mb", 0, "memory for responses that requests may continue with previous_response_id, in `MiB` (default: none is stored)")
	fs.Float64Var(&c.KeepAlive, "keep-alive", 0, "`seconds` of silence before a stream sends a keep-alive (default 10)")
	fs.StringVar(&c.KeysFile, "keys-file", "", "`file` with an API key per line, or a name, a space and a key")
	fs.IntVar(&c.Limits.RequestsPerMinute, "key-requests", 0, "`requests` per minute of each key in -keys-file (default: no limit)")
	fs.IntVar(&c.Limits.TokensPerMinute, "key-tokens", 0, "`tokens` per minute, of prompts and output, of each key in -keys-file (default: no limit)")
	fs.IntVar(&c.Limits.Concurrent, "key-concurrent", 0, "`requests` at the same time of each key in -keys-file; -1 means no limit (default 128)")
	fs.BoolVar(&c.Anonymous, "anonymous", false, "serve requests without an API key")
	fs.Func("allow-host", "`name` by which clients may call the gateway on a loopback address, besides localhost; repeatable", func(s string) error {
		hosts = append(hosts, s)
		return nil
	})
	fs.Func("allow-origin", "`origin` of web pages that may use the gateway, such as https://chat.example.com; repeatable", func(s string) error {
		origins = append(origins, s)
		return nil
	})
	fs.IntVar(&c.MaxRequests, "max-requests", c.MaxRequests, "`requests` at the same time, waiting ones included")
	fs.IntVar(&c.EngineRequests, "engine-requests", c.EngineRequests, "`requests` at the same time per engine; more wait")
	fs.IntVar(&c.MaxQueue, "max-queue", c.MaxQueue, "`requests` that wait for an engine; more get status 503")
	fs.Float64Var(&c.QueueTimeout, "queue-timeout", c.QueueTimeout, "`seconds` for which a request waits for an engine")
	fs.IntVar(&c.MaxMemoryMB, "max-memory-mb", c.MaxMemoryMB, "memory for the bodies and output of all requests, in `MiB`")
	fs.IntVar(&c.MaxBodyMB, "max-body-mb", c.MaxBodyMB, "size of a request body, in `MiB`")
	fs.BoolVar(&c.Unconstrained, "unconstrained", false, "ignore what requests demand of the output (response_format, tool_choice required, …) where no engine can enforce it, instead of status 400")
	fs.BoolVar(&c.Preempt, "preempt", false, "cancel requests without output when one of a higher tier needs their engine, and send them again later")
	fs.IntVar(&c.Retries, "retries", c.Retries, "maximum `number` of further engines that get a request after an engine failed")
	fs.Float64Var(&c.HealthInterval, "health-interval", c.HealthInterval, "`seconds` between probes of the engines' /health; 0 means no probes")
	fs.Float64Var(&c.EngineSilence, "engine-silence", c.EngineSilence, "`seconds` after which a request fails if its engine sends nothing")
	fs.Float64Var(&c.Grace, "grace", c.Grace, "`seconds` for running requests after SIGTERM or an interrupt")
	fs.TextVar(&c.LogFormat, "log-format", c.LogFormat, "`format` of the log: text or json")
	fs.TextVar(&c.LogLevel, "log-level", c.LogLevel, "minimum `level` of the log: debug, info, warn or error")
	fs.StringVar(&c.LogFile, "log-file", "", "`file` to which the log is appended (default: stderr)")
	fs.StringVar(&c.Trace, "trace", "", "`file` to which a line for each request is appended, without text, for kvsim -trace and Dynamo's replay (default: none)")
	fs.StringVar(&c.Metrics, "metrics", c.Metrics, "`clients` that may read /metrics: local (this machine, and keys without a tenant), open (all) or off (none)")
	fs.Func("alias", "another `name` for the model; repeatable", func(s string) error {
		aliases = append(aliases, s)
		return nil
	})
	fs.Func("engine", "`URL` of an engine, without /v1, or kind=URL; the kinds are "+strings.Join(kinds(), ", ")+"; repeatable", func(s string) error {
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
	if fs.NArg() > 0 && fs.Arg(0) != "launch" {
		return nil, cli.Usagef("unexpected argument %q", fs.Arg(0))
	}
	if *file != "" {
		data, err := os.ReadFile(*file)
		if err != nil {
			return nil, err
		}
		name := *file
		if err := yaml.UnmarshalWithOptions(data, c, yaml.Strict()); err != nil {
			// err itself would print the lines around the error, in which there may be keys.
			return nil, fmt.Errorf("config: %s: %s", name, yaml.FormatError(err, false, false))
		}
		if err := checkFile(data); err != nil {
			return nil, fmt.Errorf("config: %s: %w", name, err)
		}
		if _, err := c.Policy.policy(); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		if _, err := tenants(c); err != nil {
			return nil, err
		}
		engines, aliases, hosts, origins = nil, nil, nil, nil
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
	if hosts != nil {
		c.Hosts = hosts
	}
	if origins != nil {
		c.Origins = origins
	}
	if fs.NArg() > 0 {
		var err error
		if c.Launch, err = launchArgs(fs.Args()[1:]); err != nil {
			return nil, err
		}
		if c.Check {
			return nil, cli.Usagef("the check starts no harness: leave out launch")
		}
		c.Listen, c.TLSCert, c.TLSKey = "127.0.0.1:0", "", ""
	}
	switch {
	case len(c.Engines) == 0 && len(c.Deployments) == 0:
		return nil, cli.Usagef("no engine: set -engine URL")
	case len(c.Engines) == 0 && !reflect.DeepEqual(c.Deployment, Deployment{}):
		return nil, cli.Usagef("settings of a model outside of deployments, but no engine there: set -engine URL or engines")
	case !(c.KeepAlive >= 0 && c.KeepAlive <= maxKeepAlive): // also NaN
		return nil, cli.Usagef("keep_alive must be from 0 to %d seconds (got %v)", maxKeepAlive, c.KeepAlive)
	}
	if err := cli.OneOf("value of metrics", c.Metrics, "local", "open", "off"); err != nil {
		return nil, err
	}
	if err := c.checkAccess(); err != nil {
		return nil, err
	}
	if c.PerAddress < 1 && c.PerAddress != -1 {
		return nil, cli.Usagef("max_per_address must be at least 1, or -1 for no limit (got %d)", c.PerAddress)
	}
	for i, one := range c.each() {
		if c.Check {
			break // deploy checks the models, and reports all that is wrong with each
		}
		switch err := one.checkModel(); {
		case err != nil && len(c.Deployments) > 0:
			return nil, fmt.Errorf("model %d (%s): %w", i+1, cmp.Or(one.Model, "of its engine"), err)
		case err != nil:
			return nil, err
		}
	}
	for name, n := range map[string]int{"max_choices": c.MaxChoices, "memo_mb": c.MemoMB, "store_mb": c.StoreMB, "retries": c.Retries} {
		if n < 0 {
			return nil, cli.Usagef("%s must not be negative (got %d)", name, n)
		}
	}
	for name, n := range map[string]int{
		"max_requests": c.MaxRequests, "max_queue": c.MaxQueue, "engine_requests": c.EngineRequests, "max_memory_mb": c.MaxMemoryMB, "max_body_mb": c.MaxBodyMB,
	} {
		if n < 1 {
			return nil, cli.Usagef("%s must be at least 1 (got %d)", name, n)
		}
	}
	for name, n := range map[string]int{"memo_mb": c.MemoMB, "store_mb": c.StoreMB, "max_memory_mb": c.MaxMemoryMB, "max_body_mb": c.MaxBodyMB} {
		if n > maxMiB {
			return nil, cli.Usagef("%s must be at most %d MiB (got %d)", name, maxMiB, n)
		}
	}
	for name, s := range map[string]float64{"queue_timeout": c.QueueTimeout, "health_interval": c.HealthInterval, "engine_silence": c.EngineSilence, "grace": c.Grace} {
		if !(s >= 0 && s <= maxKeepAlive) {
			return nil, cli.Usagef("%s must be from 0 to %d seconds (got %v)", name, maxKeepAlive, s)
		}
	}
	return c, nil
}
