// SPDX-License-Identifier: Apache-2.0

package unigram

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

type piece struct {
	tok   string
	score float64
}

// toy returns a model of a list as listed in a file: of equal tokens the last counts.
func toy(tb testing.TB, opt Options, list []piece) *Model {
	tb.Helper()
	at := map[string]int{}
	for id, p := range list {
		at[p.tok] = id
	}
	var b vocab.Builder
	var scores []float64
	for id, p := range list {
		if err := b.Add(uint32(id), []byte(p.tok), at[p.tok] == id); err != nil {
			tb.Fatal(err)
		}
		scores = append(scores, p.score)
	}
	v, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := New(v, scores, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// naive is the definition, as the reference has it, on maps.
func naive(opt Options, list []piece, w string) (ids []uint32, ends []int) {
	at := map[string]int{}
	worst, longest := math.Inf(1), 0
	for id, p := range list {
		at[p.tok] = id
		worst = min(worst, p.score)
		longest = max(longest, len(p.tok))
	}
	type node struct {
		id, from int
		score    float64
	}
	best := map[int]node{}
	offer := func(to int, n node) {
		if old, ok := best[to]; !ok || n.score > old.score {
			best[to] = n
		}
	}
	for i := 0; i < len(w); {
		_, size := utf8.DecodeRuneInString(w[i:])
		single := false
		for j := i + 1; j <= min(len(w), i+longest); j++ {
			if id, ok := at[w[i:j]]; ok {
				offer(j, node{id, i, list[id].score + best[i].score})
				single = single || j == i+size
			}
		}
		if !single {
			offer(i+size, node{int(opt.Unk), i, worst - 10 + best[i].score})
		}
		i += size
	}
	var pieces []string
	unknown := ""
	for j := len(w); j > 0; j = best[j].from {
		s := w[best[j].from:j]
		if best[j].id == int(opt.Unk) {
			unknown = s + unknown
			continue
		}
		if unknown != "" {
			pieces, unknown = append(pieces, unknown), ""
		}
		pieces = append(pieces, s)
	}
	if unknown != "" {
		pieces = append(pieces, unknown)
	}
	slices.Reverse(pieces)
	end := 0
	for _, s := range pieces {
		end += len(s)
		if id, ok := at[s]; ok {
			ids, ends = append(ids, uint32(id)), append(ends, end)
			continue
		}
		var spelled []uint32
		for _, c := range []byte(s) {
			if id, ok := at[fmt.Sprintf("<0x%02X>", c)]; ok && opt.ByteFallback {
				spelled = append(spelled, uint32(id))
			}
		}
		if len(spelled) != len(s) {
			spelled = []uint32{opt.Unk}
		}
		for _, id := range spelled {
			ids, ends = append(ids, id), append(ends, end)
		}
	}
	return ids, ends
}

func TestAppend(t *testing.T) {
	// The vocabulary of the reference's documentation of Unigram::encode.
	list := []piece{{"<unk>", 0}, {"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"cd", 1}, {"ab", 2}, {"abc", 5}, {"abcd", 10}}
	spelled := append(slices.Clone(list), piece{"<0xCE>", 0}, piece{"<0xA9>", 0})
	for _, c := range []struct {
		name string
		opt  Options
		list []piece
		word string
		want string
	}{
		{"best path", Options{}, list, "abcdacd", "abcd 4, a 5, cd 7"},
		{"fused", Options{}, list, "abcdacdxx", "abcd 4, a 5, cd 7, <unk> 9"},
		{"invalid", Options{}, list, "a\xffx", "a 1, <unk> 3"},
		{"bytes share the piece's end", Options{ByteFallback: true}, spelled, "aΩΩb", "a 1, <0xCE> 5, <0xA9> 5, <0xCE> 5, <0xA9> 5, b 6"},
		{"not all bytes", Options{ByteFallback: true}, spelled, "aΩz", "a 1, <unk> 4"},
		{"unknown token spelled out", Options{}, list, "a<unk>z", "a 1, <unk> 7"},
		// Unknown characters score more than the token: 90 + 90 > 100. Their text is a token after all.
		{"fused to a token", Options{}, []piece{{"<unk>", 110}, {"a", 110}, {"zz", 100}}, "azz", "a 1, zz 3"},
		{"first of equal paths", Options{}, []piece{{"<unk>", -9}, {"a", -1}, {"aa", -2}}, "aa", "aa 2"},
		{"first of equal paths, longer", Options{}, []piece{{"<unk>", -9}, {"a", -1}, {"aa", -2}}, "aaa", "a 1, aa 3"},
		{"later of equal tokens", Options{}, []piece{{"<unk>", -9}, {"a", -1}, {"aa", -1}, {"aa", -20}}, "aa", "a 1, a 2"},
		{"empty", Options{}, list, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := toy(t, c.opt, c.list)
			var st State
			var got []string
			ids, ends := m.AppendEnds(nil, nil, c.word, 0, len(c.word), &st)
			for k, id := range ids {
				got = append(got, fmt.Sprintf("%s %d", c.list[id].tok, ends[k]))
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

var letters = []string{"a", "b", "é", "中"}

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		if r.IntN(12) == 0 {
			b.WriteString([]string{"z", "Ω", "\xff", "<unk>", "zΩ"}[r.IntN(5)])
		} else {
			b.WriteString(letters[r.IntN(len(letters))])
		}
	}
	return b.String()
}

func randomList(seed uint64) (Options, []piece) {
	r := rand.New(rand.NewPCG(seed, 1))
	opt := Options{ByteFallback: r.IntN(2) == 0}
	list := []piece{{tok: "<unk>"}}
	for _, c := range letters {
		if r.IntN(6) > 0 {
			list = append(list, piece{tok: c})
		}
	}
	for range r.IntN(40) {
		list = append(list, piece{tok: randomText(r, 1+r.IntN(5))})
	}
	for b := range 256 {
		if r.IntN(8) > 0 {
			list = append(list, piece{tok: fmt.Sprintf("<0x%02X>", b)})
		}
	}
	ties, up := r.IntN(2) == 0, float64(r.IntN(2)*100)
	for id := range list {
		if list[id].score = up - 10*r.Float64(); ties {
			list[id].score = up - float64(r.IntN(3))
		}
	}
	return opt, list
}

func TestRandom(t *testing.T) {
	var st State // of all models, one after the other
	seeds := testsize.Pick[uint64](10, 20, 100)
	for seed := range seeds {
		opt, list := randomList(seed)
		m := toy(t, opt, list)
		r := rand.New(rand.NewPCG(seed, 2))
		for range 30 {
			w := randomText(r, 1+r.IntN(20))
			want, wantEnds := naive(opt, list, w)
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
	if err := b.Add(0, []byte("a"), true); err != nil {
		t.Fatal(err)
	}
	v, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		scores []float64
		unk    uint32
	}{
		"scores":    {nil, 0},
		"unknown":   {[]float64{1}, 1},
		"no number": {[]float64{math.NaN()}, 0},
		"infinite":  {[]float64{math.Inf(-1)}, 0},
	} {
		if _, err := New(v, c.scores, Options{Unk: c.unk}); err == nil || !strings.HasPrefix(err.Error(), "unigram: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A megabyte without a cut point takes some milliseconds and retains no memory.
func TestLongWords(t *testing.T) {
	if testing.Short() {
		t.Skip("large input")
	}
	m := toy(t, Options{}, []piece{{"<unk>", -9}, {"a", -2}, {"aa", -3}, {"aaaaaaaa", -5}})
	var st State
	for _, s := range []string{"a", "z", "az"} {
		w := strings.Repeat(s, 1<<20/len(s))
		ids, ends := m.AppendEnds(nil, nil, w, 0, len(w), &st)
		if len(ids) != len(ends) || ends[len(ends)-1] != len(w) {
			t.Errorf("%q: %d ids, %d ends", s, len(ids), len(ends))
		}
	}
	if st.path != nil {
		t.Errorf("a State keeps %d steps", cap(st.path))
	}
}

func TestAllocs(t *testing.T) {
	m := toy(t, Options{}, []piece{{"<unk>", -9}, {"a", -2}, {"aa", -3}})
	s := strings.Repeat("a", 40) + "z"
	var st State
	var ids []uint32
	var ends []int
	run := func() {
		ids = m.Append(ids[:0], s, 0, 3, &st)
		ids = m.Append(ids, s, 0, len(s), &st)
		ids, ends = m.AppendEnds(ids, ends[:0], s, 5, len(s), &st)
	}
	run()
	if n := testing.AllocsPerRun(10, run); n > 0 {
		t.Errorf("encoding allocates %v times", n)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add(uint64(1), "aab\xffΩz")
	f.Fuzz(func(t *testing.T, seed uint64, w string) {
		if len(w) > 300 {
			t.Skip()
		}
		opt, list := randomList(seed % 32)
		want, wantEnds := naive(opt, list, w)
		got, ends := toy(t, opt, list).AppendEnds(nil, nil, w, 0, len(w), new(State))
		if !slices.Equal(got, want) || !slices.Equal(ends, wantEnds) {
			t.Errorf("%q is %v to %v, want %v to %v", w, got, ends, want, wantEnds)
		}
	})
}
