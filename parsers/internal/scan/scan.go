// SPDX-License-Identifier: Apache-2.0

// Package scan finds markers in a stream of bytes, each byte examined once however the stream is cut.
//
// A [Set] is an Aho-Corasick automaton over the markers that matter in one state of a parser, as a dense table over
// byte classes. The position inside a half-seen marker is one small integer that the caller keeps between chunks, so
// nothing is ever searched twice.
package scan

import (
	"bytes"

	"github.com/weft-go/weft/parsers/internal/work"
)

// Set is an immutable set of markers, numbered in the order given to New. Safe for concurrent use.
type Set struct {
	class [256]uint8
	next  []uint16 // node*classes + class
	out   []int16  // by node: marker that ends here, or -1
	begun []int16  // by node: longest marker that begins the half-seen one, or is it, or -1
	over  []uint16 // by node: bytes seen after that
	depth []uint16 // by node: bytes of marker seen
	leaf  []bool   // by node: no longer marker begins with this one
	n     int      // classes
	first []byte   // distinct first bytes
	start [256]bool
}

// Node is a position inside a half-seen marker; the zero Node is outside any.
type Node uint16

// New compiles markers; empty ones are numbered but never found. No marker may contain another except at its beginning.
func New(markers ...string) *Set {
	s := &Set{n: 1}
	for _, m := range markers {
		for i := 0; i < len(m); i++ {
			if s.class[m[i]] == 0 {
				s.class[m[i]] = uint8(s.n)
				s.n++
			}
		}
	}
	// The trie, with 0 as "no edge".
	type edge = map[uint8]uint16
	trie := []edge{{}}
	s.out, s.depth = []int16{-1}, []uint16{0}
	for i, m := range markers {
		if m == "" {
			continue
		}
		if !s.start[m[0]] {
			s.start[m[0]] = true
			s.first = append(s.first, m[0])
		}
		at := uint16(0)
		for j := 0; j < len(m); j++ {
			c := s.class[m[j]]
			to, ok := trie[at][c]
			if !ok {
				to = uint16(len(trie))
				trie = append(trie, edge{})
				s.out, s.depth = append(s.out, -1), append(s.depth, uint16(j+1))
				trie[at][c] = to
			}
			at = to
		}
		if s.out[at] < 0 {
			s.out[at] = int16(i)
		}
	}
	// Failure links, breadth first, folded into the table.
	s.next = make([]uint16, len(trie)*s.n)
	s.begun, s.over = make([]int16, len(trie)), make([]uint16, len(trie))
	s.leaf = make([]bool, len(trie))
	fail := make([]uint16, len(trie))
	queue := []uint16{0}
	s.begun[0] = -1
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		s.leaf[at] = len(trie[at]) == 0
		if s.out[at] >= 0 {
			s.begun[at], s.over[at] = s.out[at], 0
		}
		for c := 1; c < s.n; c++ {
			to, ok := trie[at][uint8(c)]
			if !ok {
				if at != 0 {
					to = s.next[int(fail[at])*s.n+c]
				}
				s.next[int(at)*s.n+c] = to
				continue
			}
			if at != 0 {
				fail[to] = s.next[int(fail[at])*s.n+c]
			}
			s.next[int(at)*s.n+c] = to
			s.begun[to], s.over[to] = s.begun[at], s.over[at]+1
			queue = append(queue, to)
		}
	}
	return s
}

// Held returns how many bytes before the scan position belong to the half-seen marker at node.
func (s *Set) Held(node Node) int { return int(s.depth[node]) }

// Find scans win from pos, resuming at *node, for the leftmost longest marker. It returns the marker and the position
// after it, with *node at zero; or -1 and len(win), with *node at the half-seen marker that win ends in. If final is
// set nothing will follow, and a marker that might have grown longer is taken as it is.
//
// The half-seen marker must still be in win, before pos: when it turns out to be another one that only begins it, the
// position after that may be before pos.
func (s *Set) Find(win []byte, pos int, node *Node, final bool) (marker, end int) {
	at := uint16(*node)
	from := pos
	best, bestEnd := int(s.begun[at]), pos-int(s.over[at])
	for pos < len(win) {
		if at == 0 {
			i := s.skip(win[pos:])
			if i < 0 {
				break
			}
			pos += i
		}
		to := s.next[int(at)*s.n+int(s.class[win[pos]])]
		if best >= 0 && s.depth[to] != s.depth[at]+1 {
			work.Add(pos + 1 - from)
			*node = 0
			return best, bestEnd
		}
		pos++
		at = to
		if o := s.out[at]; o >= 0 {
			if s.leaf[at] {
				work.Add(pos - from)
				*node = 0
				return int(o), pos
			}
			best, bestEnd = int(o), pos
		}
	}
	work.Add(len(win) - from)
	if best >= 0 && final {
		*node = 0
		return best, bestEnd
	}
	*node = Node(at)
	return -1, len(win)
}

// Starts returns which bytes begin a marker.
func (s *Set) Starts() [256]bool { return s.start }

// Seconds returns which bytes may follow the first one of a marker. It reports false if a marker has only one byte.
func (s *Set) Seconds() (second [256]bool, ok bool) {
	for _, c := range s.first {
		at := s.next[s.class[c]]
		if s.out[at] >= 0 {
			return second, false
		}
		for d := range second {
			to := s.next[int(at)*s.n+int(s.class[d])]
			second[d] = second[d] || s.depth[to] == 2
		}
	}
	return second, true
}

// skip returns the index of the first byte that can begin a marker, or -1.
func (s *Set) skip(b []byte) int {
	if len(s.first) == 1 {
		return bytes.IndexByte(b, s.first[0])
	}
	for i, c := range b {
		if s.start[c] {
			return i
		}
	}
	return -1
}

// Prefix is the outcome of Match.
type Prefix uint8

// The outcomes of Match.
const (
	More Prefix = iota // all of win matches; the literal continues
	Yes                // the literal is there
	No                 // it is not
)

// Match reports whether win continues with lit from byte *n of lit on, advancing pos and *n over what matches.
func Match(win []byte, pos int, lit string, n *int) (Prefix, int) {
	for *n < len(lit) {
		if pos == len(win) {
			return More, pos
		}
		work.Add(1)
		if win[pos] != lit[*n] {
			return No, pos
		}
		pos++
		*n++
	}
	return Yes, pos
}
