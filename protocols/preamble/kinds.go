// SPDX-License-Identifier: Apache-2.0

package preamble

import "fmt"

// The classes of fragments: how long they stay the same.
const (
	classStatic   = "static"   // the same for all users of a version of the harness
	classSession  = "session"  // the same for a user, a directory, a machine or a day
	classTurn     = "turn"     // the same for one step of one conversation
	classVolatile = "volatile" // may change with every request, and is not content
)

// The causes of a divergence, as listed at Divergence.
const (
	causeBillingHeader      = "billing header"
	causeMemoryPath         = "memory path"
	causeEnvironment        = "environment"
	causeDate               = "date"
	causeGitStatus          = "git status"
	causeTempDir            = "temp dir"
	causeWorkingDir         = "working directory"
	causeSkillRoot          = "skill root"
	causeProjectFile        = "project file"
	causeRelocatedText      = "relocated text"
	causeSystemEdited       = "system text edited"
	causeSystemMoved        = "system message moved"
	causeToolAdded          = "tool added"
	causeToolRemoved        = "tool removed"
	causeToolReordered      = "tools reordered"
	causeToolChanged        = "tool changed"
	causeReminder           = "reminder"
	causeUserText           = "user text"
	causeAssistantText      = "assistant text"
	causeReasoningDropped   = "reasoning dropped"
	causeReasoningAdded     = "reasoning added"
	causeReasoningChanged   = "reasoning changed"
	causeArgumentsRespelled = "arguments respelled"
	causeCallChanged        = "call changed"
	causeCallIDChanged      = "call id changed"
	causeResultChanged      = "result changed"
	causeMediaChanged       = "media changed"
	causeCompacted          = "history compacted"
	causeHistoryRewritten   = "history rewritten"
)

// kind is the kind of a segment of the canonical prompt.
type kind uint8

const (
	toolSegment kind = iota
	systemSegment
	userSegment
	reminderSegment
	assistantSegment
	reasoningSegment
	callSegment
	resultSegment
	mediaSegment
	compactionSegment
	otherSegment
)

// Relation is the relation of a second prompt to a first one.
type Relation uint8

// The relations. In all but Diverges, one prompt is a prefix of the other.
const (
	Same     Relation = iota
	Extends           // the second continues after the end of the first
	Shorter           // the second ends within the first
	Diverges          // they differ at Offset
)

var relationNames = [...]string{"same", "extends", "shorter", "diverges"}

// String returns the relation in lower case.
func (r Relation) String() string {
	if int(r) < len(relationNames) {
		return relationNames[r]
	}
	return fmt.Sprintf("relation(%d)", uint8(r))
}

// cosmetic is a set of differences between two bodies that are not in the prompt.
type cosmetic uint8

const (
	cacheMoved   cosmetic = 1 << iota // cache breakpoints are at other positions
	contentForm                       // content is a string in one and a list of one text in the other
	itemIDs                           // IDs of messages and items
	callIDs                           // IDs of calls and results, if the template does not print them
	toolSpelling                      // white space in declarations of tools
)

// String returns the differences in words, joined by commas.
func (c cosmetic) String() string {
	out := ""
	for i, s := range []string{"cache breakpoints", "content form", "item ids", "call ids", "tool spelling"} {
		if c&(1<<i) != 0 {
			if out != "" {
				out += ", "
			}
			out += s
		}
	}
	return out
}

// The actions of rules and changes.
const (
	actKeep    = ""        // the fragment stays; the rule only names it
	actMove    = "move"    // the lines move to the end of the system text; the pointer, if any, replaces them
	actPoint   = "point"   // the value moves, and a pointer replaces it
	actRemoved = "removed" // text that is not content was removed: only in a Change
	actRespelt = "respelt" // bytes changed that are not in the prompt: only in a Change
	actOrdered = "ordered" // a tool was moved to another position: only in a Change
)
