// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/kvhash/index"
	"github.com/weft-go/weft/protocols/intent"
	"github.com/weft-go/weft/router"
)

// What no request needs is dropped: after a session's last request, after a compaction, and of sub-agents when their parent continues.
func TestDrop(t *testing.T) {
	var dropped [][]uint64
	r := fleet(t, 1, &router.Options{Drop: func(id index.WorkerID, hashes []uint64) {
		require.Zero(t, id)
		dropped = append(dropped, hashes)
	}})
	shared := prompt('s', 4*block)
	send := func(session, parent string, own int, in intent.Intent) *router.Ticket {
		req := request(slices.Concat(shared, prompt(session[0], own*block)))
		in.Session.ID, in.Session.Parent = session, parent
		req.Intent = in
		return place(t, r, req, start)
	}
	// ended ends a request and returns what was dropped since the last call.
	ended := func(tk *router.Ticket) [][]uint64 {
		tk.FirstToken(start)
		tk.Finish(start, -1, 1)
		d := dropped
		dropped = nil
		return d
	}
	// own returns blocks of a session after what is shared.
	own := func(session string, n int) [][]uint64 {
		return [][]uint64{request(slices.Concat(shared, prompt(session[0], n*block))).Hashes[4:]}
	}
	last := intent.Intent{Session: intent.Session{Final: true}}

	require.Empty(t, ended(send("x", "", 1, intent.Intent{})))
	require.Empty(t, ended(send("main", "", 3, intent.Intent{})))
	tk := send("main", "", 6, last)
	require.Empty(t, dropped, "while the request runs")
	require.Equal(t, own("m", 6), ended(tk))
	require.Empty(t, ended(tk), "a second time")

	send("failed", "", 3, last).Cancel(start)
	require.Empty(t, dropped, "it may be repeated")

	require.Equal(t, own("c", 5), ended(send("compacted", "", 5, intent.Intent{Compaction: map[string]string{}})))
	require.Empty(t, ended(send("compacted", "", 2, intent.Intent{})))
	require.Equal(t, own("c", 2), ended(send("compacted", "", 2, intent.Intent{Evict: intent.EvictSession})))

	result := intent.Intent{Trigger: intent.ToolResult}
	require.Empty(t, ended(send("parent", "", 3, intent.Intent{})))
	require.Empty(t, ended(send("quick", "parent", 2, intent.Intent{})))
	require.Empty(t, ended(send("quick", "parent", 4, intent.Intent{})))
	require.Empty(t, ended(send("last", "parent", 4, last))[1:], "it was marked")
	slow := send("slow", "parent", 4, intent.Intent{})
	require.Equal(t, own("q", 4), ended(send("parent", "", 4, result)))
	require.Empty(t, ended(slow), "it runs in the background")
	require.Empty(t, ended(send("parent", "", 5, result)))

	// Breakpoints in instructions and tools limit what is dropped where nothing was cached before.
	shared = prompt('t', 4*block)
	marked := intent.Intent{Breakpoints: []intent.Breakpoint{{Tool: 1, Tokens: 4 * block}, {Tool: -1, Turn: 5, Tokens: 6 * block}}, Evict: intent.EvictSession}
	require.Equal(t, own("b", 5), ended(send("breakpoints", "", 5, marked)))
}

// The first session with instructions ends before others that use them: only its own blocks are dropped, until it is the last.
func TestDropKeepsShared(t *testing.T) {
	var dropped [][]uint64
	r := fleet(t, 1, &router.Options{Drop: func(_ index.WorkerID, hashes []uint64) { dropped = append(dropped, hashes) }})
	shared := prompt('s', 4*block)
	send := func(session string, own int, final bool) [][]uint64 {
		req := request(slices.Concat(shared, prompt(session[0], own*block)))
		req.Intent.Session = intent.Session{ID: session, Final: final}
		dropped = nil
		tk := place(t, r, req, start)
		tk.FirstToken(start)
		tk.Finish(start, -1, 1)
		return dropped
	}
	whole := func(session string, n int) []uint64 {
		return request(slices.Concat(shared, prompt(session[0], n*block))).Hashes
	}
	require.Empty(t, send("first", 2, false))
	require.Empty(t, send("second", 2, false))
	require.Empty(t, send("second", 3, false))
	require.Equal(t, [][]uint64{whole("f", 3)[4:]}, send("first", 3, true))
	require.Equal(t, [][]uint64{whole("s", 3)[4:]}, send("second", 3, true), "others used them before")

	r = fleet(t, 1, &router.Options{Drop: func(_ index.WorkerID, hashes []uint64) { dropped = append(dropped, hashes) }})
	require.Empty(t, send("first", 2, false))
	require.Empty(t, send("second", 2, false))
	require.Equal(t, [][]uint64{whole("s", 3)[4:]}, send("second", 3, true))
	require.Equal(t, [][]uint64{whole("f", 3)}, send("first", 3, true), "no other session is left")
}
