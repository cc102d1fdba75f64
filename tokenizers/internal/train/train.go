// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"

	"github.com/weft-go/weft/tokenizers/internal/pretok"
)

// piece is a distinct pre-token of the corpus.
type piece struct {
	ids   []int
	count int
}

// merge joins the tokens with these ids.
type merge struct{ a, b int }

// train learns merges from text until the vocabulary has size tokens or no pair appears twice. The first
// 256 tokens are the bytes. Of pairs that are equally frequent the one with the smaller ids wins, so the
// result depends on the text alone.
func train(text string, size int) (vocab []string, merges []merge) {
	for b := range 256 {
		vocab = append(vocab, string([]byte{byte(b)}))
	}
	counts := map[string]int{}
	for i := 0; i < len(text); {
		j := pretok.Qwen2(text, i)
		counts[text[i:j]]++
		i = j
	}
	var pieces []piece
	for s, n := range counts {
		p := piece{count: n}
		for k := range len(s) {
			p.ids = append(p.ids, int(s[k]))
		}
		pieces = append(pieces, p)
	}
	seen := map[string]bool{}
	for _, v := range vocab {
		seen[v] = true
	}
	pairs := map[merge]int{}
	count := func(p *piece, sign int) {
		for k := 1; k < len(p.ids); k++ {
			m := merge{p.ids[k-1], p.ids[k]}
			if pairs[m] += sign * p.count; pairs[m] == 0 {
				delete(pairs, m)
			}
		}
	}
	for i := range pieces {
		count(&pieces[i], 1)
	}
	for len(vocab) < size {
		best, most := merge{}, 1
		for m, n := range pairs {
			if n > most || n == most && most > 1 && compare(m, best) < 0 {
				best, most = m, n
			}
		}
		if most < 2 {
			break
		}
		id := len(vocab)
		joined := vocab[best.a] + vocab[best.b]
		if seen[joined] {
			// Two ways to the same bytes: keep the first token and let the second pair make it too.
			id = slices.Index(vocab, joined)
		} else {
			seen[joined] = true
			vocab = append(vocab, joined)
		}
		merges = append(merges, best)
		for i := range pieces {
			if p := &pieces[i]; p.has(best) {
				count(p, -1)
				p.ids = apply(p.ids, best, id)
				count(p, 1)
			}
		}
	}
	return vocab, merges
}

func (p *piece) has(m merge) bool {
	for k := 1; k < len(p.ids); k++ {
		if p.ids[k-1] == m.a && p.ids[k] == m.b {
			return true
		}
	}
	return false
}

func compare(x, y merge) int {
	return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
}

// apply replaces every occurrence of m by id, from the left.
func apply(ids []int, m merge, id int) []int {
	out := ids[:0]
	for k := 0; k < len(ids); k++ {
		if k+1 < len(ids) && ids[k] == m.a && ids[k+1] == m.b {
			out = append(out, id)
			k++
			continue
		}
		out = append(out, ids[k])
	}
	return out
}
