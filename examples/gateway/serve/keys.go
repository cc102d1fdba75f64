// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
)

// Key is an API key, which clients send as a bearer token or in X-Api-Key, and the limits of all requests with it
// together. 0 means no limit, except for Concurrent.
type Key struct {
	Secret string // required
	Name   string // in logs; "" means the tenant
	Tenant string // "" means no tenant

	RequestsPerMinute int
	TokensPerMinute   int // of prompts and output; a request that begins below the limit may exceed it
	Concurrent        int // requests at the same time; 0 means 128, -1 no limit
}

// defaultConcurrent is the default of Key.Concurrent.
const defaultConcurrent = 128

// A client is a key and the use of it. It is safe for concurrent use by multiple goroutines.
type client struct {
	Key
	digest   [sha256.Size]byte
	requests *rate.Limiter // nil without a limit
	tokens   *rate.Limiter // nil without a limit; negative while requests that exceeded the limit are paid off

	mu      sync.Mutex
	running int
}

// newClients returns a client for each key.
func newClients(keys []Key) ([]*client, error) {
	var out []*client
	names := make(map[[sha256.Size]byte]string)
	for i, k := range keys {
		k.Name = cmp.Or(k.Name, k.Tenant, fmt.Sprintf("key %d", i+1))
		c := &client{Key: k, digest: sha256.Sum256([]byte(k.Secret))}
		other, twice := names[c.digest]
		switch {
		case strings.TrimSpace(k.Secret) == "" || strings.TrimSpace(k.Secret) != k.Secret:
			return nil, fmt.Errorf("key %d (%s): empty, or begins or ends with a space", i+1, k.Name)
		case twice:
			return nil, fmt.Errorf("key %d (%s): is also a key of %s", i+1, k.Name, other)
		case k.RequestsPerMinute < 0 || k.TokensPerMinute < 0 || k.Concurrent < -1:
			return nil, fmt.Errorf("key %d (%s): limits must not be negative", i+1, k.Name)
		}
		names[c.digest] = k.Name
		c.Concurrent = cmp.Or(c.Concurrent, defaultConcurrent)
		c.requests, c.tokens = perMinute(k.RequestsPerMinute), perMinute(k.TokensPerMinute)
		out = append(out, c)
	}
	return out, nil
}

// perMinute returns a limiter for n events per minute, which may all come at once.
func perMinute(n int) *rate.Limiter {
	if n == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(n)/60), n)
}

// secret returns the API key of a request, or "".
func secret(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		key = r.Header.Get("X-Api-Key")
	}
	return strings.TrimSpace(key)
}

// identify returns the client of a request, or nil if it needs no key. It compares hashes of equal length, and always
// all of them, so that its time reveals nothing about the keys. O(keys).
func (g *Gateway) identify(r *http.Request) (*client, error) {
	if len(g.clients) == 0 {
		return nil, nil
	}
	sent := secret(r)
	digest := sha256.Sum256([]byte(sent))
	found := -1
	for i, c := range g.clients {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], c.digest[:]), i, found)
	}
	if found >= 0 {
		return g.clients[found], nil
	}
	what := "Incorrect API key provided"
	if sent == "" {
		if g.opt.Anonymous {
			return nil, nil
		}
		what = "No API key provided"
	}
	return nil, &apierr.Error{
		Why: event.Invalid, Code: "invalid_api_key", Status: http.StatusUnauthorized,
		Message: what + ": send a key of this server as a bearer token or in x-api-key.",
	}
}

// errConcurrent is the cause of a refusal because of Key.Concurrent.
var errConcurrent = errors.New("serve: limit of concurrent requests of the key")

// begin counts a request until end, or returns the limit that it exceeds. A nil client has no limits.
func (c *client) begin(now time.Time) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.Concurrent > 0 && c.running >= c.Concurrent:
		e := limited("Too many requests of this key at the same time: at most %d.", c.Concurrent)
		e.Cause = errConcurrent
		return e
	case c.tokens != nil && c.tokens.TokensAt(now) < 1:
		e := limited("Rate limit reached for this key: %d tokens per minute.", c.TokensPerMinute)
		e.RetryAfter = until(c.tokens, now)
		return e
	case c.requests != nil && !c.requests.AllowN(now, 1):
		e := limited("Rate limit reached for this key: %d requests per minute.", c.RequestsPerMinute)
		e.RetryAfter = until(c.requests, now)
		return e
	}
	c.running++
	return nil
}

// more counts another request until end, unless the key has as many as it may have at the same time.
func (c *client) more() bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Concurrent > 0 && c.running >= c.Concurrent {
		return false
	}
	c.running++
	return true
}

// end ends a request.
func (c *client) end() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

// maxDebt limits the tokens that one request counts, in minutes of the key's limit. An endpoint could count any number.
const maxDebt = 60

// spend counts n tokens.
func (c *client) spend(now time.Time, n int) {
	if c == nil || c.tokens == nil {
		return
	}
	n = min(n, maxDebt*c.tokens.Burst())
	for n > 0 { // a reservation has at most the tokens of a minute
		part := min(n, c.tokens.Burst())
		c.tokens.ReserveN(now, part)
		n -= part
	}
}

// until returns the time until a limiter permits an event.
func until(l *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - l.TokensAt(now)
	return max(time.Second, time.Duration(missing/float64(l.Limit())*float64(time.Second)))
}

func limited(format string, args ...any) *apierr.Error {
	return &apierr.Error{Why: event.Overloaded, Code: "rate_limit_exceeded", Message: fmt.Sprintf(format, args...)}
}
