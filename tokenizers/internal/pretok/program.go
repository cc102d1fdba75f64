// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// This file is structured as follows: the instructions, the compiler that makes them of a tree, from the end
// to the beginning, and the analysis that follows: classes of characters that all sets treat alike, what each
// instruction can begin with, and which repeats never need to give anything back.
//
// Every instruction belongs to one sub-program: the main one, or the body of a look-around or of an atomic
// group. From one instruction and one position in the text a sub-program always behaves the same, so a result
// that is known for the two can be used again. Nothing depends on how one got there: a repeat whose body may
// be empty is compiled twice, for "nothing consumed so far" and for "something consumed".

type opcode uint8

const (
	opMatch      opcode = iota // end of the sub-program
	opSet                      // one character of set
	opLoop                     // min to max characters of set, as many as possible
	opAlt                      // alts in their order
	opPeek                     // the next character is in set; with neg, it is not in set or is absent
	opLook                     // the sub-program at sub matches here, or, with neg, does not
	opLookbehind               // one of lookbehind ends here, or, with neg, none does
	opAtomic                   // the sub-program at sub; next if it consumed something, else alts[0]
	opAssert                   // position
)

type inst struct {
	op         opcode
	neg        bool
	possessive bool // opLoop does not backtrack
	role       role
	position   position
	set        int32
	next       int32
	sub        int32
	loop       int32 // opLoop: index of its notes
	min, max   int32
	alts       []int32
	lookbehind [][]int32    // sequences of set numbers, or of ^position
	first      classBits    // classes with which next can begin; opLoop only
	firstAny   bool         // next can match the empty string, or so it seems
	dispatch   *[257]uint64 // opAlt: alternatives by first byte, [256] at the end of the text
}

// role specifies what a sub-program is for.
type role uint8

const (
	roleMain   role = iota
	roleLook        // only the existence of a match matters
	roleAtomic      // the end of the match matters
)

// classBits is a set of character classes.
type classBits []uint64

func (b classBits) has(c uint16) bool { return b[c>>6]>>(c&63)&1 != 0 }

type compiledSet struct {
	ascii [2]uint64
	bits  classBits
}

const (
	maxProgram    = 20000 // instructions
	maxLoop       = 1000  // upper bound of a bounded repeat, which is examined again from every position
	maxLookbehind = 256   // sequences in a look-behind
	maxTables     = 256   // dispatch tables
	maxAlts       = 64
)

type compiler struct {
	expr  string
	prog  []inst
	sets  []charset
	loops int32
	role  role
	word  int32 // the set of \w for \b, or -1
}

func (c *compiler) fail(n *node, reason string) {
	panic(&Error{c.expr, n.at, reason})
}

func (c *compiler) emit(n *node, i inst) int32 {
	if len(c.prog) >= maxProgram {
		c.fail(n, "an expression that is too large")
	}
	i.role = c.role
	c.prog = append(c.prog, i)
	return int32(len(c.prog) - 1)
}

func (c *compiler) set(s charset) int32 {
	for i, t := range c.sets {
		if slices.Equal(s, t) {
			return int32(i)
		}
	}
	c.sets = append(c.sets, s)
	return int32(len(c.sets) - 1)
}

func nullable(n *node) bool {
	switch n.kind {
	case kSet:
		return false
	case kCat:
		return !slices.ContainsFunc(n.subs, func(x *node) bool { return !nullable(x) })
	case kAlt:
		return slices.ContainsFunc(n.subs, nullable)
	case kRepeat:
		return n.min == 0 || nullable(n.subs[0])
	case kAtomic:
		return nullable(n.subs[0])
	}
	return true
}

// node compiles n. It continues at empty if n consumed nothing, else at full.
func (c *compiler) node(n *node, empty, full int32) int32 {
	switch n.kind {
	case kEmpty:
		return empty
	case kSet:
		return c.emit(n, inst{op: opSet, set: c.set(n.set), next: full})
	case kCat:
		return c.cat(n.subs, empty, full)
	case kAlt:
		if s, ok := asSet(n); ok {
			return c.emit(n, inst{op: opSet, set: c.set(s), next: full})
		}
		alts := make([]int32, len(n.subs))
		for i, x := range n.subs {
			alts[i] = c.node(x, empty, full)
		}
		return c.alt(n, alts)
	case kRepeat:
		return c.repeat(n, empty, full)
	case kAtomic:
		if x := n.subs[0]; x.kind == kRepeat && !x.lazy {
			if s, ok := asSet(x.subs[0]); ok {
				return c.loop(x, s, empty, full, true)
			}
		}
		return c.emit(n, inst{op: opAtomic, sub: c.sub(n.subs[0], roleAtomic), next: full, alts: []int32{empty}})
	case kLook:
		if n.lookbehind {
			return c.emit(n, inst{op: opLookbehind, neg: n.neg, lookbehind: c.lookbehind(n.subs[0]), next: empty})
		}
		if s, ok := asSet(n.subs[0]); ok {
			return c.emit(n, inst{op: opPeek, neg: n.neg, set: c.set(s), next: empty})
		}
		return c.emit(n, inst{op: opLook, neg: n.neg, sub: c.sub(n.subs[0], roleLook), next: empty})
	}
	c.useWord(n.position)
	return c.emit(n, inst{op: opAssert, position: n.position, next: empty})
}

