// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"time"

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
//	respond  -> read      decode, read the hints, stabilize, render, encode
//	         -> follow    compare with the previous prompt of the session
//	         -> choose    hash, look up, place on an engine
//	         -> relay     send to the engine; decode, encode, write
//	         -> settle    report to the router, the log and OnDone

// A call is the state of one request.
type call struct {
	g      *Gateway
	api    *wire.API
	id     string // request id, which the client may choose
	unique string // base of response and tool call ids; unlike id, always unique
	begun  time.Time
	rec    Record

	req     *block.Request
	choices []choice
	notices notices
	signer  *replay.Signer
	layout  preamble.Prompt  // order in which the template writes system text and tools
	early   event.Dispatcher // calls Options.OnToolCall and OnReasoning
	model   *prompt.Model    // with the family that decodes the output
	text    *prompt.Prompt   // rendered
	prompt  []uint32         // its token ids
	route   router.Request
	place   *placement

	watch  *time.Timer // cancels the engine's request after Options.EngineSilence
	events []event.Event
	send   func(...event.Event) // encodes events for the client
	flush  func() error         // writes the encoded events, if any; its first error is final
}

// A choice decodes one of the outputs for a request.
type choice struct {
	dec *prompt.Decoder
	why event.Why // finish reason; None while the choice is open
}

// respond serves a request.
func (g *Gateway) respond(w http.ResponseWriter, r *http.Request, a *wire.API) {
	c := &call{g: g, api: a, id: g.requestID(w, r, a), unique: g.newID(), begun: time.Now()}
	c.rec = Record{RequestID: c.id, API: a.String()}
	if err := c.read(w, r); err != nil {
		g.refuse(w, r, a, err)
		return
	}
	c.follow()
	if err := c.choose(); err != nil {
		c.decline(w, r, err)
		return
	}
	defer func() { c.place.ticket.Cancel(time.Now()) }() // no effect after settle; releases the reservation if relay panics
	err := c.relay(w, r)
	c.finish(r.Context(), err)
}

// read decodes the request and renders and encodes its prompt.
func (c *call) read(w http.ResponseWriter, r *http.Request) error {
	g := c.g
	body, err := readBody(w, r, g.opt.MaxBody)
	if err != nil {
		return err
	}
	if g.opt.Tenant != nil {
		c.rec.Tenant = g.opt.Tenant(r)
	}
	turn := g.memo.Turn(c.rec.Tenant, "", "")
	if c.req, err = turn.Decode(c.api, body, &block.Limits{Body: int(g.opt.MaxBody)}); err != nil {
		return err
	}
	if err := g.check(c.api, c.req); err != nil {
		return err
	}
	if c.model, err = g.families.get(r.Header.Get("X-Weft-Tool-Call-Parser")); err != nil {
		return &apierr.Error{Why: event.Invalid, Message: err.Error(), Cause: err}
	}
	c.notices = g.notices(r.Header)

	c.layout = c.model.Preamble()
	if err := c.readHints(r); err != nil {
		return err
	}
	turn.Bind(c.route.Intent.Salt, c.route.Intent.Session.ID)
	if c.text, err = turn.Render(c.model, c.req, time.Now()); c.text != nil {
		c.note(c.text.Losses)
	}
	if err != nil {
		return err
	}
	c.rec.Outcomes = c.text.Outcomes
	// Tenants with different salts share no cache entries, so response times do not reveal the prompts of others.
	c.text.Namespace = c.route.Intent.Salt
	c.prompt = c.text.IDs()
	c.locate()
	return nil
}

// open creates the decoders of the choices and returns the event that starts the response.
func (c *call) open() (event.Event, error) {
	c.choices = make([]choice, choices(c.req))
	for i := range c.choices {
		opt := &prompt.DecoderOptions{ID: c.unique, Choice: int32(i), EngineStops: true, MaxTokens: c.room()}
		if i > 0 {
			opt.Shared = c.choices[0].dec
		}
		var err error
		if c.choices[i].dec, err = c.model.NewDecoder(c.req, c.text, opt); err != nil {
			c.choices = nil
			return event.Event{}, err
		}
	}
	dec := c.choices[0].dec
	dec.SetUsage(event.Tokens{Cached: int64(c.rec.Decision.CachedEstimate), CachedEstimated: true})
	return dec.AppendTokens(nil)[0], nil
}

