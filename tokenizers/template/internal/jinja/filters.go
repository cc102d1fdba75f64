// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filterFunc applies a filter to v.
type filterFunc func(rt *render, v Value, a *args) Value

var filters map[string]filterFunc

// path splits an attribute argument at its dots; parts of digits are indices.
func (rt *render) path(attr Value) []Value {
	switch x := attr.(type) {
	case nil:
		return nil
	case *Str:
		var out []Value
		for p := range strings.SplitSeq(x.s, ".") {
			if i, err := strconv.ParseInt(p, 10, 64); err == nil && p[0] != '-' && p[0] != '+' {
				out = append(out, i)
			} else {
				out = append(out, &Str{s: p})
			}
		}
		return out
	}
	return []Value{attr}
}

// follow looks up a path; what is undefined on the way becomes def, if that is not nil.
func (rt *render) follow(v Value, path []Value, def Value) Value {
	for _, p := range path {
		v = rt.item(v, p)
		if _, ok := v.(*undef); ok && def != nil {
			v = def
		}
	}
	return v
}

func opt(v Value, def Value) Value {
	if v == unset {
		return def
	}
	return v
}

// folded is v in lower case if it is a string.
func (rt *render) folded(v Value) Value {
	if s, ok := v.(*Str); ok {
		return rt.lower(s)
	}
	return v
}

// sorted sorts a copy of items by keys, stably.
func (rt *render) sorted(items []Value, key func(Value) Value, reverse bool) []Value {
	type pair struct{ k, v Value }
	ps := make([]pair, len(items))
	for i, v := range items {
		ps[i] = pair{key(v), v}
	}
	rt.step(len(items))
	rt.charge(32 * len(items))
	less := func(a, b pair) int {
		rt.step(1)
		c := rt.order("<", a.k, b.k)
		if c == 2 {
			return 0
		}
		return c
	}
	if reverse {
		slices.Reverse(ps)
	}
	slices.SortStableFunc(ps, less)
	if reverse {
		slices.Reverse(ps)
	}
	out := make([]Value, len(ps))
	for i, p := range ps {
		out[i] = p.v
	}
	return out
}

// reversed is the argument reverse of sorted, which has to be an integer.
func (rt *render) reversed(v Value) bool {
	return v != unset && rt.int(v, "reverse") != 0
}

func generator(what string, next func() (Value, bool)) *iterator { return &iterator{what, next} }

// each returns a function that steps through an iterable.
func (rt *render) each(v Value) func() (Value, bool) {
	if it, ok := v.(*iterator); ok {
		return it.next
	}
	if l, ok := v.(*loop); ok {
		return func() (Value, bool) {
			x, ok := l.advance(rt)
			if !ok {
				return nil, false
			}
			return &Tuple{Items: []Value{x, l}}, true
		}
	}
	var items []Value
	started := false
	i := 0
	return func() (Value, bool) {
		if !started {
			items, started = rt.list(v), true
		}
		if i == len(items) {
			return nil, false
		}
		i++
		return items[i-1], true
	}
}

// selector is select and reject, with attr also selectattr and rejectattr.
func selector(name string, attr, want bool) filterFunc {
	return func(rt *render, v Value, a *args) Value {
		pos := a.pos
		ready := false
		var path []Value
		var test testFunc
		var rest args
		var next func() (Value, bool)
		// Errors wait until the generator is read, as in Python.
		return generator("generator", func() (Value, bool) {
			if !truth(v) {
				return nil, false
			}
			if !ready {
				if attr {
					if len(pos) == 0 {
						rt.fail("%s needs the name of an attribute", name)
					}
					path = rt.path(pos[0])
					pos = pos[1:]
				}
				if len(pos) > 0 {
					n, ok := pos[0].(*Str)
					if ok {
						test = tests[n.s]
					}
					if test == nil {
						rt.fail("%s: unknown test %q", name, rt.str(pos[0]).s)
					}
					rest = args{pos: pos[1:], kw: a.kw}
				}
				next = rt.each(v)
				ready = true
			}
			for {
				x, ok := next()
				if !ok {
					return nil, false
				}
				rt.step(1)
				y := x
				if attr {
					y = rt.follow(x, path, nil)
				}
				ok = false
				if test != nil {
					ok = truth(test(rt, y, &args{pos: rest.pos, kw: rest.kw}))
				} else {
					ok = truth(y)
				}
				if ok == want {
					return x, true
				}
			}
		})
	}
}

