// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"fmt"
	"time"
)

// expr is an expression of a compiled template.
type expr interface{ eval(rt *render) Value }

// ctl specifies how a statement ended.
type ctl uint8

const (
	ctlNone ctl = iota
	ctlBreak
	ctlContinue
)

// stmt is a statement of a compiled template.
type stmt interface{ exec(rt *render) ctl }

// scope holds the variables of a loop's turn, a macro call or a block. The top of the template has none.
type scope struct {
	parent *scope
	ids    []int
	vals   []Value // *setStmt for a late one
	loop   *loop   // of which this is a turn, or nil

	idBuf  [6]int
	valBuf [6]Value
}

func newScope(parent *scope) *scope {
	s := &scope{parent: parent}
	s.ids, s.vals = s.idBuf[:0], s.valBuf[:0]
	return s
}

func (s *scope) set(id int, v Value) {
	for i, x := range s.ids {
		if x == id {
			s.vals[i] = v
			return
		}
	}
	s.ids = append(s.ids, id)
	s.vals = append(s.vals, v)
}

// render is the state of one rendering.
type render struct {
	t     *Template
	out   *sbuf
	scope *scope
	root  []Value
	pos   int
	depth int
	steps int
	alloc int

	maxText, maxAlloc, maxSteps int

	items []Value // what the loops around are at, for messages
	gens  []Range
	now   func() time.Time
	main  *sbuf
	free  []*sbuf

	memo, before *Memo    // to fill, if any; of an earlier rendering, if any
	tracker      *tracker // of the turn that is observed; nil if none is
	track        tracker  // its memory
	kept         kept     // memory of memo's records
}

// Limits of rendering.
const (
	maxDepth   = 200     // macros, recursive loops and nested values
	maxRange   = 100_000 // elements of a range, as in Jinja's sandbox
	defMaxText = 64 << 20
	defSteps   = 20_000_000
	callSteps  = 10 // steps of the call of a macro, by its cost
)

// fail ends the rendering with an error at the current position.
func (rt *render) fail(format string, a ...any) {
	panic(rt.error(fmt.Sprintf(format, a...)))
}

func (rt *render) error(reason string) *Error {
	e := &Error{Name: rt.t.name, Reason: reason}
	e.Line, e.Col = lineCol(rt.t.src, rt.pos)
	for i := len(rt.items) - 1; i >= 0 && e.Origin == ""; i-- {
		e.Origin = element(source(rt.items[i]))
	}
	return e
}

// element returns the path of the element of a list of the request's that o is, or is in.
func element(o *Origin) string {
	for ; o != nil; o = o.parent {
		if o.parent != nil && o.parent.parent == nil && o.index >= 0 {
			return o.Path()
		}
	}
	return ""
}

func (rt *render) limit(format string, a ...any) {
	e := rt.error(fmt.Sprintf(format, a...))
	e.Limit = true
	panic(e)
}

// charge accounts for n bytes of new values, whether they are kept or not.
func (rt *render) charge(n int) {
	if rt.alloc += n; rt.alloc > rt.maxAlloc {
		rt.limit("values made on the way exceed %d bytes", rt.maxAlloc)
	}
}

// step accounts for n turns of a loop, or other work.
func (rt *render) step(n int) {
	if rt.steps += n; rt.steps > rt.maxSteps {
		rt.limit("more than %d steps", rt.maxSteps)
	}
}

func (rt *render) enter() {
	if rt.depth++; rt.depth > maxDepth {
		rt.limit("nested deeper than %d", maxDepth)
	}
}

func (rt *render) leave() { rt.depth-- }

// buf returns an empty buffer. Its str gives it back.
func (rt *render) buf() *sbuf {
	if k := len(rt.free) - 1; k >= 0 {
		w := rt.free[k]
		rt.free = rt.free[:k]
		return w
	}
	return &sbuf{rt: rt}
}

// capture runs f with output into a new text.
func (rt *render) capture(f func()) *Str {
	save := rt.out
	rt.out = rt.buf()
	f()
	s := rt.out.str()
	rt.out = save
	return s
}

