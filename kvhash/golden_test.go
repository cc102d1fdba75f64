// SPDX-License-Identifier: Apache-2.0

package kvhash_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash"
)

func count(from, n int) []uint32 {
	t := make([]uint32, n)
	for i := range t {
		t[i] = uint32(from + i)
	}
	return t
}

// Worked numbers of Dynamo's two hashes: tokens 0..11 in blocks of 4.
func TestDynamoVectors(t *testing.T) {
	tests := []struct {
		name       string
		opt        kvhash.Options
		block      int
		tokens     []uint32
		objects    [][]uint64
		seed       uint64
		local, seq []uint64
	}{
		{
			name: "plain", block: 4, tokens: count(0, 12), seed: 1337,
			local: []uint64{9143094415614847814, 12124091508212882195, 1088361764653601668},
			seq:   []uint64{9143094415614847814, 9510318385840434533, 16998148715716822651},
		},
		{
			name: "lora", opt: kvhash.Options{LoRA: "adapter-a"}, block: 4, tokens: count(0, 4), seed: 8842669519798868182,
			local: []uint64{6665157333201000639}, seq: []uint64{6665157333201000639},
		},
		{
			name: "namespace", opt: kvhash.Options{Salt: "tenant-a"}, block: 4, tokens: count(0, 4), seed: 1948188790972764086,
			local: []uint64{17009624042690211646}, seq: []uint64{17009624042690211646},
		},
		{
			name: "lora and namespace", opt: kvhash.Options{LoRA: "adapter-a", Salt: "tenant-a"}, block: 4, tokens: count(0, 4),
			seed: 10790858310771630931, local: []uint64{8269515957840517240}, seq: []uint64{8269515957840517240},
		},
		{
			name: "objects", block: 4, tokens: count(0, 12), objects: [][]uint64{nil, {42}, {9, 7}}, seed: 1337,
			local: []uint64{9143094415614847814, 15267005282704193396, 4582779482327210310},
			seq:   []uint64{9143094415614847814, 6091675887886520276, 14898108143921500865},
		},
		{
			name: "eagle", opt: kvhash.Options{Variant: "eagle"}, block: 2, tokens: count(0, 6), seed: 1337,
			local: []uint64{11646242937812223497, 9948816348502404300},
			seq:   []uint64{11646242937812223497, 16579128339329071142},
		},
		{name: "only a tail", block: 4, tokens: count(0, 3), seed: 1337},
		{name: "nothing", block: 4, seed: 1337},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kvhash.Dynamo(tt.opt)
			require.Equal(t, tt.seed, s.LocalSeed())
			check(t, s, tt.tokens, tt.block, tt.objects, tt.local, tt.seq)
		})
	}
}

// check compares every way to make the hashes with the wanted ones.
func check(t *testing.T, s kvhash.Scheme, tokens []uint32, block int, objects [][]uint64, local, seq []uint64) {
	t.Helper()
	got := s.AppendLocal(nil, tokens, block, &kvhash.Extras{BlockObjects: objects})
	if d := cmp.Diff(local, got); d != "" {
		t.Errorf("local hashes (-want +got):\n%s", d)
	}
	if d := cmp.Diff(seq, kvhash.AppendSequence(nil, got)); d != "" {
		t.Errorf("sequence hashes (-want +got):\n%s", d)
	}
	if len(seq) > 0 {
		for i, l := range got[1:] {
			require.Equal(t, seq[i+1], kvhash.Next(seq[i], l))
		}
	}
	if objects != nil {
		return
	}
	if d := cmp.Diff(seq, s.AppendBlocks(nil, tokens, block, nil)); d != "" {
		t.Errorf("AppendBlocks (-want +got):\n%s", d)
	}
	for cut := 0; cut <= min(len(tokens), 2*block+2); cut++ {
		c := kvhash.NewChain(block, s)
		c.Append(tokens[:cut]...)
		c.Append(tokens[cut:]...)
		if d := cmp.Diff(seq, c.Blocks()); d != "" {
			t.Errorf("chain cut at %d (-want +got):\n%s", cut, d)
		}
	}
}

