// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/preamble"
	"github.com/weft-go/weft/protocols/replay"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/router"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// This file handles a request, in the order of these functions:
//
//	respond  -> admit     check the key and the limits
//	         -> read      decode, read the hints, stabilize; backend.prepare: render and encode, or convert
//	         -> constrain backend: what the output must be, and which engines enforce it
//	         -> follow    compare with the previous prompt of the session
//	         -> choose    backend.hash; look up, place on an engine
//	         -> relay     backend.receive: send to the engine, decode; encode, write
//	         -> finish    report to the router, the log and OnDone
//
// The engines of a model get either the tokens of prompts (tokenBackend, in this file) or requests in an API of their own
// (managedBackend, in managed.go).

// A backend does what depends on the form in which the engines of a model get requests. The methods are called in this order,
// open and receive for each attempt.
type backend interface {
	accept(r *http.Request, size int) error               // checks the decoded request, whose body has a size, and chooses the model's family
	prepare(ctx context.Context, turn *prompt.Turn) error // turns the request into what engines get
	constrain() error                                     // excludes the engines that cannot do what the request demands
	hash() error                                          // sets what the router needs to know of the prompt
	dropped(e *engine) []string                           // the fields without effect at an engine
	open() (event.Event, error)                           // begins to decode a response and returns the event that starts it
	receive(ctx context.Context) (fault, err error)       // sends the request to the chosen engine and its output to c.out. fault is the error of the engine
	used() event.Tokens                                   // tokens so far
	count(ctx context.Context) (int64, error)             // instead of what follows prepare: the tokens of the prompt
}

// A call is the state of one request.
type call struct {
	g      *Gateway
	api    *wire.API
	id     string // request id, which the client may choose
	unique string // request id at engines, and base of response and tool call ids; unlike id, always unique
	begun  time.Time
	rec    Record
	client *client // of the request's key; nil if it needs none
	memory share   // for the body and the output

	isolated bool // the cache salt is the tenant's own

	req         *block.Request
	choices     []choice
	notices     notices
	signer      *replay.Signer
	layout      preamble.Prompt               // order in which the template writes system text and tools
	early       event.Dispatcher              // calls Options.OnToolCall and OnReasoning
	*deployment                               // of the request's model
	adapter     string                        // "" for the model itself
	model       *prompt.Model                 // with the family that decodes the output
	prompts     []plainPrompt                 // of a Completions request
	text        *prompt.Prompt                // rendered
	prompt      []uint32                      // its token ids
	tags        map[upstream.TokenKind][]byte // what the request demands of the output, for each kind of engine
	wish        bool                          // the demand is only one of strict tools, which is dropped where it cannot be enforced
	logprobs    *int                          // candidates per token whose log probabilities the client gets; nil means none
	echo        *string                       // text of the prompt, with which the output begins; nil means that it does not
	mute        bool                          // the response has no output
	part        bool                          // the call is for one of several prompts
	siblings    []*call                       // for each prompt, if there are several
	backend     backend                       // of the deployment
	asked       engineRequest                 // body for the engine
	compact     bool                          // the response is a summary of the conversation
	search      bool                          // the client runs searches for tools
	joined      bool                          // the request continues a stored conversation
	stored      bool                          // the response is stored
	input       []byte                        // all input, if the response may be continued
	lane        *lane                         // of the request in its WebSocket connection; nil over HTTP
	warm        bool                          // the request only prepares the next one of its lane
	ignored     []string                      // fields of the request without effect
	hinted      []string                      // fields of the request that are hints
	route       router.Request
	place       *placement

	pace    pace    // of the output, for Options.OnOutput
	watch   silence // cancels the engine's request after Options.EngineSilence
	output  int64   // bytes of output, and how many of them memory was taken for
	paid    int64
	retries int  // attempts after the first one
	sent    bool // the client or a callback has output of the engine
	over    bool // the tracer knows of its end
	events  []event.Event
	out     output

	preempted atomic.Bool // the router needs the engine for a request of a higher tier

	ahead, before *ahead          // of this request and of the conversation's previous one, or nil; see prefetch.go
	response      event.Collector // the response, if ahead is not nil
}

