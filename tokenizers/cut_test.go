// SPDX-License-Identifier: Apache-2.0

package tokenizers

import (
	"path/filepath"
	"testing"
	"time"
)

func TestCutterShared(t *testing.T) {
	dirs, _ := filepath.Glob(filepath.Join(sharedDir(t), "*", "golden.jsonl"))
	for _, f := range dirs {
		tok, err := Load(filepath.Dir(f))
		if err != nil {
			continue
		}
		at := time.Now()
		c := NewCutter(tok)
		t.Log(filepath.Base(filepath.Dir(f)), len(tok.added), c.Off(), c.describe(), time.Since(at))
	}
}
