// SPDX-License-Identifier: Apache-2.0

// Command tokdiff looks for texts that weft's tokenizers and Hugging Face's Rust code (npm's tokenizers, in a node process)
// treat differently.
//
//	go run ./cmd/tokdiff [-tok qwen3,gpt2] [-n 20000] [-seed 1] [-npm DIR]
//
// For each directory below shared/tok that loads, it draws n texts and n/4 lists of ids. Compared are ids, ids with the
// frame, ids by segments, offsets, and the decoded text, whole, streamed and without special tokens. It prints the
// first differences of each kind, cut down as far as they go, and exits with 1 when there are any. Without node or test
// data it prints a message and exits with status 0. The same seed draws the same texts.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/remote"
	"github.com/weft-go/weft/tokenizers"
)

func main() {
	names := flag.String("tok", "", "folders under shared/tok, comma-separated; default: all that load")
	n := flag.Int("n", 20000, "texts for each tokenizer")
	seed := flag.Uint64("seed", 1, "what the draws begin with")
	show := flag.Int("show", 3, "differences to print for each tokenizer and kind")
	npm := flag.String("npm", "", "folder with node_modules/tokenizers; default: one in the user's cache, installed when missing")
	root := flag.String("root", "../..", "the root of the repository; the test data is beside it, or where WEFT_SHARED says")
	flag.Parse()
	shared := bench.Shared(*root)
	if shared == "" {
		fmt.Println("SKIPPED: no shared test data: set WEFT_SHARED")
		return
	}
	dir, err := remote.Install(*npm)
	if err != nil {
		fmt.Println("SKIPPED:", err)
		return
	}
	same, err := run(shared, dir, *names, *n, *show, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tokdiff:", err)
		os.Exit(1)
	}
	if !same {
		os.Exit(1)
	}
}

// batch is the number of texts sent to the reference at once.
const batch = 200

// limit is the timeout of the reference for one batch.
const limit = time.Minute

// run compares every tokenizer and reports whether there was no difference.
func run(shared, npm, names string, n, show int, seed uint64) (same bool, err error) {
	files, err := filepath.Glob(filepath.Join(shared, "tok", "*", "tokenizer.json"))
	if err != nil {
		return false, err
	}
	same = true
	wanted := strings.Split(names, ",")
	for _, file := range files {
		dir := filepath.Dir(file)
		name := filepath.Base(dir)
		if names != "" && !slices.Contains(wanted, name) {
			continue
		}
		tok, err := tokenizers.Load(os.DirFS(dir), nil)
		if err != nil {
			fmt.Printf("%s: %v\n", name, err)
			continue
		}
		hf, err := remote.StartHF(npm)
		if err != nil {
			return false, err
		}
		c, err := newComparer(tok, hf, file)
		if err == nil {
			err = c.run(newDrawer(seed, tok), n)
		}
		hf.Close()
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		same = c.print(name, show) && same
	}
	return same, nil
}