// A choice decodes one of the outputs for a request.
type choice struct {
	dec  *prompt.Decoder
	why  event.Why // finish reason; None while the choice is open
	left quota

	logprobs *logprobs // nil if the client gets none
	echoed   bool      // the text of the prompt was sent
}

// respond serves a request.
func (g *Gateway) respond(w http.ResponseWriter, r *http.Request, a *wire.API) {
	c := g.newCall(w, r, a)
	r = c.traced(r)
	defer c.unwound(r.Context())
	if err := c.admit(r); err != nil {
		c.decline(w, r, err)
		return
	}
	defer c.release()
	err := c.read(w, r)
	if err == nil && !c.warm {
		err = c.backend.constrain()
	}
	if err != nil {
		c.decline(w, r, err)
		return
	}
	if c.warm {
		c.answerWarm(w)
		c.ended(r.Context(), nil)
		return
	}
	c.client.spend(c.begun, len(c.prompt))
	c.follow()
	if err = c.choose(r.Context()); err != nil {
		c.decline(w, r, err)
		return
	}
	c.announce(w.Header())
	defer func() { c.leave((*router.Ticket).Cancel) }() // no effect after finish; releases the reservation if relay panics
	err = c.relay(w, r)
	c.finish(r.Context(), err)
	c.prefetch(r, err)
}

// decode decodes a body, whose memory the next request may use, and returns its size.
func (c *call) decode(body []byte) (turn *prompt.Turn, size int, err error) {
	defer clientBodies.put(body) // Decode copies what it keeps
	if body, err = c.join(body); err != nil {
		return nil, 0, err
	}
	turn = c.g.memo.Turn(c.rec.Tenant, "", "")
	c.req, err = turn.Decode(c.api, body, &block.Limits{Body: int(c.g.opt.MaxBody)})
	return turn, len(body), err
}

