// SPDX-License-Identifier: Apache-2.0

// Command convert converts requests of one API to another. It reads and writes JSON lines.
//
//	go run ./examples/convert -h
package main

import (
	"io"
	"os"

	"github.com/weft-go/weft/examples/internal/cli"
)

const usage = `
usage: convert -from API -to API [-engine NAME] [-strict] [-reencode] [FILE ...]

Convert converts requests of one API to another. The APIs are chat, responses, messages and completions.

Each line of the files, or of stdin, is a JSON object:
  id        printed with the result
  body      the request: a JSON string with its exact bytes, or the request itself
  body_b64  the request in base64, instead of body
  from, to  APIs that take precedence over the flags

Each line of output is {"id","body","losses":[{"path","why"}]}: the body as a JSON string, and what the other API cannot
express. With the same API on both sides the bytes are the same. A bad record gives {"id","error":{"kind","message",...}};
the others are converted all the same, and the exit status is 1.

Example:
  echo '{"id":1,"body":{"model":"m","messages":[{"role":"user","content":"Hi"}]}}' | convert -from chat -to messages
`

func main() { cli.Exit("convert", run(os.Args[1:], os.Stdin, os.Stdout)) }

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := cli.NewFlags("convert", usage, stdout)
	var c converter
	flags.StringVar(&c.from, "from", "", "`API` of the requests: chat, responses, messages or completions")
	flags.StringVar(&c.to, "to", "", "`API` to convert to")
	flags.StringVar(&c.engine, "engine", "", "`name` of the engine that reads requests converted to chat: vllm, sglang, llama.cpp, ollama or dynamo")
	flags.BoolVar(&c.strict, "strict", false, "treat losses as an error")
	flags.BoolVar(&c.reencode, "reencode", false, "write the request from its decoded fields, even if the API is the same")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, f := range []struct{ flag, api string }{{"-from", c.from}, {"-to", c.to}} {
		if f.api == "" {
			continue // each record must specify the API
		}
		if err := cli.OneOf("API for "+f.flag, f.api, apis...); err != nil {
			return err
		}
	}
	if c.engine != "" {
		if err := cli.OneOf("engine", c.engine, "vllm", "sglang", "llama.cpp", "ollama", "dynamo"); err != nil {
			return err
		}
	}
	first := true
	records := cli.NewRecords(stdin, flags.Args(), stdout)
	if err := records.Each(func(rec *cli.Record) (any, bool, error) {
		ans, missing := c.record(rec.JSON)
		if missing != "" && first { // one error rather than one for each record
			return nil, false, cli.Usagef("no API to convert %s: use -%[1]s, or %[1]q in each record", missing)
		}
		first = false
		if e := ans.Error; e != nil && e.Kind == "record" {
			e.Line, e.File = rec.Line, rec.File
		}
		return ans, ans.Error == nil, nil
	}); err != nil {
		return err
	}
	return records.Finish()
}
