// SPDX-License-Identifier: Apache-2.0

// Command tokenizers compares weft's tokenizers with Hugging Face's Rust code (npm's tokenizers, in a node process) and
// with other Go libraries, in one run: one round of each, then the next round.
//
//	go run ./cmd/tokenizers [-tok qwen3,gpt2] [-rounds 5] [-npm DIR] [-peers=false] [-check]
//
// It prints tables with the goals, and per measurement a line of JSON that begins with "{". With -check it exits with 1
// when a goal is missed. Needs the shared test data (WEFT_SHARED). Without node only the peers are compared, without
// -peers only node. README.md describes the measurements.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/remote"
	"github.com/weft-go/weft/tokenizers"
)

func main() {
	var o options
	names := flag.String("tok", "", "folders under shared/tok, comma-separated; default: all that load")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the median of their ratios counts")
	npm := flag.String("npm", "", "folder with node_modules/tokenizers; default: one in the user's cache, installed when missing")
	peers := flag.Bool("peers", true, "measure the other Go libraries too")
	lines := flag.Bool("json", true, "print a line of JSON per measurement")
	check := flag.Bool("check", false, "exit with 1 when a goal is missed")
	root := flag.String("root", "../..", "the root of the repository; the test data is beside it, or where WEFT_SHARED says")
	flag.Parse()
	if err := run(&o, *names, *npm, *peers, *root); err != nil {
		fmt.Fprintln(os.Stderr, "tokenizers:", err)
		os.Exit(1)
	}
	fmt.Print(o.tables())
	missed := 0
	for _, row := range o.rows {
		if !row.Met {
			missed++
		}
		if *lines {
			data, err := json.Marshal(row)
			if err != nil {
				panic(err)
			}
			fmt.Println(string(data))
		}
	}
	fmt.Printf("%d measurements, %d goals missed\n", len(o.rows), missed)
	if *check && missed > 0 {
		os.Exit(1)
	}
}

// run measures every tokenizer.
func run(o *options, names, npm string, peers bool, root string) error {
	runtime.GOMAXPROCS(1)
	shared := bench.Shared(root)
	if shared == "" {
		return errors.New("no shared test data: set WEFT_SHARED")
	}
	var err error
	if o.texts, err = loadTexts(root); err != nil {
		return err
	}
	if dir, err := remote.Install(npm); err != nil {
		fmt.Println("without Hugging Face:", err)
	} else {
		o.npm = dir
		if o.hf, err = remote.StartHF(dir); err != nil {
			return err
		}
		defer func() { o.hf.Close() }()
	}
	if peers {
		tmp, err := os.MkdirTemp("", "peers")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		o.peers = filepath.Join(tmp, "peers")
		build := exec.Command("go", "build", "-o", o.peers, ".")
		build.Dir = filepath.Join(root, "internal", "bench", "peers")
		build.Env = append(os.Environ(), "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building peers: %w: %.500s", err, out)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(shared, "tok", "*", "tokenizer.json"))
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, npm tokenizers %s, %d rounds, CPU time, one thread\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, remote.Version, o.rounds)
	for _, t := range o.texts {
		fmt.Printf("%s: %d documents, %d bytes\n", t.name, len(t.docs), t.bytes)
	}
	wanted := strings.Split(names, ",")
	for _, file := range dirs {
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
		fmt.Fprintln(os.Stderr, name)
		if err := o.family(name, dir, tok); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