func filterMap(rt *render, v Value, a *args) Value {
	var f func(Value) Value
	var next func() (Value, bool)
	prepare := func() {
		if len(a.pos) == 0 && len(a.kw) > 0 {
			var attr, def Value = unset, nil
			for _, k := range a.kw {
				switch k.name {
				case "attribute":
					attr = k.v
				case "default":
					def = k.v
				default:
					rt.fail("map takes no argument %q", k.name)
				}
			}
			if attr == unset {
				rt.fail("map needs a filter or an attribute")
			}
			path := rt.path(attr)
			f = func(x Value) Value { return rt.follow(x, path, def) }
			return
		}
		if len(a.pos) == 0 {
			rt.fail("map needs a filter or an attribute")
		}
		n, ok := a.pos[0].(*Str)
		var fn filterFunc
		if ok {
			fn = filters[n.s]
		}
		if fn == nil {
			rt.fail("map: unknown filter %q", rt.str(a.pos[0]).s)
		}
		f = func(x Value) Value { return fn(rt, x, &args{pos: a.pos[1:], kw: a.kw}) }
	}
	return generator("generator", func() (Value, bool) {
		if !truth(v) {
			return nil, false
		}
		if f == nil {
			prepare()
			next = rt.each(v)
		}
		x, ok := next()
		if !ok {
			return nil, false
		}
		rt.step(1)
		return f(x), true
	})
}

func extremum(name string, sign int) filterFunc {
	return func(rt *render, v Value, a *args) Value {
		p := a.bind(rt, name, true, "case_sensitive", "attribute")
		path := rt.path(opt(p[1], nil))
		items := rt.list(v)
		if len(items) == 0 {
			return &undef{hint: "no aggregated item, sequence was empty"}
		}
		key := func(x Value) Value {
			x = rt.follow(x, path, nil)
			if p[0] == unset || !truth(p[0]) {
				x = rt.folded(x)
			}
			return x
		}
		best, bestKey := items[0], key(items[0])
		for _, x := range items[1:] {
			rt.step(1)
			k := key(x)
			if c := rt.order("<", k, bestKey); c == sign {
				best, bestKey = x, k
			}
		}
		return best
	}
}

func filterRound(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "round", true, "precision", "method")
	method := rt.str(opt(p[1], &Str{s: "common"})).s
	if method != "common" && method != "ceil" && method != "floor" {
		rt.fail("round: method is not common, ceil or floor")
	}
	rt.undefined(v)
	n, ok := number(v)
	if !ok {
		rt.fail("round: %s is not a number", typeName(v))
	}
	prec := rt.int(opt(p[0], int64(0)), "precision")
	if method != "common" {
		// As in Jinja: func(value * 10**precision) / 10**precision.
		scale := rt.intOp('p', num{i: 10}, num{i: int64(prec)}, nil)
		var x num
		if n.float || scale.float {
			x = rt.floatOp('*', n, scale, nil)
			if x.f-x.f != 0 {
				rt.fail("round: not a finite number")
			}
			f := math.Floor(x.f)
			if method == "ceil" {
				f = math.Ceil(x.f)
			}
			b, _ := big.NewFloat(f).Int(nil)
			x = num{big: b}
		} else {
			x = rt.intOp('*', n, scale, nil)
		}
		out := rt.floatOp('/', x, scale, n.src)
		return out.value()
	}
	if !n.float {
		if prec >= 0 {
			return n.value()
		}
		if prec < -400 {
			return num{src: n.src}.value()
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-prec)), nil)
		q, m := new(big.Int).DivMod(n.bigint(), unit, new(big.Int))
		twice := new(big.Int).Lsh(m, 1)
		if c := twice.Cmp(unit); c > 0 || c == 0 && q.Bit(0) == 1 {
			q.Add(q, big.NewInt(1))
		}
		return num{big: q.Mul(q, unit), src: n.src}.value()
	}
	if n.f-n.f != 0 || prec > 340 {
		return n.value()
	}
	out := num{float: true, src: n.src}
	if prec >= 0 {
		out.f, _ = strconv.ParseFloat(strconv.FormatFloat(n.f, 'f', prec, 64), 64)
		return out.value()
	}
	// Digits before the point: half to even on the exact decimal value.
	exact := new(big.Rat).SetFloat64(n.f)
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(min(-prec, 400))), nil)
	exact.Quo(exact, new(big.Rat).SetInt(unit))
	q := roundRat(exact)
	out.f, _ = new(big.Float).SetInt(q.Mul(q, unit)).Float64()
	if out.f == 0 {
		out.f = math.Copysign(0, n.f)
	}
	return out.value()
}

