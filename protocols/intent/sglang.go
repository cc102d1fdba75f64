// SPDX-License-Identifier: Apache-2.0

package intent

import "strconv"

// SGLang reads hints from fields of the body, according to python/sglang/srt/entrypoints/openai/protocol.py in November
// 2026. Both cache_salt and extra_key become part of its cache key. session_params names a session that was opened on
// the server before. It is read but never sent, because sending it does not open a session. With --enable-session-radix-cache, blocks
// that no session_id refers to are evicted first, until /close_session.

func (r *reader) sglangBody() {
	r.str(hintSalt, &r.in.Salt, r.body("extra_key"))
	r.str(hintRequestID, &r.in.RequestID, r.body("rid"))
	r.rank(&r.in.Pin.Rank, r.body("routed_dp_rank"))
	r.rank(&r.in.Pin.Rank, r.body("data_parallel_rank"))
	r.rank(&r.in.Pin.PrefillRank, r.body("disagg_prefill_dp_rank"))
	r.object("session_params")
	r.session(Session{ID: r.body("session_params", "id").word()})
}

func (r *reader) engineHeaders() {
	r.str(hintCacheKey, &r.in.CacheKey, r.header("x-smg-routing-key"))
}

var sglangRows = []capability{
	row(hintPriority, "priority", func(s *sender) {
		p := HigherSooner
		if s.t.features&lowValuesFirst != 0 {
			p = LowerSooner
		}
		s.priorityMember(p)
	}).
		needs(priorityScheduling).priority(HigherSooner), // lower is sooner with the feature low values first
	inBodyRow(hintSalt, maxText, saltOf, "cache_salt"),
	inHeaderRow(hintCacheKey, "x-smg-routing-key", keyOf),
	inBodyRow(hintSession, maxText, sessionOf, "session_id").needs(sessionField),
	inBodyRow(hintRequestID, maxText, requestIDOf, "rid"),
	row(hintPin, "data_parallel_rank", func(s *sender) {
		p := s.in.Pin
		if p.Rank == nil {
			s.lose("sglang accepts only a rank")
			return
		}
		s.member(strconv.AppendUint(nil, uint64(*p.Rank), 10), "data_parallel_rank")
		if (p != Pin{Rank: p.Rank}) {
			s.instead("the rank", "sglang accepts only a rank")
		}
	}),
}
