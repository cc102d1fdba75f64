// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// benchModels returns the mini tokenizer and those reference models that are there.
func benchModels(b *testing.B) map[string]*Tokenizer {
	b.Helper()
	models := map[string]*Tokenizer{"mini": miniTokenizer(b)}
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	for _, name := range []string{"gpt2", "qwen3", "gpt-oss"} {
		if t, err := Load(os.DirFS(filepath.Join(dir, "tok", name)), nil); err == nil {
			models[name] = t
		}
	}
	return models
}

// benchTexts returns code (this module's Go files) and prose.
func benchTexts(b *testing.B) map[string]string {
	b.Helper()
	var code, prose strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "tables.go" {
			return err
		}
		to := &code
		switch filepath.Ext(path) {
		case ".go":
		case ".txt":
			if strings.HasPrefix(d.Name(), "hf") || strings.HasPrefix(d.Name(), "go") {
				return nil
			}
			to = &prose
		case ".md":
			to = &prose
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		to.Write(data)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return map[string]string{"code": code.String(), "prose": prose.String()}
}

func BenchmarkEncode(b *testing.B) {
	texts := benchTexts(b)
	models := benchModels(b)
	for _, name := range slices.Sorted(maps.Keys(models)) {
		tok := models[name]
		for _, kind := range []string{"code", "prose"} {
			text := texts[kind]
			for _, cache := range []string{"cold", "warm"} {
				b.Run("model="+name+"/text="+kind+"/cache="+cache, func(b *testing.B) {
					ids := tok.AppendEncode(nil, text)
					b.SetBytes(int64(len(text)))
					b.ReportAllocs()
					for b.Loop() {
						if cache == "cold" {
							b.StopTimer()
							tok.ResetCache()
							b.StartTimer()
						}
						ids = tok.AppendEncode(ids[:0], text)
					}
					b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
				})
			}
		}
	}
}

func BenchmarkEncodeParallel(b *testing.B) {
	tok, text := miniTokenizer(b), benchTexts(b)["code"]
	b.SetBytes(int64(len(text)))
	b.RunParallel(func(pb *testing.PB) {
		var ids []uint32
		for pb.Next() {
			ids = tok.AppendEncode(ids[:0], text)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	models := benchModels(b)
	for _, name := range slices.Sorted(maps.Keys(models)) {
		tok := models[name]
		ids := tok.AppendEncode(nil, benchTexts(b)["code"])
		b.Run("model="+name+"/whole", func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = tok.AppendDecode(buf[:0], ids, true)
			}
			b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
		})
		b.Run("model="+name+"/stream", func(b *testing.B) {
			var buf []byte
			s := tok.NewStream(true, nil)
			b.ReportAllocs()
			for b.Loop() {
				for _, id := range ids {
					buf = s.Append(buf[:0], id)
				}
			}
			b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	for name, file := range map[string]string{
		"mini":    filepath.Join("mini", tokenizerFile),
		"gpt2":    filepath.Join(dir, "tok", "gpt2", tokenizerFile),
		"qwen3":   filepath.Join(dir, "tok", "qwen3", tokenizerFile),
		"gpt-oss": filepath.Join(dir, "tok", "gpt-oss", tokenizerFile),
	} {
		b.Run("model="+name, func(b *testing.B) {
			data, err := os.ReadFile(file)
			if err != nil {
				b.Skip(err)
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
