// SPDX-License-Identifier: Apache-2.0

package kvhash_test

import (
	"fmt"

	"github.com/weft-go/weft/kvhash"
)

// The program of the README: hash a conversation as it grows.
func Example() {
	prompt := kvhash.NewChain(4, kvhash.Dynamo(nil))
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

func ExampleDynamo() {
	tokens := []uint32{0, 1, 2, 3}
	for _, o := range []*kvhash.DynamoOptions{nil, {LoRA: "adapter-a"}, {Namespace: "tenant-a"}} {
		fmt.Println(kvhash.Dynamo(o).AppendBlocks(nil, tokens, 4))
	}
	// Output:
	// [9143094415614847814]
	// [6665157333201000639]
	// [17009624042690211646]
}

func ExampleAppendSequence() {
	local := kvhash.AppendLocal(nil, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, 4, kvhash.Seed)
	fmt.Println(local)
	fmt.Println(kvhash.AppendSequence(local[:0], local))
	// Output:
	// [9143094415614847814 12124091508212882195]
	// [9143094415614847814 9510318385840434533]
}
