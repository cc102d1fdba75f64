// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
	"github.com/weft-go/weft/tokenizers/mini"
)

func newCache(tb testing.TB, tok *tokenizers.Tokenizer, opt *cache.Options) *cache.Cache {
	tb.Helper()
	c, err := cache.New(tok, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// references calls f for each reference tokenizer that loads, with its golden texts.
func references(t *testing.T, f func(t *testing.T, tok *tokenizers.Tokenizer, texts []string)) {
	if testing.Short() {
		t.Skip("reference tokenizers are not for -short")
	}
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "tok", "*", "golden.jsonl"))
	if len(files) == 0 {
		t.Skip("no reference tokenizers (set WEFT_SHARED)")
	}
	for _, file := range files {
		if name := filepath.Base(filepath.Dir(file)); !testsize.Pick(false, name == "qwen3" || name == "bert-base-uncased" || name == "minilm-l6-v2", true) {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			tok, err := tokenizers.Load(os.DirFS(filepath.Dir(file)), nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var texts []string
			sc := bufio.NewScanner(r)
			sc.Buffer(nil, 16<<20)
			for sc.Scan() {
				var g struct{ Text string }
				if err := json.Unmarshal(sc.Bytes(), &g); err != nil {
					t.Fatal(err)
				}
				texts = append(texts, g.Text)
			}
			f(t, tok, texts)
		})
	}
}

// markers returns strings that make cuts: some added tokens of tok, and newlines.
func markers(tok *tokenizers.Tokenizer, r *rand.Rand) []string {
	out := []string{"\n", "\n\n", ".\nThe ", "\n  x"}
	added := tok.AddedTokens()
	for range min(12, len(added)) {
		out = append(out, added[r.IntN(len(added))].Content)
	}
	return out
}

// Cached equals plain, for conversations made of golden texts and markers that share beginnings, whole and
// with every provenance, with a small spacing and budgets that evict all the time.
func TestReferences(t *testing.T) {
	references(t, func(t *testing.T, tok *tokenizers.Tokenizer, texts []string) {
		r := rand.New(rand.NewPCG(5, 6))
		marks := markers(tok, r)
		rounds, options := 1200, []*cache.Options{{Spacing: 40, MaxBytes: 20_000}, {Spacing: 1}, {Spacing: 300, MaxBytes: 200_000}}
		if testsize.Pick(true, true, false) {
			rounds, options = 60, options[:1]
		}
		var hits uint64
		for _, opt := range options {
			c := newCache(t, tok, opt)
			if c.Err() != nil {
				t.Log("off:", c.Err())
			}
			// All golden texts, twice: the second time from the cache.
			for range 2 {
				for i, s := range texts {
					if i%testsize.Pick(8, 8, 1) == 0 {
						checkPlain(t, c, tok, "", s)
					}
				}
			}
			var old [][]tokenizers.Segment
			for range rounds {
				var segs []tokenizers.Segment
				if len(old) > 0 && r.IntN(4) > 0 {
					segs = old[r.IntN(len(old))]
					segs = slices.Clone(segs[:r.IntN(len(segs)+1)])
				}
				for range 1 + r.IntN(4) {
					s := texts[r.IntN(len(texts))]
					if len(s) > 400 {
						k := r.IntN(len(s) - 400)
						s = strings.ToValidUTF8(s[k:k+400], "")
					}
					segs = append(segs,
						tokenizers.Segment{Text: marks[r.IntN(len(marks))], Trusted: r.IntN(8) > 0},
						tokenizers.Segment{Text: s, Trusted: r.IntN(2) == 0})
				}
				if len(segs) > 60 {
					segs = segs[:60]
				}
				if old = append(old, segs); len(old) > 40 {
					old = old[1:]
				}
				ns := [2]string{"a", "b"}[r.IntN(2)]
				if r.IntN(2) == 0 {
					checkPlain(t, c, tok, ns, joined(segs))
				} else {
					checkSegments(t, c, tok, ns, segs)
				}
			}
			hits += c.Stats().HitTokens
			if n, limit := c.Bytes(), cmp.Or(opt.MaxBytes, 64<<20); n > limit {
				t.Errorf("%d bytes in a cache of %d", n, limit)
			}
		}
		if c := newCache(t, tok, nil); c.Err() == nil && hits == 0 {
			t.Error("no hits")
		}
	})
}

func joined(segs []tokenizers.Segment) string {
	var b strings.Builder
	for _, s := range segs {
		b.WriteString(s.Text)
	}
	return b.String()
}

func checkPlain(tb testing.TB, c *cache.Cache, tok *tokenizers.Tokenizer, ns, text string) {
	tb.Helper()
	got := c.AppendEncode([]uint32{7}, ns, text)
	if want := tok.AppendEncode([]uint32{7}, text); !slices.Equal(got, want) {
		tb.Fatalf("%q: got %v, want %v", text, got, want)
	}
}

