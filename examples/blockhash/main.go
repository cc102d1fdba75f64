// SPDX-License-Identifier: Apache-2.0

// Command blockhash names the blocks of prompts as a serving engine does: JSON lines in, JSON lines out.
//
//	go run ./examples/blockhash -scheme S -block N [-seed S] [-salt S] [-lora S] [-model S] [-none-hash HEX]
//	    [-eagle] [-universal] [-bare] [-lineage] [FILE ...]
//
// S is dynamo, vllm_sha256_cbor, vllm_xxhash_cbor, sglang, llmd or trtllm (unverified). A record is {"id","tokens":[…]} with any of the
// members scheme, block, seed, salt, lora, model, none_hash, eagle, universal, bare, which go before the flags, and mm or objects.
// The answer is
//
//	{"id","hashes":["…"],"digests":["…"],"local":["…"],"lineage":["…"]}
//
// hashes are the 64-bit numbers of complete blocks as decimal strings, as the engine's events have them: signed for sglang, unsigned for
// the others. digests are what the engine chains, in hex, for the two vLLM schemes and sglang; local are the local hashes, for
// dynamo; lineage are Dynamo's positional lineage hashes in hex, with -lineage.
//
// mm is a list per block of what the block holds besides tokens: null, or a list of hashes. A hash is a number or a string; dynamo needs
// 64-bit numbers (strings of decimal digits are numbers too), vLLM and llm-d take any string. An entry may be a pair [identifier,
// offset], the offset counted from the start of the block and negative where the image began earlier. Only vLLM hashes offsets;
// identifiers alone are the form of its older versions (the same as -bare). objects says the same by positions in the
// prompt: [{"hash" or "id","at","len"}], in order. The universal form of dynamo needs objects.
//
// seed, salt and lora may be numbers; for trtllm salt and lora are ids. null is as good as no member, other members are ignored. A record
// that cannot be hashed gives {"id","error"}, the error with the line and the member, and the command fails at its end.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weft-go/weft/examples/internal/lines"
	"github.com/weft-go/weft/kvhash"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "blockhash:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("blockhash", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var s settings
	flags.StringVar(&s.Scheme, "scheme", "", "`name`: "+strings.Join(kvhash.Names(), ", "))
	flags.IntVar(&s.Block, "block", 0, "`tokens` in a block")
	flags.StringVar((*string)(&s.Seed), "seed", "", "vLLM's PYTHONHASHSEED, llm-d's hash seed, Dynamo's seed")
	flags.StringVar((*string)(&s.Salt), "salt", "", "cache salt, Dynamo's cache namespace")
	flags.StringVar((*string)(&s.LoRA), "lora", "", "`name` of the adapter")
	flags.StringVar(&s.Model, "model", "", "`name` of the model, for llmd")
	flags.StringVar(&s.NoneHash, "none-hash", "", "vLLM's NONE_HASH in `hex`, in the place of a seed")
	flags.BoolVar(&s.Eagle, "eagle", false, "the engine decodes with EAGLE: dynamo, sglang")
	flags.BoolVar(&s.Universal, "universal", false, "dynamo: objects as frames of 13 bytes")
	flags.BoolVar(&s.Bare, "bare", false, "vLLM: objects without offsets")
	lineage := flags.Bool("lineage", false, "dynamo: print lineage hashes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := s.scheme(); s.Scheme != "" && err != nil {
		e, ok := errors.AsType[*fault](err)
		if !ok || e.name != "seed" || s.Seed != "" { // records may bring the seed
			if ok {
				err = fmt.Errorf("-%s: %s", strings.ReplaceAll(e.name, "_", "-"), e.why)
			}
			return err // rather than with every record
		}
	}
	out := bufio.NewWriter(stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	total, failed, first := 0, 0, ""
	names := flags.Args()
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		n := 0
		each := func(line []byte) error {
			n++
			if len(bytes.TrimSpace(line)) == 0 {
				return nil
			}
			ans := answer(line, s, *lineage)
			if total++; ans.Error != "" {
				where := fmt.Sprintf("line %d", n)
				if name != "" {
					where += " of " + name
				}
				ans.Error = where + ": " + ans.Error
				if failed++; failed == 1 {
					first = where
				}
			}
			return enc.Encode(ans)
		}
		var files []string // none is stdin
		if name != "" {
			files = []string{name}
		}
		if err := lines.Each(stdin, files, each); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d records have errors, the first is %s", failed, total, first)
	}
	return nil
}

// result is a line of output. The pointers tell an empty list from none.
type result struct {
	ID      json.RawMessage `json:"id"`
	Hashes  *[]string       `json:"hashes,omitempty"`
	Digests *[]string       `json:"digests,omitempty"`
	Local   *[]string       `json:"local,omitempty"`
	Lineage *[]string       `json:"lineage,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func answer(line []byte, s settings, lineage bool) result {
	rec := record{settings: s}
	ans := result{}
	err := rec.read(line)
	ans.ID = rec.ID
	if err == nil {
		err = rec.hash(&ans, lineage)
	}
	if err != nil {
		return result{ID: rec.ID, Error: err.Error()}
	}
	return ans
}

// hash fills in the answer to one record.
func (r *record) hash(ans *result, lineage bool) error {
	switch {
	case r.Tokens == nil || string(r.Tokens) == "null":
		return errors.New("no tokens")
	case r.Scheme == "":
		return errors.New("which scheme? Give -scheme, or scheme in the record")
	case r.Block <= 0 || r.Block > maxBlock:
		return fmt.Errorf("the block size is %d, want 1 to %d (-block, or block in the record)", r.Block, maxBlock)
	}
	tokens, err := r.tokens()
	if err != nil {
		return err
	}
	x, err := r.extras(len(tokens))
	if err != nil {
		return err
	}
	s, err := r.scheme()
	if err != nil {
		return err
	}
	hashes := s.AppendBlocksWith(nil, tokens, r.Block, x)
	ans.Hashes = texts(len(hashes), func(i int) string {
		if r.Scheme == "sglang" {
			return fmt.Sprint(int64(hashes[i]))
		}
		return fmt.Sprint(hashes[i])
	})
	if n := s.DigestLen(); n > 8 {
		digests := s.AppendDigests(nil, tokens, r.Block, x)
		ans.Digests = texts(len(hashes), func(i int) string { return hex.EncodeToString(digests[i*n:][:n]) })
	}
	if s.HasLocal() {
		local := s.AppendLocalWith(nil, tokens, r.Block, x)
		ans.Local = texts(len(local), func(i int) string { return fmt.Sprint(local[i]) })
		if lineage {
			const n = kvhash.LineageLen
			list := kvhash.AppendLineage(nil, hashes)
			ans.Lineage = texts(len(list)/n, func(i int) string { return hex.EncodeToString(list[i*n:][:n]) })
		}
	}
	return nil
}

func texts(n int, text func(int) string) *[]string {
	list := make([]string, n)
	for i := range list {
		list[i] = text(i)
	}
	return &list
}
