// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"math"
	"strconv"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/seam"
)

// The functions of package block, with its types. See package seam.
type (
	Dialect  = seam.Dialect[block.API, block.Limits, block.Params, block.Tool, block.Turn, block.Block]
	View     = seam.View[block.Params, block.Tool, block.Turn]
	Member   = seam.Member
	LossFunc = seam.LossFunc
	Change   = seam.Change[block.Block]
	Past     = seam.Past[block.Tool, block.Turn]
)

var access = seam.Borrow[seam.Access[block.API, block.Limits, block.Params, block.Tool, block.Turn, block.Block, block.Request,
	block.Ref, block.EncodeOptions, block.Loss]]()

// Decode validates and parses a request in the API of d. The API packages' functions Decode call it.
func Decode(body []byte, d Dialect, lim *block.Limits) (*block.Request, error) {
	return access.Decode(body, d, lim)
}

// DecodeNext is Decode for the API of prev; see wire.API.DecodeNext. It reports false if prev was not decoded.
func DecodeNext(prev *block.Request, body []byte, lim *block.Limits) (*block.Request, bool, error) {
	return access.DecodeNext(prev, body, lim)
}

// Convert appends r in the API of d. If r is in that API, this is a copy with its edits; otherwise write encodes its
// view.
func Convert(dst []byte, r *block.Request, d Dialect, opt *block.EncodeOptions,
	write func(dst []byte, v *View, lose LossFunc) []byte) ([]byte, []block.Loss, error) {
	return access.Convert(dst, r, d, opt, write)
}

// DocOf returns the document of a request as last parsed, without pending edits, or nil for a built or detached one.
func DocOf(r *block.Request) *jsonscan.Doc { return access.Doc(r) }

// Pending returns the position of a value for a block, turn or tool that is read from it. The request completes it when everything
// is read.
func Pending(v jsonscan.Value) block.Ref { return access.Pending(v) }

// Extend returns a position that extends to the value last, a later sibling.
func Extend(at block.Ref, last jsonscan.Value) block.Ref { return access.Extend(at, last) }

// At returns the position of a value.
func At(v jsonscan.Value) block.Ref { return access.Ref(v) }

// ValueOf returns the value at a position. It does not exist for a block that was not read from a body.
func ValueOf(at block.Ref) jsonscan.Value { return access.Value(at) }

// ValueIn returns the value at a position in the edited document. ValueOf may return it in a document with only its turn.
func ValueIn(e *jsonscan.Edits, at block.Ref) jsonscan.Value {
	return access.Value(access.In(at, e.Doc()))
}

// LastIn is LastOf in the edited document.
func LastIn(e *jsonscan.Edits, at block.Ref) jsonscan.Value {
	return access.Last(access.In(at, e.Doc()))
}

// Parsed returns the field JSON of a block as a value, which does not exist if it is invalid.
func Parsed(b *block.Block) jsonscan.Value {
	if v := ValueOf(b.At); v.Exists() && string(v.Raw()) == string(b.JSON) { // usually the same memory
		return v
	}
	d, err := jsonscan.Scan(b.JSON, jsonscan.Limits{Bytes: math.MaxInt32, Depth: 128, Values: math.MaxInt32})
	if err != nil {
		return jsonscan.Value{}
	}
	return d.Root()
}

// LastOf returns the last value of a position that spans several, or the value at the position.
func LastOf(at block.Ref) jsonscan.Value { return access.Last(at) }

// OriginsOf returns the origins of the turns of r, nil for those that were edited. It returns nil if there are none.
func OriginsOf(r *block.Request) []*seam.Origin { return access.Origins(r) }

// FieldOf returns the value of a field of the request; see [block.Request.Field].
func FieldOf(r *block.Request, path ...string) jsonscan.Value { return access.Field(r, path) }

// ModelName returns the name by which the model knows the tool that a call names.
func ModelName(r *block.Request, namespace, name string) string {
	if namespace == "" {
		return name
	}
	if t, ok := r.Tool(namespace, name); ok {
		return t.ModelName
	}
	return name
}

// Rewrite calls record to record edits of the body that no other function can make: of fields that the view does not
// model, or of the order of tools. It first settles pending edits, and parses the edited body if record reports a
// change: positions change. For a request without a body, it returns an error of kind Unsupported.
func Rewrite(r *block.Request, record func(e *jsonscan.Edits, root jsonscan.Value) (changed bool)) error {
	return access.Rewrite(r, record)
}

// Amend applies changes, sorted by position, to a request without pending edits.
func Amend(r *block.Request, changes []Change) error { return access.Amend(r, changes) }

// Opens reports, for a block of a detached request, whether a message begins with it although the previous message
// could contain it.
func Opens(b *block.Block) bool { return access.Opens(b) }

// PatchMessage is [Lossy.Patched] for the message that begins with b.
func PatchMessage(b *block.Block, dst []byte, from int) []byte {
	return access.PatchMessage(b, dst, from)
}

// BlockMarks returns an object with the cache marks of a block as the request spells them. The value does not exist if
// the fields of the block hold all of them.
func BlockMarks(r *block.Request, t *block.Turn, b *block.Block) jsonscan.Value {
	return access.BlockMarks(r, t, b)
}

// ToolMarks is BlockMarks for a tool.
func ToolMarks(r *block.Request, t *block.Tool) jsonscan.Value { return access.ToolMarks(r, t) }

// MarkPath returns the path of a marked block or tool in the decoded body, or "" if the request had no body.
func MarkPath(r *block.Request, at block.Ref) string { return access.MarkPath(r, at) }

// CacheOf reads the object of a cache mark. It returns nil if c is not an object. A field of the wrong type is treated
// as absent; a time to live may be a number of seconds.
func CacheOf(c jsonscan.Value, a *jsonscan.Arena) *block.Cache {
	if c.Kind() != jsonscan.Object {
		return nil
	}
	var out block.Cache
	out.Type, _ = c.Get("type").Str(a)
	if mode, ok := c.Get("mode").Str(a); ok {
		out.Type = mode
	}
	ttl := c.Get("ttl")
	if n, ok := ttl.Int(); ok {
		out.TTL = strconv.FormatInt(n, 10)
	} else {
		out.TTL, _ = ttl.Str(a)
	}
	out.Scope, _ = c.Get("scope").Str(a)
	return &out
}