// read decodes the request and turns it into what engines get.
func (c *call) read(w http.ResponseWriter, r *http.Request) error {
	g, ctx := c.g, r.Context()
	body, err := readBody(w, r, g.opt.MaxBody, &c.memory, clientBodies.get())
	if err != nil {
		return err
	}
	if err := g.work.take(ctx); err != nil {
		return err
	}
	defer g.work.give()
	turn, size, err := c.decode(body)
	if err != nil {
		return err
	}
	if err := g.check(c, r.URL.Path); err != nil {
		return err
	}
	if err := versioned(c.req, r.Header.Get("Anthropic-Version")); err != nil {
		return err
	}
	record, d, _ := g.lookup(c.req.Params().Model) // which check found
	c.use(record, d)
	if err := c.backend.accept(r, size); err != nil {
		return err
	}
	c.notices = g.notices(r.Header)
	if err := c.readHints(r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.expand(); err != nil {
		return err
	}
	if err := c.offerSearch(); err != nil {
		return err
	}
	if err := c.summarize(); err != nil {
		return err
	}
	return c.backend.prepare(ctx, turn)
}

// A tokenBackend renders prompts, sends their token ids, and parses the output.
type tokenBackend struct{ *call }

// accept implements backend.
func (c tokenBackend) accept(r *http.Request, size int) (err error) {
	if err := cmp.Or(mistyped(c.req, otherTypes), untyped(c.req)); err != nil {
		return err
	}
	c.ignore()
	if err := c.switchable(); err != nil {
		return err
	}
	family := r.Header.Get("X-Weft-Tool-Call-Parser")
	if c.api == wire.Completions {
		family = "passthrough"
	}
	if c.model, err = c.deployment.families.get(family); err != nil {
		return &apierr.Error{Why: event.Invalid, Message: err.Error(), Cause: err}
	}
	c.layout = c.model.Preamble()
	if err := readable(c.req); err != nil && !c.warm {
		return err
	}
	return c.measureJSON(r.Context(), size)
}

// prepare implements backend: it renders and encodes the prompt.
func (c tokenBackend) prepare(ctx context.Context, turn *prompt.Turn) (err error) {
	if c.api == wire.Completions {
		return c.plain(ctx)
	}
	if err := c.hush(); err != nil {
		return err
	}
	turn.Bind(c.route.Intent.Salt, c.route.Intent.Session.ID)
	if c.text, err = turn.Render(c.model, c.req, time.Now()); c.text != nil {
		c.note("not rendered", c.text.Losses)
	}
	if err != nil && c.warm { // some templates need a message of the user
		return nil
	}
	if err != nil {
		return err
	}
	c.unrendered()
	c.rec.Outcomes = c.text.Outcomes
	// Tenants with different salts share no cache entries, so response times do not reveal the prompts of others.
	c.text.Namespace = c.route.Intent.Salt
	if err := c.measure(ctx, c.text.Text); err != nil {
		return err
	}
	c.prompt = c.text.IDs()
	c.locate()
	return nil
}

// open implements backend: it creates the decoders of the choices.
func (c tokenBackend) open() (event.Event, error) {
	c.choices = make([]choice, choices(c.req))
	for i := range c.choices {
		opt := &prompt.DecoderOptions{ID: c.unique, Choice: int32(i), EngineStops: c.kind(c.place.engine).Traits().Stops && !c.wantsPromptLogprobs(), MaxTokens: c.room()}
		if i > 0 {
			opt.Shared = c.choices[0].dec
		}
		var err error
		if c.choices[i].dec, err = c.model.NewDecoder(c.req, c.text, opt); err != nil {
			c.choices = nil
			return event.Event{}, err
		}
		c.choices[i].logprobs = c.newLogprobs(int32(i))
		c.choices[i].left = newQuota(c.choices[i].dec.Limit(), c.longest)
	}
	dec := c.choices[0].dec
	start := dec.AppendTokens(nil)[0]
	start.Usage = new(dec.Usage()) // without the estimate, which the end of the stream could contradict
	dec.SetUsage(event.Tokens{Cached: c.cachedEstimate(), CachedEstimated: true})
	return start, nil
}

// note logs the parts of the request that engines do not get, each kind once per request.
func (c *call) note(msg string, losses []block.Loss) {
	times := make(map[string]int)
	for _, l := range losses {
		times[reason(l)]++
	}
	for _, l := range losses {
		why := reason(l)
		if n := times[why]; n > 0 {
			c.g.opt.Logger.Info(msg, "request", c.id, "path", fmt.Sprintf("%.100s", l.Path), "why", fmt.Sprintf("%.100s", why), "times", n) // both may quote a name
			delete(times, why)
		}
	}
}

// room returns the maximum number of output tokens: the rest of the context window, limited by the model's record.
func (c tokenBackend) room() int {
	m := c.record()
	room := m.ContextWindow - int64(len(c.prompt))
	if c.api == wire.Completions && c.req.Params().MaxTokens == nil {
		room = min(room, plainTokens)
	}
	if m.MaxOutputTokens > 0 {
		room = min(room, m.MaxOutputTokens)
	}
	return int(min(room, math.MaxInt32))
}

// chained is the chain of a prompt's blocks.
type chained struct {
	*kvhash.Chain
	size    int // of a block, in tokens
	adapter string
	ahead   *ahead // of the request with the prompt; may be nil
}

// hashes returns the hashes of the prompt's blocks. Those that the conversation's previous prompt had are not computed
// again.
func (c tokenBackend) hashes() []uint64 {
	chain := kvhash.NewChain(c.blocks, kvhash.Scheme{}.With(c.adapter, c.route.Intent.Salt))
	kept, n := c.text.Kept() // of the same tenant and salt
	k, ok := kept.(chained)
	c.before = k.ahead
	if ok && k.size == c.blocks && k.adapter == c.adapter {
		chain = k.Fork() // other requests may continue the previous prompt, too
		chain.Truncate(min(len(chain.Blocks()), n/c.blocks))
	}
	chain.Append(c.prompt[len(chain.Blocks())*c.blocks:]...)
	c.text.Keep(chained{chain, c.blocks, c.adapter, c.ahead}, 9*len(chain.Blocks()))
	return chain.Blocks()
}

// hash implements backend.
func (c tokenBackend) hash() error {
	if err := c.overflow(); err != nil {
		return err
	}
	c.plan()
	c.route.Hashes = c.hashes()
	c.route.Tokens = len(c.prompt)
	c.rec.Hashes, c.rec.BlockSize = c.route.Hashes, c.blocks
	return nil
}

// count implements backend.
func (c tokenBackend) count(context.Context) (int64, error) { return int64(len(c.prompt)), nil }

// choose places the request on an engine. It waits for one that has room.
func (c *call) choose(ctx context.Context) error {
	if err := c.backend.hash(); err != nil {
		return err
	}
	c.claim()
	begun := time.Now()
	p, err := c.fleet.place(ctx, &c.route)
	if err == nil {
		c.rec.Queued = time.Since(begun)
		c.on(ctx, p)
		c.used()
	}
	return err
}

// on records where the request was placed.
func (c *call) on(ctx context.Context, p *placement) {
	c.place = p
	if a := p.engine.ahead.Load(); a != nil {
		a.stop()
	}
	c.rec.Worker, c.rec.Decision, c.rec.Placing = p.engine.name, *p.ticket.Decision(), p.took
	c.rec.Sent = time.Since(c.begun)
	if t := c.g.opt.Tracer; t != nil && !c.part {
		t.Place(ctx, &c.rec)
	}
}

// leave ends the placement.
func (c *call) leave(end func(t *router.Ticket, now time.Time)) {
	end(c.place.ticket, time.Now())
}

// again prepares another attempt after an engine failed with err, on an engine that has not failed for this request. It
// reports false if the client has output, or if there is no such engine or no retry left. A request that makes engines
// fail must not reach all of them.
func (c *call) again(ctx context.Context, err error) bool {
	f := c.fleet
	if c.sent || ctx.Err() != nil || apierr.Wrap(err).Why == event.Invalid || c.retries >= c.g.opt.Retries || !f.retry() {
		return false
	}
	c.retries++
	failed := c.place
	c.route.Exclude = append(c.route.Exclude, failed.engine.id)
	next := f.placeNow(&c.route)
	if next == nil {
		return false
	}
	c.leave((*router.Ticket).Cancel)
	c.on(ctx, next)
	c.g.opt.Logger.Warn("retrying on another engine", "request", c.id, "failed", failed.engine.name, "next", c.rec.Worker, "err", loggable(err))
	if c.managed() {
		if more := c.unannounced(next.engine); len(more) > 0 {
			c.ignored = append(c.ignored, more...)
			c.nameIgnored(http.Header{}) // in the log only: the response may have begun
		}
	}
	return true
}

// relay sends the prompt to an engine and its output, or an error, to the client.
func (c *call) relay(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil) // cancels the engine's request
	c.watch.start(c.g.opt.EngineSilence, func() { cancel(errSilent) })
	defer c.watch.stop()
	start, err := c.backend.open()
	if err != nil {
		c.g.refuse(w, r, c.api, err)
		return err
	}

	enc := c.encoder()
	if !c.req.Params().Stream {
		enc.Append(nil, start)
		out := &wholeOutput{c: c, enc: enc}
		if r.URL.Path == compactPath {
			out.form = compactionBody
		}
		c.out = c.collected(c.searched(c.compacted(out)))
		err := c.run(ctx)
		if err == nil {
			err = out.write(w)
		}
		if err != nil && !errors.Is(err, errClientGone) {
			c.g.refuse(w, r.WithContext(ctx), c.api, err)
		}
		return err
	}

	out := &streamOutput{c: c, enc: enc}
	out.w.start(w, enc.Append(nil, start), enc.AppendKeepAlive(nil), c.g.opt.KeepAlive)
	c.out = c.collected(c.searched(c.compacted(out)))
	err = c.run(ctx)
	if err == nil {
		end := out.enc.Finish(out.frames)
		c.keep(end)
		err = out.w.write(end)
		out.w.close(nil)
		return err
	}
	out.flush() // an error of this write does not replace err
	frames := out.frames
	if len(c.choices) > 0 { // what was sent counts
		used := c.usage()
		frames = out.enc.Append(frames, event.Event{Kind: event.Usage, Call: -1, Usage: &used})
	}
	if sent := out.w.close(out.enc.Fail(frames, public(ctx, err))); !sent {
		c.decline(w, r.WithContext(ctx), err)
	}
	return err
}

