// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestMalformed tests that a malformed value yields one fault and no hint.
func TestMalformed(t *testing.T) {
	for _, tt := range []struct{ name, head, value, body string }{
		{name: "no JSON", head: "x-weft-compaction", value: `{"trigger"`},
		{name: "a list", head: "x-weft-compaction", value: `[]`},
		{name: "an empty list", head: "x-weft-evict", value: `[7]`},
		{name: "a member without end", body: `{"cache_salt":"` + strings.Repeat("x", 2<<20) + `"}`},
		{name: "deep", head: "x-weft-meta", value: strings.Repeat("[", 9000)},
		{name: "breakpoints without end", body: `{"agent":{"breakpoints":[` + strings.Repeat("{},", 200_000) + `{}]}}`},
		{name: "more than a body needs", body: `{"agent":{"breakpoints":[` + strings.Repeat("{},", 400_000) + `{}]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := Source{API: "chat"}
			if tt.head != "" {
				src.Header = header(tt.head, tt.value)
			}
			if tt.body != "" {
				src.Field = fields(tt.body)
			}
			got, faults := Read(src)
			require.Len(t, faults, 1)
			if diff := cmp.Diff(Intent{}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	// Empty values are not hints.
	got, _ := Read(Source{Field: fields(`{"agent":{"meta":{},"evict":[],"breakpoints":[],"pin":{},"salt":""}}`)})
	if diff := cmp.Diff(Intent{}, got); diff != "" {
		t.Error(diff)
	}
}

// TestSecrets tests that faults and changes do not contain secrets.
func TestSecrets(t *testing.T) {
	const secret = "sk-hush"
	h := http.Header{}
	for _, name := range []string{
		"Authorization", "X-Api-Key", "Cookie", "x-dynamo-meta-authorization", "x-dynamo-meta-proxy-authorization", "x-dynamo-meta-x-api-key",
	} {
		h.Set(name, secret)
	}
	h.Set("x-dynamo-meta-token", secret+"\x01")
	h.Set("x-dynamo-meta-"+strings.Repeat("n", 10_000), "\x01")
	h.Set("x-tenant-id", secret+"\x01")
	h.Set("x-weft-meta", `{"authorization":"`+secret+`"}`)
	h.Set("x-weft-salt", `"`+secret)
	h.Set("x-weft-tenant", secret+strings.Repeat("x", 1<<20))
	in, faults := Read(Source{Header: h, Field: fields(`{"agent":{"meta":{"a":"` + secret + `","b":1}},"cache_salt":"` + secret + `\u0000"}`)})
	require.Empty(t, in.Meta)
	require.NotEmpty(t, faults)
	in.Meta, in.Salt = map[string]string{"token": secret}, secret
	policy := Policy{Deny: setOf(hintSalt)}
	_, clamped := policy.Clamp("t", in)
	require.Len(t, clamped, 2)
	for _, s := range []any{faults, clamped} {
		require.NotContains(t, fmt.Sprint(s), secret)
		require.Less(t, len(fmt.Sprint(s)), 4096)
	}
	out := emit(&Intent{Meta: map[string]string{"authorization": secret}}, Target{kind: weft})
	require.Empty(t, out.members)
}

// TestFaultOnce tests that a value that several dialects read is reported once.
func TestFaultOnce(t *testing.T) {
	_, faults := Read(Source{API: "messages", Field: fields(`{"metadata":{"user_id":7}}`)})
	require.Len(t, faults, 1)
	_, faults = Read(Source{Header: header("session_id", "a\x01", "originator", "codex")})
	require.Len(t, faults, 1)
}

// TestClampOdd tests unusual policies.
func TestClampOdd(t *testing.T) {
	points := []Breakpoint{{Turn: 1}, {Turn: 2}}
	for _, n := range []int{-1, -100} {
		p := Policy{MaxBreakpoints: n}
		got, clamped := p.Clamp("t", Intent{Breakpoints: points})
		require.Empty(t, got.Breakpoints)
		require.Len(t, clamped, 1)
		_, clamped = p.Clamp("t", Intent{})
		require.Empty(t, clamped)
	}
	own := Policy{Trust: setOf(hintSalt), Isolate: true}
	got, _ := own.Clamp("t", Intent{})
	require.Equal(t, deriveSalt("t", ""), got.Salt, "isolated, although salts are trusted")
	got, _ = own.Clamp("t", Intent{Salt: "s"})
	require.Equal(t, "s", got.Salt)

	shut := Policy{Deny: setOf(hintTenant)}
	got, _ = shut.Clamp("t", Intent{Tenant: "t"})
	require.Empty(t, got.Tenant)

	// A client cannot end another client's session.
	ended := Intent{Session: Session{ID: "of another", Root: "of another", Final: true}}
	got, _ = new(Policy).Clamp("t", ended)
	require.False(t, got.Session.Final)
	require.Equal(t, "of another", got.Session.ID)
	sure := Policy{Trust: setOf(hintFinal)}
	got, _ = sure.Clamp("t", ended)
	require.True(t, got.Session.Final)

	// A service tier cannot exceed the highest priority.
	for _, tier := range []string{"priority", "scale", "fast"} {
		got, clamped := new(Policy).Clamp("t", Intent{ServiceTier: tier})
		require.Empty(t, got.ServiceTier)
		require.Len(t, clamped, 1)
	}
}

// TestSetHeadersPins tests that a client cannot specify an endpoint or a model for a router.
func TestSetHeadersPins(t *testing.T) {
	h := header("Authorization", "Bearer x", "Content-Type", "application/json")
	want := h.Clone()
	for _, name := range []string{
		"x-gateway-destination-endpoint", "X-Gateway-Destination-Endpoint-Subset", "x-gateway-model-name-rewrite", "x-llm-d-model-name-rewrite",
		"x-prefiller-host-port", "x-encoder-hosts-ports", "x-data-parallel-host-port", "x-session-token", "x-smg-target-worker", "x-smg-routing-key",
		"x-llm-d-inference-objective", "x-dynamo-routing-mode",
	} {
		h.Set(name, "10.0.0.1:80")
		h[name] = []string{"10.0.0.1:80"} // not canonical
	}
	out := emit(&Intent{}, Target{kind: llmd})
	out.SetHeaders(h)
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
}

func TestRequestIDOpenAI(t *testing.T) {
	for _, n := range []int{512, 513} {
		out := emit(&Intent{RequestID: strings.Repeat("r", n)}, Target{kind: openAI})
		require.Equal(t, n == 512, len(out.headers) == 1)
	}
}

// TestAppendBodyTwice tests that the second of two equal fields is dropped.
func TestAppendBodyTwice(t *testing.T) {
	out := emit(&Intent{Priority: 1}, Target{kind: dynamo})
	got, err := out.AppendBody(nil, []byte(`{"nvext":{"annotations":["a"]},"nvext":{"agent_hints":{"priority":9}},"nvext":7,"a":[{"nvext":{"dp_rank":1}}]}`))
	require.NoError(t, err)
	require.Equal(t, `{"nvext":{"annotations":["a"],"agent_hints":{"priority":1}},"a":[{"nvext":{"dp_rank":1}}]}`, string(got))
	require.True(t, json.Valid(got))
}

// TestLongSalt tests that a salt that is too long to be sent still isolates the request.
func TestLongSalt(t *testing.T) {
	read := func(salt string) string {
		in, faults := Read(Source{Field: fields(`{"cache_salt":"` + salt + `"}`)})
		require.Empty(t, faults)
		return in.Salt
	}
	one, two := read(strings.Repeat("x", 5000)), read(strings.Repeat("x", 5001))
	require.NotEmpty(t, one)
	require.NotEqual(t, one, two)
	require.Equal(t, one, read(strings.Repeat("x", 5000)))
	require.Equal(t, strings.Repeat("x", 1024), read(strings.Repeat("x", 1024)))
}
