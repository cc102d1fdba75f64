// SPDX-License-Identifier: Apache-2.0

package jinja

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// foreign changes letters into Cyrillic ones, which no template has.
func foreign(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'а' + r - 'a'
		case r >= 'A' && r <= 'Z':
			return 'А' + r - 'A'
		}
		return r
	}, s)
}

func foreignValue(v Value) Value {
	switch v := v.(type) {
	case *Str:
		v.s = foreign(v.s)
	case *List:
		for _, x := range v.Items {
			foreignValue(x)
		}
	case *Dict:
		for _, x := range v.vals {
			foreignValue(x)
		}
	}
	return v
}

func checkSegs(t *testing.T, src string, out *Output) {
	t.Helper()
	at := 0
	for i, s := range out.Segs {
		if s.End <= at || i > 0 && out.Segs[i-1].Origin == s.Origin {
			t.Errorf("%s: segment %d ends at %d after %d", src, i, s.End, at)
		}
		// The halves of a letter in a source that is not UTF-8 may meet in its output.
		own := strings.ContainsFunc(src, isCyrillic) || !utf8.ValidString(src)
		if text := out.Text[at:s.End]; s.Origin == nil && !own && strings.ContainsFunc(text, isCyrillic) {
			t.Errorf("%s: %q of %q is trusted", src, text, out.Text)
		}
		at = s.End
	}
	if at != len(out.Text) {
		t.Errorf("%s: segments end at %d of %d", src, at, len(out.Text))
	}
}

// TestProvenance sends letters that only the request has through every filter, method and statement of the
// goldens: none may come out as trusted.
func TestProvenance(t *testing.T) {
	in := values(t)
	for _, v := range in.Vars {
		foreignValue(v.Value)
	}
	printed := 0
	check := func(src string) {
		tpl, err := Compile("t", src)
		if err != nil {
			return
		}
		out, err := tpl.Render(in)
		if err != nil {
			return
		}
		if strings.ContainsFunc(out.Text, isCyrillic) {
			printed++
		}
		checkSegs(t, src, out)
	}
	every := testsize.Pick(6, 1, 1)
	for i, l := range goldens(t) {
		if i%every != 0 {
			continue
		}
		check(l.Template)
		if e, ok := strings.CutPrefix(l.Template, "{{ "); ok && strings.HasSuffix(e, " }}") && strings.Count(e, "}}") == 1 {
			e = "(" + strings.TrimSuffix(e, " }}") + ")"
			for _, wrap := range []string{
				"{{ 'x' ~ # ~ 'y' }}", "{{ [#, 'x']|tojson }}", "{{ {'k': #} }}", "{{ (# ~ ' a')|upper|replace('A', 'b')|trim|title }}",
				"{% set v %}<{{ # }}>{% endset %}{{ v[1:-1]|list|join('.') }}", "{{ ('%s|%10s' % (#, #))|indent|truncate(20) }}",
				"{{ '{:>9}{}'.format(#|string, #).split('a')|join('c') }}", "{% filter capitalize %}{{ # }}!{% endfilter %}",
				"{{ [#|string, 'b']|sort|reverse|join(#|string) }}", "{{ 'abc'.replace('b', #|string).partition('c')|first }}",
				"{{ ('<' ~ #)|e|safe + 'x<' }}", "{{ 'a'.center(9, (#|string)[:1]) }}", "{{ 'a,b'|replace(',', #)|wordcount }}{{ 'a'|indent(#|string, true) }}",
				"{{ [1, 2]|tojson(indent=#|string) }}", "{{ dict([(#|string, 1)]) }}{{ dict([(#|string, 1)])|tojson }}{% for k, v in dict([(#|string, 1)])|dictsort %}{{ k }}{% endfor %}",
				"{{ ''.join([#|string]).zfill(30).expandtabs().swapcase() }}{{ (#|string).encode is defined }}",
			} {
				check(strings.ReplaceAll(wrap, "#", e))
			}
		}
	}
	if printed < 3000/every {
		t.Errorf("only %d templates print text of the request", printed)
	}
}

