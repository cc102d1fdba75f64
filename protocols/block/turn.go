// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"
	"strings"
)

// Turn is one step of the conversation: a role and its blocks in order.
//
// A turn is one message of the Chat and Messages APIs. In the Responses API a run of assistant items (reasoning,
// message, calls) is one turn and a run of call outputs is one turn.
type Turn struct {
	Role   Role
	Kind   TurnKind // set by the request that holds the turn
	Blocks []Block
	ID     string // of the message, Responses only
	Name   string // of the participant, Chat only
	Form   Form   // how it was spelled
	At     Ref    // its place in the request, zero for a turn of your own

	rest *residue // of a detached request
	lost []Loss   // what no conversion carries of it
}

// Form is how a turn or the content of a result was spelled where the API has several ways. It combines. Writers of the
// API that it came from keep to it; 0 leaves it to them.
type Form uint8

// The forms.
const (
	FormMember    Form = 1 << iota // a member of its own: system, instructions, an input that is a string
	FormString                     // the content is a string
	FormList                       // the content is a list
	FormReasoning                  // Chat: past reasoning is in the member reasoning and not in reasoning_content
)

// Text returns the text blocks of the turn, joined by sep.
func (t *Turn) Text(sep string) string { return JoinText(t.Blocks, sep) }

// JoinText returns the text of the Text blocks of list, joined by sep. One block costs nothing.
func JoinText(list []Block, sep string) string {
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

// Equal reports whether two turns say the same. It ignores where they stand and their ids.
func (t Turn) Equal(o Turn) bool {
	return t.Role == o.Role && t.Kind == o.Kind && t.Name == o.Name && slices.EqualFunc(t.Blocks, o.Blocks, Block.Equal)
}

// reminders are the wrappings of text that a harness, not a person, puts into user turns.
var reminders = [...]struct{ open, end string }{
	{"<system-reminder>", "</system-reminder>"},                                      // Claude Code
	{"<total_tokens>", "</total_tokens>"},                                            // Claude Code
	{"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"}, // OpenClaw
}

// IsReminder reports whether text is nothing but a reminder that a harness wrote: the kinds known are
// <system-reminder> and <total_tokens> of Claude Code and OpenClaw's internal context.
func IsReminder(text string) bool {
	text = strings.TrimSpace(text)
	for _, r := range reminders {
		if strings.HasPrefix(text, r.open) && strings.HasSuffix(text, r.end) {
			return true
		}
	}
	return false
}

// markTurns sets the Kind of all turns. A turn with a tool result continues, also if the tool is one that the API defines (a
// shell, say) and its result is kept raw. A user turn of reminders only goes with what
// it follows, system text in between not counted: a tool result or continuation makes it one too.
func markTurns(turns []Turn) {
	continues := false
	for i := range turns {
		t := &turns[i]
		switch t.Role {
		case RoleUser, RoleTool:
			results, others := 0, 0
			for k := range t.Blocks {
				b := &t.Blocks[k]
				switch {
				case b.Kind == ToolResult:
					results++
				case b.Kind == Instruction: // neither asks nor answers
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
				t.Kind = Reminder
			default:
				t.Kind, continues = TurnStart, false
			}
		case RoleAssistant:
			t.Kind, continues = Other, false
		default:
			t.Kind = Other
		}
	}
}

// SplitInstructions returns turns in which every [Instruction] is a system turn of its own, between the parts of the turn
// that it stood in. Turns without any are the same; the slice is the given one if no turn has one.
func SplitInstructions(turns []Turn) []Turn {
	has := func(t Turn) bool {
		return slices.ContainsFunc(t.Blocks, func(b Block) bool { return b.Kind == Instruction })
	}
	if !slices.ContainsFunc(turns, has) {
		return turns
	}
	var out []Turn
	for _, t := range turns {
		from := 0
		part := func(to int) {
			if from < to || len(t.Blocks) == 0 {
				p := t
				p.Blocks = t.Blocks[from:to:to]
				out = append(out, p)
			}
		}
		for i := range t.Blocks {
			if b := &t.Blocks[i]; b.Kind == Instruction {
				part(i)
				out = append(out, Turn{Role: RoleSystem, Blocks: b.Content, At: b.At})
				from = i + 1
			}
		}
		part(len(t.Blocks))
	}
	return out
}