func (rt *render) set(id int, v Value) {
	if rt.scope == nil {
		rt.root[id] = v
		return
	}
	rt.scope.set(id, v)
}

func run(rt *render, body []stmt) ctl {
	for _, s := range body {
		if c := s.exec(rt); c != ctlNone {
			return c
		}
	}
	return ctlNone
}

// Statements.

type outPart struct {
	text string
	e    expr // if not nil, instead of text
}

type outStmt struct{ parts []outPart }

func (s *outStmt) lit(text string) {
	if k := len(s.parts) - 1; k >= 0 && s.parts[k].e == nil {
		s.parts[k].text += text
		return
	}
	if text != "" {
		s.parts = append(s.parts, outPart{text: text})
	}
}

func (s *outStmt) exec(rt *render) ctl {
	for i := range s.parts {
		p := &s.parts[i]
		if p.e == nil {
			rt.out.add(p.text, nil)
			continue
		}
		rt.printExpr(p.e)
	}
	return ctlNone
}

type doStmt struct{ e expr }

func (s *doStmt) exec(rt *render) ctl {
	s.e.eval(rt)
	return ctlNone
}

type jumpStmt struct{ c ctl }

func (s *jumpStmt) exec(*render) ctl { return s.c }

type ifStmt struct {
	conds  []expr
	bodies [][]stmt
	els    []stmt
}

func (s *ifStmt) exec(rt *render) ctl {
	for i, c := range s.conds {
		if truth(c.eval(rt)) {
			return run(rt, s.bodies[i])
		}
	}
	return run(rt, s.els)
}

// A target can be assigned to.
type target interface{ assign(rt *render, v Value) }

type nameTarget struct {
	name string
	id   int
}

func (t *nameTarget) assign(rt *render, v Value) { rt.set(t.id, v) }

type nsTarget struct {
	pos  int
	ns   expr
	attr string
}

func (t *nsTarget) assign(rt *render, v Value) {
	if rt.tracker != nil {
		if ns, id := rt.outerNamespace(t.ns); ns != nil {
			rt.tracker.writes(id, t.attr, v)
			ns.set(t.attr, v)
			return
		}
	}
	ns, ok := t.ns.eval(rt).(*namespace)
	if !ok {
		rt.pos = t.pos
		rt.fail("attribute %q set on what is no namespace", t.attr)
	}
	ns.set(t.attr, v)
}

type tupleTarget struct {
	pos   int
	items []target
}

func (t *tupleTarget) assign(rt *render, v Value) {
	rt.pos = t.pos
	vals := rt.list(v)
	if len(vals) != len(t.items) {
		rt.pos = t.pos
		rt.fail("%d values for %d variables", len(vals), len(t.items))
	}
	for i, x := range t.items {
		x.assign(rt, vals[i])
	}
}

type setStmt struct {
	pos    int
	target target
	e      expr
	late   bool // e is evaluated when the variable is read; see late
}

func (s *setStmt) exec(rt *render) ctl {
	if s.late && rt.counts(s.e) {
		s.target.assign(rt, s)
		return ctlNone
	}
	v := s.e.eval(rt)
	s.target.assign(rt, v)
	return ctlNone
}

type setBlock struct {
	target target
	filter expr // its innermost operand is nil
	body   []stmt
}

func (s *setBlock) exec(rt *render) ctl {
	text, c := rt.block(s.body)
	if c != ctlNone {
		return c
	}
	s.target.assign(rt, rt.filtered(s.filter, text))
	return ctlNone
}

// block runs a body in a scope of its own and returns what it printed.
func (rt *render) block(body []stmt) (text *Str, c ctl) {
	save := rt.scope
	rt.scope = newScope(save)
	text = rt.capture(func() { c = run(rt, body) })
	rt.scope = save
	return text, c
}

// filtered applies a chain of filters to a text.
func (rt *render) filtered(f expr, text *Str) Value {
	if f == nil {
		return text
	}
	x := f.(*filterExpr)
	var v Value = text
	if x.e != nil {
		v = rt.filtered(x.e, text)
	}
	return x.apply(rt, v)
}

type filterStmt struct {
	filter expr
	body   []stmt
}

