// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Polarity specifies which priority goes first. The zero Polarity is unknown.
type Polarity string

// The polarities.
const (
	HigherSooner Polarity = "higher is sooner" // SGLang, Dynamo, and this package
	LowerSooner  Polarity = "lower is sooner"  // vLLM
)

// UnmarshalText sets p to the polarity with the given name: the text of a constant, or unknown. Dashes and underscores
// are treated as spaces.
func (p *Polarity) UnmarshalText(text []byte) error {
	switch s := Polarity(unspaced(string(text))); s {
	case HigherSooner, LowerSooner:
		*p = s
	case "unknown":
		*p = ""
	default:
		return fmt.Errorf("intent: unknown polarity %q: the polarities are unknown, %s and %s", text, HigherSooner, LowerSooner)
	}
	return nil
}

// Source holds the parts of a request that can contain hints. [Read] does not retain it.
type Source struct {
	// API is the API of the body: chat, responses, messages or completions, as block.API spells them. If it is "", only
	// fields with the same meaning in all APIs are read.
	API string
	// Header is the header of the request, an http.Header. Names are matched without regard to case; only the first of
	// several values is used.
	Header map[string][]string
	// Field returns the raw JSON at a path of field names from the root of the body, or nil if it is absent, as the
	// method Field of *block.Request does. If Field is nil, only the header is read.
	Field func(path ...string) []byte
	// Priority is the polarity of the field priority at the root of the body. vLLM and SGLang both have this field,
	// with opposite polarities. If Priority is "", a priority other than 0 is reported as a fault and ignored.
	Priority Polarity
}

// Read returns the hints of a request in all dialects, and at most 64 faults for malformed ones. It never fails. The
// result is what the client requests; a [Policy] limits it to what the client may use.
//
// Headers take precedence over the body. Within each, the first well-formed value in this order is used:
//
//	header  x-weft-*        our own: every hint
//	        x-dynamo-*      priority, tier, session, pins, meta; x-tenant-id is the salt; x-request-id
//	        x-llm-d-*       and the names before, x-gateway-inference-*, x-slo-*: objective, tenant, targets, deadline
//	        of a harness    session: Claude Code, Codex, DeepSeek, opencode, pi; see below
//	        of an engine    x-data-parallel-rank, x-smg-routing-key
//	body    agent           our own: every hint
//	        nvext           Dynamo
//	        of an engine    vLLM and SGLang: priority, cache_salt, session_id, request_id, rid and more
//	        of the API      OpenAI: prompt_cache_*, service_tier, user; Anthropic: cache_control, service_tier, speed, metadata
//
// ID, Parent and Root of a session are read from a single source, the first of these that has an ID:
//
//	x-weft-session           with -parent, -root, -final
//	x-dynamo-session-id      x-dynamo-parent-session-id; x-dynamo-session-final goes with every source
//	x-claude-code-session-id Claude Code: agents share it and add x-claude-code-agent-id, whose ID here is session/agent;
//	                         -parent-agent-id. Without the header, metadata.user_id in both of its spellings
//	thread-id                Codex: x-codex-parent-thread-id, root session-id. Without headers, client_metadata
//	x-deepseek-harness-*     session-id, parent-session-id
//	x-session-id             opencode: x-parent-session-id; x-session-affinity
//	session_id               pi, Responses API only
//	agent.session, session_id, session_params.id     the body
func Read(src Source) (Intent, []Fault) {
	r := reader{src: src, head: headers(src.Header)}
	r.weftHeaders()
	r.dynamoHeaders()
	r.llmdHeaders()
	r.harness()
	r.engineHeaders()
	if src.Field != nil {
		r.weftBody()
		r.dynamoBody()
		r.vllmBody()
		r.sglangBody()
		switch src.API {
		case "chat", "responses", "completions":
			r.openAIBody()
		case "messages":
			r.anthropicBody()
		}
	}
	r.in.Session.normal()
	return r.in, r.faults
}

