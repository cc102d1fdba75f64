// SPDX-License-Identifier: Apache-2.0

package intent

import (
	"math"
	"strconv"
)

// vLLM reads hints from fields of the body, according to vllm/entrypoints/openai on main in November 2026. It ignores
// unknown fields, and rejects a priority other than 0 unless its scheduler supports priorities.

func (r *reader) vllmBody() {
	if v := r.body("priority"); v.ok {
		switch n, ok := v.int(-math.MaxInt32, math.MaxInt32); {
		case !ok || r.found.has(hintPriority):
		case n != 0 && r.src.Priority == "":
			v.fault("ambiguous: vLLM and SGLang order priorities in opposite ways")
		case r.take(hintPriority):
			if r.in.Priority = int32(n); r.src.Priority == LowerSooner {
				r.in.Priority = -r.in.Priority
			}
		}
	}
	r.str(hintSalt, &r.in.Salt, r.body("cache_salt"))
	r.session(Session{ID: r.body("session_id").word()})
	r.str(hintRequestID, &r.in.RequestID, r.body("request_id"))
	r.tokens(hintMaxThinking, &r.in.MaxThinking, r.body("thinking_token_budget"))
}

var vllmRows = []capability{
	row(hintPriority, "priority", func(s *sender) { s.priorityMember(LowerSooner) }).needs(priorityScheduling).priority(LowerSooner),
	countRow(hintMaxThinking, thinkingOf, "thinking_token_budget").needs(thinkingBudget),
	inBodyRow(hintSalt, maxText, saltOf, "cache_salt"),
	inBodyRow(hintSession, maxText, sessionOf, "session_id").needs(sessionField),
	inHeaderRow(hintRequestID, "x-request-id", requestIDOf),
	row(hintPin, "x-data-parallel-rank", func(s *sender) {
		p := s.in.Pin
		if p.Rank == nil {
			s.lose("vllm accepts only a rank")
			return
		}
		s.header("x-data-parallel-rank", strconv.FormatUint(uint64(*p.Rank), 10))
		if (p != Pin{Rank: p.Rank}) {
			s.instead("the rank", "vllm accepts only a rank")
		}
	}),
}

// priorityMember sends the field priority at the root of the body.
func (s *sender) priorityMember(p Polarity) {
	n := int64(s.in.Priority)
	if n < -math.MaxInt32 {
		s.instead("-2147483647", "the negated value is out of range")
		n++
	}
	if p == LowerSooner {
		n = -n
	}
	s.member(strconv.AppendInt(nil, n, 10), "priority")
}
