// SPDX-License-Identifier: Apache-2.0

package jinja

// A loop's variable that counts, as in
//
//	{% set index = (messages|length - 1) - loop.index0 %}
//
// is evaluated when it is read. Without that, each turn of the loop would depend on its position and on the length of the
// list, also those turns that do not use the variable, and a Memo could not replay them in a longer conversation.

// maxLate limits the integers in such an expression, so that it cannot overflow.
const maxLate = 1 << 31

// countable reports whether an expression has the form that may be evaluated later: a sum or difference of integers,
// positions of the loop whose variable has the given number, and lengths of variables.
func countable(e expr, loopID int) bool {
	switch e := e.(type) {
	case *constExpr:
		n, ok := e.v.(int64)
		return ok && -maxLate < n && n < maxLate
	case *binExpr:
		return (e.op == '+' || e.op == '-') && countable(e.l, loopID) && countable(e.r, loopID)
	case *attrExpr:
		n, ok := e.e.(*nameExpr)
		return ok && n.id == loopID && (e.name == "index0" || e.name == "index")
	case *filterExpr:
		_, ok := e.e.(*nameExpr)
		return ok && (e.name == "length" || e.name == "count") && e.args.none()
	}
	return false
}

// counts reports whether a countable expression has a value that cannot change before the end of the loop's turn and whose
// evaluation cannot fail: it has only lengths of lists outside, and loop is the loop's own variable.
func (rt *render) counts(e expr) bool {
	switch e := e.(type) {
	case *binExpr:
		return rt.counts(e.l) && rt.counts(e.r)
	case *attrExpr:
		s := rt.scope
		for i, id := range s.ids {
			if id == e.e.(*nameExpr).id {
				return s.vals[i] == Value(s.loop)
			}
		}
		return false
	case *filterExpr:
		n := e.e.(*nameExpr)
		_, ok := rt.root[n.id].(*List)
		return ok && !n.local
	}
	return true
}

// count evaluates such an expression for a turn of l.
func (rt *render) count(e expr, l *loop) int64 {
	switch e := e.(type) {
	case *constExpr:
		return e.v.(int64)
	case *binExpr:
		a, b := rt.count(e.l, l), rt.count(e.r, l)
		if e.op == '-' {
			return a - b
		}
		return a + b
	case *attrExpr:
		v, _ := l.attr(rt, e.name)
		return v.(int64)
	}
	return e.eval(rt).(int64) // a length
}
