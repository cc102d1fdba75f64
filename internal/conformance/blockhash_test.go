// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/kvhash"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/mini"
)

// oracle makes the digests of a prompt with a CBOR library and the standard library's hashes, as the engines describe them.
type oracle struct {
	scheme string
	opt    kvhash.Options
	enc    cbor.EncMode
}

func (o oracle) sum(v any) []byte {
	raw, err := o.enc.Marshal(v)
	if err != nil {
		panic(err)
	}
	switch o.scheme {
	case "vllm_sha256_cbor":
		d := sha256.Sum256(raw)
		return d[:]
	case "vllm_xxhash_cbor":
		d := xxh3.Hash128(raw).Bytes()
		return d[:]
	}
	h := fnv.New64a()
	h.Write(raw)
	return h.Sum(nil)
}

func (o oracle) digests(tokens []uint32, block int, x *kvhash.Extras) (all []byte) {
	llmd := o.scheme == "llmd"
	var parent []byte
	switch {
	case llmd:
		h := fnv.New64a()
		h.Write([]byte(o.opt.Seed))
		model := o.opt.Model
		if o.opt.LoRA != "" {
			model = o.opt.LoRA
		}
		parent = o.sum([]any{h.Sum64(), nil, model})
	case o.opt.NoneHash != nil:
		parent = o.opt.NoneHash
	case o.opt.Seed != "":
		parent = o.sum(o.opt.Seed)
	default:
		parent = o.sum("vllm-none-hash")
	}
	for i := 0; (i+1)*block <= len(tokens); i++ {
		var keys []any
		pairs, bare := o.opt.Variant != "", o.opt.Variant == "bare"
		tagged := func(key ...any) any { // vLLM 0.32 begins each key with its source
			switch {
			case !pairs:
				return key
			case len(key) == 2 || key[0] == "lora":
				return key[1]
			}
			return key[1:]
		}
		if o.opt.LoRA != "" && !llmd {
			name, path, _ := strings.Cut(o.opt.LoRA, "=")
			if pairs {
				name = o.opt.LoRA
			}
			keys = append(keys, tagged("lora", name, path))
		}
		for _, obj := range x.Objects {
			switch {
			case obj.At+obj.Len <= i*block || obj.At >= (i+1)*block:
			case llmd:
				keys = append(keys, struct{ Hash string }{obj.ID})
			case bare:
				keys = append(keys, obj.ID)
			default:
				keys = append(keys, tagged("mm", obj.ID, obj.At-i*block))
			}
		}
		switch {
		case o.opt.Salt == "" || i > 0:
		case llmd:
			keys = append(keys, struct{ Hash string }{o.opt.Salt})
		default:
			keys = append(keys, tagged("cache_salt", o.opt.Salt))
		}
		if i < len(x.Embeds) && x.Embeds[i] != nil && !llmd {
			keys = append(keys, tagged("prompt_embeds", x.Embeds[i]))
		}
		var extra any
		if keys != nil {
			extra = keys
		}
		var above any = parent
		if llmd {
			above = binary.BigEndian.Uint64(parent)
		}
		parent = o.sum([]any{above, tokens[i*block:][:block], extra})
		all = append(all, parent...)
	}
	return all
}

