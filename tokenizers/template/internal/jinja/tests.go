// SPDX-License-Identifier: Apache-2.0

package jinja

// testFunc applies a test to v. The result of some is not a bool but is treated as one.
type testFunc func(rt *render, v Value, a *args) Value

var tests map[string]testFunc

func init() {
	plain := func(name string, f func(rt *render, v Value) bool) testFunc {
		return func(rt *render, v Value, a *args) Value {
			rt.noArgs(name, a)
			return f(rt, v)
		}
	}
	two := func(op string) testFunc {
		return func(rt *render, v Value, a *args) Value {
			if len(a.pos) != 1 || len(a.kw) > 0 {
				rt.fail("test %q takes one argument", op)
			}
			return rt.compare(op, v, a.pos[0])
		}
	}
	mod := func(rt *render, v Value, by num) num {
		rt.undefined(v)
		if s, ok := v.(*Str); ok { // in Python this formats
			rt.percent(s, by.value())
			return num{i: 2} // a string is neither 0 nor 1
		}
		n, ok := number(v)
		if !ok {
			rt.fail("%s is not a number", typeName(v))
		}
		if n.float || by.float {
			return rt.floatOp('%', n, by, nil)
		}
		return rt.intOp('%', n, by, nil)
	}
	isType := func(names ...string) func(*render, Value) bool {
		return func(_ *render, v Value) bool {
			t := typeName(v)
			for _, n := range names {
				if n == t {
					return true
				}
			}
			return false
		}
	}
	eq, ne, lt, le, gt, ge := two("=="), two("!="), two("<"), two("<="), two(">"), two(">=")
	tests = map[string]testFunc{
		"odd":  plain("odd", func(rt *render, v Value) bool { n := mod(rt, v, num{i: 2}); return cmpNum(n, num{i: 1}) == 0 }),
		"even": plain("even", func(rt *render, v Value) bool { n := mod(rt, v, num{i: 2}); return n.zero() }),
		"divisibleby": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "divisibleby", true, "num")
			need(rt, "divisibleby", 1, p)
			rt.undefined(p[0])
			by, ok := number(p[0])
			if !ok {
				rt.fail("%s is not a number", typeName(p[0]))
			}
			return mod(rt, v, by).zero()
		},
		"defined":   plain("defined", func(_ *render, v Value) bool { _, ok := v.(*undef); return !ok }),
		"undefined": plain("undefined", func(_ *render, v Value) bool { _, ok := v.(*undef); return ok }),
		"filter": plain("filter", func(rt *render, v Value) bool {
			s, ok := v.(*Str)
			if !ok {
				hashKey(rt, v)
			}
			return ok && filters[s.s] != nil
		}),
		"test": plain("test", func(rt *render, v Value) bool {
			s, ok := v.(*Str)
			if !ok {
				hashKey(rt, v)
			}
			return ok && tests[s.s] != nil
		}),
		"none":    plain("none", func(_ *render, v Value) bool { return v == nil }),
		"boolean": plain("boolean", isType("bool")),
		"false":   plain("false", func(_ *render, v Value) bool { return v == false }),
		"true":    plain("true", func(_ *render, v Value) bool { return v == true }),
		"integer": plain("integer", isType("int")),
		"float":   plain("float", isType("float")),
		"number":  plain("number", isType("int", "float", "bool")),
		"string":  plain("string", isType("str", "Markup")),
		"mapping": plain("mapping", isType("dict")),
		"sequence": plain("sequence", func(rt *render, v Value) bool {
			switch v.(type) {
			case *Str, *List, *Tuple, *Dict, *rng, *undef:
				return true
			}
			return false
		}),
		"iterable": plain("iterable", func(rt *render, v Value) bool {
			switch v.(type) {
			case *Str, *List, *Tuple, *Dict, *rng, *view, *iterator, *loop, *undef:
				return true
			}
			return false
		}),
		"callable": plain("callable", func(_ *render, v Value) bool {
			switch v.(type) {
			case *callable, *macro, *loop, *undef, *joiner:
				return true
			}
			return false
		}),
		"lower": plain("lower", func(rt *render, v Value) bool { return strMethods["islower"](rt, rt.str(v), &args{}).(bool) }),
		"upper": plain("upper", func(rt *render, v Value) bool { return strMethods["isupper"](rt, rt.str(v), &args{}).(bool) }),
		"sameas": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "sameas", true, "other")
			need(rt, "sameas", 1, p)
			// Which equal numbers and strings are one object is up to Python's caches.
			switch v.(type) {
			case *Str:
				return rt.equal(v, p[0]) && typeName(v) == typeName(p[0])
			case int64, float64, *num:
				return typeName(v) == typeName(p[0]) && rt.equal(v, p[0])
			}
			return v == p[0]
		},
		"escaped": plain("escaped", func(_ *render, v Value) bool { s, ok := v.(*Str); return ok && s.html }),
		"in": func(rt *render, v Value, a *args) Value {
			p := a.bind(rt, "in", true, "seq")
			need(rt, "in", 1, p)
			return rt.in(v, p[0])
		},
		"==": eq, "eq": eq, "equalto": eq, "!=": ne, "ne": ne,
		">": gt, "gt": gt, "greaterthan": gt, ">=": ge, "ge": ge,
		"<": lt, "lt": lt, "lessthan": lt, "<=": le, "le": le,
	}
}