func (s *filterStmt) exec(rt *render) ctl {
	text, c := rt.block(s.body)
	if c != ctlNone {
		return c
	}
	v, ok := rt.filtered(s.filter, text).(*Str)
	if !ok {
		rt.fail("the filters of a filter block do not return a string")
	}
	rt.out.addStr(v)
	return ctlNone
}

type withStmt struct {
	targets []target
	values  []expr
	body    []stmt
}

func (s *withStmt) exec(rt *render) ctl {
	vals := make([]Value, len(s.values))
	for i, e := range s.values {
		vals[i] = e.eval(rt)
	}
	save := rt.scope
	rt.scope = newScope(save)
	for i, t := range s.targets {
		t.assign(rt, vals[i])
	}
	c := run(rt, s.body)
	rt.scope = save
	return c
}

type genStmt struct {
	body                []stmt
	varargsID, kwargsID int
	special             bool // the body mentions varargs or kwargs
}

func (s *genStmt) exec(rt *render) ctl {
	// Hugging Face's tracker counts from where the block's text ends up in the output. A block inside
	// a macro is counted from the start of the macro's own text, which is of no use; such are left out.
	save := rt.scope
	rt.scope = newScope(save)
	if s.special { // the block is a call block inside
		rt.scope.set(s.varargsID, &Tuple{})
		rt.scope.set(s.kwargsID, &Dict{})
	}
	start := rt.out.size()
	run(rt, s.body)
	rt.scope = save
	if rt.out == rt.main {
		rt.gens = append(rt.gens, Range{start, rt.out.size()})
	}
	return ctlNone
}

// macroDef is a macro or the body of a call block.
type macroDef struct {
	pos      int
	name     string
	params   []string
	ids      []int
	defaults []expr // nil where absent
	ahead    bool   // a default reads its own parameter or a later one
	body     []stmt

	callerID, varargsID, kwargsID           int
	caller, varargs, kwargs, explicitCaller bool
}

// macro is a macro with the scope it was made in.
type macro struct {
	def   *macroDef
	scope *scope
}

type macroStmt struct {
	id    int
	macro macroDef
}

func (s *macroStmt) exec(rt *render) ctl {
	rt.set(s.id, &macro{&s.macro, rt.scope})
	return ctlNone
}

type callStmt struct {
	macro macroDef
	call  *callExpr
}

func (s *callStmt) exec(rt *render) ctl {
	v := s.call.call(rt, &macro{&s.macro, rt.scope})
	rt.print(rt.out, v)
	return ctlNone
}

// call runs a macro, as Jinja's Macro.__call__ does.
func (m *macro) call(rt *render, a *args) Value {
	rt.step(callSteps)
	d := m.def
	vals := make([]Value, len(d.params))
	n := copy(vals, a.pos)
	kw := a.kw
	take := func(name string) (Value, bool) {
		for i, k := range kw {
			if k.name == name {
				kw = append(append([]kwarg(nil), kw[:i]...), kw[i+1:]...)
				return k.v, true
			}
		}
		return unset, false
	}
	found := false
	if n == len(d.params) {
		found = d.explicitCaller
	} else {
		for i := n; i < len(d.params); i++ {
			vals[i], _ = take(d.params[i])
			found = found || d.params[i] == "caller"
		}
	}
	var caller Value = unset
	if d.caller && !found {
		c, ok := take("caller")
		if !ok || c == nil {
			c = &undef{hint: "no caller is defined"}
		}
		caller = c
	}
	if len(kw) > 0 && !d.kwargs {
		rt.fail("macro %q takes no argument %q", d.name, kw[0].name)
	}
	if len(a.pos) > len(d.params) && !d.varargs {
		rt.fail("macro %q takes not more than %d arguments", d.name, len(d.params))
	}
	rt.enter()
	pos := rt.pos
	save := rt.scope
	rt.scope = newScope(m.scope)
	if d.ahead {
		for i, id := range d.ids {
			v := vals[i]
			if v == unset {
				v = &undef{name: d.params[i]}
			}
			rt.scope.set(id, v)
		}
	}
	for i, id := range d.ids {
		v := vals[i]
		if v == unset {
			if d.defaults[i] != nil {
				v = d.defaults[i].eval(rt)
			} else {
				v = &undef{hint: "parameter " + quote(d.params[i]) + " was not given"}
			}
		}
		rt.scope.set(id, v)
	}
	if caller != unset {
		rt.scope.set(d.callerID, caller)
	}
	if d.kwargs {
		rest := &Dict{}
		for _, k := range kw {
			rest.Set(&Str{s: k.name}, k.v)
		}
		rt.scope.set(d.kwargsID, rest)
	}
	if d.varargs {
		rt.scope.set(d.varargsID, &Tuple{Items: append([]Value(nil), a.pos[min(len(a.pos), len(d.params)):]...)})
	}
	out := rt.capture(func() { run(rt, d.body) })
	rt.scope = save
	rt.pos = pos
	rt.leave()
	return out
}

