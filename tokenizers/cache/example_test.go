// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"

	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/cache"
	"github.com/weft-go/weft/tokenizers/mini"
)

func Example() {
	c, err := cache.New(mini.Load(), nil)
	if err != nil {
		panic(err)
	}
	turn := "<|im_start|>user\nRun the tests.<|im_end|>\n<|im_start|>assistant\n"
	ids := c.AppendEncode(nil, "tenant", turn)
	ids = c.AppendEncode(ids[:0], "tenant", turn+"All green.<|im_end|>\n")
	s := c.Stats()
	fmt.Println(len(ids), "tokens,", s.HitTokens, "known")
	// Output: 20 tokens, 10 known
}

func ExampleCache_AppendEncodePrefixes() {
	c, err := cache.New(mini.Load(), &cache.Options{Spacing: 1}) // cache as many prefixes as possible
	if err != nil {
		panic(err)
	}
	prompt := []tokenizers.Segment{{Text: "<|im_start|>user\n", Trusted: true}, {Text: "Hello<|im_end|>"}, {Text: "<|im_end|>\n", Trusted: true}}
	for range 2 {
		_, prefixes := c.AppendEncodePrefixes(nil, nil, "tenant", prompt)
		for _, p := range prefixes {
			fmt.Println(p.Bytes, "bytes", p.Tokens, "tokens", p.Found, p.Value())
			p.SetValue("seen")
		}
	}
	// Output:
	// 12 bytes 1 tokens false <nil>
	// 17 bytes 3 tokens false <nil>
	// 42 bytes 10 tokens false <nil>
	// 12 bytes 1 tokens true seen
	// 17 bytes 3 tokens true seen
	// 42 bytes 10 tokens true seen
}

// AppendPrefixes reports how much of a prompt is cached, without encoding it.
func ExampleCache_AppendPrefixes() {
	c, err := cache.New(mini.Load(), nil)
	if err != nil {
		panic(err)
	}
	prompt := []tokenizers.Segment{{Text: "<|im_start|>user\nHello<|im_end|>\n", Trusted: true}}
	fmt.Println(len(c.AppendPrefixes(nil, "tenant", prompt)))
	c.AppendEncodeSegments(nil, "tenant", prompt)
	prefixes := c.AppendPrefixes(nil, "tenant", prompt)
	last := prefixes[len(prefixes)-1]
	fmt.Println(last.Bytes, "bytes", last.Tokens, "tokens")
	// Output:
	// 0
	// 32 bytes 5 tokens
}
