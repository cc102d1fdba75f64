// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"math"
	"strings"
)

func has(names, name string) bool {
	for n := range strings.FieldsSeq(names) {
		if n == name {
			return true
		}
	}
	return false
}

// Methods of list and dict that Jinja's immutable sandbox hides.
const (
	listMutators = "append clear pop reverse insert sort extend remove"
	dictMutators = "clear pop popitem setdefault update"
)

// attribute is Python's getattr. ok is false if v lacks the attribute.
func (rt *render) attribute(v Value, name string) (Value, bool) {
	hidden := func() (Value, bool) {
		return &undef{hint: "access to attribute " + quote(name) + " of " + typeName(v) + " is unsafe", unsafe: true}, true
	}
	if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
		if has("__class__ __doc__ __init__ __eq__ __ne__ __str__ __repr__ __hash__ __dir__ __new__ __reduce__ __module__ __dict__ __len__ __iter__ __getitem__ __contains__ __add__ __mul__ __format__ __lt__ __le__ __gt__ __ge__ __getattribute__ __setattr__ __delattr__ __sizeof__ __subclasshook__ __init_subclass__ __reduce_ex__", name) {
			return hidden()
		}
		if u, ok := v.(*undef); ok {
			rt.fail("%s", u.message())
		}
		return nil, false
	}
	switch o := v.(type) {
	case *Str:
		if m := strMethods[name]; m != nil {
			return &callable{name, func(rt *render, a *args) Value { return m(rt, o, a) }}, true
		}
	case *Dict:
		if m := dictMethods[name]; m != nil {
			return &callable{name, func(rt *render, a *args) Value { return m(rt, o, a) }}, true
		}
		if has(dictMutators, name) {
			return hidden()
		}
	case *List:
		if has(listMutators, name) {
			return hidden()
		}
		switch name {
		case "copy":
			return &callable{name, func(rt *render, a *args) Value {
				rt.noArgs(name, a)
				return &List{Items: append([]Value(nil), o.Items...)}
			}}, true
		case "index", "count":
			return seqMethod(name, func() []Value { return o.Items }), true
		}
	case *Tuple:
		switch {
		case name == "index" || name == "count":
			return seqMethod(name, func() []Value { return o.Items }), true
		case o.group && name == "grouper":
			return o.Items[0], true
		case o.group && name == "list":
			return o.Items[1], true
		}
	case *rng:
		switch name {
		case "start":
			return o.start, true
		case "stop":
			return o.stop, true
		case "step":
			return o.step, true
		case "index", "count":
			return seqMethod(name, func() []Value { return rt.list(o) }), true
		}
	case *namespace:
		return o.d.Get(name)
	case *loop:
		return o.attr(rt, name)
	case *macro:
		switch name {
		case "name":
			return &Str{s: o.def.name}, true
		case "arguments":
			t := &Tuple{}
			for _, p := range o.def.params {
				t.Items = append(t.Items, &Str{s: p})
			}
			return t, true
		case "catch_kwargs":
			return o.def.kwargs, true
		case "catch_varargs":
			return o.def.varargs, true
		case "caller":
			return o.def.caller, true
		}
	case *cycler:
		switch name {
		case "current":
			return o.items[o.pos], true
		case "next":
			return &callable{name, func(rt *render, a *args) Value {
				rt.noArgs(name, a)
				x := o.items[o.pos]
				o.pos = (o.pos + 1) % len(o.items)
				return x
			}}, true
		case "reset":
			return &callable{name, func(rt *render, a *args) Value {
				rt.noArgs(name, a)
				o.pos = 0
				return nil
			}}, true
		}
	case bool, int64, float64, *num:
		n, _ := number(v)
		switch name {
		case "real":
			return n.value(), true
		case "imag":
			if n.float {
				return 0.0, true
			}
			return int64(0), true
		case "numerator":
			if !n.float {
				return n.value(), true
			}
		case "denominator":
			if !n.float {
				return int64(1), true
			}
		case "is_integer":
			if n.float {
				return &callable{name, func(rt *render, a *args) Value {
					rt.noArgs(name, a)
					return n.f-n.f == 0 && n.f == math.Trunc(n.f)
				}}, true
			}
		case "bit_length":
			if !n.float {
				return &callable{name, func(rt *render, a *args) Value {
					rt.noArgs(name, a)
					return int64(n.bigint().BitLen())
				}}, true
			}
		}
	case *undef:
		rt.fail("%s", o.message())
	}
	return nil, false
}

func (rt *render) noArgs(name string, a *args) {
	if len(a.pos)+len(a.kw) > 0 {
		rt.fail("%s takes no arguments", name)
	}
}

