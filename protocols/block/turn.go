// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"strings"
)

// Turn is one step of the conversation: a role and its blocks in order.
//
// A turn is one message of the Chat and Messages APIs. In the Responses API, a sequence of assistant items (reasoning,
// messages, calls) is one turn, as is a sequence of call outputs.
type Turn struct {
	Role   Role
	Kind   TurnKind // set by the request that contains the turn
	Form   Form     // spelling in the body
	apart  bool     // the blocks have positions in a part of a document
	Blocks []Block
	ID     string // ID of the message; Responses only
	Name   string // name of the participant; Chat only
	At     Ref    // position in the request; zero if not read from one

	// Detached requests only. Conversations have many turns, which are copied, so they are small.
	rest *residue
	lost *[]Loss // losses of any conversion; nil if there are none
}

// Form is the spelling of a turn, or of the content of a tool result, if the API has several: a string or an array, a
// message or a separate field such as system. Encoders of the same API preserve it. 0 lets the encoder choose.
type Form uint8

// Text returns the text of the turn's Text blocks, joined by sep. It does not allocate if there is at most one.
func (t *Turn) Text(sep string) string {
	list := t.Blocks
	var one string
	n := 0
	for i := range list {
		if list[i].Kind == Text {
			one = list[i].Text
			n++
		}
	}
	if n <= 1 {
		return one
	}
	var b strings.Builder
	for i := range list {
		if list[i].Kind == Text {
			if b.Len() > 0 {
				b.WriteString(sep)
			}
			b.WriteString(list[i].Text)
		}
	}
	return b.String()
}

// Equal reports whether two turns have the same contents. It ignores positions and IDs.
func (t Turn) Equal(o Turn) bool {
	return t.Role == o.Role && t.Kind == o.Kind && t.Name == o.Name && slices.EqualFunc(t.Blocks, o.Blocks, Block.Equal)
}

// reminders are the delimiters of text that a harness, not a person, adds to user turns.
var reminders = [...]struct{ open, end string }{
	{"<system-reminder>", "</system-reminder>"},                                      // Claude Code
	{"<total_tokens>", "</total_tokens>"},                                            // Claude Code
	{"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"}, // OpenClaw
}

// IsReminder reports whether text consists of one reminder that a harness wrote: <system-reminder> or <total_tokens> of
// Claude Code, or OpenClaw's internal context.
func IsReminder(text string) bool {
	text = strings.TrimSpace(text)
	for _, r := range reminders {
		if strings.HasPrefix(text, r.open) && strings.HasSuffix(text, r.end) {
			return true
		}
	}
	return false
}

// markTurns sets the Kind of the turns from number from. A turn with a tool result is a continuation, also if the API defines the tool
// (a shell, for example) and the result is kept as raw JSON. A user turn that contains only reminders is a continuation
// if it follows a tool result or continuation, ignoring system text in between.
func markTurns(turns []Turn, from int) {
	continues := false
	for i := from - 1; i >= 0; i-- {
		if r := turns[i].Role; turns[i].Kind != 0 || r == RoleAssistant {
			continues = turns[i].Kind == ToolContinuation
			break
		}
	}
	for i := from; i < len(turns); i++ {
		t := &turns[i]
		switch t.Role {
		case RoleUser, RoleTool:
			results, others := 0, 0
			for k := range t.Blocks {
				b := &t.Blocks[k]
				switch {
				case b.Kind == ToolResult:
					results++
				case b.Kind == Instruction: // neither a question nor a result
				case b.Kind != Text || !IsReminder(b.Text):
					others++
				}
			}
			switch {
			case results > 0 || t.Role == RoleTool && len(t.Blocks) > 0:
				t.Kind, continues = ToolContinuation, true
			case others == 0 && len(t.Blocks) > 0 && continues:
				t.Kind = ToolContinuation
			case others == 0 && len(t.Blocks) > 0:
				t.Kind = 0
			default:
				t.Kind, continues = TurnStart, false
			}
		case RoleAssistant:
			t.Kind, continues = 0, false
		default:
			t.Kind = 0
		}
	}
}
