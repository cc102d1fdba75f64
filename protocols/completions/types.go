// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/codec"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// tokensType is the Type of a block that is a prompt of token IDs.
const tokensType = "tokens"

// Tokens returns a block with a prompt of token IDs.
func Tokens(ids []uint32) block.Block {
	return block.Block{Kind: block.Unknown, Type: tokensType, JSON: codec.TokenIDs(ids)}
}

// TokenIDs returns the IDs in a block that is a prompt of token IDs. ok is false for any other block.
func TokenIDs(b *block.Block) (ids []uint32, ok bool) {
	if b.Kind != block.Unknown || b.Type != tokensType {
		return nil, false
	}
	return tokens(codec.Parsed(b))
}

// isTokens reports whether a block is a prompt of token IDs. A part of another API may have the same type.
func isTokens(b *block.Block) bool {
	_, ok := TokenIDs(b)
	return ok
}

// tokens reads an array of token IDs.
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
