// SPDX-License-Identifier: Apache-2.0

package wordlevel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

func table(tb testing.TB, tokens ...string) *vocab.Table {
	tb.Helper()
	var b vocab.Builder
	for id, tok := range tokens {
		if err := b.Add(uint32(id), []byte(tok), true); err != nil {
			tb.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func Example() {
	var b vocab.Builder
	for id, tok := range []string{"[UNK]", "hello", "world"} {
		if err := b.Add(uint32(id), []byte(tok), true); err != nil {
			panic(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		panic(err)
	}
	m, err := New(v, Options{Unk: new(uint32(0))})
	if err != nil {
		panic(err)
	}
	var ids []uint32
	for _, word := range []string{"hello", "there", "world"} {
		ids = m.Append(ids, word, 0, len(word), nil)
	}
	fmt.Println(ids)
	// Output: [1 0 2]
}

func TestAppend(t *testing.T) {
	v := table(t, "[UNK]", "hello", "é")
	with, err := New(v, Options{Unk: new(uint32(0))})
	if err != nil {
		t.Fatal(err)
	}
	without, err := New(v, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		word          string
		with, without []uint32
	}{
		{"hello", []uint32{1}, []uint32{1}},
		{"é", []uint32{2}, []uint32{2}},
		{"hell", []uint32{0}, nil},
		{"hellooo", []uint32{0}, nil},
		{"\xff", []uint32{0}, nil},
		{"", nil, nil},
	} {
		s := "<" + c.word + ">"
		for m, want := range map[*Model][]uint32{with: c.with, without: c.without} {
			got, ends := m.AppendEnds(nil, nil, s, 1, 1+len(c.word), nil)
			if !slices.Equal(got, want) || len(ends) != len(got) || len(ends) > 0 && ends[0] != len(c.word) {
				t.Errorf("%q: %v to %v, want %v", c.word, got, ends, want)
			}
		}
	}
	if !with.Total() || without.Total() || !with.Reaches(0) || !with.Reaches(2) || with.Reaches(3) {
		t.Error("Total or Reaches is wrong")
	}
	ids := make([]uint32, 0, 4)
	if n := testing.AllocsPerRun(10, func() { ids = with.Append(ids[:0], "hello", 0, 5, nil) }); n > 0 {
		t.Errorf("Append allocates %v times", n)
	}
}

func TestNewErrors(t *testing.T) {
	if _, err := New(table(t, "a"), Options{Unk: new(uint32(1))}); err == nil || !strings.HasPrefix(err.Error(), "wordlevel: ") {
		t.Errorf("error %v", err)
	}
}