type forStmt struct {
	pos       int
	target    target
	iter      expr
	test      expr
	recursive bool
	extended  bool // the body uses loop
	fresh     bool // the body makes things that keep their scope
	loopID    int
	body, els []stmt
}

func (s *forStmt) exec(rt *render) ctl {
	return s.run(rt, s.iter.eval(rt), 0)
}

func (s *forStmt) run(rt *render, over Value, depth int) ctl {
	rt.pos = s.pos
	outer := rt.scope
	l := &loop{node: s, depth0: depth, scope: outer}
	l.over(rt, over)
	if s.test != nil {
		l.filter(rt, s)
	}
	sc := newScope(outer)
	sc.loop = l
	any := false
	k := len(rt.items)
	rt.items = append(rt.items, nil)
	before, next := rt.loopMemos(s, l)
	stale := 0
	for {
		v, ok := l.advance(rt)
		if !ok {
			break
		}
		rt.step(1)
		rt.items[k] = v
		if s.fresh {
			sc = newScope(outer)
			sc.loop = l
		} else {
			clear(sc.vals)
			sc.ids, sc.vals = sc.ids[:0], sc.vals[:0]
		}
		rt.scope = sc
		s.target.assign(rt, v)
		if s.extended {
			sc.set(s.loopID, l)
		}
		var c ctl
		if next == nil {
			c = run(rt, s.body)
		} else {
			c = rt.turn(s, l, v, before, next, &stale)
		}
		if c == ctlBreak {
			break
		}
		// As in Jinja, else also runs after a loop of which no turn came to its end.
		any = any || c == ctlNone
	}
	rt.items = rt.items[:k]
	rt.scope = outer
	if !any && s.els != nil {
		rt.scope = newScope(outer)
		c := run(rt, s.els)
		rt.scope = outer
		return c
	}
	return ctlNone
}

// loop is the variable of that name, and what drives the loop.
type loop struct {
	node  *forStmt
	scope *scope
	items []Value
	at    int
	pull  func() (Value, bool)
	sized bool

	index0  int
	length_ int // -1 if not known yet
	after   Value
	peeked  bool // after is the next item, if it is set
	before  Value
	current Value
	changed []Value
	depth0  int
}

// over begins to iterate over v.
func (l *loop) over(rt *render, v Value) {
	l.index0, l.length_ = -1, -1
	l.before, l.current = unset, unset
	if it, ok := v.(*iterator); ok {
		l.pull = it.next
		return
	}
	if inner, ok := v.(*loop); ok { // a loop iterates over pairs of item and itself
		rt.forget()
		l.pull = func() (Value, bool) {
			x, ok := inner.advance(rt)
			if !ok {
				return nil, false
			}
			return &Tuple{Items: []Value{x, inner}}, true
		}
		return
	}
	l.items = rt.list(v)
	l.sized = true
	l.length_ = len(l.items)
}

