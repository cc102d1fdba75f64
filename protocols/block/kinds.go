// SPDX-License-Identifier: Apache-2.0

package block

import "fmt"

// API is a wire format of requests.
type API uint8

// The APIs. None is the API of a request that was built with [NewRequest].
const (
	None        API = iota
	Chat            // POST /v1/chat/completions
	Responses       //  POST /v1/responses
	Messages        //  POST /v1/messages
	Completions     //  POST /v1/completions
)

// String returns chat, responses, messages, completions, or none.
func (a API) String() string { return name(apiNames[:], int(a), "api") }

var apiNames = [...]string{"none", "chat", "responses", "messages", "completions"}

// Role is the author of a turn.
type Role uint8

// The roles. RoleUnknown is a role that this version does not model; its name is in the body.
const (
	RoleUnknown Role = iota
	RoleSystem
	RoleDeveloper
	RoleUser
	RoleAssistant
	RoleTool // a turn with only tool results
)

// String returns the role as the OpenAI APIs spell it.
func (r Role) String() string { return name(roleNames[:], int(r), "role") }

var roleNames = [...]string{"unknown", "system", "developer", "user", "assistant", "tool"}

// TurnKind specifies whether a turn begins or continues an agent's work. It is zero for system text, for assistant
// turns and for a user turn that contains only reminders and follows no tool result.
type TurnKind uint8

// The kinds of turns. The work on the user's last question begins at the last TurnStart; replay rules depend on it.
const (
	// TurnStart is a user turn with a new question.
	TurnStart TurnKind = iota + 1
	// ToolContinuation is a turn with tool results, or a user turn that contains only reminders and follows one.
	ToolContinuation
)

// String returns turn_start or tool_continuation, and other for the zero kind.
func (k TurnKind) String() string { return name(turnNames[:], int(k), "turn") }

var turnNames = [...]string{"other", "turn_start", "tool_continuation"}

// Kind is the kind of a block. Later versions may add kinds: treat unknown values as Unknown.
type Kind uint8

// The kinds, with the fields of [Block] each one uses besides Type, ID, Cache and At.
const (
	// Unknown is a block that this version does not model: Type, JSON.
	Unknown Kind = iota
	// Text is text in Text.
	Text
	// Reasoning is past reasoning: Text, Summary, Signature, Encrypted, Redacted.
	Reasoning
	// ToolCall is a call: CallID, Name, Namespace, Args, Custom, Server.
	ToolCall
	// ToolResult is a result: CallID, Content, IsError, Custom, Server.
	ToolResult
	// Image is an image in Media.
	Image
	// Audio is audio in Media.
	Audio
	// Video is a video in Media.
	Video
	// File is a file in Media.
	File
	// Document is a text or PDF document in Media, or as Content.
	Document
	// Refusal is a refusal in Text.
	Refusal
	// Citation is a source that responses may cite: Name is the title, Media the address, Content the text.
	Citation
	// Compaction replaces history that was compacted: Text or Encrypted.
	Compaction
	// ToolReference makes the deferred tool in Name available from this block on.
	ToolReference
	// ServerItem is an item of a tool that the server runs (a web search, a shell call): JSON.
	ServerItem
	// Instruction is system text, as Content, inside a turn of another role.
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