// roundRat rounds half to even.
func roundRat(x *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(x.Num(), x.Denom(), new(big.Int))
	if c := new(big.Int).Lsh(m, 1).Cmp(x.Denom()); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// parseInt is int(text, base); ok is false if the text is not an integer.
func parseInt(s string, base int) (*big.Int, bool) {
	s = strings.TrimFunc(s, isSpace)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = "-"
		}
		s = s[1:]
	}
	prefix := func(b int, p string) {
		if (base == b || base == 0) && len(s) > 2 && s[0] == '0' && s[1]|0x20 == p[0] {
			s = strings.TrimPrefix(s[2:], "_")
			base = b
		}
	}
	prefix(16, "x")
	prefix(8, "o")
	prefix(2, "b")
	if base == 0 {
		base = 10
		if len(s) > 1 && s[0] == '0' && strings.Trim(s, "0_") != "" {
			return nil, false
		}
	}
	if s == "" || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") || base < 2 || base > 36 {
		return nil, false
	}
	s = strings.ReplaceAll(s, "_", "")
	s = asciiDigits(s)
	if len(s) > maxDigits && base&(base-1) != 0 {
		return nil, false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !decimal(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return nil, false
		}
	}
	return new(big.Int).SetString(sign+s, base)
}

// asciiDigits makes decimal digits of all scripts ASCII.
func asciiDigits(s string) string {
	if ascii(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.IsDigit(r) {
			return r
		}
		for i := rune(0); i < 10; i++ { // the digits of a script are consecutive, beginning with zero
			if !unicode.IsDigit(r - i - 1) {
				return '0' + i
			}
		}
		return '0'
	}, s)
}

// parseFloat is float(text).
func parseFloat(s string) (float64, bool) {
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	if s == "" || s[0] == '_' || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "inf", "infinity", "nan":
		if len(s) > 1 && (s[0] == '+' || s[0] == '-') && (s[1] == '+' || s[1] == '-') {
			return 0, false
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			f = math.NaN() // a signed one
		}
		return f, true
	}
	if strings.ContainsAny(s, "xXpPiInN") {
		return 0, false
	}
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '_' && (!decimal(s[i-1]) || !decimal(s[i+1])) {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func filterInt(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "int", true, "default", "base")
	def := opt(p[0], int64(0))
	fromFloat := func(f float64, src *Origin) Value {
		if f-f != 0 {
			return def
		}
		b, _ := big.NewFloat(f).Int(nil)
		return num{big: b, src: src}.value()
	}
	switch x := v.(type) {
	case *Str:
		base := 10
		if p[1] != unset {
			base = rt.int(p[1], "base")
			if base != 0 && (base < 2 || base > 36) {
				base = 1
			}
		}
		if n, ok := parseInt(x.s, base); ok {
			return num{big: n, src: x.Source()}.value()
		}
		if f, ok := parseFloat(x.s); ok {
			return fromFloat(f, x.Source())
		}
		return def
	case *undef:
		rt.fail("%s", x.message())
	}
	n, ok := number(v)
	if !ok {
		return def
	}
	if n.float {
		if n.f != n.f {
			return def
		}
		if math.IsInf(n.f, 0) {
			rt.fail("int: cannot convert float infinity to integer")
		}
		return fromFloat(n.f, n.src)
	}
	return n.value()
}

