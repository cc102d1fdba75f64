// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"fmt"

	"github.com/weft-go/weft/protocols/event"
)

// Policy decides what peers disagree about. The zero value is the default policy. Fields about tags inside plain text
// have no meaning for families that frame everything; those follow their frames.
type Policy struct {
	// KeepBlanks makes white space between blocks text. By default a run of text that is only white space is
	// structure when a call or reasoning stands beside it; an answer that is only white space is text anyway.
	KeepBlanks bool
	// Before says what becomes of white space between text and a call.
	Before Before
	// DropAfterCall drops the text behind the first complete call. By default it is kept.
	DropAfterCall bool
	// KeepOrphans leaves closing markers without an opener in the text. By default those that are tokens are dropped.
	KeepOrphans bool
	// QuoteInReasoning treats tool markup inside reasoning as text. By default the call is parsed, with
	// event.InReasoning set, and the thought goes on behind it.
	QuoteInReasoning bool
	// BreakOut ends reasoning where a call begins inside it, for models that leave out the closing tag. The call then
	// does not carry event.InReasoning, and what follows it is text.
	BreakOut bool
	// ForceReasoning makes StartDefault mean inside reasoning for every family that has reasoning.
	ForceReasoning bool
	// DropUnframed drops text that stands before any message, in families of channels, unless a message follows it. It is
	// held under Limits.HeldBytes until then. By default it is text: an answer without a frame is better than none.
	DropUnframed bool
	// NeedArguments aborts calls whose object has no arguments. By default they have none: {}.
	NeedArguments bool
	// RejectUnknownTools aborts calls to tools that Options.Tools does not list, with event.UnknownTool. By default they
	// are forwarded: parsing is not validation.
	RejectUnknownTools bool
	// RejectRecovered aborts calls whose markup was damaged, with event.BadStructure. By default they carry
	// event.Recovered.
	RejectRecovered bool
	// EmitTruncated completes a call whose last raw string value the end of the stream cut; it carries event.Repaired.
	// By default it aborts, since half of a command must not run. It is for families with tagged parameters.
	EmitTruncated bool
	// Repair adds the closing braces and brackets that arguments lack where the call's closing tag follows a complete
	// value, in families whose arguments are JSON between tags. The call carries event.Repaired. By default it aborts.
	Repair bool
	// Failed says what becomes of the source of an aborted call.
	Failed Failed
}

// Before says what becomes of white space between text and a call.
type Before uint8

// The fates of white space before a call.
const (
	// DropTemplate drops what the family's template prints there.
	DropTemplate Before = iota
	// DropBlanks drops all of it.
	DropBlanks
	// KeepAll keeps all of it.
	KeepAll
)

// Failed says what becomes of the markup and arguments of an aborted call.
type Failed uint8

// The fates of aborted calls. Their source is held under Limits.HeldBytes while it may become text.
const (
	// DropFailed drops them: the ToolAbort tells of the call, with its reason and span.
	DropFailed Failed = iota
	// ShowMalformed makes them text behind the ToolAbort, unless the end of the stream cut the call.
	ShowMalformed
	// ShowFailed makes them text behind the ToolAbort.
	ShowFailed
)

// The names of the profiles, as PolicyOf takes them.
const (
	ProfileDefault = "default"
	ProfileDynamo  = "dynamo"
	ProfileStrict  = "strict"
)

// PolicyOf returns the policy of a profile for a family, by its canonical name:
//
//   - default: the zero Policy.
//   - dynamo: what NVIDIA Dynamo's v1 parsers do with that family, as far as a streaming parser can, for a
//     migration that must not change answers. Source: the recorded results of lib/parsers, tree of 2026-06.
//   - strict: nothing is guessed. Damaged calls and unknown tools abort, blanks and orphans stay.
func PolicyOf(profile, family string) (*Policy, error) {
	switch profile {
	case ProfileDefault, "":
		return &Policy{}, nil
	case ProfileDynamo:
		return dynamo(family), nil
	case ProfileStrict:
		return &Policy{KeepBlanks: true, KeepOrphans: true, RejectUnknownTools: true, RejectRecovered: true}, nil
	}
	return nil, fmt.Errorf("parsers: unknown policy profile %q: want default, dynamo or strict", profile)
}

func dynamo(family string) *Policy {
	p := &Policy{DropAfterCall: true, Before: KeepAll}
	switch family {
	case "phi4":
		p.Before, p.NeedArguments = DropBlanks, true
	case "gemma4", "llama3_json", "pythonic":
		p.Before = DropBlanks
	case "nemotron_deci":
		p.Before, p.KeepOrphans = DropBlanks, true
	case "hermes", "qwen3":
		p.Before, p.Failed, p.Repair, p.NeedArguments = DropBlanks, ShowFailed, true, true
	case "jamba", "qwen25":
		p.Before, p.Failed = DropBlanks, ShowMalformed
	case "harmony":
		p.DropUnframed = true
	case "mistral":
		p.ForceReasoning, p.Failed = true, ShowMalformed
	case "qwen3_coder", "qwen35", "nemotron_nano":
		p.EmitTruncated = true
	case "glm47", "glm45":
		p.RejectUnknownTools = true
	}
	return p
}

// shows reports whether the source of a call aborted for why becomes text.
func (p *Policy) shows(why event.Why) bool {
	return p.Failed == ShowFailed || p.Failed == ShowMalformed && why != event.Truncated
}
