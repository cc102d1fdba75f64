// SPDX-License-Identifier: Apache-2.0

package jsonval

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// A Part is a message or a tool of a conversation. It owns its memory and is never modified, so any number of
// conversations may share it.
type Part struct {
	Value Value
	bytes int

	// The steps that it was built from, without pointers for the garbage collector to follow.
	kinds string   // in the memory of own
	ends  []uint32 // of the texts in own; a body has less than 4 GiB
	own   string
}

// is reports whether step i has the given kind and text.
func (p *Part) is(i int, kind byte, text string) bool {
	return i < len(p.kinds) && p.kinds[i] == kind && p.text(i) == text
}

// text returns the text of step i.
func (p *Part) text(i int) string {
	from := uint32(0)
	if i > 0 {
		from = p.ends[i-1]
	}
	return p.own[from:p.ends[i]]
}

// Texts returns the number of bytes of the texts of the part, or 0 if they are not known.
func (p *Part) Texts() int { return len(p.own) }

// Bytes returns about how much memory the part takes.
func (p *Part) Bytes() int { return p.bytes }

// A step is one call of [Builder.Add].
type step struct {
	kind byte
	text string
}

// A Recorder builds the parts of a conversation from the sequence of values of the object {"messages": [...],
// "tools": [...]}. It takes over the parts of the conversation before that were built from the same steps, and copies
// the texts of all others. Use NewRecorder.
type Recorder struct {
	lists  [2][]*Part // messages, tools
	before [2][]*Part
	b      Builder
	like   *Part  // that begins with the steps of the open part; nil if unknown
	same   int    // number of these steps
	steps  []step // of the open part, once it differs from like
	list   int
	depth  int
	size   int // length of the texts of steps
	failed bool
}

// NewRecorder returns a Recorder that takes over parts of the given lists, which may be nil.
func NewRecorder(messages, tools []*Part) *Recorder {
	r := &Recorder{before: [2][]*Part{messages, tools}}
	r.lists[0] = make([]*Part, 0, len(messages)+4)
	r.lists[1] = make([]*Part, 0, len(tools))
	r.expect()
	return r
}

// Add adds a step; see [Builder.Add]. The kind '^', between two messages, takes over the messages up to the number in text.
func (r *Recorder) Add(kind byte, text string) {
	switch kind {
	case '^':
		n, err := strconv.Atoi(text)
		if at := len(r.lists[r.list]); err != nil || r.depth != 2 || n < at || n > len(r.before[r.list]) {
			r.failed = true
		} else {
			r.lists[r.list] = append(r.lists[r.list], r.before[r.list][at:n]...)
			r.expect()
		}
		return
	case ']', '}':
		r.depth--
		if r.depth < 2 {
			return
		}
	case '{', '[':
		r.depth++
		if r.depth <= 2 {
			return
		}
	case ':':
		if r.depth == 1 {
			if text == "tools" {
				r.list = 1
				r.expect()
			}
			return
		}
	}
	if r.like != nil {
		if r.like.is(r.same, kind, text) {
			r.same++
			if r.depth == 2 && r.same == len(r.like.kinds) {
				r.lists[r.list] = append(r.lists[r.list], r.like)
				r.expect()
			}
			return
		}
		r.differ()
	}
	r.steps = append(r.steps, step{kind, text})
	r.size += len(text)
	if r.depth == 2 {
		r.part()
		r.steps, r.size = r.steps[:0], 0
		r.expect()
	}
}

// expect prepares the next part, which is likely to be the one at its position in the conversation before.
func (r *Recorder) expect() {
	r.like, r.same = nil, 0
	if i := len(r.lists[r.list]); i < len(r.before[r.list]) {
		r.like = r.before[r.list][i]
	}
}

// differ is called when the open part is another one than expected.
func (r *Recorder) differ() {
	for i := range r.same {
		text := r.like.text(i)
		r.steps = append(r.steps, step{r.like.kinds[i], text})
		r.size += len(text)
	}
	r.like = nil
}

// part ends a part that the conversation before does not have at its position.
func (r *Recorder) part() {
	n := len(r.steps)
	p := &Part{ends: make([]uint32, n)}
	var all strings.Builder // it does not clear its memory first
	all.Grow(n + r.size)
	for _, s := range r.steps {
		all.WriteByte(s.kind)
	}
	for k, s := range r.steps {
		all.WriteString(s.text)
		p.ends[k] = uint32(all.Len() - n)
	}
	text := all.String()
	p.kinds, p.own = text[:n], text[n:]
	for k := range n {
		r.b.Add(p.kinds[k], p.text(k))
	}
	if r.b.failed || len(r.b.stack) != 1 {
		r.failed = true
		r.b.stack = r.b.stack[:0]
	} else {
		p.Value = r.b.stack[0]
		r.b.stack = r.b.stack[:0]
	}
	p.bytes = all.Cap() + 4*n + p.Value.size()
	r.lists[r.list] = append(r.lists[r.list], p)
}

// Parts returns the messages and the tools. It reports false in the same cases as [Builder.Value].
func (r *Recorder) Parts() (messages, tools []*Part, ok bool) {
	return r.lists[0], r.lists[1], !r.failed
}

// Values returns the values of parts.
func Values(parts []*Part) []Value {
	out := make([]Value, len(parts))
	for i, p := range parts {
		out[i] = p.Value
	}
	return out
}

// Keep returns values as parts. It takes over the parts of before with an equal value at the same position. The values
// must not change afterward.
func Keep(values []Value, before []*Part) []*Part {
	out := make([]*Part, len(values))
	for i := range values {
		if i < len(before) && before[i].Value.Equal(&values[i]) {
			out[i] = before[i]
			continue
		}
		out[i] = &Part{Value: values[i], bytes: values[i].size()}
	}
	return out
}

// Equal reports whether two values are equal, including the order of keys.
func (v *Value) Equal(o *Value) bool {
	if v.Kind != o.Kind || v.Bool != o.Bool || v.Str != o.Str || len(v.List) != len(o.List) || !slices.Equal(v.Keys, o.Keys) {
		return false
	}
	for i := range v.List {
		if !v.List[i].Equal(&o.List[i]) {
			return false
		}
	}
	return true
}

// size returns the memory of a value without its texts.
func (v *Value) size() int {
	n := int(unsafe.Sizeof(*v))
	for i := range v.List {
		n += v.List[i].size()
	}
	return n
}
