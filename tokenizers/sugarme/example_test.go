// SPDX-License-Identifier: Apache-2.0

//go:build !(386 || arm || mips || mipsle)

package sugarme_test

import (
	"fmt"
	"os"

	"github.com/weft-go/weft/tokenizers/sugarme"
)

func Example() {
	golden, err := os.Open("testdata/wordlevel/golden.jsonl") // {"text": …, "ids": […]} from Hugging Face's own tokenizer
	if err != nil {
		panic(err)
	}
	defer golden.Close()
	tok, err := sugarme.Load("testdata/wordlevel", sugarme.Options{Enable: true, Golden: golden})
	if err != nil {
		panic(err) // also when a single vector has other ids
	}
	fmt.Println(tok.Proof().Vectors, "vectors match")
	ids, err := tok.AppendEncode(nil, "the router sends a request")
	fmt.Println(ids, err)
	// Output:
	// 150 vectors match
	// [1 2 3 4 5] <nil>
}
