// SPDX-License-Identifier: Apache-2.0

package kvhash_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/weft-go/weft/kvhash"
)

// The program of the README: hash a conversation as it grows.
func Example() {
	prompt := kvhash.NewChain(4, kvhash.Scheme{})
	fmt.Println(prompt.Append(0, 1, 2, 3, 4, 5)) // block 0 is complete, tokens 4 and 5 wait
	fmt.Println(prompt.Append(6, 7, 8))          // block 1
	// Output:
	// [9143094415614847814]
	// [9510318385840434533]
}

func ExampleChain_Fork() {
	prompt := kvhash.NewChain(4, kvhash.Scheme{})
	prompt.Append(0, 1, 2, 3, 4, 5, 6, 7, 8)
	branch := prompt.Fork()
	fmt.Println(branch.Append(9, 10, 11)) // block 2, in the branch only
	fmt.Println(len(prompt.Blocks()), len(branch.Blocks()))
	// Output:
	// [16998148715716822651]
	// 2 3
}

func ExampleScheme_With() {
	tokens := []uint32{0, 1, 2, 3}
	for _, s := range []kvhash.Scheme{{}, kvhash.Scheme{}.With("adapter-a", ""), kvhash.Scheme{}.With("", "tenant-a")} {
		fmt.Println(s.AppendBlocks(nil, tokens, 4, nil))
	}
	// Output:
	// [9143094415614847814]
	// [6665157333201000639]
	// [17009624042690211646]
}

// Blocks after one whose digest is known, as events report them, do not need the tokens before.
func ExampleScheme_After() {
	s, err := kvhash.Lookup("llmd", &kvhash.Options{Model: "m"})
	if err != nil {
		panic(err)
	}
	prompt := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	digests := s.AppendDigests(nil, prompt[:4], 4, nil)
	fmt.Println(s.AppendBlocks(nil, prompt, 4, nil))
	fmt.Println(s.After(digests).AppendBlocks(nil, prompt[4:], 4, nil))
	// Output:
	// [17285939621594237469 1825881749070597870 13094865344280660774]
	// [1825881749070597870 13094865344280660774]
}

func ExampleAppendSequence() {
	local := kvhash.Scheme{}.AppendLocal(nil, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, 4, nil)
	fmt.Println(local)
	fmt.Println(kvhash.AppendSequence(local[:0], local))
	// Output:
	// [9143094415614847814 12124091508212882195]
	// [9143094415614847814 9510318385840434533]
}

func ExampleLookup() {
	tokens := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, e := range []struct {
		name string
		o    *kvhash.Options
	}{
		{"dynamo", nil},
		{"vllm_sha256_cbor", &kvhash.Options{Seed: "0"}}, // PYTHONHASHSEED=0
		{"vllm_xxhash_cbor", &kvhash.Options{Seed: "0"}},
		{"llmd", &kvhash.Options{Model: "m"}},
	} {
		s, err := kvhash.Lookup(e.name, e.o)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s, s.AppendBlocks(nil, tokens, 4, nil))
	}
	_, err := kvhash.Lookup("vllm_sha256_cbor", &kvhash.Options{Model: "m"})
	fmt.Println(err)
	// Output:
	// dynamo [9143094415614847814 9510318385840434533 16998148715716822651]
	// vllm_sha256_cbor [10703402261835016479 15234836411599629619 7546740992792136752]
	// vllm_xxhash_cbor [5527508028254784353 2799858125201338760 16269770387100656228]
	// llmd [17285939621594237469 1825881749070597870 13094865344280660774]
	// kvhash: scheme "vllm_sha256_cbor": option Model: does not enter the hashes of this scheme
}

// SGLang takes the first 8 bytes of a page's digest as its id, and prints it as a signed number.
func ExampleScheme_AppendDigests() {
	s, _ := kvhash.Lookup("sglang", nil)
	tokens := make([]uint32, 16)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	digest := s.AppendDigests(nil, tokens, 16, nil)
	fmt.Println(hex.EncodeToString(digest))
	fmt.Println(int64(s.Event(digest)))
	// Output:
	// 5d85718ec594b982c252d0279e5966ffca33a5eaf2a455038d3ab331fde70cea
	// 6738917275443968386
}

// An image fills tokens 5 to 11 of a prompt for vLLM, in blocks of 4.
func ExampleScheme_AppendBlocks() {
	s, _ := kvhash.Lookup("vllm_sha256_cbor", &kvhash.Options{Seed: "0"})
	tokens := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	image := kvhash.Object{ID: "imghash", At: 5, Len: 7}
	fmt.Println(s.AppendBlocks(nil, tokens, 4, &kvhash.Extras{Objects: []kvhash.Object{image}}))
	// Output:
	// [10703402261835016479 9137464354531441770 164653231513135774]
}

