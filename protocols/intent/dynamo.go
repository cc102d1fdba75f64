// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dynamo reads hints from the object nvext in the body, where an unknown field fails the whole request, and from
// x-dynamo-* headers, according to ai-dynamo/dynamo, lib/llm/src/protocols/common/extensions.rs and agents.rs at
// 004e2c53. There are two differences: a malformed value is reported, and excess metadata is dropped where Dynamo
// responds with status 431.

const dynamoMeta = "x-dynamo-meta-"

func (r *reader) dynamoHeaders() {
	r.priority(r.header("x-dynamo-request-priority"))
	r.tier(r.header("x-dynamo-request-strict-priority"))
	r.str(hintSalt, &r.in.Salt, r.header("x-tenant-id"))
	r.str(hintRequestID, &r.in.RequestID, r.header("x-request-id"))
	r.session(Session{
		ID: r.header("x-dynamo-session-id").word(), Parent: r.header("x-dynamo-parent-session-id").word(),
	})
	if final, ok := r.header("x-dynamo-session-final").bool(); ok && r.take(hintFinal) {
		r.in.Session.Final = final
	}
	if id := r.header("x-dynamo-worker-instance-id", "x-worker-instance-id"); id.ok {
		r.worker(&r.in.Pin.Worker, id)
		r.in.Pin.Decode = cmpPtr(r.in.Pin.Decode, r.in.Pin.Worker)
	}
	r.worker(&r.in.Pin.Prefill, r.header("x-dynamo-prefill-instance-id", "x-prefill-instance-id"))
	r.rank(&r.in.Pin.Rank, r.header("x-dynamo-dp-rank", "x-dp-rank", "x-data-parallel-rank"))
	r.rank(&r.in.Pin.PrefillRank, r.header("x-dynamo-prefill-dp-rank", "x-prefill-dp-rank"))

	var meta map[string]string
	size := 0
	var names []string
	for name := range r.head {
		if strings.HasPrefix(name, dynamoMeta) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		key := name[len(dynamoMeta):]
		where, v := "header "+name, strings.TrimSpace(r.head[name])
		switch {
		case secret(key):
			r.fault(where, "", "credentials are not allowed in metadata")
		case !inHeader(v) || !metaName(key):
			r.fault(where, "", "empty, or contains characters not allowed in a header")
		case len(meta) == maxMeta || size+len(key)+len(v) > maxMetaBytes:
			r.fault(where, "", "too much metadata")
		default:
			if meta == nil {
				meta = map[string]string{}
			}
			meta[key] = v
			size += len(key) + len(v)
		}
	}
	if meta != nil && r.take(hintMeta) {
		r.in.Meta = meta
	}
}

// secret reports whether metadata with this name would contain credentials. Dynamo rejects the first two names.
func secret(name string) bool {
	switch strings.ReplaceAll(name, "_", "-") {
	case "authorization", "cookie", "set-cookie", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key":
		return true
	}
	return false
}

// metaName reports whether s is valid as the end of a header name.
func metaName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

