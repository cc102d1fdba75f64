// SPDX-License-Identifier: Apache-2.0

package unigram

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/trie"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// penalty is subtracted from the worst score to score an unknown character.
const penalty = 10

// Options selects how a [Model] works.
type Options struct {
	// Unk is the id of text that is not a token.
	Unk uint32
	// ByteFallback spells text that is not a token with the tokens <0x00> to <0xFF> if all its bytes have one.
	ByteFallback bool
}

// Model encodes words. It is immutable and safe for concurrent use.
type Model struct {
	own    words.Owner
	trie   *trie.Trie
	vocab  *vocab.Table
	scores []float64 // by id
	unk    uint32
	worst  float64     // score of an unknown character
	bytes  [256]uint32 // ids of <0x00> to <0xFF>, or noID if absent
	fall   bool
	maxLen int // bytes of the longest token
}

const noID = ^uint32(0)

// New returns the model of a vocabulary whose bytes are the spelling in the file, with the score of each id.
// Where a file lists a token twice the later one must be the one that can be looked up. The reference reads
// scores with small errors of its own, which can decide between paths (see internal/jsonfloat). Errors: a number of
// scores other than v.Len(), a score that is not finite number, an unknown token that is not in the
// vocabulary, a vocabulary too large. It takes some 20 ms for 30,000 tokens. The caller must not change
// scores afterwards.
func New(v *vocab.Table, scores []float64, opt Options) (*Model, error) {
	if len(scores) != v.Len() {
		return nil, fmt.Errorf("unigram: %d scores for %d ids", len(scores), v.Len())
	}
	if int64(opt.Unk) >= int64(v.Len()) {
		return nil, fmt.Errorf("unigram: the unknown token %d is not in the vocabulary", opt.Unk)
	}
	t, err := trie.New(v)
	if err != nil {
		return nil, fmt.Errorf("unigram: %w", err)
	}
	m := &Model{trie: t, vocab: v, scores: scores, unk: opt.Unk, worst: math.Inf(1)}
	for id, x := range scores {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("unigram: the score of token %d is %v", id, x)
		}
		m.worst = min(m.worst, x)
		m.maxLen = max(m.maxLen, len(v.Bytes(uint32(id))))
	}
	m.worst -= penalty
	for b := range m.bytes {
		m.bytes[b] = noID
		if id, ok := v.Lookup(fmt.Sprintf("<0x%02X>", b)); ok && opt.ByteFallback {
			m.bytes[b] = id
			m.fall = true
		}
	}
	return m, nil
}

// State is the scratch space and word cache of one goroutine, about 1 MB once used. The zero value is ready
// to use. It may serve any number of models one after the other: it forgets the words of one when it meets
// another.
type State struct {
	words words.Cache
	path  []step
	ends  []int32
}

// step is the best path to a position in the word.
type step struct {
	score float64
	id    uint32
	from  int32 // where its last piece begins, -1 while no path leads here
}

// maxKept is the number of scratch bytes that a State keeps for the next long word.
const maxKept = 1 << 20

// Reset forgets the cached words.
func (st *State) Reset() { st.words.Reset() }

// Append appends the ids of the word s[i:j] to dst. The text around the word is only read to load keys
// quickly and has no influence. An empty word has no ids. A byte that is not part of valid UTF-8 is an
// unknown character.
func (m *Model) Append(dst []uint32, s string, i, j int, st *State) []uint32 {
	if uint(j-i-1) >= words.MaxLen {
		dst, _ = m.encode(dst, nil, s[i:j], st, false)
		return dst
	}
	if !st.words.Serves(&m.own) {
		st.words.Bind(&m.own)
	}
	dst, lo, hi, ok := st.words.Append(dst, s, i, j)
	if !ok {
		start := len(dst)
		dst, _ = m.encode(dst, nil, s[i:j], st, false)
		st.words.Put(lo, hi, dst[start:])
	}
	return dst
}

// AppendEnds is [Model.Append] that also appends, for each id, where its piece of the word ends: bytes from
// i. The piece begins where the one before ends. Ids of one piece spelled with bytes all have its end, as in
// the reference.
func (m *Model) AppendEnds(dst []uint32, ends []int, s string, i, j int, st *State) ([]uint32, []int) {
	return m.encode(dst, ends, s[i:j], st, true)
}

// encode encodes a word without the cache.
func (m *Model) encode(dst []uint32, ends []int, w string, st *State, want bool) ([]uint32, []int) {
	if len(w) == 0 {
		return dst, ends
	}
	if cap(st.path) < len(w)+1 {
		st.path = make([]step, max(len(w)+1, 64))
	}
	path := st.path[:len(w)+1]
	m.search(path, w)
	// The path is known from its end; its borders are put in order first.
	st.ends = st.ends[:0]
	for at := int32(len(w)); at > 0; at = path[at].from {
		st.ends = append(st.ends, at)
	}
	slices.Reverse(st.ends)
	for k := 0; k < len(st.ends); {
		id, start, end := path[st.ends[k]].id, int(path[st.ends[k]].from), int(st.ends[k])
		k++
		before := len(dst)
		if id == m.unk {
			for ; k < len(st.ends) && path[st.ends[k]].id == m.unk; k++ {
				end = int(st.ends[k])
			}
			dst = m.unknown(dst, w[start:end])
		} else {
			dst = append(dst, id)
		}
		if want {
			for range len(dst) - before {
				ends = append(ends, end)
			}
		}
	}
	if cap(st.path)*16+cap(st.ends)*4 > maxKept {
		st.path, st.ends = nil, nil
	}
	return dst, ends
}

// search finds the best path to every reachable position of w.
func (m *Model) search(path []step, w string) {
	for k := range path {
		path[k] = step{from: -1}
	}
	for at := 0; at < len(w); {
		size := 1
		if w[at] >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(w[at:])
		}
		score := path[at].score
		single := false
		n := m.trie.Root()
		for k := at; k < len(w); {
			var ok bool
			if n, ok = m.trie.Step(n, w[k]); !ok {
				break
			}
			k++
			id, ok := n.ID()
			if !ok {
				continue
			}
			single = single || k-at == size
			if x, e := m.scores[id]+score, &path[k]; e.from < 0 || x > e.score {
				*e = step{x, id, int32(at)}
			}
		}
		if !single {
			if x, e := m.worst+score, &path[at+size]; e.from < 0 || x > e.score {
				*e = step{x, m.unk, int32(at)}
			}
		}
		at += size
	}
}

// unknown appends the ids of neighbouring unknown pieces whose text is w.
func (m *Model) unknown(dst []uint32, w string) []uint32 {
	if len(w) <= m.maxLen {
		if id, ok := m.vocab.Lookup(w); ok {
			return append(dst, id)
		}
	}
	if m.fall {
		start := len(dst)
		for k := 0; ; k++ {
			if k == len(w) {
				return dst
			}
			id := m.bytes[w[k]]
			if id == noID {
				dst = dst[:start]
				break
			}
			dst = append(dst, id)
		}
	}
	return append(dst, m.unk)
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
