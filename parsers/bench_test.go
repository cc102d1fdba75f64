// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// pieces cuts text into chunks of n bytes.
func pieces(text string, n int) [][]byte {
	var out [][]byte
	for len(text) > 0 {
		k := min(n, len(text))
		out = append(out, []byte(text[:k]))
		text = text[k:]
	}
	return out
}

// BenchmarkAppend feeds text and a call with an argument of 20 KB, for every family.
func BenchmarkAppend(b *testing.B) {
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog; then it rests. ", 350)
	code := strings.Repeat("if a < b { return x[i] } // next line\n", 550)
	for _, d := range dialects(b) {
		if d.mute {
			continue
		}
		for _, c := range []struct{ what, text string }{
			{"plain", d.say + prose + d.unsay},
			{"arg20k", d.head("run", "cmd", "string") + d.quote(code) + d.tail("cmd", "string")},
		} {
			for _, size := range []int{4, 64} {
				b.Run(fmt.Sprintf("family=%s/text=%s/chunk=%d", d.name, c.what, size), func(b *testing.B) {
					p, err := parsers.New(d.name, &parsers.Options{Tools: tools(), Start: parsers.StartTurn})
					if err != nil {
						b.Fatal(err)
					}
					chunks := pieces(c.text, size)
					var evs []event.Event
					b.SetBytes(int64(len(c.text)))
					b.ReportAllocs()
					for b.Loop() {
						p.Reset()
						for _, ch := range chunks {
							evs, _ = p.Append(evs[:0], ch)
						}
						evs, _ = p.Finish(evs[:0], event.None)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(chunks)), "ns/chunk")
				})
			}
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, name := range []string{"hermes", "qwen3_coder", "harmony"} {
		b.Run("family="+name, func(b *testing.B) {
			opt := &parsers.Options{Tools: tools(), TokenID: func(text string) (uint32, bool) { return uint32(len(text)), text != "" }}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parsers.New(name, opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