// golden returns a file of hashes made by independent programs, and skips the test where it is absent.
func golden(t *testing.T, name string, into any) {
	t.Helper()
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "kv", "golden", name))
	if err != nil {
		t.Skip("no golden hashes: set WEFT_SHARED")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields() // a vector of a new sort does not pass unseen
	require.NoError(t, d.Decode(into))
}

// mustScheme is ByName for settings that are good.
func mustScheme(t testing.TB, name string, o *kvhash.Options) kvhash.Scheme {
	t.Helper()
	s, err := kvhash.Lookup(name, o)
	require.NoError(t, err)
	return s
}

// checkDigests compares every way to make digests and their numbers with the wanted ones.
func checkDigests(t *testing.T, s kvhash.Scheme, tokens []uint32, block int, x *kvhash.Extras, digests []string, events []uint64) {
	t.Helper()
	raw := s.AppendDigests(nil, tokens, block, x)
	n := s.DigestLen()
	var got []string
	var numbers []uint64
	for d := range slices.Chunk(raw, n) {
		got = append(got, hex.EncodeToString(d))
		numbers = append(numbers, s.Event(d))
	}
	if digests != nil {
		require.Equal(t, digests, got)
	}
	if events == nil {
		events = numbers
	}
	require.Equal(t, events, numbers)
	require.Equal(t, events, s.AppendBlocks(nil, tokens, block, x))
	if x == nil {
		require.Equal(t, events, s.AppendBlocks(nil, tokens, block, nil))
	}
	for cut := 0; cut <= min(len(tokens), 2*block+2); cut++ {
		c := kvhash.NewChain(block, s)
		c.SetExtras(x)
		c.Append(tokens[:cut]...)
		c.Append(tokens[cut:]...)
		require.Equal(t, events, c.Blocks(), "chain cut at %d", cut)
		if n > 8 {
			require.Equal(t, raw, c.Digests(), "chain cut at %d", cut)
		}
	}
}

func TestGoldenDynamo(t *testing.T) {
	var file struct {
		Generator string
		Sanity    map[string]struct{ Seed0, Seed1337 string } `json:"xxh3_sanity"`
		Dynamo    []struct {
			Name, Scheme string
			Input        struct {
				Toks       []uint32
				BS         int
				Lora, Salt string
				MM         [][]uint64
				MMRuns     []struct {
					Hash           string `json:"mm_hash"`
					Offset, Length int
				} `json:"mm_runs"`
				Eagle bool
			}
			BlockSeed string   `json:"block_seed"`
			Local     []string `json:"local_block_hashes"`
			Seq       []string `json:"sequence_hashes"`
			PLH       []string `json:"plh_hex"`
		}
	}
	golden(t, "dynamo_hashes.json", &file)
	require.NotEmpty(t, file.Dynamo)
	for _, c := range file.Dynamo {
		t.Run(c.Name, func(t *testing.T) {
			in := c.Input
			opt := &kvhash.Options{LoRA: in.Lora, Salt: in.Salt}
			if in.MMRuns != nil {
				opt.Variant = "universal"
			} else if in.Eagle {
				opt.Variant = "eagle"
			}
			s := mustScheme(t, "dynamo", opt)
			require.Equal(t, c.BlockSeed, strconv.FormatUint(s.LocalSeed(), 10))
			local, seq := numbers(t, c.Local), numbers(t, c.Seq)
			if in.MMRuns == nil {
				check(t, s, in.Toks, in.BS, in.MM, local, seq)
			}
			var x *kvhash.Extras
			if in.MMRuns != nil || in.MM != nil {
				x = new(kvhash.Extras)
			}
			for i, list := range in.MM {
				for _, h := range list {
					x.Objects = append(x.Objects, kvhash.Object{Hash: h, At: i * in.BS, Len: in.BS})
				}
			}
			for _, r := range in.MMRuns {
				x.Objects = append(x.Objects, kvhash.Object{Hash: numbers(t, []string{r.Hash})[0], At: r.Offset, Len: r.Length})
			}
			require.Equal(t, local, s.AppendLocal(nil, in.Toks, in.BS, x))
			checkDigests(t, s, in.Toks, in.BS, x, nil, seq)
			require.Equal(t, strings.Join(c.PLH, ""), hex.EncodeToString(kvhash.AppendLineage(nil, seq)))
		})
	}
}

