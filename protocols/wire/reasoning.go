// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/seam"
	"github.com/weft-go/weft/protocols/replay"
)

// A ReasoningCheck is the result of checking one block of past reasoning.
type ReasoningCheck struct {
	Verdict  replay.Verdict
	Restored bool // the sealed text of the token was restored, and the token removed
	Dropped  bool // the block was removed

	path string // in the body that was checked; such as "turn 1, block 0" if the request has no body
}

// String returns the path, the verdict and the action, for example "messages[1].content[0]: forged reasoning dropped".
func (c ReasoningCheck) String() string {
	action := "kept"
	switch {
	case c.Restored:
		action = "restored"
	case c.Dropped:
		action = "dropped"
	}
	return fmt.Sprintf("%s: %v reasoning %s", c.path, c.Verdict, action)
}

// maxChatChanges is the maximum number of changes of reasoning in one message of the Chat API. Each change rewrites the
// plain text of all reasoning in the message.
const maxChatChanges = 256

// CheckReasoning verifies the reasoning that a client returns against the tokens that an encoder of this module made
// with s. If s is nil, it checks the tokens of encoders without a Signer.
//
//   - Intact reasoning is kept. The text of sealed reasoning is restored, so that the prompt contains the text that the
//     model generated instead of the text that the client was shown. Its token is removed.
//   - Forged reasoning is dropped, and its message as well if it is then empty.
//   - Unverified reasoning is kept by default and reported. An unknown key does not prove a forgery, and a conversation
//     should survive a restart. Dropping it would not stop a forger, because reasoning without a token is accepted as
//     well.
//   - Absent reasoning, a token without its text, is kept by default and reported.
//   - Foreign reasoning is kept by default: reasoning with another server's signature, or without any, as most clients of
//     the Chat API send it.
//
// Reasoning with a verdict in drop is dropped as well: [replay.Unverified], [replay.Absent] or [replay.Foreign]. With all three,
// only verified reasoning is kept.
//
// It returns a ReasoningCheck for each block of reasoning, in order, except those that are foreign or intact and not
// changed. If no block is changed, the request is not modified and encodes byte for byte; otherwise the positions of
// blocks change. If the result is empty, pending edits remain pending; otherwise they are committed, so that the results
// have the positions of the edited body.
//
// A message of the Chat API with more than 256 such changes is an error of kind [block.LimitPassed], and the request is
// not modified. The cost is one SHA-256 of all reasoning that has a token and, if a block changed, decoding the request
// again. Turns that [API.DecodeNext] took over from a request in which the same signer found their reasoning intact are
// not checked again.
func CheckReasoning(r *block.Request, s *replay.Signer, drop ...replay.Verdict) ([]ReasoningCheck, error) {
	doc := codec.DocOf(r)
	if doc == nil { // built: there is nothing to commit, but there may be an error
		if err := r.Commit(); err != nil {
			return nil, err
		}
	}
	found, changes, of, err := examine(r, s, drop)
	if err != nil || len(found) == 0 {
		return nil, err // pending edits need not become the body
	}
	if err := r.Commit(); err != nil { // changes require a body without edits
		return nil, err
	}
	if codec.DocOf(r) != doc { // positions changed
		found, changes, of, err = examine(r, s, drop)
	}
	if err != nil || len(changes) == 0 {
		return found, err
	}
	err = codec.Amend(r, changes)
	for i := range changes {
		if changes[i].Kept { // not a form that an encoder of this module writes
			found[of[i]].Restored = false
		}
	}
	return found, err
}

