// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"slices"
	"sync"
	"unsafe"

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

// tokens are the ids of a prompt. Only marks changes.
type tokens struct {
	list      *tokenList
	ids       []uint32 // the first of list.ids
	cuts      []cache.Prefix
	namespace string // of the prompt
	text      string // of the prompt that was encoded; "" if it is not in the memory of its Text
	common    int    // number of ids at the beginning that the prompt before has as well

	marks []boundary // guarded by list.mu; never written in place
}

// boundary is a position in the text, in bytes, the number of ids that are entirely before it, and the end of the id
// after these.
type boundary struct{ at, ids, end int }

// maxBoundaries limits the positions that are remembered: a request has few marks.
const maxBoundaries = 16

// boundaries returns the boundaries that are known. The caller must not modify them. t may be nil.
func (t *tokens) boundaries() []boundary {
	if t == nil {
		return nil
	}
	t.list.mu.Lock()
	defer t.list.mu.Unlock()
	return t.marks
}

// setBoundaries replaces the boundaries that are known.
func (t *tokens) setBoundaries(list []boundary) {
	t.list.mu.Lock()
	defer t.list.mu.Unlock()
	t.marks = list[:min(len(list), maxBoundaries)]
}

// shared returns the boundaries of t in a prompt that begins with the first n ids and the first size bytes of the text of t.
// The caller must hold the mutex of t's list.
func (t *tokens) shared(n, size int) (list []boundary) {
	for _, b := range t.marks {
		if b.ids < n && b.end <= size {
			list = append(list, b)
		}
	}
	return list
}

// spare is the room for the next turns, as a part of the ids.
const spare = 8

// next encodes p, which begins like the prompt of t unless that is nil. sampled has the ids of the responses to that.
func (t *tokens) next(p *Prompt, sampled [][]uint32) *tokens {
	c := p.model.cache
	text := p.encoded()
	if t == nil || t.namespace != p.Namespace {
		// The room that the cache would make, a token per three bytes, and that for the next turns.
		all, cuts, _ := c.AppendEncodeAfter(roomFor(len(p.Text)/3+16), nil, nil, 0, p.Namespace, text, p.Segments)
		if cap(all) > len(all)+len(all)/2+256 {
			all = append(roomFor(len(all)), all...)
		}
		return &tokens{list: &tokenList{ids: all}, ids: all[:len(all):len(all)], cuts: cuts, namespace: p.Namespace, text: text}
	}
	buf, _ := idBuffers.Get().(*[]uint32)
	if buf == nil {
		buf = new([]uint32)
	}
	defer idBuffers.Put(buf)
	same := 0
	if text != "" && unsafe.StringData(text) == unsafe.StringData(t.text) { // the template appended to the text of t
		same = min(len(text), len(t.text))
	}
	ids, cuts, skipped := c.AppendEncodeAfter((*buf)[:0], make([]cache.Prefix, 0, len(t.cuts)+4), t.cuts, same, p.Namespace, text, p.Segments)
	if prefix, own := t.sampled(p, text, same, sampled, ids, skipped); own != nil {
		ids, cuts, _ = c.AppendEncodeAfter(ids[:0], cuts[:0], append(slices.Clip(t.cuts), prefix), same, p.Namespace, text, p.Segments)
		ids, skipped = append(own, ids...), prefix.Tokens-len(own)
	}
	*buf = ids
	l := t.list
	l.mu.Lock()
	defer l.mu.Unlock()
	n := skipped + len(ids)
	if known := len(t.ids) - skipped; known >= 0 && known <= len(ids) && slices.Equal(t.ids[skipped:], ids[:known]) && len(l.ids) == len(t.ids) {
		if cap(l.ids) < n {
			l.ids = append(roomFor(n), l.ids...)
		}
		l.ids = append(l.ids, ids[known:]...)
		return &tokens{l, l.ids[:n:n], cuts, p.Namespace, text, len(t.ids), t.shared(len(t.ids), same)}
	}
	all := append(append(roomFor(n), t.ids[:skipped]...), ids...)
	known := skipped
	for known < n && known < len(t.ids) && all[known] == t.ids[known] {
		known++
	}
	next := &tokenList{ids: all}
	next.text, next.n = l.printed(known)
	return &tokens{next, all[:n:n], cuts, p.Namespace, text, known, t.shared(known, same)}
}

// sampled returns a prefix of p with the ids of a response to the prompt of t, and its ids after the last of t.cuts. These are
// nil if p does not have the text of a response, or if ids, which follow the first skipped ids of p, have one already. text and
// same are as in next.
func (t *tokens) sampled(p *Prompt, text string, same int, responses [][]uint32, ids []uint32, skipped int) (prefix cache.Prefix, own []uint32) {
	for _, r := range responses {
		if n := len(t.ids) - skipped; n <= len(ids) && len(r) <= len(ids)-n && slices.Equal(ids[n:n+len(r)], r) {
			return prefix, nil
		}
	}
	from := 0
	if k := len(t.cuts); k > 0 {
		from = t.cuts[k-1].Tokens
	}
	for _, r := range responses {
		prefix, own, ok := p.model.cache.Sampled(t.cuts, same, p.Namespace, text, p.Segments, slices.Concat(t.ids[from:], r), ids[min(from-skipped, len(ids)):])
		if ok {
			return prefix, own
		}
	}
	return prefix, nil
}

// roomFor returns an empty list with room for n ids and those of the next turns.
func roomFor(n int) []uint32 { return make([]uint32, 0, n+n/spare+256) }

// encoded returns the text of the segments if it is Text, and in its memory, as the template left it. Otherwise it returns "".
func (p *Prompt) encoded() string {
	at := 0
	for i := range p.Segments {
		s := p.Segments[i].Text
		if len(s) > len(p.Text)-at || len(s) > 0 && unsafe.StringData(s) != unsafe.StringData(p.Text[at:]) {
			return ""
		}
		at += len(s)
	}
	return p.Text[:at]
}

// printed returns a copy of the decimal forms of at most the first n ids, with room for more, and their number. If n is
// less than half of those that were printed, it returns none. The caller must hold l.mu.
func (l *tokenList) printed(n int) ([]byte, int) {
	if l.n == 0 || n < l.n/2 {
		return nil, 0
	}
	end, rest := len(l.text), l.ids[min(n, l.n):l.n]
	if len(rest) > 0 {
		end -= len(appendIDs(nil, rest))
	}
	return withRoom(l.text[:end]), l.n - len(rest)
}

// withRoom returns a copy of a text with room for the next turns.
func withRoom(text []byte) []byte {
	return append(make([]byte, 0, len(text)+len(text)/spare+2048), text...)
}

// idBuffers has buffers for the ids that are new in a prompt.
var idBuffers sync.Pool

// decimal returns the decimal forms of the ids, each with a comma. The next prompt's follow in the same memory.
func (t *tokens) decimal() []byte {
	l := t.list
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n > len(t.ids) {
		return appendIDs(nil, t.ids)
	}
	l.text = appendIDs(l.text, t.ids[l.n:])
	l.n = len(t.ids)
	return slices.Clip(l.text)
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
