// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"iter"
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync/atomic"
)

// Value is a value of the template language. Its dynamic types are nil (None), bool, int64, float64, *num
// (an integer beyond int64, or a number out of the request), [*Str], [*List], [*Tuple], [*Dict], and types of
// this package for what templates make or are given: undefined values, namespaces, ranges, views of dicts,
// generators, functions, macros and loops.
type Value any

// Origin is a position in a request. A nil Origin means the template itself, which is trusted.
type Origin struct {
	parent *Origin
	key    string // if index < 0
	index  int
	path   atomic.Pointer[string] // see Keep
}

// Root returns the origin of a part of the request that has a name, such as messages.
func Root(name string) *Origin { return &Origin{key: name, index: -1} }

// Parent returns the position that contains o, or nil at a root.
func (o *Origin) Parent() *Origin { return o.parent }

// Key returns the last step of the path if it is a name, and "" if it is an index.
func (o *Origin) Key() string {
	if o.index >= 0 {
		return ""
	}
	return o.key
}

// Index returns the last step of the path if it is an index, and -1 if it is a name.
func (o *Origin) Index() int { return o.index }

// Path returns the position as text, such as messages[2].content.
func (o *Origin) Path() string {
	if o == nil {
		return ""
	}
	var buf [96]byte
	return string(o.appendPath(buf[:0]))
}

// Kept returns the position that was passed to Keep, or nil.
func (o *Origin) Kept() *string { return o.path.Load() }

// Keep keeps the position, which is equal to Path, for later calls of Kept.
func (o *Origin) Keep(path *string) { o.path.Store(path) }

// AppendPath appends the position to b.
func (o *Origin) AppendPath(b []byte) []byte { return o.appendPath(b) }

func (o *Origin) appendPath(b []byte) []byte {
	if o.parent != nil {
		b = o.parent.appendPath(b)
	}
	if o.index >= 0 {
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(o.index), 10)
		return append(b, ']')
	}
	if o.parent != nil {
		b = append(b, '.')
	}
	return append(b, o.key...)
}

// Str is a string with provenance.
type Str struct {
	s    string
	src  *Origin   // of all of it, if segs is nil
	segs []Segment // else: in order, the last one ends at len(s)
	html bool      // Markup of Python's markupsafe: adding plain text to it escapes that

	written bool // it is JSON that a model wrote
}

// NewStr returns a string that comes from src as a whole.
func NewStr(s string, src *Origin) *Str { return &Str{s: s, src: src} }

func (s *Str) String() string { return s.s }

// Source returns the origin of the first byte that is not the template's, or nil if absent.
func (s *Str) Source() *Origin {
	if s.segs == nil {
		return s.src
	}
	for _, g := range s.segs {
		if g.Origin != nil {
			return g.Origin
		}
	}
	return nil
}

// slice returns the bytes [lo, hi).
func (s *Str) slice(lo, hi int) *Str {
	if lo >= hi {
		return &Str{html: s.html}
	}
	if lo == 0 && hi == len(s.s) {
		return s
	}
	out := &Str{s: s.s[lo:hi], src: s.src, html: s.html}
	if s.segs != nil {
		out.src = nil
		i := s.segAt(lo)
		if s.segs[i].End >= hi {
			out.src = s.segs[i].Origin
			return out
		}
		for ; ; i++ {
			g := s.segs[i]
			if g.End >= hi {
				out.segs = append(out.segs, Segment{hi - lo, g.Origin})
				break
			}
			out.segs = append(out.segs, Segment{g.End - lo, g.Origin})
		}
	}
	return out
}

