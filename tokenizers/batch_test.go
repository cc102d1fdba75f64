// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/testsize"
)

func TestEncodeBatch(t *testing.T) {
	tok := miniTokenizer(t)
	split, err := tok.Splitter()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := range 300 {
		texts = append(texts, strings.Repeat(sample, i%7)+fmt.Sprint(i))
	}
	texts[40] = strings.Repeat(sample, 2000)
	texts[41] = strings.Repeat("世", 50_000) // no cut
	texts[299] = strings.Repeat(sample, 1000)
	for _, special := range []bool{false, true} {
		encode, plain := tok.EncodeBatch, tok.AppendEncode
		if special {
			encode, plain = tok.EncodeBatchSpecial, tok.AppendEncodeSpecial
		}
		var want [][]uint32
		for _, s := range texts {
			want = append(want, plain(nil, s))
		}
		for _, workers := range testsize.Pick([]int{0, 3}, []int{0, 1, 3, 1000}, []int{0, 1, 3, 1000}) {
			got, err := encode(context.Background(), texts, workers)
			if err != nil || len(got) != len(texts) {
				t.Fatal(len(got), err)
			}
			for i := range texts {
				if !slices.Equal(got[i], want[i]) {
					t.Fatalf("%d workers, special %t: text %d differs", workers, special, i)
				}
			}
		}
	}
	if steps := batchSteps(texts[40:41], split); len(steps) < 4 {
		t.Errorf("a long text was cut into %v", steps)
	}
	if out, err := tok.EncodeBatch(context.Background(), nil, 0); len(out) != 0 || err != nil {
		t.Error(out, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if out, err := tok.EncodeBatch(ctx, texts, 0); out != nil || !errors.Is(err, context.Canceled) {
		t.Error(len(out), err)
	}
}

func BenchmarkEncodeBatch(b *testing.B) {
	tok := miniTokenizer(b)
	text := strings.Repeat(sample, 10_000)
	texts := strings.SplitAfter(text, "</tool_call>")
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("texts=many/workers=%d", workers), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tok.EncodeBatch(context.Background(), texts, workers); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("texts=one/workers=%d", workers), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := tok.EncodeBatch(context.Background(), []string{text}, workers); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleTokenizer_EncodeBatch() {
	tok, err := miniOnce()
	if err != nil {
		panic(err)
	}
	ids, err := tok.EncodeBatch(context.Background(), []string{"You are", "a helpful", "assistant."}, 0)
	if err != nil {
		panic(err)
	}
	for _, x := range ids {
		fmt.Println(len(x))
	}
	// Output:
	// 2
	// 2
	// 2
}
