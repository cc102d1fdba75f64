// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/codec"
	"github.com/weft-go/weft/parsers/grammar"
	"github.com/weft-go/weft/parsers/internal/args"
)

const m3 = "]<]minimax[>["

// ns replaces ~ by the prefix of MiniMax M3.
func ns(s string) string { return strings.ReplaceAll(s, "~", m3) }

func nested() grammar.Decoder { return codec.Nested{Prefix: m3}.NewDecoder() }

var nestedSchema = args.Compile([]byte(`{"properties":{
	"s":{"type":"string"},"i":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"},"n":{"type":["null","object"]},
	"ns":{"type":["string","null"]},"o":{"type":"object"},"any":{},"e":{"enum":["1",2]},
	"a":{"type":"array","items":{"type":"integer"}},"as":{"type":"array","items":{"type":"string"}},"bare":{"type":"array"},
	"aa":{"items":{"items":{"type":"integer"}}},"sa":{"anyOf":[{"type":"string"},{"items":{"type":"string"}}]},
	"an":{"items":{"type":["integer","null"]}},"tuple":{"prefixItems":[{"type":"string"},{"type":"boolean"}],"items":{"type":"null"}},
	"files":{"type":"array","items":{"$ref":"#/$defs/file"}},
	"p":{"type":"object","properties":{"t":{"type":"string"},"x":{"type":"integer"},"list":{"items":{"type":"integer"}},
		"names":{"items":{"type":"string"}},"files":{"items":{"$ref":"#/$defs/file"}},"any":{},"item":{"type":"boolean"}}},
	"map":{"additionalProperties":{"type":"integer"}},"item":{"type":"string"},"tree":{"$ref":"#/$defs/tree"},
	"opt":{"anyOf":[{"$ref":"#/$defs/file"},{"type":"null"}]}},
	"$defs":{"file":{"type":"object","properties":{"path":{"type":"string"},"size":{"type":"integer"},"item":{"type":"string"}}},
		"tree":{"properties":{"name":{"type":"string"},"kids":{"items":{"$ref":"#/$defs/tree"}}}}}}`))

// sameNested decodes text whole and cut in many ways, expects the same of all, and returns it.
func sameNested(t testing.TB, d grammar.Decoder, schema *args.Schema, text string, r *rand.Rand) result {
	t.Helper()
	want, _ := run(t, d, schema, text)
	check := func(chunks ...string) {
		got, left := run(t, d, schema, chunks...)
		if got != want {
			t.Fatalf("%.600q (-whole +cut):\n%s", chunks, cmp.Diff(want, got))
		}
		if left > 2*len(m3)+200 {
			t.Fatalf("%.600q: %d bytes left untaken", chunks, left)
		}
	}
	check(split(text, func() int { return 1 })...)
	check(append(split(text, func() int { return 1 }), "")...)
	for range 5 {
		check(split(text, func() int { return 1 + r.IntN(20) })...)
	}
	if len(text) <= 1000 {
		for i := 1; i < len(text); i++ {
			check(text[:i], text[i:])
		}
	}
	return want
}

