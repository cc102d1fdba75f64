// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/mini"
)

// turns returns an agent conversation of n bytes or a little more: a long system prompt, then user turns, tool
// calls and their results, made of this module's files. Each turn ends with its marker.
func turns(tb testing.TB, n int) []string {
	tb.Helper()
	var src strings.Builder
	for _, pattern := range []string{"../*.go", "../*/*.go", "../README.md"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				tb.Fatal(err)
			}
			src.Write(b)
		}
	}
	text := src.String()
	pos := 0
	take := func(k int) string {
		if pos+k > len(text) {
			pos = 0
		}
		pos += k
		return text[pos-k : pos]
	}
	out := []string{"<|im_start|>system\nYou are a coding agent. # Tools\n" + strings.ToValidUTF8(take(n/5), "") + "<|im_end|>\n"}
	size := len(out[0])
	for i := 0; size < n; i++ {
		s := fmt.Sprintf("<|im_start|>user\nStep %d: %s<|im_end|>\n<|im_start|>assistant\n<think>\n%s\n</think>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"f%d.go\"}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n%s\n</tool_response><|im_end|>\n",
			i, strings.ToValidUTF8(take(60), ""), strings.ToValidUTF8(take(300), ""), i, strings.ToValidUTF8(take(500+(i*977)%6000), ""))
		out = append(out, s)
		size += len(s)
	}
	return out
}

const generate = "<|im_start|>assistant\n"

func benchTokenizer(b *testing.B) (string, *tokenizers.Tokenizer) {
	b.Helper()
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if tok, err := tokenizers.Load(os.DirFS(filepath.Join(dir, "tok", "qwen3")), nil); err == nil {
		return "qwen3", tok
	}
	return "mini", mini.Load()
}

func BenchmarkPrompt(b *testing.B) {
	name, tok := benchTokenizer(b)
	list := turns(b, 157<<10)
	text := strings.Join(list, "") + generate
	before := strings.Join(list[:len(list)-1], "") + generate
	segs := make([]tokenizers.Segment, len(list))
	for i, s := range list {
		segs[i] = tokenizers.Segment{Text: s, Trusted: true}
	}
	ids := tok.AppendEncode(nil, text)
	b.Logf("%s: %d bytes, %d tokens, %d segments", name, len(text), len(ids), len(segs))
	newCache := func() *cache.Cache {
		c, err := cache.New(tok, nil)
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	c := newCache()
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			f()
			for b.Loop() {
				f()
			}
		})
	}
	b.Run("cold", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			b.StopTimer()
			tok.ResetCache()
			b.StartTimer()
			ids = tok.AppendEncode(ids[:0], text)
		}
	})
	run("warm", func() { ids = tok.AppendEncode(ids[:0], text) })
	run("hit", func() { ids = c.AppendEncode(ids[:0], "", text) })
	run("hit/form=segments", func() { ids = c.AppendEncodeSegments(ids[:0], "", segs) })
	one := []tokenizers.Segment{{Text: text, Trusted: true}}
	var cuts []cache.Prefix
	run("lookup", func() { cuts = c.AppendPrefixes(cuts[:0], "", one) })
	b.Run("store", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			b.StopTimer()
			c := newCache()
			b.StartTimer()
			ids = c.AppendEncode(ids[:0], "", text)
		}
	})
	b.Run("grow", func(b *testing.B) { // the last turn is new
		b.SetBytes(int64(len(text)))
		i := 0
		c.AppendEncode(nil, "", before)
		for b.Loop() {
			b.StopTimer()
			i++
			next := text[:len(before)-len(generate)] + fmt.Sprintf("<|im_start|>user\nStep %d", i) + list[len(list)-1]
			b.StartTimer()
			ids = c.AppendEncode(ids[:0], "", next)
		}
		b.ReportMetric(float64(len(list[len(list)-1])), "new-B")
	})
	for _, n := range []int{1, 2, 8, 16} {
		c, err := cache.New(tok, &cache.Options{Spacing: n << 10})
		if err != nil {
			b.Fatal(err)
		}
		run(fmt.Sprintf("hit/spacing=%dKB", n), func() { ids = c.AppendEncode(ids[:0], "", text) })
	}
}
