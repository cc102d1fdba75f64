// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/catalog"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/router/policy"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// Options configures a Gateway. Model and at least one engine are required.
type Options struct {
	Model   string   // name of the model at clients and engines
	Aliases []string // other names that clients may use for the model
	// Models holds the records of Model and its aliases for GET /v1/models. A record with an ID other than Model is an
	// alias, by default of Model. Model and Aliases without a record get one; the aliases come last in the list.
	Models []catalog.Model
	// AnyModel makes Model serve requests for names that are not listed, under those names. By default they get status 404.
	AnyModel bool
	// Prompts renders prompts and decodes output; it must have a tokenizer and a family. It must be nil if the engines are
	// managed endpoints, see upstream.Managed. A model has either those or other engines.
	Prompts *prompt.Model
	Engines []Engine
	// Placement chooses the engine for a request; nil means policy.Default().
	Placement policy.Policy
	// More holds further models, each with its own engines.
	More []Model

	MaxModelLen int   // prompt and output tokens per request; 0 means the window in Model's record, Prompts.Window(), or 131072. Records may set less
	MaxChoices  int   // choices per chat request; 0 means 16
	BlockSize   int   // tokens per cache block of the engines; 0 means DefaultBlockSize
	MaxBody     int64 // bytes of a request body; 0 means 64 MiB
	// Store keeps responses that clients may get and continue with previous_response_id; nil means that none is stored.
	// Gateways may share it, so that a gateway that replaces another one has its responses.
	Store       *Store
	SocketBytes int64 // memory for the last responses of WebSocket connections; 0 means 256 MiB
	MemoBytes   int   // memory for the last requests of conversations, while they are in use; 0 means 256 MiB; see prompt.Memo

	StripPreamble bool // remove the billing header that harnesses put before the system text
	// Relocate moves text that differs between users, directories and days to the end of the system text. SortTools
	// sorts the tools by name. See preamble.Options. Either one also implies StripPreamble.
	Relocate, SortTools bool
	// Signer signs reasoning that is sent to clients and verifies it when they return it; modified reasoning is
	// dropped. nil means a Signer with a random key: after a restart, earlier reasoning is still accepted, but no
	// longer verified.
	Signer *replay.Signer
	// Keys are the API keys. If there are any, requests without one of them are refused. Anonymous permits requests
	// without a key, which have no tenant; a wrong key is still refused.
	Keys      []Key
	Anonymous bool
	// Tenant returns the authenticated tenant of a request without a Key, or "". nil means always "".
	Tenant func(*http.Request) string
	// Shared lists the tenants that share cached prefixes with each other and with requests without a tenant. Every
	// other tenant is isolated: neither response times nor counts of cached tokens reveal its prompts.
	Shared map[string]bool
	// Policy limits the hints of tenants that Policies does not contain. The zero Policy grants no priority over other
	// requests.
	Policy   intent.Policy
	Policies map[string]intent.Policy // by tenant
	// PriorityIs is the polarity of the body's priority field, which varies by engine. By default the field is ignored.
	PriorityIs intent.Polarity
	// ToolDispatch and ReasoningDispatch permit tool_call_dispatch and reasoning_dispatch events in chat streams of
	// clients that request them with a header.
	ToolDispatch, ReasoningDispatch bool
	// CallsInReasoning also sends calls that the model writes inside its reasoning. Some models omit the end of their
	// reasoning before a call; others draft calls that are not meant to run. By default such calls are not sent.
	CallsInReasoning bool
	// OnToolCall is called for each complete call that may run by the rule of event.Dispatcher, in all APIs, as soon as
	// its last argument byte has been decoded and, in a stream, written to the client. A client that does not read its
	// stream therefore delays it, and it is not called if writing the call to the client failed. It is called from the
	// request's goroutine, between two chunks of output, and should return quickly.
	OnToolCall func(ctx context.Context, c ToolCall)
	// OnReasoning is called for each run of reasoning when it ends, like OnToolCall.
	OnReasoning func(ctx context.Context, r Reasoning)
	// OnDone is called when a request that was placed on an engine ends, and for each prompt of a Completions request with several.
	// It is called from a goroutine of the request.
	OnDone func(Record)
	// OnRefuse is called when a request to an API ends without having been placed on an engine. model is Options.Model if
	// the request failed before its model was known. err is the error that the client got.
	OnRefuse func(model, api string, err *apierr.Error)
	// OnOutput is called for the tokens of a request's first choice that arrived together, with the time since the tokens
	// before, and not for the first ones. Both functions are called from a goroutine of the request and should return quickly.
	OnOutput func(model string, tokens int, took time.Duration)
	// OnPrefetch is called when the known part of a conversation's next prompt was computed or was not, and again when the next prompt has
	// begun with it, from goroutines of requests. Clients ask for it with intent.Intent.Prefetch.
	OnPrefetch func(Prefetch)

	// Tracer follows requests, to trace them; nil means that they are not traced.
	Tracer Tracer

	// Metrics serves GET /metrics to clients on this machine, but not through a reverse proxy, and to clients with a Key
	// without a Tenant. MetricsOpen serves it to all clients. nil means that there is no such path.
	Metrics     http.Handler
	MetricsOpen bool

	KeepAlive     time.Duration // silence before a stream sends a keep-alive; 0 means 10 s
	BodyTimeout   time.Duration // time in which the body of a request must arrive; 0 means 1 min
	WriteTimeout  time.Duration // time in which a client must accept a write of up to 256 KiB, or seven eighths of it; 0 means 30 s
	EngineSilence time.Duration // silence after which a request to an engine fails; 0 means 10 min

	MaxRequests  int           // requests at the same time, waiting ones included; 0 means 2048. More get status 503
	MaxQueue     int           // requests that wait for an engine of a model; 0 means 512. More get status 503
	QueueTimeout time.Duration // time for which a request waits for an engine; 0 means 30 s
	MaxMemory    int64         // bytes for the bodies and output of all requests, an estimate; 0 means 1 GiB. Beyond it, requests get status 503
	// Unconstrained permits requests whose demands on the form of the output no engine enforces: the demands are
	// ignored. By default such requests get status 400.
	Unconstrained bool
	// Retries is the maximum number of further engines that get a request whose engine failed before the client had
	// output; 0 means 1, and a negative value none. All requests together have a budget of one retry for ten requests.
	Retries int
	// Preempt makes requests without output give way to requests of a higher intent.Intent.Tier: the request to the engine is canceled,
	// and sent again later. It is for engines that run requests in the order of arrival.
	Preempt bool
	// HealthInterval is the time between probes of the engines' /health; 0 means 5 s. If negative, there are no probes,
	// and engines that were ejected stay so.
	HealthInterval time.Duration
	// Hosts and Origins limit what browsers may do with the gateway. A request to a loopback address must name a loopback
	// host or one of Hosts, and a request of a web page must come from the gateway's own origin or one of Origins, each
	// of the form https://host, which then can also read responses.
	Hosts, Origins []string

	Version   string            // of the program, for GET /version
	Transport http.RoundTripper // connects to engines; nil means a transport like http.DefaultTransport
	Logger    *slog.Logger      // gets no text of requests and responses, and no keys; nil means no logs
}

