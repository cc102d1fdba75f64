// SPDX-License-Identifier: Apache-2.0

package kvhash_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/weft-go/weft/kvhash"
)

// Worked numbers of the other engines' hashes: tokens from 0 on.
func TestSchemeVectors(t *testing.T) {
	img := &kvhash.Extras{Objects: []kvhash.Object{{ID: "imghash", At: 5, Len: 7}}}
	tests := []struct {
		name, scheme string
		opt          *kvhash.Options
		block, n     int
		x            *kvhash.Extras
		digests      []string
		events       []uint64
	}{
		{
			name: "vllm, PYTHONHASHSEED=0", scheme: "vllm_sha256_cbor", opt: &kvhash.Options{Seed: "0"}, block: 4, n: 8,
			digests: []string{
				"8d4c7c828f1611f485f1ebfc2b19f0fe1c90d0a71d00cd90948a1fa5e8c9e91f",
				"ed6fa5d37a067707ede9aff44aa2819ab639263ca4ca66e8d36d02ffac952d33",
			},
			events: []uint64{10703402261835016479, 15234836411599629619},
		},
		{
			name: "vllm, salt", scheme: "vllm_sha256_cbor", opt: &kvhash.Options{Seed: "0", Salt: "tenant-a", Variant: "pairs"}, block: 4, n: 8,
			events: []uint64{17754051520933720667, 9897411972163752659},
		},
		{
			name: "vllm, lora", scheme: "vllm_sha256_cbor", opt: &kvhash.Options{Seed: "0", LoRA: "adapter-a", Variant: "pairs"}, block: 4, n: 8,
			events: []uint64{16881089560406302860, 4238104958836785028},
		},
		{
			name: "vllm, an object over two blocks", scheme: "vllm_sha256_cbor", opt: &kvhash.Options{Seed: "0", Variant: "pairs"}, block: 4, n: 12, x: img,
			events: []uint64{10703402261835016479, 13189362410372227953, 12574565773640998574},
		},
		{
			name: "vllm, xxhash", scheme: "vllm_xxhash_cbor", opt: &kvhash.Options{Seed: "0"}, block: 4, n: 4,
			digests: []string{"c20df5f86688b63f4cb5a744053f0b61"}, events: []uint64{5527508028254784353},
		},
		{
			name: "vllm, xxhash after 32 random bytes", scheme: "vllm_xxhash_cbor", opt: &kvhash.Options{NoneHash: make([]byte, 32)},
			block: 4, n: 4, digests: []string{xxhashAfter(make([]byte, 32), 0, 1, 2, 3)},
		},
		{
			name: "sglang", scheme: "sglang", block: 1, n: 2,
			digests: []string{
				"df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119",
				"53f69ec6a1c7effbd864307243e74feaafa8b26bbdc9d066fe8b22ed64a010bb",
			},
			events: []uint64{0xdf3f619804a92fdb, 6050197725373788155},
		},
		{
			name: "sglang, bigrams are the tokens of all pairs", scheme: "sglang", opt: &kvhash.Options{Variant: "eagle"}, block: 2, n: 3,
			digests: []string{"f75a605a1fcbaea023eb618377547dbff016670bd1b0aeafce56232d837e0d71"}, // SHA-256 of 0 1 1 2
		},
		{
			name: "llm-d", scheme: "llmd", opt: &kvhash.Options{Model: "m"}, block: 4, n: 12,
			events: []uint64{17285939621594237469, 1825881749070597870, 13094865344280660774},
		},
		{
			name: "llm-d, the adapter's name in the place of the model's", scheme: "llmd",
			opt: &kvhash.Options{Model: "x", LoRA: "m"}, block: 4, n: 4,
			events: []uint64{17285939621594237469},
		},
		{
			name: "trtllm", scheme: "trtllm", block: 4, n: 12,
			events: []uint64{733356887393045, 6310903394565074474, 13650271627978399492},
		},
		{
			name: "trtllm, lora", scheme: "trtllm", opt: &kvhash.Options{LoRA: "7"}, block: 4, n: 8,
			events: []uint64{1393599221341711815, 3681557875598130710},
		},
		{ // the functions of TensorRT-LLM's kv_cache_hash.py and _block_radix_tree.py
			name: "trtllm, salt", scheme: "trtllm", opt: &kvhash.Options{Salt: "tenant-a"}, block: 4, n: 8,
			events: []uint64{8960168036075564091, 10795683526358822218},
		},
		{
			name: "trtllm, salt by BLAKE3", scheme: "trtllm", opt: &kvhash.Options{Salt: "tenant-a", Variant: "blake3"}, block: 4, n: 8,
			events: []uint64{2783639199736656580, 3348462468048890687},
		},
		{
			name: "trtllm v2", scheme: "trtllm_v2_sha256", block: 4, n: 8,
			digests: []string{
				"7b894451a88bc03088bd0c44f01139922b089a1ab691d157c273185c78ca83b2",
				"181684b4f09a9fc1689624a565bc5c9ed96cede3e0863cf373463b1a93c45369",
			},
			events: []uint64{0x7b894451a88bc030, 0x181684b4f09a9fc1},
		},
		{
			name: "trtllm v2, lora and salt", scheme: "trtllm_v2_sha256_64", opt: &kvhash.Options{LoRA: "7", Salt: "tenant-a"}, block: 4, n: 8,
			events: []uint64{0x1c2b1c371b95a4e8, 0x8bb872fbc5cf1f7b},
		},
		{
			name: "trtllm v2, salt by BLAKE3", scheme: "trtllm_v2_sha256", opt: &kvhash.Options{Salt: "tenant-a", Variant: "blake3"}, block: 4, n: 8,
			events: []uint64{0xc1a829d1494ff637, 0x910fb6eb9c1c9397},
		},
		{ // python-xxhash, by the rule of llm-d's token_processor.go
			name: "llm-d, xxh64", scheme: "llmd_xxh64", opt: &kvhash.Options{Model: "m"}, block: 4, n: 12,
			events: []uint64{349715062492120793, 6282443139378594352, 15688655603663660235},
		},
		{
			name: "llm-d, xxh64, object and salt", scheme: "llmd_xxh64", opt: &kvhash.Options{Model: "m", Seed: "s", Salt: "salt"}, block: 4, n: 12,
			x:      &kvhash.Extras{Objects: []kvhash.Object{{ID: "img", At: 0, Len: 4}}},
			events: []uint64{16851426815201080048, 7709664688087075847, 8662097498299242587},
		},
		{
			name: "dynamo, seed", scheme: "dynamo", opt: &kvhash.Options{Seed: "1337"}, block: 4, n: 4,
			digests: []string{"7ee2cbedc694ab46"}, events: []uint64{9143094415614847814},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkDigests(t, mustScheme(t, tt.scheme, tt.opt), count(0, tt.n), tt.block, tt.x, tt.digests, tt.events)
		})
	}
}

