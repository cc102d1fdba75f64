// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// TestSessions renders a request of each of many sessions of 100K tokens with a Memo that has room for a few of them. The
// Memo stays within its limit, the memory of the process does not grow, and at the end the Memo has the last sessions
// only. WEFT_SESSIONS sets the number of sessions.
func TestSessions(t *testing.T) {
	shared := bench.Shared("../../../..")
	if shared == "" {
		t.Skip("no shared test data: set WEFT_SHARED")
	}
	sessions := 40
	if s := os.Getenv("WEFT_SESSIONS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		sessions = n
	}
	texts, err := loadCorpus()
	require.NoError(t, err)
	model, err := subjects[0].load(shared)
	require.NoError(t, err)
	r := &run{model: model, sign: testSigner(t), texts: texts}
	require.NoError(t, r.calibrate(100_000))

	inUse := func() int {
		runtime.GC()
		runtime.GC() // also what pools held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	memo := prompt.NewMemo(memoBytes)
	// take renders a request of a session and returns the session of which the Memo had most of the prompt, or nil.
	take := func(session uint64, request int) any {
		v := newConversation(texts, r.sign, session, r.requests)
		turn := memo.Turn("", "", v.id)
		req, err := turn.Decode(wire.Messages, v.body(request), nil)
		require.NoError(t, err)
		p, err := turn.Render(model, req, time.Now())
		require.NoError(t, err)
		require.Greater(t, len(p.IDs()), 90_000)
		before, ids := p.Kept()
		p.Keep(session, 8)
		if ids < 80_000 { // sessions begin alike
			return nil
		}
		return before
	}
	const first = 1 << 20 // session; calibrate uses smaller ones
	most, base := 0, 0
	for i := range sessions {
		require.Nil(t, take(first+uint64(i), r.requests-2))
		n, size := memo.Len()
		require.LessOrEqual(t, size, memoBytes)
		most = max(most, n)
		if i == sessions/2 {
			base = inUse()
		}
	}
	n, size := memo.Len()
	t.Logf("%d of %d sessions, %d MB of at most %d; %d MB in use, %d MB after half of the sessions", n, sessions, size>>20, memoBytes>>20, inUse()>>20, base>>20)
	require.Equal(t, most, n, "the Memo stays full")
	require.Less(t, n, sessions/2)
	if sessions >= 1000 { // caches that are not part of the Memo are full as well
		require.Less(t, inUse(), base+base/20)
	}
	for i := sessions - 1; i > sessions-n; i-- { // each of these takes a little more than before
		require.Equal(t, first+uint64(i), take(first+uint64(i), r.requests-1), "session %d of %d", i, sessions)
	}
	require.Nil(t, take(first+uint64(sessions/4), r.requests-1), "an old session")
}
