// SPDX-License-Identifier: Apache-2.0

package wordpiece

import (
	"fmt"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/trie"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// Options specifies how words are matched. Files hold all of it, so nothing has a default.
type Options struct {
	// Unk is the id of a word that cannot be matched.
	Unk uint32
	// Prefix begins the spelling of tokens inside a word, "##" for BERT.
	Prefix string
	// MaxChars is the number of characters above which a word is unknown, 100 for BERT.
	MaxChars int
}

// Model encodes words. It is immutable and safe for concurrent use.
type Model struct {
	own      words.Owner
	trie     *trie.Trie
	vocab    *vocab.Table
	unk      uint32
	inside   trie.Node // where tokens inside a word start
	none     bool      // there are none
	maxChars int
}

// New returns the model of a vocabulary whose bytes are the spelling in the file. Only tokens that can be
// looked up are ever matched. It fails if the unknown token is not in the vocabulary or the vocabulary is too
// large. It takes some 10 ms for 30,000 tokens.
func New(v *vocab.Table, opt Options) (*Model, error) {
	if len(v.Bytes(opt.Unk)) == 0 {
		return nil, fmt.Errorf("wordpiece: the unknown token %d is not in the vocabulary", opt.Unk)
	}
	t, err := trie.New(v)
	if err != nil {
		return nil, fmt.Errorf("wordpiece: %w", err)
	}
	m := &Model{trie: t, vocab: v, unk: opt.Unk, maxChars: opt.MaxChars}
	var ok bool
	m.inside, ok = t.Walk(t.Root(), opt.Prefix)
	m.none = !ok
	return m, nil
}

// State is the word cache of one goroutine, about 1 MB once used. The zero value is ready to use. It may
// serve any number of models one after the other: it forgets the words of one when it meets another.
type State struct{ words words.Cache }

// Reset forgets the cached words.
func (st *State) Reset() { st.words.Reset() }

// Append appends the ids of the word s[i:j] to dst. The text around the word is only read to load keys
// quickly and has no influence. An empty word has no ids. A word that is not valid UTF-8 is unknown; each
// invalid byte is treated as one character.
func (m *Model) Append(dst []uint32, s string, i, j int, st *State) []uint32 {
	if uint(j-i-1) >= words.MaxLen {
		return m.match(dst, s[i:j])
	}
	if !st.words.Serves(&m.own) {
		st.words.Bind(&m.own)
	}
	dst, lo, hi, ok := st.words.Append(dst, s, i, j)
	if !ok {
		start := len(dst)
		dst = m.match(dst, s[i:j])
		st.words.Put(lo, hi, dst[start:])
	}
	return dst
}

// AppendEnds is [Model.Append] that also appends, for each id, where its part of the word ends: bytes from i.
// It begins where the one before ends.
func (m *Model) AppendEnds(dst []uint32, ends []int, s string, i, j int, st *State) ([]uint32, []int) {
	start := len(dst)
	dst = m.Append(dst, s, i, j, st)
	w := s[i:j]
	if len(dst) == start+1 {
		return dst, append(ends, len(w))
	}
	for at := 0; at < len(w); {
		n := m.trie.Root()
		if at > 0 {
			n = m.inside
		}
		_, size := m.trie.Longest(n, w[at:])
		at += size
		ends = append(ends, at)
	}
	return dst, ends
}

// match encodes a word without the cache.
func (m *Model) match(dst []uint32, w string) []uint32 {
	if len(w) == 0 {
		return dst
	}
	if len(w) > m.maxChars && utf8.RuneCountInString(w) > m.maxChars {
		return append(dst, m.unk)
	}
	start := len(dst)
	n := m.trie.Root()
	for at := 0; at < len(w); {
		id, size := m.trie.Longest(n, w[at:])
		if size == 0 {
			return append(dst[:start], m.unk)
		}
		dst = append(dst, id)
		at += size
		if at < len(w) && m.none {
			return append(dst[:start], m.unk)
		}
		n = m.inside
	}
	return dst
}

// Reaches reports whether some word encodes to a result that holds id. It errs on the side of true.
func (m *Model) Reaches(id uint32) bool {
	if id == m.unk {
		return true
	}
	tok := string(m.vocab.Bytes(id))
	got, ok := m.vocab.Lookup(tok)
	return ok && got == id
}