// headers returns the first value of each header, by name in lower case. If a name occurs in several spellings, the
// lexically first is used.
func headers(h map[string][]string) map[string]string {
	out := make(map[string]string, len(h))
	from := make(map[string]string, len(h))
	for name, list := range h {
		low := strings.ToLower(name)
		if first, twice := from[low]; len(list) > 0 && (!twice || name < first) {
			out[low], from[low] = list[0], name
		}
	}
	return out
}

// reader collects the hints of a request. The first source of each hint takes precedence.
type reader struct {
	src    Source
	head   map[string]string
	in     Intent
	found  Hints
	faults []Fault
}

// take reports whether h was not present yet, and marks it as present.
func (r *reader) take(h hint) bool {
	if r.found.has(h) {
		return false
	}
	r.found = r.found.with(h)
	return true
}

// fault reports a fault, unless one was reported at the same position.
func (r *reader) fault(where, value, why string) {
	f := NewFault(where, value, why)
	if len(r.faults) < maxFaults && !slices.ContainsFunc(r.faults, func(x Fault) bool { return x.Where == f.Where }) {
		r.faults = append(r.faults, f)
	}
}

// value is an unparsed hint and its position.
type value struct {
	r      *reader
	where  string
	text   string
	json   bool // text is JSON
	ok     bool
	hidden bool // the text must not appear in a report
}

// header returns the first of the named headers that is present. Names are in lower case.
func (r *reader) header(names ...string) value {
	for _, name := range names {
		s := strings.TrimSpace(r.head[name])
		switch {
		case s == "":
		case len(s) > maxHeader:
			r.fault("header "+name, "", "too long")
		default:
			return value{r: r, where: "header " + name, text: s, ok: true}
		}
	}
	return value{}
}

// body returns a field of the body.
func (r *reader) body(path ...string) value {
	if r.src.Field == nil {
		return value{}
	}
	raw := bytes.TrimSpace(r.src.Field(path...))
	if len(raw) == 0 || string(raw) == "null" {
		return value{}
	}
	where := strings.Join(path, ".")
	if len(raw) > maxMember {
		r.fault(where, "", "too long")
		return value{}
	}
	return value{r: r, where: where, text: string(raw), json: true, ok: true}
}

func (v value) fault(why string) {
	if v.hidden {
		v.text = ""
	}
	v.r.fault(v.where, v.text, why)
}

// object reports whether a field is an object, and a fault if it is anything else than absent or null.
func (r *reader) object(path ...string) bool {
	raw := bytes.TrimSpace(r.src.Field(path...))
	if len(raw) == 0 || string(raw) == "null" {
		return false
	}
	if raw[0] != '{' {
		r.fault(strings.Join(path, "."), string(raw[:min(len(raw), maxExcerpt+1)]), "not an object")
	}
	return raw[0] == '{'
}

// str returns a string that is valid as an ID or name; "" is treated as absent.
func (v value) str() (string, bool) {
	if !v.ok {
		return "", false
	}
	s := v.text
	if v.json {
		if s[0] != '"' || json.Unmarshal([]byte(s), &s) != nil {
			v.fault("not a string")
			return "", false
		}
	}
	if v.hidden && len(s) > maxText { // dropping the salt would put the request into the shared cache, so derive a short one
		return deriveSalt("", s), true
	}
	if why := textFault(s); why != "" {
		v.fault(why)
		return "", false
	}
	return s, s != ""
}

