// SPDX-License-Identifier: Apache-2.0

package streamdec

import (
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// Usage sets t to token counts in the form of the Chat, Completions and Embeddings APIs (prompt_tokens, …) or of the
// Responses API (input_tokens, …), whose counts of input tokens include cached ones. It reports whether v has any.
// Counts that are absent or null do not change t.
func Usage(v jsonscan.Value, t *event.Tokens) (ok bool) {
	if v.Kind() != jsonscan.Object {
		return false
	}
	for m := v.First(); m.Exists(); m = v.Next(m) {
		switch m.Kind() {
		case jsonscan.Number:
			switch {
			case m.KeyIs("prompt_tokens"), m.KeyIs("input_tokens"):
				t.Prompt, ok = count(m), true
			case m.KeyIs("completion_tokens"), m.KeyIs("output_tokens"):
				t.Output, ok = count(m), true
			case m.KeyIs("reasoning_tokens"): // SGLang
				t.Reasoning = count(m)
			case m.KeyIs("prompt_cache_hit_tokens"): // DeepSeek
				t.Cached = count(m)
			case m.KeyIs("total_tokens"):
				ok = true
			}
		case jsonscan.Object:
			switch {
			case m.KeyIs("prompt_tokens_details"), m.KeyIs("input_tokens_details"):
				for d := m.First(); d.Exists(); d = m.Next(d) {
					switch {
					case d.Kind() != jsonscan.Number:
					case d.KeyIs("cached_tokens"):
						t.Cached = count(d)
					case d.KeyIs("cache_write_tokens"):
						t.CacheWrite = count(d)
					}
				}
			case m.KeyIs("completion_tokens_details"), m.KeyIs("output_tokens_details"):
				for d := m.First(); d.Exists(); d = m.Next(d) {
					switch {
					case d.Kind() != jsonscan.Number:
					case d.KeyIs("reasoning_tokens"):
						t.Reasoning = count(d)
					}
				}
			}
		}
	}
	return ok
}

// count returns a number of tokens, or 0 if it is negative.
func count(v jsonscan.Value) int64 { return max(0, Int(v)) }

// TokenCount decodes the response of an endpoint that counts the tokens of a prompt. Errors are of type *[block.Error].
func TokenCount(body []byte) (int64, error) {
	doc, err := jsonscan.Scan(body, jsonscan.Limits{Bytes: 1 << 20, Depth: 64, Values: 1 << 16})
	if err != nil {
		return 0, Fault(err)
	}
	v := doc.Root().Get("input_tokens")
	n, ok := v.Int()
	if !ok || n < 0 {
		if !v.Exists() {
			v = doc.Root()
		}
		return 0, Wrong(v, "a number of input_tokens")
	}
	return n, nil
}
