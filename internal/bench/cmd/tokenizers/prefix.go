// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
)

// newPrefix returns an encoder that keeps prefixes, nil without one, and why it would keep nothing of text.
func newPrefix(tok *tokenizers.Tokenizer, text string) (encode func(dst []uint32, text string) []uint32, off string) {
	c, err := cache.New(tok, nil)
	if err != nil {
		return nil, err.Error()
	}
	if err := c.Err(); err != nil {
		return nil, err.Error()
	}
	c.AppendEncode(nil, "bench", text)
	if len(c.AppendPrefixes(nil, "bench", []tokenizers.Segment{{Text: text, Trusted: true}})) == 0 {
		return nil, "the agent prompt cannot be split"
	}
	return func(dst []uint32, text string) []uint32 { return c.AppendEncode(dst, "bench", text) }, ""
}
