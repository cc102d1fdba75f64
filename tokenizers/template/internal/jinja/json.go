// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/jsonr"
	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// Builder makes values of JSON. The zero Builder is ready; it hands out memory in blocks, so use one for
// all parts of a request.
type Builder struct {
	strs                           []Str
	origins                        []Origin
	dicts                          []Dict
	lists                          []List
	nums                           []num
	values                         []Value
	strRoom, originRoom, valueRoom int // lengths of their last blocks

	key     []byte
	buf     []byte
	written bool // numbers keep their spelling
}

func (b *Builder) origin(parent *Origin, key string, index int) *Origin {
	if len(b.origins) == 0 {
		b.origins = make([]Origin, block(&b.originRoom))
	}
	o := &b.origins[0]
	b.origins = b.origins[1:]
	o.parent, o.key, o.index = parent, key, index
	return o
}

func (b *Builder) str(s string, src *Origin) *Str {
	if len(b.strs) == 0 {
		b.strs = make([]Str, block(&b.strRoom))
	}
	x := &b.strs[0]
	b.strs = b.strs[1:]
	x.s, x.src = s, src
	return x
}

// block returns the length of the next block of memory, given the last one. The first is for a few messages, because
// a value that is kept keeps its block.
func block(last *int) int {
	*last = min(max(2**last, 24), 1024)
	return *last
}

// room returns memory for n values.
func (b *Builder) room(n int) []Value {
	if len(b.values) < n {
		b.values = make([]Value, max(n, block(&b.valueRoom)))
	}
	v := b.values[:0:n]
	b.values = b.values[n:]
	return v
}

// Value converts v. The result comes from root and places in it, and shares the texts of v.
func (b *Builder) Value(v *jsonval.Value, root *Origin) Value {
	switch v.Kind {
	case jsonval.Bool:
		return v.Bool
	case jsonval.Int, jsonval.Float:
		if len(b.nums) == 0 {
			b.nums = make([]num, 16)
		}
		n := &b.nums[0]
		b.nums = b.nums[1:]
		*n = parseNumber(v.Str, v.Kind == jsonval.Float, root)
		return n
	case jsonval.String:
		s := b.str(v.Str, root)
		s.written = v.Bool
		return s
	case jsonval.Array:
		if len(b.lists) == 0 {
			b.lists = make([]List, 16)
		}
		l := &b.lists[0]
		b.lists = b.lists[1:]
		l.src = root
		if len(v.List) == 0 {
			return l
		}
		l.Items = b.room(len(v.List))
		for i := range v.List {
			l.Items = append(l.Items, b.part(&v.List[i], root, "", i))
		}
		return l
	case jsonval.Object:
		d := b.dict(root)
		if len(v.List) == 0 {
			return d
		}
		d.names, d.vals = v.Keys, b.room(len(v.List))
		for i, k := range v.Keys {
			d.vals = append(d.vals, b.part(&v.List[i], root, k, -1))
		}
		if len(d.vals) > manyKeys {
			d.findFast()
		}
		return d
	}
	return nil
}

// part converts v, a part of the value at parent.
func (b *Builder) part(v *jsonval.Value, parent *Origin, key string, index int) Value {
	switch v.Kind {
	case jsonval.Undefined, jsonval.Null:
		return nil
	case jsonval.Bool:
		return v.Bool
	}
	return b.Value(v, b.origin(parent, key, index))
}

func (b *Builder) dict(src *Origin) *Dict {
	if len(b.dicts) == 0 {
		b.dicts = make([]Dict, 16)
	}
	d := &b.dicts[0]
	b.dicts = b.dicts[1:]
	d.src = src
	return d
}

// words are keys and values that requests are full of.
var words = func() map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq("role content type text function name arguments id tool_calls tool_call_id reasoning_content reasoning thinking user assistant system tool developer description parameters properties required enum items object string number integer boolean array image image_url url title default additionalProperties") {
		m[w] = w
	}
	return m
}()

func word(b []byte) string {
	if len(b) <= 20 {
		if w, ok := words[string(b)]; ok {
			return w
		}
	}
	return string(b)
}

// Parse reads a JSON document. name is its path in errors, which are *jsonr.Error; the values come from
// root and places in it.
func (b *Builder) Parse(data []byte, name string, root *Origin) (Value, error) {
	b.written = false
	return b.parse(data, name, root)
}