// filter keeps the items for which the test of the loop holds.
func (l *loop) filter(rt *render, s *forStmt) {
	fetch := l.pull
	if l.sized {
		items := l.items
		i := 0
		fetch = func() (Value, bool) {
			if i == len(items) {
				return nil, false
			}
			i++
			return items[i-1], true
		}
	}
	l.items, l.sized, l.length_ = nil, false, -1
	outer := l.scope
	l.pull = func() (Value, bool) {
		for {
			v, ok := fetch()
			if !ok {
				return nil, false
			}
			rt.step(1)
			save := rt.scope
			rt.scope = newScope(outer)
			if _, ok := s.target.(*tupleTarget); ok {
				v = &Tuple{Items: rt.list(v)} // Jinja hands on what was unpacked
			}
			s.target.assign(rt, v)
			ok = truth(s.test.eval(rt))
			rt.scope = save
			if ok {
				return v, true
			}
		}
	}
}

func (l *loop) fetch() (Value, bool) {
	if l.pull == nil {
		if l.at == len(l.items) {
			return unset, false
		}
		l.at++
		return l.items[l.at-1], true
	}
	if v, ok := l.pull(); ok {
		return v, true
	}
	return unset, false
}

func (l *loop) peek() Value {
	if !l.peeked {
		l.after, _ = l.fetch()
		l.peeked = l.after != unset
	}
	return l.after
}

func (l *loop) advance(rt *render) (Value, bool) {
	var v Value
	if l.peeked {
		v, l.peeked = l.after, false
	} else {
		var ok bool
		if v, ok = l.fetch(); !ok {
			return nil, false
		}
	}
	l.index0++
	l.before, l.current = l.current, v
	return v, true
}

func (l *loop) length(rt *render) int {
	if l.length_ < 0 {
		var rest []Value
		for {
			v, ok := l.fetch()
			if !ok {
				break
			}
			rt.step(1)
			rest = append(rest, v)
		}
		l.pull, l.items, l.at = nil, rest, 0
		l.length_ = len(rest) + l.index0 + 1
		if l.peeked {
			l.length_++
		}
	}
	return l.length_
}

func (l *loop) attr(rt *render, name string) (Value, bool) {
	v, ok := l.attribute(rt, name)
	if t := rt.tracker; t != nil && t.loop == l {
		t.reads(dependency{what: depLoop, name: name, value: v})
		t.bad = t.bad || name == "cycle" || name == "changed"
	}
	return v, ok
}

