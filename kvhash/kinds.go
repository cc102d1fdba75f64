// SPDX-License-Identifier: Apache-2.0

package kvhash

import "math/bits"

// Kind says what a part of a prompt is, in the order of how long its tokens stay as they are: what an agent sends with every request
// first, what the next request will not repeat last.
type Kind uint8

// The kinds.
const (
	None      Kind = iota // text of the template between the parts, unknown
	System                // system and developer messages: the same in many conversations
	Tools                 // tool definitions: the same in many conversations, but they change with an agent's settings
	History               // earlier turns: the same in later requests of this conversation
	Reasoning             // thinking: most templates drop it when the next turn of the user begins
	Tail                  // what only this request has: reminders, the generation prompt
)

var kindNames = [...]string{"none", "system", "tools", "history", "reasoning", "tail"}

// String returns the name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Span says that the tokens [From, To) of a prompt are of a kind.
type Span struct {
	Kind     Kind
	From, To int
}

// Kinds is the set of the kinds that have tokens in a block.
type Kinds uint8

// Has reports whether k has a token in the block.
func (s Kinds) Has(k Kind) bool { return s>>k&1 != 0 }

// Kind returns what to treat the block as: the kind that changes soonest of those in it, None if it has none. A block can be used again
// only if every token in it is the same, so it lives no longer than its most volatile part: to keep it as long as its most
// valuable part is wanted, the end of a system prompt say, would hold memory that no request can hit. Blocks behind a
// volatile one share its fate too, as their hashes cover it; that is for the one who keeps them to follow.
func (s Kinds) Kind() Kind {
	return Kind(max(0, bits.Len8(uint8(s&^1))-1))
}

// AppendKinds appends the kinds in each of the first n blocks of a prompt to dst and returns it. spans may overlap, as parts share a token
// on their border; what lies outside of the blocks is ignored, and so are kinds that are not listed here. With Eagle the token behind a
// block is not counted to it, though its hash covers it. O(spans + n) if spans are in order of From, no allocation if dst has room. It
// panics if block is not positive.
func AppendKinds(dst []Kinds, spans []Span, block, n int) []Kinds {
	checkBlock(block)
	start := len(dst)
	for range n {
		dst = append(dst, 0)
	}
	out := dst[start:]
	var done [len(kindNames)]int // blocks before this one have the kind, or no span further on gives it to them
	last := 0
	for _, s := range spans {
		if int(s.Kind) >= len(done) || s.To <= max(s.From, 0) {
			continue
		}
		from := max(s.From, 0)
		if from < last {
			clear(done[:])
		}
		last = from
		first, end := max(from/block, done[s.Kind]), min((s.To-1)/block+1, n)
		for i := first; i < end; i++ {
			out[i] |= 1 << s.Kind
		}
		done[s.Kind] = max(done[s.Kind], end)
	}
	return dst
}
