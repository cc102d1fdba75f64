// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weft-go/weft/protocols/intent"
)

// This file tells engines which sessions they still need blocks for. SGLang with --enable-session-radix-cache evicts blocks that no session
// claims before others, and a session claims the blocks of its requests until it is closed. The gateway closes it after its last request, or
// when it was not used for historyFor.

const (
	closeTimeLimit = 5 * time.Second // for the request that closes a session
	maxClaims      = 1 << 16         // sessions of an engine; others claim nothing
)

// claims are the sessions that claim blocks of an engine. It is safe for concurrent use by multiple goroutines.
type claims struct {
	path string // of the endpoint that closes a session; "" if the engine gets no sessions

	mu   sync.Mutex
	used map[string]time.Time // when a request of a session began or ended last, by its name at the engine
}

// newClaims returns the claims of an engine with an endpoint for closing sessions, if it takes sessions.
func newClaims(path string, hints *intent.Target) claims {
	probe := intent.Intent{Session: intent.Session{ID: "s"}}
	if path == "" || hints == nil || len(hints.Emit(&probe).Changes) > 0 {
		return claims{}
	}
	return claims{path: path, used: make(map[string]time.Time)}
}

// claimant returns the name of the request's session at engines. Sessions of different tenants and salts have different names, so
// that no tenant closes the sessions of another.
func (c *call) claimant() string {
	in := &c.route.Intent
	name, _ := json.Marshal([]string{c.rec.Tenant, in.Salt, in.Session.ID}) // always encodes
	sum := sha256.Sum256(name)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// add adds a session that is used now. It returns false if there are too many.
func (c *claims) add(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.used[id]; !known && len(c.used) >= maxClaims {
		return false
	}
	c.used[id] = time.Now()
	return true
}

// take removes the sessions that were last used before a time, and returns them.
func (c *claims) take(before time.Time) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range c.used {
		if at.Before(before) {
			ids = append(ids, id)
			delete(c.used, id)
		}
	}
	return ids
}

// drop removes a session and reports whether it was there.
func (c *claims) drop(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.used[id]
	delete(c.used, id)
	return ok
}

// endClaim ends the claims of the request's session after its last request, and after a summary that replaces the conversation.
// Otherwise the session was used now.
func (c *call) endClaim() {
	in := &c.route.Intent
	if in.Session.ID == "" {
		return
	}
	for _, e := range c.fleet.order {
		if e.claims.path == "" {
			continue
		}
		id := c.claimant()
		switch {
		case !in.Session.Final && in.Evict&intent.EvictSession == 0 && in.Compaction == nil && !c.compact:
			if e == c.place.engine {
				e.claims.add(id)
			}
		case e.claims.drop(id):
			c.g.aside(func() { c.fleet.closeSession(c.g.ctx, e, id) })
		}
	}
}

// closeIdle closes the sessions that were last used before a time, up to the first failure of an engine.
func (f *fleet) closeIdle(ctx context.Context, before time.Time) {
	for _, e := range f.order {
		for _, id := range e.claims.take(before) {
			if !f.closeSession(ctx, e, id) {
				break
			}
		}
	}
}

// closeSession closes a session of an engine. If that fails, its blocks stay claimed.
func (f *fleet) closeSession(ctx context.Context, e *engine, id string) (ok bool) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeLimit)
	defer cancel()
	body, _ := json.Marshal(map[string]string{"session_id": id}) // always encodes
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+e.claims.path, bytes.NewReader(body))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		e.authorize(r)
		var resp *http.Response
		if resp, err = e.client.Do(r); err == nil {
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	f.log.Info("session not closed", "engine", e.name, "err", loggable(err))
	return false
}
