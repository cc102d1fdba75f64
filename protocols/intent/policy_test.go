// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestClamp(t *testing.T) {
	policies := map[string]Policy{
		"gold": {
			Trust: setOf(hintTier, hintPin, hintSalt), MaxPriority: 5, MinPriority: -2, MaxTier: 1, MaxOutput: 1000,
			MaxTTL: 10 * time.Minute, Prefetch: true, MinTTFT: 100 * time.Millisecond,
		},
		"own":  {Isolate: true, MaxTTL: -1},
		"shut": {Deny: setOf(hintSession)},
	}
	pin := Pin{Rank: new(uint32(1))}
	tests := []struct {
		name, tenant string
		ask, want    Intent
		clamped      []Change
	}{
		{name: "nothing"},
		{
			name: "no priority",
			ask:  Intent{Priority: 3, ServiceTier: "priority", Speed: "fast", Tier: 1, Pin: pin, Evict: EvictSession, Prefetch: true, Tenant: "gold"},
			clamped: []Change{
				{"tier", "1", "", "not trusted"},
				{"evict", `["session"]`, "", "not trusted"},
				{"tenant", `"gold"`, "", "not trusted"},
				{"pin", `{"rank":1}`, "", "not trusted"},
				{"priority", "3", "0", "above the maximum"},
				{"service_tier", `"priority"`, "", "above the maximum priority"},
				{"speed", `"fast"`, "", "above the maximum priority"},
				{"prefetch", "true", "", "not allowed"},
			},
		},
		{
			name: "lower priority", ask: Intent{Priority: -9, ServiceTier: "flex"},
			want: Intent{Priority: -9, ServiceTier: "flex"},
		},
		{
			name: "a trusted tenant", tenant: "gold",
			ask: Intent{
				Priority: 9, Tier: 7, ServiceTier: "priority", ExpectedOutput: 5000, Prefetch: true, Pin: pin, Salt: "s", TTFT: time.Millisecond,
				Retain: Retain{TTL: time.Hour}, Tenant: "gold",
			},
			want: Intent{
				Priority: 5, Tier: 1, ServiceTier: "priority", ExpectedOutput: 1000, Prefetch: true, Pin: pin, Salt: "s", TTFT: 100 * time.Millisecond,
				Retain: Retain{TTL: 10 * time.Minute}, Tenant: "gold",
			},
			clamped: []Change{
				{"priority", "9", "5", "above the maximum"},
				{"tier", "7", "1", "above the maximum"},
				{"expected_output", "5000", "1000", "above the maximum"},
				{"ttft", "1ms", "100ms", "below the minimum"},
				{"retain", "1h0m0s", "10m0s", "above the maximum"},
			},
		},
		{
			name: "a lowest priority", tenant: "gold", ask: Intent{Priority: -7}, want: Intent{Priority: -2, Tenant: "gold"},
			clamped: []Change{{"priority", "-7", "-2", "below the minimum"}},
		},
		{
			name: "a cache of its own, nothing kept", tenant: "own",
			ask:  Intent{Breakpoints: []Breakpoint{{TTL: time.Hour}}},
			want: Intent{Tenant: "own", Salt: deriveSalt("own", "")},
			clamped: []Change{
				{"breakpoints", `[{"tool":0,"turn":0,"block":0,"inner":0,"ttl":"1h0m0s"}]`, "", "not allowed"},
			},
		},
		{
			name: "no session", tenant: "shut", ask: Intent{Session: Session{ID: "a", Parent: "b", Final: true, Harness: "pi"}},
			want:    Intent{Tenant: "shut", Session: Session{Harness: "pi"}},
			clamped: []Change{{"session", `"a"`, "", "denied"}},
		},
		{
			name: "breakpoints",
			ask: Intent{Breakpoints: []Breakpoint{
				{Turn: 1}, {Turn: 2, TTL: 24 * time.Hour}, {Turn: 3}, {Turn: 4}, {Turn: 5, TTL: time.Minute},
			}},
			want: Intent{Breakpoints: []Breakpoint{
				{Turn: 2, TTL: time.Hour}, {Turn: 3}, {Turn: 4}, {Turn: 5, TTL: time.Minute},
			}},
			clamped: []Change{
				{"breakpoints", "5", "4", "too many; the last ones are kept"},
				{"breakpoints", "24h0m0s", "1h0m0s", "above the maximum"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policies[tt.tenant]
			got, clamped := p.Clamp(tt.tenant, tt.ask)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.clamped, clamped); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestClampApart tests that no two tenants get the same salt.
func TestClampApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Policy
		p.Isolate = rapid.Bool().Draw(t, "isolate")
		one, two := rapid.String().Draw(t, "one"), rapid.String().Draw(t, "two")
		a, _ := p.Clamp(one, Intent{Salt: rapid.String().Draw(t, "a")})
		b, _ := p.Clamp(two, Intent{Salt: rapid.String().Draw(t, "b")})
		if one != two && (a.Salt != "" || b.Salt != "") {
			require.NotEqual(t, a.Salt, b.Salt)
		}
	})
}

