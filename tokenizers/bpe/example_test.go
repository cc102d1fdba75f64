// SPDX-License-Identifier: Apache-2.0

package bpe_test

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/bpe"
	"github.com/weft-go/weft/tokenizers/vocab"
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
