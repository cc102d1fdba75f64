// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fields returns a function that does what (*block.Request).Field does.
func fields(body string) func(path ...string) []byte {
	var root map[string]json.RawMessage
	valid := json.Unmarshal([]byte(body), &root) == nil
	return func(path ...string) []byte {
		if len(path) == 0 {
			return []byte(body)
		}
		if !valid {
			return nil
		}
		raw := root[path[0]]
		for _, name := range path[1:] {
			var m map[string]json.RawMessage
			if raw == nil || json.Unmarshal(raw, &m) != nil {
				return nil
			}
			raw = m[name]
		}
		return raw
	}
}

var texts = rapid.OneOf(
	rapid.StringMatching(`[a-z0-9._:/-]{1,20}`),
	rapid.SampledFrom([]string{`"quoted"`, "größer", "a b", "😀 x", `{"a":1}`, " lead", "true", "7", strings.Repeat("x", 1024)}),
)

func optional[T any](g *rapid.Generator[T]) *rapid.Generator[T] {
	var zero T
	return rapid.OneOf(rapid.Just(zero), g)
}

func pointer[T any](t *rapid.T, g *rapid.Generator[T], name string) *T {
	if rapid.Bool().Draw(t, name+"?") {
		v := g.Draw(t, name)
		return &v
	}
	return nil
}

