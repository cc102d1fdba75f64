// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// The forms of turns and of the content of tool results. They combine.
const (
	FormMember    = seam.FormMember
	FormString    = seam.FormString
	FormList      = seam.FormList
	FormReasoning = seam.FormReasoning
)

// JoinText returns the text of the Text blocks of list, joined by sep.
func JoinText(list []block.Block, sep string) string {
	t := block.Turn{Blocks: list}
	return t.Text(sep)
}

// ReferenceText returns the text of a [block.ToolReference] in an API that has only text.
func ReferenceText(name string) string { return "Tool " + name + " is available now." }

// SplitInstructions returns turns in which every [block.Instruction] is a separate system turn, between the parts of
// the turn that contained it. Other turns are unchanged. If no turn contains an instruction, the result is the given
// slice.
func SplitInstructions(turns []block.Turn) []block.Turn {
	if !HasInstruction(turns) {
		return turns
	}
	var out []block.Turn
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
			if b := &t.Blocks[i]; b.Kind == block.Instruction {
				part(i)
				out = append(out, block.Turn{Role: block.RoleSystem, Blocks: b.Content, At: b.At})
				from = i + 1
			}
		}
		part(len(t.Blocks))
	}
	return out
}

// HasInstruction reports whether a turn contains an instruction.
func HasInstruction(turns []block.Turn) bool {
	for i := range turns {
		for k := range turns[i].Blocks {
			if turns[i].Blocks[k].Kind == block.Instruction {
				return true
			}
		}
	}
	return false
}
