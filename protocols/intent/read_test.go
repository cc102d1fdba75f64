// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// TestHarness reads the headers and fields that each harness sends, according to captured requests and Dynamo's
// agents.rs.
func TestHarness(t *testing.T) {
	const codexMeta = `{"session_id":"s","thread_id":"t","turn_id":"u1","window_id":"t:0","request_kind":"turn","subagent_kind":"review"}`
	tests := []struct {
		name string
		api  string
		head http.Header
		body string
		want Intent
	}{
		{name: "nothing"},
		{
			name: "claude code", api: "messages",
			head: header("User-Agent", "claude-cli/2.1.330 (external, sdk-cli)", "X-Claude-Code-Session-Id", "s1"),
			body: `{"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"s1\"}"}}`,
			want: Intent{
				User:    `{"device_id":"d","account_uuid":"","session_id":"s1"}`,
				Session: Session{ID: "s1", Root: "s1", Harness: "claude-code"},
			},
		},
		{
			name: "claude code without its header", api: "messages",
			body: `{"metadata":{"user_id":"{\"session_id\":\"s1\"}"}}`,
			want: Intent{User: `{"session_id":"s1"}`, Session: Session{ID: "s1", Root: "s1", Harness: "claude-code"}},
		},
		{
			name: "claude code 1.0", api: "messages",
			body: `{"metadata":{"user_id":"user_ab_account__session_s9"}}`,
			want: Intent{User: "user_ab_account__session_s9", Session: Session{ID: "s9", Root: "s9", Harness: "claude-code"}},
		},
		{
			name: "metadata of the Chat API is ignored", api: "chat",
			body: `{"metadata":{"user_id":"user_ab_account__session_s9"}}`,
		},
		{
			name: "claude code sub-agent",
			head: header("X-Claude-Code-Session-Id", "s1", "x-claude-code-agent-id", "a2"),
			want: Intent{Session: Session{ID: "s1/a2", Parent: "s1", Root: "s1", Harness: "claude-code"}},
		},
		{
			name: "claude code sub-agent of a sub-agent",
			head: header("X-Claude-Code-Session-Id", "s1", "x-claude-code-agent-id", "a3", "x-claude-code-parent-agent-id", "a2"),
			want: Intent{Session: Session{ID: "s1/a3", Parent: "s1/a2", Root: "s1", Harness: "claude-code"}},
		},
		{
			name: "claude code, its own parent",
			head: header("X-Claude-Code-Session-Id", "s1", "x-claude-code-agent-id", "a3", "x-claude-code-parent-agent-id", "a3"),
			want: Intent{Session: Session{ID: "s1/a3", Parent: "s1", Root: "s1", Harness: "claude-code"}},
		},
		{
			name: "codex root thread", api: "responses",
			head: header("originator", "codex_exec", "session-id", "s", "thread-id", "s", "x-codex-window-id", "s:0", "x-client-request-id", "s"),
			body: `{"prompt_cache_key":"s"}`,
			want: Intent{CacheKey: "s", Session: Session{ID: "s", Root: "s", Harness: "codex", Window: "s:0"}},
		},
		{
			name: "codex sub-agent",
			head: header("user-agent", "codex_exec/0.169.0 (Debian)", "session-id", "s", "thread-id", "t", "x-codex-turn-metadata", codexMeta),
			want: Intent{Session: Session{
				ID: "t", Parent: "s", Root: "s", Harness: "codex", Agent: "review", Turn: "u1", Window: "t:0",
			}},
		},
		{
			name: "codex sub-agent of a sub-agent",
			head: header("originator", "codex_cli_rs", "session-id", "s", "thread-id", "t", "x-codex-parent-thread-id", "p", "x-openai-subagent", "collab_spawn"),
			want: Intent{Session: Session{ID: "t", Parent: "p", Root: "s", Harness: "codex", Agent: "collab_spawn"}},
		},
		{
			name: "codex by client_metadata", api: "responses",
			body: `{"client_metadata":{"x-codex-turn-metadata":` + strconv.Quote(codexMeta) + `,"session_id":"s","thread_id":"t"}}`,
			want: Intent{Session: Session{
				ID: "t", Parent: "s", Root: "s", Harness: "codex", Agent: "review", Turn: "u1", Window: "t:0",
			}},
		},
		{
			name: "codex compaction",
			head: header("originator", "codex_exec", "thread-id", "t", "x-codex-turn-metadata",
				`{"request_kind":"compaction","compaction":{"trigger":"auto","phase":"pre_turn","strategy":"memento"}}`),
			want: Intent{
				Session:    Session{ID: "t", Root: "t", Harness: "codex"},
				Compaction: map[string]string{"trigger": "auto", "phase": "pre_turn", "strategy": "memento"},
			},
		},
		{
			name: "codex compaction without details",
			head: header("originator", "codex_exec", "thread-id", "t", "x-codex-turn-metadata", `{"request_kind":"compaction"}`),
			want: Intent{Session: Session{ID: "t", Root: "t", Harness: "codex"}, Compaction: map[string]string{}},
		},
		{name: "thread-id of another harness", head: header("thread-id", "t", "session-id", "s")},
		{
			name: "deepseek",
			head: header("x-deepseek-harness-session-id", "d", "x-deepseek-harness-parent-session-id", "p", "x-deepseek-harness-compact", "1"),
			want: Intent{Session: Session{ID: "d", Parent: "p", Harness: "deepseek"}, Compaction: map[string]string{}},
		},
		{
			name: "opencode",
			head: header("User-Agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.23", "x-session-id", "ses_1", "x-session-affinity", "ses_1"),
			want: Intent{Session: Session{ID: "ses_1", Root: "ses_1", Harness: "opencode"}},
		},
		{
			name: "opencode sub-agent", // the root is unknown
			head: header("x-session-id", "ses_2", "x-session-affinity", "ses_2", "x-parent-session-id", "ses_1"),
			want: Intent{Session: Session{ID: "ses_2", Parent: "ses_1", Harness: "opencode"}},
		},
		{
			name: "pi", api: "responses",
			head: header("User-Agent", "OpenAI/JS 6.26.0", "session_id", "p"), body: `{"prompt_cache_key":"p"}`,
			want: Intent{CacheKey: "p", Session: Session{ID: "p", Root: "p", Harness: "pi"}},
		},
		{name: "openclaw", head: header("User-Agent", "OpenAI/JS 7.15.0", "traceparent", "00-1636-a8d3-01")},
		{name: "SDK", head: header("User-Agent", "Anthropic/Go 1.84.0")},
		{
			name: "a plugin for dynamo goes before the harness",
			head: header("User-Agent", "opencode/1.18", "x-dynamo-session-id", "d", "x-dynamo-parent-session-id", "d", "x-dynamo-session-final", "TRUE",
				"x-session-id", "o"),
			want: Intent{Session: Session{ID: "d", Root: "d", Final: true, Harness: "opencode"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := Source{API: tt.api, Header: tt.head}
			if tt.body != "" {
				src.Field = fields(tt.body)
			}
			got, faults := Read(src)
			require.Empty(t, faults)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCaptures reads whole requests of harnesses.
func TestCaptures(t *testing.T) {
	root := os.Getenv("WEFT_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	tests := []struct {
		file, api string
		want      Session
	}{
		{"claude-code/A1-001", "messages", Session{ID: "712598c5-61d8-4cf9-8809-3355467f8e2e", Harness: "claude-code"}},
		{"claude-code/B-001", "messages", Session{ID: "9f7e49f5-8876-45f9-b9ce-82a95a2e5e65", Harness: "claude-code"}},
		{"codex/A1-001", "responses", Session{
			ID: "01a1fdc8-d98c-7130-9761-ebec23179e65", Harness: "codex", Window: "01a1fdc8-d98c-7130-9761-ebec23179e65:0",
			Turn: "01a1fdc8-da63-7a03-8b78-7f308ca9e714",
		}},
		{"openclaw/A1-001", "chat", Session{}},
		{"opencode/A1-002", "chat", Session{ID: "ses_e0231d5a8ffeTLVpiSManR1B16", Harness: "opencode"}},
		{"pi/A1-001", "chat", Session{}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(root, "captures", tt.file+".json"))
			if err != nil {
				t.Skip("no shared captures: set WEFT_SHARED: ", err)
			}
			var c struct {
				Headers [][2]string
				Body    json.RawMessage
			}
			require.NoError(t, json.Unmarshal(raw, &c))
			h := http.Header{}
			for _, p := range c.Headers {
				h.Add(p[0], p[1])
			}
			tt.want.Root = tt.want.ID
			got, faults := Read(Source{API: tt.api, Header: h, Field: fields(string(c.Body))})
			require.Empty(t, faults)
			if diff := cmp.Diff(tt.want, got.Session); diff != "" {
				t.Error(diff)
			}
			// A proxy does not pass the session on to a target without sessions, and does not change the rest.
			out := emit(&Intent{}, Target{kind: vllm})
			body, err := out.AppendBody(nil, c.Body)
			require.NoError(t, err)
			require.Equal(t, string(c.Body), string(body))
			out.SetHeaders(h)
			got, _ = Read(Source{Header: h})
			require.Empty(t, got.Session.ID)
		})
	}
}

func TestRead(t *testing.T) {
	tests := []struct {
		name   string
		src    Source
		body   string
		want   Intent
		faults []Fault
	}{
		{
			name: "nvext",
			body: `{"nvext":{"agent_hints":{"priority":-3,"strict_priority":2,"osl":512,"speculative_prefill":true,"latency_sensitivity":1.2},
				"max_thinking_tokens":1000,"cache_salt":"acme","router":{"ttft_target":250.5,"itl_target":20},"backend_instance_id":18446744073709551615,
				"prefill_worker_id":2,"decode_worker_id":3,"dp_rank":0,"prefill_dp_rank":4294967295,"token_data":[1]}}`,
			want: Intent{
				Priority: -3, Tier: 2, ExpectedOutput: 512, MaxThinking: 1000, Prefetch: true, Pace: Interactive, Salt: "acme",
				TTFT: 250500 * time.Microsecond, ITL: 20 * time.Millisecond,
				Pin: Pin{Worker: new(uint64(1<<64 - 1)), Prefill: new(uint64(2)), Decode: new(uint64(3)), Rank: new(uint32(0))},
			},
		},
		{
			name: "a header goes before the body, if it is well-formed",
			src: Source{Header: header("x-dynamo-request-priority", "0", "x-dynamo-request-strict-priority", "-1", "x-tenant-id", "t",
				"x-worker-instance-id", "7", "x-data-parallel-rank", "1", "x-request-id", "r")},
			body: `{"nvext":{"agent_hints":{"priority":5,"strict_priority":2},"cache_salt":"b","decode_worker_id":9}}`,
			want: Intent{
				Tier: 2, Salt: "t", RequestID: "r",
				Pin: Pin{Worker: new(uint64(7)), Decode: new(uint64(7)), Rank: new(uint32(1))},
			},
			faults: []Fault{{"header x-dynamo-request-strict-priority", "-1", "not an unsigned integer of 32 bits"}},
		},
		{
			name: "metadata",
			src:  Source{Header: header("X-Dynamo-Meta-Policy-Class", " latency ", "x-dynamo-meta-authorization", "Bearer x")},
			want: Intent{Meta: map[string]string{"policy-class": "latency"}},
			faults: []Fault{
				{"header x-dynamo-meta-authorization", "", "credentials are not allowed in metadata"},
			},
		},
		{
			name: "endpoint picker",
			src: Source{Header: header("x-gateway-inference-objective", "gold", "x-llm-d-inference-fairness-id", "acme",
				"x-gateway-inference-fairness-id", "old", "x-slo-ttft-ms", "500", "x-llm-d-slo-tpot-ms", "12.5", "x-llm-d-inference-ttl", "1500ms")},
			want: Intent{
				Objective: "gold", Tenant: "acme", TTFT: 500 * time.Millisecond, ITL: 12500 * time.Microsecond, Deadline: 1500 * time.Millisecond,
			},
		},
		{
			name: "vllm", src: Source{Priority: LowerSooner},
			body: `{"priority":3,"cache_salt":"s","session_id":"c","request_id":"r","thinking_token_budget":9}`,
			want: Intent{Priority: -3, Salt: "s", RequestID: "r", MaxThinking: 9, Session: Session{ID: "c", Root: "c"}},
		},
		{
			name: "sglang", src: Source{Priority: HigherSooner, Header: header("X-SMG-Routing-Key", "k")},
			body: `{"priority":3,"extra_key":"s","rid":"r","session_params":{"id":"c"},"routed_dp_rank":2,"data_parallel_rank":1}`,
			want: Intent{
				Priority: 3, Salt: "s", RequestID: "r", CacheKey: "k", Session: Session{ID: "c", Root: "c"},
				Pin: Pin{Rank: new(uint32(2))},
			},
		},
		{
			name: "priority of unknown polarity", body: `{"priority":3}`,
			faults: []Fault{{"priority", "3", "ambiguous: vLLM and SGLang order priorities in opposite ways"}},
		},
		{
			name: "openai", src: Source{API: "chat"},
			body: `{"prompt_cache_key":"k","service_tier":"flex","user":"u","safety_identifier":"v","prompt_cache_options":{"mode":"explicit","ttl":"30m"}}`,
			want: Intent{CacheKey: "k", ServiceTier: "flex", User: "v", Retain: Retain{TTL: 30 * time.Minute, Explicit: true}},
		},
		{
			name: "openai retention", src: Source{API: "responses"}, body: `{"prompt_cache_retention":"24h"}`,
			want: Intent{Retain: Retain{TTL: 24 * time.Hour}},
		},
		{
			name: "anthropic", src: Source{API: "messages"},
			body: `{"cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"},"service_tier":"standard_only","speed":"fast","user":"not here"}`,
			want: Intent{ServiceTier: "standard_only", Speed: "fast", Retain: Retain{TTL: time.Hour, Scope: "global"}},
		},
		{
			name: "anthropic, a ttl in seconds", src: Source{API: "messages"}, body: `{"cache_control":{"ttl":7200}}`,
			want:   Intent{Retain: Retain{TTL: time.Hour}},
			faults: []Fault{{"cache_control.ttl", "7200", "not from 300 to 3600 seconds; the nearest is used"}},
		},
		{
			name: "malformed values after headers", src: Source{API: "chat", Header: header("x-weft-user", "u", "x-weft-retain", `{"ttl":"1h"}`)},
			body: `{"user":[],"prompt_cache_retention":1,"prompt_cache_options":{"ttl":{},"mode":1},"metadata":5,"client_metadata":5,"nvext":{"router":1},"session_params":"s"}`,
			want: Intent{User: "u", Retain: Retain{TTL: time.Hour}},
			faults: []Fault{
				{"nvext.router", "1", "not an object"}, {"session_params", `"s"`, "not an object"}, {"user", "[]", "not a string"},
				{"metadata", "5", "not an object"}, {"prompt_cache_retention", "1", "not a string"},
				{"prompt_cache_options.mode", "1", "not a string"},
				{"prompt_cache_options.ttl", "{}", "neither a string nor a whole number of seconds"},
			},
		},
		{
			name: "malformed values", src: Source{API: "responses"}, body: `{"prompt_cache_options":{"ttl":1.5},"client_metadata":5}`,
			faults: []Fault{
				{"client_metadata", "5", "not an object"},
				{"prompt_cache_options.ttl", "1.5", "neither a string nor a whole number of seconds"},
			},
		},
		{
			name: "anthropic, a mark of another type", src: Source{API: "messages"}, body: `{"cache_control":{"type":"forever","ttl":"1h"}}`,
			want:   Intent{Retain: Retain{TTL: time.Hour}},
			faults: []Fault{{"cache_control.type", `"forever"`, "not ephemeral; treated as ephemeral"}},
		},
		{
			name: "anthropic, odd members of a mark", src: Source{API: "messages"}, body: `{"cache_control":{"type":1,"ttl":true,"scope":[]},"metadata":{"user_id":1}}`,
			want: Intent{Retain: Retain{TTL: 5 * time.Minute}},
			faults: []Fault{
				{"metadata.user_id", "1", "not a string"}, {"cache_control.type", "1", "not a string"}, {"cache_control.scope", "[]", "not a string"},
				{"cache_control.ttl", "true", "neither a string nor a whole number of seconds"},
			},
		},
		{
			name: "our own: header before body",
			src:  Source{Header: header("x-weft-priority", "-2", "x-weft-evict", `["thinking"]`, "x-weft-session", `"\u00fc"`)},
			body: `{"agent":{"priority":4,"ttft":"1.5s","parent":"nobody's","pace":"background","later":1}}`,
			want: Intent{
				Priority: -2, Evict: EvictThinking, TTFT: 1500 * time.Millisecond, Pace: Background,
				Session: Session{ID: "ü", Root: "ü"},
			},
		},
		{name: "agent that is not an object", body: `{"agent":"support"}`},
		{
			name: "malformed",
			src:  Source{API: "messages", Header: header("x-dynamo-request-priority", "soon", "x-session-id", strings.Repeat("x", 9000))},
			body: `{"nvext":[],"cache_control":1,"service_tier":2,"cache_salt":"a\u0000b","agent":{"pace":"slow","ttft":5}}`,
			faults: []Fault{
				{"header x-dynamo-request-priority", "soon", "not a whole number from -2147483648 to 2147483647"},
				{"header x-session-id", strings.Repeat("x", 64) + "…", "too long"},
				{"agent.pace", `"slow"`, "not one of interactive, background"},
				{"agent.ttft", "5", "not a string"},
				{"nvext", "[]", "not an object"},
				{"cache_salt", "", "contains a control character"},
				{"service_tier", "2", "not a string"},
				{"cache_control", "1", "not an object"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.body != "" {
				tt.src.Field = fields(tt.body)
			}
			got, faults := Read(tt.src)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.faults, faults); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadBounds(t *testing.T) {
	h := http.Header{}
	for i := range 1000 {
		h.Set("x-dynamo-meta-"+strconv.Itoa(i), strings.Repeat("v", 200))
	}
	got, faults := Read(Source{Header: h})
	require.Len(t, got.Meta, 64)
	require.Len(t, faults, 64)
	for _, f := range faults {
		require.Less(t, len(f.Error()), 300)
	}
}

// FuzzRead reads arbitrary hints and emits them in every dialect.
func FuzzRead(f *testing.F) {
	f.Add("x-codex-turn-metadata: {\"request_kind\":\"compaction\"}\noriginator: codex\nthread-id: t", `{"nvext":{"agent_hints":{"priority":1}}}`, uint8(2))
	f.Add("x-weft-meta: {\"a\":\"b\"}\nx-weft-breakpoints: [{\"turn\":1}]\nx-dynamo-meta-a: b", `{"agent":{"retain":{"ttl":"1h"}},"priority":-1}`, uint8(1))
	f.Add("x-weft-ttft: 1.5s\nx-weft-pin: {\"rank\":1}\nx-weft-compaction: {\"phase\":\"p\"}\nx-tenant-id: t\nx-dp-rank: 1\nx-session-id: s",
		`{"agent":{"pace":"interactive","evict":["session"],"trigger":"other","parent":"p","session":"s","final":true,"meta":{"a":"\u00fc"},
		"breakpoints":[{"tool":1,"ttl":"5m0s","tokens":3,"auto":true}]},"nvext":{"router":{"ttft_target":1.5},"dp_rank":2}}`, uint8(6))
	f.Add("x-claude-code-session-id: s\nx-claude-code-agent-id: a", `{"metadata":{"user_id":"user_a_account_b_session_c"},"cache_control":{"ttl":"9"}}`, uint8(3))
	f.Fuzz(func(t *testing.T, head, body string, api uint8) {
		h := http.Header{}
		for line := range strings.Lines(head) {
			name, v, _ := strings.Cut(line, ":")
			h.Add(name, v)
		}
		src := Source{
			API: []string{"", "chat", "responses", "messages", "completions"}[api%5], Header: h, Priority: []Polarity{"", HigherSooner, LowerSooner}[api/5%3],
		}
		object := json.Valid([]byte(body)) && strings.HasPrefix(strings.TrimSpace(body), "{")
		if object {
			src.Field = fields(body)
		}
		in, faults := Read(src)
		require.LessOrEqual(t, len(faults), 64)
		for _, f := range faults {
			require.Less(t, len(f.Value), 256)
		}
		granted, _ := new(Policy).Clamp("t", in)
		require.LessOrEqual(t, granted.Priority, int32(0))
		for _, target := range targets() {
			out := emit(&in, target)
			next, err := out.AppendBody(nil, []byte(body))
			if object {
				require.NoError(t, err)
				require.True(t, json.Valid(next), "%s", next)
			}
			if target.kind == weft && object {
				// Emit in our own dialect is the inverse of Read.
				require.Empty(t, out.Changes)
				again := http.Header{}
				out.SetHeaders(again)
				got, faults := Read(Source{Header: again, Field: fields(string(next))})
				require.Empty(t, faults)
				if diff := cmp.Diff(in, got); diff != "" {
					t.Fatal(diff)
				}
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	src := Source{API: "messages", Header: header("User-Agent", "claude-cli/2.1.330 (external, sdk-cli)", "X-Claude-Code-Session-Id", "s1",
		"Accept", "application/json", "Content-Type", "application/json", "X-Stainless-Lang", "js", "X-App", "cli", "Anthropic-Version", "2023-06-01")}
	src.Field = func(path ...string) []byte {
		if len(path) == 2 && path[1] == "user_id" {
			return []byte(`"{\"session_id\":\"s1\"}"`)
		}
		return nil
	}
	b.ReportAllocs()
	for b.Loop() {
		Read(src)
	}
}
