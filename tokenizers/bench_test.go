// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"gpt2", "qwen3"} {
		b.Run("model="+name, func(b *testing.B) {
			data, err := os.ReadFile(filepath.Join(sharedDir(b), name, tokenizerFile))
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