// segAt returns the index of the segment that holds the byte at i.
func (s *Str) segAt(i int) int {
	lo, hi := 0, len(s.segs)
	for lo < hi {
		m := (lo + hi) / 2
		if s.segs[m].End <= i {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// plain returns s without the mark of being HTML.
func (s *Str) plain() *Str {
	if !s.html {
		return s
	}
	c := *s
	c.html = false
	return &c
}

func (s *Str) marked() *Str {
	if s.html {
		return s
	}
	c := *s
	c.html = true
	return &c
}

// sbuf builds a text with provenance. The text of the template's output may begin like that of an earlier rendering, which
// is not copied then: the text is base[:same] and b. While b is empty and base is not, what is added is compared with base.
type sbuf struct {
	rt   *render
	b    []byte
	segs []Segment

	base string // "" once the text differs from it
	same int
}

// size returns the length of the text.
func (w *sbuf) size() int { return w.same + len(w.b) }

func (w *sbuf) add(s string, src *Origin) {
	if s == "" {
		return
	}
	w.limit(len(s))
	if w.base != "" {
		w.follow(s)
	} else {
		w.b = append(w.b, s...)
	}
	w.mark(src)
}

// limit fails if the text is too long with n more bytes.
func (w *sbuf) limit(n int) {
	if w.size()+n > w.rt.maxText {
		w.rt.limit("text exceeds %d bytes", w.rt.maxText)
	}
}

// follow adds a text of which base may have the beginning.
func (w *sbuf) follow(s string) {
	rest := w.base[w.same:]
	n := min(len(s), len(rest))
	if s[:n] != rest[:n] {
		n = 0
		for s[n] == rest[n] {
			n++
		}
	}
	w.same += n
	if n < len(s) {
		w.b, w.base = append(w.b, s[n:]...), ""
	}
}

// mark sets the source of the bytes after the last segment.
func (w *sbuf) mark(src *Origin) {
	if k := len(w.segs) - 1; k >= 0 && w.segs[k].Origin == src {
		w.segs[k].End = w.size()
		return
	}
	w.segs = append(w.segs, Segment{w.size(), src})
}

func (w *sbuf) addStr(s *Str) {
	if s.segs == nil {
		w.add(s.s, s.src)
		return
	}
	from := 0
	for _, g := range s.segs {
		w.add(s.s[from:g.End], g.Origin)
		from = g.End
	}
}

func (w *sbuf) addSlice(s *Str, lo, hi int) {
	if lo >= hi {
		return
	}
	if s.segs == nil {
		w.add(s.s[lo:hi], s.src)
		return
	}
	for i := s.segAt(lo); lo < hi; i++ {
		end := min(s.segs[i].End, hi)
		w.add(s.s[lo:end], s.segs[i].Origin)
		lo = end
	}
}

// str returns the text and gives the buffer back.
func (w *sbuf) str() *Str {
	rt := w.rt
	rt.charge(len(w.b) + 16*len(w.segs))
	out := &Str{}
	switch len(w.segs) {
	case 0:
	case 1:
		out.s, out.src = string(w.b), w.segs[0].Origin
	default:
		out.s, out.segs = string(w.b), append([]Segment(nil), w.segs...)
	}
	if cap(w.b) <= 1<<16 && len(rt.free) < 16 {
		w.b, w.segs = w.b[:0], w.segs[:0]
		rt.free = append(rt.free, w)
	}
	return out
}

// pieces calls f for each run of one origin.
func (s *Str) pieces(f func(text string, src *Origin)) {
	if s.segs == nil {
		f(s.s, s.src)
		return
	}
	from := 0
	for _, g := range s.segs {
		f(s.s[from:g.End], g.Origin)
		from = g.End
	}
}

// List is Python's list.
type List struct {
	Items []Value
	src   *Origin
}

// Tuple is Python's tuple.
type Tuple struct {
	Items []Value
	group bool // has the attributes grouper and list
}

// Dict is Python's dict: it keeps the order of insertion.
type Dict struct {
	names []string // the keys of a dict of the request, which come from src; it may share them with others. nil once one is added
	keys  []Value  // the keys, if names is nil
	vals  []Value
	at    map[string]int // of string keys, once there are many
	src   *Origin
}

const manyKeys = 12

// find returns the index of a string key, or -1.
func (d *Dict) find(key string) int {
	if d.at != nil {
		if i, ok := d.at[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.names {
		if k == key {
			return i
		}
	}
	for i, k := range d.keys {
		if s, ok := k.(*Str); ok && s.s == key {
			return i
		}
	}
	return -1
}

// key returns key i.
func (d *Dict) key(i int) Value {
	if d.names != nil {
		return &Str{s: d.names[i], src: d.src}
	}
	return d.keys[i]
}

// keyList returns the keys. The caller must not change them. In a rendering, [render.keys] also charges for them.
func (d *Dict) keyList() []Value {
	if d.names == nil {
		return d.keys
	}
	list, strs := make([]Value, len(d.names)), make([]Str, len(d.names))
	for i, s := range d.names {
		strs[i].s, strs[i].src = s, d.src
		list[i] = &strs[i]
	}
	return list
}

// text returns key i if it is a string.
func (d *Dict) text(i int) (s string, ok bool) {
	if d.names != nil {
		return d.names[i], true
	}
	if k, ok := d.keys[i].(*Str); ok {
		return k.s, true
	}
	return "", false
}

// Get returns the value of a string key.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.find(key); i >= 0 {
		return d.vals[i], true
	}
	return nil, false
}

// Set stores the value of a key. Only the owner of a dict that no template has seen yet may do so.
func (d *Dict) Set(key *Str, v Value) {
	if i := d.find(key.s); i >= 0 {
		d.vals[i] = v
		return
	}
	d.push(key, v)
}

func (d *Dict) push(key, v Value) {
	d.keys, d.names = append(d.keyList(), key), nil
	d.vals = append(d.vals, v)
	if s, ok := key.(*Str); ok {
		d.pushed(s.s)
	}
}

// pushName adds a field to a dict of the request that has only such fields and does not share their names.
func (d *Dict) pushName(name string, v Value) {
	d.names = append(d.names, name)
	d.vals = append(d.vals, v)
	d.pushed(name)
}

// pushed adds the last key to d.at.
func (d *Dict) pushed(key string) {
	if d.at != nil {
		d.at[key] = len(d.vals) - 1
	} else if len(d.vals) > manyKeys {
		d.findFast()
	}
}

// findFast makes d.at.
func (d *Dict) findFast() {
	d.at = make(map[string]int, 2*len(d.vals))
	for i := range d.vals {
		if s, ok := d.text(i); ok {
			d.at[s] = i
		}
	}
}

// All steps through string keys and values.
func (d *Dict) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i, v := range d.vals {
			if s, ok := d.text(i); ok && !yield(s, v) {
				return
			}
		}
	}
}

// Source returns where in the request the dict is, nil if a template made it.
func (d *Dict) Source() *Origin { return d.src }

// Source returns where in the request the list is, nil if a template made it.
func (l *List) Source() *Origin { return l.src }

// Delete removes a string key, under the same condition as [Dict.Set].
func (d *Dict) Delete(key string) {
	i := d.find(key)
	if i < 0 {
		return
	}
	if d.names != nil {
		d.names = append(d.names[:i:i], d.names[i+1:]...)
	} else {
		d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	}
	d.vals = append(d.vals[:i:i], d.vals[i+1:]...)
	if d.at != nil {
		d.findFast()
	}
}

// DeleteNulls removes the string keys whose value is None, except for one, under the same condition as [Dict.Set].
func (d *Dict) DeleteNulls(except string) {
	null := func(i int) bool {
		s, ok := d.text(i)
		return ok && d.vals[i] == nil && s != except
	}
	keep := make([]int, 0, 16)
	for i := range d.vals {
		if !null(i) {
			keep = append(keep, i)
		}
	}
	if len(keep) == len(d.vals) {
		return
	}
	d.names, d.keys, d.vals = pick(d.names, keep), pick(d.keys, keep), pick(d.vals, keep)
	if d.at != nil {
		d.findFast()
	}
}

// pick returns the elements of a list at some indexes. Without a list, it returns nil.
func pick[T any](list []T, at []int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(at))
	for k, i := range at {
		out[k] = list[i]
	}
	return out
}

