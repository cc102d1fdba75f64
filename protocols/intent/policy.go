// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// guarded are the hints that are dropped unless a [Policy] trusts the caller with them: they take precedence over the
// requests of other tenants, affect their cached data, or name a tenant or worker. A final session may belong to
// another client, and Dynamo evicts it. Dynamo's metadata names a policy class.
const guarded Hints = 1<<hintTier | 1<<hintObjective | 1<<hintTenant | 1<<hintEvict | 1<<hintFinal | 1<<hintPin | 1<<hintMeta

// Policy limits the hints of a tenant's callers. The zero Policy allows no priority above 0, drops guarded and prefetch hints, keeps each
// tenant's salts apart, and limits retention to one hour and the last four breakpoints. It leaves other hints alone.
type Policy struct {
	// Trust lists the guarded hints that are not dropped. The guarded hints are tier, objective, tenant, evict, final,
	// pin and meta. If it includes salt, salts are used unmodified.
	Trust Hints
	// Deny lists hints that are dropped.
	Deny Hints
	// MaxPriority is the highest priority. It also limits service tiers and speed, by [Intent.CoarsePriority].
	MaxPriority int32
	// MinPriority is the lowest priority; 0 means no bound.
	MinPriority int32
	// MaxTier is the highest tier if Trust includes tier; 0 means no bound.
	MaxTier uint32
	// MaxOutput is the largest number of tokens in ExpectedOutput; 0 means no bound.
	MaxOutput int
	// MaxTTL limits retention. 0 means one hour; if negative, TTLs, scopes and breakpoints are dropped.
	MaxTTL time.Duration
	// MaxBreakpoints is the number of breakpoints that are kept, the last ones of the prompt. 0 means 4; if negative,
	// none are kept.
	MaxBreakpoints int
	// MinTTFT, MinITL and MinDeadline are the shortest targets: a request with a short target runs before others. 0
	// means no bound.
	MinTTFT, MinITL, MinDeadline time.Duration
	// Prefetch permits prefetch hints. The caller of Clamp must limit their rate.
	Prefetch bool
	// Isolate gives the tenant a separate cache even if a request has no salt.
	Isolate bool
}

// Clamp returns the hints of in that the policy permits to a tenant, and those that it limited or dropped. tenant is
// the client as identified by the server, not as claimed in the request; "" means unknown. Call it once per request:
// each call derives the salt again.
func (p *Policy) Clamp(tenant string, in Intent) (Intent, []Change) {
	c := clamper{in: in}
	for h := range (in.Hints() & (p.Deny | guarded&^p.Trust)).all() {
		if h == hintTenant && in.Tenant == tenant && !p.Deny.has(h) || !about[h].has(&c.in) { // it was dropped with its session
			continue
		}
		why := "denied"
		if !p.Deny.has(h) {
			why = "not trusted"
		}
		c.drop(h, why)
	}
	if c.in.Tenant == "" && !p.Deny.has(hintTenant) {
		c.in.Tenant = tenant
	}
	bound(&c, hintPriority, &c.in.Priority, least(p.MinPriority), p.MaxPriority)
	for _, h := range []hint{hintServiceTier, hintSpeed} {
		only := c.in.Only(setOf(h))
		if n := only.CoarsePriority(); n > 0 && n > p.MaxPriority {
			c.drop(h, "above the maximum priority")
		}
	}
	if p.MaxTier > 0 {
		bound(&c, hintTier, &c.in.Tier, 0, p.MaxTier)
	}
	if p.MaxOutput > 0 {
		bound(&c, hintExpectedOutput, &c.in.ExpectedOutput, 0, p.MaxOutput)
	}
	for _, t := range []struct {
		hint  hint
		least time.Duration
	}{{hintTTFT, p.MinTTFT}, {hintITL, p.MinITL}, {hintDeadline, p.MinDeadline}} {
		if d := durationOf(t.hint)(&c.in); *d != 0 {
			bound(&c, t.hint, d, t.least, maxWait)
		}
	}
	if !p.Prefetch && c.in.Prefetch {
		c.drop(hintPrefetch, "not allowed")
	}
	p.keep(&c)
	switch {
	case c.in.Salt == "" && !p.Isolate, c.in.Salt != "" && p.Trust.has(hintSalt):
	default:
		c.in.Salt = deriveSalt(tenant, c.in.Salt)
	}
	return c.in, c.out
}

