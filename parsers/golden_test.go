// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/event"
)

// TestGoldens runs every case of testdata whole, byte by byte, at every two-way split and at random cuts, and checks
// the promises that hold for any output.
func TestGoldens(t *testing.T) {
	for _, c := range goldens(t) {
		t.Run(c.family+"/"+c.name, func(t *testing.T) {
			whole := parse(t, c.family, c.opt, c.in)
			if d := cmp.Diff(c.want, assembled(whole)); d != "" {
				t.Fatalf("%s (-want +got):\n%s", c.file, d)
			}
			checkInvariant(t, c.family, c.opt, c.in)
			checkPromises(t, c.in, whole)
			checkPromises(t, c.in, parse(t, c.family, c.opt, bytewise(c.in)...))
		})
	}
}

// checkInvariant compares every way of cutting with the whole text.
func checkInvariant(t testing.TB, family string, opt parsers.Options, in string) {
	t.Helper()
	want := everything(parse(t, family, opt, in))
	same := func(how string, chunks ...string) {
		t.Helper()
		if d := cmp.Diff(want, everything(parse(t, family, opt, chunks...))); d != "" {
			t.Fatalf("%s, %q: %s changes the result (-whole +cut):\n%s", family, in, how, d)
		}
	}
	same("byte by byte", bytewise(in)...)
	if len(in) < 2000 {
		for i := 1; i < len(in); i++ {
			same("a two-way split", in[:i], in[i:])
		}
	}
	r := rand.New(rand.NewPCG(uint64(len(in)), 7))
	for range 10 {
		same("a random split", cuts(r, in)...)
	}
}

// checkPromises checks what must hold for the events of any output: source spans in order and inside the input, text
// and reasoning equal to their source, arguments that only grow, calls that open once and end once.
func checkPromises(t testing.TB, in string, evs []event.Event) {
	t.Helper()
	var at int64
	open := map[int32]bool{}
	ended := map[int32]bool{}
	part := int32(-1)
	var first event.Event // of the part
	for i, e := range evs {
		require.LessOrEqual(t, at, e.Off, "event %d %v goes back", i, e)
		require.LessOrEqual(t, e.Off, e.End, "event %d %v", i, e)
		require.LessOrEqual(t, e.End, int64(len(in)), "event %d %v goes beyond the input", i, e)
		at = e.End
		require.GreaterOrEqual(t, e.Part, part, "event %d %v: parts go back", i, e)
		if e.Part != part {
			require.Equal(t, part+1, e.Part, "event %d %v: a part is left out", i, e)
			part, first = e.Part, e
		}
		require.Equal(t, first.Call, e.Call, "event %d %v continues the part of %v", i, e, first)
		require.True(t, e.Call >= 0 || e.Kind == first.Kind, "event %d %v continues the part of %v", i, e, first)
		switch e.Kind {
		case event.Text, event.Reasoning:
			require.NotEmpty(t, e.Data)
			require.Equal(t, int32(-1), e.Call)
			if e.Off != e.End { // an inserted separator has no source
				require.Equal(t, in[e.Off:e.End], string(e.Data), "event %d %v is not its source", i, e)
			}
		case event.ToolStart:
			require.False(t, open[e.Call] || ended[e.Call], "call %d opens twice", e.Call)
			require.NotEmpty(t, e.Data)
			open[e.Call] = true
		case event.ToolArgs:
			require.True(t, open[e.Call], "arguments outside call %d", e.Call)
		case event.ToolEnd:
			require.True(t, open[e.Call] && e.Flags.Has(event.Complete), "call %d ends", e.Call)
			open[e.Call], ended[e.Call] = false, true
		case event.ToolAbort:
			require.NotEqual(t, event.None, e.Why)
			require.False(t, ended[e.Call], "call %d aborts after its end", e.Call)
			open[e.Call], ended[e.Call] = false, true
		default:
			t.Fatalf("a parser does not emit %v", e)
		}
	}
	for n, o := range open {
		require.False(t, o, "call %d was left open", n)
	}
}
