// SPDX-License-Identifier: Apache-2.0

package cache

import "math/bits"

// trie is a crit-bit tree over the texts of a node's children: an inner vertex specifies the first bit in which the
// texts below it differ, so a text is compared with only one child, regardless of their number. Vertices are immutable;
// a change copies the path to it. A nil *trie has no children.
//
// The symbol of a text at an index is its byte with notEnd set, or 0 beyond its end. So a text that is a prefix of
// another one is on the zero side of an inner vertex that tests notEnd.
type trie struct {
	at   int      // index of the symbol, -1 in a leaf
	bit  uint16   // the highest bit of the symbol that differs
	side [2]*trie // by that bit; not nil in an inner vertex
	same []*node  // a leaf: children with one text and different provenance, at least one
}

const notEnd = 0x100

func symbol(s string, i int) uint16 {
	if i < len(s) {
		return notEnd | uint16(s[i])
	}
	return 0
}

func (t *trie) pick(sym uint16) int {
	if sym&t.bit != 0 {
		return 1
	}
	return 0
}

// nearest returns the leaf at the end of a text's path.
func (t *trie) nearest(s string) *trie {
	for t.at >= 0 {
		t = t.side[t.pick(symbol(s, t.at))]
	}
	return t
}

// with returns the tree with n in it.
func (t *trie) with(n *node) *trie {
	if t == nil {
		return &trie{at: -1, same: []*node{n}}
	}
	have := t.nearest(n.text).same[0].text
	at := common(have, n.text)
	a, b := symbol(have, at), symbol(n.text, at)
	if a == b { // both end
		return t.edit(n.text, func(same []*node) []*node { return append(same[:len(same):len(same)], n) })
	}
	return t.insert(n, at, 1<<(bits.Len16(a^b)-1))
}

// insert puts a new inner vertex above the first vertex on n's path that tests a later bit.
func (t *trie) insert(n *node, at int, bit uint16) *trie {
	if t.at < 0 || t.at > at || t.at == at && t.bit < bit {
		v := &trie{at: at, bit: bit}
		k := v.pick(symbol(n.text, at))
		v.side[k], v.side[1-k] = &trie{at: -1, same: []*node{n}}, t
		return v
	}
	v := *t
	k := t.pick(symbol(n.text, t.at))
	v.side[k] = t.side[k].insert(n, at, bit)
	return &v
}

// without returns the tree without n, which may be absent.
func (t *trie) without(n *node) *trie {
	if t == nil {
		return nil
	}
	return t.edit(n.text, func(same []*node) []*node {
		var rest []*node
		for _, x := range same {
			if x != n {
				rest = append(rest, x)
			}
		}
		return rest
	})
}

// edit returns the tree with another list in the leaf of text. An empty list removes the leaf.
func (t *trie) edit(text string, f func([]*node) []*node) *trie {
	if t.at < 0 {
		same := f(t.same)
		if len(same) == 0 {
			return nil
		}
		return &trie{at: -1, same: same}
	}
	k := t.pick(symbol(text, t.at))
	s := t.side[k].edit(text, f)
	if s == nil {
		return t.side[1-k]
	}
	v := *t
	v.side[k] = s
	return &v
}

// each calls f for all children.
func (t *trie) each(f func(*node)) {
	switch {
	case t == nil:
	case t.at < 0:
		for _, n := range t.same {
			f(n)
		}
	default:
		t.side[0].each(f)
		t.side[1].each(f)
	}
}

// common returns the length of the longest common prefix.
func common(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for _, step := range [...]int{4096, 64} {
		for i+step <= n && a[i:i+step] == b[i:i+step] {
			i += step
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
