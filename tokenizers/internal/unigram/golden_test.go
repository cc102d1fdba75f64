// SPDX-License-Identifier: Apache-2.0

package unigram

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/reference"
)

// Only lines that the normalizers of the files leave alone are compared; package tokenizers compares all.
func TestGolden(t *testing.T) {
	for _, name := range []string{"t5-small-unigram", "xlnet-unigram"} {
		t.Run(name, func(t *testing.T) {
			x := reference.Load(t, name)
			m, err := New(x.Vocab, x.Scores, Options{Unk: x.Unk})
			if err != nil {
				t.Fatal(err)
			}
			var st State
			n := 0
			for _, l := range reference.Golden(t, name) {
				if l.C == "special" || l.C == "chat" || strings.ContainsFunc(l.Text, func(r rune) bool { return r < ' ' || r > '~' }) ||
					strings.Contains(l.Text, "``") || strings.Contains(l.Text, "''") || strings.Contains(l.Text, "<") {
					continue
				}
				n++
				for range 2 {
					var got []uint32
					for _, w := range strings.Fields(l.Text) {
						w = "▁" + w
						start := len(got)
						got = m.Append(got, w, 0, len(w), &st)
						ids, ends := m.AppendEnds(nil, nil, w, 0, len(w), &st)
						if !slices.Equal(ids, got[start:]) || len(ends) != len(ids) || ends[len(ends)-1] != len(w) {
							t.Errorf("%q: %v %v, without ends %v", w, ids, ends, got[start:])
						}
					}
					if !slices.Equal(got, l.IDs) {
						t.Errorf("%.100q: %v, want %v", l.Text, got, l.IDs)
					}
				}
			}
			t.Log(n, "lines")
		})
	}
}