func TestGoldenVLLM(t *testing.T) {
	type vector struct {
		Name   string
		Hash   string `json:"hash_fn"`
		Seed   string `json:"PYTHONHASHSEED"`
		None   string `json:"none_hash"`
		Tokens any
		Block  int      `json:"block_size"`
		Extra  any      `json:"extra_keys"`
		Blocks []string `json:"block_hashes_hex"`
		Events []string `json:"int64_events"`
		CBOR   *string  `json:"first_block_cbor"`
		Note   string
	}
	var file struct {
		VLLM []vector
		None string `json:"none_hash_cbor_seed_0"`
	}
	golden(t, "vllm_hashes.json", &file)
	var more []vector
	golden(t, "vllm_xxhash_cbor.json", &more)
	cbor, pickle := 0, 0
	for _, c := range append(file.VLLM, more...) {
		if c.Name == "" && c.Note != "" {
			continue
		}
		t.Run(c.Hash+"/"+c.Name, func(t *testing.T) {
			opt := &kvhash.Options{Seed: c.Seed, Variant: "pairs"} // before 0.32
			if c.Hash == "sha256" {                                // bytes of a pickle, for information
				_, err := kvhash.Lookup("vllm_"+c.Hash, opt)
				require.ErrorContains(t, err, "pickle")
				pickle++
				return
			}
			tokens := tokenList(t, c.Tokens)
			var x *kvhash.Extras
			if c.Extra != nil {
				x = extraKeys(t, c.Extra.([]any), c.Block, opt)
			}
			s := mustScheme(t, "vllm_"+c.Hash, opt)
			checkDigests(t, s, tokens, c.Block, x, c.Blocks, numbers(t, c.Events))
			none, err := hex.DecodeString(c.None)
			require.NoError(t, err)
			opt.Seed, opt.NoneHash = "", none
			require.Equal(t, s, mustScheme(t, "vllm_"+c.Hash, opt))
			cbor++
		})
	}
	require.Equal(t, []int{16, 10}, []int{cbor, pickle})
}

// tokenList reads a list or "0..11".
func tokenList(t *testing.T, v any) []uint32 {
	if s, ok := v.(string); ok {
		var to int
		_, err := fmt.Sscanf(s, "0..%d", &to)
		require.NoError(t, err)
		return count(0, to+1)
	}
	var tokens []uint32
	for _, n := range v.([]any) {
		tokens = append(tokens, uint32(n.(float64)))
	}
	return tokens
}

// extraKeys turns the keys of each block into what they are made from.
func extraKeys(t *testing.T, blocks []any, block int, opt *kvhash.Options) *kvhash.Extras {
	x := new(kvhash.Extras)
	for i, b := range blocks {
		keys, _ := b.([]any)
		for _, k := range keys {
			switch k := k.(type) {
			case []any:
				at := i*block + int(k[1].(float64))
				if n := len(x.Objects); n > 0 && x.Objects[n-1].At == at {
					x.Objects[n-1].Len = (i+1)*block - at
					continue
				}
				x.Objects = append(x.Objects, kvhash.Object{ID: k[0].(string), At: at, Len: (i+1)*block - at})
			case string:
				if strings.HasPrefix(k, "adapter") {
					opt.LoRA = k
				} else {
					require.Zero(t, i, "a salt belongs to the first block")
					opt.Salt = k
				}
			}
		}
	}
	return x
}

