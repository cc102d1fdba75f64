// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// Anthropic's Messages API, as of November 2026. cache_control at the root of the body enables automatic caching: a
// breakpoint after the last block that can have one. Its scope (global) is a beta feature that Claude Code uses.

func (r *reader) anthropicBody() {
	r.str(hintServiceTier, &r.in.ServiceTier, r.body("service_tier"))
	r.str(hintSpeed, &r.in.Speed, r.body("speed"))
	r.object("metadata")
	r.str(hintUser, &r.in.User, r.body("metadata", "user_id"))
	if v := r.body("cache_control"); v.ok {
		m := v.object()
		if m == nil {
			return
		}
		kind := v.member(m, "type")
		if word := kind.word(); word != "" && word != "ephemeral" {
			kind.fault("not ephemeral; treated as ephemeral")
		}
		keep := Retain{TTL: DefaultTTL, Scope: v.member(m, "scope").word()}
		if ttl, ok := v.member(m, "ttl").ttl(); ok {
			keep.TTL = ttl
		}
		if r.take(hintRetain) {
			r.in.Retain = keep
		}
	}
}

// DefaultTTL is the retention time of a breakpoint that specifies none, as in Anthropic's API.
const DefaultTTL = 5 * time.Minute

// ParseTTL reads the ttl of a breakpoint: Anthropic's 5m and 1h, OpenAI's 30m and 24h, or a number of seconds, as older
// versions of Dynamo accept, which is limited to the range from 5 minutes to one hour. If s is empty or invalid, ttl is
// [DefaultTTL]. why describes the problem if s is invalid or was limited, and is "" otherwise.
func ParseTTL(s string) (ttl time.Duration, why string) {
	switch s {
	case "", "5m":
		return DefaultTTL, ""
	case "30m":
		return 30 * time.Minute, ""
	case "1h":
		return time.Hour, ""
	case "24h":
		return 24 * time.Hour, ""
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return DefaultTTL, "unknown ttl; 5m is used"
	}
	ttl = time.Duration(min(max(n, 300), 3600)) * time.Second
	if ttl != time.Duration(n)*time.Second {
		why = "not from 300 to 3600 seconds; the nearest is used"
	}
	return ttl, why
}

// ttl reads the ttl of a breakpoint, a string or a whole number. ok is false if it is neither.
func (v value) ttl() (ttl time.Duration, ok bool) {
	if !v.ok {
		return 0, false
	}
	s := v.text
	if x, err := strconv.ParseFloat(s, 64); err == nil && x == math.Trunc(x) {
		s = strconv.FormatFloat(x, 'f', -1, 64)
	} else if s[0] != '"' || json.Unmarshal([]byte(s), &s) != nil {
		v.fault("neither a string nor a whole number of seconds")
		return 0, false
	}
	ttl, why := ParseTTL(s)
	if why != "" {
		v.fault(why)
	}
	return ttl, true
}

var anthropicRows = []capability{
	row(hintServiceTier, "service_tier", func(s *sender) {
		if t := s.in.ServiceTier; t != "auto" && t != "standard_only" {
			s.lose("not an Anthropic service tier")
			return
		}
		s.member(appendString(nil, s.in.ServiceTier), "service_tier")
	}),
	row(hintSpeed, "speed", func(s *sender) {
		if t := s.in.Speed; t != "standard" && t != "fast" {
			s.lose("not an Anthropic speed")
			return
		}
		s.member(appendString(nil, s.in.Speed), "speed")
	}).needs(fastMode),
	row(hintRetain, "cache_control", func(s *sender) {
		keep, ttl := s.in.Retain, "5m"
		if keep.TTL <= 0 {
			s.lose("no ttl")
			return
		}
		given := Retain{TTL: DefaultTTL}
		if keep.TTL >= time.Hour {
			ttl, given.TTL = "1h", time.Hour
		}
		s.member([]byte(`"ephemeral"`), "cache_control", "type")
		s.member(appendString(nil, ttl), "cache_control", "ttl")
		if keep.Scope != "" && s.t.features&cacheScope != 0 && textFault(keep.Scope) == "" {
			s.member(appendString(nil, keep.Scope), "cache_control", "scope")
			given.Scope = keep.Scope
		}
		if given != keep {
			s.instead(strings.TrimSpace(ttl+" "+given.Scope), "anthropic supports ttls of 5m and 1h, and a scope only with the feature cache scope")
		}
	}),
	row(hintBreakpoints, "cache_control", func(*sender) {}), // set in the blocks of the body
	inBodyRow(hintUser, 256, userOf, "metadata", "user_id"),
}

var anthropicMembers = [][]string{{"service_tier"}, {"speed"}, {"cache_control"}, {"metadata", "user_id"}}
