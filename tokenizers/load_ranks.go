// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/bpe"
	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/pretok"
	"github.com/weft-go/weft/tokenizers/tiktoken"
	"github.com/weft-go/weft/tokenizers/vocab"
)

// ranked is a vocabulary by ranks, from a rank file or a tekken.json. It becomes a tokenizer in build, the one place
// that knows both.
type ranked struct {
	file    string // for messages
	vocab   *vocab.Table
	pattern string
	added   []AddedToken // with their ids
	before  []uint32     // the frame
}

// build returns the tokenizer: byte-level, without a normalizer; a word that is a token is that token.
func (m *ranked) build() (*Tokenizer, error) {
	fail := func(place string, kind error, format string, args ...any) (*Tokenizer, error) {
		return nil, &Error{File: m.file, Place: place, Offset: -1, Reason: clip(fmt.Sprintf(format, args...)), Err: kind}
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
	if f, ok := pretok.Lookup(m.pattern); ok {
		t.steps = []step{{fn: f}}
	} else {
		x, err := pretok.Compile(m.pattern)
		if err != nil {
			return fail("pattern", ErrUnsupported, "pattern %.200q: %v", m.pattern, err)
		}
		t.steps = []step{{cut: &pretok.Split{Pattern: x}}}
	}
	t.mapped = len(t.steps)
	model, err := bpe.New(m.vocab, merges, bpe.Options{IgnoreMerges: true})
	if err != nil {
		return fail("ranks", ErrUnsupported, "%s", strings.TrimPrefix(err.Error(), "bpe: "))
	}
	t.useBytes(model)
	if err := t.indexAdded(part{"special tokens", jsonr.Span{Offset: -1}}); err != nil {
		return nil, inFile(m.file, err)
	}
	if err := t.buildDecoder(); err != nil {
		return nil, err
	}
	t.pool.slots = make([]atomic.Pointer[scratch], max(1, runtime.GOMAXPROCS(0)))
	return t, nil
}

// inFile says that an error belongs to another file than tokenizer.json.
func inFile(file string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.File = file
	}
	return err
}

// readAll reads at most limit bytes.
func readAll(r io.Reader, file string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, &Error{File: file, Offset: -1, Reason: err.Error(), Err: err}
	}
	if int64(len(data)) > limit {
		return nil, &Error{File: file, Offset: -1, Reason: fmt.Sprintf("more than %d bytes", limit), Err: ErrLimit}
	}
	return data, nil
}