// xxhashAfter returns the digest of vLLM's block of small tokens after a parent of 24 to 255 bytes.
func xxhashAfter(parent []byte, tokens ...byte) string {
	raw := slices.Concat([]byte{0x83, 0x58, byte(len(parent))}, parent, []byte{0x80 | byte(len(tokens))}, tokens, []byte{0xf6})
	sum := xxh3.Hash128(raw).Bytes()
	return hex.EncodeToString(sum[:])
}

// defaults are the options of a plain prompt: vLLM has no default seed for XXH3.
func defaults(name string) *kvhash.Options {
	if name == "vllm_xxhash_cbor" {
		return &kvhash.Options{Seed: "0"}
	}
	return nil
}

// The extra keys of a vLLM block, byte for byte.
func TestVLLMKeys(t *testing.T) {
	got := kvhash.AppendVLLMBlock(mustScheme(t, "vllm_xxhash_cbor", &kvhash.Options{NoneHash: make([]byte, 16), LoRA: "l", Salt: "s", Variant: "pairs"}),
		[]uint32{23, 24, 255, 256, 65535, 65536, 1<<32 - 1}, []kvhash.Object{{ID: "a", At: 108}, {ID: "b", At: 76}}, 100, []byte{7})
	want := "83" + "50" + strings.Repeat("00", 16) + "87" + "17" + "1818" + "18ff" + "190100" + "19ffff" + "1a00010000" + "1affffffff" +
		"85" + "616c" + "82616108" + "82616237" + "6173" + "4107"
	require.Equal(t, want, hex.EncodeToString(got))
	got = kvhash.AppendVLLMBlock(mustScheme(t, "vllm_xxhash_cbor", &kvhash.Options{NoneHash: make([]byte, 16), Variant: "bare"}),
		nil, []kvhash.Object{{ID: "a"}}, 0, nil)
	require.Equal(t, "83"+"50"+strings.Repeat("00", 16)+"80"+"81"+"6161", hex.EncodeToString(got))
	got = kvhash.AppendVLLMBlock(mustScheme(t, "vllm_xxhash_cbor", &kvhash.Options{NoneHash: make([]byte, 16), LoRA: "l=/p=q", Salt: "s"}),
		nil, []kvhash.Object{{ID: "a", At: 8}}, 10, []byte{7})
	require.Equal(t, "83"+"50"+strings.Repeat("00", 16)+"80"+"84"+"83"+"646c6f7261"+"616c"+"642f703d71"+"83"+"626d6d"+"6161"+"21"+
		"82"+"6a63616368655f73616c74"+"6173"+"82"+"6d70726f6d70745f656d62656473"+"4107", hex.EncodeToString(got))
}

