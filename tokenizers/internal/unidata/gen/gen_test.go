// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The committed tables are what the generator makes of its inputs.
func TestRegenerate(t *testing.T) {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "..", "shared")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "tok", "_unicode", "onig_classes.json"))
	if err != nil {
		t.Skip("no reference data (set WEFT_SHARED):", err)
	}
	var classes map[string][][2]int
	if err := json.Unmarshal(raw, &classes); err != nil {
		t.Fatal(err)
	}
	want, err := generate(classes)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "tables.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
		t.Error("tables.go is not what gen makes: run go generate ./internal/unidata")
	}
}