func least(n int32) int32 {
	if n == 0 {
		return -1 << 31
	}
	return n
}

// keep limits retention and breakpoints.
func (p *Policy) keep(c *clamper) {
	most, points := p.MaxTTL, p.MaxBreakpoints
	if most == 0 {
		most = time.Hour
	}
	if points == 0 {
		points = 4
	}
	if most < 0 {
		if c.in.Retain.TTL != 0 || c.in.Retain.Scope != "" {
			c.note(hintRetain, c.in.Retain, "", "not allowed")
			c.in.Retain.TTL, c.in.Retain.Scope = 0, ""
		}
		if len(c.in.Breakpoints) > 0 {
			c.drop(hintBreakpoints, "not allowed")
		}
		return
	}
	bound(c, hintRetain, &c.in.Retain.TTL, 0, most)
	points = max(points, 0)
	if n := len(c.in.Breakpoints); n > points {
		c.note(hintBreakpoints, n, points, "too many; the last ones are kept")
		c.in.Breakpoints = c.in.Breakpoints[n-points:]
	}
	for i := range c.in.Breakpoints {
		if ttl := c.in.Breakpoints[i].TTL; ttl > most || ttl < 0 {
			list := append([]Breakpoint(nil), c.in.Breakpoints...) // the caller's slice must not change
			for k := range list {
				bound(c, hintBreakpoints, &list[k].TTL, 0, most)
			}
			c.in.Breakpoints = list
			break
		}
	}
}

// clamper collects the changes.
type clamper struct {
	in  Intent
	out []Change
}

func (c *clamper) note(h hint, asked, given any, why string) {
	if len(c.out) < maxFaults {
		f := NewFault("", fmt.Sprint(asked), why)
		c.out = append(c.out, Change{h.String(), f.Value, fmt.Sprint(given), why})
	}
}

// drop removes a hint.
func (c *clamper) drop(h hint, why string) {
	var none Intent
	if h == hintSession { // the other fields need an ID
		for _, part := range []hint{hintParent, hintRoot, hintFinal} {
			about[part].copy(&c.in, &none)
		}
	}
	c.note(h, c.in.text(h), "", why)
	about[h].copy(&c.in, &none)
	c.in.Session.normal()
}

// text returns a hint in our own dialect. It does not include salts and metadata, which may be secret.
func (in *Intent) text(h hint) string {
	switch h {
	case hintSalt:
		return "a salt"
	case hintMeta:
		return strconv.Itoa(len(in.Meta)) + " entries"
	}
	for i := range weftFields {
		if weftFields[i].hint == h {
			raw, _ := weftFields[i].enc(in)
			return string(raw)
		}
	}
	return ""
}

func bound[T int | int32 | uint32 | time.Duration](c *clamper, h hint, n *T, least, most T) {
	switch given := min(max(*n, least), most); {
	case given < *n:
		c.note(h, *n, given, "above the maximum")
		*n = given
	case given > *n:
		c.note(h, *n, given, "below the minimum")
		*n = given
	}
}

// deriveSalt returns a salt for a tenant and the salt that it requested. Different tenants never have the same salt,
// and the result does not reveal the tenant. It has 43 characters, which are valid in every dialect.
func deriveSalt(tenant, salt string) string {
	h := sha256.New()
	h.Write([]byte("weft/intent salt"))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(tenant))))
	h.Write([]byte(tenant))
	h.Write([]byte(salt))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