// num is an integer or a double, for operations on mixed or large numbers.
type num struct {
	float bool
	i     int64
	big   *big.Int // if not nil, instead of i
	f     float64
	src   *Origin
	text  string // how it was written, if it is printed so; otherwise ""
}

// number returns the number in v; bools are treated as 0 and 1, as in Python.
func number(v Value) (num, bool) {
	switch v := v.(type) {
	case int64:
		return num{i: v}, true
	case float64:
		return num{float: true, f: v}, true
	case *num:
		n := *v
		n.text = ""
		return n, true
	case bool:
		if v {
			return num{i: 1}, true
		}
		return num{}, true
	}
	return num{}, false
}

// written returns a number and how it was written, or "".
func written(v Value) (n num, text string) {
	if v, ok := v.(*num); ok {
		text = v.text
	}
	n, _ = number(v)
	return n, text
}

func (n num) value() Value {
	if n.big != nil && n.big.IsInt64() {
		n.i, n.big = n.big.Int64(), nil
	}
	if n.src == nil && n.big == nil {
		if n.float {
			return n.f
		}
		return integer(n.i)
	}
	out := n // so that only this case needs memory
	return &out
}

// integer returns i without memory if it is small.
func integer(i int64) Value {
	if i >= 0 && i < int64(len(smallInts)) {
		return smallInts[i]
	}
	return i
}

// smallInts has the values of small integers, which then need no memory.
var smallInts = func() (list [1024]Value) {
	for i := range list {
		list[i] = int64(i)
	}
	return list
}()

// bigint returns an integer.
func (n num) bigint() *big.Int {
	if n.big != nil {
		return n.big
	}
	return big.NewInt(n.i)
}

