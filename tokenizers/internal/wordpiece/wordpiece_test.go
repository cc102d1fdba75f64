// SPDX-License-Identifier: Apache-2.0

package wordpiece

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

func toy(tb testing.TB, prefix string, maxChars int, tokens ...string) (*Model, map[string]uint32) {
	tb.Helper()
	id := map[string]uint32{}
	var b vocab.Builder
	for _, s := range append([]string{"[UNK]"}, tokens...) {
		if _, ok := id[s]; ok || s == "" {
			continue
		}
		id[s] = uint32(len(id))
		if err := b.Add(id[s], []byte(s), true); err != nil {
			tb.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := New(v, Options{Unk: 0, Prefix: prefix, MaxChars: maxChars})
	if err != nil {
		tb.Fatal(err)
	}
	return m, id
}

// naive is the definition, as the reference has it.
func naive(id map[string]uint32, prefix string, maxChars int, w string) (ids []uint32, ends []int) {
	unknown := func() ([]uint32, []int) { return []uint32{id["[UNK]"]}, []int{len(w)} }
	if utf8.RuneCountInString(w) > maxChars {
		return unknown()
	}
	for start := 0; start < len(w); {
		end := len(w)
		for ; end > start; end-- {
			s := w[start:end]
			if start > 0 {
				s = prefix + s
			}
			if got, ok := id[s]; ok {
				ids, ends = append(ids, got), append(ends, end)
				break
			}
		}
		if end == start {
			return unknown()
		}
		start = end
	}
	return ids, ends
}

func TestAppend(t *testing.T) {
	m, _ := toy(t, "##", 8, "un", "##aff", "##able", "##a", "a", "é", "##é", "##", "##x")
	for _, c := range []struct{ word, want string }{
		{"unaffable", "[UNK] 9"}, // nine characters
		{"unaffé", "un 2, ##aff 5, ##é 7"},
		{"unab", "[UNK] 4"},
		{"a", "a 1"},
		{"##x", "##x 3"}, // a token as it is spelled
		{"éééééééé", "é 2, ##é 4, ##é 6, ##é 8, ##é 10, ##é 12, ##é 14, ##é 16"},
		{"ééééééééé", "[UNK] 18"},
		{"a\xc3", "[UNK] 2"},
		{"", ""},
	} {
		var st State
		var got []string
		ids, ends := m.AppendEnds(nil, nil, c.word, 0, len(c.word), &st)
		for k, id := range ids {
			got = append(got, fmt.Sprintf("%s %d", m.vocab.Bytes(id), ends[k]))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q: got %s, want %s", c.word, s, c.want)
		}
	}
}

const letters = "aab\u00e9\u4e2d"

func randomWord(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteRune([]rune(letters)[r.IntN(5)])
	}
	return b.String()
}

func randomModel(tb testing.TB, seed uint64) (m *Model, id map[string]uint32, prefix string, maxChars int) {
	r := rand.New(rand.NewPCG(seed, 1))
	prefix, maxChars = []string{"##", "##", "a", ""}[r.IntN(4)], []int{0, 5, 100}[r.IntN(3)]
	var tokens []string
	for _, c := range letters {
		if r.IntN(6) > 0 {
			tokens = append(tokens, string(c), prefix+string(c))
		}
	}
	for range r.IntN(30) {
		tokens = append(tokens, []string{"", prefix}[r.IntN(2)]+randomWord(r, 1+r.IntN(6)))
	}
	m, id = toy(tb, prefix, maxChars, tokens...)
	return m, id, prefix, maxChars
}

func TestRandom(t *testing.T) {
	var st State // of all models, one after the other
	seeds := uint64(200)
	if testing.Short() {
		seeds /= 10
	}
	for seed := range seeds {
		m, id, prefix, maxChars := randomModel(t, seed)
		r := rand.New(rand.NewPCG(seed, 2))
		for range 40 {
			w := randomWord(r, 1+r.IntN(12))
			if r.IntN(20) == 0 {
				w += "z"
			}
			want, wantEnds := naive(id, prefix, maxChars, w)
			pad := "<" + w + "> and something after it"
			for range 2 { // the second time from the cache
				if got := m.Append(nil, pad, 1, 1+len(w), &st); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %q is %v, want %v", seed, w, got, want)
				}
			}
			got, ends := m.AppendEnds([]uint32{9}, nil, pad, 1, 1+len(w), &st)
			if !slices.Equal(got[1:], want) || !slices.Equal(ends, wantEnds) {
				t.Fatalf("seed %d: %q is %v to %v, want %v to %v", seed, w, got, ends, want, wantEnds)
			}
			for _, id := range want {
				if !m.Reaches(id) {
					t.Fatalf("seed %d: Reaches denies %d", seed, id)
				}
			}
		}
	}
}

func TestNewErrors(t *testing.T) {
	var b vocab.Builder
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(v, Options{}); err == nil || !strings.HasPrefix(err.Error(), "wordpiece: ") {
		t.Errorf("error %v for an empty vocabulary", err)
	}
}

// Each start is followed by at most the longest token, for any word.
func TestLongWord(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	m, _ := toy(t, "##", 1<<30, "a", "##a", strings.Repeat("a", 50)+"b", "##"+strings.Repeat("a", 50)+"b")
	w := strings.Repeat("a", 1<<20)
	if got := m.Append(nil, w, 0, len(w), new(State)); len(got) != len(w) {
		t.Errorf("%d ids", len(got))
	}
}

func TestAllocs(t *testing.T) {
	m, _ := toy(t, "##", 100, "a", "##a")
	s := "aaa aaaaa aaaaaaaaaaaaaaaaaaaaaaaa"
	var st State
	var ids []uint32
	run := func() {
		ids = ids[:0]
		for i, j := range map[int]int{0: 3, 4: 9, 10: len(s)} {
			ids = m.Append(ids, s, i, j, &st)
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n > 0 {
		t.Errorf("Append allocates %v times", n)
	}
	st.Reset()
	if got := m.Append(nil, s, 0, 3, &st); len(got) != 3 {
		t.Errorf("after Reset: %v", got)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "aabab\xff")
	f.Fuzz(func(t *testing.T, seed uint64, w string) {
		if w == "" || len(w) > 300 {
			t.Skip()
		}
		m, id, prefix, maxChars := randomModel(t, seed%64)
		want, wantEnds := naive(id, prefix, maxChars, w)
		got, ends := m.AppendEnds(nil, nil, w, 0, len(w), new(State))
		if !slices.Equal(got, want) || !slices.Equal(ends, wantEnds) {
			t.Errorf("%q is %v to %v, want %v to %v", w, got, ends, want, wantEnds)
		}
	})
}
