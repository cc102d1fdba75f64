// SPDX-License-Identifier: Apache-2.0

// Command tokenize turns text into token ids and back: JSON lines in, JSON lines out.
//
//	go run ./examples/tokenize -model DIR [-special] [-cache] [-offsets] [-stats] [FILE ...]
//	go run ./examples/tokenize -model DIR -decode [-skip-special] [FILE ...]
//
// DIR holds a tokenizer.json, a tiktoken rank file or a tekken.json; the name mini is the small tokenizer that comes
// with the module. A record is {"id","text"} and gives {"id","ids"}, with -offsets also "offsets", a pair of byte
// positions for each id; -cache encodes through the prefix cache, which gives the same ids, and a last line to stderr
// says how often it helped. With -decode a record is {"id","ids"} and gives {"id","text","deltas"}, where
// deltas are what a stream shows after each id and at the end. Other members are ignored. A record that cannot be
// run gives {"id","error"}, and the command fails at its end. With -stats a last line says how fast it was, measured in
// this process on the texts read.
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
	"time"

	"github.com/weft-go/weft/examples/internal/lines"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/mini"
)

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "tokenize:", err)
		os.Exit(1)
	}
}

// command is one run of the program.
type command struct {
	tok         *tokenizers.Tokenizer
	cache       *cache.Cache // nil if not asked for
	offsets     bool
	decode      bool
	special     bool
	skipSpecial bool
	stats       *stats // nil if not asked for
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tokenize", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var c command
	model := flags.String("model", "", "folder with tokenizer.json, or mini")
	flags.BoolVar(&c.decode, "decode", false, "read ids, write text")
	flags.BoolVar(&c.special, "special", false, "add the ids that the model puts around a text")
	flags.BoolVar(&c.skipSpecial, "skip-special", false, "with -decode: leave special tokens out")
	flags.BoolVar(&c.offsets, "offsets", false, "say which bytes of the text each id stands for")
	withCache := flags.Bool("cache", false, "encode through the prefix cache")
	withStats := flags.Bool("stats", false, "add a last line with times")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *model == "" {
		return errors.New("which model? Give -model DIR or -model mini")
	}
	if *withCache && (c.offsets || c.decode) {
		return errors.New("the cache knows ids only: -cache does not go with -offsets or -decode")
	}
	start := time.Now()
	var err error
	if *model == "mini" {
		c.tok, err = tokenizers.LoadFS(mini.FS())
	} else {
		c.tok, err = tokenizers.Load(*model)
	}
	if err != nil {
		return err
	}
	if *withCache {
		if c.cache, err = cache.New(c.tok, nil); err != nil {
			return err
		}
		if why := c.cache.Off(); why != "" {
			fmt.Fprintln(stderr, "tokenize: nothing is cached:", why)
			c.cache = nil
		}
	}
	if *withStats {
		c.stats = &stats{load: time.Since(start)}
	}
	out := bufio.NewWriter(stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	total, failed := 0, 0
	if err := lines.Each(stdin, flags.Args(), func(line []byte) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		ans := c.record(line)
		if total++; ans.Error != "" {
			failed++
		}
		return enc.Encode(ans)
	}); err != nil {
		return err
	}
	if c.cache != nil {
		s := c.cache.Stats()
		fmt.Fprintf(stderr, "tokenize: cache: %+v\n", s)
	}
	if c.stats != nil {
		if err := enc.Encode(map[string]any{"stats": c.stats.measure(c.tok, c.special)}); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d records have errors", failed, total)
	}
	return nil
}

// answer is one line of output. The pointers tell an empty result from none.
type answer struct {
	ID      json.RawMessage `json:"id"`
	IDs     *[]uint32       `json:"ids,omitempty"`
	Offsets *[][2]int       `json:"offsets,omitempty"`
	Text    *string         `json:"text,omitempty"`
	Deltas  *[]string       `json:"deltas,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func (c *command) record(line []byte) answer {
	var rec struct {
		ID   json.RawMessage
		Text *string
		IDs  *[]uint32
	}
	err := json.Unmarshal(line, &rec)
	ans := answer{ID: rec.ID}
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

func (c *command) encodeRecord(text string, ans *answer) {
	ids := []uint32{}
	switch {
	case c.offsets:
		var e tokenizers.Encoding
		err := c.tok.Encode(&e, []tokenizers.Segment{{Text: text, Trusted: true}}, tokenizers.Options{Frame: c.special, Offsets: true})
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
		before, after := c.tok.Frame()
		if c.special {
			ids = append(ids, before...)
		}
		ids = c.cache.AppendEncode(ids, "", text)
		if c.special {
			ids = append(ids, after...)
		}
	case c.special:
		ids = c.tok.AppendEncodeFramed(ids, text)
	default:
		ids = c.tok.AppendEncode(ids, text)
	}
	ans.IDs = &ids
}

func (c *command) decodeRecord(ids []uint32, ans *answer) {
	for _, id := range ids {
		if _, ok := c.tok.Token(id); !ok {
			ans.Error = fmt.Sprintf("no token has the id %d", id)
			return
		}
	}
	text := string(c.tok.AppendDecode(nil, ids, c.skipSpecial))
	deltas := make([]string, 0, len(ids)+1)
	s := c.tok.NewStream(c.skipSpecial)
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