func TestGoldenVLLMUpstream(t *testing.T) {
	var file struct {
		Source string
		None   string `json:"none_hash_default_seed_after_pr51875_sha256_cbor"`
		Chain  struct {
			Tokens string
			Block  int `json:"block_size"`
			Hashes []string
			Int64  []string
		} `json:"chain_default_seed"`
		Seed0 []struct {
			Extra []any `json:"extra_keys"`
			Hash  string
		} `json:"seed0_tokens_1000_1127_bs128"`
		Raw struct {
			Parent string `json:"parent_bytes_ascii"`
			Tokens []uint32
			Extra  []string
			Hash   string
		} `json:"raw_tuple"`
	}
	golden(t, "vllm_upstream_checks.json", &file)

	s := mustScheme(t, "vllm_sha256_cbor", nil)
	none, err := hex.DecodeString(file.None)
	require.NoError(t, err)
	require.Equal(t, mustScheme(t, "vllm_sha256_cbor", &kvhash.Options{NoneHash: none}), s)
	require.Equal(t, "(i*7919+13)%152064, i<300", file.Chain.Tokens)
	tokens := make([]uint32, 300)
	for i := range tokens {
		tokens[i] = uint32((i*7919 + 13) % 152064)
	}
	checkDigests(t, s, tokens, file.Chain.Block, nil, file.Chain.Hashes, numbers(t, file.Chain.Int64))

	require.Len(t, file.Seed0, 5)
	for _, c := range file.Seed0 {
		opt := &kvhash.Options{Seed: "0", Variant: "pairs"}
		x := extraKeys(t, []any{c.Extra}, 128, opt)
		checkDigests(t, mustScheme(t, "vllm_sha256_cbor", opt), count(1000, 128), 128, x, []string{c.Hash}, nil)
	}

	sum := sha256.Sum256(kvhash.AppendVLLM(nil, []byte(file.Raw.Parent), file.Raw.Tokens, file.Raw.Extra[0], file.Raw.Extra[1]))
	require.Equal(t, file.Raw.Hash, hex.EncodeToString(sum[:]))
}

func TestGoldenOthers(t *testing.T) {
	var file struct {
		SGLang []struct {
			Name   string
			Tokens []uint32
			Page   int      `json:"page_size"`
			Hashes []string `json:"sha256_hex"`
			Events []string `json:"event_int64"`
		}
		TRTLLM []struct {
			Name   string
			Tokens []uint32
			Block  int     `json:"tokens_per_block"`
			LoRA   *uint64 `json:"lora_task_id"`
			Salt   *uint64 `json:"cache_salt_id"`
			Hashes []string
		}
		LLMD []struct {
			Name   string
			Tokens []uint32
			Block  int `json:"block_size"`
			Model  string
			Seed   string   `json:"hash_seed"`
			Keys   []string `json:"request_keys"`
		}
	}
	golden(t, "other_hashes.json", &file)
	require.True(t, len(file.SGLang) > 0 && len(file.TRTLLM) > 0 && len(file.LLMD) > 0)
	for _, c := range file.SGLang {
		t.Run("sglang/"+c.Name, func(t *testing.T) {
			var events []uint64
			for _, e := range c.Events {
				n, err := strconv.ParseInt(e, 10, 64)
				require.NoError(t, err)
				events = append(events, uint64(n))
			}
			checkDigests(t, mustScheme(t, "sglang", nil), c.Tokens, c.Page, nil, c.Hashes, events)
		})
	}
	for _, c := range file.TRTLLM {
		t.Run("trtllm/"+c.Name, func(t *testing.T) {
			var o kvhash.Options
			if c.LoRA != nil {
				o.LoRA = strconv.FormatUint(*c.LoRA, 10)
			}
			s := mustScheme(t, "trtllm", &o)
			if c.Salt != nil {
				s = s.WithSaltID(*c.Salt)
			}
			checkDigests(t, s, c.Tokens, c.Block, nil, nil, numbers(t, c.Hashes))
		})
	}
	for _, c := range file.LLMD {
		t.Run("llmd/"+c.Name, func(t *testing.T) {
			s := mustScheme(t, "llmd", &kvhash.Options{Model: c.Model, Seed: c.Seed})
			checkDigests(t, s, c.Tokens, c.Block, nil, nil, numbers(t, c.Keys))
		})
	}
}

func numbers(t *testing.T, s []string) (n []uint64) {
	for _, d := range s {
		v, err := strconv.ParseUint(d, 10, 64)
		require.NoError(t, err)
		n = append(n, v)
	}
	return n
}
