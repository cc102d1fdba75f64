// SPDX-License-Identifier: Apache-2.0

package spm

import (
	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// symbol is a part of a text during merging: s[from:to], empty if it was merged into another.
type symbol struct {
	from, to   int32
	prev, next int32 // -1 at the ends
	id         uint32
	frozen     bool
}

// candidate is a possible merge of two adjacent symbols.
type candidate struct {
	score       float32
	left, right int32
	size        int32 // of the result, in bytes
	id          uint32
}

// before is the order of merges: by score, then by position.
func (a *candidate) before(b *candidate) bool {
	return a.score > b.score || a.score == b.score && a.left < b.left
}

// findBorders records which pairs of characters are inside a piece. A merge joins two symbols into a piece, so none
// crosses a border between two characters that no piece has next to each other, and the text can be cut there: which
// merges are possible on one side and their order do not depend on the other side.
func (m *Model) findBorders() {
	m.borders = bpe.NewBorders()
	for id := range uint32(m.pieces.Len()) {
		s := view(m.pieces.Bytes(id))
		last := rune(-1)
		for _, r := range s {
			if last >= 0 {
				m.borders.Join(last, r)
			}
			last = r
		}
	}
}

// bpe encodes s[i:].
func (e *encoder) bpe(s string, i int) {
	m, st := e.m, e.st
	if m.unused {
		e.merge(s[i:])
		return
	}
	if !st.words.Serves(&m.own) {
		st.words.Bind(&m.own)
	}
	for i < len(s) {
		// User pieces are never merged.
		if n, user := m.symbol(s[i:]); user {
			e.add(s[i:i+n], m.id(s[i:i+n]))
			i += n
			continue
		}
		end := e.plain(s, i)
		for i < end {
			k := m.borders.Next(s, i, end)
			e.part(s, i, k)
			i = k
		}
	}
}

// plain returns the position of the next user piece after i, or len(s). s[i] does not begin one.
func (e *encoder) plain(s string, i int) int {
	user := e.m.user
	if user.trie == nil {
		return len(s)
	}
	for i++; i < len(s); i++ { // no piece begins inside a character
		if user.begins[s[i]] && user.longest(s[i:]) > 0 {
			break
		}
	}
	return i
}

// part encodes s[i:j], which no merge leaves.
func (e *encoder) part(s string, i, j int) {
	st := e.st
	if e.track || j-i > words.MaxLen {
		e.merge(s[i:j])
		return
	}
	dst, lo, hi, ok := st.words.Append(e.dst, s, i, j)
	if ok {
		// An unknown piece at the end of dst and one at the start of the part are one.
		if n := len(e.dst); n > e.start && dst[n] == e.m.unk && dst[n-1] == e.m.unk && !e.m.fall {
			copy(dst[n:], dst[n+1:])
			dst = dst[:len(dst)-1]
		}
		e.dst = dst
		return
	}
	start := e.start
	n := len(e.dst)
	e.start = n // do not look at what precedes the part
	e.merge(s[i:j])
	e.start = start
	st.words.Put(lo, hi, e.dst[n:])
	if n > start && len(e.dst) > n && e.dst[n] == e.m.unk && e.dst[n-1] == e.m.unk && !e.m.fall {
		copy(e.dst[n:], e.dst[n+1:])
		e.dst = e.dst[:len(e.dst)-1]
	}
}

// merge encodes s without caches: it begins with characters and user pieces, and merges the two adjacent symbols whose
// text is the piece with the highest score, of equal ones the leftmost, as long as there are any.
func (e *encoder) merge(s string) {
	m, st := e.m, e.st
	if charLen(s) == len(s) {
		e.add(s, m.id(s))
		return
	}
	st.symbols, st.agenda = st.symbols[:0], st.agenda[:0]
	clear(st.split)
	for i := 0; i < len(s); {
		n, user := m.symbol(s[i:])
		k := int32(len(st.symbols))
		st.symbols = append(st.symbols, symbol{from: int32(i), to: int32(i + n), prev: k - 1, next: k + 1, id: m.id(s[i : i+n]), frozen: user})
		i += n
	}
	st.symbols[len(st.symbols)-1].next = -1
	for k := 1; k < len(st.symbols); k++ {
		e.join(s, int32(k-1), int32(k))
	}
	for len(st.agenda) > 0 {
		c := e.pop()
		a, b := &st.symbols[c.left], &st.symbols[c.right]
		if a.from == a.to || b.from == b.to || a.to-a.from+b.to-b.from != c.size {
			continue
		}
		a.to, a.next, a.id = b.to, b.next, c.id
		b.from = b.to
		if a.next >= 0 {
			st.symbols[a.next].prev = c.left
		}
		e.join(s, a.prev, c.left)
		e.join(s, c.left, a.next)
	}
	for k := int32(0); k >= 0; k = st.symbols[k].next {
		x := &st.symbols[k]
		if m.unused {
			e.emit(s[x.from:x.to])
		} else {
			e.add(s[x.from:x.to], x.id)
		}
	}
}

// join adds the merge of two symbols to the agenda, if there is one.
func (e *encoder) join(s string, left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	m, st := e.m, e.st
	a, b := &st.symbols[left], &st.symbols[right]
	if a.frozen || b.frozen {
		return
	}
	text := s[a.from:b.to]
	id, ok := m.pieces.Lookup(text)
	if !ok {
		return
	}
	e.push(candidate{m.scores[id], left, right, int32(len(text)), id})
	if m.types[id] == Unused {
		if st.split == nil {
			st.split = make(map[string]int32)
		}
		st.split[text] = a.to - a.from
	}
}

// emit adds a piece. One that is not to be used is split as the last candidate for it was.
func (e *encoder) emit(w string) {
	m := e.m
	if id, ok := m.pieces.Lookup(w); ok && m.types[id] == Unused {
		if n, ok := e.st.split[w]; ok {
			e.emit(w[:n])
			e.emit(w[n:])
			return
		}
	}
	e.add(w, m.id(w))
}

func (e *encoder) push(c candidate) {
	h := append(e.st.agenda, c)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !c.before(&h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = c
	e.st.agenda = h
}

func (e *encoder) pop() candidate {
	h := e.st.agenda
	top := h[0]
	n := len(h) - 1
	c := h[n]
	h = h[:n]
	e.st.agenda = h
	if n == 0 {
		return top
	}
	i := 0
	for {
		k := 2*i + 1
		if k >= n {
			break
		}
		if k+1 < n && h[k+1].before(&h[k]) {
			k++
		}
		if !h[k].before(&c) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = c
	return top
}