// ParseString is Parse for the JSON in a string of the request. If a model wrote it, numbers are printed as they are
// spelled, such as 1e3.
func (b *Builder) ParseString(s *Str, name string, root *Origin) (Value, error) {
	b.written = s.written
	return b.parse([]byte(s.s), name, root)
}

func (b *Builder) parse(data []byte, name string, root *Origin) (Value, error) {
	r := jsonr.New(jsonr.Span{Data: data}, name)
	v := b.read(r, root)
	if err := r.End(); err != nil {
		return nil, err
	}
	return v, nil
}

func (b *Builder) read(r *jsonr.Reader, at *Origin) Value {
	switch r.Peek() {
	case '"':
		b.buf = r.String(b.buf[:0])
		return b.str(word(b.buf), at)
	case '[':
		v := &List{src: at}
		for r.Array(); r.Next(); {
			v.Items = append(v.Items, b.read(r, b.origin(at, "", len(v.Items))))
		}
		return v
	case '{':
		d := b.dict(at)
		for r.Object(); r.Key(&b.key); {
			k := word(b.key)
			x := b.read(r, b.origin(at, k, -1))
			if i := d.find(k); i >= 0 { // as in Python, a second value replaces the first
				d.vals[i] = x
				continue
			}
			if d.names == nil {
				d.names = make([]string, 0, 4)
				d.vals = make([]Value, 0, 4)
			}
			d.pushName(k, x)
		}
		return d
	}
	switch s := string(r.Raw().Data); s {
	case "null":
		return nil
	case "true", "false":
		return s == "true"
	default:
		if len(s) > maxDigits && !strings.ContainsAny(s, ".eE") {
			r.Fail("is an integer of more than %d digits", maxDigits)
			return nil
		}
		n := parseNumber(s, strings.ContainsAny(s, ".eE"), at)
		if b.written {
			n.text = s
		}
		return &n
	}
}

func parseNumber(s string, float bool, at *Origin) num {
	if float {
		f, _ := strconv.ParseFloat(s, 64) // out of range gives an infinity, as in Python
		return num{float: true, f: f, src: at}
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return num{i: i, src: at}
	}
	n, _ := new(big.Int).SetString(s, 10)
	return num{big: n, src: at}
}

// jsonStyle are the arguments of json.dumps.
type jsonStyle struct {
	ascii, sort bool
	indent      string // per level, if pretty
	pretty      bool
	item, key   string // separators
}

// dumps writes v as json.dumps does. A container of the request is written as one piece of it, but its root
// lists element by element.
func (rt *render) dumps(w *sbuf, v Value, st *jsonStyle, level int, in *Origin) {
	or := func(src *Origin) *Origin { return inside(in, src) }
	line := func(level int, src *Origin) {
		if st.pretty {
			w.add("\n", src)
			for range level {
				w.add(st.indent, src)
			}
		}
	}
	switch v := v.(type) {
	case nil:
		w.add("null", in)
	case bool:
		w.add(strconv.FormatBool(v), in)
	case int64, float64, *num:
		n, text := written(v)
		if text == "" {
			text = rt.jsonNum(n)
		}
		w.add(text, or(n.src))
	case *Str:
		rt.jsonStr(w, v, st, or)
	case *List, *Tuple:
		items := rt.list(v)
		src := in
		if l, ok := v.(*List); ok {
			src = or(l.src)
		}
		if len(items) == 0 {
			w.add("[]", src)
			return
		}
		rt.enter()
		w.add("[", src)
		for i, x := range items {
			if i > 0 {
				w.add(st.item, src)
			}
			line(level+1, src)
			rt.dumps(w, x, st, level+1, src)
		}
		line(level, src)
		w.add("]", src)
		rt.leave()
	case *Dict:
		src := or(v.src)
		if len(v.vals) == 0 {
			w.add("{}", src)
			return
		}
		rt.enter()
		w.add("{", src)
		var order []int
		if st.sort {
			keys := rt.keys(v)
			order = make([]int, len(keys))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int { return rt.order("<", keys[a], keys[b]) })
		}
		for i := range v.vals {
			if i > 0 {
				w.add(st.item, src)
			}
			if st.sort {
				i = order[i]
			}
			line(level+1, src)
			rt.jsonKey(w, v, i, st, src)
			w.add(st.key, src)
			rt.dumps(w, v.vals[i], st, level+1, src)
		}
		line(level, src)
		w.add("}", src)
		rt.leave()
	default:
		rt.fail("tojson: %s is not JSON serializable", typeName(v))
	}
}

