// SPDX-License-Identifier: Apache-2.0

package block

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// A residue is the difference between a JSON value of a body and our encoding of the fields read from it: fields that
// are not modeled, and alternative spellings. Applied to our encoding, it restores a value that is equal as JSON.
// Fields that changed since take precedence.
//
// It either replaces a value or lists changes of fields and elements. nil means no difference.
type residue struct {
	value   []byte // replaces the text whose hash is instead
	instead uint64

	add   []extra // fields that our encoding lacks
	drop  []extra // fields that only our encoding has, with their values
	inner []inner // residues of fields and elements
	size  int     // arrays: the number of elements when inner was computed, else -1
}

// extra is a field with its raw JSON, which the residue owns.
type extra struct {
	key   string
	value []byte
}

// inner is the residue of the field key or of the element index.
type inner struct {
	key   string
	index int
	res   *residue
}

var residueSeed = maphash.MakeSeed()

// diff returns the residue that changes was, our encoding, to is.
func diff(was, is jsonscan.Value) *residue {
	if string(was.Raw()) == string(is.Raw()) {
		return nil
	}
	if was.Kind() == is.Kind() && !was.Opaque() && !is.Opaque() {
		switch was.Kind() {
		case jsonscan.Object:
			return diffObject(was, is, nil)
		case jsonscan.Array:
			if n := was.Len(); n == is.Len() {
				return diffArray(was, is, n)
			}
		}
	}
	if same(was, is) {
		return nil
	}
	return replaced(was, is)
}

func replaced(was, is jsonscan.Value) *residue {
	return &residue{value: append([]byte(nil), is.Raw()...), instead: maphash.Bytes(residueSeed, was.Raw()), size: -1}
}

// diffArray is diff for two arrays of n elements.
func diffArray(was, is jsonscan.Value, n int) *residue {
	r := &residue{size: n}
	i, w := 0, was.First()
	for e := is.First(); e.Exists(); e, w, i = is.Next(e), was.Next(w), i+1 {
		if d := diff(w, e); d != nil {
			r.inner = append(r.inner, inner{index: i, res: d})
		}
	}
	if len(r.inner) == 0 {
		return nil
	}
	return r
}

// diffObject is diff for two objects. Fields for which skip returns true are ignored. If skip is not nil, a field that
// only was has is dropped, and the object is never replaced as a whole.
func diffObject(was, is jsonscan.Value, skip func(key string) bool) *residue {
	r := &residue{size: -1}
	inWas, inIs := jsonscan.NewFinder(was), jsonscan.NewFinder(is)
	for m := was.First(); m.Exists(); m = was.Next(m) {
		if inIs.Get(m.Key()).Exists() {
			continue
		}
		if !empty(m) && !m.KeyIs("type") && skip == nil {
			return replaced(was, is) // an alternative spelling: a merge would contain both
		}
		r.drop = append(r.drop, extra{strings.Clone(m.Key()), append([]byte(nil), m.Raw()...)})
	}
	for m := is.First(); m.Exists(); m = is.Next(m) {
		key := m.Key()
		if skip != nil && skip(key) {
			continue
		}
		w := inWas.Get(key)
		if !w.Exists() {
			r.add = append(r.add, extra{strings.Clone(key), append([]byte(nil), m.Raw()...)})
		} else if d := diff(w, m); d != nil {
			r.inner = append(r.inner, inner{key: strings.Clone(key), res: d})
		}
	}
	if len(r.drop)+len(r.add)+len(r.inner) == 0 {
		return nil
	}
	return r
}

// empty reports whether a value is a zero value in JSON.
func empty(v jsonscan.Value) bool {
	switch string(v.Raw()) {
	case "null", "false", `""`, "[]", "{}", "0":
		return true
	}
	return false
}

// same reports whether two strings or numbers are equal as JSON.
func same(a, b jsonscan.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case jsonscan.String:
		s, _ := a.Str(nil)
		t, _ := b.Str(nil)
		return s == t
	case jsonscan.Number:
		x, ok := a.Float()
		y, also := b.Float()
		// A float64 does not distinguish all large integers.
		return ok && also && x == y && (strings.ContainsAny(a.RawStr(), ".eE") || strings.ContainsAny(b.RawStr(), ".eE"))
	}
	return false
}

// adds reports whether the residue of an object adds a field.
func (r *residue) adds(key string) bool {
	return r != nil && slices.ContainsFunc(r.add, func(x extra) bool { return x.key == key })
}

