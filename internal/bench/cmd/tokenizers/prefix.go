// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
)

// newPrefix returns an encoder that keeps prefixes, nil without one, and why it would keep nothing.
func newPrefix(tok *tokenizers.Tokenizer) (encode func(dst []uint32, text string) []uint32, off string) {
	c, err := cache.New(tok, nil)
	if err != nil {
		return nil, err.Error()
	}
	if off := c.Off(); off != "" {
		return nil, off
	}
	return func(dst []uint32, text string) []uint32 { return c.AppendEncode(dst, "bench", text) }, ""
}