// Frames of 13 bytes: 20 positions of an object from token 8 on, in blocks of 8.
func TestUniversal(t *testing.T) {
	s := kvhash.Dynamo(kvhash.Options{Variant: "universal"})
	x := &kvhash.Extras{Objects: []kvhash.Object{{Hash: 51966, At: 8, Len: 20}}}
	want := []uint64{12126819726423666500, 17992028842846631365, 11404554070039239651, 8253484279813667136, 7812101232514091110}
	if d := cmp.Diff(want, s.AppendLocal(nil, count(0, 40), 8, x)); d != "" {
		t.Error(d)
	}
	require.Panics(t, func() { s.AppendLocal(nil, count(0, 8), 8, &kvhash.Extras{BlockObjects: [][]uint64{{1}}}) })
	require.Panics(t, func() { mustScheme(t, "sglang", nil).AppendLocal(nil, nil, 8, nil) })
}

// The frames of an object that begins and ends within a block, and borders on another.
func TestUniversalFrames(t *testing.T) {
	x := &kvhash.Extras{Objects: []kvhash.Object{{Hash: 7, At: -1, Len: 2}, {Hash: 8, At: 2, Len: 1}, {Hash: 9, At: 3, Len: 1}}}
	frame := func(kind byte, n uint32, hash uint64) (b []byte) {
		b = binary.LittleEndian.AppendUint32([]byte{kind}, n)
		return binary.LittleEndian.AppendUint64(b, hash)
	}
	raw := slices.Concat(frame(1, 1, 7), frame(0, 1, 0), frame(1, 0, 8), frame(1, 0, 9))
	want := []uint64{xxh3.HashSeed(raw, kvhash.DynamoSeed), kvhash.Scheme{}.AppendLocal(nil, count(4, 4), 4, nil)[0]}
	require.Equal(t, want, kvhash.Dynamo(kvhash.Options{Variant: "universal"}).AppendLocal(nil, count(0, 8), 4, x))
}

// Objects by position belong to the blocks in which they have a token.
func TestObjectBorders(t *testing.T) {
	s := kvhash.Scheme{}
	for _, tt := range []struct {
		at, n int
		want  [][]uint64
	}{
		{4, 4, [][]uint64{nil, {1}, nil}}, {3, 1, [][]uint64{{1}, nil, nil}}, {3, 2, [][]uint64{{1}, {1}, nil}},
		{4, 5, [][]uint64{nil, {1}, {1}}}, {-4, 4, nil}, {-4, 5, [][]uint64{{1}}}, {12, 1, nil},
	} {
		x := &kvhash.Extras{Objects: []kvhash.Object{{Hash: 1, At: tt.at, Len: tt.n}}}
		require.Equal(t, s.AppendLocal(nil, count(0, 12), 4, &kvhash.Extras{BlockObjects: tt.want}), s.AppendLocal(nil, count(0, 12), 4, x), tt)
	}
}

