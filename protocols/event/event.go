// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strings"
)

// Kind specifies the type of an event. The zero Kind is not valid. New kinds may be added; consumers must skip unknown
// ones.
type Kind uint8

// Kinds of events, with the fields that each uses in addition to Choice, Off, End and Tokens.
const (
	// Start opens a response. Usage, if present, holds the counts that are known before the first output token (prompt
	// and cached tokens).
	Start Kind = iota + 1
	// Reasoning adds Data to the reasoning of Part.
	Reasoning
	// Signature adds Data to the opaque signature of the reasoning in Part.
	Signature
	// Text adds Data to the visible text of Part.
	Text
	// Refusal adds Data to the refusal text of Part.
	Refusal
	// ToolStart opens Call, with the final name of the tool in Data and the ID of the call, if known, in ID.
	ToolStart
	// ToolArgs adds Data to the arguments of Call. The concatenation of all ToolArgs is the exact argument text: JSON,
	// or free text if the call has the flag Custom.
	ToolArgs
	// ToolEnd completes Call. It always has the flag Complete. A parser sets ID if the model wrote an ID after the
	// arguments; the Call keeps the ID of its ToolStart.
	ToolEnd
	// ToolAbort ends Call without completing it. Why is the cause, and Data holds the name if it is known. A call that
	// failed before its ToolStart has a new ordinal.
	ToolAbort
	// ToolResult is the result, in Data, of the server-side call with the ID in ID.
	ToolResult
	// Annotation attaches Data, a JSON object in the form of the API that sent it, to the text of Part.
	Annotation
	// Logprobs holds, in Data, a JSON array of token log probabilities in OpenAI's form.
	Logprobs
	// Usage holds cumulative token counts in Usage. The last one takes precedence.
	Usage
	// Finish ends Choice. Why is the reason; for StopSequence, Data is the sequence. If an engine's completions stream
	// reports the token that ended the output, ID is its number in decimal.
	Finish
	// Error ends the whole response. Why is the class, Data the public message, and ID the machine-readable code in
	// OpenAI's spelling, if any.
	Error
	// Opaque is an output item that this version does not model, in Data as raw JSON. ID holds its type.
	Opaque
)

var kindNames = [...]string{
	Start: "start", Reasoning: "reasoning", Signature: "signature", Text: "text", Refusal: "refusal",
	ToolStart: "tool_start", ToolArgs: "tool_args", ToolEnd: "tool_end", ToolAbort: "tool_abort",
	ToolResult: "tool_result", Annotation: "annotation", Logprobs: "logprobs", Usage: "usage",
	Finish: "finish", Error: "error", Opaque: "opaque",
}

// String returns the kind in snake case, for example "tool_start".
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Flags is a set of properties of an event.
type Flags uint16

const (
	// Complete marks the ToolEnd of a call whose arguments are complete. Only such a call may be dispatched.
	Complete Flags = 1 << iota
	// Recovered marks output that the producer accepted although its markup was damaged, for example by a missing
	// wrapper.
	Recovered
	// InReasoning marks a call inside reasoning. By default it is not dispatched.
	InReasoning
	// Custom marks a call whose arguments are free text instead of JSON.
	Custom
	// Server marks a call or result of a tool that the server runs itself.
	Server
	// Repaired marks a call whose arguments the producer completed, which is an option of parsers.
	Repaired
	// Encrypted marks a Signature whose Data is the encrypted form of the reasoning, as in the Responses API, instead
	// of proof of its origin.
	Encrypted
)

// Has reports whether all flags of g are set in f.
func (f Flags) Has(g Flags) bool { return f&g == g }

var flagNames = [...]string{"complete", "recovered", "in_reasoning", "custom", "server", "repaired", "encrypted"}

// String returns the names of the flags in snake case, separated by vertical bars, in the order of their declaration.
// Flags without a name follow as one number. String returns "" if no flag is set.
func (f Flags) String() string {
	var names []string
	for i, name := range flagNames {
		if f.Has(1 << i) {
			names = append(names, name)
		}
	}
	if rest := f >> len(flagNames) << len(flagNames); rest != 0 {
		names = append(names, fmt.Sprintf("flags(%#x)", uint16(rest)))
	}
	return strings.Join(names, "|")
}

// Why specifies the cause of a finish, an aborted call or an error. Values may be added.
type Why uint8