// intents draws Intents whose values are within bounds.
var intents = rapid.Custom(func(t *rapid.T) (in Intent) {
	text := func(name string) string { return optional(texts).Draw(t, name) }
	wait := func(name string) time.Duration {
		return optional(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "ns"))
		})).Draw(t, name)
	}
	ttl := optional(rapid.SampledFrom([]time.Duration{1, time.Minute, 5 * time.Minute, 30 * time.Minute, time.Hour, 24 * time.Hour, 720 * time.Hour}))
	in.Priority = optional(rapid.Int32()).Draw(t, "priority")
	in.Tier = optional(rapid.Uint32()).Draw(t, "tier")
	in.ServiceTier = optional(rapid.SampledFrom([]string{"auto", "flex", "priority", "standard_only", "odd"})).Draw(t, "service tier")
	in.Speed = optional(rapid.SampledFrom([]string{"fast", "standard", "odd"})).Draw(t, "speed")
	in.Objective = text("objective")
	in.ExpectedOutput = int(optional(rapid.Int32Min(1)).Draw(t, "expected"))
	in.MaxThinking = int(optional(rapid.Int32Min(1)).Draw(t, "thinking"))
	in.Prefetch = rapid.Bool().Draw(t, "prefetch")
	in.Pace = rapid.SampledFrom(append(paces, "")).Draw(t, "pace")
	in.TTFT, in.ITL, in.Deadline = wait("ttft"), wait("itl"), wait("deadline")
	in.Retain = Retain{
		Scope: optional(rapid.Just("global")).Draw(t, "scope"), TTL: ttl.Draw(t, "ttl"), Explicit: rapid.Bool().Draw(t, "explicit"),
		Memory: rapid.Bool().Draw(t, "memory"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "points") {
		index := rapid.IntRange(-1, 5)
		in.Breakpoints = append(in.Breakpoints, Breakpoint{
			Tool: index.Draw(t, "tool"), Turn: index.Draw(t, "turn"), Block: index.Draw(t, "block"), Inner: index.Draw(t, "inner"),
			Tokens: int(rapid.Int32Min(0).Draw(t, "tokens")), TTL: ttl.Draw(t, "ttl"), Scope: text("scope"), Auto: rapid.Bool().Draw(t, "auto"),
		})
	}
	in.Salt, in.CacheKey, in.Tenant, in.User, in.DataClass = text("salt"), text("key"), text("tenant"), text("user"), text("class")
	in.Evict = Evict(rapid.IntRange(0, 7).Draw(t, "evict"))
	in.Session.Agent, in.Session.Harness, in.Session.Turn, in.Session.Window = text("agent"), text("harness"), text("turn"), text("window")
	if in.Session.ID = text("session"); in.Session.ID != "" {
		in.Session.Parent, in.Session.Root, in.Session.Final = text("parent"), text("root"), rapid.Bool().Draw(t, "final")
		if in.Session.Parent == in.Session.ID {
			in.Session.Parent = ""
		}
		if in.Session.Parent == "" && in.Session.Root == "" {
			in.Session.Root = in.Session.ID
		}
	}
	in.Trigger = rapid.SampledFrom(append(triggers, "")).Draw(t, "trigger")
	if rapid.Bool().Draw(t, "compacts") {
		in.Compaction = map[string]string{}
		for _, name := range compactionNames {
			if s := text("compaction " + name); s != "" {
				in.Compaction[name] = s
			}
		}
	}
	in.RequestID = text("request")
	in.Pin = Pin{
		Worker: pointer(t, rapid.Uint64(), "worker"), Prefill: pointer(t, rapid.Uint64(), "prefill"), Decode: pointer(t, rapid.Uint64(), "decode"),
		Rank: pointer(t, rapid.Uint32Max(1<<32-2), "rank"), PrefillRank: pointer(t, rapid.Uint32Max(1<<32-2), "prefill rank"),
	}
	if m := rapid.MapOfN(rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`), texts, 0, 3).Draw(t, "meta"); len(m) > 0 {
		in.Meta = m
	}
	return in
})

// received returns the hints that the receiver of out reads.
func received(t require.TestingT, out *Out, api string, p Polarity) Intent {
	h := http.Header{}
	out.SetHeaders(h)
	body, err := out.AppendBody(nil, []byte(`{"model":"m"}`))
	require.NoError(t, err)
	require.True(t, json.Valid(body), "%s", body)
	in, faults := Read(Source{API: api, Header: h, Field: fields(string(body)), Priority: p})
	require.Empty(t, faults)
	return in
}

func TestWeftRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := intents.Draw(t, "intent")
		for _, headers := range []bool{false, true} {
			target := Target{kind: weft}
			if headers {
				target.features = inHeaders
			}
			out := emit(&want, target)
			require.Empty(t, out.Changes)
			if headers {
				require.Empty(t, out.members)
			} else {
				require.Empty(t, out.headers)
			}
			if diff := cmp.Diff(want, received(t, &out, "", "")); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// targets returns targets of all dialects: without features, with all of them, and with old versions.
func targets() (list []Target) {
	for k := dynamo; k <= weft; k++ {
		list = append(list,
			Target{kind: k},
			Target{kind: k, features: ^inHeaders},
			Target{kind: k, features: ^(inHeaders | lowValuesFirst)},
			Target{kind: k, version: "0.1", features: ^inHeaders},
			Target{kind: k, version: "v1.3.2"},
		)
	}
	return append(list, Target{})
}

// inBlocks holds the hints in the blocks of the body, which Emit does not change.
var inBlocks = map[kind]Hints{
	openAI: setOf(hintBreakpoints), anthropic: setOf(hintBreakpoints),
}

func TestEmitRoundTrip(t *testing.T) {
	apis := map[kind]string{openAI: "responses", anthropic: "messages"}
	for i, target := range targets() {
		switch { // samples with each kind
		case os.Getenv("WEFT_TEST") == "long":
		case i%5 != i/5%5 && (testing.Short() || i%2 != 0):
			continue
		}
		t.Run(fmt.Sprintf("%v %s %d", target.kind, target.version, target.features), func(t *testing.T) {
			var table Hints
			for _, c := range target.kind.rows() {
				table = table.with(c.hint)
			}
			rapid.Check(t, func(t *rapid.T) {
				in := intents.Draw(t, "intent")
				out := emit(&in, target)
				sent := in.Hints() &^ inBlocks[target.kind]
				near := Hints(0)
				for _, l := range out.Changes {
					if l.Used == "" {
						require.NotEmpty(t, l.Why)
					} else {
						near |= MustHints(l.Hint)
					}
					sent &^= MustHints(l.Hint)
				}
				for h := range sent.all() {
					require.True(t, supports(&target, h), "%v was sent", h)
					require.True(t, table.has(h))
				}
				got := received(t, &out, apis[target.kind], polarity(&target))
				if near.has(hintPriority) && target.kind == openAI {
					near = near.with(hintServiceTier)
				}
				// Hints that were sent unchanged are received unchanged; approximated hints may be received; no others
				// are.
				want := in.Only(sent &^ near)
				more := got.Hints() &^ sent &^ near
				require.Zero(t, more, "%v", more.Names())
				if diff := cmp.Diff(want, got.Only(sent&^near)); diff != "" {
					t.Fatal(diff)
				}
			})
		})
	}
}

func emit(in *Intent, t Target) Out { return t.Emit(in) }

func TestEmitNothing(t *testing.T) {
	for _, target := range targets() {
		out := emit(&Intent{}, target)
		require.Empty(t, out.headers)
		require.Empty(t, out.members)
		require.Empty(t, out.Changes)
	}
}

func supports(t *Target, h hint) bool {
	_, ok := t.Lookup(h.String())
	return ok
}

func polarity(t *Target) Polarity {
	c, _ := t.Lookup("priority")
	return c.Polarity
}

// TestEmitInTable tests that every header and field that is sent is in the table.
func TestEmitInTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := intents.Draw(t, "intent")
		target := rapid.SampledFrom(targets()).Draw(t, "target")
		var as strings.Builder
		for _, c := range Capabilities(target.kind.String()) {
			if got, ok := target.Lookup(c.Hint); ok {
				fmt.Fprintln(&as, got.As)
			}
		}
		out := emit(&in, target)
		for _, h := range out.headers {
			if strings.HasPrefix(h.name, "x-dynamo-meta-") {
				h.name = "x-dynamo-meta-"
			}
			require.Contains(t, as.String(), h.name)
			require.NotContains(t, h.value, "\n")
		}
		for _, m := range out.members {
			path := strings.Join(m.path, ".")
			if target.kind == dynamo && len(m.path) == 2 && strings.HasSuffix(path, "_id") || strings.HasSuffix(path, "dp_rank") {
				path = "nvext.backend_instance_id"
			}
			if !strings.Contains(as.String(), path) {
				path = m.path[0]
			}
			require.Contains(t, as.String(), path)
			require.True(t, json.Valid(m.json))
		}
	})
}

// TestHints tests that the table of hints covers every field of an Intent.
func TestHints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := intents.Draw(t, "intent")
		if diff := cmp.Diff(in, in.Only(allHints)); diff != "" {
			t.Fatal(diff)
		}
		require.Equal(t, in.Hints(), in.Hints()&allHints)
	})
	names := map[string]bool{}
	for h := range allHints.all() {
		require.False(t, names[h.String()])
		names[h.String()] = true
	}
}
