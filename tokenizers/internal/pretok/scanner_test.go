// SPDX-License-Identifier: Apache-2.0

package pretok_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/pretok"
	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// sameEnds compares a Scanner with its Func.
func sameEnds(t *testing.T, name string, f pretok.Func, s string, room int) {
	t.Helper()
	x := pretok.NewScanner(f)
	ends := make([]int, room)
	for i := 0; i < len(s); {
		n := x.Ends(ends, s, i)
		if n == 0 {
			t.Fatalf("%s: no piece at %d of %q", name, i, s)
		}
		for _, end := range ends[:n] {
			if want := f(s, i); end != want {
				t.Fatalf("%s: a piece of %q begins at %d and ends at %d, want %d", name, s, i, end, want)
			}
			i = end
		}
	}
}

// A Scanner cuts where its Func does: for all short texts of characters of each kind, in the middle and at the end of a longer
// text, and for random ones.
func TestScanner(t *testing.T) { testScanner(t) }

func TestScannerWithoutVectors(t *testing.T) { pretok.WithoutVectors(func() { testScanner(t) }) }

func testScanner(t *testing.T) {
	all := map[string]pretok.Func{"cl100k rust": pretok.CL100KRust}
	for name, f := range funcs {
		all[name] = f
	}
	chars := strings.Split("a|B|1| |\n|/|'|s|(|\t|\x00|é", "|")
	depth := testsize.Pick(2, 3, 4)
	for name, f := range all {
		var walk func(s string, n int)
		walk = func(s string, n int) {
			for _, after := range []string{"", ".", " b", "\n"} {
				sameEnds(t, name, f, "a b c d e f g hi"+s+after, 128)
			}
			for _, c := range chars {
				if n > 0 {
					walk(s+c, n-1)
				}
			}
		}
		walk("", depth)
		r := rand.New(rand.NewPCG(11, 5))
		more := append(slices.Clone(chars), "word", " word", "HTTPServer", "'ll", "'S", "123", "    ", "\r\n", ");\n", "://", "中文", "ſ", "\u00a0", "\u0301", "\xff", strings.Repeat("x", 80), "\n\t\t")
		for range testsize.Pick(1000, 5000, 100_000) {
			var b strings.Builder
			set := more[:len(more)-r.IntN(12)]
			for range r.IntN(120) {
				b.WriteString(set[r.IntN(len(set))])
			}
			sameEnds(t, name, f, b.String(), 128+r.IntN(100))
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add("Hello, world's 123!\r\n\t x  \n  ''ſ//*/ HTTPServer it's''s's 1234567 \n \n\n  foo(bar);\n\t\t}\n", uint8(0))
	f.Fuzz(func(t *testing.T, s string, front uint8) {
		for name, fn := range funcs {
			sameEnds(t, name, fn, strings.Repeat("ab ", int(front%32))+s, 128)
		}
	})
}
