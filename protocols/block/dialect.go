// SPDX-License-Identifier: Apache-2.0

package block

import "github.com/weft-go/weft/protocols/internal/jsonscan"

// View is what this package models of a request.
type View struct {
	Params Params
	Turns  []Turn
	Tools  []Tool
}

// Member is a top-level member of a request body.
type Member struct {
	Key   string
	Also  string // another spelling, which is kept where a body has it
	Value []byte // JSON
}

// Lose records a loss; path is in the source request.
type Lose func(path, why string)

// Dialect reads, edits and writes requests of one API. The packages chat, responses and messages have one each. Its
// methods speak in terms of an internal package, so there are no others.
//
// Set, Insert, Delete, InsertTurn and DeleteTurn record edits of the body. exact reports that a view that was changed in
// the same way now shows what reading the edited body would show; otherwise the request reads it again.
type Dialect interface {
	API() API
	// Read reads the fields of a checked body.
	Read(root jsonscan.Value, lim Limits) (View, error)
	// Members returns the top-level members that say p, without messages and tools.
	Members(p *Params, tools []Tool, lose Lose) []Member
	// AppendTool appends the declaration of a tool; nothing if the API has no way to say it.
	AppendTool(dst []byte, t *Tool, lose Lose) []byte

	// The next four write requests of this API that were taken off their bodies.

	// AppendBlock appends the value at the place of a block, nothing if the API has none for it.
	AppendBlock(dst []byte, t *Turn, b *Block) []byte
	// AppendTurn appends the messages or items of a turn with commas between them, or, with FormMember, its content.
	AppendTurn(dst []byte, t *Turn) []byte
	// TurnMember is the name of the member that holds a turn with FormMember, "" for all others.
	TurnMember(t *Turn) string
	// ListMember is the name of the list of messages or items.
	ListMember() string

	Set(e *jsonscan.Edits, t *Turn, old, b *Block) (exact bool, err error)
	// Insert adds blocks in front of t.Blocks[at], or of holder.Content[at] if there is a holder.
	Insert(e *jsonscan.Edits, t *Turn, holder *Block, at int, list []Block) error
	Delete(e *jsonscan.Edits, t *Turn, holder *Block, at int) (exact bool, err error)
	InsertTurn(e *jsonscan.Edits, turns []Turn, at int, t *Turn) error
	DeleteTurn(e *jsonscan.Edits, t *Turn) error
}

// RefOf returns the place of v, which may reach to the value last, a later sibling. For the packages of this module.
func RefOf(v, last jsonscan.Value) Ref {
	return Ref{doc: v.Doc(), node: int32(v.Index()), last: int32(last.Index())}
}

// ValueOf returns the value at the place, absent for a block that was not read from a body. For the packages of this
// module.
func ValueOf(at Ref) jsonscan.Value {
	if at.doc == nil {
		return jsonscan.Value{}
	}
	return at.doc.At(int(at.node))
}

// LastOf returns the last value of a place that spans several, else the value at the place. For the packages of this
// module.
func LastOf(at Ref) jsonscan.Value {
	if at.doc == nil {
		return jsonscan.Value{}
	}
	return at.doc.At(int(max(at.node, at.last)))
}
