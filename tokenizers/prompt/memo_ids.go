// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"slices"
	"sync"

	"github.com/weft-go/weft/tokenizers/cache"
)

// tokenList holds the ids of prompts of which each begins with the one before, and their decimal forms. A prompt that
// begins with all ids is appended in place; no reader goes beyond the length of its own prompt.
type tokenList struct {
	mu   sync.Mutex
	ids  []uint32
	text []byte // as appendIDs prints the first n ids
	n    int
}

// tokens are the ids of a prompt. They do not change.
type tokens struct {
	list      *tokenList
	ids       []uint32 // the first of list.ids
	cuts      []cache.Prefix
	namespace string // of the prompt
}

// spare is the room for the next turns, as a part of the ids.
const spare = 8

// next encodes p, which begins like the prompt of t unless that is nil.
func (t *tokens) next(p *Prompt) *tokens {
	c := p.model.cache
	if t == nil || t.namespace != p.Namespace {
		ids, cuts, _ := c.AppendEncodeAfter(nil, nil, nil, p.Namespace, p.Segments)
		return &tokens{&tokenList{ids: ids}, ids, cuts, p.Namespace}
	}
	buf, _ := idBuffers.Get().(*[]uint32)
	if buf == nil {
		buf = new([]uint32)
	}
	defer idBuffers.Put(buf)
	ids, cuts, skipped := c.AppendEncodeAfter((*buf)[:0], make([]cache.Prefix, 0, len(t.cuts)+4), t.cuts, p.Namespace, p.Segments)
	*buf = ids
	l := t.list
	l.mu.Lock()
	defer l.mu.Unlock()
	n := skipped + len(ids)
	if known := len(t.ids) - skipped; known >= 0 && known <= len(ids) && slices.Equal(t.ids[skipped:], ids[:known]) && len(l.ids) == len(t.ids) && cap(l.ids) >= n {
		l.ids = append(l.ids, ids[known:]...)
		return &tokens{l, l.ids[:n:n], cuts, p.Namespace}
	}
	all := make([]uint32, 0, n+n/spare+256)
	all = append(append(all, t.ids[:skipped]...), ids...)
	return &tokens{&tokenList{ids: all}, all[:n:n], cuts, p.Namespace}
}

// idBuffers has buffers for the ids that are new in a prompt.
var idBuffers sync.Pool

// appendText appends the decimal forms of the ids, each with a comma. It remembers them for the next prompt.
func (t *tokens) appendText(dst []byte) []byte {
	l := t.list
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n > len(t.ids) {
		return appendIDs(dst, t.ids)
	}
	l.text = appendIDs(l.text, t.ids[l.n:])
	l.n = len(t.ids)
	return append(dst, l.text...)
}

// bytes returns the memory that the tokens take, including the text and the ids of the cuts.
func (t *tokens) bytes() int {
	t.list.mu.Lock()
	defer t.list.mu.Unlock()
	n := 4*cap(t.list.ids) + max(cap(t.list.text), 7*len(t.ids)) + 400*cap(t.cuts)
	if k := len(t.cuts); k > 0 {
		n += t.cuts[k-1].Bytes + 4*t.cuts[k-1].Tokens
	}
	return n
}
