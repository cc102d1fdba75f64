// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weft-go/weft/protocols/intent"
)

// chain is the work of one client, one request after another.
type chain struct {
	shared       uint64 // identifies the beginning of the first prompt, which all chains with the same number share
	sharedTokens int    // its length
	turns        []turn
}

// turn is one request of a chain.
type turn struct {
	pause  time.Duration // since the end of the previous response
	tokens int           // appended to the previous prompt and its response
	output int           // tokens to generate
	fresh  bool          // the conversation was compacted: the prompt is the shared beginning and tokens
	child  *chain        // a sub-agent that runs in the pause, which begins after it

	// The prompt has the end of the last prompt and its response again, without some of it, because the template omits past reasoning.
	again   int // tokens that it has again, other ones
	omitted int // tokens that are missing
}

// Agents have the shape that AgentX published: 43 turns on average, 142,000 prompt tokens and 444 output tokens for each request,
// sub-agents in 44 % of the sessions, and tools that take 2 to 30 s. Conversations are compacted before they exceed 300,000 tokens.
func agents(rnd *rand.Rand) *chain {
	return agent(rnd, 1, 20_000, 5+int(min(160, rnd.ExpFloat64()*38)), rnd.Float64() < 0.56)
}

const window = 300_000

func agent(rnd *rand.Rand, shared uint64, sharedTokens, turns int, delegates bool) *chain {
	s := &chain{shared: shared, sharedTokens: sharedTokens}
	length := sharedTokens
	for i := range turns {
		t := turn{tokens: int(min(60_000, lognormal(rnd, 4400, 1.1))), output: 1 + int(min(6000, lognormal(rnd, 290, 0.92)))}
		if i == 0 {
			t.tokens += int(lognormal(rnd, 12_000, 0.7))
		} else {
			t.pause = time.Duration(2000+rnd.IntN(28_000)) * time.Millisecond
			if delegates && rnd.Float64() < 0.06 {
				t.child = agent(rnd, 2, 9000, 2+int(min(40, rnd.ExpFloat64()*10)), false)
				t.pause = 0
			}
		}
		if length+t.tokens+t.output > window {
			t.fresh, t.tokens = true, 6000+rnd.IntN(6000)
			length = sharedTokens
		}
		length += t.tokens + t.output
		s.turns = append(s.turns, t)
	}
	return s
}

// questions is the number of requests for each question of an agent's user.
const questions = 8

// forget makes the user of an agent ask something new with every eighth request. Prompts then omit a part of the responses since the last
// question, which is their reasoning.
func (s *chain) forget(part float64) {
	since, reasoning := 0, 0 // after the last question: tokens, and how many of them are reasoning
	for i := range s.turns {
		t := &s.turns[i]
		if t.child != nil {
			t.child.forget(part)
		}
		switch {
		case t.fresh:
			since, reasoning = 0, 0
		case i > 0 && i%questions == 0:
			t.again, t.omitted = since-reasoning, reasoning
			since, reasoning = 0, 0
		case i > 0:
			since += t.tokens
		}
		since += t.output
		reasoning += int(part * float64(t.output))
	}
}

// Chats have up to 6 short turns and one of 50 system prompts of 2,000 to 10,000 tokens.
func chat(rnd *rand.Rand) *chain {
	s := &chain{shared: 3 + rnd.Uint64N(50)}
	s.sharedTokens = 2000 + int(s.shared)*160
	for i := range 1 + rnd.IntN(6) {
		t := turn{tokens: int(min(8000, lognormal(rnd, 400, 1))), output: 1 + int(min(2000, lognormal(rnd, 250, 0.8)))}
		if i > 0 {
			t.pause = time.Duration(5000+rnd.IntN(40_000)) * time.Millisecond
		}
		s.turns = append(s.turns, t)
	}
	return s
}

// lognormal returns a random number with a median and a standard deviation of its logarithm.
func lognormal(rnd *rand.Rand, median, sigma float64) float64 {
	return median * math.Exp(sigma*rnd.NormFloat64())
}

// cost returns the time of an engine that the chain takes, in ms, if every prompt that was computed once is cached and a
// step with decoding serves 32 requests, and how long it lasts if nothing waits.
func (s *chain) cost(c *costs) (ms float64, lasts time.Duration) {
	length := s.sharedTokens
	for _, t := range s.turns {
		if t.child != nil {
			m, d := t.child.cost(c)
			ms, lasts = ms+m, lasts+d
		}
		if t.fresh {
			length = s.sharedTokens
		}
		length -= t.again + t.omitted
		n, before := float64(t.again+t.tokens), float64(length)
		prefill := c.base + c.prefill(n, before)
		ms += c.work(n, before, float64(t.output), before)
		length += t.again + t.tokens + t.output
		lasts += t.pause + time.Duration((prefill+30*float64(t.output))*1e6)
	}
	return ms, lasts
}

// session is a chain in progress.
type session struct {
	*chain
	id     uint64 // of its tokens
	name   string
	parent *session
	turn   int
	length int      // of the prompt
	hashes []uint64 // of all blocks of prompt and response

	recorded *intent.Intent // of a request of a trace
	ahead    *job           // computes the known part of the next prompt, or has done so
}

// prompt appends the next turn, and the response to it.
func (s *session) prompt(block int) {
	t := &s.turns[s.turn]
	switch {
	case s.turn == 0:
		s.length = s.sharedTokens
	case t.fresh:
		s.length, s.hashes = s.sharedTokens, s.hashes[:s.sharedTokens/block:s.sharedTokens/block]
		s.id += 0x9e3779b97f4a7c15
	default:
		s.length += s.turns[s.turn-1].output
		s.rewrite(t, block)
	}
	s.length += t.again + t.tokens
	s.hashes = appendHashes(s.hashes, (s.length+t.output)/block, s.sharedTokens/block, s.shared, s.id)
}

// rewrite removes what the next prompt does not have in common with the last one and its response.
func (s *session) rewrite(t *turn, block int) {
	if n := t.again + t.omitted; n > 0 {
		s.length -= n
		s.hashes = s.hashes[: s.length/block : s.length/block]
		s.id += 0x9e3779b97f4a7c15
	}
}

// known returns the hashes of the known part of the next prompt, and its length.
func (s *session) known(block int) ([]uint64, int) {
	next := *s
	t := &s.turns[s.turn]
	next.length += s.turns[s.turn-1].output
	next.rewrite(t, block)
	n := next.length + t.again
	return appendHashes(next.hashes, n/block, s.sharedTokens/block, s.shared, next.id), n
}

// appendHashes appends hashes up to n of a sequence whose first blocks are shared.
func appendHashes(dst []uint64, n, shared int, sharedID, id uint64) []uint64 {
	for k := len(dst); k < n; k++ {
		seed := id
		if k < shared {
			seed = sharedID
		}
		var last uint64
		if k > 0 {
			last = dst[k-1]
		}
		x := (last ^ seed + uint64(k)) * 0x9e3779b97f4a7c15
		dst = append(dst, x^x>>29)
	}
	return dst
}
