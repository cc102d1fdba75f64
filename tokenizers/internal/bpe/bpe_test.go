// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/words"
)

// toy returns a model over all bytes and the tokens that the merges make, in order.
func toy(tb testing.TB, opt Options, merges ...[2]string) *Model {
	tb.Helper()
	var b vocab.Builder
	id := map[string]uint32{}
	add := func(s string) {
		if _, ok := id[s]; !ok {
			id[s] = uint32(len(id))
			if err := b.Add(id[s], []byte(s), true); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for c := range 256 {
		add(string([]byte{byte(c)}))
	}
	var list []Merge
	for _, m := range merges {
		add(m[0] + m[1])
		list = append(list, Merge{id[m[0]], id[m[1]], id[m[0]+m[1]]})
	}
	v, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := New(v, list, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// TestShorts looks for all words of up to five letters in the table of short words.
func TestShorts(t *testing.T) {
	for seed := range uint64(20) {
		m := randomModel(t, seed)
		var walk func(w string)
		walk = func(w string) {
			if len(w) >= 2 {
				lo, hi := words.Key(w, 0, len(w))
				want := noID
				if ids := naive(m, w); len(ids) == 1 {
					want = ids[0]
				}
				if got := m.shorts.get(lo, hi); got != want {
					t.Fatalf("seed %d: %q is %d, want %d", seed, w, int32(got), int32(want))
				}
			}
			if len(w) < 5 {
				for _, c := range "abcd" {
					walk(w + string(c))
				}
			}
		}
		walk("")
	}
}

// TestJoin compares the table of merges with a map, with left tokens of all numbers of merges and pairs that
// appear twice.
func TestJoin(t *testing.T) {
	const tokens = 3000
	var b vocab.Builder
	for id := range uint32(tokens) {
		if err := b.Add(id, []byte{byte(id), byte(id >> 8)}, true); err != nil {
			t.Fatal(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 7))
	var list []Merge
	for a := range uint32(60) {
		n := int(a)
		if a >= 40 {
			n = 100 << (a % 5)
		}
		for range n {
			g := Merge{A: a * 40, B: r.Uint32N(tokens), To: r.Uint32N(tokens)}
			if a%2 == 0 {
				g.B = tokens - 1 - uint32(len(list))%uint32(n)/2 // neighbours, each twice
			}
			list = append(list, g)
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	want := map[[2]uint32]joint{}
	for rank, g := range list {
		want[[2]uint32{g.A, g.B}] = joint(rank)<<idBits | joint(g.To)
	}
	var m merges
	if err := m.init(v, list); err != nil {
		t.Fatal(err)
	}
	for a := uint32(0); a < tokens; a += 20 {
		for b := range uint32(tokens) {
			w, ok := want[[2]uint32{a, b}]
			if !ok {
				w = noMerge
			}
			if got := m.join(a, b); got != w {
				t.Fatalf("join(%d, %d) = %x, want %x", a, b, got, w)
			}
		}
	}
}

// naive is the definition: the merge of lowest rank, at equal rank the leftmost, until none applies.
func naive(m *Model, w string) []uint32 {
	var ids []uint32
	for i := range len(w) {
		ids = append(ids, m.byteID[w[i]])
	}
	for {
		best, at := noMerge, -1
		for i := 1; i < len(ids); i++ {
			if r := m.join(ids[i-1], ids[i]); r < best {
				best, at = r, i-1
			}
		}
		if at < 0 {
			return ids
		}
		ids[at] = best.to()
		ids = slices.Delete(ids, at+1, at+2)
	}
}

// randomModel has merges among few letters, so that words collide in every way, with several ways to make
// one token.
func randomModel(tb testing.TB, seed uint64) *Model {
	r := rand.New(rand.NewPCG(seed, 1))
	have := []string{"a", "b", "c"}
	var merges [][2]string
	for range 40 {
		x, y := have[r.IntN(len(have))], have[r.IntN(len(have))]
		if len(x)+len(y) <= 9 {
			merges = append(merges, [2]string{x, y})
			have = append(have, x+y)
		}
	}
	return toy(tb, Options{}, merges...)
}

func randomWord(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "aaabbc"[r.IntN(6)]
	}
	return string(b)
}

func TestMergeLoops(t *testing.T) {
	for seed := range testsize.Pick[uint64](15, 40, 60) {
		m := randomModel(t, seed)
		r := rand.New(rand.NewPCG(seed, 2))
		var st State
		for range 60 {
			w := randomWord(r, 1+r.IntN(maxScan))
			want := naive(m, w)
			if got := m.mergeScan(nil, w, new(State)); !slices.Equal(got, want) {
				t.Fatalf("seed %d: scan of %q is %v, want %v", seed, w, got, want)
			}
			if got := m.mergeLong(nil, w, &st); !slices.Equal(got, want) {
				t.Fatalf("seed %d: queue on %q is %v, want %v", seed, w, got, want)
			}
			for range 2 { // the second time from the cache
				if got := m.Append(nil, w, 0, len(w), &st); !slices.Equal(got, want) {
					t.Fatalf("seed %d: Append of %q is %v, want %v", seed, w, got, want)
				}
			}
		}
		w := randomWord(r, 700)
		if got := m.mergeLong(nil, w, &st); !slices.Equal(got, naive(m, w)) {
			t.Fatalf("seed %d: queue differs on a long word", seed)
		}
	}
}

func TestAppend(t *testing.T) {
	merges := [][2]string{{"a", "b"}, {"b", "c"}, {"ab", "c"}, {"x", "y"}, {"bc", "d"}}
	for _, c := range []struct {
		name, word string
		ignore     bool
		want       []string
	}{
		{"one byte", "z", false, []string{"z"}},
		{"lowest rank first", "abc", false, []string{"abc"}},
		{"leftmost at equal rank", "ababab", false, []string{"ab", "ab", "ab"}},
		{"token out of reach", "bcd", false, []string{"bcd"}},
		{"merges go against a token", "abcd", false, []string{"abc", "d"}},
		{"invalid bytes", "\xff\xfe", false, []string{"\xff", "\xfe"}},
		{"whole word", "bcd", true, []string{"bcd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := toy(t, Options{IgnoreMerges: c.ignore}, merges...)
			var st State
			pad := "<" + c.word + "> and something after it"
			var got []string
			for _, id := range m.Append(nil, pad, 1, 1+len(c.word), &st) {
				got = append(got, string(m.vocab.Bytes(id)))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The text around a word, and the previous content of its cache line, have no influence.
func TestAppendInside(t *testing.T) {
	for seed := range uint64(8) {
		m := randomModel(t, seed)
		r := rand.New(rand.NewPCG(seed, 3))
		var words []string
		for n := 1; n <= 40; n++ {
			for range 3 {
				words = append(words, randomWord(r, n))
			}
			words = append(words, words[len(words)-1][:n-1]+"\x00") // no letter, but a byte of the key
		}
		var st State
		for range testsize.Pick(400, 4000, 4000) {
			w := words[r.IntN(len(words))]
			before, after := randomWord(r, r.IntN(3)), randomWord(r, r.IntN(40))
			got := m.Append(nil, before+w+after, len(before), len(before)+len(w), &st)
			if want := naive(m, w); !slices.Equal(got, want) {
				t.Fatalf("seed %d: Append of %q before %q is %v, want %v", seed, w, after, got, want)
			}
		}
	}
}

// AppendWords gives what Append gives for one word after the other, wherever the text ends and whatever is cached.
func TestAppendWords(t *testing.T) {
	for seed := range uint64(8) {
		m := randomModel(t, seed)
		r := rand.New(rand.NewPCG(seed, 4))
		var st State
		for range testsize.Pick(100, 1000, 4000) {
			s := randomWord(r, r.IntN(3))
			from := len(s)
			var want []uint32
			var ends []int
			for range r.IntN(2*Batch + 10) {
				w := randomWord(r, 1+r.IntN(3)+r.IntN(2)*r.IntN(5)+r.IntN(40)/39*r.IntN(80))
				s += w
				ends = append(ends, len(s))
				want = append(want, naive(m, w)...)
			}
			s += randomWord(r, r.IntN(20))
			if r.IntN(20) == 0 {
				st.Reset()
			}
			// The ids follow others, with little room.
			got := m.AppendWords(make([]uint32, 1, 1+r.IntN(200)), s, from, ends, &st)
			if !slices.Equal(got[1:], want) {
				t.Fatalf("seed %d: %q cut from %d at %v is %v, want %v", seed, s, from, ends, got[1:], want)
			}
		}
	}
}

// TestBatchFinds checks that a batch finds all words of the previous batch in the cache, including words of one byte.
func TestBatchFinds(t *testing.T) {
	m := randomModel(t, 1)
	var st State
	const s = "ab a\nb\tc cab\n"
	ends := []int{2, 3, 4, 5, 6, 7, 8, 9, 12, 13}
	for round := range 2 {
		if got, want := m.AppendWords(nil, s, 0, ends, &st), naiveWords(m, s, ends); !slices.Equal(got, want) {
			t.Fatalf("got %d, want %d", got, want)
		}
		st.batch.keys(s, 0, ends)
		if _, missing := st.batch.find((*[words.Size]words.Entry)(st.words.Entries), len(ends)); missing > 0 {
			t.Errorf("round %d: %d of %d words are not in the cache", round, missing, len(ends))
		}
	}
}

// naiveWords returns the ids of the words of s with the given ends.
func naiveWords(m *Model, s string, ends []int) (ids []uint32) {
	at := 0
	for _, end := range ends {
		ids = append(ids, naive(m, s[at:end])...)
		at = end
	}
	return ids
}

// With IgnoreMerges a token wins even if merges cannot make it.
func TestIgnoreMerges(t *testing.T) {
	merges := [][2]string{{"a", "b"}, {"b", "c"}, {"a", "bc"}}
	for _, ignore := range []bool{false, true} {
		m := toy(t, Options{IgnoreMerges: ignore}, merges...)
		var st State
		got := m.Append(nil, "abc", 0, 3, &st)
		if (len(got) == 1) != ignore {
			t.Errorf("IgnoreMerges %t: %v", ignore, got)
		}
	}
}

// A State may serve several models; its cache must not leak from one to the other.
func TestStateOfTwoModels(t *testing.T) {
	a, b := toy(t, Options{}, [2]string{"a", "b"}), toy(t, Options{}, [2]string{"b", "c"})
	var st State
	for range 3 {
		if got := a.Append(nil, "abc", 0, 3, &st); !slices.Equal(got, naive(a, "abc")) {
			t.Fatal("model a:", got)
		}
		if got := b.Append(nil, "abc", 0, 3, &st); !slices.Equal(got, naive(b, "abc")) {
			t.Fatal("model b:", got)
		}
	}
}

// A megabyte without a cut point takes well under a second; with quadratic cost it would take hours.
func TestLongWords(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	m := toy(t, Options{}, [2]string{"a", "a"}, [2]string{"aa", "aa"}, [2]string{"aaaa", "aa"}, [2]string{"=", "="})
	var st State
	for _, w := range []string{strings.Repeat("a", 1<<20+1), strings.Repeat("=", 1<<20), strings.Repeat("ab=", 1<<18)} {
		n := 0
		for _, id := range m.Append(nil, w, 0, len(w), &st) {
			n += len(m.vocab.Bytes(id))
		}
		if n != len(w) {
			t.Errorf("%d bytes of %d", n, len(w))
		}
	}
}

func TestLimits(t *testing.T) {
	var b vocab.Builder
	if err := b.Add(7, []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(v, nil, Options{}); err == nil {
		t.Error("no error for a vocabulary without bytes")
	}
	full := toy(t, Options{})
	if _, err := New(full.vocab, []Merge{{'a', 'b', 256}}, Options{}); err == nil {
		t.Error("no error for a merge that makes an id outside the vocabulary")
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "abcabcaab")
	f.Fuzz(func(t *testing.T, seed uint64, w string) {
		if w == "" || len(w) > 2000 {
			t.Skip()
		}
		m := randomModel(t, seed%64)
		var st State
		got := m.Append(nil, w, 0, len(w), &st)
		if !slices.Equal(got, naive(m, w)) {
			t.Errorf("%q: %v, want %v", w, got, naive(m, w))
		}
		// As words of up to 16 bytes.
		var ends []int
		got = got[:0]
		for i, n := 0, 0; i < len(w); i += n {
			n = min(1+int(w[i]&15), len(w)-i)
			ends = append(ends, i+n)
			got = append(got, naive(m, w[i:i+n])...)
		}
		if ids := m.AppendWords(nil, w, 0, ends, &st); !slices.Equal(ids, got) {
			t.Errorf("%q cut at %v: %v, want %v", w, ends, ids, got)
		}
	})
}

func BenchmarkLongWord(b *testing.B) {
	m := toy(b, Options{}, [2]string{"a", "a"}, [2]string{"aa", "aa"}, [2]string{"aaaa", "aaaa"})
	for _, n := range []int{64, 1024, 1 << 20} {
		w := strings.Repeat("a", n)
		b.Run("bytes="+[]string{"64", "1024", "1M"}[min(n/1024, 2)], func(b *testing.B) {
			var st State
			var dst []uint32
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				dst = m.long(dst[:0], w, &st)
			}
		})
	}
}

// With gaps a model encodes words without them as one that has all bytes.
func TestGaps(t *testing.T) {
	whole := toy(t, Options{}, [2]string{"a", "b"}, [2]string{"ab", "c"}, [2]string{"z", "a"})
	var b vocab.Builder
	for id := range uint32(whole.vocab.Len()) {
		if tok := whole.vocab.Bytes(id); tok[0] != 'z' {
			if err := b.Add(id, tok, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	merges := []Merge{{'a', 'b', 256}, {256, 'c', 257}}
	if _, err := New(v, merges, Options{}); err == nil {
		t.Error("a byte without a token is accepted")
	}
	m, err := New(v, merges, Options{Gaps: true})
	if err != nil {
		t.Fatal(err)
	}
	var st State
	for _, w := range []string{"a", "abc", "cab", "abcabcabxyw"} {
		if got, want := m.Append(nil, w, 0, len(w), &st), naive(whole, w); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", w, got, want)
		}
	}
	if !m.Lacks('z') || m.Lacks('a') || whole.Lacks('z') {
		t.Error("the wrong bytes are missing")
	}
}