// vLLM's list of objects in a block ends with the first one that extends beyond the block, even if others begin in it:
// the audio of a video is within its frames. Dynamo's router and llm-d name all of them.
func TestOverlappingObjects(t *testing.T) {
	video, sound, image := kvhash.Object{Hash: 1, ID: "v", At: 1, Len: 6}, kvhash.Object{Hash: 2, ID: "s", At: 2, Len: 6},
		kvhash.Object{Hash: 3, ID: "i", At: 0, Len: 1}
	hash := func(name string, n int, list ...kvhash.Object) []uint64 {
		opt := new(kvhash.Options)
		if name == "vllm_xxhash_cbor" {
			opt.Seed = "0"
		}
		return mustScheme(t, name, opt).AppendBlocks(nil, count(0, n), 4, &kvhash.Extras{Objects: list})
	}
	for _, name := range []string{"vllm_sha256_cbor", "vllm_xxhash_cbor"} {
		require.Equal(t, hash(name, 4, image, video), hash(name, 4, image, video, sound), name)
		require.NotEqual(t, hash(name, 4, image), hash(name, 4, image, video), name)
		both := hash(name, 8, image, video, sound)
		require.NotEqual(t, hash(name, 8, image, video)[1], both[1], "the video ends in block 1 and the sound is named")
		require.NotEqual(t, hash(name, 8, image, sound)[1], both[1], name)
	}
	for _, name := range []string{"dynamo", "llmd", "llmd_xxh64"} {
		require.NotEqual(t, hash(name, 4, image, video), hash(name, 4, image, video, sound), name)
	}
}

// CBOR heads at the borders of their lengths.
func TestCBORHeads(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "00", 23: "17", 24: "1818", 255: "18ff", 256: "190100", 65535: "19ffff", 65536: "1a00010000", 1<<32 - 1: "1affffffff",
		1 << 32: "1b0000000100000000", 1<<64 - 1: "1bffffffffffffffff",
	} {
		require.Equal(t, want, hex.EncodeToString(kvhash.AppendHead(nil, n)))
	}
}

func TestLineage(t *testing.T) {
	require.Equal(t, "001fb8b2fb71a52ad180000000000000"+"0060fedc0bc838ab5962cbedc694ab46"+"00baf9638c99e4119efb702f20e2ad65",
		hex.EncodeToString(kvhash.AppendLineage(nil, []uint64{9143094415614847814, 9510318385840434533, 16998148715716822651})))
	// The fields at the borders of the modes: position and parent lose and win bits.
	for pos, want := range map[int]string{
		255:       "3fff" + strings.Repeat("ff", 14),
		256:       "4040" + "3fff" + strings.Repeat("ff", 12),
		1<<16 - 1: "7fff" + strings.Repeat("ff", 14),
		1 << 16:   "8040003f" + strings.Repeat("ff", 12),
		1<<24 - 1: "bfff" + strings.Repeat("ff", 14),
	} {
		require.Equal(t, want, hex.EncodeToString(kvhash.AppendLineageAt(nil, pos, ^uint64(0), ^uint64(0))), pos)
	}
}

