// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// maxDigits is the longest integer that Python converts to or from text.
const maxDigits = 4300

func quote(s string) string { return strconv.Quote(s) }

// truth is Python's bool.
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, *undef:
		return false
	case bool:
		return v
	case *Str:
		return v.s != ""
	case int64:
		return v != 0
	case float64:
		return v != 0
	case *num:
		return !v.zero()
	case *List:
		return len(v.Items) > 0
	case *Tuple:
		return len(v.Items) > 0
	case *Dict:
		return len(v.vals) > 0
	case *rng:
		return v.n > 0
	case *view:
		return len(v.d.vals) > 0
	case *loop:
		return true
	}
	return true
}

// print writes str(v) to w.
func (rt *render) print(w *sbuf, v Value) {
	switch v := v.(type) {
	case *Str:
		w.addStr(v)
	case *undef:
	default:
		rt.repr(w, v)
	}
}

// str is Python's str.
func (rt *render) str(v Value) *Str {
	switch v := v.(type) {
	case *Str:
		return v.plain()
	case *undef:
		return &Str{}
	}
	w := rt.buf()
	rt.repr(w, v)
	return w.str()
}

// soft is Python's str, but keeps the mark of HTML.
func (rt *render) soft(v Value) *Str {
	if s, ok := v.(*Str); ok {
		return s
	}
	return rt.str(v)
}

// numText spells a number as Python's repr does.
func (rt *render) numText(n num) string {
	if n.float {
		return floatText(n.f)
	}
	if n.big != nil {
		if n.big.BitLen() > 4*maxDigits {
			rt.fail("integer of more than %d digits", maxDigits)
		}
		s := n.big.String()
		if len(strings.TrimPrefix(s, "-")) > maxDigits {
			rt.fail("integer of more than %d digits", maxDigits)
		}
		return s
	}
	return strconv.FormatInt(n.i, 10)
}

