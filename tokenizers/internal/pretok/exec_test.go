// SPDX-License-Identifier: Apache-2.0

package pretok

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

// hostile are expressions that a plain backtracking matcher would need quadratic or exponential time for.
var hostile = []string{
	gpt2Expr, cl100kExpr, o200kExpr, kimiExpr, tekkenExpr, deepSeekWordsExpr, cl100kFirstExpr,
	`\s*[\r\n]+`, `\s*[\r\n]|\s`, `(?=(\d{3})+(?!\d))`, `\d{1,3}(?=(?:\d{3})*\b)`, `(?:a|b)*c`, `(?:a*)*b`, `(a+)+b`,
	`(?:(?:a|b)*(?:b|a)*)*c`, `(?>(?:ab|a)*)c|a`, `(?>a*)c|a`, `a*+c|a`, `a(?=.*c)`, `(?!.*c)a`, `.*?b`,
	`(?:.|\n)*?z|.`, strings.Repeat(`(?:a|a)`, 24) + `b`, `\w+@\w+\.com`, `(\w+\s?)*!`, `(?:a++b?)*c`,
	`(?:\s*=)*x`, `a{1,40}b`, `\b\w+\b(?=.*;)`, `(?<=a)a*c`, `(?:[ab]{2,5}?c?)+d`,
}

// The steps for a long run of anything are proportional to its length.
func TestLinear(t *testing.T) {
	n := testsize.Pick(1<<9, 1<<12, 1<<14)
	for i, expr := range hostile {
		if i%testsize.Pick(3, 1, 1) != 0 {
			continue
		}
		p, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, unit := range []string{"a", "A", " ", "=", "\n", "1", "ab", "a ", " \n", "Aa", "中", "\xff"} {
			for _, tail := range []string{"", "x"} {
				m := p.start(strings.Repeat(unit, n/len(unit)) + tail)
				for m.next() {
				}
				if m.steps > 120*n {
					t.Errorf("%q on many %q and %q: %d steps for %d bytes", expr, unit, tail, m.steps, n)
				}
				m.release()
			}
		}
	}
}

// Notes change nothing but the time.
func TestNotes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	units := []string{"a", "b", "c", " ", "\n", "1", "A", "é", "中", "=", "\xff", ";", "z", "!", "ab", "  "}
	for i, expr := range hostile {
		if i%testsize.Pick(3, 1, 1) != 0 {
			continue
		}
		p, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for range testsize.Pick(20, 60, 60) {
			var b strings.Builder
			for range r.IntN(30) {
				b.WriteString(units[r.IntN(len(units))])
			}
			s := b.String()
			var want, got []Piece
			for from, to := range p.All(s) {
				want = append(want, Piece{from, to})
			}
			m := p.start(s)
			m.memo = newMemo(p)
			for m.next() {
				got = append(got, Piece{m.from, m.to})
			}
			m.release()
			if !slices.Equal(got, want) {
				t.Fatalf("%q in %q:\nwith notes %v\nwithout    %v", expr, s, got, want)
			}
		}
	}
}
