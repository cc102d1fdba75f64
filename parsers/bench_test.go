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

var benchFamilies = []struct{ name, head, tail string }{
	{"hermes", `<tool_call>{"name":"run","arguments":{"cmd":"`, `"}}</tool_call>`},
	{"qwen3_coder", "<tool_call>\n<function=run>\n<parameter=cmd>\n", "\n</parameter>\n</function>\n</tool_call>"},
	{"harmony", "<|channel|>commentary to=functions.run<|message|>{\"cmd\":\"", `"}<|call|>`},
	{"kimi_k3", `<|open|>call tool="run"<|sep|><|open|>argument key="cmd" type="string"<|sep|>`, "<|close|>argument<|sep|><|close|>call<|sep|>"},
}

func BenchmarkFeed(b *testing.B) {
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog; then it rests. ", 350)
	code := strings.Repeat("if a < b { return x[i] } // next line\\n", 550)
	for _, f := range benchFamilies {
		for _, c := range []struct{ what, text string }{
			{"plain", prose},
			{"arg20k", f.head + code + f.tail},
		} {
			for _, size := range []int{4, 64} {
				b.Run(fmt.Sprintf("family=%s/text=%s/chunk=%d", f.name, c.what, size), func(b *testing.B) {
					p, err := parsers.New(f.name, &parsers.Options{Tools: tools()})
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
							evs, _ = p.Feed(evs[:0], ch)
						}
						evs, _ = p.Close(evs[:0])
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(chunks)), "ns/chunk")
				})
			}
		}
	}
}