func (c *compiler) useWord(p position) {
	if c.word < 0 && (p == wordEdge || p == noWordEdge) {
		c.word = c.set(bareWord())
	}
}

// asSet returns the set of n if n matches exactly one character.
func asSet(n *node) (charset, bool) {
	switch n.kind {
	case kSet:
		return n.set, true
	case kAlt:
		var all charset
		for _, x := range n.subs {
			s, ok := asSet(x)
			if !ok {
				return nil, false
			}
			all = all.union(s)
		}
		return all, true
	}
	return nil, false
}

func (c *compiler) cat(subs []*node, empty, full int32) int32 {
	for i := len(subs) - 1; i >= 0; i-- {
		x := subs[i]
		if empty == full || !nullable(x) {
			empty = c.node(x, full, full)
			full = empty
			continue
		}
		e := c.node(x, empty, full)
		if i > 0 {
			full = c.node(x, full, full)
		}
		empty = e
	}
	return empty
}

func (c *compiler) alt(n *node, alts []int32) int32 {
	for len(alts) > maxAlts {
		k := len(alts) - maxAlts
		rest := c.emit(n, inst{op: opAlt, alts: slices.Clone(alts[k:])})
		alts = append(alts[:k:k], rest)
	}
	return c.emit(n, inst{op: opAlt, alts: alts})
}

// choice is an optional part: first at, then skip, or the other way round.
func (c *compiler) choice(n *node, at, skip int32) int32 {
	if n.lazy {
		at, skip = skip, at
	}
	return c.emit(n, inst{op: opAlt, alts: []int32{at, skip}})
}

func (c *compiler) sub(n *node, r role) int32 {
	saved := c.role
	c.role = r
	end := c.emit(n, inst{op: opMatch})
	pc := c.node(n, end, end)
	c.role = saved
	return pc
}

func (c *compiler) repeat(n *node, empty, full int32) int32 {
	body := n.subs[0]
	if n.max == 0 {
		return empty
	}
	if s, ok := asSet(body); ok && !n.lazy {
		return c.loop(n, s, empty, full, false)
	}
	null := nullable(body)
	if null && (n.min > 1 || n.max > 1) {
		// An empty round ends the repeat in Oniguruma, or not, depending on the size of the body.
		c.fail(n, "a counted repeat of something that may be empty")
	}
	// e and f are where to continue when nothing, or something, was consumed by the repeat and what it belongs
	// to. While the two are equal one copy serves for both.
	e, f := empty, full
	lo := n.min
	if n.max < 0 {
		// The loop proper, where something was consumed: an empty round leaves it.
		loop := c.emit(n, inst{op: opAlt})
		at := c.node(body, full, loop)
		alts := []int32{at, full}
		if n.lazy {
			alts[0], alts[1] = alts[1], alts[0]
		}
		c.prog[loop].alts = alts
		switch {
		case lo == 0 && empty == full:
			return loop
		case lo == 0:
			return c.choice(n, c.node(body, empty, loop), empty)
		case lo == 1 && !null:
			return at
		}
		e, f = loop, loop
		if empty != full && null {
			e = c.choice(n, c.node(body, empty, loop), empty)
		}
	} else {
		for range n.max - n.min {
			if e == f && empty == full {
				e = c.choice(n, c.node(body, e, f), empty)
				f = e
				continue
			}
			e, f = c.choice(n, c.node(body, e, f), empty), c.choice(n, c.node(body, f, f), full)
		}
	}
	for range lo {
		if e == f {
			e = c.node(body, e, e)
			f = e
			continue
		}
		e, f = c.node(body, e, f), c.node(body, f, f)
	}
	return e
}

