// SPDX-License-Identifier: Apache-2.0

package seam

import (
	"sync/atomic"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// LossFunc records a loss of a conversion; path is in the source request.
type LossFunc = func(path, why string)

// The values of block's type Form. They combine.
const (
	FormMember    = 1 << iota // a separate field: system, instructions, an input that is a string
	FormString                // the content is a string
	FormList                  // the content is an array
	FormReasoning             // Chat: past reasoning is in the field reasoning, not in reasoning_content
)

// View contains the parts of a request that package block models.
type View[Params, Tool, Turn any] struct {
	Params Params
	Turns  []Turn
	Tools  []Tool
	Decoding
}

// Decoding records what reading a view did.
type Decoding struct {
	Blocks  []int32   // number of blocks that were counted toward the limit up to the end of each turn
	Memory  int       // bytes of memory for unescaped strings that the view may refer to, besides the body
	Origins []*Origin // of the turns; see Origin
	Shared  int       // number of turns at the beginning that an earlier request has, too
	Moved   []int32   // numbers of the turns that were taken over, but do not have the blocks of an earlier request
}

// An Origin identifies the contents of a turn as they were read from a body: a turn that a later request takes over has
// the same Origin. Packages store in it what they derive from the turn alone, for that later request. It must not refer
// to the memory of a request. An edited turn has none. It is safe for concurrent use.
type Origin struct {
	Unmarked atomic.Bool  // the turn has no cache marks, and no faults in them
	Intact   atomic.Value // *replay.Signer: verifies all reasoning of the turn and need not restore any
	Pieces   atomic.Value // of package preamble
}

// Past is an earlier request of the same API, of whose body the document has copies.
type Past[Tool, Turn any] struct {
	Copies *jsonscan.Copies
	Turns  []Turn
	Tools  []Tool
	Decoding
	Edited bool // the document is an edited body of the same request, whose blocks get other positions
}

// Member is a top-level field of a request body.
type Member struct {
	Key   string
	Also  string // alternative name, used if the body uses it
	Value []byte // JSON
}

// Dialect reads, edits and writes requests of one API.
//
// Set, Insert, Delete, InsertTurn and DeleteTurn record edits of the body. exact reports whether a view with the same
// change equals the result of parsing the edited body; otherwise the request parses it again.
type Dialect[API, Limits, Params, Tool, Turn, Block any] interface {
	API() API
	// Read reads the view from a validated body. past, which may be nil, only saves work.
	Read(root jsonscan.Value, lim Limits, past *Past[Tool, Turn]) (View[Params, Tool, Turn], error)
	// Members returns the top-level fields for p, without messages and tools.
	Members(p *Params, tools []Tool, lose LossFunc) []Member
	// AppendTool appends the declaration of a tool, or nothing if the API cannot express it.
	AppendTool(dst []byte, t *Tool, lose LossFunc) []byte

	// The next four encode detached requests of this API.

	// AppendBlock appends the JSON value of a block, or nothing if the API cannot express it.
	AppendBlock(dst []byte, t *Turn, b *Block) []byte
	// AppendTurn appends the messages or items of a turn, separated by commas, or, with FormMember, its content.
	AppendTurn(dst []byte, t *Turn) []byte
	// TurnMember returns the name of the field that contains a turn with FormMember, or "" for other turns.
	TurnMember(t *Turn) string
	// ListMember returns the name of the field with the messages or items.
	ListMember() string

	Set(e *jsonscan.Edits, t *Turn, old, b *Block) (exact bool, err error)
	// Insert inserts blocks before t.Blocks[at], or before holder.Content[at] if holder is not nil.
	Insert(e *jsonscan.Edits, t *Turn, holder *Block, at int, list []Block) error
	Delete(e *jsonscan.Edits, t *Turn, holder *Block, at int) (exact bool, err error)
	InsertTurn(e *jsonscan.Edits, turns []Turn, at int, t *Turn) error
	DeleteTurn(e *jsonscan.Edits, t *Turn) (exact bool, err error)
}

// Change replaces or removes one block of a turn; see [Access.Amend].
type Change[Block any] struct {
	Turn, Block int
	To          Block
	Drop        bool
	Kept        bool // set by Amend: the API cannot express To at this position, and the block is unchanged
}

// Access contains the functions that package block provides.
type Access[API, Limits, Params, Tool, Turn, Block, Request, Ref, EncodeOptions, Loss any] struct {
	// Decode validates and parses body. The request takes ownership of it.
	Decode func(body []byte, d Dialect[API, Limits, Params, Tool, Turn, Block], lim *Limits) (*Request, error)
	// DecodeNext is Decode for the API of prev. It takes over what both bodies have in common. It reports false if prev
	// was not decoded.
	DecodeNext func(prev *Request, body []byte, lim *Limits) (*Request, bool, error)
	// MoveTurn returns a turn of an earlier request as a turn of the document now, and whether it has the same blocks. With
	// apart, they are always others. MoveTool does the same for a tool.
	MoveTurn func(t *Turn, now *jsonscan.Doc, c *jsonscan.Copy, apart bool) (moved Turn, same bool)
	MoveTool func(t *Tool, now *jsonscan.Doc, c *jsonscan.Copy) Tool
	// Convert appends r in the API of d. If r is in that API, this is a copy with its edits; otherwise write encodes
	// its view.
	Convert func(dst []byte, r *Request, d Dialect[API, Limits, Params, Tool, Turn, Block], opt *EncodeOptions,
		write func(dst []byte, v *View[Params, Tool, Turn], lose LossFunc) []byte) ([]byte, []Loss, error)

	// Doc returns the document of a request as last parsed, without pending edits, or nil for a built or detached one.
	Doc func(r *Request) *jsonscan.Doc
	// Pending returns the position of a value for what is read from it, which has no document until the request has one.
	Pending func(v jsonscan.Value) Ref
	// Extend returns a position that extends to the value last.
	Extend func(at Ref, last jsonscan.Value) Ref
	// Ref returns the position of v.
	Ref func(v jsonscan.Value) Ref
	// Value returns the value at a position. It does not exist for a block that was not read from a body.
	Value func(at Ref) jsonscan.Value
	// In returns the position in the whole document of a position that may be in a part of it.
	In func(at Ref, doc *jsonscan.Doc) Ref
	// Last returns the last value of a position that spans several, or the value at the position.
	Last func(at Ref) jsonscan.Value

	// Origins returns the origins of the request's turns, nil for those that were edited. It returns nil if there are none.
	Origins func(r *Request) []*Origin

	// Field is like the method Field of a request, but returns the value instead of its bytes.
	Field func(r *Request, path []string) jsonscan.Value
	// Rewrite calls record to record edits of the body that no other method can make: of fields that the view does not
	// model, or of the order of tools. It first settles pending edits, and parses the edited body if record reports a
	// change: positions change. For a request without a body, it returns an error of kind Unsupported.
	Rewrite func(r *Request, record func(e *jsonscan.Edits, root jsonscan.Value) (changed bool)) error
	// Amend applies changes, sorted by position, to a request without pending edits.
	Amend func(r *Request, changes []Change[Block]) error

	// For blocks of a detached request.

	// Opens reports whether a message begins with this block although the previous message could contain it.
	Opens func(b *Block) bool
	// Patch adds the parts of b that its fields do not hold to dst[from:], an encoding of b in its own API.
	Patch func(b *Block, dst []byte, from int) []byte
	// PatchMessage is Patch for the message that begins with this block.
	PatchMessage func(b *Block, dst []byte, from int) []byte

	// BlockMarks returns an object with the cache marks of a block as the request spells them. The value does not exist
	// if the fields of the block hold all of them. ToolMarks does that for a tool.
	BlockMarks func(r *Request, t *Turn, b *Block) jsonscan.Value
	ToolMarks  func(r *Request, t *Tool) jsonscan.Value
	// MarkPath returns the path of a marked block or tool in the decoded body, or "" if the request had no body.
	MarkPath func(r *Request, at Ref) string
}

var lent any

// Lend is called by package block during initialization.
func Lend(access any) { lent = access }

// Borrow returns the value passed to Lend. A is an instance of [Access].
func Borrow[A any]() A { return lent.(A) }
