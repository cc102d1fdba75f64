// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/tiktoken"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// ranked is a vocabulary by ranks, from a rank file or a tekken.json. Only build converts it to a Tokenizer.
type ranked struct {
	file    string // for messages
	vocab   *vocab.Table
	pattern string
	added   []AddedToken // with ids
	before  []uint32     // ids added before and after a text
}

// build returns the tokenizer, which is byte-level and has no normalizer. A word that equals a token is encoded as that
// token.
func (m *ranked) build() (*Tokenizer, error) {
	fail := func(field string, kind error, format string, args ...any) (*Tokenizer, error) {
		return nil, &Error{file: m.file, field: field, Offset: -1, reason: clip(fmt.Sprintf(format, args...)), err: kind}
	}
	seen := make(map[string]bool, len(m.added))
	for _, a := range m.added {
		switch {
		case a.Content == "":
			return fail("special tokens", ErrFormat, "that with id %d is empty", a.ID)
		case !utf8.ValidString(a.Content):
			return fail("special tokens", ErrFormat, "%.100q is not UTF-8", a.Content)
		case seen[a.Content]:
			return fail("special tokens", ErrFormat, "%.100q appears twice", a.Content)
		}
		seen[a.Content] = true
		if a.ID > vocab.MaxID {
			return fail("special tokens", ErrLimit, "id %d, the limit is %d", a.ID, vocab.MaxID)
		}
		if b := m.vocab.Bytes(a.ID); len(b) > 0 {
			return fail("special tokens", ErrFormat, "%.100q has the id %d of the token %.100q", a.Content, a.ID, b)
		}
	}
	merges, err := tiktoken.Merges(m.vocab)
	if err != nil {
		return fail("ranks", ErrLimit, "%s", strings.TrimPrefix(err.Error(), "tiktoken: "))
	}
	t := &Tokenizer{
		vocab:   m.vocab,
		inBytes: true,
		spell:   spelling{ids: map[string]uint32{}, text: map[uint32]string{}},
		unk:     -1,
		dec:     decoder{raw: true},
		added:   slices.Clone(m.added),
		addedAt: map[string]int32{},
		idAt:    map[uint32]int32{},
		before:  m.before,
	}
	if f, ok := pretok.LookupRust(m.pattern); ok {
		t.steps = []step{{fn: f}}
	} else {
		x, err := pretok.CompileRust(m.pattern)
		if err != nil {
			return fail("pattern", ErrUnsupported, "pattern %.200q: %v", m.pattern, err)
		}
		// tiktoken drops the text between matches.
		t.steps = []step{{cut: &pretok.Split{Pattern: x, Behavior: pretok.Removed, Invert: true}}}
	}
	t.mapped = len(t.steps)
	model, err := bpe.New(m.vocab, merges, bpe.Options{IgnoreMerges: true})
	if err != nil {
		return fail("ranks", ErrUnsupported, "%s", strings.TrimPrefix(err.Error(), "bpe: "))
	}
	t.useBytes(model)
	if err := t.indexAdded(part{path: "special tokens", span: jsonr.Span{Offset: -1}}); err != nil {
		return nil, inFile(m.file, err)
	}
	if err := t.buildDecoder(); err != nil {
		return nil, err
	}
	t.splitter = sync.OnceValues(t.newSplitter)
	t.pool.slots = make([]atomic.Pointer[scratch], max(1, runtime.GOMAXPROCS(0)))
	return t, nil
}

// inFile sets the file name of an error to a file other than tokenizer.json.
func inFile(file string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.file = file
	}
	return err
}
