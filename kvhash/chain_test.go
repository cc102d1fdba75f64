// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// schemes are one of each kind, and those with settings that change how blocks are cut.
func schemes(t testing.TB) []Scheme {
	list := []Scheme{Dynamo(Options{Variant: "eagle"}), Dynamo(Options{LoRA: "a", Salt: "a", Variant: "universal"})}
	for _, name := range Names() {
		list = append(list, plain(t, name))
	}
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"sglang", Options{Variant: "eagle"}},
		{"vllm_sha256_cbor", Options{Seed: "0", LoRA: "a=p", Salt: "s"}},
		{"vllm_sha256_cbor", Options{Seed: "0", LoRA: "a", Salt: "s", Variant: "pairs"}},
		{"sglang", Options{Salt: "s"}},
		{"llmd_xxh64", Options{Model: "m", Seed: "1", LoRA: "a", Salt: "s"}},
		{"trtllm_v2_sha256_64", Options{LoRA: "1", Salt: "s"}},
		{"vllm_xxhash_cbor", Options{NoneHash: make([]byte, 16), Variant: "bare"}},
		{"llmd", Options{Model: "m", Seed: "1", LoRA: "a", Salt: "s"}},
		{"trtllm", Options{LoRA: "1", Salt: "2"}},
	} {
		s, err := Lookup(c.name, &c.o)
		require.NoError(t, err)
		list = append(list, s)
	}
	return list
}

// plain returns a scheme for plain prompts.
func plain(t testing.TB, name string) Scheme {
	var o Options
	if name == "vllm_xxhash_cbor" { // without a seed vLLM draws a random one
		o.Seed = "0"
	}
	s, err := Lookup(name, &o)
	require.NoError(t, err)
	return s
}

// TestChainModel grows, forks, truncates, restores and joins chains and compares each with hashing its whole prompt at once.
func TestChainModel(t *testing.T) {
	all := schemes(t)
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 5).Draw(t, "block")
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "scheme")]
		var extras *Extras
		if rapid.Bool().Draw(t, "extras") {
			extras = new(Extras)
			at := rapid.IntRange(-3, 3).Draw(t, "at")
			for i := range rapid.IntRange(0, 4).Draw(t, "objects") {
				n := rapid.IntRange(1, 9).Draw(t, "len")
				extras.Objects = append(extras.Objects, Object{Hash: uint64(7 - i), ID: fmt.Sprint(i), At: at, Len: n})
				at += n + rapid.IntRange(0, 9).Draw(t, "gap")
			}
			if rapid.Bool().Draw(t, "embeds") { // a chain with any has no pieces
				extras.Embeds = [][]byte{nil, {1}, {}}
			}
		}
		type pair struct {
			c      *Chain
			tokens []uint32
		}
		fresh := func() *Chain {
			c := NewChain(block, s)
			c.SetExtras(extras)
			return c
		}
		chains := []*pair{{c: fresh()}}
		one := rapid.Custom(func(t *rapid.T) *pair { return chains[rapid.IntRange(0, len(chains)-1).Draw(t, "chain")] })
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
				chains = append(chains, &pair{p.c.Fork(), slices.Clone(p.tokens)})
			},
			"truncate": func(t *rapid.T) {
				p := one.Draw(t, "pair")
				n := rapid.IntRange(0, len(p.c.Blocks())).Draw(t, "blocks")
				p.c.Truncate(n)
				cut := n * block
				if s.mode.has(eagle) && n > 0 { // the token that the last block's hash covers
					p.c.Append(p.tokens[cut])
					cut++
				}
				p.tokens = p.tokens[:cut]
			},
			"reset": func(t *rapid.T) {
				p := one.Draw(t, "pair")
				p.c.Truncate(0)
				p.c.SetExtras(extras)
				p.tokens = nil
			},
			"join": func(t *rapid.T) {
				p := one.Draw(t, "pair")
				c := fresh()
				from := 0
				for from < len(p.tokens) {
					to := rapid.IntRange(from, len(p.tokens)).Draw(t, "to")
					piece := p.c.Piece(from, to)
					if extras != nil {
						if piece != nil && !c.Join(piece) {
							t.Fatal("a piece did not fit")
						}
						if piece == nil {
							break
						}
					} else if !c.Join(piece) {
						t.Fatal("a piece did not fit")
					}
					if from = to; rapid.Bool().Draw(t, "stop") {
						break
					}
				}
				c.Append(p.tokens[c.Len():]...)
				p.c = c
			},
			"": func(t *rapid.T) {
				for _, p := range chains {
					want := s.AppendBlocks(nil, p.tokens, block, extras)
					if !slices.Equal(want, p.c.Blocks()) || p.c.Len() != len(p.tokens) {
						t.Fatal(cmp.Diff(want, p.c.Blocks()), p.c.Len(), len(p.tokens))
					}
					if s.DigestLen() > 8 && !bytes.Equal(s.AppendDigests(nil, p.tokens, block, extras), p.c.Digests()) {
						t.Fatal("digests")
					}
					if len(p.c.tail) >= p.c.window || !slices.Equal(p.c.tail, p.tokens[len(want)*block:]) {
						t.Fatal(p.c.tail)
					}
				}
			},
		})
	})
}

