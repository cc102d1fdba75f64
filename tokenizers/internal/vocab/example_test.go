// SPDX-License-Identifier: Apache-2.0

package vocab_test

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers/internal/vocab"
)

// Tokens may come in any order.
func ExampleBuilder() {
	var b vocab.Builder
	for id, tok := range map[uint32]string{0: "the", 1: "a", 5: "ing"} {
		if err := b.Add(id, []byte(tok), true); err != nil {
			panic(err)
		}
	}
	v, err := b.Build()
	if err != nil {
		panic(err)
	}
	id, ok := v.Lookup("ing")
	fmt.Println(id, ok, v.Len(), v.Count())
	fmt.Printf("%s %q\n", v.Bytes(0), v.Bytes(3))
	// Output:
	// 5 true 6 3
	// the ""
}
