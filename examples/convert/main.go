// SPDX-License-Identifier: Apache-2.0

// Command convert turns requests of one API into requests of another: JSON lines in, JSON lines out.
//
//	go run ./examples/convert -from API -to API [-strict] [-anew] [FILE ...]
//
// The APIs are chat, responses, messages and completions. A record is {"id","body"}: the body is a JSON string that holds
// the exact bytes of the request, or the request itself; "body_b64" holds bytes that are no text. "from" and "to" in a
// record override the flags. The answer is {"id","body","losses":[{"path","why"}]}, or {"id","error":{…}} for a record that
// cannot be converted; an error in the record itself has its line, and the file if one was named. With the same API on both sides the bytes are the same, and with -anew equal JSON that was written
// from the fields alone. With -strict a record that would lose something is an error.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil // it has been printed
	} else if err != nil {
		return err
	}
	for _, name := range []string{c.from, c.to} {
		if _, err := apiOf(name); name != "" && err != nil {
			return err
		}
	}
	out := bufio.NewWriter(stdout)
	defer out.Flush()
	if flags.NArg() == 0 {
		return c.lines(out, stdin, "")
	}
	for _, name := range flags.Args() {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = c.lines(out, f, name)
		f.Close()
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// lines converts the records of a file; its name is "" for stdin.
func (c *converter) lines(out *bufio.Writer, in io.Reader, name string) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	lines := bufio.NewReaderSize(in, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			ans := c.record(line)
			if e := ans.Error; e != nil && e.Kind == "record" {
				e.Line, e.File = n, name
			}
			if e := enc.Encode(ans); e != nil {
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