// The step of the chain is the library's hash of 16 bytes.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "parent"), rapid.Uint64().Draw(t, "local")
		buf := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b)
		require.Equal(t, xxh3.HashSeed(buf, dynamoSeed), Next(a, b))
	})
}

// A piece is taken only where it belongs.
func TestPiece(t *testing.T) {
	sg, err := Lookup("sglang", nil)
	require.NoError(t, err)
	c := NewChain(2, sg)
	c.Append(1, 2, 3, 4, 5)
	a, b := c.Piece(0, 3), c.Piece(3, 5)
	require.Equal(t, []int{1, 1}, []int{len(a.seq), len(b.seq)})
	d := NewChain(2, sg)
	require.False(t, d.Join(nil))
	require.False(t, d.Join(b), "out of order")
	require.False(t, NewChain(3, sg).Join(a), "another block size")
	require.False(t, NewChain(2, Scheme{}).Join(a), "another scheme")
	d.Append(9)
	require.True(t, d.Join(a))
	require.Empty(t, d.tail)
	require.False(t, d.Join(a), "twice")
	require.True(t, d.Join(b))
	require.Equal(t, c.Blocks(), d.Blocks())
	require.Equal(t, c.Digests(), d.Digests())
	require.Panics(t, func() { c.Piece(0, 6) })
	require.Panics(t, func() { c.Piece(3, 2) })
	require.Panics(t, func() { c.Piece(-1, 2) })
	c.SetExtras(&Extras{Objects: []Object{{At: 3, Len: 1}}})
	require.NotNil(t, c.Piece(0, 3))
	require.Nil(t, c.Piece(3, 5))
}

// A chain whose prompt has an object or embeddings in the blocks of a piece does not take it: the piece has neither.
func TestJoinExtras(t *testing.T) {
	c := NewChain(2, Scheme{})
	c.Append(1, 2, 3, 4, 5)
	p := c.Piece(0, 5)
	join := func(x *Extras) bool {
		d := NewChain(2, Scheme{})
		d.SetExtras(x)
		return d.Join(p)
	}
	require.True(t, join(nil))
	require.True(t, join(&Extras{Objects: []Object{{Hash: 1, At: 4, Len: 1}}}), "after the last block")
	require.False(t, join(&Extras{Objects: []Object{{Hash: 1, At: 3, Len: 1}}}))
	require.False(t, join(&Extras{Objects: []Object{{Hash: 1, At: -1, Len: 2}}}))
	require.False(t, join(&Extras{Embeds: [][]byte{{1}}}))
}

// A conversation gets its images one by one, the first long after its beginning, and each is passed before the tokens
// that it fills.
func TestGrowingExtras(t *testing.T) {
	tokens := make([]uint32, 60)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	all := []Object{{Hash: 3, ID: "a", At: 17, Len: 9}, {Hash: 1, ID: "b", At: 26, Len: 1}, {Hash: 2, ID: "c", At: 40, Len: 15}}
	for _, s := range schemes(t) {
		for _, block := range []int{1, 4, 7} {
			c := NewChain(block, s)
			n := 0
			for i, o := range all {
				c.Append(tokens[n:o.At]...)
				n = o.At
				c.SetExtras(&Extras{Objects: all[:i+1]})
			}
			c.Append(tokens[n:]...)
			want := s.AppendBlocks(nil, tokens, block, &Extras{Objects: all})
			require.Equal(t, want, c.Blocks(), "%s, blocks of %d", s, block)
			c.Truncate(1) // and continues from before the first
			c.Append(tokens[block:]...)
			require.Equal(t, want, c.Blocks(), "%s, blocks of %d", s, block)
		}
	}
}

