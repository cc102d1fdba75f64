// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/prompt"
	"github.com/weft-go/weft/tokenizers/template"
)

// BenchmarkMemo measures the next request of a conversation of about 100,000 tokens, stage by stage, with a Memo that
// knows the previous one.
func BenchmarkMemo(b *testing.B) {
	for _, m := range []struct{ name, dir, format string }{
		{"qwen3", "qwen3", ""}, {"gpt-oss", "gpt-oss", ""}, {"deepseek", "hybrid-deepseek-v3", "deepseek_v3_2"},
	} {
		fsys := os.DirFS(filepath.Join(sharedDir(), "tok", m.dir))
		model, err := prompt.Load(fsys, nil)
		if err != nil {
			b.Skipf("test data not there: %v (set WEFT_SHARED)", err)
		}
		if m.format != "" {
			tok, err := tokenizers.Load(fsys, nil)
			check(b, err)
			tpl, err := template.Lookup(m.format, nil)
			check(b, err)
			model, err = prompt.New(tpl, &prompt.Options{Family: m.format, Tokenizer: tok})
			check(b, err)
		}
		a := newAgent("messages", 280_000)
		first := a.body()
		a.turn()
		second := a.body()
		memo := prompt.NewMemo(0)
		turn := memo.Turn("", "", "")
		take := func(b *testing.B, body []byte, after func(stage int)) {
			after(0)
			req, err := turn.Decode(wire.Messages, body, nil)
			check(b, err)
			after(1)
			p, err := turn.Render(model, req, noon)
			check(b, err)
			after(2)
			p.IDs()
			after(3)
		}
		for i, stage := range []string{"Decode", "Render", "IDs"} {
			b.Run("template="+m.name+"/stage="+stage, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(second)))
				for b.Loop() {
					b.StopTimer()
					memo = prompt.NewMemo(0)
					turn = memo.Turn("", "", "")
					take(b, first, func(int) {})
					turn = memo.Turn("", "", "")
					take(b, second, func(at int) {
						switch at {
						case i:
							b.StartTimer()
						case i + 1:
							b.StopTimer()
						}
					})
					b.StartTimer()
				}
			})
		}
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
