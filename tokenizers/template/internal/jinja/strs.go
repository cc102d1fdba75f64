// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bind assigns arguments to parameters; those not given are unset. Only with names may they be named.
func (a *args) bind(rt *render, fn string, named bool, params ...string) []Value {
	out := make([]Value, len(params))
	if len(a.pos) > len(params) {
		rt.fail("%s takes at most %d arguments", fn, len(params))
	}
	n := copy(out, a.pos)
	for i := n; i < len(out); i++ {
		out[i] = unset
	}
next:
	for _, k := range a.kw {
		for i, p := range params {
			if named && p == k.name {
				if out[i] != unset {
					rt.fail("%s: argument %q is given twice", fn, p)
				}
				out[i] = k.v
				continue next
			}
		}
		rt.fail("%s takes no argument %q", fn, k.name)
	}
	return out
}

// need fails if one of the first n arguments is missing.
func need(rt *render, fn string, n int, vals []Value) {
	for _, v := range vals[:n] {
		if v == unset {
			rt.fail("%s needs %d arguments", fn, n)
		}
	}
}

func (rt *render) string(v Value, what string) *Str {
	s, ok := v.(*Str)
	if !ok {
		if u, ok := v.(*undef); ok {
			rt.fail("%s: %s", what, u.message())
		}
		rt.fail("%s is %s, not a string", what, typeName(v))
	}
	return s
}

// mapRunes replaces each character by what f returns for it.
func (rt *render) mapRunes(s *Str, f func(at int, r rune) string) *Str {
	w := rt.buf()
	from := 0
	s.pieces(func(t string, src *Origin) {
		for i, r := range t {
			w.add(f(from+i, r), src)
		}
		from += len(t)
	})
	out := w.str()
	out.html = s.html
	return out
}

func (rt *render) upper(s *Str) *Str {
	if s.segs == nil && ascii(s.s) {
		return &Str{s: strings.ToUpper(s.s), src: s.src, html: s.html}
	}
	return rt.mapRunes(s, func(_ int, r rune) string { return upperRune(r) })
}

func upperRune(r rune) string {
	if x, ok := upperSpecial[r]; ok {
		return x
	}
	return string(unicode.ToUpper(r))
}

func titleRune(r rune) string {
	if x, ok := titleSpecial[r]; ok {
		return x
	}
	return string(unicode.ToTitle(r))
}

func (rt *render) lower(s *Str) *Str {
	if s.segs == nil && ascii(s.s) {
		return &Str{s: strings.ToLower(s.s), src: s.src, html: s.html}
	}
	return rt.mapRunes(s, func(i int, r rune) string { return lowerRune(s.s, i, r) })
}

func lowerRune(s string, i int, r rune) string {
	switch r {
	case 0x130:
		return "i\u0307"
	case 0x3a3:
		if finalSigma(s, i) {
			return "\u03c2"
		}
	}
	return string(unicode.ToLower(r))
}