// note logs the parts of the request that the prompt omits, each kind once per request.
func (c *call) note(losses []block.Loss) {
	times := make(map[string]int)
	for _, l := range losses {
		times[l.Why]++
	}
	for _, l := range losses {
		if n := times[l.Why]; n > 0 {
			c.g.opt.Logger.Info("not rendered", "request", c.id, "path", l.Path, "why", l.Why, "times", n)
			delete(times, l.Why)
		}
	}
}

// room returns the maximum number of output tokens: the rest of the context window, limited by the model's record.
func (c *call) room() int {
	m := c.record()
	room := m.ContextWindow - int64(len(c.prompt))
	if m.MaxOutputTokens > 0 {
		room = min(room, m.MaxOutputTokens)
	}
	return int(min(room, math.MaxInt32))
}

// choose places the request on an engine that has not failed for it.
func (c *call) choose() error {
	if err := c.overflow(); err != nil {
		return err
	}
	if c.route.Hashes == nil {
		c.route.Hashes = kvhash.Scheme{}.With("", c.route.Intent.Salt).AppendBlocks(nil, c.prompt, c.g.opt.BlockSize, nil)
		c.route.Tokens = len(c.prompt)
	}
	p, err := c.g.fleet.place(&c.route)
	if err != nil {
		return err
	}
	c.place = p
	c.rec.Worker, c.rec.Decision = p.engine.name, *p.ticket.Decision()
	return nil
}

// ask sends the prompt to the chosen engine. If that engine fails before its stream starts, ask tries the others.
func (c *call) ask(ctx context.Context) (iter.Seq2[step, error], error) {
	req := newCompletionRequest(c.g.opt.Model, len(c.prompt), c.choices, &c.g.bodies)
	defer req.release()
	for {
		e := c.place.engine
		steps, err := e.complete(ctx, c.id, req, c.engineHints(ctx, e))
		if err == nil || ctx.Err() != nil || apierr.Wrap(err).Why == event.Invalid {
			return steps, err
		}
		if errors.Is(err, errUnreachable) {
			c.g.fleet.unreachable(e, err)
		}
		failed := c.place.ticket
		c.route.Exclude = append(c.route.Exclude, e.id)
		if c.choose() != nil {
			return nil, err // no engine is left; the last engine's error is more specific
		}
		failed.Fail(time.Now())
		c.g.opt.Logger.Warn("retrying on another engine", "request", c.id, "failed", e.name, "next", c.rec.Worker, "err", err)
	}
}

// relay sends the prompt to an engine and its output, or an error, to the client.
func (c *call) relay(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil) // cancels the engine's request
	c.watch = time.AfterFunc(c.g.opt.EngineSilence, func() { cancel(errSilent) })
	defer c.watch.Stop()
	start, err := c.open()
	if err != nil {
		c.g.refuse(w, r, c.api, err)
		return err
	}

	enc := c.encoder()
	if !c.req.Stream() {
		enc.Append(nil, start)
		c.send, c.flush = func(events ...event.Event) { enc.Append(nil, events...) }, func() error { return nil }
		err := c.pump(ctx)
		var body []byte
		if err == nil {
			body = enc.Finish(nil)
			err = enc.Err()
		}
		if err != nil {
			c.g.refuse(w, r.WithContext(ctx), c.api, err)
			return err
		}
		w.Header().Set("Content-Type", enc.ContentType())
		if _, err := w.Write(body); err != nil {
			return fmt.Errorf("%w: %w", errClientGone, err)
		}
		return nil
	}

	out := newStreamWriter(w, enc.Append(nil, start), enc.AppendKeepAlive(nil), c.g.opt.KeepAlive)
	var frames []byte
	var failed error
	due := false // frames may be empty: the first events only open the stream
	c.send = func(events ...event.Event) { frames, due = enc.Append(frames, events...), true }
	c.flush = func() error {
		if due && failed == nil {
			failed = out.write(frames)
		}
		frames, due = frames[:0], false
		return failed
	}
	err = c.pump(ctx)
	if err == nil {
		err = out.write(enc.Finish(frames))
		out.close(nil)
		return err
	}
	c.flush() // an error of this write does not replace err
	if sent := out.close(enc.Fail(frames[:0], public(ctx, err))); !sent {
		c.decline(w, r.WithContext(ctx), err)
	}
	return err
}

// encoder returns the encoder of the response.
func (c *call) encoder() *wire.Encoder {
	return c.api.NewEncoder(c.req, &wire.Options{
		ID: c.api.IDPrefix() + c.unique, Signer: c.signer, CallsInReasoning: c.g.opt.CallsInReasoning,
		ToolDispatch: c.notices.calls, ReasoningDispatch: c.notices.reasoning,
	})
}

