// SPDX-License-Identifier: Apache-2.0

package parsers

import (
	"cmp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers/internal/jsontext"
)

// TestPlainRuns compares the plain runs that parsers share with the properties of each byte, for parsers that differ in their
// policy and that are created concurrently.
func TestPlainRuns(t *testing.T) {
	for _, name := range Default().Names() {
		g, err := Default().Lookup(name)
		require.NoError(t, err)
		c, err := compile(g) // without runs
		require.NoError(t, err)
		var all []*Parser
		for _, policy := range []string{"", "before=drop", "before=keep", "keep_tail", "quote_in_reasoning bare_anywhere", "dynamo"} {
			p, err := ParsePolicy(policy)
			require.NoError(t, err)
			for _, opt := range []Options{{}, {NoCalls: true}, {Start: StartResponse}, {Channels: OnlyTools}, {Channels: OnlyReasoning}} {
				opt.Policy = p
				var wg sync.WaitGroup
				var two [2]*Parser
				for i := range two {
					wg.Go(func() { two[i] = newParser(c, &opt) })
				}
				wg.Wait()
				all = append(all, two[:]...)
			}
		}
		for _, p := range all {
			before, tail := "", ""
			if g.Tagged != nil {
				before = g.Tagged.Before
			}
			if tagged := g.Tagged; tagged != nil && tagged.Reasoning != nil {
				tail = tagged.Reasoning.Tail
			}
			if ch := g.Channels; ch != nil && ch.Calls != nil {
				before = ch.Calls.Before
				if r := ch.Calls.Reasoning; r != nil {
					tail = r.Tail
				}
			}
			text := func(c byte) bool { return before != "" && c == before[0] || p.rules.before == beforeDrop && blank(c) }
			thought := func(c byte) bool { return tail != "" && c == tail[0] && !p.rules.keepTail }
			checkRun(t, name+" text", p.runs.text, p.textMarkers, false, text)
			checkRun(t, name+" reasoning", p.runs.reasoning, p.reasonMarkers, false, thought)
			if s := cmp.Or(p.param.all, p.param.set); s != nil {
				checkRun(t, name+" value", p.runs.value, s, true, func(c byte) bool { return c == '\n' || c == '\r' })
			}
			if p.bracedMarkers != nil {
				p.setTextMarkers(p.bracedMarkers)
				checkRun(t, name+" braced text", p.runs.text, p.bracedMarkers, false, text)
				p.Reset()
				checkRun(t, name+" text again", p.runs.text, p.plainMarkers, false, text)
			}
		}
	}
}

// checkRun checks a plain run.
func checkRun(t *testing.T, name string, r *plainRun, s *markerSet, args bool, structural func(byte) bool) {
	t.Helper()
	second, ok := s.set.Seconds()
	require.Equal(t, args, r.args, name)
	require.False(t, r.json, name)
	require.Equal(t, second, r.second, name)
	var marked []byte
	for i := range 256 {
		c := byte(i)
		var is, last odd
		switch {
		case s.set.Starts()[c] && ok:
			is = oddMark
		case s.set.Starts()[c]:
			is = oddStop
		case args && !jsontext.Plain(c):
			is = oddEscape
		}
		if is != 0 {
			marked = append(marked, c)
		}
		switch {
		case is == oddMark || structural(c):
			last = oddStop
		case i >= 0x80:
			last = oddWide
		}
		if is != r.bytes[c] || last != r.last[c] {
			t.Fatalf("%s: byte %q: %d, last %d; want %d, last %d", name, c, r.bytes[c], r.last[c], is, last)
		}
	}
	only := byte(0)
	if len(marked) == 1 {
		only = marked[0]
	}
	require.Equal(t, only, r.only, name)
}
