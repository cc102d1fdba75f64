// SPDX-License-Identifier: Apache-2.0

package wordpiece_test

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
	"github.com/weft-go/weft/tokenizers/internal/wordpiece"
)

func ExampleNew() {
	var b vocab.Builder
	tokens := []string{"[UNK]", "token", "##ize", "##r", "##s"}
	for id, tok := range tokens {
		if err := b.Add(uint32(id), []byte(tok), true); err != nil {
			panic(err)
		}
	}
	table, err := b.Build()
	if err != nil {
		panic(err)
	}
	m, err := wordpiece.New(table, wordpiece.Options{Unk: 0, Prefix: "##", MaxChars: 100})
	if err != nil {
		panic(err)
	}
	var st wordpiece.State // one for each goroutine
	for _, word := range []string{"tokenizers", "tokenise"} {
		ids, ends := m.AppendEnds(nil, nil, word, 0, len(word), &st)
		fmt.Println(word, ids, ends)
	}
	// Output:
	// tokenizers [1 2 3 4] [5 8 9 10]
	// tokenise [0] [8]
}