func cased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) || unicode.In(r, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func caseIgnorable(r rune) bool {
	switch r {
	case '\'', '.', ':', '^', '`', 0xa8, 0xad, 0xaf, 0xb4, 0xb7, 0xb8, 0x387, 0x55f, 0x5f4, 0x2018, 0x2019, 0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a:
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

// finalSigma reports whether the sigma at i ends a word.
func finalSigma(s string, i int) bool {
	before := s[:i]
	for {
		if before == "" {
			return false
		}
		r, n := utf8.DecodeLastRuneInString(before)
		if !caseIgnorable(r) {
			if !cased(r) {
				return false
			}
			break
		}
		before = before[:len(before)-n]
	}
	for _, r := range s[i+2:] {
		if !caseIgnorable(r) {
			return !cased(r)
		}
	}
	return true
}

func (rt *render) capitalize(s *Str) *Str {
	return rt.mapRunes(s, func(i int, r rune) string {
		if i == 0 {
			return titleRune(r)
		}
		return lowerRune(s.s, i, r)
	})
}

// pyTitle is str.title.
func (rt *render) pyTitle(s *Str) *Str {
	inWord := false
	return rt.mapRunes(s, func(i int, r rune) string {
		was := inWord
		inWord = cased(r)
		if was {
			return lowerRune(s.s, i, r)
		}
		return titleRune(r)
	})
}

// strip removes characters of chars, white space if it is nil, from the ends.
func (rt *render) strip(s *Str, chars Value, left, right bool) *Str {
	in := isSpace
	if chars != nil && chars != unset {
		set := rt.string(chars, "argument of strip").s
		if ascii(set) && len(set) == 1 {
			c := rune(set[0])
			in = func(r rune) bool { return r == c }
		} else {
			in = func(r rune) bool { return strings.ContainsRune(set, r) }
		}
	}
	lo, hi := 0, len(s.s)
	if left {
		lo = hi - len(strings.TrimLeftFunc(s.s, in))
	}
	if right {
		hi = lo + len(strings.TrimRightFunc(s.s[lo:], in))
	}
	return s.slice(lo, hi)
}

// replace is str.replace.
func (rt *render) replace(s, old, new *Str, count int) *Str {
	if count == 0 || old.s == "" && count < 0 && s.s == "" && new.s == "" {
		return s
	}
	if old.s != "" && !strings.Contains(s.s, old.s) {
		return s
	}
	w := rt.buf()
	from := 0
	if old.s == "" {
		n := 0
		for i := range s.s {
			if count >= 0 && n == count {
				break
			}
			w.addSlice(s, from, i)
			w.addStr(new)
			from = i
			n++
		}
		w.addSlice(s, from, len(s.s))
		if (count < 0 || n < count) && from <= len(s.s) {
			w.addStr(new)
		}
		out := w.str()
		out.html = s.html
		return out
	}
	for n := 0; count < 0 || n < count; n++ {
		k := strings.Index(s.s[from:], old.s)
		if k < 0 {
			break
		}
		w.addSlice(s, from, from+k)
		w.addStr(new)
		from += k + len(old.s)
	}
	w.addSlice(s, from, len(s.s))
	out := w.str()
	out.html = s.html
	return out
}

// split is str.split and str.rsplit.
func (rt *render) split(s *Str, sep Value, limit int, fromRight bool) []Value {
	if limit < 0 {
		limit = math.MaxInt
	}
	var cuts [][2]int
	t := s.s
	if sep == nil || sep == unset {
		if !fromRight {
			i := len(t) - len(strings.TrimLeftFunc(t, isSpace))
			for i < len(t) && len(cuts) < limit {
				k := strings.IndexFunc(t[i:], isSpace)
				if k < 0 {
					break
				}
				cuts = append(cuts, [2]int{i, i + k})
				i += k
				i += len(t[i:]) - len(strings.TrimLeftFunc(t[i:], isSpace))
			}
			if i < len(t) {
				end := len(t)
				if len(cuts) < limit {
					end = i + len(strings.TrimRightFunc(t[i:], isSpace))
				}
				cuts = append(cuts, [2]int{i, end})
			}
		} else {
			end := len(strings.TrimRightFunc(t, isSpace))
			for end > 0 && len(cuts) < limit {
				k := strings.LastIndexFunc(t[:end], isSpace)
				if k < 0 {
					break
				}
				_, n := utf8.DecodeRuneInString(t[k:])
				cuts = append(cuts, [2]int{k + n, end})
				end = len(strings.TrimRightFunc(t[:k], isSpace))
			}
			if end > 0 {
				start := 0
				if len(cuts) < limit {
					start = end - len(strings.TrimLeftFunc(t[:end], isSpace))
				}
				cuts = append(cuts, [2]int{start, end})
			}
		}
	} else {
		d := rt.string(sep, "separator").s
		if d == "" {
			rt.fail("empty separator")
		}
		if !fromRight {
			i := 0
			for len(cuts) < limit {
				k := strings.Index(t[i:], d)
				if k < 0 {
					break
				}
				cuts = append(cuts, [2]int{i, i + k})
				i += k + len(d)
			}
			cuts = append(cuts, [2]int{i, len(t)})
		} else {
			end := len(t)
			for len(cuts) < limit {
				k := strings.LastIndex(t[:end], d)
				if k < 0 {
					break
				}
				cuts = append(cuts, [2]int{k + len(d), end})
				end = k
			}
			cuts = append(cuts, [2]int{0, end})
		}
	}
	rt.charge(64 * len(cuts))
	out := make([]Value, len(cuts))
	for i, c := range cuts {
		if fromRight {
			i = len(cuts) - 1 - i
		}
		out[i] = s.slice(c[0], c[1])
	}
	return out
}

// lines is str.splitlines.
func (rt *render) lines(s *Str, keep bool) []Value {
	var out []Value
	t := s.s
	start := 0
	for i := 0; i < len(t); {
		r, n := utf8.DecodeRuneInString(t[i:])
		switch r {
		case '\n', '\r', 0xb, 0xc, 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			if r == '\r' && i+1 < len(t) && t[i+1] == '\n' {
				n = 2
			}
			end := i
			if keep {
				end = i + n
			}
			out = append(out, s.slice(start, end))
			start = i + n
		}
		i += n
	}
	if start < len(t) {
		out = append(out, s.slice(start, len(t)))
	}
	rt.charge(64 * len(out))
	return out
}

// window returns the byte range that optional start and end arguments mean; ok is false if it is empty
// because start is beyond the end.
func (rt *render) window(s string, start, end Value) (lo, hi int, ok bool) {
	if (start == nil || start == unset) && (end == nil || end == unset) {
		return 0, len(s), true
	}
	n := utf8.RuneCountInString(s)
	if start == unset {
		start = nil
	}
	if end == unset {
		end = nil
	}
	if start != nil && rt.int(start, "start") > n {
		return 0, 0, false
	}
	a, b, _ := rt.bounds(n, start, end, nil)
	if a > b {
		return 0, 0, false
	}
	return runeOffset(s, a), runeOffset(s, b), true
}

func (rt *render) pad(s *Str, width int, fill Value, left, right bool) *Str {
	f := &Str{s: " "}
	if fill != unset {
		f = rt.string(fill, "fill character")
		if s.html {
			f = rt.escape(f)
		}
		if utf8.RuneCountInString(f.s) != 1 {
			rt.fail("fill is not one character")
		}
	}
	n := utf8.RuneCountInString(s.s)
	if width <= n {
		return s
	}
	a, b := 0, 0
	switch k := width - n; {
	case left && right:
		a = k/2 + (k & width & 1)
		b = k - a
	case left:
		a = k
	default:
		b = k
	}
	w := rt.buf()
	w.addStr(rt.repeat(f, num{i: int64(a)}).(*Str))
	w.addStr(s)
	w.addStr(rt.repeat(f, num{i: int64(b)}).(*Str))
	out := w.str()
	out.html = s.html
	return out
}

type strMethod func(rt *render, s *Str, a *args) Value

var strMethods map[string]strMethod

func find(name string, last, must bool) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		v := a.bind(rt, name, false, "sub", "start", "end")
		need(rt, name, 1, v)
		sub := rt.string(v[0], "argument of "+name).s
		lo, hi, ok := rt.window(s.s, v[1], v[2])
		k := -1
		if ok {
			if last {
				k = strings.LastIndex(s.s[lo:hi], sub)
			} else {
				k = strings.Index(s.s[lo:hi], sub)
			}
		}
		if k < 0 {
			if must {
				rt.fail("substring not found")
			}
			return int64(-1)
		}
		return int64(utf8.RuneCountInString(s.s[:lo+k]))
	}
}

func affix(name string, has func(s, x string) bool) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		v := a.bind(rt, name, false, "prefix", "start", "end")
		need(rt, name, 1, v)
		lo, hi, ok := rt.window(s.s, v[1], v[2])
		list := []Value{v[0]}
		if t, isT := v[0].(*Tuple); isT {
			list = t.Items
		}
		for _, x := range list {
			if t := rt.string(x, "argument of "+name); ok && has(s.s[lo:hi], t.s) {
				return true
			}
		}
		return false
	}
}

