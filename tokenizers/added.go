// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"math/bits"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/unidata"
)

// An AddedToken is a string that is encoded as one ID wherever it occurs in trusted text.
type AddedToken struct {
	ID      uint32
	Content string
	Special bool // can be left out of decoded text

	normalized bool // matched after the normalizer has run, not before
	lStrip     bool // includes the white space before it
	rStrip     bool // includes the white space after it
	singleWord bool // matched only if no word character is next to it
	// wasNormalized specifies that it is not normalized, but was when first added, so that it decodes to normalized text.
	wasNormalized bool
}

// matcher finds added tokens: the leftmost match, and the longest of those. It is immutable.
type matcher struct {
	tokens []AddedToken
	nodes  []trieNode
	root   [256]uint32 // first byte -> node, 0 if none
	starts []start     // possible first bytes, at most maxStarts; nil if there are more
}

// start is a first byte of tokens.
type start struct {
	b    byte
	next [4]uint64 // bit set of the bytes that may follow
	one  bool      // b alone is a token
	// pair specifies that b is a space, which is frequent, and that only then may follow. The two are searched for
	// together.
	pair bool
	then byte
}

// maxStarts is the maximum number of first bytes that are searched for one by one, which is faster than examining each
// byte.
const maxStarts = 4

// seeker records the next position of each first byte, so that a text is searched once for each.
type seeker struct {
	at    [maxStarts]int // at or after the last requested position
	begun bool
}

// seek returns the next position in s at or after i at which a token may begin, or len(s).
func (m *matcher) seek(s string, i int, p *seeker) int {
	if !p.begun {
		p.begun = true
		for k := range m.starts {
			p.at[k] = i - 1
		}
	}
	best := len(s)
	for k := range m.starts {
		st := &m.starts[k]
		at := p.at[k]
		for from := i; at < i; {
			if st.pair {
				at = indexPair(s, from, st.b, st.then)
				break
			}
			n := strings.IndexByte(s[from:], st.b)
			if n < 0 {
				at = len(s)
				break
			}
			from += n + 1
			if st.one || from < len(s) && st.next[s[from]>>6]>>(s[from]&63)&1 != 0 {
				at = from - 1
			}
		}
		p.at[k] = at
		best = min(best, at)
	}
	return best
}