func TestLookup(t *testing.T) {
	for _, name := range kvhash.Names() {
		s := mustScheme(t, name, defaults(name))
		require.Equal(t, name, s.String())
		require.Equal(t, name == "dynamo", s.HasLocal())
	}
	require.Equal(t, kvhash.Scheme{}, mustScheme(t, "dynamo", nil))
	require.Equal(t, mustScheme(t, "vllm_sha256_cbor", &kvhash.Options{Seed: "vllm-none-hash"}), mustScheme(t, "vllm_sha256_cbor", nil))
	both := &kvhash.Options{LoRA: "a=p", Salt: "b"}
	require.Equal(t, mustScheme(t, "vllm_sha256_cbor", both), mustScheme(t, "vllm_sha256_cbor", nil).With("a=p", "b"))
	require.Equal(t, mustScheme(t, "sglang", nil), mustScheme(t, "sglang", nil).With("a", ""), "SGLang does not mix in adapters")
	require.Equal(t, mustScheme(t, "sglang", &kvhash.Options{Salt: "b"}), mustScheme(t, "sglang", nil).With("a", "b"))
	require.Equal(t, mustScheme(t, "trtllm", nil), mustScheme(t, "trtllm", nil).With("a", ""), "not an id")
	for _, tt := range []struct {
		scheme, option, why string
		o                   kvhash.Options
	}{
		{scheme: "vllm_sha256", why: "pickle"},
		{scheme: "vllm_xxhash", why: "pickle"},
		{scheme: "vllm", why: "no such scheme"},
		{scheme: "", why: "no such scheme"},
		{scheme: "sglang", option: "LoRA", why: "does not enter", o: kvhash.Options{LoRA: "a"}},
		{scheme: "trtllm", option: "Seed", why: "does not enter", o: kvhash.Options{Seed: "a"}},
		{scheme: "trtllm", option: "LoRA", why: "decimal", o: kvhash.Options{LoRA: "-1"}},
		{scheme: "dynamo", option: "Seed", why: "decimal", o: kvhash.Options{Seed: "0x1"}},
		{scheme: "dynamo", option: "Variant", why: `is unknown: "bare"; known are ["eagle" "universal"]`, o: kvhash.Options{Variant: "bare"}},
		{scheme: "vllm_sha256_cbor", option: "Variant", why: `known are ["bare" "lookahead" "pairs"]`, o: kvhash.Options{Variant: "universal"}},
		{scheme: "vllm_xxhash_cbor", option: "Variant", why: "from 1 to 255", o: kvhash.Options{Seed: "0", Variant: "lookahead=0"}},
		{scheme: "vllm_sha256_cbor", option: "LoRA", why: "want name=path", o: kvhash.Options{LoRA: "a"}},
		{scheme: "trtllm_v2_sha256", option: "LoRA", why: "decimal", o: kvhash.Options{LoRA: "a"}},
		{scheme: "dynamo", option: "Model", why: "does not enter", o: kvhash.Options{Model: "m"}},
		{scheme: "dynamo", option: "NoneHash", why: "does not enter", o: kvhash.Options{NoneHash: []byte{}}},
		{scheme: "sglang", option: "Variant", why: "is unknown", o: kvhash.Options{Variant: "bare"}},
		{scheme: "llmd", option: "Variant", why: "does not enter", o: kvhash.Options{Variant: "bare"}},
		{scheme: "vllm_xxhash_cbor", option: "Seed", why: "random"},
		{scheme: "vllm_xxhash_cbor", option: "NoneHash", why: "has 8 bytes, want 16", o: kvhash.Options{NoneHash: make([]byte, 8)}},
		{scheme: "vllm_sha256_cbor", option: "NoneHash", why: "has 16 bytes, want 32", o: kvhash.Options{NoneHash: make([]byte, 16)}},
		{scheme: "vllm_sha256_cbor", option: "NoneHash", why: "one of them", o: kvhash.Options{NoneHash: make([]byte, 32), Seed: "0"}},
	} {
		s, err := kvhash.Lookup(tt.scheme, &tt.o)
		var e *kvhash.OptionError
		require.True(t, errors.As(err, &e), tt)
		require.Equal(t, tt.option, e.Option)
		require.ErrorContains(t, err, fmt.Sprintf("scheme %q", tt.scheme))
		require.ErrorContains(t, err, tt.why)
		require.Equal(t, kvhash.Scheme{}, s)
	}
}

func TestAppendKinds(t *testing.T) {
	const system, tools, history, reasoning, tail = 1, 2, 3, 4, 5
	type span = kvhash.Span[int]
	tests := []struct {
		name  string
		spans []span
		n     int
		want  []int
	}{
		{name: "nothing", n: 2, want: []int{0, 0}},
		{name: "whole blocks", n: 3, spans: []span{{system, 0, 8}, {tail, 8, 12}}, want: []int{system, system, tail}},
		{name: "a shared block is of the greatest kind", n: 2, spans: []span{{system, 0, 5}, {history, 5, 8}}, want: []int{system, history}},
		{name: "in any order", n: 1, spans: []span{{reasoning, 0, 1}, {history, 1, 4}}, want: []int{reasoning}},
		{
			name: "gaps, overlaps, and tokens outside of the blocks", n: 3, want: []int{tools, 0, history},
			spans: []span{{system, -9, 3}, {tools, 2, 4}, {history, 9, 99}, {tail, 5, 5}, {tail, 12, 13}, {tail, -2, 0}},
		},
		{name: "spans out of order", n: 3, spans: []span{{tail, 8, 9}, {tail, 0, 1}, {0, 4, 8}}, want: []int{tail, 0, tail}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, kvhash.AppendKinds(nil, tt.spans, 4, tt.n))
		})
	}
}

