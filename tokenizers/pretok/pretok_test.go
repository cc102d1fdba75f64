// SPDX-License-Identifier: Apache-2.0

package pretok_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/pretok"
)

var funcs = map[string]pretok.Func{
	"gpt2": pretok.GPT2, "cl100k": pretok.CL100K, "qwen2": pretok.Qwen2, "qwen3.5": pretok.Qwen35,
	"cl100k base": pretok.CL100KBase, "clip": pretok.CLIP,
	"o200k": pretok.O200K, "tekken": pretok.Tekken, "kimi": pretok.Kimi,
	"deepseek digits": pretok.DeepSeekDigits, "deepseek cjk": pretok.DeepSeekCJK, "deepseek words": pretok.DeepSeekWords,
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
}

// The cost of a long run must be linear: each of these would take minutes otherwise.
func TestLongRuns(t *testing.T) {
	const n = 1 << 20
	for name, f := range funcs {
		for _, unit := range []string{"a", "A", " ", "\n", "=", "1", "中", "\u0301", " \n", "Aa", "中A", "'s", "\x00", "\xff"} {
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
