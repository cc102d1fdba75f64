// SPDX-License-Identifier: Apache-2.0

// Command gateway serves the Chat Completions, Responses and Messages APIs in front of engines: vLLM, SGLang, TensorRT-LLM,
// llama.cpp, Ollama and embedded ones, and in front of endpoints that have one of these APIs themselves.
//
//	go run ./examples/gateway -engine http://127.0.0.1:8000
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
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/otel"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/protocols/replay"
	placement "github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/tokenizers/prompt"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // another signal ends the process
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, nil)
	if status, ok := harnessStatus(err); ok {
		os.Exit(status)
	}
	cli.Exit("gateway", err)
}

// run serves until ctx ends, and logs to stderr. If ready is not nil, run calls it with its address once it listens.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, ready func(addr string)) error {
	hangup := make(chan os.Signal, 1)
	notifyHangup(hangup)
	defer signal.Stop(hangup)

	c, err := parse(args, stdout)
	if err != nil {
		return err
	}
	p := &program{metrics: newMetrics(), strict: c.Check}
	p.level.Set(c.LogLevel)
	output := &valve{to: stderr}
	if c.LogFile != "" {
		file, err := os.OpenFile(c.LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		output.to = file
	}
	p.log = slog.New(c.LogFormat.handler(output, &p.level))
	log := p.log
	if c.Trace != "" {
		file, err := os.OpenFile(c.Trace, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		p.requests = newRequestTrace(file, log)
	}
	if c.Launch != nil {
		p.key = newKey()
	}
	if p.signer, err = signer(os.Getenv("WEFT_REASONING_KEY")); err != nil {
		return err
	}
	if p.tracer, err = otel.FromEnv(ctx, "weft-gateway", cli.Version(), log); err != nil {
		return err
	}
	if p.tracer != nil {
		defer func() {
			ctx, done := context.WithTimeout(context.WithoutCancel(ctx), tracesGrace)
			defer done()
			p.tracer.Shutdown(ctx) // logs errors
		}()
	}
	cert, err := c.certificate()
	if err != nil {
		return err
	}
	now, err := p.start(ctx, c)
	if err != nil {
		return err
	}
	defer func() { now.stop() }()
	if c.Check {
		fmt.Fprintf(stdout, "The configuration is valid: %s\n", strings.Join(now.models, ", "))
		return nil
	}
	p.use(cert)
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	server := serve.NewServer(now.gateway, &serve.ServerOptions{TLS: p.tls(), H2C: c.H2C, PerAddress: c.PerAddress, Logger: log})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	log.Info("gateway listening", "address", l.Addr().String(), "tls", cert != nil, "models", strings.Join(now.models, ", "))
	at := newEndpoint(c, l.Addr().String(), cert != nil)
	at.model = now.models[0]
	stop := ctx.Done()
	var harness <-chan error // its end
	if c.Launch != nil {
		at.key, at.window = p.key, now.window
		output.closed.Store(c.LogFile == "") // the terminal belongs to the harness
		var kill func()
		if harness, kill, err = launch(c.Launch, at, stdout, stderr); err != nil {
			return errors.Join(err, endNow(server.Shutdown))
		}
		defer kill()
		stop = nil // the harness ends the program
	} else {
		printClients(stdout, at)
	}
	if ready != nil {
		ready(l.Addr().String())
	}

	var old sync.WaitGroup // generations that end with their last request
	defer old.Wait()
	closing, cancel := context.WithCancel(context.Background()) // ends their time
	defer cancel()
	for {
		select {
		case err := <-ended:
			return err
		case err := <-harness:
			cancel() // of gateways that were replaced
			return errors.Join(err, endNow(server.Shutdown), <-ended)
		case <-hangup:
			next, err := p.reload(ctx, args, c)
			if err != nil {
				log.Error("configuration not reloaded", "err", err)
				continue
			}
			last := now
			now = next
			server.Replace(now.gateway)
			old.Go(func() {
				last.gateway.Drain(closing) // fails only if the program ends
				last.stop()
			})
			log.Info("configuration reloaded", "models", strings.Join(now.models, ", "))
		case <-stop:
			grace := time.Duration(now.config.Grace * float64(time.Second))
			log.Info("gateway draining", "grace", grace)
			deadline, done := context.WithTimeout(context.WithoutCancel(ctx), grace)
			defer done()
			stopOld := context.AfterFunc(deadline, cancel)
			defer stopOld()
			now.gateway.Drain(deadline) // Shutdown reports the error
			old.Wait()
			if err := server.Shutdown(deadline); errors.Is(err, context.DeadlineExceeded) {
				log.Warn("running requests ended", "grace", grace)
			} else if err != nil {
				return err
			}
			return <-ended
		}
	}
}

// A program is the state that survives a reload of the configuration.
type program struct {
	log     *slog.Logger
	level   slog.LevelVar // of log
	signer  *replay.Signer
	metrics *metrics
	store   serve.Store  // of responses
	key     string       // of the harness that was launched, or ""
	tracer  *otel.Tracer // or nil

	requests *requestTrace // or nil

	certificate atomic.Pointer[tls.Certificate] // nil without TLS

	prompts map[settings]*prompt.Model
	strict  bool // an engine that does not answer is an error
}

// tracesGrace is the time in which the last spans may be exported at the end of the program.
const tracesGrace = 2 * time.Second

// A generation is a gateway with its configuration and its embedded engines.
type generation struct {
	config  *config
	gateway *serve.Gateway
	models  []string // names; unknown names are served by the first
	window  int      // of the first model, in tokens
	ends    []func() // of embedded engines and the metrics
}

// stop closes the gateway and then the engines.
func (g *generation) stop() {
	if g.gateway != nil {
		g.gateway.Close()
	}
	for _, end := range slices.Backward(g.ends) {
		end()
	}
	g.ends = nil
}

// reload reads the configuration again and starts a gateway with it. c is the one with which the program began.
func (p *program) reload(ctx context.Context, args []string, c *config) (*generation, error) {
	next, err := parse(args, io.Discard)
	if err != nil {
		return nil, err
	}
	cert, err := next.certificate()
	if err != nil {
		return nil, err
	}
	if (cert != nil) != (p.certificate.Load() != nil) || next.Listen != c.Listen || next.H2C != c.H2C || next.PerAddress != c.PerAddress || next.LogFormat != c.LogFormat {
		p.log.Warn("listen, h2c, max_per_address, log_format and the use of TLS are not changed by a reload")
		next.Listen = c.Listen // determines whether clients need keys
	}
	g, err := p.start(ctx, next)
	if err != nil {
		return nil, err
	}
	if p.certificate.Load() != nil {
		p.use(cert)
	}
	p.level.Set(next.LogLevel)
	return g, nil
}

// start returns a running gateway, which stop ends.
func (p *program) start(ctx context.Context, c *config) (_ *generation, err error) {
	g := &generation{config: c}
	defer func() {
		if err != nil {
			g.stop()
		}
	}()
	policy, err := c.Policy.policy()
	if err != nil {
		return nil, err
	}
	who, err := tenants(c)
	if err != nil {
		return nil, err
	}
	if c.KeysFile != "" {
		if err := who.addFile(c.KeysFile, &c.Limits); err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
	}
	if p.key != "" {
		who.keys = append(who.keys, serve.Key{Secret: p.key, Name: "launch", Concurrent: -1})
	}
	if len(who.keys) == 0 && !c.Anonymous && !onLoopback(c.Listen) {
		return nil, cli.Usagef("%s is not a loopback address: set -keys-file, tenants with keys, or -anonymous to serve everyone who reaches it", c.Listen)
	}
	all, err := p.deployments(ctx, c, g)
	if err != nil {
		return nil, err
	}
	first := all[0]
	opt := serve.Options{
		Model: first.Name, Aliases: first.Aliases, Models: first.Records, Prompts: first.Prompts, Engines: first.Engines, Placement: first.Placement,
		MaxModelLen: first.MaxModelLen, BlockSize: first.BlockSize, More: all[1:], AnyModel: !c.StrictModels,
		MaxChoices: c.MaxChoices, MemoBytes: c.MemoMB << 20,
		StripPreamble: c.StripPreamble, ToolDispatch: c.ToolDispatch, ReasoningDispatch: c.ReasoningDispatch, CallsInReasoning: c.CallsInReasoning,
		Relocate: c.Relocate, SortTools: c.SortTools,
		Policy: policy, Policies: who.policies, Shared: who.shared, Keys: who.keys, Anonymous: c.Anonymous,
		PriorityIs: c.PriorityIs, Signer: p.signer, KeepAlive: seconds(c.KeepAlive), Logger: p.log,
		Hosts: c.Hosts, Origins: c.Origins, MaxRequests: c.MaxRequests, MaxQueue: c.MaxQueue, QueueTimeout: max(1, seconds(c.QueueTimeout)),
		MaxMemory: int64(c.MaxMemoryMB) << 20, MaxBody: int64(c.MaxBodyMB) << 20,
		Preempt: c.Preempt, Unconstrained: c.Unconstrained, Retries: cmp.Or(c.Retries, -1), HealthInterval: cmp.Or(seconds(c.HealthInterval), -1), EngineSilence: max(1, seconds(c.EngineSilence)),
	}
	if c.Metrics != "off" {
		p.metrics.watch(&opt)
		opt.Metrics, opt.MetricsOpen = p.metrics.handler(p.log), c.Metrics == "open"
	}
	if p.requests != nil {
		done := opt.OnDone
		opt.OnDone = func(r serve.Record) {
			if done != nil {
				done(r)
			}
			p.requests.add(r)
		}
	}
	if p.tracer != nil {
		opt.Tracer = tracer{p.tracer}
	}
	opt.Version = cli.Version()
	if c.StoreMB > 0 {
		opt.Store = &p.store
	}
	if g.gateway, err = serve.New(&opt); err != nil {
		return nil, err
	}
	p.store.Resize(int64(c.StoreMB) << 20)
	window := 131072
	if first.Prompts != nil {
		window = cmp.Or(first.Prompts.Window(), window)
	}
	g.models, g.window = modelNames(&opt), cmp.Or(first.MaxModelLen, window)
	p.metrics.add(g)
	g.ends = append(g.ends, func() { p.metrics.remove(g) })
	return g, nil
}

// deployments returns the models of c with their engines. The error has what is wrong with each of them.
func (p *program) deployments(ctx context.Context, c *config, g *generation) ([]serve.Model, error) {
	var all []serve.Model
	var faults []error
	used := map[settings]*prompt.Model{}
	for i, one := range c.each() {
		m, err := p.deploy(ctx, one, g, used)
		switch {
		case err != nil && len(c.Deployments) > 0:
			faults = append(faults, fmt.Errorf("model %d (%s): %w", i+1, cmp.Or(one.Model, "of its engine"), err))
		case err != nil:
			faults = append(faults, err)
		default:
			all = append(all, *m)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	p.prompts = used
	return all, nil
}

// deploy asks the engines of a model, loads the model, and starts embedded engines, which end with g. used gets the loaded
// model.
func (p *program) deploy(ctx context.Context, c *config, g *generation, used map[settings]*prompt.Model) (*serve.Model, error) {
	if err := c.checkModel(); err != nil { // parse has not, for -check
		return nil, err
	}
	list, err := records(c.Models)
	if err != nil {
		return nil, err
	}
	found, err := p.discover(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.ID == c.Model { // embedded engines get the same limit
			c.MaxModelLen = cmp.Or(c.MaxModelLen, int(min(m.ContextWindow, math.MaxInt)))
		}
	}
	var prompts *prompt.Model
	if !c.managed() {
		if prompts, err = p.model(c, used); err != nil {
			return nil, err
		}
		if err := found.checkTokens(ctx, c, prompts.Tokenizer(), p.log); err != nil {
			return nil, err
		}
		found.checkTemplate(ctx, c, prompts, p.log)
	}
	m := &serve.Model{Name: c.Model, Aliases: c.Aliases, Records: list, Prompts: prompts, MaxModelLen: c.MaxModelLen, BlockSize: c.BlockSize}
	if c.Placement != "" {
		if m.Placement, err = placement.Named(c.Placement); err != nil {
			return nil, err
		}
	}
	for i, e := range c.Engines {
		name := e.Name
		if name == "" {
			name = fmt.Sprintf("%s-%d", e.Kind, i)
		}
		hints, err := e.hints()
		if err != nil {
			return nil, fmt.Errorf("config: engine %q: %w", name, err)
		}
		if e.kind().Traits().Text {
			if list := omitted(prompts); len(list) > 0 {
				p.log.Warn("the engine omits markers of the family from its output", "engine", name, "family", prompts.Family(), "markers", list)
			}
		}
		if len(e.Adapters) > 0 && e.Kind != "vllm" {
			return nil, cli.Usagef("config: engine %q: only engines of the kind vllm have adapters", name)
		}
		to := serve.Engine{Name: name, URL: e.URL, Kind: e.kind(), Hints: hints, MaxRequests: cmp.Or(e.MaxRequests, c.EngineRequests), Blocks: e.CacheBlocks}
		if e.Asked {
			to.Check, to.Unchecked = c.checkAgain(e, prompts.Tokenizer()), e.Silent
		}
		switch {
		case e.inProcess():
			local := vllm.New(prompts.Tokenizer(), &vllm.Options{Model: c.Model, BlockSize: c.BlockSize, MaxModelLen: prompts.Window(), Blocks: e.CacheBlocks})
			url, end, err := listen("127.0.0.1:0", local)
			if err != nil {
				return nil, err
			}
			g.ends = append(g.ends, end, local.Close)
			to.URL, to.Events = url, local.Events
		case e.Kind == "embedded":
			to.Events = vllm.Follow(e.URL, p.log)
		default:
			if m, ok := to.Kind.(upstream.Managed); ok {
				to.Kind, to.Model = m.For(e.Dialect), e.Model
			}
			if to.APIKey, err = e.key(); err != nil {
				return nil, err
			}
			to.Adapters = e.Adapters
			if err := e.follow(&to, p.log); err != nil {
				return nil, fmt.Errorf("config: engine %q: %w", name, err)
			}
		}
		m.Engines = append(m.Engines, to)
	}
	return m, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// onLoopback reports whether only this machine reaches an address.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // listening on it fails
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// settings are those with which a model is loaded.
type settings struct {
	model, dir, calls, reasoning, past string
	window                             int
	keepEmpty                          bool
}

// model returns the model, adds it to used, and loads it only if its settings have changed.
func (p *program) model(c *config, used map[settings]*prompt.Model) (m *prompt.Model, err error) {
	from := settings{c.Model, c.ModelDir, c.ToolCallParser, c.ReasoningParser, c.PastReasoning, c.MaxModelLen, c.KeepEmpty}
	if m = p.prompts[from]; m == nil {
		if m, err = model(c, p.log); err != nil {
			return nil, err
		}
	}
	used[from] = m
	return m, nil
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