// without returns the residue of an object, less the added fields in names.
func (r *residue) without(names []string) *residue {
	if r == nil || !slices.ContainsFunc(r.add, func(x extra) bool { return slices.Contains(names, x.key) }) {
		return r
	}
	c := *r
	c.add = slices.DeleteFunc(slices.Clone(r.add), func(x extra) bool { return slices.Contains(names, x.key) })
	return &c
}

// patch applies the residue to dst[from:], one JSON value of our encoding.
func (r *residue) patch(dst []byte, from int) []byte {
	if r == nil {
		return dst
	}
	was, err := scanOwn(dst[from:])
	if err != nil {
		return dst // cannot happen: our encoders write valid JSON
	}
	out := r.append(make([]byte, 0, len(dst)-from+256), was.Root())
	return append(dst[:from], out...)
}

// scanOwn indexes the output of our encoders.
func scanOwn(text []byte) (*jsonscan.Doc, error) {
	return jsonscan.Scan(text, jsonscan.Limits{Bytes: 1<<31 - 1, Depth: 1 << 16, Values: 1 << 30, Opaque: opaque})
}

// append appends v with the residue applied.
func (r *residue) append(dst []byte, v jsonscan.Value) []byte {
	switch {
	case r == nil:
		return append(dst, v.Raw()...)
	case r.value != nil:
		if maphash.Bytes(residueSeed, v.Raw()) == r.instead {
			return append(dst, r.value...)
		}
		return append(dst, v.Raw()...)
	case v.Kind() == jsonscan.Array && v.Len() == r.size:
		dst = append(dst, '[')
		i, k := 0, 0
		for e := v.First(); e.Exists(); e, i = v.Next(e), i+1 {
			if i > 0 {
				dst = append(dst, ',')
			}
			var in *residue
			if k < len(r.inner) && r.inner[k].index == i {
				in = r.inner[k].res
				k++
			}
			dst = in.append(dst, e)
		}
		return append(dst, ']')
	case v.Kind() != jsonscan.Object || r.size >= 0:
		return append(dst, v.Raw()...)
	}
	dst = append(dst, '{')
	of := parts{r: r}
	for m := v.First(); m.Exists(); m = v.Next(m) {
		name := m.Key()
		drop, in := of.get(name)
		if drop != nil && string(drop) == string(m.Raw()) {
			continue
		}
		dst = in.append(appendKey(dst, name), m)
	}
	fields := jsonscan.NewFinder(v)
	for _, x := range r.add {
		if !fields.Get(x.key).Exists() { // else a field now holds it
			dst = append(appendKey(dst, x.key), x.value...)
		}
	}
	return append(dst, '}')
}

// appendKey appends a name and colon to an open object; dst ends with its brace or with a value.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(jsonscan.AppendString(dst, key), ':')
}

// manyParts is the number of fields in a residue above which parts uses maps.
const manyParts = 16

// parts looks up the entries of a residue for the fields of an object.
type parts struct {
	r       *residue
	lookups int
	drop    map[string][]byte
	inner   map[string]*residue
}

// get returns the value with which a field is dropped, or nil if it is kept, and the field's residue.
func (p *parts) get(key string) (drop []byte, in *residue) {
	if p.drop == nil {
		if p.lookups++; p.lookups <= manyParts || len(p.r.drop)+len(p.r.inner) <= manyParts {
			return p.search(key)
		}
		p.drop, p.inner = map[string][]byte{}, map[string]*residue{}
		for _, x := range p.r.drop {
			p.drop[x.key] = x.value
		}
		for _, x := range p.r.inner {
			p.inner[x.key] = x.res
		}
	}
	return p.drop[key], p.inner[key]
}

func (p *parts) search(key string) (drop []byte, in *residue) {
	for i := range p.r.drop {
		if p.r.drop[i].key == key {
			drop = p.r.drop[i].value
			break
		}
	}
	for i := range p.r.inner {
		if p.r.inner[i].key == key {
			in = p.r.inner[i].res
			break
		}
	}
	return drop, in
}

// appendOwn appends an object with the parts that only the residue holds: the fields that it adds, at any depth.
func (r *residue) appendOwn(dst []byte) []byte {
	dst = append(dst, '{')
	if r != nil {
		for _, x := range r.add {
			dst = append(appendKey(dst, x.key), x.value...)
		}
		for _, in := range r.inner {
			dst = appendKey(dst, in.key)
			switch {
			case in.res.value != nil:
				dst = append(dst, in.res.value...)
			case in.res.size >= 0:
				dst = append(dst, "[]"...)
			default:
				dst = in.res.appendOwn(dst)
			}
		}
	}
	return append(dst, '}')
}
