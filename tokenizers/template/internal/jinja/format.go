// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fmtSpec is the layout of one value, for % and format.
type fmtSpec struct {
	fill  string
	align byte // < > ^ = or 0
	sign  byte // + - or space, 0 for none
	alt   bool
	zero  bool
	width int
	group byte // , or _ or 0
	prec  int  // -1 for none
	verb  byte // 0 for none
}

// maxWidth bounds widths and precisions.
const maxWidth = 1 << 16

func (rt *render) wide(n int) int {
	if n > maxWidth {
		rt.limit("format width over %d", maxWidth)
	}
	return n
}

// digitsOf spells the digits of an integer or a float as verb asks, without sign.
func (rt *render) digitsOf(n num, sp *fmtSpec) (neg bool, prefix, digits string) {
	verb := sp.verb
	if !n.float && strings.IndexByte("eEfFgG%", verb) >= 0 && verb != 0 {
		n = num{float: true, f: rt.double(n)}
	}
	if n.float {
		f := n.f
		neg = math.Signbit(f) && f == f
		f = math.Abs(f)
		prec := sp.prec
		upper := verb >= 'A' && verb <= 'Z'
		switch {
		case f != f:
			digits = "nan"
		case math.IsInf(f, 0):
			digits = "inf"
		case verb == 'f' || verb == 'F' || verb == '%':
			if prec < 0 {
				prec = 6
			}
			if verb == '%' {
				f *= 100
			}
			digits = strconv.FormatFloat(f, 'f', prec, 64)
			if verb == '%' {
				digits += "%"
			}
		case verb == 'e' || verb == 'E':
			if prec < 0 {
				prec = 6
			}
			digits = strconv.FormatFloat(f, 'e', prec, 64)
		case verb == 0 && prec < 0:
			digits = floatText(f)
		default: // g, or no verb with a precision
			if prec < 0 {
				prec = 6
			}
			if prec == 0 {
				prec = 1
			}
			digits = general(f, prec, sp.alt, verb == 0)
		}
		if sp.alt && f-f == 0 && !strings.Contains(digits, ".") {
			k := strings.IndexAny(digits, "e%")
			if k < 0 {
				k = len(digits)
			}
			digits = digits[:k] + "." + digits[k:]
		}
		if upper {
			digits = strings.ToUpper(digits)
		}
		return neg, "", digits
	}
	b := n.bigint()
	neg = b.Sign() < 0
	abs := new(big.Int).Abs(b)
	switch verb {
	case 'x':
		digits, prefix = abs.Text(16), "0x"
	case 'X':
		digits, prefix = strings.ToUpper(abs.Text(16)), "0X"
	case 'o':
		digits, prefix = abs.Text(8), "0o"
	case 'b':
		digits, prefix = abs.Text(2), "0b"
	default:
		digits = rt.numText(num{big: abs})
	}
	if !sp.alt {
		prefix = ""
	}
	return neg, prefix, digits
}

