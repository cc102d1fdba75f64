// SPDX-License-Identifier: Apache-2.0

package wordpiece

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/reference"
)

// bertWords cuts ASCII text as BertPreTokenizer does.
func bertWords(s string) []string {
	var b strings.Builder
	for _, c := range s {
		if c > ' ' && !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
			b.WriteByte(' ')
			b.WriteRune(c)
			b.WriteByte(' ')
		} else {
			b.WriteRune(c)
		}
	}
	return strings.Fields(b.String())
}

// Only lines in ASCII are compared; package tokenizers compares all.
func TestGolden(t *testing.T) {
	for _, name := range []string{"bert-base-cased", "bert-base-uncased"} {
		t.Run(name, func(t *testing.T) {
			x := reference.Load(t, name)
			m, err := New(x.Vocab, Options{Unk: x.Unk, Prefix: x.Prefix, MaxChars: x.Max})
			if err != nil {
				t.Fatal(err)
			}
			var st State
			n := 0
			for _, l := range reference.Golden(t, name) {
				s := strings.NewReplacer("\t", " ", "\n", " ", "\r", " ").Replace(l.Text)
				if l.C == "special" || l.C == "chat" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
					continue
				}
				if strings.HasSuffix(name, "uncased") {
					s = strings.ToLower(s)
				}
				n++
				for range 2 {
					var got []uint32
					for _, w := range bertWords(s) {
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
