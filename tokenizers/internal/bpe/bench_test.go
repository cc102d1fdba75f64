// SPDX-License-Identifier: Apache-2.0

package bpe

import (
	"os"
	"strings"
	"testing"
)

// BenchmarkChars encodes texts as one word each. Cold forgets all words before each text of 16 KB.
func BenchmarkChars(b *testing.B) {
	for _, name := range []string{"tinyllama", "mistral-v3-spm"} {
		b.Run("model="+name, func(b *testing.B) {
			m := realChars(b, name)
			for _, kind := range []string{"go", "prose", "agent"} {
				data, err := os.ReadFile("../mini/corpus/" + kind + ".txt")
				if err != nil {
					b.Fatal(err)
				}
				text := string(data[:min(len(data), 16<<10)])
				w := metaspace(name, text)
				for _, cache := range []string{"cold", "warm"} {
					b.Run("text="+kind+"/cache="+cache, func(b *testing.B) {
						var st State
						dst := m.Append(nil, w, 0, len(w), &st)
						b.SetBytes(int64(len(text)))
						b.ReportAllocs()
						for b.Loop() {
							if cache == "cold" {
								b.StopTimer()
								st.Reset()
								b.StartTimer()
							}
							dst = m.Append(dst[:0], w, 0, len(w), &st)
						}
						b.ReportMetric(float64(len(dst))*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
					})
				}
			}
			for _, c := range []string{"a", "▁", "=", "中", "😀"} {
				b.Run("text=megabyte/of="+c, func(b *testing.B) {
					w := strings.Repeat(c, 1<<20/len(c))
					var st State
					dst := m.Append(nil, w, 0, len(w), &st)
					b.SetBytes(int64(len(w)))
					b.ReportAllocs()
					for b.Loop() {
						dst = m.Append(dst[:0], w, 0, len(w), &st)
					}
				})
			}
		})
	}
}
