// SPDX-License-Identifier: Apache-2.0

package unigram_test

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/unigram"
	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

func ExampleNew() {
	var b vocab.Builder
	tokens := []string{"<unk>", "▁", "un", "▁un", "i", "gram", "unigram"}
	scores := []float64{0, -2, -4, -4.5, -3, -6, -15}
	for id, tok := range tokens {
		if err := b.Add(uint32(id), []byte(tok), true); err != nil {
			panic(err)
		}
	}
	table, err := b.Build()
	if err != nil {
		panic(err)
	}
	m, err := unigram.New(table, scores, unigram.Options{Unk: 0})
	if err != nil {
		panic(err)
	}
	var st unigram.State // one for each goroutine
	word := "▁unigram?"
	ids, ends := m.AppendEnds(nil, nil, word, 0, len(word), &st)
	for k, id := range ids {
		fmt.Println(id, tokens[id], ends[k])
	}
	// Output:
	// 3 ▁un 5
	// 4 i 6
	// 5 gram 10
	// 0 <unk> 11
}