// DefaultBlockSize is the number of tokens in a cache block if Options.BlockSize is 0: vLLM's default.
const DefaultBlockSize = 16

// Engine specifies a server behind the gateway.
type Engine struct {
	Name        string // unique; "" means the URL
	URL         string // base address, without /v1
	APIKey      string // sent as a bearer token, or in the form of the kind; "" means no key
	Model       string // name of the model at a managed endpoint; "" means the gateway's name
	MaxRequests int    // requests at the same time; 0 means 256. More wait in the gateway
	// Blocks is the number of cache blocks of Options.BlockSize tokens that fit on the engine's devices; 0 means unknown. The router
	// prefers engines that have room for a request. An engine without Events is not expected to hold more blocks.
	Blocks int
	// PrefillPerSecond is the prefill speed that the router assumes, in prompt tokens per second. 0 means that the router begins with
	// 70,000 and learns the rates of all engines.
	PrefillPerSecond float64
	// Hints specifies the hints that the engine accepts. nil means the hints of its kind without options.
	Hints *intent.Target
	// Events adds the cache events of the engine to a stream until cancel is called; see the embedded engine and package
	// zmq. If nil, the router predicts the contents of the cache from the prompts sent to the engine. The size of the
	// engine's blocks must be Options.BlockSize.
	Events func(*index.Stream) (cancel func(), err error)
	// Kind specifies how the engine is asked and what it can do. nil means [upstream.Embedded].
	Kind upstream.Kind
	// Adapters lists the LoRA adapters of the model that the engine has loaded. The gateway serves each of them as a model;
	// only engines that have it get its requests, with its name as the model.
	Adapters []string
	// Copies specifies that the events report every copy of a block, as vLLM's do; see index.StreamOptions.
	Copies bool
	// Check asks the engine what it is and compares that with the configuration. A difference is an error that matches
	// ErrContradiction. The gateway calls Check before an engine that may have been restarted gets requests, and once a minute.
	// After a contradiction, the engine gets none until Check succeeds. nil means that engines are not compared.
	Check func(context.Context) error
	// Unchecked specifies that Check has not succeeded yet: it is called before the first request.
	Unchecked bool
}