func checkSegments(tb testing.TB, c *cache.Cache, tok *tokenizers.Tokenizer, ns string, segs []tokenizers.Segment) {
	tb.Helper()
	known := c.AppendPrefixes(nil, ns, segs)
	got, cuts := c.AppendEncodePrefixes([]uint32{7}, nil, ns, segs)
	want := tok.AppendEncodeSegments([]uint32{7}, segs)
	if !slices.Equal(got, want) {
		tb.Fatalf("%v: got %v, want %v", segs, got, want)
	}
	text, found := joined(segs), 0
	for i, k := range cuts {
		if k.Found {
			found = k.Bytes
		}
		if i > 0 && (k.Bytes <= cuts[i-1].Bytes || k.Tokens < cuts[i-1].Tokens) || k.Bytes > len(text) {
			tb.Fatalf("cuts %v of %q", cuts, text)
		}
		// The tokens of a prefix equal the tokens of its segments.
		var head []tokenizers.Segment
		left := k.Bytes
		for _, s := range segs {
			n := min(left, len(s.Text))
			head = append(head, tokenizers.Segment{Text: s.Text[:n], Trusted: s.Trusted})
			left -= n
		}
		if ids := tok.AppendEncodeSegments(nil, head); len(ids) != k.Tokens {
			tb.Fatalf("%d tokens before byte %d of %q, the cut has %d", len(ids), k.Bytes, text, k.Tokens)
		}
		// A value, once there, belongs to this text.
		mine := provenance(ns, head)
		if v := k.Value(); v != nil && v != mine {
			tb.Fatalf("the value at %q is of %q", mine, v)
		}
		k.SetValue(mine)
	}
	if len(known) > 0 && known[len(known)-1].Bytes < found {
		tb.Fatalf("%q: known to %v, then found to %d", text, known, found)
	}
}

// provenance is one string for equal texts of equal provenance.
func provenance(ns string, segs []tokenizers.Segment) string {
	b := []byte(ns + "|")
	for _, s := range segs {
		for _, c := range []byte(s.Text) {
			b = append(b, c)
			if s.Trusted {
				b = append(b, 0)
			}
		}
	}
	return string(b)
}

// The next turn of a conversation finds all of the turn before it, however long.
func TestGrow(t *testing.T) {
	tok := mini.Load()
	for _, spacing := range []int{0, 64, 1 << 20} {
		c := newCache(t, tok, &cache.Options{Spacing: spacing})
		text, before := "", 0
		for _, turn := range turns(t, testsize.Pick(10<<10, 30<<10, 30<<10)) {
			text += turn
			segs := []tokenizers.Segment{{Text: text + generate, Trusted: true}}
			if known := c.AppendPrefixes(nil, "", segs); before > 0 && (len(known) == 0 || known[len(known)-1].Bytes < before) {
				t.Fatalf("%d bytes known of %d", known[len(known)-1].Bytes, before)
			}
			checkSegments(t, c, tok, "", segs)
			before = len(text)
		}
		if n := c.Bytes(); spacing == 0 && n > int64(6*len(text)) {
			t.Errorf("%d bytes for a conversation of %d", n, len(text))
		}
	}
}

// A prompt that leaves another one in the middle finds all but the spacing and the way to the next cut.
func TestBranch(t *testing.T) {
	tok := mini.Load()
	c := newCache(t, tok, nil)
	text := strings.Join(turns(t, 100<<10), "")
	c.AppendEncode(nil, "", text)
	for _, at := range []int{10 << 10, 50 << 10, 90 << 10} {
		branch := text[:at] + "X" + text[at:]
		known := c.AppendPrefixes(nil, "", []tokenizers.Segment{{Text: branch, Trusted: true}})
		if len(known) == 0 || known[len(known)-1].Bytes < at-6<<10 {
			t.Errorf("branch at %d: known to %v", at, known)
		}
		checkPlain(t, c, tok, "", branch)
	}
}

// Namespaces and provenance keep texts apart.
func TestIsolation(t *testing.T) {
	tok := mini.Load()
	c := newCache(t, tok, &cache.Options{Spacing: 1})
	text := strings.Join(turns(t, 4<<10), "")
	trusted := []tokenizers.Segment{{Text: text, Trusted: true}}
	c.AppendEncode(nil, "a", text)
	if known := c.AppendPrefixes(nil, "b", trusted); known != nil {
		t.Errorf("another namespace knows %v", known)
	}
	c.AppendEncode(nil, "b", text[:200])
	for ns, want := range map[string]int{"a": len(text) - 1, "b": len("<|im_start|>")} {
		known := c.AppendPrefixes(nil, ns, trusted)
		if len(known) == 0 || known[len(known)-1].Bytes < want {
			t.Errorf("namespace %s knows %v", ns, known)
		}
	}
	if known := c.AppendPrefixes(nil, "a", []tokenizers.Segment{{Text: text}}); known != nil {
		t.Errorf("untrusted text finds %v", known)
	}
	checkSegments(t, c, tok, "a", []tokenizers.Segment{{Text: text[:40], Trusted: true}, {Text: text[40:]}})
	checkSegments(t, c, tok, "a", trusted)
}

