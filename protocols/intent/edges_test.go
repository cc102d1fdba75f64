// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestEmitEdges tests values at the limits of what targets support.
func TestEmitEdges(t *testing.T) {
	long := strings.Repeat("s", 1025)
	session := Session{ID: "ü", Parent: "p", Root: "r", Final: true}
	tests := []struct {
		name string
		in   Intent
		to   Target
		body string // of {}
		head int    // headers
		left []string
	}{
		{
			"a scope without the beta", Intent{Retain: Retain{Scope: "global", TTL: time.Hour}}, Target{kind: anthropic},
			`{"cache_control":{"type":"ephemeral","ttl":"1h"}}`, 0, []string{"retain"},
		},
		{
			"a scope with it", Intent{Retain: Retain{Scope: "global", TTL: time.Hour}},
			Target{kind: anthropic, features: cacheScope}, `{"cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}}`, 0, nil,
		},
		{
			"a session not valid in a header", Intent{Session: session}, Target{kind: dynamo}, `{}`, 0,
			[]string{"session", "parent", "root", "final"},
		},
		{"a service tier goes before a priority", Intent{Priority: 1, ServiceTier: "flex"}, Target{kind: openAI, features: buyPriority}, `{"service_tier":"flex"}`, 0, []string{"priority"}},
		{
			"30 minutes", Intent{Retain: Retain{TTL: 30 * time.Minute}}, Target{kind: openAI, features: cacheOptions},
			`{"prompt_cache_options":{"ttl":"30m"}}`, 0, nil,
		},
		{
			"a second more", Intent{Retain: Retain{TTL: 30*time.Minute + time.Second}}, Target{kind: openAI, features: cacheOptions},
			`{}`, 0, []string{"retain"},
		},
		{"the lowest priority", Intent{Priority: math.MinInt32}, Target{kind: vllm, features: priorityScheduling}, `{"priority":2147483647}`, 0, []string{"priority"}},
		{"a salt that is too long", Intent{Salt: long}, Target{kind: vllm}, `{}`, 0, []string{"salt"}},
		{"contains a control character", Intent{Salt: "a\x7f"}, Target{kind: sglang}, `{}`, 0, []string{"salt"}},
		{"a new line", Intent{RequestID: "a\nb: c"}, Target{kind: vllm}, `{}`, 0, []string{"request_id"}},
		{"too many breakpoints", Intent{Breakpoints: make([]Breakpoint, 129)}, Target{kind: weft}, `{}`, 0, []string{"breakpoints"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := emit(&tt.in, tt.to)
			body, err := out.AppendBody(nil, []byte(`{}`))
			require.NoError(t, err)
			require.Equal(t, tt.body, string(body))
			require.Len(t, out.headers, tt.head)
			var left []string
			for _, l := range out.Changes {
				left = append(left, l.Hint)
			}
			if diff := cmp.Diff(tt.left, left); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReadEdges tests session fields that must be ignored or that repeat each other.
func TestReadEdges(t *testing.T) {
	tests := []struct {
		name, body string
		head       []string
		want       Session
	}{
		{"client_metadata of another harness", `{"client_metadata":{"thread_id":"t","session_id":"s"}}`, []string{"originator", "opencode/1"}, Session{Harness: "opencode"}},
		{"an agent that is the session", "", []string{"x-claude-code-session-id", "s", "x-claude-code-agent-id", "s"}, Session{ID: "s", Root: "s", Harness: "claude-code"}},
		{"a parent alone", `{"agent":{"parent":"p","root":"r"}}`, nil, Session{}},
		{"x-weft-parent without x-weft-session", "", []string{"x-weft-parent", "p", "x-session-id", "s"}, Session{ID: "s", Root: "s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := Source{API: "responses", Header: header(tt.head...)}
			if tt.body != "" {
				src.Field = fields(tt.body)
			}
			got, faults := Read(src)
			require.Empty(t, faults)
			if diff := cmp.Diff(tt.want, got.Session); diff != "" {
				t.Error(diff)
			}
		})
	}
	p := Policy{}
	got, _ := p.Clamp("", Intent{Breakpoints: []Breakpoint{{TTL: -time.Hour}}})
	require.Zero(t, got.Breakpoints[0].TTL)
}