// ToolCall is a complete tool call of the model.
type ToolCall struct {
	RequestID string
	Choice    int    // index of the choice, from 0
	ID        string // as sent to the client; for the Messages API, ids of the model are escaped
	Name      string
	Arguments string // exactly as generated: JSON, or blank for {}
	Custom    bool   // Arguments is free text and not JSON
}

// Reasoning is a completed run of the model's reasoning.
type Reasoning struct {
	RequestID string
	Choice    int    // index of the choice, from 0
	Text      string // exactly as generated
}

// Record describes a completed request.
type Record struct {
	RequestID       string          // the client's, if it sent one
	EngineRequestID string          // X-Request-Id at the engine
	API             string          // chat, responses, messages
	Model           string          // that serves the request; the client may have used another name
	Adapter         string          // of the model; "" means none
	Worker          string          // name of the engine
	Decision        router.Decision // reason for that engine, with the scores of each engine
	// Hashes are the sequence hashes of the prompt's complete blocks, each of BlockSize tokens. OnDone must not modify them. At
	// managed endpoints, both are zero.
	Hashes    []uint64
	BlockSize int
	Usage     event.Tokens
	Finish    string // finish reason of the first choice, or the class of the error
	// CacheExcess is the number of cached tokens that the engine reported in excess of Decision.CachedEstimate, negative if it
	// had fewer, or 0 if they agree within a cache block or the engine does not report them.
	CacheExcess int64
	Stripped    int // bytes of volatile preamble that were removed

	Tenant  string              // result of Options.Tenant
	Intent  intent.Intent       // hints that were granted
	Faults  []intent.Fault      // invalid hints
	Limited []intent.Change     // hints that the policy limited or dropped
	Holds   []intent.Breakpoint // retention requested from the engine by the breakpoints of Intent, in whole cache blocks
	// Prefix compares the prompt with the previous one of its session. Without a session, Known is false.
	Prefix Prefix
	// Outcomes holds the outcome for the reasoning of each turn. Reasoning holds the results of wire.CheckReasoning.
	Outcomes  []replay.Outcome
	Reasoning []wire.ReasoningCheck

	// Usage and the times are also set if the request failed; FirstByte is 0 if there was no output.
	Queued    time.Duration // until the request was placed
	Placing   time.Duration // the router's part of it, without waiting for an engine with room
	Sent      time.Duration // from the start of the request until it was placed on Worker
	FirstByte time.Duration // from the start of the request
	Total     time.Duration
}

// Prefix is the result of comparing a prompt with the previous one of its session, in bytes of the canonical prompt of
// package preamble.
type Prefix struct {
	Known bool // there is a previous prompt
	preamble.Divergence
}

