// SPDX-License-Identifier: Apache-2.0

package kvhash_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
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
		opt        *kvhash.DynamoOptions
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
			name: "lora", opt: &kvhash.DynamoOptions{LoRA: "adapter-a"}, block: 4, tokens: count(0, 4), seed: 8842669519798868182,
			local: []uint64{6665157333201000639}, seq: []uint64{6665157333201000639},
		},
		{
			name: "namespace", opt: &kvhash.DynamoOptions{Namespace: "tenant-a"}, block: 4, tokens: count(0, 4), seed: 1948188790972764086,
			local: []uint64{17009624042690211646}, seq: []uint64{17009624042690211646},
		},
		{
			name: "lora and namespace", opt: &kvhash.DynamoOptions{LoRA: "adapter-a", Namespace: "tenant-a"}, block: 4, tokens: count(0, 4),
			seed: 10790858310771630931, local: []uint64{8269515957840517240}, seq: []uint64{8269515957840517240},
		},
		{
			name: "objects", block: 4, tokens: count(0, 12), objects: [][]uint64{nil, {42}, {9, 7}}, seed: 1337,
			local: []uint64{9143094415614847814, 15267005282704193396, 4582779482327210310},
			seq:   []uint64{9143094415614847814, 6091675887886520276, 14898108143921500865},
		},
		{
			name: "eagle", opt: &kvhash.DynamoOptions{Eagle: true}, block: 2, tokens: count(0, 6), seed: 1337,
			local: []uint64{11646242937812223497, 9948816348502404300},
			seq:   []uint64{11646242937812223497, 16579128339329071142},
		},
		{name: "only a tail", block: 4, tokens: count(0, 3), seed: 1337},
		{name: "nothing", block: 4, seed: 1337},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kvhash.Dynamo(tt.opt)
			require.Equal(t, tt.seed, s.Seed())
			check(t, s, tt.tokens, tt.block, tt.objects, tt.local, tt.seq)
		})
	}
}

// check compares every way to make the hashes with the wanted ones.
func check(t *testing.T, s kvhash.Scheme, tokens []uint32, block int, objects [][]uint64, local, seq []uint64) {
	t.Helper()
	got := s.AppendLocal(nil, tokens, block, objects)
	if d := cmp.Diff(local, got); d != "" {
		t.Errorf("local hashes (-want +got):\n%s", d)
	}
	if d := cmp.Diff(seq, kvhash.AppendSequence(nil, got)); d != "" {
		t.Errorf("sequence hashes (-want +got):\n%s", d)
	}
	if len(seq) > 0 {
		if d := cmp.Diff(seq[1:], kvhash.AppendSequenceAfter([]uint64{}, seq[0], got[1:])); d != "" {
			t.Errorf("sequence hashes after the first (-want +got):\n%s", d)
		}
	}
	if objects != nil {
		if s == (kvhash.Scheme{}) {
			require.Equal(t, local, kvhash.AppendLocalObjects(nil, tokens, block, kvhash.Seed, objects))
		}
		return
	}
	if d := cmp.Diff(seq, s.AppendBlocks(nil, tokens, block)); d != "" {
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

// TestGolden reproduces hashes made by an independent program, where they are at hand.
func TestGolden(t *testing.T) {
	dir := os.Getenv("WEFT_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "kv", "golden", "dynamo_hashes.json"))
	if err != nil {
		t.Skip("no golden hashes: set WEFT_SHARED")
	}
	var file struct {
		Dynamo []struct {
			Name  string
			Input struct {
				Toks       []uint32
				BS         int
				Lora, Salt string
				MM         [][]uint64
				MMRuns     []any `json:"mm_runs"`
				Eagle      bool
			}
			BlockSeed string   `json:"block_seed"`
			Local     []string `json:"local_block_hashes"`
			Seq       []string `json:"sequence_hashes"`
		}
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	done := 0
	for _, c := range file.Dynamo {
		t.Run(c.Name, func(t *testing.T) {
			in := c.Input
			if in.MMRuns != nil {
				t.Skip("the universal form of object blocks is not implemented")
			}
			s := kvhash.Dynamo(&kvhash.DynamoOptions{LoRA: in.Lora, Namespace: in.Salt, Eagle: in.Eagle})
			require.Equal(t, c.BlockSeed, strconv.FormatUint(s.Seed(), 10))
			check(t, s, in.Toks, in.BS, in.MM, numbers(t, c.Local), numbers(t, c.Seq))
			done++
		})
	}
	require.GreaterOrEqual(t, done, 11)
}

func numbers(t *testing.T, s []string) (n []uint64) {
	for _, d := range s {
		v, err := strconv.ParseUint(d, 10, 64)
		require.NoError(t, err)
		n = append(n, v)
	}
	return n
}
