// SPDX-License-Identifier: Apache-2.0

// Command convert turns requests of one API into requests of another: JSON lines in, JSON lines out.
//
//	go run ./examples/convert -from API -to API [-strict] [-anew] [FILE ...]
//
// The APIs are chat, responses, messages and completions. A record is {"id","body"}: the body is a JSON string that holds
// the exact bytes of the request, or the request itself; "body_b64" holds bytes that are no text. "from" and "to" in a
// record override the flags. The answer is {"id","body","losses":[{"path","why"}]}, or {"id","error":{…}} for a record that
// cannot be converted. With the same API on both sides the bytes are the same, and with -anew equal JSON that was written
// from the fields alone. With -strict a record that would lose something is an error.
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
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("convert", flag.ContinueOnError)
	var c converter
	flags.StringVar(&c.from, "from", "", "API of the bodies: chat, responses, messages or completions")
	flags.StringVar(&c.to, "to", "", "API to convert to")
	flags.BoolVar(&c.strict, "strict", false, "refuse what would lose something")
	flags.BoolVar(&c.anew, "anew", false, "let go of the bytes of the body before encoding")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, name := range []string{c.from, c.to} {
		if _, err := apiOf(name); name != "" && err != nil {
			return err
		}
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
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			if e := enc.Encode(c.record(line)); e != nil {
				return e
			}
		}
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
	}
}
