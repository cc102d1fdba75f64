// SPDX-License-Identifier: Apache-2.0

package block

import "fmt"

// API is a wire format of requests.
type API uint8

// The APIs. None is the API of a request that was built from nothing.
const (
	None        API = iota
	Chat            // POST /v1/chat/completions
	Responses       // POST /v1/responses
	Messages        // POST /v1/messages
	Completions     // POST /v1/completions
)

// String returns chat, responses, messages, completions, or none.
func (a API) String() string { return name(apiNames[:], int(a), "api") }

var apiNames = [...]string{"none", "chat", "responses", "messages", "completions"}

// Role says whose turn it is.
type Role uint8

// The roles. RoleUnknown is a role that no API of this version knows; its name is in the body.
const (
	RoleUnknown Role = iota
	RoleSystem
	RoleDeveloper
	RoleUser
	RoleAssistant
	RoleTool // a turn of tool results only
)

// String returns the role as the OpenAI APIs spell it.
func (r Role) String() string { return name(roleNames[:], int(r), "role") }

var roleNames = [...]string{"unknown", "system", "developer", "user", "assistant", "tool"}

// TurnKind says what a turn is in the course of an agent's work.
type TurnKind uint8

// The kinds of turns. Replay rules need to know where the work on the last real question began: at the last TurnStart.
const (
	// Other is a turn that neither asks nor continues: system text and assistant turns.
	Other TurnKind = iota
	// TurnStart is a user turn that asks something new.
	TurnStart
	// ToolContinuation is a turn that brings tool results, or a user turn of reminders only that follows one.
	ToolContinuation
	// Reminder is a user turn of reminders only that follows no tool result.
	Reminder
)

// String returns the kind in snake case.
func (k TurnKind) String() string { return name(turnNames[:], int(k), "turn") }

var turnNames = [...]string{"other", "turn_start", "tool_continuation", "reminder"}

// Kind says what a block is. Values may be added: treat those you do not know as Unknown.
type Kind uint8

// The kinds, with the fields of [Block] each one uses besides Type, ID, Cache and At.
const (
	// Unknown is a block this version does not model. Type has its type; [Block.Raw] has the rest.
	Unknown Kind = iota
	// Text is text in Text.
	Text
	// Reasoning is past reasoning: Text, Summary, Signature, Encrypted, Redacted.
	Reasoning
	// ToolCall is a call: CallID, Name, Namespace, Args, Custom, Server.
	ToolCall
	// ToolResult is a result: CallID, Content, IsError, Custom, Server.
	ToolResult
	// Image is a picture in Media.
	Image
	// Audio is sound in Media.
	Audio
	// Video is a film in Media.
	Video
	// File is a file in Media.
	File
	// Document is a text or PDF document in Media, or as Content.
	Document
	// Refusal is a refusal in Text.
	Refusal
	// Citation is a source that answers may cite: Name is the title, Media the address, Content the text.
	Citation
	// Compaction stands for history that was compacted: Text or Encrypted.
	Compaction
	// ToolReference names, in Name, a deferred tool that is available from here on.
	ToolReference
	// ServerItem is an item of a tool that the serving side runs (a web search, a shell call), kept raw.
	ServerItem
	// Instruction is system text, as Content, in the middle of a turn of somebody else.
	Instruction
)

// String returns the kind in snake case.
func (k Kind) String() string { return name(kindNames[:], int(k), "kind") }

var kindNames = [...]string{
	"unknown", "text", "reasoning", "tool_call", "tool_result", "image", "audio", "video", "file", "document",
	"refusal", "citation", "compaction", "tool_reference", "server_item", "instruction",
}

func name(names []string, i int, what string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}
