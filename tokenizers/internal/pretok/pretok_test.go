// SPDX-License-Identifier: Apache-2.0

package pretok_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

var funcs = map[string]pretok.Func{
	"gpt2": pretok.GPT2, "cl100k": pretok.CL100K, "qwen2": pretok.Qwen2, "qwen3.5": pretok.Qwen35,
	"cl100k base": pretok.CL100KBase, "clip": pretok.CLIP,
	"o200k": pretok.O200K, "tekken": pretok.Tekken, "kimi": pretok.Kimi,
	"deepseek digits": pretok.DeepSeekDigits, "deepseek cjk": pretok.DeepSeekCJK, "deepseek words": pretok.DeepSeekWords,
	"deepseek": pretok.DeepSeek, "falcon": pretok.FalconWords, "spelled digits": pretok.SpelledDigits,
}

func pieces(f pretok.Func, s string) []string {
	var out []string
	for i := 0; i < len(s); {
		j := f(s, i)
		out = append(out, s[i:j])
		i = j
	}
	return out
}

func TestCuts(t *testing.T) {
	for _, c := range []struct{ f, text, want string }{
		// The cuts are separated by ¦.
		{"gpt2", "Hello world  it's  ", "Hello¦ world¦ ¦ it¦'s¦  "},
		{"gpt2", "I'LL we'll 12345 a\u00b2", "I¦'¦LL¦ we¦'ll¦ 12345¦ a¦\u00b2"},
		{"gpt2", "a\n\n  b", "a¦\n\n ¦ b"},
		{"gpt2", "x\u3000\u3000y", "x¦\u3000¦\u3000¦y"},
		{"qwen2", "I'LL say 123\n\n  x", "I¦'LL¦ say¦ ¦1¦2¦3¦\n\n¦ ¦ x"},
		{"qwen2", "a'\u017f b''s", "a¦'\u017f¦ b¦''¦s"},
		{"qwen2", "\tfoo(bar);\r\n\treturn", "\tfoo¦(bar¦);\r\n¦\treturn"},
		{"qwen2", "\u00e9te\u0301x", "\u00e9te¦\u0301x"},
		{"qwen2", " \n x", " \n¦ x"},
		{"qwen2", "a   ", "a¦   "},
		{"qwen2", "!!!\n\n?", "!!!\n\n¦?"},
		{"qwen3.5", "\u00e9te\u0301x \u0301!", "\u00e9te\u0301x¦ \u0301¦!"},
		{"cl100k", "12345 1,234", "123¦45¦ ¦1¦,¦234"},
		{"cl100k base", "12345 a\n ", "12345¦ a¦\n "},
		{"clip", "<|endoftext|>it's 12<|end", "<|endoftext|>¦it¦'s¦ ¦1¦2¦<|¦end"},
		{"o200k", "HTTPServer camelCase it'S", "HTTPServer¦ camel¦Case¦ it'S"},
		{"o200k", "ABC\u4e2dDEF //\n/x", "ABC\u4e2d¦DEF¦ //\n/¦x"},
		{"o200k", "\u0301ABC", "\u0301¦ABC"},
		{"tekken", "it's 12 Ab", "it¦'s¦ ¦1¦2¦ Ab"},
		{"kimi", "Go语言 go的x 〇", "Go¦语言¦ go¦的¦x¦ ¦〇"},
		{"deepseek digits", "a1234b", "a¦123¦4¦b"},
		{"deepseek cjk", "ab漢字かなx한", "ab¦漢字かな¦x한"},
		{"deepseek", "a=1234 漢字・かな゛x\n5  한5  かな \u0000\u0001一", "a¦=¦123¦4¦ ¦漢字¦・¦かな¦゛¦x¦\n¦5¦ ¦ 한¦5¦  ¦かな¦ ¦\u0000\u0001¦一"},
		{"deepseek words", "#define x()+=\n\u0000\u0001a_b", "#define¦ x¦()+=\n¦\u0000¦\u0001a¦_b"},
	} {
		t.Run(c.f+"/"+c.text, func(t *testing.T) {
			if got := strings.Join(pieces(funcs[c.f], c.text), "¦"); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	const qwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	for _, expr := range []string{qwen2, strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(qwen2)} {
		f, ok := pretok.Lookup(expr)
		if !ok || !slices.Equal(pieces(f, "a 12"), []string{"a", " ", "1", "2"}) {
			t.Errorf("not found: %q", expr)
		}
	}
	if _, ok := pretok.Lookup(qwen2 + "|x"); ok {
		t.Error("found an unknown expression")
	}
	steps := []string{published["ds digits"], published["ds cjk"], published["ds words"]}
	if f, ok := pretok.Lookup(steps...); !ok || !slices.Equal(pieces(f, "12中3"), []string{"12", "中", "3"}) {
		t.Error("not found: three expressions in a row")
	}
	for _, exprs := range [][]string{nil, steps[:2], {strings.Join(steps, "\x00")}} {
		if _, ok := pretok.Lookup(exprs...); ok {
			t.Errorf("found %q", exprs)
		}
	}
}

// The cost of a long run must be linear: each of these would take minutes otherwise.
func TestLongRuns(t *testing.T) {
	n := testsize.Pick(1<<15, 1<<17, 1<<20)
	for name, f := range funcs {
		for _, unit := range []string{"a", "A", " ", "\n", "=", "1", "中", "\u0301", " \n", "Aa", "中A", "'s", "\x00", "\xff", "ー", "ー・", "\u3040"} {
			s := strings.Repeat(unit, n/len(unit))
			total := 0
			for i := 0; i < len(s); {
				j := f(s, i)
				if j <= i || j > len(s) {
					t.Fatalf("%s: cut from %d to %d in a run of %q", name, i, j, unit)
				}
				total += j - i
				i = j
			}
			if total != len(s) {
				t.Errorf("%s: %d of %d bytes of %q", name, total, len(s), unit)
			}
		}
	}
}

// nested cuts with one step after the other.
func nested(s string, steps ...pretok.Func) []string {
	if len(steps) == 0 {
		return []string{s}
	}
	var out []string
	for _, p := range pieces(steps[0], s) {
		out = append(out, nested(p, steps[1:]...)...)
	}
	return out
}

func sameAsSteps(t *testing.T, s string) {
	t.Helper()
	want := nested(s, pretok.DeepSeekDigits, pretok.DeepSeekCJK, pretok.DeepSeekWords)
	if got := pieces(pretok.DeepSeek, s); s != "" && !slices.Equal(got, want) {
		t.Fatalf("%q in one go: %q\nin three steps: %q", s, got, want)
	}
}

// DeepSeek in one go cuts where its three steps do: for all texts of up to four of these characters, which are of each
// class, inside and outside the ranges, and for longer random ones.
func TestDeepSeekIsItsSteps(t *testing.T) {
	chars := strings.Split("a|é|1|²| |\n|\u3000|=|。|\u0301|\x00|\u0378|中|ー|\u3099|゛|・|\u3040|\u30a0|々|龦|\xff|\xe4\xb8", "|")
	var all func(s string, n int)
	all = func(s string, n int) {
		sameAsSteps(t, s)
		for _, c := range chars {
			if n > 0 {
				all(s+c, n-1)
			}
		}
	}
	depth := testsize.Pick(2, 3, 4)
	all("", depth)
	chars = append(chars, "word", "Wort", "eightlet", "123", "  ", "\r\n", "==", "'", "한", "\u30ff", "\u3097\u3098", "😀", "\u2028", "\x7f")
	r := rand.New(rand.NewPCG(7, 3))
	for range testsize.Pick(5000, 20_000, 50_000) {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteString(chars[r.IntN(len(chars))])
		}
		sameAsSteps(t, b.String())
	}
}

func FuzzCuts(f *testing.F) {
	for _, s := range []string{"Hello, world's 123!\r\n\t x", "中文ABCabc'LL\u0301\u00a0\xff\xc3", "  \n  ''ſ//*/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, fn := range funcs {
			if got := strings.Join(pieces(fn, s), ""); got != s {
				t.Fatalf("%s loses text of %q", name, s)
			}
		}
		sameAsSteps(t, s)
	})
}

func ExampleLookup() {
	cut, _ := pretok.Lookup(`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`)
	text := "It's 9:30."
	for i := 0; i < len(text); {
		j := cut(text, i)
		fmt.Printf("%q\n", text[i:j])
		i = j
	}
	// Output:
	// "It"
	// "'s"
	// " 9"
	// ":"
	// "30"
	// "."
}