// loop compiles a greedy repeat of one character.
func (c *compiler) loop(n *node, s charset, empty, full int32, possessive bool) int32 {
	lo, hi := n.min, n.max
	if max(lo, hi) > maxLoop {
		c.fail(n, "a bounded repeat above 1000")
	}
	if hi == 0 {
		return empty
	}
	set := c.set(s)
	i := inst{op: opLoop, set: set, next: full, possessive: possessive, max: int32(hi), loop: c.loops}
	c.loops++
	if hi >= 0 {
		i.min = int32(lo)
	} else {
		i.min = int32(min(lo, 1))
	}
	var pc int32
	switch {
	case lo == 1 && hi == 1:
		c.loops--
		return c.emit(n, inst{op: opSet, set: set, next: full})
	case i.min == 0 && empty != full:
		i.min = 1
		pc = c.emit(n, i)
		if possessive { // no characters only if none can be consumed
			none := c.emit(n, inst{op: opPeek, neg: true, set: set, next: empty})
			return c.emit(n, inst{op: opAlt, alts: []int32{pc, none}})
		}
		return c.emit(n, inst{op: opAlt, alts: []int32{pc, empty}})
	}
	pc = c.emit(n, i)
	if hi < 0 {
		for range lo - 1 {
			pc = c.emit(n, inst{op: opSet, set: set, next: pc})
		}
	}
	return pc
}

// lookbehind lists the sequences that a look-behind may consist of.
func (c *compiler) lookbehind(n *node) [][]int32 {
	var out [][]int32
	switch n.kind {
	case kEmpty:
		out = [][]int32{nil}
	case kSet:
		out = [][]int32{{c.set(n.set)}}
	case kAssert:
		c.useWord(n.position)
		out = [][]int32{{^int32(n.position)}}
	case kCat:
		out = [][]int32{nil}
		for _, x := range n.subs {
			out = c.product(n, out, c.lookbehind(x))
		}
	case kAlt:
		for _, x := range n.subs {
			out = append(out, c.lookbehind(x)...)
		}
	case kRepeat:
		if n.max < 0 || n.max > maxLookbehind {
			c.fail(n, "a look-behind without a bound")
		}
		one := c.lookbehind(n.subs[0])
		some := [][]int32{nil}
		for i := 0; i <= n.max; i++ {
			if i >= n.min {
				out = append(out, some...)
			}
			if i < n.max {
				some = c.product(n, some, one)
			}
		}
	default:
		c.fail(n, "a group of this kind in a look-behind")
	}
	if len(out) > maxLookbehind {
		c.fail(n, "a look-behind with more than 256 forms")
	}
	return out
}

func (c *compiler) product(n *node, a, b [][]int32) [][]int32 {
	if len(a)*len(b) > maxLookbehind {
		c.fail(n, "a look-behind with more than 256 forms")
	}
	var out [][]int32
	for _, x := range a {
		for _, y := range b {
			z := append(slices.Clone(x), y...)
			if len(z) > maxLookbehind {
				c.fail(n, "a look-behind over more than 256 characters")
			}
			out = append(out, z)
		}
	}
	return out
}

func compile(expr string, n *node) (p *Pattern, err error) {
	defer func() {
		if e, ok := recover().(*Error); ok {
			p, err = nil, e
		} else if e != nil {
			panic(e)
		}
	}()
	c := &compiler{expr: expr, word: -1}
	end := c.emit(n, inst{op: opMatch})
	p = &Pattern{expr: expr}
	p.entry = c.node(n, end, end)
	p.prog, p.loops, p.word = c.prog, int(c.loops), c.word
	p.classify(c.sets)
	p.analyse()
	return p, nil
}

// classify numbers the classes of characters that all sets treat alike.
func (p *Pattern) classify(sets []charset) {
	type event struct {
		at  rune
		set int
	}
	var events []event
	for i, s := range sets {
		for _, r := range s {
			events = append(events, event{r[0], i}, event{r[1] + 1, i})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return int(a.at - b.at) })
	in := make([]uint64, (len(sets)+63)/64)
	key := func() string {
		b := make([]byte, 0, 8*len(in))
		for _, x := range in {
			b = binary.LittleEndian.AppendUint64(b, x)
		}
		return string(b)
	}
	ids := map[string]uint16{}
	var members [][]uint64
	type stretch struct {
		from rune
		id   uint16
	}
	var runs []stretch
	for i, at := 0, rune(0); ; {
		for i < len(events) && events[i].at == at {
			s := events[i].set
			in[s>>6] ^= 1 << (s & 63)
			i++
		}
		k := key()
		id, ok := ids[k]
		if !ok {
			id = uint16(len(ids))
			ids[k] = id
			members = append(members, slices.Clone(in))
		}
		runs = append(runs, stretch{at, id})
		if i == len(events) || events[i].at > utf8.MaxRune {
			break
		}
		at = events[i].at
	}

	// Pages of 256 characters; equal ones are kept once.
	seen := map[string]uint16{}
	var page [256]uint16
	var raw [512]byte
	at := 0
	for i := range p.page {
		for k := range page {
			r := rune(i<<8 | k)
			for at+1 < len(runs) && runs[at+1].from <= r {
				at++
			}
			page[k] = runs[at].id
			binary.LittleEndian.PutUint16(raw[2*k:], page[k])
		}
		n, ok := seen[string(raw[:])]
		if !ok {
			n = uint16(len(p.data))
			seen[string(raw[:])] = n
			p.data = append(p.data, page)
		}
		p.page[i] = n
	}
	p.classes = len(members)
	p.sets = make([]compiledSet, len(sets))
	for i := range sets {
		s := &p.sets[i]
		s.bits = make(classBits, (len(members)+63)/64)
		for id, m := range members {
			if m[i>>6]>>(i&63)&1 != 0 {
				s.bits[id>>6] |= 1 << (id & 63)
			}
		}
		for b := range 128 {
			if s.bits.has(p.class(rune(b))) {
				s.ascii[b>>6] |= 1 << (b & 63)
			}
		}
	}
}

