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

// q represents Gemma 4's quote in test data.
func q(s string) string { return strings.ReplaceAll(s, "~", `<|"|>`) }

func TestGemma(t *testing.T) {
	schema := args.Compile([]byte(`{"properties":{"s":{"type":"string"},"i":{"type":"integer"},"any":{}}}`))
	var cases []decodeCase
	add := func(in, json string) { cases = append(cases, decodeCase{q(in), q(json), grammar.Done, 0}) }
	fail := func(in string, at int, json string) {
		cases = append(cases, decodeCase{q(in), q(json), grammar.Bad, at})
	}
	add(`{k:~text~,n:1,o:{x:true},a:[1,~b~]}`, `{"k":"text","n":1,"o":{"x":true},"a":[1,"b"]}`)
	add("{}", "{}")
	add(" \n{ }", "{}")
	add("{ k : ~ a b ~ , n : 1 }", `{"k":" a b ","n":1}`)
	add("{a:[],b:[ ],c:{},d:[[],{}]}", `{"a":[],"b":[],"c":{},"d":[[],{}]}`)
	add("{a:[1,2,],b:{x:1,},}", `{"a":[1,2],"b":{"x":1}}`)
	add("{a:true,b:TRUE,c:False,d:null,e:None,f:nil,g:NULL,h:[None,FALSE]}",
		`{"a":true,"b":true,"c":false,"d":null,"e":null,"f":null,"g":null,"h":[null,false]}`)
	add("{a:0,b:-1.50,c:1e-07,d:9007199254740993,e:1E+400}", `{"a":0,"b":-1.50,"c":1e-07,"d":9007199254740993,"e":1E+400}`)

	// Strings are raw.
	add("{k:~a\"b\\n\t\x01\n~}", `{"k":"a\"b\\n\t\u0001\n"}`)
	add("{k:~~}", `{"k":""}`)
	add("{k:~東京 🗼~}", `{"k":"東京 🗼"}`)
	add("{k:~\xff\xe6~}", "{\"k\":\"\xff\xe6\"}")
	add("{k:~} <tool_call|> call:x{y:1} ]~}", `{"k":"} <tool_call|> call:x{y:1} ]"}`)
	// Only a quote that is followed by the end of a value ends a string.
	add("{k:~a ~ b~}", `{"k":"a `+`<|\"|> b"}`)
	add("{k:~a~ \n ~}", `{"k":"a`+`<|\"|> \n "}`)
	add("{k:~a~ \n\t\r }", `{"k":"a"}`)
	add("{k:~a~"+strings.Repeat(" ", 64)+"}", `{"k":"a"}`)
	add("{k:~a~"+strings.Repeat(" ", 65)+"}~}", `{"k":"a`+`<|\"|>`+strings.Repeat(" ", 65)+`}"}`)
	add("{k:~<|\"<|\"|<|<<|\"|x~,l:~<|\"|~}", `{"k":"<|\"<|\"|<|<<|\"|x","l":"<|\"|"}`)
	add("{k:~a~~b~}", `{"k":"a`+`<|\"|><|\"|>b"}`)

	// Keys
	add("{a b:1,$ref:2,x-y.z :3,日本:4}", `{"a b":1,"$ref":2,"x-y.z":3,"日本":4}`)
	add(`{~a:b~:1,"c\u0041\n":2,"d":3, ~e~ : 4}`, `{"a:b":1,"cA\n":2,"d":3,"e":4}`)
	add("{~a~b~:1,<|x:2,:3}", `{"a`+`<|\"|>b":1,"<|x":2,"":3}`)
	add(`{o:{k:1,k:2}}`, `{"o":{"k":1,"k":2}}`) // as written, as in JSON

	// Double quotes
	add(`{a:"b\n\"\u00e9\/",c:["x","y"]}`, `{"a":"b\n\"\u00e9\/","c":["x","y"]}`)
	add("{a:\"\\x \\u12\n\",b:\"\\\\\"}", `{"a":"\\x \\u12\n","b":"\\"}`)
	add(`{"a": "b", "c": {"d": [1, null]}}`, `{"a":"b","c":{"d":[1,null]}}`)

	// After a backslash that is data, the others are too.
	add(`{p:"C:\users\bob\file.txt"}`, `{"p":"C:\\users\\bob\\file.txt"}`)
	add(`{p:"\d+\n \"x\" \\"}`, `{"p":"\\d+\\n \"x\" \\"}`)

	// Text without quotes
	add("{s:Oslo , i: 007,any:1.,x:a b\nc,y:|\" z,o:{k:v w}}",
		`{"s":"Oslo","i":7,"any":"1.","x":"a b\nc","y":"|\" z","o":{"k":"v w"}}`)
	add("{i:42.0,j:42.0}", `{"i":42.0,"j":42.0}`)
	add("{a:,b:}", `{"a":"","b":""}`)
	add("{a:[inf,-x]}", `{"a":["inf","-x"]}`)

	// Without quotes, a marker is not text: the brace is missing.
	fail(`{p:"C:\bob\users"}`, 12, `{"p":"C:\bob`)
	fail("{i:1<tool_call|><|tool_call>call:f{j:2}<tool_call|>", 4, `{"i":`)
	fail("{s:a b <tool_call|>}", 7, `{"s":`)
	fail("{i:<tool_call|>}", 3, `{"i":`)
	fail("{i:<|tool_call>}", 3, `{"i":`)
	fail("{a:[1,<", 6, `{"a":[1,`)
	cases[len(cases)-1].st = grammar.More // a quote that the stream cuts
	cases[len(cases)-1].at = 7
	fail("{a:[1,<<", 6, `{"a":[1,`)
	add("{i:1,s:x,x:a b,<:~<~,y<z:true}", `{"i":1,"s":"x","x":"a b","<":"<","y<z":true}`)

	fail("", 0, "")
	cases[len(cases)-1].st = grammar.More
	fail("x", 0, "")
	fail("[1]", 0, "")
	fail("{a:1]", 4, `{"a":1`)
	fail("{a:[1}", 5, `{"a":[1`)
	fail("{a:[1,,2]}", 6, `{"a":[1`)
	fail("{,a:1}", 1, "{")
	fail("{a}", 2, "{")
	fail("{~a~,b:1}", len(q("{~a~,b:1}")), "{")
	cases[len(cases)-1].st = grammar.More // the comma is part of the key, which does not end
	fail("{a:~b~]", len(q("{a:~b~")), `{"a":"b"`)
	fail("{a:1,b:2,a:3}", 10, `{"a":1,"b":2`)
	fail(`{a:1,"\u0061":3}`, 13, `{"a":1`)
	fail(`{"a" 1}`, 5, "{")
	fail(`{a:"b" "c"}`, 7, `{"a":"b"`)

	runCases(t, codec.Gemma{}.NewDecoder(), schema, cases)
}

