// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
)

func TestPython(t *testing.T) {
	var cases []decodeCase
	add := func(in, json string) { cases = append(cases, decodeCase{in, json, grammar.Done, 0}) }
	fail := func(in string, at int, json string) { cases = append(cases, decodeCase{in, json, grammar.Bad, at}) }

	add(`a=1, b="x", c=[1, None], d={"k": True})`, `{"a":1,"b":"x","c":[1,null],"d":{"k":true}}`)
	add(")", "{}")
	add(" \n )", "{}")
	add("a = 1 ,\n\tb = 2 , )", `{"a":1,"b":2}`)
	add("_x1=1, été=2, user-id=3, x.y=4, x$=5)", `{"_x1":1,"été":2,"user-id":3,"x.y":4,"x$":5}`)
	cases = append(cases, decodeCase{`a=1)]`, `{"a":1}`, grammar.Done, 1}, decodeCase{`a=")"), f(b=2)`, `{"a":")"}`, grammar.Done, 8})

	// Literals
	add("a=True,b=False,c=None,d=true,e=false,f=null)", `{"a":true,"b":false,"c":null,"d":true,"e":false,"f":null}`)
	add("a=0,b=-1,c=+2,d=- 3,e=1_000,f=00,g=123456789012345678901234567890)",
		`{"a":0,"b":-1,"c":2,"d":-3,"e":1000,"f":0,"g":123456789012345678901234567890}`)
	add("a=0x1F,b=0o17,c=0b1_01,d=-0XfF,e=0xFFFFFFFFFFFFFFFF,f=0x1_0000_0000_0000_0000,g=-0x0,h=0x_e)",
		`{"a":31,"b":15,"c":5,"d":-255,"e":18446744073709551615,"f":"0x1_0000_0000_0000_0000","g":0,"h":14}`)
	add("a=1.,b=.5,c=-.5,d=1.50,e=1e5,f=1.E-07,g=01.5,h=1_0.0_1e1_0,i=0e0,j=00.0,k=9.)",
		`{"a":1.0,"b":0.5,"c":-0.5,"d":1.50,"e":1e5,"f":1.0E-07,"g":1.5,"h":10.01e10,"i":0e0,"j":0.0,"k":9.0}`)

	add("a=007,b=-08,c=0_7,d=01_000,e=[09],f={007:1},g=000)", `{"a":7,"b":-8,"c":7,"d":1000,"e":[9],"f":{"7":1},"g":0}`)
	add("a=--5,b=+-5,c=- + 5,d=- - -.5,e=--0x10)", `{"a":5,"b":-5,"c":-5,"d":-0.5,"e":16}`)

	// Containers
	add("a=[],b=(),c={},d=[[],(),{}],e=[1,],f=(1,),g={1,},h={1:2,})", `{"a":[],"b":[],"c":{},"d":[[],[],{}],"e":[1],"f":[1],"g":[1],"h":{"1":2}}`)
	add("a=(1),b=((1)),c=(1,2),d=((1,2),3),e=((1,),),f=([1]),g=(({1})))", `{"a":1,"b":1,"c":[1,2],"d":[[1,2],3],"e":[[1]],"f":[1],"g":[1]}`)
	add(`a=("x"),b=("x" 'y'),c=("x","y"),d=("x" "y",))`, `{"a":"x","b":"xy","c":["x","y"],"d":["xy"]}`)
	add(`a={1,2},b={"x"},c={"x","y",},d={(1,2),(3,)},e={("x")},f={("x"):1})`,
		`{"a":[1,2],"b":["x"],"c":["x","y"],"d":[[1,2],[3]],"e":["x"],"f":{"x":1}}`)
	add(`a={"x":1,'y':[2],"z":{"w":()}},b={'x' "y" : 1})`, `{"a":{"x":1,"y":[2],"z":{"w":[]}},"b":{"xy":1}}`)
	add("a={1:2,-1.5:3,None:4,True:5,0x10:6,'k':7},b={None:1},c={(1):2},d={0x1ffffffffffffffff:1})",
		`{"a":{"1":2,"-1.5":3,"null":4,"true":5,"16":6,"k":7},"b":{"null":1},"c":{"1":2},"d":{"0x1ffffffffffffffff":1}}`)
	add("a=[{'x':[{'y':({'z':1},)}]}],b={1,2})", `{"a":[{"x":[{"y":[{"z":1}]}]}],"b":[1,2]}`)
	add("a={'k':(1),'l':{2}},b=[(1),(2,)])", `{"a":{"k":1,"l":[2]},"b":[1,[2]]}`)

	// Strings
	add(`a='x',b="x",c='''x''',d="""x""",e='',f="",g='''''',h="""""")`, `{"a":"x","b":"x","c":"x","d":"x","e":"","f":"","g":"","h":""}`)
	add(`a='"',b="'",c='''a'b''c"d''',d="""a"b""c
d""")`, `{"a":"\"","b":"'","c":"a'b''c\"d","d":"a\"b\"\"c\nd"}`)
	add(`a="\n\t\r\a\b\f\v\\\'\"")`, `{"a":"\n\t\r\u0007\b\f\u000b\\'\""}`)
	add(`a="\x41\xe9\u00e9\u6771\U0001f5fc\x00\x22")`, `{"a":"Aéé東🗼\u0000\""}`)
	add(`a="\0\101\1234\78\377\777")`, `{"a":"\u0000AS4\u00078ÿǿ"}`)
	add(`a="\d \/ \N{DASH} \é \%")`, `{"a":"\\d \\/ \\N{DASH} \\é \\%"}`)
	add(`a="\x4g \u12 \U0001 \U00110000 \Uffffffff \x")`, `{"a":"\\x4g \\u12 \\U0001 \\U00110000 \\Uffffffff \\x"}`)
	add(`a="\ud83d\uddfc \ud800 \U0000dc00")`, `{"a":"\ud83d\uddfc \ud800 \udc00"}`)
	add("a=\"x\\\ny\\\r\nz\\\rw\",b='p\nq')", `{"a":"xyzw","b":"p\nq"}`)
	add(`a=r"\n\"\\",b=R'\d+',c=u"\x41",d=f'é',e=fR"""a\"b""")`, `{"a":"\\n\\\"\\\\","b":"\\d+","c":"A","d":"é","e":"a\\\"b"}`)
	add(`a=f"{{x}}",b=("{x}" f'}}\n{{' rf"""{{\n"""),c=F'')`, `{"a":"{x}","b":"{x}}\n{{\\n","c":""}`)
	add(`a="x" 'y' """z""" r'\n' u"w",b=["p" "q","r"])`, `{"a":"xyz\\nw","b":["pq","r"]}`)
	add("a=\"\xff\xe6\",b='\x00\x01')", "{\"a\":\"\xff\xe6\",\"b\":\"\\u0000\\u0001\"}")

	// Not literals
	fail(`"x")`, 0, "")
	fail("1)", 0, "")
	fail("x)", 1, "")
	fail("x, y=1)", 1, "")
	fail("*a)", 0, "")
	fail("**a)", 0, "")
	fail("a=1, **b)", 5, `{"a":1`)
	fail("a=)", 2, `{"a":`)
	fail("a=,b=1)", 2, `{"a":`)
	fail("a==1)", 2, `{"a":`)
	fail("a=b)", 3, `{"a":`)
	fail("a=foo(1))", 5, `{"a":`)
	fail("a=Falsehood)", 7, `{"a":`)
	fail("a=True.x)", 6, `{"a":true`)
	fail("a=1+2)", 3, `{"a":1`)
	fail("a=1 + 2)", 4, `{"a":1`)
	fail("a=1-2)", 3, `{"a":1`)
	fail("a=1__0)", 6, `{"a":`)
	fail("a=1_)", 4, `{"a":`)
	fail("a=0x)", 4, `{"a":`)
	fail("a=0xg)", 5, `{"a":`)
	fail("a=0b12)", 6, `{"a":`)
	fail("a=0x1_)", 6, `{"a":`)
	fail("a=0x1e+1)", 6, `{"a":30`)
	fail("a=1j)", 4, `{"a":`)
	fail("a=1e)", 4, `{"a":`)
	fail("a=.)", 3, `{"a":`)
	fail("a=1.2.3)", 7, `{"a":`)
	fail("a=-)", 3, `{"a":`)
	fail("a=- -)", 5, `{"a":`)
	fail("a=007x)", 6, `{"a":`)
	fail("a=-True)", 7, `{"a":`)
	fail(`a="x" % 1)`, 6, `{"a":"x"`)
	fail(`a="x" if 1 else 2)`, 8, `{"a":"x`)
	fail(`a="x" "y".z)`, 9, `{"a":"xy"`)
	fail(`a=x"y")`, 3, `{"a":`)
	fail(`a=b"y")`, 3, `{"a":`)
	fail(`a=rb'y')`, 4, `{"a":`)
	fail(`a='x 'b' y')`, 7, `{"a":"x `)
	fail(`a=f"y {x!r}")`, 7, `{"a":"y `)
	fail(`a=f"y}")`, 6, `{"a":"y`)
	fail(`a=fr'{')`, 6, `{"a":"`)
	fail(`a=rbu"y")`, 5, `{"a":`)
	fail("a=1, b=2, a=3)", 11, `{"a":1,"b":2`)
	fail("a=[1,,2])", 5, `{"a":[1`)
	fail("a=[,])", 3, `{"a":[`)
	fail("a=(,))", 3, `{"a":`)
	fail("a=[1)", 4, `{"a":[1`)
	fail("a=[1}", 4, `{"a":[1`)
	fail("a=[1:2])", 4, `{"a":[1`)
	fail("a={1:2,3})", 8, `{"a":{"1":2,"3"`)
	fail("a={1,2:3})", 6, `{"a":[1,2`)
	fail("a={1:})", 5, `{"a":{"1":`)
	fail("a={[1]:2})", 6, `{"a":`)
	fail("a={(1,):2})", 7, `{"a":`)
	fail("a={'x':1,[2]:3})", 9, `{"a":{"x":1`)
	fail("a={**b})", 3, `{"a":`)
	fail("a=[x for x in y])", 4, `{"a":[`)
	fail("a=1 # x\n)", 4, `{"a":1`)
	fail("a=(1)(2))", 5, `{"a":1`)
	fail(`a=("x")"y")`, 7, `{"a":"x"`)
	fail("a:1)", 1, "")
	fail("a=1;b=2)", 3, `{"a":1`)

	runCases(t, codec.Python{}.NewDecoder(), args.Compile(nil), cases)
}

