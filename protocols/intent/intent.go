// SPDX-License-Identifier: Apache-2.0

package intent

import "time"

// Intent holds the hints of a request. The zero value holds no hint.
//
// Copies share slices, maps and pointers. This package does not modify them, and callers must not either.
type Intent struct {
	// Priority orders requests that wait: higher is sooner, 0 is normal.
	Priority int32
	// Tier is a strict priority class: requests of a higher tier run before all requests of a lower one. 0 is normal
	// and the lowest.
	Tier uint32
	// ServiceTier is the class of service as the API spells it: auto, default, flex, scale, priority, fast, batch,
	// standard_only. [Intent.CoarsePriority] converts it to a priority.
	ServiceTier string
	// Speed is the requested output speed as the API spells it: standard, fast.
	Speed string
	// Objective names a goal configured on the server: an InferenceObjective of llm-d.
	Objective string
	// ExpectedOutput is the expected number of tokens in the response; 0 means unknown.
	ExpectedOutput int
	// MaxThinking is the maximum number of reasoning tokens; 0 means no limit.
	MaxThinking int
	// Prefetch requests that the prompt of the session's next turn be computed in advance.
	Prefetch bool
	// Pace specifies whether a person waits for the response.
	Pace Pace
	// TTFT and ITL are the target times to the first token and between two tokens; 0 means no target.
	TTFT, ITL time.Duration
	// Deadline is the longest time from the arrival of the request to the start of the response, after which the client
	// no longer needs the response; 0 means no deadline.
	Deadline time.Duration

	// Retain requests that the whole prompt be kept in the cache.
	Retain Retain
	// Breakpoints are the positions up to which the prompt should be kept in the cache, in prompt order.
	// wire.Breakpoints reads those in the blocks of a body.
	Breakpoints []Breakpoint
	// Salt isolates prefix caches: requests with different salts do not share cached prefixes. "" selects the common
	// cache.
	Salt string
	// CacheKey is a routing key: requests with the same key probably share a prefix, and should go to the same worker.
	CacheKey string
	// Evict specifies what the cache need not keep.
	Evict Evict

	// Tenant is the account that the request is charged to when capacity is shared fairly.
	Tenant string
	// User identifies the end user, in the client's terms. It is the unmodified metadata.user_id in the Messages API.
	User string
	// DataClass is the confidentiality class of the data, such as public or confidential. Each deployment defines its
	// own names.
	DataClass string

	// Session is the conversation that the request belongs to.
	Session Session
	// Trigger is the event that caused the request.
	Trigger Trigger
	// Compaction is not nil if the response of the request will replace past conversation. Its entries describe how, in the
	// harness's own terms: trigger (such as manual or automatic), reason, implementation (the method), phase (of the compaction)
	// and strategy (what is kept). Others are not sent.
	Compaction map[string]string
	// RequestID is the sender's ID of the request. It need not be unique.
	RequestID string
	// Pin requests specific workers.
	Pin Pin
	// Meta holds other metadata: at most 64 entries, with 64 KiB of names and values in total. Names are in lower case.
	Meta map[string]string
}

// Session identifies a conversation of one agent. If ID is empty, so are Parent, Root and Final.
type Session struct {
	// ID identifies the session, or is "" if unknown. IDs are compared byte by byte and are unique within a tenant.
	ID string
	// Parent is the ID of the session that started this one, or "". It never equals ID.
	Parent string
	// Root is the ID of the session that no agent started. It equals ID if Parent is empty; otherwise it may be unknown
	// ("").
	Root string
	// Agent is the kind of agent, such as review or collab_spawn; "" for the main agent.
	Agent string
	// Harness is the program that sent the request: claude-code, codex, opencode, pi, deepseek; "" if unknown.
	Harness string
	// Turn identifies the turn: one instruction of the user and all requests that serve it.
	Turn string
	// Window identifies the context window; it changes with every compaction.
	Window string
	// Final reports that this is the last request of the session.
	Final bool
}