// Where no position is safe nothing is kept.
func TestOff(t *testing.T) {
	references(t, func(t *testing.T, tok *tokenizers.Tokenizer, texts []string) {
		c := newCache(t, tok, nil)
		if c.Err() == nil {
			t.Skip("it has cuts")
		}
		for range 2 {
			for _, s := range texts {
				checkPlain(t, c, tok, "", s)
			}
		}
		if n := c.Bytes(); n != 0 {
			t.Errorf("off (%v), but %d bytes stored", c.Err(), n)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []cache.Options{{MaxBytes: -1}, {Spacing: -1}} {
		if _, err := cache.New(mini.Load(), &o); err == nil || !strings.HasPrefix(err.Error(), "cache: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tok := mini.Load()
	c := newCache(t, tok, nil)
	list := turns(t, 100<<10)
	text := strings.Join(list, "") + generate
	var segs []tokenizers.Segment
	for i, s := range append(list, generate) {
		segs = append(segs, tokenizers.Segment{Text: s, Trusted: i%3 > 0})
	}
	ids := make([]uint32, 0, len(text))
	cuts := make([]cache.Prefix, 0, 100)
	for name, f := range map[string]func(){
		"AppendEncode":         func() { ids = c.AppendEncode(ids[:0], "ns", text) },
		"AppendEncodeSegments": func() { ids = c.AppendEncodeSegments(ids[:0], "ns", segs) },
		"AppendEncodePrefixes": func() { ids, cuts = c.AppendEncodePrefixes(ids[:0], cuts[:0], "ns", segs) },
		"AppendPrefixes":       func() { cuts = c.AppendPrefixes(cuts[:0], "ns", segs) },
	} {
		f()
		if n := testing.AllocsPerRun(50, f); n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// The heap grows by no more than the budget.
func TestBudget(t *testing.T) {
	tok := mini.Load()
	limit := int64(testsize.Pick(3<<20, 8<<20, 8<<20))
	for _, size := range testsize.Pick([]int{3000}, []int{200, 3000}, []int{200, 3000, 50_000}) {
		c := newCache(t, tok, &cache.Options{MaxBytes: limit})
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		base := strings.Join(turns(t, size), "")
		var ids []uint32
		before := heap()
		for i := 0; int64(i*len(base)) < 3*limit && i < 20_000; i++ {
			text := fmt.Sprintf("<|im_start|>user %d\n%s", i, base)
			if ids = c.AppendEncode(ids[:0], fmt.Sprint(i%50), text); i%500 == 0 {
				checkPlain(t, c, tok, "", text)
			}
		}
		grown, counted, evicted := heap()-before, c.Bytes(), c.Evicted()
		t.Logf("size %d: heap %d, counted %d, %d evicted", size, grown, counted, evicted)
		if counted > limit || counted < limit/4 && evicted > 0 || grown > limit+limit/8 {
			t.Errorf("size %d: the heap grew by %d for a budget of %d, counted %d, %d evicted", size, grown, limit, counted, evicted)
		}
		runtime.KeepAlive(c)
	}
}

// Trim evicts the prefixes of the texts that were not used since the call before.
func TestTrim(t *testing.T) {
	tok := mini.Load()
	c := newCache(t, tok, &cache.Options{Spacing: 500})
	list := turns(t, 20<<10)
	base := strings.Join(list[:len(list)/2], "")
	used, unused := base+"<|im_start|>user\nA\n"+base, base+"<|im_start|>user\nB\n"+base
	found := func(text string) (bytes int) {
		if list := c.AppendPrefixes(nil, "", []tokenizers.Segment{{Text: text, Trusted: true}}); len(list) > 0 {
			bytes = list[len(list)-1].Bytes
		}
		return bytes
	}
	c.AppendEncode(nil, "", used)
	c.AppendEncode(nil, "", unused)
	c.AppendEncode(nil, "other", unused)
	c.Trim()
	full := c.Bytes()
	if n := found(used); n < len(used)-500 {
		t.Fatalf("after one call, %d bytes are known of %d", n, len(used))
	}
	c.Trim()
	rest := c.Bytes()
	if rest > full/2 {
		t.Errorf("%d bytes of %d remain", rest, full)
	}
	if n := found(used); n < len(used)-500 {
		t.Errorf("%d bytes known of %d", n, len(used))
	}
	if n := found(unused); n < len(base)-500 || n > len(base)+100 {
		t.Errorf("%d bytes known of an unused text that shares %d with one in use", n, len(base))
	}
	c.Trim()
	c.Trim()
	if n := c.Bytes(); n != 0 {
		t.Errorf("%d bytes remain", n)
	}
	checkPlain(t, c, tok, "", used)
}

// Many goroutines, few texts, a budget that evicts, and one encoding for all calls with the same text.
func TestConcurrent(t *testing.T) {
	tok := mini.Load()
	list := turns(t, testsize.Pick(8<<10, 30<<10, 60<<10))
	for _, limit := range []int64{0, 100_000} {
		c := newCache(t, tok, &cache.Options{MaxBytes: limit, Spacing: 500})
		type job struct {
			text string
			want []uint32
		}
		var jobs []job
		for i := 1; i <= len(list); i++ {
			text := strings.Join(list[:i], "") + generate
			jobs = append(jobs, job{text, tok.AppendEncode(nil, text)})
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 1))
				var ids []uint32
				var cuts []cache.Prefix
				for range 150 {
					j := jobs[r.IntN(len(jobs))]
					ns := fmt.Sprint(r.IntN(3))
					if r.IntN(2) == 0 {
						ids = c.AppendEncode(ids[:0], ns, j.text)
					} else {
						ids, cuts = c.AppendEncodePrefixes(ids[:0], cuts[:0], ns, []tokenizers.Segment{{Text: j.text, Trusted: true}})
						for _, k := range cuts {
							if v := k.Value(); v != nil && v != k.Tokens {
								t.Errorf("value %v at token %d", v, k.Tokens)
							}
							k.SetValue(k.Tokens)
						}
					}
					if !slices.Equal(ids, j.want) {
						t.Error("wrong ids")
						return
					}
					if r.IntN(20) == 0 {
						c.Trim()
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestSingleflight(t *testing.T) {
	tok := mini.Load()
	text := strings.Join(turns(t, testsize.Pick(100<<10, 400<<10, 400<<10)), "")
	want := tok.AppendEncode(nil, text)
	c := newCache(t, tok, nil)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if !slices.Equal(c.AppendEncode(nil, "", text), want) {
				t.Error("wrong ids")
			}
		})
	}
	wg.Wait()
	s := c.Stats()
	if s.HitTokens > uint64(15*len(want)) || s.Tokens != uint64(16*len(want)) {
		t.Errorf("%+v", s)
	}
	t.Logf("%d of %d tokens hit", s.HitTokens, s.Tokens)
}

// One beginning, thousands of continuations: a look-up stays cheap and right.
func TestFanOut(t *testing.T) {
	tok := mini.Load()
	c := newCache(t, tok, &cache.Options{Spacing: 10})
	text := func(i int) string {
		return fmt.Sprintf("<|im_start|>user\n%s %d<|im_end|>\n<|im_start|>assistant\n", strings.Repeat("a", i%200), i)
	}
	for range 2 {
		for i := range testsize.Pick(600, 3000, 3000) {
			checkPlain(t, c, tok, "", text(i))
		}
	}
	if s := c.Stats(); s.HitTokens < s.Tokens/3 {
		t.Errorf("%+v", s)
	}
}

func FuzzCache(f *testing.F) {
	f.Add([]byte("\x01a\x02\n\x00b\x03\x05\x10"), uint8(1), uint16(0))
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09"), uint8(9), uint16(3000))
	tok := mini.Load()
	pieces := []string{"<|im_start|>", "<|im_end|>", "\n", "x", " ", "e\u0301", "<think>", "\nThe ", "<|im", "\u4e2d", "'s", "\xff"}
	f.Fuzz(func(t *testing.T, ops []byte, spacing uint8, limit uint16) {
		c := newCache(t, tok, &cache.Options{Spacing: int(spacing), MaxBytes: int64(limit)})
		if len(ops) > 300 {
			ops = ops[:300]
		}
		var segs []tokenizers.Segment
		for _, op := range ops {
			switch {
			case op < 0xC0:
				segs = append(segs, tokenizers.Segment{Text: pieces[int(op)%len(pieces)], Trusted: op/16%3 > 0})
			case op < 0xE0:
				checkSegments(t, c, tok, "", segs)
				segs = segs[:min(len(segs), int(op-0xC0))]
			default:
				checkPlain(t, c, tok, "", joined(segs))
			}
		}
		checkSegments(t, c, tok, "", segs)
		checkSegments(t, c, tok, "", segs)
	})
}