// encoder returns the encoder of the response.
func (c *call) encoder() *wire.Encoder {
	opt := &wire.Options{
		ID: c.api.IDPrefix() + c.unique, Signer: c.signer, CallsInReasoning: c.g.opt.CallsInReasoning,
		ToolDispatch: c.notices.calls, ReasoningDispatch: c.notices.reasoning, NotStored: !c.stored,
	}
	if c.managed() {
		opt.Details = wire.DetailsAlways // an endpoint may need the signatures in it
	}
	return c.api.NewEncoder(c.req, opt)
}

// attempt sends the request to the chosen engine and its output to c.out. The router may preempt it before the first output.
func (c *call) attempt(ctx context.Context) (fault, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.preempted.Store(false)
	if c.g.opt.Preempt && !c.managed() {
		c.place.ticket.Preemptible(func() {
			c.preempted.Store(true)
			cancel()
		})
	}
	fault, err = c.backend.receive(ctx)
	c.judge(ctx, fault)
	return fault, err
}

var errPreempted = errors.New("serve: preempted by a request of a higher tier")

// yield places a preempted request again.
func (c *call) yield(ctx context.Context) error {
	c.g.opt.Logger.Info("request preempted", "request", c.id, "engine", c.rec.Worker)
	p, err := c.fleet.replace(ctx, c.place.ticket, &c.route)
	if err == nil {
		c.on(ctx, p)
	}
	return err
}