// Gateway serves the three APIs. Create one with New and release it with Close. It is safe for concurrent use by
// multiple goroutines.
type Gateway struct {
	opt         Options
	mux         *http.ServeMux
	deployments map[string]*deployment // by model
	names       []string               // of the models, in the order of the options
	models      *catalog.Catalog
	histories   *histories      // the last prompt of each recent session
	memo        *prompt.Memo    // of conversations, to render only what is new
	recent      Store           // last responses of connections
	ctx         context.Context // ends at Close
	cancel      context.CancelCauseFunc

	idPrefix string // prefix of request ids; distinguishes gateways

	clients []*client // of Options.Keys
	origins *http.CrossOriginProtection
	memory  budget
	work    slots                   // for decoding, rendering and encoding
	running atomic.Int64            // admitted requests
	sockets atomic.Int64            // WebSocket connections
	next    atomic.Pointer[Gateway] // the one that replaced this one in a Server, or nil

	mu      sync.Mutex
	ids     uint64
	drain   bool
	leaving chan struct{} // closed when drain is set
	done    bool
	serving int            // running handlers
	quiet   chan struct{}  // closed when draining and serving is 0
	busy    sync.WaitGroup // running handlers and the watch of the engines; Add under mu, not after done
}

var errClosed = errors.New("serve: gateway closed")

// New returns a Gateway. Options without a model name, prompts or engines, invalid engine addresses, invalid records,
// and negative sizes and times are errors. The caller must call Close.
func New(o *Options) (*Gateway, error) {
	g := &Gateway{opt: *o, deployments: map[string]*deployment{}}
	opt := &g.opt
	opt.MaxChoices = cmp.Or(opt.MaxChoices, 16)
	opt.MaxBody = cmp.Or(opt.MaxBody, 64<<20)
	opt.KeepAlive = cmp.Or(opt.KeepAlive, 10*time.Second)
	opt.BodyTimeout = cmp.Or(opt.BodyTimeout, time.Minute)
	opt.WriteTimeout = cmp.Or(opt.WriteTimeout, 30*time.Second)
	opt.EngineSilence = cmp.Or(opt.EngineSilence, 10*time.Minute)
	opt.MaxRequests = cmp.Or(opt.MaxRequests, 2048)
	opt.MaxQueue = cmp.Or(opt.MaxQueue, 512)
	opt.QueueTimeout = cmp.Or(opt.QueueTimeout, 30*time.Second)
	opt.MaxMemory = cmp.Or(opt.MaxMemory, 1<<30)
	opt.Retries = max(0, cmp.Or(opt.Retries, 1))
	opt.HealthInterval = cmp.Or(opt.HealthInterval, 5*time.Second)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case opt.MaxChoices < 0 || opt.MaxBody < 0 || opt.MemoBytes < 0 || opt.SocketBytes < 0:
		return nil, errors.New("serve: MaxChoices, MaxBody, MemoBytes and SocketBytes must not be negative")
	case opt.KeepAlive < 0 || opt.BodyTimeout < 0 || opt.WriteTimeout < 0 || opt.EngineSilence < 0 || opt.QueueTimeout < 0:
		return nil, errors.New("serve: KeepAlive, BodyTimeout, WriteTimeout, EngineSilence and QueueTimeout must not be negative")
	case opt.MaxRequests < 0 || opt.MaxQueue < 0 || opt.MaxMemory < 0:
		return nil, errors.New("serve: MaxRequests, MaxQueue and MaxMemory must not be negative")
	}
	models, err := opt.models()
	if err != nil {
		return nil, err
	}
	if g.clients, err = newClients(opt.Keys); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if g.origins, err = newOrigins(opt.Origins); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if g.models, err = newCatalog(models); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if opt.Signer == nil {
		key := make([]byte, replay.KeySize)
		rand.Read(key)
		if opt.Signer, err = replay.NewSigner(key, nil); err != nil {
			return nil, fmt.Errorf("serve: %w", err)
		}
	}
	g.memo = prompt.NewMemo(opt.MemoBytes)
	g.recent.Resize(cmp.Or(opt.SocketBytes, 256<<20))
	if g.histories, err = newHistories(); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	g.idPrefix = strconv.FormatInt(time.Now().UnixNano(), 36)
	g.memory.free.Store(opt.MaxMemory)
	g.work = make(slots, runtime.GOMAXPROCS(0))
	g.leaving, g.quiet = make(chan struct{}), make(chan struct{})
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.mux = g.routes()
	for _, m := range models {
		if err := g.deploy(m); err != nil {
			g.Close()
			return nil, fmt.Errorf("serve: %w", err)
		}
	}
	g.busy.Go(g.trim)
	if opt.HealthInterval > 0 {
		for _, d := range g.deployments {
			g.busy.Go(func() { d.fleet.watch(g.ctx, opt.HealthInterval) })
		}
	}
	return g, nil
}

