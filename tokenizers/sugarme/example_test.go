// SPDX-License-Identifier: Apache-2.0

//go:build !(386 || arm || mips || mipsle)

package sugarme_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/weft-go/weft/tokenizers/sugarme"
)

func Example() {
	golden, err := os.ReadFile("testdata/wordlevel/golden.jsonl") // {"text": …, "ids": […]} from Hugging Face's own tokenizer
	if err != nil {
		panic(err)
	}
	vectors := map[string][]uint32{}
	for d := json.NewDecoder(bytes.NewReader(golden)); d.More(); {
		var v struct {
			Text string
			IDs  []uint32
		}
		if err := d.Decode(&v); err != nil {
			panic(err)
		}
		vectors[v.Text] = v.IDs
	}
	tok, err := sugarme.Load(os.DirFS("testdata/wordlevel"), &sugarme.Options{Enable: true, Vectors: vectors})
	if err != nil {
		panic(err) // also when a single vector has other ids
	}
	_, n := tok.Verified()
	fmt.Println(n, "vectors match")
	ids, err := tok.AppendEncode(nil, "the router sends a request")
	fmt.Println(ids, err)
	// Output:
	// 103 vectors match
	// [1 2 3 4 5] <nil>
}