// TestBlockHashCBOR compares the hand-written CBOR encoding of kvhash with a library, over random blocks with extra
// keys of all types.
func TestBlockHashCBOR(t *testing.T) {
	enc, err := cbor.CanonicalEncOptions().EncMode()
	require.NoError(t, err)
	token := rapid.OneOf(rapid.Uint32Max(23), rapid.Uint32Range(20, 260), rapid.Uint32Range(250, 1<<16+5), rapid.Uint32())
	text := rapid.OneOf(rapid.StringN(0, 20, -1), rapid.StringN(20, 30, -1), rapid.StringN(250, 300, -1))
	rapid.Check(t, func(t *rapid.T) {
		o := oracle{scheme: rapid.SampledFrom([]string{"vllm_sha256_cbor", "vllm_xxhash_cbor", "llmd"}).Draw(t, "scheme"), enc: enc}
		o.opt.Seed, o.opt.LoRA = text.Draw(t, "seed"), text.Draw(t, "lora")
		o.opt.Salt = text.Draw(t, "salt")
		if o.scheme == "llmd" {
			o.opt.Model = text.Draw(t, "model")
		} else {
			o.opt.Variant = rapid.SampledFrom([]string{"", "pairs", "bare"}).Draw(t, "variant")
			if o.opt.LoRA != "" && o.opt.Variant == "" {
				o.opt.LoRA = "a" + o.opt.LoRA + "=" + text.Draw(t, "path")
			}
			xxhash := o.scheme == "vllm_xxhash_cbor" // has no default seed
			if xxhash && o.opt.Seed == "" || rapid.Bool().Draw(t, "none") {
				n := 32
				if xxhash && rapid.Bool().Draw(t, "short") {
					n = 16
				}
				o.opt.Seed, o.opt.NoneHash = "", rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "none hash")
			}
		}
		s, err := kvhash.Lookup(o.scheme, &o.opt)
		require.NoError(t, err)
		block := rapid.SampledFrom([]int{1, 2, 16, 23, 24, 300}).Draw(t, "block")
		tokens := rapid.SliceOfN(token, 0, 3*block).Draw(t, "tokens")
		x := new(kvhash.Extras)
		at := rapid.IntRange(-300, 10).Draw(t, "at")
		for range rapid.IntRange(0, 30).Draw(t, "objects") {
			n := rapid.IntRange(1, 2*block).Draw(t, "len")
			x.Objects = append(x.Objects, kvhash.Object{ID: text.Draw(t, "id"), At: at, Len: n})
			at += n + rapid.IntRange(0, block/2).Draw(t, "gap")
		}
		x.Embeds = rapid.SliceOfN(rapid.SampledFrom([][]byte{nil, {}, {1, 2}, make([]byte, 32)}), 0, 3).Draw(t, "embeds")
		got, want := s.AppendDigests(nil, tokens, block, x), o.digests(tokens, block, x)
		if string(got) != string(want) {
			t.Fatalf("got %x\nwant %x", got, want)
		}
	})
}

// prompts tokenizes and hashes prompts, and keeps the hashes with the cut points of the prefix cache.
type prompts struct {
	cache *cache.Cache
	chain *kvhash.Chain
	ids   []uint32
	cuts  []cache.Prefix
}

// hash returns how many of the prompt's tokens were hashed now.
func (p *prompts) hash(segs []tokenizers.Segment) int {
	p.ids, p.cuts = p.cache.AppendEncodePrefixes(p.ids[:0], p.cuts[:0], "tenant", segs)
	p.chain.Truncate(0)
	known := 0
	for ; known < len(p.cuts); known++ {
		piece, _ := p.cuts[known].Value().(*kvhash.Piece)
		if !p.chain.Join(piece) {
			break
		}
	}
	fresh := p.ids[p.chain.Len():]
	p.chain.Append(fresh...)
	for i := known; i < len(p.cuts); i++ {
		from := 0
		if i > 0 {
			from = p.cuts[i-1].Tokens
		}
		p.cuts[i].SetValue(p.chain.Piece(from, p.cuts[i].Tokens))
	}
	return len(fresh)
}

// TestChainFromPrefixCache joins the tokenizer's prefix cache and the chain: for each later request of a conversation,
// only the new tokens and the block that contains the last cut are hashed.
func TestChainFromPrefixCache(t *testing.T) {
	const block = 16
	tok := mini.Load()
	for _, name := range kvhash.Names() {
		t.Run(name, func(t *testing.T) {
			var o kvhash.Options
			if name == "vllm_xxhash_cbor" { // without a seed vLLM draws a random one
				o.Seed = "0"
			}
			s, err := kvhash.Lookup(name, &o)
			require.NoError(t, err)
			c, err := cache.New(tok, &cache.Options{Spacing: 256})
			require.NoError(t, err)
			p := &prompts{cache: c, chain: kvhash.NewChain(block, s)}
			var text strings.Builder
			text.WriteString("<|im_start|>system\n" + strings.Repeat("You are a careful agent. ", 200) + "<|im_end|>\n")
			before := 0 // tokens of the request before
			for turn := range 12 {
				fmt.Fprintf(&text, "<|im_start|>user\nStep %d: %s<|im_end|>\n", turn, strings.Repeat("run the tests ", 40+turn))
				segs := []tokenizers.Segment{{Text: text.String(), Trusted: true}}
				hashed := p.hash(segs)
				want := tok.AppendEncode(nil, text.String())
				require.Equal(t, want, p.ids)
				if turn == 0 {
					require.Equal(t, len(want), hashed)
				} else {
					require.LessOrEqual(t, hashed, len(want)-before+block, "turn %d of %d tokens", turn, len(want))
				}
				whole := s.AppendBlocks(nil, want, block, nil)
				require.True(t, slices.Equal(whole, p.chain.Blocks()))
				if s.DigestLen() > 8 {
					require.Equal(t, s.AppendDigests(nil, want, block, nil), p.chain.Digests())
				}
				require.Less(t, p.hash(segs), 2*block, "the same request again")
				require.True(t, slices.Equal(whole, p.chain.Blocks()))
				before = len(want)
			}
		})
	}
}
