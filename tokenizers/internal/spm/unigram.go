// SPDX-License-Identifier: Apache-2.0

package spm

import "slices"

// node is the best path to a position in the text.
type node struct {
	score float32
	id    uint32
	from  int32 // where its last piece begins, -1 while no path leads here
}

// penalty is the difference between the scores of the worst piece and an unknown character.
const penalty = 10

// unigram encodes a text as the sequence of pieces with the highest sum of scores.
//
// User pieces have a score by length, which other pieces can exceed. This is the rule of SentencePiece 0.2.3; up to 0.2.1
// their score is -0.1, if no other piece has a score above zero.
//
// The result depends on the rounding of sums to float32, so a text must not be cut into parts before.
func (e *encoder) unigram(s string) {
	m, st := e.m, e.st
	if cap(st.path) < len(s)+1 {
		st.path = make([]node, max(len(s)+1, 64))
	}
	path := st.path[:len(s)+1]
	for k := range path {
		path[k] = node{from: -1}
	}
	unknown := m.worst - penalty
	for at := 0; at < len(s); {
		till := path[at].score
		size := charLen(s[at:])
		single := false
		n := m.trie.Root()
		for k := at; k < len(s); {
			var ok bool
			if n, ok = m.trie.Step(n, s[k]); !ok {
				break
			}
			k++
			id, ok := n.ID()
			if !ok || m.types[id] == Unused {
				continue
			}
			score := m.scores[id]
			if m.types[id] == User {
				score = float32(float64(k-at)*0.1 - 0.1)
			}
			if p := &path[k]; p.from < 0 || score+till > p.score {
				*p = node{score + till, id, int32(at)}
			}
			single = single || k-at == size
		}
		if !single {
			if p := &path[at+size]; p.from < 0 || unknown+till > p.score {
				*p = node{unknown + till, m.unk, int32(at)}
			}
		}
		at += size
	}
	st.ends = st.ends[:0]
	for at := int32(len(s)); at > 0; at = path[at].from {
		st.ends = append(st.ends, at)
	}
	slices.Reverse(st.ends)
	for _, end := range st.ends {
		e.add(s[path[end].from:end], path[end].id)
	}
}