func TestGemmaTail(t *testing.T) {
	runCases(t, codec.Gemma{}.NewDecoder(), args.Compile(nil), []decodeCase{
		{`{a:1}<tool_call|>`, `{"a":1}`, grammar.Done, 12},
		{`{}}`, `{}`, grammar.Done, 1},
		{q(`{a:~b~`), `{"a":"b"`, grammar.More, 14}, // a quote at the end of the stream ends the string
		{q(`{a:~b<|"`), `{"a":"b`, grammar.More, 12},
		{q("{a:~b\xe6\x9d"), "{\"a\":\"b\xe6\x9d", grammar.More, 11},
	})
}

func TestGemmaQuote(t *testing.T) {
	runCases(t, codec.Gemma{Quote: "<escape>"}.NewDecoder(), args.Compile(nil), []decodeCase{
		{"{city:<escape>日本<escape>,n:[<escape>a<escape>,3.14]}", `{"city":"日本","n":["a",3.14]}`, grammar.Done, 0},
		{"{a:<escape><|\"|><escape >x<escape>}", `{"a":"<|\"|><escape >x"}`, grammar.Done, 0},
	})
	// Quotes that overlap with themselves, and one that is a double quote.
	runCases(t, codec.Gemma{Quote: "aab"}.NewDecoder(), args.Compile(nil), []decodeCase{
		{"{k:aabxaaabaaaab}", `{"k":"xaaabaa"}`, grammar.Done, 0},
	})
	runCases(t, codec.Gemma{Quote: "aa"}.NewDecoder(), args.Compile(nil), []decodeCase{
		{"{k:aaxaaa,l:aaaaaa}", `{"k":"xa","l":"aa"}`, grammar.Done, 0},
	})
	runCases(t, codec.Gemma{Quote: `"`}.NewDecoder(), args.Compile(nil), []decodeCase{
		{`{"k":"a"b\n"}`, `{"k":"a\"b\\n"}`, grammar.Done, 0},
	})
}

func TestGemmaLimits(t *testing.T) {
	deep := strings.Repeat("{a:", 127)
	long := strings.Repeat("9", 4096)
	var keys strings.Builder
	for i := range 1024 {
		fmt.Fprintf(&keys, "k%d:1,", i)
	}
	for _, c := range []struct {
		name, in string
		st       grammar.Status
	}{
		{"deep", deep + "{}" + strings.Repeat("}", 127), grammar.Done},
		{"too deep", deep + "{a:{", grammar.Limit},
		{"arrays", "{a:" + strings.Repeat("[", many()), grammar.Limit},
		{"braces", strings.Repeat("{", many()), grammar.Bad},
		{"number", "{a:" + long + "}", grammar.Done},
		{"long number", "{a:" + long + "9}", grammar.Limit},
		{"key", "{" + long + ":1}", grammar.Done},
		{"long key", "{" + long + "9:1}", grammar.Limit},
		{"long key in quotes", q("{~" + long + "9~:1}"), grammar.Limit},
		{"long key in double quotes", "{\"" + long + "9\":1}", grammar.Limit},
		{"keys", "{" + keys.String() + "}", grammar.Done},
		{"too many keys", "{" + keys.String() + "a:1}", grammar.Limit},
		{"angles", strings.Repeat("<", many()), grammar.Bad},
		{"angles in a string", q("{a:~" + strings.Repeat("<", many()/16) + "~}"), grammar.Done},
		{"white space", "{" + strings.Repeat(" ", many()/16) + "}", grammar.Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := same(t, codec.Gemma{}.NewDecoder(), args.Compile(nil), c.in, newRand(1))
			require.Equal(t, c.st, got.Status)
		})
	}
}

