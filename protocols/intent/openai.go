// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"slices"
	"time"
)

// OpenAI's API, Chat Completions and Responses, as of November 2026. It rejects a prompt_cache_key or safety_identifier
// of more than 64 characters.

func (r *reader) openAIBody() {
	r.str(hintCacheKey, &r.in.CacheKey, r.body("prompt_cache_key"))
	r.str(hintServiceTier, &r.in.ServiceTier, r.body("service_tier"))
	r.str(hintUser, &r.in.User, r.body("safety_identifier"))
	r.str(hintUser, &r.in.User, r.body("user"))
	r.object("metadata")
	if r.src.API == "responses" {
		r.object("client_metadata")
	}
	var keep Retain
	if v := r.body("prompt_cache_retention"); v.ok {
		switch v.word() {
		case "in_memory", "in-memory":
			keep.Memory = true
		case "24h":
			keep.TTL = 24 * time.Hour
		default:
			v.fault("neither in_memory nor 24h")
		}
	}
	if v := r.body("prompt_cache_options"); v.ok {
		m := v.object()
		if mode := v.member(m, "mode"); mode.ok {
			switch mode.word() {
			case "explicit":
				keep.Explicit = true
			case "implicit":
			default:
				mode.fault("neither implicit nor explicit")
			}
		}
		if ttl, ok := v.member(m, "ttl").ttl(); ok {
			keep.TTL = ttl
		}
	}
	if keep != (Retain{}) && r.take(hintRetain) {
		r.in.Retain = keep
	}
}

var openAITiers = []string{"auto", "default", "flex", "scale", "priority", "fast"}

var openAIRows = []capability{
	row(hintPriority, "service_tier", func(s *sender) {
		tier := "flex"
		if s.in.Priority > 0 {
			tier = "priority"
		}
		if s.in.ServiceTier != "" {
			s.lose("service_tier is set")
			return
		}
		s.member(appendString(nil, tier), "service_tier")
		s.instead(tier, "openai has only three classes")
	}).needs(buyPriority).priority(HigherSooner), // priority above 0, flex below
	row(hintServiceTier, "service_tier", func(s *sender) {
		if !slices.Contains(openAITiers, s.in.ServiceTier) {
			s.lose("not an OpenAI service tier")
			return
		}
		s.member(appendString(nil, s.in.ServiceTier), "service_tier")
	}),
	row(hintRetain, "prompt_cache_options, prompt_cache_retention", sendOpenAIRetain),     // prompt_cache_options with the feature cache options, else prompt_cache_retention
	row(hintBreakpoints, "prompt_cache_breakpoint", func(*sender) {}).needs(cacheOptions), // set in the blocks of the body
	inBodyRow(hintCacheKey, 64, keyOf, "prompt_cache_key"),
	inBodyRow(hintUser, 64, userOf, "safety_identifier"),
	row(hintRequestID, "x-client-request-id", func(s *sender) {
		if len(s.in.RequestID) > 512 { // the API rejects longer ones
			s.lose("more than 512 bytes")
			return
		}
		s.header("x-client-request-id", s.in.RequestID)
	}),
}

func sendOpenAIRetain(s *sender) {
	keep := s.in.Retain
	if s.t.features&cacheOptions == 0 {
		switch {
		case keep == Retain{Memory: true}:
			s.member([]byte(`"in_memory"`), "prompt_cache_retention")
		case keep == Retain{TTL: 24 * time.Hour}:
			s.member([]byte(`"24h"`), "prompt_cache_retention")
		default:
			s.lose("this model supports only in_memory and 24h")
		}
		return
	}
	short := keep.TTL > 0 && keep.TTL <= 30*time.Minute
	if short {
		s.member([]byte(`"30m"`), "prompt_cache_options", "ttl")
	}
	if keep.Explicit {
		s.member([]byte(`"explicit"`), "prompt_cache_options", "mode")
	}
	switch {
	case !short && !keep.Explicit:
		s.lose("this model supports only a ttl of 30m")
	case keep != Retain{TTL: keep.TTL, Explicit: keep.Explicit} || keep.TTL != 0 && keep.TTL != 30*time.Minute:
		s.instead("the supported part of mode explicit and ttl 30m", "this model supports only a ttl of 30m")
	}
}

var openAIMembers = [][]string{
	{"service_tier"}, {"prompt_cache_key"}, {"prompt_cache_retention"}, {"prompt_cache_options"}, {"safety_identifier"}, {"user"},
}