// Retain is a request to keep the whole prompt in the cache. The zero value requests nothing.
type Retain struct {
	// Scope specifies who may use the cached prompt, as the API spells it: global; "" is the API's default, an
	// organization or workspace.
	Scope string
	// TTL is the minimum time to keep the prompt; 0 leaves it to the cache.
	TTL time.Duration
	// Explicit requests that only the given breakpoints be kept and none be added.
	Explicit bool
	// Memory requests that the prompt be kept in volatile memory only.
	Memory bool
}

// Breakpoint is a position in the prompt; the prompt before it should be kept in the cache.
type Breakpoint struct {
	// Tool is the index of the tool that the breakpoint follows, or -1 if it is in a turn.
	Tool int
	// Turn and Block are the indexes of the turn, and of the block in it, that the breakpoint follows, or -1 if it
	// follows a tool.
	Turn, Block int
	// Inner is the index in the content of that block if the breakpoint is inside a tool result, or else -1.
	Inner int
	// Tokens is the number of tokens of the prompt before the breakpoint; 0 means unknown.
	Tokens int
	// TTL is the minimum time to keep it.
	TTL time.Duration
	// Scope is as in [Retain].
	Scope string
	// Auto reports that the breakpoint results from a field of the whole request and is not marked in the prompt.
	Auto bool
}

// compactionNames are the names in [Intent.Compaction], in the order in which they are sent.
var compactionNames = [...]string{"trigger", "reason", "implementation", "phase", "strategy"}

// Pin requests specific workers and data-parallel ranks; nil means any. The IDs are Dynamo's.
type Pin struct {
	Worker      *uint64 `json:"worker,omitempty"`
	Prefill     *uint64 `json:"prefill,omitempty"`
	Decode      *uint64 `json:"decode,omitempty"`
	Rank        *uint32 `json:"rank,omitempty"`
	PrefillRank *uint32 `json:"prefill_rank,omitempty"`
}

// Pace specifies whether a person waits for the response. The zero Pace is unknown.
type Pace string

// The paces.
const (
	Interactive Pace = "interactive" // a person waits
	Background  Pace = "background"  // no person waits
)

var paces = []Pace{Interactive, Background}

// Trigger is the event that caused a request, as Dynamo spells it. The zero Trigger is unknown.
type Trigger string

// The triggers.
const (
	UserMessage  Trigger = "user_message" // the user asked something
	ToolResult   Trigger = "tool_result"  // a tool returned a result, and the turn continues
	OtherTrigger Trigger = "other"        // anything else, such as a reminder of the harness
)

var triggers = []Trigger{UserMessage, ToolResult, OtherTrigger}

// Evict is a bit set that specifies what a cache need not keep.
type Evict uint8

// The bits of Evict.
const (
	EvictSession   Evict = 1 << iota // the whole session, after this request
	EvictThinking                    // the reasoning of this response
	EvictAfterTurn                   // the whole turn, after it ends
)

var evictNames = []string{"session", "thinking", "after_turn"}

// CoarsePriority returns Priority or, if that is 0, the priority that ServiceTier and Speed imply: 1 for priority,
// scale and fast, -1 for flex and batch.
func (in *Intent) CoarsePriority() int32 {
	switch {
	case in.Priority != 0:
		return in.Priority
	case in.ServiceTier == "priority" || in.ServiceTier == "scale" || in.ServiceTier == "fast" || in.Speed == "fast":
		return 1
	case in.ServiceTier == "flex" || in.ServiceTier == "batch":
		return -1
	}
	return 0
}

// normal makes the fields of s consistent.
func (s *Session) normal() {
	if s.ID == "" {
		s.Parent, s.Root, s.Final = "", "", false
		return
	}
	if s.Parent == s.ID {
		s.Parent = ""
	}
	if s.Root == "" && s.Parent == "" {
		s.Root = s.ID
	}
}