func filterFloat(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "float", true, "default")
	def := opt(p[0], 0.0)
	switch x := v.(type) {
	case *Str:
		if f, ok := parseFloat(x.s); ok {
			return num{float: true, f: f, src: x.Source()}.value()
		}
		return def
	case *undef:
		rt.fail("%s", x.message())
	}
	if n, ok := number(v); ok {
		return num{float: true, f: rt.double(n), src: n.src}.value()
	}
	return def
}

func filterIndent(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "indent", true, "width", "first", "blank")
	rt.undefined(v)
	s := rt.string(v, "value of indent")
	var pad *Str
	if w, ok := opt(p[0], int64(4)).(*Str); ok {
		pad = w
	} else {
		pad = &Str{s: strings.Repeat(" ", min(max(rt.int(opt(p[0], int64(4)), "width"), 0), 1<<16))}
	}
	nl := &Str{s: "\n"}
	lines := rt.lines(rt.join(s, nl), false)
	w := rt.buf()
	if p[1] != unset && truth(p[1]) {
		w.addStr(pad)
	}
	blank := p[2] != unset && truth(p[2])
	for i, l := range lines {
		l := l.(*Str)
		if i > 0 {
			w.addStr(nl)
			if blank || l.s != "" {
				w.addStr(pad)
			}
		}
		w.addStr(l)
	}
	out := w.str()
	out.html = s.html
	return out
}

func filterTruncate(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "truncate", true, "length", "killwords", "end", "leeway")
	length := rt.int(opt(p[0], int64(255)), "length")
	end := rt.string(opt(p[2], &Str{s: "..."}), "end")
	leeway := 5
	if p[3] != unset && p[3] != nil {
		leeway = rt.int(p[3], "leeway")
	}
	k := utf8.RuneCountInString(end.s)
	if length < k || leeway < 0 {
		rt.fail("truncate: length below that of the end, or negative leeway")
	}
	s, ok := v.(*Str)
	if !ok {
		n, sized := rt.length(v)
		if !sized || n > length+leeway {
			rt.fail("truncate: %s is not a string", typeName(v))
		}
		return v
	}
	if utf8.RuneCountInString(s.s) <= length+leeway {
		return s
	}
	head := s.slice(0, runeOffset(s.s, length-k))
	if p[1] == unset || !truth(p[1]) {
		if i := strings.LastIndexByte(head.s, ' '); i >= 0 {
			head = head.slice(0, i)
		}
	}
	return rt.join(head, end)
}

func filterTitle(rt *render, v Value, a *args) Value {
	rt.noArgs("title", a)
	s := rt.soft(v)
	start := true
	return rt.mapRunes(s, func(i int, r rune) string {
		if isSpace(r) || strings.ContainsRune("-({[<", r) {
			// The separators are items of their own; upper and lower leave them alone.
			start = true
			return string(r)
		}
		if start {
			start = false
			return upperRune(r)
		}
		// Lower case is applied to the rest of the word alone.
		return lowerRune(s.s, i, r)
	})
}

func filterCenter(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "center", true, "width")
	return rt.pad(rt.soft(v), rt.int(opt(p[0], int64(80)), "width"), unset, true, true)
}

func filterGroupby(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "groupby", true, "attribute", "default", "case_sensitive")
	need(rt, "groupby", 1, p)
	path := rt.path(p[0])
	def := opt(p[1], nil)
	sensitive := p[2] != unset && truth(p[2])
	key := func(x Value) Value {
		x = rt.follow(x, path, def)
		if !sensitive {
			x = rt.folded(x)
		}
		return x
	}
	var groups []Value
	var last Value
	for _, x := range rt.sorted(rt.list(v), key, false) {
		k := key(x)
		if n := len(groups); n > 0 && rt.equal(last, k) {
			l := groups[n-1].(*Tuple).Items[1].(*List)
			l.Items = append(l.Items, x)
			continue
		}
		last = k
		name := k
		if !sensitive {
			name = rt.follow(x, path, def)
		}
		groups = append(groups, &Tuple{Items: []Value{name, &List{Items: []Value{x}}}, group: true})
	}
	return &List{Items: groups}
}

