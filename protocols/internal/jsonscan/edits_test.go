// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func edited(t *testing.T, body string, change func(*Edits, Value)) string {
	t.Helper()
	d, err := Scan([]byte(body), testLimits)
	require.NoError(t, err)
	e := NewEdits(d)
	change(e, d.Root())
	return string(e.Append(nil))
}

func at(v Value, i int) Value {
	c := v.First()
	for ; i > 0; i-- {
		c = v.Next(c)
	}
	return c
}

func TestEdits(t *testing.T) {
	del := func(ids ...int) func(*Edits, Value) {
		return func(e *Edits, v Value) {
			for _, i := range ids {
				e.Delete(v, at(v, i))
			}
		}
	}
	const list = `[ 1 , 2,  3 ]`
	tests := []struct {
		name, body string
		change     func(*Edits, Value)
		want       string
	}{
		{"delete first", list, del(0), `[ 2,  3 ]`},
		{"delete middle", list, del(1), `[ 1,  3 ]`},
		{"delete last", list, del(2), `[ 1 , 2 ]`},
		{"delete first two", list, del(0, 1), `[ 3 ]`},
		{"delete last two", list, del(2, 1), `[ 1 ]`},
		{"delete ends", list, del(0, 2), `[ 2 ]`},
		{"delete all", list, del(0, 1, 2), `[  ]`},
		{"delete member", `{"a":1 , "b" : 2}`, del(0), `{"b" : 2}`},
		{"delete last member", `{"a":1 , "b" : 2}`, del(1), `{"a":1}`},
		{"insert first", list, func(e *Edits, v Value) { e.Insert(v, at(v, 0), []byte("0")) }, `[ 0,1 , 2,  3 ]`},
		{"insert last", list, func(e *Edits, v Value) { e.Insert(v, Value{}, []byte("4")) }, `[ 1 , 2,  3,4 ]`},
		{"insert into nothing", `{"a":[ ]}`, func(e *Edits, v Value) {
			e.Insert(v.Get("a"), Value{}, []byte("1"))
			e.Insert(v.Get("a"), Value{}, []byte("2"))
		}, `{"a":[1,2 ]}`},
		{"replace all by others", list, func(e *Edits, v Value) {
			del(0, 1, 2)(e, v)
			e.Insert(v, at(v, 1), []byte("8"))
			e.Insert(v, Value{}, []byte("9"))
		}, `[ 8,9 ]`},
		{"insert and delete at one position", list, func(e *Edits, v Value) {
			e.Insert(v, at(v, 1), []byte("9"))
			e.Delete(v, at(v, 1))
		}, `[ 1,9,  3 ]`},
		{"inside a deleted value", `{"a":[1,2],"b":3}`, func(e *Edits, v Value) {
			e.Replace(at(v.Get("a"), 0), []byte("9"))
			e.Delete(v.Get("a"), at(v.Get("a"), 1))
			e.Replace(v.Get("a"), []byte(`"x"`))
		}, `{"a":"x","b":3}`},
		{"replace takes precedence over edits inside", `[[1]]`, func(e *Edits, v Value) {
			e.Replace(at(v, 0), []byte("0"))
			e.Insert(at(v, 0), Value{}, []byte("9"))
		}, `[0]`},
		{"insert before a replaced value", list, func(e *Edits, v Value) {
			e.Replace(at(v, 1), []byte("20"))
			e.Insert(v, at(v, 1), []byte("15"))
		}, `[ 1,15 , 20,  3 ]`},
		{"set members", `{"a":1}`, func(e *Edits, v Value) {
			e.SetMember(v, "a", []byte("2"))
			e.SetMember(v, "b", []byte("3"))
			e.SetMember(v, "b", []byte("4"))
			e.SetMember(v, "c", []byte("5"))
			e.DeleteMember(v, "c")
			e.DeleteMember(v, "zz")
		}, `{"a":2,"b":4}`},
		{"set a member that was deleted", `{"a":1,"b":2}`, func(e *Edits, v Value) {
			e.DeleteMember(v, "a")
			e.SetMember(v, "a", []byte("3"))
		}, `{"a":3,"b":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, edited(t, tt.body, tt.change))
		})
	}
}

// tree is a JSON value with its expected state after edits.
type tree struct {
	key      string
	scalar   string
	list     []*tree // arrays and objects
	obj      bool
	gone     bool
	replaced string
	before   map[int][]string // texts to insert before a child; -1: at the end
}

func genTree(t *rapid.T, depth int) *tree {
	n := rapid.IntRange(0, 5).Draw(t, "n")
	if depth == 0 || n == 5 {
		return &tree{scalar: rapid.SampledFrom([]string{"1", `"a,]"`, "null", "-0.50", `"\u00e9"`, "true"}).Draw(t, "scalar")}
	}
	x := &tree{obj: rapid.Bool().Draw(t, "obj"), before: map[int][]string{}, list: []*tree{}}
	for i := range n {
		c := genTree(t, depth-1)
		c.key = fmt.Sprintf("k%d", i)
		x.list = append(x.list, c)
	}
	return x
}

// print writes the tree as it is before the edits, with irregular white space.
func (x *tree) print(t *rapid.T, b *strings.Builder) {
	blank := func() { b.WriteString(rapid.SampledFrom([]string{"", "", " ", "\n", "\t "}).Draw(t, "ws")) }
	if x.list == nil {
		b.WriteString(x.scalar)
		return
	}
	b.WriteByte("[{"[btoi(x.obj)])
	blank()
	for i, c := range x.list {
		if i > 0 {
			b.WriteByte(',')
			blank()
		}
		if x.obj {
			fmt.Fprintf(b, "%q", c.key)
			blank()
			b.WriteByte(':')
			blank()
		}
		c.print(t, b)
		blank()
	}
	b.WriteByte("]}"[btoi(x.obj)])
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// want writes the tree as it must be after the edits, without white space.
func (x *tree) want(b *strings.Builder) {
	if x.replaced != "" {
		b.WriteString(x.replaced)
		return
	}
	if x.list == nil {
		b.WriteString(x.scalar)
		return
	}
	b.WriteByte("[{"[btoi(x.obj)])
	n := 0
	put := func(s string) {
		if n++; n > 1 {
			b.WriteByte(',')
		}
		b.WriteString(s)
	}
	for i, c := range x.list {
		for _, s := range x.before[i] {
			put(s)
		}
		if !c.gone {
			put("")
			if x.obj {
				fmt.Fprintf(b, "%q:", c.key)
			}
			c.want(b)
		}
	}
	for _, s := range x.before[-1] {
		put(s)
	}
	b.WriteByte("]}"[btoi(x.obj)])
}

// edit makes random edits of a value and applies the same edits to its tree.
func (x *tree) edit(t *rapid.T, e *Edits, v Value, fresh *int) {
	if x.list == nil {
		return
	}
	insert := func(where int, before Value) {
		*fresh++
		s := fmt.Sprint(*fresh)
		if x.obj {
			s = fmt.Sprintf("%q:%d", "n"+s, *fresh)
		}
		x.before[where] = append(x.before[where], s)
		e.Insert(v, before, []byte(s))
	}
	c := v.First()
	for i, child := range x.list {
		switch rapid.IntRange(0, 7).Draw(t, "op") {
		case 0:
			child.gone = true
			e.Delete(v, c)
		case 1:
			child.replaced = `"new"`
			e.Replace(c, []byte(`"new"`))
		case 2:
			insert(i, c)
			insert(i, c)
		}
		child.edit(t, e, c, fresh)
		c = v.Next(c)
	}
	if rapid.IntRange(0, 4).Draw(t, "end") == 0 {
		insert(-1, Value{})
	}
}

func TestEditsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := genTree(t, 3)
		var b, w strings.Builder
		x.print(t, &b)
		d, err := Scan([]byte(b.String()), testLimits)
		if err != nil {
			t.Fatal(err)
		}
		e, fresh := NewEdits(d), 0
		x.edit(t, e, d.Root(), &fresh)
		x.want(&w)
		out := e.Append(nil)
		var got bytes.Buffer
		if err := json.Compact(&got, out); err != nil {
			t.Fatalf("%v in %s from %s", err, out, b.String())
		}
		if got.String() != w.String() {
			t.Fatalf("\n got %s\nwant %s\nfrom %s", out, w.String(), b.String())
		}
	})
}
