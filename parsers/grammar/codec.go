// SPDX-License-Identifier: Apache-2.0

package grammar

// Codec is a syntax for the arguments of a call. The package codec has those that the known families use; a value of
// a type of your own in [Body.Codec] adds one.
//
// A Codec is immutable and safe for concurrent use; its decoders are not.
type Codec interface {
	// NewDecoder returns a decoder for one parser, which uses it for one call after the other.
	NewDecoder() Decoder
}

// Schema types the arguments of a call by the JSON Schema of its tool. The parser makes it; there are no others.
type Schema interface {
	// AppendValue appends the argument called key as JSON. raw is its text as the model wrote it, without quotes. What the
	// schema permits decides between a string and JSON or a Python literal; an argument that it does not declare is a
	// string. dst and raw must not overlap.
	AppendValue(dst, key, raw []byte) []byte
}

// Decoder turns arguments, as a model writes them, into one JSON object, while they stream in.
//
// What it appends must be right for good: the concatenation of all output is the object, byte for byte. Strings should
// leave as they come; a value whose type is not known before its end may be kept until then.
type Decoder interface {
	// Begin prepares for the arguments of the next call. schema is the tool's schema; it is empty if the tool is
	// unknown. A nil Schema knows nothing either.
	Begin(schema Schema)
	// Append reads src and appends the resulting JSON to dst, as far as it is certain. It returns the extended dst, the
	// number of bytes of src that it took, and its status. Bytes it did not take are shown again at the beginning of
	// the next src, with more after them; it must take them all in the end, must not need more than the grammar's
	// MaxHold to decide inside a string, and must examine a byte only a bounded number of times, however src is cut.
	// final specifies that nothing follows src. It must not keep src or dst.
	Append(dst, src []byte, final bool) (out []byte, n int, st Status)
}

// Passing is a Decoder that can tell when it only copies: most chunks of a long string are then not shown to it. It is
// optional.
type Passing interface {
	Decoder
	// Passes returns nil, or, where the decoder is inside a string with nothing untaken, which bytes may end the string
	// or mean something in it. A chunk that holds none of them and ends with a whole character is then output
	// unchanged, except for characters that JSON escapes in a string, and does not change the decoder. The table must
	// not change any more.
	Passes() *[256]bool
}

// Holding is a Decoder that keeps a value until its end. It is optional.
type Holding interface {
	Decoder
	// Hold limits what the decoder keeps, in bytes; beyond it Decode returns Limit. It is called once, before Begin.
	Hold(max int)
}

// Status is the state of a Decoder.
type Status uint8

// The states of a Decoder.
const (
	// More means that the arguments continue.
	More Status = iota
	// Done means that they are complete. They end after the bytes taken, which do not include the call's Close.
	Done
	// Bad means that src does not follow the syntax, from the byte after those taken on.
	Bad
	// Limit means that a limit was reached, such as the depth of nesting.
	Limit
)