// The digests of BLAKE3's own test inputs (bytes 0 to 250, repeated), from the package of PyPI.
func TestBlake3(t *testing.T) {
	in := make([]byte, 31744)
	for i := range in {
		in[i] = byte(i % 251)
	}
	for n, want := range map[int]string{
		0: "af1349b9f5f9a1a6a0404dea36dcc949", 1: "2d3adedff11b61f14c886e35afa03673", 63: "e9bc37a594daad83be9470df7f7b3798",
		64: "4eed7141ea4a5cd4b788606bd23f46e2", 65: "de1e5fa0be70df6d2be8fffd0e99ceaa", 1023: "10108970eeda3eb932baac1428c7a216",
		1024: "42214739f095a406f3fc83deb889744a", 1025: "d00278ae47eb27b34faecf67b4fe263f", 2048: "e776b6028c7cd22a4d0ba182a8bf6220",
		2049: "5f4d72f40d7a5f82b15ca2b2e44b1de3", 3072: "b98cb0ff3623be03326b373de6b90952", 3073: "7124b49501012f81cc7f11ca069ec922",
		4096: "015094013f57a5277b59d8475c050104", 4097: "9b4052b38f1c5fc8b1f9ff7ac7b27cd2", 5121: "628bd2cb2004694adaab7bbd778a25df",
		8193: "bab6c09cb8ce8cf459261398d2e7aef3", 31744: "62b6960e1a44bcc1eb1a611a8d6235b6",
	} {
		require.Equal(t, want, hex.EncodeToString(kvhash.Blake3(in[:n])[:16]), n)
	}
}

// The same bytes by XXH64, from python-xxhash.
func TestXXH64(t *testing.T) {
	in := make([]byte, 100)
	for i := range in {
		in[i] = byte(i)
	}
	for n, want := range map[int]uint64{
		0: 0xef46db3751d8e999, 1: 0xe934a84adb052768, 3: 0xe5c7bb4533bc65dd, 4: 0xffced8604453cc1e, 7: 0x14cc643f630c72d2, 8: 0x884a173614b81b8d,
		31: 0xc346d2b59b4d8ee1, 32: 0xcbf59c5116ff32b4, 33: 0xc535d1acafb8ead, 63: 0xe26aa9e2a95f8e4f, 64: 0xf7c67301db6713f0, 100: 0x6ac1e58032166597,
	} {
		require.Equal(t, want, kvhash.XXH64(in[:n]), n)
	}
}

// A prompt that is hashed in two parts has the hashes of the whole one, in every scheme.
func TestAfter(t *testing.T) {
	x := &kvhash.Extras{Objects: []kvhash.Object{{Hash: 3, ID: "a", At: 3, Len: 7}, {Hash: 1, ID: "b", At: 11, Len: 2}}}
	for _, name := range kvhash.Names() {
		for _, eagle := range []bool{false, true} {
			opt := &kvhash.Options{Salt: "s", LoRA: "7=p", Variant: map[bool]string{true: "eagle"}[eagle]}
			switch {
			case eagle && name != "dynamo" && name != "sglang":
				continue
			case name == "sglang":
				opt.LoRA = ""
			case name == "vllm_xxhash_cbor":
				opt.Seed = "0"
			case strings.HasPrefix(name, "trtllm"):
				opt.LoRA = "7"
			}
			s := mustScheme(t, name, opt)
			tokens := count(0, 27)
			for _, x := range []*kvhash.Extras{nil, x} {
				whole, digests := s.AppendBlocks(nil, tokens, 4, x), s.AppendDigests(nil, tokens, 4, x)
				size := s.DigestLen()
				for n := 1; n < len(whole); n++ {
					rest := s.After(digests[(n-1)*size : n*size])
					var y *kvhash.Extras
					if x != nil {
						y = new(kvhash.Extras)
						for _, o := range x.Objects {
							o.At -= n * 4
							y.Objects = append(y.Objects, o)
						}
					}
					require.Equal(t, whole[n:], rest.AppendBlocks(nil, tokens[4*n:], 4, y), "%s after %d", name, n)
					require.Equal(t, digests[n*size:], rest.AppendDigests(nil, tokens[4*n:], 4, y), "%s after %d", name, n)
					c := kvhash.NewChain(4, rest)
					c.SetExtras(y)
					for _, token := range tokens[4*n:] {
						c.Append(token)
					}
					require.Equal(t, whole[n:], c.Blocks(), "%s after %d", name, n)
					if opt.Salt != "" && name != "dynamo" {
						require.Equal(t, rest, rest.With("", "other"), name)
					}
					require.Equal(t, rest, s.After(digests[(n-1)*size:n*size]))
				}
			}
			require.Panics(t, func() { s.After(digestsOf(s)[1:]) })
		}
	}
}

