// SPDX-License-Identifier: Apache-2.0

package embeddings

import (
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Format is how vectors stand in an answer.
type Format string

// The formats. A request that names none wants Float.
const (
	Float  Format = "float"  // a list of numbers
	Base64 Format = "base64" // little-endian 32-bit floats, in base64
)

// Request asks for the vectors of some inputs. A built one needs Model and one of Texts, Tokens and Messages.
//
// Strings and raw JSON of a decoded request are views of its body. Fields may be changed; AppendJSON writes what differs.
// One goroutine at a time.
type Request struct {
	Model string

	// The inputs: texts or token ids. One says that the body has a single input that is not in a list.
	Texts  []string
	Tokens [][]uint32
	One    bool
	// Messages is a conversation in the form of the Chat API, as raw JSON, in place of inputs (vLLM).
	Messages []byte

	Dimensions     *int64 // numbers per vector; nil: all that the model has
	EncodingFormat Format // as written; "" is Float
	User           string // the end user, for abuse detection

	// Engines.
	TruncatePromptTokens *int64 // keep so many tokens of each input; -1: as many as the model takes
	AddSpecialTokens     *bool
	Normalize            *bool // scale vectors to length 1
	Priority             *int64

	// Extra is all other members, in order.
	Extra []Member

	doc *jsonscan.Doc
}

// Member is a member of an object: its name and its value as raw JSON.
type Member struct {
	Key   string
	Value []byte
}

// Len returns the number of inputs; a conversation is one.
func (r *Request) Len() int {
	if r.Messages != nil {
		return 1
	}
	return len(r.Texts) + len(r.Tokens)
}

// Format returns the format in which the answer is to be: Base64 if it was asked for, else Float.
func (r *Request) Format() Format {
	if r.EncodingFormat == Base64 {
		return Base64
	}
	return Float
}

// Body returns the body as it was decoded, nil for a built request. It must not be changed.
func (r *Request) Body() []byte {
	if r.doc == nil {
		return nil
	}
	return r.doc.Body()
}

// Field returns the raw JSON at a path of member names in the body as it was decoded, nil if there is none.
func (r *Request) Field(path ...string) []byte {
	if r.doc == nil {
		return nil
	}
	v := r.doc.Root()
	for _, p := range path {
		v = v.Get(p)
	}
	return v.Raw()
}

// Limits bounds what is accepted from outside. 0 means the default; a nil *Limits is all defaults.
type Limits struct {
	Body   int // bytes; 64 MiB. Of an answer 1 GiB
	Inputs int // inputs of a request; 2,048, as OpenAI has it
	Values int // JSON values, each token id being one; 4,194,304. Numbers of vectors are not counted
}

func (l *Limits) scan(body int) jsonscan.Limits {
	s := jsonscan.Limits{Bytes: body, Depth: 128, Values: 4 << 20}
	if l != nil && l.Body > 0 {
		s.Bytes = l.Body
	}
	if l != nil && l.Values > 0 {
		s.Values = l.Values
	}
	return s
}

func (l *Limits) inputs() int {
	if l != nil && l.Inputs > 0 {
		return l.Inputs
	}
	return 2048
}
