// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// The templates of this package have three further methods, which package prompt calls through an interface of its own:
//
//	FitValues(c *Capabilities, messages []jsonval.Value) (fitted []jsonval.Value, notes []string)
//	FitParts(c *Capabilities, messages []*jsonval.Part, printed int) (fitted []jsonval.Value, notes []string)
//	RenderValues(req Request, messages, tools []jsonval.Value) (*Prompt, error)
//
// They are Fit, twice, and Render for a conversation that is not JSON. Messages and Tools of the request are ignored. All but ChatML
// also have RenderParts, which reuses parts of an earlier rendering.

// input is a request whose conversation may be values.
type input struct {
	Request
	values          bool
	messages, tools []jsonval.Value // instead of Messages and Tools, if values is set

	before, next *memory // of an earlier rendering, if any; of this one, which then has the conversation

	turnsBefore, turns *turnMemory // the same, for the formats that are written in Go
}

var errContinue = &Error{reason: "the final message cannot be continued and a new one begun"}

// checkOpen returns an error if a format that is written in Go cannot leave the last message open as the request asks.
func (in *input) checkOpen() error {
	switch in.ContinueFinalMessage {
	case "", "content":
	default:
		return &Error{reason: fmt.Sprintf("this format continues only content, not %q", in.ContinueFinalMessage)}
	}
	if in.AddGenerationPrompt && in.ContinueFinalMessage != "" {
		return errContinue
	}
	return nil
}

// messageList returns the messages.
func (in *input) messageList() ([]jsonval.Value, error) {
	if in.values {
		return in.messages, nil
	}
	return parseList(in.Messages, "messages")
}

// toolList returns the tools.
func (in *input) toolList() ([]jsonval.Value, error) {
	if in.values {
		return in.tools, nil
	}
	return parseList(in.Tools, "tools")
}

// fitting implements FitValues.
type fitting struct{}

// FitValues is [Fit] for messages that are objects. If no change is needed, it returns the same slice.
func (fitting) FitValues(c *Capabilities, messages []jsonval.Value) (fitted []jsonval.Value, notes []string) {
	if c.prints(len(messages), 0, func(i int) *jsonval.Value { return &messages[i] }) {
		return messages, nil
	}
	return fit(messages, c)
}

// FitParts is FitValues for parts. It returns nil if no change is needed. An earlier call returned nil for a conversation
// that began with the first messages, as many as printed.
func (fitting) FitParts(c *Capabilities, messages []*jsonval.Part, printed int) (fitted []jsonval.Value, notes []string) {
	if c.prints(len(messages), printed, func(i int) *jsonval.Value { return &messages[i].Value }) {
		return nil, nil
	}
	return fit(jsonval.Values(messages), c)
}

// prints reports whether the template prints the n messages that at returns as they are. It may report false if Fit changes
// nothing. It is known that the first messages, as many as known, are printed.
func (c *Capabilities) prints(n, known int, at func(i int) *jsonval.Value) bool {
	var begun, user, turn bool // there was a message of another role than system, of the user, or one that is not a system message
	last, calls := "", false   // of the message before
	for i := range n {
		if i < known-1 && user && turn {
			continue // of these messages, nothing else counts
		}
		m := at(i)
		role := m.Get("role").Str
		called := role == "assistant" && len(m.Get("tool_calls").List) > 0
		switch {
		case i < known:
		case role == "developer":
			if !c.developer {
				return false
			}
		case role == "system":
			if begun && !c.systemAt(last) || !begun && !c.system || !begun && !c.systemMiddle && i > 0 {
				return false
			}
		case role == "assistant":
			if called && !c.toolCalls && !c.flatCalls || last == role && !c.consecutiveAssistants && !calls || !turn && !c.assistantFirst {
				return false
			}
		case role == "user":
			if last == role && !c.consecutiveUsers {
				return false
			}
		case role == "tool" || role == "function":
			if !c.toolRole {
				return false
			}
		}
		user = user || role == "user"
		begun, turn = begun || role != "system", turn || role != "system"
		last, calls = role, called
	}
	return user || c.noUser
}
