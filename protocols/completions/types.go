// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"math"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
	"github.com/weft-go/weft/protocols/internal/wire"
)

// TokensType is the Type of a block that is a prompt of token ids.
const TokensType = "tokens"

// Tokens returns the block for a prompt of token ids.
func Tokens(ids []uint32) block.Block {
	return block.Block{Kind: block.Unknown, Type: TokensType, JSON: wire.TokenIDs(ids)}
}

// TokensOf returns the ids of a prompt of tokens. ok is false for any other block.
func TokensOf(b *block.Block) (ids []uint32, ok bool) {
	if b.Kind != block.Unknown || b.Type != TokensType {
		return nil, false
	}
	if len(b.JSON) == 0 { // read from a body
		return tokens(block.ValueOf(b.At))
	}
	d, err := jsonscan.Scan(b.JSON, jsonscan.Limits{Bytes: math.MaxInt32, Depth: 2, Values: math.MaxInt32})
	if err != nil {
		return nil, false
	}
	return tokens(d.Root())
}

// isTokens reports whether a block is a prompt of tokens. A part of another API may have the same type.
func isTokens(b *block.Block) bool {
	_, ok := TokensOf(b)
	return ok
}

// tokens reads a list of token ids.
func tokens(v jsonscan.Value) (ids []uint32, ok bool) {
	if v.Kind() != jsonscan.Array {
		return nil, false
	}
	ids = make([]uint32, 0, v.Len())
	for e := v.First(); e.Exists(); e = v.Next(e) {
		n, ok := e.Uint32()
		if !ok {
			return nil, false
		}
		ids = append(ids, n)
	}
	return ids, true
}

// Fields reads what only the Completions API has. Every method looks into the request when it is called. What engines add
// is in [block.Request.Engine].
type Fields struct{ r *block.Request }

// Of returns the fields of r that only this API has. On a request of another API all of them are empty.
func Of(r *block.Request) Fields {
	if r.API() != block.Completions {
		return Fields{block.New()}
	}
	return Fields{r}
}

// Prompts returns the prompts that are text, in order.
func (f Fields) Prompts() []string {
	var list []string
	for _, t := range f.r.Turns() {
		for i := range t.Blocks {
			if b := &t.Blocks[i]; b.Kind == block.Text {
				list = append(list, b.Text)
			}
		}
	}
	return list
}

// TokenPrompts returns the prompts that are token ids, in order.
func (f Fields) TokenPrompts() [][]uint32 {
	var list [][]uint32
	for _, t := range f.r.Turns() {
		for i := range t.Blocks {
			if ids, ok := TokensOf(&t.Blocks[i]); ok {
				list = append(list, ids)
			}
		}
	}
	return list
}

// TokenData returns nvext.token_data, the ids by which Dynamo's prompt comes tokenized already; nil if absent.
func (f Fields) TokenData() []uint32 {
	ids, _ := tokens(f.r.Value("nvext", "token_data"))
	return ids
}

// PromptEmbeds returns prompt_embeds (vLLM, Dynamo), a string of base64 or a list of such, as raw JSON; nil if absent.
func (f Fields) PromptEmbeds() []byte { return f.r.Field("prompt_embeds") }

// Suffix returns the text that comes after the answer, "" if absent.
func (f Fields) Suffix() string {
	s, _ := f.r.Value("suffix").Str(nil)
	return s
}

// BestOf returns how many answers to draw of which the best n are sent, 0 if absent.
func (f Fields) BestOf() int64 {
	n, _ := f.r.Value("best_of").Int()
	return n
}

// Echo reports whether the answer begins with the prompt.
func (f Fields) Echo() bool {
	b, _ := f.r.Value("echo").Bool()
	return b
}

// LogitBias returns the bias per token id, as the body spells the ids; nil if absent.
func (f Fields) LogitBias() map[string]float64 { return f.r.LogitBias() }

// NvExt returns Dynamo's nvext as raw JSON, nil if absent.
func (f Fields) NvExt() []byte { return f.r.Field("nvext") }
