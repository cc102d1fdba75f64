// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/weft-go/weft/tokenizers"
)

// This file is structured as follows: options and construction, the exported methods, lookups, storing after a miss,
// and eviction. Only store links nodes, and only deleted unlinks them.

// Options configures a [Cache]. The zero value is the default.
type Options struct {
	// MaxBytes is the budget for texts, ids and their overhead, without values; 0 means 64 MiB. A prompt of 160 KB
	// takes about 0.4 MB, and each longer version of it adds only its new part.
	MaxBytes int64
	// Spacing is the distance in bytes between cached prefixes; 0 means 4 KiB. A prompt that diverges from a cached one
	// in the middle encodes up to that much again; smaller values cost memory and time on a hit.
	Spacing int
}

const (
	defaultBytes   = 64 << 20
	defaultSpacing = 4 << 10
)

// Cache keeps the ids of prefixes of texts. It is safe for concurrent use by multiple goroutines. Create one with
// [New].
type Cache struct {
	tok     *tokenizers.Tokenizer
	split   *tokenizers.Splitter
	err     error // the reason why nothing is stored
	spacing int
	max     int64
	added   map[uint32]bool // ids of added tokens

	policy   *otter.Cache[uint64, *node]
	encoders sync.Pool // of *encoder
	keys     atomic.Uint64
	age      atomic.Uint32 // number of calls to Trim

	mu    sync.RWMutex     // guards roots
	roots map[string]*node // by namespace: their trees share nothing

	doomMu sync.Mutex
	doomed []*trie // children of nodes that were dropped

	stats counters
}