func is(name string, f func(r rune) bool, some func(r rune) bool) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		rt.noArgs(name, a)
		if s.s == "" {
			return false
		}
		found := some == nil
		for _, r := range s.s {
			if !f(r) {
				return false
			}
			found = found || some(r)
		}
		return found
	}
}

func stripMethod(name string, left, right bool) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		v := a.bind(rt, name, false, "chars")
		return rt.strip(s, v[0], left, right)
	}
}

func splitMethod(name string, right bool) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		v := a.bind(rt, name, true, "sep", "maxsplit")
		limit := -1
		if v[1] != unset {
			limit = rt.int(v[1], "maxsplit")
		}
		return &List{Items: rt.split(s, v[0], limit, right)}
	}
}

func plainMethod(name string, f func(rt *render, s *Str) *Str) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		rt.noArgs(name, a)
		return f(rt, s)
	}
}

func padMethod(name string, left, right bool) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		v := a.bind(rt, name, false, "width", "fillchar")
		need(rt, name, 1, v)
		return rt.pad(s, rt.int(v[0], "width"), v[1], left, right)
	}
}

func refuseMethod(name string) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		rt.fail("method %q of str is not supported", name)
		return nil
	}
}

func partition(name string, last bool) strMethod {
	return func(rt *render, s *Str, a *args) Value {
		v := a.bind(rt, name, false, "sep")
		need(rt, name, 1, v)
		sep := rt.string(v[0], "separator")
		if sep.s == "" {
			rt.fail("empty separator")
		}
		k := strings.Index(s.s, sep.s)
		if last {
			k = strings.LastIndex(s.s, sep.s)
		}
		empty := &Str{html: s.html}
		switch {
		case k >= 0:
			return &Tuple{Items: []Value{s.slice(0, k), s.slice(k, k+len(sep.s)), s.slice(k+len(sep.s), len(s.s))}}
		case last:
			return &Tuple{Items: []Value{empty, empty, s}}
		}
		return &Tuple{Items: []Value{s, empty, empty}}
	}
}

