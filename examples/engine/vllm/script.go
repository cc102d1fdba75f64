// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"strings"
)

// A Script decides what the engine says. It is called once for each answer that a request asks for, from the request's
// goroutine: it must be safe for concurrent use and should return at once.
type Script func(Prompt) Reply

// Prompt is what a Script sees of a request.
type Prompt struct {
	Text      string // the decoded prompt, special tokens included
	IDs       []uint32
	Model     string
	RequestID string // the caller's X-Request-Id, or one of the engine's own
	Choice    int    // which of the n answers to the prompt is asked for, from 0
}

// Reply is what the engine says to one prompt.
type Reply struct {
	// Text is raw model output: reasoning and call markers as the model family writes them, without the end-of-turn
	// token, which the engine adds. Spellings of special tokens become those tokens.
	Text string
	// Fail makes the engine fail while it answers. The zero Failure is none.
	Fail Failure
}

// Failure is an engine failure to be injected.
type Failure struct {
	Mode        FailureMode
	AfterTokens int // output tokens that are sent before; Refuse ignores it
}

// FailureMode says how an engine fails.
type FailureMode uint8

// The ways to fail. All but Refuse happen after Failure.AfterTokens output tokens.
const (
	NoFailure FailureMode = iota
	Refuse                // HTTP 500 in vLLM's envelope, before any output
	Cut                   // the connection breaks
	ErrorLine             // a data line with an error object, then [DONE], as vLLM reports a failed step
	Stall                 // no further output until the client goes away or the engine is closed
)

// Echo is the Script used when none is given: it repeats the text of the last ChatML user turn, or the whole prompt when
// there is none.
func Echo(p Prompt) Reply {
	text := p.Text
	if _, after, ok := cutLast(text, "<|im_start|>user\n"); ok {
		text, _, _ = strings.Cut(after, "<|im_end|>")
	}
	return Reply{Text: text}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Rule is one line of a script for Rules.
type Rule struct {
	When string `json:"when"` // text that must occur in the prompt; empty: always
	Say  string `json:"say"`  // raw model output
}

// Rules returns a Script that says the answer of the rule whose text occurs last in the prompt (where two end at the same
// place, the earlier rule), or echoes when none occurs. Later turns of a conversation thus win over earlier ones.
func Rules(rules ...Rule) Script {
	return func(p Prompt) Reply {
		best, at := -1, -1
		for i, r := range rules {
			pos := 0
			if r.When != "" {
				if pos = strings.LastIndex(p.Text, r.When); pos < 0 {
					continue
				}
				pos += len(r.When)
			}
			if pos > at {
				best, at = i, pos
			}
		}
		if best < 0 {
			return Echo(p)
		}
		return Reply{Text: rules[best].Say}
	}
}