// pump decodes the engine's output and sends the events. It flushes them before it waits for more output. The caller
// must flush what remains, also after an error. If an engine fails before the client has some of its output, pump tries
// another one.
func (c *call) pump(ctx context.Context) error {
	c.listen(ctx)
	for {
		fault, err := c.attempt(ctx)
		if err == nil && fault == nil {
			break
		}
		if err == nil {
			err = fault
		}
		if c.preempted.Load() {
			if err := c.yield(ctx); err != nil {
				return err
			}
		} else if fault == nil || !c.again(ctx, err) {
			return err
		}
		start, err := c.backend.open()
		if err != nil {
			return err
		}
		c.out.restart(start)
		c.listen(ctx)
	}
	u := c.backend.used()
	c.rec.Finish = c.choices[0].why.String()
	c.out.send(event.Event{Kind: event.Usage, Call: -1, Usage: &u})
	return nil
}

// used implements backend.
func (c tokenBackend) used() event.Tokens {
	if len(c.choices) == 0 {
		return c.rec.Usage
	}
	u := c.choices[0].dec.Usage() // of all choices
	if c.mute && c.api == wire.Messages {
		u.Output, u.Reasoning = 0, 0
	}
	return u
}

// receive implements backend.
func (c tokenBackend) receive(ctx context.Context) (fault, err error) {
	e, req := c.place.engine, &c.asked
	kind := c.kind(e)
	if fault := c.fleet.verify(ctx, e, 0); fault != nil {
		return fault, nil
	}
	req.Request = upstream.Request{Model: cmp.Or(c.adapter, c.deployment.name), Client: c.req, Prompt: c.text, Choices: len(c.choices), Logprobs: c.logprobs, PromptLogprobs: c.wantsPromptLogprobs()}
	if err := req.prepare(kind, c.tags[kind], c.choices[0].dec); err != nil {
		return nil, err
	}
	steps, fault := e.complete(ctx, c.unique, req, c.engineHints(ctx, e))
	if refused, ok := errors.AsType[*apierr.Error](fault); ok && c.wish && c.tags[kind] != nil && refused.Why == event.Invalid && refused.Code != apierr.CodeContextLength {
		// An older engine does not know constraints of this form, and others do not know all keywords of schemas.
		c.g.opt.Logger.Warn("strict tools without effect", "request", c.id, "engine", e.name, "err", loggable(fault))
		c.tags, req.kind = nil, nil
		req.prepare(kind, nil, c.choices[0].dec)
		steps, fault = e.complete(ctx, c.unique, req, c.engineHints(ctx, e))
	}
	if fault != nil {
		if e, ok := errors.AsType[*apierr.Error](fault); ok && e.Code == apierr.CodeContextLength && c.api == wire.Responses {
			e.Param = map[string]string{"messages": "input", "max_tokens": "max_output_tokens"}[e.Param]
		}
		return fault, nil
	}
	c.pace = pace{}
	received := false // output arrived since the last pause
	for st, fault := range steps {
		if st.Pause {
			if !received {
				continue
			}
			received = false
			if err := c.out.flush(); err != nil {
				return nil, err
			}
			now := time.Now()
			c.report(now)
			c.watch.interrupt(now)
			continue
		}
		received = true
		switch {
		case fault != nil && c.unfinished():
			return fault, nil
		case fault != nil: // the output is complete; only the usage is missing
			c.g.opt.Logger.Warn("engine failed after output", "request", c.id, "err", loggable(fault))
		case st.Usage != nil:
			c.counted(st.Usage)
		case c.choices[st.Choice].left.steps == 0:
			return apierr.EngineFailed(errors.New("more chunks than tokens")), nil
		default:
			cut, err := c.advance(&c.choices[st.Choice], &st)
			if err != nil {
				return nil, err
			}
			if cut && !c.unfinished() {
				c.report(time.Now())
				return nil, nil // the engine would continue
			}
		}
	}
	c.report(time.Now())
	return nil, nil
}

