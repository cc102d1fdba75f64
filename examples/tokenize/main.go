// SPDX-License-Identifier: Apache-2.0

// Command tokenize converts text to token ids and back. It reads and writes JSON lines.
//
//	go run ./examples/tokenize -h
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
)

const usage = `
usage: tokenize -model DIR [-special] [-cache | -offsets] [-stats] [FILE ...]
       tokenize -model DIR -decode [-skip-special] [-stats] [FILE ...]

Tokenize converts text to token ids, or with -decode ids to text. DIR holds a tokenizer.json, a tiktoken rank file, a
tekken.json, a SentencePiece model or a vocabulary; -model mini selects the small tokenizer of this repository.

Each line of the files, or of stdin, is a JSON object: {"id","text"}, or {"id","ids":[...]} with -decode. Other fields are
ignored.

Each line of output is {"id","ids"}; with -offsets also "offsets", the first byte and the end of each token in the text.
With -decode it is {"id","text","deltas"}; the deltas are the text that a stream returns after each id and at the end. A
bad record gives {"id","error"}; the others are read all the same, and the exit status is 1. With -stats a last line holds
the speed, measured over the texts read.

Example:
  echo '{"id":1,"text":"Hello"}' | tokenize -model mini
`

func main() { cli.Exit("tokenize", run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// command is one run of the program.
type command struct {
	tok         *tokenizers.Tokenizer
	cache       *cache.Cache // nil unless requested
	offsets     bool
	decode      bool
	special     bool
	skipSpecial bool
	stats       *stats // nil unless requested
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := cli.NewFlags("tokenize", usage, stdout)
	var c command
	model := flags.String("model", "", "`directory` of the model, or mini")
	flags.BoolVar(&c.decode, "decode", false, "convert ids to text")
	flags.BoolVar(&c.special, "special", false, "add the special tokens of the model, such as BOS")
	flags.BoolVar(&c.skipSpecial, "skip-special", false, "with -decode, omit special tokens")
	flags.BoolVar(&c.offsets, "offsets", false, "print the bytes of the text that each token represents")
	withCache := flags.Bool("cache", false, "encode through the prefix cache, which gives the same ids, and print its counters to stderr")
	withStats := flags.Bool("stats", false, "print a last line with times")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *withCache && (c.offsets || c.decode) {
		return cli.Usagef("-cache returns only ids: it excludes -offsets and -decode")
	}
	files, err := cli.Model("model", *model)
	if err != nil {
		return err
	}
	start := time.Now()
	if c.tok, err = tokenizers.Load(files, nil); err != nil {
		return cli.InModel(*model, err)
	}
	if *withCache {
		if c.cache, err = cache.New(c.tok, nil); err != nil {
			return err
		}
		if why := c.cache.Err(); why != nil {
			fmt.Fprintln(stderr, "tokenize: cache disabled:", why)
			c.cache = nil
		}
	}
	if *withStats {
		c.stats = &stats{load: time.Since(start)}
	}
	records := cli.NewRecords(stdin, flags.Args(), stdout)
	if err := records.Each(func(rec *cli.Record) (any, bool, error) {
		ans := c.record(rec.JSON)
		return ans, ans.Error == "", nil
	}); err != nil {
		return err
	}
	if c.cache != nil {
		s := c.cache.Stats()
		fmt.Fprintf(stderr, "tokenize: cache: %+v\n", s)
	}
	if c.stats != nil {
		if err := records.Print(map[string]any{"stats": c.stats.measure(c.tok, c.special)}); err != nil {
			return err
		}
	}
	return records.Finish()
}

// output is one line of output. Pointers distinguish empty from absent fields.
type output struct {
	ID      json.RawMessage `json:"id"`
	IDs     *[]uint32       `json:"ids,omitempty"`
	Offsets *[][2]int       `json:"offsets,omitempty"`
	Text    *string         `json:"text,omitempty"`
	Deltas  *[]string       `json:"deltas,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func (c *command) record(line []byte) output {
	var rec struct {
		ID   json.RawMessage
		Text *string
		IDs  *[]uint32
	}
	err := json.Unmarshal(line, &rec)
	ans := output{ID: rec.ID}
	switch {
	case err != nil:
		ans.Error = err.Error()
	case c.decode && rec.IDs == nil:
		ans.Error = "no ids"
	case c.decode:
		c.decodeRecord(*rec.IDs, &ans)
	case rec.Text == nil:
		ans.Error = "no text"
	default:
		c.encodeRecord(*rec.Text, &ans)
		if c.stats != nil {
			c.stats.texts = append(c.stats.texts, *rec.Text)
		}
	}
	return ans
}

func (c *command) encodeRecord(text string, ans *output) {
	ids := []uint32{}
	switch {
	case c.offsets:
		var e tokenizers.Encoding
		err := c.tok.Encode(&e, []tokenizers.Segment{{Text: text, Trusted: true}}, &tokenizers.EncodeOptions{AddSpecial: c.special, Offsets: true})
		if err != nil {
			ans.Error = err.Error()
			return
		}
		ids = append(ids, e.IDs...)
		pairs := make([][2]int, len(e.Offsets))
		for i, o := range e.Offsets {
			pairs[i] = [2]int{o.Start, o.End}
		}
		ans.Offsets = &pairs
	case c.cache != nil:
		before, after := c.tok.AddedSpecial()
		if c.special {
			ids = append(ids, before...)
		}
		ids = c.cache.AppendEncode(ids, "", text)
		if c.special {
			ids = append(ids, after...)
		}
	case c.special:
		ids = c.tok.AppendEncodeSpecial(ids, text)
	default:
		ids = c.tok.AppendEncode(ids, text)
	}
	ans.IDs = &ids
}

func (c *command) decodeRecord(ids []uint32, ans *output) {
	for _, id := range ids {
		if _, ok := c.tok.Token(id); !ok {
			ans.Error = fmt.Sprintf("no token has the id %d", id)
			return
		}
	}
	text := string(c.tok.AppendDecode(nil, ids, c.skipSpecial))
	deltas := make([]string, 0, len(ids)+1)
	s := c.tok.NewStream(c.skipSpecial, nil)
	var buf []byte
	for _, id := range ids {
		buf = s.Append(buf[:0], id)
		deltas = append(deltas, string(buf))
	}
	if buf = s.Finish(buf[:0]); len(buf) > 0 {
		deltas = append(deltas, string(buf))
	}
	ans.Text, ans.Deltas = &text, &deltas
}
