// SPDX-License-Identifier: Apache-2.0

package embeddings

import (
	"encoding/json"
	"iter"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Request is a request for the vectors of its inputs. A built request needs Model and either Texts, Tokens or the field
// messages.
//
// Strings and raw JSON of a decoded request are views of its body. Callers may change fields; AppendJSON writes the
// differences. A Request is not safe for concurrent use by multiple goroutines.
type Request struct {
	Model string

	// The inputs: texts or token IDs. They are written as a list, but a single input of a request that was decoded without
	// a list is written without one.
	Texts  []string
	Tokens [][]uint32

	one   bool // the decoded input is not in a list
	doc   *jsonscan.Doc
	edits []member
	at    map[string]int // index in edits, by name
}

// member is a field of a request and its value; nil removes the field.
type member struct {
	name  string
	value []byte
}

// Field returns the raw JSON of a field of the request other than model and input, or nil if absent. [Decode] checks
// the types of these:
//
//	dimensions              numbers per vector
//	encoding_format         float or base64
//	user                    the end user
//	messages                a conversation in the form of the Chat API, in place of inputs (vLLM)
//	truncate_prompt_tokens  maximum tokens per input; -1: the limit of the model (engines)
//	add_special_tokens      whether to add special tokens (engines)
//	normalize               whether to scale vectors to length 1 (engines)
//	priority                an integer (engines)
func (r *Request) Field(name string) []byte {
	if i, ok := r.at[name]; ok {
		return r.edits[i].value
	}
	if r.doc == nil || name == "model" || name == "input" {
		return nil
	}
	return r.doc.Root().Get(name).Raw()
}

// Fields returns an iterator over the names and the raw JSON of the fields of the decoded body, without edits, in their
// order. There are none in a request that was built.
func (r *Request) Fields() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if r.doc == nil {
			return
		}
		root := r.doc.Root()
		for v := root.First(); v.Exists(); v = root.Next(v) {
			if !yield(v.Key(), v.Raw()) {
				return
			}
		}
	}
}

// Set sets a field of the request other than model and input, which are Go fields, to raw JSON; nil removes it. It
// panics if name is one of these two.
func (r *Request) Set(name string, raw []byte) {
	if name == "model" || name == "input" {
		panic("embeddings: Set of " + name + ", which is a field of Request")
	}
	if i, ok := r.at[name]; ok {
		r.edits[i].value = raw
		return
	}
	if r.at == nil {
		r.at = map[string]int{}
	}
	r.at[name] = len(r.edits)
	r.edits = append(r.edits, member{name, raw})
}

// Len returns the number of inputs; a conversation is one input.
func (r *Request) Len() int {
	if m := r.Field("messages"); m != nil && string(m) != "null" {
		return 1
	}
	return len(r.Texts) + len(r.Tokens)
}

// Base64 reports whether the response must have vectors as little-endian 32-bit floats in base64, not as lists of numbers.
func (r *Request) Base64() bool {
	var format string
	return json.Unmarshal(r.Field("encoding_format"), &format) == nil && format == "base64"
}

// bounds returns the limits with this package's defaults; body is the default size of the body in bytes.
func bounds(l *block.Limits, body int) (scan jsonscan.Limits, inputs int) {
	if l == nil {
		l = &block.Limits{}
	}
	or := func(n, def int) int {
		if n > 0 {
			return n
		}
		return def
	}
	return jsonscan.Limits{Bytes: or(l.Body, body), Depth: or(l.Depth, 128), Values: or(l.Values, 4<<20)}, or(l.Blocks, 2048)
}
