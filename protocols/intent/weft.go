// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// The package comment describes the syntax of our own dialect.

const (
	weftMember = "agent"
	weftHeader = "x-weft-"
)

// weftField encodes and decodes one hint in our own dialect.
type weftField struct {
	hint hint
	text bool // a string, which is unquoted in a header
	enc  func(*Intent) ([]byte, string)
	dec  func(*Intent, value) bool
}

var weftFields = []weftField{
	numField(hintPriority, math.MinInt32, math.MaxInt32, func(in *Intent) *int32 { return &in.Priority }),
	numField(hintTier, 0, math.MaxUint32, func(in *Intent) *uint32 { return &in.Tier }),
	textField(hintServiceTier, serviceOf),
	textField(hintSpeed, func(in *Intent) *string { return &in.Speed }),
	textField(hintObjective, goalOf),
	numField(hintExpectedOutput, 0, math.MaxInt32, outputOf),
	numField(hintMaxThinking, 0, math.MaxInt32, thinkingOf),
	boolField(hintPrefetch, func(in *Intent) *bool { return &in.Prefetch }),
	enumField(hintPace, paces, func(in *Intent) *Pace { return &in.Pace }),
	timeField(hintTTFT),
	timeField(hintITL),
	timeField(hintDeadline),
	{hint: hintRetain, enc: encRetain, dec: decRetain},
	{hint: hintBreakpoints, enc: encBreakpoints, dec: decBreakpoints},
	textField(hintSalt, saltOf),
	textField(hintCacheKey, keyOf),
	{hint: hintEvict, enc: encEvict, dec: decEvict},
	textField(hintTenant, tenantOf),
	textField(hintUser, userOf),
	textField(hintDataClass, func(in *Intent) *string { return &in.DataClass }),
	textField(hintSession, sessionOf),
	textField(hintParent, parentOf),
	textField(hintRoot, func(in *Intent) *string { return &in.Session.Root }),
	boolField(hintFinal, func(in *Intent) *bool { return &in.Session.Final }),
	textField(hintAgent, func(in *Intent) *string { return &in.Session.Agent }),
	textField(hintHarness, func(in *Intent) *string { return &in.Session.Harness }),
	textField(hintTurn, func(in *Intent) *string { return &in.Session.Turn }),
	textField(hintWindow, func(in *Intent) *string { return &in.Session.Window }),
	enumField(hintTrigger, triggers, func(in *Intent) *Trigger { return &in.Trigger }),
	{hint: hintCompaction, enc: encCompaction, dec: decCompaction},
	textField(hintRequestID, requestIDOf),
	{hint: hintPin, enc: encPin, dec: decPin},
	{hint: hintMeta, enc: encMeta, dec: decMeta},
}

var weftRows = func() (rows []capability) {
	for _, f := range weftFields {
		name := weftHeaderOf(f.hint)
		rows = append(rows, row(f.hint, weftMember+"."+f.hint.String()+" or "+name, func(s *sender) {
			raw, why := f.enc(s.in)
			switch {
			case why != "":
				s.lose(why)
			case s.t.features&inHeaders == 0:
				s.member(raw, weftMember, f.hint.String())
			default:
				s.header(name, f.inHeader(raw))
			}
		}))
		if f.hint == hintPriority {
			rows[len(rows)-1].polarity = HigherSooner
		}
	}
	return rows
}()

func weftHeaderOf(h hint) string { return weftNames[h] }

var weftNames = func() (names [numHints]string) {
	for h := range numHints {
		names[h] = weftHeader + strings.ReplaceAll(h.String(), "_", "-")
	}
	return names
}()

