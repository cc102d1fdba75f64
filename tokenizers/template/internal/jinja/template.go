// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-go/weft/tokenizers/template/internal/longtext"
)

// Range is the bytes [Start, End) of a text.
type Range struct{ Start, End int }

// Template is a compiled template. It is safe for concurrent use.
type Template struct {
	name   string
	src    string
	body   []stmt
	names  map[string]int
	root   []Value // globals, unset elsewhere
	hasGen bool
	free   []string // variables that it reads before it sets them, sorted
	// hidden are variables that the top of the template sets without having read them, after an inner scope, such as a loop, has. In
	// Jinja they are undefined until then, even if the template is given one.
	hidden []int
}

// Compile compiles a template with the settings of Hugging Face transformers: trim_blocks and lstrip_blocks
// on, the final line end dropped, loop controls and generation tags known. Errors are [*Error].
func Compile(name, source string) (t *Template, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			e.Name = name
			t, err = nil, e
		}
	}()
	if len(source) > maxSource {
		return nil, &Error{Name: name, Reason: "template is longer than 4 MiB", Limit: true}
	}
	l := &lexer{src: normalize(source)}
	l.run()
	p := &parser{src: l.src, toks: l.tokens, names: map[string]int{}, inner: map[int]bool{}, bound: map[int]bool{}, free: map[int]bool{},
		inside: map[int]bool{}, top: map[int]bool{}}
	body := p.stmts(token{}, nil)
	for _, n := range p.refs {
		n.local = p.inner[n.id]
	}
	t = &Template{name: name, src: l.src, body: body, names: p.names, hasGen: p.gens, hidden: p.hidden}
	for n, id := range p.names {
		if _, ok := globals[n]; p.free[id] && !ok && n != "loop" {
			t.free = append(t.free, n)
		}
	}
	slices.Sort(t.free)
	t.root = make([]Value, len(p.list))
	for i, n := range p.list {
		t.root[i] = unset
		if g, ok := globals[n]; ok {
			t.root[i] = g
		}
	}
	for _, i := range t.hidden {
		t.root[i] = &undef{name: p.list[i]}
	}
	return t, nil
}

// Uses reports whether the template mentions a variable.
func (t *Template) Uses(name string) bool {
	_, ok := t.names[name]
	return ok
}

// Free returns the variables that the template reads before it sets them, in the order of its text, sorted. The caller must
// not modify the slice.
func (t *Template) Free() []string { return t.free }

// HasGeneration reports whether the template has generation tags.
func (t *Template) HasGeneration() bool { return t.hasGen }

// Var is a variable given to a template.
type Var struct {
	Name  string
	Value Value
}

// Input holds the values that a rendering needs besides the template.
type Input struct {
	Vars []Var // a later one replaces an earlier one
	// Now is the clock of strftime_now. With nil, that fails.
	Now func() time.Time
	// MaxText bounds the output and every text on the way, in bytes; 0 means 64 MiB. All texts
	// together, and other values made on the way, may have eight times as much.
	MaxText int
	// Expect is about how long the output will be, in bytes, if Remember is set and Memo is nil; 0 means unknown.
	Expect int
	// Memo is that of an earlier rendering of this template, or nil. If Remember is set, the output has one.
	Memo     *Memo
	Remember bool
}

// Output is a rendered text.
type Output struct {
	Text string
	Segs []Segment // must not be modified if there is a Memo
	// Generations are the ranges of generation blocks.
	Generations []Range
	Memo        *Memo
}

// Segment is a run of text with one origin; it begins where the one before ends.
type Segment struct {
	End    int
	Origin *Origin // nil if the template wrote it
}

// Render renders the template. Errors are [*Error].
func (t *Template) Render(in Input) (out *Output, err error) {
	rt := &render{t: t, now: in.Now, maxText: in.MaxText, maxSteps: defSteps}
	if rt.maxText == 0 {
		rt.maxText = defMaxText
	}
	rt.maxAlloc = 8 * rt.maxText
	rt.root = append([]Value(nil), t.root...)
	for _, v := range in.Vars {
		if i, ok := t.names[v.Name]; ok {
			rt.root[i] = v.Value
		}
	}
	for _, i := range t.hidden {
		rt.root[i] = t.root[i]
	}
	rt.out, _ = outputs.Get().(*sbuf)
	if rt.out == nil {
		rt.out = &sbuf{b: make([]byte, 0, 4096), segs: make([]Segment, 0, 64)}
	}
	rt.out.rt = rt
	rt.main = rt.out
	var pooled []Segment // the list of rt.out, if it has another
	var buffer []byte    // the pooled buffer of rt.out, if the output has one of its own
	if in.Remember {
		rt.memo, rt.before = new(Memo), in.Memo
		if rt.before != nil {
			rt.out.base = rt.before.text.String()
			pooled, rt.out.segs = rt.out.segs, make([]Segment, 0, len(rt.before.segs)+moreSegs) // the output keeps them
		} else {
			buffer, rt.out.b = rt.out.b, longtext.Room(min(in.Expect, rt.maxText))
		}
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			out, err = nil, e
		}
	}()
	run(rt, t.body)
	out = &Output{Generations: rt.gens, Memo: rt.memo}
	switch {
	case rt.memo == nil:
		out.Text = string(rt.out.b)
	case rt.before == nil:
		rt.memo.text, rt.out.b = longtext.Keep(rt.out.b), buffer
	default:
		rt.memo.text = longtext.Extend(rt.before.text, rt.out.same, rt.out.b)
	}
	if rt.memo != nil {
		out.Text = rt.memo.text.String()
	}
	if w := rt.out; pooled != nil && cap(w.segs) <= len(w.segs)*9/8+moreSegs {
		out.Segs, w.segs = w.segs, pooled
	} else {
		out.Segs = slices.Clone(w.segs)
	}
	if rt.memo != nil {
		rt.memo.segs = out.Segs
	}
	if w := rt.out; cap(w.b) <= maxOutput && cap(w.segs) <= maxOutput/16 {
		clear(w.segs) // of origins in the request
		*w = sbuf{b: w.b[:0], segs: w.segs[:0]}
		outputs.Put(w)
	}
	return out, nil
}