// int returns an integer from least to most.
func (v value) int(least, most int64) (int64, bool) {
	if !v.ok {
		return 0, false
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil || n < least || n > most {
		v.fault("not a whole number from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10))
		return 0, false
	}
	return n, true
}

// uint returns an unsigned integer of size bits.
func (v value) uint(size int) (uint64, bool) {
	if !v.ok {
		return 0, false
	}
	n, err := strconv.ParseUint(v.text, 10, size)
	if err != nil {
		v.fault("not an unsigned integer of " + strconv.Itoa(size) + " bits")
	}
	return n, err == nil
}

// bool returns a boolean. Headers may also spell it 1, yes, on, 0, no or off.
func (v value) bool() (b, ok bool) {
	if !v.ok {
		return false, false
	}
	s := v.text
	if !v.json {
		s = strings.ToLower(s)
	}
	switch {
	case s == "true", !v.json && (s == "1" || s == "yes" || s == "on"):
		return true, true
	case s == "false", !v.json && (s == "0" || s == "no" || s == "off"):
		return false, true
	}
	v.fault("not a boolean")
	return false, false
}

// Bounds of durations, read or sent. Within them, a float64 holds a number of milliseconds exactly.
const (
	maxWait = 24 * time.Hour
	maxTTL  = 30 * 24 * time.Hour
)

// millis parses a duration in milliseconds.
func (v value) millis() (time.Duration, bool) {
	if !v.ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(v.text, 64)
	if d := math.Round(x * 1e6); err == nil && d > 0 && d <= float64(maxWait) {
		return time.Duration(d), true
	}
	v.fault("not a number of milliseconds above 0 and up to a day")
	return 0, false
}

// duration parses a duration in the format of time.ParseDuration.
func (v value) duration(most time.Duration) (time.Duration, bool) {
	s, ok := v.str()
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > most {
		v.fault("not a duration, such as 1.5s, above 0 and up to " + most.String())
		return 0, false
	}
	return d, true
}

// object returns the fields of a JSON object.
func (v value) object() map[string]json.RawMessage {
	if !v.ok {
		return nil
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(v.text), &m) != nil || m == nil {
		v.fault("not an object")
		return nil
	}
	return m
}

// member returns a field of the object m, which was parsed from v.
func (v value) member(m map[string]json.RawMessage, name string) value {
	raw := bytes.TrimSpace(m[name])
	if len(raw) == 0 || string(raw) == "null" {
		return value{}
	}
	return value{r: v.r, where: v.where + "." + name, text: string(raw), json: true, ok: true, hidden: v.hidden}
}

// Each of the following sets a hint if the value is well-formed and the hint is not present yet. A malformed value is
// always reported.

func (r *reader) str(h hint, to *string, from value) {
	from.hidden = h == hintSalt // a shared secret
	if s, ok := from.str(); ok && r.take(h) {
		*to = s
	}
}

func (r *reader) tokens(h hint, to *int, from value) {
	if n, ok := from.int(0, math.MaxInt32); ok && r.take(h) {
		*to = int(n)
	}
}

func (r *reader) priority(from value) {
	if n, ok := from.int(math.MinInt32, math.MaxInt32); ok && r.take(hintPriority) {
		r.in.Priority = int32(n)
	}
}

func (r *reader) tier(from value) {
	if n, ok := from.uint(32); ok && r.take(hintTier) {
		r.in.Tier = uint32(n)
	}
}

func (r *reader) millis(h hint, from value) {
	if d, ok := from.millis(); ok && r.take(h) {
		*durationOf(h)(&r.in) = d
	}
}

// durationOf returns a function that returns the field of a hint that is a duration.
func durationOf(h hint) func(*Intent) *time.Duration {
	return func(in *Intent) *time.Duration {
		switch h {
		case hintTTFT:
			return &in.TTFT
		case hintITL:
			return &in.ITL
		}
		return &in.Deadline
	}
}

// session sets the session to s, unless one is present.
func (r *reader) session(s Session) {
	if s.ID == "" || !r.take(hintSession) {
		return
	}
	r.in.Session.ID, r.in.Session.Parent, r.in.Session.Root = s.ID, s.Parent, s.Root
	r.in.Session.Final = r.in.Session.Final || s.Final
}

// word returns the string in v, or "" if absent or malformed.
func (v value) word() string {
	s, _ := v.str()
	return s
}

func (r *reader) rank(to **uint32, from value) {
	if n, ok := from.uint(32); ok && *to == nil && n != math.MaxUint32 { // Dynamo's value for an absent rank
		n := uint32(n)
		*to = &n
	}
}

func (r *reader) worker(to **uint64, from value) {
	if n, ok := from.uint(64); ok && *to == nil {
		*to = &n
	}
}
