// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"slices"
	"strings"
)

// Limits of compilation.
const (
	maxSource = 4 << 20 // bytes
	maxNest   = 100     // expressions or statements inside each other
	maxChain  = 1000    // operands of one operator in a row, accesses after each other
)

type parser struct {
	src    string
	toks   []token
	at     int
	nest   int
	soft   bool // inside a condition: an unknown filter is an error only when it is reached
	frames int  // nested scopes around; 0 at the top
	loops  int  // nested loops up to the next macro

	names   map[string]int
	list    []string
	inner   map[int]bool // names that some inner scope sets
	bound   map[int]bool // names that were set before the position, in any scope
	free    map[int]bool // names that were read before they were set
	refs    []*nameExpr
	inside  map[int]bool // names that were read in inner scopes
	top     map[int]bool // names that were read at the top of the template, or set in a condition there, before they were set there
	hidden  []int        // see Template.hidden
	ifs     int          // conditions around at the top
	capture int          // constructs so far that keep their scope
	uses    []use
	gens    bool
}

// use is a load or a store of loop, caller, varargs or kwargs.
type use struct {
	name  string
	store bool
}

func (p *parser) use(name string, store bool) {
	switch name {
	case "loop", "caller", "varargs", "kwargs":
		p.uses = append(p.uses, use{name, store})
	}
}

// used reports whether what was parsed since the given use loads a name. As in Jinja, a load after a store
// does not count, whatever the scope of that is.
func (p *parser) used(since int, name string) bool {
	for _, u := range p.uses[since:] {
		if u.name == name {
			return !u.store
		}
	}
	return false
}

func (p *parser) fail(t token, format string, args ...any) {
	panic(compileError(p.src, t.pos, format, args...))
}

func (p *parser) cur() *token { return &p.toks[p.at] }

func (p *parser) look() *token { return &p.toks[min(p.at+1, len(p.toks)-1)] }

func (p *parser) next() token {
	t := p.toks[p.at]
	if p.at < len(p.toks)-1 {
		p.at++
	}
	return t
}

func (t *token) op(s string) bool   { return t.kind == tokOp && t.text == s }
func (t *token) word(s string) bool { return t.kind == tokName && t.text == s }

