// SPDX-License-Identifier: Apache-2.0

package intent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/protocols/intent"
)

// field returns a function that does what the method Field of *block.Request does.
func field(body string) func(path ...string) []byte {
	return func(path ...string) []byte {
		raw := json.RawMessage(body)
		for _, p := range path {
			var m map[string]json.RawMessage
			if json.Unmarshal(raw, &m) != nil {
				return nil
			}
			raw = m[p]
		}
		return raw
	}
}

// A gateway reads the hints of a request, limits them to what the tenant may use, and sends the engine those that it
// supports.
func Example() {
	h := http.Header{}
	h.Set("X-Claude-Code-Session-Id", "712598c5")
	h.Set("X-Claude-Code-Agent-Id", "explore-1")
	h.Set("X-Dynamo-Request-Priority", "5")
	body := `{"nvext":{"agent_hints":{"osl":512},"cache_salt":"mine"}}`

	in, faults := intent.Read(intent.Source{API: "chat", Header: h, Field: field(body)})
	var policy intent.Policy // permits no priority above 0
	in, limited := policy.Clamp("acme", in)
	engine, err := intent.NewTarget("vllm", "", "priority scheduling")
	if err != nil {
		panic(err)
	}
	out := engine.Emit(&in)
	own, err := out.AppendBody(nil, []byte(`{"prompt":[1,2,3]}`))

	fmt.Println(len(faults), in.Session.ID, "in", in.Session.Root)
	fmt.Printf("%v\n%s %v\n", limited, own, err)
	for _, c := range out.Changes {
		fmt.Println(c.Hint, "-", c.Why)
	}
	// Output:
	// 0 712598c5/explore-1 in 712598c5
	// [{priority 5 0 above the maximum}]
	// {"prompt":[1,2,3],"cache_salt":"L5rZSNZGtO70wjixcpipczAsmPfz8TvEeliqr_xESJ8"} <nil>
	// expected_output - vllm does not support it
	// tenant - vllm does not support it
	// session - vllm needs the feature session field
	// parent - vllm does not support it
	// root - vllm does not support it
	// harness - vllm does not support it
}

func ExampleRead() {
	in, faults := intent.Read(intent.Source{Header: http.Header{
		"X-Weft-Ttft":                   {"250ms"},
		"X-Dynamo-Request-Priority":     {"soon"},
		"X-Gateway-Inference-Objective": {"batch"},
	}})
	fmt.Println(in.TTFT, in.Objective)
	fmt.Println(faults[0])
	// Output:
	// 250ms batch
	// intent: header x-dynamo-request-priority "soon": not a whole number from -2147483648 to 2147483647
}

func ExampleTarget_Emit() {
	in := intent.Intent{Priority: -2, ExpectedOutput: 512, TTFT: 250 * time.Millisecond}
	for dialect, o := range map[string]struct {
		version  string
		features []string
	}{
		"dynamo": {},
		"sglang": {features: []string{"priority scheduling"}},
		"llm-d":  {version: "0.9"},
		"weft":   {},
	} {
		to, err := intent.NewTarget(dialect, o.version, o.features...)
		if err != nil {
			panic(err)
		}
		out := to.Emit(&in)
		h := http.Header{}
		out.SetHeaders(h)
		body, _ := out.AppendBody(nil, []byte("{}"))
		fmt.Printf("%-7v %s %v changed: %d\n", dialect, body, h, len(out.Changes))
	}
	// Unordered output:
	// dynamo  {"nvext":{"agent_hints":{"priority":-2,"osl":512},"router":{"ttft_target":250}}} map[] changed: 0
	// sglang  {"priority":-2} map[] changed: 2
	// llm-d   {} map[X-Llm-D-Slo-Ttft-Ms:[250]] changed: 2
	// weft    {"agent":{"priority":-2,"expected_output":512,"ttft":"250ms"}} map[] changed: 0
}