// TestClampBounds tests that the zero policy drops guarded hints and does not modify the caller's Intent.
func TestClampBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := intents.Draw(t, "intent")
		before, _ := json.Marshal(in)
		got, clamped := new(Policy).Clamp("", in)
		after, _ := json.Marshal(in)
		require.Equal(t, string(before), string(after))
		require.Zero(t, got.Hints()&guarded)
		require.LessOrEqual(t, got.CoarsePriority(), int32(0))
		require.LessOrEqual(t, got.Retain.TTL, time.Hour)
		touched := setOf(hintSalt)
		for _, c := range clamped {
			touched = touched | MustHints(c.Hint)
		}
		if diff := cmp.Diff(in.Only(allHints&^touched), got.Only(allHints&^touched)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAppendBody(t *testing.T) {
	in := Intent{
		Priority: -1, Salt: "s", ExpectedOutput: 9, User: "u", Retain: Retain{TTL: time.Hour},
		Session: Session{ID: "x", Root: "x"},
	}
	tests := []struct {
		name       string
		to         Target
		body, want string
	}{
		{"empty", Target{kind: vllm}, ` { } `, ` {"cache_salt":"s" } `},
		{
			"the client's hints go", Target{kind: vllm},
			`{"model": "m", "priority" : 7, "nvext":{"a":1}, "agent":{"tier":9}, "cache_salt":"old", "user":"stays" }`,
			`{"model": "m", "cache_salt":"s", "user":"stays" }`,
		},
		{
			"agent that is not an object stays", Target{kind: vllm}, `{"agent":"support","cache_salt":"s"}`,
			`{"agent":"support","cache_salt":"s"}`,
		},
		{"all go", Target{kind: llmd, version: "0.7"}, `{"priority":7,"rid":"r"}`, `{"cache_salt":"s"}`},
		{
			"the rest of nvext stays", Target{kind: dynamo},
			`{"nvext": {"annotations": ["x"], "agent_hints": {"priority": 5, "strict_priority": 3}, "dp_rank":1}, "model":"m"}`,
			`{"nvext": {"annotations": ["x"], "agent_hints": {"priority":-1,"osl":9},"cache_salt":"s"}, "model":"m"}`,
		},
		{
			"nvext is null", Target{kind: dynamo}, `{"nvext":null}`,
			`{"nvext":{"agent_hints":{"priority":-1,"osl":9},"cache_salt":"s"}}`,
		},
		{
			"members spelled with escapes, and twice", Target{kind: vllm}, `{"pri\u006frity":1,"cache_salt":"a","cache_salt":"b"}`,
			`{"cache_salt":"s"}`,
		},
		{
			"anthropic", Target{kind: anthropic}, `{"metadata":{"user_id":"old","k":[{"}":"]"}]},"cache_control":{"type":"ephemeral"}}`,
			`{"metadata":{"user_id":"u","k":[{"}":"]"}]},"cache_control":{"type":"ephemeral","ttl":"1h"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := emit(&in, tt.to)
			got, err := out.AppendBody([]byte("head"), []byte(tt.body))
			require.NoError(t, err)
			require.Equal(t, "head"+tt.want, string(got))
			require.True(t, json.Valid(got[4:]))
		})
	}
	for _, bad := range []string{``, `[]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{1:2}`, `{"a" 1}`, `{"nvext":{"a":}}`, `{"a":"`, `{"a":[}`} {
		out := emit(&in, Target{kind: dynamo})
		_, err := out.AppendBody(nil, []byte(bad))
		require.Error(t, err, bad)
	}
}

func TestSetHeaders(t *testing.T) {
	h := header("X-Dynamo-Request-Priority", "9", "x-dynamo-meta-a", "b", "X-Claude-Code-Session-Id", "s", "x-weft-tier", "3",
		"X-Weft-Tool-Dispatch", "1", "Authorization", "Bearer x", "Session_id", "p", "X-Request-Id", "old")
	out := emit(&Intent{RequestID: "new", Session: Session{ID: "s"}}, Target{kind: dynamo})
	out.SetHeaders(h)
	if diff := cmp.Diff(http.Header{
		"X-Weft-Tool-Dispatch": {"1"}, "Authorization": {"Bearer x"}, "X-Request-Id": {"new"}, "X-Dynamo-Session-Id": {"s"},
	}, h); diff != "" {
		t.Error(diff)
	}
}

func TestHolds(t *testing.T) {
	at := func(tokens int, ttl time.Duration, scope string) Breakpoint {
		return Breakpoint{Tokens: tokens, TTL: ttl, Scope: scope}
	}
	tests := []struct {
		name string
		list []Breakpoint
		want []Breakpoint
	}{
		{"none", nil, nil},
		{"unknown, or before the first block", []Breakpoint{at(0, time.Hour, ""), at(15, time.Hour, "")}, nil},
		{"whole blocks", []Breakpoint{at(16, 1, "")}, []Breakpoint{at(16, 1, "")}},
		{"a part does not count", []Breakpoint{at(47, 1, "")}, []Breakpoint{at(32, 1, "")}},
		{
			"what is longer and keeps as long is enough",
			[]Breakpoint{at(16, 5, ""), at(32, 9, ""), at(64, 5, ""), at(65, 3, "")}, []Breakpoint{at(32, 9, ""), at(64, 5, "")},
		},
		{"scopes stand apart", []Breakpoint{at(16, 5, "global"), at(32, 9, "")}, []Breakpoint{at(16, 5, "global"), at(32, 9, "")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Holds(tt.list, 16)); diff != "" {
				t.Error(diff)
			}
			require.Empty(t, Holds(tt.list, 0))
		})
	}
}

func TestParseTTL(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"": 5 * time.Minute, "5m": 5 * time.Minute, "1h": time.Hour, "30m": 30 * time.Minute, "600": 10 * time.Minute,
		"1": 5 * time.Minute, "9999": time.Hour, "-5": 5 * time.Minute, "2h": 5 * time.Minute, "99999999999999999999": 5 * time.Minute,
	} {
		got, _ := ParseTTL(s)
		require.Equal(t, want, got, s)
	}
}

func TestPolarity(t *testing.T) {
	on := priorityScheduling
	for _, tt := range []struct {
		to   Target
		want string
	}{
		{Target{kind: vllm}, ""}, // vLLM would reject the request
		{Target{kind: vllm, features: on}, "-7"},
		{Target{kind: sglang, features: on}, "7"},
		{Target{kind: sglang, features: on | lowValuesFirst}, "-7"},
		{Target{kind: dynamo}, "7"},
		{Target{kind: dynamo, version: "1.0.2"}, ""},
		{Target{kind: dynamo, version: "v1.1.0-rc1"}, "7"},
		{Target{kind: dynamo, version: "nightly"}, ""},
		{Target{kind: openAI}, ""},
		{Target{kind: openAI, features: buyPriority}, `"priority"`},
		{Target{kind: anthropic, features: ^features(0)}, ""},
	} {
		out := emit(&Intent{Priority: 7}, tt.to)
		var got strings.Builder
		for _, m := range out.members {
			got.WriteString(string(m.json))
		}
		require.Equal(t, tt.want, got.String(), "%+v", tt.to)
		require.Equal(t, tt.want == "" || tt.to.kind == openAI, len(out.Changes) > 0)
	}
}