func TestNested(t *testing.T) {
	for _, c := range []struct {
		in, json string
	}{
		// Parameters
		{"", `{}`},
		{"\n", `{}`},
		{"\n~<s>Oslo~</s>\n~<i>7~</i>\n", `{"s":"Oslo","i":7}`},
		{"~<s>Oslo~</s>~<i>7~</i>", `{"s":"Oslo","i":7}`},
		{" ~<s>x~</s> \r\n\t ~<i>7~</i> ", `{"s":"x","i":7}`},
		{"~<s>007~</s>~<i>9007199254740993~</i>~<f>2.50~</f>~<b>True~</b>~<n>null~</n>~<ns>null~</ns>~<e>1~</e>",

			`{"s":"007","i":9007199254740993,"f":2.50,"b":true,"n":null,"ns":null,"e":"1"}`},
		{"~<s>null~</s>~<ns>a~</ns>~<i>42.0~</i>~<f>x~</f>~<b>yes~</b>~<e>2~</e>", `{"s":"null","ns":"a","i":42,"f":"x","b":"yes","e":2}`},
		{"~<a>[1, 2]~</a>~<o>{\"k\": {\"z\": [3]}}~</o>~<any>[true]~</any>", `{"a":[1, 2],"o":{"k": {"z": [3]}},"any":[true]}`},
		{"~<a>\n[1,2]\n~</a>~<o>{'k': None}~</o>", `{"a":[1,2],"o":{"k":null}}`},
		{"~<q>5~</q>~<r>[1]~</r>~<$x.y z/日本-1>a~</$x.y z/日本-1>", `{"q":"5","r":"[1]","$x.y z/日本-1":"a"}`},
		{"~<invoke>x~</invoke>~<s>y~</s>", `{"invoke":"x","s":"y"}`},
		{"~<a\\b>x~</a\\b>", `{"a\\b":"x"}`},

		// Text is raw.
		{"~<s>\n a \"b\" \\n \x01 &lt;\n~</s>", `{"s":"\n a \"b\" \\n \u0001 &lt;\n"}`},
		{"~<s>~</s>~<ns>~</ns>", `{"s":"","ns":""}`},
		{"~<s>東京 🗼 Zürich~</s>", `{"s":"東京 🗼 Zürich"}`},
		{"~<s>\xff\xe6~</s>", "{\"s\":\"\xff\xe6\"}"},
		{"~<s>echo <think>hi</think></s> </invoke>~</s>", `{"s":"echo <think>hi</think></s> </invoke>"}`},
		{"~<s>[1, 2]]~</s>", `{"s":"[1, 2]]"}`},
		{"~<s>]<]<]]<]minimax[>]<]minimax[>~</s>", `{"s":"]<]<]]<]minimax[>]<]minimax[>"}`},
		{"~<s>~~<i>7~</i> ~</t>~<~</~</~</s~</s>", `{"s":"~~<i>7~</i> ~</t>~<~</~</~</s"}`},
		// Only a closing tag that a tag follows ends it.
		{"~<s>a~</s> b~</s>~<i>1~</i>", `{"s":"a~</s> b","i":1}`},
		{"~<s>a~</s>~~</s>", `{"s":"a~</s>~"}`},
		{"~<s>a~</s>" + strings.Repeat(" ", 64), `{"s":"a"}`},
		{"~<s>a~</s>" + strings.Repeat(" ", 65) + "~</s>", `{"s":"a~</s>` + strings.Repeat(" ", 65) + `"}`},
		{"~<i>1~</i>2~</i>", `{"i":"1~</i>2"}`},
		{"~<s>x~</invoke>y~</s>", `{"s":"x~</invoke>y"}`},
		{"~<s>x~</invoke> ~~</s>", `{"s":"x~</invoke> ~"}`},
		{"~<inv>x~</invoke~</inv>", `{"inv":"x~</invoke"}`},

		// Objects
		{"~<o>~<k>v~</k>~</o>", `{"o":{"k":"v"}}`},
		{"~<o>\n~<k>v~</k>\n~<l>5~</l>\n~</o>\n", `{"o":{"k":"v","l":"5"}}`},
		{"~<p>~<t>text~</t>~<x>5~</x>~<list>[1]~</list>~</p>~<s>z~</s>", `{"p":{"t":"text","x":5,"list":[1]},"s":"z"}`},
		{"~<p>~<t>a~<x>1~</x>b~</t>~</p>", `{"p":{"t":"a~<x>1~</x>b"}}`},
		{"~<map>~<u>1~</u>~<v>2~</v>~</map>", `{"map":{"u":1,"v":2}}`},
		{"~<any>~<k>5~</k>~</any>~<q>~<k>5~</k>~</q>", `{"any":{"k":"5"},"q":{"k":"5"}}`},
		{"~<n>~<k>5~</k>~</n>~<opt>~<path>p~</path>~<size>3~</size>~</opt>", `{"n":{"k":"5"},"opt":{"path":"p","size":3}}`},
		{"~<o>~<k>~<k>~<k>v~</k>~</k>~</k>~</o>", `{"o":{"k":{"k":{"k":"v"}}}}`},
		{"~<o>text~<k>v~</k>~</o>", `{"o":"text~<k>v~</k>"}`},
		{"~<i>~<k>v~</k>~</i>", `{"i":"~<k>v~</k>"}`},
		{"~<any>" + strings.Repeat(" ", 65) + "~<k>v~</k>~</any>", `{"any":"` + strings.Repeat(" ", 65) + `~<k>v~</k>"}`},
		{"~<any>" + strings.Repeat(" ", 64) + "~<k>v~</k>~</any>", `{"any":{"k":"v"}}`},

		// Arrays
		{"~<a>~<item>1~</item>~<item>2~</item>~</a>", `{"a":[1,2]}`},
		{"~<a>\n~<item>1~</item>\n~</a>", `{"a":[1]}`},
		{"~<a>~<x>1~</x>~<y>2~</y>~</a>", `{"a":[1,2]}`},
		{"~<as>~<item>12~</item>~<item>a~<b>~</item>~</as>", `{"as":["12","a~<b>"]}`},
		{"~<bare>~<item>1~</item>~<item>~<k>v~</k>~</item>~</bare>", `{"bare":["1",{"k":"v"}]}`},
		{"~<aa>~<item>~<item>1~</item>~</item>~<item>[2]~</item>~<item>~</item>~</aa>", `{"aa":[[1],[2],[]]}`},
		{"~<an>~<item>1~</item>~<item>~</item>~</an>", `{"an":[1,null]}`},
		{"~<tuple>~<item>1~</item>~<item>true~</item>~<item>null~</item>~</tuple>", `{"tuple":["1",true,null]}`},
		{"~<any>~<item>1~</item>~</any>~<q>~<item>1~</item>~<item>x~</item>~</q>", `{"any":["1"],"q":["1","x"]}`},
		{"~<sa>~<item>a~</item>~</sa>", `{"sa":["a"]}`},
		{"~<sa>a~</sa>", `{"sa":"a"}`},
		{"~<item>a~</item>", `{"item":"a"}`},
		{"~<p>~<item>true~</item>~</p>", `{"p":{"item":true}}`},
		{"~<o>~<item>a~</item>~<item>b~</item>~</o>", `{"o":{"item":["a","b"]}}`},
		{"~<files>~<item>~<path>a~</path>~<size>1~</size>~</item>~<item>~<path>b~</path>~</item>~</files>",
			`{"files":[{"path":"a","size":1},{"path":"b"}]}`},
		{"~<tree>~<name>a~</name>~<kids>~<item>~<name>b~</name>~<kids>~</kids>~</item>~</kids>~</tree>",
			`{"tree":{"name":"a","kids":[{"name":"b","kids":[]}]}}`},
		// The only element without a tag
		{"~<files>~<path>a~</path>~<size>1~</size>~</files>~<s>x~</s>", `{"files":[{"path":"a","size":1}],"s":"x"}`},
		{"~<tree>~<kids>~<name>b~</name>~</kids>~<kids>~<name>c~</name>~</kids>~<name>a~</name>~</tree>",
			`{"tree":{"kids":[{"name":"b"},{"name":"c"}],"name":"a"}}`},
		{"~<p>~<files>~<path>a~</path>~</files>~<files>~<size>2~</size>~</files>~</p>", `{"p":{"files":[{"path":"a"},{"size":2}]}}`},
		{"~<p>~<files>~<path>a~</path>~</files>~<files>{\"size\": 2}~</files>~<t>x~</t>~</p>",
			`{"p":{"files":[{"path":"a"},{"size": 2}],"t":"x"}}`},
		{"~<bare>~<item>~<files>~<path>a~</path>~</files>~</item>~</bare>", `{"bare":[{"files":{"path":"a"}}]}`},
		// Repeated tags
		{"~<p>~<list>1~</list>~<list>2~</list>~<list>3~</list>~<t>x~</t>~</p>", `{"p":{"list":[1,2,3],"t":"x"}}`},
		{"~<p>~<names>a~</names>~<names>b~</names>~</p>", `{"p":{"names":["a","b"]}}`},
		{"~<p>~<names>a~</names>~</p>", `{"p":{"names":"a"}}`},
		{"~<p>~<any>1~</any>~<any>b~</any>~</p>", `{"p":{"any":["1","b"]}}`},
		{"~<p>~<any>1~</any>~</p>", `{"p":{"any":1}}`},
		{"~<o>~<a>1~</a>~<a>2~</a>~<b>~</b>~<b>~</b>~</o>", `{"o":{"a":["1","2"],"b":["",""]}}`},
		{"~<o>~<a>1~</a>~<a>~<k>v~</k>~</a>~<a>~<item>x~</item>~</a>~</o>", `{"o":{"a":["1",{"k":"v"},["x"]]}}`},

		// Empty containers
		{"~<a>~</a>~<o>\n~</o>~<n> ~</n>~<any>~</any>~<q>~</q>~<i>~</i>~<b> ~</b>",
			`{"a":[],"o":{},"n":{},"any":"","q":"","i":"","b":" "}`},
	} {
		t.Run(fmt.Sprintf("%.60q", c.in), func(t *testing.T) {
			for _, end := range []string{"~</invoke>", "~</invoke>\n~</tool_call>"} {
				want := result{ns(c.json), len(ns(c.in)), grammar.Done}
				got := sameNested(t, nested(), nestedSchema, ns(c.in+end), newRand(uint64(len(c.in))))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestNestedEnds has what is not complete, and where it turns out. The part before the bar is taken.
func TestNestedEnds(t *testing.T) {
	long := strings.Repeat("n", 128)
	deep := func(n int, inner string) string {
		return strings.Repeat("~<k>", n) + inner + strings.Repeat("~</k>", n)
	}
	for _, c := range []struct {
		in, json string
		st       grammar.Status
	}{
		// The call's closing tag is missing: the parser judges.
		{"~<s>a~</s>|~</tool_call>", `{"s":"a"}`, grammar.Done},
		{"~<s>a~</s>\n|~<invoke name=\"f\">", `{"s":"a"}`, grammar.Done},
		{"~<s>a~</s>|~</s>~</invoke>", `{"s":"a"}`, grammar.Done},
		{"|~</s>", `{}`, grammar.Done},
		{"|~<x=", `{}`, grammar.Done},
		// The stream ends.
		{"", ``, grammar.More},
		{"~", ``, grammar.More},
		{"~<s", ``, grammar.More},
		{"~<s>", `{"s":"`, grammar.More},
		{"~<s>a", `{"s":"a`, grammar.More},
		{"~<s>a~</s", `{"s":"a~</s`, grammar.More},
		{"~<s>a~</s>", `{"s":"a"`, grammar.More},
		{"~<s>a~</s> \n", `{"s":"a"`, grammar.More},
		{"~<s>a~</s> ]<]mini", `{"s":"a"`, grammar.More},
		{"~<s>a~</s>b", `{"s":"a~</s>b`, grammar.More},
		{"~<s>a~</invoke>", `{"s":"a~</invoke>`, grammar.More},
		{"~<s>a~</invoke>\n", `{"s":"a~</invoke>\n`, grammar.More},
		{"~<s>\xe6\x9d", "{\"s\":\"\xe6\x9d", grammar.More},
		{"~<i>7", `{"i":`, grammar.More},
		{"~<i>7~</i>", `{"i":7`, grammar.More},
		{"~<o>~<k>v~</k>", `{"o":{"k":`, grammar.More},
		{"~<any> \n", `{"any":`, grammar.More},
		{"~<q> ~", `{"q":" ~`, grammar.More},
		{"~<q> ~<", `{"q":" ~<`, grammar.More},
		{"~<p>~<t>v~</t>~</p>\n~<", `{"p":{"t":"v"}`, grammar.More},
		// Text that is never closed ends with the call.
		{"~<s>a|~</invoke>\n~</tool_call>", `{"s":"a`, grammar.Bad},
		{"~<i>7|~</invoke>~<invoke name=\"f\">", `{"i":`, grammar.Bad},
		{"~<p>~<t>v|~</invoke>~</tool_call>", `{"p":{"t":"v`, grammar.Bad},
		// What is not the syntax
		{"|x~<s>a~</s>~</invoke>", ``, grammar.Bad},
		{"|]<]minimax~<s>", ``, grammar.Bad},
		{"|~ <s>a~</s>", ``, grammar.Bad},
		{"|~<>a~</>~</invoke>", ``, grammar.Bad},
		{"|~<s\n>a~</s>", ``, grammar.Bad},
		{"|~<\">a~</s>", ``, grammar.Bad},
		{"|~<s<>a~</s>", ``, grammar.Bad},
		{"~<o>|~<k a=\"1\">v~</k>~</o>~</invoke>", `{"o":`, grammar.Bad},
		{"~<o>~<k>v~</k>|~</p>~</invoke>", `{"o":{"k":`, grammar.Bad},
		{"~<o>~<k>v~</k>|~</invoke>", `{"o":{"k":`, grammar.Bad},
		{"~<o>~<k>v~</k>\n|~</>", `{"o":{"k":`, grammar.Bad},
		{"~<p>~<t>v~</t> |~</oo>", `{"p":{"t":"v"`, grammar.Bad},
		{"~<o>~<k>{\"a\": 1}~</k>~<a>~<b>c~</b>~</a> |text", `{"o":{"k":"{\"a\": 1}","a":{"b":"c"}`, grammar.Bad},
		// What is given again
		{"~<s>a~</s>~<i>1~</i>|~<s>b~</s>~</invoke>", `{"s":"a","i":1`, grammar.Bad},
		{"~<a>1~</a>~<a>2~</a>|~</invoke>", `{"a":[1,2]}`, grammar.Done},
		{"~<a>1~</a>~<s>x~</s>|~<a>2~</a>~</invoke>", `{"a":"1","s":"x"`, grammar.Bad},
		{"~<q>1~</q>|~<q>2~</q>~</invoke>", `{"q":"1"`, grammar.Bad},
		{"~<files>~<path>a~</path>~</files>|~<files>~<path>b~</path>~</files>", `{"files":[{"path":"a"}]`, grammar.Bad},
		{"~<p>~<t>a~</t>|~<t>b~</t>~</p>~</invoke>", `{"p":{"t":"a"`, grammar.Bad},
		{"~<p>~<list>1~</list>~<list>2~</list>~<t>b~</t>|~<list>3~</list>~</p>", `{"p":{"list":[1,2],"t":"b"`, grammar.Bad},
		{"~<p>~<list>[1]~</list>|~<list>2~</list>", `{"p":{"list":[1]`, grammar.Bad},
		{"~<o>~<k>~<l>v~</l>~</k>|~<k>~<l>v~</l>~</k>", `{"o":{"k":{"l":"v"}`, grammar.Bad},
		// Limits
		{"~<" + long + ">a~</" + long + ">" + strings.Repeat(" ", 64) + "|~</invoke>", `{"` + long + `":"a"}`, grammar.Done},
		{"~<o>~<" + long + ">~<k>v~</k>~</" + long + ">~</o>|~</invoke>", `{"o":{"` + long + `":{"k":"v"}}}`, grammar.Done},
		{"|~<" + long + "n>a~</" + long + "n>~</invoke>", ``, grammar.Bad},
		{deep(64, "v") + "|~</invoke>", strings.Repeat(`{"k":`, 64) + `"v"` + strings.Repeat("}", 64), grammar.Done},
		{strings.Repeat("~<k>", 64) + "|~<k>v~</k>", strings.Repeat(`{"k":`, 64), grammar.Limit},
	} {
		t.Run(fmt.Sprintf("%.60q", c.in), func(t *testing.T) {
			taken, rest, cut := strings.Cut(ns(c.in), "|")
			if !cut && c.st != grammar.More {
				t.Fatal("no bar")
			}
			want := result{ns(c.json), len(taken), c.st}
			got := sameNested(t, nested(), nestedSchema, taken+rest, newRand(uint64(len(c.in))))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			d := nested()
			run(t, d, nestedSchema, taken+rest)
			if c.st != grammar.More {
				_, n, st := d.Append(nil, []byte(rest), true)
				require.Equal(t, c.st, st)
				require.Zero(t, n, "after the end it takes nothing")
			}
		})
	}
}

func TestNestedFields(t *testing.T) {
	// No prefix, another closing tag.
	d := codec.Nested{End: "</call>"}.NewDecoder()
	got := sameNested(t, d, nestedSchema, "<s>a < b, </i> </</s>\n<o><k>v</k></o></call>", newRand(1))
	require.Equal(t, result{`{"s":"a < b, </i> </","o":{"k":"v"}}`, 37, grammar.Done}, got)
	got = sameNested(t, d, nestedSchema, "<s>a</call> <x>", newRand(1))
	require.Equal(t, result{`{"s":"a`, 4, grammar.Bad}, got)
	// A prefix that overlaps itself
	d = codec.Nested{Prefix: "aaab"}.NewDecoder()
	got = sameNested(t, d, nestedSchema, "aaab<s>aaaaaab<aaaab</saaab</s>aaab</invoke>", newRand(1))
	require.Equal(t, result{`{"s":"aaaaaab<aaaab</s"}`, 31, grammar.Done}, got)
	// A limit on what is kept
	d = codec.Nested{Prefix: m3}.NewDecoder()
	d.(grammar.Holding).Hold(8)
	got = sameNested(t, d, nestedSchema, ns("~<i>12345678~</i>~<s>123456789~</s>~</invoke>"), newRand(1))
	require.Equal(t, `{"i":12345678,"s":"123456789"}`, got.JSON)
	got = sameNested(t, d, nestedSchema, ns("~<i>123456789~</i>~</invoke>"), newRand(1))
	require.Equal(t, result{`{"i":`, len(m3) + 3 + 8, grammar.Limit}, got)
	got = sameNested(t, d, nestedSchema, ns("~<i>1~</i>~~</i>~</invoke>"), newRand(1))
	require.Equal(t, result{`{"i":`, len(m3) + 3 + 8, grammar.Limit}, got)
	// Properties
	var b strings.Builder
	for i := range 1024 {
		fmt.Fprintf(&b, "~<k%d>~</k%d>", i, i)
	}
	got, _ = run(t, nested(), nil, ns(b.String()+"~</invoke>"))
	require.Equal(t, grammar.Done, got.Status)
	got, _ = run(t, nested(), nil, ns(b.String()+"~<k></k>~</invoke>"))
	require.Equal(t, grammar.Limit, got.Status)
	// A decoder is for one call after the other, and for none before Begin.
	d = nested()
	_, n, st := d.Append(nil, []byte(ns("~</invoke>")), true)
	require.Zero(t, n)
	require.Equal(t, grammar.Bad, st)
	for range 3 {
		run(t, d, nestedSchema, ns("~<p>~<files>~<path>cut"))
		got, _ = run(t, d, nestedSchema, ns("~<s>x~</s>~</invoke>"))
		require.Equal(t, `{"s":"x"}`, got.JSON)
	}
}

// TestNestedStreams checks that a string leaves with the chunk that brought it, also inside objects and arrays.
func TestNestedStreams(t *testing.T) {
	for _, before := range []string{
		"~<s>", "~<q>", "~<files>~<item>~<path>", "~<p>~<t>", "~<as>~<item>", "~<p>~<list>1~</list>~<list>2~</list>~<files>~<path>",
	} {
		d := nested()
		d.Begin(nestedSchema)
		out, n, _ := d.Append(nil, []byte(ns(before)), false)
		rest := ns(before)[n:]
		for _, chunk := range []string{"some ", "te", "xt]", "\n~", "~</x> "} {
			at := len(out)
			src := rest + ns(chunk)
			out, n, _ = d.Append(out, []byte(src), false)
			rest = src[n:]
			want := src
			if n < len(src) {
				want = src[:n] // what follows may begin a tag
				require.True(t, strings.HasPrefix(m3, src[n:]), src)
			}
			quoted := strings.ReplaceAll(strings.ReplaceAll(want, "\n", `\n`), `"`, `\"`)
			require.Equal(t, quoted, strings.TrimLeft(string(out[at:]), `"`), "%q in %q", chunk, before)
		}
	}
}

func TestNestedDoesNotAllocate(t *testing.T) {
	text := ns("~<s>" + strings.Repeat("text ] ", 100) + "~</s>\n~<p>~<t>" + strings.Repeat("a\"b\n", 50) + "~</t>~<x>12~</x>~</p>" +
		"~<files>~<item>~<path>p~</path>~</item>~</files>~</invoke>")
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	d, src, dst := nested(), []byte(text), make([]byte, 0, 2*len(text))
	st := grammar.More
	require.Zero(t, testing.AllocsPerRun(10, func() {
		d.Begin(nestedSchema)
		out, from := dst, 0
		for end := 4; ; end = min(end+4, len(src)) {
			var n int
			if out, n, st = d.Append(out, src[from:end], end == len(src)); st != grammar.More {
				return
			}
			from += n
		}
	}))
	require.Equal(t, grammar.Done, st)
}

// fragmentsM3 are the parts of random arguments.
var fragmentsM3 = []string{
	"~<s>", "~</s>", "~<i>", "~</i>", "~<o>", "~</o>", "~<p>", "~</p>", "~<t>", "~</t>",
	"~<list>", "~</list>", "~<item>", "~</item>",
	"~<files>", "~</files>", "~<path>", "~</path>", "~<any>", "~</any>", "~<q>", "~</q>",
	"~<a>", "~</a>", "~</invoke>", "~</tool_call>",
	"~", "~<", "~</", "]<]", "]", "<", ">", "/", "\n", " ", "\t\t",
	"text", "7", "[1]", "{\"k\":1}", "null", "\"", "\\", "é", "🗼", "\xff", "\x00",
	strings.Repeat(" ", 64), strings.Repeat("n", 128),
}

// TestNestedRandom decodes random arguments, most of them almost well-formed.
func TestNestedRandom(t *testing.T) {
	r := newRand(5)
	d := nested()
	ends := map[grammar.Status]int{}
	n := int(rounds(3000))
	for range n {
		var b strings.Builder
		var open []string
		for range r.IntN(25) {
			switch f := fragmentsM3[r.IntN(len(fragmentsM3))]; {
			case r.IntN(3) == 0 && len(open) > 0:
				b.WriteString("~</" + open[len(open)-1] + ">")
				open = open[:len(open)-1]
			case strings.HasPrefix(f, "~<") && !strings.HasPrefix(f, "~</") && len(f) > 2:
				open = append(open, f[2:len(f)-1])
				fallthrough
			case r.IntN(2) == 0:
				b.WriteString(f)
			}
		}
		for len(open) > 0 {
			b.WriteString("~</" + open[len(open)-1] + ">")
			open = open[:len(open)-1]
		}
		text := ns(b.String() + "~</invoke>")
		ends[sameNested(t, d, nestedSchema, text, r).Status]++
	}
	require.Greater(t, ends[grammar.Done], n/10)
	require.Greater(t, ends[grammar.Bad], n/10)
	require.Greater(t, ends[grammar.More], n/30)
}

// TestNestedRoundTrip writes random values the way the chat template does and reads them back.
func TestNestedRoundTrip(t *testing.T) {
	r := newRand(6)
	var value func(depth int) (schema, text string, v any)
	value = func(depth int) (schema, text string, v any) {
		k := r.IntN(8)
		if depth > 4 {
			k = r.IntN(5)
		}
		switch k {
		case 0, 1:
			s := []string{"", "a", " x\n", "~", "~<b>", "[1]", "007", "é🗼", "~</", "null", "]<]m"}[r.IntN(11)]
			return `{"type":"string"}`, s, ns(s)
		case 2:
			return `{"type":"integer"}`, "-12", -12.0
		case 3:
			return `{"type":"boolean"}`, "true", true
		case 4:
			return `{"type":["number","null"]}`, "2.5", 2.5
		case 5:
			schema, text, v = value(depth + 1)
			list := make([]any, r.IntN(4))
			for i := range list {
				list[i] = v
			}
			return `{"type":"array","items":` + schema + `}`, strings.Repeat("~<item>"+text+"~</item>", len(list)), list
		}
		m := map[string]any{}
		var props, b strings.Builder
		for i := range 1 + r.IntN(4) {
			key := fmt.Sprintf("k%d", i)
			schema, text, m[key] = value(depth + 1)
			fmt.Fprintf(&props, `,"%s":%s`, key, schema)
			b.WriteString("~<" + key + ">" + text + "~</" + key + ">" + []string{"", "\n"}[r.IntN(2)])
		}
		return `{"type":"object","properties":{` + props.String()[1:] + `}}`, b.String(), m
	}
	d := nested()
	for range rounds(500) {
		schema, text, want := value(0)
		for want == nil || !strings.HasPrefix(schema, `{"type":"object"`) {
			schema, text, want = value(0)
		}
		got := sameNested(t, d, args.Compile([]byte(schema)), ns(text+"~</invoke>"), r)
		require.Equal(t, grammar.Done, got.Status, text)
		var v any
		require.NoError(t, json.Unmarshal([]byte(got.JSON), &v))
		if diff := cmp.Diff(want, v); diff != "" {
			t.Fatalf("%s under %s (-want +got):\n%s", text, schema, diff)
		}
	}
}

func FuzzNested(f *testing.F) {
	for _, s := range []string{
		"~<s>Oslo~</s>\n~<i>7~</i>~</invoke>", "~<p>~<t>a~</t>~<list>1~</list>~<list>2~</list>~</p>~</invoke>",
		"~<files>~<item>~<path>a~</path>~</item>~</files>~</invoke>", "~<s>a~</s> b~</s>~</invoke>~</tool_call>", "~<o> ~<k>~</k>",
	} {
		f.Add(s, []byte(`{"properties":{"x":{}}}`), uint64(1))
		f.Add(s, []byte(nil), uint64(2))
	}
	f.Fuzz(func(t *testing.T, text string, schema []byte, seed uint64) {
		if len(text) > 1<<10 {
			return
		}
		s := nestedSchema
		if len(schema) > 0 {
			s = args.Compile(schema)
		}
		sameNested(t, nested(), s, ns(text), newRand(seed))
	})
}

func BenchmarkNested(b *testing.B) {
	for _, size := range []int{4, 64, 1 << 20} {
		b.Run(fmt.Sprintf("text=string/chunk=%d", size), func(b *testing.B) {
			benchDecode(b, nested(), ns("~<s>"+strings.Repeat("some text\n", 2000)+"~</s>~</invoke>"), size)
		})
	}
}

func ExampleNested() {
	schema := args.Compile([]byte(`{"properties":{"city":{"type":"string"},"days":{"items":{"type":"integer"}}}}`))
	d := codec.Nested{Prefix: "@@"}.NewDecoder()
	d.Begin(schema)
	rest := ""
	for _, chunk := range []string{"@@<city>San Fran", "cisco@@</ci", "ty>\n@@<days>", "@@<item>1@@</item>@@</da", "ys>\n@@</invoke>"} {
		src := rest + chunk
		out, n, st := d.Append(nil, []byte(src), false)
		fmt.Printf("%-32q %-19s %d %t\n", src, out, n, st == grammar.Done)
		rest = src[n:] // it is shown again
	}
	// Output:
	// "@@<city>San Fran"               {"city":"San Fran   16 false
	// "cisco@@</ci"                    cisco               5 false
	// "@@</city>\n@@<days>"            ","days":           18 false
	// "@@<item>1@@</item>@@</da"       [1                  18 false
	// "@@</days>\n@@</invoke>"         ]}                  10 true
}
