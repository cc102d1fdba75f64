// SPDX-License-Identifier: Apache-2.0

package vllm

import (
	"slices"
	"strings"
)

// A Script returns the engine's output. It is called once for each requested choice, from the request's goroutine. It
// must be safe for concurrent use and should return quickly.
type Script func(Prompt) Reply

// Prompt is a request as passed to a Script.
type Prompt struct {
	Text      string // the decoded prompt, special tokens included
	IDs       []uint32
	User      []uint32 // of IDs, the content of the last ChatML user turn, or all if there is none
	Model     string
	RequestID string // the client's X-Request-Id, or a generated one
	Choice    int    // index of the requested choice, from 0
}

// Reply is the engine's output for one prompt.
type Reply struct {
	// Text is raw model output with the reasoning and call markers of the model family, but without the end-of-turn
	// token, which the engine adds. Spellings of special tokens become special tokens.
	Text string
	// IDs replaces Text unless it is nil: the same output as token ids, without the end-of-turn token.
	IDs []uint32
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

// Echo is the default Script: it repeats Prompt.User. Text in it that spells a special token remains text.
func Echo(p Prompt) Reply { return Reply{IDs: p.User} }

// lastUser returns the content of the last ChatML user turn in a prompt, or the whole prompt if it has no user turn.
func (e *Engine) lastUser(prompt []uint32) []uint32 {
	start, ok1 := e.tok.TokenID("<|im_start|>")
	end, ok2 := e.tok.TokenID("<|im_end|>")
	for i := len(prompt) - 1; i >= 0 && ok1 && ok2; i-- {
		if prompt[i] != start {
			continue
		}
		turn := prompt[i+1:]
		if n := slices.Index(turn, end); n >= 0 {
			turn = turn[:n]
		}
		var role []byte
		for n, id := range turn {
			if role = e.tok.AppendToken(role, id); len(role) >= len("user\n") {
				if text, ok := strings.CutPrefix(string(role), "user\n"); ok { // text begins the content, in the token that ends the role
					return append(e.tok.AppendEncode(nil, text), turn[n+1:]...)
				}
				break
			}
		}
	}
	return prompt
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
