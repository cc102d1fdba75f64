// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEncodeBatch(t *testing.T) {
	tok := miniTokenizer(t)
	cutter := NewCutter(tok)
	var texts []string
	for i := range 300 {
		texts = append(texts, strings.Repeat(sample, i%7)+fmt.Sprint(i))
	}
	texts[40] = strings.Repeat(sample, 2000)
	texts[41] = strings.Repeat("世", 50_000) // no cut
	texts[299] = strings.Repeat(sample, 1000)
	for _, workers := range []int{0, 1, 3, 1000} {
		for _, c := range []*Cutter{nil, cutter} {
			for _, framed := range []bool{false, true} {
				opt := BatchOptions{Workers: workers, Framed: framed, Cutter: c}
				got, err := tok.EncodeBatch(context.Background(), texts, opt)
				if err != nil || len(got) != len(texts) {
					t.Fatal(len(got), err)
				}
				for i, s := range texts {
					want := tok.AppendEncode(nil, s)
					if framed {
						want = tok.AppendEncodeFramed(nil, s)
					}
					if !slices.Equal(got[i], want) {
						t.Fatalf("%+v: text %d differs", opt, i)
					}
				}
			}
		}
	}
	if steps := batchSteps(texts[40:41], BatchOptions{Cutter: cutter}); len(steps) < 4 {
		t.Errorf("a long text was cut into %v", steps)
	}
	if out, err := tok.EncodeBatch(context.Background(), nil, BatchOptions{}); len(out) != 0 || err != nil {
		t.Error(out, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if out, err := tok.EncodeBatch(ctx, texts, BatchOptions{}); out != nil || !errors.Is(err, context.Canceled) {
		t.Error(len(out), err)
	}
	ids, err := tok.EncodeParallel(ctx, []uint32{1}, texts[40], BatchOptions{Cutter: cutter})
	if len(ids) != 1 || !errors.Is(err, context.Canceled) {
		t.Error(len(ids), err)
	}
	ids, err = tok.EncodeParallel(context.Background(), []uint32{1}, texts[40], BatchOptions{Cutter: cutter})
	if err != nil || !slices.Equal(ids, tok.AppendEncode([]uint32{1}, texts[40])) {
		t.Error(len(ids), err)
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
				if _, err := tok.EncodeBatch(context.Background(), texts, BatchOptions{Workers: workers}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("texts=one/workers=%d", workers), func(b *testing.B) {
			cutter := NewCutter(tok)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := tok.EncodeBatch(context.Background(), []string{text}, BatchOptions{Workers: workers, Cutter: cutter}); err != nil {
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
	ids, err := tok.EncodeBatch(context.Background(), []string{"You are", "a helpful", "assistant."}, BatchOptions{})
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
