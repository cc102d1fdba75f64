// SPDX-License-Identifier: Apache-2.0

package pretok_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

const (
	contr = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	lead  = `[^\r\n\p{L}\p{N}]?`
	upper = `\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`
	lower = `\p{Ll}\p{Lm}\p{Lo}\p{M}`
	tail  = `|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// published are the expressions that have a scanner.
var published = map[string]string{
	"gpt2":        `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"gpt2 short":  `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"cl100k":      contr + `|` + lead + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tail,
	"qwen2":       contr + `|` + lead + `\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tail,
	"qwen3.5":     contr + `|` + lead + `[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + tail,
	"o200k":       lead + `[` + upper + `]*[` + lower + `]+` + contr + `?|` + lead + `[` + upper + `]+[` + lower + `]*` + contr + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + tail,
	"tekken":      lead + `[` + upper + `]*[` + lower + `]+|` + lead + `[` + upper + `]+[` + lower + `]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + tail,
	"kimi":        `[\p{Han}]+|` + lead + `[` + upper + `&&[^\p{Han}]]*[` + lower + `&&[^\p{Han}]]+` + contr + `?|` + lead + `[` + upper + `&&[^\p{Han}]]+[` + lower + `&&[^\p{Han}]]*` + contr + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tail,
	"ds digits":   `\p{N}{1,3}`,
	"ds cjk":      "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
	"ds words":    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" + tail,
	"cl100k 1st":  `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
	"cl100k poss": `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`,
	"clip":        `<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`,
}

// Each alphabet draws other features of the expressions out.
var alphabets = [][]string{
	{"a", "B", " ", "\n", "1", "'", "s", "ll", "/", "."},
	{"a", "Ab", "BA", "中", "文", "あ", "ſ", "'", "'ſ", "'Ll", "\u0301", "ǅ", "ʰ", "한", "1", " "},
	{" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "x", "=", "2", "\u200b", "\ufeff"},
	{"<|startoftext|>", "<|endoftext|>", "<|", "|>", "a", "'", "-", "²", "٣", "½", "😀", "\u200d", "_", "$", "\x00", "\xff", "\xe4\xb8", "\u0345", "\U00010D40", "\U0001E900"},
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	set := alphabets[r.IntN(len(alphabets))]
	for range r.IntN(14) {
		if r.IntN(10) == 0 {
			set = alphabets[r.IntN(len(alphabets))]
		}
		b.WriteString(set[r.IntN(len(set))])
	}
	return b.String()
}

func sameCuts(t *testing.T, name string, x, y pretok.Splitter, s string) {
	t.Helper()
	if a, b := x.AppendPieces(nil, s), y.AppendPieces(nil, s); !slices.Equal(a, b) {
		t.Fatalf("%s on %q:\nscanner %v\nmatcher %v", name, s, a, b)
	}
}

// The scanners and the matcher for any expression were written apart from each other.
func TestMatcherAgreesWithScanners(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, expr := range published {
		f, ok := pretok.Lookup(expr)
		if !ok {
			t.Errorf("no scanner for %s", name)
			continue
		}
		p := mustCompile(t, expr)
		for range testsize.Pick(60, 1000, 3000) {
			sameCuts(t, name, f, &pretok.Split{Pattern: p}, randomText(r))
		}
	}
}

func FuzzMatcherAgreesWithScanners(f *testing.F) {
	type pair struct {
		name string
		x, y pretok.Splitter
	}
	var pairs []pair
	for name, expr := range published {
		fn, _ := pretok.Lookup(expr)
		p, err := pretok.Compile(expr)
		if err != nil {
			f.Fatal(err)
		}
		pairs = append(pairs, pair{name, fn, &pretok.Split{Pattern: p}})
	}
	for _, s := range []string{"Hello, world's 123!\r\n\t x", "中文ABCabc'LL\u0301\u00a0\xff\xc3", "  \n  ''ſ//*/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range pairs {
			sameCuts(t, p.name, p.x, p.y, s)
		}
	})
}

// Any expression is compiled or refused, and what is compiled cuts without losing text.
func FuzzCompile(f *testing.F) {
	for _, expr := range []string{`(?i:a|b)*+c{2,3}?`, `[a-z&&[^\d]]\p{L}`, `(?<=^|\s)x(?!\S)`, `\xe4\xb8\xad\u4e2d\x{4e2d}`, `(?x) a # b`, `[[:alpha:]]{,2}+`} {
		f.Add(expr, "ab c1\n中 x")
	}
	f.Fuzz(func(t *testing.T, expr, s string) {
		if len(expr) > 200 || len(s) > 500 {
			return
		}
		p, err := pretok.Compile(expr)
		if err != nil {
			return
		}
		end := 0
		for _, x := range (&pretok.Split{Pattern: p}).AppendPieces(nil, s) {
			if x.Start != end || x.End <= x.Start {
				t.Fatalf("%q cuts %q at %v after %d", expr, s, x, end)
			}
			end = x.End
		}
		if end != len(s) {
			t.Fatalf("%q keeps %d of %d bytes of %q", expr, end, len(s), s)
		}
	})
}

