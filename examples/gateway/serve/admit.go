// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
)

// This file decides which requests are served, with which resources, and which estimates their clients get:
//
//	admit           the key, its limits, and the number of requests
//	measureJSON     the length of schemas and arguments, before they are decoded
//	measure         the length of the prompt, before it is encoded
//	cachedEstimate  the estimate that the client gets
//	judge           the result of an engine, for its health

var errTooMany = errors.New("serve: too many requests")

// newCall returns the state of a request.
func (g *Gateway) newCall(w http.ResponseWriter, r *http.Request, a *wire.API) *call {
	c := &call{g: g, api: a, id: g.requestID(w, r, a), unique: g.newID(), begun: time.Now(), memory: share{of: &g.memory}, compact: r.URL.Path == compactPath}
	c.lane, _ = r.Context().Value(laneKey{}).(*lane)
	c.rec = Record{RequestID: c.id, EngineRequestID: c.unique, API: a.String()}
	return c
}

// admit checks the key of a request, the limits of the key and the number of requests. If it succeeds,
// release ends the request.
func (c *call) admit(r *http.Request) error {
	g := c.g
	client, err := g.identify(r)
	if err != nil {
		return err
	}
	if client != nil {
		c.rec.Tenant = client.Tenant
	} else if g.opt.Tenant != nil {
		c.rec.Tenant = g.opt.Tenant(r)
	}
	if err := client.begin(c.begun); err != nil {
		return err
	}
	if g.running.Add(1) > int64(g.opt.MaxRequests) {
		g.running.Add(-1)
		client.end()
		return busy(errTooMany)
	}
	c.client = client
	return nil
}

// release ends what admit began, and returns the memory.
func (c *call) release() {
	c.memory.release()
	for _, s := range c.siblings {
		s.memory.release()
	}
	c.g.running.Add(-1)
	c.client.end()
}

// name returns the name of the key for logs.
func (c *client) name() string {
	if c == nil {
		return ""
	}
	return c.Name
}

// measure returns an error if text of the prompt is too long to be encoded.
func (c *call) measure(ctx context.Context, text string) error {
	err := measure(ctx, c.model.Tokenizer(), text, c.record().ContextWindow)
	if e, ok := errors.AsType[*apierr.Error](err); ok {
		e.Param = turnsField(c.api)
	}
	return err
}

// measureJSON returns an error if schemas and arguments are too long for the prompt. Unlike text, they are decoded before
// a template prints them, which takes up to 100 times their memory. A body that is not longer than a prompt usually is
// needs no check.
func (c *call) measureJSON(ctx context.Context, body int) error {
	if int64(body) <= c.record().ContextWindow*usualToken {
		return nil
	}
	var all bytes.Buffer
	add := func(raw string) {
		if json.Compact(&all, []byte(raw)) != nil { // arguments need not be JSON
			all.WriteString(raw)
		}
	}
	for _, t := range c.req.Tools() {
		add(string(t.Schema))
		add(string(t.Format))
	}
	for _, t := range c.req.Turns() {
		for i := range t.Blocks {
			add(t.Blocks[i].Args)
		}
	}
	return c.measure(ctx, all.String())
}

// cachedEstimate returns the router's estimate of cached tokens if the client may know it: it then only depends on
// prompts of its own tenant, or there are no tenants.
func (c *call) cachedEstimate() int64 {
	if !c.isolated && (c.g.opt.Tenant != nil || len(c.g.clients) > 0) {
		return 0
	}
	return int64(c.rec.Decision.CachedEstimate)
}

// judge records for the health of the engine whether it failed. fault is nil if it did not.
func (c *call) judge(ctx context.Context, fault error) {
	f, e := c.fleet, c.place.engine
	switch {
	case fault == nil:
		if ctx.Err() == nil {
			f.succeeded(e)
		}
	case errors.Is(context.Cause(ctx), errSilent):
		f.failed(e, errSilent, false)
	case ctx.Err() != nil: // the client disconnected, or the gateway closes
	case apierr.Wrap(fault).Why == event.EngineFailed:
		f.failed(e, fault, errors.Is(fault, errUnreachable))
	}
}