// TestOrigins prints values of a request and names where the runs come from.
func TestOrigins(t *testing.T) {
	var b Builder
	v, err := b.Parse([]byte(`[{"role":"user","content":"Hi","n":5,"args":{"k":"v","l":[1,"x"]},"f":1.5},{"role":"tool","content":"Ho"}]`), "m", Root("m"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ src, want string }{
		{`{{ m[0].content }}`, `Hi@m[0].content`},
		{`a{{ m[0].content ~ m[1].content }}b`, `a|Hi@m[0].content|Ho@m[1].content|b`},
		{`{{ m|tojson }}`, `[@m|{"role": "user", "content": "Hi", "n": 5, "args": {"k": "v", "l": [1, "x"]}, "f": 1.5}@m[0]|, @m|{"role": "tool", "content": "Ho"}@m[1]|]@m`},
		{`{{ m[0].args }}`, `{'k': 'v', 'l': [1, 'x']}@m[0].args`},
		{`{{ {'a': m[0].args}|tojson }}`, `{"a": |{"k": "v", "l": [1, "x"]}@m[0].args|}`},
		{`{{ m[0].n + 1 }}-{{ m[0].f }}-{{ m|length }}`, `6@m[0].n|-|1.5@m[0].f|-2`},
		{`{% for k, v in m[0].args|items %}{{ k }}={{ v }};{% endfor %}`, `k@m[0].args|=|v@m[0].args.k|;|l@m[0].args|=|[1, 'x']@m[0].args.l|;`},
		{`{{ "<|x|>" + m[0].content[1:] | upper }}`, `<|x|>|I@m[0].content`},
		{`{{ m[0].content * 2 }}`, `HiHi@m[0].content`},
		{`{{ '%05d' % m[0].n }}{{ '{:>4}'.format(m[0].content) }}`, `00005@m[0].n|  |Hi@m[0].content`},
		{`{{ m|map(attribute='content')|join(', ') }}`, `Hi@m[0].content|, |Ho@m[1].content`},
		{`{{ m[0].n|string|int * 2 }}`, `10@m[0].n`},
	} {
		tpl, err := Compile("t", c.src)
		if err != nil {
			t.Fatal(err)
		}
		out, err := tpl.Render(Input{Vars: []Var{{"m", v}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		at := 0
		for _, s := range out.Segs {
			x := out.Text[at:s.End]
			if s.Origin != nil {
				x += "@" + s.Origin.Path()
			}
			got = append(got, x)
			at = s.End
		}
		if x := strings.Join(got, "|"); x != c.want {
			// | in the text itself is part of one case on purpose.
			t.Errorf("%s\n got %s\nwant %s", c.src, x, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	for i, src := range []string{
		`{{ 'a' * 10**9 }}`, `{{ [1] * 10**9 }}`, `{{ range(10**12) }}`, `{{ 2 ** (10 ** 9) }}`, `{{ 10 ** (10 ** 6) }}`, `{{ '%1000000000d' % 1 }}`, `{{ '{:1000000000}'.format(1) }}`,
		`{{ 'a'.center(10**9) }}`, `{{ 'a'.zfill(10**9) }}`, `{{ '\t'.expandtabs(10**9) }}`, `{{ [1]|batch(10**9, 1)|list }}`,
		`{% set ns = namespace(s='a') %}{% for i in range(100000) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
		`{% set ns = namespace(s=[1]) %}{% for i in range(100000) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
		`{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}`,
		`{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s == [ns.s] }}{{ ns.s|tojson }}`,
		`{% for i in range(100000) %}{% for j in range(100000) %}{% for k in range(100000) %}{% endfor %}{% endfor %}{% endfor %}`,
		`{% for i in range(100000) %}{% for j in range(100000) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}{% endfor %}`,
		`{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`, `{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}`,
		`{% macro f() %}{% for x in [1, 2] %}{{ f() }}{% endfor %}{% endmacro %}{{ f() }}`,
		`{{ range(100000)|map('list')|list }}`, `{{ 'a'|indent(10**9, true) * 1000000 }}`,
	} {
		if i%testsize.Pick(20, 2, 1) != 0 {
			continue
		}
		tpl, err := Compile("t", src)
		if err != nil {
			continue
		}
		out, err := tpl.Render(Input{MaxText: 1 << 20})
		if err == nil {
			t.Errorf("%s: %d bytes, no error", src, len(out.Text))
		}
	}
	n := testsize.Pick(10_000, 100_000, 100_000)
	for _, src := range []string{
		strings.Repeat("(", n), strings.Repeat("{{ (", n), "{{ " + strings.Repeat("(", n), "{{ " + strings.Repeat("not ", n) + "1 }}", "{{ " + strings.Repeat("-", n) + "1 }}",
		"{{ " + strings.Repeat("1+", n) + "1 }}", "{{ a" + strings.Repeat(".a", n) + " }}", "{{ a" + strings.Repeat("|e", n) + " }}", strings.Repeat("{% if 1 %}", n),
		"{{ " + strings.Repeat("1 if ", n), "{{ " + strings.Repeat("[", n), "{{ " + strings.Repeat("a(", n), "{{ a" + strings.Repeat(" if a else a", n) + " }}", strings.Repeat("{#", n),
		strings.Repeat("{% raw %}", n), "{{ '" + strings.Repeat("\\", n), "{{ " + strings.Repeat("9", n), "{% set " + strings.Repeat("(", n), strings.Repeat(" ", 10*n), strings.Repeat("{", 10*n),
	} {
		tpl, err := Compile("t", src)
		if err == nil {
			_, _ = tpl.Render(Input{})
		}
	}
}

// Calls count as steps: macros that call themselves twice take time without a loop.
func TestCallsCount(t *testing.T) {
	if testing.Short() {
		t.Skip("20 million steps")
	}
	for i, src := range []string{
		`{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}`,
		`{% macro m(n) %}{% if n %}{% call m(n - 1) %}{% endcall %}{% call m(n - 1) %}{% endcall %}{% endif %}{{ caller() }}{% endmacro %}{% call m(60) %}{% endcall %}`,
	} {
		if i%testsize.Pick(2, 2, 1) != 0 {
			continue
		}
		tpl, err := Compile("t", src)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = tpl.Render(Input{})
		if e, ok := errors.AsType[*Error](err); !ok || !e.Limit || !strings.HasPrefix(e.Reason, "more than 20000000 steps") {
			t.Errorf("%s: %v after %v", src, err, time.Since(start))
		}
	}
}

func FuzzSource(f *testing.F) {
	for _, l := range goldens(f) {
		f.Add(l.Template)
	}
	in := values(f)
	in.MaxText = 1 << 16
	f.Fuzz(func(t *testing.T, src string) {
		tpl, err := Compile("t", src)
		if err != nil {
			return
		}
		out, err := tpl.Render(in)
		if err == nil {
			checkSegs(t, src, &Output{Text: out.Text, Segs: out.Segs})
		}
	})
}

func isCyrillic(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }
