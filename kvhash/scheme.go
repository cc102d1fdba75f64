// SPDX-License-Identifier: Apache-2.0

package kvhash

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/zeebo/xxh3"
)

// Scheme is a hashing rule and its settings: how an engine or a router hashes the blocks of a prompt. It is a small comparable value. The
// zero Scheme is Dynamo's, without LoRA or namespace; [Scheme.With] adds those, [Lookup] returns the others.
type Scheme struct {
	// Three words, so that copying a Scheme is cheap when single blocks of events are hashed.
	mode mode
	salt uint64 // Dynamo: added to dynamoSeed; llm-d: hash of the seed; vLLM with eagle: the tokens after a block in its hash
	more unique.Handle[settings]
}

// settings are the options of all schemes except Dynamo's, and for each scheme the digest of the block before the first
// one. They are interned, so that a Scheme stays small and comparable.
type settings struct {
	root            [32]byte // vLLM, SGLang, TensorRT-LLM v2: parent of the first block, its first rootLen bytes
	rootLen         uint8
	lora, namespace string // vLLM; llm-d: namespace
	path            string // vLLM: of the adapter
	parent          uint64 // llm-d; with the flag after also Dynamo, TensorRT-LLM: parent of the first block
	task, saltID    uint64 // TensorRT-LLM: ids of LoRA and salt, if withTask and withSalt are on
}

// mode contains the kind of a scheme and its flags.
type mode uint16

const (
	dynamo mode = iota
	vllmSHA256
	vllmXXHash
	sglang
	llmd
	llmdXXH64
	trtllm
	trtllmV2
	trtllmV2Short

	kindMask mode = 1<<8 - 1
)

const (
	eagle     mode = 1 << (8 + iota) // the hash of a block covers tokens after it
	universal                        // Dynamo: frames of 13 bytes
	bare                             // vLLM: object keys without offsets
	pairs                            // vLLM: keys without tags
	blake                            // TensorRT-LLM: salt ids by BLAKE3
	withTask                         // TensorRT-LLM
	withSalt                         // TensorRT-LLM; SGLang: settings.root
	after                            // the first block has a parent
)

func (m mode) kind() mode      { return m & kindMask }
func (m mode) has(f mode) bool { return m&f != 0 }

var kinds = [...]struct {
	name   string
	digest int // bytes
}{
	dynamo:     {"dynamo", 8},
	vllmSHA256: {"vllm_sha256_cbor", 32},
	vllmXXHash: {"vllm_xxhash_cbor", 16},
	sglang:     {"sglang", 32},
	llmd:       {"llmd", 8},
	llmdXXH64:  {"llmd_xxh64", 8},
	trtllm:     {"trtllm", 8},

	trtllmV2:      {"trtllm_v2_sha256", 32},
	trtllmV2Short: {"trtllm_v2_sha256_64", 32},
}

// variants are the values of [Options].Variant besides "".
var variants = map[mode]map[string]mode{
	dynamo:        {"universal": universal, "eagle": eagle},
	sglang:        {"eagle": eagle},
	vllmSHA256:    {"pairs": pairs, "bare": pairs | bare, "lookahead": eagle},
	vllmXXHash:    {"pairs": pairs, "bare": pairs | bare, "lookahead": eagle},
	trtllm:        {"blake3": blake},
	trtllmV2:      {"blake3": blake},
	trtllmV2Short: {"blake3": blake},
}

// Options are the settings of [Lookup]. The zero value is a plain prompt on the base model of an engine with default
// settings. [Lookup] returns an error for options that the engine does not mix into its hashes: a caller that relies on
// them needs a separate index for each value.
type Options struct {
	// LoRA is the name of the prompt's adapter. For vLLM since 0.32 it is name=path, as in --lora-modules, because the
	// hashes include the path; for TensorRT-LLM, the adapter's task ID in decimal. Not for sglang.
	LoRA string
	// Salt separates the caches of tenants: Dynamo's cache_namespace, and the cache_salt of other engines' requests.
	Salt string
	// Seed starts the chain. vLLM: the value of PYTHONHASHSEED; "" means that it is not set, in a vLLM that has pull request
	// 51875 (August 2026): "vllm-none-hash" for vllm_sha256_cbor; vllm_xxhash_cbor has no such default, as vLLM draws a random
	// seed for it. llm-d: its hashSeed. Dynamo: the seed of the local hash in decimal, "" means 1337. Not for SGLang and TensorRT-LLM.
	Seed string
	// NoneHash is vLLM's NONE_HASH if it does not derive from a known seed; nil means that it derives from Seed. It has
	// 32 bytes, or 16 for vllm_xxhash_cbor. Without PYTHONHASHSEED, older versions of vLLM use 32 random bytes, and
	// newer ones with vllm_xxhash_cbor 16 bytes derived from a random seed.
	NoneHash []byte
	// Model is the model's name; only for llm-d.
	Model string
	// Variant selects a form of the hashes where versions, parts or modes of an engine differ; "" is the plain one of the
	// newest version.
	//
	//	dynamo     "universal": blocks with objects as frames of 13 bytes, as in Dynamo's block manager
	//	           "eagle": a block with the token after it, for engines that decode with EAGLE
	//	sglang     "eagle": pairs of adjacent tokens (bigrams), with EAGLE
	//	vLLM       "": each key is tagged with its source, since 0.32
	//	           "lookahead": a block with the token after it, with EAGLE, EAGLE3 or MTP since 0.33, unless it runs with a KV
	//	           connector or disable_lookahead_block_hashes; "lookahead=N": with N tokens, for MTP of N modules
	//	           "pairs": keys without tags, objects with offsets, before 0.32
	//	           "bare": keys without tags, objects without offsets, in 2025 and early 2026
	//	trtllm...  "": the ID of a salt is derived with SHA-256
	//	           "blake3": with BLAKE3, before mid-2026
	Variant string
}

// OptionError reports a scheme that does not exist or cannot be reproduced, or an option that a scheme does not
// support.
type OptionError struct {
	Option string // the field of [Options], or "" if the error is about the scheme itself
	Why    string

	scheme string // as it was asked for
}

func (e *OptionError) Error() string {
	if e.Option == "" {
		return fmt.Sprintf("kvhash: scheme %q: %s", e.scheme, e.Why)
	}
	return fmt.Sprintf("kvhash: scheme %q: option %s: %s", e.scheme, e.Option, e.Why)
}

// Names returns the names of all schemes.
func Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Lookup returns the scheme with the given name, one of [Names]; nil options mean the zero [Options]. An error is an
// [*OptionError].
func Lookup(name string, o *Options) (Scheme, error) {
	if o == nil {
		o = new(Options)
	}
	var s Scheme
	k := slices.IndexFunc(kinds[:], func(k struct {
		name   string
		digest int
	}) bool {
		return k.name == name
	})
	if k < 0 {
		return s, &OptionError{scheme: name, Why: unknown(name)}
	}
	s.mode = mode(k)
	kind := s.mode
	vllm := kind == vllmSHA256 || kind == vllmXXHash
	for _, no := range []struct {
		option string
		set    bool
		ok     bool
	}{
		{"LoRA", o.LoRA != "", kind != sglang},
		{"Seed", o.Seed != "", kind != sglang && kind < trtllm},
		{"NoneHash", o.NoneHash != nil, vllm},
		{"Model", o.Model != "", kind == llmd || kind == llmdXXH64},
		{"Variant", o.Variant != "", variants[kind] != nil},
	} {
		if no.set && !no.ok {
			return Scheme{}, &OptionError{scheme: name, Option: no.option, Why: "does not enter the hashes of this scheme"}
		}
	}
	bad := func(option, why string) (Scheme, error) {
		return Scheme{}, &OptionError{scheme: name, Option: option, Why: why}
	}
	form := o.Variant
	if n, many := strings.CutPrefix(form, "lookahead="); many && vllm {
		after, err := strconv.ParseUint(n, 10, 8)
		if err != nil || after == 0 {
			return bad("Variant", "has no number of tokens from 1 to 255 after lookahead=")
		}
		form, s.salt = "lookahead", after
	} else if form == "lookahead" {
		s.salt = 1
	}
	variant, ok := variants[kind][form]
	if !ok && o.Variant != "" {
		return bad("Variant", fmt.Sprintf("is unknown: %q; known are %q", o.Variant, slices.Sorted(maps.Keys(variants[kind]))))
	}
	s.mode |= variant
	switch kind {
	case dynamo:
		if o.Seed != "" {
			seed, err := strconv.ParseUint(o.Seed, 10, 64)
			if err != nil {
				return bad("Seed", "is not a decimal number of 64 bits")
			}
			s.salt = seed - dynamoSeed
		}
	case vllmSHA256, vllmXXHash:
		if o.NoneHash != nil && o.Seed != "" {
			return bad("NoneHash", "goes in the place of Seed: give one of them")
		}
		if n := len(o.NoneHash); o.NoneHash != nil && n != s.DigestLen() && n != 32 {
			return bad("NoneHash", fmt.Sprintf("has %d bytes, want %d", n, s.DigestLen()))
		}
		if kind == vllmXXHash && o.NoneHash == nil && o.Seed == "" {
			return bad("Seed", "is missing: without PYTHONHASHSEED vLLM begins these hashes with random bytes of each process")
		}
		if o.LoRA != "" && !s.mode.has(pairs) && strings.IndexByte(o.LoRA, '=') < 1 {
			return bad("LoRA", "has no name or no path, want name=path; before vLLM 0.32 use the variant pairs")
		}
		s.more = unique.Make(s.noneHash(o.Seed, o.NoneHash))
	case llmd:
		s.salt = fnv1a([]byte(o.Seed))
		s.more = unique.Make(settings{parent: s.llmdRoot(o.Model)})
	case llmdXXH64:
		s.salt = xxh64([]byte(o.Seed))
		s.more = unique.Make(settings{parent: s.llmdRoot(o.Model)})
	case trtllm, trtllmV2, trtllmV2Short:
		if _, err := strconv.ParseUint(o.LoRA, 10, 64); o.LoRA != "" && err != nil {
			return bad("LoRA", "is not an id, a decimal number of 64 bits")
		}
		s.more = unique.Make(s.scope(settings{}))
	case sglang:
		s.more = unique.Make(settings{})
	}
	return s.With(o.LoRA, o.Salt), nil
}

// unknown returns the error for an unknown name.
func unknown(name string) string {
	switch name {
	case "vllm_sha256", "vllm_xxhash", "sha256", "xxhash":
		return "vLLM hashes Python's pickle of the block here, which changes with the identity of objects and with Python's version;" +
			" start vLLM with --prefix-caching-hash-algo sha256_cbor or xxhash_cbor"
	}
	return fmt.Sprintf("there is no such scheme; known are %v", Names())
}

// With returns the scheme with the given LoRA adapter and namespace (cache salt), in the form of [Options]; "" means
// none. The scheme must not have either. A value that the engine does not mix into its hashes is ignored, so that
// hashes stay equal. For Dynamo's scheme, With does not allocate.
func (s Scheme) With(lora, namespace string) Scheme {
	if s.mode.kind() != dynamo {
		return s.with(lora, namespace)
	}
	// The two strings use different inner seeds, so that an adapter and a namespace of one name do not collide.
	if lora != "" {
		s.salt += xxh3.HashStringSeed(lora, 0)
	}
	if namespace != "" {
		s.salt += xxh3.HashStringSeed(namespace, 1)
	}
	return s
}

func (s Scheme) with(lora, namespace string) Scheme {
	if s.mode.has(after) {
		namespace = "" // it enters the first block of the prompt
	}
	if lora == "" && namespace == "" {
		return s
	}
	v := s.more.Value()
	switch s.mode.kind() {
	case vllmSHA256, vllmXXHash:
		v.namespace = cmp.Or(namespace, v.namespace)
		if lora != "" && s.mode.has(pairs) {
			v.lora = lora
		} else if lora != "" {
			v.lora, v.path, _ = strings.Cut(lora, "=")
		}
	case sglang:
		if namespace != "" {
			v.root, v.rootLen = sha256.Sum256([]byte(sglangSalt+namespace)), sha256.Size
			s.mode |= withSalt
		}
	case llmd, llmdXXH64:
		v.namespace = cmp.Or(namespace, v.namespace)
		if lora != "" && !s.mode.has(after) {
			v.parent = s.llmdRoot(lora)
		}
	case trtllm, trtllmV2, trtllmV2Short:
		if id, err := strconv.ParseUint(lora, 10, 64); err == nil {
			v.task, s.mode = id, s.mode|withTask
		}
		if namespace != "" {
			v.saltID, s.mode = s.trtllmSalt(namespace), s.mode|withSalt
		}
		v = s.scope(v)
	}
	s.more = unique.Make(v)
	return s
}