// digestsOf returns a digest of the right length.
func digestsOf(s kvhash.Scheme) []byte { return make([]byte, s.DigestLen()) }

// Hashes of vLLM 0.33.0's own functions, with lookahead: tokens 0 to 11, blocks of 4.
func TestLookahead(t *testing.T) {
	tokens := make([]uint32, 12)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	images := &kvhash.Extras{Objects: []kvhash.Object{{ID: "img", At: 2, Len: 4}, {ID: "im2", At: 8, Len: 2}}}
	for _, c := range []struct {
		scheme, variant, lora, salt string
		x                           *kvhash.Extras
		want                        []uint64
	}{
		{"vllm_sha256_cbor", "lookahead", "", "", nil, []uint64{0x122aa41d085ed1c6, 0xaa0bc2bae551e617}},
		{"vllm_sha256_cbor", "lookahead", "", "s", nil, []uint64{0x2e851c5337765d56, 0x5cf4432b1e02e0dc}},
		{"vllm_sha256_cbor", "lookahead", "ad=/p", "", nil, []uint64{0x36e428c98f35a3b4, 0x3d677ad4bad47070}},
		{"vllm_sha256_cbor", "lookahead", "ad=/p", "s", images, []uint64{0xa49e6c6e4bceed90, 0xda9e35a80650c58f}},
		{"vllm_sha256_cbor", "lookahead=3", "", "", nil, []uint64{0x0c1357c1e0d9fb0e, 0xb331bd07569ddd42}},
		{"vllm_sha256_cbor", "lookahead=3", "", "s", nil, []uint64{0xe8ce23a717291ef1, 0x61603bf21f6830ef}},
		{"vllm_sha256_cbor", "lookahead=3", "ad=/p", "", nil, []uint64{0x296568f9135e26c7, 0xd104611c558913d2}},
		{"vllm_sha256_cbor", "lookahead=3", "ad=/p", "s", images, []uint64{0x4b05a1d91a7f78b7, 0x10bd0f1033629593}},
		{"vllm_xxhash_cbor", "lookahead", "", "", nil, []uint64{0xa2cd2e349bfb7e44, 0x6f381b8b8e6205b0}},
		{"vllm_xxhash_cbor", "lookahead", "", "s", nil, []uint64{0x8aeca284ee1a45a0, 0xf4842db75cfa7fd4}},
		{"vllm_xxhash_cbor", "lookahead", "ad=/p", "", nil, []uint64{0x39f382884e840705, 0xb288bebf4e7a6dc1}},
		{"vllm_xxhash_cbor", "lookahead", "ad=/p", "s", images, []uint64{0xa8c6f78128190705, 0xc5828d9814b6ea54}},
		{"vllm_xxhash_cbor", "lookahead=3", "", "", nil, []uint64{0x622d308ca03c71aa, 0x7b4d1983ef2b76e2}},
		{"vllm_xxhash_cbor", "lookahead=3", "", "s", nil, []uint64{0xe51370eb336a1872, 0xf3408c5a88a74bda}},
		{"vllm_xxhash_cbor", "lookahead=3", "ad=/p", "", nil, []uint64{0x7a79a221bcab7b80, 0x5fe30355341df2db}},
		{"vllm_xxhash_cbor", "lookahead=3", "ad=/p", "s", images, []uint64{0xa46f1a6a4beaec7c, 0x08f255e09b967c60}},
	} {
		s := mustScheme(t, c.scheme, &kvhash.Options{Seed: "vllm-none-hash", Variant: c.variant, LoRA: c.lora, Salt: c.salt})
		require.Equal(t, c.want, s.AppendBlocks(nil, tokens, 4, c.x), "%+v", c)
		require.Len(t, s.AppendBlocks(nil, tokens[:s.Window(4)], 4, c.x), 1)
		require.Empty(t, s.AppendBlocks(nil, tokens[:s.Window(4)-1], 4, c.x), "the tokens after the block are missing")
		chain := kvhash.NewChain(4, s)
		chain.SetExtras(c.x)
		for _, token := range tokens { // one by one
			chain.Append(token)
		}
		require.Equal(t, c.want, chain.Blocks(), "%+v", c)
	}
}
