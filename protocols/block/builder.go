// SPDX-License-Identifier: Apache-2.0

package block

// NewRequest returns a request with the given turns that belongs to no API. Extend it with [Request.Append],
// [Request.SetTools] and [Request.SetParams]. Encode it with AppendRequest of package chat, completions,
// responses or messages. Invalid raw JSON in a turn is reported when the request is encoded.
func NewRequest(turns ...Turn) *Request {
	r := &Request{limits: (*Limits)(nil).filled()}
	r.err = r.Append(turns...)
	return r
}

// NewTurn returns a turn with one block of text.
func NewTurn(role Role, text string) Turn {
	return Turn{Role: role, Blocks: []Block{{Kind: Text, Text: text}}}
}

// NewResult returns a block of kind [ToolResult] with one text, the result of the call callID. Set IsError in it if the
// tool failed. The results of the calls of an assistant turn are the blocks of one turn of [RoleTool].
func NewResult(callID, text string) Block {
	return Block{Kind: ToolResult, CallID: callID, Content: []Block{{Kind: Text, Text: text}}}
}