// After returns the scheme for prompts whose beginning was hashed before: the first block that the result hashes follows
// the block with the given digest, of [Scheme.DigestLen] bytes. The positions of [Extras] are counted from that block.
// For schemes that chain 64-bit hashes, the digest is the hash, big-endian. The namespace enters the first block of a
// prompt, so the result ignores it, except for Dynamo's. An adapter and Dynamo's namespace must be set as for the blocks
// before. After panics if the digest has another length. It allocates.
func (s Scheme) After(digest []byte) Scheme {
	if len(digest) != s.DigestLen() {
		panic(fmt.Sprintf("kvhash: After: digest has %d bytes, want %d", len(digest), s.DigestLen()))
	}
	var v settings
	if s.more != (unique.Handle[settings]{}) {
		v = s.more.Value()
	}
	v.namespace, v.saltID = "", 0
	v.rootLen = uint8(copy(v.root[:], digest))
	v.parent = binary.BigEndian.Uint64(digest)
	s.mode = s.mode&^withSalt | after
	s.more = unique.Make(v)
	return s
}

// String returns the scheme's name, one of [Names].
func (s Scheme) String() string { return kinds[s.mode.kind()].name }

// HasLocal reports whether the scheme has local hashes, which depend only on the tokens of a block, not on its
// position. Only Dynamo's has; the others hash a block together with its parent's digest.
func (s Scheme) HasLocal() bool { return s.mode.kind() == dynamo }

// DigestLen returns the length of a block's digest in bytes: 32 or 16 for vLLM, 32 for SGLang and TensorRT-LLM's v2
// schemes, and 8 for schemes that chain 64-bit hashes.
func (s Scheme) DigestLen() int { return kinds[s.mode.kind()].digest }

// Event returns the 64-bit number that the engine puts into events for the block with the given digest, of [Scheme.DigestLen]
// bytes. vLLM takes the last 8 bytes, SGLang the first 8 (and prints them as a signed number: int64(Event(d))), and so does
// TensorRT-LLM with v2_sha256_64. With v2_sha256 its events contain the whole digest, of which package kvevent takes the
// same bytes.
func (s Scheme) Event(digest []byte) uint64 {
	switch s.mode.kind() {
	case sglang, trtllmV2, trtllmV2Short:
		return binary.BigEndian.Uint64(digest)
	}
	return binary.BigEndian.Uint64(digest[s.DigestLen()-8:])
}

// Window returns the number of tokens that the hash of a block of the given size covers: block, or one more with EAGLE, or as many more
// as vLLM's lookahead has.
func (s Scheme) Window(block int) int {
	switch {
	case !s.mode.has(eagle):
		return block
	case s.mode.kind() == vllmSHA256 || s.mode.kind() == vllmXXHash:
		return max(block, block+int(s.salt)) // no overflow
	}
	return max(block, block+1)
}

// AppendBlocks appends the hash of every complete block of tokens to dst and returns it. tokens begins at the start of
// the prompt; x is its other input, or nil. The hashes are the 64-bit numbers in the engine's events: sequence hashes
// for Dynamo, and otherwise [Scheme.Event] of the digests. It panics if block is not positive. O(tokens), no allocation
// if dst has room and blocks have 512 tokens or fewer.
func (s Scheme) AppendBlocks(dst []uint64, tokens []uint32, block int, x *Extras) []uint64 {
	checkBlock(block)
	dst = slices.Grow(dst, complete(len(tokens), block, s.Window(block)))
	if s.mode.kind() != dynamo {
		dst, _ = s.appendDigests(dst, nil, tokens, block, x)
		return dst
	}
	parent, follows := s.parent()
	if x == nil {
		return appendChained(dst, tokens, block, s.Window(block), s.seed(), parent, follows)
	}
	n := len(dst)
	dst = s.AppendLocal(dst, tokens, block, x)
	if follows && len(dst) > n {
		dst[n] = Next(parent, dst[n])
	}
	chain(dst[n:])
	return dst
}

