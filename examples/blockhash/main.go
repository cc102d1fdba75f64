// SPDX-License-Identifier: Apache-2.0

// Command blockhash computes the hashes that serving engines use for the blocks of a prompt. It reads and writes JSON
// lines.
//
//	go run ./examples/blockhash -h
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/kvhash"
)

const usage = `
usage: blockhash -scheme NAME -block N [flags] [FILE ...]

Blockhash computes the hashes by which serving engines name the blocks of a prompt.

Each line of the files, or of stdin, is a JSON object:
  tokens     the ids of the prompt
  scheme, block, seed, salt, lora, model, none_hash, variant
             settings that take precedence over the flags; seed, salt and lora may be numbers
  mm         objects such as images, a list for each block: null, or a list of hashes. A hash is a number or a string;
             dynamo needs 64-bit numbers. An entry may be a pair [hash, offset]: the offset is counted from the start of
             the block, negative if the object began earlier. Only vLLM hashes offsets; entries without them are
             hashed in its variant bare.
  objects    objects by their position in the prompt, instead of mm: [{"hash" or "id","at","len"}], in order
Only tokens is required; null is treated as absent, and other fields are ignored.

Each line of output is {"id","hashes","digests","local","lineage"}:
  hashes     64-bit numbers of the complete blocks as decimal strings, as in the engine's events: signed for sglang
  digests    what the engine chains, in hex, for vLLM, SGLang and trtllm_v2_sha256
  local      local hashes, for dynamo
  lineage    positional lineage hashes in hex, for dynamo with -lineage
A bad record gives {"id","error"}; the others are hashed all the same, and the exit status is 1.

Example:
  echo '{"id":1,"tokens":[0,1,2,3]}' | blockhash -scheme dynamo -block 4
`

func main() { cli.Exit("blockhash", run(os.Args[1:], os.Stdin, os.Stdout)) }

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := cli.NewFlags("blockhash", usage, stdout)
	var s settings
	flags.StringVar(&s.Scheme, "scheme", "", "`name`: "+strings.Join(kvhash.Names(), ", "))
	flags.IntVar(&s.Block, "block", 0, "`tokens` in a block")
	flags.StringVar((*string)(&s.Seed), "seed", "", "vLLM's PYTHONHASHSEED, llm-d's hash seed, Dynamo's seed")
	flags.StringVar((*string)(&s.Salt), "salt", "", "cache salt, Dynamo's cache namespace")
	flags.StringVar((*string)(&s.LoRA), "lora", "", "`name` of the adapter; name=path for vLLM since 0.32, a number for trtllm")
	flags.StringVar(&s.Model, "model", "", "`name` of the model, for llmd")
	flags.StringVar(&s.NoneHash, "none-hash", "", "vLLM's NONE_HASH in `hex`, instead of a seed")
	flags.StringVar(&s.Variant, "variant", "", "`form` of the hashes: eagle (dynamo, sglang), universal (dynamo), lookahead (vLLM with EAGLE), pairs, bare (vLLM before 0.32), blake3 (trtllm); by default the newest")
	lineage := flags.Bool("lineage", false, "dynamo: print lineage hashes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := s.scheme(); s.Scheme != "" && err != nil { // one error rather than one for each record
		e, ok := errors.AsType[*fault](err)
		switch {
		case !ok:
			return err
		case e.name == "scheme":
			return cli.Usagef("-scheme %s%s", e.why, cli.DidYouMean(cli.Near(s.Scheme, kvhash.Names())))
		case e.name != "seed" || s.Seed != "": // a record may specify the seed
			return cli.Usagef("-%s: %s", strings.ReplaceAll(e.name, "_", "-"), e.why)
		}
	}
	records := cli.NewRecords(stdin, flags.Args(), stdout)
	if err := records.Each(func(rec *cli.Record) (any, bool, error) {
		ans := answer(rec.JSON, s, *lineage)
		if ans.Error != "" {
			ans.Error = rec.String() + ": " + ans.Error
		}
		return ans, ans.Error == "", nil
	}); err != nil {
		return err
	}
	return records.Finish()
}

// result is one line of output. Pointers distinguish empty from absent lists.
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

// hash fills in the result of one record.
func (r *record) hash(ans *result, lineage bool) error {
	switch {
	case r.Tokens == nil || string(r.Tokens) == "null":
		return errors.New("no tokens")
	case r.Scheme == "":
		return errors.New("no scheme: use -scheme, or scheme in the record")
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
	hashes := s.AppendBlocks(nil, tokens, r.Block, x)
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
		local := s.AppendLocal(nil, tokens, r.Block, x)
		ans.Local = texts(len(local), func(i int) string { return fmt.Sprint(local[i]) })
		if lineage {
			const n = 16 // bytes of a lineage hash
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