// examine checks the reasoning of r. of has the index in found of each change.
func examine(r *block.Request, s *replay.Signer, drop []replay.Verdict) (found []ReasoningCheck, changes []codec.Change, of []int, err error) {
	turns, origins := r.Turns(), codec.OriginsOf(r)
	for ti := range turns {
		var o *seam.Origin
		if origins != nil {
			o = origins[ti]
		}
		if o != nil {
			if by, ok := o.Intact.Load().(*replay.Signer); ok && by.Equal(s) {
				continue
			}
		}
		intact := true
		first := len(changes)
		for bi := range turns[ti].Blocks {
			b := &turns[ti].Blocks[bi]
			if b.Kind != block.Reasoning {
				continue
			}
			var c ReasoningCheck
			to := c.check(s, b)
			intact = intact && c.Verdict == replay.Intact && !c.Restored
			switch c.Verdict {
			case replay.Forged:
				c.Dropped = true
			case replay.Unverified, replay.Absent:
				c.Dropped = slices.Contains(drop, c.Verdict)
			case replay.Foreign:
				if !slices.Contains(drop, c.Verdict) {
					continue
				}
				c.Dropped = true
			case replay.Intact:
				if !c.Restored {
					continue
				}
			}
			if c.path = b.At.Path(); c.path == "" {
				c.path = fmt.Sprintf("turn %d, block %d", ti, bi)
			}
			if c.Restored || c.Dropped {
				changes = append(changes, codec.Change{Turn: ti, Block: bi, To: to, Drop: c.Dropped})
				of = append(of, len(found))
			}
			found = append(found, c)
		}
		if o != nil && intact {
			o.Intact.Store(s)
		}
		if n := len(changes) - first; n > maxChatChanges && r.API() == block.Chat && codec.DocOf(r) != nil {
			return nil, nil, nil, &block.Error{
				Kind: block.LimitPassed, Path: turns[ti].At.Path(), Offset: -1, Msg: "too many changes of reasoning in one message",
				Limit: "changes of reasoning", Max: maxChatChanges,
			}
		}
	}
	return found, changes, of, nil
}

// check sets the verdict of c. It sets Restored if the block that it returns must replace b.
func (c *ReasoningCheck) check(s *replay.Signer, b *block.Block) (to block.Block) {
	text, v := s.Open(b.Signature, b.Text)
	signed := v != replay.Foreign
	if !signed {
		text, v = s.Open(b.Encrypted, b.Text)
	}
	c.Verdict = v
	if v != replay.Intact || text == b.Text {
		return to
	}
	c.Restored = true
	to = *b
	to.Text, to.Summary = text, false
	if signed {
		to.Signature = ""
	} else {
		to.Encrypted, to.Redacted = "", false
	}
	return to
}

// ReplayTurns returns the turns of r in the form of package replay, one for each of [block.Request.Turns].
//
// A user turn of tool results and reminders continues the work. Other content next to tool results makes the turn a
// start, as in a separate message, regardless of its [block.TurnKind]: chat templates render it as a separate message.
// A turn that has only a reminder and follows an assistant turn is a start, because the model has nothing else to
// respond to. System text is neither, even in a turn of the user.
func ReplayTurns(r *block.Request) []replay.Turn {
	turns := r.Turns()
	out := make([]replay.Turn, len(turns))
	for i := range turns {
		t, o := &turns[i], &out[i]
		switch t.Role {
		case block.RoleUser, block.RoleTool:
			o.Start = (t.Kind != block.ToolContinuation || hasInput(t)) &&
				(len(t.Blocks) == 0 || slices.ContainsFunc(t.Blocks, func(b block.Block) bool { return b.Kind != block.Instruction }))
		case block.RoleAssistant:
			o.Assistant = true
			for k := range t.Blocks {
				switch b := &t.Blocks[k]; b.Kind {
				case block.Reasoning:
					o.Reasoning = o.Reasoning || b.Text != ""
				case block.ToolCall:
					o.Calls = true
				case block.ServerItem: // a tool that the API defines and the client runs; templates render it as a call
					o.Calls = o.Calls || b.CallID != "" && strings.HasSuffix(b.Type, "_call")
				}
			}
		}
	}
	return out
}

// hasInput reports whether a turn that continues the work has content other than results, reminders and system text.
func hasInput(t *block.Turn) bool {
	if t.Role == block.RoleTool {
		return false
	}
	for k := range t.Blocks {
		switch b := &t.Blocks[k]; {
		case b.Kind == block.ToolResult, b.Kind == block.Instruction, b.Kind == block.Unknown, b.Kind == block.ServerItem:
		case b.Kind == block.Text && block.IsReminder(b.Text):
		default:
			return true
		}
	}
	return false
}