// moreSegs is the number of segments for which there is room after the segments of an earlier rendering.
const moreSegs = 32

// outputs has the buffers of earlier renderings, of at most maxOutput bytes each.
var outputs sync.Pool

const maxOutput = 4 << 20

// joiner is the result of joiner(): empty the first time, then its separator.
type joiner struct {
	sep  Value
	used bool
}

func (j *joiner) call() Value {
	if !j.used {
		j.used = true
		return &Str{}
	}
	return j.sep
}

var globals map[string]Value

func init() {
	fn := func(name string, f func(rt *render, a *args) Value) { globals[name] = &callable{name, f} }
	globals = map[string]Value{}
	fn("range", func(rt *render, a *args) Value {
		if len(a.kw) > 0 || len(a.pos) < 1 || len(a.pos) > 3 {
			rt.fail("range takes one to three integers")
		}
		v := [3]int64{0, 0, 1}
		for i, x := range a.pos {
			v[i] = int64(rt.int(x, "argument of range"))
		}
		if len(a.pos) == 1 {
			v[0], v[1] = 0, v[0]
		}
		if v[2] == 0 {
			rt.fail("step of range is 0")
		}
		r := newRange(v[0], v[1], v[2])
		if r.n > maxRange {
			rt.fail("range of more than %d elements", maxRange)
		}
		return r
	})
	fn("dict", func(rt *render, a *args) Value {
		rt.charge(128)
		d := &Dict{}
		if len(a.pos) > 1 {
			rt.fail("dict takes at most one positional argument")
		}
		if len(a.pos) == 1 {
			rt.fillDict(d, a.pos[0])
		}
		for _, k := range a.kw {
			d.put(rt, &Str{s: k.name}, k.v)
		}
		return d
	})
	fn("namespace", func(rt *render, a *args) Value {
		rt.charge(128)
		n := &namespace{}
		if len(a.pos) > 1 {
			rt.fail("namespace takes at most one positional argument")
		}
		if len(a.pos) == 1 {
			rt.fillDict(&n.d, a.pos[0])
		}
		for _, k := range a.kw {
			n.d.put(rt, &Str{s: k.name}, k.v)
		}
		return n
	})
	fn("cycler", func(rt *render, a *args) Value {
		if len(a.pos) == 0 || len(a.kw) > 0 {
			rt.fail("cycler needs items")
		}
		return &cycler{items: a.pos}
	})
	fn("joiner", func(rt *render, a *args) Value {
		p := a.bind(rt, "joiner", true, "sep")
		return &joiner{sep: opt(p[0], &Str{s: ", "})}
	})
	fn("raise_exception", func(rt *render, a *args) Value {
		p := a.bind(rt, "raise_exception", true, "message")
		need(rt, "raise_exception", 1, p)
		e := rt.error(rt.str(p[0]).s)
		e.Raised = true
		panic(e)
	})
	fn("strftime_now", func(rt *render, a *args) Value {
		p := a.bind(rt, "strftime_now", true, "format")
		need(rt, "strftime_now", 1, p)
		rt.forget()
		if rt.now == nil {
			rt.fail("strftime_now: no clock was given")
		}
		f := rt.string(p[0], "format")
		return taint(&Str{s: rt.strftime(f.s, rt.now())}, a)
	})
	fn("lipsum", func(rt *render, a *args) Value {
		rt.fail("lipsum is not supported")
		return nil
	})
}

func (rt *render) fillDict(d *Dict, v Value) {
	rt.undefined(v)
	if x, ok := v.(*Dict); ok {
		for i, k := range rt.keys(x) {
			d.put(rt, k, x.vals[i])
		}
		return
	}
	for _, x := range rt.list(v) {
		kv := rt.list(x)
		if len(kv) != 2 {
			rt.fail("dict needs pairs")
		}
		d.put(rt, kv[0], kv[1])
	}
}