// A harness sends all hints in our own dialect.
func ExampleIntent() {
	in := intent.Intent{
		Session:     intent.Session{ID: "s1/review", Parent: "s1", Root: "s1", Agent: "review", Harness: "acme", Turn: "t7", Window: "w2"},
		Trigger:     intent.ToolResult,
		Pace:        intent.Background, // intent.Interactive if a person waits
		MaxThinking: 2000,
		Deadline:    time.Minute,
		ITL:         40 * time.Millisecond,
		Speed:       "standard",
		Tenant:      "acme",
		DataClass:   "internal",
		Retain:      intent.Retain{TTL: time.Hour, Scope: "global", Explicit: true, Memory: true},
		Evict:       intent.EvictThinking | intent.EvictAfterTurn, // intent.EvictSession with its last request
		Compaction:  map[string]string{"trigger": "automatic", "reason": "window", "implementation": "model", "phase": "start", "strategy": "summary"},
		Pin:         intent.Pin{Worker: new(uint64(7)), Rank: new(uint32(1))}, // also Prefill, Decode and PrefillRank if they are separate
		Meta:        map[string]string{"ticket": "4711"},
	}
	to, err := intent.NewTarget("weft", "", "headers")
	if err != nil {
		panic(err)
	}
	out, h := to.Emit(&in), http.Header{}
	out.SetHeaders(h)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Println(name+":", h.Get(name))
	}
	// Output:
	// X-Weft-Agent: review
	// X-Weft-Compaction: {"trigger":"automatic","reason":"window","implementation":"model","phase":"start","strategy":"summary"}
	// X-Weft-Data-Class: internal
	// X-Weft-Deadline: 1m0s
	// X-Weft-Evict: ["thinking","after_turn"]
	// X-Weft-Harness: acme
	// X-Weft-Itl: 40ms
	// X-Weft-Max-Thinking: 2000
	// X-Weft-Meta: {"ticket":"4711"}
	// X-Weft-Pace: background
	// X-Weft-Parent: s1
	// X-Weft-Pin: {"worker":7,"rank":1}
	// X-Weft-Retain: {"scope":"global","ttl":"1h0m0s","explicit":true,"memory":true}
	// X-Weft-Root: s1
	// X-Weft-Session: s1/review
	// X-Weft-Speed: standard
	// X-Weft-Tenant: acme
	// X-Weft-Trigger: tool_result
	// X-Weft-Turn: t7
	// X-Weft-Window: w2
}

func ExamplePolicy_Clamp() {
	ops := intent.Policy{MaxPriority: 10, Prefetch: true, Trust: intent.MustHints("tier"), Deny: intent.MustHints("cache_key")}
	requested := intent.Intent{Priority: 20, Tier: 1, Prefetch: true, CacheKey: "k"}
	for tenant, policy := range map[string]intent.Policy{"ops": ops, "other": {}} {
		in, limited := policy.Clamp(tenant, requested)
		fmt.Println(tenant, in.Priority, in.Prefetch, in.Hints().Names(), limited)
	}
	// Unordered output:
	// ops 10 true [priority tier prefetch tenant] [{cache_key "k"  denied} {priority 20 10 above the maximum}]
	// other 0 false [cache_key tenant] [{tier 1  not trusted} {priority 20 0 above the maximum} {prefetch true  not allowed}]
}

func ExampleIntent_Only() {
	in := intent.Intent{Priority: -1, User: "ada", CacheKey: "k"}
	in = in.Only(in.Hints() &^ intent.MustHints("user")) // all except the user
	fmt.Println(in.Hints().Names(), in.CoarsePriority())
	in = intent.Intent{ServiceTier: "flex"}
	fmt.Println(in.CoarsePriority()) // the priority of the service tier
	// Output:
	// [priority cache_key] -1
	// -1
}

func ExampleTarget_Lookup() {
	for _, version := range []string{"1.2", "1.3"} {
		to, err := intent.NewTarget("dynamo", version)
		if err != nil {
			panic(err)
		}
		c, ok := to.Lookup("tier")
		fmt.Printf("%t %q\n", ok, c.As)
	}
	// Output:
	// false ""
	// true "nvext.agent_hints.strict_priority"
}