// counted adopts the counts of an engine, except those that cannot be right.
func (c tokenBackend) counted(t *event.Tokens) {
	dec := c.choices[0].dec
	u := dec.Usage()
	if t.Output >= u.Output && t.Output <= int64(len(c.choices))*int64(dec.Limit()+1) { // a stop token may count too
		u.Output = t.Output
	}
	if !t.CachedEstimated && t.Cached >= 0 && t.Cached <= int64(len(c.prompt)) {
		u.Cached, u.CachedEstimated = t.Cached, false
	}
	dec.SetUsage(u)
}

// unfinished reports whether a choice is still open.
func (c *call) unfinished() bool {
	return slices.ContainsFunc(c.choices, func(ch choice) bool { return ch.why == event.None })
}

// advance adds a step to a choice. It reports whether it ended the choice and the engine has not: at a stop of the request
// that the engine was not given, or because the engine exceeds the limit that it was given.
func (c tokenBackend) advance(ch *choice, st *upstream.Step) (cut bool, err error) {
	if ch.why != event.None {
		return false, nil // output after the finish reason
	}
	if !ch.left.take(st) {
		c.g.opt.Logger.Warn("engine exceeds max_tokens", "request", c.id, "engine", c.rec.Worker)
		cut, st.Finish, st.Stop = true, event.Length, ""
	}
	if c.rec.FirstByte == 0 && (len(st.Text) > 0 || len(st.IDs) > 0) {
		c.place.ticket.FirstToken(time.Now())
		if c.preempted.Load() {
			return false, errPreempted
		}
		c.rec.FirstByte = time.Since(c.begun)
	}
	first := len(st.Text) > 0 || len(st.IDs) > 0 || st.Logprobs != nil || st.Finish != event.None
	if c.echo != nil && !ch.echoed && first {
		ch.echoed = true
		if err := c.repeat(ch, st); err != nil {
			return cut, err
		}
	}
	if c.mute && first {
		ch.why = event.Length
		c.out.send(event.Event{Kind: event.Finish, Choice: int32(st.Choice), Call: -1, Why: ch.why})
		return cut, nil
	}
	if err := c.produced(len(st.Text)); err != nil {
		return cut, err
	}
	c.pace.add(st)
	c.decode(ch.dec, st)
	if err := c.produced(ch.logprobs.add(st)); err != nil {
		return cut, err
	}
	ended := ch.dec.Done()
	if err := c.deliver(ch); err != nil || st.Finish == event.None && !ended {
		return cut, err
	}
	if !ended {
		ch.dec.SetFinish(st.Finish, st.Stop)
	}
	c.events = ch.dec.Finish(c.events[:0])
	if ch.why = st.Finish; ended {
		ch.why = c.events[len(c.events)-1].Why
	}
	return cut || ended && st.Finish == event.None, c.deliver(ch)
}