// Dynamo's local hashes do not depend on each other: a caller with a long prompt and idle processors hashes parts of it at the same
// time, cut between blocks, and chains afterwards.
func ExampleScheme_AppendLocal_parallel() {
	s := kvhash.Scheme{}.With("adapter-a", "")
	const block = 16
	tokens := make([]uint32, 100_000)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	middle := len(tokens) / block / 2 * block
	local := make([]uint64, len(tokens)/block)
	var both sync.WaitGroup
	both.Go(func() { s.AppendLocal(local[:0:middle/block], tokens[:middle], block, nil) })
	both.Go(func() { s.AppendLocal(local[middle/block:middle/block], tokens[middle:], block, nil) })
	both.Wait()
	seq := kvhash.AppendSequence(local[:0], local)

	fmt.Println(len(seq), slices.Equal(seq, s.AppendBlocks(nil, tokens, block, nil)))
	// Output:
	// 6250 true
}

// The blocks of a system prompt are kept and taken up by the next conversation.
func ExampleChain_Join() {
	system, turn := []uint32{0, 1, 2, 3, 4, 5}, []uint32{6, 7, 8}
	first := kvhash.NewChain(4, kvhash.Scheme{})
	first.Append(system...)
	kept := first.Piece(0, first.Len())

	prompt := append(system, turn...)
	second := kvhash.NewChain(4, kvhash.Scheme{})
	if second.Join(kept) {
		fmt.Println("known:", second.Len(), "tokens")
	}
	second.Append(prompt[second.Len():]...)
	fmt.Println(second.Blocks())
	// Output:
	// known: 4 tokens
	// [9143094415614847814 9510318385840434533]
}

// The next prompt of a conversation differs from the last one from a token on: only the blocks from there are hashed. The
// last chain stays as it is, for another prompt that continues the conversation at the same time.
func ExampleChain_Truncate() {
	last := kvhash.NewChain(4, kvhash.Scheme{})
	last.Append(0, 1, 2, 3, 4, 5, 6, 7, 8)

	next := []uint32{0, 1, 2, 3, 4, 5, 60, 70, 80, 90, 100, 110, 120}
	const common = 6 // tokens at the start of both prompts
	chain := last.Fork()
	chain.Truncate(common / 4) // with EAGLE, (common-1)/4
	hashed := chain.Append(next[chain.Len():]...)

	fmt.Println(len(hashed), slices.Equal(chain.Blocks(), kvhash.Scheme{}.AppendBlocks(nil, next, 4, nil)))
	// Output:
	// 2 true
}

func ExampleAppendLineage() {
	seq := []uint64{9143094415614847814, 9510318385840434533}
	lineage := kvhash.AppendLineage(nil, seq)
	fmt.Println(hex.EncodeToString(lineage[:16]))
	fmt.Println(hex.EncodeToString(lineage[16:]))
	// Output:
	// 001fb8b2fb71a52ad180000000000000
	// 0060fedc0bc838ab5962cbedc694ab46
}

func ExampleAppendKinds() {
	type kind uint8
	const (
		system  kind = iota + 1 // the same in many conversations
		history                 // the same in later requests of this one
		tail                    // only in this request
	)
	spans := []kvhash.Span[kind]{{Kind: system, From: 0, To: 40}, {Kind: history, From: 40, To: 60}, {Kind: tail, From: 60, To: 64}}
	fmt.Println(kvhash.AppendKinds(nil, spans, 16, 4))
	// Output:
	// [1 1 2 3]
}

// An image fills tokens 5 to 11 of a continuing conversation.
func ExampleChain_SetExtras() {
	prompt := kvhash.NewChain(4, kvhash.Scheme{})
	prompt.SetExtras(&kvhash.Extras{Objects: []kvhash.Object{{Hash: 42, At: 5, Len: 7}}})
	prompt.Append(0, 1, 2, 3, 4, 5, 6, 7)
	fmt.Println(prompt.Blocks())
	prompt.Truncate(1) // the image is replaced by another one
	prompt.SetExtras(&kvhash.Extras{Objects: []kvhash.Object{{Hash: 43, At: 5, Len: 7}}})
	fmt.Println(prompt.Append(4, 5, 6, 7))
	// Output:
	// [9143094415614847814 6091675887886520276]
	// [16877323480379544254]
}

// A chain of vLLM's digests, of which its events have the last 8 bytes.
func ExampleChain_Digests() {
	s, _ := kvhash.Lookup("vllm_sha256_cbor", &kvhash.Options{Seed: "0"})
	prompt := kvhash.NewChain(4, s)
	prompt.Append(0, 1, 2, 3)
	digest := prompt.Digests()[:s.DigestLen()]
	fmt.Println(s.Event(digest) == prompt.Blocks()[0])
	// Output:
	// true
}

// A prompt for vLLM with an image, as Dynamo's router hashes it: each position of the image has a token made of its hash.
func ExampleObjectToken() {
	image := kvhash.ObjectToken(42)
	prompt := []uint32{0, 1, image, image}
	fmt.Println(image, len(kvhash.Scheme{}.AppendBlocks(nil, prompt, 4, nil)))
	// Output:
	// 1000042 1
}