func TestChainMisuse(t *testing.T) {
	c := NewChain(4, Scheme{})
	require.Panics(t, func() { c.Truncate(1) })
	for _, s := range schemes(t) {
		require.Empty(t, NewChain(math.MaxInt, s).Append(1, 2, 3), "a block that no prompt fills")
	}
	require.Panics(t, func() { NewChain(0, Scheme{}) })
	require.Panics(t, func() { new(Chain).Append(1) }, "a chain that NewChain did not make")
	require.Panics(t, func() { Scheme{}.AppendLocal(nil, nil, -1, nil) })
}

// Appending to a slice that a chain returns allocates new memory.
func TestChainViews(t *testing.T) {
	c := NewChain(2, Scheme{})
	for i := range uint32(9) {
		n := c.Append(i)
		require.Equal(t, len(n), cap(n), "Append")
		require.Equal(t, len(c.Blocks()), cap(c.Blocks()), "Blocks")
	}
}

func TestScheme(t *testing.T) {
	require.Equal(t, Scheme{}, Dynamo(Options{Seed: "1337"}))
	require.Equal(t, uint64(5), Dynamo(Options{Seed: "5"}).seed())
	require.Equal(t, Dynamo(Options{LoRA: "a", Salt: "b"}), Scheme{}.With("a", "b"))
	require.NotEqual(t, Dynamo(Options{LoRA: "a"}), Dynamo(Options{Salt: "a"}))
	require.Panics(t, func() { Dynamo(Options{Variant: "bare"}) })
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
		require.Zero(t, testing.AllocsPerRun(20, func() { dst = Scheme{}.AppendBlocks(dst[:0], tokens, block, nil) }), "blocks of %d", block)
		c := NewChain(block, Scheme{})
		c.Append(tokens...)
		require.Zero(t, testing.AllocsPerRun(20, func() {
			c.Truncate(0)
			for i := 0; i < len(tokens); i += 32 {
				c.Append(tokens[i : i+32]...)
			}
		}), "chain of %d", block)
	}
	small, x := tokens[:2048], &Extras{Objects: []Object{{Hash: 2, ID: "img", At: 5, Len: 100}, {Hash: 1, ID: "img2", At: 105, Len: 10}}}
	for _, s := range schemes(t) {
		for _, block := range []int{1, 16, 64, 512} {
			hashes, digests := make([]uint64, 0, 2048), make([]byte, 0, 32*2048)
			c := NewChain(block, s)
			chained := func(x *Extras) func() {
				return func() {
					c.Truncate(0)
					c.SetExtras(x)
					for i := 0; i < len(small); i += 32 {
						c.Append(small[i : i+32]...)
					}
				}
			}
			checks := map[string]func(){
				"blocks": func() { hashes = s.AppendBlocks(hashes[:0], small, block, nil) },
				"chain":  chained(nil),
			}
			if s.mode.kind() != dynamo || block < 64 {
				checks["blocks with objects"] = func() { hashes = s.AppendBlocks(hashes[:0], small, block, x) }
				checks["digests"] = func() { digests = s.AppendDigests(digests[:0], small, block, x) }
				checks["chain with objects"] = chained(x)
			}
			for name, f := range checks {
				require.Zero(t, testing.AllocsPerRun(3, f), "%s: %s of %d", s, name, block)
			}
		}
		if s.mode.kind() == dynamo {
			require.Zero(t, testing.AllocsPerRun(3, func() { s = s.With("7", "8") }))
		}
	}
	lineage := make([]byte, 0, 16*100)
	require.Zero(t, testing.AllocsPerRun(3, func() { lineage = AppendLineage(lineage[:0], make([]uint64, 100)) }))
	parts, spans := make([]uint8, 0, 100), []Span[uint8]{{1, 0, 100}, {5, 99, 200}}
	require.Zero(t, testing.AllocsPerRun(3, func() { parts = AppendKinds(parts[:0], spans, 4, 100) }))
	objects := [][]uint64{{1, 2}}
	dst := make([]uint64, 0, 16)
	require.Zero(t, testing.AllocsPerRun(20, func() { dst = Scheme{}.AppendLocal(dst[:0], tokens[:64], 16, &Extras{BlockObjects: objects}) }))
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
				dst = Scheme{}.AppendBlocks(dst[:0], tokens, block, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/block")
		})
	}
}