func (rt *render) jsonNum(n num) string {
	if n.float {
		switch {
		case n.f != n.f:
			return "NaN"
		case math.IsInf(n.f, 1):
			return "Infinity"
		case math.IsInf(n.f, -1):
			return "-Infinity"
		}
	}
	return rt.numText(n)
}

// escape adds a part of a string of JSON, without its quotes, that need not be ASCII. The text is not the template's output.
func (w *sbuf) escape(s string, src *Origin) {
	const piece = 1 << 16 // bytes after which the limit is checked, since escapes take up to 6 bytes per byte
	for s != "" {
		n := min(len(s), piece)
		w.b = jsonval.AppendEscaped(w.b, s[:n])
		w.limit(0)
		w.mark(src)
		s = s[n:]
	}
}

// jsonKey adds key i of a dict whose own text comes from src.
func (rt *render) jsonKey(w *sbuf, d *Dict, i int, st *jsonStyle, src *Origin) {
	if d.names != nil && !st.ascii {
		w.add(`"`, src)
		w.escape(d.names[i], src)
		w.add(`"`, src)
		return
	}
	switch k := d.key(i).(type) {
	case *Str:
		rt.jsonStr(w, k, st, func(o *Origin) *Origin {
			if src != nil {
				return src
			}
			return o
		})
	case nil:
		w.add(`"null"`, src)
	case bool:
		w.add(`"`+strconv.FormatBool(k)+`"`, src)
	case int64, float64, *num:
		x, _ := number(k)
		w.add(`"`+rt.jsonNum(x)+`"`, cmp.Or(x.src, src))
	default:
		rt.fail("tojson: a key is %s", typeName(k))
	}
}

func (rt *render) jsonStr(w *sbuf, s *Str, st *jsonStyle, or func(*Origin) *Origin) {
	first, last := s.src, s.src
	if s.segs != nil {
		first, last = s.segs[0].Origin, s.segs[len(s.segs)-1].Origin
	}
	w.add(`"`, or(first))
	s.pieces(func(t string, src *Origin) {
		src = or(src)
		from := 0
		for i := 0; st.ascii && i < len(t); i++ {
			if t[i] < 0x7f {
				continue
			}
			w.escape(t[from:i], src)
			r, n := utf8.DecodeRuneInString(t[i:])
			if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
				w.add(hexEscape('u', r1, 4)+hexEscape('u', r2, 4), src)
			} else {
				w.add(hexEscape('u', r, 4), src)
			}
			i += n - 1
			from = i + 1
		}
		w.escape(t[from:], src)
	})
	w.add(`"`, or(last))
}

// tojson is the filter as transformers defines it: json.dumps without escapes for HTML.
func (rt *render) tojson(v Value, a *args) Value {
	p := a.bind(rt, "tojson", true, "ensure_ascii", "indent", "separators", "sort_keys")
	st := &jsonStyle{item: ", ", key: ": "}
	st.ascii = p[0] != unset && truth(p[0])
	switch x := p[1].(type) {
	case nil, *unsetType:
	case *Str:
		st.pretty, st.indent = true, x.s
	default:
		n, ok := number(x)
		if !ok || n.float {
			rt.fail("tojson: indent is %s", typeName(x))
		}
		st.pretty, st.indent = true, strings.Repeat(" ", min(max(rt.int(x, "indent"), 0), 1024))
	}
	if st.pretty {
		st.item = ","
	}
	if p[2] != unset && p[2] != nil {
		list := rt.list(p[2])
		if len(list) != 2 {
			rt.fail("tojson: separators are not two")
		}
		st.item, st.key = rt.string(list[0], "separator").s, rt.string(list[1], "separator").s
	}
	st.sort = p[3] != unset && truth(p[3])
	w := rt.buf()
	rt.dumps(w, v, st, 0, nil)
	return taint(w.str(), a)
}

// taint marks a whole text as coming from the request if one of the arguments does.
func taint(s *Str, a *args) *Str {
	var src *Origin
	for _, v := range a.pos {
		src = cmp.Or(src, deepSource(v))
	}
	for _, k := range a.kw {
		src = cmp.Or(src, deepSource(k.v))
	}
	if src == nil {
		return s
	}
	return &Str{s: s.s, src: src, html: s.html}
}

// deepSource is source, also of the elements of lists and tuples.
func deepSource(v Value) *Origin {
	src := source(v)
	var items []Value
	switch v := v.(type) {
	case *List:
		items = v.Items
	case *Tuple:
		items = v.Items
	}
	for _, x := range items {
		src = cmp.Or(src, source(x))
	}
	return src
}