func cmpPtr[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func (r *reader) dynamoBody() {
	if !r.object("nvext") {
		return
	}
	r.object("nvext", "agent_hints")
	r.object("nvext", "router")
	hints := func(name string) value { return r.body("nvext", "agent_hints", name) }
	r.priority(hints("priority"))
	r.tier(hints("strict_priority"))
	r.tokens(hintExpectedOutput, &r.in.ExpectedOutput, hints("osl"))
	if b, ok := hints("speculative_prefill").bool(); ok && r.take(hintPrefetch) {
		r.in.Prefetch = b
	}
	if v := hints("latency_sensitivity"); v.ok { // deprecated: the number of seconds by which the request precedes others
		if x, err := strconv.ParseFloat(v.text, 64); err != nil {
			v.fault("not a number")
		} else if x > 0 && r.take(hintPace) {
			r.in.Pace = Interactive
		}
	}
	r.tokens(hintMaxThinking, &r.in.MaxThinking, r.body("nvext", "max_thinking_tokens"))
	r.str(hintSalt, &r.in.Salt, r.body("nvext", "cache_salt"))
	r.millis(hintTTFT, r.body("nvext", "router", "ttft_target"))
	r.millis(hintITL, r.body("nvext", "router", "itl_target"))
	r.worker(&r.in.Pin.Worker, r.body("nvext", "backend_instance_id"))
	r.worker(&r.in.Pin.Prefill, r.body("nvext", "prefill_worker_id"))
	r.worker(&r.in.Pin.Decode, r.body("nvext", "decode_worker_id"))
	r.rank(&r.in.Pin.Rank, r.body("nvext", "dp_rank"))
	r.rank(&r.in.Pin.PrefillRank, r.body("nvext", "prefill_dp_rank"))
}

var dynamoRows = []capability{
	row(hintPriority, "nvext.agent_hints.priority", func(s *sender) {
		s.member(strconv.AppendInt(nil, int64(s.in.Priority), 10), "nvext", "agent_hints", "priority")
	}).since("1.1.0").priority(HigherSooner), // earlier versions use the polarity of the engine
	row(hintTier, "nvext.agent_hints.strict_priority", func(s *sender) {
		s.member(strconv.AppendUint(nil, uint64(s.in.Tier), 10), "nvext", "agent_hints", "strict_priority")
	}).since("1.3.0"),
	countRow(hintExpectedOutput, outputOf, "nvext", "agent_hints", "osl"),
	countRow(hintMaxThinking, thinkingOf, "nvext", "max_thinking_tokens"),
	row(hintPrefetch, "nvext.agent_hints.speculative_prefill", func(s *sender) {
		s.member([]byte("true"), "nvext", "agent_hints", "speculative_prefill")
	}), // renders text only: after reasoning or calls it warms the wrong prefix
	row(hintTTFT, "nvext.router.ttft_target", func(s *sender) { s.floatMillis(s.in.TTFT, "nvext", "router", "ttft_target") }).
		since("1.6.0"), // undocumented
	row(hintITL, "nvext.router.itl_target", func(s *sender) { s.floatMillis(s.in.ITL, "nvext", "router", "itl_target") }).
		since("1.6.0"), // undocumented
	inBodyRow(hintSalt, maxText, saltOf, "nvext", "cache_salt").since("1.3.0"), // with SGLang, it separates only routing
	inHeaderRow(hintSession, "x-dynamo-session-id", sessionOf).since("1.4.0"),
	inHeaderRow(hintParent, "x-dynamo-parent-session-id", parentOf).since("1.4.0"),
	row(hintFinal, "x-dynamo-session-final", func(s *sender) { s.header("x-dynamo-session-final", "true") }).since("1.4.0"),
	inHeaderRow(hintRequestID, "x-request-id", requestIDOf),
	row(hintPin, "nvext.backend_instance_id and others", func(s *sender) {
		p := &s.in.Pin
		for _, m := range []struct {
			name string
			id   *uint64
		}{
			{"backend_instance_id", p.Worker}, {"prefill_worker_id", p.Prefill}, {"decode_worker_id", p.Decode},
			{"dp_rank", widen(p.Rank)}, {"prefill_dp_rank", widen(p.PrefillRank)},
		} {
			if m.id != nil {
				s.member(strconv.AppendUint(nil, *m.id, 10), "nvext", m.name)
			}
		}
	}),
	row(hintMeta, dynamoMeta+"*", func(s *sender) {
		size, sent := 0, 0
		for _, name := range slices.Sorted(maps.Keys(s.in.Meta)) {
			v := s.in.Meta[name]
			if sent == maxMeta || size+len(name)+len(v) > maxMetaBytes || !metaName(name) || !inHeader(v) || secret(name) {
				continue
			}
			size += len(name) + len(v)
			sent++
			s.out.headers = append(s.out.headers, sentHeader{dynamoMeta + name, v})
		}
		switch {
		case sent == 0:
			s.lose("no entry can be sent in a header")
		case sent < len(s.in.Meta):
			s.instead(strconv.Itoa(sent)+" entries", "too much metadata, or entries that cannot be sent in a header")
		}
	}),
}

func widen(n *uint32) *uint64 {
	if n == nil {
		return nil
	}
	w := uint64(*n)
	return &w
}

// floatMillis sends a duration in milliseconds with a fraction.
func (s *sender) floatMillis(d time.Duration, path ...string) {
	if s.wait(d) {
		raw, _ := json.Marshal(float64(d) / 1e6)
		s.member(raw, path...)
	}
}

// dynamoMembers lists the fields of nvext that are hints.
var dynamoMembers = [][]string{
	{"nvext", "agent_hints"}, {"nvext", "max_thinking_tokens"}, {"nvext", "cache_salt"}, {"nvext", "router"},
	{"nvext", "backend_instance_id"}, {"nvext", "prefill_worker_id"}, {"nvext", "decode_worker_id"}, {"nvext", "dp_rank"},
	{"nvext", "prefill_dp_rank"},
}
