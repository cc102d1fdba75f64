// SPDX-License-Identifier: Apache-2.0

package ledger

// prefixes counts the distinct marks of entries, which share those at their beginnings. It is a tree whose edges have as many marks as
// possible: an entry takes one access to a map for each of its edges, of which it has a few, and not for each mark. The zero value is empty.
type prefixes struct {
	distinct int // marks
	root     prefix
	edges    map[edge]*prefix
	unused   []*prefix
}

// prefix is the end of an edge.
type prefix struct {
	marks  []uint64 // of the edge
	parent *prefix
	users  int // entries that have these marks
}

// edge is where an edge begins and the first of its marks.
type edge struct {
	from *prefix
	mark uint64
}

// add counts the marks of an entry and returns where they end.
func (t *prefixes) add(marks []uint64) *prefix {
	at := &t.root
	for len(marks) > 0 {
		next, n := t.edges[edge{at, marks[0]}], 0
		if next == nil {
			next = t.insert(at, marks)
			n, t.distinct = len(marks), t.distinct+len(marks)
		} else if n = common(next.marks, marks); n < len(next.marks) {
			next = t.split(next, n)
		}
		next.users++
		at, marks = next, marks[n:]
	}
	return at
}

// insert adds an edge, which copies marks.
func (t *prefixes) insert(from *prefix, marks []uint64) *prefix {
	if t.edges == nil {
		t.edges = make(map[edge]*prefix)
	}
	var p *prefix
	if n := len(t.unused); n > 0 {
		p, t.unused = t.unused[n-1], t.unused[:n-1]
	} else {
		p = new(prefix)
	}
	p.marks, p.parent = append(p.marks[:0], marks...), from
	t.edges[edge{from, marks[0]}] = p
	return p
}

// split makes the first n marks of an edge one of their own and returns its end.
func (t *prefixes) split(p *prefix, n int) *prefix {
	front := t.insert(p.parent, p.marks[:n])
	front.users = p.users
	p.marks, p.parent = append(p.marks[:0], p.marks[n:]...), front
	t.edges[edge{front, p.marks[0]}] = p
	return front
}

// remove removes an entry whose marks end at p.
func (t *prefixes) remove(p *prefix) {
	for p != nil && p != &t.root {
		parent := p.parent
		if p.users--; p.users == 0 {
			delete(t.edges, edge{parent, p.marks[0]})
			t.distinct -= len(p.marks)
			p.parent = nil
			if len(t.unused) < maxUnused {
				t.unused = append(t.unused, p)
			}
		}
		p = parent
	}
}

// maxUnused limits the memory that is kept for later edges. An edge of 100,000 tokens has 1.6 KB.
const maxUnused = 8

// common returns the number of equal elements at the beginnings of a and b.
func common(a, b []uint64) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
