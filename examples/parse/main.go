// SPDX-License-Identifier: Apache-2.0

// Command parse parses recorded model output. It reads and writes JSON lines.
//
//	go run ./examples/parse -h
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/parsers"
)

const usage = `
usage: parse [-family NAME] [-policy POLICY] [-stats] [-split whole|bytes|N] [FILE ...]
       parse -families

Parse reads recorded output of models and prints the reasoning, text and tool calls in it.

Each line of the files, or of stdin, is a JSON object:
  family               a name that -families lists; it takes precedence over -family
  text                 the output, or
  chunks               the output as strings, in the pieces in which it arrived, or
  chunks_b64           the same in base64, for pieces that end inside a character
  tools                the tools of the request, in OpenAI form
  tool_choice          as in OpenAI requests; "none" makes calls text
  parallel_tool_calls  if false, every call but the first is aborted
  init                 {"start": "none"|"reasoning"|"response", "tool": NAME,
                       "output": "native"|"guided_required"|"guided_named"}
  channels             "both", "tools" or "reasoning": what to look for
Only the output is required; other fields are ignored.

Each line of output is {"id","content","reasoning","calls","aborted","events"}. The events are in the order of the output,
adjacent ones of a kind merged. A bad record gives {"id","error"}; the others are parsed all the same, and the exit status
is 1. With -stats a last line holds the times of the parser.

Example:
  echo '{"id":1,"text":"<think>Oslo.</think>Rainy."}' | parse -family hermes
`

func main() { cli.Exit("parse", run(os.Args[1:], os.Stdin, os.Stdout)) }

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := cli.NewFlags("parse", usage, stdout)
	cfg := config{}
	flags.StringVar(&cfg.family, "family", "", "`name` of the family of records without one")
	flags.StringVar(&cfg.policy, "policy", "default", "`policy`: default, dynamo or strict, then words of parsers.Policy that change it, as \"dynamo keep_blanks\"")
	flags.StringVar(&cfg.split, "split", "", "cut the output again: whole, bytes, or a `number` of bytes for each piece")
	stats := flags.Bool("stats", false, "time the parser and print a last line with the figures")
	families := flags.Bool("families", false, "print the name of each family and its aliases, a line each, and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *families {
		return printFamilies(stdout)
	}
	if err := cfg.check(); err != nil {
		return err
	}
	var bench bencher
	records := cli.NewRecords(stdin, flags.Args(), stdout)
	if err := records.Each(func(rec *cli.Record) (any, bool, error) {
		j, ans := cfg.record(rec.JSON)
		if *stats && j != nil {
			bench.add(j)
		}
		return ans, j != nil, nil
	}); err != nil {
		return err
	}
	if *stats {
		if err := records.Print(map[string]any{"stats": bench.measure()}); err != nil {
			return err
		}
	}
	return records.Finish()
}

// printFamilies prints a line for each family: its name, then its aliases.
func printFamilies(w io.Writer) error {
	for _, name := range parsers.Default().Names() {
		g, err := parsers.Default().Lookup(name)
		if err != nil {
			return err
		}
		aliases := slices.Sorted(slices.Values(g.Aliases))
		if _, err := fmt.Fprintln(w, strings.Join(append([]string{name}, aliases...), " ")); err != nil {
			return err
		}
	}
	return nil
}

// withHint replaces the list of all families, in the error for an unknown one, by the flag that prints it.
func withHint(err error) error {
	if _, ok := errors.AsType[*parsers.UnknownFamilyError](err); ok {
		if message, _, lists := strings.Cut(err.Error(), "; known are "); lists {
			return fmt.Errorf("%s; parse -families lists the families", message)
		}
	}
	return err
}