// general is the g verb; with dot, a whole number keeps ".0" as format does without a verb.
func general(f float64, prec int, alt, dot bool) string {
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	i := strings.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[i+1:])
	limit := prec
	if dot && exp >= 0 && exp == prec-1 {
		limit = prec - 1 // repr style goes to exponents one digit sooner
	}
	trim := func(s string) string {
		if !alt && strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if exp < -4 || exp >= limit {
		return trim(e[:i]) + e[i:]
	}
	s := trim(strconv.FormatFloat(f, 'f', max(prec-1-exp, 0), 64))
	if dot && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// layNumber pads and groups a number.
func layNumber(neg bool, prefix, digits string, sp *fmtSpec) string {
	sign := ""
	switch {
	case neg:
		sign = "-"
	case sp.sign == '+' || sp.sign == ' ':
		sign = string(sp.sign)
	}
	zero := sp.fill == "0" && sp.align == '='
	if sp.group != 0 {
		k := strings.IndexFunc(digits, func(r rune) bool { return !decimal(byte(r)) && (sp.verb|0x20 != 'x' || r < 'A') })
		if sp.verb == 'x' || sp.verb == 'X' {
			k = -1
		}
		if k < 0 {
			k = len(digits)
		}
		whole, rest := digits[:k], digits[k:]
		size := 3
		if sp.group == '_' && sp.verb != 0 && strings.IndexByte("xXob", sp.verb) >= 0 {
			size = 4
		}
		if zero {
			for {
				n := len(whole) + (len(whole)-1)/size
				if n+len(rest)+len(sign)+len(prefix) >= sp.width {
					break
				}
				whole = "0" + whole
			}
		}
		var b strings.Builder
		for i := range len(whole) {
			if i > 0 && (len(whole)-i)%size == 0 {
				b.WriteByte(sp.group)
			}
			b.WriteByte(whole[i])
		}
		digits = b.String() + rest
	}
	head := sign + prefix
	n := sp.width - utf8.RuneCountInString(head) - utf8.RuneCountInString(digits)
	if n <= 0 {
		return head + digits
	}
	pad := strings.Repeat(sp.fill, n)
	switch sp.align {
	case '<':
		return head + digits + pad
	case '^':
		l := strings.Repeat(sp.fill, n/2)
		return l + head + digits + strings.Repeat(sp.fill, n-n/2)
	case '=':
		return head + pad + digits
	}
	return pad + head + digits
}

// percent is the % operator of strings.
func (rt *render) percent(s *Str, v Value) Value {
	w := rt.buf()
	var list []Value
	var dict *Dict
	used := 0
	single := false
	switch x := v.(type) {
	case *Tuple:
		list = x.Items
	default:
		dict, _ = v.(*Dict)
		list, single = []Value{v}, true
	}
	next := func() Value {
		if used == len(list) {
			rt.fail("not enough arguments for format string")
		}
		used++
		return list[used-1]
	}
	t := s.s
	i := 0
	named := false
	for i < len(t) {
		k := strings.IndexByte(t[i:], '%')
		if k < 0 {
			w.addSlice(s, i, len(t))
			break
		}
		w.addSlice(s, i, i+k)
		at := i + k
		i = at + 1
		var arg Value = unset
		if i < len(t) && t[i] == '(' {
			depth, start := 1, i+1
			for i++; i < len(t) && depth > 0; i++ {
				switch t[i] {
				case '(':
					depth++
				case ')':
					depth--
				}
			}
			if depth > 0 {
				rt.fail("incomplete format key")
			}
			if dict == nil {
				rt.fail("format requires a mapping")
			}
			x, ok := dict.Get(t[start : i-1])
			if !ok {
				rt.fail("format: no key %q", t[start:i-1])
			}
			arg, named = x, true
		}
		sp := fmtSpec{fill: " ", prec: -1}
		left := false
	flags:
		for ; i < len(t); i++ {
			switch t[i] {
			case '-':
				left = true
			case '+':
				sp.sign = '+'
			case ' ':
				if sp.sign == 0 {
					sp.sign = ' '
				}
			case '#':
				sp.alt = true
			case '0':
				sp.zero = true
			default:
				break flags
			}
		}
		number_ := func() int {
			if i < len(t) && t[i] == '*' {
				i++
				return rt.wide(rt.int(next(), "width"))
			}
			n := 0
			for ; i < len(t) && decimal(t[i]); i++ {
				n = rt.wide(n*10 + int(t[i]-'0'))
			}
			return n
		}
		if sp.width = number_(); sp.width < 0 {
			left, sp.width = true, -sp.width
		}
		if i < len(t) && t[i] == '.' {
			i++
			sp.prec = max(number_(), 0)
		}
		if i < len(t) && strings.IndexByte("hlL", t[i]) >= 0 {
			i++
		}
		if i >= len(t) {
			rt.fail("incomplete format")
		}
		verb := t[i]
		i++
		if verb == '%' {
			w.addSlice(s, at, at+1)
			continue
		}
		if arg == unset {
			arg = next()
		}
		sp.verb = verb
		specSrc := s.slice(at, i).Source()
		switch verb {
		case 's', 'r', 'a', 'c':
			var x *Str
			switch verb {
			case 's':
				if x = rt.str(arg); s.html {
					x = rt.escape(arg)
				}
			case 'c':
				x = rt.char(arg)
			default:
				if s.html || verb == 'a' {
					rt.fail("%%%c is not supported here", verb)
				}
				b := rt.buf()
				rt.repr(b, arg)
				x = b.str()
			}
			if sp.prec >= 0 && verb != 'c' {
				x = x.slice(0, runeOffset(x.s, sp.prec))
			}
			n := sp.width - utf8.RuneCountInString(x.s)
			pad := strings.Repeat(" ", max(n, 0))
			if !left {
				w.add(pad, specSrc)
			}
			w.addStr(x)
			if left {
				w.add(pad, specSrc)
			}
		case 'd', 'i', 'u', 'x', 'X', 'o', 'f', 'F', 'e', 'E', 'g', 'G':
			n, ok := number(arg)
			rt.undefined(arg)
			isInt := strings.IndexByte("diuxXo", verb) >= 0
			if !ok || n.float && (verb == 'x' || verb == 'X' || verb == 'o') {
				rt.fail("%%%c needs a number, not %s", verb, typeName(arg))
			}
			if n.float && isInt {
				if n.f-n.f != 0 {
					rt.fail("cannot convert float %s to integer", floatText(n.f))
				}
				b, _ := big.NewFloat(n.f).Int(nil)
				n = num{big: b, src: n.src}
			}
			if verb == 'i' || verb == 'u' {
				sp.verb = 'd'
			}
			neg, prefix, digits := rt.digitsOf(n, &sp)
			if isInt && sp.prec > len(digits) {
				digits = strings.Repeat("0", sp.prec-len(digits)) + digits
			}
			switch {
			case left:
				sp.align = '<'
			case sp.zero && !(digits == "inf" || digits == "nan" || digits == "INF" || digits == "NAN"):
				sp.fill, sp.align = "0", '='
			}
			src := n.src
			if src == nil {
				src = specSrc
			}
			w.add(layNumber(neg, prefix, digits, &sp), src)
		default:
			rt.fail("unsupported format character %q", verb)
		}
	}
	if !single && used < len(list) || single && used == 0 && !named && dict == nil {
		switch v.(type) {
		case *List, *rng, *Dict, *undef:
			// Python counts what has items as a mapping, which need not be used.
		default:
			rt.fail("not all arguments converted during string formatting")
		}
	}
	out := w.str()
	out.html = s.html
	return out
}

func (rt *render) char(v Value) *Str {
	if s, ok := v.(*Str); ok && utf8.RuneCountInString(s.s) == 1 {
		return s
	}
	n, ok := number(v)
	if !ok || n.float || n.big != nil || n.i < 0 || n.i > 0x10ffff || n.i >= 0xd800 && n.i < 0xe000 {
		rt.fail("%%c needs a character")
	}
	return &Str{s: string(rune(n.i)), src: n.src}
}

// format is str.format and, with a mapping, format_map.
func (rt *render) format(s *Str, pos []Value, kw []kwarg, mapping Value) Value {
	if s.html {
		rt.fail("format of HTML is not supported")
	}
	f := &formatter{rt: rt, pos: pos, kw: kw, mapping: mapping}
	w := rt.buf()
	f.run(w, s, 2)
	return w.str()
}

type formatter struct {
	rt      *render
	pos     []Value
	kw      []kwarg
	mapping Value
	auto    int // next automatic field; -1 after a numbered one
}

func (f *formatter) run(w *sbuf, s *Str, depth int) {
	rt := f.rt
	if depth < 0 {
		rt.fail("format fields nested too deeply")
	}
	t := s.s
	for i := 0; i < len(t); {
		k := strings.IndexAny(t[i:], "{}")
		if k < 0 {
			w.addSlice(s, i, len(t))
			return
		}
		w.addSlice(s, i, i+k)
		i += k
		if i+1 < len(t) && t[i+1] == t[i] {
			w.addSlice(s, i, i+1)
			i += 2
			continue
		}
		if t[i] == '}' {
			rt.fail("single } in format string")
		}
		start := i + 1
		level, bracket := 1, false
		for i++; i < len(t) && level > 0; i++ {
			switch {
			case t[i] == '[' && level == 1:
				bracket = true
			case t[i] == ']':
				bracket = false
			case t[i] == '{' && !bracket:
				level++
			case t[i] == '}' && !bracket:
				level--
			}
		}
		if level > 0 {
			rt.fail("expected } before end of format string")
		}
		f.field(w, s.slice(start, i-1), depth)
	}
}

func (f *formatter) field(w *sbuf, s *Str, depth int) {
	rt := f.rt
	t := s.s
	end := len(t)
	bracket := false
	for i := 0; i < len(t); i++ {
		if t[i] == '[' {
			bracket = true
		} else if t[i] == ']' {
			bracket = false
		} else if !bracket && (t[i] == '!' || t[i] == ':') {
			end = i
			break
		}
	}
	name, rest := t[:end], end
	conv := byte(0)
	if rest < len(t) && t[rest] == '!' {
		if rest+1 >= len(t) {
			rt.fail("end of format field while looking for a conversion")
		}
		conv = t[rest+1]
		rest += 2
		if rest < len(t) && t[rest] != ':' {
			rt.fail("expected : after conversion")
		}
	}
	v := f.lookup(name)
	sb := rt.buf()
	if rest < len(t) {
		f.run(sb, s.slice(rest+1, len(t)), depth-1)
	}
	switch conv {
	case 0:
	case 's':
		v = rt.str(v)
	case 'r':
		b := rt.buf()
		rt.repr(b, v)
		v = b.str()
	default:
		rt.fail("unknown conversion %q", conv)
	}
	rt.formatValue(w, v, sb.str())
}

func (f *formatter) lookup(name string) Value {
	rt := f.rt
	k := strings.IndexAny(name, ".[")
	if k < 0 {
		k = len(name)
	}
	first, rest := name[:k], name[k:]
	var v Value = unset
	n, err := strconv.Atoi(first)
	switch {
	case first == "":
		if f.auto < 0 {
			rt.fail("automatic and numbered fields are mixed")
		}
		n = f.auto
		f.auto++
		fallthrough
	case err == nil && n >= 0 && decimal((first + "0")[0]):
		if first != "" {
			if f.auto > 0 {
				rt.fail("automatic and numbered fields are mixed")
			}
			f.auto = -1
		}
		if n >= len(f.pos) {
			rt.fail("format has no argument %d", n)
		}
		v = f.pos[n]
	case f.mapping != nil:
		var ok bool
		if v, ok = rt.subscript(f.mapping, &Str{s: first}); !ok {
			rt.fail("format has no argument %q", first)
		}
	default:
		for _, a := range f.kw {
			if a.name == first {
				v = a.v
			}
		}
		if v == unset {
			rt.fail("format has no argument %q", first)
		}
	}
	for rest != "" {
		if rest[0] == '.' {
			k := strings.IndexAny(rest[1:], ".[")
			if k < 0 {
				k = len(rest) - 1
			}
			if k == 0 {
				rt.fail("empty attribute in format string")
			}
			v = rt.attr(v, rest[1:1+k])
			rest = rest[1+k:]
			continue
		}
		k := strings.IndexByte(rest, ']')
		if rest[0] != '[' || k < 2 {
			rt.fail("malformed field in format string")
		}
		if i, err := strconv.ParseInt(rest[1:k], 10, 64); err == nil && decimal(rest[1]) {
			v = rt.item(v, i)
		} else {
			v = rt.item(v, &Str{s: rest[1:k]})
		}
		rest = rest[k+1:]
	}
	return v
}

// formatValue is Python's format(v, spec).
func (rt *render) formatValue(w *sbuf, v Value, spec *Str) {
	if spec.s == "" {
		rt.print(w, v)
		return
	}
	n, isNum := number(v)
	s, isStr := v.(*Str)
	if !isNum && !isStr {
		rt.fail("%s does not take a format", typeName(v))
	}
	t := spec.s
	sp := fmtSpec{fill: " ", prec: -1}
	if r, k := utf8.DecodeRuneInString(t); len(t) > k && strings.IndexByte("<>^=", t[k]) >= 0 {
		sp.fill, sp.align = string(r), t[k]
		t = t[k+1:]
	} else if t != "" && strings.IndexByte("<>^=", t[0]) >= 0 {
		sp.align = t[0]
		t = t[1:]
	}
	if t != "" && strings.IndexByte("+- ", t[0]) >= 0 {
		sp.sign = t[0]
		t = t[1:]
	}
	if strings.HasPrefix(t, "#") {
		sp.alt = true
		t = t[1:]
	}
	if strings.HasPrefix(t, "0") {
		if sp.align == 0 {
			sp.fill = "0"
			if isNum {
				sp.align = '='
			} else {
				sp.align = '<'
			}
		} else if !strings.HasPrefix(spec.s, sp.fill+string(sp.align)) {
			sp.fill = "0"
		}
		t = t[1:]
	}
	digits := func() int {
		n, any := 0, false
		for t != "" && decimal(t[0]) {
			n = rt.wide(n*10 + int(t[0]-'0'))
			t = t[1:]
			any = true
		}
		if !any {
			return -1
		}
		return n
	}
	sp.width = max(digits(), 0)
	if t != "" && (t[0] == ',' || t[0] == '_') {
		sp.group = t[0]
		t = t[1:]
	}
	if strings.HasPrefix(t, ".") {
		t = t[1:]
		if sp.prec = digits(); sp.prec < 0 {
			rt.fail("format specifier missing precision")
		}
	}
	if t != "" {
		sp.verb = t[0]
		t = t[1:]
	}
	if t != "" {
		rt.fail("invalid format specifier %q", spec.s)
	}
	src := spec.Source()
	if isStr {
		if sp.verb != 0 && sp.verb != 's' || sp.sign != 0 || sp.alt || sp.group != 0 || sp.align == '=' {
			rt.fail("invalid format specifier %q for a string", spec.s)
		}
		x := s
		if sp.prec >= 0 {
			x = x.slice(0, runeOffset(x.s, sp.prec))
		}
		k := max(sp.width-utf8.RuneCountInString(x.s), 0)
		l := 0
		switch sp.align {
		case '>':
			l = k
		case '^':
			l = k / 2
		}
		w.add(strings.Repeat(sp.fill, l), src)
		w.addStr(x)
		w.add(strings.Repeat(sp.fill, k-l), src)
		return
	}
	verbs := "bcdoxXneEfFgG%"
	if n.float {
		verbs = "eEfFgGn%"
	}
	if sp.verb != 0 && strings.IndexByte(verbs, sp.verb) < 0 {
		rt.fail("unknown format code %q for %s", sp.verb, typeName(v))
	}
	if !n.float && sp.prec >= 0 && (sp.verb == 0 || strings.IndexByte("bcdoxXn", sp.verb) >= 0) {
		rt.fail("precision is not allowed in an integer format")
	}
	if sp.verb == 'n' {
		if sp.group != 0 {
			rt.fail("cannot group with n")
		}
		sp.verb = 'd'
		if n.float {
			sp.verb = 'g'
		}
	}
	if sp.group == ',' && sp.verb != 0 && strings.IndexByte("bcoxX", sp.verb) >= 0 {
		rt.fail("cannot group with %q", sp.verb)
	}
	if n.src != nil {
		src = n.src
	}
	if sp.verb == 'c' {
		if sp.sign != 0 || sp.alt || sp.group != 0 {
			rt.fail("invalid format specifier %q", spec.s)
		}
		x := rt.char(n.value())
		sp.verb = 0
		w.add(layNumber(false, "", x.s, &fmtSpec{fill: sp.fill, align: sp.align, width: sp.width}), src)
		return
	}
	neg, prefix, ds := rt.digitsOf(n, &sp)
	w.add(layNumber(neg, prefix, ds, &sp), src)
}