func floatText(f float64) string {
	switch {
	case f != f:
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return jsonval.Repr(f)
}

// inside returns the origin of a value with origin src that is printed as part of in: the origin of the whole,
// except for root lists, whose elements keep their own.
func inside(in, src *Origin) *Origin {
	if in != nil && in.parent != nil || src == nil {
		return in
	}
	return src
}

// repr writes Python's repr of v. Values inside a container of the request have the origin of the container.
func (rt *render) repr(w *sbuf, v Value) { rt.reprOf(w, v, nil) }

func (rt *render) reprOf(w *sbuf, v Value, in *Origin) {
	items := func(open, shut string, list []Value, src *Origin) {
		rt.enter()
		w.add(open, src)
		for i, x := range list {
			if i > 0 {
				w.add(", ", src)
			}
			rt.reprOf(w, x, src)
		}
		w.add(shut, src)
		rt.leave()
	}
	or := func(src *Origin) *Origin { return inside(in, src) }
	switch v := v.(type) {
	case nil:
		w.add("None", in)
	case bool:
		if v {
			w.add("True", in)
		} else {
			w.add("False", in)
		}
	case int64, float64, *num:
		n, text := written(v)
		if text == "" {
			text = rt.numText(n)
		}
		w.add(text, or(n.src))
	case *Str:
		if v.html {
			w.add("Markup(", in)
		}
		reprStr(w, v, or)
		if v.html {
			w.add(")", in)
		}
	case *undef:
		w.add("Undefined", in)
	case *List:
		items("[", "]", v.Items, or(v.src))
	case *Tuple:
		if len(v.Items) == 1 {
			items("(", ",)", v.Items, in)
			return
		}
		items("(", ")", v.Items, in)
	case *Dict:
		src := or(v.src)
		rt.enter()
		w.add("{", src)
		for i, k := range rt.keys(v) {
			if i > 0 {
				w.add(", ", src)
			}
			rt.reprOf(w, k, src)
			w.add(": ", src)
			rt.reprOf(w, v.vals[i], src)
		}
		w.add("}", src)
		rt.leave()
	case *rng:
		s := "range(" + strconv.FormatInt(v.start, 10) + ", " + strconv.FormatInt(v.stop, 10)
		if v.step != 1 {
			s += ", " + strconv.FormatInt(v.step, 10)
		}
		w.add(s+")", in)
	case *view:
		w.add(typeName(v)+"(", in)
		items("[", "]", rt.list(v), or(v.d.src))
		w.add(")", in)
	case *namespace:
		w.add("<Namespace ", in)
		rt.reprOf(w, &v.d, in)
		w.add(">", in)
	case *macro:
		name := "anonymous" // the body of a call block
		if v.def.name != "" {
			name = pyQuote(v.def.name)
		}
		w.add("<Macro "+name+">", in)
	case *loop:
		w.add("<LoopContext "+strconv.Itoa(v.index0+1)+"/"+strconv.Itoa(v.length(rt))+">", in)
	default:
		rt.fail("printing a %s would print an address", typeName(v))
	}
}

func pyQuote(s string) string {
	rt := &render{maxText: math.MaxInt, maxAlloc: math.MaxInt}
	w := &sbuf{rt: rt}
	reprStr(w, &Str{s: s}, func(o *Origin) *Origin { return o })
	return string(w.b)
}

// reprStr writes a string as Python's repr does.
func reprStr(w *sbuf, s *Str, or func(*Origin) *Origin) {
	q := "'"
	if strings.Contains(s.s, "'") && !strings.Contains(s.s, `"`) {
		q = `"`
	}
	first := s.src
	if s.segs != nil {
		first = s.segs[0].Origin
	}
	w.add(q, or(first))
	last := first
	s.pieces(func(t string, src *Origin) {
		src = or(src)
		last = src
		from := 0
		for i := 0; i < len(t); {
			r, n := utf8.DecodeRuneInString(t[i:])
			esc := ""
			switch {
			case r == rune(q[0]) || r == '\\':
				esc = "\\" + string(r)
			case r == '\n':
				esc = `\n`
			case r == '\r':
				esc = `\r`
			case r == '\t':
				esc = `\t`
			case r < 0x20 || r == 0x7f:
				esc = hexEscape('x', r, 2)
			case r >= utf8.RuneSelf && !unicode.IsPrint(r):
				switch {
				case r < 0x100:
					esc = hexEscape('x', r, 2)
				case r < 0x10000:
					esc = hexEscape('u', r, 4)
				default:
					esc = hexEscape('U', r, 8)
				}
			}
			if esc != "" {
				w.add(t[from:i], src)
				w.add(esc, src)
				from = i + n
			}
			i += n
		}
		w.add(t[from:], src)
	})
	w.add(q, or(last))
}

func hexEscape(kind byte, r rune, n int) string {
	s := strconv.FormatInt(int64(r), 16)
	return "\\" + string(kind) + strings.Repeat("0", n-len(s)) + s
}

// keys returns the keys of a dict. The caller must not change them.
func (rt *render) keys(d *Dict) []Value {
	rt.charge(80 * len(d.names))
	return d.keyList()
}

// list returns the elements of an iterable. The caller must not change them.
func (rt *render) list(v Value) []Value {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Tuple:
		return v.Items
	case *Dict:
		return rt.keys(v)
	case *undef:
		return nil
	case *Str:
		rt.step(len(v.s) / 4)
		rt.charge(96 * utf8.RuneCountInString(v.s))
		var out []Value
		v = v.plain() // Markup yields characters that are no Markup
		for i := 0; i < len(v.s); {
			_, n := utf8.DecodeRuneInString(v.s[i:])
			out = append(out, v.slice(i, i+n))
			i += n
		}
		return out
	case *rng:
		rt.step(int(v.n) / 4)
		out := make([]Value, v.n)
		for i := range out {
			out[i] = v.start + int64(i)*v.step
		}
		return out
	case *view:
		switch v.kind {
		case 'k':
			return rt.keys(v.d)
		case 'v':
			return v.d.vals
		}
		rt.charge(80 * len(v.d.vals))
		out := make([]Value, len(v.d.vals))
		for i, k := range rt.keys(v.d) {
			out[i] = &Tuple{Items: []Value{k, v.d.vals[i]}}
		}
		return out
	case *iterator:
		var out []Value
		for {
			x, ok := v.next()
			if !ok {
				return out
			}
			rt.step(1)
			out = append(out, x)
		}
	case *loop:
		var out []Value
		for {
			x, ok := v.advance(rt)
			if !ok {
				return out
			}
			out = append(out, &Tuple{Items: []Value{x, v}})
		}
	}
	rt.fail("%s is not iterable", typeName(v))
	return nil
}

