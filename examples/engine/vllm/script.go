// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"strings"
)

// A Script returns the engine's output. It is called once for each requested choice, from the request's goroutine. It
// must be safe for concurrent use and should return quickly.
type Script func(Prompt) Reply

// Prompt is a request as passed to a Script.
type Prompt struct {
	Text      string // the decoded prompt, special tokens included
	IDs       []uint32
	Model     string
	RequestID string // the client's X-Request-Id, or a generated one
	Choice    int    // index of the requested choice, from 0
}

// Reply is the engine's output for one prompt.
type Reply struct {
	// Text is raw model output with the reasoning and call markers of the model family, but without the end-of-turn
	// token, which the engine adds. Spellings of special tokens become special tokens.
	Text string
	// Fail injects a failure. The zero Failure has no effect.
	Fail Failure
}

// Failure is an engine failure to be injected.
type Failure struct {
	Mode        FailureMode
	AfterTokens int // output tokens sent before the failure; ignored by Refuse
}

// FailureMode specifies how an engine fails.
type FailureMode uint8

// Failure modes. All except Refuse take effect after Failure.AfterTokens output tokens.
const (
	NoFailure FailureMode = iota
	Refuse                // HTTP 500 in vLLM's envelope, before any output
	Cut                   // the connection breaks
	ErrorLine             // a data line with an error object, then [DONE], as vLLM reports a failed step
	Stall                 // no further output until the client disconnects or the engine is closed
)

// Echo is the default Script: it repeats the text of the last ChatML user turn or, if there is no such turn, the whole
// prompt.
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

// Rule is an entry of a script for Rules.
type Rule struct {
	When string `json:"when"` // text that must occur in the prompt; "" always does
	Say  string `json:"say"`  // raw model output
}

// Rules returns a Script that replies with the rule whose text occurs last in the prompt (of two that end at the same
// position, the earlier rule), or echoes the prompt if none occurs. Later turns of a conversation thus take precedence
// over earlier ones.
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
