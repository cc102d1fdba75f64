// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/weft-go/weft/tokenizers"

// newPrefix returns an encoder that keeps prefixes, or why there is none.
func newPrefix(tok *tokenizers.Tokenizer) (encode func(dst []uint32, text string) []uint32, off string) {
	return nil, "not built in"
}