// length is Python's len; ok is false if v has none.
func (rt *render) length(v Value) (n int, ok bool) {
	switch v := v.(type) {
	case *Str:
		return utf8.RuneCountInString(v.s), true
	case *List:
		return len(v.Items), true
	case *Tuple:
		return len(v.Items), true
	case *Dict:
		return len(v.vals), true
	case *undef:
		return 0, true
	case *rng:
		return int(v.n), true
	case *view:
		return len(v.d.vals), true
	case *loop:
		return v.length(rt), true
	}
	return 0, false
}

// equal is Python's ==.
func (rt *render) equal(a, b Value) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case *Str:
		y, ok := b.(*Str)
		return ok && x.s == y.s
	case *undef:
		_, ok := b.(*undef)
		return ok
	case *List:
		y, ok := b.(*List)
		return ok && rt.sameItems(x.Items, y.Items)
	case *Tuple:
		y, ok := b.(*Tuple)
		return ok && rt.sameItems(x.Items, y.Items)
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.vals) != len(y.vals) {
			return false
		}
		rt.enter()
		defer rt.leave()
		for i := range x.vals {
			j := -1
			if s, ok := x.text(i); ok {
				j = y.find(s)
			} else {
				j = y.index(rt, x.keys[i])
			}
			if j < 0 || !rt.equal(x.vals[i], y.vals[j]) {
				return false
			}
		}
		return true
	case *rng:
		y, ok := b.(*rng)
		return ok && x.n == y.n && (x.n == 0 || x.start == y.start && (x.n == 1 || x.step == y.step))
	case *view:
		y, ok := b.(*view)
		if !ok {
			return false
		}
		if x.kind == 'v' || y.kind == 'v' || x.kind != y.kind {
			return x == y
		}
		l, r := rt.list(x), rt.list(y)
		if len(l) != len(r) {
			return false
		}
		for _, v := range l {
			if !rt.in(v, &List{Items: r}) {
				return false
			}
		}
		return true
	}
	if m, ok := number(a); ok {
		n, ok := number(b)
		return ok && cmpNum(m, n) == 0
	}
	return a == b
}