// pump decodes the engine's output and sends the events. It flushes them before it waits for more output. The caller
// must flush what remains, also after an error.
func (c *call) pump(ctx context.Context) error {
	steps, err := c.ask(ctx)
	if err != nil {
		return err
	}
	c.listen(ctx)
	received := false // output arrived since the last pause
	for st, err := range steps {
		if st.pause {
			if !received {
				continue
			}
			received = false
			if err := c.flush(); err != nil {
				return err
			}
			c.watch.Reset(c.g.opt.EngineSilence)
			continue
		}
		received = true
		switch {
		case err != nil && c.unfinished():
			return err
		case err != nil: // the output is complete; only the usage is missing
			c.g.opt.Logger.Warn("engine failed after output", "request", c.id, "err", err)
		case st.usage != nil:
			u := c.choices[0].dec.Usage()
			u.Output = st.usage.Output
			if !st.usage.CachedEstimated {
				u.Cached, u.CachedEstimated = st.usage.Cached, false
			}
			c.choices[0].dec.SetUsage(u)
		default:
			if err := c.advance(&c.choices[st.choice], &st); err != nil {
				return err
			}
		}
	}
	u := c.choices[0].dec.Usage() // of all choices
	c.rec.Finish, c.rec.Usage = c.choices[0].why.String(), u
	c.send(event.Event{Kind: event.Usage, Call: -1, Usage: &u})
	return nil
}

// unfinished reports whether a choice is still open.
func (c *call) unfinished() bool {
	return slices.ContainsFunc(c.choices, func(ch choice) bool { return ch.why == event.None })
}

// advance adds a step to a choice.
func (c *call) advance(ch *choice, st *step) error {
	if ch.why != event.None {
		return nil // output after the finish reason
	}
	if c.rec.FirstByte == 0 && (len(st.text) > 0 || len(st.ids) > 0) {
		c.rec.FirstByte = time.Since(c.begun)
		c.place.ticket.FirstToken(time.Now())
	}
	c.decode(ch.dec, st)
	if err := c.deliver(ch); err != nil || st.finish == event.None {
		return err
	}
	ch.why = st.finish
	ch.dec.SetFinish(st.finish, st.stop)
	c.events = ch.dec.Finish(c.events[:0])
	return c.deliver(ch)
}

// decode decodes a step into c.events.
func (c *call) decode(dec *prompt.Decoder, st *step) {
	ids := st.ids
	if len(ids) == 0 {
		c.events = dec.Append(c.events[:0], string(st.text))
		return
	}
	if last := len(ids) - 1; st.stopID == int64(ids[last]) { // the engine's stop token counts as output, but is not decoded
		ids = ids[:last]
		u := dec.Usage()
		u.Output++
		dec.SetUsage(u)
	}
	c.events = dec.AppendTokens(c.events[:0], ids...)
}

// deliver sends the events, then calls the callbacks for complete calls and reasoning.
func (c *call) deliver(ch *choice) error {
	if err := ch.dec.Err(); err != nil {
		return err
	}
	if len(c.events) > 0 {
		c.send(c.events...)
		c.early.Add(c.events...)
	}
	return nil
}

// finish reports the end of the request to the router, the log and OnDone.
func (c *call) finish(ctx context.Context, err error) {
	now, t := time.Now(), c.place.ticket
	c.rec.Total = now.Sub(c.begun)
	var u event.Tokens
	if len(c.choices) > 0 {
		u = c.choices[0].dec.Usage()
	}
	switch {
	case err == nil:
		cached := -1
		if !u.CachedEstimated {
			cached = int(u.Cached)
		}
		t.Finish(now, cached, int(u.Output))
	case ctx.Err() != nil || errors.Is(err, errClientGone):
		c.rec.Finish = event.Canceled.String()
		t.Cancel(now)
	default:
		c.rec.Finish = public(ctx, err).Why.String()
		t.Fail(now)
	}
	c.g.opt.Logger.Info("request done", "request", c.id, "api", c.rec.API, "worker", c.rec.Worker, "why", c.rec.Decision.Why(), "prompt", len(c.prompt),
		"cached", u.Cached, "output", u.Output, "finish", c.rec.Finish, "ms", c.rec.Total.Milliseconds(), "err", err)
	if c.g.opt.OnDone != nil {
		c.g.opt.OnDone(c.rec)
	}
}
