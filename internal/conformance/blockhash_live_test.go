// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash"
)

// TestLiveBlockHashes compares kvhash with the functions of vLLM and SGLang themselves. WEFT_LIVE_HASHES is the
// directory that testdata/live/blockhash.py wrote; .ci/live runs both.
func TestLiveBlockHashes(t *testing.T) {
	dir := os.Getenv("WEFT_LIVE_HASHES")
	if dir == "" {
		t.Skip("set WEFT_LIVE_HASHES to the output of testdata/live/blockhash.py")
	}
	f, err := os.Open(filepath.Join(dir, "cases.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	n := map[string]int{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var c struct {
			Scheme, Seed, Salt, LoRA string
			Eagle                    bool
			Block                    int
			Tokens                   []uint32
			Objects                  []kvhash.Object
			Embeds, Digests          []string
			Events                   []int64
		}
		require.NoError(t, json.Unmarshal(in.Bytes(), &c))
		opt := &kvhash.Options{Seed: c.Seed, Salt: c.Salt, LoRA: c.LoRA}
		if c.Eagle {
			opt.Variant = "eagle"
		}
		s, err := kvhash.Lookup(c.Scheme, opt)
		require.NoError(t, err)
		x := &kvhash.Extras{Objects: c.Objects}
		for _, e := range c.Embeds {
			b, err := hex.DecodeString(e)
			require.NoError(t, err)
			x.Embeds = append(x.Embeds, b)
		}
		require.Equal(t, strings.Join(c.Digests, ""), hex.EncodeToString(s.AppendDigests(nil, c.Tokens, c.Block, x)), in.Text())
		for i, h := range s.AppendBlocks(nil, c.Tokens, c.Block, x) {
			if c.Events != nil {
				require.Equal(t, c.Events[i], int64(h))
			}
		}
		n[c.Scheme]++
	}
	require.NoError(t, in.Err())
	require.Len(t, n, 3)
	t.Log(n)
}