func ExampleHolds() {
	for _, b := range intent.Holds([]intent.Breakpoint{
		{Tokens: 8900, TTL: time.Hour},          // tools and system
		{Tokens: 12300, TTL: 5 * time.Minute},   // the conversation
		{Tokens: 12310, TTL: intent.DefaultTTL}, // in the same block
	}, 16) {
		fmt.Println(b.Tokens/16, "blocks,", b.TTL)
	}
	// Output:
	// 556 blocks, 1h0m0s
	// 769 blocks, 5m0s
}

// The table of hints that each dialect supports. Hints without a row exist only in our own dialect.
func ExampleCapabilities() {
	dialects := intent.Dialects()
	dialects = dialects[:len(dialects)-1] // all except our own
	fmt.Println("| hint | " + strings.Join(dialects, " | ") + " |")
	fmt.Println("|" + strings.Repeat("---|", len(dialects)+1))
	for _, hint := range intent.Capabilities("weft") {
		row, known := fmt.Sprintf("| %v |", hint.Hint), false
		for _, d := range dialects {
			cell := "-"
			for _, c := range intent.Capabilities(d) {
				if c.Hint != hint.Hint {
					continue
				}
				cell, known = c.As, true
				if c.Polarity == intent.LowerSooner {
					cell += ", negated"
				}
				if c.Since != "" {
					cell += ", since " + c.Since
				}
				if c.Needs != "" {
					cell += ", needs " + c.Needs
				}
			}
			row += " " + cell + " |"
		}
		if known {
			fmt.Println(row)
		}
	}
	// Output:
	// | hint | dynamo | vllm | sglang | llm-d | gaie | openai | anthropic |
	// |---|---|---|---|---|---|---|---|
	// | priority | nvext.agent_hints.priority, since 1.1.0 | priority, negated, needs priority scheduling | priority, needs priority scheduling | - | - | service_tier, needs buy priority | - |
	// | tier | nvext.agent_hints.strict_priority, since 1.3.0 | - | - | - | - | - | - |
	// | service_tier | - | - | - | - | - | service_tier | service_tier |
	// | speed | - | - | - | - | - | - | speed, needs fast mode |
	// | objective | - | - | - | x-llm-d-inference-objective, since 0.8 | x-gateway-inference-objective | - | - |
	// | expected_output | nvext.agent_hints.osl | - | - | - | - | - | - |
	// | max_thinking | nvext.max_thinking_tokens | thinking_token_budget, needs thinking budget | - | - | - | - | - |
	// | prefetch | nvext.agent_hints.speculative_prefill | - | - | - | - | - | - |
	// | ttft | nvext.router.ttft_target, since 1.6.0 | - | - | x-llm-d-slo-ttft-ms, since 0.8 | x-slo-ttft-ms | - | - |
	// | itl | nvext.router.itl_target, since 1.6.0 | - | - | x-llm-d-slo-tpot-ms, since 0.8 | x-slo-tpot-ms | - | - |
	// | deadline | - | - | - | x-llm-d-inference-ttl, since 0.11 | - | - | - |
	// | retain | - | - | - | - | - | prompt_cache_options, prompt_cache_retention | cache_control |
	// | breakpoints | - | - | - | - | - | prompt_cache_breakpoint, needs cache options | cache_control |
	// | salt | nvext.cache_salt, since 1.3.0 | cache_salt | cache_salt | cache_salt | cache_salt | - | - |
	// | cache_key | - | - | x-smg-routing-key | - | - | prompt_cache_key | - |
	// | tenant | - | - | - | x-llm-d-inference-fairness-id, since 0.8 | x-gateway-inference-fairness-id | - | - |
	// | user | - | - | - | - | - | safety_identifier | metadata.user_id |
	// | session | x-dynamo-session-id, since 1.4.0 | session_id, needs session field | session_id, needs session field | - | - | - | - |
	// | parent | x-dynamo-parent-session-id, since 1.4.0 | - | - | - | - | - | - |
	// | final | x-dynamo-session-final, since 1.4.0 | - | - | - | - | - | - |
	// | request_id | x-request-id | x-request-id | rid | x-request-id | x-request-id | x-client-request-id | - |
	// | pin | nvext.backend_instance_id and others | x-data-parallel-rank | data_parallel_rank | - | - | - | - |
	// | meta | x-dynamo-meta-* | - | - | - | - | - | - |
}
