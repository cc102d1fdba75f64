// SPDX-License-Identifier: Apache-2.0

package bpe_test

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/bpe"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// A vocabulary of all bytes and two merges.
func ExampleNew() {
	var b vocab.Builder
	for c := range 256 {
		if err := b.Add(uint32(c), []byte{byte(c)}, true); err != nil {
			panic(err)
		}
	}
	b.Add(256, []byte("ab"), true)
	b.Add(257, []byte("abc"), true)
	table, err := b.Build()
	if err != nil {
		panic(err)
	}
	m, err := bpe.New(table, []bpe.Merge{{A: 'a', B: 'b', To: 256}, {A: 256, B: 'c', To: 257}}, bpe.Options{})
	if err != nil {
		panic(err)
	}
	var st bpe.State // one for each goroutine
	for _, id := range m.Append(nil, "abcab", 0, 5, &st) {
		fmt.Printf("%d %s\n", id, table.Bytes(id))
	}
	// Output:
	// 257 abc
	// 256 ab
}

// A vocabulary of characters in which ▁ represents a space, as SentencePiece writes them. What is not in it
// is spelled in bytes.
func ExampleNewChars() {
	var b vocab.Builder
	tokens := []string{"<unk>", "▁", "h", "i", "▁h", "▁hi", "<0xC3>", "<0xA9>"}
	for id, tok := range tokens {
		if err := b.Add(uint32(id), []byte(tok), true); err != nil {
			panic(err)
		}
	}
	table, err := b.Build()
	if err != nil {
		panic(err)
	}
	m, err := bpe.NewChars(table, []bpe.Merge{{A: 1, B: 2, To: 4}, {A: 4, B: 3, To: 5}},
		bpe.CharsOptions{Unk: new(uint32), ByteFallback: true})
	if err != nil {
		panic(err)
	}
	var st bpe.State // one for each goroutine
	word := "▁hi▁é?"
	ids, ends := m.AppendEnds(nil, nil, word, 0, len(word), &st)
	for k, id := range ids {
		fmt.Println(id, tokens[id], ends[k])
	}
	// Output:
	// 5 ▁hi 5
	// 1 ▁ 8
	// 6 <0xC3> 9
	// 7 <0xA9> 10
	// 0 <unk> 11
}
