// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/router"
)

// This file serves Completions requests with several prompts. Each prompt is placed, retried, counted and reported like a
// request of its own, and the response has the choices of all. The first prompt that fails ends the others and the response.

const (
	// maxPlainChoices limits the choices of a Completions request, for all prompts together. It is OpenAI's limit for n.
	maxPlainChoices = 128
	// maxParallel limits the prompts of a request that are served at the same time.
	maxParallel = 32
)

// A plainPrompt is a prompt of a Completions request.
type plainPrompt struct {
	ids  []uint32
	echo string // text that the response repeats
}

// run gets the output for all prompts of the request and sends it to c.out.
func (c *call) run(ctx context.Context) error {
	if len(c.prompts) < 2 {
		return c.pump(ctx)
	}
	c.watch.stop() // each prompt has its own
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shared := &sharedOutput{out: c.out}
	for i, p := range c.prompts {
		s := c.sibling(p)
		s.out = &promptOutput{c: s, shared: shared, first: int32(i * len(c.choices)), stream: c.req.Params().Stream}
		c.siblings = append(c.siblings, s)
	}
	first := c.siblings[0] // choose has placed it
	first.unique, first.rec, first.place = c.unique, c.rec, c.place

	var taken atomic.Int32
	work := func() {
		for ctx.Err() == nil {
			i := int(taken.Add(1)) - 1
			if i >= len(c.siblings) {
				return
			}
			if err := c.siblings[i].serve(ctx); err != nil {
				cancel(err)
			}
		}
	}
	var others sync.WaitGroup
	for range min(len(c.siblings), maxParallel, c.fleet.slots()) - 1 { // more would only wait for each other
		if !c.more() {
			break
		}
		others.Go(func() {
			defer c.less()
			work()
		})
	}
	work()
	others.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, s := range c.siblings {
		c.out.send(s.out.(*promptOutput).held...)
	}
	c.rec, c.rec.Usage = first.rec, c.usage()
	c.out.send(event.Event{Kind: event.Usage, Call: -1, Usage: &c.rec.Usage})
	return nil
}

// more counts another request of the client, until less. It returns false at the limit of the gateway or the key.
func (c *call) more() bool {
	if c.g.running.Add(1) > int64(c.g.opt.MaxRequests) || !c.client.more() {
		c.g.running.Add(-1)
		return false
	}
	return true
}

func (c *call) less() {
	c.g.running.Add(-1)
	c.client.end()
}

// sibling returns a call for a prompt of the request.
func (c *call) sibling(p plainPrompt) *call {
	s := &call{
		g: c.g, api: c.api, id: c.id, unique: c.g.newID(), begun: c.begun, rec: c.rec, client: c.client, memory: share{of: c.memory.of}, isolated: c.isolated,
		req: c.req, deployment: c.deployment, adapter: c.adapter, model: c.model, tags: c.tags, wish: c.wish, logprobs: c.logprobs,
		echo: c.echo, mute: c.mute, route: c.route, part: true,
	}
	s.rec.EngineRequestID = s.unique
	s.route.Exclude = slices.Clone(c.route.Exclude)
	s.backend = tokenBackend{s}
	s.take(p)
	return s
}

// serve gets the output for a prompt of a request with several.
func (c *call) serve(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // as in net/http, but for the goroutines that run starts
			c.g.opt.Logger.Error("panic", "request", c.id, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("serve: panic")
		}
	}()
	if c.place == nil {
		c.client.spend(time.Now(), len(c.prompt))
		if err := c.choose(ctx); err != nil {
			return err
		}
	}
	defer func() { c.leave((*router.Ticket).Cancel) }() // no effect after settle
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.watch.start(c.g.opt.EngineSilence, func() { cancel(errSilent) })
	defer c.watch.stop()
	if _, err = c.backend.open(); err == nil {
		err = c.pump(own)
	}
	if failed := c.out.flush(); err == nil {
		err = failed
	}
	if err != nil && !errors.Is(err, errClientGone) {
		err = public(own, err)
	}
	c.settle(ctx, err)
	return err
}

// usage returns the tokens of all prompts so far.
func (c *call) usage() (sum event.Tokens) {
	if len(c.siblings) == 0 {
		return c.backend.used()
	}
	for _, s := range c.siblings {
		u := s.backend.used()
		sum.Prompt += u.Prompt
		sum.Cached += u.Cached
		sum.Output += u.Output
		sum.CachedEstimated = sum.CachedEstimated || u.CachedEstimated
	}
	return sum
}

// A sharedOutput is the output of a request with several prompts.
type sharedOutput struct {
	mu  sync.Mutex
	out output
}

// A promptOutput is the part of a sharedOutput that one prompt has: the choices from first on. Of a response that is not
// streamed, it holds the events until all prompts are complete.
type promptOutput struct {
	c      *call
	shared *sharedOutput
	first  int32
	stream bool
	held   []event.Event
}

func (o *promptOutput) send(events ...event.Event) {
	for _, ev := range events {
		if ev.Kind != event.Usage { // run sends the sum
			ev = ev.Clone()
			ev.Choice += o.first
			o.held = append(o.held, ev)
		}
	}
}

func (o *promptOutput) flush() error {
	if !o.stream || len(o.held) == 0 {
		return nil
	}
	o.shared.mu.Lock()
	defer o.shared.mu.Unlock()
	o.shared.out.send(o.held...)
	o.held, o.c.sent = nil, true
	return o.shared.out.flush()
}

func (o *promptOutput) restart(event.Event) { o.held = nil }