// class returns the class of r.
func (p *Pattern) class(r rune) uint16 { return p.data[p.page[uint32(r)>>8]][r&0xFF] }

// starts is the set of characters that an instruction can begin with.
type starts struct {
	bits classBits
	any  bool // it may consume nothing
	done bool
}

func (p *Pattern) analyse() {
	words := (p.classes + 63) / 64
	all := make([]starts, len(p.prog))
	var first func(pc int32) *starts
	first = func(pc int32) *starts {
		f := &all[pc]
		if f.done {
			return f
		}
		f.done = true
		f.bits = make(classBits, words)
		add := func(g *starts) {
			for i, x := range g.bits {
				f.bits[i] |= x
			}
			f.any = f.any || g.any
		}
		i := &p.prog[pc]
		switch i.op {
		case opMatch:
			f.any = true
		case opSet, opLoop:
			copy(f.bits, p.sets[i.set].bits)
			if i.op == opLoop && i.min == 0 {
				add(first(i.next))
			}
		case opAlt:
			for _, a := range i.alts {
				add(first(a))
			}
		case opAtomic:
			add(first(i.sub))
			if f.any {
				for k := range f.bits {
					f.bits[k] = ^uint64(0)
				}
			}
		default:
			add(first(i.next))
			if i.op == opPeek && !i.neg {
				for k := range f.bits {
					f.bits[k] &= p.sets[i.set].bits[k]
				}
				// What follows may be empty, but there is a character.
			}
		}
		return f
	}
	for pc := range p.prog {
		first(int32(pc))
	}

	lead := p.leads(words)
	tables := 0
	for pc := range p.prog {
		switch i := &p.prog[pc]; i.op {
		case opLoop:
			f := &all[i.next]
			i.first, i.firstAny = f.bits, f.any
			i.possessive = i.possessive || p.prog[i.next].op == opMatch || !f.any && !overlap(f.bits, p.sets[i.set].bits)
		case opAlt:
			if tables++; tables > maxTables {
				break
			}
			i.dispatch = new([257]uint64)
			for k, a := range i.alts {
				f := &all[a]
				for b := range 256 {
					if f.any || overlap(f.bits, lead[b]) {
						i.dispatch[b] |= 1 << k
					}
				}
				if f.any {
					i.dispatch[256] |= 1 << k
				}
			}
		}
	}
	f := &all[p.entry]
	p.emptyOK = f.any
	for b := range 256 {
		p.startBytes[b] = f.any || overlap(f.bits, lead[b])
	}
}

func overlap(a, b classBits) bool {
	for i, x := range a {
		if x&b[i] != 0 {
			return true
		}
	}
	return false
}

// leads returns the classes of the characters that can begin with each byte.
func (p *Pattern) leads(words int) [256]classBits {
	var out [256]classBits
	bad := p.class(utf8.RuneError)
	for b := range out {
		out[b] = make(classBits, words)
		c := bad
		if b < utf8.RuneSelf {
			c = p.class(rune(b))
		}
		out[b][c>>6] |= 1 << (c & 63)
	}
	inPage := make([]classBits, len(p.data))
	for i := range p.data {
		inPage[i] = make(classBits, words)
		for _, c := range p.data[i] {
			inPage[i][c>>6] |= 1 << (c & 63)
		}
	}
	for i, n := range p.page {
		// The characters of a page share their lead bytes, except in the pages below U+0800.
		var buf [utf8.UTFMax]byte
		for r := rune(max(i<<8, 0x80)); r < rune(i+1)<<8; r += 0x40 {
			utf8.EncodeRune(buf[:], r)
			if i == 0 || i < 8 {
				for k := r; k < r+0x40; k++ {
					c := p.class(k)
					out[buf[0]][c>>6] |= 1 << (c & 63)
				}
				continue
			}
			for k, x := range inPage[n] {
				out[buf[0]][k] |= x
			}
		}
	}
	return out
}