// inHeader converts a JSON value to the value of a header.
func (f *weftField) inHeader(raw []byte) string {
	var s string
	if f.text && json.Unmarshal(raw, &s) == nil && inHeader(s) && s[0] != '"' {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		c, n := utf8.DecodeRune(raw[i:])
		switch i += n; {
		case c > 0xffff:
			hi, lo := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		case c > '~':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func (r *reader) weftHeaders() {
	r.weft(func(f *weftField) value {
		v := r.header(weftHeaderOf(f.hint))
		v.json = !f.text || strings.HasPrefix(v.text, `"`)
		return v
	})
}

func (r *reader) weftBody() {
	root := r.body(weftMember)
	if !root.ok || root.text[0] != '{' {
		return // not our dialect
	}
	m := root.object()
	r.weft(func(f *weftField) value { return root.member(m, f.hint.String()) })
}

// oneSource holds the hints that must come from the source of the session.
var oneSource = setOf(hintParent, hintRoot)

func (r *reader) weft(get func(*weftField) value) {
	named := r.found.has(hintSession)
	for i := range weftFields {
		f := &weftFields[i]
		if r.found.has(f.hint) || oneSource.has(f.hint) && named {
			continue
		}
		if v := get(f); v.ok && f.dec(&r.in, v) {
			r.take(f.hint)
		}
	}
	if !r.found.has(hintSession) { // ignore a parent without a session
		r.in.Session.Parent, r.in.Session.Root = "", ""
		r.found &^= oneSource
	}
}

// The codecs.

func textField(h hint, at func(*Intent) *string) weftField {
	return weftField{
		hint: h, text: true,
		enc: func(in *Intent) ([]byte, string) { return appendString(nil, *at(in)), textFault(*at(in)) },
		dec: func(in *Intent, v value) bool {
			v.hidden = h == hintSalt
			s, ok := v.str()
			if ok {
				*at(in) = s
			}
			return ok
		},
	}
}

func numField[T int | int32 | uint32](h hint, least, most int64, at func(*Intent) *T) weftField {
	return weftField{
		hint: h,
		enc: func(in *Intent) ([]byte, string) {
			n := int64(*at(in))
			if n < least || n > most {
				return nil, "out of range"
			}
			return strconv.AppendInt(nil, n, 10), ""
		},
		dec: func(in *Intent, v value) bool {
			n, ok := v.int(least, most)
			if ok {
				*at(in) = T(n)
			}
			return ok
		},
	}
}

func boolField(h hint, at func(*Intent) *bool) weftField {
	return weftField{
		hint: h,
		enc:  func(in *Intent) ([]byte, string) { return strconv.AppendBool(nil, *at(in)), "" },
		dec: func(in *Intent, v value) bool {
			b, ok := v.bool()
			if ok {
				*at(in) = b
			}
			return ok
		},
	}
}

func enumField[T ~string](h hint, values []T, at func(*Intent) *T) weftField {
	return weftField{
		hint: h, text: true,
		enc: func(in *Intent) ([]byte, string) {
			if v := *at(in); slices.Contains(values, v) {
				return appendString(nil, string(v)), ""
			}
			return nil, "out of range"
		},
		dec: func(in *Intent, v value) bool {
			s, ok := v.str()
			if !ok {
				return false
			}
			if !slices.Contains(values, T(s)) {
				v.fault(fmt.Sprintf("not one of %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ", "), "[]")))
				return false
			}
			*at(in) = T(s)
			return true
		},
	}
}

func timeField(h hint) weftField {
	at := durationOf(h)
	return weftField{
		hint: h, text: true,
		enc: func(in *Intent) ([]byte, string) {
			if d := *at(in); d <= 0 || d > maxWait {
				return nil, "not a duration above 0 and up to a day"
			}
			return appendString(nil, at(in).String()), ""
		},
		dec: func(in *Intent, v value) bool {
			d, ok := v.duration(maxWait)
			if ok {
				*at(in) = d
			}
			return ok
		},
	}
}

// retainJSON is a Retain as JSON.
type retainJSON struct {
	Scope    string `json:"scope,omitempty"`
	TTL      string `json:"ttl,omitempty"`
	Explicit bool   `json:"explicit,omitempty"`
	Memory   bool   `json:"memory,omitempty"`
}

func ttlText(d time.Duration) (text, why string) {
	switch {
	case d == 0:
		return "", ""
	case d < 0 || d > maxTTL:
		return "", "not a ttl from 0 to 30 days"
	}
	return d.String(), ""
}

func textTTL(s string) (time.Duration, bool) {
	if s == "" {
		return 0, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d > 0 && d <= maxTTL
}

func encRetain(in *Intent) ([]byte, string) {
	ttl, why := ttlText(in.Retain.TTL)
	if why == "" {
		why = textFault(in.Retain.Scope)
	}
	return marshal(retainJSON{in.Retain.Scope, ttl, in.Retain.Explicit, in.Retain.Memory}), why
}

func decRetain(in *Intent, v value) bool {
	var x retainJSON
	if !v.decode(&x) {
		return false
	}
	ttl, ok := textTTL(x.TTL)
	if !ok || textFault(x.Scope) != "" {
		v.fault("invalid ttl or scope")
		return false
	}
	in.Retain = Retain{x.Scope, ttl, x.Explicit, x.Memory}
	return true
}

// pointJSON is a breakpoint as JSON. Indexes of -1 are absent.
type pointJSON struct {
	Tool   *int32 `json:"tool,omitempty"`
	Turn   *int32 `json:"turn,omitempty"`
	Block  *int32 `json:"block,omitempty"`
	Inner  *int32 `json:"inner,omitempty"`
	Tokens int32  `json:"tokens,omitempty"`
	TTL    string `json:"ttl,omitempty"`
	Scope  string `json:"scope,omitempty"`
	Auto   bool   `json:"auto,omitempty"`
}

func encBreakpoints(in *Intent) ([]byte, string) {
	if len(in.Breakpoints) > maxPoints {
		return nil, "more than " + strconv.Itoa(maxPoints) + " breakpoints"
	}
	list := make([]pointJSON, 0, len(in.Breakpoints))
	for _, b := range in.Breakpoints {
		x := pointJSON{Tokens: int32(b.Tokens), Scope: b.Scope, Auto: b.Auto}
		why := textFault(b.Scope)
		if x.TTL, _ = ttlText(b.TTL); x.TTL == "" && b.TTL != 0 || why != "" || b.Tokens < 0 || b.Tokens > math.MaxInt32 {
			return nil, "invalid breakpoint"
		}
		for _, f := range []struct {
			to **int32
			n  int
		}{{&x.Tool, b.Tool}, {&x.Turn, b.Turn}, {&x.Block, b.Block}, {&x.Inner, b.Inner}} {
			switch {
			case f.n < -1 || f.n > math.MaxInt32:
				return nil, "invalid breakpoint"
			case f.n >= 0:
				n := int32(f.n)
				*f.to = &n
			}
		}
		list = append(list, x)
	}
	return marshal(list), ""
}

func decBreakpoints(in *Intent, v value) bool {
	var raw []json.RawMessage // check the number of elements before decoding them
	if !v.decode(&raw) {
		return false
	}
	if len(raw) > maxPoints {
		v.fault("more than " + strconv.Itoa(maxPoints) + " breakpoints")
		return false
	}
	var list []pointJSON
	if !v.decode(&list) {
		return false
	}
	index := func(n *int32) int {
		if n == nil {
			return -1
		}
		return int(*n)
	}
	var out []Breakpoint
	for _, x := range list {
		b := Breakpoint{
			Tool: index(x.Tool), Turn: index(x.Turn), Block: index(x.Block), Inner: index(x.Inner), Tokens: int(x.Tokens),
			Scope: x.Scope, Auto: x.Auto,
		}
		var ok bool
		if b.TTL, ok = textTTL(x.TTL); !ok || min(b.Tool, b.Turn, b.Block, b.Inner, b.Tokens) < -1 || b.Tokens < 0 || textFault(b.Scope) != "" {
			v.fault("invalid breakpoint")
			return false
		}
		out = append(out, b)
	}
	in.Breakpoints = out
	return len(out) > 0
}

func encEvict(in *Intent) ([]byte, string) {
	if in.Evict>>len(evictNames) != 0 {
		return nil, "out of range"
	}
	var list []string
	for i, name := range evictNames {
		if in.Evict&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return marshal(list), ""
}

func decEvict(in *Intent, v value) bool {
	var list []string
	if !v.decode(&list) {
		return false
	}
	var e Evict
	for _, name := range list {
		i := slices.Index(evictNames, name)
		if i < 0 {
			v.fault("not one of " + strings.Join(evictNames, ", "))
			return false
		}
		e |= 1 << i
	}
	in.Evict = e
	return e != 0
}

func encCompaction(in *Intent) ([]byte, string) {
	raw := []byte{'{'}
	for _, name := range compactionNames {
		text := in.Compaction[name]
		if text == "" {
			continue
		}
		if why := textFault(text); why != "" {
			return nil, why
		}
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(append(raw, `"`+name+`":`...), marshal(text)...)
	}
	return append(raw, '}'), ""
}

func decCompaction(in *Intent, v value) bool {
	if v.text[0] != '{' || !json.Valid([]byte(v.text)) {
		v.fault("not an object")
		return false
	}
	in.Compaction = v.compaction(json.RawMessage(v.text))
	return true
}

func encPin(in *Intent) ([]byte, string) { return marshal(in.Pin), "" }

func decPin(in *Intent, v value) bool {
	var p Pin
	if !v.decode(&p) {
		return false
	}
	in.Pin = p
	return p != Pin{}
}

func metaFault(m map[string]string) string {
	size := 0
	for name, v := range m {
		size += len(name) + len(v)
		switch {
		case secret(name):
			return "credentials are not allowed in metadata"
		case !metaName(name) || !utf8.ValidString(v):
			return "invalid name, or a value that is not UTF-8"
		}
	}
	if len(m) > maxMeta || size > maxMetaBytes {
		return "too much metadata"
	}
	return ""
}

func encMeta(in *Intent) ([]byte, string) { return marshal(in.Meta), metaFault(in.Meta) }

func decMeta(in *Intent, v value) bool {
	var m map[string]string
	v.hidden = true
	if !v.decode(&m) {
		return false
	}
	if why := metaFault(m); why != "" {
		v.fault(why)
		return false
	}
	if len(m) > 0 {
		in.Meta = m
	}
	return len(m) > 0
}

// decode reads JSON into x.
func (v value) decode(x any) bool {
	if err := json.Unmarshal([]byte(v.text), x); err != nil {
		v.fault("invalid JSON or wrong type")
		return false
	}
	return true
}

// marshal encodes x, which must be a type that cannot fail.
func marshal(x any) []byte {
	raw, err := json.Marshal(x)
	if err != nil {
		panic("intent: " + err.Error())
	}
	return raw
}

// appendString appends s as a JSON string. Invalid UTF-8 is replaced by U+FFFD.
func appendString(dst []byte, s string) []byte { return append(dst, marshal(s)...) }
