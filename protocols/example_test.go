// SPDX-License-Identifier: Apache-2.0

package protocols_test

import (
	"fmt"

	"github.com/weft-go/weft/protocols/chat"
	"github.com/weft-go/weft/protocols/messages"
)

func Example() {
	r, err := messages.Decode([]byte(`{"model":"m", "max_tokens":9, "messages":[ {"role":"user", "content":"Hi"} ]}`), nil)
	if err != nil {
		panic(err) // *block.Error: what is wrong, where
	}
	hi := r.Turns()[0].Blocks[0]
	_ = r.SetText(hi.At, hi.Text+" there")
	same, _ := r.Encode(nil)
	other, losses, _ := chat.Encode(nil, r, nil)
	fmt.Printf("%s\n%s %v\n", same, other, losses)
	// Output:
	// {"model":"m", "max_tokens":9, "messages":[ {"role":"user", "content":"Hi there"} ]}
	// {"model":"m","max_completion_tokens":9,"messages":[{"role":"user","content":"Hi there"}]} []
}
