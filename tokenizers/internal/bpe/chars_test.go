// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// charsToy describes a model by spellings.
type charsToy struct {
	tokens []string // ids are indexes; what merges make is added
	merges [][2]string
	unk    string // "" for none
	opt    CharsOptions
}

func (c charsToy) table(tb testing.TB) (*vocab.Table, map[string]uint32, []Merge, CharsOptions) {
	tb.Helper()
	id := map[string]uint32{}
	var b vocab.Builder
	add := func(s string) {
		if _, ok := id[s]; !ok {
			id[s] = uint32(len(id))
			if err := b.Add(id[s], []byte(s), true); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for _, s := range c.tokens {
		add(s)
	}
	var list []Merge
	for _, g := range c.merges {
		to := g[0] + strings.TrimPrefix(g[1], c.opt.ContinuingSubwordPrefix)
		add(to)
		list = append(list, Merge{id[g[0]], id[g[1]], id[to]})
	}
	if c.unk != "" {
		c.opt.Unk = new(id[c.unk])
	}
	v, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return v, id, list, c.opt
}

func (c charsToy) model(tb testing.TB) *Chars {
	tb.Helper()
	v, _, list, opt := c.table(tb)
	m, err := NewChars(v, list, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

type leaf struct {
	id   uint32
	size int
}

// naive is the definition, written as the reference has it, without cuts, queues and caches.
func (c charsToy) naive(tb testing.TB, w string) (ids []uint32, ends []int) {
	_, id, list, opt := c.table(tb)
	if got, ok := id[w]; ok && opt.IgnoreMerges {
		return []uint32{got}, []int{len(w)}
	}
	var word []leaf
	var unk *leaf
	for i, r := range w {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError && !strings.HasPrefix(w[i:], "\uFFFD") {
			size = 1
		}
		ch := w[i : i+size]
		s := ch
		if i > 0 {
			s = opt.ContinuingSubwordPrefix + s
		}
		if i+size == len(w) {
			s += opt.EndOfWordSuffix
		}
		if got, ok := id[s]; ok {
			if unk != nil {
				word = append(word, *unk)
				unk = nil
			}
			word = append(word, leaf{got, size})
			continue
		}
		if opt.ByteFallback {
			var spelled []leaf
			for _, b := range []byte(s) {
				if got, ok := id[fmt.Sprintf("<0x%02X>", b)]; ok {
					spelled = append(spelled, leaf{got, 1})
				}
			}
			if len(spelled) == len(s) {
				word = append(word, spelled...)
				continue
			}
		}
		if opt.Unk == nil {
			continue
		}
		if unk != nil && opt.FuseUnk {
			unk.size += size
			continue
		}
		if unk != nil {
			word = append(word, *unk)
		}
		unk = &leaf{*opt.Unk, size}
	}
	if unk != nil {
		word = append(word, *unk)
	}
	rank := map[[2]uint32]int{}
	for k, g := range list {
		rank[[2]uint32{g.A, g.B}] = k
	}
	for {
		best, at := len(list), -1
		for i := 1; i < len(word); i++ {
			if r, ok := rank[[2]uint32{word[i-1].id, word[i].id}]; ok && r < best {
				best, at = r, i-1
			}
		}
		if at < 0 {
			break
		}
		word[at] = leaf{list[best].To, word[at].size + word[at+1].size}
		word = slices.Delete(word, at+1, at+2)
	}
	end := 0
	for _, l := range word {
		end += l.size
		ids = append(ids, l.id)
		ends = append(ends, end)
	}
	return ids, ends
}

var charsAlphabet = []string{"a", "b", "c", "▁", "é", "中", "😀", "="}

// randomChars has few characters, some of them unknown, and merges among them, in every mode.
func randomChars(seed uint64) charsToy {
	r := rand.New(rand.NewPCG(seed, 3))
	c := charsToy{opt: CharsOptions{FuseUnk: r.IntN(2) == 0, ByteFallback: r.IntN(2) == 0, IgnoreMerges: r.IntN(4) == 0}}
	switch r.IntN(6) {
	case 0:
		c.opt.EndOfWordSuffix = "</w>"
	case 1:
		c.opt.ContinuingSubwordPrefix = "##"
	case 2:
		c.opt.ContinuingSubwordPrefix, c.opt.EndOfWordSuffix = "#", "$"
	}
	prefix, suffix := c.opt.ContinuingSubwordPrefix, c.opt.EndOfWordSuffix
	if r.IntN(3) > 0 {
		c.unk = []string{"<unk>", "<unk>", "a"}[r.IntN(3)]
		c.tokens = append(c.tokens, c.unk)
	}
	for _, s := range charsAlphabet {
		if r.IntN(5) > 0 {
			c.tokens = append(c.tokens, s, prefix+s, s+suffix, prefix+s+suffix)
		}
	}
	have := slices.Clone(c.tokens)
	if c.unk == "<unk>" && r.IntN(4) > 0 {
		have = have[1:]
	}
	if gaps := r.IntN(3); gaps < 2 {
		for b := range 256 {
			if gaps == 0 || r.IntN(6) > 0 {
				c.tokens = append(c.tokens, fmt.Sprintf("<0x%02X>", b))
			}
		}
		if r.IntN(4) == 0 {
			have = append(have, c.tokens[len(c.tokens)-10])
		}
	}
	for range r.IntN(50) {
		if len(have) == 0 {
			break
		}
		x, y := have[r.IntN(len(have))], have[r.IntN(len(have))]
		if rest, ok := strings.CutPrefix(y, prefix); ok && rest != "" && x != "" && len(x)+len(y) < 24 {
			c.merges = append(c.merges, [2]string{x, y})
			have = append(have, x+rest)
		}
	}
	return c
}

func randomCharsText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		switch r.IntN(12) {
		case 0:
			b.WriteString([]string{"z", "Ω", "<unk>", "<0x61>", "\xff", "\uFFFD", "\xe2\x96"}[r.IntN(7)])
		default:
			b.WriteString(strings.Repeat(charsAlphabet[r.IntN(len(charsAlphabet))], 1+r.IntN(3)))
		}
	}
	return b.String()
}

// All paths give what the definition gives.
func TestCharsRandom(t *testing.T) {
	var st State // of all models, one after the other
	cut := 0
	seeds := testsize.Pick[uint64](20, 80, 400)
	for seed := range seeds {
		c := randomChars(seed)
		m := c.model(t)
		r := rand.New(rand.NewPCG(seed, 4))
		for k := range 12 {
			w := randomCharsText(r, 1+r.IntN(4)*(1+k))
			want, wantEnds := c.naive(t, w)
			pad := "«" + w + "» and something after it"
			for range 2 { // the second time from the cache
				if got := m.Append(nil, pad, 2, 2+len(w), &st); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %q is %v, want %v\n%+v", seed, w, got, want, c)
				}
			}
			got, ends := m.AppendEnds(nil, nil, pad, 2, 2+len(w), &st)
			if !slices.Equal(got, want) || !slices.Equal(ends, wantEnds) {
				t.Fatalf("seed %d: %q is %v to %v, want %v to %v\n%+v", seed, w, got, ends, want, wantEnds, c)
			}
			for _, id := range want {
				if !m.Reaches(id) {
					t.Fatalf("seed %d: Reaches denies %d in %q", seed, id, w)
				}
			}
			if !m.whole {
				for i := 0; i < len(w); cut++ {
					i = m.cuts.next(w, i, len(w))
				}
			}
		}
	}
	if cut < 500 {
		t.Errorf("only %d cuts were tried", cut)
	}
}

func TestCharsAppend(t *testing.T) {
	merges := [][2]string{{"▁", "t"}, {"h", "e"}, {"▁t", "he"}, {"a", "a"}, {"aa", "aa"}}
	base := []string{"<unk>", "▁", "t", "h", "e", "a"}
	bytes := func(tokens []string) []string {
		tokens = slices.Clone(tokens)
		for b := range 256 {
			tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
		}
		return tokens
	}
	for _, c := range []struct {
		name string
		toy  charsToy
		word string
		want string // tokens with their ends
	}{
		{"merges", charsToy{tokens: base, merges: merges}, "▁the▁the", "▁the 6, ▁the 12"},
		{"leftmost at equal rank", charsToy{tokens: base, merges: merges}, "aaaaa", "aaaa 4, a 5"},
		{"dropped", charsToy{tokens: base, merges: merges}, "hΩe", "he 2"},
		{"unknown", charsToy{tokens: base, merges: merges, unk: "<unk>"}, "ΩΩe", "<unk> 2, <unk> 4, e 5"},
		{"fused", charsToy{tokens: base, merges: merges, unk: "<unk>", opt: CharsOptions{FuseUnk: true}}, "hΩ中e", "h 1, <unk> 6, e 7"},
		{"bytes", charsToy{tokens: bytes(base), merges: merges, unk: "<unk>", opt: CharsOptions{ByteFallback: true}}, "hΩe\xff",
			"h 1, <0xCE> 2, <0xA9> 3, e 4, <0xFF> 5"},
		{"bytes come before what waits", charsToy{tokens: append(base, "<0xCE>", "<0xA9>"), unk: "<unk>", opt: CharsOptions{ByteFallback: true}}, "中Ωe",
			"<0xCE> 1, <0xA9> 2, <unk> 5, e 6"},
		{"suffix", charsToy{tokens: []string{"a", "b", "b</w>", "a</w>"}, merges: [][2]string{{"a", "b</w>"}, {"a", "b"}}, opt: CharsOptions{EndOfWordSuffix: "</w>"}},
			"abab", "ab 2, ab</w> 4"},
		{"prefix", charsToy{tokens: []string{"a", "##a", "##b"}, merges: [][2]string{{"a", "##b"}, {"##a", "##b"}}, opt: CharsOptions{ContinuingSubwordPrefix: "##"}},
			"abab", "ab 2, ##ab 4"},
		{"whole word", charsToy{tokens: append(base, "tea"), merges: merges, opt: CharsOptions{IgnoreMerges: true}}, "tea", "tea 3"},
		{"token out of reach", charsToy{tokens: append(base, "tea"), merges: merges}, "tea", "t 1, e 2, a 3"},
		{"empty", charsToy{tokens: base}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.toy.model(t)
			var st State
			ids, ends := m.AppendEnds(nil, nil, c.word, 0, len(c.word), &st)
			var got []string
			for k, id := range ids {
				got = append(got, fmt.Sprintf("%s %d", m.vocab.Bytes(id), ends[k]))
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
			if again := m.Append(nil, c.word, 0, len(c.word), &st); !slices.Equal(again, ids) {
				t.Errorf("Append gives %v, AppendEnds %v", again, ids)
			}
		})
	}
}

func TestCharsErrors(t *testing.T) {
	v, id, _, _ := charsToy{tokens: []string{"a", "##b", "b", "ab", "##"}}.table(t)
	for _, c := range []struct {
		name string
		g    Merge
		opt  CharsOptions
	}{
		{"another result", Merge{id["a"], id["b"], id["b"]}, CharsOptions{}},
		{"id beyond", Merge{id["a"], 99, id["ab"]}, CharsOptions{}},
		{"no prefix to take off", Merge{id["a"], id["b"], id["ab"]}, CharsOptions{ContinuingSubwordPrefix: "##"}},
		{"nothing left", Merge{id["a"], id["##"], id["a"]}, CharsOptions{ContinuingSubwordPrefix: "##"}},
		{"unknown beyond", Merge{id["a"], id["b"], id["ab"]}, CharsOptions{Unk: new(uint32(77))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewChars(v, []Merge{c.g}, c.opt)
			if err == nil || !strings.HasPrefix(err.Error(), "bpe: ") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestAppendChars(t *testing.T) {
	m := charsToy{tokens: []string{"<unk>", "a", "b"}, merges: [][2]string{{"a", "b"}}, unk: "<unk>"}.model(t)
	var st State
	if got := m.AppendChars(nil, "abΩ", &st); !slices.Equal(got, []uint32{1, 2, 0}) {
		t.Errorf("got %v", got)
	}
	if m.Reaches(4) || !m.Reaches(0) || !m.Reaches(3) || m.Reaches(1<<30) {
		t.Error("Reaches is wrong")
	}
}

// Work on words that cannot be cut is linear: each merge puts at most two entries into the queue.
func TestCharsLongWords(t *testing.T) {
	toy := charsToy{tokens: []string{"a", "▁", "="}, merges: [][2]string{{"a", "a"}, {"aa", "aa"}, {"▁", "▁"}, {"=", "="}, {"aaaa", "aaaa"}, {"▁▁", "▁"}, {"=", "a"}}}
	m := toy.model(t)
	var st State
	for _, s := range []string{"a", "▁", "=", "a=", "aa=="} {
		w := strings.Repeat(s, 20000)
		m.leaves(w, &st, false)
		m.mergeNodes(&st)
		if n := len(st.queue.entries); n > 3*len(st.leaf) {
			t.Errorf("%q: %d entries for %d characters", s, n, len(st.leaf))
		}
		w = strings.Repeat(s, testsize.Pick(1<<18, 1<<20, 1<<20)/len(s))
		n := 0
		for _, id := range m.Append(nil, w, 0, len(w), &st) {
			n += len(m.vocab.Bytes(id))
		}
		if n != len(w) {
			t.Errorf("%q: %d bytes of %d", s, n, len(w))
		}
	}
	if cap(st.nodes)*12 > maxKept {
		t.Errorf("a State keeps %d nodes", cap(st.nodes))
	}
}

func TestCharsAllocs(t *testing.T) {
	m := charsToy{tokens: []string{"<unk>", "▁", "t", "h", "e"}, merges: [][2]string{{"▁", "t"}, {"h", "e"}, {"▁t", "he"}}, unk: "<unk>"}.model(t)
	w := strings.Repeat("▁the▁teetheΩ▁h", 40) + strings.Repeat("he", 100)
	var st State
	ids, ends := m.AppendEnds(nil, nil, w, 0, len(w), &st)
	m.Append(nil, w, 0, len(w), &st)
	if n := testing.AllocsPerRun(10, func() { ids = m.Append(ids[:0], w, 0, len(w), &st) }); n > 0 {
		t.Errorf("Append allocates %v times", n)
	}
	if n := testing.AllocsPerRun(10, func() { ids, ends = m.AppendEnds(ids[:0], ends[:0], w, 0, len(w), &st) }); n > 0 {
		t.Errorf("AppendEnds allocates %v times", n)
	}
}

// Goroutines share a model; each has its State.
func TestCharsConcurrent(t *testing.T) {
	c := randomChars(11)
	m := c.model(t)
	w := randomCharsText(rand.New(rand.NewPCG(1, 1)), 400)
	want, _ := c.naive(t, w)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var st State
			for range 20 {
				if got := m.Append(nil, w, 0, len(w), &st); !slices.Equal(got, want) {
					t.Error("another result in a concurrent call")
				}
			}
		})
	}
	wg.Wait()
}

// Byte-level ids end where their bytes do.
func TestAppendEnds(t *testing.T) {
	m := toy(t, Options{}, [2]string{"a", "b"}, [2]string{"b", "c"}, [2]string{"ab", "c"})
	var st State
	ids, ends := m.AppendEnds(nil, []int{7}, "-abcab\xff-", 1, 7, &st)
	if !slices.Equal(ends, []int{7, 3, 5, 6}) || len(ids) != 3 {
		t.Errorf("%v to %v", ids, ends)
	}
}

func FuzzChars(f *testing.F) {
	f.Add(uint64(1), "▁a▁bΩ中c")
	f.Add(uint64(7), "a\xffb<unk>▁▁")
	f.Fuzz(func(t *testing.T, seed uint64, w string) {
		if len(w) > 500 {
			t.Skip()
		}
		c := randomChars(seed % 64)
		m := c.model(t)
		var st State
		want, wantEnds := c.naive(t, w)
		got, ends := m.AppendEnds(nil, nil, w, 0, len(w), &st)
		if !slices.Equal(got, want) || !slices.Equal(ends, wantEnds) {
			t.Errorf("%q is %v to %v, want %v to %v", w, got, ends, want, wantEnds)
		}
		if got := m.Append(nil, w, 0, len(w), &st); !slices.Equal(got, want) {
			t.Errorf("%q without ends is %v, want %v", w, got, want)
		}
	})
}