func mustCompile(t testing.TB, expr string) *pretok.Pattern {
	t.Helper()
	p, err := pretok.Compile(expr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func cut(x pretok.Splitter, s string) string {
	var out []string
	for _, p := range x.AppendPieces(nil, s) {
		out = append(out, s[p.Start:p.End])
	}
	return strings.Join(out, "¦")
}

// The results are those of Hugging Face's tokenizers 0.23.2.
func TestPattern(t *testing.T) {
	for _, c := range []struct{ expr, text, want string }{
		{``, "abc", "a¦b¦c"},
		{`x*`, "axxb", "a¦xx¦b"},
		{`^`, "a\nb\n", "a\n¦b\n"},
		{`$`, "a\nb\n", "a¦\nb¦\n"},
		{`\Z`, "a\nb\n", "a\nb¦\n"},
		{`a{2,1}`, "aaa", "aa¦a"},
		{`a{1,2}+b`, "aaaab", "aaaab"},
		{`a{2}?`, "aaaaa", "aa¦aa¦a"},
		{`a{,2}`, "aaaa", "aa¦aa"},
		{`a{,}`, "a{,}", "a{,}"},
		{`{`, "a{", "a¦{"},
		{`(?m).`, "a\nb", "a¦\n¦b"},
		{`(?<=a|bc)b`, "abbcb", "a¦b¦bc¦b"},
		{`a(?i)b|c`, "aBaC", "aB¦aC"},
		{`(?:a|)*`, "aab", "aa¦b"},
		{`[]a]`, "a]b", "a¦]¦b"},
		{`[[:alpha:]]`, "a1é", "a¦1¦é"},
		{`[[:punct:]]`, "a$.", "a¦$¦."},
		{`\p{Punct}`, "a$.", "a$¦."},
		{`[\w&&[^a]]`, "ab", "a¦b"},
		{`[a-w&&[^c-g]z]`, "acz", "a¦cz"},
		{`\R`, "a\r\n\n", "a¦\r\n¦\n"},
		{`\p{han}`, "中a", "中¦a"},
		{`\xc3\xa9|\x{4e2d}|\u6587`, "é中文", "é¦中¦文"},
		{`(?i:k)`, "kK\u212a", "k¦K¦\u212a"},
		{`(?i:'s)`, "a's'\u017f", "a¦'s¦'\u017f"},
		{`(?i:\p{Nl})`, "aⅧⅷ", "a¦Ⅷ¦ⅷ"},
		{`(?i:[^a])`, "aAb", "aA¦b"},
		// The numerals of Latin-1 are words for \w by itself and not in a class.
		{`\w`, "a²·", "a¦²¦·"},
		{`[\w]`, "a²·", "a¦²·"},
		{`\b`, "a² ½x", "a²¦ ¦½x"},
		{`(?=(\d{3})+(?!\d))`, "1234567 89", "1¦234¦567 89"},
		{`(?x) a + # letters
			| [ ]`, "aa b", "aa¦ ¦b"},
		{`(?>a|ab)c`, "abcac", "abc¦ac"},
		{`(?<!^)▁`, "▁a▁b", "▁a¦▁¦b"},
		{`a+?b??`, "aab", "a¦a¦b"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			if got := cut(&pretok.Split{Pattern: mustCompile(t, c.expr)}, c.text); got != c.want {
				t.Errorf("%q\ngot  %q\nwant %q", c.text, got, c.want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct {
		expr   string
		offset int
		reason string
	}{
		{`(a)\1`, 3, "a backreference"},
		{`a\g<1>`, 1, "a subexpression call"},
		{`a|\Kb`, 2, `\K`},
		{`\p{Klingon}`, 0, `the property "Klingon"`},
		{`\pL`, 0, `\p without {…}`},
		{`[[:foo:]]`, 1, "the class [:foo:]"},
		{`(?s)a`, 0, "the group option 's'"},
		{`(?~a)`, 0, "an absent operator (?~…)"},
		{`(?(1)a|b)`, 0, "a condition (?(…)…)"},
		{`a(*FAIL)`, 1, "a callout (*…)"},
		{`*a`, 0, "a quantifier after nothing"},
		{`(?=a)*`, 5, "a quantifier after something that has no width"},
		{`a)`, 1, "unmatched )"},
		{`(a`, 0, "a group without an end"},
		{`[a`, 0, "a character class without an end"},
		{`[b-a]`, 1, `the empty range "b-a"`},
		{`[\w-a]`, 1, "a range from a class or a range"},
		{`[a-\d]`, 1, "a range to a class"},
		{`(?<=a+)b`, 4, "a look-behind without a bound"},
		{`(?:a*){2}`, 0, "a counted repeat of something that may be empty"},
		{`(?i:\p{L})`, 4, "(?i) on 'ß', which folds to more than one letter,"},
		{`(?i:ß)`, 4, "(?i) on 'ß', which folds to more than one letter,"},
		{`(?i:ss)`, 4, `(?i) on "ss", which one letter folds to,`},
		{`a{1,5000}`, 0, "a bounded repeat above 1000"},
		{`(?:(?:(?:a|b?c){100}){100}){100}`, 4, "an expression that is too large"},
		{"a\xff", 1, "no valid UTF-8"},
		{`a\`, 1, "a backslash at the end"},
		{strings.Repeat("(", 300), 201, "groups nested more than 200 deep"},
	} {
		_, err := pretok.Compile(c.expr)
		e, ok := err.(*pretok.Error)
		if !ok {
			t.Errorf("%q: %v", c.expr, err)
			continue
		}
		if e.Reason != c.reason || c.offset != e.Offset && !strings.HasPrefix(c.reason, "groups") && !strings.HasPrefix(c.reason, "an expression") {
			t.Errorf("%q: got %d %q, want %d %q", c.expr, e.Offset, e.Reason, c.offset, c.reason)
		}
	}
}

// The results are those of Hugging Face's tokenizers 0.23.2.
func TestSplitters(t *testing.T) {
	split := func(expr string, b pretok.Behavior, invert bool) pretok.Splitter {
		return &pretok.Split{Pattern: mustCompile(t, expr), Behavior: b, Invert: invert}
	}
	lit := func(s string, b pretok.Behavior) pretok.Splitter {
		p, err := pretok.Literal(s)
		if err != nil {
			t.Fatal(err)
		}
		return &pretok.Split{Pattern: p, Behavior: b}
	}
	const text = "the-final--countdown"
	for _, c := range []struct {
		name       string
		x          pretok.Splitter
		text, want string
	}{
		{"removed", split("-", pretok.Removed, false), text, "the¦final¦countdown"},
		{"isolated", split("-", pretok.Isolated, false), text, "the¦-¦final¦-¦-¦countdown"},
		{"previous", split("-", pretok.MergedWithPrevious, false), text, "the-¦final-¦-¦countdown"},
		{"next", split("-", pretok.MergedWithNext, false), text, "the¦-final¦-¦-countdown"},
		{"contiguous", split("-", pretok.Contiguous, false), text, "the¦-¦final¦--¦countdown"},
		{"removed inverted", split("-", pretok.Removed, true), text, "-¦-¦-"},
		{"next inverted", split("-", pretok.MergedWithNext, true), text, "the-¦final-¦-¦countdown"},
		{"literal", lit("a.b", pretok.Removed), "xa.byaxb", "x¦yaxb"},
		{"literal empty", lit("", pretok.Removed), "ab", "a¦b"},
		{"whitespace", pretok.Whitespace{}, "Hé's  a_1!? ²\u200dx", "Hé¦'¦s¦a_1¦!?¦²¦\u200dx"},
		{"whitespace split", pretok.WhitespaceSplit{}, " a!  b\u00a0c\u200b", "a!¦b¦c\u200b"},
		{"bert", pretok.Bert{}, " a-b $5…x\u3000中", "a¦-¦b¦$¦5¦…¦x¦中"},
		{"punctuation", pretok.Punctuation{Behavior: pretok.Contiguous}, "a--b$+¿", "a¦--¦b¦$+¿"},
		{"digits", pretok.Digits{}, "a12²b", "a¦12²¦b"},
		{"digits individual", pretok.Digits{Individual: true}, "a12b", "a¦1¦2¦b"},
		{"delimiter", pretok.CharDelimiter{Delimiter: '中'}, "中a中中b", "a¦b"},
		{"scripts", pretok.UnicodeScripts{}, " ab どこ京ー.", "ab ¦どこ京ー¦."},
		{"fixed", pretok.FixedLength{Length: 2}, "aé中bc", "aé¦中b¦c"},
		{"fixed 0", pretok.FixedLength{}, "abc", "abc"},
		{"metaspace", pretok.Metaspace{Replacement: '▁', Split: true}, "▁a▁▁b", "▁a¦▁¦▁b"},
		{"metaspace whole", pretok.Metaspace{Replacement: '▁'}, "▁a▁▁b", "▁a▁▁b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cut(c.x, c.text); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if got := c.x.AppendPieces(nil, ""); len(got) != 0 {
				t.Errorf("pieces of the empty text: %v", got)
			}
			before := []pretok.Piece{{7, 9}}
			if got := c.x.AppendPieces(before, c.text); got[0] != before[0] {
				t.Errorf("dst changed: %v", got)
			}
		})
	}
}

func TestParseBehavior(t *testing.T) {
	for b := pretok.Isolated; b <= pretok.Contiguous; b++ {
		if got, ok := pretok.ParseBehavior(b.String()); !ok || got != b {
			t.Errorf("%v: got %v %t", b, got, ok)
		}
	}
	if _, ok := pretok.ParseBehavior("isolated"); ok {
		t.Error("isolated was taken")
	}
}

func TestFind(t *testing.T) {
	p := mustCompile(t, `(?<=a)b|\Aa`)
	for _, c := range []struct {
		from, start, end int
		ok               bool
	}{{0, 0, 1, true}, {1, 1, 2, true}, {2, 4, 5, true}, {5, 0, 0, false}} {
		start, end, ok := p.Find("abbab", c.from)
		if ok != c.ok || ok && (start != c.start || end != c.end) {
			t.Errorf("from %d: got %d %d %t", c.from, start, end, ok)
		}
	}
}

// One pattern may be used by many at once.
func TestPatternConcurrent(t *testing.T) {
	p := mustCompile(t, published["o200k"])
	s := strings.Repeat("Hello wörld's 1234 中文\n\n  x", 50)
	want := (&pretok.Split{Pattern: p}).AppendPieces(nil, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if got := (&pretok.Split{Pattern: p}).AppendPieces(nil, s); !slices.Equal(got, want) {
					t.Error("another result")
				}
			}
		})
	}
	wg.Wait()
}

func TestAppendPiecesAllocates(t *testing.T) {
	s := strings.Repeat("Hello wörld's 1234 中文\n\n  x", 50)
	var dst []pretok.Piece
	for name, x := range map[string]pretok.Splitter{
		"split": &pretok.Split{Pattern: mustCompile(t, published["o200k"])}, "bert": pretok.Bert{},
		"delimiter": pretok.CharDelimiter{Delimiter: ' '}, "punctuation": pretok.Punctuation{}, "scripts": pretok.UnicodeScripts{},
	} {
		dst = x.AppendPieces(dst[:0], s)
		if n := testing.AllocsPerRun(20, func() { dst = x.AppendPieces(dst[:0], s) }); n >= 1 && !raceEnabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkMatcher(b *testing.B) {
	s := strings.Repeat("func (p *parser) fail(at int) error { return nil } // it's 1234 wörds\n\t\t", 200)
	for _, name := range []string{"gpt2", "cl100k", "o200k"} {
		f, _ := pretok.Lookup(published[name])
		for kind, x := range map[string]pretok.Splitter{"scanner": f, "matcher": &pretok.Split{Pattern: mustCompile(b, published[name])}} {
			b.Run("expr="+name+"/by="+kind, func(b *testing.B) {
				var dst []pretok.Piece
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					dst = x.AppendPieces(dst[:0], s)
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := pretok.Compile(published["kimi"]); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleCompile() {
	p, err := pretok.Compile(`\d{1,3}(?=(?:\d{3})*\b)`)
	if err != nil {
		panic(err)
	}
	text := "1234567 km"
	for start, end := range p.All(text) {
		fmt.Println(text[start:end])
	}
	// Output:
	// 1
	// 234
	// 567
}

func ExampleSplitter() {
	var s pretok.Splitter = pretok.Bert{}
	text := "It's 5 o'clock."
	for _, p := range s.AppendPieces(nil, text) {
		fmt.Printf("%s ", text[p.Start:p.End])
	}
	// Output: It ' s 5 o ' clock .
}

func ExampleNewSplit() {
	s, err := pretok.NewSplit(`\s+`, pretok.MergedWithNext, false)
	if err != nil {
		panic(err)
	}
	text := "one two  three"
	for _, p := range s.AppendPieces(nil, text) {
		fmt.Printf("%q ", text[p.Start:p.End])
	}
	// Output: "one" " two" "  three"
}