func (rt *render) sameItems(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	rt.enter()
	defer rt.leave()
	rt.step(len(a))
	for i := range a {
		if !rt.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// cmpNum compares numbers; 2 if one is not a number.
func cmpNum(a, b num) int {
	if !a.float && !b.float {
		if a.big == nil && b.big == nil {
			switch {
			case a.i < b.i:
				return -1
			case a.i > b.i:
				return 1
			}
			return 0
		}
		return a.bigint().Cmp(b.bigint())
	}
	if a.float && b.float {
		switch {
		case a.f < b.f:
			return -1
		case a.f > b.f:
			return 1
		case a.f == b.f:
			return 0
		}
		return 2
	}
	if a.float {
		if c := cmpNum(b, a); c != 2 {
			return -c
		}
		return 2
	}
	switch f := b.f; {
	case f != f:
		return 2
	case math.IsInf(f, 0):
		if f > 0 {
			return -1
		}
		return 1
	default:
		x := new(big.Float).SetInt(a.bigint())
		return x.Cmp(big.NewFloat(f))
	}
}

// order compares for <, > and sorting: -1, 0 or 1, and 2 if neither holds.
func (rt *render) order(op string, a, b Value) int {
	if m, ok := number(a); ok {
		if n, ok := number(b); ok {
			return cmpNum(m, n)
		}
	}
	switch x := a.(type) {
	case *Str:
		if y, ok := b.(*Str); ok {
			return strings.Compare(x.s, y.s) // order of code points and of UTF-8 is the same
		}
	case *List:
		if y, ok := b.(*List); ok {
			return rt.orderItems(op, x.Items, y.Items)
		}
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			return rt.orderItems(op, x.Items, y.Items)
		}
	case *undef:
		rt.fail("%s", x.message())
	}
	if u, ok := b.(*undef); ok {
		rt.fail("%s", u.message())
	}
	rt.fail("%q is not supported between %s and %s", op, typeName(a), typeName(b))
	return 2
}

func (rt *render) orderItems(op string, a, b []Value) int {
	rt.enter()
	defer rt.leave()
	for i := range min(len(a), len(b)) {
		if !rt.equal(a[i], b[i]) {
			return rt.order(op, a[i], b[i])
		}
	}
	switch {
	case len(a) < len(b):
		return -1
	case len(a) > len(b):
		return 1
	}
	return 0
}

func (rt *render) compare(op string, a, b Value) bool {
	switch op {
	case "==":
		return rt.equal(a, b)
	case "!=":
		return !rt.equal(a, b)
	case "in":
		return rt.in(a, b)
	case "notin":
		return !rt.in(a, b)
	}
	c := rt.order(op, a, b)
	switch op {
	case "<":
		return c == -1
	case "<=":
		return c == -1 || c == 0
	case ">":
		return c == 1
	}
	return c == 1 || c == 0
}

// in is Python's in.
func (rt *render) in(x, v Value) bool {
	switch c := v.(type) {
	case *Str:
		s, ok := x.(*Str)
		if !ok {
			rt.fail("%s in a string", typeName(x))
		}
		return strings.Contains(c.s, s.s)
	case *Dict:
		return c.index(rt, x) >= 0
	case *view:
		if c.kind == 'k' {
			return c.d.index(rt, x) >= 0
		}
	case *rng:
		n, ok := number(x)
		if !ok {
			return false
		}
		for i := int64(0); i < c.n; i++ {
			if cmpNum(n, num{i: c.start + i*c.step}) == 0 {
				return true
			}
		}
		return false
	}
	list := rt.list(v)
	rt.step(len(list) / 4)
	for _, y := range list {
		if x == y || rt.equal(y, x) {
			return true
		}
	}
	return false
}

// undefined reports an operand that is undefined.
func (rt *render) undefined(vals ...Value) {
	for _, v := range vals {
		if u, ok := v.(*undef); ok {
			rt.fail("%s", u.message())
		}
	}
}

// add is Python's +.
func (rt *render) add(l, r Value) Value {
	switch a := l.(type) {
	case *Str:
		if b, ok := r.(*Str); ok {
			return rt.join(a, b)
		}
	case *List:
		if b, ok := r.(*List); ok {
			rt.charge(16 * (len(a.Items) + len(b.Items)))
			return &List{Items: append(append(make([]Value, 0, len(a.Items)+len(b.Items)), a.Items...), b.Items...)}
		}
	case *Tuple:
		if b, ok := r.(*Tuple); ok {
			rt.charge(16 * (len(a.Items) + len(b.Items)))
			return &Tuple{Items: append(append(make([]Value, 0, len(a.Items)+len(b.Items)), a.Items...), b.Items...)}
		}
	}
	return rt.arith('+', l, r)
}

// join adds two strings; text added to HTML is escaped.
func (rt *render) join(a, b *Str) *Str {
	html := a.html || b.html
	if html {
		a, b = rt.escape(a), rt.escape(b)
	}
	switch {
	case a.s == "":
		if html {
			return b.marked()
		}
		return b
	case b.s == "":
		if html {
			return a.marked()
		}
		return a
	}
	if len(a.s)+len(b.s) > rt.maxText {
		rt.limit("text exceeds %d bytes", rt.maxText)
	}
	rt.charge(len(a.s) + len(b.s))
	out := &Str{s: a.s + b.s, html: html}
	if a.segs == nil && b.segs == nil && a.src == b.src {
		out.src = a.src
		return out
	}
	n := len(a.segs) + len(b.segs) + 2
	segs := make([]Segment, 0, n)
	put := func(end int, src *Origin) {
		if k := len(segs) - 1; k >= 0 && segs[k].Origin == src {
			segs[k].End = end
			return
		}
		segs = append(segs, Segment{end, src})
	}
	if a.segs == nil {
		put(len(a.s), a.src)
	} else {
		segs = append(segs, a.segs...)
	}
	if b.segs == nil {
		put(len(out.s), b.src)
	} else {
		for _, g := range b.segs {
			put(len(a.s)+g.End, g.Origin)
		}
	}
	rt.charge(16 * len(segs))
	out.segs = segs
	return out
}

// repeat is a sequence times a number.
func (rt *render) repeat(v Value, n num) Value {
	if n.float {
		rt.fail("a sequence times a float")
	}
	k := n.i
	if n.big != nil {
		if n.big.Sign() < 0 {
			k = 0
		} else {
			k = math.MaxInt64
		}
	}
	k = max(k, 0)
	items := func(list []Value) []Value {
		if len(list) == 0 {
			return nil
		}
		if k > int64(rt.maxText/16/len(list)) {
			rt.limit("list of more than %d elements", rt.maxText/16)
		}
		rt.charge(16 * int(k) * len(list))
		out := make([]Value, 0, int(k)*len(list))
		for range k {
			out = append(out, list...)
		}
		return out
	}
	switch v := v.(type) {
	case *Str:
		if len(v.s) == 0 {
			return v
		}
		if k > int64(rt.maxText/len(v.s)) {
			rt.limit("text exceeds %d bytes", rt.maxText)
		}
		rt.charge(int(k) * len(v.s))
		if v.segs == nil {
			return &Str{s: strings.Repeat(v.s, int(k)), src: v.src, html: v.html}
		}
		w := rt.buf()
		for range k {
			w.addStr(v)
		}
		out := w.str()
		out.html = v.html
		return out
	case *List:
		return &List{Items: items(v.Items)}
	case *Tuple:
		return &Tuple{Items: items(v.Items)}
	}
	return nil
}

func sequence(v Value) bool {
	switch v.(type) {
	case *Str, *List, *Tuple:
		return true
	}
	return false
}

var opNames = map[byte]string{'f': "//", 'p': "**"}

// arith implements + and the other operators for the remaining types.
func (rt *render) arith(op byte, l, r Value) Value {
	if s, ok := l.(*Str); ok && op == '%' {
		return rt.percent(s, r)
	}
	rt.undefined(l, r)
	a, ok1 := number(l)
	b, ok2 := number(r)
	if op == '*' {
		switch {
		case sequence(l) && ok2:
			return rt.repeat(l, b)
		case sequence(r) && ok1:
			return rt.repeat(r, a)
		}
	}
	if op == '-' {
		_, ok3 := l.(*view)
		_, ok4 := r.(*view)
		if ok3 && ok4 {
			rt.fail("sets are not supported")
		}
	}
	if !ok1 || !ok2 {
		name := opNames[op]
		if name == "" {
			name = string(op)
		}
		rt.fail("%q is not supported between %s and %s", name, typeName(l), typeName(r))
	}
	src := a.src
	if src == nil {
		src = b.src
	}
	if a.float || b.float || op == '/' {
		return rt.floatOp(op, a, b, src).value()
	}
	return rt.intOp(op, a, b, src).value()
}

func (rt *render) double(n num) float64 {
	f, ok := n.float64()
	if !ok && !n.float {
		rt.fail("int too large to convert to float")
	}
	return f
}

func (rt *render) floatOp(op byte, a, b num, src *Origin) num {
	out := num{float: true, src: src}
	if op == '/' && !a.float && !b.float && !b.zero() {
		// Integers are divided exactly, then rounded once.
		const exact = 1 << 53
		if a.big != nil || b.big != nil || a.i > exact || a.i < -exact || b.i > exact || b.i < -exact {
			f, _ := new(big.Rat).SetFrac(a.bigint(), b.bigint()).Float64()
			if math.IsInf(f, 0) {
				rt.fail("integer division result too large for a float")
			}
			out.f = f
			return out
		}
	}
	x, y := rt.double(a), rt.double(b)
	switch op {
	case '+':
		out.f = x + y
	case '-':
		out.f = x - y
	case '*':
		out.f = x * y
	case '/':
		if y == 0 {
			rt.fail("division by zero")
		}
		out.f = x / y
	case 'f', '%':
		if y == 0 {
			rt.fail("division by zero")
		}
		m := math.Mod(x, y)
		d := (x - m) / y
		if m != 0 {
			if (y < 0) != (m < 0) {
				m += y
				d--
			}
		} else {
			m = math.Copysign(0, y)
		}
		if op == '%' {
			out.f = m
			break
		}
		if d != 0 {
			out.f = math.Floor(d)
			if d-out.f > 0.5 {
				out.f++
			}
		} else {
			out.f = math.Copysign(0, x/y)
		}
	case 'p':
		switch {
		case x == 0 && y < 0:
			rt.fail("0.0 cannot be raised to a negative power")
		case x < 0 && y != math.Floor(y) && !math.IsInf(x, 0) && !math.IsInf(y, 0):
			rt.fail("complex numbers are not supported")
		}
		out.f = rt.pow(x, y)
		if math.IsInf(out.f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			rt.fail("result too large")
		}
	}
	return out
}

// pow is x to the power of y, rounded as C's pow does; Go's own may be off by a few units.
func (rt *render) pow(x, y float64) float64 {
	whole := y == math.Floor(y)
	switch {
	case x != x, y != y, math.IsInf(x, 0), math.IsInf(y, 0), x == 0, x == 1, y == 0, y == 1, x == -1 && whole:
		return math.Pow(x, y)
	case y == 0.5:
		return math.Sqrt(x)
	case !whole:
		rt.fail("fractional powers are not supported")
	case math.Abs(y) > 1<<20:
		p := math.Pow(x, y)
		if p != 0 && !math.IsInf(p, 0) {
			rt.fail("powers over 2**20 are not supported")
		}
		return p
	}
	const prec = 256
	r := new(big.Float).SetPrec(prec).SetInt64(1)
	b := new(big.Float).SetPrec(prec).SetFloat64(x)
	for n := uint64(math.Abs(y)); n > 0; n >>= 1 {
		if n&1 == 1 {
			r.Mul(r, b)
		}
		b.Mul(b, b)
	}
	if y < 0 {
		r.Quo(new(big.Float).SetPrec(prec).SetInt64(1), r)
	}
	f, _ := r.Float64()
	return f
}

func (rt *render) intOp(op byte, a, b num, src *Origin) num {
	if a.big == nil && b.big == nil {
		x, y := a.i, b.i
		switch op {
		case '+':
			if s := x + y; (s > x) == (y > 0) {
				return num{i: s, src: src}
			}
		case '-':
			if s := x - y; (s < x) == (y > 0) {
				return num{i: s, src: src}
			}
		case '*':
			if x == 0 || y == 0 {
				return num{src: src}
			}
			if p := x * y; p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64) {
				return num{i: p, src: src}
			}
		case 'f', '%':
			if y == 0 {
				rt.fail("division by zero")
			}
			if y == -1 {
				break
			}
			q, m := x/y, x%y
			if m != 0 && (m < 0) != (y < 0) {
				q--
				m += y
			}
			if op == 'f' {
				return num{i: q, src: src}
			}
			return num{i: m, src: src}
		}
	}
	x, y := a.bigint(), b.bigint()
	z := new(big.Int)
	switch op {
	case '+':
		z.Add(x, y)
	case '-':
		z.Sub(x, y)
	case '*':
		if x.BitLen()+y.BitLen() > 1<<20 {
			rt.limit("integer too large")
		}
		z.Mul(x, y)
	case 'f', '%':
		if y.Sign() == 0 {
			rt.fail("division by zero")
		}
		m := new(big.Int)
		z.QuoRem(x, y, m)
		if m.Sign() != 0 && (m.Sign() < 0) != (y.Sign() < 0) {
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if op == '%' {
			z = m
		}
	case 'p':
		if y.Sign() < 0 {
			if x.Sign() == 0 {
				rt.fail("0 cannot be raised to a negative power")
			}
			return rt.floatOp('p', a, b, src)
		}
		if x.BitLen() > 1 && (y.BitLen() > 20 || int64(x.BitLen())*y.Int64() > 1<<20) {
			rt.limit("integer too large")
		}
		switch {
		case x.BitLen() <= 1 && y.BitLen() > 20: // 0, 1 or -1
			if y.Sign() == 0 || x.Sign() < 0 && y.Bit(0) == 0 {
				z.SetInt64(1)
			} else {
				z.Set(x)
			}
		default:
			z.Exp(x, y, nil)
		}
	}
	return num{big: z, src: src}
}

// sign is unary - and +.
func (rt *render) sign(neg bool, v Value) Value {
	rt.undefined(v)
	n, ok := number(v)
	if !ok {
		rt.fail("a sign before %s", typeName(v))
	}
	if !neg {
		return n.value()
	}
	if n.float {
		n.f = -n.f
		return n.value()
	}
	if n.big == nil && n.i != math.MinInt64 {
		n.i = -n.i
		return n.value()
	}
	n.big = new(big.Int).Neg(n.bigint())
	return n.value()
}

// int returns an integer argument.
func (rt *render) int(v Value, what string) int {
	n, ok := number(v)
	if u, isU := v.(*undef); isU {
		rt.fail("%s", u.message())
	}
	if !ok || n.float {
		rt.fail("%s is %s, not an integer", what, typeName(v))
	}
	if n.big != nil {
		if n.big.Sign() < 0 {
			return math.MinInt32
		}
		return math.MaxInt32
	}
	return int(min(max(n.i, math.MinInt32), math.MaxInt32))
}

// bounds computes the indices of a slice, as Python's slice.indices does.
func (rt *render) bounds(n int, lo, hi, step Value) (start, stop, inc int) {
	inc = 1
	if step != nil {
		if inc = rt.int(step, "step of a slice"); inc == 0 {
			rt.fail("step of a slice is 0")
		}
	}
	lower, upper := 0, n
	if inc < 0 {
		lower, upper = -1, n-1
	}
	fix := func(v Value, def int) int {
		if v == nil {
			return def
		}
		i := rt.int(v, "bound of a slice")
		if i < 0 {
			return max(i+n, lower)
		}
		return min(i, upper)
	}
	if inc < 0 {
		return fix(lo, upper), fix(hi, lower), inc
	}
	return fix(lo, lower), fix(hi, upper), inc
}

func (rt *render) slice(v, lo, hi, step Value) Value {
	pick := func(list []Value) []Value {
		start, stop, inc := rt.bounds(len(list), lo, hi, step)
		if inc == 1 {
			return list[start:max(start, stop):max(start, stop)]
		}
		n := 0
		if inc > 0 && start < stop || inc < 0 && start > stop {
			n = (stop-start)/inc + 1
		}
		out := make([]Value, 0, n)
		for i := start; inc > 0 && i < stop || inc < 0 && i > stop; i += inc {
			out = append(out, list[i])
		}
		return out
	}
	switch x := v.(type) {
	case *Str:
		return rt.sliceStr(x, lo, hi, step)
	case *List:
		rt.charge(16 * len(x.Items) / 4)
		return &List{Items: pick(x.Items)}
	case *Tuple:
		return &Tuple{Items: pick(x.Items)}
	case *rng:
		start, stop, inc := rt.bounds(int(x.n), lo, hi, step)
		return newRange(x.start+int64(start)*x.step, x.start+int64(stop)*x.step, x.step*int64(inc))
	case *undef:
		rt.fail("%s", x.message())
	}
	rt.fail("%s cannot be sliced", typeName(v))
	return nil
}

func (rt *render) sliceStr(s *Str, lo, hi, step Value) *Str {
	if ascii(s.s) {
		start, stop, inc := rt.bounds(len(s.s), lo, hi, step)
		if inc == 1 {
			return s.slice(start, stop)
		}
		w := rt.buf()
		for i := start; inc > 0 && i < stop || inc < 0 && i > stop; i += inc {
			w.addSlice(s, i, i+1)
		}
		out := w.str()
		out.html = s.html
		return out
	}
	n := utf8.RuneCountInString(s.s)
	start, stop, inc := rt.bounds(n, lo, hi, step)
	if inc == 1 {
		if start >= stop {
			return &Str{html: s.html}
		}
		a := runeOffset(s.s, start)
		return s.slice(a, a+runeOffset(s.s[a:], stop-start))
	}
	rt.charge(8 * n)
	at := make([]int, 0, n+1)
	for i := range s.s {
		at = append(at, i)
	}
	at = append(at, len(s.s))
	w := rt.buf()
	for i := start; inc > 0 && i < stop || inc < 0 && i > stop; i += inc {
		w.addSlice(s, at[i], at[i+1])
	}
	out := w.str()
	out.html = s.html
	return out
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// runeOffset returns the offset of the n-th character.
func runeOffset(s string, n int) int {
	if n <= 0 {
		return 0
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func newRange(start, stop, step int64) *rng {
	r := &rng{start: start, stop: stop, step: step}
	if step > 0 && start < stop {
		r.n = (stop-start-1)/step + 1
	} else if step < 0 && start > stop {
		r.n = (start-stop-1)/-step + 1
	}
	return r
}
