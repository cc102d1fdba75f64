// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Block is one piece of a turn. It is a flat value; which fields have meaning depends on Kind.
//
// Strings and slices of a block that was read from a request are views of that request's body, or of the bodies of earlier requests
// with the same text. They remain valid, but keep whole bodies in memory: clone a small one that outlives large ones. To change a
// block, modify a copy and pass it to [Request.Set].
type Block struct {
	Kind Kind

	// The flags of all kinds are together, because conversations have many blocks.

	Form     Form // spelling of a ToolResult's content
	Summary  bool // Reasoning: Text is a summary; the reasoning itself was not given
	Redacted bool // Reasoning: Encrypted holds reasoning that was withheld
	Custom   bool // ToolCall and ToolResult: the tool takes free text
	Server   bool // ToolCall and ToolResult: the tool runs on the server
	IsError  bool // ToolResult: the tool failed
	opens    bool // set for blocks of detached requests: a message begins with this block, in a turn that has several

	// Type is the block's type in its API (thinking, input_text, function_call). Writers ignore it.
	Type string
	// ID is the item's ID in the Responses API. It is not the ID that links a call to its result.
	ID string

	Text string // Text, Refusal, Reasoning, Compaction

	// Reasoning, and Encrypted also for Compaction.
	Signature string // proof of origin; clients return it unmodified
	Encrypted string // reasoning that only its origin can read

	// ToolCall and ToolResult.
	CallID    string // links a call to its result; never changed
	Name      string // tool name; also Citation title, ToolReference
	Namespace string // the tool's namespace; Responses only
	// Args is the exact text of the arguments: JSON as the model or its harness wrote it, valid or not, or free text if
	// Custom is set.
	Args string

	Content []Block // ToolResult, Document, Citation, Instruction: nested blocks
	Media   *Media  // Image, Audio, Video, File, Document, Citation
	Cache   *Cache  // a cache breakpoint after this block

	// JSON is the block itself, as valid JSON, if Kind is Unknown or ServerItem. Encoders of the API that defines it copy it.
	JSON []byte

	// At is the block's position in its request. It is zero for a block that was not read from a request.
	At Ref

	// Set for blocks of detached requests.
	rest *residue
	env  *residue // of the message that begins with this block
}

// Media is an image, audio, video or file, given by URL, by ID, or inline. At least one of URL, FileID and Data is set.
// Nothing is fetched or decoded.
type Media struct {
	MIME   string // as declared: image/png, application/pdf; "" when unknown
	URL    string // a URL; inline data, including data: URLs, is in Data instead
	Data   string // base64 text, or plain text when MIME is text/plain
	FileID string // ID in the API's file store
	Name   string // file name or title
	Detail string // OpenAI: low, high, auto
}

// Cache is a cache breakpoint: the prompt up to and including its block may be cached.
type Cache struct {
	Type  string // Anthropic: ephemeral. OpenAI: explicit
	TTL   string // as written: 5m, 1h, or a number of seconds; "" for the default
	Scope string // Anthropic, beta: global; "" for the default, an organization or workspace
}

// Ref is the position of a block, turn or tool in a request. Edit methods take it. The zero Ref is not a valid position. A Ref
// is valid until the request is parsed again after an edit. Requests that have blocks in common, because one was decoded with the
// help of the other, accept the positions of these.
type Ref struct {
	doc  *jsonscan.Doc
	node int32 // the value; without a document, a number that the request assigned
	last int32 // the last of several values; of a turn, its complement, so that the position of a turn is not that of a block
}

// end returns the last value.
func (r Ref) end() int32 { return max(r.last, ^r.last) }

// Span returns the bytes [off, end) of the position in the decoded body, or 0, 0 if there is no body.
func (r Ref) Span() (off, end int) {
	if r.doc == nil {
		return 0, 0
	}
	off, end = r.doc.At(int(r.node)).Span()
	if last := r.end(); last > r.node {
		_, end = r.doc.At(int(last)).Span()
	}
	_, add, _ := r.doc.Place()
	return off + add, end + add
}

// Path returns the position as errors spell it, for example messages[3].content[1]. It walks the values before the
// position.
func (r Ref) Path() string {
	if r.doc == nil {
		return ""
	}
	return r.doc.At(int(r.node)).Path()
}

// Equal reports whether two blocks have the same content. It ignores At, Type, ID and Form. Unknown blocks and server
// items are compared by JSON, as bytes.
func (b Block) Equal(o Block) bool {
	if b.Kind != o.Kind || b.Text != o.Text || b.Signature != o.Signature || b.Encrypted != o.Encrypted ||
		b.Summary != o.Summary || b.Redacted != o.Redacted || b.CallID != o.CallID || b.Name != o.Name ||
		b.Namespace != o.Namespace || b.Args != o.Args || b.Custom != o.Custom || b.Server != o.Server ||
		b.IsError != o.IsError || !equalPtr(b.Media, o.Media) || !equalPtr(b.Cache, o.Cache) {
		return false
	}
	if b.Kind == Unknown || b.Kind == ServerItem {
		if string(b.JSON) != string(o.JSON) {
			return false
		}
	}
	return slices.EqualFunc(b.Content, o.Content, Block.Equal)
}

func equalPtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