// indexPair returns the next position in s at or after i of the bytes b and c in sequence, or len(s) if there is no
// such position.
func indexPair(s string, i int, b, c byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	bs, cs := ones*uint64(b), ones*uint64(c)
	for ; i+9 <= len(s); i += 8 {
		x := (load64(s[i:]) ^ bs) | (load64(s[i+1:]) ^ cs) // zero where both match
		// Only the lowest bit is reliable.
		if hit := (x - ones) &^ x & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i+1 < len(s); i++ {
		if s[i] == b && s[i+1] == c {
			return i
		}
	}
	return len(s)
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// trieNode is the end of a path of bytes. Its children form a list.
type trieNode struct {
	child, sibling uint32 // 0 means absent; node 0 is not used
	token          int32  // index in tokens, -1 if no token ends here
	b              byte
}

// newMatcher returns a matcher that finds tokens[i] as text[i], or not at all if that is empty.
func newMatcher(tokens []AddedToken, text []string) *matcher {
	m := &matcher{tokens: tokens, nodes: make([]trieNode, 1)}
	var follow [256]start
	for i, s := range text {
		if s == "" {
			continue
		}
		f := &follow[s[0]]
		if len(s) == 1 {
			f.one = true
		} else {
			f.next[s[1]>>6] |= 1 << (s[1] & 63)
		}
		at := &m.root[s[0]]
		var n uint32
		for k := 0; k < len(s); k++ {
			for n = *at; n != 0 && m.nodes[n].b != s[k]; n = *at {
				at = &m.nodes[n].sibling
			}
			if n == 0 {
				n = uint32(len(m.nodes))
				*at = n
				m.nodes = append(m.nodes, trieNode{token: -1, b: s[k]})
			}
			at = &m.nodes[n].child
		}
		m.nodes[n].token = int32(i)
	}
	for b := range follow {
		if m.root[b] != 0 {
			f := &follow[b]
			f.b = byte(b)
			followers := 0
			for c := range 256 {
				if f.next[c>>6]>>(c&63)&1 != 0 {
					f.then = byte(c)
					followers++
				}
			}
			f.pair = b == ' ' && followers == 1 && !f.one
			m.starts = append(m.starts, *f)
		}
	}
	if len(m.starts) > maxStarts {
		m.starts = nil
	}
	return m
}

// find returns the first match in s at or after i that ends within limit, with token -1 if there is no match. p must be
// used with one s only, and i must not decrease.
func (m *matcher) find(s string, i, limit int, p *seeker) (start, end, token int) {
	all := s
	s = s[:limit]
	for ; i < len(s); i++ {
		if m.starts != nil {
			if i = m.seek(all, i, p); i >= limit {
				break
			}
		}
		n := m.root[s[i]]
		best := int32(-1)
		for k := i; n != 0; {
			node := &m.nodes[n]
			if node.b != s[k] {
				n = node.sibling
				continue
			}
			k++
			if node.token >= 0 {
				best, end = node.token, k
			}
			if k == len(s) {
				break
			}
			n = node.child
		}
		if best >= 0 {
			return i, end, int(best)
		}
	}
	return len(s), len(s), -1
}

// cuts splits a text at its added tokens, following find_matches in Hugging Face tokenizers
// (tokenizer/added_vocabulary.rs).
type cuts struct {
	m     *matcher
	s     string
	trust trust
	plain bool // special tokens are text

	search, from int
	seek         seeker
	pending      bool

	// The current piece: a token if token >= 0, otherwise text.
	start, end, token int

	nextStart, nextEnd, nextToken int
}

// next advances to the next piece and reports whether there is one.
func (c *cuts) next() bool {
	if c.pending {
		c.pending = false
		c.start, c.end, c.token = c.nextStart, c.nextEnd, c.nextToken
		return true
	}
	for {
		start, end, token := c.find()
		if token < 0 {
			break
		}
		c.search = end
		t := &c.m.tokens[token]
		if c.plain && t.Special || t.singleWord && !aloneAt(c.s, start, end) {
			continue
		}
		if t.lStrip {
			start = max(spaceBefore(c.s, start), c.from)
		}
		if t.rStrip {
			// A token that begins inside this space is still found; the space then belongs to both.
			end = spaceAfter(c.s, end)
		}
		if start >= end {
			continue // it is inside such space; the reference panics if it ends before the space does
		}
		from := c.from
		c.from = end
		if from < start {
			c.start, c.end, c.token = from, start, -1
			c.nextStart, c.nextEnd, c.nextToken = start, end, token
			c.pending = true
			return true
		}
		c.start, c.end, c.token = start, end, token
		return true
	}
	if c.from < len(c.s) {
		c.start, c.end, c.token = c.from, len(c.s), -1
		c.from = len(c.s)
		return true
	}
	return false
}

// find returns the next match inside trusted text. It drops the ranges before it.
func (c *cuts) find() (start, end, token int) {
	if c.trust.all {
		return c.m.find(c.s, c.search, len(c.s), &c.seek)
	}
	for len(c.trust.ranges) > 0 {
		r := c.trust.ranges[0]
		lo, hi := max(r.start-c.trust.base, c.search), min(r.end-c.trust.base, len(c.s))
		if lo < hi {
			if start, end, token = c.m.find(c.s, lo, hi, &c.seek); token >= 0 {
				return start, end, token
			}
		}
		if hi == len(c.s) {
			break
		}
		c.trust.ranges = c.trust.ranges[1:]
	}
	return 0, 0, -1
}

// trust specifies the parts of a text in which added tokens are recognized.
type trust struct {
	all    bool
	base   int         // offset of the text in the coordinates of ranges
	ranges []byteRange // sorted, disjoint, not adjacent
}

type byteRange struct{ start, end int }

// at returns the trust for the text from offset i on.
func (t trust) at(i int) trust {
	t.base += i
	if t.all {
		return t
	}
	k := sort.Search(len(t.ranges), func(k int) bool { return t.ranges[k].end > t.base })
	t.ranges = t.ranges[k:]
	return t
}

// whole reports whether a text of n > 0 bytes is trusted from end to end. The first range must be the first one that
// ends inside the text or after it, as is the case after at.
func (t trust) whole(n int) bool {
	return t.all || len(t.ranges) > 0 && t.ranges[0].start <= t.base && t.base+n <= t.ranges[0].end
}

// holds reports whether the bytes [start, end), in the coordinates of ranges, are trusted. An empty range is not.
func (t trust) holds(start, end int) bool {
	k := sort.Search(len(t.ranges), func(k int) bool { return t.ranges[k].end >= end })
	return start < end && k < len(t.ranges) && t.ranges[k].start <= start
}

func aloneAt(s string, start, end int) bool {
	if start > 0 {
		if r, _ := utf8.DecodeLastRuneInString(s[:start]); unidata.IsWord(r) {
			return false
		}
	}
	if end < len(s) {
		if r, _ := utf8.DecodeRuneInString(s[end:]); unidata.IsWord(r) {
			return false
		}
	}
	return true
}

func spaceBefore(s string, i int) int {
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if unidata.Class(r)&unidata.Space == 0 {
			break
		}
		i -= n
	}
	return i
}

func spaceAfter(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unidata.Class(r)&unidata.Space == 0 {
			break
		}
		i += n
	}
	return i
}