func (l *loop) attribute(rt *render, name string) (Value, bool) {
	switch name {
	case "index":
		return integer(int64(l.index0 + 1)), true
	case "index0":
		return integer(int64(l.index0)), true
	case "first":
		return l.index0 == 0, true
	case "last":
		return l.peek() == unset, true
	case "length":
		return int64(l.length(rt)), true
	case "revindex":
		return int64(l.length(rt) - l.index0), true
	case "revindex0":
		return int64(l.length(rt) - l.index0 - 1), true
	case "depth":
		return int64(l.depth0 + 1), true
	case "depth0":
		return int64(l.depth0), true
	case "previtem":
		if l.index0 == 0 || l.before == unset {
			return &undef{hint: "there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		if v := l.peek(); v != unset {
			return v, true
		}
		return &undef{hint: "there is no next item"}, true
	case "cycle":
		return &callable{"cycle", func(rt *render, a *args) Value {
			if len(a.pos) == 0 || len(a.kw) > 0 {
				rt.fail("cycle without items, or with named ones")
			}
			return a.pos[l.index0%len(a.pos)]
		}}, true
	case "changed":
		return &callable{"changed", func(rt *render, a *args) Value {
			if len(a.kw) > 0 {
				rt.fail("changed takes no named arguments")
			}
			if l.changed != nil && rt.sameItems(l.changed, a.pos) {
				return false
			}
			l.changed = append(make([]Value, 0, len(a.pos)+1), a.pos...)
			return true
		}}, true
	}
	return nil, false
}

// recurse renders the loop once more over other items.
func (l *loop) recurse(rt *render, a *args) Value {
	if len(a.pos) != 1 || len(a.kw) > 0 {
		rt.fail("loop takes one argument")
	}
	if !l.node.recursive {
		rt.fail("the loop is not marked recursive")
	}
	rt.forget()
	rt.enter()
	save := rt.scope
	rt.scope = l.scope
	out := rt.capture(func() { l.node.run(rt, a.pos[0], l.depth0+1) })
	rt.scope = save
	rt.leave()
	return out
}

// Expressions.

type constExpr struct{ v Value }

func (e *constExpr) eval(*render) Value { return e.v }

type nameExpr struct {
	pos   int
	name  string
	id    int
	local bool // some scope may set it
}

func (e *nameExpr) eval(rt *render) Value {
	if e.local {
		for s := rt.scope; s != nil; s = s.parent {
			for i, id := range s.ids {
				if id == e.id {
					if late, ok := s.vals[i].(*setStmt); ok {
						s.vals[i] = integer(rt.count(late.e, s.loop))
					}
					return s.vals[i]
				}
			}
		}
	}
	v := rt.root[e.id]
	if rt.tracker != nil {
		rt.tracker.reads(dependency{what: depVariable, id: e.id, value: v})
	}
	if v != unset {
		return v
	}
	return &undef{name: e.name}
}

type listExpr struct{ items []expr }

func evalAll(rt *render, list []expr) []Value {
	rt.charge(48 + 16*len(list))
	out := make([]Value, len(list))
	for i, e := range list {
		out[i] = e.eval(rt)
	}
	return out
}

func (e *listExpr) eval(rt *render) Value { return &List{Items: evalAll(rt, e.items)} }

type tupleExpr struct{ items []expr }

func (e *tupleExpr) eval(rt *render) Value { return &Tuple{Items: evalAll(rt, e.items)} }

type dictExpr struct {
	pos        int
	keys, vals []expr
}

func (e *dictExpr) eval(rt *render) Value {
	rt.charge(96 + 32*len(e.keys))
	d := &Dict{}
	for i := range e.keys {
		k := e.keys[i].eval(rt)
		v := e.vals[i].eval(rt)
		rt.pos = e.pos
		d.put(rt, k, v)
	}
	return d
}

type orExpr struct{ l, r expr }

func (e *orExpr) eval(rt *render) Value {
	if v := e.l.eval(rt); truth(v) {
		return v
	}
	return e.r.eval(rt)
}

type andExpr struct{ l, r expr }

func (e *andExpr) eval(rt *render) Value {
	if v := e.l.eval(rt); !truth(v) {
		return v
	}
	return e.r.eval(rt)
}

type notExpr struct{ e expr }

func (e *notExpr) eval(rt *render) Value { return !truth(e.e.eval(rt)) }

type condExpr struct {
	test, then, els expr
}

func (e *condExpr) eval(rt *render) Value {
	if truth(e.test.eval(rt)) {
		return e.then.eval(rt)
	}
	if e.els == nil {
		return &undef{hint: "the condition is false and there is no else"}
	}
	return e.els.eval(rt)
}

type compareExpr struct {
	pos   int
	first expr
	ops   []string
	rest  []expr
}

func (e *compareExpr) eval(rt *render) Value {
	l := e.first.eval(rt)
	for i, op := range e.ops {
		r := e.rest[i].eval(rt)
		rt.pos = e.pos
		if !rt.compare(op, l, r) {
			return false
		}
		l = r
	}
	return true
}

type concatExpr struct{ items []expr }

func (e *concatExpr) eval(rt *render) Value {
	w := rt.buf()
	for _, x := range e.items {
		rt.print(w, x.eval(rt))
	}
	return w.str()
}

type binExpr struct {
	pos  int
	op   byte // + - * / % f (floor division) p (power)
	l, r expr
}

func (e *binExpr) eval(rt *render) Value {
	l := e.l.eval(rt)
	r := e.r.eval(rt)
	rt.pos = e.pos
	if e.op == '+' {
		return rt.add(l, r)
	}
	return rt.arith(e.op, l, r)
}

// printExpr prints the value of an expression. The strings of a sum are printed one by one, without their
// concatenation.
func (rt *render) printExpr(e expr) {
	if b, ok := e.(*binExpr); !ok || b.op != '+' {
		rt.print(rt.out, e.eval(rt))
		return
	}
	var buf [8]*Str
	size := 0
	parts, v, ok := rt.sum(buf[:0], &size, e)
	if !ok {
		rt.print(rt.out, v)
		return
	}
	for _, s := range parts {
		rt.out.addStr(s)
	}
}

// sum evaluates an expression. If it is a string or a sum of strings, none of them HTML, sum appends these to parts,
// adds their length to size and reports true. Otherwise it returns the value. Limits and errors are those of eval.
func (rt *render) sum(parts []*Str, size *int, e expr) ([]*Str, Value, bool) {
	b, ok := e.(*binExpr)
	if !ok || b.op != '+' {
		v := e.eval(rt)
		if s, ok := v.(*Str); ok && !s.html {
			*size += len(s.s)
			return append(parts, s), nil, true
		}
		return parts, v, false
	}
	parts, l, ok := rt.sum(parts, size, b.l)
	r := b.r.eval(rt)
	rt.pos = b.pos
	if ok {
		if s, ok := r.(*Str); ok && !s.html {
			if n := *size + len(s.s); *size > 0 && len(s.s) > 0 {
				if n > rt.maxText {
					rt.limit("text exceeds %d bytes", rt.maxText)
				}
				rt.charge(n)
			}
			*size += len(s.s)
			return append(parts, s), nil, true
		}
		l = Concat(parts...)
	}
	return parts, rt.add(l, r), false
}

// fold joins literals that are added.
func fold(e *binExpr) expr {
	l, ok1 := e.l.(*constExpr)
	r, ok2 := e.r.(*constExpr)
	if ok1 && ok2 && e.op == '+' {
		a, ok1 := l.v.(*Str)
		b, ok2 := r.v.(*Str)
		if ok1 && ok2 {
			return &constExpr{&Str{s: a.s + b.s}}
		}
	}
	return e
}

type signExpr struct {
	pos int
	neg bool
	e   expr
}

func (e *signExpr) eval(rt *render) Value {
	v := e.e.eval(rt)
	rt.pos = e.pos
	return rt.sign(e.neg, v)
}

type attrExpr struct {
	pos  int
	e    expr
	name string
	str  strMethod
	dict dictMethod
	item bool // no dict has an attribute of that name
}

func (e *attrExpr) eval(rt *render) Value {
	if rt.tracker != nil {
		if ns, id := rt.outerNamespace(e.e); ns != nil {
			rt.tracker.readsAttribute(ns, id, e.name)
			rt.pos = e.pos
			return rt.attr(ns, e.name)
		}
	}
	v := e.e.eval(rt)
	if d, ok := v.(*Dict); ok && e.item {
		if i := d.find(e.name); i >= 0 {
			return d.vals[i]
		}
		return &undef{name: e.name, of: "dict"}
	}
	rt.pos = e.pos
	return rt.attr(v, e.name)
}

type itemExpr struct {
	pos   int
	e     expr
	key   expr
	name  string
	named bool
}

func (e *itemExpr) eval(rt *render) Value {
	if rt.tracker != nil {
		if l, id := rt.outerList(e.e); l != nil {
			k := e.key.eval(rt)
			rt.tracker.readsElement(l, id, k)
			rt.pos = e.pos
			return rt.item(l, k)
		}
	}
	v := e.e.eval(rt)
	if e.named {
		if d, ok := v.(*Dict); ok {
			if i := d.find(e.name); i >= 0 {
				return d.vals[i]
			}
		}
	}
	k := e.key.eval(rt)
	rt.pos = e.pos
	return rt.item(v, k)
}

type sliceExpr struct {
	pos             int
	e, lo, hi, step expr
}

func (e *sliceExpr) eval(rt *render) Value {
	bound := func(x expr) Value {
		if x == nil {
			return nil
		}
		return x.eval(rt)
	}
	v := e.e.eval(rt)
	lo, hi, step := bound(e.lo), bound(e.hi), bound(e.step)
	rt.pos = e.pos
	return rt.slice(v, lo, hi, step)
}

// argList are the expressions of a call's arguments.
type argList struct {
	pos            []expr
	names          []string
	named          []expr
	star, starstar expr
}

// noArgs are the arguments of a call without any. Functions do not change what they are given.
var noArgs args

// make evaluates the arguments of a filter or test.
func (l *argList) make(rt *render) *args {
	if l.none() {
		return &noArgs
	}
	a := new(args)
	l.eval(rt, a, nil)
	return a
}

// none reports whether there are no arguments.
func (l *argList) none() bool {
	return l.pos == nil && l.named == nil && l.star == nil && l.starstar == nil
}

// eval evaluates the arguments. As in Jinja, caller, the body of a call block, is passed before those after **.
func (l *argList) eval(rt *render, a *args, caller *macro) {
	if n := len(l.pos); n > 0 {
		a.pos = make([]Value, n)
		for i, e := range l.pos {
			a.pos[i] = e.eval(rt)
		}
	}
	for i, e := range l.named {
		a.kw = append(a.kw, kwarg{l.names[i], e.eval(rt)})
	}
	if l.star != nil {
		a.pos = append(a.pos, rt.list(l.star.eval(rt))...)
	}
	if caller != nil {
		a.kw = append(a.kw, kwarg{"caller", caller})
	}
	if l.starstar != nil {
		v := l.starstar.eval(rt)
		d, ok := v.(*Dict)
		if !ok {
			rt.fail("argument after ** is not a dict")
		}
		for i, k := range rt.keys(d) {
			s, ok := k.(*Str)
			if !ok {
				rt.fail("key after ** is not a string")
			}
			for _, x := range a.kw {
				if x.name == s.s {
					rt.fail("argument %q is given twice", s.s)
				}
			}
			a.kw = append(a.kw, kwarg{s.s, d.vals[i]})
		}
	}
}

type callExpr struct {
	pos  int
	fn   expr
	args argList
}

func (e *callExpr) eval(rt *render) Value { return e.call(rt, nil) }

// call calls fn; caller is the body of a call block.
func (e *callExpr) call(rt *render, caller *macro) Value {
	var a args
	var fn Value
	if m, ok := e.fn.(*attrExpr); ok && (m.str != nil || m.dict != nil) {
		// A method that is called at once needs no value of its own.
		obj := m.e.eval(rt)
		switch o := obj.(type) {
		case *Str:
			if m.str != nil {
				e.arguments(rt, &a, caller)
				return m.str(rt, o, &a)
			}
		case *Dict:
			if m.dict != nil {
				e.arguments(rt, &a, caller)
				return m.dict(rt, o, &a)
			}
		}
		rt.pos = m.pos
		fn = rt.attr(obj, m.name)
	} else {
		fn = e.fn.eval(rt)
	}
	e.arguments(rt, &a, caller)
	return rt.call(fn, &a)
}

func (e *callExpr) arguments(rt *render, a *args, caller *macro) {
	e.args.eval(rt, a, caller)
	rt.pos = e.pos
}

func (rt *render) call(fn Value, a *args) Value {
	rt.step(1)
	switch f := fn.(type) {
	case *callable:
		return f.fn(rt, a)
	case *macro:
		return f.call(rt, a)
	case *loop:
		return f.recurse(rt, a)
	case *joiner:
		return f.call()
	case *undef:
		e := rt.error(f.message())
		e.Unsafe = f.unsafe
		panic(e)
	}
	rt.fail("%s is not callable", typeName(fn))
	return nil
}

type filterExpr struct {
	pos  int
	name string
	e    expr
	fn   filterFunc
	args argList
}

func (e *filterExpr) eval(rt *render) Value {
	if rt.tracker != nil && (e.name == "length" || e.name == "count") {
		if l, id := rt.outerList(e.e); l != nil {
			rt.tracker.reads(dependency{what: depLength, id: id, value: int64(len(l.Items))})
			return e.apply(rt, l)
		}
	}
	return e.apply(rt, e.e.eval(rt))
}

func (e *filterExpr) apply(rt *render, v Value) Value {
	a := e.args.make(rt)
	rt.pos = e.pos
	if e.fn == nil {
		rt.fail("unknown filter %q", e.name)
	}
	return e.fn(rt, v, a)
}

type testExpr struct {
	pos  int
	name string
	e    expr
	fn   testFunc
	args argList
}

func (e *testExpr) eval(rt *render) Value {
	v := e.e.eval(rt)
	a := e.args.make(rt)
	rt.pos = e.pos
	if e.fn == nil {
		rt.fail("unknown test %q", e.name)
	}
	return e.fn(rt, v, a)
}