func seqMethod(name string, items func() []Value) Value {
	return &callable{name, func(rt *render, a *args) Value {
		if len(a.kw) > 0 || len(a.pos) == 0 || name == "count" && len(a.pos) > 1 || len(a.pos) > 3 {
			rt.fail("%s takes a value", name)
		}
		list := items()
		n := int64(0)
		lo, hi := 0, len(list)
		if len(a.pos) > 1 {
			var end Value
			if len(a.pos) > 2 {
				end = a.pos[2]
			}
			lo, hi, _ = rt.bounds(len(list), a.pos[1], end, nil)
		}
		for i := lo; i < hi; i++ {
			if rt.equal(list[i], a.pos[0]) {
				if name == "index" {
					return int64(i)
				}
				n++
			}
		}
		if name == "index" {
			rt.fail("value is not in the sequence")
		}
		return n
	}}
}

// attr is a.b in a template: the attribute, else the item, else undefined.
func (rt *render) attr(v Value, name string) Value {
	if x, ok := rt.attribute(v, name); ok {
		return x
	}
	if d, ok := v.(*Dict); ok {
		if i := d.find(name); i >= 0 {
			return d.vals[i]
		}
	}
	return &undef{name: name, of: typeName(v)}
}

// subscript is Python's v[key]; ok is false where that raises TypeError or LookupError.
func (rt *render) subscript(v, key Value) (Value, bool) {
	index := func(n int) (int, bool) {
		k, ok := number(key)
		if !ok || k.float || k.big != nil {
			return 0, false
		}
		i := k.i
		if i < 0 {
			i += int64(n)
		}
		return int(i), i >= 0 && i < int64(n)
	}
	switch o := v.(type) {
	case *Dict:
		switch key.(type) {
		case *List, *Dict:
			return nil, false // unhashable
		case *Tuple:
			if !hashable(key) {
				return nil, false
			}
		}
		if i := o.index(rt, key); i >= 0 {
			return o.vals[i], true
		}
	case *List:
		if i, ok := index(len(o.Items)); ok {
			return o.Items[i], true
		}
	case *Tuple:
		if i, ok := index(len(o.Items)); ok {
			return o.Items[i], true
		}
	case *rng:
		if i, ok := index(int(o.n)); ok {
			return o.start + int64(i)*o.step, true
		}
	case *Str:
		if ascii(o.s) {
			if i, ok := index(len(o.s)); ok {
				return o.slice(i, i+1), true
			}
			return nil, false
		}
		if i, ok := index(len([]rune(o.s))); ok {
			return rt.sliceStr(o, int64(i), int64(i+1), nil), true
		}
	case *undef:
		rt.fail("%s", o.message())
	}
	return nil, false
}

func hashable(v Value) bool {
	switch v := v.(type) {
	case *List, *Dict:
		return false
	case *Tuple:
		for _, x := range v.Items {
			if !hashable(x) {
				return false
			}
		}
	}
	return true
}

// item is a[b] in a template: the item, else the attribute of that name, else undefined.
func (rt *render) item(v, key Value) Value {
	if x, ok := rt.subscript(v, key); ok {
		return x
	}
	name := "?"
	if s, ok := key.(*Str); ok {
		if x, ok := rt.attribute(v, s.s); ok {
			return x
		}
		name = s.s
	} else if n, ok := number(key); ok && n.big == nil {
		name = floatOrInt(n)
	}
	return &undef{name: name, of: typeName(v)}
}

func floatOrInt(n num) string {
	if n.float {
		return floatText(n.f)
	}
	return (&render{}).numText(n)
}

type dictMethod func(rt *render, d *Dict, a *args) Value

var dictMethods = map[string]dictMethod{
	"get": func(rt *render, d *Dict, a *args) Value {
		if len(a.kw) > 0 || len(a.pos) < 1 || len(a.pos) > 2 {
			rt.fail("get takes a key and perhaps a default")
		}
		if i := d.index(rt, a.pos[0]); i >= 0 {
			return d.vals[i]
		}
		if len(a.pos) == 2 {
			return a.pos[1]
		}
		return nil
	},
	"items":  func(rt *render, d *Dict, a *args) Value { rt.noArgs("items", a); return &view{d, 'i'} },
	"keys":   func(rt *render, d *Dict, a *args) Value { rt.noArgs("keys", a); return &view{d, 'k'} },
	"values": func(rt *render, d *Dict, a *args) Value { rt.noArgs("values", a); return &view{d, 'v'} },
	"copy": func(rt *render, d *Dict, a *args) Value {
		rt.noArgs("copy", a)
		rt.charge(80 * len(d.names))
		return d.clone()
	},
	"fromkeys": func(rt *render, _ *Dict, a *args) Value {
		if len(a.kw) > 0 || len(a.pos) < 1 || len(a.pos) > 2 {
			rt.fail("fromkeys takes keys and perhaps a value")
		}
		var v Value
		if len(a.pos) == 2 {
			v = a.pos[1]
		}
		d := &Dict{}
		for _, k := range rt.list(a.pos[0]) {
			d.put(rt, k, v)
		}
		return d
	},
}

func (d *Dict) clone() *Dict {
	c := &Dict{}
	for i, k := range d.keyList() {
		c.push(k, d.vals[i])
	}
	return c
}