func filterSlice(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "slice", true, "slices", "fill_with")
	need(rt, "slice", 1, p)
	n := rt.int(p[0], "slices")
	fill := opt(p[1], nil)
	var seq []Value
	i, offset, started := 0, 0, false
	return generator("generator", func() (Value, bool) {
		if !started {
			seq, started = rt.list(v), true
			if n == 0 {
				rt.fail("division by zero")
			}
		}
		if i >= n {
			return nil, false
		}
		rt.step(1)
		per, extra := len(seq)/n, len(seq)%n
		start := offset + i*per
		if i < extra {
			offset++
		}
		end := offset + (i+1)*per
		out := append([]Value(nil), seq[min(start, len(seq)):min(end, len(seq))]...)
		if fill != nil && i >= extra {
			out = append(out, fill)
		}
		i++
		return &List{Items: out}, true
	})
}

func filterBatch(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "batch", true, "linecount", "fill_with")
	need(rt, "batch", 1, p)
	next := rt.each(v)
	fill := opt(p[1], nil)
	done := false
	// A count that never matches a length, such as 0.5, never closes a batch.
	count, ok := number(p[0])
	var held Value
	haveHeld := false
	return generator("generator", func() (Value, bool) {
		if done {
			return nil, false
		}
		var tmp []Value
		if haveHeld {
			tmp, haveHeld = []Value{held}, false
		}
		for {
			x, more := next()
			if !more {
				done = true
				break
			}
			rt.step(1)
			if ok && cmpNum(num{i: int64(len(tmp))}, count) == 0 {
				held, haveHeld = x, true
				return &List{Items: tmp}, true
			}
			tmp = append(tmp, x)
		}
		if len(tmp) == 0 {
			return nil, false
		}
		if fill != nil {
			if n := rt.int(p[0], "linecount"); len(tmp) < n {
				if n > rt.maxText/16 {
					rt.limit("list of more than %d elements", rt.maxText/16)
				}
				rt.charge(16 * n)
				for len(tmp) < n {
					tmp = append(tmp, fill)
				}
			}
		}
		return &List{Items: tmp}, true
	})
}

func filterReverse(rt *render, v Value, a *args) Value {
	rt.noArgs("reverse", a)
	switch x := v.(type) {
	case *Str:
		return rt.sliceStr(x, nil, nil, int64(-1))
	case *iterator, *loop:
		list := append([]Value(nil), rt.list(v)...)
		slices.Reverse(list)
		return &List{Items: list}
	}
	list := rt.list(v)
	i := len(list)
	what := map[string]string{"list": "list_reverseiterator", "tuple": "reversed", "dict": "dict_reversekeyiterator", "range": "range_iterator"}[typeName(v)]
	return generator(cmp.Or(what, "reversed"), func() (Value, bool) {
		if i == 0 {
			return nil, false
		}
		i--
		return list[i], true
	})
}

func filterUnique(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "unique", true, "case_sensitive", "attribute")
	sensitive := p[0] != unset && truth(p[0])
	path := rt.path(opt(p[1], nil))
	seen := map[string]bool{}
	next := rt.each(v)
	return generator("generator", func() (Value, bool) {
		for {
			x, ok := next()
			if !ok {
				return nil, false
			}
			rt.step(1)
			k := rt.follow(x, path, nil)
			if !sensitive {
				k = rt.folded(k)
			}
			h := hashKey(rt, k)
			if seen[h] {
				continue
			}
			rt.charge(len(h) + 32)
			seen[h] = true
			return x, true
		}
	})
}

func filterSum(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "sum", true, "attribute", "start")
	total := opt(p[1], int64(0))
	if _, ok := total.(*Str); ok {
		rt.fail("sum does not add strings")
	}
	path := rt.path(opt(p[0], nil))
	for _, x := range rt.list(v) {
		rt.step(1)
		total = rt.add(total, rt.follow(x, path, nil))
	}
	return total
}