// New returns a cache for tok. If texts cannot be split for tok ([tokenizers.Tokenizer.Splitter]), the cache encodes
// every text and stores nothing, and [Cache.Err] returns the reason.
func New(tok *tokenizers.Tokenizer, opt *Options) (*Cache, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	if o.MaxBytes < 0 || o.Spacing < 0 {
		return nil, fmt.Errorf("cache: negative option: %+v", o)
	}
	c := &Cache{
		tok:     tok,
		spacing: o.Spacing,
		max:     o.MaxBytes,
		added:   map[uint32]bool{},
		roots:   map[string]*node{},
	}
	for _, a := range tok.AddedTokens() {
		c.added[a.ID] = true
	}
	c.split, c.err = tok.Splitter()
	c.encoders.New = func() any { return new(encoder) }
	if c.spacing == 0 {
		c.spacing = defaultSpacing
	}
	if c.max == 0 {
		c.max = defaultBytes
	}
	var err error
	c.policy, err = otter.New(&otter.Options[uint64, *node]{
		MaximumWeight: uint64(c.max),
		Weigher:       func(_ uint64, n *node) uint32 { return n.cost },
		OnDeletion:    func(e otter.DeletionEvent[uint64, *node]) { c.deleted(e.Value) },
		// Run maintenance in the calling goroutine.
		Executor: func(f func()) { f() },
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return c, nil
}

// Err returns the reason why nothing is stored, or nil if the cache works.
func (c *Cache) Err() error { return c.err }

// A Prefix is a cached prefix of a text.
type Prefix struct {
	Bytes  int
	Tokens int
	Found  bool // it was cached before the call
	n      *node
}

// Value returns the value stored with the prefix, or nil.
func (p Prefix) Value() any {
	if v := p.n.value.Load(); v != nil {
		return *v
	}
	return nil
}

// SetValue stores v with the prefix for all callers until it is evicted; a later value replaces it. v must be safe to
// share, and may depend only on the text of the prefix, on which of it is trusted, and on the namespace. In the list of
// one call each prefix extends the one before it, now and later, so v may describe the part between the two, such as its
// block hashes.
func (p Prefix) SetValue(v any) { p.n.value.Store(&v) }

// AppendEncode appends the IDs of text to dst, as [tokenizers.Tokenizer.AppendEncode] does. Prefixes are shared only by
// calls with the same namespace ns; the time of a call reveals nothing about texts of other namespaces.
//
// It does not allocate if dst has room and the text is cached up to the last position where it can be split.
func (c *Cache) AppendEncode(dst []uint32, ns, text string) []uint32 {
	if c.Err() != nil {
		return c.tok.AppendEncode(dst, text)
	}
	e := c.encoders.Get().(*encoder)
	e.one[0] = tokenizers.Segment{Text: text, Trusted: true}
	dst, _, _ = c.encode(dst, nil, false, nil, 0, ns, e.one[:], e)
	return dst
}

// AppendEncodeSegments is [Cache.AppendEncode] for segments, as
// [tokenizers.Tokenizer.AppendEncodeSegments] does it. Trusted and untrusted text are different texts.
func (c *Cache) AppendEncodeSegments(dst []uint32, ns string, segs []tokenizers.Segment) []uint32 {
	if c.Err() != nil {
		return c.tok.AppendEncodeSegments(dst, segs)
	}
	dst, _, _ = c.encode(dst, nil, false, nil, 0, ns, segs, c.encoders.Get().(*encoder))
	return dst
}

// AppendEncodePrefixes is [Cache.AppendEncodeSegments], and appends the prefixes of the text that are now cached to
// prefixes, shortest first.
func (c *Cache) AppendEncodePrefixes(dst []uint32, prefixes []Prefix, ns string, segs []tokenizers.Segment) ([]uint32, []Prefix) {
	if c.Err() != nil {
		return c.tok.AppendEncodeSegments(dst, segs), prefixes
	}
	dst, prefixes, _ = c.encode(dst, prefixes, true, nil, 0, ns, segs, c.encoders.Get().(*encoder))
	return dst, prefixes
}

// AppendEncodeAfter is [Cache.AppendEncodePrefixes] for a text that begins like an earlier one, whose prefixes c returned.
// It omits the first skipped ids, which equal the ids of the earlier text. Known prefixes are used even
// if they were evicted since, and all returned prefixes may be passed as known ones; each keeps its text and ids in memory.
// The caller guarantees that the first same bytes of both texts are equal; they are not compared, except for provenance.
// text is the joined text of segs, or "" if the caller does not have it, and AppendEncodeAfter joins it where that is needed.
func (c *Cache) AppendEncodeAfter(dst []uint32, prefixes, known []Prefix, same int, ns, text string, segs []tokenizers.Segment) (ids []uint32, all []Prefix, skipped int) {
	if c.Err() != nil {
		return c.tok.AppendEncodeSegments(dst, segs), prefixes, 0
	}
	if known == nil {
		known = []Prefix{}
	}
	e := c.encoders.Get().(*encoder)
	e.joined = text
	return c.encode(dst, prefixes, true, known, same, ns, segs, e)
}

// AppendPrefixes appends the cached prefixes of the text to dst, shortest first, without encoding anything or copying
// IDs. The last one is the longest cached prefix.
func (c *Cache) AppendPrefixes(dst []Prefix, ns string, segs []tokenizers.Segment) []Prefix {
	root := c.root(ns, false)
	if root == nil {
		return dst
	}
	p := prefixEnd{n: root, at: newCursor(segs)}
	p.walk()
	c.touch(p.n)
	return appendPrefixes(dst, p.n, p.n.bytes)
}

// encode implements the exported methods. It returns e to the pool.
func (c *Cache) encode(dst []uint32, prefixes []Prefix, want bool, known []Prefix, same int, ns string, segs []tokenizers.Segment, e *encoder) (ids []uint32, all []Prefix, skipped int) {
	at, after := newCursor(segs), known != nil
	p := prefixEnd{n: c.root(ns, true), at: at, baseAt: at}
	p.follow(known, same, ns)
	p.walk()
	var own *flight
	if p.at.left >= c.spacing {
		own = c.await(&p, e)
	}
	c.touch(p.n)
	c.stats.hitTokens.Add(uint64(p.n.tokens))
	from := deepest(p.n.base, known)
	start := len(dst) - from.tokens // of the text; dst begins with the ids after from
	dst = appendIDs(slices.Grow(dst, p.n.tokens-from.tokens+p.at.left/3+16), p.n, from)
	last := p.n
	if p.at.left > 0 {
		dst, last = c.fill(dst, start, p, own, e, after)
	}
	c.stats.tokens.Add(uint64(len(dst) - start))
	if want {
		prefixes = appendPrefixes(prefixes, last, p.n.bytes)
	}
	c.release(e)
	return dst, prefixes, from.tokens
}

// release returns e to the pool.
func (c *Cache) release(e *encoder) {
	if *e = (encoder{untrusted: e.untrusted[:0], segs: e.segs[:0]}); cap(e.untrusted)+cap(e.segs) < 1<<12 {
		c.encoders.Put(e)
	}
}

// deepest returns the deepest of n and its ancestors that is known, or the root.
func deepest(n *node, known []Prefix) *node {
	i := len(known) - 1
	for ; n.parent != nil; n = n.parent {
		for i >= 0 && known[i].Tokens > n.tokens {
			i--
		}
		if i >= 0 && known[i].n == n {
			break
		}
	}
	return n
}

// root returns the root of a tree, or nil if it does not exist and make is false.
func (c *Cache) root(ns string, create bool) *node {
	c.mu.RLock()
	n := c.roots[ns]
	c.mu.RUnlock()
	if n != nil || !create {
		return n
	}
	n = &node{key: c.keys.Add(1), root: new(strings.Clone(ns))}
	n.base = n
	n.used.Store(c.age.Load())
	n.weigh()
	c.mu.Lock()
	if have := c.roots[ns]; have != nil {
		c.mu.Unlock()
		return have
	}
	c.roots[*n.root] = n
	c.mu.Unlock()
	c.policy.Set(n.key, n)
	c.drain()
	return n
}

// prefixEnd is the end of the cached prefix of a text.
type prefixEnd struct {
	n      *node
	at     cursor // after n
	baseAt cursor // after n.base
}

// follow moves p along known prefixes of a text, whether or not they are still in the tree. The first same bytes are known to be
// equal.
func (p *prefixEnd) follow(known []Prefix, same int, ns string) {
	for i := range known {
		n := known[i].n
		if i == 0 && (n.parent.root == nil || *n.parent.root != ns) || i > 0 && n.parent != p.n {
			return
		}
		if n.bytes > same && p.at.common(n.text) < len(n.text) {
			return
		}
		next, ok := p.at.after(n)
		if !ok {
			return
		}
		if p.n, p.at = n, next; n.base == n {
			p.baseAt = next
		}
	}
}

// walk descends the tree along the text and reports whether p moved.
func (p *prefixEnd) walk() bool {
	moved := false
	for p.at.left > 0 {
		child, next := p.n.find(p.at)
		if child == nil {
			break
		}
		p.n, p.at = child, next
		if child.base == child {
			p.baseAt = next
		}
		moved = true
	}
	return moved
}

// touch records the use of n and its ancestors, and reports it to the policy.
func (c *Cache) touch(n *node) {
	for age := c.age.Load(); n != nil; n = n.parent {
		if n.used.Load() != age {
			n.used.Store(age)
		}
		c.policy.GetIfPresent(n.key)
	}
}

// appendIDs appends the ids up to n after those of its ancestor from.
func appendIDs(dst []uint32, n, from *node) []uint32 {
	start := len(dst) - from.tokens
	dst = dst[:start+n.tokens]
	for ; n != from; n = n.parent {
		copy(dst[start+n.parent.tokens:], n.ids)
	}
	return dst
}

// appendPrefixes appends the prefixes up to n. Those within found bytes were there before.
func appendPrefixes(prefixes []Prefix, n *node, found int) []Prefix {
	start := len(prefixes)
	for ; n.parent != nil; n = n.parent {
		prefixes = append(prefixes, Prefix{Bytes: n.bytes, Tokens: n.tokens, Found: n.bytes <= found, n: n})
	}
	slices.Reverse(prefixes[start:])
	return prefixes
}

// flight is an encoding in progress. Calls that need most of it wait for it.
type flight struct {
	text string // the text after the node
	done chan struct{}
}

// await waits while another call encodes most of the text after p, and then advances p. If no call does, it registers a
// flight for p and returns it. It returns nil if p did not advance or little text remains.
func (c *Cache) await(p *prefixEnd, e *encoder) *flight {
	for {
		var other *flight
		for _, f := range p.n.inFlight() {
			if len(f.text) > 2*p.at.left {
				continue
			}
			if k := p.at.common(f.text); k >= c.spacing && 2*k >= p.at.left {
				other = f
				break
			}
		}
		if other == nil {
			own := &flight{text: e.rest(p.at), done: make(chan struct{})}
			p.n.start(own)
			return own
		}
		<-other.done
		if !p.walk() || p.at.left < c.spacing {
			return nil
		}
	}
}

// inFlight returns the flights of n.
func (n *node) inFlight() []*flight {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flights == nil {
		return nil
	}
	return *n.flights
}

// start adds a flight.
func (n *node) start(f *flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*flight
	if n.flights != nil {
		list = slices.Clip(*n.flights)
	}
	list = append(list, f)
	n.flights = &list
}

// land ends a flight.
func (n *node) land(f *flight) {
	n.mu.Lock()
	var others []*flight
	for _, x := range *n.flights {
		if x != f {
			others = append(others, x)
		}
	}
	n.flights = nil
	if len(others) > 0 {
		n.flights = &others
	}
	n.mu.Unlock()
	close(f.done)
}

// rest returns the text from the cursor on.
func (e *encoder) rest(c cursor) string {
	if len(c.segs) == 0 {
		return ""
	}
	if e.joined != "" {
		return e.joined[len(e.joined)-c.left:]
	}
	if first := c.segs[0].Text[c.off:]; len(first) == c.left {
		return first
	}
	var b strings.Builder
	b.Grow(c.left)
	for c.left > 0 {
		first := c.segs[0].Text[c.off:]
		b.WriteString(first)
		c.advance(len(first))
	}
	return b.String()
}

// fill encodes the text after p and stores new cuts. Regular cuts are each the first cut at least spacing bytes after
// the previous one. The tail is the last cut of the text, so that a growing conversation finds its end. A regular cut
// depends only on the text after the previous regular cut, so that texts with a common prefix share nodes. The parent
// of a regular cut is the previous one; the parent of a tail is the deepest node.
//
// dst[start:] are the ids up to p.n. It returns the deepest node of the text. Nodes that the cache does not admit are left
// out, or, if all is set, outside the tree.
func (c *Cache) fill(dst []uint32, start int, p prefixEnd, own *flight, e *encoder, all bool) ([]uint32, *node) {
	var text string // after p
	if own != nil {
		defer p.n.land(own)
		text = own.text
	} else {
		text = e.rest(p.at)
	}
	// Without a cut after p.n there is nothing to store, and the text before it is not needed.
	e.begin(p.at, 0, text)
	if cut, _ := c.split.Last(e.text, 0, e.untrusted); cut == 0 {
		return e.encode(dst, c, len(e.text)), p.n
	}
	if p.n != p.n.base {
		e.begin(p.baseAt, p.n.bytes-p.n.base.bytes, e.rest(p.baseAt))
	}

	last, from := p.n.base, 0 // the parent of the next regular cut, and its offset in e.text
	tokens := last.tokens
	for last != nil {
		cut, kind := c.split.Next(e.text, max(from+c.spacing, e.from+1), e.untrusted)
		if kind == 0 {
			break
		}
		dst = e.encode(dst, c, cut)
		n := c.node(e, last, from, cut, kind, dst[start+tokens:])
		n.base = n
		last, from, tokens = c.storeOr(n, all), cut, len(dst)-start
	}
	if last == p.n.base { // no new regular cut: p.n is the deepest node
		last, from, tokens = p.n, e.from, p.n.tokens
	}
	if last != nil {
		if cut, kind := c.split.Last(e.text, e.from, e.untrusted); kind != 0 {
			dst = e.encode(dst, c, cut)
			n := c.node(e, last, from, cut, kind, dst[start+tokens:])
			n.base = last.base
			if n = c.storeOr(n, all); n != nil {
				last = n
			}
		}
	}
	dst = e.encode(dst, c, len(e.text))
	c.drain()
	if last == nil {
		last = p.n
	}
	return dst, last
}

// encoder encodes a text piece by piece. The slices are scratch.
type encoder struct {
	joined     string // the whole text of the call, or ""
	text       string
	at         cursor // at text[from]
	from       int
	allTrusted bool
	untrusted  []tokenizers.Offset // of text
	segs       []tokenizers.Segment
	one        [1]tokenizers.Segment
}

// begin sets the text to that from c on, of which the first from bytes are already encoded.
func (e *encoder) begin(c cursor, from int, text string) {
	e.text, e.at, e.from = text, c, from
	e.at.advance(from)
	e.untrusted = e.untrusted[:0]
	for i := 0; c.left > 0; {
		n := len(c.segs[0].Text) - c.off
		if !c.segs[0].Trusted {
			e.untrusted = append(e.untrusted, tokenizers.Offset{Start: i, End: i + n})
		}
		i += n
		c.advance(n)
	}
	e.allTrusted = len(e.untrusted) == 0
}

// encode appends the ids up to offset to.
func (e *encoder) encode(dst []uint32, c *Cache, to int) []uint32 {
	if e.from == to {
		return dst
	}
	if e.allTrusted {
		dst = c.tok.AppendEncode(dst, e.text[e.from:to])
	} else {
		e.segs = e.at.appendSegments(e.segs[:0], to-e.from)
		dst = c.tok.AppendEncodeSegments(dst, e.segs)
		clear(e.segs)
	}
	e.at.advance(to - e.from)
	e.from = to
	return dst
}

// node returns a new node below parent for text[from:to].
func (c *Cache) node(e *encoder, parent *node, from, to int, kind tokenizers.Boundary, ids []uint32) *node {
	n := &node{
		key:    c.keys.Add(1),
		parent: parent,
		text:   strings.Clone(e.text[from:to]),
		ids:    append(make([]uint32, 0, len(ids)), ids...),
		kind:   kind,
		bytes:  parent.bytes + to - from,
		tokens: parent.tokens + len(ids),
		runs:   runsOf(e.untrusted, from, to),
	}
	n.used.Store(c.age.Load())
	n.weigh()
	return n
}

// runsOf returns the provenance of [from, to), or nil if all of it is trusted.
func runsOf(untrusted []tokenizers.Offset, from, to int) []run {
	var runs []run
	add := func(end int, trusted bool) {
		switch k := len(runs) - 1; {
		case k >= 0 && runs[k].end == end || k < 0 && end == 0:
		case k >= 0 && runs[k].trusted == trusted:
			runs[k].end = end
		default:
			runs = append(runs, run{end, trusted})
		}
	}
	first := sort.Search(len(untrusted), func(i int) bool { return untrusted[i].End > from })
	last := first
	for last < len(untrusted) && untrusted[last].Start < to {
		last++
	}
	if first == last {
		return nil
	}
	runs = make([]run, 0, 2*(last-first)+1)
	for _, o := range untrusted[first:last] {
		add(max(o.Start, from)-from, true)
		add(min(o.End, to)-from, false)
	}
	add(to-from, true)
	return slices.Clip(runs)
}

// Trim evicts the prefixes that were not used since Trim was last called. A program that calls it once a minute keeps the
// prefixes used in the last minute, and at most in the last two. O(prefixes).
func (c *Cache) Trim() {
	before := c.age.Add(1) - 1
	for key, n := range c.policy.All() {
		if n.used.Load() < before {
			c.policy.Invalidate(key)
		}
	}
	c.drain()
}

// storeOr is store. If n is not admitted and private is set, it returns n outside the tree instead of nil.
func (c *Cache) storeOr(n *node, private bool) *node {
	if have := c.store(n); have != nil || !private {
		return have
	}
	n.kill()
	return n
}

// store links n below its parent and adds it to the policy. It returns the node in that position, or nil if the parent
// has been evicted.
func (c *Cache) store(n *node) *node {
	have := n.parent.link(n)
	if have != n {
		return have
	}
	c.policy.Set(n.key, n)
	// The parent may have been evicted before n was added to the policy; n would then be unreachable.
	if n.parent.isDead() {
		c.policy.Invalidate(n.key)
		return nil
	}
	return n
}

// deleted removes a node from the tree. The policy calls it, possibly with its lock held.
func (c *Cache) deleted(n *node) {
	if n.parent != nil {
		n.parent.unlink(n)
	} else {
		c.mu.Lock()
		if c.roots[*n.root] == n {
			delete(c.roots, *n.root)
		}
		c.mu.Unlock()
	}
	if kids := n.kill(); kids != nil {
		c.doomMu.Lock()
		c.doomed = append(c.doomed, kids)
		c.doomMu.Unlock()
	}
}

// drain evicts the descendants of evicted nodes, so that they do not use the budget. The caller must not hold a lock.
func (c *Cache) drain() {
	for {
		c.doomMu.Lock()
		doomed := c.doomed
		c.doomed = nil
		c.doomMu.Unlock()
		if len(doomed) == 0 {
			return
		}
		for _, t := range doomed {
			t.each(func(n *node) { c.policy.Invalidate(n.key) })
		}
	}
}