const (
	// None means that there is no cause.
	None Why = iota

	// Stop is a finish at the end of the model's turn.
	Stop
	// StopSequence is a finish at a stop sequence of the request, which is in Data.
	StopSequence
	// Length is a finish at the output token limit.
	Length
	// ContextFull is a finish at the end of the model's context window.
	ContextFull
	// ToolCalls is a finish at the end of a turn that made at least one complete call.
	ToolCalls
	// ContentFilter is a finish forced by a content filter.
	ContentFilter
	// Refused is a finish at a refusal of the model.
	Refused
	// Paused is a finish of a server-side tool loop that the client may resume.
	Paused

	// Truncated aborts a call that the end of the stream cut off.
	Truncated
	// BadName aborts a call without a usable tool name.
	BadName
	// BadArguments aborts a call whose arguments are malformed.
	BadArguments
	// BadStructure aborts a call whose markup is malformed.
	BadStructure
	// UnknownTool aborts a call to a tool that the request did not declare, if the policy rejects such calls.
	UnknownTool
	// NotAllowed aborts a call that tool_choice or parallel_tool_calls forbids.
	NotAllowed
	// LimitExceeded aborts a call that exceeded a limit.
	LimitExceeded
	// Duplicate aborts a call that repeats an argument after it was streamed.
	Duplicate

	// Invalid is an error in the request.
	Invalid
	// NotFound is an error about a model or resource that does not exist.
	NotFound
	// Overloaded is an error of a server that is too busy.
	Overloaded
	// EngineFailed is an error of the engine behind the server, before or during the stream.
	EngineFailed
	// Canceled is an error of a request that the client canceled.
	Canceled
	// Internal is an error of the server itself.
	Internal
)

var whyNames = [...]string{
	None: "", Stop: "stop", StopSequence: "stop_sequence", Length: "length", ContextFull: "context_full",
	ToolCalls: "tool_calls", ContentFilter: "content_filter", Refused: "refusal", Paused: "paused",
	Truncated: "truncated", BadName: "bad_name", BadArguments: "bad_arguments", BadStructure: "bad_structure",
	UnknownTool: "unknown_tool", NotAllowed: "not_allowed", LimitExceeded: "limit", Duplicate: "duplicate_argument",
	Invalid: "invalid", NotFound: "not_found", Overloaded: "overloaded", EngineFailed: "engine_failed",
	Canceled: "canceled", Internal: "internal",
}

// String returns the cause in snake case, or "" for None.
func (w Why) String() string {
	if int(w) < len(whyNames) {
		return whyNames[w]
	}
	return fmt.Sprintf("why(%d)", uint8(w))
}

// Event is one step of a response. Callers may reuse a slice of events from call to call.
//
// Kind determines which fields are used; the others are zero.
type Event struct {
	Kind   Kind
	Why    Why
	Flags  Flags
	Choice int32 // choice index, from 0
	Part   int32 // output block within the choice, from 0; changes when a new block opens
	Call   int32 // tool call within the choice, from 0; -1 on events outside a call, as a parser emits them
	Tokens int32 // output tokens that ended in this event; 0 if the producer was not given token IDs

	// Off and End delimit the source bytes [Off, End) of the event, in bytes from the start of the choice's model
	// output; both are 0 if the source is unknown. The spans of one choice are in order and do not overlap. The bytes
	// between them are markers, structural white space and the rest of aborted calls.
	Off, End int64

	Data  []byte  // payload; valid until the next call on the producer
	ID    []byte  // ToolStart, ToolEnd, ToolResult: call ID; Opaque: type; Error: code; Finish: stop token; same lifetime as Data
	Usage *Tokens // Start, Usage; owned by the producer, same lifetime as Data
}

// Tokens counts the tokens of one response, cumulatively.
type Tokens struct {
	Prompt     int64 // input tokens, including cached ones
	Cached     int64 // of Prompt: read from a prefix cache
	CacheWrite int64 // of Prompt: written to a prefix cache
	Output     int64 // output tokens, including reasoning
	Reasoning  int64 // of Output: spent on reasoning

	CachedEstimated    bool // Cached was predicted, not reported by the engine
	ReasoningEstimated bool // Reasoning was derived from byte counts, not from token IDs
}

// Clone returns a copy of e that does not share Data, ID and Usage with it.
func (e Event) Clone() Event {
	if e.Data != nil {
		e.Data = append([]byte(nil), e.Data...)
	}
	if e.ID != nil {
		e.ID = append([]byte(nil), e.ID...)
	}
	if e.Usage != nil {
		u := *e.Usage
		e.Usage = &u
	}
	return e
}

// String renders e for logs and test failures, for example `tool_args call=0 "{\"x\":"` or `tool_end call=0 recovered`.
// The flag Complete is left out.
func (e Event) String() string {
	s := e.Kind.String()
	switch e.Kind {
	case ToolStart, ToolArgs, ToolEnd, ToolAbort:
		s += fmt.Sprintf(" call=%d", e.Call)
	}
	if e.Data != nil {
		s += fmt.Sprintf(" %q", e.Data)
	}
	if len(e.ID) > 0 {
		s += fmt.Sprintf(" id=%q", e.ID)
	}
	if e.Why != None {
		s += " why=" + e.Why.String()
	}
	if f := e.Flags &^ Complete; f != 0 {
		s += " " + f.String()
	}
	return s
}
