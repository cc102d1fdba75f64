// SPDX-License-Identifier: Apache-2.0

// Command render converts requests to prompts with a model's chat template. It reads and writes JSON lines.
//
//	go run ./examples/render -h
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/tokenizers/prompt"
)

const usage = `
usage: render -model DIR [-segments] [-now TIME] [FILE ...]

Render converts requests to prompts with the chat template of a model. DIR is the model's directory; -model mini selects
the small tokenizer of this repository, with ChatML.

Each line of the files, or of stdin, is a JSON object:
  id    printed with the result
  api   chat, responses or messages; chat if absent
  body  the request: a JSON string with its exact bytes, or the request itself

Each line of output is {"id","prompt","ids","spans","losses","breakpoints","faults"}; empty lists other than ids and spans
are omitted:
  spans        {"path","kind","bytes":[a,b],"tokens":[a,b],"at"}: the bytes of the prompt and the ids that print the part
               of the conversation at path, in its OpenAI form. A token on the border of two spans is in both. The field
               at is the path of the part in the body, if it is one block or tool.
  losses       {"path","why"}: what the prompt omits or moves
  breakpoints  {"path","byte","tokens","ttl","scope"}: positions up to which the request asks to cache its prompt, in
               bytes and whole tokens, and for how many seconds
  faults       {"path","why"}: breakpoints that cannot be honored
A bad record gives {"id","error"}; the others are rendered all the same, and the exit status is 1.

Example:
  echo '{"id":1,"body":{"model":"m","messages":[{"role":"user","content":"Hi"}]}}' | render -model mini
`

func main() { cli.Exit("render", run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// command is one run of the program.
type command struct {
	model    *prompt.Model
	segments bool
	now      func() time.Time
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := cli.NewFlags("render", usage, stdout)
	c := command{now: time.Now}
	model := flags.String("model", "", "`directory` of the model, or mini")
	flags.BoolVar(&c.segments, "segments", false, "encode what the request contains without control tokens")
	flags.Func("now", "the `time` that templates may print, such as 2026-01-31T12:00:00Z; now by default", func(s string) error {
		t, err := time.Parse(time.RFC3339, s)
		c.now = func() time.Time { return t }
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := cli.Model("model", *model)
	if err != nil {
		return err
	}
	if c.model, err = prompt.Load(files, nil); err != nil {
		return cli.InModel(*model, err)
	}
	fmt.Fprintln(stderr, "render: template:", c.model.Source())

	records := cli.NewRecords(stdin, flags.Args(), stdout)
	if err := records.Each(func(rec *cli.Record) (any, bool, error) {
		ans := c.record(rec.JSON)
		return ans, ans.Error == "", nil
	}); err != nil {
		return err
	}
	return records.Finish()
}
