// SPDX-License-Identifier: Apache-2.0

package wordlevel

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// Options selects how a [Model] works.
type Options struct {
	// Unk is the id of words that are not in the vocabulary, or nil.
	Unk *uint32
}

// Model encodes words. It is immutable and safe for concurrent use.
type Model struct {
	vocab  *vocab.Table
	unk    uint32
	hasUnk bool
	maxLen int
}

// New returns the model of a vocabulary whose bytes are the spelling in the file. It fails if the unknown
// token is not in the vocabulary.
func New(v *vocab.Table, opt Options) (*Model, error) {
	m := &Model{vocab: v}
	if opt.Unk != nil {
		m.unk, m.hasUnk = *opt.Unk, true
		if len(v.Bytes(m.unk)) == 0 {
			return nil, fmt.Errorf("wordlevel: the unknown token %d is not in the vocabulary", m.unk)
		}
	}
	for id := range uint32(v.Len()) {
		m.maxLen = max(m.maxLen, len(v.Bytes(id)))
	}
	return m, nil
}

// State is empty; it exists because other models need one per goroutine.
type State struct{}

// Append appends the id of the word s[i:j] to dst. An unknown word has no id if the model has no unknown token,
// where the reference fails; [Model.Total] reports this in advance. An empty word has no id. It does not allocate.
func (m *Model) Append(dst []uint32, s string, i, j int, _ *State) []uint32 {
	if i >= j {
		return dst
	}
	if j-i <= m.maxLen {
		if id, ok := m.vocab.Lookup(s[i:j]); ok {
			return append(dst, id)
		}
	}
	if m.hasUnk {
		dst = append(dst, m.unk)
	}
	return dst
}

// AppendEnds is [Model.Append] that also appends, for each id, where its word ends: bytes from i.
func (m *Model) AppendEnds(dst []uint32, ends []int, s string, i, j int, st *State) ([]uint32, []int) {
	n := len(dst)
	if dst = m.Append(dst, s, i, j, st); len(dst) > n {
		ends = append(ends, j-i)
	}
	return dst, ends
}

// Total reports whether every word has an id.
func (m *Model) Total() bool { return m.hasUnk }

// Reaches reports whether some word encodes to id.
func (m *Model) Reaches(id uint32) bool {
	if m.hasUnk && id == m.unk {
		return true
	}
	tok := string(m.vocab.Bytes(id))
	got, ok := m.vocab.Lookup(tok)
	return ok && got == id
}
