// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers"
)

// Random insertions and deletions of short texts with common beginnings, against a list.
func TestTrie(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a", "b", "\x00", "\xff"}[r.IntN(4)])
		}
		return b.String()
	}
	kinds := []tokenizers.Boundary{1, 1, 3} // anything may follow, a letter must
	for range 300 {
		parent := &node{}
		var list []*node
		for range 60 {
			if len(list) > 0 && r.IntN(4) == 0 {
				k := r.IntN(len(list))
				parent.unlink(list[k])
				list = slices.Delete(list, k, k+1)
			} else {
				n := &node{text: word(1 + r.IntN(6)), kind: kinds[r.IntN(3)]}
				if r.IntN(3) == 0 {
					n.runs = []run{{len(n.text), false}}
				}
				have := parent.link(n)
				twin := slices.IndexFunc(list, func(x *node) bool { return x.text == n.text && sameRuns(x.runs, n.runs) })
				switch {
				case twin >= 0 && have != list[twin]:
					t.Fatal("a text is there twice")
				case twin < 0 && have != n:
					t.Fatal("not linked")
				case twin < 0:
					list = append(list, n)
				}
			}
			count := 0
			parent.kids.Load().each(func(n *node) {
				count++
				if !slices.Contains(list, n) {
					t.Fatal("a node is still there")
				}
			})
			if count != len(list) {
				t.Fatalf("%d nodes, want %d", count, len(list))
			}
			// Look-ups, the text in pieces.
			text, trusted := word(r.IntN(9)), r.IntN(3) > 0
			k := r.IntN(len(text) + 1)
			segs := []tokenizers.Segment{{}, {Text: text[:k], Trusted: trusted}, {}, {Text: text[k:], Trusted: trusted}}
			var want *node
			for _, n := range list {
				if strings.HasPrefix(text, n.text) && (n.runs == nil) == trusted && (want == nil || len(n.text) > len(want.text)) &&
					n.kind.Before(follows(text, len(n.text))) {
					want = n
				}
			}
			got, next := parent.find(newCursor(segs))
			if got != want || want != nil && next.left != len(text)-len(want.text) {
				t.Fatalf("%q: found %+v, want %+v", text, got, want)
			}
		}
	}
	dead := &node{}
	dead.kill()
	if dead.link(&node{text: "x"}) != nil {
		t.Error("a dead node got a child")
	}
}

func TestRuns(t *testing.T) {
	untrusted := []tokenizers.Offset{{Start: 2, End: 4}, {Start: 4, End: 6}, {Start: 8, End: 9}}
	for _, c := range []struct {
		from, to int
		want     []run
	}{
		{0, 2, nil}, {6, 8, nil}, {2, 6, []run{{4, false}}}, {3, 5, []run{{2, false}}},
		{0, 10, []run{{2, true}, {6, false}, {8, true}, {9, false}, {10, true}}}, {5, 9, []run{{1, false}, {3, true}, {4, false}}},
	} {
		if got := runsOf(untrusted, c.from, c.to); !slices.Equal(got, c.want) {
			t.Errorf("[%d, %d): %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// follows returns the byte at n, or -1.
func follows(text string, n int) int {
	if n < len(text) {
		return int(text[n])
	}
	return -1
}