// parent returns the sequence hash of the block before the first one, for Dynamo's scheme, and whether there is one.
func (s *Scheme) parent() (uint64, bool) {
	if !s.mode.has(after) {
		return 0, false
	}
	return s.more.Value().parent, true
}

// complete returns the number of complete blocks in n tokens, of which the hash of one covers window.
func complete(n, block, window int) int { return max(0, n-(window-block)) / block }

// AppendDigests appends the digest of every complete block of tokens to dst, [Scheme.DigestLen] bytes each, and returns it; x may
// be nil. For the schemes that chain 64-bit hashes a digest is that hash, big-endian. It panics if block is not positive.
// O(tokens), no allocation if dst has room and blocks have 512 tokens or fewer; Dynamo's with objects may allocate.
func (s Scheme) AppendDigests(dst []byte, tokens []uint32, block int, x *Extras) []byte {
	checkBlock(block)
	if s.mode.kind() != dynamo {
		if dst == nil {
			dst = []byte{}
		}
		_, dst = s.appendDigests(nil, dst, tokens, block, x)
		return dst
	}
	window := s.Window(block)
	seq, follows := s.parent()
	for i, obj := 0, 0; len(tokens) >= window; i++ {
		var l uint64
		if l, obj = s.local(tokens[:window], i*block, block, x, obj); follows {
			l = Next(seq, l)
		}
		seq, follows = l, true
		dst = binary.BigEndian.AppendUint64(dst, seq)
		tokens = tokens[block:]
	}
	return dst
}

// appendDigests computes the chain of a scheme without local hashes. It appends to digests or, if that is nil, appends
// 64-bit hashes to hashes.
func (s *Scheme) appendDigests(hashes []uint64, digests []byte, tokens []uint32, block int, x *Extras) ([]uint64, []byte) {
	var stack [4<<10 + 64]byte // 512 tokens of 5 bytes, or 512 pairs, and the rest of the input
	var digest [32]byte
	buf := stack[:0]
	window, size := s.Window(block), s.DigestLen()
	for i, obj := 0, 0; len(tokens) >= window; i++ {
		buf, obj = s.next(buf[:0], &digest, i, tokens[:window], block, x, obj)
		if digests != nil {
			digests = append(digests, digest[:size]...)
		} else {
			hashes = append(hashes, s.Event(digest[:]))
		}
		tokens = tokens[block:]
	}
	return hashes, digests
}

// next replaces digest, the digest of block i-1, with that of block i, whose tokens are window. buf is scratch memory,
// which may grow and is returned. obj is the first of x's objects that may overlap the block; the value for the next
// block is returned.
func (s *Scheme) next(buf []byte, digest *[32]byte, i int, window []uint32, block int, x *Extras, obj int) ([]byte, int) {
	var objects []Object
	var embed []byte
	if x != nil {
		objects, obj = x.within(obj, i*block, len(window))
		if i < len(x.Embeds) {
			embed = x.Embeds[i]
		}
	}
	switch s.mode.kind() {
	case vllmSHA256, vllmXXHash:
		buf = s.hashVLLM(buf, digest, i, window, block, objects, embed)
	case sglang:
		buf = s.sglang(buf, digest, i, window)
	case llmd:
		buf = s.llmd(buf, digest, i, window, objects)
	case llmdXXH64:
		buf = s.llmdXXH64(buf, digest, i, window, objects)
	case trtllm:
		s.trtllm(digest, i, window)
	default:
		buf = s.trtllmV2(buf, digest, i, window)
	}
	return buf, obj
}

// putHash stores a 64-bit hash as a digest.
func putHash(digest *[32]byte, h uint64) { binary.BigEndian.PutUint64(digest[:], h) }
