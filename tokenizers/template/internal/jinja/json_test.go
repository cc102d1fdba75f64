// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/jsonval"
)

// drawText returns a text of ordinary characters and of those that JSON escapes. Some are longer than what escape adds at once.
func drawText(r *rand.Rand) string {
	var b strings.Builder
	n := r.IntN(40)
	if r.IntN(20) == 0 {
		n = 60_000 + r.IntN(20_000)
	}
	for range n {
		if r.IntN(3) == 0 {
			b.WriteString([]string{`"`, `\`, "\n", "\r", "\t", "\b", "\f", "\x00", "\x1f", "\x7f", "é", "\u2028", "😀", "/"}[r.IntN(14)])
		} else {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
	}
	return b.String()
}

// Strings are quoted as JSON, whether they come from one source or from several.
func TestQuote(t *testing.T) {
	whole, err := Compile("t", `{{ v|tojson }}{{ {'k': v}|tojson }}{{ d|tojson }}`)
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := Compile("t", `{{ (v ~ '#')|tojson }}{{ {'k': v ~ '#'}|tojson }}{{ dict([(v ~ '#', 1)])|tojson }}`)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		s := drawText(r)
		if strings.Contains(s, "#") {
			t.Fatal("the mark is drawn")
		}
		var b Builder
		object := jsonval.Value{Kind: jsonval.Object, Keys: []string{s}, List: []jsonval.Value{{Kind: jsonval.Int, Str: "1"}}}
		in := Input{Vars: []Var{{"v", NewStr(s, Root("v"))}, {"d", b.Value(&object, Root("d"))}}}
		got, err := whole.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.NewDecoder(strings.NewReader(got.Text)).Decode(&back); err != nil || back != s {
			t.Fatalf("%.200q is printed as %.400s: %v", s, got.Text, err)
		}
		want, err := pieces.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != strings.ReplaceAll(want.Text, "#", "") {
			t.Fatalf("%.200q is printed as %.400s, in pieces as %.400s", s, got.Text, want.Text)
		}
	}
}

// Quoting stops soon after the limit, though a byte can become six.
func TestQuoteLimit(t *testing.T) {
	tpl, err := Compile("t", `{{ v|tojson }}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, 1 << 20} {
		v := NewStr(strings.Repeat("\x01", n), Root("v"))
		out, err := tpl.Render(Input{Vars: []Var{{"v", v}}, MaxText: 6*n + 2})
		if err != nil || len(out.Text) != 6*n+2 {
			t.Errorf("%d: %v", n, err)
		}
		var e *Error
		if _, err := tpl.Render(Input{Vars: []Var{{"v", v}}, MaxText: 6*n + 1}); !errors.As(err, &e) || !strings.Contains(err.Error(), "text exceeds") {
			t.Errorf("%d: %v", n, err)
		}
	}
	w := &sbuf{rt: &render{maxText: 1 << 20}}
	func() {
		defer func() { _ = recover() }()
		w.escape(strings.Repeat("\x01", 1<<20), nil)
	}()
	if n := len(w.b); n <= 1<<20 || n > 1<<20+6<<16 {
		t.Errorf("%d bytes were written", n)
	}
}

// A dict of the request behaves like one that was built key by key, and does not change the names that it shares.
func TestDictNames(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	tpl, err := Compile("t", `{{ d }}{{ d|tojson }}{{ d|tojson(indent=1) }}{{ d|length }}{% for k in d %}{{ k }},{% endfor %}{% for k, v in d.items() %}{{ k }}:{{ v }},{% endfor %}`+
		`{{ d.keys()|list }}{{ d|dictsort }}{{ d == e }}{{ e == d }}{{ 'a3' in d }}{{ d.a3 }}{{ d.get('a1', 0) }}{{ dict(d, z=1) }}{{ d.copy() }}{{ d|list|first }}{{ d.missing is defined }}{{ 1 if d }}`)
	if err != nil {
		t.Fatal(err)
	}
	show := func(d, e *Dict) string {
		out, err := tpl.Render(Input{Vars: []Var{{"d", d}, {"e", e}}})
		if err != nil {
			t.Fatal(err)
		}
		checkSegs(t, "", &Output{Text: out.Text, Segs: out.Segs})
		return out.Text
	}
	for range 500 {
		src := Root("d")
		object := jsonval.Value{Kind: jsonval.Object}
		built := NewDict(src)
		for i := range r.IntN(2 * manyKeys) {
			k, v := fmt.Sprint("a", i), jsonval.Value{Kind: jsonval.Kind(r.IntN(2)), Str: "1"} // undefined or null
			if r.IntN(2) == 0 {
				v = jsonval.Value{Kind: jsonval.Int, Str: fmt.Sprint(i)}
			}
			object.Keys, object.List = append(object.Keys, k), append(object.List, v)
			built.push(NewStr(k, src), new(Builder).Value(&v, src))
		}
		names := slices.Clone(object.Keys)
		var b Builder
		d, _ := b.Value(&object, src).(*Dict)
		other, _ := b.Value(&object, src).(*Dict)
		same := show(other, other)
		for step := range 6 {
			if got, want := show(d, built), show(built, d); got != want {
				t.Fatalf("step %d: %s, want %s", step, got, want)
			}
			k := fmt.Sprint("a", r.IntN(2*manyKeys+2))
			switch r.IntN(4) {
			case 0:
				d.Set(NewStr(k, src), true)
				built.Set(NewStr(k, src), true)
			case 1:
				d.Delete(k)
				built.Delete(k)
			case 2:
				d.DeleteNulls(k)
				built.DeleteNulls(k)
			default:
				v, ok := d.Get(k)
				if want, has := built.Get(k); ok != has || (v == nil) != (want == nil) {
					t.Fatalf("%s: %v %t, want %v %t", k, v, ok, want, has)
				}
			}
		}
		if !slices.Equal(object.Keys, names) || show(other, other) != same {
			t.Fatalf("a dict changed the names of another: %q, want %q", object.Keys, names)
		}
	}
}
