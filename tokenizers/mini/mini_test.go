// SPDX-License-Identifier: Apache-2.0

package mini_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-go/weft/tokenizers/mini"
)

func TestTokens(t *testing.T) {
	tok := mini.Load()
	for _, c := range []struct {
		token   string
		special bool
	}{
		{"<|endoftext|>", true}, {"<|im_start|>", true}, {"<|im_end|>", true},
		{"<think>", false}, {"</think>", false}, {"<tool_call>", false}, {"</tool_call>", false},
		{"<tool_response>", false}, {"</tool_response>", false},
	} {
		id, ok := tok.TokenID(c.token)
		if !ok || tok.IsSpecial(id) != c.special {
			t.Errorf("%s: id %d, found %t, special %t", c.token, id, ok, tok.IsSpecial(id))
		}
		if ids := tok.AppendEncode(nil, c.token); !slices.Equal(ids, []uint32{id}) {
			t.Errorf("%s encodes to %v, want %d", c.token, ids, id)
		}
	}
	end, _ := tok.TokenID("<|im_end|>")
	if !slices.Equal(tok.EOS(), []uint32{end}) {
		t.Errorf("EOS() = %v, want %d", tok.EOS(), end)
	}
}

func Example() {
	tok := mini.Load()
	ids := tok.AppendEncode(nil, "You are a helpful assistant.<|im_end|>")
	for _, id := range ids {
		fmt.Printf("%q", tok.AppendToken(nil, id))
	}
	fmt.Println()
	fmt.Println(string(tok.AppendDecode(nil, ids, true)))
	// Output:
	// "You"" are"" a"" helpful"" assistant"".""<|im_end|>"
	// You are a helpful assistant.
}
