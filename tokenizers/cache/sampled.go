// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers"
)

// Sampled returns a prefix of segs with ids that an engine sampled. Now and then, a model writes a text as other ids than the
// tokenizer, and the engine's cache has the model's. To continue with the prefix, pass it to [Cache.AppendEncodeAfter] as the
// last known one. No other call finds it, and it keeps its text and ids in memory.
//
// known, same, ns and text have their meaning in AppendEncodeAfter. sampled and encoded are ids after the last known prefix: the
// engine's, and the result of AppendEncodeAfter for segs. The prefix has as many of sampled as possible, provided that
//
//   - each has the bytes of the text at its position, and together they decode to it,
//   - the last one ends where an id of encoded ends, and
//   - both lists have the same added tokens at the same positions.
//
// Ids of encoded follow, up to a position where the text can be split. ids are the prefix's ids after the last known one. ok
// is false if there is no such prefix, or if no id would differ from encoded.
func (c *Cache) Sampled(known []Prefix, same int, ns, text string, segs []tokenizers.Segment, sampled, encoded []uint32) (p Prefix, ids []uint32, ok bool) {
	if c.Err() != nil {
		return Prefix{}, nil, false
	}
	e := c.encoders.Get().(*encoder)
	defer c.release(e)
	at, before := newCursor(segs), 0
	if k := len(known); k > 0 {
		before = known[k-1].Bytes
	}
	if before > at.left {
		return Prefix{}, nil, false
	}
	e.joined = text
	e.joined = e.rest(at) // joins the segments if the caller does not have the text
	own, rest, end := c.splice(e.joined[before:], sampled, encoded)
	if own == 0 {
		return Prefix{}, nil, false
	}
	from := prefixEnd{n: c.root(ns, true), at: at, baseAt: at}
	from.follow(known, same, ns)
	if from.n.bytes != before {
		return Prefix{}, nil, false
	}
	e.begin(from.at, 0, e.rest(from.at))
	cut, kind := c.split.Next(e.text, end, e.untrusted)
	ids = append(ids, sampled[:own]...)
	for end < cut && rest < len(encoded) && c.spelled(e.text[end:cut], encoded[rest]) > 0 {
		ids, end, rest = append(ids, encoded[rest]), end+c.spelled(e.text[end:cut], encoded[rest]), rest+1
	}
	// A decoder may change a token next to others.
	if kind == 0 || end != cut || string(c.tok.AppendDecode(nil, ids, false)) != e.text[:cut] {
		return Prefix{}, nil, false
	}
	n := c.node(e, from.n, 0, cut, kind, ids)
	n.base = n
	n.kill() // it is not in the tree, so its children must not be
	return Prefix{Bytes: n.bytes, Tokens: n.tokens, n: n}, ids, true
}

// splice returns how many of the sampled ids replace how many of the encoded ones, and the length of their text. It returns
// zeros if none of them differ.
func (c *Cache) splice(text string, sampled, encoded []uint32) (own, rest, end int) {
	i, j := 0, 0 // ids of both that were read
	x, y := 0, 0 // lengths of their texts
	for differs := false; ; {
		n := 0
		switch {
		case x == y && i < len(sampled) && j < len(encoded) && sampled[i] == encoded[j]:
			n = c.spelled(text[x:], sampled[i])
			i, j, x, y = i+1, j+1, x+n, y+n
		case x <= y && i < len(sampled) && !c.added[sampled[i]]:
			n = c.spelled(text[x:], sampled[i])
			i, x, differs = i+1, x+n, true
		case x > y && j < len(encoded) && !c.added[encoded[j]]:
			n = c.spelled(text[y:], encoded[j])
			j, y = j+1, y+n
		}
		if n == 0 {
			return own, rest, end
		}
		if differs && x == y && (x == len(text) || utf8.RuneStart(text[x])) {
			own, rest, end = i, j, x
		}
	}
}

// spelled returns the number of bytes of id if text begins with them, otherwise 0.
func (c *Cache) spelled(text string, id uint32) int {
	var buf [64]byte
	b := c.tok.AppendToken(buf[:0], id)
	if !strings.HasPrefix(text, string(b)) {
		return 0
	}
	return len(b)
}