func TestPythonMore(t *testing.T) {
	for _, in := range []string{
		"", " ", "a", "a=", "a=1", `a="x`, `a="x\`, `a="x\u00`, `a=""`, `a="x"`, `a=["x"`, `a=("x"`, "a={", "a=[1,", "a=1,", "a=Tru", "a=r",
	} {
		require.Equal(t, grammar.More, same(t, codec.Python{}.NewDecoder(), nil, in, newRand(1)).Status, in)
	}
}

func TestPythonLimits(t *testing.T) {
	long := strings.Repeat("9", 4096)
	var keys strings.Builder
	for i := range 1024 {
		fmt.Fprintf(&keys, "k%d=1,", i)
	}
	nested := func(open, inner, shut string, n int) string {
		return "a=" + strings.Repeat(open, n) + inner + strings.Repeat(shut, n) + ")"
	}
	for _, c := range []struct {
		name, in string
		st       grammar.Status
	}{
		{"lists", nested("[", "", "]", 127), grammar.Done},
		{"too deep lists", nested("[", "", "]", 128), grammar.Limit},
		{"tuples", nested("(", "1,", ",)", 127), grammar.Bad},
		{"parentheses", nested("(", "1", ")", 127), grammar.Done},
		{"too deep parentheses", nested("(", "1", ")", 128), grammar.Limit},
		{"dicts", nested("{'k':", "1", "}", 127), grammar.Done},
		{"too deep dicts", nested("{'k':", "1", "}", 128), grammar.Limit},
		{"sets", nested("{", "1", "}", 127), grammar.Done},
		{"braces", "a=" + strings.Repeat("{", many()), grammar.Limit},
		{"brackets", "a=" + strings.Repeat("[", many()), grammar.Limit},
		{"open parentheses", "a=" + strings.Repeat("(", many()), grammar.Limit},
		{"angles", strings.Repeat("<", many()), grammar.Bad},
		{"only braces", strings.Repeat("{", many()), grammar.Bad},
		{"number", "a=" + long + ")", grammar.Done},
		{"long number", "a=" + long + "9)", grammar.Limit},
		{"long word", "a=" + strings.Repeat("x", many()) + ")", grammar.Bad},
		{"keyword", strings.Repeat("k", 4096) + "=1)", grammar.Done},
		{"long keyword", strings.Repeat("k", 4097) + "=1)", grammar.Limit},
		{"keys", keys.String() + ")", grammar.Done},
		{"too many keys", keys.String() + "a=1)", grammar.Limit},
		{"kept", `a=("` + strings.Repeat("x", 4000) + `"))`, grammar.Done},
		{"too much kept", `a=("` + strings.Repeat("x", 4096) + `"))`, grammar.Limit},
		{"too much kept of escapes", `a={"` + strings.Repeat(`\x01`, 1000) + `"})`, grammar.Limit},
		{"not kept", `a=(1,"` + strings.Repeat("x", 1<<14) + `"))`, grammar.Done},
		{"quotes", "a='''" + strings.Repeat("''x", 1<<14) + "''')", grammar.Done},
		{"empty strings", "a=" + strings.Repeat("'' ", 1<<14) + ")", grammar.Done},
		{"white space", "a=" + strings.Repeat(" ", many()/16) + "1)", grammar.Done},
		{"signs", "a=-" + strings.Repeat(" ", many()/16) + "1)", grammar.Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := same(t, codec.Python{}.NewDecoder(), nil, c.in, newRand(1))
			require.Equal(t, c.st, got.Status)
		})
	}
}

func TestPythonWork(t *testing.T) {
	code := strings.Repeat(`if a < b { return x[i] } // \"next\" line é\n`, 2500)
	requireLinear(t, codec.Python{}.NewDecoder(), `cmd="`+code+`")`, grammar.Done)
	requireLinear(t, codec.Python{}.NewDecoder(), `cmd='''`+strings.Repeat(`''\\`, 25_000)+`''')`, grammar.Done)
	requireLinear(t, codec.Python{}.NewDecoder(), `cmd=`+strings.Repeat(`"x" r'y' `, 10_000)+`)`, grammar.Done)
	requireNoAllocs(t, codec.Python{}.NewDecoder(), nil,
		`cmd="`+code+`\x41\ud800\N",n=[1,True,0x10,-.5],t=("x" 'y'),d={1:(2,3),"k":{4}},big=0xfffffffffffffffffff)`)
}

func TestPythonReuse(t *testing.T) {
	d := codec.Python{}.NewDecoder()
	for range 2 {
		got, _ := run(t, d, nil, `a=[{(("x`)
		require.Equal(t, grammar.More, got.Status)
		got, _ = run(t, d, nil, `a=1,b="y")`)
		require.Equal(t, result{`{"a":1,"b":"y"}`, 10, grammar.Done}, got)
	}
	_, n, st := d.Append(nil, []byte(")"), false)
	require.Equal(t, 0, n)
	require.Equal(t, grammar.Done, st)
}

var pythonFragments = []string{
	"(", "(", ")", ")", "[", "]", "{", "}", ",", ",", ":", "=", "a=", "b=", "k=", ", c=", `"`, `"`, "'", "'''", `"""`,
	`\`, `\n`, `\x4`, `\u00e9`, `\ud83d`, `\0`, `"x"`, "'y'", `r"`, "rb'", "b", "f", " ", "\n", "\r",
	"1", "-", "0x1f", "1.", ".5", "1e", "1_0", "True", "None", "null", "x", "é", "🗼", "\xff", "\xe6\x9d", "\x00",
	`{"k":`, "(1,", "[1,", "{2,", strings.Repeat("9", 4000), strings.Repeat("x", 2000), "*", "+", "#",
}

func TestPythonRandom(t *testing.T) {
	d := codec.Python{}.NewDecoder()
	done := 0
	for seed := range rounds(4000) {
		r := newRand(seed)
		text := ""
		if r.IntN(4) > 0 {
			text = "v="
		}
		for range 1 + r.IntN(12) {
			text += pythonFragments[r.IntN(len(pythonFragments))]
		}
		if r.IntN(2) == 0 {
			text += ")"
		}
		if same(t, d, nil, text, r).Status == grammar.Done {
			done++
		}
	}
	require.Greater(t, done, int(rounds(50)))
}

func FuzzPython(f *testing.F) {
	for _, s := range []string{
		`a=1, b="x", c=[1, None], d={"k": True})`, `a=('x' r"\n", {1, 2}), b=-.5e3)`,
		`a='''\x41\ud83d''', b={(1): ()})`, "a=0xff,b=1_0,)",
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		d := codec.Python{}.NewDecoder()
		got := same(t, d, nil, string(text), newRand(seed))
		// What the decoder reads, the scanner for lists must not stumble over.
		if got.Status == grammar.Done {
			var s codec.ListScanner
			if n, st := s.Scan([]byte("[(" + string(text[:got.Taken]) + "]")); st != grammar.Done || n != got.Taken+3 {
				t.Fatalf("%q: the decoder takes %d bytes, the scanner returns %d at %d", text, got.Taken, st, n-2)
			}
		}
	})
}

func BenchmarkPython(b *testing.B) {
	text := `path="/tmp/x.go", content="` + strings.Repeat(`if a < b { return x[i] } // next line\n`, 540) + `", n=1)`
	for _, size := range []int{4, 64, len(text)} {
		b.Run(fmt.Sprintf("text=arg20k/chunk=%d", size), func(b *testing.B) {
			benchDecode(b, codec.Python{}.NewDecoder(), text, size)
		})
	}
	small := `path="/repo/pkg/file.go", offset=1131, limit=200, globs=["*.go", "*.md"], opts={"case": True})`
	b.Run("text=small/chunk=4", func(b *testing.B) { benchDecode(b, codec.Python{}.NewDecoder(), small, 4) })
}