func filterStriptags(rt *render, v Value, a *args) Value {
	rt.noArgs("striptags", a)
	s := rt.str(v)
	cut := func(open, shut string) {
		for {
			i := strings.Index(s.s, open)
			if i < 0 {
				return
			}
			j := strings.Index(s.s[i:], shut)
			if j < 0 {
				return
			}
			rt.step(1 + len(s.s)/64)
			s = rt.join(s.slice(0, i), s.slice(i+j+len(shut), len(s.s)))
		}
	}
	cut("<!--", "-->")
	cut("<", ">")
	w := rt.buf()
	for i, x := range rt.split(s, nil, -1, false) {
		if i > 0 {
			w.add(" ", nil)
		}
		w.addStr(x.(*Str))
	}
	s = w.str()
	if strings.Contains(s.s, "&") {
		rt.fail("striptags: entities are not supported")
	}
	return s
}

func filterUrlencode(rt *render, v Value, a *args) Value {
	rt.noArgs("urlencode", a)
	const hex = "0123456789ABCDEF"
	enc := func(x Value, form bool) *Str {
		s := rt.str(x)
		w := rt.buf()
		s.pieces(func(t string, src *Origin) {
			for i := 0; i < len(t); i++ {
				c := t[i]
				switch {
				case nameByte(c) || c == '.' || c == '-' || c == '~' || c == '/' && !form:
					w.add(t[i:i+1], src)
				case c == ' ' && form:
					w.add("+", src)
				default:
					w.add(string([]byte{'%', hex[c>>4], hex[c&15]}), src)
				}
			}
		})
		return w.str()
	}
	switch v.(type) {
	case *Str, nil, bool, int64, float64, *num:
		return enc(v, false)
	}
	items := v
	if d, ok := v.(*Dict); ok {
		items = &view{d, 'i'}
	}
	w := rt.buf()
	for i, x := range rt.list(items) {
		kv := rt.list(x)
		if len(kv) != 2 {
			rt.fail("urlencode needs pairs")
		}
		if i > 0 {
			w.add("&", nil)
		}
		w.addStr(enc(kv[0], true))
		w.add("=", nil)
		w.addStr(enc(kv[1], true))
	}
	return w.str()
}

func filterFilesize(rt *render, v Value, a *args) Value {
	p := a.bind(rt, "filesizeformat", true, "binary")
	n, ok := number(filterFloat(rt, v, &args{pos: []Value{nil}}))
	if !ok {
		rt.fail("filesizeformat: %s is not a number", typeName(v))
	}
	base, units := 1000.0, "kB MB GB TB PB EB ZB YB"
	if p[0] != unset && truth(p[0]) {
		base, units = 1024, "KiB MiB GiB TiB PiB EiB ZiB YiB"
	}
	w := rt.buf()
	if n.f-n.f != 0 {
		rt.fail("filesizeformat: not a finite number")
	}
	switch {
	case n.f == 1:
		w.add("1 Byte", n.src)
	case n.f < base:
		b, _ := big.NewFloat(n.f).Int(nil)
		w.add(b.String()+" Bytes", n.src)
	default:
		unit, text := base, ""
		for u := range strings.FieldsSeq(units) {
			unit *= base
			text = strconv.FormatFloat(base*n.f/unit, 'f', 1, 64) + " " + u
			if n.f < unit {
				break
			}
		}
		w.add(text, n.src)
	}
	return w.str()
}

func refuse(name string) filterFunc {
	return func(rt *render, v Value, a *args) Value {
		rt.fail("filter %q is not supported", name)
		return nil
	}
}

func onStr(name string, f func(rt *render, s *Str) Value) filterFunc {
	return func(rt *render, v Value, a *args) Value {
		rt.noArgs(name, a)
		return f(rt, rt.soft(v))
	}
}