// Drain refuses new requests with status 503 in the form of their API, makes /ready fail, and waits until the running
// requests have ended or ctx ends. It returns the cause of ctx if requests are still running. Call Close afterwards.
func (g *Gateway) Drain(ctx context.Context) error {
	g.mu.Lock()
	g.leave()
	g.mu.Unlock()
	select {
	case <-g.quiet:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave begins to drain. g.mu must be held.
func (g *Gateway) leave() {
	if !g.drain {
		g.drain = true
		close(g.leaving)
	}
	g.settle()
}

// settle ends Drain if no request is running. g.mu must be held.
func (g *Gateway) settle() {
	if g.drain && g.serving == 0 {
		select {
		case <-g.quiet:
		default:
			close(g.quiet)
		}
	}
}

// draining reports whether Drain was called.
func (g *Gateway) draining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.drain
}

// Close ends all requests with an error, waits for them to return and closes the connections to the engines. A client
// that does not read its response delays it by at most two seconds. Later requests get status 503.
func (g *Gateway) Close() {
	g.mu.Lock()
	first := !g.done
	g.done = true
	g.leave()
	g.mu.Unlock()
	g.cancel(errClosed)
	g.busy.Wait()
	if first {
		for _, d := range g.deployments {
			d.fleet.close()
		}
	}
}

// begin counts a running handler and returns a function that ends it, or false if the gateway is closed. Requests that
// are refused because it drains are not counted.
func (g *Gateway) begin() (end func(), refuse, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return nil, true, false
	}
	g.busy.Add(1)
	if g.drain {
		return g.busy.Done, true, true
	}
	g.serving++
	return func() {
		g.mu.Lock()
		g.serving--
		g.settle()
		g.mu.Unlock()
		g.busy.Done()
	}, false, true
}

// aside calls f in a goroutine for which Close waits, unless the gateway drains. Drain does not wait for it.
func (g *Gateway) aside(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.drain {
		g.busy.Go(f)
	}
}

// ServeHTTP serves one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	end, late, open := g.begin()
	if next := g.next.Load(); late && next != nil { // the request came while this one was replaced
		if open {
			end()
		}
		next.ServeHTTP(w, r)
		return
	}
	if open {
		defer end()
	}
	t := newTimedWriter(w, r, g.opt.WriteTimeout)
	defer t.end()
	// The deadline holds until readBody lifts it. It is needed even if the handler does not read the body, because
	// net/http may read the rest of a body before it sends the response.
	t.rc.SetReadDeadline(time.Now().Add(g.opt.BodyTimeout)) // an error means that the server does not support deadlines
	if g.cors(t, r) {
		return
	}
	if late && !isProbe(r) {
		t.Header().Set("Connection", "close")
		g.refuse(t, r, apiOf(r), &apierr.Error{Why: event.Overloaded, Message: "Service unavailable: the server is shutting down."})
		return
	}
	if err := g.guard(t.Header(), r); err != nil {
		t.Header().Set("Connection", "close")
		g.refuse(t, r, apiOf(r), err)
		return
	}

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(g.ctx, func() {
		cancel(errClosed)
		t.expire()
	})()
	g.mux.ServeHTTP(t, r.WithContext(ctx))
}

// requestID returns the client's request id if it is printable ASCII of at most 128 bytes, or a new one, and sets the
// response header. Engines get another one: clients choose ids, and engines of several clients need unique ones.
func (g *Gateway) requestID(w http.ResponseWriter, r *http.Request, a *wire.API) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		id = g.newID()
	}
	w.Header().Set("X-Request-Id", id)
	if a == wire.Messages {
		w.Header().Set("Request-Id", id)
	}
	return id
}

// newID returns a unique request id.
func (g *Gateway) newID() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids++
	return g.idPrefix + "-" + strconv.FormatUint(g.ids, 36)
}
