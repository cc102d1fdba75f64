// SPDX-License-Identifier: Apache-2.0

package block

// NewRequest returns a request with the given turns that belongs to no API. Extend it with [Request.AppendTurn],
// [Request.AppendTool] and [Request.SetParams]. Encode it with AppendRequest of package chat, completions,
// responses or messages. Invalid raw JSON in a turn is reported when the request is encoded.
func NewRequest(turns ...Turn) *Request {
	r := &Request{limits: (*Limits)(nil).filled()}
	for i := range turns {
		if err := r.AppendTurn(turns[i]); err != nil {
			r.err = err
			break
		}
	}
	return r
}

// SystemText returns a system turn with one block of text.
func SystemText(text string) Turn { return textTurn(RoleSystem, text) }

// UserText returns a user turn with one block of text.
func UserText(text string) Turn { return textTurn(RoleUser, text) }

// AssistantText returns an assistant turn with one block of text.
func AssistantText(text string) Turn { return textTurn(RoleAssistant, text) }

func textTurn(role Role, text string) Turn {
	return Turn{Role: role, Blocks: []Block{{Kind: Text, Text: text}}}
}

// ToolResults returns a turn with the results of the calls in an assistant turn. Each block has kind [ToolResult]; see
// [ResultText]. Without results, the turn has no blocks; do not append it to a request, because some APIs encode it as an
// empty message of the user.
func ToolResults(results ...Block) Turn { return Turn{Role: RoleTool, Blocks: results} }

// ResultText returns a block of kind [ToolResult] with one text, the result of the call callID. Set IsError in it if
// the tool failed.
func ResultText(callID, text string) Block {
	return Block{Kind: ToolResult, CallID: callID, Content: []Block{{Kind: Text, Text: text}}}
}
