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

// Schema types the arguments of a call by the JSON Schema of its tool. Only the parser implements it.
type Schema interface {
	// AppendValue appends the argument called key as JSON. raw is its text as the model wrote it, without quotes. The
	// types that the schema permits determine whether raw is a string, JSON or a Python literal; an undeclared argument
	// is a string. dst and raw must not overlap.
	AppendValue(dst, key, raw []byte) []byte
}

// Decoder converts streamed arguments, as a model writes them, to one JSON object.
//
// Output is final: the concatenation of all output is the object, byte for byte. Strings should be output as they
// arrive; a value whose type is known only at its end may be held until then.
type Decoder interface {
	// Begin prepares for the arguments of the next call. schema is the tool's schema. It is empty if the tool is
	// unknown, and may be nil, which means the same.
	Begin(schema Schema)
	// Append reads src and appends the resulting JSON to dst, as far as it is certain. It returns the extended dst, the
	// number of consumed bytes of src, and its status. Bytes that are not consumed are passed again at the beginning of
	// the next src, followed by more. The Decoder must finally consume all bytes, must not need more than the grammar's
	// MaxHold bytes to decide inside a string, and must examine each byte a bounded number of times, regardless of how
	// src is split. final specifies that nothing follows src. It must not keep src or dst.
	Append(dst, src []byte, final bool) (out []byte, n int, st Status)
}

// Passing is a Decoder that can tell when it only copies: most chunks of a long string are then not shown to it. It is
// optional.
type Passing interface {
	Decoder
	// Passes returns nil or, if the decoder is inside a string and has consumed all bytes, the set of bytes that may
	// end the string or have a meaning in it. A chunk that contains none of them and ends with a complete character is
	// then output unchanged, except that characters are escaped as in JSON, and does not change the decoder. The table
	// must not be modified afterwards.
	Passes() *[256]bool
}

// Holding is a Decoder that keeps a value until its end. It is optional.
type Holding interface {
	Decoder
	// Hold limits the bytes that the decoder holds; if they exceed max, Append returns Limit. Hold is called once,
	// before Begin.
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
