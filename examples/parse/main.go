// SPDX-License-Identifier: Apache-2.0

// Command parse runs the parsers over recorded model output: JSON lines in, JSON lines out.
//
//	go run ./examples/parse [-family NAME] [-policy default|dynamo|strict] [-stats] [-split whole|bytes|N] [FILE ...]
//
// A record holds the family, the output as "text", "chunks" (strings) or "chunks_b64" (base64, for cuts inside a
// character), and optionally "tools" in OpenAI form, "tool_choice", "parallel_tool_calls", "init" and "channels"; other
// members are ignored. With "parallel_tool_calls": false every call but the first is aborted.
// The answer lists the events in order, adjacent ones of a kind merged. A record that cannot be run gives an error line.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "parse:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("parse", flag.ContinueOnError)
	cfg := config{}
	flags.StringVar(&cfg.family, "family", "", "family of records that name none")
	flags.StringVar(&cfg.policy, "policy", "default", "policy profile: default, dynamo or strict")
	flags.StringVar(&cfg.split, "split", "", "cut the output anew: whole, bytes, or pieces of N bytes")
	stats := flags.Bool("stats", false, "time the parser and print a last line with the figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return err
	}
	in := stdin
	if flags.NArg() > 0 {
		var files []io.Reader
		for _, name := range flags.Args() {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			files = append(files, f)
		}
		in = io.MultiReader(files...)
	}
	out := bufio.NewWriter(stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	var bench bencher
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			j, ans := cfg.record(line)
			if e := enc.Encode(ans); e != nil {
				return e
			}
			if *stats && j != nil {
				bench.add(j)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if *stats {
		if err := enc.Encode(map[string]any{"stats": bench.measure()}); err != nil {
			return err
		}
	}
	return out.Flush()
}
