// SPDX-License-Identifier: Apache-2.0

// Command prefix reports where and why the prompts of requests differ, to find out why a prefix cache misses.
//
//	go run ./examples/prefix -h
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/preamble"
)

const usage = `
usage: prefix [-api API] [-order tools|system] [-strip] [-relocate] [FILE ...]

Prefix compares the prompt of each request with the one before it, and reports where and why they differ, to find
out why a prefix cache misses. Run it again with -strip or -relocate to see their effect.

The files, or stdin, hold JSON values, on one line or many. Each is the body of a request, or an object:
  id    printed with the result
  api   chat, responses or messages; if absent, -api or inferred from the body
  path  of a recorded request, such as /v1/messages; instead of api
  body  the request: a JSON string with its exact bytes, or the request itself

Each line of output, for one pair, is
{"a","b","relation","offset","shared","lost","cause","class","rule","paths","excerpts","text"}:
  a, b                  ids, or names of files
  offset, shared, lost  bytes of the canonical prompt; see package preamble
  paths                 of the two requests, each with the byte in the text there
  excerpts              of the two prompts; may contain user data
  text                  a summary in words
A bad request gives {"id","error"}; the next one is compared with the last good one, and the exit status is 1.

Example:
  prefix first.json second.json
`

func main() { cli.Exit("prefix", run(os.Args[1:], os.Stdin, os.Stdout)) }

// output is one line of output.
type output struct {
	A        json.RawMessage `json:"a"`
	B        json.RawMessage `json:"b"`
	Relation string          `json:"relation"`
	Offset   int64           `json:"offset"`
	Shared   int64           `json:"shared"`
	Lost     int64           `json:"lost"`
	Cause    string          `json:"cause"`
	Class    string          `json:"class"`
	Rule     string          `json:"rule"`
	Paths    [2]string       `json:"paths"`
	Excerpts [2]string       `json:"excerpts"`
	Text     string          `json:"text"`
}

// bad is the line of output for a request that cannot be compared.
type bad struct {
	ID    json.RawMessage `json:"id"`
	Error string          `json:"error"`
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := cli.NewFlags("prefix", usage, stdout)
	api := flags.String("api", "", "`API` of requests that do not specify it: chat, responses or messages; by default inferred from the fields")
	order := flags.String("order", "tools", "what the template prints `first`: tools or system")
	strip := flags.Bool("strip", false, "remove the billing header")
	relocate := flags.Bool("relocate", false, "like -strip; also move text that depends on the user, directory or day to the end of the system text, and deferred tools after the others")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *api != "" {
		if err := cli.OneOf("API", *api, "chat", "responses", "messages"); err != nil {
			return err
		}
	}
	if err := cli.OneOf("order", *order, "tools", "system"); err != nil {
		return err
	}
	p := preamble.Prompt{SystemFirst: *order == "system"}
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false)
	var last *block.Request
	var lastID json.RawMessage
	total, failed := 0, 0
	err := each(stdin, flags.Args(), func(id json.RawMessage, own string, body []byte, err error) error {
		total++
		if err != nil {
			failed++
			return out.Encode(bad{id, err.Error()})
		}
		if own = cmp.Or(own, *api); own == "" {
			own = guess(body)
		}
		r, err := decode(own, body)
		switch {
		case err != nil:
		case *relocate:
			_, err = preamble.Stabilize(r, &preamble.Options{Relocate: true, DeferredLast: true, Prompt: p})
		case *strip:
			_, err = preamble.Stabilize(r, nil)
		}
		if err != nil {
			failed++
			return out.Encode(bad{id, err.Error()})
		}
		if last != nil {
			b := preamble.Compare(last, r, &preamble.CompareOptions{Prompt: p})
			err = out.Encode(output{
				lastID, id, b.Relation.String(), b.Offset, b.Offset, b.A.Bytes - b.Offset, cmp.Or(b.Cause, "none"), cmp.Or(b.Class, "static"), b.Rule,
				[2]string{position(b.A), position(b.B)}, [2]string{b.A.Excerpt, b.B.Excerpt}, b.String(),
			})
		}
		last, lastID = r, id
		return err
	})
	switch {
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%d of %d requests have errors", failed, total)
	case total < 2:
		return errors.New("need at least two requests to compare")
	}
	return nil
}

// position returns the path of a side and the offset in its text, or "" at the end of the prompt.
func position(s preamble.Side) string {
	if s.Path == "" {
		return ""
	}
	return fmt.Sprintf("%s+%d", s.Path, s.At)
}
