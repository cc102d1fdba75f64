// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/tokenizers"
)

// This file bounds what requests take, each and together:
//
//	budget    bytes of memory that all requests share
//	slots     requests that are decoded, rendered and encoded at the same time
//	measure   the length of a prompt before it is encoded
//	quota     the output of a choice

// A budget is memory, in bytes, that requests share. It is safe for concurrent use by multiple goroutines.
type budget struct {
	free atomic.Int64
}

// A share is the part of a budget that a request holds. It is not safe for concurrent use.
type share struct {
	of   *budget
	held int64
}

var errMemory = errors.New("serve: the memory for requests is used up")

// add takes n bytes more, or returns an error if the budget does not have them. It never waits, because requests that
// wait for each other's memory could wait forever.
func (s *share) add(n int64) error {
	if s.of.free.Add(-n) < 0 {
		s.of.free.Add(n)
		return busy(errMemory)
	}
	s.held += n
	return nil
}

// release returns all bytes.
func (s *share) release() {
	s.of.free.Add(s.held)
	s.held = 0
}

// perByte is the memory that a request takes per byte of its body while it is served: the body, the text of the prompt,
// its token ids, and the body of the engine's request.
const perByte = 4

// busy returns the error for a request for which there is no room now.
func busy(cause error) error {
	e := apierr.Overloaded(time.Second)
	e.Cause = cause
	return e
}

// slots limits the number of requests that run at the same time.
type slots chan struct{}

// take waits for a slot, which give returns. It fails only if ctx ends, and then there is none to return.
func (s slots) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) give() { <-s }

// longestToken returns the length of the longest token of a vocabulary, in bytes of text. Decoders replace a byte that
// is not valid UTF-8 by a character of three bytes.
func longestToken(tok *tokenizers.Tokenizer) int {
	longest := utf8.UTFMax
	var text []byte
	for id := range tok.VocabSize() {
		text = tok.AppendToken(text[:0], uint32(id))
		longest = max(longest, len(text))
	}
	return longest
}

const (
	// usualToken is the length in bytes of a token that prompts do not exceed on average. A prompt of at most
	// usualToken bytes per token of the window is encoded at once.
	usualToken = 6
	// measuredPiece is the number of bytes that measure encodes at a time.
	measuredPiece = 64 << 10
	// perPiece bounds the tokens that a piece has in excess of its part of the whole text, because it was cut out of it.
	perPiece = 16
)

// measure returns an error if a text certainly has more tokens than the window, and does not hold more than a piece of
// it in memory: encoders take up to 50 times the memory of a text without spaces. The number of tokens in the error is
// exact for the part of the text that was encoded, and estimated for the rest.
func measure(ctx context.Context, tok *tokenizers.Tokenizer, text string, window int64) error {
	if int64(len(text)) <= window*usualToken {
		return nil
	}
	var ids []uint32
	var n, pieces int64
	for at := 0; at < len(text); pieces++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end := min(at+measuredPiece, len(text))
		for end < len(text) && end > at+1 && !utf8.RuneStart(text[end]) {
			end--
		}
		ids = tok.AppendEncode(ids[:0], text[at:end])
		n, at = n+int64(len(ids)), end
		if n > window+(pieces+1)*perPiece {
			return apierr.ContextLength(int64(float64(n)*float64(len(text))/float64(at)), 0, window)
		}
	}
	return nil
}

// A quota is the output that a choice may still have. An engine that ignores max_tokens could otherwise fill the memory.
type quota struct {
	tokens int // in token ids; a stop token counts too
	bytes  int // of text, for engines that send no ids
	steps  int // also empty ones; 0 means that the engine does not end
}

// newQuota returns the quota for limit tokens of at most longest bytes.
func newQuota(limit, longest int) quota {
	return quota{tokens: limit + 1, bytes: (limit + 1) * longest, steps: 2*limit + 1024}
}

// take subtracts a step. If the tokens or bytes do not suffice, it shortens the step to what does and reports false.
func (q *quota) take(st *upstream.Step) bool {
	q.steps--
	if len(st.IDs) > 0 {
		if len(st.IDs) > q.tokens {
			st.IDs = st.IDs[:q.tokens]
			st.Text = nil
			q.tokens = 0
			return false
		}
		q.tokens -= len(st.IDs)
	} else {
		if len(st.Text) > q.bytes {
			st.Text = nil
			return false
		}
		q.bytes -= len(st.Text)
	}
	return true
}

// outputPiece is the number of bytes of a body or output for which a request takes memory at a time.
const outputPiece = 8 << 10

// produced takes memory for n more bytes of output.
func (c *call) produced(n int) error {
	c.output += int64(n)
	if c.output <= c.paid {
		return nil
	}
	if err := c.memory.add(outputPiece * perByte); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	c.paid += outputPiece
	if c.output > c.paid { // a step of more than a piece
		extra := c.output - c.paid
		if err := c.memory.add(extra * perByte); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		c.paid += extra
	}
	return nil
}