// decode decodes a step into c.events.
func (c tokenBackend) decode(dec *prompt.Decoder, st *upstream.Step) {
	ids := st.IDs
	if len(ids) == 0 {
		c.events = dec.Append(c.events[:0], string(st.Text))
		return
	}
	if last := len(ids) - 1; st.StopID == int64(ids[last]) { // the engine's stop token counts as output, but is not decoded
		ids = ids[:last]
		u := dec.Usage()
		u.Output++
		dec.SetUsage(u)
	}
	c.events = dec.AppendTokens(c.events[:0], ids...)
}

// deliver sends the events, then calls the callbacks for complete calls and reasoning.
func (c tokenBackend) deliver(ch *choice) error {
	if err := ch.dec.Err(); err != nil {
		return err
	}
	c.events = ch.logprobs.weave(c.events)
	if len(c.events) > 0 {
		c.out.send(c.events...)
		c.early.Add(c.events...)
	}
	return nil
}

// finish reports the end of the request.
func (c *call) finish(ctx context.Context, err error) {
	if len(c.siblings) == 0 { // otherwise each has done it
		c.settle(ctx, err)
	}
	c.ended(ctx, err)
}

// settle reports the end of the output to the router, the log and OnDone.
func (c *call) settle(ctx context.Context, err error) {
	c.rec.Total = time.Since(c.begun)
	u := c.backend.used()
	c.rec.Usage = u
	tokens, spent := int64(len(c.prompt)), u.Output
	if c.managed() { // the endpoint has counted the prompt
		tokens, spent = u.Prompt, u.Prompt+u.Output
	}
	c.client.spend(time.Now(), int(spent))
	switch {
	case err == nil:
		cached := -1
		if !u.CachedEstimated {
			cached = int(u.Cached)
		}
		// An engine without salts does not use its cache for them, and none uses it where it computes the log probabilities of
		// the prompt. Of managed endpoints, nothing is estimated.
		if e := c.place.engine; !c.managed() && !c.wantsPromptLogprobs() && (e.hints != nil || c.route.Intent.Salt == "") {
			c.rec.CacheExcess = c.fleet.judge(e, c.rec.Decision.CachedEstimate, u, c.blocks)
		}
		c.leave(func(t *router.Ticket, now time.Time) { t.Finish(now, cached, int(u.Output)) })
	case ctx.Err() != nil || errors.Is(err, errClientGone):
		c.rec.Finish = event.Canceled.String()
		c.leave((*router.Ticket).Cancel)
	default:
		c.rec.Finish = public(ctx, err).Why.String()
		c.leave((*router.Ticket).Cancel)
	}
	c.endClaim()
	c.g.opt.Logger.Info("request done", "request", c.id, "engine_request", c.unique, "key", c.client.name(), "api", c.rec.API, "worker", c.rec.Worker, "why", c.rec.Decision.Why(),
		"prompt", tokens, "cached", u.Cached, "output", u.Output, "finish", c.rec.Finish, "continued", c.joined, "ms", c.rec.Total.Milliseconds(), "err", loggable(err))
	if c.g.opt.OnDone != nil {
		c.g.opt.OnDone(c.rec)
	}
}
