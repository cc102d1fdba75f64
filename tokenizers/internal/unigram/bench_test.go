// SPDX-License-Identifier: Apache-2.0

package unigram

import (
	"os"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/reference"
)

// BenchmarkAppend encodes the words of texts of 16 KB. Cold forgets all words before each.
func BenchmarkAppend(b *testing.B) {
	x := reference.Load(b, "t5-small-unigram")
	m, err := New(x.Vocab, x.Scores, Options{Unk: x.Unk})
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"go", "prose"} {
		data, err := os.ReadFile("../mini/corpus/" + kind + ".txt")
		if err != nil {
			b.Fatal(err)
		}
		text := string(data[:min(len(data), 16<<10)])
		fields := strings.Fields(text)
		for k, f := range fields {
			fields[k] = "▁" + f
		}
		for _, cache := range []string{"cold", "warm"} {
			b.Run("text="+kind+"/cache="+cache, func(b *testing.B) {
				var st State
				var dst []uint32
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if cache == "cold" {
						b.StopTimer()
						st.Reset()
						b.StartTimer()
					}
					dst = dst[:0]
					for _, w := range fields {
						dst = m.Append(dst, w, 0, len(w), &st)
					}
				}
			})
		}
	}
	for _, c := range []string{"a", "▁", "=", "中", "a "} {
		b.Run("text=megabyte/of="+c, func(b *testing.B) {
			w := strings.Repeat(c, 1<<20/len(c))
			var st State
			var dst []uint32
			b.SetBytes(int64(len(w)))
			for b.Loop() {
				dst = m.Append(dst[:0], w, 0, len(w), &st)
			}
		})
	}
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if _, err := New(x.Vocab, x.Scores, Options{Unk: x.Unk}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