// float64 converts to a double; ok is false if an integer is too large for one.
func (n num) float64() (float64, bool) {
	switch {
	case n.float:
		return n.f, true
	case n.big != nil:
		f, _ := new(big.Float).SetInt(n.big).Float64()
		return f, f-f == 0
	}
	return float64(n.i), true
}

func (n num) zero() bool {
	if n.float {
		return n.f == 0
	}
	if n.big != nil {
		return n.big.Sign() == 0
	}
	return n.i == 0
}

// undef is an undefined value.
type undef struct {
	name string // of the variable, attribute or element
	of   string // type that lacks it; "" for a variable
	hint string // instead of both

	unsafe bool // the sandbox hides it
}

func (u *undef) message() string {
	switch {
	case u.hint != "":
		return u.hint
	case u.of != "":
		return u.of + " has no attribute or element " + strconv.Quote(u.name)
	}
	return strconv.Quote(u.name) + " is undefined"
}

// namespace is the result of namespace(): the only value that templates may change.
type namespace struct{ d Dict }

// rng is Python's range.
type rng struct{ start, stop, step, n int64 }

// view is dict.keys(), values() or items().
type view struct {
	d    *Dict
	kind byte // k, v or i
}

// iterator is a generator or an iterator: it can be consumed once.
type iterator struct {
	what string
	next func() (Value, bool)
}

// callable is a function or a bound method.
type callable struct {
	name string
	fn   func(rt *render, a *args) Value
}

// cycler is the result of cycler().
type cycler struct {
	items []Value
	pos   int
}

type unsetType struct{}

// unset marks a variable or argument that has no value. It never reaches templates.
var unset Value = &unsetType{}

// args are the arguments of a call.
type args struct {
	pos []Value
	kw  []kwarg
}

type kwarg struct {
	name string
	v    Value
}

// typeName returns Python's name of the type of v.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case *num:
		if v.float {
			return "float"
		}
		return "int"
	case *Str:
		if v.html {
			return "Markup"
		}
		return "str"
	case *List:
		return "list"
	case *Tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case *undef:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *rng:
		return "range"
	case *view:
		return map[byte]string{'k': "dict_keys", 'v': "dict_values", 'i': "dict_items"}[v.kind]
	case *iterator:
		return v.what
	case *callable:
		return "function"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	}
	return "object"
}

// source returns a position in the request whose text v contains, or nil if absent at the surface.
func source(v Value) *Origin {
	switch v := v.(type) {
	case *Str:
		return v.Source()
	case *num:
		return v.src
	case *List:
		return v.src
	case *Dict:
		return v.src
	}
	return nil
}

// hashKey spells a value other than a string as a key of a dict or set, so that equal ones are spelled alike.
func hashKey(rt *render, v Value) string {
	switch v := v.(type) {
	case nil:
		return "N"
	case *Str:
		return "s" + v.s
	case bool, int64, float64, *num:
		n, _ := number(v)
		if n.float {
			if n.f == float64(int64(n.f)) && n.f < 1<<62 && n.f > -(1<<62) {
				return "i" + strconv.FormatInt(int64(n.f), 10)
			}
			if n.f-n.f == 0 && n.f == math.Trunc(n.f) {
				b, _ := big.NewFloat(n.f).Int(nil)
				return "i" + b.String()
			}
			return "f" + strconv.FormatFloat(n.f, 'g', -1, 64)
		}
		if n.big != nil {
			return "i" + n.big.String()
		}
		return "i" + strconv.FormatInt(n.i, 10)
	case *Tuple:
		var b strings.Builder
		b.WriteByte('t')
		for _, x := range v.Items {
			k := hashKey(rt, x)
			b.WriteString(strconv.Itoa(len(k)))
			b.WriteByte(':')
			b.WriteString(k)
		}
		return b.String()
	case *undef:
		return "U"
	case *List, *Dict:
		rt.fail("unhashable type: %s", typeName(v))
	}
	rt.fail("%s as a key is not supported", typeName(v))
	return ""
}

// index returns the position of any key in d, or -1.
func (d *Dict) index(rt *render, key Value) int {
	if s, ok := key.(*Str); ok {
		return d.find(s.s)
	}
	want := hashKey(rt, key)
	for i, k := range d.keys { // the others are strings
		if _, ok := k.(*Str); !ok && hashKey(rt, k) == want {
			return i
		}
	}
	return -1
}

func (d *Dict) put(rt *render, key, v Value) {
	if i := d.index(rt, key); i >= 0 {
		d.vals[i] = v
		return
	}
	d.push(key, v)
}
