// SPDX-License-Identifier: Apache-2.0

package normal_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-go/weft/tokenizers/internal/normal"
)

var benchTexts = []struct{ name, text string }{
	{"ascii", "The quick brown fox, 42 of them, jumps over the lazy dog; and then it sleeps.\n"},
	{"latin", "Où est l'été passé? Ça va être très agréable, même à Besançon, où naquit Hugo.\n"},
	{"cjk", "我们的目标是让每个人都能使用人工智能。東京都に住んでいます、2024年から。\n"},
	{"korean", "한국어 문장은 이렇게 생겼습니다. 띄어쓰기가 있습니다.\n"},
	{"marks", "e\u0301te\u0301 a\u0323\u0302 नमस्ते दुनिया\n"},
}

func BenchmarkRun(b *testing.B) {
	steps := []struct {
		name string
		step normal.Step
	}{
		{"Bert", bert}, {"BertCased", normal.Bert(true, true, false, false)}, {"Lowercase", normal.Lowercase()},
		{"NFC", normal.NFC()}, {"NFD", normal.NFD()}, {"NFKC", normal.NFKC()}, {"Replace", normal.Replace(" ", "\u2581")},
	}
	if s := shared(b); s != nil {
		steps = append(steps, struct {
			name string
			step normal.Step
		}{"Precompiled", s})
	}
	for _, s := range steps {
		for _, x := range benchTexts {
			in := normal.Text{B: []byte(strings.Repeat(x.text, 16<<10/len(x.text)))}
			from := normal.Origins(nil, in.B)
			for _, track := range []string{"no", "yes"} {
				b.Run("step="+s.name+"/text="+x.name+"/origins="+track, func(b *testing.B) {
					if track == "yes" {
						in.From = from
					}
					var buf normal.Buffer
					b.ReportAllocs()
					b.SetBytes(int64(len(in.B)))
					for b.Loop() {
						normal.Run([]normal.Step{s.step}, in, &buf)
					}
				})
			}
		}
	}
}

// shared returns the charsmap of T5, which is nmt_nfkc, or nil.
func shared(b *testing.B) normal.Step {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "tok", "t5-small-unigram", "tokenizer.json"))
	if err != nil {
		b.Log("no charsmap of a real model:", err)
		return nil
	}
	var v struct {
		Normalizer struct {
			Charsmap string `json:"precompiled_charsmap"`
		}
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		b.Fatal(err)
	}
	m, err := base64.StdEncoding.DecodeString(v.Normalizer.Charsmap)
	if err != nil {
		b.Fatal(err)
	}
	s, _, err := normal.Precompiled(m)
	if err != nil {
		b.Fatal(err)
	}
	return s
}
