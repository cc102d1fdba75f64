// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestChainModel grows, forks, truncates and restores chains and compares each with hashing its whole prompt at once.
func TestChainModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 5).Draw(t, "block")
		s := Dynamo(&DynamoOptions{
			LoRA:      rapid.SampledFrom([]string{"", "a"}).Draw(t, "lora"),
			Namespace: rapid.SampledFrom([]string{"", "a"}).Draw(t, "namespace"),
			Eagle:     rapid.Bool().Draw(t, "eagle"),
		})
		type pair struct {
			c      *Chain
			tokens []uint32
		}
		all := []*pair{{c: NewChain(block, s)}}
		one := rapid.Custom(func(t *rapid.T) *pair { return all[rapid.IntRange(0, len(all)-1).Draw(t, "chain")] })
		tokens := rapid.SliceOfN(rapid.Uint32(), 0, 12)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				p, more := one.Draw(t, "pair"), tokens.Draw(t, "tokens")
				n := len(p.c.Blocks())
				fresh := p.c.Append(more...)
				p.tokens = append(p.tokens, more...)
				if !slices.Equal(fresh, p.c.Blocks()[n:]) {
					t.Fatalf("Append returned %v", fresh)
				}
			},
			"fork": func(t *rapid.T) {
				p := one.Draw(t, "pair")
				all = append(all, &pair{p.c.Fork(), slices.Clone(p.tokens)})
			},
			"truncate": func(t *rapid.T) {
				p := one.Draw(t, "pair")
				n := rapid.IntRange(0, len(p.c.Blocks())).Draw(t, "blocks")
				p.c.Truncate(n)
				cut := n * block
				if s.eagle && n > 0 { // the token that the last block's hash covers
					p.c.Append(p.tokens[cut])
					cut++
				}
				p.tokens = p.tokens[:cut]
			},
			"reset": func(t *rapid.T) {
				p := one.Draw(t, "pair")
				p.c.Reset()
				p.tokens = nil
			},
			"restore": func(t *rapid.T) {
				p := one.Draw(t, "pair")
				c := NewChain(block, s)
				c.Append(1, 2, 3)
				c.Restore(p.c.Blocks(), p.c.Tail())
				p.c = c
			},
			"": func(t *rapid.T) {
				for _, p := range all {
					want := s.AppendBlocks(nil, p.tokens, block)
					if !slices.Equal(want, p.c.Blocks()) || p.c.Len() != len(p.tokens) {
						t.Fatal(cmp.Diff(want, p.c.Blocks()), p.c.Len(), len(p.tokens))
					}
					if len(p.c.Tail()) >= p.c.window || !slices.Equal(p.c.Tail(), p.tokens[len(want)*block:]) {
						t.Fatal(p.c.Tail())
					}
				}
			},
		})
	})
}

func TestChainMisuse(t *testing.T) {
	c := NewChain(4, Scheme{})
	require.Equal(t, 4, c.BlockSize())
	require.Equal(t, "dynamo", c.Scheme().Name())
	require.Panics(t, func() { c.Truncate(1) })
	require.Panics(t, func() { NewChain(0, Scheme{}) })
	require.Panics(t, func() { AppendLocal(nil, nil, -1, Seed) })
}

// Whoever appends to what a chain shows gets memory of its own.
func TestChainViews(t *testing.T) {
	c := NewChain(2, Scheme{})
	for i := range uint32(9) {
		n := c.Append(i)
		require.Equal(t, len(n), cap(n), "Append")
		require.Equal(t, len(c.Blocks()), cap(c.Blocks()), "Blocks")
		require.Equal(t, len(c.Tail()), cap(c.Tail()), "Tail")
	}
}

func TestScheme(t *testing.T) {
	require.Equal(t, Scheme{}, Dynamo(&DynamoOptions{Seed: 1337}))
	require.Equal(t, uint64(5), Dynamo(&DynamoOptions{Seed: 5}).Seed())
	require.Equal(t, Dynamo(&DynamoOptions{LoRA: "a", Namespace: "b"}), Dynamo(nil).With("a", "b"))
	require.NotEqual(t, Dynamo(&DynamoOptions{LoRA: "a"}), Dynamo(&DynamoOptions{Namespace: "a"}))
	require.Equal(t, uint32(1_000_042), ObjectToken(1<<30|42))
}

// The view of tokens as bytes and the copy for big-endian machines agree at every length that XXH3 treats in its own way.
func TestPortable(t *testing.T) {
	tokens := make([]uint32, 600)
	for i := range tokens {
		tokens[i] = uint32(i) * 2654435761
	}
	for n := range tokens {
		require.Equal(t, hashTokensPortable(tokens[:n], 7), hashTokens(tokens[:n], 7), n)
	}
}

func TestAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tokens := make([]uint32, 4096)
	for _, block := range []int{4, 16, 64, 100, 512} {
		dst := make([]uint64, 0, 4096)
		require.Zero(t, testing.AllocsPerRun(20, func() { dst = Scheme{}.AppendBlocks(dst[:0], tokens, block) }), "blocks of %d", block)
		c := NewChain(block, Scheme{})
		c.Append(tokens...)
		require.Zero(t, testing.AllocsPerRun(20, func() {
			c.Reset()
			for i := 0; i < len(tokens); i += 32 {
				c.Append(tokens[i : i+32]...)
			}
		}), "chain of %d", block)
	}
	objects := [][]uint64{{1, 2}}
	dst := make([]uint64, 0, 16)
	require.Zero(t, testing.AllocsPerRun(20, func() { dst = AppendLocalObjects(dst[:0], tokens[:64], 16, Seed, objects) }))
}

func BenchmarkAppendBlocks(b *testing.B) {
	tokens := make([]uint32, 51200)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	for _, block := range []int{16, 32, 64, 128, 512} {
		b.Run(fmt.Sprintf("block=%d", block), func(b *testing.B) {
			dst := make([]uint64, 0, len(tokens)/block)
			b.ReportAllocs()
			b.SetBytes(int64(4 * len(tokens)))
			for b.Loop() {
				dst = Scheme{}.AppendBlocks(dst[:0], tokens, block)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/block")
		})
	}
}

// BenchmarkChain appends one turn of 1,000 tokens to a conversation of 50,000.
func BenchmarkChain(b *testing.B) {
	tokens := make([]uint32, 1000)
	for _, block := range []int{16, 64} {
		b.Run(fmt.Sprintf("block=%d", block), func(b *testing.B) {
			c := NewChain(block, Scheme{})
			for range 50 {
				c.Append(tokens...)
			}
			n := len(c.Blocks())
			c.Append(tokens...)
			b.ReportAllocs()
			for b.Loop() {
				c.Truncate(n)
				c.Append(tokens...)
			}
		})
	}
}

// FuzzChain cuts arbitrary tokens at arbitrary places.
func FuzzChain(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnop"), uint8(4), uint16(3))
	f.Fuzz(func(t *testing.T, raw []byte, block uint8, cut uint16) {
		tokens := make([]uint32, len(raw))
		for i, b := range raw {
			tokens[i] = uint32(b) * 0x01010101
		}
		size, at := int(block)+1, int(cut)%(len(tokens)+1)
		c := NewChain(size, Scheme{})
		c.Append(tokens[:at]...)
		c.Append(tokens[at:]...)
		if want := (Scheme{}).AppendBlocks(nil, tokens, size); !slices.Equal(want, c.Blocks()) {
			t.Fatal(cmp.Diff(want, c.Blocks()))
		}
	})
}