// BenchmarkAppendLocal is BenchmarkAppendBlocks without the chain, which a tree with a node for each block does not need.
func BenchmarkAppendLocal(b *testing.B) {
	tokens := make([]uint32, 51200)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	for _, block := range []int{16, 64} {
		b.Run(fmt.Sprintf("block=%d", block), func(b *testing.B) {
			dst := make([]uint64, 0, len(tokens)/block)
			b.ReportAllocs()
			for b.Loop() {
				dst = Scheme{}.AppendLocal(dst[:0], tokens, block, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/block")
		})
	}
}

// BenchmarkSchemes hashes a prompt of 51,200 tokens of a usual vocabulary.
func BenchmarkSchemes(b *testing.B) {
	tokens := make([]uint32, 51200)
	for i := range tokens {
		tokens[i] = uint32(i*7919+13) % 152064
	}
	for _, name := range Names() {
		s := plain(b, name)
		for _, block := range []int{16, 64} {
			b.Run(fmt.Sprintf("scheme=%s/block=%d", name, block), func(b *testing.B) {
				dst := make([]uint64, 0, len(tokens)/block)
				b.ReportAllocs()
				for b.Loop() {
					dst = s.AppendBlocks(dst[:0], tokens, block, nil)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/block")
			})
		}
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

// FuzzChain cuts arbitrary tokens at arbitrary positions, under every scheme.
func FuzzChain(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnop"), uint8(4), uint16(3), uint8(0))
	f.Add([]byte("0123456789abcdefghijklmnop"), uint8(4), uint16(9), uint8(5))
	all := schemes(f)
	f.Fuzz(func(t *testing.T, raw []byte, block uint8, cut uint16, scheme uint8) {
		tokens := make([]uint32, len(raw))
		for i, b := range raw {
			tokens[i] = uint32(b) * 0x01010101
		}
		s := all[int(scheme)%len(all)]
		size, at := int(block)+1, int(cut)%(len(tokens)+1)
		c := NewChain(size, s)
		c.Append(tokens[:at]...)
		c.Append(tokens[at:]...)
		if want := s.AppendBlocks(nil, tokens, size, nil); !slices.Equal(want, c.Blocks()) {
			t.Fatal(cmp.Diff(want, c.Blocks()))
		}
	})
}

// FuzzExtras hashes prompts with objects at arbitrary positions, in no order: the hashes are unspecified, but there are as many as blocks.
func FuzzExtras(f *testing.F) {
	f.Add(uint8(0), uint8(3), int64(-1<<63), int64(-1<<63), int64(1<<63-1), int64(1<<63-1))
	f.Add(uint8(1), uint8(1), int64(1<<63-1), int64(1<<63-1), int64(0), int64(9))
	f.Add(uint8(3), uint8(2), int64(5), int64(-5), int64(3), int64(100))
	all := schemes(f)
	tokens := make([]uint32, 30)
	f.Fuzz(func(t *testing.T, scheme, block uint8, at1, len1, at2, len2 int64) {
		s := all[int(scheme)%len(all)]
		size := int(block)%32 + 1
		x := &Extras{
			Objects: []Object{{Hash: 1, ID: "a", At: int(at1), Len: int(len1)}, {Hash: 2, ID: "b", At: int(at2), Len: int(len2)}},
			Embeds:  [][]byte{nil, {}},
		}
		want := len(s.AppendBlocks(nil, tokens, size, nil))
		c := NewChain(size, s)
		c.SetExtras(x)
		if got := len(c.Append(tokens...)); got != want || len(s.AppendDigests(nil, tokens, size, x)) != want*s.DigestLen() {
			t.Fatal(got, want)
		}
	})
}

// TestForkShares checks that the first continuation of a chain and its forks copies no hashes.
func TestForkShares(t *testing.T) {
	tokens := make([]uint32, 400)
	first := NewChain(4, Scheme{})
	first.Append(tokens...)
	c := first.Fork()
	c.Append(1, 1, 1, 1)
	f, g := c.Fork(), c.Fork()
	f.Append(2, 2, 2, 2)
	g.Append(3, 3, 3, 3)
	c.Append(4, 4, 4, 4)
	start := func(c *Chain) *uint64 { return &c.Blocks()[0] }
	require.NotSame(t, start(f), start(g))
	require.NotSame(t, start(f), start(c))
	for last, c := range map[uint32]*Chain{2: f, 3: g, 4: c} {
		want := append(slices.Clone(tokens), 1, 1, 1, 1, last, last, last, last)
		require.Equal(t, Scheme{}.AppendBlocks(nil, want, 4, nil), c.Blocks())
	}
	h := f.Fork()
	h.Append(5, 5, 5, 5)
	require.Same(t, start(f), start(h))
}