// TestBlockHashModels compares the schemes without CBOR with their descriptions, written here with other libraries, on
// random prompts that are hashed at once, in parts and after a parent.
func TestBlockHashModels(t *testing.T) {
	le64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	sum := func(parts ...[]byte) []byte {
		h := sha256.New()
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	xx := func(parts ...[]byte) []byte {
		h := xxhash.New()
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil) // big-endian
	}
	sized := func(s string) []byte { return append(le64(uint64(len(s))), s...) }
	text := rapid.OneOf(rapid.String(), rapid.StringN(-1, -1, 5000), rapid.Just("0123456789abcdef"))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"sglang", "llmd_xxh64", "trtllm", "trtllm_v2_sha256", "trtllm_v2_sha256_64"}).Draw(t, "scheme")
		opt := kvhash.Options{Salt: text.Draw(t, "salt")}
		block := rapid.IntRange(1, 20).Draw(t, "block")
		tokens := rapid.SliceOfN(rapid.Uint32(), 0, 100).Draw(t, "tokens")
		x := new(kvhash.Extras)
		var parent []byte
		keys := func(int) (b []byte) { return nil }
		saltID := func() []byte {
			if opt.Variant == "blake3" {
				h := blake3.Sum256([]byte(opt.Salt))
				return h[:8]
			}
			return sum([]byte(opt.Salt))[:8]
		}
		task := rapid.Uint64().Draw(t, "task")
		if strings.HasPrefix(name, "trtllm") {
			opt.Variant = rapid.SampledFrom([]string{"", "blake3"}).Draw(t, "variant")
			if rapid.Bool().Draw(t, "adapter") {
				opt.LoRA = strconv.FormatUint(task, 10)
			}
		}
		switch name {
		case "sglang":
			if opt.Salt != "" {
				parent = sum([]byte("sglang-cache-salt-v1\x00" + opt.Salt))
			}
		case "llmd_xxh64":
			opt.Seed, opt.Model = text.Draw(t, "seed"), text.Draw(t, "model")
			parent = xx(le64(xxhash.Sum64String(opt.Seed)), sized(opt.Model))
			at := 0
			for range rapid.IntRange(0, 5).Draw(t, "objects") {
				n := rapid.IntRange(1, 2*block).Draw(t, "len")
				x.Objects = append(x.Objects, kvhash.Object{ID: text.Draw(t, "id"), At: at, Len: n})
				at += n + rapid.IntRange(0, block).Draw(t, "gap")
			}
			keys = func(i int) (b []byte) {
				for _, o := range x.Objects {
					if o.At < (i+1)*block && o.At+o.Len > i*block {
						b = append(b, sized(o.ID)...)
					}
				}
				if i == 0 && opt.Salt != "" {
					b = append(b, sized(opt.Salt)...)
				}
				return b
			}
		case "trtllm_v2_sha256", "trtllm_v2_sha256_64":
			scope := []byte{0}
			if opt.LoRA != "" {
				scope[0] |= 1
				scope = append(scope, le64(task)...)
			}
			if opt.Salt != "" {
				scope[0] |= 2
				scope = append(scope, saltID()...)
			}
			parent = sum(scope)
		}
		var want []byte
		for i := 0; (i+1)*block <= len(tokens); i++ {
			var raw []byte
			for _, token := range tokens[i*block:][:block] {
				raw = binary.LittleEndian.AppendUint32(raw, token)
			}
			switch name {
			case "llmd_xxh64":
				parent = xx(le64(binary.BigEndian.Uint64(parent)), raw, keys(i))
			case "trtllm":
				var p, salt uint64
				if i > 0 {
					p = binary.BigEndian.Uint64(parent)
				} else if opt.Salt != "" {
					salt = binary.LittleEndian.Uint64(saltID())
				}
				parent = binary.BigEndian.AppendUint64(nil, blockKey(tokens[i*block:][:block], p, i == 0 && opt.Salt != "", salt, opt.LoRA != "", task))
			default:
				parent = sum(parent, raw)
			}
			want = append(want, parent...)
		}
		s, err := kvhash.Lookup(name, &opt)
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(s.AppendDigests(nil, tokens, block, x)))
		size := s.DigestLen()
		n := len(want) / size
		if n == 0 {
			return
		}
		known := rapid.IntRange(1, n).Draw(t, "known")
		rest := kvhash.NewChain(block, s.After(want[(known-1)*size:known*size]))
		y := new(kvhash.Extras)
		for _, o := range x.Objects {
			o.At -= known * block
			y.Objects = append(y.Objects, o)
		}
		rest.SetExtras(y)
		for left := tokens[known*block:]; len(left) > 0; {
			some := rapid.IntRange(1, len(left)).Draw(t, "some")
			rest.Append(left[:some]...)
			left = left[some:]
		}
		for i, h := range rest.Blocks() {
			d := want[(known+i)*size:][:size]
			require.Equal(t, binary.BigEndian.Uint64(d), h, "the first 8 bytes, or all")
		}
	})
}

// blockKey is TensorRT-LLM's v1_block_key of a block, step by step.
func blockKey(tokens []uint32, parent uint64, salted bool, salt uint64, adapted bool, task uint64) uint64 {
	h := uint64(len(tokens)) ^ parent*0xbf58476d1ce4e5b9
	combine := func(v uint64) { h ^= v + (h << 6) + (h >> 2) }
	id := func(v uint64) {
		v ^= v >> 30
		v *= 0xbf58476d1ce4e5b9
		v ^= v >> 27
		v *= 0x94d049bb133111eb
		v ^= v >> 31
		combine(v + 0x9e3779b9)
	}
	if parent == 0 && salted {
		id(salt)
	}
	for _, t := range tokens {
		for range 2 {
			t ^= t >> 16
			t *= 0x45d9f3b
		}
		t ^= t >> 16
		t += 0x9e3779b9
		combine(uint64(t))
	}
	if adapted {
		id(task)
	}
	return h
}
