// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The generator makes the committed tokenizer from the committed texts.
func TestRegenerate(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a tokenizer")
	}
	dir := filepath.Join("..", "..", "mini")
	files, err := build(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
			t.Errorf("%s is not what train makes of the corpus: run go generate ./mini", name)
		}
	}
}
