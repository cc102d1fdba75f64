// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weft-go/weft/tokenizers/internal/reference"
)

func realChars(tb testing.TB, name string) *Chars {
	tb.Helper()
	x := reference.Load(tb, name)
	var list []Merge
	for _, g := range x.Merges {
		list = append(list, Merge{g[0], g[1], g[2]})
	}
	m, err := NewChars(x.Vocab, list, CharsOptions{Unk: &x.Unk, FuseUnk: x.Fuse, ByteFallback: x.Bytes,
		ContinuingSubwordPrefix: x.Prefix, EndOfWordSuffix: x.Suffix})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// metaspace applies the normalization that the files have before the model.
func metaspace(name, s string) string {
	s = strings.ReplaceAll(s, " ", "▁")
	if name != "tinyllama" && strings.HasPrefix(s, "▁") {
		return s
	}
	return "▁" + s
}

// Lines with added tokens in them are left to the tests of package tokenizers.
func TestCharsGolden(t *testing.T) {
	for _, name := range []string{"tinyllama", "mistral-v1-spm", "mistral-v3-spm"} {
		t.Run(name, func(t *testing.T) {
			m := realChars(t, name)
			var st State
			n := 0
			for _, l := range reference.Golden(t, name) {
				if l.C == "special" || l.C == "chat" || l.Text == "" || strings.HasPrefix(l.Text, "▁") || strings.Contains(l.Text, "[TOOL_CALLS]") {
					continue
				}
				n++
				w := metaspace(name, l.Text)
				got, ends := m.AppendEnds(nil, nil, w, 0, len(w), &st)
				if !slices.Equal(got, l.IDs) {
					t.Errorf("%.100q: %v, want %v", l.Text, got, l.IDs)
					continue
				}
				if len(ends) != len(got) || ends[len(ends)-1] != len(w) {
					t.Errorf("%.100q: ends %v", l.Text, ends)
				}
				if again := m.Append(nil, w, 0, len(w), &st); !slices.Equal(again, got) {
					t.Errorf("%.100q: AppendEnds %v, Append %v", l.Text, got, again)
				}
				exact, exactEnds := m.mergeEnds(nil, nil, w, 0, &st)
				if !slices.Equal(exact, got) || !slices.Equal(exactEnds, ends) {
					t.Errorf("%.100q: in parts %v %v, whole %v %v", l.Text, got, ends, exact, exactEnds)
				}
				if len(l.Offsets) == 2*len(got) && utf8.ValidString(l.Text) {
					for k, end := range ends {
						// A ▁ put in front is not in the text, and the file gives it the range of the first character.
						// Bytes of a character end where it does.
						for end < len(w) && !utf8.RuneStart(w[end]) {
							end++
						}
						if c := utf8.RuneCountInString(w[:end]) - len([]rune(w)) + len([]rune(l.Text)); c != 0 && c != l.Offsets[2*k+1] {
							t.Errorf("%.100q: id %d ends at %d, want %d", l.Text, k, c, l.Offsets[2*k+1])
						}
					}
				}
			}
			t.Log(n, "lines")
		})
	}
}

// CLIP's vocabulary marks the ends of words. Only lines in ASCII are compared, where bytes map to
// themselves.
func TestCharsGoldenSuffix(t *testing.T) {
	m := realChars(t, "clip")
	cut := regexp.MustCompile(`'s|'t|'re|'ve|'m|'ll|'d|[a-z]+|[0-9]|[^\sa-z0-9]+`)
	var st State
	n := 0
	for _, l := range reference.Golden(t, "clip") {
		if l.C == "special" || l.C == "chat" || strings.Contains(l.Text, "<|") ||
			strings.ContainsFunc(l.Text, func(r rune) bool { return r > '~' || r < ' ' && !strings.ContainsRune("\t\n\r", r) }) {
			continue
		}
		n++
		for range 2 {
			var got []uint32
			for _, w := range cut.FindAllString(strings.ToLower(l.Text), -1) {
				start := len(got)
				got = m.Append(got, w, 0, len(w), &st)
				ids, ends := m.AppendEnds(nil, nil, w, 0, len(w), &st)
				if !slices.Equal(ids, got[start:]) || ends[len(ends)-1] != len(w) {
					t.Errorf("%q: %v %v, without ends %v", w, ids, ends, got[start:])
				}
			}
			if !slices.Equal(got, l.IDs) {
				t.Errorf("%.100q: %v, want %v", l.Text, got, l.IDs)
			}
		}
	}
	t.Log(n, "lines")
}