func (p *parser) skipOp(s string) bool {
	if p.cur().op(s) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipWord(s string) bool {
	if p.cur().word(s) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(s string) token {
	if !p.cur().op(s) {
		p.fail(*p.cur(), "%s where %q should be", p.cur().describe(), s)
	}
	return p.next()
}

func (p *parser) expect(k tokenKind, what string) token {
	if p.cur().kind != k {
		p.fail(*p.cur(), "%s where %s should be", p.cur().describe(), what)
	}
	return p.next()
}

func (p *parser) deeper() {
	if p.nest++; p.nest > maxNest {
		p.fail(*p.cur(), "nested deeper than %d", maxNest)
	}
}

func (p *parser) chain(n *int) {
	if *n++; *n > maxChain {
		p.fail(*p.cur(), "more than %d operations in a row", maxChain)
	}
}

// id returns the number of a variable's name.
func (p *parser) id(name string) int {
	if i, ok := p.names[name]; ok {
		return i
	}
	i := len(p.list)
	p.names[name] = i
	p.list = append(p.list, name)
	return i
}

// store notes that the current scope sets a name.
func (p *parser) store(id int) {
	p.bound[id] = true
	if p.frames > 0 {
		p.inner[id] = true
		return
	}
	if p.inside[id] && !p.top[id] && p.ifs == 0 {
		p.hidden = append(p.hidden, id)
		p.free[id] = false
	}
	p.top[id] = true
}

// scoped parses with f inside a new scope.
func (p *parser) scoped(f func()) {
	soft := p.soft
	p.soft = false
	p.frames++
	f()
	p.frames--
	p.soft = soft
}

// captured parses the body of a macro, a call block or a generation block.
func (p *parser) captured(f func()) {
	loops := p.loops
	p.loops = 0
	p.capture++
	p.scoped(f)
	p.loops = loops
}

// body parses statements up to one of the end tags, which is left as current token.
func (p *parser) body(open token, ends ...string) []stmt {
	p.skipOp(":")
	p.expect(tokBlockEnd, `"%}"`)
	return p.stmts(open, ends)
}

func (p *parser) close(open token, end string) []stmt {
	b := p.body(open, end)
	p.next()
	return b
}

func (p *parser) stmts(open token, ends []string) (out []stmt) {
	p.deeper()
	defer func() { p.nest-- }()
	var print *outStmt
	flush := func() {
		if print != nil {
			out = append(out, print)
			print = nil
		}
	}
	for {
		t := *p.cur()
		switch t.kind {
		case tokEOF:
			if ends != nil {
				p.fail(open, "%q is not closed: %s is missing", open.text, strings.Join(ends, " or "))
			}
			flush()
			return out
		case tokData:
			p.next()
			if print == nil {
				print = &outStmt{}
			}
			print.lit(t.text)
		case tokVarBegin:
			p.next()
			if print == nil {
				print = &outStmt{}
			}
			e := p.tuple(true, nil)
			p.expect(tokVarEnd, `"}}"`)
			if c, ok := e.(*constExpr); ok {
				if s, ok := c.v.(*Str); ok {
					print.lit(s.s)
					continue
				}
			}
			print.parts = append(print.parts, outPart{e: e})
		case tokBlockBegin:
			flush()
			p.next()
			for _, e := range ends {
				if p.cur().word(e) {
					return out
				}
			}
			if s := p.stmt(); s != nil {
				out = append(out, s)
			}
			p.expect(tokBlockEnd, `"%}"`)
		default:
			p.fail(t, "%s outside a tag", t.describe())
		}
	}
}

func (p *parser) stmt() stmt {
	t := p.expect(tokName, "the name of a tag")
	switch t.text {
	case "for":
		return p.forStmt(t)
	case "if":
		return p.ifStmt(t)
	case "set":
		return p.setStmt(t)
	case "print":
		s := &outStmt{}
		for p.cur().kind != tokBlockEnd {
			if s.parts != nil {
				p.expectOp(",")
			}
			s.parts = append(s.parts, outPart{e: p.expr(true)})
		}
		return s
	case "macro":
		m := &macroStmt{}
		name := p.target(true, false)
		m.macro.name = name.(*nameTarget).name
		m.id = name.(*nameTarget).id
		p.store(m.id)
		p.macro(t, &m.macro, "endmacro")
		return m
	case "call":
		c := &callStmt{}
		p.callBlock(t, c)
		return c
	case "filter":
		f := &filterStmt{}
		f.filter = p.filters(nil, true)
		p.capture++
		p.scoped(func() { f.body = p.close(t, "endfilter") })
		return f
	case "with":
		w := &withStmt{}
		for p.cur().kind != tokBlockEnd {
			if w.targets != nil {
				p.expectOp(",")
			}
			tg := p.target(false, false)
			p.expectOp("=")
			w.values = append(w.values, p.expr(true))
			w.targets = append(w.targets, tg)
		}
		p.scoped(func() {
			for _, tg := range w.targets {
				p.storeTarget(tg)
			}
			w.body = p.close(t, "endwith")
		})
		return w
	case "generation":
		g := &genStmt{}
		p.gens = true
		before := len(p.uses)
		p.captured(func() { g.body = p.close(t, "endgeneration") })
		if p.used(before, "varargs") || p.used(before, "kwargs") {
			g.special, g.varargsID, g.kwargsID = true, p.id("varargs"), p.id("kwargs")
			p.inner[g.varargsID], p.inner[g.kwargsID] = true, true
		}
		return g
	case "do":
		return &doStmt{e: p.tuple(true, nil)}
	case "break", "continue":
		if p.loops == 0 {
			p.fail(t, "%q outside a loop", t.text)
		}
		if t.text == "break" {
			return &jumpStmt{ctlBreak}
		}
		return &jumpStmt{ctlContinue}
	case "block", "extends", "include", "import", "from", "autoescape":
		p.fail(t, "tag %q is not supported in chat templates", t.text)
	}
	p.fail(t, "unknown tag %q", t.text)
	return nil
}

func (p *parser) forStmt(t token) stmt {
	s := &forStmt{pos: t.pos, loopID: p.id("loop")}
	s.target = p.target(false, false, "in")
	if !p.skipWord("in") {
		p.fail(*p.cur(), `%s where "in" should be`, p.cur().describe())
	}
	s.iter = p.tuple(false, func(t *token) bool { return t.word("recursive") })
	p.scoped(func() {
		p.storeTarget(s.target)
		if p.skipWord("if") {
			s.test = p.expr(true)
		}
	})
	s.recursive = p.skipWord("recursive")
	uses, caps := len(p.uses), p.capture
	p.loops++
	p.scoped(func() {
		p.storeTarget(s.target)
		p.inner[s.loopID] = true
		s.body = p.body(t, "endfor", "else")
	})
	p.loops--
	s.extended = s.recursive || p.used(uses, "loop")
	s.fresh = p.capture > caps
	for _, x := range s.body {
		if set, ok := x.(*setStmt); ok {
			_, name := set.target.(*nameTarget)
			set.late = name && countable(set.e, s.loopID)
		}
	}
	if p.next().text == "else" {
		loops := p.loops
		if s.recursive {
			p.loops = 0 // the loop is a function of its own
		}
		p.scoped(func() { s.els = p.close(t, "endfor") })
		p.loops = loops
	}
	return s
}

func (p *parser) ifStmt(t token) stmt {
	soft := p.soft
	p.soft = true
	if p.frames == 0 {
		p.ifs++
		defer func() { p.ifs-- }()
	}
	defer func() { p.soft = soft }()
	s := &ifStmt{}
	for {
		c := p.tuple(false, nil)
		s.conds = append(s.conds, c)
		s.bodies = append(s.bodies, p.body(t, "elif", "else", "endif"))
		switch p.next().text {
		case "elif":
			continue
		case "else":
			s.els = p.close(t, "endif")
		}
		return s
	}
}

func (p *parser) setStmt(t token) stmt {
	tg := p.target(false, true)
	if p.skipOp("=") {
		e := p.tuple(true, nil)
		p.storeTarget(tg)
		return &setStmt{pos: t.pos, target: tg, e: e}
	}
	s := &setBlock{target: tg}
	s.filter = p.filters(nil, false)
	p.capture++
	p.scoped(func() { s.body = p.close(t, "endset") })
	p.storeTarget(tg)
	return s
}

func (p *parser) storeTarget(t target) {
	switch t := t.(type) {
	case *nameTarget:
		p.store(t.id)
	case *tupleTarget:
		for _, x := range t.items {
			p.storeTarget(x)
		}
	}
}

// target parses what can be assigned to.
func (p *parser) target(nameOnly, ns bool, ends ...string) target {
	one := func() target {
		t := *p.cur()
		if t.op("(") && !nameOnly {
			p.deeper()
			p.next()
			tg := p.target(false, ns)
			p.expectOp(")")
			p.nest--
			return tg
		}
		p.expect(tokName, "the name of a variable")
		switch t.text {
		case "true", "false", "none", "True", "False", "None":
			p.fail(t, "cannot assign to %q", t.text)
		}
		if ns && p.skipOp(".") {
			attr := p.expect(tokName, "the name of an attribute")
			return &nsTarget{pos: t.pos, ns: p.name(t), attr: attr.text}
		}
		p.use(t.text, true)
		return &nameTarget{name: t.text, id: p.id(t.text)}
	}
	if nameOnly {
		return one()
	}
	var items []target
	tuple := false
	pos := p.cur().pos
	for {
		if items != nil {
			p.expectOp(",")
		}
		if t := p.cur(); t.kind == tokVarEnd || t.kind == tokBlockEnd || t.op(")") {
			break
		} else if len(ends) > 0 && t.word(ends[0]) {
			break
		}
		items = append(items, one())
		if !p.cur().op(",") {
			break
		}
		tuple = true
	}
	if !tuple {
		if len(items) == 1 {
			return items[0]
		}
		p.fail(*p.cur(), "%s where the name of a variable should be", p.cur().describe())
	}
	return &tupleTarget{pos: pos, items: items}
}

// macro parses signature and body.
func (p *parser) macro(t token, m *macroDef, end string) {
	m.pos = t.pos
	if end == "endmacro" || p.cur().op("(") {
		p.signature(m)
	}
	if end == "endmacro" {
		p.macroBody(t, m, end)
	}
}

func (p *parser) signature(m *macroDef) {
	p.expectOp("(")
	p.captured(func() {
		read := map[int]bool{} // by the defaults so far
		for !p.cur().op(")") {
			if m.params != nil {
				p.expectOp(",")
			}
			n := p.target(true, false).(*nameTarget)
			p.store(n.id)
			refs := len(p.refs)
			var def expr
			if p.skipOp("=") {
				def = p.expr(true)
			} else if k := len(m.defaults); k > 0 && m.defaults[k-1] != nil {
				p.fail(*p.cur(), "parameter without default after one with a default")
			}
			for _, r := range p.refs[refs:] {
				read[r.id] = true
			}
			m.ahead = m.ahead || read[n.id]
			m.params = append(m.params, n.name)
			m.ids = append(m.ids, n.id)
			m.defaults = append(m.defaults, def)
		}
	})
	p.expectOp(")")
}

func (p *parser) macroBody(t token, m *macroDef, end string) {
	m.callerID, m.varargsID, m.kwargsID = p.id("caller"), p.id("varargs"), p.id("kwargs")
	before := len(p.uses)
	p.captured(func() {
		for _, id := range []int{m.callerID, m.varargsID, m.kwargsID} {
			p.store(id)
		}
		m.body = p.close(t, end)
	})
	m.caller, m.varargs, m.kwargs = p.used(before, "caller"), p.used(before, "varargs"), p.used(before, "kwargs")
	for i, n := range m.params {
		switch n {
		case "caller":
			m.explicitCaller = true
			if m.caller && m.defaults[i] == nil {
				p.fail(t, "parameter caller needs a default")
			}
		case "varargs":
			m.varargs = false
		case "kwargs":
			m.kwargs = false
		}
	}
}

func (p *parser) callBlock(t token, c *callStmt) {
	p.macro(t, &c.macro, "endcall")
	e := p.expr(true)
	call, ok := e.(*callExpr)
	if !ok {
		p.fail(t, "call is not followed by the call of a macro")
	}
	if slices.Contains(call.args.names, "caller") {
		p.fail(t, "the call of a call block has an argument caller")
	}
	c.call = call
	p.macroBody(t, &c.macro, "endcall")
}

// expr parses an expression; with cond, one with if.
func (p *parser) expr(cond bool) expr {
	p.deeper()
	defer func() { p.nest-- }()
	if !cond {
		return p.or()
	}
	return p.cond()
}

func (p *parser) cond() expr {
	// What an unknown filter means depends on whether a condition follows, which is not known yet.
	start, soft := p.at, p.soft
	e := p.orSoft(start, soft)
	n := 0
	for p.cur().word("if") {
		p.chain(&n)
		p.next()
		p.soft = true
		c := &condExpr{then: e}
		c.test = p.or()
		if p.skipWord("else") {
			p.deeper()
			c.els = p.cond()
			p.nest--
		}
		p.soft = soft
		e = c
	}
	return e
}

// orSoft parses an operand that is inside a condition if "if" follows it.
func (p *parser) orSoft(start int, soft bool) (e expr) {
	if soft || !p.ifAhead(start) {
		return p.or()
	}
	p.soft = true
	e = p.or()
	p.soft = soft
	return e
}

// ifAhead reports whether a conditional follows in the expression that begins at token i.
func (p *parser) ifAhead(i int) bool {
	depth := 0
	for ; i < len(p.toks); i++ {
		t := &p.toks[i]
		switch t.kind {
		case tokVarEnd, tokBlockEnd, tokEOF:
			return false
		case tokName:
			if depth == 0 && t.text == "if" {
				return true
			}
		case tokOp:
			switch t.text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				if depth--; depth < 0 {
					return false
				}
			case ",", ":", "=":
				if depth == 0 {
					return false
				}
			}
		}
	}
	return false
}

func (p *parser) or() expr {
	e := p.and()
	n := 0
	for p.skipWord("or") {
		p.chain(&n)
		e = &orExpr{e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	n := 0
	for p.skipWord("and") {
		p.chain(&n)
		e = &andExpr{e, p.not()}
	}
	return e
}

func (p *parser) not() expr {
	if p.cur().word("not") {
		p.deeper()
		defer func() { p.nest-- }()
		p.next()
		return &notExpr{p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	e := p.math1()
	var c *compareExpr
	n := 0
	for {
		t := p.cur()
		op := ""
		switch {
		case t.kind == tokOp:
			switch t.text {
			case "==", "!=", "<", ">", "<=", ">=":
				op = t.text
				p.next()
			}
		case t.word("in"):
			op = "in"
			p.next()
		case t.word("not") && p.look().word("in"):
			op = "notin"
			p.next()
			p.next()
		}
		if op == "" {
			break
		}
		p.chain(&n)
		if c == nil {
			c = &compareExpr{pos: t.pos, first: e}
		}
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.math1())
	}
	if c != nil {
		return c
	}
	return e
}

func (p *parser) math1() expr {
	e := p.concat()
	n := 0
	for {
		t := *p.cur()
		if !t.op("+") && !t.op("-") {
			return e
		}
		p.chain(&n)
		p.next()
		e = fold(&binExpr{pos: t.pos, op: t.text[0], l: e, r: p.concat()})
	}
}

func (p *parser) concat() expr {
	e := p.math2()
	if !p.cur().op("~") {
		return e
	}
	c := &concatExpr{items: []expr{e}}
	for p.skipOp("~") {
		c.items = append(c.items, p.math2())
	}
	return c
}

func (p *parser) math2() expr {
	e := p.pow()
	n := 0
	for {
		t := *p.cur()
		var op byte
		switch {
		case t.op("*"), t.op("/"), t.op("%"):
			op = t.text[0]
		case t.op("//"):
			op = 'f'
		default:
			return e
		}
		p.chain(&n)
		p.next()
		e = &binExpr{pos: t.pos, op: op, l: e, r: p.pow()}
	}
}

func (p *parser) pow() expr {
	e := p.unary(true)
	n := 0
	for p.cur().op("**") {
		p.chain(&n)
		t := p.next()
		e = &binExpr{pos: t.pos, op: 'p', l: e, r: p.unary(true)}
	}
	return e
}

func (p *parser) unary(filter bool) expr {
	t := *p.cur()
	var e expr
	if t.op("-") || t.op("+") {
		p.deeper()
		p.next()
		e = &signExpr{pos: t.pos, neg: t.text == "-", e: p.unary(false)}
		p.nest--
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filter {
		e = p.filterExpr(e)
	}
	return e
}

func (p *parser) name(t token) *nameExpr {
	n := &nameExpr{pos: t.pos, name: t.text, id: p.id(t.text)}
	p.refs = append(p.refs, n)
	p.free[n.id] = p.free[n.id] || !p.bound[n.id]
	if p.frames > 0 {
		p.inside[n.id] = true
	} else {
		p.top[n.id] = true
	}
	p.use(t.text, false)
	return n
}

func (p *parser) primary() expr {
	t := *p.cur()
	switch t.kind {
	case tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &constExpr{true}
		case "false", "False":
			return &constExpr{false}
		case "none", "None":
			return &constExpr{nil}
		}
		return p.name(t)
	case tokString:
		s := p.next().text
		for p.cur().kind == tokString {
			s += p.next().text
		}
		return &constExpr{&Str{s: s}}
	case tokInt, tokFloat:
		p.next()
		return &constExpr{t.num}
	case tokOp:
		switch t.text {
		case "(":
			p.next()
			e := p.paren()
			p.expectOp(")")
			return e
		case "[":
			p.next()
			l := &listExpr{}
			for !p.cur().op("]") {
				if l.items != nil {
					p.expectOp(",")
					if p.cur().op("]") {
						break
					}
				}
				l.items = append(l.items, p.expr(true))
			}
			p.expectOp("]")
			return l
		case "{":
			p.next()
			d := &dictExpr{pos: t.pos}
			for !p.cur().op("}") {
				if d.keys != nil {
					p.expectOp(",")
					if p.cur().op("}") {
						break
					}
				}
				d.keys = append(d.keys, p.expr(true))
				p.expectOp(":")
				d.vals = append(d.vals, p.expr(true))
			}
			p.expectOp("}")
			return d
		}
	}
	p.fail(t, "%s where an expression should be", t.describe())
	return nil
}

// paren parses the content of parentheses: an expression or a tuple, perhaps an empty one.
func (p *parser) paren() expr {
	if p.cur().op(")") {
		return &tupleExpr{}
	}
	return p.tuple(true, nil)
}

// tuple parses an expression or several with commas between them.
func (p *parser) tuple(cond bool, end func(*token) bool) expr {
	var items []expr
	tuple := false
	for {
		if items != nil {
			p.expectOp(",")
		}
		if t := p.cur(); t.kind == tokVarEnd || t.kind == tokBlockEnd || t.op(")") || end != nil && end(t) {
			break
		}
		items = append(items, p.expr(cond))
		if !p.cur().op(",") {
			break
		}
		tuple = true
	}
	if tuple {
		return &tupleExpr{items}
	}
	if items == nil {
		p.fail(*p.cur(), "%s where an expression should be", p.cur().describe())
	}
	return items[0]
}

func (p *parser) postfix(e expr) expr {
	for n := 0; ; p.chain(&n) {
		switch t := p.cur(); {
		case t.op("."), t.op("["):
			e = p.subscript(e)
		case t.op("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) filterExpr(e expr) expr {
	for n := 0; ; p.chain(&n) {
		switch t := p.cur(); {
		case t.op("|"):
			e = p.filters(e, false)
		case t.word("is"):
			e = p.test(e)
		case t.op("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) subscript(e expr) expr {
	t := p.next()
	if t.text == "." {
		a := p.next()
		switch a.kind {
		case tokName:
			x := &attrExpr{pos: a.pos, e: e, name: a.text}
			x.str, x.dict = strMethods[a.text], dictMethods[a.text]
			x.item = x.dict == nil && !has(dictMutators, a.text) && !strings.HasPrefix(a.text, "__")
			return x
		case tokInt:
			return &itemExpr{pos: a.pos, e: e, key: &constExpr{a.num}}
		}
		p.fail(a, "%s where the name of an attribute should be", a.describe())
	}
	var items []expr
	for !p.cur().op("]") {
		if items != nil {
			p.expectOp(",")
		}
		items = append(items, p.subscribed())
	}
	p.expectOp("]")
	if len(items) == 1 {
		if s, ok := items[0].(*sliceExpr); ok && s.e == nil {
			s.e, s.pos = e, t.pos
			return s
		}
		x := &itemExpr{pos: t.pos, e: e, key: items[0]}
		if c, ok := items[0].(*constExpr); ok {
			if s, ok := c.v.(*Str); ok {
				x.name, x.named = s.s, true
			}
		}
		return x
	}
	for _, x := range items {
		if s, ok := x.(*sliceExpr); ok && s.e == nil {
			p.fail(t, "a slice among several subscripts")
		}
	}
	return &itemExpr{pos: t.pos, e: e, key: &tupleExpr{items}}
}

func (p *parser) subscribed() expr {
	s := &sliceExpr{}
	if !p.cur().op(":") {
		e := p.expr(true)
		if !p.cur().op(":") {
			return e
		}
		s.lo = e
	}
	p.next()
	bound := func() expr {
		if t := p.cur(); t.op(":") || t.op("]") || t.op(",") {
			return nil
		}
		return p.expr(true)
	}
	s.hi = bound()
	if p.skipOp(":") {
		s.step = bound()
	}
	return s
}

func (p *parser) call(e expr) expr {
	t := p.next()
	c := &callExpr{pos: t.pos, fn: e}
	p.args(t, &c.args)
	return c
}

// args parses arguments after the opening parenthesis.
func (p *parser) args(open token, a *argList) {
	comma := false
	for !p.cur().op(")") {
		if comma {
			p.expectOp(",")
			if p.cur().op(")") {
				break
			}
		}
		ok := true
		switch t := p.cur(); {
		case t.op("*"):
			ok = a.star == nil && a.starstar == nil
			p.next()
			a.star = p.expr(true)
		case t.op("**"):
			ok = a.starstar == nil
			p.next()
			a.starstar = p.expr(true)
		case t.kind == tokName && p.look().op("="):
			ok = a.starstar == nil
			name := p.next().text
			p.next()
			for _, n := range a.names {
				ok = ok && n != name
			}
			a.names = append(a.names, name)
			a.named = append(a.named, p.expr(true))
		default:
			ok = a.star == nil && a.starstar == nil && a.names == nil
			a.pos = append(a.pos, p.expr(true))
		}
		if !ok {
			p.fail(open, "arguments in the wrong order or given twice")
		}
		comma = true
	}
	p.expectOp(")")
}

// filters parses | name(...) as often as it appears; with inline, the first | is left out.
func (p *parser) filters(e expr, inline bool) expr {
	n := 0
	for inline || p.cur().op("|") {
		p.chain(&n)
		if !inline {
			p.next()
		}
		inline = false
		t := p.expect(tokName, "the name of a filter")
		name := p.dotted(t)
		f := &filterExpr{pos: t.pos, name: name, e: e, fn: filters[name]}
		if f.fn == nil && !p.soft {
			p.fail(t, "unknown filter %q", name)
		}
		if p.cur().op("(") {
			p.args(p.next(), &f.args)
		}
		e = f
	}
	return e
}

func (p *parser) dotted(t token) string {
	name := t.text
	for p.skipOp(".") {
		name += "." + p.expect(tokName, "a name").text
	}
	return name
}

func (p *parser) test(e expr) expr {
	p.next()
	negated := p.skipWord("not")
	t := p.expect(tokName, "the name of a test")
	name := p.dotted(t)
	x := &testExpr{pos: t.pos, e: e, name: name, fn: tests[name]}
	if x.fn == nil && !p.soft {
		p.fail(t, "unknown test %q", name)
	}
	switch c := p.cur(); {
	case c.op("("):
		p.args(p.next(), &x.args)
	case c.word("else"), c.word("or"), c.word("and"):
	case c.word("is"):
		p.fail(*c, "a test after a test")
	case c.kind == tokName || c.kind == tokString || c.kind == tokInt || c.kind == tokFloat || c.op("[") || c.op("{"):
		x.args.pos = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &notExpr{x}
	}
	return x
}