func digit(r rune) bool {
	// Digit_Type Digit or Decimal; the few digits outside Nd are superscripts and their kin.
	return unicode.IsDigit(r) || r == 0xb2 || r == 0xb3 || r == 0xb9 || r >= 0x2070 && r <= 0x2079 && r != 0x2071 && r != 0x2072 && r != 0x2073 || r >= 0x2080 && r <= 0x2089 ||
		r >= 0x2460 && r <= 0x2468 || r >= 0x2474 && r <= 0x247c || r >= 0x2488 && r <= 0x2490 || r >= 0x24f5 && r <= 0x24fd || r == 0x24ea || r == 0x24ff || r >= 0x2776 && r <= 0x277e ||
		r >= 0x2780 && r <= 0x2788 || r >= 0x278a && r <= 0x2792
}

func numeric(r rune) bool {
	return unicode.In(r, unicode.Nd, unicode.Nl, unicode.No) || digit(r) || strings.ContainsRune("一二三四五六七八九十百千万億兆零〇", r)
}

func init() {
	strMethods = map[string]strMethod{
		"upper":      plainMethod("upper", (*render).upper),
		"lower":      plainMethod("lower", (*render).lower),
		"capitalize": plainMethod("capitalize", (*render).capitalize),
		"title":      plainMethod("title", (*render).pyTitle),
		"casefold":   refuseMethod("casefold"),
		"swapcase": plainMethod("swapcase", func(rt *render, s *Str) *Str {
			return rt.mapRunes(s, func(i int, r rune) string {
				if unicode.IsUpper(r) {
					return lowerRune(s.s, i, r)
				}
				if unicode.IsLower(r) {
					return upperRune(r)
				}
				return string(r)
			})
		}),
		"strip":      stripMethod("strip", true, true),
		"lstrip":     stripMethod("lstrip", true, false),
		"rstrip":     stripMethod("rstrip", false, true),
		"split":      splitMethod("split", false),
		"rsplit":     splitMethod("rsplit", true),
		"find":       find("find", false, false),
		"rfind":      find("rfind", true, false),
		"index":      find("index", false, true),
		"rindex":     find("rindex", true, true),
		"startswith": affix("startswith", strings.HasPrefix),
		"endswith":   affix("endswith", strings.HasSuffix),
		"partition":  partition("partition", false),
		"rpartition": partition("rpartition", true),
		"center":     padMethod("center", true, true),
		"ljust":      padMethod("ljust", false, true),
		"rjust":      padMethod("rjust", true, false),
		"encode":     refuseMethod("encode"),
		"translate":  refuseMethod("translate"),
		"maketrans":  refuseMethod("maketrans"),
		"splitlines": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "splitlines", true, "keepends")
			return &List{Items: rt.lines(s, v[0] != unset && truth(v[0]))}
		},
		"replace": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "replace", false, "old", "new", "count")
			need(rt, "replace", 2, v)
			n := -1
			if v[2] != unset {
				n = rt.int(v[2], "count")
			}
			old := rt.string(v[0], "old")
			var new *Str
			if s.html {
				new = rt.escape(v[1])
			} else {
				new = rt.string(v[1], "new")
			}
			return rt.replace(s, old, new, n)
		},
		"count": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "count", false, "sub", "start", "end")
			need(rt, "count", 1, v)
			sub := rt.string(v[0], "argument of count").s
			lo, hi, ok := rt.window(s.s, v[1], v[2])
			if !ok {
				return int64(0)
			}
			return int64(strings.Count(s.s[lo:hi], sub))
		},
		"join": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "join", false, "iterable")
			need(rt, "join", 1, v)
			w := rt.buf()
			for i, x := range rt.list(v[0]) {
				if i > 0 {
					w.addStr(s)
				}
				if s.html {
					w.addStr(rt.escape(x))
				} else {
					w.addStr(rt.string(x, "element of join"))
				}
			}
			out := w.str()
			out.html = s.html
			return out
		},
		"zfill": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "zfill", false, "width")
			need(rt, "zfill", 1, v)
			n := rt.int(v[0], "width") - utf8.RuneCountInString(s.s)
			if n <= 0 {
				return s
			}
			sign := 0
			if s.s != "" && (s.s[0] == '+' || s.s[0] == '-') {
				sign = 1
			}
			w := rt.buf()
			w.addSlice(s, 0, sign)
			w.addStr(rt.repeat(&Str{s: "0"}, num{i: int64(n)}).(*Str))
			w.addSlice(s, sign, len(s.s))
			out := w.str()
			out.html = s.html
			return out
		},
		"expandtabs": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "expandtabs", true, "tabsize")
			size := 8
			if v[0] != unset {
				size = rt.int(v[0], "tabsize")
			}
			col := 0
			return rt.mapRunes(s, func(_ int, r rune) string {
				switch r {
				case '\t':
					if size <= 0 {
						return ""
					}
					n := size - col%size
					col += n
					if n > rt.maxText {
						rt.limit("text exceeds %d bytes", rt.maxText)
					}
					return strings.Repeat(" ", n)
				case '\n', '\r':
					col = 0
				default:
					col++
				}
				return string(r)
			})
		},
		"removeprefix": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "removeprefix", false, "prefix")
			need(rt, "removeprefix", 1, v)
			if p := rt.string(v[0], "prefix").s; strings.HasPrefix(s.s, p) {
				return s.slice(len(p), len(s.s))
			}
			return s
		},
		"removesuffix": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "removesuffix", false, "suffix")
			need(rt, "removesuffix", 1, v)
			if p := rt.string(v[0], "suffix").s; strings.HasSuffix(s.s, p) {
				return s.slice(0, len(s.s)-len(p))
			}
			return s
		},
		"format": func(rt *render, s *Str, a *args) Value { return rt.format(s, a.pos, a.kw, nil) },
		"format_map": func(rt *render, s *Str, a *args) Value {
			v := a.bind(rt, "format_map", false, "mapping")
			need(rt, "format_map", 1, v)
			return rt.format(s, nil, nil, v[0])
		},
		"isspace":   is("isspace", isSpace, nil),
		"isalpha":   is("isalpha", unicode.IsLetter, nil),
		"isdecimal": is("isdecimal", unicode.IsDigit, nil),
		"isdigit":   is("isdigit", digit, nil),
		"isnumeric": is("isnumeric", numeric, nil),
		"isalnum":   is("isalnum", func(r rune) bool { return unicode.IsLetter(r) || numeric(r) }, nil),
		"isupper":   is("isupper", func(r rune) bool { return !unicode.IsLower(r) && !unicode.IsTitle(r) }, unicode.IsUpper),
		"islower":   is("islower", func(r rune) bool { return !unicode.IsUpper(r) && !unicode.IsTitle(r) }, unicode.IsLower),
		"isprintable": func(rt *render, s *Str, a *args) Value {
			return s.s == "" || is("isprintable", unicode.IsPrint, nil)(rt, s, a).(bool)
		},
		"isascii": func(rt *render, s *Str, a *args) Value {
			rt.noArgs("isascii", a)
			return ascii(s.s)
		},
		"isidentifier": func(rt *render, s *Str, a *args) Value {
			rt.noArgs("isidentifier", a)
			for i, r := range s.s {
				if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !unicode.IsMark(r)) {
					return false
				}
			}
			return s.s != ""
		},
		"istitle": func(rt *render, s *Str, a *args) Value {
			rt.noArgs("istitle", a)
			some, prev := false, false
			for _, r := range s.s {
				switch {
				case unicode.IsUpper(r) || unicode.IsTitle(r):
					if prev {
						return false
					}
					prev, some = true, true
				case unicode.IsLower(r):
					if !prev {
						return false
					}
					some = true
				default:
					prev = false
				}
			}
			return some
		},
	}
}

// escape is markupsafe.escape: the text of v, safe for HTML.
func (rt *render) escape(v Value) *Str {
	s, ok := v.(*Str)
	if !ok {
		s = rt.str(v)
	}
	if s.html {
		return s
	}
	if !strings.ContainsAny(s.s, `&<>'"`) {
		return s.marked()
	}
	out := rt.mapRunes(s, func(_ int, r rune) string {
		switch r {
		case '&':
			return "&amp;"
		case '<':
			return "&lt;"
		case '>':
			return "&gt;"
		case '\'':
			return "&#39;"
		case '"':
			return "&#34;"
		}
		return string(r)
	})
	out.html = true
	return out
}