func TestGemmaWork(t *testing.T) {
	code := strings.Repeat("if a < b { return x[i] } // <|\"| <|\"|> é\n", 2500)
	for _, s := range []string{
		code, strings.Repeat("<", 100_000), strings.Repeat(q("~"), 20_000) + "x", strings.Repeat(q("~  "), 20_000) + "x",
	} {
		requireLinear(t, codec.Gemma{}.NewDecoder(), q("{cmd:~")+s+q("~}"), grammar.Done)
	}
	requireLinear(t, codec.Gemma{}.NewDecoder(), `{cmd:"`+strings.Repeat(`x\u0041\"`, 10_000)+`"}`, grammar.Done)
	requireNoAllocs(t, codec.Gemma{}.NewDecoder(), args.Compile(nil),
		q("{cmd:~")+code+q(`~,n:[1,true,None,{x:~y~,"z":"\u0041"}],t:some text,~k~:-1.5}`))
}

func TestGemmaReuse(t *testing.T) {
	d := codec.Gemma{}.NewDecoder()
	for range 2 {
		got, _ := run(t, d, args.Compile(nil), q(`{a:[{b:~c<|"|`))
		require.Equal(t, grammar.More, got.Status)
		got, _ = run(t, d, args.Compile(nil), `{a:1,b:x}`)
		require.Equal(t, result{`{"a":1,"b":"x"}`, 9, grammar.Done}, got)
	}
	_, n, st := d.Append(nil, []byte("}"), false)
	require.Equal(t, 0, n)
	require.Equal(t, grammar.Done, st)
}

var gemmaFragments = []string{
	"{", "{", "}", "}", "[", "]", ",", ",", ":", ":", `<|"|>`, `<|"|>`, `<|"|>`, `<|"`, "<", "|>", `"`, `\`, `\u00`, `\n`,
	"a", "b:", "key:", "k1:", " ", "\n", strings.Repeat(" ", 64), "true", "None", "nil", "12", "-1.5e3", "0x1",
	"é", "🗼", "\xff", "\xe6\x9d", "\x00", "<tool_call|>", "call:x{",
	`{k:<|"|>v<|"|>,`, `a:[1,<|"|>b<|"|>]`, `<|"|>,x:`, `<|"|>}`, strings.Repeat("9", 4000),
}

func TestGemmaRandom(t *testing.T) {
	d := codec.Gemma{}.NewDecoder()
	schema := args.Compile([]byte(`{"properties":{"a":{"type":"integer"},"key":{}}}`))
	done := 0
	for seed := range rounds(3000) {
		r := newRand(seed)
		text := "{"
		for range 1 + r.IntN(16) {
			text += gemmaFragments[r.IntN(len(gemmaFragments))]
		}
		if same(t, d, schema, text, r).Status == grammar.Done {
			done++
		}
	}
	require.Greater(t, done, int(rounds(100)))
}

func FuzzGemma(f *testing.F) {
	for _, s := range []string{
		`{k:~text~,n:1,o:{x:true},a:[1,~b~]}`, "{ }", "{k:~a ~ b~ }", `{"a":"\u00e9",b:x y}`, "{~k~:None}",
	} {
		f.Add([]byte(q(s)), uint64(1))
	}
	schema := args.Compile([]byte(`{"properties":{"a":{"type":"integer"},"k":{}}}`))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		for _, g := range []codec.Gemma{{}, {Quote: "<escape>"}, {Quote: "aa"}} {
			same(t, g.NewDecoder(), schema, string(text), newRand(seed))
		}
	})
}

func BenchmarkGemma(b *testing.B) {
	text := q("{path:~/tmp/x.go~,content:~") + strings.Repeat("if a < b { return x[i] } // next line\n", 540) + q("~,n:1}")
	for _, size := range []int{4, 64, len(text)} {
		b.Run(fmt.Sprintf("text=arg20k/chunk=%d", size), func(b *testing.B) {
			benchDecode(b, codec.Gemma{}.NewDecoder(), text, size)
		})
	}
	small := q("{path:~/repo/pkg/file.go~,offset:1131,limit:200,globs:[~*.go~,~*.md~],opts:{case:true}}")
	b.Run("text=small/chunk=4", func(b *testing.B) { benchDecode(b, codec.Gemma{}.NewDecoder(), small, 4) })
}
