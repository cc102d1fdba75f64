// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestBuilderErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		add  func(b *Builder) error
		want string
	}{
		{"large id", func(b *Builder) error { return b.Add(MaxID+1, []byte("x"), true) }, "above the limit"},
		{"id used twice", func(b *Builder) error {
			if err := b.Add(1, []byte("x"), true); err != nil {
				return err
			}
			return b.Add(1, []byte("y"), true)
		}, "appears twice"},
		{"empty token used twice", func(b *Builder) error {
			if err := b.Add(1, nil, true); err != nil {
				return err
			}
			return b.Add(1, nil, true)
		}, "appears twice"},
		{"equal tokens", func(b *Builder) error {
			for id := range uint32(2) {
				if err := b.Add(3*id, []byte("x"), true); err != nil {
					return err
				}
			}
			_, err := b.Build()
			return err
		}, "the same bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Builder
			if err := c.add(&b); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "vocab: ") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Ids may come in any order and leave gaps; equal tokens are allowed if one of them is hidden.
func TestTable(t *testing.T) {
	var b Builder
	b.Grow(3, 10)
	for _, x := range []struct {
		id     uint32
		tok    string
		lookup bool
	}{{7, "seven", true}, {2, "two", true}, {4, "seven", false}, {0, "", true}} {
		if err := b.Add(x.id, append(b.Scratch(), x.tok...), x.lookup); err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if v.Len() != 8 || v.Count() != 2 {
		t.Errorf("Len %d, Count %d", v.Len(), v.Count())
	}
	for id, want := range []string{"", "", "two", "", "seven", "", "", "seven", "", ""} {
		if got := string(v.Bytes(uint32(id))); got != want {
			t.Errorf("Bytes(%d) is %q, want %q", id, got, want)
		}
	}
	if v.Bytes(^uint32(0)) != nil {
		t.Error("bytes for an id beyond all")
	}
	for s, want := range map[string]int{"two": 2, "seven": 7, "": -1, "tw": -1, "twoo": -1} {
		if id, ok := v.Lookup(s); ok != (want >= 0) || ok && int(id) != want {
			t.Errorf("Lookup(%q) is %d, %t", s, id, ok)
		}
	}
	if again, err := b.Build(); err != nil || again.Len() != 0 {
		t.Errorf("the builder is not empty after Build: %d, %v", again.Len(), err)
	}
	if _, ok := new(Table).Lookup("x"); ok {
		t.Error("the zero Table finds something")
	}
}

// Random tables against a map.
func TestTableRandom(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		want := map[string]uint32{}
		var b Builder
		for _, id := range r.Perm(300)[:r.IntN(300)] {
			tok := make([]byte, 1+r.IntN(20))
			for k := range tok {
				tok[k] = "ab\x00"[r.IntN(3)]
			}
			if _, ok := want[string(tok)]; ok {
				continue
			}
			want[string(tok)] = uint32(id)
			if err := b.Add(uint32(id), tok, true); err != nil {
				t.Fatal(err)
			}
		}
		v, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if v.Count() != len(want) {
			t.Fatalf("seed %d: Count %d of %d", seed, v.Count(), len(want))
		}
		for s, id := range want {
			if got, ok := v.Lookup(s); !ok || got != id || string(v.Bytes(id)) != s {
				t.Fatalf("seed %d: %q is %d %t, want %d", seed, s, got, ok, id)
			}
			if got, ok := v.Lookup(s + "c"); ok {
				t.Fatalf("seed %d: found %d for a token that is not there", seed, got)
			}
		}
	}
}

func TestLookupAllocs(t *testing.T) {
	var b Builder
	if err := b.Add(0, []byte("a long token that needs more than one word"), true); err != nil {
		t.Fatal(err)
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := string(v.Bytes(0))
	if n := testing.AllocsPerRun(10, func() { v.Lookup(s) }); n > 0 {
		t.Errorf("Lookup allocates %v times", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	var x Builder
	var toks []string
	for id := range uint32(100000) {
		tok := strings.Repeat("a", int(id%7)) + string(rune(0x10000+id))
		toks = append(toks, tok)
		if err := x.Add(id, []byte(tok), true); err != nil {
			b.Fatal(err)
		}
	}
	v, err := x.Build()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		v.Lookup(toks[i*7919%len(toks)])
	}
}