func init() {
	length := func(rt *render, v Value, a *args) Value {
		rt.noArgs("length", a)
		n, ok := rt.length(v)
		if !ok {
			rt.fail("%s has no length", typeName(v))
		}
		return integer(int64(n))
	}
	def := func(rt *render, v Value, a *args) Value {
		p := a.bind(rt, "default", true, "default_value", "boolean")
		_, isU := v.(*undef)
		if isU || p[1] != unset && truth(p[1]) && !truth(v) {
			return opt(p[0], &Str{})
		}
		return v
	}
	esc := func(rt *render, v Value, a *args) Value {
		rt.noArgs("escape", a)
		return rt.escape(v)
	}
	filters = map[string]filterFunc{
		"abs": func(rt *render, v Value, a *args) Value {
			rt.noArgs("abs", a)
			rt.undefined(v)
			n, ok := number(v)
			if !ok {
				rt.fail("abs: %s is not a number", typeName(v))
			}
			if n.float {
				n.f = math.Abs(n.f)
				return n.value()
			}
			if n.bigint().Sign() < 0 {
				return rt.sign(true, v)
			}
			return n.value()
		},
		"attr": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "attr", true, "name")
			need(rt, "attr", 1, p)
			name := rt.string(p[0], "name")
			if x, ok := rt.attribute(v, name.s); ok {
				return x
			}
			return &undef{name: name.s, of: typeName(v)}
		},
		"batch":      filterBatch,
		"capitalize": onStr("capitalize", func(rt *render, s *Str) Value { return rt.capitalize(s) }),
		"center":     filterCenter,
		"count":      length,
		"length":     length,
		"default":    def,
		"d":          def,
		"dictsort": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "dictsort", true, "case_sensitive", "by", "reverse")
			by := 0
			switch rt.str(opt(p[1], &Str{s: "key"})).s {
			case "key":
			case "value":
				by = 1
			default:
				rt.fail("dictsort: by is not key or value")
			}
			rt.undefined(v)
			d, ok := v.(*Dict)
			if !ok {
				rt.fail("dictsort: %s has no items", typeName(v))
			}
			key := func(x Value) Value {
				x = x.(*Tuple).Items[by]
				if p[0] == unset || !truth(p[0]) {
					x = rt.folded(x)
				}
				return x
			}
			return &List{Items: rt.sorted(rt.list(&view{d, 'i'}), key, rt.reversed(p[2]))}
		},
		"e":              esc,
		"escape":         esc,
		"filesizeformat": filterFilesize,
		"first": func(rt *render, v Value, a *args) Value {
			rt.noArgs("first", a)
			if it, ok := v.(*iterator); ok {
				if x, ok := it.next(); ok {
					return x
				}
			} else if s, ok := v.(*Str); ok {
				if s.s != "" {
					return s.plain().slice(0, runeOffset(s.s, 1))
				}
			} else if l := rt.list(v); len(l) > 0 {
				return l[0]
			}
			return &undef{hint: "no first item, sequence was empty"}
		},
		"float": filterFloat,
		"forceescape": func(rt *render, v Value, a *args) Value {
			rt.noArgs("forceescape", a)
			return rt.escape(rt.str(v))
		},
		"format": func(rt *render, v Value, a *args) Value {
			if len(a.pos) > 0 && len(a.kw) > 0 {
				rt.fail("format takes positional or named arguments, not both")
			}
			s := rt.soft(v)
			if len(a.kw) > 0 {
				d := &Dict{}
				for _, k := range a.kw {
					d.Set(&Str{s: k.name}, k.v)
				}
				return rt.percent(s, d)
			}
			return rt.percent(s, &Tuple{Items: a.pos})
		},
		"groupby": filterGroupby,
		"indent":  filterIndent,
		"int":     filterInt,
		"items": func(rt *render, v Value, a *args) Value {
			rt.noArgs("items", a)
			var next func() (Value, bool)
			return generator("generator", func() (Value, bool) {
				if next == nil {
					switch d := v.(type) {
					case *undef:
						return nil, false
					case *Dict:
						next = rt.each(&view{d, 'i'})
					default:
						rt.fail("items: %s is not a mapping", typeName(v))
					}
				}
				return next()
			})
		},
		"join": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "join", true, "d", "attribute")
			sep := rt.str(opt(p[0], &Str{}))
			attr := opt(p[1], nil)
			path := rt.path(attr)
			w := rt.buf()
			next := rt.each(v)
			for i := 0; ; i++ {
				x, ok := next()
				if !ok {
					break
				}
				rt.step(1)
				if i > 0 {
					w.addStr(sep)
				}
				rt.print(w, rt.follow(x, path, nil))
			}
			return w.str()
		},
		"last": func(rt *render, v Value, a *args) Value {
			rt.noArgs("last", a)
			switch s := v.(type) {
			case *iterator, *loop:
				rt.fail("%s is not reversible", typeName(v))
			case *Str:
				if s.s != "" {
					_, n := utf8.DecodeLastRuneInString(s.s)
					return s.slice(len(s.s)-n, len(s.s))
				}
				return &undef{hint: "no last item, sequence was empty"}
			}
			if l := rt.list(v); len(l) > 0 {
				return l[len(l)-1]
			}
			return &undef{hint: "no last item, sequence was empty"}
		},
		"list": func(rt *render, v Value, a *args) Value {
			rt.noArgs("list", a)
			l := rt.list(v)
			rt.charge(16 * len(l))
			out := &List{Items: append([]Value(nil), l...)}
			if x, ok := v.(*List); ok {
				out.src = x.src
			}
			return out
		},
		"lower":      onStr("lower", func(rt *render, s *Str) Value { return rt.lower(s) }),
		"map":        filterMap,
		"max":        extremum("max", 1),
		"min":        extremum("min", -1),
		"pprint":     refuse("pprint"),
		"random":     refuse("random"),
		"reject":     selector("reject", false, false),
		"rejectattr": selector("rejectattr", true, false),
		"replace": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "replace", true, "old", "new", "count")
			need(rt, "replace", 2, p)
			n := -1
			if p[2] != unset && p[2] != nil {
				n = rt.int(p[2], "count")
			}
			return rt.replace(rt.str(v), rt.str(p[0]), rt.str(p[1]), n)
		},
		"reverse": filterReverse,
		"round":   filterRound,
		"safe": func(rt *render, v Value, a *args) Value {
			rt.noArgs("safe", a)
			return rt.soft(v).marked()
		},
		"select":     selector("select", false, true),
		"selectattr": selector("selectattr", true, true),
		"slice":      filterSlice,
		"sort": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "sort", true, "reverse", "case_sensitive", "attribute")
			var paths [][]Value
			if s, ok := opt(p[2], nil).(*Str); ok {
				for x := range strings.SplitSeq(s.s, ",") {
					paths = append(paths, rt.path(&Str{s: x}))
				}
			} else {
				paths = [][]Value{rt.path(opt(p[2], nil))}
			}
			fold := p[1] == unset || !truth(p[1])
			key := func(x Value) Value {
				out := &List{Items: make([]Value, len(paths))}
				for i, path := range paths {
					y := rt.follow(x, path, nil)
					if fold {
						y = rt.folded(y)
					}
					out.Items[i] = y
				}
				return out
			}
			return &List{Items: rt.sorted(rt.list(v), key, rt.reversed(p[0]))}
		},
		"string": func(rt *render, v Value, a *args) Value {
			rt.noArgs("string", a)
			return rt.soft(v)
		},
		"striptags": filterStriptags,
		"sum":       filterSum,
		"title":     filterTitle,
		"tojson":    (*render).tojson,
		"trim": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "trim", true, "chars")
			return rt.strip(rt.soft(v), p[0], true, true)
		},
		"truncate":  filterTruncate,
		"unique":    filterUnique,
		"upper":     onStr("upper", func(rt *render, s *Str) Value { return rt.upper(s) }),
		"urlencode": filterUrlencode,
		"urlize":    refuse("urlize"),
		"wordcount": onStr("wordcount", func(rt *render, s *Str) Value {
			n, in := int64(0), false
			for _, r := range s.s {
				w := r == '_' || unicode.IsLetter(r) || numeric(r)
				if w && !in {
					n++
				}
				in = w
			}
			return n
		}),
		"wordwrap": refuse("wordwrap"),
		"xmlattr":  refuse("xmlattr"),
	}
}
